"""How often a client may ask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.server.clients import Buckets


def test_a_minute_s_worth_may_be_asked_at_once_and_then_evenly() -> None:
    """Row 80: a client may use its minute at once; then it is told how long to wait."""
    buckets = Buckets(per_minute=4)
    assert [buckets.take("a", 100.0) for _ in range(4)] == [0.0] * 4
    assert buckets.take("a", 100.0) == pytest.approx(15)
    assert buckets.take("a", 110.0) == pytest.approx(5)
    assert buckets.take("a", 115.0) == 0
    assert buckets.take("a", 115.0) == pytest.approx(15)


def test_a_quiet_minute_fills_the_bucket_and_no_more() -> None:
    """Row 80: however long a client was quiet, it may ask one minute's worth at once."""
    buckets = Buckets(per_minute=2)
    for now in (0.0, 1000.0):
        assert [buckets.take("a", now) > 0 for _ in range(3)] == [False, False, True]


def test_those_who_asked_longest_ago_are_forgotten() -> None:
    """Row 80: the clients that are counted are bounded, and those who ask just now stay counted."""
    buckets = Buckets(per_minute=1, max_clients=2)
    for client in "abc":
        buckets.take(client, 0.0)
    assert buckets.take("c", 0.0) > 0
    assert buckets.take("a", 0.0) == 0


@given(st.integers(1, 1000), st.lists(st.floats(0, 30), max_size=300))
def test_no_minute_sees_more_than_twice_the_rate(per_minute: int, pauses: list[float]) -> None:
    """A full bucket, and what flows into it meanwhile; and who waits as told is let in."""
    buckets, now, granted = Buckets(per_minute), 0.0, []
    for pause in pauses:
        now += pause
        wait_seconds = buckets.take("a", now)
        assert 0 <= wait_seconds <= 60 / per_minute + 1e-3
        now += wait_seconds
        if wait_seconds:
            assert buckets.take("a", now) == 0
        granted.append(now)
    for start in granted:
        assert sum(start <= each < start + 60 for each in granted) <= 2 * per_minute
