"""Content codings: what a body decodes to, whatever its Content-Encoding says. Without I/O.

    decoder = Decoder(codings_of(response_headers), limit_bytes=32 << 20)
    for chunk in wire:
        for piece in decoder.feed(chunk):   # never much more than SLICE_BYTES at once
            body += piece
    for piece in decoder.finish():          # DecodeError: a stream had no end
        body += piece
    decoder.repairs                         # {"content-coding"}: the field was not true

Publishers name codings that they do not send, and send some that they do not name. So the first bytes of a
body decide, as far as they tell (docs/faults.md row 152); where they do not, the field does. aiohttp's own
decoding is not used: it takes a truncated gzip body for a whole one and has no limit on the decoded size
(docs/design.md#fetching).
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
"""Every coding that `Decoder` knows, as requests ask for them."""

SLICE_BYTES: Final = 65536
"""What one step of decoding may give; brotli may exceed it by half."""

MAX_RATIO: Final = 200
"""Decoded bytes for one byte on the wire; real feeds reach 16."""
MAX_CODED_RATIO: Final = 4
"""The same where these are coded once more: what is compressed cannot be compressed much again. What makes
blocks without content of them would else take seconds for each of few bytes."""
RATIO_FREE_BYTES: Final = 1 << 20
"""Decoded bytes from which on the ratio counts."""
MAX_MEMBERS: Final = 64
"""gzip members or zstd frames in one body."""
MAX_CODINGS: Final = 3
"""Codings that one body may name. One more is undone at most."""

CODING_REPAIR: Final = "content-coding"
"""The Content-Encoding was not true."""
PADDING_REPAIR: Final = "coding-padding"
"""Something that is no part of it stood behind the coded stream, and was left out."""

_ALIASES: Final = {"x-gzip": "gzip", "x-deflate": "deflate", "brotli": "br"}
_UNCODED: Final = ("", "identity")


def codings_of(fields: Iterable[str]) -> tuple[str, ...]:
    """Return the content codings that Content-Encoding fields name, in the order of RFC 9110, section 8.4.

    Names that are no codings stand among them; `identity` and empty ones do not.
    """
    tokens = (token.partition(";")[0].strip(' \t"').lower() for field in fields for token in field.split(","))
    return tuple(_ALIASES.get(token, token) for token in tokens if token not in _UNCODED)


class DecodeError(ValueError):
    """The body is not what its coding says, or is too large. `slug`: content-coding or too-large."""

    def __init__(self, message: str, *, slug: str = "content-coding") -> None:
        super().__init__(message)
        self.slug = slug


class Decoder:
    """Decodes one body in slices, under limits (RFC 9110, section 8.4; docs/faults.md rows 36, 37 and 152).

    As many codings are undone as the body names, and one more that it does not. What each of them gives
    counts towards the limits.

    Args:
        named: As `codings_of` returns them.
        limit_bytes: Of the decoded body.

    Raises:
        DecodeError: More than `MAX_CODINGS` are named.
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
        """Whether a coding was found by now."""
        return any(layer.coding for layer in self._layers)

    @property
    def repairs(self) -> frozenset[str]:
        """What was not as HTTP has it, once the body has ended."""
        if not self.wire_bytes:
            return frozenset()
        found = tuple(layer.coding for layer in reversed(self._layers) if layer.coding)
        repairs = {CODING_REPAIR} if found != self._named else set()
        if any(layer.is_padded for layer in self._layers):
            repairs.add(PADDING_REPAIR)
        return frozenset(repairs)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes from the wire and yield what they decode to, in slices; what is not coded, as it came.

        A slice is empty where the work of one has come to nothing. The iterator must be exhausted before the
        next call.
        """
        self.wire_bytes += len(data)
        yield from self._pass_through(data, 0)

    def finish(self) -> Iterator[bytes]:
        """Say that the wire has ended, and yield what is left; DecodeError: a stream had not ended."""
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
                yield b""

    def choose(self, head: bytes, *, is_all: bool) -> str | None:
        """Return the coding of the next layer, of which these are the first bytes.

        Empty: none. None: more of them have to come, unless that is all.
        """
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
        """Refuse too many decoded bytes of a layer; raises `DecodeError`."""
        if decoded_bytes > self._limit_bytes:
            raise DecodeError(f"expected at most {self._limit_bytes} bytes", slug="too-large")
        is_coded_again = any(layer.coding for layer in self._layers[number + 1 :])
        max_ratio = MAX_CODED_RATIO if is_coded_again else MAX_RATIO
        if decoded_bytes > max(RATIO_FREE_BYTES, max_ratio * self.wire_bytes):
            raise DecodeError(
                f"expected at most {max_ratio} bytes for one of {coding}, "
                f"got {decoded_bytes} from {self.wire_bytes}",
                slug="too-large",
            )


class _Layer:
    """One coding of a body, or none: told by its first bytes.

    Args:
        decoder: Chooses the coding, and refuses too many bytes.
        number: Of the layer, from the wire on.
    """

    def __init__(self, decoder: Decoder, number: int) -> None:
        self._decoder = decoder
        self._number = number
        self._head = b""  # until the coding is known; then the beginning of a member, until that is known
        self._member: Any = None  # as zlib's: `decompress`, `eof`, `unused_data`
        self._members = 0
        self.coding: str | None = None
        self.decoded_bytes = 0
        self.is_padded = False
        """Whether anything stood behind the end."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take coded bytes, and yield decoded ones."""
        if self.coding is None:
            data = self._head + data if self._head else data
            if not self._begin(data, is_all=False):
                self._head = data
                return
        yield from self._decode_within_limits(data)

    def finish(self) -> Iterator[bytes]:
        """Say that no more will come, and yield what is left."""
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
        """Begin the member that follows the last one, if one does; what is too short to tell is kept."""
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
"""So much of a body tells its coding: once in 10^13 compressed bytes are all ASCII by chance."""
_SIGNATURE_BYTES: Final = 4
_SIGNATURES: Final = {
    "gzip": re.compile(rb"\x1f\x8b"),  # RFC 1952, section 2.3.1
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),  # RFC 8878, section 3.1
}
"""Of each of their members or frames."""
_UNSIGNED: Final = ("deflate", "br")
"""Their streams may begin with any bytes, as far as they are known by those."""
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
    """Whether a body that begins so is surely text: with a byte order mark, or ASCII, perhaps as UTF-16."""
    return _is_text(head, _NOT_ASCII)


