"""The documents of a feed with their bodies and entries: reading, storing, arranging, purging.

Feed, URL and role identify a document; its number stays when another version replaces it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count, islice, repeat
from operator import add
from typing import Any, Final, NamedTuple

from wholefeed.core.facts import CopyDates, PackedEntries, PackedKeys
from wholefeed.core.merge import ComparedEntry, CopyStanding, Fullness
from wholefeed.core.model import EntryId, Role
from wholefeed.core.origins import Origin, find_origins
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import StoreError
from wholefeed.store.base import (
    Database,
    Row,
    ask,
    build_insert,
    either,
    fetch_all,
    fetch_one,
    fetch_value,
    json_ids,
    run,
    run_counting,
)
from wholefeed.store.rows import (
    DOCUMENT_COLUMNS,
    PUT_COLUMNS,
    DocumentChanges,
    DocumentRow,
    FeedChanges,
    ImportSummary,
    NewDocument,
    document_row,
    match_origins,
    match_urls,
)
from wholefeed.store.tables import feed_table, identity_table, live, posts
from wholefeed.store.tables.feed_table import require_known
from wholefeed.store.tables.live import DocumentsChange

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


# Stored documents


_ORDER: Final = """
    ORDER BY rank IS NULL, CASE role WHEN 'subscription' THEN 0 WHEN 'memory' THEN 1 ELSE 2 END, rank, id
"""
_LIST: Final = f"SELECT {DOCUMENT_COLUMNS} FROM document WHERE feed = :feed {_ORDER}"  # noqa: S608


def list_all(db: Database, feed: int) -> list[DocumentRow]:
    return ask_all(db, feed)()


def ask_all(db: Database, feed: int) -> Callable[[], list[DocumentRow]]:
    return ask(db, _LIST, {"feed": feed}, lambda rows: [document_row(row) for row in rows])


_IMPORTS: Final = f"SELECT id, rank FROM document WHERE feed = :feed AND {match_urls([Origin.IMPORT])}"  # noqa: S608
_BROUGHT_BY: Final = """
    SELECT count(DISTINCT e.identity) FROM entry AS e
    WHERE e.document IN (SELECT value FROM json_each(:documents)) AND (
        e.is_live = 1 OR (e.is_live IS NULL AND NOT EXISTS (
            SELECT 1 FROM entry AS other
            WHERE other.feed = :feed AND other.identity = e.identity AND other.is_live = 1
        ))
    )
"""


def summarise_imports(db: Database, feed: int) -> ImportSummary | None:
    rows = fetch_all(db, _IMPORTS, {"feed": feed})
    if not rows:
        return None
    brought = fetch_value(db, _BROUGHT_BY, {"feed": feed, "documents": json_ids(row["id"] for row in rows)})
    return ImportSummary(len(rows), int(brought), any(row["rank"] is not None for row in rows))


_LIVE_ORDINALS: Final = """
    SELECT document, ordinal FROM entry
    WHERE document IN (SELECT value FROM json_each(:documents)) AND is_live = 1
    ORDER BY document, ordinal
"""


def live_ordinals(db: Database, documents: Iterable[int]) -> dict[int, tuple[int, ...]]:
    wanted = list(documents)
    found: dict[int, list[int]] = {document: [] for document in wanted}
    for document, ordinal in fetch_all(db, _LIVE_ORDINALS, {"documents": json_ids(wanted)}):
        found[document].append(ordinal)
    return {document: tuple(ordinals) for document, ordinals in found.items()}


_LIVE_COUNTS: Final = """
    SELECT document, count(*) FROM entry
    WHERE document IN (SELECT value FROM json_each(:documents)) AND is_live = 1
    GROUP BY document
"""


def live_counts(db: Database, documents: Iterable[int]) -> dict[int, int]:
    rows = fetch_all(db, _LIVE_COUNTS, {"documents": json_ids(documents)})
    return {row[0]: row[1] for row in rows}


_SUPERSEDED: Final = """
    SELECT document.id, count(*) FROM document
    CROSS JOIN entry ON entry.document = document.id AND entry.is_live = 0
    WHERE document.feed = :feed GROUP BY document.id
