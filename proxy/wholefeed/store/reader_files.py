"""SQLite databases of feed readers, read for an import (I4); a hostile one costs a bounded time and memory.

The file is opened read-only and never changed. Nothing but ordinary tables with ordinary columns is read:
no view, trigger, virtual table, generated column or function of the file runs.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from wholefeed.core.parse.limits import ParseError
from wholefeed.core.saved.choosing import SavedMatch, choose_feed, url_keys, wanted_keys
from wholefeed.core.saved.databases import DATABASES
from wholefeed.core.saved.reader_tables import Attached, ReaderDatabase, Row
from wholefeed.core.saved.saved_entries import SavedEntry, SavedFeed, SavedFile, is_feed_url, string_of
from wholefeed.errors import ImportRefusedError

MAGIC: Final = b"SQLite format 3\0"


def is_database(start: bytes) -> bool:
    """Return whether a file begins as SQLite's do (SQLite, "Database File Format", 1.3)."""
    return start.startswith(MAGIC)


class ReadingLimits(NamedTuple):
    bytes: int
    """Text of the entries, all together."""
    entries: int
    seconds: float


def read_database(source: Path | bytes, urls: Sequence[str], limits: ReadingLimits) -> SavedMatch:
    """Return the entries of the feed with one of these URLs. Blocks.

    Raises:
        ImportRefusedError: Unreadable, of an unknown program or version, in use, or beyond a limit.
    """
    until = time.monotonic() + limits.seconds
    try:
        with closing(_open(source)) as connection:
            return _Reading(connection, limits, until).run(urls)
    except (sqlite3.Error, UnicodeDecodeError) as exc:  # the latter: of an error that names a broken name
        if time.monotonic() >= until:
            why = f"expected a database that can be read in {limits.seconds:g} s, got one that takes longer"
            raise ImportRefusedError(why, slug="too-costly") from exc
        why = f"expected a database that can be read, got an error: {exc}"
        raise ImportRefusedError(why, slug="unsupported-format") from exc


def match_database(body: bytes, urls: Sequence[str], limits: tuple[int, int, float]) -> SavedMatch:
    """Do the same as a job for a worker.

    Raises:
        ParseError: `read_database` refuses it.
    """
    try:
        return read_database(body, urls, ReadingLimits(*limits))
    except ImportRefusedError as exc:
        raise ParseError(str(exc), slug=exc.slug) from exc


def _open(source: Path | bytes) -> sqlite3.Connection:
    if isinstance(source, bytes):
        connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        try:
            connection.deserialize(_without_wal(source))
        except BaseException:
            connection.close()
            raise
        return connection
    place = quote(os.fsencode(source.absolute()))
    return sqlite3.connect(
        f"file:{place}?mode=ro&immutable=1", uri=True, isolation_level=None, cached_statements=0
    )


def require_unused(path: Path) -> None:
    """Refuse a file with changes in a log or journal beside it.

    Raises:
        ImportRefusedError: There is one.
    """
    place = os.path.realpath(path)  # programs write them beside the target of a link
    for suffix in ("-wal", "-journal"):
        beside = Path(place + suffix)
        if beside.exists() and beside.stat().st_size:
            raise ImportRefusedError(
                f"expected a database that no program uses, got one with changes in {beside.name}:"
                " end the program first",
                slug="unsupported-format",
            )


def _without_wal(body: bytes) -> bytes:
    """Mark a database as one without a write-ahead log: one in memory can have none."""
    return (
        body[:_VERSIONS] + b"\1\1" + body[_VERSIONS + 2 :]
        if body[_VERSIONS : _VERSIONS + 2] == b"\2\2"
        else body
    )


_VERSIONS: Final = 18
"""Offset of the write and read versions in the header."""


Columns = Mapping[str, frozenset[str]]
"""Columns by table."""


