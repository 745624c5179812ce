"""Saved entries as JSON Feed 1.1, sent by `wholefeed import` or other programs for a feed of any format.

The member `_wholefeed.saved_by` tells such a document from a publisher's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from wholefeed.core.model import EXTENSION
from wholefeed.core.saved.saved_entries import (
    SavedEnclosure,
    SavedEntry,
    SavedFeed,
    SavedFile,
    instant_of,
    length_of,
    list_of,
    mapping_of,
    string_of,
)
from wholefeed.core.text.dates import format_rfc3339


def read_interchange(value: Any) -> SavedFile | None:
    members = mapping_of(value)
    program = string_of(mapping_of(members.get(EXTENSION)).get(_SAVED_BY))
    if not program:
        return None
    entries = [_entry_of(each) for each in list_of(members.get("items")) if isinstance(each, dict)]
    return SavedFile(program[:_LONGEST_NAME], [SavedFeed(string_of(members.get("feed_url")), entries)])


_SAVED_BY: Final = "saved_by"
_LONGEST_NAME: Final = 40


def _entry_of(item: Mapping[str, Any]) -> SavedEntry:
    names = (string_of(mapping_of(each).get("name")) for each in list_of(item.get("authors")))
    return SavedEntry(
        id=string_of(item.get("id")),
        link=string_of(item.get("url")),
        title=string_of(item.get("title")),
        author=", ".join(filter(None, names)),
        published_at=instant_of(item.get("date_published")),
        updated_at=instant_of(item.get("date_modified")),
        content=string_of(item.get("content_html")),
        summary=string_of(item.get("summary")),
        base=string_of(mapping_of(item.get(EXTENSION)).get("base")),
        enclosures=tuple(
            SavedEnclosure(url, string_of(each.get("mime_type")), length_of(each.get("size_in_bytes")))
            for each in map(mapping_of, list_of(item.get("attachments")))
            if (url := string_of(each.get("url")))
        ),
    )


def write_interchange(
    program: str, feed_url: str, entries: Iterable[SavedEntry], *, part_bytes: int
) -> Iterator[bytes]:
    """Yield documents of about `part_bytes`, each with at least one entry."""
    items: list[str] = []
    size_bytes = 0
    for entry in entries:
        items.append(json.dumps(_item(entry), ensure_ascii=False))
        size_bytes += len(items[-1].encode())
        if size_bytes >= part_bytes:
            yield _document(program, feed_url, items)
            items, size_bytes = [], 0
    if items:
        yield _document(program, feed_url, items)


def _document(program: str, feed_url: str, items: list[str]) -> bytes:
    head = {"version": _VERSION, "title": program, "feed_url": feed_url, EXTENSION: {_SAVED_BY: program}}
    written = json.dumps(head, ensure_ascii=False)[:-1]
    return f'{written},"items":[{",".join(items)}]}}'.encode()


_VERSION: Final = "https://jsonfeed.org/version/1.1"


def _item(entry: SavedEntry) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": entry.id,
        "url": entry.link,
        "title": entry.title,
        "content_html": entry.content,
        "summary": entry.summary,
    }
    dates = {"date_published": entry.published_at, "date_modified": entry.updated_at}
    found |= {name: format_rfc3339(at) for name, at in dates.items() if at is not None}
    if entry.author:
        found["authors"] = [{"name": entry.author}]
    if entry.base:
        found[EXTENSION] = {"base": entry.base}
    if entry.enclosures:
        found["attachments"] = [
            {"url": each.url, "mime_type": each.media_type, "size_in_bytes": each.length}
            for each in entry.enclosures
        ]
    return {name: value for name, value in found.items() if value != ""}