"""


def count_superseded(db: Database, feed: int) -> dict[int, int]:
    return {row[0]: row[1] for row in fetch_all(db, _SUPERSEDED, {"feed": feed})}


_COPY_DATES: Final = """
    SELECT updated_at, document_updated_at, fullness, made_at, identity, own FROM entry
    WHERE document = :document ORDER BY ordinal
"""


def copy_dates(db: Database, document: int) -> tuple[CopyDates, ...]:
    return tuple(CopyDates(*row) for row in fetch_all(db, _COPY_DATES, {"document": document}))


_DATED_ENTRIES: Final = "SELECT identity, order_at FROM entry WHERE document = :document ORDER BY ordinal"


def dated_entries(db: Database, document: int) -> list[tuple[EntryId, float | None]]:
    return [(EntryId(row[0]), row[1]) for row in fetch_all(db, _DATED_ENTRIES, {"document": document})]


_IDENTITIES: Final = "SELECT identity FROM entry WHERE document = :document ORDER BY ordinal"


def list_identities_except(db: Database, document: int, but: Collection[EntryId]) -> list[EntryId]:
    rows = fetch_all(db, _IDENTITIES, {"document": document})
    return [EntryId(row["identity"]) for row in rows if row["identity"] not in but]


_ASKED_AT_ONCE: Final = 256


def _parts(identities: Sequence[EntryId]) -> Iterator[Sequence[EntryId]]:
    """Yield identities in parts of one size, so that one prepared statement serves all."""
    for start in range(0, len(identities), _ASKED_AT_ONCE):
        asked = identities[start : start + _ASKED_AT_ONCE]
        yield [*asked, *[asked[-1]] * (_ASKED_AT_ONCE - len(asked))]


_LASTING: Final = find_origins(lambda policy: not policy.expires)
_LISTED: Final = find_origins(lambda policy: policy.standing is CopyStanding.LISTED)
_STANDING: Final = f"""
    SELECT e.identity, max(
        CASE WHEN {match_origins(_LASTING, "d.origin")} OR (
            e.is_live = 1 AND NOT {match_origins(_LISTED, "d.origin")}
        ) THEN 1 ELSE 0 END
    ) AS is_there
    FROM entry AS e CROSS JOIN document AS d ON d.id = e.document
    WHERE e.feed = ? AND e.identity IN ({"?, " * (_ASKED_AT_ONCE - 1)}?)
    GROUP BY e.identity
"""  # noqa: S608 - question marks


def find_present(db: Database, feed: int, identities: Sequence[EntryId]) -> dict[EntryId, bool]:
    """Return the entries that the feed has or had; True for an entry in answers or from an import (I1).

    A merely listed entry (H7) gets False: any other source says more about it.
    """
    found: dict[EntryId, bool] = {}
    for asked in _parts(identities):
        found.update((EntryId(row[0]), bool(row[1])) for row in db.execute(_STANDING, (feed, *asked)))
    return found


_HOLDING: Final = f"""
    SELECT document, ordinal FROM entry
    WHERE feed = ? AND document IN (SELECT value FROM json_each(?))
        AND identity IN ({"?, " * (_ASKED_AT_ONCE - 1)}?)
"""  # noqa: S608 - question marks


def find_holders(
    db: Database, feed: int, identities: Sequence[EntryId], documents: Iterable[int]
) -> dict[int, list[int]]:
    """Return those of `documents` that contain any of these entries, with the ordinals."""
    found: dict[int, list[int]] = {}
    among = json_ids(documents)
    for asked in _parts(identities):
        for document, ordinal in db.execute(_HOLDING, (feed, among, *asked)):
            found.setdefault(document, []).append(ordinal)
    return found


_SAID: Final = """
    SELECT identity, updated_at, size, fullness FROM entry WHERE document = :document ORDER BY ordinal
"""


def list_for_comparison(db: Database, document: int) -> list[ComparedEntry]:
    return [ComparedEntry(*row) for row in fetch_all(db, _SAID, {"document": document})]


_UNKNOWN: Final = find_origins(lambda policy: not policy.makes_known)
_KNOWN: Final = f"""
    SELECT identity, max(updated_at) AS updated_at FROM entry
    WHERE feed = ? AND document <> ? AND is_live >= 0
        AND document NOT IN (SELECT id FROM document WHERE feed = ? AND {match_urls(_UNKNOWN)})
        AND identity IN ({"?, " * (_ASKED_AT_ONCE - 1)}?)
    GROUP BY identity
