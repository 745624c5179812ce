"""A history that a sitemap or search index names (H10, H11), as readers see it."""

from __future__ import annotations

import gzip
import json
from typing import Any

import feedparser
import pytest

from tests.answers import Document, Status
from tests.listing import LISTS, look_again, looked
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage, Post
from tests.running import Proxy, StartProxy

DAY = 86400.0


@pytest.fixture
async def looking(start: StartProxy) -> Proxy:
    """A proxy that looks at publishers' pages."""
    return await start(history=LISTS)


@pytest.fixture
def blog(origin: Origin) -> ArchivePage:
    """A blog of 30 posts whose pages list none of them."""
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    for path in ("/", "/archive/"):
        origin.answer(path, page("<p>Welcome.</p>"))
    return blog


def page(body: str) -> Document:
    return Document(
        body=f"<!doctype html><html><body>{body}".encode(), headers=(("Content-Type", "text/html"),)
    )


def a_file(origin: Origin, path: str, body: bytes, content_type: str = "application/xml") -> None:
    origin.answer(path, Document(body=body, headers=(("Content-Type", content_type),)))


def a_sitemap(blog: ArchivePage, posts: list[Post] | None = None) -> bytes:
    urls = "".join(
        f"<url><loc>{blog.url(post)}</loc><lastmod>{post.day:%Y-%m-%d}</lastmod></url>"
        for post in posts or blog.newest_first
    )
    about = f"<url><loc>{blog.origin.url('/about/')}</loc></url>"
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0"?><urlset xmlns="{space}">{urls}{about}</urlset>'.encode()


async def listing_of(proxy: Proxy, url: str) -> dict[str, Any]:
    found: dict[str, Any] = (await proxy.status(url))["listing"]
    return found


def entries(body: bytes) -> list[tuple[str, str]]:
    return [
        ("/" + each.link.split("/", 3)[3], each.get("title", "")) for each in feedparser.parse(body).entries
    ]


