"""All posts of a WordPress feed, page by page (rule R28).

COUNT   how many pages there are, by the REST API or by asking for pages
BY ID   N, N-1, … 1, then N again and whatever stands behind it
        the validators moved between page k+1 and page k -> k+1 again: a post went live before it
        the validators moved since the beginning         -> what was changed since, by `orderby=modified`
FRONT   2, 3, … as the feed itself is ordered, until there is no more
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wholefeed.core.adapters.asking import Answer, Ask, Asking, Job, Outcome, Page, Refused, There, one
from wholefeed.core.adapters.last_page import MOST_PAGES, SearchError, last_page
from wholefeed.core.adapters.urls import page_url
from wholefeed.core.adapters.wordpress_urls import count_url, is_at_same_host, is_main
from wholefeed.core.model import EntryId
from wholefeed.core.text.dates import parse_rfc822

BY_ID: Final = "orderby=ID"
FROM_FRONT: Final = "paged"

AT_ONCE: Final = 8
"""Pages of one question; so many may have to be asked for again when something moves."""
FRONT_PLACE: Final = -2_000_000_000
"""Pages as the feed orders them stand in front of those by ID, which count down from 0."""
MODIFIED_PLACE: Final = -1_000_000_000
_WITHOUT_NEWS: Final = 2


class Pages:
    """What is known of the pages while they are asked for."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.first = job.page.identities
        """Of the subscription document, from the top."""
        self.met: set[EntryId] = set(self.first)
        self.total: int | None = None
        self.latest_date = job.page.updated_at
        self.dates: set[float | None] = set()
        self.has_queries = True
        """Whether the publisher reads parameters; some caches in front answer without them."""
        self.latest_validators: tuple[str, str] | None = None
        """Of the last page, when it was asked for once more."""
        self.probed: dict[int, Page] = {}
        """Pages by ID that came when they were counted."""
        self.refused: Refused | None = None
        """What ended the questions before their end."""

    @property
    def is_refused(self) -> bool:
        """Whether something could not be asked for."""
        return self.refused is not None

    @property
    def full(self) -> int:
        """How many entries a full page has: the subscription document is one, or all there is."""
        return len(self.first)

    def by_id(self, number: int, *, is_again: bool = False, is_needed: bool = False) -> Ask:
        """Ask for a page in the order of IDs, the oldest first."""
        url = _numbered(page_url(self.job.url, orderby="ID", order="ASC"), number)
        return Ask(url, place=-number, is_again=is_again, is_needed=is_needed)

    def front(self, number: int, *, is_again: bool = False) -> Ask:
        """Ask for a page in the feed's own order."""
        return Ask(page_url(self.job.url, paged=number), place=FRONT_PLACE + number, is_again=is_again)

    def modified(self, number: int) -> Ask:
        """Ask for a page in the order of change, the latest first."""
        url = _numbered(page_url(self.job.url, orderby="modified"), number)
        return Ask(url, place=MODIFIED_PLACE + number, is_again=True)

    def meet(self, page: Page) -> int:
        """Take in what a page has; return how many of its entries were not met before."""
        before = len(self.met)
        self.met.update(page.identities)
        self.dates.add(page.updated_at)
        if page.updated_at is not None:
            self.latest_date = max(self.latest_date or page.updated_at, page.updated_at)
        return len(self.met) - before

    def repeats(self, page: Page) -> bool:
        """Whether a page is the subscription document once more, entry for entry."""
        return len(page.identities) == len(self.first) and page.identities == self.first

    def outcome(self, way: str, pages: int, *, is_whole: bool = True) -> Outcome:
        """Return what came of asking for all pages."""
        known = replace(
            self.job.known,
            way=way,
            pages=pages,
            page_entries=self.full,
            total=self.total,
            collected=len(self.met),
            scanned_date=self.latest_date,
            is_tied=False,
            is_flat=len(self.dates) == 1 and pages > 1,
            retry_at=None,
            reason="",
        )
        reason = "" if self.refused is None else self.refused.slug
        return Outcome(is_honoured=True, is_whole=is_whole, known=known, reason=reason)

    def unproven(self, reason: str) -> Outcome:
        """Return that the publisher has shown nothing more than the subscription document."""
        return Outcome(is_honoured=False, known=self.job.known, reason=reason)


