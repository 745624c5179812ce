"""Segments: which documents share one, and how sealed texts are joined."""

from __future__ import annotations

import gzip
import math
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
    Build,
    Keep,
    Placed,
    Sealed,
    TextDigest,
    combine,
    crc_shift,
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
    """What the store makes of a plan: new numbers for new segments, links and clean documents."""

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


@given(FEEDS)
def test_every_live_document_is_in_one_segment_in_order(documents: list[Placed]) -> None:
    """R20: no document with live entries is left out of an answer, sent twice, or out of its place."""
    steps = plan(documents, target_bytes=TARGET)

    assert contents(documents, steps) == [d.document for d in documents if d.live_bytes]
    assert all(step.documents for step in steps if isinstance(step, Build))


@given(FEEDS)
def test_a_segment_that_holds_a_changed_document_is_not_kept(documents: list[Placed]) -> None:
    """A segment with an entry that was replaced is built anew; else readers would get the old copy."""
    steps = plan(documents, target_bytes=TARGET)

    kept = {step.segment for step in steps if isinstance(step, Keep)}
    assert not kept & {d.segment for d in documents if not d.is_clean}


@given(FEEDS)
def test_only_settled_neighbours_within_the_target_share(documents: list[Placed]) -> None:
    """Only settled archives share a segment, and only up to its target size, so that a rebuild stays
    small."""
    by_number = {d.document: d for d in documents}

    for step in plan(documents, target_bytes=TARGET):
        if isinstance(step, Build) and len(step.documents) > 1:
            members = [by_number[number] for number in step.documents]
            assert all(member.is_settled for member in members)
            assert sum(member.live_bytes for member in members) <= TARGET


@given(FEEDS)
def test_planning_again_after_executing_keeps_everything(documents: list[Placed]) -> None:
    """A feed that did not change has no segment rebuilt by the next refresh."""
    feed = Executed(documents)
    feed.run()

    assert all(isinstance(step, Keep) for step in feed.run())


@given(FEEDS, st.integers(1, 1200))
def test_a_document_put_in_front_builds_one_segment(documents: list[Placed], live_bytes: int) -> None:
    """Work is proportional to the change: one segment, of at most the target or the document's own size."""
    feed = Executed(documents)
    feed.run()
    feed.built_bytes = 0
    feed.documents.insert(0, a_document(1, live_bytes=live_bytes))

    steps = feed.run()

    assert sum(isinstance(step, Build) for step in steps) == 1
    assert feed.built_bytes <= max(live_bytes, TARGET)


SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=120)


@given(SIZES | SIZES.map(sorted) | SIZES.map(lambda sizes: sorted(sizes, reverse=True)), st.booleans())
def test_each_byte_is_sealed_logarithmically_often(sizes: list[int], at_front: bool) -> None:
    """The documented cost, whether a feed grows at its new or its old end; and the segments stay few."""
    feed = Executed([])
    for number, size in enumerate(sizes):
        feed.documents.insert(0 if at_front else number, a_document(number, live_bytes=size))
        feed.run()

    assert feed.built_bytes <= sum(sizes) * (math.log(TARGET / min(sizes), 1.5) + 2)
    segments = len({d.segment for d in feed.documents})
    assert segments <= 4 * sum(sizes) / TARGET + math.log2(TARGET / min(sizes)) + 2


def test_new_small_archives_fill_segments_from_the_old_end() -> None:
    """A new archive in front of full segments is placed without moving the older ones."""
    documents = [a_document(n, live_bytes=300) for n in range(1, 8)]

    assert plan(documents, target_bytes=TARGET) == [Build((1,)), Build((2, 3, 4)), Build((5, 6, 7))]


def test_a_kept_segment_is_drawn_in_only_by_a_neighbour_of_half_its_size() -> None:
    """A stored segment is rewritten for a new neighbour only when that brings at least half its bytes."""
    kept = a_document(2, segment=7, is_clean=True, live_bytes=101)

    assert plan([a_document(1, live_bytes=50), kept], target_bytes=TARGET) == [Build((1,)), Keep(7)]
    assert plan([a_document(1, live_bytes=51), kept], target_bytes=TARGET) == [Build((1, 2))]
    assert plan([kept, a_document(1, live_bytes=50)], target_bytes=TARGET) == [Keep(7), Build((1,))]
    assert plan([kept, a_document(1, live_bytes=51)], target_bytes=TARGET) == [Build((2, 1))]


def test_a_segment_of_half_the_target_is_left_alone() -> None:
    """From half the target size on a stored segment is kept: new archives do not make it be written again."""
    for live_bytes, step in ((500, Keep(7)), (499, Build((1, 2)))):
        kept = a_document(2, segment=7, is_clean=True, live_bytes=live_bytes)

        assert plan([a_document(1, live_bytes=500), kept], target_bytes=TARGET)[-1] == step


def test_a_document_that_stands_between_two_of_one_segment_breaks_it() -> None:
    """R20: when a new document comes between two that share a segment, they are parted to keep the order."""
    one, two = (a_document(n, segment=7, is_clean=True) for n in (1, 3))

    assert plan([one, two], target_bytes=TARGET) == [Keep(7)]
    assert plan([one, a_document(2, is_settled=False), two], target_bytes=TARGET) == [
        Build((1,)),
        Build((2,)),
        Build((3,)),
    ]


def test_a_document_that_lost_its_last_live_entry_rebuilds_its_segment() -> None:
    """The segment of a document that lost all its entries is built without them, so that they leave the
    answer."""
    one = a_document(1, segment=7, is_clean=True)
    lost = a_document(2, segment=7, is_clean=False, live_bytes=0)

    assert plan([one, lost], target_bytes=TARGET) == [Build((1,))]


def test_what_is_drawn_in_draws_in_the_next() -> None:
    """The rule of half the size is applied to what has grown, so that small segments do not pile up."""
    kept = [
        a_document(2, segment=8, is_clean=True, live_bytes=60),
        a_document(3, segment=7, is_clean=True, live_bytes=200),
    ]

    assert plan([a_document(1, live_bytes=50), *kept], target_bytes=TARGET) == [Build((1, 2, 3))]
    assert plan([a_document(1, live_bytes=30), *kept], target_bytes=TARGET) == [Build((1, 2)), Keep(7)]


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
