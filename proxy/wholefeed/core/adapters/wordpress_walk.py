"""All pages of a WordPress feed: by number, or by date if a cache strips the queries (rule R28)."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

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
    last_page,
    one,
)
from wholefeed.core.adapters.wordpress_pages import AskFor, WordPressPages, dated_url, is_main
from wholefeed.core.model import EntryId
from wholefeed.core.text.dates import DAY_SECONDS

# By number


class WordPressWalk:
    """One walk through all pages, from the last to the first.

    Entries moved by a deletion come to a page not read yet. A newly published post moves entries the other
    way, to pages already read: the site's validators show that, and `_seam` reads those pages again. With
    `is_again`, pages of an earlier walk do not serve.
    """

    def __init__(self, pages: WordPressPages, ask: AskFor, *, is_again: bool = False) -> None:
        self._pages = pages
        self.ask = ask
        self._is_again = is_again
        # Entries on the pages read so far, all behind the next one.
        self._had: set[EntryId] = set()
        self._holes: set[int] = set()
        self._idle_in_a_row = self._idle_in_all = 0
        self._seams = 0
        self._made_up = 0
        # Count of entries on every page but the last.
        self._length = pages.full
        self._is_uneven = False
        self._tail: tuple[EntryId, ...] = ()
        self.unsettled = ""
        """Why the walk may have missed entries."""
        self._is_trusted = ask == pages.ask_from_front

    def steps(self, last: int) -> Asking[int]:
        """Ask for all pages; return the number of the last page.

        Raises:
            NotHonouredError: Numbers or order are not honoured.
            NoProgressError: Page after page brings nothing.
        """
        reached = yield from self._walk_down(last)
        if reached > 1:
            return (yield from self._search(reached, None))
        last = yield from self._end(last)
        holes = sorted(number for number in self._holes if number < last)
        # Later pages exist, so these count as missing if they still do not (R6).
        if holes and not self._pages.is_refused:
            for answer in (yield [self.ask(each, is_again=True, is_needed=True) for each in holes]):
                self._pages.has_gaps |= self._take(answer) is None
        return last

    # Down

    def _walk_down(self, last: int) -> Asking[int]:
        behind: tuple[int, AdapterPage] | None = None
        number = last
        while number >= 1:
            size = _AT_ONCE if self._is_trusted and number <= last - _ALONE else 1
            batch = range(number, max(0, number - size), -1)
            answers = yield from self._answers(batch)
            for each, given in zip(batch, answers, strict=True):
                answer = yield from self._ask_anew(each, given, behind)
                if not isinstance(answer, AdapterPage) or not answer.identities:
                    if not isinstance(answer, Refused) or answer.is_gone or answer.is_objection:
                        self._holes.add(each)
                    else:
                        self._pages.has_gaps = True
                    continue
                is_idle = self._is_idle(answer)
                if behind is not None and (yield from self._got_shorter(answer, behind)):
                    self.unsettled = "the pages got shorter while they were read"
                    self._take(answer)
                    return behind[0]
                yield from self._check_order(each, answer)
                is_moved = behind is not None and behind[1].validators != answer.validators
                if behind is not None and is_moved and self._pages.are_told:
                    yield from self._seam(each, last, (behind[1], answer))
                if each == last:
                    self._tail = answer.identities
                self._take(answer)
                self._count(is_idle=is_idle)
                if isinstance(given, AdapterPage) and given.identities == answer.identities:
                    answer = given  # counts as old as the stored pages in front of it
                behind = each, answer
            number = batch[-1] - 1
        return 1

    def _ask_anew(
        self, number: int, answer: PageResponse, behind: tuple[int, AdapterPage] | None
    ) -> Asking[PageResponse]:
        """Ask again for a page of an interrupted walk if the page behind it is much newer.

        The old page may have gained entries since, or taken some from the page behind it.
        """
        is_old = (
            isinstance(answer, AdapterPage)
            and behind is not None
            and answer.had_at < behind[1].had_at - _OLDER_SECONDS
        )
        return (yield from one(self.ask(number, is_again=True))) if is_old else answer

    def _answers(self, batch: range) -> Asking[Sequence[PageResponse]]:
        probed = self._pages.probed.pop(batch.start, None)
        if probed is not None:
            return [probed]
        return (yield [self.ask(each, is_again=self._is_again) for each in batch])

    def _got_shorter(self, page: AdapterPage, behind: tuple[int, AdapterPage]) -> Asking[bool]:
        """Return whether pages now hold fewer entries, so that some moved to pages already read.

        No validator shows that.
        """
        is_repeated = page.identities == behind[1].identities
        is_shorter = len(page.identities) < self._length
        if not (is_repeated or is_shorter):
            self._length = self._length if self._is_uneven else len(page.identities)
            return False
        again = yield from self._ask_again(behind[0])
        has_others = again is None or again.identities != behind[1].identities
        if is_repeated and not has_others:  # a deletion may move the entries of one page to the next
            raise NotHonouredError(is_numbered=False)
        if is_shorter and not has_others:
            self._is_uneven, self._length = True, len(page.identities)
        return is_shorter and has_others and again is not None

    def _check_order(self, number: int, page: AdapterPage) -> Asking[None]:
        """Check that the publisher honours the requested order (R27)."""
        if self._is_trusted or page.is_ascending is None:
            return
        self._is_trusted = True
        if not page.is_ascending and number > 1:  # some imports give the newest post the lowest ID
            first = yield from one(self.ask(1, is_probe=True))
            if isinstance(first, AdapterPage) and self._pages.repeats(first):
                raise NotHonouredError(is_numbered=True)

    def _take(self, answer: PageResponse) -> AdapterPage | None:
        page = self._pages.take(answer)
        if page is not None:
            self._had.update(page.identities)
        return page

    def _ask_again(self, number: int) -> Asking[AdapterPage | None]:
        return self._take((yield from one(self.ask(number, is_again=True))))

    def _ask_further(self, number: int) -> Asking[AdapterPage | None]:
        """Ask for a page that must bring news if it exists."""
        answer = yield from one(self.ask(number, is_again=True))
        is_idle = isinstance(answer, AdapterPage) and self._is_idle(answer)
        page = self._take(answer)
        self._count(is_idle=is_idle)
        return page

    def _is_idle(self, page: AdapterPage) -> bool:
        return not page.is_stored and self._had.issuperset(page.identities)

    def _count(self, *, is_idle: bool) -> None:
        self._idle_in_a_row = self._idle_in_a_row + 1 if is_idle else 0
        self._idle_in_all += is_idle
        if self._idle_in_a_row >= WITHOUT_NEWS or self._idle_in_all >= _WITHOUT_NEWS_IN_ALL:
            raise NoProgressError

    # Something went live

    def _seam(self, number: int, last: int, pair: tuple[AdapterPage, AdapterPage]) -> Asking[None]:
        """Ask again for entries that may have moved across the boundary behind a page.

        `pair` is the page behind it as first read, and the page.
        """
        had = frozenset(self._had)
        is_still = False
        while not is_still and self._pages.are_told and self._seams < _SEAMS + last // 4:
            self._seams += 1
            top = number + 1
            page = yield from self._ask_again(top)
            if page is not None and _is_same(page, pair[0]) and pair[0].validators != pair[1].validators:
                self._pages.are_told = False  # the page has validators of its own
                return
            while page is not None and had.isdisjoint(page.identities) and top < MOST_PAGES:
                top += 1
                page = yield from self._ask_further(top)
            came, is_still = [page], True
            for each in range(top - 1, number - 1, -1):
                page = yield from self._ask_again(each)
                is_still = is_still and (None in (page, came[-1]) or _are_of_one(page, came[-1]))
                came.append(page or came[-1])
            self._doubt(pair, came, is_still=is_still)
        if not is_still and self._pages.are_told:
            self.unsettled = "posts were published faster than the pages were read"

    def _doubt(
        self, pair: tuple[AdapterPage, AdapterPage], came: Sequence[AdapterPage | None], *, is_still: bool
    ) -> None:
        is_moved = [page and page.identities for page in came] != [page.identities for page in pair]
        self._made_up += not (is_still or is_moved)
        self._pages.are_told = self._made_up < _MADE_UP

    # The end

    def _end(self, last: int) -> Asking[int]:
        had = frozenset(self._had)
        number, page = last, (yield from self._ask_again(last))
        has_shifted = page is not None and page.identities[0] in had.difference(self._tail)
        if has_shifted and not self._pages.are_told:
            self.unsettled = "posts moved to other pages while they were read"
        if page is None and last > 1 and not self._pages.is_refused:  # there are fewer now
            number = yield from self._search(1, last)
            page = yield from self._ask_again(number)
        top = number
        while page is not None and len(page.identities) >= self._length and top < MOST_PAGES:
            behind = yield from self._ask_further(top + 1)
            if behind is None or behind.identities == page.identities:
                break
            top, page = top + 1, behind
        lowest = top
        while page is not None and lowest > 1 and page.identities[0] not in had and top - lowest < _FEW:
            lowest -= 1
            page = yield from self._ask_again(lowest)
        return top

    def _search(self, there: int, gone: int | None) -> Asking[int]:
        try:
            found = yield from last_page(lambda each: self.ask(each, is_probe=True), low=there, high=gone)
        except SearchError as exc:
            self._pages.refused = exc.refused
            return gone or there
        if found >= MOST_PAGES:
            raise NotHonouredError(is_numbered=False)
        return found


# Pages of one question; a change may make all of them useless.
_AT_ONCE: Final = 8
# Pages asked for one by one at first, in case numbers are not honoured.
_ALONE: Final = 2
# Seams, besides one for each four pages, before validators lose trust.
_SEAMS: Final = 8
# Age difference to the page behind it that marks a page of an interrupted walk.
_OLDER_SECONDS: Final = 60.0
_FEW: Final = 3
WITHOUT_NEWS: Final = 3
# Pages without news on their first fetch: no change of a blog makes so many.
_WITHOUT_NEWS_IN_ALL: Final = 10
# Seams with nothing but new validators, before validators lose trust.
_MADE_UP: Final = 2


def _are_of_one(page: AdapterPage | None, other: AdapterPage | None) -> bool:
    return page is not None and other is not None and page.validators == other.validators


def _is_same(page: AdapterPage, other: AdapterPage) -> bool:
    return page.validators == other.validators and page.identities == other.identities


class NotHonouredError(Exception):
    """The responses show that the publisher ignores page numbers, or the order."""

    def __init__(self, *, is_numbered: bool) -> None:
        super().__init__(
            "the publisher does not honour the order"
            if is_numbered
            else "the publisher does not honour page numbers"
        )
        self.is_numbered = is_numbered


class NoProgressError(Exception):
    """Page after page brings nothing new: perhaps caches send copies of different age."""

    def __init__(self) -> None:
        super().__init__("page after page brought nothing new")


# By date

BY_DATE: Final = "date archives"


def collect_by_date(pages: WordPressPages) -> Asking[AdapterOutcome]:
    """Ask for the posts of a site by the paths of its date archives, from this year back.

    Only a full year is read by its months, and a full month by its days. A full day may have more posts: the
    feed stays partial. The walk ends with as many posts as the publisher counts, or after twenty empty years
    in a row.
    """
    if dated_url(pages.job.url, _FIRST_YEAR) is None or not _is_of_site(pages.job):
        return pages.job.report_unproven("the publisher does not offer pages")
    archives, empty = _Archives(pages, is_again=False), 0
    today = _day(pages.job.now)
    for year in range(today.year, _FIRST_YEAR - 1, -1):
        shown = yield from archives.year(year)
        empty = 0 if shown else empty + 1
        if archives.is_through or empty >= _EMPTY_YEARS:
            break
    if pages.has_moved and archives.has_met and not pages.is_refused:  # for posts published meanwhile
        archives.is_again = True
        yield from archives.month(today.year, today.month)
    if not archives.is_honoured:
        reason = "the publisher offers neither pages nor archives by date"
        return pages.job.report_unproven(pages.refused.slug if pages.refused else reason)
    return _outcome(archives, pages.outcome(BY_DATE, archives.asked))


_FIRST_YEAR: Final = 1970
_EMPTY_YEARS: Final = 20


def _is_of_site(job: AdapterJob) -> bool:
    """Return whether the feed is a whole site's: categories and authors have no date archives."""
    api_url = job.page.marks.api_url
    return is_main(job.url, api_url) if api_url else True


