"""A relay to PostgreSQL that counts how often a client waits for the server.

with counting_trips(postgres.url("wholefeed")) as trips:
    ...                                        # connect to trips.url
    trips.count

A trip is one question with its answer: a simple query, or messages up to a Sync or Flush.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

_ENDS: Final = b"QSH"
"""Kinds of messages: Query, Sync, Flush."""
_START_SECONDS: Final = 10.0


class Trips:
    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._port = 0
        self._is_listening = threading.Event()
        self._loop = asyncio.new_event_loop()
        self.count = 0

    @property
    def url(self) -> str:
        """The database's URL through the relay, without TLS."""
        place = f"{self._parts.username}@127.0.0.1:{self._port}"
        return self._parts._replace(netloc=place, query="sslmode=disable").geturl()

    def run(self) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self._port = server.sockets[0].getsockname()[1]
        self._is_listening.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def wait(self) -> None:
        if not self._is_listening.wait(_START_SECONDS):
            raise RuntimeError("the relay did not start")

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        answers = asyncio.create_task(_pass_on(there, writer))
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            start = await reader.readexactly(4)  # the only message without a kind
            out.write(start + await reader.readexactly(int.from_bytes(start) - 4))
            while True:
                head = await reader.readexactly(5)
                out.write(head + await reader.readexactly(int.from_bytes(head[1:]) - 4))
                self.count += head[:1] in _ENDS
        answers.cancel()
        out.close()
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.contextmanager
def counting_trips(url: str) -> Iterator[Trips]:
    trips = Trips(url)
    thread = threading.Thread(target=trips.run, name="trips", daemon=True)
    thread.start()
    trips.wait()
    try:
        yield trips
    finally:
        trips.stop()
        thread.join()
