"""Entries that left an archive for an unknown place, and the document with the answer (R35)."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from tests.core.refresh.makers import NOW
from tests.core.refresh.world import Page, Publisher, World
from tests.makers import FEED
from tests.patching import set_constant
from wholefeed.core.model import EntryId, State, entry_id
from wholefeed.core.refresh.accounting import Accounting, AccountVerdict, Departure, Shifts
from wholefeed.core.refresh.arrivals import Failure
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS

DAY: Final = DAY_SECONDS + 3600
OLD: Final = NOW - 100 * DAY_SECONDS
"""Epoch seconds of the last fetch and look before each test."""
KNOWN: Final = Shifts(runs=2, ran_at=NOW, passed_at=NOW)


def ids(names: str) -> frozenset[EntryId]:
    return frozenset(map(entry_id, names))


def url(number: int) -> str:
    return f"http://o.test/archive/{number}"


class Account:
    """An account of archives by number; entries have one-letter names."""

    def __init__(
        self, shifts: Shifts | None = None, doubtful: str = "", *, now: float = NOW, **how: bool
    ) -> None:
        self.account = Accounting(shifts or Shifts(), ids(doubtful), now=now, **how)

    def changed(self, number: int, *, left: str, held: str, gap: bool = False) -> AccountVerdict:
        return self.account.account_changed(url(number), Departure(ids(left), gap), ids(held))

    def added(self, number: int, *, held: str) -> AccountVerdict:
        return self.account.account_added(url(number), ids(held))

    def unchanged(self, number: int, fetched_at: float = OLD) -> AccountVerdict:
        return self.account.account_unchanged(url(number), fetched_at)

    def passed(self, number: int, checked_at: float = OLD, fetched_at: float = OLD) -> AccountVerdict:
        return self.account.account_skipped(url(number), checked_at, fetched_at)

    def missed(self, number: int, next_at: float = NOW + 60) -> AccountVerdict:
        return self.account.account_missing(url(number), next_at)

    def asks(self, number: int, checked_at: float = OLD) -> bool:
        return self.account.asks(url(number), checked_at)

    def end(self, *, is_true_end: bool = True) -> AccountVerdict:
        return self.account.end(is_true_end=is_true_end)

    @property
    def shifts(self) -> Shifts:
        return self.account.shifts


# Which document is asked next, and when that ends


def test_a_document_that_loses_nothing_asks_for_no_other() -> None:
    """R13, R35: growth of an archive proves nothing."""
    account = Account()
    assert account.changed(1, left="", held="ab") is AccountVerdict.IDLE
    assert not account.asks(2)
    assert account.passed(2) is AccountVerdict.IDLE
    assert account.end() is AccountVerdict.IDLE
    assert account.shifts == Shifts()


def test_the_next_older_document_tells_where_an_entry_is() -> None:
    """R35: one after another, while each has changed and lost entries."""
    account = Account()
    assert account.changed(1, left="c", held="ed") is AccountVerdict.OPEN
    assert account.asks(2)
    assert account.changed(2, left="a", held="cb") is AccountVerdict.OPEN
    assert account.asks(3)
    assert account.changed(3, left="", held="a") is AccountVerdict.CLOSED
    assert not account.asks(4)
    assert not account.account.settles
    assert account.shifts == Shifts(passed_at=NOW, runs=1, ran_at=NOW)


def test_a_document_that_is_as_it_was_ends_the_search() -> None:
    """R8, R35: nothing moved into or past it, so lost entries were deleted."""
    account = Account()
    assert account.changed(1, left="c", held="ed") is AccountVerdict.OPEN
    assert account.unchanged(2) is AccountVerdict.CLOSED
    assert account.shifts == Shifts(passed_at=NOW)


def test_the_end_of_the_chain_ends_the_search() -> None:
    """R8, R35: an entry lost by the oldest archive was deleted."""
    account = Account()
    assert account.changed(1, left="a", held="b") is AccountVerdict.OPEN
    assert account.end() is AccountVerdict.CLOSED
    assert account.shifts == Shifts(), "nothing was asked for"


def test_what_several_documents_lose_may_stand_far_behind() -> None:
    """R35: with more new entries than an archive holds, every entry moves past the next archive."""
    account = Account()
    assert account.changed(1, left="fe", held="hg", gap=True) is AccountVerdict.OPEN
    assert account.changed(2, left="dc", held="ji", gap=True) is AccountVerdict.OPEN
    assert account.changed(3, left="ba", held="fe", gap=True) is AccountVerdict.OPEN
    assert account.added(4, held="dc") is AccountVerdict.OPEN
    assert account.added(5, held="ba") is AccountVerdict.CLOSED


def test_what_moved_up_is_accounted_for() -> None:
    """R35: after a deletion each archive gets the newest entry of the next one."""
    account = Account()
    assert account.changed(1, left="e", held="fd") is AccountVerdict.OPEN
    assert account.changed(2, left="d", held="cb") is AccountVerdict.OPEN
    assert account.changed(3, left="b", held="a") is AccountVerdict.OPEN
    assert account.end() is AccountVerdict.CLOSED
    assert account.shifts.runs == 0, "no archive took over what a newer one had lost"


# Where nobody can tell


def test_what_cannot_be_had_breaks_the_pass_off() -> None:
    """R14, R35: the entries stay; only the failed document is tried again, in its time."""
    account = Account()
    account.changed(1, left="c", held="ed")
    assert account.changed(2, left="b", held="c") is AccountVerdict.OPEN
    assert account.missed(3, NOW + 60) is AccountVerdict.BROKEN
    assert not account.asks(4)
    shifts = account.shifts
    assert (shifts.left, shifts.missed, shifts.attempts) == (url(2), url(3), 1)
    assert not shifts.is_due(NOW + 59)
    assert shifts.is_due(NOW + 60)
    again = Account(shifts, "b", now=NOW + 60)
    assert not again.asks(1, NOW + 1)
    assert again.passed(1, NOW + 1, NOW + 1) is AccountVerdict.OPEN
    assert again.passed(2, NOW + 2, NOW + 2) is AccountVerdict.OPEN
    assert again.asks(3, NOW + 3), "though an answer of 404 counts as a look"
    assert again.changed(3, left="", held="ba") is AccountVerdict.CLOSED
    assert again.shifts.left == ""
    assert not again.shifts.is_due(NOW + 10 * DAY)


def test_a_document_that_stays_away_is_counted() -> None:
    """R14: the pauses grow with each attempt; a person's refresh skips them."""
    first = Account()
    first.changed(1, left="c", held="ed")
    first.missed(2)
    second = Account(first.shifts, "c", now=NOW + 60)
    assert second.account.shifts.count_attempts(url(2)) == 2
    second.passed(1, NOW + 1, NOW + 1)
    second.missed(2, NOW + 180)
    assert second.shifts.attempts == 2
    assert not Account(second.shifts, "c", now=NOW + 100).asks(2)
    assert Account(second.shifts, "c", now=NOW + 100, is_forced=True).asks(2)


