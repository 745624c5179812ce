"""Copy a SQLite database into another one, so that a copy that was broken off goes on where it stands.

    moved = move(source, target, say=print)      # Moved(tables=…, rows=…)

At the end both sides are read and compared, table by table; only then the copy is a database that servers
open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from wholefeed.errors import StoreError
from wholefeed.store.moving.digest import Digest
from wholefeed.store.moving.plan import ROWS_AT_MOST, Stand, Table, Values, batches, read_key, write_key
from wholefeed.store.moving.source import Source

SAY_SECONDS: Final = 2.0
"""Between two lines about one table."""

Say = Callable[[str], None]


class Moved(NamedTuple):
    """What a copy came to."""

    tables: int
    rows: int


class Target(Protocol):
    """What is copied into: `wholefeed.store.moving.target.Target`."""

    def begin(self, mark: str, tables: Sequence[Table]) -> Mapping[str, Stand]:
        """Begin a copy, or go on with it; return how far each table has come."""

    def put(self, table: Table, rows: Sequence[Values], stand: Stand) -> None:
        """Add rows to a table, and note how far it has come with them; all of it or nothing."""

    def digest(self, table: Table) -> Digest:
        """Return what a table holds, read back."""

    def numbered(self, table: Table) -> list[str]:
        """Return the columns of a table that the database gives numbers to."""

    def finish(self, numbers: Mapping[tuple[str, str], int]) -> None:
        """Make it a database that servers open."""


def move(source: Source, target: Target, *, say: Say, rows_at_most: int = ROWS_AT_MOST) -> Moved:
    """Copy what is missing, compare all of it, and finish.

    Args:
        source: What is copied.
        target: Where to.
        say: Told how it goes on, a line at a time.
        rows_at_most: In a transaction of the target.

    Raises:
        StoreError: A side failed, or the two differ; the copy stays unfinished.
    """
    stands = target.begin(source.mark, source.tables)
    if any(stand.rows for stand in stands.values()):
        say(f"goes on after {sum(stand.rows for stand in stands.values()):,} rows")
    for table in source.tables:
        _copy(source, target, table, stands.get(table.name, Stand()), say, rows_at_most)
    rows = sum(_compare(source, target, table, say) for table in source.tables)
    target.finish(
        {
            (table.name, column): source.last_number(table, column)
            for table in source.tables
            for column in target.numbered(table)
        }
    )
    return Moved(len(source.tables), rows)


def _copy(source: Source, target: Target, table: Table, stand: Stand, say: Say, rows_at_most: int) -> None:
    if stand.is_whole:
        return
    total, said_at = source.count(table), time.monotonic()
    key_at = len(table.columns)
    rows = source.rows(table, None if stand.last is None else read_key(stand.last))
    for batch in batches(rows, rows_at_most=rows_at_most):
        stand = Stand(stand.rows + len(batch), write_key(batch[-1][key_at:]))
        target.put(table, batch, stand)
        if time.monotonic() - said_at > SAY_SECONDS:
            said_at = time.monotonic()
            say(f"{table.name}: {stand.rows:,} of {total:,} rows")
    target.put(table, [], Stand(stand.rows, stand.last, is_whole=True))
    say(f"{table.name}: {stand.rows:,} rows copied")


def _compare(source: Source, target: Target, table: Table, say: Say) -> int:
    """Compare a table as both sides hold it; return its rows."""
    ours, theirs = source.digest(table), target.digest(table)
    if ours != theirs:
        raise StoreError(
            f"{table.name} is not what it was: {ours.rows:,} rows ({ours.hex[:12]}) in the SQLite database,"
            f" {theirs.rows:,} ({theirs.hex[:12]}) in the copy, which stays unfinished"
        )
    say(f"{table.name}: {ours.rows:,} rows compared, digest {ours.hex[:12]}")
    return ours.rows
