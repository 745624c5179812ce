"""SQLite as the store's engine: one connection that writes, and those that read."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import aiosqlite
import pytest
import structlog

from tests.sqlite_faults import sqlite_error
from wholefeed.errors import OverloadedError, StorageFullError, StoreDamagedError, StoreError
from wholefeed.store import sqlite_file
from wholefeed.store.base import Condition, Database, fetch_all, fetch_value, run
from wholefeed.store.sqlite import Readers, SqliteEngine
from wholefeed.store.sqlite_file import SqliteConnection, open_reader, open_writer

CANCELLATIONS = 200
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
NUMBERS = partial(fetch_value, sql="SELECT group_concat(a) FROM pair")
SEVEN = partial(fetch_value, sql="SELECT 7")


class Breakable(sqlite3.Connection):
    """A connection whose methods can be replaced."""


@pytest.fixture
async def connection(database: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteConnection:
    """The writer's connection."""
    monkeypatch.setattr(sqlite_file, "connect", partial(sqlite_file.connect, factory=Breakable))
    db = await open_writer(database, "CREATE TEMP TABLE unused (x INTEGER) STRICT;")
    await db.executescript("CREATE TABLE pair (a INTEGER, b INTEGER) STRICT;")
    return db


@pytest.fixture
async def writer(connection: SqliteConnection) -> AsyncIterator[SqliteEngine]:
    writer = SqliteEngine(connection)
    yield writer
    await writer.close()


def put_pair(db: Database, number: int) -> int:
    run(db, "INSERT INTO pair (a) VALUES (:n)", {"n": number})
    run(db, "UPDATE pair SET b = :n WHERE a = :n", {"n": number})
    return number


def fail(db: Database) -> None:
    put_pair(db, 2)
    raise KeyError("x")


async def test_a_transaction_that_could_not_be_rolled_back_is_left_before_the_next(
    writer: SqliteEngine, connection: SqliteConnection
) -> None:
    """Row 68: even after a failed rollback, the half transaction is not committed with the next one."""
    broken = await connection.hop(lambda db: db)
    assert isinstance(broken, Breakable)

    def no_rollback() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    broken.rollback = no_rollback  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="disk I/O error"):
        await writer.write(fail)
    del broken.rollback
    assert connection.in_transaction

    await writer.write(partial(put_pair, number=3))
    assert await writer.write(NUMBERS) == "3"


async def test_what_waits_is_committed_together_unless_it_wants_to_be_alone(
    writer: SqliteEngine, connection: SqliteConnection
) -> None:
    """In order, each with its own result. Removals of segments run alone, behind other commits."""
    statements: list[str] = []
    await connection.set_trace_callback(statements.append)
    numbers = await asyncio.gather(*(writer.write(partial(put_pair, number=n)) for n in range(10)))
    assert numbers == list(range(10))
    assert statements.count("COMMIT") == 1
    assert await writer.write(NUMBERS) == "0,1,2,3,4,5,6,7,8,9"
    statements.clear()
    await asyncio.gather(*(writer.write(partial(put_pair, number=n), is_alone=n == 11) for n in (10, 11, 12)))
    assert (statements.count("COMMIT"), statements.count("SAVEPOINT piece")) == (3, 0)


@pytest.mark.parametrize("statement", [None, "INSERT INTO nowhere VALUES (1)"])
async def test_work_that_fails_takes_nothing_with_it_that_shares_its_commit(
    writer: SqliteEngine, statement: str | None
) -> None:
    """After its own error or SQLite's, the others are written, and the failed one leaves no trace."""

    def fail_so(db: Database) -> None:
        if statement is not None:
            run(db, statement)
        fail(db)

    one, other = partial(put_pair, number=1), partial(put_pair, number=3)
    asked = [writer.write(work) for work in (one, fail_so, other)]
    first, failed, last = await asyncio.gather(*asked, return_exceptions=True)
    assert (first, last) == (1, 3)
    assert isinstance(failed, KeyError if statement is None else StoreError)
    assert await writer.write(NUMBERS) == "1,3"


