"""Threads with a connection each, which run whole functions (docs/design.md#the-store).

    row = await pool.run(lambda db: fetch_one(db, sql), is_read=True)

Work is a function that runs in a thread, within one transaction, and it may run twice: a transaction that a
concurrent one has ended is repeated, and so is one whose connection was lost before its COMMIT was sent. A
connection is made when it is needed; while the server cannot be reached, whoever asks is told so at once.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Any, Final, Generic, TypeVar

import psycopg

from wholefeed.errors import OverloadedError
from wholefeed.store.database import Database
from wholefeed.store.postgres.connection import NO_SCRIPTS, PostgresDatabase, Scripts, connect
from wholefeed.store.postgres.faults import is_repeated, is_stale, is_unusable, overloaded, translated
from wholefeed.store.postgres.transactions import Reads, Write
from wholefeed.store.traffic import Traffic

_T = TypeVar("_T")

TRIES: Final = 6
"""Of one transaction that others undo, or of a read whose connections are lost."""
PATIENCE_SECONDS: Final = 10.0
"""For so long work waits for a connection, and a read for its result."""
_PAUSE_SECONDS: Final = 0.01
"""Before the first repetition, about; each pause is twice as long as the one before."""
_LONGEST_PAUSE_SECONDS: Final = 0.5
_UNREACHABLE_SECONDS: Final = 1.0
"""For so long nobody tries to connect again, where that has failed."""


class _Job(Generic[_T]):
    """What one thread does for one who asked."""

    def __init__(self, work: Callable[[Database], _T], write: Write[_T] | None) -> None:
        self.work = work
        self.write = write
        """None: it only reads."""
        self.latest_at = time.monotonic() + PATIENCE_SECONDS
        """When it is not begun any more."""
        self._changing = threading.Lock()
        self._db: PostgresDatabase | None = None

    def run(self, db: PostgresDatabase, reads: Reads) -> _T:
        """Do it on a connection."""
        with self._changing:
            self._db = db
        try:
            return reads.run(db, self.work) if self.write is None else self.write.run(db)
        except psycopg.Error as exc:
            if is_unusable(exc):
                db.close()
            raise
        finally:
            with self._changing:  # a cancellation that is under way is for this job, not for the next one
                self._db = None

    def cancel(self) -> None:
        """End the statement that it runs; from another thread."""
        with self._changing:
            if self._db is not None:
                self._db.cancel()


class Pool:
    """Owns the connections; `close` it.

    Args:
        url: Of the database, as libpq takes it.
        size: How many connections, at the most.
        scripts: What a connection needs when it writes.
    """

    def __init__(self, url: str, *, size: int, scripts: Scripts = NO_SCRIPTS) -> None:
        self.size = size
        self._url = url
        self._scripts = scripts
        self.traffic = Traffic()
        self._executor = ThreadPoolExecutor(size, "store")
        self._reads = Reads()
        self._first = asyncio.Semaphore(size)
        """Who begins waits for this and not in the queue: what was begun would wait behind all of them."""
        self._jobs = set[_Job[Any]]()
        self._own = threading.local()
        self._connections = set[PostgresDatabase]()
        self._unreachable_until = 0.0
        self._why_unreachable = ""
        self._is_closing = False

    async def run(
        self,
        work: Callable[[Database], _T],
        *,
        is_read: bool,
        is_first: bool = False,
        feed: int | None = None,
        is_lasting: bool = True,
    ) -> _T:
        """Run `work` in a transaction on a connection that nobody else uses meanwhile.

        Whoever waits may be cancelled; what has begun runs to its end.

        Args:
            work: The function.
            is_read: Whether it only reads: then all that it sees is of one moment.
            is_first: Whether whoever asks has only come: then it waits until what was begun before goes on.
            feed: The feed that it changes, whose row is locked first.
            is_lasting: Whether what it changes is on the server's disk before it counts as done.

        Raises:
            OverloadedError: The database cannot be asked now, or the store is being closed.
            StorageFullError: The database cannot be written.
            StoreDamagedError: The database is damaged.
            StoreError: It failed otherwise.
        """
        if self._is_closing:
            raise _closed()
        if not is_read:
            job = _Job(work, Write(work, feed, is_lasting=is_lasting))
            return await asyncio.wrap_future(self._begun(job))
        if not is_first:
            return await self._read(_Job(work, None))
        await self._turn()
        try:
            return await self._read(_Job(work, None))
        finally:
            self._first.release()

    async def _turn(self) -> None:
        """Wait until so few begin that one more has a connection soon."""
        if not self._first.locked():  # a deadline would cost more than the turn
            await self._first.acquire()
            return
        self.traffic.asked()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._first.acquire()
        except TimeoutError as exc:
            raise overloaded("too many wait for the database") from exc
        finally:
            self.traffic.left()

    async def _read(self, job: _Job[_T]) -> _T:
        running = asyncio.wrap_future(self._begun(job))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await running
        except TimeoutError as exc:
            _ = asyncio.get_running_loop().run_in_executor(None, job.cancel)
            raise overloaded("the database does not answer in time") from exc

    def run_in_thread(self, work: Callable[[Database], _T]) -> _T:
        """Run `work`, which need not last, and wait for it in a thread of one's own. Raises as `run` does."""
        if self._is_closing:
            raise _closed()
        return self._begun(_Job(work, Write(work, None, is_lasting=False))).result()

    def _begun(self, job: _Job[_T]) -> Future[_T]:
        self.traffic.asked()
        try:
            future = self._executor.submit(self._do, job)
        except RuntimeError as exc:  # it is shut down
            self.traffic.left()
            raise _closed() from exc
        future.add_done_callback(self._count_unbegun)
        return future

    def _count_unbegun(self, future: Future[Any]) -> None:
        if future.cancelled():  # whoever asked has left before a connection was free
            self.traffic.left()

    async def close(self) -> None:
        """End what reads, finish what writes, then close the connections."""
        self._is_closing = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        for job in tuple(self._jobs):
            if job.write is None:
                job.cancel()
        self._executor.shutdown()
        for db in self._connections:
            db.close()

    def _do(self, job: _Job[_T]) -> _T:
        """Do a job, in a thread of the pool."""
        with self.traffic.work():
            if self._is_closing:
                raise _closed()
            now = time.monotonic()
            if now > job.latest_at:
                raise overloaded("too many wait for the database")
            self._jobs.add(job)
            try:
                return self._tried(job, now + PATIENCE_SECONDS)
            finally:
                self._jobs.discard(job)

    def _tried(self, job: _Job[_T], until: float) -> _T:
        """Do a job, again where that helps."""
        for tries in count(1):
            try:
                db = self._connected()
                if job.write is not None and job.write.is_open:
                    found = job.write.settle(db, until=until)
                    if found is not None:
                        return found[0]
                return job.run(db, self._reads)
            except psycopg.Error as exc:
                if self._is_closing and job.write is None:
                    raise _closed() from exc
                if not self._is_again(job, exc, tries, until):
                    raise translated(exc) from exc
            self.traffic.again()
            pause = min(_PAUSE_SECONDS * 2**tries, _LONGEST_PAUSE_SECONDS)
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that two do not meet again
        raise AssertionError

    def _is_again(self, job: _Job[Any], error: psycopg.Error, tries: int, until: float) -> bool:
        """Whether a job that has failed may succeed now.

        A server that is restarted is there again in seconds: who writes waits for it, for otherwise a walk
        would end; who reads is told at once, for there may be something in memory to answer with.
        """
        if is_repeated(error) or is_stale(error):
            return tries < TRIES
        if not (is_unusable(error) or self._is_lost()):
            return False
        if job.write is None:
            return tries < TRIES and time.monotonic() >= self._unreachable_until
        return time.monotonic() < until and not self._is_closing

    def _is_lost(self) -> bool:
        db: PostgresDatabase | None = getattr(self._own, "db", None)
        return db is not None and db.is_lost

    def _connected(self) -> PostgresDatabase:
        """Return this thread's connection, made if it has none or lost it."""
        db: PostgresDatabase | None = getattr(self._own, "db", None)
        if db is not None and not db.is_lost:
            return db
        if db is not None:
            self._connections.discard(db)
            self._own.db = None
            self.traffic.disconnected(was_open=True)
        if time.monotonic() < self._unreachable_until:
            raise psycopg.OperationalError(self._why_unreachable)
        try:
            db = connect(self._url, self._scripts)
        except psycopg.OperationalError as exc:
            self._why_unreachable = str(exc)
            self._unreachable_until = time.monotonic() + _UNREACHABLE_SECONDS
            self.traffic.disconnected(was_open=False)
            raise
        self._connections.add(db)
        self.traffic.connected()
        self._own.db = db
        return db


def _closed() -> OverloadedError:
    return OverloadedError("the store is being closed", slug="shutting-down")
