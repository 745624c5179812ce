"""A publisher and a store in memory, which carry out the requests of a refresh.

Documents come in any order.

world = World(publisher, store)
told = world.refresh(random.Random(1))      # told.asked, told.publication, told.detached
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from tests.core.refresh.makers import GONE, LIMITS, NOW, a_feed, a_fresh, a_row
from tests.makers import FEED, an_arrival, origin_of
from wholefeed.core.links import FH_INCREMENTAL, recognise
from wholefeed.core.merge import Copy
from wholefeed.core.model import EntryId, Family, Kind, Role, State, entry_id
from wholefeed.core.notes import Ending, Note
from wholefeed.core.refresh.accounting import Departure
from wholefeed.core.refresh.arrivals import (
    Failure,
    FoundSubscription,
    FreshDocument,
    KnownEntries,
    Offer,
    Placement,
    Reply,
    ReplyFacts,
    SubscriptionFailed,
    SubscriptionPlacement,
    Unchanged,
)
from wholefeed.core.refresh.asking import CoreRequest, EarlyLink, FetchEnded
from wholefeed.core.refresh.basis import Basis, RefreshRequest, Settings
from wholefeed.core.refresh.refreshing import refresh
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.core.schedule import ValidatorPair
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.ahead import is_foreseen
from wholefeed.core.walk.chain import Arrival
from wholefeed.fetch.base import site_of

MEMORY = "memory:"
_ROLES = {Role.SUBSCRIPTION: 0, Role.MEMORY: 1, Role.ARCHIVE: 2, Role.PAGE: 2}


@dataclass(frozen=True, kw_only=True)
class Page:
    links: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[str, ...] = ()
    family: Family = Family.ATOM
    is_marked: bool = True
    is_uncacheable: bool = False
    is_complete: bool = False
    site_id: str = "urn:feed"
    etag: str = ""

    def fresh(self, url: str) -> FreshDocument:
        is_archive = False if url == FEED else self.is_marked
        finding = recognise(self.links, is_archive=is_archive, is_complete=self.is_complete)
        arrival = an_arrival(
            url,
            family=self.family,
            site_id=self.site_id,
            links=self.links,
            digest=repr(self).encode(),
            keys=[(entry_id(name), None) for name in self.entries],
        )
        return a_fresh(
            arrival,
            kind=finding.kind,
            older_relation=finding.relation,
            is_tentative=finding.is_tentative,
            validators=ValidatorPair(self.etag),
        )


@dataclass
class Publisher:
    pages: dict[str, Page]
    failing: dict[str, Failure] = field(default_factory=dict)
    is_frozen: bool = False
    """Whether every request for the subscription document gets a 304."""
    when_whole: Failure | None = None
    """Failure of requests for the subscription document without a condition."""

    def answer(self, url: str) -> Page | Failure:
        return self.failing.get(url) or self.pages.get(url) or GONE


@dataclass(frozen=True, kw_only=True)
class Published:
    state: State
    notes: Sequence[Note]
    ending: Ending | None = None
    missing: Sequence[Attempt] | None = None


@dataclass
class Outcome:
    asked: list[str] = field(default_factory=list)
    conditional: list[bool] = field(default_factory=list)
    """Whether each request for the subscription document had a condition."""
    published: list[Published] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """Names of the methods called for the requests, in order."""
    ranked: set[int] = field(default_factory=set)
    """Documents with a rank changed after they were stored."""
    foreseen: list[tuple[list[str], list[str]]] = field(default_factory=list)
    """At each wait, the documents under way, and those without a wanted early link."""
    has_subscription: bool = False

    @property
    def publication(self) -> Published:
        return self.published[-1]


class World:
    def __init__(self, publisher: Publisher, **settings: Any) -> None:
        self.publisher = publisher
        self.settings = Settings(**{"limits": LIMITS, **settings})
        self.feed = a_feed()
        self.documents: dict[int, StoredDocument] = {}
        self.entries: dict[int, tuple[str, ...]] = {}
        self.missing: dict[str, Attempt] = {}
        self.failure: Attempt | None = None
        self.now = NOW
        self.doubtful: set[str] = set()
        """Entries lost by an archive, remembered until their place is known (R35)."""
        self.forgotten: set[EntryId] = set()
        self.kept: dict[str, Page] = {}
        """Documents for the next refresh to import (I1)."""

    @property
    def attached(self) -> list[StoredDocument]:
        found = [each for each in self.documents.values() if each.rank is not None]
        return sorted(found, key=lambda each: (_ROLES[each.role], each.rank, each.id))

    @property
    def shape(self) -> list[tuple[Role, str]]:
        """By kind, in output order, without remembered copies."""
        return [(each.role, each.url) for each in self.attached if each.role is not Role.MEMORY]

    def refresh(self, chance: random.Random, **asked: Any) -> Outcome:
        io = WorldIO(self, chance, RefreshRequest(**asked))
        io.told.has_subscription = io.run() is None
        assert not io.pending, "fetches go on behind the end"
        assert not io.held, "what came was neither put nor dropped"
        return io.told

    def cut_off(self, chance: random.Random, after: int) -> Outcome:
        """Begin a refresh, and kill it after so many calls."""
        io = WorldIO(self, chance, RefreshRequest(), most=after)
        with suppress(KilledError):
            io.run()
        return io.told

    def ordered(self) -> tuple[StoredDocument, ...]:
        """All documents, the detached ones last."""
        detached = [each for each in self.documents.values() if each.rank is None]
        return (*self.attached, *detached)

    def put(self, url: str, page: Page, role: Role, rank: int | None, **changes: Any) -> int:
        same = (each.id for each in self.documents.values() if (each.url, each.role) == (url, role))
        number = next(same, max(self.documents, default=0) + 1)
        arrival = page.fresh(url).arrival
        self.documents[number] = a_row(
            arrival,
            number,
            **{
                "role": role,
                "rank": rank,
                "is_marked": page.is_marked,
                "is_settled": False,
                "is_uncacheable": page.is_uncacheable,
                "etag": page.etag or None,
                "fetched_at": self.now,
                "checked_at": self.now,
                **changes,
            },
        )
        self.entries[number] = page.entries
        self.grow()
        return number

    def change(self, number: int, **changes: Any) -> None:
        self.documents[number] = dataclasses.replace(self.documents[number], **changes)
        self.grow()

    def grow(self) -> None:
        self.feed = dataclasses.replace(self.feed, revision=self.feed.revision + 1)

    @property
    def names(self) -> set[str]:
        """Entries published to readers."""
        return {name for each in self.attached for name in self.entries[each.id]}

    def held_but(self, documents: Iterable[int]) -> set[str]:
        """Entries in the publisher's other attached documents."""
        others = [each for each in self.attached if each.role is not Role.MEMORY]
        return {name for each in others if each.id not in documents for name in self.entries[each.id]}

    def remember(self, names: Iterable[str], family: Family) -> None:
        if left := tuple(names):
            number = 1 + sum(each.role is Role.MEMORY for each in self.documents.values())
            self.put(f"{MEMORY}{number}", Page(entries=left, family=family), Role.MEMORY, -number)

    def forget(self, names: set[str]) -> None:
        """Drop remembered copies of entries deleted by their publisher (R8)."""
        gone = names - self.held_but(())
        for each in [each for each in self.documents.values() if each.role is Role.MEMORY]:
            self.entries[each.id] = tuple(name for name in self.entries[each.id] if name not in gone)

    def known(self, identities: Sequence[EntryId]) -> dict[EntryId, float | None]:
        live = {entry_id(name) for each in self.attached for name in self.entries[each.id]}
        return {identity: None for identity in identities if identity in live}

    def live(self, identities: Sequence[EntryId]) -> dict[EntryId, Copy]:
        """Copy nearest the subscription document, since no entry has a date here."""
        found: dict[EntryId, Copy] = {}
        for each in self.attached:
            for ordinal, name in enumerate(self.entries[each.id]):
                if each.role is not Role.MEMORY and entry_id(name) in identities:
                    copy = Copy(each.id, None, each.role, each.rank or 0, ordinal, None, self.now)
                    found.setdefault(entry_id(name), copy)
        return found


