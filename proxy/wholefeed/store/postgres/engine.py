"""A PostgreSQL database as the store's engine, shared with other replicas.

async with open_engine("postgresql://…", connections=8) as engine:
    await engine.read(lambda db: ...)

Writes of one feed wait for each other here and not in the database, where each would hold a connection; and
some connections are left to those who read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import psycopg

from wholefeed.errors import OverloadedError, StoreUnusableError
from wholefeed.futures import retrieve_failure, to_the_end
from wholefeed.store.condition import Condition
from wholefeed.store.database import Database
from wholefeed.store.postgres import sizes
from wholefeed.store.postgres.connection import Scripts
from wholefeed.store.postgres.faults import translated
from wholefeed.store.postgres.migrate import check_current
from wholefeed.store.postgres.notices import Notices
from wholefeed.store.postgres.pool import Pool
from wholefeed.store.tables import versions
from wholefeed.store.tables.temporary import EMPTY_TEMPORARY_TABLES, TEMPORARY_TABLES

_T = TypeVar("_T")

_SCRIPTS: Final = Scripts(TEMPORARY_TABLES, EMPTY_TEMPORARY_TABLES)
_LEFT_TO_READERS: Final = 4
"""One connection in so many."""


class PostgresEngine:
    """As `wholefeed.store.engine.Engine` says; `open_engine` makes it."""

    def __init__(self, pool: Pool, notices: Notices, spare: Pool) -> None:
        self.pool = pool
        self._notices = notices
        self._spare = spare
        self.listen = notices.listen
        self.on_lost = notices.on_lost
        self.traffic = pool.traffic
        notices.traffic = pool.traffic
        self.condition = Condition()
        self.is_shared = True
        self.measure = sizes.measure
        self.on_change: Callable[[int], None] = lambda _: None
        self._writing = asyncio.Semaphore(pool.size - max(1, pool.size // _LEFT_TO_READERS))
        self._turns = WeakValueDictionary[int, asyncio.Lock]()
        self._tasks = set[asyncio.Task[Any]]()
        self._is_closing = False

    async def read(self, work: Callable[[Database], _T], *, is_first: bool = False) -> _T:
        """Return what a function finds."""
        try:
            return await self.pool.run(work, is_read=True, is_first=is_first)
        except Exception as exc:
            self.condition.judge(exc)
            raise

    async def write(
        self,
        work: Callable[[Database], _T],
        *,
        feed: int | None = None,
        is_alone: bool = False,
        tell: Callable[[_T], None] | None = None,
    ) -> _T:
        """Let a function change what is stored. Whoever asked may leave: it is done and told all the same."""
        if self._is_closing:
            raise OverloadedError("the store is being closed", slug="shutting-down")
        return await self._begun(
            self._told(work, feed, tell) if feed is None else self._in_turn(work, feed, tell)
        )

    async def write_loosely(self, work: Callable[[Database], _T]) -> _T:
        """Let a function change what a crash of the server may undo; nothing waits for its disk."""
        if self._is_closing:
            raise OverloadedError("the store is being closed", slug="shutting-down")
        return await self._begun(self._told(work, None, None, is_lasting=False))

    async def _begun(self, writing: Coroutine[Any, Any, _T]) -> _T:
        task = asyncio.create_task(writing, name="store-write")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(retrieve_failure)
        return await asyncio.shield(task)

    async def write_at_once(self, work: Callable[[Database], _T]) -> _T:
        """Let a function change what is stored, on a connection that nothing else is done on."""
        return await self._spare.run(work, is_read=False, is_lasting=False)

    def write_in_thread(self, work: Callable[[Database], _T]) -> _T:
        """Do the same in a thread that waits for it."""
        return self._spare.run_in_thread(work)

    async def versions(self, feeds: Collection[int]) -> Mapping[int, versions.Version]:
        """Return what feeds are now: by the connection that listens, while there is one."""
        try:
            return versions.parsed(await self._notices.query(versions.POSTGRES, versions.numbers(feeds)))
        except (psycopg.Error, OverloadedError):
            return await self.read(lambda db: versions.read(db, feeds))

    async def close(self) -> None:
        """Finish what was asked for, then close the connections."""
        self._is_closing = True
        try:
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            await self.pool.close()
            await self._spare.close()

    async def _in_turn(
        self, work: Callable[[Database], _T], feed: int, tell: Callable[[_T], None] | None
    ) -> _T:
        turn = self._turns.get(feed)
        if turn is None:
            turn = self._turns[feed] = asyncio.Lock()
        async with turn:
            return await self._told(work, feed, tell)

    async def _told(
        self,
        work: Callable[[Database], _T],
        feed: int | None,
        tell: Callable[[_T], None] | None,
        *,
        is_lasting: bool = True,
    ) -> _T:
        try:
            self.condition.require_sound()
            async with self._writing:
                result = await self.pool.run(work, is_read=False, feed=feed, is_lasting=is_lasting)
        except Exception as exc:
            if feed is not None:  # a COMMIT said to have failed may be done
                self.on_change(feed)
            self.condition.judge(exc)
            raise
        self.condition.has_written()
        if tell is not None:
            tell(result)
        elif feed is not None:
            self.on_change(feed)
        return result


@asynccontextmanager
async def open_engine(url: str, *, connections: int) -> AsyncIterator[PostgresEngine]:
    """Open a database, whose schema must be current, and close the connections at exit.

    Raises:
        StoreUnusableError: The database is not this program's, not current, or cannot be reached.
    """
    await asyncio.to_thread(check_current, url)
    async with _listening(url) as notices:
        pool = Pool(url, size=connections, scripts=_SCRIPTS)
        engine = PostgresEngine(pool, notices, spare=Pool(url, size=1))
        try:
            yield engine
        finally:
            await to_the_end(engine.close)


@asynccontextmanager
async def _listening(url: str) -> AsyncIterator[Notices]:
    async with AsyncExitStack() as stack:
        try:
            notices = await stack.enter_async_context(Notices.open(url))
        except psycopg.Error as exc:
            raise StoreUnusableError(str(translated(exc))) from exc
        yield notices