def _numbered(url: str, number: int) -> str:
    """WordPress leads a page of number 1 to the URL without a number."""
    return page_url(url, paged=number) if number > 1 else url


def has_entries(answer: object) -> bool:
    """Whether a page came, and something stands on it."""
    return isinstance(answer, Page) and bool(answer.identities)


def collect_by_id(pages: Pages) -> Asking[Outcome | None]:
    """Ask for all pages by ID; None where the order, or parameters at all, are not honoured."""
    try:
        last = yield from _count(pages)
    except SearchError as exc:
        return pages.unproven(f"a page could not be asked for: {exc.refused.slug}")
    if last is None:
        return None
    if last == 1:
        return (yield from _single(pages))
    for is_again in (False, True):  # once more where the publisher claims more than was met (R31)
        last, is_ordered = yield from _down(pages, last, is_again=is_again)
        if not is_ordered:
            return None
        yield from _changed_meanwhile(pages)
        if pages.refused or pages.total is None or len(pages.met) >= pages.total:
            break
    return pages.outcome(BY_ID, last, is_whole=pages.refused is None)


def _count(pages: Pages) -> Asking[int | None]:
    """Return the number of the last page; None where parameters are not honoured."""
    guess = yield from _guess(pages)
    if guess == 1:
        return 1
    probe = guess or 2
    answer = yield from one(pages.by_id(probe))
    if isinstance(answer, Refused) and not answer.is_gone:
        raise SearchError(answer)
    if isinstance(answer, Page) and pages.repeats(answer):
        pages.has_queries = False
        return None
    is_there = has_entries(answer)
    if isinstance(answer, Page) and is_there and guess is not None:
        pages.probed[guess] = answer
        return guess
    if not is_there and probe == 2:  # noqa: PLR2004 - the smallest that is not the first
        return 1
    low, high = (probe, None) if is_there else (1, probe)
    last = yield from last_page(lambda number: pages.by_id(number).url, low=low, high=high)
    if last == low:
        return last if last < MOST_PAGES else None
    answer = yield from one(pages.by_id(last))
    if isinstance(answer, Page) and answer.identities:
        pages.probed[last] = answer
    else:  # HEAD answers anything
        last = yield from last_page(
            lambda number: pages.by_id(number).url, low=low, high=last, uses_head=False
        )
    return last if last < MOST_PAGES else None


