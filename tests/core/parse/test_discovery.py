from __future__ import annotations

from time import process_time

import pytest

from wholefeed.core.parse.discovery import Alternate, discover, is_html, preferred

PAGE = """<!DOCTYPE html><html><head>
<link rel="stylesheet" href="/s.css">
<link rel="alternate" type="application/rss+xml" href="/rss">
<link rel="ALTERNATE home" type="application/atom+xml; charset=utf-8" title="A" href="a.atom">
<link rel="alternate" type="application/atom+xml" href="b.atom">
<link rel="alternate" type="application/atom+xml" href="">
<link rel="alternate" type="application/atom+xml" href="ftp://o.test/c">
<link rel="alternate" hreflang="de" href="/de">
</head><body>text"""


def test_every_announced_feed_is_found_in_order() -> None:
    """A reader who enters a site's page instead of its feed is led to what its link elements announce."""
    assert discover(PAGE.encode(), "http://o.test/blog/", "text/html") == [
        Alternate("application/rss+xml", "http://o.test/rss"),
        Alternate("application/atom+xml", "http://o.test/blog/a.atom", "A"),
        Alternate("application/atom+xml", "http://o.test/blog/b.atom"),
    ]


def test_the_title_of_a_feed_is_one_line_of_bounded_length() -> None:
    """What a person chooses by: white space is folded, references are resolved, a novel is cut."""
    page = f'<link rel=alternate type=application/rss+xml href=f title=" A &amp;\n B {"c" * 900}">'
    (found,) = discover(page.encode(), "http://o.test/", "text/html")
    assert found.title.startswith("A & B ccc")
    assert len(found.title) == 200


def test_atom_comes_before_rss_and_the_first_of_its_type_counts() -> None:
    """Of several announced feeds the first Atom one is chosen, the format that says most about its
    history."""
    found = discover(PAGE.encode(), "http://o.test/blog/", "text/html")
    assert preferred(found) == Alternate("application/atom+xml", "http://o.test/blog/a.atom", "A")


def test_the_base_element_is_minded() -> None:
    """A feed link that is relative to the page's first <base> leads where a browser would go."""
    page = b'<base href="/x/"><base href="/y/"><link rel=alternate type=application/rss+xml href=f>'
    assert discover(page, "http://o.test/blog/", "text/html")[0].url == "http://o.test/x/f"


def test_the_charset_of_the_page_is_minded() -> None:
    """A page in UTF-16 still leads to its feed."""
    page = '<link rel="alternate" type="application/rss+xml" href="/\u00e9">'.encode("utf-16")
    assert discover(page, "http://o.test/", "text/html; charset=utf-16")[0].url.startswith("http://o.test/")


@pytest.mark.parametrize("media_type", ["text/html; charset=zip", "text/html; charset=base64", "text/html"])
def test_no_charset_breaks_it(media_type: str) -> None:
    """A charset label that names no text encoding does not hide the page's feeds, or raise."""
    assert len(discover(PAGE.encode(), "http://o.test/", media_type)) == 3


def test_a_page_without_feeds_announces_none() -> None:
    """A page without feed links gives no target, so that the reader gets 422 `not-a-feed` (row 38)."""
    assert discover(b"<html><body>hello", "http://o.test/", "text/html") == []
    assert preferred([]) is None


def test_every_format_is_taken_and_xml_is_preferred() -> None:
    """A page that offers JSON Feed alone leads there; beside an XML feed, that one is taken."""
    found = [
        Alternate("application/feed+json", "http://o.test/j"),
        Alternate("application/rdf+xml", "http://o.test/r"),
    ]
    assert preferred(found[:1]) == found[0]
    assert preferred(found) == found[1]


@pytest.mark.parametrize("broken", [b"<![ ]>", b"<![foo[", b"<!DOCTYPE [", b"<!ELEMENT x"])
def test_broken_markup_hides_nothing_that_stood_before_it(broken: bytes) -> None:
    """Markup that the HTML parser gives up on does not lose the feed link in front of it."""
    page = b"<html><link rel=alternate type=application/rss+xml href=/f>" + broken + b"</html>"
    assert [found.url for found in discover(page, "http://o.test/", "text/html")] == ["http://o.test/f"]


def test_what_looks_like_a_page_is_one() -> None:
    """Row 38: HTML is told by its type or by its first tag, and an XML feed is not taken for it."""
    assert is_html(b"x", "text/html; charset=utf-8")
    assert is_html(b"<!doctype html><HTML>", "application/octet-stream")
    assert not is_html(b"<feed>", "application/xml")


SLOW_MACHINE = 60.0
"""50 ms are meant, where nothing else runs."""


@pytest.mark.fault("87")
@pytest.mark.parametrize(
    "unit",
    [
        "<a b=c>",
        "<p>",
        "&amp;",
        "<!--",
        "<!-- -->",
        "<script>",
        "</",
        "<link ",
        "<link x='",
        "<link>",
        "<b",
        "<title>",
        "<",
    ],
)
def test_a_large_page_is_searched_in_no_time(unit: str) -> None:
    """Row 87: it is done on the event loop, so it must not take long, whatever stands in the page."""
    page = LINK + unit * (1_000_000 // len(unit))
    began = process_time()
    found = discover(page.encode(), "http://example.org/", "text/html")
    assert process_time() - began < 0.05 * SLOW_MACHINE
    assert [each.url for each in found] == ["http://example.org/feed"]


@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- {} -->",
        "<script>{}</script>",
        "<style>{}</STYLE>",
        "<textarea>{}</textarea>",
        "<title>{}</title>",
    ],
)
def test_what_is_no_markup_announces_nothing(hidden: str) -> None:
    """WHATWG HTML, 13.1.2: comments, scripts and texts are left alone; what stands behind them counts."""
    other = LINK.replace("/feed", "/other")
    assert [
        each.url for each in discover((hidden.format(other) + LINK).encode(), "http://example.org/", "")
    ] == ["http://example.org/feed"]


LINK = "<link rel=alternate type='application/atom+xml' title='a > b' href='/feed'>"
