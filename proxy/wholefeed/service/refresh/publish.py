"""Bring what is served of a feed up to date: segments that changed, head, state (docs/design.md#segments).

    row = await assemble(store, feed_id, state=State.COMPLETE, notes="[]", now=time.time())

Readers are served the last publication until the new one is committed. Nothing else may change the feed's
documents meanwhile: the caller sees to that.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import ComposedHead, compose_head, newest_first
from wholefeed.core.compose.deflate import seal
from wholefeed.core.compose.segmenting import Build, Keep, Placed, plan
from wholefeed.core.formats import SEPARATOR, default_namespace, segment_end
from wholefeed.core.model import HeadContext, Tombstone
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.terms import Family, Role, State
from wholefeed.core.verbatim.fragments import prefixes_in
from wholefeed.core.verbatim.fragments_of import fragments_of
from wholefeed.core.walk.endings import Ending
from wholefeed.fetch.budget import LargeWork
from wholefeed.service.documents.shapes import document_from
from wholefeed.store.rows import DocumentRow, FeedRow, NewSegment, NoteDict, Publication, SegmentRow
from wholefeed.store.store import Store

_SHOWN_NOTES: Final = 100
"""Of a whole feed; its row is read for every answer."""


class _Part(NamedTuple):
    """One document's share of a segment."""

    document: DocumentRow
    body: bytes
    live: tuple[int, ...]


@dataclass(slots=True)
class _Rendered:
    fragments: list[bytes] = field(default_factory=list)
    entries: int = 0
    dates: list[float] = field(default_factory=list)
    prefixes: int = 0
    """Mask of the well-known prefixes that may occur."""
    needs_context: bool = False


async def assemble(
    store: Store,
    feed_id: int,
    *,
    state: State,
    notes: Sequence[NoteDict],
    now: float,
    large: LargeWork,
    is_walking: bool = False,
    ending: Ending | None = None,
    missing: Sequence[Attempt] | None = None,
) -> FeedRow | None:
    """Publish the feed as it is stored now.

    Args:
        store: The store.
        feed_id: The feed.
        state: What the reconstruction is.
        notes: What is to be known about it, beside what was remarked on its documents when they were read.
        now: Epoch seconds.
        large: Gives turns at large documents.
        is_walking: Whether the walk goes on.
        ending: Why it has ended; None leaves what is stored.
        missing: What could not be had; None leaves what is stored.

    Returns:
        The feed as published; None when it has no subscription document.
    """
    feed = await store.feed(feed_id)
    shown = missing if missing is not None else (await store.failures(feed_id)).missing
    revision, places = await store.placed(feed_id)
    rows = {row.id: row for row in await store.documents(feed_id) if row.rank is not None}
    documents = [rows[place.document] for place in places]
    if feed is None or not documents or documents[0].role is not Role.SUBSCRIPTION:
        return None
    subscription = documents[0]
    deleted = await store.tombstones(feed_id)
    async with large.turn(subscription.body_bytes):
        body = await store.body(subscription.id)
        head, style = await asyncio.to_thread(_head, subscription, body, deleted)
        del body
    async with store.snapshot(feed_id) as snapshot:
        is_alike = style.serves(snapshot.feed)
        published = {segment.id: segment for segment in snapshot.segments if is_alike}
    segments: list[SegmentRow | NewSegment] = []
    for step in plan([_checked(place, published, style.digest) for place in places]):
        match step:
            case Keep(segment):
                segments.append(published[segment])
            case Build(members):
                held = [rows[member] for member in members]
                async with large.turn(sum(row.body_bytes for row in held)):
                    parts = await _parts(store, held)
                    segments.append(await asyncio.to_thread(_render_segment, parts, style))
                    del parts
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
    published_feed = await store.publish(feed_id, publication, revision=revision, now=now)
    assert published_feed is not None, "nothing else changes the documents while they are assembled"
    return published_feed


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
    subscription: DocumentRow, body: bytes, deleted: Sequence[Tombstone]
) -> tuple[ComposedHead, _Style]:
    document = document_from(subscription, body)
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


async def _parts(store: Store, rows: Sequence[DocumentRow]) -> list[_Part]:
    live = await store.live_ordinals([row.id for row in rows])
    return [_Part(row, await store.body(row.id), live.get(row.id, ())) for row in rows]


def _render_segment(parts: Sequence[_Part], style: _Style) -> NewSegment:
    rendered = _Rendered()
    for part in parts:
        _render(part, style, rendered)
    text = SEPARATOR[style.family].join(rendered.fragments)
    text += segment_end(style.family) if text else b""
    return NewSegment(
        documents=tuple(part.document.id for part in parts),
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
    document = document_from(part.document, part.body)
    fragments = fragments_of(document, style.namespace)
    live = [ordinal for ordinal in part.live if ordinal < len(document.entries)]
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
