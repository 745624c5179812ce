"""What systemd is told of the server's life: ready, stopping, and that it is still alive (sd_notify(3)).

    supervisor = Supervisor.of(os.environ)
    supervisor.tell("READY=1", "STATUS=listening")
    async with supervisor.watching(): ...

Where no supervisor waits for it, nothing is said. The watchdog is fed by the event loop itself: one that
hangs feeds it no more, and systemd starts the service again.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self

from wholefeed.loggers import get_logger

log = get_logger()


@dataclass(frozen=True, slots=True)
class Supervisor:
    """Who started the server, and what it wants to hear.

    Args:
        address: Its datagram socket; empty: nobody waits.
        watchdog_seconds: It has the server killed when nothing is heard for so long; 0: it does not.
    """

    address: str = ""
    watchdog_seconds: float = 0.0

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Self:
        """Return the one that the environment names."""
        address = environ.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return cls()
        usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
        is_watched = usec.isdecimal() and pid in ("", str(os.getpid()))
        return cls(address, int(usec) / 1e6 if is_watched else 0.0)

    def tell(self, *lines: str) -> None:
        """Say something; one that does not listen, or not fast enough, is no reason to stop."""
        if not self.address:
            return
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            try:
                sender.sendto("\n".join(lines).encode(), address)
            except OSError as exc:
                log.warning("supervisor.unreachable", error=exc.strerror)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Feed the watchdog inside, twice in the time that it waits."""
        if not self.watchdog_seconds:
            yield
            return

        async def feed() -> None:
            while True:
                self.tell("WATCHDOG=1")
                await asyncio.sleep(self.watchdog_seconds / 2)

        task = asyncio.create_task(feed())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


NOBODY: Final = Supervisor()
"""Whoever runs the server in a terminal or a container wants to hear nothing."""
