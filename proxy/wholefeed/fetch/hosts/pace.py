"""How many requests a host may be asked at once: more while it answers well, half when it shows strain.

Additive increase and multiplicative decrease, as in RFC 5681, section 3.1: after as many good answers as
requests are allowed at once, one more is; a sign of strain (429, 503, a time-out) halves them. Requests that
were under way when they were halved say nothing new: what fails together counts once.

    pace = Pace(most=4)
    pace.strained(started_at=10.0, now=12.0)
    assert pace.allowed == 2
"""

from __future__ import annotations

import math
from typing import Any, Self


class Pace:
    """The pace of one host; begins at the most.

    Args:
        most: Requests at once at most (`fetch.concurrency_per_host`); at least 1.
    """

    __slots__ = ("_good", "_halved_at", "allowed", "is_limited", "most")

    def __init__(self, most: int) -> None:
        assert most >= 1, "the configuration is checked"
        self.most = most
        self.allowed = most
        self.is_limited = False
        """Whether it was told to allow no more than so many."""
        self._good = 0
        self._halved_at = -math.inf

    @property
    def is_usual(self) -> bool:
        """Whether it is as it began."""
        return self.allowed == self.most and not self.is_limited

    def limit(self, most: int | None) -> None:
        """Allow no more than so many from now on; None: as many as before."""
        self.most = self.most if most is None else min(self.most, most)
        self.is_limited = self.is_limited or most is not None
        self.allowed = min(self.allowed, self.most)

    def answered(self) -> None:
        """A request was answered well."""
        self._good += 1
        if self._good >= self.allowed:
            self._good = 0
            self.allowed = min(self.allowed + 1, self.most)

    def strained(self, *, started_at: float, now: float) -> None:
        """A request that started then was turned away, or was not answered in time. Both in seconds."""
        if started_at < self._halved_at:
            return
        self._halved_at = now
        self._good = 0
        self.allowed = max(1, self.allowed // 2)

    def follow(self, allowed: int) -> None:
        """Others know how many requests it bears at once."""
        self.allowed = max(1, min(allowed, self.most))

    def state(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        state: dict[str, Any] = {"allowed": self.allowed, "good": self._good}
        if self.is_limited:
            state["limit"] = self.most
        if self._halved_at > -math.inf:
            state["halved_at"] = self._halved_at
        return state

    @classmethod
    def from_state(cls, most: int, state: dict[str, Any]) -> Self:
        """Return a pace of which `state` gave this, where so many at once are the most."""
        pace = cls(most)
        pace.limit(state.get("limit"))
        pace.allowed = min(state.get("allowed", pace.most), pace.most)
        pace._good = state.get("good", 0)
        pace._halved_at = state.get("halved_at", -math.inf)
        return pace
