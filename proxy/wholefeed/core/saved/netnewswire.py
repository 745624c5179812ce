"""NetNewsWire's `DB.sqlite3` of an account (its module ArticlesDatabase), from version 5 on.

In an account that syncs with a service, feeds have that service's numbers for names.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import Final

from wholefeed.core.saved.reader_tables import Attached, ReaderDatabase, Row
from wholefeed.core.saved.saved_entries import (
    SavedEntry,
    instant_of,
    list_of,
    mapping_of,
    plain_title,
    string_of,
)


def _read_article(row: Row, authors: Sequence[Row]) -> SavedEntry | None:
    own_id = string_of(row["uniqueID"])
    text = string_of(row["contentText"])
    content = string_of(row["contentHTML"]) or (f"<p>{html.escape(text)}</p>" if text else "")
    published_at, updated_at = instant_of(row["datePublished"]), instant_of(row["dateModified"])
    return SavedEntry(
        id="" if _CALCULATED.fullmatch(own_id) else own_id,
        link=string_of(row["url"]) or string_of(row["externalURL"]),
        title=plain_title(string_of(row["title"])),
        author=_names(string_of(row["authors"])) or ", ".join(string_of(each["name"]) for each in authors),
        published_at=published_at,
        updated_at=None if updated_at == published_at else updated_at,
        content=content or string_of(row["summary"]),
        summary=string_of(row["summary"]) if content else "",
    )


_CALCULATED: Final = re.compile("[0-9a-f]{32}")
"""An MD5 digest, for an item without an id."""


def _names(written: str) -> str:
    try:
        authors = list_of(json.loads(written)) if written else []
    except (ValueError, RecursionError):
        return ""
    return ", ".join(name for each in authors if (name := string_of(mapping_of(each).get("name"))))


NETNEWSWIRE: Final = ReaderDatabase(
    program="NetNewsWire",
    table="articles",
    feed="feedID",
    columns=(
        *("articleID", "uniqueID", "title", "contentHTML", "contentText", "url", "externalURL"),
        *("summary", "datePublished", "dateModified"),
    ),
    later_columns=("authors",),
    others={"statuses": ("articleID", "dateArrived")},
    # until 2026; newer versions have the column `authors` instead
    attached=Attached(
        "authors", "authorID", ("name",), key="articleID", by=("authorsLookup", "articleID", "authorID")
    ),
    read=_read_article,
)
