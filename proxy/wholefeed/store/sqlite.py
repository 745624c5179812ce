"""A SQLite file as the store's engine: one writing connection, a few readers (docs/design.md#the-store)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from wholefeed.errors import OverloadedError, StoreDamagedError
from wholefeed.futures import retrieve_failure, to_the_end
from wholefeed.logs import get_logger
from wholefeed.store.base import Condition, Database
from wholefeed.store.sqlite_file import (
    SqliteConnection,
    check_current,
    close,
    is_busy,
    lock_database,
    measure_sizes,
    open_reader,
    open_writer,
    settle,
    tighten,
    translate_error,
)
from wholefeed.store.store import Engine
from wholefeed.store.tables.live import TEMPORARY_TABLES

_T = TypeVar("_T")
_log = get_logger()
READERS: Final = 4


@asynccontextmanager
async def open_engine(path: Path, *, readers: int = READERS) -> AsyncIterator[SqliteEngine]:
    async with AsyncExitStack() as stack:
        lock = lock_database(path)
        await asyncio.to_thread(lock.__enter__)
        stack.push(lock.__exit__)
        await asyncio.to_thread(check_current, path)
        await asyncio.to_thread(_keep_others_out, path)
        engine = SqliteEngine(await open_writer(path, TEMPORARY_TABLES))
        stack.push_async_callback(to_the_end, engine.close)
        for _ in range(readers):
            engine.readers.add(await open_reader(path))
        yield engine


def _keep_others_out(path: Path) -> None:
    # Call this before any connection opens: SQLite's other files inherit the file's permissions.
    for found in tighten(path):
        if found.problem:
            _log.warning("store.exposed", path=str(found.path), reason=found.problem)
        else:
            _log.warning("store.tightened", path=str(found.path))


class SqliteEngine(Engine):
    """An engine with one writing connection and its `readers`; close it with `close`."""

    # Writes that wait during a transaction are committed together, each in a savepoint, so that a failure
    # undoes only its own work. No caller gets its result before the COMMIT. Cancelling a caller ends only its
    # waiting. Work without `is_lasting` is in the file at once, and on disk with the next lasting write: only
    # a power cut loses it. Work may run twice (after SQLITE_BUSY, or after a failed shared commit).

    measure = staticmethod(measure_sizes)

    def __init__(self, db: SqliteConnection) -> None:
        super().__init__()
        self.readers = Readers(self.condition)
        self._db = db
        self._jobs: deque[_QueuedWrite] = deque()
        self._has_come = asyncio.Event()
        # Whether COMMIT waits for the disk, as it does on a new connection.
        self._is_syncing = True
        self._is_ending = False
        """Whether COMMIT was begun. If it failed later, the outcome is open."""
        self._is_closing = False
        self._task = asyncio.create_task(self._run(), name="store-writer")

    def read(self, work: Callable[[Database], _T], **_: bool) -> Coroutine[Any, Any, _T]:
        """Return the result of a function; reads begin in the order of the calls."""
        return self.readers.run(work)

    async def write(
        self,
        work: Callable[[Database], _T],
        *,
        feed: int | None = None,
        is_alone: bool = False,
        is_lasting: bool = True,
        tell: Callable[[_T], None] | None = None,
    ) -> _T:
        if self._is_closing or self._task.done():
            raise _closing_error()
        done: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        done.add_done_callback(retrieve_failure)
        self._jobs.append(_QueuedWrite(work, feed, is_alone, is_lasting, tell, done))
        self._has_come.set()
        return await done  # cancelling the caller cancels this future, not the transaction

    async def close(self) -> None:
        # The last connection checkpoints.
        try:
            await self.readers.close()
        finally:
            self._is_closing = True
            self._has_come.set()
            try:
                await asyncio.wait({self._task})
            finally:
                await close(self._db)

    # The writing task

    async def _run(self) -> None:
        try:
            while self._jobs or not self._is_closing:
                if self._jobs:
                    await self._finish(self._next())
                else:
                    self._has_come.clear()
                    await self._has_come.wait()
        finally:
            self._is_closing = True
            while self._jobs:
                _fail(self._jobs.popleft(), _closing_error())

    def _next(self) -> list[_QueuedWrite]:
        """Take the next jobs for one transaction, in which a feed changes once."""
        # A second change may delete segments that readers still see until the COMMIT.
        jobs = [self._jobs.popleft()]
        feeds = {jobs[0].feed}
        while self._jobs and len(jobs) < _TOGETHER and not (jobs[0].is_alone or self._jobs[0].is_alone):
            feed = self._jobs[0].feed
            if feed is not None and feed in feeds:
                break
            feeds.add(feed)
            jobs.append(self._jobs.popleft())
        return jobs

    async def _finish(self, jobs: Sequence[_QueuedWrite]) -> None:
        try:
            outcomes = await self._transact(jobs)
            if len(jobs) > 1 and all(outcome.error is not None for outcome in outcomes):
                is_open = any(outcome.is_open for outcome in outcomes)
                apart = [outcome for job in jobs for outcome in await self._transact([job])]
                outcomes = [outcome._replace(is_open=outcome.is_open or is_open) for outcome in apart]
        except BaseException:
            for job in jobs:
                _fail(job, _closing_error())
            raise
        for job, outcome in zip(jobs, outcomes, strict=True):
            if job.tell is not None and outcome.error is None:
                job.tell(outcome.result)
            elif job.feed is not None and (outcome.error is None or outcome.is_open):
                self.on_change(job.feed)
            if outcome.error is not None:
                self.condition.judge(outcome.error)
                _fail(job, outcome.error)
            elif not job.done.done():
                job.done.set_result(outcome.result)

    async def _transact(self, jobs: Sequence[_QueuedWrite]) -> list[_WorkResult]:
        works = [job.work for job in jobs]
        is_lasting = any(job.is_lasting for job in jobs)
        self._is_ending = False
        try:
            self.condition.require_sound()
            outcomes = await self._run_with_retries(
                partial(self._run_together, works=works, is_lasting=is_lasting)
            )
        except Exception as exc:  # noqa: BLE001 - it belongs to whoever asked
            if isinstance(exc, StoreDamagedError):  # at once, so that no other job is written
                self.condition.judge(exc)
            return [_WorkResult(error=exc, is_open=self._is_ending)] * len(jobs)
        if is_lasting and any(outcome.has_changed for outcome in outcomes):
            self.condition.note_success()  # others do not show whether the disk takes them
        return outcomes

    async def _run_with_retries(
        self, work: Callable[[sqlite3.Connection], list[_WorkResult]]
    ) -> list[_WorkResult]:
        for tries_left in reversed(range(_TRIES)):
            try:
                return await self._db.hop(work)
            except sqlite3.Error as exc:
                if not (tries_left and is_busy(exc)):
                    raise translate_error(exc) from exc
        raise AssertionError

    def _run_together(
        self, db: sqlite3.Connection, works: Sequence[_Work], is_lasting: bool
    ) -> list[_WorkResult]:
        # An error of one piece of work undoes that piece and is its result. An error of SQLite undoes all.
        try:
            if db.in_transaction:  # the rollback of a failed transaction failed, too
                db.rollback()
            if is_lasting != self._is_syncing:
                db.execute(f"PRAGMA synchronous = {'FULL' if is_lasting else 'NORMAL'}")
                self._is_syncing = is_lasting
            db.execute("BEGIN IMMEDIATE")
            outcomes = (
                [_run_work(db, works[0])]
                if len(works) == 1
                else [_run_in_savepoint(db, work) for work in works]
            )
            self._is_ending = True
            db.execute("COMMIT")
        except BaseException:
            db.rollback()
            raise
        return outcomes


_Work = Callable[[sqlite3.Connection], Any]


class _QueuedWrite(NamedTuple):
    work: _Work
    feed: int | None
    is_alone: bool
    is_lasting: bool
    tell: Callable[[Any], None] | None
    done: asyncio.Future[Any]


class _WorkResult(NamedTuple):
    result: Any = None
    error: Exception | None = None
    has_changed: bool = False
    """Whether it wrote anything. A full or read-only volume permits a transaction without writes."""
    is_open: bool = False
    """Whether it may have taken effect despite the error."""


_TRIES: Final = 3
_TOGETHER: Final = 32


def _run_work(db: sqlite3.Connection, work: _Work) -> _WorkResult:
    changes = db.total_changes
    result = work(db)
    return _WorkResult(result, has_changed=db.total_changes > changes)


def _run_in_savepoint(db: sqlite3.Connection, work: _Work) -> _WorkResult:
    db.execute("SAVEPOINT piece")
    try:
        outcome = _run_work(db, work)
    except sqlite3.Error:
        raise
    except Exception as exc:  # noqa: BLE001 - it belongs to whoever asked
        db.execute("ROLLBACK TO piece")
        outcome = _WorkResult(error=exc)
    db.execute("RELEASE piece")
    return outcome


def _fail(job: _QueuedWrite, error: Exception) -> None:
    if not job.done.done():
        job.done.set_exception(error)


# Reading connections


class Readers:
    """The reading connections.

    Cancelling a read interrupts only a statement, so work must not compute for long between two.
    """

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._connections: list[SqliteConnection] = []
        self._idle: list[SqliteConnection] = []
        self._turns = asyncio.Semaphore(0)
        self._reclaiming: set[asyncio.Task[None]] = set()
        self._is_closing = False

    def add(self, connection: SqliteConnection) -> None:
        self._connections.append(connection)
        self._give(connection)

    async def run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        if self._is_closing:
            raise _closing_error()
        await self._turns.acquire()
        connection = self._idle.pop()
        if self._is_closing:
            self._give(connection)
            raise _closing_error()
        try:
            result = await connection.hop(lambda db: _read_in_transaction(db, work))
        except BaseException as exc:
            self._reclaim(connection)
            if self._is_closing and isinstance(exc, (sqlite3.Error, ValueError)):
                raise _closing_error() from exc
            if isinstance(exc, sqlite3.Error):
                error = translate_error(exc)
                self._condition.judge(error)
                raise error from exc
            raise
        self._give(connection)
        return result

    async def close(self) -> None:
        self._is_closing = True
        if self._reclaiming:
            await asyncio.wait(self._reclaiming)
        results = await asyncio.gather(*map(close, self._connections), return_exceptions=True)
        for error in results:
            if isinstance(error, BaseException):
                raise error

    def _give(self, connection: SqliteConnection) -> None:
        self._idle.append(connection)
        self._turns.release()

    def _reclaim(self, connection: SqliteConnection) -> None:
        """Make the connection idle again after its queued work and its transaction have ended."""
        if self._is_closing:
            self._give(connection)
            return
        task = asyncio.create_task(settle(connection), name="store-reclaim")
        self._reclaiming.add(task)

        def give_back(done: asyncio.Task[None]) -> None:
            self._reclaiming.discard(done)
            self._give(connection)
            if not done.cancelled() and (error := done.exception()) is not None:
                _log.error("store.failed", error=str(error))

        task.add_done_callback(give_back)


def _read_in_transaction(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], _T]) -> _T:
    db.execute("BEGIN")
    result = work(db)
    db.execute("COMMIT")
    return result


def _closing_error() -> OverloadedError:
    return OverloadedError("the store is being closed", slug="shutting-down")
