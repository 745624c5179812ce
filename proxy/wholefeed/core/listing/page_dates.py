"""Read days, months and years as people write them beside links and above (H5).

Other dates on a page may tell the month in 03/04/2011 (`Slashed`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple, Self

from wholefeed.core.text.dates import DAY_SECONDS


class Day(NamedTuple):
    year: int | None
    month: int | None
    day: int | None

    @classmethod
    def of(cls, at: float) -> Self:
        day = date.fromordinal(_EPOCH + int(at // DAY_SECONDS))
        return cls(day.year, day.month, day.day)

    @property
    def at(self) -> float | None:
        """Epoch seconds of the first possible day; None: no valid date."""
        try:
            return (
                float(date(self.year or 0, self.month or 1, self.day or 1).toordinal() - _EPOCH) * DAY_SECONDS
            )
        except ValueError:
            return None

    @property
    def exactness(self) -> str:
        """`page` for a day, else `month` or `year`."""
        return "page" if self.day else "month" if self.month else "year"


_EPOCH: Final = date(1970, 1, 1).toordinal()
LONGEST: Final = 60
"""Characters of a date; longer text is prose."""


def may_say_day(text: str) -> bool:
    return len(text) <= LONGEST and _DIGIT.search(text) is not None


@lru_cache(maxsize=1024)
def read_date(text: str, *, is_alone: bool = False) -> Day | None:
    """Return the one day in a text with single blanks, perhaps without its year; None: no day.

    `is_alone`: nothing else may stand in it.
    """
    if not may_say_day(text):
        return None
    alone = _WEEKDAY.sub("", text.strip(_AROUND))
    if _HAS_YEAR.search(text):
        found = _first(_FULL, alone if is_alone else text, is_alone=is_alone)
        if found:
            return found
    return _first(_WITHOUT_YEAR, alone, is_alone=True)


def says_only_date(text: str) -> bool:
    """Return whether a text is a day, perhaps with a weekday, and nothing else."""
    if not may_say_day(text):
        return False
    return read_date(text, is_alone=True) is not None or _SLASHED.fullmatch(text.strip(_AROUND)) is not None


class Slashed(NamedTuple):
    """A day with the month first or second."""

    first: int
    second: int
    year: int

    @property
    def is_day_first(self) -> bool | None:
        """None: unknown."""
        if (self.first > _MONTHS) == (self.second > _MONTHS):
            return None
        return self.first > _MONTHS

    def day(self, *, is_day_first: bool | None) -> Day:
        """Return the day; empty if the order is unknown."""
        own = self.is_day_first
        if own is None and is_day_first is None:
            return Day(None, None, None)
        numbers = (self.first, self.second)
        day, month = numbers if (is_day_first if own is None else own) else numbers[::-1]
        return Day(self.year, month, day)


def read_slashed(text: str) -> Slashed | None:
    found = _SLASHED.search(text) if len(text) <= LONGEST else None
    return Slashed(*map(int, found.groups())) if found else None


_MONTHS: Final = 12
_SLASHED: Final = re.compile(r"(?<![\w./-])([0-9]{1,2})[/-]([0-9]{1,2})[/-]((?:19|20)[0-9]{2})(?![\d/-])")


def read_heading(text: str) -> Day | None:
    """Return the year or month that the whole text is, else None."""
    if not _DIGIT.search(text):
        name = text.strip(_AROUND).casefold()
        return Day(None, MONTHS[name], None) if name in MONTHS else None
    text = _COUNT.sub("", text[:LONGEST]).strip(_AROUND)
    return _first(_HEADINGS, text, is_alone=True)


def day_in(url: str) -> Day | None:
    """Return the date in a URL's folders, perhaps partial."""
    found = next((found for form in _IN_URL if (found := form.search(url[:_LONGEST_URL]))), None)
    return _said(found.groupdict()) if found else None


def _first(patterns: Iterable[re.Pattern[str]], text: str, *, is_alone: bool) -> Day | None:
    for pattern in patterns:
        found = pattern.fullmatch(text) if is_alone else pattern.search(text)
        if found and (said := _said(found.groupdict())):
            return said
    return None


def _said(groups: dict[str, str | None]) -> Day | None:
    year, day = groups.get("year"), groups.get("day")
    month = groups.get("month")
    number = (int(month) if month.isdecimal() else MONTHS.get(month.casefold())) if month else None
    said = Day(int(year) if year else None, number, int(day) if day else None)
    if (month and not said.month) or (year and not _FIRST_YEAR <= int(year) <= _LAST_YEAR):
        return None
    whole = said if year else said._replace(year=_LEAP_YEAR)
    return said if whole.at is not None else None


