"""Publishers with numbered pages, oldest entry first: Discourse's topics and Lemmy (R26 to R31).

New entries stand behind the last page and move nothing. A deletion moves newer entries to lower numbers. So
the walk goes from the last page to the first: a moved entry comes twice, and none is missed.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Final
from urllib.parse import parse_qsl, urlsplit

from wholefeed.core.adapters.base import (
    MOST_PAGES,
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Asking,
    PageQuestion,
    PageResponse,
    Refused,
    SearchError,
    Sight,
    has_parameter,
    kept,
    last_page,
    one,
    page_url,
)
from wholefeed.core.model import EntryId, Family


class _Ascending(ABC):
    name: ClassVar[str]

    @abstractmethod
    def fits(self, sight: Sight) -> bool:
        """Return whether the document gives evidence of the publisher (R26)."""

    @abstractmethod
    def url_of(self, job: AdapterJob, number: int) -> str:
        """Return the URL of a page; number 1 has the oldest entries."""

    def is_by_date(self, job: AdapterJob) -> bool:
        """Return whether the subscription document has the newest entries."""
        ups, downs = _steps(job.page)
        return downs >= _MOSTLY * ups

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        if len(job.page.identities) < 2:  # noqa: PLR2004 - one has no order
            return job.report_unproven(
                "the feed has one entry, which does not tell whether the publisher honours the order"
            )
        pages = _AscendingPages(job, lambda number: self.url_of(job, number))
        try:
            last = yield from pages.count()
        except SearchError as exc:
            return job.report_unproven(exc.refused.slug)
        if last is None:
            return job.report_unproven("the publisher offers no pages that begin with the oldest entry")
        if not (yield from pages.down(last, is_same=not self.is_by_date(job))):
            return job.report_unproven("the pages have other entries than the feed")
        known = job.update_collection(
            way="page",
            pages=pages.last,
            page_entries=pages.full,
            collected=len(pages.met),
            top_at=pages.newest_at,
        )
        return AdapterOutcome(is_honoured=True, is_whole=not pages.reason, known=known, reason=pages.reason)

    def look(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        is_linked = self.is_by_date(job) and job.is_linked
        if is_linked and not job.is_daily:
            return job.report_look()
        pages = _AscendingPages(job, lambda number: self.url_of(job, number))
        yield from pages.news()
        is_joined = is_linked or pages.is_back
        outcome = job.report_look(pages.reason or ("" if is_joined else _NOT_ANY_MORE))
        if not outcome.is_whole or pages.is_disordered:
            return outcome
        known = replace(outcome.known, pages=pages.last, top_at=pages.newest_at)
        return replace(outcome, known=known)


_NOT_ANY_MORE: Final = "the publisher does not offer pages any more"


class _AscendingPages:
    def __init__(self, job: AdapterJob, url_of: Callable[[int], str]) -> None:
        self._job = job
        self._url_of = url_of
        self.met: set[EntryId] = set(job.page.identities)
        self.full = job.known.page_entries
        self.last = max(1, job.known.pages)
        self.newest_at = job.known.top_at
        self.is_back = False
        self.has_entries = False
        self.is_disordered = False
        """Whether a page runs from newer to older: the order is no longer honoured."""
        self.reason = ""

    def count(self) -> Asking[int | None]:
        """Return the number of the last page; None if numbers are not honoured (R27).

        Raises:
            SearchError: A question failed.
        """
        # The first page runs from older to newer, unlike the feed, so the order is honoured. The second one
        # continues there, so numbers are honoured, too.
        first = yield from one(self._ask(1, is_held=True))
        if isinstance(first, Refused):
            raise SearchError(first)
        if not isinstance(first, AdapterPage) or not _runs_up(first):
            return None
        self.full = len(first.identities)
        second = yield from one(self._ask(2, is_probe=True))
        if isinstance(second, Refused) and not second.is_gone:
            raise SearchError(second)
        if not isinstance(second, AdapterPage) or not second.identities:
            self.last = 1
            return 1
        if set(second.identities) <= set(first.identities):
            return None
        last = yield from last_page(lambda number: self._ask(number, is_probe=True), low=2, uses_head=False)
        return last if last < MOST_PAGES else None

    def down(self, last: int, *, is_same: bool) -> Asking[bool]:
        """Ask for all pages; return whether they belong to the feed, unless `is_same` says so."""
        # After an interruption, stored pages are read again until one is unchanged: then those below it are,
        # too.
        is_steady = is_gap = False
        feed = set(self._job.page.identities)
        for number in range(last, 0, -1):
            ask = self._ask(number, is_again=number == 1 < last, is_held=not is_same)
            answer = yield from one(ask)
            if isinstance(answer, AdapterPage) and answer.is_stored and not is_steady:
                before = answer.identities
                answer = yield from one(ask._replace(is_again=True))
                is_steady = isinstance(answer, AdapterPage) and answer.identities == before
            met = len(self.met)
            page = self._take(answer)
            if page is None:
                is_gap = self.has_entries
            elif is_gap:  # where deletions emptied a page, its entries stand on the one before it
                is_gap = len(self.met) == met + len(page.identities)
            if page is not None and not is_same:
                if not self._is_of_feed(page):
                    return False
                yield from kept(ask)
                is_same = not feed.isdisjoint(page.identities)
            if self.is_disordered or (is_gap and (page is not None or number == 1) and not self.reason):
                self.reason = _NOT_ANY_MORE
            if self.reason:
                return True
        if last > 1:
            yield from self._up(last)
        return self.has_entries

    def news(self) -> Asking[None]:
        """Ask for entries since the last look, even if deletions moved them."""
        number = self.last
        yield from self._up(number)
        while number > 1 and not (self.is_back or self.is_disordered or self.reason):
            number -= 1
            page = self._take((yield from one(self._ask(number, is_again=True))))
            self.last = max(1, number - 1) if page is None else max(number, self.last)

    def _up(self, first: int) -> Asking[None]:
        """Ask for a page and those behind it, then down again, because of deletions meanwhile."""
        self.last = max(1, first - 1)
        for number in range(first, MOST_PAGES):
            met = len(self.met)
            page = self._take((yield from one(self._ask(number, is_again=True))))
            if page is None:
                break
            self.last = number
            is_repeated = number > first and len(self.met) == met  # numbers are not honoured any more
            if is_repeated or len(page.identities) < self.full:
                break
        for number in range(self.last - 1, first - 1, -1):
            self._take((yield from one(self._ask(number, is_again=True))))

    def _ask(self, number: int, **how: bool) -> PageQuestion:
        return PageQuestion(self._url_of(number), place=-number, **how)

    def _take(self, answer: PageResponse) -> AdapterPage | None:
        if isinstance(answer, Refused) and not answer.is_gone:
            self.reason = answer.slug
        if not isinstance(answer, AdapterPage) or not answer.identities:
            return None
        if _runs_up(answer) is False:
            self.is_disordered = True
            return None
        self.has_entries = True
        self.met.update(answer.identities)
        self.is_back = self.is_back or self._job.is_back(answer)
        self.newest_at = max(
            (at for at in (self.newest_at, answer.newest_at) if at is not None), default=None
        )
        return answer

    def _is_of_feed(self, page: AdapterPage) -> bool:
        """Return whether the feed has all entries of a page that are within the feed's dates."""
        feed = self._job.page
        if feed.oldest_at is None or feed.newest_at is None:
            return True
        entries = zip(page.identities, page.dates, strict=True)
        amid = [each for each, at in entries if at is not None and feed.oldest_at < at < feed.newest_at]
        return set(amid) <= set(feed.identities)


