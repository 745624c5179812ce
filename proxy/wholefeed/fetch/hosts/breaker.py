"""Whether a host that fails is asked at all: a circuit breaker, one for each host and port.

CLOSED    requests go through; `failures` counts those in a row of which nothing was heard
          -> RESTING at `LIMIT` of them, or at once where the name has no address
RESTING   no request goes through for `PAUSE_SECONDS`
          -> PROBING when one is begun after that
PROBING   that one is under way, no other goes through
          -> RESTING when nothing is heard, or, its pause over, when it was given up

When something is heard, whoever holds the breaker drops it: a host without one is as good as any.

An answer is an answer, whatever its status: how a host that answers is treated is the pace's subject.

    breaker = Breaker()
    breaker.failed("connection-failed", now=10.0)
    assert breaker.refused_seconds(10.0) == 0
"""

from __future__ import annotations

from typing import Any, Final, Self

LIMIT: Final = 5
"""Failures in a row."""

PAUSE_SECONDS: Final = 60.0
"""docs/faults.md row 21: also how long a name without an address is not looked up again."""

NAME_FAILURES: Final = frozenset({"dns-error", "dns-timeout"})
UNHEARD: Final = NAME_FAILURES | {"connection-failed", "timeout"}
"""Slugs of failures that count, where no answer had begun."""

_PROBE_SECONDS: Final = 1.0


class Breaker:
    """The breaker of one host and port; begins closed. Instants are seconds of one clock."""

    __slots__ = ("_failures", "_is_probing", "_rests_until", "reason")

    def __init__(self) -> None:
        self._failures = 0
        self._rests_until: float | None = None
        self._is_probing = False
        self.reason = ""
        """Slug of the latest failure."""

    @property
    def is_closed(self) -> bool:
        """Whether requests go through."""
        return self._rests_until is None

    def refused_seconds(self, now: float) -> float:
        """Return for how long no request goes through; 0 when one may be begun."""
        if self._rests_until is None:
            return 0.0
        if self._is_probing:
            return _PROBE_SECONDS
        return max(0.0, self._rests_until - now)

    def begun(self) -> bool:
        """A request begins; return whether it is the probe."""
        self._is_probing = self._rests_until is not None
        return self._is_probing

    def failed(self, reason: str, *, now: float) -> None:
        """Nothing was heard of a request; the slug is one of `UNHEARD`."""
        self.reason = reason
        self._failures += 1
        if self._failures >= LIMIT or reason in NAME_FAILURES or not self.is_closed:
            self._rests_until = now + PAUSE_SECONDS
        self._is_probing = False

    def given_up(self) -> None:
        """The probe ended and says nothing about the host; the next request is one."""
        self._is_probing = False

    def rest(self, reason: str, until: float) -> None:
        """Others know that no request goes through until then."""
        self.reason = reason
        self._rests_until = max(until, self._rests_until or until)

    def state(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "reason": self.reason,
            "failures": self._failures,
            "rests_until": self._rests_until,
            "is_probing": self._is_probing,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return a breaker of which `state` gave this."""
        breaker = cls()
        breaker.reason = state["reason"]
        breaker._failures = state["failures"]
        breaker._rests_until = state["rests_until"]
        breaker._is_probing = state["is_probing"]
        return breaker
