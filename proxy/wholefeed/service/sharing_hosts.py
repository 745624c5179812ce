"""What the replicas on one database have together in asking publishers: places at hosts, turns at an archive.

    async with open_politeness(config, name=lambda: member.name, counts=counts) as politeness:
        store.listen("host", politeness.wake)
        fetcher = Fetcher.open(config.fetch, config.limits, gate=politeness.gate)

While the database does not answer in time nobody waits for it: requests go on by this replica's own rules
(`wholefeed.fetch.politeness`).
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from wholefeed.config.tables import Config
from wholefeed.counts import Counts
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.fetch.hosts import Asking, Limits, Outcome, Places, Rest, Wait
from wholefeed.fetch.memento import REQUESTS_PER_MINUTE, Turns
from wholefeed.fetch.politeness import Entry, HostGate
from wholefeed.futures import retrieve_failure
from wholefeed.logs import get_logger
from wholefeed.store.postgres_upkeep import SPARED_SECONDS, HostAnswer, HostChange, HostRow, HostRows

log = get_logger()


SWEEP_SECONDS: Final = 60.0
"""Between two removals of what there is nothing to remember of."""
_MARGIN_SECONDS: Final = 30.0
"""Beyond its time, what ends a request may wait for: its turn on the event loop, the database."""


@asynccontextmanager
async def open_politeness(
    config: Config, *, name: Callable[[], str], counts: Counts
) -> AsyncIterator[Politeness]:
    """Share what is known of hosts with whoever uses the database at `store.url`.

    Args:
        config: The same for every replica, as far as hosts are concerned.
        name: Gives the name under which this replica gives signs of life.
        counts: Where requests are counted that the other replicas do not know of.
    """
    rows = HostRows(config.store.url)
    records = SharedRecords(name, rows.swap)
    limits = Limits(
        per_host=config.fetch.concurrency_per_host,
        interval_seconds=config.fetch.min_interval_per_host_seconds,
        place_seconds=config.fetch.document_timeout_seconds + _MARGIN_SECONDS,
    )
    hosts = ReplicaHosts(records, limits, counts=counts)
    turns = ReplicaTurns(records, config.history.memento_url, per_minute=REQUESTS_PER_MINUTE)
    sweeping = asyncio.create_task(_sweep(rows), name="hosts-sweep")
    try:
        async with hosts.running():
            gate = HostGate.from_config(config.fetch, shared=hosts)
            yield Politeness(gate, Turns(shared=turns), hosts.wake)
    finally:
        sweeping.cancel()
        await asyncio.wait({sweeping})
        await rows.close()


@dataclass(frozen=True, slots=True)
class Politeness:
    """What asks publishers with regard to what other replicas ask."""

    gate: HostGate
    archive_turns: Turns
    wake: Callable[[str], None]
    """Told what notices of the kind `host` say."""


async def _sweep(rows: HostRows) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        with suppress(StoreError, OverloadedError):
            await rows.sweep()


# The places at hosts

FIRST_POLL_SECONDS: Final = 0.02
LONGEST_POLL_SECONDS: Final = 0.25
"""Well below `wholefeed.fetch.hosts.CLAIM_SECONDS`, so that who waits keeps its turn."""
_POLL_GROWTH: Final = 1.6


MAX_LINES: Final = 4096
"""Hosts that something is to be told of while the database is away."""
_MAX_AT_ONCE: Final = 128
"""Hosts in one exchange."""
_AFTER_ERROR_SECONDS: Final = 10.0


class ReplicaHosts:
    """The places at publishers' hosts that all replicas have together, for one event loop.

        hosts = ReplicaHosts(SharedRecords(lambda: "a", rows.swap), limits)
        async with hosts.running():
            entry = await hosts.enter("example.org", 443, is_new=False, at_most=None)
            hosts.leave(entry, Outcome())

    Requests that enter and leave are gathered while the database is asked for those before them, and then go
    together, whatever their hosts: a request costs one exchange to enter and one to leave at the most, and
    one more for each time that another replica was faster, or when nothing was asked for some seconds.
    Whoever has to wait asks again at once when it is told that it is its turn (`wake`), else after a moment,
    once for all that wait for a host here.

    Args:
        records: What is known of hosts.
        limits: The same for every replica.
        counts: Where requests that go on alone are counted.
    """

    def __init__(self, records: SharedRecords, limits: Limits, *, counts: Counts | None = None) -> None:
        self._records = records
        self._counts = counts or Counts()
        self._limits = limits
        self._lines: dict[str, Line] = {}
        self._news = asyncio.Event()
        self._tokens = 0
        records.on_alone = self._let_go

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to be told."""
        return not self._lines

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ReplicaHosts]:
        """Ask the database for as long as this lasts; then tell what is left to be told."""
        task = asyncio.create_task(self._run(), name="hosts")
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait({task})
            self._let_go()
            with suppress(TimeoutError):
                async with asyncio.timeout(2 * LATE_SECONDS):
                    await self._tell_all()

    async def enter(self, host: str, port: int, *, is_new: bool, at_most: int | None) -> Entry | Rest:
        """Wait for a place at a host, or learn why there is none."""
        self._tokens += 1
        replica = self._records.replica
        token = f"{replica}/{self._tokens}"
        asking = Asking(token=token, replica=replica, port=port, is_new=is_new, at_most=at_most)
        request = Request(host, asking, asyncio.get_running_loop().create_future())
        if self._records.is_alone:
            self._counts.went_unshared()
            return request
        line = self._line(host)
        line.entering.append(request)
        line.poll_at = 0.0
        self._news.set()
        try:
            return await request.turn
        except asyncio.CancelledError:
            self.leave(request, None)
            raise

    def leave(self, entry: Entry, outcome: Outcome | None) -> None:
        """Tell that a request is over, and what it has found out, if anything."""
        assert isinstance(entry, Request)
        is_told = entry.is_sent or (outcome is not None and outcome.rest_seconds is not None)
        line = self._lines.get(entry.host)
        if line is not None and entry in line.entering:
            line.entering.remove(entry)
        if not is_told or (line is None and len(self._lines) >= MAX_LINES):
            return
        line = self._line(entry.host)
        line.leaving.append((entry.asking.token, outcome))
        line.poll_at = 0.0
        self._news.set()

    def wake(self, words: str) -> None:
        """Take a notice: the name of a replica, and of a host at which it may be its turn."""
        replica, _, host = words.partition(" ")
        line = self._lines.get(host)
        if replica == self._records.replica and line is not None:
            line.poll_at, line.poll_seconds = 0.0, FIRST_POLL_SECONDS
            self._news.set()

    def _line(self, host: str) -> Line:
        return self._lines.setdefault(host, Line(host))

    # Asking the database

    async def _run(self) -> None:
        while True:
            try:
                await self._step()
            except Exception:  # the last resort: nobody would ever be told anything else
                self._counts.trouble("hosts")
                log.exception("background.failed", name="hosts")
                self._records.go_alone("an error of this program")
                for line in self._lines.values():
                    line.poll_at = 0.0
                await asyncio.sleep(_AFTER_ERROR_SECONDS)

    async def _step(self) -> None:
        records = self._records
        self._news.clear()
        if records.is_alone:
            await asyncio.sleep(RETRY_SECONDS)
        elif not self._due():
            await self._wait_for_news()
            return
        if (records.is_current and not records.is_alone) or await records.look():
            await self._tell(self._due())

    async def _wait_for_news(self) -> None:
        now = self._records.clock()
        wait_seconds = min((line.poll_at - now for line in self._lines.values()), default=None)
        try:
            async with asyncio.timeout(wait_seconds):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _tell_all(self) -> None:
        while (lines := self._due()) and not self._records.is_alone:
            await self._tell(lines)

    def _due(self) -> list[Line]:
        now = self._records.clock()
        return [line for line in self._lines.values() if line.poll_at <= now][:_MAX_AT_ONCE]

    async def _tell(self, lines: Sequence[Line]) -> None:
        """Make one exchange for some lines. Those of which others were faster stay due."""
        proposals: list[Proposal] = []

        def make() -> list[HostChange]:
            now = self._records.now()
            return [self._propose(line, now, proposals) for line in lines]

        if not lines:
            return
        results = await self._records.exchange(make) or {}
        for proposal in proposals:
            if results.get(proposal.line.host):
                self._accept(proposal)
            else:
                proposal.line.poll_at = 0.0

    def _propose(self, line: Line, now: float, proposals: list[Proposal]) -> HostChange:
        """Decide by what is known, as of the last look."""
        records = self._records
        places = Places.from_text(line.host, self._limits, records.row(line.host).state)
        places.clean(records.lost, now=now)
        for token, outcome in line.leaving:
            places.leave(token, outcome, now=now)
        given, refused, wait = list[Request](), list[tuple[Request, Rest]](), None
        for request in line.entering:
            request.is_sent = True
            asking = request.asking
            if wait is not None:
                rest = places.host.rest(asking.port, is_new=asking.is_new, now=now)
                refused += [] if rest is None else [(request, rest)]
                continue
            decided = places.enter(asking, now=now)
            if isinstance(decided, Wait):
                wait = decided
            elif isinstance(decided, Rest):
                refused.append((request, decided))
            else:
                given.append(request)
        if wait is None:
            places.withdraw(records.replica)
        line.poll_at = math.inf
        replicas = places.next_replicas(now=now) if line.leaving else ()
        notices = [f"{records.replica} host {each} {line.host}" for each in replicas]
        proposals.append(Proposal(line, len(line.leaving), given, refused, wait, places.host.pace.allowed))
        return records.change(line.host, places.as_text(), places.kept_until(now=now), notices)

    def _accept(self, proposal: Proposal) -> None:
        """Carry out what stands in the database now."""
        line = proposal.line
        del line.leaving[: proposal.left]
        answers: list[tuple[Request, Request | Rest]] = [(each, each) for each in proposal.given]
        for request, answer in [*answers, *proposal.refused]:
            request.allowed = proposal.allowed
            if request in line.entering:
                line.entering.remove(request)
            if not request.turn.done():
                request.turn.set_result(answer)
        line.is_waiting = proposal.wait is not None
        if line.is_over:
            del self._lines[line.host]
        elif line.poll_at == math.inf:  # nothing has come meanwhile: somebody waits
            assert proposal.wait is not None
            line.poll_seconds = min(line.poll_seconds * _POLL_GROWTH, LONGEST_POLL_SECONDS)
            if answers:
                line.poll_seconds = FIRST_POLL_SECONDS
            line.poll_at = self._records.clock() + (proposal.wait.seconds or line.poll_seconds)

    def _let_go(self) -> None:
        """Let those that wait go on by this replica's own rules."""
        for line in self._lines.values():
            for request in line.entering:
                if not request.turn.done():
                    self._counts.went_unshared()
                    request.turn.set_result(request)
            line.entering.clear()


