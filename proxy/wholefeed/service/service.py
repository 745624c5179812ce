"""The interface of the service: serve, describe and change feeds.

    service = FeedService(context)
    async with service.answer(url, wait_seconds=8.0) as reconstruction:
        ...                       # its segments stay readable in here

A request never runs a refresh itself: it joins the feed's refresh and waits for a limited time
(docs/faults.md rows 63, 64). The answer comes from the store.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeVar

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
from wholefeed.fetch.robots import Robots
from wholefeed.futures import either_done
from wholefeed.logs import get_logger
from wholefeed.service.account import ChainDocument
from wholefeed.service.background import AskedTimes, Housekeeping, Polling
from wholefeed.service.checking import Checks
from wholefeed.service.context import RefreshContext
from wholefeed.service.entry_composer import EntryComposer
from wholefeed.service.feed_list import FEEDS_PER_PART, FeedListPage, read_found, read_list
from wholefeed.service.imports import Imports
from wholefeed.service.intakes import Intakes
from wholefeed.service.listing import Lists
from wholefeed.service.mementos import Mementos
from wholefeed.service.memory import CachedFeed, Usage
from wholefeed.service.opening import Opened, Openings
from wholefeed.service.page_fetches import SitePace
from wholefeed.service.refresh_queue import RefreshQueue
from wholefeed.service.replays import Replays
from wholefeed.service.results import Reconstruction, Status
from wholefeed.service.running import Running
from wholefeed.service.showing import Showing, describe
from wholefeed.service.texts import Texts
from wholefeed.service.titles import Titles
from wholefeed.service.watching import Watching
from wholefeed.store.rows import FeedLine, FeedRow, FeedSummary, Snapshot
from wholefeed.store.tables import feed_table, posts
from wholefeed.store.tables.feed_table import FeedSearch

log = get_logger()

_USUAL: Final = RefreshRequest()
_MAX_LISTED: Final = 1000
_LONGEST_SHOWN: Final = 200  # characters of an entry id quoted in an error
# Time for one list to read titles missing from the store; the next list continues.
_NAMING_SECONDS: Final = 0.5
_Summary = TypeVar("_Summary", bound=FeedSummary)


class FeedService:
    """All feeds of one store.

    A request ends soon after `limits.respond_within_seconds`, if need be with `OverloadedError`: a shared
    database may stop answering.
    """

    def __init__(self, context: RefreshContext) -> None:
        self._context = context
        self._store = context.store
        self._memory = context.memory
        self._store.engine.on_change = self._memory.drop
        self._stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running = Running(context)
        self.now = context.now  # epoch seconds
        self.fresh_seconds_left = context.fresh_seconds_left
        self.poll_at = context.poll_at
        self.paused_until = context.paused_until

        # Other modules use these parts directly.
        self.checks = Checks(context.store, self._memory, context.config.limits)
        self.mementos = Mementos(context, self._running)
        robots = Robots(
            context.source.fetcher, context.config.fetch.user_agent, publishers=context.publishers
        )
        pace = SitePace()  # lists and texts of one site share its pace
        self.lists = Lists(context, self._running, robots, pace)
        self.texts = Texts(context, robots, pace)
        self.openings = Openings(context, self._running, self.mementos, self._stopping)
        self.intakes = Intakes(context, self._running, self.openings, self._stopping)
        self.imports = Imports(context, self._running, partial(self._ready, is_head=False))
        self.queue = RefreshQueue(context, self._running)
        self.asked = AskedTimes(context.store, context.now)
        self.house = Housekeeping(context, self._running, self.asked)
        self.watching = Watching(context, self._running, self._stopping)
        self.replays = Replays(context)
        self.composer = EntryComposer(context.store, context.source.work, self.replays)
        self.showing = Showing(context.store, context.source.work, self.composer.fill_texts)
        self.titles = Titles(context.store)

    # Serving

    def at_once(self, url: str, *, is_head: bool = False) -> CachedFeed | None:
        """Return a cached feed if nothing is to be refreshed or awaited.

        If `checks.are_needed`, await `checks.check` first. Call `note_at_once` for each answer sent.
        """
        held = self._memory.find(url)
        if held is None:
            return None
        feed = held.snapshot.feed
        if not is_head and (self._running.running(feed.id) is not None or self._running.is_due(feed)):
            return None
        return held

    def note_at_once(self, held: CachedFeed) -> None:
        self._context.counts.sources["memory"] += 1
        self._memory.note_asked(held)
        held.asked_at = self.asked.note(held.snapshot.feed.id, held.asked_at)

    @asynccontextmanager
    async def answer(
        self, url: str, *, wait_seconds: float, is_head: bool = False, from_memory: bool = False
    ) -> AsyncIterator[Reconstruction]:
        """Yield the feed of a canonical URL as known after at most `wait_seconds`.

        `is_head` fetches at most the subscription document, and nothing for a known feed. `from_memory` opens
        no snapshot in the store if all blocks are cached.

        Raises:
            DocumentError: Nothing is stored and the publisher gave no feed (in time: 504).
            OverloadedError: Nothing is stored and no walk can begin, or the database does not answer.
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
                    except UnknownFeedError:  # deleted just now: start again
                        if time.monotonic() >= deadline:
                            raise
            snapshot, is_late, held = found
            feed = snapshot.feed
            _ = self.asked.note(feed.id, feed.asked_at)
            yield Reconstruction(snapshot, feed.is_stale or is_late, held, in_time)

    async def _found(
        self, stack: AsyncExitStack, url: str, deadline: float, *, is_head: bool, from_memory: bool
    ) -> tuple[Snapshot, bool, CachedFeed | None]:
        """Return the snapshot, whether the publisher was late, and the cached feed."""
        memory = self._memory
        since = memory.generation
        feed, is_late = await self._ready(url, deadline, is_head=is_head)
        # a feed's own URL always leads to it
        leads_there = feed.url == url or not memory.has_changed(feed.id, since)
        if from_memory:
            await self.checks.check(url)
            held = memory.find(url)
            if held is not None and held.is_whole:
                return held.snapshot, is_late, held
        since = memory.generation
        snapshot = await stack.enter_async_context(self._store.snapshot(feed.id))
        return snapshot, is_late, memory.put(snapshot, url, since) if leads_there else None

    # Waiting for refreshes and openings

    async def _ready(self, url: str, deadline: float, *, is_head: bool) -> tuple[FeedRow, bool]:
        """Return a feed to serve, and whether its publisher missed `deadline` (monotonic)."""
        held = self._memory.find(url)
        self._memory.note_asked(held)
        opened = self.openings.opened
        feed = held.snapshot.feed if held is not None else await self._context.find(url)
        if feed is None or not feed.digest:
            self._context.counts.sources["publisher"] += 1
            return await self._open(url, deadline, not is_head, opened if feed is None else -1), False
        return feed, not is_head and await self._freshen(feed, deadline)

    async def _freshen(self, feed: FeedRow, deadline: float) -> bool:
        """Refresh a feed that is due; return whether its publisher missed the deadline."""
        is_due = self._running.is_due(feed)
        if self.checks.are_blind:  # nothing that a publisher sends could be stored
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
        while not self._stopping.done():
            try:
                opening = self.openings.join(url, may_walk=may_walk, unknown_at=unknown_at)
                feed = await self._wait_for_opening(opening, deadline, may_walk)
            except UnknownFeedError:  # deleted just now: start again
                unknown_at = -1
                if time.monotonic() >= deadline:
                    raise
                continue
            if feed is not None and feed.digest:
                return feed
            break
        if self._stopping.done():
            raise OverloadedError("shutting down", slug="shutting-down")
        await self.checks.require_answer()  # the database may be the slow part
        raise NothingYetError("expected a feed in time, got nothing yet", url=url)

    async def _wait_for_opening(
        self, opening: asyncio.Task[Opened], deadline: float, may_walk: bool
    ) -> FeedRow | None:
        await either_done(opening, self._stopping, deadline - time.monotonic())
        if not opening.done():
            return None
        opened, flight = opening.result()
        if flight is None:
            return opened
        if may_walk and not flight.done():
            _ = self._running.join(opened, _USUAL)  # the opening may have asked for the head alone
        await self._wait_for_refresh(opened.id, flight, deadline)
        held = self._memory.of(opened.id)
        look = partial(feed_table.find, feed=opened.id)
        feed = held.snapshot.feed if held else await self._store.read(look, is_single=True)
        if feed is None or flight.cancelled():
            raise UnknownFeedError(f"forgotten meanwhile: {opened.url}")
        if not feed.digest and flight.done():
            flight.result()
        return feed

    # Reading

    async def is_known(self, url: str) -> bool:
        async with self.checks.answering():
            return await self._context.find(url) is not None

    async def is_awaited(self, url: str) -> bool:
        async with self.checks.answering():
            feed = await self._context.find(url)
        is_refreshing = feed is not None and self._running.running(feed.id) is not None
        return is_refreshing or self.openings.is_under_way(url)

    async def status(self, url: str) -> Status:
        """Return the status of a feed; raise `UnknownFeedError` if nothing is stored for the URL."""
        async with self._of_known(url) as feed:
            return await self.watching.status(feed.id)

    async def account(self, url: str) -> tuple[Status, list[ChainDocument]]:
        """Return the status and the documents of a feed; raise as `status`."""
        async with self._of_known(url) as feed:
            return await self.watching.account(feed.id)

    @asynccontextmanager
    async def _of_known(self, url: str) -> AsyncIterator[FeedRow]:
        """Find a stored feed; the time limit covers the block, too."""
        async with self.checks.answering():
            feed = await self._context.find(url)
            if feed is None:
                raise UnknownFeedError(f"nothing is stored for {url}")
            yield feed

    async def feeds(self) -> list[FeedSummary]:
        async with self.checks.answering():
            listed = await self._store.read(partial(feed_table.list_feeds, limit=_MAX_LISTED, offset=0))
        return await self._name_feeds(listed)

    async def every_feed(self) -> AsyncIterator[list[FeedSummary]]:
        """Yield batches of all feeds, ordered by URL.

        A feed added or deleted meanwhile may make another feed appear twice or not at all.
        """
        offset = 0
        while True:
            async with self.checks.answering():
                rows = await self._store.read(
                    partial(feed_table.list_feeds, limit=FEEDS_PER_PART, offset=offset)
                )
            if not rows:
                return
            yield await self._name_feeds(rows)
            offset += len(rows)

    async def listed(self, search: FeedSearch, number: int) -> FeedListPage:
        """Return a part, counted from 1; the last if `number` is too large."""
        look = partial(read_list, search=search, number=number, now=self.now())
        async with self.checks.answering():
            found = await self._store.read(look)
        return found._replace(feeds=tuple(await self._name_feeds(found.feeds)))

    async def find_all(self, search: FeedSearch) -> list[int]:
        async with self.checks.answering():
            return await self._store.read(partial(read_found, search=search, now=self.now()))

    async def lines_of(self, feeds: Sequence[int]) -> list[FeedLine]:
        """Return feeds in this order, without forgotten ones."""
        async with self.checks.answering():
            return await self._name_feeds(await self._store.read(partial(feed_table.read_lines, feeds=feeds)))

    async def _name_feeds(self, listed: Sequence[_Summary]) -> list[_Summary]:
        """Add titles to feeds published before the store had titles, as far as time and database allow."""
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

    # Changing

    async def refresh(self, url: str, *, is_full: bool = False, has_texts: bool = False) -> Status:
        """Begin to refetch the subscription document and missing documents (R14), without waiting.

        With `has_texts`, the pages of entries that want texts are fetched again, too (T2).

        Raises:
            UnknownFeedError: Nothing is stored for the URL.
        """
        async with self._of_known(url) as feed:
            _ = self._running.join(feed, RefreshRequest(is_forced=True, is_full=is_full))
            if has_texts:
                await self.texts.ask_again(feed.id)
            return await self.watching.status(feed.id)

    def is_being_asked(self, feed_id: int) -> bool:
        """Return whether a feed's publisher is being asked, or its refresh waits in the queue."""
        return self._running.running(feed_id) is not None or self.queue.is_waiting(feed_id)

    async def forget(self, url: str) -> None:
        """Delete a feed and everything stored of it.

        Raises:
            OverloadedError: The database was too slow; it still executes commands already sent.
            UnknownFeedError: Nothing is stored for the URL.
        """
        async with self._of_known(url) as feed:
            await self._forget(feed.id)

    async def forget_all(self, feeds: Iterable[int]) -> None:
        """Delete feeds; forgotten ones are passed over."""
        for feed in feeds:
            async with self.checks.answering():
                await self._forget(feed)

    async def _forget(self, feed_id: int) -> None:
        self.queue.drop(feed_id)
        await self._running.cancel(feed_id)
        if await self._store.forget(feed_id, now=self.now()):
            log.info("feed.forgotten", feed=feed_id)

    async def forget_entry(self, url: str, entry: str) -> None:
        """Remove one entry of a feed, until its publisher updates it (I2).

        `entry` is the entry's id as its feed writes it, else its link, else `wholefeed.Entry.identity`.

        Raises:
            NoSuchEntryError: The feed has no such entry.
            OverloadedError: The feed is being refreshed, or the database was too slow.
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
        await self.texts.drop_unused(feed.id)
        log.info("entry.forgotten", feed=feed.id)

    # In the background

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
        return len(self.openings) + len(self._running) + len(self.queue) > 0

    async def resume(self) -> None:
        """Continue walks that an earlier run left unfinished."""
        if not self._context.sharing.is_shared:
            for feed in await self._store.read(feed_table.list_unfinished):
                _ = self._running.join(feed, RefreshRequest())

    async def keep_resuming(self) -> None:
        """Continue the walks of dead replicas until cancelled; return at once if the store is not shared."""
        running = self._running
        await self._context.sharing.adopt(running.is_due, lambda feed: running.join(feed, RefreshRequest()))

    async def keep_polling(self) -> None:
        """Poll feeds until cancelled; return at once if polling is off."""
        if self._context.config.history.poll_seconds:
            await Polling(self._context, self._running).run()

    async def keep_house(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.house.run())
            tasks.create_task(self.asked.run())
            tasks.create_task(self._store.upkeep.keep_sent(self.now))

    def stop_waiting(self) -> None:
        """Let every waiting request answer from the store."""
        if not self._stopping.done():
            self._stopping.set_result(None)

    async def close(self) -> None:
        """Stop all work; the next start continues unfinished walks."""
        self.stop_waiting()
        await self.lists.close()
        await self.texts.close()
        await self.intakes.close()
        await self.openings.close()
        await self.replays.close()
        await self.queue.close()
        await self._running.close()
        await self.checks.close()
        await self.asked.close()


class Load(NamedTuple):
    memory: Usage
    refreshes: int
    openings: int
    """Unknown URLs being opened."""
    walks: int
    """Walks that use the network."""
    waiting_walks: int
    """Without those of polls."""
    requests: int
    """To publishers."""
    waiting_requests: int
    workers: int
    busy_workers: int