@pytest.mark.fault("71b")
async def test_a_commit_that_is_said_to_have_failed_is_told(writer: SqliteEngine) -> None:
    """The commit may be done all the same; so may a shared one, apart from its parts."""
    told: list[int] = []
    writer.on_change = told.append
    deferred = "CREATE TABLE child (pair INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED) STRICT"
    for each in ("CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT", deferred):
        await writer.write(partial(run, sql=each))

    def fail_in_commit(db: Database) -> None:
        run(db, "INSERT INTO child VALUES (1)")

    tries = 0

    def fail_apart(_: Database) -> None:
        nonlocal tries
        tries += 1
        if tries > 1:
            raise KeyError("x")

    with pytest.raises(StoreError, match="FOREIGN KEY"):
        await writer.write(fail_in_commit, feed=7)
    assert told == [7]
    works = (fail_in_commit, fail_apart)
    asked = [writer.write(work, feed=feed) for feed, work in enumerate(works, 8)]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in results] == [StoreError, KeyError]
    assert told == [7, 8, 9]


async def test_a_stop_iteration_comes_back(connection: SqliteConnection) -> None:
    """On a future it would never reach the waiting task; Python turns it into a RuntimeError."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        async with asyncio.timeout(300):
            await connection.hop(lambda _: next(iter(())))
    await connection.close()


async def test_random_cancellations_leave_no_half_transaction(writer: SqliteEngine) -> None:
    """docs/design.md#the-store: the transaction completes when its task is cancelled."""
    chance = random.Random(1)
    for number in range(CANCELLATIONS):
        task = asyncio.create_task(writer.write(partial(put_pair, number=number)))
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    rows = await writer.write(lambda db: fetch_all(db, "SELECT a, b FROM pair"))

    assert len(rows) > CANCELLATIONS // 2
    assert [row for row in rows if row["a"] != row["b"]] == []


async def test_closing_finishes_what_was_asked_for(connection: SqliteConnection) -> None:
    """Row 74: waiting work included."""
    writer = SqliteEngine(connection)
    tasks = [asyncio.create_task(writer.write(partial(put_pair, number=n))) for n in range(20)]
    await asyncio.sleep(0)
    await writer.close()
    assert await asyncio.gather(*tasks) == list(range(20))


async def test_a_writer_that_is_killed_answers_whoever_waits(database: Path) -> None:
    """When the writing task ends early, all waiting tasks get OverloadedError."""
    writer = SqliteEngine(await open_writer(database, ""))
    started, may_end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hang(_: Database) -> None:
        loop.call_soon_threadsafe(started.set)
        may_end.wait(10)

    tasks = [asyncio.create_task(writer.write(hang)) for _ in range(2)]
    await started.wait()
    (task,) = [each for each in asyncio.all_tasks() if each.get_name() == "store-writer"]
    task.cancel()

    results = await asyncio.gather(*tasks, return_exceptions=True)
    may_end.set()

    assert [type(result) for result in results] == [OverloadedError, OverloadedError]
    with pytest.raises(OverloadedError):
        await writer.write(hang)
    await writer.close()


@pytest.mark.fault("71")
async def test_a_busy_database_is_waited_for(
    writer: SqliteEngine, connection: SqliteConnection, database: Path
) -> None:
    """docs/faults.md row 71: BUSY is retried."""
    await connection.execute("PRAGMA busy_timeout = 0")
    async with aiosqlite.connect(database, isolation_level=None) as other:
        await other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OverloadedError) as caught:
            await writer.write(partial(put_pair, number=2))
        assert caught.value.status == 503
        assert caught.value.retry_after_seconds > 0
        await other.execute("COMMIT")
    tries = 0

    def work(_: Database) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise sqlite_error("SQLITE_BUSY")

    await writer.write(work)
    assert tries == 2


async def test_a_full_volume_is_told_and_recovered_from(
    writer: SqliteEngine, connection: SqliteConnection
) -> None:
    """docs/faults.md row 68: writing resumes when there is room. An empty or undone transaction is no sign of
    room."""

    def fill(db: Database) -> None:
        run(db, "CREATE TABLE large (x BLOB) STRICT")
        run(db, "INSERT INTO large VALUES (randomblob(100000))")

    pages = await connection.hop(lambda db: fetch_value(db, "PRAGMA page_count"))
    await connection.execute(f"PRAGMA max_page_count = {pages}")
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(StorageFullError):
                await writer.write(fill)
        await asyncio.gather(writer.write(fail), writer.write(NUMBERS), return_exceptions=True)
        assert writer.condition.is_full
        await connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
        await writer.write(fill)

    assert not writer.condition.is_full
    assert [log["event"] for log in logs] == ["store.full", "store.recovered"]


