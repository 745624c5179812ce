"""Transfer of a SQLite database to PostgreSQL, which continues after an interruption.

Servers open the new database only after a comparison of all rows.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from wholefeed.errors import StoreError, StoreUnusableError
from wholefeed.store.migrations import read_migrations
from wholefeed.store.postgres_connection import escape_text, on_one_line, unescape_text
from wholefeed.store.sqlite_file import inspect, lock_database, readonly_uri
from wholefeed.store.tables.leases import COUNT_LIVE

Say = Callable[[str], None]
Values = Sequence[Any]
# Rows in one transaction of the target.
ROWS_AT_MOST: Final = 5_000
_SAY_SECONDS: Final = 2.0


class TransferResult(NamedTuple):
    tables: int
    rows: int


class TableProgress(NamedTuple):
    rows: int = 0
    # Rows are copied in the order of a key. This is the last copied row's key, from `write_key`.
    last: str | None = None
    is_whole: bool = False


def transfer_rows(
    source: TransferSource, target: TransferTarget, *, say: Say, rows_at_most: int = ROWS_AT_MOST
) -> TransferResult:
    """Copy the missing rows, compare all, and finish. Call `say` with each line of progress.

    Raises:
        StoreError: A side failed, or the two differ; the transfer stays unfinished.
    """
    stands = target.begin(source.mark, source.tables)
    if any(stand.rows for stand in stands.values()):
        say(f"goes on after {sum(stand.rows for stand in stands.values()):,} rows")
    for table in source.tables:
        _copy(source, target, table, stands.get(table.name, TableProgress()), say, rows_at_most)
    rows = sum(_compare(source, target, table, say) for table in source.tables)
    target.finish(
        {
            (table.name, column): source.last_number(table, column)
            for table in source.tables
            for column in target.numbered.get(table.name, ())
        }
    )
    return TransferResult(len(source.tables), rows)


def _copy(
    source: TransferSource,
    target: TransferTarget,
    table: Table,
    stand: TableProgress,
    say: Say,
    rows_at_most: int,
) -> None:
    if stand.is_whole:
        return
    total, said_at = source.count(table), time.monotonic()
    key_at = len(table.columns)
    rows = source.rows(table, None if stand.last is None else read_key(stand.last))
    for batch in batches(rows, rows_at_most=rows_at_most):
        stand = TableProgress(stand.rows + len(batch), write_key(batch[-1][key_at:]))
        target.put(table, batch, stand)
        if time.monotonic() - said_at > _SAY_SECONDS:
            said_at = time.monotonic()
            say(f"{table.name}: {stand.rows:,} of {total:,} rows")
    target.put(table, [], stand._replace(is_whole=True))
    say(f"{table.name}: {stand.rows:,} rows copied")


def _compare(source: TransferSource, target: TransferTarget, table: Table, say: Say) -> int:
    ours = digest_of(row[: len(table.columns)] for row in source.rows(table))
    theirs = digest_of(target.rows(table))
    if ours != theirs:
        raise StoreError(
            f"{table.name} is not what it was: {ours.rows:,} rows ({ours.hex[:12]}) in the SQLite database,"
            f" {theirs.rows:,} ({theirs.hex[:12]}) in the copy, which stays unfinished"
        )
    say(f"{table.name}: {ours.rows:,} rows compared, digest {ours.hex[:12]}")
    return ours.rows


# Tables and batches to copy


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """Columns of a unique key, or else SQLite's row number."""
    parents: frozenset[str] = frozenset()


def order_by_parents(tables: Iterable[Table]) -> list[Table]:
    # Each table follows those it refers to.
    named = {table.name: table for table in sorted(tables, key=lambda table: table.name)}
    parents = {name: sorted(table.parents & named.keys() - {name}) for name, table in named.items()}
    return [named[name] for name in TopologicalSorter(parents).static_order()]


