"""Limits of collecting, for the publisher's sake: few requests at once, pauses, an end (rules R18, R31,
R32)."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import aiohttp
import pytest

from tests.answers import Answer, Computed, Document, Redirect, Request, Status
from tests.feeds import an_item, own_ids, rss
from tests.origin import Origin
from tests.processes import serving
from tests.publishers.collected import ALL, DAY, Feed, pages_asked
from tests.publishers.wordpress import WordPress
from tests.running import Proxy, a_config, running
from tests.sqlite_faults import check_database

API = ("Link", '<{}>; rel="https://api.w.org/"')


HOUR = 3600.0


async def test_at_most_two_requests_at_once(tmp_path: Path, origin: Origin) -> None:
    """R32: for any `concurrency_per_host`, for several feeds of the site at once."""
    blog = WordPress(origin, posts=150)
    blog.latency_seconds = 0.01
    names = ("", "category/news", "author/admin", "tag/long")
    async with running(a_config(tmp_path, fetch={"concurrency_per_host": 16})) as proxy:
        for name in names:
            await proxy.begun(blog.feed_url("rss2", name))
        for name in names:
            assert (await proxy.whole(blog.feed_url("rss2", name))).state == "collected"
    assert origin.peak_requests == 2


def refusing(
    blog: WordPress, status: int, *, since: int, until: int = 1000, retry_after: int | None = None
) -> None:
    def refuse(number: int, request: Request) -> None:
        is_page = "?" in request.target and "wp-json" not in request.target
        blog.refusal = status if since <= number < until and is_page else None
        blog.retry_after_seconds = retry_after

    blog.on_request = refuse


async def test_403_pauses_the_collecting_of_a_feed_for_a_day(proxy: Proxy, origin: Origin) -> None:
    """R32: collected entries stay, partial, meanwhile."""
    blog = WordPress(origin, posts=45)
    refusing(blog, 403, since=5)
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "partial"
    origin.forget_requests()
    for _ in range(3):
        assert (await feed.later(6 * 3600)).state == "partial"
    assert pages_asked(origin) == []
    blog.on_request, blog.refusal = None, None
    assert feed.shown(await feed.later(DAY)) == ALL


@pytest.mark.fault("115")
@pytest.mark.parametrize("status", [403, 429])
async def test_a_pause_that_a_wrong_clock_has_noted_does_not_hold(
    proxy: Proxy, origin: Origin, status: int
) -> None:
    """docs/faults.md row 115: neither for a feed nor for its host."""
    blog = WordPress(origin, posts=45)
    refusing(blog, status, since=5)
    feed = Feed(proxy, blog)
    proxy.clock.advance(20 * 3600)
    assert (await feed.whole()).state == "partial"
    proxy.clock.advance(-20 * 3600)
    blog.on_request, blog.refusal = None, None
    await proxy.get(feed.url)
    await proxy.settled()
    assert feed.shown(await feed.whole()) == ALL


async def test_403_for_every_page_makes_a_remembered_feed(proxy: Proxy, origin: Origin) -> None:
    """R27, R32: a firewall passes only the feed itself."""
    blog = WordPress(origin, posts=45)
    refusing(blog, 403, since=1)
    feed = Feed(proxy, blog)
    reply = await feed.whole()
    assert (reply.state, len(own_ids(reply.body))) == ("remembered", 10)
    assert len(pages_asked(origin)) == 2


@pytest.mark.parametrize("status", [403, 406])
async def test_a_firewall_that_forbids_the_order_alone_leaves_the_pages(
    proxy: Proxy, origin: Origin, status: int
) -> None:
    """R27, R28: some firewalls take `orderby` for an attack."""
    blog = WordPress(origin, posts=45)

    def refuse(_number: int, request: Request) -> None:
        blog.refusal = status if "orderby" in request.target else None

    blog.on_request = refuse
    feed = Feed(proxy, blog)
    assert feed.shown(await feed.whole()) == ALL
    assert len([each for each in pages_asked(origin) if "orderby" in each]) == 1
    blog.add()
    assert feed.shown(await feed.later(DAY)) == ALL
    assert len([each for each in pages_asked(origin) if "orderby" in each]) == 1


@pytest.mark.parametrize("answer", [Status(503), Status(429), Document(body=b"<html>No such page</html>")])
@pytest.mark.sample("answer1")
async def test_pages_that_never_come_are_asked_for_less_and_less(
    proxy: Proxy, origin: Origin, answer: Answer
) -> None:
    """R27: a host only claims to be a WordPress, or always fails at pages; in the end one request a week."""
    url = a_hostile_site(origin, lambda _number, request: answer if "?" in request.target else items(60))
    assert (await proxy.whole(url)).state == "remembered"
    for _ in range(8 * 14):
        proxy.clock.advance(3 * 3600)
        await proxy.get(url)
        await proxy.settled()
    assert len(pages_asked(origin)) <= 2 * 10


async def test_validators_that_always_change_are_worth_a_look_an_hour(proxy: Proxy, origin: Origin) -> None:
    """R30: however often readers ask."""
    answers = itertools.count()

    def page(number: int, request: Request) -> Answer:
        if "order=ASC" in request.target:
            body = rss(*(an_item(f"{each}", each) for each in range(10 * number - 9, 10 * number + 1)))
        else:
            body = items(60 - 10 * (number - 1))
        status = 200 if number <= 6 else 404
        headers = (("Content-Type", "application/rss+xml"), (API[0], API[1].format(origin.url("/wp-json/"))))
        return Document(body=body, status=status, etag=f'"{next(answers)}"', headers=headers)

    url = a_hostile_site(origin, page)
    assert (await proxy.whole(url)).state == "collected"
    origin.forget_requests()
    for _ in range(48):
        proxy.clock.advance(900)
        await proxy.get(url, wait="5")
        await proxy.settled()
    assert 12 <= len(pages_asked(origin)) <= 2 * 12


async def test_429_with_retry_after_pauses_the_host(tmp_path: Path, origin: Origin) -> None:
    """R32: even after a restart."""
    blog = WordPress(origin, posts=45)
    refusing(blog, 429, since=5, retry_after=7200)
    async with running(a_config(tmp_path)) as proxy:
        feed = Feed(proxy, blog)
        assert (await feed.whole()).state == "partial"
        blog.on_request, blog.refusal = None, None
        origin.forget_requests()
        await feed.later(3600)
        assert pages_asked(origin) == []
    async with running(a_config(tmp_path), proxy.clock) as proxy:
        feed = Feed(proxy, blog)
        await feed.later(1800)
        assert pages_asked(origin) == []
        assert feed.shown(await feed.later(6 * 3600)) == ALL


@pytest.mark.parametrize("later", [1200, 3000])
async def test_what_is_not_asked_for_in_a_pause_is_as_it_was(
    proxy: Proxy, origin: Origin, later: int
) -> None:
    """R14, R32: 429 pauses for an hour; /status still shows the last, the next and the number of attempts."""
    blog = WordPress(origin, posts=45)
    refusing(blog, 429, since=5)
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "partial"
    first = proxy.clock()
    before = (await proxy.status(blog.feed_url()))["missing"]
    assert [(each["status"], each["attempts"]) for each in before] == [(429, 1)] * len(before) != []
    due = [datetime.fromisoformat(each["next_attempt"]).timestamp() for each in before]
    assert min(due) > first + HOUR - 60
    origin.forget_requests()
    assert (await feed.later(later)).state == "partial"
    assert (await proxy.status(blog.feed_url()))["missing"] == before
    assert pages_asked(origin) == []


async def test_a_pause_that_another_feed_was_given_counts_as_no_attempt(proxy: Proxy, origin: Origin) -> None:
    """R14, R32: missing documents keep their attempts."""
    blog = WordPress(origin, posts=95)
    refusing(blog, 503, since=6, until=7)
    assert (await Feed(proxy, blog).whole()).state == "partial"
    before = (await proxy.status(blog.feed_url()))["missing"]
    refusing(blog, 429, since=0)
    await proxy.whole(blog.feed_url("rss2", "category/news"))
    origin.forget_requests()
    proxy.clock.advance(1200)
    assert (await proxy.refreshed(blog.feed_url())).state == "partial"
    assert (await proxy.status(blog.feed_url()))["missing"] == before != []
    assert pages_asked(origin) == []


async def test_503_in_the_middle_is_partial_and_heals(tmp_path: Path, origin: Origin) -> None:
    """R31: only the last page and neighbours of the gap are fetched again."""
    blog = WordPress(origin, posts=95)
    refusing(blog, 503, since=6, until=7)
    async with running(a_config(tmp_path)) as proxy:
        feed = Feed(proxy, blog)
        assert (await feed.whole()).state == "partial"
    had = set(pages_asked(origin))
    origin.forget_requests()
    async with running(a_config(tmp_path), proxy.clock) as proxy:
        feed = Feed(proxy, blog)
        assert feed.shown(await feed.later(2 * 3600)) == ALL
    assert len(set(pages_asked(origin)) & had) <= 4


@pytest.mark.parametrize("number", [3, 4, 6, 9, 12])
async def test_a_walk_that_was_stopped_goes_on_where_it_was(
    tmp_path: Path, origin: Origin, number: int
) -> None:
    """R14, R30: only the last stored page is fetched again."""
    blog = WordPress(origin, posts=95)
    async with running(a_config(tmp_path)) as proxy:
        held = asyncio.Event()

        async def hold(count: int, _request: object) -> None:
            if count >= number:
                held.set()
                await asyncio.Event().wait()

        blog.on_request = hold
        await proxy.get(blog.feed_url(), wait="0.1")
        await held.wait()
        rows = (await proxy.status(blog.feed_url()))["chain"]
    had = {each["url"].partition("?")[2] for each in rows if each["role"] == "page"}
    blog.on_request = None
    origin.forget_requests()
    async with running(a_config(tmp_path)) as proxy:
        feed = Feed(proxy, blog)
        assert feed.shown(await feed.whole()) == ALL
    last = "orderby=ID&order=ASC&paged=10"
    assert set(pages_asked(origin)) & (had - {last}) == set()


async def test_a_process_that_is_killed_in_the_middle_goes_on_where_it_was(
    tmp_path: Path, origin: Origin
) -> None:
    """R14: killed over and over, until the feed is whole."""
    blog = WordPress(origin, posts=95)
    blog.latency_seconds = 0.02
    for pages in (2, 5, 8):
        origin.forget_requests()
        async with serving(tmp_path) as served:
            asking = asyncio.create_task(served.get(blog.feed_url()))
            async with asyncio.timeout(300):
                while len(pages_asked(origin)) < pages - 1 and not asking.done():
                    await asyncio.sleep(0.002)
            served.process.kill()
            await served.ended()
            with suppress(aiohttp.ClientError):
                await asking
        check_database(tmp_path / "wholefeed.db")
    async with serving(tmp_path) as served:
        reply = await served.whole(blog.feed_url())
    assert (reply.state, blog.identities() - set(own_ids(reply.body))) == ("collected", set())


async def test_switched_off_nothing_is_asked_and_what_was_collected_stays(
    tmp_path: Path, origin: Origin
) -> None:
    """`history.collect = "off"`, and `collect_deny_hosts`: the pages stay as remembered ones."""
    blog = WordPress(origin, posts=45)
    for history in ({"collect": "off"}, {"collect_deny_hosts": ("127.0.0.1",)}):
        path = tmp_path / next(iter(history))
        path.mkdir()
        async with running(a_config(path, history=history)) as proxy:
            reply = await proxy.whole(blog.feed_url())
            assert (reply.state, len(own_ids(reply.body))) == ("remembered", 10)
        assert pages_asked(origin) == []
        async with running(a_config(path)) as proxy:
            reply = await proxy.refreshed(blog.feed_url())
            reply = await proxy.whole(blog.feed_url())
            assert (reply.state, len(own_ids(reply.body))) == ("collected", 45)
        origin.forget_requests()
        async with running(a_config(path, history=history)) as proxy:
            blog.add()
            await proxy.refreshed(blog.feed_url())
            reply = await proxy.whole(blog.feed_url())
            assert (reply.state, len(set(own_ids(reply.body)))) == ("remembered", len(blog.posts))
        assert pages_asked(origin) == []
        blog.delete(blog.posts[-1])


# ---- Publishers that mean no good


def items(first: int, count: int = 10, text: str = "") -> bytes:
    return rss(*(an_item(f"{number}", number, text) for number in range(first, first - count, -1)))


def a_hostile_site(origin: Origin, choose: object) -> str:
    def answer(request: Request) -> Answer:
        query = request.target.partition("?")[2]
        number = int(query.rpartition("paged=")[2] or 1) if "paged=" in query else 1
        found = choose(number, request)  # type: ignore[operator]
        if isinstance(found, bytes):
            link = (API[0], API[1].format(origin.url("/wp-json/")))
            return Document(body=found, headers=(("Content-Type", "application/rss+xml"), link))
        assert not isinstance(found, str)
        return found  # type: ignore[no-any-return]

    origin.answer("/feed/", Computed(answer))
    return origin.url("/feed/")


async def test_thousands_of_pages_that_are_always_new_end_at_a_limit(tmp_path: Path, origin: Origin) -> None:
    """R18: partial, and the proxy serves the entries it has."""
    missing = Status(404)
    url = a_hostile_site(
        origin, lambda number, _request: items(1_000_000 - 10 * number) if number < 60_000 else missing
    )
    async with running(a_config(tmp_path, limits={"documents_per_feed": 30})) as proxy:
        reply = await proxy.whole(url)
        assert reply.state == "partial"
        assert len(origin.requests) <= 30 + 2 * 20  # the last page is searched for up to 65,536


async def test_a_page_for_whatever_number_is_no_history(proxy: Proxy, origin: Origin) -> None:
    """R27: even if each page has other entries, up to the highest number."""
    url = a_hostile_site(origin, lambda number, _request: items(1_000_000 - 10 * number))
    assert (await proxy.whole(url)).state == "remembered"
    assert len(origin.requests) <= 30


async def test_the_same_page_for_every_number_is_no_history(proxy: Proxy, origin: Origin) -> None:
    """R27: HEAD says 200 to everything."""
    url = a_hostile_site(origin, lambda _number, _request: items(100))
    reply = await proxy.whole(url)
    assert (reply.state, len(own_ids(reply.body))) == ("remembered", 10)
    assert len(origin.requests) <= 6


async def test_empty_feeds_beyond_the_end_are_the_end(proxy: Proxy, origin: Origin) -> None:
    """R28: 200 with an empty feed, for any answer to HEAD."""

    def page(number: int, request: Request) -> Answer | bytes:
        if "order=ASC" not in request.target:
            return items(60) if number <= 1 else rss()
        return rss(*(an_item(f"{each}", each) for each in range(10 * number - 9, min(10 * number, 60) + 1)))

    url = a_hostile_site(origin, page)
    reply = await proxy.whole(url)
    assert (reply.state, len(own_ids(reply.body))) == ("collected", 60)
    assert len(origin.requests) <= 50


@pytest.mark.parametrize("number", [2, 3])
async def test_a_page_that_leads_to_another_site_is_missing(
    proxy: Proxy, origin: Origin, number: int
) -> None:
    """R24, R27: no entry of the other site comes into the feed."""
    async with Origin("127.0.0.2") as other:
        foreign = items(9000).replace(b"site.test", b"other.test")
        other.publish("/feed/", foreign, content_type="application/rss+xml")

        def page(asked: int, request: Request) -> Answer | bytes:
            if "order=ASC" in request.target and asked == number:
                return Redirect(other.url(request.target))
            if "order=ASC" not in request.target:
                return items(60) if asked <= 1 else Status(404)
            if asked > 6:
                return Status(404)
            return rss(*(an_item(f"{each}", each) for each in range(10 * asked - 9, 10 * asked + 1)))

        reply = await proxy.whole(a_hostile_site(origin, page))
    assert reply.state == "partial"
    assert not any(int(each) > 60 for each in own_ids(reply.body))


async def test_pages_that_are_too_large_are_missing(tmp_path: Path, origin: Origin) -> None:
    """R18: three in a row are enough."""

    def page(number: int, request: Request) -> bytes:
        return items(60) if "order" not in request.target else items(6000 - 10 * number, 10, "x" * 300_000)

    url = a_hostile_site(origin, page)
    async with running(a_config(tmp_path, limits={"document_bytes": 1_000_000})) as proxy:
        reply = await proxy.whole(url)
        assert reply.state in ("partial", "remembered")
        assert len(origin.requests) <= 10
