"""wholefeed.fetch.hosts: whether a host that fails is asked at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.fetch.hosts import FAILURES_TO_REST, NAME_FAILURES, PAUSE_SECONDS, UNHEARD, Breaker


def a_resting_breaker(now: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(FAILURES_TO_REST):
        breaker.begun()
        breaker.failed("timeout", now=now)
    return breaker


def test_a_few_failures_change_nothing() -> None:
    """One failure below the limit a host is still asked: its feeds do not stop for a short fault."""
    breaker = Breaker()
    for _ in range(FAILURES_TO_REST - 1):
        breaker.failed("connection-failed", now=0.0)
    assert breaker.is_closed
    assert breaker.refused_seconds(0.0) == 0


def test_many_in_a_row_make_it_rest() -> None:
    """At the limit of failures a host is left alone for the pause, and the reason is kept for readers."""
    breaker = a_resting_breaker(100.0)
    assert not breaker.is_closed
    assert breaker.refused_seconds(110.0) == PAUSE_SECONDS - 10
    assert breaker.reason == "timeout"


@pytest.mark.parametrize("reason", sorted(NAME_FAILURES))
def test_a_name_without_an_address_rests_at_once(reason: str) -> None:
    """docs/faults.md row 21: 60 seconds."""
    breaker = Breaker()
    breaker.failed(reason, now=0.0)
    assert breaker.refused_seconds(0.0) == 60


def test_after_the_pause_one_request_goes_through() -> None:
    """When the pause is over one request may try the host, and a second one may not."""
    breaker = a_resting_breaker()
    assert breaker.refused_seconds(PAUSE_SECONDS) == 0
    breaker.begun()
    assert breaker.refused_seconds(PAUSE_SECONDS) > 0


def test_a_probe_that_fails_makes_it_rest_again() -> None:
    """When the try after the pause fails, the host rests once more, for the latest reason."""
    breaker = a_resting_breaker()
    breaker.begun()
    breaker.failed("connection-failed", now=PAUSE_SECONDS)
    assert breaker.refused_seconds(PAUSE_SECONDS) == PAUSE_SECONDS
    assert breaker.reason == "connection-failed"


def test_a_probe_that_is_given_up_makes_room_for_another() -> None:
    """A cancelled try does not leave the host closed for ever."""
    breaker = a_resting_breaker()
    breaker.begun()
    breaker.given_up()
    assert not breaker.is_closed
    assert breaker.refused_seconds(PAUSE_SECONDS) == 0


@given(st.lists(st.sampled_from(["heard", "given up", *sorted(UNHEARD)]), max_size=60))
def test_requests_go_through_again_within_a_pause_whatever_happened(events: list[str]) -> None:
    """Whatever the history, no host is closed for longer than one pause."""
    breaker = Breaker()
    now = 0.0
    for event in events:
        now += breaker.refused_seconds(now)
        assert breaker.refused_seconds(now) == 0
        breaker.begun()
        if event == "heard":
            breaker = Breaker()
        elif event == "given up":
            breaker.given_up()
        else:
            breaker.failed(event, now=now)
        assert breaker.refused_seconds(now) <= PAUSE_SECONDS
