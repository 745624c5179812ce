"""Guess the URLs of the next archive documents from those before (docs/design.md#look-ahead).

Archives are mostly numbered or dated: after `…/archive/41` and `…/archive/40` comes `…/archive/39`, after
`…/2003/01` and `…/2002/12` comes `…/2002/11`. A guess only starts a request early; it counts for nothing
until the chain links to it.

    next_urls(["http://o.test/a/41", "http://o.test/a/40"], 2)    # (".../39", ".../38")
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from wholefeed.core.text.uri import joined, split
from wholefeed.core.text.urls import MAX_URL_CHARACTERS, document_key

_MONTHS: Final = 12
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2199
_LARGEST_NUMBER: Final = 10**15
_REMEMBERED: Final = 64
"""Differences of two URLs: the same few are asked for with each document of a walk."""

_NUMBER: Final = r"(?<![0-9])[0-9]{1,15}(?![0-9])"
_YEAR: Final = "(?:19[7-9][0-9]|2[01][0-9]{2})"
_DATE: Final = (
    rf"(?<![0-9]){_YEAR}"
    r"(?:(?P<sep>[-/_.])[0-9]{1,2}(?:(?P=sep)[0-9]{1,2})?|[0-9]{2}(?:[0-9]{2})?)(?![0-9])"
)
_DATES_AND_NUMBERS: Final = re.compile(f"{_DATE}|{_NUMBER}")
_NUMBERS: Final = re.compile(_NUMBER)
_DATE_PARTS: Final = re.compile(rf"({_YEAR})([-/_.])([0-9]{{1,2}})(?:\2([0-9]{{1,2}}))?")
_COMPACT_DATE_PARTS: Final = re.compile(rf"({_YEAR})()([0-9]{{2}})([0-9]{{2}})?")


class _Counter(NamedTuple):
    """A part of a URL that counts: its value, and how another value is written."""

    value: int
    write: Callable[[int], str | None]


class _Step(NamedTuple):
    """Two URLs that differ in one counter."""

    before: str
    after: str
    delta: int
    counter: _Counter


def next_urls(steps: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the URLs that probably follow, the nearest first; none where no pattern shows.

    Two URLs are a pattern when they differ in one date or one number by one; by any other amount when the
    URL before them confirms it. Zero padding is kept, and no number goes below 0.

    Args:
        steps: The URLs that the chain linked to so far, in order; the last three are looked at.
        count: Guesses wanted at most.
    """
    for pattern in (_DATES_AND_NUMBERS, _NUMBERS):
        step = _step(steps, pattern)
        if step is not None:
            return _continued(step, count)
    return ()


