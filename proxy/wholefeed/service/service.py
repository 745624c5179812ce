"""What the rest of the program asks about feeds: what to serve now, what is known, what goes on beside.

    service = FeedService(context)
    async with service.answer(url, wait_seconds=8.0) as reconstruction:
        ...                       # its segments stay readable in here

A request never runs a refresh itself: it joins the flight of its feed and waits for it as long as it may
(docs/faults.md rows 63, 64). What a flight learns is in the store; the answer is made from there.

Only here are the parts of the service put together. What each of them does stands in its own module.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence, Sized
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from wholefeed.core.compose.compose import Heading
from wholefeed.core.refresh.port import RefreshRequest
from wholefeed.errors import OverloadedError, StoreError, UnknownFeedError
from wholefeed.logs import get_logger
from wholefeed.service.background import AskedTimes, Housekeeping, Polling
from wholefeed.service.checking import Checks
from wholefeed.service.mementos import Mementos
from wholefeed.service.memory import Held, Memory, Usage
from wholefeed.service.opening import Openings, Waiting
from wholefeed.service.people import ChainDocument, Watching
from wholefeed.service.refresh import RefreshContext
from wholefeed.service.results import Reconstruction, Status
from wholefeed.service.running import Running
from wholefeed.service.showing import Showing, described
from wholefeed.store.rows import FeedRow, ListedFeed, Snapshot
from wholefeed.store.tables import feeds

log = get_logger()


_MAX_LISTED: Final = 1000
"""Feeds in the list of all of them."""
_FEEDS_PER_PART: Final = 100
"""Feeds that are read at once."""
_NAMING_SECONDS: Final = 0.5
"""For so long a part of a list reads titles that were not kept at publication; the next list goes on."""


class FeedService:
    """All feeds of one store.

    Whatever it is asked it says within `limits.respond_within_seconds` and a moment, or raises
    `OverloadedError`: a database that others share may fall silent.
    """

    def __init__(self, context: RefreshContext) -> None:
        self._context = context
        self._store = context.store
        self._memory = context.memory
        self._stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.now = context.now
        """Epoch seconds."""
        self.fresh_seconds_left = context.fresh_seconds_left

        # what a request needs: the memory, the refreshes under way, the openings, and the waiting for them
        self._store.on_change(self._memory.drop)
        self.checks = Checks(context.store, self._memory, context.config.limits)
        """Whether what is held in memory is still so; bounds what is asked of the database."""
        self._asked = AskedTimes(context.store, context.now)
        self._running = Running(context)
        self._house = Housekeeping(context, self._running, self._asked)
        self._mementos = Mementos(context, self._running)
        self._openings = Openings(context, self._running, self._mementos)
        self._waiting = Waiting(context, self._running, self._openings, self.checks, self._stopping)

        # what others watch
        self.load = Load(context, self._running, self._openings, self._memory)
        self.watching = Watching(context, self._running, self._stopping)
        """Tells everybody who follows a feed how far its refresh is."""
        self.showing = Showing(context.store, context.source.work)
        """Makes the pages that people read."""

        # methods of the parts that are asked of the service; each says there what it does
        self.announced = self._waiting.announced
        self.note_warned = self._asked.note_warned
        self.make_room = self._house.make_room
        self.keep_searching = self._mementos.run
        self.search_archive = self._mementos.finish

    # What is served

    def at_once(self, url: str, *, is_head: bool = False) -> Held | None:
        """Return the feed of a URL if it is held in memory and nothing is to be asked or awaited.

        Where `checks.are_needed`, await one first. Args as for `answer`, which is for every other case.
        """
        held = self._memory.find(url)
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
                since = self._memory.changes.count
                feed, is_late = await self._waiting.ready(url, deadline, is_head=is_head)
                leads_there = feed.url == url or not self._memory.changes.has(
                    feed.id, since
                )  # its key is its own
                held = await self.checks.find(url) if from_memory else None
                if held is not None and held.is_whole:
                    return held.snapshot, is_late, held
                snapshot, held = await self._read(answering, url if leads_there else "", feed)
                return snapshot, is_late, held
            except UnknownFeedError:  # forgotten just now: once more from the beginning
                if time.monotonic() >= deadline:
                    raise

    async def _read(self, answering: Answering, url: str, feed: FeedRow) -> tuple[Snapshot, Held | None]:
        """Read what is served of a feed: hold its segments for the answer, and it in memory by a URL.

        Args:
            answering: The answer.
            url: Under which to hold it in memory; empty: under none.
            feed: The feed.
        """
        since = self._memory.changes.count
        snapshot = await answering.hold(self._store.snapshot(feed.id))
        return snapshot, self._memory.put(snapshot, url, since) if url else None

    # What is known

    async def is_known(self, url: str) -> bool:
        """Whether anything is stored for a URL."""
        async with self.checks.answering():
            return await self._waiting.known(url) is not None

    async def is_awaited(self, url: str) -> bool:
        """Whether the feed of a URL is being fetched, or it is being found out what the URL leads to."""
        async with self.checks.answering():
            feed = await self._waiting.known(url)
        return self._openings.is_under_way(url) or (feed is not None and self._is_refreshing(feed.id))

    def _is_refreshing(self, feed_id: int) -> bool:
        return self._running.running(feed_id) is not None

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

    @asynccontextmanager
    async def _of_known(self, url: str) -> AsyncIterator[FeedRow]:
        """Find the feed that is stored for a URL; what the block reads of it is bounded in time, too.

        Raises:
            UnknownFeedError: Nothing is stored for the URL.
        """
        async with self.checks.answering():
            feed = await self._waiting.known(url)
            if feed is None:
                raise UnknownFeedError(f"nothing is stored for {url}")
            yield feed

    async def feeds(self) -> list[ListedFeed]:
        """Return the known feeds, at most `_MAX_LISTED` of them."""
        async with self.checks.answering():
            return await self._store.read(lambda db: feeds.list_feeds(db, _MAX_LISTED, 0))

    async def every_feed(self) -> AsyncIterator[list[ListedFeed]]:
        """Give the known feeds by URL, those that are published, some at a time.

        One that comes or goes meanwhile may move another to or fro: that one is given twice or not at all.
        """
        offset = 0
        while True:
            async with self.checks.answering():
                rows = await self._store.read(lambda db: feeds.list_feeds(db, _FEEDS_PER_PART, offset))  # noqa: B023 - awaited
            if not rows:
                return
            yield await self._named([row for row in rows if row.digest])
            offset += len(rows)

    async def listed(self, *, words: str, by_url: bool, number: int) -> Listing:
        """Return the feeds whose URL holds the words, in any case; the last part where that one is not there.

        Args:
            words: Empty: all feeds.
            by_url: Sorted by URL; else those asked for last come first.
            number: Which part, from 1 on.
        """

        async def part(wanted: int) -> Listing:
            first = (wanted - 1) * _FEEDS_PER_PART
            found, total = await self._store.read(
                lambda db: feeds.search(db, words, by_url=by_url, limit=_FEEDS_PER_PART, offset=first)
            )
            return Listing(tuple(found), total, wanted)

        async with self.checks.answering():
            asked = await part(number)
            if asked.number > asked.parts:
                asked = await part(asked.parts)
        return asked._replace(feeds=tuple(await self._named(asked.feeds)))

    async def _named(self, listed: Sequence[ListedFeed]) -> list[ListedFeed]:
        """Return feeds with their titles, also those that were published before titles were kept.

        These are read from the heads, one after the other, and then kept. Where there is no time, or the
        database cannot be read or written, they have none.
        """
        unnamed = [row.id for row in listed if row.title is None and row.digest]
        found: dict[int, Heading] = {}
        if unnamed:
            with suppress(StoreError, OverloadedError, TimeoutError):
                async with asyncio.timeout(_NAMING_SECONDS):
                    for feed_id in unnamed:
                        feed = await self._store.read(partial(feeds.find_unnamed, feed=feed_id), feed=feed_id)
                        if feed is not None:
                            found[feed_id] = await described(feed)
        if found:
            with suppress(StoreError, OverloadedError, TimeoutError):
                async with asyncio.timeout(_NAMING_SECONDS):
                    await self._store.write(partial(feeds.keep_headings, headings=found))
        return [
            replace(row, title=found[row.id].title, site=found[row.id].site) if row.id in found else row
            for row in listed
        ]

    # What is asked for

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

    # What goes on beside

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
        """Take up the walks of replicas that have ended; returns where there are no other replicas."""
        running = self._running
        await self._context.sharing.adopt(running.is_due, lambda feed: running.join(feed, RefreshRequest()))

    async def keep_polling(self) -> None:
        """Refresh known feeds unasked, where the configuration says so; runs until it is cancelled."""
        if self._context.config.history.poll_seconds:
            await Polling(self._context, self._running).run()

    async def keep_house(self) -> None:
        """Delete what is old, evict what is too much, write when feeds were asked for; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._house.run())
            tasks.create_task(self._asked.run())
            tasks.create_task(self._store.upkeep.keep_sent(self.now))

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


