"""The body of an answer: a prologue for the request, parts of a feed, an epilogue.

Whole segments leave as stored: a reader that takes gzip gets their blocks without recompression
(docs/design.md#segments).
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, islice
from typing import Final

from wholefeed.core.compose.compose import EPILOGUE
from wholefeed.core.compose.segments import (
    DIGEST_BYTES,
    FINAL_BLOCK,
    FORMER_DIGEST_BYTES,
    GZIP_HEADER,
    Deflater,
    Inflater,
    Sealed,
    Slice,
    TextDigest,
    each_of,
    gzip_end,
    gzip_trailer,
    inflate,
    number_of,
    seal,
)
from wholefeed.core.compose.views import Cut, Take, entries_of
from wholefeed.core.model import Family, segment_separator
from wholefeed.service.memory import LARGEST_BLOCK_BYTES, CachedFeed
from wholefeed.store.rows import FeedRow, SegmentRow
from wholefeed.store.store import Store
from wholefeed.store.tables.segment_table import OwnEntries

JOINT: Final = {family: segment_separator(family) for family in Family}
_SEALED_JOINT: Final = {family: seal(text) for family, text in JOINT.items()}
_SEALED_EPILOGUE: Final = {family: seal(text) for family, text in EPILOGUE.items()}

SLICE_BYTES: Final = 1 << 16
"""Text inflated and written at once; a shorter answer leaves together with its header."""


@dataclass(frozen=True)
class Body:
    family: Family
    prologue: bytes
    parts: tuple[BodyPart, ...]
    is_gzip: bool

    @cached_property
    def sealed_prologue(self) -> Sealed:
        return seal(self.prologue)

    @cached_property
    def text_bytes(self) -> int | None:
        """Length before content coding; None: unknown until the text has been sent."""
        family = self.family
        length = len(self.prologue) + max(len(self.parts) - 1, 0) * len(JOINT[family]) + len(EPILOGUE[family])
        for part in self.parts:
            if part.length is None:
                return None
            length += part.length
        return length

    @cached_property
    def length(self) -> int | None:
        """Content-Length; None: unknown until the body has been sent."""
        if not self.is_gzip:
            return self.text_bytes
        blocks = max(len(self.parts) - 1, 0) * len(_SEALED_JOINT[self.family].block)
        for part in self.parts:
            if isinstance(part, BodyExcerpt | StreamedText):
                return None
            blocks += len(part.block) if isinstance(part, Sealed) else part.deflated_bytes
        ends = len(self.sealed_prologue.block) + len(_SEALED_EPILOGUE[self.family].block)
        return len(GZIP_HEADER) + ends + blocks + len(FINAL_BLOCK) + len(gzip_trailer(0, 0))

    @cached_property
    def etag(self) -> str:
        """Entity tag, equal for equal texts however segmented.

        Unread parts count by a digest of their source instead. A gzip tag is weak (RFC 9110, 8.8.1): the
        compressed bytes depend on the segments.
        """
        digest = TextDigest()
        digest.add_text(self.prologue)
        for at, part in enumerate(self.parts):
            if at:
                digest.add(_SEALED_JOINT[self.family])
            if not isinstance(part, BodyExcerpt | StreamedText):
                digest.add(part)
            elif part.read is not None:
                digest.add(part.read)
            else:  # the text has not been read
                digest.add_text(part.digest)
        tag = digest.bytes().hex()
        return f'W/"{tag}-gzip"' if self.is_gzip else f'"{tag}"'

    @cached_property
    def former_etag(self) -> str:
        """Tag of wholefeed 0.1, so that no reader downloads again; empty: none."""
        digest = hashlib.blake2b(self.prologue, digest_size=DIGEST_BYTES)
        for part in self.parts:
            if not isinstance(part, SegmentRow) or len(part.digest) != FORMER_DIGEST_BYTES:
                return ""
            digest.update(part.digest[:DIGEST_BYTES])
        return f'"{digest.hexdigest()}{"-gzip" if self.is_gzip else ""}"' if self.parts else ""

    # Sending

    async def pieces(self, store: Store, held: CachedFeed | None = None) -> AsyncIterator[bytes]:
        """Yield pieces of about `SLICE_BYTES`; the caller holds a snapshot."""
        family, sealed = self.family, list[SegmentRow | Sealed]()
        opening, joint = self.prologue, JOINT[family]
        if self.is_gzip:
            opening, joint = GZIP_HEADER + self.sealed_prologue.block, _SEALED_JOINT[family].block
        for piece in slice_bytes(opening):
            yield piece
        before = b""
        for part in self.parts:
            pieces = _deflate(part, sealed, store, held) if self.is_gzip else _texts_of(part, store, held)
            async for piece in pieces:  # at most one piece of one block is in memory, beside `held`
                yield before + piece if before else piece
                before = b""
            before = joint
        for piece in slice_bytes(self._end_gzip(sealed) if self.is_gzip else EPILOGUE[family]):
            yield piece

    def join(
        self, blocks: Mapping[int, bytes], made: Callable[[Hashable], Sealed | None] = lambda _: None
    ) -> bytes | None:
        """Return the whole body from memory; None if it is long or a part is missing.

        `made` returns composed texts by their key.
        """
        if self.length is not None and self.length > LARGEST_BLOCK_BYTES:
            return None
        found: list[tuple[SegmentRow | Sealed, bytes]] = []
        for part in self.parts:
            if isinstance(part, SegmentRow) and (block := blocks.get(part.id)) is not None:
                found.append((part, block))
            elif isinstance(part, Sealed):
                found.append((part, part.block))
            elif isinstance(part, StreamedText) and (kept := made(part.key)) is not None:
                found.append((kept, kept.block))
            else:
                return None
        if self.length is None and sum(len(block) for _, block in found) > LARGEST_BLOCK_BYTES:
            return None
        if self.is_gzip:
            between = _SEALED_JOINT[self.family].block.join([block for _, block in found])
            end = self._end_gzip([each for each, _ in found]) if self.length is None else self._whole_end
            return b"".join((GZIP_HEADER, self.sealed_prologue.block, between, end))
        texts = [inflate(block, segment.length, segment.crc32) for segment, block in found]
        text = JOINT[self.family].join(texts)
        return b"".join((self.prologue, text, EPILOGUE[self.family]))

    @cached_property
    def _whole_end(self) -> bytes:
        return self._end_gzip([part for part in self.parts if isinstance(part, SegmentRow | Sealed)])

    def _end_gzip(self, sealed: Sequence[SegmentRow | Sealed]) -> bytes:
        joint, epilogue = _SEALED_JOINT[self.family], _SEALED_EPILOGUE[self.family]
        between = [each for part in sealed for each in (joint, part)][1:]
        return epilogue.block + gzip_end([self.sealed_prologue, *between, epilogue])


# The parts of a body: whole segments as stored, parts of segments made anew

SEALED_BYTES: Final = 1 << 17
"""Longest text deflated before an answer begins."""
_LISTED_BYTES: Final = 1 << 16
"""Longest outline searched on the event loop."""


async def take_parts(
    segments: Iterable[SegmentRow],
    own: OwnEntries,
    cut: Cut,
    feed: FeedRow,
    store: Store,
    held: CachedFeed | None,
    *,
    is_page: bool,
) -> list[tuple[SegmentRow, BodyPart]]:
    """Return the parts of segments that a view takes.

    With `is_page`, large parts are read, too: a page's tag must not change with the segments (G1).

    Raises:
        StoreError: A segment cannot be read.
    """
    taken: list[tuple[SegmentRow, BodyPart]] = []
    for segment in segments:
        part: BodyPart | None = None
        match cut.take(segment, own.entries(segment)):
            case Take.WHOLE:
                part = segment
            case Take.PART:
                part = await _take_part(segment, own, feed, cut, store, held)
                if is_page and isinstance(part, BodyExcerpt):
                    part = await _read_through(part, store, held)
            case Take.NONE:
                pass
        if part is not None:
            taken.append((segment, part))
    return taken


async def _take_part(
    segment: SegmentRow, own: OwnEntries, feed: FeedRow, cut: Cut, store: Store, held: CachedFeed | None
) -> Sealed | BodyExcerpt | None:
    joint = JOINT[feed.published_family]
    outline = await store.outline(segment)
    if outline is None:
        block = b"".join([piece async for piece in _pieces_of(segment, store, held)])
        text, entries = await asyncio.to_thread(_read_entries, segment, feed, block)
        kept = cut.kept(entries[cut.skipped :], len(entries))
        if not kept:
            return None
        taken = b"".join(text[each.start : each.end] for each in kept)
        return await asyncio.to_thread(seal, taken.removesuffix(joint))
    slices, number = each_of(outline, cut.skipped), number_of(outline)
    if (mask := own.masks.get(segment.id)) is not None:  # such a segment always has an outline
        slices, number = islice(compress(each_of(outline), mask), cut.skipped, None), own.entries(segment)
    if len(outline) <= _LISTED_BYTES:
        kept = cut.kept(slices, number)
    else:
        kept = await asyncio.to_thread(cut.kept, slices, number)
    if not kept:
        return None
    excerpt = _excerpt(segment, kept, joint)
    if excerpt.length > SEALED_BYTES:
        return excerpt
    return seal(b"".join([text async for text in _read_excerpt(excerpt, store, held)]))


def _read_entries(segment: SegmentRow, feed: FeedRow, block: bytes) -> tuple[bytes, list[Slice]]:
    text = inflate(block, segment.length, segment.crc32)
    return text, entries_of(feed.published_family, text, feed.version)


@dataclass(frozen=True, slots=True)
class BodyExcerpt:
    """A large part of a segment, cut while it is sent."""

    segment: SegmentRow
    ranges: tuple[tuple[int, int], ...]
    """Ascending offsets in the segment's text."""
    read: Sealed | None = None
    """Digest and length, if read in advance; without a block."""

    @property
    def length(self) -> int:
        return sum(end - start for start, end in self.ranges)

    @property
    def digest(self) -> bytes:
        """Digest of segment and ranges, computed without the text."""
        whole = self.segment
        said = f"{whole.digest.hex()} {whole.crc32:08x} {whole.length} {self.ranges}"
        return hashlib.blake2b(said.encode(), digest_size=DIGEST_BYTES).digest()


