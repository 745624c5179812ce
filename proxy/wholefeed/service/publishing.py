"""Publication of a feed: changed segments, head, state (docs/design.md#segments).

Readers get the last publication until the commit. The caller prevents other changes meanwhile.
"""

from __future__ import annotations

import asyncio
import functools
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from wholefeed.core.compose.compose import Address, ComposedHead, compose_prologue
from wholefeed.core.compose.entries import said_dates
from wholefeed.core.compose.segments import Build, Keep, Placed, TextDigest, may_be_drawn_in, plan
from wholefeed.core.facts import Stored
from wholefeed.core.jobs import Composed, Document, Part, Rendered, Style, compose, render
from wholefeed.core.model import (
    Family,
    FeedDocument,
    State,
    Tombstone,
    common_version,
    default_namespace,
    segment_separator,
)
from wholefeed.core.notes import Ending, HeadCut, IdsChanged, IdsUnstable
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.service.new_documents import make_stored
from wholefeed.service.segment_weaving import is_current, segment_of, woven
from wholefeed.service.sources import work_bytes
from wholefeed.service.storing import FeedStorage, LiveEntries, is_collected, read_live_entries
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, FeedRow, NewSegment, NoteDict, Publication, SegmentRow
from wholefeed.store.tables import document_table
from wholefeed.store.tables import segment_table as segments_table
from wholefeed.store.tables.posts import UNSTABLE_LOOKS
from wholefeed.workers.pool import INLINE_BYTES


async def assemble(
    storage: FeedStorage,
    *,
    state: State,
    notes: Sequence[NoteDict],
    is_walking: bool = False,
    ending: Ending | None = None,
    missing: Sequence[Attempt] | None = None,
) -> FeedRow | None:
    """Publish the stored feed; None: no subscription document, or no change.

    Arguments as in the request `Publish`. `notes` come beside the documents' own.
    """
    if not is_walking and await _is_published(storage, state, notes, ending, missing):
        return None
    stored = await storage.publication_input()
    if stored is None:
        return None
    rendering = Rendering(storage)
    feed, documents = stored.feed, stored.documents
    head, heading, style = await rendering.compose_head(
        documents[0], stored.deleted, stored.live[documents[0].id]
    )
    is_alike = style.namespace == default_namespace(feed.published_family, feed.version)  # R23
    published = {segment.id: segment for segment in stored.published if is_alike}
    rows = {row.id: row for row in documents}
    segments: list[SegmentRow | NewSegment] = []
    if stored.is_woven:
        segments = await woven(
            rendering.render_documents, storage, stored, published, style, is_walking=is_walking
        )
    else:
        for step in plan([_as_stands(place, published, style) for place in stored.places]):
            match step:
                case Keep(segment):
                    segments.append(published[segment])
                case Build(members):
                    parts = [rows[member] for member in members]
                    segments.append(await rendering.segment(parts, style, stored.live))
    is_upgraded = feed.parser_version != PARSER_VERSION
    was = ComposedHead(feed.head or b"", feed.head_prefixes)
    if is_upgraded:
        segments = [_with_former_digest(each, stored.published) for each in segments]
    shown = stored.missing if missing is None else missing
    via_url = storage.fetch_url or feed.fetch_url
    version = common_version(style.family, style.version, {row.version for row in documents})
    prefixes = functools.reduce(operator.or_, (each.prefixes for each in segments), head.prefixes)
    cut = [HeadCut(via_url, left_out=head.left_out).as_dict()] if head.left_out else []
    said = (state, via_url, version, f"{prefixes:x}", *map(_format_attempt, shown))
    publication = Publication(
        segments=[each.id if isinstance(each, SegmentRow) else each for each in segments],
        state=state,
        family=style.family,
        via_url=via_url,
        is_walking=is_walking,
        ending=None if ending is None else json.dumps(ending.as_dict()),
        missing=missing,
        title=heading.title,
        site=heading.site,
        head=head.text,
        head_prefixes=head.prefixes,
        context=style.digest,
        digest=_digest(head, segments, said=said, family=style.family),
        documents=sum(row.origin.policy.holds for row in documents),
        entries=sum(each.entries for each in segments),
        text_bytes=len(head.text) + sum(_length(each) for each in segments),
        notes=json.dumps(_choose_notes([*cut, *_notes_on_ids(feed, via_url), *notes], documents)),
        parser_version=PARSER_VERSION,
        version=version,
        is_woven=stored.is_woven,
        is_alike=is_upgraded
        and (feed.state, feed.via_url, *map(_format_attempt, stored.missing))
        == (state, via_url, *map(_format_attempt, shown))
        and _bytes_of(was, stored.published, feed.version, style)
        == _bytes_of(head, segments, version, style),
        dates=await rendering.said_dates([row for row in documents if row.id in stored.unlined], stored.live),
    )
    published_feed = await storage.publish(publication, revision=feed.revision)
    assert published_feed is not None, "nothing else changes the documents while they are assembled"
    for each in segments:
        if isinstance(each, NewSegment) and not may_be_drawn_in(each.sealed.length):
            storage.fresh.drop(number for number in each.documents if number != documents[0].id)
    return published_feed


