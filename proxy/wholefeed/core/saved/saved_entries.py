"""Entries that a feed reader saved, in one shape for all programs (I4).

Each module beside this one reads one program's format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.markup import unescape
from wholefeed.core.text.urls import is_http


class SavedEnclosure(NamedTuple):
    url: str
    media_type: str = ""
    length: int | None = None
    """Bytes."""


class SavedEntry(NamedTuple):
    """One entry of a program; empty fields are unknown."""

    id: str = ""
    """The publisher's id, never the program's own number."""
    link: str = ""
    title: str = ""
    """Plain text."""
    author: str = ""
    published_at: float | None = None
    updated_at: float | None = None
    content: str = ""
    """HTML."""
    summary: str = ""
    """HTML, if saved beside the content."""
    base: str = ""
    """Base of the content's URLs."""
    enclosures: tuple[SavedEnclosure, ...] = ()

    @property
    def order_at(self) -> float | None:
        return self.published_at if self.updated_at is None else self.updated_at


class SavedFeed(NamedTuple):
    url: str
    """URL of the feed; empty: the program saved none."""
    entries: list[SavedEntry]
    is_numbered: bool = False
    """Whether the program told this feed from others, by a number."""


class SavedFile(NamedTuple):
    program: str
    """Name for people."""
    feeds: list[SavedFeed]


def group(program: str, entries: list[tuple[str, str, SavedEntry]]) -> SavedFile:
    """Sort entries by feed; each has the program's key of its feed, and the feed's URL."""
    feeds: dict[str, SavedFeed] = {}
    for key, url, entry in entries:
        feeds.setdefault(key, SavedFeed(url, [], bool(key))).entries.append(entry)
    return SavedFile(program, list(feeds.values()))


def is_feed_url(text: str) -> bool:
    """Return whether a program's name of a feed is a URL, perhaps with the scheme `feed:`."""
    return is_http(text) or text[:5].lower() == "feed:"


# Values that a hostile file may have of any type


def string_of(value: Any) -> str:
    """Return a trimmed text; anything else is empty, and half a character becomes `?`."""
    return value.encode("utf-8", "replace").decode().strip() if isinstance(value, str) else ""


def mapping_of(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def length_of(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value < _MOST_LENGTH else None


_MOST_LENGTH: Final = 1 << 53


def instant_of(value: Any) -> float | None:
    """Return epoch seconds of a number or a date; zero and below stand for no date."""
    if isinstance(value, str):
        value = parse_rfc3339(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < _YEAR_10000 else None


_YEAR_10000: Final = 253_402_300_800


def plain_title(written: str) -> str:
    """Return an HTML title as one line of plain text."""
    return " ".join(unescape(_TAG.sub("", written)).split())


_TAG: Final = re.compile(r"</?[A-Za-z][^<>]{0,1000}>")
