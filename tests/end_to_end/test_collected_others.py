"""Histories of publishers other than WordPress through the whole proxy (rules R26 to R32)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.answers import Request, Status
from tests.feeds import an_item, own_ids, rss
from tests.origin import Origin
from tests.publishers.blogger import Blogger
from tests.publishers.discourse import Discourse, Topics
from tests.publishers.github import GitHub, on_loopback
from tests.publishers.lemmy import Lemmy
from tests.publishers.mastodon import Mastodon
from tests.publishers.numbered import GitLab, Joomla, Redmine, Squarespace
from tests.publishers.reddit import Reddit
from tests.running import Clock, Proxy, Reply, a_config, running

DAY = 86_400.0
HOUR = 3600.0

Publisher = GitHub | Discourse | Reddit | Mastodon | Blogger | Lemmy | GitLab | Joomla | Squarespace | Redmine
MAKERS: dict[str, Callable[[Origin, int], Any]] = {
    "github": GitHub,
    "discourse": Discourse,
    "discourse-topics": Topics,
    "reddit": Reddit,
    "lemmy": Lemmy,
    "mastodon": Mastodon,
    "blogger": lambda origin, posts: Blogger(origin, posts, links_pages=False),
    "gitlab": GitLab,
    "joomla": Joomla,
    "squarespace": Squarespace,
    "redmine": Redmine,
}
NUMBERED = ("gitlab", "joomla", "squarespace", "redmine")


@pytest.fixture(autouse=True)
def github_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let loopback count as GitHub and Reddit, which the proxy knows by their hosts."""
    on_loopback(monkeypatch)


def is_page(request: Request) -> bool:
    return "?" in request.target and not request.target.endswith("?sort=New")


def expected(publisher: Publisher) -> set[str]:
    return {publisher.identity(post) for post in publisher.blog.posts}


@pytest.mark.parametrize(
    ("name", "entries", "requests"),
    [
        ("github", 95, 12),
        ("github", 10, 2),
        ("discourse", 320, 8),
        ("discourse", 30, 2),
        ("discourse-topics", 320, 22),
        ("discourse-topics", 25, 3),
        ("reddit", 320, 6),
        ("reddit", 20, 2),
        ("lemmy", 320, 18),
        ("lemmy", 12, 3),
        ("mastodon", 150, 2),
        ("mastodon", 12, 3),
        ("gitlab", 320, 5),
        ("gitlab", 30, 2),
        ("joomla", 96, 16),
        ("squarespace", 95, 6),
        ("squarespace", 12, 2),
        ("redmine", 37, 8),
        ("redmine", 7, 2),
    ],
)
async def test_all_entries_come(proxy: Proxy, origin: Origin, name: str, entries: int, requests: int) -> None:
    """R28: in few requests, without a warning."""
    publisher = MAKERS[name](origin, entries)
    with capture_logs() as logs:
        reply = await proxy.whole(publisher.feed_url())
    assert [line for line in logs if line["log_level"] != "info"] == []
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) == expected(publisher)
    assert len(origin.requests) <= requests
    status = await proxy.status(publisher.feed_url())
    assert status["collection"]["adapter"] == name


async def test_tags_are_collected(proxy: Proxy, origin: Origin) -> None:
    """R28: the same way as releases."""
    github = GitHub(origin, 42)
    reply = await proxy.whole(github.feed_url("tags"))
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) == expected(github)


async def test_more_statuses_than_are_given_are_partial(proxy: Proxy, origin: Origin) -> None:
    """R31: two hundred come; the state says that there may be more."""
    mastodon = Mastodon(origin, statuses=500)
    reply = await proxy.whole(mastodon.feed_url())
    assert reply.state == "partial"
    assert set(own_ids(reply.body)) >= {mastodon.identity(post) for post in mastodon.statuses[:200]}
    assert len(origin.requests) == 2


async def test_news_of_which_a_site_leaves_some_out_are_partial(proxy: Proxy, origin: Origin) -> None:
    """R31: a Redmine shows six of each ten, and gets no further requests."""
    redmine = Redmine(origin, 35)
    redmine.shown = 6
    reply = await proxy.whole(redmine.feed_url())
    assert (reply.state, len(own_ids(reply.body))) == ("partial", 6 + 6 + 6 + 5)
    origin.forget_requests()
    assert (await gone_on(proxy, redmine, 2 * HOUR)).state == "partial"
    assert len(origin.requests) == 1


