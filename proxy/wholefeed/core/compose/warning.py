"""The pseudo-entry of a partial feed (R16; RFC 5005, 4.2; PaceFeedState), in the feed's own format.

It says in plain words what is missing and why: URLs and reasons only, with a stable id, so that it does not
churn. It promises nothing. When the feed has healed, an entry of the same id says so for a while.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from email.utils import formatdate
from typing import Final, NamedTuple, assert_never

from wholefeed.core.formats import ATOM_03, segment_end
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.core.slugs import in_words
from wholefeed.core.terms import Family
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.text.markup import escape, quoteattr

_AUTHOR: Final = "wholefeed"
_PAGE_TYPE: Final = "text/html"
"""Of what it links to."""


class Missing(NamedTuple):
    """A document that is not in the reconstruction, as the reader is told of it."""

    url: str
    reason: str


class Told(NamedTuple):
    """What a pseudo-entry says."""

    title: str
    text: str


HEALED: Final = Told(
    "No entries of this feed are missing any more",
    "Documents of this feed that could not be read before have been read. The entries in them are shown now.",
)


def told_missing(missing: Sequence[Missing]) -> Told:
    """Return what a reader of a partial feed is told.

    Args:
        missing: At least one.
    """
    said = "; ".join(f"{document.url}: {in_words(document.reason)}" for document in missing)
    if all(document.reason == DocumentTruncated.slug for document in missing):  # row 49
        return Told(
            "This feed broke off",
            "Nothing says that older entries are missing, but a document of this feed broke off before its"
            f" end, or went on behind it. The entries that were whole in it are shown. {said}.",
        )
    return Told(
        "Older entries of this feed are missing",
        "This feed's history is kept in several documents, and not all of them could be read. Entries that"
        f" stand in them, or behind them, are not shown. {said}.",
    )


def compose_warning(
    family: Family, told: Told, *, identifier: str, url: str, dated_at: float, version: str = ""
) -> bytes:
    """Return the pseudo-entry.

    Args:
        family: Of the feed.
        told: What it says.
        identifier: Stable atom:id, guid, rdf:about or JSON id.
        url: Where more is known of it: the proxy's page of the feed.
        dated_at: Epoch seconds.
        version: Of the subscription document; empty for the family's usual one.
    """
    instant = format_rfc3339(dated_at)
    match family:
        case Family.ATOM:
            entry = _atom(told, identifier, url, instant, is_old=version == ATOM_03)
        case Family.RSS:
            entry = _rss(told, identifier, url, formatdate(int(dated_at), usegmt=True))
        case Family.RDF:
            entry = _rdf(told, identifier, url, instant)
        case Family.JSON:
            entry = _json(told, identifier, url, instant)
        case unreachable:
            assert_never(unreachable)
    return entry.encode() + segment_end(family)


def _atom(told: Told, identifier: str, url: str, instant: str, *, is_old: bool) -> str:
    """Atom 0.3 asks for issued and modified, and for the type of the link."""
    dates = f"<updated>{escape(instant)}</updated>"
    media_type = ""
    if is_old:
        dates = f"<issued>{escape(instant)}</issued><modified>{escape(instant)}</modified>"
        media_type = f' rel="alternate" type="{_PAGE_TYPE}"'
    return (
        f"<entry><title>{escape(told.title)}</title><id>{escape(identifier)}</id>{dates}"
        f"<author><name>{_AUTHOR}</name></author>"
        f"<link{media_type} href={quoteattr(url)}/><summary>{escape(told.text)}</summary></entry>"
    )


def _rss(told: Told, identifier: str, url: str, instant: str) -> str:
    return (
        f"<item><title>{escape(told.title)}</title><link>{escape(url)}</link>"
        f'<guid isPermaLink="false">{escape(identifier)}</guid><pubDate>{escape(instant)}</pubDate>'
        f"<description>{escape(escape(told.text))}</description></item>"
    )


def _rdf(told: Told, identifier: str, url: str, instant: str) -> str:
    return (
        f"<item rdf:about={quoteattr(identifier)}><title>{escape(told.title)}</title>"
        f"<link>{escape(url)}</link><dc:date>{escape(instant)}</dc:date><dc:creator>{_AUTHOR}</dc:creator>"
        f"<description>{escape(escape(told.text))}</description></item>"
    )


def _json(told: Told, identifier: str, url: str, instant: str) -> str:
    item = {
        "id": identifier,
        "url": url,
        "title": told.title,
        "content_text": told.text,
        "date_published": instant,
        "author": {"name": _AUTHOR},
        "authors": [{"name": _AUTHOR}],
    }
    return json.dumps(item, ensure_ascii=False)
