"""wholefeed.service.background: polls (R7), times of requests, and eviction (`store.max_bytes`)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.answers import Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Clock, Proxy, a_config, running
from wholefeed.core.compose.views import Warned
from wholefeed.errors import StorageFullError, StoreError
from wholefeed.service import background as module
from wholefeed.service.background import MAX_POLLS, AskedTimes
from wholefeed.service.context import WalkTurns
from wholefeed.service.running import Running
from wholefeed.store.engine_choice import open_file
from wholefeed.store.rows import FeedRow
from wholefeed.store.sqlite_file import migrate_file
from wholefeed.store.store import Upkeep
from wholefeed.store.tables import document_table, failures

# Polls: missed entries, politeness, faults, the end of the program


STALE_SECONDS = 1000.0
"""More than the default freshness, and than the interval of these tests."""

LOOKS_SECONDS = 0.2
"""Time for many turns in which nothing happens."""


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


@asynccontextmanager
async def a_polled_feed(
    path: Path, origin: Origin, clock: Clock | None = None, **options: Any
) -> AsyncIterator[Proxy]:
    """A proxy that polls `/feed`, of one entry; its first request is forgotten."""
    origin.publish("/feed", atom(an_item("a", 1)), etag='"1"')
    async with polling(path, clock, **options) as proxy:
        await proxy.whole(origin.url("/feed"))
        origin.forget_requests()
        yield proxy


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(300):
        while not is_so():
            await asyncio.sleep(0.005)


def events(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    return [line["event"] for line in lines]


def slugs(lines: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return the results of the polls."""
    return [line["slug"] for line in lines if line["event"] == "feed.polled"]


async def polled(proxy: Proxy, origin: Origin, path: str = "/feed", *, times: int = 1) -> None:
    """Wait until this many requests for a path, since `forget_requests`, are published."""
    await until(lambda: len(origin.requests_for(path)) >= times)
    await proxy.settled()


@pytest.mark.parametrize(("poll_seconds", "expected"), [(600, ["c", "b", "a"]), (0, ["c", "a"])])
async def test_what_came_and_went_between_two_visits_is_there_when_polling_is_on(
    tmp_path: Path, origin: Origin, poll_seconds: float, expected: list[str]
) -> None:
    """R7; and asked_at stays that of the reader."""
    url = origin.url("/feed")
    async with a_polled_feed(tmp_path, origin, poll_seconds=poll_seconds) as proxy:
        before = await proxy.store.feed_by_url(url)
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


@pytest.mark.parametrize("poll_seconds", [3600, 0])
async def test_only_who_is_polled_is_told_to_be_asked_next(
    tmp_path: Path, origin: Origin, poll_seconds: float
) -> None:
    """R7: `/status` and `/feeds` name the next poll, or the next possible fetch."""
    async with a_polled_feed(tmp_path, origin, poll_seconds=poll_seconds) as proxy:
        status = await proxy.status(origin.url("/feed"))
        (listed,) = json.loads((await proxy.ask("GET", "/feeds")).body)
    for told in (status, listed):
        asked, fresh, polled = (told[name] for name in ("last_refresh", "fresh_until", "next_refresh"))
        assert seconds_between(asked, fresh) == 900
        assert (polled and seconds_between(asked, polled)) == (3600 if poll_seconds else None)


def seconds_between(one: str, other: str) -> float:
    return (datetime.fromisoformat(other) - datetime.fromisoformat(one)).total_seconds()


async def test_a_poll_asks_conditionally_and_is_told_in_the_log(tmp_path: Path, origin: Origin) -> None:
    """R7: an unchanged feed is polled once in its time of freshness."""
    async with a_polled_feed(tmp_path, origin, poll_seconds=60) as proxy:
        with capture_logs() as lines:
            proxy.clock.advance(STALE_SECONDS)
            await until(lambda: slugs(lines))
            await asyncio.sleep(LOOKS_SECONDS)
    assert [request.headers.get("if-none-match") for request in origin.requests] == ['"1"']
    assert slugs(lines) == [None]


async def test_two_feeds_of_one_host_are_never_polled_at_once_and_others_pass(
    tmp_path: Path, origin: Origin
) -> None:
    """R7: one poll of a host hangs."""
    async with Origin("127.0.0.2") as other, polling(tmp_path) as proxy:
        for publisher, path in ((origin, "/a"), (origin, "/b"), (other, "/c")):
            publisher.publish(path, atom(an_item("x", 1), feed_id=f"urn:{path}"))
            await proxy.whole(publisher.url(path))
            publisher.forget_requests()
        with origin.held("/a") as gate:
            proxy.clock.advance(STALE_SECONDS)
            await gate.reached()
            await until(lambda: len(other.requests_for("/c")) == 1)
            await asyncio.sleep(LOOKS_SECONDS)
            assert origin.counts() == {"/a": 1}
        await polled(proxy, origin, "/b")
        assert origin.counts() == {"/a": 1, "/b": 1}
        assert origin.peak_requests == 1