async def test_entries_of_a_sitemap_are_in_the_feed_without_titles(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """H10: where robots.txt says, packed; links and days are the posts', no word of a URL is a title."""
    robots = f"User-agent: *\nDisallow: /private\nSitemap: {origin.url('/map.xml.gz')}\n"
    a_file(origin, "/robots.txt", robots.encode(), "text/plain")
    a_file(origin, "/map.xml.gz", gzip.compress(a_sitemap(blog)), "application/gzip")
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    reply = await looking.get(url)
    assert reply.state == "listed"
    assert entries(reply.body) == [
        (post.path, post.title if post.number > 25 else "") for post in blog.newest_first
    ]
    days = [f"{each.published[5:16]}" for each in feedparser.parse(reply.body).entries]
    assert days == [f"{post.day:%d %b %Y}" for post in blog.newest_first]
    assert origin.counts()["/map.xml.gz"] == origin.counts()["/robots.txt"] == 1
    told = await listing_of(looking, url)
    assert told["sources"] == [
        {"kind": "sitemap", "url": origin.url("/map.xml.gz"), "entries": 30, "alone": 0, "served": True}
    ]


async def test_entries_of_an_index_for_search_have_titles(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """H11: one file has everything, and is what is read again after a month."""
    posts = [
        {"title": post.title, "url": post.path, "date": f"{post.day:%Y-%m-%d}"} for post in blog.newest_first
    ]
    origin.answer("/", page("<script>find({ json: '/search.json' })</script>"))
    a_file(origin, "/search.json", json.dumps(posts).encode(), "application/json")
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    reply = await looking.get(url)
    assert reply.state == "listed"
    assert entries(reply.body) == [(post.path, post.title) for post in blog.newest_first]
    assert "/archives/" not in origin.counts()
    origin.forget_requests()
    looking.clock.advance(31 * DAY)
    await look_again(looking, url)
    counts = origin.counts()
    assert counts["/search.json"] == 1
    assert not {"/", "/archive/", "/sitemap.xml"} & set(counts)


async def test_a_sitemap_that_robots_txt_forbids_is_not_asked_for(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """H1, H10: wherever it is named."""
    robots = f"User-agent: *\nDisallow: /sitemap.xml\nSitemap: {origin.url('/sitemap.xml')}\n"
    a_file(origin, "/robots.txt", robots.encode(), "text/plain")
    a_file(origin, "/sitemap.xml", a_sitemap(blog))
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    assert (await looking.get(url)).state == "remembered"
    assert "/sitemap.xml" not in origin.counts()
    told = {each["url"]: each["reason"] for each in (await listing_of(looking, url))["passed_over"]}
    assert told[origin.url("/sitemap.xml")] == "robots"


async def test_a_sitemap_of_an_index_that_cannot_be_had_makes_it_partial(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """H7, H10, R14: with what was found; it is tried again in its time."""
    posts = list(blog.newest_first)
    parts = {"/map-1.xml": posts[:15], "/map-2.xml": posts[15:]}
    names = "".join(f"<sitemap><loc>{origin.url(path)}</loc></sitemap>" for path in parts)
    a_file(origin, "/sitemap.xml", f"<sitemapindex>{names}</sitemapindex>".encode())
    for path, some in parts.items():
        a_file(origin, path, a_sitemap(blog, some))
    origin.fault("/map-2.xml", Status(503))
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    reply = await looking.get(url)
    assert (reply.state, len(entries(reply.body))) == ("partial", 15 + 1)
    a_file(origin, "/map-2.xml", a_sitemap(blog, parts["/map-2.xml"]))
    looking.clock.advance(2 * 3600)
    await look_again(looking, url)
    reply = await looking.get(url)
    assert reply.state == "listed"
    assert {path for path, _ in entries(reply.body)} >= {post.path for post in blog.newest_first}


async def test_status_says_how_sources_differ(looking: Proxy, origin: Origin, blog: ArchivePage) -> None:
    """H10: a list that ends early is continued by the sitemap."""
    rows = "".join(f'<li><a href="{post.path}">{post.number}</a></li>' for post in blog.newest_first[:12])
    origin.answer("/archive/", page(f"<main><ul>{rows}</ul></main>"))
    origin.answer("/", page('<nav><a href="/archive/">Archive</a></nav>'))
    a_file(origin, "/sitemap.xml", a_sitemap(blog))
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    assert len(entries((await looking.get(url)).body)) == 30
    told = await listing_of(looking, url)
    assert [(each["kind"], each["entries"], each["alone"]) for each in told["sources"]] == [
        ("list", 12, 0),
        ("sitemap", 30, 18),
    ]
    shown = await looking.ask("GET", "/", params={"url": url}, headers={"Accept": "text/html"})
    assert b"18 only in its sitemap" in shown.body


async def test_posts_at_the_root_are_told_by_their_pages(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """H10: each page is asked for once; `/about-me/` has no date and is none, then and after a month."""
    posts = list(blog.newest_first)
    root = {post.number: f"/{post.path.strip('/').rpartition('/')[2]}-of-mine/" for post in posts}
    feed = blog._feed(blog.newest_first[:5])  # noqa: SLF001 - as blog.publish makes it
    for post in posts:
        feed = feed.replace(blog.url(post).encode(), origin.url(root[post.number]).encode())
        date, title = f"<time datetime={post.day:%Y-%m-%d}>then</time>", f"<h1>{post.title}</h1>"
        origin.answer(root[post.number], page(f"<article class=post>{title}{date}<p>Text.</article>"))
    origin.publish("/feed", feed, content_type="application/xml")
    origin.answer("/about-me/", page("<article><h1>About me</h1><p>Text.</article>"))
    paths = [*root.values(), "/about-me/"]
    urls = "".join(f"<url><loc>{origin.url(path)}</loc></url>" for path in paths)
    a_file(origin, "/sitemap.xml", f"<urlset>{urls}</urlset>".encode())
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    reply = await looking.get(url)
    assert reply.state == "listed"
    assert entries(reply.body) == [(root[post.number], post.title) for post in posts]
    counts = origin.counts()
    assert {counts[path] for path in paths if path != root[30]} <= {0, 1}
    origin.forget_requests()
    looking.clock.advance(31 * DAY)
    await look_again(looking, url)
    assert not set(origin.counts()) & set(paths)
    assert len(entries((await looking.get(url)).body)) == len(posts)


async def test_a_guess_that_is_refused_ends_that_guess_alone(
    looking: Proxy, origin: Origin, blog: ArchivePage
) -> None:
    """H1: no page or robots.txt names /sitemap.xml, so 403 says nothing of others; of a list it does."""
    rows = "".join(f'<li><a href="{post.path}">{post.title}</a></li>' for post in blog.newest_first)
    origin.answer("/", page("<p>Welcome."))
    origin.answer("/archives/", page(f"<main><ul>{rows}</ul></main>"))
    origin.fault("/sitemap.xml", Status(403))
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    assert origin.counts()["/sitemap.xml"] == 1
    reply = await looking.get(url)
    assert (reply.state, len(entries(reply.body))) == ("listed", 30)
