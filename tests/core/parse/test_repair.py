"""docs/faults.md rows 45, 49 and 59; docs/repair.md: repairs of documents that are not well-formed."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import feedparser
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.calls import counted_calls
from tests.core.parse.makers import URL, atom, rss, slices
from tests.cpu_time import cpu_limit
from wholefeed.core.model import ATOM_NS, FeedDocument, entry_id
from wholefeed.core.notes import DocumentRepaired, DocumentTruncated
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.parse.repair import MAX_EDITS, MAX_REFERENCES, UNKNOWN_NAMESPACE, mend

ITEM = "<item><guid>a</guid></item>"
FEED = f'<rss version="2.0"><channel><title>x</title>{ITEM}</channel></rss>'
CHANNEL = rss(ITEM).partition(b"</channel>")[0].decode()
RDF = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
    "<channel><title>x</title></channel><item><link>http://o.test/a</link></item>"
)


def repaired(body: bytes, *names: str) -> FeedDocument:
    """Parse a document that needs exactly these repairs."""
    document = parse(body, URL)
    (note,) = document.notes
    assert note == DocumentRepaired(URL, repairs=tuple(sorted(names)))
    return document


def text_of(document: FeedDocument, path: str) -> str:
    found = fromstring(document.text).find(path)
    assert found is not None
    return "".join(found.itertext())


def titled(title: str, **options: str) -> bytes:
    return rss(f"<title>{title}</title>{ITEM}", **options)


@pytest.mark.parametrize(
    ("written", "meant", "repair"),
    [
        ("a&nbsp;b", "a\xa0b", "entities"),
        ("&eacute;&NotEqualTilde;&AMP;", "é\u2242\u0338&", "entities"),
        ("AT&T &amp; &lt;", "AT&T & <", "ampersands"),
        ("?a=1&copy=2;", "?a=1&copy=2;", "ampersands"),
        ("&unknown; &#xZZ; &; &#;", "&unknown; &#xZZ; &; &#;", "ampersands"),
        ("&#X26;", "&", "character-references"),
        ("&#55357;&#56832;&#xd83D;&#XDE00;&#55357;&#xde00;", "😀😀😀", "character-references"),
        (
            "&#55357; &#56832;&#55357;&#55357;&#56832;&#56832;",
            "\ufffd \ufffd\ufffd😀\ufffd",
            "character-references",
        ),
        ("&#26;&#xFFFF;&#0;", "\ufffd\ufffd\ufffd", "character-references"),
        ("&#9999999999;", "\ufffd", "character-references"),
        ("a\0\x08b\x1f\uffff", "ab", "control-characters"),
        ("a ]]> b", "a ]]> b", "less-than"),
    ],
)
def test_text_says_what_was_meant(written: str, meant: str, repair: str) -> None:
    """docs/faults.md row 45."""
    assert text_of(repaired(titled(written), repair), "channel/title") == meant


def test_what_xml_does_not_read_references_in_stays() -> None:
    """R22: byte for byte."""
    kept = "<![CDATA[&nbsp; & <br><?xml version='1.0'?>]]><!-- & --><?x & ?>&#150;&#x41;"

    document = repaired(titled(f"{kept} &"), "ampersands")
    assert f"<title>{kept} &amp;</title>".encode() in document.text


WARNING = (
    "<br />\n<b>Warning</b>:  Undefined variable $x < 1 in <b>/var/www/feed.php</b> on line <b>3</b><br />\n"
)


@pytest.mark.fault("45")
@pytest.mark.parametrize(
    "leading", ["\n", "<!-- made by x -->\n", WARNING, "<br>", "<p>x</p>\n<!-- y -->", "\nWarning: x\n"]
)
@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("iso-8859-1", "cp1252", "café “x”"),
        ("windows-1251", "cp1251", "Ж"),
        ("shift_jis", "cp932", "東京"),
        ("gb2312", "gb18030", "你好"),
        ("utf-8", "utf-8", "é 東"),
    ],
)
def test_behind_markup_too_the_declaration_says_the_encoding(
    leading: str, label: str, codec: str, text: str
) -> None:
    """docs/faults.md rows 45 and 48; docs/repair.md: a server's warning may precede any declaration, not only
    in UTF-8.
    """
    body = titled(text, prolog=f'<?xml version="1.0" encoding="{label}"?>').decode()

    assert repaired((leading + body).encode(codec), "declaration").head.title == text


@pytest.mark.fault("46a")
def test_behind_markup_too_the_bytes_may_contradict_the_declaration() -> None:
    """docs/faults.md rows 45 and 46a: windows-1252 labelled UTF-8, after a server's warning."""
    body = WARNING + titled("café", prolog='<?xml version="1.0" encoding="utf-8"?>').decode()
    document = parse(body.encode("cp1252"), URL)
    assert document.head.title == "café"
    assert [note.code for note in document.notes] == ["EncodingRetried", "DocumentRepaired"]


