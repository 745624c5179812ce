"""wholefeed.fetch.codings: decoded bodies, and refusals."""

from __future__ import annotations

import codecs
import gzip
import os
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable, Sequence

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.fetch.codings import (
    MAX_CODINGS,
    MAX_MEMBERS,
    RATIO_FREE_BYTES,
    SLICE_BYTES,
    DecodeError,
    Decoder,
    codings_of,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd
TEXT = b"<entry><title>one of many</title></entry>\n" * 500
NOISE = b"\0" + os.urandom(200_000)


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
    return read_body([coding], wire, chunk_bytes=chunk_bytes, limit_bytes=limit_bytes)[0]


def read_body(
    fields: Sequence[str], wire: bytes, *, chunk_bytes: int = 1 << 16, limit_bytes: int = 1 << 24
) -> tuple[bytes, set[str]]:
    """Return the decoded body for these Content-Encoding fields, and its breaches of HTTP."""
    decoder = Decoder(codings_of(fields), limit_bytes=limit_bytes)
    body = bytearray()
    for start in range(0, len(wire), chunk_bytes):
        for piece in decoder.feed(wire[start : start + chunk_bytes]):
            body += piece
    for piece in decoder.finish():
        body += piece
    assert len(body) == decoder.decoded_bytes
    return bytes(body), set(decoder.repairs)


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
    """In every coding and chunk size, byte for byte."""
    assert decoded(coding_named(coder), CODERS[coder](body), chunk_bytes=chunk_bytes) == body


def test_identity_passes_through_as_it_came() -> None:
    """An uncoded body is counted and not copied: it was as large when it came."""
    decoder = Decoder((), limit_bytes=1 << 20)
    pieces = [*decoder.feed(NOISE), *decoder.finish()]
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
@pytest.mark.parametrize("junk", [b"junk", b"\0", b"\0" * 512, b"\n", b"\x1f", b"\x28\xb5\x2f"])
@pytest.mark.parametrize("coder", sorted({*CODERS} - {"br"}))
def test_what_stands_behind_the_end_is_left_out(coder: str, junk: bytes, chunk_bytes: int) -> None:
    """docs/faults.md row 152: zero padding, a line break, the beginning of no further member."""
    wire = CODERS[coder](TEXT) + junk
    assert read_body([coding_named(coder)], wire, chunk_bytes=chunk_bytes) == (TEXT, {"coding-padding"})


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 16])
def test_what_stands_behind_the_end_of_brotli_is_refused(chunk_bytes: int) -> None:
    """docs/faults.md row 37: the library does not report the end, so all of them are refused."""
    assert slug_of("br", CODERS["br"](TEXT) + b"\n", chunk_bytes=chunk_bytes) == "content-coding"


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
    decoder = Decoder((coding_named(coder),), limit_bytes=32 << 20)
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
    ("fields", "codings"),
    [
        ((), ()),
        (("identity",), ()),
        (("GZip",), ("gzip",)),
        (("x-gzip",), ("gzip",)),
        (("identity, br",), ("br",)),
        (("", " deflate "), ("deflate",)),
        (("zstd",), ("zstd",)),
        (("gzip", "br"), ("gzip", "br")),
        (("gzip;q=1", '"br"'), ("gzip", "br")),
        (("UTF-8",), ("utf-8",)),
    ],
)
def test_the_codings_are_read_from_their_fields(fields: tuple[str, ...], codings: tuple[str, ...]) -> None:
    """RFC 9110, section 8.4; quotes and parameters, unknown to it, are dropped."""
    assert codings_of(fields) == codings


