"""Validation of feeds in memory where other processes change the database, too."""

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
"""Longest wait of a request for the database."""
_LOOKS: Final = 5
"""Waits within `PATIENCE_SECONDS`: a late event loop is then not mistaken for a silent database."""
_MOST_DOUBTED: Final = 1000
"""Doubted feeds in one query."""
UNASKED_SECONDS: Final = 1.0
"""Pause after a failed query."""
LEFT_SECONDS: Final = 1.0
"""For the store, once a publisher has used up an answer's time."""


class Checks:
    """Version queries for feeds in memory, shared by waiting requests.

    A reader who asks two processes in turn never sees a feed go back: each queries the version after the
    request, since a notice could come late.

    While the database is silent, memory is trusted. After lost notices all feeds are validated; a replaced
    database empties memory.
    """

    def __init__(self, store: Store, memory: Memory, limits: LimitsConfig) -> None:
        self.are_needed = store.is_shared
        self._store = store
        self._memory = memory
        self._respond_within_seconds = limits.respond_within_seconds
        self._feeds = set[int]()
        self._doubted = set[int]()
        """Feeds with possibly lost notices."""
        self._has_answered = asyncio.Event()
        """Set after the query for `_feeds`."""
        self._task: asyncio.Task[None] | None = None
        self._asked_at = 0.0
        self._is_late = False
        """Whether a request has waited in vain."""
        self._unasked_until = 0.0
        store.engine.on_replaced(memory.drop_all)
        store.engine.on_lost(self._doubt)

    @property
    def are_blind(self) -> bool:
        """Whether the database was silent a moment ago."""
        return self._is_late or time.monotonic() < self._unasked_until

    async def check(self, url: str) -> None:
        """Drop an outdated feed from memory, unless the database is silent."""
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
        """Return `in_time` for an answer that waits for no publisher."""
        return self.in_time(self._respond_within_seconds + LEFT_SECONDS)

    def bounds(self, wait_seconds: float) -> Callable[[], AbstractAsyncContextManager[None]]:
        """Return a function for `in_time` contexts with one common deadline.

        `wait_seconds` for a publisher counts if longer than `limits.respond_within_seconds`.
        """
        latest_at = time.monotonic() + max(wait_seconds, self._respond_within_seconds) + LEFT_SECONDS
        return lambda: self.in_time(latest_at - time.monotonic())

    async def require_answer(self) -> None:
        """Check that feeds can be read.

        Raises:
            OverloadedError: The database is silent.
        """
        if self.are_needed:
            async with within(LEFT_SECONDS / 2, _silent()):
                await self._store.read(lambda db: feed_table.find(db, 0), is_single=True)

    def in_time(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """Return a context that limits database reads in time; a database file needs no limit.

        Raises:
            OverloadedError: The database did not answer in time.
        """
        return within(seconds, _silent()) if self.are_needed else nullcontext()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def _doubt(self) -> None:
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
            self._memory.drop_all()  # a feed without a known version is not trusted
            raise
        finally:
            self._is_late = False
            answered.set()


def _silent() -> OverloadedError:
    return OverloadedError("the database does not answer in time")
