"""What is known of one host, and what follows from it for the next request.

It holds for the requests of one process (`wholefeed.fetch.hosts.gate`) and for those of many that share what
they know (`wholefeed.fetch.hosts.places`): who counts them, and by which clock, is not its subject.

    host = Host("example.org", Pace(4))
    start = host.begin(443, now=10.0)
    host.learn(start, Outcome(is_strained=True, rest_seconds=60.0), now=11.0)
    assert host.rest(443, is_new=False, now=12.0) == Rest("host-backoff", 59.0)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Self

from wholefeed.fetch.hosts.breaker import UNHEARD, Breaker
from wholefeed.fetch.hosts.pace import Pace

BACKOFF_STATUSES: Final = frozenset({429, 503})
"""Signs of strain, whose Retry-After counts for the whole host (docs/faults.md row 55)."""

TIMEOUTS: Final = frozenset({"timeout", "dns-timeout"})
"""Slugs that are signs of strain too."""

BACKOFF: Final = "host-backoff"
"""Slug of what a host is spared because it asked for that."""

_MAX_PORTS: Final = 64
"""Of one host that are remembered for having failed."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A request may not be begun: why, and for how long."""

    slug: str
    """`BACKOFF`, or that of the latest failure."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Start:
    """How a request was begun."""

    port: int
    at: float
    is_exception: bool = False
    """Whether it was begun for a document that was never seen though the host had asked for rest."""
    is_probe: bool = False
    """Whether it finds out if a port can be reached again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a request found out about its host."""

    slug: str = ""
    """Of the failure where no whole answer came."""
    is_heard: bool = True
    """Whether an answer has begun."""
    is_strained: bool = False
    """Whether the status of the answer is one of `BACKOFF_STATUSES`."""
    rest_seconds: float | None = None
    """For how long it asks that the host be left alone (Retry-After)."""

    @property
    def is_good(self) -> bool:
        """Whether it says nothing that others must know."""
        return not self.slug and not self.is_strained and self.rest_seconds is None


class Change(Enum):
    """What became of a port."""

    RECOVERED = "recovered"
    RESTED = "rested"


@dataclass(slots=True, eq=False)
class Host:
    """What is known of one host. Instants are those of the clock of whoever holds it."""

    name: str
    pace: Pace
    next_start_at: float = 0.0
    blocked_until: float = 0.0
    closed_until: float = 0.0
    """As `blocked_until`, for documents that were never seen too."""
    breakers: dict[int, Breaker] = field(default_factory=dict)
    """By port; of those where something has failed."""

    def is_unremarkable(self, now: float) -> bool:
        """Whether there is nothing to remember of it."""
        is_waited_for = now < self.next_start_at or now < self.blocked_until
        return self.pace.is_usual and not (is_waited_for or self.breakers)

    def rest(self, port: int, *, is_new: bool, now: float) -> Rest | None:
        """Return why a request may not be begun, if it may not; `is_new` as in `Waiter`."""
        blocked_until = self.closed_until if is_new else self.blocked_until
        if now < blocked_until:
            return Rest(BACKOFF, blocked_until - now)
        breaker = self.breakers.get(port)
        if breaker is None or (seconds := breaker.refused_seconds(now)) <= 0:
            return None
        return Rest(breaker.reason, seconds)

    def rest_seconds(self, port: int, now: float) -> float:
        """Return for how long a host, or a port of it, is left alone; 0 or less when it is not."""
        breaker = self.breakers.get(port)
        return max(self.blocked_until - now, 0.0 if breaker is None else breaker.refused_seconds(now))

    def begin(self, port: int, *, now: float, interval_seconds: float = 0.0) -> Start:
        """A request begins; the next one may after the interval."""
        if interval_seconds > 0:
            self.next_start_at = now + interval_seconds
        breaker = self.breakers.get(port)
        is_probe = breaker is not None and breaker.begun()
        return Start(port, now, is_exception=now < self.blocked_until, is_probe=is_probe)

    def block(self, until: float) -> None:
        """Leave the host alone until then. The latest instant counts."""
        self.blocked_until = max(self.blocked_until, until)

    def learn(self, start: Start, outcome: Outcome, *, now: float) -> Change | None:
        """A request has found this out; return what has become of its port."""
        if outcome.is_heard or outcome.slug not in UNHEARD:
            change = self._heard(start.port) if self.breakers else None
        else:
            change = self._unheard(start.port, outcome.slug, now)
        if outcome.is_strained or outcome.slug in TIMEOUTS:
            self.pace.strained(started_at=start.at, now=now)
        elif not outcome.slug:
            self.pace.answered()
        if outcome.rest_seconds is not None:
            self.block(now + outcome.rest_seconds)
        if outcome.is_strained and start.is_exception:
            self.closed_until = self.blocked_until
        return change

    def give_up(self, start: Start) -> None:
        """A request has ended and says nothing about the host."""
        breaker = self.breakers.get(start.port)
        if start.is_probe and breaker is not None:
            breaker.given_up()

    def obey(self, rest: Rest, port: int, *, is_new: bool, now: float) -> Change | None:
        """Others know that a request may not be begun, which was not known here."""
        until = now + rest.seconds
        if rest.slug == BACKOFF:
            self.block(until)
            self.closed_until = until if is_new else self.closed_until
            return None
        breaker = self._breaker(port)
        was_closed = breaker.is_closed
        breaker.rest(rest.slug, until)
        return Change.RESTED if was_closed else None

    def state(self) -> dict[str, Any]:
        """Return what is known, as JSON has it; what is usual is left out."""
        instants = {name: value for name in _INSTANTS if (value := getattr(self, name))}
        ports = {str(port): breaker.state() for port, breaker in self.breakers.items()}
        pace = {} if self.pace.is_usual else {"pace": self.pace.state()}
        return instants | pace | ({"ports": ports} if ports else {})

    @classmethod
    def from_state(cls, name: str, most: int, state: dict[str, Any]) -> Self:
        """Return a host of which `state` gave this; so many requests at once are usual."""
        host = cls(name, Pace.from_state(most, state.get("pace", {})))
        for instant in _INSTANTS:
            setattr(host, instant, state.get(instant, 0.0))
        ports = state.get("ports", {})
        host.breakers = {int(port): Breaker.from_state(each) for port, each in ports.items()}
        return host

    def _heard(self, port: int) -> Change | None:
        """Something was heard of a port: it is as good as any."""
        breaker = self.breakers.pop(port, None)
        return Change.RECOVERED if breaker is not None and not breaker.is_closed else None

    def _unheard(self, port: int, slug: str, now: float) -> Change | None:
        breaker = self._breaker(port)
        was_closed = breaker.is_closed
        breaker.failed(slug, now=now)
        return Change.RESTED if was_closed and not breaker.is_closed else None

    def _breaker(self, port: int) -> Breaker:
        if port not in self.breakers and len(self.breakers) >= _MAX_PORTS:
            del self.breakers[next(iter(self.breakers))]
        return self.breakers.setdefault(port, Breaker())


_INSTANTS: Final = ("next_start_at", "blocked_until", "closed_until")
