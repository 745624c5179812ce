from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.makers import FEED, a_key, an_arrival
from wholefeed.core.notes import (
    ChainLoop,
    CrossOriginUnconfirmed,
    DocumentUnavailable,
    End,
    Ending,
    NewerNotOlder,
    Note,
    PageGone,
    PagesRepeat,
)
from wholefeed.core.walk.chain import (
    EXACT_KEYS,
    FILTER_BITS,
    SAME_DOCUMENT,
    Arrival,
    Chain,
    SeenKeys,
    Span,
    Trail,
    WalkLimits,
    first_ascent,
    is_ascending,
    page_trails,
)
from wholefeed.core.walk.walk import Walk
from wholefeed.fetch.base import site_of

A2, A1 = "http://o.test/2", "http://o.test/1"
ELSEWHERE = "http://cdn.example/1"


def a_chain(*links: tuple[str, str], subscription: str = FEED) -> Chain:
    """A chain of a subscription document and A2, whose older link is A1."""
    chain = Chain(
        an_arrival(subscription, A2, hops=["http://o.test/hop"], final_url="http://o.test/final"),
        trail=Trail(relation="prev-archive"),
        site_of=site_of,
    )
    chain.join(an_arrival(A2, A1, links=dict(links), digest=b"two"))
    return chain


@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        (A1, None),
        (A2, SAME_DOCUMENT),
        ("HTTP://O.TEST:80/x/../2#part", SAME_DOCUMENT),
        (FEED, ChainLoop(FEED)),
        ("http://o.test/final", ChainLoop("http://o.test/final")),
        ("http://o.test/hop", ChainLoop("http://o.test/hop")),
    ],
)
def test_knows_the_urls_of_its_documents(url: str, verdict: object) -> None:
    """R17; docs/faults.md row 50: after redirects and normalisation."""
    assert a_chain().repetition(url) == verdict


def test_a_self_link_ends_no_chain_before_its_target_was_seen() -> None:
    """R17: a template may write one `self` into every document; what comes is compared by its body."""
    chain = a_chain(("self", A1))
    assert chain.repetition(A1) is None
    assert chain.objection(an_arrival(A1, links={"self": A1})) is None


def test_the_same_body_with_the_same_link_is_the_same_document() -> None:
    """R17."""
    chain = a_chain()
    assert chain.objection(an_arrival(A1, A1, digest=b"two")) is SAME_DOCUMENT
    assert chain.objection(an_arrival(A1, A2, digest=FEED.encode())) == ChainLoop(A1)
    assert chain.objection(an_arrival(A1, "http://o.test/0", digest=b"two")) is None


@pytest.mark.parametrize(
    ("hops", "final_url", "site_id", "current", "joins"),
    [
        pytest.param([], A1, "urn:other", "", True, id="the same site needs no proof"),
        pytest.param([], "https://old.o.test:8443/1", "urn:other", "", True, id="another host of the site"),
        pytest.param([], ELSEWHERE, "urn:feed", "", True, id="the same id"),
        pytest.param([], ELSEWHERE, "urn:other", FEED, True, id="current leads back"),
        pytest.param(
            [], ELSEWHERE, "urn:other", "http://o.test/final#x", True, id="current, after redirects"
        ),
        pytest.param([], ELSEWHERE, "urn:other", "", False, id="nothing says so"),
        pytest.param([], ELSEWHERE, "", "", False, id="no id at all"),
        pytest.param([], ELSEWHERE, "urn:other", A2, False, id="current leads elsewhere"),
        pytest.param([ELSEWHERE], A1, "urn:other", "", False, id="a hop at another site"),
        pytest.param([ELSEWHERE], A1, "urn:feed", "", True, id="a hop at another site, the same id"),
    ],
)
def test_a_document_of_another_site_must_say_that_it_belongs_here(
    hops: list[str], final_url: str, site_id: str, current: str, joins: bool
) -> None:
    """R24; docs/faults.md row 22; RFC 5005, 6."""
    links = {"current": current} if current else {}
    arrival = an_arrival(A1, hops=hops, final_url=final_url, site_id=site_id, links=links)
    assert a_chain().objection(arrival) == (None if joins else CrossOriginUnconfirmed(A1))


def test_two_missing_ids_are_not_the_same_id() -> None:
    """R24."""
    chain = Chain(an_arrival(site_id=""), trail=Trail(relation="prev-archive"), site_of=site_of)
    assert chain.objection(an_arrival(ELSEWHERE, site_id="")) == CrossOriginUnconfirmed(ELSEWHERE)


def test_the_site_that_was_asked_for_the_subscription_document_is_its_own_too() -> None:
    """R24."""
    subscription = an_arrival("http://asked.example/feed", final_url=FEED)
    chain = Chain(subscription, trail=Trail(relation="prev-archive"), site_of=site_of)
    assert chain.objection(an_arrival("http://asked.example/1", site_id="urn:other")) is None


