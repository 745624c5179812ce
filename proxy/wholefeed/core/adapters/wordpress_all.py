"""All posts of a WordPress feed, page by page (rule R28), and what is asked for when all pages were had.

COUNT   how many pages there are, by the REST API or by asking for pages
WALK    from the last to the first: by ID, or as the feed itself is ordered where IDs are not honoured
AGAIN   once, where the publisher claims more posts than were met (R31)
SINCE   where something was published or changed meanwhile: the front pages, and by date of change
"""

from __future__ import annotations

from wholefeed.core.adapters.asking import Answer, Asking, Outcome, Page, Refused, one
from wholefeed.core.adapters.last_page import MOST_PAGES, SearchError, last_page
from wholefeed.core.adapters.wordpress_changes import changed_since
from wholefeed.core.adapters.wordpress_count import count_pages
from wholefeed.core.adapters.wordpress_pages import BY_ID, FROM_FRONT, AskFor, Pages, has_entries
from wholefeed.core.adapters.wordpress_walk import NotHonouredError, Walk

_WITHOUT_NEWS = 2


def collect_all(pages: Pages) -> Asking[Outcome | None]:
    """Ask for all pages; None where page numbers are not honoured."""
    if pages.job.page.validators == ("", ""):  # nothing will tell whether something was changed meanwhile
        yield from changed_since(pages, None)
    try:
        last = yield from count_pages(pages)
    except SearchError as exc:
        return pages.job.unproven(f"a page could not be asked for: {exc.refused.slug}")
    if last is None:
        return (yield from _from_front(pages)) if pages.has_queries else None
    if last == 1:
        return (yield from _single(pages))
    return (yield from _walked(pages, last))


def _walked(pages: Pages, last: int) -> Asking[Outcome | None]:
    way, ask = BY_ID, pages.by_id
    try:
        last = yield from Walk(pages, ask).steps(last)
    except NotHonouredError as exc:
        if not exc.is_numbered:
            return None
        way, ask = FROM_FRONT, pages.front
        last = yield from Walk(pages, ask).steps(last)
    if not (pages.is_refused or pages.has_gaps) and _lacks(pages):
        last = yield from Walk(pages, ask, is_again=True).steps(last)
    if pages.has_moved and not pages.is_refused:
        yield from since(pages, ask)
    return pages.outcome(way, last)


def _lacks(pages: Pages) -> bool:
    """R31: a total above what was collected causes one more walk, and no other while it stays so."""
    if pages.total is None:
        return False
    known, lacking = pages.job.known, pages.total - len(pages.met)
    was_lacking = known.total - known.collected if known.is_ended and known.total is not None else 0
    return lacking > max(0, was_lacking)


def since(pages: Pages, ask: AskFor) -> Asking[None]:
    """Ask for what was published and changed while the pages came.

    A post that was written long ago and goes live bears no date of change, but stands in front.
    """
    yield from front_pages(pages, 1)
    if ask == pages.by_id and not pages.is_refused:
        scan = yield from changed_since(pages, pages.began_date)
        pages.is_tied = scan.is_tied
        if scan.date is None:
            pages.latest_date = pages.began_date


def front_pages(pages: Pages, number: int) -> Asking[None]:
    """Ask for front pages until one brings nothing new."""
    for each in range(number, MOST_PAGES):
        answer = yield from one(pages.front(each, is_again=True))
        met = len(pages.met)
        page = pages.take(answer)
        if page is None or not (page.news if number > 1 else len(pages.met) - met):
            return


def _single(pages: Pages) -> Asking[Outcome | None]:
    """R27: a blog of one page is collected where page 1 is the subscription document, and no page 2 there."""
    first, second = yield [pages.by_id(1), pages.by_id(2)]
    failed = next((each for each in (first, second) if _is_failure(each)), None)
    if isinstance(failed, Refused):
        return pages.job.unproven(failed.slug)
    if not isinstance(first, Page) or (isinstance(second, Refused) and second.is_objection):
        return None
    if isinstance(second, Page) and second.identities == first.identities:
        return None
    if has_entries(second):  # more than the publisher said, or since
        try:
            last = yield from last_page(lambda number: pages.by_id(number, is_probe=True), low=2)
        except SearchError as exc:
            return pages.job.unproven(f"a page could not be asked for: {exc.refused.slug}")
        return (yield from _walked(pages, last))
    pages.meet(first)
    is_ordered = first.is_ascending is not False or not pages.repeats(first)
    return pages.outcome(BY_ID if is_ordered else FROM_FRONT, 1)


def _is_failure(answer: Answer) -> bool:
    return isinstance(answer, Refused) and not (answer.is_gone or answer.is_objection)


def _from_front(pages: Pages) -> Asking[Outcome | None]:
    """Ask in the feed's own order until nothing is there; None where that brings nothing."""
    number, without_news, last, bodies = 2, 0, 1, {pages.first}
    while number <= MOST_PAGES and without_news < _WITHOUT_NEWS:
        answer = yield from one(pages.front(number))
        before = len(pages.met)
        page = pages.take(answer)
        if page is None or page.identities in bodies or pages.repeats(page):
            break
        bodies.add(page.identities)
        without_news = 0 if len(pages.met) > before else without_news + 1
        last = number
        number += 1
    if last == 1:
        return None if pages.refused is None else pages.job.unproven(pages.refused.slug)
    return pages.outcome(FROM_FRONT, last)
