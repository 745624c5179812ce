"""Give entries and head of a feed the dates of their release in a replay (P3, P4).

Readers hide old entries, mark them as read, or sort by date alone. So each date becomes that of the
release, and the publication day precedes the title. All else stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from wholefeed.core.compose.children import (
    Edit,
    EntryChild,
    apply_edits,
    find_children,
    kind_of,
    tag_name,
    write_child,
)
from wholefeed.core.compose.compose import OWN_PLACE, read_head
from wholefeed.core.model import (
    ATOM_03_NS,
    DC_NS,
    WELL_KNOWN_PREFIXES,
    Family,
)
from wholefeed.core.text.dates import DAY_SECONDS, format_rfc822, format_rfc3339, parse_rfc822, parse_rfc3339
from wholefeed.core.text.markup import attribute_places, escape, with_children
from wholefeed.core.verbatim.json import with_values

REPLAY_VERSION: Final = b"1"
"""ETags of replays depend on this: no text is composed for a tag."""

# Entries


def replay_entries(
    texts: Sequence[bytes],
    instants: Sequence[int],
    family: Family,
    *,
    namespace: str | None = None,
    shows_original: bool = True,
) -> list[bytes]:
    """Return entries with the dates of their release.

    `instants` are epoch seconds. `namespace` is the default one of `texts` (None: the usual one).
    `shows_original` puts the publication day before titles.
    """
    if family is Family.JSON:
        return [_item(text, at, shows_original) for text, at in zip(texts, instants, strict=True)]
    made, found = find_children(texts, family, namespace, reads=_DATES)
    replayed = list[bytes]()
    for (start, end, children), at in zip(found, instants, strict=True):
        date = _Release(at, namespace == ATOM_03_NS)
        replayed.append(_entry(made, start, end, children, family, date, shows_original=shows_original))
    return replayed


class _Release(NamedTuple):
    at: int
    is_of_atom_03: bool


_DATES: Final = {
    kind: rank
    for rank, kind in enumerate(
        (
            *("atom published", "atom issued", "rss pubDate", "dc date"),
            *("dcterms issued", "atom created", "dcterms created", "dcterms date", "dcterms available"),
            *("atom updated", "atom modified", "dcterms modified", "rss lastBuildDate"),
            *("dcterms dateSubmitted", "dcterms dateAccepted", "dcterms dateCopyrighted"),
        )
    )
}
"""Date elements; the first tell the publication best."""
_RFC_822: Final = frozenset({"rss pubDate", "rss lastBuildDate"})  # all others follow RFC 3339


def _entry(
    made: bytes,
    start: int,
    end: int,
    children: Sequence[EntryChild],
    family: Family,
    release: _Release,
    *,
    shows_original: bool,
) -> bytes:
    dates = sorted((each for each in children if each.kind in _DATES), key=lambda each: _DATES[each.kind])
    edits = [_fill(made, each, _written(each.kind, release.at)) for each in dates]
    added = b""
    days = (_day(each.said, is_rfc822=each.kind in _RFC_822) for each in dates)
    if shows_original and (prefix := _prefix(days)):
        titles = [each for each in children if each.kind in _TITLES]
        edits += [_prefix_text(made, each, prefix.encode()) for each in titles]
        if all(each.kind == "itunes title" for each in titles):
            added += write_child(made[start:end], "title", prefix.strip())
    if not dates:
        added += _own_date(made[start:end], family, release)
    edited = apply_edits(made, edits, start, end)
    return with_children(edited, added) if added else edited


_TITLES: Final = frozenset({"atom title", "rss title", "itunes title"})


def _fill(text: bytes, child: EntryChild, content: bytes) -> Edit:
    if child.is_empty:
        tag = text[child.start : child.inner - 2].rstrip()
        return child.start, child.end, b"%s>%s</%s>" % (tag, content, tag_name(tag))
    return child.inner, text.rindex(b"</", child.inner, child.end), content


def _prefix_text(text: bytes, child: EntryChild, prefix: bytes) -> Edit:
    content = b"" if child.is_empty else text[child.inner : text.rindex(b"</", child.inner, child.end)]
    if not content.strip():
        return _fill(text, child, prefix.strip())
    place = child.inner
    opening = _CDATA.match(content) or (_DIV.match(content) if child.media_type == "xhtml" else None)
    place += opening.end() if opening else 0
    return place, place, prefix


_CDATA: Final = re.compile(rb"\s*<!\[CDATA\[")
_DIV: Final = re.compile(
    rb"(?:\s++|<!--(?:[^-]++|-(?!->))*+-->)*+"
    rb"<(?:[\w.-]++:)?+div(?:\s++[^\s=]++\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'))*+\s*+>"
)


def _own_date(entry: bytes, family: Family, release: _Release) -> bytes:
    at = release.at
    if family is Family.RSS:
        return write_child(entry, "pubDate", format_rfc822(at))
    if family is Family.RDF:
        return f'<dc:date xmlns:dc="{DC_NS}">{format_rfc3339(at)}</dc:date>'.encode()
    return write_child(entry, "modified" if release.is_of_atom_03 else "updated", format_rfc3339(at))


# Days of publication, by the publisher's clock


def _day(said: str, *, is_rfc822: bool = False) -> str:
    """Return a date's day in its own zone; empty: unreadable."""
    said = said.strip()
    parse = parse_rfc822 if is_rfc822 else parse_rfc3339
    at = parse(said)
    if at is None:
        return ""
    local = parse(_ZONE.sub("", said))
    if local is None or abs(local - at) > DAY_SECONDS:
        local = at
    try:
        return datetime.fromtimestamp(local, UTC).strftime("%Y-%m-%d").zfill(len("2009-03-14"))
    except (ValueError, OverflowError):
        return ""


