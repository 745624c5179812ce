"""Two replicas in one process, on one PostgreSQL: what each does, and what it leaves to the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.answers import Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.origin import Origin
from tests.running import Clock, Proxy, a_config, running


@asynccontextmanager
async def replicas(
    url: str, folder: Path, *, number: int = 2, clock: Clock | None = None, **sections: Any
) -> AsyncIterator[list[Proxy]]:
    config = a_config(folder, **sections)
    config = replace(config, store=replace(config.store, url=url, connections=4))
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running(config, clock)) for _ in range(number)]


async def until(is_so: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(20):
        while not await is_so():
            await asyncio.sleep(0.02)


async def test_a_feed_that_two_replicas_are_asked_for_at_once_is_fetched_once(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """docs/faults.md row 64, over replicas: one opening and one walk, and both answer with the whole feed."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        first, second = await asyncio.gather(one.whole(url), other.whole(url))
        assert ids(first.body) == ids(second.body) != []
    assert set(origin.counts().values()) == {1}


async def test_who_asks_another_replica_during_a_walk_gets_what_is_there_and_sees_the_progress(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """The answer says `loading` in time, and /status tells how far the other one is."""
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
    """What one replica has fetched is fresh for all."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    clock = Clock()
    async with replicas(postgres_url, tmp_path, clock=clock) as (one, other):
        await one.whole(origin.url("/feed"))
        await other.whole(origin.url("/feed"))
        assert origin.counts() == {"/feed": 1}
        clock.advance(3000)
        await asyncio.gather(*(each.whole(origin.url("/feed")) for each in (one, other, one, other)))
    assert origin.counts() == {"/feed": 2}
