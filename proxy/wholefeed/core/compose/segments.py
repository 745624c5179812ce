"""Segments of a feed: which documents share one, its sealed text, its outline (docs/design.md#segments).

A segment holds the live entries of one document or of several small settled neighbours, because small
blocks compress badly. The plan keeps the segments that it can:

    for step in plan(documents):
        match step:
            case Keep(segment): ...
            case Build(documents): ...

Its text is deflated once and joined into any number of answers: nothing is compressed again, whatever the
answer's size. A sealed block is raw deflate data (RFC 1951) that ends on a byte boundary and refers to
nothing before it, so blocks that stand in a row are one deflate stream. A gzip answer (RFC 1952) is

    GZIP_HEADER + head.block + segment.block + ... + gzip_end([head, segment, ...])

where the CRC of the whole comes from the CRCs of the parts.

The outline says where the entries stand in the text, for views that take some of them:

    outline = pack_outline([(120, updated_at), (80, None)], 1, 202)
    list(each_of(outline))      # [Slice(0, 121, updated_at), Slice(121, 202, None)]
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

    Without a change nothing is built. A kept segment of less than half the target is drawn into a new one
    only by a neighbour that is new and at least half its size. So each time a byte is sealed again its
    segment has grown by half: log1.5(target / size) times in all, amortised, however the documents arrive;
    and small segments side by side are each more than twice the next, so they stay few. Groups fill up from
    the old end, so a document that is put in front moves nothing behind it.

    Documents are the attached ones in output order; those without live bytes belong to no segment. One that
    is larger than the target stands alone.
    """
    joined: list[DocumentGroup] = []
    for group in groups(documents):
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
    """An attached document, as far as the plan is concerned."""

    document: int
    segment: int | None
    """The segment that its entries were put into last."""
    is_clean: bool
    """Whether its live entries are those that were put there, in a place that has not moved within it."""
    is_settled: bool
    """Whether it is final: only such documents share a segment."""
    live_bytes: int


@dataclass(frozen=True, slots=True)
class Keep:
    """This segment serves as it is."""

    segment: int


@dataclass(frozen=True, slots=True)
class Build:
    """The live entries of these documents, in output order, become one new segment."""

    documents: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What may become one segment with its neighbour."""

    segment: int | None
    """The segment that it is; None: it is to be built."""
    is_settled: bool
    live_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentGroup(Group):
    """Documents that share a segment, or one that has none yet."""

    documents: tuple[int, ...]
    """In output order."""


def groups(documents: Sequence[Placed]) -> Iterator[DocumentGroup]:
    """Yield a group for each intact segment and for each other document with live bytes, from old to new."""
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
    """Return whether two neighbours become one segment."""
    if not (older.is_settled and newer.is_settled) or older.live_bytes + newer.live_bytes > target_bytes:
        return False
    if older.segment is None and newer.segment is None:
        return True
    return _draws_in(older, newer, target_bytes) or _draws_in(newer, older, target_bytes)


def _draws_in(new: Group, kept: Group, target_bytes: int) -> bool:
    if new.segment is not None or kept.segment is None:
        return False
    return kept.live_bytes <= 2 * new.live_bytes and may_be_drawn_in(kept.live_bytes, target_bytes)


def may_be_drawn_in(live_bytes: int, target_bytes: int = TARGET_BYTES) -> bool:
    """Whether a segment of so many bytes may become part of a larger one, while nothing in it changes."""
    return 2 * live_bytes < target_bytes


# Sealed text


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
    """As the function of that name gives it."""
    digest: bytes
    """Adler-32 of the text, for `TextDigest`; of what wholefeed 0.1 sealed, BLAKE2b and that behind it."""


def seal(text: bytes) -> Sealed:
    """Deflate `text` into a block that can be joined with others. Empty text makes an empty block."""
    block = _deflate(text) if text else b""
    adler32 = isal_zlib.adler32(text).to_bytes(4)
    return Sealed(block, len(text), isal_zlib.crc32(text), crc_shift(len(text)), adler32)


def _deflate(text: bytes) -> bytes:
    """Deflate text with a deflater that is idle: a full flush lets nothing refer to what it made before."""
    try:
        deflater, left_bytes = _idle_deflaters.pop()
    except IndexError:
        deflater, left_bytes = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _RAW), _RENEWED_BYTES
    block: bytes = deflater.compress(text) + deflater.flush(isal_zlib.Z_FULL_FLUSH)
    if left_bytes > len(text):
        _idle_deflaters.append((deflater, left_bytes - len(text)))
    return block


_idle_deflaters: Final[list[tuple[Any, int]]] = []
"""As many as threads have used at once, and how much each may be given yet. What isal works with is 330 KB,
which takes as long to set up as to deflate 12 KB."""
_RENEWED_BYTES: Final = 1 << 30
"""isal counts what it has been given in 32 bits."""
_LEVEL: Final = 2
"""isal at level 2 makes 408 MB/s and 34.9 % of the text (`benchmarks/deflate.py`), where zlib ran at 94 MB/s
for 37.4 % (level 1) and at 34 MB/s for 32.5 % (level 6), and isal's level 3 at 293 MB/s for 34.4 %."""
_RAW: Final = -15
"""Window bits: deflate data without a header (zlib's deflateInit2)."""


