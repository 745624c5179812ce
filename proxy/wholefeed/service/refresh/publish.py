"""Bring what is served of a feed up to date: segments that changed, head, state (docs/design.md#segments).

    row = await assemble(storage, state=State.COMPLETE, notes=[], large=large)

Readers are served the last publication until the new one is committed. Nothing else may change the feed's
documents meanwhile: the caller sees to that.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import ComposedHead, compose_head, newest_first
from wholefeed.core.compose.deflate import seal
from wholefeed.core.compose.segmenting import Build, Keep, Placed, plan
from wholefeed.core.formats import SEPARATOR, default_namespace, segment_end
from wholefeed.core.model import FeedDocument, HeadContext, Tombstone
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.terms import Family, Role, State
from wholefeed.core.verbatim.fragments import prefixes_in
from wholefeed.core.verbatim.fragments_of import fragments_of
from wholefeed.core.walk.endings import Ending
from wholefeed.fetch.budget import LargeWork
from wholefeed.service.documents.shapes import document_from
from wholefeed.service.documents.work import worked
from wholefeed.service.refresh.storing import FeedStorage
from wholefeed.store.rows import DocumentRow, FeedRow, NewSegment, NoteDict, Publication, SegmentRow, Snapshot
from wholefeed.store.tables import bodies, feeds, tombstones
from wholefeed.store.tables import documents as documents_table
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
    published: Snapshot
    held: dict[int, _Held]
    """Of the subscription document, and of others that are likely to be rendered."""


class _Held(NamedTuple):
    """What is needed to render a document."""

    body: bytes | None
    """None: the document is in memory."""
    live: tuple[int, ...]


class _Part(NamedTuple):
    """One document's share of a segment."""

    row: DocumentRow
    document: FeedDocument | None
    """As it was parsed when it came, if that is in memory still."""
    held: _Held

    def parsed(self) -> FeedDocument:
        if self.document is not None:
            return self.document
        assert self.held.body is not None, "what is not in memory was read"
        return document_from(self.row, self.held.body)


@dataclass(slots=True)
class _Rendered:
    fragments: list[bytes] = field(default_factory=list)
    entries: int = 0
    dates: list[float] = field(default_factory=list)
    prefixes: int = 0
    """Mask of the well-known prefixes that may occur."""
    needs_context: bool = False


async def assemble(
    storage: FeedStorage,
    *,
    state: State,
    notes: Sequence[NoteDict],
    large: LargeWork,
    is_walking: bool = False,
    ending: Ending | None = None,
    missing: Sequence[Attempt] | None = None,
) -> FeedRow | None:
    """Publish the feed as it is stored now.

    Args:
        storage: Of the feed.
        state: What the reconstruction is.
        notes: What is to be known about it, beside what was remarked on its documents when they were read.
        large: Gives turns at large documents.
        is_walking: Whether the walk goes on.
        ending: Why it has ended; None leaves what is stored.
        missing: What could not be had; None leaves what is stored.

    Returns:
        The feed as published; None when it has no subscription document.
    """
    stored = await storage.read(
        partial(_look, feed_id=storage.feed_id, fresh=frozenset(storage.fresh.numbers))
    )
    if stored is None:
        return None
    feed, documents = stored.feed, stored.documents
    subscription = _part(storage, documents[0], stored.held[documents[0].id])
    async with large.turn(documents[0].body_bytes):
        head, style = await worked(documents[0].body_bytes, _head, subscription.parsed, stored.deleted)
    is_alike = style.serves(stored.published.feed)
    published = {segment.id: segment for segment in stored.published.segments if is_alike}
    rows = {row.id: row for row in documents}
    segments: list[SegmentRow | NewSegment] = []
    for step in plan([_checked(place, published, style.digest) for place in stored.places]):
        match step:
            case Keep(segment):
                segments.append(published[segment])
            case Build(members):
                size_bytes = sum(rows[member].body_bytes for member in members)
                async with large.turn(size_bytes):
                    parts = await _parts(storage, [rows[member] for member in members], stored.held)
                    segments.append(await worked(size_bytes, _render_segment, parts, style))
                    del parts
    shown = stored.missing if missing is None else missing
    publication = Publication(
        segments=[each.id if isinstance(each, SegmentRow) else each for each in segments],
        state=state,
        family=style.family,
        via_url=feed.fetch_url,
        is_walking=is_walking,
        ending=None if ending is None else json.dumps(ending.as_dict()),
        missing=missing,
        head=head.text,
        head_prefixes=head.prefixes,
        context=style.digest,
        digest=_digest(head, segments, said=[state, feed.fetch_url, *map(_shown, shown)]),
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


def _look(db: sqlite3.Connection, feed_id: int, fresh: frozenset[int]) -> _Stored | None:
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
            room -= 0 if row.id in fresh else row.body_bytes
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
        published=published,
        held=_read(db, wanted, fresh),
    )