_FIRST_YEAR: Final = 1980
_LAST_YEAR: Final = 2199
_LEAP_YEAR: Final = 2000
_DIGIT: Final = re.compile(r"[0-9]")
_HAS_YEAR: Final = re.compile(r"[12][0-9]{3}")
_AROUND: Final = " \t\n\r\f\u00a0.,:;|/·•\u2013—-()[]»«"
_WEEKDAY: Final = re.compile(r"\A[^\W\d]{2,12}, (?=[^\W_])")
_COUNT: Final = re.compile(r"\s{0,3}[(\[][0-9]{1,5}(?: [^\W\d]{1,12})?[)\]]\s{0,3}\Z")

_LONGEST_URL: Final = 300
MONTH_IN_URL: Final = (
    "(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_IN_URL: Final = tuple(
    re.compile(rf"/(?P<year>19[89][0-9]|20[0-9]{{2}}){behind}")
    for behind in (
        r"-(?P<month>0[1-9]|1[0-2])-(?P<day>3[01]|[12][0-9]|0[1-9])(?![0-9])",
        r"/(?P<month>1[0-2]|0?[1-9])/(?P<day>3[01]|[12][0-9]|0?[1-9])(?=/)",
        rf"/(?P<month>{MONTH_IN_URL})/(?P<day>3[01]|[12][0-9]|0?[1-9])(?=/)",  # Django's date-based views
        r"[-/](?P<month>1[0-2]|0?[1-9])(?=/)",
        rf"/(?P<month>{MONTH_IN_URL})(?=/)",
        r"(?=/[^/])",
    )
)
_YEAR: Final = r"(?P<year>[12][0-9]{3})"
_MONTH: Final = r"(?P<month>[^\W\d_]{3,10})\.?"
_NUMBER: Final = r"(?P<month>1[0-2]|0?[1-9])"
_DAY: Final = r"(?P<day>3[01]|[12][0-9]|0?[1-9])"
_NTH: Final = rf"{_DAY}(?:st|nd|rd|th|er|\.|º|ª)?"
_CLOCK: Final = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
_FULL: Final = tuple(
    re.compile(rf"(?<![\w.-]){pattern}(?![\d-])")
    for pattern in (
        rf"{_YEAR}[-/.]{_NUMBER}[-/.]{_DAY}",
        rf"{_YEAR}年 ?{_NUMBER}月 ?{_DAY}日",
        rf"{_DAY}\. ?{_NUMBER}\. ?{_YEAR}",
        rf"{_NTH} (?:de |of )?{_MONTH},? (?:de |del )?{_YEAR}",
        rf"{_NTH}-{_MONTH}-{_YEAR}",
        rf"{_MONTH} {_NTH},? {_YEAR}",
        rf"{_YEAR},? {_MONTH} {_NTH}",
        rf"{_MONTH} {_DAY} {_CLOCK} (?:[A-Z]{{1,5}} )?{_YEAR}",  # C's %c and ctime (ISO C 7.27.3.2), date(1)
    )
)
_WITHOUT_YEAR: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_NTH} (?:de |of )?{_MONTH}",
        rf"{_MONTH} {_NTH}",
        r"(?P<month>1[0-2]|0[1-9])-(?P<day>3[01]|[12][0-9]|0[1-9])",
        rf"{_NUMBER}月 ?{_DAY}日",
        r"(?P<day>3[01]|[12][0-9]|0[1-9])\.(?P<month>1[0-2]|0[1-9])",
    )
)
_HEADINGS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_YEAR}年?",
        rf"{_MONTH},? (?:de |of )?{_YEAR}",
        rf"{_YEAR},? {_MONTH}",
        rf"{_YEAR}[-/.]{_NUMBER}",
        rf"{_YEAR}年 ?{_NUMBER}月",
        _MONTH,
        rf"{_NUMBER}月",
    )
)


def _names() -> dict[str, int]:
    """Return months by name in some languages, and by each unambiguous beginning."""
    beginnings: dict[str, set[int]] = {}
    for month, names in enumerate(_NAMES, start=1):
        for name in names.split():
            for end in range(min(_SHORTEST, len(name)), len(name) + 1):
                beginnings.setdefault(name[:end], set()).add(month)
    return {name: min(months) for name, months in beginnings.items() if len(months) == 1}


_SHORTEST: Final = 3
_NAMES: Final = (
    "january januar janvier enero gennaio janeiro januari leden styczeń января",
    "february februar février fevrier febrero febbraio fevereiro februari luty февраля",
    "march märz mrz mars marzo março maart marts marzec марта",
    "april avril abril aprile kwiecień апреля",
    "may mai mayo maggio maio mei maj мая",
    "june juni juin junio giugno junho июня",
    "july juli juillet julio luglio julho lipiec июля",
    "august août aout agosto augustus sierpień августа",
    "september septembre septiembre settembre setembro wrzesień сентября",
    "october oktober octobre octubre ottobre outubro октября",
    "november novembre noviembre novembro listopad ноября",
    "december dezember décembre decembre diciembre dicembre dezembro grudzień декабря",
)
MONTHS: Final = _names()
