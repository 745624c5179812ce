"""Rows 95, 95a and 96 of docs/faults.md: connections with requests that never end."""

from __future__ import annotations

import asyncio
import itertools
import resource
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from benchmarks.support.flood import FORM, HALF_A_HEAD, LONG_FORM, LONG_LIST, flooding
from benchmarks.support.usage import peak_bytes
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.processes import Served, serving

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

TOKEN = "a-token-for-readers"
FORMS = 300
MOST_BYTES = 64 << 20
"""For all of them; a mebibyte for each would be five times as much."""
LISTS = 40
MOST_BYTES_OF_LISTS = 160 << 20
"""For eight lists as they grow; all forty would be 280 MB and as much again."""
MORE_THAN_ADMITTED = 2_200
HEALTHY_SECONDS = 3.0


async def logged_in(served: Served) -> int:
    target = f"http://127.0.0.1:{served.port}/login"
    async with (
        aiohttp.ClientSession() as session,
        session.post(target, data={"token": TOKEN}, allow_redirects=False) as response,
    ):
        return response.status


@pytest.mark.fault("95")
async def test_row_95_forms_without_end_do_not_fill_memory(tmp_path: Path) -> None:
    """Row 95: anybody may send a form, from any number of addresses."""
    async with serving(tmp_path, server_access_token=TOKEN) as served:
        assert await logged_in(served) == 303
        before = peak_bytes(served.process.pid)
        async with flooding(served.port, LONG_FORM, count=FORMS):
            assert await logged_in(served) == 303
            assert peak_bytes(served.process.pid) - before < MOST_BYTES


@pytest.mark.fault("94")
async def test_row_94_lists_without_end_do_not_fill_memory(tmp_path: Path) -> None:
    """Row 94: lists beyond the room for bodies get a Retry-After, and room once the others leave."""
    sent = b"<opml version='2.0'><body><outline xmlUrl='http://a.example/feed'/></body></opml>"
    async with serving(tmp_path) as served, aiohttp.ClientSession() as session:
        target = f"http://127.0.0.1:{served.port}/opml"
        async with session.post(target, data=sent) as response:
            assert response.status == 200
        before = peak_bytes(served.process.pid)
        async with flooding(served.port, LONG_LIST, count=LISTS):
            async with session.post(target, data=sent) as response:
                assert (response.status, int(response.headers["Retry-After"]) > 0) == (503, True)
            assert peak_bytes(served.process.pid) - before < MOST_BYTES_OF_LISTS
        async with session.post(target, data=sent) as response:
            assert response.status == 200


@pytest.mark.fault("95a")
@pytest.mark.parametrize("what", ["a form", "a reader's request"])
async def test_row_95a_who_has_not_said_all_takes_no_place(tmp_path: Path, origin: Origin, what: str) -> None:
    """Row 95a: at any point of an unfinished request; whole requests are answered at once."""
    origin.publish("/feed", atom(an_item("a")))
    target = f"/feed?token={quote(TOKEN)}&url={quote(origin.url('/held'), safe='')}"
    unsaid = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n".encode()
    async with serving(tmp_path, server_access_token=TOKEN) as served:
        with origin.held("/held"):
            said = FORM if what == "a form" else unsaid
            async with flooding(served.port, said, count=MORE_THAN_ADMITTED):
                reply = await served.ask("/feed", url=origin.url("/feed"), token=TOKEN)
    assert reply.status == 200
    assert "library.logged" not in served.events()


@pytest.mark.fault("96")
@pytest.mark.parametrize(
    ("loop", "most_files"), [("asyncio", 1024), ("asyncio", 256), ("uvloop", 1024), ("uvloop", 256)]
)
@pytest.mark.sample("asyncio-256", "uvloop-256")
async def test_row_96_few_files_do_not_stop_the_server(tmp_path: Path, loop: str, most_files: int) -> None:
    """Row 96: more half-open connections than files. The oldest close for new ones, a supervisor gets
    answers, and the log a line a second. uvloop runs if installed."""
    if loop == "asyncio":
        hide_uvloop(tmp_path)
    few = ["sh", "-c", f'ulimit -n {most_files} && exec "$@"', "sh"]
    async with serving(tmp_path, before=few) as served:
        await besieged(served, 2 * most_files)


@pytest.mark.fault("96")
async def test_row_96_what_cannot_be_accepted_is_told_once_a_second(tmp_path: Path) -> None:
    """Row 96: the reserved files may be used up."""
    hide_uvloop(tmp_path)
    async with serving(tmp_path) as served:
        assert (await served.ask("/healthz")).status == 200
        taken = len(list(Path(f"/proc/{served.process.pid}/fd").iterdir()))
        limits = resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (taken + 50, limits[1]))
        began = time.monotonic()
        async with flooding(served.port, HALF_A_HEAD, count=200), asyncio.timeout(300):
            while not any(line.get("unaccepted") for line in served.lines):
                await asyncio.sleep(0.05)
            resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, limits)
            assert (await served.ask("/healthz")).status == 200
        quiet(served, time.monotonic() - began)


@pytest.mark.fault("96a")
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.sample("uvloop")
async def test_row_96a_without_a_free_file_nobody_is_blamed(
    tmp_path: Path, origin: Origin, loop: str
) -> None:
    """Row 96a: neither a reader without an answer nor a publisher that could not be asked."""
    if loop == "asyncio":
        hide_uvloop(tmp_path)
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    async with serving(tmp_path) as served:
        assert (await served.ask("/healthz")).status == 200
        limits = resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE)
        free = lowest_free(served.process.pid)
        for more in (0, 4):  # none for a connection; one for it, none for the publisher
            resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (free + more, limits[1]))
            for _ in range(6 if more else 1):
                reply = await served.get(url)
                assert (reply.status, reply.headers["Retry-After"]) == (503, "5")
                assert b"urn:wholefeed:overloaded" in reply.body
        resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, limits)
        assert (await served.get(url)).status == 200
        assert not {"host.rested", "request.failed", "library.logged"} & set(served.events())
    assert origin.counts() == {"/feed": 1}


def lowest_free(pid: int) -> int:
    used = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return next(number for number in itertools.count() if number not in used)


def hide_uvloop(folder: Path) -> None:
    (folder / "uvloop.py").write_text('raise ImportError("hidden for a test")\n', "utf-8")


async def besieged(served: Served, count: int) -> None:
    began = time.monotonic()
    for _ in range(3):
        async with flooding(served.port, HALF_A_HEAD, count=count), asyncio.timeout(HEALTHY_SECONDS):
            assert await status_of_health(served) == 200
    quiet(served, time.monotonic() - began)


async def status_of_health(served: Served) -> int:
    """Ask again if the server closed the connection to make room."""
    while True:
        with suppress(aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            return (await served.ask("/healthz")).status


def quiet(served: Served, seconds: float) -> None:
    """Check for at most one line a second about connections, and no traceback."""
    events = Counter(served.events())
    assert 1 <= events["connections.crowded"] <= seconds + 1
    assert events["library.logged"] == 0
    assert served.told == ""
