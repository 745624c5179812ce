"""A remembered copy of a collected feed is as old as its document, not as the memory document (R10).

Channels and posts of the blog have no instant of change: only the dates of their documents order two
revisions. By ID a post moves to a page fetched later when one before it is deleted.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.aged import Aged, copied
from tests.feeds import texts
from tests.origin import Origin
from tests.postgres import on_both
from tests.publishers.collected import Feed
from tests.publishers.wordpress import WordPress
from tests.running import Clock, Proxy, StandingClock, a_config, running

pytestmark = on_both

MOVES = 30
"""The first post of the fourth page."""


def an_undated_blog(origin: Origin) -> WordPress:
    blog = WordPress(origin, posts=45)
    blog.dated = False
    return blog


async def moved(proxy: Proxy, blog: WordPress) -> Feed:
    feed = Feed(proxy, blog)
    await feed.whole()
    proxy.clock.advance(3600)
    post = blog.posts[MOVES]
    blog.edit(post, content="Written anew.")
    blog.delete(blog.posts[0])
    assert await revision(proxy, feed, full=True) == "anew"
    return feed


async def revision(proxy: Proxy, feed: Feed, *, full: bool = False) -> str:
    """Return the served revision of the post; `full`: after a full refresh."""
    reply = await proxy.refreshed(feed.url, full=True) if full else await feed.whole()
    post = feed.blog.posts[MOVES - 1]  # one before it is gone
    return "anew" if "Written anew." in texts(reply.body)[feed.blog.identity(post)] else "old"


async def news(feed: Feed) -> None:
    feed.blog.add()
    await feed.later(3600)


@pytest.mark.fault("125")
async def test_a_remembered_revision_gives_way_to_the_live_one(
    tmp_path: Path, origin: Origin, store_url: str
) -> None:
    """R10; row 125: at once, when more is remembered, and after a restart."""
    config, clock = a_config(tmp_path, store={"url": store_url}), Clock()
    async with running(config, clock) as proxy:
        feed = await moved(proxy, an_undated_blog(origin))
        for _ in range(3):
            await news(feed)
            assert await revision(proxy, feed) == "anew"
    async with running(config, clock) as proxy:
        feed = Feed(proxy, feed.blog)
        assert await revision(proxy, feed) == "anew"
        await news(feed)
        assert await revision(proxy, feed) == "anew"


@pytest.mark.fault("125")
async def test_a_remembered_revision_gives_way_where_no_time_goes_by(
    tmp_path: Path, origin: Origin, store_url: str
) -> None:
    """R10; row 125: the old and the new page of a post arrive at one instant."""
    async with running(a_config(tmp_path, store={"url": store_url}), StandingClock()) as proxy:
        await moved(proxy, an_undated_blog(origin))


@pytest.mark.fault("125")
async def test_what_an_earlier_version_served_of_memory_gives_way(aged: Aged, origin: Origin) -> None:
    """R10; row 125: its age is unknown, and the publisher has another revision."""
    clock = Clock()
    async with running(aged.config, clock) as proxy:
        feed = await moved(proxy, an_undated_blog(origin))
    remembered = "document IN (SELECT id FROM document WHERE role = 'memory')"
    aged.run(
        f"UPDATE entry SET is_live = 0 WHERE identity IN (SELECT identity FROM entry WHERE {remembered})",
        f"UPDATE entry SET is_live = 1 WHERE {remembered}",
    )
    aged.age(15)
    async with running(aged.config, clock) as proxy:
        feed = Feed(proxy, feed.blog)
        await news(feed)
        assert await revision(proxy, feed) == "anew"


async def test_a_remembered_revision_is_as_old_in_a_copy_of_the_store(
    tmp_path: Path, origin: Origin, store_url: str, request: pytest.FixtureRequest
) -> None:
    """R10: a backup, and a store moved to PostgreSQL."""
    clock, copy = Clock(), tmp_path / "copy"
    async with running(a_config(tmp_path), clock) as proxy:
        feed = await moved(proxy, an_undated_blog(origin))
    to = request.getfixturevalue("empty_postgres_url") if store_url else ""
    await copied(tmp_path, copy, to)
    async with running(a_config(copy, store={"url": to}), clock) as proxy:
        feed = Feed(proxy, feed.blog)
        await news(feed)
        assert await revision(proxy, feed) == "anew"
