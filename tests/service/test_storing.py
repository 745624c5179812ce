"""wholefeed.service.storing: shared transactions, skipped writes, and durability."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom, ids, own_ids, publish_chain
from tests.origin import Origin
from tests.postgres_faults import a_faulty
from tests.running import Proxy, a_config, running
from tests.sqlite_faults import SqliteFaults
from wholefeed.core.model import Role
from wholefeed.core.refresh.arrivals import ReplyFacts
from wholefeed.core.schedule import CacheFields
from wholefeed.service import pending
from wholefeed.service.memory import Beginning, Memory
from wholefeed.service.storing import FeedStorage
from wholefeed.store import sqlite_file, store
from wholefeed.store.base import Database, fetch_value
from wholefeed.store.rows import DocumentRow, NewDocument, Snapshot
from wholefeed.store.sqlite import SqliteEngine
from wholefeed.store.tables import document_table
from wholefeed.web.keys import STORE
from wholefeed.workers.pool import Workers


async def stored(proxy: Proxy, url: str, *, documents: int) -> None:
    """Wait until the database has this many documents of the feed."""
    async with asyncio.timeout(300):
        feed = await proxy.store.feed_by_url(url)
        while feed is None or len(await proxy.store.documents(feed.id)) < documents:
            await asyncio.sleep(0.01)
            feed = await proxy.store.feed_by_url(url)


async def test_what_comes_together_is_stored_together(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to sixteen documents of a walk are one change."""
    monkeypatch.setattr(pending, "LONGEST_SECONDS", 60.0)
    names = publish_chain(origin, archives=34)
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", names)
    feed = await proxy.store.feed_by_url(origin.url("/feed"))
    assert feed is not None
    assert feed.revision < 10, "the subscription document; 16, 16 and 2 archives, or a publication in between"


@pytest.mark.fault("67")
async def test_what_has_come_waits_for_no_slow_publisher(proxy: Proxy, origin: Origin) -> None:
    """A document is stored a moment after its arrival."""
    publish_chain(origin, archives=5)
    with origin.held("/archive/3"):
        asking = asyncio.create_task(proxy.whole(origin.url("/feed")))
        await stored(proxy, origin.url("/feed"), documents=3)
    assert (await asking).state == "complete"


