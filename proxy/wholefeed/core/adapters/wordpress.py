"""WordPress, without links to the history (rules R26 to R30).

`paged=N` works on every feed of posts, and 404 follows the last page (docs/adapters.md). A new post moves all
pages; in the order of ID, pages move only when a post written earlier is published. So the walk goes by ID,
from the last page to the first: entries moved by a deletion then come later.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from wholefeed.core.adapters.base import (
    MOST_PAGES,
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Asking,
    Collection,
    PageQuestion,
    PageResponse,
    Refused,
    SearchError,
    Sight,
    There,
    last_page,
    one,
)
from wholefeed.core.adapters.wordpress_pages import (
    BY_ID,
    FROM_FRONT,
    AskFor,
    WordPressPages,
    count_url,
    has_entries,
    is_at_same_host,
    is_left_alone,
    is_main,
    is_part,
)
from wholefeed.core.adapters.wordpress_trial import StrangePagesError, judge_pages
from wholefeed.core.adapters.wordpress_walk import (
    BY_DATE,
    WITHOUT_NEWS,
    NoProgressError,
    NotHonouredError,
    WordPressWalk,
    collect_by_date,
    look_by_date,
)
from wholefeed.core.model import EntryId, Family
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS


class WordPress:
    name: Final = "wordpress"

    def fits(self, sight: Sight) -> bool:
        """Return whether generator or REST API link name WordPress; feeds of comments do not count."""
        marks = sight.marks
        is_one = bool(_GENERATOR.match(marks.generator) or marks.api_url) and sight.family in _FAMILIES
        if not is_one or marks.has_comments:
            return False
        return not (is_left_alone(sight.url) or is_left_alone(sight.asked_url))

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        pages, strange = WordPressPages(job), ""
        try:
            outcome = yield from judge_pages(_collect_all(pages), job, is_part=is_part(job))
        except StrangePagesError as exc:  # the order alone may make a plugin choose nothing
            pages, strange = WordPressPages(job), str(exc)
            outcome = yield from _next_pages(pages)
        if outcome is not None:
            return outcome
        by_date = WordPressPages(job)  # no page in another order was stored
        by_date.total = pages.total
        try:
            outcome = yield from judge_pages(collect_by_date(by_date), job, is_part=is_part(job))
        except StrangePagesError as exc:
            return job.report_unproven(str(exc))
        assert outcome is not None, "reading by date comes to something"
        return outcome if outcome.is_honoured or not strange else job.report_unproven(strange)

    def look(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        return (yield from look_by_date(job) if job.known.way == BY_DATE else _look_for_news(job))


_GENERATOR: Final = re.compile(r"^https?://(?:www\.)?wordpress\.(?:org|com)\b", re.IGNORECASE)
_FAMILIES: Final = frozenset({Family.ATOM, Family.RSS, Family.RDF})


# All posts, page by page (rule R28)


def _next_pages(pages: WordPressPages) -> Asking[AdapterOutcome | None]:
    """Ask for pages in the feed's own order; None if they are not of this feed."""
    try:
        return (yield from judge_pages(_from_front(pages), pages.job, is_part=True, is_next=True))
    except StrangePagesError:
        return None


def _collect_all(pages: WordPressPages) -> Asking[AdapterOutcome | None]:
    """Ask for all pages; None if page numbers are not honoured."""
    if pages.job.page.validators == ("", ""):  # nothing will show changes during the walk
        yield from _changed_since(pages, None)
    try:
        last = yield from _count_pages(pages)
    except SearchError as exc:
        return pages.job.report_unproven(f"a page could not be asked for: {exc.refused.slug}")
    if last is None:
        return (yield from _from_front(pages)) if pages.has_queries else None
    if last == 1:
        return (yield from _single(pages))
    return (yield from _walk_pages(pages, last))


def _walk_pages(pages: WordPressPages, last: int) -> Asking[AdapterOutcome | None]:
    way, walk = BY_ID, WordPressWalk(pages, pages.ask_by_id)
    try:
        try:
            last = yield from walk.steps(last)
        except NotHonouredError as exc:
            if not exc.is_numbered:
                return None
            way, walk = FROM_FRONT, WordPressWalk(pages, pages.ask_from_front)
            last = yield from walk.steps(last)
    except NotHonouredError:
        return None
    except NoProgressError as exc:
        pages.unsettled = str(exc)
        return pages.outcome(way, last)
    if not (pages.is_refused or pages.has_gaps) and (walk.unsettled or _lacks(pages)):
        pages.reading = 1
        walk = WordPressWalk(pages, walk.ask, is_again=True)
        try:
            last = yield from walk.steps(last)
        except (NotHonouredError, NoProgressError) as exc:  # the walk before this one succeeded
            walk.unsettled = str(exc)
    pages.unsettled = walk.unsettled
    if pages.has_moved and not pages.is_refused:
        yield from _since(pages, walk.ask)
    return pages.outcome(way, last)


