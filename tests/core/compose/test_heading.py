"""What a feed calls itself, read from its subscription document, and from the head that is stored of it."""

from __future__ import annotations

import json

import pytest

from wholefeed.core.compose.compose import MAX_HEAD_BYTES, Heading, heading_of, stored_heading
from wholefeed.core.jobs import compose
from wholefeed.core.model import FeedDocument
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


def as_stored(document: FeedDocument) -> Heading:
    """What is read of the head that is published of a document."""
    return stored_heading(document.family, document.version, compose(document).head.text, URL)


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
    """The title on one line, the site as an absolute URL; of RDF, whose channel has two URLs, no site. The
    document and the head that is published of it say the same."""
    found = parse(document.encode(), URL)
    assert (heading_of(found), as_stored(found)) == (expected, expected)


@pytest.mark.parametrize("link", ["http://[x/", "http://a b/", "https://:x/"])
def test_a_link_that_is_no_url_leaves_the_title(link: str) -> None:
    """A publisher's typing error in one field says nothing of another."""
    found = parse(RSS.replace("/site/", link).encode(), URL)
    assert heading_of(found).title == as_stored(found).title == "The & title"


@pytest.mark.fault("117")
def test_what_is_too_long_for_a_list_is_not_kept() -> None:
    """Row 117: a title is cut; a URL that was cut would be another one, and is left out."""
    long = parse(RSS.replace("title<", f"{'t' * 5000}<").replace("/site/", f"/{'s' * 9000}").encode(), URL)
    assert heading_of(long) == Heading(f"The & {'t' * 994}", "")


def test_a_title_that_no_encoding_has_can_be_kept() -> None:
    """A lone surrogate, which JSON can name (RFC 8259, section 8.2), is no text for a database."""
    document = json.loads(JSON) | {"title": "a\ud800b"}
    heading_of(parse(json.dumps(document).encode(), URL)).title.encode()


def test_a_head_that_cannot_be_read_says_nothing() -> None:
    """What an earlier version stored must not stop a list, nor cost much where it is long."""
    found = parse(RSS.encode(), URL)
    head = compose(found).head.text
    for stored in (b"<title", head + b" " * MAX_HEAD_BYTES):
        assert stored_heading(found.family, found.version, stored, URL) == Heading("", "")
