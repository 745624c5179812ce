"""A PostgreSQL database as the store's engine, shared by replicas; psycopg_pool manages the connections."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, Final, Generic, Self, TypeVar
from weakref import WeakValueDictionary

import psycopg
import psycopg_pool

from wholefeed.errors import OverloadedError, StoreUnusableError, UnknownFeedError
from wholefeed.futures import in_daemon, retrieve_failure, to_the_end
from wholefeed.logs import get_logger
from wholefeed.store.base import (
    Database,
    StoreSizes,
    Traffic,
    fetch_value,
    json_ids,
)
from wholefeed.store.postgres_connection import (
    CONNECT_SECONDS,
    HISTORY,
    PARAMETERS,
    PostgresConnection,
    PostgresDatabase,
    configure,
    cut,
    end_after,
    is_repeated,
    is_stale,
    is_unusable,
    on_one_line,
    overload_error,
    row_maker,
    translate,
    translate_error,
)
from wholefeed.store.postgres_migrate import check_current
from wholefeed.store.store import Engine
from wholefeed.store.tables import feed_table as feeds_table
from wholefeed.store.tables.feed_table import Version
from wholefeed.store.tables.live import TEMPORARY_TABLES

_T = TypeVar("_T")
_log = get_logger()


@asynccontextmanager
async def open_engine(url: str, *, connections: int) -> AsyncIterator[PostgresEngine]:
    await in_daemon(lambda: check_current(url))
    async with AsyncExitStack() as stack:
        try:
            notices = await stack.enter_async_context(Notices.open(url))
        except psycopg.Error as exc:
            raise StoreUnusableError(str(translate_error(exc))) from exc
        engine = PostgresEngine(Pool(url, connections), Pool(url, 1), notices)
        stack.push_async_callback(to_the_end, engine.close)
        yield engine


# Longest wait for a turn, and for the result of a read.
PATIENCE_SECONDS: Final = 10.0
# Longest wait for a read after the server was recently silent or away.
SILENT_PATIENCE_SECONDS: Final = 1.0
# Longest wait for a read of all rows, close to the server's limit for a statement.
LONG_SECONDS: Final = 115.0
# Longest wait before a write's connection is cut; longer than the wait for a lock.
WRITE_SECONDS: Final = 30.0
# Longest time for a write to end after the store began to close.
CLOSE_SECONDS: Final = 5.0
# One of this many connections is not for writes.
_LEFT_TO_READERS: Final = 4


class PostgresEngine(Engine):
    is_shared = True

    def __init__(self, pool: Pool, spare: Pool, notices: Notices) -> None:
        super().__init__()
        self.measure, self.measure_feed = measure_sizes, measure_feed
        self.pool = pool
        self._spare = spare
        self._notices = notices
        self._writing = asyncio.Semaphore(pool.size - max(1, pool.size // _LEFT_TO_READERS))
        self._turns = WeakValueDictionary[int, asyncio.Lock]()
        self._tasks = set[asyncio.Task[Any]]()

    @property
    def traffic(self) -> Traffic:
        return replace(self.pool.read_traffic(), notices_lost=self._notices.lost_times)

    async def read(
        self,
        work: Callable[[Database], _T],
        *,
        is_first: bool = False,
        is_long: bool = False,
        is_single: bool = False,
    ) -> _T:
        seconds = LONG_SECONDS if is_long else PATIENCE_SECONDS
        if not self._notices.is_listening:
            seconds = min(seconds, SILENT_PATIENCE_SECONDS)
        try:
            return await self.pool.done(
                ReadTransaction(work, seconds, is_single=is_single), is_first=is_first
            )
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
        """Run a function that writes; cancelling the caller does not stop it."""
        return await self._begin(
            WriteTransaction(work, WRITE_SECONDS, feed=feed, is_lasting=is_lasting), feed, tell
        )

    async def write_single(self, work: Callable[[Database], _T]) -> _T:
        return await self._begin(SingleStatementWrite(work, WRITE_SECONDS, is_lasting=True), None, None)

    async def _begin(
        self, write: WriteTransaction[_T], feed: int | None, tell: Callable[[_T], None] | None
    ) -> _T:
        if self.pool.is_closing:
            raise _closing_error()
        task = asyncio.create_task(self._write_in_turn(write, feed, tell), name="store-write")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(retrieve_failure)
        return await asyncio.shield(task)

    async def write_at_once(self, work: Callable[[Database], _T]) -> _T:
        """Run a function on a reserved connection."""
        # Cancelling ends it, so that the next call does not wait behind a silent server.
        return await self._spare.done(WriteTransaction(work, PATIENCE_SECONDS, is_lasting=False))

    def write_in_thread(self, work: Callable[[Database], _T]) -> _T:
        return self._spare.done_here(WriteTransaction(work, _IN_THREAD_SECONDS, is_lasting=False))

    async def versions(self, feeds: Collection[int]) -> Mapping[int, Version]:
        """Return the current versions of feeds, on a reserved connection while there is one."""
        try:
            rows = await self._notices.ask(feeds_table.VERSIONS, {"feeds": json_ids(feeds)})
        except (psycopg.Error, OverloadedError) as exc:
            if isinstance(exc, psycopg.Error) and exc.sqlstate is not None:  # it would fail there, too
                raise translate_error(exc) from exc
            return await self.read(lambda db: feeds_table.read_versions(db, feeds), is_single=True)
        return feeds_table.versions_in(rows)

    def listen(self, kind: str, callback: Callable[[str], None]) -> None:
        self._notices.listen(kind, callback)

    def on_lost(self, callback: Callable[[], None]) -> None:
        self._notices.on_lost(callback)

    def on_replaced(self, callback: Callable[[], None]) -> None:
        self._notices.on_replaced(callback)

    async def close(self) -> None:
        self.pool.is_closing = self._spare.is_closing = True
        if self._tasks:
            seconds = CLOSE_SECONDS if self._notices.is_listening else 0.0
            _, unfinished = await asyncio.wait(self._tasks, timeout=seconds)
            if unfinished:
                _log.warning("store.unfinished", writes=len(unfinished))
        await asyncio.gather(self.pool.close(), self._spare.close())
        if self._tasks:  # the server undoes cut transactions, or has committed them
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)

    async def _write_in_turn(
        self, write: WriteTransaction[_T], feed: int | None, tell: Callable[[_T], None] | None
    ) -> _T:
        # Writes of one feed wait here: in the database each would occupy a connection.
        async with nullcontext() if feed is None else self._turns.setdefault(feed, asyncio.Lock()):
            try:
                self.condition.require_sound()
                async with self._writing:
                    result = await self.pool.done(write)
            except Exception as exc:
                # Otherwise the feed is unchanged, and memory can still answer while there is no database.
                may_be_another = write.is_ending or isinstance(exc, UnknownFeedError)
                if feed is not None and may_be_another:
                    self.on_change(feed)
                self.condition.judge(exc)
                raise
            self.condition.note_success()
            if tell is not None:
                tell(result)
            elif feed is not None:
                self.on_change(feed)
            return result


def _closing_error() -> OverloadedError:
    return OverloadedError("the store is being closed", slug="shutting-down")


# The queue for threads, and their work

# Runs of one transaction that others undo, or of a read that loses its connections.
_TRIES: Final = 6
# First pause before a repetition, roughly; each one doubles.
_PAUSE_SECONDS: Final = 0.01
_LONGEST_PAUSE_SECONDS: Final = 0.5
_CONNECT_AGAIN_SECONDS: Final = 1.0
# Longest wait for the pool's own threads, which may be connecting to a silent server.
_POOL_CLOSE_SECONDS: Final = 1.0
_IN_THREAD_SECONDS: Final = 2.0


class Pool:
    """A pool of connections with as many threads, which run whole functions; close it with `close`."""

    # A job may run twice: after a concurrent transaction made it fail, or after its connection broke before
    # COMMIT. A server may fall silent, so a job's connection is cut when its time is over.

    def __init__(self, url: str, size: int) -> None:
        self.size = size
        self.traffic = Traffic()
        self.is_closing = False
        self._connections = psycopg_pool.ConnectionPool(
            url,
            connection_class=PostgresConnection,
            kwargs=PARAMETERS,
            configure=configure,
            min_size=0,
            max_size=size,
            open=True,
            reconnect_timeout=_CONNECT_AGAIN_SECONDS,
        )
        self._threads = ThreadPoolExecutor(size, "store")
        self._firsts = asyncio.Semaphore(size)
        self._turns = asyncio.Semaphore(size)
        self._jobs = set[PostgresTransaction[Any]]()

    async def done(self, job: PostgresTransaction[_T], *, is_first: bool = False) -> _T:
        """Run a job in a thread; new requests (`is_first`) let those in progress go first.

        A read ends when its caller is cancelled or its seconds are over. For a write the seconds limit each
        run.
        """
        if not is_first:
            return await self._done(job)
        await self._turn(self._firsts)
        try:
            return await self._done(job)
        finally:
            self._firsts.release()

    def done_here(self, job: PostgresTransaction[_T]) -> _T:
        with end_after(job.seconds, job.cut):
            return self._run_with_retries(job)

    def read_traffic(self) -> Traffic:
        self.traffic.busy = len(self._jobs)
        self.traffic.connections = self._connections.get_stats()["pool_size"]
        return self.traffic

    async def close(self) -> None:
        self.is_closing = True
        for job in tuple(self._jobs):
            job.cut()
        self._threads.shutdown(wait=False)
        await in_daemon(lambda: self._connections.close(_POOL_CLOSE_SECONDS))

    async def _turn(self, turns: asyncio.Semaphore) -> None:
        if not turns.locked():  # a deadline would cost more than the turn
            await turns.acquire()
            return
        self.traffic.waiting += 1
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await turns.acquire()
        except TimeoutError as exc:
            raise overload_error("too many requests wait for the database") from exc
        finally:
            self.traffic.waiting -= 1

    async def _done(self, job: PostgresTransaction[_T]) -> _T:
        await self._turn(self._turns)
        if self.is_closing:
            self._turns.release()
            raise _closing_error()
        self._jobs.add(job)
        job.until = time.monotonic() + job.seconds
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._run_with_retries, job)
        running.add_done_callback(lambda _: self._finish_job(job))
        running.add_done_callback(retrieve_failure)
        try:
            async with asyncio.timeout(job.seconds):
                return await asyncio.shield(running)
        except TimeoutError as exc:
            job.cut()
            if not job.is_write:
                raise overload_error("the database does not answer in time") from exc
            return await running  # another connection finds out the outcome
        except asyncio.CancelledError:
            job.cut()
            raise

    def _finish_job(self, job: PostgresTransaction[Any]) -> None:
        self._jobs.discard(job)
        self.traffic.repeated += job.repeated
        self.traffic.lost += job.lost
        self._turns.release()

    # In a thread

    def _run_with_retries(self, job: PostgresTransaction[_T]) -> _T:
        while True:
            try:
                return self._run_once(job)
            except psycopg.Error as exc:
                if self.is_closing:
                    raise _closing_error() from exc
                if not self._is_again(job, exc):
                    raise translate_error(exc) from exc
            job.repeated += 1
            pause = min(_PAUSE_SECONDS * 2**job.repeated, _LONGEST_PAUSE_SECONDS)
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that two do not meet again

    def _run_once(self, job: PostgresTransaction[_T]) -> _T:
        raw = self._connection(time.monotonic() + PATIENCE_SECONDS if job.is_write else job.until)
        try:
            return job.run(PostgresDatabase(raw))
        except psycopg.Error as exc:
            if is_unusable(exc):
                raw.close()
            raise
        finally:
            job.is_lost = raw.closed
            self._connections.putconn(raw)

    def _connection(self, until: float) -> PostgresConnection:
        while True:  # waiting opens no new connection; each new call does
            left_seconds = until - time.monotonic()
            try:
                return self._connections.getconn(min(_CONNECT_AGAIN_SECONDS, max(0.001, left_seconds)))
            except psycopg_pool.PoolClosed as exc:
                raise _closing_error() from exc
            except psycopg_pool.PoolTimeout as exc:
                if self.is_closing or left_seconds <= _CONNECT_AGAIN_SECONDS:
                    raise overload_error("the database cannot be reached") from exc

    def _is_again(self, job: PostgresTransaction[Any], error: psycopg.Error) -> bool:
        """Return whether a failed job may succeed now."""
        # A write waits for a restarted server, since giving up would end a walk. A read fails soon, since
        # memory may have an answer.
        has_tries = job.repeated + 1 < _TRIES
        if is_repeated(error) or is_stale(error):
            return has_tries
        if not job.is_lost:
            return False
        job.lost += 1
        self._connections.check()  # idle connections may be broken, too
        if job.is_write:
            return True
        job.until = min(job.until, time.monotonic() + SILENT_PATIENCE_SECONDS)
        return has_tries and not job.is_cut


class PostgresTransaction(Generic[_T]):
    """A transaction on a connection that another thread may cut."""

    is_write = False

    def __init__(self, work: Callable[[Database], _T], seconds: float) -> None:
        self.work = work
        self.seconds = seconds
        self.until = time.monotonic() + seconds
        self.is_cut = False
        self.is_lost = False
        self.repeated = self.lost = 0
        self._changing = threading.Lock()
        self._raw: PostgresConnection | None = None

    def run(self, db: PostgresDatabase) -> _T:
        with self._changing:
            self._raw = db.raw
        try:
            return self.transact(db)
        except BaseException:
            _roll_back(db.raw)
            raise
        finally:
            with self._changing:  # a concurrent cut must not hit the next job
                self._raw = None

    def cut(self) -> None:
        self.is_cut = True
        with self._changing:
            if self._raw is not None:
                cut(self._raw)

    def transact(self, db: PostgresDatabase) -> _T:
        raise NotImplementedError


def _roll_back(raw: PostgresConnection) -> None:
    try:
        raw.rollback()
    except psycopg.Error:
        raw.close()


_BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class ReadTransaction(PostgresTransaction[_T]):
    def __init__(self, work: Callable[[Database], _T], seconds: float, *, is_single: bool) -> None:
        super().__init__(work, seconds)
        self._is_single = is_single

    def transact(self, db: PostgresDatabase) -> _T:
        if self._is_single:
            return self.work(_SingleStatement(db, "SELECT"))
        with db.raw.pipeline_statements():
            db.raw.execute(_BEGIN_READ)
            result = self.work(db)
            db.raw.execute("COMMIT", prepare=False)
        return result


class _SingleStatement:
    def __init__(self, db: PostgresDatabase, *kinds: str) -> None:
        self._db: PostgresDatabase | None = db
        self._kinds = kinds

    def execute(self, sql: str, parameters: Any = (), /) -> psycopg.Cursor[Any]:
        db, self._db = self._db, None
        assert db is not None, f"said to be a single one, and a second statement came: {sql}"
        assert sql.lstrip().startswith(self._kinds), f"expected one of {self._kinds} here, got: {sql}"
        return db.execute(sql, parameters)

    def executemany(self, sql: str, _parameters: Any, /) -> None:
        raise AssertionError(f"expected a single statement, got: {sql}")


# Without READ WRITE, so that a standby reports the same error as for a later write.
_BEGIN_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_NUMBER: Final = "SELECT CAST(pg_current_xact_id() AS text)"
_LOOSELY: Final = ", set_config('synchronous_commit', 'off', true)"
_LOCK: Final = ", (SELECT id FROM feed WHERE id = %(feed)s FOR UPDATE)"
_STATUS: Final = "SELECT pg_xact_status(CAST(CAST(:number AS text) AS xid8))"
_ASK_AGAIN_SECONDS: Final = 0.2
# Deleted rows stay in temporary tables, since vacuum skips them.
_EMPTY_TEMPORARY_TABLES: Final = """
    TRUNCATE concerned, changed, contested, decided;
    ANALYZE concerned, changed, contested, decided
