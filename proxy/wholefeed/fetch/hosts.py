"""The known state of a publisher's host, and decisions about its next request. Pure.

`Pace` limits requests at once, `Breaker` blocks an unreachable port. Of several replicas one asks a host at
a time, and hands its knowledge on. Instants are seconds of one clock.
"""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Self

BACKOFF_STATUSES: Final = frozenset({429, 503})
"""Signs of strain; their Retry-After counts for the whole host (docs/faults.md row 55)."""

TIMEOUTS: Final = frozenset({"timeout", "dns-timeout"})

BACKOFF: Final = "host-backoff"


class Start(NamedTuple):
    port: int
    at: float
    is_exception: bool = False
    """Whether the host rested, but the document was never seen before."""
    is_probe: bool = False


Change = Literal["", "recovered", "rested"]

_MAX_PORTS: Final = 64


@dataclass(slots=True, eq=False)
class Host:
    name: str
    pace: Pace
    next_start_at: float = 0.0
    blocked_until: float = 0.0
    closed_until: float = 0.0
    """Like `blocked_until`, for never seen documents too."""
    breakers: dict[int, Breaker] = field(default_factory=dict)
    """By port; only ports with failures."""
    running: int = 0
    waiting: deque[Any] = field(default_factory=deque)

    @property
    def is_busy(self) -> bool:
        return self.running > 0 or bool(self.waiting)

    def is_unremarkable(self, now: float) -> bool:
        is_waited_for = now < self.next_start_at or now < self.blocked_until
        is_usual = self.pace.allowed == self.pace.most and not self.pace.is_limited
        return is_usual and not (is_waited_for or self.breakers)

    def rest(self, port: int, *, is_new: bool, now: float) -> tuple[str, float] | None:
        """Return why and for how many seconds a request must wait; None: it may begin.

        `is_new` marks a never seen subscription document, which even a resting host is asked for once.
        """
        # A pause for one URL says nothing of another, so each new document is asked for once.
        blocked_until = self.closed_until if is_new else self.blocked_until
        if now < blocked_until:
            return BACKOFF, blocked_until - now
        breaker = self.breakers.get(port)
        if breaker is None or (seconds := breaker.refused_seconds(now)) <= 0:
            return None
        return breaker.reason, seconds

    def rest_seconds(self, port: int, now: float) -> float:
        breaker = self.breakers.get(port)
        return max(self.blocked_until - now, 0.0 if breaker is None else breaker.refused_seconds(now))

    def begin(self, port: int, *, now: float, interval_seconds: float = 0.0) -> Start:
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
        """Note the end of a request; return the change of its port.

        `slug` names the failure if there is no whole response, `is_heard` says whether one had begun,
        `is_strained` whether its status is one of `BACKOFF_STATUSES`. `rest_seconds` is its Retry-After.
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
        if start.is_probe and (breaker := self.breakers.get(start.port)):
            breaker.is_probing = False  # the next request is one

    def as_text(self, *, now: float) -> str:
        """Return the knowledge for the host's next process; empty: none."""
        if self.is_unremarkable(now):
            return ""
        instants = {name: value - now for name in _INSTANTS if (value := getattr(self, name)) > now}
        ports = {str(port): breaker.state(now) for port, breaker in self.breakers.items()}
        return _ENCODER.encode({"version": _VERSION, "pace": self.pace.state(now), "ports": ports} | instants)

    def take_over(self, text: str, *, age_seconds: float, now: float) -> None:
        """Take over another process's `as_text`; ignore other versions."""
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
# In a rolling upgrade, replicas use only texts of their own version.
_VERSION: Final = 1
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))

# How many requests at once


@dataclass(slots=True, eq=False)
class Pace:
    """The number of requests at once: one more after good responses, half after a 429, a 503 or a time-out.

    As in RFC 5681, section 3.1, it grows after as many good responses as it allows.
    """

    most: int
    allowed: int = field(init=False)
    is_limited: bool = False
    good: int = 0
    halved_at: float = -math.inf

    def __post_init__(self) -> None:
        self.allowed = self.most

    def limit(self, most: int | None) -> None:
        """Allow at most so many from now on; None: no change."""
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
        # What was under way at a halving says nothing new: what fails together counts once.
        if started_at >= self.halved_at:
            self.halved_at = now
            self.good = 0
            self.allowed = max(1, self.allowed // 2)

    def state(self, now: float) -> dict[str, Any]:
        state: dict[str, Any] = {"allowed": self.allowed, "good": self.good}
        if self.is_limited:
            state["limit"] = self.most
        if self.halved_at > -math.inf:
            state["halved_at"] = self.halved_at - now
        return state

    def take_over(self, state: dict[str, Any], then: float) -> None:
        """Restore another pace's `state`, taken at the instant `then`."""
        self.limit(state.get("limit"))
        self.allowed = min(state["allowed"], self.most)
        self.good = state["good"]
        self.halved_at = then + state.get("halved_at", -math.inf)


# Whether it is asked at all

FAILURES_TO_REST: Final = 5

PAUSE_SECONDS: Final = 60.0
"""Also the pause for names without an address (docs/faults.md row 21)."""

_PROBE_SECONDS: Final = 1.0

NAME_FAILURES: Final = frozenset({"dns-error", "dns-timeout"})
UNHEARD: Final = NAME_FAILURES | {"connection-failed", "timeout"}
"""Failures that count, if no response had begun."""


@dataclass(slots=True, eq=False)
class Breaker:
    """A breaker for one port of a failing host; begins closed.

        CLOSED    requests go through
                  -> RESTING after `FAILURES_TO_REST` failures in a row, or one of `NAME_FAILURES`
        RESTING   none goes through for `PAUSE_SECONDS`
                  -> PROBING with the next request
        PROBING   no other goes through
                  -> RESTING after a failure, or when the probe is given up

    Any response, with any status, makes the host drop the breaker.
    """

    reason: str = ""
    failures: int = 0
    rests_until: float | None = None
    is_probing: bool = False

    @property
    def is_closed(self) -> bool:
        return self.rests_until is None

    def refused_seconds(self, now: float) -> float:
        if self.rests_until is None:
            return 0.0
        return _PROBE_SECONDS if self.is_probing else max(0.0, self.rests_until - now)

    def note_failure(self, reason: str, *, now: float) -> None:
        """Count a request without a response; `reason` is one of `UNHEARD`."""
        self.reason = reason
        self.failures += 1
        if self.failures >= FAILURES_TO_REST or reason in NAME_FAILURES or not self.is_closed:
            self.rests_until = now + PAUSE_SECONDS
        self.is_probing = False

    def state(self, now: float) -> dict[str, Any]:
        """Return the breaker as JSON, instants relative to now, without its probe."""
        rests_seconds = None if self.rests_until is None else self.rests_until - now
        return {"reason": self.reason, "failures": self.failures, "rests_seconds": rests_seconds}

    @classmethod
    def from_state(cls, state: dict[str, Any], then: float) -> Self:
        seconds = state["rests_seconds"]
        return cls(state["reason"], state["failures"], None if seconds is None else then + seconds)
