"""What the store tells, as the decisions read it."""

from __future__ import annotations

from wholefeed.core.refresh.port import SUBSCRIPTION_ATTEMPT, Attempt, attempted

NOW = 1_700_000_000.0
URL = "http://o.test/1"


def test_failures_count_up_and_keep_the_time_of_the_first() -> None:
    """R14, R16: a gap stays visible, and its pseudo-entry is dated at the first failure."""
    first = attempted(None, URL, reason="timeout", status=None, next_at=NOW + 60, now=NOW)
    again = attempted(first, URL, reason="publisher-status", status=503, next_at=NOW + 120, now=NOW + 60)
    assert (first.attempts, first.first_at) == (1, NOW)
    assert again == Attempt(
        url=URL,
        reason="publisher-status",
        status=503,
        attempts=2,
        first_at=NOW,
        last_at=NOW + 60,
        next_at=NOW + 120,
    )


def test_an_attempt_waits_for_its_time_but_not_for_a_clock_that_was_wrong() -> None:
    """R14: more than a day ahead counts as now."""
    attempt = attempted(None, URL, reason="timeout", status=None, next_at=NOW + 60, now=NOW)
    assert attempt.waits(NOW + 59)
    assert not attempt.waits(NOW + 60)
    assert not attempt.waits(NOW - 90_000)


def test_the_subscription_document_s_failure_is_told_from_the_others() -> None:
    """It makes the feed stale, not partial."""
    own = attempted(None, SUBSCRIPTION_ATTEMPT, reason="timeout", status=None, next_at=NOW, now=NOW)
    assert own.is_subscription
    assert not attempted(None, URL, reason="timeout", status=None, next_at=NOW, now=NOW).is_subscription
