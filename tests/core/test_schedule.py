from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from wholefeed.core.schedule import (
    SHORTEST_PAUSE_SECONDS,
    CacheFields,
    Move,
    Times,
    ValidatorPair,
    backoff_seconds,
    freshness_seconds,
    is_believed,
    is_private,
    is_uncacheable,
    may_be_frozen,
    next_attempt_at,
    next_doubts,
    note_move,
    pause_seconds,
    poll_due_at,
    retry_after_seconds,
    sound_validators,
    validators_of,
)
from wholefeed.core.text.dates import DAY_SECONDS

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
    """RFC 9111, 5.3: an invalid date is in the past, however readable."""
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
    """RFC 9110, 5.6.7: else it is in the last century. The test's year is 1994."""
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
    """A publisher may send 256 KiB of directives, different each time."""
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
    """For any cache fields, a publisher is asked at most every 5 minutes and at least once a day."""
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


_names = st.sampled_from(["max-age", "S-MaxAge", "no-cache", "no-store", "private", "public", "x" * 300])
_values = st.sampled_from(
    ["", "=60", "=3000", '="3000"', '=" 60 "', '="a, b"', "=junk", "=-1", "=" + "9" * 30]
)
_dates = st.sampled_from([None, LATER, DATE, "", "0", "never", LATER + " " * 80])


@given(st.none() | st.lists(st.tuples(_names, _values).map("".join), max_size=4).map(", ".join), _dates)
def test_what_is_kept_of_an_answer_says_the_same_later(said: str | None, expires: str | None) -> None:
    """RFC 9111, 3.2, 4.2.1 and 5.2.2: for any form of the response, in a few characters."""
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


HOUR = 3600.0


def delay(
    reason: str,
    status: int | None = None,
    attempts: int = 1,
    retry_after: float | None = None,
    retry_missing: float = 1000.0,
    *,
    is_subscription: bool = False,
) -> float:
    at = next_attempt_at(
        reason,
        status,
        attempts=attempts,
        now=5e8,
        retry_after_seconds=retry_after,
        retry_missing_seconds=retry_missing,
        is_subscription=is_subscription,
    )
    return at - 5e8


@pytest.mark.parametrize(
    ("reason", "status", "attempts", "seconds"),
    [
        ("publisher-status", 403, 1, 1000),
        ("publisher-status", 404, 9, 1000),
        ("publisher-status", 410, 1, DAY_SECONDS),
        ("publisher-status", 500, 1, 60),
        ("publisher-status", 500, 2, 120),
        ("publisher-status", 503, 3, 240),
        ("publisher-status", 502, 20, 6 * HOUR),
        ("publisher-status", 500, 10**9, 6 * HOUR),
        ("publisher-status", 429, 2, 120),
        ("publisher-status", 408, 1, 60),
        ("publisher-status", 400, 1, 1000),
        ("publisher-status", None, 1, 1000),
        ("timeout", None, 1, 60),
        ("connection-failed", None, 4, 480),
        ("dns-error", None, 1, 60),
        ("format", None, 3, 1000),
        ("not-a-feed", None, 1, 1000),
        ("cross-origin-unconfirmed", None, 1, 1000),
    ],
)
def test_rests_as_the_table_says(reason: str, status: int | None, attempts: int, seconds: float) -> None:
    """docs/faults.md row 54."""
    assert delay(reason, status, attempts) == seconds


@pytest.mark.parametrize(("status", "seconds"), [(401, DAY_SECONDS), (403, DAY_SECONDS), (404, 1000)])
def test_a_feed_that_is_closed_to_us_is_asked_for_daily(status: int, seconds: float) -> None:
    """docs/faults.md row 56; an archive document with such a status may open earlier (54)."""
    assert delay("origin-forbidden", status, is_subscription=True) == seconds
    assert delay("origin-forbidden", status) == 1000


@pytest.mark.parametrize("status", [429, 503])
def test_obeys_the_publisher(status: int) -> None:
    """docs/faults.md row 55; RFC 9110, 10.2.3."""
    assert delay("publisher-status", status, attempts=5, retry_after=7) == 7


