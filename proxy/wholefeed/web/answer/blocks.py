"""Where the text of segments comes from when an answer is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Protocol

from wholefeed.service.published import LARGEST_BLOCK_BYTES, Held
from wholefeed.store.rows import SegmentRow
from wholefeed.store.store import Store

SLICE_BYTES: Final = 1 << 16
"""Of text, what is inflated and written at once; an answer that is no longer is sent with its header."""


class Blocks(Protocol):
    """Where the blocks of segments are: the store, or what is in front of it."""

    def pieces(self, segment: SegmentRow) -> AsyncIterator[bytes]:
        """Give a segment's deflated text, a piece at a time; to be called while a snapshot is held."""

    async def outline(self, segment: SegmentRow) -> bytes | None:
        """Return where the entries of a segment stand in its text; None where that is not kept."""


class HeldBlocks:
    """The blocks of a feed, from memory where they are held, else from the store, and held then."""

    def __init__(self, held: Held, store: Store) -> None:
        self._held = held
        self._store = store

    async def pieces(self, segment: SegmentRow) -> AsyncIterator[bytes]:
        """Give a segment's deflated text, a piece at a time; to be called while a snapshot is held."""
        block = self._held.blocks.get(segment.id)
        if block is None and segment.deflated_bytes <= LARGEST_BLOCK_BYTES:
            block = b"".join([piece async for piece in self._store.pieces(segment)])
            self._held.keep_block(segment.id, block)
        if block is not None:
            yield block
            return
        async for piece in self._store.pieces(segment):
            yield piece

    async def outline(self, segment: SegmentRow) -> bytes | None:
        """Return where the entries of a segment stand in its text; None where that is not kept."""
        return await self._store.outline(segment)
