"""A publisher on loopback under a test's control: raw asyncio streams, so that it can send broken HTTP.

    async with Origin() as origin:
        origin.publish("/feed", FEED, etag='"1"', headers=[("Cache-Control", "max-age=60")])
        origin.redirect("/old", "/feed", status=301)
        origin.fault("/archive/3", Reset())                      # for good
        origin.fault("/archive/4", Status(503), times=2)         # twice, then as published
        with origin.held("/archive/5") as gate:                  # requests wait until told otherwise
            ...
            await gate.reached()                                 # one has come
            gate.release()
        ...
        assert [request.target for request in origin.requests] == ["/old", "/feed"]

`publish` makes the usual answer (Content-Length, conditional requests, keep-alive); `tests.answers` has the
unusual ones. Answers are found by path with query string first, then by path alone, then by what a whole
publisher answers (`answer_below`, `tests.publishers`); the rest is 404.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import gzip
import ssl
import time
import zlib
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Literal, Self

from tests.answers import Answer, Computed, Document, Gate, Headers, Held, Redirect, Request, Status, Wire

ATOM: Final = "application/atom+xml"
"""The default Content-Type of `publish`."""


@dataclass
class _Path:
    """A path's answers: the first remaining fault, else the published answer."""

    published: Answer | None = None
    faults: list[tuple[Answer, int | None]] = field(default_factory=list)

    def next(self, *, but: Answer | None = None) -> Answer | None:
        """Return the answer to one more request, if any, as if the fault `but` were not there."""
        for index, (answer, left) in enumerate(self.faults):
            if answer is but or left == 0:
                continue
            if left is not None:
                self.faults[index] = (answer, left - 1)
            return answer
        return self.published


