"""Copies of entries, for the order of a feed's entries (`wholefeed.core.compose.ordering`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from wholefeed.core.compose.ordering import OrderRow, Pair
from wholefeed.store.base import Database, ask, fetch_all, fetch_one, json_ids

_SUPERSEDED: Final = """
    SELECT 1 FROM document AS d CROSS JOIN entry AS e ON e.document = d.id AND e.is_live = 0
    WHERE d.feed = :feed AND d.rank IS NOT NULL
    LIMIT 1
"""


def are_shared(db: Database, feed: int) -> bool:
    """Return whether any entry of a feed is in more than one attached document."""
    return fetch_one(db, _SUPERSEDED, {"feed": feed}) is not None


_ROWS: Final = """
    SELECT document, ordinal, order_at, is_live FROM entry
    WHERE document IN (SELECT value FROM json_each(:documents)) AND is_live >= 0
    ORDER BY document, ordinal
"""


def read(db: Database, documents: Iterable[int]) -> list[OrderRow]:
    return ask_for(db, documents)()


def ask_for(db: Database, documents: Iterable[int]) -> Callable[[], list[OrderRow]]:
    return ask(
        db,
        _ROWS,
        {"documents": json_ids(documents)},
        lambda rows: [OrderRow(row[0], row[1], row[2], bool(row[3])) for row in rows],
    )


_PAIRS: Final = """
    SELECT own.document, own.ordinal, own.is_live, other.document, other.ordinal
    FROM entry AS own
    CROSS JOIN entry AS other
        ON other.feed = :feed AND other.identity = own.identity AND other.is_live = 1 - own.is_live
    WHERE own.document IN (SELECT value FROM json_each(:documents)) AND own.is_live >= 0
"""


def find_other_copies(db: Database, feed: int, documents: Iterable[int]) -> list[Pair]:
    rows = fetch_all(db, _PAIRS, {"feed": feed, "documents": json_ids(documents)})
    return [Pair(row[0], row[1], bool(row[2]), row[3], row[4]) for row in rows]


_SPANS: Final = """
    SELECT document, min(order_at), max(order_at) FROM entry
    WHERE document IN (SELECT value FROM json_each(:documents)) AND is_live = 1
    GROUP BY document
"""


def spans(db: Database, documents: Iterable[int]) -> dict[int, tuple[float | None, float | None]]:
    """Return the dates of the oldest and the newest live entry, by document."""
    rows = fetch_all(db, _SPANS, {"documents": json_ids(documents)})
    return {row[0]: (row[1], row[2]) for row in rows}
