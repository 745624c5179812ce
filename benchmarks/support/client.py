"""A client that costs little: one connection that is kept alive, and as little of HTTP as answers need.

with open_client(server.port) as client:
    client.ask(get("/healthz", server.port)).status
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_READ_SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    fields: dict[str, str]
    body: bytes

    @property
    def etag(self) -> str:
        """The ETag; empty: none."""
        return self.fields.get("etag", "")


class Client:
    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._stream = connected.makefile("rb")

    def ask(self, request: bytes) -> Reply:
        """Send a request and read its answer.

        Raises:
            EOFError: The connection was closed.
        """
        self.send(request)
        return self.reply()

    def send(self, request: bytes) -> None:
        """Send a request, whose answer is read by `reply`."""
        self._socket.sendall(request)

    def reply(self) -> Reply:
        """Read the next answer, which must announce its length.

        Raises:
            EOFError: The connection was closed.
        """
        first = self._stream.readline()
        if not first:
            raise EOFError("the server has closed the connection")
        status = int(first.split(b" ", 2)[1])
        fields = {}
        while (line := self._stream.readline()) != b"\r\n":
            name, _, value = line.decode("latin-1").partition(":")
            fields[name.lower()] = value.strip()
        length = int(fields.get("content-length", 0)) if status not in (204, 304) else 0
        return Reply(status, fields, self._stream.read(length))

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


@contextlib.contextmanager
def open_client(port: int) -> Iterator[Client]:
    connected = socket.create_connection(("127.0.0.1", port), timeout=_READ_SECONDS)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client = Client(connected)
    try:
        yield client
    finally:
        client.close()


def get(target: str, port: int, **fields: str) -> bytes:
    """Return a GET request; `Accept_Encoding="gzip"` sets a field."""
    lines = [f"GET {target} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def repeat(clients: Sequence[Client], request: bytes, times: int, expected: int) -> list[float]:
    """Ask several times over each connection, one request under way on each; return the answers' seconds.

    Raises:
        RuntimeError: The status is another than the expected one.
    """
    durations = []
    for _ in range(times):
        began = time.perf_counter()
        for client in clients:
            client.send(request)
        for client in clients:
            reply = client.reply()
            durations.append(time.perf_counter() - began)
            if reply.status != expected:
                raise RuntimeError(f"expected status {expected}, got {reply.status}: {reply.body[:200]!r}")
    return durations
