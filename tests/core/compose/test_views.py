"""Views for readers with a cap, and warnings about partial feeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, compress, pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wholefeed.core.compose.segments import Slice
from wholefeed.core.compose.views import (
    HEALED_SECONDS,
    Cut,
    FeedPage,
    Take,
    View,
    ViewTurn,
    Warned,
    entries_of,
)
from wholefeed.core.model import Family

ENTRY_BYTES = 10


@dataclass
class Segment:
    dates: Sequence[float | None]
    sizes: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.entries = len(self.dates)
        known = [date for date in self.dates if date is not None]
        self.newest_at, self.oldest_at = max(known, default=None), min(known, default=None)
        ends = [*accumulate(self.sizes or [ENTRY_BYTES] * self.entries)]
        self.length = ends[-1] if ends else 0
        self.slices = [*map(Slice, [0, *ends], ends, self.dates)]
        self.mask = [True] * self.entries

    @property
    def own(self) -> list[Slice]:
        return [*compress(self.slices, self.mask)]


def cut(segments: list[Segment], view: View, room: int | None = None) -> tuple[list[int], bool, int]:
    """Return the taken numbers, whether any was left out, and the count of segments read."""
    taken, read, first = [], 0, 0
    cutting = Cut(view, sum(len(segment.own) for segment in segments), room=room)
    for segment in segments:
        take = cutting.take(segment, len(segment.own))
        kept = segment.slices if take is Take.WHOLE else []
        if take is Take.PART:
            read += 1
            kept = cutting.kept(segment.own[cutting.skipped :], len(segment.own))
        taken += [first + each.start // ENTRY_BYTES for each in kept]
        first += segment.entries
    return taken, cutting.is_cut, read


SEGMENTS = st.lists(st.lists(st.none() | st.integers(0, 20).map(float), max_size=6).map(Segment), max_size=6)


@given(SEGMENTS, st.integers(1, 12))
def test_a_limit_takes_the_first_entries(segments: list[Segment], limit: int) -> None:
    """docs/design.md#the-interface: the first N in output order; at most one segment is read."""
    total = sum(segment.entries for segment in segments)
    taken, is_cut, read = cut(segments, View(limit=limit))

    assert taken == list(range(min(limit, total)))
    assert is_cut is (total > limit)
    assert read <= 1


@given(SEGMENTS, st.integers(0, 20).map(float))
def test_since_takes_every_entry_dated_from_then_on_and_none_before(
    segments: list[Segment], since: float
) -> None:
    """`since=` loses no later entry, and reads only the segments that straddle it."""
    dates = [date for segment in segments for date in segment.dates]
    taken, is_cut, read = cut(segments, View(since=since))

    assert {n for n, date in enumerate(dates) if date is not None and date >= since} <= set(taken)
    assert not any(date is not None and date < since for date in (dates[n] for n in taken))
    assert is_cut is (len(taken) < len(dates))
    assert read <= sum(
        segment.oldest_at is not None and segment.oldest_at < since <= (segment.newest_at or 0)
        for segment in segments
    )


