"""Feeds and documents as they are selected: by name, in the order of the fields that they become."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

from wholefeed.core.compose.turns import Warned
from wholefeed.core.terms import Family, Kind, Role, State
from wholefeed.store.changing import made
from wholefeed.store.database import Row
from wholefeed.store.rows import DocumentRow, FeedRow


def _named(kind: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


FEED_COLUMNS: Final = ", ".join(_named(FeedRow))
"""What `feed_row` reads."""
DOCUMENT_COLUMNS: Final = ", ".join(_named(DocumentRow))
"""What `document_row` reads."""

_Reader = Callable[[Any], Any]


def _places(kind: type[Any], readers: Mapping[str, _Reader]) -> list[tuple[int, _Reader]]:
    names = _named(kind)
    return [(names.index(name), read) for name, read in readers.items()]


_FEED: Final = _places(
    FeedRow,
    {
        **dict.fromkeys(("is_walking", "is_stale", "is_private"), bool),
        **dict.fromkeys(("family", "published_family"), Family),
        "kind": Kind,
        "state": State,
        "warning": Warned,
    },
)
_DOCUMENT: Final = _places(
    DocumentRow,
    {
        **dict.fromkeys(("is_marked", "is_settled", "is_uncacheable", "brought_news"), bool),
        "role": Role,
        "family": Family,
        "links": json.loads,
        "notes": lambda text: tuple(json.loads(text)),
    },
)


def feed_row(row: Row) -> FeedRow:
    """Return the feed that a row of `FEED_COLUMNS` is."""
    values = list(row)
    for place, read in _FEED:
        values[place] = read(values[place])
    return made(FeedRow, values)


def document_row(row: Row) -> DocumentRow:
    """Return the document that a row of `DOCUMENT_COLUMNS` is."""
    values = list(row)
    for place, read in _DOCUMENT:
        values[place] = read(values[place])
    return made(DocumentRow, values)
