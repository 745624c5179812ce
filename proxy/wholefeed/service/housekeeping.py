"""Keep the store in order: what is old is deleted, and what is above `store.max_bytes` is evicted.

Above that size the feeds that were not asked for longest are forgotten, one at a time, until the rest fits.
Never evicted are the one asked for last, those asked for just now, and those whose refresh is under way or
that are being sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from wholefeed.errors import OverloadedError, StoreError
from wholefeed.loggers import get_logger
from wholefeed.service.refresh.context import RefreshContext
from wholefeed.store.upkeep import REST

log = get_logger()

PURGE_SECONDS: Final = 6 * 3600.0
"""Between two clean-ups of the store."""

_JUST_NOW_SECONDS: Final = 60.0
"""Whoever asked for a feed so lately may be about to get it."""
_AGAIN_SECONDS: Final = 60.0
"""After feeds that may not be evicted yet have kept the store too large."""


class Housekeeping:
    """Belongs to one service.

    Args:
        context: What to work with.
        is_refreshing: Whether a refresh of the feed is under way.
        write_asked: Writes what has been noted of when feeds were asked for.
    """

    def __init__(
        self,
        context: RefreshContext,
        *,
        is_refreshing: Callable[[int], bool],
        write_asked: Callable[[], Awaitable[None]],
    ) -> None:
        self._context = context
        self._upkeep = context.store.upkeep
        self._is_refreshing = is_refreshing
        self._write_asked = write_asked
        self._has_grown = asyncio.Event()
        self._measure_at = 0.0
        """Not before that is the store measured because it has grown."""

    def note_growth(self) -> None:
        """Have the size of the store looked at soon, if it may not be of any."""
        if self._context.config.store.max_bytes:
            self._has_grown.set()

    async def run(self) -> None:
        """Keep house until cancelled."""
        purge_at = time.monotonic()
        while True:
            try:
                if time.monotonic() >= purge_at:
                    purge_at = time.monotonic() + PURGE_SECONDS
                    async with self._context.sharing.task("purge") as is_mine:
                        if is_mine:
                            await self._upkeep.purge(now=self._context.now())
                has_room = await self.make_room()
            except (StoreError, OverloadedError) as exc:
                self._context.counts.trouble("house-keeping")
                log.warning("store.unpurged", reason=str(exc))
                has_room = False
            wait_seconds = purge_at - time.monotonic()
            await self._wait(wait_seconds if has_room else min(wait_seconds, _AGAIN_SECONDS))

    async def make_room(self) -> bool:
        """Evict feeds while the store is larger than it may be.

        Returns:
            Whether it is not any more, or nothing but the feed asked for last is left of it.

        Raises:
            StoreError: The database failed.
            OverloadedError: The database stayed busy, or the store is being closed.
        """
        max_bytes = self._context.config.store.max_bytes
        if not max_bytes or await self._measured() <= max_bytes:
            return True
        await self._write_asked()
        async with self._context.sharing.task("eviction") as is_mine:
            return await self._evict(max_bytes) if is_mine else False

    async def _measured(self) -> int:
        """Return how much is stored; where that takes long, the next time is not soon."""
        began_at = time.monotonic()
        used_bytes = await self._upkeep.used_bytes()
        now = time.monotonic()
        self._measure_at = now + REST * (now - began_at)
        return used_bytes

    async def _evict(self, max_bytes: int) -> bool:
        sharing = self._context.sharing
        is_all_gone = True
        least_asked = await self._upkeep.least_asked()
        used_bytes = await self._upkeep.used_bytes()  # another replica may have made room meanwhile
        for feed_id, asked_at in least_asked[:-1]:
            if used_bytes <= max_bytes:
                return True
            is_wanted = abs(self._context.now() - asked_at) < _JUST_NOW_SECONDS
            if is_wanted or self._upkeep.is_being_sent(feed_id) or not await self._is_free(feed_id):
                is_all_gone = False
                continue
            own_bytes = await self._upkeep.feed_bytes(feed_id)
            await self._context.store.forget(feed_id, now=self._context.now())
            sharing.release(feed_id)
            self._context.counts.has_evicted()
            log.info("feed.evicted", feed=feed_id, used_bytes=used_bytes)
            used_bytes = await self._upkeep.used_bytes() if own_bytes is None else used_bytes - own_bytes
        return is_all_gone

    async def _is_free(self, feed_id: int) -> bool:
        """Whether no refresh of a feed is under way, wherever; nor is one begun meanwhile."""
        if self._is_refreshing(feed_id):
            return False
        sharing = self._context.sharing
        return not sharing.is_shared or await sharing.claim(feed_id, lambda _: True) is not None

    async def _wait(self, seconds: float) -> None:
        """Wait until the store has grown, at most so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._has_grown.wait()
        except TimeoutError:
            pass
        await asyncio.sleep(max(0.0, self._measure_at - time.monotonic()))
        self._has_grown.clear()
