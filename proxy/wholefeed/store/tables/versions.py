"""What tells whether a feed is still what was read of it: of its row what is sent, or decides what is done.

A feed that was published again, or is walked, stale or warned of, has another version. When it was checked,
and until when it is fresh, are told beside that: nothing that is made of a feed depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from wholefeed.store.database import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feeds

_READ_AS: Final[Mapping[str, Callable[[str], Any]]] = {
    "digest": bytes.fromhex,
    "modified_at": float,
    "revision": int,
    "published_revision": int,
    "state": str,
    "kind": str,
    "is_walking": int,
    "is_stale": int,
    "is_private": int,
    "documents": int,
    "entries": int,
    "parser_version": int,
    "warning": str,
    "warned_at": float,
    "published_family": str,
    "via_url": str,
    "checked_at": float,
    "fresh_until": float,
}
"""Columns, and what reads each from a text."""
_AGES: Final = 2
"""The last ones of them are no part of the version."""
_values = attrgetter(*_READ_AS)
_SELECTED: Final = ", ".join(
    f"encode({name}, 'hex')" if read_as == bytes.fromhex else name for name, read_as in _READ_AS.items()
)
POSTGRES: Final = f"SELECT id, {_SELECTED} FROM feed WHERE id = ANY (CAST($1 AS bigint[]))"  # noqa: S608
"""Takes what `numbers` makes; `parsed` reads what it gives, each value as a text."""


class Version(NamedTuple):
    """What a feed is."""

    published: tuple[object, ...]
    checked_at: float | None
    fresh_until: float | None


def version_of(feed: FeedRow) -> Version:
    """Return what a feed was when its row was read."""
    return _version(_values(feed))


def read(db: Database, ids: Iterable[int]) -> dict[int, Version]:
    """Return what feeds are, those that there are."""
    rows = [feeds.find(db, each) for each in ids]
    return {row.id: version_of(row) for row in rows if row is not None}


def numbers(ids: Collection[int]) -> bytes:
    """Return the parameter of `POSTGRES`."""
    return b"{%s}" % b",".join(b"%d" % each for each in ids)


def parsed(rows: Iterable[tuple[bytes | None, ...]]) -> dict[int, Version]:
    """Return what feeds are, of the rows that `POSTGRES` gives."""
    found = {}
    for number, *values in rows:
        assert number is not None, "it is the key"
        read_as = zip(_READ_AS.values(), values, strict=True)
        found[int(number)] = _version(
            tuple(None if value is None else read(value.decode()) for read, value in read_as)
        )
    return found


def _version(values: tuple[Any, ...]) -> Version:
    return Version(values[:-_AGES], *values[-_AGES:])
