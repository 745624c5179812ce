"""Entries read by one match equal those of expat's reading; limits hold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls import counted_calls
from tests.core.parse.makers import URL, atom, rss
from wholefeed.core.model import WELL_KNOWN_PREFIXES, Family, FeedDocument
from wholefeed.core.notes import DocumentRepaired
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.expat import Guard
from wholefeed.core.parse.families import Opening
from wholefeed.core.parse.identities import FieldsNeededError, check_distinct
from wholefeed.core.parse.limits import (
    FREE_NAME_CHARACTERS,
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_NAMESPACE_CHARACTERS,
    ParseError,
)
from wholefeed.core.verbatim.addresses import with_absolute_urls

CONTENT_NS = WELL_KNOWN_PREFIXES["content"]
ID = "<id>urn:1</id>"
AT = "<updated>2026-01-01T00:00:00Z</updated>"
PLAIN_ENTRY = (
    f'<entry>{ID}{AT}<title>t</title><link href="/1"/><content type="html">&lt;p></content></entry>\n'
)
PLAIN_ITEM = (
    '<item><guid isPermaLink="false">1</guid><pubDate>Mon, 05 Jan 2026 12:00:00 +0000</pubDate>'
    "<description><![CDATA[<p>]]]></description></item>\n"
)


def carefully(body: bytes) -> FeedDocument:
    """Read a document element by element, with its names unchanged."""
    for is_full in (False, True):
        guard = Guard()
        opening = Opening(guard, URL, is_full=is_full, is_respelt=True)
        with suppress(FieldsNeededError):
            guard.read(body)
            assert opening.family is not None
            if not is_full:
                check_distinct(URL, opening.family.entries)
            return opening.family.document(body)
    raise AssertionError


def outcome(body: bytes) -> object:
    try:
        document = parse(body, URL)
    except ParseError as error:
        return error.slug
    return document.head, document.entries, document.further_scopes


CHILDREN = st.sampled_from(
    [
        *(ID, AT, "<id>urn:2</id>", "<id> urn:3\t</id>", "<id>a&amp;b</id>", "<id>a\r\nb</id>", "<id/>"),
        *(
            "<id></id >",
            '<id xml:lang="en">urn:4</id>',
            "<id><!-- c -->urn:5</id>",
            '<id xmlns="u:v">no</id>',
        ),
        *("<a:id>urn:6</a:id>", "<updated>then</updated>", "<updated>2025-12-31T00:00:00+01:00</updated>"),
        *("<updated>2026-01-01T00:00:00Ĺ</updated>", "<modified>2024-01-01T00:00:00Z</modified>"),
        *("<author><name>n</name></author>", "<author/>", "<authority>x</authority>", "<author >x</author >"),
        *('<author xmlns="u:v"/>', "<rights>r</rights>", "<rightsize/>", "<source><rights/></source>"),
        *("<source><id>urn:7</id><author/></source>", "<o:author>x</o:author>", "<o:id>x</o:id>"),
        *('<title a=">">t</title>', "<title a='>'/>", "<title>a<b/>c</title>", "<title><title/></title>"),
        *('<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>x</p></div></content>',),
        *(
            "<content><![CDATA[</content></entry><entry>]]></content>",
            "<content><![CDATA[]]>]]&gt;</content>",
        ),
        *("<!-- c -->", "<?p i?>", " ", "text", "<![CDATA[c]]>", "<entry/>", "<entry><id>in</id></entry>"),
        *("<guid>1</guid>", "<guid><![CDATA[2]]></guid>", "<guid><![CDATA[ 2 ]]></guid>", "<guid/>"),
        *("<guid>3<!-- --></guid>", '<guid xmlns="u:v">4</guid>', "<o:guid>5</o:guid>", "<guids>6</guids>"),
        *(
            "<pubDate>Mon, 05 Jan 2026 12:00:00 +0000</pubDate>",
            "<pubDate>no</pubDate>",
            "<pubDate/>",
            "<description><![CDATA[<p>]]></description >",
            "<comments><b/></comments>",
        ),
        *("<dc:date>2026-01-02</dc:date>", "<a:updated>2026-01-03T00:00:00Z</a:updated>", "<item/>"),
        *("<a:published>2020-01-03T00:00:00Z</a:published>", "<link>http://e.org/1</link>", "<enclosure/>"),
        *(
            '<link href="http://e.org/1"/>',
            "<link rel='self' href = 'https://e.org/1' />",
            '<link href="/1"/>',
        ),
        *(
            '<link type="a" url="/1"/>',
            '<content src="HTTP:/1"/>',
            '<content src="x"/>',
            "<content>t</content >",
        ),
        *("<content> </content>", "<content/>", "<content:encoded>x</content:encoded>", "<content:encoded/>"),
        *("<content:encoded> <![CDATA[ ]]> </content:encoded>", "<content:encoded><p/></content:encoded >"),
        *("<content:encoded a='>'><![CDATA[x]]></content:encoded>", "<o:encoded>x</o:encoded>", "<encoded/>"),
        *('<content type="xhtml"> </content>', "<content a='>'><b/></content>", "<o:content>x</o:content>"),
        *('<summary>a<![CDATA[<link href="/1"/>]]></summary>', "<category term='/1'/>", "<icon>/1</icon>"),
        *('<o:link href="/1"/>', '<title xmlns="http://search.yahoo.com/mrss/" url="/1"/>', "<published/>"),
    ]
)
BETWEEN = st.sampled_from(
    [
        *("", "\n", " ", "<!-- <entry> <item> -->", "<![CDATA[<entry><item>]]>", "<?p <item> ?>", "<title/>"),
        *('<link rel="next" href="/2"/>', "<image><item/></image>", "text", "<items/>", "<entryish/>"),
    ]
)
TAGS = st.sampled_from(["", "", "", ' xml:lang="fr"', ' xmlns="u:v"', ' xmlns:o="u:v"', ' a=">"', "\n"])
WRITTEN = st.lists(st.tuples(BETWEEN, TAGS, st.lists(CHILDREN, max_size=7)), max_size=5)


DECLARED = st.sampled_from(
    [
        ' xmlns:a="http://www.w3.org/2005/Atom" xmlns:o="u:o" xmlns:dc="http://purl.org/dc/elements/1.1/"',
        ' xmlns:a="u:a" xmlns:o="http://www.w3.org/2005/Atom" xmlns:dc="u:dc"',
        ' xmlns:a="http://purl.org/atom/ns#" xmlns:o="http://purl.org/dc/terms/" xmlns:dc="u:dc"',
        f' xmlns:a="u:a" xmlns:o="{CONTENT_NS}" xmlns:dc="u:dc"',
    ]
).flatmap(
    lambda written: st.sampled_from([f'{written} xmlns:content="{uri}"' for uri in (CONTENT_NS, "u:c")])
)


@given(WRITTEN, st.booleans(), DECLARED)
def test_plain_entries_read_as_they_do_with_a_look_at_each_element(
    written: list[tuple[str, str, list[str]]], is_atom: bool, declared: str
) -> None:
    """For any content in, beside and between entries."""
    name, first = ("entry", PLAIN_ENTRY) if is_atom else ("item", PLAIN_ITEM)
    inside = [f"{gap}<{name}{tag}>{''.join(children)}</{name}>" for gap, tag, children in written]
    body = (atom if is_atom else rss)(first, *inside, attributes=declared)
    try:
        found = parse(body, URL)
    except ParseError:
        return
    expected = carefully(found.text)
    assert found.head == expected.head
    assert [each._replace(is_absolute=False) for each in found.entries] == list(expected.entries)
    assert found.ambiguous == expected.ambiguous
    for entry in found.entries:
        slice_ = found.text[entry.start : entry.end]
        assert not entry.is_absolute or with_absolute_urls(slice_, found.head.scope, Family.ATOM) == slice_


def test_most_links_and_content_are_seen_to_be_absolute() -> None:
    """R22: then the search for relative URLs is skipped, except in an author's uri and foreign attributes."""
    link = '<link rel="alternate" href="http://e.org/1"/>'
    content = "<content type='html'>&lt;img src='/a.png'></content>"
    wholly = f"<entry>{ID}{AT}<title>t</title>{link}{content}</entry>"
    author = "<entry><id>urn:2</id>" + AT + link + "<author><uri>/a</uri></author></entry>"
    renamed = f'<entry><id>urn:4</id>{AT}<title xmlns="http://search.yahoo.com/mrss/" url="/1"/></entry>'
    document = parse(atom(wholly, author, PLAIN_ENTRY.replace("urn:1", "urn:3"), renamed), URL)
    assert [entry.is_absolute for entry in document.entries] == [True, False, False, False]


