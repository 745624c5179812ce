"""wholefeed.core.words: the chart and text about the extent of a history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.chart import (
    HEIGHT,
    MOST_BARS,
    MOST_GAPS,
    WIDTH,
    ChartPlace,
    ChartSpan,
    Hole,
    axis_top,
    chart_of,
    gaps_of,
    holes_of,
    month_in_words,
    month_number,
)

MARCH = month_number(2012, 3)


def test_a_month_has_a_name() -> None:
    """A month's number is written in people's form, for any year."""
    assert [month_in_words(month_number(*each)) for each in ((1, 1), (2012, 12), (9999, 7))] == [
        "January 1", "December 2012", "July 9999",
    ]  # fmt: skip


def test_each_month_between_the_first_and_the_last_has_a_bar() -> None:
    """Empty months have one of no height, so that they stay visible."""
    chart = chart_of({MARCH: 4, MARCH + 2: 1})
    assert chart is not None
    assert [(bar.label, bar.entries) for bar in chart.bars] == [
        ("March 2012", 4), ("April 2012", 0), ("May 2012", 1),
    ]  # fmt: skip
    assert [bar.height for bar in chart.bars] == [HEIGHT, 0.0, HEIGHT / 4]
    assert (chart.unit, chart.top, chart.labels) == ("month", 4, ("March 2012", "April 2012", "May 2012"))
    assert [gap.words for gap in chart.gaps] == ["April 2012"]
    one = chart_of({MARCH: 1})
    assert one is not None
    assert (len(one.bars), one.labels, one.gaps, one.gap_marks) == (1, ("March 2012",), (), ())
    assert chart_of({}) is None, "of entries without dates"


@pytest.mark.parametrize("months", [1, 2, 5, MOST_BARS])
def test_no_bar_is_a_block(months: int) -> None:
    """A feed of one month has an ordinary bar above its label."""
    chart = chart_of({MARCH + month: 1 for month in range(months)})
    assert chart is not None
    place = WIDTH / months
    for number, bar in enumerate(chart.bars):
        assert bar.width <= 60
        assert bar.x + bar.width / 2 == pytest.approx(place * (number + 0.5), abs=0.02)


@pytest.mark.parametrize(
    ("months", "unit", "first", "bars"),
    [
        (MOST_BARS, "month", "March 2012", MOST_BARS),
        (MOST_BARS + 1, "year", "2012", 6),
        (12 * 70, "decade", "2010 to 2019", 8),
        (12 * 900, "century", "2000 to 2099", 10),
        (12 * 7900, "century", "2000 to 2099", 80),
    ],
)
def test_what_is_too_long_is_told_in_larger_units(months: int, unit: str, first: str, bars: int) -> None:
    """More than 60 months become years; a very old date does not make ten thousand bars."""
    chart = chart_of({MARCH: 1, MARCH + months - 1: 1})
    assert chart is not None
    assert (chart.unit, chart.bars[0].label, len(chart.bars)) == (unit, first, bars)


def test_gaps_are_of_months_also_where_bars_are_years() -> None:
    """A pause of half a year is named even if every year has entries; the longest first."""
    months = {MARCH: 1, MARCH + 7: 1, **{MARCH + 8 + 2 * n: 1 for n in range(40)}}
    chart = chart_of(months)
    assert chart is not None
    assert chart.unit == "year"
    assert chart.gaps[0] == ChartSpan(MARCH + 1, MARCH + 6)
    assert chart.gaps[0].words == "April 2012 to September 2012 (6 months)"
    assert (len(chart.gaps), chart.more_gaps) == (MOST_GAPS, 40 - MOST_GAPS)
    assert list(chart.gaps) == sorted(chart.gaps)


@pytest.mark.parametrize(
    ("most", "top"), [(1, 2), (2, 2), (3, 4), (5, 6), (7, 10), (11, 20), (61, 100), (12_345, 20_000)]
)
def test_the_axis_ends_at_a_round_number_whose_half_is_one(most: int, top: int) -> None:
    """The axis can be read at a glance."""
    assert axis_top(most) == top


@given(st.dictionaries(st.integers(12, 12 * 9999 + 11), st.integers(1, 10**6), min_size=1, max_size=30))
def test_no_entry_is_lost_and_nothing_stands_outside(months: dict[int, int]) -> None:
    """For any dates: few bars count all entries, within the chart."""
    chart = chart_of(months, [Hole("u", None, min(months)), Hole("v", min(months), max(months))])
    assert chart is not None
    assert sum(bar.entries for bar in chart.bars) == sum(months.values())
    assert len(chart.bars) <= 100
    for bar in chart.bars:
        assert 0 <= bar.x <= bar.x + bar.width <= WIDTH + 0.1
        assert 0 <= bar.y <= HEIGHT
        assert bar.entries <= chart.top
        assert (bar.height > 0) is (bar.entries > 0)
    for mark in (*chart.gap_marks, *chart.hole_marks):
        assert 0 <= mark.x <= mark.x + mark.width <= WIDTH + 0.1
        assert mark.width > 0
    covered = set(months) | {month for gap in gaps_of(months) for month in range(gap.first, gap.last + 1)}
    assert len(covered) == chart.span.months


def places(*kinds: str) -> list[ChartPlace]:
    """Each document's months (`3-5`), nothing (``), or missing (`?`), newest first."""
    return [
        ChartPlace(f"/{n}", each == "?", ChartSpan(*map(int, each.split("-"))) if "-" in each else None)
        for n, each in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    ("chain", "after", "before"),
    [
        (("30-40", "?"), None, 30),
        (("30-40", "?", "10-20"), 20, 30),
        (("50-60", "30-40", "?", "10-20", "1-9"), 20, 30),
        (("30-40", "", "?", "", "?", "10-20"), 20, 30),
        (("30-40", "?", "10-35"), 35, 30),
        (("?",), None, None),
        (("", "?", "10-20"), 20, None),
    ],
)
def test_a_missing_document_is_placed_by_those_around_it(
    chain: tuple[str, ...], after: int | None, before: int | None
) -> None:
    """R34: the documents before and after bound the dates of its entries."""
    for hole in holes_of(places(*chain)):
        assert (hole.after, hole.before) == (after, before)


def test_where_a_missing_document_is_stands_in_words_and_in_the_chart() -> None:
    """R16: the chart does not depend on colour alone."""
    behind, between = Hole("/1", None, MARCH), Hole("/2", MARCH, MARCH + 6)
    assert behind.words == "before March 2012"
    assert between.words == "between March 2012 and September 2012"
    assert Hole("/3", MARCH, MARCH).words == "about March 2012"
    assert Hole("/4", None, None).words == "a time that nobody knows"
    chart = chart_of({MARCH: 1, MARCH + 9: 1}, [behind, between, Hole("/4", None, None)])
    assert chart is not None
    assert [mark.words for mark in chart.hole_marks] == [behind.words, between.words]
    assert (chart.hole_marks[0].x, chart.hole_marks[1].x, chart.hole_marks[1].width) == (0, 0, 700)
