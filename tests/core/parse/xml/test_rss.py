from __future__ import annotations

import pytest

from tests.core.parse.makers import URL, only, rss, slices
from wholefeed.core.model import ATOM_NS, Family, entry_id
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import MAX_SCOPES, ParseError

AT = 1071340202.0
"""Sat, 13 Dec 2003 18:30:02 GMT"""
DATE = "Sat, 13 Dec 2003 18:30:02 GMT"
ITEM = "<item><guid>1</guid></item>"


def test_the_head_is_read() -> None:
    """Title, site, date, base and language come from the channel itself, not from its image or other
    parts."""
    document = parse(
        rss(
            "<title>T</title><atom:link href='/x' rel='self'/><link>http://example.org/</link>",
            f"<image><title>no</title><link>no</link></image><pubDate>x</pubDate><lastBuildDate>{DATE}</lastBuildDate>",
            channel=" xml:base='/deep/' xml:lang='de' xmlns:x='urn:x'",
        ),
        URL,
    )

    head = document.head
    assert (document.family, document.version) == (Family.RSS, "2.0")
    assert (head.site_id, head.title, head.updated_at) == ("http://example.org/", "T", AT)
    assert (head.scope.base, head.scope.lang) == ("http://example.org/deep/", "de")
    assert set(head.scope.prefixes) == {"atom", "fh", "x"}
    assert [child.name for child in head.children] == [
        *("title", "link", "link", "image", "pubDate", "lastBuildDate")
    ]
    assert [child.relation for child in head.children][:3] == ["", "self", ""]


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("", None),
        (f"<pubDate>{DATE}</pubDate>", AT),
        (f"<pubDate>{DATE}</pubDate><lastBuildDate>Sat, 13 Dec 2003 18:30:03 GMT</lastBuildDate>", AT + 1),
        (f"<atom:updated>2003-12-13T18:30:05Z</atom:updated><lastBuildDate>{DATE}</lastBuildDate>", AT + 3),
        (f"<pubDate>{DATE}</pubDate><lastBuildDate>never</lastBuildDate>", AT),
    ],
)
def test_the_channel_was_updated_when_it_was_built_else_published(
    inside: str, expected: float | None
) -> None:
    """R10."""
    assert parse(rss(inside), URL).head.updated_at == expected


@pytest.mark.parametrize(
    ("root", "version"),
    [
        ('<rss version="2.0">', "2.0"),
        ('<rss version="0.91">', "0.91"),
        ('<rss version=" 0.92 ">', "0.92"),
        ("<rss>", "2.0"),
        ('<rss version="">', "2.0"),
        ('<rss version="2.0" xmlns="http://backend.userland.com/rss2">', "2.0"),
        ('<rss version="2.0" xmlns="http://www.w3.org/2005/Atom">', "2.0"),
        ('<rss version="2.0" xmlns="urn:own">', "2.0"),
    ],
)
def test_every_rss_root_is_read(root: str, version: str) -> None:
    """RSS 0.91 to 2.0, with and without version, in whatever default namespace."""
    inside = f"<title>T</title>{ITEM}<item><guid>2</guid></item>"
    document = parse(f"{root}<channel>{inside}</channel></rss>".encode(), URL)

    assert document.version == version
    assert [entry.identity for entry in document.entries] == [entry_id("1"), entry_id("2")]
    is_plain = "Atom" not in root
    assert document.head.title == ("T" if is_plain else "")


PREFIXED = "<r:rss xmlns:r='{}'><r:channel><r:item><r:guid>1</r:guid></r:item></r:channel></r:rss>"


def test_a_root_with_a_prefix_is_read_in_the_namespaces_that_readers_know() -> None:
    """Its items would be none in the output, whose rss element is in no namespace."""
    assert only(PREFIXED.format("http://backend.userland.com/rss2").encode()).identity == entry_id("1")
    for root in (PREFIXED.format("urn:r"), "<rss:rss xmlns:rss='urn:r'/>", PREFIXED.format(ATOM_NS)):
        with pytest.raises(ParseError, match="an rss element with a prefix") as caught:
            parse(root.encode(), URL)
        assert caught.value.slug == "unsupported-format"


@pytest.mark.parametrize(
    "item",
    [
        "<o:item><guid>2</guid></o:item>",
        "<item:item xmlns:item='urn:own'><guid>2</guid></item:item>",
        "<items:item xmlns:items='urn:x'/>",
        "<atom:item/>",
    ],
)
def test_an_item_with_a_prefix_is_none_in_a_namespace_that_the_document_made_up(item: str) -> None:
    """Also where its root, or another item, is in that namespace."""
    body = f"<rss xmlns='urn:own' xmlns:o='urn:own' xmlns:atom='{ATOM_NS}'><channel>{ITEM}{item}"
    body += f"<item xmlns='{ATOM_NS}'><guid>3</guid></item>{item}</channel>{item}</rss>"

    document = parse(body.encode(), URL)
    assert [entry.identity for entry in document.entries] == [entry_id("1"), entry_id("3")]


@pytest.mark.parametrize(
    "body",
    [
        f"<rss><channel><title>T</title></channel>{ITEM}</rss>",
        f"<rss>{ITEM}<channel><title>T</title></channel></rss>",
        f"<rss>{ITEM}</rss>",
        f"<rss><channel/><channel>{ITEM}</channel></rss>",
        "<rss><image/><channel><item xmlns='urn:x'><guid>1</guid></item></channel></rss>",
        f"<rss><channel><items>{ITEM}</items><x xmlns='urn:x'>{ITEM}</x>{ITEM}</channel><y>{ITEM}</y></rss>",
        f"<rss><channel><x:item xmlns:x='urn:x'/>{ITEM}</channel></rss>",
    ],
)
def test_items_are_children_of_a_channel_or_of_the_root(body: str) -> None:
    """In RSS 0.90's manner they may stand beside the channel."""
    assert only(body.encode()).identity == entry_id("1")


