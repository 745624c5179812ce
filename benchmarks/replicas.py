"""Replicas on one PostgreSQL: `python -m benchmarks.replicas`.

PostgreSQL starts in a temporary folder, and 100,000 feeds of one document are made directly in the store.
Readers ask 1, 2 and 3 replicas (`wholefeed serve`, each a process) as fast as answers come. Shown are
throughput, processor use and the limiting resource. Then all replicas get 200 requests a second in turn, in
four stretches: all is well; one replica is killed; it restarts; the database restarts. One feed in a hundred
is due after 30 s and asked for often, the replicas poll every minute, one publisher request in twenty fails,
and feeds grow.

These end the program as wrong: a fetch of a document less than 30 s after the last fetch by any replica
(except the killed one's); another feed's content; fewer entries than before, or an answer replaced already in
that reader's sight; a status except 200 and 304, or 503 and 504 while the database is away. A reader with a
broken connection asks another replica, as a load balancer would. A single replica is not killed.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.support.copies import make_copies
from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure, show
from benchmarks.support.postgres import Postgres, programs, running_postgres
from benchmarks.support.publisher import Counts, Publisher, running_publisher
from benchmarks.support.readers import Phase, Readers
from benchmarks.support.report import Table, begin, expect
from benchmarks.support.server import Server, running_server
from benchmarks.support.shares import Shares, Used

CHAIN: Final = Chain(archives=0, entries=3, entry_bytes=1000)
HOSTS: Final = 9
"""One digit each: all URLs have the same length."""
DUE_EVERY: Final = 100
FRESH_SECONDS: Final = 30.0
_MARGIN_SECONDS: Final = 1.0
"""Freshness counts from a document's receipt; this counts from its sending."""
_SETTINGS: Final[dict[str, Any]] = {
    "freshness_minimum_seconds": FRESH_SECONDS,
    "freshness_default_seconds": 36_000,
    "history_poll_seconds": 60,
    "server_public_url": "http://feeds.test",  # one name for all, as a load balancer has it
}
_CONNECTIONS: Final = 24
_WORKING_SET: Final = 2_000
_DATABASE: Final = "wholefeed"


class Stage:
    def __init__(self, postgres: Postgres, publisher: Publisher, folder: Path, feeds: int) -> None:
        self.postgres = postgres
        self.publisher = publisher
        self.bases = [_base(publisher, number) for number in range(feeds)]
        self._folder = folder

    @contextmanager
    def replica(self, number: int, **more: Any) -> Iterator[Server]:
        """Run a replica with extra settings."""
        folder = self._folder / str(number)
        folder.mkdir(exist_ok=True)
        settings = {**_SETTINGS, "store_url": self.postgres.url(_DATABASE), **more}
        with running_server(folder, **settings) as server:
            yield server

    def fill(self) -> float:
        """Make the feeds; return the seconds."""
        began = time.monotonic()
        self.postgres.run(f"CREATE DATABASE {_DATABASE}")
        with self.replica(0) as server:
            server.whole(f"{self.bases[0]}/feed")
        make_copies(
            self.postgres.url(_DATABASE),
            own_base=self.bases[0],
            bases=self.bases[1:],
            fresh_seconds=lambda place: -1.0 if (place + 1) % DUE_EVERY == 0 else 36_000.0,
        )
        return time.monotonic() - began


def _base(publisher: Publisher, number: int) -> str:
    return publisher.url(f"/f{number:06d}", host=1 + number % HOSTS)


def measure(options: argparse.Namespace) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-replicas-") as name,
        running_postgres() as postgres,
        running_publisher(
            CHAIN,
            latency_seconds=0.02,
            failing=options.failing,
            growth_seconds=45.0,
            hosts=HOSTS,
            is_conditional=True,
            good_seconds=FRESH_SECONDS - _MARGIN_SECONDS,
            short_every=DUE_EVERY,
        ) as publisher,
    ):
        stage = Stage(postgres, publisher, Path(name), options.feeds)
        seconds = stage.fill()
        size = postgres.run(f"SELECT pg_database_size('{_DATABASE}')")[0][0]
        print(
            f"{options.feeds:,} feeds made in {seconds:.0f} s, {size / 1e6:,.0f} MB in PostgreSQL", flush=True
        )
        figures = [Figure(f"replicas.database, {options.feeds} feeds", "MB", [size / 1e6])]
        figures += _throughput(stage, options)
        figures += _story(stage, options)
    return figures


