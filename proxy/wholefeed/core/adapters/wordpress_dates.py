"""The posts of a WordPress site whose queries a cache strips: by the paths of its date archives (rule R28).

A year first: one that is not full is all there is of it. A full one is read by its months, a full month by
its days. A full day may have had more, and nothing tells: the feed stays partial then. Where the publisher's
count is known it ends when as many were met, else when twenty years in a row are empty.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from wholefeed.core.adapters.asking import Ask, Asking, Job, Outcome, Page, Refused
from wholefeed.core.adapters.wordpress_pages import Pages
from wholefeed.core.adapters.wordpress_urls import dated_url
from wholefeed.core.text.dates import DAY_SECONDS

BY_DATE: Final = "date archives"
EMPTY_YEARS: Final = 20
_FIRST_YEAR: Final = 1970
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
        self.last_entries = 0
        """Of the last span asked for."""
        self.full_day = ""
        """The URL of a day that has as many posts as a page holds."""

    @property
    def is_through(self) -> bool:
        """Whether as many posts were met as the publisher has, or it refuses."""
        pages = self.pages
        return pages.refused is not None or (pages.total is not None and len(pages.met) >= pages.total)

    def ask(self, *spans: tuple[int, ...]) -> Asking[list[bool]]:
        """Ask for spans of one length; return which are full, empty ones taken for not."""
        asks = [
            Ask(url, place=_place(*span), is_again=self.is_again, is_needed=False)
            for span in spans
            if (url := dated_url(self.pages.job.url, *span)) is not None
        ]
        answers = yield asks
        full: list[bool] = []
        for answer in answers:
            self.asked += 1
            if isinstance(answer, Refused) and not answer.is_gone:
                self.pages.refused = answer
            entries = 0
            if isinstance(answer, Page):
                entries = len(answer.identities)
                self.has_met |= self.pages.meet(answer) > 0
            full.append(entries >= self.pages.full)
            self.last_entries = entries
        return full

    def year(self, year: int) -> Asking[int]:
        """Ask for a year, as finely as it takes; return how many posts it showed at first."""
        (is_full,) = yield from self.ask((year,))
        entries = self.last_entries
        if is_full and not self.is_through:
            for month in range(_MONTHS, 0, -1):
                yield from self.month(year, month)
                if self.is_through:
                    break
        return entries

    def month(self, year: int, month: int) -> Asking[None]:
        """Ask for a month, and for its days where it is full."""
        (is_full,) = yield from self.ask((year, month))
        if not is_full:
            return
        days = calendar.monthrange(year, month)[1]
        for day in range(days, 0, -1):
            (is_full,) = yield from self.ask((year, month, day))
            if is_full:
                self.full_day = dated_url(self.pages.job.url, year, month, day) or ""
            if self.pages.refused is not None:
                return


def collect_by_date(pages: Pages) -> Asking[Outcome]:
    """Ask for the date archives, from this year back."""
    if dated_url(pages.job.url, _FIRST_YEAR) is None:
        return pages.unproven("the publisher does not answer by pages")
    archives, empty = _Archives(pages, is_again=False), 0
    for year in _years_back(pages.job.now):
        shown = yield from archives.year(year)
        empty = 0 if shown else empty + 1
        if archives.is_through or empty >= EMPTY_YEARS:
            break
    if not archives.has_met:
        reason = "the publisher does not answer by pages, nor by date"
        return pages.unproven(pages.refused.slug if pages.refused else reason)
    return _outcome(archives, pages.outcome(BY_DATE, archives.asked))


def look_by_date(job: Job) -> Asking[Outcome]:
    """Ask for this month and the one before it, by their days where they are full."""
    pages = Pages(job)
    archives = _Archives(pages, is_again=True)
    today = _day(job.now)
    for span in (today, today.replace(day=1) - timedelta(days=1)):
        yield from archives.month(span.year, span.month)
        if pages.refused is not None:
            break
    outcome = Outcome(is_honoured=True, is_whole=pages.refused is None, known=job.known)
    return _outcome(archives, outcome)


def _outcome(archives: _Archives, outcome: Outcome) -> Outcome:
    refused = archives.pages.refused
    if refused is not None:
        return replace(outcome, is_whole=False, reason=refused.slug)
    if archives.full_day:
        reason = f"more posts of one day than a feed holds: {archives.full_day}"
        return replace(outcome, is_whole=False, reason=reason)
    return outcome


def _day(now: float) -> date:
    """A day ahead: somewhere it is tomorrow already."""
    return datetime.fromtimestamp(now + DAY_SECONDS / 2, UTC).date()


def _years_back(now: float) -> Iterator[int]:
    yield from range(_day(now).year, _FIRST_YEAR - 1, -1)


def _place(year: int, month: int = _MONTHS, day: int = _DAYS_OF_MONTH) -> int:
    """A span stands behind all later ones, and behind the finer ones that it contains."""
    return -(year * 1000 + month * 40 + day)