@pytest.mark.parametrize(
    ("name", "entries", "highest"),
    [
        ("blogger", 900, 500),
        ("blogger", 260, 100),
        ("gitlab", 400, 149),
        ("joomla", 200, 99),
        ("redmine", 200, 9),
    ],
)
async def test_a_publisher_that_gives_nothing_above_some_number_is_left_in_peace(
    proxy: Proxy, origin: Origin, name: str, entries: int, highest: int
) -> None:
    """R17, R31: the walk does not bounce at that border, and every view names the gap. Later days cost only
    the feed's own requests."""
    publisher = MAKERS[name](origin, entries)
    publisher.highest = highest
    reply = await proxy.whole(publisher.feed_url())
    assert reply.state == ("collected" if name == "redmine" else "partial")
    assert len(own_ids(reply.body)) >= highest
    assert len(origin.requests) <= 30
    origin.forget_requests()
    for _ in range(3):
        await gone_on(proxy, publisher, DAY)
    assert len(origin.requests) <= 3 * 30


@pytest.mark.parametrize("more", [1, 400])
async def test_a_blog_that_claims_more_posts_than_it_gives_is_partial(
    proxy: Proxy, origin: Origin, more: int
) -> None:
    """R31: partial until the claimed number matches; then everything is fetched again."""
    blogger = Blogger(origin, 130, links_pages=False)
    blogger.claims_more = more
    reply = await proxy.whole(blogger.feed_url())
    assert (reply.state, set(own_ids(reply.body))) == ("partial", expected(blogger))
    status = await proxy.status(blogger.feed_url())
    assert f"claims {130 + more} entries" in status["collection"]["reason"]
    blogger.claims_more = 0
    blogger.add()
    assert (await gone_on(proxy, blogger, 2 * DAY)).state == "collected"


async def test_an_account_that_is_asked_for_some_statuses_is_collected(proxy: Proxy, origin: Origin) -> None:
    """R26: a limit in the feed's own URL gives way to the largest one."""
    mastodon = Mastodon(origin, 150)
    url = f"{mastodon.feed_url()}?limit=50"
    reply = await proxy.whole(url)
    assert (reply.state, set(own_ids(reply.body))) == ("collected", expected(mastodon))
    assert len(origin.requests) == 2
    for _ in range(25):
        mastodon.add()
    proxy.clock.advance(2 * HOUR)
    reply = await proxy.refreshed(url)
    assert (reply.state, set(own_ids(reply.body))) == ("collected", expected(mastodon))


async def test_more_submissions_than_are_listed_are_partial(proxy: Proxy, origin: Origin) -> None:
    """R31: a thousand come, at a hundred a page; the state says so after every look."""
    reddit = Reddit(origin, submissions=1500)
    reply = await proxy.whole(reddit.feed_url())
    assert reply.state == "partial"
    assert set(own_ids(reply.body)) == {reddit.identity(post) for post in reddit.submissions}
    assert len(origin.requests) <= 1 + 10 + 2
    reddit.add()
    before = len(origin.requests)
    proxy.clock.advance(2 * HOUR)
    assert (await proxy.refreshed(reddit.feed_url())).state == "partial"
    assert len(origin.requests) == before + 1


async def test_a_submission_that_is_removed_while_it_is_asked_behind(proxy: Proxy, origin: Origin) -> None:
    """R28, R32: the 403 does not refuse the walk."""
    reddit = Reddit(origin, submissions=420)
    reddit.on_request = lambda number, _: reddit.delete(reddit.submissions[224]) if number == 4 else None
    reply = await proxy.whole(reddit.feed_url())
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) >= expected(reddit)


async def test_the_topics_of_a_category_are_collected(proxy: Proxy, origin: Origin) -> None:
    """R28: by page, without other categories."""
    forum = Topics(origin, 320, kind="c/news/5")
    reply = await proxy.whole(forum.feed_url())
    assert reply.state == "collected"
    news = {forum.identity(post) for post in forum.posts if post.category == "news"}
    assert set(own_ids(reply.body)) == news
    assert len(origin.requests) <= 14


