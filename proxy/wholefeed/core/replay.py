"""Replays: a feed from its beginning, at a chosen pace (P1, P2).

A replayed feed has numbered *lines*, one per entry ever seen, in order of arrival. A release depends only on
these and the pace, so released entries never change date or place.

*Backlog* lines existed when numbering began, or arrived before the pace began: they take slots, oldest first.
*Late* lines arrived later with an entry older than the pace: they take slots behind the backlog. Others are
*live*: they are released on arrival, once backlog and earlier live lines are out.

Instants are whole epoch seconds, as in feeds.
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
    """An entry that a feed has or had; its number is its place, from 1."""

    arrived_at: int
    """Its first publication by the proxy; never before the previous line's."""
    sorted_at: float
    """The entry's date; without one, its older neighbour's."""
    is_dated: bool


class PaceError(ValueError):
    """An impossible pace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPace:
    """A number of entries per period, from an instant on."""

    count: int
    """1 to 50."""
    period_seconds: int
    """A day or a week."""
    from_at: int
    """The first slot, epoch seconds."""
    offset_seconds: int = 0
    """East of UTC, to count days; the same all year."""
    weekdays: frozenset[int] = frozenset()
    """Days of release, 0 is Monday; empty: all. Only with a daily period."""

    @classmethod
    def read(cls, rate: str, since: str, weekdays: str | None = None) -> Self:
        """Parse parameters of a URL.

        `rate` is `N/day` or `N/week`, `since` an RFC 3339 instant with offset, `weekdays` such as
        `mon,wed,fri`.

        Raises:
            PaceError: An invalid parameter.
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
        """Format for ids of replays; any other form is another feed to readers."""
        rate = f"{self.count}/{'day' if self.period_seconds == DAY_SECONDS else 'week'}"
        days = ",".join(WEEKDAYS[day] for day in sorted(self.weekdays))
        return f"{rate} from {self.from_at} at {self.offset_seconds} on {days or 'all'}"

    def slot(self, place: int) -> int:
        """Return the instant of a slot; places count from 0.

        Raises:
            PaceError: After the year 9999.
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
        """Return the pace's local time, without offset, in 9999 at most."""
        return datetime(1970, 1, 1) + timedelta(seconds=min(at + self.offset_seconds, _LAST_AT))  # noqa: DTZ001

    def first_from(self, at: int) -> int:
        """Return the place of the first slot at or after an instant."""
        most = max(0, _LAST_AT - self.from_at) * self.count // self.period_seconds + 2
        return bisect_left(range(most), at, key=self._at)

    def step_from(self, at: int) -> int:
        if self.weekdays:
            return self.slot(self.first_from(at + 1))
        return at + self.period_seconds // self.count


MOST: Final = 50
"""Largest number of entries per period."""
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def is_rate(text: str) -> bool:
    return _RATE.fullmatch(text) is not None


_RATE: Final = re.compile(rf"(?P<count>[1-9]|[1-4][0-9]|{MOST})/(?P<period>day|week)", re.ASCII)
_FROM: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII | re.IGNORECASE
)
# 1 January 1970 was a Thursday.
_FIRST_WEEKDAY: Final = 3
_FIRST_AT: Final = int(datetime(1, 1, 1, tzinfo=UTC).timestamp())
_LAST_AT: Final = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


def _instant(text: str) -> tuple[int, int]:
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
"""Default hour of release."""


def last_beginning(clock: datetime, weekdays: Collection[int] = ()) -> datetime:
    """Return the last 6:00 of a clock, on one of `weekdays` if any (0 is Monday).

    A replay from then has its first entries at once. The result has no offset: the clock's owner knows it.
    """
    at = clock.replace(hour=FIRST_HOUR, minute=0, second=0, microsecond=0, tzinfo=None)
    if at > clock.replace(tzinfo=None):
        at -= timedelta(days=1)
    while weekdays and at.weekday() not in weekdays:
        at -= timedelta(days=1)
    return at


# Releases

LATE_SECONDS: Final = 60
"""Delay of a late line behind its slot, which a live line may share."""


def releases(lines: Sequence[Line], begun: int, pace: ReplayPace) -> list[int]:
    """Return when each line is released, epoch seconds.

    `begun` is the number of lines when numbering began.

    Raises:
        PaceError: After the year 9999.
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
    # Take `at` or the first free instant behind it. Thousands of entries may arrive at once, so each passed
    # instant points behind them all.
    passed = []
    while (further := taken.get(at)) is not None:
        passed.append(at)
        at = further
    taken.update(dict.fromkeys((*passed, at), at + 1))
    return at


def _backlog(lines: Sequence[Line], begun: int, pace: ReplayPace) -> int:
    size = begun
    while size < len(lines) and lines[size].arrived_at <= pace.from_at:
        size += 1
    return size
