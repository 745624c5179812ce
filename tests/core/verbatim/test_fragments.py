from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.parse.makers import URL, atom, named, rss, slices
from tests.cpu_time import cpu_limit
from wholefeed.core.compose.compose import synthesize
from wholefeed.core.model import ATOM_NS, MEMORY_URL, WELL_KNOWN_PREFIXES, Family, FeedDocument, HeadContext
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import MAX_ATTRIBUTES, MAX_DEPTH, MAX_GAIN_BYTES, UNLIMITED, ParseError
from wholefeed.core.text.urls import resolve
from wholefeed.core.verbatim.fragments import ALL_PREFIXES, Fragments, most_gained, prefixes_in
from wholefeed.core.verbatim.json import MAX_CONTEXT_BYTES

BASE = f' xml:base="{URL}"'
AT = "http://example.org/blog/"
MANY_ATTRIBUTES = "".join(f" a{n}='{n}'" for n in range(MAX_ATTRIBUTES))
BITS = {prefix: 1 << place for place, prefix in enumerate(WELL_KNOWN_PREFIXES)}
XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def fragments_of(body: bytes, url: str = URL) -> list[str]:
    document = parse(body, url)
    made = Fragments(document)
    return [made.entry(n).decode() for n in range(len(document.entries))]


def only(body: bytes) -> str:
    (fragment,) = fragments_of(body)
    return fragment


def joined(*documents: FeedDocument, context: HeadContext | None = None) -> bytes:
    """Entries of several documents of one family, joined as in the output."""
    bodies = []
    for document in documents:
        made = Fragments(document)
        bodies += [made.entry(n, context) for n in range(len(document.entries))]
    return synthesize(documents[0].family, documents[0].version, bodies)


def root_of(family: Family, fragment: str) -> str:
    """A document around one fragment, with every well-known prefix bound."""
    prefixes = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in WELL_KNOWN_PREFIXES.items())
    default = f' xmlns="{ATOM_NS}"' if family is Family.ATOM else ""
    return f"<out{default}{prefixes}>{fragment}</out>"


def meaning(element: ET.Element, lang: str = "", base: str = "") -> Iterator[tuple[str, ...]]:
    """An element's meaning: names with namespaces, language, base, attributes, text."""
    lang, base = element.get(XML_LANG, lang), element.get(XML_BASE, base)
    attributes = {key: value for key, value in element.items() if key not in (XML_LANG, XML_BASE)}
    yield element.tag, lang, base, repr(sorted(attributes.items())), element.text or "", element.tail or ""
    for child in element:
        yield from meaning(child, lang, base)


# -- start tags ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inside",
    [
        "<link> a </link>",
        "<link><![CDATA[ /a ]]></link>",
        "<guid>a</guid>",
        '<enclosure length="1"\nurl = "a.mp3"/>',
        "<atom:link href='a'/>",
        '<description>&lt;a href="a"></description>',
        "<description>&lt;img src=&#34;/a.png&#34;></description>",
        "<description>&lt;a title='x' href=a></description>",
        "<description><![CDATA[<a href=\"http://a\"> <img alt='' src='../a'>]]></description>",
        "<description><![CDATA[<img srcset='a.png 2x'>]]></description>",
        "<description>&lt;img src=&#x22;a></description>",
        "<description>&amp;lt;img src=&amp;quot;a></description>",
        "<description><![CDATA[<img data-src='a'>]]></description>",
        "<description><![CDATA[<a\nhref\t=\n'a'>]]></description>",
        "<description><![CDATA[<video poster='a'>]]></description>",
    ],
)
def test_an_rss_item_gains_its_base_where_a_relative_reference_occurs(inside: str) -> None:
    """R22; docs/design.md#verbatim-entries: in links, guids that are links, enclosures, raw and escaped
    HTML."""
    assert only(rss(f"<item>{inside}</item>")) == f"<item{BASE}>{inside}</item>"
    assert only(rss(f"<item a='b'>{inside}</item>")) == f"<item{BASE} a='b'>{inside}</item>"


