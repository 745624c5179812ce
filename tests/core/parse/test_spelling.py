"""Feeds with misspelt names show the contents that readers see; nothing else changes."""

from __future__ import annotations

from collections.abc import Callable

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls import counted_calls
from tests.core.parse.makers import URL, slices
from wholefeed.core.compose.compose import synthesize
from wholefeed.core.compose.listed import named_entries
from wholefeed.core.model import (
    ATOM_03_NS,
    ATOM_NS,
    FH_NS,
    RDF_NS,
    RSS_10_NS,
    RSS_NAMESPACES,
    WELL_KNOWN_PREFIXES,
    Family,
    FeedDocument,
)
from wholefeed.core.notes import DocumentRepaired
from wholefeed.core.parse.documents import EarlyHead, parse
from wholefeed.core.parse.limits import MAX_DEPTH, ParseError
from wholefeed.core.parse.spelling import respell, right_namespace
from wholefeed.core.verbatim.fragments import fragments_of

ENTRY = "<entry><id>urn:1</id><title>a &amp; b</title><updated>2026-01-01T00:00:00Z</updated></entry>"
ITEM = "<item><title>a &amp; b</title><guid>1</guid><pubDate>Mon, 05 Jan 2026 12:00:00 GMT</pubDate></item>"


def respelt(body: str, *repairs: str) -> FeedDocument:
    document = parse(body.encode(), URL)
    noted = [note.facts["repairs"] for note in document.notes if note.kind is DocumentRepaired]
    assert noted == [repairs] * bool(repairs)
    return document


def text_of(body: str, *repairs: str) -> str:
    return respelt(body, *repairs).text.decode()


# Namespaces


@pytest.mark.parametrize("right", [ATOM_NS, ATOM_03_NS, RDF_NS, RSS_10_NS, FH_NS, WELL_KNOWN_PREFIXES["dc"]])
def test_a_namespace_is_known_by_its_usual_misspellings(right: str) -> None:
    """docs/repair.md: https, `www.` or not, capitals, a final slash or hash, blanks."""
    bare = right.rstrip("/#")
    for written in (bare, f"{bare}/", f"{bare}#", f" {right}", right.upper(), right.lower()):
        assert right_namespace(written) == right
        assert right_namespace(written.replace("http:", "https:")) == right
        assert right_namespace(written.replace("//www.", "//")) == right
    assert right_namespace(f"{right}x") == f"{right}x"


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("https://www.w3.org/2005/Atom", ATOM_NS),
        ("http://www.w3.org/2005/ATOM/", ATOM_NS),
        ("urn:ietf:params:xml:ns:atom", ATOM_NS),
        ("http://purl.org/atom/ns#draft-ietf-atompub-format-06", ATOM_NS),
        ("http://purl.org/atom/ns", ATOM_03_NS),
        ("http://example.com/newformat#", ATOM_03_NS),
        ("http://nobody.example/knows", ATOM_NS),
        ("", ATOM_NS),
    ],
)
def test_a_feed_in_another_namespace_is_one_of_atom(written: str, right: str) -> None:
    """Its entries stay byte for byte."""
    body = f'<feed xmlns="{written}"><title>T</title>{ENTRY}</feed>'

    document = respelt(body, "namespace")

    assert document.text.decode() == body.replace(f'"{written}"', f'"{right}"')
    assert slices(document) == [ENTRY.encode()]
    assert document.head.title == "T"
    assert document.entries[0].order_at is not None


def test_a_feed_element_in_a_namespace_that_nobody_knows_needs_an_entry() -> None:
    """It may be anything else."""
    for body in ("<feed xmlns='urn:x'/>", "<a:feed xmlns:a='urn:x'><a:entry/></a:feed>"):
        with pytest.raises(ParseError, match="got a feed element in namespace 'urn:x'"):
            parse(body.encode(), URL)
    assert respelt("<feed xmlns=''/>", "namespace").entries == ()


