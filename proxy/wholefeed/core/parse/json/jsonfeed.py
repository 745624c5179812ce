"""JSON Feed 1.0 and 1.1 (https://www.jsonfeed.org/version/1.1/).

Items are slices of the text, as in the other formats. JSON Feed has no base that relative references count
from but the document's URL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from wholefeed.core.model import Entry, EntryKeys, FeedDocument, Head, HeadChild, Link, Scope, entry_id
from wholefeed.core.parse.collapsing import collapsed
from wholefeed.core.parse.errors import ParseError
from wholefeed.core.parse.identities import (
    MAX_TITLE_CHARACTERS,
    SPACES,
    absolute,
    entry_keys,
    has_id,
    site_id,
    told_apart,
)
from wholefeed.core.parse.json.json_text import Member, Number, byte_offsets, scan
from wholefeed.core.parse.limits import (
    MAX_ENTRIES,
    MAX_HEAD_BYTES,
    MAX_HEAD_CHILDREN,
    MAX_LANG_CHARACTERS,
    UNLIMITED,
)
from wholefeed.core.terms import MEMORY_URL, Family
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.urls import resolve

ITEMS: Final = "items"

RELATIONS: Final = {"feed_url": "self", "next_url": "next", "hubs": "hub"}
"""Members of the head that are links, and the relations they stand for (R6, R21)."""

_VERSION: Final = re.compile(r"\s*https?://(?:www\.)?jsonfeed\.org/version/([0-9][0-9.]{0,14})/?\s*")


def read_json_feed(text: str, url: str, max_depth: int) -> FeedDocument:
    """Return the document that a JSON object is.

    Raises:
        ParseError: It is malformed, breaks a limit, or is no JSON Feed.
    """
    max_items = MAX_ENTRIES if max_depth < UNLIMITED else None
    members = scan(
        text,
        items=ITEMS,
        read=partial(_item, url=url),
        max_depth=max_depth,
        max_items=max_items,
        is_collapsing=not url.startswith(MEMORY_URL),
    )
    version = _VERSION.fullmatch(_string(members, "version"))
    if version is None:
        raise ParseError("expected a feed, got JSON that is no JSON Feed", slug="not-a-feed")
    held = members[ITEMS].elements or () if ITEMS in members else ()
    items = [element for element in held if element.value is not None]
    if max_depth < UNLIMITED:
        _check_sizes(members)
    places = byte_offsets(text, iter([place for item in items for place in (item.start, item.end)]))
    entries = [
        item.value.entry._replace(start=start, end=end)
        for item, start, end in zip(items, places, places, strict=False)
    ]
    keys = [item.value.keys for item in items]
    own_link, encoded = absolute(url, _string(members, "home_page_url")), text.encode()
    told = told_apart(url, entries, keys, [own_link], encoded)
    return FeedDocument(
        url,
        Family.JSON,
        version[1],
        encoded,
        _head(text, members, url),
        collapsed(url, told.entries),
        told.notes,
        ambiguous=told.ambiguous,
    )


def _check_sizes(members: Mapping[str, Member]) -> None:
    """Hold JSON to the same limits as XML."""
    head = [member for name, member in members.items() if name != ITEMS]
    expected = ""
    if len(head) > MAX_HEAD_CHILDREN:
        expected = f"{MAX_HEAD_CHILDREN} members beside the entries"
    elif sum(member.end - member.start for member in head) > MAX_HEAD_BYTES:
        expected = f"{MAX_HEAD_BYTES} characters of members beside the entries"
    if expected:
        raise ParseError(f"expected at most {expected}, got more", slug="xml-limit")


def _head(text: str, members: Mapping[str, Member], url: str) -> Head:
    named = sorted(
        ((name, member) for name, member in members.items() if name != ITEMS),
        key=lambda each: each[1].start,
    )
    starts = byte_offsets(text, iter([place for _, m in named for place in (m.start, m.end)]))
    children = [
        HeadChild("", name, start, end, RELATIONS.get(name, ""))
        for (name, _), start, end in zip(named, starts, starts, strict=False)
    ]
    links = [_link(members, name, url) for name in ("feed_url", "next_url") if _string(members, name)]
    language = _string(members, "language")
    return Head(
        site_id=site_id(_string(members, "home_page_url")),
        title=_string(members, "title")[:MAX_TITLE_CHARACTERS],
        updated_at=None,
        links=tuple(links),
        history=(),
        children=tuple(children),
        scope=Scope({}, language if len(language) <= MAX_LANG_CHARACTERS else "", url),
    )


def _link(members: Mapping[str, Member], name: str, url: str) -> Link:
    href = _string(members, name)
    try:
        target = resolve(url, href)
    except ValueError:
        target = ""
    return Link(RELATIONS[name], target, "", href)


class _Item(NamedTuple):
    entry: Entry
    """Without its place."""
    keys: EntryKeys


def _item(value: object, url: str) -> _Item | None:
    """Return what is kept of an item; None where it is no object."""
    if not isinstance(value, dict):
        return None
    # A number is taken for its digits (JSON Feed 1.1, "Items").
    values = {
        "id": _text(value.get("id")),
        "link": _text(value.get("url")) or _text(value.get("external_url")),
        "title": _text(value.get("title")),
        "content": _text(value.get("content_html")) or _text(value.get("content_text")),
        "published": _text(value.get("date_published")),
        "updated": _text(value.get("date_modified")),
    }
    updated_at = parse_rfc3339(values["updated"]) if values["updated"] else None
    order_at = updated_at
    if order_at is None and values["published"]:
        order_at = parse_rfc3339(values["published"])
    has_author = bool(value.get("author") or value.get("authors"))
    keys = entry_keys(values, _enclosures(value), url)
    own = None if has_id(values) else keys
    return _Item(Entry(entry_id(values["id"]), updated_at, order_at, 0, 0, has_author, keys=own), keys)


def _enclosures(item: Mapping[str, Any]) -> list[str]:
    attachments = item.get("attachments")
    held = attachments if isinstance(attachments, list) else []
    return [_text(each.get("url")) for each in held if isinstance(each, dict)]


def _string(members: Mapping[str, Member], name: str) -> str:
    member = members.get(name)
    return "" if member is None or isinstance(member.value, Number) else _text(member.value).strip(SPACES)


def _text(value: object) -> str:
    """Return a string or number as text that can be written in UTF-8; empty for anything else."""
    if not isinstance(value, str):
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:  # an escape of half a character
        return json.dumps(value)
    return value
