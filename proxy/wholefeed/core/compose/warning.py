"""The pseudo-entry of a partial feed (R16; RFC 5005, 4.2; PaceFeedState), in the feed's own format.

It says in plain words what is missing and why: URLs and reasons only, with a stable id, dated at the first
failure, so that it does not churn.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple, assert_never

from wholefeed.core.formats import ATOM_03, MEDIA_TYPE, segment_end
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.core.slugs import in_words
from wholefeed.core.terms import Family
from wholefeed.core.text.markup import escape, quoteattr

_TITLE: Final = "Older entries of this feed are missing"
_EXPLANATION: Final = (
    "This feed's history is kept in several documents, and not all of them could be read. Entries that stand"
    " in them, or behind them, are not shown. wholefeed goes on trying, and takes this entry away when they"
    " are there."
)
_BROKEN_TITLE: Final = "This feed broke off"
_BROKEN_EXPLANATION: Final = (
    "Nothing says that older entries are missing, but a document of this feed broke off before its end, or"
    " went on behind it. The entries that were whole in it are shown. wholefeed asks for it again, and takes"
    " this entry away when it is whole."
)
_AUTHOR: Final = "wholefeed"


class Missing(NamedTuple):
    """A document that is not in the reconstruction, as the reader is told of it."""

    url: str
    reason: str


def compose_warning(
    family: Family,
    *,
    identifier: str,
    missing: Sequence[Missing],
    first_failed: str,
    first_failed_rfc822: str,
    version: str = "",
) -> bytes:
    """Return the pseudo-entry.

    Args:
        family: Of the feed.
        identifier: Stable atom:id, guid, rdf:about or JSON id.
        missing: At least one.
        first_failed: RFC 3339 instant of the first failure.
        first_failed_rfc822: The same instant as RFC 822 writes it.
        version: Of the subscription document; empty for the family's usual one.
    """
    said = "; ".join(f"{document.url}: {in_words(document.reason)}" for document in missing)
    is_broken = all(document.reason == DocumentTruncated.slug for document in missing)  # row 49
    title = _BROKEN_TITLE if is_broken else _TITLE
    text = f"{_BROKEN_EXPLANATION if is_broken else _EXPLANATION} {said}."
    url = missing[0].url
    match family:
        case Family.ATOM:
            entry = _atom(identifier, url, title, text, first_failed, is_old=version == ATOM_03)
        case Family.RSS:
            entry = _rss(identifier, url, title, text, first_failed_rfc822)
        case Family.RDF:
            entry = _rdf(identifier, url, title, text, first_failed)
        case Family.JSON:
            entry = _json(identifier, url, title, text, first_failed)
        case unreachable:
            assert_never(unreachable)
    return entry.encode() + segment_end(family)


def _atom(identifier: str, url: str, title: str, text: str, instant: str, *, is_old: bool) -> str:
    """Atom 0.3 asks for issued and modified, and for the type of the link."""
    dates = f"<updated>{escape(instant)}</updated>"
    media_type = ""
    if is_old:
        dates = f"<issued>{escape(instant)}</issued><modified>{escape(instant)}</modified>"
        media_type = f' rel="alternate" type="{MEDIA_TYPE[Family.ATOM]}"'
    return (
        f"<entry><title>{escape(title)}</title><id>{escape(identifier)}</id>{dates}"
        f"<author><name>{_AUTHOR}</name></author>"
        f"<link{media_type} href={quoteattr(url)}/><summary>{escape(text)}</summary></entry>"
    )


def _rss(identifier: str, url: str, title: str, text: str, instant: str) -> str:
    return (
        f"<item><title>{escape(title)}</title><link>{escape(url)}</link>"
        f'<guid isPermaLink="false">{escape(identifier)}</guid><pubDate>{escape(instant)}</pubDate>'
        f"<description>{escape(escape(text))}</description></item>"
    )


def _rdf(identifier: str, url: str, title: str, text: str, instant: str) -> str:
    return (
        f"<item rdf:about={quoteattr(identifier)}><title>{escape(title)}</title><link>{escape(url)}</link>"
        f"<dc:date>{escape(instant)}</dc:date><dc:creator>{_AUTHOR}</dc:creator>"
        f"<description>{escape(escape(text))}</description></item>"
    )


def _json(identifier: str, url: str, title: str, text: str, instant: str) -> str:
    item = {
        "id": identifier,
        "url": url,
        "title": title,
        "content_text": text,
        "date_published": instant,
        "author": {"name": _AUTHOR},
        "authors": [{"name": _AUTHOR}],
    }
    return json.dumps(item, ensure_ascii=False)
