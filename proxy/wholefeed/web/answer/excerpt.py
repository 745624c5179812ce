"""A large part of a segment for one answer: taken from the segment's text while that is sent."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from wholefeed.core.compose.deflate import DIGEST_BYTES, Inflater
from wholefeed.core.compose.outline import Slice
from wholefeed.store.rows import SegmentRow
from wholefeed.web.answer.blocks import SLICE_BYTES, Blocks


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What a view keeps of a segment."""

    segment: SegmentRow
    ranges: tuple[tuple[int, int], ...]
    """Of the segment's text, ascending."""

    @property
    def length(self) -> int:
        """Of the text."""
        return sum(end - start for start, end in self.ranges)

    @property
    def prefixes(self) -> int:
        """As in `SegmentRow`."""
        return self.segment.prefixes

    @property
    def digest(self) -> bytes:
        """Of what makes the text: which text of a segment, and what of it."""
        whole = self.segment
        said = f"{whole.digest.hex()} {whole.crc32:08x} {whole.length} {self.ranges}"
        return hashlib.blake2b(said.encode(), digest_size=DIGEST_BYTES).digest()


def excerpt(segment: SegmentRow, kept: Sequence[Slice], joint: bytes) -> Excerpt:
    """Return what is left of a segment.

    Args:
        segment: The segment.
        kept: What a view keeps of it; not nothing.
        joint: What stands between two entries and at the end of none, if anything is such.
    """
    ranges: list[tuple[int, int]] = []
    for each in kept:
        if ranges and ranges[-1][1] == each.start:
            ranges[-1] = ranges[-1][0], each.end
        else:
            ranges.append((each.start, each.end))
    start, end = ranges[-1]
    if end < segment.length:
        ranges[-1] = start, end - len(joint)
    return Excerpt(segment, tuple(ranges))


async def texts_of(part: Excerpt, blocks: Blocks) -> AsyncIterator[bytes]:
    """Give the text of an excerpt in parts of at most `SLICE_BYTES`; no more is read than it takes.

    To be called while a snapshot is held.
    """
    inflater = Inflater(part.segment.length, part.segment.crc32)
    ranges = iter(part.ranges)
    start, end = next(ranges)
    at = 0
    async for piece in blocks.pieces(part.segment):
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