class Deflater:
    """Deflates text that comes in parts into a sealed block.

    The block is `b"".join(map(deflater.add, texts)) + deflater.end().block`.
    """

    def __init__(self) -> None:
        self._deflater = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _RAW)
        self._whole = TextDigest()

    def add(self, text: bytes) -> bytes:
        """Return what the next part makes; it may be nothing."""
        self._whole.add_text(text)
        return self._deflater.compress(text)

    def end(self) -> Sealed:
        """Return the end of the block, with what is known of all of its text."""
        end = self._deflater.flush(isal_zlib.Z_FULL_FLUSH) if self._whole.length else b""
        return self._whole.seal(end)


def inflate(block: bytes, length: int, crc32: int) -> bytes:
    """Return the text of a sealed block.

    Raises:
        ValueError: The block is damaged: it does not inflate to `length` bytes of that CRC.
    """
    inflater = Inflater(length, crc32)
    text = b"".join(inflater.add(block, length + 1))
    inflater.end()
    return text


class Inflater:
    """Inflates one sealed block that comes in pieces, a little at a time.

        inflater = Inflater(length, crc32)
        for piece in pieces:
            for text in inflater.add(piece, 65_536):
                ...
        inflater.end()

    Length and CRC are those of the block's text.
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
        """Check that the block was whole.

        Raises:
            ValueError: It is damaged.
        """
        for _ in self.add(FINAL_BLOCK, 1):
            raise ValueError(f"damaged block: expected {self._length} bytes, got more")
        is_whole = self._inflater.eof and not self._inflater.unused_data
        if not is_whole or self._seen_bytes != self._length or self._seen_crc32 != self._crc32:
            expected = f"{self._length} bytes of CRC {self._crc32:08x}"
            raise ValueError(f"damaged block: expected {expected}, got {self._seen_bytes}")


_DAMAGED: Final = cast("type[Exception]", IsalError)


def join_sealed(parts: Sequence[Sealed]) -> Sealed:
    """Return sealed texts that follow one another as one, without deflating anything again.

    It takes a little more than `seal` would make of them, which looks back 32 KiB: 2 to 5 % for texts of
    64 KiB, a tenth for half of that.
    """
    whole = TextDigest()
    for part in parts:
        whole.add(part)
    return whole.seal(b"".join([part.block for part in parts]))


class TextDigest:
    """Digests a text that is put together from parts: the same one however it was cut.

    It is made of CRC-32, Adler-32 and length, which can be joined. Whoever writes a text can find another one
    of the same digest: publishers, of their own feeds.
    """

    def __init__(self) -> None:
        self.length = 0
        self._crc32 = 0
        self._sums = (1, 0)

    def add(self, part: _Part) -> None:
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
        self.length += length

    def seal(self, block: bytes) -> Sealed:
        """Return what was added, sealed as it is in that block."""
        low, high = self._sums
        adler32 = (high << 16 | low).to_bytes(4)
        return Sealed(block, self.length, self._crc32, crc_shift(self.length), adler32)

    def bytes(self) -> bytes:
        whole = struct.pack("<IIIQ", self._crc32, *self._sums, self.length)
        return hashlib.blake2b(whole, digest_size=DIGEST_BYTES).digest()


class _Part(Protocol):
    """What is known of a sealed text, here or as it is stored; each as in `Sealed`."""

    @property
    def length(self) -> int: ...
    @property
    def crc32(self) -> int: ...
    @property
    def digest(self) -> bytes: ...


DIGEST_BYTES: Final = 16
FORMER_DIGEST_BYTES: Final = DIGEST_BYTES + 4
"""Of a text that wholefeed 0.1 has sealed."""
_ADLER_BASE: Final = 65521


# Blocks in a row as one gzip member (RFC 1952)

GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""RFC 1952, section 2.3: deflate, no flags, no time, unknown system."""
FINAL_BLOCK: Final = b"\x03\x00"
"""An empty deflate block with BFINAL set (RFC 1951, section 3.2.3): it ends the stream."""


