"""Readers' connections: those that are idle or never finish a header are closed (docs/faults.md row 78).

The server of aiohttp waits for a header as long as it takes, so an idle or half-open connection would stay
for good. A connection counts as busy while a request of it is being answered.

    async with reaping(runner.server, connections): ...
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final, Protocol

from aiohttp import web

from wholefeed.loggers import get_logger

log = get_logger()

IDLE_SECONDS: Final = 10.0
MAX_CONNECTIONS: Final = 2048
_OPEN_FILES: Final = 2 * MAX_CONNECTIONS
"""What readers' connections, those to publishers and the database need, and those about to be reaped."""
_PAUSE_SECONDS: Final = 1.0


class Connection(Protocol):
    """What aiohttp makes for each connection."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """None once it is closed."""


class Connections:
    """Which connections are busy, and since when the others are not."""

    def __init__(self) -> None:
        self._busy: Counter[Connection] = Counter()
        self._idle_since: dict[Connection, float] = {}

    @contextmanager
    def busy(self, connection: Connection) -> Iterator[None]:
        """Count the connection as busy inside."""
        self.begin(connection)
        try:
            yield
        finally:
            self.end(connection)

    def begin(self, connection: Connection) -> None:
        """Count the connection as busy until `end`, which must follow."""
        self._busy[connection] += 1

    def end(self, connection: Connection) -> None:
        """Count it as idle from now on, unless another request of it is being answered."""
        self._busy[connection] -= 1
        if not self._busy[connection]:
            del self._busy[connection]
        self._idle_since[connection] = time.monotonic()

    @property
    def busy_count(self) -> int:
        """How many are busy."""
        return len(self._busy)

    def is_crowded(self, *, at_most: int = MAX_CONNECTIONS) -> bool:
        """Return whether more connections are busy than may be; the idle ones are reaped."""
        return len(self._busy) > at_most

    def overdue(
        self,
        connections: Iterable[Connection],
        *,
        idle_seconds: float = IDLE_SECONDS,
        at_most: int = MAX_CONNECTIONS,
    ) -> list[Connection]:
        """Return which of the open connections are to be closed; forget those that are open no more.

        Args:
            connections: All that are open.
            idle_seconds: Those idle for longer are.
            at_most: Of more than so many, those idle longest are, too.
        """
        now = time.monotonic()
        opened = list(connections)
        self._idle_since = {each: self._idle_since.get(each, now) for each in opened}
        idle = [each for each in opened if each not in self._busy]
        idle.sort(key=lambda each: self._idle_since[each])
        surplus = max(0, len(opened) - at_most)
        return [
            each for n, each in enumerate(idle) if n < surplus or now - self._idle_since[each] > idle_seconds
        ]


def allow_open_files() -> None:
    """Raise this process's limit of open files to what its own limits need, as far as it may.

    The usual one, 1,024, is below `MAX_CONNECTIONS`: connections that do nothing would keep those to
    publishers and the database's files from being opened.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _OPEN_FILES:
        wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@asynccontextmanager
async def reaping(
    server: web.Server, connections: Connections, *, idle_seconds: float = IDLE_SECONDS
) -> AsyncIterator[None]:
    """Close overdue connections of a server inside."""

    async def reap() -> None:
        while True:
            await asyncio.sleep(min(_PAUSE_SECONDS, idle_seconds))
            overdue = connections.overdue(server.connections, idle_seconds=idle_seconds)
            for connection in overdue:
                if connection.transport is not None:
                    connection.transport.abort()
            if overdue:
                log.debug("connections.reaped", connections=len(overdue))

    task = asyncio.create_task(reap())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
