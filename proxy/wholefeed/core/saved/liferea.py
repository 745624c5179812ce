"""Liferea's `liferea.db` (its `src/db.c`), schema versions 8 to 11.

A text stands in a `div` with namespaces and base.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from wholefeed.core.saved.reader_tables import Attached, ReaderDatabase, Row
from wholefeed.core.saved.saved_entries import (
    SavedEnclosure,
    SavedEntry,
    instant_of,
    length_of,
    mapping_of,
    string_of,
)


def _read_item(row: Row, metadata: Sequence[Row]) -> SavedEntry | None:
    if row["comment"]:
        return None
    known = [(string_of(each["key"]), string_of(each["value"])) for each in metadata]
    authors = [value for key, value in known if key in ("author", "creator")]
    said = dict(known)
    published_at, updated_at = instant_of(said.get("pubDate")), instant_of(said.get("contentUpdateDate"))
    if published_at is None and updated_at is None:
        published_at = instant_of(row["date"])
    content = string_of(row["description"])
    around = _AROUND.match(content)
    return SavedEntry(
        id=string_of(row["source_id"]) if row["valid_guid"] else "",
        link=string_of(row["source"]),
        title=string_of(row["title"]),
        author=", ".join(dict.fromkeys(authors)),
        published_at=published_at,
        updated_at=updated_at,
        content=content[around.end() :].removesuffix("</div>") if around else content,
        base=around[1] or "" if around else "",
        enclosures=tuple(
            enclosure
            for key, value in known
            if key == "enclosure" and (enclosure := _enclosure(value)) is not None
        ),
    )


_AROUND: Final = re.compile(
    r'<div xmlns="http://www\.w3\.org/1999/xhtml"(?: xmlns:[\w.-]{1,100}="[^"<>]{0,500}"){0,50}'
    r'(?: xml:base="([^"<>]{0,2000})")?>'
)


def _enclosure(written: str) -> SavedEnclosure | None:
    """Read `enc:downloaded:type:length:url`, or since version 1.15 a JSON object."""
    if found := _ENCLOSURE.fullmatch(written):
        return SavedEnclosure(found[3], found[1], length_of(int(found[2] or 0)))
    try:
        value = mapping_of(json.loads(written))
    except (ValueError, RecursionError):
        return None
    url = string_of(value.get("url"))
    return SavedEnclosure(url, string_of(value.get("mime")), length_of(value.get("size"))) if url else None


_ENCLOSURE: Final = re.compile(r"enc:[01]?:([^:]*):([0-9]{0,15}):(.+)", re.DOTALL)

LIFEREA: Final = ReaderDatabase(
    program="Liferea",
    table="items",
    feed="node_id",
    columns=(*("item_id", "title", "source", "source_id", "valid_guid", "description", "date", "comment"),),
    others={"metadata": ("item_id", "key", "value"), "subscription": ("node_id", "source")},
    urls=("subscription", "node_id", "source"),
    attached=Attached("metadata", "item_id", ("key", "value"), key="item_id"),
    read=_read_item,
)
