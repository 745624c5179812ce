"""How a feed stands and its refresh goes on, once or for as long as somebody follows it.

    status = await watching.status(feed_id)
    async with watching.follow(feed_id) as news:
        while not news.is_over:
            status = await news.next(15.0)              # None: nothing has changed for so long

Nothing here changes or fetches anything. The words for it stand in `wholefeed.core.words`, the pages in
`wholefeed.web`.
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
from wholefeed.service.context import RefreshContext
from wholefeed.service.results import Status, UnderWay
from wholefeed.service.running import Running
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, Overview
from wholefeed.store.tables import document_table, failures

MAX_FOLLOWERS: Final = 256
"""Who may follow feeds at once."""
MAX_FOLLOWERS_OF_ONE: Final = 32
"""Who may follow one feed: whoever holds a signed URL, which opens one, takes no more of the places."""
TICK_SECONDS: Final = 0.5
"""Between two looks at the progress of a walk."""
_READ_SECONDS: Final = 2.0
"""Between two reads of a feed whose walk goes on."""
_IDLE_SECONDS: Final = 10.0
"""The same where the walk does not go on."""
_ELSEWHERE_SECONDS: Final = 1.0
"""The same where another replica walks: its progress, too, is read from the database."""


class Watching:
    """Tells what is known of a feed, and to everybody who wants to follow it at once how far its refresh is.

    What changes all the time, the progress of a walk, is in memory and looked at twice a second. The rest is
    read from the database, once for all who follow a feed, from time to time and when the refresh has ended.
    Once `stopping` is done nobody follows anything any more.
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

        def look(db: Database) -> tuple[Overview, UnderWay | None]:
            return failures.overview(db, feed_id), sharing.elsewhere(db, feed_id)

        while True:
            flight = self._running.running(feed_id)
            overview, elsewhere = await self._context.store.read(look)
            if flight is None or not flight.done():
                break  # else what was read may be of before its end, and whoever asks would take it for that
        feed = overview.feed
        stored = UnderWay(documents=feed.documents, entries=feed.entries)
        paused_until = self._context.paused_until(feed.fetch_url)
        list_at = feed.list_at if self._context.may_list(feed.fetch_url) else None
        poll_at = self._context.poll_at(feed)
        return self._now(Status(overview, False, stored, paused_until, list_at, poll_at, elsewhere), feed_id)

    def _now(self, told: Status, feed_id: int) -> Status:
        """Return a status with the progress of this moment."""
        is_here = self._running.running(feed_id) is not None
        under_way = self._running.under_way(feed_id) if is_here else told.elsewhere
        is_refreshing = is_here or under_way is not None
        if under_way is None or not under_way.is_walking:
            return replace(told, is_refreshing=is_refreshing)
        return replace(told, is_refreshing=is_refreshing, progress=under_way)

    async def account(self, feed_id: int) -> tuple[Status, list[ChainDocument]]:
        """Tell what is known of a feed, document by document; raises as `status`."""

        def look(db: Database) -> tuple[list[DocumentRow], dict[int, int]]:
            return document_table.list_all(db, feed_id), document_table.count_superseded(db, feed_id)

        rows, superseded = await self._context.store.read(look)
        status = await self.status(feed_id)
        return status, account_of(status.overview, rows, superseded)

    @asynccontextmanager
    async def follow(self, feed_id: int) -> AsyncIterator[News]:
        """Follow what becomes of a feed until nothing is under way; `OverloadedError`: too many do."""
        if self.followers >= MAX_FOLLOWERS:
            raise OverloadedError(f"expected at most {MAX_FOLLOWERS} who follow feeds at once")
        watched = self._watched.get(feed_id)
        if watched is not None and watched.followers >= MAX_FOLLOWERS_OF_ONE:
            raise OverloadedError(f"expected at most {MAX_FOLLOWERS_OF_ONE} who follow one feed at once")
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
        """End the watching of a feed that nobody follows any more."""
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
                watched.tell(told)
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
    return status.progress.documents, status.progress.entries, status.progress.fetched


class News:
    """What one follower of a feed is told."""

    def __init__(self, watched: _Watched) -> None:
        self._watched = watched
        self._told: Status | None = None

    @property
    def is_over(self) -> bool:
        """Whether all has been told: nothing is under way, the feed was forgotten, or the program stops."""
        return self._watched.is_over and self._told is self._watched.latest

    async def next(self, seconds: float) -> Status | None:
        """Return what is known now, once it is more than before; None: nothing was in that time.

        Of several changes since the last call only the latest is told; the end is a status that says that
        nothing is under way.
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
    """One feed that is followed: what its followers are told, and the task that finds it out."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.followers = 0
        self.latest: Status | None = None
        """A new one each time, with which followers compare what they were told."""
        self.is_over = False
        """Whether nothing follows."""
        self.changed = asyncio.Event()

    def tell(self, status: Status) -> None:
        """Let everybody know, unless it is what they know already; how the refresh ended in any case."""
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
    """Return what of a status is news once it is another one: not what changes by time alone."""
    left, is_paused = status.progress.left, status.paused_until is not None
    return status.overview, status.is_refreshing, *_counts(status), left, is_paused
