"""A feed cut for a reader with a cap: whole segments as they are stored, those in part made anew."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from wholefeed.core.compose.deflate import Sealed, inflate, seal
from wholefeed.core.compose.views import Cut, Slice, Take, entries_of
from wholefeed.core.formats import segment_separator
from wholefeed.service.published import Held
from wholefeed.store.rows import FeedRow, SegmentRow
from wholefeed.store.store import Store


@dataclass(frozen=True, slots=True)
class Remnant:
    """What a view keeps of a segment."""

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

    @property
    def crc_shift(self) -> int:
        """As in `Sealed`."""
        return self.sealed.crc_shift


Part = SegmentRow | Remnant


class Blocks(Protocol):
    """Where the blocks of segments are: the store, or what is in front of it."""

    async def block(self, segment_id: int) -> bytes:
        """Return a segment's deflated text."""


class HeldBlocks:
    """The blocks of a feed, from memory where they are held, else from the store, and held then."""

    def __init__(self, held: Held, store: Store) -> None:
        self._held = held
        self._store = store

    async def block(self, segment_id: int) -> bytes:
        """Return a segment's deflated text; hold the snapshot meanwhile."""
        block = self._held.blocks.get(segment_id)
        if block is None:
            block = await self._store.block(segment_id)
            self._held.keep_block(segment_id, block)
        return block


async def block_of(part: Part, blocks: Blocks) -> bytes:
    """Return the deflated text of a part; hold the snapshot meanwhile."""
    return part.sealed.block if isinstance(part, Remnant) else await blocks.block(part.id)


async def cut_parts(
    segments: tuple[SegmentRow, ...], feed: FeedRow, cut: Cut, store: Store
) -> tuple[Part, ...]:
    """Return what a view takes of a feed, in output order. Only segments taken in part are read.

    Args:
        segments: Of the snapshot that is held.
        feed: As it is published.
        cut: The view, at its beginning.
        store: Where the segments are.
    """
    parts: list[Part] = []
    for segment in segments:
        match cut.take(segment):
            case Take.WHOLE:
                parts.append(segment)
            case Take.PART:
                text, slices = await asyncio.to_thread(_read, segment, feed, await store.block(segment.id))
                kept = cut.kept(slices)
                if kept:
                    parts.append(await asyncio.to_thread(_remnant, segment, feed, text, kept))
            case Take.NONE:
                continue
    return tuple(parts)


def _read(segment: SegmentRow, feed: FeedRow, block: bytes) -> tuple[bytes, list[Slice]]:
    text = inflate(block, segment.length, segment.crc32)
    return text, entries_of(feed.published_family, text, feed.version)


def _remnant(segment: SegmentRow, feed: FeedRow, text: bytes, kept: list[Slice]) -> Remnant:
    taken = b"".join(text[each.start : each.end] for each in kept)
    return Remnant(seal(taken.removesuffix(segment_separator(feed.published_family))), segment.prefixes)
