"""The PostgreSQL store of a test's replicas; a test can make it fail, full or slow for all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

from wholefeed.core.model import Family, Kind
from wholefeed.store.base import Database, fetch_value, run
from wholefeed.store.engine_choice import open_shared
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import feed_table, leases
from wholefeed.store.tables.leases import LeaseRow

_AGE_REPLICAS = "UPDATE replica SET beat_at = beat_at - :seconds WHERE :name IN ('', name)"
_AGE_LEASES = "UPDATE lease SET ended_at = ended_at - :seconds"
_COUNT = "SELECT count(*) FROM lease"
_PUBLISHED = "UPDATE feed SET digest = :digest WHERE id = :feed"


class SharedStore:
    """A store with the calls of replicas, and with the test's looks and faults.

    async with SharedStore.open(postgres_url) as store:
        shared = Shared(store.as_store())
        store.error = StoreError("the database is down")
    """

    def __init__(self, store: Store) -> None:
        self.own = store
        """A store that never fails."""
        self.error: Exception | None = None
        """Error of every read and write now."""
        self.delay_seconds = 0.0
        self.in_thread = 0
        """Signs of life sent by threads."""
        self.engine = self
        """The part of `Engine` in use."""
        self.listen = store.engine.listen

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str) -> AsyncIterator[SharedStore]:
        async with open_shared(url, connections=4) as store:
            yield cls(store)

    def as_store(self) -> Store:
        return cast("Store", self)

    # As `Store` and `Engine` have them

    async def read(self, work: Callable[[Database], Any]) -> Any:
        return await self._reached(partial(self.own.read, work))

    async def write_loosely(self, work: Callable[[Database], Any]) -> Any:
        return await self._reached(partial(self.own.write_loosely, work))

    async def write_single(self, work: Callable[[Database], Any]) -> Any:
        return await self._reached(partial(self.own.write_single, work))

    async def write_at_once(self, work: Callable[[Database], Any]) -> Any:
        if self.error is not None:
            raise self.error
        return await self.own.engine.write_at_once(work)

    def write_in_thread(self, work: Callable[[Database], Any]) -> Any:
        if self.error is not None:
            raise self.error
        found = self.own.engine.write_in_thread(work)
        self.in_thread += 1
        return found

    async def _reached(self, work: Callable[[], Awaitable[Any]]) -> Any:
        await asyncio.sleep(self.delay_seconds)
        if self.error is not None:
            raise self.error
        return await work()

    # For tests

    async def a_feed(self) -> FeedRow:
        """Store a published feed."""
        url = "https://o.test/feed"

        def make(db: Database) -> FeedRow:
            feed = feed_table.create(db, url=url, fetch_url=url, family=Family.ATOM, kind=Kind.PLAIN, now=1.0)
            run(db, _PUBLISHED, {"feed": feed.id, "digest": b"\1"})
            return feed_table.require(db, feed.id)

        return await self.own.write(make)

    async def lease(self, name: str) -> LeaseRow | None:
        return await self.own.read(partial(leases.read_lease, name=name))

    async def has_none(self) -> bool:
        """Return whether nothing is leased, and nothing failed lately."""
        return not await self.own.read(lambda db: fetch_value(db, _COUNT))

    async def execute(self, sql: str, **values: object) -> None:
        await self.own.write(lambda db: run(db, sql, values))

    async def age(self, seconds: float, name: str = "") -> None:
        """Let time pass for one replica, or all, until the next sign of life."""
        await self.execute(_AGE_REPLICAS, seconds=seconds, name=name)
        await self.execute(_AGE_LEASES, seconds=seconds)


class MovableClock:
    """Seconds that pass, and those that a test adds."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_seconds


async def until(is_so: Callable[[], Awaitable[bool] | bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            found = is_so()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.002)
