"""Polling in the background: what readers miss, politeness, faults, the end of the program (rule R7)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.answers import Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Clock, Proxy, a_config, running
from wholefeed.errors import StorageFullError, StoreError
from wholefeed.service import background as module
from wholefeed.service.background import MAX_POLLS
from wholefeed.service.refresh import WalkTurns
from wholefeed.service.running import Running
from wholefeed.store.tables import documents, failures

STALE_SECONDS = 1000.0
"""More than the default freshness, and more than the interval of these tests."""

LOOKS_SECONDS = 0.2
"""Time for many turns, where nothing is to happen."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let turns and rests last no longer than a test can wait."""
    set_constant(monkeypatch, "LONGEST_PAUSE_SECONDS", 0.01)
    set_constant(monkeypatch, "REST_SECONDS", 0.01)


@asynccontextmanager
async def polling(
    path: Path,
    clock: Clock | None = None,
    *,
    poll_seconds: float = 600,
    walks: WalkTurns | None = None,
    **sections: Any,
) -> AsyncIterator[Proxy]:
    config = a_config(path, history={"poll_seconds": poll_seconds}, **sections)
    async with running(config, clock, walks=walks) as proxy:
        yield proxy


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.005)


async def polled(proxy: Proxy, origin: Origin, path: str = "/feed", *, times: int = 1) -> None:
    """Wait until a path has been asked for, counted from `forget_requests`, and what came is published."""
    await until(lambda: len(origin.requests_for(path)) >= times)
    await proxy.settled()


@pytest.mark.parametrize(("poll_seconds", "expected"), [(600, ["c", "b", "a"]), (0, ["c", "a"])])
async def test_what_came_and_went_between_two_visits_is_there_when_polling_is_on(
    tmp_path: Path, origin: Origin, poll_seconds: float, expected: list[str]
) -> None:
    """R7; and asked_at stays that of the reader."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    async with polling(tmp_path, poll_seconds=poll_seconds) as proxy:
        await proxy.whole(url)
        before = await proxy.store.feed_by_url(url)
        origin.forget_requests()
        origin.publish("/feed", atom(an_item("b", 2)))
        proxy.clock.advance(STALE_SECONDS)
        if poll_seconds:
            await polled(proxy, origin)
        else:
            await asyncio.sleep(LOOKS_SECONDS)
            assert origin.requests == []
        after = await proxy.store.feed_by_url(url)
        assert before is not None
        assert after is not None
        assert after.asked_at == before.asked_at

        origin.publish("/feed", atom(an_item("c", 3)))
        proxy.clock.advance(STALE_SECONDS)
        assert ids((await proxy.whole(url)).body) == expected


async def test_a_poll_asks_conditionally_and_is_told_in_the_log(tmp_path: Path, origin: Origin) -> None:
    """R7: a poll sends the validators, an unchanged feed keeps its ETag, and one log line tells of it."""
    origin.publish("/feed", atom(an_item("a", 1)), etag='"1"')
    async with polling(tmp_path) as proxy:
        feed = await proxy.whole(origin.url("/feed"))
        with capture_logs() as lines:
            proxy.clock.advance(STALE_SECONDS)
            await polled(proxy, origin, times=2)
            await until(lambda: any(line["event"] == "feed.polled" for line in lines))
        assert (await proxy.get(origin.url("/feed"))).headers["ETag"] == feed.headers["ETag"]
    assert [request.headers.get("if-none-match") for request in origin.requests] == [None, '"1"']
    (line,) = [line for line in lines if line["event"] == "feed.polled"]
    assert line["slug"] is None


async def test_two_feeds_of_one_host_are_never_polled_at_once_and_others_pass(
    tmp_path: Path, origin: Origin
) -> None:
    """R7: while a poll of a host hangs, its other feeds wait and those of other hosts are polled."""
    async with Origin("127.0.0.2") as other, polling(tmp_path) as proxy:
        for publisher, path in ((origin, "/a"), (origin, "/b"), (other, "/c")):
            publisher.publish(path, atom(an_item("x", 1), feed_id=f"urn:{path}"))
            await proxy.whole(publisher.url(path))
            publisher.forget_requests()
        with origin.held("/a") as gate:
            proxy.clock.advance(STALE_SECONDS)
            await gate.reached()
            await polled_alone(other, "/c")
            await asyncio.sleep(LOOKS_SECONDS)
            assert origin.counts() == {"/a": 1}
        await polled(proxy, origin, "/b")
        assert origin.counts() == {"/a": 1, "/b": 1}
        assert origin.peak_requests == 1


async def polled_alone(origin: Origin, path: str) -> None:
    await until(lambda: len(origin.requests_for(path)) == 1)


@pytest.mark.parametrize(("concurrency", "most"), [(32, MAX_POLLS), (8, 2)])
async def test_few_polls_run_at_once_and_readers_are_answered_meanwhile(
    tmp_path: Path, concurrency: int, most: int
) -> None:
    """R7: hanging polls take a quarter of fetch.concurrency at most, and a new feed is answered meanwhile."""
    async with AsyncExitStack() as stack:
        hosts = [f"127.0.0.{number}" for number in range(2, MAX_POLLS + 5)]
        origins = [await stack.enter_async_context(Origin(host)) for host in hosts]
        proxy = await stack.enter_async_context(polling(tmp_path, fetch={"concurrency": concurrency}))
        gates = []
        for origin in origins:
            origin.publish("/feed", atom(an_item("x", 1)))
            origin.publish("/new", atom(an_item("y", 1)))
            await proxy.whole(origin.url("/feed"))
            gates.append(stack.enter_context(origin.held("/feed")))
        proxy.clock.advance(STALE_SECONDS)
        await until(lambda: sum(gate.waiting for gate in gates) == most)
        assert ids((await proxy.get(origins[0].url("/new"))).body) == ["y"]
        await asyncio.sleep(LOOKS_SECONDS)
        assert sum(gate.waiting for gate in gates) == most
        for gate in gates:
            gate.release()
        await until(lambda: all(len(origin.requests_for("/feed")) == 2 for origin in origins))


async def test_no_poll_begins_while_readers_walks_wait(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R7: polls give way while walks that readers wait for queue up, and go on afterwards."""
    origin.publish("/feed", atom(an_item("a", 1)))
    async with polling(tmp_path) as proxy:
        await proxy.whole(origin.url("/feed"))
        origin.forget_requests()
        with monkeypatch.context() as crowded:
            crowded.setattr(Running, "waiting", 1)
            proxy.clock.advance(STALE_SECONDS)
            await asyncio.sleep(LOOKS_SECONDS)
            assert origin.requests == []
        await polled(proxy, origin)


