from __future__ import annotations

import pytest

from wholefeed.core.schedule import backoff_seconds, next_attempt_at
from wholefeed.core.text.dates import DAY_SECONDS

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
    """docs/faults.md row 56; an archive document behind such a status may well open earlier (54)."""
    assert delay("origin-forbidden", status, is_subscription=True) == seconds
    assert delay("origin-forbidden", status) == 1000


@pytest.mark.parametrize("status", [429, 503])
def test_obeys_the_publisher(status: int) -> None:
    """docs/faults.md row 55; RFC 9110, 10.2.3."""
    assert delay("publisher-status", status, attempts=5, retry_after=7) == 7


def test_a_missing_document_is_not_asked_for_earlier_because_of_a_retry_after() -> None:
    """R14; row 54: a 404 with a short Retry-After still waits for freshness.retry_missing_seconds."""
    assert delay("publisher-status", 404, retry_after=1) == 1000


def test_no_document_is_asked_for_before_its_host_may_be() -> None:
    """docs/faults.md row 55."""
    assert delay("host-backoff", None, attempts=1, retry_after=7200) == 7200
    assert delay("host-backoff", None, attempts=3, retry_after=10) == 240


def test_tries_are_spaced_out_more_and_more() -> None:
    """fetch.retries: each pause is twice the one before, up to 8 s, and jitter at most halves it."""
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
