from __future__ import annotations

import gzip
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from wholefeed.core.compose import segments
from wholefeed.core.compose.segments import (
    FINAL_BLOCK,
    GZIP_HEADER,
    Sealed,
    TextDigest,
    combine,
    crc_shift,
    gzip_trailer,
    inflate,
    seal,
)

TEXTS = st.lists(st.binary(max_size=3000) | st.binary(max_size=20).map(lambda part: part * 500), max_size=8)


def a_gzip_answer(parts: list[Sealed]) -> bytes:
    crc = length = 0
    for part in parts:
        crc = combine(crc, part.crc32, part.length)
        length += part.length
    blocks = b"".join(part.block for part in parts)
    return GZIP_HEADER + blocks + FINAL_BLOCK + gzip_trailer(crc, length)


@given(TEXTS)
def test_joined_blocks_decode_as_one_gzip_stream(texts: list[bytes]) -> None:
    """docs/design.md#segments; RFC 1952: no recompression whatever the answer's size."""
    answer = a_gzip_answer([seal(text) for text in texts])

    assert gzip.decompress(answer) == b"".join(texts)
    assert zlib.decompress(answer, wbits=31) == b"".join(texts)
    assert isal_zlib.decompress(answer, wbits=31) == b"".join(texts)


@given(TEXTS)
def test_joined_blocks_decode_in_any_order_and_number(texts: list[bytes]) -> None:
    """Sealed blocks make one valid gzip stream in whatever order they are joined, as an answer joins them."""
    parts = [seal(text) for text in texts]

    answer = a_gzip_answer([*parts[::-1], *parts])

    assert gzip.decompress(answer) == b"".join([*texts[::-1], *texts])


@given(st.binary(max_size=5000), st.binary(max_size=5000))
def test_combined_crc_is_that_of_the_whole(first: bytes, second: bytes) -> None:
    """The gzip trailer's checksum, computed from those of two parts, is that of the joined text."""
    combined = combine(zlib.crc32(first), zlib.crc32(second), len(second))

    assert combined == zlib.crc32(first + second)


def test_combined_crc_holds_for_lengths_beyond_32_bits() -> None:
    """RFC 1952, section 2.3.1: the length is kept modulo 2^32, the CRC is not."""
    zeros_20 = bytes(1 << 20)
    crc = zlib.crc32(zeros_20)
    long_crc = crc
    for doubling in range(13):
        long_crc = combine(long_crc, long_crc, 1 << (20 + doubling))

    in_pieces = 0
    for _ in range(1 << 13):
        in_pieces = combine(in_pieces, crc, len(zeros_20))

    assert long_crc == in_pieces
    assert gzip_trailer(0, (1 << 33) + 5) == b"\0\0\0\0\x05\0\0\0"


@given(st.integers(min_value=0, max_value=1 << 40))
def test_shift_of_a_length_is_the_operator_that_earlier_versions_combine_by(length: int) -> None:
    """x^(8 * length) modulo the polynomial, by squaring: what is stored beside a text stays right."""

    def times(a: int, b: int) -> int:
        product = 0
        for bit in range(31, -1, -1):
            product ^= b if a >> bit & 1 else 0
            b = b >> 1 ^ (0xEDB88320 if b & 1 else 0)
        return product

    operator, power, left = 1 << 31, 1 << 23, length  # 1, and x^8
    while left:
        operator = times(operator, power) if left & 1 else operator
        power, left = times(power, power), left >> 1

    assert crc_shift(length) == operator


def test_empty_text_makes_an_empty_block() -> None:
    """A head or segment without text adds no bytes, and the answer around it still decodes."""
    sealed = seal(b"")

    assert (sealed.block, sealed.length, sealed.crc32) == (b"", 0, 0)
    assert inflate(sealed.block, 0, 0) == b""
    assert gzip.decompress(a_gzip_answer([sealed, seal(b"x"), sealed])) == b"x"