@pytest.mark.parametrize(
    "inside",
    [
        "<link>http://a/?url=b&amp;href=c</link>",
        "<link/><link></link><link> </link><link ></link>",
        "<guid isPermaLink=\"false\">a</guid><guid a='b' isPermaLink = 'false' >a</guid>",
        "<guid>urn:uuid:1</guid><guid>tag:a,2003:b</guid>",
        "<enclosure url='https://a/b.mp3'/><a href = \"mailto:a@b\"/>",
        "<description>&lt;a href=&quot;http://a&quot; x=y>&lt;img src=&#39;data:,x&#39;></description>",
        "<description>&amp;lt;a href=&amp;quot;http://a&amp;quot;></description>",
        "<description>source=a, curl=b, a=b</description>",
        "<title>href and src</title><category>a</category>",
        "<a xhref='a' hrefs='a' title='href'/><links>a</links><uri>a</uri>",
    ],
)
def test_an_rss_item_gains_no_base_for_what_is_no_relative_reference(inside: str) -> None:
    """R22: the item stays byte for byte, without xml:base."""
    assert only(rss(f"<item>{inside}</item>")) == f"<item>{inside}</item>"


@pytest.mark.parametrize(
    ("own", "sent"),
    [
        ("/?a&amp;&quot;&lt;", "http://example.org/?a&amp;&quot;&lt;"),
        ("", URL),
        ("http://[/", "http://[/"),
        ("//[/", URL),
        (" HTTP://b/", " HTTP://b/"),
        ("x " * 1000, URL),
    ],
    ids=["relative", "empty", "absolute", "none", "with a blank", "too long for a URL"],
)
def test_a_relative_base_of_an_entry_is_replaced_and_an_absolute_one_stays(own: str, sent: str) -> None:
    """R22; XML Base, 4."""
    quote = "'" if own == sent else '"'
    expected = f"xml:base={quote}{sent}{quote}"
    assert only(atom(f"<entry a='1' xml:base='{own}' b='2'/>")) == f"<entry a='1' {expected} b='2'/>"


def test_prefixes_that_occur_are_declared_unless_everybody_knows_them() -> None:
    """R22; docs/design.md#verbatim-entries: the search for `prefix:` in the text also covers names in
    content.
    """
    known = ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
    attributes = f' xmlns:a="urn:a" xmlns:b="urn:b&amp;&quot;" xmlns:media="urn:m"{known}'
    entries = [
        "<entry><a:x/></entry>",
        "<entry><x type='b:y'/></entry>",
        "<entry><dc:x/></entry>",
        "<entry><media:x/></entry>",
        "<entry><x/></entry>",
    ]
    declared = [' xmlns:a="urn:a"', ' xmlns:b="urn:b&amp;&quot;"', "", ' xmlns:media="urn:m"', ""]

    assert fragments_of(atom(*entries, attributes=attributes)) == [
        entry.replace("<entry>", f"<entry{added}{BASE}>")
        for entry, added in zip(entries, declared, strict=True)
    ]


@pytest.mark.fault("147")
def test_behind_a_thousand_elements_of_a_head_urls_stay_as_they_are() -> None:
    """R22: each would need its own parser."""
    document = parse(rss("".join(f"<docs>{number}</docs>" for number in range(1200))), URL)
    children, made = document.head.children, Fragments(document)
    written = [made.head_child(child) for child in children if child.name == "docs"]

    assert written[0] == f"<docs>{resolve(URL, '0')}</docs>".encode()
    assert 990 < sum(each.startswith(b"<docs>http") for each in written) <= 1000
    assert b"<docs" in written[-1]
    assert b">1199</docs>" in written[-1]


@pytest.mark.parametrize("text", ["a" * 2_000_000, "a:" * 1_000_000, "a." * 1_000_000, "é" * 1_000_000])
def test_looking_for_many_prefixes_takes_time_that_grows_with_the_text(text: str) -> None:
    """Row 43: two megabytes do not stall the answer."""
    many = "".join(f" xmlns:other{n}='urn:x'" for n in range(100))
    document = parse(atom(f"<entry>{text}</entry>", attributes=many), URL)
    with cpu_limit(1):
        Fragments(document).entry(0)


FEW = ["a", "b", "ab", "b.a", "x-a", "é", "éa"]
PIECES = st.lists(st.sampled_from([*FEW, ":", ":", " ", "-", ".", "c"]), max_size=12).map("".join)


