"""A refresh to which the publisher says that nothing has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import Proxy, a_config, running
from tests.sqlite_faults import SqliteFaults
from wholefeed.core.refresh.port import ReplyFacts
from wholefeed.core.schedule import CacheFields
from wholefeed.service.memory import Beginning, Memory
from wholefeed.service.storing import FeedStorage
from wholefeed.store import sqlite_file, store
from wholefeed.web.keys import STORE
from wholefeed.workers.pool import Workers


async def test_it_neither_reads_nor_writes_before_it_answers(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R13: what it starts from is in memory since the feed was published; the store learns of it later.

    That holds for one refresh after the other, and again when a restart has been got over.
    """
    monkeypatch.setattr(store, "WRITE_SECONDS", 3600)
    faults = SqliteFaults()
    monkeypatch.setattr(sqlite_file, "connect", faults.connect)
    config = a_config(tmp_path)
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)), etag='"1"')

    async def refreshed(proxy: Proxy) -> int:
        """Ask for the feed when it is stale; return how many statements that took."""
        proxy.clock.advance(100_000)
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


async def test_what_the_next_refresh_starts_from_is_what_is_stored(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where documents were touched, put and published in the same refresh: it is not read again then."""
    kept: dict[int, Beginning] = {}
    keep = Memory.keep_beginning

    def keeping(self: Memory, feed: int, found: Beginning) -> None:
        kept[feed] = found
        keep(self, feed, found)

    async def is_as_stored(url: str) -> bool:
        feed = await proxy.store.feed_by_url(url)
        assert feed is not None
        return kept.pop(feed.id).rows == await proxy.store.documents(feed.id)

    monkeypatch.setattr(Memory, "keep_beginning", keeping)
    alone, chain = origin.url("/alone"), origin.url("/feed")
    origin.publish("/alone", atom(an_item("a", 1)))
    publish_chain(origin, archives=2)
    for url in (alone, chain):
        await proxy.whole(url)
        assert await is_as_stored(url)
    origin.publish("/alone", atom(an_item("b", 2)), etag='"2"')  # the other one is remembered
    publish_chain(origin, archives=3)
    for _ in range(2):  # the second time one has not changed, and of the other an archive is looked at
        proxy.clock.advance(100_000)
        for url in (alone, chain):
            await proxy.refreshed(url)
            assert await is_as_stored(url)


async def test_what_is_stale_is_no_longer_when_its_publisher_is_heard(proxy: Proxy, origin: Origin) -> None:
    """R14: that is more than until when it is fresh, so it is written at once, and the failure goes."""
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