@pytest.mark.parametrize("posts", [20, 320])
async def test_nothing_of_another_category_comes(proxy: Proxy, origin: Origin, posts: int) -> None:
    """R27: pages of all topics are recognised and not stored."""
    forum = Topics(origin, posts, kind="c/news/5")
    forum.reads_category = False
    reply = await proxy.whole(forum.feed_url())
    news = [forum.identity(post) for post in forum.posts if post.category == "news"]
    assert (reply.state, set(own_ids(reply.body)) - set(news)) == ("remembered", set())


async def test_a_community_by_votes_is_collected_by_age(proxy: Proxy, origin: Origin) -> None:
    """R28, R30: pinned posts hide no news."""
    lemmy = Lemmy(origin, posts=320)
    lemmy.pinned = frozenset(post.id for post in lemmy.blog.posts[100:103])
    reply = await proxy.whole(lemmy.feed_url(""))
    assert (reply.state, set(own_ids(reply.body))) == ("collected", expected(lemmy))
    for _ in range(60):
        lemmy.add()
    proxy.clock.advance(2 * HOUR)
    reply = await proxy.refreshed(lemmy.feed_url(""))
    assert (reply.state, set(own_ids(reply.body))) == ("collected", expected(lemmy))


@pytest.mark.parametrize(("new", "state"), [(150, "collected"), (250, "partial")])
async def test_an_account_that_grows(tmp_path: Path, origin: Origin, new: int, state: str) -> None:
    """R31: it stays whole while each look reaches known entries."""
    mastodon, clock = Mastodon(origin, statuses=120), Clock()
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(mastodon.feed_url())
        for _ in range(new):
            mastodon.add()
        clock.advance(2 * HOUR)
        reply = await proxy.refreshed(mastodon.feed_url())
        assert reply.state == state
        assert (set(own_ids(reply.body)) == expected(mastodon)) is (state == "collected")


@pytest.mark.parametrize("name", MAKERS)
async def test_a_refresh_without_news_costs_one_request(tmp_path: Path, origin: Origin, name: str) -> None:
    """R30: within a day of the last look; after a day one more."""
    publisher, clock = MAKERS[name](origin, 151), Clock()
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(publisher.feed_url())
        origin.forget_requests()
        clock.advance(2 * HOUR)
        assert (await proxy.refreshed(publisher.feed_url())).state == "collected"
        assert len(origin.requests) == 1
        origin.forget_requests()
        clock.advance(DAY)
        assert (await proxy.refreshed(publisher.feed_url())).state == "collected"
        assert len(origin.requests) == 2


@pytest.mark.parametrize(("name", "new"), [*((name, 45) for name in MAKERS), ("blogger", 1)])
async def test_new_entries_appear(tmp_path: Path, origin: Origin, name: str, new: int) -> None:
    """R30: few, and more than the subscription document holds."""
    publisher, clock = MAKERS[name](origin, 120), Clock()
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(publisher.feed_url())
        for _ in range(new):
            publisher.add()
        origin.forget_requests()
        clock.advance(2 * HOUR)
        reply = await proxy.refreshed(publisher.feed_url())
        assert reply.state == "collected"
        assert set(own_ids(reply.body)) == expected(publisher)
        assert len(origin.requests) <= 1 + (11 if name == "redmine" else 6)


@pytest.mark.parametrize("name", ["github", "discourse", "discourse-topics", "reddit", "lemmy", *NUMBERED])
@pytest.mark.parametrize("change", ["add", "delete"])
async def test_what_changes_in_the_middle_loses_nothing(
    proxy: Proxy, origin: Origin, name: str, change: str
) -> None:
    """R28: a page begins behind an entry, so additions and deletions do not shift it."""
    publisher = MAKERS[name](origin, 320)

    def on_request(number: int, _request: object) -> None:
        if number == 4:
            if change == "add":
                publisher.add()
            else:
                publisher.delete(publisher.blog.posts[-3])

    publisher.on_request = on_request
    reply = await proxy.whole(publisher.feed_url())
    assert reply.state == "collected"
    added = set() if change == "delete" else {publisher.identity(publisher.blog.posts[-1])}
    assert set(own_ids(reply.body)) >= expected(publisher) - added


async def test_a_tag_that_is_deleted_while_it_is_asked_behind(proxy: Proxy, origin: Origin) -> None:
    """The page before the tag names the tag now in its place."""
    github = GitHub(origin, 95)
    github.on_request = lambda number, _: github.delete(github.releases[29]) if number == 4 else None
    reply = await proxy.whole(github.feed_url())
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) >= expected(github)


