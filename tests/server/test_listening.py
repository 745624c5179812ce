"""wholefeed.server.listening: addresses, the Unix socket, readers' connections, and messages to systemd."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from unittest.mock import Mock

import aiohttp
import pytest
from aiohttp import StreamReader
from structlog.testing import capture_logs

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.processes import serving
from tests.running import Proxy
from wholefeed.server.listening import MAX_CONNECTIONS, Connections, Listeners, Supervisor, bound, reaping
from wholefeed.web.keys import CONNECTIONS


class FakeConnection:
    transport: Mock | None = None


@contextmanager
def busy(connections: Connections, connection: FakeConnection) -> Iterator[None]:
    """Count the connection as busy inside the block."""
    use = connections.use_of(connection)
    connections.begin(use)
    yield
    connections.end(use, time.monotonic())


def a_body() -> StreamReader:
    """Return a request body of which nothing has come yet."""
    return StreamReader(Mock(), 1 << 16, loop=Mock())


async def connected(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    assert proxy.client.port is not None
    return await asyncio.open_connection(proxy.client.host, proxy.client.port)


@pytest.mark.fault("78")
async def test_a_header_that_never_ends_is_not_waited_for(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 78; docs/design.md#readers-connections: a silent connection is closed, too; a
    busy one is not."""
    origin.publish("/feed", atom(an_item("a")))
    async with asyncio.timeout(300):
        runner = proxy.client.server.runner
        assert runner is not None
        assert runner.server is not None
        silent, silent_writer = await connected(proxy)
        half, half_writer = await connected(proxy)
        half_writer.write(b"GET /feed HTTP/1.1\r\nHost: ")
        with origin.held("/feed") as gate:
            served = asyncio.create_task(proxy.get(origin.url("/feed")))
            await gate.reached()
            async with reaping(runner.server, proxy.app[CONNECTIONS], idle_seconds=0.05):
                for reader in (silent, half):
                    with suppress(ConnectionResetError):
                        assert await reader.read() == b""
            gate.release()
        assert (await served).status == 200
        for writer in (silent_writer, half_writer):
            writer.close()


@pytest.mark.fault("78")
def test_of_too_many_connections_the_ones_idle_longest_are_closed() -> None:
    """docs/faults.md row 78."""
    connections = Connections(at_most=5)
    held = [FakeConnection() for _ in range(5)]
    assert connections.overdue(held) == []
    connections.at_most = 3
    with busy(connections, held[0]):
        assert connections.overdue(held) == held[1:3]
    assert connections.overdue(held) == held[1:3]


@pytest.mark.fault("95a")
def test_a_connection_is_half_open_until_its_request_has_come_whole() -> None:
    """docs/faults.md row 95a: half-open is neither busy nor, while a handler waits, idle."""
    connections = Connections(at_most=2)
    held = [FakeConnection(), FakeConnection()]
    use, body = connections.use_of(held[0]), a_body()
    connections.begin(use, body)
    assert connections.busy_count == 0
    assert connections.overdue(held, idle_seconds=-1) == held[1:]
    connections.at_most = 1
    assert connections.overdue(held) == held[:1]
    body.feed_eof()
    assert connections.busy_count == 1
    assert connections.overdue(held) == held[1:]
    connections.end(use, time.monotonic())
    assert connections.busy_count == 0


@pytest.mark.fault("95a")
def test_what_comes_after_its_answer_makes_no_connection_busy() -> None:
    """Row 95a: a connection that had to make room meanwhile does not count either."""
    connections = Connections()
    held, body = FakeConnection(), a_body()
    use = connections.use_of(held)
    connections.begin(use, body)
    connections.end(use, time.monotonic())
    body.feed_eof()
    assert connections.busy_count == 0
    connections.begin(use, a_body())
    connections.make_room()
    connections.end(use, time.monotonic())
    assert connections.busy_count == 0


@pytest.mark.fault("96")
def test_a_new_connection_takes_the_place_of_the_oldest_that_waits() -> None:
    """docs/faults.md row 96: a connection with an answer under way stays, though older."""
    connections = Connections(at_most=2)
    answered, waiting = FakeConnection(), FakeConnection()
    for each in (answered, waiting):
        each.transport = Mock(spec=asyncio.Transport)
        connections.admit(each, 0)
    with busy(connections, answered):
        connections.admit(FakeConnection(), 2)
    assert answered.transport is not None
    assert waiting.transport is not None
    assert not answered.transport.abort.called
    assert waiting.transport.abort.called
    assert connections.closed == 1