def _runs_up(page: AdapterPage) -> bool | None:
    """Return whether entries get newer downwards, apart from pinned ones; None if unknown."""
    ups, downs = _steps(page)
    return ups >= _MOSTLY * downs if ups or downs else None


def _steps(page: AdapterPage) -> tuple[int, int]:
    dates = [at for at in page.dates if at is not None]
    ups = sum(one < two for one, two in pairwise(dates))
    return ups, sum(one > two for one, two in pairwise(dates))


# Ratio of steps that proves an order; an order by votes has about as many of both.
_MOSTLY: Final = 4


# Discourse


class DiscourseTopics(_Ascending):
    """The topics of a forum or of a category, thirty a page.

    `/latest.rss?order=created&ascending=true&page=0` gives the oldest; `category=5` selects a category.
    """

    # Source: its code (`app/controllers/list_controller.rb`, `lib/topic_query.rb`) since August 2020 (pull
    # request 10350). `page` counts from 0. A category's own feed (`/c/some/5.rss`) has 25 topics and reads no
    # parameters; its link is `/c/SLUG/NUMBER`, with the slugs of its parents. In the order of creation
    # nothing is pinned. Both feeds include the topics of subcategories. In older versions a guid has no host.
    # Behind the last page the feed is empty. The adapter ignores feeds of tags, groups and persons.

    name: ClassVar[str] = "discourse-topics"

    def fits(self, sight: Sight) -> bool:
        if sight.family is not Family.RSS or not _TOPIC_GUID.fullmatch(sight.marks.last_id):
            return False
        is_one = sight.marks.route == _LATEST
        if sight.marks.route == _CATEGORY:
            category = _CATEGORY_LINK.fullmatch(sight.site_id)
            is_one = category is not None and _host(sight.site_id) == _host(sight.url)
        urls = sight.url, sight.asked_url
        return is_one and not any(has_parameter(name, *urls) for name in ("page", "order", "ascending"))

    def url_of(self, job: AdapterJob, number: int) -> str:
        category = _CATEGORY_LINK.fullmatch(job.site_id)
        order: dict[str, str | int] = {"order": "created", "ascending": "true", "page": number - 1}
        if category is None:
            return page_url(job.url, **order)
        return page_url(f"{category['root']}/latest.rss", category=category["number"], **order)


