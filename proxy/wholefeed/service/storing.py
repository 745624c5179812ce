"""Keep in the store what a decision wants kept, and look there for what it wants to know.

    storage = FeedStorage(store, work, feed.id, now=time.time)      # for one refresh
    beginning = await storage.begin(is_new=False)                   # what the decision starts from
    event = await storage.change(intent, fetches.take)              # or `look`, or `remark`
    row = await storage.publish(publication, revision=feed.revision)

All that is changed goes through one place, in which the remarks made before are written too, in the same
transaction. The functions behind `FeedStorage` run in the thread of a database connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, assert_never

from wholefeed.core.compose.segments import Placed
from wholefeed.core.facts import DocumentFacts, PackedKeys
from wholefeed.core.links import updated_links
from wholefeed.core.model import EntryId, Role, Tombstone
from wholefeed.core.refresh import port
from wholefeed.core.refresh.port import (
    Attempt,
    CarriedOut,
    DocumentsRead,
    EntriesRead,
    Event,
    KnownRead,
    Progress,
    ReadAgain,
    ReadKnown,
    Stored,
    StoredDocument,
)
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.fetch.base import Fetched
from wholefeed.service.documents import (
    ANY,
    FreshDocuments,
    Leaving,
    Put,
    at_hand,
    coded,
    documents_to_remember,
    new_document,
    reparse,
    returning,
)
from wholefeed.service.memory import Beginning, Memory
from wholefeed.service.sharing_port import Fence
from wholefeed.service.sources import Obtained, Subscription, Work
from wholefeed.store.base import Database, changed
from wholefeed.store.rows import (
    DocumentChanges,
    DocumentRow,
    Failures,
    FeedChanges,
    FeedRow,
    NewDocument,
    NewSegment,
    Publication,
    SegmentRow,
    Snapshot,
)
from wholefeed.store.store import Store
from wholefeed.store.tables import documents, failures, feeds, identities, segments
from wholefeed.store.tables import live as live_table
from wholefeed.store.tables.documents import live_counts, live_ordinals

_R = TypeVar("_R")
_T = TypeVar("_T")


class FeedStorage:
    """What is stored of one feed, for one refresh. All of it raises `StoreError`.

    Remarks are written together with the next change, in the order in which they were made, and with `flush`.

    Args:
        store: Where the feed is stored.
        work: Where documents are worked on.
        feed_id: Its number.
        now: Epoch seconds.
        memory: What is held of feeds.
        fence: What each transaction begins with, where others write to the store, too.
    """

    def __init__(
        self,
        store: Store,
        work: Work,
        feed_id: int,
        *,
        now: Callable[[], float],
        memory: Memory,
        fence: Fence | None = None,
    ) -> None:
        self._store = store
        self._memory = memory
        self._fence = fence
        self.work = work
        self.feed_id = feed_id
        self._now = now
        self._remarks: list[tuple[port.Remark, float]] = []  # and when they were made
        self._feed: FeedRow | None = None  # as it is stored, if that is known and nothing was written since
        self._rows: list[DocumentRow] | None = None
        self._material: Material | None = None  # if it was looked at since it was changed last
        self.fetch_url: str | None = None
        """Where the subscription document is asked for, if that was found to be elsewhere."""
        self.fresh = FreshDocuments()
        """What was put in this refresh."""
        self.gathered = Gathered()
        """What is to be put together with what comes soon; whoever looks or publishes has it put first."""
        self.found: Subscription | None = None
        """The subscription document that has come, until it is stored or known to be."""

    async def begin(self, *, is_new: bool) -> Beginning:
        """Return what a decision starts from; of a feed that was made just now nothing is stored."""
        found = Beginning([], Failures((), None)) if is_new else await self._beginning()
        self._rows = found.rows
        return found

    async def _beginning(self) -> Beginning:
        memory, feed_id = self._memory, self.feed_id
        if self._store.is_shared:  # what others change is not held
            return await self.read(partial(_read_beginning, feed=feed_id))
        if (held := memory.beginning(feed_id)) is not None:
            self._feed, found = held
            return found
        since = memory.generation
        # The row, too: whoever began the refresh may have it from before the last one.
        self._feed, found = await self.read(
            lambda db: (feeds.find(db, feed_id), _read_beginning(db, feed_id))
        )
        if not memory.has_changed(feed_id, since):
            memory.keep_beginning(feed_id, found)
        return found

    async def receive(self, found: Subscription) -> Subscription:
        """Hold the subscription document that has come until it is stored; return it as it counts here."""
        obtained = await self.identified(found.obtained)
        self.found = found if obtained is found.obtained else replace(found, obtained=obtained)
        return self.found

    async def updated(self, stored: port.StoredDocument | None, fetched: Fetched) -> Fetched:
        """Return a stored document as it comes with the Link fields of a 304, where they lead elsewhere.

        RFC 9111, sections 3.2 and 4.3.4: what they say takes the place of what it came with. Else the 304.
        """
        if stored is None or not fetched.not_modified or fetched.is_met:
            return fetched
        links = updated_links(fetched.links, fetched.final_url, stored.links)
        if links is None:
            return fetched
        media_type, body = await self.read(partial(_stored_answer, document=stored.id))
        kept = {"etag": stored.etag, "last-modified": stored.last_modified, "content-length": str(len(body))}
        if stored.is_uncacheable and stored.role is not Role.SUBSCRIPTION:
            kept["cache-control"] = "no-cache"
        headers = {name: value for name, value in kept.items() if value is not None} | dict(fetched.headers)
        return replace(
            fetched, not_modified=False, body=body, media_type=media_type, headers=headers, links=links
        )

    async def identified(self, obtained: Obtained, beside: Iterable[Obtained] = ()) -> Obtained:
        """Return a document that has come, its entries identified by what is ambiguous in the feed (R9).

        Args:
            obtained: The document.
            beside: Others that have come, and were not handed over yet.
        """
        facts = obtained.read.facts
        if not facts.keys:
            return obtained
        others = [*(each.read.facts for each in beside), *self.gathered.facts]
        own = facts.ambiguous.union(*(each.ambiguous for each in others))
        besides = [each.keys for each in others]
        look = partial(_identified_facts, feed=self.feed_id, facts=facts, own=own, besides=besides)
        return replace(obtained, read=replace(obtained.read, facts=await self.read(look)))

    async def change(self, intent: port.Change, take: Callable[[str], Obtained]) -> Event:
        """Change what the feed is made of, in one transaction; `take` hands over what has come."""
        if isinstance(intent, port.Put) and intent.may_wait:
            return Stored(self.gathered.add(intent, take(intent.url)))
        await self.put_gathered()
        number = self.gathered.number
        match intent:
            case port.StoreSubscription():
                await self._put_subscription(intent)
            case port.Put():
                return Stored(await self._put(intent, take(intent.url)))
            case port.Attach(document, rank):
                await self._arrange({number(document): rank})
            case port.Detach(leaving, is_withdrawn):
                await self._arrange({}, tuple(map(number, leaving)), is_withdrawn=is_withdrawn)
            case port.Reorder(ranks):
                await self._arrange({number(document): rank for document, rank in ranks.items()})
            case port.SetKind(kind):
                await self.write(partial(feeds.update, feed=self.feed_id, changes={"kind": kind}))
            case _:
                assert_never(intent)
        return CarriedOut()

    async def _put_subscription(self, intent: port.StoreSubscription) -> None:
        found, now = self.found, self._now()
        assert found is not None, "it has come"
        self.found = None
        rows = await self._documents()
        changes: FeedChanges = {"kind": intent.kind, "family": intent.family}
        if intent.changes_family:
            changes["family_since"] = now
        old = _row_of(intent.remembers, rows)
        new = [new_document(found.document_url, found.obtained, role=Role.SUBSCRIPTION, rank=0)]
        leaving = None if old is None else Leaving(rows, old, found.obtained, now, self._memory.parsed)
        if leaving is not None and not leaving.is_at_hand:
            new += await documents_to_remember(self._store, self.work, leaving)
        await self._put_all(
            _Putting(
                new,
                now,
                ranks=returning(rows, intent.family) if intent.changes_family else {},
                detached=intent.detached,
                changes=self._other_than_stored(changes),
                leaving=leaving,
                looks=True,
            )
        )

    def _other_than_stored(self, changes: FeedChanges) -> FeedChanges | None:
        """Return changes of the feed's columns; None if its row is known to say that already."""
        feed = self._feed
        is_said = feed is not None and all(getattr(feed, name) == value for name, value in changes.items())
        return None if is_said else changes

    async def _put(self, intent: port.Put, obtained: Obtained) -> int:
        now = self._now()
        new, leaving = [_described(intent, obtained)], None
        if intent.remembers is not None:
            rows = await self._documents()
            old = _row_of(intent.remembers, rows)
            assert old is not None, "nothing else changes the documents of a feed meanwhile"
            leaving = Leaving(rows, old, obtained, now, is_page=True)
            new += await documents_to_remember(self._store, self.work, leaving)
        identifier, *_ = await self._put_all(_Putting(new, now, leaving=leaving))
        return identifier

    async def _put_all(self, putting: _Putting) -> list[int]:
        new = await coded([each.new for each in putting.puts])
        work = partial(_put_and_look, feed_id=self.feed_id, putting=putting, new=new)
        more = putting.looks  # at what is to be published next
        was = await self.write(work, row=_feed_of, comes_more=more)
        self._rows, self._material = was.rows, was.material
        parsed = self._memory.parsed
        if putting.leaving is not None:
            parsed.drop(putting.leaving.replaced)
        for number, put in zip(was.numbers, was.puts, strict=True):
            self.fresh.keep(number, put.fresh)
            parsed.keep(put)
        return was.numbers

    async def _arrange(
        self, ranks: Mapping[int, int], detached: tuple[int, ...] = (), *, is_withdrawn: bool = False
    ) -> None:
        await self.write(
            partial(
                documents.arrange,
                feed=self.feed_id,
                ranks=ranks,
                detached=detached,
                now=self._now(),
                is_withdrawn=is_withdrawn,
            )
        )

    async def put_gathered(self) -> None:
        """Put what waits for more, in one transaction; what cannot be put waits on."""
        if self.gathered.are_waiting:
            putting = _Putting(self.gathered.take(), self._now())
            try:
                self.gathered.stored(await self._put_all(putting))
            except (StoreError, OverloadedError):  # who publishes meanwhile goes on all the same
                self.gathered.give_back()
                raise

    def remark(self, intent: port.Remark) -> Event:
        """Note something that changes nothing of what the feed is made of."""
        if isinstance(intent, port.NoteReply):
            self.found = None  # what has not changed is not stored again
            self.fetch_url = intent.fetch_url or self.fetch_url
        self._remarks.append((intent, self._now()))
        return CarriedOut()

    async def look(self, intent: port.Look, waiting: Callable[[str], Obtained | None]) -> Event:
        """Look for what a decision wants to know; `waiting` gives what has come and is not stored yet."""
        match intent:
            case port.ReadBodiesAgain():
                rows = await self._documents()
                has_changed = await reparse(
                    self._store, self.write, self.work, self.feed_id, rows, self._now()
                )
                self._rows = None if has_changed else rows
                self._material = None if has_changed else self._material
                return ReadAgain(has_changed)
            case port.ReadDocuments():
                return DocumentsRead(tuple(await self._documents()))
            case port.ReadEntries(document):
                return EntriesRead(
                    tuple(await self.read(partial(documents.dated_entries, document=document)))
                )
            case port.ReadKnown(url=url):
                come = waiting(url)
                facts = None if come is None else come.read.facts
                return await self.read(
                    partial(_known_entries, feed=self.feed_id, wanted=intent, waiting=facts)
                )
            case _:
                assert_never(intent)

    async def _documents(self) -> list[DocumentRow]:
        """Return the documents; nobody else changes them meanwhile."""
        if self._rows is None:
            self._rows = await self.read(partial(documents.list_all, feed=self.feed_id))
        return self._rows

    async def read(self, work: Callable[[Database], _T]) -> _T:
        """Look at what is stored of the feed, without the remarks that are not written yet."""
        return await self._store.read(work, feed=self.feed_id)

    async def material(self) -> Material | None:
        """Return what a publication is made of, once; None: the feed has no subscription document."""
        material, self._material = self._material, None
        if material is not None:
            return material
        fresh = self.fresh.at_hand()
        return await self.read(
            lambda db: _read_material(db, self.feed_id, fresh, documents.list_all(db, self.feed_id))
        )

    async def publish(self, publication: Publication, *, revision: int) -> FeedRow | None:
        """Replace what is sent of the feed; None when its documents have changed since `revision`."""
        store, memory, feed_id, now = self._store, self._memory, self.feed_id, self._now()
        touches = any(_touches_document(intent) for intent, _ in self._remarks)
        rows = None if touches else self._rows  # to publish a feed changes none
        looks_again = publication.documents <= _MOST_READ and not store.is_shared

        def work(db: Database) -> tuple[Snapshot, Beginning | None] | None:
            row = segments.publish(db, feed_id, publication, revision=revision, pins=store.pins, now=now)
            if row is None:
                return None
            return segments.shown(db, row), _read_beginning(db, feed_id, rows) if looks_again else None

        def tell(found: tuple[Snapshot, Beginning | None] | None) -> None:
            if found is None:
                memory.drop(feed_id)
                return
            snapshot, beginning = found
            pairs = zip(snapshot.segments, publication.segments, strict=True)
            memory.replace(
                snapshot, {row.id: new.sealed.block for row, new in pairs if isinstance(new, NewSegment)}
            )
            if beginning is not None:
                memory.keep_beginning(feed_id, beginning)

        found = await self._write(work, tell)
        if found is None:
            return None
        await store.tell_others(feed_id)
        return found[0].feed

    async def flush(self) -> None:
        """Write the remarks that were made: of what is sent of the feed they change no more than its row."""
        if not self._remarks:
            return
        (intent, _), *others = self._remarks
        checked = _only_checked(intent, self._feed) if self._feed is not None and not others else None
        if checked is not None and self._store.note_unchanged(*checked):
            self._remarks.clear()
            self._memory.renew(checked[0], is_checked=True)
        else:
            await self.write(lambda _: None)

    async def write(
        self,
        work: Callable[[Database], _T],
        *,
        row: Callable[[_T], FeedRow | None] = lambda _: None,
        comes_more: bool = False,
    ) -> _T:
        """Change what is stored and not sent yet, and write the remarks made before, in one transaction.

        Args:
            work: Changes it.
            row: Gives the feed's row where that has been read; else it is.
            comes_more: As `Store.write` has it.
        """

        def both(db: Database) -> tuple[_T, FeedRow]:
            result = work(db)
            return result, row(result) or feeds.require(db, self.feed_id)

        def tell(found: tuple[_T, FeedRow]) -> None:
            self._memory.renew(found[1])

        result, _ = await self._write(both, tell, comes_more=comes_more)
        return result

    async def _write(
        self, work: Callable[[Database], _T], tell: Callable[[_T], None], *, comes_more: bool = False
    ) -> _T:
        remarks, self._remarks = self._remarks, []
        self._rows = self._material = self._feed = None

        def with_remarks(db: Database) -> _T:
            if self._fence is not None:
                self._fence(db)
            for intent, now in remarks:
                _written(intent, self.feed_id, now)(db)
            return work(db)

        try:
            return await self._store.write(with_remarks, feed=self.feed_id, comes_more=comes_more, tell=tell)
        except Exception:  # they are not written either; whoever goes on all the same writes them next
            self._remarks = remarks + self._remarks
            raise