async def _read_through(part: BodyExcerpt, store: Store, held: CachedFeed | None) -> BodyExcerpt:
    """Read an excerpt in advance for its digest and length."""
    whole = TextDigest()
    async for text in _read_excerpt(part, store, held):
        whole.add_text(text)
    return replace(part, read=whole.seal(b""))


def _excerpt(segment: SegmentRow, kept: Sequence[Slice], joint: bytes) -> BodyExcerpt:
    ranges: list[tuple[int, int]] = []
    for each in kept:
        if ranges and ranges[-1][1] == each.start:
            ranges[-1] = ranges[-1][0], each.end
        else:
            ranges.append((each.start, each.end))
    start, end = ranges[-1]
    if end < segment.length:  # no joint follows the last entry
        ranges[-1] = start, end - len(joint)
    return BodyExcerpt(segment, tuple(ranges))


@dataclass(frozen=True, slots=True)
class StreamedText:
    """Text of unknown length, made while it is sent: a replay's, or with the texts of pages."""

    texts: Callable[[], AsyncIterator[bytes]]
    digest: bytes
    key: Hashable
    """Cache key: the entries, and how they are made."""
    length: None = None
    read: None = None


BodyPart = SegmentRow | Sealed | BodyExcerpt | StreamedText
"""A whole segment, a small part, a large part, or a replay."""


