"""How a request waits: for the refresh of a feed that is due, for the opening of a URL that leads to none.

    waiting = Waiting(context, running, openings, checks, stopping)
    feed, is_late = await waiting.ready(url, deadline, is_head=False)

Nothing is fetched by a request: it joins the refresh of a feed or the opening of a URL and waits for it as
long as it may; that goes on, whoever leaves (docs/faults.md rows 63, 64).
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any, Final

from wholefeed.core.refresh.port import RefreshRequest
from wholefeed.errors import NothingYetError, OverloadedError, UnknownFeedError
from wholefeed.futures import either_done
from wholefeed.service.checking import Checks
from wholefeed.service.context import RefreshContext
from wholefeed.service.opening import Opened, Openings
from wholefeed.service.running import Running
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feeds

_USUAL: Final = RefreshRequest()


class Waiting:
    """Waits for feeds that can be served; once `stopping` is done nobody waits for anything any more."""

    def __init__(
        self,
        context: RefreshContext,
        running: Running,
        openings: Openings,
        checks: Checks,
        stopping: asyncio.Future[None],
    ) -> None:
        self._store = context.store
        self._memory = context.memory
        self._sources = context.counts.sources
        self._running = running
        self._openings = openings
        self._checks = checks
        self._stopping = stopping

    async def ready(self, url: str, deadline: float, *, is_head: bool) -> tuple[FeedRow, bool]:
        """Return a feed that can be served, and whether its publisher was not heard of in time.

        It is waited for until the deadline, by the monotonic clock; `is_head` as `FeedService.answer` has it.

        Raises:
            DocumentError: There is none, and the publisher did not give one (in time: 504).
            OverloadedError: No walk can be begun now; the database does not answer.
        """
        held = self._memory.find(url)
        self._memory.note_asked(held)
        opened = self._openings.opened
        feed = held.snapshot.feed if held is not None else await self._store.find(url)
        if feed is None or not feed.digest:
            self._sources["publisher"] += 1
            return await self._first(url, deadline, not is_head, opened if feed is None else -1), False
        return feed, not is_head and await self._freshen(feed, deadline)

    # A feed that is known

    async def _freshen(self, feed: FeedRow, deadline: float) -> bool:
        """Refresh a feed whose time has come; return whether its publisher was not heard of in time."""
        is_due = self._running.is_due(feed)
        if self._checks.are_blind:  # nothing could be kept of what a publisher says
            return is_due
        if not is_due and self._running.running(feed.id) is None:
            self._sources["store"] += 1
            return False
        self._sources["publisher"] += 1
        flight = self._running.join(feed, _USUAL)
        await self._wait_for_refresh(feed.id, flight, deadline)
        if not is_due or flight.done():
            return False
        under_way = self._running.under_way(feed.id)
        return under_way is None or not under_way.is_confirmed

    async def _wait_for_refresh(self, feed_id: int, flight: asyncio.Task[None], deadline: float) -> None:
        self._memory.begin_waiting(feed_id)
        try:
            await self._wait(flight, deadline)
        finally:
            self._memory.end_waiting(feed_id)

    async def _wait(self, task: asyncio.Task[Any], deadline: float) -> None:
        """Wait for a task until the deadline, or until the program stops; never cancel it."""
        await either_done(task, self._stopping, deadline - time.monotonic())

    # A URL that leads to none yet, or to one of which nothing can be served

    async def _first(self, url: str, deadline: float, may_walk: bool, unknown_at: int) -> FeedRow:
        """Return the feed of a URL once something of it can be served; arguments as for `Openings.join`."""
        while not self._stopping.done():
            try:
                opening = self._openings.join(url, may_walk=may_walk, unknown_at=unknown_at)
                feed = await self._first_of(opening, deadline, may_walk)
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

    async def _first_of(
        self, opening: asyncio.Task[Opened], deadline: float, may_walk: bool
    ) -> FeedRow | None:
        """Wait for the opening of a URL and for the refresh that it begins; return what is known in time."""
        await self._wait(opening, deadline)
        if not opening.done():
            return None
        opened, flight = opening.result()
        if flight is None:
            return opened
        if may_walk and not flight.done():
            _ = self._running.join(opened, _USUAL)  # whoever opened it may want the head alone
        await self._wait_for_refresh(opened.id, flight, deadline)
        held = self._memory.of(opened.id)
        look = partial(feeds.find, feed=opened.id)
        feed = held.snapshot.feed if held else await self._store.read(look, is_single=True)
        if feed is None or flight.cancelled():
            raise UnknownFeedError(f"forgotten meanwhile: {opened.url}")
        if not feed.digest and flight.done():
            flight.result()
        return feed
