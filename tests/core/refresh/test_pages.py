"""Walks through a feed's pages: how they end, the stored pages they fetch again, and the stored result."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

from tests.core.refresh.makers import DAY, GONE, NOW, UNAVAILABLE, O, a_fresh, a_row, an_attempt
from tests.core.refresh.walking import PAGES, WalkPlayer, WalkStore, a_publisher, a_walk, finish
from tests.makers import FEED, a_key, an_arrival
from wholefeed.core.model import Family, Role, entry_id
from wholefeed.core.notes import (
    DocumentTruncated,
    DocumentUnavailable,
    End,
    Ending,
    MementoServed,
    PageGone,
    PagesRepeat,
    PageStale,
)
from wholefeed.core.refresh.arrivals import Failure
from wholefeed.core.refresh.asking import Attach, Drop, Fetch, FindKnown, Touch
from wholefeed.core.refresh.responses import Responses
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.core.walk.chain import Arrival, DateSpan, Trail

END, CIRCLE, COLLECTED = Ending(End.OLDEST), Ending(End.CIRCLE), Ending(End.COLLECTED)
CLOSING = dataclasses.replace(PAGES, is_closing=True)
FROM_FIRST = Trail(relation="next", first_relation="first", is_paged=True)


def page(n: int) -> str:
    return f"{O}/feed?page={n}"


def a_page(n: int, *entries: str, span: DateSpan | None = None, **links: int) -> Arrival:
    """By default with its own entry; page 0 is the subscription document."""
    targets = {name: page(target) for name, target in links.items()}
    names = entries or (f"e{n}",)
    arrival = an_arrival(page(n) if n else FEED, links=targets, keys=[a_key(each) for each in names])
    return dataclasses.replace(arrival, digest=repr((n, names)).encode(), span=span)


def known(*names: str) -> list[tuple[Any, float | None]]:
    return [a_key(name) for name in names]


def walk_along(trail: Trail, *documents: Arrival, **options: Any) -> WalkPlayer:
    first, *rest = documents
    walk = a_walk(first, trail=trail, **options)
    finish(walk, a_publisher(*rest))
    return walk


def ending_of(trail: Trail, *documents: Arrival, **options: Any) -> tuple[Ending | None, int]:
    walk = walk_along(trail, *documents, **options)
    return walk.ending, len(walk.path)


# How trails end


def test_follows_one_relation_whatever_else_the_pages_bear() -> None:
    """R0, R6: on page 2 `prev` links to newer entries."""
    ending = ending_of(PAGES, a_page(0, next=2), a_page(2, prev=1, next=3), a_page(3, prev=2, first=1))
    assert ending == (END, 3)


def test_previous_and_prev_are_one_among_pages() -> None:
    """R6: among pages `prev` and `previous` are the same link."""
    back = Trail(relation="previous", is_paged=True)
    assert ending_of(back, a_page(0, prev=2), a_page(2, previous=1), a_page(1)) == (END, 3)


def test_two_pages_in_a_row_without_a_new_identity_are_the_end() -> None:
    """R17: one page may be empty, and an update is no new identity."""
    documents = [a_page(0, next=2), a_page(2, "e0", next=3), a_page(3, next=4)]
    updated = [a_page(n, "e0", next=n + 1) for n in range(4, 9)]
    documents += [
        dataclasses.replace(each, keys=[a_key("e0", n)], digest=bytes([n])) for n, each in enumerate(updated)
    ]
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
    """R6: a 404 for the last page's `next`."""
    assert ending_of(PAGES, a_page(0, next=2), a_page(2, next=3, last=last)) == (ending, 2)


def test_a_first_page_that_is_not_there_is_missing() -> None:
    """R6."""
    missing = Ending(None, (DocumentUnavailable(page(1), reason="publisher-status"),))
    assert ending_of(FROM_FIRST, a_page(3, first=1)) == (missing, 1)


