"""Wait for a feed that can be served, within the time that whoever asks has.

    waiting = Waiting(context, running, openings, checks, stopping)
    feed, is_late = await waiting.ready(url, deadline, is_head=False)

Nothing is fetched here: one joins the flights of a feed and waits for them as long as one may. They go on.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from wholefeed.core.refresh.given import RefreshRequest
from wholefeed.errors import NothingYetError, OverloadedError, UnknownFeedError
from wholefeed.futures import either_done
from wholefeed.service.checking import Checks
from wholefeed.service.opening import Opened, Openings
from wholefeed.service.refresh.context import RefreshContext
from wholefeed.service.refresh.running import Running
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feeds

_USUAL: Final = RefreshRequest()


class Waiting:
    """Belongs to one service.

    Args:
        context: What the service works with.
        running: The refreshes under way.
        openings: How a URL becomes a feed.
        checks: Whether what is held in memory is still so.
        stopping: Done when the program is to stop: then nobody waits for anything any more.
    """

    def __init__(
        self,
        context: RefreshContext,
        running: Running,
        openings: Openings,
        checks: Checks,
        stopping: asyncio.Future[None],
    ) -> None:
        self._context = context
        self._store = context.store
        self._running = running
        self._openings = openings
        self._published = context.published
        self._checks = checks
        self._stopping = stopping

    async def known(self, url: str) -> FeedRow | None:
        """Return the feed that a URL leads to; None where nothing is stored for it."""
        return await self._store.find(url, is_first=True)

    async def ready(self, url: str, deadline: float, *, is_head: bool) -> tuple[FeedRow, bool]:
        """Return a feed that can be served, and whether its publisher was not heard of in time.

        Args:
            url: Canonical URL.
            deadline: Until when to wait for the publisher, by the monotonic clock.
            is_head: As `FeedService.answer` has it.

        Raises:
            DocumentError: There is none, and the publisher did not give one (in time: 504).
            OverloadedError: No walk can be begun now; the database does not answer.
        """
        held = self._published.find(url)
        made = self._openings.made.count
        feed = held.snapshot.feed if held is not None else await self.known(url)
        while feed is None and self._openings.made.has_come(url, made):
            made = self._openings.made.count
            feed = await self.known(url)
        if feed is None or not feed.digest:
            self._context.counts.given("publisher")
            return await self._first(url, deadline, not is_head, made if feed is None else -1), False
        return feed, not is_head and await self._freshen(feed, deadline)

    async def _first(self, url: str, deadline: float, may_walk: bool, unknown_at: int) -> FeedRow:
        """Have a feed that nothing can be served of yet."""
        while not self._stopping.done():
            try:
                opening = self._openings.join(url, may_walk=may_walk, unknown_at=unknown_at)
                feed = await self._opened(opening, deadline, may_walk)
            except UnknownFeedError:  # forgotten just now: once more from the beginning
                unknown_at = -1
                if time.monotonic() >= deadline:
                    raise
                continue
            if feed is not None and feed.digest:
                return feed
            break
        if self._stopping.done():
            raise OverloadedError("shutting down", slug="shutting-down")
        await self._checks.require_answer()  # perhaps it is the database that has taken all of the time
        raise NothingYetError("expected a feed in time, got nothing yet", url=url)

    async def _opened(self, opening: asyncio.Task[Opened], deadline: float, may_walk: bool) -> FeedRow | None:
        """Wait for the opening of a URL and for the refresh that it begins; return what is known in time."""
        await self.wait(opening, deadline)
        if not opening.done():
            return None
        opened, flight = opening.result()
        if flight is None:
            return opened
        if may_walk and not flight.done():
            _ = self._running.join(opened, _USUAL)  # whoever opened it may want the head alone
        with self._published.awaited(opened.id):
            await self.wait(flight, deadline)
        held = self._published.of(opened.id)
        feed = held.snapshot.feed if held else await self._store.read(lambda db: feeds.find(db, opened.id))
        if feed is None or flight.cancelled():
            raise UnknownFeedError(f"forgotten meanwhile: {opened.url}")
        if not feed.digest and flight.done():
            flight.result()
        return feed

    async def _freshen(self, feed: FeedRow, deadline: float) -> bool:
        """Refresh a feed whose time has come; return whether its publisher was not heard of in time."""
        is_due = self._running.is_due(feed)
        if self._checks.are_blind:  # nothing could be kept of what a publisher says
            return is_due
        if not is_due and self._running.running(feed.id) is None:
            self._context.counts.given("store")
            return False
        self._context.counts.given("publisher")
        flight = self._running.join(feed, _USUAL)
        with self._published.awaited(feed.id):
            await self.wait(flight, deadline)
        return is_due and not flight.done() and not self._running.is_confirmed(feed.id)

    async def wait(self, task: asyncio.Task[Any], deadline: float) -> None:
        """Wait for a task until the deadline, or until the program stops; never cancel it."""
        await either_done(task, self._stopping, deadline - time.monotonic())
