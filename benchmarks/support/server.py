"""The server as an operator runs it, `python -m wholefeed serve`, in a process of its own.

with running_server(folder) as server:
    answer = server.whole(publisher.url())       # asked until it is not loading any more
    server.peak_bytes()
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from benchmarks.support import counting
from benchmarks.support.counting import read_hops, write_zero
from benchmarks.support.tree import HERE, Tree
from benchmarks.support.usage import cpu_seconds, peak_bytes, resident_bytes, status_kib

_START_SECONDS: Final = 30
_STOP_SECONDS: Final = 20
_ANSWER_SECONDS: Final = 120
_WHOLE_SECONDS: Final = 900
_LOG_LINES: Final = 15


class ServerFailedError(Exception):
    """The server did not start or deliver the feed; the message ends with the log's last lines."""


@dataclass(frozen=True, slots=True)
class Answer:
    state: str
    etag: str
    wire_bytes: int
    body: bytes
    """The body without content coding."""

    @property
    def entries(self) -> int:
        return self.body.count(b"<entry>") + self.body.count(b"<entry ")


class Server:
    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self._process = process
        self._log = log
        self.port = port

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()

    def feed_target(self, url: str) -> str:
        return f"/feed?url={quote(url, safe='')}"

    def whole(self, url: str) -> Answer:
        """Ask for a feed as a reader does, gzip, until it is not loading any more.

        Raises ServerFailedError without a feed, or if it still loads after 15 minutes.
        """
        until = time.monotonic() + _WHOLE_SECONDS
        while True:
            answer = self._get(url)
            if answer.state != "loading":
                return answer
            if time.monotonic() > until:
                raise ServerFailedError(self.with_log("still loading"))
            time.sleep(0.01)

    def peak_bytes(self) -> int:
        """Return the highest resident memory of its process (VmHWM); Linux only."""
        return peak_bytes(self.pid)

    def resident_bytes(self) -> int:
        """Return the present resident memory of it and its children; Linux only."""
        return resident_bytes(self.pid)

    def cpu_seconds(self) -> float:
        """Return CPU seconds of it and its children; Linux only."""
        return cpu_seconds(self.pid)

    def hops(self) -> int:
        """Return the number of calls to SQLite's threads; the server must count them."""
        return read_hops(_hops_path(self._log.parent))

    def threads(self) -> int:
        """Return the number of threads; Linux only."""
        return status_kib(self.pid, "Threads")

    def open_files(self) -> int:
        """Return the number of open files and sockets; Linux only."""
        return len(list(Path(f"/proc/{self._process.pid}/fd").iterdir()))

    def log_bytes(self) -> int:
        return self._log.stat().st_size

    def with_log(self, problem: str) -> str:
        return "\n".join([f"{problem}; the end of the server's log:", *_lines(self._log)[-_LOG_LINES:]])

    def _get(self, url: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER_SECONDS)
        with contextlib.closing(connection):
            connection.request("GET", self.feed_target(url), headers={"Accept-Encoding": "gzip"})
            response = connection.getresponse()
            status, headers, body = response.status, response.headers, response.read()
        if status != http.HTTPStatus.OK:
            raise ServerFailedError(self.with_log(f"expected status 200, got {status}: {body[:300]!r}"))
        return Answer(
            state=headers["Feed-Reconstruction"].partition(";")[0],
            etag=headers["ETag"],
            wire_bytes=len(body),
            body=gzip.decompress(body) if headers["Content-Encoding"] == "gzip" else body,
        )


@contextlib.contextmanager
def running_server(
    folder: Path,
    *,
    tree: Tree = HERE,
    counts_hops: bool = False,
    before: Sequence[str] = (),
    **settings: object,
) -> Iterator[Server]:
    """Start the server on any free port of loopback, wait until it listens, and stop it at the end.

    Args:
        folder: For its database, which stays there, and its log.
        tree: The checkout that it is started from.
        counts_hops: Whether it counts the calls of SQLite's threads.
        before: What goes before the command, and ends by being replaced by it.
        settings: Configuration keys, `history_look_ahead=False` for `history.look_ahead`.

    Raises:
        ServerFailedError: It did not start.
    """
    log = folder / "server.log"
    start = ["-m", tree.module]
    if counts_hops:
        write_zero(_hops_path(folder))
        start = [counting.__file__, tree.module]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*before, tree.python, *start, "serve", "--port", "0"],
            cwd=folder,
            env=_environment(folder, tree, settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        server = Server(process, _port(process, log), log)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _hops_path(folder: Path) -> Path:
    return folder / "hops"


def _environment(folder: Path, tree: Tree, settings: dict[str, object]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WHOLEFEED_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed server has its modules compiled
    own = {
        "store_path": folder / "wholefeed.db",
        "fetch_allow_networks": "127.0.0.0/8",
        "log_format": "json",
        **settings,
    }
    return {
        **kept,
        "PYTHONPATH": tree.import_path,
        counting.FILE: str(_hops_path(folder)),
        **{
            f"WHOLEFEED_{name.upper()}": str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in own.items()
        },
    }


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    until = time.monotonic() + _START_SECONDS
    while True:
        for line in _lines(log):
            if '"server.started"' in line:
                return int(json.loads(line)["port"])
        if process.poll() is not None or time.monotonic() > until:
            raise ServerFailedError("\n".join(["the server did not start:", *_lines(log)[-_LOG_LINES:]]))
        time.sleep(0.02)


def _lines(log: Path) -> list[str]:
    """Return the complete lines."""
    return log.read_text("utf-8", "replace").rpartition("\n")[0].splitlines()
