"""The elements of Atom, RSS and RDF."""

from __future__ import annotations

import pytest

from tests.core.parse.makers import URL, atom, only, rss, slices
from wholefeed.core.model import (
    ATOM_NS,
    DC_NS,
    DCTERMS_NS,
    FH_NS,
    RDF_NS,
    RSS_090_NS,
    RSS_10_NS,
    TOMBSTONE_NS,
    Family,
    FeedDocument,
    HistoryElement,
    Link,
    entry_id,
)
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import MAX_SCOPES, ParseError
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.verbatim.fragments import Fragments

AT = 1071340202.0
"""2003-12-13T18:30:02Z"""


def test_the_head_of_atom_is_read() -> None:
    """RFC 4287, 4.1.1."""
    document = parse(
        atom(
            "<id> urn:feed\n</id><title type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>a<b>b</b></div></title>",
            "<updated>2003-12-13T18:30:02Z</updated>",
            attributes=" xml:lang=' de ' xmlns:x='urn:x'",
        ),
        URL,
    )

    head = document.head
    assert document.version == "1.0"
    assert (head.site_id, head.title, head.updated_at) == ("urn:feed", "ab", AT)
    assert head.scope.prefixes == {"": ATOM_NS, "fh": FH_NS, "x": "urn:x"}
    assert (head.scope.lang, head.scope.base) == ("de", URL)
    assert parse(atom(attributes=f" xml:lang='{'x' * 65}'"), URL).head.scope.lang == ""


def test_head_children_stand_in_document_order_with_their_spans() -> None:
    """R20: the answer repeats the head's elements in order and byte for byte."""
    inside = [
        "<title a='>'/>",
        "<x:y xmlns:x='urn:x'><link rel='next' href='q'/></x:y>",
        "<id >1</id\n>",
        "<feed/>",
    ]
    document = parse(atom(inside[0], "<entry/>", *inside[1:]), URL)

    children = document.head.children
    assert [document.text[c.start : c.end].decode() for c in children] == inside
    assert [(c.namespace, c.name) for c in children] == [
        *((ATOM_NS, "title"), ("urn:x", "y"), (ATOM_NS, "id"), (ATOM_NS, "feed"))
    ]


def test_links_of_the_head_count_wherever_they_stand_and_those_of_entries_never() -> None:
    """R0: only children of the head count."""
    document = parse(
        atom(
            "<link rel='self' href='a'/>",
            "<entry><id>1</id><link rel='prev-archive' href='no'/>",
            "<source><link rel='prev-archive' href='no'/></source></entry>",
            "<link rel='prev-archive' href='b' type='Application/Atom+XML; charset=utf-8'/>",
        ),
        URL,
    )

    assert document.head.links == (
        Link("self", "http://example.org/blog/a", "", "a"),
        Link("prev-archive", "http://example.org/blog/b", "application/atom+xml", "b"),
    )
    assert [child.relation for child in document.head.children] == ["self", "prev-archive"]


@pytest.mark.parametrize(
    ("written", "relation"),
    [
        ("rel='prev-archive'", "prev-archive"),
        ("rel=' Prev-Archive '", "prev-archive"),
        ("rel='http://www.iana.org/assignments/relation/prev-archive'", "prev-archive"),
        ("rel='HTTP://www.IANA.org/assignments/relation/Next'", "next"),
        ("", "alternate"),
        ("rel=''", "alternate"),
        ("rel='http://example.org/rel/X'", "http://example.org/rel/x"),
    ],
)
def test_relations_are_the_same_in_every_spelling(written: str, relation: str) -> None:
    """R12; RFC 4287, 4.2.7.2: in any case, also as IANA IRIs; the default is alternate."""
    (link,) = parse(atom(f"<link {written} href='x'/>"), URL).head.links

    assert link.relation == relation


