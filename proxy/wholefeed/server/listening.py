"""The listening side of the server: its sockets, its connections, and its signs of life for systemd.

with bound("/run/wholefeed/wholefeed.sock") as listener: ...
async with reaping(runner.server, connections), accepting(runner.server, connections, host=host, port=port):

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
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, Self

from aiohttp import StreamReader, web, web_protocol
from aiohttp.http import HttpRequestParser
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD

from wholefeed.futures import cancel
from wholefeed.logs import get_logger
from wholefeed.server.clients import UNIX

log = get_logger()

# Where it listens


class Listeners:
    """The addresses that the server listens on, so that it never fetches itself (docs/faults.md row 19)."""

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
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
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
"""That are open at once."""

_OPEN_FILES: Final = 2 * MAX_CONNECTIONS
"""What readers' connections, those to publishers and the database need, and those about to be closed."""
_OTHER_FILES: Final = 512
"""Of these, what is kept from readers; half of them all where there are fewer than twice as many."""


def allow_open_files() -> int:
    """Raise this process's limit of open files as far as it may; return how many readers there is room for.

    The usual one, 1,024, is below `MAX_CONNECTIONS`: connections that do nothing would keep those to
    publishers and the database's files from being opened.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _OPEN_FILES:
        soft = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MAX_CONNECTIONS if soft < 0 else min(MAX_CONNECTIONS, soft - min(_OTHER_FILES, soft // 2))


_BACKLOG: Final = 100
"""Connections that wait to be accepted. asyncio accepts as many in one round of its loop, and tells of each
one apart when no file is left."""


@asynccontextmanager
async def accepting(
    server: web.Server, connections: Connections, **where: Any
) -> AsyncIterator[asyncio.Server]:
    """Listen inside, and let connections in by `Connections.admit`; `where` as for `loop.create_server`."""

    def admitted() -> asyncio.Protocol:
        made = server()
        connections.admit(made, len(server.connections))
        return made

    backlog = min(_BACKLOG, connections.at_most // 8)
    listener = await asyncio.get_running_loop().create_server(admitted, backlog=backlog, **where)
    try:
        yield listener
    finally:
        listener.close()


_SLICE_BYTES: Final = 1 << 14
"""How much is parsed at once: an error quotes all of it, as escapes."""
_LONGEST_REFUSAL: Final = 200


class BoundedParser(HttpRequestParser):
    """aiohttp's parser of requests, which holds nothing of what is no HTTP (docs/faults.md row 144).

    aiohttp reads on behind an error, and makes another of each read. Each quotes all that was read, and holds
    it in a cycle with its traceback until the collector comes: 5 MB for one.
    """

    @classmethod
    def use(cls) -> None:
        """Have aiohttp's servers parse so; there is no argument for it."""
        web_protocol.HttpRequestParser = cls  # type: ignore[attr-defined]

    def feed_data(self, data: bytes, *_: Any) -> tuple[list[Any], bool, bytes]:
        """Take what has been read; return messages, whether another protocol follows, and what is of that."""
        messages: list[Any] = []
        for at in range(0, len(data) or 1, _SLICE_BYTES):
            try:
                found, is_upgraded, rest = super().feed_data(data[at : at + _SLICE_BYTES])
            except HttpProcessingError as exc:
                if self.protocol is not None and self.protocol.transport is not None:
                    self.protocol.transport.pause_reading()
                return [*messages, _refusal(exc)], False, b""
            messages += found
            if is_upgraded:
                return messages, True, rest + data[at + _SLICE_BYTES :]
        return messages, False, b""


def _refusal(error: HttpProcessingError) -> tuple[Any, StreamReader]:
    """Return the message of aiohttp's that has an error answered."""
    short = type(error).__new__(type(error))
    short.message = error.message[:_LONGEST_REFUSAL]
    return web_protocol._ErrInfo(status=400, exc=short, message=short.message), EMPTY_PAYLOAD  # noqa: SLF001


_REAP_PAUSE_SECONDS: Final = 1.0
_NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@asynccontextmanager
async def reaping(
    server: web.Server, connections: Connections, *, idle_seconds: float = IDLE_SECONDS
) -> AsyncIterator[None]:
    """Close overdue connections of a server inside: idle ones, and those that never finish a header.

    The server of aiohttp waits for a header as long as it takes, so an idle or half-open connection would
    stay for good (docs/faults.md row 78). What had to make room for others is told here, and what could not
    be accepted, in one line a second: whoever opens connections does not write the log (row 96).
    """
    loop = asyncio.get_running_loop()

    def note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NO_FILES and "socket" in context:
            connections.unaccepted += 1
        else:
            loop.default_exception_handler(context)

    async def reap() -> None:
        while True:
            await asyncio.sleep(min(_REAP_PAUSE_SECONDS, idle_seconds))
            overdue = connections.overdue(server.connections, idle_seconds=idle_seconds)
            for connection in overdue:
                if connection.transport is not None:
                    connection.transport.abort()
            if overdue:
                log.debug("connections.reaped", connections=len(overdue))
            if connections.closed or connections.unaccepted:
                log.warning(
                    "connections.crowded", closed=connections.closed, unaccepted=connections.unaccepted
                )
                connections.closed = connections.unaccepted = 0

    loop.set_exception_handler(note)
    task = asyncio.create_task(reap())
    try:
        yield
    finally:
        loop.set_exception_handler(None)
        await cancel(task)


