"""The simulator of WordPress answers as the recorded ones do, and as a test configures it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.origin import Origin
from tests.publishers.visitor import Visitor
from tests.publishers.wordpress import WordPress

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data/wordpress/recorded_6.6.json").read_text("utf-8")
)


@pytest.fixture
def wordpress(origin: Origin) -> WordPress:
    """A site of 300 posts with a port in its URL, as on loopback."""
    wordpress = WordPress(origin)
    wordpress.canonical = False
    return wordpress


@pytest.fixture
async def visitor(wordpress: WordPress) -> AsyncIterator[Visitor]:
    """A visitor of that site."""
    async with aiohttp.ClientSession() as session:
        yield Visitor(session, wordpress.url, wordpress.blog.title)


async def test_it_answers_as_recorded(wordpress: WordPress, visitor: Visitor) -> None:
    """Status, header fields, elements and posts equal a real WordPress's with the same posts."""
    for number in range(54):
        wordpress.add(f"Burst {number}")
    wordpress.back_date("Back")
    wordpress.edit(next(post for post in wordpress.posts if post.title == "Post 120"))
    etag = (await visitor.facts("/feed/"))["ETag"]
    for name, recorded in RECORDED.items():
        expected = {key: value for key, value in recorded.items() if key != "conditional"}
        headers = {"If-None-Match": etag} if recorded.get("conditional") else {}
        answered = await visitor.facts(recorded["target"], headers=headers)
        assert {key: answered[key] for key in expected} == expected, name


async def test_a_deletion_and_an_old_date_move_no_validator(wordpress: WordPress, visitor: Visitor) -> None:
    """All feeds share one pair of validators, which reflects the newest dates alone."""
    before = {
        target: await visitor.facts(target) for target in ("/feed/", "/feed/atom/", "/category/news/feed/")
    }
    assert len({facts["ETag"] for facts in before.values()}) == 1
    wordpress.delete(wordpress.posts[3])
    wordpress.back_date()
    after = await visitor.facts("/feed/")
    assert (after["ETag"], after["Last-Modified"]) == (
        before["/feed/"]["ETag"],
        before["/feed/"]["Last-Modified"],
    )
    wordpress.add()
    assert (await visitor.facts("/feed/rdf/"))["ETag"] != after["ETag"]


async def test_a_conditional_request_says_nothing_of_the_page(wordpress: WordPress, visitor: Visitor) -> None:
    """304 beyond the last page and for an empty month; unconditionally 404, and an empty 200."""
    etag = (await visitor.facts("/feed/"))["ETag"]
    statuses = [
        (await visitor.facts(target, headers=headers))["status"]
        for target in ("/feed/?paged=99", "/2018/05/feed/")
        for headers in ({"If-None-Match": etag}, {})
    ]
    assert statuses == [304, 404, 304, 200]


@pytest.mark.parametrize("name", ["rss2", "atom", "rdf"])
async def test_pages_by_id_hold_every_post_once(name: str, wordpress: WordPress, visitor: Visitor) -> None:
    """31 requests: thirty full pages, then 404."""
    targets = [wordpress.feed_url(name, orderby="ID", order="ASC", paged=page) for page in range(1, 32)]
    pages = [await visitor.facts(target.removeprefix(wordpress.url)) for target in targets]
    assert [page["status"] for page in pages] == [200] * 30 + [404]
    assert [post for page in pages for post in page["posts"]] == list(range(1, 301))


async def test_equal_dates_hide_posts(wordpress: WordPress, visitor: Visitor) -> None:
    """By date of change, pages lack some of 200 posts with one instant; by ID they have all."""
    wordpress.bulk_edit()
    seen = {key: set[int]() for key in ("modified", "ID")}
    for key, found in seen.items():
        for page in range(1, 31):
            found.update(await visitor.posts(f"/feed/?orderby={key}&order=ASC&paged={page}"))
    assert len(seen["ID"]) == 300
    assert 150 < len(seen["modified"]) < 290


