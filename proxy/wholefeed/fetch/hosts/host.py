"""What is known of one host: its pace, its queue, and whether it is left alone."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from wholefeed.errors import DocumentError, PublisherError, PublisherTimeoutError
from wholefeed.fetch.hosts.breaker import Breaker
from wholefeed.fetch.hosts.pace import Pace

BACKOFF_STATUSES: Final = frozenset({429, 503})
"""Signs of strain, whose Retry-After counts for the whole host (docs/faults.md row 55)."""

TIMEOUTS: Final = frozenset({"timeout", "dns-timeout"})
"""Slugs that are signs of strain too."""

_MAX_PORTS: Final = 64
"""Of one host that are remembered for having failed."""


@dataclass(slots=True, eq=False)
class Host:
    """What is known of one host. Instants are those of the gate's clock."""

    name: str
    pace: Pace
    running: int = 0
    waiting: deque[Waiter] = field(default_factory=deque)
    next_start_at: float = 0.0
    blocked_until: float = 0.0
    closed_until: float = 0.0
    """As `blocked_until`, for documents that were never seen too."""
    breakers: dict[int, Breaker] = field(default_factory=dict)
    """By port; of those where something has failed."""

    @property
    def is_busy(self) -> bool:
        """Whether requests run or wait."""
        return self.running > 0 or bool(self.waiting)

    def is_unremarkable(self, now: float) -> bool:
        """Whether there is nothing to remember of it."""
        is_waited_for = now < self.next_start_at or now < self.blocked_until
        is_usual = self.pace.allowed == self.pace.most and not self.pace.is_limited
        return is_usual and not (self.is_busy or is_waited_for or self.breakers)

    def may_start(self, now: float) -> bool:
        """Whether the host may be asked one more request at once."""
        return self.running < self.pace.allowed and now >= self.next_start_at

    def breaker(self, port: int) -> Breaker:
        """Return the breaker of a port where something has failed."""
        if port not in self.breakers and len(self.breakers) >= _MAX_PORTS:
            del self.breakers[next(iter(self.breakers))]
        return self.breakers.setdefault(port, Breaker())

    def refusal(self, waiter: Waiter, now: float) -> DocumentError | None:
        """Return why a request may not be begun, if it may not."""
        port, url = waiter.port, waiter.url
        blocked_until = self.closed_until if waiter.is_new else self.blocked_until
        if now < blocked_until:
            seconds = blocked_until - now
            message = f"the publisher asked not to be asked again for {seconds:.0f} s"
            return PublisherError(message, url=url, slug="host-backoff", retry_after_seconds=seconds)
        breaker = self.breakers.get(port)
        if breaker is None or (seconds := breaker.refused_seconds(now)) <= 0:
            return None
        error = PublisherTimeoutError if breaker.reason in TIMEOUTS else PublisherError
        message = f"the host could not be reached a moment ago and is left alone for {seconds:.0f} s"
        return error(message, url=url, slug=breaker.reason, retry_after_seconds=seconds)


@dataclass(slots=True, eq=False)
class Waiter:
    """A request in the queue of its host."""

    port: int
    url: str
    turn: asyncio.Future[Any]
    """Done with the request's slot when it may begin, or with the error that says why it may not."""
    is_new: bool = False
    """Whether it is for a subscription document that was never seen. What one URL was told says nothing of
    another, so each such document is asked for once, unless one was answered like the first."""
