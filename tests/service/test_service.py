"""wholefeed.service.service: an answer belongs to one publication, and a cancellation at any moment leaves
whole documents and nothing open.

The suite cancels some times; `python -m pytest tests/service/test_service.py --exhaustive` 1,000 times.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.answers import Gate, Held, Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.origin import Origin
from tests.running import Proxy, a_config, running
from tests.sqlite_faults import Connections, check_database
from wholefeed.errors import WholefeedError
from wholefeed.store.base import Database
from wholefeed.store.rows import Overview, Snapshot
from wholefeed.store.tables import failures
from wholefeed.web.answer import Representation, prepare
from wholefeed.web.keys import STORE


async def test_what_is_missing_is_of_the_publication_that_is_sent(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R16: a feed may heal during the answer."""
    publish_chain(origin, archives=3)
    origin.remove("/archive/2")
    url = origin.url("/feed")
    assert (await proxy.whole(url)).reconstruction.startswith("partial;documents=3;entries=")
    origin.publish("/archive/2", atom(an_item("healed", 2), archive=True, prev_archive="/archive/1"))
    read = proxy.store.snapshot
    has_healed: list[bool] = []

    @asynccontextmanager
    async def read_and_let_heal(feed_id: int) -> AsyncIterator[Snapshot]:
        async with read(feed_id) as snapshot:
            if not has_healed:
                has_healed.append(True)
                await proxy.service.refresh(url)
                await proxy.settled()
            yield snapshot

    monkeypatch.setattr(proxy.app[STORE], "snapshot", read_and_let_heal)

    async with proxy.service.answer(url, wait_seconds=1.0) as told:
        assert (told.state, len(told.missing)) == ("partial", 1)
    async with proxy.service.answer(url, wait_seconds=1.0) as told:
        assert (told.state, len(told.missing)) == ("complete", 0)


async def test_a_status_that_says_that_nothing_is_under_way_is_of_now(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R16: a refresh that ends during the look changes the feed that was read."""
    url, gate = origin.url("/feed"), Gate()
    origin.publish("/feed", atom(an_item("a"), complete=True))
    await proxy.whole(url)
    origin.fault("/feed", Held(gate, Status(500)))
    look, has_looked, may_go_on = failures.overview, threading.Event(), threading.Event()

    def slowly(db: Database, feed: int) -> Overview:
        found = look(db, feed)
        has_looked.set()
        may_go_on.wait(10)
        return found

    monkeypatch.setattr(failures, "overview", slowly)
    asking = asyncio.create_task(proxy.service.refresh(url))
    await asyncio.to_thread(has_looked.wait, 10)
    gate.release()
    await proxy.settled()
    may_go_on.set()
    told = await asking
    assert (told.is_refreshing, told.feed.is_stale) == (False, True)


# Cancelled at any moment

CANCELLATIONS, ALL_CANCELLATIONS = 150, 1000
LONGEST_SECONDS = 0.03
"""Typical duration of a walk."""


async def read(proxy: Proxy, url: str) -> None:
    async with proxy.service.answer(url, wait_seconds=5) as reconstruction:
        answer = prepare(reconstruction, Representation(self_url=url, is_gzip=True, warns=True))
        async for _ in answer.body.pieces(proxy.store.store):
            pass


async def walk(proxy: Proxy, url: str) -> None:
    """Wait for the refresh; cancelling this cancels the refresh itself, as closing does."""
    await proxy.service.refresh(url, is_full=True)
    feed = await proxy.store.feed_by_url(url)
    refreshes = proxy.service._running  # noqa: SLF001 - no public call cancels a refresh and lets all go on
    flight = refreshes.running(feed.id) if feed is not None else None
    if flight is not None:
        await flight


CALLS: list[Callable[[Proxy, str], Awaitable[object]]] = [
    *(read, read, read, walk, walk),
    lambda proxy, url: proxy.service.status(url),
    lambda proxy, url: proxy.service.forget(url),
]


async def cancelled(call: Awaitable[object], seconds: float) -> bool:
    """Cancel a call after these seconds; return whether it was still running."""
    task = asyncio.ensure_future(call)
    await asyncio.wait({task}, timeout=seconds)
    was_running = task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    assert not isinstance(outcome, Exception) or isinstance(outcome, WholefeedError), outcome
    return was_running


async def test_random_cancellations_of_the_service_leave_whole_feeds(
    tmp_path: Path, origin: Origin, connections: Connections, request: pytest.FixtureRequest
) -> None:
    """docs/design.md#the-store."""
    wanted = ALL_CANCELLATIONS if request.config.getoption("--exhaustive") else CANCELLATIONS
    expected = publish_chain(origin, archives=4)
    url = origin.url("/feed")
    chance = random.Random(8)
    async with running(a_config(tmp_path)) as proxy:
        await proxy.get(url)
        before = {task.get_name() for task in asyncio.all_tasks()}
        done = 0
        with capture_logs() as lines:
            while done < wanted:
                proxy.clock.advance(4000)
                calls = [chance.choice(CALLS)(proxy, url) for _ in range(3)]
                times = [chance.uniform(0, LONGEST_SECONDS) for _ in calls]
                done += sum(await asyncio.gather(*map(cancelled, calls, times)))
            await proxy.settled()
        assert not [line for line in lines if line["event"] in ("refresh.failed", "request.failed")]

        reply = await proxy.whole(url)
        await proxy.settled()
        assert (reply.state, ids(reply.body)) == ("complete", expected)
        async with asyncio.timeout(300):
            while {task.get_name() for task in asyncio.all_tasks()} & {"store-reclaim"}:
                await asyncio.sleep(0.01)
        assert not connections.are_in_transaction
        pins = proxy.store.upkeep.pins
        assert pins.segments == pins.feeds == pins.sent == frozenset()
        left = {task.get_name() for task in asyncio.all_tasks()} - before
        assert not {name for name in left if not name.startswith("Task-")}
        assert len(asyncio.all_tasks()) <= len(before) + 2  # the client's and the publisher's connection
    check_database(tmp_path / "wholefeed.db")


async def test_a_refresh_that_is_broken_off_leaves_no_write_to_the_next(
    tmp_path: Path, origin: Origin
) -> None:
    """The next refresh would publish its reads from before that write."""
    before, after = atom(an_item("a"), complete=True), atom(an_item("b"), complete=True)
    origin.publish("/feed", before, etag='"1"')
    url = origin.url("/feed")
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
        may_go_on = threading.Event()
        busy = asyncio.create_task(proxy.store.write(lambda _: may_go_on.wait(30)))
        try:
            origin.publish("/feed", after, etag='"2"')
            waiting = asyncio.create_task(walk(proxy, url))
            async with asyncio.timeout(300):
                while origin.counts()["/feed"] < 2:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)  # it waits to be stored
            waiting.cancel()
            origin.publish("/feed", before, etag='"1"')
            asyncio.get_running_loop().call_later(0.5, may_go_on.set)
            await asyncio.wait({waiting})
            await walk(proxy, url)
        finally:
            may_go_on.set()
        await busy
        assert ids((await proxy.whole(url)).body) == ["a"]
