"""What is to be done after a look at a lease."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wholefeed.errors import PublisherError, WorkError
from wholefeed.service.sharing import judge, judge_claim, outcome_of
from wholefeed.store.tables.leases import DEAD_SECONDS, LeaseRow, Verdict

HELD = LeaseRow(
    name="feed:1",
    replica="other",
    token="other.1",
    progress="",
    outcome="",
    ended_seconds=None,
    silent_seconds=1.0,
)
OWN = replace(HELD, replica="me")
DEAD = replace(HELD, silent_seconds=DEAD_SECONDS)
FORGOTTEN = replace(HELD, silent_seconds=None)
FAILED = replace(HELD, ended_seconds=5.0, outcome=outcome_of(PublisherError("", url="http://o.test/")))
UNUSABLE = replace(HELD, ended_seconds=5.0, outcome=outcome_of(WorkError("")))
LONG_AGO = replace(FAILED, ended_seconds=60.0)
WAITED, DONE, INSISTS, OPENING = "has_waited", "is_done", "insists", "is_opening"


@pytest.mark.parametrize(
    ("lease", "facts", "verdict"),
    [
        (None, (), Verdict.TAKE),
        (None, (DONE,), Verdict.DONE),
        (None, (INSISTS,), Verdict.TAKE),
        (HELD, (), Verdict.WAIT),
        (HELD, (DONE,), Verdict.WAIT),
        (HELD, (INSISTS,), Verdict.WAIT),
        (OWN, (DONE,), Verdict.TAKE),
        (DEAD, (), Verdict.TAKE),
        (DEAD, (DONE,), Verdict.DONE),
        (FORGOTTEN, (), Verdict.TAKE),
        (FAILED, (), Verdict.TAKE),
        (FAILED, (OPENING,), Verdict.FAILED),
        (FAILED, (WAITED,), Verdict.FAILED),
        (FAILED, (WAITED, INSISTS), Verdict.TAKE),
        (FAILED, (DONE,), Verdict.DONE),
        (UNUSABLE, (), Verdict.FAILED),
        (LONG_AGO, (OPENING,), Verdict.TAKE),
        (replace(FAILED, ended_seconds=-1.0), (OPENING,), Verdict.TAKE),
    ],
)
def test_who_looks_at_a_lease_knows_what_to_do(
    lease: LeaseRow | None, facts: tuple[str, ...], verdict: Verdict
) -> None:
    """Nobody does what a live replica is at, or what is done; what a dead one has left is taken."""
    assert judge(lease, "me", **dict.fromkeys(facts, True)) is verdict


@pytest.mark.parametrize(
    ("lease", "is_wanted", "verdict"),
    [
        (None, True, Verdict.TAKE),
        (None, False, Verdict.TAKE),  # there is no row to be asked
        (HELD, True, Verdict.WAIT),
        (OWN, True, Verdict.WAIT),
        (DEAD, True, Verdict.TAKE),
        (FAILED, True, Verdict.TAKE),
    ],
)
def test_what_is_claimed_is_nobodys(lease: LeaseRow | None, is_wanted: bool, verdict: Verdict) -> None:
    """Not this replica's either: whatever it has it is at already."""
    assert judge_claim(lambda _: is_wanted)(lease, None) is verdict
