"""What programs are told of an entry: identity in words, title, link, date of publication."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.core.parse.makers import URL, atom, rss
from wholefeed.core.compose.compose import synthesize
from wholefeed.core.compose.entries import NAMELESS, Entries, Entry, held
from wholefeed.core.facts import Stored
from wholefeed.core.model import entry_id
from wholefeed.core.parse.documents import parse
from wholefeed.core.verbatim.fragments import fragments_of

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
WRITTEN = "2026-01-31T12:00:00Z"
ATOM_03 = (
    '<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><id>urn:a</id><title>One</title>'
    f"<link rel='alternate' href='/1'/><issued>{WRITTEN}</issued></entry></feed>"
)
RDF = (
    '<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="http://a.example/"/>'
    '<item rdf:about="http://a.example/1"><title>One</title><link>http://a.example/one</link>'
    f"<dc:date>{WRITTEN}</dc:date></item></rdf:RDF>"
)


def entries_of(body: bytes | str, *live: int, url: str = URL) -> list[Entry]:
    """Those of a document, all unless it is said which."""
    text = body.encode() if isinstance(body, str) else body
    count = len(parse(text, url).entries)
    return list(Entries([held(Stored(text, url, ""), live or range(count), is_current=True)]))


Fields = tuple[str, str, str, datetime | None]


def fields(body: bytes | str) -> list[Fields]:
    return [(each.identity, each.title, each.link, each.published) for each in entries_of(body)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            atom(
                "<entry><id> urn:a </id><title>One\n two</title><link rel='self' href='/no'/>"
                f"<link href='1'/><published>{WRITTEN}</published><updated>{WRITTEN}</updated></entry>",
                attributes=' xml:base="http://a.example/x/"',
            ),
            ("urn:a", "One two", "http://a.example/x/1", AT),
        ),
        (ATOM_03, ("urn:a", "One", "http://example.org/1", AT)),
        (
            rss(
                "<item><guid isPermaLink='false'>a</guid><title>One</title><link>http://a.example/1</link>"
                "<pubDate>Sat, 31 Jan 2026 12:00:00 GMT</pubDate></item>"
            ),
            ("a", "One", "http://a.example/1", AT),
        ),
        (
            rss("<item><guid>http://a.example/1</guid></item>"),
            ("http://a.example/1", "", "http://a.example/1", None),
        ),
        (RDF, ("http://a.example/1", "One", "http://a.example/one", AT)),
        (
            json.dumps(
                {
                    "version": "https://jsonfeed.org/version/1.1",
                    "items": [{"id": 7, "title": "One", "url": "/1", "date_published": WRITTEN}],
                }
            ),
            ("7", "One", "http://example.org/1", AT),
        ),
    ],
    ids=["atom", "atom-0.3", "rss", "rss-guid", "rdf", "json"],
)
def test_each_format_says_the_same_in_its_own_words(body: bytes | str, expected: Fields) -> None:
    """The link is absolute, the title without its line breaks, the date an instant."""
    assert fields(body) == [expected]


def test_an_entry_without_id_is_named_by_its_link_else_by_its_digest() -> None:
    """R9: whatever identifies the entry, two reads of it give the same words."""
    body = rss(
        "<item><title>a</title><link>http://a.example/1</link></item>", "<item><title>b</title></item>"
    )
    document = parse(body, URL)
    linked, nameless = entries_of(body)
    assert entry_id(linked.identity) == document.entries[0].identity
    assert linked.identity == "http://a.example/1"
    assert nameless.identity == NAMELESS + document.entries[1].identity.hex()


def test_markup_of_a_title_counts_as_text() -> None:
    """XHTML is read through; HTML, which is text in XML, stays as it was written."""
    xhtml = '<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">A <b>bold</b> one</div></title>'
    html = '<title type="html">A &lt;b&gt;bold&lt;/b&gt; one</title>'
    entries = [f"<entry><id>{n}</id>{title}</entry>" for n, title in enumerate((xhtml, html))]
    assert [each.title for each in entries_of(atom(*entries))] == ["A bold one", "A <b>bold</b> one"]


def test_remembered_copies_say_the_same_as_before() -> None:
    """R8: a copy that was kept in a synthesized document has lost neither base nor prefix."""
    body = atom(
        "<entry><id>urn:a</id><title>One</title><link href='1'/></entry>",
        attributes=' xml:base="http://a.example/x/"',
    )
    document = parse(body, URL)
    kept = synthesize(document.family, document.version, [fragments_of(document).entry(0)])
    assert fields(kept) == fields(body)


def test_a_guid_that_is_a_relative_address_is_the_link() -> None:
    """R22; RSS 2.0, "guid": as the item goes out with it; a number is none."""
    items = "<item><guid>/3</guid></item><item><guid>4</guid></item><item><guid>urn:a:5.6</guid></item>"
    body = f'<rss version="2.0"><channel>{items}</channel></rss>'.encode()
    entries = entries_of(body, url="http://example.org/blog/feed")

    assert [each.link for each in entries] == ["http://example.org/3", "", ""]
    assert [each.identity for each in entries] == ["/3", "4", "urn:a:5.6"]