@given(PIECES)
@example("b:x a:y é:q")
@example("b.a: x-a:")
@example("a b ab; ca: aé: other1 :a")
def test_of_many_prefixes_those_are_found_that_are_found_of_few(text: str) -> None:
    """R22: one pass misses and invents none; a missing one breaks the XML."""
    found = []
    for prefixes in (FEW, [*FEW, *(f"other{n}" for n in range(20))]):
        attributes = "".join(f" xmlns:{prefix}='urn:x'" for prefix in prefixes)
        found.append(only(atom(f"<entry>{text}</entry>", attributes=attributes)))
    assert found[0] == found[1]


def test_names_that_end_like_a_prefix_are_told_from_it() -> None:
    """Within limits: one extra declaration is harmless, an endless search is not."""
    attributes = ' xmlns:a="urn:a"'
    for name in ("media:", "x-a:", "é\u00e1a:", "_a:", ".a:", "1a:"):
        assert only(atom(f"<entry>{name}</entry>", attributes=attributes)) == f"<entry{BASE}>{name}</entry>"
    for name in (">a:", "'a:", " a:", "(a:", "media: <a:b/>"):
        text = f"<entry><![CDATA[{name}]]></entry>"
        assert attributes in only(atom(text, attributes=attributes))
    assert attributes in only(atom("<entry>" + "media:" * 100 + "</entry>", attributes=attributes))


# -- authors and rights -------------------------------------------------------------------------------------

AUTHOR = "<author><name>A</name></author>"
RIGHTS = "<rights>R</rights>"


def test_an_entry_without_an_author_takes_its_feed_s_along() -> None:
    """R22; RFC 4287, 4.2.1 and 4.2.10."""
    body = atom(AUTHOR, "<entry><id>1</id></entry>", "<entry>", AUTHOR.replace("A", "B"), "</entry>", RIGHTS)

    assert fragments_of(body) == [
        f"<entry{BASE}><id>1</id>{AUTHOR}{RIGHTS}</entry>",
        f"<entry{BASE}>{AUTHOR.replace('A', 'B')}{RIGHTS}</entry>",
    ]


def test_an_empty_entry_is_opened_for_its_feed_s_author() -> None:
    """R22: a self-closing Atom entry gets a proper end tag."""
    explicit = AUTHOR.replace("<author", f'<author xmlns="{ATOM_NS}" xml:lang=""')
    assert only(atom(AUTHOR, "<entry />")) == f"<entry{BASE}>{explicit}</entry>"
    assert only(atom(AUTHOR, "<entry></entry >")) == f"<entry{BASE}>{AUTHOR}</entry >"


def test_what_the_subscription_document_says_too_is_not_repeated() -> None:
    """R22: only differing values are repeated."""
    entry = "<entry><id>1</id></entry>"
    here = Fragments(parse(atom(AUTHOR, RIGHTS, entry), URL))
    same = Fragments(parse(atom(AUTHOR, RIGHTS), "http://example.org/elsewhere")).context
    other = Fragments(parse(atom(AUTHOR, RIGHTS.replace("R", "S")), URL)).context

    assert here.needs_context
    assert here.context == same
    assert here.entry(0, same).decode() == f"<entry{BASE}><id>1</id></entry>"
    assert here.entry(0, other).decode() == f"<entry{BASE}><id>1</id>{RIGHTS}</entry>"
    assert here.entry(0, HeadContext()).decode() == f"<entry{BASE}><id>1</id>{AUTHOR}{RIGHTS}</entry>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (atom(AUTHOR, "<entry/>"), True),
        (atom(RIGHTS, f"<entry>{AUTHOR}</entry>"), True),
        (atom("<entry/>"), False),
        (atom(AUTHOR, RIGHTS), False),
        (atom(AUTHOR, f"<entry>{AUTHOR}</entry>"), False),
        (atom(f"<author>{'x' * MAX_CONTEXT_BYTES}</author>", "<entry/>"), False),
        (rss("<managingEditor>a</managingEditor>", "<item/>"), False),
    ],
)
def test_it_shows_whether_entries_depend_on_their_feed(body: bytes, expected: bool) -> None:
    """R22: only if an entry lacks its feed's author or rights."""
    assert Fragments(parse(body, URL)).needs_context is expected


def test_an_author_with_a_relative_uri_takes_its_base_along() -> None:
    """R22: the link leads to the author's feed, not the entry's base."""
    author = "<author><uri>/me</uri><name><![CDATA[<a href='b'>]]></name></author>"
    body = atom(author, f"<entry xml:base='http://b/'>{RIGHTS}</entry>")
    written = author.replace("/me", "http://example.org/me")
    sent = written.replace("<author>", f'<author xmlns="{ATOM_NS}" xml:lang=""{BASE}>')

    assert f"{sent}</entry>" in only(body)


