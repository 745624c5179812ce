"""What the store tells, as the decisions read it."""

from __future__ import annotations

import random

from tests.core.refresh.world import NOW, Publisher, World, WorldIO
from wholefeed.core.refresh.port import SUBSCRIPTION_ATTEMPT, Attempt, Failure, RefreshRequest

URL = "http://o.test/1"
TIMEOUT = Failure(slug="timeout")
CLOSED = Failure(slug="publisher-status", publisher_status=403)


def attempted(
    failure: Failure | None, earlier: Attempt | None = None, *, url: str = URL, at: float = NOW
) -> Attempt:
    world = World(Publisher({}), retry_missing_seconds=3600.0)
    world.now = at
    reason = "document-truncated" if failure is None else failure.slug
    basis = WorldIO(world, random.Random(0), RefreshRequest()).basis
    return basis.attempted(url, earlier, failure, reason=reason)


def test_failures_count_up_and_keep_the_time_of_the_first() -> None:
    """R14, R16: a gap stays visible, and its pseudo-entry is dated at the first failure."""
    first = attempted(TIMEOUT)
    assert first == Attempt(
        url=URL, reason="timeout", status=None, attempts=1, first_at=NOW, last_at=NOW, next_at=NOW + 60
    )
    again = attempted(Failure(slug="publisher-status", publisher_status=503), first, at=NOW + 60)
    assert again == Attempt(
        url=URL,
        reason="publisher-status",
        status=503,
        attempts=2,
        first_at=NOW,
        last_at=NOW + 60,
        next_at=NOW + 180,
    )


def test_what_was_had_and_is_not_whole_is_tried_again_in_the_usual_time() -> None:
    """R14."""
    broken_off = attempted(None)
    found = (broken_off.reason, broken_off.status, broken_off.next_at)
    assert found == ("document-truncated", None, NOW + 3600)


def test_an_attempt_waits_for_its_time_but_not_for_a_clock_that_was_wrong() -> None:
    """R14: more than a day ahead counts as now."""
    attempt = attempted(TIMEOUT)
    assert attempt.waits(NOW + 59)
    assert not attempt.waits(NOW + 60)
    assert not attempt.waits(NOW - 90_000)


def test_the_subscription_document_s_failure_is_told_from_the_others() -> None:
    """It makes the feed stale, not partial; one that is closed to us is left alone for a day."""
    own, other = attempted(CLOSED, url=SUBSCRIPTION_ATTEMPT), attempted(CLOSED)
    assert (own.is_subscription, own.next_at) == (True, NOW + 86_400)
    assert (other.is_subscription, other.next_at) == (False, NOW + 3600)