@pytest.mark.parametrize(
    ("prolog", "inside"),
    [
        ("<?xml version='1.0'?><?xml version='1.0'?>", ""),
        ('<?xml version="1.0" standalone="true"?>', ""),
        ("<?xml version=1.0 encoding=utf-8?>", ""),
        ('<?xml version="1.0" charset="utf-8"?>', ""),
        ('<?xml encoding="utf-8"?>', ""),
        ('<?xml version="@1.0"?>', ""),
        ("<? a ?>", ""),
        ("", "<?xml version='1.0'?>"),
        ("", "<? echo 1 ?>"),
        ("", "<title>a<?=$a?></title>"),
        ("", "<??>"),
        ("", "<?1 ?>"),
    ],
)
def test_a_malformed_or_second_declaration_and_an_instruction_without_a_name_are_dropped(
    prolog: str, inside: str
) -> None:
    """docs/faults.md row 45; XML 1.0, productions 16 and 23."""
    document = repaired(rss(inside, ITEM, prolog=prolog), "declaration")
    assert b"<?" not in document.text.removeprefix(b"<?xml version='1.0'?>")
    assert slices(document) == [ITEM.encode()]


@pytest.mark.parametrize(
    ("item", "prefix", "namespace"),
    [
        ("<itunes:author>Ann</itunes:author>", "itunes", "http://www.itunes.com/dtds/podcast-1.0.dtd"),
        ("<x:y/>", "x", f"{UNKNOWN_NAMESPACE}x"),
        ('<y z:a="1"/>', "z", f"{UNKNOWN_NAMESPACE}z"),
    ],
)
def test_a_prefix_that_nothing_declares_gets_the_namespace_that_everybody_means(
    item: str, prefix: str, namespace: str
) -> None:
    """docs/faults.md row 45; Namespaces in XML 1.0, section 5: unknown prefixes get one from their name."""
    document = repaired(rss(f"<item>{item}</item>"), "prefixes")
    assert document.head.scope.prefixes[prefix] == namespace
    assert slices(document) == [f"<item>{item}</item>".encode()]


@pytest.mark.parametrize("written", ["media:type=x", "a media:type b=c"])
def test_the_prefix_of_an_attribute_that_is_not_well_written_is_declared(written: str) -> None:
    """docs/faults.md row 45."""
    (entry,) = slices(repaired(rss(f"<item><a {written} ></a></item>"), "attributes", "prefixes"))
    assert b"media:type=" in entry


def test_a_declaration_within_a_value_is_none() -> None:
    """Row 45: `xmlns:q` in an attribute's text declares nothing."""
    document = repaired(rss('<item><a b=\' xmlns:q="x" p:r="y"\'><q:s/></a></item>'), "prefixes")
    assert UNKNOWN_NAMESPACE.encode() + b"q" in document.text
    assert UNKNOWN_NAMESPACE.encode() + b"p" not in document.text


def test_a_prefix_that_one_element_declares_is_missing_beside_it() -> None:
    """Row 45: the prefix is declared anew outside of that element."""
    inside = '<item><guid>1</guid><a:b xmlns:a="urn:a"/></item><item><a:c/></item>'
    document = repaired(rss(inside), "prefixes")

    found = fromstring(document.text)
    assert found.find("channel/item/{urn:a}b") is not None
    assert found.find(f"channel/item/{{{UNKNOWN_NAMESPACE}a}}c") is not None


@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>&nbsp;<br></body>",
        b"\n<!DOCTYPE html><html><p>x",
        b"\n<?xml version='1.0'?>\n<html>&nbsp;</html>",
        b"<div><p>x</div> <rss version='2.0'>",
        b"<div>How to write a feed</div> <feed>",
        b"In RSS the root is <rss>, and <channel> stands in it.",
        b"<br/><!-- <rss><channel> --><html/>",
        b"<br/><![CDATA[<rss><channel>]]>",
        b"x <!DOCTYPE rss [ ]><html/><!--<rss><channel>-->",
        b"<opml>&nbsp;</opml>",
        f"<html><body><p>How to write a feed:</p><pre>{FEED}</pre></body></html>".encode(),
        f"<html><body><!-- {FEED} --></body></html>".encode(),
        b"<html><body><rssx/></body></html>",
        b"<!-- only this -->",
        b"<!-- <rss> ",
        b"<",
    ],
)
def test_what_is_no_feed_is_never_made_one(body: bytes) -> None:
    """docs/faults.md row 38: the answer stays 422."""
    with pytest.raises(ParseError) as caught:
        parse(body, URL, "text/html")
    assert caught.value.slug in ("not-a-feed", "malformed-xml", "dtd-forbidden")