# -- the head -----------------------------------------------------------------------------------------------


IN_HEADS = ' xmlns:x="urn:x" xmlns:dc="http://purl.org/dc/elements/1.1/" xml:lang="de"'
OF_HEADS = [
    ("<id>urn:1</id>", "<id>urn:1</id>"),
    ("<id>/1</id>", f"<id{BASE}>/1</id>"),
    ("<title>T</title>", '<title xml:lang="de">T</title>'),
    ("<title a='b'>&lt;a href='x'></title>", f"<title xml:lang=\"de\"{BASE} a='b'>&lt;a href='x'></title>"),
    ("<updated>2003-12-13T18:30:02Z</updated>", "<updated>2003-12-13T18:30:02Z</updated>"),
    ("<link rel='hub' href='x'/>", f'<link xml:lang="de"{BASE} rel=\'hub\' href="{AT}x"/>'),
    ("<icon>x.png</icon>", f"<icon>{AT}x.png</icon>"),
    ("<author><uri>http://a/</uri></author>", '<author xml:lang="de"><uri>http://a/</uri></author>'),
    ("<author xml:lang='fr'><uri>a</uri></author>", f"<author xml:lang='fr'><uri>{AT}a</uri></author>"),
    ("<x:y/>", '<x:y xmlns:x="urn:x"/>'),
    (
        "<x:y>a<![CDATA[<b/>]]><!-- b --><?b b?></x:y>",
        '<x:y xmlns:x="urn:x">a<![CDATA[<b/>]]><!-- b --><?b b?></x:y>',
    ),
    ("<x:y z='z'/>", f'<x:y xmlns:x="urn:x" xml:lang="de"{BASE} z=\'z\'/>'),
    ("<x:y><x:z/></x:y>", f'<x:y xmlns:x="urn:x" xml:lang="de"{BASE}><x:z/></x:y>'),
    ("<dc:rights>None</dc:rights>", "<dc:rights>None</dc:rights>"),
]
OF_CHANNELS = [
    ("<link>http://a/</link>", "<link>http://a/</link>"),
    ("<link>/a</link>", "<link>http://example.org/a</link>"),
    ("<title>T</title>", '<title xml:lang="de">T</title>'),
    ("<image><url>a.png</url></image>", f'<image xml:lang="de"><url>{AT}a.png</url></image>'),
    ("<atom:link href='/'/>", '<atom:link xml:lang="de" href="http://example.org/"/>'),
    ("<x:y/>", '<x:y xmlns:x="urn:x" xml:lang="de"/>'),
]


@pytest.mark.parametrize(("make", "table"), [(atom, OF_HEADS), (rss, OF_CHANNELS)], ids=["atom", "rss"])
def test_head_children_can_stand_in_another_head(
    make: Callable[..., bytes], table: list[tuple[str, str]]
) -> None:
    """R22; docs/design.md#verbatim-entries: the output root has no xml:lang and no xml:base, so each gains
    the language, base and prefixes it needs. RFC 4287, 6.4.1: simple ones have no attributes.
    """
    made = Fragments(parse(make(*(before for before, _ in table), attributes=IN_HEADS), URL))
    assert [made.head_child(child).decode() for child in made.document.head.children] == [
        after for _, after in table
    ]


# -- the mask -----------------------------------------------------------------------------------------------


def test_the_mask_tells_which_well_known_prefixes_occur() -> None:
    """R22: the answer's root declares each; a missing one breaks the XML."""
    assert prefixes_in(b"") == 0
    assert prefixes_in(b"<dc:date/>") == BITS["dc"]
    assert prefixes_in(b"<itunes:x/><y a='xhtml:div'/>") == BITS["itunes"] | BITS["xhtml"]
    assert prefixes_in(" ".join(f"{prefix}:" for prefix in WELL_KNOWN_PREFIXES).encode()) == ALL_PREFIXES
    assert prefixes_in(b"<dc:date/><itunes:x/>", among=BITS["itunes"]) == BITS["itunes"]


def test_a_document_needs_only_the_well_known_prefixes_that_it_binds_as_usual() -> None:
    """R22: media: bound to another namespace is not the well-known prefix."""
    body = atom("<entry/>", attributes=' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:media="urn:m"')

    assert Fragments(parse(body, URL)).prefixes == BITS["dc"] | BITS["fh"]