async def _is_published(
    storage: FeedStorage,
    state: State,
    notes: Sequence[NoteDict],
    ending: Ending | None,
    missing: Sequence[Attempt] | None,
) -> bool:
    """Return whether readers already have this publication."""
    feed = storage.feed
    if feed is None or feed.digest is None or feed.is_walking or feed.parser_version != PARSER_VERSION:
        return False
    # an equal revision means equal contents
    if feed.revision != feed.published_revision or storage.fetch_url not in (None, feed.via_url):
        return False
    if feed.state is not state or (missing is not None and tuple(missing) != storage.missing):
        return False
    if ending is not None and feed.ending != json.dumps(ending.as_dict()):
        return False
    attached = [row for row in await storage.documents() if row.rank is not None]
    before: list[NoteDict] = json.loads(feed.notes)
    cut = [note for note in before[:1] if note["code"] == HeadCut.code]  # the head is unchanged
    said = [*cut, *_notes_on_ids(feed, feed.via_url), *notes]
    return before == _choose_notes(said, attached) and not await _is_of_older_order(storage, attached)


async def _is_of_older_order(storage: FeedStorage, attached: Sequence[DocumentRow]) -> bool:
    """Return whether an earlier program version published memory documents before all archive documents."""
    remembered = sum(not row.origin.policy.holds for row in attached)
    if not remembered or remembered + 1 == len(attached) or is_collected(attached):
        return False
    return await storage.read(partial(segments_table.holds_memory, feed=storage.feed_id))


def _notes_on_ids(feed: FeedRow, url: str) -> list[NoteDict]:
    """Return notes on posts with changed ids (R36)."""
    if not feed.renamed or feed.renamed_since is None:
        return []
    since = format_rfc3339(feed.renamed_since)
    notes = [IdsChanged(url, posts=str(feed.renamed), since=since)]
    if feed.renaming_looks >= UNSTABLE_LOOKS:
        notes.append(IdsUnstable(url))
    return [note.as_dict() for note in notes]


def _as_stands(place: Placed, published: dict[int, SegmentRow], style: Style) -> Placed:
    """Mark a segment of another parser or head as not clean."""
    segment = published.get(place.segment) if place.segment is not None else None
    return place._replace(is_clean=place.is_clean and segment is not None and is_current(segment, style))


def _digest(
    head: ComposedHead, segments: Sequence[SegmentRow | NewSegment], *, said: Sequence[str], family: Family
) -> bytes:
    """Digest all that readers see, so that Last-Modified moves with the ETag."""
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


def _bytes_of(
    head: ComposedHead, segments: Sequence[SegmentRow | NewSegment], version: str, style: Style
) -> tuple[bytes, bytes]:
    """Return a key of the published bytes, independent of the program's version."""
    prologue = compose_prologue(
        style.family,
        head.text,
        prefixes=functools.reduce(operator.or_, (each.prefixes for each in segments), head.prefixes),
        address=Address("", "", ""),
        is_complete=False,
        version=version,
    )
    return prologue, _digest(head._replace(text=b""), segments, said=(), family=style.family)


def _with_former_digest(
    segment: SegmentRow | NewSegment, published: Sequence[SegmentRow]
) -> SegmentRow | NewSegment:
    """Keep the digest that readers know for the same text (`Sealed`)."""
    if isinstance(segment, SegmentRow):
        return segment
    sealed = segment.sealed
    same = (
        each.digest
        for each in published
        if (each.length, each.crc32, each.digest[-4:]) == (sealed.length, sealed.crc32, sealed.digest)
    )
    return replace(segment, sealed=replace(sealed, digest=next(same, sealed.digest)))


def _format_attempt(attempt: Attempt) -> str:
    return f"{attempt.url} {attempt.reason} {attempt.first_at}"


def _length(segment: SegmentRow | NewSegment) -> int:
    return segment.length if isinstance(segment, SegmentRow) else segment.sealed.length


_SHOWN_NOTES: Final = 100
"""Limited, since every answer reads the feed's row."""


def _choose_notes(notes: Sequence[NoteDict], documents: Sequence[DocumentRow]) -> list[NoteDict]:
    return [*notes, *(note for document in documents for note in document.notes)][:_SHOWN_NOTES]


