"""That publishers have said of feeds that nothing has changed, of many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from wholefeed.store.changing import changed
from wholefeed.store.database import Database
from wholefeed.store.rows import FeedRow

_NOTE_FEED: Final = "UPDATE feed SET checked_at = ?, fresh_until = ? WHERE id = ?"
_NOTE_DOCUMENT: Final = "UPDATE document SET checked_at = ? WHERE id = ?"


class Check(NamedTuple):
    """What one publisher has said."""

    feed: int
    document: int
    """That has not changed."""
    checked_at: float
    fresh_until: float

    def noted_in(self, row: FeedRow) -> FeedRow:
        """Return the feed's row with it, unless the row is of later."""
        if row.checked_at is not None and row.checked_at >= self.checked_at:
            return row
        return changed(row, checked_at=self.checked_at, fresh_until=self.fresh_until)


def note(db: Database, checks: Sequence[Check]) -> None:
    """Note them, of feeds that are still there."""
    db.executemany(_NOTE_FEED, [(each.checked_at, each.fresh_until, each.feed) for each in checks])
    db.executemany(_NOTE_DOCUMENT, [(each.checked_at, each.document) for each in checks])
