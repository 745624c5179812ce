"""What the tables ask of a connection, whichever engine it leads to.

It is the part of DB-API 2.0 (PEP 249) that `sqlite3` gives on a connection itself. Statements are written for
SQLite in the subset that others take, with parameters `:name` or `?`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

Parameters = Mapping[str, Any] | Sequence[Any]


class Row(Protocol):
    """A row of a query: its values in order, and each by the name of its column."""

    def keys(self) -> list[str]:
        """Return the names of the columns, in order."""

    def __getitem__(self, key: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


class Cursor(Protocol):
    """What a statement gives."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    def fetchmany(self, size: int = ..., /) -> list[Any]:
        """Return so many rows at the most."""

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """A connection within a transaction, for functions that run in its thread."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor:
        """Run one statement."""

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Cursor:
        """Run one statement for each of these."""
