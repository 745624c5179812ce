"""What goes on in a service at this moment, for whoever watches it."""

from __future__ import annotations

from collections.abc import Sized

from wholefeed.service.published import Published, Usage
from wholefeed.service.refresh.context import RefreshContext
from wholefeed.service.refresh.running import Running


class Load:
    """Belongs to one service; each attribute says how it is now."""

    def __init__(
        self, context: RefreshContext, running: Running, openings: Sized, published: Published
    ) -> None:
        self._context = context
        self._running = running
        self._openings = openings
        self._published = published

    @property
    def memory(self) -> Usage:
        """What is held in memory of published feeds, for answers and refreshes."""
        usage = self._published.usage
        return usage._replace(bytes=usage.bytes + self._context.beginnings.parsed.bytes)

    @property
    def refreshes(self) -> int:
        """Feeds being refreshed."""
        return len(self._running)

    @property
    def openings(self) -> int:
        """URLs being opened that lead to no known feed."""
        return len(self._openings)

    @property
    def walks(self) -> int:
        """Walks that use the network."""
        return self._running.walking

    @property
    def waiting_walks(self) -> int:
        """Walks that wait for their turn, those of polls not counted."""
        return self._running.waiting

    @property
    def requests(self) -> int:
        """Requests to publishers under way."""
        return self._context.source.queue[0]

    @property
    def waiting_requests(self) -> int:
        """Requests to publishers that wait for a place."""
        return self._context.source.queue[1]

    @property
    def workers(self) -> tuple[int, int]:
        """Processes that work on documents: how many there are, and how many are busy."""
        return self._context.source.work.processes
