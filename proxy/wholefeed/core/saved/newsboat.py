"""Newsboat's `cache.db` (its `src/cache.cpp`), from 2.10 on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wholefeed.core.saved.reader_tables import ReaderDatabase, Row
from wholefeed.core.saved.saved_entries import SavedEnclosure, SavedEntry, instant_of, plain_title, string_of
from wholefeed.core.text.dates import parse_rfc822


def _read_item(row: Row, _: Sequence[Row]) -> SavedEntry | None:
    if row["deleted"]:  # by the reader
        return None
    link = string_of(row["url"])
    enclosure = string_of(row["enclosure_url"])
    return SavedEntry(
        id=_id_of(string_of(row["guid"]), link),
        link=link,
        title=plain_title(string_of(row["title"])),  # of RSS, saved as it was written
        author=string_of(row["author"]),
        published_at=instant_of(row["pubDate"]),
        content=string_of(row["content"]),
        base=string_of(row["base"]),
        enclosures=(SavedEnclosure(enclosure, string_of(row["enclosure_type"])),) if enclosure else (),
    )


def _id_of(guid: str, link: str) -> str:
    """Return the publisher's id: an item without one was saved under its link, or link and date."""
    if not link or not guid.startswith(link):
        return guid
    rest = guid[len(link) :]
    return "" if not rest or parse_rfc822(rest) is not None else guid


NEWSBOAT: Final = ReaderDatabase(
    program="newsboat",
    table="rss_item",
    feed="feedurl",
    columns=("guid", "title", "author", "url", "pubDate", "content", "deleted"),
    later_columns=("enclosure_url", "enclosure_type", "base"),
    others={"rss_feed": ("rssurl",)},
    read=_read_item,
)
