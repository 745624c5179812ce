"""H2 to H5 on sites that real generators have built: all posts of a list, and nothing else."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import pytest

from tests.sites.built import LAYOUTS
from tests.sites.site import URL, Found, Site
from tests.sites.test_sites import entries
from wholefeed.core.listing import finding
from wholefeed.core.listing.file_search import (
    MOST_FILES,
    FileRequest,
    SitemapNames,
    SitemapNamesRequest,
    SitemapRequest,
)
from wholefeed.core.listing.finding import Answer, ListJob, LookMemory, NotHad, PageRequest, look
from wholefeed.core.listing.lists import FeedEntry
from wholefeed.core.listing.page_links import link_key
from wholefeed.core.listing.page_reading import read_page
from wholefeed.core.listing.search_indexes import read_index
from wholefeed.core.listing.sitemaps import read_sitemap
from wholefeed.core.text.dates import DAY_SECONDS

every_site = pytest.mark.parametrize("name", LAYOUTS)
ASite = Callable[[str], Site]
NOW: Final = 1_900_000_000.0
LEAST_FOUND: Final = 0.95
MOST_REDIRECTS: Final = 5


class Looking(NamedTuple):
    """What came of a look at a site."""

    found: finding.FoundLists
    requests: int
    """With the one for robots.txt."""

    @property
    def keys(self) -> list[str]:
        return [link_key(entry.link) for page in self.found.pages for entry in page.entries]


class Robots:
    """What a site forbids."""

    def __init__(self, site: Site) -> None:
        found = site.get("/robots.txt")
        self._parser = RobotFileParser()
        is_there = isinstance(found, Found) and found.content_type.startswith("text/plain")
        self._parser.parse(found.body.decode().splitlines() if is_there and isinstance(found, Found) else [])

    def allow(self, url: str) -> bool:
        return self._parser.can_fetch("wholefeed", url)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        return tuple(self._parser.site_maps() or ())


def a_job(site: Site) -> ListJob:
    """A job for a site, its feed read as these tests read it."""
    return ListJob(
        feed_url=URL + site.feed_path,
        home_urls=(home_of(site),),
        entries=tuple(
            FeedEntry(link=url, title=published.title, at=published.date.timestamp())
            for url, published in entries(site)
        ),
        site_of=lambda url: urlsplit(url).hostname or "",
        now=NOW,
    )


def home_of(site: Site) -> str:
    """The page that its feed links: here, the folder above its list or feed that answers."""
    folders = [site.feed_path[: place + 1] for place, letter in enumerate(site.feed_path) if letter == "/"]
    return URL + next(folder for folder in reversed(folders) if isinstance(site.get(folder), Found))


def drive(site: Site, job: ListJob) -> Looking:
    """Look in a site, one request at a time."""
    robots, steps, requests = Robots(site), look(job), 1
    try:
        ask = next(steps)
        while True:
            if isinstance(ask, SitemapNamesRequest):
                ask = steps.send(SitemapNames(robots.sitemaps))
                continue
            requests += robots.allow(ask.url)
            ask = steps.send(answer(site, ask) if robots.allow(ask.url) else forbidden(ask.url))
    except StopIteration as stop:
        return Looking(stop.value, requests)


def forbidden(url: str) -> NotHad:
    return NotHad(url, "robots", None, True)


def answer(site: Site, ask: PageRequest | FileRequest) -> Answer:
    """What the site answers, redirects followed."""
    asked = url = ask.url
    for _ in range(MOST_REDIRECTS):
        parts = urlsplit(url)
        found = site.get(parts.path + (f"?{parts.query}" if parts.query else ""))
        if isinstance(found, Found):
            if isinstance(ask, SitemapRequest):
                sitemap = read_sitemap(found.body, url, found.content_type, ask.shape, ask.wanted)
                return sitemap or NotHad(asked, "not-a-sitemap", None, True)
            if not isinstance(ask, PageRequest):
                index = read_index(found.body, url, found.content_type)
                return index or NotHad(asked, "not-an-index", None, True)
            if not found.content_type.startswith("text/html"):
                return NotHad(asked, "not-html", None, True)
            return read_page(found.body, url, found.content_type)
        if found is None:
            break
        url = urljoin(url, found)
    return NotHad(asked, "http-status", 404, True)


IN_SITEMAPS: Final = {"no list: documentation", "no list: every path answers", "no list: newest alone"}
"""Sites without a list whose sitemaps name all posts and tell them from other pages (H10)."""


@every_site
def test_its_list_is_found_and_nothing_else(name: str, a_site: ASite) -> None:
    """H2 to H4, H10: 95 % of the posts where a list or a sitemap has them, else nothing, and no false one."""
    site = a_site(name)
    looking = drive(site, a_job(site))
    posts = {link_key(URL + path) for path in site.truth}
    met = posts & set(looking.keys)
    assert set(looking.keys) <= posts
    assert len(looking.keys) == len(set(looking.keys))
    if site.has_list or name in IN_SITEMAPS:
        assert len(met) >= LEAST_FOUND * len(posts), looking.found.looked
        assert not looking.found.missing
        assert not looking.found.is_cut
    else:
        assert not met
        assert looking.found.looked
    assert looking.requests <= len(site.list_pages) + finding.MOST_LOOKS + MOST_FILES + 1


@every_site
def test_its_entries_are_what_was_published(name: str, a_site: ASite) -> None:
    """H5: titles as published; exact dates are the posts' own, others lie within their span."""
    site = a_site(name)
    truth = {link_key(URL + path): published for path, published in site.truth.items()}
    spans = {"page": 1, "url": 1, "month": 31, "year": 366}
    for page in drive(site, a_job(site)).found.pages:
        for entry in page.entries:
            published = truth[link_key(entry.link)]
            title = " ".join(published.title.split())
            # a sitemap has no titles: only posts whose pages were read have one
            assert entry.title in ({"", title} if name in IN_SITEMAPS else {title})
            if entry.dated_by in spans:
                assert entry.at is not None
                days = (published.date.timestamp() - entry.at) / DAY_SECONDS
                assert -1 <= days <= spans[entry.dated_by], entry


@every_site
def test_a_second_look_reads_what_is_new(name: str, a_site: ASite) -> None:
    """H8: the first page alone where nothing is new, of a list of two levels the newest of these, too."""
    site = a_site(name)
    job = a_job(site)
    first = drive(site, job)
    known = LookMemory.of(json.loads(json.dumps(dataclasses.asdict(first.found.known))))
    again = drive(site, dataclasses.replace(job, known=known, known_keys=set(first.keys)))
    if site.has_list:
        assert again.requests <= 3
        assert set(again.keys) <= set(first.keys)
    assert again.found.known == known


def test_how_long_a_look_takes(a_site: ASite) -> None:
    """H9: the longest list of these sites is read within a second, and the same each time."""
    site = a_site("hugo cards")
    assert drive(site, a_job(site)) == drive(site, a_job(site))
