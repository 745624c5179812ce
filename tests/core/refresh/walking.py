"""Play a walk over documents made by hand: a test says which fetch ends next, and how.

walk = a_walk(an_arrival(FEED, archive(2)))
walk.fetching                                   # [archive(2)], the one that the path has come to first
walk.came(an_arrival(archive(2), archive(1)))   # or `unchanged`, `led_back`, `failed`, `early`, `end_time`
finish(walk, a_publisher(an_arrival(archive(1))))
walk.urls, walk.ending, walk.requests
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tests.core.refresh.makers import GONE, LIMITS, NOW, a_basis, a_feed, a_fresh, a_subscription, archive
from tests.core.refresh.talking import LATER, Conversation
from tests.makers import an_arrival
from wholefeed.core.merge import Copy
from wholefeed.core.model import EntryId, Role
from wholefeed.core.notes import Ending
from wholefeed.core.refresh.accounting import Departure
from wholefeed.core.refresh.arrivals import (
    Failure,
    FreshDocument,
    KnownEntries,
    LedBack,
    Placement,
    Response,
    Unchanged,
)
from wholefeed.core.refresh.asking import (
    Attach,
    CoreRequest,
    Depart,
    Doubtful,
    Drop,
    EarlyLink,
    Fetch,
    FetchEnded,
    FindKnown,
    KeepDocument,
    KeepTogether,
    NextEvent,
    NoteFeed,
    Rest,
    SettleDoubtful,
    TakeTurn,
    Talk,
    Touch,
)
from wholefeed.core.refresh.basis import Basis, Settings, WalkResult
from wholefeed.core.refresh.responses import Responses
from wholefeed.core.refresh.stored import Attempt, StoredDocument, StoredFeed
from wholefeed.core.refresh.subscription import SubscriptionState
from wholefeed.core.refresh.walk import TrailWalk, walk_archives, walk_pages
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival, Key, Trail, WalkLimits

CHAIN: Final = Trail(relation="prev-archive")
PAGES: Final = Trail(relation="next", is_paged=True)
Publisher = Callable[[str], Arrival | FreshDocument | Failure]
"""Returns the content of a URL."""


class WalkStore:
    """Stored entries of a feed, and the writes of a walk."""

    def __init__(self) -> None:
        self.documents: dict[str, StoredDocument] = {}
        """Documents stored before, by `document_key` of their URLs."""
        self.entries: dict[EntryId, float | None] = {}
        """Entries of attached documents, with their latest update instants."""
        self.on_pages: set[EntryId] = set()
        self.departures: dict[int, Departure] = {}
        """Departures from a replaced stored document, by its number."""
        self.doubtful: set[EntryId] = set()
        self.kept: list[Placement] = []
        self.dropped: list[str] = []
        self.come: dict[str, FreshDocument] = {}
        """Arrived documents, neither stored nor dropped, by URL."""

    def add(self, keys: Iterable[Key], role: Role = Role.ARCHIVE) -> None:
        keys = list(keys)
        self.entries.update(keys)
        if role is Role.PAGE:
            self.on_pages.update(identity for identity, _ in keys)

    def keep(self, url: str, placement: Placement) -> int:
        self.add(self.come.pop(url).arrival.keys or (), placement.role)
        self.kept.append(placement)
        return FIRST_NUMBER + len(self.kept) - 1

    def drop(self, url: str) -> None:
        del self.come[url]
        self.dropped.append(url)

    def find(self, arrival: Arrival) -> KnownEntries:
        keys = [identity for identity, _ in arrival.keys or () if identity in self.entries]
        live = {
            identity: Copy(n, self.entries[identity], Role.PAGE, n, 0, None, NOW)
            for n, identity in enumerate(keys)
        }
        on_pages = frozenset(identity for identity in keys if identity in self.on_pages)
        return KnownEntries({identity: self.entries[identity] for identity in keys}, live, None, on_pages)

    def answer(self, request: CoreRequest[Any]) -> Any:
        answer: Any = None
        match request:
            case FindKnown(arrival=arrival):
                answer = self.find(arrival)
            case KeepDocument(url=url, placement=placement):
                answer = self.keep(url, placement)
            case KeepTogether(placements=placements):
                answer = [self.keep(url, placement) for url, placement in placements.items()]
            case Depart(document=number):
                answer = self.departures.get(number, Departure(frozenset()))
            case Doubtful():
                answer = frozenset(self.doubtful)
            case Drop(url=url):
                self.drop(url)
            case _:
                assert isinstance(request, Attach | NoteFeed | Rest | SettleDoubtful | Touch), request
        return answer


FIRST_NUMBER: Final = 1001
"""Documents stored before the walk have lower numbers."""


class FetchPlayer:
    """A conversation with walks; a test ends its fetches in any order."""

    def __init__(self, talk: Talk[WalkResult], store: WalkStore) -> None:
        self.store = store
        self.fetched: list[str] = []
        self._needed = ""
        self._has_turn = False
        self._under_way: dict[str, Fetch] = {}
        self._talk = Conversation(talk, self._answer)

    # State of the walk

    @property
    def requests(self) -> list[CoreRequest[Any]]:
        return self._talk.requests

    @property
    def told(self) -> list[type[CoreRequest[Any]]]:
        """Kinds of the requests except `NextEvent`."""
        return [type(request) for request in self.requests if not isinstance(request, NextEvent)]

    @property
    def fetching(self) -> list[str]:
        """URLs under way: the path's next one, then those ahead by start."""
        ahead = [url for url in self._under_way if url != self._needed]
        return ahead if self._talk.is_over else [self._needed, *ahead]

    def fetch_of(self, url: str) -> Fetch:
        return self._under_way[url]

    @property
    def ending(self) -> Ending | None:
        """How the walk ended; None while it goes on."""
        return self._talk.result.ending if self._talk.is_over else None

    @property
    def walked(self) -> WalkResult:
        return self._talk.result

    @property
    def kept(self) -> list[str]:
        return [placement.url for placement in self.store.kept]

    # Ends of a fetch

    def came(self, document: Arrival | FreshDocument, url: str = "") -> None:
        """Let a document arrive; the requested URL may differ from its own."""
        fresh = a_fresh(document) if isinstance(document, Arrival) else document
        url = url or fresh.arrival.url
        fresh = dataclasses.replace(fresh, arrival=dataclasses.replace(fresh.arrival, url=url))
        self.store.come[url] = fresh
        self._end(url, fresh)

    def failed(self, url: str, failure: Failure = GONE) -> None:
        self._end(url, failure)

    def unchanged(self, url: str) -> None:
        """Answer 304 for a stored document."""
        self._end(url, Unchanged())

    def led_back(self, url: str, met_url: str) -> None:
        assert self.fetch_of(url).is_met(met_url)
        self._end(url, LedBack(met_url))

    def early(self, url: str, older: str) -> None:
        """Let a document's head arrive with its older link, before the rest."""
        assert url in self._under_way
        self._talk.reply(EarlyLink(url, older))

    def end_time(self) -> None:
        self._talk.reply(None)

    def _end(self, url: str, response: Response) -> None:
        del self._under_way[url]
        self._talk.reply(FetchEnded(url, response))

    def _answer(self, request: CoreRequest[Any]) -> Any:
        match request:
            case NextEvent(needed=needed):
                assert needed in self._under_way, "it waits for what nobody fetches"
                self._needed = needed
                return LATER
            case TakeTurn():
                self._has_turn = True
            case Fetch(url=url):
                keys = {document_key(each) for each in (*self._under_way, *self.store.come)}
                assert document_key(url) not in keys, "it is under way, or here"
                is_stored = document_key(url) in self.store.documents
                assert self._has_turn or is_stored, "it waits for the walk's turn"
                self._under_way[url] = request
                self.fetched.append(url)
            case _:
                return self.store.answer(request)
        return None


