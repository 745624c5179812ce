"""The keys that identify entries without an id of their own (rule R9), and the ambiguous keys."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from typing import Final

from wholefeed.core.facts import PackedKeys
from wholefeed.core.merge import FORGOTTEN_REF
from wholefeed.core.model import EntryId, EntryKeys
from wholefeed.store.base import Database, fetch_all, fetch_one, run
from wholefeed.store.tables import lines
from wholefeed.store.tables.live import DocumentsChange

# A key becomes ambiguous for ever if it is the feed's own link, occurs twice in one document, or occurs on
# two items with different enclosures. An enclosure also becomes so on two items with different links:
# otherwise it would join the items once their links are ambiguous. Entries with an ambiguous key are
# identified by their next key, so identities only split, and the order of documents does not matter.
_AMBIGUOUS: Final = "SELECT key FROM ambiguous_key WHERE feed = :feed"


def read_ambiguous(db: Database, feed: int) -> frozenset[EntryId]:
    return frozenset(EntryId(row["key"]) for row in fetch_all(db, _AMBIGUOUS, {"feed": feed}))


def find_ambiguous(
    db: Database,
    feed: int,
    keys: PackedKeys,
    own: Collection[EntryId],
    beside: Iterable[PackedKeys] = (),
) -> frozenset[EntryId]:
    """Return the ambiguous keys of the feed once it contains a document.

    `own` are ambiguous by the document alone, or with the unstored documents of `beside`.
    """
    found = read_ambiguous(db, feed).union(own, _find_unlike([*beside, keys]))
    return found.union(_find_clashing(db, feed, keys, found))


_NOTE_AMBIGUOUS: Final = "INSERT INTO ambiguous_key (feed, key) VALUES (?, ?)"


def note(
    db: Database, change: DocumentsChange, feed: int, keys: PackedKeys, own: Collection[EntryId]
) -> frozenset[EntryId]:
    """Store and return the ambiguous keys, including a new document's; split stored entries by them.

    Call it before the document's entries are stored and before those they replace are removed.
    """
    before = read_ambiguous(db, feed) if change.ambiguous is None else change.ambiguous
    known = before.union(own)
    change.ambiguous = known = known.union(_find_clashing(db, feed, keys, known))
    if new := known - before:
        db.executemany(_NOTE_AMBIGUOUS, [(feed, key) for key in new])
        _split(db, change, feed, new, known)
    return known


_PUT_KEYS: Final = """
    INSERT INTO entry_key (document, ordinal, feed, link, enclosure, content, enclosures)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""


def put(db: Database, feed: int, document: int, keys: PackedKeys) -> None:
    if keys:
        rows = (
            (document, ordinal, feed, each.link, each.enclosure, each.content, each.enclosures)
            for ordinal, each in keys
        )
        db.executemany(_PUT_KEYS, rows)


_DELETE_KEYS: Final = "DELETE FROM entry_key WHERE document = :document"


def remove(db: Database, document: int) -> None:
    run(db, _DELETE_KEYS, {"document": document})


# Marks with keys are left out: they belong to another item, or have moved with the keys.
_CARRY_SETTLED: Final = """
    INSERT INTO settled (feed, identity, is_withdrawn, is_doubtful)
    SELECT feed, :identity, is_withdrawn, is_doubtful FROM settled
    WHERE feed = :feed AND identity = :before AND content IS NULL
    ON CONFLICT DO NOTHING
"""
# A removal by people stays one (I2). For a deletion by the publisher `ref` was another id, so it is dropped.
_CARRY_TOMBSTONES: Final = f"""
    INSERT INTO tombstone (feed, identity, document, when_at, ref)
    SELECT feed, :identity, CAST(NULL AS bigint), max(when_at),
        max(CASE WHEN ref = '{FORGOTTEN_REF}' THEN ref ELSE '' END)
    FROM tombstone
    WHERE feed = :feed AND identity = :before GROUP BY feed
    ON CONFLICT (feed, identity) WHERE document IS NULL
    DO UPDATE SET
        ref = CASE WHEN excluded.ref <> '' THEN excluded.ref ELSE tombstone.ref END,
        when_at = CASE WHEN excluded.when_at > tombstone.when_at THEN excluded.when_at
            ELSE tombstone.when_at END
"""  # noqa: S608 - a constant


def carry(db: Database, feed: int, before: EntryId, identity: EntryId) -> None:
    """Copy the facts of an entry to its new identity (R8, R19, P1)."""
    parameters = {"feed": feed, "before": before, "identity": identity}
    run(db, _CARRY_SETTLED, parameters)
    run(db, _CARRY_TOMBSTONES, parameters)
    lines.carry(db, feed, before, identity)


def find_proven(keys: PackedKeys, before: Sequence[EntryId]) -> frozenset[EntryId]:
    """Return links that were ambiguous when copies were remembered, by versions that did not store this."""
    return frozenset(
        each.link
        for ordinal, each in keys
        if each.link is not None
        and ordinal < len(before)
        and before[ordinal] not in (each.link, each.enclosure, each.content)
    )