def test_a_missing_document_is_not_asked_for_earlier_because_of_a_retry_after() -> None:
    """R14; row 54: a 404 with a short Retry-After waits for freshness.retry_missing_seconds."""
    assert delay("publisher-status", 404, retry_after=1) == 1000


def test_no_document_is_asked_for_before_its_host_may_be() -> None:
    """docs/faults.md row 55."""
    assert delay("host-backoff", None, attempts=1, retry_after=7200) == 7200
    assert delay("host-backoff", None, attempts=3, retry_after=10) == 240


def test_tries_are_spaced_out_more_and_more() -> None:
    """fetch.retries: each pause doubles, up to 8 s, and jitter at most halves it."""
    assert [backoff_seconds(attempt, 0.0) for attempt in range(6)] == [0.5, 1, 2, 4, 8, 8]
    assert backoff_seconds(0, 1.0) == 0.25
    assert backoff_seconds(10_000, 0.0) == 8


@pytest.mark.parametrize(
    ("retry_after", "retry_missing", "seconds"),
    [(1e12, 1, DAY_SECONDS), (-5, 1, 1), (None, 1e9, DAY_SECONDS), (None, 0, 1)],
)
def test_never_rests_longer_than_a_day(
    retry_after: float | None, retry_missing: float, seconds: float
) -> None:
    """docs/faults.md rows 55 and 73."""
    status = 404 if retry_after is None else 503
    assert delay("x", status, retry_after=retry_after, retry_missing=retry_missing) == seconds


DAY = 86400.0


@pytest.mark.parametrize(
    ("instants", "believed"),
    [
        ([0, 1, 2], False),
        ([0, DAY + 1], False),
        ([0, DAY / 2, DAY], False),
        ([0, DAY / 2, DAY + 1], True),
        ([0, 1, 2, 3, DAY + 1], True),
    ],
)
def test_a_move_is_believed_after_three_times_over_more_than_a_day(
    instants: list[float], believed: bool
) -> None:
    """docs/faults.md row 35."""
    move = Move()
    for now in instants:
        move = note_move(move, "http://new.test/", now=now)
    assert is_believed(move, now=instants[-1]) is believed


def test_an_answer_in_the_old_place_begins_the_count_anew() -> None:
    """Row 35: interrupted or different permanent redirects are not remembered too early."""
    move = Move("http://new.test/", 0, 9)
    assert note_move(move, None, now=DAY * 2) == Move()
    assert note_move(move, "http://else.test/", now=DAY * 2) == Move("http://else.test/", DAY * 2, 1)


def test_a_clock_put_back_begins_the_count_anew() -> None:
    """docs/faults.md row 73."""
    assert note_move(Move("http://new.test/", 100, 2), "http://new.test/", now=50).times == 1


ago = st.floats(0, 400 * DAY)
intervals = st.floats(60, 365 * DAY)
longest = st.floats(DAY, 365 * DAY)


def the_times(interval_seconds: float = HOUR, longest_seconds: float = DAY) -> Times:
    return Times(NOW, interval_seconds, longest_seconds)


@pytest.mark.parametrize(
    ("checked", "fresh", "due"),
    [
        (-1800, -900, 1800),  # the interval is not over
        (-4000, -3100, -400),  # it is
        (-4000, 500, 500),  # the publisher says fresh, or a failure says later
        (-4000, DAY, DAY),
        (-4000, DAY + 1, 0),  # only a clock that jumped can give this
        (9 * DAY, 10 * DAY, 0),
        (9 * DAY, 60, 0),  # a note from the future does not count
        (HOUR, DAY, 0),
        (61, 900, 0),
        (60, 900, HOUR),  # the clocks of replicas do not agree to the second
    ],
)
def test_a_feed_is_due_an_interval_after_its_last_time_once_it_is_stale(
    checked: float, fresh: float, due: float
) -> None:
    """R7; RFC 9111, 4.2; docs/faults.md row 73."""
    assert poll_due_at(NOW + checked, NOW + checked, NOW + fresh, the_times()) == NOW + due