_T = TypeVar("_T")


class Answering(AbstractAsyncContextManager[Reconstruction]):
    """The time in which an answer is put together; what is held for it stays readable in there. Entered once.

    Most answers hold nothing, and a generator with its context manager and stack took as long as the look
    that finds that out.

    Args:
        begin: Makes what the block is given.
    """

    def __init__(self, begin: Callable[[Answering], Coroutine[Any, Any, Reconstruction]]) -> None:
        self._begin = begin
        self._stack: AsyncExitStack | None = None

    async def hold(self, context: AbstractAsyncContextManager[_T]) -> _T:
        """Enter something until the end of the block."""
        if self._stack is None:
            self._stack = AsyncExitStack()
        return await self._stack.enter_async_context(context)

    async def __aenter__(self) -> Reconstruction:
        try:
            return await self._begin(self)
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        if self._stack is not None:
            await self._stack.aclose()


class Listing(NamedTuple):
    """One part of the feeds that were looked for."""

    feeds: tuple[ListedFeed, ...]
    total: int
    """How many feeds there are with those words."""
    number: int
    """Which part this is, from 1 on."""

    @property
    def parts(self) -> int:
        """How many parts there are; at least 1."""
        return max(1, -(-self.total // _FEEDS_PER_PART))


class Load:
    """What goes on in a service at this moment, for whoever watches it."""

    def __init__(self, context: RefreshContext, running: Running, openings: Sized, memory: Memory) -> None:
        self._context = context
        self._running = running
        self._openings = openings
        self._memory = memory

    @property
    def memory(self) -> Usage:
        """What is held in memory of published feeds, for answers and refreshes."""
        return self._memory.usage

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