def test_the_first_channel_is_the_feed() -> None:
    """Of two channels the first one's head counts; the second changes neither title nor language."""
    first = "<channel xml:lang='de'><title>a</title></channel>"
    second = "<channel xml:lang='fr' xmlns:x='urn:x'><x:y/><title>b</title></channel>"
    for body in (f"<rss>{first}{second}</rss>", f"<rss>{ITEM}{first}{second}</rss>"):
        head = parse(body.encode(), URL).head

        assert (head.title, head.scope.lang) == ("a", "de")
        assert [child.name for child in head.children] == ["title"]


def test_each_item_knows_what_is_in_scope_where_it_stands() -> None:
    """R22: in the first channel, in a further one, beside them."""
    channels = (
        "<channel xml:lang='de' xmlns:x='urn:1'>{0}</channel>{0}<channel xml:lang='fr'>{0}{0}</channel>"
    )
    document = parse(f"<rss xml:lang='en'>{ITEM}{channels.format(ITEM)}{ITEM}</rss>".encode(), URL)

    around = [document.scopes[entry.scope] for entry in document.entries]
    assert [scope.lang for scope in around] == ["en", "de", "en", "fr", "fr", "en"]
    assert [dict(scope.prefixes) for scope in around][1:3] == [{"x": "urn:1"}, {}]
    assert len(document.scopes) == 3


def test_items_cannot_have_any_number_of_surroundings() -> None:
    """Each may be as large as one document's."""
    channels = [f"<channel xml:lang='l{n}'>{ITEM}</channel>" for n in range(MAX_SCOPES + 2)]
    body = f"<rss>{''.join(channels[:-1])}{channels[1] * 100}</rss>"

    assert len(parse(body.encode(), URL).scopes) == MAX_SCOPES + 1
    with pytest.raises(ParseError, match="different surroundings"):
        parse(f"<rss>{''.join(channels)}</rss>".encode(), URL)


def test_what_another_element_declares_is_not_in_scope_for_the_items() -> None:
    """R22: a prefix that an element beside the items declares is not bound for them."""
    body = b"<rss xmlns:a='urn:a'><image xmlns:b='urn:b'><x xmlns:c='urn:c'/></image><channel/></rss>"

    assert parse(body, URL).head.scope.prefixes == {"a": "urn:a"}


def test_what_stands_beside_the_channel_is_not_of_the_head() -> None:
    """A title outside the channel is not taken for the feed's."""
    document = parse(b"<rss><title>no</title><channel><title>yes</title></channel><x/></rss>", URL)

    assert [child.name for child in document.head.children] == ["title"]
    assert document.head.title == "yes"


def test_links_and_history_of_the_channel_are_those_in_their_namespaces() -> None:
    """RFC 5005, appendix B."""
    document = parse(
        rss(
            "<fh:archive/><atom:link rel='prev-archive' href='/1'/><link rel='next' href='/no'>x</link>", ITEM
        ),
        URL,
    )

    assert [(link.relation, link.target) for link in document.head.links] == [
        ("prev-archive", "http://example.org/1")
    ]
    assert [element.name for element in document.head.history] == ["archive"]


@pytest.mark.parametrize(
    ("inside", "updated_at", "order_at"),
    [
        ("", None, None),
        (f"<pubDate>{DATE}</pubDate>", None, AT),
        ("<dc:date>2003-12-13T18:30:02Z</dc:date>", None, AT),
        ("<atom:published>2003-12-13T18:30:02Z</atom:published>", None, AT),
        ("<pubDate>2003-12-13T18:30:02Z</pubDate>", None, AT),
        (f"<atom:updated>2003-12-13T18:30:03Z</atom:updated><pubDate>{DATE}</pubDate>", AT + 1, AT + 1),
        (
            f"<dcterms:modified>2003-12-13T18:30:03Z</dcterms:modified><pubDate>{DATE}</pubDate>",
            AT + 1,
            AT + 1,
        ),
        ("<atom:updated>?</atom:updated><dcterms:modified>2003-12-13T18:30:02Z</dcterms:modified>", AT, AT),
        ("<atom:updated xmlns:atom='urn:x'>2003-12-13T18:30:02Z</atom:updated>", None, None),
    ],
)
def test_only_atom_updated_and_dcterms_modified_are_updates(
    inside: str, updated_at: float | None, order_at: float | None
) -> None:
    """R10: never pubDate or dc:date; R20: they only order."""
    prefixes = ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"'
    entry = only(rss(f"<item><guid>1</guid>{inside}</item>", attributes=prefixes))

    assert (entry.updated_at, entry.order_at) == (updated_at, order_at)
    assert entry.has_author
    assert entry.has_rights


def test_an_item_in_the_default_namespace_of_atom_is_read_by_its_plain_names() -> None:
    """What a feed sends whose rss root has Atom's namespace by mistake."""
    item = f"<item xmlns='{ATOM_NS}'><guid>1</guid><updated>2003-12-13T18:30:02Z</updated></item>"

    entry = only(rss(item))
    assert (entry.identity, entry.updated_at) == (entry_id("1"), AT)


def test_slices_keep_cdata_comments_and_references() -> None:
    """R22."""
    items = [
        "<item ><guid isPermaLink='false'>a</guid ><!-- </item> --></item\n>",
        "<item><guid>b</guid><description><![CDATA[</item><p>&nbsp;]]>&#160;</description></item>",
        "<item/>",
    ]

    assert slices(parse(rss(*items), URL)) == [item.encode() for item in items]
