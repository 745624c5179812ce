"""What bodies of requests cost that nobody asked for, and how long a supervisor waits beside them (row 143).

measure_bodies(1 << 20)         # a row for each coding: what the server spent, over all routes and methods
"""

from __future__ import annotations

import gzip
import socket
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

_TOKEN: Final = "a-token-that-nobody-knows"
_SECONDS: Final = 5.0
_TARGETS: Final = (
    *("/opml", "/import?url=http://a.example/", "/refresh?url=http://a.example/", "/login", "/logout", "/"),
    *("/feed?url=http://a.example/", "/status?url=http://a.example/", "/healthz", "/metrics", "/nowhere"),
)
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
_CODINGS: Final[dict[str, Callable[[int], bytes]]] = {
    "": bytes,
    "gzip": lambda size: gzip.compress(bytes(64 * size)),
    "deflate": lambda size: zlib.compress(bytes(64 * size)),
    "br": lambda size: brotli.compress(bytes(256 * size), quality=4),
}
"""What a body of about so many bytes, or a bomb of many times as many, is on the wire."""


def measure_bodies(size_bytes: int) -> None:
    """Print a row for each coding: every route and method is sent a body without the token."""
    table = Table("", "requests", "wire KB", "CPU ms each", "grown MB", "healthz p99 ms", first_width=40)
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-hostile-") as folder,
        running_server(Path(folder), server_access_token=_TOKEN) as server,
    ):
        for coding, make in _CODINGS.items():
            body = make(size_bytes)
            before, resident = server.cpu_seconds(), server.resident_bytes()
            outcomes = Counter[str]()
            with asking_health(server) as durations:
                for target in _TARGETS:
                    for method in _METHODS:
                        outcomes[_send(server, method, target, coding, body)] += 1
            count = sum(outcomes.values())
            spent = 1000 * (server.cpu_seconds() - before) / count
            late = 1000 * durations[int(0.99 * len(durations))]
            grown = (server.peak_bytes() - resident) / 1e6
            said = ", ".join(f"{status} x{times}" for status, times in outcomes.most_common(3))
            cells = (str(count), f"{len(body) / 1e3:.0f}", f"{spent:.2f}", f"{grown:.1f}", f"{late:.1f}")
            table.row(f"{coding or 'plain'}: {said}", *cells)


def _send(server: Server, method: str, target: str, coding: str, body: bytes) -> str:
    """Send a request with a body; return the status of the answer."""
    named = f"Content-Encoding: {coding}\r\n" if coding else ""
    head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{named}Content-Length: {len(body)}\r\n\r\n"
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=_SECONDS)) as client:
        with suppress(ConnectionError, TimeoutError):
            client.sendall(head.encode() + body)
        with suppress(ConnectionError, TimeoutError):
            return client.recv(64).split(b" ")[1].decode()
    return "none"