@dataclass(slots=True, eq=False)
class Request:
    """A request that enters, or has entered."""

    host: str
    asking: Asking
    turn: asyncio.Future[Request | Rest]
    allowed: int | None = None
    is_sent: bool = False
    """Whether it may have a place."""


@dataclass(slots=True, eq=False)
class Line:
    """What is to be told of one host, and who waits for it here."""

    host: str
    entering: deque[Request] = field(default_factory=deque)
    leaving: list[tuple[str, Outcome | None]] = field(default_factory=list)
    is_waiting: bool = False
    """Whether others have been told that somebody waits here."""
    poll_at: float = 0.0
    poll_seconds: float = FIRST_POLL_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to tell."""
        return not (self.entering or self.leaving or self.is_waiting)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What becomes of a line if nobody was faster."""

    line: Line
    left: int
    """How many have left."""
    given: Sequence[Request]
    """The first of those that enter: they have a place."""
    refused: Sequence[tuple[Request, Rest]]
    wait: Wait | None
    allowed: int


# What is known of hosts, as of the last look

LATE_SECONDS: Final = 0.5
"""An exchange that takes longer is not waited for."""
RETRY_SECONDS: Final = 1.0
"""Between two tries while the replica is on its own."""


_SEEN: Final = 4096
"""Hosts that are remembered."""
_SEEN_SECONDS: Final = SPARED_SECONDS / 2
"""For so long."""
_CLOCK_SECONDS: Final = 10.0
"""So long a look at the database's clock, and at who is dead, is good for."""
_SET_SECONDS: Final = 1.0
"""A clock that is so far back was set."""
_NOTHING: Final = HostRow("", "")