def rows_after(table: Table, key: Values | None) -> tuple[str, Values]:
    """Return the query for the rows after a key, in key order; each row ends with its key."""
    order, values = ", ".join(table.key), key or ()
    # sqlite3 takes no lone surrogates in a text, but in bytes
    marks = ", ".join("CAST(? AS TEXT)" if isinstance(each, str) else "?" for each in values)
    where = f" WHERE ({order}) > ({marks})" if values else ""
    columns = ", ".join([*table.columns, *table.key])
    bound = [each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each for each in values]
    return f"SELECT {columns} FROM {table.name}{where} ORDER BY {order}", bound  # noqa: S608 - its own names


_BYTES_AT_MOST: Final = 4 << 20
_VALUE_BYTES: Final = 8


def batches(
    rows: Iterable[Values], *, rows_at_most: int = ROWS_AT_MOST, bytes_at_most: int = _BYTES_AT_MOST
) -> Iterator[list[Values]]:
    """Yield rows in batches. A row larger than the limit is a batch by itself."""
    batch: list[Values] = []
    batch_bytes = 0
    for row in rows:
        row_bytes = sum(len(each) if isinstance(each, str | bytes) else _VALUE_BYTES for each in row)
        if batch and (len(batch) >= rows_at_most or batch_bytes + row_bytes > bytes_at_most):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(row)
        batch_bytes += row_bytes
    if batch:
        yield batch


def write_key(key: Values) -> str:
    return json.dumps([{"hex": each.hex()} if isinstance(each, bytes) else each for each in key])


def read_key(text: str) -> Values:
    return [bytes.fromhex(each["hex"]) if isinstance(each, dict) else each for each in json.loads(text)]


# A digest of a table that is the same in both databases


class Digest(NamedTuple):
    rows: int
    hex: str


def digest_of(rows: Iterable[Iterable[Any]]) -> Digest:
    """Return the sum of the rows' SHA-256 (modulo 2**256), independent of the order of rows."""
    # The sum detects every accident, but not deliberately chosen rows.
    number = total = 0
    for row in rows:
        number += 1
        total += int.from_bytes(hashlib.sha256(b"".join(map(_pack_value, row))).digest())
    return Digest(number, f"{total % (1 << 256):064x}")


_DOUBLE: Final = struct.Struct(">d")
_LENGTH: Final = struct.Struct(">Q")


def _pack_value(value: Any) -> bytes:
    # Different rows always have different bytes.
    match value:
        case None:
            return b"N"
        case int():
            return b"I%d;" % value
        case float():
            return b"F" + _DOUBLE.pack(value)
        case str():
            text = value.encode("utf-8", "surrogatepass")
            return b"T" + _LENGTH.pack(len(text)) + text
        case bytes():
            return b"B" + _LENGTH.pack(len(value)) + value
        case _:
            raise TypeError(f"expected what a database holds, got {type(value).__name__}")


# The SQLite database to copy


_BUSY_SECONDS: Final = 5.0


@contextmanager
def open_source(path: Path) -> Iterator[TransferSource]:
    """Open a database with this version's schema for reading, and keep all other processes out.

    Raises:
        StoreUnusableError: The database is missing, of another version or program, or in use.
        StoreError: SQLite failed.
    """
    if not path.exists():
        raise StoreUnusableError(
            f"nothing to move: there is no database {path} (store.path, WHOLEFEED_STORE_PATH)"
        )
    with lock_database(path):
        newest = read_migrations()[-1].version
        if (version := inspect(path, newest)) < newest:
            raise StoreUnusableError(
                f"expected schema {newest} in {path}, got {version}: first run `wholefeed migrate` on it,"
                " without store.url"
            )
        try:
            uri = readonly_uri(path)
            with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
                db.text_factory = lambda value: value.decode("utf-8", "surrogatepass")
                db.execute("BEGIN")  # all reads see one moment
                yield TransferSource(db, version)
        except sqlite3.Error as exc:
            raise StoreError(f"cannot read {path}: {exc}") from exc


