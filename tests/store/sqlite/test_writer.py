from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import aiosqlite
import pytest
import structlog

from wholefeed.errors import OverloadedError, StorageFullError, StoreError
from wholefeed.store.sqlite.condition import Condition
from wholefeed.store.sqlite.connection import fetch_all, fetch_value, open_writer, run
from wholefeed.store.sqlite.writer import Writer

CANCELLATIONS = 200


@pytest.fixture
async def connection(database: Path) -> aiosqlite.Connection:
    """The one that the writer has."""
    db = await open_writer(database, "CREATE TEMP TABLE unused (x INTEGER) STRICT;")
    await db.executescript("CREATE TABLE pair (a INTEGER, b INTEGER) STRICT;")
    return db


@pytest.fixture
async def writer(connection: aiosqlite.Connection) -> AsyncIterator[Writer]:
    writer = Writer(connection, Condition())
    yield writer
    await writer.close()


async def put_pair(db: aiosqlite.Connection, number: int) -> int:
    await run(db, "INSERT INTO pair (a) VALUES (:n)", {"n": number})
    await run(db, "UPDATE pair SET b = :n WHERE a = :n", {"n": number})
    return number


async def test_work_runs_in_one_transaction_and_gives_its_result(writer: Writer) -> None:
    """What a transaction writes can be read afterwards, and its result comes back to the caller."""
    assert await writer.run(lambda db: put_pair(db, 1)) == 1
    assert await writer.run(lambda db: fetch_value(db, "SELECT b FROM pair")) == 1


async def test_failed_work_leaves_no_trace(writer: Writer) -> None:
    """Row 67: a transaction that raises is rolled back whole, and its error reaches the caller."""

    async def fail(db: aiosqlite.Connection) -> None:
        await put_pair(db, 1)
        raise KeyError("x")

    with pytest.raises(KeyError):
        await writer.run(fail)
    assert await writer.run(lambda db: fetch_value(db, "SELECT count(*) FROM pair")) == 0


async def test_a_transaction_that_could_not_be_rolled_back_is_left_before_the_next(
    writer: Writer, connection: aiosqlite.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 68: when even the rollback fails, the half transaction is not committed with the next one."""

    async def fail(db: aiosqlite.Connection) -> None:
        await put_pair(db, 1)
        raise KeyError("x")

    async def no_rollback() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(connection, "rollback", no_rollback)
        with pytest.raises(StoreError, match="disk I/O error"):
            await writer.run(fail)
    assert connection.in_transaction

    assert await writer.run(lambda db: put_pair(db, 2)) == 2
    assert await writer.run(lambda db: fetch_value(db, "SELECT group_concat(a) FROM pair")) == "2"


async def test_random_cancellations_leave_no_half_transaction(writer: Writer) -> None:
    """docs/design.md#the-store: the transaction goes on when whoever asked for it leaves."""
    chance = random.Random(1)
    for number in range(CANCELLATIONS):
        task = asyncio.create_task(writer.run(lambda db, n=number: put_pair(db, n)))  # type: ignore[misc]
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
    tasks = [asyncio.create_task(writer.run(lambda db, n=n: put_pair(db, n))) for n in range(20)]  # type: ignore[misc]
    await asyncio.sleep(0)

    await writer.close()

    assert await asyncio.gather(*tasks) == list(range(20))
    with pytest.raises(OverloadedError):
        await writer.run(lambda db: put_pair(db, 1))


async def test_a_writer_that_is_killed_answers_whoever_waits(database: Path) -> None:
    """When the writing task ends early, nobody waits for ever: all get OverloadedError."""
    db = await open_writer(database, "")
    writer = Writer(db, Condition())
    started = asyncio.Event()

    async def hang(_: aiosqlite.Connection) -> None:
        started.set()
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(writer.run(hang)) for _ in range(2)]
    await started.wait()
    (task,) = [each for each in asyncio.all_tasks() if each.get_name() == "store-writer"]
    task.cancel()

    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(result) for result in results] == [OverloadedError, OverloadedError]
    with pytest.raises(OverloadedError):
        await writer.run(hang)
    await writer.close()


@pytest.mark.fault("71")
async def test_a_busy_database_is_waited_for(
    writer: Writer, connection: aiosqlite.Connection, database: Path
) -> None:
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

        async def work(db: aiosqlite.Connection) -> None:
            nonlocal tries
            tries += 1
            if tries == 1:
                await other.execute("COMMIT")
                raise _busy()
            await put_pair(db, 3)

        await other.execute("COMMIT")
        await other.execute("BEGIN")
        await writer.run(work)
        assert tries == 2


def _busy() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


async def test_a_full_volume_is_told_and_recovered_from(
    writer: Writer, connection: aiosqlite.Connection
) -> None:
    """docs/faults.md row 68: goes on by itself when there is room."""

    async def fill(db: aiosqlite.Connection) -> None:
        await run(db, "CREATE TABLE large (x BLOB) STRICT")
        await run(db, "INSERT INTO large VALUES (randomblob(100000))")

    pages = await fetch_value(connection, "PRAGMA page_count")
    await fetch_value(connection, f"PRAGMA max_page_count = {pages}")
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(StorageFullError):
                await writer.run(fill)
        assert writer.condition.is_full
        await writer.run(lambda db: run(db, "DELETE FROM pair"))
        assert writer.condition.is_full  # nothing was written: that is no sign of room
        await fetch_value(connection, f"PRAGMA max_page_count = {pages + 1000}")
        await writer.run(fill)

    assert not writer.condition.is_full
    assert [log["event"] for log in logs] == ["store.full", "store.recovered"]


async def test_other_errors_of_sqlite_become_store_errors(writer: Writer) -> None:
    """An SQL error is a StoreError with its code, and is not taken for a full volume."""
    with pytest.raises(StoreError, match=r"SQLITE_ERROR.*no such table"):
        await writer.run(lambda db: run(db, "INSERT INTO nowhere VALUES (1)"))
    assert not writer.condition.is_full