Swap = Callable[[Sequence[HostChange]], Awaitable[HostAnswer]]
"""`HostRows.swap`."""


class SharedRecords:
    """What this replica knows of what the replicas share of hosts: its last look, the clock, which are dead.

    Everything goes through `swap`, one exchange at a time. An exchange that fails, or takes longer than a
    request can wait for it, puts the replica on its own, and the next one that does neither ends that. For
    one event loop.

    Args:
        name: Gives the name of this replica; another one when it was taken for dead.
        swap: Asks the database.
        clock: Monotonic, in seconds.
    """

    def __init__(
        self, name: Callable[[], str], swap: Swap, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        self.is_alone = False
        """Whether what is shared cannot be reached."""
        self.on_alone: Callable[[], None] = lambda: None
        """Called when that begins."""
        self.exchanges = 0
        """How often the database was asked."""
        self.conflicts = 0
        """How many changes were refused, since others had been faster."""
        self._name = name
        self._swap = swap
        self._lock = asyncio.Lock()
        self._seen: OrderedDict[str, tuple[HostRow, float]] = OrderedDict()
        self._stamps = 0
        self._ahead_seconds = 0.0
        self._ahead_at = -math.inf
        self._looked_at = -math.inf
        self.lost: frozenset[str] = frozenset()
        """Replicas that were dead at the last look."""

    @property
    def replica(self) -> str:
        """The name of this replica."""
        return self._name()

    @property
    def is_current(self) -> bool:
        """Whether the clock and the dead were looked at lately."""
        return self.clock() - self._looked_at < _CLOCK_SECONDS

    def now(self) -> float:
        """Return the database's time, or a little less."""
        return self.clock() + self._ahead_seconds

    def row(self, name: str) -> HostRow:
        """Return what is known of a host as of the last look."""
        row, at = self._seen.get(name, (_NOTHING, 0.0))
        return row if self.clock() - at < _SEEN_SECONDS else _NOTHING

    def change(self, name: str, state: str, kept_until: float, notices: Sequence[str] = ()) -> HostChange:
        """Return a change of what `row` returns; one that changes nothing is in nobody's way."""
        row = self.row(name)
        self._stamps += 1
        stamp = row.stamp if state == row.state and row.stamp else f"{self.replica}/{self._stamps}"
        return HostChange(name, row.stamp, stamp, state, kept_until, tuple(notices))

    async def look(self) -> bool:
        """Look at the clock and at who is dead; return whether that could be done."""
        return await self.exchange(lambda: ()) is not None

    async def exchange(self, make: Callable[[], Sequence[HostChange]]) -> dict[str, bool] | None:
        """Put changes in the place of what they were made from; return which ones are there now.

        One that is late is told to `on_alone`, and its result comes all the same.

        Args:
            make: Returns the changes.

        Returns:
            By host; None where it failed: nobody knows then what has become of them.
        """
        async with self._lock:
            changes = make()
            self.exchanges += 1
            begun_at = self.clock()
            asking = asyncio.ensure_future(self._swap(changes))
            asking.add_done_callback(retrieve_failure)
            done, _ = await asyncio.wait({asking}, timeout=LATE_SECONDS)
            if not done:
                self.go_alone("the database does not answer in time")
            try:
                answer = await asyncio.shield(asking)
            except (StoreError, OverloadedError) as exc:
                self.go_alone(str(exc))
                return None
            self._look(answer)
            if done and self.is_alone:
                self.is_alone = False
                log.info("hosts.shared", seconds=round(self.clock() - begun_at, 3))
            results = {each.name: answer.rows[each.name].stamp == each.stamp for each in changes}
            self.conflicts += sum(not is_there for is_there in results.values())
            return results

    def _look(self, answer: HostAnswer) -> None:
        """Keep what was answered."""
        at = self._looked_at = self.clock()
        ahead_seconds = answer.now - at
        # What is answered is as old as its way: of the looks of some seconds the one that took least time is
        # the best, unless the database's clock was set.
        gain_seconds = ahead_seconds - self._ahead_seconds
        if not -_SET_SECONDS < gain_seconds < 0 or at - self._ahead_at > _CLOCK_SECONDS:
            self._ahead_seconds, self._ahead_at = ahead_seconds, at
        self.lost = answer.lost - {self.replica}
        for name, row in answer.rows.items():
            self._seen.pop(name, None)
            self._seen[name] = (row, at)
        while len(self._seen) > _SEEN:
            self._seen.popitem(last=False)

    def go_alone(self, reason: str) -> None:
        """Go by this replica's own rules until an exchange is made in time."""
        if not self.is_alone:
            self.is_alone = True
            log.warning("hosts.unshared", reason=reason)
        self.on_alone()


# The turns at a web archive

_MINUTE_SECONDS: Final = 60.0
_MAX_TRIES: Final = 8
"""Of one turn, where others are faster."""


class ReplicaTurns:
    """The turns at one web archive that all replicas have together (R33).

    A replica that takes one when all of a minute are taken reserves the first that there will be: one
    exchange a turn, and nobody is passed over.

    Args:
        records: What is known of hosts, and of this.
        archive: Its URL.
        per_minute: How many turns any minute has.
    """

    def __init__(self, records: SharedRecords, archive: str, *, per_minute: int) -> None:
        self._records = records
        self._name = f"turns at {archive}"  # no host has a name with spaces
        self._per_minute = per_minute

    async def reserve(self) -> float:
        """Take the next turn, and return in how many seconds it is; 0 where nobody can say."""
        records = self._records
        turn_at = 0.0

        def make() -> list[HostChange]:
            nonlocal turn_at
            now = records.now()
            taken = json.loads(records.row(self._name).state or "[]")
            turn_at = next_turn(taken, self._per_minute, now=now)
            state = json.dumps([*taken, turn_at][-self._per_minute :])
            return [records.change(self._name, state, turn_at + _MINUTE_SECONDS)]

        for _ in range(_MAX_TRIES):
            if records.is_alone:
                break
            if not records.is_current:
                await records.look()
                continue
            results = await records.exchange(make)
            if results and results[self._name]:
                return max(0.0, turn_at - records.now())
        return 0.0


def next_turn(taken: Sequence[float], per_minute: int, *, now: float) -> float:
    """Return when there is one more turn, those that were taken or reserved being these, in order."""
    if len(taken) < per_minute:
        return now
    return max(now, taken[-per_minute] + _MINUTE_SECONDS)