# The texts and blocks of parts


async def _deflate(
    part: BodyPart, sealed: list[SegmentRow | Sealed], store: Store, held: CachedFeed | None
) -> AsyncIterator[bytes]:
    """Yield a part deflated; append its CRC and length to `sealed`."""
    part = _kept(part, held)
    if not isinstance(part, BodyExcerpt | StreamedText):
        sealed.append(part)
        async for block in _pieces_of(part, store, held):
            for piece in slice_bytes(block):
                yield piece
        return
    deflater = Deflater()
    with _keeping(part, held) as kept:
        async for text in _texts_of(part, store, held):
            if piece := deflater.add(text):
                kept.add(piece)
                yield piece
        sealed.append(end := deflater.end())
        kept.end(end)
        if end.block:
            yield end.block


def _kept(part: BodyPart, held: CachedFeed | None) -> BodyPart:
    """Return a replay's cached block, or the part itself."""
    found: Sealed | None = (
        held.made(part.key) if held is not None and isinstance(part, StreamedText) else None
    )
    return part if found is None else found


_MOST_KEPT_BYTES: Final = 1 << 24
"""Largest cached replay, deflated. Making 50,000 entries anew costs seconds of CPU."""


class _ReplayCollector:
    """Caches a replay while it is sent."""

    def __init__(self, key: Hashable, held: CachedFeed | None) -> None:
        self._key = key
        self._held = held
        self._pieces: list[bytes] = []
        self._bytes = 0

    def add(self, piece: bytes) -> None:
        if self._held is None:
            return
        self._pieces.append(piece)
        self._bytes += len(piece)
        if self._bytes > _MOST_KEPT_BYTES:
            self._pieces.clear()
            self._held = None

    def end(self, end: Sealed) -> None:
        if self._held is not None:
            block = b"".join([*self._pieces, end.block])
            self._held.keep_made(self._key, replace(end, block=block), sys.getsizeof(block))


