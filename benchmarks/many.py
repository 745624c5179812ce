"""A proxy that knows many feeds: `python -m benchmarks.many`.

10,000 feeds of one document (3 entries) are asked for once over HTTP, from a publisher in its own process.
The server restarts on that database (`start` is the time until /readyz). Then random feeds are asked for, 100
times a second for a minute, with the last ETag in half of the requests. A tenth of the feeds are always
stale: the proxy must ask their publisher first, who responds 304.

Latency counts from the moment a request was due, so a server that falls behind shows it. Every status is
checked, and that only stale feeds were fetched.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.serve import Connection, request_for
from benchmarks.support.client import get, open_client
from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure, show
from benchmarks.support.publisher import Publisher, running_publisher
from benchmarks.support.report import begin, expect
from benchmarks.support.server import Server, running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree

CHAIN: Final = Chain(archives=0, entries=3, entry_bytes=1000)
_SEED: Final = 10_000
_SEEDERS: Final = 4
_CONNECTIONS: Final = 32
_STALE_EVERY: Final = 10
_SETTINGS: Final[dict[str, Any]] = {"freshness_minimum_seconds": 1, "freshness_default_seconds": 36_000}
"""Feeds without freshness information stay fresh for the whole run."""


@dataclass
class Seen:
    """Durations of the readers' answers in seconds."""

    fresh: list[float] = field(default_factory=list)
    stale: list[float] = field(default_factory=list)


def measure(
    tree: Tree = HERE, *, feeds: int = 10_000, per_second: float = 100.0, duration_seconds: float = 60.0
) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-many-") as name,
        running_publisher(CHAIN, is_conditional=True) as publisher,
    ):
        folder = Path(name)
        with running_server(folder, tree=tree, **_SETTINGS) as server:
            began = time.perf_counter()
            asyncio.run(_seed(server, publisher, feeds))
            seed_seconds = time.perf_counter() - began
        began = time.perf_counter()
        with running_server(folder, tree=tree, **_SETTINGS) as server:
            _wait_until_ready(server)
            start_seconds = time.perf_counter() - began
            publisher.counts()
            before = server.cpu_seconds()
            seen = asyncio.run(_load(server, publisher, feeds, per_second, duration_seconds))
            taken = server.cpu_seconds() - before
            expect("a refresh for stale feeds alone", publisher.counts().requests <= len(seen.stale), True)
            resident_bytes = server.resident_bytes()
        database_bytes = sum(path.stat().st_size for path in folder.glob("wholefeed.db*"))
    print(f"{feeds} feeds stored in {seed_seconds:.0f} s")
    print(f"{len(seen.fresh)} answers of fresh feeds, {len(seen.stale)} of stale ones")
    of = f", {feeds} feeds"
    return [
        *(
            Figure(f"many.{kind}.{label}{of}", "ms", [1000 * _at(durations, share)])
            for kind, durations in (("fresh", seen.fresh), ("stale", seen.stale))
            for label, share in (("p50", 0.5), ("p99", 0.99))
        ),
        Figure(f"many.cpu{of}", "ms", [1000 * taken / (len(seen.fresh) + len(seen.stale))]),
        Figure(f"many.memory{of}", "MB", [resident_bytes / 1e6]),
        Figure(f"many.database{of}", "MB", [database_bytes / 1e6]),
        Figure(f"many.start{of}", "s", [start_seconds]),
    ]


def _target(server: Server, publisher: Publisher, number: int) -> str:
    return server.feed_target(publisher.url(f"/f{number}/feed"))


async def _seed(server: Server, publisher: Publisher, feeds: int) -> None:
    numbers = iter(range(feeds))

    async def ask() -> None:
        connection = await Connection.open(server.port)
        for number in numbers:
            target = _target(server, publisher, number)
            reply = await connection.ask(request_for(target, server.port, Accept_Encoding="gzip"))
            expect("status", reply.status, 200)
        await connection.close()

    await asyncio.gather(*(ask() for _ in range(_SEEDERS)))


def _wait_until_ready(server: Server) -> None:
    with open_client(server.port) as client:
        while client.ask(get("/readyz", server.port)).status != 200:
            time.sleep(0.01)


async def _load(
    server: Server, publisher: Publisher, feeds: int, per_second: float, duration_seconds: float
) -> Seen:
    chance, seen, etags = random.Random(_SEED), Seen(), dict[int, str]()
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(_CONNECTIONS):
        free.put_nowait(await Connection.open(server.port))

    async def ask(number: int, due_at: float) -> None:
        fields = {"Accept_Encoding": "gzip"}
        if chance.random() < 0.5 and number in etags:
            fields["If_None_Match"] = etags[number]
        connection = await free.get()
        reply = await connection.ask(request_for(_target(server, publisher, number), server.port, **fields))
        free.put_nowait(connection)
        durations = seen.fresh if number % _STALE_EVERY else seen.stale
        durations.append(time.perf_counter() - due_at)
        expect(f"status {reply.status}", reply.status in (200, 304), True)
        etags[number] = reply.etag

    began = time.perf_counter()
    async with asyncio.TaskGroup() as readers:
        for place in range(int(per_second * duration_seconds)):
            due_at = began + place / per_second
            await asyncio.sleep(due_at - time.perf_counter())
            readers.create_task(ask(chance.randrange(feeds), due_at))
    while not free.empty():
        await free.get_nowait().close()
    return seen


def _at(durations: list[float], share: float) -> float:
    return sorted(durations)[int(share * (len(durations) - 1))] if durations else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a proxy that knows many feeds.")
    parser.add_argument("--feeds", type=int, default=10_000, help="that it knows (default 10000)")
    parser.add_argument("--per-second", type=float, default=100.0, help="requests (default 100)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default 60)")
    add_tree(parser)
    options = parser.parse_args()
    begin()
    show(
        measure(
            chosen_tree(options),
            feeds=options.feeds,
            per_second=options.per_second,
            duration_seconds=options.seconds,
        )
    )


if __name__ == "__main__":
    main()
