"""Programs get an entry's identity in words, title, link and date of publication."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from html import escape

import pytest

from tests.core.parse.makers import URL, atom, rss
from wholefeed.core.compose.compose import synthesize
from wholefeed.core.compose.entries import NAMELESS, Category, Enclosure, Entries, Entry, held
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
    """The link is absolute, the title one line, the date an instant."""
    assert fields(body) == [expected]


def test_an_entry_without_id_is_named_by_its_link_else_by_its_digest() -> None:
    """R9: two reads of the entry give the same words."""
    body = rss(
        "<item><title>a</title><link>http://a.example/1</link></item>", "<item><title>b</title></item>"
    )
    document = parse(body, URL)
    linked, nameless = entries_of(body)
    assert entry_id(linked.identity) == document.entries[0].identity
    assert linked.identity == "http://a.example/1"
    assert nameless.identity == NAMELESS + document.entries[1].identity.hex()


def test_markup_of_a_title_counts_as_text() -> None:
    """XHTML is read as text; HTML is text in XML and stays."""
    xhtml = '<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">A <b>bold</b> one</div></title>'
    html = '<title type="html">A &lt;b&gt;bold&lt;/b&gt; one</title>'
    entries = [f"<entry><id>{n}</id>{title}</entry>" for n, title in enumerate((xhtml, html))]
    assert [each.title for each in entries_of(atom(*entries))] == ["A bold one", "A <b>bold</b> one"]


def test_remembered_copies_say_the_same_as_before() -> None:
    """R8: a copy stored in a synthesized document keeps base and prefix."""
    body = atom(
        "<entry><id>urn:a</id><title>One</title><link href='1'/></entry>",
        attributes=' xml:base="http://a.example/x/"',
    )
    document = parse(body, URL)
    kept = synthesize(document.family, document.version, [fragments_of(document).entry(0)])
    assert fields(kept) == fields(body)


def test_a_guid_that_is_a_relative_address_is_the_link() -> None:
    """R22; RSS 2.0, "guid": the link goes out with the item; a number is no address."""
    items = "<item><guid>/3</guid></item><item><guid>4</guid></item><item><guid>urn:a:5.6</guid></item>"
    body = f'<rss version="2.0"><channel>{items}</channel></rss>'.encode()
    entries = entries_of(body, url="http://example.org/blog/feed")

    assert [each.link for each in entries] == ["http://example.org/3", "", ""]
    assert [each.identity for each in entries] == ["/3", "4", "urn:a:5.6"]


HTML = '<p>Long &amp; <a href="2">more</a></p>'
PLAIN_HTML = "<p>Short<br>&amp; plain</p>"
SOUND = "http://example.org/blog/1.mp3"
IN_FULL: dict[str, bytes | str] = {
    "atom": atom(
        "<entry><id>urn:a</id><title>One</title><summary>Short\n&amp; plain</summary>"
        f'<content type="html" xml:base="/x/">{escape(HTML)}</content><author><name>Ann</name></author>'
        "<author><email>b@a.example</email></author><category term='t' label='T' scheme='urn:s'/>"
        "<category term=' '/><category term='u'/>"
        "<link rel='enclosure' href='1.mp3' type='audio/mpeg' length='9'/>"
        "<itunes:duration>1:02:03</itunes:duration></entry>",
        attributes=' xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"',
    ),
    "atom-0.3": (
        '<feed version="0.3" xmlns="http://purl.org/atom/ns#" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<entry><id>urn:a</id><title>One</title><author><name>Ann</name></author><dc:subject>t</dc:subject>"
        "<summary>Short\n&amp; plain</summary>"
        f"<content type='text/html' mode='escaped'>{escape(HTML)}</content></entry></feed>"
    ),
    "rss": (
        '<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'
        ' xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<channel><item><guid>urn:a</guid><title>One</title><dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator>"
        "<category domain='urn:s'>t</category><category> </category><category>u</category>"
        f"<description>{escape(PLAIN_HTML)}</description><content:encoded><![CDATA[{HTML}]]></content:encoded>"
        "<enclosure url='1.mp3' type='audio/mpeg' length='9'/><itunes:duration>62:03</itunes:duration>"
        "</item></channel></rss>"
    ),
    "rdf": RDF.replace(
        "</item>",
        f"<description>{escape(HTML)}</description><dc:creator>Ann</dc:creator><dc:subject>t</dc:subject></item>",
    ),
    "json": json.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "items": [
                {
                    "id": "a", "title": "One", "content_html": HTML, "content_text": "no",
                    "summary": "Short\n& plain", "authors": [{"name": "Ann"}, {"name": "Bob"}],
                    "tags": ["t", None, " "],
                    "attachments": [
                        {"url": "1.mp3", "mime_type": "audio/mpeg"}
                        | {"size_in_bytes": 9, "duration_in_seconds": 3723}
                    ],
                }
            ],
        }
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "base", "author", "categories"),
    [
        ("atom", "http://example.org/x/", "Ann, b@a.example", [Category("t", "T", "urn:s"), Category("u")]),
        ("atom-0.3", URL, "Ann", [Category("t")]),
        ("rss", URL, "Ann, Bob", [Category("t", scheme="urn:s"), Category("u")]),
        ("rdf", URL, "Ann", [Category("t")]),
        ("json", URL, "Ann, Bob", [Category("t")]),
    ],
)
def test_each_format_says_all_of_an_entry(
    kind: str, base: str, author: str, categories: list[Category]
) -> None:
    """The published content with its base, a second text as HTML, and the file's absolute URL, without empty
    fields. RSS 1.0 has one text.
    """
    (entry,) = entries_of(IN_FULL[kind])
    assert (entry.content, entry.summary) == (HTML, "" if kind == "rdf" else PLAIN_HTML)
    assert (entry.base, entry.author, entry.categories) == (base, author, tuple(categories))
    if kind in ("atom-0.3", "rdf"):
        assert (entry.enclosures, entry.duration_seconds) == ((), None)
    else:
        own = 3723 if kind == "json" else None
        assert entry.enclosures == (Enclosure(SOUND, "audio/mpeg", 9, own),)
        assert entry.duration_seconds == 3723


@pytest.mark.parametrize(
    ("written", "author"),
    [
        ("a@b.example (Ann)", "Ann"),
        (" a@b.example(Ann Bee) ", "Ann Bee"),
        ("a@b.example", "a@b.example"),
    ],
)
def test_the_author_of_an_item_is_the_name_behind_the_address(written: str, author: str) -> None:
    """RSS 2.0, "author": most publishers write the name as a remark."""
    (entry,) = entries_of(rss(f"<item><title>a</title><author>{written}</author></item>"))
    assert entry.author == author


@pytest.mark.fault("147")
def test_an_address_of_nothing_but_signs_is_read_once() -> None:
    """RSS 2.0, "author": half a megabyte once took ten minutes, searched again at each sign."""
    (entry,) = entries_of(rss(f"<item><title>a</title><author>{'a@' * 200_000}</author></item>"))
    assert ("a@" * 200_000).startswith(entry.author)


def test_one_text_is_the_content_whatever_it_is_called() -> None:
    """No program has to look in two places."""
    (entry,) = entries_of(atom("<entry><id>urn:a</id><summary>All</summary></entry>"))
    assert (entry.content, entry.summary) == ("<p>All</p>", "")
    (entry,) = entries_of(rss("<item><title>a</title></item>"))
    assert (entry.content, entry.summary, entry.author, entry.categories) == ("", "", "", ())


@pytest.mark.parametrize(
    ("head", "entry"),
    [("<author><name>Feed</name></author>", "Feed"), ("<rights/>", "")],
)
def test_an_entry_that_names_nobody_has_the_feed_s_author(head: str, entry: str) -> None:
    """RFC 4287, 4.2.1; JSON Feed 1.1, "authors"."""
    assert entries_of(atom(head, "<entry><id>urn:a</id></entry>"))[0].author == entry
    authors = [{"name": entry}] if entry else []
    body = {"version": "https://jsonfeed.org/version/1.1", "authors": authors, "items": [{"id": "a"}]}
    assert entries_of(json.dumps(body))[0].author == entry


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        *(("1:02:03", 3723), ("62:03", 3723), (" 3723 ", 3723), ("0:03.5", 3.5), ("0", None), ("", None)),
        *(("1:2:3:4", None), ("an hour", None), ("-5", None), ("1" * 30, None), ("PT1H", None)),
    ],
)
def test_durations_are_read_as_podcasts_write_them(written: str, seconds: float | None) -> None:
    """Hours, minutes and seconds, or seconds; malformed durations and zero give none."""
    itunes = 'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'
    item = f"<item {itunes}><guid>a</guid><itunes:duration>{written}</itunes:duration></item>"
    assert entries_of(rss(item))[0].duration_seconds == seconds


def test_a_file_of_media_rss_says_how_long_it_plays() -> None:
    """Media RSS 1.5.1, media:content: the seconds apply to the entry if itunes:duration is absent."""
    space = "xmlns:media='http://search.yahoo.com/mrss/'"
    media = f"<media:content {space} url='{SOUND}' medium='audio' duration='9'/>"
    (entry,) = entries_of(rss(f"<item><guid>a</guid>{media}</item>"))
    assert (entry.enclosures, entry.duration_seconds) == ((Enclosure(SOUND, "", None, 9),), 9)
