"""Known feeds refreshed unasked, so that nothing is missed between two visits of a reader (rule R7).

    await Polling(context, running).run()      # until it is cancelled

At each turn the feed that has been due longest is polled, if its host is not being polled and has not asked
to be left alone; then the loop pauses, so that polls are spread evenly. A poll is an ordinary refresh: it
asks conditionally, takes a refresh under way for its own, and outlives a turn. What has been polled stands in
the store alone (`feed.checked_at`), so a restart polls nothing again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from wholefeed.core.refresh.given import RefreshRequest
from wholefeed.core.schedule.polling import SHORTEST_PAUSE_SECONDS, Times, pause_seconds, poll_due_at
from wholefeed.errors import OverloadedError, StoreError, WholefeedError
from wholefeed.loggers import get_logger
from wholefeed.service.refresh.context import RefreshContext
from wholefeed.service.refresh.running import REST_SECONDS, Running
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feeds
from wholefeed.store.tables.outlook import Outlook, outlook

log = get_logger()

MAX_POLLS: Final = 4
"""At once, and at most a quarter of `fetch.concurrency`: readers' requests and walks have the rest."""

_SHARED: Final = 64
"""Of the feeds that are due, where others poll, too: so many are taken from before it is looked again."""
LONGEST_PAUSE_SECONDS: Final = 60.0
"""Between two turns: feeds are added meanwhile, and the clock may jump or the machine have slept."""


class Polling:
    """Belongs to one service; `run` is called once."""

    def __init__(
        self, context: RefreshContext, running: Running, *, jitter: Callable[[], float] = random.random
    ) -> None:
        self._context = context
        self._running = running
        self._jitter = jitter
        self._interval_seconds = context.config.history.poll_seconds
        self._most = max(1, min(MAX_POLLS, context.config.fetch.concurrency // 4))
        self._outlook = Outlook(feeds=0, due=(), next_at=None)
        self._waiting: dict[int, str] = {}
        """Of the last outlook: feed and URL, due longest first."""
        self._hosts: set[str] = set()
        """Those being polled."""
        self._set_aside: dict[int, float] = {}
        """Monotonic instants until which feeds rest that nothing in the store says a failure of."""
        self._is_unkept = False
        """Whether the store could not keep what a poll brought."""

    async def run(self) -> None:
        """Poll what is due, for as long as nobody cancels it; refreshes that have begun then go on."""
        async with asyncio.TaskGroup() as polls:
            while True:
                try:
                    seconds = await self._turn(polls)
                except (StoreError, OverloadedError) as exc:
                    self._context.counts.trouble("polling")
                    log.warning("polling.paused", reason=str(exc))
                    seconds = REST_SECONDS
                await asyncio.sleep(seconds)

    async def _turn(self, polls: asyncio.TaskGroup) -> float:
        """Begin one poll if one may begin; return the seconds until the next turn."""
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

    async def _look(self) -> None:
        times = self._times()
        self._outlook = await self._context.store.read(lambda db: outlook(db, times))
        if not self._context.sharing.is_shared:
            self._waiting = dict(self._outlook.due)
            return
        first = list(self._outlook.due[:_SHARED])
        random.shuffle(first)  # the others look at the same ones
        self._waiting = dict(first)

    async def _next(self) -> FeedRow | None:
        """Take the first feed that may be polled now; those whose host is taken keep their places."""
        for feed_id, url in list(self._waiting.items()):
            host = _host(url)
            if host in self._hosts or self._context.source.blocked_seconds(host) > 0:
                continue
            del self._waiting[feed_id]
            if (feed := await self._taken(feed_id)) is not None:
                return feed
        return None

    async def _taken(self, feed_id: int) -> FeedRow | None:
        """Return a feed if it may be polled; none of those that share the store polls it then."""
        sharing = self._context.sharing
        if sharing.is_shared:
            is_free = self._running.running(feed_id) is None
            return await sharing.claim(feed_id, self._may_poll) if is_free else None
        feed = await self._context.store.read(partial(feeds.find, feed=feed_id))
        return feed if feed is not None and self._may_poll(feed) else None

    def _may_poll(self, feed: FeedRow) -> bool:
        """Whether a feed is due still, and nobody else sees to it."""
        if self._running.running(feed.id) is not None or self._running.is_resting(feed.id):
            return False
        if time.monotonic() < self._set_aside.get(feed.id, 0.0):
            return False
        times = self._times()
        due_at = poll_due_at(feed.checked_at or 0.0, feed.fresh_until or 0.0, times)
        return due_at <= times.now

    def _times(self) -> Times:
        context = self._context
        return Times(context.now(), self._interval_seconds, context.longest_seconds)

    async def _attend(self, feed_id: int, host: str, flight: asyncio.Task[None]) -> None:
        """Wait for the end of a poll, never cancelling it, and tell of it."""
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
            jitter=self._jitter(),
            longest_seconds=LONGEST_PAUSE_SECONDS,
        )


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
