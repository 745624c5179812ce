"""How far the refresh of a feed is, told to everybody who wants to follow it at once.

    async with watching.follow(feed_id) as news:
        while not news.is_over:
            status = await news.next(15.0)      # None: nothing has changed for so long

What changes all the time, the progress of a walk, is in memory and looked at twice a second. The rest is read
from the database, once for all who follow a feed, from time to time and when the refresh has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

from wholefeed.errors import OverloadedError, StoreError, UnknownFeedError
from wholefeed.service.account import ChainDocument, account_of
from wholefeed.service.refresh.context import RefreshContext
from wholefeed.service.refresh.running import Running
from wholefeed.service.results import Status
from wholefeed.service.sharing.progress import Elsewhere
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentRow, Overview
from wholefeed.store.tables import documents, failures

MAX_FOLLOWERS: Final = 256
"""Who may follow feeds at once."""
TICK_SECONDS: Final = 0.5
_READ_SECONDS: Final = 2.0
"""Between two reads of a feed whose walk goes on."""
_ELSEWHERE_SECONDS: Final = 1.0
"""The same where another replica is at it: what it tells is stored, too."""
_IDLE_SECONDS: Final = 10.0
"""The same where that does not."""


class Watching:
    """Belongs to one service.

    Args:
        context: What the service works with.
        running: The refreshes under way.
        stopping: Done when the program is to stop: then nobody follows anything any more.
    """

    def __init__(self, context: RefreshContext, running: Running, stopping: asyncio.Future[None]) -> None:
        self._context = context
        self._running = running
        self._stopping = stopping
        self._watched: dict[int, _Watched] = {}
        self.followers = 0
        """How many follow a feed now."""

    async def status(self, feed_id: int) -> Status:
        """Tell what is known of a feed; `UnknownFeedError` where it was forgotten."""
        sharing = self._context.sharing

        def look(db: Database) -> tuple[Overview, Elsewhere | None]:
            return failures.overview(db, feed_id), sharing.elsewhere(db, feed_id)

        overview, elsewhere = await self._context.store.read(look)
        feed = overview.feed
        told = Status(
            overview=overview,
            is_refreshing=False,
            progress_documents=feed.documents,
            progress_entries=feed.entries,
            progress_fetched=0,
            progress_left=None,
            progress_seconds=None,
            paused_until=self._context.paused_until(feed.fetch_url),
            elsewhere=elsewhere,
        )
        return self._now(told, feed_id)

    async def account(self, feed_id: int) -> tuple[Status, list[ChainDocument]]:
        """Tell what is known of a feed, document by document; `UnknownFeedError` where it was forgotten."""

        def look(db: Database) -> tuple[list[DocumentRow], dict[int, int]]:
            return documents.list_all(db, feed_id), documents.superseded(db, feed_id)

        rows, superseded = await self._context.store.read(look)
        status = await self.status(feed_id)
        return status, account_of(status.overview, rows, superseded)

    def _now(self, told: Status, feed_id: int) -> Status:
        """Return a status with the progress of this moment."""
        is_refreshing = self._running.running(feed_id) is not None
        progress, seconds = self._running.progress(feed_id), self._running.walked_seconds(feed_id)
        if told.elsewhere is not None and not is_refreshing:
            is_refreshing = True
            progress, seconds = told.elsewhere.progress, told.elsewhere.walked_seconds
        if progress is None:
            return replace(told, is_refreshing=is_refreshing)
        return replace(
            told,
            is_refreshing=is_refreshing,
            progress_documents=progress.documents,
            progress_entries=progress.entries,
            progress_fetched=progress.fetched,
            progress_left=progress.left,
            progress_seconds=seconds,
        )

    @asynccontextmanager
    async def follow(self, feed_id: int) -> AsyncIterator[News]:
        """Follow what becomes of a feed until nothing is under way any more.

        Raises:
            OverloadedError: Too many do.
        """
        if self.followers >= MAX_FOLLOWERS:
            raise OverloadedError(f"expected at most {MAX_FOLLOWERS} who follow feeds at once")
        watched = self._watched.get(feed_id)
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
        """Tell the followers of a feed what changes, until nothing does any more."""
        try:
            while not self._stopping.done():
                told = await self.status(feed_id)
                watched.tell(told, is_last=not told.is_refreshing)
                if not told.is_refreshing:
                    return
                await self._tell_progress(feed_id, watched, told)
        except (UnknownFeedError, StoreError, OverloadedError):  # forgotten, or it can be asked for later
            return
        finally:
            watched.end()

    async def _tell_progress(self, feed_id: int, watched: _Watched, told: Status) -> None:
        """Tell what is in memory until it is time to look at what is stored."""
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
    return status.progress_documents, status.progress_entries, status.progress_fetched


def _told(status: Status | None) -> Status | None:
    """Return a status without what changes by time alone."""
    if status is None:
        return None
    is_paused = status.paused_until is not None
    return replace(status, progress_seconds=None, elsewhere=None, paused_until=0.0 if is_paused else None)


class _Watched:
    """What is known of one feed that is followed."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.followers = 0
        self.latest: Status | None = None
        self.number = 0
        """Of `latest`, counted."""
        self.is_over = False
        self.is_last = False
        """Whether `latest` tells how it ended."""
        self._changed = asyncio.Event()

    def tell(self, status: Status, *, is_last: bool = False) -> None:
        """Let everybody know, unless it is what they know already."""
        if is_last or _told(status) != _told(self.latest):
            self.latest, self.is_last = status, is_last
            self.number += 1
            self._wake()

    def end(self) -> None:
        """Let everybody know that nothing follows."""
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seen: int, seconds: float) -> None:
        """Wait until more is known than what was seen, or nothing follows, for at most so long."""
        if self.number == seen and not self.is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()


class News:
    """What one follower is told."""

    def __init__(self, watched: _Watched) -> None:
        self._watched = watched
        self._seen = 0

    @property
    def is_over(self) -> bool:
        """Whether all has been told: nothing is under way, the feed was forgotten, or the program stops."""
        return self._watched.is_over and self._seen == self._watched.number

    @property
    def is_settled(self) -> bool:
        """Whether what was told last is how it ended."""
        return self._watched.is_last and self._seen == self._watched.number

    async def next(self, seconds: float) -> Status | None:
        """Return what is known now, once it is more than before; None: nothing was in that time.

        Of several changes since the last call only the latest is told.
        """
        await self._watched.wait(self._seen, seconds)
        if self._watched.number == self._seen:
            return None
        self._seen = self._watched.number
        return self._watched.latest
