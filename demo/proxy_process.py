"""The proxy as an operator runs it: `wholefeed serve` in its own process, with a throw-away store.

It ends with the process that started it (`demo.served`).
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parent.parent
_START_SECONDS: Final = 20
_LOG_LINES: Final = 15


class ProxyFailedError(Exception):
    """The proxy did not start; the message ends with the log's last lines."""


@contextlib.contextmanager
def running_proxy(folder: Path, port: int) -> Iterator[str]:
    """Start the proxy on loopback, wait until it is ready, stop it at the end; yields its base URL.

    Args:
        folder: For its database and its log, `proxy.log`.
        port: The port to listen on.

    Raises:
        ProxyFailedError: It ended, or was not ready in time.
    """
    log = folder / "proxy.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "demo.served", "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=_environment(folder),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.PIPE,  # it ends when this process does, even by SIGKILL
            start_new_session=True,  # Ctrl-C ends the demonstration, which then ends the proxy in order
        )
    try:
        _wait_until_ready(process, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        _stop(process)


def free_port(preferred: int = 8080) -> int:
    """Return `preferred` if nothing listens on it, else any free port."""
    for port in (preferred, 0):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise ProxyFailedError("no free port on 127.0.0.1")


def _environment(folder: Path) -> dict[str, str]:
    """This process's environment with the demonstration's configuration alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WHOLEFEED_")}
    return kept | {
        "PYTHONPATH": str(_ROOT),
        "WHOLEFEED_STORE_PATH": str(folder / "wholefeed.db"),
        "WHOLEFEED_FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        "WHOLEFEED_LOG_FORMAT": "console",
    }


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while not _is_ready(port):
        code = process.poll()
        if code is not None or time.monotonic() > until:
            problem = f"ended with exit code {code}" if code is not None else "was not ready in time"
            lines = log.read_text("utf-8", "replace").splitlines()[-_LOG_LINES:]
            raise ProxyFailedError("\n".join([f"the proxy {problem}; the end of its log:", *lines]))
        time.sleep(0.05)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait()  # it ends itself where it does not stop in time
