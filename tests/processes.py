"""The proxy in a process of its own, as an operator runs it: it can be killed, and its volume can fill up.

async with serving(folder) as served:
    reply = await served.get(origin.url("/feed"))
    served.process.kill()
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from tests.running import Reply

ROOT = Path(__file__).parent.parent
START_SECONDS = 300
STOP_SECONDS = 300

_OWN_MOUNTS = ["unshare", "--mount", "--map-root-user"]


def can_mount() -> bool:
    """Whether a process may have its own volume on this machine."""
    if shutil.which("unshare") is None:
        return False
    probe = [*_OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, timeout=300, check=False).returncode == 0


def with_mount(*arguments: str) -> list[str]:
    """Prefix for a command with a mount of its own."""
    quoted = " ".join(f"'{each}'" for each in arguments)
    return [*_OWN_MOUNTS, "sh", "-c", f'mount {quoted} && exec "$@"', "sh"]


def printed(folder: Path, *arguments: str, **settings: object) -> str:
    """The output of a finished wholefeed command; the settings as for `starting`."""
    done = subprocess.run(
        [sys.executable, "-m", "wholefeed", *arguments],
        cwd=folder,
        env=_environment(settings),
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout


def _environment(settings: Mapping[str, object]) -> dict[str, str]:
    """The environment with a test's configuration keys and no others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WHOLEFEED_")}
    return {**kept, "PYTHONPATH": f"{ROOT / 'proxy'}{os.pathsep}{ROOT}"} | {
        f"WHOLEFEED_{name.upper()}": str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


class Served:
    """A server process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        """Its log lines."""
        self.text = ""
        """All its output."""
        self.told = ""
        """Its output beside the log."""
        self.port = 0
        self._reading = asyncio.create_task(self._read())

    def seen(self, path: Path) -> Path:
        """A path as the process sees it, through mounts of its own."""
        return Path(f"/proc/{self.process.pid}/root{path}")

    def events(self) -> list[str]:
        """Its logged events."""
        return [line["event"] for line in self.lines]

    async def clients(self, count: int) -> list[str]:
        """Its clients, once the log has this many answers."""
        async with asyncio.timeout(300):
            while True:
                found = [line["client"] for line in self.lines if line["event"] == "request.answered"]
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.01)

    async def get(self, url: str) -> Reply:
        """GET /feed?url=…, uncompressed."""
        return await self.ask("/feed", url=url)

    async def whole(self, url: str) -> Reply:
        """GET the feed when nothing is loading any more."""
        async with asyncio.timeout(300):
            while (reply := await self.get(url)).status == 200 and reply.state == "loading":
                await asyncio.sleep(0.05)
            return reply

    async def ask(self, path: str, *, method: str = "GET", **query: str) -> Reply:
        target, sent = f"http://127.0.0.1:{self.port}{path}", {"Accept-Encoding": "identity"}
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, target, params=query, headers=sent) as response,
        ):
            return Reply(response.status, response.headers, await response.read())

    async def started(self) -> None:
        """Wait until it listens, or has ended."""
        async with asyncio.timeout(START_SECONDS):
            while not self.port and not self._reading.done():
                await asyncio.sleep(0.01)

    async def ended(self) -> int:
        """Wait until it has ended; return its exit code."""
        async with asyncio.timeout(STOP_SECONDS):
            await self._reading
            return await self.process.wait()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.text += line.decode()
            try:
                logged = json.loads(line)
            except ValueError:
                self.told += line.decode()
                if started := re.search(r" server\.started .*\bport=(\d+)", line.decode()):
                    self.port = int(started[1])
                continue
            self.lines.append(logged)
            if logged["event"] == "server.started":
                self.port = logged["port"]


@asynccontextmanager
async def serving(
    folder: Path, *, before: Sequence[str] = (), database: Path | None = None, **settings: object
) -> AsyncIterator[Served]:
    """Start the server and wait until it listens or has ended; stop it at the end. Args as for `starting`."""
    async with starting(folder, before=before, database=database, **settings) as served:
        await served.started()
        yield served


@asynccontextmanager
async def starting(
    folder: Path, *, before: Sequence[str] = (), database: Path | None = None, **settings: object
) -> AsyncIterator[Served]:
    """Start the server; stop it at the end.

    Args:
        folder: Where it runs, and its database is unless another one is given.
        before: What goes before the command.
        database: Its path.
        settings: Configuration keys, `history_look_ahead=False` for `history.look_ahead`.
    """
    own = {
        "store_path": database or folder / "wholefeed.db",
        "history_list": "off",
        "fetch_allow_networks": "127.0.0.0/8",
        "log_format": "json",
        **settings,
    }
    process = await asyncio.create_subprocess_exec(
        *before, sys.executable, "-m", "wholefeed", "serve", "--port", "0",
        cwd=folder,
        env=_environment(own),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    served = Served(process)
    try:
        yield served
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await served.ended()
        except TimeoutError:
            process.kill()
            await served.ended()
