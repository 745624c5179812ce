"""Two replicas in one process, on one PostgreSQL: the work of each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests import postgres
from tests.answers import Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.origin import Origin
from tests.patching import set_constant
from tests.replicas import replicas
from tests.running import Clock


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(300):
        while not await is_so():
            await asyncio.sleep(0.02)


@pytest.mark.fault("101")
async def test_a_feed_that_two_replicas_are_asked_for_at_once_is_fetched_once(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """docs/faults.md row 64, over replicas: both answer with the whole feed."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        first, second = await asyncio.gather(one.whole(url), other.whole(url))
        assert ids(first.body) == ids(second.body) != []
    assert set(origin.counts().values()) == {1}


async def test_who_asks_another_replica_during_a_walk_gets_what_is_there_and_sees_the_progress(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """The answer says `loading` in time, and /status tells the other one's progress."""
    publish_chain(origin, archives=4)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        with origin.held("/archive/2") as gate:
            assert (await one.begun(url)).state == "loading"
            await gate.reached()

            async def is_told() -> bool:
                status = await other.status(url)
                return bool(status["refreshing"] and status["progress"]["fetched"] >= 2)

            await until(is_told)
            assert (await other.get(url, wait="0.2")).state == "loading"
            gate.release()
        assert (await other.whole(url)).state == "complete"
    assert set(origin.counts().values()) == {1}


@pytest.mark.fault("101")
async def test_a_feed_that_one_replica_could_not_open_fails_in_the_same_way_at_the_other(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """docs/faults.md row 21, over replicas: its publisher is not asked again for a while."""
    origin.answer("/gone", Status(410))
    url = origin.url("/gone")
    async with replicas(postgres_url, tmp_path) as (one, other):
        replies = await asyncio.gather(one.get(url), other.get(url))
        assert [reply.status for reply in replies] == [410, 410]
        later = await other.get(url)
        assert later.status == 410
        assert 0 < int(later.headers["Retry-After"]) <= 60
        assert (await one.get(url)).status == 410
    assert origin.counts() == {"/gone": 1}


async def test_a_feed_that_is_fresh_is_not_refreshed_by_a_replica_that_does_not_know_it_yet(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """A feed fetched by one replica is fresh for all."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    clock = Clock()
    async with replicas(postgres_url, tmp_path, clock=clock) as (one, other):
        await one.whole(origin.url("/feed"))
        await other.whole(origin.url("/feed"))
        assert origin.counts() == {"/feed": 1}
        clock.advance(3000)
        await asyncio.gather(*(each.whole(origin.url("/feed")) for each in (one, other, one, other)))
    assert origin.counts() == {"/feed": 2}


async def test_a_full_refresh_is_done_after_the_one_that_another_replica_is_at(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """R14: no two refreshes of a feed run at once."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        await one.whole(url)
        origin.forget_requests()
        with origin.held("/feed") as gate:
            await one.ask("POST", "/refresh", params={"url": url})
            await gate.reached()
            await other.ask("POST", "/refresh", params={"url": url, "full": "1"})
            await asyncio.sleep(0.3)
            assert gate.waiting == 1
            gate.release()
        await other.settled()
    assert origin.counts() == {"/feed": 2, "/archive/1": 1, "/archive/2": 1, "/archive/3": 1}


@pytest.mark.fault("105")
async def test_the_refresh_of_a_feed_that_is_forgotten_at_another_replica_ends(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """The next write ends it; nothing of the feed is stored, and nothing failed."""
    publish_chain(origin, archives=4)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        with capture_logs() as lines, origin.held("/archive/2") as gate:
            await one.begun(url)
            await gate.reached()
            assert (await other.ask("DELETE", "/feed", params={"url": url})).status == 204
            gate.release()
            await one.settled()
        assert await other.store.feeds() == []
        assert not {"refresh.failed", "feed.unkept"} & {line["event"] for line in lines}
        assert (await other.whole(url)).state == "complete"


async def test_the_end_of_a_refresh_is_known_at_once_to_who_waits_at_another_replica(
    postgres_url: str, tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notice tells it, ahead of the periodic look."""
    set_constant(monkeypatch, "LOOK_SECONDS", 60.0)
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        with origin.held("/archive/1") as gate:
            await one.begun(url)
            await gate.reached()
            reader = asyncio.create_task(other.get(url))
            await asyncio.sleep(0.3)
            gate.release()
        async with asyncio.timeout(300):
            assert (await reader).state == "complete"


async def test_a_feed_that_is_due_is_polled_by_one_replica(
    postgres_url: str, tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R7, over replicas: each feed once, and each replica does some of the work."""
    set_constant(monkeypatch, "LONGEST_PAUSE_SECONDS", 0.01)
    clock, paths = Clock(), [f"/feed/{number}" for number in range(12)]
    async with AsyncExitStack() as stack:
        origins = [await stack.enter_async_context(Origin(f"127.0.0.{last}")) for last in (2, 3, 4, 5)]
        polling = replicas(postgres_url, tmp_path, clock=clock, history={"poll_seconds": 600})
        proxies = await stack.enter_async_context(polling)
        lines = stack.enter_context(capture_logs())
        for origin_ in origins:
            for path in paths:
                origin_.publish(path, atom(an_item("a"), feed_id=f"urn:{path}", complete=True))
                await proxies[0].whole(origin_.url(path))
            origin_.forget_requests()
        clock.advance(1000)

        async def are_all_polled() -> bool:
            polls = [line for line in lines if line["event"] == "feed.polled"]
            return len(polls) >= len(origins) * len(paths)

        await until(are_all_polled)
        await asyncio.sleep(0.2)
        assert [origin_.counts() for origin_ in origins] == [dict.fromkeys(paths, 1)] * len(origins)


async def test_events_tell_how_far_another_replica_is_and_how_it_ends(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """Followers at a replica without any part in the feed see them, too."""
    publish_chain(origin, archives=4)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        with origin.held("/archive/2") as gate:
            await one.begun(url)
            await gate.reached()
            following = asyncio.create_task(other.ask("GET", "/events", params={"url": url}))
            await asyncio.sleep(3)
            gate.release()
        async with asyncio.timeout(300):
            events = (await following).body.decode().split("\n\n")
    told = [json.loads(each.split("data: ")[1]) for each in events if "data: " in each]
    assert [each["refreshing"] for each in told] == [True] * (len(told) - 1) + [False]
    assert told[-2]["progress"]["documents"] >= 3
    assert told[-1]["state"] == "complete"
    assert set(origin.counts().values()) == {1}


async def test_after_the_database_was_restarted_replicas_go_on_by_themselves(
    tmp_path: Path, origin: Origin
) -> None:
    """A crash loses the leases."""
    if lack := postgres.what_lacks():
        pytest.skip(lack)
    publish_chain(origin, archives=4)
    url = origin.url("/feed")
    with postgres.a_cluster() as cluster, cluster.database() as store_url:
        async with replicas(store_url, tmp_path, history={"look_ahead": False}) as (one, other):
            with origin.held("/archive/2") as gate:
                await one.begun(url)
                await gate.reached()

                async def are_stored() -> bool:
                    return bool((await one.status(url))["progress"]["documents"] >= 3)

                await until(are_stored)
                await asyncio.to_thread(cluster.restart, "immediate")
                await asyncio.sleep(1)
                gate.release()
                async with asyncio.timeout(300):
                    while (await other.get(url, wait="0.5")).state != "complete":
                        await asyncio.sleep(0.1)
            assert ids((await one.whole(url)).body) == ids((await other.whole(url)).body)
    counts = origin.counts()
    assert [counts["/archive/4"], counts["/archive/3"]] == [1, 1]  # they were stored
    assert max(counts.values()) <= 3, counts
