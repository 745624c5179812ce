"""wholefeed.fetch.hosts: requests at once at one host."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wholefeed.fetch.hosts import Pace


def test_a_host_begins_with_all_that_it_may_have() -> None:
    """An unknown host gets fetch.concurrency_per_host at once, so that a first walk is fast."""
    assert Pace(4).allowed == 4


def test_strain_halves() -> None:
    """Each sign of strain halves what a host gets at once, and one request is always left."""
    pace = Pace(8)
    allowed = []
    for second in range(5):
        pace.strained(started_at=second, now=second + 0.5)
        allowed.append(pace.allowed)
    assert allowed == [4, 2, 1, 1, 1]


def test_what_fails_together_counts_once() -> None:
    """Requests that were under way together and fail count as one sign of strain, not as many."""
    pace = Pace(8)
    for now in (5.0, 6.0, 7.0):
        pace.strained(started_at=1.0, now=now)
    assert pace.allowed == 4
    pace.strained(started_at=5.0, now=8.0)
    assert pace.allowed == 2


def test_one_more_is_allowed_after_as_many_good_answers_as_are_allowed() -> None:
    """A host gets its places back one by one, and never more than it had."""
    pace = Pace(4)
    pace.strained(started_at=0.0, now=0.0)
    allowed = []
    for _ in range(6):
        pace.answered()
        allowed.append(pace.allowed)
    assert allowed == [2, 3, 3, 3, 4, 4]


def test_strain_takes_the_good_answers_before_it_back() -> None:
    """Good answers from before the strain do not count towards the next place."""
    pace = Pace(4)
    for _ in range(3):
        pace.answered()
    pace.strained(started_at=0.0, now=0.0)
    pace.answered()
    assert pace.allowed == 2


@given(most=st.integers(1, 64), events=st.lists(st.none() | st.floats(0, 60)))
def test_the_pace_stays_in_its_bounds_and_recovers(most: int, events: list[float | None]) -> None:
    """Never below 1, never above the most; good answers bring it back."""
    pace = Pace(most)
    for now, lasted in enumerate(events):
        before = pace.allowed
        if lasted is None:
            pace.answered()
            assert before <= pace.allowed <= before + 1
        else:
            pace.strained(started_at=now - lasted, now=now)
            assert pace.allowed in (before, max(1, before // 2))
        assert 1 <= pace.allowed <= most
    for _ in range(most * most):
        pace.answered()
    assert pace.allowed == most
