from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import aiosqlite
import pytest
import structlog

from tests.sqlite_faults import sqlite_error
from wholefeed.errors import OverloadedError, StorageFullError, StoreDamagedError, StoreError
from wholefeed.store import sqlite_file as module
from wholefeed.store.base import Condition, fetch_all, fetch_value, run
from wholefeed.store.sqlite import Writer
from wholefeed.store.sqlite_file import Connection, open_writer

CANCELLATIONS = 200


class Breakable(sqlite3.Connection):
    """A connection whose methods can be replaced."""


@pytest.fixture
async def connection(database: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """The one that the writer has."""
    monkeypatch.setattr(module, "connect", partial(module.connect, factory=Breakable))
    db = await open_writer(database, "CREATE TEMP TABLE unused (x INTEGER) STRICT;")
    await db.executescript("CREATE TABLE pair (a INTEGER, b INTEGER) STRICT;")
    return db


@pytest.fixture
async def writer(connection: Connection) -> AsyncIterator[Writer]:
    writer = Writer(connection, Condition())
    yield writer
    await writer.close()


def put_pair(db: sqlite3.Connection, number: int) -> int:
    run(db, "INSERT INTO pair (a) VALUES (:n)", {"n": number})
    run(db, "UPDATE pair SET b = :n WHERE a = :n", {"n": number})
    return number


async def test_a_transaction_that_could_not_be_rolled_back_is_left_before_the_next(
    writer: Writer, connection: Connection
) -> None:
    """Row 68: when even the rollback fails, the half transaction is not committed with the next one."""
    broken = await connection.hop(lambda db: db)
    assert isinstance(broken, Breakable)

    def fail(db: sqlite3.Connection) -> None:
        put_pair(db, 1)
        raise KeyError("x")

    def no_rollback() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    broken.rollback = no_rollback  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="disk I/O error"):
        await writer.run(fail)
    del broken.rollback
    assert connection.in_transaction

    assert await writer.run(lambda db: put_pair(db, 2)) == 2
    assert await writer.run(lambda db: fetch_value(db, "SELECT group_concat(a) FROM pair")) == "2"


async def test_what_waits_is_committed_together_in_its_order(writer: Writer, connection: Connection) -> None:
    """Pieces of work that wait while one runs share a commit; each is answered with its own result."""
    statements: list[str] = []
    await connection.set_trace_callback(statements.append)
    numbers = await asyncio.gather(*(writer.run(partial(put_pair, number=n)) for n in range(10)))
    assert numbers == list(range(10))
    assert statements.count("COMMIT") == 1
    written = await writer.run(lambda db: fetch_value(db, "SELECT group_concat(a) FROM pair"))
    assert written == "0,1,2,3,4,5,6,7,8,9"


@pytest.mark.parametrize("statement", [None, "INSERT INTO nowhere VALUES (1)"])
async def test_work_that_fails_takes_nothing_with_it_that_shares_its_commit(
    writer: Writer, statement: str | None
) -> None:
    """Whether it is its own error or SQLite's: the others are written, the failed one leaves no trace."""

    def fail(db: sqlite3.Connection) -> None:
        put_pair(db, 2)
        if statement is not None:
            run(db, statement)
        raise KeyError("x")

    results = await asyncio.gather(
        writer.run(lambda db: put_pair(db, 1)),
        writer.run(fail),
        writer.run(lambda db: put_pair(db, 3)),
        return_exceptions=True,
    )
    assert (results[0], results[2]) == (1, 3)
    assert isinstance(results[1], KeyError if statement is None else StoreError)
    assert await writer.run(lambda db: fetch_value(db, "SELECT group_concat(a) FROM pair")) == "1,3"


async def test_work_that_wants_to_be_alone_shares_no_commit(writer: Writer, connection: Connection) -> None:
    """What is to be done behind the commit of what came before: segments are removed so."""
    statements: list[str] = []
    await connection.set_trace_callback(statements.append)
    await asyncio.gather(
        writer.run(lambda db: put_pair(db, 1)),
        writer.run(lambda db: put_pair(db, 2), is_alone=True),
        writer.run(lambda db: put_pair(db, 3)),
    )
    assert statements.count("COMMIT") == 3
    assert "SAVEPOINT piece" not in statements


