"""Carry what leaves the subscription document into memory documents (rules R7, R8)."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from typing import Final, NamedTuple

from wholefeed.core.compose.remember import CopyDates, MemoryDocument, OpenMemory, remember
from wholefeed.core.formats import MEDIA_TYPE
from wholefeed.core.model import FeedDocument
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.terms import MEMORY_URL, Family, Role
from wholefeed.service.documents.shapes import Put, document_from, new_entries
from wholefeed.service.documents.work import worked
from wholefeed.store.rows import DocumentRow, NewDocument
from wholefeed.store.store import Store
from wholefeed.store.tables import bodies, documents

_XML_TYPE: Final = "application/xml; charset=utf-8"


async def documents_to_remember(
    store: Store,
    rows: list[DocumentRow],
    old: DocumentRow,
    new: FeedDocument,
    now: float,
    *,
    is_page: bool = False,
) -> list[Put]:
    """Return the memory documents to store together with a new subscription document or page.

    They are detached where the new one is of another family: then every entry has left, and waits for the
    family to come back (R23).

    Args:
        store: Where the bodies are.
        rows: All documents of the feed.
        old: The stored document.
        new: What replaces it.
        now: Epoch seconds.
        is_page: What leaves a page has mostly moved to another one: remember what no other document holds.
    """
    is_attached = new.family is old.family
    memories = [row for row in rows if row.role is Role.MEMORY]
    usable = [row for row in memories if row.family is old.family and row.rank is not None]
    memory_row = max((row for row in usable if not row.is_settled), key=_number, default=None)
    next_number = 1 + max((_number(row) for row in memories), default=0)
    present = {entry.identity for entry in new.entries} if is_attached else set()

    def look(db: sqlite3.Connection) -> _Left | None:
        left = documents.identities_but(db, old.id, present)
        if is_page and is_attached:
            present.update(documents.known(db, old.feed, left, but=old.id))
        if not any(identity not in present for identity in left):
            return None
        body = bodies.read(db, old.id)
        if memory_row is None:
            return _Left(body)
        return _Left(body, bodies.read(db, memory_row.id), documents.copy_dates(db, memory_row.id))

    left = await store.read(look)
    if left is None:
        return []

    def work() -> list[Put]:
        memory = None
        if memory_row is not None:
            document = document_from(memory_row, left.memory_body)
            memory = OpenMemory(_number(memory_row), document, left.dates)
        outgoing = document_from(old, left.body)
        written = remember(outgoing, present, memory, fetched_at=old.fetched_at, next_number=next_number)
        return [_stored(each, outgoing, now, is_attached=is_attached) for each in written]

    return await worked(len(left.body) + len(left.memory_body), work)


class _Left(NamedTuple):
    """What is needed of the documents that entries leave and come into."""

    body: bytes
    memory_body: bytes = b""
    dates: tuple[CopyDates, ...] = ()


def _number(row: DocumentRow) -> int:
    return int(row.url.removeprefix(MEMORY_URL))


def returning(rows: list[DocumentRow], family: Family) -> dict[int, int]:
    """Return the ranks of the memory documents that come back with their family.

    Those detached when it went, at one instant; what left earlier had left for another reason (R1).
    """
    gone = [row for row in rows if row.role is Role.MEMORY and row.family is family and row.rank is None]
    last = max((row.detached_at or 0.0 for row in gone), default=0.0)
    return {row.id: -_number(row) for row in gone if row.detached_at == last}


def _stored(memory: MemoryDocument, like: FeedDocument, now: float, *, is_attached: bool) -> Put:
    url = f"{MEMORY_URL}{memory.number}"
    media_type = MEDIA_TYPE[Family.JSON] if like.family is Family.JSON else _XML_TYPE
    document = parse(memory.text, url, media_type, max_depth=sys.maxsize)
    new = NewDocument(
        url=url,
        final_url=url,
        role=Role.MEMORY,
        rank=-memory.number if is_attached else None,
        family=like.family,
        site_id=like.head.site_id,
        is_settled=memory.is_sealed,
        body=memory.text,
        media_type=media_type,
        digest=hashlib.sha256(memory.text).digest(),
        fetched_at=now,
        parser_version=PARSER_VERSION,
        entries=new_entries(document, memory.dates),
    )
    return Put(new, document)