def test_the_site_that_the_subscription_document_was_moved_to_is_its_own() -> None:
    """R24."""
    subscription = an_arrival(FEED, final_url="http://moved.example/feed")
    chain = Chain(subscription, trail=Trail(relation="prev-archive"), site_of=site_of)
    assert chain.objection(an_arrival("http://moved.example/1", site_id="urn:other")) is None


O = "http://o.test"  # noqa: E741
LIMITS = WalkLimits(documents=100, bytes=10**9, entries=10**6)
PAGES = Trail(relation="next", is_paged=True)
END = Ending(End.OLDEST)
CIRCLE = Ending(End.CIRCLE)


def page(n: int) -> str:
    return f"{O}/feed?page={n}"


def a_page(n: int, *, entry: str = "", span: Span | None = None, news: bool = True, **links: int) -> Arrival:
    targets = {name: page(target) for name, target in links.items()}
    held = [a_key(entry or f"e{n}")]
    arrival = an_arrival(page(n) if n else FEED, links=targets, keys=held, news=news)
    return dataclasses.replace(arrival, span=span)


def walk_of(trail: Trail, *documents: Arrival, passed: Sequence[Arrival] = ()) -> Walk:
    first, *rest = documents
    at = {document.url: document for document in rest}
    walk = Walk(first, trail=trail, limits=LIMITS, site_of=site_of, passed=passed)
    while walk.ending is None:
        url = walk.wanted[0].url
        answer: Arrival | Note = at.get(url) or PageGone(url, reason="publisher-status")
        if isinstance(answer, Note):
            walk.failed(url, answer)
        else:
            walk.arrived(url, answer)
    return walk


def ending_of(trail: Trail, *documents: Arrival) -> tuple[Ending | None, int]:
    walk = walk_of(trail, *documents)
    return walk.ending, len(walk.path)


def test_follows_one_relation_whatever_else_the_pages_bear() -> None:
    """R0, R6: on page 2 `prev` leads to newer entries."""
    ending = ending_of(PAGES, a_page(0, next=2), a_page(2, prev=1, next=3), a_page(3, prev=2, first=1))
    assert ending == (END, 3)


def test_previous_and_prev_are_one_among_pages_and_two_in_a_chain() -> None:
    """R4, R6: among pages `prev` and `previous` are the same link; in a legacy chain only the one that began
    it counts."""
    back = Trail(relation="previous", is_paged=True)
    assert ending_of(back, a_page(0, prev=2), a_page(2, previous=1), a_page(1)) == (END, 3)
    chain = Trail(relation="previous")
    assert ending_of(chain, a_page(0, previous=2), a_page(2, prev=1)) == (END, 2)


def test_two_pages_in_a_row_without_a_new_identity_are_the_end() -> None:
    """R17: one may be empty, and an update is no new identity."""
    documents = [a_page(0, next=2), a_page(2, entry="e0", next=3), a_page(3, next=4)]
    updated = [a_page(n, entry="e0", next=n + 1) for n in range(4, 9)]
    documents += [dataclasses.replace(each, keys=[a_key("e0", n)]) for n, each in enumerate(updated)]
    assert ending_of(PAGES, *documents) == (Ending(None, (PagesRepeat(page(5), documents=2),)), 5)


@pytest.mark.parametrize(
    ("last", "ending"),
    [
        (2, Ending(None, (PageGone(page(3), reason="publisher-status"),))),
        (3, Ending(None, (PageGone(page(3), reason="publisher-status"),))),
        (9, Ending(None, (DocumentUnavailable(page(3), reason="publisher-status"),))),
    ],
)
def test_a_page_that_is_not_there_is_the_end_unless_more_should_follow(last: int, ending: Ending) -> None:
    """R6: `next` to a 404 at the end."""
    assert ending_of(PAGES, a_page(0, next=2), a_page(2, next=3, last=last)) == (ending, 2)


def test_a_first_page_that_is_not_there_is_missing() -> None:
    """R6."""
    trail = Trail(relation="next", first_relation="first", is_paged=True)
    missing = Ending(None, (DocumentUnavailable(page(1), reason="publisher-status"),))
    assert ending_of(trail, a_page(3, first=1)) == (missing, 1)


def test_a_closing_trail_ends_at_the_first_page_that_brought_nothing_new() -> None:
    """R6: its followers were collected before."""
    closing = Trail(relation="next", is_paged=True, is_closing=True)
    documents = [a_page(n, next=n + 1, news=n < 4) for n in (2, 3, 4, 5, 6)]
    assert ending_of(closing, a_page(0, next=2), *documents) == (Ending(End.COLLECTED), 4)


def test_another_trail_ends_where_the_first_one_has_been() -> None:
    """R6, R17: the way on from the page asked for stops at pages that the way back has collected."""
    asked = a_page(3, first=1, next=4)
    there = walk_of(
        Trail(relation="next", first_relation="first", is_paged=True),
        asked,
        a_page(1, next=2),
        a_page(2, next=3),
    )
    assert (there.ending, [each.url for each in there.path]) == (CIRCLE, [page(3), page(1), page(2)])
    on = walk_of(PAGES, asked, a_page(4, next=2), passed=there.path[1:])
    assert (on.ending, len(on.path)) == (CIRCLE, 4)
    assert on.path[-1].url == page(4)


