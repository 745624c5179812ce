"""wholefeed.service.storing: documents that come one soon after the other are stored together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom, ids, own_ids, publish_chain
from tests.origin import Origin
from tests.running import Proxy, a_config, running
from wholefeed.service import storing
from wholefeed.store.base import Database
from wholefeed.store.rows import NewDocument
from wholefeed.store.tables import documents


async def stored(proxy: Proxy, url: str, *, documents: int) -> None:
    """Wait until so many documents of the feed are in the database."""
    async with asyncio.timeout(10):
        feed = await proxy.store.feed_by_url(url)
        while feed is None or len(await proxy.store.documents(feed.id)) < documents:
            await asyncio.sleep(0.01)
            feed = await proxy.store.feed_by_url(url)


async def test_what_comes_together_is_stored_together(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to sixteen documents of a walk are one change of the feed, and all of them are served."""
    monkeypatch.setattr(storing, "LONGEST_SECONDS", 60.0)
    names = publish_chain(origin, archives=34)
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", names)
    feed = await proxy.store.feed_by_url(origin.url("/feed"))
    assert feed is not None
    assert feed.revision < 10, "the subscription document; 16, 16 and 2 archives, or a publication in between"


@pytest.mark.fault("67")
async def test_what_has_come_waits_for_no_slow_publisher(proxy: Proxy, origin: Origin) -> None:
    """What a publisher has given is stored a moment later, though it is long about the next document."""
    publish_chain(origin, archives=5)
    with origin.held("/archive/3"):
        asking = asyncio.create_task(proxy.whole(origin.url("/feed")))
        await stored(proxy, origin.url("/feed"), documents=3)
    assert (await asking).state == "complete"


@pytest.mark.fault("74")
async def test_what_has_come_is_stored_when_the_program_is_stopped(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk that is broken off keeps what waited for more: nobody is asked for it again."""
    monkeypatch.setattr(storing, "LONGEST_SECONDS", 60.0)
    url = origin.url("/feed")
    publish_chain(origin, archives=5)
    with origin.held("/archive/3") as gate:
        async with running(a_config(tmp_path)) as proxy:
            await proxy.begun(url)
            await gate.reached()
            async with asyncio.timeout(10):
                while (await proxy.status(url))["progress"]["fetched"] < 2:
                    await asyncio.sleep(0.01)
            assert (await proxy.status(url))["progress"]["documents"] == 1, "what waits is not stored"
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
    assert [origin.counts()[f"/archive/{number}"] for number in (5, 4)] == [1, 1]


async def test_a_walk_that_ends_while_documents_are_put_knows_their_numbers(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R20: a publication meanwhile that stores what has waited is not broken off before they are known.

    Here the order of the chain is to be mended at the end, which goes by numbers.
    """
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    await proxy.whole(url)
    archive = partial(atom, archive=True, current="/feed")
    origin.publish("/feed", atom(an_item("e9", 9), updated=9, prev_archive="/archive/2"))
    origin.publish("/archive/2", archive(an_item("e4", 4), updated=8, prev_archive="/between"))
    origin.publish("/between", archive(an_item("between", 3), updated=4, prev_archive="/gone"))
    origin.answer("/gone", Status(404))
    monkeypatch.setattr(storing, "LONGEST_SECONDS", 60.0)
    real, loop = documents.put_arranged, asyncio.get_running_loop()
    is_putting, may_put = asyncio.Event(), threading.Event()

    def put(db: Database, feed: int, coming: Sequence[NewDocument], *arguments: Any) -> list[int]:
        if any(each.url.endswith("/between") for each in coming):
            loop.call_soon_threadsafe(is_putting.set)
            may_put.wait(10)
        return real(db, feed, coming, *arguments)

    monkeypatch.setattr(documents, "put_arranged", put)
    proxy.clock.advance(100_000)
    with origin.held("/gone") as gate:
        await proxy.get(url, wait="0.1")
        async with asyncio.timeout(10):
            await gate.reached()
            await is_putting.wait()
    loop.call_later(0.3, may_put.set)
    await proxy.settled()
    reply = await proxy.get(url)
    assert reply.state == "partial"
    assert own_ids(reply.body) == ["e9", "e6", "e5", "e4", "between", "e2", "e1"]