def test_prefixes_too_are_bound_to_the_right_namespaces() -> None:
    """Atom, RSS 1.0, RDF, history and links; the last two lead to older documents."""
    body = f'<a:feed xmlns:a="{ATOM_NS}/"><a:title>T</a:title><a:entry><a:id>1</a:id></a:entry></a:feed>'
    assert text_of(body, "namespace") == body.replace("Atom/", "Atom")

    rdf = f'<r:RDF xmlns:r="{RDF_NS[:-1]}" xmlns="https://purl.org/rss/1.0"><item r:about="1"/></r:RDF>'
    assert (
        text_of(rdf, "namespace")
        == f'<r:RDF xmlns:r="{RDF_NS}" xmlns="{RSS_10_NS}"><item r:about="1"/></r:RDF>'
    )

    links = '<h:archive/><l:Link rel="prev-archive" href="/1"/>'
    links += '<link xmlns="https://www.w3.org/2005/Atom" rel="next" href="/2"/>'
    chain = f'<rss xmlns:h="{FH_NS}/" xmlns:l="{ATOM_NS.lower()}"><channel>{links}{ITEM}</channel></rss>'
    head = respelt(chain, "element-names", "namespace").head
    assert [each.name for each in head.history] == ["archive"]
    assert [(each.relation, each.href) for each in head.links] == [("prev-archive", "/1"), ("next", "/2")]


def test_a_prefix_that_is_bound_to_nothing_means_what_it_usually_does() -> None:
    """It is not well-formed, and repaired like undeclared prefixes."""
    link = '<atom:link rel="next" href="/2"/>'
    document = respelt(f'<rss xmlns:atom=""><channel>{link}{ITEM}</channel></rss>', "prefixes")

    assert document.head.links[0].relation == "next"


def test_entries_in_another_namespace_than_their_feed_are_entries() -> None:
    """In a misspelt namespace, none, or an unknown one; in Atom with a prefix as well."""
    for written in ("https://www.w3.org/2005/Atom", "", "urn:x"):
        entry = ENTRY.replace("<entry>", f'<entry xmlns="{written}">')
        document = respelt(f'<feed xmlns="{ATOM_NS}">{entry}</feed>', "namespace")
        assert slices(document) == [ENTRY.replace("<entry>", f'<entry xmlns="{ATOM_NS}">').encode()]
    body = f'<a:feed xmlns:a="{ATOM_NS}">{ENTRY}</a:feed>'
    assert respelt(body, "namespace").entries[0].order_at is not None


@pytest.mark.parametrize(
    "written",
    ['<channel xmlns="urn:x">', f'<channel xmlns="{RSS_10_NS}">', '<r:channel xmlns:r="urn:x">'],
)
def test_a_channel_in_a_namespace_is_the_feed(written: str) -> None:
    """RSS has no namespace; the channel's children follow."""
    end = "</r:channel>" if "r:" in written else "</channel>"
    repairs = ("element-names", "namespace") if "r:" in written else ("namespace",)
    document = respelt(f"<rss>{written}<title>T</title>{ITEM}{end}</rss>", *repairs)

    assert (document.head.title, slices(document)) == ("T", [ITEM.encode()])


def test_an_item_with_a_prefix_that_nobody_knows_is_none() -> None:
    """Readers see none either, in any place."""
    item = ITEM.replace("<item", '<x:item xmlns:x="urn:x"').replace("</item", "</x:item")
    for body in (
        f"<rss><channel>{item}</channel></rss>",
        f"<rss><channel><items>{item}</items></channel></rss>",
    ):
        assert respelt(body).entries == ()


# Case


