"""Carry what leaves the subscription document into memory documents (rules R7, R8)."""

from __future__ import annotations

from typing import NamedTuple

from wholefeed.core.jobs.reading import DocumentFacts
from wholefeed.core.jobs.remembering import StoredMemory, WrittenMemory, remember_copies
from wholefeed.core.jobs.rendering import Stored
from wholefeed.core.model import EntryId, FeedDocument
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.terms import MEMORY_URL, Family, Role
from wholefeed.service.documents.fresh import Fresh
from wholefeed.service.documents.parsed import ParsedDocuments
from wholefeed.service.documents.shapes import Put, stored_as
from wholefeed.service.documents.work import Work, work_bytes
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentRow, NewDocument
from wholefeed.store.store import Store
from wholefeed.store.tables import bodies, copies, documents, identities, live
from wholefeed.workers.pool import INLINE_BYTES


async def documents_to_remember(
    store: Store,
    work: Work,
    rows: list[DocumentRow],
    old: DocumentRow,
    new: DocumentFacts,
    now: float,
    parsed: ParsedDocuments | None = None,
    *,
    is_page: bool = False,
) -> list[Put]:
    """Return the memory documents to store together with a new subscription document or page.

    They are detached where the new one is of another family: then every entry has left, and waits for the
    family to come back (R23).

    Args:
        store: Where the bodies are.
        work: Where they are worked on.
        rows: All documents of the feed.
        old: The stored document.
        new: What replaces it.
        now: Epoch seconds.
        parsed: What is held of documents as they were parsed.
        is_page: What leaves a page has mostly moved to another one: remember that of which no other document
            holds as good a copy.
    """
    is_attached = new.family is old.family
    memories = [row for row in rows if row.role is Role.MEMORY]
    usable = [row for row in memories if row.family is old.family and row.rank is not None]
    memory_row = max((row for row in usable if not row.is_settled), key=_number, default=None)
    next_number = 1 + max((_number(row) for row in memories), default=0)
    replaced = [old] if memory_row is None else [old, memory_row]
    held: dict[int, FeedDocument | None] = {}
    if parsed is not None and sum(row.body_bytes for row in replaced) <= INLINE_BYTES:
        held = {row.id: parsed.find(row) for row in replaced}

    def look(db: Database) -> _Left | None:
        latest = None
        present = set(new.entries.identities()) if is_attached else set()
        gone = documents.identities_but(db, old.id, present)
        if is_page and is_attached:
            present |= copies.held_as_good(db, old.feed, gone, old.id)
            latest = None if old.found_by else live.subscription_updated_at(db, old.feed)
        if not any(identity not in present for identity in gone):
            return None
        outgoing = held.get(old.id) or stored_as(old, bodies.read(db, old.id))
        ambiguous = identities.ambiguous_with(db, old.feed, new.keys, new.ambiguous)
        if memory_row is None:
            return _Left(outgoing, present, ambiguous, latest)
        document = held.get(memory_row.id) or stored_as(memory_row, bodies.read(db, memory_row.id))
        memory = StoredMemory(_number(memory_row), document, documents.copy_dates(db, memory_row.id))
        return _Left(outgoing, present, ambiguous, latest, memory)

    left = await store.read(look)
    if left is None:
        return []
    size_bytes = _work_bytes(left.outgoing)
    if left.memory is not None:
        size_bytes += _work_bytes(left.memory.document)
    written = await work.run(
        size_bytes,
        remember_copies,
        left.outgoing,
        left.present,
        left.memory,
        ambiguous=left.ambiguous,
        fetched_at=old.fetched_at,
        next_number=next_number,
        latest=left.latest,
        keeps_parsed=size_bytes <= INLINE_BYTES,
    )
    if parsed is not None:
        parsed.drop(replaced)
    return [_put(each, old, now, is_attached=is_attached) for each in written]


class _Left(NamedTuple):
    """What is needed of the documents that entries leave and come into."""

    outgoing: Stored | FeedDocument
    present: set[EntryId]
    ambiguous: frozenset[EntryId]
    latest: float | None
    """The date of the outgoing document counts as at most this."""
    memory: StoredMemory | None = None


def _work_bytes(document: Stored | FeedDocument) -> int:
    return work_bytes(document.body if isinstance(document, Stored) else document.text)


def _number(row: DocumentRow) -> int:
    return int(row.url.removeprefix(MEMORY_URL))


def returning(rows: list[DocumentRow], family: Family) -> dict[int, int]:
    """Return the ranks of the memory documents that come back with their family.

    Those detached when it went, at one instant; what left earlier had left for another reason (R1).
    """
    gone = [row for row in rows if row.role is Role.MEMORY and row.family is family and row.rank is None]
    last = max((row.detached_at or 0.0 for row in gone), default=0.0)
    return {row.id: -_number(row) for row in gone if row.detached_at == last}


def _put(written: WrittenMemory, like: DocumentRow, now: float, *, is_attached: bool) -> Put:
    body, url, media_type = written.document
    new = NewDocument(
        url=url,
        final_url=url,
        role=Role.MEMORY,
        rank=-written.number if is_attached else None,
        detached_at=like.detached_at,  # a page that is of the other family has left with its own
        family=like.family,
        version=written.facts.version,
        site_id=like.site_id,
        is_settled=written.is_sealed,
        body=body,
        media_type=media_type,
        digest=written.digest,
        fetched_at=now,
        parser_version=PARSER_VERSION,
        entries=written.facts.entries,
        keys=written.facts.keys,
    )
    return Put(new, Fresh(written.digest, written.parsed))
