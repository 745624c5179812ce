"""The order of collected entries (rule R20)."""

from __future__ import annotations

import pytest

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
