"""Every byte of an entry as its publisher wrote it, through the whole proxy (R22; RFC 4287, 4.2.1).

A case is a chain: documents, and their entries as text. Each entry must stand in the answer, in UTF-8,
unchanged but for attributes added to its start tag; and feedparser must see the same in both.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import feedparser
import pytest

from tests.chains import differences, seen
from tests.feeds import FH_NS
from tests.origin import Origin
from tests.running import Proxy, Reply
from wholefeed.core.model import ATOM_NS

XHTML: Final = "http://www.w3.org/1999/xhtml"
DATES: Final = "<updated>2024-02-03T04:05:06Z</updated>"

_GAINED: Final = r'(?: (?:xmlns(?::[\w.\-]+)?|xml:lang|xml:base)="[^"<]*")*'


@dataclass(frozen=True)
class Doc:
    entries: tuple[str, ...]
    attributes: str = ""
    container: str = ""
    head: str = ""
    element: str = "feed"
    codec: str = "utf-8"
    mark: bytes = b""
    charset: str = ""
    """Empty: the XML declaration names the encoding."""

    def body(self, links: str) -> bytes:
        name = "" if self.charset else f' encoding="{self.codec.removesuffix("-le").removesuffix("-be")}"'
        beginning = f'<?xml version="1.0"{name}?>\n'
        inside = f"{links}{self.head}\n" + "\n".join(self.entries)
        if self.element == "rss":
            text = f'<rss version="2.0"{self.attributes}><channel{self.container}>{inside}</channel></rss>'
        else:
            own = (
                ' xmlns="{}"'
                if self.element == "feed"
                else " xmlns:" + self.element.partition(":")[0] + '="{}"'
            )
            text = f"<{self.element}{own.format(ATOM_NS)}{self.attributes}>{inside}</{self.element}>"
        return self.mark + (beginning + text).encode(self.codec)

    @property
    def content_type(self) -> str:
        family = "rss" if self.element == "rss" else "atom"
        return f"application/{family}+xml" + (f"; charset={self.charset}" if self.charset else "")


def atom(*entries: str, **more: Any) -> Doc:
    return Doc(entries, **more)


def rss(*entries: str, **more: Any) -> Doc:
    head = "<title>A channel</title><link>http://site.test/</link><description>D</description>"
    return Doc(entries, element="rss", head=head, **more)


def an_entry(number: int, inside: str, tag: str = "entry") -> str:
    return f"<{tag}><id>urn:entry:{number}</id><title>{number}</title>{DATES}{inside}</{tag}>"


def an_item(number: int, inside: str) -> str:
    return f"<item><guid isPermaLink='false'>urn:item:{number}</guid><title>{number}</title>{inside}</item>"


def publish(origin: Origin, documents: Sequence[Doc]) -> list[tuple[str, bytes, str]]:
    urls = [
        origin.url("/feed/now.xml"),
        *(origin.url(f"/feed/{n}/then.xml") for n in range(1, len(documents))),
    ]
    published = []
    for place, (document, url) in enumerate(zip(documents, urls, strict=True)):
        links = ""
        if place < len(documents) - 1:
            links += f'<link xmlns="{ATOM_NS}" rel="prev-archive" href="{urls[place + 1]}"/>'
        if place:
            links += f'<link xmlns="{ATOM_NS}" rel="current" href="{urls[0]}"/><archive xmlns="{FH_NS}"/>'
        body = document.body(links)
        origin.publish(url.removeprefix(origin.url("")), body, content_type=document.content_type)
        published.append((url, body, document.content_type))
    return published


async def came_out(proxy: Proxy, origin: Origin, *documents: Doc) -> Reply:
    """Serve a chain; check that every entry is verbatim and that a reader sees the same."""
    published = publish(origin, documents)
    reply = await proxy.whole(published[0][0])
    assert reply.reconstruction.startswith(f"complete;documents={len(documents)};"), reply.reconstruction
    answer = reply.body.decode()
    for document in documents:
        for entry in document.entries:
            assert_verbatim(answer, entry)
    parsed = feedparser.parse(reply.body)
    assert not parsed.bozo, parsed.get("bozo_exception")
    before = [each for url, body, content_type in published for each in seen(body, url, content_type)]
    after = seen(reply.body, str(proxy.client.make_url("/feed")), reply.headers["Content-Type"])
    assert list(differences(before, after)) == []
    assert len(after) == sum(len(document.entries) for document in documents)
    return reply


def assert_verbatim(answer: str, entry: str) -> None:
    name = re.match(r"<[^\s/>]+", entry)
    assert name is not None
    found = re.findall(re.escape(name[0]) + _GAINED + re.escape(entry[name.end() :]), answer)
    assert len(found) == 1, (len(found), entry, answer)


def start_tags(reply: Reply, name: str = "entry") -> list[str]:
    return re.findall(rf"<{name}\b[^>]*>", reply.body.decode())


# ---- Spellings of XML

INSIDES: Final = {
    "CDATA": "<summary type='html'><![CDATA[<b>a & b</b> ]] > &amp; ]]></summary>",
    "CDATA in pieces": "<summary>a<![CDATA[<]]>b<![CDATA[]]>c]]&gt;</summary>",
    "predefined entities": "<summary>&amp; &lt;b&gt; &quot; &apos; &amp;amp;</summary>",
    "character references": "<summary>&#8212; &#x2014; &#x1F600; &#38; &#60;</summary>",
    "comments": "<!-- an <entry> that is none --><summary>a<!-- - -->b</summary><!---->",
    "processing instructions": "<?php echo '</entry>' ?><summary>a</summary><?x?>",
    "both kinds of quotes": """<link href='http://site.test/?a="b"'/><category term="it's" label='"x"'/>""",
    "white space in tags": "<summary\n\ttype = 'text'\r\n>a</summary\t><link\n  href='http://site.test/'\n/>",
    "empty elements": "<summary/><rights></rights><category term=''/>",
    "greater-than signs": "<category term='a>b'/><summary>a > b</summary>",
    "letters of all planes": "<summary>żółć 日本語 \U0001f389 é e\u0301 \u2028 \u00a0</summary>",
    "XHTML": (
        f'<content type="xhtml"><div xmlns="{XHTML}"><p class=\'a\'>T<br/>&#160;<a href="http://site.test/">x</a>'
        "<img alt='' src=\"http://site.test/i.png\"/></p></div></content>"
    ),
    "XHTML with a prefix": (
        f'<content type="xhtml"><h:div xmlns:h="{XHTML}"><h:em>a</h:em></h:div></content>'
    ),
}


@pytest.mark.parametrize("inside", INSIDES.values(), ids=INSIDES.keys())
async def test_an_atom_entry_is_what_its_publisher_wrote(proxy: Proxy, origin: Origin, inside: str) -> None:
    """R22, in the subscription document and in an archive document."""
    await came_out(proxy, origin, atom(an_entry(2, inside)), atom(an_entry(1, inside)))


@pytest.mark.parametrize("inside", INSIDES.values(), ids=INSIDES.keys())
async def test_an_rss_item_is_what_its_publisher_wrote(proxy: Proxy, origin: Origin, inside: str) -> None:
    """R22: including elements unknown to RSS."""
    await came_out(proxy, origin, rss(an_item(2, inside)), rss(an_item(1, inside)))


@pytest.mark.parametrize(
    "entry",
    [
        "<entry />",
        "<entry xml:lang='fr'\n/>",
        "<entry\n\t><id>urn:x</id></entry\n>",
        """<entry x='">' y="'/>"><id>urn:x</id></entry>""",
        "<entry><id> urn:x\n</id></entry>",
    ],
)
async def test_odd_start_and_end_tags_stay(proxy: Proxy, origin: Origin, entry: str) -> None:
    """R22: if they are legal."""
    await came_out(proxy, origin, atom(an_entry(2, "")), atom(entry, an_entry(1, "")))


@pytest.mark.parametrize("item", ["<item/>", "<item\n></item\t>", "<item a='>'><title/></item>"])
async def test_odd_items_stay(proxy: Proxy, origin: Origin, item: str) -> None:
    """R22: empty items, and odd tags."""
    await came_out(proxy, origin, rss(an_item(2, "")), rss(item, an_item(1, "")))


async def test_line_ends_stay(proxy: Proxy, origin: Origin) -> None:
    """R22: XML 1.0, 2.11 normalises them for readers of XML; the proxy only passes them on."""
    text = "<summary>a\r\nb\rc\nd</summary>"
    await came_out(proxy, origin, atom(an_entry(2, text)), atom(an_entry(1, f"\r\n{text}\r")))


# ---- Namespaces


async def test_a_prefix_means_in_each_entry_what_it_meant_in_its_document(
    proxy: Proxy, origin: Origin
) -> None:
    """R22: documents of one chain bind one prefix differently."""
    reply = await came_out(
        proxy,
        origin,
        atom(
            an_entry(3, "<dc:creator>N</dc:creator><x:y/>"), attributes=' xmlns:dc="urn:one" xmlns:x="urn:x1"'
        ),
        atom(
            an_entry(2, "<dc:creator>O</dc:creator><x:y/>"), attributes=' xmlns:dc="urn:two" xmlns:x="urn:x2"'
        ),
        atom(
            an_entry(1, "<dc:creator>P</dc:creator>"),
            attributes=' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:x="urn:x3"',
        ),
    )
    first, second, third = start_tags(reply)
    assert 'xmlns:dc="urn:one"' in first
    assert 'xmlns:x="urn:x1"' in first
    assert 'xmlns:dc="urn:two"' in second
    assert 'xmlns:x="urn:x2"' in second
    assert "xmlns" not in third


async def test_qualified_names_in_content_keep_their_declarations(proxy: Proxy, origin: Origin) -> None:
    """docs/design.md#verbatim-entries: a prefix can stand in attribute values and in text."""
    reply = await came_out(
        proxy,
        origin,
        atom(),
        atom(
            an_entry(1, '<category term="q:name"/><summary>r:name</summary>'),
            attributes=" xmlns:q='urn:q' xmlns:r='urn:r'",
        ),
    )
    (tag,) = start_tags(reply)
    assert 'xmlns:q="urn:q"' in tag
    assert 'xmlns:r="urn:r"' in tag


