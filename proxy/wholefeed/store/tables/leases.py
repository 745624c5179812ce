"""Leases, which assign work to replicas, and the list of live replicas. PostgreSQL only.

All times come from the database's clock, since the processes' clocks may differ.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.store.base import Database, fetch_all, fetch_one, fetch_value, run, run_counting
from wholefeed.store.rows import FEED_COLUMNS, FeedRow, feed_row

DEAD_SECONDS: Final = 6.0
"""Silence after which a replica counts as dead and its leases as free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    name: str
    replica: str
    token: str
    progress: str
    outcome: str
    """Failure, if any; empty while in force."""
    ended_seconds: float | None
    silent_seconds: float | None
    """Seconds since its replica's last sign of life. None: no such replica."""

    @property
    def is_live(self) -> bool:
        is_alive = self.silent_seconds is not None and self.silent_seconds < DEAD_SECONDS
        return self.ended_seconds is None and is_alive


LeaseCondition = Callable[[LeaseRow | None, FeedRow | None], bool]
"""Whether a free lease is wanted, from its row and its feed's. Called in the transaction, perhaps twice."""


def always(before: LeaseRow | None, feed: FeedRow | None) -> bool:
    return True


class LeaseResult(NamedTuple):
    token: str
    """Empty: not taken."""
    before: LeaseRow | None
    feed: FeedRow | None
    """None: the feed was forgotten, or the lease is on none."""


def feed_lease(feed: int) -> str:
    return f"feed:{feed}"


# A lease is in force until it ends or its replica dies. Success deletes its row; failure leaves the outcome
# for a while. Each taking has its own token, so that late actions of an earlier one have no effect. Every
# change of a feed locks the feed's row, and so does a change of its lease: a transaction that sees its own
# lease commits before another replica gets it.
_LOCK_NAME: Final = "SELECT 1 FROM (SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))) AS locked"
_LOCK_FEED: Final = f"SELECT {FEED_COLUMNS} FROM feed WHERE id = :feed FOR NO KEY UPDATE"  # noqa: S608
_LOCK_FEED_IF_FREE: Final = f"{_LOCK_FEED} SKIP LOCKED"
# A crash of the server empties the list of replicas until each gives its next sign of life. A replica that
# takes a lease before that is alive all the same. An instant of 0 says that it has not begun yet.
_TAKE: Final = """
    WITH alive AS (
        INSERT INTO replica (name, began_at, beat_at) VALUES (:replica, 0, clock_seconds())
        ON CONFLICT (name) DO NOTHING
    )
    INSERT INTO lease (name, feed, replica, token, began_at)
    VALUES (:name, :feed, :replica, :token, clock_seconds())
    ON CONFLICT (name) DO UPDATE SET
        replica = excluded.replica, token = excluded.token, began_at = excluded.began_at,
        progress = '', outcome = '', ended_at = NULL
"""


def take(
    db: Database,
    name: str,
    *,
    replica: str,
    wants: LeaseCondition = always,
    feed: int | None = None,
    takes_own: bool = True,
) -> LeaseResult:
    """Take a lease if it is free and wanted, in a write transaction.

    With `takes_own`, a lease of the same replica counts as free. Without it, a feed that another
    transaction changes is left alone; for a lease on no feed, its replica is notified that others want it.
    """
    row = None
    if feed is None:
        run(db, _LOCK_NAME, {"name": name})
        before = read_lease(db, name)
    else:
        locked = db.execute(_LOCK_FEED if takes_own else _LOCK_FEED_IF_FREE, {"feed": feed})
        before = read_lease(db, name)  # same round trip; it sees the changes that the lock waited for
        row = next(map(feed_row, locked), None)
        if row is None:
            return LeaseResult("", None, None)
    if before is not None and before.is_live and not (takes_own and before.replica == replica):
        if feed is None and not takes_own:
            fetch_one(db, _TELL, {"payload": f"wanted {name}"})
        return LeaseResult("", before, row)
    if wants(before, row):
        token = secrets.token_hex(8)
        run(db, _TAKE, {"name": name, "feed": feed, "replica": replica, "token": token})
        return LeaseResult(token, before, row)
    if before is not None and before.ended_seconds is None:  # a dead replica's lease that nobody wants
        run(db, _END_WELL, {"name": name, "token": before.token})
    return LeaseResult("", before, row)


