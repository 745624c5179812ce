from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.makers import FEED, a_key, an_arrival
from wholefeed.core.notes import (
    ChainLoop,
    CrossOriginUnconfirmed,
)
from wholefeed.core.walk.chain import (
    EXACT_KEYS,
    FILTER_BITS,
    SAME_DOCUMENT,
    Chain,
    DateSpan,
    SeenKeys,
    Trail,
    first_ascent,
    is_ascending,
    page_trails,
)
from wholefeed.fetch.base import site_of

A2, A1 = "http://o.test/2", "http://o.test/1"
ELSEWHERE = "http://cdn.example/1"


def a_chain(*links: tuple[str, str], subscription: str = FEED) -> Chain:
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
    """R17: a template may write one `self` everywhere; bodies are compared."""
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


def page(n: int) -> str:
    return f"{O}/feed?page={n}"


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
    """R6: `next` to newer entries."""
    a, b, c = DateSpan(1, 2), DateSpan(3, 4), DateSpan(5, 6)
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
    """R17: for any number of keys, so a circular walk ends."""
    seen = SeenKeys()
    keys = [a_key(f"urn:{n}", float(n)) for n in range(4 * EXACT_KEYS)]
    for start in range(0, len(keys), 16):
        seen.add(keys[start : start + 16])
    assert not seen.add(keys)


def test_many_keys_are_remembered_in_little_memory() -> None:
    """The first thousands are hashes, then a filter of fixed size follows."""
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
    """R17: among 100,000 keys a new entry nearly always counts as news, and the walk goes on."""
    seen = SeenKeys()
    seen.add(a_key(f"urn:{n}") for n in range(100_000))
    fresh = sum(seen.add([a_key(f"new:{n}")]) for n in range(2000))
    updates = sum(seen.add([a_key("urn:1", float(n))]) for n in range(2000))
    assert fresh > 1990
    assert updates > 1990
