"""The stored feed, as one refresh reads and changes it.

A lock separates the refresh from concurrent publication.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from wholefeed.core.model import EntryId, State
from wholefeed.core.notes import KINDS, HeadCut, IdsChanged, IdsUnstable
from wholefeed.core.refresh.arrivals import Placement
from wholefeed.core.refresh.asking import (
    Attach,
    Detach,
    Doubtful,
    NoteFeed,
    NoteListing,
    Publish,
    ReadEntries,
    Remove,
    Reread,
    Rows,
    SettleDoubtful,
    SettleIds,
    Touch,
    Unlist,
)
from wholefeed.core.refresh.stored import StoredDocument, subscription_of
from wholefeed.counts import NONE
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.known_entries import identify
from wholefeed.service.listed_documents import split_lists
from wholefeed.service.new_documents import new_document
from wholefeed.service.pending import PendingDocuments
from wholefeed.service.publishing import assemble
from wholefeed.service.sources import Obtained
from wholefeed.service.storing import FeedStorage
from wholefeed.store.rows import DocumentChanges, FeedChanges, FeedRow, NewDocument, NoteDict
from wholefeed.store.tables import document_table, feed_table, live

log = get_logger()


class FeedFile:
    """The stored part of one feed, and its pending documents."""

    def __init__(self, context: RefreshContext, feed: FeedRow) -> None:
        self._context = context
        self._feed = feed
        self._lock = asyncio.Lock()
        self.pending = PendingDocuments()
        self.storage = FeedStorage(
            context.store,
            context.source.work,
            feed.id,
            now=context.now,
            fence=context.sharing.fence(feed.id),
            memory=context.memory,
        )

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """Hold the lock for a change, after storing pending documents."""
        async with self._lock:
            await self.pending.put(self.storage)
            yield

    async def put_pending(self) -> None:
        if self.pending:
            async with self._lock:
                await self.pending.put(self.storage)

    async def identify(self, obtained: Obtained, beside: Iterable[Obtained] = ()) -> Obtained:
        """Identify a document's entries (R9, R36); `beside`: documents not stored yet."""
        others = [*(each.read.facts for each in beside), *self.pending.facts]
        return await identify(self.storage, obtained, others)

    async def keep(self, obtained: Obtained, placement: Placement) -> int:
        """Store a document; return its number, or a stand-in while pending."""
        document = new_document(obtained, placement)
        if placement.may_wait:
            return self.pending.add(document, obtained.read.facts)
        async with self.changing():
            if placement.remembers is not None:
                return await self.storage.put_remembering(document, obtained, placement.remembers)
            return (await self.storage.put([document]))[0]

    async def put(self, new: Sequence[NewDocument]) -> Sequence[int]:
        async with self.changing():
            return await self.storage.put(new)

    # The requests of a refresh that read

    async def rows(self, _request: Rows) -> Sequence[StoredDocument]:
        await self.put_pending()
        return await self.storage.documents()

    async def entries(self, request: ReadEntries) -> Sequence[tuple[EntryId, float | None]]:
        await self.put_pending()
        return await self.storage.read(partial(document_table.dated_entries, document=request.document))

    async def doubtful(self, _request: Doubtful) -> frozenset[EntryId]:
        return await self.storage.read(partial(live.find_doubtful, feed=self._feed.id))

    # The requests that change

    async def attach(self, request: Attach) -> None:
        async with self.changing():
            ranks = {self.pending.number(each): rank for each, rank in request.ranks.items()}
            await self.storage.write(
                document_table.arrange, ranks, (), self._context.now(), is_withdrawn=False
            )

    async def detach(self, request: Detach) -> None:
        async with self.changing():
            leaving = [self.pending.number(each) for each in request.documents]
            now, is_withdrawn = self._context.now(), request.is_withdrawn
            await self.storage.write(document_table.arrange, {}, leaving, now, is_withdrawn=is_withdrawn)

    async def remove(self, request: Remove) -> None:
        now = self._context.now()
        async with self.changing():
            if request.documents:
                await self.storage.write(document_table.remove, request.documents, now)
            if request.entries:
                await self.storage.write(live.forget, request.entries, now)

    async def settle_doubtful(self, _request: SettleDoubtful) -> None:
        async with self.changing():
            await self.storage.write(live.settle_doubtful)

    async def reread(self, _request: Reread) -> bool:
        return await self.storage.reread()

    async def settle_ids(self, request: SettleIds) -> bool:
        async with self.changing():
            return await self.storage.settle_ids(joins=request.joins)

    async def unlist(self, _request: Unlist) -> None:
        async with self.changing():
            rows = await self.storage.documents()
            own = subscription_of(rows)
            lists = [row for row in rows if row.is_listed]
            if own is None or not lists:
                return
            puts = await split_lists(self._context.source, self.storage, own, lists)
            if puts:
                await self.storage.put(puts)

    # The requests that note something, written with the next change

    async def touch(self, request: Touch) -> None:
        changes: DocumentChanges = {"checked_at": self._context.now()}
        if request.is_settled is not None:
            changes["is_settled"] = request.is_settled
        if request.is_uncacheable is not None:
            changes["is_uncacheable"] = request.is_uncacheable
        if request.found_in is not None:
            changes["found_in"] = request.found_in
        self.storage.touch(request.document, changes)

    async def note_feed(self, request: NoteFeed) -> None:
        changes: FeedChanges = {}
        if request.kind is not None:
            changes["kind"] = request.kind
        if request.collection is not None:
            changes["collection"] = request.collection
        if request.shifts is not None:
            changes["shifts"] = request.shifts
        self.storage.write_later(feed_table.update, changes)

    async def note_listing(self, request: NoteListing) -> None:
        self.storage.write_later(feed_table.update, {"listing": request.listing, "list_at": request.next_at})
        self._context.has_planned_look |= request.next_at is not None

    # Readers

    async def publish(self, request: Publish, *, is_walking: bool = False) -> None:
        """Publish; with `is_walking`, more documents may follow."""
        notes = request.notes or ()
        stated = [note.as_dict() for note in notes if not note.kind.is_of_reading]
        async with self.changing():
            feed = await assemble(
                self.storage,
                state=request.state,
                is_walking=is_walking,
                ending=request.ending,
                missing=request.missing,
                notes=_read_notes(self._feed) if request.notes is None else stated,
            )
        if feed is None:
            return
        if request.state is not State.LOADING:
            reasons = (note.slug for note in notes if note.partial)
            self._context.counts.count_publication(str(feed.state), next(reasons, NONE))
        log.info(
            "feed.published",
            feed=feed.id,
            state=str(feed.state),
            documents=feed.documents,
            entries=feed.entries,
            notes=sorted({note.code for note in notes}),
        )


def _read_notes(feed: FeedRow) -> list[NoteDict]:
    """Return the published notes, except those that each publication makes anew."""
    notes: list[NoteDict] = json.loads(feed.notes)
    anew = {HeadCut.code, IdsChanged.code, IdsUnstable.code}
    return [each for each in notes if not (KINDS[each["code"]].is_of_reading or each["code"] in anew)]