@contextmanager
def _keeping(part: BodyExcerpt | StreamedText, held: CachedFeed | None) -> Iterator[_ReplayCollector]:
    if held is None or held.is_collecting or not isinstance(part, StreamedText):
        yield _ReplayCollector(None, None)
        return
    held.is_collecting = True
    try:
        yield _ReplayCollector(part.key, held)
    finally:
        held.is_collecting = False


def slice_bytes(chunk: bytes) -> Iterator[bytes]:
    for start in range(0, len(chunk), SLICE_BYTES):
        yield chunk[start : start + SLICE_BYTES]


async def _texts_of(part: BodyPart, store: Store, held: CachedFeed | None) -> AsyncIterator[bytes]:
    part = _kept(part, held)
    if isinstance(part, BodyExcerpt | StreamedText):
        made = part.texts() if isinstance(part, StreamedText) else _read_excerpt(part, store, held)
        async for text in made:
            yield text
        return
    inflater = Inflater(part.length, part.crc32)
    async for piece in _pieces_of(part, store, held):
        for text in inflater.add(piece, SLICE_BYTES):
            yield text
    inflater.end()


async def _read_excerpt(part: BodyExcerpt, store: Store, held: CachedFeed | None) -> AsyncIterator[bytes]:
    inflater = Inflater(part.segment.length, part.segment.crc32)
    ranges = iter(part.ranges)
    start, end = next(ranges)
    at = 0
    async for piece in _pieces_of(part.segment, store, held):
        for text in inflater.add(piece, SLICE_BYTES):
            while start < at + len(text):
                yield text[max(start - at, 0) : end - at]
                if end > at + len(text):
                    break
                following = next(ranges, None)
                if following is None:
                    return
                start, end = following
            at += len(text)
    raise ValueError(f"damaged block: expected {end} bytes, got {at}")


async def _pieces_of(
    part: SegmentRow | Sealed, store: Store, held: CachedFeed | None
) -> AsyncIterator[bytes]:
    if isinstance(part, Sealed):
        yield part.block
        return
    block = None
    if held is not None:
        block = held.blocks.get(part.id)
        if block is None and part.deflated_bytes <= LARGEST_BLOCK_BYTES:
            block = b"".join([piece async for piece in store.pieces(part)])
            held.keep_block(part.id, block)
    if block is not None:
        yield block
        return
    async for piece in store.pieces(part):
        yield piece
