"""Rows of a query as `sqlite3.Row` has them: by place, by name, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, SupportsIndex, cast

import psycopg

_SHAPES = 1024
"""More than the program's queries have, so that one class is made for each."""


class PostgresRow(tuple[Any, ...]):
    """A row; each list of columns has a class of its own, which knows their names."""

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()
    places: ClassVar[dict[str, int]] = {}

    def keys(self) -> list[str]:
        """Return the names of the columns, in order."""
        return list(self.names)

    def __getitem__(self, key: SupportsIndex | slice | str) -> Any:
        """Return a value by its place or its column's name."""
        if isinstance(key, str):
            try:
                return tuple.__getitem__(self, self.places[key])
            except KeyError:
                raise IndexError(f"no column {key}") from None
        return tuple.__getitem__(self, key)


def row_factory(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], PostgresRow]:
    """Return what makes the rows of a result."""
    result = cursor.pgresult
    if result is None:
        return PostgresRow
    return _shape(tuple(result.fname(at) or b"" for at in range(result.nfields)))


@lru_cache(_SHAPES)
def _shape(names: tuple[bytes, ...]) -> type[PostgresRow]:
    texts = tuple(name.decode() for name in names)
    places = {name: at for at, name in reversed(list(enumerate(texts)))}
    made = type("PostgresRow", (PostgresRow,), {"__slots__": (), "names": texts, "places": places})
    return cast("type[PostgresRow]", made)
