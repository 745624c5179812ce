"""How many pages there are: doubling, then bisection, with HEAD where the publisher answers it (R28)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wholefeed.core.adapters.asking import Ask, Asking, Page, Refused, There, one

MOST_PAGES: Final = 65_536
"""A publisher that answers a page of a higher number answers any."""

_NO_HEAD: Final = frozenset({400, 403, 405, 406, 500, 501})
"""Statuses of HEAD that say nothing of GET."""


_PROVEN_BEHIND: Final = 8
"""So many times as far as a page that came, GET has to bear HEAD out: some publishers answer it always."""


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
    search = _Search(ask, low, uses_head=uses_head)
    while high is None:
        if low >= MOST_PAGES:
            return MOST_PAGES
        probe = min(2 * low, MOST_PAGES)
        if (yield from search.is_there(probe)):
            low = probe
        else:
            high = probe
            low = low if search.uses_head else search.proven
    search.is_head_proven = True  # it has said of a page that it is not there, or is not used
    while high - low > 1:
        probe = (low + high) // 2
        if (yield from search.is_there(probe)):
            low = probe
        else:
            high = probe
    return low


class _Search:
    def __init__(self, ask: Callable[[int], Ask], low: int, *, uses_head: bool) -> None:
        self._ask = ask
        self.uses_head = uses_head
        self.proven = low
        """The last page that came."""
        self.is_head_proven = False

    def is_there(self, number: int) -> Asking[bool]:
        ask = self._ask(number)
        if self.uses_head:
            answer = yield from one(ask._replace(is_head=True))
            is_there = isinstance(answer, There)
            if is_there and (self.is_head_proven or number < self.proven * _PROVEN_BEHIND):
                return True
            if isinstance(answer, Refused) and answer.is_gone:
                return False
            if isinstance(answer, Refused) and answer.status not in _NO_HEAD:
                raise SearchError(answer)
            self.uses_head = is_there
        answer = yield from one(ask)
        if isinstance(answer, Page) and answer.identities:
            self.proven = number
            return True
        self.uses_head = False
        if isinstance(answer, Refused) and not answer.is_gone:
            raise SearchError(answer)
        return False