def test_what_leaves_while_a_pass_waits_is_looked_for_everywhere() -> None:
    """R35: documents read before an entry left prove nothing about it."""
    first = Account()
    first.changed(1, left="c", held="ed")
    first.changed(2, left="b", held="c")
    first.missed(3, NOW + DAY_SECONDS)
    later = NOW + 3600
    second = Account(first.shifts, "b", now=later)
    assert second.changed(1, left="d", held="fe") is AccountVerdict.OPEN
    assert not second.asks(2), "the pass waits (R14)"
    assert second.passed(2, NOW + 2, NOW + 2) is AccountVerdict.BROKEN
    assert second.shifts.left == url(2), "the oldest that lost any"
    third = Account(second.shifts, "bd", now=NOW + DAY_SECONDS)
    assert third.passed(1, later, later) is AccountVerdict.OPEN
    assert third.asks(2, NOW + 2)


def test_an_unchanged_document_tells_nothing_of_what_left_an_older_one() -> None:
    """R35: it ends the search only after the oldest document that lost the entry."""
    account = Account(Shifts(left=url(2), since=NOW - DAY, passed_at=NOW - DAY), "c")
    assert account.asks(1)
    assert account.unchanged(1) is AccountVerdict.OPEN
    assert account.unchanged(2) is AccountVerdict.OPEN
    assert account.unchanged(3) is AccountVerdict.CLOSED
    assert account.account.settles