@pytest.mark.parametrize("failure", [UNAVAILABLE, Failure(slug="timeout")])
def test_a_page_that_is_there_and_cannot_be_had_is_missing(failure: Failure) -> None:
    """R6, R34: and no way leads past it, but the pages count."""
    walk = a_walk(a_page(0, next=2), trail=PAGES, looks_ahead=False)
    walk.came(a_page(2, next=3))
    walk.failed(page(3), failure)
    assert walk.ending == Ending(None, (DocumentUnavailable(page(3), reason=failure.slug),))
    assert walk.walked.failures == {page(3): failure}


def test_a_stored_page_that_is_gone_is_missing() -> None:
    """R6: an earlier walk collected it, so it is not the end."""
    walk = walk_along(CLOSING, a_page(0, next=2), stored=[a_stored_page(2)])
    assert walk.ending == Ending(None, (DocumentUnavailable(page(2), reason="publisher-status"),))


def test_a_closing_trail_ends_at_the_first_page_that_brought_nothing_new() -> None:
    """R6: the pages after it were collected before."""
    documents = [a_page(n, next=n + 1) for n in (2, 3, 4, 5, 6)]
    stored = known("e4", "e5", "e6")
    walk = walk_along(CLOSING, a_page(0, next=2), *documents, known=stored)
    assert (walk.ending, len(walk.path)) == (COLLECTED, 4)
    assert walk.kept == [page(2), page(3)], "page 4 adds nothing"


def test_another_trail_ends_where_the_first_one_has_been() -> None:
    """R6, R17: the way on stops at pages of the way back."""
    asked = a_page(3, first=1, next=4)
    there = walk_along(FROM_FIRST, asked, a_page(1, next=2), a_page(2, next=3))
    assert (there.ending, there.urls) == (CIRCLE, [page(3), page(1), page(2)])
    on = walk_along(PAGES, asked, a_page(4, next=2), passed=there.path[1:])
    assert (on.ending, len(on.path)) == (CIRCLE, 4)
    assert on.path[-1].url == page(4)


def test_pages_are_counted_up_to_the_last_one() -> None:
    """They name it, so no guess has to try it."""
    pages = [a_page(number, next=number + 1, last=19) for number in range(1, 20)]
    walk = a_walk(pages[0], trail=PAGES)
    walk.came(pages[1])
    assert walk.fetching == [page(3), page(4), page(5)]
    assert a_walk(pages[0], trail=CLOSING).fetching == [page(2)], (
        "nothing is fetched ahead of a closing trail"
    )


# Which stored pages are asked for again


def a_stored_page(n: int, *entries: str, **changes: Any) -> StoredDocument:
    """A stored page; it links to the next one, except the last."""
    arrival = a_page(n, *entries) if n == LAST else a_page(n, *entries, next=n + 1)
    return a_row(arrival, n, **{"role": Role.PAGE, **changes})


LAST = 4
STORED = [a_stored_page(n) for n in (2, 3, 4)]
ENTRIES = known("e0", "e2", "e3", "e4")


