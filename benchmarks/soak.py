"""Many readers on many feeds of a failing publisher: `python -m benchmarks.soak`.

1,000 connections ask for 200 feeds of 20 hosts for two minutes. Each asks for a random feed with its last
ETag or none, and asks again within a fifth of a second, so that the readers' pauses are not the limit. One
publisher request in ten fails (status 500 or 429, a broken body, a closed connection), each feed grows, and
short freshness makes refreshes constant. The first quarter is the warm-up.

These end the program as wrong: a status except 200, 304 and the documented ones for a feed without stored
documents (502, 503, 504); fewer entries than before; files and sockets open after the readers have gone;
memory a quarter above that after the warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.serve import Connection, Reply, request_for
from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure
from benchmarks.support.publisher import Publisher, running_publisher
from benchmarks.support.report import Table, begin, expect
from benchmarks.support.server import Server, running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree

_WARM_UP: Final = 0.25
_SAMPLES: Final = 12
_GROWTH: Final = 1.25
_REST_SECONDS: Final = 90.0
"""Longer than the proxy's timeouts of idle connections, to publishers and readers."""
_CHECKED: Final = 20
"""One answer in this many is decoded and its entries are counted."""
_UNKNOWN: Final = frozenset({502, 503, 504})
_ENTRY: Final = b"<entry xml:base="
"""The beginning of a publisher's entry; the proxy's own entry about gaps differs."""


@dataclass
class Phase:
    statuses: Counter[int] = field(default_factory=Counter)
    durations: list[float] = field(default_factory=list)

    def latency(self, share: float) -> float:
        """Return the latency in seconds at this quantile."""
        ordered = sorted(self.durations) or [0.0]
        return ordered[int(share * (len(ordered) - 1))]


class Soak:
    def __init__(self, server: Server, publisher: Publisher, options: argparse.Namespace) -> None:
        self._server = server
        self._targets = [
            server.feed_target(publisher.url(f"/f{number}/feed", host=1 + number % options.hosts))
            for number in range(options.feeds)
        ]
        self._readers: int = options.readers
        self._think_seconds: float = options.think_seconds
        self._until = time.monotonic() + options.seconds
        self._warm_until = time.monotonic() + options.seconds * _WARM_UP
        self._chance = random.Random(1)
        self._etags: dict[str, str] = {}
        self._entries: dict[str, int] = {}
        self.warm_up, self.after = Phase(), Phase()

    async def run(self) -> None:
        await asyncio.gather(*(self._read(number) for number in range(self._readers)))

    async def _read(self, number: int) -> None:
        await asyncio.sleep(number / self._readers)
        connection = await Connection.open(self._server.port)
        try:
            while time.monotonic() < self._until:
                await self._ask(connection)
                await asyncio.sleep(self._chance.random() * self._think_seconds)
        finally:
            await connection.close()

    async def _ask(self, connection: Connection) -> None:
        target = self._chance.choice(self._targets)
        fields = {"Accept_Encoding": "gzip"}
        if self._chance.random() < 0.5 and target in self._etags:
            fields["If_None_Match"] = self._etags[target]
        is_known = target in self._entries
        began = time.monotonic()
        phase = self.warm_up if began < self._warm_until else self.after
        reply = await connection.ask(request_for(target, self._server.port, **fields))
        phase.durations.append(time.monotonic() - began)
        phase.statuses[reply.status] += 1
        self._check(target, reply, is_known=is_known)

    def _check(self, target: str, reply: Reply, *, is_known: bool) -> None:
        if reply.status not in (200, 304):
            is_named = reply.status in _UNKNOWN and not is_known
            expect(f"status {reply.status} for {target}: {reply.body[:200]!r}", is_named, True)
            return
        self._etags[target] = reply.etag
        if reply.status == 200 and (target not in self._entries or self._chance.random() < 1 / _CHECKED):
            entries = gzip.decompress(reply.body).count(_ENTRY)
            known = self._entries.get(target, 0)
            expect(f"at least {known} entries of {target}", min(entries, known), known)
            self._entries[target] = entries


async def _sample(server: Server, table: Table, soak: Soak, seconds: float) -> list[int]:
    """Print and return resident memory at intervals."""
    samples = []
    for number in range(1, _SAMPLES + 1):
        await asyncio.sleep(seconds / _SAMPLES)
        samples.append(server.resident_bytes())
        answered = len(soak.warm_up.durations) + len(soak.after.durations)
        table.row(
            f"{number * seconds / _SAMPLES:.0f} s",
            f"{answered}",
            f"{samples[-1] / 1e6:.0f}",
            f"{server.open_files()}",
            f"{server.threads()}",
        )
    return samples