"""  # noqa: S608 - question marks


def find_known_dates(
    db: Database, feed: int, identities: Sequence[EntryId], but: int | None
) -> dict[EntryId, float | None]:
    """Return the latest update instant of each identity in an attached document."""
    # Imported (I1) and listed (H7) entries do not count: a walk that met one would end too soon.
    found: dict[EntryId, float | None] = {}
    for asked in _parts(identities):
        rows = db.execute(_KNOWN, (feed, but or 0, feed, *asked))
        found.update((EntryId(row["identity"]), row["updated_at"]) for row in rows)
    return found


_ON_PAGES: Final = f"""
    SELECT DISTINCT e.identity FROM entry AS e CROSS JOIN document AS d ON d.id = e.document
    WHERE e.feed = ? AND e.identity IN ({"?, " * (_ASKED_AT_ONCE - 1)}?)
        AND e.is_live >= 0 AND d.role = 'page'
"""  # noqa: S608 - question marks


def find_on_pages(db: Database, feed: int, identities: Sequence[EntryId]) -> frozenset[EntryId]:
    rows = (row for asked in _parts(identities) for row in db.execute(_ON_PAGES, (feed, *asked)))
    return frozenset(EntryId(row["identity"]) for row in rows)


# New documents


def put(db: Database, feed: int, documents: Sequence[NewDocument], now: float) -> list[int]:
    """Insert or replace documents by (URL, role), and choose the live copies of their entries.

    Return the numbers in order; a replaced document keeps its number.
    """
    change = DocumentsChange.begin(db, feed)
    new = _put_arrivals(db, change, feed, documents, now)
    ids = [
        new[place] if place in new else _put_one(db, change, feed, document, now)
        for place, document in enumerate(documents)
    ]
    change.finish()
    return ids


def put_arranged(
    db: Database,
    feed: int,
    new: Sequence[NewDocument],
    ranks: Mapping[int, int],
    detached: Collection[int],
    changes: FeedChanges,
    now: float,
) -> list[int]:
    if ranks or detached:
        arrange(db, feed, ranks, detached, now, is_withdrawn=False)
    numbers = put(db, feed, new, now)
    if changes:
        feed_table.update(db, feed, changes, is_known=True)
    return numbers


def put_again(db: Database, feed: int, documents: Sequence[NewDocument], now: float) -> None:
    """Store newly parsed versions of stored documents without losing facts of their entries (R8, R9, R19)."""
    # If the number of entries is unchanged, places match new identities to old ones.
    change = DocumentsChange.begin(db, feed)
    for each in documents:
        document = each
        place = fetch_one(db, _PLACE, {"feed": feed, "url": document.url, "role": document.role})
        before = [] if place is None else list_identities_except(db, place["id"], ())
        if document.role is Role.MEMORY:
            known = identity_table.note(
                db, change, feed, PackedKeys(), identity_table.find_proven(document.keys, before)
            )
            entries = _packed_entries(document)
            if len(entries) == len(before):  # ambiguous ids were not used then, either
                named = entries.identities()
                kept = {at: before[at] for at, each in enumerate(named) if each in known}
                document = replace(document, entries=entries.identify(kept))
        elif place is not None and len(document.entries) == len(before):
            were = enumerate(list_for_comparison(db, place["id"]))
            cut = [ordinal for ordinal, was in were if was.fullness == Fullness.CUT]
            document = replace(document, entries=_packed_entries(document).cut(cut))
        number = _put_one(db, change, feed, document, now, is_same=True)
        now_named = list_identities_except(db, number, ())
        if len(now_named) != len(before):  # entries cannot be matched
            continue
        for old, new in zip(before, now_named, strict=True):
            if old != new:
                identity_table.carry(db, feed, old, new)
    change.finish()


def touch(db: Database, document: int, changes: DocumentChanges) -> None:
    if changes:
        # The program, not a publisher, names the columns.
        columns = ", ".join(f"{name} = :{name}" for name in changes)
        sql = f"UPDATE document SET {columns} WHERE id = :document"  # noqa: S608
        if not run_counting(db, sql, {**changes, "document": document}):
            raise StoreError(f"no document is stored under the number {document}")


_PLACE: Final = "SELECT id, rank, segment FROM document WHERE feed = :feed AND url = :url AND role = :role"
_BROUGHT: Final = (*PUT_COLUMNS, "body_bytes", "entries")
_PUT: Final = f"""
    INSERT INTO document (feed, detached_at, checked_at, is_dirty, live_bytes, {", ".join(_BROUGHT)})
    VALUES (:feed, :detached_at, :checked_at, 0, 0, {", ".join(f":{name}" for name in _BROUGHT)})
    ON CONFLICT (feed, url, role) DO UPDATE SET
        detached_at = CASE
            WHEN excluded.rank IS NULL THEN coalesce(document.detached_at, excluded.detached_at)
        END,
        checked_at = excluded.checked_at, is_dirty = 0, live_bytes = 0,
        {", ".join(f"{name} = excluded.{name}" for name in _BROUGHT if name not in ("url", "role"))}
    RETURNING id
