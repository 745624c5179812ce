"""Keep in the store what a decision wants kept, and look there for what it wants to know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, assert_never

from wholefeed.core.refresh import intents
from wholefeed.core.refresh.events import CarriedOut, DocumentsRead, EntriesRead, Event, ReadAgain, Stored
from wholefeed.core.terms import Role
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.service.documents.fresh import FreshDocuments
from wholefeed.service.documents.memory import Leaving, documents_to_remember, returning
from wholefeed.service.documents.reparse import reparse
from wholefeed.service.documents.shapes import new_document
from wholefeed.service.documents.source import Obtained
from wholefeed.service.documents.subscription import Subscription
from wholefeed.service.documents.work import Work, coded
from wholefeed.service.refresh.beginnings import Beginning, Beginnings, Start
from wholefeed.service.refresh.gathering import Gathered, described
from wholefeed.service.refresh.known import identified_facts, known_entries, row_of
from wholefeed.service.refresh.material import Material, look
from wholefeed.service.refresh.putting import Putting, feed_of, put_and_look
from wholefeed.service.refresh.remarks import touches_document, written
from wholefeed.service.sharing.sharing import Fence
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentRow, FeedChanges, FeedRow, Publication
from wholefeed.store.store import Store
from wholefeed.store.tables import arrangement, documents, feeds, segments

_T = TypeVar("_T")
_R = TypeVar("_R")


class FeedStorage:
    """What is stored of one feed, for one refresh. All of it raises `StoreError`.

    Remarks are written together with the next change, in the order in which they were made, and with `flush`.

    Args:
        store: The store.
        work: Where documents are worked on.
        feed_id: The feed.
        now: Epoch seconds.
        fence: What each transaction begins with, where others write to the store, too.
        beginnings: What is held for the next refresh.
    """

    def __init__(
        self,
        store: Store,
        work: Work,
        feed_id: int,
        *,
        now: Callable[[], float],
        fence: Fence | None = None,
        beginnings: Beginnings | None = None,
    ) -> None:
        self._store = store
        self._start = Start(store, feed_id, beginnings)
        self._fence = fence
        self._parsed = None if beginnings is None else beginnings.parsed
        self.work = work
        self.feed_id = feed_id
        self._now = now
        self._remarks: list[Callable[[Database], Any]] = []
        self._touches = False  # whether one of them changes the row of a document
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
        found = await self._start.read(is_new=is_new)
        self._rows = found.rows
        return found

    async def receive(self, found: Subscription) -> Subscription:
        """Hold the subscription document that has come until it is stored; return it as it counts here."""
        obtained = await self.identified(found.obtained)
        self.found = found if obtained is found.obtained else replace(found, obtained=obtained)
        return self.found

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
        look = partial(identified_facts, feed=self.feed_id, facts=facts, own=own, besides=besides)
        return replace(obtained, read=replace(obtained.read, facts=await self.read(look)))

    async def change(self, intent: intents.Change, take: Callable[[str], Obtained]) -> Event:
        """Change what the feed is made of, in one transaction; `take` hands over what has come."""
        if isinstance(intent, intents.Put) and intent.may_wait:
            return Stored(self.gathered.add(intent, take(intent.url)))
        await self.put_gathered()
        number = self.gathered.number
        match intent:
            case intents.StoreSubscription():
                await self._put_subscription(intent)
            case intents.Put():
                return Stored(await self._put(intent, take(intent.url)))
            case intents.Attach(document, rank):
                await self._arrange({number(document): rank})
            case intents.Detach(leaving):
                await self._arrange({}, tuple(map(number, leaving)))
            case intents.Reorder(ranks):
                await self._arrange({number(document): rank for document, rank in ranks.items()})
            case intents.SetKind(kind):
                await self.write(partial(feeds.update, feed=self.feed_id, changes={"kind": kind}))
            case _:
                assert_never(intent)
        return CarriedOut()

    async def put_gathered(self) -> None:
        """Put what waits for more, in one transaction; what cannot be put waits on."""
        if self.gathered.are_waiting:
            putting = Putting(self.gathered.take(), self._now())
            try:
                self.gathered.stored(await self._put_all(putting))
            except (StoreError, OverloadedError):  # who publishes meanwhile goes on all the same
                self.gathered.give_back()
                raise

    def remark(self, intent: intents.Remark) -> Event:
        """Note something that changes nothing of what the feed is made of."""
        if isinstance(intent, intents.NoteReply):
            self.found = None  # what has not changed is not stored again
            self.fetch_url = intent.fetch_url or self.fetch_url
        self._touches = self._touches or touches_document(intent)
        self._start.remarked(intent, is_first=not self._remarks)
        self._remarks.append(written(intent, self.feed_id, self._now()))
        return CarriedOut()

    async def look(self, intent: intents.Look, waiting: Callable[[str], Obtained | None]) -> Event:
        """Look for what a decision wants to know; `waiting` gives what has come and is not stored yet."""
        match intent:
            case intents.ReadBodiesAgain():
                rows = await self._documents()
                has_changed = await reparse(
                    self._store, self.write, self.work, self.feed_id, rows, self._now()
                )
                self._rows = None if has_changed else rows
                self._material = None if has_changed else self._material
                return ReadAgain(has_changed)
            case intents.ReadDocuments():
                return DocumentsRead(tuple(await self._documents()))
            case intents.ReadEntries(document):
                return EntriesRead(
                    tuple(await self.read(partial(documents.dated_entries, document=document)))
                )
            case intents.ReadKnown(url=url):
                come = waiting(url)
                facts = None if come is None else come.read.facts
                return await self.read(
                    partial(known_entries, feed=self.feed_id, wanted=intent, waiting=facts)
                )
            case _:
                assert_never(intent)

    async def material(self) -> Material | None:
        """Return what a publication is made of, once; None: the feed has no subscription document."""
        material, self._material = self._material, None
        if material is not None:
            return material
        fresh = self.fresh.at_hand()
        return await self.read(lambda db: look(db, self.feed_id, fresh, documents.list_all(db, self.feed_id)))

    async def publish(self, publication: Publication, *, revision: int) -> FeedRow | None:
        """Replace what is sent of the feed; None when its documents have changed since `revision`."""
        pins, now = self._store.pins, self._now()
        rows = None if self._touches else self._rows  # to publish a feed changes none

        def work(db: Database) -> FeedRow | None:
            row = segments.publish(db, self.feed_id, publication, revision=revision, pins=pins, now=now)
            self._start.look_again(db, publication.documents, rows)
            return row

        write = partial(self._store.publish, publication=publication, feed=self.feed_id)
        row = await self._with_remarks(work, write)
        self._start.keep()
        return row

    async def flush(self) -> None:
        """Write the remarks that were made: of what is sent of the feed they change no more than its row."""
        if self._start.defer():
            self._remarks.clear()
        elif self._remarks:
            await self.write(lambda _: None)

    async def write(self, work: Callable[[Database], _T]) -> _T:
        """Change what is stored and not sent yet, and write the remarks made before, in one transaction."""
        return await self._with_remarks(work, partial(self._store.renew, feed=self.feed_id))

    async def _with_remarks(
        self,
        work: Callable[[Database], _T],
        write: Callable[[Callable[[Database], _T]], Awaitable[_R]],
    ) -> _R:
        remarks, self._remarks = self._remarks, []
        self._rows = self._material = None
        touched, self._touches = self._touches, False
        self._start.writes()

        def both(db: Database) -> _T:
            if self._fence is not None:
                self._fence(db)
            for remark in remarks:
                remark(db)
            return work(db)

        try:
            return await write(both)
        except Exception:  # they are not written either; whoever goes on all the same writes them next
            self._remarks = remarks + self._remarks
            self._touches = self._touches or touched
            raise

    async def read(self, work: Callable[[Database], _T]) -> _T:
        """Look at what is stored of the feed, without the remarks that are not written yet."""
        return await self._store.read(work, feed=self.feed_id)

    async def _documents(self) -> list[DocumentRow]:
        """Return the documents; nobody else changes them meanwhile."""
        if self._rows is None:
            self._rows = await self.read(partial(documents.list_all, feed=self.feed_id))
        return self._rows

    async def _arrange(self, ranks: Mapping[int, int], detached: tuple[int, ...] = ()) -> None:
        now = self._now()
        await self.write(
            partial(arrangement.arrange, feed=self.feed_id, ranks=ranks, detached=detached, now=now)
        )

    async def _put_subscription(self, intent: intents.StoreSubscription) -> None:
        found, now = self.found, self._now()
        assert found is not None, "it has come"
        self.found = None
        rows = await self._documents()
        changes: FeedChanges = {"kind": intent.kind, "family": intent.family}
        facts, old = found.obtained.read.facts, row_of(intent.remembers, rows)
        new = [new_document(found.document_url, found.obtained, role=Role.SUBSCRIPTION, rank=0)]
        leaving = None if old is None else Leaving(rows, old, facts, now, self._parsed)
        if leaving is not None and not leaving.is_at_hand:
            new += await documents_to_remember(self._store, self.work, leaving)
        await self._put_all(
            Putting(
                new,
                now,
                ranks=returning(rows, intent.family) if intent.brings_back_memory else {},
                detached=intent.detached,
                changes=self._start.other_than_stored(changes),
                leaving=leaving,
                looks=True,
            )
        )

    async def _put(self, intent: intents.Put, obtained: Obtained) -> int:
        now = self._now()
        new = [described(intent, obtained)]
        if intent.remembers is not None:
            rows = await self._documents()
            old = row_of(intent.remembers, rows)
            assert old is not None, "nothing else changes the documents of a feed meanwhile"
            leaving = Leaving(rows, old, obtained.read.facts, now, is_page=True)
            new += await documents_to_remember(self._store, self.work, leaving)
        identifier, *_ = await self._put_all(Putting(new, now))
        return identifier

    async def _put_all(self, putting: Putting) -> list[int]:
        new = await coded([each.new for each in putting.puts])
        work = partial(put_and_look, feed_id=self.feed_id, putting=putting, new=new)
        more = putting.looks  # at what is to be published next
        write = partial(self._store.renew, feed=self.feed_id, row=feed_of, comes_more=more)
        was = await self._with_remarks(work, write)
        self._rows, self._material = was.rows, was.material
        if self._parsed is not None and putting.leaving is not None:
            self._parsed.drop(putting.leaving.replaced)
        for number, put in zip(was.numbers, was.puts, strict=True):
            self.fresh.keep(number, put.fresh)
            if self._parsed is not None:
                self._parsed.keep(put)
        return was.numbers
