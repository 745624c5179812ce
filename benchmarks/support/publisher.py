"""The publisher of a generated feed, in a process and loop apart from the measured server.

    with running_publisher(chain, latency_seconds=0.05) as publisher:
        publisher.url("/feed")
        publisher.counts()            # Counts(requests=101, connections=4)

Below /f1, /f2 … stand as many feeds as one likes, each its own copy of the chain. It listens on loopback,
keeps connections alive, and ends when whoever started it ends. A conditional publisher gives each document
an ETag and answers 304 to it; every tenth of its feeds (/f0, /f10 …) says that it is fresh for a second
only. One that is told for how long its documents are good counts who asks for one that is still good, or is
being sent already: `doubled`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import functools
import http.client
import json
import math
import random
import re
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.support.child import STOP_SECONDS, running_child
from benchmarks.support.feeds import Chain

_PIECES: Final = 8
"""Pieces of a slow body."""
_COUNTS: Final = "/-/counts"
_GROW: Final = "/-/grow"
_KEPT_DOCUMENTS: Final = 128
"""Cached documents: generating them for each request would be measured too."""
_NUMBER: Final = re.compile(r"/f(\d+)/feed")
_ETAG: Final = re.compile(rb'\r\nif-none-match: *("[^"]*")', re.IGNORECASE)
_PATH: Final = re.compile(r"(?P<feed>(/f\d+)?)/(feed|archive/(?P<number>\d+))")
_SEED: Final = 5005


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests since the last question."""

    requests: int
    connections: int
    doubled: int = 0
    """Requests for a document still being sent, or sent recently enough to be fresh."""
    count_failure: int = 0


class Publisher:
    """A running publisher, seen from the process that started it."""

    def __init__(self, port: int) -> None:
        self._port = port

    def url(self, path: str = "/feed", *, host: int = 1) -> str:
        """Return the URL of a path at one of its hosts, counted from 1."""
        return f"http://127.0.0.{host}:{self._port}{path}"

    def counts(self) -> Counts:
        """Return the requests since the last call, without this one."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=STOP_SECONDS)
        with contextlib.closing(connection):
            connection.request("GET", _COUNTS)
            return Counts(**json.loads(connection.getresponse().read()))

    def grow(self) -> None:
        """Add an entry to each feed; the oldest of each subscription document falls out."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=STOP_SECONDS)
        with contextlib.closing(connection):
            connection.request("GET", _GROW)
            connection.getresponse().read()


@contextlib.contextmanager
def running_publisher(
    chain: Chain,
    *,
    latency_seconds: float = 0.0,
    body_seconds: float = 0.0,
    failing: float = 0.0,
    growth_seconds: float = 0.0,
    hosts: int = 1,
    is_conditional: bool = False,
    is_gzipped: bool = False,
    good_seconds: float = 0.0,
    short_every: int = 10,
) -> Iterator[Publisher]:
    """Start a publisher of that chain, and stop it at the end.

    Args:
        chain: The published documents.
        latency_seconds: Before the head of each answer.
        body_seconds: How long each body takes from its first piece to its last.
        failing: The share of requests that fail: status 500, 429, a body that breaks off, no answer at all.
        growth_seconds: How long until each feed has another entry; 0 is for ever.
        hosts: Addresses that it listens at, one port everywhere.
        is_conditional: Whether it gives ETags, and says of every tenth feed how short it is fresh.
        is_gzipped: Whether every body is sent with that content coding, as large ones must be.
        good_seconds: How long nobody should ask for a document again; 0: nobody counts.
        short_every: One in so many feeds of a conditional publisher is fresh for a second only.
    """
    options = {
        **dataclasses.asdict(chain),
        "latency_seconds": latency_seconds,
        "body_seconds": body_seconds,
        "failing": failing,
        "growth_seconds": growth_seconds,
        "hosts": hosts,
        "is_conditional": is_conditional,
        "is_gzipped": is_gzipped,
        "good_seconds": good_seconds,
        "short_every": short_every,
    }
    with running_child(__name__, json.dumps(options)) as port:
        yield Publisher(port)


