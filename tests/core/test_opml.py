"""Subscription lists: only their URLs are found and changed in place."""

from __future__ import annotations

import html
import re
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls import counted_calls
from tests.cpu_time import cpu_limit
from wholefeed.core.opml import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_ELEMENTS,
    MAX_TAG_BYTES,
    OutlineEntry,
    compose_opml,
    read_opml,
)
from wholefeed.core.parse.limits import ParseError

SAMPLES = sorted((Path(__file__).parents[1] / "data" / "opml").glob("*.opml"))


def an_opml(body: str, declaration: str = '<?xml version="1.0" encoding="UTF-8"?>') -> str:
    return f'{declaration}\n<opml version="2.0"><body>\n{body}\n</body></opml>'


def urls(document: bytes) -> list[str]:
    return [each.url for each in read_opml(document).subscriptions]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_what_readers_export_is_read_and_comes_back_as_it_was(sample: Path) -> None:
    """Lists of newsboat, gPodder, FreshRSS, Miniflux, Thunderbird, NetNewsWire and Feedly need no repair,
    show every URL, and go out unchanged, byte for byte.
    """
    body = sample.read_bytes()
    document = read_opml(body)
    assert document.repairs == ()
    assert document.subscriptions
    assert document.with_urls([None] * len(document.subscriptions)) == body
    changed = document.with_urls(["http://p.test/&'\"<>"] * len(document.subscriptions))
    assert read_opml(changed).with_urls(urls(body)) == document.with_urls(urls(body))


def test_a_subscription_has_its_title() -> None:
    """B4: `title`, else `text`, cut to a line's length."""
    found = read_opml(
        b'<opml><outline text="A &amp; B" xmlUrl="u:1"/><outline text="a" title="T" xmlUrl="u:2"/>'
        b'<outline xmlUrl="u:3"/><outline text="' + b"x" * 5000 + b'" xmlUrl="u:4"/></opml>'
    )
    assert [each.title for each in found.subscriptions] == ["A & B", "T", "", "x" * 200]


def test_a_comment_another_element_and_another_attribute_are_none() -> None:
    """xmlUrl counts in any case, on outlines alone; `url` and comments do not."""
    (sample,) = (path for path in SAMPLES if path.stem == "odd")
    assert urls(sample.read_bytes()) == [
        'http://example.org/a?x=1&y="2"',
        "https://example.org/upper",
        "https://example.org/both",
        "urn:example:1",
        "https://user:secret@example.org/feed",
        "",
    ]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "iso-8859-1", "windows-1252", "koi8-r", "utf-16", "shift_jis", "gb2312", "us-ascii"]
)
def test_the_encoding_survives(encoding: str) -> None:
    """A list keeps its declared encoding; characters outside it become references."""
    text = an_opml(
        '<outline text="ü日Ж" xmlUrl="http://example.org/ü日Ж"/>',
        f'<?xml version="1.0" encoding="{encoding}"?>',
    )
    body = text.encode(encoding, "xmlcharrefreplace")
    document = read_opml(body)
    assert urls(body) == ["http://example.org/ü日Ж"]
    assert document.with_urls([None]) == body
    assert document.with_urls(["http://example.org/ü日Ж"]) == body
    moved = document.with_urls(["http://p.test/"])
    assert moved == text.replace("http://example.org/ü日Ж", "http://p.test/").encode(
        encoding, "xmlcharrefreplace"
    )
    assert read_opml(moved).with_urls(["http://example.org/ü日Ж"]) == body


@pytest.mark.parametrize(
    ("outline", "made", "repairs"),
    [
        ('text="A & B" xmlUrl="http://a.test/"', 'text="A &amp; B" xmlUrl="http://a.test/"', ("ampersands",)),
        ('xmlUrl="http://a.test/?a=1&b=2"', 'xmlUrl="http://a.test/?a=1&amp;b=2"', ("ampersands",)),
        ('text="a&nbsp;b" xmlUrl="http://a.test/"', 'text="a&#160;b" xmlUrl="http://a.test/"', ("entities",)),
        (
            'text="a\x0bb" xmlUrl="http://a.test/"',
            'text="ab" xmlUrl="http://a.test/"',
            ("control-characters",),
        ),
    ],
)
def test_what_many_exports_get_wrong_is_put_right(outline: str, made: str, repairs: tuple[str, ...]) -> None:
    """Bare ampersands, HTML's entities and control characters: the rewritten list is well-formed."""
    comment = "<!-- R&D --><![CDATA[R&D]]>"
    document = read_opml(an_opml(f"<outline {outline}/>{comment}").encode())
    assert document.repairs == repairs
    assert document.with_urls([None]) == an_opml(f"<outline {made}/>{comment}").encode()


