"""Histories that publishers have but do not link, read page by page (rules R26 to R32).

The publisher is a simulated WordPress; `tests/publishers/test_real_collected.py` has a real one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.feeds import an_item, own_ids, rss
from tests.origin import Origin
from tests.publishers.blog import Post
from tests.publishers.collected import ALL, DAY, FORMATS, WEEK, Feed, pages_asked
from tests.publishers.wordpress import WordPress
from tests.running import Proxy

Change = Callable[[WordPress], object]

CHANGES: dict[str, Change] = {
    "added": lambda blog: blog.add(),
    "three added": lambda blog: [blog.add() for _ in range(3)],
    "deleted": lambda blog: blog.delete(blog.posts[7]),
    "three deleted": lambda blog: blog.delete(*blog.posts[3:20:7]),
    "edited": lambda blog: blog.edit(blog.posts[5]),
    "back-dated": lambda blog: blog.back_date(),
    "gone live with a low ID": lambda blog: blog.go_live(blog.schedule(post_id=2)),
    "bulk edit": lambda blog: blog.bulk_edit(),
}


def a_blog(origin: Origin, *, bulk_edit: bool = False, **options: Any) -> WordPress:
    attributes = {name: options.pop(name) for name in ("rest_status", "queries") if name in options}
    blog = WordPress(origin, **options)
    for name, value in attributes.items():
        setattr(blog, name, value)
    if bulk_edit:
        blog.bulk_edit()
    return blog


BLOGS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "300 posts, RSS": ("rss2", 30 + 4, {"posts": 300}),
    "300 posts, Atom": ("atom", 30 + 4, {"posts": 300}),
    "300 posts, RDF": ("rdf", 30 + 4, {"posts": 300}),
    # the number of pages has to be searched for
    "without the REST API": ("atom", 10 + 12, {"posts": 95, "rest_status": 403}),
    # `posts_per_rss` decides, not the REST API's ten a page
    "pages of 1": ("rss2", 45 + 5, {"posts": 45, "per_feed": 1}),
    "pages of 5": ("atom", 9 + 5, {"posts": 45, "per_feed": 5}),
    "pages of 15": ("rss2", 3 + 5, {"posts": 45, "per_feed": 15}),
    "pages of 60": ("rdf", 1 + 5, {"posts": 45, "per_feed": 60}),
    # R27: also where the subscription document is all there is
    "1 post": ("rss2", 6, {"posts": 1}),
    "9 posts": ("atom", 6, {"posts": 9}),
    "10 posts": ("rss2", 6, {"posts": 10}),
    "11 posts": ("rss2", 6, {"posts": 11}),
    "20 posts": ("rdf", 6, {"posts": 20}),
    # two thirds bear one `post_modified`, which no order by date of change survives
    "posts of one instant of change": ("rdf", 10, {"posts": 60, "bulk_edit": True}),
    # a cache in front: years, and the months of a full one
    "queries that are ignored": ("rss2", 30, {"posts": 60, "queries": "ignored"}),
    "queries that are redirected": ("rss2", 30, {"posts": 60, "queries": "redirected"}),
    # without permalinks there are `?feed=rss2` and the REST API at `?rest_route=/`
    "plain URLs": ("rdf", 5 + 4, {"posts": 45, "pretty": False}),
    "in a folder": ("rss2", 5 + 4, {"posts": 45, "prefix": "/blog"}),
    # R26: known by its generator; it names no REST API
    "WordPress.com": ("rss2", 20, {"posts": 45, "wordpress_com": True}),
}
"""Feed, maximum number of requests, and options of the blog."""


@pytest.mark.parametrize("name", BLOGS)
async def test_all_posts_of_a_blog_come(proxy: Proxy, origin: Origin, name: str) -> None:
    """R26 to R28, R31, R32: in few requests, two at a time, and the answer names the state.

    A 404 behind the last page is a normal end, without a note.
    """
    form, requests, options = BLOGS[name]
    feed = Feed(proxy, a_blog(origin, **options), form)
    with capture_logs() as logs:
        reply = await feed.whole()
    assert [line for line in logs if line["log_level"] != "info"] == []
    assert "wholefeed_documents_failed_total{" not in (await proxy.ask("GET", "/metrics")).body.decode()
    assert feed.shown(reply) == ALL
    assert f";entries={options['posts']};missing=0" in reply.reconstruction
    assert len(origin.requests) <= requests
    assert origin.peak_requests <= 2


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("api", [None, 403], ids=["counted", "searched"])
@pytest.mark.sample("*-rss2")
async def test_a_last_page_that_was_imported_newest_first_is_no_repetition(
    proxy: Proxy, origin: Origin, form: str, api: int | None
) -> None:
    """R27, R28: the last page reads like the feed; pages and news are still fetched by ID."""
    blog = WordPress(origin, posts=70)
    blog.rest_status = api
    for place in range(8):
        blog.back_date(days=20 + place)
    feed = Feed(proxy, blog, form)
    assert feed.shown(await feed.whole()) == ALL
    assert all("orderby=ID" in each for each in pages_asked(origin))
    blog.back_date()
    assert feed.shown(await feed.later()) == ALL


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.sample("*-rss2", "*added-*")
async def test_no_live_post_is_missing_when_the_blog_changes_in_the_middle_of_the_walk(
    proxy: Proxy,
    origin: Origin,
    form: str,
    change: str,
) -> None:
    """R28: at its end every live post is served."""
    blog = WordPress(origin, posts=48)
    blog.on_request = lambda number, _request: CHANGES[change](blog) if number == 6 else None
    feed = Feed(proxy, blog, form)
    assert feed.shown(await feed.whole()) == ALL


@pytest.mark.parametrize("number", range(2, 12))
@pytest.mark.sample("2", "5", "8", "11")
async def test_no_moment_of_the_walk_is_a_bad_one_for_a_post_to_go_live(
    proxy: Proxy, origin: Origin, number: int
) -> None:
    """R28: a scheduled post with a low ID, and a deletion."""
    blog = WordPress(origin, posts=48)
    later = blog.schedule(post_id=3)

    def change(count: int, _request: object) -> None:
        if count == number:
            blog.go_live(later)
        if count == number + 1:
            blog.delete(blog.posts[10])

    blog.on_request = change
    feed = Feed(proxy, blog)
    assert feed.shown(await feed.whole()) == ALL


@pytest.mark.parametrize(("number", "rest_status"), [(2, None), (4, None), (9, 403), (16, 403)])
async def test_pages_that_get_shorter_in_the_middle_of_the_walk_lose_nothing(
    proxy: Proxy, origin: Origin, number: int, rest_status: int | None
) -> None:
    """R28: `posts_per_rss` falls from ten to seven, and no validator shows the change."""
    blog = WordPress(origin, posts=200)
    blog.rest_status = rest_status
    blog.on_request = lambda count, _request: setattr(blog, "per_feed", 7) if count == number else None
    feed = Feed(proxy, blog)
    assert feed.shown(await feed.whole()) == ALL


async def test_pages_that_get_shorter_twice_are_partial_and_read_again_later(
    proxy: Proxy, origin: Origin
) -> None:
    """R28, R31: after one new beginning; its pages are not reused."""
    blog = WordPress(origin, posts=200)

    def change(count: int, _request: object) -> None:
        blog.per_feed = 10 if count < 8 else 7 if count < 26 else 5

    blog.on_request = change
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "partial"
    status = await proxy.status(feed.url)
    assert "the pages got shorter while they were read" in str(status["notes"]), status["notes"]
    blog.on_request = None
    origin.forget_requests()
    await feed.later(600)
    assert pages_asked(origin) == []
    assert feed.shown(await feed.later()) == ALL


@pytest.mark.parametrize("posts", [11, 20])
async def test_the_same_page_at_two_numbers_is_no_history(proxy: Proxy, origin: Origin, posts: int) -> None:
    """R27: the site ignores `paged` but obeys the order: pages 1 and 2 both hold the oldest posts."""
    blog = WordPress(origin, posts=posts, pretty=False)
    blog.paged_ignored = True
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "remembered"


@pytest.mark.parametrize("seed", [3, 16])
async def test_where_posts_are_published_before_most_requests_no_loss_is_silent(
    proxy: Proxy, origin: Origin, seed: int
) -> None:
    """R28: scheduled posts go live: one more pass, then partial."""
    chance = random.Random(seed)
    blog = WordPress(origin, posts=99)
    numbers = [*range(1, 11), *range(1000, 1030)]
    chance.shuffle(numbers)
    later = [blog.schedule(post_id=number) for number in numbers]
    old = blog.identities()

    def change(_count: int, _request: object) -> None:
        if later and chance.random() < 0.5:
            blog.go_live(later.pop(0))

    blog.on_request = change
    feed = Feed(proxy, blog)
    reply = await feed.whole()
    assert reply.state == "partial" or not feed.lacks(reply) & old
    blog.on_request = None
    assert feed.shown(await feed.later()) == ALL


@pytest.mark.fault("112")
@pytest.mark.parametrize("news", [8, 10, 12])
async def test_copies_of_different_age_are_no_pages(proxy: Proxy, origin: Origin, news: int) -> None:
    """R27, R28: three servers drop queries, each with its own copy."""
    blog = WordPress(origin, posts=150)
    blog.copies = 3

    def change(count: int, _request: object) -> None:
        if count <= 6:
            for _ in range(news):
                blog.add(category="news")

    blog.on_request = change
    feed = Feed(proxy, blog, under="category/news")
    assert (await feed.whole()).state == "remembered"
    assert len(origin.requests) <= 40
    blog.copies = 0
    reply = await feed.later(WEEK + 1)
    live = blog.identities(posts=[post for post in blog.posts if post.category == "news"])
    assert (reply.state, live - set(own_ids(reply.body))) == ("collected", set())


async def test_a_small_blog_that_grows_is_followed(proxy: Proxy, origin: Origin) -> None:
    """R30: nine posts become forty within a day."""
    feed = Feed(proxy, WordPress(origin, posts=9))
    await feed.whole()
    for _ in range(31):
        feed.blog.add()
    assert feed.shown(await feed.later(3600)) == ALL


@pytest.mark.parametrize("under", ["category/news", "author/guest", "search/lorem", "tag/long"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("atom-*")
async def test_feeds_of_a_part_of_the_site_are_collected(
    proxy: Proxy,
    origin: Origin,
    under: str,
    form: str,
) -> None:
    """R28: the proxy counts their pages by requests."""
    blog = WordPress(origin, posts=60)
    kind, _, name = under.partition("/")
    wanted = {
        "category": lambda post: post.category == name,
        "author": lambda post: post.author == name,
        "tag": lambda post: name in post.tags,
        "search": lambda post: True,
    }[kind]
    reply = await proxy.whole(blog.feed_url(form, under))
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) == blog.identities(form, filter(wanted, blog.posts))


def is_german(post: Post) -> bool:
    return post.id % 4 == 0


def is_shown(post: Post) -> bool:
    return post.category != "news"


PARTS: dict[str, tuple[str, Callable[[Post], bool], Callable[[str], bool], str]] = {
    "a language by a parameter": ("/feed/?lang=de", is_german, lambda target: "paged" not in target
        and "orderby" not in target, "remembered"),
    "a language by a path": ("/de/feed/", is_german, lambda target: "?" not in target, "remembered"),
    "a language, honoured": ("/de/feed/", is_german, lambda target: target.startswith("/de/"), "collected"),
    "a parameter, honoured": ("/feed/?lang=de", is_german, lambda target: "lang" in target, "collected"),
    "not by ID": ("/feed/?lang=de", is_german, lambda target: "orderby" not in target, "collected"),
    "a category that is left out": ("/feed/", is_shown, lambda target: target == "/feed/", "remembered"),
    "one that is left out everywhere": ("/feed/", is_shown, lambda target: True, "collected"),
    "archives by date": ("/de/feed/", is_german, lambda target: target == "/de/feed/", "remembered"),
}  # fmt: skip
"""The feed, its entries under the plugin, the plugin's place, and the expected result."""