class Origin:
    """The publisher. Use as `async with`; it listens from then on.

    Several publishers of one test are several hosts with 127.0.0.2, 127.0.0.3 …; port 0 is any; `tls` is the
    server's side of https.
    """

    def __init__(self, host: str = "127.0.0.1", *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        assert host.startswith("127.") or host == "::1", "tests stay on loopback"
        self.host = host
        self.port = port
        self.latency_seconds = 0.0
        """Before each answer; for measuring."""
        self.requests: list[Request] = []
        self.open_connections = 0
        self.total_connections = 0
        self.running_requests = 0
        self.peak_requests = 0
        """The most requests answered at once."""
        self.tls = tls
        """Used from the next `start` on."""
        self._paths: dict[str, _Path] = {}
        self._below: dict[str, Answer] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen. After `stop`, on the same port again."""
        assert self._server is None, "listens already"
        self._server = await asyncio.start_server(
            self._serve, self.host, self.port, ssl=self.tls, limit=1 << 20, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the listener and every connection: the publisher is down."""
        if self._server is None:
            return
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()
        await asyncio.sleep(0)  # for the transports to be gone
        self._server = None

    # ---- Telling it what to answer

    def publish(
        self,
        path: str,
        body: bytes | str,
        *,
        content_type: str | None = ATOM,
        status: int = 200,
        etag: str | None = None,
        last_modified: str | float | None = None,
        headers: Headers = (),
        chunked: bool = False,
        chunk_bytes: int | None = None,
        gates: Iterable[asyncio.Event] = (),
        coding: Literal["gzip", "deflate"] | None = None,
    ) -> None:
        """Answer a path with a document from now on, and forget its faults.

        A path with a query string answers that alone. `content_type` None sends none; conditional requests
        count for status 200 only. An `etag` is written with its quotes; `last_modified` is an HTTP date, or
        seconds since the epoch. A body in pieces of `chunk_bytes` waits for the n-th gate before its n-th
        piece.
        """
        content = body.encode() if isinstance(body, str) else body
        if isinstance(last_modified, int | float):
            last_modified = email.utils.formatdate(last_modified, usegmt=True)
        fields = [("Content-Type", content_type)] if content_type is not None else []
        if coding is not None:
            content = gzip.compress(content) if coding == "gzip" else zlib.compress(content)
            fields.append(("Content-Encoding", coding))
        document = Document(
            body=content,
            status=status,
            headers=(*fields, *headers),
            etag=etag,
            last_modified=last_modified,
            chunked=chunked,
            chunk_bytes=chunk_bytes,
            gates=tuple(gates),
        )
        self.answer(path, document)

    def answer(self, path: str, answer: Answer) -> None:
        """Answer a path so from now on, and forget its faults."""
        self._paths[path] = _Path(answer)

    def answer_below(self, prefix: str, answer: Answer) -> None:
        """Answer so all requests below this path without an answer of their own; the longest path wins."""
        self._below[prefix] = answer

    def redirect(self, path: str, location: str | None, *, status: int = 302) -> None:
        """Redirect; `location` is sent unchanged."""
        self.answer(path, Redirect(location, status))

    def redirect_by_page(self, path: str, location: str) -> None:
        """Redirect by a page with a refresh, as static sites do."""
        page = f'<!doctype html><title>Moved</title><meta http-equiv="refresh" content="0; url={location}">'
        self.publish(path, page, content_type="text/html")

    def fault(self, path: str, answer: Answer, *, times: int | None = None) -> None:
        """Answer a path so before anything else, that many times or for good; then as published."""
        self._paths.setdefault(path, _Path()).faults.append((answer, times))

    def heal(self, path: str) -> None:
        if path in self._paths:
            self._paths[path].faults.clear()

    def remove(self, path: str) -> None:
        """Answer a path with 404 from now on."""
        self._paths.pop(path, None)

    @contextlib.contextmanager
    def held(self, path: str) -> Iterator[Gate]:
        """Hold a path's requests until `gate.release()`, at the latest until the end of the block.

        They get the path's answer at their release.
        """
        gate = Gate()
        later = Computed(lambda request: self._answer_to(request.target, but=held))
        held = Held(gate, later)
        self._paths.setdefault(path, _Path()).faults.insert(0, (held, None))
        try:
            yield gate
        finally:
            gate.release()
            faults = self._paths[path].faults
            self._paths[path].faults = [entry for entry in faults if entry[0] is not held]

    # ---- Asking it what happened

    def url(self, path: str = "/") -> str:
        scheme = "http" if self.tls is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}{path}"

    def requests_for(self, path: str) -> list[Request]:
        """Return the requests of a path, or of a path with its query string, in order."""
        return [request for request in self.requests if path in (request.target, request.path)]

    def counts(self) -> Counter[str]:
        """Return the number of requests for each target."""
        return Counter(request.target for request in self.requests)

    def forget_requests(self) -> None:
        self.requests.clear()

    # ---- Serving

    def _answer_to(self, target: str, *, but: Answer | None = None) -> Answer:
        found = self._paths.get(target) or self._paths.get(target.partition("?")[0])
        if found is not None and (answer := found.next(but=but)) is not None:
            return answer
        below = [prefix for prefix in self._below if target.startswith(prefix)]
        return self._below[max(below, key=len)] if below else Status(404)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.total_connections += 1
        self.open_connections += 1
        try:
            await self._converse(reader, writer, self.total_connections)
            writer.close()
        except (OSError, EOFError, asyncio.CancelledError):
            writer.transport.abort()  # the other side has left, or `stop` was called
        finally:
            self.open_connections -= 1
            self._tasks.discard(task)

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        wire = Wire(writer)
        early = b""
        while wire.keep_alive:
            request = _read_head(early + await reader.readuntil(b"\r\n\r\n"), number)
            self.requests.append(request)
            if request.headers.get("connection", "").lower() == "close":
                wire.close()
            early = await _until_hung_up(reader, self._answer(request, wire))
        await writer.drain()

    async def _answer(self, request: Request, wire: Wire) -> None:
        self.running_requests += 1
        self.peak_requests = max(self.peak_requests, self.running_requests)
        try:
            if self.latency_seconds:
                await asyncio.sleep(self.latency_seconds)
            await self._answer_to(request.target).send(request, wire)
        finally:
            self.running_requests -= 1


async def _until_hung_up(reader: asyncio.StreamReader, answering: Coroutine[object, object, None]) -> bytes:
    """Run an answer as long as the other side is there; return its requests' bytes sent meanwhile."""
    answer = asyncio.ensure_future(answering)
    watch = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait((answer, watch), return_when=asyncio.FIRST_COMPLETED)
        if watch.done() and not answer.done() and not watch.result():
            raise ConnectionResetError("the other side hung up")
        await answer
        return watch.result() if watch.done() else b""
    finally:
        answer.cancel()
        watch.cancel()
        await asyncio.gather(answer, watch, return_exceptions=True)


def _read_head(head: bytes, connection: int) -> Request:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    fields = (line.split(":", 1) for line in lines if ":" in line)
    return Request(
        method=method,
        target=target,
        headers={name.strip().lower(): value.strip() for name, value in fields},
        head=head,
        connection=connection,
        at=time.monotonic(),
    )