def gzip_trailer(crc: int, length: int) -> bytes:
    """Return what ends a gzip member (RFC 1952, section 2.3.1): CRC-32 and length modulo 2^32."""
    return struct.pack("<II", crc, length & _MASK32)


def gzip_end(parts: Iterable[_Part]) -> bytes:
    """Return what ends a gzip member of these texts in a row; its CRC is put together from theirs."""
    crc32 = length = 0
    for part in parts:
        crc32 = combine(crc32, part.crc32, part.length)
        length += part.length
    return FINAL_BLOCK + gzip_trailer(crc32, length)


_MASK32: Final = 0xFFFFFFFF


def combine(crc_a: int, crc_b: int, length_b: int) -> int:
    """Return the CRC-32 of a text A (0 when it is empty) followed by a text B, of any length."""
    return isal_zlib.crc32_combine(crc_a, crc_b, length_b)


def crc_shift(length: int) -> int:
    """Return x^(8 * length) modulo the CRC's polynomial (zlib's crc32_combine_gen).

    It stands beside each text that is stored: earlier versions, which may run on the same store, go by it.
    """
    return isal_zlib.crc32_combine(_ONE, 0, length)


_ONE: Final = 1 << 31
"""The polynomial 1."""


# Outlines: where the entries of a segment stand in its text, and of when they are


class Slice(NamedTuple):
    """An entry within the text of a segment, up to the next one."""

    start: int
    end: int
    order_at: float | None


_ENTRY: Final = struct.Struct("=Qd")
"""Sixteen bytes an entry: where its slice ends and the next one begins, and its date (NaN: none)."""


def pack_outline(entries: Sequence[tuple[int, float | None]], joint: int, length: int) -> bytes:
    """Return the outline of a segment, from length and date of each entry.

    `joint` is what stands between two of them, `length` the whole with what ends it, in bytes.
    """
    ends = list(accumulate([size + joint for size, _ in entries]))
    ends[-1:] = [length] if ends else []
    dates = [nan if order_at is None else order_at for _, order_at in entries]
    return b"".join(map(_ENTRY.pack, ends, dates))


def join_outlines(outlines: Iterable[bytes]) -> bytes:
    """Return the outline of segments whose texts become one, in that order."""
    joined: list[bytes] = []
    before = 0
    for outline in outlines:
        for end, order_at in _ENTRY.iter_unpack(outline):
            joined.append(_ENTRY.pack(before + end, order_at))
        before = _ENTRY.unpack(joined[-1])[0] if joined else 0
    return b"".join(joined)


def each_of(outline: bytes, first: int = 0) -> Iterator[Slice]:
    """Yield the slices of a segment one by one, from one on, where not all of them may be needed."""
    start = _ENTRY.unpack_from(outline, (first - 1) * _ENTRY.size)[0] if first else 0
    for end, order_at in _ENTRY.iter_unpack(memoryview(outline)[first * _ENTRY.size :]):
        yield Slice(start, end, None if isnan(order_at) else order_at)
        start = end


def number_of(outline: bytes) -> int:
    return len(outline) // _ENTRY.size