def _lacks(pages: WordPressPages) -> bool:
    """Return whether the total shows more missing posts than before (R31)."""
    if pages.total is None:
        return False
    known, lacking = pages.job.known, pages.total - len(pages.met)
    was_lacking = known.total - known.collected if known.is_ended and known.total is not None else 0
    return lacking > max(0, was_lacking)


def _since(pages: WordPressPages, ask: AskFor) -> Asking[None]:
    """Ask for posts published or changed during the walk.

    An old draft has no date of change when it is published, but stands in front.
    """
    for _ in range(_LOOKS):
        before = pages.latest_validators
        yield from _front_pages(pages)
        if ask == pages.ask_by_id and not pages.is_refused:
            latest = yield from _changed_since(pages, pages.began_date)
            if latest is None:
                pages.latest_date = pages.began_date
        if pages.is_refused or not pages.are_told or pages.latest_validators == before:
            return
    pages.unsettled = "posts were published faster than the pages were read"


_LOOKS: Final = 2


def _front_pages(pages: WordPressPages) -> Asking[None]:
    for number in range(1, MOST_PAGES):
        met = len(pages.met)
        if (
            pages.take((yield from one(pages.ask_from_front(number, is_again=True)))) is None
            or len(pages.met) == met
        ):
            return


def _single(pages: WordPressPages) -> Asking[AdapterOutcome | None]:
    """Collect a blog of one page: page 1 is the subscription document, and page 2 does not exist (R27)."""
    first, second = yield [pages.ask_by_id(1), pages.ask_by_id(2)]
    for each in (first, second):
        if isinstance(each, Refused) and not (each.is_gone or each.is_objection):
            return pages.job.report_unproven(each.slug)
    if not isinstance(first, AdapterPage) or (isinstance(second, Refused) and second.is_objection):
        return None
    if isinstance(second, AdapterPage) and second.identities == first.identities:
        return None
    if has_entries(second):  # more than the publisher said, or since
        try:
            last = yield from last_page(lambda number: pages.ask_by_id(number, is_probe=True), low=2)
        except SearchError as exc:
            return pages.job.report_unproven(f"a page could not be asked for: {exc.refused.slug}")
        return (yield from _walk_pages(pages, last)) if last < MOST_PAGES else None
    pages.meet(first)
    is_ordered = first.is_ascending is not False or not pages.repeats(first)
    return pages.outcome(BY_ID if is_ordered else FROM_FRONT, 1)


def _from_front(pages: WordPressPages) -> Asking[AdapterOutcome | None]:
    """Ask in the feed's own order to the end; None if that brings nothing."""
    if has_entries((yield from one(pages.ask_from_front(MOST_PAGES, is_probe=True)))):
        return None
    before, without_news, last = pages.job.page, 0, 1
    while without_news < WITHOUT_NEWS:
        answer = yield from one(pages.ask_from_front(last + 1))
        if _is_younger(pages, answer, before):
            answer = yield from one(pages.ask_from_front(last + 1, is_again=True))
            if _is_younger(pages, answer, before):
                pages.unsettled = "pages of different age came"
        met = len(pages.met)
        page = pages.take(answer)
        if page is None or pages.repeats(page) or (yield from _is_held(pages, last, before, page)):
            break
        without_news = 0 if len(pages.met) > met else without_news + 1
        last += 1
        before = page
        if pages.unsettled or last >= MOST_PAGES:
            break
    if without_news:
        pages.unsettled = str(NoProgressError())
    if last == 1:
        return None if pages.refused is None else pages.job.report_unproven(pages.refused.slug)
    return pages.outcome(FROM_FRONT, last)


def _is_held(pages: WordPressPages, last: int, before: AdapterPage, page: AdapterPage) -> Asking[bool]:
    """Return whether a page repeats the one before it, also after another request for that one (R27)."""
    if page.identities != before.identities:
        return False
    again = (yield from one(pages.ask_from_front(last, is_again=True))) if last > 1 else before
    return not isinstance(again, AdapterPage) or again.identities == before.identities


def _is_younger(pages: WordPressPages, answer: PageResponse, before: AdapterPage) -> bool:
    if not isinstance(answer, AdapterPage) or before.newest_at is None:
        return False
    entries = zip(answer.identities, answer.dates, strict=True)
    return any(
        at is not None and at > before.newest_at and identity not in pages.met for identity, at in entries
    )