@pytest.mark.fault("115")
@pytest.mark.parametrize(
    ("checked", "failed", "fresh", "due"),
    [
        (-DAY, -100, 500, 500),  # the next attempt
        (-DAY, HOUR, HOUR + 60, 0),  # it failed by a clock that ran ahead
        (HOUR, -100, 500, 500),  # it was heard of by one, and has failed since
    ],
)
def test_after_a_failure_a_feed_is_due_with_the_next_attempt(
    checked: float, failed: float, fresh: float, due: float
) -> None:
    """R7; docs/faults.md row 115."""
    assert poll_due_at(NOW + checked, NOW + failed, NOW + fresh, the_times()) == NOW + due


@given(ago, st.floats(-400 * DAY, DAY), intervals, longest)
def test_nobody_is_asked_sooner_than_they_and_the_interval_allow(
    checked: float, fresh: float, interval: float, longest: float
) -> None:
    """R7: a poll waits for the end of freshness and for history.poll_seconds."""
    due_at = poll_due_at(NOW - checked, NOW - checked, NOW + fresh, the_times(interval, longest))
    assert due_at >= NOW + fresh
    assert due_at >= NOW - checked + interval


@given(st.floats(-400 * DAY, 4000 * DAY), st.floats(-400 * DAY, 4000 * DAY), intervals, longest)
def test_whatever_the_clock_has_done_a_feed_is_polled_again(
    checked: float, fresh: float, interval: float, longest: float
) -> None:
    """docs/faults.md row 73."""
    due_at = poll_due_at(NOW + checked, NOW + checked, NOW + fresh, the_times(interval, longest))
    assert due_at <= NOW + max(interval, longest)


@given(st.integers(1, 200), st.floats(0, 1), st.floats(3600, DAY))
def test_all_feeds_come_by_evenly_within_the_interval(feeds: int, jitter: float, interval: float) -> None:
    """R7: for any number of feeds, not all at once."""
    pause = pause_seconds(interval_seconds=interval, feeds=feeds, jitter=jitter, longest_seconds=DAY)
    assert interval / 2 * 0.999 <= feeds * pause <= interval * 1.001


@given(st.integers(0, 10**7), st.floats(0, 1), intervals)
def test_a_pause_is_neither_nothing_nor_long(feeds: int, jitter: float, interval: float) -> None:
    """R7: polling neither spins with millions of feeds nor sleeps long with none."""
    pause = pause_seconds(interval_seconds=interval, feeds=feeds, jitter=jitter, longest_seconds=60)
    assert SHORTEST_PAUSE_SECONDS <= pause <= 60


def test_jitter_moves_a_pause() -> None:
    """R7: by up to a half, so that proxies started together diverge."""
    pauses = [
        pause_seconds(interval_seconds=3600, feeds=100, jitter=jitter, longest_seconds=60)
        for jitter in (0.0, 0.5, 1.0)
    ]
    assert pauses == [36, 27, 18]


# Validators of a document

TODAY = 1_780_000_000.0  # 28 May 2026


@pytest.mark.fault("156")
@pytest.mark.parametrize(
    "etag",
    [
        *(
            "",
            '""',
            "''",
            '" "',
            'W/""',
            'w/""',
            '"0"',
            "0",
            'W/"0"',
            '"00000000"',
            '"0-0"',
            '"-"',
            "*",
            '"*"',
        ),
        *('""-gzip', '"-gzip"', '"0-gzip"', '"0;br"', '"null"', '"NULL"', '"undefined"', 'W/"none"'),
        '"d41d8cd98f00b204e9800998ecf8427e"',
        'W/"da39a3ee5e6b4b0d3255bfef95601890afd80709-gzip"',
    ],
)
def test_an_etag_that_stands_for_nothing_is_no_validator(etag: str) -> None:
    """docs/faults.md row 156; RFC 9110, 8.8.3: it would be equal for any content."""
    assert sound_validators(etag, None, date=TODAY) == ValidatorPair()