def _guess(pages: Pages) -> Asking[int | None]:
    """Return what the REST API makes of the number of pages; None where it says nothing of this feed."""
    api_url, url = pages.job.page.marks.api_url, pages.job.url
    if not api_url or not is_at_same_host(url, api_url) or not is_main(url, api_url):
        return None
    answer = yield from one(Ask(count_url(api_url), is_head=True))
    claimed = answer.headers.get("x-wp-total", "") if isinstance(answer, There) else ""
    if not claimed.isascii() or not claimed.isdigit() or len(claimed) > len(str(MOST_PAGES)) + 3:
        return None
    pages.total = int(claimed)
    return max(1, -(-pages.total // pages.full))


def _single(pages: Pages) -> Asking[Outcome]:
    """R27: a blog of one page is collected where the order of IDs turns that page around."""
    asks = [pages.by_id(1), pages.by_id(2)]
    first, second = yield asks
    if isinstance(first, Refused) or (isinstance(second, Page) and pages.repeats(second)):
        return pages.unproven("the publisher does not answer by pages")
    if has_entries(second):  # more than the publisher said, or since
        pages.total = None
        last = yield from last_page(lambda number: pages.by_id(number).url, low=2)
        last, is_ordered = yield from _down(pages, last)
        if is_ordered:
            return pages.outcome(BY_ID, last, is_whole=pages.refused is None)
        return pages.unproven("the publisher does not honour the order of pages")
    assert isinstance(first, Page)
    is_turned = first.identities == pages.first[::-1] or pages.meet(first) > 0
    if not is_turned or (isinstance(second, Refused) and not second.is_gone):
        return pages.unproven("the publisher does not answer by pages")
    pages.meet(first)
    return pages.outcome(BY_ID, 1)


def _down(pages: Pages, last: int, *, is_again: bool = False) -> Asking[tuple[int, bool]]:
    """Ask from the last page to the first, then for the last again; return the last, and whether it is so."""
    newer: tuple[int, tuple[str, str]] | None = None
    number, is_known = last, False
    while number >= 1:
        batch = range(number, max(0, number - (AT_ONCE if is_known else 1)), -1)
        answers: Sequence[Answer]
        if number in pages.probed:
            answers, batch = [pages.probed.pop(number)], range(number, number - 1, -1)
        else:
            asks = [pages.by_id(each, is_again=is_again, is_needed=each < last) for each in batch]
            answers = yield asks
        moved: list[int] = []
        for each, answer in zip(batch, answers, strict=True):
            if not isinstance(answer, Page):
                continue
            if not is_known and answer.is_ascending is not None:
                if not answer.is_ascending:
                    return last, False
                is_known = True
            pages.meet(answer)
            if newer is not None and newer[1] != answer.validators:
                moved.append(newer[0])
            newer = each, answer.validators
        yield from _again(pages, moved)
        number = batch[-1] - 1
    return (yield from _end(pages, last)), True


def _again(pages: Pages, numbers: Sequence[int]) -> Asking[None]:
    """A post went live meanwhile, and moved others from pages that were not had to pages that were."""
    if numbers:
        answers = yield [pages.by_id(each, is_again=True) for each in numbers]
        for answer in answers:
            if isinstance(answer, Page):
                pages.meet(answer)


def _end(pages: Pages, last: int) -> Asking[int]:
    """Ask for the last page again, and for what stands behind it now; return what is the last page."""
    number = last
    while number <= MOST_PAGES:
        answer = yield from one(pages.by_id(number, is_again=True))
        if not isinstance(answer, Page) or not answer.identities:
            if isinstance(answer, Refused) and not answer.is_gone:
                pages.refused = answer
            return max(1, number - 1)
        pages.latest_validators = answer.validators
        if not pages.meet(answer) and number > last:
            return last  # it answers any number with what was had
        if len(answer.identities) < pages.full:
            return number
        number += 1
    return MOST_PAGES


def _changed_meanwhile(pages: Pages) -> Asking[None]:
    """Ask for the posts that were edited while the pages came."""
    job = pages.job
    if pages.latest_validators in (None, job.page.validators):
        return
    began_date = parse_rfc822(job.page.validators[1]) or job.page.updated_at
    yield from changed_since(pages, began_date)


def changed_since(pages: Pages, date: float | None) -> Asking[bool]:
    """Ask by date of change until a page is older than that; return whether two in a row bore one date."""
    number, previous, is_tied = 1, None, False
    while date is not None and number <= MOST_PAGES:
        answer = yield from one(pages.modified(number))
        if not isinstance(answer, Page) or not answer.identities or answer.updated_at is None:
            if isinstance(answer, Refused) and not answer.is_gone:
                pages.refused = answer
            break
        pages.meet(answer)
        if answer.updated_at < date:
            break
        if answer.updated_at == previous:
            is_tied = answer.updated_at > date
            break
        previous = answer.updated_at
        number += 1
    return is_tied


def collect_from_front(pages: Pages) -> Asking[Outcome | None]:
    """Ask in the feed's own order until nothing is there; None where that brings nothing."""
    number, without_news, last, bodies = 2, 0, 1, {pages.first}
    while number <= MOST_PAGES and without_news < _WITHOUT_NEWS:
        batch = range(number, number + 2)
        answers = yield [pages.front(each) for each in batch]
        for each, answer in zip(batch, answers, strict=True):
            if not isinstance(answer, Page) or not answer.identities or answer.identities in bodies:
                if isinstance(answer, Refused) and not answer.is_gone:
                    pages.refused = answer
                without_news = _WITHOUT_NEWS
                break
            bodies.add(answer.identities)
            without_news = 0 if pages.meet(answer) else without_news + 1
            last = each
        number += 2
    if last == 1:
        return None if pages.refused is None else pages.unproven(pages.refused.slug)
    return pages.outcome(FROM_FRONT, last, is_whole=pages.refused is None)
