from __future__ import annotations

import re
from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.parse.makers import URL, atom, rss
from tests.cpu_time import cpu_limit
from wholefeed.core.jobs import compose
from wholefeed.core.model import ATOM_03_NS, ATOM_NS, RSS_10_NS, WELL_KNOWN_PREFIXES, Family, Scope
from wholefeed.core.parse.documents import parse
from wholefeed.core.verbatim.addresses import (
    GAIN_BYTES,
    GAIN_FACTOR,
    has_relative_reference,
    may_hold_relative,
    url_names,
    with_absolute_urls,
)
from wholefeed.core.verbatim.fragments import Fragments

AT = "http://example.org/blog/"
BASE = f' xml:base="{URL}"'
PREFIXES = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in WELL_KNOWN_PREFIXES.items())


def sent(body: bytes, url: str = URL) -> str:
    """The only entry of a document, as sent."""
    document = parse(body, url)
    assert len(document.entries) == 1
    return Fragments(document).sent(0).decode()


def rdf(*children: str) -> bytes:
    channel = "<channel rdf:about='/'><title>T</title></channel>"
    root = f"<rdf:RDF xmlns='{RSS_10_NS}'{PREFIXES}>"
    return f"{root}{channel}{''.join(children)}</rdf:RDF>".encode()


IN_ANY = [
    "<media:content url='{a.mp3}'/>",
    "<media:group><media:thumbnail width='1' url='{../a.png}'/></media:group>",
    "<media:player url='{//a/b}'/>",
    "<media:backLink>{b}</media:backLink>",
    "<media:response>{b}</media:response>",
    "<m:backLink xmlns:m='http://search.yahoo.com/mrss/'>{b}</m:backLink>",
    "<itunes:image href='{/a.png}'/>",
    "<itunes:new-feed-url>{b}</itunes:new-feed-url>",
    "<podcast:transcript type='a' url='{a.srt}'/>",
    "<podcast:person href='{a}' img='{b}'>N</podcast:person>",
    "<wfw:commentRss>{a?b=c&amp;d}</wfw:commentRss>",
    "<thr:in-reply-to ref='a' href='{b}'/>",
    "<thr:in-reply-to ref='a' source='{b}'/>",
    "<psc:chapter start='1' image='{b.png}'/>",
    "<feedburner:origLink>{b}</feedburner:origLink>",
    "<feedburner:origEnclosureLink>{b.mp3}</feedburner:origEnclosureLink>",
    "<creativeCommons:license>{b}</creativeCommons:license>",
    "<atom:author><atom:uri>{b}</atom:uri></atom:author>",
    f"<author xmlns='{ATOM_NS}'><uri>{{b}}</uri></author>",
]
IN_ATOM = [
    "<link href='{a}'/>",
    "<link rel='enclosure'\n\ttitle='a>b' href = '{/a.mp3}'/>",
    "<content src='{a.mp3}' type='audio/mpeg'/>",
    "<author><name>N</name><uri>{/me}</uri></author>",
    "<contributor><uri>{me}</uri></contributor>",
    "<source><id>a</id><link href='{b}'/><icon>{c}</icon><logo>{d}</logo></source>",
    f"<a:link xmlns:a='{ATOM_NS}' href='{{b}}'/>",
]
IN_RSS = [
    "<link>{a}</link>",
    "<comments>{#c}</comments>",
    "<enclosure length='1' url='{a.mp3}'/>",
    "<source url='{b}'>B</source>",
    "<atom:link rel='related' href='{b}'/>",
]
"""Elements as publishers write them; braces mark URLs to be written absolute."""


def before_and_after(inside: str) -> tuple[str, str]:
    def made(match: re.Match[str]) -> str:
        url = urljoin(URL, match[1] or match[2])
        return f'"{url}"' if match[1] else url

    return re.sub("[{}]", "", inside), re.sub(r"'\{([^}]*)\}'|\{([^}]*)\}", made, inside)


