"""What a decision wants to know of the entries of a document: which are stored, and which copies are live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from wholefeed.core.jobs.reading import DocumentFacts
from wholefeed.core.model import EntryId
from wholefeed.core.refresh.events import KnownRead
from wholefeed.core.refresh.intents import ReadKnown
from wholefeed.store.database import Database
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
