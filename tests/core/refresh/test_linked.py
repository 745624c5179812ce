"""History behind the links of a subscription document: a chain, or several trails through pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import pytest

from tests.core.refresh.makers import (
    GONE,
    LIMITS,
    NOW,
    UNAVAILABLE,
    O,
    a_basis,
    a_feed,
    a_published_feed,
    a_row,
    a_subscription,
    an_attempt,
)
from tests.core.refresh.walking import FetchPlayer, Publisher, WalkStore, a_publisher, finish
from tests.makers import FEED, a_key, an_arrival
from wholefeed.core.model import Family, Kind, Role, State, entry_id
from wholefeed.core.notes import (
    DocumentUnavailable,
    End,
    Ending,
    LastNotReached,
    LimitReached,
    NewerNotOlder,
    PageGone,
    PagesAscend,
)
from wholefeed.core.refresh.asking import NoteFeed
from wholefeed.core.refresh.basis import Basis, Settings
from wholefeed.core.refresh.linked import find_ascent, is_followed, linked_history
from wholefeed.core.refresh.stored import StoredDocument, StoredFeed
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival, DateSpan


def page(n: int) -> str:
    return f"{O}/feed?page={n}"


def a_page(n: int, *entries: str, span: DateSpan | None = None, **links: int) -> Arrival:
    """By default with its own entry; page 0 is the requested one."""
    targets = {name: page(target) if target else FEED for name, target in links.items()}
    names = entries or (f"e{n}",)
    arrival = an_arrival(page(n) if n else FEED, links=targets, keys=[a_key(each) for each in names])
    return dataclasses.replace(arrival, digest=repr(names).encode(), span=span)


def begin(
    asked: Arrival,
    *,
    stored: Iterable[StoredDocument] = (),
    basis: Basis | None = None,
    known: Iterable[str] = (),
    **changes: Any,
) -> FetchPlayer:
    """Begin after the subscription document of a paged feed."""
    rows, store = list(stored), WalkStore()
    store.documents = {document_key(row.url): row for row in rows}
    store.add(map(a_key, known))
    basis = a_basis(settings=Settings(limits=LIMITS, looks_ahead=False)) if basis is None else basis
    subscription = a_subscription(asked, **{"kind": Kind.PAGED, **changes})
    return FetchPlayer(linked_history(basis, rows, subscription), store)


def walk_along(asked: Arrival, publisher: Publisher, **options: Any) -> FetchPlayer:
    player = begin(asked, **options)
    finish(player, publisher)
    return player


# The order of the trails (R6)


def test_a_chain_is_walked_along_its_archives() -> None:
    """R2."""
    asked = an_arrival(FEED, page(2))
    documents = a_publisher(an_arrival(page(2), page(1)), an_arrival(page(1)))
    player = walk_along(asked, documents, kind=Kind.ARCHIVED)
    assert (player.walked.state, player.walked.path) == (State.COMPLETE, [1001, 1002])
    assert {placement.role for placement in player.store.kept} == {Role.ARCHIVE}


def test_the_pages_before_come_first_then_those_behind() -> None:
    """R6, R20: from the first page to the requested one, and on from there."""
    asked = a_page(3, first=1, next=4)
    documents = a_publisher(a_page(1, next=2), a_page(2, next=3), a_page(4, next=5), a_page(5))
    player = walk_along(asked, documents)
    assert player.fetched == [page(n) for n in (1, 2, 4, 5)]
    assert (player.walked.state, player.walked.path) == (State.PAGED, [1001, 1002, 1003, 1004])
    assert player.ending == Ending(End.OLDEST)


def test_pages_in_front_are_put_in_the_order_of_the_feed() -> None:
    """R6, R20: the way back reads them in reverse."""
    asked = a_page(3, previous=2, next=4)
    documents = a_publisher(a_page(2, previous=1), a_page(1), a_page(4))
    player = walk_along(asked, documents)
    assert player.fetched == [page(n) for n in (2, 1, 4)]
    assert player.walked.path == [1002, 1001, 1003]


def test_pages_behind_are_met_from_the_last_one_where_only_that_is_named() -> None:
    """R6, R20."""
    documents = a_publisher(a_page(3, previous=2), a_page(2, previous=0))
    player = walk_along(a_page(0, last=3), documents)
    assert player.fetched == [page(3), page(2)]
    assert player.walked.path == [1002, 1001]


def test_what_is_missing_on_one_trail_does_not_end_the_others() -> None:
    """R6, R14: but the feed is partial."""
    player = walk_along(a_page(3, first=1, next=4), a_publisher(a_page(4)))
    note = DocumentUnavailable(page(1), reason="publisher-status")
    assert player.fetched == [page(1), page(4)]
    assert (player.ending, player.walked.path) == (Ending(None, (note,)), [1001])
    assert player.walked.failures == {page(1): GONE}


def test_pages_that_get_newer_are_turned_round() -> None:
    """R6, R20: newest first, for any direction of the publisher's count."""
    documents = a_publisher(a_page(2, span=DateSpan(20, 29), next=3), a_page(3, span=DateSpan(30, 39)))
    player = walk_along(a_page(0, span=DateSpan(10, 19), next=2), documents)
    assert player.walked.path == [1002, 1001]
    assert player.walked.notes == [PagesAscend(page(2))]


