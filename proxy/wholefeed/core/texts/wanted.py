"""Find out which entries want the text of their page (T1): those without a text, or with a cut one (R10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import synthesize
from wholefeed.core.compose.entries import PageEntry, parse_for_page
from wholefeed.core.listing.page_links import link_key, own_link
from wholefeed.core.model import Family
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import UNLIMITED
from wholefeed.core.texts.plain import LONGEST, is_cut_short, squeeze, strip

PAGE_KEY_BYTES: Final = 16


class EntryPage(NamedTuple):
    key: bytes
    """Digest of the page's URL in any spelling; empty: the entry has no page."""
    url: str
    updated_at: float | None
    text: str
    is_full: bool
    """Whether it has its full content (R10)."""
    is_cut: bool
    """Whether its text ends in a mark of cutting."""

    def wants_text(self, *, is_whole: bool) -> bool:
        """Return whether the page's text is wanted.

        `is_whole`: the feed's texts are whole even where it calls them summaries, as is usual in RSS.
        """
        if not self.key:
            return False
        return not self.text or self.is_cut or not (self.is_full or is_whole)


def page_key(url: str) -> bytes:
    return blake2b(link_key(url).encode("utf-8", "replace"), digest_size=PAGE_KEY_BYTES).digest()


def read_entry_pages(texts: Sequence[bytes], family: Family, *, namespace: str) -> list[EntryPage]:
    """Return each entry's page and own text, given its text in a segment.

    `namespace` is the default one around the texts.
    """
    full = _full_ones(texts, family, namespace)
    return [
        _entry_page(parse_for_page(family, text, namespace=namespace), is_full=is_full)
        for text, is_full in zip(texts, full, strict=True)
    ]


def read_entry_page(text: bytes, family: Family, *, namespace: str) -> EntryPage:
    return read_entry_pages([text], family, namespace=namespace)[0]


def _full_ones(texts: Sequence[bytes], family: Family, namespace: str) -> Iterator[bool]:
    made = synthesize(family, "2.0", texts, namespace=namespace)
    document = parse(made, "http://segment.invalid/", max_depth=UNLIMITED)
    return (entry.has_content for entry in document.entries)


def _entry_page(entry: PageEntry, *, is_full: bool) -> EntryPage:
    url = own_link(entry.link) if entry.link else ""
    said = strip(entry.content)
    text = squeeze(said)[:LONGEST]
    if text and text == squeeze(entry.title):  # some feeds repeat the title in place of a text
        text = ""
    return EntryPage(
        key=page_key(url) if url else b"",
        url=url,
        updated_at=entry.updated.at,
        text=text,
        is_full=is_full,
        is_cut=bool(text) and is_cut_short("".join(said.split())),
    )


def may_insert(own: EntryPage, length: int) -> bool:
    """Return whether a page's text of `length` letters says more than the entry as it is now (T5)."""
    return own.wants_text(is_whole=False) and len(own.text) < length
