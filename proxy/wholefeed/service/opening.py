"""How a URL becomes a feed: its subscription document is found, and its first refresh begins.

feed, flight = await openings.join(url, may_walk=True)     # one opening a URL, however many ask
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from wholefeed.core.refresh.given import RefreshRequest
from wholefeed.core.text.urls import canonical_url
from wholefeed.errors import DocumentError, OverloadedError
from wholefeed.service.documents.subscription import (
    SeveralFeedsError,
    Subscription,
    find_subscription,
)
from wholefeed.service.made import Made
from wholefeed.service.mementos import Mementos
from wholefeed.service.refresh.context import RefreshContext
from wholefeed.service.refresh.flights import Flights
from wholefeed.service.refresh.running import Running
from wholefeed.service.unopened import Unopened
from wholefeed.store.database import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feeds

MAX_WAITING_WALKS: Final = 64
"""Walks that wait for their turn; beyond that a feed that is not known yet is refused (503)."""
MAX_WAITING_PER_SITE: Final = 32
"""Of them at one site; beyond that a feed there is refused, and others are not."""

Opened = tuple[FeedRow, asyncio.Task[None] | None]
"""A feed as it was then, and its refresh; None where it was opened meanwhile and can be served as it is."""


class Openings:
    """Belongs to one service; ends with `close`."""

    def __init__(self, context: RefreshContext, running: Running, mementos: Mementos) -> None:
        self._context = context
        self._store = context.store
        self._running = running
        self._mementos = mementos
        self._flights: Flights[tuple[str, bool], Opened] = Flights()
        self._unopened = Unopened(context.now)
        self._choices = Unopened(context.now)
        """Pages that announce several feeds, of which nobody has chosen one yet."""
        self.made = Made()

    def __len__(self) -> int:
        return len(self._flights)

    async def close(self) -> None:
        """Stop what is under way."""
        await self._flights.close()

    def join(
        self, url: str, *, may_walk: bool, unknown_at: int = -1, is_choosing: bool = False
    ) -> asyncio.Task[Opened]:
        """Return the opening of a URL that is under way, else a new one.

        Args:
            url: Canonical URL.
            may_walk: Whether its refresh may.
            unknown_at: What `made.count` was before the store was asked for the URL, and had nothing; -1: it
                was not asked.
            is_choosing: Whether a person chooses where a page announces several feeds; a reader that asks
                meanwhile does not, and has an opening of its own.

        Raises (from the task):
            DocumentError: There is no feed to be had, or there was none a moment ago.
            SeveralFeedsError: There is a choice.
            OverloadedError: Too many walks are waiting.
        """
        opening = partial(self._open, url, may_walk=may_walk, unknown_at=unknown_at, is_choosing=is_choosing)
        return self._flights.join((url, is_choosing), opening)

    def is_under_way(self, url: str) -> bool:
        """Whether it is being found out what a URL leads to."""
        return any(self._flights.running((url, is_choosing)) is not None for is_choosing in (False, True))

    async def _open(self, url: str, *, may_walk: bool, unknown_at: int, is_choosing: bool) -> Opened:
        """Find the subscription document behind a URL, and begin the feed's refresh."""
        known = None
        if self.made.has_come(url, unknown_at):
            known = await self._known(url)
        if known is not None:
            return self._opened_meanwhile(known, may_walk=may_walk)
        self._unopened.check(url)
        if is_choosing:
            self._choices.check(url)
        waiting_at_site = self._running.waiting_at(self._context.site_of(url))
        if self._running.waiting >= MAX_WAITING_WALKS or waiting_at_site >= MAX_WAITING_PER_SITE:
            raise OverloadedError("too many walks are waiting; try again later")
        opening = partial(self._find, url, may_walk=may_walk, is_choosing=is_choosing)
        return await self._context.sharing.open(url, opening, is_choosing=is_choosing)

    async def _find(self, url: str, *, may_walk: bool, is_choosing: bool) -> Opened:
        """Ask the publisher, unless another replica has done so meanwhile."""
        if self._context.sharing.is_shared:
            known = await self._known(url)
            if known is not None:
                self.made.note(url)
                return self._opened_meanwhile(known, may_walk=may_walk)
        try:
            found = await find_subscription(self._context.source, url, is_choosing=is_choosing)
        except SeveralFeedsError as exc:
            self._choices.remember(url, exc)
            raise
        except DocumentError as exc:
            stand_in = await self._mementos.stand_in(url, exc)
            if stand_in is None:
                self._unopened.remember(url, exc)
                raise
            found = stand_in
        key = canonical_url(found.url)
        feed = await self._create(url, key, found)
        return feed, self._running.join(feed, RefreshRequest(may_walk=may_walk), found)

    async def _known(self, url: str) -> FeedRow | None:
        """Return the feed that a URL leads to, as its refresh has left it if that has ended just now."""
        known = await self._store.find(url)
        if known is not None and self._running.running(known.id) is None:
            known = await self._store.find(url)
        return known

    def _opened_meanwhile(self, feed: FeedRow, *, may_walk: bool) -> Opened:
        """Return a feed that another opening has made: its first refresh may even have ended."""
        is_refreshing = self._running.running(feed.id) is not None
        if feed.digest and not is_refreshing and not self._running.is_due(feed):
            return feed, None
        return feed, self._running.join(feed, RefreshRequest(may_walk=may_walk))

    async def _create(self, url: str, key: str, found: Subscription) -> FeedRow:
        """Return the feed of a key, made if it was not there, and let the URL lead to it."""
        now, sharing = self._context.now(), self._context.sharing

        def work(db: Database) -> tuple[FeedRow, Callable[[], None]]:
            feed = feeds.create(
                db,
                url=key,
                fetch_url=key,
                family=found.obtained.read.facts.family,
                kind=found.obtained.navigation.kind,
                now=now,
            )
            if url != key and feeds.find_by_url(db, url) is None:  # what it leads to stays for good
                feeds.add_alias(db, url, feed.id)
            return feed, sharing.claim_new(db, feed.id)

        try:
            feed, note_claim = await self._store.write(work, comes_more=True)
            note_claim()
            return feed
        finally:
            self.made.note(url, key)
