"""Make databases, and record the answers from them.

    python -m tests.stored make schema-14
    python -m tests.stored make release-0.1 --program ../wholefeed-0.1/.venv/bin/wholefeed
    python -m tests.stored record                # all of them, or those that are named
    python -m tests.stored answered release-0.1 --program ../wholefeed-0.1/.venv/bin/wholefeed

`make` lets a program store the feeds of `tests.stored.publishers`; without `--program` it is this version.
`--memento` lets it ask a web archive too, where it knows how to. An earlier version's database stays as is
for good, and so does that of the newest schema once there is a later one; `tests/data/stored/README.md`
names the maker of each. `record` is for intended changes of answers: look at the difference. `answered`
stores the answers of the program that made a database; no later version changes them.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import logging
import os
import re
import shutil
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import structlog

from tests.origin import Origin
from tests.stored.asking import FOLDER, everything, opened, refreshed, requested, unpacked, written
from tests.stored.publishers import ARCHIVED_HOST, Named, World
from tests.web_archive import WebArchive

QUIET_SECONDS = 2.0
"""Silence at the publishers after which a program counts as done."""
ARCHIVE_QUIET_SECONDS = 15.0
"""The same with a web archive, which gets at most five requests a minute."""
LATER_SECONDS = 60
"""Time between the newest instant of a database and its opening."""
_ENTRY = re.compile(rb"<(entry|item)\b.*?</\1>", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.stored",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="make a database, and record what is answered from it")
    making.add_argument("name", help="what it is called")
    making.add_argument("--program", type=Path, help="the wholefeed that makes it (default: this one)")
    making.add_argument("--memento", action="store_true", help="let it ask a web archive")
    recording = commands.add_parser("record", help="record what this version answers from databases")
    recording.add_argument("names", nargs="*", help="of databases (default: all)")
    answering = commands.add_parser("answered", help="keep what the program that made a database answers")
    answering.add_argument("name", help="of the database")
    answering.add_argument("--program", type=Path, required=True, help="the wholefeed that made it")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if options.command == "make":
        program = options.program or Path(sys.executable).with_name("wholefeed")
        asyncio.run(make(options.name, program.absolute(), asks_archive=options.memento))
        names = [options.name]
    elif options.command == "answered":
        found = asyncio.run(answered(options.name, options.program.absolute()))
        (FOLDER / f"{options.name}.answered.json").write_text(written(found) + "\n", "utf-8")
        names = []
    else:
        names = options.names or sorted(path.name.removesuffix(".db.gz") for path in FOLDER.glob("*.db.gz"))
    for name in names:
        asyncio.run(record(name))
    return 0


async def make(name: str, program: Path, *, asks_archive: bool) -> None:
    """Let a program store all feeds at each of the times, and keep its database."""
    with TemporaryDirectory() as folder:
        database = Path(folder) / "wholefeed.db"
        async with Origin() as gateway, WebArchive(origin=Named("archive.example", gateway)) as archive:
            world = World(gateway)
            settings = {"STORE_PATH": str(database), "FETCH_PROXY": gateway.url(""), "FETCH_RETRIES": "0"}
            if asks_archive:
                settings |= {"HISTORY_MEMENTO": "true", "HISTORY_MEMENTO_URL": archive.origin.url("")}
                settings |= {"HISTORY_MEMENTO_QUERY_HOSTS": ARCHIVED_HOST}
            async with (
                serving(program, Path(folder), settings) as base,
                aiohttp.ClientSession(base) as reader,
            ):
                for number in world.TIMES:
                    world.publish(number)
                    if not number:
                        for url, body in world.lost.items():
                            archive.save(url, 2024, body)
                    for url in world.urls:
                        full = {"full": "1"} if world.is_asked_fully(url) else {}
                        await (told(reader, "POST", url, **full) if number else told(reader, "GET", url))
                    is_searched = asks_archive and not number
                    await done(gateway, ARCHIVE_QUIET_SECONDS if is_searched else QUIET_SECONDS)
                    for url in world.urls:  # also for what is sent to be told of: what is missing, and healed
                        await told(reader, "GET", url)
                    await done(gateway, QUIET_SECONDS)
        with closing(sqlite3.connect(database)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute("VACUUM")
        packed = gzip.compress(database.read_bytes(), 9, mtime=0)
    (FOLDER / f"{name}.db.gz").write_bytes(packed)
    print(f"{name}.db.gz: {len(packed)} bytes")


@asynccontextmanager
async def serving(program: Path, folder: Path, settings: dict[str, str]) -> AsyncIterator[str]:
    """Run a version's server; yield its URL once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("WHOLEFEED_", "PYTHON"))}
    own = {f"WHOLEFEED_{key}": value for key, value in settings.items()}
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program, "serve", "--port", str(port), cwd=folder, env=kept | own, stdout=log, stderr=log
        )
    try:
        async with asyncio.timeout(300):
            while not await _answers(port):
                if process.returncode is not None:
                    raise RuntimeError((folder / "log").read_text())
                await asyncio.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        async with aiohttp.request("GET", f"http://127.0.0.1:{port}/readyz") as reply:
            return reply.status == 200
    except aiohttp.ClientError:
        return False


