"""What a document that is put brings to each table, as the statements take it."""

from __future__ import annotations

import json
from typing import Any, Final

from wholefeed.core.jobs.packed import PackedEntries
from wholefeed.store.rows import PUT_COLUMNS, NewDocument
from wholefeed.store.tables import bodies

BROUGHT: Final = (*PUT_COLUMNS, "body_bytes", "entries")
"""The columns of a document that are its own, whether it is new or replaces what was there."""


def columns(feed: int, document: NewDocument, now: float) -> dict[str, Any]:
    """Return the row of a document, by the names of all columns that are its own or begin with it."""
    own = {name: getattr(document, name) for name in PUT_COLUMNS} | {
        "links": json.dumps(dict(document.links)) if document.links else "{}",
        "notes": json.dumps([dict(note) for note in document.notes]) if document.notes else "[]",
        "body_bytes": len(document.body),
        "entries": len(document.entries),
    }
    return own | {
        "feed": feed,
        "detached_at": (document.detached_at or now) if document.rank is None else None,
        "checked_at": document.fetched_at,
        "is_dirty": 0,
        "live_bytes": 0,
    }


def coded_body(document: NewDocument) -> bytes:
    """Return the body of a document, encoded."""
    return bodies.encode(document.body) if document.coded is None else document.coded


def packed_entries(document: NewDocument) -> PackedEntries:
    """Return the entries of a document, identified as it was read."""
    entries = document.entries
    return entries if isinstance(entries, PackedEntries) else PackedEntries.packed(entries)
