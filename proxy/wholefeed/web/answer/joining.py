"""Put an answer together from texts and deflated blocks, in parts, without compressing any block again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wholefeed.core.compose.crc import combine
from wholefeed.core.compose.deflate import (
    FINAL_BLOCK,
    GZIP_HEADER,
    Deflater,
    Inflater,
    Sealed,
    gzip_trailer,
    inflate,
)
from wholefeed.store.rows import SegmentRow
from wholefeed.web.answer.blocks import SLICE_BYTES
from wholefeed.web.answer.parts import Remnant


def sliced(chunk: bytes) -> Iterator[bytes]:
    """Give what is to be written in parts of at most `SLICE_BYTES`."""
    for start in range(0, len(chunk), SLICE_BYTES):
        yield chunk[start : start + SLICE_BYTES]


class PlainJoining:
    """Makes the text of an answer. Between two segments, of either kind, the separator is put.

    Args:
        prologue: Comes first.
        separator: Stands between two segments.
        epilogue: Comes last.
    """

    def __init__(self, prologue: bytes, separator: Sealed, epilogue: bytes) -> None:
        self._between = inflate(separator.block, separator.length, separator.crc32)
        self._epilogue = epilogue
        self._has_begun = False
        self._before = b""
        """What joins the segment that has begun to the one before it."""
        self._inflater = Inflater(0, 0)
        self.first: Final = prologue

    def begin(self, segment: SegmentRow | Remnant) -> None:
        """Begin a segment whose block follows in pieces."""
        self.begin_text()
        self._inflater = Inflater(segment.length, segment.crc32)

    def add(self, piece: bytes) -> Iterator[bytes]:
        """Give what the next piece of the block makes."""
        for text in self._inflater.add(piece, SLICE_BYTES):
            yield self.add_text(text)

    def end(self) -> None:
        """See to it that the block was whole."""
        self._inflater.end()

    def begin_text(self) -> None:
        """Begin a segment whose text follows in parts."""
        self._before = self._between if self._has_begun else b""
        self._has_begun = True

    def add_text(self, text: bytes) -> bytes:
        """Return what the next part of the text makes."""
        before, self._before = self._before, b""
        return before + text if before else text

    def end_text(self) -> bytes:
        """Return what the end of the text makes."""
        return b""

    def last(self) -> bytes:
        """Return the end of the answer."""
        return self._epilogue


class GzipJoining:
    """Makes the gzip member of an answer, and the CRC of what is in it; otherwise as `PlainJoining`."""

    def __init__(self, prologue: Sealed, separator: Sealed, epilogue: Sealed) -> None:
        self._separator = separator
        self._epilogue = epilogue
        self._crc, self._length = prologue.crc32, prologue.length
        self._has_begun = False
        self._before = b""
        self._deflater: Deflater | None = None
        self.first: Final = GZIP_HEADER + prologue.block

    def begin(self, segment: SegmentRow | Remnant) -> None:
        """Begin a segment whose block follows in pieces."""
        self._separate()
        self._count(segment)

    def add(self, piece: bytes) -> Iterator[bytes]:
        """Give what the next piece of the block makes."""
        before, self._before = self._before, b""
        yield from sliced(before + piece if before else piece)

    def end(self) -> None:
        """Nothing is checked: the reader has the CRC."""

    def begin_text(self) -> None:
        """Begin a segment whose text follows in parts."""
        self._separate()
        self._deflater = Deflater()

    def add_text(self, text: bytes) -> bytes:
        """Return what the next part of the text makes; it may be nothing."""
        assert self._deflater is not None, "the text has begun"
        before, self._before = self._before, b""
        return before + self._deflater.add(text)

    def end_text(self) -> bytes:
        """Return what the end of the text makes."""
        assert self._deflater is not None, "the text has begun"
        sealed = self._deflater.end()
        self._count(sealed)
        return sealed.block

    def last(self) -> bytes:
        """Return the end of the answer."""
        self._count(self._epilogue)
        return self._epilogue.block + FINAL_BLOCK + gzip_trailer(self._crc, self._length)

    def _separate(self) -> None:
        self._before = b""
        if self._has_begun and self._separator.length:
            self._before = self._separator.block
            self._count(self._separator)
        self._has_begun = True

    def _count(self, part: SegmentRow | Remnant | Sealed) -> None:
        self._crc = combine(self._crc, part.crc32, part.length)
        self._length += part.length