# What a refresh starts from

_MOST_READ: Final = 64
"""Documents of a feed that are read as it is published, for its next refresh."""


def _read_beginning(db: Database, feed: int, rows: list[DocumentRow] | None = None) -> Beginning:
    """Look at what a refresh starts from; `rows` are all documents, where they are known."""
    rows = documents.list_all(db, feed) if rows is None else rows
    return Beginning(rows, failures.read(db, feed))


def _only_checked(intent: port.Remark, feed: FeedRow) -> tuple[FeedRow, int] | None:
    """Return the row that a remark makes of the feed's, and the number of the document that has not changed.

    None: it says more than until when the feed is fresh.
    """
    if not isinstance(intent, port.NoteReply) or intent.unchanged is None or feed.is_stale:
        return None
    if intent.fetch_url is not None or intent.move is not None:
        return None
    if intent.is_private != feed.is_private:
        return None
    cache_control, expires = intent.cache_fields
    row = changed(
        feed,
        checked_at=intent.checked_at,
        fresh_until=intent.fresh_until,
        cache_control=cache_control,
        expires=expires,
    )
    return row, intent.unchanged


# Documents that wait to be stored together

MOST_TOGETHER: Final = 16
_MOST_BYTES: Final = 3 << 19
LONGEST_SECONDS: Final = 0.1
"""So long the first of them waits. A crash loses as much, and a publisher is asked for it again."""


