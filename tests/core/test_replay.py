"""The release times of entries in a replay (P2)."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.replay import WEEKDAYS, Line, PaceError, ReplayPace, last_beginning, releases

DAY = 86_400
FROM = "2026-11-02T06:00:00+01:00"
"""A Monday."""
FROM_AT = int(datetime.fromisoformat(FROM).timestamp())
LAST_SECOND = 253_402_300_799
"""The end of the year 9999."""


def backlog(count: int) -> list[Line]:
    """So many entries, a day apart, in a feed of that age."""
    return [Line(FROM_AT - 5, FROM_AT - (count - n) * DAY, is_dated=True) for n in range(count)]


def live(arrived_at: int) -> Line:
    return Line(arrived_at, arrived_at, is_dated=True)


def late(arrived_at: int, dated_at: int = FROM_AT - 1) -> Line:
    return Line(arrived_at, dated_at, is_dated=True)


def since(pace: str, lines: list[Line], begun: int, on: str = "") -> list[int]:
    """Releases as seconds from the beginning of the pace."""
    return [at - FROM_AT for at in releases(lines, begun, ReplayPace.read(pace, FROM, on or None))]


@pytest.mark.parametrize(
    ("pace", "on", "expected"),
    [
        ("1/day", "", [0, 1, DAY, 2 * DAY, 3 * DAY]),
        ("2/day", "", [0, DAY // 2, DAY, 3 * DAY // 2, 2 * DAY]),
        ("1/week", "", [0, 1, 7 * DAY, 14 * DAY, 21 * DAY]),
        ("13/week", "", [0, 1, 7 * DAY // 13, 14 * DAY // 13, 21 * DAY // 13]),
        ("14/week", "", [0, DAY // 2, DAY, 3 * DAY // 2, 2 * DAY]),
        ("1/day", "mon", [0, 7 * DAY, 14 * DAY, 21 * DAY, 28 * DAY]),
        ("1/day", "wed,fri", [2 * DAY, 4 * DAY, 9 * DAY, 11 * DAY, 16 * DAY]),
        ("2/day", "sun,mon", [0, 1, 6 * DAY, 6 * DAY + 1, 7 * DAY]),
    ],
)
def test_the_backlog_takes_the_slots_of_the_pace(pace: str, on: str, expected: list[int]) -> None:
    """P2: a step apart; with few releases a day, the second comes a second later."""
    assert since(pace, backlog(5), 5, on) == expected


def test_weekdays_are_those_of_the_clock_that_the_pace_names() -> None:
    """P2: Sunday evening in New York is Monday in UTC."""
    pace = ReplayPace.read("1/day", "2026-11-01T20:00:00-05:00", "sun")
    assert releases(backlog(1), 1, pace) == [pace.from_at]


def test_the_backlog_comes_by_date_and_then_by_number() -> None:
    """P2: an older entry found before the pace began has its place by date."""
    lines = [
        *backlog(2),
        Line(FROM_AT - 1, FROM_AT - 9 * DAY, is_dated=True),
        late(FROM_AT, FROM_AT - 2 * DAY),
    ]
    assert since("2/day", lines, 2) == [DAY // 2, 3 * DAY // 2, 0, DAY]


def test_what_is_late_takes_slots_behind_the_backlog() -> None:
    """P2: from its arrival, a minute after the slot, so no later release moves."""
    lines = [*backlog(2), late(FROM_AT + 9), late(FROM_AT + 9), late(FROM_AT + 9 * DAY + 1)]
    assert since("2/day", lines, 2) == [0, DAY // 2, DAY + 60, 3 * DAY // 2 + 60, 19 * DAY // 2 + 60]


def test_what_is_live_waits_for_the_backlog_and_those_before_it() -> None:
    """P2: a reader of the whole backlog gets an entry on arrival."""
    arrivals = [FROM_AT + 1, FROM_AT + 2, FROM_AT + 9 * DAY]
    lines = [*backlog(2), *map(live, arrivals)]
    assert since("2/day", lines, 2) == [0, DAY // 2, DAY, 3 * DAY // 2, 9 * DAY]


def test_an_entry_without_a_date_that_comes_later_is_live() -> None:
    """P2: no date shows its age."""
    lines = [*backlog(1), Line(FROM_AT + 9 * DAY, FROM_AT - DAY, is_dated=False)]
    assert since("1/day", lines, 1) == [0, 9 * DAY]


def test_four_that_come_at_once_are_out_after_three_seconds() -> None:
    """P2: the seconds between entries of one instant are not waiting."""
    at = FROM_AT + 9 * DAY
    lines = [*backlog(1), *[live(at)] * 4, live(at + 1)]
    assert since("1/day", lines, 1) == [0, *(9 * DAY + n for n in range(5))]


def test_a_hundred_thousand_that_come_at_once_take_no_time() -> None:
    """P2: each a second after the one before, also for arrivals meanwhile."""
    at, count = FROM_AT + 9 * DAY, 100_000
    lines = [*[live(at)] * count, *(live(at + 300 * n) for n in range(1, 300))]
    assert since("1/day", lines, 0)[-1] == 9 * DAY + count + 298


@pytest.mark.parametrize(
    ("rate", "from_", "on", "expected"),
    [
        ("0/day", FROM, "", "replay as N/day or N/week, N from 1 to 50"),
        ("51/day", FROM, "", "replay as N/day or N/week"),
        ("1/month", FROM, "", "replay as N/day or N/week"),
        ("1/day\n", FROM, "", "replay as N/day or N/week"),
        ("1/day", "2026-11-02", "", "from as an RFC 3339 instant with its offset"),
        ("1/day", "2026-11-02T06:00:00", "", "from as an RFC 3339 instant with its offset"),
        ("1/day", "2026-02-30T06:00:00Z", "", "from as an RFC 3339 instant with its offset"),
        ("1/day", "0001-01-01T00:00:00+23:00", "", "from as an RFC 3339 instant"),
        ("1/day", FROM, "mon,mon", "on as days such as mon,wed,fri, each once"),
        ("1/day", FROM, "today", "on as days such as mon,wed,fri"),
        ("1/week", FROM, "mon", "beside replay=1/day"),
    ],
)
def test_a_pace_that_cannot_be_is_refused(rate: str, from_: str, on: str, expected: str | None) -> None:
    """The error names the expected input; the first possible year is accepted."""
    if expected is None:
        assert ReplayPace.read(rate, from_, on or None).from_at < 0
        return
    with pytest.raises(PaceError, match=expected):
        ReplayPace.read(rate, from_, on or None)


def test_what_a_pace_is_called_stays() -> None:
    """P4: ids of replays contain it, and another id is another feed."""
    assert str(ReplayPace.read("2/day", FROM, "wed,mon")) == "2/day from 1793595600 at 3600 on mon,wed"
    assert str(ReplayPace.read("3/week", "2026-11-02T05:00:00Z")) == "3/week from 1793595600 at 0 on all"


def test_a_plus_that_was_not_encoded_counts() -> None:
    """A blank in a query mostly comes from a plus."""
    assert ReplayPace.read("1/day", "2026-11-02T06:00:00 01:00") == ReplayPace.read("1/day", FROM)


def test_a_pace_ends_before_the_year_10000() -> None:
    """P6: no feed can name a later date."""
    pace = ReplayPace.read("1/week", "9999-12-31T00:00:00Z")
    assert releases(backlog(2), 2, pace) == [pace.from_at, pace.from_at + 1]
    with pytest.raises(PaceError, match="before the year 10000"):
        releases(backlog(3), 3, pace)


arrivals = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 30, 3600, 40_000, 10 * DAY]), st.integers(-50, 50), st.booleans())
)
paces = st.tuples(
    st.sampled_from(["1/day", "2/day", "50/day", "3/week", "14/week"]), st.sampled_from(["", "", "mon,sat"])
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Line], int, ReplayPace]:
    """Entries arrive at once or after days, dated before and after the pace's begin."""
    begun = draw(st.integers(0, 6))
    at, lines = FROM_AT - draw(st.sampled_from([0, 5, 20 * DAY])), []
    given_ = draw(arrivals)
    for number, (pause, days, is_dated) in enumerate(given_):
        at += pause if number >= begun else 0
        lines.append(Line(at, FROM_AT + days * DAY, is_dated))
    rate, on = draw(paces)
    return (
        lines,
        min(begun, len(lines)),
        ReplayPace.read(rate, FROM, on or None if rate.endswith("day") else None),
    )


