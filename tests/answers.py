"""Answers of a publisher on loopback: sound documents, and every fault on the wire.

An `Answer` is an object with `async def send(request, wire)`; `tests.origin.Origin` plays them. Nothing here
depends on a lucky sleep: only `Drip` has a clock, and `Reset` waits until its data is taken.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

Headers = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    target: str
    """Path and query string."""
    headers: Mapping[str, str]
    """Names in lower case; of repeated ones the last."""
    head: bytes
    """The whole head, byte for byte."""
    connection: int
    """Number of its connection, counted from 1."""
    at: float
    """Monotonic seconds."""

    @property
    def path(self) -> str:
        """Without the query string."""
        return self.target.partition("?")[0]


class Wire:
    """The connection for an answer."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.keep_alive = True

    async def send(self, data: bytes) -> None:
        """Send bytes and wait until the kernel has taken them."""
        self._writer.write(data)
        await self._writer.drain()

    async def send_head(self, status: int, headers: Headers, *, reason: str | None = None) -> None:
        if reason is None:
            reason = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown"
        lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers), "", ""]
        await self.send("\r\n".join(lines).encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        """Close the connection behind this answer."""
        self.keep_alive = False

    def reset(self) -> None:
        """Break the connection off: the other side gets ECONNRESET."""
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()
        self.keep_alive = False


class Answer(Protocol):
    async def send(self, request: Request, wire: Wire) -> None:
        """Answer one request. Ending without `wire.close()` keeps the connection for the next one."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document with its header fields, made by `Origin.publish`."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    etag: str | None = None
    last_modified: str | None = None
    chunked: bool = False
    chunk_bytes: int | None = None
    """Send the body in pieces of this size, each by itself."""
    gates: tuple[asyncio.Event, ...] = ()
    """Wait for the n-th event before the n-th piece."""

    async def send(self, request: Request, wire: Wire) -> None:
        validators = [
            (name, value)
            for name, value in (("ETag", self.etag), ("Last-Modified", self.last_modified))
            if value is not None
        ]
        if self.status == 200 and self._is_current(request):
            await wire.send_head(304, [*validators, *self.headers])
            return
        length = ("Transfer-Encoding", "chunked") if self.chunked else ("Content-Length", str(len(self.body)))
        await wire.send_head(self.status, [length, *validators, *self.headers])
        if request.method == "HEAD" or self.status == 304:
            return
        for piece, gate in itertools.zip_longest(self._pieces(), self.gates):
            if gate is not None:
                await gate.wait()
            if piece is not None:
                await wire.send(b"%x\r\n%b\r\n" % (len(piece), piece) if self.chunked else piece)
        if self.chunked:
            await wire.send(b"0\r\n\r\n")

    def _is_current(self, request: Request) -> bool:
        if "if-none-match" in request.headers:
            return self.etag is not None and self.etag in request.headers["if-none-match"]
        return (
            self.last_modified is not None and request.headers.get("if-modified-since") == self.last_modified
        )

    def _pieces(self) -> Iterator[bytes]:
        size = self.chunk_bytes or max(1, len(self.body))
        return (self.body[start : start + size] for start in range(0, len(self.body), size))


@dataclass(frozen=True)
class Redirect:
    """Leads elsewhere; None: without a location."""

    location: str | None
    status: int = 302

    async def send(self, request: Request, wire: Wire) -> None:
        location = [] if self.location is None else [("Location", self.location)]
        await wire.send_head(self.status, [*location, ("Content-Length", "0")])


@dataclass(frozen=True)
class Status:
    """A status with a minimal body."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    async def send(self, request: Request, wire: Wire) -> None:
        has_body = self.status >= 200 and self.status not in (204, 304)
        length = [("Content-Length", str(len(self.body)))] if has_body else []
        await wire.send_head(self.status, [*length, *self.headers])
        if has_body and request.method != "HEAD":
            await wire.send(self.body)


@dataclass(frozen=True)
class Computed:
    """An answer computed from the request."""

    choose: Callable[[Request], Answer]

    async def send(self, request: Request, wire: Wire) -> None:
        await self.choose(request).send(request, wire)


class Gate:
    """Holds requests until it is released; made by `Origin.held`."""

    def __init__(self) -> None:
        self._arrivals = asyncio.Semaphore(0)
        self._open = asyncio.Event()
        self.waiting = 0
        """Requests held now."""

    async def reached(self, requests: int = 1) -> None:
        """Wait until that many further requests have come."""
        for _ in range(requests):
            await self._arrivals.acquire()

    def release(self) -> None:
        """Let all present and future requests go."""
        self._open.set()

    async def pass_through(self) -> None:
        """Wait for the release."""
        self._arrivals.release()
        self.waiting += 1
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1


@dataclass(frozen=True)
class Held:
    """An answer behind a gate: no byte is sent before."""

    gate: Gate
    answer: Answer

    async def send(self, request: Request, wire: Wire) -> None:
        await self.gate.pass_through()
        await self.answer.send(request, wire)


@dataclass(frozen=True)
class Raw:
    """Exactly these bytes, then the connection is closed."""

    data: bytes
    keep_alive: bool = False

    async def send(self, request: Request, wire: Wire) -> None:
        await wire.send(self.data)
        wire.keep_alive = self.keep_alive


@dataclass(frozen=True)
class Reset:
    """The connection breaks (RST), after these bytes if any."""

    after: bytes = b""

    async def send(self, request: Request, wire: Wire) -> None:
        if self.after:
            await wire.send(self.after)
            await asyncio.sleep(0.02)  # a reset that overtakes its data takes the data away
        wire.reset()


@dataclass(frozen=True)
class CloseWithoutAnswer:
    """The connection closes without a byte."""

    async def send(self, request: Request, wire: Wire) -> None:
        wire.close()


@dataclass(frozen=True)
class Truncated:
    """Announces the whole body, sends a part of it, and closes."""

    body: bytes
    sent_bytes: int
    chunked: bool = False
    headers: tuple[tuple[str, str], ...] = ()

    async def send(self, request: Request, wire: Wire) -> None:
        if self.chunked:
            await wire.send_head(200, [("Transfer-Encoding", "chunked"), *self.headers])
            await wire.send(b"%x\r\n" % len(self.body) + self.body[: self.sent_bytes])
        else:
            await wire.send_head(200, [("Content-Length", str(len(self.body))), *self.headers])
            await wire.send(self.body[: self.sent_bytes])
        wire.close()


@dataclass(frozen=True)
class Silence:
    """Sends these bytes, and never answers."""

    after: bytes = b""

    async def send(self, request: Request, wire: Wire) -> None:
        if self.after:
            await wire.send(self.after)
        await asyncio.Event().wait()


@dataclass(frozen=True)
class Drip:
    """These bytes, then the same piece again and again, for ever.

    `HEADER_DRIP`, `BODY_DRIP` and `ENDLESS_BODY` are the usual ones, `ENDLESS_FRAMING` those without a body.
    """

    head: bytes
    piece: bytes
    interval_seconds: float = 0.0

    async def send(self, request: Request, wire: Wire) -> None:
        await wire.send(self.head)
        while True:
            await wire.send(self.piece)
            await asyncio.sleep(self.interval_seconds)


_CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HEADER_DRIP = Drip(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 0.05)
BODY_DRIP = Drip(_CHUNKED_HEAD, b"1\r\nx\r\n", 0.05)
ENDLESS_BODY = Drip(_CHUNKED_HEAD, b"10000\r\n" + b"x" * 65536 + b"\r\n")
ENDLESS_FRAMING = {
    "early hints": Drip(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100),
    "a chunk extension": Drip(_CHUNKED_HEAD + b"1;", b"x" * 8192),
    "extensions of chunks": Drip(_CHUNKED_HEAD, b"1;" + b"x" * 8192 + b"\r\nx\r\n"),
    "chunks of a byte": Drip(_CHUNKED_HEAD, b"1\r\nx\r\n" * 2000),
    "zeros before a size": Drip(_CHUNKED_HEAD, b"0" * 8192),
}
