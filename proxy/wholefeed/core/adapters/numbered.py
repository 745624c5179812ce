"""Publishers with pages that begin at a number or an instant (rules R26 to R32).

Changes meanwhile move all entries behind a number. So a page starts with the last entry of the page before
it. If it lacks that entry, the walk asks from further up, a few times: some publishers give nothing above
some number.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection as AbstractCollection
from dataclasses import replace
from typing import ClassVar, Final
from urllib.parse import urlsplit, urlunsplit

from wholefeed.core.adapters.base import (
    MOST_PAGES,
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Asking,
    PageQuestion,
    Refused,
    Sight,
    has_parameter,
    one,
    page_url,
)
from wholefeed.core.model import EntryId, Family

# The common part (rules R27, R28 and R30)


class _Numbered(ABC):
    name: ClassVar[str]
    parameter: ClassVar[str]
    size: ClassVar[dict[str, int]] = {}
    """The parameter for the entries on a page, if there is one."""
    lowest: ClassVar[int] = 0
    """The place of the first entry or page: a URL with this place gives the feed itself."""
    is_descending: ClassVar[bool] = False
    is_read_twice: ClassVar[bool] = False
    """Whether to read all pages again, upward, for entries that moved across a border."""

    @abstractmethod
    def is_theirs(self, sight: Sight) -> bool:
        """Return whether a subscription document is such a publisher's, regardless of comments and URL."""

    @abstractmethod
    def behind(self, page: AdapterPage, start: int | None) -> int | None:
        """Return the start of the page behind one that began at `start`; None if nothing tells.

        The subscription document began at None.
        """

    def first(self, job: AdapterJob) -> int | None:
        """Return the start of the first page on the first walk, if that is still valid."""
        return None

    def joins(self, page: AdapterPage, start: int, before: AdapterPage) -> bool:
        """Return whether a page follows the one before it, by default with a common entry."""
        return not set(before.identities).isdisjoint(page.identities)

    def above(self, start: int, step: int, page: AdapterPage, job: AdapterJob) -> int | None:
        """Return a place further up for a page that does not follow; `step` counts from 0."""
        return max(self.lowest + 1, start - (_STEP << step)) if step < _STEPS_BACK else None

    def url_of(self, job: AdapterJob, start: int) -> str:
        parameters = {self.parameter: start, **self.size}
        return page_url(_without(job.url, parameters), **parameters)

    def total(self, job: AdapterJob, pages: _NumberedPages) -> int | None:
        return None

    def lack(self, job: AdapterJob, pages: _NumberedPages) -> str:
        """Return why the entries are incomplete although the publisher gives no more."""
        return ""

    def fits(self, sight: Sight) -> bool:
        """Return whether the feed is such a publisher's, at its own site, and no page (R26)."""
        if sight.marks.has_comments or not self.is_theirs(sight):
            return False
        return _host(sight.url) == _host(sight.site_id) != "" and not self._is_page(sight)

    def _is_page(self, sight: Sight) -> bool:
        urls = sight.url, sight.asked_url
        return has_parameter(self.parameter, *urls, without=str(self.lowest))

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        pages, own = _NumberedPages(job, self), self.behind(job.page, None)
        if own is None:
            return job.report_unproven(
                f"the feed's entries do not tell whether the publisher honours {self.parameter}"
            )
        first = self.first(job) or own
        is_honoured = yield from pages.down(first)
        chain = frozenset(pages.on_pages)
        if first != own and not pages.reason and chain.isdisjoint(job.page.identities):
            is_honoured = (yield from pages.down(own, until=chain)) or is_honoured
        if not is_honoured:
            return job.report_unproven(pages.reason or f"the publisher does not honour {self.parameter}")
        if self.is_read_twice and not pages.reason:
            yield from pages.up()
        total, collected = self.total(job, pages), len(pages.met)
        known = job.update_collection(
            way=self.parameter,
            pages=pages.count,
            page_entries=len(job.page.identities),
            total=total,
            collected=collected,
        )
        lack = pages.lack or self.lack(job, pages)
        is_final = not pages.reason and lack != ""
        reason = pages.reason or lack
        if not reason and total is not None and total > collected:
            reason = f"the publisher claims {total} entries, and its pages showed {collected}"
        return AdapterOutcome(
            is_honoured=True, is_whole=not reason, is_final=is_final, known=known, reason=reason
        )

    def look(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        """Ask for entries beyond the subscription document, and once a day for the page behind it."""
        if job.is_linked and not job.is_daily:
            return job.report_look()
        pages = _NumberedPages(job, self, is_look=True)
        is_joined = (yield from pages.down(self.behind(job.page, None))) or job.is_linked
        if self.is_read_twice and len(pages.starts) > 1 and not pages.reason:
            yield from pages.up()
        lack = "" if is_joined else f"the publisher does not honour {self.parameter} any more"
        return job.report_look(pages.reason or pages.lack or lack)


class _NumberedPages:
    def __init__(self, job: AdapterJob, adapter: _Numbered, *, is_look: bool = False) -> None:
        self._job = job
        self._adapter = adapter
        self._is_look = is_look
        self.met: set[EntryId] = set(job.page.identities)
        self.on_pages: set[EntryId] = set()
        self.last: AdapterPage = job.page
        self.starts: list[int] = []
        self.reason = ""
        self.lack = ""
        self._asked = 0

    @property
    def count(self) -> int:
        return 1 + len(self.starts)

    def down(self, start: int | None, *, until: AbstractCollection[EntryId] = ()) -> Asking[bool]:
        """Ask for page after page; return whether the first one shows that places count (R27).

        The walk ends at a page with an entry of `until`, a look also at a page without news, after an
        interruption only at known entries.
        """
        job, adapter, before, step, stalled = self._job, self._adapter, self._job.page, 0, 0
        is_first, is_back, is_up = True, job.is_linked or not job.is_interrupted, False
        had, has_gone_back, is_nothing = set[int](), False, False
        while start is not None and self._asked < MOST_PAGES:
            answer = yield from one(self._ask(start, is_again=self._is_look or step > 0))
            if isinstance(answer, Refused):
                self.reason = answer.slug
                break
            assert isinstance(answer, AdapterPage)
            page = answer.identities
            has_top = not is_up and job.page.identities[0] in page
            if is_first and job.page.identities[0] in page:
                break
            if has_top or not adapter.joins(answer, start, before):
                is_nothing = is_nothing if is_up else not page
                above, step, is_up = adapter.above(start, step, answer, job), step + 1, True
                if above is None and not is_first:
                    self._give_up(start, has_end=has_gone_back and is_nothing)
                start = above
                continue
            if not page:
                return True
            is_other = page[-1] != before.identities[-1]
            if is_other or not is_up:  # a page from further up may end there by chance
                stalled = 0 if is_other else stalled + 1
            has_gone_back = has_gone_back or is_up
            is_new = self._meet(answer, start, is_other=is_other)
            if is_new:
                step, has_gone_back = 0, False
            is_first, is_back = False, is_back or job.is_back(answer)
            is_repeated = start in had and not (is_new or is_up)
            is_end = is_repeated or (stalled and (len(page) == 1 or stalled >= _STALLED))
            is_known = self._is_look and is_back and not answer.news
            if is_end or is_known or any(each in until for each in page):
                return True
            had.add(start)
            before, start, is_up = answer, adapter.behind(answer, start), False
        return not is_first

    def _give_up(self, start: int, *, has_end: bool) -> None:
        """Note why no place brought the following entries.

        With `has_end`, the publisher gives nothing, although the entries have not moved.
        """
        if has_end:
            self.lack = f"the publisher gives nothing from {self._adapter.parameter}={start} on"
        else:
            self.reason = "the entries moved while they were asked for"

    def up(self) -> Asking[None]:
        """Ask for all pages again, from the last to the first.

        A last page that was not full had nothing behind it, so skip it.
        """
        is_full = len(self.last.identities) >= len(self._job.page.identities)
        starts = self.starts if is_full else self.starts[:-1]
        for start in (*reversed(starts), 1) if self.starts else ():
            answer = yield from one(self._ask(start, is_again=True)._replace(reading=1))
            if isinstance(answer, Refused):
                self.reason = answer.slug
                return
            assert isinstance(answer, AdapterPage)
            self.met.update(answer.identities)

    def _ask(self, start: int, *, is_again: bool) -> PageQuestion:
        self._asked += 1
        place = -start if self._adapter.is_descending else start
        return PageQuestion(self._adapter.url_of(self._job, start), place=place, is_again=is_again)

    def _meet(self, page: AdapterPage, start: int, *, is_other: bool) -> bool:
        met = len(self.met)
        self.last = page
        self.met.update(page.identities)
        self.on_pages.update(page.identities)
        if is_other:
            self.starts.append(start)
        return len(self.met) > met


# Attempts to ask from further up, until a new entry comes.
_STEPS_BACK: Final = 5
# Entries to go back at first; each attempt doubles them.
_STEP: Final = 10
# Pages in a row with the same last entry that mark the end. One alone may be chance, after a page of new
# entries.
_STALLED: Final = 2


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


def _without(url: str, names: AbstractCollection[str]) -> str:
    parts = urlsplit(url)
    kept = [each for each in parts.query.split("&") if each.partition("=")[0] not in names]
    return urlunsplit(parts._replace(query="&".join(kept)))


# Blogger


class Blogger(_Numbered):
    """The posts of a blog, or of a label in it, a hundred a page.

    `/feeds/posts/default?start-index=25&max-results=100` begins with the twenty-fifth.
    """

    # Sources: "Blogger Data API, Reference Guide", version 2, and "The incredible shrinking feeds" (2019: at
    # most 100). Atom feeds link `next`, so this adapter is for feeds without that link, such as `alt=rss`.
    # Only `redirect=false` keeps a blog from redirecting to its FeedBurner copy. A start above some number
    # reportedly gives nothing (Create-a-Blogger-archive-page, issue 6): then the feed is partial.
    # `openSearch:totalResults` counts the posts of the blog or label; the feed is partial if fewer come. The
    # copy at FeedBurner may be of the blog's other format, chosen by `alt` (`rss`, or `atom` by default).

    name: ClassVar[str] = "blogger"
    parameter: ClassVar[str] = "start-index"
    size: ClassVar[dict[str, int]] = {"max-results": 100}
    lowest: ClassVar[int] = 1

    def is_theirs(self, sight: Sight) -> bool:
        """Return whether generator and a blog's own URL say so: other services republish."""
        if _BLOGGER_GENERATOR.fullmatch(sight.marks.generator) is None:
            return False
        is_at_blog = _is_at_blog(sight.url) or _is_at_blog(sight.asked_url)
        return is_at_blog and sight.family in (Family.ATOM, Family.RSS)

    def fits(self, sight: Sight) -> bool:
        """Return whether the feed is Blogger's and no page. Many blogs have their own domain."""
        return self.is_theirs(sight) and not self._is_page(sight)

    def behind(self, page: AdapterPage, start: int | None) -> int | None:
        """Return the number of the page's last entry, counted from 1."""
        number = (start or 1) + len(page.identities) - 1
        return number if number > 1 else None

    def url_of(self, job: AdapterJob, start: int) -> str:
        """Return the page's URL at the blog itself, in the feed's format."""
        if _is_at_blog(job.url):
            return super().url_of(job, start)
        url, is_rss = super().url_of(replace(job, url=job.asked_url), start), job.page.family is Family.RSS
        if is_rss != has_parameter("alt", url, without="atom"):
            url = page_url(url, alt="rss" if is_rss else "atom")
        return page_url(url, redirect="false")

    def total(self, job: AdapterJob, pages: _NumberedPages) -> int | None:
        totals = pages.last.marks.total, job.page.marks.total
        return next((total for total in totals if total is not None), None)


_BLOGGER_GENERATOR: Final = re.compile(r"(?:https?://www\.blogger\.com/? )?Blogger")
_BLOGGER_PATH: Final = re.compile(r"/feeds/(?:\d+/)?posts/|/(?:atom|rss)\.xml$")


def _is_at_blog(url: str) -> bool:
    return _BLOGGER_PATH.search(urlsplit(url).path) is not None


# GitLab


class GitLab(_Numbered):
    """The commits of a branch, a tag or a path in it, a hundred a page, at any installation.

    `…/-/commits/main?format=atom&offset=39&limit=100` begins with the fortieth.
    """

    # Source: its code (`app/controllers/projects/commits_controller.rb`, `app/views/projects/commits/`).
    # Before version 12 the addresses of commits have no `/-`. Behind the first commit the feed is empty.
    # Without parameters there are forty commits, in the order of `git log`; `limit` has no maximum. The
    # feed's id is the address of the list, an entry's id that of the commit in the same project. The feed
    # names no generator.

    name: ClassVar[str] = "gitlab"
    parameter: ClassVar[str] = "offset"
    size: ClassVar[dict[str, int]] = {"limit": 100}

    def is_theirs(self, sight: Sight) -> bool:
        feed, commit = _GITLAB_FEED.match(sight.site_id), _GITLAB_COMMIT.fullmatch(sight.marks.last_id)
        return sight.family is Family.ATOM and bool(feed and commit and feed[1] == commit[1])

    def behind(self, page: AdapterPage, start: int | None) -> int | None:
        """Return the number of the page's last entry, counted from 0."""
        return _number_of_last(page, start)


_GITLAB_FEED: Final = re.compile(r"(https?://[^/?#]+/[^?#]+?)/commits/.")
_GITLAB_COMMIT: Final = re.compile(r"(https?://[^/?#]+/[^?#]+?)/commit/(?:[0-9a-f]{40}|[0-9a-f]{64})")


def _number_of_last(page: AdapterPage, start: int | None) -> int | None:
    number = (start or 0) + len(page.identities) - 1
    return number if number > 0 else None


# Joomla


class Joomla(_Numbered):
    """The articles of a category, a tag or the front page, with the site's own page size.

    `…?format=feed&type=rss&limitstart=9` begins with the tenth.
    """

    # Source: its code. A start with no full page behind it becomes the start of the last page
    # (`ListModel::getStart`): 18 of 25 entries becomes 20. So that page shares no entry with the one before
    # it, and it comes for every higher start. If all articles are in the feed, any start becomes 0. Feed
    # views overwrite `limit` (`feed_limit`, 10) and leave `limitstart` to the models of the pages
    # (`CategoryModel`, `FeaturedModel`), in their order.

    name: ClassVar[str] = "joomla"
    parameter: ClassVar[str] = "limitstart"

    def is_theirs(self, sight: Sight) -> bool:
        is_one = _JOOMLA_GENERATOR.fullmatch(sight.marks.generator) is not None
        return (
            is_one
            and sight.family in (Family.RSS, Family.ATOM)
            and not has_parameter("start", sight.url, sight.asked_url)
        )

    def behind(self, page: AdapterPage, start: int | None) -> int | None:
        """Return the number of the page's last entry, counted from 0."""
        return _number_of_last(page, start)

    def above(self, start: int, step: int, page: AdapterPage, job: AdapterJob) -> int | None:
        """Return, for a possible last page, the last start with a full page behind it."""
        size = len(job.page.identities)
        if step == 0 and 0 < len(page.identities) < size:
            return max(1, (start // size) * size + len(page.identities))
        return super().above(start, max(0, step - 1), page, job)


_JOOMLA_GENERATOR: Final = re.compile(
    r"(?:https?://(?:www\.)?joomla\.org/? )?Joomla!(?: [\d.]+)? - Open Source Content Management"
)


# Squarespace


class Squarespace(_Numbered):
    """The posts or episodes of a collection, with the feed's own page size.

    `…?format=rss&offset=1547826436000` gives posts published before that instant, in milliseconds.
    """

    # Sources: programs that page so (`rssrerun`), and links in the publisher's pages. No source says whether
    # posts of the instant itself come, so the adapter asks with the second after the last entry. The adapter
    # ignores version 5, which has another generator. It is unknown, too, in which order posts of one second
    # are. A guid is three object ids: of the site, the collection and the post.

    name: ClassVar[str] = "squarespace"
    parameter: ClassVar[str] = "offset"
    is_descending: ClassVar[bool] = True

    def is_theirs(self, sight: Sight) -> bool:
        is_one = _SQUARESPACE_GENERATOR.fullmatch(sight.marks.generator) is not None
        is_one = is_one and _SQUARESPACE_GUID.fullmatch(sight.marks.last_id) is not None
        return is_one and sight.family is Family.RSS

    def behind(self, page: AdapterPage, start: int | None) -> int | None:
        """Return the second after the page's last date; None if one entry proves nothing."""
        at = page.dates[-1] if page.dates else None
        is_alone = start is None and len(page.identities) == 1
        return None if at is None or is_alone else _second_behind(at)

    def first(self, job: AdapterJob) -> int | None:
        """Return the second after the last entry of the first walk: nothing below has moved since."""
        return None if job.known.start_at is None else _second_behind(job.known.start_at)

    def joins(self, page: AdapterPage, start: int, before: AdapterPage) -> bool:
        """Return whether all entries of a page have dates, older than the instant."""
        return all(at is not None and at * 1000 < start for at in page.dates)

    def above(self, start: int, step: int, page: AdapterPage, job: AdapterJob) -> int | None:
        """Return None: an instant does not move."""
        return None

    def lack(self, job: AdapterJob, pages: _NumberedPages) -> str:
        """Return a reason if a full last page bears one date, which hides entries behind it."""
        page = pages.last
        is_tied = len(page.identities) >= len(job.page.identities) and len({*page.dates}) == 1
        return "more entries have the same date than fit into one page" if is_tied else ""


_SQUARESPACE_GENERATOR: Final = re.compile(r"Site-Server v6\S* \(https?://www\.squarespace\.com\)")
_SQUARESPACE_GUID: Final = re.compile(r"[0-9a-f]{24}(?::[0-9a-f]{24}){2}")


def _second_behind(at: float) -> int:
    return (int(at) + 1) * 1000


# Redmine


class Redmine(_Numbered):
    """The news of a project or of all projects, ten a page.

    `…/news.atom?page=2` gives the second ten.
    """

    # Sources: version 5.0.4 run here, and its code (to 7.0; `news_controller.rb`,
    # `application_controller.rb`). A site with fewer than ten entries in feeds (`feeds_limit`) omits the rest
    # of each page. Other feeds have no usable parameter: `revisions.atom` reads `page`, but shows only
    # fifteen of each twenty-five. The feed's id is the home page, an entry's is `news/NUMBER` below it.
    # Behind the last page the feed is empty; 0 and non-numbers mean page 1. `from`, known from the page of
    # activities, has no effect in `activity.atom`; no parameter works in `issues.atom`, in forums, or in
    # feeds of times and projects.

    name: ClassVar[str] = "redmine"
    parameter: ClassVar[str] = "page"
    lowest: ClassVar[int] = 1
    is_read_twice: ClassVar[bool] = True

    def is_theirs(self, sight: Sight) -> bool:
        is_one = _REDMINE_GENERATOR.fullmatch(sight.marks.generator) is not None
        home, _, number = sight.marks.last_id.rpartition("news/")
        is_news = home.rstrip("/") == sight.site_id.rstrip("/") and number.isdecimal()
        return is_one and is_news and sight.family is Family.ATOM

    def behind(self, page: AdapterPage, start: int | None) -> int | None:
        return (start or 1) + 1

    def joins(self, page: AdapterPage, start: int, before: AdapterPage) -> bool:
        """Return whether a page continues with older entries, or shares some."""
        is_older = (page.newest_at or 0.0) <= (before.oldest_at or 0.0)
        return is_older or super().joins(page, start, before)

    def above(self, start: int, step: int, page: AdapterPage, job: AdapterJob) -> int | None:
        """Return None: a page number cannot move up."""
        return None

    def lack(self, job: AdapterJob, pages: _NumberedPages) -> str:
        """Return a reason if the feed has fewer entries than one of several pages."""
        is_cut = pages.count > 1 and len(job.page.identities) < _REDMINE_PAGE
        return "the publisher's pages leave out some entries" if is_cut else ""


_REDMINE_GENERATOR: Final = re.compile(r"https?://www\.redmine\.org/? Redmine")
_REDMINE_PAGE: Final = 10
