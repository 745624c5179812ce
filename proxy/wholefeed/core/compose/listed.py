"""Write entries listed on a publisher's page as a feed document, and read their links (H5, H6).

An entry has link, title and date; nothing is invented. In Atom, its author is the feed's (RFC 4287, 4.1.1).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import assert_never

from wholefeed.core.compose.compose import synthesize
from wholefeed.core.compose.entries import parse_for_page
from wholefeed.core.facts import Stored
from wholefeed.core.listing.joined_sources import ListedEntry
from wholefeed.core.listing.lists import FeedEntry
from wholefeed.core.model import Family, FeedDocument, default_namespace
from wholefeed.core.text.dates import format_rfc822, format_rfc3339
from wholefeed.core.text.markup import escape, quoteattr, unescape, without_invalid
from wholefeed.core.verbatim.fragments import fragments_of


def named_entries(document: Stored | FeedDocument) -> list[FeedEntry]:
    parsed = document.parse() if isinstance(document, Stored) else document
    family, namespace = parsed.family, default_namespace(parsed.family)
    fragments = fragments_of(parsed)
    made = (
        parse_for_page(family, fragments.sent(n), namespace=namespace) for n in range(len(parsed.entries))
    )
    return [
        FeedEntry(
            link=each.link,
            title=each.title,
            at=each.date.at,
        )
        for each in made
    ]


def write_list(
    entries: Iterable[ListedEntry],
    family: Family,
    version: str,
    *,
    undated_at: float,
    older: Stored | None = None,
) -> bytes:
    """Return a document of the entries, given from the top, and of `older` behind.

    `undated_at` dates Atom entries without a date, because Atom requires one.
    """
    written = [_written(each, family, undated_at).encode() for each in entries]
    if older is not None:
        written += _fragments(older.parse(), but=())
    return synthesize(family, version, written)


def without(document: Stored, ordinals: Collection[int]) -> bytes:
    parsed = document.parse()
    return synthesize(parsed.family, parsed.version, _fragments(parsed, but=ordinals))


def _fragments(document: FeedDocument, *, but: Collection[int]) -> list[bytes]:
    fragments = fragments_of(document)
    return [fragments.entry(n) for n in range(len(document.entries)) if n not in but]


def _written(entry: ListedEntry, family: Family, undated_at: float) -> str:
    link, title = entry.link, without_invalid(entry.title)
    match family:
        case Family.ATOM:
            instant = format_rfc3339(undated_at if entry.at is None else entry.at)
            return (
                f'<entry><title>{escape(title)}</title><link rel="alternate" href={quoteattr(link)}/>'
                f"<id>{escape(link)}</id><updated>{instant}</updated></entry>"
            )
        case Family.RSS:
            dated = "" if entry.at is None else f"<pubDate>{format_rfc822(entry.at)}</pubDate>"
            return (
                f"<item><title>{_title_of_item(title)}</title><link>{escape(link)}</link>"
                f"<guid>{escape(link)}</guid>{dated}</item>"
            )
        case Family.RDF:
            dated = "" if entry.at is None else f"<dc:date>{format_rfc3339(entry.at)}</dc:date>"
            return (
                f"<item rdf:about={quoteattr(link)}><title>{_title_of_item(title)}</title>"
                f"<link>{escape(link)}</link>{dated}</item>"
            )
        case Family.JSON:
            item = {"id": link, "url": link, "title": title}
            if entry.at is not None:
                item["date_published"] = format_rfc3339(entry.at)
            return json.dumps(item, ensure_ascii=False)
        case unreachable:
            assert_never(unreachable)


def _title_of_item(title: str) -> str:
    """Return a title, as HTML where readers would take it for HTML (docs/formats.md)."""
    written = escape(title)
    return escape(written) if "<" in title or unescape(title) != title else written
