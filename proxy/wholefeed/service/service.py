"""One feed: what to serve now, refresh, single flight, and the walks that go on in the background.

    service = FeedService(context)
    async with service.answer(url, wait_seconds=8.0) as reconstruction:
        ...                       # its segments stay readable in here

A request never runs a refresh itself: it joins the flight of its feed and waits for it as long as it may
(docs/faults.md rows 63, 64). What a flight learns is in the store; the answer is made from there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from wholefeed.core.refresh.given import RefreshRequest
from wholefeed.errors import UnknownFeedError
from wholefeed.loggers import get_logger
from wholefeed.service.account import ChainDocument
from wholefeed.service.answering import Answering
from wholefeed.service.asked_times import AskedTimes
from wholefeed.service.checking import Checks
from wholefeed.service.choosing import Choosing
from wholefeed.service.housekeeping import Housekeeping
from wholefeed.service.listing import Listing, every_feed, listed
from wholefeed.service.load import Load
from wholefeed.service.mementos import Mementos
from wholefeed.service.opening import Openings
from wholefeed.service.polling import Polling
from wholefeed.service.published import Held
from wholefeed.service.refresh.context import RefreshContext
from wholefeed.service.refresh.running import Running
from wholefeed.service.results import Reconstruction, Status
from wholefeed.service.waiting import Waiting
from wholefeed.service.watching import Watching
from wholefeed.store.rows import FeedRow, Snapshot
from wholefeed.store.tables import feeds

log = get_logger()

MAX_LISTED: Final = 1000
"""Feeds in a list of them."""


class FeedService:
    """All feeds of one store.

    Whatever it is asked it says within `limits.respond_within_seconds` and a moment, or raises
    `OverloadedError`: a database that others share may fall silent.
    """

    def __init__(self, context: RefreshContext) -> None:
        self._context = context
        self.now = context.now
        self._store = context.store
        self._published = context.published
        self._store.on_change(self._published.drop, self._published.renew, self._published.replace)
        self.checks = Checks(context.store, self._published, context.config.limits)
        self._asked = AskedTimes(context.store, context.now)
        self.note_warned = self._asked.note_warned
        self._house = Housekeeping(context, is_refreshing=self._is_refreshing, write_asked=self._asked.write)
        self.make_room = self._house.make_room
        self._running = Running(context, on_end=self._house.note_growth)
        self._running.on_elsewhere = self._published.drop
        self._mementos = Mementos(context, self._running)
        self.keep_searching = self._mementos.run
        self.search_archive = self._mementos.finish
        self._openings = Openings(context, self._running, self._mementos)
        self.load = Load(context, self._running, self._openings, self._published)
        self._stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting = Waiting(context, self._running, self._openings, self.checks, self._stopping)
        self.announced = Choosing(self._openings, self._waiting.wait).announced
        self.watching = Watching(context, self._running, self._stopping)

    @property
    def is_busy(self) -> bool:
        """Whether anything is being fetched or walked."""
        return len(self._openings) + len(self._running) > 0

    async def resume(self) -> None:
        """Take up the walks that an earlier run of the program did not finish."""
        if not self._context.sharing.is_shared:
            for feed in await self._store.read(feeds.list_unfinished):
                _ = self._running.join(feed, RefreshRequest())

    async def keep_resuming(self) -> None:
        """Take up the walks of replicas that have ended, for as long as there may be any."""
        running = self._running
        await self._context.sharing.adopt(running.is_due, lambda feed: running.join(feed, RefreshRequest()))

    async def keep_house(self) -> None:
        """Delete what is old, evict what is too much, write when feeds were asked for; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._house.run())
            tasks.create_task(self._asked.run())
            tasks.create_task(self._store.upkeep.keep_sent(self.now))

    async def keep_polling(self) -> None:
        """Refresh known feeds unasked, where the configuration says so; runs until it is cancelled."""
        if self._context.config.history.poll_seconds:
            await Polling(self._context, self._running).run()

    def stop_waiting(self) -> None:
        """Let every request that waits for a publisher go on with what there is."""
        if not self._stopping.done():
            self._stopping.set_result(None)

    async def close(self) -> None:
        """Stop what is under way; unfinished walks are taken up at the next start."""
        self.stop_waiting()
        await self._openings.close()
        await self._running.close()
        await self.checks.close()
        await self._asked.close()

    # What is served

    def at_once(self, url: str, *, is_head: bool = False) -> Held | None:
        """Return the feed of a URL if it is held in memory and nothing is to be asked or awaited.

        Where `checks` are needed, await one first. Args as for `answer`, which is for every other case.
        """
        held = self._published.find(url)
        if held is None:
            return None
        feed = held.snapshot.feed
        if not is_head and (self._running.running(feed.id) is not None or self._running.is_due(feed)):
            return None
        held.asked_at = self._asked.note(feed.id, held.asked_at)
        return held

    def answer(
        self, url: str, *, wait_seconds: float, is_head: bool = False, from_memory: bool = False
    ) -> Answering:
        """Give the feed of a URL as it is known within a time.

        Args:
            url: Canonical URL, as `canonical_url` makes it.
            wait_seconds: How long to wait for the publisher.
            is_head: Fetch no more than the subscription document, and of a known feed nothing.
            from_memory: Whether the blocks are taken from what is held: then nothing else is kept readable
                where all of them are.

        Raises:
            DocumentError: Nothing is stored and the publisher did not give a feed (in time: 504).
            OverloadedError: Nothing is stored and no walk can be begun now; the database does not answer.
        """

        async def begin(answering: Answering) -> Reconstruction:
            deadline = time.monotonic() + wait_seconds
            in_time = self.checks.bounds(wait_seconds)
            async with in_time():
                snapshot, is_late, held = await self._found(
                    answering, url, deadline, is_head=is_head, from_memory=from_memory
                )
            feed = snapshot.feed
            _ = self._asked.note(feed.id, feed.asked_at)
            return Reconstruction(snapshot, feed.is_stale or is_late, held, in_time)

        return Answering(begin)

    async def _found(
        self, answering: Answering, url: str, deadline: float, *, is_head: bool, from_memory: bool
    ) -> tuple[Snapshot, bool, Held | None]:
        """Return what to answer with, and whether the publisher was not heard of in time.

        What has to stay readable is held until the end of the answer.
        """
        while True:
            try:
                with self._published.filling() as fill:
                    feed, is_late = await self._waiting.ready(url, deadline, is_head=is_head)
                    leads_there = feed.url == url or not fill.has_changed(feed.id)  # its key is its own
                held = await self.checks.find(url) if from_memory else None
                if held is not None and held.is_whole:
                    return held.snapshot, is_late, held
                snapshot, held = await self._read(answering, url if leads_there else "", feed)
                return snapshot, is_late, held
            except UnknownFeedError:  # forgotten just now: once more from the beginning
                if time.monotonic() >= deadline:
                    raise

    async def _read(self, answering: Answering, url: str, feed: FeedRow) -> tuple[Snapshot, Held | None]:
        """Read what is served of a feed, hold its segments for the answer, and it in memory under a URL."""
        with self._published.filling() as fill:
            snapshot = await answering.hold(self._store.snapshot(feed.id))
            held = self._published.put(fill, url, snapshot) if url else None
        return snapshot, held

    async def is_known(self, url: str) -> bool:
        """Return whether anything is stored for a URL."""
        async with self.checks.answering():
            return await self._waiting.known(url) is not None

    async def is_awaited(self, url: str) -> bool:
        """Return whether a feed is being fetched, or whatever a URL leads to."""
        async with self.checks.answering():
            feed = await self._waiting.known(url)
        return self._openings.is_under_way(url) or (feed is not None and self._is_refreshing(feed.id))

    async def status(self, url: str) -> Status:
        """Tell what is known of a feed; `UnknownFeedError` where nothing is stored for the URL."""
        async with self._of_known(url) as feed:
            return await self.watching.status(feed.id)

    async def account(self, url: str) -> tuple[Status, list[ChainDocument]]:
        """Tell what is known of a feed, document by document.

        Raises:
            UnknownFeedError: Nothing is stored for the URL.
        """
        async with self._of_known(url) as feed:
            return await self.watching.account(feed.id)

    async def refresh(self, url: str, *, is_full: bool = False) -> Status:
        """Begin to refetch the subscription document and what is missing, now (R14); do not wait for it.

        Raises:
            UnknownFeedError: Nothing is stored for the URL.
        """
        async with self._of_known(url) as feed:
            _ = self._running.join(feed, RefreshRequest(is_forced=True, is_full=is_full))
            return await self.watching.status(feed.id)

    async def forget(self, url: str) -> None:
        """Delete a feed and everything stored of it.

        Raises:
            OverloadedError: The database did not answer in time; what it was told by then it does all the
                same.
            UnknownFeedError: Nothing is stored for the URL.
        """
        async with self._of_known(url) as feed:
            await self._running.cancel(feed.id)
            await self._store.forget(feed.id, now=self.now())
        log.info("feed.forgotten", feed=feed.id)

    async def feeds(self) -> list[FeedRow]:
        """Return the known feeds."""
        async with self.checks.answering():
            return await self._store.read(lambda db: feeds.list_feeds(db, MAX_LISTED, 0))

    async def every_feed(self) -> AsyncIterator[list[FeedRow]]:
        """Give the known feeds as `wholefeed.service.listing.every_feed` does."""
        parts = every_feed(self._store)
        while True:
            async with self.checks.answering():
                part = await anext(parts, None)
            if part is None:
                return
            yield part

    async def listed(self, *, words: str, by_url: bool, number: int) -> Listing:
        """Return some of them as `wholefeed.service.listing.listed` does, whose arguments these are."""
        async with self.checks.answering():
            return await listed(self._store, words=words, by_url=by_url, number=number)

    @asynccontextmanager
    async def _of_known(self, url: str) -> AsyncIterator[FeedRow]:
        """Find the feed that is stored for a URL; what is asked of it in here is told in time, too."""
        async with self.checks.answering():
            feed = await self._waiting.known(url)
            if feed is None:
                raise UnknownFeedError(f"nothing is stored for {url}")
            yield feed

    def _is_refreshing(self, feed_id: int) -> bool:
        return self._running.running(feed_id) is not None
