"""The posts of a WordPress site whose queries a cache strips: by the paths of its date archives (rule R28).

A year first: one that is not full is all there is of it. A full one is read by its months, a full month by
its days. A full day may have had more, and nothing tells: the feed stays partial then. Where the publisher's
count is known it ends when as many were met, else when twenty years in a row are empty.
"""

from __future__ import annotations

import calendar
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from wholefeed.core.adapters.asking import Ask, Asking, Job, Outcome, Page, Refused, one
from wholefeed.core.adapters.wordpress_pages import Pages
from wholefeed.core.adapters.wordpress_urls import dated_url, is_main
from wholefeed.core.model import EntryId
from wholefeed.core.text.dates import DAY_SECONDS

BY_DATE: Final = "date archives"
EMPTY_YEARS: Final = 20
_FIRST_YEAR: Final = 1970
_ZONES_SECONDS: Final = 2 * DAY_SECONDS
"""A site's day may begin earlier than that of UTC."""
_DAYS_OF_MONTH: Final = 31
_MONTHS: Final = 12


class _Archives:
    """Asks for years, months and days."""

    def __init__(self, pages: Pages, *, is_again: bool) -> None:
        self.pages = pages
        self.is_again = is_again
        self.asked = 0
        self.has_met = False
        """Whether one has brought what the subscription document lacks."""
        self.kinds: set[bool] = set()
        """Whether spans had posts: that some have and some have not shows that dates are honoured."""
        self.are_there = True
        """Whether the publisher has archives by date; it answers an empty one with an empty feed."""
        self.shown: dict[int, set[tuple[EntryId, ...]]] = {}
        """What years, months and days have shown, by how many numbers name them."""
        self.strays = 0
        """Answers with an entry of before the span."""
        self.full_day = ""
        """The URL of a day that has as many posts as a page holds."""

    @property
    def is_through(self) -> bool:
        """Whether as many posts were met as the publisher has, or it refuses."""
        pages = self.pages
        is_met = pages.total is not None and len(pages.met) >= pages.total and not pages.has_moved
        return pages.is_refused or not self.are_there or (is_met and self.is_honoured)

    @property
    def is_honoured(self) -> bool:
        """R27: whether the archives show that they are what was asked for."""
        return self.has_met or len(self.kinds) > 1

    def ask(self, *span: int) -> Asking[int]:
        """Ask for a span; return how many posts it shows."""
        url = dated_url(self.pages.job.url, *span)
        assert url is not None, "the feed has archives by date"
        answer = yield from one(Ask(url, place=_place(*span), is_again=self.is_again))
        self.asked += 1
        if isinstance(answer, Refused):
            if answer.is_gone or answer.is_objection:
                self.are_there = self.asked > 1 and self.are_there
            else:
                self.pages.refused = answer
            return 0
        assert isinstance(answer, Page)
        if self._is_anything(answer, span):
            self.are_there = self.has_met = False
            self.kinds.clear()
            return 0
        if answer.identities:
            self.has_met |= self.pages.meet(answer) > 0
        self.kinds.add(bool(answer.identities))
        return len(answer.identities)

    def _is_anything(self, page: Page, span: tuple[int, ...]) -> bool:
        """Whether the publisher answers any path with some feed (R27): else a static one is asked for days.

        One entry of before its span may bear a wrong date; no two spans of one kind have the same entries.
        """
        if not page.identities:
            return False
        shown = self.shown.setdefault(len(span), set())
        is_repeated = page.identities in shown and not self.is_again
        shown.add(page.identities)
        is_stray = page.oldest_at is not None and page.oldest_at < _begin(*span) - _ZONES_SECONDS
        self.strays += is_stray
        return is_repeated or (is_stray and (self.strays > 1 or page.identities == self.pages.first))

    def year(self, year: int) -> Asking[int]:
        """Ask for a year, as finely as it takes; return how many posts it showed at first."""
        entries = yield from self.ask(year)
        if entries >= self.pages.full:
            for month in range(_MONTHS, 0, -1):
                if self.is_through:
                    break
                yield from self.month(year, month)
        return entries

    def month(self, year: int, month: int) -> Asking[None]:
        """Ask for a month, and for its days where it is full."""
        if (yield from self.ask(year, month)) < self.pages.full:
            return
        for day in range(calendar.monthrange(year, month)[1], 0, -1):
            if (yield from self.ask(year, month, day)) >= self.pages.full:
                self.full_day = dated_url(self.pages.job.url, year, month, day) or ""
            if self.is_through:
                return


def collect_by_date(pages: Pages) -> Asking[Outcome]:
    """Ask for the date archives, from this year back."""
    if dated_url(pages.job.url, _FIRST_YEAR) is None or not _is_of_site(pages.job):
        return pages.job.unproven("the publisher does not answer by pages")
    archives, empty = _Archives(pages, is_again=False), 0
    today = _day(pages.job.now)
    for year in range(today.year, _FIRST_YEAR - 1, -1):
        shown = yield from archives.year(year)
        empty = 0 if shown else empty + 1
        if archives.is_through or empty >= EMPTY_YEARS:
            break
    if pages.has_moved and archives.has_met and not pages.is_refused:  # what was published meanwhile
        archives.is_again = True
        yield from archives.month(today.year, today.month)
    if not archives.is_honoured:
        reason = "the publisher does not answer by pages, nor by date"
        return pages.job.unproven(pages.refused.slug if pages.refused else reason)
    return _outcome(archives, pages.outcome(BY_DATE, archives.asked))


def _is_of_site(job: Job) -> bool:
    """Archives by date stand below a site, not below one of its categories or authors."""
    api_url = job.page.marks.api_url
    return is_main(job.url, api_url) if api_url else True


def look_by_date(job: Job) -> Asking[Outcome]:
    """Ask for the months since the last look and the one before it, by their days where they are full."""
    pages = Pages(job)
    archives = _Archives(pages, is_again=True)
    span, looked_at = _day(job.now), job.known.looked_at
    first = _month_before(span if looked_at is None else min(span, _day(looked_at)))
    while span >= first and not pages.is_refused:
        yield from archives.month(span.year, span.month)
        span = _month_before(span)
    return _outcome(archives, Outcome(is_honoured=True, known=job.known))


def _outcome(archives: _Archives, outcome: Outcome) -> Outcome:
    refused = archives.pages.refused
    if refused is not None:
        return replace(outcome, is_whole=False, reason=refused.slug)
    if archives.full_day and not archives.is_through:
        reason = f"more posts of one day than a feed holds: {archives.full_day}"
        return replace(outcome, is_whole=False, reason=reason)
    return outcome


def _day(now: float) -> date:
    """Half a day ahead: somewhere it is tomorrow already."""
    return datetime.fromtimestamp(now + DAY_SECONDS / 2, UTC).date()


def _begin(year: int, month: int = 1, day: int = 1) -> float:
    """Return when a span begins."""
    return datetime(year, month, day, tzinfo=UTC).timestamp()


def _month_before(day: date) -> date:
    return (day.replace(day=1) - timedelta(days=1)).replace(day=1)


def _place(year: int, month: int = _MONTHS, day: int = _DAYS_OF_MONTH) -> int:
    """A span stands behind all later ones, and behind the finer ones that it contains."""
    return -(year * 1000 + month * 40 + day)
