"""A publisher with an adapter for its pages, and the stored state of its feed, without HTTP or store.

world = CollectedWorld(Script([Ask(page(1))]))
world.responses[page(1)] = a_page(page(1), "x", "y")
played = world.collect()                # played.result, played.requests; stored documents and notes stay
world.fetched                           # the URLs that were asked for, in order
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from tests.core.refresh.makers import LIMITS, a_feed, a_fresh, a_row, a_subscription
from tests.core.refresh.talking import Conversation, play
from tests.makers import FEED, a_key, an_arrival
from wholefeed.core.adapters.base import (
    Adapter,
    AdapterJob,
    AdapterOutcome,
    Asking,
    Collection,
    Marks,
    PageQuestion,
    PageResponse,
    Sight,
    page_url,
)
from wholefeed.core.merge import Copy
from wholefeed.core.model import EntryId, Family, Kind, Role, State
from wholefeed.core.refresh.arrivals import Failure, FreshDocument, KnownEntries, Placement, Response
from wholefeed.core.refresh.asking import (
    CoreRequest,
    Drop,
    EarlyLink,
    EndWalk,
    FetchEnded,
    FetchPage,
    FindKnown,
    KeepDocument,
    NextEvent,
    NoteFeed,
    PauseHost,
    ReadEntries,
    Rows,
    TakeTurn,
    Touch,
)
from wholefeed.core.refresh.basis import Basis, RefreshRequest, Settings, WalkResult
from wholefeed.core.refresh.collecting import Collecting
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.core.walk.chain import Arrival
from wholefeed.fetch.base import site_of

_A = TypeVar("_A", bound=Adapter)
NOW = 1_750_000_000.0
HOUR, DAY, WEEK = 3600.0, 86_400.0, 7 * 86_400.0
TOP = ("t1", "t2", "t3")


def page(number: int) -> str:
    return page_url(FEED, page=number)


def a_failure(status: int | None = None, slug: str = "publisher-status", **more: Any) -> Failure:
    return Failure(slug=slug, publisher_status=status, **more)


GONE, UNAVAILABLE = a_failure(404), a_failure(503)


def a_page(
    url: str,
    *names: str,
    final_url: str = "",
    family: Family = Family.ATOM,
    site_id: str = "urn:feed",
    dates: Sequence[float | None] = (),
    body_bytes: int = 1000,
) -> FreshDocument:
    arrival = an_arrival(
        url,
        final_url=final_url,
        family=family,
        site_id=site_id,
        digest=repr(names).encode(),
        body_bytes=body_bytes,
        keys=[a_key(name) for name in names],
    )
    return a_fresh(arrival, order=tuple(dates) or (None,) * len(names))


def an_outcome(**found: Any) -> AdapterOutcome:
    """An adapter's outcome: all pages read, by default."""
    return AdapterOutcome(**{"is_honoured": True, **found})