def look_by_date(job: AdapterJob) -> Asking[AdapterOutcome]:
    """Ask for the months since the last look, and for the month before."""
    pages = WordPressPages(job)
    archives = _Archives(pages, is_again=True)
    span, looked_at = _day(job.now), job.known.looked_at
    first = _month_before(span if looked_at is None else min(span, _day(looked_at)))
    while span >= first and not pages.is_refused:
        yield from archives.month(span.year, span.month)
        span = _month_before(span)
    if job.is_linked:  # all later posts stood in the subscription document
        archives.full_day = ""
    return _outcome(archives, AdapterOutcome(is_honoured=True, known=job.known))


class _Archives:
    def __init__(self, pages: WordPressPages, *, is_again: bool) -> None:
        self.pages = pages
        self.is_again = is_again
        self.asked = 0
        # Whether a span brought entries not in the subscription document.
        self.has_met = False
        self.kinds: set[bool] = set()
        """Whether spans had posts; both values together prove that dates are honoured."""
        self.are_there = True
        """Whether the publisher has date archives; it sends an empty feed for an empty one."""
        # Entries of spans, by the count of numbers in the span.
        self.shown: dict[int, set[tuple[EntryId, ...]]] = {}
        # Count of pages with an entry from before the span.
        self.strays = 0
        self.full_day = ""

    @property
    def is_through(self) -> bool:
        pages = self.pages
        is_met = pages.total is not None and len(pages.met) >= pages.total and not pages.has_moved
        return pages.is_refused or not self.are_there or (is_met and self.is_honoured)

    @property
    def is_honoured(self) -> bool:
        """Whether the responses prove that dates are honoured (R27)."""
        return self.has_met or len(self.kinds) > 1

    def ask(self, *span: int) -> Asking[int]:
        url = dated_url(self.pages.job.url, *span)
        assert url is not None, "the feed has archives by date"
        # Most days of some years are empty: each year has a bound of its own.
        answer = yield from one(
            PageQuestion(url, place=_place(*span), is_again=self.is_again, reading=span[0])
        )
        self.asked += 1
        if isinstance(answer, Refused):
            if answer.is_gone or answer.is_objection:
                self.are_there = self.asked > 1 and self.are_there
            else:
                self.pages.refused = answer
            return 0
        assert isinstance(answer, AdapterPage)
        if self._is_anything(answer, span):
            self.are_there = self.has_met = False
            self.kinds.clear()
            return 0
        if answer.identities:
            self.has_met |= self.pages.meet(answer) > 0
        self.kinds.add(bool(answer.identities))
        return len(answer.identities)

    def _is_anything(self, page: AdapterPage, span: tuple[int, ...]) -> bool:
        """Return whether the publisher sends some feed for any path (R27).

        Otherwise the walk would ask a static site for thousands of days. One entry from before its span may
        have a wrong date. But two spans of one kind never have the same entries.
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
        entries = yield from self.ask(year)
        if entries >= self.pages.full:
            for month in range(_MONTHS, 0, -1):
                if self.is_through:
                    break
                yield from self.month(year, month)
        return entries

    def month(self, year: int, month: int) -> Asking[None]:
        if (yield from self.ask(year, month)) < self.pages.full:
            return
        for day in range(calendar.monthrange(year, month)[1], 0, -1):
            if (yield from self.ask(year, month, day)) >= self.pages.full:
                self.full_day = dated_url(self.pages.job.url, year, month, day) or ""
            if self.is_through:
                return


_MONTHS: Final = 12
# A site's day may begin earlier than a UTC day.
_ZONES_SECONDS: Final = 2 * DAY_SECONDS


def _outcome(archives: _Archives, outcome: AdapterOutcome) -> AdapterOutcome:
    refused = archives.pages.refused
    if refused is not None:
        return replace(outcome, is_whole=False, reason=refused.slug)
    if archives.full_day and not archives.is_through:
        reason = f"more posts of one day than a feed holds: {archives.full_day}"
        return replace(outcome, is_whole=False, is_final=True, reason=reason)
    return outcome


def _day(now: float) -> date:
    """Return the date half a day ahead: somewhere the next day has begun."""
    return datetime.fromtimestamp(now + DAY_SECONDS / 2, UTC).date()


def _begin(year: int, month: int = 1, day: int = 1) -> float:
    return datetime(year, month, day, tzinfo=UTC).timestamp()


def _month_before(day: date) -> date:
    return (day.replace(day=1) - timedelta(days=1)).replace(day=1)


_DAYS_OF_MONTH: Final = 31


def _place(year: int, month: int = _MONTHS, day: int = _DAYS_OF_MONTH) -> int:
    """Return the rank of a span: behind later spans and finer ones within it."""
    return -(year * 1000 + month * 40 + day)
