"""wholefeed.fetch.hosts: whether a host that fails is asked at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.fetch.hosts import FAILURES_TO_REST, NAME_FAILURES, PAUSE_SECONDS, UNHEARD, Host, Pace


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
    """One failure below the limit a host is still asked: its feeds do not stop for a short fault."""
    host = a_host()
    for _ in range(FAILURES_TO_REST - 1):
        fails(host, "connection-failed")
    assert rest(host, 0.0) is None


def test_many_in_a_row_make_it_rest() -> None:
    """At the limit of failures a host is left alone for the pause, and the reason is kept for readers."""
    assert rest(a_resting_host(100.0), 110.0) == ("timeout", PAUSE_SECONDS - 10)


@pytest.mark.parametrize("reason", sorted(NAME_FAILURES))
def test_a_name_without_an_address_rests_at_once(reason: str) -> None:
    """docs/faults.md row 21: 60 seconds."""
    host = a_host()
    fails(host, reason)
    assert rest(host, 0.0) == (reason, 60)


def test_after_the_pause_one_request_goes_through() -> None:
    """When the pause is over one request may try the host, and a second one may not."""
    host = a_resting_host()
    assert rest(host, PAUSE_SECONDS) is None
    host.begin(443, now=PAUSE_SECONDS)
    assert rest(host, PAUSE_SECONDS) is not None


def test_a_probe_that_fails_makes_it_rest_again() -> None:
    """When the try after the pause fails, the host rests once more, for the latest reason."""
    host = a_resting_host()
    fails(host, "connection-failed", now=PAUSE_SECONDS)
    assert rest(host, PAUSE_SECONDS) == ("connection-failed", PAUSE_SECONDS)


def test_a_probe_that_is_given_up_makes_room_for_another() -> None:
    """A cancelled try does not leave the host closed for ever, and is no sign that it is back."""
    host = a_resting_host()
    host.give_up(host.begin(443, now=PAUSE_SECONDS))
    assert rest(host, PAUSE_SECONDS) is None
    assert host.begin(443, now=PAUSE_SECONDS).is_probe


@given(st.lists(st.sampled_from(["heard", "given up", *sorted(UNHEARD)]), max_size=60))
def test_requests_go_through_again_within_a_pause_whatever_happened(events: list[str]) -> None:
    """Whatever the history, no host is closed for longer than one pause."""
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
