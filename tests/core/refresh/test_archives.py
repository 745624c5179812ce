"""Archive documents on a walk: which stored ones are fetched again, the meaning of responses, and the stored
result.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import pytest

from tests.core.refresh.makers import (
    DAY,
    GONE,
    HOUR,
    NOW,
    UNAVAILABLE,
    WEEK,
    O,
    a_feed,
    a_fresh,
    a_row,
    an_attempt,
    archive,
)
from tests.core.refresh.walking import WalkPlayer, WalkStore, a_publisher, a_walk, finish
from tests.makers import FEED, a_key, an_arrival
from wholefeed.core.model import Family, entry_id
from wholefeed.core.notes import (
    ArchiveChanged,
    ArchivesShift,
    DocumentTruncated,
    DocumentUnavailable,
    End,
    Ending,
    FormatMismatch,
    MementoServed,
)
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.accounting import Departure, Shifts
from wholefeed.core.refresh.archives import MOST_WAITING
from wholefeed.core.refresh.arrivals import FreshDocument
from wholefeed.core.refresh.asking import (
    Depart,
    Doubtful,
    Drop,
    Fetch,
    KeepDocument,
    KeepTogether,
    NoteFeed,
    SettleDoubtful,
    Touch,
)
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival

TRUE_END = Ending(End.OLDEST)
COPY = "http://archive.test/copy"
MEMENTO: Final[dict[str, Any]] = {"origin": Origin.MEMENTO, "memento": COPY}


def an_archive(number: int, *entries: str, **changes: Any) -> Arrival:
    """Links to the next lower number; its entries make its body."""
    names = entries or (f"e{number}",)
    older = archive(number - 1) if number > 1 else None
    return an_arrival(
        archive(number),
        older,
        keys=[a_key(name) for name in names],
        **{"digest": repr((number, names)).encode(), **changes},
    )


def store_chain(length: int, at: int = 0, **changes: Any) -> list[StoredDocument]:
    """A stored, settled chain, newest first, with one different document."""
    rows = [a_row(an_archive(n), n, rank=length - n) for n in range(length, 0, -1)]
    return [dataclasses.replace(row, **changes) if row.id == at else row for row in rows]


def an_error(number: int, *, is_over: bool = False, **changes: Any) -> Attempt:
    """A failed archive; `is_over`: it is tried again now."""
    return an_attempt(archive(number), wait_seconds=-1.0 if is_over else HOUR, **changes)


def is_truncated(fresh: FreshDocument) -> FreshDocument:
    note = DocumentTruncated(fresh.arrival.url, breaks_off=True)
    return dataclasses.replace(fresh, reading_notes=(note,))


# Which stored documents are fetched again

OPEN = {"is_settled": False, "checked_at": NOW - DAY}
NEVER_FINAL = {"is_marked": False, "is_uncacheable": True, "checked_at": NOW - DAY}
BROKEN_OFF: dict[str, Any] = {"reason": DocumentTruncated.slug, "status": None}
OTHERWISE: dict[str, Any] = {"reason": FormatMismatch.slug, "status": None}


@pytest.mark.parametrize(
    ("at", "changes", "options", "asked"),
    [
        pytest.param(0, {}, {}, [], id="all are settled"),
        pytest.param(3, OPEN, {}, [3], id="the newest one is open"),
        pytest.param(3, {"is_settled": False}, {}, [], id="it was looked at today"),
        pytest.param(3, OPEN, {"changed_at": NOW - DAY}, [], id="nothing has changed since"),
        pytest.param(2, {"is_settled": False, "checked_at": NOW - 60}, {}, [2], id="no longer the newest"),
        pytest.param(2, NEVER_FINAL, {}, [2], id="it must not be cached"),
        pytest.param(2, {}, {"is_full": True}, [3, 2, 1], id="everything is asked for"),
        pytest.param(2, {}, {"is_forced": True}, [], id="insisting changes nothing"),
        pytest.param(2, {"family": Family.RSS}, {}, [2], id="it is of another format"),
        pytest.param(2, {}, {"missing": [an_error(2, is_over=True, **BROKEN_OFF)]}, [2], id="it broke off"),
        pytest.param(2, {}, {"missing": [an_error(2, **BROKEN_OFF)]}, [], id="and rests"),
        pytest.param(2, {}, {"missing": [an_error(2, **BROKEN_OFF)], "is_forced": True}, [2], id="insisted"),
        pytest.param(
            2, {}, {"missing": [an_error(2, is_over=True, **OTHERWISE)]}, [2], id="it came in another format"
        ),
        pytest.param(2, {}, {"missing": [an_error(2, is_over=True)]}, [], id="it is here after all"),
        pytest.param(2, MEMENTO, {"missing": [an_error(2, is_over=True)]}, [2], id="a copy stands in"),
        pytest.param(2, MEMENTO, {"missing": [an_error(2)]}, [], id="and its document rests"),
    ],
)
def test_which_stored_archives_are_fetched_again(
    at: int, changes: dict[str, Any], options: dict[str, Any], asked: list[int]
) -> None:
    """R13, R14, R23, R33; docs/faults.md row 49."""
    rows = store_chain(3, at, **changes)
    walk = a_walk(an_arrival(FEED, archive(3)), stored=rows, looks_ahead=False, **options)
    finish(walk, a_publisher(*map(an_archive, (3, 2, 1))))
    assert walk.fetched == [archive(n) for n in asked]
    fetches = [request for request in walk.requests if isinstance(request, Fetch)]
    is_conditional = not options.get("is_full")
    assert all((each.stored in rows) is is_conditional for each in fetches)


def test_one_that_came_in_another_format_is_missing_until_its_time() -> None:
    """R23: for any stored copy."""
    walk = a_walk(an_arrival(FEED, archive(2)), stored=store_chain(2), missing=[an_error(2, **OTHERWISE)])
    assert walk.ending is not None
    assert walk.ending.notes[0] == DocumentUnavailable(archive(2), reason=FormatMismatch.slug)
    feed = a_feed(family=Family.RSS)  # the feed has another format now than it had then
    walk = a_walk(
        an_arrival(FEED, archive(2)), stored=store_chain(2), missing=[an_error(2, **OTHERWISE)], feed=feed
    )
    assert (walk.ending, walk.fetched) == (TRUE_END, [])


# The meaning of a response


def walk_over(at: int, **changes: Any) -> WalkPlayer:
    missing = [an_error(at, is_over=True)] if "memento" in changes else changes.pop("missing", [])
    rows = store_chain(3, at, **(changes or OPEN))
    walk = a_walk(an_arrival(FEED, archive(3)), stored=rows, missing=missing, looks_ahead=False)
    assert walk.fetching == [archive(at)]
    return walk


@pytest.mark.parametrize(("at", "is_settled"), [(3, False), (2, True)])
def test_one_that_is_as_it_was_is_settled_behind_the_newest(at: int, is_settled: bool) -> None:
    """R13."""
    walk = walk_over(at)
    walk.unchanged(archive(at))
    (touch,) = [each for each in walk.requests if isinstance(each, Touch)]
    assert (touch.document, touch.is_settled) == (at, is_settled)
    assert (walk.ending, walk.walked.path, walk.walked.notes) == (TRUE_END, [3, 2, 1], [])


@pytest.mark.parametrize(
    ("failure", "touched"), [(GONE, [(2, None)]), (UNAVAILABLE, [])], ids=["gone", "unavailable"]
)
def test_one_that_fails_serves_as_it_is_stored(failure: Any, touched: list[tuple[int, None]]) -> None:
    """R13; docs/faults.md row 53: a gone archive is looked at, not settled."""
    walk = walk_over(2)
    walk.failed(archive(2), failure)
    found = [(each.document, each.is_settled) for each in walk.requests if isinstance(each, Touch)]
    assert found == touched
    assert (walk.ending, walk.walked.path, walk.walked.notes) == (TRUE_END, [3, 2, 1], [])
    assert walk.walked.failures == {archive(2): failure}


def test_one_that_has_changed_replaces_the_stored_one() -> None:
    """R13: RFC 5005 forbids the change, so a note names it."""
    walk = walk_over(2)
    walk.came(an_archive(2, "other"))
    (placement,) = walk.store.kept
    row = store_chain(3)[1]
    assert (placement.url, placement.rank, placement.may_wait) == (archive(2), row.rank, False)
    assert (placement.remembers, placement.is_settled) == (None, True)
    assert walk.walked.notes == [ArchiveChanged(archive(2))]


def test_one_that_comes_as_it_was_is_no_change() -> None:
    """R13: some publishers ignore conditions."""
    walk = walk_over(2)
    walk.came(an_archive(2))
    assert (walk.kept, walk.walked.notes) == ([archive(2)], [])
    assert not [each for each in walk.requests if isinstance(each, Depart)]


def test_one_that_broke_off_replaces_no_whole_one() -> None:
    """docs/faults.md row 49: the stored copy serves for this refresh."""
    walk = walk_over(2)
    walk.came(is_truncated(a_fresh(an_archive(2, "half"))))
    assert (walk.store.dropped, walk.kept) == ([archive(2)], [])
    assert (walk.ending, walk.walked.path, walk.fetched) == (TRUE_END, [3, 2, 1], [archive(2)])


def test_one_that_broke_off_replaces_one_that_did() -> None:
    """docs/faults.md row 49."""
    walk = walk_over(2, missing=[an_error(2, is_over=True, **BROKEN_OFF)])
    walk.came(is_truncated(a_fresh(an_archive(2, "half"))))
    assert walk.kept == [archive(2)]
    assert [note.kind for note in walk.walked.notes] == [DocumentTruncated, ArchiveChanged]


def test_an_error_changes_nothing_of_one_in_another_format() -> None:
    """R23: it stays missing for its format."""
    walk = walk_over(3, family=Family.RSS)
    walk.failed(archive(3), UNAVAILABLE)
    note = DocumentUnavailable(archive(3), reason=FormatMismatch.slug)
    assert walk.ending is not None
    assert walk.ending.notes[0] == note
    assert walk.walked.failures == {archive(3): UNAVAILABLE}


@pytest.mark.parametrize(
    "answer",
    [GONE, UNAVAILABLE, an_archive(2, family=Family.RSS)],
    ids=["gone", "unavailable", "another format"],
)
def test_a_copy_serves_where_its_publisher_does_not_give_the_document(answer: Any) -> None:
    """R33: the feed is partial, and the copy does not count as looked at."""
    walk = walk_over(2, **MEMENTO)
    finish(walk, lambda _url: answer)
    assert (walk.ending, walk.walked.path, walk.kept) == (TRUE_END, [3, 2, 1], [])
    assert [note.kind for note in walk.walked.notes] == [MementoServed]
    assert not [each for each in walk.requests if isinstance(each, Touch)]


def test_the_publisher_s_own_document_replaces_a_copy_even_with_the_same_body() -> None:
    """R33."""
    walk = walk_over(2, **MEMENTO)
    walk.came(an_archive(2))
    assert (walk.kept, walk.walked.notes) == ([archive(2)], [])


# The new places of entries that left an archive (R35)

A_WEEK_AGO: dict[str, Any] = {"fetched_at": NOW - WEEK, "checked_at": NOW - WEEK}


def walk_with_departure(*left: str, at: int = 3, length: int = 3, **options: Any) -> WalkPlayer:
    rows = [dataclasses.replace(row, **A_WEEK_AGO) for row in store_chain(length, at, is_settled=False)]
    store = WalkStore()
    store.departures = {at: Departure(frozenset(map(entry_id, left)))}
    walk = a_walk(an_arrival(FEED, archive(length)), stored=rows, store=store, looks_ahead=False, **options)
    walk.came(an_archive(at, "new"))
    return walk


def test_what_has_changed_waits_until_its_entries_are_found() -> None:
    """R35: the next archive is fetched, and one transaction stores both."""
    walk = walk_with_departure("e3")
    assert (walk.fetching, walk.kept) == ([archive(2)], [])
    walk.came(an_archive(2, "e3", "e2"))
    assert walk.kept == [archive(2), archive(3)]
    (together,) = [each for each in walk.requests if isinstance(each, KeepTogether)]
    assert [*together.placements] == [archive(2), archive(3)], "the oldest first"
    assert all(each.remembers is None for each in walk.store.kept)
    assert (walk.ending, walk.walked.path) == (TRUE_END, [1002, 1001, 1])


def test_what_has_changed_is_stored_where_the_next_is_as_it_was() -> None:
    """R35: no entry moved there, so it was deleted."""
    walk = walk_with_departure("e3")
    walk.unchanged(archive(2))
    assert (walk.kept, walk.fetched) == ([archive(3)], [archive(3), archive(2)])
    assert walk.walked.path == [1001, 2, 1]
    assert not walk.store.kept[0].is_doubtful


def test_what_has_changed_is_stored_at_the_end_of_the_chain() -> None:
    """R35: nothing after the last archive can have the entry."""
    walk = walk_with_departure("e1", at=1, length=1)
    assert (walk.ending, walk.kept, walk.walked.path) == (TRUE_END, [archive(1)], [1001])


def test_where_the_next_cannot_be_had_the_entries_stay() -> None:
    """R35: as remembered and doubtful, until a pass settles them; noted first."""
    walk = walk_with_departure("e3")
    walk.failed(archive(2), UNAVAILABLE)
    (placement,) = walk.store.kept
    assert placement.remembers is not None
    assert (placement.remembers.id, placement.is_doubtful) == (3, True)
    kinds = walk.told
    assert kinds.index(NoteFeed) < kinds.index(KeepDocument)
    (noted,) = [each for each in walk.requests if isinstance(each, NoteFeed)]
    shifts = Shifts.read(noted.shifts or "{}")
    assert (shifts.left, shifts.missed, shifts.attempts) == (archive(3), archive(2), 1)
    assert shifts.next_at > NOW


def test_a_hole_in_the_chain_leaves_the_entries_too() -> None:
    """R35, R34: the missing document may have them."""
    walk = a_walk(
        an_arrival(FEED, archive(3)),
        stored=[a_row(an_archive(3), 3, **{**A_WEEK_AGO, "is_settled": False})],
        store=WalkStore(),
        looks_ahead=False,
    )
    walk.store.departures = {3: Departure(frozenset([entry_id("e3")]))}
    walk.came(an_archive(3, "new"))
    walk.failed(archive(2))
    assert walk.fetching == [archive(1)], "the walk looks behind it all the same"
    walk.came(an_archive(1))
    assert [(each.url, each.is_doubtful) for each in walk.store.kept] == [
        (archive(3), True),
        (archive(1), False),
    ]


def test_doubtful_entries_are_looked_for_and_leave_when_nobody_has_them() -> None:
    """R35."""
    shifts = Shifts(left=archive(3), since=NOW - DAY, passed_at=NOW - 2 * DAY)
    store = WalkStore()
    store.doubtful = {entry_id("lost")}
    rows = [dataclasses.replace(row, **A_WEEK_AGO) for row in store_chain(3)]
    walk = a_walk(
        an_arrival(FEED, archive(3)), stored=rows, store=store, feed=a_feed(shifts=shifts.written())
    )
    assert walk.told[0] is Doubtful
    walk.unchanged(archive(3))
    walk.unchanged(archive(2))
    assert SettleDoubtful in walk.told
    (*_, noted) = [each for each in walk.requests if isinstance(each, NoteFeed)]
    assert Shifts.read(noted.shifts or "{}").left == ""


def test_nobody_is_asked_what_is_doubtful_where_nothing_is() -> None:
    """R35: the store gets no question."""
    assert a_walk(an_arrival(FEED, archive(3)), stored=store_chain(3)).requests == []


def test_a_feed_that_shifts_is_told_as_such_once() -> None:
    """R35: not for each archive."""
    shifts = Shifts(runs=2, ran_at=NOW - DAY, passed_at=NOW - DAY)
    walk = walk_with_departure("e3", feed=a_feed(shifts=shifts.written()))
    assert [note.kind for note in walk.walked.notes] == [ArchivesShift]


def test_no_more_than_so_many_documents_wait() -> None:
    """R35: documents stored early leave their entries remembered; the walk goes on."""
    length = MOST_WAITING + 2
    walk = walk_with_departure("lost", at=length, length=length)
    for number in range(length - 1, 1, -1):
        walk.store.departures[number] = Departure(frozenset([entry_id(f"lost {number}")]))
        walk.came(an_archive(number, f"new {number}"))
    doubtful = [placement.is_doubtful for placement in walk.store.kept]
    assert doubtful == [True] * MOST_WAITING
    assert walk.fetching == [archive(1)]


def test_a_changed_archive_is_stored_before_the_next_is_chosen() -> None:
    """R35: its lost entries decide whether the next archive is fetched."""
    walk = walk_with_departure()
    assert walk.told == [Fetch, Depart, KeepDocument]
    assert (walk.ending, walk.fetched) == (TRUE_END, [archive(3)])


def test_an_account_counts_a_copy_for_nothing() -> None:
    """R35, R33: it does not show the present place of entries."""
    rows = [dataclasses.replace(row, **A_WEEK_AGO) for row in store_chain(3, 3, is_settled=False)]
    rows[1] = dataclasses.replace(rows[1], **MEMENTO)
    store = WalkStore()
    store.departures = {3: Departure(frozenset([entry_id("e3")]))}
    missing = [an_error(2)]
    walk = a_walk(an_arrival(FEED, archive(3)), stored=rows, store=store, missing=missing)
    walk.came(an_archive(3, "new"))
    assert [placement.is_doubtful for placement in store.kept] == [True]
    assert (walk.ending, walk.fetched) == (TRUE_END, [archive(3)])


def test_what_does_not_join_is_dropped_and_nothing_else() -> None:
    """R34."""
    walk = a_walk(an_arrival(FEED, archive(3)), looks_ahead=False)
    finish(walk, a_publisher(an_archive(3), an_arrival(archive(1), site_id="urn:x"), an_arrival(f"{O}/x")))
    assert [each.url for each in walk.requests if isinstance(each, Drop)] == [archive(1)]


def test_an_account_that_is_open_behind_a_hole_names_the_document_that_is_missing() -> None:
    """R34, R35: it may have the entries, and its failure sets the next attempt."""
    rows = [row for row in store_chain(4) if row.id != 3]
    store = WalkStore()
    store.departures = {2: Departure(frozenset([entry_id("gone")]))}
    walk = a_walk(an_arrival(FEED, archive(4)), stored=rows, store=store, is_full=True, looks_ahead=False)
    walk.came(an_archive(4))
    walk.failed(archive(3), UNAVAILABLE)
    walk.came(an_archive(2, "new"))
    walk.came(an_archive(1))
    assert walk.ending is not None
    noted = [request.shifts for request in walk.requests if isinstance(request, NoteFeed) and request.shifts]
    assert Shifts.read(noted[-1]).missed == document_key(archive(3))
