from __future__ import annotations

import email.utils
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from wholefeed.core.schedule import (
    CacheFields,
    freshness_seconds,
    is_private,
    is_uncacheable,
    retry_after_seconds,
)

NOW = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
LATER = "Sun, 06 Nov 1994 09:49:37 GMT"


def fresh(headers: dict[str, str]) -> float:
    return freshness_seconds(headers, now=NOW, minimum=300, default=900, maximum=86400)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 900),
        ({"Cache-Control": "public"}, 900),
        ({"Last-Modified": DATE}, 900),
        ({"Cache-Control": "max-age=600"}, 600),
        ({"CACHE-CONTROL": "Public, MAX-AGE=600"}, 600),
        ({"Cache-Control": 'max-age="600"'}, 600),
        ({"Cache-Control": "max-age = 600"}, 600),
        ({"Cache-Control": "max-age=600, max-age=1200"}, 600),
        ({"Cache-Control": "max-age=600, s-maxage=1200"}, 1200),
        ({"Cache-Control": "max-age=600", "Expires": LATER}, 600),
        ({"Cache-Control": "max-age=60"}, 300),
        ({"Cache-Control": "max-age=99999999999999999999"}, 86400),
        ({"Cache-Control": "max-age=999999999999999999999999"}, 300),
        ({"Cache-Control": "max-age=-1"}, 300),
        ({"Cache-Control": "max-age=1e9"}, 300),
        ({"Cache-Control": "max-age"}, 300),
        ({"Cache-Control": "max-age=600;"}, 600),
        ({"Cache-Control": 'ext="max-age=5000, no-store", max-age=600'}, 600),
        ({"Cache-Control": "max-age=600", "Age": "100"}, 500),
        ({"Cache-Control": "max-age=600", "Age": "-100"}, 600),
        ({"Cache-Control": "max-age=600", "Age": "junk"}, 600),
        ({"Cache-Control": "max-age=600", "Age": "5000"}, 300),
        ({"Cache-Control": "no-cache, max-age=600"}, 300),
        ({"Cache-Control": "no-store"}, 300),
        ({"Cache-Control": 'no-cache="Set-Cookie", max-age=600'}, 600),
        ({"Expires": LATER, "Date": DATE}, 3600),
        ({"Expires": LATER, "Date": DATE, "Age": "600"}, 3000),
        ({"Expires": LATER}, 3600),
        ({"Expires": LATER, "Date": "junk"}, 3600),
        ({"Expires": "0"}, 300),
        ({"Expires": "-1"}, 300),
        ({"Expires": DATE, "Date": LATER}, 300),
        ({"Expires": "Sunday, 06-Nov-94 09:49:37 GMT"}, 3600),
        ({"Expires": "Sun Nov  6 09:49:37 1994"}, 3600),
    ],
)
def test_counts_how_long_an_answer_is_fresh(headers: dict[str, str], seconds: float) -> None:
    """RFC 9111, 4.2 and 5.2."""
    assert fresh(headers) == seconds


@pytest.mark.parametrize(
    "expires",
    [
        "1994-11-06T09:49:37Z",
        "06 Nov 1994 09:49:37 GMT",
        "Sun, 06 Nov 1994 09:49:37 +0000",
        "Sun, 06 Nov 1994 09:49:37 UTC",
        "Sun, 06 Nov 1994 09:49 GMT",
        "Sun, 6 Nov 1994 09:49:37 GMT",
        "Sun, 06 Nov 94 09:49:37 GMT",
        "Sun 06 Nov 1994 09:49:37 GMT",
        "Sun, 06  Nov 1994 09:49:37 GMT",
        "Sun, 06-Nov-1994 09:49:37 GMT",
        "Sun, 06 Nov 1994 09.49.37 GMT",
        "sun, 06 nov 1994 09:49:37 gmt",
        "Sun, 06 Nov 1994 09:49:37 EST",
        "Sun, 31 Feb 1995 09:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "784115377",
        f"{LATER}, {LATER}",
    ],
)
def test_what_is_no_http_date_has_expired(expires: str) -> None:
    """RFC 9111, 5.3: an invalid date is one of the past, however clear its meaning may be to people."""
    assert fresh({"Expires": expires, "Date": DATE}) == 300


@pytest.mark.parametrize(
    ("expires", "seconds"),
    [
        ("94 09:49:37", 3600),
        ("95 08:49:37", 86400),
        ("00 08:49:37", 86400),
        ("44 08:49:37", 86400),
        ("44 08:49:38", 300),
        ("45 08:49:37", 300),
        ("93 08:49:37", 300),
    ],
)
def test_a_year_of_two_digits_is_at_most_fifty_years_ahead(expires: str, seconds: float) -> None:
    """RFC 9110, 5.6.7: else it is of the last century. It is 1994."""
    assert fresh({"Expires": f"Sunday, 06-Nov-{expires} GMT"}) == seconds


