"""Rows 119 and 120 of docs/faults.md: costly pages, and many of them at once."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from benchmarks.support.usage import cpu_seconds, peak_bytes, tree
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.processes import Served, serving
from tests.running import Reply

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

PAGE_BYTES = 1 << 20
BROWSER = {
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "Accept-Encoding": "identity",
    "Sec-Fetch-Dest": "document",
}
NESTED = "<div>" * 3277
GROWING = '<a href="x">y</a>' * 900
BASE = "http://site.test/" + "long/" * 180
AT_ONCE = 10
MOST_BYTES = 150 << 20
"""For all of them, the server's own aside; a page of eight megabytes each took twice as much."""


def publish(origin: Origin, content: str, *, entries: int = 50, path: str = "/feed") -> str:
    items = "".join(
        f"<entry><id>urn:{number}</id><title>e{number}</title><link href='http://site.test/{number}'/>"
        f"<content type='html' xml:base='{BASE}'>{content.replace('&', '&amp;').replace('<', '&lt;')}"
        "</content></entry>"
        for number in range(entries)
    )
    origin.publish(path, atom().replace(b"</feed>", f"{items}</feed>".encode()))
    return origin.url(path)


async def view(served: Served, url: str, *, query: str = "") -> Reply:
    target = f"http://127.0.0.1:{served.port}/view?url={quote(url, safe='')}{query}"
    async with aiohttp.ClientSession() as session, session.get(target, headers=BROWSER) as response:
        return Reply(response.status, response.headers, await response.read())


def words(reply: Reply) -> str:
    return " ".join(re.sub("<[^>]*>", " ", reply.body.decode()).split())


@pytest.mark.fault("119")
@pytest.mark.parametrize("content", [NESTED, GROWING], ids=["nested", "growing"])
async def test_row_119_what_is_made_to_cost_much_costs_little(
    tmp_path: Path, origin: Origin, content: str
) -> None:
    """Row 119: a mebibyte and a second, and no cost to the next reader. Each entry has some of the page; a
    cut one links to its own page."""
    url = publish(origin, content)
    async with serving(tmp_path) as served:
        await served.whole(url)
        pid, before = served.process.pid, cpu_seconds(served.process.pid)
        first = await view(served, url)
        made_seconds = cpu_seconds(pid) - before
        second = await view(served, url)
        kept_seconds = cpu_seconds(pid) - before - made_seconds
    assert (first.status, second.body) == (200, first.body)
    assert len(first.body) <= PAGE_BYTES
    assert made_seconds < 2  # the start of a worker with it
    assert kept_seconds < 0.2
    said = words(first)
    assert "to be shown" in said
    assert "Its page, linked above, may have the rest." in said
    assert [f'href="http://site.test/{number}"'.encode() in first.body for number in range(50)] == [True] * 50


@pytest.mark.fault("119")
async def test_row_119_pages_that_many_ask_for_fill_no_memory(tmp_path: Path, origin: Origin) -> None:
    """Row 119: ten feeds of such entries at once, and ten readers of one of them."""
    urls = [publish(origin, GROWING, path=f"/{number}") for number in range(AT_ONCE)]
    async with serving(tmp_path) as served:
        for url in urls:
            await served.whole(url)
        before = peak_bytes(served.process.pid)
        one = await asyncio.gather(*(view(served, urls[0]) for _ in urls))
        every = await asyncio.gather(*(view(served, url) for url in urls))
        growth = peak_bytes(served.process.pid) - before
    assert {reply.status for reply in one} == {200}
    assert {reply.status for reply in every} <= {200, 503}
    assert every[0].status == 200
    assert all(len(reply.body) <= PAGE_BYTES for reply in (*one, *every))
    assert all(int(reply.headers["Retry-After"]) for reply in every if reply.status == 503)
    assert growth < MOST_BYTES


@pytest.mark.fault("120")
async def test_row_120_without_workers_pages_are_made_all_the_same(tmp_path: Path, origin: Origin) -> None:
    """Row 120: `limits.workers = 0`: a thread makes them, within the same limits."""
    url = publish(origin, GROWING)
    async with serving(tmp_path, limits_workers=0) as served:
        await served.whole(url)
        reply = await view(served, url)
        assert tree(served.process.pid) == [served.process.pid]
    assert reply.status == 200
    assert len(reply.body) <= PAGE_BYTES


@pytest.mark.fault("120")
async def test_row_120_a_worker_that_gives_no_page_is_told_in_words(tmp_path: Path, origin: Origin) -> None:
    """Row 120: a stuck worker gives 503 with Retry-After within seconds; another makes the next page. Other
    answers go on."""
    url, other = publish(origin, GROWING), publish(origin, NESTED, path="/other")
    small = publish(origin, "<p>small</p>", entries=1, path="/small")
    async with serving(tmp_path, limits_workers=1) as served:
        for each in (url, other, small):
            await served.whole(each)
        assert (await view(served, url)).status == 200
        os.kill(the_worker(served), signal.SIGSTOP)
        async with asyncio.timeout(300):
            asking = asyncio.create_task(view(served, other))
            assert (await view(served, small)).status == 200
            reply = await asking
        again = await view(served, other)
        os.kill(the_worker(served), signal.SIGKILL)
        killed = await view(served, url, query="&media=1")
    assert reply.status == 503
    assert int(reply.headers["Retry-After"]) > 0
    assert "Try again" in words(reply)
    assert (again.status, killed.status) == (200, 200)


def the_worker(served: Served) -> int:
    """Return the process id."""
    (worker,) = set(tree(served.process.pid)) - {served.process.pid}
    return worker


@pytest.mark.fault("120")
async def test_row_120_who_reads_slowly_holds_little(tmp_path: Path, origin: Origin) -> None:
    """Row 120: a hundred readers request a page, read nothing of it, and share it."""
    origin.publish("/feed", atom(*(an_item(f"e{n}", n, "word " * 4000) for n in range(50))))
    url = origin.url("/feed")
    async with serving(tmp_path) as served:
        await served.whole(url)
        assert len((await view(served, url)).body) > PAGE_BYTES // 2
        before = peak_bytes(served.process.pid)
        request = (
            f"GET /view?url={quote(url, safe='')} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n"
        )
        opened = []
        for _ in range(100):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1024)
            writer.write(request.encode())
            opened.append((reader, writer))
        for reader, _ in opened:
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        growth = peak_bytes(served.process.pid) - before
        for _, writer in opened:
            writer.transport.abort()
    assert growth < 64 << 20
