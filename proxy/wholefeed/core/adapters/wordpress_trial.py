"""Whether the pages of a WordPress site are those of the feed (rule R27).

Plugins choose by language or leave out a category in the feed, and not on its pages. Within the span of the
feed's entries such pages have posts that the feed lacks:

    run       the feed's entries from the last one up, as long as they get newer: pinned ones stand above it
    strange   a post on a page that is newer than the run's last and older than its first, and not in the feed
    asked     a post may have been published meanwhile: the feed is asked for again, and has it then

Pages are held (`Ask.is_held`) until they have the run or reach back behind it, and are kept then: no request
more than without this. Of a feed of a part of the site (a query, a path) pages may have newer posts than the
feed alone: more of them than the feed has entries are strange, too. Dates of change, as Atom has them, tell
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wholefeed.core.adapters.base import Answer, Ask, Asking, Job, Outcome, Page, one
from wholefeed.core.model import EntryId, Family


class StrangePagesError(Exception):
    """The pages have posts that the feed lacks."""

    def __init__(self) -> None:
        super().__init__("its pages have posts that the feed leaves out")


def judge_pages(
    asking: Asking[Outcome | None], job: Job, *, is_part: bool, is_next: bool = False
) -> Asking[Outcome | None]:
    """Ask what an adapter asks, and keep what comes once it has proved to be of the feed.

    Args:
        asking: The questions.
        job: What the adapter starts from.
        is_part: Whether the feed may be one of a part of the site.
        is_next: Whether the first page follows the feed: it has to be older than all of the run.

    Raises:
        StrangePagesError: It is not.
    """
    trial = _Trial(job.page, is_part=is_part, is_next=is_next)
    try:
        asks = next(asking)
        while True:
            if trial.is_over:
                answers = yield asks
            else:
                asks = [each._replace(is_held=not (each.is_head or each.is_probe)) for each in asks]
                answers = yield asks
                if trial.is_strange(asks, answers):
                    feed = yield from one(Ask(job.url, is_probe=True, is_again=True))
                    if not isinstance(feed, Page) or trial.is_strange_to(feed):
                        raise StrangePagesError
                if trial.is_over:
                    yield from trial.keep()
            asks = asking.send(answers)
    except StopIteration as end:
        outcome: Outcome | None = end.value
        if outcome is not None and outcome.is_honoured:
            yield from trial.keep()
        return outcome
    finally:
        asking.close()


class _Trial:
    """What has been seen of the pages so far."""

    def __init__(self, feed: Page, *, is_part: bool, is_next: bool) -> None:
        self._is_part = is_part
        self._is_next = is_next
        self._run = _Run(feed, frozenset(feed.identities))
        self._pages: list[Page] = []
        self._first: Page | None = None
        """The first with entries that is no probe."""
        self._held: dict[str, Ask] = {}
        self.is_over = not self._run.has_span or feed.family is Family.ATOM
        """Whether pages are kept as they come."""

    def is_strange(self, asks: Sequence[Ask], answers: Sequence[Answer]) -> bool:
        """Take in some answers; return whether they have what the feed lacks."""
        for ask, answer in zip(asks, answers, strict=True):
            if not isinstance(answer, Page):
                continue
            if not answer.has_updates:  # an old post that was edited is no newer one
                self._pages.append(answer)
            if not ask.is_probe and answer.identities:
                self._first = self._first or answer
                self._held[ask.url] = ask
                self.is_over |= answer.has_updates or self._is_through(answer)
        return self._is_strange()

    def is_strange_to(self, feed: Page) -> bool:
        """Return whether it is so by the feed as it is now, too."""
        self._run = _Run(feed, self._run.entries.union(feed.identities))
        return self._is_strange()

    def keep(self) -> Asking[None]:
        """Have everything kept that was held."""
        asks = [ask._replace(is_held=False, is_again=False) for ask in self._held.values()]
        self._held.clear()
        if asks:
            yield asks

    def _is_through(self, page: Page) -> bool:
        """Whether nothing further can be strange; some imports give the oldest posts the highest IDs."""
        run, count = self._run, len(self._held)
        is_begun = self._is_next or run.count_met(self._pages) > 0 or count >= _MOST_HELD
        return run.is_met(self._pages) or (is_begun and run.is_behind(page))

    def _is_strange(self) -> bool:
        run = self._run
        if self._is_next and self._first is not None and run.reaches(self._first):
            return True
        if any(run.lacks_amid(page) for page in self._pages):
            return True
        return self._is_part and len(run.newer(self._pages)) > len(run.entries)


_MOST_HELD: Final = 20
"""Pages that wait for the first that has anything of the run."""


class _Run:
    """The entries of a feed that stand in the order of their dates; `entries` are all that it has or had."""

    def __init__(self, feed: Page, entries: frozenset[EntryId]) -> None:
        self.entries = entries
        dates = feed.dates if len(feed.dates) == len(feed.identities) else ()
        length = 0
        while length < len(dates) and _is_in_order(dates[len(dates) - length - 1 :][:2]):
            length += 1
        self._identities = frozenset(feed.identities[len(dates) - length : len(dates)])
        run = [at for at in dates[len(dates) - length :] if at is not None]
        self.has_span = 2 * length > len(dates)
        """Whether most of them do; else nothing is to be said."""
        self._oldest_at, self._newest_at = (run[-1], run[0]) if self.has_span else (0.0, 0.0)

    def lacks_amid(self, page: Page) -> bool:
        """Whether a page has what the feed would have to have."""
        return any(
            at is not None and self._oldest_at < at < self._newest_at and each not in self.entries
            for each, at in zip(page.identities, page.dates, strict=True)
        )

    def newer(self, pages: Sequence[Page]) -> set[EntryId]:
        """Return what is newer than the feed, and not in it."""
        return {
            each
            for page in pages
            for each, at in zip(page.identities, page.dates, strict=True)
            if at is not None and at > self._newest_at and each not in self.entries
        }

    def reaches(self, page: Page) -> bool:
        """Whether a page has anything of the feed, or as new."""
        is_newer = page.newest_at is not None and page.newest_at > self._oldest_at
        return is_newer or not self._identities.isdisjoint(page.identities)

    def is_behind(self, page: Page) -> bool:
        """Whether all of a page is older than the run."""
        return bool(page.identities) and page.newest_at is not None and page.newest_at <= self._oldest_at

    def is_met(self, pages: Sequence[Page]) -> bool:
        """Whether the pages have all of the run."""
        return self.count_met(pages) == len(self._identities)

    def count_met(self, pages: Sequence[Page]) -> int:
        """Return how many entries of the run the pages have."""
        return len(self._identities.intersection(each for page in pages for each in page.identities))


def _is_in_order(pair: Sequence[float | None]) -> bool:
    """Whether an entry is dated, and not older than the one behind it."""
    return None not in pair and (len(pair) == 1 or pair[0] >= pair[1])  # type: ignore[operator]