async def test_nothing_is_written_beside_what_finds_the_file_damaged(writer: SqliteEngine) -> None:
    """Row 70: neither in the same transaction nor later; writing could spread the damage."""

    def find_damage(_: Database) -> None:
        raise sqlite_error("SQLITE_CORRUPT")

    works = (partial(put_pair, number=1), find_damage, partial(put_pair, number=2))
    results = await asyncio.gather(*(writer.write(work) for work in works), return_exceptions=True)
    assert [type(each) for each in results] == [StoreDamagedError] * 3


@pytest.mark.parametrize("fails", [False, True])
async def test_only_what_is_to_last_waits_for_the_disk(writer: SqliteEngine, *, fails: bool) -> None:
    """A commit of temporary data does not sync; the next durable one includes it. Shared commits are durable
    together."""
    found: list[int] = []

    def look(db: Database) -> None:
        found.append(fetch_value(db, "PRAGMA synchronous"))  # 2 waits for the disk, 1 does not
        if fails:
            raise StoreError("it cannot be done")

    for is_lasting in (True, False, False, True, False, True):
        with contextlib.suppress(StoreError):
            await writer.write(look, is_lasting=is_lasting)
    together = [writer.write(look, is_lasting=is_lasting) for is_lasting in (False, True, False)]
    await asyncio.gather(*together, return_exceptions=True)
    assert found[:6] == [2, 1, 1, 2, 1, 2]
    assert fails or found[6:] == [2, 2, 2]  # those that fail are tried again, each by itself


# The connections that read


@pytest.fixture
async def readers(database: Path) -> AsyncIterator[Readers]:
    pool = Readers(Condition())
    for _ in range(2):
        pool.add(await open_reader(database))
    yield pool
    await pool.close()


def endless(db: sqlite3.Connection) -> None:
    fetch_all(db, ENDLESS)


async def running(readers: Readers) -> asyncio.Task[None]:
    """A task with a started endless query."""
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(db: sqlite3.Connection) -> None:
        db.create_function("begun", 0, lambda: bool(loop.call_soon_threadsafe(begun.set)))
        fetch_all(db, f"SELECT begun(), ({ENDLESS})")

    task = asyncio.create_task(readers.run(work))
    await begun.wait()
    return task


async def cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_reads_cancelled_at_any_moment_leave_every_connection_usable(readers: Readers) -> None:
    """Row 63: readers cancelled during reads, or while getting a connection, cost no connection and leave no
    transaction open."""
    met = threading.Barrier(2)

    def both(db: sqlite3.Connection) -> object:
        met.wait(10)
        return SEVEN(db)

    chance = random.Random(2)
    for _ in range(100):
        task = asyncio.create_task(readers.run(endless))
        for _ in range(chance.randrange(8)):
            await asyncio.sleep(0)
        await cancelled(task)
    begun = [await running(readers) for _ in range(2)]
    waiting = asyncio.create_task(readers.run(SEVEN))
    await asyncio.sleep(0)
    await cancelled(*begun)
    await cancelled(waiting)

    async with asyncio.timeout(300):
        assert await asyncio.gather(*(readers.run(SEVEN) for _ in range(4))) == [7] * 4
        assert await asyncio.gather(*(readers.run(both) for _ in range(2))) == [7, 7]


async def test_closing_stops_what_runs_and_whoever_waits(database: Path) -> None:
    """docs/design.md#the-store: an open connection hangs the process at exit."""
    before = set(threading.enumerate())
    pool = Readers(Condition())
    pool.add(await open_reader(database))
    tasks = [await running(pool)]
    tasks += [asyncio.create_task(pool.run(endless)) for _ in range(3)]
    await asyncio.sleep(0)

    begun = time.monotonic()
    await pool.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(result) for result in results] == [OverloadedError] * 4
    assert time.monotonic() - begun < 5
    for thread in set(threading.enumerate()) - before:
        if not thread.name.startswith("asyncio_"):  # the loop's own, for calls that block
            thread.join(5)
            assert not thread.is_alive()


async def test_whoever_waits_is_not_overtaken(database: Path) -> None:
    """First come, first served: a task in a read loop does not block waiting readers.

    asyncio's queues allow that, and under load an answer waited for a minute.
    """
    pool = Readers(Condition())
    pool.add(await open_reader(database))
    order: list[str] = []

    async def read_twice(name: str) -> None:
        for turn in ("first", "again"):
            await pool.run(SEVEN)
            order.append(f"{name} {turn}")

    async with asyncio.timeout(300):
        await asyncio.gather(*(read_twice(name) for name in ("one", "two", "three")))
    assert order == [f"{name} {turn}" for turn in ("first", "again") for name in ("one", "two", "three")]
    await pool.close()
