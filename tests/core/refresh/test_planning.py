"""The place of a feed's history, and whether a refresh has work (`refreshing.plan_refresh`)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.core.refresh.collected_world import CollectedWorld, Script
from tests.core.refresh.makers import (
    DAY,
    LIMITS,
    NOW,
    a_basis,
    a_feed,
    a_published_feed,
    a_row,
    a_subscription,
    an_attempt,
    archive,
)
from tests.makers import FEED, an_arrival
from wholefeed.core.adapters import table
from wholefeed.core.model import Kind, Role, State
from wholefeed.core.notes import PagesAscend
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh.accounting import Shifts
from wholefeed.core.refresh.basis import Settings
from wholefeed.core.refresh.refreshing import HistoryWay, is_at_rest, plan_refresh
from wholefeed.core.refresh.stored import StoredDocument

NO_PAGES = Settings(limits=LIMITS, follows_pages=False)


@pytest.mark.parametrize(
    ("kind", "options", "way"),
    [
        pytest.param(Kind.COMPLETE, {}, HistoryWay.WHOLE, id="R1 complete"),
        pytest.param(Kind.COMPLETE, {"may_walk": False}, HistoryWay.WHOLE, id="for which nothing is walked"),
        pytest.param(Kind.ARCHIVED, {}, HistoryWay.LINKS, id="R2 a chain"),
        pytest.param(Kind.LEGACY, {}, HistoryWay.LINKS, id="R4 a supposed one"),
        pytest.param(Kind.PAGED, {}, HistoryWay.LINKS, id="R6 pages"),
        pytest.param(Kind.PAGED, {"settings": NO_PAGES}, HistoryWay.NOWHERE, id="that are not followed"),
        pytest.param(Kind.PLAIN, {}, HistoryWay.NOWHERE, id="R7 no links"),
        pytest.param(Kind.PLAIN, {"may_walk": False}, HistoryWay.NOWHERE, id="for which nothing is put off"),
        pytest.param(Kind.ARCHIVED, {"may_walk": False}, HistoryWay.PUT_OFF, id="a chain, without a walk"),
        pytest.param(Kind.PAGED, {"may_walk": False}, HistoryWay.PUT_OFF, id="pages, without a walk"),
    ],
)
def test_where_the_history_is(kind: Kind, options: dict[str, Any], way: HistoryWay) -> None:
    """R1, R2, R4 to R7."""
    plan = plan_refresh(a_basis(**options), [], a_subscription(kind=kind, relation="prev"))
    assert (plan.way, plan.collecting) == (way, None)
    assert plan.is_walk is (way is HistoryWay.LINKS)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> CollectedWorld[Script]:
    world = CollectedWorld(Script([]))
    monkeypatch.setattr(table, "ADAPTERS", (world.adapter,))
    world.attempt()
    return world


@pytest.mark.parametrize(
    ("changes", "way"),
    [
        pytest.param({}, HistoryWay.ADAPTER, id="its publisher is there"),
        pytest.param({"is_confirmed": False}, HistoryWay.NOWHERE, id="its publisher is not there"),
        pytest.param({"kind": Kind.ARCHIVED}, HistoryWay.LINKS, id="it has links"),
    ],
)
def test_an_adapter_asks_a_publisher_that_links_nothing(
    world: CollectedWorld[Script], changes: dict[str, Any], way: HistoryWay
) -> None:
    """R26."""
    plan = plan_refresh(world.basis, world.rows, a_subscription(**{"kind": Kind.PLAIN, **changes}))
    assert plan.way is way
    assert (plan.collecting is not None) is (way is HistoryWay.ADAPTER)


def test_an_adapter_that_wants_all_waits_for_a_request_that_may_walk(world: CollectedWorld[Script]) -> None:
    """R26: the first time it wants every page."""
    basis = dataclasses.replace(world.basis, request=dataclasses.replace(world.basis.request, may_walk=False))
    assert plan_refresh(basis, world.rows, a_subscription(kind=Kind.PLAIN)).way is HistoryWay.PUT_OFF


# Work without news

SETTLED = [a_row(an_arrival(archive(2), archive(1)), 2, rank=0), a_row(an_arrival(archive(1)), 1, rank=1)]
AT_REST: dict[str, Any] = {"feed": a_published_feed(State.COMPLETE, kind=Kind.ARCHIVED)}
CHAIN: dict[str, Any] = {"arrival": an_arrival(FEED, archive(2)), "kind": Kind.ARCHIVED}
ASCENT = f'[{{"code": "{PagesAscend.code}", "url": "{archive(2)}"}}]'


def feed_of(state: State = State.COMPLETE, **changes: Any) -> dict[str, Any]:
    return {"feed": a_published_feed(state, **{"kind": Kind.ARCHIVED, **changes})}


@pytest.mark.parametrize(
    ("options", "is_due"),
    [
        pytest.param({}, False, id="a feed at rest"),
        pytest.param({"is_forced": True}, True, id="a person insists"),
        pytest.param({"is_full": True}, True, id="everything is asked for"),
        pytest.param(feed_of(is_walking=True), True, id="a walk was cut off"),
        pytest.param({"feed": a_feed()}, True, id="nothing is published"),
        pytest.param(feed_of(digest=None), True, id="nothing was ever published"),
        pytest.param(feed_of(revision=2, published_revision=1), True, id="a refresh was cut off"),
        pytest.param(feed_of(State.LOADING), True, id="it was put off"),
        pytest.param(feed_of(notes=ASCENT), True, id="pages get newer along next"),
        pytest.param(feed_of(State.REMEMBERED, kind=Kind.PAGED), True, id="pages are followed from now on"),
        pytest.param(
            {**feed_of(State.REMEMBERED, kind=Kind.PAGED), "settings": NO_PAGES}, False, id="they are not"
        ),
        pytest.param(feed_of(State.COLLECTED, kind=Kind.PLAIN), True, id="no adapter fits any more"),
        pytest.param({"missing": [an_attempt(archive(1))]}, False, id="what is missing rests"),
        pytest.param({"missing": [an_attempt(archive(1), wait_seconds=-1)]}, True, id="its time has come"),
        pytest.param(
            feed_of(shifts=Shifts(left=archive(2), passed_at=NOW - 2 * DAY).written()),
            True,
            id="entries are to be found (R35)",
        ),
        pytest.param(
            feed_of(shifts=Shifts(left=archive(2), passed_at=NOW).written()),
            False,
            id="tried today",
        ),
    ],
)
def test_what_an_earlier_refresh_has_left(options: dict[str, Any], is_due: bool) -> None:
    """R14, R16, R35."""
    plan = plan_refresh(a_basis(**(AT_REST | options)), SETTLED, a_subscription(**CHAIN))
    assert plan.is_due is is_due


@pytest.mark.parametrize(
    ("at", "changes", "is_due"),
    [
        pytest.param(2, {}, False, id="all are settled"),
        pytest.param(2, {"is_settled": False, "checked_at": NOW - DAY}, True, id="the newest is open"),
        pytest.param(2, {"is_settled": False}, False, id="and was looked at today"),
        pytest.param(1, {"is_settled": False, "checked_at": NOW - 60}, True, id="another is open"),
        pytest.param(1, {"memento": "http://archive.test/1"}, False, id="a copy has an attempt"),
        pytest.param(1, {"url": archive(9), "is_settled": False, "checked_at": 0.0}, False, id="elsewhere"),
        pytest.param(1, {"role": Role.PAGE, "is_settled": False, "checked_at": 0.0}, False, id="a page"),
    ],
)
def test_an_archive_on_the_stored_path_is_due(at: int, changes: dict[str, Any], is_due: bool) -> None:
    """R13: even if the subscription document is unchanged."""
    rows: list[StoredDocument] = [
        dataclasses.replace(row, **changes) if row.id == at else row for row in SETTLED
    ]
    assert plan_refresh(a_basis(**AT_REST), rows, a_subscription(**CHAIN)).is_due is is_due
    other = a_subscription(**{**CHAIN, "kind": Kind.PAGED})
    assert not plan_refresh(a_basis(**AT_REST), rows, other).is_due


def test_a_stored_circle_is_looked_through_once() -> None:
    """R17."""
    rows = [a_row(an_arrival(archive(1), archive(1)), 1, is_settled=False)]
    subscription = a_subscription(arrival=an_arrival(FEED, archive(1)))
    assert not plan_refresh(a_basis(**AT_REST), rows, subscription).is_due


@pytest.mark.parametrize(
    ("feed", "parser_version", "expected"),
    [
        pytest.param({}, PARSER_VERSION, True, id="at rest"),
        pytest.param({"digest": None}, PARSER_VERSION, False, id="never published"),
        pytest.param({"revision": 2}, PARSER_VERSION, False, id="cut off"),
        pytest.param({"is_walking": True}, PARSER_VERSION, False, id="cut off in a walk"),
        pytest.param({"state": State.LOADING}, PARSER_VERSION, False, id="put off"),
        pytest.param({}, PARSER_VERSION - 1, False, id="read by an older parser"),
    ],
)
def test_a_feed_is_at_rest(feed: dict[str, Any], parser_version: int, expected: bool) -> None:
    """I1: imports then cause no request."""
    stored = a_published_feed(**{"state": State.COMPLETE, **feed})
    rows = [dataclasses.replace(SETTLED[0], parser_version=parser_version)]
    assert is_at_rest(stored, rows) is expected
