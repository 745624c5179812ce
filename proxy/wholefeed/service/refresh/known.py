"""What is stored of what a decision names: entries of a document, which copies are live, a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from wholefeed.core.jobs.packed import PackedKeys
from wholefeed.core.jobs.reading import DocumentFacts
from wholefeed.core.model import EntryId
from wholefeed.core.refresh.events import KnownRead
from wholefeed.core.refresh.intents import ReadKnown
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentRow
from wholefeed.store.tables import copies, documents, identities, live

_T = TypeVar("_T")


def known_entries(
    db: Database, feed: int, wanted: ReadKnown, waiting: DocumentFacts | None = None
) -> KnownRead:
    """Look for the identities that a decision names.

    Args:
        db: The connection.
        feed: The feed.
        wanted: The identities.
        waiting: Their document. What was stored since it came may be unlike it: so its entries are looked for
            by what identifies them now, and told of by what the decision knows them by.
    """
    asked = wanted.identities
    present = _identified_now(db, feed, asked, waiting) if waiting and waiting.keys else asked
    known = _renamed(documents.known(db, feed, present, but=None), asked, present)
    if not wanted.with_copies:
        return KnownRead(known)
    served = _renamed(copies.served(db, feed, present), asked, present)
    return KnownRead(known, served, live.subscription_updated_at(db, feed))


def identified_facts(
    db: Database, feed: int, facts: DocumentFacts, own: Collection[EntryId], besides: Sequence[PackedKeys]
) -> DocumentFacts:
    """Return what was read of a document, its entries identified by what is ambiguous in the feed.

    Each entry is looked at in the connection's thread: they may be a hundred thousand.
    """
    found = identities.ambiguous_with(db, feed, facts.keys, own, besides)
    return facts if found == facts.ambiguous else facts.identified(found)


def row_of(document: StoredDocument | None, rows: Sequence[DocumentRow]) -> DocumentRow | None:
    """Return the row of a document that a decision has named, with what the store alone knows of it."""
    return next((row for row in rows if document is not None and row.id == document.id), None)


def _identified_now(
    db: Database, feed: int, asked: Sequence[EntryId], waiting: DocumentFacts
) -> Sequence[EntryId]:
    ambiguous = identities.ambiguous_with(db, feed, waiting.keys, waiting.ambiguous)
    present = list(asked)
    for ordinal, identity in waiting.keys.identities(ambiguous).items():
        present[ordinal] = identity
    return present


def _renamed(
    found: Mapping[EntryId, _T], asked: Sequence[EntryId], present: Sequence[EntryId]
) -> Mapping[EntryId, _T]:
    if asked is present:
        return found
    return {old: found[new] for old, new in zip(asked, present, strict=True) if new in found}
