"""Requests for publishers' pages (H1, H8): at an interval, and only if robots.txt permits."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.answers import Document, Redirect
from tests.fetchers import Names, opening
from tests.listing import LISTS, look_again, looked
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, StartProxy, a_config, running

DAY = 86400.0
INTERVAL_SECONDS = 0.4


@pytest.fixture
async def looking(start: StartProxy) -> Proxy:
    return await start(history=LISTS)


@pytest.fixture
def blog(origin: Origin) -> ArchivePage:
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    return blog


def robots(text: str) -> Document:
    return Document(body=text.encode(), headers=(("Content-Type", "text/plain"),))


async def test_two_requests_are_never_closer_than_the_interval(
    start: StartProxy, origin: Origin, blog: ArchivePage
) -> None:
    """H1: including redirects, and looks for two feeds of one site."""
    proxy = await start(history={**LISTS, "list_interval_seconds": INTERVAL_SECONDS})
    feed = blog._feed(blog.newest_first[:5])  # noqa: SLF001 - as blog.publish makes it
    origin.publish("/feed2", feed, content_type="application/xml")
    origin.redirect("/", "/home")
    origin.redirect("/home", "/home/")
    origin.answer(
        "/home/", Document(body=b'<a href="/archive/">Archive</a>', headers=(("Content-Type", "text/html"),))
    )
    for path in ("/feed", "/feed2"):
        await proxy.get(origin.url(path))
    await looked(proxy, 2)
    at = [each.at for each in origin.requests if not each.target.startswith("/feed")]
    assert len(at) == 1 + 2 * 5, "robots.txt once, and for each feed the home page, a list and a sitemap"
    assert min(later - earlier for earlier, later in pairwise(at)) >= 0.95 * INTERVAL_SECONDS


async def test_a_site_that_takes_long_holds_up_no_other(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """H1: a feed requested meanwhile is looked at at once."""
    async with Origin("127.0.0.2") as other:
        ArchivePage(other, posts=30).publish()
        with origin.held("/archive/") as gate:
            await looking.get(origin.url("/feed"))
            await gate.reached()
            await looking.get(other.url("/feed"))
            await looked(looking)
            assert (await looking.get(other.url("/feed"))).state == "listed"
            assert (await looking.get(origin.url("/feed"))).state == "remembered"


async def test_robots_txt_counts_where_a_redirect_leads(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """H1: on this host, and on another of the site, by that host's own file."""
    async with Origin() as other:
        ArchivePage(other, posts=30).publish()
        origin.answer("/robots.txt", robots("User-agent: *\nDisallow: /private/\n"))
        other.answer("/robots.txt", robots("User-agent: *\nDisallow: /posts/\n"))
        origin.redirect("/archive/", "/private/")
        origin.redirect("/archives/", other.url("/archives/"))
        origin.redirect("/posts/", other.url("/posts/"))
        await looking.get(origin.url("/feed"))
        await looked(looking)
        assert origin.counts()["/archive/"] == origin.counts()["/posts/"] == 1
        assert "/private/" not in origin.counts()
        assert other.counts() == {"/robots.txt": 1, "/archives/": 1}


async def test_redirects_from_host_to_host_come_to_an_end(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """H1, H9: each hop counts, despite requests for robots.txt in between."""
    async with Origin() as other:
        origin.answer("/archive/", Redirect(other.url("/archive/")))
        other.answer("/archive/", Redirect(origin.url("/archive/")))
        await looking.get(origin.url("/feed"))
        await looked(looking)
        assert max(origin.counts()["/archive/"], other.counts()["/archive/"]) <= 6


async def test_a_feed_that_is_another_at_each_refresh_has_one_look_a_day(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """H8: something slips by each time."""
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    origin.forget_requests()
    for _ in range(4):
        blog.posts += 10
        blog.publish()
        looking.service.lists.wake()
        await looking.refreshed(url)
    assert set(origin.counts()) == {"/feed"}
    looking.clock.advance(DAY)
    await look_again(looking, url)
    assert origin.counts()["/archive/"] == 1
    assert (await looking.get(url)).body.count(b"<item>") == blog.posts


@pytest.mark.parametrize(("denied", "state"), [("www.site.example", "remembered"), ("x.example", "listed")])
async def test_pages_at_a_host_that_is_denied_are_not_asked_for(
    tmp_path: Path, origin: Origin, blog: ArchivePage, denied: str, state: str
) -> None:
    """H1: though the feed is at another host of its site."""
    table = dict.fromkeys(("feeds.site.example", "www.site.example"), ("127.0.0.1",))
    feed, www = (origin.url("/").replace("127.0.0.1", name) for name in table)
    body = blog._feed(blog.newest_first[:5])  # noqa: SLF001 - as blog.publish makes it
    body = body.replace(origin.url("/").encode(), www.encode())
    origin.publish("/feed", body, content_type="application/xml")
    config = a_config(tmp_path, history={**LISTS, "list_deny_hosts": (denied,)})
    async with running(config, open_fetcher=opening(resolver=Names(table))) as proxy:
        url = f"{feed}feed"
        await proxy.get(url)
        await looked(proxy)
        assert (await proxy.get(url)).state == state
    assert (set(origin.counts()) == {"/feed"}) == (state == "remembered")
