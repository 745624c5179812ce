"""The pages of a WordPress feed: the state of asking for them, and their URLs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, urljoin, urlsplit, urlunsplit

from wholefeed.core.adapters.base import (
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    PageQuestion,
    PageResponse,
    Refused,
    page_url,
)
from wholefeed.core.model import EntryId
from wholefeed.core.text.dates import parse_rfc822

BY_ID: Final = "orderby=ID"
FROM_FRONT: Final = "paged"
AskFor = Callable[..., PageQuestion]
"""Makes the question for a page number; see `WordPressPages.ask_by_id`."""


class WordPressPages:
    def __init__(self, job: AdapterJob) -> None:
        self.job = job
        self.first = job.page.identities
        self.length = self.full
        """Entries now on a full page; a change leaves the document's validators alone."""
        self._places = {identity: place for place, identity in enumerate(self.first)}
        self.met: set[EntryId] = set(self.first)
        self.recent: set[EntryId] = set()
        """New entries of a look for news, with perhaps a few known ones."""
        self.total: int | None = None
        self.latest_date = job.page.updated_at
        self.dates: set[float | None] = set()
        self.has_queries = True
        """Whether the publisher reads parameters; some caches ignore them."""
        self.latest_validators: tuple[str, str] | None = None
        self.probed: dict[int, AdapterPage] = {}
        self.reading = 0
        self.is_tied = False
        """Whether changed posts share a date, so that the order of change is useless."""
        self.are_told = True
        """Whether validators show changes: some caches make up new ones each time."""
        self.unsettled = ""
        """Why entries may have moved from page to page unseen; for people."""
        self.has_gaps = False
        """Whether a needed page is missing; the driver reports it."""
        self.refused: Refused | None = None

    @property
    def is_refused(self) -> bool:
        return self.refused is not None

    @property
    def full(self) -> int:
        """Count of entries on a full page: the subscription document is one, or has all entries."""
        return max(1, len(self.first))

    @property
    def began_date(self) -> float | None:
        """The publisher's last change before the first page."""
        return self.job.known.began_date if self.job.known.is_begun else _date_of(self.job.page)

    @property
    def has_moved(self) -> bool:
        """Whether anything was published or changed since `began_date`, or nothing tells."""
        page, latest = self.job.page, self.latest_validators
        return latest is not None and (
            latest != page.validators or latest == ("", "") or self.began_date != _date_of(page)
        )

    def ask_by_id(self, number: int, **kinds: bool) -> PageQuestion:
        url = _number_url(page_url(self.job.url, orderby="ID", order="ASC"), number)
        return PageQuestion(url, place=-number, reading=self.reading, **kinds)

    def ask_from_front(self, number: int, **kinds: bool) -> PageQuestion:
        """Ask for a page in the feed's own order; the first is the subscription document by another URL."""
        url = self.job.url
        url = page_url(url, paged=number) if number > 1 else page_url(url, orderby="date", order="DESC")
        return PageQuestion(url, place=_FRONT_PLACE + number, reading=self.reading, **kinds)

    def ask_by_change(self, number: int) -> PageQuestion:
        url = _number_url(page_url(self.job.url, orderby="modified"), number)
        return PageQuestion(url, place=_MODIFIED_PLACE + number, is_again=True, reading=_BY_CHANGE)

    def meet(self, page: AdapterPage) -> int:
        before = len(self.met)
        self.met.update(page.identities)
        self.dates.add(page.updated_at)
        self.latest_validators = page.validators
        self.latest_date = _later(self.latest_date, page.updated_at)
        return len(self.met) - before

    def take(self, answer: PageResponse) -> AdapterPage | None:
        if isinstance(answer, AdapterPage) and answer.identities:
            self.meet(answer)
            return answer
        if isinstance(answer, Refused) and not answer.is_gone:
            self.refused = answer
        return None

    def repeats(self, page: AdapterPage) -> bool:
        """Return whether a page is the subscription document again, perhaps with newly published posts.

        The last page by ID may hold the same entries, in the opposite order.
        """
        if page.identities == self.first:
            return True
        common = [each for each in page.identities if each in self._places]
        places = [self._places[each] for each in common]
        return len(common) > max(1, len(self.first) // 2) and places == sorted(places)

    def outcome(self, way: str, pages: int) -> AdapterOutcome:
        known = self.job.update_collection(
            way=way,
            pages=pages,
            page_entries=self.full,
            total=self.total,
            collected=len(self.met),
            scanned_date=self.latest_date,
            is_tied=self.is_tied,
            is_flat=len(self.dates) == 1 and pages > 1,
            top_at=self.job.top_at,
        )
        unsettled = self.unsettled or self._lack
        return AdapterOutcome(
            is_honoured=True,
            is_whole=not (unsettled or self.is_refused),
            known=known,
            reason=unsettled if self.refused is None else self.refused.slug,
            wants_all=bool(unsettled),
        )

    @property
    def _lack(self) -> str:
        """The reason if so many counted posts are missing that these pages cannot be right."""
        met, total = len(self.met), self.total or 0
        if self.is_refused or self.has_gaps or 2 * met >= total or total - met < _LACKING:
            return ""
        return f"the publisher claims {total} entries, and its pages showed {met}"


# A smaller lack proves nothing: some plugins hide posts.
_LACKING: Final = 20

# Rank of pages in the feed's order: before those by ID, which count down from 0.
_FRONT_PLACE: Final = -2_000_000_000
# Rank of pages in the order of change: before those by ID, too.
_MODIFIED_PLACE: Final = -1_000_000_000
# The reading for the order of change: most entries are known, so it needs its own bounds.
_BY_CHANGE: Final = 2


def _number_url(url: str, number: int) -> str:
    """Return a page's URL: WordPress redirects number 1 to the one without a number."""
    # Facts: WordPress reads `paged`, `orderby` and `order` on every feed of posts.
    return page_url(url, paged=number) if number > 1 else url


def _date_of(page: AdapterPage) -> float | None:
    """Return the publisher's last change, as far as a document tells.

    Last-Modified covers the whole site, the dates in the document only its own posts.
    """
    return parse_rfc822(page.validators[1]) or page.updated_at


def _later(one_date: float | None, other: float | None) -> float | None:
    dates = [date for date in (one_date, other) if date is not None]
    return max(dates, default=None)


def has_entries(answer: object) -> bool:
    return isinstance(answer, AdapterPage) and bool(answer.identities)


# URLs of a site


def is_left_alone(url: str) -> bool:
    """Return whether a feed is one of comments, or its URL has parameters of pages already (R26).

    A parameter for the number of entries selects no page, and WordPress reads none.
    """
    # WordPress ignores empty parameters. Plugins that read one for the number of entries do so on pages, too.
    # `withcomments` shows in the document (`Marks.has_comments`).
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    is_of_comments = _COMMENTS.search(parts.path) or _COMMENTS.search(query.get("feed", ""))
    return bool(is_of_comments or _PAGED_PATH.search(parts.path) or query.keys() & _PAGING)


_COMMENTS: Final = re.compile(r"/comments/feed(?:/|$)|^comments-")
_PAGED_PATH: Final = re.compile(r"/page/\d+/")
_PAGING: Final = frozenset(
    {
        *("paged", "page", "offset", "order", "orderby"),
        *("m", "year", "monthnum", "day", "w", "hour", "minute", "second", "p", "page_id"),
        "attachment_id",
    }
)


def is_main(url: str, api_url: str) -> bool:
    """Return whether a feed has all posts of the site with this REST API (R28)."""
    parts, api = urlsplit(url), urlsplit(api_url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    root = _site_root(api.path)
    path = _FEED_PATH.match(parts.path)
    if path is not None:
        return path["root"] == root and not query
    file = _FEED_FILE.match(parts.path)
    return file is not None and file["root"] == root and [name for name, _ in query] == ["feed"]


def is_part(job: AdapterJob) -> bool:
    """Return whether a feed may have only a part of the posts; without a REST API link, by its path."""
    return not is_main(job.url, job.page.marks.api_url or urljoin(job.url, "/wp-json/"))


_FEED_PATH: Final = re.compile(r"^(?P<root>.*/)(?P<feed>feed(?:/(?:rss2|rss|atom|rdf))?/?)$")
_FEED_FILE: Final = re.compile(r"^(?P<root>.*/)(?:index\.php)?$")


def _site_root(api_path: str) -> str:
    """Return the site's root: the REST API is at `wp-json/` below it, or at the root with `?rest_route=/`."""
    return (
        api_path[: -len("wp-json/")] if api_path.endswith("/wp-json/") else api_path.removesuffix("index.php")
    )


def is_at_same_host(url: str, api_url: str) -> bool:
    parts, api = urlsplit(url), urlsplit(api_url)
    return (parts.hostname, parts.port) == (api.hostname, api.port) and api.scheme in ("http", "https")


def count_url(api_url: str) -> str:
    # `X-WP-Total` counts the site's published posts.
    parts = urlsplit(api_url)
    if parts.query:
        return urlunsplit(parts._replace(query=f"{parts.query}wp/v2/posts&per_page=10&_fields=id"))
    return f"{api_url}wp/v2/posts?per_page=10&_fields=id"


def dated_url(url: str, *numbers: int) -> str | None:
    """Return the feed of a year, a month or a day; None without pretty links, or for a dated feed."""
    # If links are pretty, a date archive's feed stands below its own path.
    parts = urlsplit(url)
    path = _FEED_PATH.match(parts.path)
    if path is None or parts.query or _DATED.search(path["root"]):
        return None
    folders = "".join(f"{number:02d}/" for number in numbers)
    return urlunsplit((parts.scheme, parts.netloc, f"{path['root']}{folders}{path['feed']}", "", ""))


_DATED: Final = re.compile(r"/\d{4}(?:/\d{2}){0,2}/$")
