"""Work on known feeds without a request: polls (R7), and upkeep of the store.

Each loop outlives database failures. Replicas that share the store claim a poll, a clean-up or an eviction
first, so that only one does it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from wholefeed.core.compose.views import Warned
from wholefeed.core.refresh.basis import RefreshRequest
from wholefeed.core.schedule import SHORTEST_PAUSE_SECONDS, pause_seconds
from wholefeed.errors import OverloadedError, StoreError, WholefeedError
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.running import REST_SECONDS, Running
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import REST, Store
from wholefeed.store.tables import feed_table
from wholefeed.store.tables.feed_table import Outlook, outlook

log = get_logger()


# Polls

MAX_POLLS: Final = 4
"""Concurrent polls, but at most a quarter of `fetch.concurrency`: the rest is for readers and walks."""
# between two turns; no longer, because feeds are added, the clock may jump, and the machine may sleep
LONGEST_PAUSE_SECONDS: Final = 60.0
_TAKEN_FROM: Final = 64  # due feeds to choose from before the next look, if replicas poll, too


class Polling:
    """Refreshes feeds without a request, so that no entry is missed between a reader's visits (R7).

    Each turn polls the feed due longest, unless its host is being polled or has asked for a pause. Pauses
    between turns spread the polls evenly. A poll is an ordinary conditional refresh, or joins a running one.
    Poll times are only in the store (`feed.checked_at`), so a restart polls nothing again.
    """

    def __init__(self, context: RefreshContext, running: Running) -> None:
        self._context = context
        self._running = running
        self._interval_seconds = context.config.history.poll_seconds
        self._most = max(1, min(MAX_POLLS, context.config.fetch.concurrency // 4))
        self._outlook = Outlook(feeds=0, due=(), next_at=None)
        self._waiting: dict[int, str] = {}  # feeds and URLs of the last outlook, due longest first
        self._hosts: set[str] = set()  # being polled
        # Monotonic ends of pauses for feeds with failures that the store does not know.
        self._set_aside: dict[int, float] = {}
        self._is_unkept = False  # whether the store failed to write a poll's result

    async def run(self) -> None:
        """Poll until cancelled; running refreshes then continue."""
        self._context.is_polling = True
        try:
            async with asyncio.TaskGroup() as polls:
                while True:
                    try:
                        seconds = await self._turn(polls)
                    except (StoreError, OverloadedError) as exc:
                        self._context.counts.troubles["polling"] += 1
                        log.warning("polling.paused", reason=str(exc))
                        seconds = REST_SECONDS
                    await asyncio.sleep(seconds)
        finally:
            self._context.is_polling = False

    async def _turn(self, polls: asyncio.TaskGroup) -> float:
        """Begin at most one poll; return seconds until the next turn."""
        if self._is_unkept:
            self._is_unkept = False
            return REST_SECONDS
        if len(self._hosts) >= self._most or self._running.waiting:
            return self._pause_seconds()
        feed = await self._next()
        if feed is None:
            await self._look()
            feed = await self._next()
        if feed is not None:
            host = _host(feed.fetch_url)
            self._hosts.add(host)
            self._set_aside.pop(feed.id, None)
            flight = self._running.join(feed, RefreshRequest(is_polled=True))
            polls.create_task(self._attend(feed.id, host, flight))
        elif not self._waiting and self._outlook.next_at is not None:
            idle_seconds = self._outlook.next_at - self._context.now()
            return min(max(idle_seconds, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        return self._pause_seconds()

    async def _next(self) -> FeedRow | None:
        """Take the first feed ready for a poll; feeds of busy hosts keep their places."""
        for feed_id, url in list(self._waiting.items()):
            host = _host(url)
            if host in self._hosts or self._context.source.fetcher.gate.blocked_seconds(host) > 0:
                continue
            del self._waiting[feed_id]
            if (feed := await self._taken(feed_id)) is not None:
                return feed
        return None

    async def _taken(self, feed_id: int) -> FeedRow | None:
        """Return a feed if it may be polled; no other replica polls it then."""
        sharing = self._context.sharing
        if self._running.running(feed_id) is not None:  # the read could give the row of before
            return None
        if sharing.is_shared:
            return await sharing.claim(feed_id, self._may_poll)
        feed = await self._context.store.read(partial(feed_table.find, feed=feed_id), is_single=True)
        return feed if feed is not None and self._may_poll(feed) else None

    def _may_poll(self, feed: FeedRow) -> bool:
        if self._running.running(feed.id) is not None or self._running.is_resting(feed.id):
            return False
        if time.monotonic() < self._set_aside.get(feed.id, 0.0):
            return False
        poll_at = self._context.poll_at(feed)
        return poll_at is not None and poll_at <= self._context.now()

    async def _look(self) -> None:
        times = self._context.poll_times
        self._outlook = await self._context.store.read(lambda db: outlook(db, times))
        if not self._context.sharing.is_shared:
            self._waiting = dict(self._outlook.due)
            return
        first = self._outlook.due[:_TAKEN_FROM]
        self._waiting = dict(random.sample(first, len(first)))  # the other replicas see the same list

    async def _attend(self, feed_id: int, host: str, flight: asyncio.Task[None]) -> None:
        """Wait for a poll without cancelling it, and log its end."""
        started = time.monotonic()
        try:
            await asyncio.wait({flight})
        finally:
            self._hosts.discard(host)
        if flight.cancelled():
            return
        error = flight.exception()
        self._is_unkept |= isinstance(error, StoreError | OverloadedError)
        if error is not None and not isinstance(error, WholefeedError):
            self._set_aside[feed_id] = started + self._interval_seconds
        log.info(
            "feed.polled",
            feed=feed_id,
            slug=error.slug if isinstance(error, WholefeedError) else error and "internal",
            duration_s=round(time.monotonic() - started, 3),
        )

    def _pause_seconds(self) -> float:
        return pause_seconds(
            interval_seconds=self._interval_seconds,
            feeds=-(-self._outlook.feeds // self._context.sharing.replicas),
            jitter=random.random(),  # noqa: S311 - it spreads polls
            longest_seconds=LONGEST_PAUSE_SECONDS,
        )


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


# Times of requests

_PRECISION_SECONDS: Final = 3600.0  # of the time in the store
_WARNED_SECONDS: Final = 0.5  # the longest wait of an answer until its warning is stored
_WRITE_SECONDS: Final = 60.0  # between two writes; each eviction writes first
_CLOSE_SECONDS: Final = 1.0  # the longest wait for the last write, which then continues alone


class AskedTimes:
    """Times of requests for feeds, written in batches; only eviction uses them.

    A write that fails is repeated with the next one.
    """

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._pending: dict[int, float] = {}

    def note(self, feed_id: int, asked_at: float) -> float:
        """Note a request for a feed; return its approximate time.

        `asked_at` is the time from the store or an earlier call.
        """
        asked_at = self._pending.get(feed_id, asked_at)
        if not 0 <= self._now() - asked_at <= _PRECISION_SECONDS:
            asked_at = self._pending[feed_id] = self._now()
        return asked_at

    async def note_warned(self, feed: FeedRow) -> None:
        """Store at once that a reader gets a feed's warning (R16), else with the next answer."""
        if feed.warning is Warned.UNSENT:
            with suppress(StoreError, OverloadedError, TimeoutError):
                async with asyncio.timeout(_WARNED_SECONDS):
                    note = partial(feed_table.note_warned, feed=feed, now=self._now())
                    await self._store.write(note, feed=feed.id)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_WRITE_SECONDS)
            await self.write()

    async def write(self) -> None:
        noted, self._pending = self._pending, {}
        if not noted:
            return
        try:
            await self._store.write(lambda db: feed_table.note_asked(db, noted))
        except (StoreError, OverloadedError):
            self._pending = {**noted, **self._pending}

    async def close(self) -> None:
        """Write, but wait `_CLOSE_SECONDS` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.write()


# Deletion

_PURGE_SECONDS: Final = 6 * 3600.0  # between two clean-ups
_JUST_NOW_SECONDS: Final = 60.0  # A reader that asked so recently may be about to get the feed.
_AGAIN_SECONDS: Final = 60.0  # until the next try, if feeds not yet evictable keep the store too large


class Housekeeping:
    """Deletes old rows, and evicts feeds while the store is larger than `store.max_bytes`.

    The least recently requested feed goes first. Four kinds of feeds stay: the one asked for last, those
    asked for just now, those being refreshed and those being sent.
    """

    def __init__(self, context: RefreshContext, running: Running, asked: AskedTimes) -> None:
        self._context = context
        self._upkeep = context.store.upkeep
        self._running = running
        self._asked = asked
        self._has_grown = asyncio.Event()
        self._max_bytes = context.config.store.max_bytes  # 0: no limit
        if self._max_bytes:
            running.on_end.append(self._has_grown.set)
        self._measure_at = 0.0  # the earliest monotonic time of the next measurement

    async def run(self) -> None:
        purge_at = time.monotonic()
        while True:
            try:
                if time.monotonic() >= purge_at:
                    purge_at = time.monotonic() + _PURGE_SECONDS
                    async with self._context.sharing.task("purge") as is_mine:
                        if is_mine:
                            await self._upkeep.purge(now=self._context.now())
                has_room = await self.make_room()
            except (StoreError, OverloadedError) as exc:
                self._context.counts.troubles["house-keeping"] += 1
                log.warning("store.unpurged", reason=str(exc))
                has_room = False
            wait_seconds = purge_at - time.monotonic()
            await self._wait(wait_seconds if has_room else min(wait_seconds, _AGAIN_SECONDS))

    async def make_room(self) -> bool:
        """Evict feeds while the store is too large.

        Return whether it fits, or only the feed asked for last is left.
        """
        if not self._max_bytes:
            return True
        began_at = time.monotonic()
        used_bytes = await self._upkeep.used_bytes()
        now = time.monotonic()
        self._measure_at = now + REST * (now - began_at)  # a slow measurement makes the next one late
        if used_bytes <= self._max_bytes:
            return True
        await self._asked.write()
        async with self._context.sharing.task("eviction") as is_mine:
            return await self._evict() if is_mine else False

    async def _evict(self) -> bool:
        is_all_gone = True
        least_asked = await self._upkeep.least_asked()
        used_bytes = await self._upkeep.used_bytes()  # another replica may have made room meanwhile
        for feed_id, asked_at in least_asked[:-1]:
            if used_bytes <= self._max_bytes:
                return True
            is_wanted = abs(self._context.now() - asked_at) < _JUST_NOW_SECONDS
            if is_wanted or self._upkeep.is_being_sent(feed_id) or not await self._is_free(feed_id):
                is_all_gone = False
                continue
            own_bytes = await self._upkeep.feed_bytes(feed_id)
            await self._context.store.forget(feed_id, now=self._context.now())
            self._context.sharing.release(feed_id)
            self._context.counts.evicted += 1
            log.info("feed.evicted", feed=feed_id, used_bytes=used_bytes)
            used_bytes = await self._upkeep.used_bytes() if own_bytes is None else used_bytes - own_bytes
        return is_all_gone

    async def _is_free(self, feed_id: int) -> bool:
        """Whether no replica refreshes a feed; in a shared store, claim it against refreshes."""
        if self._running.running(feed_id) is not None:
            return False
        sharing = self._context.sharing
        return not sharing.is_shared or await sharing.claim(feed_id, lambda _: True) is not None

    async def _wait(self, seconds: float) -> None:
        """Wait for growth, at most `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._has_grown.wait()
        await asyncio.sleep(max(0.0, self._measure_at - time.monotonic()))
        self._has_grown.clear()
