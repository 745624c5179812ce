"""The single entrance to parsing, and the early head of a document."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.parse.makers import URL, atom, only, rss, slices
from wholefeed.core.model import FeedDocument
from wholefeed.core.parse.documents import MAX_EARLY_BYTES, MAX_EARLY_TAGS, EarlyHead, parse
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
    """docs/faults.md row 38: with and without DOCTYPE; no repair makes it a feed."""
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
        (b'{"version": "https://jsonfeed.org/version/1.1":}', "malformed-json", "line 1"),
        (b'{"version": "https://jsonfeed.org/version/1.1"} {}', "malformed-json", "no the end"),
        (b'<opml version="2.0"/>', "not-a-feed", "got a document of <opml>"),
        (b'<channel xmlns="urn:rss"/>', "not-a-feed", "got a document of <channel>"),
        (b'<entry xmlns="http://www.w3.org/2005/Atom"/>', "not-a-feed", "got a single Atom entry"),
        (b"<feed xmlns='urn:x'/>", "unsupported-format", "got a feed element in namespace 'urn:x'"),
    ],
)
def test_what_is_no_readable_feed_is_named(body: bytes, slug: str, found: str) -> None:
    """Rows 38, 47: with a slug for each kind, and a message with the reason."""
    error = refusal(body)

    assert error.slug == slug
    assert error.message.startswith("expected ")
    assert found in error.message
    assert str(error) == error.message


def test_a_million_comments_do_not_hold_up_the_look_at_the_beginning() -> None:
    """The pattern for HTML is linear for any text."""
    assert refusal(b"<!---->" * 1_000_000 + b"<x/>").slug == "not-a-feed"
    assert refusal(b"<!-- " + b"-" * 1_000_000).slug == "malformed-xml"


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
    """R22: byte for byte; docs/design.md#parsing: expat reports the end of an empty-element tag after it."""
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
    """R10: non-empty atom:content, content:encoded, content_html and content_text; a summary does
    not count.
    """
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


LINK = "<link rel='prev-archive' href='/1'/>"
PADDING = "<x>" + "y" * 1024 + "</x>"


def feed(body: bytes, step: int, media_type: str = "") -> list[tuple[int, FeedDocument]]:
    """Feed in pieces; return the result and the count of bytes before it."""
    early = EarlyHead(URL, media_type)
    answers = []
    for start in range(0, len(body), step):
        document = early.feed(body[start : start + step])
        if document is not None:
            answers.append((start + step, document))
    return answers


@pytest.mark.parametrize("step", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_head_is_known_when_the_first_entry_begins(step: int, codec: str) -> None:
    """R0: an early link is a prediction. docs/design.md#the-walk."""
    declared = '<?xml version="1.0" encoding="windows-1252"?>' if codec == "cp1252" else ""
    text = atom(
        f"<title>é</title>{LINK}{PADDING}<fh:archive/>", "<entry><id>1</id>", prolog=declared
    ).decode()
    body = text.replace("</feed>", "").encode(codec)

    ((_, document),) = feed(body + b" " * 100, step)  # once, for any further text
    assert [link.target for link in document.head.links] == ["http://example.org/1"]
    assert [element.name for element in document.head.history] == ["archive"]
    assert document.head.title == "é"
    assert document.entries == ()
    child = document.head.children[1]
    assert document.text[child.start : child.end].decode() == LINK


def test_the_answer_comes_before_the_entry_ends() -> None:
    """R0: the first entry shows the older link, so the next fetch starts early."""
    body = rss(PADDING, "<atom:link rel='prev-archive' href='/1'/>", "<item>" + "x" * 100_000)

    ((after, document),) = feed(body, 100)
    assert after < body.index(b"<item>") + 200
    assert document.head.links[0].target == "http://example.org/1"


def test_a_short_document_answers_too_late_or_not_at_all() -> None:
    """The first kilobyte decides the encoding; a small body has arrived by then."""
    assert feed(atom(LINK, "<entry/>"), 10) == []


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html>" + b" " * 2000,
        b"\x00\x01\x02" * 1000,
        atom(PADDING, "&nbsp;", "<entry/>"),
        atom(PADDING, LINK),
        atom(PADDING, "<a>" * 300, "<entry/>"),
        b"<!DOCTYPE x [<!ENTITY a 'b'>]>" + atom(PADDING, "<entry/>"),
        b"<?xml version='1.0' encoding='utf-16'?>" + atom(PADDING, "<entry/>").replace(b"y", b"\xe9"),
        b'<opml xmlns="x">' + b" " * 2000,
        atom(PADDING).replace(b"yyy", b"\xff\xff\xff") + b"<entry/>",
    ],
)
@pytest.mark.parametrize("step", [100, 1 << 20])
def test_on_any_trouble_it_never_answers(body: bytes, step: int) -> None:
    """R0: for HTML, bad encodings, repairs and limits: a wrong guess costs a request."""
    assert feed(body, step) == []


@pytest.mark.parametrize("step", [4096, 1 << 22])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_it_gives_up_on_a_head_that_is_too_long(step: int, codec: str) -> None:
    """R0: an endless head must not fill memory."""
    head = "<x/>" * (MAX_EARLY_BYTES // 4 + 1024)
    body = atom(head, LINK, "<entry/>").decode().encode(codec)

    assert feed(body, step) == []


@pytest.mark.parametrize(("tags", "answers"), [(MAX_EARLY_TAGS // 2, 1), (3 * MAX_EARLY_TAGS, 0)])
@pytest.mark.parametrize("step", [1000, 1 << 20])
@pytest.mark.fault("87")
def test_it_gives_up_on_a_head_of_many_tags(step: int, tags: int, answers: int) -> None:
    """R0; row 87: other tasks wait, and tags are small on the wire."""
    body = atom(PADDING, LINK, "<link href='a'/>" * tags, "<entry/>")
    assert len(body) < MAX_EARLY_BYTES

    assert len(feed(body, step)) == answers


@given(st.lists(st.binary(max_size=600), max_size=6), st.text(max_size=20))
def test_nothing_makes_it_raise(chunks: list[bytes], media_type: str) -> None:
    """R0: for any bytes and media type, the early look never breaks the fetch."""
    early = EarlyHead(URL, f"text/xml; charset={media_type}")
    for chunk in (*chunks, b"<rss>", *chunks, PADDING.encode()):
        early.feed(chunk)
