"""What is to be done about a piece of work after a look at its lease. Pure: no clock, no database.

verdict = judge(lease, replica, wants)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wholefeed.service.sharing.outcomes import remembered_seconds
from wholefeed.service.sharing.sharing import Wanted
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables.leases import Judge, LeaseRow, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What whoever looks is after."""

    has_waited: bool = False
    """Whether it has waited for another replica that was at this: how that went is its own result, too."""
    insists: bool = False
    """Whether it is to be done whatever another one has come to."""
    is_opening: bool = False
    """Whether nothing is stored yet: what failed just now is not tried again at once."""
    is_done: bool = False
    """Whether there is nothing to do any more, as far as the feed's row says."""


def judge(lease: LeaseRow | None, replica: str, wants: Wants) -> Verdict:
    """Decide.

    Args:
        lease: As it is stored, if it is.
        replica: Who looks.
        wants: What for.
    """
    if lease is not None and lease.is_live:
        return Verdict.TAKE if lease.replica == replica else Verdict.WAIT
    if wants.insists:
        return Verdict.TAKE
    is_others = lease is not None and lease.replica != replica  # its own failures it remembers itself
    if lease is not None and is_others and lease.outcome and lease.ended_seconds is not None:
        counts_seconds = remembered_seconds(lease.outcome, is_opening=wants.is_opening)
        if wants.has_waited or 0 <= lease.ended_seconds < counts_seconds:
            return Verdict.FAILED
    return Verdict.DONE if wants.is_done else Verdict.TAKE


def judge_refresh(
    replica: str, wanted: Wanted, has_waited: bool, lease: LeaseRow | None, feed: FeedRow | None
) -> Verdict:
    """Decide about the refresh of a feed, as its row is now."""
    assert feed is not None, "else it is gone"
    is_new = feed.digest is None
    wants = Wants(
        has_waited=has_waited,
        insists=wanted.insists(has_waited),
        is_opening=is_new,
        is_done=not is_new and not wanted.is_due(feed),
    )
    return judge(lease, replica, wants)


def judge_claim(is_wanted: Callable[[FeedRow], bool]) -> Judge:
    """Take what nobody has and is wanted; what this one has is at work already."""

    def decide(lease: LeaseRow | None, feed: FeedRow | None) -> Verdict:
        if lease is not None and lease.is_live:
            return Verdict.WAIT
        if feed is not None and not is_wanted(feed):
            return Verdict.DONE
        return Verdict.TAKE

    return decide