@given(SEGMENTS, st.integers(0, 200))
def test_the_room_is_never_exceeded_and_not_wasted(segments: list[Segment], room: int) -> None:
    """A capped answer has exactly the first entries that fit, and reads at most one segment."""
    total = sum(segment.entries for segment in segments)
    taken, is_cut, read = cut(segments, View(max_bytes=1), room)

    assert taken == list(range(min(total, room // ENTRY_BYTES)))
    assert is_cut is (len(taken) < total)
    assert read <= 1


@given(
    SEGMENTS, st.none() | st.integers(1, 12), st.none() | st.integers(0, 20).map(float), st.integers(0, 200)
)
def test_what_is_taken_stands_in_output_order(
    segments: list[Segment], limit: int | None, since: float | None, room: int
) -> None:
    """R20: for any `limit`, `since` and cap, entries appear once, and fit."""
    taken, _, _ = cut(segments, View(limit, since), room)

    assert all(a < b for a, b in pairwise(taken))
    assert len(taken) <= (limit or len(taken))
    assert ENTRY_BYTES * len(taken) <= room


VIEWS = st.sampled_from([View(limit=3), View(), View(page=FeedPage(3)), View(page=FeedPage(2, 1))])


@given(SEGMENTS, VIEWS, st.none() | st.integers(0, 200), st.data())
def test_of_a_part_of_the_entries_a_view_takes_what_it_would_of_them_alone(
    segments: list[Segment], view: View, room: int | None, data: st.DataObject
) -> None:
    """H7: `limit` and `pages` count only unlisted entries, within the cap. Leaving out a listed entry is no
    cut.
    """
    for segment in segments:
        count = segment.entries
        segment.mask = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    own = [n for n, is_own in enumerate(flag for each in segments for flag in each.mask) if is_own]
    places = view.places(len(own))
    expected = own[places.start : places.stop]
    if room is not None:
        expected = expected[: room // ENTRY_BYTES]
    taken, is_cut, _ = cut(segments, view, room)
    assert taken == expected
    assert is_cut is (len(taken) < len(own))


def pages_of(total: int, size: int) -> list[range]:
    """Entries of each page, from the first, by places from the oldest entry."""
    pages = [FeedPage(size, number).places(total) for number in range(1, FeedPage(size).count(total) + 1)]
    return [range(total - each.stop, total - each.start) for each in pages]


@given(st.integers(0, 300), st.integers(10, 40), st.integers(0, 90))
def test_pages_hold_each_entry_once_and_stay_as_they_are(total: int, size: int, more: int) -> None:
    """G1: for any N and E, all pages together are the feed. The first has N to 2N-1 entries, or all; the
    others never change.
    """
    pages = pages_of(total, size)
    assert [place for page in pages for place in page] == list(range(total))
    assert all(len(page) == size for page in pages[:-1])
    assert len(pages[-1]) == total if total < size else size <= len(pages[-1]) < 2 * size
    assert FeedPage(size).places(total) == FeedPage(size, len(pages)).places(total)
    later = pages_of(total + more, size)
    assert later[: len(pages) - 1] == pages[:-1]


@given(st.integers(0, 300), st.integers(10, 40), st.integers(0, 90))
def test_pages_link_one_another_and_no_link_changes(total: int, size: int, more: int) -> None:
    """G1: each page links to both neighbours; inner pages keep their links."""
    count = FeedPage(size).count(total)
    links = [dict(FeedPage(size, number).links(total, "u")) for number in range(1, count + 1)]
    assert [each.get("next") for each in links] == [None, *(f"u&page={n}" for n in range(1, count))]
    assert [each.get("previous") for each in links] == [*(f"u&page={n}" for n in range(2, count + 1)), None]
    assert all((each["first"], each["last"]) == ("u", "u&page=1") for each in links)
    assert dict(FeedPage(size).links(total, "u")) == links[-1]
    assert [dict(FeedPage(size, n).links(total + more, "u")) for n in range(1, count)] == links[:-1]


@given(SEGMENTS, st.integers(1, 4), st.none() | st.integers(1, 30))
def test_of_other_segments_than_a_page_s_own_nothing_is_looked_at(
    segments: list[Segment], size: int, number: int | None
) -> None:
    """G3: only the segments at the page's two ends are read; its date is its latest entry's."""
    dates = [date for segment in segments for date in segment.dates]
    page = FeedPage(size, number)
    assume(page.count(len(dates)) >= (number or 1))
    taken, is_cut, read = cut(segments, View(page=page))
    assert taken == list(page.places(len(dates)))
    assert is_cut is (len(taken) < len(dates))
    assert read <= 2
    cutting = Cut(View(page=page), len(dates))
    for segment in segments:
        if cutting.take(segment) is Take.PART:
            cutting.kept(segment.slices[cutting.skipped :], segment.entries)
    assert cutting.newest_at == max((at for n in taken if (at := dates[n]) is not None), default=None)


def test_an_entry_that_no_answer_has_room_for_hides_nothing_behind_it() -> None:
    """An entry above the cap is left out alone; smaller ones after it are served."""
    cutting = Cut(View(max_bytes=None), 6, room=50)
    first, second, third = (Segment([None, None], sizes) for sizes in ([90, 10], [10, 10], [20, 20]))
    assert cutting.take(first) is Take.PART
    assert [each.end - each.start for each in cutting.kept(first.slices, 2)] == [10]
    assert cutting.take(second) is Take.WHOLE
    assert cutting.take(third) is Take.NONE  # no second segment is read
    assert cutting.take(Segment([None], [1])) is Take.NONE
    assert cutting.is_cut


@pytest.mark.fault("86")
def test_a_limit_looks_at_no_more_entries_than_it_takes() -> None:
    """Row 86: in a huge segment, entries after the last taken one stay packed."""
    segment = Segment([None] * 1000)
    slices = iter(segment.slices)
    cutting = Cut(View(limit=2), 3)
    assert cutting.take(segment) is Take.PART
    assert len(cutting.kept(slices, segment.entries)) == 2
    assert cutting.is_cut
    assert len(list(slices)) == 997


def test_entries_are_found_in_a_segment_s_text() -> None:
    """A cut falls between two entries, and reads their ordering dates."""
    text = (
        b'<entry xmlns:q="urn:q"><id>1</id><updated>2026-01-01T00:00:00Z</updated><q:x/></entry>\n'
        b"<entry><id>2</id><dc:date/></entry>\n"
    )
    first, second = entries_of(Family.ATOM, text)

    assert (first.start, first.end, second.end) == (0, text.index(b"<entry><id>2"), len(text))
    assert (first.order_at, second.order_at) == (1767225600.0, None)
    assert entries_of(Family.RSS, b"<item/>\n<item><guid>1</guid></item>\n")[1].start == 8
    assert entries_of(Family.RSS, b"") == []


NONE = ViewTurn(Warned.NONE, None)


@pytest.mark.parametrize(
    ("before", "first_failed_at", "is_lost", "expected"),
    [
        (NONE, None, False, NONE),
        (NONE, 10.0, False, ViewTurn(Warned.UNSENT, 10.0)),
        (ViewTurn(Warned.UNSENT, 10.0), 10.0, False, ViewTurn(Warned.UNSENT, 10.0)),
        (ViewTurn(Warned.UNSENT, 10.0), None, False, ViewTurn(Warned.NONE, 10.0)),
        (ViewTurn(Warned.SENT, 10.0), 50.0, False, ViewTurn(Warned.SENT, 10.0)),
        (ViewTurn(Warned.SENT, 10.0), None, False, ViewTurn(Warned.HEALED, 100.0)),
        (ViewTurn(Warned.SENT, 100.0), None, False, ViewTurn(Warned.HEALED, 101.0)),
        (ViewTurn(Warned.SENT, 10.0), None, True, ViewTurn(Warned.NONE, 11.0)),
        (ViewTurn(Warned.SENT, 10.0), 50.0, True, ViewTurn(Warned.LOST, 10.0)),
        (ViewTurn(Warned.LOST, 10.0), None, False, ViewTurn(Warned.NONE, 11.0)),
        (ViewTurn(Warned.UNSENT, 10.0), None, True, ViewTurn(Warned.NONE, 11.0)),
        (ViewTurn(Warned.HEALED, 90.0), None, False, ViewTurn(Warned.HEALED, 90.0)),
        (ViewTurn(Warned.HEALED, 90.0), 50.0, False, ViewTurn(Warned.UNSENT, 91.0)),
        (ViewTurn(Warned.NONE, 90.0), 50.0, False, ViewTurn(Warned.UNSENT, 91.0)),
    ],
)
def test_what_a_publication_makes_of_a_turn(
    before: ViewTurn, first_failed_at: float | None, is_lost: bool, expected: ViewTurn
) -> None:
    """R16: a warned reader learns that the feed is complete, and gets no warning of merely unlinked
    documents.
    """
    after = before.next(first_failed_at, is_lost=is_lost, now=100.0)
    assert after == expected
    for later, says_so in ((-1, True), (0, False)):
        is_healed = after.is_healed_at((after.dated_at or 0) + HEALED_SECONDS + later)
        assert is_healed == (says_so and after.warned is Warned.HEALED), "for a fortnight"


@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 50)), st.booleans(), st.booleans()), max_size=20)
)
def test_each_turn_is_dated_later_than_the_last(history: list[tuple[int | None, bool, bool]]) -> None:
    """R16: readers always take the last statement for the newest."""
    turn = NONE
    for number, (first, is_lost, is_sent) in enumerate(history):
        after = turn.next(first, is_lost=is_lost, now=float(number))
        if after.warned in (Warned.UNSENT, Warned.HEALED) and after != turn and turn.dated_at is not None:
            assert after.dated_at is not None
            assert after.dated_at > turn.dated_at
        assert (after.warned is Warned.HEALED) <= (turn.warned in (Warned.SENT, Warned.HEALED))
        turn = ViewTurn(Warned.SENT, after.dated_at) if is_sent and after.warned is Warned.UNSENT else after