class Connections:
    """All connections: busy ones, and the others, first those that have been idle or half open for longest.

    A connection is busy while a request that came whole is being answered. Until it has come it is half
    open, also where a handler waits for the rest of a body (docs/faults.md row 95a): it takes no place from
    those who are answered, and may have to make room for a new one. At most `at_most` are open at once.
    """

    def __init__(self, at_most: int = MAX_CONNECTIONS) -> None:
        self.at_most = at_most
        self.closed = 0
        """Closed to make room, since that was last told."""
        self.unaccepted = 0
        """Times that the system had no room for one, since that was last told."""
        self._uses: dict[ClientConnection, Use] = {}
        self._waiting: dict[Use, None] = {}
        """Those that are not busy, in the order in which they came to be so."""

    def admit(self, connection: ClientConnection, open_count: int) -> None:
        """Take in a new connection; at the limit another one is closed for it."""
        if open_count >= self.at_most:
            self.make_room()
        self.use_of(connection)

    def make_room(self) -> None:
        """Close the connection that has been idle or half open for longest, if there is one."""
        oldest = next(iter(self._waiting), None)
        if oldest is not None:
            self._forget(oldest)
            if oldest.connection.transport is not None:
                oldest.connection.transport.abort()
                self.closed += 1

    def use_of(self, connection: ClientConnection) -> Use:
        use = self._uses.get(connection)
        if use is None:
            use = self._uses[connection] = Use(connection)
            self._waiting[use] = None
        return use

    def begin(self, use: Use, body: StreamReader = EMPTY_PAYLOAD) -> None:
        """Count a request as being answered until `end`, which must follow.

        Where its body has not come to its end the connection is half open until then.
        """
        use.requests += 1
        if body is EMPTY_PAYLOAD or body.is_eof():
            self._waiting.pop(use, None)
        else:
            body.on_eof(partial(self._be_whole, use))

    def _be_whole(self, use: Use) -> None:
        if use.requests:  # the rest of it may come when the answer has been sent
            self._waiting.pop(use, None)

    def end(self, use: Use, now: float) -> None:
        """Count it as idle from now on, by `time.monotonic`, unless another request is being answered."""
        use.requests -= 1
        use.idle_since = now
        if not use.requests and use.connection in self._uses:
            self._waiting.pop(use, None)
            self._waiting[use] = None

    def _forget(self, use: Use) -> None:
        del self._waiting[use], self._uses[use.connection]

    @property
    def busy_count(self) -> int:
        return len(self._uses) - len(self._waiting)

    def is_crowded(self) -> bool:
        """Whether so many are busy that hardly any place is left for new ones."""
        return self.busy_count > self.at_most - self.at_most // _KEPT_FREE

    def overdue(
        self, connections: Collection[ClientConnection], *, idle_seconds: float = IDLE_SECONDS
    ) -> list[ClientConnection]:
        """Return which of all open connections are to be closed; forget those that are open no more.

        Those idle for longer are closed; how long a body is waited for is its handler's matter.
        """
        # One that had to make room is among them until the loop has closed it, and takes no place any more.
        are_open = {each for each in connections if each.transport is None or not each.transport.is_closing()}
        for use in [each for each in self._waiting if each.connection not in are_open]:
            self._forget(use)
        for connection in connections:
            if connection in are_open:
                self.use_of(connection)
        now, surplus = time.monotonic(), len(self._uses) - self.at_most
        return [
            use.connection
            for n, use in enumerate(self._waiting)
            if n < surplus or (not use.requests and now - use.idle_since > idle_seconds)
        ]


_KEPT_FREE: Final = 16
"""One of so many places is kept for those who have only come: a supervisor is answered whatever happens."""


class Use:
    __slots__ = ("_peer", "connection", "idle_since", "requests")

    def __init__(self, connection: ClientConnection) -> None:
        self.connection: Final = connection
        self.requests = 0
        """Of it, that have a handler."""
        self.idle_since = time.monotonic()
        self._peer: str | None = None

    @property
    def peer(self) -> str | None:
        """The address that it comes from, or `UNIX`; None where that is unknown."""
        if self._peer is None:
            self._peer = _peer_of(self.connection.transport)
        return self._peer


def _peer_of(transport: asyncio.Transport | None) -> str | None:
    """Return the address that a connection comes from; `UNIX` where it came in by the Unix socket.

    Only our own end tells which: a client may give its end of a Unix socket any name, an IP address too.
    """
    own = None if transport is None else transport.get_extra_info("sockname")
    if transport is not None and isinstance(own, tuple):
        peer = transport.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) else None
    return UNIX if isinstance(own, str) else None


class ClientConnection(Protocol):
    """What aiohttp makes for each connection."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """None once it is closed."""


# What systemd is told


@dataclass(frozen=True, slots=True)
class Supervisor:
    """The supervisor that started the server: it is told ready, stopping, still alive (sd_notify(3)).

    Without a supervisor nothing is sent. The watchdog is fed by the event loop itself: one that
    hangs feeds it no more, and systemd starts the service again.
    """

    address: str = ""
    """Its datagram socket; empty: nobody waits."""
    watchdog_seconds: float = 0.0
    """It has the server killed when nothing is heard for so long; 0: it does not."""

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
            await cancel(task)


NOBODY: Final = Supervisor()
"""Whoever runs the server in a terminal or a container wants to hear nothing."""
