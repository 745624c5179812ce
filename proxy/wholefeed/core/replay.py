"""A feed from its beginning, at a pace: which of its entries are out, and since when (P1, P2).

A feed that is asked for in this way has *lines*, one for each entry that it ever had: numbered in the order
in which they came, never renumbered. When each is released depends on what a reader's owner chose
(`ReplayPace`), on its own line and on the lines before it, and on nothing else: so what was released never
changes its date or its place, whatever comes later.

    pace = Pace.read("1/day", "2026-11-01T06:00:00+01:00")
    instants = releases(lines, begun, pace)         # of each line, in their order
    [line for line, at in zip(lines, instants) if at <= now]

*Backlog* are the lines that the feed had when they were begun, and those that came before the pace began.
They take the slots of the pace, oldest first. A later line is *late* if its entry is older than the pace: it
takes a slot behind those. Any other is *live*: it is released when it comes, once all before it are out.

All instants are whole seconds since the epoch: so they are written in feeds.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Self

from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS


class Line(NamedTuple):
    """An entry that a feed has or had. Its number is its place among them, from 1 on: as entries came."""

    arrived_at: int
    """When it was first published; never before the line in front of it."""
    sorted_at: float
    """When its entry says that it was published; of one without a date, when its older neighbour was."""
    is_dated: bool


class PaceError(ValueError):
    """A pace that cannot be: the message says what was expected, and what came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPace:
    """How many entries are released in which time, and since when."""

    count: int
    """1 to 50."""
    period_seconds: int
    """A day or a week."""
    from_at: int
    """Of the first slot, epoch seconds."""
    offset_seconds: int = 0
    """Of the clock by which days are counted, east of UTC. It stays the same in summer and winter."""
    weekdays: frozenset[int] = frozenset()
    """With a day as period: those on which entries are released, 0 is Monday; none: on all of them."""

    @classmethod
    def read(cls, rate: str, since: str, weekdays: str | None = None) -> Self:
        """Return the pace that parameters of a URL name.

        Args:
            rate: `N/day` or `N/week`.
            since: An RFC 3339 instant with its offset.
            weekdays: As `mon,wed,fri`, for `N/day` alone.

        Raises:
            PaceError: One of them is something else.
        """
        match = _RATE.fullmatch(rate)
        if match is None:
            raise PaceError(f"expected replay as N/day or N/week, N from 1 to {MOST}, got {rate[:40]!r}")
        period_seconds = DAY_SECONDS if match["period"] == "day" else WEEK_SECONDS
        days = frozenset[int]()
        if weekdays is not None:
            names = weekdays.split(",")
            days = frozenset(WEEKDAYS.index(name) for name in names if name in WEEKDAYS)
            if period_seconds != DAY_SECONDS or len(days) != len(names):
                expected = f"on as days such as mon,wed,fri, each once, beside replay={match['count']}/day"
                raise PaceError(f"expected {expected}, got {weekdays[:40]!r}")
        from_at, offset_seconds = _instant(since)
        return cls(
            count=int(match["count"]),
            period_seconds=period_seconds,
            from_at=from_at,
            offset_seconds=offset_seconds,
            weekdays=days,
        )

    def __str__(self) -> str:
        """As it stands in the ids of replays: what is written otherwise is another feed to readers."""
        rate = f"{self.count}/{'day' if self.period_seconds == DAY_SECONDS else 'week'}"
        days = ",".join(WEEKDAYS[day] for day in sorted(self.weekdays))
        return f"{rate} from {self.from_at} at {self.offset_seconds} on {days or 'all'}"

    def slot(self, place: int) -> int:
        """Return when an entry is released that stands at a place in the line of those that wait, from 0.

        Raises:
            PaceError: Behind the year 9999.
        """
        at = self._at(place)
        if at > _LAST_AT:
            raise PaceError("expected a pace that ends before the year 10000, got a later release")
        return at

    def _at(self, place: int) -> int:
        if self.weekdays:
            first_day = ((self.from_at + self.offset_seconds) // DAY_SECONDS + _FIRST_WEEKDAY) % 7
            days = sorted((day - first_day) % 7 for day in self.weekdays)
            week, place = divmod(place, len(days) * self.count)
            day, second = divmod(place, self.count)
            return self.from_at + week * WEEK_SECONDS + days[day] * DAY_SECONDS + second
        # A first day with one entry looks broken: where few are released, the second follows at once.
        begins_with_two = self.count * DAY_SECONDS < 2 * self.period_seconds
        step = max(place - 1, 0) if begins_with_two else place
        return self.from_at + step * self.period_seconds // self.count + (begins_with_two and place == 1)

    def clock(self, at: int) -> datetime:
        """Return what the clock of the pace shows at an instant, in 9999 at most, without its offset."""
        return datetime(1970, 1, 1) + timedelta(seconds=min(at + self.offset_seconds, _LAST_AT))  # noqa: DTZ001

    def first_from(self, at: int) -> int:
        """Return the place of the first slot at an instant or behind it."""
        most = max(0, _LAST_AT - self.from_at) * self.count // self.period_seconds + 2
        return bisect_left(range(most), at, key=self._at)

    def step_from(self, at: int) -> int:
        """Return the instant one step behind another one."""
        if self.weekdays:
            return self.slot(self.first_from(at + 1))
        return at + self.period_seconds // self.count


MOST: Final = 50
"""Entries in a day, or in a week."""
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_RATE: Final = re.compile(rf"(?P<count>[1-9]|[1-4][0-9]|{MOST})/(?P<period>day|week)", re.ASCII)
_FROM: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII | re.IGNORECASE
)
_FIRST_WEEKDAY: Final = 3
"""Of the first of January 1970: a Thursday."""
_FIRST_AT: Final = int(datetime(1, 1, 1, tzinfo=UTC).timestamp())
_LAST_AT: Final = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


