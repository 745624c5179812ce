"""Requests per second and latency of a warm feed: `python -m benchmarks.serve`.

A feed of 1,000 entries (about 1 KB each) is reconstructed once. Then 50 connections ask for 10 s, each right
after its last answer: gzip, identity, and with the current ETag (304). The client is one asyncio process on
the same machine, so on few cores both share the processors.

Each connection's first answer is checked as a whole (status, length, ETag), and the entries are counted once
for each coding. Of every other answer, status and length are checked.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.support.feeds import Chain
from benchmarks.support.publisher import running_publisher
from benchmarks.support.report import Table, begin, expect
from benchmarks.support.server import Server, running_server

_LIMIT_BYTES: Final = 1 << 24
_START_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    etag: str
    body: bytes


class Connection:
    """A persistent connection with a minimal HTTP client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        async with asyncio.timeout(_START_SECONDS):
            return cls(*await asyncio.open_connection("127.0.0.1", port, limit=_LIMIT_BYTES))

    async def ask(self, request: bytes) -> Reply:
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(first.split(" ", 2)[1])
        length = int(fields.get("content-length", 0)) if status != 304 else 0
        return Reply(status, fields.get("etag", ""), await self._reader.readexactly(length))

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def request_for(target: str, port: int, **fields: str) -> bytes:
    """Return a GET request; `Accept_Encoding="gzip"` sets a field."""
    lines = [f"GET {target} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def load(
    port: int, request: bytes, expected: Reply, connections: int, duration_seconds: float
) -> list[float]:
    """Ask over all connections until the time is over; return the seconds of each answer."""
    durations: list[float] = []
    opened = [await Connection.open(port) for _ in range(connections)]
    until = time.perf_counter() + duration_seconds

    async def ask_on(connection: Connection) -> None:
        while (began := time.perf_counter()) < until:
            reply = await connection.ask(request)
            durations.append(time.perf_counter() - began)
            expect("status", reply.status, expected.status)
            expect("length", len(reply.body), len(expected.body))
            expect("ETag", reply.etag, expected.etag)

    try:
        await asyncio.gather(*(ask_on(connection) for connection in opened))
    finally:
        for connection in opened:
            await connection.close()
    return durations


async def once(port: int, request: bytes) -> Reply:
    """Ask once, for the expected answer."""
    connection = await Connection.open(port)
    try:
        return await connection.ask(request)
    finally:
        await connection.close()


def entries(reply: Reply, *, is_gzip: bool) -> int:
    return (gzip.decompress(reply.body) if is_gzip else reply.body).count(b"<entry")


async def measure(server: Server, url: str, chain: Chain, options: argparse.Namespace) -> None:
    target, port = server.feed_target(url), server.port
    gzipped, plain = (request_for(target, port, Accept_Encoding=coding) for coding in ("gzip", "identity"))
    whole, identity = await once(port, gzipped), await once(port, plain)
    expect("entries in gzip", entries(whole, is_gzip=True), chain.total_entries)
    expect("entries", entries(identity, is_gzip=False), chain.total_entries)
    known = request_for(target, port, Accept_Encoding="gzip", If_None_Match=whole.etag)
    unchanged = await once(port, known)
    expect("status of a conditional request", unchanged.status, 304)
    table = Table(
        "", "requests", "per second", "p50 ms", "p90 ms", "p99 ms", "max ms", "MB/s", first_width=26
    )
    for name, request, expected in (
        ("gzip", gzipped, whole),
        ("identity", plain, identity),
        ("304 by ETag", known, unchanged),
    ):
        began = time.perf_counter()
        durations = sorted(await load(port, request, expected, options.connections, options.seconds))
        took = time.perf_counter() - began
        at = [durations[int(share * (len(durations) - 1))] * 1000 for share in (0.5, 0.9, 0.99, 1)]
        table.row(
            f"{name}, {len(expected.body) / 1000:.0f} KB",
            f"{len(durations)}",
            f"{len(durations) / took:.0f}",
            *(f"{value:.1f}" for value in at),
            f"{len(durations) * len(expected.body) / took / 1e6:.0f}",
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure requests per second of a warm feed.")
    parser.add_argument("--archives", type=int, default=19, help="archive documents (default 19)")
    parser.add_argument("--entries", type=int, default=50, help="entries in each document (default 50)")
    parser.add_argument("--entry-bytes", type=int, default=1000, help="size of an entry (default 1000)")
    parser.add_argument("--connections", type=int, default=50, help="that ask at once (default 50)")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each kind (default 10)")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    begin()
    chain = Chain(archives=options.archives, entries=options.entries, entry_bytes=options.entry_bytes)
    print(
        f"{chain.documents} documents, {chain.total_entries} entries; {options.connections} connections,"
        f" {options.seconds:g} s each"
    )
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-serve-") as folder,
        running_publisher(chain) as publisher,
        running_server(Path(folder)) as server,
    ):
        answer = server.whole(publisher.url())
        expect("state", answer.state, "complete")
        asyncio.run(measure(server, publisher.url(), chain, options))


if __name__ == "__main__":
    main()
