"""A PostgreSQL database as the store's engine, shared with other replicas.

    async with open_engine("postgresql://…", connections=8) as engine:
        await engine.read(lambda db: ...)
        engine.listen("drop", on_drop)          # told "12 a" when a replica sends "drop 12 a"

Transactions go through `wholefeed.store.postgres_pool`; what replicas tell each other, and small queries, go
over one connection on the event loop (`Notices`, `Link`).
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final, NamedTuple, Self, TypeVar
from weakref import WeakValueDictionary

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from wholefeed.errors import OverloadedError, StoreUnusableError, UnknownFeedError
from wholefeed.futures import in_daemon, retrieve_failure, to_the_end
from wholefeed.logs import get_logger
from wholefeed.store.base import (
    EMPTY_TEMPORARY_TABLES,
    TEMPORARY_TABLES,
    Condition,
    Database,
    Traffic,
    fetch_value,
)
from wholefeed.store.engine import Sizes
from wholefeed.store.postgres_connection import CONNECT_SECONDS, HISTORY, Scripts, on_one_line, translated
from wholefeed.store.postgres_migrate import check_current
from wholefeed.store.postgres_pool import CLOSE_SECONDS, Pool, Write
from wholefeed.store.tables import feeds as feeds_table
from wholefeed.store.tables.feeds import Version

_T = TypeVar("_T")
_log = get_logger()
_SCRIPTS: Final = Scripts(TEMPORARY_TABLES, EMPTY_TEMPORARY_TABLES)


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


_LEFT_TO_READERS: Final = 4
"""One connection in so many."""
_LOOK_SECONDS: Final = 0.1
"""Between two looks, at the end, whether the server has fallen silent."""


class PostgresEngine:
    """As `wholefeed.store.engine.Engine` says; `open_engine` makes it.

    Writes of one feed wait for each other here and not in the database, where each would hold a connection;
    and some connections are left to those who read.
    """

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
        self.measure = measure_sizes
        self.measure_feed = measure_feed
        self.on_change: Callable[[int], None] = lambda _: None
        self._writing = asyncio.Semaphore(pool.size - max(1, pool.size // _LEFT_TO_READERS))
        self._turns = WeakValueDictionary[int, asyncio.Lock]()
        self._tasks = set[asyncio.Task[Any]]()
        self._is_closing = False

    async def read(
        self, work: Callable[[Database], _T], *, is_first: bool = False, is_long: bool = False
    ) -> _T:
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
        """As `write_at_once`, in a thread that waits for it."""
        return self._spare.run_in_thread(work)

    async def versions(self, feeds: Collection[int]) -> Mapping[int, Version]:
        """Return what feeds are now: by the connection that listens, while there is one."""
        try:
            return feeds_table.parsed_versions(
                await self._notices.query(feeds_table.VERSIONS_OF_FEEDS, feeds_table.version_numbers(feeds))
            )
        except (psycopg.Error, OverloadedError) as exc:
            if isinstance(exc, psycopg.Error) and exc.sqlstate is not None:  # it would fail there, too
                raise translated(exc) from exc
            return await self.read(lambda db: feeds_table.read_versions(db, feeds))

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


# What replicas tell each other


CHANNEL: Final = "wholefeed"
BEAT_SECONDS: Final = 2.0
"""Between two looks whether the server is there."""
SILENT_SECONDS: Final = 4.0
"""A server that has not answered for so long is given up."""
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 2.0
_BEAT: Final = "SELECT 1"
# A statement that waits for a lock would keep the beat waiting: the server would seem to be silent.
_LISTENING: Final = ("SET statement_timeout = '2s'", f"LISTEN {CHANNEL}")


class Notices:
    """PostgreSQL's NOTIFY, on one connection that listens; made by `open`, one a replica.

        async with Notices.open(url) as notices:
            notices.listen("drop", on_drop)                  # told "12 a" when a replica sends "drop 12 a"
            notices.on_lost(look_at_everything)              # notices may have been missed; they come again
            notices.on_replaced(forget_everything)           # from a database that may be another one

    One is sent in the transaction that it is about, of at most 7,999 bytes:

        SELECT pg_notify('wholefeed', 'drop 12 a')

    It comes when that has been committed, in the order of the commits, to all and to its sender too. It may
    come after the change can be read: PostgreSQL lets others see a commit before it signals those that
    listen, and a query on this connection that ends in between has nothing to deliver (seen 17 times in 6,400
    looks at a server process that was halted again and again). So notices make that a replica soon knows;
    what must be sure is read from the rows, for which there is `query`.

    Anybody who may connect to the database may send some, without any right: what a listener can make no
    sense of it passes over, and says nothing (docs/faults.md row 100).

    A server that does not answer for some seconds is given up and looked for again.

    Args:
        url: Of the database.
        traffic: Counts how often the connection broke off; None: nobody wants to know.
    """

    def __init__(self, url: str, traffic: Traffic | None = None) -> None:
        self._url = url
        self._traffic = traffic or Traffic()
        self._listeners: defaultdict[str, list[Callable[[str], None]]] = defaultdict(list)
        self._lost: list[Callable[[], None]] = []
        self._replaced: list[Callable[[], None]] = []
        self._identity = ""
        """Of the database; empty where that cannot be known."""
        self.on_silent: Callable[[], None] = lambda: None
        """Called when the server has not answered for so long that it is given up."""
        self._link: Link | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, traffic: Traffic | None = None) -> AsyncIterator[Self]:
        """Listen until exit; args as for the class.

        Raises:
            psycopg.Error: The database cannot be asked now.
        """
        notices = cls(url, traffic)
        link = await notices._opened()
        task = asyncio.create_task(notices._run(link), name="store-notices")
        try:
            yield notices
        finally:
            task.cancel()
            await asyncio.wait({task})

    @property
    def is_listening(self) -> bool:
        """Whether the connection is there, as far as is known."""
        return self._link is not None and not self._link.ended.done()

    def listen(self, kind: str, callback: Callable[[str], None]) -> None:
        """Have a function told what is said in each notice of a kind, on the event loop."""
        self._listeners[kind].append(callback)

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Have a function called when it listens again after a time in which notices may have been missed."""
        self._lost.append(callback)

    def on_replaced(self, callback: Callable[[], None]) -> None:
        """Have a function called, before those of `on_lost`, where the database may be another one now."""
        self._replaced.append(callback)

    async def query(self, sql: str, *parameters: bytes | None) -> list[Values]:
        """Return the rows of one small statement, whose parameters are `$1` and so on.

        Raises:
            OverloadedError: The database cannot be asked now.
            psycopg.Error: The statement failed.
        """
        if self._link is None or self._link.ended.done():
            raise OverloadedError("the connection to the database is lost")
        return await self._link.query(sql, *parameters)

    async def _run(self, link: Link) -> None:
        while True:
            try:
                await self._attend(link)
            finally:
                link.close()
            before = self._identity
            link = await self._found_again()
            if not before or before != self._identity:
                for each in self._replaced:
                    each()
            for each in self._lost:
                each()
            _log.info("notices.resumed")

    async def _attend(self, link: Link) -> None:
        """Return when the connection is lost, or the server has been silent for too long."""
        try:
            while True:
                await asyncio.wait({link.ended}, timeout=BEAT_SECONDS)
                if link.ended.done():
                    return link.ended.result()
                asking = asyncio.create_task(link.query(_BEAT))
                asking.add_done_callback(retrieve_failure)
                # Not a timeout: a process that was stopped would find it over, and the answer there.
                if asking not in (await asyncio.wait({asking}, timeout=SILENT_SECONDS))[0]:
                    raise TimeoutError
                asking.result()
        except (psycopg.Error, TimeoutError) as exc:
            self._traffic.notices_lost += 1
            _log.warning("notices.lost", reason=on_one_line(exc))
            if isinstance(exc, TimeoutError):
                self.on_silent()

    async def _found_again(self) -> Link:
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            with suppress(psycopg.Error, OSError, TimeoutError):
                async with asyncio.timeout(2 * CONNECT_SECONDS):
                    return await self._opened()
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)

    async def _opened(self) -> Link:
        link = await Link.open(self._url, self._take, scripts=_LISTENING)
        try:
            self._identity = await _identity(link)
        except BaseException:
            link.close()
            raise
        self._link = link
        return link

    def _take(self, payload: str) -> None:
        kind, _, words = payload.partition(" ")
        for each in self._listeners.get(kind, ()):  # not to keep each kind that anybody thinks of
            each(words)