class Gathered:
    """Documents of a walk that have come one soon after the other, until they are stored in one transaction.

        number = gathered.add(intent, obtained)     # below 0: a stand-in
        puts = gathered.take()                      # to be stored now
        gathered.stored(numbers)                    # or `give_back`
        gathered.number(number)                     # what it has become

    Identities are hashes: the entries of a document change as many pages of their index as there are entries,
    and those of sixteen documents little more. Who walks alone waits for the disk once for all of them.
    """

    def __init__(self) -> None:
        self._puts: list[_Waiting] = []
        self._leaving: list[_Waiting] = []
        """Those that are being stored."""
        self._since = 0.0
        self._given = 0
        self._numbers: dict[int, int] = {}
        """What stand-ins have become."""

    def __len__(self) -> int:
        """How many documents are not known to be stored yet."""
        return len(self._leaving) + len(self._puts)

    @property
    def are_waiting(self) -> bool:
        """Whether there are any that nobody is storing."""
        return bool(self._puts)

    @property
    def facts(self) -> list[DocumentFacts]:
        return [each.facts for each in (*self._leaving, *self._puts)]

    def left_out_of(self, progress: Progress) -> Progress:
        """Return the progress of a walk without what is not known to be stored yet."""
        if not (entries := [len(each.entries) for each in self.facts]):
            return progress
        documents = progress.documents - len(entries)
        return replace(progress, documents=documents, entries=progress.entries - sum(entries))

    @property
    def left_seconds(self) -> float:
        """For how long they may wait for others."""
        size_bytes = sum(len(each.put.new.body) for each in self._puts)
        if len(self._puts) >= MOST_TOGETHER or size_bytes >= _MOST_BYTES:
            return 0.0
        return max(0.0, self._since + LONGEST_SECONDS - time.monotonic())

    def add(self, intent: port.Put, obtained: Obtained) -> int:
        """Take in a document that nothing is stored of; return a stand-in for its number."""
        if not self._puts:
            self._since = time.monotonic()
        self._given -= 1
        self._puts.append(_Waiting(self._given, _described(intent, obtained), obtained.read.facts))
        return self._given

    def take(self) -> list[Put]:
        """Hand over what waits, in the order in which it came; nobody else may before that is stored."""
        self._leaving, self._puts = self._puts, []
        return [each.put for each in self._leaving]

    def stored(self, numbers: Sequence[int]) -> None:
        """Take in what they are stored under."""
        given = [each.number for each in self._leaving]
        self._numbers.update(zip(given, numbers, strict=True))
        self._leaving = []

    def give_back(self) -> None:
        """Let them wait again: they could not be stored."""
        self._leaving, self._puts = [], [*self._leaving, *self._puts]

    def number(self, given: int) -> int:
        """Return what a document is stored under, whose number or stand-in that is."""
        return self._numbers.get(given, given)