@pytest.mark.fault("47a")
@pytest.mark.parametrize(
    ("prolog", "text", "repairs"),
    [
        ("<?xml version='1.1'?>", "x", []),
        ('<?xml version="1.1" encoding="utf-8" standalone="yes"?>', "\x85\u2028", []),
        ("<?xml version='1.12'?>", "x", []),
        ("\n<?xml version='1.1'?>", "x", ["declaration"]),
        ("<?xml version='1.1'?>", "a&nbsp;b", ["entities"]),
        ("<?xml version='1.1'?>", "&#1;", ["character-references"]),
    ],
)
def test_xml_1_1_is_read_as_1_0(prolog: str, text: str, repairs: list[str]) -> None:
    """docs/faults.md row 47a; XML 1.0, section 2.8: for any other 1.x."""
    meant = text.replace("&nbsp;", "\xa0").replace("&#1;", "\ufffd")
    document = repaired(titled(f"T{text}", prolog=prolog), *repairs, "version")
    assert text_of(document, "channel/title") == f"T{meant}"
    assert slices(document) == [ITEM.encode()]


# Roots


@pytest.mark.parametrize(
    ("body", "repairs"),
    [
        (f"< rss{FEED[4:]}", ["root"]),
        (f"<?xml version='1.0'?>\n<\trss{FEED[4:-6]}</ rss >", ["root"]),
        (f"<html><body>{FEED}</body></html>", ["after-end", "root"]),
        (
            f"<!DOCTYPE html>\n<HTML><head><title>A feed</title><script>a > b</script></head>\n<br>{FEED}",
            ["root"],
        ),
        (f"<html xmlns='http://www.w3.org/1999/xhtml'><pre>{FEED}", ["root"]),
        (f"\u200b{FEED}", ["declaration"]),
        (f"\ufeff\u200b\ufeff {FEED}", ["declaration"]),
    ],
)
def test_a_root_that_does_not_stand_where_it_should_is_found(body: str, repairs: list[str]) -> None:
    """Rows 38, 46: feedparser reads such documents; a page that shows only a feed is one."""
    document = repaired(body.encode(), *repairs)
    assert document.head.title == "x"
    assert b"<rss" in document.text[:30]
    assert slices(document) == [ITEM.encode()]
    assert len(feedparser.parse(body.encode()).entries) == 1


@pytest.mark.fault("45")
@pytest.mark.parametrize(
    "leading",
    [
        WARNING,
        "<br>",
        "<br/>",
        "<p>x</p>\n<!-- y -->",
        "\nWarning: something in /var/www/feed.php on line 3\n",
        "0",
        "caf\xe9: ",
        "</div>\n",
        "<![CDATA[x]]>",
        "<!DOCTYPE rss SYSTEM 'x'>\n<b>x</b>",
    ],
)
@pytest.mark.parametrize(
    "feed",
    [
        FEED.encode(),
        FEED.replace("<channel>", "\n<!-- made by x -->\n<channel>").encode(),
        atom("<title>x</title>", f"<entry>{ITEM[6:-7]}</entry>"),
        f"{RDF[: RDF.index('<item>')]}{ITEM}</rdf:RDF>".encode(),
    ],
    ids=["rss", "comment", "atom", "rdf"],
)
def test_what_stands_before_a_root_without_a_declaration_is_dropped(leading: str, feed: bytes) -> None:
    """docs/faults.md row 45: text or markup of a server before the whole document."""
    document = parse(leading.encode() + feed, URL)
    (note,) = document.notes
    assert note.kind is DocumentRepaired
    assert {"declaration"} <= set(note.facts["repairs"]) <= {"declaration", "doctype"}
    assert (document.head.title, len(document.entries)) == ("x", 1)
    assert document.text.endswith(feed)


@pytest.mark.fault("40", "41")
@pytest.mark.parametrize("leading", ["x", "\n<?xml version='1.0'?>", ""])
@pytest.mark.parametrize("subset", ['<!DOCTYPE rss [<!ENTITY a "b">]>', '<!DOCTYPE rss SYSTEM "x" [%p;]>'])
def test_behind_text_too_a_document_type_of_its_own_is_refused(leading: str, subset: str) -> None:
    """docs/faults.md rows 40 and 41."""
    with pytest.raises(ParseError) as caught:
        parse(titled("&nbsp;", prolog=leading + subset), URL)
    assert caught.value.slug == "dtd-forbidden"


