"""Which documents a feed is made of, and in what order: attach, detach, rank (rules R15, R20, R25)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from wholefeed.core.terms import Role
from wholefeed.errors import StoreError
from wholefeed.store.database import Database
from wholefeed.store.rows import NewDocument
from wholefeed.store.statements import fetch_all, run
from wholefeed.store.tables import documents, feeds, tombstones
from wholefeed.store.tables.documents import unlink
from wholefeed.store.tables.feeds import require_known
from wholefeed.store.tables.live import Change

_PLACES: Final = "SELECT id, role, rank, segment FROM document WHERE feed = :feed"
_RANK: Final = "UPDATE document SET rank = ? WHERE id = ?"
_ATTACH: Final = "UPDATE document SET rank = :rank, detached_at = NULL WHERE id = :document"
_DETACH: Final = """
    UPDATE document SET rank = NULL, detached_at = :now, is_dirty = 0, live_bytes = 0 WHERE id = :document
"""
_SET_ENTRIES: Final = "UPDATE entry SET is_live = :is_live WHERE document = :document"
_SHARERS_DIRTY: Final = "UPDATE document SET is_dirty = 1 WHERE segment = ?"

_CLASSES: Final = {Role.SUBSCRIPTION: 0, Role.MEMORY: 1, Role.ARCHIVE: 2, Role.PAGE: 2}
"""Ranks compare within these (R10, R20)."""


class _Place(NamedTuple):
    role: Role
    rank: int | None
    segment: int | None


def arrange(db: Database, feed: int, ranks: Mapping[int, int], detached: Collection[int], now: float) -> None:
    """Give documents their ranks, attaching those that were detached, and detach others."""
    require_known(db, feed)
    before = _places(db, feed)
    _check(feed, before, ranks, detached)
    leaving = [document for document in detached if before[document].rank is not None]
    coming = [document for document in ranks if before[document].rank is None]
    moving = [
        (rank, document)
        for document, rank in ranks.items()
        if before[document].rank is not None and before[document].rank != rank
    ]
    if not (leaving or coming or moving):
        return
    change = Change.begin(db, feed)
    for document in leaving:
        _detach(db, change, document, before[document].segment, now)
        if before[document].role is Role.SUBSCRIPTION:
            tombstones.release(db, feed, document)
    for document in coming:
        _attach(db, change, document, ranks[document])
    db.executemany(_RANK, moving)
    if moving:
        _move(db, change, before, ranks, set(leaving))
    change.finish()


def _places(db: Database, feed: int) -> dict[int, _Place]:
    rows = fetch_all(db, _PLACES, {"feed": feed})
    return {row["id"]: _Place(Role(row["role"]), row["rank"], row["segment"]) for row in rows}


def _check(
    feed: int, places: Mapping[int, _Place], ranks: Mapping[int, int], detached: Collection[int]
) -> None:
    if unknown := [document for document in (*ranks, *detached) if document not in places]:
        raise StoreError(f"expected documents of feed {feed}, got {unknown}")
    if both := ranks.keys() & set(detached):
        raise StoreError(f"expected documents to be ranked or detached, got both for {sorted(both)}")


def _detach(db: Database, change: Change, document: int, segment: int | None, now: float) -> None:
    change.concern(document)
    unlink(db, document, segment)
    run(db, _DETACH, {"document": document, "now": now})
    run(db, _SET_ENTRIES, {"document": document, "is_live": None})


def _attach(db: Database, change: Change, document: int, rank: int) -> None:
    run(db, _ATTACH, {"document": document, "rank": rank})
    run(db, _SET_ENTRIES, {"document": document, "is_live": 1})
    change.concern(document)
    change.mark([document])


def _move(
    db: Database,
    change: Change,
    places: Mapping[int, _Place],
    ranks: Mapping[int, int],
    leaving: Collection[int],
) -> None:
    """Deal with the documents that stay and trade places among each other."""
    staying = [
        document for document, place in places.items() if place.rank is not None and document not in leaving
    ]
    before = {d: (_CLASSES[places[d].role], places[d].rank or 0) for d in staying}
    after = {d: (_CLASSES[places[d].role], ranks.get(d, places[d].rank or 0)) for d in staying}
    moved = moved_documents(before, after)
    if not moved:
        return
    change.concern_moved(moved)
    segments = {places[d].segment for d in moved} - {None}
    order_before = [d for d in _ordered(before) if places[d].segment in segments]
    order_after = [d for d in _ordered(after) if places[d].segment in segments]
    turned = [
        (segment,)
        for segment in segments
        if [d for d in order_before if places[d].segment == segment]
        != [d for d in order_after if places[d].segment == segment]
    ]
    db.executemany(_SHARERS_DIRTY, turned)


def moved_documents(
    before: Mapping[int, tuple[int, int]], after: Mapping[int, tuple[int, int]]
) -> Sequence[int]:
    """Return a span of the order outside of which no two documents compare differently than before.

    Args:
        before: (class, rank) of each document. Equal ones compare as equal.
        after: The same, of the same documents.
    """
    old, new = _tokens(before), _tokens(after)
    end = len(new)
    start = 0
    while start < end and old[start] == new[start]:
        start += 1
    while end > start and old[end - 1] == new[end - 1] and not new[end - 1][1]:
        end -= 1
    if start == end:
        return []
    while start and (old[start][1] or new[start][1]):  # a tie concerns the documents in front of it too
        start -= 1
    return [document for document, _ in new[start:end]]


def _tokens(places: Mapping[int, tuple[int, int]]) -> list[tuple[int, bool]]:
    """Return each document in order, and whether it compares as equal to the one in front of it."""
    order = _ordered(places)
    return [(d, at > 0 and places[d] == places[order[at - 1]]) for at, d in enumerate(order)]


def _ordered(places: Mapping[int, tuple[int, int]]) -> list[int]:
    return sorted(places, key=lambda document: (places[document], document))


def put(
    db: Database,
    feed: int,
    new: Sequence[NewDocument],
    ranks: Mapping[int, int],
    detached: Collection[int],
    changes: Mapping[str, Any],
    now: float,
) -> list[int]:
    """Put documents, and with them what changes of the chain and of the feed."""
    if ranks or detached:
        arrange(db, feed, ranks, detached, now)
    numbers = documents.put(db, feed, new, now)
    if changes:
        feeds.update(db, feed, changes)
    return numbers