class Rendering:
    """Rendering of documents from memory, else from stored bodies."""

    def __init__(self, storage: FeedStorage) -> None:
        self._storage = storage
        self._work = storage.work

    async def compose_head(
        self, subscription: DocumentRow, tombstones: Sequence[Tombstone], live: LiveEntries
    ) -> Composed:
        """Return the head, and the style of segments."""
        fresh = self._storage.fresh.get(subscription)
        if fresh is not None and fresh.document is not None:
            return compose(fresh.document, tombstones)
        if fresh is not None and fresh.composed is not None and not tombstones:
            return fresh.composed
        size_bytes = subscription.body_bytes
        async with self._work.large.turn(size_bytes):
            body = live.body
            if body is None:
                body = await self._storage.read(partial(document_table.read_body, document=subscription.id))
            return await self._work.run(
                work_bytes(body), compose, make_stored(subscription, body), tombstones
            )

    async def said_dates(
        self, rows: Sequence[DocumentRow], live: Mapping[int, LiveEntries]
    ) -> dict[int, list[float | None]]:
        """Return entries' publication dates by document (P1)."""
        found = {}
        for row in rows:
            fresh = self._storage.fresh.get(row)
            if fresh is not None and fresh.document is not None:
                found[row.id] = said_dates(fresh.document)
                continue
            body = live[row.id].body if row.id in live else None
            if body is None:
                body = await self._storage.read(partial(document_table.read_body, document=row.id))
            found[row.id] = await self._work.run(work_bytes(body), said_dates, make_stored(row, body))
        return found

    async def segment(
        self, rows: Sequence[DocumentRow], style: Style, live: Mapping[int, LiveEntries]
    ) -> NewSegment:
        return segment_of(await self.render_documents(rows, style, live), [row.id for row in rows])

    async def render_documents(
        self, rows: Sequence[DocumentRow], style: Style, live: Mapping[int, LiveEntries]
    ) -> Rendered:
        """Return live entries in document order; read documents missing in `live`."""
        async with self._work.large.turn(sum(row.body_bytes for row in rows)):
            parts = await self._parts(rows, style, live)
            if len(parts) == 1 and isinstance(parts[0].document, Rendered):
                return parts[0].document
            unparsed = [part.document.body for part in parts if isinstance(part.document, Stored)]
            unparsed_bytes = sum(map(work_bytes, unparsed))
            if unparsed_bytes:  # perhaps in another process
                return await self._work.run(unparsed_bytes, render, parts, style)
            if sum(_size_bytes(part) for part in parts) <= INLINE_BYTES:
                return render(parts, style)
            return await asyncio.to_thread(render, parts, style)

    async def _parts(
        self, rows: Sequence[DocumentRow], style: Style, live: Mapping[int, LiveEntries]
    ) -> list[Part]:
        found = {row.id: live[row.id] for row in rows if row.id in live}
        unread = [row.id for row in rows if row.id not in found]
        if unread:
            fresh = self._storage.fresh.by_number()
            found |= await self._storage.read(partial(read_live_entries, wanted=unread, fresh=fresh))
        shapes = {row.id: self._shape(row, style, found[row.id]) for row in rows}
        bodiless = [number for number, shape in shapes.items() if shape is None]
        if bodiless:  # rendered for another style, or never read
            read = await self._storage.read(partial(_read_bodies, wanted=bodiless))
            found |= {number: found[number]._replace(body=body) for number, body in read.items()}
        parts = []
        for row in rows:
            shape = shapes[row.id] or self._shape(row, style, found[row.id])
            assert shape is not None, "it was read"
            parts.append(Part(shape, None if isinstance(shape, Rendered) else found[row.id].ordinals))
        return parts

    def _shape(self, row: DocumentRow, style: Style, live: LiveEntries) -> _Shape | None:
        """Return the shape cheapest to render; None: the body is missing."""
        fresh = self._storage.fresh.get(row)
        if fresh is not None and fresh.document is not None:
            return fresh.document
        rendered = fresh.rendered if fresh is not None and fresh.fits(style) else None
        if rendered is not None and rendered.entries == len(live.ordinals):
            return rendered
        return None if live.body is None else make_stored(row, live.body)


_Shape = Document | Rendered


def _read_bodies(db: Database, wanted: Sequence[int]) -> dict[int, bytes]:
    return {number: document_table.read_body(db, number) for number in wanted}


def _size_bytes(part: Part) -> int:
    match part.document:
        case Rendered() as rendered:
            return rendered.sealed.length
        case FeedDocument() as document:
            return len(document.text)
        case stored:
            return len(stored.body)