# -- documents of fragments ---------------------------------------------------------------------------------


values = st.sampled_from(["urn:1", "urn:2&amp;", ATOM_NS, *list(WELL_KNOWN_PREFIXES.values())[:3]])
prefixes = st.sampled_from(["atom", "content", "dc", "x", "y"])
bindings = st.dictionaries(prefixes, values, max_size=4)
LANGUAGES = st.sampled_from(["", ' xml:lang="de"', " xml:lang='fr'"])
BASES = st.sampled_from(["", ' xml:base="/a/"', " xml:base='http://b/'", ' xml:base="c?d=e&amp;f"'])


@st.composite
def atom_documents(draw: st.DrawFn) -> bytes:
    outer = draw(bindings)
    name = draw(st.sampled_from(["", "a", "atom"]))
    if name:
        outer[name] = ATOM_NS
    default = (
        draw(st.sampled_from(["", ' xmlns="urn:d"', f' xmlns="{ATOM_NS}"']))
        if name
        else f' xmlns="{ATOM_NS}"'
    )
    p = f"{name}:" if name else ""

    def declared(bound: dict[str, str]) -> str:
        return "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in bound.items())

    entries = []
    for number in range(draw(st.integers(1, 3))):
        own = {key: uri for key, uri in draw(bindings).items() if key != name}
        inner = draw(bindings)
        usable = sorted({*outer, *own, *inner})
        used = draw(st.lists(st.sampled_from(usable), max_size=3)) if usable else []
        inside = "".join(f"<{prefix}:e a='1'>t</{prefix}:e>" for prefix in used)
        person = draw(st.sampled_from(["", f"<{p}author><{p}name>B</{p}name></{p}author>"]))
        attributes = declared(own) + draw(LANGUAGES) + draw(BASES)
        entries.append(
            f"<{p}entry{attributes}><{p}id>urn:{number}</{p}id>{person}"
            f"<q{declared(inner)}>{inside}</q></{p}entry>"
        )
    person = draw(st.sampled_from(["", f"<{p}author><{p}name>A</{p}name></{p}author>"]))
    attributes = default + declared(outer) + draw(LANGUAGES) + draw(BASES)
    return f"<{p}feed{attributes}>{person}{''.join(entries)}</{p}feed>".encode()


@given(atom_documents())
def test_an_entry_means_the_same_in_the_output(body: bytes) -> None:
    """R22: names, languages, bases, attributes and text, for any bindings."""
    document = parse(body, URL)
    made = Fragments(document)
    root = ET.fromstring(body)
    author = [list(meaning(child)) for child in root if child.tag == f"{{{ATOM_NS}}}author"]
    lang, base = document.head.scope.lang, document.head.scope.base
    for number, original in enumerate(root.findall(f"{{{ATOM_NS}}}entry")):
        sent = ET.fromstring(root_of(Family.ATOM, made.entry(number).decode()))[0]
        added = [child for child in sent if child.tag == f"{{{ATOM_NS}}}author"][-1:]
        if not document.entries[number].has_author and author:
            assert [e[0] for e in meaning(added[0])] == [e[0] for e in author[0]]
            sent.remove(added[0])
        said = [
            (tag, lang_, _resolved(base, base_), *rest)
            for tag, lang_, base_, *rest in meaning(original, lang, "")
        ]
        assert list(meaning(sent)) == said


def _resolved(outer: str, own: str) -> str:
    return resolve(outer, own) if own else outer


@given(st.lists(atom_documents(), min_size=1, max_size=3))
def test_a_document_of_fragments_parses_back_to_the_same_entries_and_fragments(bodies: list[bytes]) -> None:
    """A second pass adds nothing; identities and instants stay."""
    documents = [parse(body, f"http://example.org/{place}/feed") for place, body in enumerate(bodies)]
    again = parse(joined(*documents), "http://memory.example/1")

    assert [e[:3] for e in again.entries] == [e[:3] for document in documents for e in document.entries]
    sent = [Fragments(d).entry(n) for d in documents for n in range(len(d.entries))]
    assert slices(again) == sent
    assert [Fragments(again).entry(n) for n in range(len(sent))] == sent


