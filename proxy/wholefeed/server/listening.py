"""Sockets, connections and systemd notices of the server."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import resource
import socket
import stat
import time
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, Self

from aiohttp import StreamReader, web, web_protocol
from aiohttp.http import HttpRequestParser
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD

from wholefeed.descriptors import RETRY_AFTER_SECONDS, SpareDescriptor, is_shortage
from wholefeed.futures import cancel
from wholefeed.logs import get_logger
from wholefeed.server.clients import UNIX

log = get_logger()

# Own addresses


class Listeners:
    """The server's own addresses; it never fetches from itself (docs/faults.md row 19)."""

    def __init__(self) -> None:
        self._ports: dict[int, set[str]] = {}

    def add(self, addresses: Iterable[Any]) -> None:
        for host, port, *_ in addresses:
            self._ports.setdefault(port, set()).add(host)

    def include(self, address: str, port: int) -> bool:
        """Return whether a connection to this IP address and port reaches the proxy.

        A server on all addresses recognises only loopback; its Via field reveals the rest.
        """
        hosts = self._ports.get(port, set())
        if address in hosts:
            return True
        is_everywhere = not hosts.isdisjoint({"0.0.0.0", "::"})  # noqa: S104
        return is_everywhere and ipaddress.ip_address(address).is_loopback


_ALL_BUT_OWNER_AND_GROUP: Final = 0o117
"""Leaves mode 0660."""
_CONNECT_SECONDS: Final = 2.0


