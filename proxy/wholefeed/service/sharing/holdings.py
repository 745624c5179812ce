"""What this replica holds: the leases that its tasks work under, and those that it has claimed for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from wholefeed.store.rows import FeedRow


class Holding:
    """A lease and the task that works under it.

    Args:
        name: Of the lease.
        token: Of its taking.
        tell: Says how far the work is, as text.
        task: The work; None where nothing is to be stopped when the lease is lost.
    """

    def __init__(
        self, name: str, token: str, tell: Callable[[], str], task: asyncio.Task[Any] | None = None
    ) -> None:
        self.name = name
        self.token = token
        self.tell = tell
        self.told = ""
        """What the others know."""
        self.is_lost = False
        """Whether somebody else may have it: then nothing is written any more."""
        self._task = task

    def lose(self) -> None:
        """Stop the work: it is not this replica's any more."""
        self.is_lost = True
        if self._task is not None:
            self._task.cancel()


class Claim:
    """A lease on a feed that was taken for a refresh which is about to begin.

    Args:
        token: Of its taking.
        feed: As it was then.
    """

    def __init__(self, token: str, feed: FeedRow | None) -> None:
        self.token = token
        self.feed = feed
        self.claimed_at = time.monotonic()