async def test_entries_with_and_without_a_prefix_come_out_in_one_document(
    proxy: Proxy, origin: Origin
) -> None:
    """R22: `atom:entry` in one document, `entry` in the other."""
    prefixed = (
        "<atom:entry><atom:id>urn:entry:1</atom:id><atom:title>1</atom:title>"
        "<atom:updated>2024-01-01T00:00:00Z</atom:updated><atom:summary>s</atom:summary></atom:entry>"
    )
    odd = prefixed.replace("atom:", "a:").replace("entry:1", "entry:0")
    await came_out(
        proxy,
        origin,
        atom(an_entry(2, "")),
        atom(prefixed, element="atom:feed"),
        atom(odd, element="a:feed"),
    )


async def test_a_prefixed_feed_s_unprefixed_children_stay_in_no_namespace(
    proxy: Proxy, origin: Origin
) -> None:
    """Without a default namespace `x` is in none; the output's must not reach it."""
    entry = "<a:entry><a:id>urn:entry:1</a:id><a:title>1</a:title><x>y</x></a:entry>"
    reply = await came_out(proxy, origin, atom(an_entry(2, "")), atom(entry, element="a:feed"))
    assert 'xmlns=""' in start_tags(reply, "a:entry")[0]


@pytest.mark.parametrize("namespace", ["http://backend.userland.com/rss2", "urn:of-their-own"])
async def test_rss_in_a_default_namespace_comes_out(proxy: Proxy, origin: Origin, namespace: str) -> None:
    """R22, R23: one family, under any namespace."""
    attributes = f' xmlns="{namespace}"'
    description = "<description>d</description>"
    await came_out(
        proxy,
        origin,
        rss(an_item(3, description), attributes=attributes),
        rss(an_item(2, description)),
        rss(an_item(1, description), attributes=attributes),
    )


