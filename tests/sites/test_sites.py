"""Each site is what it says: its feed is cut, its posts are there, and its list leads to all of them."""

from __future__ import annotations

import json
import re
from calendar import timegm
from collections.abc import Callable
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

import aiohttp
import feedparser
import pytest
import yarl

from tests.sites.built import LAYOUTS
from tests.sites.server import serving
from tests.sites.site import URL, Found, Published, Site

every_site = pytest.mark.parametrize("name", LAYOUTS)
ASite = Callable[[str], Site]


class Entry(NamedTuple):
    """Of a feed."""

    url: str
    published: Published


def entries(site: Site) -> list[Entry]:
    """What its feed has."""
    found = site.get(site.feed_path)
    assert isinstance(found, Found)
    if found.content_type == "application/json":
        return [
            Entry(each["url"], Published(each["title"], datetime.fromisoformat(each["date_published"])))
            for each in json.loads(found.body)["items"]
        ]
    feed = feedparser.parse(found.body)
    assert not feed.bozo, feed.bozo_exception
    return [
        Entry(
            each.link,
            Published(
                unescape(each.get("title", "")), datetime.fromtimestamp(timegm(each.published_parsed), UTC)
            ),
        )
        for each in feed.entries
    ]


class Page(HTMLParser):
    """Collects where the links of a page lead."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.base = url
        self.targets: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href") or ""
        if tag == "base":
            self.base = target
        elif tag == "a":
            self.targets.add(urljoin(self.base, target))


def links(site: Site, path: str) -> set[str]:
    """What a page links of the site, as paths with their queries."""
    found = site.get(path)
    assert isinstance(found, Found), path
    page = Page(f"{URL}{path}")
    page.feed(found.body.decode())
    return {spelled(url) for url in page.targets if url.startswith(f"{URL}/")}


def spelled(url: str) -> str:
    """The path of a URL with its query, as a site spells it."""
    path, query = urlsplit(url).path, urlsplit(url).query
    return quote(unquote(path), safe="/:@!$&'()*+,;=~") + (f"?{query}" if query else "")


@every_site
def test_its_feed_has_some_of_what_it_publishes(name: str, a_site: ASite) -> None:
    """Five to fifteen entries of more posts; where there is a list, the newest of `truth` to the second."""
    site = a_site(name)
    found = entries(site)
    assert 5 <= len(found) <= 15
    assert len(found) < len(site.truth)
    if site.has_list:
        assert [(spelled(url), published) for url, published in found] == [*site.truth.items()][: len(found)]


@every_site
def test_its_feed_leads_nowhere(name: str, a_site: ASite) -> None:
    """It has no links of RFC 5005, and names no software of which the whole history could be asked."""
    site = a_site(name)
    found = site.get(site.feed_path)
    assert isinstance(found, Found)
    assert not re.search(rb"purl.org/syndication/history|next_url|rel=.(next|prev|first|last)", found.body)
    assert not re.search(rb"<generator[^>]*>(?!Hugo|Jekyll)", found.body)


@every_site
async def test_its_posts_are_there(name: str, a_site: ASite) -> None:
    """The URL of each post answers 200 with its page, and a path that nobody published 404."""
    site = a_site(name)
    async with serving(site) as server, aiohttp.ClientSession() as session:
        for path in site.truth:
            address = yarl.URL(f"{server.url}{path}", encoded=True)
            async with session.get(address, allow_redirects=False) as response:
                assert response.status == 200, path
                assert URL not in await response.text()
        async with session.get(f"{server.url}/no-such-thing/") as response:
            assert response.status == (200 if site.answers_all else 404)
        assert server.requests.total() == len(site.truth) + 1


@every_site
def test_its_list_leads_to_all_posts(name: str, a_site: ASite) -> None:
    """The pages of its list link every post, and each links posts or other pages of the list."""
    site = a_site(name)
    found = {page: links(site, page) for page in site.list_pages}
    for page, linked in found.items():
        assert linked & (site.truth.keys() | set(site.list_pages) - {page}), page
    if site.has_list:
        assert site.truth.keys() - set().union(*found.values()) == set()


async def test_a_server_answers_as_one_of_files_does(a_site: ASite) -> None:
    """It redirects to a folder with a slash, knows what a reader has, sends types, and counts all of it."""
    site = a_site("by hand offsets")
    async with serving(site) as server, aiohttp.ClientSession() as session:
        async with session.get(f"{server.url}/journal", allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (301, "/journal/")
        async with session.get(f"{server.url}/journal/") as response:
            assert response.content_type == "text/html"
            first, etag = await response.text(), response.headers["ETag"]
        async with session.get(f"{server.url}/journal/", headers={"If-None-Match": etag}) as response:
            assert response.status == 304
        async with session.get(f"{server.url}/journal/?offset=20") as response:
            assert await response.text() != first
        async with session.get(f"{server.url}/journal/?nothing=known") as response:
            assert await response.text() == first
        async with session.get(server.feed_url) as response:
            assert response.content_type == "application/xml"
            assert f"<link>{server.url}/</link>" in await response.text()
        async with session.get(f"{server.url}/robots.txt") as response:
            assert response.status == 404
        assert server.requests["/journal/"] == 2
        assert server.requests["/journal/?offset=20"] == 1


def test_most_layouts_have_a_list() -> None:
    """There is more to find than to leave; a name says which is which."""
    listed = {name for name, layout in LAYOUTS.items() if layout.lists}
    assert len(listed) > len(LAYOUTS) / 2
    assert {name for name in LAYOUTS if name.startswith("no list: ")} == LAYOUTS.keys() - listed