USUAL_ENTRIES = st.lists(
    st.sampled_from(
        [
            *("<entry><id>1</id></entry>", "<entry />", '<entry xml:lang="fr"><id>2</id></entry>'),
            *(
                "<entry><id>3</id><author><name>A</name></author><rights/></entry>",
                "<entry><id>4</id><author><name>A</name></author></entry>",
                '<entry><link href="/"/></entry>',
            ),
        ]
    ),
    max_size=5,
)
USUAL_HEADS = st.sampled_from(["", "<author><name>A</name></author>", "<rights>R</rights>"])
USUAL_DOCUMENTS = st.tuples(USUAL_HEADS, USUAL_ENTRIES).map(lambda made: atom(made[0], *made[1]))


@given(st.one_of(USUAL_DOCUMENTS, atom_documents()), USUAL_DOCUMENTS)
def test_entries_go_out_together_as_each_by_itself(body: bytes, head: bytes) -> None:
    """R22: except those under another head, or with attributes."""
    made = Fragments(parse(body, URL))
    numbers = range(len(made.document.entries))
    for context in (None, made.context, Fragments(parse(head, URL)).context):
        assert made.all_sent(numbers, context) == [made.sent(number, context) for number in numbers]


def test_items_without_guids_keep_their_keys_in_a_synthesized_document() -> None:
    """R9: a single item keeps the features that distinguish two of one link."""
    shared = [f"<item><link>http://a/</link><title>{n}</title></item>" for n in range(2)]
    document = parse(rss(*shared, "<item><link>http://b/</link></item>"), URL)
    made = Fragments(document)
    for kept in ([0], [2, 1], [0, 1, 2]):
        text = synthesize(Family.RSS, "2.0", [made.entry(n) for n in kept])
        again = parse(text, f"{MEMORY_URL}1")
        assert [entry.keys for entry in again.entries] == [document.entries[n].keys for n in kept]


def test_a_synthesized_document_is_of_its_family_and_version() -> None:
    """R8, R23: a memory document has the format and version of its entries."""
    assert parse(synthesize(Family.ATOM, "1.0", []), URL).version == "1.0"
    document = parse(synthesize(Family.RSS, "0.91", [b"<item><dc:date/></item>"]), URL)
    assert (document.family, document.version, len(document.entries)) == (Family.RSS, "0.91", 1)


# -- documents of several channels --------------------------------------------------------------------------

RSS2 = "http://backend.userland.com/rss2"
TAGS = ["", " xml:lang='nl'", " xml:base='b/'", " xmlns:x='urn:own'", " xmlns='urn:z'", MANY_ATTRIBUTES]


def test_well_known_prefixes_of_every_channel_are_looked_for() -> None:
    """R22: the answer declares a prefix that only a second channel declares."""
    dc = WELL_KNOWN_PREFIXES["dc"]
    body = f"<rss><channel/><channel xmlns:dc='{dc}'><item><dc:date/></item></channel></rss>".encode()

    assert Fragments(parse(body, URL)).prefixes == BITS["dc"]


@st.composite
def rss_documents(draw: st.DrawFn) -> tuple[bytes, dict[str, ET.Element], dict[str, str]]:
    """A document, its items by guid, and each item's language in scope."""
    own, name = draw(st.sampled_from([("", ""), ("urn:own", ""), (RSS2, ""), (ATOM_NS, ""), (RSS2, "r:")]))
    guids = iter(range(100))

    def around() -> str:
        bound = draw(st.dictionaries(st.sampled_from(["x", "dc"]), values, max_size=2))
        return "".join(f' xmlns:{key}="{uri}"' for key, uri in bound.items()) + draw(LANGUAGES) + draw(BASES)

    def items(usable: str) -> str:
        made = ""
        for _ in range(draw(st.integers(0, 2))):
            tag = draw(st.sampled_from(TAGS))
            bound = [key for key in ("x", "dc") if f"xmlns:{key}=" in usable + tag]
            inside = "".join(f"<{key}:e a='1'>t</{key}:e>" for key in bound)
            guid = f"<{name}guid>urn:{next(guids)}</{name}guid>"
            made += f"<{name}item{tag}>{guid}{inside}<q href='r'/></{name}item>"
            made += draw(st.sampled_from(["", f"<o:item xmlns:o='{own or 'urn:o'}p'/>"]))
        return made

    outer = around()
    body = items(outer)
    for _ in range(draw(st.integers(0, 3))):
        inner = around()
        body += f"<{name}channel{inner}>{items(outer + inner)}</{name}channel>{items(outer)}"
    declared = f' xmlns="{own}"' if own and not name else f' xmlns:r="{RSS2}"' if name else ""
    document = f'<{name}rss version="2.0"{declared}{outer}>{body}</{name}rss>'.encode()
    originals, languages = {}, {}
    for parent, lang in _with_languages(ET.fromstring(document)):
        for child in parent:
            guid = next((each.text for each in child if each.tag.endswith("guid")), None)
            if guid:
                originals[guid], languages[guid] = child, lang
    return document, originals, languages