def test_names_are_known_whatever_their_case() -> None:
    """Roots, parents of entries, entries and their children; the attributes' names too."""
    body = '<RSS Version="2.0"><Channel><TITLE>T</TITLE><ITEM>'
    body += '<Title>a</Title><GUID IsPermaLink="false">1</GUID></ITEM></Channel></RSS>'
    assert text_of(body, "element-names") == (
        '<rss version="2.0"><channel><title>T</title><item><title>a</title>'
        '<guid isPermaLink="false">1</guid></item></channel></rss>'
    )
    feed = f'<Feed xmlns="{ATOM_NS}"><Entry><ID>1</ID><Link HREF="/1"/></Entry></Feed>'
    assert text_of(feed, "element-names") == (
        f'<feed xmlns="{ATOM_NS}"><entry><id>1</id><link href="/1"/></entry></feed>'
    )
    rdf = f'<r:rdf xmlns:r="{RDF_NS}" xmlns="{RSS_10_NS}"><Channel/><Item r:about="1"/></r:rdf>'
    assert text_of(rdf, "element-names") == (
        f'<r:RDF xmlns:r="{RDF_NS}" xmlns="{RSS_10_NS}"><channel/><item r:about="1"/></r:RDF>'
    )


def test_children_in_another_case_are_found_in_entries_that_are_right_themselves() -> None:
    """If the first entry has some, or one has no id or date."""
    item = ITEM.replace("pubDate", "pubdate")
    assert slices(respelt(f"<rss><channel>{item}</channel></rss>", "element-names")) == [ITEM.encode()]
    title = ENTRY.replace("title", "TITLE")
    assert slices(respelt(f'<feed xmlns="{ATOM_NS}">{title}</feed>', "element-names")) == [ENTRY.encode()]


def test_children_of_the_feed_in_another_case_are_found_beside_entries_that_are_right() -> None:
    """Its title, link and dates; among extensions only links and history."""
    body = f"<rss><channel><Title>T</Title><lastbuilddate/><x:Title xmlns:x='urn:x'/>{ITEM}</channel></rss>"
    document = respelt(body, "element-names")
    assert [child.name for child in document.head.children] == ["title", "lastBuildDate", "Title"]


def test_rss_with_a_prefix_of_an_odd_namespace_of_its_own_is_rss() -> None:
    """The root, the channel, its children, and items with theirs."""
    body = f"<rss version='2.0'><channel><title>T</title>{ITEM}</channel></rss>"
    prefixed = body.replace("</", "</r:").replace("<", "<r:").replace("<r:/r:", "</r:")
    odd = prefixed.replace("<r:rss", "<r:rss xmlns:r='http://purl.org/rss/2.0/'")
    document = respelt(odd, "element-names", "namespace")
    assert (document.head.title, slices(document)) == ("T", [ITEM.encode()])


def test_what_is_no_name_of_the_feed_stays_as_it_is() -> None:
    """Text, CDATA sections, comments, references, XHTML and extensions with all contents."""
    kept = (
        "<title><![CDATA[<Item>&amp;<TITLE>]]>&#38;amp;</title><!-- <Item> <GUID> --><?php <Item> ?>"
        '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">'
        '<Item>x</Item><LINK HREF="y"/></div></content>'
        '<x:Title xmlns:x="urn:x"><Id>no</Id></x:Title>\n'
    )
    body = f'<feed xmlns="{ATOM_NS}"><Entry  a=">" ><id>1</id>{kept}</Entry ></feed>'
    assert kept in text_of(body, "element-names")


# Elsewhere


def test_entries_are_found_in_whatever_stands_around_them() -> None:
    """In a wrapper, which is removed; beside others; in RSS, Atom and RDF."""
    two = ITEM.replace("guid>1", "guid>2")
    document = respelt(
        f"<rss><channel><title>T</title>{ITEM}<items><title>no</title>{two}x</items><ttl>1</ttl></channel></rss>",
        "wrappers",
    )
    assert document.text.decode() == f"<rss><channel><title>T</title>{ITEM}{two}<ttl>1</ttl></channel></rss>"

    atom = f'<feed xmlns="{ATOM_NS}"><title>T</title><x><y>{ENTRY}</y></x></feed>'
    assert text_of(atom, "wrappers") == atom.replace("<x><y>", "").replace("</y></x>", "")

    rdf = f'<r:RDF xmlns:r="{RDF_NS}" xmlns="{RSS_10_NS}"><channel/><x><item r:about="1"/></x></r:RDF>'
    assert text_of(rdf, "wrappers") == rdf.replace("<x>", "").replace("</x>", "")


