"""The listening side of the server: where it listens, who is connected, and what systemd is told of its life.

with bound("/run/wholefeed/wholefeed.sock") as listener: ...
async with reaping(runner.server, connections): ...

supervisor = Supervisor.of(os.environ)
async with supervisor.watching():
supervisor.tell("READY=1", "STATUS=listening")
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import resource
import socket
import stat
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, Self

from aiohttp import web

from wholefeed.logs import get_logger
from wholefeed.server.clients import UNIX

log = get_logger()

# Where it listens


class Listeners:
    """The addresses that the server listens on, so that it never fetches itself (docs/faults.md row 19).

    They are known once it does.
    """

    def __init__(self) -> None:
        self._ports: dict[int, set[str]] = {}

    def add(self, addresses: Iterable[Any]) -> None:
        """Take socket addresses, as `getsockname` gives them."""
        for host, port, *_ in addresses:
            self._ports.setdefault(port, set()).add(host)

    def include(self, address: str, port: int) -> bool:
        """Return whether a connection to this IP address and port would reach the proxy.

        One that listens on every address is reached by any loopback one; by others it is recognised by its
        own Via field.
        """
        hosts = self._ports.get(port, set())
        if address in hosts:
            return True
        is_everywhere = not hosts.isdisjoint({"0.0.0.0", "::"})  # noqa: S104
        return is_everywhere and ipaddress.ip_address(address).is_loopback


_ALL_BUT_OWNER_AND_GROUP: Final = 0o117
"""Owner and group may connect (0660)."""
_CONNECT_SECONDS: Final = 2.0


@contextmanager
def bound(path: str) -> Iterator[socket.socket]:
    """Yield a Unix socket that is bound to a path and does not listen yet. Blocks, briefly.

    It is for a reverse proxy on the same machine, beside host and port. A file that a process left behind is
    replaced, a socket that somebody listens on is not, and anything else that bears the name is left alone.
    At exit the file goes, if it is still the one that was made here.

    Raises:
        OSError: It cannot be; `filename` is the path, and `strerror` says why in words for people.
    """
    _make_way(path)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener:
        umask = os.umask(_ALL_BUT_OWNER_AND_GROUP)
        try:
            listener.bind(path)
        except OSError as exc:
            raise OSError(exc.errno, exc.strerror, path) from exc
        finally:
            os.umask(umask)
        made = _identity(path)
        try:
            yield listener
        finally:
            if made is not None and _identity(path) == made:
                with suppress(OSError):
                    Path(path).unlink()


def _make_way(path: str) -> None:
    """Remove the socket of a process that has ended."""
    try:
        mode = Path(path).lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as exc:
        raise OSError(exc.errno, exc.strerror, path) from exc
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "something is there that is no socket", path)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(_CONNECT_SECONDS)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)
            return
        except OSError as exc:
            raise OSError(exc.errno or errno.EIO, f"whether anybody listens is unknown: {exc}", path) from exc
    raise OSError(errno.EADDRINUSE, "something listens there already", path)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


# Readers' connections

IDLE_SECONDS: Final = 10.0
MAX_CONNECTIONS: Final = 2048

_OPEN_FILES: Final = 2 * MAX_CONNECTIONS
"""What readers' connections, those to publishers and the database need, and those about to be reaped."""


def allow_open_files() -> None:
    """Raise this process's limit of open files to what its own limits need, as far as it may.

    The usual one, 1,024, is below `MAX_CONNECTIONS`: connections that do nothing would keep those to
    publishers and the database's files from being opened.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _OPEN_FILES:
        wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


_REAP_PAUSE_SECONDS: Final = 1.0


@asynccontextmanager
async def reaping(
    server: web.Server, connections: Connections, *, idle_seconds: float = IDLE_SECONDS
) -> AsyncIterator[None]:
    """Close overdue connections of a server inside: idle ones, and those that never finish a header.

    The server of aiohttp waits for a header as long as it takes, so an idle or half-open connection would
    stay for good (docs/faults.md row 78). One counts as busy while a request of it is being answered.
    """

    async def reap() -> None:
        while True:
            await asyncio.sleep(min(_REAP_PAUSE_SECONDS, idle_seconds))
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


class Connections:
    """Which connections are busy, and since when the others are not."""

    def __init__(self) -> None:
        self._uses: dict[Connection, Use] = {}
        self._busy_count = 0

    @contextmanager
    def busy(self, connection: Connection) -> Iterator[None]:
        use = self.use_of(connection)
        self.begin(use)
        try:
            yield
        finally:
            self.end(use, time.monotonic())

    def use_of(self, connection: Connection) -> Use:
        use = self._uses.get(connection)
        if use is None:
            use = self._uses[connection] = Use(_peer_of(connection.transport))
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


class Use:
    """What is known of one connection."""

    __slots__ = ("idle_since", "peer", "requests")

    def __init__(self, peer: str | None) -> None:
        self.peer: Final = peer
        """The address that it comes from, or `UNIX`; None where that is unknown."""
        self.requests = 0
        """Of it, being answered; where there are none, it is idle."""
        self.idle_since = time.monotonic()


def _peer_of(transport: asyncio.Transport | None) -> str | None:
    """Return the address that a connection comes from; `UNIX` where it came in by the Unix socket.

    Only our own end tells which: a client may give its end of a Unix socket any name, an IP address too.
    """
    own = None if transport is None else transport.get_extra_info("sockname")
    if transport is not None and isinstance(own, tuple):
        peer = transport.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) else None
    return UNIX if isinstance(own, str) else None


class Connection(Protocol):
    """What aiohttp makes for each connection."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """None once it is closed."""


# What systemd is told


@dataclass(frozen=True, slots=True)
class Supervisor:
    """Who started the server, and what it wants to hear: ready, stopping, still alive (sd_notify(3)).

    Where no supervisor waits for it, nothing is said. The watchdog is fed by the event loop itself: one that
    hangs feeds it no more, and systemd starts the service again.

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
