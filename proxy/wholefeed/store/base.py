"""Parts shared by the tables and both engines: statements, rows, and the state of the database.

Statements are SQLite's, in the subset that PostgreSQL accepts too, with parameters `:name` or `?`.
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
    """The part of DB-API 2.0 that a `sqlite3` connection has itself."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor: ...

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> object: ...


class Cursor(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchall(self) -> list[Any]: ...

    def fetchmany(self, size: int = ..., /) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Row(Protocol):
    def keys(self) -> list[str]: ...

    def __getitem__(self, key: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


def fetch_all(db: Database, sql: str, parameters: Parameters | None = None) -> list[Row]:
    return db.execute(sql, parameters or {}).fetchall()


def ask(
    db: Database, sql: str, parameters: Parameters | None, read: Callable[[Cursor], _T]
) -> Callable[[], _T]:
    """Send a query, and return a function that reads its result.

    Queries sent before the first result is read share one round trip to a remote database.
    """
    return partial(read, db.execute(sql, parameters or {}))


def fetch_one(db: Database, sql: str, parameters: Parameters | None = None) -> Row | None:
    rows = fetch_all(db, sql, parameters)
    return rows[0] if rows else None


def fetch_value(db: Database, sql: str, parameters: Parameters | None = None) -> Any:
    row = fetch_one(db, sql, parameters)
    return None if row is None else row[0]


def run(db: Database, sql: str, parameters: Parameters | None = None) -> None:
    """Execute a statement, and do not wait for its result."""
    db.execute(sql, parameters or {})


def run_counting(db: Database, sql: str, parameters: Parameters | None = None) -> int:
    return db.execute(sql, parameters or {}).rowcount


def run_many(db: Database, sql: str, rows: Sequence[Parameters]) -> bool:
    # Return whether there were any rows.
    if rows:
        db.executemany(sql, rows)
    return bool(rows)


# Statements from parts, and statements that differ between the engines


# PostgreSQL's statements, by their SQLite twins.
TWINS: Final[dict[str, str]] = {}


def either(*, sqlite: str, postgres: str) -> str:
    """Return SQLite's version of a whole statement; PostgreSQL executes the other one."""
    # `wholefeed.store.postgres_connection.translate` refuses it inside another statement, where SQLite's
    # would reach both engines.
    TWINS[sqlite] = postgres
    return sqlite


def vary_by_engine(sql: str, **words: tuple[str, str]) -> str:
    """Return a statement in which some words differ: (SQLite's, PostgreSQL's)."""
    sqlite, postgres = ({name: both[at] for name, both in words.items()} for at in range(2))
    return either(sqlite=sql.format_map(sqlite), postgres=sql.format_map(postgres))


NOW: Final = (":now", "clock_seconds()")
"""Epoch seconds, by PostgreSQL's own clock, since the clocks of several machines differ."""


def build_insert(table: str, columns: str, rows: int, row: str = "") -> str:
    """Return a statement that inserts this number of rows; `row` has SQL values other than parameters."""
    # Each step of a statement lets other threads run, so one for many rows is cheaper. Each number of rows
    # needs a prepared statement, so there should be few.
    row = row or ", ".join("?" * (columns.count(",") + 1))
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([f'({row})'] * rows)}"  # noqa: S608 - names


def json_ids(ids: Iterable[int]) -> str:
    """Return numbers as JSON for json_each(), so that one statement takes any number of them."""
    return f"[{','.join(map(str, ids))}]"


# State of the database


_log = get_logger()


class Condition:
    """The state of the database, judged by its errors (docs/faults.md rows 68 to 70).

    After damage nothing is written until a restart, since writing could spread it. Readable data is still
    served.
    """

    def __init__(self) -> None:
        self.is_full = False
        self._damage = ""

    @property
    def is_sound(self) -> bool:
        return not (self.is_full or self._damage)

    def require_sound(self) -> None:
        if self._damage:
            raise StoreDamagedError(self._damage)

    def note_success(self) -> None:
        # Damage stays.
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


class StoreSizes(NamedTuple):
    used_bytes: int
    """Without segments that await deletion."""
    file_bytes: int
    """With data not yet in the files, and free space in them."""
    free_bytes: int | None
    """Free space on the volume. None: unknown."""


@dataclass(slots=True)
class Traffic:
    """Counters for `/metrics`. SQLite counts nothing, since its file is never away."""

    connections: int = 0
    busy: int = 0
    waiting: int = 0
    """Pieces of work without a connection."""
    repeated: int = 0
    """Transactions that began again."""
    lost: int = 0
    """Connections that broke during a transaction."""
    notices_lost: int = 0
