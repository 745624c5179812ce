"""The Unix socket beside host and port: who may connect, what is replaced, what is left alone."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from pathlib import Path

import aiohttp
import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.processes import serving
from wholefeed.server.listening import bound


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
    """Mode 0660, whatever the umask, from the first moment on; the umask of the process is as before."""
    before = os.umask(0)
    try:
        with bound(str(tmp_path / "s")):
            assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o660
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert not (tmp_path / "s").exists()


def test_the_socket_of_a_process_that_has_ended_is_replaced(tmp_path: Path) -> None:
    """After kill -9 the file is still there and nobody listens: the next start takes its place."""
    a_socket(tmp_path / "s").close()
    with bound(str(tmp_path / "s")) as listener:
        listener.listen()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(tmp_path / "s"))


def test_a_socket_that_somebody_listens_on_is_left_to_them(tmp_path: Path) -> None:
    """Two servers with one socket by mistake: the second one does not take it away from the first."""
    path = str(tmp_path / "s")
    with a_socket(tmp_path / "s") as other:
        other.listen()
        with pytest.raises(OSError, match="something listens there already") as caught, bound(path):
            pass
        assert caught.value.filename == path
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_socket_is_left_alone(tmp_path: Path, kind: str) -> None:
    """A path that names something else by mistake loses nothing; a link is not followed."""
    path = tmp_path / "s"
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("precious")
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="something is there that is no socket"), bound(str(path)):
        pass
    assert path.lstat()


def test_a_folder_that_is_not_there_is_told_with_the_path(tmp_path: Path) -> None:
    """The error names the path as it was given, for the message of `wholefeed serve`."""
    path = str(tmp_path / "no" / "s")
    with pytest.raises(OSError, match="No such file") as caught, bound(path):
        pass
    assert caught.value.filename == path


def test_at_exit_only_the_own_file_is_removed(tmp_path: Path) -> None:
    """A server that starts while the old one ends has a new socket by the same name: it stays."""
    path = tmp_path / "s"
    with bound(str(path)):
        path.unlink()
        other = a_socket(path)
    assert path.exists()
    other.close()


async def test_the_server_answers_on_its_socket_beside_its_port(tmp_path: Path, origin: Origin) -> None:
    """`server.socket`: the same feed by both; the log says where it listens, and the file is gone at the end.
    Nobody who connects is believed to be a reverse proxy."""
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
    """Whoever may connect may bind the own end to a file called 10.0.0.1: that is still no trusted proxy."""
    path = tmp_path / "s.sock"
    monkeypatch.chdir(tmp_path)
    async with serving(tmp_path, server_socket=path, server_trusted_proxies="10.0.0.0/8") as served:
        fields = "Host: localhost\r\nX-Forwarded-For: 192.0.2.1\r\nConnection: close\r\n\r\n"
        request = f"GET /readyz HTTP/1.1\r\n{fields}"
        answer = await asyncio.to_thread(ask, path, request, own_name="10.0.0.1")
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert await served.clients(1) == ["unix"]


async def test_a_reverse_proxy_on_the_socket_is_believed_where_that_is_said(tmp_path: Path) -> None:
    """`server.trusted_proxies = ["unix:"]`, as nginx writes it: X-Forwarded-For names the client, and the
    Host that the reader used is checked as ever."""
    path = tmp_path / "s.sock"
    running = serving(tmp_path, server_socket=path, server_trusted_proxies="unix:")
    async with running as served, client(path) as session:
        headers = {"X-Forwarded-For": "192.0.2.1, 2001:db8::7", "X-Forwarded-Host": "evil.example"}
        async with session.get("http://localhost/feeds", headers=headers) as answer:
            assert answer.status == 421
        assert await served.clients(1) == ["2001:db8::/64"]


async def test_a_socket_that_cannot_be_used_keeps_the_server_from_starting(tmp_path: Path) -> None:
    """One line says which key is wrong and why; exit 1, and no token was made for nothing."""
    (tmp_path / "s").write_text("precious")
    async with serving(tmp_path, server_socket=tmp_path / "s") as served:
        assert await served.ended() == 1
    expected = f"cannot listen on server.socket = {tmp_path}/s: something is there that is no socket\n"
    assert expected in served.told


async def test_the_healthcheck_goes_on_by_host_and_port(tmp_path: Path) -> None:
    """A socket beside them changes nothing for containers."""
    async with serving(tmp_path, server_socket=tmp_path / "s") as served:
        assert (await served.ask("/healthz")).status == 200
