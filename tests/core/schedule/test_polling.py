from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.schedule import SHORTEST_PAUSE_SECONDS, Times, pause_seconds, poll_due_at

NOW = 1_700_000_000.0
HOUR = 3600.0
DAY = 86_400.0

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
        (-4000, DAY + 1, 0),  # that can only come from a clock that has jumped
        (9 * DAY, 10 * DAY, 0),
        (9 * DAY, 60, 0),  # what was noted later than now does not hold
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
    """R7: a poll waits both for freshness to run out and for history.poll_seconds."""
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
    """R7: with any number of feeds each is polled within the interval, and not all at once."""
    pause = pause_seconds(interval_seconds=interval, feeds=feeds, jitter=jitter, longest_seconds=DAY)
    assert interval / 2 * 0.999 <= feeds * pause <= interval * 1.001


@given(st.integers(0, 10**7), st.floats(0, 1), intervals)
def test_a_pause_is_neither_nothing_nor_long(feeds: int, jitter: float, interval: float) -> None:
    """R7: with millions of feeds or none, polling neither runs without a pause nor sleeps for long."""
    pause = pause_seconds(interval_seconds=interval, feeds=feeds, jitter=jitter, longest_seconds=60)
    assert SHORTEST_PAUSE_SECONDS <= pause <= 60


def test_jitter_moves_a_pause() -> None:
    """R7: the pause between two polls varies by up to a half, so that proxies started together part."""
    pauses = [
        pause_seconds(interval_seconds=3600, feeds=100, jitter=jitter, longest_seconds=60)
        for jitter in (0.0, 0.5, 1.0)
    ]
    assert pauses == [36, 27, 18]
