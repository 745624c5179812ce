"""What the tables and both engines of the store share: statements, rows, and how the database fares.

    row = fetch_one(db, "SELECT id FROM feed WHERE url = :url", {"url": url})
    run(db, either(sqlite="...", postgres="..."), values)

A `Database` is a connection within a transaction: the part of DB-API 2.0 (PEP 249) that `sqlite3` gives on a
connection itself. Statements are written for SQLite in the subset that PostgreSQL takes too, with parameters
`:name` or `?`. The functions here run in the connection's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from wholefeed.errors import StorageFullError, StoreDamagedError
from wholefeed.logs import get_logger

Parameters = Mapping[str, Any] | Sequence[Any]
_T = TypeVar("_T")


class Database(Protocol):
    """A connection within a transaction, for functions that run in its thread."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor: ...

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> object: ...


class Cursor(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchall(self) -> list[Any]: ...

    def fetchmany(self, size: int = ..., /) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Row(Protocol):
    """A row of a query: its values in order, and each by the name of its column."""

    def keys(self) -> list[str]: ...

    def __getitem__(self, key: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


def fetch_all(db: Database, sql: str, parameters: Parameters | None = None) -> list[Row]:
    return db.execute(sql, parameters or {}).fetchall()


def ask(
    db: Database, sql: str, parameters: Parameters | None, read: Callable[[Cursor], _T]
) -> Callable[[], _T]:
    """Ask a query, and return a function that waits for its result and reads it.

    Queries that are asked before the first result is read take one trip to a database elsewhere.
    """
    return partial(read, db.execute(sql, parameters or {}))


def fetch_one(db: Database, sql: str, parameters: Parameters | None = None) -> Row | None:
    rows = fetch_all(db, sql, parameters)
    return rows[0] if rows else None


def fetch_value(db: Database, sql: str, parameters: Parameters | None = None) -> Any:
    """Return the first column of a query's first row, or None."""
    row = fetch_one(db, sql, parameters)
    return None if row is None else row[0]


def run(db: Database, sql: str, parameters: Parameters | None = None) -> None:
    """Execute a statement that gives no rows; what it changes is not waited for."""
    db.execute(sql, parameters or {})


def run_counting(db: Database, sql: str, parameters: Parameters | None = None) -> int:
    """Execute a statement that gives no rows, and return how many it changed."""
    return db.execute(sql, parameters or {}).rowcount


def run_many(db: Database, sql: str, rows: Sequence[Parameters]) -> bool:
    """Execute a statement for each of these, which are often none: then not at all. Returns whether any."""
    if rows:
        db.executemany(sql, rows)
    return bool(rows)


# Statements that are made, or differ between the engines


TWINS: Final[dict[str, str]] = {}
"""What PostgreSQL is given in place of a whole statement, by what SQLite is."""


def either(*, sqlite: str, postgres: str) -> str:
    """Return a statement that has to differ, as SQLite takes it; PostgreSQL is given the other one.

    It is a whole statement: put into another one it would be SQLite's on both engines, and
    `wholefeed.store.postgres_connection.translate` refuses that.
    """
    TWINS[sqlite] = postgres
    return sqlite


def varied(sql: str, **words: tuple[str, str]) -> str:
    """Return a statement in which some words differ: as SQLite takes them, and as PostgreSQL does.

    varied("UPDATE segment SET retired_at = {now} WHERE feed = :feed", now=NOW)
    """
    sqlite, postgres = ({name: both[at] for name, both in words.items()} for at in range(2))
    return either(sqlite=sql.format_map(sqlite), postgres=sql.format_map(postgres))


NOW: Final = (":now", "clock_seconds()")
"""PostgreSQL's own clock, epoch seconds, where several machines share it: theirs differ."""


def inserting(table: str, columns: str, rows: int, row: str = "") -> str:
    """Return a statement that inserts so many rows, whose values are its parameters, row by row.

    Each step of a statement lets other threads run, and waits for its turn afterwards: for rows that come
    together one statement costs less than one of each. Each number of rows makes a statement to be prepared
    and kept, so there should be few. `row` is the values of one where they are not the parameters as they
    stand.
    """
    row = row or ", ".join("?" * (columns.count(",") + 1))
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([f'({row})'] * rows)}"  # noqa: S608 - names


def json_ids(ids: Iterable[int]) -> str:
    """Return numbers as the JSON that json_each() takes: a statement for any number of them."""
    return f"[{','.join(map(str, ids))}]"


# How the database fares


_log = get_logger()


class Condition:
    """What the errors of the database say about it as a whole (docs/faults.md rows 68 to 70).

    SOUND -> FULL      a write found the volume full or read-only
    FULL  -> SOUND     a write went through
    any   -> DAMAGED   the database was found malformed; nothing is written to it any more until a restart,
                       since writing on could spread the damage; what can still be read is served

    A store has one; its connections tell it how they fared.
    """

    def __init__(self) -> None:
        self.is_full = False
        """Whether the last write found the volume full or read-only."""
        self._damage = ""

    @property
    def is_sound(self) -> bool:
        """Whether the database can be written, as far as is known."""
        return not (self.is_full or self._damage)

    def require_sound(self) -> None:
        """Raise `StoreDamagedError` where the database is known to be damaged."""
        if self._damage:
            raise StoreDamagedError(self._damage)

    def has_written(self) -> None:
        if self.is_full:
            _log.info("store.recovered")
        self.is_full = False

    def judge(self, error: Exception) -> None:
        if isinstance(error, StorageFullError) and not self.is_full:
            self.is_full = True
            _log.error("store.full", error=str(error))
        if isinstance(error, StoreDamagedError) and not self._damage:
            self._damage = str(error)
            _log.error("store.damaged", error=self._damage)


class Sizes(NamedTuple):
    """How large a store is."""

    used_bytes: int
    """What is stored, without what waits to be deleted."""
    file_bytes: int
    """With what is not yet in the file, and with what is free in it."""
    free_bytes: int | None
    """On the volume; None: nobody knows here."""


@dataclass(slots=True)
class Traffic:
    """What goes on between the store and its database, in numbers for `/metrics`.

    SQLite has nothing to count, for its file is never away.
    """

    connections: int = 0
    """How many are open."""
    busy: int = 0
    """How many of them do something."""
    waiting: int = 0
    """How many pieces of work wait for one of them."""
    repeated: int = 0
    """Transactions that were begun again."""
    lost: int = 0
    """Connections that broke off, or could not be made."""
    notices_lost: int = 0
    """How often the connection that listens broke off."""
