"""Whether what is held in memory is still what the database says, where other processes change it too.

checks = Checks(store, memory, limits)
await checks.check(url)         # right before what is held of the URL is made use of
async with checks.answering():
...                         # an answer is put together, but waits for the database in bounds
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from itertools import islice
from typing import Final

from wholefeed.config.tables import LimitsConfig
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.futures import within
from wholefeed.service.memory import Memory
from wholefeed.store.store import Store
from wholefeed.store.tables import feed_table

PATIENCE_SECONDS: Final = 0.5
"""So long whoever asks waits for the database."""
_LOOKS: Final = 5
"""That time passes in so many: each needs the event loop, so that a database is not taken for silent where it
is the loop that is late, with the answer there."""
_MOST_DOUBTED: Final = 1000
"""Feeds that are asked for at once because notices were lost."""
UNASKED_SECONDS: Final = 1.0
"""For so long nobody asks a database again that could not say."""
LEFT_SECONDS: Final = 1.0
"""For what is stored, where a publisher has taken all of an answer's time."""


class Checks:
    """Asks the database for the versions of what is held; all that wait share a query.

    A reader who asks two processes in turn never sees a feed go back: what one of them has sent was
    committed, and the other one asks what the feed is now after the request has come. A notice of
    a change would not do: it may come after others have read the change.

    While the database does not answer, what is held is taken as it is. Where notices were lost meanwhile, all
    is compared with what it answers first; of a database that may be another one now, nothing is kept.
    """

    def __init__(self, store: Store, memory: Memory, limits: LimitsConfig) -> None:
        self.are_needed = store.is_shared
        """Whether others change the database; else nothing is asked."""
        self._store = store
        self._memory = memory
        self._respond_within_seconds = limits.respond_within_seconds
        self._feeds = set[int]()
        """Those to be asked for next."""
        self._doubted = set[int]()
        """Those to be asked for with the next ones, since notices about them may have been lost."""
        self._has_answered = asyncio.Event()
        """Set when they have been."""
        self._task: asyncio.Task[None] | None = None
        self._asked_at = 0.0
        """When the query under way was begun."""
        self._is_late = False
        """Whether somebody has waited in vain for it."""
        self._unasked_until = 0.0
        store.engine.on_replaced(memory.drop_all)
        store.engine.on_lost(self._doubt)

    @property
    def are_blind(self) -> bool:
        """Whether the database did not answer a moment ago."""
        return self._is_late or time.monotonic() < self._unasked_until

    async def check(self, url: str) -> None:
        """Let go of what is held of a URL if that is no longer so; without a database, leave it."""
        held = self._memory.find(url) if self.are_needed else None
        if held is None or self.are_blind:
            return
        self._feeds.add(held.snapshot.feed.id)
        self._begin()
        answered = self._has_answered
        for _ in range(_LOOKS):
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS / _LOOKS):
                    await answered.wait()
                    return
        asked_seconds = time.monotonic() - self._asked_at
        self._is_late = self._is_late or (self._task is not None and asked_seconds > PATIENCE_SECONDS / 2)

    def answering(self) -> AbstractAsyncContextManager[None]:
        """Let an answer be put together, as `in_time` does, that waits for no publisher."""
        return self.in_time(self._respond_within_seconds + LEFT_SECONDS)

    def bounds(self, wait_seconds: float) -> Callable[[], AbstractAsyncContextManager[None]]:
        """Return what does as `in_time`, as often as it is called, until an answer begun now has to leave.

        `wait_seconds` is for how long it waits for a publisher, where that is more than is configured.
        """
        latest_at = time.monotonic() + max(wait_seconds, self._respond_within_seconds) + LEFT_SECONDS
        return lambda: self.in_time(latest_at - time.monotonic())

    async def require_answer(self) -> None:
        """Make sure that feeds can be read; else raise `OverloadedError`."""
        if self.are_needed:
            async with within(LEFT_SECONDS / 2, _silent()):
                await self._store.read(lambda db: feed_table.find(db, 0), is_single=True)

    def in_time(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """Let something be read for an answer, but not for longer; only where the database is shared.

        A file does not fall silent, and who waits for it is not told to come again.

        Raises:
            OverloadedError: The database did not answer in time.
        """
        return within(seconds, _silent()) if self.are_needed else nullcontext()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def _doubt(self) -> None:
        """Look at all that is held, as soon as the database answers."""
        self._memory.doubt_reads()
        self._doubted.update(self._memory.feeds)
        self._unasked_until = 0.0
        if self._doubted:
            self._begin()

    def _begin(self) -> None:
        if self._task is None:
            self._asked_at = time.monotonic()
            self._task = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        """Ask for feeds until nobody waits for any, and none is in doubt that can be asked for."""
        try:
            await self._ask_once()
            while self._feeds or (self._doubted and time.monotonic() >= self._unasked_until):
                await self._ask_once()
        finally:
            self._task = None

    async def _ask_once(self) -> None:
        feeds, self._feeds = self._feeds.union(islice(self._doubted, _MOST_DOUBTED)), set()
        answered, self._has_answered = self._has_answered, asyncio.Event()
        self._asked_at = time.monotonic()
        try:
            found = await self._store.engine.versions(feeds)
            for feed_id in feeds:
                self._memory.confirm(feed_id, found.get(feed_id))
            self._doubted -= feeds
        except (StoreError, OverloadedError):
            self._unasked_until = time.monotonic() + UNASKED_SECONDS
        except Exception:
            self._memory.drop_all()  # what cannot be compared is not trusted
            raise
        finally:
            self._is_late = False
            answered.set()


def _silent() -> OverloadedError:
    return OverloadedError("the database does not answer in time")
