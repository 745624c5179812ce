"""Sealed text: deflated once, joined into any number of answers (docs/design.md#segments).

A sealed block is raw deflate data (RFC 1951) that ends on a byte boundary and refers to nothing before
it, so blocks that stand in a row are one deflate stream. A gzip answer (RFC 1952) is

    GZIP_HEADER + head.block + segment.block + ... + FINAL_BLOCK + gzip_trailer(crc, length)

where the CRC of the whole comes from the CRCs of the parts:

    crc = combine(crc, segment.crc32, segment.length)

Nothing is compressed again, whatever the answer's size. `benchmarks/deflate.py` measures why it is
isal at level 2: 408 MB/s for 34.9 % of the text, where zlib ran at 94 MB/s for 37.4 % (level 1) and at
34 MB/s for 32.5 % (level 6), and isal's level 3 at 293 MB/s for 34.4 %.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from isal import isal_zlib
from isal.igzip_lib import IsalError

from wholefeed.core.compose.crc import combine, crc_shift

GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""RFC 1952, section 2.3: deflate, no flags, no time, unknown system."""

FINAL_BLOCK: Final = b"\x03\x00"
"""An empty deflate block with BFINAL set (RFC 1951, section 3.2.3): it ends the stream."""

DIGEST_BYTES: Final = 16

_RENEWED_BYTES: Final = 1 << 30
"""isal counts what it has been given in 32 bits."""
_ADLER_BASE: Final = 65521
_LEVEL: Final = 2
_DAMAGED: Final = cast("type[Exception]", IsalError)
_RAW: Final = -15
_MASK32: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Sealed:
    """Text, ready to be sent."""

    block: bytes
    """Raw deflate data, byte-aligned, without a final block."""
    length: int
    """Of the text, in bytes."""
    crc32: int
    """Of the text."""
    crc_shift: int
    """As `wholefeed.core.compose.crc.crc_shift` gives it."""
    digest: bytes
    """Adler-32 of the text, for `TextDigest`; of what earlier versions sealed, BLAKE2b."""


class Deflaters:
    """Deflates one text after the other with the same few deflaters; in several threads, with one for each.

    What isal works with is 330 KB, which takes as long to set up as to deflate 12 KB. A full flush lets
    nothing behind it refer to what stands before.
    """

    def __init__(self) -> None:
        self._idle: list[tuple[Any, int]] = []
        """How much each may be given yet."""

    def block(self, text: bytes) -> bytes:
        """Return a text as a sealed block."""
        try:
            deflater, left_bytes = self._idle.pop()
        except IndexError:
            deflater = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _RAW)
            left_bytes = _RENEWED_BYTES
        block: bytes = deflater.compress(text) + deflater.flush(isal_zlib.Z_FULL_FLUSH)
        if left_bytes > len(text):
            self._idle.append((deflater, left_bytes - len(text)))
        return block


_deflaters: Final = Deflaters()


def seal(text: bytes) -> Sealed:
    """Deflate `text` into a block that can be joined with others. Empty text makes an empty block."""
    block = _deflaters.block(text) if text else b""
    adler32 = isal_zlib.adler32(text).to_bytes(4)
    return Sealed(block, len(text), isal_zlib.crc32(text), crc_shift(len(text)), adler32)


def join(parts: Sequence[Sealed]) -> Sealed:
    """Return sealed texts that follow one another as one, without deflating anything again.

    It takes a little more than `seal` would make of them, which looks back 32 KiB: 2 to 5 % for texts of
    64 KiB, a tenth for half of that.
    """
    whole = TextDigest()
    for part in parts:
        whole.add(part)
    return whole.sealed(b"".join([part.block for part in parts]))


class Deflater:
    """Deflates text that comes in parts into a sealed block.

    deflater = Deflater()
    block = b"".join(map(deflater.add, texts)) + deflater.end().block
    """

    def __init__(self) -> None:
        self._deflater = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _RAW)
        self._length = 0
        self._crc32 = 0
        self._adler32 = 1

    def add(self, text: bytes) -> bytes:
        """Return what the next part makes; it may be nothing."""
        self._length += len(text)
        self._crc32 = isal_zlib.crc32(text, self._crc32)
        self._adler32 = isal_zlib.adler32(text, self._adler32)
        return self._deflater.compress(text)

    def end(self) -> Sealed:
        """Return the end of the block, with what is known of all of its text."""
        end = self._deflater.flush(isal_zlib.Z_FULL_FLUSH) if self._length else b""
        return Sealed(end, self._length, self._crc32, crc_shift(self._length), self._adler32.to_bytes(4))