_ZONE: Final = re.compile(r"(?<=\d)\s*(?:Z|[A-Z]{1,5}|[+-]\d\d:?\d\d)\s*(?:\([^()]*\))?$")


def _prefix(days: Iterable[str]) -> str:
    day = next(filter(None, days), "")
    return f"[{day}] " if day else ""


def _written(kind: str, at: float) -> bytes:
    return (format_rfc822(at) if kind in _RFC_822 else format_rfc3339(at)).encode()


# Items of JSON Feed


def _item(text: bytes, at: int, shows_original: bool) -> bytes:
    item: dict[str, Any] = json.loads(text, parse_int=str, parse_float=str)
    dates = [name for name in ("date_published", "date_modified") if name in item]
    values: dict[str, str] = dict.fromkeys(dates or ["date_published"], format_rfc3339(at))
    said = (item[name] for name in dates if isinstance(item[name], str))
    if shows_original and (prefix := _prefix(map(_day, said))):
        title = item.get("title")
        values["title"] = (prefix + title if isinstance(title, str) else prefix).strip()
    return with_values(text, values)


# The head


def replay_head(family: Family, version: str, head: bytes, *, identifier: str, is_dated: bool) -> bytes:
    """Return the head of a replay, a feed of its own (P4), with `identifier` as atom:id.

    `is_dated`: the replay has other dates, so the head's go.
    """
    if family is Family.JSON:
        title = json.loads(b"{%s}" % head).get("title")
        renamed = f"{title if isinstance(title, str) else ''}{_REPLAY}".strip()
        return with_values(b"{%s}" % head, {"title": renamed})[1:-1]
    read = read_head(family, version, head)
    if read is None:
        return head
    document, offset = read
    text, edits = document.text, list[Edit]()
    for each in document.head.children:
        places = attribute_places(text, each.start)
        inner, values = places.end, places.values(text)
        is_coded = b"base64" in values.get(b"mode", b"")
        kind = "other" if is_coded else f"{kind_of(each.namespace)} {each.name}"
        media_type = "xhtml" if b"xhtml" in values.get(b"type", b"") else ""
        child = EntryChild(kind, each.start, inner, each.end, text[inner - 2 : inner] == b"/>", media_type)
        if kind in _LEADS_AWAY or kind.startswith("sy ") or (kind in _DATES and is_dated):
            edits.append((each.start, each.end, b""))
        elif kind == "atom id":
            edits.append(_fill(text, child, escape(identifier).encode()))
        elif kind in ("atom title", "rss title"):
            edits.append(_append_text(text, child, _REPLAY.encode()))
    end, own_place = offset + len(head), head.find(OWN_PLACE)
    at = end if own_place < 0 else offset + own_place
    edits.append((at, at, _BLOCK))
    if own_place >= 0:
        edits.append((at, at + 1, OWN_PLACE))
    return apply_edits(text, edits, offset, end)


_REPLAY: Final = " (replay)"
_LEADS_AWAY: Final = frozenset(
    {"itunes new-feed-url", "itunes block", "podcast guid", "rss ttl", "rss skipHours", "rss skipDays"}
)
"""These lead apps to the feed itself, set its pace, or duplicate `_BLOCK`."""
_BLOCK: Final = f'<itunes:block xmlns:itunes="{WELL_KNOWN_PREFIXES["itunes"]}">Yes</itunes:block>\n'.encode()


def _append_text(text: bytes, child: EntryChild, suffix: bytes) -> Edit:
    if child.is_empty:
        return _fill(text, child, suffix.strip())
    place = text.rindex(b"</", child.inner, child.end)
    content = text[child.inner : place]
    if content.rstrip().endswith(b"]]>"):
        place = child.inner + content.rindex(b"]]>")
    elif child.media_type == "xhtml" and _DIV.match(content):
        place = child.inner + content.rindex(b"</")
    return place, place, suffix
