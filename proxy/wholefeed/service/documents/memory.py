"""Carry what leaves the subscription document into memory documents (rules R7, R8)."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from typing import Final

from wholefeed.core.compose.remember import MemoryDocument, OpenMemory, remember
from wholefeed.core.formats import MEDIA_TYPE
from wholefeed.core.model import FeedDocument
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.terms import MEMORY_URL, Family, Role
from wholefeed.service.documents.shapes import document_from, new_entries
from wholefeed.store.rows import DocumentRow, NewDocument
from wholefeed.store.store import Store

_XML_TYPE: Final = "application/xml; charset=utf-8"


async def documents_to_remember(
    store: Store,
    rows: list[DocumentRow],
    old: DocumentRow,
    new: FeedDocument,
    now: float,
    *,
    is_page: bool = False,
) -> list[NewDocument]:
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
    body = await store.body(old.id)
    memories = [row for row in rows if row.role is Role.MEMORY]
    usable = [row for row in memories if row.family is old.family and row.rank is not None]
    memory_row = max((row for row in usable if not row.is_settled), key=_number, default=None)
    next_number = 1 + max((_number(row) for row in memories), default=0)
    memory_body = await store.body(memory_row.id) if memory_row else b""
    dates = await store.copy_dates(memory_row.id) if memory_row else ()
    outgoing = await asyncio.to_thread(document_from, old, body)
    present = {entry.identity for entry in new.entries} if is_attached else set()
    if is_page and is_attached:
        left = [entry.identity for entry in outgoing.entries if entry.identity not in present]
        present |= (await store.known(old.feed, left, but=old.id)).keys()

    def work() -> list[NewDocument]:
        memory = None
        if memory_row is not None:
            document = document_from(memory_row, memory_body)
            memory = OpenMemory(_number(memory_row), document, dates)
        written = remember(outgoing, present, memory, fetched_at=old.fetched_at, next_number=next_number)
        return [_stored(each, outgoing, now, is_attached=is_attached) for each in written]

    return await asyncio.to_thread(work)


def _number(row: DocumentRow) -> int:
    return int(row.url.removeprefix(MEMORY_URL))


def returning(rows: list[DocumentRow], family: Family) -> dict[int, int]:
    """Return the ranks of the memory documents that come back with their family.

    Those detached when it went, at one instant; what left earlier had left for another reason (R1).
    """
    gone = [row for row in rows if row.role is Role.MEMORY and row.family is family and row.rank is None]
    last = max((row.detached_at or 0.0 for row in gone), default=0.0)
    return {row.id: -_number(row) for row in gone if row.detached_at == last}


def _stored(memory: MemoryDocument, like: FeedDocument, now: float, *, is_attached: bool) -> NewDocument:
    url = f"{MEMORY_URL}{memory.number}"
    media_type = MEDIA_TYPE[Family.JSON] if like.family is Family.JSON else _XML_TYPE
    document = parse(memory.text, url, media_type, max_depth=sys.maxsize)
    return NewDocument(
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
