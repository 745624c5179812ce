from __future__ import annotations

import html

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.compose import (
    DROPPED_RELATIONS,
    EPILOGUE,
    Address,
    Missing,
    compose_head,
    compose_prologue,
    compose_warning,
    newest_first,
)
from proxy.core.fragments import Fragments, prefixes_in
from proxy.core.model import FeedDocument
from proxy.core.parse.documents import parse
from proxy.core.terms import Family
from tests.feeds import an_item, atom, links, rss

ADDRESS = Address("http://p.test/feed?url=x&a", "http://o.test/feed")


def composed(document: FeedDocument, *, is_complete: bool = False, warning: bytes = b"") -> bytes:
    fragments = Fragments(document)
    head = compose_head(document)
    entries = b"".join(fragments.entry(n, fragments.context()) + b"\n" for n in range(len(document.entries)))
    prologue = compose_prologue(
        document.family,
        head.text,
        prefixes=head.prefixes | prefixes_in(entries),
        address=ADDRESS,
        is_complete=is_complete,
        warning=warning,
    )
    return prologue + entries + EPILOGUE[document.family]


@pytest.mark.parametrize("make", [atom, rss])
def test_the_composed_document_parses_to_the_same_entries(make: object) -> None:
    """R22."""
    body = make(an_item("a", 2), an_item("b", 1), self="/x")  # type: ignore[operator]
    document = parse(body, "http://o.test/feed")
    again = parse(composed(document), "http://p.test/feed")
    assert [entry.identity for entry in again.entries] == [entry.identity for entry in document.entries]
    assert again.head.title == document.head.title
    fragments, once_more = Fragments(document), Fragments(again)
    for n in range(len(document.entries)):
        assert once_more.entry(n, once_more.context()) == fragments.entry(n, fragments.context())


@pytest.mark.parametrize("relation", sorted(DROPPED_RELATIONS))
@pytest.mark.parametrize("iri", ["", "http://www.iana.org/assignments/relation/"])
def test_links_that_would_mislead_are_dropped(relation: str, iri: str) -> None:
    """R21: also when the relation is written as an IRI, in any case."""
    extra = f'<link rel="{iri}{relation.upper() if not iri else relation}" href="http://x.test/"/>'
    document = parse(atom(an_item("a"), extra=extra), "http://o.test/feed")
    assert b"x.test" not in composed(document)


def test_other_links_and_elements_of_the_head_stay() -> None:
    """R21, R22."""
    extra = (
        '<link rel="license" href="/l"/><generator uri="u">G</generator><fh:incremental>true</fh:incremental>'
    )
    document = parse(atom(an_item("a"), extra=extra), "http://o.test/feed")
    body = composed(document)
    assert b'rel="license" href="/l"' in body
    assert b">G</generator>" in body
    assert b"incremental" not in body
    assert feedparser.parse(body).feed.links[0].href == "http://o.test/l"


def test_a_signature_of_the_feed_document_is_dropped() -> None:
    """R21: it is not true of the synthesized document."""
    extra = '<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X/></ds:Signature>'
    assert b"Signature" not in composed(parse(atom(extra=extra), "http://o.test/"))


@pytest.mark.parametrize("make", [atom, rss])
def test_it_names_itself_and_where_it_comes_from(make: object) -> None:
    """R21."""
    document = parse(make(an_item("a"), self="/feed"), "http://o.test/feed")  # type: ignore[operator]
    found = links(composed(document, is_complete=True))
    assert (found["self"], found["via"]) == ([ADDRESS.self_url], [ADDRESS.via_url])


@pytest.mark.parametrize("make", [atom, rss])
@pytest.mark.parametrize("is_complete", [True, False])
def test_it_says_complete_exactly_when_it_is(make: object, is_complete: bool) -> None:
    """R21; RFC 5005, 2."""
    document = parse(make(an_item("a"), complete=True), "http://o.test/feed")  # type: ignore[operator]
    again = parse(composed(document, is_complete=is_complete), "http://p.test/")
    assert ("complete" in [element.name for element in again.head.history]) is is_complete


@pytest.mark.parametrize("family", [Family.ATOM, Family.RSS])
def test_the_pseudo_entry_says_what_is_missing_and_does_not_churn(family: Family) -> None:
    """R16."""
    arguments = {
        "identifier": "urn:uuid:1", "missing": [Missing("http://o.test/1?a&b", "timeout")],
        "first_failed": "2026-11-21T10:00:00Z", "first_failed_rfc822": "Sat, 21 Nov 2026 10:00:00 GMT",
    }  # fmt: skip
    warning = compose_warning(family, **arguments)  # type: ignore[arg-type]
    make = atom if family is Family.ATOM else rss
    (entry, _) = feedparser.parse(
        composed(parse(make(an_item("a")), "http://o.test/"), warning=warning)
    ).entries
    assert entry.id == "urn:uuid:1"
    assert "http://o.test/1?a&b (timeout)" in html.unescape(entry.summary)
    assert entry["updated" if family is Family.ATOM else "published"]
    assert compose_warning(family, **arguments) == warning  # type: ignore[arg-type]


def test_entries_go_newest_first_and_undated_ones_keep_their_place() -> None:
    """R20."""
    assert newest_first([1.0, None, 3.0, 2.0, None]) == [2, 1, 3, 0, 4]
    assert newest_first([1.0, 1.0]) == [0, 1]


@given(st.lists(st.none() | st.floats(0, 9)))
def test_no_entry_is_lost_or_doubled_by_the_order(order_at: list[float | None]) -> None:
    """R20."""
    order = newest_first(order_at)
    assert sorted(order) == list(range(len(order_at)))
    dated = [at for n in order if (at := order_at[n]) is not None]
    assert dated == sorted(dated, reverse=True)
