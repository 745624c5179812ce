"""When feeds were asked for, collected in memory and written for many at once; and who was warned of one.

    times = AskedTimes(store, now)
    held.asked_at = times.note(feed.id, held.asked_at)
    await times.run()           # until it is cancelled; `close` at the end

The store alone goes by it, when it evicts. What it cannot write now is written with the next ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from wholefeed.core.compose.turns import Warned
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import feeds

PRECISION_SECONDS: Final = 3600.0
"""How exactly the store knows when a feed was last asked for."""
WARNED_SECONDS: Final = 0.5
"""For so long an answer waits until it is written that a reader has been warned."""
WRITE_SECONDS: Final = 60.0
"""Between two writes. What is evicted is chosen after one."""

CLOSE_SECONDS: Final = 1.0
"""For so long the end waits for what is written last. It is written all the same, where the store can be."""


class AskedTimes:
    """Belongs to one service.

    Args:
        store: Where they are written.
        now: Epoch seconds.
    """

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._pending: dict[int, float] = {}

    def note(self, feed_id: int, asked_at: float) -> float:
        """Note that a feed is asked for; return about when it was last.

        Args:
            feed_id: The feed.
            asked_at: What the store, or an earlier call, has said.
        """
        asked_at = self._pending.get(feed_id, asked_at)
        if not 0 <= self._now() - asked_at <= PRECISION_SECONDS:
            asked_at = self._pending[feed_id] = self._now()
        return asked_at

    async def note_warned(self, feed: FeedRow) -> None:
        """Note at once that a reader is sent a feed's warning (R16); else with the next one."""
        if feed.warning is Warned.UNSENT:
            with suppress(StoreError, OverloadedError, TimeoutError):
                async with asyncio.timeout(WARNED_SECONDS):
                    await self._store.write(partial(feeds.note_warned, feed=feed), feed=feed.id)

    async def run(self) -> None:
        """Write from time to time what has been noted."""
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self.write()

    async def write(self) -> None:
        """Write what has been noted; what cannot be written is kept for the next time."""
        noted, self._pending = self._pending, {}
        if not noted:
            return
        try:
            await self._store.write(lambda db: feeds.note_asked(db, noted))
        except (StoreError, OverloadedError):
            self._pending = {**noted, **self._pending}

    async def close(self) -> None:
        """Write what has been noted."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.write()