def count_left(steps: Sequence[str], last_url: str = "") -> int | None:
    """Return how many documents probably follow; None where their URLs do not tell.

    Numbers that go down end at 1, or where no further step fits; those that go up end at `last_url`'s.

    Args:
        steps: As for `next_urls`.
        last_url: Of the last document, where it is known.
    """
    step, dated = _step(steps, _NUMBERS), _step(steps, _DATES_AND_NUMBERS)
    if step is None or dated is None or dated.before != step.before:
        return None
    written = step.counter.write(step.counter.value) or ""
    if not written.isdecimal() or int(written) != step.counter.value:  # dates end nobody knows where
        return None
    if step.delta < 0:
        return max(0, (step.counter.value - 1) // -step.delta)
    last = _difference(steps[-1], last_url, _NUMBERS) if last_url else None
    if last is None or last[:2] != step[:2]:
        return None
    return max(0, last.delta // step.delta)


def is_counted(url: str, other: str) -> bool:
    """Return whether counting can lead from one URL to the other: they differ in one number or date."""
    return any(_difference(url, other, pattern) is not None for pattern in (_DATES_AND_NUMBERS, _NUMBERS))


class Guesses:
    """What was guessed on one walk, and whether guessing has paid.

    Args:
        max_window: Documents ahead of the chain at most. The window begins with two and doubles with
            each guess that the chain then links to; the first wrong guess closes it for good.
    """

    FIRST_WINDOW: Final = 2

    def __init__(self, *, max_window: int) -> None:
        self._window = min(self.FIRST_WINDOW, max_window)
        self._max_window = max_window
        self._followers: dict[str, str] = {}

    @property
    def window(self) -> int:
        """How many documents ahead may be guessed now."""
        return self._window

    def after(self, steps: Sequence[str]) -> tuple[str, ...]:
        """Return the guesses that follow the last of these URLs."""
        guessed = next_urls(steps, self._window) if self._window else ()
        for url, follower in zip((steps[-1], *guessed), guessed, strict=False):
            self._followers[document_key(url)] = document_key(follower)
        return guessed

    def check(self, url: str, older_url: str) -> None:
        """Compare with what was guessed the link that a document of the chain turned out to bear."""
        guessed = self._followers.pop(document_key(url), None)
        if guessed is None or not self._window:
            return
        is_hit = guessed == document_key(older_url)
        self._window = min(self._window * 2, self._max_window) if is_hit else 0

    def end(self) -> None:
        """Guess no more on this walk."""
        self._window = 0


def _step(steps: Sequence[str], pattern: re.Pattern[str]) -> _Step | None:
    if len(steps) < 2:  # noqa: PLR2004
        return None
    step = _difference(steps[-2], steps[-1], pattern)
    if step is None or abs(step.delta) == 1:
        return step
    earlier = _difference(steps[-3], steps[-2], pattern) if len(steps) > 2 else None  # noqa: PLR2004
    is_confirmed = earlier is not None and earlier[:3] == step[:3]
    return step if is_confirmed else None


def _continued(step: _Step, count: int) -> tuple[str, ...]:
    urls: list[str] = []
    value = step.counter.value
    while len(urls) < count:
        value += step.delta
        text = step.counter.write(value)
        if text is None or len(step.before) + len(text) + len(step.after) > MAX_URL_CHARACTERS:
            break
        urls.append(f"{step.before}{text}{step.after}")
    return tuple(urls)


@lru_cache(_REMEMBERED)
def _difference(first: str, second: str, pattern: re.Pattern[str]) -> _Step | None:
    """Return in which counter alone two URLs of one host differ."""
    origin, one = _divided(first)
    other_origin, two = _divided(second)
    ours, theirs = list(pattern.finditer(one)), list(pattern.finditer(two))
    if origin != other_origin or len(ours) != len(theirs):
        return None
    if pattern.sub("\0", one) != pattern.sub("\0", two):
        return None
    differing = [(a, b) for a, b in zip(ours, theirs, strict=True) if a[0] != b[0]]
    if len(differing) != 1:
        return None
    a, b = differing[0]
    return _counted(a[0], b[0], f"{origin}{two[: b.start()]}", two[b.end() :])


def _counted(first: str, second: str, before: str, after: str) -> _Step | None:
    counters = _dates(first, second) or (_number(first, first), _number(second, first))
    if counters[0] is None or counters[1] is None or counters[0].value == counters[1].value:
        return None
    return _Step(before, after, counters[1].value - counters[0].value, counters[1])


@lru_cache(_REMEMBERED)
def _divided(url: str) -> tuple[str, str]:
    parts = split(url)
    origin = joined(parts._replace(path="", query=None, fragment=None))
    return origin, joined(parts._replace(scheme=None, authority=None, fragment=None))


def _number(text: str, other: str) -> _Counter | None:
    if not text.isdecimal():
        return None
    is_padded = any(each.startswith("0") and len(each) > 1 for each in (text, other))
    width = len(text) if is_padded else 1
    return _Counter(int(text), lambda value: f"{value:0{width}d}" if 0 <= value < _LARGEST_NUMBER else None)


def _dates(first: str, second: str) -> tuple[_Counter, _Counter] | None:
    """Read both as years with months, or with months and days; None where one is no date."""
    pattern = _DATE_PARTS if re.search("[^0-9]", second) else _COMPACT_DATE_PARTS
    one, two = pattern.fullmatch(first), pattern.fullmatch(second)
    if one is None or two is None or (one[4] is None) != (two[4] is None) or one[2] != two[2]:
        return None
    parts = [part for match in (one, two) for part in match.groups()[2:] if part is not None]
    width = 2 if not two[2] or all(len(part) > 1 for part in parts) else 1
    counter = _months if one[4] is None else _days
    earlier, later = counter(one, width), counter(two, width)
    return None if earlier is None or later is None else (earlier, later)


def _months(match: re.Match[str], width: int) -> _Counter | None:
    year, month, separator = int(match[1]), int(match[3]), match[2]
    if not 1 <= month <= _MONTHS:
        return None

    def write(value: int) -> str | None:
        year, month = divmod(value, _MONTHS)
        is_plausible = _FIRST_YEAR <= year <= _LAST_YEAR
        return f"{year}{separator}{month + 1:0{width}d}" if is_plausible else None

    return _Counter(year * _MONTHS + month - 1, write)


def _days(match: re.Match[str], width: int) -> _Counter | None:
    separator = match[2]
    try:
        day = datetime.date(int(match[1]), int(match[3]), int(match[4]))
    except ValueError:
        return None

    def write(value: int) -> str | None:
        day = datetime.date.fromordinal(value)
        parts = f"{day.year}", f"{day.month:0{width}d}", f"{day.day:0{width}d}"
        return separator.join(parts) if _FIRST_YEAR <= day.year <= _LAST_YEAR else None

    return _Counter(day.toordinal(), write)