class Script:
    """An adapter that asks its questions round by round, for any answers.

    `news`: questions of a look for news; by default the same.
    """

    name = "script"

    def __init__(self, *rounds: Sequence[PageQuestion], outcome: AdapterOutcome | None = None) -> None:
        self.rounds = rounds
        self.outcome = outcome or an_outcome()
        self.news: tuple[tuple[Sequence[PageQuestion], ...], AdapterOutcome] | None = None
        self.jobs: list[AdapterJob] = []
        self.answers: list[PageResponse] = []

    def fits(self, sight: Sight) -> bool:
        return sight.marks.generator == self.name

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        return self._ask(job, self.rounds, self.outcome)

    def look(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        return self._ask(job, *(self.news or (self.rounds, self.outcome)))

    def _ask(
        self, job: AdapterJob, rounds: Iterable[Sequence[PageQuestion]], outcome: AdapterOutcome
    ) -> Asking[AdapterOutcome]:
        self.jobs.append(job)
        for questions in rounds:
            self.answers += yield questions
        known = dataclasses.replace(job.known, total=outcome.known.total, collected=outcome.known.collected)
        return dataclasses.replace(outcome, known=known)


class CollectedWorld(Generic[_A]):
    def __init__(self, adapter: _A, **settings: Any) -> None:
        self.adapter = adapter
        self.responses: dict[str, Response | Callable[[int], Response]] = {}
        """By URL; a function gets the count of earlier requests for it. Other URLs: 404."""
        self.settings = Settings(**{"limits": LIMITS, **settings})
        self.feed_url = FEED
        self.collection = Collection()
        self.state = State.LOADING
        self.is_walking = False
        self.missing: dict[str, Attempt] = {}
        self.now = NOW
        self.rows: list[StoredDocument] = []
        self.entries: dict[int, list[tuple[EntryId, float | None]]] = {}
        self.publish(*TOP)
        self.fetched: list[str] = []
        self.under_way: list[str] = []
        self.most_under_way = 0
        self.order: Callable[[int], int] = lambda _count: 0
        """Index of the next request to end, from the count under way."""
        self.most_responses = 1 << 20
        """Responses before the time of the walk is over."""
        self.come: dict[str, FreshDocument] = {}
        self.let_go: set[str] = set()
        """URLs of arrived documents dropped at the end of the walk."""

    # Called by tests

    def publish(self, *names: str, dates: Sequence[float | None] = (), **changes: Any) -> None:
        self.rows = [row for row in self.rows if row.role is not Role.SUBSCRIPTION]
        self.store(a_page(FEED, *names, dates=dates), Role.SUBSCRIPTION, 0, number=1)
        marks = Marks(generator=self.adapter.name, last_id=names[-1] if names else "").written()
        self.change(1, **{"marks": marks, **changes})

    def store(
        self, fresh: FreshDocument, role: Role, rank: int | None, *, number: int = 0, **changes: Any
    ) -> int:
        arrival = fresh.arrival
        number = number or 1 + max(row.id for row in self.rows)
        self.rows = [row for row in self.rows if row.id != number]
        values: dict[str, Any] = {
            "role": role,
            "rank": rank,
            "links": {},
            "is_marked": False,
            "is_settled": False,
            "fetched_at": self.now,
            "checked_at": self.now,
        }
        self.rows.append(a_row(arrival, number, **(values | changes)))
        identities = [identity for identity, _ in arrival.keys or ()]
        self.entries[number] = list(zip(identities, fresh.order, strict=True))
        return number

    def change(self, number: int, **changes: Any) -> None:
        self.rows = [dataclasses.replace(row, **changes) if row.id == number else row for row in self.rows]

    def attempt(self, **changes: Any) -> Collecting | None:
        """`changes` are fields of `SubscriptionState` and `RefreshRequest`."""
        of_request = {field.name for field in dataclasses.fields(RefreshRequest)}
        request = {name: changes.pop(name) for name in of_request & changes.keys()}
        feed = a_feed(
            url=self.feed_url,
            state=self.state,
            is_walking=self.is_walking,
            collection=self.collection.written(),
        )
        self.basis = Basis(
            feed=feed,
            missing=self.missing,
            failure=None,
            settings=self.settings,
            request=RefreshRequest(**request),
            site_of=site_of,
            now=lambda: self.now,
        )
        values = {"kind": Kind.PLAIN, "relation": "", "changed_at": self.now, **changes}
        return Collecting.of(self.basis, self.rows, a_subscription(**values))

    def collect(self, **changes: Any) -> Conversation[WalkResult]:
        """Collect all due pages, and store the result."""
        collecting = self.attempt(**changes)
        assert collecting is not None, "no adapter fits"
        self.fetched.clear()
        self.let_go.clear()
        played = play(collecting.run(), self.answer)
        assert not self.come, "what came was neither kept nor let go"
        assert not self.under_way, "fetches go on behind the end"
        assert collecting.has_begun == bool(played.of(TakeTurn))
        return played

    def fail(self, url: str, *, retry_seconds: float, reason: str = "publisher-status") -> None:
        self.missing[url] = Attempt(
            url=url,
            reason=reason,
            status=503,
            attempts=1,
            first_at=self.now,
            last_at=self.now,
            next_at=self.now + retry_seconds,
        )

    @property
    def pages(self) -> list[str]:
        return sorted(row.url for row in self.rows if row.role is Role.PAGE)

    # Answers to requests

    def answer(self, request: CoreRequest[Any]) -> Any:
        match request:
            case NextEvent():
                return self._next_event()
            case ReadEntries(document=number):
                return self.entries[number]
            case Rows():
                return list(self.rows)
            case FindKnown(arrival=arrival):
                return self._known(arrival)
            case KeepDocument(url=url, placement=placement):
                return self._keep(self.come.pop(url), placement)
            case _:
                return self._do(request)

    def _do(self, request: CoreRequest[Any]) -> None:
        """Run a request without an answer."""
        match request:
            case FetchPage(url=url):
                self.under_way.append(url)
                self.most_under_way = max(self.most_under_way, len(self.under_way))
            case NoteFeed(collection=str(written)):
                self.collection = Collection.read(written)
            case Drop(url=url):
                del self.come[url]
            case EndWalk():
                self.let_go = set(self.come)
                self.come.clear()
                self.under_way.clear()
            case Touch(document=number, found_in=found_in):
                row = next(row for row in self.rows if row.id == number)
                self.change(number, checked_at=self.now, found_in=found_in or row.found_in)
            case _:
                assert isinstance(request, TakeTurn | PauseHost), request

    def _next_event(self) -> FetchEnded | EarlyLink | None:
        if len(self.fetched) >= self.most_responses:
            return None
        url = self.under_way.pop(self.order(len(self.under_way)))
        response = self.responses.get(url, GONE)
        if callable(response):
            response = response(self.fetched.count(url))
        self.fetched.append(url)
        if isinstance(response, FreshDocument):
            self.come[url] = response
        return FetchEnded(url, response)

    def _known(self, arrival: Arrival) -> KnownEntries:
        asked = {identity for identity, _ in arrival.keys or ()}
        live: dict[EntryId, Copy] = {}
        for row in self.rows:
            for ordinal, (identity, _) in enumerate(self.entries[row.id]):
                if row.rank is not None and identity in asked:
                    at = row.fetched_at
                    copy = Copy(row.id, None, row.role, row.rank, ordinal, None, at, generated_at=at)
                    live.setdefault(identity, copy)
        return KnownEntries(dict.fromkeys(live), live)

    def _keep(self, fresh: FreshDocument, placement: Placement) -> int:
        same = (row.id for row in self.rows if (row.url, row.role) == (placement.url, placement.role))
        return self.store(
            dataclasses.replace(fresh, arrival=dataclasses.replace(fresh.arrival, url=placement.url)),
            placement.role,
            placement.rank,
            number=next(same, 0),
            found_by=placement.found_by,
            found_in=placement.found_in,
        )