def an_error(n: int, *, is_over: bool = False, **changes: Any) -> Attempt:
    """A failed page; `is_over`: it is tried again now."""
    return an_attempt(page(n), wait_seconds=-1.0 if is_over else 60.0, **changes)


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        pytest.param({}, [], id="nothing is new"),
        pytest.param({"has_news": True}, [2], id="behind one that brought something new"),
        pytest.param({"is_unwatched": True}, [2, 3, 4], id="nobody has looked for a while"),
        pytest.param({"ascends": True}, [4], id="the last one, where the news is on it"),
        pytest.param({"is_full": True}, [2, 3, 4], id="everything is asked for"),
        pytest.param({"missing": [an_error(2, is_over=True)]}, [2, 3, 4], id="a gap, and all behind it"),
        pytest.param(
            {"missing": [an_error(4, is_over=True)]}, [3, 4], id="a gap: does the one before link there still"
        ),
        pytest.param(
            {"missing": [an_error(4, is_over=True, status=503)]},
            [4],
            id="a gap that is no reason to ask that",
        ),
        pytest.param(
            {"missing": [an_error(3, is_over=True, reason=DocumentTruncated.slug, status=None)]},
            [3],
            id="one that broke off",
        ),
        pytest.param(
            {"missing": [an_error(3, reason=DocumentTruncated.slug, status=None)]}, [], id="which rests"
        ),
    ],
)
def test_which_stored_pages_are_asked_for_again(options: dict[str, Any], asked: list[int]) -> None:
    """R6, R14: all serve as stored, or as the publisher confirms."""
    asked_for = {"has_news": False, **options}
    walk = a_walk(
        a_page(0, next=2), trail=PAGES, stored=STORED, known=ENTRIES, looks_ahead=False, **asked_for
    )
    while walk.ending is None:
        (url,) = walk.fetching
        if walk.fetch_of(url).stored is None:  # without a condition, so it comes as it was
            walk.came(next(row for row in STORED if row.url == url).as_arrival())
        else:
            walk.unchanged(url)
    assert walk.fetched == [page(n) for n in asked]
    assert (walk.ending, walk.walked.path) == (END, [2, 3, 4])


def test_a_gap_that_rests_ends_the_walk() -> None:
    """R14, R6: its stored copy may be stale."""
    missing = [an_error(3, reason="timeout")]
    walk = walk_along(PAGES, a_page(0, next=2), stored=STORED, has_news=False, missing=missing)
    assert walk.ending == Ending(None, (DocumentUnavailable(page(3), reason="timeout"),))
    assert (walk.fetched, walk.walked.path) == ([], [2])


def test_behind_a_page_that_is_new_all_are_asked_for() -> None:
    """R6: the stored ones after it may be stale."""
    walk = a_walk(a_page(0, next=1), trail=PAGES, stored=STORED, known=ENTRIES, has_news=False)
    walk.came(a_page(1, next=2))
    for number in (2, 3, 4):
        walk.unchanged(page(number))
    assert (walk.ending, walk.walked.path) == (END, [1001, 2, 3, 4])


def test_what_a_stored_page_brings_is_seen_before_the_next_is_chosen() -> None:
    """R6: a stored page after it is fetched again only after news."""
    walk = a_walk(a_page(0, next=2), trail=PAGES, stored=STORED, known=ENTRIES)
    walk.came(a_page(2, "new", "e2", next=3))
    assert walk.fetching == [page(3)]
    walk.came(a_page(3, "e2", "e3", next=4))
    assert walk.ending == END
    assert walk.fetched == [page(2), page(3)], "page 3 brought nothing"


def test_a_page_that_was_detached_is_asked_for_and_joins_again() -> None:
    """R6: nobody looked meanwhile, so the pages after it are fetched too."""
    stored = [a_stored_page(2, rank=None), a_stored_page(3), a_stored_page(4)]
    walk = a_walk(a_page(0, next=2), trail=PAGES, stored=stored, known=ENTRIES, has_news=False)
    walk.unchanged(page(2))
    assert walk.fetching == [page(3)]
    walk.unchanged(page(3))
    assert walk.ending == END
    assert [[*each.ranks] for each in walk.requests if isinstance(each, Attach)] == [[2]]


def test_a_closing_trail_costs_one_page_where_nothing_is_new() -> None:
    """R6: a normal poll."""
    walk = a_walk(a_page(0, next=2), trail=CLOSING, stored=STORED, known=ENTRIES)
    assert walk.fetching == [page(2)]
    walk.unchanged(page(2))
    assert (walk.ending, walk.walked.path) == (COLLECTED, [2])
    walk = a_walk(a_page(0, next=2), trail=CLOSING, stored=STORED, known=ENTRIES)
    walk.came(a_page(2, "new", next=3))
    assert walk.fetching == [page(3)]