@pytest.mark.fault("78")
async def test_of_too_many_busy_connections_the_last_ones_are_refused(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 78: a supervisor is answered all the same."""
    origin.publish("/feed", atom(an_item("a")))
    connections = proxy.app[CONNECTIONS]
    with ExitStack() as stack:
        held = [FakeConnection() for _ in range(MAX_CONNECTIONS)]
        for each in held:
            stack.enter_context(busy(connections, each))
        refused = await proxy.get(origin.url("/feed"))
        assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
        assert origin.requests == []
        assert (await proxy.ask("GET", "/healthz")).status == 200
    assert (await proxy.get(origin.url("/feed"))).status == 200


@pytest.mark.fault("78")
async def test_the_server_may_open_as_many_files_as_it_admits_connections(tmp_path: Path) -> None:
    """docs/faults.md row 78: the usual limit is 1,024."""
    few = ["sh", "-c", 'ulimit -S -n 256 && exec "$@"', "sh"]
    async with serving(tmp_path, before=few) as served:
        soft, hard = resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE)
    assert soft == hard or soft > MAX_CONNECTIONS


def test_a_busy_connection_is_never_closed() -> None:
    """Row 78: an idle one may be closed."""
    connections = Connections()
    held = FakeConnection()
    with busy(connections, held), busy(connections, held):
        pass
    connections.at_most = 0
    with busy(connections, held):
        assert connections.overdue([held], idle_seconds=-1) == []
    assert connections.overdue([held], idle_seconds=-1) == [held]


def test_the_addresses_it_listens_on_are_its_own() -> None:
    """docs/faults.md row 19."""
    listeners = Listeners()
    listeners.add([("127.0.0.1", 8080), ("::1", 8080, 0, 0)])
    assert listeners.include("127.0.0.1", 8080)
    assert listeners.include("::1", 8080)
    assert not listeners.include("127.0.0.1", 8081)
    assert not listeners.include("127.0.0.2", 8080)


def test_one_that_listens_everywhere_is_reached_by_any_loopback_address() -> None:
    """docs/faults.md row 19."""
    listeners = Listeners()
    listeners.add([("0.0.0.0", 8080)])
    assert listeners.include("127.0.0.9", 8080)
    assert not listeners.include("192.0.2.1", 8080)


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(20)
        yield listener


def heard(systemd: socket.socket) -> list[str]:
    """Return all messages so far."""
    systemd.setblocking(False)
    found = []
    try:
        while True:
            found += systemd.recv(4096).decode().split("\n")
    except BlockingIOError:
        return found


async def test_the_server_says_when_it_listens_and_when_it_stops(
    tmp_path: Path, systemd: socket.socket
) -> None:
    """Type=notify: READY=1, STOPPING=1 with a status, and WATCHDOG=1 twice in each interval."""
    before = ["env", f"NOTIFY_SOCKET={tmp_path}/notify", "WATCHDOG_USEC=400000"]
    async with serving(tmp_path, before=before) as served:
        assert (await served.ask("/readyz")).status == 200
        await asyncio.sleep(1)
        said = heard(systemd)
    assert "READY=1" in said
    assert f"STATUS=listening on 127.0.0.1, port {served.port}" in said
    assert said.count("WATCHDOG=1") >= 4
    assert "STOPPING=1" not in said
    said = [line for line in heard(systemd) if line != "WATCHDOG=1"]
    assert said == ["STOPPING=1", "STATUS=letting answers finish"]


@pytest.mark.fault("67a")
async def test_a_loop_that_hangs_feeds_no_watchdog(tmp_path: Path, systemd: socket.socket) -> None:
    """A blocked event loop sends nothing, so systemd acts."""
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000"}
    async with Supervisor.of(environ).watching():
        await asyncio.sleep(0.2)
        assert heard(systemd).count("WATCHDOG=1") >= 2
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline:
            pass
        assert heard(systemd) == []


async def test_nothing_is_said_where_nobody_listens(tmp_path: Path) -> None:
    """Without NOTIFY_SOCKET there is no supervisor; a vanished one costs only a log line."""
    with capture_logs() as logs:
        Supervisor.of({}).tell("READY=1")
        Supervisor.of({"NOTIFY_SOCKET": "vsock:2:1234"}).tell("READY=1")
        assert logs == []
        Supervisor.of({"NOTIFY_SOCKET": str(tmp_path / "gone")}).tell("READY=1")
    assert [log["event"] for log in logs] == ["supervisor.unreachable"]


def test_an_abstract_socket_is_one_too() -> None:
    """The name of an abstract socket of systemd begins with @."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0wholefeed-test-{os.getpid()}")
        listener.settimeout(20)
        Supervisor.of({"NOTIFY_SOCKET": f"@wholefeed-test-{os.getpid()}"}).tell("READY=1", "STATUS=x")
        assert listener.recv(100) == b"READY=1\nSTATUS=x"


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, 0),
        ({"WATCHDOG_USEC": "30000000"}, 30),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, 0),
        ({"WATCHDOG_USEC": "soon"}, 0),
    ],
)
def test_the_watchdog_is_fed_only_by_whom_it_is_meant_for(environ: dict[str, str], seconds: float) -> None:
    """WATCHDOG_PID names another process where a wrapper was started."""
    assert Supervisor.of({"NOTIFY_SOCKET": "/x", **environ}).watchdog_seconds == seconds
    assert Supervisor.of(environ).watchdog_seconds == 0