def test_an_entry_that_is_not_plain_in_the_end_is_given_up_at_once() -> None:
    """Trying each child in two ways would take longer than the age of the universe."""
    children = ("<title>t</title>" + "<content><b/></content>") * 300
    (entry,) = parse(atom(f"<entry>{ID}{AT}{children}<!-- not plain --></entry>"), URL).entries
    assert not entry.is_absolute


@pytest.mark.parametrize(("make", "entry"), [(atom, PLAIN_ENTRY), (rss, PLAIN_ITEM)])
def test_a_plain_entry_takes_no_call_for_each_of_its_elements(make: Callable[..., bytes], entry: str) -> None:
    """Most documents consist of them, and calls take five times as long."""
    body = make(*[entry.replace("1<", f"{number}<", 1) for number in range(100, 200)])
    with counted_calls() as calls:
        document = parse(body, URL)
    assert len(document.entries) == 100
    assert calls["call"] < 1200, "a dozen for an entry"


@pytest.mark.parametrize(
    "inside",
    [
        "<b>" * MAX_DEPTH + "</b>" * MAX_DEPTH,
        "<b" + "".join(f' a{number}="1"' for number in range(MAX_ATTRIBUTES + 1)) + "/>",
        f'<b xmlns="{"u" * (MAX_NAMESPACE_CHARACTERS + 1)}"/>',
        f'<b xmlns="{"u" * MAX_NAMESPACE_CHARACTERS}">{"<b/>" * (FREE_NAME_CHARACTERS // 900)}</b>',
    ],
    ids=["depth", "attributes", "namespace", "names"],
)
def test_no_limit_is_passed_by_in_what_nobody_looks_at(inside: str) -> None:
    """docs/faults.md part D and row 92: in the content of a plain entry, alone or after many."""
    for before in ("", PLAIN_ENTRY * 20):
        entries = f'{before}<entry>{ID}{AT}<content type="xhtml">{inside}</content></entry>'
        assert outcome(atom(entries)) == "xml-limit"


def test_names_are_counted_in_what_is_many_plain_entries_together() -> None:
    """docs/faults.md row 92: each child has few elements, but together their names are too long."""
    names = f'<content><b xmlns="{"u" * MAX_NAMESPACE_CHARACTERS}">{"<b/>" * 150}</b></content>'
    entries = [f"<entry><id>{number}</id>{AT}{names}</entry>" for number in range(100)]
    assert outcome(atom(*entries)) == "xml-limit"


def test_what_only_looks_like_plain_entries_is_not_well_formed_all_the_same() -> None:
    """expat reads the matched text too, and the usual repair follows."""
    for inside in ("<title>&nbsp;</title>", "<p:x/>", "<title>\x0c</title>", '<link a="1" a="2"/>'):
        (note,) = parse(atom(PLAIN_ENTRY, f"<entry><id>2</id>{AT}{inside}</entry>"), URL).notes
        assert note.kind is DocumentRepaired
