"""How large a store is said to be."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry, publish
from tests.store.places import Place
from wholefeed.errors import OverloadedError
from wholefeed.store import store
from wholefeed.store.engine import Engine
from wholefeed.store.opening import open_shared
from wholefeed.store.store import Summary, Upkeep
from wholefeed.store.tables.segments import Pins


class Measuring:
    """An engine that takes as long as a test says to look at all that is stored."""

    is_shared = True

    def __init__(self) -> None:
        self.reads = 0
        self.may_end = asyncio.Event()

    async def read(self, _: object, *, is_long: bool = False, is_single: bool = False) -> Summary:
        self.reads += is_long
        await self.may_end.wait()
        return Summary({}, 1, 2, None)


BODY = random.Random(1).randbytes(1 << 20)
"""Nothing makes it smaller."""


async def test_what_is_stored_counts_until_it_is_forgotten(store: NamedStore) -> None:
    """Row 68: feeds are evicted until the rest fits, so what is deleted must count no more, at once."""
    before = await store.upkeep.used_bytes()
    feed = (await a_feed(store)).id
    await store.put_documents(feed, [a_document(URL, an_entry("a"), body=BODY)], now=NOW)
    await publish(store, feed)

    stored = await store.upkeep.used_bytes() - before
    await store.forget(feed, now=NOW)

    assert len(BODY) * 0.95 < stored < len(BODY) * 1.2  # free pages are used first
    assert await store.upkeep.used_bytes() - before < len(BODY) // 20


async def test_without_a_feed_as_much_less_is_stored_as_it_takes(postgres_url: str) -> None:
    """Evicting many feeds looks at the rows of each, and at all rows once: that comes to the same."""
    async with open_shared(postgres_url, connections=2) as opened:
        store = NamedStore(opened)
        for number, name in enumerate("abc"):
            feed = (await a_feed(store, f"{URL}/{name}")).id
            held = [
                a_document(f"{URL}/{name}/{n}", an_entry(str(n)), body=BODY[:n]) for n in range(1, number + 2)
            ]
            await store.put_documents(feed, held, now=NOW)
            await publish(store, feed)
        await a_feed(store)
        used_bytes = await store.upkeep.used_bytes()
        for feed, _ in await store.upkeep.least_asked():
            own_bytes = await store.upkeep.feed_bytes(feed)
            assert own_bytes
            await store.forget(feed, now=NOW)
            used_bytes -= own_bytes
            assert await store.upkeep.used_bytes() == used_bytes
        assert used_bytes == 0


async def test_the_summary_says_how_large_it_is(store: NamedStore, place: Place) -> None:
    """What a database has on a volume that is not here is not known."""
    await a_feed(store)
    summary = await store.upkeep.summary()

    assert summary is not None
    assert summary.feeds == {"loading": (1, 0)}
    assert summary.file_bytes > 0
    assert summary.used_bytes > 0
    assert (summary.free_bytes is None) == bool(place.url)


async def test_a_long_measurement_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 107: the other figures come in time, and it ends though whoever wanted it has left."""
    monkeypatch.setattr(store, "SUM_UP_SECONDS", 0.02)
    engine = Measuring()
    measured = Upkeep(cast(Engine, engine), Pins())
    for _ in range(2):
        async with asyncio.timeout(5):
            assert await measured.summary() is None
    engine.may_end.set()
    await asyncio.sleep(0)
    assert await measured.summary() == Summary({}, 1, 2, None)
    assert engine.reads == 1


async def test_a_store_that_does_not_answer_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 107: its summary, which may be an old one, says nothing of that."""
    monkeypatch.setattr(store, "ANSWER_SECONDS", 0.02)
    silent = Upkeep(cast(Engine, Measuring()), Pins())
    with pytest.raises(OverloadedError):
        async with asyncio.timeout(5):
            await silent.require_answer()
