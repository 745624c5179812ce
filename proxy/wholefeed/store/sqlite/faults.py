"""What SQLite's errors mean to the service (docs/faults.md rows 68 to 71)."""

from __future__ import annotations

import sqlite3
from typing import Final

from wholefeed.errors import OverloadedError, StorageFullError, StoreDamagedError, StoreError, WholefeedError

_FULL: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY})
_FULL_EXTENDED: Final = frozenset(
    {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE}
)
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether another connection is in the way, so that trying again helps."""
    return _primary(error) in _BUSY


def is_interrupt(error: BaseException) -> bool:
    """Tell whether the statement ended because the connection was interrupted."""
    return isinstance(error, sqlite3.Error) and _primary(error) == sqlite3.SQLITE_INTERRUPT


def translated(error: sqlite3.Error) -> WholefeedError:
    """Return what the service raises for it."""
    if is_busy(error):
        return OverloadedError(f"the database is busy: {error}")
    if _primary(error) in _FULL or _code(error) in _FULL_EXTENDED:
        return StorageFullError(f"the database cannot be written: {error}")
    if _primary(error) in _DAMAGED:
        return StoreDamagedError(f"the database is damaged: {error}")
    return StoreError(f"the database failed ({getattr(error, 'sqlite_errorname', 'no code')}): {error}")


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)


def _primary(error: sqlite3.Error) -> int:
    return _code(error) & 0xFF
