"""SQLite that fails when a test says so: each statement of the store's connections is counted.

    faults = SqliteFaults()
    monkeypatch.setattr(connection, "connect", faults.connect)
    faults.arm(17, "SQLITE_FULL", for_good=True)   # the 17th from now on, and all that follow
    ...
    faults.heal()

This and `Connections` know the connections themselves, for settings that nothing else reaches. `rows` looks
into a database from outside, and `check_database` at its invariants.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from wholefeed.core.compose.weaving import Members
from wholefeed.store import sqlite_file

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_connect = sqlite_file.connect

MESSAGES = {
    "SQLITE_FULL": "database or disk is full",
    "SQLITE_IOERR": "disk I/O error",
    "SQLITE_BUSY": "database is locked",
    "SQLITE_CORRUPT": "database disk image is malformed",
    "SQLITE_READONLY": "attempt to write a readonly database",
}
"""The errors that can be armed, with SQLite's messages."""

ONLY_WRITING = frozenset({"SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR_FSYNC"})
"""Errors that no reading connection can meet."""


READING = r"FROM block(_rest)?\b"
"""A statement that reads a piece of a publication."""
PUBLISHING = r"INTO segment\b"
"""A statement that publishes a feed; its documents are stored before."""


def sqlite_error(name: str) -> sqlite3.Error:
    """The standard library's exception for an error of SQLite."""
    kind = sqlite3.DatabaseError if name == "SQLITE_CORRUPT" else sqlite3.OperationalError
    error = kind(MESSAGES["SQLITE_IOERR" if name.startswith("SQLITE_IOERR") else name])
    error.sqlite_errorname = name
    error.sqlite_errorcode = getattr(sqlite3, name)
    return error


class Connections:
    """Knows the connections made through `connect`."""

    def __init__(self) -> None:
        self._made: list[sqlite_file.SqliteConnection] = []

    async def connect(self, database: str, **options: Any) -> sqlite_file.SqliteConnection:
        """Replace `connection.connect`."""
        made = await _connect(database, **options)
        self._made.append(made)
        return made

    @property
    def writer(self) -> sqlite_file.SqliteConnection:
        """The first connection, which a store writes with."""
        return self._made[0]

    @property
    def are_in_transaction(self) -> bool:
        """Whether any is in a transaction."""
        return any(map(_is_in_transaction, self._made))


class SqliteFaults(Connections):
    """Counts the statements of all connections made through `connect`, and fails the armed ones."""

    def __init__(self) -> None:
        super().__init__()
        self.statements = 0
        """Since the last `arm` or `count`, of those that the armed error can meet."""
        self.failed = 0
        self._at = 0
        self._name: str | Exception = ""
        self._for_good = False
        self._late_commit = False
        self._only = ""
        self._held: Hold | None = None

    async def connect(self, database: str, **options: Any) -> sqlite_file.SqliteConnection:
        """Replace `connection.connect`."""
        return await super().connect(database, factory=self._factory, **options)

    def arm(
        self,
        at: int,
        name: str | Exception,
        *,
        for_good: bool = False,
        late_commit: bool = False,
        only: str = "",
    ) -> None:
        """Fail the statement with that number, counted from now from 1.

        Args:
            at: The number.
            name: One of `MESSAGES`, a kind of SQLITE_IOERR, or a defect.
            for_good: The ones behind it fail, too, until `heal`.
            late_commit: Only COMMITs are counted, and it is done before it is told to have failed.
            only: Only statements are counted that this pattern is found in.
        """
        self.statements = self.failed = 0
        self._at, self._name, self._for_good, self._late_commit = at, name, for_good, late_commit
        self._only = only

    def heal(self) -> None:
        """Fail nothing any more, and count from nothing."""
        self.arm(0, self._name)

    @contextmanager
    def held(self, only: str) -> Iterator[Hold]:
        """Let the first statement matching this pattern wait, as on a slow disk."""
        self._held = Hold(only)
        try:
            yield self._held
        finally:
            self._held.release()
            self._held = None

    def _factory(self, *args: Any, **options: Any) -> sqlite3.Connection:
        return _Connection(self, *args, **options)

    def is_hit(self, sql: str, *, writes: bool) -> bool:
        """Count a statement; return whether it fails."""
        if (self._name in ONLY_WRITING and not writes) or (self._late_commit and sql != "COMMIT"):
            return False
        if self._only and not re.search(self._only, sql):
            return False
        self.statements += 1
        hit = self._at and (self.statements == self._at or (self._for_good and self.statements > self._at))
        self.failed += bool(hit)
        return bool(hit)

    def failing(self, sql: str, *, writes: bool, run: Any) -> Any:
        """Run a statement, or fail it."""
        if self._held is not None:
            self._held.pass_through(sql)
        if not self.is_hit(sql, writes=writes):
            return run()
        if self._late_commit:
            run()
        raise self._name if isinstance(self._name, Exception) else sqlite_error(self._name)


