"""A PostgreSQL database as the store's engine, shared with other replicas.

async with open_engine("postgresql://…", connections=8) as engine:
    await engine.read(lambda db: ...)

Writes of one feed wait for each other here and not in the database, where each would hold a connection; and
some connections are left to those who read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import psycopg

from wholefeed.errors import OverloadedError, StoreUnusableError, UnknownFeedError
from wholefeed.futures import in_daemon, retrieve_failure, to_the_end
from wholefeed.loggers import get_logger
from wholefeed.store.condition import Condition
from wholefeed.store.database import Database
from wholefeed.store.postgres import sizes
from wholefeed.store.postgres.connection import Scripts
from wholefeed.store.postgres.faults import translated
from wholefeed.store.postgres.migrate import check_current
from wholefeed.store.postgres.notices import Notices
from wholefeed.store.postgres.pool import CLOSE_SECONDS, Pool
from wholefeed.store.postgres.transactions import Write
from wholefeed.store.tables import versions
from wholefeed.store.tables.temporary import EMPTY_TEMPORARY_TABLES, TEMPORARY_TABLES
from wholefeed.store.traffic import Traffic

_T = TypeVar("_T")

_log = get_logger()

_SCRIPTS: Final = Scripts(TEMPORARY_TABLES, EMPTY_TEMPORARY_TABLES)
_LEFT_TO_READERS: Final = 4
"""One connection in so many."""
_LOOK_SECONDS: Final = 0.1
"""Between two looks, at the end, whether the server has fallen silent."""


class PostgresEngine:
    """As `wholefeed.store.engine.Engine` says; `open_engine` makes it."""

    def __init__(self, pool: Pool, notices: Notices, spare: Pool) -> None:
        self.pool = pool
        self._notices = notices
        self._spare = spare
        self.listen = notices.listen
        self.on_lost = notices.on_lost
        self.on_replaced = notices.on_replaced
        notices.on_silent = self._distrust
        notices.on_replaced(pool.give_up)
        notices.on_lost(self._try_again)
        self.traffic = pool.traffic
        self.condition = Condition()
        self.is_shared = True
        self.measure = sizes.measure
        self.measure_feed = sizes.measure_feed
        self.on_change: Callable[[int], None] = lambda _: None
        self._writing = asyncio.Semaphore(pool.size - max(1, pool.size // _LEFT_TO_READERS))
        self._turns = WeakValueDictionary[int, asyncio.Lock]()
        self._tasks = set[asyncio.Task[Any]]()
        self._is_closing = False

    async def read(
        self, work: Callable[[Database], _T], *, is_first: bool = False, is_long: bool = False
    ) -> _T:
        """Return what a function finds."""
        try:
            return await self.pool.run(work, is_first=is_first, is_long=is_long)
        except Exception as exc:
            self.condition.judge(exc)
            raise

    async def write(
        self,
        work: Callable[[Database], _T],
        *,
        feed: int | None = None,
        is_alone: bool = False,
        is_lasting: bool = True,
        tell: Callable[[_T], None] | None = None,
    ) -> _T:
        """Let a function change what is stored. Whoever asked may leave: it is done and told all the same."""
        if self._is_closing:
            raise OverloadedError("the store is being closed", slug="shutting-down")
        writing = self._in_turn(work, feed, tell, is_lasting=is_lasting)
        task = asyncio.create_task(writing, name="store-write")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(retrieve_failure)
        return await asyncio.shield(task)

    async def write_at_once(self, work: Callable[[Database], _T]) -> _T:
        """Let a function change what is stored, on a connection that nothing else is done on.

        Whoever leaves ends it, so that the next one does not wait behind it for a server that is silent.
        """
        return await self._spare.write(Write(work, None, is_lasting=False), is_brief=True)

    def write_in_thread(self, work: Callable[[Database], _T]) -> _T:
        """Do the same in a thread that waits for it."""
        return self._spare.run_in_thread(work)

    async def versions(self, feeds: Collection[int]) -> Mapping[int, versions.Version]:
        """Return what feeds are now: by the connection that listens, while there is one."""
        try:
            return versions.parsed(await self._notices.query(versions.POSTGRES, versions.numbers(feeds)))
        except (psycopg.Error, OverloadedError) as exc:
            if isinstance(exc, psycopg.Error) and exc.sqlstate is not None:  # it would fail there, too
                raise translated(exc) from exc
            return await self.read(lambda db: versions.read(db, feeds))

    async def close(self) -> None:
        """Finish what was asked for, if that is soon, then close the connections."""
        self._is_closing = True
        try:
            await self._finished()
        finally:
            await asyncio.gather(self.pool.close(), self._spare.close())
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LOOK_SECONDS)

    async def _finished(self) -> None:
        """Wait for what was asked for, as long as the server answers, and not for long."""
        latest_at = time.monotonic() + CLOSE_SECONDS
        while self._tasks and not self.pool.is_silent:
            if time.monotonic() >= latest_at:
                _log.warning("store.unfinished", writes=len(self._tasks))
                return
            await asyncio.wait(self._tasks, timeout=_LOOK_SECONDS)

    def _distrust(self) -> None:
        self.pool.distrust()
        self._spare.distrust()

    def _try_again(self) -> None:
        self.pool.try_again()
        self._spare.try_again()

    async def _in_turn(
        self,
        work: Callable[[Database], _T],
        feed: int | None,
        tell: Callable[[_T], None] | None,
        *,
        is_lasting: bool,
    ) -> _T:
        if feed is None:
            return await self._told(work, feed, tell, is_lasting=is_lasting)
        turn = self._turns.get(feed)
        if turn is None:
            turn = self._turns[feed] = asyncio.Lock()
        async with turn:
            return await self._told(work, feed, tell, is_lasting=is_lasting)

    async def _told(
        self,
        work: Callable[[Database], _T],
        feed: int | None,
        tell: Callable[[_T], None] | None,
        *,
        is_lasting: bool,
    ) -> _T:
        write = Write(work, feed, is_lasting=is_lasting)
        try:
            self.condition.require_sound()
            async with self._writing:
                result = await self.pool.write(write)
        except Exception as exc:
            # Else the feed is what it was: who holds it can answer with it while there is no database.
            may_be_another = write.is_ending or isinstance(exc, UnknownFeedError)
            if feed is not None and may_be_another:
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
    await in_daemon(lambda: check_current(url))
    pool = Pool(url, size=connections, scripts=_SCRIPTS)
    async with _listening(url, pool.traffic) as notices:
        engine = PostgresEngine(pool, notices, spare=Pool(url, size=1))
        try:
            yield engine
        finally:
            await to_the_end(engine.close)


@asynccontextmanager
async def _listening(url: str, traffic: Traffic) -> AsyncIterator[Notices]:
    async with AsyncExitStack() as stack:
        try:
            notices = await stack.enter_async_context(Notices.open(url, traffic))
        except psycopg.Error as exc:
            raise StoreUnusableError(str(translated(exc))) from exc
        yield notices
