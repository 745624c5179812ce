"""Read and write instants of feeds: RFC 3339 in Atom, RFC 822 in RSS, and their common variants.

Dates of feeds are read leniently, HTTP dates strictly. UTC replaces a missing zone, or an undefined zone name
(RFC 2822, 4.3). Results are exact to the microsecond; finer digits are dropped.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

HOUR_SECONDS: Final = 3_600
DAY_SECONDS: Final = 24 * HOUR_SECONDS
WEEK_SECONDS: Final = 7 * DAY_SECONDS


def parse_rfc3339(text: str) -> float | None:
    """Return the epoch seconds of an Atom date (RFC 4287, 3.3), or RFC 822 date; None if unreadable."""
    instant = _strict(text)
    if instant is None and (cleaned := _clean(text)):
        instant = _read_iso(cleaned)
        if instant is None:
            instant = _read_rfc822(cleaned)
    return instant


def parse_rfc822(text: str) -> float | None:
    """Return the epoch seconds of an RSS date (RFC 822, section 5), or ISO 8601 date; None if unreadable."""
    instant = _usual_rfc822(text)
    if instant is not None:
        return instant
    cleaned = _clean(text)
    if not cleaned:
        return None
    instant = _read_rfc822(cleaned)
    return _read_iso(cleaned) if instant is None else instant


def calendar_date(text: str) -> str:
    """Return the date of a text without a time of day: `2019-03-03`, `2019-03` or `2019`; else "".

    Midnight by its own clock is no time, too: programs write it for one that they do not know.
    """
    if ":" in text and "00:00" not in text:
        return ""
    cleaned = _clean(text)
    found = _match_iso(cleaned) or _match_rfc822(cleaned)
    if found is None or found.instant is None or any(int(each or 0) for each in found.rest[:_CLOCK_GROUPS]):
        return ""
    rest = (f"-{each:02}" for each in (found.month, found.day) if each is not None)
    return f"{found.year:04}{''.join(rest)}"


_CLOCK_GROUPS: Final = 4


def calendar_words(on: str) -> str:
    """Return a date of `calendar_date` in words: `3 March 2019`, `March 2019`."""
    year, *rest = on.split("-")
    named = MONTH_NAMES[int(rest[0]) - 1] if rest else ""
    return " ".join([*(str(int(day)) for day in rest[1:]), *([named] if rest else ()), str(int(year))])


def year_of(instant: float) -> int:
    """Return the year of epoch seconds, in UTC."""
    days = int(instant // DAY_SECONDS) + _EPOCH_DAY
    return date.fromordinal(min(max(days, 1), date.max.toordinal())).year


def format_rfc3339(instant: float) -> str:
    """Return epoch seconds as RFC 3339: whole seconds, UTC, e.g. `2003-12-13T18:30:02Z`."""
    return datetime.fromtimestamp(int(instant), UTC).isoformat().replace("+00:00", "Z")


def format_rfc822(instant: float) -> str:
    """Return epoch seconds as RFC 822: whole seconds, GMT, a year of four digits."""
    at = datetime.fromtimestamp(int(instant), UTC)
    # `email.utils` would load much that no worker needs.
    day, month = _WEEKDAYS[at.weekday()], MONTH_NAMES[at.month - 1][:3]
    return f"{day}, {at.day:02} {month} {at.year:04} {at:%H:%M:%S} GMT"


_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


# The usual forms


def _strict(text: str) -> float | None:
    # The standard library reads the usual form, five times as fast.
    if len(text) < _UTC_CHARACTERS or text[10] != "T":
        return None
    if text[-1] != "Z" and not (text[-6] in "+-" and text[-2] < "6"):
        return None
    try:
        instant = _from_iso(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return instant if _FIRST <= instant < _END else None


_from_iso: Final = datetime.fromisoformat
_UTC_CHARACTERS: Final = len("2003-12-13T18:30:02Z")


def _usual_rfc822(text: str) -> float | None:
    # The usual form of an RSS date is read three times as fast.
    match = _USUAL.fullmatch(text)
    if match is None:
        return None
    day, month, year, hour, minute, second, sign, zone_hours, zone_minutes = match.groups()
    try:
        at = datetime(
            int(year), _MONTHS[month], int(day), int(hour), int(minute), int(second), tzinfo=UTC
        ).timestamp()
    except (ValueError, KeyError):
        return None
    if sign:
        offset = int(zone_hours) * 3600 + int(zone_minutes) * 60
        at = at + offset if sign == "-" else at - offset
    return at if _FIRST <= at <= _LAST else None


_USUAL: Final = re.compile(
    r"[A-Z][a-z]{2}, ([0-9]{1,2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r" (?:GMT|UTC|([+-])([01][0-9]|2[0-3])([0-5][0-9]))"
)
MONTH_NAMES: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTHS: Final = {name[:3]: number for number, name in enumerate(MONTH_NAMES, start=1)}
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_FIRST: Final = (date.min.toordinal() - _EPOCH_DAY) * DAY_SECONDS
_LAST: Final = (date.max.toordinal() - _EPOCH_DAY + 1) * DAY_SECONDS - 1
_END: Final = _LAST + 1


# HTTP's header fields


def parse_http_date(text: str, *, now: float) -> float | None:
    """Return the epoch seconds of an HTTP-date (RFC 9110, section 5.6.7), else None.

    A year of two digits is the last one at most fifty years after `now` (epoch seconds).
    """
    match = next((match for form in _HTTP_FORMS if (match := form.fullmatch(text.strip(" \t")))), None)
    if match is None:
        return None
    # A wrong weekday does no harm.
    year, month, day = int(match["year"]), _MONTHS[match["month"]], int(match["day"])
    clock = (int(match["hour"]), int(match["minute"]), int(match["second"]))
    if len(match["year"]) < len("2003"):
        latest = datetime.fromtimestamp(now, UTC).replace(tzinfo=None)
        last_year = latest.year + 50
        year = last_year - (last_year - year) % 100
        if (year, month, day, *clock) > (last_year, *latest.timetuple()[1:6]):
            year -= 100
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    hour, minute, second = clock
    if hour > 23 or minute > 59 or second > 60:  # noqa: PLR2004 - a leap second is one
        return None
    return float(days * DAY_SECONDS + hour * 3600 + minute * 60 + second)


_HTTP_MONTH: Final = rf"(?P<month>{'|'.join(_MONTHS)})"
_HTTP_TIME: Final = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_HTTP_FORMS: Final = (
    re.compile(
        r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), "
        rf"(?P<day>[0-9]{{2}}) {_HTTP_MONTH} (?P<year>[0-9]{{4}}) {_HTTP_TIME} GMT"
    ),
    re.compile(  # RFC 850's
        r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, "
        rf"(?P<day>[0-9]{{2}})-{_HTTP_MONTH}-(?P<year>[0-9]{{2}}) {_HTTP_TIME} GMT"
    ),
    re.compile(  # asctime()'s
        r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) "
        rf"{_HTTP_MONTH} (?P<day>[0-9]{{2}}| [0-9]) {_HTTP_TIME} (?P<year>[0-9]{{4}})"
    ),
)


# Common variants


def _clean(text: str) -> str:
    cleaned = " ".join(text.split())
    return cleaned if len(cleaned) <= _LONGEST else ""


_LONGEST: Final = 80
_TIME: Final = r"([0-9]{1,2}):?([0-9]{2})(?::?([0-9]{1,2})(?:[.,]([0-9]+))?)?(?:\s*([AaPp])\.?[Mm]\.?)?"
_ZONE: Final = r"\s*([A-Za-z]{1,5})?\s*(?:([+-])\s*([0-9]{1,2})(?::?([0-9]{2}))?)?"
_REMARK: Final = r"\s*(?:\([^()]*\))?"

# RFC 3339, section 5.6, W3CDTF's short forms, and blanks where the T belongs.
_ISO: Final = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?|([0-9]{2})([0-9]{2}))?"
    rf"(?:(?:\s*[Tt]\s*|\s+){_TIME})?{_ZONE}{_REMARK}"
)


class _WrittenParts(NamedTuple):
    year: int
    month: int | None
    day: int | None
    rest: _Groups

    @property
    def instant(self) -> float | None:
        month, day = (1 if each is None else each for each in (self.month, self.day))
        return _instant(self.year, month, day, self.rest)


def _read_iso(text: str) -> float | None:
    found = _match_iso(text)
    return None if found is None else found.instant


def _match_iso(text: str) -> _WrittenParts | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    year, month, day, short_month, short_day, *rest = match.groups()
    month, day = month or short_month, day or short_day
    return _WrittenParts(
        int(year), None if month is None else int(month), None if day is None else int(day), tuple(rest)
    )


_WEEKDAY: Final = r"(?:[^\W\d]{2,}\.?\s*,?\s*)?"

# RFC 822, section 5, also with the dashes of RFC 850; the weekday does not count.
_DAY_FIRST: Final = re.compile(
    rf"{_WEEKDAY},?\s*([0-9]{{1,2}})[\s-]*([A-Za-z]{{3,9}})\.?[\s,-]*([0-9]{{4}}|[0-9]{{2,3}})"
    rf"(?:[\s,Tt]+{_TIME})?{_ZONE}{_REMARK}"
)
_MONTH_FIRST: Final = re.compile(
    rf"(?:[A-Za-z]{{3,9}}\.?,?\s+)??([A-Za-z]{{3,9}})\.?\s+([0-9]{{1,2}}),?\s+([0-9]{{4}})(?:[\s,]+{_TIME})?{_ZONE}{_REMARK}"
)

# ANSI C's asctime(): the year stands last.
_ASCTIME: Final = re.compile(
    rf"(?:[A-Za-z]{{3,9}}\.?,?\s+)??([A-Za-z]{{3,9}})\.?\s+([0-9]{{1,2}}),?\s+{_TIME}{_ZONE}\s+([0-9]{{4}})"
)


def _read_rfc822(text: str) -> float | None:
    found = _match_rfc822(text)
    return None if found is None else found.instant


def _match_rfc822(text: str) -> _WrittenParts | None:
    if match := _DAY_FIRST.fullmatch(text):
        day, month, year, *rest = match.groups()
    elif match := _MONTH_FIRST.fullmatch(text):
        month, day, year, *rest = match.groups()
    elif match := _ASCTIME.fullmatch(text):
        month, day, *rest, year = match.groups()
    else:
        return None
    number = _month(month)
    return None if number is None else _WrittenParts(_full_year(year), number, int(day), tuple(rest))


def _month(name: str) -> int | None:
    written = name.capitalize()
    for number, full in enumerate(MONTH_NAMES, start=1):
        if full.startswith(written) or written == "Sept" == full[:4]:
            return number
    return None


def _full_year(digits: str) -> int:
    year = int(digits)
    if len(digits) >= len("2003"):
        return year
    if year < _CENTURY_TURN:
        return year + 2000
    return year + 1900 if year < _THREE_DIGITS else year


# RFC 2822, section 4.3: years of two and three digits.
_THREE_DIGITS: Final = 1000
_CENTURY_TURN: Final = 50
_Groups = tuple[str | None, ...]


def _instant(year: int, month: int, day: int, rest: _Groups) -> float | None:
    # `rest`: the groups of `_TIME` and `_ZONE`. The result is exact to the microsecond.
    hour, minute, second, fraction, half, zone, sign, zone_hours, zone_minutes = rest
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    hours = _hours(int(hour or 0), half)
    minutes, seconds = int(minute or 0), int(second or 0)
    offset = _offset_seconds(zone, sign, zone_hours, zone_minutes)
    # 24:00:00 ends a day (ISO 8601), :60 is a leap second (RFC 3339, 5.6).
    if hours is None or minutes > 59 or seconds > 60 or offset is None:  # noqa: PLR2004
        return None
    whole = days * DAY_SECONDS + hours * 3600 + minutes * 60 + seconds - offset
    if not _FIRST <= whole <= _LAST:
        return None
    return (whole * _MICROSECONDS + int((fraction or "0")[:6].ljust(6, "0"))) / _MICROSECONDS


_MICROSECONDS: Final = 1_000_000


def _hours(hour: int, half: str | None) -> int | None:
    if half:
        return hour % 12 + (12 if half in "Pp" else 0) if 0 < hour <= 12 else None  # noqa: PLR2004
    return hour if hour <= 24 else None  # noqa: PLR2004


def _offset_seconds(zone: str | None, sign: str | None, hours: str | None, minutes: str | None) -> int | None:
    if sign is None or hours is None:
        return _ZONE_HOURS.get((zone or "").upper(), 0) * 3600
    seconds = int(hours) * 3600 + int(minutes or 0) * 60
    if seconds >= DAY_SECONDS or int(minutes or 0) > 59:  # noqa: PLR2004
        return None
    return -seconds if sign == "-" else seconds


_ZONE_HOURS: Final = {
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
    "AKST": -9,
    "AKDT": -8,
    "HST": -10,
    "WEST": 1,
    "BST": 1,
    "CET": 1,
    "MET": 1,
    "CEST": 2,
    "MEST": 2,
    "EET": 2,
    "EEST": 3,
    "MSK": 3,
    "JST": 9,
    "KST": 9,
    "AEST": 10,
    "AEDT": 11,
    "NZST": 12,
    "NZDT": 13,
}
