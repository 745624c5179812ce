"""When a request or a document that could not be had is tried again (R14; docs/faults.md rows 54 to 56)."""

from __future__ import annotations

from typing import Final

from wholefeed.core.slugs import lasts
from wholefeed.core.text.dates import DAY_SECONDS

FIRST_DELAY_SECONDS: Final = 60.0
LONGEST_DELAY_SECONDS: Final = 6 * 3600.0

_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 8.0

_GONE: Final = 410
_CLOSED: Final = frozenset({401, 403})
_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503
_REQUEST_TIMEOUT: Final = 408
_SERVER_ERRORS: Final = range(500, 600)
_TRANSIENT_STATUSES: Final = frozenset({_REQUEST_TIMEOUT, _TOO_MANY_REQUESTS, *_SERVER_ERRORS})


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
    everything else, `retry_missing_seconds`. None is tried before its host may be asked again.
    Never more than a day from now, however the clock has jumped (docs/faults.md row 73).

    Args:
        reason: Slug of the error or note.
        status: The publisher's HTTP status; None where there was none.
        attempts: How often it was tried, this time included; at least 1.
        now: Epoch seconds.
        retry_after_seconds: What the publisher asked for, or how long its host is left alone; None: neither.
        retry_missing_seconds: From the configuration.
        is_subscription: Whether it is the subscription document: the feed itself, not a part of it.
    """
    assert attempts >= 1, "an attempt has just failed"
    if retry_after_seconds is not None and status in (_TOO_MANY_REQUESTS, _UNAVAILABLE):
        delay = retry_after_seconds
    elif status == _GONE or (is_subscription and status in _CLOSED):
        delay = DAY_SECONDS
    elif status in _TRANSIENT_STATUSES or (status is None and not lasts(reason)):
        delay = min(FIRST_DELAY_SECONDS * 2.0 ** min(attempts - 1, 16), LONGEST_DELAY_SECONDS)
    else:
        delay = retry_missing_seconds
    delay = max(delay, retry_after_seconds or 0.0)
    return now + min(max(delay, 1.0), DAY_SECONDS)


def backoff_seconds(attempt: int, jitter: float) -> float:
    """Return how long to wait before a request is tried again: 0.5 s, doubling to 8 s, less up to half.

    Args:
        attempt: How often it was tried again already.
        jitter: From 0 to 1; spreads tries that failed together.
    """
    pause_seconds = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(attempt, 16), _LONGEST_PAUSE_SECONDS)
    return float(pause_seconds * (1 - jitter / 2))