def a_socket(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    return made


def client(path: Path) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)))


def ask(path: Path, request: str, *, own_name: str = "") -> bytes:
    """Send a request through the socket; return the whole answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        if own_name:
            connection.bind(own_name)
        connection.settimeout(20)
        connection.connect(str(path))
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_owner_and_group_may_connect_and_nobody_else(tmp_path: Path) -> None:
    """Mode 0660 under any umask, from the first moment on."""
    before = os.umask(0)
    try:
        with bound(str(tmp_path / "s")):
            assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o660
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert not (tmp_path / "s").exists()


def test_the_socket_of_a_process_that_has_ended_is_replaced(tmp_path: Path) -> None:
    """After kill -9 the file stays without a listener: the next start replaces it."""
    a_socket(tmp_path / "s").close()
    with bound(str(tmp_path / "s")) as listener:
        listener.listen()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(tmp_path / "s"))


def test_a_socket_that_somebody_listens_on_is_left_to_them(tmp_path: Path) -> None:
    """A second server with the same socket does not steal it."""
    path = str(tmp_path / "s")
    with a_socket(tmp_path / "s") as other:
        other.listen()
        with pytest.raises(OSError, match="a server listens there already") as caught, bound(path):
            pass
        assert caught.value.filename == path
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_socket_is_left_alone(tmp_path: Path, kind: str) -> None:
    """The path may be a mistake; a link is not followed."""
    path = tmp_path / "s"
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("precious")
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="the path exists and is no socket"), bound(str(path)):
        pass
    assert path.lstat()


def test_a_folder_that_is_not_there_is_told_with_the_path(tmp_path: Path) -> None:
    """The error names the configured path, for the message of `wholefeed serve`."""
    path = str(tmp_path / "no" / "s")
    with pytest.raises(OSError, match="No such file") as caught, bound(path):
        pass
    assert caught.value.filename == path


def test_at_exit_only_the_own_file_is_removed(tmp_path: Path) -> None:
    """A new server may already have a socket by the same name."""
    path = tmp_path / "s"
    with bound(str(path)):
        path.unlink()
        other = a_socket(path)
    assert path.exists()
    other.close()


async def test_the_server_answers_on_its_socket_beside_its_port(tmp_path: Path, origin: Origin) -> None:
    """`server.socket`: no user of the socket is trusted as a reverse proxy."""
    origin.publish("/feed", atom(an_item("1", 1)))
    path = tmp_path / "wholefeed.sock"
    async with serving(tmp_path, server_socket=path, server_trusted_proxies="10.0.0.0/8") as served:
        by_port = await served.whole(origin.url("/feed"))
        headers = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}
        async with client(path) as session:
            url, query = f"http://localhost:{served.port}/feed", {"url": origin.url("/feed")}
            async with session.get(url, params=query, headers=headers) as answer:
                body = (await answer.read()).replace(b"localhost", b"127.0.0.1")
                assert (answer.status, body) == (200, by_port.body)
        assert "unix" in await served.clients(2)
        (started,) = [line for line in served.lines if line["event"] == "server.started"]
        assert started["socket"] == str(path)
    assert not path.exists()


async def test_a_client_s_own_name_is_not_taken_for_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may bind its own end to a file called 10.0.0.1."""
    path = tmp_path / "s.sock"
    monkeypatch.chdir(tmp_path)
    async with serving(tmp_path, server_socket=path, server_trusted_proxies="10.0.0.0/8") as served:
        fields = "Host: localhost\r\nX-Forwarded-For: 192.0.2.1\r\nConnection: close\r\n\r\n"
        request = f"GET /readyz HTTP/1.1\r\n{fields}"
        answer = await asyncio.to_thread(ask, path, request, own_name="10.0.0.1")
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert await served.clients(1) == ["unix"]


async def test_a_reverse_proxy_on_the_socket_is_believed_where_that_is_said(tmp_path: Path) -> None:
    """`server.trusted_proxies = ["unix:"]`: X-Forwarded-For names the client, and Host is checked."""
    path = tmp_path / "s.sock"
    running = serving(tmp_path, server_socket=path, server_trusted_proxies="unix:")
    async with running as served, client(path) as session:
        headers = {"X-Forwarded-For": "192.0.2.1, 2001:db8::7", "X-Forwarded-Host": "evil.example"}
        async with session.get("http://localhost/feeds", headers=headers) as answer:
            assert answer.status == 421
        assert await served.clients(1) == ["2001:db8::/64"]


async def test_a_socket_that_cannot_be_used_keeps_the_server_from_starting(tmp_path: Path) -> None:
    """One line names the key and the reason; exit 1, without a new token."""
    (tmp_path / "s").write_text("precious")
    async with serving(tmp_path, server_socket=tmp_path / "s") as served:
        assert await served.ended() == 1
    expected = f"cannot listen on server.socket = {tmp_path}/s: the path exists and is no socket\n"
    assert expected in served.told
    assert [each.name for each in tmp_path.iterdir()] == ["s"]
