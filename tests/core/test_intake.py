"""B1 to B5: the tally of an intake, its sentences, and failures that may pass."""

from __future__ import annotations

import pytest

from wholefeed.core.intake import (
    LONGEST_WAIT_SECONDS,
    MOST_TRIES,
    FailedFeed,
    Stage,
    Tally,
    advise,
    describe_counted,
    describe_gain,
    describe_progress,
    describe_searching,
    describe_totals,
    group_by_advice,
    next_try_seconds,
)
from wholefeed.core.model import State
from wholefeed.core.slugs import SLUGS


def a_tally() -> Tally:
    tally = Tally()
    tally.add(Stage.WAITING, None, 5, before=0, now=0)
    tally.add(Stage.FAILED, None, 6, before=0, now=0)
    tally.add(Stage.HERE, State.REMEMBERED, 47, before=470, now=470)
    tally.add(Stage.HERE, State.COMPLETE, 31, before=1650, now=47_840)
    tally.add(Stage.HERE, None, 2, before=0, now=0)
    return tally


def test_a_tally_counts_each_feed_once() -> None:
    """B4: waiting, here, failed, and forgotten since."""
    tally = a_tally()
    assert (tally.waiting, tally.failed, tally.forgotten, tally.here) == (5, 6, 2, 78)
    assert (tally.feeds, tally.done, tally.is_over) == (91, 86, False)
    assert (tally.before, tally.now) == (2120, 48_310)
    assert Tally().is_over


def test_people_are_told_the_totals_and_each_gain() -> None:
    """B4: the states in a fixed order, then what else became of feeds."""
    tally = a_tally()
    assert describe_gain("The Keeper's Log", 10, 302) == "The Keeper's Log: 10 entries before, 302 now"
    assert describe_gain("New", 1, 1) == "New: 1 entry before, 1 now"
    assert describe_progress(tally) == "86 of 91 feeds asked, 5 to go, 6 failed"
    assert describe_totals(tally) == (
        "91 feeds: 2,120 entries before, 48,310 now; 31 complete, 47 remembered, 6 failed, 2 forgotten,"
        " 5 to go"
    )
    assert describe_totals(Tally()) == "0 feeds: 0 entries before, 0 now"


def test_remarks_are_there_for_a_reason_only() -> None:
    """B3, H8: feeds that nobody was asked for, and sites that are still to be searched."""
    assert (describe_counted(Tally()), describe_searching(Tally())) == ("", "")
    tally = Tally(counted=1, searching=2)
    assert describe_counted(tally).startswith("1 feed was here and fresh already")
    assert describe_searching(tally).startswith("2 sites are still to be searched")


@pytest.mark.parametrize(
    ("slug", "status", "pause", "tries", "expected"),
    [
        ("publisher-status", 404, None, 1, None),
        ("not-a-feed", None, None, 1, None),
        ("timeout", None, None, 1, None),
        ("publisher-status", 503, 20.0, 1, 20.0),
        ("publisher-status", 429, None, 1, 30.0),
        ("publisher-status", 429, 0.0, 1, 5.0),
        ("host-backoff", None, 60.0, MOST_TRIES - 1, 60.0),
        ("host-backoff", None, 60.0, MOST_TRIES, None),
        ("host-backoff", None, LONGEST_WAIT_SECONDS + 1, 1, None),
        ("memory-short", None, 10.0, 1, 10.0),
        ("overloaded", None, 10.0, MOST_TRIES + 5, 10.0),
        ("storage-full", None, None, 99, 30.0),
        ("overloaded", None, 86_400.0, 1, LONGEST_WAIT_SECONDS),
    ],
)
def test_only_pauses_are_waited_for(
    slug: str, status: int | None, pause: float | None, tries: int, expected: float | None
) -> None:
    """B2: a pause that a publisher asks for, three times at most; the proxy's own troubles, always."""
    assert next_try_seconds(slug, status, pause, tries) == expected


def test_each_failure_has_advice() -> None:
    """B4: every reason that a feed may fail for, and a publisher's statuses."""
    for slug in SLUGS:
        assert advise(slug, None).endswith((".", "Feed")), slug
    assert advise("publisher-status", 410) == advise("publisher-status", 404)
    assert "gone" in advise("publisher-status", 404)
    assert "again later" in advise("publisher-status", 500)
    assert "browser" in advise("publisher-status", 400)
    assert advise("no-subscription-document", None) == advise("not-a-feed", None)


def test_failures_with_the_same_advice_stand_together() -> None:
    """B4: the advice for most of them first."""
    found = [
        FailedFeed("https://a.test/", "A", 1, "not-a-feed", None),
        FailedFeed("https://b.test/", "B", 2, "publisher-status", 404),
        FailedFeed("https://c.test/", "C", 3, "publisher-status", 410),
    ]
    groups = group_by_advice(found)
    assert [[each.title for each in group] for group in groups.values()] == [["B", "C"], ["A"]]
    assert found[1].why == "the publisher responded with status 404"
