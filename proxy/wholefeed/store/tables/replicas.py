"""The processes that share the store, each with its last sign of life. On PostgreSQL alone.

The database's clock (`clock_seconds`, made by a migration) counts for all of them: theirs may differ.
"""

from __future__ import annotations

from typing import Final

from wholefeed.store.database import Database
from wholefeed.store.statements import fetch_value, run

DEAD_SECONDS: Final = 6.0
"""After so long without a sign of life a replica is dead, and what it held is anybody's."""
FORGOTTEN_SECONDS: Final = 600.0
"""After so long its row is deleted. Longer than a request to a publisher may take: a place at a host is free
when the row says that its replica is dead, and where there is none when the request must be over."""

_BEAT: Final = """
    INSERT INTO replica (name, began_at, beat_at) VALUES (:name, clock_seconds(), clock_seconds())
    ON CONFLICT (name) DO UPDATE SET
        beat_at = excluded.beat_at,
        began_at = CASE WHEN replica.began_at > 0 THEN replica.began_at ELSE excluded.began_at END
"""
_IS_KNOWN: Final = "SELECT 1 FROM replica WHERE name = :name AND began_at > 0"
COUNT_LIVE: Final = f"SELECT count(*) FROM replica WHERE beat_at > clock_seconds() - {DEAD_SECONDS}"  # noqa: S608
_BEAT_AGAIN: Final = """
    UPDATE replica SET beat_at = clock_seconds()
    WHERE name = :name AND beat_at > clock_seconds() - :dead_seconds
"""
_LEAVE: Final = "DELETE FROM replica WHERE name = :name"
_FORGET_DEAD: Final = "DELETE FROM replica WHERE beat_at < clock_seconds() - :forgotten_seconds"


def beat(db: Database, name: str) -> bool:
    """Give a sign of life; return whether the replica was known before."""
    is_known = fetch_value(db, _IS_KNOWN, {"name": name}) is not None
    run(db, _BEAT, {"name": name})
    return is_known


def beat_again(db: Database, name: str) -> bool:
    """Give a sign of life of a replica that is known; return whether it is.

    One that has left stays away, and one that is dead stays so, however late this comes: others may have
    taken what it held.
    """
    return run(db, _BEAT_AGAIN, {"name": name, "dead_seconds": DEAD_SECONDS}) > 0


def count_live(db: Database) -> int:
    """Return how many replicas are alive."""
    return int(fetch_value(db, COUNT_LIVE))


def leave(db: Database, name: str) -> None:
    """Take a replica off at once: it has ended, and what it held is anybody's."""
    run(db, _LEAVE, {"name": name})


def forget_dead(db: Database) -> None:
    """Delete the rows of replicas that have been dead for long."""
    run(db, _FORGET_DEAD, {"forgotten_seconds": FORGOTTEN_SECONDS})
