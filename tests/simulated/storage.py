"""The program's own SQLite store, in memory, every statement of which is done where it is asked for.

disk = Disk()
async with disk.opened() as store: ...
disk.unplug()                       # as a kill does: nothing more gets there
async with disk.opened() as store: ...      # as after a restart
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, TypeVar

from tests import empty_store
from tests.simulated.places import TEMPORARY_TABLES, SqliteEngine, Store

_T = TypeVar("_T")
_JOURNAL = slice(18, 20)
"""The header bytes for WAL in a file, which a database in memory cannot have."""


@cache
def _image() -> bytes:
    image = bytearray(empty_store.image())
    image[_JOURNAL] = b"\x01\x01"
    return bytes(image)


class Disk:
    """A database that outlives the program; each piece of work takes some idle turns of the loop."""

    def __init__(self, idles: int = 0) -> None:
        self._idles = idles
        self.db = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
        self.db.deserialize(_image())
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA foreign_keys = ON")
        self.db.executescript(TEMPORARY_TABLES)
        self._connection = _Connection(self.db, self._idles)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        """Open the store; `unplug` takes it from its present holder."""
        self._connection = _Connection(self.db, self._idles)
        engine = SqliteEngine(self._connection)  # type: ignore[arg-type]
        for _ in range(4):
            engine.readers.add(self._connection)  # type: ignore[arg-type]
        try:
            async with Store.on(engine) as store:
                yield store
        finally:
            await engine.close()

    def unplug(self) -> None:
        """End all access of the store's present holder."""
        self._connection.is_plugged = False

    def close(self) -> None:
        self.db.close()


class _Connection:
    """The part of `sqlite_file.Connection` used by the engine."""

    def __init__(self, db: sqlite3.Connection, idles: int) -> None:
        self._db = db
        self._idles = idles
        self.is_plugged = True

    async def hop(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        for _ in range(self._idles):
            await asyncio.sleep(0)
        if not self.is_plugged:
            raise sqlite3.OperationalError("the program was killed")
        try:
            return work(self._db)
        finally:
            if self._db.in_transaction:
                self._db.rollback()

    async def rollback(self) -> None:
        """Do nothing: no transaction is open between two pieces of work."""

    async def interrupt(self) -> None:
        """Do nothing: no work is under way when anybody can ask for it."""

    async def execute_fetchall(self, sql: str) -> list[Any]:
        return []

    async def close(self) -> None:
        """Do nothing: the database stays."""
