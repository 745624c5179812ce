"""Cost of unwanted request bodies, and a supervisor's wait beside them.

measure_bodies(1 << 20)     # a row for each coding and framing, over all routes and methods

They are those of docs/faults.md rows 143 and 144.
"""

from __future__ import annotations

import gzip
import socket
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import brotli  # type: ignore[import-untyped]

from benchmarks.support.health import asking_health
from benchmarks.support.report import Table
from benchmarks.support.server import Server, running_server

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_TOKEN: Final = "a-token-that-nobody-knows"
_SECONDS: Final = 5.0
_TARGETS: Final = (
    *("/opml", "/import?url=http://a.example/", "/refresh?url=http://a.example/", "/login", "/logout", "/"),
    *("/feed?url=http://a.example/", "/status?url=http://a.example/", "/healthz", "/metrics", "/nowhere"),
)
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
_CHUNKED: Final = "Transfer-Encoding: chunked"
_Body = Callable[[int], bytes]
_KINDS: Final[dict[str, tuple[str, _Body]]] = {
    "plain": ("", bytes),
    "gzip": ("Content-Encoding: gzip", lambda size: gzip.compress(bytes(64 * size))),
    "deflate": ("Content-Encoding: deflate", lambda size: zlib.compress(bytes(64 * size))),
    "br": ("Content-Encoding: br", lambda size: brotli.compress(bytes(256 * size), quality=4)),
    "zstd": ("Content-Encoding: zstd", lambda size: zstd.compress(bytes(256 * size))),
    "tiny chunks": (_CHUNKED, lambda size: b"1\r\nx\r\n" * (size // 6)),
    "tiny chunks, gzip": (f"{_CHUNKED}\r\nContent-Encoding: gzip", lambda size: b"1\r\nx\r\n" * (size // 6)),
    "extension of a chunk": (_CHUNKED, lambda size: b"1;" + b"x" * size),
    "no chunks": (_CHUNKED, bytes),
    "long trailer": (_CHUNKED, lambda size: b"0\r\nX: " + b"x" * size),
    "behind an Upgrade": ("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0", bytes),
    "100-continue": ("Expect: 100-continue", bytes),
}
"""Fields of the head, and the wire form of a body, or bomb, of a given size."""


def measure_bodies(size_bytes: int) -> None:
    """Print a row for each kind of body: every route and method gets one without the token.

    Each kind has its own server; CPU and memory are those of one request.
    """
    units = ("requests", "wire KB", "CPU ms each", "grown MB each", "healthz p99 ms")
    table = Table("", *units, first_width=40)
    for kind, (fields, make) in _KINDS.items():
        body = make(size_bytes)
        with (
            tempfile.TemporaryDirectory(prefix="wholefeed-hostile-") as folder,
            running_server(Path(folder), server_access_token=_TOKEN) as server,
        ):
            before, resident = server.cpu_seconds(), server.resident_bytes()
            outcomes = Counter[str]()
            with asking_health(server) as durations:
                for target in _TARGETS:
                    for method in _METHODS:
                        outcomes[_send(server, method, target, fields, body)] += 1
            count = sum(outcomes.values())
            spent = 1000 * (server.cpu_seconds() - before) / count
            late = 1000 * durations[int(0.99 * len(durations))]
            grown = (server.peak_bytes() - resident) / 1e6 / count
        said = ", ".join(f"{status} x{times}" for status, times in outcomes.most_common(3))
        cells = (str(count), f"{len(body) / 1e3:.0f}", f"{spent:.2f}", f"{grown:.2f}", f"{late:.1f}")
        table.row(f"{kind}: {said}", *cells)


def _send(server: Server, method: str, target: str, fields: str, body: bytes) -> str:
    framed = "" if _CHUNKED in fields or "Content-Length" in fields else f"Content-Length: {len(body)}"
    lines = (f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", *filter(None, (fields, framed)), "", "")
    head = "\r\n".join(lines)
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=_SECONDS)) as client:
        with suppress(ConnectionError, TimeoutError):
            client.sendall(head.encode() + body)
        with suppress(ConnectionError, TimeoutError):
            return client.recv(64).split(b" ")[1].decode()
    return "none"
