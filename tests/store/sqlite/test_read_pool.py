from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from wholefeed.errors import OverloadedError
from wholefeed.store.base import Condition, fetch_all, fetch_value
from wholefeed.store.sqlite import Readers
from wholefeed.store.sqlite_file import open_reader

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


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
    """A task whose endless query has begun."""
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(db: sqlite3.Connection) -> None:
        db.create_function("begun", 0, lambda: bool(loop.call_soon_threadsafe(begun.set)))
        fetch_all(db, f"SELECT begun(), ({ENDLESS})")

    task = asyncio.create_task(readers.run(work))
    await begun.wait()
    return task


async def test_a_cancelled_read_stops_and_its_connection_serves_again(readers: Readers) -> None:
    """docs/design.md#the-store: without an interrupt the next query waited for the cancelled one."""
    for _ in range(6):
        task = await running(readers)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async with asyncio.timeout(5):
        values = await asyncio.gather(
            *(readers.run(lambda db: fetch_value(db, "SELECT 7")) for _ in range(8))
        )
    assert values == [7] * 8


async def test_reads_cancelled_at_any_moment_leave_every_connection_usable(readers: Readers) -> None:
    """Row 63: readers that leave in the middle of reads cost no connection and leave no transaction open."""
    met = threading.Barrier(2)

    def both(db: sqlite3.Connection) -> int:
        met.wait(10)
        return int(fetch_value(db, "SELECT 7"))

    chance = random.Random(2)
    for _ in range(100):
        task = asyncio.create_task(readers.run(endless))
        for _ in range(chance.randrange(8)):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async with asyncio.timeout(10):
        values = await asyncio.gather(
            *(readers.run(lambda db: fetch_value(db, "SELECT 7")) for _ in range(4))
        )
        assert values == [7] * 4
        assert list(await asyncio.gather(readers.run(both), readers.run(both))) == [7, 7]


async def test_readers_do_not_checkpoint(readers: Readers) -> None:
    """docs/design.md#the-store."""
    assert await readers.run(lambda db: fetch_value(db, "PRAGMA wal_autocheckpoint")) == 0


async def test_closing_stops_what_runs_and_whoever_waits(database: Path) -> None:
    """docs/design.md#the-store: a connection that is not closed hangs the process at exit."""
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
    with pytest.raises(OverloadedError):
        await pool.run(endless)


async def test_whoever_waits_is_not_overtaken(database: Path) -> None:
    """First come, first served: a task that reads again and again does not keep those who wait from reading.

    asyncio's queues let it, and under load an answer waited for a minute.
    """
    pool = Readers(Condition())
    pool.add(await open_reader(database))
    order: list[str] = []

    async def read_twice(name: str) -> None:
        for turn in ("first", "again"):
            await pool.run(lambda db: fetch_value(db, "SELECT 1"))
            order.append(f"{name} {turn}")

    async with asyncio.timeout(5):
        await asyncio.gather(*(read_twice(name) for name in ("one", "two", "three")))
    assert order == [f"{name} {turn}" for turn in ("first", "again") for name in ("one", "two", "three")]
    await pool.close()


async def test_a_connection_that_was_given_to_who_has_left_serves_others(readers: Readers) -> None:
    """Cancelled while it is handed over: it is handed on, and none is lost."""
    begun = [await running(readers) for _ in range(2)]
    waiting = asyncio.create_task(readers.run(lambda db: fetch_value(db, "SELECT 1")))
    await asyncio.sleep(0)
    for task in begun:
        task.cancel()
    await asyncio.gather(*begun, return_exceptions=True)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(5):
        together = asyncio.gather(*(readers.run(lambda db: fetch_value(db, "SELECT 7")) for _ in range(4)))
        assert await together == [7] * 4
