"""All pages of a WordPress feed, from the last to the first (rule R28).

What a deletion moves comes to a page that has not been had yet. A post that goes live moves others the other
way, to pages that were had; that shows in the validators.

    DOWN   N, N-1, … 1
           the validators moved between k+1 and k -> SEAM, unless each page bears its own
    SEAM   k+1, k+2, … until one has something that was had; from there down to k again
    END    N again, and what stands behind it now; where N is no more, what is the last now
           validators tell nothing, and N begins with what stood on N-1 -> DOWN once more
    HOLES  pages that were not there, though later ones are: once more
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wholefeed.core.adapters.asking import Answer, Asking, Page, Refused, one
from wholefeed.core.adapters.last_page import MOST_PAGES, SearchError, last_page
from wholefeed.core.adapters.wordpress_pages import AskFor, Pages
from wholefeed.core.model import EntryId

AT_ONCE: Final = 8
"""Pages of one question; so many may have to be asked for again when something moves."""
_ALONE: Final = 2
"""Pages asked for one by one at first, in case that numbers are not honoured."""
_SEAMS: Final = 8
"""So often, and once for four pages, the validators are believed: some publishers make them up each time."""
_OLDER_SECONDS: Final = 60.0
"""A page that was had so much before the one behind it comes from a walk that was cut off."""
_FEW: Final = 3
_MADE_UP: Final = 2
"""Looks at a seam where nothing had moved and the validators were others again: none is believed then."""


class NotHonouredError(Exception):
    """The answers show that page numbers are not honoured, or the order."""

    def __init__(self, *, is_numbered: bool) -> None:
        super().__init__("the order is not honoured" if is_numbered else "page numbers are not honoured")
        self.is_numbered = is_numbered


class Walk:
    """One walk through all pages.

    Args:
        pages: What is known.
        ask: Makes the question for a page: `pages.by_id`, or `pages.front`.
        is_again: Whether pages that were had in this walk before do not serve.
    """

    def __init__(self, pages: Pages, ask: AskFor, *, is_again: bool = False) -> None:
        self._pages = pages
        self._ask = ask
        self._is_again = is_again
        self._had: set[EntryId] = set()
        """What stood on the pages behind the one that comes next."""
        self._holes: set[int] = set()
        self._repeated = 0
        """Pages in a row that were the one behind them once more."""
        self._seams = 0
        self._are_told = True
        """Whether validators tell that something moved: caches make them up, of each page or each answer."""
        self._made_up = 0
        self._tail: tuple[EntryId, ...] = ()
        """What stood on the last page."""
        self._has_shifted = False
        """Whether it has moved to the end since: something went live below."""
        self._is_trusted = ask == pages.front

    def steps(self, last: int) -> Asking[int]:
        """Ask for all; return the number of the last page.

        Raises:
            NotHonouredError: Numbers or order are not honoured.
        """
        yield from self._down(last)
        last = yield from self._end(last)
        if self._has_shifted and not (self._is_again or self._pages.is_refused):
            return (yield from Walk(self._pages, self._ask, is_again=True).steps(last))
        holes = sorted(number for number in self._holes if number < last)
        if (
            holes and not self._pages.is_refused
        ):  # later pages answer: these are missing, if they still are (R6)
            for answer in (yield [self._ask(each, is_again=True, is_needed=True) for each in holes]):
                self._pages.has_gaps |= self._taken(answer) is None
        return last

    # Down

    def _down(self, last: int) -> Asking[None]:
        behind: Page | None = None
        number = last
        while number >= 1:
            size = AT_ONCE if self._is_trusted and number <= last - _ALONE else 1
            batch = range(number, max(0, number - size), -1)
            answers = yield from self._answers(batch)
            for each, answer in zip(batch, answers, strict=True):
                if not isinstance(answer, Page) or not answer.identities:
                    if not isinstance(answer, Refused) or answer.is_gone or answer.is_objection:
                        self._holes.add(each)
                    else:
                        self._pages.has_gaps = True
                    continue
                yield from self._check(each, answer, behind)
                if behind is not None and self._is_apart(behind, answer):
                    yield from self._seam(each, last, (behind, answer))
                if each == last:
                    self._tail = answer.identities
                self._taken(answer)
                behind = answer
            number = batch[-1] - 1

    def _answers(self, batch: range) -> Asking[Sequence[Answer]]:
        probed = self._pages.probed.pop(batch.start, None)
        if probed is not None:
            return [probed]
        return (yield [self._ask(each, is_again=self._is_again) for each in batch])

    def _check(self, number: int, page: Page, behind: Page | None) -> Asking[None]:
        """R27: what the pages must not look like."""
        is_repeated = behind is not None and page.identities == behind.identities
        self._repeated = self._repeated + 1 if is_repeated else 0
        if self._repeated > 1:  # once a deletion may do it
            raise NotHonouredError(is_numbered=False)
        if self._is_trusted or page.is_ascending is None:
            return
        self._is_trusted = True
        if not page.is_ascending and number > 1:  # some imports give the newest post the lowest ID
            first = yield from one(self._ask(1, is_probe=True))
            if isinstance(first, Page) and self._pages.repeats(first):
                raise NotHonouredError(is_numbered=True)

    def _taken(self, answer: Answer) -> Page | None:
        page = self._pages.take(answer)
        if page is not None:
            self._had.update(page.identities)
        return page

    def _again(self, number: int) -> Asking[Page | None]:
        return self._taken((yield from one(self._ask(number, is_again=True))))

    # Something went live

    def _is_apart(self, behind: Page, page: Page) -> bool:
        """Whether something may have moved from a page to the one behind it, which was had before."""
        is_later = page.had_at < behind.had_at - _OLDER_SECONDS
        return is_later or (self._are_told and behind.validators != page.validators)

    def _seam(self, number: int, last: int, pair: tuple[Page, Page]) -> Asking[None]:
        """Ask again for what may have moved past the boundary behind a page.

        Args:
            number: Of the page.
            last: Of the last page.
            pair: The page behind it as it was had, and the page.
        """
        had = frozenset(self._had)
        is_still = False
        while not is_still and self._are_told and self._seams < _SEAMS + last // 4:
            self._seams += 1
            top = number + 1
            page = yield from self._again(top)
            if page is not None and _is_same(page, pair[0]) and pair[0].validators != pair[1].validators:
                self._are_told = False  # the page has validators of its own
                return
            while page is not None and had.isdisjoint(page.identities) and top < MOST_PAGES:
                top += 1
                page = yield from self._again(top)
            came, is_still = [page], True
            for each in range(top - 1, number - 1, -1):
                page = yield from self._again(each)
                is_still = is_still and (None in (page, came[-1]) or _are_of_one(page, came[-1]))
                came.append(page or came[-1])
            self._doubt(pair, came, is_still=is_still)

    def _doubt(self, pair: tuple[Page, Page], came: Sequence[Page | None], *, is_still: bool) -> None:
        is_moved = [page and page.identities for page in came] != [page.identities for page in pair]
        self._made_up += not (is_still or is_moved)
        self._are_told = self._made_up < _MADE_UP

    # The end

    def _end(self, last: int) -> Asking[int]:
        """Ask for the last page again, and for what stands behind it; return which is the last now."""
        had = frozenset(self._had)
        number, page = last, (yield from self._again(last))
        if page is not None and not self._are_told:
            self._has_shifted = page.identities[0] in had and page.identities[0] not in self._tail
        if page is None and last > 1 and not self._pages.is_refused:  # there are fewer now
            number = yield from self._search(last)
            page = yield from self._again(number)
        top = number
        while page is not None and len(page.identities) >= self._pages.full and top < MOST_PAGES:
            behind = yield from self._again(top + 1)
            if behind is None or behind.identities == page.identities:
                break
            top, page = top + 1, behind
        lowest = top
        while page is not None and lowest > 1 and page.identities[0] not in had and top - lowest < _FEW:
            lowest -= 1
            page = yield from self._again(lowest)
        return top

    def _search(self, gone: int) -> Asking[int]:
        try:
            return (yield from last_page(lambda number: self._ask(number, is_probe=True), low=1, high=gone))
        except SearchError as exc:
            self._pages.refused = exc.refused
            return gone


def _are_of_one(page: Page | None, other: Page | None) -> bool:
    return page is not None and other is not None and page.validators == other.validators


def _is_same(page: Page, other: Page) -> bool:
    return page.validators == other.validators and page.identities == other.identities