OTHER = '<outline text="b" xmlUrl="http://b.test/"/>'


@pytest.mark.parametrize(
    ("outline", "made", "repairs"),
    [
        ('text="a < b" xmlUrl="http://a.test/"', 'text="a &lt; b" xmlUrl="http://a.test/"', ("less-than",)),
        (
            'description="<p>A &amp; B<br>\n</p>" xmlUrl="http://a.test/"',
            'description="&lt;p>A &amp; B&lt;br>\n&lt;/p>" xmlUrl="http://a.test/"',
            ("less-than",),
        ),
        (
            "text='<i>x</i> & y' xmlUrl='http://a.test/'",
            "text='&lt;i>x&lt;/i> &amp; y' xmlUrl='http://a.test/'",
            ("ampersands", "less-than"),
        ),
        (
            'text="he is "the best," and "old"" xmlUrl="http://a.test/"',
            'text="he is &quot;the best,&quot; and &quot;old&quot;" xmlUrl="http://a.test/"',
            ("attributes",),
        ),
        (
            "text='it's <b' title='x' xmlUrl='http://a.test/'",
            "text='it&apos;s &lt;b' title='x' xmlUrl='http://a.test/'",
            ("attributes", "less-than"),
        ),
        (
            'text="see <a href="http://x.test/?a&b" target="_b">it</a>" xmlUrl="http://a.test/"',
            'text="see &lt;a href=&quot;http://x.test/?a&amp;b&quot; target=&quot;_b&quot;>it&lt;/a>" xmlUrl="http://a.test/"',
            ("ampersands", "attributes", "less-than"),
        ),
        (
            'xmlUrl="http://a.test/" own:num="1" text="a "quoted" > word"',
            'xmlUrl="http://a.test/" own:num="1" text="a &quot;quoted&quot; > word"',
            ("attributes",),
        ),
    ],
)
@pytest.mark.parametrize("end", ["/>", " />", "></outline>", f">\n{OTHER}\n</outline>"])
def test_markup_and_quotes_in_a_value_are_put_right(
    outline: str, made: str, repairs: tuple[str, ...], end: str
) -> None:
    """docs/repair.md: a value ends before the next attribute or the tag's end. Markup inside is escaped, the
    rest stays byte for byte.
    """

    def listed(inside: str) -> bytes:
        return an_opml(
            f'{OTHER}\n<outline xmlns:own="urn:own" text="folder">\n'
            f"<outline {inside}{end}<!-- <&> --></outline>\n{OTHER}"
        ).encode()

    document = read_opml(listed(outline))
    assert document.repairs == repairs
    assert document.with_urls([None] * len(document.subscriptions)) == listed(made)
    others = 2 + (OTHER in end)
    assert sorted(each.url for each in document.subscriptions) == [
        "http://a.test/",
        *["http://b.test/"] * others,
    ]
    assert read_opml(listed(made)).repairs == ()


@pytest.mark.parametrize(
    ("outline", "told"),
    [
        ('text="a < b xmlUrl="http://a.test/"/>', "line 3"),
        ('text="a < b" xmlUrl="http://a.test/"', "line 3"),
        ('text="a < b" text="c" xmlUrl="http://a.test/"/>', "duplicate attribute"),
        ('text="a < b" xmlUrl="http://a.test/" text>', "line 3"),
        ('text="<"/><outline text=""/>" xmlUrl="http://a.test/"/>', r"outside of them \(line 3\)"),
        ('text="x" title="a" xmlUrl="http://evil.test/" b" xmlUrl="http://a.test/"/>', "line 3"),
    ],
)
def test_a_tag_that_can_be_read_in_two_ways_is_refused(outline: str, told: str) -> None:
    """No feed is lost or invented; the error names the place."""
    with pytest.raises(ParseError, match=told) as caught:
        read_opml(an_opml(f"<outline {outline}\n{OTHER}").encode())
    assert caught.value.slug == "malformed-xml"


LISTS = sorted((Path(__file__).parents[2].parent / "shared" / "corpus" / "opml").rglob("*.opml"))


@pytest.mark.skipif(not LISTS, reason="the corpus of real lists is absent")
def test_every_real_list_is_read_with_all_its_feeds() -> None:
    """awesome-rss-feeds has HTML and quotes in descriptions: each xmlUrl is found verbatim after
    any repair.
    """
    read = 0
    for path in LISTS:
        if path.name == "missingOpml.opml":
            continue
        body = path.read_bytes()
        document = read_opml(body)
        written = [
            html.unescape(url)
            for url in re.findall(r'\sxmlUrl\s*=\s*"([^"]*)"', body.decode("utf-8", "replace"))
        ]
        if "awesome-rss-feeds" in path.as_posix():
            assert [each.url for each in document.subscriptions] == written, path
            read += 1
    assert read > 15


