"""The refreshes under way, at most one a feed, and what can be told of them meanwhile.

flight = running.join(feed, RefreshRequest())     # joins the one under way, else begins one
running.progress(feed.id)                         # of its walk
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog

from wholefeed.core.refresh.given import RefreshRequest
from wholefeed.core.refresh.progress import Progress
from wholefeed.core.terms import State
from wholefeed.errors import (
    DocumentError,
    LeaseLostError,
    OverloadedError,
    StoreError,
    UnknownFeedError,
    WorkError,
)
from wholefeed.loggers import get_logger
from wholefeed.service.documents.facts import OfferedCopy
from wholefeed.service.documents.subscription import Subscription
from wholefeed.service.refresh.context import RefreshContext
from wholefeed.service.refresh.flights import Flights
from wholefeed.service.refresh.refresh import Refresh
from wholefeed.service.sharing.progress import Elsewhere
from wholefeed.service.sharing.sharing import Wanted
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feeds

log = get_logger()

REST_SECONDS: Final = 60.0
"""After what a refresh brought could not be kept, or not be rendered."""


class Running:
    """Belongs to one service; ends with `close`."""

    def __init__(self, context: RefreshContext, *, on_end: Callable[[], None]) -> None:
        self._context = context
        self.on_end = [on_end]
        """Called at the end of each refresh."""
        self.on_elsewhere: Callable[[int], None] = lambda _: None
        """Told of each feed that another replica turns out to have refreshed."""
        self._flights: Flights[int, None] = Flights()
        self.running: Final = self._flights.running
        """Returns the refresh of a feed that is under way, if there is one."""
        self._running: dict[int, Refresh] = {}
        self._elsewhere: dict[int, Elsewhere] = {}
        """How far other replicas are with what is waited for here."""
        self._may_walk: dict[int, bool] = {}
        self._next: dict[int, RefreshRequest] = {}
        """What is to be done right after the refresh under way."""
        self._found: dict[int, Subscription] = {}
        """For the next refresh of a feed; no frame holds its body, which may be large."""
        self._copies: dict[int, Sequence[OfferedCopy]] = {}
        self._resting_until: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def walking(self) -> int:
        """How many walks use the network."""
        return sum(refresh.progress is not None for refresh in self._running.values())

    @property
    def waiting(self) -> int:
        """How many walks wait for their turn to use the network, those of polls not counted."""
        return sum(refresh.is_waiting for refresh in self._running.values())

    def waiting_at(self, site: str) -> int:
        """Return how many of them do at one site."""
        return sum(refresh.is_waiting and refresh.site == site for refresh in self._running.values())

    async def close(self) -> None:
        """Stop what is under way."""
        await self._flights.close()

    def join(
        self,
        feed: FeedRow,
        request: RefreshRequest,
        found: Subscription | None = None,
        copies: Sequence[OfferedCopy] = (),
    ) -> asyncio.Task[None]:
        """Return the refresh under way, else a new one.

        A request that the one under way does not meet is met right after it: to force or to be full, or to
        walk where that one may not.

        Args:
            feed: The feed.
            request: What is asked for beside the usual.
            found: The subscription document, when it has just been fetched.
            copies: Of documents that are missing, in a web archive; only where no refresh is under way.
        """
        is_new = self._flights.running(feed.id) is None
        if is_new:
            self._may_walk[feed.id] = request.may_walk
        elif request.is_forced or request.is_full or (request.may_walk and not self._may_walk[feed.id]):
            waiting = self._next.get(feed.id)
            self._next[feed.id] = request if waiting is None else waiting.merged(request)
        else:
            found = None  # the one under way has fetched its own
        if found is not None:
            self._found[feed.id] = found
            del found
        if copies:
            assert is_new, "who has copies waits for the end of the one under way"
            self._copies[feed.id] = copies
        flight = self._flights.join(feed.id, lambda: self._run(feed, request))
        if is_new:
            flight.add_done_callback(self._ended)
        return flight

    async def cancel(self, feed_id: int) -> None:
        """End the refresh of a feed that is being forgotten."""
        while (running := self._flights.running(feed_id)) is not None:
            self._next.pop(feed_id, None)
            self._found.pop(feed_id, None)
            running.cancel()
            await asyncio.wait({running})
        self._context.sharing.release(feed_id)
        self._may_walk.pop(feed_id, None)
        self._resting_until.pop(feed_id, None)

    def is_due(self, feed: FeedRow) -> bool:
        """Whether freshness has run out, or something that is stored has not been published yet.

        Freshness that reaches further than any could comes from a clock that has jumped. A
        publisher that failed is left alone until its next attempt, whatever is unfinished.
        """
        if self._resting_until and self.is_resting(feed.id):
            return False
        left_seconds = (feed.fresh_until or 0.0) - self._context.now()
        is_fresh = 0 < left_seconds <= self._context.longest_seconds
        is_whole = feed.visible_state is not State.LOADING and feed.revision == feed.published_revision
        return not (is_fresh and (is_whole or feed.is_stale))

    def is_resting(self, feed_id: int) -> bool:
        """Whether what was fetched a moment ago could not be kept or rendered."""
        return time.monotonic() < self._resting_until.get(feed_id, 0.0)

    def is_confirmed(self, feed_id: int) -> bool:
        """Whether the refresh under way has heard of the subscription document."""
        running = self._running.get(feed_id) or self._elsewhere.get(feed_id)
        return running is not None and running.is_confirmed

    def progress(self, feed_id: int) -> Progress | None:
        """Return how far the walk of a feed is; None where none runs."""
        running = self._running.get(feed_id) or self._elsewhere.get(feed_id)
        return None if running is None else running.progress

    def walked_seconds(self, feed_id: int) -> float | None:
        """Return since when the walk of a feed uses the network; None where none does."""
        running = self._running.get(feed_id) or self._elsewhere.get(feed_id)
        return None if running is None else running.walked_seconds

    def _ended(self, _: object) -> None:
        for each in self.on_end:
            each()

    async def _run(self, feed: FeedRow, request: RefreshRequest) -> None:
        """Refresh, and once more for what was asked for meanwhile."""
        structlog.contextvars.bind_contextvars(feed=feed.id)  # what this task fetches is the feed's
        try:
            while True:
                self._may_walk[feed.id] = request.may_walk
                try:
                    if not await self._run_somewhere(feed, request):
                        self.on_elsewhere(feed.id)
                except DocumentError:
                    if feed.id not in self._next:
                        raise
                if feed.id not in self._next:
                    return
                latest = await self._context.store.read(partial(feeds.find, feed=feed.id), feed=feed.id)
                again = self._next.pop(feed.id, None)  # last: while that was read, another may have come
                if again is None or latest is None:
                    return
                feed, request = latest, again
        finally:  # what still waits is not for a refresh of hours later
            self._elsewhere.pop(feed.id, None)
            self._next.pop(feed.id, None)
            self._found.pop(feed.id, None)
            self._copies.pop(feed.id, None)

    async def _run_somewhere(self, feed: FeedRow, request: RefreshRequest) -> bool:
        """Refresh; return whether that was done here, and not by another replica."""
        if not self._context.sharing.is_shared:  # nobody is asked, and nobody told
            await self._run_once(feed, request)
            return True
        wanted, work = self._wanted(feed, request), partial(self._run_once, request=request)
        return await self._context.sharing.refresh(wanted, work)

    def _wanted(self, feed: FeedRow, request: RefreshRequest) -> Wanted:
        """Say what is wanted, in case that another replica is at it or has just been."""
        is_asked = request.is_forced or request.is_full or feed.id in self._copies

        def heard(elsewhere: Elsewhere | None) -> None:
            if elsewhere is None:
                self._elsewhere.pop(feed.id, None)
            else:
                self._elsewhere[feed.id] = elsewhere

        return Wanted(
            feed=feed,
            insists=lambda has_waited: is_asked or (feed.id in self._found and not has_waited),
            is_due=self.is_due,
            tell=lambda: self._told(feed.id),
            heard=heard,
        )

    def _told(self, feed_id: int) -> Elsewhere:
        """Return what other replicas are told of a refresh that runs here."""
        refresh = self._running.get(feed_id)
        if refresh is None:
            return Elsewhere()
        return Elsewhere.at(refresh.progress, refresh.walked_seconds, is_confirmed=refresh.is_confirmed)

    async def _run_once(self, feed: FeedRow, request: RefreshRequest) -> None:
        found, copies = self._found.pop(feed.id, None), self._copies.pop(feed.id, ())
        refresh = Refresh(self._context, feed, request, found, copies)
        del found, copies
        self._running[feed.id] = refresh
        try:
            await refresh.run()
        except DocumentError as exc:
            self._context.counts.refresh_failed(exc.slug)
            log.info("feed.stale", feed=feed.id, slug=exc.slug)
            raise
        except (UnknownFeedError, LeaseLostError):  # forgotten meanwhile, or another one is at it
            raise
        except (StoreError, OverloadedError, WorkError) as exc:
            # What is stored serves; the publisher is left alone.
            self._resting_until[feed.id] = time.monotonic() + REST_SECONDS
            self._context.counts.refresh_failed(exc.slug)
            log.warning("feed.unkept", feed=feed.id, slug=exc.slug)
            raise
        except Exception:
            self._context.counts.refresh_failed("internal")
            log.exception("refresh.failed", feed=feed.id)
            raise
        finally:
            del self._running[feed.id]
