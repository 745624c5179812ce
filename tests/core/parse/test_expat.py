"""docs/faults.md part D: forbidden constructs of XML documents, and the cost of a refusal."""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Iterable

import pytest

from tests.core.parse.makers import URL, atom, rss, slices
from tests.cpu_time import cpu_limit
from tests.patching import set_constant
from wholefeed.core.model import MEMORY_URL, RDF_NS, RSS_10_NS
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.expat import Guard
from wholefeed.core.parse.families import MAX_SCOPE, MAX_SCOPE_PREFIXES
from wholefeed.core.parse.limits import (
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_HEAD_BYTES,
    MAX_LIKE_ENTRIES,
    MAX_NAMESPACE_CHARACTERS,
    UNLIMITED,
    ParseError,
)

FLAT_BYTES = 64 << 20
SOON_SECONDS = 30.0
"""Far above the real time, far below the time without guards."""


def refused(body: bytes, slug: str) -> str:
    """Parse a document whose refusal must be quick and small; return the message."""
    tracemalloc.start()
    started = time.perf_counter()
    try:
        with pytest.raises(ParseError) as caught:
            parse(body, URL)
        assert time.perf_counter() - started < SOON_SECONDS
        assert tracemalloc.get_traced_memory()[1] < FLAT_BYTES
    finally:
        tracemalloc.stop()
    assert caught.value.slug == slug
    return caught.value.message


def not_well_formed(body: bytes) -> str:
    """Parse a document that needs the repair pass first; return the message."""
    with pytest.raises(ParseError) as caught:
        Guard().read(body)
    assert caught.value.slug == "malformed-xml"
    return caught.value.message


def an_entry(content: str) -> str:
    return f"<entry><id>1</id><content>{content}</content></entry>"


LAUGHS = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize(
    "doctype",
    [
        LAUGHS,
        '<!DOCTYPE l [<!ENTITY % p "x"> %p;]>',
        '<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE l [<!ATTLIST feed a CDATA "x"> %p;]>',
        "<!DOCTYPE feed [ ",
        '<!DOCTYPE l SYSTEM "http://127.0.0.1/x.dtd" [<!ENTITY x "y">]>',
    ],
)
def test_a_doctype_that_declares_entities_is_forbidden(doctype: str) -> None:
    """docs/faults.md rows 40 and 41; docs/design.md#parsing."""
    refused(atom(an_entry("x"), prolog=doctype), "dtd-forbidden")


def test_a_doctype_without_an_internal_subset_is_accepted() -> None:
    """docs/faults.md row 42: RSS 0.91 has one; nobody fetches it."""
    doctype = (
        '<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" '
        '"http://my.netscape.com/publish/formats/rss-0.91.dtd?a&b">'
    )
    item = "<item><title>a &amp; b &#38; <![CDATA[&nbsp;]]><!-- &nbsp; --></title></item>"

    assert slices(parse(rss(item, prolog=doctype), URL)) == [item.encode()]


@pytest.mark.parametrize("inside", ["a&nbsp;b", '<a href="a&eacute;"/>'])
def test_an_undeclared_entity_under_an_external_doctype_is_not_passed_over(inside: str) -> None:
    """docs/faults.md row 59: expat skips it silently, and the output has no DOCTYPE."""
    body = rss(f"<item>{inside}</item>", prolog='<!DOCTYPE rss SYSTEM "http://example.org/rss.dtd">\n')

    assert "line 2" in not_well_formed(body)


@pytest.mark.parametrize("version", ["2.0", "1.x", "1.", "11"])
def test_what_is_no_xml_1_is_not_supported(version: str) -> None:
    """docs/faults.md row 47; XML 1.0, production 26: expat accepts it."""
    message = refused(atom(prolog=f'<?xml version="{version}"?>'), "unsupported-format")

    assert message.startswith(f"expected XML 1.0, got XML {version}")


def test_a_depth_bomb_is_stopped_at_the_limit() -> None:
    """docs/faults.md row 43; docs/design.md#parsing."""
    refused(atom(an_entry("<a>" * 1_000_000 + "</a>" * 1_000_000)), "xml-limit")
    refused(atom("<a>" * 1_000_000), "xml-limit")


