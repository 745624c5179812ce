from __future__ import annotations

from typing import Any

import pytest

from wholefeed.core.schedule.revalidation import is_due, settles
from wholefeed.core.text.dates import DAY_SECONDS

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("is_newest", "is_marked", "is_uncacheable", "expected"),
    [
        (True, True, False, False),
        (True, False, True, False),
        (False, True, False, True),
        (False, True, True, True),
        (False, False, False, True),
        (False, False, True, False),
    ],
)
def test_an_archive_settles_when_another_is_newer(
    is_newest: bool, is_marked: bool, is_uncacheable: bool, expected: bool
) -> None:
    """R13; RFC 5005, 4."""
    assert settles(is_newest=is_newest, is_marked=is_marked, is_uncacheable=is_uncacheable) is expected


def due(**changes: Any) -> bool:
    case: dict[str, Any] = {
        "is_settled": False,
        "is_newest": True,
        "is_marked": True,
        "is_uncacheable": False,
        "subscription_changed": True,
        "checked_at": NOW - DAY_SECONDS,
        "now": NOW,
    }
    return is_due(**(case | changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, True, id="the newest, a day after"),
        pytest.param({"checked_at": NOW - DAY_SECONDS + 1}, False, id="at most daily"),
        pytest.param({"checked_at": NOW + 60}, False, id="a negative age is none"),
        pytest.param({"checked_at": NOW + 10 * 365 * DAY_SECONDS}, True, id="a clock that was wrong"),
        pytest.param(
            {"subscription_changed": False}, False, id="only when the subscription document changed"
        ),
        pytest.param({"is_settled": True}, False, id="never again once settled"),
        pytest.param({"is_settled": True, "is_newest": False}, False, id="settled, not the newest"),
        pytest.param(
            {"is_newest": False, "checked_at": NOW, "subscription_changed": False},
            True,
            id="once more when it stops being the newest",
        ),
        pytest.param(
            {"is_newest": False, "is_marked": False, "is_uncacheable": True}, True, id="never settled: daily"
        ),
        pytest.param(
            {"is_newest": False, "is_marked": False, "is_uncacheable": True, "checked_at": NOW - 60},
            False,
            id="never settled: not more often",
        ),
    ],
)
def test_an_archive_is_due(changes: dict[str, Any], expected: bool) -> None:
    """R13."""
    assert due(**changes) is expected
