"""How far a feed's history reaches: entries per month, where there are none, where documents are missing.

    chart = chart_of({month_number(2004, 3): 12, month_number(2004, 5): 7})
    chart.bars[1].label, chart.bars[1].entries      # ("April 2004", 0)
    chart.gaps[0].words                             # "April 2004"

A month is a number, twelve times its year and one for each month of it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from wholefeed.core.text.dates import MONTH_NAMES


def chart_of(months: Mapping[int, int], holes: Iterable[Hole] = ()) -> Chart | None:
    """Return the chart of a feed's entries; None where none is dated.

    Args:
        months: How many entries are of each month that has any.
        holes: The documents that are missing; one of whose time nothing is known is not marked.
    """
    if not months:
        return None
    span = ChartSpan(min(months), max(months))
    unit, size = next((each for each in _CHART_UNITS if _count(span, each[1]) <= MOST_BARS), _CHART_UNITS[-1])
    gaps = gaps_of(months)
    longest = sorted(sorted(gaps, key=lambda gap: -gap.months)[:MOST_GAPS])
    frame = ChartSpan(span.first // size * size, span.last // size * size + size - 1)
    counts = [0] * _count(span, size)
    for month, entries in months.items():
        counts[(month - frame.first) // size] += entries
    top = axis_top(max(counts))
    return Chart(
        unit=unit,
        bars=tuple(_bars(counts, frame, size, top)),
        top=top,
        span=span,
        gaps=tuple(longest),
        more_gaps=len(gaps) - len(longest),
        gap_marks=tuple(_mark(frame, gap, gap.words) for gap in longest),
        hole_marks=tuple(_hole_mark(frame, hole) for hole in holes if hole.before is not None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What is drawn and what is said beside it."""

    unit: str
    """What a bar stands for: month, year, decade or century."""
    bars: tuple[Bar, ...]
    top: int
    """Entries at the top of the axis; even, so that its middle is a number, too."""
    span: ChartSpan
    gaps: tuple[ChartSpan, ...]
    """Months without entries, the longest, in time's order."""
    more_gaps: int
    """How many shorter ones there are."""
    gap_marks: tuple[ChartMark, ...]
    hole_marks: tuple[ChartMark, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Below the axis: at its beginning, its middle and its end."""
        count = len(self.bars)
        places = (0,) if count == 1 else (0, count - 1) if count == 2 else (0, count // 2, count - 1)  # noqa: PLR2004
        return tuple(self.bars[place].label for place in places)


class Bar(NamedTuple):
    """One month, or as many as the chart has to a bar; `x` to `height` are those of its rectangle."""

    label: str
    entries: int
    x: float
    y: float
    width: float
    height: float


class ChartMark(NamedTuple):
    """A strip along the axis: what is missing is somewhere there."""

    x: float
    width: float
    words: str


class ChartSpan(NamedTuple):
    """Months in a row."""

    first: int
    last: int

    @property
    def months(self) -> int:
        return self.last - self.first + 1

    @property
    def words(self) -> str:
        """As people write it."""
        if self.first == self.last:
            return month_in_words(self.first)
        return f"{month_in_words(self.first)} to {month_in_words(self.last)} ({self.months} months)"


MOST_BARS: Final = 60
"""More months are told by year, more years by decade, more decades by century."""
MOST_GAPS: Final = 8
"""Gaps that are named, the longest."""
WIDTH: Final = 1000.0
HEIGHT: Final = 200.0
_YEAR: Final = 12
_CHART_UNITS: Final = (("month", 1), ("year", _YEAR), ("decade", 10 * _YEAR), ("century", 100 * _YEAR))


def month_number(year: int, month: int) -> int:
    """Return the number of a month of a year; January is 1."""
    return year * _YEAR + month - 1


def month_in_words(month: int) -> str:
    """Return a month as people write it: `March 2012`."""
    return f"{MONTH_NAMES[month % _YEAR]} {month // _YEAR}"


def gaps_of(months: Iterable[int]) -> tuple[ChartSpan, ...]:
    """Return the months between the first and the last that are not among these, as spans."""
    pairs = pairwise(sorted(months))
    return tuple(ChartSpan(earlier + 1, later - 1) for earlier, later in pairs if later - earlier > 1)


def axis_top(most: int) -> int:
    """Return the number at the top of an axis for counts up to `most`: round, even, not below it."""
    scale = 1
    while True:
        for step in _STEPS:
            if (top := 2 * step * scale) >= most:
                return top
        scale *= 10


_STEPS: Final = (1, 2, 3, 5)


def _count(span: ChartSpan, size: int) -> int:
    return span.last // size - span.first // size + 1


def _bars(counts: Sequence[int], frame: ChartSpan, size: int, top: int) -> Iterable[Bar]:
    place = WIDTH / len(counts)
    for at, entries in enumerate(counts):
        height = max(_LEAST_HEIGHT, HEIGHT * entries / top) if entries else 0.0
        width = min(place * _FILLED, _WIDEST)
        x = place * at + (place - width) / 2
        label = _label(frame.first + at * size, size)
        yield Bar(label, entries, round(x, 2), round(HEIGHT - height, 2), round(width, 2), round(height, 2))


_FILLED: Final = 0.82
"""How much of its place a bar takes."""
_WIDEST: Final = 60.0
"""Of a bar: one month alone is no block."""
_LEAST_HEIGHT: Final = 3.0
"""Of a bar: a single entry among thousands is to be seen."""


def _label(first: int, size: int) -> str:
    if size == 1:
        return month_in_words(first)
    year = first // _YEAR
    return str(year) if size == _YEAR else f"{year} to {year + size // _YEAR - 1}"


def _mark(frame: ChartSpan, span: ChartSpan, words: str) -> ChartMark:
    """Return a strip over the months, wide enough to be seen and within the chart."""
    left = (max(span.first, frame.first) - frame.first) * WIDTH / frame.months
    right = (min(span.last, frame.last) + 1 - frame.first) * WIDTH / frame.months
    width = max(_LEAST_WIDTH, right - left)
    return ChartMark(round(max(0.0, min(left, WIDTH - width)), 2), round(width, 2), words)


_LEAST_WIDTH: Final = 14.0
"""Of a mark."""


def _hole_mark(frame: ChartSpan, hole: Hole) -> ChartMark:
    """Return the strip of a hole; behind everything that is known, it stands where that ends."""
    assert hole.before is not None, "something is known of its time"
    first = hole.before if hole.after is None else min(hole.after, hole.before)
    last = first - 1 if hole.after is None else hole.before
    return _mark(frame, ChartSpan(first, last), hole.words)


def holes_of(places: Sequence[ChartPlace]) -> tuple[Hole, ...]:
    """Return where in time the missing documents of a feed are, by those around them."""
    found = []
    for at, place in enumerate(places):
        if not place.is_missing:
            continue
        before = next((each.span.first for each in reversed(places[:at]) if each.span is not None), None)
        after = next((each.span.last for each in places[at + 1 :] if each.span is not None), None)
        found.append(Hole(place.url, after, before))
    return tuple(found)


class Hole(NamedTuple):
    """A document that is missing, and between which months its entries may be."""

    url: str
    after: int | None
    """The newest month of what is known behind it; None where nothing is."""
    before: int | None
    """The oldest month of what is known in front of it."""

    @property
    def words(self) -> str:
        """When its entries may be of."""
        if self.before is None:
            return "a time that nobody knows"
        if self.after is None:
            return f"before {month_in_words(self.before)}"
        if self.after >= self.before:
            return f"about {month_in_words(self.before)}"
        return f"between {month_in_words(self.after)} and {month_in_words(self.before)}"


class ChartPlace(NamedTuple):
    """A document in the order of the feed, newest first, as far as the chart needs it."""

    url: str
    is_missing: bool
    span: ChartSpan | None
    """The months of its entries; None where it has none that are dated, or is missing."""
