"""The simulator and a real WordPress answer alike: the same questions, the same posts, the same changes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from tests.origin import Origin
from tests.publishers.front import Through
from tests.publishers.real_wordpress import RealWordPress, what_lacks
from tests.publishers.visitor import Visitor
from tests.publishers.wordpress import WordPress

HOST = "blog.test"
"""A name without a port, which makes WordPress redirect to usual addresses; nobody looks it up."""
TARGETS = (Path(__file__).parents[1] / "data/wordpress/questions.txt").read_text("utf-8").split()
HEADS = ["/feed/", "/feed/?paged=31", "/feed/?paged=1", "/wp-json/wp/v2/posts?per_page=10"]
ORDERS = ["", "?orderby=ID&order=ASC", "?orderby=modified"]


@dataclass
class Pair:
    """A simulated site and a real one."""

    wordpress: WordPress
    real: RealWordPress
    simulated: Visitor
    visited: Visitor
    by_name: Visitor

    async def both(self, target: str) -> tuple[list[int], list[int]]:
        """Return the posts in both answers."""
        return await self.simulated.posts(target), await self.visited.posts(target)


@pytest.fixture
async def pair(origin: Origin, real_wordpress: RealWordPress) -> AsyncIterator[Pair]:
    """Both with the same 300 posts."""
    wordpress = WordPress(origin)
    wordpress.version, wordpress.blog.comments = "6.1.9", 0
    title = wordpress.blog.title
    async with aiohttp.ClientSession() as session:
        yield Pair(
            wordpress,
            real_wordpress,
            Visitor(session, wordpress.url, title),
            Visitor(session, real_wordpress.url, title),
            Visitor(session, real_wordpress.url, title, host=HOST),
        )


async def test_both_answer_alike(pair: Pair) -> None:
    """Status, header fields, elements, titles and posts, validators included."""
    for method, target in (*(("GET", target) for target in TARGETS), *(("HEAD", target) for target in HEADS)):
        facts = await pair.simulated.facts(target, method=method)
        assert facts == await pair.by_name.facts(target, method=method), (method, target)
    pair.wordpress.canonical = False
    for target in [target for target in TARGETS if "feed" in target][::4]:  # with a port nobody is led on
        simulated, visited = [await each.facts(target) for each in (pair.simulated, pair.visited)]
        del simulated["self"], visited["self"]  # WordPress 6.1 forgets the port in the feed's own address
        assert simulated == visited, target


async def test_both_say_304_alike(pair: Pair) -> None:
    """By tag, by date, and by both, for any page; a date alone may be later than theirs."""
    theirs = await pair.simulated.facts("/feed/")
    tag, date = theirs["ETag"], theirs["Last-Modified"]
    for target in ("/feed/", "/feed/?paged=1", "/feed/?paged=31", "/2018/05/feed/", "/feed/rdf/"):
        for headers in (
            {"If-None-Match": tag},
            {"If-Modified-Since": date},
            {"If-Modified-Since": "Sat, 01 Jan 2050 00:00:00 GMT"},
            {"If-None-Match": tag, "If-Modified-Since": "Tue, 01 Jan 2019 00:00:00 GMT"},
            {"If-None-Match": '"other"', "If-Modified-Since": date},
        ):
            facts = await pair.simulated.facts(target, headers=headers)
            assert facts == await pair.by_name.facts(target, headers=headers), (target, headers)


class Watch:
    """Compares two sites after each change."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.tags = ["", ""]

    async def compare(self) -> list[bool]:
        """Expect the same posts in each order; return for both whether the validators have moved."""
        for order in ORDERS:
            simulated, there = await self.pair.both(f"/feed/{order}")
            assert simulated == there, order
        before = self.tags
        self.tags = [
            (await each.facts("/feed/"))["ETag"] for each in (self.pair.simulated, self.pair.visited)
        ]
        await asyncio.sleep(1 - time.time() % 1)  # a change within the second of another moves no validator
        return [then != now for then, now in zip(before, self.tags, strict=True)]


