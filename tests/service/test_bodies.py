"""wholefeed.service.bodies: one body, from any parts."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.snapshots import a_segment, a_snapshot, hold
from wholefeed.core.compose.compose import EPILOGUE
from wholefeed.core.compose.segments import seal
from wholefeed.core.model import Family, segment_separator
from wholefeed.service.bodies import SLICE_BYTES, Body, BodyExcerpt, BodyPart, StreamedText
from wholefeed.service.memory import CachedFeed, Memory
from wholefeed.store.rows import SegmentRow

NO_STORE: Any = None
"""A read from it fails: all sent text is in memory."""
JOINT = segment_separator(Family.RSS)


async def yielding(texts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for text in texts:
        yield text


def stored(number: int, text: bytes) -> tuple[SegmentRow, bytes]:
    sealed = seal(text)
    row = replace(
        a_segment(number),
        length=sealed.length,
        crc32=sealed.crc32,
        digest=sealed.digest,
        deflated_bytes=len(sealed.block),
    )
    return row, sealed.block


def holding(blocks: Mapping[int, bytes]) -> CachedFeed:
    held = hold(Memory(1 << 20), a_snapshot(1))
    assert held is not None
    for number, block in blocks.items():
        held.keep_block(number, block)
    return held


def read(body: Body, held: CachedFeed | None = None) -> tuple[bytes, list[bytes]]:
    """Return a reader's text, and the pieces sent."""

    async def received() -> list[bytes]:
        return [piece async for piece in body.pieces(NO_STORE, held)]

    pieces = asyncio.run(received())
    whole = b"".join(pieces)
    return (gzip.decompress(whole) if body.is_gzip else whole), pieces


TEXTS = st.lists(st.binary(min_size=1, max_size=200), max_size=4)


@given(st.binary(max_size=99), TEXTS, st.booleans())
def test_it_is_the_same_text_whatever_its_parts_are(
    prologue: bytes, texts: list[bytes], is_gzip: bool
) -> None:
    """docs/design.md#segments: stored, sealed, cut out, or made while sent; in pieces or at once."""
    expected = prologue + JOINT.join(texts) + EPILOGUE[Family.RSS]
    rows = [stored(number, text) for number, text in enumerate(texts)]
    outer = [stored(len(rows) + number, b"x" + text + b"y") for number, text in enumerate(texts)]
    blocks = {row.id: block for row, block in (*rows, *outer)}
    cuts = [BodyExcerpt(row, ((1, row.length - 1),)) for row, _ in outer]
    made = [StreamedText(partial(yielding, [text]), b"digest", ("key", at)) for at, text in enumerate(texts)]
    kinds: list[Sequence[BodyPart]] = [[row for row, _ in rows], [seal(text) for text in texts], cuts, made]
    for parts in kinds:
        body = Body(Family.RSS, prologue, tuple(parts), is_gzip)
        text, pieces = read(body, holding(blocks))
        assert text == expected
        assert body.length in (None, sum(map(len, pieces)))
        assert body.text_bytes in (None, len(expected))
    whole = Body(Family.RSS, prologue, tuple(row for row, _ in rows), is_gzip)
    joined = whole.join(blocks)
    assert joined == b"".join(read(whole, holding(blocks))[1])
    assert whole.etag == Body(Family.RSS, prologue, tuple(seal(text) for text in texts), is_gzip).etag
    assert texts == [] or whole.join({}) is None


@pytest.mark.parametrize("is_gzip", [True, False])
def test_the_tag_is_that_of_the_text_and_not_of_its_segments(is_gzip: bool) -> None:
    """RFC 9110, 8.8.1 and 8.8.3: a tag is weak where the coded bytes differ."""
    one = Body(Family.RSS, b"<rss>", (seal(b"ab" + JOINT + b"c"),), is_gzip)
    two = Body(Family.RSS, b"<rss>", (seal(b"ab"), seal(b"c")), is_gzip)
    other = Body(Family.RSS, b"<rss>", (seal(b"ab"), seal(b"d")), is_gzip)
    assert one.etag == two.etag != other.etag
    assert one.etag.startswith("W/") is is_gzip


@pytest.mark.parametrize("is_gzip", [True, False])
def test_no_piece_is_longer_than_one_write(is_gzip: bool) -> None:
    """docs/faults.md row 65: a slow reader holds one piece and not the feed."""
    row, block = stored(1, b"word " * SLICE_BYTES)
    text, pieces = read(Body(Family.RSS, b"p" * (SLICE_BYTES + 1), (row, row), is_gzip), holding({1: block}))
    assert text.count(b"word ") == 2 * SLICE_BYTES
    assert max(map(len, pieces)) <= SLICE_BYTES + len(JOINT) + len(seal(JOINT).block)


def test_what_was_made_is_made_once() -> None:
    """A small replay stays in memory deflated; a larger one is made each time."""
    made = list[int]()

    async def texts() -> AsyncIterator[bytes]:
        made.append(1)
        yield b"entry"

    body, held = Body(Family.RSS, b"", (StreamedText(texts, b"digest", "key"),), True), holding({})
    assert read(body, held)[0] == read(body, held)[0] == b"entry" + EPILOGUE[Family.RSS]
    assert made == [1]
