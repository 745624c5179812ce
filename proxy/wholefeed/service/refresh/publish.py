"""Bring what is served of a feed up to date: segments that changed, head, state (docs/design.md#segments).

    row = await assemble(storage, state=State.COMPLETE, notes=[])

Readers are served the last publication until the new one is committed. Nothing else may change the feed's
documents meanwhile: the caller sees to that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from wholefeed.core.compose.compose import ComposedHead
from wholefeed.core.compose.deflate import TextDigest
from wholefeed.core.compose.segmenting import Build, Keep, Placed, may_be_drawn_in, plan
from wholefeed.core.formats import common_version, default_namespace, segment_separator
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.terms import Family, Role, State
from wholefeed.core.walk.endings import Ending
from wholefeed.service.refresh.rendering import Rendering
from wholefeed.service.refresh.storing import FeedStorage
from wholefeed.store.rows import DocumentRow, FeedRow, NewSegment, NoteDict, Publication, SegmentRow

_SHOWN_NOTES: Final = 100
"""Of a whole feed; its row is read for every answer."""


async def assemble(
    storage: FeedStorage,
    *,
    state: State,
    notes: Sequence[NoteDict],
    is_walking: bool = False,
    ending: Ending | None = None,
    missing: Sequence[Attempt] | None = None,
) -> FeedRow | None:
    """Publish the feed as it is stored now.

    Args:
        storage: Of the feed.
        state: What the reconstruction is.
        notes: What is to be known about it, beside what was remarked on its documents when they were read.
        is_walking: Whether the walk goes on.
        ending: Why it has ended; None leaves what is stored.
        missing: What could not be had; None leaves what is stored.

    Returns:
        The feed as published; None when it has no subscription document.
    """
    stored = await storage.material()
    if stored is None:
        return None
    rendering = Rendering(storage)
    feed, documents = stored.feed, stored.documents
    head, style = await rendering.composed(documents[0], stored.deleted, stored.held[documents[0].id])
    is_alike = style.namespace == default_namespace(feed.published_family, feed.version)  # R23
    published = {segment.id: segment for segment in stored.published if is_alike}
    rows = {row.id: row for row in documents}
    segments: list[SegmentRow | NewSegment] = []
    for step in plan([_checked(place, published, style.digest) for place in stored.places]):
        match step:
            case Keep(segment):
                segments.append(published[segment])
            case Build(members, is_mixed):
                parts = [rows[member] for member in members]
                segments.append(await rendering.segment(parts, style, stored.held, is_mixed=is_mixed))
    shown = stored.missing if missing is None else missing
    via_url = storage.fetch_url or feed.fetch_url
    publication = Publication(
        segments=[each.id if isinstance(each, SegmentRow) else each for each in segments],
        state=state,
        family=style.family,
        via_url=via_url,
        is_walking=is_walking,
        ending=None if ending is None else json.dumps(ending.as_dict()),
        missing=missing,
        head=head.text,
        head_prefixes=head.prefixes,
        context=style.digest,
        digest=_digest(head, segments, said=[state, via_url, *map(_shown, shown)], family=style.family),
        documents=sum(row.role is not Role.MEMORY for row in documents),
        entries=sum(each.entries for each in segments),
        text_bytes=len(head.text) + sum(_length(each) for each in segments),
        notes=json.dumps(_noted(notes, documents)),
        parser_version=PARSER_VERSION,
        version=common_version(style.family, style.version, {row.version for row in documents}),
    )
    published_feed = await storage.publish(publication, revision=feed.revision)
    assert published_feed is not None, "nothing else changes the documents while they are assembled"
    for each in segments:
        if isinstance(each, NewSegment) and not may_be_drawn_in(each.sealed.length):
            storage.fresh.drop(number for number in each.documents if number != documents[0].id)
    return published_feed


def _noted(notes: Sequence[NoteDict], documents: Sequence[DocumentRow]) -> list[NoteDict]:
    """As many as are worth reading; each document's own are listed with it."""
    return [*notes, *(note for document in documents for note in document.notes)][:_SHOWN_NOTES]


def _checked(place: Placed, published: dict[int, SegmentRow], context_digest: bytes) -> Placed:
    """A segment that another parser made, or that leans on another head, is not clean."""
    segment = published.get(place.segment) if place.segment is not None else None
    is_current = (
        segment is not None
        and segment.parser_version == PARSER_VERSION
        and segment.context in (None, context_digest)
    )
    return place._replace(is_clean=place.is_clean and is_current)


def _length(segment: SegmentRow | NewSegment) -> int:
    return segment.length if isinstance(segment, SegmentRow) else segment.sealed.length


def _shown(attempt: Attempt) -> str:
    return f"{attempt.url} {attempt.reason} {attempt.first_at}"


def _digest(
    head: ComposedHead, segments: Sequence[SegmentRow | NewSegment], *, said: Sequence[str], family: Family
) -> bytes:
    """Digest what a reader gets to see of the feed: the head, what is said of it, the entries."""
    digest = TextDigest()
    digest.add_text(head.text)
    digest.add_text("\0".join(said).encode())
    separator = segment_separator(family)
    for segment in segments:
        text = segment if isinstance(segment, SegmentRow) else segment.sealed
        if text.length:
            digest.add_text(separator)
            digest.add(text)
    return digest.bytes()
