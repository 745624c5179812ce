"""Whether what is held in memory is still what the database says, where other processes change it too.

    checks = Checks(store, published)
    await checks.check(url)         # right before what is held of the URL is made use of

A reader who asks two processes in turn never sees a feed go back: what one of them has sent was committed,
and the other one asks what the feed is now after the request has come. All that wait share a query. A notice
of a change would not do: it may come after others have read the change.

While the database does not answer, what is held is taken as it is.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from wholefeed.errors import OverloadedError, StoreError
from wholefeed.service.published import Held, Published
from wholefeed.store.store import Store

PATIENCE_SECONDS: Final = 0.5
"""So long who asks waits for the database."""
UNASKED_SECONDS: Final = 1.0
"""For so long nobody asks a database again that could not say."""


class Checks:
    """Belongs to one service.

    Args:
        store: Where feeds are.
        published: What is held of them.
    """

    def __init__(self, store: Store, published: Published) -> None:
        self.are_needed = store.is_shared
        """Whether others change the database; else nothing is asked."""
        self._store = store
        self._published = published
        self._feeds = set[int]()
        """Those to be asked for next."""
        self._has_answered = asyncio.Event()
        """Set when they have been."""
        self._task: asyncio.Task[None] | None = None
        self._asked_at = 0.0
        """When the query under way was begun."""
        self._unasked_until = 0.0
        store.on_lost(published.drop_all)

    @property
    def are_blind(self) -> bool:
        """Whether the database did not answer a moment ago."""
        now = time.monotonic()
        return now < self._unasked_until or (
            self._task is not None and now - self._asked_at > PATIENCE_SECONDS
        )

    async def check(self, url: str) -> None:
        """Let go of what is held of a URL if that is no longer so; without a database, leave it."""
        held = self._published.look(url) if self.are_needed else None
        if held is None or self.are_blind:
            return
        self._feeds.add(held.snapshot.feed.id)
        if self._task is None:
            self._asked_at = time.monotonic()
            self._task = asyncio.create_task(self._ask())
        answered = self._has_answered
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await answered.wait()

    async def find(self, url: str) -> Held | None:
        """Return what is held of the feed that a URL leads to, once it has been checked."""
        await self.check(url)
        return self._published.find(url)

    async def close(self) -> None:
        """Stop asking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _ask(self) -> None:
        """Ask for feeds until nobody waits for any."""
        try:
            while self._feeds:
                await self._ask_once()
        finally:
            self._task = None

    async def _ask_once(self) -> None:
        feeds, self._feeds = self._feeds, set()
        answered, self._has_answered = self._has_answered, asyncio.Event()
        self._asked_at = time.monotonic()
        try:
            found = await self._store.versions(feeds)
            for feed_id in feeds:
                self._published.confirm(feed_id, found.get(feed_id))
        except (StoreError, OverloadedError):
            self._unasked_until = time.monotonic() + UNASKED_SECONDS
        except Exception:
            self._published.drop_all()  # what cannot be compared is not trusted
            raise
        finally:
            answered.set()
