"""How large the store is in a PostgreSQL database.

What is deleted there makes room for what comes next once it has been vacuumed, and the files do not shrink:
their size says nothing of what is stored. So that is counted by its rows: the large values by their length,
which PostgreSQL knows without reading them, the others by about what they take. Every row is looked at for
that: whoever asks asks seldom, and goes on with what single feeds take.
"""

from __future__ import annotations

from typing import Final

from wholefeed.store.database import Database
from wholefeed.store.engine import Sizes
from wholefeed.store.statements import fetch_value

_FEED_BYTES: Final = 2048
_DOCUMENT_BYTES: Final = 1024
_ENTRY_BYTES: Final = 256
"""Rows with their indexes."""

_USED_BYTES: Final = f"""
    SELECT (SELECT coalesce(sum(octet_length(coded)), 0) FROM body)
        + (SELECT coalesce(sum(deflated_bytes), 0) FROM segment WHERE retired_at IS NULL)
        + (SELECT coalesce(sum({_DOCUMENT_BYTES} + {_ENTRY_BYTES} * entries), 0) FROM document)
        + (SELECT {_FEED_BYTES} * count(*) FROM feed)
"""  # noqa: S608 - numbers
_FEEDS_BYTES: Final = f"""
    SELECT {_FEED_BYTES}
        + coalesce(sum({_DOCUMENT_BYTES} + {_ENTRY_BYTES} * d.entries + octet_length(b.coded)), 0)
        + (SELECT coalesce(sum(deflated_bytes), 0) FROM segment WHERE feed = :feed AND retired_at IS NULL)
    FROM document AS d JOIN body AS b ON b.document = d.id WHERE d.feed = :feed
"""  # noqa: S608 - numbers
_FILE_BYTES: Final = "SELECT pg_database_size(current_database())"


def measure(db: Database) -> Sizes:
    """Return what the rows come to, without segments that wait to be deleted, and how large the files are."""
    return Sizes(
        used_bytes=int(fetch_value(db, _USED_BYTES)),
        file_bytes=int(fetch_value(db, _FILE_BYTES)),
        free_bytes=None,  # the volume is the server's
    )


def measure_feed(db: Database, feed: int) -> int:
    """Return how much less `measure` finds in use without a feed, by the rows of that feed alone."""
    return int(fetch_value(db, _FEEDS_BYTES, {"feed": feed}))
