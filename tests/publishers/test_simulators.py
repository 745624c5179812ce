"""The simulators of Blogger, Discourse, FeedBurner, GitHub, Lemmy, Mastodon and Reddit."""

from __future__ import annotations

import aiohttp
import pytest

from tests.origin import Origin
from tests.publishers.blogger import Blogger
from tests.publishers.discourse import Discourse, Topics
from tests.publishers.feedburner import FeedBurner
from tests.publishers.github import GitHub
from tests.publishers.lemmy import Lemmy
from tests.publishers.mastodon import Mastodon
from tests.publishers.reading import read
from tests.publishers.reddit import Reddit
from tests.publishers.wordpress import WordPress


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
    """Each page has the posts below its URL's ID; below the lowest there is nothing."""
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


async def test_topics_by_thirty_in_the_order_that_is_asked_for(origin: Origin) -> None:
    """By creation, newest first, from page 0 on; behind the last there is nothing."""
    forum = Topics(origin, posts=40)
    url, topics = forum.feed_url(), [*map(forum.identity, forum.posts)]
    pages = [await read(f"{url}?page={number}") for number in range(3)]
    assert [page.identities for page in pages] == [topics[:30], topics[30:], []]
    oldest = await read(f"{url}?order=created&ascending=true&page=1")
    assert oldest.identities == topics[9::-1]
    forum.edit(forum.posts[-1])
    assert (await read(url)).identities == topics[:30]
    assert (await read(f"{url}?order=activity")).identities[0] == topics[-1]


async def test_a_category_has_twenty_five_topics_and_reads_nothing(origin: Origin) -> None:
    """Older topics are in the forum's feed."""
    forum = Topics(origin, posts=120, kind="c/news/5")
    topics = [forum.identity(post) for post in forum.posts if post.category == "news"]
    assert (await read(f"{forum.feed_url()}?page=1")).identities == topics[:25]
    second = await read(f"{forum.feed_url('latest')}?category=5&page=1")
    assert second.identities == topics[30:]


async def test_a_thousand_submissions_by_a_hundred(origin: Origin) -> None:
    """Behind the last listed one there is nothing, and behind a removed one 403."""
    reddit = Reddit(origin, submissions=1100)
    url, names = reddit.feed_url(), [*map(reddit.identity, reddit.submissions)]
    assert (await read(url)).identities == names[:25]
    assert (await read(f"{url}?limit=500&after={names[24]}")).identities == names[25:125]
    assert not (await read(f"{url}?after={names[-1]}")).identities
    reddit.delete(reddit.submissions[24])
    async with aiohttp.ClientSession() as session, session.get(f"{url}?after={names[24]}") as reply:
        assert reply.status == 403


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("", slice(0, 20)),
        ("&page=2", slice(20, 40)),
        ("&limit=50&page=2", slice(50, 60)),
        ("&page=9", slice(0)),
    ],
)
async def test_posts_by_twenty_or_as_many_as_are_asked_for(query: str, places: slice, origin: Origin) -> None:
    """From the oldest on or from the newest; pinned posts stand first, and over fifty are refused."""
    lemmy = Lemmy(origin, posts=60)
    names = [*map(lemmy.identity, lemmy.blog.posts)]
    assert (await read(lemmy.feed_url("Old") + query)).identities == names[places]
    assert (await read(lemmy.feed_url() + query)).identities == names[::-1][places]
    lemmy.pinned = frozenset({lemmy.blog.posts[7].id})
    assert (await read(lemmy.feed_url("Old"))).identities[:2] == [names[7], names[0]]
    async with aiohttp.ClientSession() as session, session.get(f"{lemmy.feed_url()}&limit=51") as reply:
        assert reply.status == 400


async def test_a_copy_has_its_source_s_guids_and_links_of_its_own(origin: Origin) -> None:
    """It changes when the source is asked again, not with parameters."""
    wordpress = WordPress(origin, posts=30)
    copy = FeedBurner(origin, wordpress, "/feed/")
    page = await read(copy.url)
    assert page.identities == [wordpress.identity(post) for post in wordpress.posts[:-11:-1]]
    items = [each for each in page.root.iter() if each.tag == "item"]
    assert all((item.findtext("link") or "").startswith(f"{copy.url}/~3/") for item in items)
    wordpress.add()
    assert (await read(f"{copy.url}?paged=2")).identities == page.identities
    await copy.poll()
    assert (await read(copy.url)).identities[1:] == page.identities[:-1]


async def test_releases_by_ten_behind_a_tag(origin: Origin) -> None:
    """Each page begins behind its URL's tag; behind the oldest there is nothing."""
    github = GitHub(origin, releases=25)
    pages = [await read(github.feed_url())]
    while pages[-1].identities and len(pages) < 10:
        tag = pages[-1].identities[-1].rpartition("/")[2]
        pages.append(await read(f"{github.feed_url()}?after={tag}"))
    assert [len(page.identities) for page in pages] == [10, 10, 5, 0]
    assert [each for page in pages for each in page.identities] == [*map(github.identity, github.releases)]
    assert pages[0].link("next") is None


async def test_a_new_release_shifts_no_page_behind_a_tag(origin: Origin) -> None:
    """A page depends on its tag alone; a deleted tag counts as unknown, and other parameters are ignored."""
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
    """Twenty by default, never more than two hundred, always the newest."""
    mastodon = Mastodon(origin, statuses=300)
    page = await read(mastodon.feed_url() + query)
    assert page.identities == [*map(mastodon.identity, mastodon.statuses[:count])]
