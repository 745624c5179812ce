"""Rows 131 to 136 of docs/faults.md: pages that would cost much, or make a feed show entries that are no
posts."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable

import pytest

from tests.answers import Answer, Computed, Document, Redirect, Request, Status
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, StartProxy
from wholefeed.web.keys import COUNTS

PAGES = 12
MOST_REQUESTS = PAGES + 9


@pytest.fixture
async def looking(start: StartProxy) -> Proxy:
    return await start(history={"list": "auto", "list_interval_seconds": 0.1, "list_pages": PAGES})


@pytest.fixture
def blog(origin: Origin) -> ArchivePage:
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    origin.answer("/robots.txt", Status(404))
    return blog


def html(body: str) -> Document:
    headers = (("Content-Type", "text/html; charset=utf-8"),)
    return Document(body=f"<!doctype html><body>{body}".encode(), headers=headers)


async def after_a_look(proxy: Proxy, origin: Origin) -> tuple[str, int, float]:
    url = origin.url("/feed")
    began = time.monotonic()
    assert (await proxy.get(url)).state == "remembered"
    async with asyncio.timeout(300):
        while not sum(proxy.app[COUNTS].looks.values()):
            await asyncio.sleep(0.02)
    await proxy.settled()
    seconds = time.monotonic() - began
    reply = await proxy.get(url)
    counts = origin.counts()
    assert sum(counts.values()) - counts["/feed"] <= MOST_REQUESTS, counts
    return reply.state, reply.body.count(b"<item>"), seconds


def rows(numbers: range) -> str:
    return "".join(f'<li><a href="/2018/made-{n}/">Made {n}</a></li>' for n in numbers)


@pytest.mark.fault("132")
async def test_a_list_without_end_is_read_as_far_as_it_may_be(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """Row 132, H4: each page links another one; the feed is partial, with the reason."""
    posts = "".join(f'<li><a href="{each.path}">{each.number}</a></li>' for each in blog.newest_first)

    def page(request: Request) -> Answer:
        number = int(request.target.rstrip("/").rpartition("/")[2])
        listed = rows(range(1000 - 20 * number, 980 - 20 * number, -1))
        return html(f'<ul>{listed}</ul><a rel="next" href="/archive/page/{number + 1}/">Older</a>')

    origin.answer("/archive/", html(f'<ul>{posts}</ul><a rel="next" href="/archive/page/2/">Older</a>'))
    origin.answer_below("/archive/page/", Computed(page))
    state, _, _ = await after_a_look(looking, origin)
    assert state == "partial"
    missing = (await looking.status(origin.url("/feed")))["missing"]
    assert [each["reason"] for each in missing] == ["limit"]


@pytest.mark.fault("133")
@pytest.mark.parametrize(
    "body",
    [
        "".join(f'<a href="/2018/x-{n}/">{n}</a>' for n in range(1_000_000)),
        "<div>" * 500_000 + '<a href="/2018/x/">x</a>',
        "<table>" * 50_000 + "<a href=/2018/x/>" * 50_000,
        '<a href="' + "/2018/" * 400_000 + '">x</a>',
        "\0\xff" * 500_000,
        f"<ul>{rows(range(200_000))}</ul>",
    ],
    ids=["a million links", "deep", "tables", "a long link", "no text", "a long list"],
)
async def test_a_page_that_takes_much_to_read_holds_nobody_up(
    looking: Proxy, origin: Origin, blog: ArchivePage, body: str
) -> None:
    """Row 133, H9: the proxy answers others meanwhile."""
    origin.answer("/archive/", html(body))
    answered = 0

    async def ask_on() -> None:
        nonlocal answered
        while True:
            answered += (await looking.ask("GET", "/healthz")).status == 200
            await asyncio.sleep(0.01)

    asking = asyncio.create_task(ask_on())
    state, entries, seconds = await after_a_look(looking, origin)
    asking.cancel()
    assert (state, entries) == ("remembered", 5)
    assert answered >= seconds, "one answer a second at least"


@pytest.mark.fault("134")
@pytest.mark.parametrize("same", ["front page", "list of posts", "list of others"])
async def test_a_site_that_answers_every_path_lists_nothing(
    looking: Proxy, origin: Origin, blog: ArchivePage, same: str
) -> None:
    """Row 134, H4: with one page for all; a page judged to be no list stays so."""
    posts = "".join(f'<li><a href="{each.path}">{each.title}</a></li>' for each in blog.newest_first[:5])
    said = {
        "front page": f'<a href="/archive/">Archive</a><aside>{posts}</aside>',
        "list of posts": f'<a href="/archive/">Archive</a><ul>{posts}</ul><a href="?page=2">Older</a>',
        "list of others": f'<a href="/archive/">Archive</a><ul>{rows(range(50))}</ul>',
    }[same]
    for path in blog.pages:
        origin.answer(path, html(said))
    origin.answer("/", html(said))
    origin.answer_below("/", html(said))
    state, entries, _ = await after_a_look(looking, origin)
    assert (state, entries) == ("remembered", 5)


@pytest.mark.fault("135")
async def test_a_list_that_is_another_at_each_look_adds_no_end_of_entries(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """Row 135, H8: it is read once a month, however it changes; the feed's own entries stay."""
    looks = itertools.count()
    posts = "".join(f'<li><a href="{each.path}">{each.title}</a></li>' for each in blog.newest_first)

    def page(_: Request) -> Answer:
        at = next(looks) * 50
        return html(f'<ul class="posts">{posts}{rows(range(at, at + 50))}</ul>')

    origin.answer("/archive/", Computed(page))
    await after_a_look(looking, origin)
    first = await looking.get(origin.url("/feed"))
    origin.forget_requests()
    for day in range(1, 29):
        looking.clock.advance(86400.0)
        looking.service.lists.wake()
        if day % 7 == 0:
            await looking.refreshed(origin.url("/feed"))
    await asyncio.sleep(0.2)
    again = await looking.get(origin.url("/feed"))
    assert again.reconstruction == first.reconstruction
    assert set(origin.counts()) == {"/feed"}


@pytest.mark.fault("136")
@pytest.mark.parametrize(
    "where",
    [
        lambda origin, other: other.url("/archive/"),
        lambda origin, other: "file:///etc/passwd",
        lambda origin, other: "http://10.0.0.1/",
        lambda origin, other: origin.url("/archive/"),
    ],
    ids=["another site", "a file", "a private network", "itself"],
)
async def test_pages_that_lead_away_are_not_followed(
    looking: Proxy, origin: Origin, blog: ArchivePage, where: Callable[[Origin, Origin], str]
) -> None:
    """Row 136, R24: neither by links nor by redirects."""
    async with Origin("127.0.0.2") as other:
        target = where(origin, other)
        origin.answer("/", html(f'<a href="{target}">Archive</a><a href="/archive/">Archive</a>'))
        origin.answer("/archive/", Redirect(target))
        state, entries, _ = await after_a_look(looking, origin)
        assert (state, entries) == ("remembered", 5)
        assert other.requests == []