async def measure(server: Server, publisher: Publisher, options: argparse.Namespace) -> list[Figure]:
    """Run the readers; check, print and return their phases."""
    files = server.open_files()
    taken, own = server.cpu_seconds(), time.process_time()
    soak = Soak(server, publisher, options)
    table = Table("", "answers", "resident MB", "open files", "threads", first_width=12)
    sampling = asyncio.create_task(_sample(server, table, soak, options.seconds))
    await soak.run()
    samples = await sampling
    for name, phase in (("warm-up", soak.warm_up), ("after it", soak.after)):
        print(
            f"{name}: {len(phase.durations)} answers {dict(sorted(phase.statuses.items()))},"
            f" p50 {phase.latency(0.5) * 1000:.0f} ms, p99 {phase.latency(0.99) * 1000:.0f} ms,"
            f" max {phase.latency(1) * 1000:.0f} ms"
        )
    taken, own = server.cpu_seconds() - taken, time.process_time() - own
    answers = len(soak.warm_up.durations) + len(soak.after.durations)
    print(
        f"{answers / options.seconds:.0f} answers a second; CPU seconds of the server {taken:.1f},"
        f" of the readers {own:.1f}"
    )
    counts = publisher.counts()
    print(f"the publisher was asked {counts.requests} times over {counts.connections} connections")
    warm, peak = max(samples[: int(_SAMPLES * _WARM_UP) + 1]), max(samples)
    expect(f"memory: {warm} bytes after the warm-up, {peak} later", peak <= warm * _GROWTH, True)
    allowed, until = files + options.spare_files, time.monotonic() + options.rest_seconds
    while server.open_files() > allowed and time.monotonic() < until:
        await asyncio.sleep(1)
    print(f"afterwards: {server.open_files()} open files (before: {files}), {server.threads()} threads")
    expect("files and sockets that stay", max(server.open_files() - allowed, 0), 0)
    return [
        Figure("soak.answers", "/s", [len(soak.after.durations) / (options.seconds * (1 - _WARM_UP))]),
        Figure("soak.cpu", "ms", [1000 * taken / answers], {"the readers": [1000 * own / answers]}),
        Figure("soak.memory", "MB", [peak / 1e6]),
    ]


def figures(tree: Tree = HERE, *, seconds: float = 60.0) -> list[Figure]:
    """Run a shorter soak with the usual numbers, as figures to store."""
    return run(arguments(["--seconds", str(seconds)]), tree)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Load a proxy whose publisher fails.")
    parser.add_argument("--readers", type=int, default=1000, help="that ask at once (default 1000)")
    parser.add_argument("--feeds", type=int, default=200, help="that they ask for (default 200)")
    parser.add_argument("--hosts", type=int, default=20, help="that publish them (default 20)")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long (default 120)")
    parser.add_argument(
        "--think-seconds", type=float, default=0.2, help="before a reader asks again, at most (default 0.2)"
    )
    parser.add_argument("--failing", type=float, default=0.1, help="share that fails (default 0.1)")
    parser.add_argument("--archives", type=int, default=9, help="archive documents a feed (default 9)")
    parser.add_argument("--entries", type=int, default=10, help="entries in each document (default 10)")
    parser.add_argument("--entry-bytes", type=int, default=1000, help="size of an entry (default 1000)")
    parser.add_argument("--spare-files", type=int, default=8, help="that may stay open (default 8)")
    parser.add_argument("--rest-seconds", type=float, default=_REST_SECONDS, help="to let go (default 90)")
    add_tree(parser)
    return parser.parse_args(given)


def main() -> None:
    options = arguments()
    begin()
    run(options, chosen_tree(options))


def run(options: argparse.Namespace, tree: Tree) -> list[Figure]:
    chain = Chain(archives=options.archives, entries=options.entries, entry_bytes=options.entry_bytes)
    print(
        f"{options.feeds} feeds of {options.hosts} hosts, each of {chain.documents} documents,"
        f" {chain.total_entries} entries; {options.readers} readers for {options.seconds:g} s;"
        f" {options.failing:.0%} of requests fail"
    )
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-soak-") as folder,
        running_publisher(
            chain, latency_seconds=0.01, failing=options.failing, growth_seconds=20, hosts=options.hosts
        ) as publisher,
        running_server(
            Path(folder),
            tree=tree,
            freshness_minimum_seconds=2,
            freshness_default_seconds=5,
            freshness_retry_missing_seconds=5,
        ) as server,
    ):
        return asyncio.run(measure(server, publisher, options))


if __name__ == "__main__":
    main()