def test_what_a_wrapper_declares_goes_along_with_its_entries() -> None:
    """Prefixes, language and base; the entry's own come first."""
    around = '<items xmlns:x="urn:x" xmlns:y="urn:y" xml:lang="de" xml:base="/a/">'
    item = '<item xmlns:y="urn:own"><guid>1</guid><x:e/></item>'
    document = respelt(f"<rss><channel>{around}{item}</items></channel></rss>", "wrappers")

    (made,) = slices(document)
    assert (
        made
        == b'<item xmlns:x="urn:x" xml:lang="de" xml:base="/a/" xmlns:y="urn:own"><guid>1</guid><x:e/></item>'
    )


def test_entries_in_an_entry_are_no_further_ones() -> None:
    """An extension may hold a feed, and atom:source an entry of a list."""
    inner = f'<x:feed xmlns:x="urn:x"><feed>{ENTRY}</feed></x:feed>'
    entry = ENTRY.replace("</entry>", f"{inner}</entry>").replace("urn:1", "urn:2", 1)
    assert len(respelt(f'<feed xmlns="{ATOM_NS}"><items>{entry}</items></feed>', "wrappers").entries) == 1


@pytest.mark.parametrize(
    ("body", "made"),
    [
        (
            f"<channel><title>T</title>{ITEM}</channel>",
            f'<rss version="2.0"><channel><title>T</title>{ITEM}</channel></rss>',
        ),
        (f"<items>{ITEM}</items>", f'<rss version="2.0"><channel>{ITEM}</channel></rss>'),
        (f"<entries>{ENTRY}</entries>", f'<feed xmlns="{ATOM_NS}">{ENTRY}</feed>'),
    ],
)
def test_a_root_that_holds_entries_is_put_into_a_feed(body: str, made: str) -> None:
    """Without entries it is no feed."""
    assert text_of(body, "wrappers") == made
    for entry in (ITEM, ENTRY):
        body = body.replace(entry, "<other/>")
    with pytest.raises(ParseError, match="got a document of <"):
        parse(body.encode(), URL)


def test_a_large_document_of_entries_that_are_seen_late_is_read() -> None:
    """Late entries do not count as the feed's head."""
    many = "".join(ITEM.replace("guid>1", f"guid>{n}").replace("a &amp;", "a " * 100) for n in range(10_000))
    for body in (
        f"<rss><channel><x>{many}</x></channel></rss>",
        f"<rss><channel>{many.replace('item>', 'Item>')}</channel></rss>",
    ):
        assert len(parse(body.encode(), URL).entries) == 10_000


# Entries of another format


def test_an_item_in_atom_becomes_an_entry() -> None:
    """Title, link, id, dates and text go to Atom's places; the rest is set apart."""
    item = (
        "<item><title>a &amp; b</title><link>http://e.org/1?a&amp;b</link><guid isPermaLink='false'>g</guid>"
        "<pubDate>Mon, 05 Jan 2026 12:00:00 GMT</pubDate><description>&lt;p></description>"
        "<content:encoded><![CDATA[<p>]]></content:encoded><category domain='d'>c</category>"
        "<enclosure url='/a.mp3' length='1' type='audio/mpeg'/>"
        "<author>ann@e.org</author>"
        "<ttl>1</ttl><dc:creator>A</dc:creator></item>"
    )
    declared = " ".join(f'xmlns:{name}="{WELL_KNOWN_PREFIXES[name]}"' for name in ("content", "dc"))
    document = respelt(
        f'<feed xmlns="{ATOM_NS}" {declared}><title>T</title>{item}</feed>',
        "element-names",
        "foreign-entries",
    )
    (made,) = slices(document)
    assert made == (
        b'<entry><title>a &amp; b</title><link href="http://e.org/1?a&amp;b"/><id>g</id>'
        b'<published>2026-01-05T12:00:00Z</published><summary type="html">&lt;p></summary>'
        b'<content type="html"><![CDATA[<p>]]></content><category term="c" scheme="d"/>'
        b'<link rel="enclosure" href="/a.mp3" type="audio/mpeg" length="1"/>'
        b"<author><name>ann@e.org</name></author>"
        b'<ttl xmlns="">1</ttl><dc:creator>A</dc:creator><updated>2026-01-05T12:00:00Z</updated></entry>'
    )
    assert document.entries[0].updated_at == document.entries[0].order_at == 1767614400


