"""How many pages there are: doubling, then bisection, with HEAD where the publisher answers it (R28)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wholefeed.core.adapters.asking import Ask, Asking, Page, Refused, There, one

MOST_PAGES: Final = 65_536
"""A publisher that answers a page of a higher number answers any."""

_NO_HEAD: Final = frozenset({400, 403, 405, 406, 500, 501})
"""Statuses of HEAD that say nothing of GET."""


class SearchError(Exception):
    """It cannot be found out; `refused` says why."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.slug)
        self.refused = refused


def last_page(
    url_of: Callable[[int], str], *, low: int, high: int | None = None, uses_head: bool = True
) -> Asking[int]:
    """Return the number of the last page.

    Args:
        url_of: The URL of a page by its number.
        low: A page that is there.
        high: One that is not; None: none is known.
        uses_head: Whether HEAD is to be believed.

    Raises:
        SearchError: A page could not be asked for.
    """
    while high is None:
        if low >= MOST_PAGES:
            return MOST_PAGES
        probe = min(2 * low, MOST_PAGES)
        if (yield from _is_there(url_of(probe), uses_head=uses_head)):
            low = probe
        else:
            high = probe
    while high - low > 1:
        probe = (low + high) // 2
        if (yield from _is_there(url_of(probe), uses_head=uses_head)):
            low = probe
        else:
            high = probe
    return low


def _is_there(url: str, *, uses_head: bool) -> Asking[bool]:
    if uses_head:
        answer = yield from one(Ask(url, is_head=True))
        if isinstance(answer, There):
            return True
        if isinstance(answer, Refused) and answer.is_gone:
            return False
        if isinstance(answer, Refused) and answer.status not in _NO_HEAD:
            raise SearchError(answer)
    answer = yield from one(Ask(url))
    if isinstance(answer, Page):
        return bool(answer.identities)
    if isinstance(answer, Refused) and not answer.is_gone:
        raise SearchError(answer)
    return False
