"""Properties of content codings, header fields, and a reader's request."""

from __future__ import annotations

import contextlib
import gzip
import sys
import zlib
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import brotli  # type: ignore[import-untyped]

from wholefeed.core.links import HEADER_RELATIONS, MAX_HEADER_LINKS, header_links
from wholefeed.core.schedule import freshness_seconds, is_private, is_uncacheable, retry_after_seconds
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import canonical_url, split
from wholefeed.errors import InvalidUrlError, RequestError
from wholefeed.fetch.codings import SLICE_BYTES, DecodeError, Decoder, codings_of
from wholefeed.web.request import feed_url, is_prefix_form, read_prefix, read_query, read_view, read_wait

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMIT_BYTES: Final = 1 << 19
CODERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "identity": bytes,
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "deflate": zlib.compress,
    "br": lambda content: brotli.compress(content, quality=2),
    "zstd": zstd.compress,
}
NOW: Final = 1_700_000_000.0
URL: Final = "http://example.org/blog/feed"


def check_decoding(data: bytes) -> None:
    """Decode a body; the first byte names its coding, the second the size of its chunks."""
    if len(data) < 2:
        return
    coding, size, body = [*CODERS][data[0] % len(CODERS)], data[1] + 1, data[2:]
    whole = decoded(coding, body, len(body) or 1)
    pieces = decoded(coding, body, size)
    assert (whole == pieces) or "too-large" in (whole, pieces), "how a body is cut on its way does not matter"
    if isinstance(whole, bytes) and coding in ("gzip", "deflate") and body and not _repairs(coding, body):
        assert whole == _reference(coding, body), "zlib itself decodes to the same"
    if isinstance(decoded("identity", body, len(body) or 1), bytes) and not _repairs("identity", body):
        _check_round_trip(coding, body, size)


def _check_round_trip(coding: str, content: bytes, size: int) -> None:
    """A coded text decodes to itself, and truncation is detected."""
    wire = CODERS[coding](content)
    assert decoded(coding, wire, size) == content
    if coding != "identity":
        assert decoded(coding, wire[: len(wire) - 1 - size % len(wire)] or b"\0", size) == "content-coding"


def decoded(coding: str, body: bytes, size: int) -> bytes | str:
    """Return the decoded body of chunks of this size, or the slug of the error."""
    decoder, out = Decoder(codings_of([coding]), limit_bytes=LIMIT_BYTES), bytearray()
    try:
        for start in range(0, len(body), size):
            for piece in decoder.feed(body[start : start + size]):
                assert len(piece) <= 2 * SLICE_BYTES, "slices are small"
                out += piece
                assert len(out) <= LIMIT_BYTES, "no more than the limit"
        for piece in decoder.finish():
            out += piece
    except DecodeError as exc:
        assert exc.slug in ("content-coding", "too-large"), exc.slug
        return exc.slug
    assert len(out) == decoder.decoded_bytes
    return bytes(out)


def _repairs(coding: str, body: bytes) -> frozenset[str]:
    """Return a decodable body's deviations from its coding."""
    decoder = Decoder(codings_of([coding]), limit_bytes=LIMIT_BYTES)
    for _ in decoder.feed(body):
        pass
    for _ in decoder.finish():
        pass
    return decoder.repairs


def _reference(coding: str, body: bytes) -> bytes:
    if coding == "gzip":
        return gzip.decompress(body)
    try:
        return zlib.decompress(body)
    except zlib.error:
        return zlib.decompress(body, -15)


def check_link_field(data: bytes) -> None:
    """Read the input's lines as Link header fields."""
    fields = data.decode("utf-8", "surrogateescape").split("\n")
    links = header_links(fields, URL)
    assert len(links) <= MAX_HEADER_LINKS
    for link in links:
        assert link.relation in HEADER_RELATIONS
        assert not link.target or split(link.target).scheme
        assert link.media_type == link.media_type.lower()


def check_freshness(data: bytes) -> None:
    """Read the input's lines as cache header fields."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    headers = {name: value for name, _, value in (line.partition(":") for line in lines)}
    seconds = freshness_seconds(headers, now=NOW, minimum=300, default=900, maximum=DAY_SECONDS)
    assert 300 <= seconds <= DAY_SECONDS
    is_private(headers)
    if is_uncacheable(headers):
        assert seconds == 300
    for line in lines:
        delay = retry_after_seconds(line, now=NOW)
        assert delay is None or 1 <= delay <= DAY_SECONDS
        assert not {"", "identity"} & {*codings_of([line])}


def check_query(data: bytes) -> None:
    """Read a request's query and path; an encoded URL decodes to itself."""
    text = data.decode("utf-8", "replace")
    for given in (text, f"url={text}"):
        try:
            query = read_query(given)
            assert 0 <= read_wait(query.options, 8) <= 8
            view = read_view(query.options, 0)
            assert view.limit is None or view.limit >= 1
            _check_key(query.url)
        except RequestError:
            pass
    assert read_query(f"limit=1&url={quote(text, safe='')}&wait=2").url == text
    path = f"/{text}"
    if is_prefix_form(path):
        with contextlib.suppress(RequestError):
            _check_key(read_prefix(path))


def _check_key(url: str) -> None:
    try:
        key = feed_url(url)
    except InvalidUrlError as exc:
        assert exc.slug in ("invalid-url", "ambiguous-host", "userinfo-not-allowed"), exc.slug
    else:
        assert canonical_url(key) == key
