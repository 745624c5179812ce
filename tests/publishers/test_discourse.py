"""The simulator of Discourse."""

from __future__ import annotations

import pytest

from tests.origin import Origin
from tests.publishers.discourse import Discourse
from tests.publishers.reading import read


async def test_posts_by_fifty_before_an_id(origin: Origin) -> None:
    """Each page is what has a lower ID than its URL names, and below the lowest there is nothing."""
    discourse = Discourse(origin, posts=120)
    pages = [await read(discourse.feed_url())]
    while pages[-1].identities and len(pages) < 10:
        number = pages[-1].identities[-1].rpartition("-")[2]
        pages.append(await read(f"{discourse.feed_url()}?before={number}"))
    assert [len(page.identities) for page in pages] == [50, 50, 20, 0]
    assert [each for page in pages for each in page.identities] == [*map(discourse.identity, discourse.posts)]


@pytest.mark.parametrize("before", ["0", "x", ""])
async def test_no_positive_number_is_none(before: str, origin: Origin) -> None:
    """The newest fifty."""
    discourse = Discourse(origin, posts=60)
    assert len((await read(f"{discourse.feed_url()}?before={before}")).identities) == 50


async def test_topics_move_when_something_happens_in_them(origin: Origin) -> None:
    """Pages of topics are counted from 0 and by activity."""
    discourse = Discourse(origin, posts=40)
    oldest = discourse.posts[-1]
    second = await read(f"{discourse.feed_url('latest')}?page=1")
    assert (len(second.identities), second.identities[-1]) == (10, discourse.identity(oldest, "topic"))
    discourse.edit(oldest)
    assert (await read(discourse.feed_url("latest"))).identities[0] == discourse.identity(oldest, "topic")
    assert not (await read(f"{discourse.feed_url('latest')}?page=2")).identities