# Where all was collected before

COLLECTED = a_published_feed(State.PAGED, kind=Kind.PAGED)
WAS_A_CHAIN = {"kind": Kind.ARCHIVED, "state": State.PARTIAL}
ROWS = [a_row(each, n, role=Role.PAGE) for n, each in ((2, a_page(2, next=3)), (3, a_page(3)))]


def collected_basis(feed: StoredFeed = COLLECTED, **changes: Any) -> Basis:
    return a_basis(feed=feed, settings=Settings(limits=LIMITS, looks_ahead=False), **changes)


@pytest.mark.parametrize(
    ("changes", "feed", "fetched"),
    [
        pytest.param({"has_news": False}, {}, [], id="nothing is new"),
        pytest.param({"has_news": True}, {}, [2], id="something is new: up to the first that is as it was"),
        pytest.param({"has_news": False}, {"is_walking": True}, [], id="an earlier walk was cut off"),
        pytest.param({"has_news": False}, {"revision": 1}, [2, 3], id="an earlier refresh was cut off"),
        pytest.param(
            {"has_news": False}, {"kind": Kind.ARCHIVED, "state": State.PARTIAL}, [2, 3], id="a chain"
        ),
        pytest.param({"has_news": False}, {"state": State.COMPLETE}, [2, 3], id="it was complete"),
        pytest.param({"has_news": False}, {"state": State.REMEMBERED}, [2, 3], id="pages were not followed"),
        pytest.param(
            {"has_news": False},
            {"notes": f'[{{"code": "{PagesAscend.code}", "url": "{page(2)}"}}]'},
            [3],
            id="news is on the last one",
        ),
    ],
)
def test_which_pages_are_looked_at_for_news(
    changes: dict[str, Any], feed: dict[str, Any], fetched: list[int]
) -> None:
    """R6: a normal poll costs at most one page."""
    stored = dataclasses.replace(COLLECTED, **feed)
    player = begin(
        a_page(0, next=2), stored=ROWS, known=["e0", "e2", "e3"], basis=collected_basis(stored), **changes
    )
    while player.ending is None:
        player.unchanged(player.fetching[0])
    assert player.fetched == [page(n) for n in fetched]
    assert player.walked.state is State.PAGED


def test_a_trail_that_is_not_walked_ends_where_all_was_collected() -> None:
    """R6."""
    player = begin(a_page(0, next=2), stored=ROWS, basis=collected_basis(), has_news=False)
    assert (player.ending, player.requests) == (Ending(End.COLLECTED), [])


def test_another_format_is_collected_from_the_start() -> None:
    """R23, R6: the stored pages have the former format."""
    feed = dataclasses.replace(COLLECTED, family=Family.RSS)
    player = begin(a_page(0, next=2), stored=ROWS, basis=collected_basis(feed), known=["e0", "e2", "e3"])
    player.unchanged(page(2))
    assert player.ending == Ending(End.OLDEST)


# A supposed chain that turns out to be pages (R4)


def supposed(**options: Any) -> FetchPlayer:
    """A bare `prev` to a newer document."""
    asked = a_page(0, span=DateSpan(10, 19), prev=2)
    player = begin(asked, kind=Kind.LEGACY, relation="prev", is_tentative=True, **options)
    player.came(a_page(2, span=DateSpan(20, 29)))
    return player


def test_a_supposed_chain_that_gets_newer_is_walked_as_pages() -> None:
    """R4: noted before any other write, without fetching a document again."""
    player = supposed()
    assert player.fetched == [page(2)]
    assert [request for request in player.requests if isinstance(request, NoteFeed)] == [
        NoteFeed(kind=Kind.PAGED)
    ]
    assert player.walked.state is State.PAGED
    assert player.walked.notes[0] == NewerNotOlder(page(2))
    assert [placement.role for placement in player.store.kept] == [Role.PAGE]


def test_an_archive_that_was_confirmed_is_asked_for_again_as_a_page() -> None:
    """R4: a 304 confirms the stored archive, and no page is stored."""
    empty = dataclasses.replace(a_page(2, previous=1), entries=0, keys=())
    changes = {"is_settled": False, "checked_at": NOW - DAY_SECONDS, "entries": 0}
    archive = a_row(empty, 7, role=Role.ARCHIVE, rank=0, **changes)
    asked = a_page(3, previous=2, next=4)
    player = begin(
        asked, stored=[archive], kind=Kind.LEGACY, relation="previous", is_tentative=True, has_changed=True
    )
    player.unchanged(page(2))
    player.came(a_page(2))
    player.failed(page(4))
    assert player.ending is not None
    assert player.fetched == [page(2), page(2), page(4)]