@pytest.mark.parametrize("posts", [60, 146])
@pytest.mark.parametrize("name", PARTS)
async def test_nothing_comes_that_the_feed_leaves_out(
    proxy: Proxy, origin: Origin, name: str, posts: int
) -> None:
    """R27: pages without the feed's filter are left alone; pages with it in another order, or by date, are
    read that way."""
    path, wanted, chooses, state = PARTS[name]
    blog = WordPress(origin, posts=posts)
    blog.canonical, blog.wanted, blog.chooses = False, wanted, chooses
    if name == "archives by date":
        blog.queries, blog.api_link = "ignored", False
    live = list(filter(wanted, blog.posts))
    reply = await proxy.whole(blog.url + path)
    assert reply.state == state
    assert set(own_ids(reply.body)) == blog.identities(
        posts=live if state == "collected" else live[-blog.per_feed :]
    )
    if state == "remembered":
        assert len(origin.requests) <= 16
        status = await proxy.status(blog.url + path)
        assert "posts that the feed leaves out" in str(status["notes"])


async def test_a_feed_of_one_language_that_is_quiet_gets_no_other(proxy: Proxy, origin: Origin) -> None:
    """R27: all pages have newer posts, and none of the feed's."""
    blog = WordPress(origin, posts=200)
    blog.canonical = False
    blog.wanted, blog.chooses = (
        (lambda post: post.id < 60 and post.id % 4 == 0),
        lambda target: target == "/de/feed/",
    )
    reply = await proxy.whole(blog.url + "/de/feed/")
    assert (reply.state, len(own_ids(reply.body))) == ("remembered", 10)
    assert len(origin.requests) <= 15


