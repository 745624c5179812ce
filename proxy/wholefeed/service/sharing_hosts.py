"""Whose turn it is at publishers' hosts, and at a web archive: of all replicas one asks a host at a time.

    turns = ReplicaHosts(shared, counts)
    store.engine.listen("wanted", turns.wanted)
    gate = HostGate.from_config(config.fetch, turns=turns)

A turn is a lease (`wholefeed.service.sharing`), and what is known of the host goes with it: what its last
holder has told, or had told when it died. Who holds one keeps it for a moment after its last request, and
gives it up soon when another replica wants it. So within a turn politeness is this process's own affair.

    ASKING   nobody may begin a request here             the lease was taken   -> OURS
                                                         no answer in time     -> ALONE
    OURS     requests begin                              another wants it      -> ENDING
                                                         none for a while      -> given up
    ENDING   those that have begun come to their end     the last one has      -> given up, and a moment later
                                                                                  it may be asked for again

ALONE is the replica as a whole: while the database does not answer nobody waits for it, and requests go on by
this replica's own rules.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from wholefeed.counts import Counts
from wholefeed.errors import LeaseLostError, OverloadedError, StoreError
from wholefeed.fetch.hosts import Host
from wholefeed.futures import retrieve_failure
from wholefeed.logs import get_logger
from wholefeed.service.sharing import Kept, Shared

log = get_logger()

IDLE_SECONDS: Final = 1.0
"""For so long a turn is kept after its last request."""
SLICE_SECONDS: Final = 1.0
"""So long a turn lasts at least though another replica wants it: each change takes two transactions."""
LATE_SECONDS: Final = 0.5
"""A database that takes longer is not waited for."""
RETRY_SECONDS: Final = 1.0
"""Between two tries while the replica is on its own."""
_MANNERS_SECONDS: Final = 0.05
"""Who has given a turn up and wants it again lets the others come first for so long."""
_AWAY: Final = (StoreError, OverloadedError, LeaseLostError)


@dataclass(slots=True, eq=False)
class _Turn:
    """At one host; ASKING until it is kept."""

    host: Host
    on_turn: Callable[[Host], None]
    kept: Kept | None = None
    is_ending: bool = False
    since: float = 0.0
    used_at: float = 0.0
    """When the last one began or ended."""
    is_wanted: bool = False
    """Whether another replica waits for it."""

    @property
    def is_ours(self) -> bool:
        return self.kept is not None and not self.is_ending


class ReplicaHosts:
    """As `wholefeed.fetch.politeness.HostTurns` says; for one event loop. `close` it."""

    def __init__(self, shared: Shared, counts: Counts, clock: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._counts = counts
        self._clock = clock
        self._turns: dict[str, _Turn] = {}
        self._tasks = set[asyncio.Task[None]]()
        self.is_alone = False
        """Whether the database does not answer in time."""

    async def close(self) -> None:
        """Give all turns up."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for turn in list(self._turns.values()):
            self._give_up(turn)

    # What the gate asks and tells

    def is_ours(self, host: Host, on_turn: Callable[[Host], None]) -> bool:
        if self.is_alone:
            return True
        turn = self._turns.get(host.name)
        if turn is not None and turn.kept is not None and turn.kept.holding.is_lost:
            turn = None
        if turn is None:
            turn = self._turns[host.name] = _Turn(host, on_turn)
            self._go_on(self._ask(turn))
        turn.host, turn.on_turn = host, on_turn
        return turn.is_ours

    def began(self, host: Host) -> None:
        if self.is_alone:
            self._counts.unshared += 1
        if turn := self._turns.get(host.name):
            turn.used_at = self._clock()

    def ended(self, host: Host) -> None:
        if turn := self._turns.get(host.name):
            turn.used_at = self._clock()
            if not turn.host.running and turn.is_ending:
                self._give_up(turn)

    def wanted(self, words: str) -> None:
        """Take a notice: another replica waits for a turn, or this one does.

        It may come before this one has heard that the turn is its own.
        """
        turn = self._turns.get(words.removeprefix(_PREFIX))
        if turn is None or turn.is_wanted:
            return
        turn.is_wanted = True
        if turn.is_ours:
            left_seconds = turn.since + SLICE_SECONDS - self._clock() if turn.host.running else 0.0
            asyncio.get_running_loop().call_later(max(0.0, left_seconds), self._end, turn)

    # Taking and giving up

    async def _ask(self, turn: _Turn) -> None:
        """Wait for a turn, as long as the database answers."""
        waits = asyncio.Event()
        name = f"{_PREFIX}{turn.host.name}"
        tell = lambda: turn.host.as_text(now=self._clock())  # noqa: E731
        keeping = asyncio.create_task(self._shared.keep(name, tell, waits.set))
        keeping.add_done_callback(retrieve_failure)
        try:
            while not keeping.done():
                waits.clear()
                await asyncio.wait({keeping}, timeout=LATE_SECONDS)
                if not (keeping.done() or waits.is_set() or self._shared.is_waiting(name)):
                    self._go_alone("the database does not answer in time")
                    await asyncio.wait({keeping})
        except asyncio.CancelledError:
            keeping.cancel()
            await asyncio.wait({keeping})
            raise
        if isinstance(failure := keeping.exception(), _AWAY):
            self._go_alone(str(failure))
            return
        turn.kept = keeping.result()
        if self._turns.get(turn.host.name) is not turn:  # it has gone on alone meanwhile
            self._shared.let_go(turn.kept, "")
            return
        turn.since = turn.used_at = self._clock()
        if turn.kept.before:
            turn.host.take_over(turn.kept.before, age_seconds=turn.kept.age_seconds, now=self._clock())
        turn.on_turn(turn.host)
        self._look_later(turn)
        if turn.is_wanted:
            asyncio.get_running_loop().call_later(SLICE_SECONDS, self._end, turn)

    def _look_later(self, turn: _Turn) -> None:
        idle_seconds = max(0.0, turn.used_at + IDLE_SECONDS - self._clock())
        asyncio.get_running_loop().call_later(idle_seconds or IDLE_SECONDS, self._look, turn)

    def _look(self, turn: _Turn) -> None:
        """Give a turn up that is not made use of."""
        if turn.is_ours and not turn.host.running and self._clock() >= turn.used_at + IDLE_SECONDS:
            self._give_up(turn)
        elif turn.is_ours:
            self._look_later(turn)

    def _end(self, turn: _Turn) -> None:
        if turn.is_ours:
            turn.is_ending = True
            if not turn.host.running:
                self._give_up(turn)

    def _give_up(self, turn: _Turn) -> None:
        """Leave a turn to the others; for a moment this replica does not ask for another one."""
        turn.is_ending = True
        if turn.kept is not None:
            self._shared.let_go(turn.kept, turn.host.as_text(now=self._clock()))
            asyncio.get_running_loop().call_later(_MANNERS_SECONDS, self._left, turn)

    def _left(self, turn: _Turn) -> None:
        if self._turns.get(turn.host.name) is turn:
            del self._turns[turn.host.name]
        turn.on_turn(turn.host)

    # Alone

    def _go_alone(self, reason: str) -> None:
        """Let everybody go on by this replica's own rules until the database answers in time."""
        if not self.is_alone:
            self.is_alone = True
            log.warning("hosts.unshared", reason=reason)
            self._go_on(self._find_back())
        turns, self._turns = self._turns, {}
        for turn in turns.values():
            turn.on_turn(turn.host)

    async def _find_back(self) -> None:
        while self.is_alone:
            await asyncio.sleep(RETRY_SECONDS)
            began = self._clock()
            with suppress(*_AWAY, TimeoutError):
                async with asyncio.timeout(LATE_SECONDS):
                    await self._shared.reach()
                self.is_alone = False
                log.info("hosts.shared", seconds=round(self._clock() - began, 3))

    def _go_on(self, work: object) -> None:
        assert asyncio.iscoroutine(work)
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(retrieve_failure)


