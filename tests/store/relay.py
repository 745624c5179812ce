"""A relay between psycopg and a server, which cuts connections where a test wants it.

async with a_relay(url) as relay:
    relay.cut_at_commit(reaches_server=True)
    ...                                        # connect to relay.url
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final, TypeVar
from urllib.parse import urlsplit

_R = TypeVar("_R", bound="Relay")

_COMMIT: Final = b"COMMIT\0"


class Relay:
    """Forwards every byte unchanged."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = parts.hostname, parts.port
        self._parts = parts
        self._cuts = list[bool]()
        self._writers = set[asyncio.StreamWriter]()
        self.port = 0
        self.is_open = True
        """Whether it accepts connections."""
        self.is_silent = False
        """Whether it forwards nothing, as when packets are dropped."""
        self.silent_at = b""
        """Text after which nothing is forwarded; empty: none."""

    @property
    def url(self) -> str:
        """The database's URL through the relay, without TLS, so that the relay can read the bytes."""
        return self._parts._replace(
            netloc=f"postgres@127.0.0.1:{self.port}", query="sslmode=disable"
        ).geturl()

    def cut_at_commit(self, *, reaches_server: bool) -> None:
        """Cut the next connection that commits, before the server has answered."""
        self._cuts.append(reaches_server)

    def cut_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.transport.abort()
            return
        there, out = await asyncio.open_connection(*self._target)
        self._writers |= {writer, out}
        answers = asyncio.create_task(self._answer(there, writer))
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if self.silent_at and self.silent_at in data:
                    self.is_silent = True
                while self.is_silent:
                    await asyncio.sleep(0.01)
                if _COMMIT in data and self._cuts:
                    if self._cuts.pop(0):
                        answers.cancel()
                        await asyncio.wait({answers})
                        out.write(data)
                        await there.read(1 << 16)  # it is committed by now
                    break
                out.write(data)
                await out.drain()
        answers.cancel()
        for each in (writer, out):
            self._writers.discard(each)
            each.transport.abort()

    async def _answer(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await there.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


def a_relay(url: str) -> AbstractAsyncContextManager[Relay]:
    return serving(Relay(url))


@asynccontextmanager
async def serving(relay: _R) -> AsyncIterator[_R]:
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        relay.cut_all()
        await asyncio.sleep(0)
