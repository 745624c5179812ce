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
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import Heading
from wholefeed.core.compose.entries import identity_of
from wholefeed.core.refresh.basis import RefreshRequest
from wholefeed.errors import (
    NoSuchEntryError,
    NothingYetError,
    OverloadedError,
    StoreError,
    UnknownFeedError,
)
from wholefeed.futures import either_done
from wholefeed.logs import get_logger
from wholefeed.service.account import ChainDocument
from wholefeed.service.background import AskedTimes, Housekeeping, Polling
from wholefeed.service.checking import Checks
from wholefeed.service.context import RefreshContext
from wholefeed.service.imports import Imports
from wholefeed.service.listing import Lists
from wholefeed.service.mementos import Mementos
from wholefeed.service.memory import CachedFeed, Usage
from wholefeed.service.opening import Opened, Openings
from wholefeed.service.replays import Replays
from wholefeed.service.results import Reconstruction, Status
from wholefeed.service.running import Running
from wholefeed.service.showing import Showing, describe
from wholefeed.service.watching import Watching
from wholefeed.store.rows import FeedRow, FeedSummary, Snapshot
from wholefeed.store.tables import feed_table, posts
from wholefeed.store.tables.feed_table import FeedSearch

log = get_logger()

_USUAL: Final = RefreshRequest()
_MAX_LISTED: Final = 1000
"""Feeds in the list of all of them."""
_FEEDS_PER_PART: Final = 100
"""Feeds that are read at once."""
_LONGEST_SHOWN: Final = 200
"""Characters of an id, in an error."""
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
        self._store.engine.on_change = self._memory.drop
        self._stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running = Running(context)
        self.now = context.now
        """Epoch seconds."""
        self.fresh_seconds_left = context.fresh_seconds_left
        self.poll_at = context.poll_at
        self.paused_until = context.paused_until

        # the parts, which others ask directly
        self.checks = Checks(context.store, self._memory, context.config.limits)
        """Whether what is held in memory is still so; bounds what is asked of the database."""
        self.mementos = Mementos(context, self._running)
        """Looks in a web archive for what is missing."""
        self.lists = Lists(context, self._running)
        """Looks for histories in the publishers' pages."""
        self.openings = Openings(context, self._running, self.mementos, self._stopping)
        """Finds the feeds behind URLs."""
        self.imports = Imports(context, self._running, partial(self._ready, is_head=False))
        """Puts what people have kept into feeds."""
        self.asked = AskedTimes(context.store, context.now)
        """When feeds were asked for, and who was warned of one."""
        self.house = Housekeeping(context, self._running, self.asked)
        """Deletes what is old, and evicts what is too much."""
        self.watching = Watching(context, self._running, self._stopping)
        """Tells everybody who follows a feed how far its refresh is."""
        self.replays = Replays(context)
        """Feeds from their beginning, at a pace."""
        self.showing = Showing(context.store, context.source.work)
        """Makes the pages that people read."""

    # What is served

    def at_once(self, url: str, *, is_head: bool = False) -> CachedFeed | None:
        """Return the feed of a URL if it is held in memory and nothing is to be asked or awaited.

        Where `checks.are_needed`, await one first. Who answers with it calls `note_at_once`; args as for
        `answer`, which is for every other case.
        """
        held = self._memory.find(url)
        if held is None:
            return None
        feed = held.snapshot.feed
        if not is_head and (self._running.running(feed.id) is not None or self._running.is_due(feed)):
            return None
        return held

    def note_at_once(self, held: CachedFeed) -> None:
        """Count an answer with what `at_once` has returned."""
        self._context.counts.sources["memory"] += 1
        self._memory.note_asked(held)
        held.asked_at = self.asked.note(held.snapshot.feed.id, held.asked_at)

    @asynccontextmanager
    async def answer(
        self, url: str, *, wait_seconds: float, is_head: bool = False, from_memory: bool = False
    ) -> AsyncIterator[Reconstruction]:
        """Yield the feed of a URL as it is known within a time.

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
        deadline = time.monotonic() + wait_seconds
        in_time = self.checks.bounds(wait_seconds)
        async with AsyncExitStack() as stack:
            async with in_time():
                found = None
                while found is None:
                    try:
                        found = await self._found(
                            stack, url, deadline, is_head=is_head, from_memory=from_memory
                        )
                    except UnknownFeedError:  # forgotten just now: once more from the beginning
                        if time.monotonic() >= deadline:
                            raise
            snapshot, is_late, held = found
            feed = snapshot.feed
            _ = self.asked.note(feed.id, feed.asked_at)
            yield Reconstruction(snapshot, feed.is_stale or is_late, held, in_time)

    async def _found(
        self, stack: AsyncExitStack, url: str, deadline: float, *, is_head: bool, from_memory: bool
    ) -> tuple[Snapshot, bool, CachedFeed | None]:
        """Return what to answer with, and whether the publisher was not heard of in time.

        What has to stay readable until the end of the answer is entered into the stack.
        """
        memory = self._memory
        since = memory.generation
        feed, is_late = await self._ready(url, deadline, is_head=is_head)
        leads_there = feed.url == url or not memory.has_changed(feed.id, since)  # its key is its own
        if from_memory:
            await self.checks.check(url)
            held = memory.find(url)
            if held is not None and held.is_whole:
                return held.snapshot, is_late, held
        since = memory.generation
        snapshot = await stack.enter_async_context(self._store.snapshot(feed.id))
        return snapshot, is_late, memory.put(snapshot, url, since) if leads_there else None

    # Waiting for the refresh of a feed that is due, or for the opening of a URL that leads to none

    async def _ready(self, url: str, deadline: float, *, is_head: bool) -> tuple[FeedRow, bool]:
        """Return a feed that can be served, and whether its publisher was not heard of in time.

        It is waited for until the deadline, by the monotonic clock; `is_head` as `answer` has it.

        Raises:
            DocumentError: There is none, and the publisher did not give one (in time: 504).
            OverloadedError: No walk can be begun now; the database does not answer.
        """
        held = self._memory.find(url)
        self._memory.note_asked(held)
        opened = self.openings.opened
        feed = held.snapshot.feed if held is not None else await self._context.find(url)
        if feed is None or not feed.digest:
            self._context.counts.sources["publisher"] += 1
            return await self._open(url, deadline, not is_head, opened if feed is None else -1), False
        return feed, not is_head and await self._freshen(feed, deadline)

    async def _freshen(self, feed: FeedRow, deadline: float) -> bool:
        """Refresh a feed whose time has come; return whether its publisher was not heard of in time."""
        is_due = self._running.is_due(feed)
        if self.checks.are_blind:  # nothing could be kept of what a publisher says
            return is_due
        if not is_due and self._running.running(feed.id) is None:
            self._context.counts.sources["store"] += 1
            return False
        self._context.counts.sources["publisher"] += 1
        flight = self._running.join(feed, _USUAL)
        await self._wait_for_refresh(feed.id, flight, deadline)
        if not is_due or flight.done():
            return False
        under_way = self._running.under_way(feed.id)
        return under_way is None or not under_way.is_confirmed

    async def _wait_for_refresh(self, feed_id: int, flight: asyncio.Task[None], deadline: float) -> None:
        with self._memory.await_feed(feed_id):
            await either_done(flight, self._stopping, deadline - time.monotonic())

    async def _open(self, url: str, deadline: float, may_walk: bool, unknown_at: int) -> FeedRow:
        """Return the feed of a URL once something of it can be served; arguments as for `Openings.join`."""
        while not self._stopping.done():
            try:
                opening = self.openings.join(url, may_walk=may_walk, unknown_at=unknown_at)
                feed = await self._wait_for_opening(opening, deadline, may_walk)
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
        await self.checks.require_answer()  # perhaps it is the database that has taken all of the time
        raise NothingYetError("expected a feed in time, got nothing yet", url=url)

    async def _wait_for_opening(
        self, opening: asyncio.Task[Opened], deadline: float, may_walk: bool
    ) -> FeedRow | None:
        """Wait for the opening of a URL and for the refresh that it begins; return what is known in time."""
        await either_done(opening, self._stopping, deadline - time.monotonic())
        if not opening.done():
            return None
        opened, flight = opening.result()
        if flight is None:
            return opened
        if may_walk and not flight.done():
            _ = self._running.join(opened, _USUAL)  # whoever opened it may want the head alone
        await self._wait_for_refresh(opened.id, flight, deadline)
        held = self._memory.of(opened.id)
        look = partial(feed_table.find, feed=opened.id)
        feed = held.snapshot.feed if held else await self._store.read(look, is_single=True)
        if feed is None or flight.cancelled():
            raise UnknownFeedError(f"forgotten meanwhile: {opened.url}")
        if not feed.digest and flight.done():
            flight.result()
        return feed

    # What is known

    async def is_known(self, url: str) -> bool:
        """Whether anything is stored for a URL."""
        async with self.checks.answering():
            return await self._context.find(url) is not None

    async def is_awaited(self, url: str) -> bool:
        """Whether the feed of a URL is being fetched, or it is being found out what the URL leads to."""
        async with self.checks.answering():
            feed = await self._context.find(url)
        is_refreshing = feed is not None and self._running.running(feed.id) is not None
        return is_refreshing or self.openings.is_under_way(url)

    async def status(self, url: str) -> Status:
        """Tell what is known of a feed; `UnknownFeedError` where nothing is stored for the URL."""
        async with self._of_known(url) as feed:
            return await self.watching.status(feed.id)

    async def account(self, url: str) -> tuple[Status, list[ChainDocument]]:
        """Tell what is known of a feed, document by document; raises as `status`."""
        async with self._of_known(url) as feed:
            return await self.watching.account(feed.id)

    @asynccontextmanager
    async def _of_known(self, url: str) -> AsyncIterator[FeedRow]:
        """Find the feed that is stored for a URL; what the block reads of it is bounded in time, too."""
        async with self.checks.answering():
            feed = await self._context.find(url)
            if feed is None:
                raise UnknownFeedError(f"nothing is stored for {url}")
            yield feed

    async def feeds(self) -> list[FeedSummary]:
        """Return the known feeds, at most `_MAX_LISTED` of them."""
        async with self.checks.answering():
            listed = await self._store.read(partial(feed_table.list_feeds, limit=_MAX_LISTED, offset=0))
        return await self._name_feeds(listed)

    async def every_feed(self) -> AsyncIterator[list[FeedSummary]]:
        """Give the known feeds by URL, those that are published, some at a time.

        One that comes or goes meanwhile may move another to or fro: that one is given twice or not at all.
        """
        offset = 0
        while True:
            async with self.checks.answering():
                rows = await self._store.read(
                    partial(feed_table.list_feeds, limit=_FEEDS_PER_PART, offset=offset)
                )
            if not rows:
                return
            yield await self._name_feeds([row for row in rows if row.digest])
            offset += len(rows)

    async def listed(self, search: FeedSearch, number: int) -> FeedListPage:
        """Return a part of the feeds that are looked for, from 1 on; the last where that one is not there."""

        async def part(wanted: int) -> FeedListPage:
            first = (wanted - 1) * _FEEDS_PER_PART
            found, total = await self._store.read(
                partial(feed_table.search, search=search, limit=_FEEDS_PER_PART, offset=first)
            )
            return FeedListPage(tuple(found), total, wanted)

        async with self.checks.answering():
            asked = await part(number)
            if asked.number > asked.parts:
                asked = await part(asked.parts)
        return asked._replace(feeds=tuple(await self._name_feeds(asked.feeds)))

    async def _name_feeds(self, listed: Sequence[FeedSummary]) -> list[FeedSummary]:
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
                        feed = await self._store.read(
                            partial(feed_table.find_unnamed, feed=feed_id), feed=feed_id
                        )
                        if feed is not None:
                            found[feed_id] = await describe(feed)
        if found:
            with suppress(StoreError, OverloadedError, TimeoutError):
                async with asyncio.timeout(_NAMING_SECONDS):
                    await self._store.write(partial(feed_table.keep_headings, headings=found))
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

    async def forget_entry(self, url: str, entry: str) -> None:
        """Remove one entry of a feed, until its publisher updates it (I2).

        Args:
            url: Of the feed.
            entry: The entry's id as its feed writes it; of an entry without one, its link. Else what
                `wholefeed.Entry.identity` says.

        Raises:
            NoSuchEntryError: The feed has no such entry.
            OverloadedError: The feed is being refreshed, or the database did not answer in time.
            UnknownFeedError: Nothing is stored for the URL.
        """
        deadline = time.monotonic() + self._context.config.limits.respond_within_seconds
        async with self._of_known(url) as feed:
            look = partial(posts.find_served, feed=feed.id, own=identity_of(entry))
            identity = await self._store.read(look)
            if identity is None:
                raise NoSuchEntryError(f"the feed has no entry {entry.strip()[:_LONGEST_SHOWN]!r}")
        request = RefreshRequest(is_polled=True, forgets=(identity,))
        await self._running.refresh_alone(feed.id, request, (), deadline)
        log.info("entry.forgotten", feed=feed.id)

    # What goes on beside

    @property
    def load(self) -> Load:
        running, source = self._running, self._context.source
        return Load(
            self._memory.usage,
            len(running),
            len(self.openings),
            running.walking,
            running.waiting,
            source.fetcher.gate.running,
            source.fetcher.gate.waiting,
            len(source.work.pids),
            source.work.busy,
        )

    @property
    def is_busy(self) -> bool:
        """Whether anything is being fetched or walked."""
        return len(self.openings) + len(self._running) > 0

    async def resume(self) -> None:
        """Take up the walks that an earlier run of the program did not finish."""
        if not self._context.sharing.is_shared:
            for feed in await self._store.read(feed_table.list_unfinished):
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
            tasks.create_task(self.house.run())
            tasks.create_task(self.asked.run())
            tasks.create_task(self._store.upkeep.keep_sent(self.now))

    def stop_waiting(self) -> None:
        """Let every request that waits for a publisher go on with what there is."""
        if not self._stopping.done():
            self._stopping.set_result(None)

    async def close(self) -> None:
        """Stop what is under way; unfinished walks are taken up at the next start."""
        self.stop_waiting()
        await self.lists.close()
        await self.openings.close()
        await self.replays.close()
        await self._running.close()
        await self.checks.close()
        await self.asked.close()


class FeedListPage(NamedTuple):
    """One part of the feeds that were looked for."""

    feeds: tuple[FeedSummary, ...]
    total: int
    """How many there are in all parts."""
    number: int
    """Which part this is, from 1 on."""

    @property
    def parts(self) -> int:
        """How many parts there are; at least 1."""
        return max(1, -(-self.total // _FEEDS_PER_PART))


class Load(NamedTuple):
    """What goes on in a service at a moment, for whoever watches it."""

    memory: Usage
    """What is held of feeds."""
    refreshes: int
    """Feeds being refreshed."""
    openings: int
    """URLs being opened that lead to no known feed."""
    walks: int
    """Walks that use the network."""
    waiting_walks: int
    """Walks that wait for their turn, those of polls not counted."""
    requests: int
    """Requests to publishers under way."""
    waiting_requests: int
    """Requests to publishers that wait for a place."""
    workers: int
    """Processes that work on documents."""
    busy_workers: int