class _Waiting(NamedTuple):
    number: int
    put: Put
    facts: DocumentFacts


def _described(intent: port.Put, obtained: Obtained) -> Put:
    return new_document(
        intent.stored_url,
        obtained,
        role=intent.role,
        rank=intent.rank,
        is_settled=intent.is_settled,
        brought_news=intent.brought_news,
        found_by=intent.found_by,
        found_in=intent.found_in,
    )


# Remarks


def _written(intent: port.Remark, feed: int, now: float) -> Callable[[Database], Any]:
    """Return what writes a remark: it changes nothing of what the feed is made of."""
    match intent:
        case port.NoteReply():
            return partial(_note_reply, feed=feed, intent=intent)
        case port.NoteFailure(failure=failure, failed_at=failed_at, fresh_until=fresh_until):
            changes: FeedChanges = {"is_stale": True, "failed_at": failed_at, "fresh_until": fresh_until}
            if failure is None:
                return partial(feeds.update, feed=feed, changes=changes)
            return partial(failures.note_refetch, feed=feed, failure=failure, changes=changes)
        case port.Touch(document=document):
            touched: DocumentChanges = {"checked_at": now}
            if intent.is_settled is not None:
                touched["is_settled"] = intent.is_settled
            if intent.is_uncacheable is not None:
                touched["is_uncacheable"] = intent.is_uncacheable
            if intent.found_in is not None:
                touched["found_in"] = intent.found_in
            return partial(_touch, feed=feed, document=document, changes=touched)
        case port.NoteCollection(collection):
            known: FeedChanges = {"collection": collection}
            return partial(feeds.update, feed=feed, changes=known)
        case _:
            assert_never(intent)