@pytest.mark.parametrize(("is_honoured", "state"), [(True, "collected"), (False, "remembered")])
async def test_a_site_that_was_imported_the_newest_first_is_judged_at_its_end(
    proxy: Proxy, origin: Origin, is_honoured: bool, state: str
) -> None:
    """R27: the first pages are older than the feed and prove nothing."""
    blog = WordPress(origin, posts=146)
    blog.canonical = False
    dates = [post.published for post in blog.posts]
    for post, at in zip(blog.posts, reversed(dates), strict=True):
        post.published = post.modified = at
    blog.wanted = is_german
    blog.chooses = lambda target: target.startswith("/de/") and (is_honoured or "?" not in target)
    reply = await proxy.whole(blog.url + "/de/feed/")
    assert reply.state == state
    german = sorted(filter(is_german, blog.posts), key=lambda post: -post.published)
    expected = german if is_honoured else german[: blog.per_feed]
    assert set(own_ids(reply.body)) == blog.identities(posts=expected)


@pytest.mark.parametrize("number", range(2, 9))
async def test_a_post_that_is_published_amid_the_feed_s_is_not_strange(
    proxy: Proxy, origin: Origin, number: int
) -> None:
    """R27: a second fetch of the feed has it. Nor is a post that leaves the feed meanwhile."""
    blog = WordPress(origin, posts=45)

    def change(count: int, _request: object) -> None:
        if count == number:
            blog.back_date(days=(blog.blog.now - blog.posts[-3].published) / DAY + 1)
            blog.delete(blog.posts[-4])

    blog.on_request = change
    feed = Feed(proxy, blog)
    assert feed.shown(await feed.whole()) == ALL


