"""wholefeed.fetch.hosts: requests at once at one host, and pauses of failing hosts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wholefeed.fetch.hosts import FAILURES_TO_REST, PAUSE_SECONDS, UNHEARD, Host, Pace


def test_what_fails_together_counts_once() -> None:
    """Requests under way together are one sign of strain."""
    pace = Pace(8)
    for now in (5.0, 6.0, 7.0):
        pace.note_strain(started_at=1.0, now=now)
    assert pace.allowed == 4
    pace.note_strain(started_at=5.0, now=8.0)
    assert pace.allowed == 2


def test_one_more_is_allowed_after_as_many_good_answers_as_are_allowed() -> None:
    """A host gets its places back one by one, and never more than it had."""
    pace = Pace(4)
    pace.note_strain(started_at=0.0, now=0.0)
    allowed = []
    for _ in range(6):
        pace.note_answer()
        allowed.append(pace.allowed)
    assert allowed == [2, 3, 3, 3, 4, 4]


@given(most=st.integers(1, 64), events=st.lists(st.none() | st.floats(0, 60)))
def test_the_pace_stays_in_its_bounds_and_recovers(most: int, events: list[float | None]) -> None:
    """Never below 1, never above the maximum; good responses bring it back."""
    pace = Pace(most)
    for now, lasted in enumerate(events):
        before = pace.allowed
        if lasted is None:
            pace.note_answer()
            assert before <= pace.allowed <= before + 1
        else:
            pace.note_strain(started_at=now - lasted, now=now)
            assert pace.allowed in (before, max(1, before // 2))
        assert 1 <= pace.allowed <= most
    for _ in range(most * most):
        pace.note_answer()
    assert pace.allowed == most


def a_host() -> Host:
    return Host("a", Pace(4))


def fails(host: Host, slug: str, *, now: float = 0.0) -> None:
    host.learn(host.begin(443, now=now), now=now, slug=slug, is_heard=False)


def a_resting_host(now: float = 0.0) -> Host:
    host = a_host()
    for _ in range(FAILURES_TO_REST):
        fails(host, "timeout", now=now)
    return host


def rest(host: Host, now: float) -> tuple[str, float] | None:
    return host.rest(443, is_new=False, now=now)


def test_a_few_failures_change_nothing() -> None:
    """Below the limit a host still gets requests: no feed stops for a short fault."""
    host = a_host()
    for _ in range(FAILURES_TO_REST - 1):
        fails(host, "connection-failed")
    assert rest(host, 0.0) is None


def test_a_probe_that_fails_makes_it_rest_again() -> None:
    """A failed try after the pause starts another pause, with the latest reason."""
    host = a_resting_host()
    fails(host, "connection-failed", now=PAUSE_SECONDS)
    assert rest(host, PAUSE_SECONDS) == ("connection-failed", PAUSE_SECONDS)


@given(st.lists(st.sampled_from(["heard", "given up", *sorted(UNHEARD)]), max_size=60))
def test_requests_go_through_again_within_a_pause_whatever_happened(events: list[str]) -> None:
    """After any history, no host is closed for longer than one pause."""
    host = a_host()
    now = 0.0
    for event in events:
        _, seconds = rest(host, now) or ("", 0.0)
        now += seconds
        assert rest(host, now) is None
        start = host.begin(443, now=now)
        if event == "heard":
            host.learn(start, now=now)
        elif event == "given up":
            host.give_up(start)
        else:
            host.learn(start, now=now, slug=event, is_heard=False)
        _, seconds = rest(host, now) or ("", 0.0)
        assert seconds <= PAUSE_SECONDS


def test_strain_takes_the_good_answers_before_it_back() -> None:
    """They do not count towards the next place."""
    pace = Pace(4)
    for _ in range(3):
        pace.note_answer()
    pace.note_strain(started_at=0.0, now=0.0)
    pace.note_answer()
    assert pace.allowed == 2
