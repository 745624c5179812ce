"""Refreshes of many feeds, begun a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Final, NamedTuple

from wholefeed.core.refresh.basis import RefreshRequest
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.service.context import RefreshContext
from wholefeed.service.running import REST_SECONDS, Running
from wholefeed.store.tables import feed_table

AT_ONCE: Final = 4
"""The most polls at once, too."""
_PATIENCE_SECONDS: Final = 30.0
"""After these a feed's walk continues beside the queue, since a long history takes hours."""
_YIELD_SECONDS: Final = 0.5
"""Pause while walks of readers wait for the network."""


class QueueProgress(NamedTuple):
    begun: int
    total: int


class RefreshQueue:
    """Feeds that wait; lost at the end of the program."""

    def __init__(self, context: RefreshContext, running: Running) -> None:
        self._context = context
        self._running = running
        self._waiting: dict[int, None] = {}  # in order
        self._asking: set[int] = set()
        self._total = 0
        self._workers: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._asking)

    @property
    def progress(self) -> QueueProgress:
        """Feeds begun, and all, since the queue was last empty."""
        return QueueProgress(self._total - len(self._waiting), self._total)

    def is_waiting(self, feed: int) -> bool:
        return feed in self._waiting

    def add(self, feeds: Iterable[int]) -> None:
        """Refresh each feed once, however often it is asked for."""
        if not len(self):
            self._total = 0
        for feed in feeds:
            if feed not in self._waiting and feed not in self._asking:
                self._waiting[feed] = None
                self._total += 1
        most = max(1, min(AT_ONCE, self._context.config.fetch.concurrency // 4))
        while len(self._workers) < min(most, len(self)):
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        while self._waiting:
            if self._running.waiting:
                await asyncio.sleep(_YIELD_SECONDS)
                continue
            feed = next(iter(self._waiting))
            del self._waiting[feed]
            self._asking.add(feed)
            try:
                await self._refresh(feed)
            except (StoreError, OverloadedError):  # logged where the store failed
                self._waiting[feed] = None
                await asyncio.sleep(REST_SECONDS)
            finally:
                self._asking.discard(feed)

    async def _refresh(self, feed_id: int) -> None:
        feed = await self._context.store.read(partial(feed_table.find, feed=feed_id))
        if feed is not None:  # it may be forgotten by now
            flight = self._running.join(feed, RefreshRequest(is_forced=True, is_polled=True))
            await asyncio.wait({flight}, timeout=_PATIENCE_SECONDS)

    def drop(self, feed: int) -> None:
        self._waiting.pop(feed, None)

    async def close(self) -> None:
        self._waiting.clear()
        for worker in self._workers:
            worker.cancel()
        if self._workers:
            await asyncio.wait(self._workers)
