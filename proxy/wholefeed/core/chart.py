"""A chart of a feed's entries per month, with its gaps and its missing documents.

A month is a number: 12 times its year, plus 0 for January to 11 for December.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from wholefeed.core.text.dates import MONTH_NAMES


def chart_of(months: Mapping[int, int], holes: Iterable[Hole] = ()) -> Chart | None:
    """Return the chart, or None if no entry is dated; `months` counts entries by month."""
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
        # A hole at an unknown time gets no mark.
        hole_marks=tuple(_hole_mark(frame, hole) for hole in holes if hole.before is not None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    unit: str
    """`month`, `year`, `decade` or `century`."""
    bars: tuple[Bar, ...]
    top: int
    """Entries at the top of the axis; even, so that the middle is an integer."""
    span: ChartSpan
    gaps: tuple[ChartSpan, ...]
    """The longest runs of months without entries, in order of time."""
    more_gaps: int
    gap_marks: tuple[ChartMark, ...]
    hole_marks: tuple[ChartMark, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        count = len(self.bars)
        places = (0,) if count == 1 else (0, count - 1) if count == 2 else (0, count // 2, count - 1)  # noqa: PLR2004
        return tuple(self.bars[place].label for place in places)


class Bar(NamedTuple):
    label: str
    entries: int
    x: float
    y: float
    width: float
    height: float


class ChartMark(NamedTuple):
    x: float
    width: float
    words: str


class ChartSpan(NamedTuple):
    """Months in a row, both ends included."""

    first: int
    last: int

    @property
    def months(self) -> int:
        return self.last - self.first + 1

    @property
    def words(self) -> str:
        if self.first == self.last:
            return month_in_words(self.first)
        return f"{month_in_words(self.first)} to {month_in_words(self.last)} ({self.months} months)"


MOST_BARS: Final = 60
"""More bars change the unit to years, decades or centuries."""
MOST_GAPS: Final = 8
WIDTH: Final = 1000.0
HEIGHT: Final = 200.0
_YEAR: Final = 12
_CHART_UNITS: Final = (("month", 1), ("year", _YEAR), ("decade", 10 * _YEAR), ("century", 100 * _YEAR))


def month_number(year: int, month: int) -> int:
    return year * _YEAR + month - 1


def month_in_words(month: int) -> str:
    return f"{MONTH_NAMES[month % _YEAR]} {month // _YEAR}"


def gaps_of(months: Iterable[int]) -> tuple[ChartSpan, ...]:
    pairs = pairwise(sorted(months))
    return tuple(ChartSpan(earlier + 1, later - 1) for earlier, later in pairs if later - earlier > 1)


def axis_top(most: int) -> int:
    """Return a round, even number, at least `most`."""
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
# A single month must not become a block.
_WIDEST: Final = 60.0
# A single entry among thousands must stay visible.
_LEAST_HEIGHT: Final = 3.0


def _label(first: int, size: int) -> str:
    if size == 1:
        return month_in_words(first)
    year = first // _YEAR
    return str(year) if size == _YEAR else f"{year} to {year + size // _YEAR - 1}"


def _mark(frame: ChartSpan, span: ChartSpan, words: str) -> ChartMark:
    left = (max(span.first, frame.first) - frame.first) * WIDTH / frame.months
    right = (min(span.last, frame.last) + 1 - frame.first) * WIDTH / frame.months
    width = max(_LEAST_WIDTH, right - left)
    return ChartMark(round(max(0.0, min(left, WIDTH - width)), 2), round(width, 2), words)


_LEAST_WIDTH: Final = 14.0


def _hole_mark(frame: ChartSpan, hole: Hole) -> ChartMark:
    assert hole.before is not None, "something is known of its time"
    # Behind all known documents, the mark stands at their end.
    first = hole.before if hole.after is None else min(hole.after, hole.before)
    last = first - 1 if hole.after is None else hole.before
    return _mark(frame, ChartSpan(first, last), hole.words)


def holes_of(places: Sequence[ChartPlace]) -> tuple[Hole, ...]:
    """Date the missing documents of a feed by their neighbours."""
    found = []
    for at, place in enumerate(places):
        if not place.is_missing:
            continue
        before = next((each.span.first for each in reversed(places[:at]) if each.span is not None), None)
        after = next((each.span.last for each in places[at + 1 :] if each.span is not None), None)
        found.append(Hole(place.url, after, before))
    return tuple(found)


class Hole(NamedTuple):
    url: str
    after: int | None
    """Newest month known behind it; None: unknown."""
    before: int | None
    """Oldest month known in front of it; None: unknown."""

    @property
    def words(self) -> str:
        if self.before is None:
            return "a time that nobody knows"
        if self.after is None:
            return f"before {month_in_words(self.before)}"
        if self.after >= self.before:
            return f"about {month_in_words(self.before)}"
        return f"between {month_in_words(self.after)} and {month_in_words(self.before)}"


class ChartPlace(NamedTuple):
    url: str
    is_missing: bool
    span: ChartSpan | None
    """Months of its entries; None: unknown."""