_ROW_ID: Final = "rowid"
# Tables without data, used to probe a full volume.
_LEFT_OUT: Final = frozenset({"probe"})
_TABLES: Final = """
    SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
"""
_STATE: Final = """
    SELECT count(*), max(id), sum(revision), sum(published_revision), max(checked_at), max(asked_at),
        max(modified_at)
    FROM feed
"""


class TransferSource:
    def __init__(self, db: sqlite3.Connection, version: int) -> None:
        self._db = db
        names = [name for (name,) in db.execute(_TABLES) if name not in _LEFT_OUT]
        self.tables = order_by_parents(self._table(name) for name in names)
        numbers = db.execute("SELECT name, seq FROM sqlite_sequence ORDER BY name").fetchall()
        told = repr([version, *db.execute(_STATE).fetchone(), *numbers])
        self.mark = hashlib.sha256(told.encode()).hexdigest()[:32]
        """Digest that distinguishes this database from others and from its own later states."""

    def count(self, table: Table) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0])  # noqa: S608

    def rows(self, table: Table, after: Values | None = None) -> Iterator[Values]:
        """Yield the rows after a key, each followed by its own key."""
        try:
            # `yield from` would close the cursor with the generator, which may be after the connection
            for row in self._db.execute(*rows_after(table, after)):  # noqa: UP028
                yield row
        except (sqlite3.Error, UnicodeDecodeError) as exc:
            raise StoreError(f"cannot read {table.name} of the SQLite database: {exc}") from exc

    def last_number(self, table: Table, column: str) -> int:
        """Return the highest number ever assigned to a column, deleted rows included."""
        highest = self._db.execute(f"SELECT coalesce(max({column}), 0) FROM {table.name}").fetchone()[0]  # noqa: S608
        given = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table.name,)).fetchone()
        return max(int(highest), int(given[0]) if given else 0)

    def _table(self, name: str) -> Table:
        columns = self._db.execute(f"PRAGMA table_info({name})").fetchall()
        key = sorted((place, column) for _, column, *_, place in columns if place)
        references = self._db.execute(f"PRAGMA foreign_key_list({name})").fetchall()
        return Table(
            name=name,
            columns=tuple(column for _, column, *_ in columns),
            key=tuple(column for _, column in key) or (_ROW_ID,),
            parents=frozenset(parent for _, _, parent, *_ in references),
        )


# The PostgreSQL database to fill


# Key for pg_advisory_lock(), locked by a process that transfers into the database.
_LOCK: Final = int.from_bytes(b"whfdmove")


@contextmanager
def open_target(url: str) -> Iterator[TransferTarget]:
    """Open a database with the current schema, and keep other transfers out.

    Raises:
        StoreUnusableError: Another process transfers into it.
        StoreError: The database cannot be reached, or failed.
    """
    try:
        with psycopg.connect(url, autocommit=True, application_name="wholefeed migrate") as db:
            if db.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone() != (True,):
                raise StoreUnusableError("another process copies into the database")
            try:
                yield TransferTarget(db)
            finally:  # the server takes a moment to see that a connection has ended
                with suppress(psycopg.Error):
                    db.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
    except psycopg.Error as exc:
        raise StoreError(f"PostgreSQL: {on_one_line(exc)}") from exc


_MAKE_MOVING: Final = """
    CREATE TABLE moving (
        source   text    NOT NULL,
        name     text    NOT NULL PRIMARY KEY,
        rows     bigint  NOT NULL,
        last     text,
        is_whole integer NOT NULL
    )
"""
_PUT_STAND: Final = """
    INSERT INTO moving (source, name, rows, last, is_whole) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (name) DO UPDATE SET rows = excluded.rows, last = excluded.last, is_whole = excluded.is_whole
"""
_COLUMNS: Final = """
    SELECT table_name, column_name, udt_name, is_identity = 'YES' OR column_default LIKE 'nextval(%'
    FROM information_schema.columns WHERE table_schema = current_schema()
"""
# Tables with a row in every new database.
_SEEDED: Final = frozenset({"forgotten"})
_ROWS_AT_ONCE: Final = 500


