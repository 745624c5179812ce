"""Which replica does which piece of work, and which replicas are alive. On PostgreSQL alone.

A lease is one row. It is held while it has not ended and its replica is alive; one that went well is deleted,
one that failed keeps how for a while. Each taking has a token of its own, so that what an earlier one does
late means nothing. A lease on a feed changes hands under the lock of the feed's row, which every change of
the feed holds: whoever has seen in its transaction that the lease is its own commits before another has it.

    looked = take(db, feed_lease(7), feed=7, replica=own, wants=wants)
    beat(db, own, progress)                             # a sign of life, every few seconds
    end(db, [(feed_lease(7), looked.token, outcome)])

A replica is one of the processes that share the store, with its last sign of life. The database's clock
(`clock_seconds`, made by a migration) counts for all of them: theirs may differ.
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
"""After so long without a sign of life a replica is dead, and what it held is anybody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """A lease as it is stored. Seconds are told by the database's clock."""

    name: str
    replica: str
    token: str
    progress: str
    """What its holder has told of how far it is."""
    outcome: str
    """How it failed; empty while it is held."""
    ended_seconds: float | None
    """Since it has ended; None: it has not."""
    silent_seconds: float | None
    """Since the last sign of life of its replica; None: there is no such replica."""

    @property
    def is_live(self) -> bool:
        """Whether somebody is at it."""
        is_alive = self.silent_seconds is not None and self.silent_seconds < DEAD_SECONDS
        return self.ended_seconds is None and is_alive


Wants = Callable[[LeaseRow | None, FeedRow | None], bool]
"""Whether a free lease is wanted, by its row and its feed's. Asked within the transaction, perhaps twice."""


def always(before: LeaseRow | None, feed: FeedRow | None) -> bool:
    return True


class Looked(NamedTuple):
    """What came of wanting a lease."""

    token: str
    """Of its taking; empty: it was not taken."""
    before: LeaseRow | None
    """The lease as it was."""
    feed: FeedRow | None
    """None: it was forgotten, or the lease is on none."""


def feed_lease(feed: int) -> str:
    """Return the name of the lease on the refreshes of a feed."""
    return f"feed:{feed}"


_LOCK_NAME: Final = "SELECT 1 FROM (SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))) AS locked"
_LOCK_FEED: Final = f"SELECT {FEED_COLUMNS} FROM feed WHERE id = :feed FOR NO KEY UPDATE"  # noqa: S608
_LOCK_FEED_IF_FREE: Final = f"{_LOCK_FEED} SKIP LOCKED"
# After a crash of the server there is no replica until each has given its next sign of life: whoever takes
# something before that is alive all the same. An instant of 0 says that it has not begun yet.
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
    wants: Wants = always,
    feed: int | None = None,
    takes_own: bool = True,
) -> Looked:
    """Take a lease if it is free and wanted; in a transaction that writes.

    One that the replica has itself is free where it `takes_own`: begun anew. Where it does not, nobody at
    work is disturbed: a feed that another transaction is changing is left to that one; who has anything else
    is told that it is wanted.
    """
    row = None
    if feed is None:
        run(db, _LOCK_NAME, {"name": name})
        before = look(db, name)
    else:
        locked = db.execute(_LOCK_FEED if takes_own else _LOCK_FEED_IF_FREE, {"feed": feed})
        before = look(db, name)  # in the same trip; it sees what the lock has waited for
        row = next(map(feed_row, locked), None)
        if row is None:
            return Looked("", None, None)
    if before is not None and before.is_live and not (takes_own and before.replica == replica):
        if feed is None and not takes_own:
            fetch_one(db, _TELL, {"payload": f"wanted {name}"})
        return Looked("", before, row)
    if wants(before, row):
        token = secrets.token_hex(8)
        run(db, _TAKE, {"name": name, "feed": feed, "replica": replica, "token": token})
        return Looked(token, before, row)
    if before is not None and before.ended_seconds is None:  # a dead replica's: nobody is to take it up
        run(db, _END_WELL, {"name": name, "token": before.token})
    return Looked("", before, row)


def look(db: Database, name: str) -> LeaseRow | None:
    """Return a lease; None where there is none."""
    return look_all(db, [name]).get(name)


