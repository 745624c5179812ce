"""Bring what is served of a feed up to date: segments that changed, head, state (docs/design.md#segments).

    row = await assemble(storage, state=State.COMPLETE, notes=[])

Readers are served the last publication until the new one is committed. Nothing else may change the feed's
documents meanwhile: the caller sees to that.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import ComposedHead
from wholefeed.core.compose.deflate import TextDigest
from wholefeed.core.compose.segmenting import Build, Keep, Placed, plan
from wholefeed.core.formats import default_namespace, segment_separator
from wholefeed.core.model import Tombstone
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.terms import Family, Role, State
from wholefeed.core.walk.endings import Ending
from wholefeed.service.refresh.rendering import Held, Rendering, read
from wholefeed.service.refresh.storing import FeedStorage
from wholefeed.store.rows import DocumentRow, FeedRow, NewSegment, NoteDict, Publication, SegmentRow
from wholefeed.store.tables import documents as documents_table
from wholefeed.store.tables import feeds, tombstones
from wholefeed.store.tables import segments as segments_table

_SHOWN_NOTES: Final = 100
"""Of a whole feed; its row is read for every answer."""
_READ_AHEAD_BYTES: Final = 256 * 1024
"""Of the bodies that are likely to be rendered, read before it is known which are."""


class _Stored(NamedTuple):
    """What is stored of a feed, as far as a publication is made of it; all of one moment."""

    feed: FeedRow
    revision: int
    documents: list[DocumentRow]
    """The attached ones, in output order."""
    places: list[Placed]
    """The same."""
    deleted: list[Tombstone]
    missing: tuple[Attempt, ...]
    published: tuple[SegmentRow, ...]
    held: dict[int, Held]
    """Of the subscription document, and of others that are likely to be rendered."""


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
    at_hand = storage.fresh.at_hand()
    stored = await storage.read(partial(_look, feed_id=storage.feed_id, at_hand=at_hand))
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
            case Build(members):
                parts = [rows[member] for member in members]
                segments.append(await rendering.segment(parts, style, stored.held))
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
        version=style.version,
    )
    published_feed = await storage.publish(publication, revision=stored.revision)
    assert published_feed is not None, "nothing else changes the documents while they are assembled"
    return published_feed


def _look(db: sqlite3.Connection, feed_id: int, at_hand: Mapping[int, int]) -> _Stored | None:
    """Read what a publication is made of; of what has changed, the bodies too where they are small."""
    feed = feeds.find(db, feed_id)
    revision, places = segments_table.placed(db, feed_id) if feed is not None else (0, [])
    rows = {row.id: row for row in documents_table.list_all(db, feed_id) if row.rank is not None}
    attached = [rows[place.document] for place in places]
    if feed is None or not attached or attached[0].role is not Role.SUBSCRIPTION:
        return None
    wanted, room = [attached[0].id], _READ_AHEAD_BYTES
    for place, row in zip(places, attached, strict=True):
        if (place.segment is None or not place.is_clean) and place.live_bytes and row is not attached[0]:
            room -= 0 if row.id in at_hand else row.body_bytes
            if room < 0:
                break
            wanted.append(row.id)
    published = segments_table.snapshot(db, feed_id)
    return _Stored(
        feed=feed,
        revision=revision,
        documents=attached,
        places=places,
        deleted=tombstones.counting(db, feed_id),
        missing=published.missing,
        published=published.segments,
        held=read(db, wanted, at_hand),
    )


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
