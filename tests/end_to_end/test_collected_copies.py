"""FeedBurner's copies and the history at their source, through the whole proxy (R24, R26 to R32)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.answers import Redirect, Status
from tests.feeds import own_ids
from tests.nameless import titles
from tests.origin import Origin
from tests.publishers.feedburner import FeedBurner
from tests.publishers.wordpress import WordPress
from tests.running import Clock, Proxy, Reply, a_config, running

DAY = 86_400.0
HOUR = 3600.0


@pytest.fixture
async def elsewhere() -> AsyncIterator[Origin]:
    async with Origin("127.0.0.2") as origin:
        yield origin


async def later(proxy: Proxy, url: str, seconds: float) -> Reply:
    proxy.clock.advance(seconds)
    await proxy.get(url)
    await proxy.settled()
    return await proxy.whole(url)


async def test_the_history_comes_from_the_source(proxy: Proxy, origin: Origin, elsewhere: Origin) -> None:
    """R28: the copy gives the document alone; R30: also later."""
    wordpress = WordPress(origin, posts=120)
    copy = FeedBurner(elsewhere, wordpress, "/feed/")
    await copy.poll()
    origin.forget_requests()
    reply = await proxy.whole(copy.url)
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) == wordpress.identities()
    assert [request.target for request in elsewhere.requests] == ["/some"]
    assert len(origin.requests) <= 1 + 12 + 4
    assert (await proxy.status(copy.url))["collection"]["adapter"] == "feedburner-wordpress"
    for _ in range(25):
        wordpress.add()
    await copy.poll()
    reply = await later(proxy, copy.url, 2 * HOUR)
    assert (reply.state, set(own_ids(reply.body))) == ("collected", wordpress.identities())


async def test_a_refresh_without_news_asks_the_copy_alone(
    proxy: Proxy, origin: Origin, elsewhere: Origin
) -> None:
    """R30: for a day; then the source is asked too."""
    copy = FeedBurner(elsewhere, WordPress(origin, posts=30), "/feed/")
    await proxy.whole(copy.url)
    origin.forget_requests()
    await later(proxy, copy.url, 2 * HOUR)
    assert origin.requests == []
    assert (await later(proxy, copy.url, DAY)).state == "collected"
    assert 1 <= len(origin.requests) <= 5


@pytest.mark.parametrize("change", ["add", "delete", "edit"])
async def test_what_changes_in_the_middle_loses_nothing(
    proxy: Proxy, origin: Origin, elsewhere: Origin, change: str
) -> None:
    """R28: the same as for the source itself."""
    wordpress = WordPress(origin, posts=120)
    copy = FeedBurner(elsewhere, wordpress, "/feed/")

    def on_request(number: int, _request: object) -> None:
        if number == 9:
            getattr(wordpress, change)(*([] if change == "add" else [wordpress.posts[60]]))

    wordpress.on_request = on_request
    reply = await proxy.whole(copy.url)
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) >= wordpress.identities()


async def test_a_source_that_has_moved_with_its_posts_is_the_source(
    proxy: Proxy, origin: Origin, elsewhere: Origin
) -> None:
    """R27, R36: FeedBurner has not seen the move yet."""
    copy = FeedBurner(elsewhere, WordPress(origin, posts=120), "/feed/")
    await copy.poll()
    origin.redirect("/feed/", elsewhere.url("/feed/"))
    WordPress(elsewhere, posts=120)
    reply = await proxy.whole(copy.url)
    assert reply.state == "collected"
    assert len(titles(reply.body)) == len(set(titles(reply.body))) == 120


@pytest.mark.parametrize(
    ("kind", "requests"),
    [("another link", 1), ("a category", 1), ("leads back", 1), ("nothing there", 2), ("another format", 2)],
)
async def test_a_source_that_is_not_confirmed_is_left_alone(
    proxy: Proxy, origin: Origin, elsewhere: Origin, kind: str, requests: int
) -> None:
    """R24, R26, R27: another channel link, other entries, the copy itself, nothing, another format."""
    wordpress = WordPress(origin, posts=120)
    copy = FeedBurner(elsewhere, wordpress, "/category/news/feed/" if kind == "a category" else "/feed/")
    await copy.poll()
    if kind == "another link":
        origin.redirect("/feed/", elsewhere.url("/feed/"))
        for post in WordPress(elsewhere, posts=120).blog.everything:
            post.title, post.published = f"Another {post.title}", post.published + 60
    elif kind == "leads back":
        origin.answer("/feed/", Redirect(copy.url))
    elif kind == "nothing there":
        origin.answer("/feed/", Status(404))
        origin.answer("/", Status(404))
    elif kind == "another format":
        wordpress.default_feed = "atom"
    origin.forget_requests()
    reply = await proxy.whole(copy.url)
    assert reply.state == "remembered"
    assert set(own_ids(reply.body)) == copy.identities()
    assert len(origin.requests) == requests
    status = await proxy.status(copy.url)
    assert [note["code"] for note in status["notes"]] == ["HistoryNotOffered"]
    await later(proxy, copy.url, DAY / 50)
    assert len(origin.requests) == requests


async def test_a_source_that_becomes_another_feed_adds_nothing(
    proxy: Proxy, origin: Origin, elsewhere: Origin
) -> None:
    """R27, R31: collected entries stay, and the pauses grow."""
    copy = FeedBurner(elsewhere, WordPress(origin, posts=40), "/feed/")
    before = set(own_ids((await proxy.whole(copy.url)).body))
    another = WordPress(origin, posts=30)
    another.delete(*another.posts)
    for _ in range(30):
        another.add()
    origin.forget_requests()
    for _ in range(4):
        reply = await later(proxy, copy.url, DAY + 1)
        assert (reply.state, set(own_ids(reply.body))) == ("partial", before)
    assert len(origin.requests) <= 4


async def test_a_copy_that_names_another_publisher_each_time_gets_no_more_tries(
    proxy: Proxy, origin: Origin, elsewhere: Origin
) -> None:
    """R27: one try of a source a week."""
    wordpress = WordPress(origin, posts=30)
    copy = FeedBurner(elsewhere, wordpress, "/feed/")
    await copy.poll()
    wordpress.refusal = 404
    await proxy.whole(copy.url)
    origin.forget_requests()
    for generator in (b"Blogger", b"https://wordpress.org/?v=6.1", b"Blogger"):
        copy.say_generator(generator)
        assert (await later(proxy, copy.url, 2 * HOUR)).state == "remembered"
    assert origin.requests == []
    await later(proxy, copy.url, 7 * DAY)
    assert 1 <= len(origin.requests) <= 2


async def test_a_source_that_is_denied_is_not_asked(
    tmp_path: Path, origin: Origin, elsewhere: Origin
) -> None:
    """R26: `history.collect_deny_hosts` applies to sources too."""
    copy = FeedBurner(elsewhere, WordPress(origin, posts=120), "/feed/")
    await copy.poll()
    origin.forget_requests()
    async with running(a_config(tmp_path, history={"collect_deny_hosts": ("127.0.0.1",)})) as proxy:
        assert (await proxy.whole(copy.url)).state == "remembered"
    assert origin.requests == []


async def test_a_source_that_wants_a_pause_gives_other_copies_none(
    tmp_path: Path, origin: Origin, elsewhere: Origin
) -> None:
    """R32: the proxy pauses the source's host and not FeedBurner's."""
    wordpress, clock = WordPress(origin, posts=120), Clock()
    copy = FeedBurner(elsewhere, wordpress, "/feed/")
    await copy.poll()
    wordpress.refusal = 429
    async with Origin("127.0.0.3") as another, running(a_config(tmp_path), clock) as proxy:
        assert (await proxy.whole(copy.url)).state == "remembered"
        other = FeedBurner(elsewhere, WordPress(another, posts=120), "/feed/", name="other")
        assert (await proxy.whole(other.url)).state == "collected"
        wordpress.refusal = None
        origin.forget_requests()
        clock.advance(HOUR / 2)
        await proxy.refreshed(copy.url)
        assert origin.requests == []
        clock.advance(HOUR)
        await proxy.refreshed(copy.url)
        assert (await proxy.whole(copy.url)).state == "collected"
