from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wholefeed.core.text.dates import (
    calendar_date,
    calendar_words,
    format_rfc822,
    format_rfc3339,
    parse_rfc822,
    parse_rfc3339,
    year_of,
)

INSTANT = datetime(2003, 12, 13, 18, 30, 2, tzinfo=UTC).timestamp()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


WRITTEN = """\
2003-12-13T18:30:02Z
2003-12-13t18:30:02z
2003-12-13 18:30:02Z
2003-12-13T18:30:02
2003-12-13T19:30:02+0100
2003-12-13T19:30:02+01
2003-12-13 T 13:30:02 -05:00
2003-12-13T13:30:02EST
2003-12-13T18:30:2Z
20031213T183002Z
Sat, 13 Dec 2003 18:30:02 GMT
13 Dec 2003 18:30:02 GMT
Mon, 13 Dec 2003 18:30:02 GMT
Sat,13 Dec 2003 18:30:02 GMT
Saturday, 13-Dec-03 18:30:02 GMT
Saturday, 13 December 2003 18:30:02 GMT
Sat, 13 dec 2003 18:30:02 gmt
Sat, 13 Dec 103 18:30:02 UT
Sat, 13 Dec 2003 11:30:02 PDT
Sat, 13 Dec 2003 18:30:02
Sat, 13 Dec 2003 13:30:02 -0500
Sat, 13 Dec 2003 19:30:02 GMT+0100
Sat, 13 Dec 2003 06:30:02 pm GMT
Sat, 13 Dec 2003 10:30:02 -0800 (PST)
December 13, 2003 18:30:02 GMT
Sat Dec 13 18:30:02 2003
Sat Dec 13 18:30:02 UTC 2003
"""


@pytest.mark.parametrize("text", [*WRITTEN.splitlines(), f"Sat, \n13 Dec{' ' * 40}2003 18:30:02 Z"])
def test_what_feeds_write_is_one_instant(text: str) -> None:
    """RFC 4287, 3.3; RFC 822, 5; RFC 2822, 4.3; and publishers' variants, in feeds of either kind."""
    assert parse_rfc3339(text) == parse_rfc822(text) == INSTANT


def at(*fields: int) -> float:
    return datetime(*fields, tzinfo=UTC).timestamp()  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("Sat, 13 Dec 2003 18:30 GMT", INSTANT - 2),
        ("2003-12-13T18:30Z", INSTANT - 2),
        ("13 Dec 2003", at(2003, 12, 13)),
        ("2003-12-13", at(2003, 12, 13)),
        ("2003-12", at(2003, 12, 1)),
        ("2003", at(2003, 1, 1)),
        ("1 Jan 49 00:00 GMT", at(2049, 1, 1)),
        ("1 Jan 50 00:00 GMT", at(1950, 1, 1)),
        ("2016-12-31T23:59:60Z", at(2017, 1, 1)),
        ("2016-12-31T24:00:00Z", at(2017, 1, 1)),
        ("Sat, 13 Dec 2003 12:00 am GMT", at(2003, 12, 13)),
        ("2003-12-13T18:30:02,25Z", INSTANT + 0.25),
        ("2003-12-13T18:30:02.123456789Z", (int(INSTANT) * 10**6 + 123456) / 10**6),
    ],
)
def test_what_is_missing_short_or_fine_has_one_meaning(text: str, instant: float) -> None:
    """R10: the earliest moment for missing parts; RFC 2822, 4.3; RFC 3339, 5.6; ISO 8601; microseconds."""
    assert parse_rfc3339(text) == parse_rfc822(text) == instant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2003-13-13T18:30:02Z",
        "2003-02-30T18:30:02Z",
        "2003-12-13T25:30:02Z",
        "2003-12-13T18:60:02Z",
        "2003-12-13T18:30:61Z",
        "2003-12-13T18:30:02+24:00",
        "2003-12-13T18:30:02+01:60",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "Sat, 13 Foo 2003 18:30:02 GMT",
        "32 Dec 2003 18:30 GMT",
        "13 Dec 2003 13:30 pm",
        "١٣ Dec 2003",
        "2003-12-13T18:30:02Z" + " x" * 100,
        "1" * 10_000,
    ],
)
def test_what_is_no_date_is_none(text: str) -> None:
    """Row 58: impossible or malformed dates never give another instant."""
    assert parse_rfc3339(text) is None
    assert parse_rfc822(text) is None


