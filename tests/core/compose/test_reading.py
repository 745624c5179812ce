"""wholefeed.core.compose.reading: a page's entries stay small and cheap for any content."""

from __future__ import annotations

from html import escape

import pytest

from tests.cpu_time import cpu_limit
from wholefeed.core.compose.reading import ENTRIES_BYTES, Article, EntryText, show_entries
from wholefeed.core.compose.sanitising import Cut
from wholefeed.core.model import ATOM_NS, Family
from wholefeed.core.text.urls import UrlPlaces

ENTRIES = 50
BASE = "http://site.test/blog/"


def an_entry(content: str, *, inside: str = "", kind: str = "html") -> EntryText:
    """An Atom entry, cut at the length that is read."""
    written = escape(content, quote=False) if kind == "html" else content
    text = (
        f'<entry><id>urn:a</id><title>A title</title><link href="{BASE}a.html"/>{inside}'
        f'<content type="{kind}" xml:base="{BASE}">{written}</content></entry>'
    ).encode()
    return EntryText(text[: 1 << 18], is_cut=len(text) > 1 << 18)


def show(entries: list[EntryText], *, has_media: bool = False) -> list[Article]:
    own = UrlPlaces.of(["http://proxy.test"]) if has_media else None
    return show_entries(entries, Family.ATOM, namespace=ATOM_NS, base=BASE, loads_all_but=own)


COSTLY = {
    "nested": "<div>" * 3277,
    "lists": "<ul><li>" * 3000,
    "formats": "<b><i><code><a href=x>" + "<p>x" * 5000,
    "links": "<a href=x>y</a>" * 3000,
    "pictures": "<img src=x>" * 6000,
    "cells": "<table><tr><td>x" * 2000,
    "references": "&amp;" * 30_000,
    "attributes": ("<p " + " ".join(f"a{number}=1" for number in range(30)) + ">") * 900,
    "text": "word " * 50_000,
    "wide": "\U0001f600" * 60_000,
}


@pytest.mark.fault("119")
@pytest.mark.parametrize("kind", COSTLY)
def test_a_page_costs_little_and_is_little(kind: str) -> None:
    """docs/faults.md row 119: a second and a mebibyte for any fifty entries; each shows a part, and tells the
    rest.
    """
    entries = [an_entry(COSTLY[kind])] * ENTRIES
    with cpu_limit(1):
        articles = show(entries, has_media=kind in ("formats", "pictures", "wide"))
    assert len(articles) == ENTRIES
    assert sum(len(each.content.encode()) for each in articles) <= ENTRIES_BYTES
    assert articles[0].content
    assert all(each.title == "A title" and each.link == f"{BASE}a.html" for each in articles)
    assert articles[-1].cut is not Cut.NOTHING


@pytest.mark.fault("119")
def test_an_entry_of_nothing_but_elements_is_read_as_far_as_they_are_few() -> None:
    """Row 119: XHTML is first read as XML, where an element costs a tag."""
    many = an_entry(f'<div xmlns="http://www.w3.org/1999/xhtml">x{"<i/>" * 60_000}</div>', kind="xhtml")
    few = an_entry('<div xmlns="http://www.w3.org/1999/xhtml"><p>y</p></div>', kind="xhtml")
    articles = show([many] * 8 + [few])
    assert {each.cut for each in articles[:-1]} == {Cut.END}
    assert all(each.title == "A title" for each in articles)
    assert (articles[-1].content, articles[-1].cut) == ("<div><p>y</p></div>", Cut.NOTHING)


def test_what_is_large_takes_nothing_from_what_is_small() -> None:
    """Only an entry above its share is cut; smaller entries stay whole."""
    small = an_entry("<p>" + "a" * 3000 + "</p>")
    articles = show([an_entry("<p>" + "a" * 250_000)] * 5 + [small] * 45)
    assert [each.cut for each in articles[:2]] == [Cut.NOTHING] * 2
    assert Cut.END in {each.cut for each in articles[2:5]}
    assert {(each.cut, len(each.content)) for each in articles[5:]} == {(Cut.NOTHING, 3007)}


def test_titles_links_and_files_count() -> None:
    """All text of a publisher counts: long URLs are dropped and many files are counted."""
    link = "http://site.test/" + "&'" * 300
    files = "".join(f'<link rel="enclosure" href="{escape(link)}{n}"/>' for n in range(20))
    entry = (
        f"<entry><id>urn:a</id><title>{'&amp;' * 500}</title><author><name>{'&lt;' * 500}</name></author>"
        f'<link href="{escape(link)}"/>{files}<content type="html">{"&amp;amp;" * 5000}</content></entry>'
    )
    articles = show([EntryText(entry.encode(), is_cut=False)] * ENTRIES)
    shown = [
        escape(each.title + each.link + each.author)
        + each.content
        + escape("".join(f.url * 2 for f in each.files))
        for each in articles
    ]
    assert sum(map(len, shown)) <= ENTRIES_BYTES
    assert {len(each.files) + each.files_left for each in articles} == {20}
    assert articles[0].files
    assert all(each.content for each in articles)
    longer = an_entry("x", inside=f'<link rel="enclosure" href="http://site.test/{"a" * 2000}"/>')
    (article,) = show([longer])
    assert (article.files, article.files_left) == ((), 1)
