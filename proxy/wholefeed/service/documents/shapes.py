"""A document in its three shapes: obtained, on a walk, in the store."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from wholefeed.core.jobs.rendering import Stored
from wholefeed.core.model import FeedDocument
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.schedule.freshness import age_seconds, is_uncacheable
from wholefeed.core.terms import Role
from wholefeed.core.walk.chain import Arrival
from wholefeed.service.documents.fresh import Fresh
from wholefeed.service.documents.source import Obtained
from wholefeed.store.rows import DocumentRow, NewDocument


class Put(NamedTuple):
    """A document that is put, as the store takes it and as it was read."""

    new: NewDocument
    fresh: Fresh


def arrival_of(url: str, obtained: Obtained, *, news: bool = True) -> Arrival:
    """Describe a document that has just been fetched to the walk.

    Args:
        url: As asked.
        obtained: The document.
        news: Whether it brought anything that was not stored; asked of pages only.
    """
    fetched, read, facts = obtained.fetched, obtained.read, obtained.read.facts
    return Arrival(
        url=url,
        final_url=fetched.final_url,
        hops=fetched.hops,
        family=facts.family,
        site_id=facts.site_id,
        links=read.navigation.links,
        digest=read.digest,
        body_bytes=len(fetched.body),
        entries=len(facts.entries),
        keys=facts.entries.dated_identities,
        news=news,
        span=read.span,
    )


def stored_as(row: DocumentRow, body: bytes) -> Stored:
    """Return a stored document for those who work on it."""
    return Stored(body, row.final_url, row.media_type)


def document_from(row: DocumentRow, body: bytes) -> FeedDocument:
    """Parse a stored body. It was within the limits when it was fetched, whatever they are now.

    Raises:
        ParseError: Only when another parser has stored it.
    """
    return stored_as(row, body).parse()


def new_document(
    url: str,
    obtained: Obtained,
    *,
    role: Role,
    rank: int | None,
    is_settled: bool = False,
    brought_news: bool = True,
    found_by: str = "",
    found_in: int = 0,
) -> Put:
    """Describe a fetched document to the store."""
    fetched, read, facts = obtained.fetched, obtained.read, obtained.read.facts
    new = NewDocument(
        url=url,
        final_url=fetched.final_url,
        role=role,
        rank=rank,
        family=facts.family,
        version=facts.version,
        site_id=facts.site_id,
        links=read.navigation.links,
        is_marked=read.navigation.is_archive,
        is_settled=is_settled,
        is_uncacheable=is_uncacheable(fetched.headers),
        brought_news=brought_news,
        body=fetched.body,
        media_type=fetched.media_type,
        digest=read.digest,
        etag=fetched.headers.get("etag"),
        last_modified=fetched.headers.get("last-modified"),
        fetched_at=fetched.fetched_at,
        updated_at=facts.updated_at,
        memento=obtained.memento,
        parser_version=PARSER_VERSION,
        entries=facts.entries,
        tombstones=facts.tombstones,
        keys=facts.keys,
        ambiguous=facts.ambiguous,
        notes=[replace(note, url=url).as_dict() for note in (*facts.notes, *read.navigation.notes)],
        marks=read.marks.written(),
        found_by=found_by,
        found_in=found_in,
        generated_at=fetched.fetched_at - age_seconds(fetched.headers) if found_by else None,
    )
    return Put(new, Fresh(read.digest, obtained.document, read.composed, read.rendered, obtained.style))
