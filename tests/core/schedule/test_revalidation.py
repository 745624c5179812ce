from __future__ import annotations

from typing import Any

import pytest

from wholefeed.core.schedule import is_due, is_final
from wholefeed.core.text.dates import DAY_SECONDS

NOW = 1_000_000.0


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
    assert is_final(is_settled=is_settled, is_marked=is_marked, is_uncacheable=is_uncacheable) is expected


def due(**changes: Any) -> bool:
    case: dict[str, Any] = {
        "is_settled": False,
        "is_newest": True,
        "is_marked": True,
        "is_uncacheable": False,
        "subscription_changed_at": NOW,
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
    assert due(**changes) is expected