@pytest.mark.parametrize(("wait_seconds", "fetched"), [(60.0, []), (-1.0, [page(2)])])
def test_a_copy_serves_until_its_time_and_makes_the_feed_partial(
    wait_seconds: float, fetched: list[str]
) -> None:
    """R33, R6: also if its publisher fails again."""
    stored = [a_stored_page(2, memento="http://archive.test/2"), a_stored_page(3), a_stored_page(4)]
    missing = [an_attempt(page(2), wait_seconds=wait_seconds)]
    walk = walk_along(PAGES, a_page(0, next=2), stored=stored, has_news=False, missing=missing)
    assert (walk.fetched[:1], walk.walked.path[:1]) == (fetched, [2])
    assert walk.walked.notes[0].kind is MementoServed


def test_a_page_that_another_trail_has_fetched_by_another_spelling_is_dropped_by_that() -> None:
    """R6: a stale page with all its entries on other pages."""
    fresh = a_fresh(a_page(2, "e2"))
    store, answers = WalkStore(), Responses()
    answers.take(page(2), fresh)
    store.come[page(2)] = fresh
    store.add(known("e2"), Role.PAGE)
    other = f"{page(2)}#older"
    missing = [an_attempt(other, wait_seconds=-1.0, reason=PageStale.slug, status=None)]
    asked = dataclasses.replace(a_page(0), links={"next": other})
    walk = a_walk(asked, trail=PAGES, answers=answers, store=store, missing=missing)
    assert walk.ending == Ending(None, (PageStale(other),))
    assert (store.come, walk.fetched) == ({}, [])


# Pages that a cache has given in an older copy (R6)


def walk_to_stale(page_two: Arrival | None, **options: Any) -> WalkPlayer:
    """Walk a closing trail after a wholly new subscription document; None: it is unchanged."""
    begun = {"trail": CLOSING, "stored": STORED, "is_new_throughout": True, **options}
    walk = a_walk(
        a_page(0, "n1", "n2", span=DateSpan(50, 60), next=2), known=[*ENTRIES, *known("only")], **begun
    )
    walk.store.on_pages.update(map(entry_id, ("e2", "e3", "e4")))
    if page_two is None:
        walk.unchanged(page(2))
    else:
        walk.came(page_two)
    return walk


STALE = Ending(None, (PageStale(page(2)),))


@pytest.mark.parametrize(
    "page_two",
    [
        pytest.param(None, id="as it was"),
        pytest.param(a_page(2, "e2", next=3), id="the same entries"),
        pytest.param(a_page(2, "e3", "e4", next=3), id="entries of other pages"),
        pytest.param(a_page(2, "e2", span=DateSpan(1, 49), next=3), id="and older dates"),
    ],
)
def test_a_page_that_leaves_a_gap_is_an_older_copy(page_two: Arrival | None) -> None:
    """R6: all entries before are new, so the former ones must be here."""
    walk = walk_to_stale(page_two)
    assert (walk.ending, walk.kept, walk.walked.path) == (STALE, [], [])
    assert walk.store.dropped == ([] if page_two is None else [page(2)])


@pytest.mark.parametrize(
    "page_two",
    [
        pytest.param(a_page(2, "new", "e2", next=3), id="an entry that was not stored"),
        pytest.param(a_page(2, "only", "e2", next=3), id="an entry that only the page before had"),
        pytest.param(
            a_page(2, "e2", span=DateSpan(1, 50), next=3), id="dates that reach up to the page before"
        ),
        pytest.param(an_arrival(page(2), links={"next": page(3)}, keys=[]), id="no entry at all"),
    ],
)
def test_a_page_that_closes_the_gap_is_taken(page_two: Arrival) -> None:
    """R6."""
    walk = walk_to_stale(page_two)
    assert walk.ending != STALE
    assert page(2) in walk.urls


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"is_new_throughout": False}, id="the page before had stored entries"),
        pytest.param({"trail": PAGES}, id="not all was collected before"),
        pytest.param(
            {"missing": [an_error(2, is_over=True, reason=PageStale.slug)], "now": NOW + DAY + 1},
            id="it has been so for a day",
        ),
    ],
)
def test_there_is_no_gap_to_be_left(options: dict[str, Any]) -> None:
    """R6: its publisher replaced them with as many others, or nobody knows."""
    walk = walk_to_stale(a_page(2, "e2", next=3), **options)
    assert page(2) in walk.urls


