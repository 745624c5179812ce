"""The documents of a feed: put, found, touched, purged. One transaction a document that arrives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from wholefeed.core.compose.remember import CopyDates
from wholefeed.core.jobs.packed import PackedKeys
from wholefeed.core.model import EntryId
from wholefeed.core.terms import Role
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import StoreError
from wholefeed.store.columns import DOCUMENT_COLUMNS, document_row
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentRow, NewDocument
from wholefeed.store.statements import either, fetch_all, fetch_made, fetch_one, json_ids, run
from wholefeed.store.tables import arrivals, entries, identities, tombstones
from wholefeed.store.tables.entries import Coming
from wholefeed.store.tables.incoming import BROUGHT, coded_body, columns, packed_entries
from wholefeed.store.tables.live import Change

KEEP_DETACHED_SECONDS: Final = 90 * DAY_SECONDS
"""How long a detached document is kept."""

_ORDER: Final = """
    ORDER BY rank IS NULL, CASE role WHEN 'subscription' THEN 0 WHEN 'memory' THEN 1 ELSE 2 END, rank, id
"""
_LIST: Final = f"SELECT {DOCUMENT_COLUMNS} FROM document WHERE feed = :feed {_ORDER}"  # noqa: S608
_COPY_DATES: Final = """
    SELECT updated_at, document_updated_at FROM entry WHERE document = :document ORDER BY ordinal
"""
_LIVE_ORDINALS: Final = """
    SELECT document, ordinal FROM entry
    WHERE document IN (SELECT value FROM json_each(:documents)) AND is_live = 1
    ORDER BY document, ordinal
"""
_LIVE_COUNTS: Final = """
    SELECT document, count(*) FROM entry
    WHERE document IN (SELECT value FROM json_each(:documents)) AND is_live = 1
    GROUP BY document
"""
_SUPERSEDED: Final = """
    SELECT document.id, count(*) FROM document
    CROSS JOIN entry ON entry.document = document.id AND entry.is_live = 0
    WHERE document.feed = :feed GROUP BY document.id
"""
_DATED_ENTRIES: Final = "SELECT identity, order_at FROM entry WHERE document = :document ORDER BY ordinal"
_IDENTITIES: Final = "SELECT identity FROM entry WHERE document = :document ORDER BY ordinal"
_ASKED_AT_ONCE: Final = 256
_KNOWN: Final = f"""
    SELECT identity, max(updated_at) AS updated_at FROM entry
    WHERE feed = ? AND document IS NOT ? AND is_live >= 0 AND identity IN ({"?, " * (_ASKED_AT_ONCE - 1)}?)
    GROUP BY identity
"""  # noqa: S608 - question marks
_PLACE: Final = "SELECT id, rank, segment FROM document WHERE feed = :feed AND url = :url AND role = :role"
_PUT: Final = f"""
    INSERT INTO document (feed, detached_at, checked_at, is_dirty, live_bytes, {", ".join(BROUGHT)})
    VALUES (:feed, :detached_at, :checked_at, 0, 0, {", ".join(f":{name}" for name in BROUGHT)})
    ON CONFLICT (feed, url, role) DO UPDATE SET
        detached_at = CASE
            WHEN excluded.rank IS NULL THEN coalesce(document.detached_at, excluded.detached_at)
        END,
        checked_at = excluded.checked_at, is_dirty = 0, live_bytes = 0,
        {", ".join(f"{name} = excluded.{name}" for name in BROUGHT if name not in ("url", "role"))}
    RETURNING id
"""  # noqa: S608 - names of columns
_PUT_BODY: Final = """
    INSERT INTO body (document, length, coded) VALUES (:document, :length, :coded)
    ON CONFLICT (document) DO UPDATE SET length = excluded.length, coded = excluded.coded
