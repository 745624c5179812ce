"""Which feeds may be polled now, and when the next one may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wholefeed.core.schedule.polling import Times
from wholefeed.store.database import Database
from wholefeed.store.statements import fetch_all, fetch_value

_DUE: Final = """
    SELECT id, fetch_url, checked_at FROM feed
    WHERE checked_at <= :before AND (fresh_until <= :now OR fresh_until > :horizon)
    UNION ALL
    SELECT id, fetch_url, checked_at FROM feed
    WHERE checked_at > :now AND (fresh_until <= :now OR fresh_until > :horizon)
    ORDER BY checked_at
"""
_NEXT_AT: Final = """
    SELECT min(due_at) FROM (
        SELECT min(fresh_until) AS due_at FROM feed WHERE checked_at <= :before AND fresh_until > :now
        UNION ALL
        SELECT min(checked_at) + :interval FROM feed WHERE checked_at > :before
    ) AS found
"""
_COUNT: Final = "SELECT count(*) FROM feed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What there is to be polled."""

    feeds: int
    """How many are known."""
    due: tuple[tuple[int, str], ...]
    """Number and `fetch_url` of those that may be polled, the one that was checked longest ago first."""
    next_at: float | None
    """When another one may be at the earliest, epoch seconds; None when there is none."""


def outlook(db: Database, times: Times) -> Outlook:
    """Look for what `core.schedule.polling.poll_due_at` lets be polled; feeds never heard of are left out."""
    now, before = times.now, times.now - times.interval_seconds
    due = fetch_all(db, _DUE, {"now": now, "before": before, "horizon": now + times.longest_seconds})
    instants = {"now": now, "before": before, "interval": times.interval_seconds}
    return Outlook(
        feeds=int(fetch_value(db, _COUNT)),
        due=tuple((row["id"], row["fetch_url"]) for row in due),
        next_at=fetch_value(db, _NEXT_AT, instants),
    )