@pytest.mark.fault("45")
@pytest.mark.parametrize(
    ("written", "made"),
    [
        ('<rss version="2.0"', '<rss version="2.0">'),
        ('<rss version="2.0"\n  ', '<rss version="2.0">\n  '),
        ("<rss", "<rss>"),
        (
            "<?xml version='1.0'?><rss version='2.0' xmlns:a='u' ",
            "<?xml version='1.0'?><rss version='2.0' xmlns:a='u'> ",
        ),
    ],
)
def test_a_root_whose_start_tag_does_not_end_is_one(written: str, made: str) -> None:
    """docs/faults.md row 45: the start tag lacks only its ">"."""
    rest = FEED[FEED.index("<channel>") :]
    assert repaired((written + rest).encode(), "root").text == (made + rest).encode()


@pytest.mark.fault("45")
def test_a_root_whose_start_tag_does_not_end_is_found_behind_a_warning() -> None:
    """docs/faults.md row 45: both defects together."""
    body = WARNING + FEED.replace('"2.0">', '"2.0"')
    assert slices(repaired(body.encode(), "declaration", "root")) == [ITEM.encode()]


def test_two_byte_order_marks_are_no_part_of_the_document() -> None:
    """docs/faults.md row 46."""
    document = parse(b"\xef\xbb\xbf" * 2 + FEED.encode(), URL)
    assert (document.text, document.notes) == (FEED.encode(), ())


@pytest.mark.parametrize("title", ["x", "&nbsp;x"])
def test_atom_without_a_namespace_is_atom_1_0(title: str) -> None:
    """docs/repair.md: every reader assumes it."""
    entry = "<entry><id>1</id><updated>2026-01-01T00:00:00Z</updated></entry>"
    names = ["namespace"] if title == "x" else ["entities", "namespace"]
    document = repaired(f"<feed lang='de'><title>{title}</title>{entry}</feed>".encode(), *names)

    assert (document.version, slices(document)) == ("1.0", [entry.encode()])
    assert document.text.startswith(b'<feed xmlns="http://www.w3.org/2005/Atom" lang=')


# Markup


@pytest.mark.parametrize(
    ("html", "meant"),
    [
        ("<p>a<br>b", "<p>a<br>b"),
        ("<p>Tom &amp; Jerry<br>&nbsp;</p>", "<p>Tom &amp; Jerry<br>&nbsp;</p>"),
        ("<b><i>x</b></i>", "<b><i>x</b></i>"),
        ("a < b, x <y", "a < b, x <y"),
        ("<a href=/x>y</a>", "<a href=/x>y</a>"),
        ("</p>x", "</p>x"),
        ("<o:p>x", "<o:p>x"),
        ("&lt;p&gt;x<br>&nbsp;", "<p>x<br>\xa0"),
        ("<br><![CDATA[<i>&</i>]]>", "<br><i>&</i>"),
        ("<p>a<link>b<source>c</p>", "<p>a<link>b<source>c</p>"),
        ("<p>a</table>b", "<p>a</table>b"),
        ("a</b>", "a</b>"),
    ],
)
@pytest.mark.parametrize("name", ["description", "content:encoded"])
def test_html_that_was_not_escaped_is(html: str, meant: str, name: str) -> None:
    """docs/design.md#repair: RSS text that does not nest; the item's rest stays."""
    before, after = "<item><guid>a</guid>", "<link>http://o.test/?a=1&amp;b=2</link></item>"
    attributes = ' xmlns:content="http://purl.org/rss/1.0/modules/content/"'
    document = repaired(
        rss(f"{before}<{name}>{html}</{name}>{after}", attributes=attributes), "unescaped-html"
    )

    (entry,) = slices(document)
    assert entry.startswith(before.encode())
    assert entry.endswith(after.encode())
    assert fromstring(b"<r xmlns:content='x'>%s</r>" % entry)[0][1].text == meant