@pytest.mark.parametrize(("concurrency", "most"), [(32, MAX_POLLS), (8, 2)])
async def test_few_polls_run_at_once_and_readers_are_answered_meanwhile(
    tmp_path: Path, concurrency: int, most: int
) -> None:
    """R7: hanging polls take a quarter of fetch.concurrency at most."""
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
    """R7: polls go on after the walks."""
    async with a_polled_feed(tmp_path, origin) as proxy:
        with monkeypatch.context() as crowded:
            crowded.setattr(Running, "waiting", 1)
            proxy.clock.advance(STALE_SECONDS)
            await asyncio.sleep(LOOKS_SECONDS)
            assert origin.requests == []
        await polled(proxy, origin)


async def test_a_poll_that_waits_for_its_walk_keeps_no_reader_out(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk without a waiting reader counts for nothing where readers are refused (503)."""
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
    """R7: no poll runs beside a reader's fetch."""
    async with a_polled_feed(tmp_path, origin, poll_seconds=2500) as proxy:
        with origin.held("/feed") as gate, capture_logs() as lines:
            proxy.clock.advance(STALE_SECONDS)
            await proxy.get(origin.url("/feed"), wait="0.1")
            proxy.clock.advance(2 * STALE_SECONDS)
            await asyncio.sleep(LOOKS_SECONDS)
            assert gate.waiting == 1
            gate.release()
            await proxy.settled()
        assert len(origin.requests) == 1
    assert slugs(lines) == []


@pytest.mark.fault("157")
async def test_a_feed_that_is_frozen_thaws_though_nobody_reads_it(tmp_path: Path, origin: Origin) -> None:
    """R14; docs/faults.md row 157: after a week of 304, a poll has no condition."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)), etag='"same"')
    async with polling(tmp_path, poll_seconds=60) as proxy:
        await proxy.whole(url)
        origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)), etag='"same"')
        proxy.clock.advance(7 * 86_400 + 1)
        await until(lambda: len(origin.requests) == 3)
        await proxy.settled()
        asked = [request.headers.get("if-none-match") for request in origin.requests]
        assert asked == [None, '"same"', None]
        assert [note["code"] for note in (await proxy.status(url))["notes"]] == ["ValidatorsDoubted"]


async def test_a_publisher_that_asks_to_be_left_alone_is(tmp_path: Path, origin: Origin) -> None:
    """RFC 9110, 10.2.3: no other feed of that host is polled, and none failed."""
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


async def test_a_restart_polls_only_what_is_due(tmp_path: Path, origin: Origin) -> None:
    """R7: after a restart a feed polled shortly before waits until due."""
    clock = Clock()
    async with a_polled_feed(tmp_path, origin, clock) as proxy:
        clock.advance(STALE_SECONDS)
        await polled(proxy, origin)
    origin.forget_requests()
    async with polling(tmp_path, clock) as proxy:
        await asyncio.sleep(LOOKS_SECONDS)
        assert origin.requests == []
        clock.advance(STALE_SECONDS)
        await polled(proxy, origin)


async def test_the_end_of_the_program_does_not_wait_for_a_poll(tmp_path: Path, origin: Origin) -> None:
    """docs/faults.md row 67: an unfinished poll runs after the next start."""
    clock = Clock()
    async with a_polled_feed(tmp_path, origin, clock):
        pass
    origin.publish("/feed", atom(an_item("b", 2)))
    with capture_logs() as lines, origin.held("/feed") as gate:
        async with polling(tmp_path, clock):
            clock.advance(STALE_SECONDS)
            await gate.reached()
            started = time.monotonic()
        assert time.monotonic() - started < 5
    assert not {*events(lines)} & {"refresh.failed", "polling.paused", "library.logged"}

    origin.forget_requests()
    async with polling(tmp_path, clock) as proxy:
        await polled(proxy, origin)
        assert ids((await proxy.get(origin.url("/feed"))).body) == ["b", "a"]


def failing(error: Exception) -> Callable[..., None]:
    """Return a replacement that fails."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


async def test_polling_goes_on_when_the_store_could_not_be_read(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polling pauses with a log line."""
    async with a_polled_feed(tmp_path, origin) as proxy:
        with capture_logs() as lines, monkeypatch.context() as broken:
            broken.setattr(module, "outlook", failing(StoreError("disk I/O error")))
            proxy.clock.advance(STALE_SECONDS)
            await until(lambda: "polling.paused" in events(lines))
            assert origin.requests == []
        await polled(proxy, origin)


async def test_a_store_that_keeps_nothing_is_tried_again_after_a_rest(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/faults.md row 68: publishers are not asked for documents that cannot be stored."""
    async with a_polled_feed(tmp_path, origin) as proxy:
        origin.publish("/feed", atom(an_item("b", 2)))
        set_constant(monkeypatch, "REST_SECONDS", 1.0)
        with capture_logs() as lines, monkeypatch.context() as broken:
            broken.setattr(document_table, "put_arranged", failing(StorageFullError("the volume is full")))
            proxy.clock.advance(STALE_SECONDS)
            await until(lambda: slugs(lines))
        assert slugs(lines) == ["storage-full"]
        await polled(proxy, origin, times=2)
        first, second = origin.requests
        assert second.at - first.at > 0.9
        assert ids((await proxy.get(origin.url("/feed"))).body) == ["b", "a"]


async def test_an_error_of_the_proxys_own_does_not_hammer_the_publisher(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 82: a defect is logged as `internal` and not repeated at once."""
    origin.publish("/other", atom(an_item("x", 1)))
    async with a_polled_feed(tmp_path, origin) as proxy:
        origin.publish("/feed", atom(an_item("a", 1)))  # as before, and sent whole
        with capture_logs() as lines:
            with monkeypatch.context() as broken:
                broken.setattr(failures, "note_refetch", failing(ZeroDivisionError()))
                proxy.clock.advance(STALE_SECONDS)
                await until(lambda: "refresh.failed" in events(lines))
            await asyncio.sleep(LOOKS_SECONDS)
        assert origin.counts() == {"/feed": 1}
        assert slugs(lines) == ["internal"]
        await proxy.whole(origin.url("/other"))
        proxy.clock.advance(STALE_SECONDS)
        await polled(proxy, origin, "/other", times=2)


# When feeds were asked for


async def test_a_store_that_is_slow_does_not_keep_an_answer_waiting(tmp_path: Path) -> None:
    """The reader's warning is noted later; the answer leaves all the same."""
    path = tmp_path / "store.db"
    await migrate_file(path)
    values: dict[str, Any] = {each.name: 0 for each in fields(FeedRow)}
    feed = FeedRow(**{**values, "id": 1, "warning": Warned.UNSENT, "warned_at": 7.0})
    async with open_file(path) as store:
        busy = asyncio.create_task(store.write(lambda _: time.sleep(2)))
        await asyncio.sleep(0)
        began = time.monotonic()
        await AskedTimes(store, time.time).note_warned(feed)
        assert time.monotonic() - began < 1.5
        await busy


# Eviction: those not asked for longest go; nothing that is in use does


MAX_BYTES = 35 << 15
HOUR = 3600.0


def publish(origin: Origin, *names: str) -> list[str]:
    """Publish feeds of some 300 KB in the store each; return their URLs."""
    for name in names:
        items = [an_item(f"{name}{n}", n, _noise(f"{name}{n}")) for n in range(20)]
        origin.publish(f"/{name}", atom(*items, feed_id=f"urn:{name}", complete=True))
    return [origin.url(f"/{name}") for name in names]


def _noise(seed: str) -> str:
    """Return incompressible text, so that a feed occupies its length."""
    return "".join(hashlib.sha256(f"{seed}.{n}".encode()).hexdigest() for n in range(196))


async def known(proxy: Proxy) -> set[str]:
    return {feed.url.rpartition("/")[2] for feed in await proxy.service.feeds()}


async def asked_in_turn(proxy: Proxy, urls: list[str]) -> None:
    """Ask for each feed, an hour apart."""
    for url in urls:
        proxy.clock.advance(HOUR)
        assert (await proxy.whole(url)).status == 200
    await proxy.settled()


async def evicted(proxy: Proxy, names: set[str]) -> None:
    """Wait until exactly these feeds have gone."""
    before = await known(proxy)
    async with asyncio.timeout(300):
        while await known(proxy) & names:
            await asyncio.sleep(0.01)
    assert await known(proxy) == before - names


async def test_the_feeds_not_asked_for_longest_are_evicted(tmp_path: Path, origin: Origin) -> None:
    """store.max_bytes: such a feed can be fetched again."""
    urls = publish(origin, "a", "b", "c", "d")
    async with running(a_config(tmp_path, store={"max_bytes": MAX_BYTES})) as proxy:
        with capture_logs() as lines:
            await asked_in_turn(proxy, urls[:3])
            await asked_in_turn(proxy, urls[:1])
            assert await known(proxy) == {"a", "b", "c"}
            await asked_in_turn(proxy, urls[3:])
            await evicted(proxy, {"b"})
            await until(lambda: "feed.evicted" in events(lines))
        told = [line for line in lines if line["event"] == "feed.evicted"]
        assert len(told) == 1
        assert told[0]["used_bytes"] > MAX_BYTES
        assert await proxy.store.upkeep.used_bytes() <= MAX_BYTES
        assert len(ids((await proxy.whole(urls[1])).body)) == 20  # fetched again: it is not known any more


async def test_feeds_that_could_not_be_evicted_are_looked_at_again(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All were asked for just now; nothing grows afterwards."""
    set_constant(monkeypatch, "_AGAIN_SECONDS", 0.05)
    urls = publish(origin, "a", "b", "c", "d")
    async with running(a_config(tmp_path, store={"max_bytes": MAX_BYTES})) as proxy:
        for url in urls:
            assert (await proxy.whole(url)).status == 200
        await proxy.settled()
        await asyncio.sleep(0.2)
        assert await known(proxy) == {"a", "b", "c", "d"}
        proxy.clock.advance(HOUR)
        await evicted(proxy, {"a"})


async def test_pages_of_evicted_feeds_are_used_again(tmp_path: Path, origin: Origin) -> None:
    """store.max_bytes: the database file stays under twice this size."""
    names = [f"f{n}" for n in range(12)]
    urls = publish(origin, *names)
    async with running(a_config(tmp_path, store={"max_bytes": MAX_BYTES})) as proxy:
        for url in urls:
            await asked_in_turn(proxy, [url])
            await proxy.service.house.make_room()
        assert names[-1] in await known(proxy)
        assert len(await known(proxy)) < 6
    assert (tmp_path / "wholefeed.db").stat().st_size < 2 * MAX_BYTES


@pytest.mark.parametrize(("max_bytes", "names"), [(1 << 18, "a"), (0, "abcd")], ids=["last", "no limit"])
async def test_the_feed_asked_for_last_stays_and_all_where_no_size_is_set(
    tmp_path: Path, origin: Origin, max_bytes: int, names: str
) -> None:
    """With store.max_bytes 0 none ever leaves on its own (R25)."""
    urls = publish(origin, *names)
    async with running(a_config(tmp_path, store={"max_bytes": max_bytes})) as proxy:
        await asked_in_turn(proxy, urls)
        proxy.clock.advance(24 * HOUR)
        await proxy.service.house.make_room()
        assert await proxy.store.upkeep.used_bytes() > max_bytes
        assert await known(proxy) == {*names}


async def test_a_feed_that_is_being_refreshed_or_sent_stays(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eviction would cut the answer or the fetch."""
    urls = publish(origin, "a", "b", "c", "d")
    config = a_config(tmp_path)
    async with running(config) as proxy:
        for url in urls:
            assert (await proxy.whole(url)).status == 200
    looks = 0
    real = Upkeep.used_bytes

    async def used_bytes(upkeep: Upkeep) -> int:
        nonlocal looks
        found = await real(upkeep)
        looks += 1
        return found

    monkeypatch.setattr(Upkeep, "used_bytes", used_bytes)
    async with running(a_config(tmp_path, store={"max_bytes": 1 << 18}), proxy.clock) as proxy:
        while looks < 2:  # the round at the start, which evicts nothing that was asked for just now
            await asyncio.sleep(0.005)
        proxy.clock.advance(48 * HOUR)
        feeds = {feed.url: feed.id for feed in await proxy.service.feeds()}
        with origin.held("/a") as gate:
            refreshing = asyncio.create_task(proxy.get(urls[0]))
            await gate.reached()
            async with proxy.store.snapshot(feeds[urls[1]]) as snapshot:
                proxy.clock.advance(HOUR)
                await proxy.service.house.make_room()
                assert await known(proxy) == {"a", "b", "d"}
                assert [await proxy.store.block(segment.id) for segment in snapshot.segments]
            gate.release()
            assert (await refreshing).status == 200


async def test_a_feed_evicted_while_it_is_asked_for_is_fetched_again(tmp_path: Path, origin: Origin) -> None:
    """A reader gets the feed, despite repeated evictions."""
    urls = publish(origin, "a", "b", "c")
    async with running(a_config(tmp_path, store={"max_bytes": 1 << 18})) as proxy:

        async def read(url: str) -> int:
            try:
                reply = await proxy.get(url)
            except aiohttp.ClientError:
                return 0
            return len(ids(reply.body)) if reply.status == 200 else 0

        for _ in range(5):
            readers = [asyncio.create_task(read(url)) for url in urls]
            for _ in range(5):
                proxy.clock.advance(HOUR)
                await proxy.service.house.make_room()
                await asyncio.sleep(0.005)
            assert await asyncio.gather(*readers) == [20] * 3