"""
_DELETE_ENTRIES: Final = "DELETE FROM entry WHERE document = :document"
# Rule R8. What stands in a kept archive document is settled anyway, so only what leaves one is written down.
# Rule R33: a copy of a web archive settles nothing.
_SETTLE: Final = """
    INSERT INTO settled (feed, identity, link, enclosure, content, enclosures)
    SELECT e.feed, e.identity, k.link, k.enclosure, k.content, k.enclosures
    FROM entry AS e LEFT JOIN entry_key AS k ON k.document = e.document AND k.ordinal = e.ordinal
    WHERE e.document = :document AND (SELECT memento FROM document WHERE id = :document) = ''
    ON CONFLICT DO NOTHING
"""
_UNSETTLE: Final = """
    DELETE FROM settled WHERE feed = :feed
        AND identity IN (SELECT identity FROM entry WHERE document = :document)
"""
_UNLINK: Final = "UPDATE document SET segment = NULL WHERE id = :document"
_SHARERS_DIRTY: Final = "UPDATE document SET is_dirty = 1 WHERE segment = :segment AND id <> :document"
_EXPIRED: Final = either(
    sqlite="SELECT id, role FROM document WHERE detached_at < :before",
    # What another replica is attaching again meanwhile is no longer to be deleted.
    postgres="SELECT id, role FROM document WHERE detached_at < :before FOR UPDATE SKIP LOCKED",
)
_DELETE: Final = "DELETE FROM document WHERE id = :document"


def list_all(db: Database, feed: int) -> list[DocumentRow]:
    """Return the documents in output order (R20), the detached ones last."""
    return fetch_made(db, _LIST, {"feed": feed}, document_row)


def live_ordinals(db: Database, documents: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """Return which entries of each document are live, from the top."""
    wanted = list(documents)
    found: dict[int, list[int]] = {document: [] for document in wanted}
    for document, ordinal in fetch_all(db, _LIVE_ORDINALS, {"documents": json_ids(wanted)}):
        found[document].append(ordinal)
    return {document: tuple(ordinals) for document, ordinals in found.items()}


def live_counts(db: Database, documents: Iterable[int]) -> dict[int, int]:
    """Return how many entries of each document are live, where there are any."""
    rows = fetch_all(db, _LIVE_COUNTS, {"documents": json_ids(documents)})
    return {row[0]: row[1] for row in rows}


def superseded(db: Database, feed: int) -> dict[int, int]:
    """Return how many entries of each attached document are not live, where there are any."""
    return {row[0]: row[1] for row in fetch_all(db, _SUPERSEDED, {"feed": feed})}


def copy_dates(db: Database, document: int) -> tuple[CopyDates, ...]:
    """Return the dates of a document's copies, from the top."""
    return tuple(CopyDates(*row) for row in fetch_all(db, _COPY_DATES, {"document": document}))


def dated_entries(db: Database, document: int) -> list[tuple[EntryId, float | None]]:
    """Return the identity of each entry of a document and what the output sorts it by, from the top."""
    return [(EntryId(row[0]), row[1]) for row in fetch_all(db, _DATED_ENTRIES, {"document": document})]


def identities_but(db: Database, document: int, but: Collection[EntryId]) -> list[EntryId]:
    """Return the identities that stand in a document, from the top, but these."""
    rows = fetch_all(db, _IDENTITIES, {"document": document})
    return [EntryId(row["identity"]) for row in rows if row["identity"] not in but]


def known(
    db: Database, feed: int, identities: Sequence[EntryId], but: int | None
) -> dict[EntryId, float | None]:
    """Return the latest update instant of each identity that stands in an attached document."""
    found: dict[EntryId, float | None] = {}
    for start in range(0, len(identities), _ASKED_AT_ONCE):
        asked = identities[start : start + _ASKED_AT_ONCE]
        padding = [asked[-1]] * (_ASKED_AT_ONCE - len(asked))
        rows = db.execute(_KNOWN, (feed, but, *asked, *padding))
        found.update((EntryId(row["identity"]), row["updated_at"]) for row in rows)
    return found


def put(db: Database, feed: int, documents: Sequence[NewDocument], now: float) -> list[int]:
    """Insert or replace documents by (URL, role), and choose the live copies of their entries.

    A replaced document keeps its number. Returns the numbers, in order.
    """
    change = Change.begin(db, feed)
    new = arrivals.put(db, change, feed, documents, now)
    ids = [
        new[place] if place in new else _put_one(db, change, feed, document, now)
        for place, document in enumerate(documents)
    ]
    change.finish()
    return ids