"""  # noqa: S608 - names of columns
_PUT_BODY: Final = """
    INSERT INTO body (document, length, coded) VALUES (:document, :length, :coded)
    ON CONFLICT (document) DO UPDATE SET length = excluded.length, coded = excluded.coded
"""


def _put_one(
    db: Database,
    change: DocumentsChange,
    feed: int,
    document: NewDocument,
    now: float,
    *,
    is_same: bool = False,
) -> int:
    asked_place = db.execute(_PLACE, {"feed": feed, "url": document.url, "role": document.role})
    ambiguous = identity_table.note(db, change, feed, document.keys, document.ambiguous)
    named = document.keys.identities(ambiguous)
    place = next(iter(asked_place), None)
    were_full = frozenset[EntryId]()
    if place is not None:
        if document.role is Role.ARCHIVE and place["rank"] is not None and not is_same:
            were_full = _full_identities(db, place["id"])  # to notice entries that the archive shortens
        _take_out(db, change, document, place, is_same=is_same)
    row = fetch_one(db, _PUT, _document_row(feed, document, now))
    assert row is not None
    number = int(row["id"])
    body = {"document": number, "length": len(document.body), "coded": _encode_new_body(document)}
    run(db, _PUT_BODY, body)
    packed, own, names = _named_entries(db, change, feed, document, named)
    _put_entries(db, feed, [_EntriesToPut(number, packed, None if document.rank is None else 1)])
    identity_table.put(db, feed, number, document.keys)
    _put_traits(db, change, feed, [(document, packed)])
    pairs = {each: names[each] for each in document.pairs if each in names}
    if own:
        is_used = document.origin.policy.shows_ids
        posts.put(db, change, feed, number, own, pairs, now=now, is_used=is_used)
    if change.has_renamed and document.role is Role.SUBSCRIPTION and not is_same:
        by_itself = {own.get(ordinal, each) for ordinal, each in enumerate(packed.identities())}
        known = len(by_itself) - len(document.traits.keys() - own.keys())
        posts.look(db, change, feed, by_itself, names, pairs, known=known, now=now)
    change.has_tombstones = change.has_tombstones or bool(document.tombstones)
    if change.has_tombstones:
        live.replace_tombstones(db, feed, number, document.tombstones, document.fetched_at)
    if place is None and document.rank is not None and document.role is not Role.MEMORY:
        change.concern_new([number])
    else:
        change.concern(number)
    if document.rank is not None:
        change.mark([number])
        change.hold([number])
        if were_full and (
            shortened := were_full.intersection(packed.identities()) - _full_identities(db, number)
        ):
            change.believe(shortened)
    return number


def _named_entries(
    db: Database, change: DocumentsChange, feed: int, document: NewDocument, named: Mapping[int, EntryId]
) -> tuple[PackedEntries, dict[int, EntryId], dict[EntryId, EntryId]]:
    """Return a document's entries under the identities of their posts (R36).

    With them, where they differ: an entry's own identity by ordinal, and the post's by own identity. `named`
    has the identities of entries without an id (R9).
    """
    packed = _packed_entries(document)
    if not (change.has_renamed or document.own):
        return (packed.identify(named) if named else packed), {}, {}
    packed = packed.identify({**document.own, **named})
    ids = list(packed.identities())
    pairs = {each: post for each, post in document.pairs.items() if each in ids}
    if document.role is Role.MEMORY:  # memory keeps its old identities
        before = list(_packed_entries(document).identities())
        pairs = {ids[at]: before[at] for at, each in document.own.items() if ids[at] == each}
    names = posts.settle(db, change, feed, ids, pairs, is_memory=document.role is Role.MEMORY)
    own = {ordinal: each for ordinal, each in enumerate(ids) if each in names}
    return packed.identify({ordinal: names[each] for ordinal, each in own.items()}), own, names


def _put_traits(
    db: Database, change: DocumentsChange, feed: int, documents: Iterable[tuple[NewDocument, PackedEntries]]
) -> None:
    """Store the traits of entries that are new to the feed (R36)."""
    for document, packed in documents:
        if not document.traits:
            continue
        # In a feed with unstable ids, posts known under other ids are left out.
        is_unstable = change.renaming_looks >= posts.UNSTABLE_LOOKS
        ambiguous = document.ambiguous if change.ambiguous is None else change.ambiguous
        named = list(packed.identities())
        found = [
            (named[ordinal], traits.without_link(ambiguous))
            for ordinal, traits in document.traits.items()
            if not (is_unstable and ordinal in document.own)
        ]
        posts.put_traits(db, feed, found)


_FULL_IDENTITIES: Final = "SELECT identity FROM entry WHERE document = :document AND fullness = 2"


def _full_identities(db: Database, document: int) -> frozenset[EntryId]:
    rows = fetch_all(db, _FULL_IDENTITIES, {"document": document})
    return frozenset(EntryId(row["identity"]) for row in rows)


_DELETE_ENTRIES: Final = "DELETE FROM entry WHERE document = :document"


def _take_out(
    db: Database,
    change: DocumentsChange,
    document: NewDocument,
    place: Row,
    *,
    is_same: bool,
) -> None:
    number: int = place["id"]
    change.concern(number)
    if document.role is Role.ARCHIVE and place["rank"] is not None and not is_same:
        change.withdraw(number, is_doubtful=document.is_doubtful)
    run(db, _DELETE_ENTRIES, {"document": number})
    identity_table.remove(db, number)
    if document.rank is None:
        _unlink(db, number, place["segment"])


_UNLINK: Final = "UPDATE document SET segment = NULL WHERE id = :document"
_SHARERS_DIRTY: Final = "UPDATE document SET is_dirty = 1 WHERE segment = :segment AND id <> :document"


def _unlink(db: Database, document: int, segment: int | None) -> None:
    # The other documents of the segment must be sealed again.
    if segment is not None:
        run(db, _SHARERS_DIRTY, {"segment": segment, "document": document})
        run(db, _UNLINK, {"document": document})


def _document_row(feed: int, document: NewDocument, now: float) -> dict[str, Any]:
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


def _packed_entries(document: NewDocument) -> PackedEntries:
    entries = document.entries
    return entries if isinstance(entries, PackedEntries) else PackedEntries.pack(entries)


_MOST_DOCUMENTS: Final = 16
_IF_NEW: Final = " ON CONFLICT (feed, url, role) DO NOTHING RETURNING id, url, role"


def _put_arrivals(
    db: Database, change: DocumentsChange, feed: int, documents: Sequence[NewDocument], now: float
) -> dict[int, int]:
    """Store plain, new documents together; return their numbers, by their places in `documents`."""
    # One by one, eight documents made SQLite's thread wait for its turn 250 times.
    plain = dict[tuple[str, Role], int]()
    for place, document in enumerate(documents):
        if _is_plain(document):
            plain.setdefault((document.url, document.role), place)
    if len(plain) < 2 or change.has_tombstones or change.has_renamed:  # noqa: PLR2004 - a single one gains nothing
        return {}
    places, found = list(plain.values()), dict[int, int]()
    for start in range(0, len(places), _MOST_DOCUMENTS):
        taken = {place: documents[place] for place in places[start : start + _MOST_DOCUMENTS]}
        found |= _put_arrived(db, change, feed, taken, now)
    return found


def _is_plain(document: NewDocument) -> bool:
    """Return whether the document, if new to the feed, has only new entries with ids of their own."""
    is_old = document.role in (Role.ARCHIVE, Role.PAGE)
    is_attached = document.rank is not None
    return (
        is_old
        and is_attached
        and not (document.keys or document.ambiguous or document.tombstones or document.own)
    )


def _put_arrived(
    db: Database, change: DocumentsChange, feed: int, documents: Mapping[int, NewDocument], now: float
) -> dict[int, int]:
    rows = [_document_row(feed, each, now) for each in documents.values()]
    values = list(chain.from_iterable(each.values() for each in rows))
    inserted = fetch_all(db, build_insert("document", ", ".join(rows[0]), len(rows)) + _IF_NEW, values)
    numbers = {(row["url"], row["role"]): int(row["id"]) for row in inserted}
    new = {at: each for at, each in documents.items() if (each.url, each.role) in numbers}
    found = {at: numbers[each.url, each.role] for at, each in new.items()}
    if new:
        bodies = [(found[at], len(each.body), _encode_new_body(each)) for at, each in new.items()]
        sql = build_insert("body", "document, length, coded", len(bodies))
        run(db, sql, list(chain.from_iterable(bodies)))
        _put_entries(
            db, feed, [_EntriesToPut(found[at], _packed_entries(each), 1) for at, each in new.items()]
        )
        _put_traits(db, change, feed, [(each, _packed_entries(each)) for each in new.values()])
        change.concern_new(found.values())
        change.mark(found.values())
        change.hold(found.values())
    return found


# Rows of one statement, about half a millisecond of work for SQLite.
_MOST_ENTRIES: Final = 256
_ENTRY_COLUMNS: Final = (
    "document, feed, is_live, ordinal, "
    "identity, updated_at, order_at, document_updated_at, made_at, size, fullness"
)
_ENTRY_VALUES: Final = "?, ?, ?, ?, ?, {0}, {0}, {0}, {0}, ?, ?"


class _EntriesToPut(NamedTuple):
    document: int
    entries: PackedEntries
    is_live: int | None


def _put_entries(db: Database, feed: int, documents: Sequence[_EntriesToPut]) -> None:
    rows = chain.from_iterable(_entry_rows(feed, each) for each in documents)
    left = sum(len(each.entries) for each in documents)
    while left:
        # One row a statement made SQLite's thread wait for its turn a hundred times a document. A power of
        # two, so that there are few statements to prepare.
        taken = min(_MOST_ENTRIES, 1 << (left.bit_length() - 1))
        run(db, _entry_statement(taken), list(chain.from_iterable(islice(rows, taken))))
        left -= taken


def _entry_rows(feed: int, coming: _EntriesToPut) -> Iterator[tuple[object, ...]]:
    document, entries, is_live = coming
    places: Iterable[tuple[object, ...]] = zip(
        repeat(document), repeat(feed), repeat(is_live), count(), strict=False
    )
    return map(add, places, entries.records())


@cache
def _entry_statement(rows: int) -> str:
    return either(
        # SQLite stores NaN as NULL (https://www.sqlite.org/floatingpoint.html).
        sqlite=build_insert("entry", _ENTRY_COLUMNS, rows),
        postgres=build_insert("entry", _ENTRY_COLUMNS, rows, _ENTRY_VALUES.format("nullif(?, 'NaN')")),
    )


# Bodies as fetched, compressed: the source of truth


def _encode_new_body(document: NewDocument) -> bytes:
    return encode_body(document.body) if document.coded is None else document.coded


# Level 3 compresses Atom text to 28.7 % at 251 MB/s; level 2 of isal to 34.9 %. Bodies stay forever, so size
# counts (`benchmarks/deflate.py`).
_ZSTD_LEVEL: Final = 3
_ZSTD_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: _ZSTD_LEVEL,
    zstd.CompressionParameter.checksum_flag: 1,
}
# Largest body for a reused compressor. A new one takes twice the time of compressing 12 KB;
# one for larger bodies needs megabytes.
_SMALL_BYTES: Final = 1 << 18
_idle_compressors: Final[list[zstd.ZstdCompressor]] = []


def encode_body(body: bytes) -> bytes:
    if len(body) > _SMALL_BYTES:
        return zstd.compress(body, options=_ZSTD_OPTIONS)
    try:
        compressor = _idle_compressors.pop()
    except IndexError:
        compressor = zstd.ZstdCompressor(options=_ZSTD_OPTIONS)
    coded = compressor.compress(body, zstd.ZstdCompressor.FLUSH_FRAME)
    _idle_compressors.append(compressor)
    return coded


_GET_MEDIA_TYPE: Final = "SELECT media_type FROM document WHERE id = :document"


def read_media_type(db: Database, document: int) -> str:
    return str(fetch_value(db, _GET_MEDIA_TYPE, {"document": document}))


_GET_BODY: Final = "SELECT length, coded FROM body WHERE document = :document"


def read_body(db: Database, document: int) -> bytes:
    return read_encoded(db, document).decode()


class EncodedBody(NamedTuple):
    coded: bytes
    length: int

    def decode(self) -> bytes:
        return _decode_body(self.coded, self.length)


def read_encoded(db: Database, document: int) -> EncodedBody:
    """Return a document's body without decoding it, since callers may have many in memory."""
    row = fetch_one(db, _GET_BODY, {"document": document})
    if row is None:
        raise StoreError(f"no body is stored for document {document}")
    return EncodedBody(row["coded"], row["length"])


