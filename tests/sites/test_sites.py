"""Each site is what it says: its feed is cut, its posts are there, and its list leads to all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from urllib.parse import quote, unquote, urljoin, urlsplit

import aiohttp
import feedparser
import pytest
import yarl

from tests.sites.built import LAYOUTS
from tests.sites.server import serving
from tests.sites.site import URL, Found, Site

every_site = pytest.mark.parametrize("name", LAYOUTS)
ASite = Callable[[str], Site]


def links(site: Site, path: str) -> set[str]:
    """Paths of the site that a page links."""
    found = site.get(path)
    assert isinstance(found, Found), path
    targets = re.findall(r"""<a\b[^>]*?\bhref=(?:"([^"]*)"|'([^']*)'|([^\s>]+))""", found.body.decode())
    urls = (urljoin(f"{URL}{path}", unescape("".join(each))) for each in targets)
    return {spelled(urlsplit(url).path) for url in urls if url.startswith(f"{URL}/")}


def spelled(path: str) -> str:
    """A path as `truth` spells it."""
    return quote(unquote(path), safe="/:@!$&'()*+,;=~")


def entries(site: Site) -> list[str]:
    """Paths of the entries of its feed."""
    found = site.get(site.feed_path)
    assert isinstance(found, Found)
    if found.content_type == "application/json":
        return [spelled(urlsplit(each["url"]).path) for each in json.loads(found.body)["items"]]
    feed = feedparser.parse(found.body)
    assert not feed.bozo, feed.bozo_exception
    return [spelled(urlsplit(entry.link).path) for entry in feed.entries]


@every_site
def test_its_feed_has_some_of_what_it_publishes(name: str, a_site: ASite) -> None:
    """Five to fifteen entries, fewer than there are posts; where there is a list, the newest in order."""
    site = a_site(name)
    found = entries(site)
    assert 5 <= len(found) <= 15
    if site.has_list:
        assert found == list(site.truth)[: len(found)]
    assert len(found) < len(site.truth)


@every_site
async def test_its_posts_are_there(name: str, a_site: ASite) -> None:
    """The URL of each post answers 200 with its page, and a path that nobody published 404."""
    site = a_site(name)
    async with serving(site) as server, aiohttp.ClientSession() as session:
        for path in site.truth:
            async with session.get(
                yarl.URL(f"{server.url}{path}", encoded=True), allow_redirects=False
            ) as response:
                assert response.status == 200, path
                assert URL not in await response.text()
        async with session.get(f"{server.url}/no-such-thing/") as response:
            assert response.status == (200 if site.answers_all else 404)
        assert server.requests.total() == len(site.truth) + 1


@every_site
def test_its_list_leads_to_all_posts(name: str, a_site: ASite) -> None:
    """The pages of its list link every post, each page some, or else other pages of the list."""
    site = a_site(name)
    found = {page: links(site, page) for page in site.list_pages}
    for page, linked in found.items():
        assert linked & (site.truth.keys() | {urlsplit(each).path for each in site.list_pages} - {page}), page
    if site.has_list:
        assert site.truth.keys() - set().union(*found.values()) == set()


def test_most_layouts_have_a_list() -> None:
    """There is something to find, and something to leave."""
    listed = [name for name, layout in LAYOUTS.items() if layout.lists]
    assert len(listed) >= 4
    assert all(name.startswith("no list: ") for name in LAYOUTS.keys() - set(listed))
