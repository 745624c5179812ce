"""Threads that run whole functions on connections (docs/design.md#the-store).

    row = await pool.run(lambda db: fetch_one(db, sql))
    result = await pool.write(Write(work, feed=1))

Work is a function that runs in a thread, within one transaction, and it may run twice: a transaction that a
concurrent one has ended is repeated, and so is one whose connection was lost before its COMMIT was sent.

A server may fall silent: its processes halted, its disk stuck, a lock held by somebody. A read then ends when
whoever asked has waited long enough, and with it its statement; where the server does not even end that, the
connection is cut. A write is left alone, for it may be committed still, until another server has taken the
place of that one. `close` cuts all.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Any, Final, TypeVar

import psycopg

from wholefeed.errors import OverloadedError
from wholefeed.store.database import Database
from wholefeed.store.postgres.connection import NO_SCRIPTS, PostgresDatabase, Scripts
from wholefeed.store.postgres.connections import Connections
from wholefeed.store.postgres.faults import is_repeated, is_stale, is_unusable, overloaded, translated
from wholefeed.store.postgres.jobs import END_SECONDS, LATE, Job
from wholefeed.store.postgres.transactions import Reads, Write
from wholefeed.store.postgres.turns import Turns
from wholefeed.store.traffic import Traffic

_T = TypeVar("_T")

TRIES: Final = 6
"""Of one transaction that others undo, or of a read whose connections are lost."""
PATIENCE_SECONDS: Final = 10.0
"""For so long work waits for a connection, and a read for its result."""
LONG_SECONDS: Final = 115.0
"""For so long a read waits that looks at all rows: about as long as the server lets a statement run."""
CLOSE_SECONDS: Final = 5.0
"""For so long a write may go on when the pool is closed; no time at all where the server is silent."""
_IN_THREAD_SECONDS: Final = 2.0
"""For so long a thread waits."""
_PAUSE_SECONDS: Final = 0.01
"""Before the first repetition, about; each pause is twice as long as the one before."""
_LONGEST_PAUSE_SECONDS: Final = 0.5


class Pool:
    """Owns the connections; `close` it.

    Args:
        url: Of the database, as libpq takes it.
        size: How many connections, at the most.
        scripts: What a connection needs when it writes.
    """

    def __init__(self, url: str, *, size: int, scripts: Scripts = NO_SCRIPTS) -> None:
        self.size = size
        self.traffic = Traffic()
        self._connections = Connections(url, size=size, scripts=scripts, traffic=self.traffic)
        self._executor = ThreadPoolExecutor(size, "store")
        self._enders = ThreadPoolExecutor(size, "store-ender")
        self._reads = Reads()
        self._turns = Turns(size, self.traffic, lambda: PATIENCE_SECONDS)
        self._jobs = set[Job[Any]]()
        self._unanswered: tuple[Job[Any], ...] = ()
        """Those under way when the server had fallen silent."""
        self._is_closing = False

    @property
    def is_silent(self) -> bool:
        """Whether nothing comes from the server, as far as is known."""
        return self._connections.is_silent

    async def run(
        self, work: Callable[[Database], _T], *, is_first: bool = False, is_long: bool = False
    ) -> _T:
        """Run `work`, which only reads, on a connection that nobody else uses meanwhile.

        All that it sees is of one moment. It ends when whoever waits is cancelled.

        Args:
            work: The function.
            is_first: Whether whoever asks has only come: then it waits until what was begun before goes on.
            is_long: Whether it may read for minutes.

        Raises:
            OverloadedError: The database cannot be asked now, or the store is being closed.
            StorageFullError: The database cannot be written.
            StoreDamagedError: The database is damaged.
            StoreError: It failed otherwise.
        """
        if self._is_closing:
            raise _closed()
        if not is_first:
            return await self._result(self._job(work), LONG_SECONDS if is_long else None)
        async with self._turns:
            return await self._result(self._job(work))

    async def write(self, write: Write[_T], *, is_brief: bool = False) -> _T:
        """Run a transaction that writes; it goes on to its end when whoever waits is cancelled.

        Args:
            write: The transaction, which knows how far it has come when it has failed.
            is_brief: Whether it ends with its wait.

        Raises: As `run` does.
        """
        if self._is_closing:
            raise _closed()
        job = self._job(write.work, write)
        return await (self._result(job) if is_brief else asyncio.wrap_future(self._begun(job)))

    async def _result(self, job: Job[_T], seconds: float | None = None) -> _T:
        """Wait for a job that ends with its wait."""
        running = asyncio.wrap_future(self._begun(job))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS if seconds is None else seconds):
                return await running
        except TimeoutError as exc:
            self._end(job)
            raise overloaded(LATE) from exc
        except asyncio.CancelledError:
            self._end(job)
            raise

    def distrust(self) -> None:
        """Take note that the server is silent: what reads ends now, and whoever comes is told at once."""
        self._connections.distrust()
        self._unanswered = tuple(self._jobs)
        for job in self._unanswered:
            if job.write is None and not self._is_closing:
                job.is_ended = True
                self._enders.submit(job.cut)

    def try_again(self) -> None:
        """Take note that the server has answered somebody."""
        self._unanswered = ()
        self._connections.try_again()

    def give_up(self) -> None:
        """Take note that another server is in the place of a silent one: what writes on that begins again."""
        for job in self._unanswered:
            if job in self._jobs and not self._is_closing:
                job.latest_at = time.monotonic() + PATIENCE_SECONDS
                self._enders.submit(job.cut)

    async def close(self) -> None:
        """End what reads, finish what writes if that is soon, then close the connections."""
        self._is_closing = True
        await asyncio.to_thread(self._close)

    def run_in_thread(self, work: Callable[[Database], _T]) -> _T:
        """Run `work`, which need not last, and wait for it in a thread of one's own. Raises as `run` does."""
        job = self._job(work, Write(work, None, is_lasting=False))
        try:
            return self._begun(job).result(_IN_THREAD_SECONDS)
        except TimeoutError as exc:  # the next one is not to wait behind it
            self._end(job)
            raise overloaded(LATE) from exc

    def _job(self, work: Callable[[Database], _T], write: Write[_T] | None = None) -> Job[_T]:
        return Job(work, write, latest_at=time.monotonic() + PATIENCE_SECONDS)

    def _begun(self, job: Job[_T]) -> Future[_T]:
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

    def _end(self, job: Job[Any]) -> None:
        """End a job, if it is under way."""
        job.is_ended = True
        if job in self._jobs and not self._is_closing:
            self._enders.submit(self._ended, job)

    def _ended(self, job: Job[Any]) -> None:
        if job.end():  # the server neither answers nor ends what it was told to end
            self._connections.distrust()

    def _close(self) -> None:
        latest_at = time.monotonic() + CLOSE_SECONDS
        for job in tuple(self._jobs):
            if job.write is None:
                self._enders.submit(job.end)
        self._executor.shutdown(wait=False)
        while self._jobs and time.monotonic() < latest_at and not self.is_silent:
            time.sleep(_PAUSE_SECONDS)
        for job in tuple(self._jobs):  # the server undoes it, or it has been committed
            job.cut()
        self._connections.close()
        latest_at = time.monotonic() + END_SECONDS
        while self._jobs and time.monotonic() < latest_at:  # one may be connecting, which nobody can end
            time.sleep(_PAUSE_SECONDS)
        self._enders.shutdown(wait=False)

    def _do(self, job: Job[_T]) -> _T:
        """Do a job, in a thread of the pool."""
        with self.traffic.work():
            if self._is_closing:
                raise _closed()
            now = time.monotonic()
            if now > job.latest_at:
                raise overloaded("too many wait for the database")
            job.latest_at = now + PATIENCE_SECONDS
            self._jobs.add(job)
            try:
                return self._tried(job)
            finally:
                self._jobs.discard(job)

    def _tried(self, job: Job[_T]) -> _T:
        """Do a job, again where that helps."""
        for tries in count(1):
            db: PostgresDatabase | None = None
            try:
                db = self._connections.borrow(job.latest_at)
                return job.run(db, self._reads)
            except psycopg.Error as exc:
                if self._is_closing and job.write is None:
                    raise _closed() from exc
                if job.is_ended:
                    raise overloaded(LATE) from exc
                if not self._is_again(job, exc, db, tries):
                    raise translated(exc) from exc
            finally:
                if db is not None:
                    self._connections.give_back(db)
            self.traffic.again()
            pause = min(_PAUSE_SECONDS * 2**tries, _LONGEST_PAUSE_SECONDS)
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that two do not meet again
        raise AssertionError

    def _is_again(self, job: Job[Any], error: psycopg.Error, db: PostgresDatabase | None, tries: int) -> bool:
        """Whether a job that has failed may succeed now; on no connection, where there was none to be had.

        A server that is restarted is there again in seconds: who writes waits for it, for otherwise a walk
        would end; who reads is told at once, for there may be something in memory to answer with.
        """
        if is_repeated(error) or is_stale(error):
            return tries < TRIES
        if db is not None and not (is_unusable(error) or db.is_lost):
            return False
        if job.write is None:
            return db is not None and tries < TRIES
        return time.monotonic() < job.latest_at and not self._is_closing


def _closed() -> OverloadedError:
    return OverloadedError("the store is being closed", slug="shutting-down")