async def test_a_poll_that_waits_for_its_walk_keeps_no_reader_out(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk that no reader waits for counts for nothing where readers are refused (503)."""
    set_constant(monkeypatch, "MAX_WAITING_WALKS", 1)
    url, walks = origin.url("/feed"), WalkTurns(in_all=1, per_site=1)
    async with Origin("127.0.0.2") as other, polling(tmp_path, walks=walks) as proxy:
        publish_chain(origin, archives=1)
        await proxy.whole(url)
        origin.forget_requests()
        publish_chain(origin, archives=2)
        publish_chain(other, archives=1)
        with other.held("/archive/1") as gate:
            assert (await proxy.begun(other.url("/feed"))).state == "loading"
            await gate.reached()
            proxy.clock.advance(STALE_SECONDS)
            await until(lambda: len(origin.requests_for("/feed")) == 1)
            await asyncio.sleep(LOOKS_SECONDS)
            assert "/archive/2" not in origin.counts()
            other.publish("/third", atom(an_item("z", 1)))
            assert (await proxy.get(other.url("/third"))).status == 200
        await polled(proxy, origin, "/archive/2")


async def test_a_feed_that_is_being_refreshed_is_left_alone(tmp_path: Path, origin: Origin) -> None:
    """R7: a feed that a reader has just made the proxy fetch is not polled beside that."""
    origin.publish("/feed", atom(an_item("a", 1)))
    url = origin.url("/feed")
    async with polling(tmp_path, poll_seconds=2000) as proxy:
        await proxy.whole(url)
        origin.forget_requests()
        with origin.held("/feed") as gate, capture_logs() as lines:
            proxy.clock.advance(STALE_SECONDS)
            await proxy.get(url, wait="0.1")
            proxy.clock.advance(2 * STALE_SECONDS)
            await asyncio.sleep(LOOKS_SECONDS)
            assert gate.waiting == 1
            gate.release()
            await proxy.settled()
        assert len(origin.requests) == 1
    assert "feed.polled" not in [line["event"] for line in lines]


async def test_a_publisher_that_asks_to_be_left_alone_is(tmp_path: Path, origin: Origin) -> None:
    """RFC 9110, 10.2.3: not even another feed of that host is polled, nor does it count as failed."""
    urls = [origin.url("/a"), origin.url("/b")]
    async with polling(tmp_path, poll_seconds=60) as proxy:
        for path in ("/a", "/b"):
            origin.publish(path, atom(an_item("x", 1), feed_id=f"urn:{path}"))
            await proxy.whole(origin.url(path))
        origin.fault("/a", Status(429, headers=(("Retry-After", "1"),)), times=1)
        origin.forget_requests()
        with origin.held("/a") as gate:
            proxy.clock.advance(STALE_SECONDS)
            await gate.reached()
            gate.release()
        await until(lambda: len(origin.requests) == 3)
        await proxy.settled()
        refused, *later = origin.requests
        assert refused.path == "/a"
        assert sorted(request.path for request in later) == ["/a", "/b"]
        assert all(request.at >= refused.at + 0.95 for request in later)
        assert [(await proxy.status(url))["stale"] for url in urls] == [False, False]


async def test_a_feed_that_fails_keeps_its_backoff(tmp_path: Path, origin: Origin) -> None:
    """R14: a minute that doubles, whatever the interval."""
    origin.publish("/feed", atom(an_item("a", 1)))
    async with polling(tmp_path) as proxy:
        await proxy.whole(origin.url("/feed"))
        origin.fault("/feed", Status(500))
        origin.forget_requests()
        proxy.clock.advance(STALE_SECONDS)
        for times, rest_seconds in ((1, 60), (2, 120), (3, 240)):
            await polled(proxy, origin, times=times)
            proxy.clock.advance(rest_seconds - 10)
            await asyncio.sleep(LOOKS_SECONDS)
            assert len(origin.requests) == times
            proxy.clock.advance(20)


@pytest.mark.parametrize(("cache_control", "seconds"), [("max-age=1", 300), ("max-age=2000", 2000)])
async def test_a_poll_never_comes_before_freshness_has_run_out(
    tmp_path: Path, origin: Origin, cache_control: str, seconds: int
) -> None:
    """RFC 9111, 4.2; freshness.minimum_seconds counts above history.poll_seconds."""
    origin.publish("/feed", atom(an_item("a", 1)), headers=[("Cache-Control", cache_control)])
    async with polling(tmp_path, poll_seconds=60) as proxy:
        await proxy.whole(origin.url("/feed"))
        origin.forget_requests()
        proxy.clock.advance(seconds - 20)
        await asyncio.sleep(LOOKS_SECONDS)
        assert origin.requests == []
        proxy.clock.advance(40)
        await polled(proxy, origin)


async def test_the_interval_counts_where_the_publisher_would_allow_more(
    tmp_path: Path, origin: Origin
) -> None:
    """R7: a feed is polled after history.poll_seconds and no sooner, though it was stale before."""
    origin.publish("/feed", atom(an_item("a", 1)))
    async with polling(tmp_path, poll_seconds=5000) as proxy:
        await proxy.whole(origin.url("/feed"))
        origin.forget_requests()
        proxy.clock.advance(4900)
        await asyncio.sleep(LOOKS_SECONDS)
        assert origin.requests == []
        proxy.clock.advance(200)
        await polled(proxy, origin)


async def test_a_restart_polls_only_what_is_due(tmp_path: Path, origin: Origin) -> None:
    """R7: after a restart a feed that was polled shortly before is not asked again until it is due."""
    origin.publish("/feed", atom(an_item("a", 1)))
    clock = Clock()
    async with polling(tmp_path, clock) as proxy:
        await proxy.whole(origin.url("/feed"))
        clock.advance(STALE_SECONDS)
        await polled(proxy, origin, times=2)
    origin.forget_requests()
    async with polling(tmp_path, clock) as proxy:
        await asyncio.sleep(LOOKS_SECONDS)
        assert origin.requests == []
        clock.advance(STALE_SECONDS)
        await polled(proxy, origin)


async def test_the_end_of_the_program_does_not_wait_for_a_poll(tmp_path: Path, origin: Origin) -> None:
    """docs/faults.md row 67: what was not polled to its end is polled after the next start."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    clock = Clock()
    async with polling(tmp_path, clock) as proxy:
        await proxy.whole(url)
    origin.publish("/feed", atom(an_item("b", 2)))
    with capture_logs() as lines, origin.held("/feed") as gate:
        async with polling(tmp_path, clock):
            clock.advance(STALE_SECONDS)
            await gate.reached()
            started = time.monotonic()
        assert time.monotonic() - started < 5
    assert not {line["event"] for line in lines} & {"refresh.failed", "polling.paused", "library.logged"}

    origin.forget_requests()
    async with polling(tmp_path, clock) as proxy:
        await polled(proxy, origin)
        assert ids((await proxy.get(url)).body) == ["b", "a"]


async def test_polling_goes_on_when_the_store_could_not_be_read(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that fails once pauses polling with a log line; it does not end it."""
    origin.publish("/feed", atom(an_item("a", 1)))
    async with polling(tmp_path) as proxy:
        await proxy.whole(origin.url("/feed"))
        origin.forget_requests()

        def fails(*_: object) -> None:
            raise StoreError("disk I/O error")

        with capture_logs() as lines, monkeypatch.context() as broken:
            broken.setattr(module, "outlook", fails)
            proxy.clock.advance(STALE_SECONDS)
            await until(lambda: any(line["event"] == "polling.paused" for line in lines))
            assert origin.requests == []
        await polled(proxy, origin)


async def test_a_store_that_keeps_nothing_is_tried_again_after_a_rest(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/faults.md row 68: publishers are not asked for what cannot be kept."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    async with polling(tmp_path) as proxy:
        await proxy.whole(url)
        origin.publish("/feed", atom(an_item("b", 2)))
        origin.forget_requests()

        def full(*_: object, **__: object) -> None:
            raise StorageFullError("the volume is full")

        set_constant(monkeypatch, "REST_SECONDS", 1.0)
        with capture_logs() as lines, monkeypatch.context() as broken:
            broken.setattr(documents, "put_arranged", full)
            proxy.clock.advance(STALE_SECONDS)
            await until(lambda: any(line["event"] == "feed.polled" for line in lines))
        assert [line["slug"] for line in lines if line["event"] == "feed.polled"] == ["storage-full"]
        await polled(proxy, origin, times=2)
        first, second = origin.requests
        assert second.at - first.at > 0.9
        assert ids((await proxy.get(url)).body) == ["b", "a"]


async def test_an_error_of_the_proxys_own_does_not_hammer_the_publisher(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 82: a defect in a poll is logged as `internal` and not repeated at once; other feeds are polled."""
    for path in ("/a", "/b"):
        origin.publish(path, atom(an_item("x", 1), feed_id=f"urn:{path}"))
    async with polling(tmp_path) as proxy:
        await proxy.whole(origin.url("/a"))
        origin.forget_requests()

        def fails(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        with capture_logs() as lines:
            with monkeypatch.context() as broken:
                broken.setattr(failures, "note_refetch", fails)
                proxy.clock.advance(STALE_SECONDS)
                await until(lambda: any(line["event"] == "refresh.failed" for line in lines))
            await asyncio.sleep(LOOKS_SECONDS)
        assert origin.counts() == {"/a": 1}
        assert [line["slug"] for line in lines if line["event"] == "feed.polled"] == ["internal"]
        await proxy.whole(origin.url("/b"))
        proxy.clock.advance(STALE_SECONDS)
        await polled(proxy, origin, "/b", times=2)  # the others are polled all the same


async def test_a_feed_that_is_forgotten_during_its_poll_is_gone(tmp_path: Path, origin: Origin) -> None:
    """R7, R25: DELETE during a poll ends it; the feed does not come back until it is asked for."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    async with polling(tmp_path) as proxy:
        await proxy.whole(url)
        with origin.held("/feed") as gate:
            proxy.clock.advance(STALE_SECONDS)
            await gate.reached()
            assert (await proxy.ask("DELETE", "/feed", params={"url": url})).status == 204
        origin.forget_requests()
        await asyncio.sleep(LOOKS_SECONDS)
        assert origin.requests == []
        await proxy.whole(url)
        proxy.clock.advance(STALE_SECONDS)
        await polled(proxy, origin, times=2)