def read_lease(db: Database, name: str) -> LeaseRow | None:
    return read_leases(db, [name]).get(name)


_LOOK: Final = """
    SELECT l.name, l.replica, l.token, l.progress, l.outcome,
        clock_seconds() - l.ended_at AS ended_seconds, clock_seconds() - r.beat_at AS silent_seconds
    FROM lease AS l LEFT JOIN replica AS r ON r.name = l.replica
    WHERE l.name IN (SELECT json_array_elements_text(CAST(:names AS json)))
"""


def read_leases(db: Database, names: Iterable[str]) -> dict[str, LeaseRow]:
    found = fetch_all(db, _LOOK, {"names": json.dumps(list(names))})
    return {row["name"]: LeaseRow(**{name: row[name] for name in row.keys()}) for row in found}  # noqa: SIM118 - a row


_IS_HELD: Final = "SELECT 1 FROM lease WHERE name = :name AND token = :token AND ended_at IS NULL"


def is_held(db: Database, name: str, token: str) -> bool:
    """Return whether this taking of the lease has neither ended nor been replaced."""
    return fetch_value(db, _IS_HELD, {"name": name, "token": token}) is not None


_END: Final = """
    WITH given AS (
        SELECT name, token, outcome
        FROM json_to_recordset(CAST(:ends AS json)) AS each (name text, token text, outcome text)
    ), gone AS (
        DELETE FROM lease USING given
        WHERE lease.name = given.name AND lease.token = given.token AND given.outcome = ''
        RETURNING lease.name
    ), failed AS (
        UPDATE lease SET outcome = given.outcome, ended_at = clock_seconds() FROM given
        WHERE lease.name = given.name AND lease.token = given.token AND given.outcome <> ''
        RETURNING lease.name
    )
    SELECT set_config('synchronous_commit', 'off', true), pg_notify('wholefeed', 'lease ' || name)
    FROM (SELECT name FROM gone UNION ALL SELECT name FROM failed) AS ended
"""
_END_WELL: Final = "DELETE FROM lease WHERE name = :name AND token = :token"
_TELL: Final = "SELECT pg_notify('wholefeed', :payload)"


def end(db: Database, ends: Iterable[tuple[str, str, str]]) -> None:
    """End leases, and notify waiting replicas, in one statement that may run twice.

    A lease that another replica took meanwhile stays. `ends` has name, token and outcome of each: the
    failure, or empty for success or a private failure.
    """
    given = [{"name": name, "token": token, "outcome": outcome} for name, token, outcome in ends]
    fetch_all(db, _END, {"ends": json.dumps(given)})


class Beat(NamedTuple):
    was_known: bool
    """False: the replica is new, or a crash emptied the unlogged tables."""
    lease_tokens: Mapping[str, str]
    """Tokens of its leases, by name."""
    replicas: int
    """Number of live replicas, including this one."""


_IS_KNOWN_REPLICA: Final = "SELECT 1 FROM replica WHERE name = :replica AND began_at > 0"
_BEAT_REPLICA: Final = """
    INSERT INTO replica (name, began_at, beat_at) VALUES (:replica, clock_seconds(), clock_seconds())
    ON CONFLICT (name) DO UPDATE SET
        beat_at = excluded.beat_at,
        began_at = CASE WHEN replica.began_at > 0 THEN replica.began_at ELSE excluded.began_at END
"""
_NOTE_PROGRESS: Final = "UPDATE lease SET progress = ? WHERE name = ? AND token = ?"
_HELD: Final = "SELECT name, token FROM lease WHERE replica = :replica AND ended_at IS NULL"