_DATABASE: Final = "SELECT oid FROM pg_database WHERE datname = current_database()"
_IDENTITY: Final = f"SELECT ({HISTORY}) || '/' || ({_DATABASE})"
"""Changes when numbers mean something else: when the server or the database is another one."""


async def _identity(link: Link) -> str:
    try:
        [(identity,)] = await link.query(_IDENTITY)
    except psycopg.Error as exc:
        if exc.sqlstate is None:
            raise
        return ""  # a server that is like PostgreSQL may not tell
    return "" if identity is None else identity.decode()


# One connection on the event loop


_LINK_SETTINGS: Final[dict[str, Any]] = {
    "application_name": "wholefeed notices",
    "connect_timeout": CONNECT_SECONDS,
    "keepalives": 1,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}
_FINE: Final = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY})
Values = tuple[bytes | None, ...]
"""A row of a result: each value as PostgreSQL writes it as text."""


class Link:
    """What the server sends unasked, and small queries in between; `close` it.

        link = await Link.open(url, on_notice, scripts=["LISTEN wholefeed"])
        [row] = await link.query("SELECT 1")
        await link.ended            # the connection is lost, or was closed
        link.close()

    psycopg opens it; from then on libpq is driven here. Through psycopg's own waiting a query of one row
    takes 250 us of the processor's time, here 80. A statement is prepared when it comes for the first time. A
    query that is cancelled does not disturb the ones behind it.

    Args:
        db: An open connection, of which nothing but this makes use.
        on_notice: Told the payload of each notice, before the query behind which it came is answered.
    """

    def __init__(self, db: psycopg.AsyncConnection[Any], on_notice: Callable[[str], None]) -> None:
        self._pg = db.pgconn
        self._db = db
        self._on_notice = on_notice
        self._loop = asyncio.get_running_loop()
        self._queries: deque[_Query] = deque()
        """The first one is under way."""
        self._result: PGresult | None = None
        self._prepared: dict[bytes, bytes] = {}
        """Names of statements."""
        self._is_preparing = False
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when it can be used no more; its error says why, where nobody has closed it."""
        self.ended.add_done_callback(retrieve_failure)
        self._socket = self._pg.socket
        self._loop.add_reader(self._socket, self._guarded, self._receive)

    @classmethod
    async def open(cls, url: str, on_notice: Callable[[str], None], *, scripts: Sequence[str] = ()) -> Link:
        """Connect, and run statements.

        Raises:
            psycopg.Error: There is no such connection to be had.
        """
        link = cls(await psycopg.AsyncConnection.connect(url, autocommit=True, **_LINK_SETTINGS), on_notice)
        try:
            for each in scripts:  # not by psycopg, which waits for ten seconds where it is cancelled
                await link.query(each)
        except BaseException:
            link.close()
            raise
        return link

    async def query(self, sql: str, *parameters: bytes | None) -> list[Values]:
        """Return the rows of one statement, whose parameters are `$1` and so on.

        Raises:
            psycopg.Error: It failed, or the connection is lost.
        """
        if self.ended.done():
            raise psycopg.OperationalError("the connection is closed")
        done: asyncio.Future[list[Values]] = self._loop.create_future()
        done.add_done_callback(retrieve_failure)
        self._queries.append(_Query(sql.encode(), parameters, done))
        if len(self._queries) == 1:
            self._guarded(self._send)
        return await done

    def close(self) -> None:
        """Close the connection; what is asked of it fails."""
        self._end(None)

    def _guarded(self, step: Callable[[], None]) -> None:
        """Take a step; a connection that is lost in it has ended."""
        if self.ended.done():
            return
        try:
            step()
        except psycopg.Error as exc:
            self._end(exc)

    def _send(self) -> None:
        query = self._queries[0]
        self._result = None
        name = self._prepared.get(query.sql)
        if name is None:
            self._is_preparing = True
            self._pg.send_prepare(b"w%d" % len(self._prepared), query.sql)
        else:
            self._pg.send_query_prepared(name, query.parameters)
        self._flush()

    def _flush(self) -> None:
        if self._pg.flush():
            self._loop.add_writer(self._socket, self._guarded, self._flush)
        else:
            self._loop.remove_writer(self._socket)

    def _receive(self) -> None:
        self._pg.consume_input()
        while self._queries and not self._pg.is_busy():
            result = self._pg.get_result()
            if result is not None:
                self._result = result
                continue
            self._notices()
            if not self._has_prepared():
                self._answer()
            if self._queries:
                self._send()
        self._notices()
        if self._pg.transaction_status == TransactionStatus.UNKNOWN:
            raise psycopg.OperationalError("the connection is lost")

    def _has_prepared(self) -> bool:
        """Whether it was a preparation that has ended, so that the query itself is next."""
        is_so = self._is_preparing and self._result is not None and self._result.status in _FINE
        self._is_preparing = False
        if is_so:
            self._prepared[self._queries[0].sql] = b"w%d" % len(self._prepared)
        return is_so

    def _notices(self) -> None:
        while (found := self._pg.notifies()) is not None:
            self._on_notice(found.extra.decode("utf-8", "replace"))

    def _answer(self) -> None:
        done, result = self._queries.popleft().done, self._result
        if done.done():  # whoever asked has left
            return
        if result is None or result.status not in _FINE:
            done.set_exception(
                psycopg.OperationalError("no answer") if result is None else error_from_result(result)
            )
            return
        columns = range(result.nfields)
        done.set_result(
            [tuple(result.get_value(row, each) for each in columns) for row in range(result.ntuples)]
        )

    def _end(self, error: Exception | None) -> None:
        if self.ended.done():
            return
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._pg.finish()
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)
        while self._queries:
            done = self._queries.popleft().done
            if not done.done():
                done.set_exception(psycopg.OperationalError(f"the connection is lost: {error or 'closed'}"))


class _Query(NamedTuple):
    sql: bytes
    parameters: Sequence[bytes | None]
    done: asyncio.Future[list[Values]]


# How large the store is


_FEED_BYTES: Final = 2048
_DOCUMENT_BYTES: Final = 1024
_ENTRY_BYTES: Final = 256
"""Rows with their indexes."""
_USED_BYTES: Final = f"""
    SELECT (SELECT coalesce(sum(octet_length(coded)), 0) FROM body)
        + (SELECT coalesce(sum(deflated_bytes), 0) FROM segment WHERE retired_at IS NULL)
        + (SELECT coalesce(sum({_DOCUMENT_BYTES} + {_ENTRY_BYTES} * entries), 0) FROM document)
        + (SELECT {_FEED_BYTES} * count(*) FROM feed)
"""  # noqa: S608 - numbers
_FILE_BYTES: Final = "SELECT pg_database_size(current_database())"


def measure_sizes(db: Database) -> Sizes:
    """Return what the rows come to, without segments that wait to be deleted, and how large the files are.

    What is deleted makes room for what comes next once it has been vacuumed, and the files do not shrink:
    their size says nothing of what is stored. So that is counted by its rows: the large values by their
    length, which PostgreSQL knows without reading them, the others by about what they take. Every row is
    looked at for that: whoever asks asks seldom, and goes on with what single feeds take (`measure_feed`).
    """
    return Sizes(
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
    """Return how much less `measure_sizes` finds in use without a feed, by the rows of that feed alone."""
    return int(fetch_value(db, _FEEDS_BYTES, {"feed": feed}))
