"""Rounds of background work at publishers' sites (H1, T2): one feed of a site at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

from wholefeed.service.context import RefreshContext
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow

_AT_ONCE: Final = 4
_READ_AT_ONCE: Final = 64
"""One of each host."""
_LONGEST_IDLE_SECONDS: Final = 600.0


class _ListDue(Protocol):
    def __call__(self, db: Database, /, now: float, limit: int, offset: int) -> list[FeedRow]: ...


class _NextDueAt(Protocol):
    def __call__(self, db: Database, /, now: float) -> float | None: ...


class SiteRounds:
    """Begins the work on due feeds.

    Args:
        name: Of the task that replicas share.
        url_of: Returns a URL at the site of a feed.
        work: Works on one feed, notes when it is due next, and raises nothing.
    """

    def __init__(
        self,
        context: RefreshContext,
        name: str,
        *,
        list_due: _ListDue,
        next_due_at: _NextDueAt,
        url_of: Callable[[FeedRow], str],
        work: Callable[[FeedRow], Coroutine[Any, Any, None]],
    ) -> None:
        self._context = context
        self._name = name
        self._list_due = list_due
        self._next_due_at = next_due_at
        self._url_of = url_of
        self._work = work
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """By site."""
        self._resting: dict[int, float] = {}
        self._news = asyncio.Event()

    def wake(self) -> None:
        self._news.set()

    def rest_feed(self, feed: int, until: float) -> None:
        """Leave a feed alone until an instant, epoch seconds, which the store could not note."""
        self._resting[feed] = until

    async def run(self) -> None:
        """Work on due feeds until cancelled.

        Raises StoreError, OverloadedError: the store cannot say which feeds are due.
        """
        while True:
            self._news.clear()
            await self.pause(await self._round())

    async def pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    async def finish(self, feed: FeedRow) -> bool:
        """Work on a feed, or wait for another of its site; return whether it was this one.

        The work outlives a cancelled caller.
        """
        site = self._site_of(feed)
        is_another = site in self._tasks
        await asyncio.wait({self._tasks[site] if is_another else self._begin(site, feed)})
        return not is_another

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _round(self) -> float:
        # one replica works at a time, so two never ask one site
        async with self._context.sharing.task(self._name) as is_mine:
            while is_mine and await self._begin_due():
                await self.pause(_LONGEST_IDLE_SECONDS)  # one feed may take hours: others begin meanwhile
                self._news.clear()
        now = self._context.now()
        at = await self._context.store.read(partial(self._next_due_at, now=now)) if is_mine else None
        return _LONGEST_IDLE_SECONDS if at is None else min(max(at - now, 1.0), _LONGEST_IDLE_SECONDS)

    async def _begin_due(self) -> bool:
        now, offset = self._context.now(), 0
        self._resting = {feed: until for feed, until in self._resting.items() if until > now}
        while len(self._tasks) < _AT_ONCE:
            busy = set(self._tasks)  # work that ends during the read leaves rows of before
            list_due = partial(self._list_due, now=now, limit=_READ_AT_ONCE, offset=offset)
            due = await self._context.store.read(list_due)
            for feed in due:  # a site may have many hosts
                site = self._site_of(feed)
                is_free = site not in busy and site not in self._tasks and feed.id not in self._resting
                if is_free and len(self._tasks) < _AT_ONCE:
                    _ = self._begin(site, feed)
            if len(due) < _READ_AT_ONCE:
                break
            offset += _READ_AT_ONCE
        return bool(self._tasks)

    def _site_of(self, feed: FeedRow) -> str:
        return self._context.site_of(self._url_of(feed))

    def _begin(self, site: str, feed: FeedRow) -> asyncio.Task[None]:
        task = self._tasks[site] = asyncio.create_task(self._work(feed))
        task.add_done_callback(partial(self._end, site))
        return task

    def _end(self, site: str, _: object) -> None:
        del self._tasks[site]
        self._news.set()