class _Reading:
    """One reading of a database."""

    def __init__(self, connection: sqlite3.Connection, limits: ReadingLimits, until: float) -> None:
        self._connection = connection
        self._limits = limits
        self._left_bytes = limits.bytes
        self._entries = 0
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        for limit, value in _SQLITE_LIMITS.items():
            connection.setlimit(limit, value)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limits.bytes, _LONGEST_VALUE))
        # checked every so many instructions of SQLite's machine, some ten thousandths of a second
        connection.set_progress_handler(lambda: time.monotonic() >= until, _INSTRUCTIONS)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        connection.set_authorizer(_authorise_listing)

    def run(self, urls: Sequence[str]) -> SavedMatch:
        tables = self._find_tables()
        database = self._recognise(tables)
        columns = {table: self._list_columns(table) for table in database.tables & tables}
        self._permit(columns)
        feeds = self._list_feeds(database)
        wanted = wanted_keys(urls)
        keys = {key for key, url in feeds.items() if url and wanted & url_keys(url)}
        # without one that matches, those without a URL may: their entries tell
        keys = keys or {key for key, url in feeds.items() if not url}
        found = [
            SavedFeed(url, list(self._read_entries(database, key, columns)) if key in keys else [], not url)
            for key, url in feeds.items()
        ]
        return choose_feed(SavedFile(database.program, found), urls)

    def _find_tables(self) -> frozenset[str]:
        return frozenset(string_of(row["name"]) for row in self._read_rows(_TABLES, (), _MOST_TABLES))

    def _recognise(self, tables: frozenset[str]) -> ReaderDatabase:
        alike = [each for each in DATABASES if {each.table, *each.others} <= tables]
        lacking = {each.program: self._find_lacking(each) for each in alike}
        for each in alike:
            if not lacking[each.program]:
                return each
        if alike:
            program, missing = next(iter(lacking.items()))
            text = f"expected a database of {program}, got another version of it, without {missing}"
        else:
            known = ", ".join(each.program for each in DATABASES)
            text = f"expected a database of one of {known}, got another"
        raise ImportRefusedError(text, slug="unsupported-format")

    def _find_lacking(self, database: ReaderDatabase) -> str:
        """Return a column that the database lacks; empty: none."""
        wanted = {**database.others, database.table: (*database.columns, database.feed)}
        for table, columns in wanted.items():
            known = self._list_columns(table)
            if missing := next((each for each in columns if each not in known), ""):
                return f"{table}.{missing}"
        return ""

    def _list_columns(self, table: str) -> frozenset[str]:
        """Return a table's columns, without computed ones."""
        rows = self._connection.execute(f"PRAGMA table_xinfo({table})")  # a name from `DATABASES`
        return frozenset(string_of(row["name"]) for row in rows if not row["hidden"])

    def _permit(self, columns: Columns) -> None:
        """Permit nothing but reading these columns."""

        def authorise(action: int, table: str | None, column: str | None, _: Any, inside: Any) -> int:
            known = columns.get(table or "", frozenset())
            # no column: of a table whose rows alone count
            is_read = action == sqlite3.SQLITE_READ and (column in known or (not column and bool(known)))
            is_fine = inside is None and (action == sqlite3.SQLITE_SELECT or is_read)
            return sqlite3.SQLITE_OK if is_fine else sqlite3.SQLITE_DENY

        self._connection.set_authorizer(authorise)

    def _list_feeds(self, database: ReaderDatabase) -> dict[str, str]:
        """Return the URLs of feeds by key; empty: the key is a service's number."""
        if database.urls is None:
            column = database.feed
            query = f"SELECT DISTINCT {column} FROM {database.table}"  # noqa: S608 - names from `DATABASES`
            keys = [string_of(row[column]) for row in self._read_rows(query, (), _MOST_FEEDS)]
            return {key: key if is_feed_url(key) else "" for key in keys}
        table, key, url = database.urls
        query = f"SELECT {key}, {url} FROM {table}"  # noqa: S608 - names from `DATABASES`
        rows = self._read_rows(query, (), _MOST_FEEDS)
        # Liferea's local commands and files are no feeds of a publisher
        return {string_of(row[key]): string_of(row[url]) for row in rows if is_feed_url(string_of(row[url]))}

    def _read_entries(self, database: ReaderDatabase, key: str, columns: Columns) -> Iterator[SavedEntry]:
        later = [each for each in database.later_columns if each in columns[database.table]]
        missing = dict.fromkeys(database.later_columns)
        attached = database.attached
        if attached is not None and not attached.tables <= columns.keys():
            attached = None
        names = ", ".join((*database.columns, *later))
        query = f"SELECT {names} FROM {database.table} WHERE {database.feed} = ?"  # noqa: S608 - likewise
        for row in self._read_rows(query, (key,)):
            self._entries += 1
            self._require_room()
            values: Row = missing | row
            further = [] if attached is None else self._read_attached(attached, values[attached.key])
            entry = database.read(values, further)
            if entry is not None:
                yield entry

    def _read_attached(self, attached: Attached, key: Any) -> list[Row]:
        names = ", ".join(f"a.{each}" for each in attached.values)
        source, where = f"{attached.table} AS a", f"a.{attached.column} = ?"
        if attached.by is not None:
            table, column, target = attached.by
            source = f"{table} AS b JOIN {source} ON a.{attached.column} = b.{target}"
            where = f"b.{column} = ?"
        query = f"SELECT {names} FROM {source} WHERE {where}"  # noqa: S608 - likewise
        return list(self._read_rows(query, (key,), _MOST_ATTACHED))

    def _read_rows(
        self, query: str, values: Sequence[Any], most: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield rows, each counted before the next is read."""
        for row in islice(self._connection.execute(query, values), most):
            found = dict(row)
            self._left_bytes -= sum(len(each) for each in found.values() if isinstance(each, str | bytes))
            self._require_room()
            yield found

    def _require_room(self) -> None:
        if self._entries > self._limits.entries or self._left_bytes < 0:
            raise ImportRefusedError(
                f"expected at most {self._limits.entries:,} entries with {self._limits.bytes:,} characters",
                slug="limit",
            )


def _authorise_listing(action: int, name: str | None, *_: Any) -> int:
    # a virtual table may claim a root page; its module cannot read the file then
    is_fine = (
        action == sqlite3.SQLITE_SELECT
        or (action == sqlite3.SQLITE_READ and name == "sqlite_master")
        or (action == sqlite3.SQLITE_PRAGMA and name == "table_xinfo")
    )
    return sqlite3.SQLITE_OK if is_fine else sqlite3.SQLITE_DENY


_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
_PRAGMAS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA query_only = ON",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16384",  # KiB
)
_SQLITE_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,  # also of each statement in the schema
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 2,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 8,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_LONGEST_VALUE: Final = 32 << 20
_INSTRUCTIONS: Final = 10_000
_MOST_TABLES: Final = 1000
_MOST_FEEDS: Final = 50_000
_MOST_ATTACHED: Final = 100