@given(
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),  # noqa: DTZ001
    st.integers(-23 * 60, 23 * 60),
)
def test_every_rfc_3339_date_is_exact_to_the_microsecond(naive: datetime, minutes: int) -> None:
    """RFC 3339: any valid date and offset, with T or a blank."""
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = (moment - EPOCH) // timedelta(microseconds=1) / 10**6

    assert parse_rfc3339(moment.isoformat()) == expected
    assert parse_rfc3339(moment.isoformat(" ")) == expected


@given(st.text() | st.text("0123456789-:.TZ+ ,JanMonGMT()", max_size=90))
@example(" " * 100_000 + "x")
@example("x" + " " * 70 + "," + " " * 70)
def test_no_text_raises(text: str) -> None:
    """Row 58: nor gives an instant outside the calendar."""
    for parse in (parse_rfc3339, parse_rfc822):
        instant = parse(text)
        assert instant is None or datetime.min.replace(tzinfo=UTC) <= EPOCH + timedelta(seconds=instant)


@given(st.integers(-62_135_596_800, 253_402_300_799), st.floats(0, 0.999))
@example(-62_135_596_800, 0.0)  # 0001-01-01, as some software writes that there is no date
def test_what_is_written_is_read_back_in_whole_seconds(second: int, fraction: float) -> None:
    """RFC 3339: 20 characters, read back as the same second."""
    text = format_rfc3339(second + fraction)
    assert parse_rfc3339(text) == int(second + fraction)
    assert len(text) == len("2003-12-13T18:30:02Z")


@given(st.integers(-62_135_596_800, 253_402_300_799))
def test_rfc_822_is_written_as_the_standard_library_writes_it(second: int) -> None:
    """RFC 822, section 5, with the years of RFC 1123: also the first and the last one."""
    assert format_rfc822(second) == format_datetime(datetime.fromtimestamp(second, UTC), usegmt=True)


@pytest.mark.parametrize(
    ("text", "expected", "words"),
    [
        ("2019-03-03", "2019-03-03", "3 March 2019"),
        (" 20190303 ", "2019-03-03", "3 March 2019"),
        ("2019-03", "2019-03", "March 2019"),
        ("2019", "2019", "2019"),
        ("Sun, 03 Mar 2019", "2019-03-03", "3 March 2019"),
        ("March 3, 2019", "2019-03-03", "3 March 2019"),
        ("2019-03-03T00:00:00Z", "2019-03-03", "3 March 2019"),
        ("2019-03-03T00:00:00+09:00", "2019-03-03", "3 March 2019"),
        ("Sun, 03 Mar 2019 00:00:00 -0500", "2019-03-03", "3 March 2019"),
        ("0099-01-01", "0099-01-01", "1 January 99"),
        ("2019-03-03T00:00:01Z", "", ""),
        ("2019-03-03T12:00:00Z", "", ""),
        ("Sun, 03 Mar 2019 10:00 GMT", "", ""),
        ("2019-02-30", "", ""),
        ("2019-00", "", ""),
        ("yesterday", "", ""),
        ("", "", ""),
    ],
)
def test_a_date_without_a_time_stays_one(text: str, expected: str, words: str) -> None:
    """A day, a month or a year by the text's own clock; midnight is no time."""
    assert calendar_date(text) == expected
    assert not expected or calendar_words(expected) == words


@pytest.mark.parametrize(
    ("instant", "year"),
    [
        (0, 1970),
        (-1, 1969),
        (1704067199, 2023),
        (1704067200, 2024),
        (-62135596800, 1),
        (253402300799.5, 9999),
    ],
)
def test_an_instant_has_a_year(instant: float, year: int) -> None:
    """In UTC, from the first to the last that can be written."""
    assert year_of(instant) == year
