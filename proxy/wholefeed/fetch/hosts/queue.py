"""The requests of this process at one host: those that run, and those that wait."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from wholefeed.errors import DocumentError, PublisherError, PublisherTimeoutError
from wholefeed.fetch.hosts.host import BACKOFF, TIMEOUTS, Host, Rest


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


@dataclass(slots=True, eq=False)
class Queue:
    """One host and what asks it."""

    host: Host
    running: int = 0
    waiting: deque[Waiter] = field(default_factory=deque)

    @property
    def is_busy(self) -> bool:
        """Whether requests run or wait."""
        return self.running > 0 or bool(self.waiting)

    def is_unremarkable(self, now: float) -> bool:
        """Whether there is nothing to remember of the host."""
        return not (self.running or self.waiting) and self.host.is_unremarkable(now)

    def may_start(self, now: float) -> bool:
        """Whether the host may be asked one more request at once."""
        return self.running < self.host.pace.allowed and now >= self.host.next_start_at

    def refusal(self, port: int, url: str, *, is_new: bool, now: float) -> DocumentError | None:
        """Return why a request may not be begun, if it may not; `is_new` as in `Waiter`."""
        rest = self.host.rest(port, is_new=is_new, now=now)
        return None if rest is None else refusal_of(rest, url)


def refusal_of(rest: Rest, url: str) -> DocumentError:
    """Return what a request for a host that is left alone is told."""
    seconds = rest.seconds
    if rest.slug == BACKOFF:
        message = f"the publisher asked not to be asked again for {seconds:.0f} s"
        return PublisherError(message, url=url, slug=BACKOFF, retry_after_seconds=seconds)
    error = PublisherTimeoutError if rest.slug in TIMEOUTS else PublisherError
    message = f"the host could not be reached a moment ago and is left alone for {seconds:.0f} s"
    return error(message, url=url, slug=rest.slug, retry_after_seconds=seconds)
