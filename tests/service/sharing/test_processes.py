"""Replicas in processes of their own on one PostgreSQL: killed, stopped, ended."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.answers import Gate
from tests.feeds import ids, publish_chain
from tests.origin import Origin
from tests.processes import Served, serving

ARCHIVES = 12
HELD = 6
PATH = f"/archive/{HELD}"
TAKEN_OVER_SECONDS = 10.0
"""Longest pause of a walk after the death of its replica."""
BESIDE_SECONDS = 3.0
"""Allowance for a busy machine."""


@asynccontextmanager
async def replicas(url: str, folder: Path, number: int = 2) -> AsyncIterator[list[Served]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                serving(folder, store_url=url, store_connections=4, history_look_ahead=False)
            )
            for _ in range(number)
        ]


async def walking(replica: Served, gate: Gate, url: str, *, seen_by: Served) -> None:
    """Let a replica walk to the delayed document; all before it is stored then."""
    async with asyncio.timeout(300):
        while (await replica.ask("/feed", url=url, wait="0.1")).status == 504:
            pass
        await gate.reached()
        progress = {"documents": 0}
        while progress["documents"] < 1 + ARCHIVES - HELD:
            await asyncio.sleep(0.1)
            progress = json.loads((await seen_by.ask("/status", url=url)).body)["progress"]


async def until(is_so: Callable[[], bool], seconds: float = 20.0) -> float:
    """Wait; return the seconds it took."""
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while not is_so():
            await asyncio.sleep(0.02)
    return time.monotonic() - began


@pytest.mark.fault("102")
async def test_a_walk_whose_replica_is_killed_is_gone_on_with_by_another(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """Within 10 s; only unstored documents are asked for again."""
    publish_chain(origin, archives=ARCHIVES)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        with origin.held(PATH) as gate:
            await walking(one, gate, url, seen_by=other)
            one.process.kill()
            await one.ended()
            took_seconds = await until(lambda: len(origin.requests_for(PATH)) == 2)
            assert took_seconds < TAKEN_OVER_SECONDS + BESIDE_SECONDS
            gate.release()
        reply = await other.whole(url)
        assert reply.state == "complete"
        assert len(ids(reply.body)) == len(set(ids(reply.body)))
        assert "feed.adopted" in other.events()
    counts = origin.counts()
    assert counts.pop(PATH) == 2
    assert counts.pop("/feed") <= 2  # the subscription document is validated again
    assert set(counts.values()) == {1}, counts


@pytest.mark.fault("103")
async def test_a_replica_that_was_stopped_in_a_walk_writes_nothing_after_it_goes_on(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """Another replica has the walk; the stopped one restarts under a new identity."""
    publish_chain(origin, archives=ARCHIVES)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        with origin.held(PATH) as gate:
            await walking(one, gate, url, seen_by=other)
            one.process.send_signal(signal.SIGSTOP)
            await until(lambda: len(origin.requests_for(PATH)) == 2)
            gate.release()
        assert (await other.whole(url)).state == "complete"
        origin_counts = origin.counts()
        one.process.send_signal(signal.SIGCONT)
        await until(lambda: "replica.isolated" in one.events())
        assert (await one.whole(url)).state == "complete"
        assert not {"refresh.failed", "feed.unkept", "internal"} & set(one.events())
        assert origin.counts() == origin_counts


async def test_a_replica_that_ends_in_a_walk_leaves_it_to_the_others_at_once(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """A rolling update delays a walk less than a death does."""
    publish_chain(origin, archives=ARCHIVES)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        with origin.held(PATH) as gate:
            await walking(one, gate, url, seen_by=other)
            one.process.terminate()
            await one.ended()
            assert await until(lambda: len(origin.requests_for(PATH)) == 2) < BESIDE_SECONDS + 2
            gate.release()
        assert (await other.whole(url)).state == "complete"
    counts = origin.counts()
    assert counts.pop(PATH) == 2
    assert counts.pop("/feed") <= 2
    assert set(counts.values()) == {1}, counts