# The count of pages (rule R28)


def _count_pages(pages: WordPressPages) -> Asking[int | None]:
    """Return the number of the last page by ID; None if parameters are not honoured.

    If that page was fetched, it is in `pages.probed`.

    Raises:
        SearchError: A question failed.
    """
    guess = yield from _guess(pages)
    if guess == 1:
        return 1
    probe = guess or _PROBE
    answer = yield from one(pages.ask_by_id(probe, is_probe=guess is None)._replace(is_trial=True))
    if isinstance(answer, Refused) and answer.is_forbidden:  # some firewalls take `orderby` for an attack
        return None
    if isinstance(answer, Refused) and answer.slug == "redirected":
        pages.has_queries = False
        return None
    if isinstance(answer, Refused) and not answer.is_gone:
        raise SearchError(answer)
    if isinstance(answer, AdapterPage) and pages.repeats(answer) and not (yield from _has_another(pages)):
        pages.has_queries = False
        return None
    is_there = has_entries(answer)
    if isinstance(answer, AdapterPage) and is_there and guess is not None:
        pages.probed[guess] = answer
        return guess
    low, high = (probe, None) if is_there else (1, probe)
    return (yield from _search(pages, low, high))


# The first page to try: most blogs have more, and it tests page numbers.
_PROBE: Final = 8