class TransferTarget:
    """A database to fill. Servers open none with the table `moving`, which records the progress."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db
        self._types: dict[str, dict[str, str]] = {}
        # By table, the columns that the database numbers itself.
        self.numbered: dict[str, list[str]] = {}
        self._mark = ""
        for table, column, kind, is_numbered in db.execute(_COLUMNS).fetchall():
            self._types.setdefault(table, {})[column] = kind
            if is_numbered:
                self.numbered.setdefault(table, []).append(column)

    def begin(self, mark: str, tables: Sequence[Table]) -> Mapping[str, TableProgress]:
        """Begin or continue a transfer; return the progress of each table.

        Raises:
            StoreUnusableError: The database has other data, or a server uses it.
        """
        self._mark = mark
        self._require_columns(tables)
        if self._db.execute(COUNT_LIVE).fetchone() != (0,):
            raise StoreUnusableError("the database is in use by a server: stop it until the copy is whole")
        if "moving" not in self._types:
            self._require_empty(tables)
            with self._db.transaction():
                self._db.execute(_MAKE_MOVING)
                for name in _SEEDED:
                    self._db.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
                self._db.execute(_PUT_STAND, (mark, "", 0, None, 0))
        stands = self._db.execute("SELECT source, name, rows, last, is_whole FROM moving").fetchall()
        if {source for source, *_ in stands} != {mark}:
            raise StoreUnusableError(
                "the database holds an unfinished copy of another SQLite database, or of this"
                " one before it changed: begin anew in an empty database (dropdb, createdb)"
            )
        return {name: TableProgress(rows, last, bool(is_whole)) for _, name, rows, last, is_whole in stands}

    def put(self, table: Table, rows: Sequence[Values], stand: TableProgress) -> None:
        copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
            sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, table.columns))
        )
        types = [self._types[table.name][column] for column in table.columns]
        width = len(table.columns)
        with self._db.transaction(), self._db.cursor() as cursor:
            with cursor.copy(copy) as copying:
                copying.set_types(types)
                for row in rows:
                    copying.write_row(
                        [escape_text(each) if isinstance(each, str) else each for each in row[:width]]
                    )
            cursor.execute(_PUT_STAND, (self._mark, table.name, stand.rows, stand.last, int(stand.is_whole)))

    def rows(self, table: Table) -> Iterator[Values]:
        query = sql.SQL("SELECT {} FROM {}").format(
            sql.SQL(", ").join(map(sql.Identifier, table.columns)), sql.Identifier(table.name)
        )
        with self._db.transaction(), self._db.cursor(name="moved", binary=True) as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            for row in cursor.execute(query):
                yield [unescape_text(each) if isinstance(each, str) else each for each in row]

    def finish(self, numbers: Mapping[tuple[str, str], int]) -> None:
        """Make the database ready for servers; `numbers` are the highest ever assigned."""
        with self._db.transaction():
            for (table, column), number in numbers.items():
                if number:
                    place = sql.Identifier(table).as_string(self._db)
                    self._db.execute(
                        "SELECT setval(pg_get_serial_sequence(%s, %s), %s)", (place, column, number)
                    )
            self._db.execute("DROP TABLE moving")
        self._db.execute("ANALYZE")

    def _require_columns(self, tables: Sequence[Table]) -> None:
        for table in tables:
            missing = set(table.columns) - self._types.get(table.name, {}).keys()
            if missing:
                raise StoreUnusableError(
                    f"expected the columns of {table.name}, missing: {', '.join(sorted(missing))}"
                )

    def _require_empty(self, tables: Sequence[Table]) -> None:
        for table in tables:
            query = sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(table.name))
            if table.name not in _SEEDED and self._db.execute(query).fetchone() != (False,):
                raise StoreUnusableError(
                    f"the database is not empty: {table.name} has rows; name an empty database"
                )
