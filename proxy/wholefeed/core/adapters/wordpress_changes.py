"""What was changed on a WordPress site since a date: its pages in the order of change, the latest first.

Such an order tells nothing of posts that were changed at one instant, as an import or a bulk edit does: some
stand on two pages then and others on none. Two neighbouring pages of one date are a tie, and so is a post
that stands on two pages though nothing was published meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

from wholefeed.core.adapters.asking import Asking, one
from wholefeed.core.adapters.last_page import MOST_PAGES
from wholefeed.core.adapters.wordpress_pages import Pages
from wholefeed.core.model import EntryId


class Scan(NamedTuple):
    """What came of it."""

    date: float | None
    """The latest date of its pages: the next one need not go back further. None: it has to."""
    is_tied: bool = False
    """Whether the order means nothing: all pages have to be asked for again."""


def changed_since(pages: Pages, date: float | None) -> Asking[Scan]:
    """Ask for pages until one is older than a date; None: the first page alone."""
    seen: set[EntryId] = set()
    latest = previous = None
    validators = ("", "")
    for number in range(1, MOST_PAGES):
        page = pages.take((yield from one(pages.modified(number))))
        if page is None:
            return Scan(None if pages.is_refused or number == 1 else latest)
        if number == 1:
            latest, pages.length = page.updated_at, len(page.identities)
        if page.updated_at is None:
            return Scan(None)
        if date is None or page.updated_at < date:
            break
        # A post that is changed meanwhile moves to the front and the others behind it: no tie, and it is
        # later than `latest`.
        is_twice = not seen.isdisjoint(page.identities) and page.validators == validators
        if is_twice or page.updated_at == previous:
            return Scan(latest, is_tied=page.updated_at > date)
        seen.update(page.identities)
        previous, validators = page.updated_at, page.validators
    return Scan(latest)