@pytest.mark.parametrize("form", FORMATS)
async def test_old_posts_that_were_edited_are_not_strange(proxy: Proxy, origin: Origin, form: str) -> None:
    """R27: Atom dates them by their edit, among the newest."""
    blog = WordPress(origin, posts=45)
    for post in blog.posts[5:40:3]:
        blog.edit(post)
    feed = Feed(proxy, blog, form, "author/admin")
    reply = await feed.whole()
    admins = [post for post in blog.posts if post.author == "admin"]
    assert (reply.state, set(own_ids(reply.body))) == ("collected", blog.identities(form, admins))


@pytest.mark.parametrize("form", FORMATS)
async def test_pinned_posts_are_not_strange(proxy: Proxy, origin: Origin, form: str) -> None:
    """R27: an old post on top makes no span of years."""
    blog = WordPress(origin, posts=45)
    blog.sticky = (blog.posts[3].id, blog.posts[9].id)
    feed = Feed(proxy, blog, form)
    assert feed.shown(await feed.whole()) == ALL


async def test_a_day_with_more_posts_than_a_page_is_told(proxy: Proxy, origin: Origin) -> None:
    """R28, R31: no request reaches the eleventh post of a day: partial, despite looks for news."""
    blog = WordPress(origin, posts=30)
    for post in blog.posts[2:16]:
        post.published = blog.posts[2].published
    blog.queries = "ignored"
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "partial"
    origin.forget_requests()
    for _ in range(8):
        assert (await feed.later(DAY / 4)).state == "partial"
    assert len(origin.requests) <= 8 + 2 * 3
    blog.add()
    reply = await feed.later()
    assert reply.state == "partial"
    assert feed.lacks(reply) != set()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("atom")
async def test_where_the_order_is_ignored_the_pages_are_read_from_the_front(
    proxy: Proxy,
    origin: Origin,
    form: str,
) -> None:
    """R28: with a post added, and one deleted, in the middle."""
    blog = WordPress(origin, posts=48)
    blog.orderby_ignored = True

    def change(number: int, _request: object) -> None:
        if number == 7:
            blog.add()
        if number == 9:
            blog.delete(blog.posts[30])

    blog.on_request = change
    feed = Feed(proxy, blog, form)
    assert feed.shown(await feed.whole()) == ALL


async def test_a_site_without_pages_is_remembered_and_tried_again_after_a_week(
    proxy: Proxy, origin: Origin
) -> None:
    """R27: a note says so; no further requests."""
    blog = WordPress(origin, posts=45, pretty=False)
    blog.paged_ignored = True
    feed = Feed(proxy, blog)
    reply = await feed.whole()
    assert reply.state == "remembered"
    status = await proxy.status(feed.url)
    assert any("HistoryNotOffered" in str(note) for note in status["notes"]), status["notes"]
    for _ in range(6):
        origin.forget_requests()
        await feed.later()
        assert len(origin.requests) <= 1
    blog.paged_ignored = False
    assert feed.shown(await feed.later()) == ALL


