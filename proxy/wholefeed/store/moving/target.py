"""The PostgreSQL database that is copied into. Where a copy stands is written there, with the rows.

The table `moving` is there as long as a copy is unfinished, and no server opens a database that has it. For
each table it says how many rows came and the key of the last one; both change in the transaction that brings
the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import sql

from wholefeed.errors import StoreError, StoreUnusableError
from wholefeed.store.moving.digest import Digest
from wholefeed.store.moving.plan import Stand, Table, Values
from wholefeed.store.postgres.faults import on_one_line
from wholefeed.store.postgres.texts import escape, unescape
from wholefeed.store.tables.replicas import COUNT_LIVE

_LOCK: Final = int.from_bytes(b"whfdmove")
"""Of whoever copies into the database."""
_MAKE: Final = """
    CREATE TABLE moving (
        source   text    NOT NULL,
        name     text    NOT NULL PRIMARY KEY,
        rows     bigint  NOT NULL,
        last     text,
        is_whole integer NOT NULL
    )
"""
_PUT: Final = """
    INSERT INTO moving (source, name, rows, last, is_whole) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (name) DO UPDATE SET rows = excluded.rows, last = excluded.last, is_whole = excluded.is_whole
"""
_COLUMNS: Final = """
    SELECT table_name, column_name, udt_name, is_identity = 'YES' OR column_default LIKE 'nextval(%'
    FROM information_schema.columns WHERE table_schema = current_schema()
"""
_SEEDED: Final = frozenset({"forgotten"})
"""Tables that a new database has a row in."""
_ROWS_AT_ONCE: Final = 500


class Target:
    """A database with this version's schema, that nobody else copies into."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db
        self._types: dict[str, dict[str, str]] = {}
        self._numbered: dict[str, list[str]] = {}
        self._mark = ""
        for table, column, kind, is_numbered in db.execute(_COLUMNS).fetchall():
            self._types.setdefault(table, {})[column] = kind
            if is_numbered:
                self._numbered.setdefault(table, []).append(column)

    def begin(self, mark: str, tables: Sequence[Table]) -> Mapping[str, Stand]:
        """Begin a copy, or go on with it; return how far each table has come.

        Raises:
            StoreUnusableError: It holds something else, or a server uses it.
        """
        self._mark = mark
        self._require_columns(tables)
        if self._db.execute(COUNT_LIVE).fetchone() != (0,):
            raise StoreUnusableError("the database is in use by a server: stop it until the copy is whole")
        if "moving" not in self._types:
            self._require_empty(tables)
            with self._db.transaction():
                self._db.execute(_MAKE)
                for name in _SEEDED:
                    self._db.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
                self._db.execute(_PUT, (mark, "", 0, None, 0))
        stands = self._db.execute("SELECT source, name, rows, last, is_whole FROM moving").fetchall()
        if {source for source, *_ in stands} != {mark}:
            raise StoreUnusableError(
                "the database holds an unfinished copy of another SQLite database, or of this one before it"
                " was worked in again: begin anew in an empty one (dropdb, createdb)"
            )
        return {name: Stand(rows, last, bool(is_whole)) for _, name, rows, last, is_whole in stands}

    def put(self, table: Table, rows: Sequence[Values], stand: Stand) -> None:
        """Add rows to a table, and note how far it has come with them; all of it or nothing."""
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
                        [escape(each) if isinstance(each, str) else each for each in row[:width]]
                    )
            cursor.execute(_PUT, (self._mark, table.name, stand.rows, stand.last, int(stand.is_whole)))

    def digest(self, table: Table) -> Digest:
        """Return what a table holds, read back."""
        query = sql.SQL("SELECT {} FROM {}").format(
            sql.SQL(", ").join(map(sql.Identifier, table.columns)), sql.Identifier(table.name)
        )
        digest = Digest()
        with self._db.transaction(), self._db.cursor(name="moved", binary=True) as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            for row in cursor.execute(query):
                digest.add(unescape(each) if isinstance(each, str) else each for each in row)
        return digest

    def numbered(self, table: Table) -> list[str]:
        """Return the columns of a table that the database gives numbers to."""
        return self._numbered.get(table.name, [])

    def finish(self, numbers: Mapping[tuple[str, str], int]) -> None:
        """Make it a database that servers open.

        Args:
            numbers: By table and column, the highest number that was ever given.
        """
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
                    f"the database is not empty: {table.name} has rows; name one that nothing was stored in"
                )


@contextmanager
def opened(url: str) -> Iterator[Target]:
    """Open a database whose schema is current, and keep others from copying into it.

    Raises:
        StoreUnusableError: Somebody else copies into it.
        StoreError: It cannot be reached, or failed; what it said.
    """
    try:
        with psycopg.connect(url, autocommit=True, application_name="wholefeed migrate") as db:
            if db.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone() != (True,):
                raise StoreUnusableError("another process copies into the database")
            yield Target(db)
    except psycopg.Error as exc:
        raise StoreError(f"PostgreSQL: {on_one_line(exc)}") from exc
