from __future__ import annotations

import pytest

from tests.makers import FEED, a_key, an_arrival
from wholefeed.core.model import Family
from wholefeed.core.notes import ChainLoop, CrossOriginUnconfirmed, FormatMismatch
from wholefeed.core.walk.chain import SAME_DOCUMENT, Chain, Trail
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


def test_a_redirect_back_is_a_repetition() -> None:
    """R17; docs/faults.md row 50."""
    chain = a_chain()
    assert chain.objection(an_arrival(A1, final_url=A2)) is SAME_DOCUMENT
    assert chain.objection(an_arrival(A1, final_url=FEED)) == ChainLoop(A1)


def test_the_same_body_with_the_same_link_is_the_same_document() -> None:
    """R17."""
    chain = a_chain()
    assert chain.objection(an_arrival(A1, A1, digest=b"two")) is SAME_DOCUMENT
    assert chain.objection(an_arrival(A1, A2, digest=FEED.encode())) == ChainLoop(A1)
    assert chain.objection(an_arrival(A1, "http://o.test/0", digest=b"two")) is None


def test_a_document_of_another_family_does_not_join() -> None:
    """R23; docs/faults.md row 59."""
    objection = a_chain().objection(an_arrival(A1, family=Family.RSS))
    assert objection == FormatMismatch(A1, expected="atom", found="rss")


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


def test_the_subscription_document_is_no_archive_without_news() -> None:
    """R17: archives in a row."""
    chain = Chain(an_arrival(keys=None, news=False), trail=Trail(relation="prev-archive"), site_of=site_of)
    assert chain.without_news == 0


def test_counts_documents_in_a_row_without_anything_new() -> None:
    """R17; an update of an entry is something new."""
    chain = a_chain()
    assert chain.join(an_arrival("http://o.test/b", keys=[a_key(A2)])) is False
    assert chain.join(an_arrival("http://o.test/c", keys=None, news=False)) is False
    assert chain.without_news == 2
    assert chain.join(an_arrival("http://o.test/d", keys=[a_key(A2, 5.0)])) is True
    assert chain.without_news == 0


def test_adds_up_what_is_on_the_path_and_drops_the_keys() -> None:
    """R18: bytes and entries of the path are counted for the limits, without keeping every identity in
    memory."""
    chain = a_chain()
    assert (chain.body_bytes, chain.entries) == (2000, 2)
    assert all(arrival.keys is None for arrival in chain.path)
