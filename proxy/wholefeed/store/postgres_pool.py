"""Threads that run whole functions on connections to PostgreSQL (docs/design.md#the-store).

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
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any, Final, Generic, TypeVar

import psycopg
from psycopg import errors

from wholefeed.errors import OverloadedError
from wholefeed.store.base import Database, Traffic, fetch_value
from wholefeed.store.postgres_connection import (
    CONNECT_SECONDS,
    NO_SCRIPTS,
    PostgresDatabase,
    Result,
    Scripts,
    connect,
    is_repeated,
    is_stale,
    is_unusable,
    overloaded,
    translated,
)

_T = TypeVar("_T")
_TRIES: Final = 6
"""Of one transaction that others undo, or of a read whose connections are lost."""
PATIENCE_SECONDS: Final = 10.0
"""For so long work waits for a connection, and a read for its result."""
_LONG_SECONDS: Final = 115.0
"""For so long a read waits that looks at all rows: about as long as the server lets a statement run."""
CLOSE_SECONDS: Final = 5.0
"""For so long a write may go on when the pool is closed; no time at all where the server is silent."""
_IN_THREAD_SECONDS: Final = 2.0
"""For so long a thread waits."""
_PAUSE_SECONDS: Final = 0.01
"""Before the first repetition, about; each pause is twice as long as the one before."""
_LONGEST_PAUSE_SECONDS: Final = 0.5
_LATE: Final = "the database does not answer in time"


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
            return await self._result(self._job(work), _LONG_SECONDS if is_long else None)
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
            raise overloaded(_LATE) from exc
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
            raise overloaded(_LATE) from exc

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
        latest_at = time.monotonic() + _END_SECONDS
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
                    raise overloaded(_LATE) from exc
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
            return tries < _TRIES
        if db is not None and not (is_unusable(error) or db.is_lost):
            return False
        if job.write is None:
            return db is not None and tries < _TRIES
        return time.monotonic() < job.latest_at and not self._is_closing


def _closed() -> OverloadedError:
    return OverloadedError("the store is being closed", slug="shutting-down")


# Whose turn it is


class Turns:
    """Turns of those who have only come, so that what was begun does not wait behind all of them.

        turns = Turns(8, traffic, lambda: 10.0)
        async with turns:
            ...

    Args:
        most: How many have a turn at once.
        traffic: Where those that wait are counted.
        patience_seconds: Says how long one waits at most.
    """

    def __init__(self, most: int, traffic: Traffic, patience_seconds: Callable[[], float]) -> None:
        self._free = asyncio.Semaphore(most)
        self._traffic = traffic
        self._patience_seconds = patience_seconds

    async def __aenter__(self) -> None:
        """Wait for a turn.

        Raises:
            OverloadedError: None came in time.
        """
        if not self._free.locked():  # a deadline would cost more than the turn
            await self._free.acquire()
            return
        self._traffic.asked()
        try:
            async with asyncio.timeout(self._patience_seconds()):
                await self._free.acquire()
        except TimeoutError as exc:
            raise overloaded("too many wait for the database") from exc
        finally:
            self._traffic.left()

    async def __aexit__(self, *_: object) -> None:
        """Give it to the next."""
        self._free.release()


# What one thread does for one who asked


_END_SECONDS: Final = 2.0
"""For so long a server may take to end a statement that it was told to end."""
_LOOK_SECONDS: Final = 0.01


class Job(Generic[_T]):
    """A function, within one transaction on one connection.

    job = Job(work, write, latest_at=time.monotonic() + 10)
    job.run(db, reads)          # in the thread
    job.end()                   # from another one: nobody wants it any more
    """

    def __init__(self, work: Callable[[Database], _T], write: Write[_T] | None, *, latest_at: float) -> None:
        self.work = work
        self.write = write
        """None: it only reads."""
        self.latest_at = latest_at
        """When it is not begun any more."""
        self.is_ended = False
        """Whether nobody wants it any more."""
        self._changing = threading.Lock()
        self._db: PostgresDatabase | None = None

    def run(self, db: PostgresDatabase, reads: Reads) -> _T:
        """Do it on a connection."""
        with self._changing:
            self._db = db
        try:
            if self.is_ended:
                raise overloaded(_LATE)
            if self.write is not None and self.write.is_open:
                found = self.write.settle(db, until=self.latest_at)
                if found is not None:
                    return found[0]
            return reads.run(db, self.work) if self.write is None else self.write.run(db)
        except psycopg.Error as exc:
            if is_unusable(exc):
                db.close()
            raise
        finally:
            with self._changing:  # a cancellation that is under way is for this job, not for the next one
                self._db = None

    def end(self) -> bool:
        """End the statement that it runs, from another thread; return whether that took a cut."""
        self.is_ended = True
        with self._changing:
            if self._db is not None:
                self._db.cancel()
        until = time.monotonic() + _END_SECONDS
        while self._db is not None and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return self.cut()

    def cut(self) -> bool:
        """Break the connection that it is on, from another thread; return whether there was one."""
        with self._changing:
            if self._db is not None:
                self._db.cut()
            return self._db is not None


# Transactions, for functions that run in a connection's thread


_BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Reads:
    """Runs functions that read, each in a transaction; a single statement is one by itself.

        Reads().run(db, work)                # of one moment: REPEATABLE READ READ ONLY

    Most functions run one statement, and BEGIN and COMMIT would be two more trips. So each function runs
    without them first; at its second statement it is begun again, in a transaction, and from then on so are
    those that the same place in the program makes.
    """

    def __init__(self) -> None:
        self._longer = set[object]()

    def run(self, db: PostgresDatabase, work: Callable[[Database], _T]) -> _T:
        """Return what a function finds; all of it is of one moment."""
        place = _place(work)
        if place not in self._longer:
            try:
                return work(_Single(db))
            except _SecondStatementError:
                self._longer.add(place)
        try:
            _ = db.ask(_BEGIN_READ)
            result = work(db)
            db.leave()
        except BaseException:
            db.rollback()
            raise
        return result


class _SecondStatementError(BaseException):
    """A function runs more than one statement. No function handles it."""


class _Single:
    """A connection for one statement."""

    def __init__(self, db: PostgresDatabase) -> None:
        self._db: PostgresDatabase | None = db

    def execute(self, sql: str, parameters: Any = (), /) -> Result:
        db, self._db = self._db, None
        if db is None or not sql.lstrip().startswith("SELECT"):  # only the transaction would refuse to write
            raise _SecondStatementError
        return db.execute(sql, parameters)

    def executemany(self, _sql: str, _parameters: Iterable[Any], /) -> Result:
        raise _SecondStatementError


def _place(work: Callable[..., object]) -> object:
    """Return a key for a function: functions that the same line makes have one key."""
    while isinstance(work, partial):
        work = work.func
    return getattr(work, "__code__", work)


# Not READ WRITE, which a standby refuses with another error than what is written later.
_BEGIN_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED{}; SELECT pg_current_xact_id()"
_LOOSELY: Final = "; SET LOCAL synchronous_commit = off"
_LOCK: Final = ", (SELECT id FROM feed WHERE id = {:d} FOR UPDATE)"
_STATUS: Final = "SELECT pg_xact_status(CAST(CAST(:number AS text) AS xid8))"
_ASK_AGAIN_SECONDS: Final = 0.2


class Write(Generic[_T]):
    """A transaction that writes, and how far it has come.

        Write(work, feed=1).run(db)          # begins with the lock on the feed's row

    Args:
        work: What it does.
        feed: The feed that it changes, whose row it locks first; None: none that is known.
        is_lasting: Whether COMMIT waits until what was changed is on the server's disk.
    """

    def __init__(self, work: Callable[[Database], _T], feed: int | None, *, is_lasting: bool = True) -> None:
        self.work = work
        self.is_ending = False
        """Whether COMMIT has been sent the last time it was run: if it has failed since, it may be done."""
        self._begin = _BEGIN_WRITE.format("" if is_lasting else _LOOSELY)
        if feed is not None:
            self._begin += _LOCK.format(feed)
        self._ending: tuple[str, str, _T] | None = None
        """From when COMMIT is sent: the history, its number there, and what the work returned."""

    def run(self, db: PostgresDatabase) -> _T:
        """Run it, all of it or nothing."""
        self._ending, self.is_ending = None, False
        try:
            db.prepare_to_write()
            number = db.ask(self._begin)
            result = self.work(db)
            self._ending, self.is_ending = (db.history, number, result), True
            db.commit()
        except BaseException:
            if not db.is_lost:  # the server has said so itself
                self._ending = None
            db.rollback()
            raise
        return result

    @property
    def is_open(self) -> bool:
        """Whether what became of it is not known: its connection was lost after COMMIT was sent."""
        return self._ending is not None

    def settle(self, db: PostgresDatabase, *, until: float) -> tuple[_T] | None:
        """Find out on another connection what has become of it, where that is open.

        Args:
            db: The other connection.
            until: When to give up, by the monotonic clock.

        Returns:
            What the work returned, where it was committed; None: it was undone.

        Raises:
            OverloadedError: That cannot be known: the server was replaced by a standby, does not know it any
                more, or has not come to an end with it.
        """
        assert self._ending is not None
        history, number, result = self._ending
        while history and db.history == history:
            status = fetch_value(db, _STATUS, {"number": number})
            if status == "committed":
                return (result,)
            if status == "aborted":
                self._ending, self.is_ending = None, False
                return None
            if status is None or time.monotonic() > until:
                break
            time.sleep(_ASK_AGAIN_SECONDS)  # the server has not found out yet that the connection is gone
        raise OverloadedError(
            "the connection to the database was lost, and what became of a COMMIT is not known"
        )


# The connections


_AGAIN_SECONDS: Final = 1.0
"""For so long nobody tries to connect again, where that has failed."""
_IN_DOUBT_SECONDS: Final = 3
"""For so long a server that has not answered lately is waited for, also at the end of the program."""
_SILENT: Final = "the database does not answer"


class Connections:
    """The connections of a pool: each is lent to one thread at a time, and made when it is needed.

        db = connections.borrow(until)
        connections.give_back(db)

    Where none can be made, whoever asks waits for one of those that are lent, as long as the server answers
    on them. Once it is silent nobody waits: one thread at a time tries to connect, and the others are told at
    once. Called from any thread; `close` them.

    Args:
        url: Of the database, as libpq takes it.
        size: How many, at the most.
        scripts: What one needs when it writes.
        traffic: Counts them.
    """

    def __init__(self, url: str, *, size: int, scripts: Scripts, traffic: Traffic) -> None:
        self._url = url
        self._size = size
        self._scripts = scripts
        self._traffic = traffic
        self._changed = threading.Condition()
        self._idle: list[PostgresDatabase] = []
        self._lent: set[PostgresDatabase] = set()
        self._making = 0
        self._failure = ""
        """Why the last one could not be made; empty where it could."""
        self._again_at = 0.0
        self._is_closed = False
        self.is_silent = False
        """Whether nothing has come from the server for longer than it may take."""

    def borrow(self, until: float) -> PostgresDatabase:
        """Return a connection for the caller alone; `give_back` it.

        Args:
            until: How long to wait for one that is lent, by the monotonic clock.

        Raises:
            psycopg.OperationalError: There is none to be had, and it is no use to wait.
            OverloadedError: None was given back in time.
        """
        while True:
            found = self._taken(until)
            if found is not None:
                return found
            try:
                return self._made()
            except psycopg.OperationalError:
                if not self._is_served:
                    raise

    def _taken(self, until: float) -> PostgresDatabase | None:
        """Return one that is idle, once there is one; None: one is to be made."""
        with self._changed:
            while not self._idle:
                if self._may_make():
                    self._making += 1
                    return None
                if not self._is_served:
                    raise psycopg.OperationalError(self._failure or _SILENT)
                now = time.monotonic()
                if now >= until:
                    raise overloaded("too many wait for the database")
                _ = self._changed.wait(min(until, max(self._again_at, now + _AGAIN_SECONDS)) - now)
            db = self._idle.pop()
            self._lent.add(db)
            return db

    @property
    def _is_served(self) -> bool:
        """Whether others have a connection on which the server answers, as far as is known."""
        return not (self._is_closed or self.is_silent) and bool(self._lent or self._idle)

    def _may_make(self) -> bool:
        if self._is_closed or len(self._lent) + self._making >= self._size:
            return False
        return not self._is_in_doubt or (not self._making and time.monotonic() >= self._again_at)

    @property
    def _is_in_doubt(self) -> bool:
        return bool(self._failure) or self.is_silent

    def _made(self) -> PostgresDatabase:
        try:
            seconds = _IN_DOUBT_SECONDS if self._is_in_doubt else CONNECT_SECONDS
            db = connect(self._url, self._scripts, within_seconds=seconds)
        except BaseException as exc:
            with self._changed:
                self._making -= 1
                self._failure = str(exc) or type(exc).__name__
                self._again_at = time.monotonic() + _AGAIN_SECONDS
                self.is_silent = self.is_silent or isinstance(exc, errors.ConnectionTimeout)
                self._changed.notify_all()
            self._traffic.disconnected(was_open=False)
            raise
        self._traffic.connected()
        with self._changed:
            self._making -= 1
            self._lent.add(db)
            self._is_there()
        if self._is_closed:
            self.give_back(db)
            raise psycopg.OperationalError("the connections are closed")
        return db

    def give_back(self, db: PostgresDatabase) -> None:
        """Take a connection back. Where it is lost, those that were idle meanwhile are not trusted either."""
        lost: list[PostgresDatabase] = []
        with self._changed:
            self._lent.discard(db)
            if db.is_lost or self._is_closed:
                lost = [db, *self._idle]
                self._idle.clear()
                self._changed.notify_all()
            else:
                self._idle.append(db)
                self.is_silent = False
                self._changed.notify()
        self._lose(lost)

    def distrust(self) -> None:
        """Take note that the server has been silent for too long; what is lent stays so."""
        with self._changed:
            self.is_silent = True
            lost, self._idle = self._idle, []
            self._changed.notify_all()
        self._lose(lost)

    def try_again(self) -> None:
        """Take note that the server has answered somebody."""
        with self._changed:
            self._again_at = 0.0
            self._is_there()

    def close(self) -> None:
        """Close those that are idle now, and the others when they are given back."""
        with self._changed:
            self._is_closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for each in idle:
            each.close()

    def _is_there(self) -> None:
        """Take note, under the lock, that the server answers."""
        self._failure, self.is_silent = "", False
        self._changed.notify_all()

    def _lose(self, lost: list[PostgresDatabase]) -> None:
        for each in lost:
            each.close()
            self._traffic.disconnected(was_open=True)
