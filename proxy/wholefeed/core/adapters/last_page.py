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
    ask: Callable[[int], Ask], *, low: int, high: int | None = None, uses_head: bool = True
) -> Asking[int]:
    """Return the number of the last page.

    Args:
        ask: The question for a page, by its number.
        low: A page that is there.
        high: One that is not; None: none is known.
        uses_head: Whether HEAD is to be believed.

    Raises:
        SearchError: A page could not be asked for.
    """
    search = _Search(ask, uses_head)
    while high is None:
        if low >= MOST_PAGES:
            return MOST_PAGES
        probe = min(2 * low, MOST_PAGES)
        if (yield from search.is_there(probe)):
            low = probe
        else:
            high = probe
    while high - low > 1:
        probe = (low + high) // 2
        if (yield from search.is_there(probe)):
            low = probe
        else:
            high = probe
    return low


class _Search:
    def __init__(self, ask: Callable[[int], Ask], uses_head: bool) -> None:
        self._ask = ask
        self._uses_head = uses_head

    def is_there(self, number: int) -> Asking[bool]:
        ask = self._ask(number)
        if self._uses_head:
            answer = yield from one(ask._replace(is_head=True))
            if isinstance(answer, There):
                return True
            if isinstance(answer, Refused) and answer.is_gone:
                return False
            if isinstance(answer, Refused) and answer.status not in _NO_HEAD:
                raise SearchError(answer)
            self._uses_head = False
        answer = yield from one(ask)
        if isinstance(answer, Page):
            return bool(answer.identities)
        if isinstance(answer, Refused) and not answer.is_gone:
            raise SearchError(answer)
        return False