async def test_changes_show_alike(pair: Pair) -> None:
    """An author's change has the same place in each order, and the same effect on validators."""
    wordpress, real, watch = pair.wordpress, pair.real, Watch(pair)
    wordpress.canonical = False
    await watch.compare()
    new, newest = wordpress.add("Post 1001"), real.add("Post 1001")
    assert await watch.compare() == [True, True]
    wordpress.back_date("Post 1002", days=365 * 5)
    real.add("Post 1002", date="2019-06-04 10:00:00")
    assert await watch.compare() == [False, False]
    wordpress.delete(wordpress.posts[3])
    real.delete(real.ids()[3])
    assert await watch.compare() == [False, False]
    wordpress.edit(wordpress.posts[7])
    real.edit(real.ids()[7])
    assert await watch.compare() == [True, True]
    post, number = wordpress.schedule("Post 1003"), real.schedule("Post 1003")
    assert post.id == number == 1
    assert await watch.compare() == [False, False]
    wordpress.go_live(post)
    real.go_live(number)
    assert await watch.compare() == [True, True]
    wordpress.delete(post, new)  # what is newest: the validators move back
    real.delete(number, newest)
    assert await watch.compare() == [True, True]


@pytest.mark.sample
async def test_equal_dates_hide_posts(pair: Pair) -> None:
    """After a bulk edit the pages by date of change repeat posts in both, and lack others."""
    wordpress, real = pair.wordpress, pair.real
    wordpress.canonical = False
    wordpress.bulk_edit()
    real.bulk_edit([number for number in real.ids() if number % 3])
    for visitor in (pair.simulated, pair.visited):
        seen: list[int] = []
        for page in range(1, 31):
            seen += await visitor.posts(f"/feed/?orderby=modified&paged={page}")
        assert len(set(seen)) < len(seen) == 300


async def test_pages_have_the_size_that_the_site_chose(pair: Pair) -> None:
    """REST counts pages of its own."""
    pair.real.php("update_option('posts_per_rss', 25);")
    pair.wordpress.per_feed = 25
    for target in ("/feed/?paged=12", "/feed/?paged=13", "/wp-json/wp/v2/posts?per_page=10"):
        assert await pair.simulated.facts(target) == await pair.by_name.facts(target)


async def test_a_real_one_stands_behind_a_front(origin: Origin, real_wordpress: RealWordPress) -> None:
    """It bears the origin's address, its requests are recorded, and the hook changes it in between."""
    front = Through(origin, real_wordpress.url, rest_status=401)
    front.on_request = lambda number, request: real_wordpress.add("Post 7") if number == 2 else None
    async with aiohttp.ClientSession() as session:
        visitor = Visitor(session, front.url, "Some Blog")
        before, after = [await visitor.facts("/feed/") for _ in range(2)]
        assert before["link"] == '<{site}/wp-json/>; rel="https://api.w.org/"'
        assert (before["posts"][0], after["posts"][:2]) == (300, [7, 300])
        assert (await visitor.facts("/wp-json/wp/v2/posts"))["status"] == 401
    assert [request.target for request in origin.requests] == ["/feed/", "/feed/", "/wp-json/wp/v2/posts"]


RUNS = """
import sys, time
from pathlib import Path
from tests.publishers.real_wordpress import running_wordpress
with running_wordpress(Path(sys.argv[1]), posts=1):
    print("ready", flush=True)
    time.sleep(60)
"""


async def test_nothing_runs_on_when_the_tests_are_killed(tmp_path: Path) -> None:
    """After SIGKILL nobody is left to end the services; they end themselves."""
    if lack := what_lacks():
        pytest.skip(lack)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        RUNS,
        str(tmp_path),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ".:proxy"},
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    assert running(tmp_path)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    async with asyncio.timeout(300):
        while running(tmp_path):
            await asyncio.sleep(0.1)


def running(folder: Path) -> list[str]:
    """The processes with a folder in their command or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue  # it has ended, or is another user's
        if os.fsencode(folder) in told and int(process.name) != os.getpid():
            found.append(process.name)
    return found
