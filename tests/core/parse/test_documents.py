from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.parse.makers import URL, atom, only, rss, slices
from wholefeed.core.model import Family
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import ParseError

SLUGS = {"malformed-xml", "malformed-json", "not-a-feed", "unsupported-encoding", "xml-limit"}


def refusal(body: bytes, media_type: str = "") -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(body, URL, media_type)
    return caught.value


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html><head><title>x</title></head></html>",
        b"\n<!doctype HTML PUBLIC '-//W3C//DTD HTML 4.01//EN'><HTML>",
        b"<html><body>404 &nbsp; not found<br></body></html>",
        b"<?xml version='1.0'?>\n<!-- x --><!-- - -- y -->\n<html xmlns='http://www.w3.org/1999/xhtml'/>",
        b"<?xml version='1.0'?><!DOCTYPE html PUBLIC 'a' 'b'><x/>",
        b"<x:HTML xmlns:x='y'/>",
        "<!DOCTYPE html><html></html>".encode("utf-16"),
    ],
)
def test_html_is_no_feed(body: bytes) -> None:
    """docs/faults.md row 38: with and without DOCTYPE; it is never repaired into a feed."""
    error = refusal(body, "text/html")

    assert error.slug == "not-a-feed"
    assert error.message.startswith("expected a feed, got HTML")


@pytest.mark.parametrize(
    ("body", "slug", "found"),
    [
        (b"", "not-a-feed", "got nothing"),
        (b" \n\t", "not-a-feed", "got nothing"),
        (b"hello", "not-a-feed", "got neither XML nor JSON Feed"),
        (b'{"a": 1}', "not-a-feed", "got JSON"),
        (b'{"version": "https://example.org/version/1.1"}', "not-a-feed", "got JSON that is no JSON Feed"),
        (b'{"version": "https://jsonfeed.org/version/1.1",}', "malformed-json", "line 1"),
        (b'{"version": "https://jsonfeed.org/version/1.1"} {}', "malformed-json", "no the end"),
        (b'<opml version="2.0"/>', "not-a-feed", "got a document of <opml>"),
        (b'<channel xmlns="urn:rss"/>', "not-a-feed", "got a document of <channel>"),
        (b'<entry xmlns="http://www.w3.org/2005/Atom"/>', "not-a-feed", "got a single Atom entry"),
        (b"<feed xmlns=''/>", "unsupported-format", "got a feed element in namespace ''"),
    ],
)
def test_what_is_no_readable_feed_is_named(body: bytes, slug: str, found: str) -> None:
    """Rows 38, 47: each kind of document that is no feed has its slug and a message that says what was
    found."""
    error = refusal(body)

    assert error.slug == slug
    assert error.message.startswith("expected ")
    assert found in error.message
    assert str(error) == error.message


def test_a_million_comments_do_not_hold_up_the_look_at_the_beginning() -> None:
    """The pattern for HTML is linear, whatever comes."""
    assert refusal(b"<!---->" * 1_000_000 + b"<x/>").slug == "not-a-feed"
    assert refusal(b"<!-- " + b"-" * 1_000_000).slug == "malformed-xml"


def test_atom_and_rss_are_told_by_their_root_not_by_their_content_type() -> None:
    """R23: a feed served under a wrong media type is read as the format that it is."""
    assert parse(atom(), URL, "text/html").family is Family.ATOM
    assert parse(rss(), URL, "application/atom+xml").family is Family.RSS


def test_a_feed_without_entries_is_a_feed() -> None:
    """An empty feed is read, not refused: a new blog can be subscribed to."""
    assert parse(atom(), URL).entries == ()
    assert parse(b"<rss/>", URL).entries == ()


markup = st.sampled_from(
    [
        *("<entry>", "</entry>", "<entry/>", "<id>a</id>", "<id/>", "<item>", "</item>", "<guid>g</guid>"),
        *(
            "<a b='c'>",
            "</a>",
            "<![CDATA[<entry>]]>",
            "<!-- <entry> -->",
            "&amp;",
            "&x;",
            "é",
            " ",
            "<?p i?>",
        ),
        *("<source>", "</source>", "<link rel='next' href='x'/>", "<link>u</link>", "]]>", "<", ">", "/>"),
    ]
)


