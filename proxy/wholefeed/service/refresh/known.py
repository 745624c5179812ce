"""What a decision wants to know of the entries of a document: which are stored, and which copies are live."""

from __future__ import annotations

import sqlite3

from wholefeed.core.refresh.events import KnownRead
from wholefeed.core.refresh.intents import ReadKnown
from wholefeed.store.tables import copies, documents, live


def known_entries(db: sqlite3.Connection, feed: int, wanted: ReadKnown) -> KnownRead:
    """Look for the identities that a decision names."""
    known = documents.known(db, feed, wanted.identities, but=None)
    if not wanted.with_copies:
        return KnownRead(known)
    served = copies.served(db, feed, wanted.identities)
    return KnownRead(known, served, live.subscription_updated_at(db, feed))