class WalkPlayer(FetchPlayer):
    def __init__(self, walk: TrailWalk, store: WalkStore, answers: Responses) -> None:
        self.walk = walk
        self.answers = answers
        """Responses for other walks of the same refresh."""
        super().__init__(walk.run(), store)

    @property
    def path(self) -> Sequence[Arrival]:
        """Joined documents, the subscription document first."""
        return self.walk.chain.path

    @property
    def urls(self) -> list[str]:
        return [arrival.url for arrival in self.path]


def a_walk(
    subscription: Arrival,
    *,
    stored: Iterable[StoredDocument] = (),
    trail: Trail = CHAIN,
    known: Iterable[Key] = (),
    store: WalkStore | None = None,
    answers: Responses | None = None,
    passed: Iterable[Arrival] = (),
    ascends: bool = False,
    is_unwatched: bool = False,
    feed: StoredFeed | None = None,
    missing: Iterable[Attempt] = (),
    now: float = NOW,
    limits: WalkLimits = LIMITS,
    looks_ahead: bool = True,
    window: int = 8,
    **changes: Any,
) -> WalkPlayer:
    """Begin to walk from a subscription document; `known` are stored entries.

    `changes` are fields of `RefreshRequest`, then of `SubscriptionState`.
    """
    settings = Settings(limits=limits, looks_ahead=looks_ahead, window=window)
    asked = {name: changes.pop(name) for name in ("is_full", "is_forced") if name in changes}
    basis = a_basis(
        feed=a_feed() if feed is None else feed, missing=missing, settings=settings, now=now, **asked
    )
    store = WalkStore() if store is None else store
    store.add(known)
    store.documents |= {document_key(row.url): row for row in stored}
    answers = Responses() if answers is None else answers
    return WalkPlayer(
        _begin(
            basis,
            a_subscription(subscription, **changes),
            store.documents,
            trail,
            answers,
            passed=passed,
            ascends=ascends,
            is_unwatched=is_unwatched,
        ),
        store,
        answers,
    )


def _begin(
    basis: Basis,
    subscription: SubscriptionState,
    stored: Mapping[str, StoredDocument],
    trail: Trail,
    answers: Responses,
    **pages: Any,
) -> TrailWalk:
    if trail.is_paged:
        return walk_pages(basis, subscription, stored, trail, answers, **pages)
    return walk_archives(basis, subscription, stored, trail, answers)


def tell(walk: FetchPlayer, url: str, publisher: Publisher) -> None:
    """Let a fetch end with this result."""
    answer = publisher(url)
    if isinstance(answer, Failure):
        walk.failed(url, answer)
    else:
        walk.came(answer, url)


def finish(walk: FetchPlayer, publisher: Publisher) -> Ending:
    """Always end the fetch for the path first, until the walk ends."""
    while walk.ending is None:
        tell(walk, walk.fetching[0], publisher)
    return walk.ending


def a_publisher(*documents: Arrival | FreshDocument) -> Publisher:
    by_url = {
        (document if isinstance(document, Arrival) else document.arrival).url: document
        for document in documents
    }
    return lambda url: by_url.get(url, GONE)


def number_archives(count: int) -> Publisher:
    return a_publisher(
        *(an_arrival(archive(n), archive(n - 1) if n > 1 else None) for n in range(1, count + 1))
    )
