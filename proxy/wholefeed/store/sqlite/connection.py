"""The connections: one that writes, some that read, each set up and closed in one place.

SQLite before 3.51.3 can damage a WAL database when two connections write or checkpoint at once, so
exactly one does either. A connection that is not closed hangs the process at its end.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import aiosqlite

from wholefeed.errors import StoreUnusableError
from wholefeed.store.sqlite.faults import is_interrupt, translated
from wholefeed.store.sqlite.migrate import database_uri, is_writable, readonly_uri
from wholefeed.store.statements import fetch_value, run

_T = TypeVar("_T")

_BUSY_SECONDS: Final = 2.0
_INTERRUPT_SECONDS: Final = 0.005
_ROWS_AT_ONCE: Final = 64
_CACHED_STATEMENTS: Final = 512
"""More than the program has, those it builds included."""

_WRITER_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16384",
    "PRAGMA wal_autocheckpoint = 8192",
    "PRAGMA journal_size_limit = 67108864",
)
_READER_PRAGMAS: Final = ("PRAGMA query_only = ON", "PRAGMA wal_autocheckpoint = 0")


class Connection(aiosqlite.Connection):
    """A connection in a thread of its own, which runs whole functions there."""

    async def hop(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `work` on the connection, in its thread: once there and once back, however much it does.

        Whoever waits may be cancelled; what has been handed over runs to its end.
        """
        outcomes: list[_T] = []
        error: BaseException | None = await self._execute(  # type: ignore[no-untyped-call]
            lambda: _failure(lambda: outcomes.append(work(self._conn)))
        )
        if error is not None:
            raise error
        return outcomes[0]


def _failure(work: Callable[[], None]) -> BaseException | None:
    """Return what a function raises: a future would never take a StopIteration."""
    try:
        work()
    except BaseException as exc:  # noqa: BLE001 - raised where it is waited for
        return exc
    return None


async def connect(database: str, **options: Any) -> Connection:
    """Open a connection that is made with these options of `sqlite3.connect`."""
    db = Connection(lambda: sqlite3.connect(database, **options), _ROWS_AT_ONCE)
    _ = await db
    return db


async def open_writer(path: Path, script: str) -> Connection:
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

    def prepare(db: sqlite3.Connection) -> None:
        if can_write and (mode := fetch_value(db, "PRAGMA journal_mode = WAL")) != "wal":
            raise StoreUnusableError(f"expected journal mode wal for {path}, got {mode}")
        for pragma in _WRITER_PRAGMAS:
            run(db, pragma)
        db.executescript(script)

    return await _open(uri, prepare)


async def open_reader(path: Path) -> Connection:
    """Open a connection that reads, and neither writes nor checkpoints.

    Raises:
        StoreError: SQLite failed.
    """

    def prepare(db: sqlite3.Connection) -> None:
        for pragma in _READER_PRAGMAS:
            run(db, pragma)

    return await _open(await asyncio.to_thread(readonly_uri, path), prepare)


async def settle(db: Connection) -> None:
    """Stop what the connection is doing and leave its transaction (docs/design.md#the-store).

    Cancelling the task that waits for a function does not stop the function; an interrupt ends a statement
    of it, but only one that has begun. So it is repeated until everything that was queued has come to its
    end.
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


async def close(db: Connection) -> None:
    """Close the connection, whatever it is doing.

    An interrupt that hit nothing stays pending until the next statement, and would keep the last
    connection from checkpointing as it closes; hence one more statement.
    """
    try:
        await settle(db)
        await db.execute_fetchall("SELECT 1")
    finally:
        await db.close()


async def _open(uri: str, prepare: Callable[[sqlite3.Connection], None]) -> Connection:
    try:
        db = await connect(
            uri,
            uri=True,
            isolation_level=None,
            timeout=_BUSY_SECONDS,
            cached_statements=_CACHED_STATEMENTS,
        )
        try:
            db.row_factory = sqlite3.Row
            await db.hop(prepare)
        except BaseException:
            await close(db)
            raise
    except sqlite3.Error as exc:
        raise translated(exc) from exc
    return db
