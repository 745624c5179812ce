"""Readers' connections: those that are idle or never finish a header are closed (docs/faults.md row 78).

The server of aiohttp waits for a header as long as it takes, so an idle or half-open connection would stay
for good. A connection counts as busy while a request of it is being answered.

    async with reaping(runner.server, connections): ...
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final, Protocol

from aiohttp import web

from wholefeed.loggers import get_logger
from wholefeed.server.clients import UNIX

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


class Use:
    """What is known of one connection."""

    __slots__ = ("idle_since", "peer", "requests")

    def __init__(self, peer: str | None) -> None:
        self.peer: Final = peer
        """The address that it comes from, or `UNIX`; None where that is unknown."""
        self.requests = 0
        """Of it, being answered; where there are none, it is idle."""
        self.idle_since = time.monotonic()


class Connections:
    """Which connections are busy, and since when the others are not."""

    def __init__(self) -> None:
        self._uses: dict[Connection, Use] = {}
        self._busy_count = 0

    @contextmanager
    def busy(self, connection: Connection) -> Iterator[None]:
        """Count the connection as busy inside."""
        use = self.use_of(connection)
        self.begin(use)
        try:
            yield
        finally:
            self.end(use, time.monotonic())

    def use_of(self, connection: Connection) -> Use:
        """Return what is known of a connection."""
        use = self._uses.get(connection)
        if use is None:
            use = self._uses[connection] = Use(peer_of(connection.transport))
        return use

    def begin(self, use: Use) -> None:
        """Count the connection as busy until `end`, which must follow."""
        if not use.requests:
            self._busy_count += 1
        use.requests += 1

    def end(self, use: Use, now: float) -> None:
        """Count it as idle from now on, by `time.monotonic`, unless another request is being answered."""
        use.requests -= 1
        if not use.requests:
            self._busy_count -= 1
        use.idle_since = now

    @property
    def busy_count(self) -> int:
        """How many are busy."""
        return self._busy_count

    def is_crowded(self, *, at_most: int = MAX_CONNECTIONS) -> bool:
        """Return whether more connections are busy than may be; the idle ones are reaped."""
        return self._busy_count > at_most

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
        uses = self._uses = {each: self.use_of(each) for each in connections}
        idle = [each for each, use in uses.items() if not use.requests]
        idle.sort(key=lambda each: uses[each].idle_since)
        surplus = max(0, len(uses) - at_most)
        return [
            each for n, each in enumerate(idle) if n < surplus or now - uses[each].idle_since > idle_seconds
        ]


def peer_of(transport: asyncio.Transport | None) -> str | None:
    """Return the address that a connection comes from; `UNIX` where it came in by the Unix socket.

    Only our own end tells which: a client may give its end of a Unix socket any name, an IP address too.
    """
    own = None if transport is None else transport.get_extra_info("sockname")
    if transport is not None and isinstance(own, tuple):
        peer = transport.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) else None
    return UNIX if isinstance(own, str) else None


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
