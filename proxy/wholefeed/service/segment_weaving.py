"""Segments of a feed with entries in another order than its documents (R20).

Moved entries are cut from their old segments, so no document is read again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Final, TypeVar

from wholefeed.core.compose.segments import TARGET_BYTES, Build, Keep, Sealed
from wholefeed.core.compose.weaving import (
    STAMP_BYTES,
    Members,
    Strand,
    Weave,
    WeavingState,
    WovenMember,
    compare,
    weave,
)
from wholefeed.core.jobs import Rendered, Sheaf, Style, fragments_in
from wholefeed.core.model import Family
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.service.storing import FeedStorage, LiveEntries, PublicationInput
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, NewSegment, SegmentRow
from wholefeed.store.tables import segment_table
from wholefeed.store.tables.document_table import live_ordinals
from wholefeed.workers.pool import INLINE_BYTES

_T = TypeVar("_T")


Render = Callable[[Sequence[DocumentRow], Style, Mapping[int, LiveEntries]], Awaitable[Rendered]]


async def woven(
    render: Render,
    storage: FeedStorage,
    stored: PublicationInput,
    published: Mapping[int, SegmentRow],
    style: Style,
    *,
    is_walking: bool,
) -> list[SegmentRow | NewSegment]:
    """Return the segments in output order, some with single entries instead of whole documents.

    Only `published` segments may stay. While `is_walking`, a collected feed's entries are not sorted across
    segments.
    """
    sound = {number: row for number, row in published.items() if is_current(row, style)}
    while True:
        current = stored
        if stored.order is not None and any(row.id not in sound for row in stored.published):
            current = stored._replace(order=await storage.order(stored, sound))
        try:
            return await _woven(render, storage, current, sound, style, is_walking=is_walking)
        except _DamagedError as exc:  # then the entries are rendered from their documents
            del sound[exc.segment]


class _DamagedError(Exception):
    """A segment with damaged contents."""

    def __init__(self, segment: int) -> None:
        super().__init__(segment)
        self.segment = segment


async def _woven(
    render: Render,
    storage: FeedStorage,
    stored: PublicationInput,
    published: Mapping[int, SegmentRow],
    style: Style,
    *,
    is_walking: bool,
) -> list[SegmentRow | NewSegment]:
    order = stored.order
    members = _members(stored) if order is None else order.members
    strands = [
        Strand(number, members[number], row.length) for number, row in published.items() if number in members
    ]
    stamps = {row.id: _stamp(row) for row in stored.documents}
    places = None if order is None else order.places
    if order is None:
        live = await _live(storage, stored, members, {strand.number for strand in strands})
    else:
        live = order.live
    found = await _run_work(_judged_bytes(strands), partial(compare, strands, stamps, live, places))
    new = await _rendered_anew(render, stored, found.missing, style._replace(lists_members=True))
    for number, (rows, each) in enumerate(new):
        own = Members({row.id: stamps[row.id] for row in rows}, each.members)
        if places is not None:
            own = Members.of(_standing(own, places), stamps)
        strands.append(Strand(~number, own, each.sealed.length))
    decide = partial(weave, strands, list(stamps), gone=found.gone, is_walking=is_walking and order is None)
    if order is not None:
        decide = partial(decide, key_of=order.key_of, wholes=order.wholes)
    steps = await _run_work(_judged_bytes(strands), decide)
    weaves = [each for each in steps if isinstance(each, Weave)]
    sewn: list[NewSegment] = []
    for batch in _group(weaves, attrgetter("size_bytes"), _BATCH_BYTES):
        async with storage.work.large.turn(sum(each.size_bytes for each in batch)):
            sewn += await _sewn(storage, batch, published, [each for _, each in new], stamps, style)
    made = iter(sewn)
    subscription = stored.documents[0].id
    storage.fresh.drop(number for number in found.missing if number != subscription)
    documents = {row.id: row for row in stored.documents}
    segments: list[SegmentRow | NewSegment] = []
    for step in steps:
        match step:
            case Keep(segment):
                segments.append(published[segment])
            case Weave():
                segments.append(next(made))
            case Build(numbers):
                rows = [documents[number] for number in numbers]
                segments.append(segment_of(await render(rows, style, stored.live), numbers))
    return segments


def _standing(
    members: Iterable[WovenMember], places: Mapping[tuple[int, int], WeavingState]
) -> Iterator[WovenMember]:
    for member in members:
        at, spot = places[member.document, member.ordinal]
        yield member._replace(published_at=at, spot=spot)


def is_current(segment: SegmentRow, style: Style) -> bool:
    """Return whether the present parser and head would make the same segment."""
    return segment.parser_version == PARSER_VERSION and segment.context in (None, style.digest)


# Possible changes


async def _live(
    storage: FeedStorage, stored: PublicationInput, members: Mapping[int, Members], current: Collection[int]
) -> Mapping[int, Sequence[int]]:
    """Return live entries of documents where they may have changed since publication."""
    lost = {document for number, each in members.items() if number not in current for document in each.stamps}
    told = members.keys() | {place.segment for place in stored.places}
    is_told = all(
        segment.id in told for segment in stored.published
    )  # else any document may have entries in the unknown segments
    wanted = [
        place.document
        for place in stored.places
        if not (is_told and place.is_clean and place.segment is None) or place.document in lost
    ]
    return await storage.read(partial(live_ordinals, documents=wanted)) if wanted else {}


def _members(stored: PublicationInput) -> dict[int, Members]:
    """Return the entries of intact published segments."""
    found = {}
    for segment in stored.published:
        with suppress(KeyError, ValueError):
            members = Members.read(stored.members[segment.id])
            if len(members) == segment.entries and not members.has_spots:
                found[segment.id] = members
    return found


def _stamp(row: DocumentRow) -> bytes:
    """Digest everything that entry texts depend on."""
    said = (row.digest.hex(), row.final_url, row.media_type, str(row.parser_version))
    text = "\0".join(said).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=STAMP_BYTES).digest()


# Entries in no segment yet


async def _rendered_anew(
    render: Render, stored: PublicationInput, missing: Mapping[int, Sequence[int]], style: Style
) -> list[tuple[list[DocumentRow], Rendered]]:
    subscription, *others = stored.documents
    rows = [row for row in others if row.id in missing]
    groups = list(_group(rows, attrgetter("body_bytes"), TARGET_BYTES))
    if subscription.id in missing:  # rendered alone
        groups.insert(0, [subscription])
    made = []
    for group in groups:
        live = {}
        for row in group:
            known = stored.live.get(row.id)
            live[row.id] = LiveEntries(missing[row.id], None if known is None else known.body)
        made.append((group, await render(group, style, live)))
    return made


# New segments

_BATCH_BYTES: Final = 32 << 20
"""Text in memory at once; a larger import reads its sources once for each batch."""


async def _sewn(
    storage: FeedStorage,
    weaves: Sequence[Weave],
    published: Mapping[int, SegmentRow],
    new: Sequence[Rendered],
    stamps: Mapping[int, bytes],
    style: Style,
) -> list[NewSegment]:
    size_bytes = sum(map(_picked_bytes, weaves))
    sheaves = await _run_work(size_bytes, lambda: [Sheaf(each, stamps) for each in weaves])
    for number in sorted({number for sheaf in sheaves for number in sheaf.strands}, reverse=True):
        source = new[~number] if number < 0 else await storage.read(partial(_read, row=published[number]))
        takers = [sheaf for sheaf in sheaves if number in sheaf.strands]
        await _run_work(source.sealed.length, partial(_take, takers, number, source, style.family))
    made = []
    for each, sheaf in zip(weaves, sheaves, strict=True):
        rendered = await _run_work(each.size_bytes, partial(sheaf.seal, style))
        made.append(new_segment(rendered, outline=rendered.outline, members=sheaf.members.written()))
    return made


def _group(items: Iterable[_T], size_of: Callable[[_T], int], most_bytes: int) -> Iterator[list[_T]]:
    """Yield groups of at most `most_bytes`, or of one item."""
    group, size_bytes = list[_T](), 0
    for each in items:
        if group and size_bytes + size_of(each) > most_bytes:
            yield group
            group, size_bytes = [], 0
        group.append(each)
        size_bytes += size_of(each)
    if group:
        yield group


async def _run_work(size_bytes: int, work: Callable[[], _T]) -> _T:
    return work() if size_bytes <= INLINE_BYTES else await asyncio.to_thread(work)


_JUDGED_BYTES: Final = 128
"""Text that takes as long to seal as one entry takes to judge."""


def _judged_bytes(strands: Iterable[Strand]) -> int:
    return _JUDGED_BYTES * sum(len(strand.members) for strand in strands)


def _picked_bytes(weave: Weave) -> int:
    return _JUDGED_BYTES * len(weave.picks)


def _take(sheaves: Sequence[Sheaf], number: int, source: Rendered, family: Family) -> None:
    try:
        fragments = fragments_in(source, family)
    except ValueError as exc:
        raise _DamagedError(number) from exc
    for sheaf in sheaves:
        sheaf.take(number, source, fragments)


def _read(db: Database, row: SegmentRow) -> Rendered:
    pieces = range(-(-row.deflated_bytes // segment_table.PIECE_BYTES))
    block = b"".join(segment_table.piece(db, row.id, number) for number in pieces)
    return Rendered(
        sealed=Sealed(block, row.length, row.crc32, row.crc_shift, row.digest),
        prefixes=row.prefixes,
        newest_at=row.newest_at,
        oldest_at=row.oldest_at,
        entries=row.entries,
        context=row.context,
        outline=segment_table.outline(db, row.id) or b"",
        members=b"",
    )


def segment_of(rendered: Rendered, documents: Sequence[int]) -> NewSegment:
    outline = rendered.outline if rendered.sealed.length > _OUTLINED_BYTES else b""
    return new_segment(rendered, outline=outline, documents=documents)


_OUTLINED_BYTES: Final = 1 << 16
"""Smaller segments need no outline: views read their text."""


def new_segment(
    rendered: Rendered, *, outline: bytes, documents: Sequence[int] = (), members: bytes = b""
) -> NewSegment:
    return NewSegment(
        documents=tuple(documents),
        sealed=rendered.sealed,
        prefixes=rendered.prefixes,
        newest_at=rendered.newest_at,
        oldest_at=rendered.oldest_at,
        entries=rendered.entries,
        parser_version=PARSER_VERSION,
        context=rendered.context,
        outline=outline,
        members=members,
    )
