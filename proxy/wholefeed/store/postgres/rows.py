"""Rows of a query as `sqlite3.Row` has them: by place, by name, in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, SupportsIndex, cast

from psycopg.pq.abc import PGresult

from wholefeed.store.postgres import texts

_SHAPES: Final = 1024
"""More than the program's queries have, so that one class is made for each."""
_TEXT_OIDS: Final = frozenset({19, 25, 705, 1042, 1043})
"""name, text, unknown, bpchar, varchar."""


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


MakeRow = Callable[[tuple[Any, ...]], PostgresRow]


def row_maker(result: PGresult) -> MakeRow:
    """Return what makes a row of the values of a result, whose texts are as they were stored."""
    columns = range(result.nfields)
    shape = _shape(tuple((result.fname(at) or b"").decode() for at in columns))
    with_text = tuple(at for at in columns if result.ftype(at) in _TEXT_OIDS)
    return partial(_made, shape, with_text) if with_text else shape


def _made(shape: type[PostgresRow], with_text: tuple[int, ...], values: tuple[Any, ...]) -> PostgresRow:
    for at in with_text:
        text = values[at]
        if text is not None and texts.MARK in text:
            return shape(texts.unescape(each) if isinstance(each, str) else each for each in values)
    return shape(values)


@lru_cache(_SHAPES)
def _shape(names: tuple[str, ...]) -> type[PostgresRow]:
    places = {name: at for at, name in reversed(list(enumerate(names)))}
    made = type("PostgresRow", (PostgresRow,), {"__slots__": (), "names": names, "places": places})
    return cast("type[PostgresRow]", made)
