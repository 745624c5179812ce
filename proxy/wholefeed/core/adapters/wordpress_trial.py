"""The check whether the pages of a WordPress site belong to the feed (rule R27).

Some plugins filter the feed by language or category, but not its pages. Such pages have further posts within
the dates of the feed's entries. Dates of change, as in Atom, prove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wholefeed.core.adapters.base import (
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Asking,
    PageQuestion,
    PageResponse,
    one,
)
from wholefeed.core.model import EntryId, Family


class StrangePagesError(Exception):
    def __init__(self) -> None:
        super().__init__("its pages have posts that the feed leaves out")


def judge_pages(
    asking: Asking[AdapterOutcome | None], job: AdapterJob, *, is_part: bool, is_next: bool = False
) -> Asking[AdapterOutcome | None]:
    """Ask an adapter's questions, and have pages stored once they prove to be of the feed.

    With `is_part`, the feed may cover only a part of the site. With `is_next`, the first page follows the
    feed, so it must be older than the whole run (`_Run`).

    Raises:
        StrangePagesError: The pages are not the feed's.
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
                    feed = yield from one(PageQuestion(job.url, is_probe=True, is_again=True))
                    if not isinstance(feed, AdapterPage) or trial.is_strange_to(feed):
                        raise StrangePagesError
                if trial.is_over:
                    yield from trial.keep()
            asks = asking.send(answers)
    except StopIteration as end:
        outcome: AdapterOutcome | None = end.value
        if outcome is not None and outcome.is_honoured:
            yield from trial.keep()
        return outcome
    finally:
        asking.close()


class _Trial:
    # Pages wait (`PageQuestion.is_held`) until they contain the run, or reach back behind it. A strange post
    # (within the run's dates, and not in the feed) may be new: then the feed, asked for again, has it. For a
    # feed of a part of the site (with a query or path), pages may have newer posts than the feed alone: more
    # of these than the feed has entries are strange, too.
    def __init__(self, feed: AdapterPage, *, is_part: bool, is_next: bool) -> None:
        self._is_part = is_part
        self._is_next = is_next
        self._run = _Run(feed, frozenset(feed.identities))
        self._pages: list[AdapterPage] = []
        # The first page with entries, probes excepted.
        self._first: AdapterPage | None = None
        self._held: dict[str, PageQuestion] = {}
        self.is_over = not self._run.has_span or feed.family is Family.ATOM
        """Whether pages are stored as they come."""

    def is_strange(self, asks: Sequence[PageQuestion], answers: Sequence[PageResponse]) -> bool:
        for ask, answer in zip(asks, answers, strict=True):
            if not isinstance(answer, AdapterPage):
                continue
            if not answer.has_updates:  # editing an old post does not make it new
                self._pages.append(answer)
            if not ask.is_probe and answer.identities:
                self._first = self._first or answer
                self._held[ask.url] = ask
                self.is_over |= answer.has_updates or self._is_through(answer)
        return self._is_strange()

    def is_strange_to(self, feed: AdapterPage) -> bool:
        self._run = _Run(feed, self._run.entries.union(feed.identities))
        return self._is_strange()

    def keep(self) -> Asking[None]:
        asks = [ask._replace(is_held=False, is_again=False) for ask in self._held.values()]
        self._held.clear()
        if asks:
            yield asks

    def _is_through(self, page: AdapterPage) -> bool:
        """Return whether later pages cannot be strange; imports may give old posts the highest IDs."""
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


# Most pages that wait for the first one with an entry of the run.
_MOST_HELD: Final = 20


class _Run:
    """The feed's entries from the last one up, as long as they get newer: pinned ones stand above.

    `entries` are all entries of the feed, present and earlier ones.
    """

    def __init__(self, feed: AdapterPage, entries: frozenset[EntryId]) -> None:
        self.entries = entries
        dates = feed.dates if len(feed.dates) == len(feed.identities) else ()
        length = 0
        while length < len(dates) and _is_in_order(dates[len(dates) - length - 1 :][:2]):
            length += 1
        self._identities = frozenset(feed.identities[len(dates) - length : len(dates)])
        run = [at for at in dates[len(dates) - length :] if at is not None]
        self.has_span = 2 * length > len(dates)
        """Whether most entries are in that order; if not, there is no verdict."""
        self._oldest_at, self._newest_at = (run[-1], run[0]) if self.has_span else (0.0, 0.0)

    def lacks_amid(self, page: AdapterPage) -> bool:
        return any(
            at is not None and self._oldest_at < at < self._newest_at and each not in self.entries
            for each, at in zip(page.identities, page.dates, strict=True)
        )

    def newer(self, pages: Sequence[AdapterPage]) -> set[EntryId]:
        return {
            each
            for page in pages
            for each, at in zip(page.identities, page.dates, strict=True)
            if at is not None and at > self._newest_at and each not in self.entries
        }

    def reaches(self, page: AdapterPage) -> bool:
        """Return whether a page has an entry of the run, or one newer than its end."""
        is_newer = page.newest_at is not None and page.newest_at > self._oldest_at
        return is_newer or not self._identities.isdisjoint(page.identities)

    def is_behind(self, page: AdapterPage) -> bool:
        return bool(page.identities) and page.newest_at is not None and page.newest_at <= self._oldest_at

    def is_met(self, pages: Sequence[AdapterPage]) -> bool:
        return self.count_met(pages) == len(self._identities)

    def count_met(self, pages: Sequence[AdapterPage]) -> int:
        return len(self._identities.intersection(each for page in pages for each in page.identities))


def _is_in_order(pair: Sequence[float | None]) -> bool:
    return None not in pair and (len(pair) == 1 or pair[0] >= pair[1])  # type: ignore[operator]
