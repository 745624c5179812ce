"""Facts in the stored documents and attempts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.refresh.makers import NOW, a_row, an_attempt, archive
from tests.makers import an_arrival
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, StoredDocument
from wholefeed.core.text.dates import DAY_SECONDS


def test_an_attempt_waits_for_its_time_but_not_for_a_clock_that_was_wrong() -> None:
    """R14: an instant over a day ahead counts as now."""
    attempt = an_attempt(archive(1), wait_seconds=60.0)
    assert attempt.waits(NOW + 59)
    assert not attempt.waits(NOW + 60)
    assert not attempt.waits(NOW - 90_000)


def test_the_subscription_document_s_attempt_is_told_from_the_others() -> None:
    """R14: it makes the feed stale, not partial."""
    assert an_attempt(SUBSCRIPTION_ATTEMPT).is_subscription
    assert not an_attempt(archive(1)).is_subscription


def a_document(**changes: Any) -> StoredDocument:
    return a_row(an_arrival(archive(1)), 1, **{"is_settled": False, **changes})


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
    row = a_document(is_settled=is_settled, is_marked=is_marked, is_uncacheable=is_uncacheable)
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
    row = a_document(**{"checked_at": NOW - DAY_SECONDS, **changes})
    assert row.is_due(changed_at, is_newest=is_newest, now=NOW) is expected
