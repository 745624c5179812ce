"""Content codings, decoded in slices under limits (RFC 9110, section 8.4; docs/faults.md rows 36 and 37).

aiohttp's own decoding is not used: it takes a truncated gzip body for a whole one and has no limit on
what a body decodes to (docs/design.md#fetching). Nothing here waits or does I/O.

    decoder = Decoder(coding_of(response_headers), limit_bytes=32 << 20)
    for chunk in wire:
        for piece in decoder.feed(chunk):   # never much more than SLICE_BYTES at once
            body += piece
    decoder.finish()                        # the stream had an end, and nothing came behind it
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"
"""What requests ask for: every coding that `Decoder` knows."""

SLICE_BYTES: Final = 65536
"""What one step of decoding may give; brotli may exceed it by half."""

MAX_RATIO: Final = 200
"""Decoded bytes for one byte on the wire; real feeds reach 16."""
RATIO_FREE_BYTES: Final = 1 << 20
"""Decoded bytes from which on the ratio counts."""
MAX_MEMBERS: Final = 64
"""gzip members or zstd frames in one body."""

_ZSTD_WINDOW_LOG: Final = 23  # RFC 9659, section 3: at most 8 MiB as a content coding
_ALIASES: Final = {"x-gzip": "gzip", "x-deflate": "deflate"}


class DecodeError(ValueError):
    """The body is not what its coding says, or is too large. `slug`: content-coding or too-large."""

    def __init__(self, message: str, *, slug: str = "content-coding") -> None:
        super().__init__(message)
        self.slug = slug


def coding_of(fields: Iterable[str]) -> str:
    """Return the one content coding that Content-Encoding fields name, "identity" for none.

    Raises:
        DecodeError: More than one coding, or one that was not asked for (RFC 9110, section 8.4.1).
    """
    tokens = [token.strip(" \t").lower() for field in fields for token in field.split(",")]
    codings = [_ALIASES.get(token, token) for token in tokens if token not in ("", "identity")]
    if not codings:
        return "identity"
    if len(codings) > 1:
        raise DecodeError(f"expected one content coding, got {len(codings)}")
    if codings[0] not in _STREAMS:
        raise DecodeError(f"expected one of {ACCEPT_ENCODING}, got content coding {codings[0][:40]!r}")
    return codings[0]


class _Stream(Protocol):
    """One member of a coded body."""

    def step(self, data: bytes) -> bytes:
        """Take data, perhaps none, and return at most a slice of what it decodes to."""

    @property
    def has_more(self) -> bool:
        """Whether another step would give output without further input."""

    @property
    def is_finished(self) -> bool:
        """Whether the end of the stream came and its check sums were right."""

    @property
    def rest(self) -> bytes:
        """What came behind the end."""


class _Inflate:
    """gzip, zlib or raw deflate. zlib checks gzip's CRC-32 and length, and zlib's Adler-32."""

    def __init__(self, window_bits: int) -> None:
        self._inflater = zlib.decompressobj(window_bits)
        self.has_more = False

    def step(self, data: bytes) -> bytes:
        out = self._inflater.decompress(self._inflater.unconsumed_tail + data, SLICE_BYTES)
        self.has_more = not self._inflater.eof and (
            len(out) == SLICE_BYTES or bool(self._inflater.unconsumed_tail)
        )
        return out

    @property
    def is_finished(self) -> bool:
        return self._inflater.eof

    @property
    def rest(self) -> bytes:
        return self._inflater.unused_data


class _Gzip(_Inflate):
    def __init__(self) -> None:
        super().__init__(31)


class _Deflate:
    """RFC 9110, 8.4.1.2: zlib format; servers that send raw deflate under this name are told by its head."""

    def __init__(self) -> None:
        self._head = b""
        self._inflate: _Inflate | None = None

    def step(self, data: bytes) -> bytes:
        if self._inflate is None:
            self._head += data
            if len(self._head) < 2:  # noqa: PLR2004 - RFC 1950, 2.2: CMF and FLG
                return b""
            is_zlib = self._head[0] & 0x0F == zlib.DEFLATED and int.from_bytes(self._head[:2]) % 31 == 0
            self._inflate = _Inflate(15 if is_zlib else -15)
            data, self._head = self._head, b""
        return self._inflate.step(data)

    @property
    def has_more(self) -> bool:
        return self._inflate is not None and self._inflate.has_more

    @property
    def is_finished(self) -> bool:
        return self._inflate is not None and self._inflate.is_finished

    @property
    def rest(self) -> bytes:
        return b"" if self._inflate is None else self._inflate.rest


class _Brotli:
    """RFC 7932. The library itself refuses what follows the end in the same chunk.

    It can have taken all input and still hold output back, so it is asked until it gives none.
    """

    rest = b""

    def __init__(self) -> None:
        self._decompressor = brotli.Decompressor()
        self._gave_output = False

    def step(self, data: bytes) -> bytes:
        out: bytes = self._decompressor.process(data, output_buffer_limit=SLICE_BYTES)
        self._gave_output = bool(out)
        return out

    @property
    def has_more(self) -> bool:
        return not self.is_finished and (self._gave_output or not self._decompressor.can_accept_more_data())

    @property
    def is_finished(self) -> bool:
        return bool(self._decompressor.is_finished())


class _Zstd:
    """RFC 8878, with the window that RFC 9659 allows a content coding."""

    def __init__(self) -> None:
        limit: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        self._decompressor = zstd.ZstdDecompressor(options=limit)

    def step(self, data: bytes) -> bytes:
        return self._decompressor.decompress(data, SLICE_BYTES)

    @property
    def has_more(self) -> bool:
        return not self._decompressor.eof and not self._decompressor.needs_input

    @property
    def is_finished(self) -> bool:
        return self._decompressor.eof

    @property
    def rest(self) -> bytes:
        return self._decompressor.unused_data


_STREAMS: Final[dict[str, type[_Stream]]] = {
    "gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
_MULTI_MEMBER: Final = frozenset({"gzip", "zstd"})
_BROKEN: Final = (zlib.error, brotli.error, zstd.ZstdError)


class Decoder:
    """Decodes one body.

    Args:
        coding: identity, gzip, deflate, br or zstd, as `coding_of` gives it.
        limit_bytes: What the body may decode to.
    """

    def __init__(self, coding: str, *, limit_bytes: int) -> None:
        self._coding = coding
        self._limit_bytes = limit_bytes
        self._stream: _Stream | None = None
        self._members = 0
        self.wire_bytes = 0
        self.decoded_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes from the wire and yield what they decode to, in slices; what is not coded, as it came.

        The iterator must be exhausted before the next call.

        Raises:
            DecodeError: Broken, too large, out of all proportion, or more than the stream held.
        """
        self.wire_bytes += len(data)
        if self._coding == "identity":
            self._count(len(data))
            yield data
            return
        try:
            for start in range(0, len(data), SLICE_BYTES):
                for piece in self._decoded(data[start : start + SLICE_BYTES]):
                    self._count(len(piece))
                    yield piece
        except _BROKEN as exc:
            raise DecodeError(f"expected a {self._coding} stream: {exc}") from exc

    def finish(self) -> None:
        """Say that the wire has ended.

        Raises:
            DecodeError: The stream had not come to its end.
        """
        if self._coding != "identity" and self.wire_bytes and not self._is_at_end:
            raise DecodeError(f"expected the {self._coding} stream to end, got the end of the body")

    @property
    def _is_at_end(self) -> bool:
        return self._stream is not None and self._stream.is_finished

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream is None or self._stream.is_finished:
                self._begin_member()
            assert self._stream is not None
            yield from self._drained(self._stream, data)
            data = self._stream.rest if self._stream.is_finished else b""

    def _drained(self, stream: _Stream, data: bytes) -> Iterator[bytes]:
        piece = stream.step(data)
        while True:
            if piece:
                yield piece
            if not stream.has_more:
                return
            piece = stream.step(b"")

    def _begin_member(self) -> None:
        if self._stream is not None and self._coding not in _MULTI_MEMBER:
            raise DecodeError(f"expected nothing behind the {self._coding} stream")
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise DecodeError(f"expected at most {MAX_MEMBERS} {self._coding} members")
        self._stream = _STREAMS[self._coding]()

    def _count(self, count: int) -> None:
        self.decoded_bytes += count
        if self.decoded_bytes > self._limit_bytes:
            raise DecodeError(f"expected at most {self._limit_bytes} bytes", slug="too-large")
        if self.decoded_bytes > max(RATIO_FREE_BYTES, MAX_RATIO * self.wire_bytes):
            raise DecodeError(
                f"expected at most {MAX_RATIO} bytes for one of {self._coding}, "
                f"got {self.decoded_bytes} from {self.wire_bytes}",
                slug="too-large",
            )