def test_html_in_an_atom_text_is_escaped_and_xhtml_is_balanced() -> None:
    """RFC 4287, 3.1.1: the type decides about markup."""
    html = repaired(
        atom("<entry><id>1</id><content type='html'><p>a<br></content></entry>"), "unescaped-html"
    )
    xhtml = "<entry><id>1</id><content type='xhtml'><div><p>a<br>b<i>c</p></div></content></entry>"
    balanced = repaired(atom(xhtml), "end-tags")

    assert b"&lt;p&gt;a&lt;br&gt;" in slices(html)[0]
    assert b"<div><p>a<br/>b<i>c</i></p></div>" in slices(balanced)[0]


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("<item><a><b>x</a></item>", "<item><a><b>x</b></a></item>"),
        ("<item><a>x</aa><b/></item>", "<item><a>x</a><b/></item>"),
        ("<item></b><a/></item>", "<item><a/></item>"),
        ("<item><guid>1</guid><item><guid>2</guid></item>", "<item><guid>1</guid></item>"),
        ("<item><!-- a -- b --><a/></item>", "<item><a/></item>"),
        ("<item><a b='x\"y' c='' b=''></a></item>", '<item><a b="x&quot;y" c=""></a></item>'),
        ("""<item><a b="1" b='2'/></item>""", '<item><a b="1"/></item>'),
        ('<item><a b=1 c d="2" b="3"/></item>', '<item><a b="1" c="c" d="2"/></item>'),
        ("<item><a>1 < 2</a></item>", "<item><a>1 &lt; 2</a></item>"),
        ('<item><a b="/?a=1&b=2&nbsp;"/></item>', '<item><a b="/?a=1&amp;b=2&#160;"/></item>'),
        (f"<item><title>One<guid>1</guid>{ITEM}", "<item><title>One</title><guid>1</guid></item>"),
        (
            f"<item><guid>1</guid><title>One</Title></ITEM>{ITEM}",
            "<item><guid>1</guid><title>One</title></item>",
        ),
    ],
)
def test_markup_is_made_to_nest(written: str, made: str) -> None:
    """Row 45: unclosed, misnamed or stray tags, bad comments, attributes and `<` become well-formed, with one
    note.
    """
    document = parse(rss(written), URL)

    assert slices(document)[0] == made.encode()
    assert [note.code for note in document.notes] == ["DocumentRepaired"]


ITEMS = "".join(f"<item><guid>{n}</guid><title>T{n}</title></item>" for n in range(25))


@pytest.mark.parametrize(
    "head",
    [
        "<title>My blog</Title>",
        "<title>My blog</TITLE\n>",
        "<title>My blog",
        "<title>My blog\n<link>http://o.test/</link>",
        "<title>My blog<br><link>http://o.test/</link>",
        "<title>My blog<atom:link href='x'/>",
        "<title>My blog<description>About",
        "<title>My blog</title><link>http://o.test/",
        "<title>My blog</title><description><p>a<b>b</p>",
        "<title>My blog</title><ttl>1<language>de",
    ],
)
def test_a_text_that_is_not_closed_swallows_no_item(head: str) -> None:
    """docs/faults.md row 45: the next item ends it at the latest."""
    document = parse(rss(head + ITEMS), URL)

    assert b"".join(slices(document)).decode() == ITEMS
    assert document.head.title.startswith("My blog")
    assert [note.code for note in document.notes] == ["DocumentRepaired"]


@pytest.mark.fault("45")
@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("<title>One</titel>", "<title>One</title>"),
        ("<title>One</tile>", "<title>One</title>"),
        ("<title>One</titles>", "<title>One</title>"),
        ("<title>One</Titel\n>", "<title>One</title>"),
        ("<title>One</link>", "<title>One</title>"),
        ("<title>One</description>", "<title>One</title>"),
        ("<title>a <b>c</b></titel>", "<title>a <b>c</b></title>"),
        ("<title>a<br>b</titel>", "<title>a&lt;br&gt;b</title>"),
        ("<title>A &amp; B</titel>", "<title>A &amp; B</title>"),
        ("<description>a</p>b</descripton>", "<description>a&lt;/p&gt;b</description>"),
    ],
)
def test_another_end_tag_in_the_place_of_a_text_s_own_is_its_end(written: str, made: str) -> None:
    """docs/faults.md row 45: an end tag misspelt by a letter, or of another feed element, is no part of the
    text, for any distance to the right one.
    """
    rest = "<guid>1</guid><media:group xmlns:media='m'><media:title>x</media:title></media:group>"
    assert slices(parse(rss(f"<item>{written}{rest}</item>{ITEM}"), URL)) == [
        f"<item>{made}{rest}</item>".encode(),
        ITEM.encode(),
    ]


@pytest.mark.fault("45")
def test_a_misspelt_end_tag_of_the_feed_s_title_ends_it_before_its_image_s() -> None:
    """docs/faults.md row 45: the image's title has its own end tag."""
    image = "<link>http://o.test/</link><image><title>My image</title></image>"
    document = repaired(rss(f"<title>My blog</titel>{image}{ITEM}"), "end-tags")
    assert document.head.title == "My blog"
    assert f"<title>My blog</title>{image}".encode() in document.text


# Ends


ATOM_ENTRY = (
    "<entry><id>urn:{n}</id><title>{n}</title><updated>2026-01-0{n}T00:00:00Z</updated>{inside}</entry>"
)


def an_atom_entry(n: int, inside: str = "") -> str:
    return ATOM_ENTRY.replace("{n}", str(n)).replace("{inside}", inside)


