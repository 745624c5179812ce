"""The responses to an adapter's questions: from the store, or by requests, two at a time (R17, R32)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from wholefeed.core.adapters.base import AdapterPage, PageQuestion, PageResponse, Refused, There
from wholefeed.core.model import EntryId
from wholefeed.core.notes import LimitReached
from wholefeed.core.refresh.arrivals import Failure, LedBack, Response, Unchanged
from wholefeed.core.refresh.asking import EarlyLink, FetchEnded, FetchPage, NextEvent, TakeTurn, Talk, ask
from wholefeed.core.refresh.collected_feed import CollectedFeed
from wholefeed.core.refresh.collecting_failures import CollectingFailures
from wholefeed.core.refresh.collecting_pages import CollectedPages
from wholefeed.core.walk.chain import NO_PROGRESS_DOCUMENTS

# Most requests at a time (R32).
AT_ONCE: Final = 2


class PageRequests:
    def __init__(self, feed: CollectedFeed, pages: CollectedPages, failures: CollectingFailures) -> None:
        self._basis = feed.basis
        self._subscription = feed.subscription
        self._pages = pages
        self._failures = failures
        self._readings: dict[int, ReadingBounds] = {}
        self.has_begun = False
        self.is_endless = False
        """Whether too many requests brought no new entry (R17)."""

    def answer(self, questions: Sequence[PageQuestion]) -> Talk[list[PageResponse]]:
        """Return the responses in the order of the questions; fewer once `failures.stop` is set."""
        answers: dict[int, PageResponse] = {}
        under_way: dict[str, int] = {}
        waiting = deque(enumerate(questions))
        while True:
            while waiting and len(under_way) < AT_ONCE and self._failures.stop is None:
                place, question = waiting.popleft()
                answer = yield from self._answer_without_request(question)
                if answer is not None:
                    answers[place] = answer
                elif self._failures.stop is None:
                    yield from self._begin(question)
                    under_way[question.url] = place
            came = (yield from self._wait(next(iter(under_way)))) if under_way else None
            if came is None:
                break
            place = under_way.pop(came.url)
            answers[place] = yield from self._take(questions[place], came.response)
            self._count(questions[place], answers[place])
        return [answers[place] for place in sorted(answers)]

    def _answer_without_request(self, question: PageQuestion) -> Talk[PageResponse | None]:
        """Return a response without a request; None if one is needed, or forbidden."""
        held = yield from self._pages.take_held(question)
        if held is not None:
            return held
        stored = yield from self._pages.read_stored(question)
        if stored is not None:
            self._reading_of(question).meet(stored)
            return stored
        refused = self._failures.refuse(question)
        if refused is not None:
            return refused
        self._failures.pause_before(question)
        if self._failures.stop is None:
            for note in self._pages.limits_reached(question):
                self._failures.reach_limit(note)
        return None

    def _begin(self, question: PageQuestion) -> Talk[None]:
        if self._pages.is_all and not self.has_begun:
            self.has_begun = True
            yield TakeTurn()
        yield FetchPage(
            question.url, is_met=self.is_met, is_head=question.is_head, expected=question.expected
        )

    def is_met(self, url: str) -> bool:
        """Return whether a URL is the subscription document's: the publisher dropped the parameter."""
        return url in (self._subscription.url, self._subscription.final_url)

    def _wait(self, url: str) -> Talk[FetchEnded | None]:
        """Return the next response; None if the time is over (R18). `url` is one being fetched."""
        while isinstance(event := (yield from ask(NextEvent())), EarlyLink):
            pass
        if event is None:
            limit = self._basis.settings.walk_seconds
            self._failures.reach_limit(LimitReached(url, limit="limits.walk_seconds", value=limit))
        else:
            self._basis.progress.fetched += 1
        return event

    def _take(self, question: PageQuestion, response: Response) -> Talk[PageResponse]:
        if isinstance(response, LedBack):
            return self._failures.note_objection(question, Refused("redirected"))
        if isinstance(response, Failure):
            return self._failures.note_failure(question, response)
        assert not isinstance(response, Unchanged), "no conditions were sent"
        self._failures.reset()
        if isinstance(response, There):
            return response
        return (yield from self._pages.take(question, response))

    def _reading_of(self, question: PageQuestion) -> ReadingBounds:
        return self._readings.setdefault(question.reading, ReadingBounds(self._pages.first))

    def _count(self, question: PageQuestion, answer: PageResponse) -> None:
        """Count a request, and stop asking if its reading has no end (R17)."""
        self.is_endless |= self._reading_of(question).count(question.url, answer)
        if self.is_endless and self._failures.stop is None:
            self._failures.stop = "request after request brought nothing new"


class ReadingBounds:
    """The bounds of one reading of all pages (R17); `first` are the known entries."""

    def __init__(self, first: Iterable[EntryId]) -> None:
        self._met = set(first)
        self._urls: set[str] = set()
        # Repeated requests for the same URLs.
        self._again = 0
        # Requests in a row without an entry new to this reading.
        self._idle = 0

    def meet(self, page: AdapterPage) -> bool:
        before = len(self._met)
        self._met.update(page.identities)
        return len(self._met) > before

    def count(self, url: str, answer: PageResponse) -> bool:
        is_new = isinstance(answer, AdapterPage) and self.meet(answer)
        self._idle = 0 if is_new else self._idle + 1
        self._again += url in self._urls
        self._urls.add(url)
        return self._idle >= NO_PROGRESS_DOCUMENTS or self._again >= len(self._urls) + NO_PROGRESS_DOCUMENTS