def _throughput(stage: Stage, options: argparse.Namespace) -> list[Figure]:
    """Ask each number of replicas as fast as answers come; polling is off."""
    figures = []
    table = Table(
        "", "answers/s", "p99 ms", "cores: replicas", "PostgreSQL", "readers", "all else", "ms an answer",
        "limit", first_width=14,
    )  # fmt: skip
    for count in options.replicas:
        with ExitStack() as stack:
            servers = [
                stack.enter_context(stage.replica(number, history_poll_seconds=0)) for number in range(count)
            ]
            readers = Readers(servers, stage.bases[: min(len(stage.bases), _WORKING_SET)], due_every=0)
            asyncio.run(readers.ask_all_once())
            shares = Shares(servers, stage.postgres)
            phase = asyncio.run(readers.flat_out(_CONNECTIONS, options.seconds / 2))
            used = shares.used()
            _require_right(readers, phase, "without a fault", may_fail=False)
        per_second = len(phase.durations) / phase.seconds
        table.row(
            f"{count} replica{'s' * (count > 1)}",
            f"{per_second:,.0f}",
            f"{1000 * phase.latency(0.99):.0f}",
            *_cores(used),
            used.each(per_second),
            used.limit(),
        )
        figures.append(Figure(f"replicas.throughput.{count}, {options.feeds} feeds", "/s", [per_second]))
    return figures


def _story(stage: Stage, options: argparse.Namespace) -> list[Figure]:
    """Ask at a steady pace while replicas and the database stop and restart."""
    count, figures = max(options.replicas), []
    table = Table(
        f"{count} replicas", "answers", "p50 ms", "p99 ms", "max ms", "503/504", "asked again", "fetched",
        "twice", "failed", "a replica", "cores: replicas", "PostgreSQL", "readers", "all else",
        first_width=24,
    )  # fmt: skip
    with ExitStack() as stack:
        servers = [stack.enter_context(stage.replica(number)) for number in range(count)]
        readers = Readers(servers, stage.bases, due_every=DUE_EVERY)
        stage.publisher.counts()

        def stretch(name: str, seconds: float, *, may_fail: bool, killed: bool = False) -> None:
            before, shares = readers.by_replica(), Shares(servers, stage.postgres)
            phase = asyncio.run(readers.at_pace(options.per_second, seconds))
            used, counts = shares.used(), stage.publisher.counts()
            _require_right(readers, phase, name, may_fail=may_fail)
            work = [after - begun for after, begun in zip(readers.by_replica(), before, strict=True)]
            _row(table, name, phase, counts, work, used)
            if not killed:
                expect(f"documents fetched twice, {name}", counts.doubled, 0)
            figures.extend(_figures(name, phase, options))

        stretch("all is well", options.seconds, may_fail=False)
        if count > 1:
            servers[-1].kill()
            stretch("one is killed", options.seconds / 2, may_fail=False, killed=True)
            servers[-1] = stack.enter_context(stage.replica(count - 1))
            stretch("it is started again", options.seconds / 2, may_fail=False)
        away = stage.postgres.restart()
        stretch("database restarted", options.seconds / 2, may_fail=True)
        print(f"the database was away for {away:.1f} s")
    return figures


def _require_right(readers: Readers, phase: Phase, name: str, *, may_fail: bool) -> None:
    expect(f"answers, {name}", readers.wrong[:3], [])
    failures = sum(number for status, number in phase.statuses.items() if status not in (200, 304))
    if not may_fail:
        expect(f"statuses, {name}: {dict(phase.statuses)}", failures, 0)


def _cores(used: Used) -> tuple[str, ...]:
    replicas = " ".join(f"{each:.2f}" for each in used.replicas)
    return replicas, f"{used.postgres:.2f}", f"{used.readers:.2f}", f"{used.others:.2f}"


def _row(table: Table, name: str, phase: Phase, counts: Counts, work: Sequence[int], used: Used) -> None:
    table.row(
        name,
        f"{len(phase.durations):,}",
        *(f"{1000 * phase.latency(share):.1f}" for share in (0.5, 0.99, 1.0)),
        f"{phase.statuses[503] + phase.statuses[504]}",
        f"{phase.again}",
        f"{counts.requests}",
        f"{counts.doubled}",
        f"{counts.count_failure}",
        " ".join(map(str, work)),
        *_cores(used),
    )


def _figures(name: str, phase: Phase, options: argparse.Namespace) -> list[Figure]:
    of = f", {options.feeds} feeds"
    key = name.replace(" ", "-")
    return [
        Figure(f"replicas.{key}.{label}{of}", "ms", [1000 * phase.latency(share)])
        for label, share in (("p50", 0.5), ("p99", 0.99))
    ]


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure replicas on one PostgreSQL, with faults.")
    parser.add_argument("--feeds", type=int, default=100_000, help="that are stored (default 100000)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the first stretch (default 60)")
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2, 3], help="numbers of them (1 2 3)")
    parser.add_argument("--per-second", type=float, default=200.0, help="requests (default 200)")
    parser.add_argument(
        "--failing", type=float, default=0.05, help="share that publishers fail (default 0.05)"
    )
    return parser.parse_args(given)


def main() -> None:
    options = arguments()
    begin()
    if not programs():
        print("not run: PostgreSQL is not installed")
        return
    show(measure(options))


if __name__ == "__main__":
    main()