"""
# Emptying takes ten times as long as a COMMIT.
_WRITES_BETWEEN: Final = 64


class WriteTransaction(PostgresTransaction[_T]):
    """A transaction that writes, and never takes effect twice; it first locks the row of `feed`.

    With `is_lasting`, COMMIT waits for the server's disk.
    """

    is_write = True

    def __init__(
        self, work: Callable[[Database], _T], seconds: float, *, feed: int | None = None, is_lasting: bool
    ) -> None:
        super().__init__(work, seconds)
        # Whether the last run sent COMMIT. A later failure leaves the outcome open.
        self.is_ending = False
        self._feed = {"feed": feed}
        self._first = _NUMBER + ("" if is_lasting else _LOOSELY) + ("" if feed is None else _LOCK)
        # After COMMIT was sent: the server's history, the transaction's number, the work's result.
        self._ending: tuple[str, str, _T] | None = None

    def transact(self, db: PostgresDatabase) -> _T:
        if self._ending is not None:  # it may have been committed on another connection
            found = self._find_commit_outcome(db)
            if found is not None:
                return found[0]
        self.is_ending = False
        try:
            _prepare_to_write(db)
            with db.raw.pipeline_statements():
                db.raw.execute(_BEGIN_WRITE)
                first = db.raw.execute(self._first, self._feed, binary=True)
                result = self.work(db)
                number = first.fetchall()[0][0]
                db.raw.wait_for_results()  # an error before COMMIT was sent means that nothing is done
                self._ending, self.is_ending = (db.raw.history, number, result), True
                ended = db.raw.execute("COMMIT", prepare=False)
            if ended.statusmessage != "COMMIT":  # a statement failed, and the work went on
                raise psycopg.errors.InFailedSqlTransaction("expected a transaction that can be committed")
        except BaseException:
            if not db.raw.closed:  # the server itself reported the failure
                self._ending = None
            raise
        return result

    def _find_commit_outcome(self, db: PostgresDatabase) -> tuple[_T] | None:
        """Return the result of the work after the connection broke during COMMIT. None: it was undone.

        Raises:
            OverloadedError: Unknown: another server, a forgotten transaction, or one not ended yet.
        """
        assert self._ending is not None
        history, number, result = self._ending
        until = time.monotonic() + PATIENCE_SECONDS
        while history and db.raw.history == history:
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
            "the connection to the database was lost, so it is not known whether the last COMMIT succeeded"
        )


class SingleStatementWrite(WriteTransaction[_T]):
    """A single statement that may run twice, and can itself turn off the wait for the disk."""

    def transact(self, db: PostgresDatabase) -> _T:
        return self.work(_SingleStatement(db, "SELECT", "WITH"))


def _prepare_to_write(db: PostgresDatabase) -> None:
    """Create or empty the temporary tables. Not earlier, since a read-only server refuses."""
    if not db.raw.writes:
        db.executescript(TEMPORARY_TABLES)
    elif db.raw.writes % _WRITES_BETWEEN == 0:
        db.executescript(_EMPTY_TEMPORARY_TABLES)
    db.raw.writes += 1


# Notices between replicas

CHANNEL: Final = "wholefeed"
BEAT_SECONDS: Final = 2.0
# Silence after which the server is given up.
SILENT_SECONDS: Final = 4.0
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_SEARCH_PAUSE_SECONDS: Final = 2.0
_LISTEN_SECONDS: Final = 60.0
_SETTINGS: Final[dict[str, Any]] = {**PARAMETERS, "application_name": "wholefeed notices"}


class Notices:
    """PostgreSQL's NOTIFY, and small queries, on their own connections; one object a replica."""

    # A notice, such as `drop 12 a`, calls the listeners of its first word. It has at most 7,999 bytes, and
    # arrives in the order of commits, also at its sender, perhaps after the change can be read: certainty
    # takes a query. Listeners ignore unknown texts, since others may send some (docs/faults.md row 100).

    def __init__(self, url: str) -> None:
        self._url = url
        self.lost_times = 0
        self._listeners: defaultdict[str, list[Callable[[str], None]]] = defaultdict(list)
        self._lost: list[Callable[[], None]] = []
        self._replaced: list[Callable[[], None]] = []
        # Empty if unknown.
        self._identity = ""
        self._links: tuple[_Link, _Link] | None = None
        """The listening and the querying connection. None: the server is not there."""

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str) -> AsyncIterator[Self]:
        """Listen until exit. Raise `psycopg.Error` if the database is not there."""
        notices = cls(url)
        await notices._connect()
        task = asyncio.create_task(notices._run(), name="store-notices")
        try:
            yield notices
        finally:
            task.cancel()
            await asyncio.wait({task})

    @property
    def is_listening(self) -> bool:
        return self._links is not None

    def listen(self, kind: str, callback: Callable[[str], None]) -> None:
        self._listeners[kind].append(callback)

    def on_lost(self, callback: Callable[[], None]) -> None:
        self._lost.append(callback)

    def on_replaced(self, callback: Callable[[], None]) -> None:
        self._replaced.append(callback)

    async def ask(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Any]:
        """Return the rows of one small statement.

        Raises:
            OverloadedError: The database cannot be asked now.
            psycopg.Error: The statement failed.
        """
        if self._links is None:
            raise OverloadedError("the connection to the database is lost")
        cursor = await self._links[1].execute(translate(sql), parameters, prepare=True, binary=True)
        return await cursor.fetchall()

    async def _run(self) -> None:
        while True:
            await self._attend()
            before = self._identity
            await self._find_again()
            if not before or before != self._identity:
                for each in self._replaced:
                    each()
            for each in self._lost:
                each()
            _log.info("notices.resumed")

    async def _attend(self) -> None:
        """Return when a connection is lost, or the server was silent too long."""
        assert self._links is not None, "they are there"
        links = self._links
        taking = _start_link_task(self._take_notices(links[0]))
        tasks, is_silent = {taking}, False
        try:
            while not is_silent and not (await asyncio.wait({taking}, timeout=BEAT_SECONDS))[0]:
                asking = _start_link_task(self.ask("SELECT 1"))
                tasks = {taking, asking}
                # Not a timeout: a stopped process would resume after it, although the server has replied.
                is_silent = asking not in (await asyncio.wait({asking}, timeout=SILENT_SECONDS))[0]
                if not is_silent and asking.exception() is not None:
                    break
            failures = [
                exc for each in tasks if each.done() and isinstance(exc := each.exception(), Exception)
            ]
        finally:
            self._links = None
            await to_the_end(lambda: _disconnect(links, tasks))
        reasons = ["the server is silent"] if is_silent else map(on_one_line, failures)
        self.lost_times += 1
        _log.warning("notices.lost", reason="; ".join(reasons))

    async def _take_notices(self, link: _Link) -> None:
        while True:
            async for notice in link.notifies(timeout=_LISTEN_SECONDS):
                kind, _, words = notice.payload.partition(" ")
                for each in self._listeners.get(kind, ()):  # indexing would store unknown kinds
                    each(words)

    async def _find_again(self) -> None:
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            with suppress(psycopg.Error, OSError, TimeoutError):
                return await self._connect()
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_SEARCH_PAUSE_SECONDS)

    async def _connect(self) -> None:
        links = list[_Link]()
        try:
            async with asyncio.timeout(2 * CONNECT_SECONDS):
                for _ in range(2):
                    links.append(await psycopg.AsyncConnection.connect(self._url, **_SETTINGS))
                    links[-1].row_factory = row_maker
            asking = asyncio.create_task(self._set_up(*links))
            if not (await asyncio.wait({asking}, timeout=SILENT_SECONDS))[0]:
                raise psycopg.OperationalError("the server is silent")
            self._identity = asking.result()
        except BaseException:
            await to_the_end(lambda: _disconnect(links))
            raise
        self._links = links[0], links[1]

    async def _set_up(self, listening: _Link, asking: _Link) -> str:
        # A statement that waits for a lock would delay the beat, and the server would seem silent.
        await asking.execute("SET statement_timeout = '2s'")
        await listening.execute(f"LISTEN {CHANNEL}")
        try:
            row = await (await asking.execute(_IDENTITY)).fetchone()
        except psycopg.Error as exc:
            if exc.sqlstate is None:
                raise
            return ""  # a server similar to PostgreSQL may not know it
        return str(row[0] or "") if row is not None else ""