@pytest.mark.fault("149")
@pytest.mark.parametrize(
    "inside",
    [
        "",
        "<content>x",
        "<author><name>A",
        '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>x',
    ],
)
@pytest.mark.parametrize("places", [(1,), (2,), (3,), (1, 2, 3)])
def test_an_atom_entry_that_is_not_closed_swallows_no_other(inside: str, places: tuple[int, ...]) -> None:
    """Row 149: the next entry ends it at any break, with a prefix, and in another case."""
    entries = "".join(
        an_atom_entry(n, inside).removesuffix("</entry>") if n in places else an_atom_entry(n)
        for n in (1, 2, 3)
    )
    body = f'<feed xmlns="{ATOM_NS}"><title>T</title>{entries}</feed>'
    identities = [entry_id(f"urn:{n}") for n in (1, 2, 3)]
    assert [each.identity for each in repaired(body.encode(), "end-tags").entries] == identities

    other_case = body.replace("entry>", "Entry>")
    document = repaired(other_case.encode(), "element-names", "end-tags")
    assert [each.identity for each in document.entries] == identities
    if not inside:
        prefixed = body.replace("</", "</a:").replace("<", "<a:").replace("<a:/a:", "</a:")
        document = repaired(prefixed.replace("xmlns=", "xmlns:a=").encode(), "end-tags")
        assert [each.identity for each in document.entries] == identities


@pytest.mark.fault("149")
def test_any_number_of_entries_may_be_not_closed() -> None:
    """Row 149: the strict parser sees them nested, deeper than allowed."""
    for entry, root in (
        ("<entry><id>{}</id>", f'<feed xmlns="{ATOM_NS}">'),
        ("<item><guid>{}</guid>", "<rss><channel>"),
    ):
        ends = "</feed>" if "feed" in root else "</channel></rss>"
        body = root + "".join(entry.format(n) for n in range(1000)) + ends
        assert len(repaired(body.encode(), "end-tags").entries) == 1000
        with pytest.raises(ParseError, match="levels of elements"):
            parse((root + "<a>" * 1000 + entry.format(1)).encode(), URL)


@pytest.mark.fault("149")
@pytest.mark.parametrize(
    "inside",
    [
        '<x:list xmlns:x="urn:x"><feed>{entry}</feed></x:list>',
        '<x:one xmlns:x="urn:x">{entry}</x:one>',
        '<content type="application/atom+xml">{entry}</content>',
    ],
)
def test_an_entry_may_stand_in_an_entry_all_the_same(inside: str) -> None:
    """Row 149: in a feed, an extension or XML content, also beside an unclosed entry."""
    whole = an_atom_entry(1, inside.replace("{entry}", an_atom_entry(9)))
    unclosed = an_atom_entry(2).removesuffix("</entry>")
    body = f'<feed xmlns="{ATOM_NS}">{whole}{unclosed}{an_atom_entry(3)}</feed>'
    document = repaired(body.encode(), "end-tags")

    assert [each.identity for each in document.entries] == [entry_id(f"urn:{n}") for n in (1, 2, 3)]
    assert slices(document)[0] == whole.encode()


@pytest.mark.fault("148")
@pytest.mark.parametrize(
    ("body", "entries"),
    [
        (
            "<RSS><Channel><ttl>&</ttl><Item><guid>1</guid><Item><guid>2</guid></Item></Channel></RSS>",
            2,
        ),
        ("<rss><channel><items><item><guid>1</guid></item><item><guid>2", 1),
        ("<channel><title>&nbsp;</title><item><guid>1</guid></item></channel>", 1),
        (f"Warning: x <Feed xmlns='{ATOM_NS}/'>{an_atom_entry(1)}</Feed>", 1),
        ("<html><body><RSS><channel><item><guid>1</guid></item></channel></RSS></body></html>", 1),
    ],
)
def test_names_that_are_spelt_otherwise_are_known_in_what_is_repaired_too(body: str, entries: int) -> None:
    """Row 148: repairs run first."""
    assert len(parse(body.encode(), URL).entries) == entries


def truncated(body: bytes) -> FeedDocument:
    document = parse(body, URL)
    assert DocumentTruncated(URL, breaks_off=True) in document.notes
    return document


@pytest.mark.parametrize(
    "rest",
    [
        "",
        " ",
        "<item>",
        "<item><guid>b</guid><descr",
        "<item><guid>b</guid></item",
        "<item><description><![CDATA[ <p> ",
        "<item><description><p>x<br>",
        "<item><a b='",
        "<",
        "</chan",
        "</channel><",
        "</channel></i",
        "</channel><item><guid>b",
        "</channel><channel>",
        "</channel></rss-feed",
        "<image><url>x</url>",
    ],
)
def test_of_a_document_that_breaks_off_the_whole_entries_stay(rest: str) -> None:
    """docs/faults.md row 49."""
    document = truncated(rss(ITEM).partition(b"</channel>")[0] + rest.encode())

    assert slices(document) == [ITEM.encode()]
    assert len(document.head.history) == len(document.head.children) == 0