@pytest.mark.parametrize("name", MAKERS)
async def test_parameters_that_are_ignored_leave_a_remembered_feed(
    proxy: Proxy, origin: Origin, name: str
) -> None:
    """R27: the proxy notices after one or two requests."""
    publisher = MAKERS[name](origin, 120)
    publisher.queries = "ignored"
    reply = await proxy.whole(publisher.feed_url())
    assert reply.state == "remembered"
    assert len(origin.requests) <= 3


@pytest.mark.parametrize("name", MAKERS)
async def test_parameters_that_are_redirected_away_leave_a_remembered_feed(
    proxy: Proxy, origin: Origin, name: str
) -> None:
    """R27: the response is not for the page that was requested."""
    publisher = MAKERS[name](origin, 120)
    publisher.queries = "redirected"
    reply = await proxy.whole(publisher.feed_url())
    assert reply.state == "remembered"
    assert len(origin.requests) <= 4


@pytest.mark.parametrize(
    ("name", "status", "pause"),
    [*((name, 404, 7 * DAY) for name in MAKERS), ("github", 429, HOUR), ("discourse", 403, DAY)],
)
async def test_a_refusal_is_heeded(
    tmp_path: Path, origin: Origin, name: str, status: int, pause: float
) -> None:
    """R27 and R32: until then only the subscription document is fetched."""
    publisher, clock = MAKERS[name](origin, 120), Clock()

    def on_request(number: int, _request: object) -> None:
        publisher.refusal = status if number > 1 else None

    publisher.on_request = on_request
    async with running(a_config(tmp_path), clock) as proxy:
        reply = await proxy.whole(publisher.feed_url())
        assert reply.state == "remembered"
        assert len(origin.requests) == 2
        publisher.on_request, publisher.refusal = None, None
        origin.forget_requests()
        clock.advance(pause - 60)
        await proxy.get(publisher.feed_url())
        await proxy.settled()
        assert not any(map(is_page, origin.requests))
        clock.advance(HOUR)
        assert (await proxy.refreshed(publisher.feed_url())).state in ("collected", "remembered")
        assert (await proxy.whole(publisher.feed_url())).state == "collected"


@pytest.mark.parametrize("name", ["github", "discourse", "reddit", "gitlab", "joomla", "squarespace"])
async def test_a_walk_goes_on_after_a_restart(tmp_path: Path, origin: Origin, name: str) -> None:
    """R28: no stored page is fetched twice."""
    publisher = MAKERS[name](origin, 460)
    stopped = asyncio.Event()

    async def on_request(number: int, _request: object) -> None:
        if number == 5:
            stopped.set()
            await asyncio.sleep(30)

    publisher.on_request = on_request
    async with running(a_config(tmp_path)) as proxy:
        await proxy.get(publisher.feed_url(), wait="0.1")
        await stopped.wait()
    publisher.on_request = None
    for _ in range(3):
        publisher.add()
    had = {request.target for request in origin.requests[1:4]}
    origin.forget_requests()
    async with running(a_config(tmp_path)) as proxy:
        reply = await proxy.refreshed(publisher.feed_url())
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) == expected(publisher)
    assert had.isdisjoint(request.target for request in origin.requests)


@pytest.mark.parametrize("name", ["github", "discourse", "reddit", *NUMBERED])
async def test_all_pages_again_are_the_same_ones(tmp_path: Path, origin: Origin, name: str) -> None:
    """R29: `full` fetches all of them under their earlier URLs; deleted entries stay."""
    publisher, clock = MAKERS[name](origin, 120), Clock()
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(publisher.feed_url())
        pages = {request.target for request in origin.requests if "?" in request.target}
        everything = expected(publisher)
        publisher.add()
        publisher.delete(publisher.blog.posts[3])
        origin.forget_requests()
        clock.advance(2 * HOUR)
        reply = await proxy.refreshed(publisher.feed_url(), full=True)
        assert reply.state == "collected"
        assert set(own_ids(reply.body)) == expected(publisher) | everything
        assert pages <= {request.target for request in origin.requests}
        documents = (await proxy.status(publisher.feed_url()))["chain"]
        assert len(documents) <= len(pages) + 4