@pytest.mark.parametrize("number", [3, 6])
async def test_a_walk_that_was_denied_is_over(proxy: Proxy, origin: Origin, number: int) -> None:
    """R27: later walks do not reuse its pages: beside news these would look like older pages."""
    blog = WordPress(origin, posts=101, pretty=False)
    blog.paged_ignored, blog.rest_status = True, 403
    blog.on_request = lambda count, _request: blog.add() if count == number else None
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "remembered"
    assert (await feed.later()).state == "remembered"
    for _ in range(5):
        blog.add()
    await proxy.refreshed(feed.url)
    assert (await feed.whole()).state == "remembered"
    blog.paged_ignored = False
    await proxy.refreshed(feed.url)
    assert feed.shown(await feed.whole()) == ALL


async def test_a_full_refresh_that_is_denied_is_made_up_for(proxy: Proxy, origin: Origin) -> None:
    """R27: collected entries stay, partial, until all pages can be fetched anew."""
    blog = WordPress(origin, posts=101, pretty=False)
    feed = Feed(proxy, blog)
    assert (await feed.whole()).state == "collected"
    blog.paged_ignored = True
    await proxy.refreshed(feed.url, full=True)
    assert (await feed.whole()).state == "partial"
    blog.paged_ignored = False
    blog.bulk_edit()
    reply = await feed.later()
    assert feed.shown(reply) == ALL
    edited = sum("Edited" in post.content for post in blog.posts)
    assert reply.body.count(b" Edited.") == 2 * edited  # in content:encoded and in description


# ---- Feeds without collecting


@pytest.mark.parametrize(
    "path",
    ["/comments/feed/", "/feed/?paged=2", "/feed/?orderby=modified", "/feed/?order=ASC", "/feed/?m=2019"],
)
async def test_comments_and_pages_are_left_alone(proxy: Proxy, origin: Origin, path: str) -> None:
    """R26: a requested page is fetched alone."""
    blog = WordPress(origin, posts=45)
    blog.canonical = False
    reply = await proxy.whole(blog.url + path)
    assert reply.state == "remembered"
    assert {request.target for request in origin.requests} == {path}


@pytest.mark.parametrize(
    "query", ["posts_per_page=50", "posts_per_rss=100", "showposts=5", "nopaging=1", "p=", "paged=&order="]
)
async def test_a_feed_with_a_limit_of_its_own_is_collected(proxy: Proxy, origin: Origin, query: str) -> None:
    """R26: a number of entries is no page."""
    blog = WordPress(origin, posts=45)
    blog.canonical = False
    reply = await proxy.whole(f"{blog.feed_url()}?{query}")
    assert (reply.state, set(own_ids(reply.body))) == ("collected", blog.identities())


async def test_a_feed_that_becomes_one_of_comments_is_left_alone(proxy: Proxy, origin: Origin) -> None:
    """R26: a parameter of WordPress makes it one; the response shows it."""
    blog = WordPress(origin, posts=45)
    blog.canonical = False
    assert (await proxy.whole(f"{blog.feed_url()}?withcomments=1")).state == "remembered"
    assert len(origin.requests) == 1


async def test_other_publishers_get_no_parameters(proxy: Proxy, origin: Origin) -> None:
    """R26: the shape of a path is no evidence."""
    WordPress(origin, posts=45)
    origin.publish("/feed/", rss(an_item("a", 1)), content_type="application/rss+xml")
    reply = await proxy.whole(origin.url("/feed/"))
    assert reply.state == "remembered"
    assert len(origin.requests) == 1


# ---- Names


async def test_collected_is_never_called_complete(proxy: Proxy, origin: Origin) -> None:
    """R31: even after all pages are read; `/status` agrees."""
    feed = Feed(proxy, WordPress(origin, posts=25))
    reply = await feed.whole()
    assert reply.state == "collected"
    assert b"complete" not in reply.body
    assert (await proxy.status(feed.url))["state"] == "collected"


async def test_the_pages_are_asked_for_from_the_last_to_the_first(proxy: Proxy, origin: Origin) -> None:
    """R28: by ID, then the last again."""
    await proxy.whole(WordPress(origin, posts=45).feed_url())
    order = "orderby=ID&order=ASC"
    pages = [*(f"{order}&paged={number}" for number in (5, 4, 3, 2)), order, f"{order}&paged=5"]
    assert pages_asked(origin) == pages