def test_the_depth_limit_is_exact_and_can_be_set() -> None:
    """Row 43: limits.xml_depth levels are read; one more is `xml-limit`."""

    def nested(levels: int) -> bytes:
        return atom(an_entry("<a>" * (levels - 3) + "</a>" * (levels - 3)))

    assert parse(nested(MAX_DEPTH), URL).entries
    refused(nested(MAX_DEPTH + 1), "xml-limit")
    assert parse(nested(20), URL, max_depth=20).entries
    with pytest.raises(ParseError, match="at most 19 levels"):
        parse(nested(20), URL, max_depth=19)


def test_too_many_attributes_are_refused_on_any_element() -> None:
    """docs/faults.md row 43."""

    def many(count: int) -> str:
        return "".join(f' a{n}=""' for n in range(count))

    assert parse(atom(an_entry(f"<b{many(MAX_ATTRIBUTES)}/>")), URL).entries
    refused(atom(an_entry(f"<b{many(MAX_ATTRIBUTES + 1)}/>")), "xml-limit")
    refused(atom(attributes=many(300_000)), "xml-limit")
    declared = "".join(f' xmlns:p{n}="u:{n}"' for n in range(100_000))
    refused(atom(an_entry(f"<b{declared}/>")), "xml-limit")
    refused(atom(attributes=declared), "xml-limit")


def test_a_long_namespace_uri_is_refused_wherever_it_is_declared() -> None:
    """docs/faults.md row 43; docs/design.md#parsing: 20,000 names with it took 3.8 GiB."""
    uri = "u:" + "x" * 100_000
    names = "".join(f"<p:e{n}/>" for n in range(20_000))

    refused(atom(an_entry(f'<b xmlns:p="{uri}">{names}</b>')), "xml-limit")
    assert parse(atom(an_entry(f'<b xmlns:p="{uri[:MAX_NAMESPACE_CHARACTERS]}"/>')), URL).entries
    refused(atom(an_entry(f'<b xmlns:p="{uri[: MAX_NAMESPACE_CHARACTERS + 1]}"/>')), "xml-limit")


def in_a_long_namespace(names: Iterable[str]) -> bytes:
    uri = "u:" + "x" * (MAX_NAMESPACE_CHARACTERS - 2)
    return atom(an_entry(f'<b xmlns:p="{uri}">{"".join(names)}</b>'))


@pytest.mark.fault("92")
def test_many_names_in_a_long_namespace_do_not_fill_memory() -> None:
    """Row 92; docs/design.md#parsing: expanded names are not stored, and have a limit."""
    few, many = (in_a_long_namespace(f"<p:e{n}/>" for n in range(count)) for count in (7_000, 100_000))
    attributes = "".join(f" p:a{n}=''" for n in range(250))
    tracemalloc.start()
    try:
        assert parse(few, URL).entries
        assert "namespaces included" in refused(many, "xml-limit")
        assert "namespaces included" in refused(in_a_long_namespace([f"<q{attributes}/>"] * 100), "xml-limit")
        assert tracemalloc.get_traced_memory()[1] < FLAT_BYTES
    finally:
        tracemalloc.stop()