@pytest.mark.fault("156")
@pytest.mark.parametrize(
    "etag", ['"1"', '"10"', '"0-5f"', "abc", "'abc'", 'w/"abc"', '"abc', '"a b"c"', '"abc-gzip"', 'W/"0a"']
)
def test_an_etag_of_any_form_is_one(etag: str) -> None:
    """docs/faults.md row 156: it goes back unchanged."""
    assert sound_validators(etag, None, date=TODAY).etag == etag


@pytest.mark.fault("156")
@pytest.mark.parametrize(
    "said",
    [
        *("Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 02 Jan 1970 23:59:59 GMT", "Wed, 31 Dec 1969 23:59:59 GMT"),
        *("Tue, 01 Jan 1980 00:00:00 GMT", "Thu, 03 Jan 1980 00:00:00 GMT", "Mon, 31 Dec 1979 00:00:00 GMT"),
        *("Sat, 26 Oct 1985 08:15:00 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "Mon, 01 Jan 1601 00:00:00 GMT"),
        *("Thursday, 01-Jan-70 00:00:00 GMT", "Thu Jan  1 00:00:00 1970", "1970-01-01T00:00:00Z"),
        *("Sat, 16 Nov 2041 19:11:00 GMT", "2041-11-16", "0", "-1", "never", ""),
    ],
)
def test_a_last_modified_that_cannot_be_is_no_validator(said: str) -> None:
    """docs/faults.md row 156; RFC 9110, 8.8.2.1: before the first feeds, or later than the response."""
    assert sound_validators(None, said, date=TODAY) == ValidatorPair()


@pytest.mark.fault("156")
@pytest.mark.parametrize(
    "said", ["Fri, 01 May 2026 10:00:00 GMT", "2026-05-01 10:00:00", DATE.replace("94", "98")]
)
def test_a_last_modified_that_can_be_is_one(said: str) -> None:
    """docs/faults.md row 156: in any spelling, it goes back unchanged."""
    assert sound_validators(None, said, date=TODAY).last_modified == said


def test_a_last_modified_is_held_against_the_date_of_its_answer() -> None:
    """RFC 9110, 8.8.2.1: compared with a readable Date, else with the clock."""
    modified = "Fri, 01 May 2026 10:00:00 GMT"
    for date, is_sound in ((modified, True), ("Fri, 01 May 2026 09:59:59 GMT", False), ("today", True)):
        found = validators_of({"last-modified": modified, "date": date, "etag": '"a"'}, now=TODAY)
        assert found == ('"a"', modified if is_sound else "")
    assert validators_of({"last-modified": modified}, now=TODAY - 365 * DAY_SECONDS) == ValidatorPair()
    assert validators_of({}, now=TODAY) == ValidatorPair()


@pytest.mark.fault("157")
def test_a_publisher_may_be_frozen_after_a_week() -> None:
    """docs/faults.md row 157: counted from the last whole document; not by a clock that ran ahead."""
    found = [may_be_frozen(TODAY, now=TODAY + seconds) for seconds in (0, 604_799, 604_800, -30, -3600)]
    assert found == [False, False, True, False, True]


@pytest.mark.fault("157")
@pytest.mark.parametrize(
    ("doubts", "now", "before", "is_contradicted", "expected"),
    [
        (0, ("1", "x"), ("1", "x"), False, 2),
        (0, ("2", "y"), ("1", "x"), False, 0),
        (0, ("2", "y"), ("1", "x"), True, 2),
        (2, ("2", "y"), ("1", "x"), False, 1),
        (1, ("2", "y"), ("1", "x"), False, 0),
        (1, ("2", "x"), ("1", "x"), False, 2),
        (1, ("1", "y"), ("1", "x"), False, 2),
        (2, ("2", ""), ("1", "x"), False, 1),
        (2, ("", ""), ("1", "x"), False, 0),
        (0, ("", ""), ("", ""), True, 0),
    ],
)
def test_counts_doubts_about_validators(
    doubts: int, now: tuple[str, str], before: tuple[str, str], is_contradicted: bool, expected: int
) -> None:
    """docs/faults.md row 157: each existing validator has to change with the news, twice."""
    pairs = ValidatorPair(*now), ValidatorPair(*before)
    assert next_doubts(doubts, *pairs, is_contradicted=is_contradicted) == expected