def test_a_document_that_was_read_after_an_entry_had_left_tells_nothing_of_it() -> None:
    """R35: the entry may have moved past it in between."""
    account = Account(Shifts(left=url(1), since=NOW - DAY, passed_at=NOW - DAY), "c")
    assert account.changed(1, left="", held="ed") is AccountVerdict.OPEN
    assert account.unchanged(2, NOW - 3600) is AccountVerdict.OPEN
    assert account.changed(3, left="", held="c") is AccountVerdict.CLOSED
    assert not account.account.settles


def test_a_chain_that_was_renamed_is_asked_to_its_end() -> None:
    """R35: if no document of the path is known to have lost entries."""
    account = Account(Shifts(left="http://o.test/old"), "c")
    assert account.unchanged(1) is AccountVerdict.OPEN
    assert account.unchanged(2) is AccountVerdict.OPEN
    assert account.end() is AccountVerdict.CLOSED
    assert account.account.settles


def test_what_stands_somewhere_again_needs_no_pass() -> None:
    """R35: no entry is doubtful any more."""
    account = Account(Shifts(left=url(1), runs=1, ran_at=NOW))
    assert not account.asks(1)
    account.passed(1)
    account.end()
    assert account.shifts == Shifts(runs=1, ran_at=NOW)


def test_too_much_that_waits_is_stored_meanwhile() -> None:
    """R35: their departed entries are doubtful until the pass ends; a kill repeats no request."""
    account = Account()
    account.changed(1, left="c", held="ed")
    account.account.mark_doubtful()
    halfway = account.shifts
    assert (halfway.left, halfway.is_due(NOW)) == (url(1), True)
    resumed = Account(halfway, "c", now=NOW + 10)
    assert resumed.passed(1, NOW + 1, NOW + 1) is AccountVerdict.OPEN
    assert resumed.asks(2)
    assert account.unchanged(2) is AccountVerdict.CLOSED
    assert account.account.settles
    assert account.shifts.left == ""


# How often


def test_a_pass_is_made_once_a_day() -> None:
    """R35: until then, entries that left an archive stay remembered."""
    account = Account(Shifts(passed_at=NOW - DAY_SECONDS + 1))
    assert account.changed(1, left="c", held="ed") is AccountVerdict.OPEN
    assert not account.asks(2)
    assert account.passed(2) is AccountVerdict.BROKEN
    assert account.shifts.left == url(1)
    assert not account.shifts.is_due(NOW)
    assert account.shifts.is_due(NOW + 1)


def test_two_passes_through_three_archives_tell_that_a_feed_shifts() -> None:
    """R35: then a pass runs once a week, and sooner only if new entries may follow."""
    first = run_through(Shifts())
    assert not first.is_known(NOW)
    second = run_through(first, now=NOW + DAY)
    assert second.is_known(NOW + DAY)
    assert not second.may_pass(NOW + 3 * DAY)
    assert second.may_pass(NOW + 3 * DAY, has_gap=True)
    assert second.may_pass(NOW + DAY + WEEK_SECONDS)


def run_through(shifts: Shifts, now: float = NOW) -> Shifts:
    account = Account(shifts, now=now)
    account.changed(1, left="c", held="ed")
    account.changed(2, left="a", held="cb")
    account.changed(3, left="", held="a")
    return account.shifts


def test_a_pass_in_which_nothing_moves_ends_that_knowledge() -> None:
    """R35: a publisher may repair its archives; findings last a month."""
    account = Account(KNOWN, now=NOW + WEEK_SECONDS)
    account.changed(1, left="c", held="ed")
    account.unchanged(2)
    assert not account.shifts.is_known(NOW + WEEK_SECONDS)
    assert KNOWN.is_known(NOW + 29 * DAY_SECONDS)
    assert not KNOWN.is_known(NOW + 31 * DAY_SECONDS)


def test_new_entries_behind_a_gap_are_not_waited_for() -> None:
    """R35: unseen archives follow one that shares no entry with its former state."""
    account = Account(KNOWN, "x", now=NOW + DAY)
    assert account.changed(1, left="cb", held="ed", gap=True) is AccountVerdict.OPEN
    assert account.asks(2)
    today = Account(KNOWN, now=NOW + 60)
    assert today.changed(1, left="cb", held="ed", gap=True) is AccountVerdict.OPEN
    assert not today.asks(2)