def _with_languages(root: ET.Element) -> Iterator[tuple[ET.Element, str]]:
    outer = root.get(XML_LANG, "")
    yield root, outer
    for channel in root:
        if channel.tag.endswith("channel"):
            yield channel, channel.get(XML_LANG, outer)


def _rss_meaning(item: ET.Element, lang: str = "") -> list[tuple[str, ...]]:
    """An item's meaning in any namespace of RSS, without its tail."""
    plain = re.compile(r"\{(urn:own|http://backend.userland.com/rss2)\}")
    said = [(plain.sub("", tag), *rest) for tag, *rest in meaning(item, lang)]
    return [(tag, lang_, attributes, text) for tag, lang_, _base, attributes, text, _tail in said]


@given(rss_documents())
def test_an_item_means_the_same_wherever_it_stood(
    made: tuple[bytes, dict[str, ET.Element], dict[str, str]],
) -> None:
    """R22; and a document of remembered items has as many entries."""
    body, originals, languages = made
    document = parse(body, URL)
    fragments = Fragments(document)
    sent = [fragments.entry(n) for n in range(len(document.entries))]

    assert len(sent) == len(originals)
    for fragment in sent:
        item = ET.fromstring(root_of(Family.RSS, fragment.decode()))[0]
        guid = next(each.text for each in item if each.tag.endswith("guid"))
        assert guid
        assert _rss_meaning(item) == _rss_meaning(originals[guid], languages[guid])
    _assert_kept(document, sent)


def _assert_kept(document: FeedDocument, sent: list[bytes]) -> None:
    text = synthesize(document.family, document.version, sent)
    again = parse(text, f"{MEMORY_URL}1", max_depth=UNLIMITED)

    assert named(again) == named(document)
    assert [Fragments(again).entry(n) for n in range(len(sent))] == sent


MARKUP = [
    *(
        "<entry>",
        "</entry>",
        "<a:entry>",
        "</a:entry>",
        "<a:entry/>",
        "<id>1</id>",
        "<a:id>2</a:id>",
        "<author/>",
    ),
    *(
        "<item>",
        "</item>",
        "<a:item/>",
        "<item:item/>",
        "<item xmlns='urn:z'>",
        "<guid>3</guid>",
        "<link>l</link>",
    ),
    *("<channel>", "</channel>", "<channel xmlns:b='urn:b' xml:lang='de'>", "<b:x/>", "<x y='b:z'>", "</x>"),
    *(
        "<entry xml:base='q' xml:lang=''>",
        f"<entry{MANY_ATTRIBUTES}/>",
        f"<item{MANY_ATTRIBUTES}>",
        "<!-- <item> -->",
    ),
    *("<![CDATA[</item></entry>]]>", "<" + "d" * 5 + ">", "</" + "d" * 5 + ">", "é"),
]
BOUND = "xmlns:item='urn:i' xmlns:b='urn:c'"
ROOTS = [
    f"<feed xmlns='{ATOM_NS}' xmlns:a='{ATOM_NS}' {BOUND} xml:lang='fr'>{{}}</feed>",
    f"<a:feed xmlns:a='{ATOM_NS}' {BOUND}>{{}}</a:feed>",
    f"<rss xmlns:a='urn:own' {BOUND} xml:lang='fr'>{{}}</rss>",
    f"<rss xmlns='urn:own' xmlns:a='urn:own' {BOUND}><channel>{{}}</channel></rss>",
    f"<rss xmlns='{ATOM_NS}' xmlns:a='{ATOM_NS}' {BOUND}><channel>{{}}</channel></rss>",
    f"<rss xmlns:a='{RSS2}' {BOUND}><channel>{{}}</channel></rss>",
    f"<a:rss xmlns:a='{RSS2}' {BOUND}>{{}}</a:rss>",
]


