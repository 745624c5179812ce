"""The JSON of Google Reader: its takeout, FreshRSS' exports, and the API that many programs still offer.

Google's own items have no id of the publisher; FreshRSS adds `guid` and `feedUrl` (its `Entry::toGReader`).
Labels and stars are the reader's affair and are left out.
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
    is_feed_url,
    length_of,
    list_of,
    mapping_of,
    plain_title,
    string_of,
)


def read_google_reader(value: Any) -> SavedFile | None:
    items = [each for each in list_of(mapping_of(value).get("items")) if isinstance(each, dict)]
    found = [(*_name_feed(each), _entry_of(each)) for each in items if _name_feed(each)[0]]
    if not found:
        return None
    is_fresh = any("feedUrl" in mapping_of(each.get("origin")) for each in items)
    return group("FreshRSS" if is_fresh else "Google Reader", found)


def _name_feed(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return the stream of an item, and the feed's URL; both empty: no item of this format."""
    origin = mapping_of(item.get("origin"))
    stream = string_of(origin.get("streamId"))
    if not stream.startswith(_STREAM):
        return "", ""
    url = string_of(origin.get("feedUrl")) or stream.removeprefix(_STREAM)
    return (url, url) if is_feed_url(url) else (stream, "")


_STREAM: Final = "feed/"


def _entry_of(item: Mapping[str, Any]) -> SavedEntry:
    own_id = string_of(item.get("guid")) or string_of(item.get("id"))
    links = [*list_of(item.get("canonical")), *list_of(item.get("alternate"))]
    hrefs = (string_of(mapping_of(each).get("href")) for each in links)
    content = string_of(mapping_of(item.get("content")).get("content"))
    summary = string_of(mapping_of(item.get("summary")).get("content"))
    published_at, updated_at = instant_of(item.get("published")), instant_of(item.get("updated"))
    return SavedEntry(
        id="" if own_id.startswith(_OWN_IDS) else own_id,
        link=next(filter(None, hrefs), ""),
        title=plain_title(string_of(item.get("title"))),
        author=plain_title(string_of(item.get("author"))),
        published_at=published_at,
        updated_at=None if updated_at == published_at else updated_at,
        content=content or summary,
        summary=summary if content else "",
        enclosures=tuple(_enclosures_of(item)),
    )


_OWN_IDS: Final = "tag:google.com,2005:reader/item/"


def _enclosures_of(item: Mapping[str, Any]) -> list[SavedEnclosure]:
    found = [mapping_of(each) for each in list_of(item.get("enclosure"))]
    return [
        SavedEnclosure(url, string_of(each.get("type")), length_of(each.get("length")))
        for each in found
        if (url := string_of(each.get("href")))
    ]
