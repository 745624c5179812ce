"""A publisher that answers an adapter's questions at once: no HTTP, no store.

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
    """Who has entries, the newest first, and gives some of them.

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
        """What counts as known when it is said how much news a page has."""
        self.held: dict[str, PageResponse] = {}
        """What was given and waits to be asked for once more, as it is now."""
        self.refusals: dict[int, Refused] = {}
        """Answers by the number of the question, counted from 1."""
        self.on_ask: Callable[[int], object] | None = None
        """Called with that number before the answer."""
        self.ignores = False
        """Whether it reads no parameters."""

    @abstractmethod
    def guid(self, name: str) -> str:
        """Return what identifies an entry in the feed, as written."""

    @abstractmethod
    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        """Return what a question with these parameters is answered with."""

    @property
    def marks(self) -> Marks:
        """Of the subscription document, but for its last entry."""
        return Marks()

    # What a test does

    def collect(self, known: Collection | None = None, **more: Any) -> AdapterOutcome:
        """Ask for all pages."""
        self.asked.clear()
        return self.play(self.adapter.collect(self.job(known, **more)))

    def collected(self, *, seconds_ago: float = 60.0) -> Collection:
        """Ask for all pages; return what is known so long after, when all that came is stored."""
        known = looked(self.collect(), seconds_ago)
        self.stored = set(self.given)
        return known

    def look(self, known: Collection) -> AdapterOutcome:
        """Ask for what is new."""
        self.asked.clear()
        return self.play(self.adapter.look(self.job(known)))

    def publish(self, count: int) -> None:
        """Put new entries in front."""
        self.names[:0] = [str(number) for number in range(5000 + count, 5000, -1)]

    def delete(self, *names: object) -> None:
        gone = {str(name) for name in names}
        self.names = [name for name in self.names if name not in gone]

    @property
    def has_given_all(self) -> bool:
        """Whether every entry that it has now was given."""
        return self.given >= self.identities()

    # What the adapter is told

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
        """Begin with the subscription document as it is now."""
        page = self.document(self.url, self.names[: self.page])
        self.given.update(page.identities)
        self.stored.update(page.identities)
        known = Collection() if known is None else known
        more.setdefault("is_daily", known.looked_at is None or NOW - known.looked_at >= DAY_SECONDS)
        return AdapterJob(
            asked_url=self.url, url=self.url, page=page, now=NOW, site_id=self.site_id, known=known, **more
        )

    def sight(self, **changes: Any) -> Sight:
        """What is seen of the subscription document."""
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
        """Answer an adapter until it has come to something; a thousand questions are an error."""
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
        """The query strings of the questions."""
        return [urlsplit(ask.url).query for ask in self.asked]


def looked(outcome: AdapterOutcome, seconds_ago: float = 60.0) -> Collection:
    """What is known after a collection, as the driver keeps it."""
    return replace(outcome.known, looked_at=NOW - seconds_ago, ended_at=NOW - seconds_ago)
