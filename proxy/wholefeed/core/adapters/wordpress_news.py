"""What is new on a WordPress site since the last time, in few questions (rule R30).

the subscription document brought news  -> 2, 3, … in the feed's order until a page brings none
always                                  -> by date of change, until a page is older than the last such look
ties among those                        -> all pages by ID again: a bulk edit, whose order means nothing
once a day                              -> the last page by ID, and what stands behind it: back-dated posts
"""

from __future__ import annotations

from dataclasses import replace

from wholefeed.core.adapters.asking import Asking, Job, Outcome, one
from wholefeed.core.adapters.collection import Collection
from wholefeed.core.adapters.last_page import MOST_PAGES, SearchError, last_page
from wholefeed.core.adapters.wordpress_all import front_pages
from wholefeed.core.adapters.wordpress_changes import changed_since
from wholefeed.core.adapters.wordpress_pages import Pages
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS


def look_for_news(job: Job, *, has_order: bool) -> Asking[Outcome]:
    """Ask for what is new.

    Args:
        job: What is known.
        has_order: Whether the publisher honours the order of ID and of change.
    """
    pages, known = Pages(job), job.known
    if job.has_news:
        yield from front_pages(pages, 2)
    if has_order and not pages.is_refused:
        scan = yield from changed_since(pages, known.scanned_date)
        known = replace(
            known,
            is_tied=known.is_tied or scan.is_tied,
            scanned_date=known.scanned_date if scan.date is None else scan.date,
        )
        if job.is_daily and not pages.is_refused:
            known = yield from _behind(pages, known)
    return Outcome(
        is_honoured=True,
        is_whole=not pages.is_refused,
        known=known,
        reason="" if pages.refused is None else pages.refused.slug,
        wants_all=known.is_tied and _may_ask_for_all(job),
    )


def _may_ask_for_all(job: Job) -> bool:
    ended_at = job.known.ended_at
    pause = WEEK_SECONDS if job.known.is_flat else DAY_SECONDS
    return ended_at is None or not 0 <= job.now - ended_at < pause


def _behind(pages: Pages, known: Collection) -> Asking[Collection]:
    """Ask for the last page by ID, and those behind it; come to what is known then."""
    number = max(1, known.pages)
    page = pages.take((yield from one(pages.by_id(number, is_again=True))))
    if pages.is_refused:
        return known
    is_fewer = page is None and number > 1
    if is_fewer or pages.length != known.page_entries:
        low, high = (1, number) if is_fewer else (number, None)
        try:
            found = yield from last_page(lambda each: pages.by_id(each, is_probe=True), low=low, high=high)
        except SearchError as exc:
            pages.refused = exc.refused
            return known
        if found != number:
            number = found
            page = pages.take((yield from one(pages.by_id(number, is_again=True))))
    while page is not None and len(page.identities) >= pages.length:
        if number >= MOST_PAGES:
            break
        page = pages.take((yield from one(pages.by_id(number + 1, is_again=True))))
        if page is not None:
            number += 1
            if not page.news:
                break
    return known if pages.refused is not None else replace(known, pages=number, page_entries=pages.length)