def _stored_answer(db: Database, document: int) -> tuple[str, bytes]:
    """Return the media type and the body of a stored document."""
    return documents.read_media_type(db, document), documents.read_body(db, document)


def _touches_document(intent: port.Remark) -> bool:
    is_said = isinstance(intent, port.NoteReply) and intent.unchanged is not None
    return is_said or isinstance(intent, port.Touch)


def _note_reply(db: Database, feed: int, intent: port.NoteReply) -> None:
    changes: FeedChanges = {
        "is_stale": False,
        "checked_at": intent.checked_at,
        "failed_at": None,
        "fresh_until": intent.fresh_until,
        "is_private": intent.is_private,
        "cache_control": intent.cache_fields.cache_control,
        "expires": intent.cache_fields.expires,
    }
    if intent.fetch_url is not None:
        changes["fetch_url"] = intent.fetch_url
    if intent.move is not None:
        changes["moved_to"] = intent.move.target
        changes["moved_since"] = intent.move.since
        changes["moved_times"] = intent.move.times
    if intent.first_seen_at is not None:
        changes["first_seen_at"] = intent.first_seen_at
    if intent.family_since is not None:
        changes["family_since"] = intent.family_since
    failures.note_refetch(db, feed, None, changes)
    if intent.unchanged is not None:
        documents.touch(db, intent.unchanged, {"checked_at": intent.checked_at})


