"""What a feed calls itself, read from the head that is stored of it."""

from __future__ import annotations

import pytest

from wholefeed.core.compose.compose import Heading, heading_of
from wholefeed.core.jobs import compose_parsed
from wholefeed.core.parse.documents import parse

URL = "http://example.org/feeds/feed"
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/base/">
<id>urn:x</id><title> The
 &amp; title</title><link rel="self" href="f"/><link rel="alternate" href="site/"/>
<updated>2026-01-01T00:00:00Z</updated></feed>"""
RSS = """<rss version="2.0"><channel><title>The &amp; title</title>
<link>/site/</link><description/></channel></rss>"""
JSON = """{"version": "https://jsonfeed.org/version/1.1", "title": "The & title",
"home_page_url": "http://example.org/site/", "items": []}"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="http://example.org/feed"><title>The &amp; title</title><link>http://example.org/</link>
<description/></channel></rdf:RDF>"""


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (ATOM, Heading("The & title", "http://example.org/base/site/")),
        (RSS, Heading("The & title", "http://example.org/site/")),
        (JSON, Heading("The & title", "http://example.org/site/")),
        (RDF, Heading("The & title", "")),
    ],
)
def test_title_and_site_of_every_format(document: str, expected: Heading) -> None:
    """The title on one line, the site as an absolute URL; of RDF, whose channel has two URLs, no site."""
    found = parse(document.encode(), URL)
    head = compose_parsed(found).head
    assert heading_of(found.family, found.version, head.text, URL) == expected


@pytest.mark.parametrize("link", ["http://[x/", "http://a b/", "https://:x/"])
def test_a_link_that_is_no_url_leaves_the_title(link: str) -> None:
    """A publisher's typing error in one field says nothing of another."""
    found = parse(RSS.replace("/site/", link).encode(), URL)
    assert (
        heading_of(found.family, found.version, compose_parsed(found).head.text, URL).title == "The & title"
    )


def test_a_head_that_cannot_be_read_says_nothing() -> None:
    """What an earlier version stored must not stop a list."""
    found = parse(RSS.encode(), URL)
    assert heading_of(found.family, found.version, b"<title", URL) == Heading("", "")
