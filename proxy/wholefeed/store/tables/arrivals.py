"""Documents of a walk of which nothing is stored yet: several in a few statements.

    numbers = arrivals.put(db, change, feed, documents, now)
    numbers.get(0)                  # None: the first of them is to be put by itself

Put one after the other, eight of them were two hundred and fifty times that SQLite's thread waited for its
turn (`inserting`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from wholefeed.core.terms import Role
from wholefeed.store.database import Database
from wholefeed.store.rows import NewDocument
from wholefeed.store.statements import fetch_all, inserting, run
from wholefeed.store.tables import entries
from wholefeed.store.tables.entries import Coming
from wholefeed.store.tables.incoming import coded_body, columns, packed_entries
from wholefeed.store.tables.live import Change

_MOST: Final = 16
"""Documents of one statement: what a walk gathers."""
_IF_NEW: Final = " ON CONFLICT (feed, url, role) DO NOTHING RETURNING id, url, role"


def put(
    db: Database, change: Change, feed: int, documents: Sequence[NewDocument], now: float
) -> dict[int, int]:
    """Put those of documents that are new to the feed, and take nothing but a place in it.

    Returns:
        Their numbers, by their places among the documents.
    """
    plain = dict[tuple[str, Role], int]()
    for place, document in enumerate(documents):
        if _is_plain(document):
            plain.setdefault((document.url, document.role), place)
    if len(plain) < 2 or change.has_tombstones:  # noqa: PLR2004 - one alone is put as any other
        return {}
    places, found = list(plain.values()), dict[int, int]()
    for start in range(0, len(places), _MOST):
        taken = {place: documents[place] for place in places[start : start + _MOST]}
        found |= _put(db, change, feed, taken, now)
    return found


def _is_plain(document: NewDocument) -> bool:
    """Whether its entries are new to it and have ids of their own, if it is new to the feed itself."""
    is_old = document.role in (Role.ARCHIVE, Role.PAGE)
    is_attached = document.rank is not None
    return is_old and is_attached and not (document.keys or document.ambiguous or document.tombstones)


def _put(
    db: Database, change: Change, feed: int, documents: Mapping[int, NewDocument], now: float
) -> dict[int, int]:
    rows = [columns(feed, each, now) for each in documents.values()]
    values = list(chain.from_iterable(each.values() for each in rows))
    inserted = fetch_all(db, inserting("document", ", ".join(rows[0]), len(rows)) + _IF_NEW, values)
    numbers = {(row["url"], row["role"]): int(row["id"]) for row in inserted}
    new = {at: each for at, each in documents.items() if (each.url, each.role) in numbers}
    found = {at: numbers[each.url, each.role] for at, each in new.items()}
    if new:
        bodies = [(found[at], len(each.body), coded_body(each)) for at, each in new.items()]
        sql = inserting("body", "document, length, coded", len(bodies))
        run(db, sql, list(chain.from_iterable(bodies)))
        entries.put(db, feed, [Coming(found[at], packed_entries(each), 1) for at, each in new.items()])
        change.concern_new(found.values())
        change.mark(found.values())
    return found
