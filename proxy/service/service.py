"""One feed: what to serve now, refresh, single flight, and the walks that go on in the background.

    service = FeedService(workshop)
    async with service.answer(url, wait_seconds=8.0) as reconstruction:
        ...                       # its segments stay readable in here

A request never runs a refresh itself: it joins the flight of its feed and waits for it as long as it may
(FAULTS 63, 64). What a flight learns is in the store; the answer is made from there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import structlog

from proxy.core.terms import State
from proxy.core.urls import canonical_url
from proxy.errors import (
    DocumentError,
    OverloadedError,
    PublisherTimeoutError,
    StoreError,
    UnknownFeedError,
)
from proxy.service.answers import Reconstruction, Status
from proxy.service.flights import Flights
from proxy.service.refetch import SUBSCRIPTION_ATTEMPT
from proxy.service.refresh import Refresh
from proxy.service.subscription import Subscription, find_subscription
from proxy.service.workshop import Wish, Workshop
from proxy.store.rows import Attempt, FeedRow

log = structlog.get_logger()

MAX_WAITING_WALKS: Final = 64
"""Walks that wait for their turn; beyond that a feed that is not known yet is refused (503)."""

PURGE_SECONDS: Final = 6 * 3600.0
"""Between two clean-ups of the store."""

ASKED_PRECISION_SECONDS: Final = 3600.0
"""How exactly the store knows when a feed was last asked for."""


class FeedService:
    """All feeds of one store."""

    def __init__(self, workshop: Workshop) -> None:
        self._shop = workshop
        self._store = workshop.store
        self._openings: Flights[str, tuple[int, asyncio.Task[None]]] = Flights()
        self._refreshes: Flights[int, None] = Flights()
        self._running: dict[int, Refresh] = {}
        self._wishes: dict[int, Wish] = {}
        self._stopping = asyncio.Event()

    def now(self) -> float:
        """Return the time that freshness is counted by, in epoch seconds."""
        return self._shop.now()

    @property
    def is_busy(self) -> bool:
        """Whether anything is being fetched or walked."""
        return len(self._openings) + len(self._refreshes) > 0

    async def resume(self) -> None:
        """Take up the walks that an earlier run of the program did not finish."""
        for feed in await self._store.unfinished_feeds():
            _ = self._refresh(feed, Wish())

    async def keep_house(self) -> None:
        """Delete from time to time what was detached long ago; runs until it is cancelled."""
        while True:
            try:
                await self._store.purge(now=self.now())
            except (StoreError, OverloadedError) as exc:
                log.warning("store.unpurged", reason=str(exc))
            await asyncio.sleep(PURGE_SECONDS)

    def stop_waiting(self) -> None:
        """Let every request that waits for a publisher go on with what there is."""
        self._stopping.set()

    async def close(self) -> None:
        """Stop what is under way; unfinished walks are taken up at the next start."""
        self.stop_waiting()
        await self._openings.close()
        await self._refreshes.close()

    @asynccontextmanager
    async def answer(
        self, url: str, *, wait_seconds: float, is_head: bool = False
    ) -> AsyncIterator[Reconstruction]:
        """Give the feed of a URL as it is known within a time.

        Args:
            url: Canonical URL, as `canonical_url` makes it.
            wait_seconds: How long to wait for the publisher.
            is_head: Fetch no more than the subscription document, and of a known feed nothing.

        Raises:
            DocumentError: Nothing is stored and the publisher did not give a feed (in time: 504).
            OverloadedError: Nothing is stored and no walk can be begun now.
        """
        deadline = time.monotonic() + wait_seconds
        feed = await self._store.feed_by_url(url)
        if feed is None or not feed.digest:
            feed = await self._first(url, deadline, may_walk=not is_head)
        elif not is_head:
            await self._freshen(feed, deadline)
        await self._note_asked(feed)
        async with self._store.snapshot(feed.id) as snapshot:
            yield Reconstruction(
                snapshot=snapshot,
                state=self._state(snapshot.feed),
                is_stale=snapshot.feed.is_stale,
                missing=await self._missing(feed.id),
                via_url=snapshot.feed.fetch_url,
            )

    async def _note_asked(self, feed: FeedRow) -> None:
        """Remember about when the feed was asked for; what cannot be written is no reason not to answer."""
        if not 0 <= self.now() - feed.asked_at <= ASKED_PRECISION_SECONDS:
            with suppress(StoreError, OverloadedError):
                await self._store.update_feed(feed.id, asked_at=self.now())

    async def is_known(self, url: str) -> bool:
        """Return whether anything is stored for a URL."""
        return await self._store.feed_by_url(url) is not None

    async def status(self, url: str) -> Status:
        """Tell what is known of a feed.

        Raises:
            UnknownFeedError: Nothing is stored for the URL.
        """
        feed = await self._known(url)
        running = self._running.get(feed.id)
        progress = running.progress if running is not None and running.is_walking else None
        return Status(
            feed=feed,
            state=self._state(feed),
            is_walking=progress is not None,
            missing=await self._missing(feed.id),
            progress_documents=progress.documents if progress else feed.documents,
            progress_entries=progress.entries if progress else feed.entries,
            progress_fetched=progress.fetched if progress else 0,
            stored_bytes=await self._store.feed_bytes(feed.id),
        )

    async def refresh(self, url: str, *, is_full: bool = False) -> Status:
        """Begin to refetch the subscription document and what is missing, now (R14); do not wait for it.

        Raises:
            UnknownFeedError: Nothing is stored for the URL.
        """
        feed = await self._known(url)
        wish = Wish(is_forced=True, is_full=is_full)
        if self._refreshes.running(feed.id) is not None:
            self._wishes[feed.id] = wish  # once more, when the one under way has ended
        _ = self._refresh(feed, wish)
        return await self.status(url)

    async def forget(self, url: str) -> None:
        """Delete a feed and everything stored of it.

        Raises:
            UnknownFeedError: Nothing is stored for the URL.
        """
        feed = await self._known(url)
        self._wishes.pop(feed.id, None)
        running = self._refreshes.running(feed.id)
        if running is not None:
            running.cancel()
            await asyncio.wait({running})
        await self._store.forget(feed.id, now=self.now())
        log.info("feed.forgotten", feed=feed.id)

    async def feeds(self) -> list[FeedRow]:
        """Return the known feeds."""
        return await self._store.feeds()

    # What is under way

    async def _first(self, url: str, deadline: float, *, may_walk: bool) -> FeedRow:
        """Have a feed that nothing can be served of yet."""
        opening = self._openings.join(url, lambda: self._open(url, may_walk=may_walk))
        await self._wait(opening, deadline)
        if opening.done() and not opening.cancelled():
            feed_id, flight = opening.result()
            await self._wait(flight, deadline)
            feed = await self._store.feed(feed_id)
            if feed is not None and feed.digest:
                return feed
            if flight.done() and not flight.cancelled():
                flight.result()
        if self._stopping.is_set():
            raise OverloadedError("shutting down", slug="shutting-down")
        raise PublisherTimeoutError("expected a feed in time, got nothing yet", url=url)

    async def _open(self, url: str, *, may_walk: bool) -> tuple[int, asyncio.Task[None]]:
        """Find the subscription document behind a URL; return the feed's id and its refresh, just begun."""
        known = await self._store.feed_by_url(url)
        if known is not None:
            return known.id, self._refresh(known, Wish(may_walk=may_walk))
        if sum(refresh.is_waiting for refresh in self._running.values()) >= MAX_WAITING_WALKS:
            raise OverloadedError("too many walks are waiting; try again later")
        found = await find_subscription(self._shop.source, url)
        key = canonical_url(found.url)
        feed = await self._store.feed_by_url(key) or await self._create(key, found)
        if url != key:
            await self._store.add_alias(url, feed.id)
        return feed.id, self._refresh(feed, Wish(found=found, may_walk=may_walk))

    async def _create(self, key: str, found: Subscription) -> FeedRow:
        return await self._store.create_feed(
            key,
            fetch_url=key,
            family=found.obtained.document.family,
            kind=found.obtained.navigation.kind,
            now=self.now(),
        )

    async def _freshen(self, feed: FeedRow, deadline: float) -> None:
        """Refresh a feed whose time has come and wait until the deadline; what fails leaves it stale."""
        flight = self._refreshes.running(feed.id)
        if flight is None and self._is_due(feed):
            flight = self._refresh(feed, Wish())
        if flight is not None:
            await self._wait(flight, deadline)

    def _is_due(self, feed: FeedRow) -> bool:
        """Freshness has run out, or reaches further than any could: then the clock has jumped (FAULTS 73)."""
        left_seconds = (feed.fresh_until or 0.0) - self.now()
        is_fresh = 0 < left_seconds <= self._shop.config.freshness.maximum_seconds
        return not is_fresh or feed.state is State.LOADING

    def _refresh(self, feed: FeedRow, wish: Wish) -> asyncio.Task[None]:
        return self._refreshes.join(feed.id, lambda: self._run(feed, wish))

    async def _run(self, feed: FeedRow, wish: Wish) -> None:
        """Refresh, and once more for each wish that came meanwhile."""
        while True:
            try:
                await self._run_once(feed, wish)
            except DocumentError:
                if feed.id not in self._wishes:
                    raise
            again = self._wishes.pop(feed.id, None)
            latest = await self._store.feed(feed.id)
            if again is None or latest is None:
                return
            feed, wish = latest, again

    async def _run_once(self, feed: FeedRow, wish: Wish) -> None:
        refresh = Refresh(self._shop, feed, wish)
        self._running[feed.id] = refresh
        try:
            await refresh.run()
        except DocumentError as exc:
            log.info("feed.stale", feed=feed.id, slug=exc.slug)
            raise
        except Exception:
            log.exception("refresh.failed", feed=feed.id)
            raise
        finally:
            del self._running[feed.id]

    async def _wait(self, task: asyncio.Task[Any], deadline: float) -> None:
        """Wait for a task until the deadline, or until the program stops; never cancel it."""
        stopping = asyncio.ensure_future(self._stopping.wait())
        left_seconds = max(0.0, deadline - time.monotonic())
        try:
            await asyncio.wait({task, stopping}, timeout=left_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    # What is known

    def _state(self, feed: FeedRow) -> State:
        running = self._running.get(feed.id)
        return State.LOADING if running is not None and running.is_walking else feed.state

    async def _missing(self, feed_id: int) -> tuple[Attempt, ...]:
        attempts = await self._store.attempts(feed_id)
        return tuple(attempt for attempt in attempts if attempt.url != SUBSCRIPTION_ATTEMPT)

    async def _known(self, url: str) -> FeedRow:
        feed = await self._store.feed_by_url(url)
        if feed is None:
            raise UnknownFeedError(f"nothing is stored for {url}")
        return feed