def _guess(pages: WordPressPages) -> Asking[int | None]:
    """Return the count of pages by the REST API; None if unknown."""
    api_url, url = pages.job.page.marks.api_url, pages.job.url
    if not api_url or not is_at_same_host(url, api_url) or not is_main(url, api_url):
        return None
    answer = yield from one(PageQuestion(count_url(api_url), is_head=True))
    claimed = answer.headers.get("x-wp-total", "") if isinstance(answer, There) else ""
    if not claimed.isascii() or not claimed.isdigit() or len(claimed) > len(str(MOST_PAGES)) + 3:
        return None
    pages.total = int(claimed)
    return max(1, min(-(-pages.total // pages.full), MOST_PAGES))


def _has_another(pages: WordPressPages) -> Asking[bool]:
    """Return whether the first page by ID differs from a feed that looks like the last one.

    Such a feed has one post a page, or its posts were imported from newest to oldest.
    """
    answer = yield from one(pages.ask_by_id(1, is_probe=True))
    return isinstance(answer, AdapterPage) and not pages.repeats(answer)


def _search(pages: WordPressPages, low: int, high: int | None) -> Asking[int | None]:
    def ask(number: int) -> PageQuestion:
        return pages.ask_by_id(number, is_probe=True)

    last = yield from last_page(ask, low=low, high=high)
    if last == low:
        return last
    answer = yield from one(pages.ask_by_id(last))
    if isinstance(answer, AdapterPage) and answer.identities:
        pages.probed[last] = answer
    else:  # HEAD succeeds for every page
        last = yield from last_page(ask, low=low, high=last, uses_head=False)
    return last if last < MOST_PAGES else None


# Changes since a date


def _changed_since(pages: WordPressPages, date: float | None) -> Asking[float | None]:
    """Ask in the order of change until a page is older than a date; return the latest date of these pages.

    The next look may stop at that date, unless it is None. Posts changed at one instant, as by an import,
    have no order: some stand on two pages, others on none. Then all pages are needed again
    (`WordPressPages.is_tied`).
    """
    # Three signs show a tie: two neighbouring pages of one date; a post on two pages although nothing was
    # published meanwhile; page after page without news. Without a date the first page is enough.
    pages.is_tied = False
    seen: set[EntryId] = set()
    without_news = 0
    latest = previous = None
    validators = ("", "")
    for number in range(1, MOST_PAGES):
        page = pages.take((yield from one(pages.ask_by_change(number))))
        if page is None:
            return None if pages.is_refused or number == 1 else latest
        if number == 1:
            latest, pages.length = page.updated_at, len(page.identities)
        if page.updated_at is None:
            return None
        if date is None or page.updated_at < date:
            break
        # A post that is changed meanwhile moves to the front and the others behind it: no tie, and it is
        # later than `latest`.
        is_twice = not seen.isdisjoint(page.identities) and page.validators == validators
        without_news = without_news + 1 if seen.issuperset(page.identities) else 0
        if is_twice or page.updated_at == previous or without_news >= WITHOUT_NEWS:
            pages.is_tied = page.updated_at > date
            break
        seen.update(page.identities)
        previous, validators = page.updated_at, page.validators
    return latest


# News since the last look (rule R30)


def _look_for_news(job: AdapterJob) -> Asking[AdapterOutcome]:
    # News in front first, then pages by date of change. After a tie of dates all pages are needed again: the
    # order after a bulk edit means nothing. Once a day, back-dated posts: the last page by ID.
    pages, known = WordPressPages(job), job.known
    if job.has_news:
        yield from _news_in_front(pages)
    if pages.unsettled:
        return AdapterOutcome(
            is_honoured=True, is_whole=False, known=known, reason=pages.unsettled, wants_all=True
        )
    if known.way == BY_ID and not pages.is_refused:  # that order is honoured, and that of change with it
        latest = yield from _changed_since(pages, known.scanned_date)
        scanned_date = known.scanned_date if latest is None else latest
        known = replace(known, is_tied=known.is_tied or pages.is_tied, scanned_date=scanned_date)
        if job.is_daily and not pages.is_refused:
            known = yield from _behind(pages, known)
    return AdapterOutcome(
        is_honoured=True,
        is_whole=not pages.is_refused,
        known=known if pages.is_refused else replace(known, top=job.top, top_at=job.top_at),
        reason="" if pages.refused is None else pages.refused.slug,
        wants_all=known.is_tied and _may_ask_for_all(job),
    )


def _news_in_front(pages: WordPressPages) -> Asking[None]:
    """Ask for front pages until they reach back to the last look, and one brings nothing new.

    After an interrupted look, a stored page does not prove that those behind it are stored.
    """
    # A page without news shows that numbers are ignored, or that posts appear meanwhile. A missing page may
    # have others behind it.
    job, idle = pages.job, 0
    is_linked = job.is_linked or not job.known.top
    pages.recent.update(job.page.identities[: job.reach(job.page)])
    for number in range(2, MOST_PAGES):
        met = len(pages.met)
        answer = yield from one(pages.ask_from_front(number, is_again=True))
        page = pages.take(answer)
        if page is None:
            is_gone = isinstance(answer, Refused) and answer.is_gone
            if is_gone and not is_linked and has_entries((yield from one(pages.ask_from_front(number + 1)))):
                pages.unsettled = f"page {number} is not there, though the next one is"
            return
        reach = job.reach(page)
        pages.recent.update(page.identities[:reach])
        is_linked = is_linked or reach < len(page.identities)
        if is_linked and not page.news:
            return
        idle = 0 if page.news or len(pages.met) > met else idle + 1
        if idle >= WITHOUT_NEWS:
            pages.unsettled = "the publisher does not offer pages any more"
            return


def _may_ask_for_all(job: AdapterJob) -> bool:
    ended_at = job.known.ended_at
    pause = WEEK_SECONDS if job.known.is_flat else DAY_SECONDS
    return ended_at is None or not 0 <= job.now - ended_at < pause


def _is_all_new(pages: WordPressPages, page: AdapterPage) -> bool:
    """Return whether all entries of a page are new: the page before may have news too."""
    return len(pages.recent.intersection(page.identities)) + page.news >= len(page.identities)


def _behind(pages: WordPressPages, known: Collection) -> Asking[Collection]:
    """Ask for the last page by ID and its neighbours; return the new state of the collection.

    Pages before it have news if pages got shorter, or deletions made room.
    """
    number = max(1, known.pages)
    page = pages.take((yield from one(pages.ask_by_id(number, is_again=True))))
    if pages.is_refused:
        return known
    is_fewer = page is None and number > 1
    if is_fewer or pages.length != known.page_entries:
        low, high = (1, number) if is_fewer else (number, None)
        try:
            found = yield from last_page(
                lambda each: pages.ask_by_id(each, is_probe=True), low=low, high=high
            )
        except SearchError as exc:
            pages.refused = exc.refused
            return known
        if found >= MOST_PAGES:  # numbers are not honoured any more
            return replace(known, is_tied=True)
        if found != number:
            number = found
            page = pages.take((yield from one(pages.ask_by_id(number, is_again=True))))
    lowest, below, had = number, page, set[EntryId]()
    while page is not None and len(page.identities) >= pages.length and number < MOST_PAGES:
        had.update(page.identities)
        page = pages.take((yield from one(pages.ask_by_id(number + 1, is_again=True))))
        if page is not None:
            number += 1
            if had.issuperset(page.identities):  # known entries may have just come from the front
                break
    while below is not None and lowest > 1 and _is_all_new(pages, below):
        lowest -= 1
        below = pages.take((yield from one(pages.ask_by_id(lowest, is_again=True))))
    return known if pages.refused is not None else replace(known, pages=number, page_entries=pages.length)
