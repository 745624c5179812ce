"""Carry what leaves the subscription document into memory documents (rules R7, R8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from wholefeed.core.jobs.reading import DocumentFacts
from wholefeed.core.jobs.remembering import StoredMemory, WrittenMemory, remember_copies
from wholefeed.core.jobs.rendering import Stored
from wholefeed.core.model import EntryId, FeedDocument
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.terms import MEMORY_URL, Family, Role
from wholefeed.service.documents.fresh import Fresh
from wholefeed.service.documents.parsed import ParsedDocuments
from wholefeed.service.documents.shapes import Put, stored_as
from wholefeed.service.documents.work import HELD_BYTES, Work, work_bytes
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentRow, NewDocument
from wholefeed.store.store import Store
from wholefeed.store.tables import bodies, copies, documents, identities, live


async def documents_to_remember(store: Store, work: Work, leaving: Leaving) -> list[Put]:
    """Return the memory documents to store together with the document that entries leave for.

    Args:
        store: Where the bodies are.
        work: Where they are worked on.
        leaving: What is replaced, and by what.
    """
    left = await store.read(leaving.look, feed=leaving.replaced[0].feed)
    if left is None:
        return []
    size_bytes = sum(map(_work_bytes, left.documents))
    written = await work.run(
        size_bytes, remember_copies, *left.arguments, keeps_parsed=size_bytes <= HELD_BYTES, **left.options
    )
    return leaving.puts(written)


class _Left(NamedTuple):
    """What `remember_copies` is given."""

    arguments: tuple[Stored | FeedDocument, set[EntryId], StoredMemory | None]
    options: dict[str, Any]

    @property
    def documents(self) -> list[Stored | FeedDocument]:
        """What it takes apart."""
        outgoing, _, memory = self.arguments
        return [outgoing] if memory is None else [outgoing, memory.document]


class Leaving:
    """What leaves a subscription document or page that is being replaced.

    The memory documents are detached where the new one is of another family: then every entry has left, and
    waits for the family to come back (R23).

    Args:
        rows: All documents of the feed.
        old: The stored document.
        new: What replaces it.
        now: Epoch seconds.
        parsed: What is held of documents as they were parsed.
        is_page: What leaves a page has mostly moved to another one: remember that of which no other document
            holds as good a copy.
    """

    def __init__(
        self,
        rows: Sequence[DocumentRow],
        old: DocumentRow,
        new: DocumentFacts,
        now: float,
        parsed: ParsedDocuments | None = None,
        *,
        is_page: bool = False,
    ) -> None:
        self._old, self._new, self._now, self._is_page = old, new, now, is_page
        self._is_attached = new.family is old.family
        memories = [row for row in rows if row.role is Role.MEMORY]
        usable = [row for row in memories if row.family is old.family and row.rank is not None]
        self._open = max((row for row in usable if not row.is_settled), key=_number, default=None)
        self._next_number = 1 + max((_number(row) for row in memories), default=0)
        self.replaced = [old] if self._open is None else [old, self._open]
        """What will be replaced if anything leaves."""
        is_small = sum(row.body_bytes for row in self.replaced) <= HELD_BYTES
        found = {row.id: parsed.find(row) for row in self.replaced} if parsed is not None and is_small else {}
        self._held = {number: document for number, document in found.items() if document is not None}

    @property
    def is_at_hand(self) -> bool:
        """Whether it is all held: then `documents` is for the transaction that puts them."""
        return len(self._held) == len(self.replaced)

    def documents(self, db: Database) -> list[Put]:
        """Return what `documents_to_remember` does, where all is at hand: no trip of its own is made."""
        left = self.look(db)
        if left is None:
            return []
        return self.puts(remember_copies(*left.arguments, keeps_parsed=True, **left.options))

    def look(self, db: Database) -> _Left | None:
        """Read what is needed of the documents that entries leave and come into; None: nothing leaves."""
        old, new, latest = self._old, self._new, None
        present = set(new.entries.identities()) if self._is_attached else set()
        gone = documents.identities_but(db, old.id, present)
        if self._is_page and self._is_attached:
            present |= copies.held_as_good(db, old.feed, gone, old.id)
            latest = None if old.found_by else live.subscription_updated_at(db, old.feed)
        if not any(identity not in present for identity in gone):
            return None
        memory = None
        if self._open is not None:
            dates = documents.copy_dates(db, self._open.id)
            memory = StoredMemory(_number(self._open), self._document(db, self._open), dates)
        options = {
            "ambiguous": identities.ambiguous_with(db, old.feed, new.keys, new.ambiguous),
            "fetched_at": old.fetched_at,
            "next_number": self._next_number,
            "latest": latest,
        }
        return _Left((self._document(db, old), present, memory), options)

    def _document(self, db: Database, row: DocumentRow) -> Stored | FeedDocument:
        return self._held.get(row.id) or stored_as(row, bodies.read(db, row.id))

    def puts(self, written: Sequence[WrittenMemory]) -> list[Put]:
        """Return how memory documents are put."""
        return [_put(each, self._old, self._now, is_attached=self._is_attached) for each in written]


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
