"""The connections: one that writes, some that read, each set up and closed in one place.

SQLite before 3.51.3 can damage a WAL database when two connections write or checkpoint at once, so
exactly one does either. A connection that is not closed hangs the process at its end.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import aiosqlite

from wholefeed.errors import StoreUnusableError
from wholefeed.store.sqlite.faults import is_interrupt, translated
from wholefeed.store.sqlite.migrate import database_uri, is_writable, readonly_uri

_T = TypeVar("_T")

_BUSY_SECONDS: Final = 2.0
_INTERRUPT_SECONDS: Final = 0.005

_WRITER_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16384",
    "PRAGMA wal_autocheckpoint = 8192",
    "PRAGMA journal_size_limit = 67108864",
)
_READER_PRAGMAS: Final = ("PRAGMA query_only = ON", "PRAGMA wal_autocheckpoint = 0")

Parameters = Mapping[str, Any]


async def open_writer(path: Path, script: str) -> aiosqlite.Connection:
    """Open the connection that writes and checkpoints. On a volume that is read-only every write fails.

    Args:
        path: The database file, which exists.
        script: SQL that makes the temporary tables.

    Raises:
        StoreUnusableError: The volume cannot hold a WAL database.
        StoreError: SQLite failed.
    """
    can_write = await asyncio.to_thread(is_writable, path)
    uri = await asyncio.to_thread(database_uri if can_write else readonly_uri, path)

    async def prepare(db: aiosqlite.Connection) -> None:
        if can_write and (mode := await fetch_value(db, "PRAGMA journal_mode = WAL")) != "wal":
            raise StoreUnusableError(f"expected journal mode wal for {path}, got {mode}")
        for pragma in _WRITER_PRAGMAS:
            await run(db, pragma)
        await db.executescript(script)

    return await _open(uri, prepare)


async def open_reader(path: Path) -> aiosqlite.Connection:
    """Open a connection that reads, and neither writes nor checkpoints.

    Raises:
        StoreError: SQLite failed.
    """

    async def prepare(db: aiosqlite.Connection) -> None:
        for pragma in _READER_PRAGMAS:
            await run(db, pragma)

    return await _open(await asyncio.to_thread(readonly_uri, path), prepare)


async def settle(db: aiosqlite.Connection) -> None:
    """Stop what the connection is doing and leave its transaction (docs/design.md#the-store).

    Cancelling the task that waits for a statement does not stop the statement; an interrupt does, but
    only one that has begun. So it is repeated until everything that was queued has come to its end.
    """
    while True:
        barrier = asyncio.ensure_future(db.rollback())
        while not barrier.done():
            await db.interrupt()
            await asyncio.wait({barrier}, timeout=_INTERRUPT_SECONDS)
        error = barrier.exception()
        if error is None:
            return
        if not is_interrupt(error):
            raise error


async def close(db: aiosqlite.Connection) -> None:
    """Close the connection, whatever it is doing.

    An interrupt that hit nothing stays pending until the next statement, and would keep the last
    connection from checkpointing as it closes; hence one more statement.
    """
    try:
        await settle(db)
        await db.execute_fetchall("SELECT 1")
    finally:
        await db.close()


async def fetch_all(
    db: aiosqlite.Connection, sql: str, parameters: Parameters | None = None
) -> list[sqlite3.Row]:
    """Return all rows of a query."""
    return list(await db.execute_fetchall(sql, parameters or {}))


async def fetch_made(
    db: aiosqlite.Connection, sql: str, parameters: Parameters, make: Callable[[sqlite3.Row], _T]
) -> list[_T]:
    """Return all rows of a query, made into something else in the connection's thread: for long lists."""
    async with db.execute(sql, parameters) as cursor:
        cursor.row_factory = cast("type", lambda at, values: make(sqlite3.Row(at, values)))
        return cast("list[_T]", list(await cursor.fetchall()))


async def fetch_one(
    db: aiosqlite.Connection, sql: str, parameters: Parameters | None = None
) -> sqlite3.Row | None:
    """Return the first row of a query, or None."""
    rows = await fetch_all(db, sql, parameters)
    return rows[0] if rows else None


async def fetch_value(db: aiosqlite.Connection, sql: str, parameters: Parameters | None = None) -> Any:
    """Return the first column of a query's first row, or None."""
    row = await fetch_one(db, sql, parameters)
    return None if row is None else row[0]


async def run(db: aiosqlite.Connection, sql: str, parameters: Parameters | None = None) -> int:
    """Execute a statement that gives no rows. Returns how many rows it changed."""
    cursor = await db.execute(sql, parameters or {})
    return cursor.rowcount


async def _open(uri: str, prepare: Callable[[aiosqlite.Connection], Awaitable[None]]) -> aiosqlite.Connection:
    try:
        db = await aiosqlite.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
        try:
            db.row_factory = sqlite3.Row
            await prepare(db)
        except BaseException:
            await close(db)
            raise
    except sqlite3.Error as exc:
        raise translated(exc) from exc
    return db


def json_ids(ids: Iterable[int]) -> str:
    """Return numbers as the JSON that json_each() takes: a statement for any number of them."""
    return json.dumps(list(ids))


async def to_the_end(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close, also when cancelled meanwhile: what stays open hangs the process."""
    task = asyncio.create_task(close())
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as exc:
            cancelled = exc
    task.result()
    if cancelled is not None:
        raise cancelled