@pytest.mark.parametrize("name", MAKERS)
async def test_another_s_feed_is_asked_for_nothing(proxy: Proxy, origin: Origin, name: str) -> None:
    """R26: the same path, without the publisher's marks."""
    publisher = MAKERS[name](origin, 120)
    path = publisher.feed_url().removeprefix(origin.url("")).removeprefix(origin.url())
    path = "/" + path.lstrip("/")
    origin.publish(path, rss(an_item("a"), an_item("b")), content_type="application/rss+xml")
    reply = await proxy.whole(origin.url(path))
    assert reply.state == "remembered"
    assert [request.target for request in origin.requests] == [path]


async def test_an_empty_repository_is_asked_for_nothing(proxy: Proxy, origin: Origin) -> None:
    """There is no entry to ask behind."""
    github = GitHub(origin, 0)
    assert (await proxy.whole(github.feed_url())).state == "remembered"
    assert len(origin.requests) == 1


async def test_a_look_that_is_refused_is_made_up_for(tmp_path: Path, origin: Origin) -> None:
    """R30: a later look brings the missing entries."""
    github, clock = GitHub(origin, 95), Clock()
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(github.feed_url())
        for _ in range(35):
            github.add()
        tag = github.tag(github.releases[9])
        origin.fault(f"/owner/name/releases.atom?after={tag}", Status(503), times=1)
        clock.advance(2 * HOUR)
        assert (await proxy.refreshed(github.feed_url())).state == "partial"
        clock.advance(2 * DAY)
        reply = await proxy.refreshed(github.feed_url())
        assert reply.state == "collected"
        assert set(own_ids(reply.body)) == expected(github)


async def gone_on(proxy: Proxy, publisher: Publisher, seconds: float) -> Reply:
    proxy.clock.advance(seconds)
    return await proxy.refreshed(publisher.feed_url())


@pytest.mark.parametrize(
    ("name", "is_restarted"),
    [
        *((name, False) for name in ("github", "discourse", "blogger", "reddit", "lemmy", *NUMBERED)),
        ("discourse-topics", False),
        ("github", True),
        ("blogger", True),
        ("lemmy", True),
    ],
)
async def test_a_look_that_was_cut_short_half_way_is_made_up_for(
    tmp_path: Path, origin: Origin, name: str, is_restarted: bool
) -> None:
    """R30: the first page behind the subscription document is no news the next time, but later pages are
    still unread. The same after a crash."""
    publisher, clock = MAKERS[name](origin, 150), Clock()
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(publisher.feed_url())
        for _ in range(320):
            publisher.add()
        before, is_cut = publisher.count, asyncio.Event()

        async def on_request(number: int, _request: object) -> None:
            if number > before + 2:
                is_cut.set()
                publisher.refusal = 500
                await asyncio.sleep(30 * is_restarted)

        publisher.on_request = on_request
        clock.advance(2 * HOUR)
        await proxy.ask("POST", "/refresh", params={"url": publisher.feed_url()})
        await is_cut.wait()
        if not is_restarted:
            await proxy.settled()
            assert (await proxy.get(publisher.feed_url())).state == "partial"
    publisher.on_request, publisher.refusal = None, None
    async with running(a_config(tmp_path), clock) as proxy:
        reply = await gone_on(proxy, publisher, 2 * HOUR)
        assert (reply.state, set(own_ids(reply.body))) == ("collected", expected(publisher))


@pytest.mark.parametrize(
    "name", ["github", "discourse", "discourse-topics", "reddit", "blogger", "lemmy", *NUMBERED]
)
async def test_what_was_published_in_a_pause_is_all_there(proxy: Proxy, origin: Origin, name: str) -> None:
    """R30, R32: the stored subscription documents have gaps."""
    publisher = MAKERS[name](origin, 150)
    await proxy.whole(publisher.feed_url())

    def on_request(_number: int, request: Request) -> None:
        publisher.refusal = 403 if is_page(request) else None

    publisher.on_request = on_request
    for _ in range(3):
        for _ in range(80):
            publisher.add()
        assert (await gone_on(proxy, publisher, 2 * HOUR)).state == "partial"
    publisher.on_request, publisher.refusal = None, None
    reply = await gone_on(proxy, publisher, DAY)
    assert (reply.state, set(own_ids(reply.body))) == ("collected", expected(publisher))


