"""URLs that nothing is stored of: the feeds that they lead to are found, and their first refreshes begun.

    openings = Openings(context, running, mementos, stopping)
    feed, refresh = await openings.join(url, may_walk=True)
    feeds = await openings.announced(url, wait_seconds=8.0)     # a person has typed it: there may be a choice

There is one opening a URL, however many ask, and it goes on, whoever leaves. What a request waits for, and
for how long, `FeedService` says.
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
"""Walks that wait for their turn; beyond that a feed that is not known yet is refused (503)."""
MAX_WAITING_PER_SITE: Final = 32
"""Of them at one site; beyond that a feed there is refused, and others are not."""

Opened = tuple[FeedRow, asyncio.Task[None] | None]
"""A feed as it was then, and its refresh; None where it was opened meanwhile and can be served as it is."""


class Openings:
    """Finds the feeds behind URLs; once `stopping` is done nobody waits for that any more."""

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
        """By URL, and whether a person chooses where a page announces several feeds."""
        self._unopened = Unopened(context.now)
        """By the same; of a person's only that there is a choice, as long as nobody has chosen."""
        self.opened = 0
        """How often a URL has come to lead to a feed."""

    def __len__(self) -> int:
        return len(self._flights)

    def is_under_way(self, url: str) -> bool:
        return any(self._flights.running((url, is_choosing)) is not None for is_choosing in (False, True))

    def join(self, url: str, *, may_walk: bool, unknown_at: int = -1) -> asyncio.Task[Opened]:
        """Return the opening of a URL that is under way, else a new one.

        Args:
            url: Canonical.
            may_walk: Whether the refresh may.
            unknown_at: What `opened` was before the store was asked for the URL and had nothing; -1: it was
                not asked.
        """
        start = partial(self._open, url, may_walk=may_walk, unknown_at=unknown_at)
        return self._flights.join((url, False), start)

    async def find_announced(self, url: str, *, wait_seconds: float) -> tuple[Alternate, ...]:
        """Open a URL that nothing is stored of, unless it is a page that announces several feeds.

        Return the feeds of the page, each once, as listed; none where the URL leads to a feed now: then it is
        open, and its walk has begun.

        Raises:
            DocumentError: There is no feed to be had (or not in time: 504, and it is still looked for).
            OverloadedError: Too many walks are waiting.
        """
        opening = self._flights.join((url, True), partial(self._open, url, may_walk=True, is_choosing=True))
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
        self, url: str, *, may_walk: bool, is_choosing: bool = False, unknown_at: int = -1
    ) -> Opened:
        """Find the subscription document behind a URL, and begin the feed's refresh.

        Args:
            url: As for `join`.
            may_walk: The same.
            is_choosing: Whether a person chooses where a page announces several feeds. A reader that asks
                meanwhile does not choose: it has an opening of its own.
            unknown_at: As for `join`.

        Raises:
            DocumentError: There is no feed to be had, or there was none a moment ago.
            SeveralFeedsError: There is a choice.
            OverloadedError: Too many walks are waiting.
        """
        if self.opened != unknown_at and (known := await self._known(url, may_walk=may_walk)) is not None:
            return known
        self._unopened.check((url, False))
        if is_choosing:
            self._unopened.check((url, True))
        waiting_at_site = self._running.waiting_at(self._context.site_of(url))
        if self._running.waiting >= MAX_WAITING_WALKS or waiting_at_site >= MAX_WAITING_PER_SITE:
            raise OverloadedError("too many walks are waiting; try again later")
        opening = partial(self._find, url, may_walk=may_walk, is_choosing=is_choosing)
        return await self._context.sharing.open(url, opening, is_choosing=is_choosing)

    async def _known(self, url: str, *, may_walk: bool) -> Opened | None:
        """Return the feed that another opening has made of a URL: its first refresh may even have ended."""
        known = await self._context.find(url)
        if known is not None and self._running.running(known.id) is None:
            known = await self._context.find(url)  # as that refresh has left it, if it has ended just now
        if known is None:
            return None
        is_refreshing = self._running.running(known.id) is not None
        if known.digest and not is_refreshing and not self._running.is_due(known):
            return known, None
        return known, self._running.join(known, RefreshRequest(may_walk=may_walk))

    async def _find(self, url: str, *, may_walk: bool, is_choosing: bool) -> Opened:
        """Ask the publisher, unless another replica has done so meanwhile."""
        is_shared = self._context.sharing.is_shared
        if is_shared and (known := await self._known(url, may_walk=may_walk)) is not None:
            self.opened += 1
            return known
        try:
            found = await find_subscription(self._context.source, url, is_choosing=is_choosing)
        except SeveralFeedsError as exc:
            self._unopened.remember((url, True), exc)
            raise
        except DocumentError as exc:
            stand_in = await self._mementos.stand_in(url, exc)
            if stand_in is None:
                self._unopened.remember((url, False), exc)
                raise
            found = stand_in
        self._require_same_publisher(url, found.url)
        feed = await self._create(url, found)
        self._require_same_publisher(url, feed.url)  # what was found may have led to another feed for long
        return feed, self._running.join(feed, RefreshRequest(may_walk=may_walk), found)

    def _require_same_publisher(self, url: str, feed_url: str) -> None:
        """A3: who may read what stands at a URL may not read a private publisher's feed for that."""
        if self._context.publishers.are_apart(url, feed_url):
            message = "it leads to another publisher's feed, which is given by its own URL alone"
            error = ForbiddenTargetError(message, url=url)
            self._unopened.remember((url, False), error)
            raise error

    async def _create(self, url: str, found: FoundSubscription[Obtained]) -> FeedRow:
        """Return a subscription document's feed, made if it was not there, and let the URL lead to it."""
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
            if url != key and feed_table.find_by_url(db, url) is None:  # what it leads to stays for good
                feed_table.add_alias(db, url, feed.id)
            sharing.claim_new(db, feed.id)
            return feed

        try:
            return await self._store.write(work, comes_more=True)
        finally:
            self.opened += 1


# What could not be opened

MAX_UNOPENED: Final = 4096
"""Failures that are remembered."""


class Unopened:
    """What could not be opened a moment ago, so that not every request for it asks its publisher again.

        unopened = Unopened(now=time.time)
        unopened.remember((url, False), error)
        unopened.check((url, False))    # raises it for a minute at most (docs/faults.md row 21)

    What the publisher asked for beyond that (Retry-After) is the host's and kept there
    (`fetch/hosts.py`). A clock that jumps makes it forget.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._errors: dict[tuple[str, bool], tuple[float, float, DocumentError]] = {}
        """When it failed, for how many seconds that is remembered, and how it failed."""

    def __len__(self) -> int:
        return len(self._errors)

    def check(self, key: tuple[str, bool]) -> None:
        """Do nothing when the publisher may be asked.

        Raises:
            DocumentError: It was a moment ago, and this came of it; with the seconds until it may be again.
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
        """Keep why a URL could not be opened, no longer than the error says; nothing if it was not tried."""
        if isinstance(error, QueueFullError):
            return
        self._errors.pop(key, None)
        if len(self._errors) >= MAX_UNOPENED:
            del self._errors[next(iter(self._errors))]
        self._errors[key] = (self._now(), error.remembered_seconds, error.fresh_copy())
