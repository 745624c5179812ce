"""What is known of a publisher's host, and the decision about its next request. Pure.

    host = Host("example.org", Pace(4))
    start = host.begin(443, now=10.0)
    host.learn(start, now=11.0, is_strained=True, rest_seconds=60.0)
    assert host.rest(443, is_new=False, now=12.0) == ("host-backoff", 59.0)

How many requests a host gets at once is its `Pace`; whether a port of it is asked at all, a `Breaker`. Of
several replicas one asks a host at a time, and passes its knowledge on (`as_text`, `take_over`).
Instants are seconds of one clock.
"""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Self

BACKOFF_STATUSES: Final = frozenset({429, 503})
"""Signs of strain, whose Retry-After counts for the whole host (docs/faults.md row 55)."""

TIMEOUTS: Final = frozenset({"timeout", "dns-timeout"})
"""Slugs that are signs of strain too."""

BACKOFF: Final = "host-backoff"
"""Slug of what a host is spared because it asked for that."""


class Start(NamedTuple):
    """The start of a request."""

    port: int
    at: float
    is_exception: bool = False
    """Whether it was begun for a document that was never seen though the host had asked for rest."""
    is_probe: bool = False
    """Whether it finds out if a port can be reached again."""


Change = Literal["", "recovered", "rested"]
"""What became of a port."""

_MAX_PORTS: Final = 64
"""Of one host that are remembered for having failed."""


@dataclass(slots=True, eq=False)
class Host:
    """One host: what is known of it, and the requests to it."""

    name: str
    pace: Pace
    next_start_at: float = 0.0
    blocked_until: float = 0.0
    closed_until: float = 0.0
    """As `blocked_until`, for documents that were never seen too."""
    breakers: dict[int, Breaker] = field(default_factory=dict)
    """By port; of those where something has failed."""
    running: int = 0
    """Requests under way."""
    waiting: deque[Any] = field(default_factory=deque)
    """Requests in its queue, as the gate has them."""

    @property
    def is_busy(self) -> bool:
        return self.running > 0 or bool(self.waiting)

    def is_unremarkable(self, now: float) -> bool:
        is_waited_for = now < self.next_start_at or now < self.blocked_until
        is_usual = self.pace.allowed == self.pace.most and not self.pace.is_limited
        return is_usual and not (is_waited_for or self.breakers)

    def rest(self, port: int, *, is_new: bool, now: float) -> tuple[str, float] | None:
        """Return why a request may not be begun (`BACKOFF`, or the slug of the latest failure), and how long.

        `is_new` says whether it is for a subscription document that was never seen. What one URL was told
        says nothing of another, so each such document is asked for once, unless one was answered like the
        first.
        """
        blocked_until = self.closed_until if is_new else self.blocked_until
        if now < blocked_until:
            return BACKOFF, blocked_until - now
        breaker = self.breakers.get(port)
        if breaker is None or (seconds := breaker.refused_seconds(now)) <= 0:
            return None
        return breaker.reason, seconds

    def rest_seconds(self, port: int, now: float) -> float:
        """Return for how long a host, or a port of it, is left alone; 0 or less when it is not."""
        breaker = self.breakers.get(port)
        return max(self.blocked_until - now, 0.0 if breaker is None else breaker.refused_seconds(now))

    def begin(self, port: int, *, now: float, interval_seconds: float = 0.0) -> Start:
        """A request begins; the next one may after the interval."""
        if interval_seconds > 0:
            self.next_start_at = now + interval_seconds
        is_probe = False
        if (breaker := self.breakers.get(port)) and not breaker.is_closed:
            breaker.is_probing = is_probe = True
        return Start(port, now, is_exception=now < self.blocked_until, is_probe=is_probe)

    def learn(
        self,
        start: Start,
        *,
        now: float,
        slug: str = "",
        is_heard: bool = True,
        is_strained: bool = False,
        rest_seconds: float | None = None,
    ) -> Change:
        """A request has ended with a result; return whether its port changed, and how.

        `slug` is that of the failure where no whole answer came, `is_heard` whether one has begun,
        `is_strained` whether its status is one of `BACKOFF_STATUSES`. It asks to be left alone for
        `rest_seconds` (Retry-After); the latest end counts.
        """
        change: Change = ""
        if not is_heard and slug in UNHEARD:
            change = self._unheard(start.port, slug, now)
        elif (breaker := self.breakers.pop(start.port, None)) and not breaker.is_closed:
            change = "recovered"  # a port that was heard of is as good as any
        if is_strained or slug in TIMEOUTS:
            self.pace.note_strain(started_at=start.at, now=now)
        elif not slug:
            self.pace.note_answer()
        if rest_seconds is not None:
            self.blocked_until = max(self.blocked_until, now + rest_seconds)
        if is_strained and start.is_exception:
            self.closed_until = self.blocked_until
        return change

    def give_up(self, start: Start) -> None:
        """A request has ended and says nothing about the host."""
        if start.is_probe and (breaker := self.breakers.get(start.port)):
            breaker.is_probing = False  # the next request is one

    def as_text(self, *, now: float) -> str:
        """Return what is known, for another process that asks the host from now on; empty: nothing is."""
        if self.is_unremarkable(now):
            return ""
        instants = {name: value - now for name in _INSTANTS if (value := getattr(self, name)) > now}
        ports = {str(port): breaker.state(now) for port, breaker in self.breakers.items()}
        return _ENCODER.encode({"version": _VERSION, "pace": self.pace.state(now), "ports": ports} | instants)

    def take_over(self, text: str, *, age_seconds: float, now: float) -> None:
        """Take over the knowledge of the process that asked the host before; of another version nothing.

        `text` was made there by `as_text`, so many seconds ago.
        """
        state = json.loads(text or "{}")
        if state.get("version") != _VERSION:
            return
        then = now - age_seconds
        for name in _INSTANTS:
            setattr(self, name, then + state[name] if name in state else 0.0)
        self.pace = Pace(self.pace.most)
        self.pace.take_over(state["pace"], then)
        self.breakers = {int(port): Breaker.from_state(each, then) for port, each in state["ports"].items()}

    def _unheard(self, port: int, slug: str, now: float) -> Change:
        if port not in self.breakers and len(self.breakers) >= _MAX_PORTS:
            del self.breakers[next(iter(self.breakers))]
        breaker = self.breakers.setdefault(port, Breaker())
        was_closed = breaker.is_closed
        breaker.note_failure(slug, now=now)
        return "rested" if was_closed and not breaker.is_closed else ""


