"""Feeds and documents as they are selected: by name, in the order of the fields that they become."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any, Final

from wholefeed.core.compose.turns import Warned
from wholefeed.core.terms import Family, Kind, Role, State
from wholefeed.store.changing import made
from wholefeed.store.database import Row
from wholefeed.store.rows import DocumentRow, FeedRow, SegmentRow


def _named(kind: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


FEED_COLUMNS: Final = ", ".join(_named(FeedRow))
"""What `feed_row` reads."""
DOCUMENT_COLUMNS: Final = ", ".join(_named(DocumentRow))
"""What `document_row` reads."""
SEGMENT_COLUMNS: Final = ", ".join(_named(SegmentRow))
"""What a `SegmentRow` is made of, with `made`."""

_Reader = Callable[[Any], Any]


def member(kind: type[StrEnum]) -> _Reader:
    """Return what gives the member of a value in a sixth of the time that the enumeration takes."""
    return {each.value: each for each in kind}.__getitem__


def _json(text: str) -> Any:
    """Return what a text says; most say nothing, and the parser is called for the others alone."""
    if text == "[]":
        return []
    return {} if text == "{}" else json.loads(text)


def _places(kind: type[Any], readers: Mapping[str, _Reader]) -> list[tuple[int, _Reader]]:
    names = _named(kind)
    return [(names.index(name), read) for name, read in readers.items()]


_FEED: Final = _places(
    FeedRow,
    {
        **dict.fromkeys(("is_walking", "is_stale", "is_private"), bool),
        **dict.fromkeys(("family", "published_family"), member(Family)),
        "kind": member(Kind),
        "state": member(State),
        "warning": member(Warned),
    },
)
_DOCUMENT: Final = _places(
    DocumentRow,
    {
        **dict.fromkeys(("is_marked", "is_settled", "is_uncacheable", "brought_news"), bool),
        "role": member(Role),
        "family": member(Family),
        "links": _json,
        "notes": lambda text: tuple(_json(text)),
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
