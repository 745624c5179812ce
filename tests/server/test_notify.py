"""What systemd hears (sd_notify(3)): a real datagram socket stands in for it."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.processes import serving
from wholefeed.server.listening import Supervisor


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(20)
        yield listener


def heard(systemd: socket.socket) -> list[str]:
    """Everything that was said so far."""
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
    """Type=notify: READY=1 comes when readers are answered, STOPPING=1 on SIGTERM, with a status for people,
    and WATCHDOG=1 twice in each interval."""
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
    """The watchdog is about the event loop: while that is blocked nothing is said, so systemd acts."""
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000"}
    async with Supervisor.of(environ).watching():
        await asyncio.sleep(0.2)
        assert heard(systemd).count("WATCHDOG=1") >= 2
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline:
            pass
        assert heard(systemd) == []


async def test_nothing_is_said_where_nobody_listens(tmp_path: Path) -> None:
    """Without NOTIFY_SOCKET there is no supervisor; one that has gone costs a log line and nothing else."""
    with capture_logs() as logs:
        Supervisor.of({}).tell("READY=1")
        Supervisor.of({"NOTIFY_SOCKET": "vsock:2:1234"}).tell("READY=1")
        assert logs == []
        Supervisor.of({"NOTIFY_SOCKET": str(tmp_path / "gone")}).tell("READY=1")
    assert [log["event"] for log in logs] == ["supervisor.unreachable"]


def test_an_abstract_socket_is_one_too() -> None:
    """systemd may use an abstract socket: the name begins with @."""
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