# Stored entries, and settled ones of archive documents already deleted.
_UNLIKE_OF_LINK: Final = """
    SELECT 1 FROM entry_key WHERE feed = :feed AND link = :link AND enclosures <> :enclosures
    UNION ALL
    SELECT 1 FROM settled WHERE feed = :feed AND link = :link AND enclosures <> :enclosures
    LIMIT 1
"""
_UNLIKE_OF_ENCLOSURE: Final = """
    SELECT 1 FROM entry_key WHERE feed = :feed AND enclosure = :enclosure
        AND (enclosures <> :enclosures OR coalesce(link, :nothing) <> coalesce(:link, :nothing))
    UNION ALL
    SELECT 1 FROM settled WHERE feed = :feed AND enclosure = :enclosure
        AND (enclosures <> :enclosures OR coalesce(link, :nothing) <> coalesce(:link, :nothing))
    LIMIT 1
"""


def _find_clashing(db: Database, feed: int, keys: PackedKeys, known: Container[EntryId]) -> set[EntryId]:
    """Return the keys that stored, unlike items also have.

    Keys in `known` are skipped, since any number of items may have them.
    """
    found: set[EntryId] = set()
    for _, each in keys:
        if each.enclosure is None:
            continue
        item = {"feed": feed, "nothing": b"", **each._asdict()}
        for key, sql in ((each.link, _UNLIKE_OF_LINK), (each.enclosure, _UNLIKE_OF_ENCLOSURE)):
            if key is None or key in known or key in found:
                continue
            if fetch_one(db, sql, item) is not None:
                found.add(key)
    return found


def _find_unlike(documents: Iterable[PackedKeys]) -> set[EntryId]:
    files_of_link: dict[EntryId, EntryId] = {}
    item_of_file: dict[EntryId, tuple[EntryId, EntryId | None]] = {}
    found: set[EntryId] = set()
    for keys in documents:
        for _, each in keys:
            if each.enclosure is None or each.enclosures is None:
                continue
            if (
                each.link is not None
                and files_of_link.setdefault(each.link, each.enclosures) != each.enclosures
            ):
                found.add(each.link)
            item = each.enclosures, each.link
            if item_of_file.setdefault(each.enclosure, item) != item:
                found.add(each.enclosure)
    return found


_SETTLED_BEARERS: Final = """
    SELECT identity, link, enclosure, content, enclosures, is_withdrawn, is_doubtful FROM settled
    WHERE feed = :feed AND link = :key
    UNION
    SELECT identity, link, enclosure, content, enclosures, is_withdrawn, is_doubtful FROM settled
    WHERE feed = :feed AND enclosure = :key
"""
_UNSETTLE: Final = "DELETE FROM settled WHERE feed = :feed AND identity = :identity"
_SETTLE: Final = """
    INSERT INTO settled (feed, identity, link, enclosure, content, enclosures, is_withdrawn, is_doubtful)
    VALUES (:feed, :identity, :link, :enclosure, :content, :enclosures, :is_withdrawn, :is_doubtful)
    ON CONFLICT DO NOTHING
"""
_BEARERS: Final = """
    SELECT k.document, k.ordinal, k.link, k.enclosure, k.content, coalesce(e.own, e.identity) AS identity
    FROM entry_key AS k JOIN entry AS e ON e.document = k.document AND e.ordinal = k.ordinal
    WHERE k.feed = :feed AND k.{} = :key
"""
_BEARERS_OF_LINK: Final = _BEARERS.format("link")
_BEARERS_OF_ENCLOSURE: Final = _BEARERS.format("enclosure")
# In attached documents they count as live until the end of the change, like entries of a new document.
_IDENTIFY: Final = """
    UPDATE entry SET identity = :identity, own = NULL, is_live = CASE WHEN is_live >= 0 THEN 1 END
    WHERE document = :document AND ordinal = :ordinal
"""


def _split(
    db: Database, change: DocumentsChange, feed: int, keys: Collection[EntryId], known: Container[EntryId]
) -> None:
    bearers = {
        (row["document"], row["ordinal"]): row
        for key in keys
        for sql in (_BEARERS_OF_LINK, _BEARERS_OF_ENCLOSURE)
        for row in fetch_all(db, sql, {"feed": feed, "key": key})
    }
    for key in keys:
        for row in fetch_all(db, _SETTLED_BEARERS, {"feed": feed, "key": key}):
            settled = EntryKeys(row["link"], row["enclosure"], row["content"], row["enclosures"])
            identity = settled.identity(known)
            if identity != row["identity"]:
                run(db, _UNSETTLE, {"feed": feed, "identity": row["identity"]})
                mark = {"identity": identity, **settled._asdict()}
                mark |= {name: row[name] for name in ("is_withdrawn", "is_doubtful")}
                run(db, _SETTLE, {"feed": feed, **mark})
    concerned = {document for document, _ in bearers}
    for document in concerned:
        change.concern(document)
    for (document, ordinal), row in bearers.items():
        before = EntryId(row["identity"])
        identity = EntryKeys(row["link"], row["enclosure"], row["content"], None).identity(known)
        if identity != before:
            carry(db, feed, before, identity)
            run(db, _IDENTIFY, {"identity": identity, "document": document, "ordinal": ordinal})
    for document in concerned:
        change.concern(document)
        change.mark([document])
