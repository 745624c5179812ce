"""Opening of unknown URLs: find their feeds, and begin their first refreshes.

All who ask for a URL share one opening, which outlives them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from wholefeed.core.parse.discovery import Alternate
from wholefeed.core.refresh.arrivals import FoundSubscription
from wholefeed.core.refresh.basis import RefreshRequest
from wholefeed.core.text.urls import canonical_url
from wholefeed.errors import (
    DocumentError,
    ForbiddenTargetError,
    NothingYetError,
    OverloadedError,
    QueueFullError,
)
from wholefeed.futures import either_done
from wholefeed.service.context import RefreshContext
from wholefeed.service.mementos import Mementos
from wholefeed.service.running import Flights, Running
from wholefeed.service.sources import Obtained, SeveralFeedsError, find_subscription
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feed_table

MAX_WAITING_WALKS: Final = 64
"""Queued walks; beyond that number, unknown feeds are refused (503)."""
MAX_WAITING_PER_SITE: Final = 32
"""The same for one site."""

Opened = tuple[FeedRow, asyncio.Task[None] | None]
"""A feed and its refresh; None: the feed can be served as it is."""


class Openings:
    """Openings under way; after `stopping` nobody waits for them."""

    def __init__(
        self,
        context: RefreshContext,
        running: Running,
        mementos: Mementos,
        stopping: asyncio.Future[None],
    ) -> None:
        self._context = context
        self._store = context.store
        self._running = running
        self._mementos = mementos
        self._stopping = stopping
        self._flights: Flights[tuple[str, bool], Opened] = Flights()
        """By URL, and whether a person chooses among several feeds."""
        self._unopened = Unopened(context.now)
        self.opened = 0
        """Count of opened URLs."""

    def __len__(self) -> int:
        return len(self._flights)

    def is_under_way(self, url: str) -> bool:
        return any(self._flights.running((url, is_choosing)) is not None for is_choosing in (False, True))

    def join(
        self, url: str, *, may_walk: bool, unknown_at: int = -1, is_polled: bool = False
    ) -> asyncio.Task[Opened]:
        """Return the opening of a canonical URL, begun if necessary; `is_polled`: no reader waits for it.

        `unknown_at` is the value of `opened` before the store was searched in vain; -1: not searched.
        """
        request = RefreshRequest(may_walk=may_walk, is_polled=is_polled)
        start = partial(self._open, url, request, unknown_at=unknown_at)
        return self._flights.join((url, False), start)

    async def find_announced(self, url: str, *, wait_seconds: float) -> tuple[Alternate, ...]:
        """Open a URL; return the feeds that its page announces, or none if it leads to one feed.

        Raises:
            DocumentError: No feed; or none in time (504), and the opening goes on.
            OverloadedError: Too many walks are waiting.
        """
        start = partial(self._open, url, RefreshRequest(), is_choosing=True)
        opening = self._flights.join((url, True), start)
        await either_done(opening, self._stopping, wait_seconds)
        if not opening.done():
            raise NothingYetError("expected an answer in time, got nothing yet", url=url)
        try:
            opening.result()
        except SeveralFeedsError as exc:
            return exc.feeds
        return ()

    async def close(self) -> None:
        await self._flights.close()

    async def _open(
        self, url: str, request: RefreshRequest, *, is_choosing: bool = False, unknown_at: int = -1
    ) -> Opened:
        """Find the subscription document, and begin the feed's refresh.

        Raises:
            DocumentError: No feed, now or a moment ago.
            SeveralFeedsError: A person must choose.
            OverloadedError: Too many walks are waiting.
        """
        if self.opened != unknown_at and (known := await self._known(url, request)) is not None:
            return known
        self._unopened.check((url, False))
        if is_choosing:  # a reader does not choose, so it has an opening of its own
            self._unopened.check((url, True))
        waiting_at_site = self._running.waiting_at(self._context.site_of(url))
        if self._running.waiting >= MAX_WAITING_WALKS or waiting_at_site >= MAX_WAITING_PER_SITE:
            raise OverloadedError("too many walks are waiting; try again later")
        opening = partial(self._find, url, request, is_choosing=is_choosing)
        return await self._context.sharing.open(url, opening, is_choosing=is_choosing)

    async def _known(self, url: str, request: RefreshRequest) -> Opened | None:
        known = await self._context.find(url)
        if known is not None and self._running.running(known.id) is None:
            known = await self._context.find(url)  # again: its refresh may just have ended
        if known is None:
            return None
        is_refreshing = self._running.running(known.id) is not None
        if known.digest and not is_refreshing and not self._running.is_due(known):
            return known, None
        return known, self._running.join(known, request)

    async def _find(self, url: str, request: RefreshRequest, *, is_choosing: bool) -> Opened:
        is_shared = self._context.sharing.is_shared
        # another replica may have opened the URL meanwhile
        if is_shared and (known := await self._known(url, request)) is not None:
            self.opened += 1
            return known
        try:
            found = await find_subscription(
                self._context.source, url, is_choosing=is_choosing, is_polled=request.is_polled
            )
        except SeveralFeedsError as exc:
            self._unopened.remember((url, True), exc)  # for a person, only that there is a choice
            raise
        except DocumentError as exc:
            stand_in = await self._mementos.stand_in(url, exc)
            if stand_in is None:
                self._unopened.remember((url, False), exc)
                raise
            found = stand_in
        self._require_same_publisher(url, found.url)
        feed = await self._create(url, found)
        self._require_same_publisher(url, feed.url)  # the found URL may be another feed's alias
        return feed, self._running.join(feed, request, found)

    def _require_same_publisher(self, url: str, feed_url: str) -> None:
        """Refuse a feed to another publisher's URL if one of them is private (A3)."""
        if self._context.publishers.are_apart(url, feed_url):
            message = "this URL leads to another publisher's feed, which is served only by its own URL"
            error = ForbiddenTargetError(message, url=url)
            self._unopened.remember((url, False), error)
            raise error

    async def _create(self, url: str, found: FoundSubscription[Obtained]) -> FeedRow:
        key, now, sharing = canonical_url(found.url), self._context.now(), self._context.sharing

        def work(db: Database) -> FeedRow:
            feed = feed_table.create(
                db,
                url=key,
                fetch_url=key,
                family=found.document.family,
                kind=found.document.navigation.kind,
                now=now,
            )
            if url != key and feed_table.find_by_url(db, url) is None:  # a URL leads to one feed for good
                feed_table.add_alias(db, url, feed.id)
            sharing.claim_new(db, feed.id)
            return feed

        try:
            return await self._store.write(work, comes_more=True)
        finally:
            self.opened += 1


