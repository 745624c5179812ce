"""A publisher answers an adapter's questions at once, without HTTP or store.

publisher = Releases(95)                       # of a class derived from Entries
outcome = publisher.collect()
publisher.asked                                # the questions, in order
publisher.given                                # the identities of all entries that were given
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from wholefeed.core.adapters.base import (
    Adapter,
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Asking,
    Collection,
    Marks,
    PageQuestion,
    PageResponse,
    Refused,
    Sight,
)
from wholefeed.core.model import EntryId, Family, entry_id
from wholefeed.core.text.dates import DAY_SECONDS

NOW = 1_750_000_000.0


class Entries(ABC):
    """A publisher of entries, newest first.

    Args:
        names: Of its entries.
        page: How many its feed has.
    """

    adapter: Adapter
    url: str
    family = Family.RSS
    site_id = ""

    def __init__(self, names: Iterable[object], page: int) -> None:
        self.names = [str(name) for name in names]
        self.page = page
        self.asked: list[PageQuestion] = []
        self.given: set[EntryId] = set()
        self.stored: set[EntryId] = set()
        """Entries counted as known when the news of a page are counted."""
        self.held: dict[str, PageResponse] = {}
        """Pages sent and not yet asked for again, by URL."""
        self.refusals: dict[int, Refused] = {}
        """Refusals by the number of the question, from 1."""
        self.on_ask: Callable[[int], object] | None = None
        """Called with the number of the question before the answer."""
        self.ignores = False
        """Whether parameters have no effect."""

    @abstractmethod
    def guid(self, name: str) -> str:
        """Return the identity of the entry as the feed writes it."""

    @abstractmethod
    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        """Return the entries that answer a question with these parameters."""

    @property
    def marks(self) -> Marks:
        """Marks of the subscription document, without its last entry."""
        return Marks()

    # Called by tests

    def collect(self, known: Collection | None = None, **more: Any) -> AdapterOutcome:
        self.asked.clear()
        return self.play(self.adapter.collect(self.job(known, **more)))

    def collected(self, *, seconds_ago: float = 60.0) -> Collection:
        """Ask for all pages, store all of them, and return the known state some time later."""
        known = looked(self.collect(), seconds_ago)
        self.stored = set(self.given)
        return known

    def look(self, known: Collection) -> AdapterOutcome:
        self.asked.clear()
        return self.play(self.adapter.look(self.job(known)))

    def publish(self, count: int) -> None:
        self.names[:0] = [str(number) for number in range(5000 + count, 5000, -1)]

    def delete(self, *names: object) -> None:
        gone = {str(name) for name in names}
        self.names = [name for name in self.names if name not in gone]

    @property
    def has_given_all(self) -> bool:
        """Whether every present entry was sent."""
        return self.given >= self.identities()

    # Arguments of the adapter

    def document(self, url: str, names: Sequence[str]) -> AdapterPage:
        identities = tuple(self.identity(name) for name in names)
        last_id = self.guid(names[-1]) if names else ""
        return AdapterPage(
            url=url,
            family=self.family,
            identities=identities,
            updated_at=None,
            validators=("", ""),
            is_ascending=None,
            marks=Marks(last_id=last_id),
            news=len(set(identities) - self.stored),
        )

    def identity(self, name: str) -> EntryId:
        return entry_id(self.guid(name))

    def identities(self, names: Iterable[object] | None = None) -> set[EntryId]:
        return {self.identity(str(name)) for name in (self.names if names is None else names)}

    def job(self, known: Collection | None = None, **more: Any) -> AdapterJob:
        page = self.document(self.url, self.names[: self.page])
        self.given.update(page.identities)
        self.stored.update(page.identities)
        known = Collection() if known is None else known
        more.setdefault("is_daily", known.looked_at is None or NOW - known.looked_at >= DAY_SECONDS)
        return AdapterJob(
            asked_url=self.url, url=self.url, page=page, now=NOW, site_id=self.site_id, known=known, **more
        )

    def sight(self, **changes: Any) -> Sight:
        names = self.names[: self.page]
        last_id = self.guid(names[-1]) if names else ""
        marks = self.marks
        values: dict[str, Any] = {
            "asked_url": self.url,
            "url": self.url,
            "family": self.family,
            "site_id": self.site_id,
            "marks": Marks(generator=marks.generator, route=marks.route, last_id=last_id),
        }
        return Sight(**(values | changes))

    # How it answers

    def answer(self, ask: PageQuestion) -> PageResponse:
        self.asked.append(ask)
        if self.on_ask is not None:
            self.on_ask(len(self.asked))
        if len(self.asked) in self.refusals:
            return self.refusals[len(self.asked)]
        query = {} if self.ignores else dict(parse_qsl(urlsplit(ask.url).query))
        found = self.select(query) if query else self.names[: self.page]
        if isinstance(found, Refused):
            return found
        page = self.document(ask.url, found)
        self.given.update(page.identities)
        return page

    def _answer(self, ask: PageQuestion) -> PageResponse:
        held = self.held.pop(ask.url, None)
        answer = self.answer(ask) if held is None or ask.is_again else held
        if ask.is_held:
            self.held[ask.url] = answer
        return answer

    def play(self, asking: Asking[AdapterOutcome]) -> AdapterOutcome:
        """Answer an adapter until its outcome; more than a thousand questions are an error."""
        try:
            self.held.clear()
            asks = next(asking)
            while len(self.asked) < 1000:
                asks = asking.send([self._answer(ask) for ask in asks])
        except StopIteration as end:
            outcome: AdapterOutcome = end.value
            return outcome
        raise AssertionError("a thousand questions")

    @property
    def targets(self) -> list[str]:
        """Query strings of the questions."""
        return [urlsplit(ask.url).query for ask in self.asked]


def looked(outcome: AdapterOutcome, seconds_ago: float = 60.0) -> Collection:
    """The known state after a collection, as the driver stores it."""
    return replace(outcome.known, looked_at=NOW - seconds_ago, ended_at=NOW - seconds_ago)
