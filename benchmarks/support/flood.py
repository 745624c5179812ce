"""Clients that mean harm: connections that never say the whole of a request, each from an address of its own.

    async with flooding(port, FORM, count=900): ...         # they stay until the end

Where the server closes one, or does not take it, that is its right: nothing is raised here.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Final

_HEAD: Final = "HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
HALF_A_HEAD: Final = b"GET / HTTP/1.1\r\nHost: "
FORM: Final = f"POST /login {_HEAD}Content-Length: 100\r\n\r\ntoken=".encode()
LONG_FORM: Final = (
    f"POST /login {_HEAD}Transfer-Encoding: chunked\r\n\r\nfffff\r\ntoken=".encode() + b"x" * 1_000_000
)
LONG_LIST: Final = (
    b"POST /opml HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"700000\r\n<opml><body>" + b" " * 7_000_000
)

_AT_ONCE: Final = 100
_PATIENCE_SECONDS: Final = 5


@contextlib.asynccontextmanager
async def flooding(port: int, said: bytes, *, count: int) -> AsyncIterator[None]:
    """Open this many connections to a port of loopback, send the text on each, and hold them inside."""
    turns = asyncio.Semaphore(_AT_ONCE)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]

        async def hold(number: int) -> None:
            async with turns:
                with contextlib.suppress(OSError):
                    await _say(held[number], port, said, number)

        await asyncio.gather(*map(hold, range(count)))
        yield


async def _say(connection: socket.socket, port: int, said: bytes, number: int) -> None:
    connection.setblocking(False)
    connection.bind((f"127.1.{number // 250}.{number % 250 + 1}", 0))
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_PATIENCE_SECONDS):  # TimeoutError is an OSError
        await loop.sock_connect(connection, ("127.0.0.1", port))
        await loop.sock_sendall(connection, said)
