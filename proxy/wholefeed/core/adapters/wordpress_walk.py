"""All pages of a WordPress feed: by number, or by date where a cache strips the queries (rule R28)."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from wholefeed.core.adapters.base import (
    MOST_PAGES,
    Answer,
    Ask,
    Asking,
    Job,
    Outcome,
    Page,
    Refused,
    SearchError,
    last_page,
    one,
)
from wholefeed.core.adapters.wordpress_pages import AskFor, Pages, dated_url, is_main
from wholefeed.core.model import EntryId
from wholefeed.core.text.dates import DAY_SECONDS

# By number


class Walk:
    """One walk through all pages, from the last to the first.

    What a deletion moves comes to a page that has not been had yet. A post that goes live moves others the
    other way, to pages that were had; that shows in the validators.

        DOWN   N, N-1, … 1
               the validators moved between k+1 and k -> SEAM, unless each page bears its own
               k is of before the walk was cut off, and k+1 is not -> k again
        k is shorter than those behind it, and k+1 has others now: pages got shorter -> over, unsettled
               k has what k+1 has, and k+1 has that still: numbers are not honoured
        SEAM   k+1, k+2, … until one has something that was had; from there down to k again
               the validators have moved once more, too often -> unsettled
        END    N again, and what stands behind it now; where N is no more, what is the last now
               validators tell nothing, and N begins with what stood on N-1 -> unsettled
        HOLES  pages that were not there, though later ones are: once more

    `ask` makes the question for a page: `pages.by_id`, or `pages.front`. Where it is done again, pages that
    were had in this walk before do not serve.
    """

    def __init__(self, pages: Pages, ask: AskFor, *, is_again: bool = False) -> None:
        self._pages = pages
        self.ask = ask
        self._is_again = is_again
        self._had: set[EntryId] = set()
        """What stood on the pages behind the one that comes next."""
        self._holes: set[int] = set()
        self._idle_in_a_row = self._idle_in_all = 0
        self._seams = 0
        self._made_up = 0
        self._length = pages.full
        """How many entries a page has that is not the last."""
        self._is_uneven = False
        """Whether one had fewer, and nothing had moved."""
        self._tail: tuple[EntryId, ...] = ()
        """What stood on the last page."""
        self.unsettled = ""
        """Why entries may have slipped past it unseen."""
        self._is_trusted = ask == pages.front

    def steps(self, last: int) -> Asking[int]:
        """Ask for all; return the number of the last page.

        Raises:
            NotHonouredError: Numbers or order are not honoured.
            NoProgressError: Page after page brings nothing.
        """
        reached = yield from self._down(last)
        if reached > 1:
            return (yield from self._search(reached, None))
        last = yield from self._end(last)
        holes = sorted(number for number in self._holes if number < last)
        # Later pages answer: these are missing, if they still are (R6).
        if holes and not self._pages.is_refused:
            for answer in (yield [self.ask(each, is_again=True, is_needed=True) for each in holes]):
                self._pages.has_gaps |= self._taken(answer) is None
        return last

    # Down

    def _down(self, last: int) -> Asking[int]:
        """Ask for all; return 1, or where pages got shorter meanwhile the number of one that is there."""
        behind: tuple[int, Page] | None = None
        number = last
        while number >= 1:
            size = _AT_ONCE if self._is_trusted and number <= last - _ALONE else 1
            batch = range(number, max(0, number - size), -1)
            answers = yield from self._answers(batch)
            for each, given in zip(batch, answers, strict=True):
                answer = yield from self._anew(each, given, behind)
                if not isinstance(answer, Page) or not answer.identities:
                    if not isinstance(answer, Refused) or answer.is_gone or answer.is_objection:
                        self._holes.add(each)
                    else:
                        self._pages.has_gaps = True
                    continue
                is_idle = self._is_idle(answer)
                if behind is not None and (yield from self._got_shorter(answer, behind)):
                    self.unsettled = "the pages got shorter while they were read"
                    self._taken(answer)
                    return behind[0]
                yield from self._check_order(each, answer)
                is_moved = behind is not None and behind[1].validators != answer.validators
                if behind is not None and is_moved and self._pages.are_told:
                    yield from self._seam(each, last, (behind[1], answer))
                if each == last:
                    self._tail = answer.identities
                self._taken(answer)
                self._count(is_idle=is_idle)
                if isinstance(given, Page) and given.identities == answer.identities:
                    answer = given  # as old as those before it that are stored
                behind = each, answer
            number = batch[-1] - 1
        return 1

    def _anew(self, number: int, answer: Answer, behind: tuple[int, Page] | None) -> Asking[Answer]:
        """Ask again for a page of a walk that was cut off, where the one behind it came long after.

        It may have got more entries since, or have taken some of that one's.
        """
        is_old = (
            isinstance(answer, Page)
            and behind is not None
            and answer.had_at < behind[1].had_at - _OLDER_SECONDS
        )
        return (yield from one(self.ask(number, is_again=True))) if is_old else answer

    def _answers(self, batch: range) -> Asking[Sequence[Answer]]:
        probed = self._pages.probed.pop(batch.start, None)
        if probed is not None:
            return [probed]
        return (yield [self.ask(each, is_again=self._is_again) for each in batch])

    def _got_shorter(self, page: Page, behind: tuple[int, Page]) -> Asking[bool]:
        """Whether entries moved to pages that were had since each has fewer than it had: no validator tells.

        `behind` is number and page of the one before which it stands.
        """
        is_repeated = page.identities == behind[1].identities
        is_shorter = len(page.identities) < self._length
        if not (is_repeated or is_shorter):
            self._length = self._length if self._is_uneven else len(page.identities)
            return False
        again = yield from self._again(behind[0])
        has_others = again is None or again.identities != behind[1].identities
        if is_repeated and not has_others:  # a deletion may move the entries of one page to the next
            raise NotHonouredError(is_numbered=False)
        if is_shorter and not has_others:
            self._is_uneven, self._length = True, len(page.identities)
        return is_shorter and has_others and again is not None

    def _check_order(self, number: int, page: Page) -> Asking[None]:
        """R27: whether the order is the one that was asked for."""
        if self._is_trusted or page.is_ascending is None:
            return
        self._is_trusted = True
        if not page.is_ascending and number > 1:  # some imports give the newest post the lowest ID
            first = yield from one(self.ask(1, is_probe=True))
            if isinstance(first, Page) and self._pages.repeats(first):
                raise NotHonouredError(is_numbered=True)

    def _taken(self, answer: Answer) -> Page | None:
        page = self._pages.take(answer)
        if page is not None:
            self._had.update(page.identities)
        return page

    def _again(self, number: int) -> Asking[Page | None]:
        return self._taken((yield from one(self.ask(number, is_again=True))))

    def _further(self, number: int) -> Asking[Page | None]:
        """Ask for a page that has to bring something, if it is there."""
        answer = yield from one(self.ask(number, is_again=True))
        is_idle = isinstance(answer, Page) and self._is_idle(answer)
        page = self._taken(answer)
        self._count(is_idle=is_idle)
        return page

    def _is_idle(self, page: Page) -> bool:
        """Whether a page brings nothing that this walk had not met; one that is stored need not."""
        return not page.is_stored and self._had.issuperset(page.identities)

    def _count(self, *, is_idle: bool) -> None:
        self._idle_in_a_row = self._idle_in_a_row + 1 if is_idle else 0
        self._idle_in_all += is_idle
        if self._idle_in_a_row >= WITHOUT_NEWS or self._idle_in_all >= _WITHOUT_NEWS_IN_ALL:
            raise NoProgressError

    # Something went live

    def _seam(self, number: int, last: int, pair: tuple[Page, Page]) -> Asking[None]:
        """Ask again for what may have moved past the boundary behind a page.

        `pair` is the page behind it as it was had, and the page.
        """
        had = frozenset(self._had)
        is_still = False
        while not is_still and self._pages.are_told and self._seams < _SEAMS + last // 4:
            self._seams += 1
            top = number + 1
            page = yield from self._again(top)
            if page is not None and _is_same(page, pair[0]) and pair[0].validators != pair[1].validators:
                self._pages.are_told = False  # the page has validators of its own
                return
            while page is not None and had.isdisjoint(page.identities) and top < MOST_PAGES:
                top += 1
                page = yield from self._further(top)
            came, is_still = [page], True
            for each in range(top - 1, number - 1, -1):
                page = yield from self._again(each)
                is_still = is_still and (None in (page, came[-1]) or _are_of_one(page, came[-1]))
                came.append(page or came[-1])
            self._doubt(pair, came, is_still=is_still)
        if not is_still and self._pages.are_told:
            self.unsettled = "posts were published faster than the pages were read"

    def _doubt(self, pair: tuple[Page, Page], came: Sequence[Page | None], *, is_still: bool) -> None:
        is_moved = [page and page.identities for page in came] != [page.identities for page in pair]
        self._made_up += not (is_still or is_moved)
        self._pages.are_told = self._made_up < _MADE_UP

    # The end

    def _end(self, last: int) -> Asking[int]:
        """Ask for the last page again, and for what stands behind it; return which is the last now."""
        had = frozenset(self._had)
        number, page = last, (yield from self._again(last))
        has_shifted = page is not None and page.identities[0] in had.difference(self._tail)
        if has_shifted and not self._pages.are_told:
            self.unsettled = "posts moved to other pages while they were read"
        if page is None and last > 1 and not self._pages.is_refused:  # there are fewer now
            number = yield from self._search(1, last)
            page = yield from self._again(number)
        top = number
        while page is not None and len(page.identities) >= self._length and top < MOST_PAGES:
            behind = yield from self._further(top + 1)
            if behind is None or behind.identities == page.identities:
                break
            top, page = top + 1, behind
        lowest = top
        while page is not None and lowest > 1 and page.identities[0] not in had and top - lowest < _FEW:
            lowest -= 1
            page = yield from self._again(lowest)
        return top

    def _search(self, there: int, gone: int | None) -> Asking[int]:
        """Return which page is the last, between one that is there and one that is not, if one is known."""
        try:
            found = yield from last_page(lambda each: self.ask(each, is_probe=True), low=there, high=gone)
        except SearchError as exc:
            self._pages.refused = exc.refused
            return gone or there
        if found >= MOST_PAGES:
            raise NotHonouredError(is_numbered=False)
        return found


_AT_ONCE: Final = 8
"""Pages of one question; so many may have to be asked for again when something moves."""
_ALONE: Final = 2
"""Pages asked for one by one at first, in case that numbers are not honoured."""
_SEAMS: Final = 8
"""So often, and once for four pages, the validators are believed: some publishers make them up each time."""
_OLDER_SECONDS: Final = 60.0
"""A page that was had so much before the one behind it comes from a walk that was cut off."""
_FEW: Final = 3
WITHOUT_NEWS: Final = 3
_WITHOUT_NEWS_IN_ALL: Final = 10
"""Pages without news, each asked for the first time: no change of a blog makes as many."""
_MADE_UP: Final = 2
"""Looks at a seam where nothing had moved and the validators were others again: none is believed then."""


def _are_of_one(page: Page | None, other: Page | None) -> bool:
    return page is not None and other is not None and page.validators == other.validators


def _is_same(page: Page, other: Page) -> bool:
    return page.validators == other.validators and page.identities == other.identities


class NotHonouredError(Exception):
    """The answers show that page numbers are not honoured, or the order."""

    def __init__(self, *, is_numbered: bool) -> None:
        super().__init__("the order is not honoured" if is_numbered else "page numbers are not honoured")
        self.is_numbered = is_numbered


class NoProgressError(Exception):
    """Page after page brings nothing that the walk had not met: copies of different age come, say."""

    def __init__(self) -> None:
        super().__init__("page after page brought nothing new")


# By date

BY_DATE: Final = "date archives"


def collect_by_date(pages: Pages) -> Asking[Outcome]:
    """Ask for the posts of a site by the paths of its date archives, from this year back.

    A year first: one that is not full is all there is of it. A full one is read by its months, a full month
    by its days. A full day may have had more, and nothing tells: the feed stays partial then. Where the
    publisher's count is known it ends when as many were met, else when twenty years in a row are empty.
    """
    if dated_url(pages.job.url, _FIRST_YEAR) is None or not _is_of_site(pages.job):
        return pages.job.unproven("the publisher does not answer by pages")
    archives, empty = _Archives(pages, is_again=False), 0
    today = _day(pages.job.now)
    for year in range(today.year, _FIRST_YEAR - 1, -1):
        shown = yield from archives.year(year)
        empty = 0 if shown else empty + 1
        if archives.is_through or empty >= _EMPTY_YEARS:
            break
    if pages.has_moved and archives.has_met and not pages.is_refused:  # what was published meanwhile
        archives.is_again = True
        yield from archives.month(today.year, today.month)
    if not archives.is_honoured:
        reason = "the publisher does not answer by pages, nor by date"
        return pages.job.unproven(pages.refused.slug if pages.refused else reason)
    return _outcome(archives, pages.outcome(BY_DATE, archives.asked))


_FIRST_YEAR: Final = 1970
_EMPTY_YEARS: Final = 20


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
    if job.is_linked:  # whatever came since stood in the subscription document
        archives.full_day = ""
    return _outcome(archives, Outcome(is_honoured=True, known=job.known))


class _Archives:
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
        # Most days of some years are empty: each year has a bound of its own.
        answer = yield from one(Ask(url, place=_place(*span), is_again=self.is_again, reading=span[0]))
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


_MONTHS: Final = 12
_ZONES_SECONDS: Final = 2 * DAY_SECONDS
"""A site's day may begin earlier than that of UTC."""


def _outcome(archives: _Archives, outcome: Outcome) -> Outcome:
    refused = archives.pages.refused
    if refused is not None:
        return replace(outcome, is_whole=False, reason=refused.slug)
    if archives.full_day and not archives.is_through:
        reason = f"more posts of one day than a feed holds: {archives.full_day}"
        return replace(outcome, is_whole=False, is_final=True, reason=reason)
    return outcome


def _day(now: float) -> date:
    """Half a day ahead: somewhere it is tomorrow already."""
    return datetime.fromtimestamp(now + DAY_SECONDS / 2, UTC).date()


def _begin(year: int, month: int = 1, day: int = 1) -> float:
    """Return when a span begins."""
    return datetime(year, month, day, tzinfo=UTC).timestamp()


def _month_before(day: date) -> date:
    return (day.replace(day=1) - timedelta(days=1)).replace(day=1)


_DAYS_OF_MONTH: Final = 31


def _place(year: int, month: int = _MONTHS, day: int = _DAYS_OF_MONTH) -> int:
    """A span stands behind all later ones, and behind the finer ones that it contains."""
    return -(year * 1000 + month * 40 + day)