_Link = psycopg.AsyncConnection[Any]


def _start_link_task(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    task = asyncio.create_task(work, name="store-notices-link")
    task.add_done_callback(retrieve_failure)
    return task


async def _disconnect(links: Collection[_Link], tasks: Collection[asyncio.Task[Any]] = ()) -> None:
    """Close connections with pending calls.

    Cut them first, since cancelling makes psycopg wait for the server.
    """
    for link in links:
        cut(link)
    if tasks:
        await asyncio.wait(tasks, timeout=SILENT_SECONDS)
    for task in tasks:
        task.cancel()
    for link in links:
        await link.close()


_DATABASE: Final = "SELECT oid FROM pg_database WHERE datname = current_database()"
_IDENTITY: Final = f"SELECT ({HISTORY}) || '/' || ({_DATABASE})"
"""Changes with the server or the database, after which numbers mean something else."""


# Size of the store


_FEED_BYTES: Final = 2048
_DOCUMENT_BYTES: Final = 1024
# Estimated bytes of a row with its indexes, as the two above.
_ENTRY_BYTES: Final = 256
_USED_BYTES: Final = f"""
    SELECT (SELECT coalesce(sum(octet_length(coded)), 0) FROM body)
        + (SELECT coalesce(sum(deflated_bytes), 0) FROM segment WHERE retired_at IS NULL)
        + (SELECT coalesce(sum({_DOCUMENT_BYTES} + {_ENTRY_BYTES} * entries), 0) FROM document)
        + (SELECT {_FEED_BYTES} * count(*) FROM feed)
"""  # noqa: S608 - numbers
_FILE_BYTES: Final = "SELECT pg_database_size(current_database())"


def measure_sizes(db: Database) -> StoreSizes:
    """Return the size of the stored rows, without segments that await deletion, and of the files."""
    # Files never shrink, so rows count: large values by length, which PostgreSQL knows without reading them,
    # others by estimate. That reads every row, so callers ask seldom and continue with `measure_feed`.
    return StoreSizes(
        used_bytes=int(fetch_value(db, _USED_BYTES)),
        file_bytes=int(fetch_value(db, _FILE_BYTES)),
        free_bytes=None,  # the volume is the server's
    )


_FEEDS_BYTES: Final = f"""
    SELECT {_FEED_BYTES}
        + coalesce(sum({_DOCUMENT_BYTES} + {_ENTRY_BYTES} * d.entries + octet_length(b.coded)), 0)
        + (SELECT coalesce(sum(deflated_bytes), 0) FROM segment WHERE feed = :feed AND retired_at IS NULL)
    FROM document AS d JOIN body AS b ON b.document = d.id WHERE d.feed = :feed
"""  # noqa: S608 - numbers


def measure_feed(db: Database, feed: int) -> int:
    return int(fetch_value(db, _FEEDS_BYTES, {"feed": feed}))
