"""News, edits and deletions of a collected feed, and their cost (rules R29, R30)."""

from __future__ import annotations

import hashlib

import pytest

from tests.answers import Answer, Document, Request, Status
from tests.feeds import own_ids, texts
from tests.origin import Origin
from tests.publishers.collected import ALL, DAY, FORMATS, WEEK, Feed, pages_asked
from tests.publishers.wordpress import WordPress
from tests.publishers.wordpress_feeds import CONTENT_TYPES
from tests.running import Proxy


async def a_collected(proxy: Proxy, origin: Origin, form: str = "rss2", posts: int = 45) -> Feed:
    feed = Feed(proxy, WordPress(origin, posts=posts), form)
    assert (await feed.whole()).state == "collected"
    origin.forget_requests()
    return feed


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("rss2")
async def test_a_refresh_without_news_is_one_request(proxy: Proxy, origin: Origin, form: str) -> None:
    """R30: one 304 until a day has gone by; then two or three requests."""
    feed = await a_collected(proxy, origin, form)
    for _ in range(3):
        reply = await feed.later(3600)
        assert reply.state == "collected"
    assert len(origin.requests) == 3
    origin.forget_requests()
    await feed.later()
    assert len(origin.requests) <= 4


@pytest.mark.parametrize("posts", [1, 10, 15])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("atom-*")
async def test_new_posts_appear_at_once(proxy: Proxy, origin: Origin, posts: int, form: str) -> None:
    """R30: including more than the subscription document holds."""
    feed = await a_collected(proxy, origin, form)
    for _ in range(posts):
        feed.blog.add()
    assert feed.shown(await feed.later(3600)) == ALL
    assert len(origin.requests) <= 1 + 2 * (posts // 10 + 1) + 1  # from the front, and by date of change


@pytest.mark.fault("123")
@pytest.mark.parametrize("posts", [11, 25])
async def test_news_behind_numbers_that_are_ignored_now_are_not_silently_lost(
    proxy: Proxy, origin: Origin, posts: int
) -> None:
    """R27, R30: more than the subscription document holds came, and every page is the front: partial."""
    blog = WordPress(origin, posts=45, pretty=False)
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "collected"
    blog.paged_ignored = True
    for _ in range(posts):
        blog.add()
    reply = await feed.later(3600)
    assert (reply.state, len(feed.lacks(reply))) == ("partial", posts - 10)
    origin.forget_requests()
    await feed.later(3000)
    assert len(origin.requests) <= 1  # all is asked for anew, and later each time
    blog.paged_ignored = False
    assert feed.shown(await feed.later()) == ALL


async def test_news_of_a_look_that_was_cut_off_are_read_to_their_end(proxy: Proxy, origin: Origin) -> None:
    """R30: the first stored page of a look proves nothing about the others."""
    blog = WordPress(origin, posts=45)
    blog.orderby_ignored = True
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "collected"
    for _ in range(45):
        blog.add()
    origin.fault("/feed/?paged=4", Status(503))
    assert (await feed.later(3600)).state == "partial"
    origin.heal("/feed/?paged=4")
    assert feed.shown(await feed.later()) == ALL


class _BehindACache(WordPress):
    """A cache with validators of each page alone."""

    async def behind(self, target: str, request: Request) -> Answer:
        answer = await super().behind(target, request)
        if not isinstance(answer, Document) or answer.status != 200:
            return answer
        kept = tuple(each for each in answer.headers if each[0] not in ("ETag", "Last-Modified"))
        tag = ("ETag", f'"{hashlib.md5(answer.body, usedforsecurity=False).hexdigest()}"')
        return Document(body=answer.body, status=answer.status, headers=(*kept, tag))


async def test_the_last_page_of_a_walk_that_was_cut_off_may_have_grown(proxy: Proxy, origin: Origin) -> None:
    """R28: the resumed walk also collects the posts added behind it meanwhile."""
    blog = _BehindACache(origin, posts=25)
    blog.rest_status = 403  # else its count of posts shows that some were not met
    first = "/feed/?orderby=ID&order=ASC"
    origin.fault(first, Status(503))
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "partial"
    for number in range(8):
        blog.back_date(days=1985 + number)
    for _ in range(20):
        blog.add()
    origin.heal(first)
    assert feed.shown(await feed.later()) == ALL


async def test_news_that_the_feed_holds_need_no_numbers(proxy: Proxy, origin: Origin) -> None:
    """R30: it reaches back to the last look."""
    blog = WordPress(origin, posts=45, pretty=False)
    feed = Feed(proxy, blog)
    await feed.whole()
    blog.paged_ignored = True
    for _ in range(9):
        blog.add()
    assert feed.shown(await feed.later(3600)) == ALL


async def test_news_behind_a_page_that_is_not_there_are_not_silently_lost(
    proxy: Proxy, origin: Origin
) -> None:
    """R30: 404 for page 2, and page 3 answers: the proxy fetches all pages again."""
    blog = WordPress(origin, posts=45)
    blog.orderby_ignored = True
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "collected"
    origin.fault("/feed/?paged=2", Status(404), times=1)
    for _ in range(25):
        feed.blog.add()
    assert feed.shown(await feed.later(3600)) == ALL


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("rdf")
async def test_an_edited_old_post_appears(proxy: Proxy, origin: Origin, form: str) -> None:
    """R30: with its present text, though it stands on no front page."""
    feed = await a_collected(proxy, origin, form)
    post = feed.blog.posts[4]
    feed.blog.edit(post, content="Written anew.")
    reply = await feed.later(3600)
    assert "Written anew." in texts(reply.body)[feed.blog.identity(post, form)]
    assert pages_asked(origin)[0] == "orderby=modified"


async def test_edits_appear_with_the_next_refresh(proxy: Proxy, origin: Origin) -> None:
    """R30: a changed validator causes a look, while looks bring something."""
    feed = await a_collected(proxy, origin, "rss2")
    for number in (4, 14, 4):
        post = feed.blog.posts[number]
        feed.blog.edit(post, content=f"Written anew at {feed.blog.blog.now}.")
        reply = await feed.later(900)
        assert post.content in texts(reply.body)[feed.blog.identity(post, "rss2")]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("rss2")
async def test_old_posts_of_a_bulk_edit_appear_within_a_day(
    proxy: Proxy,
    origin: Origin,
    form: str,
) -> None:
    """R30: all have one instant, so no order by change helps: all pages by ID, once a day."""
    feed = await a_collected(proxy, origin, form)
    edited = [post for post in feed.blog.posts if post.id % 3]
    feed.blog.bulk_edit(edited, content="All of them anew.")
    reply = await feed.later()
    found = texts(reply.body)
    assert {post.id for post in edited if "anew" not in found[feed.blog.identity(post, form)]} == set()
    origin.forget_requests()
    await feed.later(3600)
    assert len(origin.requests) == 1
    await feed.later()
    assert len(origin.requests) <= 5


async def test_a_bulk_edit_in_the_middle_of_the_walk_appears_within_a_day(
    proxy: Proxy, origin: Origin
) -> None:
    """R30: the pages read before the edit hold old copies."""
    blog = WordPress(origin, posts=45)
    blog.on_request = lambda number, _request: (
        blog.bulk_edit(blog.posts, content="All of them anew.") if number == 6 else None
    )
    feed = Feed(proxy, blog)
    await feed.whole()
    reply = await feed.later()
    found = texts(reply.body)
    assert {post.id for post in blog.posts if "anew" not in found[blog.identity(post)]} == set()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("atom")
async def test_a_back_dated_post_appears_within_a_day(proxy: Proxy, origin: Origin, form: str) -> None:
    """R30: it moves no validator and stands in the middle; by ID it is the last."""
    feed = await a_collected(proxy, origin, form)
    feed.blog.back_date()
    assert feed.shown(await feed.later()) == ALL


async def test_a_back_dated_post_appears_though_the_blog_has_news_every_twenty_hours(
    proxy: Proxy, origin: Origin
) -> None:
    """R30: a look caused by news does not put off the daily one."""
    feed = await a_collected(proxy, origin)
    feed.blog.back_date()
    feed.blog.add()
    await feed.later(20 * 3600)
    feed.blog.add()
    reply = await feed.later(20 * 3600)
    assert feed.lacks(reply) == set()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("rdf")
async def test_a_deleted_post_stays(proxy: Proxy, origin: Origin, form: str) -> None:
    """R29: even if all pages are fetched again; forgetting removes it."""
    feed = await a_collected(proxy, origin, form)
    gone = [feed.blog.identity(post, form) for post in feed.blog.posts[10:13]]
    feed.blog.delete(*feed.blog.posts[10:13])
    reply = await feed.later()
    assert set(gone) <= set(own_ids(reply.body))
    reply = await proxy.refreshed(feed.url, full=True)
    assert feed.shown(reply) == ALL
    assert set(gone) <= set(own_ids(reply.body))
    await proxy.ask("DELETE", "/feed", params={"url": feed.url})
    reply = await feed.whole()
    assert set(own_ids(reply.body)) == feed.blog.identities(form)


async def test_a_full_refresh_asks_for_every_page_again(proxy: Proxy, origin: Origin) -> None:
    """R29: and loses nothing, even if posts shift meanwhile."""
    feed = await a_collected(proxy, origin)
    feed.blog.delete(*feed.blog.posts[:12])
    feed.blog.add()
    before = set(own_ids((await proxy.get(feed.url)).body))
    reply = await proxy.refreshed(feed.url, full=True)
    assert len({page for page in pages_asked(origin) if "orderby=ID" in page}) >= 4
    assert set(own_ids(reply.body)) == before | feed.blog.identities()
    assert reply.state == "collected"


async def test_posts_that_shift_while_a_page_is_read_twice_stay(proxy: Proxy, origin: Origin) -> None:
    """R29: they moved to a page already read."""
    blog = WordPress(origin, posts=48)
    drafts = [blog.schedule(post_id=number) for number in (2, 3, 4)]
    blog.on_request = lambda number, _request: (
        blog.go_live(drafts[number // 2 - 2]) if number in (4, 6, 8) else None
    )
    feed = Feed(proxy, blog)
    assert feed.shown(await feed.whole()) == ALL


async def test_after_an_import_the_pages_are_asked_for_again_once_a_week_at_most(
    proxy: Proxy, origin: Origin
) -> None:
    """R30: all posts have one instant of change, and a tie is no news."""
    blog = WordPress(origin, posts=45)
    blog.bulk_edit(blog.posts)
    feed = Feed(proxy, blog)
    await feed.whole()
    origin.forget_requests()
    for _ in range(3):
        await feed.later()
    assert len(origin.requests) <= 3 * 4
    await feed.later(WEEK)
    assert len(origin.requests) <= 4 * 4 + 1, (
        "after a week of 304 the subscription document is asked for once more"
    )


async def test_front_pages_that_failed_are_asked_for_the_next_time(proxy: Proxy, origin: Origin) -> None:
    """R30: though the subscription document is not new any more."""
    blog = WordPress(origin, posts=45)
    blog.orderby_ignored = True
    feed = Feed(proxy, blog)
    await feed.whole()
    for _ in range(25):
        blog.add()

    def refuse(_number: int, request: object) -> None:
        blog.refusal = 503 if "paged" in request.target else None  # type: ignore[attr-defined]

    blog.on_request = refuse
    assert (await feed.later(3600)).state == "partial"
    blog.on_request, blog.refusal = None, None
    assert feed.shown(await feed.later(DAY / 2)) == ALL


async def test_front_pages_that_failed_half_way_are_asked_for_the_next_time(
    proxy: Proxy, origin: Origin
) -> None:
    """R30: though the pages before them are no news any more."""
    blog = WordPress(origin, posts=45)
    blog.orderby_ignored = True
    feed = Feed(proxy, blog)
    await feed.whole()
    for _ in range(45):
        blog.add()

    def refuse(_number: int, request: object) -> None:
        blog.refusal = 503 if "paged=3" in request.target else None  # type: ignore[attr-defined]

    blog.on_request = refuse
    assert (await feed.later(3600)).state == "partial"
    blog.on_request, blog.refusal = None, None
    blog.edit(blog.posts[-1])
    assert feed.shown(await feed.later(DAY / 2)) == ALL


async def test_page_numbers_that_are_ignored_later_on_are_told(proxy: Proxy, origin: Origin) -> None:
    """R27, R31: page 2 repeats the subscription document: partial."""
    feed = Feed(proxy, WordPress(origin, posts=60, pretty=False))
    blog = feed.blog
    await feed.whole()
    blog.paged_ignored = blog.orderby_ignored = True
    for _ in range(25):
        blog.add()
    assert (await feed.later(3600)).state == "partial"
    blog.paged_ignored = blog.orderby_ignored = False
    assert feed.shown(await feed.later()) == ALL


@pytest.mark.parametrize("per_feed", [4, 25])
async def test_a_back_dated_post_appears_though_pages_have_another_length(
    proxy: Proxy, origin: Origin, per_feed: int
) -> None:
    """R30: and so another last page."""
    feed = await a_collected(proxy, origin, posts=95)
    feed.blog.per_feed = per_feed
    for _ in range(3):
        feed.blog.back_date(days=1800.5)
        origin.forget_requests()
        assert feed.shown(await feed.later()) == ALL
    assert len(origin.requests) <= 5


async def test_a_site_read_by_date_loses_nothing_between_two_looks(proxy: Proxy, origin: Origin) -> None:
    """R30: after five months without a reader, the proxy reads all pages."""
    feed = Feed(proxy, WordPress(origin, posts=45))
    feed.blog.queries = "ignored"
    assert (await feed.whole()).state == "collected"
    now = int(proxy.clock())
    for days in range(1, 150, 4):
        at = now + days * int(DAY)
        feed.blog.add(published=at, modified=at)
    assert feed.shown(await feed.later(151 * DAY)) == ALL


async def test_a_feed_that_comes_back_in_its_format_is_collected_again(proxy: Proxy, origin: Origin) -> None:
    """R23, R25, R29, R31: no post of the meantime is lost."""
    feed = await a_collected(proxy, origin)
    ever = feed.blog.identities()
    for form in ("atom", "rss2", "atom"):
        for _ in range(25):
            feed.blog.add()
        feed.blog.default_feed = form
        reply = await feed.later()
        assert reply.headers["Content-Type"].startswith(CONTENT_TYPES[form])
        assert feed.shown(reply) == ALL
        if form == "rss2":
            assert ever <= set(own_ids(reply.body))
        feed.blog.delete(feed.blog.posts[3])