@pytest.mark.fault("49b")
@pytest.mark.parametrize(
    ("written", "lacks"),
    [
        (f"{CHANNEL}</channel>", "</rss>"),
        (f"{CHANNEL}</channel>\n<!-- cached -->\n", "</rss>"),
        (f"{CHANNEL}</CHANNEL >", "</rss>"),
        (f"{CHANNEL}</channel></", "rss>"),
        (f"{CHANNEL}</channel></rs", "s>"),
        (f"{CHANNEL}</channel>\n</rss", ">"),
        (f"{CHANNEL}</channel></rss\n ", ">"),
        (f"{CHANNEL}</channel", "></rss>"),
        (atom("<entry><id>1</id></entry>").decode()[:-1], ">"),
        (f"{RDF}</rdf:RDF", ">"),
    ],
)
def test_a_document_that_lacks_nothing_but_the_end_of_its_last_tags_is_whole(
    written: str, lacks: str
) -> None:
    """docs/faults.md row 49b; RFC 5005, section 4.2: no entry can be missing once their parent's end tag has
    begun.
    """
    document = repaired(written.encode(), "end-tags")

    assert len(document.entries) == 1
    assert fromstring(document.text) is not None
    assert not parse((written + lacks).encode(), URL).entries[1:]


@pytest.mark.fault("49")
@pytest.mark.parametrize("rest", ["", "</rs", "</channel></channel>"])
def test_items_may_follow_others_that_stand_beside_the_channel(rest: str) -> None:
    """docs/faults.md row 49; RSS 0.90: after one item behind the channel, more may be missing."""
    assert len(truncated(f"{CHANNEL}</channel>{ITEM}{rest}".encode()).entries) > 0


@pytest.mark.fault("49")
@pytest.mark.parametrize("rest", ["</rdf:RD", "</", ""])
def test_items_may_follow_where_the_end_of_rdf_is_missing(rest: str) -> None:
    """docs/faults.md row 49; RSS 1.0, section 5.1: items stand beside the channel."""
    assert len(truncated((RDF + rest).encode()).entries) == 1


@pytest.mark.fault("49a")
@pytest.mark.parametrize(
    "junk",
    [
        "<script>x</script>",
        "<script>write('<item>')</script> x",
        "<STYLE>a<item></style>",
        "x",
        "</rss>",
        "</channel></rss>",
        "<html><body/></html>",
        "<![CDATA[<item>]]>",
        "<!-- <item> -- -->",
        "<!-- <item/>",
        "&nbsp;",
        "<",
        "<scr",
        "<items>",
        "<? x ?>",
    ],
)
def test_what_stands_behind_the_end_is_dropped(junk: str) -> None:
    """docs/faults.md row 49a: nothing is missing; a note names the cut."""
    body = rss(ITEM) + b"\n<!-- cached -->"

    assert repaired(body + junk.encode(), "after-end").text.rstrip() == body


@pytest.mark.fault("49")
@pytest.mark.parametrize(
    "rest",
    [
        ITEM,
        "<rss/>",
        "<x:feed>",
        "</rss><script/> <entry>",
        "<script>x</SCRIPT><item/>",
        "<rdf:RDF",
        "x<item",
        "<item><a",
    ],
)
def test_entries_behind_the_end_are_told(rest: str) -> None:
    """docs/faults.md row 49: a second root is unclear; its entries may be missing."""
    body = rss(ITEM)
    document = parse(body + rest.encode(), URL)

    assert document.text.rstrip() == body
    assert DocumentTruncated(URL, breaks_off=False) in document.notes


@given(st.integers(min_value=1, max_value=400))
@example(len("<title>x</title>"))
def test_wherever_a_document_breaks_off_it_holds_the_entries_before(length: int) -> None:
    """docs/faults.md row 49: neither half an entry, nor one too few."""
    entries = [f"<entry><id>{n}</id><title>&amp; {n}</title></entry>".encode() for n in range(5)]
    whole = atom("<title>x</title>", *(entry.decode() for entry in entries))
    start = whole.index(b"<title>x")
    cut = whole[: start + length]
    document = truncated(cut) if len(cut) < len(whole) - 1 else parse(whole, URL)

    assert slices(document) == [entry for entry in entries if entry in cut]


# Any input

PIECES = st.sampled_from(
    """<rss> <channel> </channel> </rss> <item> </item> <description> </description> <title> </title> <p> </p>
    <br> <br/> <a_href=x> </a> <a_b="&"> <x:y> </x:y> <x:z_xmlns:x="u"> </x:z> &nbsp; & &amp; x < > ]]>
    <![CDATA[ <!-- --> -- <?p ?> <?xml_?> " é <!DOCTYPE_a_[ _ \0""".replace("\n", " ").split()
).map(lambda piece: piece.replace("_", " "))


