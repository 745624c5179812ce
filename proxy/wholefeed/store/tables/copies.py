"""What is stored of an entry beside one document: the copy that readers are served, and the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wholefeed.core.merge.merge import Copy, Dates, comparable, dates_of
from wholefeed.core.model import EntryId
from wholefeed.store.database import Database
from wholefeed.store.statements import fetch_all, fetch_one
from wholefeed.store.tables.contest import copy_of
from wholefeed.store.tables.live import COPY_COLUMNS, subscription_updated_at

_ATTACHED: Final = f"""
    SELECT {COPY_COLUMNS}
    FROM entry AS e CROSS JOIN document AS d ON d.id = e.document
    WHERE e.feed = :feed AND e.identity = :identity AND e.is_live >= 0
"""  # noqa: S608 - a constant
_SERVED: Final = f"{_ATTACHED} AND e.is_live = 1 AND d.role <> 'memory'"


def served(db: Database, feed: int, identities: Iterable[EntryId]) -> dict[EntryId, Copy]:
    """Return the live copy of each identity that has one in an attached document that is not memory."""
    rows = (fetch_one(db, _SERVED, {"feed": feed, "identity": identity}) for identity in identities)
    return {EntryId(row["identity"]): copy_of(0, row) for row in rows if row is not None}


def held_as_good(db: Database, feed: int, identities: Iterable[EntryId], document: int) -> set[EntryId]:
    """Return those of which another attached document holds a copy with dates as good as the document's."""
    latest, found = subscription_updated_at(db, feed), set[EntryId]()
    for identity in identities:
        own, others = [comparable(None, None)], list[Dates]()
        for row in fetch_all(db, _ATTACHED, {"feed": feed, "identity": identity}):
            place = own if row["document"] == document else others
            place.append(dates_of(copy_of(0, row), subscription_updated_at=latest))
        if others and max(others) >= max(own):
            found.add(identity)
    return found
