"""Writing segments of collected feeds (`wholefeed.service.segment_weaving`)."""

from __future__ import annotations

import pytest

from tests.feeds import own_ids
from tests.origin import Origin
from tests.patching import set_constant
from tests.publishers.collected import Feed
from tests.publishers.wordpress import WordPress
from tests.running import Proxy


@pytest.mark.parametrize("batch_bytes", [1, 3 << 20])
async def test_an_import_of_more_than_is_held_at_once_is_sorted_too(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, batch_bytes: int
) -> None:
    """R20: the rest is read again for each batch."""
    set_constant(monkeypatch, "_BATCH_BYTES", batch_bytes)
    feed = Feed(proxy, WordPress(origin, posts=50))
    for post in feed.blog.posts:
        post.content = "words " * 4000
    for number in range(60):
        feed.blog.back_date(days=1500 + 9.7 * number, content="words " * 4000)
    reply = await feed.whole()
    newest_first = sorted(feed.blog.posts, key=lambda post: -post.published)
    assert own_ids(reply.body) == [feed.blog.identity(post) for post in newest_first]