def test_an_entry_in_rss_becomes_an_item() -> None:
    """Title, link, guid, date and text; the update instant stays (R10)."""
    entry = (
        f"<entry xmlns='{ATOM_NS}'><title type='html'>a</title><link rel='self' href='/s'/>"
        "<link href='http://e.org/1'/>"
        "<id>urn:1</id><updated>2026-01-06T00:00:00Z</updated><published>2026-01-05T12:00:00Z</published>"
        "<summary>a &lt; b</summary><content type='xhtml'><div>x</div></content><category term='c'/>"
        "<author><name>A</name></author></entry>"
    )
    document = respelt(
        f"<rss><channel>{entry}</channel></rss>", "element-names", "foreign-entries", "namespace"
    )
    (made,) = slices(document)
    assert made == (
        b"<item><title>a</title><link xmlns=\"http://www.w3.org/2005/Atom\" rel='self' href='/s'/>"
        b"<link>http://e.org/1</link>"
        b'<guid isPermaLink="false">urn:1</guid>'
        b'<updated xmlns="http://www.w3.org/2005/Atom">2026-01-06T00:00:00Z</updated>'
        b"<pubDate>Mon, 05 Jan 2026 12:00:00 GMT</pubDate><description>a &amp;lt; b</description>"
        b'<content:encoded xmlns:content="http://purl.org/rss/1.0/modules/content/">'
        b"&lt;div&gt;x&lt;/div&gt;</content:encoded>"
        b'<category>c</category><author xmlns="http://www.w3.org/2005/Atom"><name>A</name></author></item>'
    )
    (found,) = document.entries
    assert (found.updated_at, found.order_at, found.has_content) == (1767657600, 1767657600, True)


def test_a_foreign_entry_is_dated_and_linked_by_what_it_has() -> None:
    """By dc:date, a sole update instant, or a guid with an address."""
    item = f"<item xmlns:dc='{WELL_KNOWN_PREFIXES['dc']}'>"
    item += "<guid>http://e.org/1</guid><dc:date>2026-01-05</dc:date></item>"
    text = text_of(f'<feed xmlns="{ATOM_NS}">{item}</feed>', "element-names", "foreign-entries")
    assert '<updated>2026-01-05T00:00:00Z</updated><link href="http://e.org/1"/></entry>' in text
    text = text_of(f"<rss><channel>{ENTRY}</channel></rss>", "element-names", "foreign-entries")
    assert "<pubDate>Thu, 01 Jan 2026 00:00:00 GMT</pubDate></item>" in text


# As readers see it

SPELLINGS: st.SearchStrategy[Callable[[str], str]] = st.sampled_from(
    [str, str, str, str.upper, str.capitalize, str.lower]
)
ATOMS = st.sampled_from(
    [
        *(None, "", ATOM_NS, "https://www.w3.org/2005/Atom/", "HTTP://W3.ORG/2005/ATOM", ATOM_03_NS),
        *("http://purl.org/atom/ns", "urn:ietf:params:xml:ns:atom", "http://x.example/ns"),
    ]
)
RSSES = st.sampled_from(
    [
        None,
        None,
        *sorted(RSS_NAMESPACES),
        RSS_10_NS,
        ATOM_NS,
        "http://x.example/ns",
        "http://purl.org/rss/2.0/",
    ]
)
WRAPPERS = st.sampled_from(["{}", "{}", "<items>{}</items>", "<Entries>{}</Entries>", "<a><b/><c>{}</c></a>"])