@pytest.mark.fault("71b")
async def test_a_commit_that_is_said_to_have_failed_is_told(writer: Writer) -> None:
    """It may be done all the same; and so may one that several shared, whatever becomes of them apart."""
    told: list[int] = []
    writer.on_change = told.append
    deferred = "CREATE TABLE child (pair INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED) STRICT"
    for each in ("CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT", deferred):
        await writer.run(lambda db, sql=each: run(db, sql))  # type: ignore[misc]

    def fail_in_commit(db: sqlite3.Connection) -> None:
        run(db, "INSERT INTO child VALUES (1)")

    tries = 0

    def fail_apart(_: sqlite3.Connection) -> None:
        nonlocal tries
        tries += 1
        if tries > 1:
            raise KeyError("x")

    with pytest.raises(StoreError, match="FOREIGN KEY"):
        await writer.run(fail_in_commit, feed=7)
    assert told == [7]
    works = (fail_in_commit, fail_apart)
    asked = [writer.run(work, feed=feed) for feed, work in enumerate(works, 8)]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in results] == [StoreError, KeyError]
    assert told == [7, 8, 9]


async def test_a_stop_iteration_comes_back(connection: Connection) -> None:
    """Set on a future it would never get to whoever waits; Python makes a RuntimeError of it."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        async with asyncio.timeout(5):
            await connection.hop(lambda _: next(iter(())))
    await connection.close()


async def test_random_cancellations_leave_no_half_transaction(writer: Writer) -> None:
    """docs/design.md#the-store: the transaction goes on when whoever asked for it leaves."""
    chance = random.Random(1)
    for number in range(CANCELLATIONS):
        task = asyncio.create_task(writer.run(partial(put_pair, number=number)))
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    rows = await writer.run(lambda db: fetch_all(db, "SELECT a, b FROM pair"))

    assert len(rows) > CANCELLATIONS // 2
    assert [row for row in rows if row["a"] != row["b"]] == []


async def test_closing_finishes_what_was_asked_for(database: Path) -> None:
    """Row 74: at shutdown everything that waits to be written is; later work is refused."""
    db = await open_writer(database, "")
    await db.executescript("CREATE TABLE pair (a INTEGER, b INTEGER) STRICT;")
    writer = Writer(db, Condition())
    tasks = [asyncio.create_task(writer.run(partial(put_pair, number=n))) for n in range(20)]
    await asyncio.sleep(0)

    await writer.close()

    assert await asyncio.gather(*tasks) == list(range(20))
    with pytest.raises(OverloadedError):
        await writer.run(lambda db: put_pair(db, 1))


async def test_a_writer_that_is_killed_answers_whoever_waits(database: Path) -> None:
    """When the writing task ends early, nobody waits for ever: all get OverloadedError."""
    db = await open_writer(database, "")
    writer = Writer(db, Condition())
    started, may_end = asyncio.Event(), threading.Event()

    loop = asyncio.get_running_loop()

    def hang(_: sqlite3.Connection) -> None:
        loop.call_soon_threadsafe(started.set)
        may_end.wait(10)

    tasks = [asyncio.create_task(writer.run(hang)) for _ in range(2)]
    await started.wait()
    (task,) = [each for each in asyncio.all_tasks() if each.get_name() == "store-writer"]
    task.cancel()

    results = await asyncio.gather(*tasks, return_exceptions=True)
    may_end.set()

    assert [type(result) for result in results] == [OverloadedError, OverloadedError]
    with pytest.raises(OverloadedError):
        await writer.run(hang)
    await writer.close()


@pytest.mark.fault("71")
async def test_a_busy_database_is_waited_for(writer: Writer, connection: Connection, database: Path) -> None:
    """docs/faults.md row 71: BUSY is retried."""
    await writer.run(lambda db: put_pair(db, 1))
    await connection.execute("PRAGMA busy_timeout = 0")
    async with aiosqlite.connect(database, isolation_level=None) as other:
        await other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OverloadedError) as caught:
            await writer.run(lambda db: put_pair(db, 2))
        assert caught.value.status == 503
        assert caught.value.retry_after_seconds > 0

        tries = 0

        def work(db: sqlite3.Connection) -> None:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise _busy()
            put_pair(db, 3)

        await other.execute("COMMIT")
        await writer.run(work)
        assert tries == 2


