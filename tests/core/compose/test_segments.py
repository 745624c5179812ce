"""Segments: their documents, and the joining of sealed texts."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable
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
    Build,
    Keep,
    Placed,
    Sealed,
    TextDigest,
    crc_shift,
    gzip_end,
    gzip_trailer,
    inflate,
    plan,
    seal,
)

TARGET = 1000

PLACED = st.builds(
    Placed,
    document=st.just(0),
    segment=st.none() | st.integers(1, 5),
    is_clean=st.booleans(),
    is_settled=st.booleans(),
    live_bytes=st.integers(0, 600) | st.just(5000),
)
FEEDS = st.lists(PLACED, max_size=20).map(
    lambda placed: [one._replace(document=100 + at) for at, one in enumerate(placed)]
)


def a_document(number: int, **changes: object) -> Placed:
    return Placed(number, None, False, True, 100)._replace(**changes)  # type: ignore[arg-type]


class Executed:
    """A store's result of a plan: new segments, links and clean documents."""

    def __init__(self, documents: list[Placed]) -> None:
        self.documents = documents
        self.built_bytes = 0
        self.next = 1000

    def run(self) -> list[Keep | Build]:
        steps = plan(self.documents, target_bytes=TARGET)
        links: dict[int, int] = {}
        for step in steps:
            if isinstance(step, Build):
                links |= dict.fromkeys(step.documents, self.next)
                self.next += 1
        kept = {step.segment for step in steps if isinstance(step, Keep)}
        self.built_bytes += sum(d.live_bytes for d in self.documents if d.document in links)
        self.documents = [
            d._replace(segment=links.get(d.document, d.segment if d.segment in kept else None), is_clean=True)
            for d in self.documents
        ]
        return steps


def contents(documents: list[Placed], steps: list[Keep | Build]) -> list[int]:
    out: list[int] = []
    for step in steps:
        match step:
            case Build(numbers):
                out.extend(numbers)
            case Keep(segment):
                out.extend(d.document for d in documents if d.segment == segment and d.live_bytes)
    return out


@given(FEEDS, st.integers(1, 1200))
def test_every_live_document_is_in_one_segment_in_order(documents: list[Placed], live_bytes: int) -> None:
    """R20: no document is left out of an answer, sent twice, or misplaced; readers never get a replaced copy.
    Only settled archives share a segment, up to its target size. Work is proportional to the change.
    """
    steps = plan(documents, target_bytes=TARGET)
    assert contents(documents, steps) == [d.document for d in documents if d.live_bytes]
    kept = {step.segment for step in steps if isinstance(step, Keep)}
    assert not kept & {d.segment for d in documents if not d.is_clean}
    by_number = {d.document: d for d in documents}
    for step in steps:
        members = [by_number[number] for number in step.documents] if isinstance(step, Build) else []
        if len(members) > 1:
            assert all(member.is_settled for member in members)
            assert sum(member.live_bytes for member in members) <= TARGET
        assert members or isinstance(step, Keep)

    feed = Executed(documents)
    feed.run()
    feed.built_bytes = 0
    assert all(isinstance(step, Keep) for step in feed.run())
    feed.documents.insert(0, a_document(1, live_bytes=live_bytes))
    assert sum(isinstance(step, Build) for step in feed.run()) == 1
    assert feed.built_bytes <= max(live_bytes, TARGET)


SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=120)


@given(SIZES | SIZES.map(sorted) | SIZES.map(lambda sizes: sorted(sizes, reverse=True)), st.booleans())
def test_each_byte_is_sealed_logarithmically_often(sizes: list[int], at_front: bool) -> None:
    """The documented cost, for growth at either end; segments stay few."""
    feed = Executed([])
    for number, size in enumerate(sizes):
        feed.documents.insert(0 if at_front else number, a_document(number, live_bytes=size))
        feed.run()

    assert feed.built_bytes <= sum(sizes) * (math.log(TARGET / min(sizes), 1.5) + 2)
    segments = len({d.segment for d in feed.documents})
    assert segments <= 4 * sum(sizes) / TARGET + math.log2(TARGET / min(sizes)) + 2


def stored(number: int, live_bytes: int, segment: int = 7) -> Placed:
    return Placed(number, segment, is_clean=True, is_settled=True, live_bytes=live_bytes)


def new(number: int, live_bytes: int) -> Placed:
    return a_document(number, live_bytes=live_bytes)


