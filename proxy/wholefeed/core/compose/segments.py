"""Divide a feed into segments of sealed text, with outlines (docs/design.md#segments).

Small blocks compress badly, so small settled documents share a segment. A sealed block is raw deflate data
(RFC 1951), ends on a byte boundary and refers to nothing before it. So a gzip answer (RFC 1952) is

    GZIP_HEADER + head.block + segment.block + ... + gzip_end([head, segment, ...])
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from math import isnan, nan
from typing import Any, Final, NamedTuple, Protocol, cast

from isal import isal_zlib
from isal.igzip_lib import IsalError

# Which documents share a segment

TARGET_BYTES: Final = 1 << 20


def plan(documents: Sequence[Placed], *, target_bytes: int = TARGET_BYTES) -> list[Keep | Build]:
    """Return the segments of a feed, newest first.

    `documents` are the attached ones in output order. One larger than the target stands alone; one without
    live bytes has no segment.
    """
    joined: list[DocumentGroup] = []
    for group in groups(documents):  # from the old end: a document in front moves nothing behind it
        newer = group
        while joined and may_join(joined[-1], newer, target_bytes):
            older = joined.pop()
            newer = DocumentGroup(
                documents=newer.documents + older.documents,
                segment=None,
                is_settled=True,
                live_bytes=older.live_bytes + newer.live_bytes,
            )
        joined.append(newer)
    return [
        Keep(group.segment) if group.segment is not None else Build(group.documents)
        for group in reversed(joined)
    ]


class Placed(NamedTuple):
    document: int
    segment: int | None
    is_clean: bool
    """Whether the segment has exactly its live entries, unmoved."""
    is_settled: bool
    """Final; only such documents share a segment."""
    live_bytes: int


@dataclass(frozen=True, slots=True)
class Keep:
    """A segment to serve unchanged."""

    segment: int


@dataclass(frozen=True, slots=True)
class Build:
    """A segment to make of these documents' live entries, in output order."""

    documents: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    segment: int | None
    """None: to be built."""
    is_settled: bool
    live_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentGroup(Group):
    documents: tuple[int, ...]
    """In output order."""


def groups(documents: Sequence[Placed]) -> Iterator[DocumentGroup]:
    """Yield intact segments and other documents with live bytes, from old to new."""
    tainted = {placed.segment for placed in documents if not placed.is_clean}
    live = (placed for placed in reversed(documents) if placed.live_bytes)
    runs = [
        (segment, list(run))
        for segment, run in groupby(live, lambda each: None if each.segment in tainted else each.segment)
    ]
    counts = Counter(segment for segment, _ in runs)
    for segment, run in runs:
        if segment is not None and counts[segment] == 1:
            yield _group(run, segment)
        else:
            yield from (_group([placed], None) for placed in run)


def _group(run: Sequence[Placed], segment: int | None) -> DocumentGroup:
    return DocumentGroup(
        documents=tuple(placed.document for placed in reversed(run)),
        segment=segment,
        is_settled=all(placed.is_settled for placed in run),
        live_bytes=sum(placed.live_bytes for placed in run),
    )


def may_join(older: Group, newer: Group, target_bytes: int) -> bool:
    if not (older.is_settled and newer.is_settled) or older.live_bytes + newer.live_bytes > target_bytes:
        return False
    if older.segment is None and newer.segment is None:
        return True
    return _draws_in(older, newer, target_bytes) or _draws_in(newer, older, target_bytes)


def _draws_in(new: Group, kept: Group, target_bytes: int) -> bool:
    if new.segment is not None or kept.segment is None:
        return False
    # The new group has at least half the size of the kept segment. So bytes are sealed again only when their
    # segment grows by half: log1.5(target / size) times in all, amortised. Small segments in a row are each
    # over twice the next, so there are few.
    return kept.live_bytes <= 2 * new.live_bytes and may_be_drawn_in(kept.live_bytes, target_bytes)


def may_be_drawn_in(live_bytes: int, target_bytes: int = TARGET_BYTES) -> bool:
    """Return whether an unchanged segment of this size may join a larger one."""
    return 2 * live_bytes < target_bytes


# Sealed text


@dataclass(frozen=True, slots=True)
class Sealed:
    block: bytes
    """Raw deflate data, byte-aligned, without a final block."""
    length: int
    """Bytes of text."""
    crc32: int
    crc_shift: int
    """`crc_shift(length)`."""
    digest: bytes
    """Adler-32 of the text; wholefeed 0.1 put BLAKE2b before it."""