@given(st.lists(PIECES, max_size=30).map("".join))
@example("<item><description></p></channel>")
@example("<p><br></p><description><br></item>")
def test_what_comes_out_is_well_formed_or_refused(inside: str) -> None:
    """The repair pass outputs only readable XML, and raises no other error."""
    body = f"<rss><channel>{ITEM}{inside}</channel></rss>".encode()
    made = mend(body)
    assert made is not None
    fromstring(made.text)
    parse(body, URL)


SOUND = st.sampled_from(
    [
        "<item><guid>1</guid><title>A &amp; B &#160; &#xe9;</title></item>",
        "<item><description><p>x<br></br>y</p></description></item>",
        "<item><description><![CDATA[<p>&nbsp;<br>]]></description><!-- & --></item>",
        "<item ><guid isPermaLink = 'false' >x\r\n</guid\n></item >",
        "<item><atom:link href='a&amp;b'/><img src='x'><!-- c --></img></item>",
        "<item/>",
        "<item><a xmlns:b='urn:b' b:c=''/><?php x ?></item>",
    ]
)
BROKEN = st.sampled_from(
    [
        "<item><guid>&nbsp;</guid></item>",
        "<item><a>&</b></item>",
        "<item><description><p>x<br></description></item>",
        "<item><q:r/></item>",
        "<item></a></item>",
        "</a>",
        " x < y ",
        "<item><description><![CDATA[\0]]></description></item>",
    ]
)


@given(st.lists(st.tuples(SOUND, BROKEN | st.just("")), min_size=1, max_size=8))
def test_entries_that_were_well_formed_stay_byte_for_byte(entries: list[tuple[str, str]]) -> None:
    """R22: beside any defect."""
    body = rss("".join(sound + broken for sound, broken in entries))
    document = parse(body, URL)

    kept = slices(document)
    for sound, _ in entries:
        assert sound.encode() in kept
        kept.remove(sound.encode())


def calls(body: bytes) -> int:
    """Count of function calls in the repair pass."""
    with counted_calls() as calls_made:
        mend(body)
    return calls_made["call"] + calls_made["c_call"]


HOSTILE = [
    *("<", "<!", "<!--", "<![CDATA[", "<?", "<? ?", "<!DOCTYPE ", "<a", "<a b='", "<a b=c ", "<a b=c d=e>"),
    *("&", "&a", "]]>", "<x:y>", "<p>", "<item>", "<description>", "<description><p>", "<a>x</a>"),
    *("<description><br></description>", "</p>", "<p></q>", "<br>", "<p><br>x</p>", "<title>a<link>b"),
    *("<a xmlns:b='c'>", "<a><b></a></b>", "<a><b><c></a></b></c>", "<a><B></b><c></A>", "<a p{n}:x=''/>"),
    *("<p{n}:x/><title>t</title>", "<title><p{n}:x>&nbsp;<br></title>"),
]


def repeated(unit: str, count: int) -> bytes:
    """A unit repeated, with a running number in its placeholder."""
    inside = "".join(unit.replace("{n}", str(n)) for n in range(count))
    return f"<rss><channel><item>{inside}".encode()


@pytest.mark.fault("84")
@pytest.mark.parametrize("unit", HOSTILE)
def test_the_cost_grows_with_the_length(unit: str) -> None:
    """Row 84: linear for any text, by count of calls."""
    small, large = (repeated(unit, n) for n in (250, 2000))

    assert calls(large) <= 8.5 * calls(small) + 1000


@pytest.mark.fault("84")
@pytest.mark.parametrize("unit", HOSTILE)
def test_no_pattern_looks_at_the_same_text_over_and_over(unit: str) -> None:
    """Row 84: at most a second for a megabyte; a quadratic search would take minutes."""
    body = repeated(unit, 100_000 // len(unit))
    with cpu_limit(len(body) / 1e6):
        mend(body)


@pytest.mark.fault("84")
def test_a_document_that_is_denser_than_any_feed_is_given_up() -> None:
    """Row 84: pieces and defects have a limit for each length."""
    for unit in ("<a></a>", "<b>&</b>", "<a b=c/>12345678901"):
        assert mend(repeated(unit, 3_000)) is not None
        assert mend(repeated(unit, 40_000)) is None
    assert mend(repeated("<guid>a title of some words & more</guid>", 40_000)) is not None


def test_a_document_with_defects_without_end_is_given_up() -> None:
    """Memory is proportional to a plausible document."""
    assert mend(b"<rss>" + b"<" * (MAX_EDITS + 1) + b">") is None
    assert mend(b"<rss>" + b"&" * (MAX_REFERENCES + 1) + b"</rss>") is None