def test_an_older_copy_is_one_the_next_time_too() -> None:
    """R6: even if the pages before it have no news then."""
    missing = [an_error(2, is_over=True, reason=PageStale.slug)]
    walk = walk_to_stale(a_page(2, "e2", next=3), missing=missing, is_new_throughout=False)
    assert walk.ending == STALE


def test_no_copy_is_older_in_front_of_the_document_that_was_asked_for() -> None:
    """R6: backwards, pages get newer."""
    back = Trail(relation="previous", is_paged=True, is_closing=True)
    walk = a_walk(a_page(0, "n1", previous=2), trail=back, known=known("e2"), is_new_throughout=True)
    walk.store.on_pages.add(entry_id("e2"))
    walk.came(a_page(2, "e2"))
    assert page(2) in walk.urls


# How pages are stored


def test_a_page_that_adds_nothing_is_not_stored() -> None:
    """R6: another document serves an equal copy of each of its entries."""
    walk = walk_along(PAGES, a_page(0, next=2), a_page(2, "e0", next=3), a_page(3), known=known("e0"))
    assert (walk.kept, walk.store.dropped) == ([page(3)], [page(2)])
    assert walk.urls == [FEED, page(2), page(3)]


def test_a_page_is_stored_with_a_better_copy_of_an_entry() -> None:
    """R6, R10: an update is one."""
    updated = dataclasses.replace(a_page(2), keys=[a_key("e0", 9.0)])
    walk = walk_along(PAGES, a_page(0, next=2), updated, known=known("e0"))
    assert walk.kept == [page(2)]


def test_a_stored_page_that_is_the_same_is_looked_at() -> None:
    """R14: its body is not stored again."""
    row = a_stored_page(4)
    walk = walk_along(PAGES, a_page(0, next=4), a_page(4), stored=[row], known=ENTRIES)
    assert walk.told == [Fetch, FindKnown, Drop, Touch]
    assert walk.walked.path == [4]


@pytest.mark.parametrize(
    ("changes", "is_remembered"),
    [
        pytest.param({}, True, id="part of the feed"),
        pytest.param({"rank": None}, False, id="what a complete feed took away stays away"),
        pytest.param({"rank": None, "family": Family.RSS}, True, id="what another format took does not"),
    ],
)
def test_what_leaves_a_page_is_remembered(changes: dict[str, Any], is_remembered: bool) -> None:
    """R6, R1, R23."""
    row = a_stored_page(4, **changes)
    walk = walk_along(PAGES, a_page(0, next=4), a_page(4, "new"), stored=[row], known=ENTRIES)
    (placement,) = walk.store.kept
    assert (placement.role, placement.remembers) == (Role.PAGE, row if is_remembered else None)


def test_pages_stand_in_the_order_of_the_trail() -> None:
    """R20: a new one stands before stored ones, which keep their places."""
    walk = walk_along(
        PAGES, a_page(0, next=1), a_page(1, next=2), a_page(2, "x", next=3), stored=STORED, has_news=False
    )
    ranks = [placement.rank or 0 for placement in walk.store.kept]
    assert ranks[1] == 2
    assert all(one < other for one, other in itertools.pairwise(ranks))


def test_a_page_that_was_fetched_for_another_trail_is_not_fetched_again() -> None:
    """R14, R17."""
    walk = walk_along(PAGES, a_page(0, next=2), a_page(2))
    answers = walk.answers
    again = a_walk(a_page(0, next=3), trail=PAGES, answers=answers, store=walk.store)
    again.failed(page(3), GONE)
    third = a_walk(a_page(0, next=3), trail=PAGES, answers=answers)
    assert (third.ending, third.fetched) == (again.ending, [])