async def test_namespaces_of_a_channel_reach_its_items(proxy: Proxy, origin: Origin) -> None:
    """R22: prefixes declared on an archive's channel are still bound for its items under another head."""
    item = an_item(1, "<z:q>z</z:q><itunes:duration>12</itunes:duration>")
    itunes = 'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'
    await came_out(proxy, origin, rss(), rss(item, container=f' xmlns:z="urn:z" {itunes}'))


# ---- Language and base


async def test_the_language_of_a_document_stays_with_its_entries(proxy: Proxy, origin: Origin) -> None:
    """R22; RFC 4287, 2: xml:lang in scope."""
    reply = await came_out(
        proxy,
        origin,
        atom(an_entry(4, "<summary>a</summary>"), attributes=" xml:lang='de'"),
        atom(an_entry(3, "<summary xml:lang='fr'>a</summary>")),
        atom(
            an_entry(2, "<summary>a</summary>").replace("<entry", "<entry xml:lang='en'"),
            attributes=" xml:lang='pl'",
        ),
        atom(
            an_entry(1, "<summary>a</summary>").replace("<entry", "<entry xml:lang=''"),
            attributes=" xml:lang='pl'",
        ),
    )
    languages = [entry.summary_detail.language for entry in feedparser.parse(reply.body).entries]
    assert languages[:3] == ["de", "fr", "en"]
    assert "pl" not in languages