# Failures to open

MAX_UNOPENED: Final = 4096


class Unopened:
    """Recent failures to open, so that not every request asks the publisher.

    A failure lasts a minute at most (docs/faults.md row 21), or until the clock jumps. `fetch/hosts.py`
    applies Retry-After.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._errors: dict[tuple[str, bool], tuple[float, float, DocumentError]] = {}
        """Epoch seconds of the failure, seconds to remember it, the error."""

    def __len__(self) -> int:
        return len(self._errors)

    def check(self, key: tuple[str, bool]) -> None:
        """Check that the publisher may be asked.

        Raises:
            DocumentError: The recent failure, with the seconds until the next attempt.
        """
        failed_at, rest_seconds, error = self._errors.get(key, (0.0, 0.0, None))
        if error is None:
            return
        passed_seconds = self._now() - failed_at
        if not 0 <= passed_seconds < rest_seconds:
            del self._errors[key]
            return
        raise error.fresh_copy(retry_after_seconds=rest_seconds - passed_seconds)

    def remember(self, key: tuple[str, bool], error: DocumentError) -> None:
        """Remember a failure as long as the error says."""
        if isinstance(error, QueueFullError):  # nothing was tried
            return
        self._errors.pop(key, None)
        if len(self._errors) >= MAX_UNOPENED:
            del self._errors[next(iter(self._errors))]
        self._errors[key] = (self._now(), error.remembered_seconds, error.fresh_copy())
