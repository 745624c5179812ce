"""The simulators of Blogger, Discourse, GitHub and Mastodon."""

from __future__ import annotations

import pytest

from tests.origin import Origin
from tests.publishers.blogger import Blogger
from tests.publishers.discourse import Discourse
from tests.publishers.github import GitHub
from tests.publishers.mastodon import Mastodon
from tests.publishers.reading import read


@pytest.mark.parametrize(("query", "pages"), [("", [25, 25, 10]), ("?max-results=500", [50, 10])])
async def test_links_lead_through_all_pages(query: str, pages: list[int], origin: Origin) -> None:
    """`next` keeps the size of the page, which has a limit; the last page has none."""
    blogger = Blogger(origin, posts=60, most=50)
    found = [await read(blogger.feed_url() + query)]
    while (url := found[-1].link("next")) and len(found) < 10:
        found.append(await read(url))
    assert [len(page.identities) for page in found] == pages
    shown = [each for page in found for each in page.identities]
    assert shown == [*map(blogger.identity, reversed(blogger.posts))]
    assert found[-1].link("previous") is not None


async def test_an_edited_post_stays_where_it_is_unless_asked_otherwise(origin: Origin) -> None:
    """By date of publication at first; `orderby=updated` has it on top."""
    blogger = Blogger(origin, posts=60)
    before = (await read(blogger.feed_url())).identities
    blogger.edit(blogger.posts[0])
    assert (await read(blogger.feed_url())).identities == before
    assert (await read(f"{blogger.feed_url()}?orderby=updated")).identities[0] == blogger.identity(
        blogger.posts[0]
    )


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


async def test_releases_by_ten_behind_a_tag(origin: Origin) -> None:
    """Each page begins behind the tag that its URL names, and behind the oldest there is nothing."""
    github = GitHub(origin, releases=25)
    pages = [await read(github.feed_url())]
    while pages[-1].identities and len(pages) < 10:
        tag = pages[-1].identities[-1].rpartition("/")[2]
        pages.append(await read(f"{github.feed_url()}?after={tag}"))
    assert [len(page.identities) for page in pages] == [10, 10, 5, 0]
    assert [each for page in pages for each in page.identities] == [*map(github.identity, github.releases)]
    assert pages[0].link("next") is None


async def test_a_new_release_shifts_no_page_behind_a_tag(origin: Origin) -> None:
    """A page depends on its tag; a deleted tag is as unknown as any, and other parameters mean nothing."""
    github = GitHub(origin, releases=25)
    url = f"{github.feed_url('tags')}?after={github.tag(github.releases[9])}"
    before = await read(url)
    github.add()
    assert (await read(url)).identities == before.identities
    github.delete(github.releases[10])
    newest = (await read(github.feed_url("tags"))).identities
    assert (await read(url)).identities == newest
    assert (await read(f"{github.feed_url('tags')}?page=2")).identities == newest


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 20), ("?limit=50", 50), ("?limit=200", 200), ("?limit=1000", 200), ("?max_id=3", 20)],
)
async def test_at_most_two_hundred(query: str, count: int, origin: Origin) -> None:
    """Twenty if nothing is asked for, never more than two hundred, always the newest."""
    mastodon = Mastodon(origin, statuses=300)
    page = await read(mastodon.feed_url() + query)
    assert page.identities == [*map(mastodon.identity, mastodon.statuses[:count])]