_WRITING = {"keep_document", "keep_together", "attach", "detach", "settle_doubtful", "publish", "take_turn"}
"""Requests that write; pending notes are written with them."""


class KilledError(Exception):
    """The refresh was killed."""


class WorldIO:
    """One refresh's effects on the world; `most`: calls before it is killed."""

    def __init__(
        self, world: World, chance: random.Random, request: RefreshRequest, most: int = 1 << 20
    ) -> None:
        self.world = world
        self.chance = chance
        self.most = most
        self.told = Outcome()
        self.shifts: str | None = None
        """Pending note about shifting archives, written with the next request."""
        self.pending: dict[str, StoredDocument | None] = {}
        self.heads: list[tuple[str, str]] = []
        """Documents under way without a head yet, each with the wanted relation."""
        self.held: dict[str, Page] = {}
        self.held |= world.kept
        kept, world.kept = world.kept, {}
        offers = [
            Offer(
                url=url,
                copy_url=url,
                captured_at=NOW,
                document=page.fresh(url),
                is_subscription=True,
                origin=origin_of(url, Role.PAGE),
            )
            for url, page in kept.items()
        ]
        self.basis = Basis(
            feed=world.feed,
            missing=dict(world.missing),
            failure=world.failure,
            settings=world.settings,
            request=request,
            site_of=site_of,
            now=lambda: world.now,
            offers=tuple(offers),
        )
        self.documents = world.ordered()
        self.early: list[EarlyLink] = []
        """Early links not yet delivered to the refresh."""
        self.needed = ""
        """URL of the path's next document."""

    def run(self) -> SubscriptionFailed | None:
        """Carry out the requests of the refresh in order; return its end."""
        talk, answer = refresh(self.basis, self.documents), None
        try:
            while True:
                answer = self.perform(talk.send(answer))
        except StopIteration as end:
            failed: SubscriptionFailed | None = end.value
            return failed

    def perform(self, request: CoreRequest[Any]) -> Any:
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", type(request).__name__).lower()
        self.call(name)
        values = {each.name: getattr(request, each.name) for each in dataclasses.fields(request)}
        return getattr(self, name)(**values)

    def call(self, name: str) -> None:
        if len(self.told.calls) >= self.most:
            raise KilledError
        self.told.calls.append(name)
        if self.shifts is not None and name in _WRITING:
            self.world.feed = dataclasses.replace(self.world.feed, shifts=self.shifts)
            self.shifts = None

    # the subscription document

    def ask_subscription(
        self, url: str, stored: StoredDocument | None, is_whole: bool = False, searches: bool = False
    ) -> Reply | SubscriptionFailed:
        self.told.asked.append(url)
        reply, publisher = Reply(url=url, permanent_url=None, headers={}), self.world.publisher
        asks = not is_whole and is_validated(stored)
        self.told.conditional.append(asks)
        page = (publisher.when_whole if not asks else None) or publisher.answer(url)
        if isinstance(page, Failure):
            return SubscriptionFailed(page, OSError(page.slug))
        fresh = page.fresh(url)
        if asks and (publisher.is_frozen or (stored and stored.digest == fresh.arrival.digest)):
            return dataclasses.replace(reply, is_update=True)
        self.held[url] = page
        return dataclasses.replace(reply, found=FoundSubscription(url, fresh))

    def store_subscription(self, placement: SubscriptionPlacement) -> None:
        world = self.world
        for number in placement.detached:
            world.change(number, rank=None, detached_at=world.now)
        if placement.remembers is not None:
            self.remember(placement.remembers)
        world.put(FEED, self.held.pop(FEED), Role.SUBSCRIPTION, 0)
        world.feed = dataclasses.replace(world.feed, kind=placement.kind, family=placement.family)

    def remember(self, old: StoredDocument) -> None:
        world = self.world
        kept = set(self.held[FEED].entries)
        world.remember((name for name in world.entries[old.id] if name not in kept), old.family)

    def note_reply(self, reply: ReplyFacts) -> None:
        self.world.failure = None
        noted = {name: getattr(reply, name) for name in ("had_at", "doubts")}
        said: dict[str, Any] = {name: value for name, value in noted.items() if value is not None}
        self.world.feed = dataclasses.replace(self.world.feed, **said)
        self.held.clear()

    def note_failure(self, failure: Attempt | None, fresh_until: float) -> None:
        self.world.failure = failure

    # stored state

    def reread(self) -> bool:
        return False

    def settle_ids(self, joins: bool) -> bool:
        return False

    def rows(self) -> Sequence[StoredDocument]:
        return self.world.ordered()

    def read_entries(self, document: int) -> Sequence[tuple[EntryId, float | None]]:
        return [(entry_id(each), None) for each in self.world.entries[document]]

    def find_known(
        self, url: str, arrival: Arrival, with_copies: bool = False, with_pages: bool = False
    ) -> KnownEntries:
        identities = [identity for identity, _ in arrival.keys or ()]
        return KnownEntries(self.world.known(identities), self.world.live(identities))

    def depart(self, document: int, url: str, arrival: Arrival, waiting: Sequence[int]) -> Departure:
        stood, stands = self.world.entries[document], self.held[url].entries
        gone = [name for name in stood if name not in stands]
        left = set(gone) - self.world.held_but({document, *waiting})
        return Departure(frozenset(map(entry_id, left)), has_gap=bool(gone) and len(gone) == len(stood))

    def doubtful(self) -> frozenset[EntryId]:
        return frozenset(map(entry_id, self.world.doubtful))

    def settle_doubtful(self) -> None:
        doubtful, self.world.doubtful = self.world.doubtful, set()
        self.world.forget(doubtful)
        self.world.grow()

    def keep_together(self, placements: Mapping[str, Placement]) -> Sequence[int]:
        stood = {url: self._stood(placement) for url, placement in placements.items()}
        numbers = [self._put(url, placement, stood=set()) for url, placement in placements.items()]
        self.world.forget(set().union(*stood.values()) - self.world.doubtful)
        return numbers

    def keep_document(self, url: str, placement: Placement) -> int:
        return self._put(url, placement)

    def _stood(self, placement: Placement) -> set[str]:
        world, key = self.world, (placement.url, placement.role)
        same = [each for each in world.attached if (each.url, each.role) == key]
        return {name for each in same for name in world.entries[each.id]}

    def _put(self, url: str, placement: Placement, stood: set[str] | None = None) -> int:
        world, page = self.world, self.held.pop(url)
        role, rank = placement.role, placement.rank
        stood = self._stood(placement) if stood is None else stood
        flags = {"is_settled": placement.is_settled, "brought_news": placement.brought_news}
        number = world.put(placement.url, page, role, rank, **flags)
        if role is Role.ARCHIVE:
            left = stood - world.held_but(())
            world.doubtful -= set(page.entries)
            if placement.is_doubtful:
                world.remember(sorted(left), page.family)
                world.doubtful |= left
            else:
                world.forget(left - world.doubtful)
        return number

    def drop(self, url: str) -> None:
        del self.held[url]

    def touch(
        self,
        document: int,
        is_settled: bool | None = None,
        is_uncacheable: bool | None = None,
        found_in: int | None = None,
    ) -> None:
        row = self.world.documents[document]
        is_final = row.is_settled if is_settled is None else is_settled
        touched = dataclasses.replace(row, checked_at=self.world.now, is_settled=is_final)
        self.world.documents[document] = touched

    def attach(self, ranks: Mapping[int, int]) -> None:
        for number, rank in ranks.items():
            self.world.change(number, rank=rank, detached_at=None)
        self.told.ranked.update(ranks)

    def detach(self, documents: Sequence[int], is_withdrawn: bool) -> None:
        for number in documents:
            self.world.change(number, rank=None, detached_at=self.world.now)

    def remove(self, documents: Sequence[int], entries: Sequence[EntryId]) -> None:
        for number in documents:
            del self.world.documents[number], self.world.entries[number]
        self.world.forgotten.update(entries)
        self.world.grow()

    def note_feed(self, kind: Kind | None, collection: str | None, shifts: str | None) -> None:
        changes: dict[str, Any] = {"kind": kind, "collection": collection}
        noted = {name: value for name, value in changes.items() if value is not None}
        self.world.feed = dataclasses.replace(self.world.feed, **noted)
        self.shifts = shifts if shifts is not None else self.shifts

    def note_listing(self, listing: str, next_at: float | None) -> None:
        self.world.feed = dataclasses.replace(self.world.feed, listing=listing, list_at=next_at)

    def unlist(self) -> None:
        """No lists exist."""

    # the walk

    def take_turn(self) -> None:
        self.foresee()  # it waits for a turn
        self.world.feed = dataclasses.replace(self.world.feed, is_walking=True)

    def fetch(
        self,
        url: str,
        stored: StoredDocument | None,
        relation: str,
        is_met: Callable[[str], bool],
        is_ahead: bool,
    ) -> None:
        is_known = any(each.url == url for each in self.world.documents.values())
        assert is_known or "take_turn" in self.told.calls, "it waits for the walk's turn"
        assert url not in self.pending
        self.told.asked.append(url)
        self.pending[url] = stored
        self.heads.append((url, relation))
        self.foresee()

    def fetch_page(
        self, url: str, is_met: Callable[[str], bool], is_head: bool, expected: frozenset[int]
    ) -> None:
        raise AssertionError("no adapter fits")

    def foresee(self) -> None:
        """Let the heads of some documents under way arrive."""
        heads, self.heads = self.heads, []
        for url, relation in heads:
            page = self.world.publisher.answer(url) if url in self.pending else None
            if not isinstance(page, Page):
                continue
            if self.chance.random() < 0.5:
                self.heads.append((url, relation))
            elif (older := page.links.get(relation)) is not None:
                self.early.append(EarlyLink(url, older))

    def next_event(self, needed: str) -> FetchEnded | EarlyLink:
        self.needed = needed
        if self.early:
            return self.early.pop(0)
        under_way, window = list(self.pending), self.world.settings.window
        foreseen = [url for url in under_way if is_foreseen(url, needed, under_way, window)]
        self.told.foreseen.append((under_way, foreseen))
        url = self.chance.choice(sorted(self.pending))
        stored = self.pending.pop(url)
        page = self.world.publisher.answer(url)
        if isinstance(page, Failure):
            return FetchEnded(url, page)
        fresh = page.fresh(url)
        if is_validated(stored) and stored.digest == fresh.arrival.digest:
            return FetchEnded(url, Unchanged())
        self.held[url] = page
        return FetchEnded(url, fresh)

    def rest(self) -> None:
        """No other task exists."""

    def pause_host(self, url: str, until: float) -> None:
        """No adapter fits."""

    def end_walk(self, ending: str, documents: int) -> None:
        self.pending.clear()
        self.early.clear()
        self.heads.clear()
        self.held.clear()

    # readers

    def publish(
        self,
        state: State,
        notes: Sequence[Note] | None,
        ending: Ending | None = None,
        missing: Sequence[Attempt] | None = None,
    ) -> None:
        world, is_said, notes = self.world, notes is not None, notes or ()
        self.told.published.append(Published(state=state, notes=notes, ending=ending, missing=missing))
        if missing is not None:
            world.missing = {attempt.url: attempt for attempt in missing}
        world.feed = dataclasses.replace(
            world.feed,
            state=state,
            is_walking=False,
            published_revision=world.feed.revision,
            digest=b"published",
            notes=str([note.as_dict() for note in notes]).replace("'", '"') if is_said else world.feed.notes,
        )


def is_validated(stored: StoredDocument | None) -> TypeGuard[StoredDocument]:
    """Whether a conditional request is possible; a memento has no validators."""
    return stored is not None and not stored.memento


def asked_twice(asked: Sequence[str]) -> list[str]:
    keys = [document_key(url) for url in asked]
    return [key for key in set(keys) if keys.count(key) > 1]


def incremental(links: Mapping[str, str]) -> dict[str, str]:
    """Links, with the statement that earlier entries belong to the feed."""
    return {**links, FH_INCREMENTAL: "true"}