NEW, OLD = Span(10, 20), Span(1, 9)


@pytest.mark.parametrize(
    ("subscription", "target", "is_chain"),
    [
        pytest.param(NEW, OLD, True, id="older"),
        pytest.param(OLD, NEW, False, id="newer"),
        pytest.param(NEW, Span(1, 30), True, id="an old entry was updated"),
        pytest.param(NEW, NEW, True, id="as old"),
        pytest.param(None, NEW, True, id="undated"),
        pytest.param(OLD, None, True, id="undated target"),
    ],
)
def test_a_bare_link_counts_only_if_what_it_leads_to_is_not_newer(
    subscription: Span | None, target: Span | None, is_chain: bool
) -> None:
    """R4."""
    trail = Trail(relation="prev", is_tentative=True)
    ending = ending_of(trail, a_page(0, prev=2, span=subscription), a_page(2, span=target))
    assert ending == ((END, 2) if is_chain else (Ending(None, (NewerNotOlder(page(2)),)), 1))


def test_only_the_first_document_of_a_tentative_chain_is_doubted() -> None:
    """R4."""
    trail = Trail(relation="prev", is_tentative=True)
    documents = [a_page(0, prev=2, span=NEW), a_page(2, prev=3, span=OLD), a_page(3, span=Span(5, 30))]
    assert ending_of(trail, *documents) == (END, 3)


def trails(
    links: dict[str, str], *, closing: bool = False, known: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    found = page_trails(links, [FEED], is_closing=closing, is_known=known.__contains__)
    assert all(trail.is_paged and trail.is_closing is closing for trail in found)
    return [(trail.first_relation, trail.relation) for trail in found]


def test_the_first_page_is_looked_for_before_the_last() -> None:
    """R6; RFC 5005, 3."""
    one, two, nine = page(1), page(2), page(9)
    assert trails({"next": two}) == [("", "next")]
    assert trails({"next": two, "first": FEED, "last": nine}) == [("", "next")]
    assert trails({"next": two, "first": one}) == [("first", "next"), ("", "next")]
    assert trails({"prev": two, "first": one}) == [("first", "next"), ("", "previous")]
    assert trails({"previous": two, "next": nine}) == [("", "previous"), ("", "next")]
    assert trails({"last": nine}) == [("last", "previous")]
    assert trails({"first": FEED, "last": FEED}) == []
    assert trails({"dead:next": "mailto:x"}) == [("", "next")]


def test_a_first_page_of_which_nothing_was_stored_is_the_document_itself() -> None:
    """R6: under another name."""
    links = {"next": page(2), "first": page(1)}
    assert trails(links, closing=True) == [("", "next")]
    assert trails(links, closing=True, known=(page(1),)) == [("first", "next"), ("", "next")]


def test_tells_pages_that_get_newer() -> None:
    """R6: `next` that leads to newer entries."""
    a, b, c = Span(1, 2), Span(3, 4), Span(5, 6)
    assert (first_ascent([c, b, a]), is_ascending([c, b, a])) == (None, False)
    assert (first_ascent([a, b, c]), is_ascending([a, b, c])) == (1, True)
    assert (first_ascent([c, None, b, a]), is_ascending([None])) == (None, False)
    assert (first_ascent([c, b, c, b, a]), is_ascending([c, b, c, b, a])) == (2, False)


@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, 0.0, 1.0, 1.5])))))
def test_an_identity_with_an_instant_is_new_once(documents: list[list[tuple[str, float | None]]]) -> None:
    """R17: a new (identity, instant)."""
    seen, model = SeenKeys(), set[tuple[str, float | None]]()
    for document in documents:
        assert seen.add(a_key(*key) for key in document) is not model.issuperset(document)
        model.update(document)


def test_what_was_added_is_never_taken_for_new() -> None:
    """R17: whatever the number of keys, an old one is never new, so a walk in a circle ends."""
    seen = SeenKeys()
    keys = [a_key(f"urn:{n}", float(n)) for n in range(4 * EXACT_KEYS)]
    for start in range(0, len(keys), 16):
        seen.add(keys[start : start + 16])
    assert not seen.add(keys)


def test_many_keys_are_remembered_in_little_memory() -> None:
    """A filter of a fixed size, however many there are; on the way to it, some thousands of hashes."""
    assert FILTER_BITS // 8 == 2 << 20
    tracemalloc.start()
    try:
        seen = SeenKeys()
        seen.add(a_key(f"urn:{n}", float(n)) for n in range(30_000))
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2.1 * (1 << 20)
    assert peak < 4 << 20


def test_new_keys_are_hardly_ever_mistaken_among_many() -> None:
    """R17: among 100,000 keys a new entry or update is nearly always seen as news, and the walk goes on."""
    seen = SeenKeys()
    seen.add(a_key(f"urn:{n}") for n in range(100_000))
    fresh = sum(seen.add([a_key(f"new:{n}")]) for n in range(2000))
    updates = sum(seen.add([a_key("urn:1", float(n))]) for n in range(2000))
    assert fresh > 1990
    assert updates > 1990
