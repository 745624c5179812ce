"""wholefeed.fetch.exchange: what a body decodes to, and what is refused."""

from __future__ import annotations

import gzip
import os
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.fetch.exchange import MAX_MEMBERS, DecodeError, Decoder, coding_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd
TEXT = b"<entry><title>one of many</title></entry>\n" * 500
NOISE = os.urandom(200_000)


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw deflate": raw_deflate,
    "br": lambda data: bytes(brotli.compress(data, quality=4)),
    "zstd": zstd.compress,
}


def coding_named(coder: str) -> str:
    return coder.removeprefix("raw ")


def decoded(coding: str, wire: bytes, *, chunk_bytes: int = 1 << 16, limit_bytes: int = 1 << 24) -> bytes:
    decoder = Decoder(coding, limit_bytes=limit_bytes)
    body = b"".join(
        piece
        for start in range(0, len(wire), chunk_bytes)
        for piece in decoder.feed(wire[start : start + chunk_bytes])
    )
    decoder.finish()
    return body


def slug_of(coding: str, wire: bytes, *, chunk_bytes: int = 1 << 16, limit_bytes: int = 1 << 24) -> str:
    with pytest.raises(DecodeError) as caught:
        decoded(coding, wire, chunk_bytes=chunk_bytes, limit_bytes=limit_bytes)
    return caught.value.slug


@given(
    body=st.binary(max_size=3000) | st.binary(max_size=30).map(lambda part: part * 500),
    chunk_bytes=st.integers(1, 400),
    coder=st.sampled_from(sorted(CODERS)),
)
def test_decoding_undoes_coding(body: bytes, chunk_bytes: int, coder: str) -> None:
    """In every coding and chunk size a body comes out byte for byte."""
    assert decoded(coding_named(coder), CODERS[coder](body), chunk_bytes=chunk_bytes) == body


def test_identity_passes_through_as_it_came() -> None:
    """What is not coded is counted and not copied: it was as large when it came."""
    decoder = Decoder("identity", limit_bytes=1 << 20)
    pieces = list(decoder.feed(NOISE))
    decoder.finish()
    assert len(pieces) == 1
    assert pieces[0] is NOISE


@pytest.mark.parametrize("coder", CODERS)
def test_a_truncated_body_is_refused(coder: str) -> None:
    """docs/faults.md row 37; docs/design.md#fetching: aiohttp takes it for whole."""
    wire = CODERS[coder](TEXT)
    assert {slug_of(coding_named(coder), wire[:-cut]) for cut in (1, 3, len(wire) // 2)} == {"content-coding"}


@pytest.mark.parametrize("at", [-8, -5, -4, -1])
def test_a_wrong_checksum_or_length_of_gzip_is_refused(at: int) -> None:
    """docs/faults.md row 37; RFC 1952, section 2.3.1."""
    wire = bytearray(gzip.compress(TEXT))
    wire[at] ^= 1
    assert slug_of("gzip", bytes(wire)) == "content-coding"


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 16])
@pytest.mark.parametrize("junk", [b"junk", b"\0", b"\0" * 512, b"\n"])
@pytest.mark.parametrize("coder", CODERS)
def test_what_stands_behind_the_end_is_refused(coder: str, junk: bytes, chunk_bytes: int) -> None:
    """docs/faults.md row 37, zero padding too."""
    wire = CODERS[coder](TEXT) + junk
    assert slug_of(coding_named(coder), wire, chunk_bytes=chunk_bytes) == "content-coding"


@pytest.mark.parametrize("coder", ["deflate", "br"])
def test_a_second_stream_is_refused_where_the_coding_has_one(coder: str) -> None:
    """docs/faults.md row 37."""
    assert slug_of(coder, CODERS[coder](TEXT) * 2) == "content-coding"


@pytest.mark.parametrize("chunk_bytes", [1, 50, 1 << 16])
@pytest.mark.parametrize("coder", ["gzip", "zstd"])
def test_members_are_joined(coder: str, chunk_bytes: int) -> None:
    """RFC 1952, section 2.2; RFC 8878, section 3."""
    wire = CODERS[coder](b"one ") + CODERS[coder](b"") + CODERS[coder](b"two")
    assert decoded(coder, wire, chunk_bytes=chunk_bytes) == b"one two"


@pytest.mark.parametrize("coder", ["gzip", "zstd"])
def test_too_many_members_are_refused_at_once(coder: str) -> None:
    """docs/faults.md row 37: 100,000 empty members."""
    empty = CODERS[coder](b"")
    assert decoded(coder, empty * MAX_MEMBERS) == b""
    started = time.perf_counter()
    assert slug_of(coder, empty * 100_000) == "content-coding"
    assert time.perf_counter() - started < 0.5


def test_a_window_larger_than_content_codings_have_is_refused() -> None:
    """RFC 9659, section 3: 8 MiB."""
    wire = zstd.compress(NOISE * 100, options={zstd.CompressionParameter.window_log: 25})
    assert slug_of("zstd", wire, limit_bytes=1 << 28) == "content-coding"


@pytest.mark.parametrize("coder", CODERS)
def test_a_bomb_is_refused_in_little_time_and_memory(coder: str) -> None:
    """docs/faults.md row 36; docs/design.md#fetching: the same through aiohttp took 2.1 GiB."""
    bomb = CODERS[coder](b"\0" * (64 << 20))
    decoder = Decoder(coding_named(coder), limit_bytes=32 << 20)
    tracemalloc.start()
    started = time.perf_counter()
    with pytest.raises(DecodeError) as caught:
        for _ in decoder.feed(bomb):
            pass
    elapsed_seconds = time.perf_counter() - started
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.slug == "too-large"
    assert decoder.decoded_bytes < (32 << 20) + (1 << 20)
    assert peak_bytes < 4 << 20
    assert elapsed_seconds < 1


def test_the_limit_is_for_decoded_bytes() -> None:
    """docs/faults.md row 36."""
    assert decoded("identity", NOISE, limit_bytes=len(NOISE)) == NOISE
    assert slug_of("identity", NOISE, limit_bytes=len(NOISE) - 1) == "too-large"
    assert slug_of("gzip", gzip.compress(NOISE), limit_bytes=len(NOISE) - 1) == "too-large"


def test_the_ratio_counts_from_one_mebibyte_on() -> None:
    """docs/design.md#limits: 200:1 after 1 MiB."""
    small = gzip.compress(b"\0" * (1 << 20))
    assert (1 << 20) / len(small) > 200
    assert len(decoded("gzip", small)) == 1 << 20
    assert slug_of("gzip", gzip.compress(b"\0" * ((1 << 20) + 1))) == "too-large"


@pytest.mark.parametrize(
    ("fields", "coding"),
    [
        ((), "identity"),
        (("identity",), "identity"),
        (("GZip",), "gzip"),
        (("x-gzip",), "gzip"),
        (("identity, br",), "br"),
        (("", " deflate "), "deflate"),
        (("zstd",), "zstd"),
    ],
)
def test_the_coding_is_read_from_its_fields(fields: tuple[str, ...], coding: str) -> None:
    """RFC 9110, section 8.4."""
    assert coding_of(fields) == coding


@pytest.mark.parametrize(
    "fields", [("gzip, gzip",), ("gzip", "br"), ("compress",), ("utf-8",), ("x" * 9999,)]
)
def test_double_and_unknown_codings_are_refused(fields: tuple[str, ...]) -> None:
    """docs/faults.md row 37."""
    with pytest.raises(DecodeError) as caught:
        coding_of(fields)
    assert caught.value.slug == "content-coding"
    assert len(str(caught.value)) < 200
