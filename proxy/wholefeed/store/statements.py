"""One statement on a connection, for functions that run in its thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn, Self, TypeVar

from wholefeed.store.database import Database, Parameters, Row

_T = TypeVar("_T")

CLOCK: Final = "clock_seconds()"
"""PostgreSQL's own, epoch seconds: those of several machines differ."""


class Sql(str):
    """A statement as SQLite takes it, with its twin for PostgreSQL."""

    __slots__ = ("postgres",)
    postgres: str

    def __new__(cls, sqlite: str, postgres: str) -> Self:
        """Pair them."""
        made = super().__new__(cls, sqlite)
        made.postgres = postgres
        return made

    def __format__(self, _spec: str, /) -> NoReturn:
        """Refuse: what it was put into would have lost the twin."""
        raise TypeError(f"expected a whole statement, got a part: {self[:40]!r}")


def either(*, sqlite: str, postgres: str) -> Sql:
    """Return a statement that has to differ: the text for SQLite, with the one for PostgreSQL beside it."""
    return Sql(sqlite, postgres)


def inserting(table: str, columns: str, rows: int, row: str = "") -> str:
    """Return a statement that inserts so many rows, whose values are its parameters, row by row.

    Each step of a statement lets other threads run, and waits for its turn afterwards: for rows that come
    together one statement costs less than one of each.

    Args:
        table: The table.
        columns: Their names, with commas.
        rows: How many; few different numbers, since each makes a statement to be prepared and kept.
        row: The values of one where they are not the parameters as they stand.
    """
    row = row or ", ".join("?" * (columns.count(",") + 1))
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([f'({row})'] * rows)}"  # noqa: S608 - names


def fetch_all(db: Database, sql: str, parameters: Parameters | None = None) -> list[Row]:
    """Return all rows of a query."""
    return db.execute(sql, parameters or {}).fetchall()


def fetch_made(db: Database, sql: str, parameters: Parameters, make: Callable[[Row], _T]) -> list[_T]:
    """Return all rows of a query, each made into something else: no list of raw rows beside it."""
    return [make(row) for row in db.execute(sql, parameters)]


def fetch_one(db: Database, sql: str, parameters: Parameters | None = None) -> Row | None:
    """Return the first row of a query, or None."""
    rows = fetch_all(db, sql, parameters)
    return rows[0] if rows else None


def fetch_value(db: Database, sql: str, parameters: Parameters | None = None) -> Any:
    """Return the first column of a query's first row, or None."""
    row = fetch_one(db, sql, parameters)
    return None if row is None else row[0]


def run(db: Database, sql: str, parameters: Parameters | None = None) -> int:
    """Execute a statement that gives no rows. Returns how many rows it changed."""
    return db.execute(sql, parameters or {}).rowcount


def run_many(db: Database, sql: str, rows: Sequence[Parameters]) -> bool:
    """Execute a statement for each of these, which are often none: then not at all. Returns whether any."""
    if rows:
        db.executemany(sql, rows)
    return bool(rows)


def json_ids(ids: Iterable[int]) -> str:
    """Return numbers as the JSON that json_each() takes: a statement for any number of them."""
    return f"[{','.join(map(str, ids))}]"


def numbers_of(parameter: str) -> str:
    """Return what PostgreSQL has for json_each(): a part of a statement, whose column is `value`."""
    array = f"json_array_elements_text(CAST({parameter} AS json))"
    return f"(SELECT CAST(each.value AS bigint) AS value FROM {array} AS each (value)) AS numbers"  # noqa: S608
