"""Turns at publishers' hosts and at a web archive: one replica at a time asks.

A turn is a lease (`wholefeed.service.replica`) that keeps the host's state. While the database is silent,
each replica follows its own rules.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from wholefeed.counts import Counts
from wholefeed.errors import LeaseLostError, OverloadedError, StoreError
from wholefeed.fetch.hosts import Host
from wholefeed.futures import retrieve_failure
from wholefeed.logs import get_logger
from wholefeed.service.replica import Lease, Replica

log = get_logger()

IDLE_SECONDS: Final = 1.0
"""Length of a turn after its last request."""
SLICE_SECONDS: Final = 1.0
"""Shortest turn, since each change takes two transactions."""
LATE_SECONDS: Final = 0.5
"""Longest wait for the database."""
_MANNERS_SECONDS: Final = 0.05
"""Precedence for others after giving up a turn."""
_PREFIX: Final = "host:"


async def take_turn(replica: Replica, name: str, on_late: Callable[[], object] = str) -> Lease:
    """Wait for an exclusive lease; call `on_late` while the database is silent.

    Raises:
        StoreError: The database failed.
        OverloadedError: The database is unreachable, or others may consider this replica dead.
    """
    while True:
        with replica.waiting(name) as wait:
            late = asyncio.create_task(_tell_late(on_late))
            try:
                # Not its own lease, which is being given back: no other replica would hear of that.
                lease, _ = await replica.take(name, takes_own=False)
            finally:
                late.cancel()
            if lease is not None:
                return lease
            await wait.woken.wait()


async def _tell_late(on_late: Callable[[], object]) -> None:
    while True:
        await asyncio.sleep(LATE_SECONDS)
        on_late()


def told_before(replica: Replica, lease: Lease) -> tuple[str, float]:
    """Return another replica's last note and its age in seconds; empty: none."""
    was = lease.before
    if was is None or was.replica == replica.name:
        return "", 0.0
    seconds = was.silent_seconds if was.ended_seconds is None else was.ended_seconds
    return was.outcome or was.progress, seconds or 0.0


@dataclass(slots=True, eq=False)
class _HostTurn:
    """A turn at one host, from asking until the last request ends."""

    host: Host
    on_turn: Callable[[Host], None]
    since: float = 0.0
    ends_at: float = 0.0
    used_at: float = 0.0
    """Start or end of the last request."""
    is_wanted: bool = False
    """By another replica."""
    has_changed: asyncio.Event = field(default_factory=asyncio.Event)


class ReplicaHosts:
    """`wholefeed.fetch.politeness.HostTurns` of a replica, for one event loop."""

    def __init__(self, replica: Replica, counts: Counts, clock: Callable[[], float] = time.monotonic) -> None:
        self._replica = replica
        self._counts = counts
        self._clock = clock
        self._turns: dict[str, _HostTurn] = {}
        self._tasks = set[asyncio.Task[None]]()
        self._failed_at = -math.inf
        """When the database was last late."""

    @property
    def is_alone(self) -> bool:
        """Whether own rules apply, until the next sign of life."""
        return self._failed_at > self._replica.signed_at

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Calls of the gate

    def is_ours(self, host: Host, on_turn: Callable[[Host], None]) -> bool:
        turn = self._turns.get(host.name)
        if turn is None:
            if self.is_alone:
                return True
            turn = self._turns[host.name] = _HostTurn(host, on_turn)
            task = asyncio.create_task(self._have(turn))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(retrieve_failure)
        turn.host, turn.on_turn = host, on_turn
        return self._clock() < turn.ends_at or self.is_alone

    def began(self, host: Host) -> None:
        if self.is_alone:
            self._counts.unshared += 1
        if turn := self._turns.get(host.name):
            turn.used_at = self._clock()

    def ended(self, host: Host) -> None:
        if turn := self._turns.get(host.name):
            turn.used_at = self._clock()
            turn.has_changed.set()

    def wanted(self, words: str) -> None:
        """Note that a replica, perhaps this one, waits for a turn."""
        turn = self._turns.get(words.removeprefix(_PREFIX))
        if turn is None or turn.is_wanted:
            return
        turn.is_wanted = True
        if turn.ends_at:  # the notice may come before the turn
            turn.ends_at = turn.since + SLICE_SECONDS if turn.host.running else self._clock()
            turn.has_changed.set()

    # A turn

    async def _have(self, turn: _HostTurn) -> None:
        tell = partial(self._told, turn)
        on_late = partial(self._go_alone, "the database does not answer in time")
        try:
            lease = await take_turn(self._replica, f"{_PREFIX}{turn.host.name}", on_late)
            with suppress(LeaseLostError):
                async with self._replica.working(lease, tell):
                    try:
                        await self._use(turn, lease)
                    finally:
                        turn.ends_at, lease.outcome = 0.0, tell()
            await asyncio.sleep(_MANNERS_SECONDS)
        except (StoreError, OverloadedError) as exc:
            self._go_alone(str(exc))
        del self._turns[turn.host.name]
        turn.on_turn(turn.host)

    async def _use(self, turn: _HostTurn, lease: Lease) -> None:
        now = turn.since = turn.used_at = self._clock()
        if self._failed_at > -math.inf:
            log.info("hosts.shared", seconds=round(now - self._failed_at, 3))
            self._failed_at = -math.inf
        before, age_seconds = told_before(self._replica, lease)
        if before:
            turn.host.take_over(before, age_seconds=age_seconds, now=now)
        turn.ends_at = now + SLICE_SECONDS if turn.is_wanted else math.inf
        turn.on_turn(turn.host)
        while True:
            left_seconds = min(turn.ends_at, turn.used_at + IDLE_SECONDS) - self._clock()
            if left_seconds <= 0 and not turn.host.running:
                return
            turn.has_changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if turn.host.running else left_seconds):
                    await turn.has_changed.wait()

    def _told(self, turn: _HostTurn) -> str:
        return turn.host.as_text(now=self._clock())

    def _go_alone(self, reason: str) -> None:
        if self._failed_at == -math.inf:
            log.warning("hosts.unshared", reason=reason)
        self._failed_at = self._clock()
        for turn in list(self._turns.values()):
            turn.on_turn(turn.host)


# The turns at a web archive

_MINUTE_SECONDS: Final = 60.0


class ReplicaTurns:
    """Turns at one web archive, shared by all replicas (R33).

    If a minute is full, the first free turn is reserved, so nobody is passed over.
    """

    def __init__(
        self, replica: Replica, archive: str, *, per_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._replica = replica
        self._name = f"archive:{archive}"
        self._per_minute = per_minute
        self._clock = clock
        self._taken: list[float] = []

    async def reserve(self) -> float:
        """Reserve the next turn; return the seconds until then, 0 if unknown."""
        try:
            async with asyncio.timeout(LATE_SECONDS):
                lease = await take_turn(self._replica, self._name)
        except (StoreError, OverloadedError, TimeoutError):
            return 0.0
        now = self._clock()
        before, age_seconds = told_before(self._replica, lease)
        if before:
            self._taken = [now - age_seconds + each for each in json.loads(before)]
        turn_at = next_turn(self._taken, self._per_minute, now=now)
        self._taken = [*self._taken, turn_at][-self._per_minute :]
        lease.outcome = json.dumps([each - now for each in self._taken])
        self._replica.give_back(lease)
        return turn_at - now


def next_turn(taken: Sequence[float], per_minute: int, *, now: float) -> float:
    """Return the instant of the next turn, after the ascending `taken`."""
    if len(taken) < per_minute:
        return now
    return max(now, taken[-per_minute] + _MINUTE_SECONDS)
