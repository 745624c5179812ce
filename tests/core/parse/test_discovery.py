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


@pytest.mark.parametrize("label", ["utf-8", "utf-16", "zip", "base64", ""])
def test_every_announced_feed_is_found_in_order(label: str) -> None:
    """A reader who enters a site's page instead of its feed is led to what its link elements announce,
    whatever its charset says; of several the first Atom one is chosen, and none where there is none."""
    page = PAGE.encode("utf-16" if label == "utf-16" else "utf-8")
    found = discover(page, "http://o.test/blog/", f"text/html; charset={label}")
    assert found == [
        Alternate("application/rss+xml", "http://o.test/rss"),
        Alternate("application/atom+xml", "http://o.test/blog/a.atom", "A"),
        Alternate("application/atom+xml", "http://o.test/blog/b.atom"),
    ]
    json, rdf = (
        Alternate(kind, "http://o.test/") for kind in ("application/feed+json", "application/rdf+xml")
    )
    assert (preferred(found), preferred([json, rdf]), preferred([json]), preferred([])) == (
        found[1],
        rdf,
        json,
        None,
    )


def test_the_title_of_a_feed_is_one_line_of_bounded_length() -> None:
    """What a person chooses by: white space is folded, references are resolved, a novel is cut."""
    page = f'<link rel=alternate type=application/rss+xml href=f title=" A &amp;\n B {"c" * 900}">'
    (found,) = discover(page.encode(), "http://o.test/", "text/html")
    assert found.title.startswith("A & B ccc")
    assert len(found.title) == 200


def test_the_base_element_is_minded() -> None:
    """A feed link that is relative to the page's first <base> leads where a browser would go."""
    page = b'<base href="/x/"><base href="/y/"><link rel=alternate type=application/rss+xml href=f>'
    assert discover(page, "http://o.test/blog/", "text/html")[0].url == "http://o.test/x/f"


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
        *("<a b=c>", "<p>", "&amp;", "<!--", "<!-- -->", "<script>", "</", "<link ", "<link x='", "<link>"),
        *("<b", "<title>", "<"),
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
