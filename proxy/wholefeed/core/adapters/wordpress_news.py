"""What is new on a WordPress site since the last time, in few questions (rule R30).

the subscription document brought news  -> 2, 3, … in the feed's order until a page brings none
always                                  -> by date of change, until a page is older than the last such look
two pages of one date among those       -> all pages by ID again: a bulk edit, whose order means nothing
once a day                              -> the last page by ID, and what stands behind it: back-dated posts
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wholefeed.core.adapters.asking import Asking, Job, Outcome, Page, Refused, one
from wholefeed.core.adapters.last_page import MOST_PAGES
from wholefeed.core.adapters.wordpress_pages import Pages, changed_since
from wholefeed.core.text.dates import DAY_SECONDS

_WEEK_SECONDS: Final = 7 * DAY_SECONDS


def look_for_news(job: Job, *, has_order: bool) -> Asking[Outcome]:
    """Ask for what is new.

    Args:
        job: What is known.
        has_order: Whether the publisher honours the order of ID and of change.
    """
    pages, known = Pages(job), job.known
    if job.has_news:
        yield from _front(pages)
    is_tied = known.is_tied
    last = known.pages
    if has_order and not pages.is_refused:
        is_tied = (yield from changed_since(pages, known.scanned_date)) or is_tied
        if is_daily(job) and not pages.is_refused:
            last = yield from _behind(pages, last)
    known = replace(
        known,
        pages=last,
        is_tied=is_tied,
        scanned_date=_later(known.scanned_date, pages.latest_date),
    )
    return Outcome(
        is_honoured=True,
        is_whole=pages.refused is None,
        known=known,
        reason="" if pages.refused is None else pages.refused.slug,
        wants_all=is_tied and _may_ask_for_all(job),
    )


def is_daily(job: Job) -> bool:
    """Whether a day has gone by since the last look."""
    looked_at = job.known.looked_at
    return looked_at is None or not 0 <= job.now - looked_at < DAY_SECONDS


def _may_ask_for_all(job: Job) -> bool:
    ended_at = job.known.ended_at
    pause = _WEEK_SECONDS if job.known.is_flat else DAY_SECONDS
    return ended_at is None or job.now - ended_at >= pause


def _front(pages: Pages) -> Asking[None]:
    for number in range(2, MOST_PAGES):
        answer = yield from one(pages.front(number, is_again=True))
        if not isinstance(answer, Page):
            if isinstance(answer, Refused) and not answer.is_gone:
                pages.refused = answer
            return
        pages.meet(answer)
        if not answer.news:
            return


def _behind(pages: Pages, last: int) -> Asking[int]:
    """Ask for the last page by ID, and those behind it; return which is the last."""
    number = max(1, last)
    while number < MOST_PAGES:
        answer = yield from one(pages.by_id(number, is_again=True))
        if not isinstance(answer, Page) or not answer.identities:
            if isinstance(answer, Refused) and not answer.is_gone:
                pages.refused = answer
                return last
            return max(1, number - 1)
        has_more = pages.meet(answer) > 0
        is_full = len(answer.identities) >= max(1, pages.job.known.page_entries)
        if not is_full or (number > last and not has_more):
            return number
        number += 1
    return last


def _later(one_date: float | None, other: float | None) -> float | None:
    dates = [date for date in (one_date, other) if date is not None]
    return max(dates, default=None)