@given(st.lists(markup, max_size=12).map("".join), st.booleans())
def test_every_text_is_parsed_or_refused(inside: str, is_atom: bool) -> None:
    """Never any other exception; what is an entry begins with < and ends with >."""
    try:
        document = parse(atom(inside) if is_atom else rss(inside), URL)
    except ParseError:
        return
    assert all(each.startswith(b"<") and each.endswith(b">") for each in slices(document))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_parse_error(body: bytes) -> None:
    """docs/design.md#parsing."""
    for candidate in (body, atom(prolog="") + body, atom()[:-7] + body):
        try:
            parse(candidate, URL)
        except ParseError as error:
            assert error.slug in SLUGS  # noqa: PT017


spaces = st.text(" \n\t", max_size=2)
names = st.sampled_from(["entry", "atom:entry"])
contents = st.lists(
    st.sampled_from(
        [
            *(
                "<title>a</title>",
                "<title type='html'>&lt;b></title>",
                "<x:y xmlns:x='urn:x'/>",
                "/>",
                "text",
            ),
            *("<![CDATA[</entry>]]>", "<!-- </entry> -->", "<?pi </entry>?>", "<atom:x/>", "é€😀", "&#x20;"),
            *(
                '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p/></div></content>',
                "<entry/>",
            ),
        ]
    ),
    max_size=5,
).map("".join)


@st.composite
def written_entries(draw: st.DrawFn) -> str:
    name, content = draw(names), draw(contents)
    blank = draw(spaces)
    attributes = draw(st.sampled_from(["", " a='>'", ' b="/"', ' c="/>"', " xml:lang='de'"]))
    if not content and draw(st.booleans()):
        return f"<{name}{attributes}{blank}/>"
    return f"<{name}{attributes}{blank}>{content}</{name}{blank}>"


@given(st.lists(written_entries(), max_size=6), st.lists(spaces, min_size=7, max_size=7))
def test_slices_are_what_was_put_in(entries: list[str], between: list[str]) -> None:
    """R22: byte for byte; docs/design.md#parsing: an empty-element tag's end is reported behind it."""
    inside = "".join(blank + entry for blank, entry in zip(between, [*entries, ""], strict=False))
    body = atom(inside, attributes=' xmlns:atom="http://www.w3.org/2005/Atom"')

    assert slices(parse(body, URL)) == [entry.encode() for entry in entries]


def test_slices_are_right_across_the_pieces_that_expat_is_fed() -> None:
    """docs/design.md#parsing: offsets count from the start of the document."""
    entries = [f"<entry><id>{n}</id><content>{'é' * n}</content></entry>" for n in range(1200)]
    body = atom(*entries)

    assert len(body) > 4 << 18
    assert slices(parse(body, URL)) == [entry.encode() for entry in entries]


@pytest.mark.parametrize(
    ("content", "is_full"),
    [
        ("x", True),
        ("<![CDATA[<p>x</p>]]>", True),
        ("&lt;p>", True),
        ("<p xmlns='http://www.w3.org/1999/xhtml'/>", True),
        ("", False),
        (" \n ", False),
        (" <![CDATA[ ]]>\n", False),
    ],
)
def test_full_content_is_content_with_something_in_it(content: str, is_full: bool) -> None:
    """R10: atom:content, content:encoded, content_html and content_text; a summary is none."""
    head = '<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>'
    guid, date = "<guid>1</guid>", "<pubDate>Mon, 05 Jan 2026 12:00:00 +0000</pubDate>"
    others = "<description>x</description><media:content xmlns:media='http://search.yahoo.com/mrss/'/>"
    updated = "<updated>2026-01-01T00:00:00Z</updated><summary>x</summary>"
    for own in (guid + date, guid, date):
        item = f"<item>{own}{others}<content:encoded>{content}</content:encoded></item>"
        assert only(f"{head}{item}</channel></rss>".encode()).has_content is is_full
    for own in ("<id>1</id>" + updated, "<id>1</id>", updated):
        entry = f"<entry>{own}<content>{content}</content></entry>"
        assert only(atom(entry)).has_content is is_full
    said = "x" if is_full else " "
    for member in ("content_html", "content_text"):
        body = {
            "version": "https://jsonfeed.org/version/1.1",
            "items": [{"id": "1", "summary": "x", member: said}],
        }
        assert only(json.dumps(body).encode()).has_content is is_full


def test_a_summary_is_no_full_content() -> None:
    """R10: nor is what is said of a file."""
    items = "<item><guid>1</guid><description>x</description></item>"
    entry = "<entry><id>1</id><updated>2026-01-01T00:00:00Z</updated><summary>x</summary></entry>"
    media = "<entry><id>1</id><m:content xmlns:m='http://search.yahoo.com/mrss/'>x</m:content></entry>"
    for body in (rss(items), atom(entry), atom(media)):
        assert not only(body).has_content