PAGE = b'<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"></rss>\n'
LIE = {"content-coding"}


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1 << 16])
@pytest.mark.parametrize(
    "name",
    [
        "utf-8",
        "UTF8",
        "none",
        "8bit",
        "binary",
        "chunked",
        "text/xml",
        "application/x-gzip",
        "sdch",
        "x" * 999,
    ],
)
def test_a_name_that_is_no_coding_says_nothing(name: str, chunk_bytes: int) -> None:
    """docs/faults.md row 152: plain bytes stay plain, coded ones with a signature are decoded."""
    assert read_body([name], PAGE, chunk_bytes=chunk_bytes) == (PAGE, LIE)
    assert read_body([name], gzip.compress(PAGE), chunk_bytes=chunk_bytes) == (PAGE, LIE)
    assert read_body([name], zstd.compress(PAGE), chunk_bytes=chunk_bytes) == (PAGE, LIE)


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1 << 16])
@pytest.mark.parametrize("name", ["gzip", "x-gzip", "deflate", "br", "zstd", "gzip, gzip", "gzip, br"])
@pytest.mark.parametrize(
    "body",
    [
        PAGE,
        codecs.BOM_UTF8 + PAGE,
        PAGE.decode().encode("utf-16"),
        PAGE.decode().encode("utf-16-le"),
        b"\n\n" + PAGE,
        b'{"version": "https://jsonfeed.org/version/1.1"}',
        b"User-agent: *\nDisallow: /private/files/\n",
    ],
    ids=["XML", "with a mark", "UTF-16", "UTF-16 without a mark", "behind lines", "JSON", "robots.txt"],
)
def test_text_is_plain_whatever_coding_is_named(name: str, body: bytes, chunk_bytes: int) -> None:
    """docs/faults.md row 152: brotli and raw deflate have no signature, but text is neither."""
    assert read_body([name], body, chunk_bytes=chunk_bytes) == (body, LIE)


@given(
    head=st.binary(max_size=40) | st.text(st.characters(max_codepoint=127), max_size=40).map(str.encode),
    name=st.sampled_from(["", "gzip", "deflate", "br", "zstd", "utf-8", "gzip, br"]),
    chunk_bytes=st.integers(1, 40),
)
def test_how_a_body_is_cut_decides_nothing(head: bytes, name: str, chunk_bytes: int) -> None:
    """docs/faults.md row 152: in chunks of any size, the same bytes reveal the coding."""

    def outcome(chunk_bytes: int) -> object:
        try:
            return read_body([name], head + TEXT, chunk_bytes=chunk_bytes)
        except DecodeError as exc:
            return exc.slug

    assert outcome(chunk_bytes) == outcome(1 << 16)


@pytest.mark.parametrize("name", ["gzip", "zstd", "utf-8"])
def test_text_that_does_not_begin_as_ascii_is_plain_where_a_signature_is_missing(name: str) -> None:
    """docs/faults.md row 152: a page may have its title among its first bytes."""
    body = "<title>Łódź, новости</title><p>…".encode()
    assert read_body([name], body) == (body, LIE)


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 16])
@pytest.mark.parametrize("fields", [(), ("identity",), ("br",), ("deflate",), ("gzip",), ("zstd",)])
@pytest.mark.parametrize("coder", ["gzip", "deflate", "zstd"])
def test_a_coding_that_shows_what_it_is_is_undone_whatever_is_named(
    coder: str, fields: tuple[str, ...], chunk_bytes: int
) -> None:
    """docs/faults.md row 152: gzip, zlib's format and zstd have signatures."""
    repairs = set() if fields == (coder,) else LIE
    assert read_body(fields, CODERS[coder](TEXT), chunk_bytes=chunk_bytes) == (TEXT, repairs)


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 16])
@pytest.mark.parametrize("inner", CODERS)
@pytest.mark.parametrize("outer", CODERS)
def test_two_codings_are_undone_that_are_named(outer: str, inner: str, chunk_bytes: int) -> None:
    """RFC 9110, section 8.4: the last one named was applied last."""
    fields = (f"{coding_named(inner)}, {coding_named(outer)}",)
    wire = CODERS[outer](CODERS[inner](TEXT))
    assert read_body(fields, wire, chunk_bytes=chunk_bytes) == (TEXT, set())