class _Server:
    def __init__(
        self,
        chain: Chain,
        *,
        latency_seconds: float,
        body_seconds: float,
        failing: float,
        growth_seconds: float,
        hosts: int,
        is_conditional: bool,
        is_gzipped: bool,
        good_seconds: float,
        short_every: int,
    ) -> None:
        self._chain = chain
        self._latency_seconds = latency_seconds
        self._body_seconds = body_seconds
        self._failing = failing
        self._growth_seconds = growth_seconds
        self._chance = random.Random(_SEED)
        self._began = time.monotonic()
        self._hosts = hosts
        self._is_conditional = is_conditional
        self._coding = "Content-Encoding: gzip\r\n" if is_gzipped else ""
        self._grown = 0
        self._made = functools.lru_cache(_KEPT_DOCUMENTS)(self._make)
        self._requests = 0
        self._connections = 0
        self._doubled = 0
        self._failed = 0
        self._good_seconds = good_seconds
        self._short_every = short_every
        self._good_until: dict[str, float] = {}
        """By URL; endless during sending."""

    async def run(self) -> None:
        """Listen, print the port, and serve until standard input ends."""
        port, servers = 0, []
        for host in range(1, self._hosts + 1):
            server = await asyncio.start_server(self._converse, f"127.0.0.{host}", port, backlog=256)
            port = server.sockets[0].getsockname()[1]
            servers.append(server)
        self._document("", "/feed")  # the first one makes the text that the others are cut from
        print(port, flush=True)
        over = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin, over.set)
        await over.wait()
        for server in servers:
            server.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_counted = False
        base = "http://{}:{}".format(*writer.get_extra_info("sockname"))
        with contextlib.suppress(OSError, EOFError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                if path == _COUNTS:
                    self._answer(writer, 200, self._counts())
                    continue
                if path == _GROW:
                    self._grown += 1
                    self._answer(writer, 200, b"")
                    continue
                self._requests += 1
                self._connections += not is_counted
                is_counted = True
                self._note(base + path)
                await asyncio.sleep(self._latency_seconds)
                if self._chance.random() < self._failing:
                    self._good_until.pop(base + path, None)
                    self._failed += 1
                    if not await self._fail(writer, self._document(base, path) or b""):
                        break
                    continue
                if self._good_seconds:
                    self._good_until[base + path] = time.monotonic() + self._good_seconds
                if self._is_conditional:
                    self._answer_conditionally(writer, path, head, self._document(base, path))
                else:
                    await self._send(writer, self._document(base, path))
        writer.close()

    def _note(self, url: str) -> None:
        """Count requests for documents still fresh."""
        if self._good_seconds:
            self._doubled += time.monotonic() < self._good_until.get(url, 0.0)
            self._good_until[url] = math.inf

    async def _send(self, writer: asyncio.StreamWriter, body: bytes | None) -> None:
        if body is None or not self._body_seconds:
            self._answer(writer, 404 if body is None else 200, body or b"")
            await writer.drain()
            return
        size = -(-len(body) // _PIECES)
        self._answer(writer, 200, body[:size], length=len(body))
        for at in range(size, len(body), size):
            await asyncio.sleep(self._body_seconds / (_PIECES - 1))
            writer.write(body[at : at + size])
            await writer.drain()

    def _answer_conditionally(
        self, writer: asyncio.StreamWriter, path: str, head: bytes, body: bytes | None
    ) -> None:
        if body is None:
            self._answer(writer, 404, b"")
            return
        etag = f'"{zlib.crc32(body):08x}"'
        more = f"ETag: {etag}\r\n"
        number = _NUMBER.match(path)
        if number is not None and not int(number[1]) % self._short_every:
            more += "Cache-Control: max-age=1\r\n"
        known = _ETAG.search(head)
        is_known = known is not None and known[1].decode("latin-1") == etag
        self._answer(writer, 304 if is_known else 200, b"" if is_known else body, more=more)

    async def _fail(self, writer: asyncio.StreamWriter, body: bytes) -> bool:
        """Fail in one of several ways; return whether the connection stays usable."""
        way = self._chance.choice(("error", "busy", "broken", "silent"))
        if way == "error":
            self._answer(writer, 500, b"")
        elif way == "busy":
            self._answer(writer, 429, b"", more="Retry-After: 1\r\n")
        elif way == "broken":
            self._answer(writer, 200, body[: len(body) // 2], length=len(body) + 1)
        await writer.drain()
        return way in ("error", "busy")

    def _answer(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        body: bytes,
        *,
        length: int | None = None,
        more: str = "",
    ) -> None:
        size = len(body) if length is None else length
        fields = f"Content-Type: application/atom+xml\r\nContent-Length: {size}\r\n{self._coding}{more}"
        writer.write(f"HTTP/1.1 {status} .\r\n{fields}\r\n".encode() + body)

    def _document(self, base: str, path: str) -> bytes | None:
        found = _PATH.fullmatch(path)
        if found is None:
            return None
        base += found["feed"]
        if found["number"] is None:
            age = time.monotonic() - self._began
            added = int(age / self._growth_seconds) if self._growth_seconds else 0
            return self._made(base, 0, self._grown + added)
        number = int(found["number"])
        return self._made(base, number, 0) if 1 <= number <= self._chain.archives else None

    def _make(self, base: str, number: int, added: int) -> bytes:
        """Write an archive document, or number 0, the subscription document."""
        chain = self._chain
        body = chain.archive(base, number) if number else chain.subscription(base, added=added)
        return zlib.compress(body, 1, zlib.MAX_WBITS + 16) if self._coding else body

    def _counts(self) -> bytes:
        counts = Counts(self._requests, self._connections, self._doubled, self._failed)
        self._requests = self._connections = self._doubled = self._failed = 0
        return json.dumps(dataclasses.asdict(counts)).encode()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("options", help="of running_publisher, as JSON")
    options = json.loads(parser.parse_args().options)
    chain = Chain(**{each.name: options.pop(each.name) for each in dataclasses.fields(Chain)})
    with contextlib.suppress(KeyboardInterrupt):  # it goes to the whole group; the benchmark says it
        asyncio.run(_Server(chain, **options).run())


if __name__ == "__main__":
    _main()