def _decode_body(coded: bytes, length: int) -> bytes:
    try:
        body = zstd.decompress(coded)
    except zstd.ZstdError as exc:
        raise StoreError(f"a stored body is damaged: {exc}") from exc
    if len(body) != length:
        raise StoreError(f"a stored body is damaged: expected {length} bytes, got {len(body)}")
    return body


# The documents of a feed and their order (rules R15, R20, R25)


_RANK: Final = "UPDATE document SET rank = ? WHERE id = ?"


def arrange(
    db: Database,
    feed: int,
    ranks: Mapping[int, int],
    detached: Collection[int],
    now: float,
    *,
    is_withdrawn: bool,
) -> None:
    """Give documents their ranks, attaching detached ones, and detach others.

    If `is_withdrawn`, the publisher removed those from its chain, which settles their entries (R8).
    """
    require_known(db, feed)
    before = _places_of(db, feed)
    _check_arrangement(feed, before, ranks, detached)
    leaving = [document for document in detached if before[document].rank is not None]
    coming = [document for document in ranks if before[document].rank is None]
    moving = [
        (rank, document)
        for document, rank in ranks.items()
        if before[document].rank is not None and before[document].rank != rank
    ]
    if not (leaving or coming or moving):
        return
    change = DocumentsChange.begin(db, feed)
    for document in leaving:
        _detach(db, change, document, before[document].segment, now)
        if is_withdrawn and before[document].role is Role.ARCHIVE:
            change.withdraw(document)
        if before[document].role is Role.SUBSCRIPTION:
            live.replace_tombstones(db, feed, document, (), now)
    for document in coming:
        _attach(db, change, document, ranks[document])
    db.executemany(_RANK, moving)
    if moving:
        _move(db, change, before, ranks, set(leaving))
    change.finish()