@given(histories())
def test_what_was_released_never_changes(history: tuple[list[Line], int, ReplayPace]) -> None:
    """P2: later arrivals neither move a past release nor precede it."""
    lines, begun, pace = history
    whole = releases(lines, begun, pace)
    for count in range(begun, len(lines)):
        now = lines[count].arrived_at - 1  # the last moment without that line
        before = releases(lines[:count], begun, pace)
        out = [(at, n) for n, at in enumerate(before) if at <= now]
        assert out == [(at, n) for n, at in enumerate(whole) if at <= now]


@given(histories())
def test_no_two_are_released_at_once_and_none_before_its_time(
    history: tuple[list[Line], int, ReplayPace],
) -> None:
    """P2: none before the pace begins or before its arrival."""
    lines, begun, pace = history
    instants = releases(lines, begun, pace)
    assert len(set(instants)) == len(instants)
    for number, (line, at) in enumerate(zip(lines, instants, strict=True)):
        assert at >= (line.arrived_at if number >= begun and line.arrived_at > pace.from_at else pace.from_at)
        assert at <= LAST_SECOND


@given(histories(), st.integers(1, 30))
def test_who_has_caught_up_reads_live(history: tuple[list[Line], int, ReplayPace], count: int) -> None:
    """P2: entries are released on arrival, those of one instant a second apart."""
    lines, begun, pace = history
    at = max([*releases(lines, begun, pace), pace.from_at]) + 1
    added = [live(at)] * count
    assert releases([*lines, *added], begun, pace)[len(lines) :] == [at + n for n in range(count)]


