"""Histories that publishers have and do not link, read page by page (rules R26 to R32)."""

from __future__ import annotations

import pytest

from tests.feeds import own_ids
from tests.origin import Origin
from tests.publishers.wordpress import WordPress
from tests.running import Proxy

HOUR = 3600.0


@pytest.mark.parametrize("form", ["rss2", "atom", "rdf"])
async def test_all_posts_come(proxy: Proxy, origin: Origin, form: str) -> None:
    """R28: every post of a blog that links to no history, in few requests."""
    blog = WordPress(origin, posts=95)
    reply = await proxy.whole(blog.feed_url(form))
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) == set(blog.identities(form))
    assert len(origin.requests) <= 10 + 4