def _touch(db: Database, feed: int, document: int, changes: DocumentChanges) -> None:
    feeds.require_known(db, feed)  # of a feed that was forgotten meanwhile the store has lost nothing
    documents.touch(db, document, changes)


# What is stored of what a decision names


def _known_entries(
    db: Database, feed: int, wanted: ReadKnown, waiting: DocumentFacts | None = None
) -> KnownRead:
    """Look for the identities that a decision names.

    Args:
        db: The connection.
        feed: Its number.
        wanted: The identities.
        waiting: Their document. What was stored since it came may be unlike it: so its entries are looked for
            by what identifies them now, and told of by what the decision knows them by.
    """
    asked = wanted.identities
    present = _identified_now(db, feed, asked, waiting) if waiting and waiting.keys else asked
    known = _renamed(documents.known(db, feed, present, but=None), asked, present)
    if not wanted.with_copies:
        return KnownRead(known)
    served = _renamed(live_table.served(db, feed, present), asked, present)
    return KnownRead(known, served, live_table.subscription_updated_at(db, feed))


def _identified_now(
    db: Database, feed: int, asked: Sequence[EntryId], waiting: DocumentFacts
) -> Sequence[EntryId]:
    ambiguous = identities.ambiguous_with(db, feed, waiting.keys, waiting.ambiguous)
    present = list(asked)
    for ordinal, identity in waiting.keys.identities(ambiguous).items():
        present[ordinal] = identity
    return present