def test_no_trail_is_begun_once_the_time_is_over() -> None:
    """R18: the seconds count for the whole refresh; one document is missing."""
    player = begin(a_page(5, first=1, next=6))
    player.end_time()
    assert player.fetched == [page(1)]
    assert player.ending == Ending(None, (LimitReached(page(1), limit="limits.walk_seconds", value=3600.0),))


def test_pages_that_are_not_followed_leave_the_feed_as_it_is() -> None:
    """R6: if the operator forbids them."""
    player = supposed(basis=a_basis(settings=Settings(limits=LIMITS, follows_pages=False)))
    assert (player.walked.state, player.kept) == (State.REMEMBERED, [])


@pytest.mark.parametrize(
    ("kind", "follows_pages", "expected"),
    [
        (Kind.ARCHIVED, False, True),
        (Kind.LEGACY, False, True),
        (Kind.PAGED, True, True),
        (Kind.PAGED, False, False),
        (Kind.PLAIN, True, False),
        (Kind.COMPLETE, True, False),
    ],
)
def test_links_of_chains_and_pages_are_followed(kind: Kind, follows_pages: bool, expected: bool) -> None:
    """R1, R2, R4, R6, R7."""
    basis = a_basis(settings=Settings(limits=LIMITS, follows_pages=follows_pages))
    assert is_followed(basis, kind) is expected


def test_where_pages_get_newer_is_remembered_in_the_notes() -> None:
    """R6."""
    note = f'[{{"code": "other"}}, {{"code": "{PagesAscend.code}", "url": "{page(2)}"}}]'
    assert find_ascent(a_feed(notes=note)) == PagesAscend(page(2))
    assert find_ascent(a_feed()) is None


# The page named as the last one (R6)


def begin_towards(last: int, **options: Any) -> FetchPlayer:
    player = begin(a_page(0, next=2, last=last), **options)
    player.came(a_page(2))
    return player


def test_the_last_page_is_not_looked_for_where_it_was_reached() -> None:
    """R6."""
    player = begin_towards(2)
    assert (player.ending, player.fetched) == (Ending(End.OLDEST), [page(2)])
    other = begin(an_arrival(FEED, links={"next": page(2), "last": "HTTP://O.test:80/feed?page=2"}))
    other.came(a_page(2))
    assert (other.ending, other.fetched) == (Ending(End.OLDEST), [page(2)])


def test_one_page_too_many_is_named() -> None:
    """R6: nothing is missing."""
    player = begin_towards(3)
    assert player.fetching == [page(3)]
    player.failed(page(3))
    assert player.walked.notes == [PageGone(page(3), reason="publisher-status")]
    assert player.ending == Ending(End.OLDEST)


def test_a_last_page_that_cannot_be_had_is_missing() -> None:
    """R6, R14."""
    player = begin_towards(3)
    player.failed(page(3), UNAVAILABLE)
    note = DocumentUnavailable(page(3), reason="publisher-status")
    assert (player.walked.notes, player.ending) == ([note], Ending(None, (note,)))
    assert player.walked.failures == {page(3): UNAVAILABLE}


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(a_page(3, "e2"), id="the same body under another name"),
        pytest.param(a_page(3, "e0", "e2"), id="entries that are all stored"),
    ],
)
def test_a_last_page_that_repeats_the_others_was_reached(last: Arrival) -> None:
    """R6: some publishers use another name for it."""
    player = begin_towards(3, known=["e0"])
    player.came(last)
    assert (player.walked.notes, player.ending) == ([], Ending(End.OLDEST))


def test_a_last_page_that_leads_to_the_tip_was_reached() -> None:
    """R6, R17: by a redirect."""
    player = begin_towards(3)
    player.led_back(page(3), page(2))
    assert (player.walked.notes, player.ending) == ([], Ending(End.OLDEST))
    player = begin_towards(3)
    player.led_back(page(3), FEED)
    assert player.walked.notes == [LastNotReached(page(3))]


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(a_page(3, "else"), id="it has other entries"),
        pytest.param(a_page(3, "e0"), id="it is the first page again"),
    ],
)
def test_a_last_page_that_no_link_leads_to_is_told(last: Arrival) -> None:
    """R6: the pages between are missing."""
    player = begin_towards(3, known=["e0"])
    player.came(last)
    note = LastNotReached(page(3))
    assert (player.walked.notes, player.ending) == ([note], Ending(None, (note,)))


def test_a_last_page_that_waits_or_takes_too_long_is_told() -> None:
    """R14, R18."""
    player = begin_towards(3, basis=a_basis(missing=[an_attempt(page(3))]))
    assert (player.walked.notes, player.fetched) == ([LastNotReached(page(3))], [page(2)])
    player = begin_towards(3)
    player.end_time()
    assert player.walked.notes == [LastNotReached(page(3))]


def test_a_page_that_is_empty_is_not_the_one_that_was_to_be_reached() -> None:
    """R6: it exists without entries."""
    player = begin(a_page(0, next=2, last=9))
    player.came(dataclasses.replace(a_page(2), keys=[], entries=0))
    assert player.fetching == [page(9)]
    assert entry_id("e0") not in player.store.entries