_PREFIX: Final = "host:"


# The turns at a web archive

_MINUTE_SECONDS: Final = 60.0


class ReplicaTurns:
    """The turns at one web archive that all replicas have together (R33).

    A replica that takes one when all of a minute are taken reserves the first that there will be: nobody is
    passed over.
    """

    def __init__(
        self, shared: Shared, archive: str, *, per_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._shared = shared
        self._name = f"archive:{archive}"
        self._per_minute = per_minute
        self._clock = clock
        self._taken: list[float] = []
        """As of the last time."""

    async def reserve(self) -> float:
        """Take the next turn, and return in how many seconds it is; 0 where nobody can say."""
        try:
            async with asyncio.timeout(LATE_SECONDS):
                kept = await self._shared.keep(self._name, str, lambda: None)
        except (*_AWAY, TimeoutError):
            return 0.0
        now = self._clock()
        if kept.before:
            self._taken = [now - kept.age_seconds + each for each in json.loads(kept.before)]
        turn_at = next_turn(self._taken, self._per_minute, now=now)
        self._taken = [*self._taken, turn_at][-self._per_minute :]
        self._shared.let_go(kept, json.dumps([each - now for each in self._taken]))
        return turn_at - now


def next_turn(taken: Sequence[float], per_minute: int, *, now: float) -> float:
    """Return when there is one more turn, those that were taken or reserved being these, in order."""
    if len(taken) < per_minute:
        return now
    return max(now, taken[-per_minute] + _MINUTE_SECONDS)