@pytest.mark.fault("74")
async def test_what_has_come_is_stored_when_the_program_is_stopped(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled walk keeps waiting documents: nobody is asked for them again."""
    monkeypatch.setattr(pending, "LONGEST_SECONDS", 60.0)
    url = origin.url("/feed")
    publish_chain(origin, archives=5)
    with origin.held("/archive/3") as gate:
        async with running(a_config(tmp_path)) as proxy:
            await proxy.begun(url)
            await gate.reached()
            async with asyncio.timeout(300):
                while (await proxy.status(url))["progress"]["fetched"] < 2:
                    await asyncio.sleep(0.01)
            assert (await proxy.status(url))["progress"]["documents"] == 1, "what waits is not stored"
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
    assert [origin.counts()[f"/archive/{number}"] for number in (5, 4)] == [1, 1]


async def test_a_walk_that_ends_while_documents_are_put_knows_their_numbers(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R20: a publication that stores waiting documents is not cancelled before their numbers are known.

    The order of the chain is repaired at the end, by these numbers.
    """
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    await proxy.whole(url)
    archive, kept = partial(atom, archive=True, current="/feed"), (an_item("e4", 4), an_item("e3", 3))
    origin.publish("/feed", atom(an_item("e9", 9), updated=9, prev_archive="/archive/2"))
    origin.publish("/archive/2", archive(*kept, updated=8, prev_archive="/between"))
    origin.publish("/between", archive(an_item("between", 3), updated=4, prev_archive="/gone"))
    origin.answer("/gone", Status(404))
    monkeypatch.setattr(pending, "LONGEST_SECONDS", 60.0)
    real, loop = document_table.put_arranged, asyncio.get_running_loop()
    is_putting, may_put = asyncio.Event(), threading.Event()

    def put(db: Database, feed: int, coming: Sequence[NewDocument], *arguments: Any) -> list[int]:
        if any(each.url.endswith("/between") for each in coming):
            loop.call_soon_threadsafe(is_putting.set)
            may_put.wait(10)
        return real(db, feed, coming, *arguments)

    monkeypatch.setattr(document_table, "put_arranged", put)
    proxy.clock.advance(100_000)
    with origin.held("/gone") as gate:
        await proxy.get(url, wait="0.1")
        async with asyncio.timeout(300):
            await gate.reached()
            await is_putting.wait()
    loop.call_later(0.3, may_put.set)
    await proxy.settled()
    reply = await proxy.get(url)
    assert reply.state == "partial"
    assert own_ids(reply.body) == ["e9", "e6", "e5", "e4", "e3", "between", "e2", "e1"]


async def test_it_neither_reads_nor_writes_before_it_answers(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R13: memory has its starting point since the publication; the store learns of it later.

    This holds for one refresh after the other, and again after a restart.
    """
    monkeypatch.setattr(store, "WRITE_SECONDS", 3600)
    faults = SqliteFaults()
    monkeypatch.setattr(sqlite_file, "connect", faults.connect)
    config = a_config(tmp_path)
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)), etag='"1"')

    async def refreshed(proxy: Proxy) -> int:
        """Ask for the stale feed; return the number of statements."""
        proxy.clock.advance(10_000)
        faults.heal()
        assert (await proxy.get(url)).state == "remembered"
        return faults.statements

    async with running(config) as proxy:
        await proxy.whole(url)
        assert [await refreshed(proxy) for _ in range(3)] == [0, 0, 0]
        asked = [request.headers.get("if-none-match") for request in origin.requests]
        assert asked == [None, '"1"', '"1"', '"1"']
        before = await proxy.status(url)
        assert await refreshed(proxy) == 0
        assert (await proxy.status(url))["last_refresh"] > before[
            "last_refresh"
        ]  # who looks finds it written
        clock = proxy.clock
    async with running(config, clock) as proxy:
        assert [bool(await refreshed(proxy)) for _ in range(3)] == [True, True, False]
        origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)), etag='"2"')
        assert await refreshed(proxy)
        assert await refreshed(proxy) == 0


NO_NEWS, ONE_ENTRY, FIRST = 25, 40, 60
"""Most trips to PostgreSQL of a refresh; statements sent and awaited together are one."""


async def test_a_refresh_makes_few_trips_to_postgres(
    tmp_path: Path, origin: Origin, postgres_url: str
) -> None:
    """Request, lease and notices count; statements without a waiter go along."""
    async with a_faulty(postgres_url) as faults:
        config = a_config(tmp_path, store={"url": faults.url, "connections": 4})
        async with running(config) as proxy:

            async def trips(entries: Sequence[str], version: int) -> int:
                """Ask for three feeds with this change; return the fewest trips of one.

                Signs of life occur in between, and a host's expired turn is acquired again.
                """
                items = [an_item(name, 10 - at) for at, name in enumerate(entries)]
                origin.publish("/feed", atom(*items, updated=version), etag=f'"{version}"')
                proxy.clock.advance(10_000)
                found = []
                for number in range(3):
                    faults.heal()
                    reply = await proxy.get(origin.url(f"/feed?n={number}"))
                    assert set(own_ids(reply.body)) >= set(entries)
                    await proxy.settled()
                    found.append(faults.statements)
                return min(found)

            assert await trips("cb", 1) <= FIRST
            assert await trips("cb", 1) <= NO_NEWS
            assert await trips("dcb", 2) <= ONE_ENTRY
            assert await trips("edc", 3) <= ONE_ENTRY, "one comes, and one leaves and is remembered"


async def test_what_the_next_refresh_starts_from_is_what_is_stored(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents touched, put and published in one refresh are not read again."""
    kept: dict[int, Beginning] = {}
    keep = Memory.keep_beginning

    def keeping(self: Memory, feed: int, found: Beginning) -> None:
        kept[feed] = found
        keep(self, feed, found)

    async def is_as_stored(url: str) -> bool:
        feed = await proxy.store.feed_by_url(url)
        assert feed is not None
        stored = await proxy.store.documents(feed.id)
        return _but_for_checks(kept.pop(feed.id).rows) == _but_for_checks(stored)

    monkeypatch.setattr(Memory, "keep_beginning", keeping)
    alone, chain = origin.url("/alone"), origin.url("/feed")
    origin.publish("/alone", atom(an_item("a", 1)))
    publish_chain(origin, archives=2)
    for url in (alone, chain):
        await proxy.whole(url)
        assert await is_as_stored(url)
    origin.publish("/alone", atom(an_item("b", 2)), etag='"2"')  # the other feed is remembered
    publish_chain(origin, archives=3)
    for number in (9, 10):  # the second time one feed is unchanged, and an archive of the other is validated
        proxy.clock.advance(100_000)
        newest = an_item("newest", number)
        origin.publish("/feed", atom(newest, updated=number, archive=False, prev_archive="/archive/3"))
        for url in (alone, chain):
            await proxy.refreshed(url)
            assert await is_as_stored(url)


def _but_for_checks(rows: Sequence[DocumentRow]) -> list[DocumentRow]:
    """Leave out the time of the last validation, which decides nothing."""
    return [replace(row, checked_at=0.0) if row.role is Role.SUBSCRIPTION else row for row in rows]


async def test_a_refresh_that_somebody_insists_on_commits_nothing_where_nothing_is_new(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The publication and memory stay; news is committed all the same."""
    replaced: list[int] = []
    replace_held = Memory.replace

    def replacing(self: Memory, snapshot: Snapshot, new: Mapping[int, bytes]) -> None:
        replaced.append(snapshot.feed.documents)
        replace_held(self, snapshot, new)

    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    before = await proxy.whole(url)
    monkeypatch.setattr(Memory, "replace", replacing)
    for _ in range(2):
        proxy.clock.advance(100_000)
        await proxy.refreshed(url)
        assert not replaced
        assert (await proxy.get(url)).body == before.body
    publish_chain(origin, archives=3)
    await proxy.refreshed(url)
    assert replaced[-1] == 4


async def test_what_is_stale_is_no_longer_when_its_publisher_is_heard(proxy: Proxy, origin: Origin) -> None:
    """R14: the new state is written at once, and the failure goes."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)), etag='"1"')
    await proxy.whole(url)
    feed = await proxy.store.feed_by_url(url)
    assert feed is not None
    document, *_ = await proxy.store.documents(feed.id)
    await proxy.store.update_feed(feed.id, is_stale=True)
    store, now = proxy.app[STORE], proxy.clock()

    storage = FeedStorage(store, Workers(0), feed.id, now=proxy.clock, memory=Memory(1 << 20))
    await storage.start(is_new=False)
    storage.note_reply(
        ReplyFacts(
            checked_at=now,
            fresh_until=now + 60,
            is_private=False,
            cache_fields=CacheFields(),
            unchanged=document.id,
            fetch_url=None,
            move=None,
        )
    )
    await storage.flush()

    stored = await proxy.store.feed(feed.id)
    assert stored is not None
    assert (stored.is_stale, stored.fresh_until) == (False, now + 60)


async def test_nobody_is_answered_with_what_a_power_cut_undoes(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes before a publication wait for the disk with it."""
    monkeypatch.setattr(store, "WRITE_SECONDS", 0.01)
    lasting: list[bool] = []
    write = SqliteEngine.write

    async def noted(engine: SqliteEngine, work: Any, *, is_lasting: bool = True, **options: Any) -> Any:
        result = await write(engine, work, is_lasting=is_lasting, **options)
        lasting.append(is_lasting)
        return result

    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)), etag='"1"')
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(origin.url("/feed?other"))
        monkeypatch.setattr(SqliteEngine, "write", noted)
        await proxy.whole(url)
        assert lasting == [False, False, True], "it is made, its document put, and both published"
        lasting.clear()
        origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)), etag='"2"')
        await proxy.refreshed(url)
        assert lasting == [False, True]
        lasting.clear()
        proxy.clock.advance(100_000)
        await proxy.get(url)
        assert await proxy.store.feed_by_url(url)
        assert lasting == [False], "that nothing has changed can be asked again"


async def test_what_is_written_lasts_unless_more_comes(proxy: Proxy) -> None:
    """A change followed by another reaches the disk with it."""
    store = proxy.app[STORE]
    levels = [
        await store.write(lambda db: fetch_value(db, "PRAGMA synchronous"), comes_more=comes_more)
        for comes_more in (False, True, False)
    ]
    assert levels == [2, 1, 2]
