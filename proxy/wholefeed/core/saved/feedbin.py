"""Feedbin's JSON: `starred.json` of its export, and pages of its API (`/v2/entries.json`).

Neither has ids of the publisher or URLs of feeds; those of the API have numbers of feeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wholefeed.core.saved.saved_entries import (
    SavedEnclosure,
    SavedEntry,
    SavedFile,
    group,
    instant_of,
    list_of,
    mapping_of,
    string_of,
)


def read_feedbin(value: Any) -> SavedFile | None:
    entries = [each for each in list_of(value) if isinstance(each, dict)]
    if not entries or any(not each.keys() >= _MEMBERS for each in entries):
        return None
    return group("Feedbin", [(str(each.get("feed_id", "")), "", _entry_of(each)) for each in entries])


_MEMBERS: Final = frozenset({"id", "url", "title", "published", "created_at"})


def _entry_of(entry: Mapping[str, Any]) -> SavedEntry:
    content, summary = string_of(entry.get("content")), string_of(entry.get("summary"))
    enclosure = mapping_of(entry.get("enclosure"))
    url = string_of(enclosure.get("enclosure_url"))
    return SavedEntry(
        link=string_of(entry.get("url")),
        title=string_of(entry.get("title")),
        author=string_of(entry.get("author")),
        published_at=instant_of(entry.get("published")),
        content=content or summary,  # the summary is cut from the content, so it adds nothing
        enclosures=(SavedEnclosure(url, string_of(enclosure.get("enclosure_type"))),) if url else (),
    )