@given(st.binary(max_size=4000) | st.binary(max_size=20).map(lambda part: part * 500))
def test_inflates_to_what_was_sealed(text: bytes) -> None:
    """Any text comes back byte for byte, with the checksum that was noted for it."""
    sealed = seal(text)

    assert inflate(sealed.block, sealed.length, sealed.crc32) == text
    assert sealed.crc32 == zlib.crc32(text)


def by_itself(text: bytes) -> bytes:
    """What a deflater makes that has made nothing else."""
    deflater = isal_zlib.compressobj(2, isal_zlib.DEFLATED, -15)
    return deflater.compress(text) + deflater.flush(isal_zlib.Z_FULL_FLUSH) if text else b""


@given(TEXTS)
def test_a_block_depends_on_nothing_that_was_sealed_before(texts: list[bytes]) -> None:
    """One deflater makes many blocks: the same text gives the same one, and none refers to another's."""
    assert [seal(text).block for text in [*texts, *texts[::-1]]] == list(
        map(by_itself, [*texts, *texts[::-1]])
    )


def test_a_deflater_is_not_used_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts in 32 bits: before that runs over there is a new one, and its blocks are the same."""
    made: list[object] = []

    def counted(*arguments: int) -> object:
        made.append(new(*arguments))
        return made[-1]

    new = isal_zlib.compressobj
    monkeypatch.setattr(segments, "_idle_deflaters", [])
    monkeypatch.setattr(segments, "_RENEWED_BYTES", 2500)
    monkeypatch.setattr(isal_zlib, "compressobj", counted)
    text = bytes(range(250)) * 4
    blocks = [seal(text).block for _ in range(7)]
    assert len(made) == 3
    assert blocks == [by_itself(text)] * 7


def test_threads_do_not_share_a_deflater() -> None:
    """Texts that are sealed at the same moment do not mix."""
    texts = [bytes([number]) * (1000 + number) for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        blocks = [sealed.block for sealed in threads.map(seal, texts * 5)]
    assert blocks == list(map(by_itself, texts)) * 5


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 240), max_size=6), st.data())
def test_a_text_has_one_digest_however_it_is_cut(
    parts: list[bytes], cuts: list[int], data: st.DataObject
) -> None:
    """docs/design.md#segments: the ETag is of the bytes, whatever segments they come from."""
    text, one, other = b"".join(parts), TextDigest(), TextDigest()
    for part in parts:
        one.add(seal(part))
    for start, end in pairwise([0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]):
        other.add_text(text[start:end])
    assert one.bytes() == other.bytes()
    changed = data.draw(st.binary(max_size=250).filter(lambda each: each != text))
    another = TextDigest()
    another.add_text(changed)
    assert another.bytes() != one.bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda block: block[:-3],
        lambda block: block[: len(block) // 2],
        lambda block: block + b"x",
        lambda block: block + FINAL_BLOCK,
        lambda block: block[:30] + b"\xff" + block[31:],
        lambda _: b"",
    ],
    ids=["tail cut", "half", "junk behind", "ends early", "a byte changed", "nothing"],
)
def test_a_damaged_block_is_refused(damage: object) -> None:
    """Row 70: a stored block that was cut, changed or added to is an error, never served as entries."""
    sealed = seal(b"".join(b"entry %d;" % n for n in range(500)))
    assert callable(damage)

    with pytest.raises(ValueError, match="damaged block"):
        inflate(damage(sealed.block), sealed.length, sealed.crc32)


def test_wrong_length_or_crc_is_refused() -> None:
    """Row 70: a block that decodes, but not to the length and checksum noted for it, is refused too."""
    sealed = seal(b"some text")

    for length, crc in ((8, sealed.crc32), (10, sealed.crc32), (9, sealed.crc32 ^ 1)):
        with pytest.raises(ValueError, match="damaged block"):
            inflate(sealed.block, length, crc)
