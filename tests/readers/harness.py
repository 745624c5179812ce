"""Feed readers as programs: each runs in a folder of its own, asks loopback alone, and ends in time.

    reader = Newsboat(folder)                        # tests/readers/programs.py
    await reader.subscribe(served.feed(origin.url("/feed")))
    await reader.poll()
    [entry.title for entry in await reader.entries()]

What a reader shows is read where it keeps it (its database, its files, the mails that it wrote), so that an
entry that it took twice shows twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit, urlunsplit

from tests.processes import Served, serving

RUN_SECONDS = 300
"""The longest that one run of a program may take, on a machine that is busy."""
TOKEN = "a-token-of-the-tests"


@dataclass(frozen=True)
class Entry:
    """What a reader keeps of an entry."""

    title: str
    link: str = ""
    enclosures: tuple[str, ...] = ()


class Reader(ABC):
    """A feed reader with one subscription.

    Attributes:
        folder: Its home; nothing is read or written elsewhere.
    """

    name: ClassVar[str]
    programs: ClassVar[tuple[str, ...]] = ()
    """What must be installed; Debian's packages are named so, or as `package` says."""
    package: ClassVar[str] = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def lacking(cls) -> str:
        """Say what is not installed; nothing when all is there."""
        missing = [name for name in cls.programs if shutil.which(name) is None]
        return f"{', '.join(missing)} not installed (apt-get install {cls.package})" if missing else ""

    @abstractmethod
    async def subscribe(self, url: str) -> None:
        """Subscribe, and fetch the feed for the first time."""

    @abstractmethod
    async def poll(self) -> None:
        """Ask for the feed again."""

    @abstractmethod
    async def entries(self) -> list[Entry]:
        """Return all that it keeps, in its own order."""

    async def titles(self) -> list[str]:
        """Return the titles of all that it keeps."""
        return [entry.title for entry in await self.entries()]

    async def run(self, *command: str, **variables: str) -> str:
        """Run a program to its end; return what it wrote.

        Raises:
            AssertionError: It did not end well.
        """
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self.folder,
            env=self._environment() | variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(RUN_SECONDS):
                written, _ = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        text = written.decode(errors="replace")
        assert process.returncode == 0, f"{command} ended with {process.returncode}: {text}"
        return text

    def _environment(self) -> dict[str, str]:
        home = str(self.folder)
        return {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "XDG_CONFIG_HOME": home,
            "XDG_DATA_HOME": home,
            "XDG_CACHE_HOME": home,
            "TMPDIR": home,
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
            "no_proxy": "*",
        }


class Server:
    """A proxy in a process of its own, as the readers see it."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._marks = 0

    def feed(self, url: str, **query: str) -> str:
        """Return the URL to subscribe to."""
        options = "".join(f"&{name}={quote(value, safe='')}" for name, value in query.items())
        return f"http://127.0.0.1:{self.served.port}/feed?url={quote(url, safe='')}{options}"

    async def refreshed(self, url: str) -> None:
        """Have the publisher asked now, also for what is missing, and wait for the end."""
        reply = await self.served.ask("/refresh", method="POST", url=url)
        assert reply.status == 202, reply.body
        async with asyncio.timeout(300):
            while json.loads((await self.served.ask("/status", url=url)).body)["walking"]:
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def asked(self, url: str) -> AsyncIterator[list[int]]:
        """Collect what the requests for a feed in the block were answered with, in order."""
        statuses: list[int] = []
        begun = await self._mark()
        yield statuses
        ended = await self._mark()
        statuses += [
            line["status"]
            for line in self.served.lines[begun:ended]
            if line["event"] == "request.answered" and line["path"] == "/feed" and line.get("url") == url
        ]

    async def _mark(self) -> int:
        """Return how many lines have been logged so far; a request of its own says that all are in."""
        self._marks += 1
        await self.served.ask("/feeds")
        async with asyncio.timeout(300):
            while [line.get("path") for line in self.served.lines].count("/feeds") < self._marks:
                await asyncio.sleep(0.01)
        return len(self.served.lines)


@asynccontextmanager
async def server(folder: Path, **settings: Any) -> AsyncIterator[Server]:
    """Start a proxy for readers and stop it at the end."""
    async with serving(folder, **settings) as served:
        assert served.port, served.told or served.lines
        yield Server(served)


def with_password(url: str, password: str) -> str:
    """Return a URL that has a reader send a password (Basic), as most take it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"reader:{quote(password, safe='')}@{parts.netloc}"))