def test_what_every_entry_would_repeat_is_limited() -> None:
    """Each entry repeats the namespace declarations around it, so they multiply."""
    many = "".join(f' xmlns:p{n}="u:{"x" * 1000}"' for n in range(MAX_SCOPE // 1000 + 1))

    refused(atom(attributes=many), "xml-limit")
    many = "".join(f' xmlns:p{n}="u"' for n in range(MAX_SCOPE_PREFIXES))
    refused(atom(attributes=many), "xml-limit")


def test_the_number_of_elements_is_limited_inside_of_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 43: otherwise a huge entry could fill memory."""
    set_constant(monkeypatch, "MAX_ELEMENTS", 10)

    assert parse(atom(an_entry("<a/>" * 7)), URL).entries
    assert "10 elements" in refused(atom(an_entry("<a/>" * 8)), "xml-limit")


def test_the_numbers_of_entries_and_of_head_children_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 43: a document with one entry or head element too many is refused."""
    set_constant(monkeypatch, "MAX_ENTRIES", 3)
    set_constant(monkeypatch, "MAX_HEAD_CHILDREN", 3)

    assert len(parse(atom("<x/>" * 3 + an_entry("") * 3), URL).entries) == 3
    assert "3 entries" in refused(atom(an_entry("") * 4), "xml-limit")
    assert "beside the entries" in refused(atom("<x/>" * 4), "xml-limit")


@pytest.mark.parametrize("is_atom", [True, False])
def test_what_goes_out_with_every_answer_is_limited(is_atom: bool) -> None:
    """All elements beside the entries together; entries have no such limit."""
    make, entry = (
        (atom, an_entry("x" * MAX_HEAD_BYTES)) if is_atom else (rss, f"<item>{'x' * MAX_HEAD_BYTES}</item>")
    )
    half = "<x>" + "y" * (MAX_HEAD_BYTES // 2 - 7) + "</x>"

    assert parse(make(half, entry, half), URL).entries
    assert "bytes of elements beside the entries" in refused(make(half, entry, half, "<x/>"), "xml-limit")


def gaining(kind: str, entries: int) -> bytes:
    """Different entries that would each gain about 2 KB, in one of several ways."""
    dated = "<updated>2003-12-13T18:30:02Z</updated>"

    def numbered(more: str = "") -> str:
        return "".join(f"<entry><id>{n}</id>{dated}{more}</entry>" for n in range(entries))

    match kind:
        case "base":
            return atom(numbered(), attributes=f' xml:base="/{"x" * 2000}"')
        case "prefixes":
            attributes = "".join(f' xmlns:p{n}="u:{"x" * 50}"' for n in range(30))
            used = "".join(f"p{n}:" for n in range(30))
            return atom(numbered(f"<content>{used}</content>"), attributes=attributes)
        case "authors":
            return atom("<author><name>a</name></author>" * 50, numbered("<rights/>"))
        case "rights":
            return atom(f"<rights>{'x' * 2000}</rights>", numbered("<author/>"))
        case "items":
            items = "".join(f"<item><link>{n}</link></item>" for n in range(entries))
            return rss(items, channel=f' xml:base="/{"x" * 2000}"')
        case _:
            return atom("<q z=''/>" * entries, attributes=f' xml:base="/{"x" * 2000}"')


@pytest.mark.parametrize("kind", ["base", "prefixes", "authors", "rights", "items", "head"])
def test_a_small_document_cannot_become_a_large_one(kind: str) -> None:
    """Repetition in 20,000 entries turned 70 KB on the wire into 160 MB."""
    parse(gaining(kind, 500), URL)
    assert "what the entries inherit" in refused(gaining(kind, 5000), "xml-limit")


def test_what_is_in_scope_but_not_needed_counts_for_nothing() -> None:
    """Only a high estimate makes the parser build and measure everything."""
    attributes = "".join(f' xmlns:p{n}="u:{"x" * 50}"' for n in range(100))
    items = [f"<item><guid>{n}</guid><link>http://example.org/</link></item>" for n in range(20_000)]

    assert len(parse(rss(*items, attributes=attributes), URL).entries) == 20_000


def test_no_limit_keeps_a_stored_document_from_being_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was within the limits when fetched; later gains do not count."""
    attributes = "".join(f' a{n}=""' for n in range(MAX_ATTRIBUTES + 1))
    declared = "".join(f' xmlns:p{n}="u{n}"' for n in range(MAX_ATTRIBUTES + 1))
    bodies = [
        atom(an_entry(f"<b{attributes}/>")),
        atom(an_entry(f"<b{declared}/>")),
        atom(an_entry(""), attributes=declared),
        atom(an_entry("<a>" * MAX_DEPTH + "</a>" * MAX_DEPTH)),
        atom(an_entry(f"<b a='{'x' * (1 << 23)}'/>")),
        atom(an_entry(""), f"<q>{'x' * MAX_HEAD_BYTES}</q>"),
        gaining("base", 5000),
    ]
    for body in bodies:
        refused(body, "xml-limit")
        assert parse(body, URL, max_depth=sys.maxsize).entries
    for name in ("MAX_ENTRIES", "MAX_ELEMENTS", "MAX_HEAD_CHILDREN"):
        set_constant(monkeypatch, name, 1)
    assert len(parse(atom(an_entry("<a/>") * 4, "<x/>" * 4), URL, max_depth=UNLIMITED).entries) == 4


@pytest.mark.parametrize("quoted", ['<b a="{}"/>', "<b{}/>", "<b {}='1'/>", "<b xmlns:{}='u'/>"])
def test_a_name_or_attribute_of_fifty_megabytes_is_refused(quoted: str) -> None:
    """docs/faults.md row 44, at the size of the largest body."""
    refused(atom(an_entry(quoted.format("x" * (30 << 20)))), "xml-limit")
    refused(atom(an_entry(quoted.format("x" * ((1 << 20) + 1)))), "xml-limit")
    assert parse(atom(an_entry(quoted.format("x" * (1 << 19)))), URL).entries


@pytest.mark.parametrize("text", ["{}", "<!--{}-->", "<![CDATA[{}]]>", "<![CDATA[<b {}>]]>"])
@pytest.mark.sample("{}", "<!--{}-->")
def test_text_may_be_as_long_as_the_body(text: str) -> None:
    """docs/faults.md row 44; docs/design.md#parsing: in linear, not quadratic, time."""
    started = time.perf_counter()

    (entry,) = slices(parse(atom(an_entry(text.format("x" * (30 << 20)))), URL))

    assert len(entry) > 30 << 20
    assert time.perf_counter() - started < SOON_SECONDS


@pytest.mark.parametrize(
    "body",
    [
        atom(an_entry("&nbsp;")),
        atom(an_entry("a & b")),
        atom(an_entry("<x:y/>")),
        atom(an_entry("\x01")),
        atom(an_entry("<p>")),
        atom(an_entry("x"))[:-5],
        atom(an_entry("x")) + b"junk",
        b"\n" + atom(prolog='<?xml version="1.0"?>'),
        atom() + atom(),
        b"<",
        b"<?xml version='1.0'?>",
        b"<!---->",
    ],
)
def test_what_is_not_well_formed_is_refused_with_its_place(body: bytes) -> None:
    """docs/faults.md rows 45 and 49, without repair."""
    assert "line " in not_well_formed(body)
    assert "mismatched tag (line 2, column 3)" in not_well_formed(b"<rss>\n</xyz>")


# Documents of very many equal entries

MANY = 249_000


def json_feed(*items: str) -> bytes:
    return f'{{"version": "https://jsonfeed.org/version/1.1", "items": [{",".join(items)}]}}'.encode()


@pytest.mark.fault("89")
@pytest.mark.parametrize(
    "body",
    [
        json_feed(*["{}"] * MANY),
        atom("<entry/>" * MANY),
        rss("<item/>" * MANY),
        rss("<item><guid>1</guid></item>" * 40_000),
    ],
    ids=["json", "atom", "rss", "rss with an id"],
)
@pytest.mark.sample("rss", "atom")
def test_entries_that_are_all_the_same_collapse(body: bytes) -> None:
    """Row 89: only the first many stay; reading takes at most two seconds."""
    with cpu_limit(2):
        document = parse(body, URL)
    assert len(document.entries) == MAX_LIKE_ENTRIES
    assert len(parse(body, URL, max_depth=UNLIMITED).entries) == MAX_LIKE_ENTRIES


@pytest.mark.fault("89")
def test_what_differs_is_kept() -> None:
    """Row 89; R9, R10: other identities, and other dates of one identity."""
    number = MAX_LIKE_ENTRIES + 10
    same = "<entry><id>1</id><updated>2026-01-01T00:00:00Z</updated></entry>" * number
    dated = "<entry><id>1</id><updated>2026-01-02T00:00:00Z</updated></entry>"
    about = "".join(f"<item rdf:about='urn:{n}'/>" for n in range(number))
    rdf = f"<rdf:RDF xmlns='{RSS_10_NS}' xmlns:rdf='{RDF_NS}'><channel/>{about}</rdf:RDF>"

    assert len(parse(atom(same, dated, same), URL).entries) == MAX_LIKE_ENTRIES + 1
    assert len(parse(rdf.encode(), URL).entries) == number
    assert len(parse(json_feed(*(f'{{"id":{n}}}' for n in range(number))), URL).entries) == number


@pytest.mark.fault("89")
def test_remembered_copies_do_not_collapse() -> None:
    """Row 89; R8: all remembered copies stay."""
    number = MAX_LIKE_ENTRIES + 10
    for body in (atom("<entry/>" * number), json_feed(*["{}"] * number)):
        assert len(parse(body, MEMORY_URL + "1", max_depth=UNLIMITED).entries) == number