def _is_text(head: bytes, forbidden: re.Pattern[bytes] = _CONTROLS) -> bool:
    start = head[:_HEAD_BYTES]
    if start.startswith(_TEXT_MARKS):
        return True
    start = start.replace(b"\0", b"")
    return bool(start) and not forbidden.search(start)


class _Brotli:
    """RFC 7932, with the methods of zlib's. The library refuses what follows the end in the same chunk."""

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
    """RFC 9110, 8.4.1.2: zlib format; servers that send raw deflate under this name are told by its head."""
    is_zlib = head[0] & 0x0F == zlib.DEFLATED and int.from_bytes(head[:_ZLIB_HEAD_BYTES]) % 31 == 0
    return zlib.decompressobj(15 if is_zlib else -15)


_ZSTD_LIMITS: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}
"""RFC 9659, section 3: a window of at most 8 MiB as a content coding."""

_DECOMPRESSORS: Final[dict[str, Callable[[bytes], Any]]] = {
    "gzip": lambda _: zlib.decompressobj(31),
    "deflate": _inflate,
    "br": lambda _: _Brotli(),
    "zstd": lambda _: zstd.ZstdDecompressor(options=_ZSTD_LIMITS),
}
"""What decodes a member that begins so. zlib checks gzip's CRC-32 and length, and zlib's Adler-32."""

_CODING_ERRORS: Final = (zlib.error, brotli.error, zstd.ZstdError)
