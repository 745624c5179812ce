"""Peak memory of the server while it serves a feed of 300 MB: `python -m benchmarks.memory`.

The feed (300 archive documents of about 1 MB, entries of about 3 KB) is reconstructed once, from a publisher
in its own process. The server restarts on that store and is asked for the feed: gzip and identity, one reader
and four at once. Readers check the announced length, every entry, and that gzip holds the same text as
identity.

`peak` is the highest resident memory of the server's process (VmHWM) after the row; for the first walk, of
the server and its children together. The target is under 150 MB. `first byte` is that of the slowest reader's
body.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure
from benchmarks.support.publisher import running_publisher
from benchmarks.support.report import Table, begin, expect
from benchmarks.support.server import Server, running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree
from benchmarks.support.usage import watching

TARGET_BYTES: Final = 150_000_000
READERS: Final = 4
_CHUNK_BYTES: Final = 1 << 18
_READ_SECONDS: Final = 120
_MARK: Final = b"<entry"


@dataclass(frozen=True, slots=True)
class Reading:
    first_byte_seconds: float
    seconds: float
    wire_bytes: int
    text_bytes: int
    entries: int
    digest: bytes


class _Counting:
    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.bytes = 0
        self.entries = 0
        self._tail = b""

    def take(self, piece: bytes) -> None:
        self.digest.update(piece)
        self.bytes += len(piece)
        window = self._tail + piece
        self.entries += window.count(_MARK)
        self._tail = window[1 - len(_MARK) :]  # shorter than the mark: nothing is counted twice


def read(server: Server, url: str, coding: str) -> Reading:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_READ_SECONDS)
    with contextlib.closing(connection):
        began = time.perf_counter()
        connection.request("GET", server.feed_target(url), headers={"Accept-Encoding": coding})
        response = connection.getresponse()
        expect("coding", response.headers.get("Content-Encoding", "identity"), coding)
        text = _Counting()
        inflater = zlib.decompressobj(16 + zlib.MAX_WBITS) if coding == "gzip" else None
        first_byte_seconds, wire_bytes = 0.0, 0
        while piece := response.read1(_CHUNK_BYTES):
            first_byte_seconds = first_byte_seconds or time.perf_counter() - began
            wire_bytes += len(piece)
            text.take(inflater.decompress(piece) if inflater else piece)
        took = time.perf_counter() - began
        expect("end of the coding", inflater is None or inflater.eof, expected=True)
        expect("length", wire_bytes, int(response.headers["Content-Length"]))
        return Reading(first_byte_seconds, took, wire_bytes, text.bytes, text.entries, text.digest.digest())


def build(folder: Path, chain: Chain, table: Table, tree: Tree = HERE) -> tuple[str, int]:
    """Reconstruct the feed into the store; return its URL and the peak memory."""
    with running_publisher(chain) as publisher, running_server(folder, tree=tree) as server:
        began = time.perf_counter()
        with watching(server.pid) as peak:
            answer = server.whole(publisher.url())
        took = time.perf_counter() - began
        expect("state", answer.state, "complete")
        expect("entries", answer.entries, chain.total_entries)
        table.row(
            "first reconstruction, then gzip",
            "",
            f"{took:.2f}",
            f"{answer.wire_bytes / 1e6:.0f}",
            "",
            f"{peak.bytes / 1e6:.0f}",
        )
        return publisher.url(), peak.bytes


def serve(server: Server, url: str, coding: str, readers: int, table: Table) -> list[Reading]:
    with ThreadPoolExecutor(readers) as threads:
        began = time.perf_counter()
        readings = list(threads.map(lambda _: read(server, url, coding), range(readers)))
        took = time.perf_counter() - began
    sent_bytes = sum(reading.wire_bytes for reading in readings)
    table.row(
        f"{coding}, {readers} at once" if readers > 1 else coding,
        f"{max(reading.first_byte_seconds for reading in readings) * 1000:.0f}",
        f"{took:.2f}",
        f"{sent_bytes / 1e6:.0f}",
        f"{sum(reading.text_bytes for reading in readings) / took / 1e6:.0f}",
        f"{server.peak_bytes() / 1e6:.0f}",
    )
    return readings


def check(readings: list[Reading], chain: Chain) -> None:
    """Check that every answer holds the same text, with every entry."""
    for reading in readings:
        expect("entries", reading.entries, chain.total_entries)
        expect("text", reading.digest, readings[0].digest)


def figures(tree: Tree = HERE, *, archives: int = 99) -> list[Figure]:
    """Measure the first walk and four readers at once, as figures to store."""
    chain = Chain(archives=archives, entries=340, entry_bytes=3000)
    table = Table("", "first byte ms", "total s", "MB sent", "MB/s of text", "peak MB")
    with tempfile.TemporaryDirectory(prefix="wholefeed-memory-") as name:
        folder = Path(name)
        url, walk_bytes = build(folder, chain, table, tree)
        with running_server(folder, tree=tree) as server, watching(server.pid) as peak:
            readings = serve(server, url, "gzip", READERS, table)
            readings += serve(server, url, "identity", READERS, table)
    check(readings, chain)
    size = f"feed of {readings[0].text_bytes / 1e6:.0f} MB"
    firsts = [reading.first_byte_seconds * 1000 for reading in readings]
    return [
        Figure(f"memory.walk.peak, {size}", "MB", [walk_bytes / 1e6]),
        Figure(f"memory.serve.peak, {size}", "MB", [peak.bytes / 1e6]),
        Figure(f"memory.serve.first byte, {size}", "ms", firsts),
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the server's peak memory while it serves.")
    parser.add_argument("--archives", type=int, default=299, help="archive documents (default 299)")
    parser.add_argument("--entries", type=int, default=340, help="entries in each document (default 340)")
    parser.add_argument("--entry-bytes", type=int, default=3000, help="size of an entry (default 3000)")
    add_tree(parser)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    begin()
    chain = Chain(archives=options.archives, entries=options.entries, entry_bytes=options.entry_bytes)
    print(f"{chain.documents} documents, {chain.total_entries} entries; target {TARGET_BYTES / 1e6:.0f} MB")
    table = Table("", "first byte ms", "total s", "MB sent", "MB/s of text", "peak MB")
    with tempfile.TemporaryDirectory(prefix="wholefeed-memory-") as name:
        folder = Path(name)
        url, _ = build(folder, chain, table, chosen_tree(options))
        with running_server(folder, tree=chosen_tree(options)) as server:
            table.row("started again", "", "", "", "", f"{server.peak_bytes() / 1e6:.0f}")
            readings = [
                reading
                for readers in (1, READERS)
                for coding in ("gzip", "identity")
                for reading in serve(server, url, coding, readers, table)
            ]
            peak_bytes = server.peak_bytes()
    check(readings, chain)
    print(
        f"{len(readings)} answers of {readings[0].text_bytes / 1e6:.1f} MB,"
        f" {readings[0].entries} entries each"
    )
    verdict = "under" if peak_bytes < TARGET_BYTES else "OVER"
    print(f"peak memory while serving: {peak_bytes / 1e6:.0f} MB, {verdict} the target")


if __name__ == "__main__":
    main()
