"""A PostgreSQL that gives neither answer nor error. The proxy is a process of its own."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.feeds import an_item, atom, ids
from tests.origin import Origin
from tests.postgres import Cluster
from tests.processes import Served, serving, starting
from tests.running import Reply
from tests.store.relay import a_relay

PATHS = ("/held", "/stored", "/new")
RESPOND_SECONDS = 4
BESIDE_SECONDS = 3.0
"""For a machine that has other things to do."""


def a_replica(cluster: Cluster, folder: Path) -> AbstractAsyncContextManager[Served]:
    return serving(folder, store_url=cluster.url(), limits_respond_within_seconds=RESPOND_SECONDS)


async def timed(replica: Served, path: str, **query: str) -> tuple[Reply, float]:
    began = time.monotonic()
    reply = await replica.ask(path, **query)
    return reply, time.monotonic() - began


@pytest.mark.fault("107")
async def test_a_database_that_is_frozen_keeps_nobody_waiting(
    own_postgres: Cluster, tmp_path: Path, origin: Origin
) -> None:
    """What is held comes from memory; who asks for anything else is sent away in time, with Retry-After.
    When it thaws all is served, nothing is fetched twice; and a process ends while it is frozen."""
    for path in PATHS:
        origin.publish(path, atom(an_item(path), complete=True))
    held, stored, new = map(origin.url, PATHS)
    async with a_replica(own_postgres, tmp_path) as one, a_replica(own_postgres, tmp_path) as other:
        for replica, url in ((one, held), (one, held), (other, stored)):
            assert (await replica.whole(url)).status == 200
        asked = [("/feed", stored), ("/feed", new), ("/status", held), ("/readyz", "")]
        with own_postgres.frozen():
            replies = await asyncio.gather(
                timed(one, "/feed", url=held),
                *(timed(one, path, **({"url": url} if url else {})) for path, url in asked),
            )
            (served, held_seconds), *refused = replies
            assert (served.status, ids(served.body)) == (200, ["/held"])
            assert held_seconds < 0.5 + BESIDE_SECONDS
            for reply, seconds in refused:
                assert (reply.status, "Retry-After" in reply.headers) == (503, True)
                assert seconds < RESPOND_SECONDS + 1 + BESIDE_SECONDS
            assert refused[-1][1] < 2 + BESIDE_SECONDS
        async with asyncio.timeout(10):
            for path, url in asked:
                while (await one.ask(path, **({"url": url} if url else {}))).status != 200:
                    await asyncio.sleep(0.1)
        assert origin.counts() == dict.fromkeys(PATHS, 1)

        with own_postgres.frozen():
            waiting = asyncio.create_task(timed(one, "/feed", url=origin.url("/another")))
            await asyncio.sleep(0.2)
            one.process.terminate()
            began = time.monotonic()
            assert await one.ended() == 0
            assert time.monotonic() - began < 10 + BESIDE_SECONDS
            assert (await waiting)[0].status == 503


@pytest.mark.parametrize("silent_at", [b"to_regclass", b"LISTEN"], ids=["migrating", "listening"])
@pytest.mark.fault("107")
async def test_sigterm_ends_a_start_on_a_database_that_falls_silent(
    postgres_url: str, tmp_path: Path, silent_at: bytes
) -> None:
    """Exit 0 in time, also where a thread waits for the server."""
    async with a_relay(postgres_url) as relay, starting(tmp_path, store_url=relay.url) as replica:
        relay.silent_at = silent_at
        async with asyncio.timeout(30):
            while not relay.is_silent:
                await asyncio.sleep(0.05)
        replica.process.terminate()
        async with asyncio.timeout(BESIDE_SECONDS):
            assert await replica.ended() == 0
        assert replica.events() == ["server.stopped"]
