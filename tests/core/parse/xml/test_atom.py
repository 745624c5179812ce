from __future__ import annotations

import pytest

from tests.core.parse.makers import URL, atom, only, slices
from wholefeed.core.model import ATOM_NS, FH_NS, HistoryElement, Link, entry_id
from wholefeed.core.parse.documents import parse

AT = 1071340202.0
"""2003-12-13T18:30:02Z"""


def test_the_head_is_read() -> None:
    """RFC 4287, 4.1.1."""
    document = parse(
        atom(
            "<id> urn:feed\n</id><title type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>a<b>b</b></div></title>",
            "<updated>2003-12-13T18:30:02Z</updated>",
            attributes=" xml:lang='de' xmlns:x='urn:x'",
        ),
        URL,
    )

    head = document.head
    assert document.version == "1.0"
    assert (head.site_id, head.title, head.updated_at) == ("urn:feed", "ab", AT)
    assert head.scope.prefixes == {"": ATOM_NS, "fh": FH_NS, "x": "urn:x"}
    assert (head.scope.lang, head.scope.base) == ("de", URL)


def test_a_language_that_is_none_is_not_taken_along() -> None:
    """Each entry would have to repeat it."""
    assert parse(atom(attributes=f" xml:lang='{'x' * 65}'"), URL).head.scope.lang == ""
    assert parse(atom(attributes=" xml:lang=' de '"), URL).head.scope.lang == "de"


def test_head_children_stand_in_document_order_with_their_spans() -> None:
    """R20: the head's elements are known in order and byte for byte, so that the answer can repeat them."""
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


def test_a_head_child_that_is_named_like_the_root_and_empty_ends_where_it_ends() -> None:
    """docs/design.md#parsing: its reported end lies behind it, where the root's end tag begins."""
    document = parse(atom("<feed xmlns='urn:x'/>"), URL)

    (child,) = document.head.children
    assert document.text[child.start : child.end] == b"<feed xmlns='urn:x'/>"


def test_an_empty_entry_before_the_end_of_the_feed_ends_where_it_ends() -> None:
    """docs/design.md#parsing."""
    assert slices(parse(atom("<entry/>"), URL)) == [b"<entry/>"]
    assert slices(parse(atom("<entry></entry>"), URL)) == [b"<entry></entry>"]
    assert slices(parse(atom("<entry>/></entry>"), URL)) == [b"<entry>/></entry>"]


def test_links_of_the_head_count_wherever_they_stand_and_those_of_entries_never() -> None:
    """R0: children of the head alone."""
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
    """R12; RFC 4287, 4.2.7.2: in any case, as IANA IRIs too; without rel a link is an alternate."""
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
    """R11; RFC 3986, 5.1; XML Base, 4. A base that is no URL changes nothing."""
    body = atom(f"<link rel='next' href='x' {link}/>", attributes=f" {feed}" if feed else "")

    (found,) = parse(body, URL).head.links
    assert (found.target, found.href) == (target, "x")


@pytest.mark.parametrize("href", ["", "href=''", "href=' '", "href='http://[bad'"])
def test_a_link_without_a_usable_href_has_no_target(href: str) -> None:
    """R11: an empty href is none."""
    (link,) = parse(atom(f"<link rel='next' {href}/>"), URL).head.links

    assert link.target == ""


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


def test_an_entry_says_who_it_is_and_when_it_changed() -> None:
    """R9, R10, R20."""
    entry = only(
        atom(
            "<entry><id>\n urn:1 </id><published>2001-01-01T00:00:00Z</published>",
            "<updated>2003-12-13T18:30:02Z</updated></entry>",
        )
    )

    assert entry.identity == entry_id("urn:1")
    assert (entry.updated_at, entry.order_at) == (AT, AT)


def test_an_entry_without_an_update_instant_is_ordered_by_its_publication() -> None:
    """R10: never as an update; R20."""
    entry = only(
        atom("<entry><id>1</id><updated>soon</updated><published>2003-12-13T18:30:02Z</published></entry>")
    )

    assert (entry.updated_at, entry.order_at) == (None, AT)


def test_only_children_of_the_entry_count_for_it() -> None:
    """RFC 4287, 4.2.11: atom:source holds another feed's metadata; extensions have children of their own."""
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


def test_references_and_cdata_in_an_id_are_read() -> None:
    """R9; RFC 4287 §4.2.6.1: two spellings of one atom:id are one identity; else the entry stands twice."""
    entry = only(atom("<entry><id>a&amp;<![CDATA[b&]]>&#x63;<!-- no --></id></entry>"))

    assert entry.identity == entry_id("a&b&c")


def test_entries_count_whatever_their_prefix() -> None:
    """An entry is one by its namespace: a prefixed one is served, one of no namespace is not taken for
    one."""
    entries = f"<a:entry><a:id>1</a:id></a:entry><entry/><b:entry xmlns:b='{ATOM_NS}'/>"
    document = parse(f"<a:feed xmlns:a='{ATOM_NS}'>{entries}</a:feed>".encode(), URL)

    assert len(document.entries) == 2
    assert [child.name for child in document.head.children] == ["entry"]
