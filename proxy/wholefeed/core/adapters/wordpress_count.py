"""How many pages a WordPress feed has: as the REST API counts posts, or found by asking for pages (R28)."""

from __future__ import annotations

from typing import Final

from wholefeed.core.adapters.asking import Ask, Asking, Page, Refused, There, one
from wholefeed.core.adapters.last_page import MOST_PAGES, SearchError, last_page
from wholefeed.core.adapters.wordpress_pages import Pages, has_entries
from wholefeed.core.adapters.wordpress_urls import count_url, is_at_same_host, is_main

_PROBE: Final = 8
"""The first page asked for: most blogs have more; it shows as well as page 2 whether numbers are honoured."""


def count_pages(pages: Pages) -> Asking[int | None]:
    """Return the number of the last page by ID; None where parameters are not honoured.

    The last page is left in `pages.probed`, where it was asked for.

    Raises:
        SearchError: A page could not be asked for.
    """
    guess = yield from _guess(pages)
    if guess == 1:
        return 1
    probe = guess or _PROBE
    answer = yield from one(pages.by_id(probe, is_probe=guess is None))
    if isinstance(answer, Refused) and answer.slug == "redirected":
        pages.has_queries = False
        return None
    if isinstance(answer, Refused) and not answer.is_gone:
        raise SearchError(answer)
    if isinstance(answer, Page) and pages.repeats(answer) and not (yield from _is_alone(pages)):
        pages.has_queries = False
        return None
    is_there = has_entries(answer)
    if isinstance(answer, Page) and is_there and guess is not None:
        pages.probed[guess] = answer
        return guess
    low, high = (probe, None) if is_there else (1, probe)
    return (yield from _search(pages, low, high))


def _is_alone(pages: Pages) -> Asking[bool]:
    """Whether pages of one post each are honoured: the newest post is the last page and the feed itself."""
    if len(pages.first) > 1:
        return False
    answer = yield from one(pages.by_id(1, is_probe=True))
    return isinstance(answer, Page) and not pages.repeats(answer)


def _search(pages: Pages, low: int, high: int | None) -> Asking[int | None]:
    def ask(number: int) -> Ask:
        return pages.by_id(number, is_probe=True)

    last = yield from last_page(ask, low=low, high=high)
    if last == low:
        return last
    answer = yield from one(pages.by_id(last))
    if isinstance(answer, Page) and answer.identities:
        pages.probed[last] = answer
    else:  # HEAD answers anything
        last = yield from last_page(ask, low=low, high=last, uses_head=False)
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
    return max(1, min(-(-pages.total // pages.full), MOST_PAGES))