@pytest.mark.parametrize(
    ("feed", "link", "target"),
    [
        ("", "", "http://example.org/blog/x"),
        ("xml:base='/other/'", "", "http://example.org/other/x"),
        ("xml:base='http://example.net/a/b'", "", "http://example.net/a/x"),
        ("xml:base='/other/'", "xml:base='deep/'", "http://example.org/other/deep/x"),
        ("xml:base='http://[bad/'", "", "http://example.org/blog/x"),
        ("", "xml:base=''", "http://example.org/blog/x"),
        (f"xml:base='{'a' * 3000}/'", "", "http://example.org/blog/x"),
    ],
)
def test_targets_are_absolute_against_the_base_in_scope(feed: str, link: str, target: str) -> None:
    """R11; RFC 3986, 5.1; XML Base, 4. An invalid base changes nothing."""
    body = atom(f"<link rel='next' href='x' {link}/>", attributes=f" {feed}" if feed else "")

    (found,) = parse(body, URL).head.links
    assert (found.target, found.href) == (target, "x")
    for none in ("", "href=''", "href=' '", "href='http://[bad'"):
        (found,) = parse(body.replace(b"href='x'", none.encode()), URL).head.links
        assert found.target == ""


def test_history_elements_count_by_namespace_whatever_the_prefix() -> None:
    """R4; RFC 5005, 2 and 4."""
    document = parse(
        atom(
            f"<fh:archive/><x:complete xmlns:x='{FH_NS}'/><prev xmlns='{FH_NS}'> http://a/ </prev>",
            "<entry><fh:archive/></entry><fh:incremental>\ntrue </fh:incremental>",
            "<x:archive xmlns:x='urn:x'/>",
        ),
        URL,
    )

    assert document.head.history == (
        HistoryElement("archive", ""),
        HistoryElement("complete", ""),
        HistoryElement("prev", "http://a/"),
        HistoryElement("incremental", "true"),
    )


@pytest.mark.parametrize(
    ("written", "updated_at", "order_at"),
    [
        ("<published>2001-01-01T00:00:00Z</published><updated>2003-12-13T18:30:02Z</updated>", AT, AT),
        ("<updated>soon</updated><published>2003-12-13T18:30:02Z</published>", None, AT),
        ("<updated>soon</updated>", None, None),
    ],
)
def test_an_entry_is_ordered_by_its_update_else_by_its_publication(
    written: str, updated_at: float | None, order_at: float | None
) -> None:
    """R9, R10, R20: a publication date is never an update."""
    entry = only(atom(f"<entry><id>\n urn:1 </id>{written}</entry>"))
    assert entry.identity == entry_id("urn:1")
    assert (entry.updated_at, entry.order_at) == (updated_at, order_at)


def test_only_children_of_the_entry_count_for_it() -> None:
    """RFC 4287, 4.2.11: atom:source has another feed's metadata; extensions have children too."""
    entry = only(
        atom(
            "<entry><source><id>no</id><updated>2001-01-01T00:00:00Z</updated></source>",
            "<x xmlns='urn:x'><id>no</id><id xmlns='http://www.w3.org/2005/Atom'>no</id></x>",
            "<id xmlns='urn:x'>no</id><id>yes</id><id>too late</id></entry>",
        )
    )

    assert entry.identity == entry_id("yes")
    assert entry.updated_at is None


@pytest.mark.parametrize(
    ("inside", "has_author", "has_rights"),
    [
        ("", False, False),
        ("<author><name>a</name></author>", True, False),
        ("<rights>r</rights>", False, True),
        ("<source><author/><rights/></source>", True, True),
        ("<source><x xmlns='urn:x'><author/></x><rights/></source>", False, True),
        ("<contributor/><content><author/><rights/></content>", False, False),
        ("<source/><author/>", True, False),
    ],
)
def test_the_author_and_rights_of_an_entry_or_its_source_are_its_own(
    inside: str, has_author: bool, has_rights: bool
) -> None:
    """RFC 4287, 4.1.2, 4.2.1, 4.2.10."""
    entry = only(atom(f"<entry><id>1</id>{inside}</entry>"))

    assert (entry.has_author, entry.has_rights) == (has_author, has_rights)


def test_entries_count_whatever_their_prefix() -> None:
    """The namespace decides: a prefixed entry is served."""
    entries = f"<a:entry><a:id>1</a:id></a:entry><x:entry xmlns:x='urn:x'/><b:entry xmlns:b='{ATOM_NS}'/>"
    document = parse(f"<a:feed xmlns:a='{ATOM_NS}'>{entries}</a:feed>".encode(), URL)

    assert len(document.entries) == 2
    assert [child.name for child in document.head.children] == ["entry"]


DATE = "Sat, 13 Dec 2003 18:30:02 GMT"
ITEM = "<item><guid>1</guid></item>"