def seal(text: bytes) -> Sealed:
    """Deflate a text into a block to be joined with others; empty text gives an empty block."""
    block = _deflate(text) if text else b""
    adler32 = isal_zlib.adler32(text).to_bytes(4)
    return Sealed(block, len(text), isal_zlib.crc32(text), crc_shift(len(text)), adler32)


def _deflate(text: bytes) -> bytes:
    """Deflate with a reused deflater; after a full flush, nothing refers back."""
    try:
        deflater, left_bytes = _idle_deflaters.pop()
    except IndexError:
        deflater, left_bytes = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _RAW), _RENEWED_BYTES
    block: bytes = deflater.compress(text) + deflater.flush(isal_zlib.Z_FULL_FLUSH)
    if left_bytes > len(text):
        _idle_deflaters.append((deflater, left_bytes - len(text)))
    return block


# At most one per thread, with the bytes each may still get. Setting up isal's 330 KB takes as long as
# deflating 12 KB.
_idle_deflaters: Final[list[tuple[Any, int]]] = []
_RENEWED_BYTES: Final = 1 << 30  # isal counts input in 32 bits
# isal at level 2 makes 408 MB/s and 34.9 % of the text (`benchmarks/deflate.py`), at level 3 293 MB/s and
# 34.4 %. zlib makes 94 MB/s and 37.4 % at level 1, 34 MB/s and 32.5 % at level 6.
_LEVEL: Final = 2
_RAW: Final = -15  # window bits for data without a header (zlib's deflateInit2)


class Deflater:
    """A deflater of one text in parts; `add` and `end` return the parts of the block."""

    def __init__(self) -> None:
        self._deflater = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _RAW)
        self._whole = TextDigest()

    def add(self, text: bytes) -> bytes:
        self._whole.add_text(text)
        return self._deflater.compress(text)

    def end(self) -> Sealed:
        """Return the last data, with the text's checksums."""
        end = self._deflater.flush(isal_zlib.Z_FULL_FLUSH) if self._whole.length else b""
        return self._whole.seal(end)


def inflate(block: bytes, length: int, crc32: int) -> bytes:
    """Return the text of a sealed block.

    Raises:
        ValueError: The block does not inflate to `length` bytes of this CRC.
    """
    inflater = Inflater(length, crc32)
    text = b"".join(inflater.add(block, length + 1))
    inflater.end()
    return text


