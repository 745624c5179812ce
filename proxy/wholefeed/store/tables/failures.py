"""What could not be had of a feed: its archive documents or pages, and the subscription document itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt
from wholefeed.store.database import Database
from wholefeed.store.rows import Failures, Overview
from wholefeed.store.statements import fetch_all, fetch_value, run
from wholefeed.store.tables import feeds

_READ: Final = """
    SELECT url, reason, status, attempts, first_at, last_at, next_at
    FROM attempt WHERE feed = :feed ORDER BY first_at, url
"""
_FIRST: Final = "SELECT min(first_at) FROM attempt WHERE feed = :feed AND url <> :subscription"
_WAS_MISSING: Final = """
    SELECT a.url, EXISTS (
        SELECT 1 FROM document AS d
        WHERE d.feed = :feed AND d.rank IS NOT NULL AND a.url IN (d.url, d.final_url)
    ) AS is_had
    FROM attempt AS a
    WHERE a.feed = :feed AND a.url <> :subscription
"""
_CLEAR_MISSING: Final = "DELETE FROM attempt WHERE feed = :feed AND url <> :subscription"
_CLEAR_SUBSCRIPTION: Final = "DELETE FROM attempt WHERE feed = :feed AND url = :subscription"
_PUT: Final = """
    INSERT INTO attempt (feed, url, reason, status, attempts, first_at, last_at, next_at)
    VALUES (:feed, :url, :reason, :status, :attempts, :first_at, :last_at, :next_at)
"""


def read(db: Database, feed: int) -> Failures:
    """Return what could not be had of a feed."""
    attempts = [Attempt(**dict(row)) for row in fetch_all(db, _READ, {"feed": feed})]
    return Failures(
        missing=tuple(each for each in attempts if not each.is_subscription),
        subscription=next((each for each in attempts if each.is_subscription), None),
    )


def first_failed_at(db: Database, feed: int) -> float | None:
    """Return when what is missing of a feed failed first; None: nothing is missing."""
    found: float | None = fetch_value(db, _FIRST, {"feed": feed, "subscription": SUBSCRIPTION_ATTEMPT})
    return found


def replace_missing(db: Database, feed: int, missing: Sequence[Attempt]) -> bool:
    """Let these be all that is missing of a feed.

    Returns:
        Whether anything is missing no longer without having been had.
    """
    values = {"feed": feed, "subscription": SUBSCRIPTION_ATTEMPT}
    before = fetch_all(db, _WAS_MISSING, values)
    lost = {row["url"] for row in before if not row["is_had"]} - {each.url for each in missing}
    if before:
        run(db, _CLEAR_MISSING, values)
    for attempt in missing:
        assert not attempt.is_subscription, "that is no part of a publication"
        run(db, _PUT, {"feed": feed, **asdict(attempt)})
    return bool(lost)


def note_refetch(db: Database, feed: int, failure: Attempt | None, changes: Mapping[str, Any]) -> None:
    """Note that the subscription document could not be had, None: that it could; and set columns.

    Raises:
        UnknownFeedError: It was forgotten.
    """
    feeds.update(db, feed, changes)  # first: it tells whether the feed is there
    run(db, _CLEAR_SUBSCRIPTION, {"feed": feed, "subscription": SUBSCRIPTION_ATTEMPT})
    if failure is not None:
        assert failure.is_subscription, "a part that is missing is published"
        run(db, _PUT, {"feed": feed, **asdict(failure)})


def overview(db: Database, feed: int) -> Overview:
    """Return what is known of a feed beside its documents."""
    return Overview(feeds.require(db, feed), read(db, feed), feeds.body_bytes(db, feed))
