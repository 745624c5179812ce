"""One transaction on a connection, for functions that run in its thread.

read(db, work)                       # of one moment: REPEATABLE READ READ ONLY
write(db, work, feed=1)              # begins with the lock on the feed's row
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from wholefeed.store.postgres.connection import PostgresDatabase

_T = TypeVar("_T")

_BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITE: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED"  # not READ WRITE, which a standby refuses with another error
)
_LOCK: Final = "SELECT 1 FROM feed WHERE id = :feed FOR UPDATE"


class Transaction:
    """A transaction that writes, and how far it has come."""

    def __init__(self, feed: int | None) -> None:
        self.feed = feed
        self.number = ""
        """As the server calls it (`pg_xact_status`); empty as long as it has none that is known."""
        self.is_ending = False
        """Whether COMMIT was sent: from then on a lost connection leaves open what came of it."""

    def run(self, db: PostgresDatabase, work: Callable[[PostgresDatabase], _T]) -> _T:
        """Run it, all of it or nothing."""
        try:
            db.execute(_BEGIN_WRITE)
            if self.feed is not None:
                db.execute(_LOCK, {"feed": self.feed})
            result = work(db)
            self.is_ending = True
            db.execute("COMMIT")
        except BaseException:
            db.rollback()
            raise
        return result


def read(db: PostgresDatabase, work: Callable[[PostgresDatabase], _T]) -> _T:
    """Return what a function finds; all of it is of one moment."""
    try:
        db.execute(_BEGIN_READ)
        result = work(db)
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise
    return result
