"""Content codings of a body, undone under limits. Without I/O.

Publishers misname and omit codings, so a body's first bytes decide where they can, else Content-Encoding
(docs/faults.md row 152). aiohttp accepts truncated gzip and has no size limit (docs/design.md#fetching).
"""

from __future__ import annotations

import codecs
import re
import sys
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"

SLICE_BYTES: Final = 65536
"""Most bytes of one decoding step; brotli may exceed them by half."""

MAX_RATIO: Final = 200
"""Decoded bytes for one byte on the wire; real feeds reach 16."""
MAX_CODED_RATIO: Final = 4
"""The same for bytes under another coding: compressed data hardly compresses again."""
RATIO_FREE_BYTES: Final = 1 << 20
"""Decoded bytes exempt from the ratio."""
MAX_MEMBERS: Final = 64
MAX_CODINGS: Final = 3
"""Named codings of a body; an unnamed one may come on top."""

CODING_REPAIR: Final = "content-coding"
"""Content-Encoding was wrong."""
PADDING_REPAIR: Final = "coding-padding"
"""Foreign bytes after the coded stream were dropped."""

_ALIASES: Final = {"x-gzip": "gzip", "x-deflate": "deflate", "brotli": "br"}
_UNCODED: Final = ("", "identity")


def codings_of(fields: Iterable[str]) -> tuple[str, ...]:
    """Return the codings that Content-Encoding fields name (RFC 9110, section 8.4), unknown ones too."""
    tokens = (token.partition(";")[0].strip(' \t"').lower() for field in fields for token in field.split(","))
    return tuple(_ALIASES.get(token, token) for token in tokens if token not in _UNCODED)


class DecodeError(ValueError):
    """A broken or too large body; `slug`: content-coding or too-large."""

    def __init__(self, message: str, *, slug: str = "content-coding") -> None:
        super().__init__(message)
        self.slug = slug


class Decoder:
    """A decoder of one body in slices, under limits (RFC 9110, 8.4; docs/faults.md rows 36, 37 and 152).

    The decoder undoes the named codings and one more; the limits count the output of each. Raises DecodeError
    for more than `MAX_CODINGS` names.
    """

    def __init__(self, named: Sequence[str], *, limit_bytes: int) -> None:
        known = [name for name in named if name in _DECOMPRESSORS]
        if len(known) > MAX_CODINGS:
            raise DecodeError(f"expected at most {MAX_CODINGS} content codings, got {len(known)}")
        self._named = tuple(named)
        self._left = known
        self._unknown = next((name for name in named if name not in _DECOMPRESSORS), "")
        self._limit_bytes = limit_bytes
        decoder = weakref.proxy(self)  # a cycle would wait for the collector, with the head of the body
        self._layers = [_Layer(decoder, number) for number in range(len(known) + 1)]
        self.wire_bytes = 0

    @property
    def decoded_bytes(self) -> int:
        return self._layers[-1].decoded_bytes

    @property
    def is_coded(self) -> bool:
        return any(layer.coding for layer in self._layers)

    @property
    def repairs(self) -> frozenset[str]:
        if not self.wire_bytes:
            return frozenset()
        found = tuple(layer.coding for layer in reversed(self._layers) if layer.coding)
        repairs = {CODING_REPAIR} if found != self._named else set()
        if any(layer.is_padded for layer in self._layers):
            repairs.add(PADDING_REPAIR)
        return frozenset(repairs)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode wire bytes into slices; exhaust the iterator before the next call."""
        self.wire_bytes += len(data)
        yield from self._pass_through(data, 0)

    def finish(self) -> Iterator[bytes]:
        """Yield the rest; raises DecodeError for a truncated stream."""
        for number, layer in enumerate(self._layers):
            for piece in layer.finish():
                yield from (piece,) if layer is self._layers[-1] else self._pass_through(piece, number + 1)

    def _pass_through(self, data: bytes, number: int) -> Iterator[bytes]:
        if number == len(self._layers) - 1:
            yield from self._layers[number].feed(data)
            return
        for piece in self._layers[number].feed(data):
            before_bytes = self.decoded_bytes
            yield from self._pass_through(piece, number + 1)
            if before_bytes == self.decoded_bytes:
                # Work without output counts too, so that the reader can yield to the event loop.
                yield b""

    def choose(self, head: bytes, *, is_all: bool) -> str | None:
        """Return a layer's coding from its first bytes; empty: none, None: more bytes needed."""
        left, found = self._left, _signature(head)
        is_named = bool(left or self._unknown)
        most_bytes = _HEAD_BYTES if (is_named and not found) or _ZLIB.match(head) else _SIGNATURE_BYTES
        if len(head) < most_bytes and not is_all:  # however it is cut, as much of it decides
            return None
        if found:
            if left:
                left.remove(found) if found in left else left.pop()
            return found
        if not is_named:
            return ""
        unsigned = next((name for name in reversed(left) if name in _UNSIGNED), "")
        if unsigned and (len(head) < _HEAD_BYTES or not _is_ascii(head)):
            left.remove(unsigned)
            return unsigned
        if len(head) < _SIGNATURE_BYTES or not _is_text(head):
            name = left[-1] if left else self._unknown
            raise DecodeError(f"expected one of {ACCEPT_ENCODING}, got content coding {name[:40]!r}")
        left.clear()
        self._unknown = ""
        return ""

    def check(self, number: int, decoded_bytes: int, coding: str) -> None:
        if decoded_bytes > self._limit_bytes:
            raise DecodeError(f"expected at most {self._limit_bytes} bytes", slug="too-large")
        is_coded_again = any(layer.coding for layer in self._layers[number + 1 :])
        # Blocks without content would otherwise take seconds for a few bytes.
        max_ratio = MAX_CODED_RATIO if is_coded_again else MAX_RATIO
        if decoded_bytes > max(RATIO_FREE_BYTES, max_ratio * self.wire_bytes):
            raise DecodeError(
                f"expected at most {max_ratio} bytes for one of {coding}, "
                f"got {decoded_bytes} from {self.wire_bytes}",
                slug="too-large",
            )