CONTENT: Final = "<content type='html'>&lt;a href='d'>x&lt;/a>&lt;img src='/e.png'/></content>"
LINKED: Final = (
    f"<link href='a/b'/><link rel='enclosure' type='audio/mpeg' length='1' href='../c.mp3'/>{CONTENT}"
)

BASES: Final = {
    "none": ("", "", ""),
    "absolute, of the feed": (" xml:base='http://base.test/x/'", "", "http://base.test/x/a/b"),
    "relative, of the feed": (" xml:base='sub/'", "", ""),
    "relative, of the entry": ("", " xml:base='sub/'", ""),
    "absolute and relative": (
        " xml:base='http://base.test/x/'",
        " xml:base='y/'",
        "http://base.test/x/y/a/b",
    ),
    "relative and relative": (" xml:base='../up/'", " xml:base='y/'", ""),
    "absolute, of the entry": (" xml:base='x/'", " xml:base='http://base.test/z'", "http://base.test/a/b"),
    "a path": (" xml:base='/root/'", "", ""),
}


@pytest.mark.parametrize(("feed", "entry", "expected"), BASES.values(), ids=BASES.keys())
async def test_what_is_relative_means_what_it_meant_in_its_document(
    proxy: Proxy, origin: Origin, feed: str, entry: str, expected: str
) -> None:
    """R11, R22; XML Base, 4: bases of the feed and of entries, in documents of several folders."""
    documents = [
        atom(an_entry(2 - n, LINKED).replace("<entry", f"<entry{entry}"), attributes=feed) for n in range(2)
    ]
    published = publish(origin, documents)
    reply = await proxy.whole(published[0][0])
    before = [each for url, body, content_type in published for each in seen(body, url, content_type)]
    after = seen(reply.body, str(proxy.client.make_url("/feed")), reply.headers["Content-Type"])
    assert list(differences(before, after)) == []
    assert len(after) == 2
    assert all("://" in link["href"] for each in after for link in each["links"])
    if expected:
        assert [each["link"] for each in after] == [expected, expected]
    assert reply.body.count(CONTENT.encode()) == 2
    assert not re.search(rb"<link[^>]*href=['\"](?!http)", reply.body)


async def test_bases_inside_of_an_entry_stay_as_they_are(proxy: Proxy, origin: Origin) -> None:
    """XML Base, 4: deeper bases are relative to the entry's base, which is absolute."""
    inside = "<content type='html' xml:base='deep/'>&lt;a href='x'></content>"
    await came_out(proxy, origin, atom(an_entry(2, inside)), atom(an_entry(1, inside)))


async def test_relative_references_of_rss_mean_what_they_meant(proxy: Proxy, origin: Origin) -> None:
    """R11, R22: RSS gains xml:base only if needed."""
    relative = (
        "<link>http://site.test/</link><description>&lt;a href='x'&gt;x&lt;/a&gt;</description>"
        "<enclosure url='http://site.test/m.mp3' length='1' type='audio/mpeg'/>"
    )
    absolute = "<link>http://site.test/</link><description>d</description>"
    reply = await came_out(
        proxy,
        origin,
        rss(an_item(3, relative), an_item(2, absolute)),
        rss(an_item(1, relative), container=" xml:base='http://base.test/x/'"),
    )
    with_base = ["xml:base" in tag for tag in start_tags(reply, "item")]
    assert with_base == [True, False, True]


async def test_urls_reach_readers_that_know_of_no_base(proxy: Proxy, origin: Origin) -> None:
    """R22: downloads work in readers that resolve against the requested URL."""
    item = an_item(1, "<link>here</link><enclosure url='/m.mp3' length='1' type='audio/mpeg'/>")
    ((url, _, _),) = publish(origin, [rss(item)])
    reply = await proxy.whole(url)
    assert f"<link>{origin.url('/feed/here')}</link>" in reply.body.decode()
    assert f'<enclosure url="{origin.url("/m.mp3")}" length' in reply.body.decode()
    assert "xml:base" not in reply.body.decode()


async def test_an_address_that_only_an_extension_knows_is_written_absolute(
    proxy: Proxy, origin: Origin
) -> None:
    """R22: even if nothing else in the item is relative; other elements of that name stay."""
    namespaces = {
        "feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
        "psc": "http://podlove.org/simple-chapters",
        "slash": "http://purl.org/rss/1.0/modules/slash/",
    }
    bound = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in namespaces.items())
    link = "<feedburner:origLink>here</feedburner:origLink>"
    image = "<psc:chapters><psc:chapter start='1' image='/a.png'/></psc:chapters>"
    number = "<slash:comments>12</slash:comments>"
    items = [an_item(n, inside) for n, inside in enumerate((link, image, number))]
    ((url, _, _),) = publish(origin, [rss(*items, attributes=bound)])
    text = (await proxy.whole(url)).body.decode()
    assert f"<feedburner:origLink>{origin.url('/feed/here')}</feedburner:origLink>" in text
    assert f'image="{origin.url("/a.png")}"' in text
    assert number in text
    assert "xml:base" not in text