@pytest.mark.parametrize(
    ("clock", "weekdays", "expected"),
    [
        ("2026-11-04T09:30:00", (), "2026-11-04T06:00:00"),
        ("2026-11-04T06:00:00", (), "2026-11-04T06:00:00"),
        ("2026-11-04T05:59:59.9", (), "2026-11-03T06:00:00"),
        ("2026-01-01T00:00:00", (), "2025-12-31T06:00:00"),
        ("2026-11-04T09:30:00", {2}, "2026-11-04T06:00:00"),
        ("2026-11-04T05:30:00", {2}, "2026-10-28T06:00:00"),
        ("2026-11-04T09:30:00", {0, 4}, "2026-11-02T06:00:00"),
    ],
)
def test_what_begins_at_the_last_six_has_its_first_entries_out(
    clock: str, weekdays: set[int], expected: str
) -> None:
    """P8: of a listed day if days are listed; 4 November 2026 is a Wednesday."""
    begins = last_beginning(datetime.fromisoformat(clock), weekdays)
    assert begins.isoformat() == expected
    days = ",".join(WEEKDAYS[day] for day in weekdays)
    pace = ReplayPace.read("1/day", f"{expected}+01:00", days or None)
    assert pace.slot(0) == pace.from_at
    assert pace.clock(pace.from_at) == begins


def test_a_clock_shows_no_year_of_five_digits() -> None:
    """P6: an instant of the year 9999 may be in the next year further east."""
    pace = ReplayPace.read("1/day", "9999-12-31T23:59:59+14:00")
    assert pace.clock(LAST_SECOND) == datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001