@contextmanager
def bound(path: str) -> Iterator[socket.socket]:
    """Yield a Unix socket, bound but not listening; replace the socket of an ended process. Blocks briefly.

    Raises:
        OSError: Somebody listens there, the path is no socket, or it cannot be bound. `filename` is the path,
            `strerror` is for people.
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


def require_bindable(path: str) -> None:
    """Raise as `bound` does, before it is needed. Blocks briefly."""
    with bound(path):
        pass


def _make_way(path: str) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "the path exists and is no socket", path)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(_CONNECT_SECONDS)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)
            return
        except OSError as exc:
            raise OSError(
                exc.errno or errno.EIO, f"it is unknown whether a server listens there: {exc}", path
            ) from exc
    raise OSError(errno.EADDRINUSE, "a server listens there already", path)


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
"""Enough for readers, publishers, the database and closing connections."""
_OTHER_FILES: Final = 512
"""Reserved for others than readers, at most half of all files."""


def allow_open_files() -> int:
    """Raise the process's limit of open files; return the room for readers' connections.

    Under the usual limit of 1,024, idle connections would block publishers and the database.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _OPEN_FILES:
        soft = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MAX_CONNECTIONS if soft < 0 else min(MAX_CONNECTIONS, soft - min(_OTHER_FILES, soft // 2))


# Accepting

_BACKLOG: Final = 100
_ACCEPT_PAUSE_SECONDS: Final = 1.0
_REFUSAL_SECONDS: Final = 1.0
"""Longest wait for a request without a descriptor."""
_REQUEST_BYTES: Final = 1 << 16


@asynccontextmanager
async def binding(host: str, port: int) -> AsyncIterator[list[socket.socket]]:
    """Yield sockets, bound but not listening, for each address of a host.

    Raises:
        OSError: An address cannot be used, or the host has none.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    async with AsyncExitStack() as stack:
        sockets = []
        for family, kind, protocol, _, address in dict.fromkeys(found):
            made = stack.enter_context(closing(socket.socket(family, kind, protocol)))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind(address)
            sockets.append(made)
        yield sockets


@asynccontextmanager
async def accepting(
    sockets: Sequence[socket.socket], server: web.Server, connections: Connections
) -> AsyncIterator[None]:
    """Accept connections through `Connections.admit`; at the end close the sockets."""
    acceptors = [_Acceptor(each, server, connections) for each in sockets]
    try:
        for each in acceptors:
            each.listen(min(_BACKLOG, connections.at_most // 8))
        yield
    finally:
        for each in acceptors:
            await each.close()


class _Acceptor:
    """Accepts the connections of one listening socket.

    Without a free descriptor, asyncio would leave readers waiting, and uvloop close their connections without
    an answer (docs/faults.md row 96).
    """

    def __init__(self, listener: socket.socket, server: web.Server, connections: Connections) -> None:
        self._listener = listener
        self._server = server
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._spare = SpareDescriptor()
        self._tasks = set[asyncio.Task[None]]()

    def listen(self, backlog: int) -> None:
        self._listener.setblocking(False)
        self._listener.listen(backlog)
        self._loop.add_reader(self._listener, self._accept)

    async def close(self) -> None:
        self._loop.remove_reader(self._listener)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._loop.remove_reader(self._listener)  # a refusal has added it again
        self._listener.close()
        self._spare.give()

    def _accept(self) -> None:
        for _ in range(_BACKLOG):
            try:
                accepted, _ = self._listener.accept()
            except OSError as exc:  # nobody waits any more, or one has left (accept(2))
                if is_shortage(exc):
                    self._loop.remove_reader(self._listener)
                    self._begin(self._refuse())
                return
            self._begin(self._serve(accepted))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, accepted: socket.socket) -> None:
        try:
            accepted.setblocking(False)
            await self._loop.connect_accepted_socket(self._admit, accepted)
        except BaseException:
            accepted.close()
            raise

    def _admit(self) -> asyncio.Protocol:
        made = self._server()
        self._connections.admit(made, len(self._server.connections))
        return made

    async def _refuse(self) -> None:
        """Answer the next connection in the spare descriptor; then accept again."""
        self._connections.unaccepted += 1
        try:
            self._spare.take()
            if not self._spare.give():
                await asyncio.sleep(_ACCEPT_PAUSE_SECONDS)
                return
            with closing(self._listener.accept()[0]) as accepted, suppress(TimeoutError):
                accepted.setblocking(False)
                async with asyncio.timeout(_REFUSAL_SECONDS):  # unread bytes would reset the connection
                    await self._loop.sock_recv(accepted, _REQUEST_BYTES)
                accepted.send(_REFUSAL)
                accepted.shutdown(socket.SHUT_WR)
        except OSError:  # nobody waits, one has left, or another thread has taken the descriptor
            await asyncio.sleep(0)
        finally:
            self._spare.take()
            self._loop.add_reader(self._listener, self._accept)


_REFUSAL_BODY: Final = (
    b'{"detail": "the proxy has no free file descriptor", "type": "urn:wholefeed:overloaded",'
    b' "title": "Service Unavailable", "status": 503}'
)
_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nServer: wholefeed\r\nContent-Type: application/problem+json\r\n"
    b"Content-Length: %d\r\nRetry-After: %d\r\nCache-Control: no-store\r\n"
    b"X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n%b"
) % (len(_REFUSAL_BODY), RETRY_AFTER_SECONDS, _REFUSAL_BODY)

# Parsing

_SLICE_BYTES: Final = 1 << 14
"""Parsed at once; an error quotes the whole slice."""
_LONGEST_REFUSAL: Final = 200


class BoundedParser(HttpRequestParser):
    """aiohttp's request parser, stopped at the first error (docs/faults.md row 144).

    aiohttp parses on, and each error keeps its input in a reference cycle: 5 MB from one client.
    """

    @classmethod
    def use(cls) -> None:
        """Replace aiohttp's parser; aiohttp has no argument for it."""
        web_protocol.HttpRequestParser = cls  # type: ignore[attr-defined]

    def feed_data(self, data: bytes, *_: Any) -> tuple[list[Any], bool, bytes]:
        """Parse data; return messages, whether the protocol changes, and the rest."""
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
    """Return a message that makes aiohttp answer with the error."""
    short = type(error).__new__(type(error))
    short.message = error.message[:_LONGEST_REFUSAL]
    return web_protocol._ErrInfo(status=400, exc=short, message=short.message), EMPTY_PAYLOAD  # noqa: SLF001


_REAP_PAUSE_SECONDS: Final = 1.0


@asynccontextmanager
async def reaping(
    server: web.Server, connections: Connections, *, idle_seconds: float = IDLE_SECONDS
) -> AsyncIterator[None]:
    """Close idle connections and unfinished headers, since aiohttp does not (docs/faults.md row 78)."""

    async def reap() -> None:
        while True:
            await asyncio.sleep(min(_REAP_PAUSE_SECONDS, idle_seconds))
            overdue = connections.overdue(server.connections, idle_seconds=idle_seconds)
            for connection in overdue:
                if connection.transport is not None:
                    connection.transport.abort()
            if overdue:
                log.debug("connections.reaped", connections=len(overdue))
            # One line a second: clients must not be able to fill the log (docs/faults.md row 96).
            if connections.closed or connections.unaccepted:
                log.warning(
                    "connections.crowded", closed=connections.closed, unaccepted=connections.unaccepted
                )
                connections.closed = connections.unaccepted = 0

    task = asyncio.create_task(reap())
    try:
        yield
    finally:
        await cancel(task)


class Connections:
    """All open connections, at most `at_most`.

    A connection is busy while its complete request is answered. A half-open one still awaits the rest of its
    request, and may have to make room (docs/faults.md row 95a).
    """

    def __init__(self, at_most: int = MAX_CONNECTIONS) -> None:
        self.at_most = at_most
        self.closed = 0
        """Closed to make room since the last log line."""
        self.unaccepted = 0
        """Times without a descriptor for one since the last log line."""
        self._uses: dict[ClientConnection, Use] = {}
        self._waiting: dict[Use, None] = {}
        """Idle and half-open connections, longest waiting first."""

    def admit(self, connection: ClientConnection, open_count: int) -> None:
        if open_count >= self.at_most:
            self.make_room()
        self.use_of(connection)

    def make_room(self) -> None:
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
        """Count a request until `end`; the connection stays half open until the body is complete."""
        use.requests += 1
        if body is EMPTY_PAYLOAD or body.is_eof():
            self._waiting.pop(use, None)
        else:
            body.on_eof(partial(self._be_whole, use))

    def _be_whole(self, use: Use) -> None:
        if use.requests:  # a body may end after its answer was sent
            self._waiting.pop(use, None)

    def end(self, use: Use, now: float) -> None:
        """End a request; `now` is `time.monotonic`."""
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
        return self.busy_count > self.at_most - self.at_most // _KEPT_FREE

    def overdue(
        self, connections: Collection[ClientConnection], *, idle_seconds: float = IDLE_SECONDS
    ) -> list[ClientConnection]:
        """Return the connections to close, and forget closed ones; handlers limit the wait for bodies."""
        # A connection that made room stays in `connections` until the loop closes it.
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
"""One in so many places stays free, so that a supervisor always gets an answer."""


class Use:
    __slots__ = ("_peer", "connection", "idle_since", "requests")

    def __init__(self, connection: ClientConnection) -> None:
        self.connection: Final = connection
        self.requests = 0
        """Requests with a running handler."""
        self.idle_since = time.monotonic()
        self._peer: str | None = None

    @property
    def peer(self) -> str | None:
        """IP address, `UNIX`, or None if unknown."""
        if self._peer is None:
            self._peer = _peer_of(self.connection.transport)
        return self._peer


def _peer_of(transport: asyncio.Transport | None) -> str | None:
    # A client may give its end of a Unix socket any name, even an IP address: only our end decides.
    own = None if transport is None else transport.get_extra_info("sockname")
    if transport is not None and isinstance(own, tuple):
        peer = transport.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) else None
    return UNIX if isinstance(own, str) else None


class ClientConnection(Protocol):
    @property
    def transport(self) -> asyncio.Transport | None:
        """None after closing."""


# Notices for systemd


@dataclass(frozen=True, slots=True)
class Supervisor:
    """systemd's notification socket (sd_notify(3)).

    The event loop feeds the watchdog, so systemd restarts a hanging server.
    """

    address: str = ""
    """Datagram socket; empty: none."""
    watchdog_seconds: float = 0.0
    """Silence before systemd kills the server; 0: never."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Self:
        address = environ.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return cls()
        usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
        is_watched = usec.isdecimal() and pid in ("", str(os.getpid()))
        return cls(address, int(usec) / 1e6 if is_watched else 0.0)

    def tell(self, *lines: str) -> None:
        """Send lines; an unreachable supervisor is only logged."""
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
"""Receives nothing; for a terminal or a container."""