@pytest.mark.parametrize(
    ("fields", "wire"),
    [
        (("gzip, gzip",), gzip.compress(TEXT)),
        (("gzip", "gzip"), gzip.compress(TEXT)),
        (("gzip",), gzip.compress(gzip.compress(TEXT))),
        (("br, gzip",), brotli.compress(gzip.compress(TEXT))),
        (("gzip, br",), gzip.compress(brotli.compress(TEXT))),
        (("br, br",), brotli.compress(TEXT)),
        (("utf-8, gzip",), gzip.compress(TEXT)),
    ],
    ids=[
        "named twice",
        "in two fields",
        "named once",
        "br outside",
        "gzip outside",
        "br twice",
        "and no coding",
    ],
)
def test_codings_are_found_that_are_named_too_often_or_seldom_or_in_another_order(
    fields: tuple[str, ...], wire: bytes
) -> None:
    """docs/faults.md row 152: as often as named, and once more."""
    assert read_body(fields, wire) == (TEXT, LIE)


@pytest.mark.parametrize("fields", [(), ("gzip",), ("gzip, gzip",), ("utf-8",)])
def test_codings_are_undone_once_more_than_they_are_named(fields: tuple[str, ...]) -> None:
    """docs/faults.md row 152: a body coded more often stays coded, so unpacking ends."""
    wire = TEXT
    for _ in range(4):
        wire = gzip.compress(wire)
    body, _ = read_body(fields, wire)
    named = sum(field.count("gzip") for field in fields)
    for _ in range(3 - named):
        body = gzip.decompress(body)
    assert body == TEXT


@pytest.mark.parametrize("coder", ["gzip", "deflate", "zstd"])
def test_a_bomb_in_another_is_refused_by_what_the_outer_one_gives(coder: str) -> None:
    """docs/faults.md row 36: each layer counts, even if the next decodes it to nothing."""
    nothing = gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * 1_000_000  # blocks that are stored and empty
    assert slug_of(f"gzip, {coding_named(coder)}", CODERS[coder](nothing)) == "too-large"
    bomb = gzip.compress(gzip.compress(b"\0" * (64 << 20)))
    assert slug_of("gzip", bomb, limit_bytes=32 << 20) == "too-large"


def test_blocks_without_content_are_told_and_soon_refused() -> None:
    """docs/faults.md row 36: the reader learns of each empty slice, so that others have their turn; four
    bytes of them are allowed for one on the wire."""
    nothing = gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * 1_000_000
    wire = gzip.compress(nothing)
    decoder, pieces = Decoder(("gzip", "gzip"), limit_bytes=32 << 20), list[bytes]()
    with pytest.raises(DecodeError) as caught:
        pieces.extend(decoder.feed(wire))
    assert caught.value.slug == "too-large"
    assert len(wire) * 4 < RATIO_FREE_BYTES
    assert pieces == [b""] * (RATIO_FREE_BYTES // SLICE_BYTES)


@pytest.mark.parametrize(
    ("fields", "wire"),
    [
        (("gzip, gzip, gzip, gzip",), b""),
        ((", ".join(["br"] * 9999),), PAGE),
        (("compress",), b"\x1f\x9d\x90" + NOISE),
        (("utf-8",), NOISE),
        (("gzip",), brotli.compress(TEXT)),
        (("gzip",), b"\x1f"),
        (("zstd",), b"\x28\xb5\x2f"),
        ((), gzip.compress(TEXT)[:-4]),
        (("utf-8",), gzip.compress(TEXT)[:-8] + bytes(8)),
    ],
)
def test_what_is_neither_text_nor_a_coding_that_shows_is_refused(
    fields: tuple[str, ...], wire: bytes
) -> None:
    """docs/faults.md row 37; more than three codings have no reason."""
    with pytest.raises(DecodeError) as caught:
        read_body(fields, wire)
    assert caught.value.slug == "content-coding"
    assert len(str(caught.value)) < 200
    assert MAX_CODINGS == 3