def put_again(db: Database, feed: int, documents: Sequence[NewDocument], now: float) -> None:
    """Put stored documents as they read now; what was known of their entries stays known (R8, R9, R19).

    An entry whose identity has changed is found by its place, where the document has as many as before.
    """
    change = Change.begin(db, feed)
    for document in documents:
        place = fetch_one(db, _PLACE, {"feed": feed, "url": document.url, "role": document.role})
        before = [] if place is None else identities_but(db, place["id"], ())
        if document.role is Role.MEMORY:
            identities.note(db, change, feed, PackedKeys(), identities.proven(document.keys, before))
        number = _put_one(db, change, feed, document, now, is_same=True)
        now_named = identities_but(db, number, ())
        if len(now_named) != len(before):  # nothing tells which entry is which
            continue
        for old, new in zip(before, now_named, strict=True):
            if old != new:
                identities.carry(db, feed, old, new)
    change.finish()


def touch(db: Database, document: int, changes: Mapping[str, Any]) -> None:
    """Set columns of a document. The names are the program's own, never input."""
    if changes:
        columns = ", ".join(f"{name} = :{name}" for name in changes)
        sql = f"UPDATE document SET {columns} WHERE id = :document"  # noqa: S608
        if not run(db, sql, {**changes, "document": document}):
            raise StoreError(f"no document is stored under the number {document}")


def unlink(db: Database, document: int, segment: int | None) -> None:
    """Take a document out of its segment; whoever shares it has to be sealed anew."""
    if segment is not None:
        run(db, _SHARERS_DIRTY, {"segment": segment, "document": document})
        run(db, _UNLINK, {"document": document})


def purge(db: Database, before: float) -> int:
    """Delete the documents detached before that instant. Returns how many."""
    rows = fetch_all(db, _EXPIRED, {"before": before})
    for document, role in rows:
        if role == Role.ARCHIVE:
            run(db, _SETTLE, {"document": document})
        run(db, _DELETE, {"document": document})
    return len(rows)


def _put_one(
    db: Database,
    change: Change,
    feed: int,
    document: NewDocument,
    now: float,
    *,
    is_same: bool = False,
) -> int:
    ambiguous = identities.note(db, change, feed, document.keys, document.ambiguous)
    named = document.keys.identities(ambiguous)
    place = fetch_one(db, _PLACE, {"feed": feed, "url": document.url, "role": document.role})
    if place is not None:
        _take_out(db, change, document, place["id"], place["segment"], is_same=is_same)
    row = fetch_one(db, _PUT, columns(feed, document, now))
    assert row is not None
    number = int(row["id"])
    body = {"document": number, "length": len(document.body), "coded": coded_body(document)}
    run(db, _PUT_BODY, body)
    packed = packed_entries(document)
    packed = packed.identified(named) if named else packed
    entries.put(db, feed, [Coming(number, packed, None if document.rank is None else 1)])
    identities.put(db, feed, number, document.keys)
    change.has_tombstones = change.has_tombstones or bool(document.tombstones)
    if change.has_tombstones:
        tombstones.replace(db, feed, number, document.tombstones, document.fetched_at)
    if place is None and document.rank is not None and document.role is not Role.MEMORY:
        change.concern_new([number])
    else:
        change.concern(number)
    if document.rank is not None:
        change.mark([number])
    if place is not None and document.role is Role.ARCHIVE and not document.memento:
        run(db, _UNSETTLE, {"feed": feed, "document": number})
    return number


def _take_out(
    db: Database,
    change: Change,
    document: NewDocument,
    number: int,
    segment: int | None,
    *,
    is_same: bool,
) -> None:
    """Take the old entries of a document out, before its new ones come."""
    change.concern(number)
    if document.role is Role.ARCHIVE and not is_same:
        run(db, _SETTLE, {"document": number})
    run(db, _DELETE_ENTRIES, {"document": number})
    identities.remove(db, number)
    if document.rank is None:
        unlink(db, number, segment)
