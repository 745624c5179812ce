"""A document in its three shapes: obtained, on a walk, in the store."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from wholefeed.core.compose.remember import CopyDates
from wholefeed.core.merge.merge import counted_instant
from wholefeed.core.model import FeedDocument
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.schedule.freshness import is_uncacheable
from wholefeed.core.terms import Role
from wholefeed.core.walk.chain import Arrival
from wholefeed.core.walk.trails import Span
from wholefeed.service.documents.source import Obtained
from wholefeed.store.rows import DocumentRow, NewDocument, NewEntry


class Put(NamedTuple):
    """A document that is put, as the store takes it and as it was parsed."""

    new: NewDocument
    document: FeedDocument


def arrival_of(url: str, obtained: Obtained, *, news: bool = True) -> Arrival:
    """Describe a document that has just been fetched to the walk.

    Args:
        url: As asked.
        obtained: The document.
        news: Whether it brought anything that was not stored; asked of pages only.
    """
    fetched, document, navigation = obtained.fetched, obtained.document, obtained.navigation
    return Arrival(
        url=url,
        final_url=fetched.final_url,
        hops=fetched.hops,
        family=document.family,
        site_id=document.head.site_id,
        links=navigation.links,
        digest=obtained.digest,
        body_bytes=len(fetched.body),
        entries=len(document.entries),
        keys=[(entry.identity, entry.updated_at) for entry in document.entries],
        news=news,
        span=_span(document, fetched.fetched_at),
    )


def _span(document: FeedDocument, fetched_at: float) -> Span | None:
    dates = [counted_instant(entry.order_at, fetched_at) for entry in document.entries]
    counted = [at for at in dates if at is not None]
    return Span(min(counted), max(counted)) if counted else None


def document_from(row: DocumentRow, body: bytes) -> FeedDocument:
    """Parse a stored body. It was within the limits when it was fetched, whatever they are now.

    Raises:
        ParseError: Only when another parser has stored it.
    """
    return parse(body, row.final_url, row.media_type, max_depth=sys.maxsize)


def new_document(
    url: str,
    obtained: Obtained,
    *,
    role: Role,
    rank: int | None,
    is_settled: bool = False,
    brought_news: bool = True,
) -> Put:
    """Describe a fetched document to the store."""
    fetched, document, navigation = obtained.fetched, obtained.document, obtained.navigation
    new = NewDocument(
        url=url,
        final_url=fetched.final_url,
        role=role,
        rank=rank,
        family=document.family,
        site_id=document.head.site_id,
        links=navigation.links,
        is_marked=navigation.is_archive,
        is_settled=is_settled,
        is_uncacheable=is_uncacheable(fetched.headers),
        brought_news=brought_news,
        body=fetched.body,
        media_type=fetched.media_type,
        digest=obtained.digest,
        etag=fetched.headers.get("etag"),
        last_modified=fetched.headers.get("last-modified"),
        fetched_at=fetched.fetched_at,
        updated_at=document.head.updated_at,
        parser_version=PARSER_VERSION,
        entries=new_entries(document),
        tombstones=document.head.tombstones,
        notes=[replace(note, url=url).as_dict() for note in (*document.notes, *navigation.notes)],
    )
    return Put(new, document)


def new_entries(document: FeedDocument, dates: Sequence[CopyDates] = ()) -> list[NewEntry]:
    """Describe the entries of a document to the store.

    Args:
        document: As parsed.
        dates: Of remembered copies, one an entry; none: the entries' own.
    """
    own = (CopyDates(entry.updated_at, None) for entry in document.entries)
    return [
        NewEntry(
            entry.identity, at.updated_at, entry.order_at, entry.end - entry.start, at.document_updated_at
        )
        for entry, at in zip(document.entries, dates or own, strict=True)
    ]