def test_the_head_of_rss_is_read() -> None:
    """Title, site, date, base and language are the channel's, not its image's."""
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
    """RSS 0.91 to 2.0, with and without version, in any default namespace."""
    inside = f"<title>T</title>{ITEM}<item><guid>2</guid></item>"
    document = parse(f"{root}<channel>{inside}</channel></rss>".encode(), URL)

    assert document.version == version
    assert [entry.identity for entry in document.entries] == [entry_id("1"), entry_id("2")]
    is_plain = "Atom" not in root
    assert document.head.title == ("T" if is_plain else "")


PREFIXED = "<r:rss xmlns:r='{}'><r:channel><r:item><r:guid>1</r:guid></r:item></r:channel></r:rss>"


def test_a_root_with_a_prefix_is_read_in_the_namespaces_that_readers_know() -> None:
    """Otherwise items are lost, since the output's rss element has no namespace."""
    assert only(PREFIXED.format("http://backend.userland.com/rss2").encode()).identity == entry_id("1")
    for root in (PREFIXED.format("urn:r"), "<rss:rss xmlns:rss='urn:r'/>"):
        with pytest.raises(ParseError, match="an rss element with a prefix") as caught:
            parse(root.encode(), URL)
        assert caught.value.slug == "unsupported-format"


@pytest.mark.parametrize(
    "item",
    [
        "<o:item><guid>2</guid></o:item>",
        "<item:item xmlns:item='urn:own'><guid>2</guid></item:item>",
        "<items:item xmlns:items='urn:x'/>",
    ],
)
def test_an_item_with_a_prefix_is_none_in_a_namespace_that_the_document_made_up(item: str) -> None:
    """Also if its root, or another item, has that namespace."""
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
        f"<rss><channel><x:item xmlns:x='urn:x'/>{ITEM}</channel></rss>",
    ],
)
def test_items_are_children_of_a_channel_or_of_the_root(body: str) -> None:
    """RSS 0.90 allows them beside the channel."""
    assert only(body.encode()).identity == entry_id("1")


def test_the_first_channel_is_the_feed() -> None:
    """A second channel changes neither title nor language."""
    first = "<title>no</title><channel xml:lang='de'><title>a</title></channel><x/>"
    second = "<channel xml:lang='fr' xmlns:x='urn:x'><x:y/><title>b</title></channel>"
    for body in (f"<rss>{first}{second}</rss>", f"<rss xmlns:a='urn:a'>{ITEM}{first}{second}</rss>"):
        head = parse(body.encode(), URL).head

        assert (head.title, head.scope.lang) == ("a", "de")
        assert [child.name for child in head.children] == ["title"]


def test_each_item_knows_what_is_in_scope_where_it_stands() -> None:
    """R22: in the first channel, in a later one, beside them."""
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
    """R10: never pubDate or dc:date; R20: these only order."""
    prefixes = ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"'
    entry = only(rss(f"<item><guid>1</guid>{inside}</item>", attributes=prefixes))

    assert (entry.updated_at, entry.order_at) == (updated_at, order_at)
    assert entry.has_author
    assert entry.has_rights


def test_an_item_in_the_default_namespace_of_atom_is_read_by_its_plain_names() -> None:
    """Some feeds set Atom's namespace on the rss root by mistake."""
    item = f"<item xmlns='{ATOM_NS}'><guid>1</guid><updated>2003-12-13T18:30:02Z</updated></item>"

    entry = only(rss(item))
    assert (entry.identity, entry.updated_at) == (entry_id("1"), AT)


CHANNEL = '<channel rdf:about="http://o.test/"><title>T</title><link>http://o.test/</link>{}</channel>'


def rdf(*inside: str, namespace: str = RSS_10_NS, attributes: str = "", channel: str = "") -> bytes:
    root = f'<rdf:RDF xmlns="{namespace}" xmlns:rdf="{RDF_NS}" xmlns:dc="{DC_NS}"{attributes}>'
    return f"{root}{CHANNEL.format(channel)}{''.join(inside)}</rdf:RDF>".encode()


def read(body: bytes) -> FeedDocument:
    return parse(body, URL)