class _Layer:
    """One coding of a body, or none; `number` counts from the wire."""

    def __init__(self, decoder: Decoder, number: int) -> None:
        self._decoder = decoder
        self._number = number
        self._head = b""  # until the coding is known; then the beginning of a member, until that is known
        self._member: Any = None  # as zlib's: `decompress`, `eof`, `unused_data`
        self._members = 0
        self.coding: str | None = None
        self.decoded_bytes = 0
        self.is_padded = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self.coding is None:
            data = self._head + data if self._head else data
            if not self._begin(data, is_all=False):
                self._head = data
                return
        yield from self._decode_within_limits(data)

    def finish(self) -> Iterator[bytes]:
        if self.coding is None and (head := self._head):
            self._begin(head, is_all=True)
            yield from self._decode_within_limits(head)
        if self._member is not None and not self._member.eof:
            raise DecodeError(f"expected the {self.coding} stream to end, got the end of the body")
        self.is_padded = self.is_padded or bool(self._head)

    def _begin(self, head: bytes, *, is_all: bool) -> bool:
        self.coding = self._decoder.choose(head, is_all=is_all)
        if self.coding is None:
            return False
        self._head = b""
        if self.coding:
            self._next_member(head)
        return True

    def _decode_within_limits(self, data: bytes) -> Iterator[bytes]:
        if not self.coding:
            self.decoded_bytes += len(data)
            self._decoder.check(self._number, self.decoded_bytes, "identity")
            yield data
            return
        try:
            for start in range(0, len(data), SLICE_BYTES):
                for piece in self._decode(data[start : start + SLICE_BYTES]):
                    self.decoded_bytes += len(piece)
                    self._decoder.check(self._number, self.decoded_bytes, self.coding)
                    yield piece
        except _CODING_ERRORS as exc:
            raise DecodeError(f"expected a {self.coding} stream: {exc}") from exc

    def _decode(self, data: bytes) -> Iterator[bytes]:
        while data and not self.is_padded:
            if self._member.eof:
                data, self._head = self._head + data, b""
                if not self._has_next_member(data):
                    return
            is_more = True
            while is_more:  # it can have taken all that came and still hold output back
                piece = self._member.decompress(data, SLICE_BYTES)
                if piece:
                    yield piece
                data = getattr(self._member, "unconsumed_tail", b"")
                is_more = not self._member.eof and bool(piece or data)
            data = self._member.unused_data if self._member.eof else b""

    def _has_next_member(self, data: bytes) -> bool:
        assert self.coding, "there was a member"
        if self.coding == "br":  # the library refuses that itself where it comes in one chunk with the end
            raise DecodeError("expected nothing behind the br stream")
        signature = _SIGNATURES.get(self.coding)
        if signature is not None and len(data) < _SIGNATURE_BYTES:
            self._head = data
            return False
        if signature is None or not signature.match(data):
            self.is_padded = True
            return False
        self._next_member(data)
        return True

    def _next_member(self, head: bytes) -> None:
        assert self.coding, "what is not coded has no members"
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise DecodeError(f"expected at most {MAX_MEMBERS} {self.coding} members")
        self._member = _DECOMPRESSORS[self.coding](head)


