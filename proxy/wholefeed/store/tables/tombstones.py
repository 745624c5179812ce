"""Tombstones: kept for good, whatever becomes of the documents that bore them (rule R19).

A row names the document that bears the tombstone. When its document no longer does, the row stays without
one: it has fallen out. Tombstones of detached documents do not count until these come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wholefeed.core.merge.tombstones import FALLEN_OUT, Burial, place_of
from wholefeed.core.model import EntryId, Tombstone
from wholefeed.core.terms import Role
from wholefeed.store.database import Database
from wholefeed.store.statements import fetch_all, run, run_many

_OF_DOCUMENT: Final = "SELECT identity, when_at, ref FROM tombstone WHERE document = :document"
_DELETE: Final = "DELETE FROM tombstone WHERE document = :document"
_PUT: Final = """
    INSERT INTO tombstone (feed, identity, document, when_at, ref) VALUES (?, ?, ?, ?, ?)
"""
_KEEP: Final = """
    INSERT INTO tombstone (feed, identity, document, when_at, ref) VALUES (?, ?, NULL, ?, ?)
    ON CONFLICT (feed, identity) WHERE document IS NULL
    DO UPDATE SET when_at = excluded.when_at WHERE excluded.when_at > tombstone.when_at
"""
_COUNTING: Final = """
    SELECT t.identity, t.when_at, t.ref FROM tombstone AS t LEFT JOIN document AS d ON d.id = t.document
    WHERE t.feed = :feed AND (t.document IS NULL OR d.rank IS NOT NULL)
"""
_CONTESTED: Final = """
    SELECT t.identity, t.when_at, d.role, d.rank
    FROM contested AS c
    CROSS JOIN tombstone AS t ON t.feed = :feed AND t.identity = c.identity
    LEFT JOIN document AS d ON d.id = t.document
    WHERE t.document IS NULL OR d.rank IS NOT NULL
"""


def replace(
    db: Database, feed: int, document: int, tombstones: Sequence[Tombstone], fetched_at: float
) -> None:
    """Let a document bear these; what it no longer bears has fallen out.

    No deletion lies in the future: its instant counts as at most that of the fetch.
    """
    before = fetch_all(db, _OF_DOCUMENT, {"document": document})
    borne = {each.identity for each in tombstones}
    fallen = [(feed, *row) for row in before if row["identity"] not in borne]
    run_many(db, _KEEP, fallen)
    run(db, _DELETE, {"document": document})
    rows = [(feed, t.identity, document, min(t.when_at, fetched_at), t.ref) for t in tombstones]
    run_many(db, _PUT, rows)


def release(db: Database, feed: int, document: int) -> None:
    """Keep the tombstones of a document that ceases to be the subscription document."""
    replace(db, feed, document, (), 0.0)


def counting(db: Database, feed: int) -> list[Tombstone]:
    """Return the tombstones of a feed that count."""
    rows = fetch_all(db, _COUNTING, {"feed": feed})
    return [Tombstone(EntryId(row["identity"]), row["when_at"], row["ref"]) for row in rows]


def burials(db: Database, feed: int) -> dict[bytes, list[Burial]]:
    """Return what counts against the copies of the contested identities (`Change`)."""
    found: dict[bytes, list[Burial]] = {}
    for row in fetch_all(db, _CONTESTED, {"feed": feed}):
        place = FALLEN_OUT if row["role"] is None else place_of(Role(row["role"]), row["rank"])
        found.setdefault(row["identity"], []).append(Burial(row["when_at"], place))
    return found
