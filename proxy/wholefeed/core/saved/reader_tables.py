"""The words in which a module says where a program's SQLite database has feeds and entries.

`wholefeed.store.reader_files` reads the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from wholefeed.core.saved.saved_entries import SavedEntry

Row = Mapping[str, Any]
"""Values by column; columns of later versions are None where they are missing."""


class Attached(NamedTuple):
    table: str
    column: str
    values: tuple[str, ...]
    key: str
    """The entry's column to look up."""
    by: tuple[str, str, str] | None = None
    """A table between: its name, its column for the entry, and its column for `column`."""

    @property
    def tables(self) -> frozenset[str]:
        return frozenset({self.table, *(self.by or ())[:1]})


_NONE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})


class ReaderDatabase(NamedTuple):
    """One program's database."""

    program: str
    table: str
    feed: str
    """Its column for the feed: a URL, or a key in the table of `urls`."""
    columns: tuple[str, ...]
    read: Callable[[Row, Sequence[Row]], SavedEntry | None]
    """Makes an entry of a row and its attached rows; None: it does not count."""
    later_columns: tuple[str, ...] = ()
    """Columns that not every version has."""
    others: Mapping[str, tuple[str, ...]] = _NONE
    urls: tuple[str, str, str] | None = None
    """A table of feeds: its name, its column of keys, and its column of URLs."""
    attached: Attached | None = None

    @property
    def tables(self) -> frozenset[str]:
        further = frozenset[str]() if self.attached is None else self.attached.tables
        return frozenset({self.table, *self.others}) | further
