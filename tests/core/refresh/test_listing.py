"""The known state of a publisher's lists: storage, display, and the next look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wholefeed.core.listing.finding import (
    FoundLists,
    LookMemory,
    LookOutcome,
    MissingPage,
)
from wholefeed.core.listing.joined_sources import ListedEntry, ListedPage
from wholefeed.core.model import Family, State
from wholefeed.core.refresh.listing_state import LOOK_AGAIN_SECONDS, NOTHING_LISTED, ListingState
from wholefeed.core.text.dates import DAY_SECONDS

NOW = 1_700_000_000.0
FIRST = "https://a.example/archive/"


def a_page(url: str = FIRST, *dated_by: str) -> ListedPage:
    return ListedPage(
        url=url,
        entries=tuple(
            ListedEntry(link=f"{url}{n}", title="t", at=1.0, dated_by=by) for n, by in enumerate(dated_by)
        ),
    )


def found(*pages: ListedPage, missing: tuple[MissingPage, ...] = (), is_cut: bool = False) -> FoundLists:
    known = LookMemory(first_url=FIRST, way="next") if pages else LookMemory()
    looked = (LookOutcome(url="https://a.example/", why="no-list"),)
    return FoundLists(pages=pages, missing=missing, looked=looked, known=known, is_cut=is_cut)


def listing(what: FoundLists, before: ListingState | None = None, limit: int = 200) -> ListingState:
    return ListingState.of(what, before=before or ListingState(), family=Family.RSS, now=NOW, limit=limit)


def test_it_is_read_as_it_was_written() -> None:
    """H7: with all fields; a state without a look takes two characters."""
    missing = (MissingPage(url=f"{FIRST}2", slug="timeout", status=None),)
    made = listing(found(a_page(FIRST, "page", "month"), missing=missing, is_cut=True))
    assert ListingState.read(made.written()) == made
    assert ListingState().written() == NOTHING_LISTED
    assert ListingState.read(NOTHING_LISTED) == ListingState()


def test_what_a_later_version_knew_more_is_left_out() -> None:
    """A later version may have written the store."""
    assert ListingState.read('{"looked_at": 5.0, "moon": "full"}') == ListingState(looked_at=5.0)


def test_pages_that_could_not_be_had_make_the_feed_partial() -> None:
    """H7: each with its reason, also a list above the limit (R18); missing dates do not."""
    missing = (MissingPage(url=f"{FIRST}2", slug="publisher-status", status=503),)
    notes = list(listing(found(a_page(FIRST, "year"), missing=missing, is_cut=True), limit=7).notes())
    said = [(note.code, note.url, note.partial) for note in notes]
    assert said == [
        ("DocumentUnavailable", f"{FIRST}2", True),
        ("LimitReached", FIRST, True),
        ("DatesGuessed", FIRST, False),
    ]
    assert "list_pages = 7" in str(notes[1])
    assert "1 of the listed entries have no exact date" in str(notes[2])


def test_it_is_looked_again_in_a_month() -> None:
    """H8: or at the next attempt for a missing page."""
    made = listing(found(a_page(FIRST, "page")))
    assert made.next_at([], now=NOW) == NOW + LOOK_AGAIN_SECONDS
    assert made.next_at([NOW + 50, NOW + 20], now=NOW) == NOW + 20


def test_a_publisher_that_refuses_is_left_in_peace() -> None:
    """R32: for any missing page."""
    made = listing(found(a_page(FIRST, "page"))).postpone(ListingState(), NOW + DAY_SECONDS, now=NOW)
    assert made.next_at([NOW + 20], now=NOW) == NOW + DAY_SECONDS


def test_where_nothing_was_found_because_something_failed_the_pauses_grow() -> None:
    """H8: a day, two, four, up to a month; a finished look starts again."""
    made, pauses = ListingState(), []
    for _ in range(8):
        made = listing(found(), made).postpone(made, None, now=NOW)
        pauses.append((made.next_at([], now=NOW) - NOW) / DAY_SECONDS)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert listing(found(), made).failed == 0


def test_a_later_look_adds_to_what_is_known_of_the_same_list() -> None:
    """H8: a different list gets nothing from it."""
    before = listing(found(a_page(FIRST, "page", "month"), a_page(f"{FIRST}2", "year")))
    later = listing(found(a_page(FIRST, "month")), before)
    assert (later.pages, later.guessed) == (2, 3)
    elsewhere = replace(found(a_page(FIRST, "month")), known=LookMemory(first_url="https://a.example/posts/"))
    assert (listing(elsewhere, before).pages, listing(elsewhere, before).guessed) == (1, 1)


PAGE_OF_LIST = MissingPage(url=f"{FIRST}2", slug="timeout", status=None)
ARCHIVE = MissingPage(url="https://a.example/feed/1", slug="timeout", status=None)
ITSELF = MissingPage(url="https://a.example/feed", slug="truncated", status=None)


@pytest.mark.parametrize(
    ("state", "missing", "expected"),
    [
        (State.LISTED, (), (State.REMEMBERED, ())),
        (State.PARTIAL, (PAGE_OF_LIST,), (State.REMEMBERED, ())),
        (State.PARTIAL, (PAGE_OF_LIST, ITSELF), (State.PARTIAL, (ITSELF,))),
        (State.PARTIAL, (ARCHIVE,), (State.PARTIAL, (ARCHIVE,))),
        (State.PARTIAL, (), (State.PARTIAL, ())),
        (State.LOADING, (PAGE_OF_LIST,), (State.LOADING, ())),
        (State.REMEMBERED, (), (State.REMEMBERED, ())),
        (State.COMPLETE, (), (State.COMPLETE, ())),
    ],
)
def test_a_feed_without_its_lists_lacks_none_of_their_pages(
    state: State, missing: tuple[MissingPage, ...], expected: tuple[State, tuple[MissingPage, ...]]
) -> None:
    """H1, H7: only gaps outside the lists make it partial."""
    made = listing(found(a_page(), missing=(PAGE_OF_LIST,)))
    assert made.without_lists(state, missing) == expected


def test_a_list_that_is_longer_than_it_may_be_is_none_of_the_feed_without_lists() -> None:
    """H1, H7: the limit of pages is no reason then."""
    made = listing(found(a_page(), is_cut=True))
    cut = MissingPage(url=FIRST, slug="limit", status=None)
    assert made.without_lists(State.PARTIAL, (cut,)) == (State.REMEMBERED, ())
