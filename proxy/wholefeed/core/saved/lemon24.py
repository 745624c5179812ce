"""The database of lemon24/reader, from version 3 on (its `_storage/_schema.py`); dates are in UTC."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from wholefeed.core.saved.reader_tables import ReaderDatabase, Row
from wholefeed.core.saved.saved_entries import (
    SavedEnclosure,
    SavedEntry,
    instant_of,
    length_of,
    list_of,
    mapping_of,
    plain_title,
    string_of,
)


def _read_entry(row: Row, _: Sequence[Row]) -> SavedEntry | None:
    contents = [mapping_of(each) for each in _values(row["content"])]
    texts = [string_of(each.get("value")) for each in contents if "html" in string_of(each.get("type"))]
    summary = string_of(row["summary"])
    content = next(filter(None, texts), "")
    return SavedEntry(
        id=string_of(row["id"]),
        link=string_of(row["link"]),
        title=plain_title(string_of(row["title"])),
        author=_names(string_of(row["author"])),
        published_at=_instant(row["published"]),
        updated_at=_instant(row["updated"]),
        content=content or summary,
        summary=summary if content else "",
        enclosures=tuple(
            SavedEnclosure(url, string_of(each.get("type")), length_of(each.get("length")))
            for each in map(mapping_of, _values(row["enclosures"]))
            if (url := string_of(each.get("href")))
        ),
    )


def _values(written: Any) -> list[Any]:
    try:
        return list_of(json.loads(written)) if isinstance(written, str) else []
    except (ValueError, RecursionError):
        return []


def _names(author: str) -> str:
    """Return the names: JSON since 3.26, a plain text before."""
    if not author.startswith("["):
        return author
    return ", ".join(name for each in _values(author) if (name := string_of(mapping_of(each).get("name"))))


def _instant(written: Any) -> float | None:
    return instant_of(f"{written.strip().replace(' ', 'T')}Z") if isinstance(written, str) else None


LEMON24: Final = ReaderDatabase(
    program="lemon24/reader",
    table="entries",
    feed="feed",
    columns=(
        *("id", "title", "link", "updated", "author", "published", "summary", "content", "enclosures"),
        *("first_updated",),
    ),
    others={"feeds": ("url", "updates_enabled")},
    read=_read_entry,
)