def _busy() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


async def test_a_full_volume_is_told_and_recovered_from(writer: Writer, connection: Connection) -> None:
    """docs/faults.md row 68: goes on by itself when there is room."""

    def fill(db: sqlite3.Connection) -> None:
        run(db, "CREATE TABLE large (x BLOB) STRICT")
        run(db, "INSERT INTO large VALUES (randomblob(100000))")

    pages = await connection.hop(lambda db: fetch_value(db, "PRAGMA page_count"))
    await connection.execute(f"PRAGMA max_page_count = {pages}")
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(StorageFullError):
                await writer.run(fill)
        assert writer.condition.is_full
        await writer.run(lambda db: run(db, "DELETE FROM pair"))
        assert writer.condition.is_full  # nothing was written: that is no sign of room
        await connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
        await writer.run(fill)

    assert not writer.condition.is_full
    assert [log["event"] for log in logs] == ["store.full", "store.recovered"]


async def test_work_that_is_undone_is_no_sign_of_room(writer: Writer) -> None:
    """Row 68: what shares its commit has written nothing, so the volume may be as full as before."""

    def fail(db: sqlite3.Connection) -> None:
        put_pair(db, 1)
        raise KeyError("x")

    writer.condition.judge(StorageFullError("the volume is full"))
    read = partial(fetch_value, sql="SELECT count(*) FROM pair")
    await asyncio.gather(writer.run(fail), writer.run(read), return_exceptions=True)
    assert writer.condition.is_full


async def test_nothing_is_written_beside_what_finds_the_file_damaged(writer: Writer) -> None:
    """Row 70: neither what shared its transaction nor what comes later; it could spread the damage."""

    def fail(_: sqlite3.Connection) -> None:
        raise sqlite_error("SQLITE_CORRUPT")

    works = (partial(put_pair, number=1), fail, partial(put_pair, number=2))
    results = await asyncio.gather(*(writer.run(work) for work in works), return_exceptions=True)
    assert [type(each) for each in results] == [StoreDamagedError] * 3


async def test_other_errors_of_sqlite_become_store_errors(writer: Writer) -> None:
    """An SQL error is a StoreError with its code, and is not taken for a full volume."""
    with pytest.raises(StoreError, match=r"SQLITE_ERROR.*no such table"):
        await writer.run(lambda db: run(db, "INSERT INTO nowhere VALUES (1)"))
    assert not writer.condition.is_full


async def levels(writer: Writer, *lasting: bool, fails: bool = False) -> list[int]:
    """Return `PRAGMA synchronous` as each of these finds it: 2 waits for the disk, 1 does not."""
    found = []
    for is_lasting in lasting:

        def work(db: sqlite3.Connection) -> None:
            found.append(fetch_value(db, "PRAGMA synchronous"))
            if fails:
                raise StoreError("it cannot be done")

        with contextlib.suppress(StoreError):
            await writer.run(work, is_lasting=is_lasting)
    return found


@pytest.mark.parametrize("fails", [False, True])
async def test_only_what_is_to_last_waits_for_the_disk(writer: Writer, *, fails: bool) -> None:
    """A commit of what need not last by itself does not sync; the next that must does, and takes it along."""
    assert await levels(writer, True, False, False, True, False, True, fails=fails) == [2, 1, 1, 2, 1, 2]


async def test_a_shared_commit_waits_if_anything_in_it_is_to_last(writer: Writer) -> None:
    """Pieces that are committed together last together."""
    found: list[int] = []
    begun = asyncio.create_task(writer.run(lambda db: put_pair(db, 1)))

    def look(db: sqlite3.Connection) -> None:
        found.append(fetch_value(db, "PRAGMA synchronous"))

    pieces = [writer.run(look, is_lasting=is_lasting) for is_lasting in (False, True, False)]
    await asyncio.gather(begun, *pieces)
    assert found == [2, 2, 2]


async def test_what_need_not_last_is_there_for_other_connections(writer: Writer, database: Path) -> None:
    """It is in the file when it is answered: who reads finds it, also after the process was killed."""
    await writer.run(lambda db: put_pair(db, 7), is_lasting=False)
    async with aiosqlite.connect(database) as other:
        assert list(await other.execute_fetchall("SELECT a, b FROM pair")) == [(7, 7)]