async def test_archives_hold_their_own(wordpress: WordPress, visitor: Visitor) -> None:
    """Categories, authors, tags, words and dates each have a feed, with pages of its own."""
    assert await visitor.posts("/category/news/feed/?paged=10&order=ASC") == list(range(273, 301, 3))
    assert await visitor.posts("/author/guest/feed/?order=ASC") == list(range(5, 55, 5))
    assert await visitor.posts("/tag/long/feed/?orderby=ID&order=ASC") == list(range(4, 44, 4))
    assert await visitor.posts("/?s=post+29&feed=rss2&order=ASC") == [29, *range(290, 299)]
    assert await visitor.posts("/2019/feed/?order=ASC&paged=9") == list(range(81, 91))
    assert await visitor.posts("/2019/05/feed/") == [37, 36, 35, 34, 33, 32, 31, 30]
    assert await visitor.posts("/2019/05/13/feed/") == [33]
    plain = [await visitor.posts(f"/?feed=rss2&{date}") for date in ("m=201905", "year=2019&monthnum=5")]
    assert plain == [[37, 36, 35, 34, 33, 32, 31, 30]] * 2
    assert await visitor.posts("/?feed=rss2&year=2019&monthnum=5&day=13") == [33]


async def test_numbers_are_read_as_php_reads_them(wordpress: WordPress, visitor: Visitor) -> None:
    """0, words and numbers of twenty digits are page 1; numbers beyond the end and below 2^63 are 404."""
    first = await visitor.posts("/feed/")
    for number in ("0", "x", "1", "99999999999999999999"):
        assert await visitor.posts(f"/feed/?paged={number}") == first
    assert (await visitor.facts("/feed/?paged=4611686018427387904"))["status"] in (200, 404)
    assert (await visitor.facts("/feed/?paged=31", method="HEAD"))["status"] == 404


LED_ON = [
    ("/feed", "/feed/"),
    ("/feed/?paged=1", "/feed/"),
    ("/feed/?orderby=ID&order=ASC&paged=1", "/feed/?orderby=ID&order=ASC"),
    ("/feed/?orderby=ID&order=ASC&paged=2", None),
    ("/feed/?paged=2&order=ASC", "/feed/?order=ASC&paged=2"),
    ("/feed/?paged=99999999999999999999", "/feed/?paged=9223372036854775807"),
    ("/feed/?paged=-2", "/feed/?paged=2"),
    ("/feed/?paged=0", None),
    ("/feed/?paged=31", None),
    ("/?feed=atom&paged=3", "/feed/atom/?paged=3"),
    ("/?feed=rss2&cat=2&paged=3", "/category/news/feed/?paged=3"),
    ("/feed/?cat=2", None),
    ("/?tag=long&feed=rss2", "/tag/long/feed/"),
    ("/?feed=rss2&year=2019&monthnum=5", "/feed/"),
    ("/feed/?m=201905", "/feed/"),
    ("/?author=2&feed=rss2", "/feed/"),
    ("/?s=lorem&feed=rss2&paged=1", None),
    ("/page/2/feed/", "/feed/"),
    ("/2019/05/feed/?order=ASC", None),
    ("/index.php?feed=rss2", "/feed/"),
]
"""Requests, and WordPress 6.1.9's redirects of them under a host name without a port."""


async def test_a_site_without_a_port_leads_to_the_usual_address(
    wordpress: WordPress, visitor: Visitor
) -> None:
    """The real one redirects likewise, page 1 included."""
    wordpress.canonical = True
    for target, location in LED_ON:
        facts = await visitor.facts(target)
        assert facts.get("location") == (location and "{site}" + location), target
        assert (facts["status"] == 301) == (location is not None), target