def _instant(text: str) -> tuple[int, int]:
    """Return an instant, epoch seconds, and the offset that it is written with."""
    # A "+" that was not encoded means a blank in a query, and no blank stands in an instant.
    written = text.replace(" ", "+")
    try:
        at = datetime.fromisoformat(written) if _FROM.fullmatch(written) else None
        offset = at.utcoffset() if at is not None else None
        if at is not None and offset is not None and at.timestamp() >= _FIRST_AT:
            return int(at.timestamp() // 1), int(offset.total_seconds())
    except (ValueError, OverflowError):  # no such day
        pass
    expected = "from as an RFC 3339 instant with its offset, such as 2026-01-31T06:00:00+01:00"
    raise PaceError(f"expected {expected}, got {text[:40]!r}")


FIRST_HOUR: Final = 6
"""When entries are released each day, where nobody chooses another time."""


def last_beginning(clock: datetime, weekdays: Collection[int] = ()) -> datetime:
    """Return the last 6:00 of a clock, of one of these weekdays where there are any (0 is Monday).

    What begins then has its first entries out at once. Neither instant has an offset: whose clock it is knows
    which one holds on that day.
    """
    at = clock.replace(hour=FIRST_HOUR, minute=0, second=0, microsecond=0, tzinfo=None)
    if at > clock.replace(tzinfo=None):
        at -= timedelta(days=1)
    while weekdays and at.weekday() not in weekdays:
        at -= timedelta(days=1)
    return at


# When each line is released

LATE_SECONDS: Final = 60
"""So long behind its slot a late line is released: the slot may be a live one's, too."""


def releases(lines: Sequence[Line], begun: int, pace: ReplayPace) -> list[int]:
    """Return when each line is released, epoch seconds.

    Args:
        lines: In the order of their numbers.
        begun: How many there were when they were begun.
        pace: What was chosen.

    Raises:
        PaceError: The last one would be released behind the year 9999.
    """
    size = _backlog(lines, begun, pace)
    instants = [0] * len(lines)
    for slot, place in enumerate(sorted(range(size), key=lambda place: lines[place].sorted_at)):
        instants[place] = pace.slot(slot)
    taken = {at: at + 1 for at in instants[:size]}
    free = size  # the first slot behind the backlog's and the late ones'
    last = max(taken, default=pace.from_at)  # of backlog and live ones, without seconds between equals
    for place, line in enumerate(lines[size:], start=size):
        if line.is_dated and line.sorted_at < pace.from_at:
            slot = max(free, pace.first_from(line.arrived_at))
            at, free = pace.slot(slot) + LATE_SECONDS, slot + 1
        else:
            is_next = last <= line.arrived_at
            last = at = line.arrived_at if is_next else pace.step_from(last)
        instants[place] = _take(taken, at)
    return instants


def _take(taken: dict[int, int], at: int) -> int:
    """Take an instant, or the first one behind it that is free; `taken` says where to look next.

    Thousands of entries may come at once: what was passed by leads to the end of them from then on.
    """
    passed = []
    while (further := taken.get(at)) is not None:
        passed.append(at)
        at = further
    taken.update(dict.fromkeys((*passed, at), at + 1))
    return at


def _backlog(lines: Sequence[Line], begun: int, pace: ReplayPace) -> int:
    """Return how many lines, from the first on, wait for slots: no later one came before them."""
    size = begun
    while size < len(lines) and lines[size].arrived_at <= pace.from_at:
        size += 1
    return size
