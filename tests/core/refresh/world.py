"""A publisher and a store in memory, and a driver that carries out what a decision wants, in any order.

world = World(publisher, store)
told = world.refresh(random.Random(1))      # told.asked, told.publication, told.detached
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard, assert_never

from tests.makers import FEED, an_arrival
from wholefeed.core.links import FH_INCREMENTAL, recognise
from wholefeed.core.merge import Copy, Fullness
from wholefeed.core.model import EntryId, Family, Kind, Role, State, entry_id
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh import port
from wholefeed.core.refresh.decision import Decision
from wholefeed.core.refresh.port import (
    Arrived,
    Attempt,
    CarriedOut,
    Clock,
    Confirmed,
    DocumentsRead,
    EntriesRead,
    Event,
    Failed,
    Failure,
    FreshDocument,
    Given,
    KnownRead,
    ReadAgain,
    RefreshRequest,
    Reply,
    Settings,
    Stored,
    StoredDocument,
    StoredFeed,
    SubscriptionCame,
    SubscriptionFailed,
    SubscriptionUnchanged,
)
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import WalkLimits
from wholefeed.fetch.base import site_of

NOW = 1_700_000_000.0
MEMORY = "memory:"
_ROLES = {Role.SUBSCRIPTION: 0, Role.MEMORY: 1, Role.ARCHIVE: 2, Role.PAGE: 2}


@dataclass(frozen=True, kw_only=True)
class Page:
    """A document as its publisher has it."""

    links: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[str, ...] = ()
    family: Family = Family.ATOM
    is_marked: bool = True
    is_uncacheable: bool = False
    is_complete: bool = False
    site_id: str = "urn:feed"

    def fresh(self, url: str) -> FreshDocument:
        is_archive = False if url == FEED else self.is_marked
        finding = recognise(self.links, is_archive=is_archive, is_complete=self.is_complete)
        return FreshDocument(
            arrival=an_arrival(
                url,
                family=self.family,
                site_id=self.site_id,
                links=self.links,
                digest=repr(self).encode(),
                keys=[(entry_id(name), None) for name in self.entries],
            ),
            kind=finding.kind,
            older_relation=finding.relation,
            is_tentative=finding.is_tentative,
            is_marked=self.is_marked,
            is_uncacheable=self.is_uncacheable,
            fullness=bytes([Fullness.UNKNOWN]) * len(self.entries),
        )


@dataclass
class Publisher:
    """What is there under which URL, and what fails."""

    pages: dict[str, Page]
    failing: dict[str, Failure] = field(default_factory=dict)

    def answer(self, url: str) -> Page | Failure:
        gone = Failure(slug="publisher-status", publisher_status=404)
        return self.failing.get(url) or self.pages.get(url) or gone

    def path(self, relation: str) -> list[str]:
        """The URLs along a relation, from the subscription document to where nothing can be had any more."""
        found, url = [], self.pages[FEED].links.get(relation)
        while url is not None and url not in found and isinstance(page := self.answer(url), Page):
            found.append(url)
            url = page.links.get(relation)
        return found


@dataclass
class Outcome:
    """What a refresh did."""

    asked: list[str] = field(default_factory=list)
    published: list[port.Publish] = field(default_factory=list)
    named: list[port.Intent] = field(default_factory=list)

    @property
    def publication(self) -> port.Publish:
        return self.published[-1]


def a_feed(**changes: Any) -> StoredFeed:
    """A feed of which nothing is published yet."""
    values: dict[str, Any] = {
        "id": 1,
        "url": FEED,
        "fetch_url": FEED,
        "moved_to": None,
        "moved_since": None,
        "moved_times": 0,
        "family": Family.ATOM,
        "kind": Kind.PLAIN,
        "state": State.LOADING,
        "is_walking": False,
        "revision": 0,
        "published_revision": 0,
        "notes": "[]",
        "digest": None,
        "collection": "{}",
        "first_seen_at": 0.0,
        "family_since": None,
    }
    return StoredFeed(**(values | changes))


class World:
    """One feed: its publisher, what is stored of it, and the time."""

    def __init__(self, publisher: Publisher, **settings: Any) -> None:
        self.publisher = publisher
        limits = WalkLimits(documents=200, bytes=10**9, entries=10**6)
        self.settings = Settings(**{"limits": limits, **settings})
        self.feed = a_feed()
        self.documents: dict[int, StoredDocument] = {}
        self.entries: dict[int, tuple[str, ...]] = {}
        self.missing: dict[str, Attempt] = {}
        self.failure: Attempt | None = None
        self.now = NOW

    @property
    def attached(self) -> list[StoredDocument]:
        """The documents of the feed in output order."""
        found = [each for each in self.documents.values() if each.rank is not None]
        return sorted(found, key=lambda each: (_ROLES[each.role], each.rank, each.id))

    @property
    def shape(self) -> list[tuple[Role, str]]:
        """The documents of the feed in output order, by what they are; remembered copies left out."""
        return [(each.role, each.url) for each in self.attached if each.role is not Role.MEMORY]

    def refresh(self, chance: random.Random, **asked: Any) -> Outcome:
        """Refresh the feed; fetches end in the order that chance gives them."""
        return _Driver(self, chance, RefreshRequest(**asked)).run()

    def cut_off(self, chance: random.Random, after: int) -> Outcome:
        """Begin to refresh the feed, and be killed after so many intents."""
        return _Driver(self, chance, RefreshRequest()).run(most=after)

    def ordered(self) -> tuple[StoredDocument, ...]:
        """All documents, the detached ones last."""
        detached = [each for each in self.documents.values() if each.rank is None]
        return (*self.attached, *detached)

    def put(self, url: str, page: Page, role: Role, rank: int | None, **changes: Any) -> int:
        same = (each.id for each in self.documents.values() if (each.url, each.role) == (url, role))
        number = next(same, max(self.documents, default=0) + 1)
        arrival = page.fresh(url).arrival
        self.documents[number] = StoredDocument(
            id=number,
            url=url,
            final_url=url,
            role=role,
            rank=rank,
            detached_at=None,
            family=page.family,
            site_id=arrival.site_id,
            links=page.links,
            is_marked=page.is_marked,
            is_uncacheable=page.is_uncacheable,
            digest=arrival.digest,
            etag=None,
            last_modified=None,
            fetched_at=self.now,
            checked_at=self.now,
            body_bytes=arrival.body_bytes,
            entries=arrival.entries,
            updated_at=None,
            marks="{}",
            found_by="",
            found_in=0,
            **{"parser_version": PARSER_VERSION, "is_settled": False, "brought_news": True, **changes},
        )
        self.entries[number] = page.entries
        self.grow()
        return number

    def change(self, number: int, **changes: Any) -> None:
        self.documents[number] = dataclasses.replace(self.documents[number], **changes)
        self.grow()

    def grow(self) -> None:
        self.feed = dataclasses.replace(self.feed, revision=self.feed.revision + 1)

    def known(self, identities: Sequence[EntryId]) -> dict[EntryId, float | None]:
        live = {entry_id(name) for each in self.attached for name in self.entries[each.id]}
        return {identity: None for identity in identities if identity in live}

    def live(self, identities: Sequence[EntryId]) -> dict[EntryId, Copy]:
        """The copy nearest the subscription document: none has a date here."""
        found: dict[EntryId, Copy] = {}
        for each in self.attached:
            for ordinal, name in enumerate(self.entries[each.id]):
                if each.role is not Role.MEMORY and entry_id(name) in identities:
                    copy = Copy(each.id, None, each.role, each.rank or 0, ordinal, None, self.now)
                    found.setdefault(entry_id(name), copy)
        return found


class _Driver:
    """Carries out one refresh."""

    def __init__(self, world: World, chance: random.Random, request: RefreshRequest) -> None:
        self.world = world
        self.chance = chance
        self.told = Outcome()
        self.pending: dict[str, StoredDocument | None] = {}
        self.heads: list[tuple[str, str]] = []
        """Documents under way whose head has not come, each with the relation that is looked for."""
        self.held: dict[str, Page] = {}
        given = Given(
            feed=world.feed,
            missing=dict(world.missing),
            failure=world.failure,
            settings=world.settings,
            request=request,
            site_of=site_of,
            clock=Clock(world.now),
        )
        self.decision = Decision(given, world.ordered())

    def run(self, most: int = 1 << 20) -> Outcome:
        while len(self.told.named) < most:
            intent = self.decision.intent
            self.told.named.append(intent)
            if isinstance(intent, port.Done | port.GiveUp):
                assert not self.pending, "fetches go on behind the end"
                assert not self.held, "what came was neither put nor dropped"
                return self.told
            if (meanwhile := self.decision.meanwhile()) is not None:
                assert meanwhile.state is State.LOADING
            self.decision.advance(self.carry_out(intent), now=self.world.now)
        return self.told

    def carry_out(self, intent: port.Task) -> Event:
        match intent:
            case port.AskSubscription(url=url, stored=stored):
                return self.ask(url, stored)
            case port.StartTimer() | port.Fetch() | port.Wait() | port.Drop() | port.StopFetching():
                return self.fetch(intent)
            case port.ReadBodiesAgain() | port.ReadDocuments() | port.ReadKnown() | port.ReadEntries():
                return self.look(intent)
            case port.NoteReply() | port.NoteFailure() | port.Touch() | port.NoteCollection():
                self.remark(intent)
            case port.BeginWalk():  # it waits for a turn
                self.foresee()
                self.world.feed = dataclasses.replace(self.world.feed, is_walking=True)
            case port.Rest() | port.EndWalk() | port.PauseHost():
                pass
            case port.Publish():
                self.publish(intent)
            case _:
                return self.change(intent)
        return CarriedOut()

    def fetch(self, intent: port.Fetching) -> Event:
        match intent:
            case port.Fetch():
                self.begin(intent)
            case port.Wait():
                return self.wait()
            case port.StopFetching():
                self.pending.clear()
            case port.Drop(url):
                del self.held[url]
            case port.StartTimer():
                pass
            case _:
                assert_never(intent)
        return CarriedOut()

    def look(self, intent: port.Look) -> Event:
        match intent:
            case port.ReadBodiesAgain():
                return ReadAgain(has_changed=False)
            case port.ReadDocuments():
                return DocumentsRead(self.world.ordered())
            case port.ReadKnown(identities):
                return KnownRead(self.world.known(identities), self.world.live(identities))
            case port.ReadEntries(document):
                return EntriesRead(tuple((entry_id(each), None) for each in self.world.entries[document]))
            case _:
                assert_never(intent)

    def remark(self, intent: port.Remark) -> None:
        world = self.world
        match intent:
            case port.NoteReply():
                world.failure = None
                self.held.clear()
            case port.NoteFailure():
                world.failure = intent.failure
            case port.Touch(document=document, is_settled=is_settled):
                row = world.documents[document]
                is_final = row.is_settled if is_settled is None else is_settled
                touched = dataclasses.replace(row, checked_at=world.now, is_settled=is_final)
                world.documents[document] = touched
            case port.NoteCollection(collection):
                world.feed = dataclasses.replace(world.feed, collection=collection)
            case _:
                assert_never(intent)

    def change(self, intent: port.Change) -> Event:
        world = self.world
        match intent:
            case port.StoreSubscription():
                self.store_subscription(intent)
            case port.Put():
                return Stored(self.put(intent))
            case port.Attach(document, rank):
                assert world.documents[document].rank is None
                world.change(document, rank=rank, detached_at=None)
            case port.Detach(documents, _):
                for number in documents:
                    world.change(number, rank=None, detached_at=world.now)
            case port.Reorder(ranks):
                for number, rank in ranks.items():
                    world.change(number, rank=rank)
            case port.SetKind(kind):
                world.feed = dataclasses.replace(world.feed, kind=kind)
            case _:
                assert_never(intent)
        return CarriedOut()

    def put(self, intent: port.Put) -> int:
        return self.world.put(
            intent.stored_url,
            self.held.pop(intent.url),
            intent.role,
            intent.rank,
            is_settled=intent.is_settled,
            brought_news=intent.brought_news,
        )

    def store_subscription(self, intent: port.StoreSubscription) -> None:
        world = self.world
        for number in intent.detached:
            world.change(number, rank=None, detached_at=world.now)
        if intent.remembers is not None:
            self.remember(intent.remembers)
        world.put(FEED, self.held.pop(FEED), Role.SUBSCRIPTION, 0)
        world.feed = dataclasses.replace(world.feed, kind=intent.kind, family=intent.family)

    def remember(self, old: StoredDocument) -> None:
        world = self.world
        kept = set(self.held[FEED].entries)
        left = tuple(name for name in world.entries[old.id] if name not in kept)
        if left:
            memories = [each for each in world.documents.values() if each.role is Role.MEMORY]
            number = len(memories) + 1
            world.put(f"{MEMORY}{number}", Page(entries=left, family=old.family), Role.MEMORY, -number)

    def publish(self, intent: port.Publish) -> None:
        world = self.world
        self.told.published.append(intent)
        if intent.missing is not None:
            world.missing = {attempt.url: attempt for attempt in intent.missing}
        world.feed = dataclasses.replace(
            world.feed,
            state=intent.state,
            is_walking=intent.is_walking,
            published_revision=world.feed.revision,
            digest=b"published",
            notes=str([note.as_dict() for note in intent.notes]).replace("'", '"'),
        )

    def ask(self, url: str, stored: StoredDocument | None) -> Event:
        self.told.asked.append(url)
        reply = Reply(url=url, permanent_url=None, headers={})
        match self.world.publisher.answer(url):
            case Failure() as failure:
                return SubscriptionFailed(failure=failure)
            case page:
                fresh = page.fresh(url)
                if is_validated(stored) and stored.digest == fresh.arrival.digest:
                    return SubscriptionUnchanged(reply=reply)
                self.held[url] = page
                return SubscriptionCame(url=url, reply=reply, fresh=fresh)

    def begin(self, intent: port.Fetch) -> None:
        assert intent.url not in self.pending
        self.told.asked.append(intent.url)
        self.pending[intent.url] = intent.stored
        self.heads.append((intent.url, intent.relation))
        self.foresee()

    def foresee(self) -> None:
        """Some of the documents under way have come as far as their heads."""
        heads, self.heads = self.heads, []
        for url, relation in heads:
            page = self.world.publisher.answer(url) if url in self.pending else None
            if not isinstance(page, Page):
                continue
            if self.chance.random() < 0.5:
                self.heads.append((url, relation))
            elif (older := page.links.get(relation)) is not None:
                for early in self.decision.predicted(url, older):
                    self.begin(early)

    def wait(self) -> Event:
        url = self.chance.choice(sorted(self.pending))
        stored = self.pending.pop(url)
        match self.world.publisher.answer(url):
            case Failure() as failure:
                return Failed(url, failure)
            case page:
                fresh = page.fresh(url)
                if is_validated(stored) and stored.digest == fresh.arrival.digest:
                    return Confirmed(url)
                self.held[url] = page
                return Arrived(url, fresh)


def is_validated(stored: StoredDocument | None) -> TypeGuard[StoredDocument]:
    """Whether there is anything to ask with whether it has changed: an archive's copy has no validators."""
    return stored is not None and not stored.memento


def asked_twice(asked: Sequence[str]) -> list[str]:
    """The documents that were asked for more than once."""
    keys = [document_key(url) for url in asked]
    return [key for key in set(keys) if keys.count(key) > 1]


def incremental(links: Mapping[str, str]) -> dict[str, str]:
    """Links together with the word that earlier entries are part of the feed."""
    return {**links, FH_INCREMENTAL: "true"}