class Inflater:
    """Inflates one sealed block that comes in pieces, a little at a time.

        inflater = Inflater(length, crc32)
        for piece in pieces:
            for text in inflater.add(piece, 65_536):
                ...
        inflater.end()

    Args:
        length: Of the block's text.
        crc32: Of the block's text.
    """

    def __init__(self, length: int, crc32: int) -> None:
        self._length = length
        self._crc32 = crc32
        self._inflater = isal_zlib.decompressobj(_RAW)
        self._seen_bytes = 0
        self._seen_crc32 = 0

    def add(self, piece: bytes, most_bytes: int) -> Iterator[bytes]:
        """Yield the text that the next piece makes, in parts of at most so many bytes.

        Raises:
            ValueError: The block is damaged.
        """
        left = piece
        while True:
            try:
                text = self._inflater.decompress(left, most_bytes)
            except _DAMAGED as exc:
                raise ValueError(f"damaged block: {exc}") from exc
            left = self._inflater.unconsumed_tail
            self._seen_bytes += len(text)
            self._seen_crc32 = isal_zlib.crc32(text, self._seen_crc32)
            if self._seen_bytes > self._length:
                raise ValueError(f"damaged block: expected {self._length} bytes, got more")
            if text:
                yield text
            if not left and len(text) < most_bytes:
                return

    def end(self) -> None:
        """See to it that the block was whole.

        Raises:
            ValueError: It is damaged.
        """
        for _ in self.add(FINAL_BLOCK, 1):
            raise ValueError(f"damaged block: expected {self._length} bytes, got more")
        is_whole = self._inflater.eof and not self._inflater.unused_data
        if not is_whole or self._seen_bytes != self._length or self._seen_crc32 != self._crc32:
            expected = f"{self._length} bytes of CRC {self._crc32:08x}"
            raise ValueError(f"damaged block: expected {expected}, got {self._seen_bytes}")


class Part(Protocol):
    """What has been sealed, and is known of it."""

    @property
    def length(self) -> int:
        """Of the text, in bytes."""

    @property
    def crc32(self) -> int:
        """Of the text."""

    @property
    def digest(self) -> bytes:
        """As in `Sealed`."""


class TextDigest:
    """Digests a text that is put together from parts: the same one however it was cut.

    It is made of CRC-32, Adler-32 and length, which can be joined. Who writes a text can find another one of
    the same digest: publishers, of their own feeds.
    """

    def __init__(self) -> None:
        self._crc32 = 0
        self._sums = (1, 0)
        self._length = 0

    def add(self, part: Part) -> None:
        """Add a part that was sealed."""
        self._crc32 = combine(self._crc32, part.crc32, part.length)
        self._join(int.from_bytes(part.digest[-4:]), part.length)

    def add_text(self, text: bytes) -> None:
        """Add a part that was not."""
        self._crc32 = isal_zlib.crc32(text, self._crc32)
        self._join(isal_zlib.adler32(text), len(text))

    def _join(self, adler32: int, length: int) -> None:
        """Take the Adler-32 of a part (zlib's adler32_combine)."""
        low, high = self._sums
        self._sums = (
            (low + (adler32 & 0xFFFF) - 1) % _ADLER_BASE,
            (high + (adler32 >> 16) + length * (low - 1)) % _ADLER_BASE,
        )
        self._length += length

    def sealed(self, block: bytes) -> Sealed:
        """Return what was added, sealed as it is in that block."""
        low, high = self._sums
        adler32 = (high << 16 | low).to_bytes(4)
        return Sealed(block, self._length, self._crc32, crc_shift(self._length), adler32)

    def bytes(self) -> bytes:
        """Return the digest of what was added."""
        whole = struct.pack("<IIIQ", self._crc32, *self._sums, self._length)
        return hashlib.blake2b(whole, digest_size=DIGEST_BYTES).digest()


def inflate(block: bytes, length: int, crc32: int) -> bytes:
    """Return the text of a sealed block.

    Raises:
        ValueError: The block is damaged: it does not inflate to `length` bytes of that CRC.
    """
    inflater = Inflater(length, crc32)
    text = b"".join(inflater.add(block, length + 1))
    inflater.end()
    return text


def gzip_trailer(crc: int, length: int) -> bytes:
    """Return what ends a gzip member (RFC 1952, section 2.3.1): CRC-32 and length modulo 2^32."""
    return struct.pack("<II", crc, length & _MASK32)
