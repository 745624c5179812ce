"""The places at publishers' hosts that all replicas have together (`wholefeed.fetch.hosts.shared`).

    hosts = ReplicaHosts(SharedRecords(lambda: "a", rows.swap), limits)
    async with hosts.running():
        entry = await hosts.enter("example.org", 443, is_new=False, at_most=None)
        hosts.leave(entry, Outcome())

Requests that enter and leave are gathered while the database is asked for those before them, and then go
together, whatever their hosts: a request costs one exchange to enter and one to leave at the most, and one
more for each time that another replica was faster, or when nothing was asked for some seconds. Whoever has to
wait asks again at once when it is told that it is its turn (`wake`), else after a moment, once for all that
wait for a host here.

While the database does not answer in time nobody waits for it: requests go on by this replica's own rules.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from wholefeed.counts import Counts
from wholefeed.fetch.hosts.host import Outcome, Rest
from wholefeed.fetch.hosts.places import Asking, Limits, Places, Wait
from wholefeed.fetch.hosts.shared import Entry
from wholefeed.loggers import get_logger
from wholefeed.service.sharing.records import LATE_SECONDS, RETRY_SECONDS, SharedRecords
from wholefeed.store.postgres.hosts import HostChange

FIRST_POLL_SECONDS: Final = 0.02
LONGEST_POLL_SECONDS: Final = 0.25
"""Well below `CLAIM_SECONDS`, so that who waits keeps its turn."""
_POLL_GROWTH: Final = 1.6

MAX_LINES: Final = 4096
"""Hosts that something is to be told of while the database is away."""
_AFTER_ERROR_SECONDS: Final = 10.0
_MAX_AT_ONCE: Final = 128
"""Hosts in one exchange."""

log = get_logger()


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


class ReplicaHosts:
    """Belongs to one event loop.

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
        """A request is over; what it has found out, if anything."""
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
        """It stands in the database now."""
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