@pytest.mark.parametrize(
    ("documents", "steps"),
    [
        ([new(n, 300) for n in range(1, 8)], [Build((1,)), Build((2, 3, 4)), Build((5, 6, 7))]),
        ([new(1, 50), stored(2, 101)], [Build((1,)), Keep(7)]),
        ([new(1, 51), stored(2, 101)], [Build((1, 2))]),
        ([stored(2, 101), new(1, 50)], [Keep(7), Build((1,))]),
        ([stored(2, 101), new(1, 51)], [Build((2, 1))]),
        ([new(1, 500), stored(2, 500)], [Build((1,)), Keep(7)]),
        ([new(1, 500), stored(2, 499)], [Build((1, 2))]),
        ([new(1, 50), stored(2, 60, 8), stored(3, 200)], [Build((1, 2, 3))]),
        ([new(1, 30), stored(2, 60, 8), stored(3, 200)], [Build((1, 2)), Keep(7)]),
        ([stored(1, 100), stored(3, 100)], [Keep(7)]),
        (
            [stored(1, 100), a_document(2, is_settled=False), stored(3, 100)],
            [Build((1,)), Build((2,)), Build((3,))],
        ),
        ([stored(1, 100), a_document(2, segment=7, live_bytes=0)], [Build((1,))]),
    ],
)
def test_a_stored_segment_is_kept_unless_half_its_size_comes_beside_it(
    documents: list[Placed], steps: list[Keep | Build]
) -> None:
    """From the old end on, up to half the target, also after growth. A document in between parts a segment;
    one without live entries leaves it.
    """
    assert plan(documents, target_bytes=TARGET) == steps


TEXTS = st.lists(st.binary(max_size=3000) | st.binary(max_size=20).map(lambda part: part * 500), max_size=8)


def a_gzip_answer(parts: list[Sealed]) -> bytes:
    return GZIP_HEADER + b"".join(part.block for part in parts) + gzip_end(parts)


@given(TEXTS)
def test_joined_blocks_decode_as_one_gzip_stream(texts: list[bytes]) -> None:
    """docs/design.md#segments; RFC 1952: no recompression for any length of answer."""
    sealed = [seal(text) for text in texts]
    assert all(
        inflate(each.block, each.length, each.crc32) == text for each, text in zip(sealed, texts, strict=True)
    )
    answer = a_gzip_answer(sealed)

    assert gzip.decompress(answer) == b"".join(texts)
    assert zlib.decompress(answer, wbits=31) == b"".join(texts)
    assert isal_zlib.decompress(answer, wbits=31) == b"".join(texts)


@given(st.integers(min_value=0, max_value=1 << 40))
def test_shift_of_a_length_is_the_operator_that_earlier_versions_combine_by(length: int) -> None:
    """x^(8 * length) modulo the polynomial, by squaring: stored operators stay right."""

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
    assert gzip_trailer(0, length)[4:] == (length % (1 << 32)).to_bytes(4, "little"), "RFC 1952, 2.3.1"


def by_itself(text: bytes) -> bytes:
    """The block of a new deflater."""
    deflater = isal_zlib.compressobj(2, isal_zlib.DEFLATED, -15)
    return deflater.compress(text) + deflater.flush(isal_zlib.Z_FULL_FLUSH) if text else b""


@given(TEXTS)
def test_a_block_depends_on_nothing_that_was_sealed_before(texts: list[bytes]) -> None:
    """One deflater makes equal blocks of equal texts, without references to others."""
    assert [seal(text).block for text in [*texts, *texts[::-1]]] == list(
        map(by_itself, [*texts, *texts[::-1]])
    )


def test_a_deflater_is_not_used_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its counter has 32 bits; a new deflater makes equal blocks."""
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
    """Texts sealed at the same moment do not mix."""
    texts = [bytes([number]) * (1000 + number) for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        blocks = [sealed.block for sealed in threads.map(seal, texts * 5)]
    assert blocks == list(map(by_itself, texts)) * 5


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 240), max_size=6), st.data())
def test_a_text_has_one_digest_however_it_is_cut(
    parts: list[bytes], cuts: list[int], data: st.DataObject
) -> None:
    """docs/design.md#segments: the ETag covers the bytes, for any division into segments."""
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
def test_a_damaged_block_is_refused(damage: Callable[[bytes], bytes]) -> None:
    """Row 70: a cut, changed or extended block, or one with another length or checksum than stored, is never
    served as entries.
    """
    sealed = seal(b"".join(b"entry %d;" % n for n in range(500)))
    with pytest.raises(ValueError, match="damaged block"):
        inflate(damage(sealed.block), sealed.length, sealed.crc32)
    for length, crc in ((sealed.length - 1, sealed.crc32), (sealed.length, sealed.crc32 ^ 1)):
        with pytest.raises(ValueError, match="damaged block"):
            inflate(sealed.block, length, crc)