async def test_rest_counts_its_own_pages(origin: Origin, wordpress: WordPress, visitor: Visitor) -> None:
    """REST pages have the requested size, independent of the feed's."""
    wordpress = WordPress(origin, posts=42, prefix="/blog", per_feed=15)
    wordpress.canonical = False
    visitor.url = wordpress.url
    head = await visitor.facts("/wp-json/wp/v2/posts?per_page=10", method="HEAD")
    assert (head["X-WP-Total"], head["X-WP-TotalPages"]) == ("42", "5")
    assert [len(await visitor.posts(f"/feed/?paged={page}")) for page in (1, 2, 3, 4)] == [15, 15, 12, 0]
    wordpress.rest_status = 401
    assert (await visitor.facts("/wp-json/wp/v2/posts?per_page=10", method="HEAD"))["status"] == 401


async def test_a_scheduled_post_goes_live_with_a_low_id(wordpress: WordPress, visitor: Visitor) -> None:
    """Absent before, it is then the newest by date and the oldest by ID, and moves the validators."""
    post = wordpress.schedule("Post 999")
    before = await visitor.facts("/feed/")
    assert 999 not in before["posts"]
    wordpress.go_live(post)
    after = await visitor.facts("/feed/")
    assert after["posts"][0] == 999
    assert after["ETag"] != before["ETag"]
    assert (await visitor.posts("/feed/?orderby=ID&order=ASC"))[0] == 999


async def test_the_ways_in_which_a_site_ignores_what_it_is_asked(
    wordpress: WordPress, visitor: Visitor
) -> None:
    """A cache in front ignores or removes the query string; a plugin ignores the page or the order."""
    target = "/feed/?orderby=ID&order=ASC&paged=2"
    newest = await visitor.posts("/feed/")
    wordpress.paged_ignored = True
    assert await visitor.posts(target) == list(range(1, 11))
    wordpress.paged_ignored, wordpress.orderby_ignored = False, True
    assert await visitor.posts(target) == [post - 10 for post in newest]
    wordpress.queries = "ignored"
    assert await visitor.posts(target) == newest
    assert await visitor.posts("/2019/05/feed/?x=1") == [37, 36, 35, 34, 33, 32, 31, 30]
    wordpress.queries = "redirected"
    assert (await visitor.facts(target))["location"] == "{site}/feed/"


async def test_it_refuses_and_changes_in_the_middle(
    origin: Origin, wordpress: WordPress, visitor: Visitor
) -> None:
    """The hook sees each request before its answer; requests are recorded."""

    def change(number: int, request: object) -> None:
        if number == 2:
            wordpress.add("Post 1000")
        if number == 3:
            wordpress.refusal, wordpress.retry_after_seconds = 429, 30

    wordpress.on_request = change
    assert (await visitor.posts("/feed/"))[0] == 300
    assert (await visitor.posts("/feed/"))[0] == 1000
    refused = await visitor.facts("/feed/", method="HEAD")
    assert (refused["status"], refused["Retry-After"]) == (429, "30")
    assert [(request.method, request.target) for request in origin.requests] == [
        ("GET", "/feed/"), ("GET", "/feed/"), ("HEAD", "/feed/"),
    ]  # fmt: skip


async def test_a_plain_site_and_one_of_wordpress_com(
    origin: Origin, wordpress: WordPress, visitor: Visitor
) -> None:
    """A site without permalinks names its interface otherwise; one of WordPress.com names none."""
    site = WordPress(origin, posts=12, prefix="/plain", pretty=False)
    visitor.url = site.url
    plain = await visitor.facts(site.feed_url("atom", paged=2).removeprefix(site.url))
    assert (plain["posts"], plain["link"]) == (
        [2, 1],
        '<{site}/index.php?rest_route=/>; rel="https://api.w.org/"',
    )
    assert (await visitor.facts("/?rest_route=/wp/v2/posts", method="HEAD"))["X-WP-Total"] == "12"
    visitor.url = WordPress(origin, posts=12, prefix="/com", wordpress_com=True).url
    hosted = await visitor.facts("/feed/")
    assert "link" not in hosted
    assert hosted["head"].count("atom:link") == 3