def test_takes_repeated_fields_as_one_list() -> None:
    """RFC 9110, 5.3."""
    headers = CIMultiDict([("Cache-Control", "public"), ("cache-control", "max-age=600, no-store")])
    assert is_uncacheable(headers)


@pytest.mark.parametrize(
    ("value", "uncacheable", "private"),
    [
        ("", False, False),
        ("max-age=5", False, False),
        ("No-Cache", True, False),
        ("no-store", True, True),
        ("private", False, True),
        ('private="X"', False, True),
        ('no-cache="Set-Cookie"', False, False),
        ('x="no-store, private"', False, False),
    ],
)
def test_tells_what_may_not_be_reused_or_shared(value: str, uncacheable: bool, private: bool) -> None:
    """RFC 9111, 5.2.2; docs/faults.md row 26."""
    headers = {"Cache-Control": value}
    assert (is_uncacheable(headers), is_private(headers)) == (uncacheable, private)


def test_nothing_is_kept_of_what_is_longer_than_publishers_write() -> None:
    """A publisher may send 256 KiB of directives, other ones each time."""
    tracemalloc.start()
    try:
        for number in range(20):
            directives = ",".join(f"{number}-{each}" for each in range(2000))
            assert fresh({"Cache-Control": f"{directives},max-age=3600"}) == 3600
        assert tracemalloc.get_traced_memory()[0] < 1_000_000, "200 KB each are made of it"
    finally:
        tracemalloc.stop()


@given(st.dictionaries(st.sampled_from(["Cache-Control", "Expires", "Date", "Age"]), st.text(max_size=40)))
def test_junk_stays_within_the_bounds(headers: dict[str, str]) -> None:
    """Whatever cache fields a publisher sends, it is asked at most every 5 minutes and at least once a
    day."""
    assert 300 <= fresh(headers) <= 86400
    is_uncacheable(headers)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 120 ", 120),
        ("0", 1),
        ("-5", 1),
        ("1000000000000", 86400),
        (LATER, 3600),
        (DATE, 1),
        ("Sun, 06 Nov 2094 08:49:37 GMT", 86400),
        ("Sunday, 06-Nov-44 08:49:37 GMT", 86400),
        ("Sun, 06 Nov 1994 09:49:37 +0000", 3600),
        ("soon", None),
        ("", None),
        ("1.5", None),
    ],
)
def test_reads_when_to_come_again(value: str, seconds: float | None) -> None:
    """docs/faults.md row 55; RFC 9110, 10.2.3."""
    assert retry_after_seconds(value, now=NOW) == seconds


RETRIED_AT = 1_700_000_000.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("0", 1),
        ("-5", 1),
        ("1000000000000", 86400),
        (email.utils.formatdate(RETRIED_AT + 90, usegmt=True), 90),
        (email.utils.formatdate(RETRIED_AT - 90, usegmt=True), 1),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86400),
        ("9" * 400, None),
        ("9" * 5000, None),
        ("soon", None),
        ("1.5", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_of_every_form_is_read_and_clamped(value: str | None, seconds: float | None) -> None:
    """docs/faults.md row 55; RFC 9110, section 10.2.3."""
    assert retry_after_seconds(value or "", now=RETRIED_AT) == seconds


_names = st.sampled_from(["max-age", "S-MaxAge", "no-cache", "no-store", "private", "public", "x" * 300])
_values = st.sampled_from(
    ["", "=60", "=3000", '="3000"', '=" 60 "', '="a, b"', "=junk", "=-1", "=" + "9" * 30]
)
_dates = st.sampled_from([None, LATER, DATE, "", "0", "never", LATER + " " * 80])


@given(st.none() | st.lists(st.tuples(_names, _values).map("".join), max_size=4).map(", ".join), _dates)
def test_what_is_kept_of_an_answer_says_the_same_later(said: str | None, expires: str | None) -> None:
    """RFC 9111, 3.2, 4.2.1 and 5.2.2: however an answer says it, and in a few characters."""
    headers = {"cache-control": said, "expires": expires}
    given = {name: value for name, value in headers.items() if value is not None}
    fields = CacheFields.of(given)
    kept = fields.kept()
    assert (fresh(kept), is_private(kept), is_uncacheable(kept)) == (
        fresh(given),
        is_private(given),
        is_uncacheable(given),
    )
    assert CacheFields.of(kept) == fields
    assert sum(map(len, fields)) <= 200