@pytest.mark.parametrize("name", MAKERS)
async def test_parameters_that_are_ignored_later_on_are_told(proxy: Proxy, origin: Origin, name: str) -> None:
    """R27, R31: partial, tried again at growing intervals, until the publisher honours them again."""
    publisher = MAKERS[name](origin, 120)
    await proxy.whole(publisher.feed_url())
    publisher.queries = "ignored"
    for _ in range(70):
        publisher.add()
    assert (await gone_on(proxy, publisher, 2 * HOUR)).state == "partial"
    for _ in range(3):
        origin.forget_requests()
        for _ in range(18):
            proxy.clock.advance(4 * HOUR)
            assert (await proxy.whole(publisher.feed_url())).state == "partial"
            await proxy.settled()
    assert sum(map(is_page, origin.requests)) <= 2
    publisher.queries = "honoured"
    reply = await gone_on(proxy, publisher, HOUR)
    assert (reply.state, set(own_ids(reply.body))) == ("collected", expected(publisher))


async def test_a_walk_that_lost_its_way_is_made_anew(proxy: Proxy, origin: Origin) -> None:
    """R28, R31: all releases to ask behind are deleted."""
    github = GitHub(origin, 95)

    def on_request(number: int, request: Request) -> None:
        asked = request.target.partition("?after=")[2]
        if number > 3:
            github.delete(*(each for each in github.releases if github.tag(each) == asked))

    github.on_request = on_request
    assert (await proxy.whole(github.feed_url())).state == "partial"
    github.on_request = None
    assert (await gone_on(proxy, github, HOUR / 2)).state == "collected"
    assert expected(github) <= set(own_ids((await proxy.get(github.feed_url())).body))


async def test_a_blog_that_links_its_pages_is_a_paged_feed(proxy: Proxy, origin: Origin) -> None:
    """R26: adapters do not act on a feed with links."""
    blogger = Blogger(origin, posts=120)
    reply = await proxy.whole(blogger.feed_url())
    assert reply.state == "paged"
    assert set(own_ids(reply.body)) == expected(blogger)
    assert all("max-results=100" not in request.target for request in origin.requests)


async def test_a_blog_whose_links_fail_is_collected(proxy: Proxy, origin: Origin) -> None:
    """R26: if the first link is dead, the blog's own parameters serve."""
    blogger = Blogger(origin, posts=320)
    origin.answer("/feeds/987654321/posts/default", Status(404))
    reply = await proxy.whole(blogger.feed_url())
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) == expected(blogger)
    assert len(origin.requests) <= 2 + 5


async def test_a_blog_behind_feedburner_is_collected(proxy: Proxy, origin: Origin) -> None:
    """R26, R27: the blog redirects its feed to FeedBurner's copy of the newest posts; a parameter against the
    redirect gets the blog's own pages."""
    blogger = Blogger(origin, posts=333, links_pages=False, is_burned=True)
    reply = await proxy.whole(blogger.feed_url())
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) == expected(blogger)
    assert len(origin.requests) <= 2 + 5
    blogger.add()
    proxy.clock.advance(2 * HOUR)
    reply = await proxy.refreshed(blogger.feed_url())
    assert (reply.state, set(own_ids(reply.body))) == ("collected", expected(blogger))


@pytest.mark.parametrize("is_copy_rss", [False, True])
@pytest.mark.parametrize("query", ["", "?alt=rss"])
async def test_a_blog_behind_feedburner_at_another_site_is_collected(
    proxy: Proxy, origin: Origin, is_copy_rss: bool, query: str
) -> None:
    """R26, R27: in the format of the copy. The pages come from the feed's host, so they need no proof of
    origin."""
    async with Origin("127.0.0.2") as there:
        blogger = Blogger(origin, posts=120, links_pages=False, is_burned=True)
        blogger.is_copy_rss, blogger.copy_url = is_copy_rss, there.url("/some")
        there.answer("/some", blogger.copy())
        reply = await proxy.whole(blogger.feed_url() + query)
        assert (reply.state, set(own_ids(reply.body))) == ("collected", expected(blogger))
        assert len(origin.requests) <= 3
        assert len(there.requests) == 1


@pytest.mark.parametrize("query", ["max-results=7", "alt=rss&max-results=50"])
async def test_a_blog_that_is_asked_for_few_posts_is_collected(
    proxy: Proxy, origin: Origin, query: str
) -> None:
    """R26: a number of posts is no page."""
    blogger = Blogger(origin, posts=120, links_pages=False)
    reply = await proxy.whole(f"{blogger.feed_url()}?{query}")
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) == expected(blogger)
    assert all(request.target.count("max-results") == 1 for request in origin.requests)
