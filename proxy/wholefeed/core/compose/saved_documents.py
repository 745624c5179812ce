"""Write entries that a feed reader saved as documents of a feed, in the feed's own format (I4)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, assert_never

from wholefeed.core.compose.compose import synthesize
from wholefeed.core.model import Family
from wholefeed.core.saved.saved_entries import SavedEnclosure, SavedEntry
from wholefeed.core.text.dates import format_rfc822, format_rfc3339
from wholefeed.core.text.markup import escape, quoteattr, unescape, without_invalid
from wholefeed.core.text.urls import is_http


def write_saved(
    entries: Sequence[SavedEntry], family: Family, version: str, *, undated_at: float
) -> Iterator[bytes]:
    """Yield documents of at most `_PART_ENTRIES` entries and about `_PART_BYTES`, in the given order.

    `undated_at` dates Atom entries without a date, because Atom requires one.
    """
    links = Counter(each.link for each in entries)
    written: list[bytes] = []
    size_bytes = 0
    for each in entries:
        own_id = each.id or (each.link if each.link and links[each.link] == 1 else "")
        written.append(_written(each, own_id, family, undated_at).encode("utf-8", "replace"))
        size_bytes += len(written[-1])
        if size_bytes >= _PART_BYTES or len(written) >= _PART_ENTRIES:
            yield synthesize(family, version, written)
            written, size_bytes = [], 0
    if written:
        yield synthesize(family, version, written)


_PART_BYTES: Final = 1 << 20
_PART_ENTRIES: Final = 1000
"""Documents stay small enough to be rendered and replaced one by one."""


def _written(entry: SavedEntry, own_id: str, family: Family, undated_at: float) -> str:
    match family:
        case Family.ATOM:
            return _atom(entry, own_id or make_saved_id(entry), undated_at)
        case Family.RSS:
            return _rss(entry)
        case Family.RDF:
            return _rdf(entry, own_id or make_saved_id(entry))
        case Family.JSON:
            return json.dumps(_json(entry, own_id or make_saved_id(entry)), ensure_ascii=False)
        case unreachable:
            assert_never(unreachable)


def make_saved_id(entry: SavedEntry) -> str:
    """Return an id for an entry with neither an id nor a link of its own, the same each time."""
    parts = (entry.link, entry.title, str(entry.published_at), entry.content)
    return f"{SAVED_ID}{hashlib.sha256(chr(0).join(parts).encode('utf-8', 'replace')).hexdigest()[:32]}"


SAVED_ID: Final = "urn:wholefeed:saved:"


def _atom(entry: SavedEntry, own_id: str, undated_at: float) -> str:
    published_at = entry.published_at
    updated_at = next(at for at in (entry.updated_at, published_at, undated_at) if at is not None)
    parts = [
        f"<entry{_base_of(entry)}><title>{_text(entry.title)}</title>",
        f'<link rel="alternate" href={_attribute(entry.link)}/>' if entry.link else "",
        f"<id>{_text(own_id)}</id>",
        f"<published>{format_rfc3339(published_at)}</published>" if published_at is not None else "",
        f"<updated>{format_rfc3339(updated_at)}</updated>",
        f"<author><name>{_text(entry.author)}</name></author>" if entry.author else "",
        f'<summary type="html">{_text(entry.summary)}</summary>' if entry.summary else "",
        f'<content type="html">{_text(entry.content)}</content>' if entry.content else "",
        *(
            f'<link rel="enclosure"{_optional("type", each.media_type)} href={_attribute(each.url)}'
            f"{_optional('length', _length(each))}/>"
            for each in entry.enclosures
        ),
        "</entry>",
    ]
    return "".join(parts)


def _rss(entry: SavedEntry) -> str:
    is_permalink = "" if entry.id == entry.link else ' isPermaLink="false"'
    parts = [
        f"<item{_base_of(entry)}><title>{_title_of_item(entry.title)}</title>",
        f"<link>{_text(entry.link)}</link>" if entry.link else "",
        f"<guid{is_permalink}>{_text(entry.id)}</guid>" if entry.id else "",
        f"<pubDate>{format_rfc822(entry.published_at)}</pubDate>" if entry.published_at is not None else "",
        f"<atom:updated>{format_rfc3339(entry.updated_at)}</atom:updated>"
        if entry.updated_at is not None
        else "",
        _texts_of_item(entry),
        *(
            f"<enclosure url={_attribute(each.url)}{_optional('length', _length(each) or '0')}"
            f"{_optional('type', each.media_type)}/>"
            for each in entry.enclosures
        ),
        "</item>",
    ]
    return "".join(parts)


def _rdf(entry: SavedEntry, own_id: str) -> str:
    dated = "" if entry.order_at is None else f"<dc:date>{format_rfc3339(entry.order_at)}</dc:date>"
    return (
        f"<item rdf:about={_attribute(own_id)}{_base_of(entry)}><title>{_title_of_item(entry.title)}</title>"
        f"<link>{_text(entry.link or own_id)}</link>{dated}{_texts_of_item(entry)}</item>"
    )


def _texts_of_item(entry: SavedEntry) -> str:
    creator = f"<dc:creator>{_title_of_item(entry.author)}</dc:creator>" if entry.author else ""
    summary = f"<description>{_text(entry.summary)}</description>" if entry.summary else ""
    content = f"<content:encoded>{_text(entry.content)}</content:encoded>" if entry.content else ""
    return creator + summary + content


def _json(entry: SavedEntry, own_id: str) -> dict[str, Any]:
    dates = {"date_published": entry.published_at, "date_modified": entry.updated_at}
    found: dict[str, Any] = {
        "id": own_id,
        "url": entry.link,
        "title": entry.title,
        "content_html": entry.content,
        "summary": entry.summary,
        **{name: format_rfc3339(at) for name, at in dates.items() if at is not None},
        "authors": [{"name": entry.author}] if entry.author else [],
        "attachments": [
            {"url": each.url, "mime_type": each.media_type}
            | ({} if each.length is None else {"size_in_bytes": each.length})
            for each in entry.enclosures
        ],
    }
    return {name: value for name, value in found.items() if value not in ("", [])}


def _base_of(entry: SavedEntry) -> str:
    return f" xml:base={_attribute(entry.base)}" if is_http(entry.base) else ""


def _optional(name: str, value: str) -> str:
    return f" {name}={_attribute(value)}" if value else ""


def _length(enclosure: SavedEnclosure) -> str:
    return "" if enclosure.length is None else str(enclosure.length)


def _text(text: str) -> str:
    return escape(without_invalid(text))


def _attribute(text: str) -> str:
    return quoteattr(without_invalid(text))


def _title_of_item(title: str) -> str:
    """Return a title, as HTML where readers would take it for HTML (docs/formats.md)."""
    written = _text(title)
    return escape(written) if "<" in title or unescape(title) != title else written
