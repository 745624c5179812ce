"""A feed cut for a reader with a cap: whole segments as they are stored, those in part made anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from wholefeed.core.compose.deflate import Sealed, inflate, seal
from wholefeed.core.compose.outline import Slice, each_of, number_of
from wholefeed.core.compose.views import Cut, Take, entries_of
from wholefeed.core.formats import segment_separator
from wholefeed.store.rows import FeedRow, SegmentRow
from wholefeed.web.answer.blocks import Blocks
from wholefeed.web.answer.excerpt import Excerpt, excerpt, texts_of

_SEALED_BYTES: Final = 1 << 17
"""Of a text that is deflated before an answer begins; a longer one while it is sent."""
_LISTED_BYTES: Final = 1 << 16
"""Of an outline that is looked through on the event loop."""


@dataclass(frozen=True, slots=True)
class Remnant:
    """What a view keeps of a segment, where that is little."""

    sealed: Sealed
    prefixes: int

    @property
    def length(self) -> int:
        """Of the text."""
        return self.sealed.length

    @property
    def deflated_bytes(self) -> int:
        """Of its block."""
        return len(self.sealed.block)

    @property
    def digest(self) -> bytes:
        """Of the text."""
        return self.sealed.digest

    @property
    def crc32(self) -> int:
        """Of the text."""
        return self.sealed.crc32


Part = SegmentRow | Remnant | Excerpt


async def pieces_of(part: SegmentRow | Remnant, blocks: Blocks) -> AsyncIterator[bytes]:
    """Give the deflated text of a part, a piece at a time; to be called while a snapshot is held."""
    if isinstance(part, Remnant):
        yield part.sealed.block
        return
    async for piece in blocks.pieces(part):
        yield piece


async def cut_parts(
    segments: tuple[SegmentRow, ...], feed: FeedRow, cut: Cut, blocks: Blocks
) -> tuple[Part, ...]:
    """Return what a view takes of a feed, in output order. Only segments taken in part are read.

    Args:
        segments: Of the snapshot that is held.
        feed: As it is published.
        cut: The view, at its beginning.
        blocks: Where the text is.
    """
    parts: list[Part] = []
    for segment in segments:
        match cut.take(segment):
            case Take.WHOLE:
                parts.append(segment)
            case Take.PART:
                part = await _part(segment, feed, cut, blocks)
                if part is not None:
                    parts.append(part)
            case Take.NONE:
                continue
    return tuple(parts)


async def _part(segment: SegmentRow, feed: FeedRow, cut: Cut, blocks: Blocks) -> Part | None:
    joint = segment_separator(feed.published_family)
    outline = await blocks.outline(segment)
    if outline is None:
        block = b"".join([piece async for piece in blocks.pieces(segment)])
        text, slices = await asyncio.to_thread(_read, segment, feed, block)
        kept = cut.kept(slices, len(slices))
        if not kept:
            return None
        taken = b"".join(text[each.start : each.end] for each in kept)
        return await asyncio.to_thread(_remnant, segment, taken.removesuffix(joint))
    if len(outline) <= _LISTED_BYTES:
        kept = cut.kept(each_of(outline), number_of(outline))
    else:
        kept = await asyncio.to_thread(lambda: cut.kept(each_of(outline), number_of(outline)))
    if not kept:
        return None
    made = excerpt(segment, kept, joint)
    if made.length > _SEALED_BYTES:
        return made
    return _remnant(segment, b"".join([text async for text in texts_of(made, blocks)]))


def _read(segment: SegmentRow, feed: FeedRow, block: bytes) -> tuple[bytes, list[Slice]]:
    text = inflate(block, segment.length, segment.crc32)
    return text, entries_of(feed.published_family, text, feed.version)


def _remnant(segment: SegmentRow, text: bytes) -> Remnant:
    return Remnant(seal(text), segment.prefixes)