def declared(namespace: str | None) -> str:
    return "" if namespace is None else f' xmlns="{namespace}"'


@st.composite
def children(draw: st.DrawFn, names: dict[str, str], n: int) -> str:
    made = []
    for name, inside in names.items():
        spelt = draw(SPELLINGS)(name)
        written = inside.replace("{n}", str(n))
        made.append(f"<{spelt}{written}/>" if inside.startswith(" ") else f"<{spelt}>{written}</{spelt}>")
    return "".join(draw(st.permutations(made)))


@st.composite
def entries(draw: st.DrawFn, own: str) -> str:
    """Three entries, most in the feed's own format."""
    made = ""
    for n in (3, 2, 1):
        name = draw(st.sampled_from([own, own, own, "item" if own == "entry" else "entry"]))
        names = {
            "title": "Level {n}",
            "description": "Water &amp;amp; {n}",
            "link": "http://e.org/{n}",
            "guid": "{n}",
        }
        names["pubDate"] = "Mon, 0{n} Jun 2026 10:00:00 GMT"
        if name == "entry":
            names = {
                "title": "Level {n}",
                "summary": "Water {n}",
                "link": ' href="http://e.org/{n}"',
                "id": "urn:{n}",
            }
            names["updated"] = "2026-06-0{n}T10:00:00Z"
        spelt = draw(SPELLINGS)(name)
        namespace = declared(draw(ATOMS if name == "entry" else RSSES)) if draw(st.booleans()) else ""
        made += f"<{spelt}{namespace}>{draw(children(names, n))}</{spelt}>\n"
    return draw(WRAPPERS).format(made)


@st.composite
def feeds(draw: st.DrawFn) -> str:
    """A malformed feed of three entries."""
    family = draw(st.sampled_from([Family.ATOM, Family.RSS, Family.RDF]))
    inside = draw(entries("entry" if family is Family.ATOM else "item"))
    channel = draw(SPELLINGS)("channel")
    if family is Family.ATOM:
        root = draw(SPELLINGS)("feed")
        return f"<{root}{declared(draw(ATOMS))}><title>T</title><id>urn:f</id>{inside}</{root}>"
    if family is Family.RDF:
        root = draw(st.sampled_from(["rdf:RDF", "rdf:rdf", "rdf:Rdf"]))
        rdf = draw(st.sampled_from([RDF_NS, RDF_NS[:-1], RDF_NS.replace("http:", "https:")]))
        default = declared(draw(st.sampled_from([RSS_10_NS, "https://purl.org/rss/1.0", "urn:x", None])))
        return f'<{root} xmlns:rdf="{rdf}"{default}><{channel}><title>T</title></{channel}>{inside}</{root}>'
    body = f"<{channel}{declared(draw(RSSES))}><title>T</title>{inside}</{channel}>"
    root = draw(SPELLINGS)("rss")
    return body if draw(st.booleans()) else f'<{root} version="2.0"{declared(draw(RSSES))}>{body}</{root}>'


@given(feeds())
def test_whatever_feedparser_takes_for_an_entry_is_one(body: str) -> None:
    """Its title, link and date stay visible, with feedparser's date."""
    document = parse(body.encode(), URL)
    fragments = fragments_of(document)
    sent = [fragments.sent(n) for n in range(len(document.entries))]
    made = synthesize(document.family, document.version, sent)

    def seen(text: str | bytes) -> list[tuple[str, str, bool]]:
        found = feedparser.parse(text.encode() if isinstance(text, str) else text)
        return [(each.title, each.link, "updated" in each or "published" in each) for each in found.entries]

    assert seen(made) == seen(body) == [(f"Level {n}", f"http://e.org/{n}", True) for n in (3, 2, 1)]
    assert {each.title for each in named_entries(document)} <= {"Level 3", "Level 2", "Level 1", ""}
    assert made.count(b"Water") == 3