@pytest.mark.fault("94")
@pytest.mark.parametrize(
    "unit",
    [
        *("<outline a='", '<outline a="', '<outline a="b" ', '<outline a="<', '<outline a="b" c="', '" c="'),
        *("'", '" xmlUrl="', '<outline a="x" y', "<b ", '"  ', '" /', '" />', '<outline a="<b" />\n'),
    ],
)
def test_the_cost_of_putting_tags_right_grows_with_the_length(unit: str) -> None:
    """docs/faults.md row 94: half a megabyte takes a second or two; a quadratic search would take hours."""
    with cpu_limit(1), suppress(ParseError):
        read_opml(f'<opml><outline a="{unit * (500_000 // len(unit))}"/></opml>'.encode())


def test_a_wrong_encoding_and_blanks_before_the_declaration_are_put_right() -> None:
    """A windows-1252 text labelled UTF-8 goes out in UTF-8."""
    text = an_opml('<outline text="für €" xmlUrl="http://a.test/"/>')
    document = read_opml(b"\r\n" + text.encode("windows-1252"))
    assert document.repairs == ("declaration", "encoding")
    assert document.with_urls([None]) == text.encode()


@pytest.mark.parametrize(
    ("body", "slug", "told"),
    [
        ("", "not-opml", "got nothing"),
        ("example.org\n", "not-opml", "a document of XML"),
        ("<!DOCTYPE html><html><body>", "not-opml", "HTML"),
        ("<rss version='2.0'></rss>", "not-opml", "a document of <rss> (line 1, column 1)"),
        ("<opml>\n<body>\n <outline></body></opml>", "malformed-xml", "mismatched tag (line 3, column 13)"),
        ("<opml><body>\n<outline text='a'", "malformed-xml", "line 2"),
        ("<opml><outline a='1' a='2'/></opml>", "malformed-xml", "duplicate attribute"),
        ("<opml><outline x:a='1'/></opml>", "malformed-xml", "unbound prefix"),
        ("<opml>" + "<outline>" * MAX_DEPTH, "xml-limit", f"at most {MAX_DEPTH} levels"),
        (" " * MAX_BYTES + "<opml/>", "xml-limit", f"at most {MAX_BYTES} bytes"),
    ],
)
def test_what_is_no_list_is_refused_with_the_place(body: str, slug: str, told: str) -> None:
    """The error names line and column."""
    with pytest.raises(ParseError, match=re.escape(told)) as caught:
        read_opml(body.encode())
    assert caught.value.slug == slug


@pytest.mark.parametrize(
    "subset",
    [
        '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">',
        '<!ENTITY x SYSTEM "file:///etc/passwd">',
        '<!ENTITY % x SYSTEM "http://a.test/x"> %x;',
        '<!ENTITY nbsp "more">',
    ],
)
@pytest.mark.fault("94")
def test_entities_are_refused(subset: str) -> None:
    """Neither bombs nor files: no list needs entities of its own."""
    with pytest.raises(ParseError) as caught:
        read_opml(f'<!DOCTYPE opml [{subset}]><opml><outline xmlUrl="http://a.test/"/></opml>'.encode())
    assert caught.value.slug == "dtd-forbidden"


@pytest.mark.fault("150")
def test_a_list_may_declare_entities_of_html() -> None:
    """A document type with nothing else is left out, with a note."""
    subset = '<!ELEMENT opml ANY><!ENTITY eacute "&#233;">'
    text = an_opml('<outline text="caf&eacute;" xmlUrl="http://a.test/"/>')
    document = read_opml(text.replace("<opml", f"<!DOCTYPE opml [{subset}]><opml", 1).encode())
    assert document.repairs == ("doctype", "entities")
    assert document.with_urls([None]) == text.replace("&eacute;", "&#233;").encode()


@pytest.mark.fault("46", "47")
def test_a_list_that_no_label_fits_is_refused() -> None:
    """Its characters are unknown; valid UTF-8 is read under any label."""
    declared = (
        "<?xml version='1.0' encoding='utf-7'?><opml><outline text='é' xmlUrl='http://a.test/'/></opml>"
    )
    assert urls(declared.encode()) == ["http://a.test/"]
    with pytest.raises(ParseError, match="utf-7") as caught:
        read_opml(declared.encode("latin-1"))
    assert caught.value.slug == "unsupported-encoding"


