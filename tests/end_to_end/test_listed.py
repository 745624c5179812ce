"""A history in its publisher's pages alone (H1, H5 to H8), as readers see it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import feedparser
import pytest

from tests.answers import Document, Redirect, Status
from tests.listing import LISTS, look_again, looked
from tests.origin import Origin
from tests.postgres import on_both
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, Reply, StartProxy, a_config, running

DAY = 86400.0
in_all_formats = pytest.mark.parametrize("family", ["rss", "atom", "rdf", "json"])


@pytest.fixture
async def looking(start: StartProxy, store_url: str) -> Proxy:
    return await start(history=LISTS, store={"url": store_url})


def links(reply: Reply) -> list[str]:
    return [path for path, _, _ in entries(reply)]


def entries(reply: Reply) -> list[tuple[str, str, str]]:
    if reply.headers["Content-Type"].startswith("application/feed+json"):
        items = json.loads(reply.body)["items"]
        found = [(each["url"], each["title"], each["date_published"][:10]) for each in items]
    else:
        read = feedparser.parse(reply.body)
        days = [each.get("published_parsed") or each["updated_parsed"] for each in read.entries]
        shown = zip(read.entries, days, strict=True)
        found = [(each.link, each.title, time.strftime("%Y-%m-%d", day)) for each, day in shown]
    return [("/" + link.split("/", 3)[3], title, day) for link, title, day in found]


def written(blog: ArchivePage, numbers: Sequence[int] | None = None) -> list[tuple[str, str, str]]:
    posts = [each for each in blog.newest_first if numbers is None or each.number in numbers]
    return [(each.path, each.title, f"{each.day:%Y-%m-%d}") for each in posts]


async def listing_of(proxy: Proxy, url: str) -> dict[str, Any]:
    found: dict[str, Any] = (await proxy.status(url))["listing"]
    return found


@on_both
@in_all_formats
async def test_what_the_archive_page_lists_is_in_the_feed(
    looking: Proxy, origin: Origin, family: str
) -> None:
    """H1, H5, H7: the first answer has the entries seen; then all posts, with titles, dates and links."""
    blog = ArchivePage(origin, posts=30, family=family)
    blog.publish()
    url = origin.url("/feed")
    first = await looking.get(url)
    assert (first.state, links(first)) == ("remembered", [each.path for each in blog.newest_first[:5]])
    await looked(looking)
    reply = await looking.get(url)
    assert reply.state == "listed"
    assert entries(reply) == written(blog)
    assert ";entries=30" in reply.reconstruction
    assert ";missing=0" in reply.reconstruction
    assert ";listed=25" in reply.reconstruction
    assert b"complete" not in reply.body.lower().replace(b"history/1.0", b"")
    counts = origin.counts()
    assert counts["/robots.txt"] == counts["/archive/"] == 1
    assert sum(counts.values()) <= 1 + 1 + 9, counts


@pytest.mark.parametrize("family", ["rss", "atom"])
async def test_a_refresh_of_a_listed_feed_asks_for_the_feed_alone(
    looking: Proxy, origin: Origin, family: str
) -> None:
    """H8: a new post stands in front; a post that left the feed is remembered whole."""
    blog = ArchivePage(origin, posts=30, family=family)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    origin.forget_requests()
    blog.posts = 32
    blog.publish()
    reply = await looking.refreshed(url)
    assert (reply.state, entries(reply)) == ("listed", written(blog))
    assert ";listed=25" in reply.reconstruction
    assert reply.body.count(b"Text ") == 7
    assert origin.counts() == {"/feed": 1}


async def test_pages_of_a_list_are_read_to_its_end(looking: Proxy, origin: Origin) -> None:
    """H4: one at a time, a tenth of a second apart here."""
    blog = ArchivePage(origin, posts=40, per_page=10)
    blog.publish()
    url = origin.url("/feed")
    began = time.monotonic()
    await looking.get(url)
    await looked(looking)
    reply = await looking.get(url)
    assert (reply.state, entries(reply)) == ("listed", written(blog))
    counts = origin.counts()
    assert all(counts[path] == 1 for path in blog.pages)
    assert time.monotonic() - began >= 0.1 * (sum(counts.values()) - 2)


@pytest.mark.parametrize(("posts", "filler"), [(30, ""), (1000, "x" * 60_000)])
async def test_the_publisher_s_own_entry_wins(
    looking: Proxy, origin: Origin, posts: int, filler: str
) -> None:
    """H6: an older post back in the feed replaces the listed one, even across processes."""
    blog = ArchivePage(origin, posts=posts, filler=filler)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    shown, blog.posts = blog.newest_first[:5], 12
    blog.shown = 3
    feed = blog._feed([*shown[:3], *blog.newest_first[:1]])  # noqa: SLF001 - a feed as blog.publish makes it
    origin.publish("/feed", feed, content_type="application/xml")
    reply = await looking.refreshed(url)
    paths = links(reply)
    assert len(paths) == len(set(paths)) == posts
    assert f";listed={posts - 6}" in reply.reconstruction
    assert b"Text 12%b<" % filler.encode() in reply.body


@pytest.mark.parametrize("spelling", ["https", "slash", "index", "utm"])
async def test_one_link_in_two_spellings_is_one_entry(looking: Proxy, origin: Origin, spelling: str) -> None:
    """H6: index.html, a trailing slash, http, parameters of advertisers."""
    blog = ArchivePage(origin, posts=20)
    blog.publish()
    spelled: Callable[[str], str] = {
        "https": lambda link: link.replace("http:", "https:"),
        "slash": lambda link: link.removesuffix("/"),
        "index": lambda link: link + "index.html",
        "utm": lambda link: link + "?utm_source=feed&amp;utm_medium=rss#more",
    }[spelling]
    blog.url = lambda post: spelled(origin.url(post.path))  # type: ignore[method-assign]
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    reply = await looking.get(url)
    assert reply.state == "listed"
    assert len(links(reply)) == 20
    assert ";listed=15" in reply.reconstruction


async def test_a_listed_entry_that_is_imported_is_served_as_it_was_kept(
    looking: Proxy, origin: Origin
) -> None:
    """H6, I1: an import says more than a list."""
    blog = ArchivePage(origin, posts=30, guid=lambda link: link)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    kept = blog._feed(blog.newest_first[10:13])  # noqa: SLF001 - a feed as blog.publish makes it
    reply = await looking.ask("POST", "/import", params={"url": url, "name": "old.xml"}, data=kept)
    assert reply.status == 200, reply.body
    assert json.loads(reply.body)["new"] == 3
    whole = await looking.get(url)
    assert (whole.state, len(links(whole))) == ("listed", 30)
    assert whole.body.count(b"Text ") == 8
    assert ";listed=22" in whole.reconstruction


# When nothing is asked


async def test_nothing_is_asked_where_it_is_off(start: StartProxy, origin: Origin) -> None:
    """H1: `history.list`."""
    proxy = await start(history={"list": "off"})
    await _asks_for_the_feed_alone(proxy, origin)


async def test_nothing_is_asked_of_a_host_that_is_denied(start: StartProxy, origin: Origin) -> None:
    """H1: `history.list_deny_hosts`."""
    proxy = await start(history={**LISTS, "list_deny_hosts": ("127.0.0.1",)})
    await _asks_for_the_feed_alone(proxy, origin)


async def _asks_for_the_feed_alone(proxy: Proxy, origin: Origin, *, posts: int = 30) -> None:
    ArchivePage(origin, posts=posts).publish()
    reply = await proxy.get(origin.url("/feed"))
    await asyncio.sleep(0.3)
    assert (reply.state, origin.counts()) == ("remembered", {"/feed": 1})


async def test_a_feed_of_two_entries_is_left_alone(looking: Proxy, origin: Origin) -> None:
    """H1: two entries do not identify their list."""
    await _asks_for_the_feed_alone(looking, origin, posts=2)


async def test_a_feed_with_a_history_of_its_own_is_left_alone(looking: Proxy, origin: Origin) -> None:
    """H1: only if the feed links nothing."""
    ArchivePage(origin, posts=30, extra="<fh:complete/>").publish()
    reply = await looking.get(origin.url("/feed"))
    await asyncio.sleep(0.3)
    assert (reply.state, origin.counts()) == ("complete", {"/feed": 1})


async def test_robots_txt_is_obeyed(looking: Proxy, origin: Origin) -> None:
    """H1: no request to forbidden paths, not within the month; /status says so."""
    ArchivePage(origin, posts=30).publish()
    rules = Document(body=b"User-agent: *\nDisallow: /\n", headers=(("Content-Type", "text/plain"),))
    origin.answer("/robots.txt", rules)
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    assert (await looking.get(url)).state == "remembered"
    assert origin.counts() == {"/feed": 1, "/robots.txt": 1}
    told = await listing_of(looking, url)
    assert {each["reason"] for each in told["passed_over"]} == {"robots"}
    looking.clock.advance(29 * DAY)
    looking.service.lists.wake()
    await looking.refreshed(url)
    await asyncio.sleep(0.3)
    assert origin.counts() == {"/feed": 2, "/robots.txt": 1}
    origin.answer("/robots.txt", Status(404))
    looking.clock.advance(2 * DAY)
    await look_again(looking, url)
    assert (await looking.get(url)).state == "remembered", "the file counts for a day by another clock"


@pytest.mark.parametrize("status", [403, 429])
async def test_a_publisher_that_refuses_is_left_in_peace(looking: Proxy, origin: Origin, status: int) -> None:
    """H1, R32: for a day, or an hour; entries stay."""
    blog = ArchivePage(origin, posts=40, per_page=10)
    blog.publish()
    origin.fault("/archive/page/3/", Status(status))
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    reply = await looking.get(url)
    assert reply.state == "partial"
    assert set(links(reply)) >= {each.path for each in blog.newest_first[:20]}
    assert "/archive/page/4/" not in origin.counts()
    origin.forget_requests()
    origin.publish("/archive/page/3/", b"")
    blog.publish()
    pause = DAY if status == 403 else 3600.0
    looking.clock.advance(pause - 60)
    looking.service.lists.wake()
    await asyncio.sleep(0.3)
    assert origin.counts() == {}
    looking.clock.advance(120)
    await look_again(looking, url)
    reply = await looking.get(url)
    assert (reply.state, len(links(reply))) == ("listed", 40 + 1), "one entry says that it has healed"
    assert "/archive/page/2/" not in origin.counts()


async def test_a_page_of_the_list_that_cannot_be_had_makes_it_partial(looking: Proxy, origin: Origin) -> None:
    """H7, R14: only that page is tried again, at its time."""
    blog = ArchivePage(origin, posts=40, per_page=10)
    blog.publish()
    origin.fault("/archive/page/4/", Status(503))
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    reply = await looking.get(url)
    assert reply.state == "partial"
    assert ";missing=1" in reply.reconstruction
    assert ";listed=25" in reply.reconstruction
    missing = (await looking.status(url))["missing"]
    assert [each["url"] for each in missing] == [origin.url("/archive/page/4/")]
    blog.publish()
    origin.forget_requests()
    looking.clock.advance(2 * 3600)
    await look_again(looking, url)
    reply = await looking.get(url)
    assert (reply.state, len(links(reply))) == ("listed", 40 + 1), "one entry says that it has healed"
    counts = origin.counts()
    assert counts["/archive/page/4/"] == 1
    assert "/archive/page/2/" not in counts


async def test_pages_elsewhere_are_not_asked_for(looking: Proxy, origin: Origin) -> None:
    """H1, R24: the proxy does not follow a redirect to another site."""
    async with Origin("127.0.0.2") as other:
        blog = ArchivePage(origin, posts=30)
        blog.publish()
        origin.answer("/archive/", Redirect(other.url("/archive/")))
        url = origin.url("/feed")
        await looking.get(url)
        await looked(looking)
        assert (await looking.get(url)).state == "remembered"
        assert other.counts() == {}


# When it is looked again


async def test_it_is_looked_at_again_once_a_month(looking: Proxy, origin: Origin) -> None:
    """H8: for a list with a known top, its first page alone; unknown posts join."""
    blog = ArchivePage(origin, posts=40, per_page=10)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    origin.forget_requests()
    looking.clock.advance(31 * DAY)
    await look_again(looking, url)
    counts = origin.counts()
    assert counts["/archive/"] == 1
    assert "/archive/page/2/" not in counts
    assert "/" not in counts


async def test_it_is_looked_at_again_when_something_slipped_by(looking: Proxy, origin: Origin) -> None:
    """H8: more was published than the feed shows; the list has it, in order of publication."""
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    blog.posts = 42
    blog.publish()
    origin.forget_requests()
    looking.clock.advance(DAY)
    await look_again(looking, url)
    reply = await looking.get(url)
    assert (reply.state, entries(reply)) == ("listed", written(blog))
    assert ";listed=32" in reply.reconstruction
    assert "/" not in origin.counts()


async def test_what_leaves_the_list_stays(looking: Proxy, origin: Origin) -> None:
    """R29: it was published once, and nobody withdrew it."""
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    before = links(await looking.get(url))
    blog.per_page = 20
    blog.publish()
    origin.answer("/archive/page/2/", Status(404))
    looking.clock.advance(31 * DAY)
    await look_again(looking, url)
    assert links(await looking.get(url)) == before


# Restarts, changes of the feed, forgetting


async def test_it_survives_a_restart(tmp_path: Path, origin: Origin) -> None:
    """H7: and nothing is fetched again."""
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    url = origin.url("/feed")
    config = a_config(tmp_path, history=LISTS)
    async with running(config) as proxy:
        await proxy.get(url)
        await looked(proxy)
        before = await proxy.get(url)
    origin.forget_requests()
    async with running(config) as proxy:
        after = await proxy.get(url)
        assert (entries(after), after.reconstruction) == (entries(before), before.reconstruction)
        await asyncio.sleep(0.3)
        assert origin.counts() == {}


async def test_in_a_complete_feed_lists_are_not_served(looking: Proxy, origin: Origin) -> None:
    """H7, R1: until its publisher no longer calls it whole."""
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    blog.extra = "<fh:complete/>"
    blog.publish()
    reply = await looking.refreshed(url)
    assert (reply.state, len(links(reply))) == ("complete", 5)
    assert "listed" not in reply.reconstruction
    blog.extra = ""
    blog.publish()
    reply = await looking.refreshed(url)
    assert (reply.state, len(links(reply))) == ("listed", 30)


async def test_a_feed_in_another_format_is_looked_at_anew(looking: Proxy, origin: Origin) -> None:
    """R23, H7: listed entries are written in the feed's format."""
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    blog.family = "atom"
    blog.publish()
    await look_again(looking, url)
    reply = await looking.get(url)
    assert (reply.state, entries(reply)) == ("listed", written(blog))