_PLACES: Final = "SELECT id, role, rank, segment FROM document WHERE feed = :feed"


class _DocumentPlace(NamedTuple):
    role: Role
    rank: int | None
    segment: int | None


def _places_of(db: Database, feed: int) -> dict[int, _DocumentPlace]:
    rows = fetch_all(db, _PLACES, {"feed": feed})
    return {row["id"]: _DocumentPlace(Role(row["role"]), row["rank"], row["segment"]) for row in rows}


def _check_arrangement(
    feed: int, places: Mapping[int, _DocumentPlace], ranks: Mapping[int, int], detached: Collection[int]
) -> None:
    if unknown := [document for document in (*ranks, *detached) if document not in places]:
        raise StoreError(f"expected documents of feed {feed}, got {unknown}")
    if both := ranks.keys() & set(detached):
        raise StoreError(f"expected documents to be ranked or detached, got both for {sorted(both)}")


_DETACH: Final = """
    UPDATE document SET rank = NULL, detached_at = :now, is_dirty = 0, live_bytes = 0 WHERE id = :document
"""
_SET_ENTRIES: Final = "UPDATE entry SET is_live = :is_live WHERE document = :document"


def _detach(db: Database, change: DocumentsChange, document: int, segment: int | None, now: float) -> None:
    change.concern(document)
    _unlink(db, document, segment)
    run(db, _DETACH, {"document": document, "now": now})
    run(db, _SET_ENTRIES, {"document": document, "is_live": None})