def beat(db: Database, replica: str, progress: Sequence[tuple[str, str, str]]) -> Beat:
    """Record a replica's sign of life and its progress: (text, lease, token)."""
    was_known = fetch_value(db, _IS_KNOWN_REPLICA, {"replica": replica}) is not None
    run(db, _BEAT_REPLICA, {"replica": replica})
    if progress:
        db.executemany(_NOTE_PROGRESS, progress)
    held = {row["name"]: row["token"] for row in fetch_all(db, _HELD, {"replica": replica})}
    return Beat(was_known, held, count_live_replicas(db))


_ORPHANS: Final = """
    SELECT feed.id FROM lease AS l JOIN feed ON feed.id = l.feed
    WHERE l.ended_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM replica AS r WHERE r.name = l.replica AND r.beat_at > clock_seconds() - :dead_seconds
    )
    ORDER BY l.began_at LIMIT :limit
"""


def list_orphans(db: Database, limit: int) -> list[int]:
    """Return the feeds of refreshes that a replica's death ended, oldest first."""
    found = fetch_all(db, _ORPHANS, {"limit": limit, "dead_seconds": DEAD_SECONDS})
    return [row["id"] for row in found]


_UNFINISHED: Final = """
    SELECT id FROM feed
    WHERE (is_walking <> 0 OR (digest IS NOT NULL AND revision <> published_revision)) AND NOT EXISTS (
        SELECT 1 FROM lease AS l JOIN replica AS r ON r.name = l.replica
        WHERE l.feed = feed.id AND l.ended_at IS NULL AND r.beat_at > clock_seconds() - :dead_seconds
    )
    ORDER BY id
"""


def list_unfinished(db: Database) -> list[int]:
    """Return the feeds with an unfinished walk and no live lease."""
    return [row["id"] for row in fetch_all(db, _UNFINISHED, {"dead_seconds": DEAD_SECONDS})]


# Lifetime of a failed lease's outcome.
_KEPT_SECONDS: Final = 120.0
_FORGET_ENDED: Final = """
    DELETE FROM lease
    WHERE ended_at < clock_seconds() - CASE WHEN name LIKE 'host:%' THEN :host_seconds ELSE :kept_seconds END
"""
_FORGET_ORPHANED: Final = """
    DELETE FROM lease AS l
    WHERE ended_at IS NULL AND began_at < clock_seconds() - :kept_seconds
        AND NOT EXISTS (SELECT 1 FROM feed WHERE feed.id = l.feed)
        AND NOT EXISTS (SELECT 1 FROM replica AS r WHERE r.name = l.replica)
"""
# Silence after which a dead replica's row is deleted.
_FORGOTTEN_SECONDS: Final = 600.0
_FORGET_DEAD_REPLICAS: Final = "DELETE FROM replica WHERE beat_at < clock_seconds() - :forgotten_seconds"


def forget_old(db: Database) -> None:
    run(db, _FORGET_ENDED, {"kept_seconds": _KEPT_SECONDS, "host_seconds": DAY_SECONDS})
    run(db, _FORGET_ORPHANED, {"kept_seconds": _KEPT_SECONDS})
    run(db, _FORGET_DEAD_REPLICAS, {"forgotten_seconds": _FORGOTTEN_SECONDS})


_BEAT_AGAIN: Final = """
    UPDATE replica SET beat_at = clock_seconds()
    WHERE name = :name AND beat_at > clock_seconds() - :dead_seconds
"""


def beat_replica_again(db: Database, name: str) -> bool:
    """Record a known replica's sign of life; return whether it is known.

    A replica that died or left stays so, since others may have its leases.
    """
    return run_counting(db, _BEAT_AGAIN, {"name": name, "dead_seconds": DEAD_SECONDS}) > 0


COUNT_LIVE: Final = f"SELECT count(*) FROM replica WHERE beat_at > clock_seconds() - {DEAD_SECONDS}"  # noqa: S608


def count_live_replicas(db: Database) -> int:
    return int(fetch_value(db, COUNT_LIVE))


_LEAVE_REPLICAS: Final = "DELETE FROM replica WHERE name = :name"


def leave_replicas(db: Database, name: str) -> None:
    """Remove an ended replica at once, which frees its leases."""
    run(db, _LEAVE_REPLICAS, {"name": name})
