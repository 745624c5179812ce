"""The order of collected entries (rule R20)."""

from __future__ import annotations

import pytest

import wholefeed
from tests.feeds import own_ids
from tests.origin import Origin
from tests.publishers.collected import FORMATS, Feed
from tests.publishers.wordpress import WordPress
from tests.running import Proxy


@pytest.mark.parametrize("form", FORMATS)
async def test_collected_entries_stand_newest_first_across_their_pages(
    proxy: Proxy, origin: Origin, form: str
) -> None:
    """R20: by publication, also a back-dated post and one that was edited, whichever page they stand on."""
    feed = Feed(proxy, WordPress(origin, posts=35), form)
    await feed.whole()
    feed.blog.back_date()
    feed.blog.edit(feed.blog.posts[3])
    reply = await feed.later()
    newest_first = sorted(feed.blog.posts, key=lambda post: -post.published)
    assert own_ids(reply.body) == [feed.blog.identity(post, form) for post in newest_first]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("rdf")
async def test_the_newest_entry_stands_first_also_where_it_is_a_page_s(
    proxy: Proxy, origin: Origin, form: str
) -> None:
    """R20: the last page by ID, which comes after the subscription document, repeats the half of it."""
    feed = Feed(proxy, WordPress(origin, posts=45), form)
    reply = await feed.whole()
    newest_first = [feed.blog.identity(post, form) for post in reversed(feed.blog.posts)]
    assert own_ids(reply.body) == newest_first
    assert own_ids((await proxy.get(feed.url, limit="3")).body) == newest_first[:3]
    for _ in range(12):  # two of them leave the subscription document's own place
        feed.blog.add()
    reply = await feed.later()
    assert own_ids(reply.body) == [feed.blog.identity(post, form) for post in reversed(feed.blog.posts)]


async def test_the_newest_entry_stands_first_in_a_feed_of_many_segments(proxy: Proxy, origin: Origin) -> None:
    """R20: however much the pages come to."""
    feed = Feed(proxy, WordPress(origin, posts=65))
    for post in feed.blog.posts:
        post.content = "words " * 8000
    reply = await feed.whole()
    assert own_ids(reply.body) == [feed.blog.identity(post) for post in reversed(feed.blog.posts)]


async def test_the_library_has_the_newest_entry_first_too(proxy: Proxy, origin: Origin) -> None:
    """R20: by publication across the pages, whichever way they are looked at."""
    feed = Feed(proxy, WordPress(origin, posts=45))
    config = {"fetch": {"allow_networks": ["127.0.0.0/8"]}}
    entries = (await wholefeed.areconstruct(feed.url, config=config)).entries
    newest_first = [feed.blog.identity(post) for post in reversed(feed.blog.posts)]
    assert [entry.identity for entry in entries] == newest_first
    assert [entries[at].identity for at in (0, 44, 20, -1)] == [newest_first[at] for at in (0, 44, 20, -1)]
