from __future__ import annotations

import sqlite3

import pytest

from wholefeed.errors import OverloadedError, StorageFullError, StoreDamagedError, StoreError, WholefeedError
from wholefeed.store.sqlite_file import is_interrupt, translated


def an_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    error.sqlite_errorname = f"code {code}"
    return error


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_BUSY, OverloadedError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, OverloadedError),
        (sqlite3.SQLITE_FULL, StorageFullError),
        (sqlite3.SQLITE_READONLY, StorageFullError),
        (sqlite3.SQLITE_READONLY_DBMOVED, StorageFullError),
        (sqlite3.SQLITE_IOERR_WRITE, StorageFullError),
        (sqlite3.SQLITE_IOERR_READ, StoreError),
        (sqlite3.SQLITE_CORRUPT, StoreDamagedError),
        (sqlite3.SQLITE_NOTADB, StoreDamagedError),
        (sqlite3.SQLITE_CONSTRAINT, StoreError),
    ],
)
def test_sqlites_errors_become_the_services(code: int, expected: type[WholefeedError]) -> None:
    """docs/faults.md rows 68, 69, 71."""
    assert type(translated(an_error(code))) is expected


def test_an_error_without_a_code_is_a_store_error() -> None:
    """An error of the sqlite3 module itself becomes a StoreError, so that the reader gets a problem
    document."""
    assert type(translated(sqlite3.ProgrammingError("closed"))) is StoreError


def test_an_interrupt_is_known() -> None:
    """A read that was interrupted because its reader left is told apart from a fault of the database."""
    assert is_interrupt(an_error(sqlite3.SQLITE_INTERRUPT))
    assert not is_interrupt(an_error(sqlite3.SQLITE_ERROR))
    assert not is_interrupt(ValueError())
