"""Small sites in memory, and the driver that looks for lists in them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from urllib.parse import urljoin, urlsplit

from wholefeed.core.listing.file_search import IndexRequest, SitemapNames, SitemapNamesRequest, SitemapRequest
from wholefeed.core.listing.finding import Answer, FoundLists, ListJob, LookMemory, NotHad, PageRequest, look
from wholefeed.core.listing.lists import FeedEntry
from wholefeed.core.listing.page_reading import ListPage, read_page
from wholefeed.core.listing.search_indexes import read_index
from wholefeed.core.listing.sitemaps import read_sitemap

HOST: Final = "https://a.example"
NOW: Final = datetime(2024, 6, 1, tzinfo=UTC).timestamp()
NEWEST: Final = datetime(2024, 5, 20, tzinfo=UTC)


def day_of(number: int) -> datetime:
    """The day of a post: post 0 is the newest, each other three weeks older than the one before."""
    return NEWEST - timedelta(days=21 * number)


def path_of(number: int) -> str:
    return f"/posts/{name_of(number)}/"


def name_of(number: int) -> str:
    return f"about-{'abcdefghij'[number % 10]}-{number}"


def title_of(number: int) -> str:
    return f"About {name_of(number)}"


def an_entry(number: int, **changes: object) -> FeedEntry:
    facts = {"link": HOST + path_of(number), "title": title_of(number), "at": day_of(number).timestamp()}
    return FeedEntry(**{**facts, **changes})  # type: ignore[arg-type]


def a_feed(count: int = 5) -> tuple[FeedEntry, ...]:
    return tuple(an_entry(number) for number in range(count))


def an_item(number: int, *, dated: bool = True) -> str:
    date = f"<time datetime={day_of(number):%Y-%m-%d}>then</time> " if dated else ""
    return f"<li>{date}<a href={path_of(number)}>{title_of(number)}</a>"


def a_list(numbers: Iterable[int], behind: str = "", *, dated: bool = True) -> str:
    """A page that lists posts."""
    return f"<main><ul>{''.join(an_item(number, dated=dated) for number in numbers)}</ul>{behind}</main>"


def in_pages(
    count: int, page_posts: int, target: str = "/page/{}/", word: str = "Older", first: str = "/"
) -> dict[str, str]:
    """All posts on numbered pages, each of which links the next one."""
    starts = range(0, count, page_posts)
    pages = {}
    for number, start in enumerate(starts, 1):
        behind = f"<a href={target.format(number + 1)}>{word}</a>" if start + page_posts < count else ""
        path = first if number == 1 else target.format(number)
        pages[path] = a_list(range(start, min(start + page_posts, count)), behind)
    return pages


@dataclass
class Looking:
    """What came of a look."""

    found: FoundLists
    asked: list[str]
    """The paths of the pages that were asked for, in order."""
    files: list[str]
    """The paths of sitemaps and search indexes that were asked for, in order."""

    @property
    def numbers(self) -> list[int]:
        """The posts that are listed, in order; a link of none fails."""
        posts = {HOST + path_of(number): number for number in range(5000)}
        return [posts[link.rstrip("/") + "/"] for link in self.links]

    @property
    def links(self) -> list[str]:
        return [entry.link for page in self.found.pages for entry in page.entries]

    @property
    def why(self) -> dict[str, str]:
        """Why pages did not count, by their paths."""
        return {each.url.removeprefix(HOST): each.why for each in self.found.looked}


def a_job(**changes: object) -> ListJob:
    facts: dict[str, object] = {
        "feed_url": f"{HOST}/feed.xml",
        "home_urls": (f"{HOST}/",),
        "entries": a_feed(),
    }
    return ListJob(**{**facts, "site_of": site_of, "now": NOW, **changes})  # type: ignore[arg-type]


def look_in(
    pages: Mapping[str, str | int],
    entries: Sequence[FeedEntry] | None = None,
    *,
    home_urls: tuple[str, ...] = (f"{HOST}/",),
    feed_url: str = f"{HOST}/feed.xml",
    most_pages: int = 200,
    known: LookMemory | None = None,
    known_keys: Container[str] = frozenset(),
    sitemaps: tuple[str, ...] = (),
    generator: str = "",
) -> Looking:
    """Look in a site: pages by their paths; a number is the status of an error, `->` a redirect.

    `sitemaps`: those that robots.txt names.
    """
    job = a_job(
        feed_url=feed_url,
        home_urls=home_urls,
        entries=a_feed() if entries is None else tuple(entries),
        most_pages=most_pages,
        known=known or LookMemory(),
        known_keys=known_keys,
        generator=generator,
    )
    steps, asked, files = look(job), list[str](), list[str]()
    try:
        ask = next(steps)
        while True:
            path = ask.url.removeprefix(HOST)
            if isinstance(ask, SitemapNamesRequest):
                ask = steps.send(SitemapNames(sitemaps))
            elif isinstance(ask, PageRequest):
                asked.append(path)
                ask = steps.send(answer(pages, ask.url))
            else:
                files.append(path)
                ask = steps.send(answer_file(pages, ask))
    except StopIteration as stop:
        return Looking(stop.value, asked, files)


def answer_file(pages: Mapping[str, str | int], ask: SitemapRequest | IndexRequest) -> Answer:
    """What is answered to a question for a sitemap or search index."""
    body = pages.get(ask.url.removeprefix(HOST), 404)
    if isinstance(body, int):
        return NotHad(ask.url, "robots" if body == 0 else "http-status", body or None, body in (0, 404, 410))
    if isinstance(ask, SitemapRequest):
        sitemap = read_sitemap(body.encode(), ask.url, "application/xml", ask.shape, ask.wanted)
        return sitemap or NotHad(ask.url, "not-a-sitemap", None, True)
    return read_index(body.encode(), ask.url, "application/json") or NotHad(
        ask.url, "not-an-index", None, True
    )


def site_of(url: str) -> str:
    return ".".join((urlsplit(url).hostname or "").split(".")[-2:])


def answer(pages: Mapping[str, str | int], url: str) -> ListPage | NotHad:
    """What is answered to one question."""
    body = pages.get(url.removeprefix(HOST), pages.get("*", 404))
    if isinstance(body, str) and body.startswith("-> "):
        return answer(pages, urljoin(url, body[3:]))
    if isinstance(body, int):
        slug = "robots" if body == 0 else "http-status"
        return NotHad(url, slug, body or None, body in (0, 404, 410))
    return read(body)._replace(url=url)


@lru_cache(maxsize=64)
def read(body: str) -> ListPage:
    """Read a page whose links begin with a slash, and mean the same wherever it is."""
    return read_page(body.encode(), f"{HOST}/", "text/html; charset=utf-8")
