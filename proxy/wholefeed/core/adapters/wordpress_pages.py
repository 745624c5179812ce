"""The pages of a WordPress feed: what is known while they are asked for, and the URLs of each.

Facts: WordPress reads `paged`, `orderby` and `order` on every feed of posts; a date archive's feed stands
below its own path where links are pretty; `X-WP-Total` of the REST API counts the site's published posts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, urljoin, urlsplit, urlunsplit

from wholefeed.core.adapters.base import Answer, Ask, Job, Outcome, Page, Refused, page_url
from wholefeed.core.model import EntryId
from wholefeed.core.text.dates import parse_rfc822

BY_ID: Final = "orderby=ID"
FROM_FRONT: Final = "paged"
AskFor = Callable[..., Ask]
"""Makes the question for a page by its number; see `Pages.by_id` and `Pages.front`."""


class Pages:
    """What is known of the pages while they are asked for."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.first = job.page.identities
        """Of the subscription document, from the top."""
        self.length = self.full
        """How many entries a full page has now. The subscription document does not tell when that changes:
        its validators stay as they were."""
        self._places = {identity: place for place, identity in enumerate(self.first)}
        self.met: set[EntryId] = set(self.first)
        self.recent: set[EntryId] = set()
        """Of a look for news: what is new in the feed's own order, and perhaps a little that is not."""
        self.total: int | None = None
        self.latest_date = job.page.updated_at
        self.dates: set[float | None] = set()
        self.has_queries = True
        """Whether the publisher reads parameters; some caches in front answer without them."""
        self.latest_validators: tuple[str, str] | None = None
        """Of the page that came last."""
        self.probed: dict[int, Page] = {}
        """Pages by ID that came when they were counted."""
        self.reading = 0
        """Which reading of the pages it is: one may be made once more."""
        self.is_tied = False
        """Whether posts were changed meanwhile that the order of change does not tell apart."""
        self.are_told = True
        """Whether validators tell that something moved: caches make them up, of each page or each answer."""
        self.unsettled = ""
        """Why entries may have slipped from page to page unseen; for people."""
        self.has_gaps = False
        """Whether a page that has to be there could not be had; the driver tells of it."""
        self.refused: Refused | None = None
        """What ended the questions before their end."""

    @property
    def is_refused(self) -> bool:
        """Whether something could not be asked for."""
        return self.refused is not None

    @property
    def full(self) -> int:
        """How many entries a full page has: the subscription document is one, or all there is."""
        return max(1, len(self.first))

    @property
    def began_date(self) -> float | None:
        """When the publisher had changed something last, before the first page was asked for."""
        return self.job.known.began_date if self.job.known.is_begun else _date_of(self.job.page)

    @property
    def has_moved(self) -> bool:
        """Whether something was published or changed since then; also where nothing tells."""
        page, latest = self.job.page, self.latest_validators
        return latest is not None and (
            latest != page.validators or latest == ("", "") or self.began_date != _date_of(page)
        )

    def by_id(self, number: int, **kinds: bool) -> Ask:
        """Ask for a page in the order of IDs, the oldest first; `kinds` are fields of the question."""
        url = _numbered(page_url(self.job.url, orderby="ID", order="ASC"), number)
        return Ask(url, place=-number, reading=self.reading, **kinds)

    def front(self, number: int, **kinds: bool) -> Ask:
        """Ask for a page in the feed's own order; the first is the subscription document by another URL."""
        url = self.job.url
        url = page_url(url, paged=number) if number > 1 else page_url(url, orderby="date", order="DESC")
        return Ask(url, place=_FRONT_PLACE + number, reading=self.reading, **kinds)

    def modified(self, number: int) -> Ask:
        """Ask for a page in the order of change, the latest first."""
        url = _numbered(page_url(self.job.url, orderby="modified"), number)
        return Ask(url, place=_MODIFIED_PLACE + number, is_again=True, reading=_BY_CHANGE)

    def meet(self, page: Page) -> int:
        """Take in what a page has; return how many of its entries were not met before."""
        before = len(self.met)
        self.met.update(page.identities)
        self.dates.add(page.updated_at)
        self.latest_validators = page.validators
        self.latest_date = _later(self.latest_date, page.updated_at)
        return len(self.met) - before

    def take(self, answer: Answer) -> Page | None:
        """Take in a page with entries; None where there is none, noting what cannot be asked for."""
        if isinstance(answer, Page) and answer.identities:
            self.meet(answer)
            return answer
        if isinstance(answer, Refused) and not answer.is_gone:
            self.refused = answer
        return None

    def repeats(self, page: Page) -> bool:
        """Whether a page is the subscription document once more, though something may have been published.

        The last page by ID may hold the same entries, in the opposite order.
        """
        if page.identities == self.first:
            return True
        common = [each for each in page.identities if each in self._places]
        places = [self._places[each] for each in common]
        return len(common) > max(1, len(self.first) // 2) and places == sorted(places)

    def outcome(self, way: str, pages: int) -> Outcome:
        """Return what came of asking for all pages."""
        known = self.job.collected(
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
        return Outcome(
            is_honoured=True,
            is_whole=not (unsettled or self.is_refused),
            known=known,
            reason=unsettled if self.refused is None else self.refused.slug,
            wants_all=bool(unsettled),
        )

    @property
    def _lack(self) -> str:
        """Said where so few of the posts that the publisher counts were met that its pages are not these."""
        met, total = len(self.met), self.total or 0
        if self.is_refused or self.has_gaps or 2 * met >= total or total - met < _LACKING:
            return ""
        return f"the publisher claims {total} entries, and its pages showed {met}"


_LACKING: Final = 20
"""Few posts that are counted and not shown prove nothing: some plugins hide them."""

_FRONT_PLACE: Final = -2_000_000_000
"""Pages as the feed orders them stand in front of those by ID, which count down from 0."""
_MODIFIED_PLACE: Final = -1_000_000_000
"""So do those in the order of change."""
_BY_CHANGE: Final = 2
"""What was changed was mostly met before: to ask for it is a reading of its own."""


def _numbered(url: str, number: int) -> str:
    """WordPress leads a page of number 1 to the URL without a number."""
    return page_url(url, paged=number) if number > 1 else url


def _date_of(page: Page) -> float | None:
    """Return when the publisher changed anything last, as far as a document tells.

    Last-Modified is of the whole site; what stands in the document is of its own posts.
    """
    return parse_rfc822(page.validators[1]) or page.updated_at


def _later(one_date: float | None, other: float | None) -> float | None:
    dates = [date for date in (one_date, other) if date is not None]
    return max(dates, default=None)


def has_entries(answer: object) -> bool:
    """Whether a page came, and something stands on it."""
    return isinstance(answer, Page) and bool(answer.identities)


# URLs of a site


def is_left_alone(url: str) -> bool:
    """Return whether a feed is one of comments, or bears parameters of pages already (R26).

    WordPress takes no notice of empty ones. A number of entries chooses no page, and WordPress reads none in
    URLs; plugins that do read it on pages, too. `withcomments` shows in what comes (`Marks.has_comments`).
    """
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
    """Return whether a feed has all posts of the site whose REST API stands at a URL (R28)."""
    parts, api = urlsplit(url), urlsplit(api_url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    root = _site_root(api.path)
    path = _FEED_PATH.match(parts.path)
    if path is not None:
        return path["root"] == root and not query
    file = _FEED_FILE.match(parts.path)
    return file is not None and file["root"] == root and [name for name, _ in query] == ["feed"]


def is_part(job: Job) -> bool:
    """Return whether a feed may have a part of the site's posts; where no REST API is named, by its path."""
    return not is_main(job.url, job.page.marks.api_url or urljoin(job.url, "/wp-json/"))


_FEED_PATH: Final = re.compile(r"^(?P<root>.*/)(?P<feed>feed(?:/(?:rss2|rss|atom|rdf))?/?)$")
_FEED_FILE: Final = re.compile(r"^(?P<root>.*/)(?:index\.php)?$")


def _site_root(api_path: str) -> str:
    """The REST API stands at `wp-json/` below the site, or at its root with `?rest_route=/`."""
    return (
        api_path[: -len("wp-json/")] if api_path.endswith("/wp-json/") else api_path.removesuffix("index.php")
    )


def is_at_same_host(url: str, api_url: str) -> bool:
    parts, api = urlsplit(url), urlsplit(api_url)
    return (parts.hostname, parts.port) == (api.hostname, api.port) and api.scheme in ("http", "https")


def count_url(api_url: str) -> str:
    """Return what tells the number of posts in its field X-WP-Total."""
    parts = urlsplit(api_url)
    if parts.query:
        return urlunsplit(parts._replace(query=f"{parts.query}wp/v2/posts&per_page=10&_fields=id"))
    return f"{api_url}wp/v2/posts?per_page=10&_fields=id"


def dated_url(url: str, *numbers: int) -> str | None:
    """Return the feed of a year, a month or a day; None where links are not pretty, or it is dated itself.

    `url` is of the feed with all posts; the numbers are year, then month, then day.
    """
    parts = urlsplit(url)
    path = _FEED_PATH.match(parts.path)
    if path is None or parts.query or _DATED.search(path["root"]):
        return None
    folders = "".join(f"{number:02d}/" for number in numbers)
    return urlunsplit((parts.scheme, parts.netloc, f"{path['root']}{folders}{path['feed']}", "", ""))


_DATED: Final = re.compile(r"/\d{4}(?:/\d{2}){0,2}/$")