_INSTANTS: Final = ("next_start_at", "blocked_until", "closed_until")
_VERSION: Final = 1
"""Of the text. While replicas are upgraded one by one, each goes by what its own kind has written."""
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))

# How many requests at once


@dataclass(slots=True, eq=False)
class Pace:
    """How many requests a host may be asked at once: more while it answers well, half when it shows strain.

    Additive increase and multiplicative decrease, as in RFC 5681, section 3.1: after as many good answers as
    requests are allowed at once, one more is; a sign of strain (429, 503, a time-out) halves them. Requests
    that were under way when they were halved say nothing new: what fails together counts once.

        pace = Pace(4)                                  # fetch.concurrency_per_host
        pace.strained(started_at=10.0, now=12.0)
        assert pace.allowed == 2
    """

    most: int
    allowed: int = field(init=False)
    is_limited: bool = False
    """Whether it was told to allow no more than so many."""
    good: int = 0
    """Good answers since `allowed` has changed."""
    halved_at: float = -math.inf

    def __post_init__(self) -> None:
        self.allowed = self.most

    def limit(self, most: int | None) -> None:
        """Allow no more than so many from now on; None: as many as before."""
        if most is not None:
            self.is_limited = True
            self.most = min(self.most, most)
            self.allowed = min(self.allowed, self.most)

    def note_answer(self) -> None:
        self.good += 1
        if self.good >= self.allowed:
            self.good = 0
            self.allowed = min(self.allowed + 1, self.most)

    def note_strain(self, *, started_at: float, now: float) -> None:
        """A request that started then was turned away, or was not answered in time."""
        if started_at >= self.halved_at:
            self.halved_at = now
            self.good = 0
            self.allowed = max(1, self.allowed // 2)

    def state(self, now: float) -> dict[str, Any]:
        """Return it as JSON has it, its instants counted from now."""
        state: dict[str, Any] = {"allowed": self.allowed, "good": self.good}
        if self.is_limited:
            state["limit"] = self.most
        if self.halved_at > -math.inf:
            state["halved_at"] = self.halved_at - now
        return state

    def take_over(self, state: dict[str, Any], then: float) -> None:
        """Be as the pace was of which `state` gave this at an instant."""
        self.limit(state.get("limit"))
        self.allowed = min(state["allowed"], self.most)
        self.good = state["good"]
        self.halved_at = then + state.get("halved_at", -math.inf)


# Whether it is asked at all

FAILURES_TO_REST: Final = 5
"""Failures in a row."""

PAUSE_SECONDS: Final = 60.0
"""docs/faults.md row 21: also how long a name without an address is not looked up again."""

_PROBE_SECONDS: Final = 1.0

NAME_FAILURES: Final = frozenset({"dns-error", "dns-timeout"})
UNHEARD: Final = NAME_FAILURES | {"connection-failed", "timeout"}
"""Slugs of failures that count, where no answer had begun."""


@dataclass(slots=True, eq=False)
class Breaker:
    """Whether a port of a host that fails is asked at all; begins closed.

    CLOSED    requests go through; those in a row of which nothing was heard are counted
              -> RESTING at `FAILURES_TO_REST` of them, or at once where the name has no address
    RESTING   no request goes through for `PAUSE_SECONDS`
              -> PROBING when one is begun after that
    PROBING   that one is under way, no other goes through
              -> RESTING when nothing is heard, or, its pause over, when it was given up

    When something is heard, its host drops it: a port without one is as good as any. An answer is an answer,
    whatever its status: how a host that answers is treated is the subject of `Pace`.
    """

    reason: str = ""
    """Slug of the latest failure."""
    failures: int = 0
    rests_until: float | None = None
    is_probing: bool = False

    @property
    def is_closed(self) -> bool:
        return self.rests_until is None

    def refused_seconds(self, now: float) -> float:
        """Return for how long no request goes through; 0 when one may be begun."""
        if self.rests_until is None:
            return 0.0
        return _PROBE_SECONDS if self.is_probing else max(0.0, self.rests_until - now)

    def note_failure(self, reason: str, *, now: float) -> None:
        """Nothing was heard of a request; the slug is one of `UNHEARD`."""
        self.reason = reason
        self.failures += 1
        if self.failures >= FAILURES_TO_REST or reason in NAME_FAILURES or not self.is_closed:
            self.rests_until = now + PAUSE_SECONDS
        self.is_probing = False

    def state(self, now: float) -> dict[str, Any]:
        """Return it as JSON has it, its instants counted from now; a probe ends with who made it."""
        rests_seconds = None if self.rests_until is None else self.rests_until - now
        return {"reason": self.reason, "failures": self.failures, "rests_seconds": rests_seconds}

    @classmethod
    def from_state(cls, state: dict[str, Any], then: float) -> Self:
        """Return a breaker of which `state` gave this at an instant."""
        seconds = state["rests_seconds"]
        return cls(state["reason"], state["failures"], None if seconds is None else then + seconds)