async def test_what_a_remembered_copy_links_stays_where_it_was(proxy: Proxy, origin: Origin) -> None:
    """R8, R22: a remembered copy keeps the URLs of its document."""
    old, new = (an_item(n, f"<enclosure url='{n}.mp3' length='1' type='audio/mpeg'/>") for n in (1, 2))
    ((url, _, _),) = publish(origin, [rss(old)])
    await proxy.whole(url)
    publish(origin, [rss(new)])
    await proxy.refreshed(url)
    reply = await proxy.whole(url)
    assert f'<enclosure url="{origin.url("/feed/1.mp3")}"' in reply.body.decode()
    assert f'<enclosure url="{origin.url("/feed/2.mp3")}"' in reply.body.decode()


# ---- Facts that entries inherit from their feed


async def test_an_entry_without_an_author_takes_its_feed_s_along(proxy: Proxy, origin: Origin) -> None:
    """R22; RFC 4287, 4.2.1: the only addition beside attributes, and only if required."""
    entries = [f"<entry><id>urn:{n}</id><title>{n}</title></entry>" for n in range(3)]
    documents = [
        atom(entries[2], head="<author><name>Ann</name></author>"),
        atom(entries[1], head="<author><name>Ann</name></author>"),
        atom(entries[0], head="<author><name>Bob &amp; Co</name></author>"),
    ]
    published = publish(origin, documents)
    reply = await proxy.whole(published[0][0])
    parsed = feedparser.parse(reply.body)
    assert parsed.feed.author == "Ann"
    assert [entry.get("author") for entry in parsed.entries] == [None, None, "Bob & Co"]
    assert_verbatim(reply.body.decode(), entries[1])
    inside = entries[0].removesuffix("</entry>").removeprefix("<entry>")
    assert f"{inside}<author" in reply.body.decode()


# ---- Encodings

POLISH: Final = "<summary>zażółć — “gęślą” €</summary>"
WESTERN: Final = "<summary>café — “naïve” €</summary>"
LATIN: Final = "<summary>café naïve ÿ£</summary>"


async def test_documents_of_several_encodings_come_out_in_one(proxy: Proxy, origin: Origin) -> None:
    """R22: transcoded to UTF-8 and not otherwise changed."""
    await came_out(
        proxy,
        origin,
        atom(an_entry(7, POLISH), mark=codecs.BOM_UTF8),
        atom(an_entry(6, POLISH), codec="utf-16-le", mark=codecs.BOM_UTF16_LE),
        atom(an_entry(5, POLISH), codec="utf-16-be", mark=codecs.BOM_UTF16_BE),
        atom(an_entry(4, LATIN), codec="iso-8859-1"),
        atom(an_entry(3, WESTERN), codec="windows-1252"),
        atom(an_entry(2, POLISH.replace("— “gęślą” €", "gęślą")), codec="iso-8859-2"),
        atom(an_entry(1, POLISH)),
    )


async def test_rss_documents_of_several_encodings_come_out_in_one(proxy: Proxy, origin: Origin) -> None:
    """R22."""
    polish, latin = (text.replace("summary", "description") for text in (POLISH, LATIN))
    await came_out(
        proxy,
        origin,
        rss(an_item(3, polish), codec="utf-16-le", mark=codecs.BOM_UTF16_LE),
        rss(an_item(2, latin), codec="iso-8859-1"),
        rss(an_item(1, polish), mark=codecs.BOM_UTF8),
    )


async def test_the_head_of_the_answer_is_in_utf_8_too(proxy: Proxy, origin: Origin) -> None:
    """R20, R22: from a feed in ISO-8859-1."""
    document = atom(an_entry(1, ""), head="<title>Größe</title>", codec="iso-8859-1")
    reply = await came_out(proxy, origin, document, atom())
    assert feedparser.parse(reply.body).feed.title == "Größe"
    assert reply.body.startswith(b'<?xml version="1.0" encoding="utf-8"?>')
    assert reply.headers["Content-Type"].endswith("charset=utf-8")