ODD_IN_ANY = [
    ("<podcast:images srcset='a 1w, http://a/ 2w'/>", f'<podcast:images srcset="{AT}a 1w, http://a/ 2w"/>'),
    ("<wfw:comment><![CDATA[ a ]]></wfw:comment>", f"<wfw:comment>{AT}a</wfw:comment>"),
]
ODD_IN_ATOM = [
    ('<link href="?a=1&amp;b=&quot;"/>', """<link href='http://example.org/blog/feed?a=1&amp;b="'/>"""),
    ("<link xml:base='x/' href='a b'/>", f"<link xml:base='x/' href=\"{AT}x/a%20b\"/>"),
]
OF_ANY = [*map(before_and_after, IN_ANY), *ODD_IN_ANY]
OF_ATOM = [*map(before_and_after, IN_ATOM), *ODD_IN_ATOM, *OF_ANY]
OF_RSS = [
    *map(before_and_after, IN_RSS),
    ("<link>\n/a\n</link>", "<link>http://example.org/a</link>"),
    *OF_ANY,
]


@pytest.mark.parametrize(("inside", "expected"), OF_ATOM)
def test_a_url_of_an_atom_entry_is_written_absolute(inside: str, expected: str) -> None:
    """R22: in links, persons, source, content and extensions; the rest stays."""
    text = "<id>/1</id><title>a = 'b'</title>"
    body = atom(f"<entry>{inside}{text}</entry>", attributes=PREFIXES)

    assert sent(body) == f"<entry{BASE}>{expected}{text}</entry>"


@pytest.mark.parametrize(("inside", "expected"), OF_RSS)
def test_a_url_of_an_rss_item_is_written_absolute(inside: str, expected: str) -> None:
    """R22: and an item without other relative URLs gains no base."""
    text = "<guid isPermaLink='false'>1</guid><description>a</description>"
    channel = PREFIXES.replace(f' xmlns:atom="{ATOM_NS}"', "")

    assert sent(rss(f"<item>{inside}{text}</item>", channel=channel)) == f"<item>{expected}{text}</item>"


@pytest.mark.parametrize(("inside", "expected"), [before_and_after(IN_RSS[0]), *OF_ANY])
def test_a_url_of_an_rdf_item_is_written_absolute(inside: str, expected: str) -> None:
    """R22: rdf:about is an identity, and stays; a base is added only for other relative URLs."""
    item = sent(rdf(f"<item rdf:about='1'>{inside}</item>"))

    assert item.endswith(f">{expected}</item>")
    assert "rdf:about='1'" in item
    assert sent(rdf(f"<item rdf:about='urn:a:1'>{inside}</item>")) == (
        f"<item rdf:about='urn:a:1'>{expected}</item>"
    )


@pytest.mark.parametrize(
    "inside",
    [
        "<id>/1</id>",
        "<link href=''/><link href=' '/><link/>",
        "<link href='mailto:a@b'/><link href='http://a'/><link href='HTTPS://a'/><link href='urn:a'/>",
        "<link href='http:/'/><link href='//:0/'/><link href='&#x7f;a'/>",
        "<content type='html'>&lt;a href='a'>b&lt;/a></content>",
        "<content type='html'><![CDATA[<link href='a'/><media:content url='b'/>]]></content>",
        f"<content><link xmlns='{ATOM_NS}' href='a'/></content>",
        "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><a href='a'/></div></content>",
        "<summary type='html'><![CDATA[<link href='a'/>]]></summary>",
        "<x:link xmlns:x='urn:x' href='a'/><x:uri xmlns:x='urn:x'>a</x:uri>",
        "<category term='a' scheme='b'/>",
        "<author><name>a</name><email>b</email></author>",
        "<!-- <link href='a'/> --><?x href='a'?>",
        f"<icon>{'a' * 4000}</icon>",
    ],
)
def test_what_is_no_url_or_means_nothing_stays_byte_for_byte(inside: str) -> None:
    """R22: identities, content, foreign elements, and empty or unresolvable URLs."""
    assert sent(atom(f"<entry>{inside}</entry>")) == f"<entry{BASE}>{inside}</entry>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            f'<feed version="0.3" xmlns="{ATOM_03_NS}"><entry><author><url>a</url></author></entry></feed>',
            f"<url>{AT}a</url>",
        ),
        (
            f'<feed xmlns="{ATOM_NS}" xml:base="/a/"><entry xml:base="b/"><link href="c"/></entry></feed>',
            '<entry xml:base="http://example.org/a/b/"><link href="http://example.org/a/b/c"/></entry>',
        ),
        (
            f'<feed xmlns="{ATOM_NS}"><entry xml:base="urn:a:b"><link href="c"/></entry></feed>',
            '<entry xml:base="urn:a:b"><link href="c"/></entry>',
        ),
        (
            f'<rdf:RDF xmlns:r="{RSS_10_NS}"{PREFIXES}><r:item><r:link>a</r:link></r:item></rdf:RDF>',
            f"<r:link>{AT}a</r:link>",
        ),
        (
            "<rss><channel><item xmlns='urn:a'><guid xmlns=''>/3</guid></item></channel></rss>",
            '<link xmlns="">http://example.org/3</link></item>',
        ),
    ],
    ids=["a person of atom 0.3", "bases", "no base for downloads", "rss with a prefix", "a gained link"],
)
def test_a_document_is_read_in_its_own_words(body: str, expected: str) -> None:
    """R22; XML Base, 4: elements count by namespace, URLs from the feed's base on."""
    assert expected in sent(body.encode())


