"""The entries of documents as they come: many rows in one statement.

    entries.put(db, feed, [Coming(document, packed, is_live=1)])

A row a statement, SQLite's thread waited for its turn a hundred times a document (`inserting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, count, islice, repeat
from operator import add
from typing import Final, NamedTuple

from wholefeed.core.jobs.packed import PackedEntries
from wholefeed.store.database import Database
from wholefeed.store.statements import Sql, either, inserting, run

_MOST: Final = 256
"""Rows of one statement: SQLite is at it for half a millisecond."""
_COLUMNS: Final = (
    "document, feed, is_live, ordinal, identity, updated_at, order_at, document_updated_at, size"
)
_ROW: Final = "?, ?, ?, ?, ?, {0}, {0}, {0}, ?"


class Coming(NamedTuple):
    """The entries of a document that has none."""

    document: int
    entries: PackedEntries
    is_live: int | None
    """As it is stored."""


def put(db: Database, feed: int, documents: Sequence[Coming]) -> None:
    """Put the entries of documents of a feed."""
    rows = chain.from_iterable(_rows(feed, each) for each in documents)
    left = sum(len(each.entries) for each in documents)
    while left:
        # A power of two, so that there are few statements to prepare.
        taken = min(_MOST, 1 << (left.bit_length() - 1))
        run(db, _statement(taken), list(chain.from_iterable(islice(rows, taken))))
        left -= taken


def _rows(feed: int, coming: Coming) -> Iterator[tuple[object, ...]]:
    document, entries, is_live = coming
    places: Iterable[tuple[object, ...]] = zip(
        repeat(document), repeat(feed), repeat(is_live), count(), strict=False
    )
    return map(add, places, entries.records())


@cache
def _statement(rows: int) -> Sql:
    """Return what puts so many rows."""
    return either(
        # It stores what is not a number as NULL (https://www.sqlite.org/floatingpoint.html).
        sqlite=inserting("entry", _COLUMNS, rows),
        postgres=inserting("entry", _COLUMNS, rows, _ROW.format("nullif(?, 'NaN')")),
    )