_ATTACH: Final = "UPDATE document SET rank = :rank, detached_at = NULL WHERE id = :document"


def _attach(db: Database, change: DocumentsChange, document: int, rank: int) -> None:
    run(db, _ATTACH, {"document": document, "rank": rank})
    run(db, _SET_ENTRIES, {"document": document, "is_live": 1})
    change.concern(document)
    change.mark([document])
    change.hold([document])


# Groups of roles within which ranks compare (R10, R20).
_CLASSES: Final = {Role.SUBSCRIPTION: 0, Role.MEMORY: 1, Role.ARCHIVE: 2, Role.PAGE: 2}
_SEGMENT_DIRTY: Final = "UPDATE document SET is_dirty = 1 WHERE segment = ?"


def _move(
    db: Database,
    change: DocumentsChange,
    places: Mapping[int, _DocumentPlace],
    ranks: Mapping[int, int],
    leaving: Collection[int],
) -> None:
    staying = [
        document for document, place in places.items() if place.rank is not None and document not in leaving
    ]
    before = {d: (_CLASSES[places[d].role], places[d].rank or 0) for d in staying}
    after = {d: (_CLASSES[places[d].role], ranks.get(d, places[d].rank or 0)) for d in staying}
    moved = moved_documents(before, after)
    if not moved:
        return
    change.concern_moved(moved)
    old, new = _in_segments(before, places), _in_segments(after, places)
    turned = [(segment,) for segment, order in new.items() if order != old[segment]]
    db.executemany(_SEGMENT_DIRTY, turned)