@pytest.mark.parametrize(
    "body",
    [
        "<opml>" + "<outline/>" * MAX_ELEMENTS,
        "<opml>" + "<outline a='&'/>\n" * MAX_ELEMENTS * 2,
        "<opml><outline a='<" + "\" '" * MAX_ELEMENTS * 4 + "'/></opml>",
    ],
    ids=["elements", "repairs", "quotes"],
)
@pytest.mark.fault("94")
def test_what_costs_too_much_is_refused(body: str) -> None:
    """More elements than anybody's subscriptions are not read, well-formed or not."""
    with pytest.raises(ParseError) as caught:
        read_opml(body.encode())
    assert caught.value.slug == "xml-limit"


@pytest.mark.parametrize("unit", ["<", "<a", "<a x=1>", "</", "<!", "<outline "])
@pytest.mark.fault("147")
def test_what_no_list_can_have_ends_the_reading(unit: str) -> None:
    """After irreparable markup nothing is read, for any length."""
    document = f"<opml><body>&nbsp;{unit * 100_000}</body></opml>".encode()
    with pytest.raises(ParseError) as caught, counted_calls() as calls:
        read_opml(document)
    assert caught.value.slug == "malformed-xml"
    assert calls["call"] < 1000, "it is not gone through piece by piece"


def test_a_tag_may_have_so_much_and_no_more() -> None:
    """A picture may be in an attribute; more would block the server."""
    tag = "<outline icon='{}' xmlUrl='http://a.test/'/>"
    assert urls(an_opml(tag.format("x" * (MAX_TAG_BYTES - 100))).encode()) == ["http://a.test/"]
    with pytest.raises(ParseError, match="start tags of at most") as caught:
        read_opml(an_opml(tag.format("x" * 2 * MAX_TAG_BYTES)).encode())
    assert caught.value.slug == "xml-limit"


def test_bytes_that_are_not_of_their_encoding_are_refused() -> None:
    """Bytes that could not go out unchanged cause an error."""
    body = an_opml(
        '<outline text="X" xmlUrl="http://a.test/"/>', '<?xml version="1.0" encoding="shift_jis"?>'
    )
    with pytest.raises(ParseError, match="save the list as UTF-8") as caught:
        read_opml(body.encode().replace(b'"X"', b'"\x81"'))
    assert caught.value.slug == "unsupported-encoding"


CHARACTERS = st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")


@given(st.lists(st.text(CHARACTERS, max_size=30), max_size=5), st.text(CHARACTERS, max_size=20), st.data())
def test_any_url_can_stand_there(values: list[str], title: str, data: st.DataObject) -> None:
    """It is read back unchanged, and the rest of the list stays."""
    from wholefeed.core.text.markup import quoteattr  # noqa: PLC0415

    outlines = "".join(f"<outline text={quoteattr(title)} xmlUrl='http://a.test/'/>\n" for _ in values)
    document = read_opml(an_opml(outlines).encode())
    changed = document.with_urls(values)
    assert urls(changed) == values
    kept = [None if data.draw(st.booleans()) else "http://a.test/" for _ in values]
    back = read_opml(read_opml(changed).with_urls(["http://a.test/"] * len(values))).with_urls(kept)
    assert back == an_opml(outlines).encode()


@given(st.binary(max_size=200))
def test_anything_else_ends_in_a_parse_error(noise: bytes) -> None:
    """Reading raises nothing but ParseError."""
    for body in (noise, b"<opml>" + noise + b"</opml>", an_opml('<outline xmlUrl="a"/>').encode() + noise):
        try:
            document = read_opml(body)
        except ParseError:
            continue
        assert read_opml(document.with_urls([None] * len(document.subscriptions))).repairs == ()


def test_titles_urls_and_sites_come_through() -> None:
    """OPML 2.0: `text` is there, `type` is rss, `xmlUrl` and `htmlUrl` are unchanged; without a site there is
    no htmlUrl.
    """
    feeds = [
        OutlineEntry('A & B\'s "<news>"\x0b', "http://p.test/feed?url=a&token=b", "https://example.org/"),
        OutlineEntry("Ü", "http://p.test/feed?url=b", ""),
    ]
    made = compose_opml("mine & yours", feeds)
    root = ET.fromstring(made)
    assert (root.tag, root.attrib) == ("opml", {"version": "2.0"})
    assert root.findtext("head/title") == "mine & yours"
    first, second = root.findall("body/outline")
    assert first.attrib == {
        "type": "rss",
        "text": 'A & B\'s "<news>"',
        "title": 'A & B\'s "<news>"',
        "xmlUrl": "http://p.test/feed?url=a&token=b",
        "htmlUrl": "https://example.org/",
    }
    assert "htmlUrl" not in second.attrib
    assert [each.url for each in read_opml(made).subscriptions] == [feed.url for feed in feeds]
    assert read_opml(compose_opml("x", [])).subscriptions == ()