@pytest.mark.parametrize(
    ("namespace", "version"),
    [
        (RSS_10_NS, "1.0"),
        (RSS_090_NS, "0.90"),
        ("http://channel.netscape.com/rdf/simple/0.9/", "0.90"),
    ],
)
def test_rdf_is_read_with_the_items_beside_the_channel(namespace: str, version: str) -> None:
    """R10: byte for byte; the channel gives the title, and its dc:date replaces a pubDate."""
    items = ['<item rdf:about="urn:a"><title>A</title></item>', '<item rdf:about="urn:b"/>']
    dated = "<dc:date>2003-12-13T18:30:02Z</dc:date>"
    document = read(rdf('<image rdf:about="urn:i"/>', *items, namespace=namespace, channel=dated))
    assert (document.family, document.version, document.head.title) == (Family.RDF, version, "T")
    assert slices(document) == [item.encode() for item in items]
    assert document.head.updated_at == AT
    empty = read(f'<rdf:RDF xmlns:rdf="{RDF_NS}"/>'.encode())
    assert (empty.family, empty.entries, empty.head.channel) == (Family.RDF, (), None)


def test_the_items_identity_is_rdf_about_whatever_else_they_have() -> None:
    """R9."""
    document = read(rdf('<item rdf:about=" urn:a "><guid>no</guid><link>http://o.test/a</link></item>'))
    assert document.entries[0].identity == entry_id("urn:a")


def test_the_update_instant_is_never_dc_date() -> None:
    """R10."""
    dated = "<item><link>l</link><dc:date>2020-01-02T00:00:00Z</dc:date>{}</item>"
    modified = f'<m:modified xmlns:m="{DCTERMS_NS}">2021-01-02</m:modified>'
    published, updated = read(rdf(dated.format(""), dated.format(modified))).entries
    assert (published.updated_at, published.order_at) == (None, parse_rfc3339("2020-01-02T00:00:00Z"))
    assert updated.updated_at == parse_rfc3339("2021-01-02")


def test_the_head_s_links_are_those_of_the_channel_under_its_own_base() -> None:
    """R0, R11."""
    link = f'<a:link xmlns:a="{ATOM_NS}" rel="prev-archive" href="1"/>'
    body = rdf(f'<item rdf:about="urn:a">{link.replace("1", "9")}</item>', channel=link)
    body = body.replace(b"<channel ", b'<channel xml:base="http://o.test/x/" ')
    (found,) = read(body).head.links
    assert (found.relation, found.target) == ("prev-archive", "http://o.test/x/1")


def test_items_beside_the_channel_take_nothing_from_it() -> None:
    """R22: each item keeps its meaning."""
    body = rdf('<item rdf:about="urn:b"/>', channel='<item rdf:about="urn:a"/>')
    document = read(body.replace(b"<channel ", b'<channel xml:lang="de" '))
    made = Fragments(document)

    assert [made.entry(n) for n in range(2)] == [
        b'<item xml:lang="de" rdf:about="urn:a"/>',
        b'<item rdf:about="urn:b"/>',
    ]


def test_the_site_is_named_by_the_channel_s_rdf_about() -> None:
    """R24."""
    assert read(rdf()).head.site_id == "http://o.test/"
    assert read(rdf().replace(b'rdf:about="http://o.test/"', b"")).head.site_id == "http://o.test/"


def test_a_tombstone_in_the_channel_is_read() -> None:
    """R19; RFC 6721, 3."""
    at = f'<at:deleted-entry xmlns:at="{TOMBSTONE_NS}" ref=" urn:a " when="2020-01-02T00:00:00Z"/>'
    (tombstone,) = read(rdf(channel=at)).head.tombstones
    assert (tombstone.identity, tombstone.ref) == (entry_id("urn:a"), "urn:a")
    assert tombstone.when_at == parse_rfc3339("2020-01-02T00:00:00Z")


def test_items_with_a_prefix_count_in_namespaces_that_readers_know_alone() -> None:
    """Readers know no items in a namespace that the document invented."""
    made_up = '<p:channel xmlns:p="urn:made-up"/><p:item xmlns:p="urn:made-up"/>'
    known = f'<r:item xmlns:r="{RSS_10_NS}"/><item xmlns="urn:made-up"/>'
    document = parse(f'<rdf:RDF xmlns:rdf="{RDF_NS}">{made_up}{known}</rdf:RDF>'.encode(), URL)
    assert [each[:6] for each in slices(document)] == [b"<r:ite", b"<item "]