class Inflater:
    """An inflater of one block in pieces, for bounded memory; `end` checks the block."""

    def __init__(self, length: int, crc32: int) -> None:
        self._length = length
        self._crc32 = crc32
        self._inflater = isal_zlib.decompressobj(_RAW)
        self._seen_bytes = 0
        self._seen_crc32 = 0

    def add(self, piece: bytes, most_bytes: int) -> Iterator[bytes]:
        """Yield the next piece's text, at most `most_bytes` at a time.

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
        """Check that the block was whole.

        Raises:
            ValueError: The block is damaged.
        """
        for _ in self.add(FINAL_BLOCK, 1):
            raise ValueError(f"damaged block: expected {self._length} bytes, got more")
        is_whole = self._inflater.eof and not self._inflater.unused_data
        if not is_whole or self._seen_bytes != self._length or self._seen_crc32 != self._crc32:
            expected = f"{self._length} bytes of CRC {self._crc32:08x}"
            raise ValueError(f"damaged block: expected {expected}, got {self._seen_bytes}")


_DAMAGED: Final = cast("type[Exception]", IsalError)


def join_sealed(parts: Sequence[Sealed]) -> Sealed:
    """Join sealed texts without deflating again; `seal` of the whole would be 2 to 10 % smaller."""
    # `seal` looks back 32 KiB: it saves 2 to 5 % for texts of 64 KiB, and a tenth for 32 KiB
    whole = TextDigest()
    for part in parts:
        whole.add(part)
    return whole.seal(b"".join([part.block for part in parts]))


class TextDigest:
    """A digest of a text in parts, the same for any division.

    It combines CRC-32, Adler-32 and length, each joinable. Publishers can forge it, for their own feeds.
    """

    def __init__(self) -> None:
        self.length = 0
        self._crc32 = 0
        self._sums = (1, 0)

    def add(self, part: _Part) -> None:
        self._crc32 = combine(self._crc32, part.crc32, part.length)
        self._join(int.from_bytes(part.digest[-4:]), part.length)

    def add_text(self, text: bytes) -> None:
        self._crc32 = isal_zlib.crc32(text, self._crc32)
        self._join(isal_zlib.adler32(text), len(text))

    def _join(self, adler32: int, length: int) -> None:
        """Combine Adler-32 (zlib's adler32_combine)."""
        low, high = self._sums
        self._sums = (
            (low + (adler32 & 0xFFFF) - 1) % _ADLER_BASE,
            (high + (adler32 >> 16) + length * (low - 1)) % _ADLER_BASE,
        )
        self.length += length

    def seal(self, block: bytes) -> Sealed:
        low, high = self._sums
        adler32 = (high << 16 | low).to_bytes(4)
        return Sealed(block, self.length, self._crc32, crc_shift(self.length), adler32)

    def bytes(self) -> bytes:
        whole = struct.pack("<IIIQ", self._crc32, *self._sums, self.length)
        return hashlib.blake2b(whole, digest_size=DIGEST_BYTES).digest()


class _Part(Protocol):
    @property
    def length(self) -> int: ...
    @property
    def crc32(self) -> int: ...
    @property
    def digest(self) -> bytes: ...


DIGEST_BYTES: Final = 16
FORMER_DIGEST_BYTES: Final = DIGEST_BYTES + 4
"""Length in wholefeed 0.1."""
_ADLER_BASE: Final = 65521


# Blocks in a row as one gzip member (RFC 1952)

GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""RFC 1952, 2.3: deflate, no flags, no time, unknown system."""
FINAL_BLOCK: Final = b"\x03\x00"
"""Ends the stream: an empty block with BFINAL (RFC 1951, 3.2.3)."""


def gzip_trailer(crc: int, length: int) -> bytes:
    """Return the end of a gzip member (RFC 1952, 2.3.1)."""
    return struct.pack("<II", crc, length & _MASK32)


def gzip_end(parts: Iterable[_Part]) -> bytes:
    crc32 = length = 0
    for part in parts:
        crc32 = combine(crc32, part.crc32, part.length)
        length += part.length
    return FINAL_BLOCK + gzip_trailer(crc32, length)


_MASK32: Final = 0xFFFFFFFF


def combine(crc_a: int, crc_b: int, length_b: int) -> int:
    """Return the CRC-32 of A followed by B; an empty text has 0."""
    return isal_zlib.crc32_combine(crc_a, crc_b, length_b)


def crc_shift(length: int) -> int:
    """Return x^(8 * length) modulo the CRC's polynomial (zlib's crc32_combine_gen).

    Earlier versions on the same store need it.
    """
    return isal_zlib.crc32_combine(_ONE, 0, length)


_ONE: Final = 1 << 31  # the polynomial 1


# Outlines: places of entries in a segment's text, with their dates


class Slice(NamedTuple):
    """An entry in a segment's text, with the separator behind."""

    start: int
    end: int
    order_at: float | None


_ENTRY: Final = struct.Struct("=Qd")  # end of the slice, and date (NaN: none)


def pack_outline(entries: Sequence[tuple[int, float | None]], joint: int, length: int) -> bytes:
    """Return an outline from each entry's length and date, with `joint` bytes between, `length` in all."""
    ends = list(accumulate([size + joint for size, _ in entries]))
    ends[-1:] = [length] if ends else []
    dates = [nan if order_at is None else order_at for _, order_at in entries]
    return b"".join(map(_ENTRY.pack, ends, dates))


def join_outlines(outlines: Iterable[bytes]) -> bytes:
    joined: list[bytes] = []
    before = 0
    for outline in outlines:
        for end, order_at in _ENTRY.iter_unpack(outline):
            joined.append(_ENTRY.pack(before + end, order_at))
        before = _ENTRY.unpack(joined[-1])[0] if joined else 0
    return b"".join(joined)


def each_of(outline: bytes, first: int = 0) -> Iterator[Slice]:
    start = _ENTRY.unpack_from(outline, (first - 1) * _ENTRY.size)[0] if first else 0
    for end, order_at in _ENTRY.iter_unpack(memoryview(outline)[first * _ENTRY.size :]):
        yield Slice(start, end, None if isnan(order_at) else order_at)
        start = end


def number_of(outline: bytes) -> int:
    return len(outline) // _ENTRY.size