@pytest.mark.parametrize(
    ("inside", "gained"),
    [
        ("<guid>/posts/3</guid>", "http://example.org/posts/3"),
        ("<guid>3.html</guid>", f"{AT}3.html"),
        ("<guid isPermaLink='true'>3</guid>", f"{AT}3"),
        ("<link/><guid>/3?a&amp;b</guid>", "http://example.org/3?a&amp;b"),
        ("<guid>/3</guid><enclosure url='http://a/b.mp3'/>", "http://example.org/3"),
    ],
)
def test_an_item_whose_only_address_is_its_guid_gains_a_link(inside: str, gained: str) -> None:
    """R22; RSS 2.0, "guid": it is an address unless it denies that, and is never rewritten."""
    assert sent(rss(f"<item>{inside}</item>")) == f"<item{BASE}>{inside}<link>{gained}</link></item>"


@pytest.mark.parametrize(
    "inside",
    [
        "<guid>3</guid>",
        "<guid isPermaLink='false'>/3</guid>",
        "<guid>http://a/3</guid>",
        "<guid>urn:uuid:3</guid>",
        "<guid>/3</guid><link>http://a/</link>",
        "<guid>/3</guid><atom:link href='http://a/'/>",
        "<guid/>",
    ],
)
def test_another_item_gains_no_link(inside: str) -> None:
    """R22: numbers and hashes are no addresses, despite RSS's default."""
    assert sent(rss(f"<item>{inside}</item>")).endswith(f">{inside}</item>")


@pytest.mark.parametrize(
    "inside",
    [
        "<slash:comments>12</slash:comments>",
        "<podcast:license>cc-by-4.0</podcast:license>",
        "<media:license>Some rights</media:license>",
        "<x:backLink xmlns:x='urn:x'>b</x:backLink>",
        "<dc:source>A book</dc:source>",
        "<category>a</category><link>http://a</link><guid>urn:a:b</guid>",
    ],
)
def test_what_is_called_like_a_url_elsewhere_gains_nothing(inside: str) -> None:
    """R22: another namespace gives a number or text, like WordPress's slash:comments."""
    channel = PREFIXES.replace(f' xmlns:atom="{ATOM_NS}"', "")
    made = sent(rss(f"<item>{inside}</item>", channel=channel))

    assert made.endswith(f">{inside}</item>")
    assert "xml:base" not in made or "xmlns:x" in inside


@pytest.mark.parametrize("inside", [before for before, _ in OF_ANY])
def test_a_copy_that_is_kept_has_its_base(inside: str) -> None:
    """R22: only output is written absolute."""
    channel = PREFIXES.replace(f' xmlns:atom="{ATOM_NS}"', "")
    made = Fragments(parse(rss(f"<item>{inside}</item>", channel=channel), URL))

    assert made.entry(0).decode() == f"<item{BASE}>{inside}</item>"


def test_the_head_is_written_absolute() -> None:
    """R22: links, image, logo and the feed's author."""
    head = (
        "<link>/</link><image><url>a.png</url><link>/</link></image><docs>d</docs>"
        f"<atom:link xmlns:atom='{ATOM_NS}' rel='license' href='l'/><itunes:image href='i.png'/>"
    )
    made = compose(parse(rss(head, channel=PREFIXES), URL)).head.text.decode()

    for url in ("http://example.org/<", f"{AT}a.png", f"{AT}d", f'"{AT}l"', f'"{AT}i.png"'):
        assert url in made
    assert "xml:base" not in made


