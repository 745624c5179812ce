"""What PostgreSQL's errors mean to the service (docs/faults.md)."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors

from wholefeed.errors import OverloadedError, StorageFullError, StoreDamagedError, StoreError, WholefeedError

RETRY_AFTER_SECONDS: Final = 10
"""A server that was restarted, and a standby that was promoted, are there again by then."""

_REPEATED: Final = frozenset({"40001", "40P01", "23505"})
"""Serialization, deadlock; and a row that another replica made meanwhile, which is found the next time."""
_READ_ONLY: Final = "25006"
"""A standby that is not promoted yet, a server that is one now, or an administrator's will."""
_CHANGED: Final = "0A000"
"""A statement was prepared before another replica's migration had changed a table."""
_FULL: Final = frozenset({"53100", _READ_ONLY})
_DAMAGED: Final = frozenset({"XX001", "XX002"})
_BUSY_CLASSES: Final = ("08", "53", "57")
"""Connections, resources, an operator's intervention: statement timeouts, too."""
_BUSY: Final = frozenset({"55P03", "25P03", "40001", "40P01", "40003"})


def is_repeated(error: psycopg.Error) -> bool:
    """Tell whether the transaction may succeed when it is run again."""
    return error.sqlstate in _REPEATED


def is_stale(error: psycopg.Error) -> bool:
    """Tell whether a new connection may do what this one cannot, on a server that is well."""
    return error.sqlstate in (_READ_ONLY, _CHANGED)


def is_unusable(error: psycopg.Error) -> bool:
    """Tell whether another connection may do what this one cannot."""
    return is_stale(error) or _is_lost(error)


def translated(error: psycopg.Error) -> WholefeedError:
    """Return what the service raises for it."""
    state = error.sqlstate or ""
    if state in _FULL:
        return StorageFullError(f"the database cannot be written: {_message(error)}")
    if state in _DAMAGED:
        return StoreDamagedError(f"the database is damaged: {_message(error)}")
    if state in _BUSY or state.startswith(_BUSY_CLASSES) or _is_lost(error):
        return overloaded(f"the database cannot be asked now: {_message(error)}")
    return StoreError(f"the database failed ({state or 'no code'}): {_message(error)}")


def overloaded(message: str) -> OverloadedError:
    """Return the error of a database that cannot be asked now."""
    return OverloadedError(message, retry_after_seconds=RETRY_AFTER_SECONDS)


def _is_lost(error: psycopg.Error) -> bool:
    """Tell whether there is no connection, or none any more: libpq gives no code for that."""
    return error.sqlstate is None and isinstance(error, psycopg.OperationalError | errors.InterfaceError)


def on_one_line(error: Exception) -> str:
    """Return what an error says; that of libpq has several lines."""
    return _joined(str(error)) or type(error).__name__


def _message(error: psycopg.Error) -> str:
    """Return the error on one line, without its detail, which quotes what was to be stored."""
    return _joined(error.diag.message_primary or "") or on_one_line(error)


def _joined(text: str) -> str:
    return " ".join(text.split())