def test_a_full_refresh_is_no_pass() -> None:
    """R14, R35: it asks for everything, and settles doubtful entries."""
    account = Account(Shifts(passed_at=NOW, left=url(1), since=NOW), "c", is_full=True)
    assert account.asks(1)
    account.changed(1, left="d", held="e")
    assert account.changed(2, left="", held="d") is AccountVerdict.OPEN
    assert account.end() is AccountVerdict.CLOSED
    assert account.account.settles
    assert account.shifts == Shifts(passed_at=NOW)


@pytest.mark.parametrize("field", ["passed_at", "ran_at", "broken_at"])
def test_what_a_wrong_clock_has_noted_puts_nothing_off(field: str) -> None:
    """Row 73 of docs/faults.md: a clock that ran ahead noted a future instant."""
    values: dict[str, Any] = {"runs": 2, "ran_at": NOW, "next_at": NOW + 10**9, field: NOW + 10**8}
    assert Shifts(**values).may_pass(NOW)


def test_what_is_known_is_written_as_json() -> None:
    """Unknown members from another version are left out."""
    known = Shifts(passed_at=NOW, left=url(1), runs=1)
    assert Shifts.read(known.written()) == known
    assert Shifts().written() == "{}"
    assert Shifts.read('{"runs": 1, "later": 2}') == Shifts(runs=1)


# A publisher with shifting archives, and any events


class Shifting:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.posts = list(range(chance.randint(5, 30)))
        self.publisher = Publisher({})
        self.deleted: set[str] = set()
        self.publish()

    def publish(self) -> None:
        names = [str(post) for post in reversed(self.posts)]
        old = names[3:]
        parts = [names[:3], *(old[start : start + 4] for start in range(0, len(old), 4))]
        urls = [FEED, *(url(number) for number in range(1, len(parts)))]
        self.publisher.pages = {
            each: Page(entries=tuple(part), links={"prev-archive": older} if older else {})
            for each, part, older in zip(urls, parts, [*urls[1:], ""], strict=True)
        }

    def go_on(self) -> None:
        chance, last = self.chance, max(self.posts, default=0)
        for _ in range(chance.choice([0, 1, 1, 1, 2, 4, 9])):
            last += 1
            self.posts.append(last)
        if len(self.posts) > 5 and chance.random() < 0.2:  # so there is an archive
            self.delete(chance.choice(self.posts))
        others = [each for each in self.publisher.pages if each != FEED]
        failing = chance.sample(others, 1) if others and chance.random() < 0.2 else []
        self.publisher.failing = {each: chance.choice(FAILURES) for each in failing}
        self.publish()

    def delete(self, post: int) -> None:
        self.posts.remove(post)
        self.deleted.add(str(post))


STATES: Final = {State.COMPLETE, State.PARTIAL, State.LOADING}
FAILURES: Final = [
    Failure(slug="timeout"),
    Failure(slug="publisher-status", publisher_status=404),
    Failure(slug="publisher-status", publisher_status=410),
    Failure(slug="publisher-status", publisher_status=503, retry_after_seconds=120.0),
]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.fault("158", "159")
def test_nothing_that_is_not_deleted_ever_vanishes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """R25, R35: for any failure and any kill; deleted entries leave in the end.

    In every third story few documents may wait, so they are stored before the pass ends.
    """
    set_constant(monkeypatch, "MOST_WAITING", 64 if seed % 3 else 3)
    chance = random.Random(seed)
    shifting = Shifting(chance)
    world = World(shifting.publisher)
    world.refresh(chance)
    had = set(world.names)
    for _ in range(chance.randint(1, 40)):
        shifting.go_on()
        world.now += chance.choice([3600.0, DAY, DAY, 3 * DAY])
        if chance.random() < 0.3:
            world.cut_off(chance, chance.randint(1, 60))
            assert had - shifting.deleted <= world.names
            had |= world.names
        told = world.refresh(chance, is_full=chance.random() < 0.05)
        assert had - shifting.deleted <= world.names
        assert all(each.state in STATES for each in told.published)
        assert len(told.asked) <= 2 * len(shifting.publisher.pages) + 4
        had |= world.names
    shifting.publisher.failing = {}
    for _ in range(3):
        world.now += 2 * WEEK_SECONDS
        shifting.posts.append(max(shifting.posts, default=0) + 1)
        shifting.publish()
        world.refresh(chance)
    assert {str(post) for post in shifting.posts} <= world.names
    assert not world.doubtful