_LOOK: Final = """
    SELECT l.name, l.replica, l.token, l.progress, l.outcome,
        clock_seconds() - l.ended_at AS ended_seconds, clock_seconds() - r.beat_at AS silent_seconds
    FROM lease AS l LEFT JOIN replica AS r ON r.name = l.replica
    WHERE l.name IN (SELECT json_array_elements_text(CAST(:names AS json)))
"""


def look_all(db: Database, names: Iterable[str]) -> dict[str, LeaseRow]:
    """Return leases by name, those that there are."""
    found = fetch_all(db, _LOOK, {"names": json.dumps(list(names))})
    return {row["name"]: LeaseRow(**{name: row[name] for name in row.keys()}) for row in found}  # noqa: SIM118 - a row


_IS_HELD: Final = "SELECT 1 FROM lease WHERE name = :name AND token = :token AND ended_at IS NULL"


def is_held(db: Database, name: str, token: str) -> bool:
    """Whether that taking of a lease is the one that counts."""
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
    """Give leases back, and tell the replicas that wait; those that another has taken meanwhile stay.

    Of each there are name, token and outcome: how it failed; empty: it went well, or nobody is to know. One
    statement, which may be done twice.
    """
    given = [{"name": name, "token": token, "outcome": outcome} for name, token, outcome in ends]
    fetch_all(db, _END, {"ends": json.dumps(given)})


class Beat(NamedTuple):
    """What a replica learns with its sign of life."""

    was_known: bool
    """False: it is new, or the database has lost what is not kept for good."""
    held: Mapping[str, str]
    """The tokens of the leases that it holds, by name."""
    replicas: int
    """How many are alive, itself too."""


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
    """Give a sign of life of a replica.

    Its `progress` is how far it is with what it does: text, lease and token.
    """
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


def orphans(db: Database, limit: int) -> list[int]:
    """Return feeds whose refresh has ended with its replica, oldest first."""
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


def unfinished(db: Database) -> list[int]:
    """Return the feeds whose walk has not ended and that nobody is at."""
    return [row["id"] for row in fetch_all(db, _UNFINISHED, {"dead_seconds": DEAD_SECONDS})]


_KEPT_SECONDS: Final = 120.0
"""For so long it is known how a lease has ended that did not go well."""
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
_FORGOTTEN_SECONDS: Final = 600.0
"""After so long the row of a dead replica is deleted."""
_FORGET_DEAD_REPLICAS: Final = "DELETE FROM replica WHERE beat_at < clock_seconds() - :forgotten_seconds"


def forget_old(db: Database) -> None:
    """Delete what nobody asks for any more, of replicas too."""
    run(db, _FORGET_ENDED, {"kept_seconds": _KEPT_SECONDS, "host_seconds": DAY_SECONDS})
    run(db, _FORGET_ORPHANED, {"kept_seconds": _KEPT_SECONDS})
    run(db, _FORGET_DEAD_REPLICAS, {"forgotten_seconds": _FORGOTTEN_SECONDS})


_BEAT_AGAIN: Final = """
    UPDATE replica SET beat_at = clock_seconds()
    WHERE name = :name AND beat_at > clock_seconds() - :dead_seconds
"""


def beat_replica_again(db: Database, name: str) -> bool:
    """Give a sign of life of a replica that is known; return whether it is.

    One that has left stays away, and one that is dead stays so, however late this comes: others may have
    taken what it held.
    """
    return run_counting(db, _BEAT_AGAIN, {"name": name, "dead_seconds": DEAD_SECONDS}) > 0


COUNT_LIVE: Final = f"SELECT count(*) FROM replica WHERE beat_at > clock_seconds() - {DEAD_SECONDS}"  # noqa: S608


def count_live_replicas(db: Database) -> int:
    return int(fetch_value(db, COUNT_LIVE))


_LEAVE_REPLICAS: Final = "DELETE FROM replica WHERE name = :name"


def leave_replicas(db: Database, name: str) -> None:
    """Take a replica off at once: it has ended, and what it held is anybody's."""
    run(db, _LEAVE_REPLICAS, {"name": name})