_LATEST, _CATEGORY = "list/latest_feed", "list/category_feed"
_TOPIC_GUID: Final = re.compile(r"(?:.+-)?topic-[1-9]\d*")
_CATEGORY_LINK: Final = re.compile(r"(?P<root>https?://[^/]+(?:/[^/]+)*)/c(?:/[^/]+)+/(?P<number>[1-9]\d*)")


def _host(url: str) -> str:
    return urlsplit(url).netloc


# Lemmy


class Lemmy(_Ascending):
    """The posts of a community or of a person, fifty a page, for a feed in any order.

    `/feeds/c/some.xml?sort=Old&limit=50&page=1` gives the oldest.
    """

    # Source: its code (`crates/routes/src/feeds.rs`, `crates/db_schema/src/utils.rs`), from version 0.18
    # (June 2023, issue 2906) to 0.19; version 1 reads no `page`. `limit` is 20 by default, 50 at most; `page`
    # counts from 1. Pinned posts come first in every order. The guid is the post's address at its own host;
    # the channel's link may be at another host. The feed names no generator. The adapter ignores feeds of a
    # whole instance (with a link without a path), which may have millions of posts.

    name: ClassVar[str] = "lemmy"

    def fits(self, sight: Sight) -> bool:
        guid = _LEMMY_GUID.fullmatch(sight.marks.last_id)
        if sight.family is not Family.RSS or guid is None or guid["host"] != _host(sight.url):
            return False
        urls = sight.url, sight.asked_url
        is_page = has_parameter("page", *urls) or any(_sort(url) == "Old" for url in urls)
        return _LEMMY_LINK.fullmatch(sight.site_id) is not None and not is_page

    def url_of(self, job: AdapterJob, number: int) -> str:
        return page_url(job.url, sort="Old", limit=50, page=number)

    def is_by_date(self, job: AdapterJob) -> bool:
        """Return whether the URL sorts by `New`; the default is by votes and age."""
        return _sort(job.url) == "New" and super().is_by_date(job)


_LEMMY_GUID: Final = re.compile(r"https?://(?P<host>[^/]+)/post/[1-9]\d*")
_LEMMY_LINK: Final = re.compile(r"https?://[^/]+/[cu]/[^/]+")


def _sort(url: str) -> str:
    return dict(parse_qsl(urlsplit(url).query)).get("sort", "")