# Costs


def test_documents_with_right_names_are_left_alone() -> None:
    """They are read unchanged, without notes."""
    for body in (
        f"<rss><channel><title>T</title>{ITEM}</channel></rss>",
        f"<rss><channel><title><![CDATA[<Item>]]></title>{ITEM}</channel></rss>",
        "<rss><channel><description><![CDATA[<Item>]]></description></channel></rss>",
        f'<feed xmlns="{ATOM_NS}">{ENTRY}</feed>',
        f'<rss xmlns="{ATOM_NS}"><channel>{ITEM}</channel></rss>',
        f'<rss xmlns="https://www.w3.org/2005/Atom"><channel>{ITEM}</channel></rss>',
    ):
        assert text_of(body) == body


def test_a_head_under_other_names_predicts_nothing() -> None:
    """R0: its links are known only after the whole document."""
    for body in (
        f'<feed xmlns="{ATOM_NS}/"><link rel="prev-archive" href="/1"/>{ENTRY}',
        f'<rss xmlns:atom="{ATOM_NS}/"><channel><atom:link rel="prev-archive" href="/1"/>{ITEM}',
        f"<rss><channel><items>{ITEM}",
    ):
        assert EarlyHead(URL, "").feed(body.encode() + b" " * 4096) is None


def test_wrappers_do_not_make_much_out_of_little() -> None:
    """Row 92: the total that entries repeat from them is bounded."""
    many = " ".join(f'xmlns:p{n}="urn:{n}{"x" * 50}"' for n in range(100))
    body = f"<rss><channel><items {many}>{'<item/>' * 50_000}</items></channel></rss>"
    with pytest.raises(ParseError, match="names spelt right, got more") as caught:
        parse(body.encode(), URL)
    assert caught.value.slug == "xml-limit"


def calls(body: bytes) -> int:
    """Count of function calls in the repair of names."""
    with counted_calls() as calls_made:
        respell(body, max_depth=MAX_DEPTH)
    return calls_made["call"] + calls_made["c_call"]


@pytest.mark.fault("84")
@pytest.mark.parametrize(
    "unit",
    [
        *("<Item/>", "<items><Item/></items>", "<entry><id>1</id></entry>", "<a/>", "<a><b><item/></b></a>"),
        *("<Item><GUID>1</GUID></Item>", '<item xmlns:p{n}="https://www.w3.org/2005/Atom"/>', "<!-- -->"),
        *("<entry><a/><b c='d'/></entry>", "<x><![CDATA[<Item>]]></x>", "<channel><Item/></channel>"),
    ],
)
def test_the_cost_grows_with_the_length(unit: str) -> None:
    """Row 84: linear for any text, by count of calls; a too dense text is given up."""
    small, large = (
        f"<rss><channel>{''.join(unit.replace('{n}', str(n)) for n in range(count))}</channel></rss>".encode()
        for count in (250, 2000)
    )
    assert calls(large) <= 8.5 * calls(small) + 1000


@pytest.mark.fault("84")
def test_a_document_of_nothing_but_odd_names_is_given_up() -> None:
    """Row 84: odd names have a limit for each length."""
    body = b"<rss><channel>%s</channel></rss>"
    assert respell(body % (b"<Item></Item>" * 5_000), max_depth=MAX_DEPTH) is not None
    assert respell(body % (b"<Item></Item>" * 100_000), max_depth=MAX_DEPTH) is None
    assert respell(body % (b"<Item>a title of some words</Item>" * 100_000), max_depth=MAX_DEPTH) is not None