@given(st.sampled_from(ROOTS), st.lists(st.sampled_from(MARKUP), max_size=14).map("".join))
@example(ROOTS[4], "<item a='0'><guid>3</guid>")
@example(ROOTS[4], "<item><link>l</link></item>")
def test_whatever_is_read_can_be_remembered(root: str, inside: str) -> None:
    """R8: a document of fragments returns as many entries, all unchanged."""
    try:
        document = parse(root.format(inside).encode(), URL)
    except ParseError:
        return
    fragments = Fragments(document)
    _assert_kept(document, [fragments.entry(n) for n in range(len(document.entries))])


def test_entries_at_the_limits_can_be_remembered() -> None:
    """Their additions exceed the limits: attributes, namespaces, depth of elements beside the channel."""
    declared = "".join(f' xmlns:q{n}="u{n}"' for n in range(MAX_ATTRIBUTES))
    deep = "<d>" * (MAX_DEPTH - 3) + "</d>" * (MAX_DEPTH - 3)
    around = "".join(f' xmlns:p{n}="u{n}"' for n in range(100)) + ' xml:lang="de"'
    used = "".join(f"p{n}:" for n in range(100))
    bodies = [
        atom(f"<entry{MANY_ATTRIBUTES}{declared}><id>1</id>{used}</entry>", attributes=around),
        f"<rss><channel/><item><guid>1</guid><description>{deep}</description></item></rss>".encode(),
    ]
    for body in bodies:
        document = parse(body, URL)
        _assert_kept(document, [Fragments(document).entry(0)])


# -- the most that a document gains --------------------------------------------------------------------------

TEXTS = st.text(st.sampled_from('a"\t\n<&üĺ語𝄞:/'), max_size=40)
LONG_PREFIXES = st.sampled_from(["a", "dc", "ü", "media", "long-one"])
AROUND = st.sampled_from(
    [
        *("", "<author><name>n</name></author>", "<author><uri>/me</uri><name>ü</name></author>"),
        *('<author xml:base="/x/"><uri>me</uri></author>', "<rights>r</rights>", "<a:b/>", "<dc:d>x</dc:d>"),
        *('<link href="/"/>', "<copyright>c</copyright>", '<rights type="html">&lt;a href="/b"></rights>'),
    ]
)
WITHIN = st.sampled_from(
    [
        *("", "<author><name>n</name></author>", '<link href="/1"/>', "<a:b/>", "<dc:d>media:x ü:y</dc:d>"),
        *('<content type="html">&lt;img src="/i"></content>', "<rights/>", "<enclosure url='e'/>"),
    ]
)


@given(
    st.booleans(),
    st.dictionaries(LONG_PREFIXES, TEXTS.filter(bool)),
    TEXTS,
    st.sampled_from(["", "/b/", "sub/", "http://other.test/very/long/base/"]),
    st.lists(AROUND, max_size=5),
    st.lists(WITHIN, max_size=6),
)
def test_no_document_gains_more(
    is_atom: bool, prefixes: dict[str, str], lang: str, base: str, head: list[str], children: list[str]
) -> None:
    """Rule R22: an estimate of little growth is right when the text is built."""
    attributes = "".join(f" xmlns:{prefix}={quoteattr(uri)}" for prefix, uri in prefixes.items())
    attributes += f" xml:lang={quoteattr(lang)}" + (f' xml:base="{base}"' if base else "")
    name = "entry" if is_atom else "item"
    written = [f"<{name}><id>urn:{number}</id>{child}</{name}>" for number, child in enumerate(children)]
    try:
        document = parse((atom if is_atom else rss)(*head, *written, attributes=attributes), URL)
    except ParseError:
        return
    fragments = Fragments(document)
    gained = sum(
        len(fragments.entry(number)) - (entry.end - entry.start)
        for number, entry in enumerate(document.entries)
    )
    gained += sum(
        len(fragments.head_child(child)) - (child.end - child.start) for child in document.head.children
    )
    assert gained <= most_gained(document)


def test_most_documents_are_told_apart_without_being_made() -> None:
    """An author, a language and few prefixes are little for hundreds of entries."""
    entries = [f"<entry><id>urn:{n}</id><updated>2026-01-01T00:00:00Z</updated></entry>" for n in range(300)]
    document = parse(atom("<author><name>n</name></author>", *entries), URL)
    assert most_gained(document) < MAX_GAIN_BYTES
