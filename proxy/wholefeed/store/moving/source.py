"""The SQLite database that is copied: nobody else may use it meanwhile, and nothing in it is changed."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from wholefeed.errors import StoreError, StoreUnusableError
from wholefeed.store.migrations import read_migrations
from wholefeed.store.moving.digest import Digest
from wholefeed.store.moving.plan import ROW_ID, Table, Values, in_order, rows_after
from wholefeed.store.sqlite.migrate import inspect, locked, readonly_uri

_LEFT_OUT: Final = frozenset({"probe"})
"""Tables that hold nothing: what a full volume is tried with."""
_TABLES: Final = """
    SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
"""
_STATE: Final = """
    SELECT count(*), max(id), sum(revision), sum(published_revision), max(checked_at), max(asked_at),
        max(modified_at)
    FROM feed
"""
_BUSY_SECONDS: Final = 5.0


class Source:
    """An open database, as it was when it was opened."""

    def __init__(self, db: sqlite3.Connection, version: int) -> None:
        self._db = db
        self.version = version
        """Of its schema."""
        names = [name for (name,) in db.execute(_TABLES) if name not in _LEFT_OUT]
        self.tables = in_order(self._table(name) for name in names)
        """In an order in which they can be copied."""

    @property
    def mark(self) -> str:
        """What tells it from other databases, and from itself when it has been worked in."""
        numbers = self._db.execute("SELECT name, seq FROM sqlite_sequence ORDER BY name").fetchall()
        told = repr([self.version, *self._db.execute(_STATE).fetchone(), *numbers])
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    def count(self, table: Table) -> int:
        """Return how many rows a table has."""
        return int(self._db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0])  # noqa: S608

    def rows(self, table: Table, after: Values | None = None) -> Iterator[Values]:
        """Give the rows behind a key, each with its own key behind it.

        Raises:
            StoreError: A text in it is none, or the file is damaged.
        """
        try:
            # `yield from` would close the cursor with the generator, which may be after the connection
            for row in self._db.execute(*rows_after(table, after)):  # noqa: UP028
                yield row
        except (sqlite3.Error, UnicodeDecodeError) as exc:
            raise StoreError(f"cannot read {table.name} of the SQLite database: {exc}") from exc

    def digest(self, table: Table) -> Digest:
        """Return what a table holds."""
        digest, width = Digest(), len(table.columns)
        for row in self.rows(table):
            digest.add(row[:width])
        return digest

    def last_number(self, table: Table, column: str) -> int:
        """Return the highest number that a column was ever given."""
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
            key=tuple(column for _, column in key) or (ROW_ID,),
            parents=frozenset(parent for _, _, parent, *_ in references),
        )


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open a database that has this version's schema, for reading, and keep every other process out.

    Raises:
        StoreUnusableError: It is not there, not of this version, none of this program's, or in use.
        StoreError: SQLite failed.
    """
    if not path.exists():
        raise StoreUnusableError(
            f"nothing to move: there is no database {path} (store.path, WHOLEFEED_STORE_PATH)"
        )
    with locked(path):
        newest = read_migrations()[-1].version
        if (version := inspect(path, newest)) < newest:
            raise StoreUnusableError(
                f"expected schema {newest} in {path}, got {version}: first run `wholefeed migrate` on it,"
                " without store.url"
            )
        try:
            with closing(_connect(path)) as db:
                yield Source(db, version)
        except sqlite3.Error as exc:
            raise StoreError(f"cannot read {path}: {exc}") from exc


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(readonly_uri(path), uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    db.text_factory = _text
    db.execute("BEGIN")  # all that is read is of one moment
    return db


def _text(value: bytes) -> Any:
    return value.decode("utf-8", "surrogatepass")