def test_the_channel_of_rdf_is_written_absolute() -> None:
    """R22: its children count from its own base; rdf:about and rdf:resource are identities."""
    channel = "<channel rdf:about='/' xml:base='x/'><link>l</link><image rdf:resource='i'/></channel>"
    beside = "<image rdf:about='i'><url>i.png</url></image>"
    body = rdf(beside).replace(b"<channel rdf:about='/'><title>T</title></channel>", channel.encode())
    made = compose(parse(body, URL)).head.text.decode()

    assert f"<link>{AT}x/l</link><image rdf:resource='i'/>" in made.replace("\n", "")
    assert f"<url>{AT}i.png</url>" in made
    assert "rdf:about='i'" in made


def test_a_long_base_does_not_make_much_out_of_little() -> None:
    """R22: growth has a bounded factor; further URLs stay relative with their base."""
    base = f"http://example.org/{'b' * 1900}/"
    inside = "<media:content url='a'/>" * 1000
    body = atom(f"<entry>{inside}</entry>", attributes=PREFIXES)
    document = parse(body, base)
    made = Fragments(document).sent(0)

    assert made.count(base.encode()) > 10
    assert made.count(b"url='a'") > 100
    assert len(made) < (GAIN_FACTOR + 1) * len(inside) + GAIN_BYTES + len(base) + 1000


@pytest.mark.fault("147")
def test_where_one_url_has_no_room_no_further_one_is_looked_at() -> None:
    """R22: each would take the base's length for nothing; even a short one stays."""
    inside = (
        "<media:content url='//b/1'/>" + "<media:content url='?'/>" * 1000 + "<media:content url='//b/2'/>"
    )
    document = parse(
        atom(f"<entry>{inside}</entry>", attributes=PREFIXES), f"http://example.org/{'b/' * 900}"
    )
    made = Fragments(document).sent(0)

    assert b'url="http://b/1"' in made
    assert b"url='//b/2'" in made


@pytest.mark.parametrize(
    "text",
    [
        b"<a:b " * 200_000,
        b"<a:b c='" * 120_000,
        b'<a:b c="d"' + b' c="d"' * 150_000,
        b'<a:b c="d" ' * 90_000,
        b"<link" + b" " * 1_000_000,
        b"<link href='" + b" " * 1_000_000,
        b"<uri>" + b" " * 1_000_000,
        b"<uri><![CDATA[" * 70_000,
        b"<" * 1_000_000,
        b"<" + b"a" * 1_000_000,
        b"<" + b"a:" * 500_000,
        b"<guid " * 160_000,
        b" href=" + b" " * 1_000_000,
        b" href=" * 200_000 + b"a",
        b" href='http" * 100_000,
        b" href=" + b"a" * 1_000_000,
        b"=" * 1_000_000,
        b"<slash:comments>1" * 60_000,
        b"".join(b"<x%d:comments xmlns:y%d=''>1" % (n, n) for n in range(30_000)),
    ],
)
def test_no_text_takes_longer_than_its_length(text: bytes) -> None:
    """R22: a megabyte of half-written links takes linear time."""
    names = url_names([Scope(WELL_KNOWN_PREFIXES, "", URL)], Family.RSS)
    with cpu_limit(0.5):
        may_hold_relative(text, names)
        has_relative_reference(text, names)


@given(st.binary(), st.integers(0, 50), st.integers(0, 50))
def test_any_slice_can_be_looked_at(text: bytes, start: int, end: int) -> None:
    """R22: no bytes or offsets raise; slices unreadable alone stay."""
    scope = Scope(WELL_KNOWN_PREFIXES, "", URL)
    assert has_relative_reference(text, url_names([scope], Family.RSS), start, end) in (True, False)
    assert with_absolute_urls(text, scope, Family.ATOM) == text
    assert with_absolute_urls(b"<link href='a'>", scope, Family.ATOM) == b"<link href='a'>"


@given(
    st.lists(
        st.sampled_from(
            [
                *(before for before, _ in OF_ATOM),
                "<title>a</title>",
                "<content>&lt;a href='b'></content>",
                "a &amp; <b/>",
            ]
        ),
        max_size=6,
    )
)
def test_what_is_absolute_stays_as_it_is(inside: list[str]) -> None:
    """R22: sent text does not change when it comes back in."""
    made = sent(atom(f"<entry>{''.join(inside)}</entry>", attributes=PREFIXES))
    again = sent(atom(made, attributes=PREFIXES), "http://proxy.test/feed")

    assert again == made
