"""What one replica does while another one is at the same rows, each in its transaction."""

from __future__ import annotations

import asyncio
import threading

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry
from tests.store.postgres.conftest import OpenEngine
from wholefeed.store.base import Database, fetch_value, run
from wholefeed.store.opening import open_shared
from wholefeed.store.tables.documents import KEEP_DETACHED_SECONDS

LATER = NOW + KEEP_DETACHED_SECONDS + 1


async def test_a_document_that_is_attached_meanwhile_is_not_purged(postgres_url: str) -> None:
    """R8: whoever cleans up takes nothing that another replica is putting back, and does not wait for it."""
    from wholefeed.store.postgres_connection import connect  # noqa: PLC0415 - an extra

    async with open_shared(postgres_url, connections=2) as opened:
        store = NamedStore(opened)
        feed = (await a_feed(store)).id
        (number,) = await store.put_documents(feed, [a_document(URL, an_entry("a"), rank=None)], now=NOW)
        other = await asyncio.to_thread(connect, postgres_url)
        try:
            other.execute("BEGIN")
            other.execute("UPDATE document SET rank = 1, detached_at = NULL WHERE id = :id", {"id": number})
            assert await store.upkeep.purge(now=LATER) == 0
            other.execute("COMMIT")
        finally:
            other.close()
        assert await store.upkeep.purge(now=LATER) == 0
        assert [row.id for row in await store.documents(feed)] == [number]


async def test_two_replicas_make_a_feed_once(postgres_url: str) -> None:
    """R25: whoever is second is given what the first has made."""
    async with (
        open_shared(postgres_url, connections=8) as one,
        open_shared(postgres_url, connections=8) as two,
    ):
        stores = [NamedStore(each) for each in (one, two)]
        for n in range(20):
            made = await asyncio.gather(*(a_feed(each, f"{URL}/{n}") for each in stores * 4))
            assert len({row.id for row in made}) == 1


async def test_a_row_that_another_replica_makes_meanwhile_is_found(another: OpenEngine) -> None:
    """Both have found none: whoever is second is begun again, and finds what the first has made."""
    meeting, made = threading.Barrier(2), list[bool]()

    def work(db: Database) -> None:
        is_there = bool(fetch_value(db, "SELECT count(*) FROM probe"))
        made.append(not is_there)
        if not is_there:
            meeting.wait(10)
            run(db, "INSERT INTO probe (id, filler) VALUES (1, '')")

    async with another() as one, another() as other:
        await asyncio.gather(one.write(work), other.write(work))
    assert made == [True, True, False]