async def test_a_feed_that_is_forgotten_meanwhile_stays_so(looking: Proxy, origin: Origin) -> None:
    """H1: the results of the look are dropped, and its requests end."""
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    url = origin.url("/feed")
    with origin.held("/archive/") as gate:
        await looking.get(url)
        await gate.reached()
        assert (await looking.ask("DELETE", "/feed", params={"url": url})).status == 204
        gate.release()
        await looked(looking)
    assert await looking.feeds() == []
    assert origin.counts()["/archive/"] == 1


async def test_two_replicas_ask_for_the_pages_once(tmp_path: Path, postgres_url: str, origin: Origin) -> None:
    """H1: one looks for both, and both serve the result."""
    blog = ArchivePage(origin, posts=40, per_page=10)
    blog.publish()
    url = origin.url("/feed")
    config = a_config(tmp_path, history=LISTS, store={"url": postgres_url})
    async with running(config) as one, running(config) as other:
        await asyncio.gather(one.get(url), other.get(url))
        async with asyncio.timeout(300):
            while (await one.get(url)).state != "listed":
                await asyncio.sleep(0.05)
            while (reply := await other.get(url)).state != "listed":
                await asyncio.sleep(0.05)
    assert entries(reply) == written(blog)
    assert all(origin.counts()[path] == 1 for path in ("/robots.txt", *blog.pages))


async def test_entries_of_lists_are_replayed_too(looking: Proxy, origin: Origin) -> None:
    """P1: a replay begins with the oldest known post."""
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    asked = {"url": url, "replay": "1/day", "from": "2020-01-01T06:00:00+00:00"}
    reply = await looking.ask("GET", "/feed", params=asked, headers={"Accept-Encoding": "identity"})
    assert links(reply) == [each.path for each in blog.newest_first]
