"""Use of the processor in a stretch of time, and the limit of the throughput.

shares = Shares(servers, postgres)
...
shares.used().limit()           # "cores"
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.support.postgres import Postgres
from benchmarks.support.server import Server

_FULL: Final = 0.9
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Used:
    """Cores used, averaged over a stretch of time."""

    replicas: tuple[float, ...]
    postgres: float
    readers: float
    """This program."""
    others: float
    """All other processes of the machine, publishers included."""
    cores: int

    def each(self, per_second: float) -> str:
        """Return milliseconds of processor time for an answer: in replicas, PostgreSQL and readers."""
        parts = (sum(self.replicas), self.postgres, self.readers)
        return " ".join(f"{1000 * part / per_second:.2f}" for part in parts)

    def limit(self) -> str:
        """Name the exhausted resource."""
        if sum(self.replicas) + self.postgres + self.readers + self.others > _FULL * self.cores:
            return f"the {self.cores} cores"
        if max(self.replicas) > _FULL:
            return "a replica's core"
        return "waiting"


class Shares:
    """Counts from its creation."""

    def __init__(self, servers: Sequence[Server], postgres: Postgres) -> None:
        self._servers = list(servers)
        self._postgres = postgres
        self._began = time.monotonic()
        self._before = self._now()

    def used(self) -> Used:
        seconds = time.monotonic() - self._began
        *replicas, postgres, readers, machine = (
            (after - before) / seconds for after, before in zip(self._now(), self._before, strict=True)
        )
        others = max(machine - postgres - readers - sum(replicas), 0.0)
        return Used(tuple(replicas), postgres, readers, others, os.cpu_count() or 1)

    def _now(self) -> list[float]:
        own = [server.cpu_seconds() for server in self._servers]
        return [*own, self._postgres.cpu_seconds(), time.process_time(), _machine_seconds()]


def _machine_seconds() -> float:
    """Return the seconds used by all processes (proc_stat(5)): user, nice, system, interrupts."""
    first = Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _waiting, hard, soft, *_ = map(int, first)
    return (user + nice + system + hard + soft) / _TICKS