class Hold:
    """Holds the first statement of a kind back, in a thread of the store."""

    def __init__(self, only: str) -> None:
        self._only = only
        self._has_come, self._may_go = threading.Event(), threading.Event()

    async def reached(self) -> None:
        """Wait until it has come."""
        async with asyncio.timeout(300):
            while not self._has_come.is_set():
                await asyncio.sleep(0.005)

    def release(self) -> None:
        self._may_go.set()

    def pass_through(self, sql: str) -> None:
        """Wait here if it is the one."""
        if not self._has_come.is_set() and re.search(self._only, sql):
            self._has_come.set()
            assert self._may_go.wait(30), "it was never let go"


def _is_in_transaction(db: sqlite_file.SqliteConnection) -> bool:
    try:
        return db.in_transaction
    except ValueError:  # closed
        return False


class _Connection(sqlite3.Connection):
    def __init__(self, faults: SqliteFaults, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._faults = faults
        self._writes = "mode=rw" in str(args[0])

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        run = super().execute
        found: sqlite3.Cursor = self._faults.failing(sql, writes=self._writes, run=lambda: run(sql, *args))
        return found

    def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
        run = super().executemany
        found: sqlite3.Cursor = self._faults.failing(sql, writes=self._writes, run=lambda: run(sql, *args))
        return found


def rows(path: Path, sql: str) -> list[Any]:
    """A statement's rows, or its change, on a new connection."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        return db.execute(sql).fetchall()


def check_database(path: Path) -> None:
    """Assert that the database is sound and that nothing in it is half-written."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        check_rows(lambda sql: db.execute(sql).fetchall())


def check_rows(ask: Callable[[str], list[tuple[Any, ...]]]) -> None:
    """Assert that nothing is half-written, on either engine.

    Every document has its body, whole, and its entries; every live entry stands in a published segment, or
    its document is marked as not yet published (dirty).
    """
    documents = ask(
        "SELECT d.id, d.body_bytes, d.entries, b.length, b.coded,"
        " (SELECT count(*) FROM entry AS e WHERE e.document = d.id)"
        " FROM document AS d LEFT JOIN body AS b ON b.document = d.id"
    )
    for number, body_bytes, entries, length, coded, counted in documents:
        assert coded is not None, f"document {number} has no body"
        assert len(zstd.decompress(coded)) == length == body_bytes
        assert counted == entries, f"document {number} has {counted} of {entries} entries"
    # Segments of a collected feed hold entries of any document (R20): its documents have none of their own.
    woven = ask(
        "SELECT m.packed FROM member AS m JOIN segment AS s ON s.id = m.segment WHERE s.position IS NOT NULL"
    )
    members = {(each.document, each.ordinal) for (packed,) in woven for each in Members.read(bytes(packed))}
    clean = ask(
        "SELECT e.document, e.ordinal FROM entry AS e JOIN document AS d ON d.id = e.document"
        " LEFT JOIN segment AS s ON s.id = d.segment"
        " WHERE d.rank IS NOT NULL AND d.is_dirty = 0 AND e.is_live = 1 AND s.position IS NULL"
    )
    assert set(clean) <= members, "live entries of clean documents that stand in no segment"
    assert ask("SELECT id FROM segment WHERE id NOT IN (SELECT segment FROM block)") == []
