"""Whose turn it is at publishers' hosts, and at a web archive: of all replicas one asks a host at a time.

    turns = ReplicaHosts(replica, counts)
    store.engine.listen("wanted", turns.wanted)
    gate = HostGate.from_config(config.fetch, turns=turns)

A turn is a lease (`wholefeed.service.replica`), and what is known of the host goes with it: what its last
holder has told, or had told when it died. Who holds one keeps it for a moment after its last request, and
gives it up soon when another replica wants it. So within a turn politeness is this process's own affair.

While the database does not answer nobody waits for it: the replica is alone, and goes on by its own rules.
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
"""For so long a turn is kept after its last request."""
SLICE_SECONDS: Final = 1.0
"""So long a turn lasts at least though another replica wants it: each change takes two transactions."""
LATE_SECONDS: Final = 0.5
"""A database that takes longer is not waited for."""
_MANNERS_SECONDS: Final = 0.05
"""Who has given a turn up and wants it again lets the others come first for so long."""
_PREFIX: Final = "host:"


async def take_turn(replica: Replica, name: str, on_late: Callable[[], object] = str) -> Lease:
    """Wait until something that one replica has at a time is this one's.

    `on_late` is called while the database does not answer in time.

    Raises:
        StoreError: The database failed.
        OverloadedError: It could not be reached, or the others may take this replica for dead.
    """
    while True:
        with replica.waiting(name) as wait:
            late = asyncio.create_task(_tell_late(on_late))
            try:
                # Not what it has itself, which is being given back: no other would hear of that.
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
    """Return what another replica has told that had a lease before, and how long ago; empty: nothing."""
    was = lease.before
    if was is None or was.replica == replica.name:
        return "", 0.0
    seconds = was.silent_seconds if was.ended_seconds is None else was.ended_seconds
    return was.outcome or was.progress, seconds or 0.0


@dataclass(slots=True, eq=False)
class _HostTurn:
    """At one host: asked for, then ours until it ends, and there until the last request is over."""

    host: Host
    on_turn: Callable[[Host], None]
    since: float = 0.0
    ends_at: float = 0.0
    used_at: float = 0.0
    """When the last request began or ended."""
    is_wanted: bool = False
    """Whether another replica waits for it."""
    has_changed: asyncio.Event = field(default_factory=asyncio.Event)


class ReplicaHosts:
    """As `wholefeed.fetch.politeness.HostTurns` says; for one event loop. `close` it."""

    def __init__(self, replica: Replica, counts: Counts, clock: Callable[[], float] = time.monotonic) -> None:
        self._replica = replica
        self._counts = counts
        self._clock = clock
        self._turns: dict[str, _HostTurn] = {}
        self._tasks = set[asyncio.Task[None]]()
        self._failed_at = -math.inf
        """When the database did not answer in time; as of the last turn that was asked for."""

    @property
    def is_alone(self) -> bool:
        """Whether requests go on by this replica's own rules: until it has given its next sign of life."""
        return self._failed_at > self._replica.signed_at

    async def close(self) -> None:
        """Give all turns up."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # What the gate asks and tells

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
        """Take a notice: another replica waits for a turn, or this one does.

        It may come before this one has heard that the turn is its own.
        """
        turn = self._turns.get(words.removeprefix(_PREFIX))
        if turn is None or turn.is_wanted:
            return
        turn.is_wanted = True
        if turn.ends_at:
            turn.ends_at = turn.since + SLICE_SECONDS if turn.host.running else self._clock()
            turn.has_changed.set()

    # A turn

    async def _have(self, turn: _HostTurn) -> None:
        """Have a turn, from asking for it until this replica may ask again."""
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
        """Let requests begin until the turn is over, and those that have begun come to their end."""
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
        """Let everybody go on by this replica's own rules until the database answers in time."""
        if self._failed_at == -math.inf:
            log.warning("hosts.unshared", reason=reason)
        self._failed_at = self._clock()
        for turn in list(self._turns.values()):
            turn.on_turn(turn.host)


# The turns at a web archive

_MINUTE_SECONDS: Final = 60.0


class ReplicaTurns:
    """The turns at one web archive that all replicas have together (R33).

    A replica that takes one when all of a minute are taken reserves the first that there will be: nobody is
    passed over.
    """

    def __init__(
        self, replica: Replica, archive: str, *, per_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._replica = replica
        self._name = f"archive:{archive}"
        self._per_minute = per_minute
        self._clock = clock
        self._taken: list[float] = []
        """As of the last time."""

    async def reserve(self) -> float:
        """Take the next turn, and return in how many seconds it is; 0 where nobody can say."""
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
    """Return when there is one more turn, those that were taken or reserved being these, in order."""
    if len(taken) < per_minute:
        return now
    return max(now, taken[-per_minute] + _MINUTE_SECONDS)
