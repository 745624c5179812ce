"""The status of a feed and its refresh, once or for followers; nothing is fetched or changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

from wholefeed.errors import OverloadedError, StoreError, UnknownFeedError
from wholefeed.service.account import ChainDocument, account_of
from wholefeed.service.context import RefreshContext
from wholefeed.service.results import Status, UnderWay
from wholefeed.service.running import Running
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, Overview
from wholefeed.store.tables import document_table, failures

MAX_FOLLOWERS: Final = 256
MAX_FOLLOWERS_OF_ONE: Final = 32
"""Limits the holder of a signed URL, which opens one feed."""
TICK_SECONDS: Final = 0.5
"""Between looks at a walk's progress."""
_READ_SECONDS: Final = 2.0
"""Between reads during a walk."""
_IDLE_SECONDS: Final = 10.0
"""Between reads without progress."""
_ELSEWHERE_SECONDS: Final = 1.0
"""Between reads of another replica's progress."""


class Watching:
    """Statuses of feeds, once or for followers; after `stopping` nobody follows.

    Progress is in memory, checked twice a second. The rest is read from the database, once for all followers.
    """

    def __init__(self, context: RefreshContext, running: Running, stopping: asyncio.Future[None]) -> None:
        self._context = context
        self._running = running
        self._stopping = stopping
        self._watched: dict[int, _Watched] = {}
        self.followers = 0

    async def status(self, feed_id: int) -> Status:
        """Return a feed's status.

        Raises:
            UnknownFeedError: The feed was forgotten.
        """
        sharing = self._context.sharing

        def look(db: Database) -> tuple[Overview, UnderWay | None]:
            return failures.overview(db, feed_id), sharing.elsewhere(db, feed_id)

        while True:
            flight = self._running.running(feed_id)
            overview, elsewhere = await self._context.store.read(look)
            if flight is None or not flight.done():
                break  # else the read may precede the end of the refresh, and would pass for the end
        feed = overview.feed
        stored = UnderWay(documents=feed.documents, entries=feed.entries)
        paused_until = self._context.paused_until(feed.fetch_url)
        list_at = feed.list_at if self._context.may_list(feed.fetch_url) else None
        poll_at = self._context.poll_at(feed)
        return self._now(Status(overview, False, stored, paused_until, list_at, poll_at, elsewhere), feed_id)

    def _now(self, told: Status, feed_id: int) -> Status:
        is_here = self._running.running(feed_id) is not None
        under_way = self._running.under_way(feed_id) if is_here else told.elsewhere
        is_refreshing = is_here or under_way is not None
        if under_way is None or not under_way.is_walking:
            return replace(told, is_refreshing=is_refreshing)
        return replace(told, is_refreshing=is_refreshing, progress=under_way)

    async def account(self, feed_id: int) -> tuple[Status, list[ChainDocument]]:
        """Return a feed's status and documents; raise as `status`."""

        def look(db: Database) -> tuple[list[DocumentRow], dict[int, int]]:
            return document_table.list_all(db, feed_id), document_table.count_superseded(db, feed_id)

        rows, superseded = await self._context.store.read(look)
        status = await self.status(feed_id)
        return status, account_of(status.overview, rows, superseded)

    @asynccontextmanager
    async def follow(self, feed_id: int) -> AsyncIterator[News]:
        """Follow a feed until nothing is under way.

        Raises:
            OverloadedError: Too many followers.
        """
        if self.followers >= MAX_FOLLOWERS:
            raise OverloadedError(f"expected at most {MAX_FOLLOWERS} clients that follow feeds at once")
        watched = self._watched.get(feed_id)
        if watched is not None and watched.followers >= MAX_FOLLOWERS_OF_ONE:
            raise OverloadedError(
                f"expected at most {MAX_FOLLOWERS_OF_ONE} clients that follow one feed at once"
            )
        if watched is None or watched.is_over:
            watched = self._watched[feed_id] = _Watched()
            watched.task = asyncio.create_task(self._watch(feed_id, watched))
        self.followers += 1
        watched.followers += 1
        try:
            yield News(watched)
        finally:
            self.followers -= 1
            watched.followers -= 1
            if not watched.followers:
                await self._leave(feed_id, watched)

    async def _leave(self, feed_id: int, watched: _Watched) -> None:
        if self._watched.get(feed_id) is watched:
            del self._watched[feed_id]
        assert watched.task is not None, "it has begun"
        watched.task.cancel()
        await asyncio.wait({watched.task})

    async def _watch(self, feed_id: int, watched: _Watched) -> None:
        try:
            while not self._stopping.done():
                told = await self.status(feed_id)
                watched.tell(told)
                if not told.is_refreshing:
                    return
                await self._tell_progress(feed_id, watched, told)
        except (UnknownFeedError, StoreError, OverloadedError):  # forgotten, or a later request may succeed
            return
        finally:
            watched.end()

    async def _tell_progress(self, feed_id: int, watched: _Watched, told: Status) -> None:
        """Tell progress from memory until the next read."""
        if told.elsewhere is not None and self._running.running(feed_id) is None:
            await asyncio.wait({self._stopping}, timeout=_ELSEWHERE_SECONDS)
            return
        began, first = time.monotonic(), _counts(told)
        while self._running.running(feed_id) is not None and not self._stopping.done():
            await asyncio.wait({self._stopping}, timeout=TICK_SECONDS)
            now = self._now(told, feed_id)
            if _counts(now) != _counts(told):
                watched.tell(now)
                told = now
            passed_seconds = time.monotonic() - began
            if passed_seconds >= (_IDLE_SECONDS if _counts(told) == first else _READ_SECONDS):
                return


def _counts(status: Status) -> tuple[int, int, int]:
    return status.progress.documents, status.progress.entries, status.progress.fetched


class News:
    """The statuses for one follower."""

    def __init__(self, watched: _Watched) -> None:
        self._watched = watched
        self._told: Status | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more follows: the refresh ended, the feed was forgotten, or the program stops."""
        return self._watched.is_over and self._told is self._watched.latest

    async def next(self, seconds: float) -> Status | None:
        """Return the latest new status; None: no news in time.

        The final status says that nothing is under way.
        """
        watched = self._watched
        if self._told is watched.latest and not watched.is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await watched.changed.wait()
        if self._told is watched.latest:
            return None
        self._told = watched.latest
        return self._told


class _Watched:
    """One followed feed, and the task that reads it."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.followers = 0
        self.latest: Status | None = None
        """Compared by identity."""
        self.is_over = False
        self.changed = asyncio.Event()

    def tell(self, status: Status) -> None:
        """Wake followers if the status differs visibly, or is final."""
        is_over = not status.is_refreshing
        if is_over or self.latest is None or _visible_part(status) != _visible_part(self.latest):
            self.latest = status
            self._wake()

    def end(self) -> None:
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


def _visible_part(status: Status) -> tuple[object, ...]:
    """Return the parts that count as news; time alone changes the others."""
    left, is_paused = status.progress.left, status.paused_until is not None
    return status.overview, status.is_refreshing, *_counts(status), left, is_paused