# How a coding begins

_HEAD_BYTES: Final = 32
"""One in 10^13 compressed bodies begins with so many ASCII bytes by chance."""
_SIGNATURE_BYTES: Final = 4
_SIGNATURES: Final = {
    "gzip": re.compile(rb"\x1f\x8b"),  # RFC 1952, section 2.3.1
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),  # RFC 8878, section 3.1
}
_UNSIGNED: Final = ("deflate", "br")
_ZLIB: Final = re.compile(rb"\x78[\x01\x5e\x9c\xda]")  # RFC 1950, section 2.2; others where deflate is named
_TEXT_MARKS: Final = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_ASCII: Final = re.compile(rb"[^\t\n\f\r\x20-\x7e]")
_CONTROLS: Final = re.compile(rb"[\x01-\x08\x0b\x0e-\x1f\x7f]")


def _signature(head: bytes) -> str:
    for coding, signature in _SIGNATURES.items():
        if signature.match(head):
            return coding
    return "deflate" if _ZLIB.match(head) and not _is_ascii(head) else ""


def _is_ascii(head: bytes) -> bool:
    """Return whether a body is surely text: a byte order mark or ASCII, perhaps as UTF-16."""
    return _is_text(head, _NOT_ASCII)


def _is_text(head: bytes, forbidden: re.Pattern[bytes] = _CONTROLS) -> bool:
    start = head[:_HEAD_BYTES]
    if start.startswith(_TEXT_MARKS):
        return True
    start = start.replace(b"\0", b"")
    return bool(start) and not forbidden.search(start)


class _Brotli:
    unused_data = b""

    def __init__(self) -> None:
        self._decompressor = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._decompressor.is_finished())

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return bytes(self._decompressor.process(data, output_buffer_limit=max_length))


_ZLIB_HEAD_BYTES: Final = 2  # RFC 1950, section 2.2: CMF and FLG


def _inflate(head: bytes) -> Any:
    # RFC 9110, 8.4.1.2 demands zlib format; some servers send raw deflate.
    is_zlib = head[0] & 0x0F == zlib.DEFLATED and int.from_bytes(head[:_ZLIB_HEAD_BYTES]) % 31 == 0
    return zlib.decompressobj(15 if is_zlib else -15)


# RFC 9659, section 3: windows of at most 8 MiB.
_ZSTD_LIMITS: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}

_DECOMPRESSORS: Final[dict[str, Callable[[bytes], Any]]] = {
    "gzip": lambda _: zlib.decompressobj(31),
    "deflate": _inflate,
    "br": lambda _: _Brotli(),
    "zstd": lambda _: zstd.ZstdDecompressor(options=_ZSTD_LIMITS),
}
"""By a member's first bytes. zlib verifies CRC-32, length and Adler-32."""

_CODING_ERRORS: Final = (zlib.error, brotli.error, zstd.ZstdError)