def _in_segments(
    order: Mapping[int, tuple[int, int]], places: Mapping[int, _DocumentPlace]
) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for document in _sort_places(order):
        if (segment := places[document].segment) is not None:
            found.setdefault(segment, []).append(document)
    return found


def moved_documents(
    before: Mapping[int, tuple[int, int]], after: Mapping[int, tuple[int, int]]
) -> Sequence[int]:
    """Return a run of the order that covers every pair of documents with a changed comparison.

    `before` and `after` have the (class, rank) of the same documents; equal ones compare as equal.
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
    while start and (old[start][1] or new[start][1]):  # a tie also concerns the document before it
        start -= 1
    return [document for document, _ in new[start:end]]


def _tokens(places: Mapping[int, tuple[int, int]]) -> list[tuple[int, bool]]:
    order = _sort_places(places)
    return [(d, at > 0 and places[d] == places[order[at - 1]]) for at, d in enumerate(order)]


def _sort_places(places: Mapping[int, tuple[int, int]]) -> list[int]:
    return sorted(places, key=lambda document: (places[document], document))


# Expired documents


KEEP_DETACHED_SECONDS: Final = 90 * DAY_SECONDS
"""Lifetime of a detached document. An imported one (I1) stays until its owner removes it."""
_EXPIRES: Final = match_origins(find_origins(lambda policy: policy.expires))
_EXPIRED: Final = either(
    sqlite=f"SELECT id, feed FROM document WHERE detached_at < :before AND {_EXPIRES}",  # noqa: S608
    # A locked row may be one that another replica is attaching again.
    postgres=f"""
        SELECT id, feed FROM document WHERE detached_at < :before AND {_EXPIRES} FOR UPDATE SKIP LOCKED
    """,  # noqa: S608
)
_DELETE: Final = "DELETE FROM document WHERE id = :document"


def remove(db: Database, feed: int, documents: Sequence[int], now: float) -> None:
    arrange(db, feed, {}, documents, now, is_withdrawn=False)
    for document in documents:
        run(db, _DELETE, {"document": document})


def purge(db: Database, before: float) -> int:
    rows = fetch_all(db, _EXPIRED, {"before": before})
    for document, _ in rows:
        run(db, _DELETE, {"document": document})
    for feed in {feed for _, feed in rows}:
        posts.purge(db, feed)
    return len(rows)