def _read(db: sqlite3.Connection, wanted: Sequence[int], fresh: Collection[int]) -> dict[int, _Held]:
    live = documents_table.live_ordinals(db, wanted)
    return {
        document: _Held(None if document in fresh else bodies.read(db, document), live[document])
        for document in wanted
    }


def _part(storage: FeedStorage, row: DocumentRow, held: _Held) -> _Part:
    return _Part(row, storage.fresh.get(row), held)


async def _parts(storage: FeedStorage, rows: Sequence[DocumentRow], held: Mapping[int, _Held]) -> list[_Part]:
    """Return what is needed to render documents; what was not read yet is read."""
    wanted = [row.id for row in rows if row.id not in held]
    fresh = frozenset(storage.fresh.numbers)
    more = await storage.read(partial(_read, wanted=wanted, fresh=fresh)) if wanted else {}
    return [_part(storage, row, (more if row.id in more else held)[row.id]) for row in rows]


def _noted(notes: Sequence[NoteDict], documents: Sequence[DocumentRow]) -> list[NoteDict]:
    """As many as are worth reading; each document's own are listed with it."""
    return [*notes, *(note for document in documents for note in document.notes)][:_SHOWN_NOTES]


class _Style(NamedTuple):
    """What segments are rendered for: the subscription document's format, and what its entries inherit."""

    family: Family
    version: str
    context: HeadContext

    @property
    def namespace(self) -> str:
        return default_namespace(self.family, self.version)

    @property
    def digest(self) -> bytes:
        parts = [*self.context.authors, b"", *self.context.rights, b"", self.context.language]
        return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()

    def serves(self, feed: FeedRow) -> bool:
        """Whether what was published of the feed was rendered for the same format (R23)."""
        return self.namespace == default_namespace(feed.published_family, feed.version)


def _head(
    subscription: Callable[[], FeedDocument], deleted: Sequence[Tombstone]
) -> tuple[ComposedHead, _Style]:
    document = subscription()
    style = _Style(document.family, document.version, HeadContext())
    context = fragments_of(document, style.namespace).context()
    return compose_head(document, deleted), style._replace(context=context)


def _checked(place: Placed, published: dict[int, SegmentRow], context_digest: bytes) -> Placed:
    """A segment that another parser made, or that leans on another head, is not clean."""
    segment = published.get(place.segment) if place.segment is not None else None
    is_current = (
        segment is not None
        and segment.parser_version == PARSER_VERSION
        and segment.context in (None, context_digest)
    )
    return place._replace(is_clean=place.is_clean and is_current)


def _render_segment(parts: Sequence[_Part], style: _Style) -> NewSegment:
    rendered = _Rendered()
    for part in parts:
        _render(part, style, rendered)
    text = SEPARATOR[style.family].join(rendered.fragments)
    text += segment_end(style.family) if text else b""
    return NewSegment(
        documents=tuple(part.row.id for part in parts),
        sealed=seal(text),
        prefixes=prefixes_in(text, rendered.prefixes),
        newest_at=max(rendered.dates, default=None),
        oldest_at=min(rendered.dates, default=None),
        entries=rendered.entries,
        parser_version=PARSER_VERSION,
        context=style.digest if rendered.needs_context else None,
    )


def _render(part: _Part, style: _Style, rendered: _Rendered) -> None:
    """Append the live entries of a document in output order (R20)."""
    document = part.parsed()
    fragments = fragments_of(document, style.namespace)
    live = [ordinal for ordinal in part.held.live if ordinal < len(document.entries)]
    order_at = [document.entries[ordinal].order_at for ordinal in live]
    for place in newest_first(order_at):
        rendered.fragments.append(fragments.entry(live[place], style.context))
    rendered.entries += len(live)
    rendered.prefixes |= fragments.prefixes
    rendered.dates += [at for at in order_at if at is not None]
    rendered.needs_context = rendered.needs_context or fragments.needs_context


def _length(segment: SegmentRow | NewSegment) -> int:
    return segment.length if isinstance(segment, SegmentRow) else segment.sealed.length


def _shown(attempt: Attempt) -> str:
    return f"{attempt.url} {attempt.reason} {attempt.first_at}"


def _digest(head: ComposedHead, segments: Sequence[SegmentRow | NewSegment], *, said: Sequence[str]) -> bytes:
    """Digest what a reader gets to see of the feed: the head, what is said of it, the entries."""
    digest = hashlib.blake2b(head.text, digest_size=16)
    digest.update("\0".join(said).encode())
    for segment in segments:
        digest.update(segment.digest if isinstance(segment, SegmentRow) else segment.sealed.digest)
    return digest.digest()