async def told(reader: aiohttp.ClientSession, method: str, url: str, **query: str) -> None:
    """Ask for a feed or its refresh. A version may refuse formats unknown to it."""
    path = "/feed" if method == "GET" else "/refresh"
    async with reader.request(method, path, params={"url": url, **query}) as reply:
        await reply.read()
        if reply.status >= 400:
            print(f"{method} {url}: {reply.status}")


async def done(gateway: Origin, quiet_seconds: float) -> None:
    """Wait until no publisher has been asked for a while."""
    seen = -1
    while seen != len(gateway.requests) or gateway.running_requests:
        seen = len(gateway.requests)
        await asyncio.sleep(quiet_seconds)


async def answered(name: str, program: Path) -> dict[str, dict[str, str]]:
    """Serve a copy of a database with a program while no publisher is reachable.

    Returns each feed's state, counts, ETag, and a digest of its entries. The entry about gaps is left out:
    its words differ between versions.
    """
    found = {}
    async with _unreachable(name, program) as (reader, urls):
        for url in urls:
            async with reader.get("/feed", params={"url": url}, headers=_AS_ASKED) as reply:
                body = await reply.read()
                state = ";".join(reply.headers["Feed-Reconstruction"].split(";")[:4])
                etag = reply.headers["ETag"]
            entries = [entry[0] for entry in _ENTRY.finditer(body)]
            told = entries[1:] if state.startswith("partial") else entries
            digest = hashlib.sha256(b"".join(told)).hexdigest()
            found[url] = {"state": state, "entries": digest, "etag": etag}
    return found


_AS_ASKED = {"Host": "127.0.0.1:8080", "Accept-Encoding": "identity"}
"""An answer contains its own URL, made from the Host."""


async def known(name: str, program: Path, tags: dict[str, str]) -> list[str]:
    """Serve a copy of a database likewise; return the ETags that get a 304.

    `tags` are by the URL of their feed.
    """
    found = []
    async with _unreachable(name, program) as (reader, _):
        for url, etag in tags.items():
            fields = {**_AS_ASKED, "If-None-Match": etag}
            async with reader.get("/feed", params={"url": url}, headers=fields) as reply:
                found += [url] if reply.status == 304 else []
    return found


@asynccontextmanager
async def _unreachable(name: str, program: Path) -> AsyncIterator[tuple[aiohttp.ClientSession, list[str]]]:
    """Run a program on a copy of a database; yield a reader, and the URLs of its feeds."""
    with TemporaryDirectory() as folder:
        settings = {"STORE_PATH": str(unpacked(name, Path(folder))), "FETCH_RETRIES": "0"}
        settings |= {"FETCH_PROXY": "http://127.0.0.1:9"}  # where nothing listens: the port of RFC 863
        async with serving(program, Path(folder), settings) as base, aiohttp.ClientSession(base) as reader:
            async with reader.get("/feeds") as reply:
                urls = sorted(feed["url"] for feed in await reply.json())
            yield reader, urls


async def record(name: str) -> None:
    """Replace the recorded answers of a database."""
    with TemporaryDirectory() as folder:
        database = unpacked(name, Path(folder))
        with closing(sqlite3.connect(database)) as db:
            (last,) = db.execute("SELECT max(max(checked_at), max(asked_at)) FROM feed").fetchone()
        opened_at = int(last) + LATER_SECONDS
        async with opened(Path(folder), at=opened_at) as (proxy, publishers):
            with closing(sqlite3.connect(database)) as db:  # as it is now: migration 0008 lets aliases go
                aliases = [url for (url,) in db.execute("SELECT url FROM alias ORDER BY url")]
            answers, bodies = await everything(proxy, aliases)
        for request in publishers.requests:
            print(f"{name}: asked {request.method} {request.target}")
        async with opened(Path(folder), at=opened_at) as (proxy, publishers):
            World(publishers).publish_all()
            later, bodies_later = await refreshed(proxy)
            asked = requested(publishers)
    place = FOLDER / name
    shutil.rmtree(place, ignore_errors=True)
    (place / "refreshed").mkdir(parents=True)
    for file, body in bodies.items():
        (place / file).write_bytes(body)
    for file, body in bodies_later.items():
        if body != bodies[file]:
            (place / "refreshed" / file).write_bytes(body)
    found = {
        "opened_at": opened_at,
        "aliases": aliases,
        "answers": answers,
        "refreshed": {"asked": asked, "answers": later},
    }
    (FOLDER / f"{name}.json").write_text(written(found) + "\n", "utf-8")
    print(f"{name}: {len(bodies)} feeds, {len(answers)} answers")


if __name__ == "__main__":
    sys.exit(main())