def _renamed(
    found: Mapping[EntryId, _T], asked: Sequence[EntryId], present: Sequence[EntryId]
) -> Mapping[EntryId, _T]:
    if asked is present:
        return found
    return {old: found[new] for old, new in zip(asked, present, strict=True) if new in found}


def _identified_facts(
    db: Database, feed: int, facts: DocumentFacts, own: Collection[EntryId], besides: Sequence[PackedKeys]
) -> DocumentFacts:
    """Return what was read of a document, its entries identified by what is ambiguous in the feed.

    Each entry is looked at in the connection's thread: they may be a hundred thousand.
    """
    found = identities.ambiguous_with(db, feed, facts.keys, own, besides)
    return facts if found == facts.ambiguous else facts.identified(found)


def _row_of(document: StoredDocument | None, rows: Sequence[DocumentRow]) -> DocumentRow | None:
    """Return the row of a document that a decision has named, with what the store alone knows of it."""
    return next((row for row in rows if document is not None and row.id == document.id), None)


# What one transaction puts, and what it looks at for what comes next


class _Putting(NamedTuple):
    """Documents that are put, and with them what changes of the chain and of the feed."""

    puts: Sequence[Put]
    now: float
    """Epoch seconds."""
    ranks: Mapping[int, int] = MappingProxyType({})
    """As for `documents.arrange`."""
    detached: tuple[int, ...] = ()
    """The same."""
    changes: FeedChanges | None = None
    """Columns of the feed."""
    leaving: Leaving | None = None
    """What leaves the document that the first one replaces; what is to be remembered of it is put, too."""
    looks: bool = False
    """Whether to look in the same trip at what a decision wants to know and publish next."""


class _WasPut(NamedTuple):
    numbers: list[int]
    """Of the documents."""
    puts: list[Put]
    """The same, those included that are remembered."""
    rows: list[DocumentRow] | None
    """All documents of the feed, and what a publication is made of: where that was asked for."""
    material: Material | None


def _put_and_look(db: Database, feed_id: int, putting: _Putting, new: Sequence[NewDocument]) -> _WasPut:
    """Put documents; `new` are those of `putting`, with large bodies encoded."""
    leaving, changes = putting.leaving, putting.changes or {}
    remembered = leaving.documents(db) if leaving is not None and leaving.is_at_hand else []
    puts = [*putting.puts, *remembered]
    coming = [*new, *(each.new for each in remembered)]
    if leaving is not None:
        coming[0] = leaving.judged(db, coming[0])
    numbers = documents.put_arranged(
        db, feed_id, coming, putting.ranks, putting.detached, changes, putting.now
    )
    if not putting.looks:
        return _WasPut(numbers, puts, None, None)
    fresh = {number: each.fresh for number, each in zip(numbers, puts, strict=True)}
    rows = documents.list_all(db, feed_id)
    return _WasPut(numbers, puts, rows, _read_material(db, feed_id, at_hand(fresh), rows))


