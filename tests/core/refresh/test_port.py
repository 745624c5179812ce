"""What the store tells, as the decisions read it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.core.refresh.world import NOW, Page, Publisher, World, WorldIO
from wholefeed.core.model import Role
from wholefeed.core.refresh.port import SUBSCRIPTION_ATTEMPT, Attempt, Failure, RefreshRequest, StoredDocument
from wholefeed.core.text.dates import DAY_SECONDS

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


def a_row(**changes: Any) -> StoredDocument:
    world = World(Publisher({}))
    row = world.documents[world.put(URL, Page(), Role.ARCHIVE, 0)]
    return replace(row, **changes)


@pytest.mark.parametrize(
    ("is_settled", "is_marked", "is_uncacheable", "expected"),
    [
        (False, True, False, False),
        (False, False, True, False),
        (True, True, False, True),
        (True, True, True, True),
        (True, False, False, True),
        (True, False, True, False),
    ],
)
def test_an_archive_that_another_follows_is_final_unless_it_must_not_be_cached(
    is_settled: bool, is_marked: bool, is_uncacheable: bool, expected: bool
) -> None:
    """R13; RFC 5005, 4."""
    row = a_row(is_settled=is_settled, is_marked=is_marked, is_uncacheable=is_uncacheable)
    assert row.is_final is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, True, id="the newest, a day after"),
        pytest.param({"checked_at": NOW - DAY_SECONDS + 1}, False, id="at most daily"),
        pytest.param({"checked_at": NOW + 60}, False, id="a negative age is none"),
        pytest.param({"checked_at": NOW + 3600}, True, id="a clock that was put right"),
        pytest.param({"checked_at": NOW + 10 * 365 * DAY_SECONDS}, True, id="a clock that was wrong"),
        pytest.param(
            {"subscription_changed_at": NOW - DAY_SECONDS},
            False,
            id="only when the subscription document has changed since",
        ),
        pytest.param(
            {"subscription_changed_at": NOW - DAY_SECONDS + 60},
            True,
            id="it changed within a day of the look",
        ),
        pytest.param({"is_settled": True}, False, id="never again once settled"),
        pytest.param({"is_settled": True, "is_newest": False}, False, id="settled, not the newest"),
        pytest.param(
            {"is_newest": False, "checked_at": NOW - 60},
            True,
            id="once more when it stops being the newest",
        ),
        pytest.param({"is_newest": False, "checked_at": NOW}, False, id="it was gone then"),
        pytest.param({"is_newest": False, "subscription_changed_at": 0.0}, True, id="it was gone a day ago"),
        pytest.param(
            {"is_settled": True, "is_newest": False, "is_marked": False, "is_uncacheable": True},
            True,
            id="never final: daily",
        ),
        pytest.param(
            {
                "is_settled": True,
                "is_newest": False,
                "is_marked": False,
                "is_uncacheable": True,
                "checked_at": NOW - 60,
            },
            False,
            id="never final: not more often",
        ),
        pytest.param(
            {"is_newest": False, "is_marked": False, "is_uncacheable": True, "checked_at": NOW - 60},
            True,
            id="once more, whatever its cache fields say",
        ),
    ],
)
def test_an_archive_is_due(changes: dict[str, Any], expected: bool) -> None:
    """R13."""
    changes = dict(changes)
    changed_at = changes.pop("subscription_changed_at", NOW)
    is_newest = changes.pop("is_newest", True)
    row = a_row(**{"checked_at": NOW - DAY_SECONDS, **changes})
    assert row.is_due(changed_at, is_newest=is_newest, now=NOW) is expected
