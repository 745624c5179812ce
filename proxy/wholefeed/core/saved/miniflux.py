"""The JSON of miniflux' API: `/v1/entries` and `/v1/feeds/N/entries`. Its other export has no entries.

It saves a digest of the publisher's id, not the id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wholefeed.core.saved.saved_entries import (
    SavedEnclosure,
    SavedEntry,
    SavedFile,
    group,
    instant_of,
    length_of,
    list_of,
    mapping_of,
    string_of,
)


def read_miniflux(value: Any) -> SavedFile | None:
    found = []
    for each in map(mapping_of, list_of(mapping_of(value).get("entries"))):
        url = string_of(mapping_of(each.get("feed")).get("feed_url"))
        if url and "published_at" in each:
            found.append((url, url, _entry_of(each)))
    return group("miniflux", found) if found else None


def _entry_of(entry: Mapping[str, Any]) -> SavedEntry:
    link, title = string_of(entry.get("url")), string_of(entry.get("title"))
    return SavedEntry(
        link=link,
        title="" if title == link else title,  # an entry without a title gets its URL for one
        author=string_of(entry.get("author")),
        published_at=instant_of(entry.get("published_at")),
        content=string_of(entry.get("content")),
        enclosures=tuple(
            SavedEnclosure(url, string_of(each.get("mime_type")), length_of(each.get("size")))
            for each in map(mapping_of, list_of(entry.get("enclosures")))
            if (url := string_of(each.get("url")))
        ),
    )