def _feed_of(was: _WasPut) -> FeedRow | None:
    return None if was.material is None else was.material.feed


# What a publication is made of, as it is stored at one moment


class Material(NamedTuple):
    """What is stored of a feed, as far as a publication is made of it; all of one moment."""

    feed: FeedRow
    documents: list[DocumentRow]
    """The attached ones, in output order."""
    places: list[Placed]
    """Where they stand, in the same order."""
    deleted: list[Tombstone]
    missing: tuple[Attempt, ...]
    published: tuple[SegmentRow, ...]
    held: dict[int, ToRender]
    """Of the subscription document, and of others that are likely to be rendered."""
    is_collected: bool
    """Whether it has pages that an adapter asked for: then segments hold entries (R20)."""
    members: dict[int, bytes]
    """Of such segments, by number."""


_READ_AHEAD_BYTES: Final = 256 * 1024
"""Of the bodies that are likely to be rendered, read before it is known which are."""


def _read_material(
    db: Database, feed_id: int, at_hand: Mapping[int, int], documents: Sequence[DocumentRow]
) -> Material | None:
    """Read what a publication is made of; of what has changed, the bodies too where they are small.

    Args:
        db: The connection.
        feed_id: The feed.
        at_hand: As `FreshDocuments.at_hand`.
        documents: All of the feed, as they are stored at this moment.

    Returns:
        None when there is no subscription document.
    """
    feed = feeds.find(db, feed_id)
    places = segments.places(db, feed_id) if feed is not None else []
    rows = {row.id: row for row in documents if row.rank is not None}
    attached = [rows[place.document] for place in places]
    if feed is None or not attached or attached[0].role is not Role.SUBSCRIPTION:
        return None
    has_pages = is_collected(attached)
    wanted, room = [attached[0].id], _READ_AHEAD_BYTES
    for place, row in () if has_pages else zip(places, attached, strict=True):
        if (place.segment is None or not place.is_clean) and place.live_bytes and row is not attached[0]:
            room -= 0 if row.id in at_hand else row.body_bytes
            if room < 0:
                break
            wanted.append(row.id)
    published = segments.shown(db, feed)
    return Material(
        feed=feed,
        documents=attached,
        places=places,
        deleted=live_table.counting(db, feed_id),
        missing=published.missing,
        published=published.segments,
        held=read_to_render(db, wanted, at_hand),
        is_collected=has_pages,
        members=segments.members(db, feed_id) if has_pages else {},
    )


def is_collected(attached: Iterable[DocumentRow]) -> bool:
    """Whether pages that an adapter asked for (R26) are among documents, across which R20 sorts then."""
    return any(row.generated_at is not None for row in attached)


class ToRender(NamedTuple):
    """What was read to render a document."""

    live: Sequence[int]
    """The ordinals of its live entries."""
    body: bytes | None
    """None: it is at hand."""


def read_to_render(db: Database, wanted: Sequence[int], at_hand: Mapping[int, int]) -> dict[int, ToRender]:
    """Read what is needed of documents.

    Args:
        db: The connection.
        wanted: Their numbers.
        at_hand: As `FreshDocuments.at_hand`.
    """
    rendered = {document: at_hand[document] for document in wanted if at_hand.get(document, ANY) != ANY}
    counts = live_counts(db, rendered) if rendered else {}
    found = {
        document: ToRender(range(entries), None)
        for document, entries in rendered.items()
        if counts.get(document, 0) == entries
    }
    others = [document for document in wanted if document not in found]
    for document, live in live_ordinals(db, others).items() if others else ():
        is_at_hand = at_hand.get(document) == ANY
        found[document] = ToRender(live, None if is_at_hand else documents.read_body(db, document))
    return found
