"""When a document that could not be had is tried again (rule R14; FAULTS rows 54 to 56)."""

from __future__ import annotations

from typing import Final

DAY_SECONDS: Final = 86400.0
FIRST_DELAY_SECONDS: Final = 60.0
LONGEST_DELAY_SECONDS: Final = 6 * 3600.0

_GONE: Final = 410
_CLOSED: Final = frozenset({401, 403})
_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503
_REQUEST_TIMEOUT: Final = 408
_SERVER_ERRORS: Final = range(500, 600)
_TRANSIENT_STATUSES: Final = frozenset({_REQUEST_TIMEOUT, _TOO_MANY_REQUESTS, *_SERVER_ERRORS})

LASTING_REASONS: Final = frozenset(
    {
        "bad-link",
        "bad-redirect",
        "content-coding",
        "cross-origin-unconfirmed",
        "destination-forbidden",
        "downgrade",
        "dtd-forbidden",
        "empty",
        "format",
        "loop-detected",
        "malformed-json",
        "malformed-xml",
        "not-a-feed",
        "origin-forbidden",
        "publisher-status",
        "redirect-loop",
        "tls-certificate",
        "too-large",
        "unexpected-status",
        "unsupported-encoding",
        "unsupported-format",
        "xml-limit",
    }
)
"""Slugs of what does not pass by itself within minutes, unlike a network that fails."""


def next_attempt_at(
    reason: str,
    status: int | None,
    *,
    attempts: int,
    now: float,
    retry_after_seconds: float | None,
    retry_missing_seconds: float,
    is_subscription: bool = False,
) -> float:
    """Return the instant, epoch seconds, before which a document is not asked for again.

    A publisher that names a delay (429, 503) is obeyed. 410 rests a day, a feed that is closed to us (401,
    403) too; 5xx, 408, 429 and a failing network begin with a minute that doubles up to six hours;
    everything else, `retry_missing_seconds`.
    Never more than a day from now, however the clock has jumped (FAULTS row 73).

    Args:
        reason: Slug of the error or note.
        status: The publisher's HTTP status; None where there was none.
        attempts: How often it was tried, this time included; at least 1.
        now: Epoch seconds.
        retry_after_seconds: As `proxy.core.freshness.retry_after_seconds` reads it.
        retry_missing_seconds: From the configuration.
        is_subscription: Whether it is the subscription document: the feed itself, not a part of it.
    """
    assert attempts >= 1, "an attempt has just failed"
    if retry_after_seconds is not None and status in (_TOO_MANY_REQUESTS, _UNAVAILABLE):
        delay = retry_after_seconds
    elif status == _GONE or (is_subscription and status in _CLOSED):
        delay = DAY_SECONDS
    elif status in _TRANSIENT_STATUSES or (status is None and reason not in LASTING_REASONS):
        delay = min(FIRST_DELAY_SECONDS * 2.0 ** min(attempts - 1, 16), LONGEST_DELAY_SECONDS)
    else:
        delay = retry_missing_seconds
    return now + min(max(delay, 1.0), DAY_SECONDS)
