"""The store: what the service keeps, by the names of what it wants.

    async with Store.open(path) as store:
        feed = await store.create_feed(url, fetch_url=url, family=..., kind=..., now=now)
        await store.put_documents(feed.id, [NewDocument(...)], now=now)
        revision, documents = await store.placed(feed.id)
        await store.publish(feed.id, Publication(...), revision=revision, now=now)
        async with store.snapshot(feed.id) as snapshot:
            for segment in snapshot.segments:
                await store.block(segment.id)

Every method that changes something is one transaction, and whoever leaves does not stop it. All raise
`StoreError`, `StorageFullError` when the volume cannot be written, `OverloadedError` when the database
stays busy or is being closed, and `UnknownFeedError` when the feed was forgotten meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Self, TypeVar, Unpack

import aiosqlite

from wholefeed.core.compose.remember import CopyDates
from wholefeed.core.compose.segmenting import Placed
from wholefeed.core.model import EntryId, Tombstone
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.schedule.polling import Times
from wholefeed.core.terms import Family, Kind
from wholefeed.errors import StorageFullError
from wholefeed.store.rows import (
    DocumentChanges,
    DocumentRow,
    Failures,
    FeedChanges,
    FeedRow,
    NewDocument,
    Overview,
    Publication,
    Snapshot,
)
from wholefeed.store.sqlite.condition import Condition
from wholefeed.store.sqlite.connection import fetch_value, open_reader, open_writer, run, to_the_end
from wholefeed.store.sqlite.migrate import check_current, locked
from wholefeed.store.sqlite.read_pool import Readers
from wholefeed.store.sqlite.writer import Writer
from wholefeed.store.tables import arrangement as chain
from wholefeed.store.tables import bodies, documents, failures, feeds, segments, tombstones
from wholefeed.store.tables import outlook as polling
from wholefeed.store.tables.live import TEMPORARY_TABLES
from wholefeed.store.tables.pins import Pins
from wholefeed.store.upkeep import Upkeep

_T = TypeVar("_T")
READERS: Final = 4
_PROBE: Final = "REPLACE INTO probe (id, filler) VALUES (1, randomblob(16384))"


class Store:
    """The database of one process."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers
        self._pins = Pins()
        self._listeners: list[Callable[[int], None]] = []
        self.upkeep = Upkeep(writer, readers, self._pins)

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path | str, *, readers: int = READERS) -> AsyncIterator[Self]:
        """Open the database, whose schema must be current, and close it at exit.

        Raises:
            StoreUnusableError: The file is not this program's, not current, or in use by another process.
        """
        path = Path(path)
        async with AsyncExitStack() as stack:
            lock = locked(path)
            await asyncio.to_thread(lock.__enter__)
            stack.push(lock.__exit__)
            await asyncio.to_thread(check_current, path)
            condition = Condition()
            writer = Writer(await open_writer(path, TEMPORARY_TABLES), condition)
            stack.push_async_callback(to_the_end, writer.close)
            pool = Readers(condition)
            stack.push_async_callback(to_the_end, pool.close)
            for _ in range(readers):
                pool.add(await open_reader(path))
            store = cls(writer, pool)
            with suppress(StorageFullError):  # what is stored can still be read
                await store.upkeep.sweep()
            yield store

    async def check(self) -> None:
        """Make sure that the store can be read and written; a full volume is tried again.

        Raises:
            StorageFullError: The volume is full or read-only.
            StoreDamagedError: The file is damaged.
            StoreError: The database failed.
        """
        await self._readers.run(lambda db: fetch_value(db, "SELECT count(*) FROM probe"))
        self._writer.condition.require_sound()
        if self._writer.condition.is_full:
            await self._writer.run(lambda db: run(db, _PROBE))

    def on_change(self, listener: Callable[[int], None]) -> None:
        """Call a listener with the number of each feed that a commit has changed.

        It is called on the event loop right after the commit, before whoever asked for the change goes on. A
        URL that leads to another feed than before changes both.
        """
        self._listeners.append(listener)

    async def _change(
        self,
        work: Callable[[aiosqlite.Connection], Awaitable[_T]],
        changed: Callable[[_T], Iterable[int]],
    ) -> _T:
        def tell(result: _T) -> None:
            for feed_id in changed(result):
                for listener in self._listeners:
                    listener(feed_id)

        return await self._writer.run(work, on_commit=tell)

    # Feeds

    async def feed_by_url(self, url: str) -> FeedRow | None:
        """Return the feed of this key or alias, or None."""
        return await self._readers.run(lambda db: feeds.find_by_url(db, url))

    async def feed(self, feed_id: int) -> FeedRow | None:
        """Return the feed, or None when it was forgotten."""
        return await self._readers.run(lambda db: feeds.find(db, feed_id))

    async def feeds(self, *, limit: int = 1000, offset: int = 0) -> list[FeedRow]:
        """Return known feeds, by URL."""
        return await self._readers.run(lambda db: feeds.list_feeds(db, limit, offset))

    async def unfinished_feeds(self) -> list[FeedRow]:
        """Return the feeds whose walk has not ended."""
        return await self._readers.run(feeds.list_unfinished)

    async def outlook(self, times: Times) -> polling.Outlook:
        """Return which feeds may be polled, as `wholefeed.core.schedule.polling.poll_due_at` says."""
        return await self._readers.transaction(lambda db: polling.outlook(db, times))

    async def overview(self, feed_id: int) -> Overview:
        """Return what is known of a feed, of one moment."""
        return await self._readers.transaction(lambda db: failures.overview(db, feed_id))

    async def create_feed(
        self, url: str, *, fetch_url: str, family: Family, kind: Kind, now: float
    ) -> FeedRow:
        """Return the feed of that key or alias, made if it was not there."""
        return await self._change(
            lambda db: feeds.create(db, url=url, fetch_url=fetch_url, family=family, kind=kind, now=now),
            lambda feed: [feed.id],
        )

    async def add_alias(self, url: str, feed_id: int) -> None:
        """Let another URL lead to the feed."""
        await self._change(
            lambda db: feeds.add_alias(db, url, feed_id),
            lambda before: [feed_id] if before is None else [feed_id, before],
        )

    async def update_feed(self, feed_id: int, **changes: Unpack[FeedChanges]) -> FeedRow:
        """Change columns of a feed."""
        return await self._change(lambda db: feeds.update(db, feed_id, changes), lambda _: [feed_id])

    async def note_asked(self, asked: Mapping[int, float]) -> None:
        """Note when feeds were asked for, those that are still there."""
        await self._writer.run(lambda db: feeds.note_asked(db, asked))

    async def begin_walk(self, feed_id: int, *, now: float) -> None:
        """Note that a walk may add documents from now on; the publication at its end notes that it ended."""
        await self._change(lambda db: feeds.begin_walk(db, feed_id, now), lambda _: [feed_id])

    async def forget(self, feed_id: int, *, now: float) -> bool:
        """Delete a feed and all that is its own. Answers that are being sent can finish."""
        is_gone = await self._change(lambda db: feeds.forget(db, feed_id, now), lambda _: [feed_id])
        await self.upkeep.sweep()
        return is_gone

    # What could not be had

    async def note_refetch(
        self, feed_id: int, failure: Attempt | None, **changes: Unpack[FeedChanges]
    ) -> None:
        """Note what came of asking for the subscription document: a failure or none, and columns."""
        await self._change(
            lambda db: failures.note_refetch(db, feed_id, failure, changes), lambda _: [feed_id]
        )

    async def failures(self, feed_id: int) -> Failures:
        """Return what could not be had of a feed."""
        return await self._readers.run(lambda db: failures.read(db, feed_id))

    # Documents

    async def documents(self, feed_id: int) -> list[DocumentRow]:
        """Return a feed's documents in output order (R20), the detached ones last."""
        return await self._readers.run(lambda db: documents.list_all(db, feed_id))

    async def body(self, document_id: int) -> bytes:
        """Return a document's body as it was fetched, decoded."""
        length, coded = await self._readers.run(lambda db: bodies.find(db, document_id))
        return await bodies.decode(coded, length)

    async def live_ordinals(self, document_ids: Iterable[int]) -> dict[int, tuple[int, ...]]:
        """Return which entries of each document are live, from the top."""
        return await self._readers.run(lambda db: documents.live_ordinals(db, document_ids))

    async def superseded(self, feed_id: int) -> dict[int, int]:
        """Return how many entries of each attached document are not live, where there are any."""
        return await self._readers.run(lambda db: documents.superseded(db, feed_id))

    async def copy_dates(self, document_id: int) -> tuple[CopyDates, ...]:
        """Return the dates of a document's copies, from the top, as they were put."""
        return await self._readers.run(lambda db: documents.copy_dates(db, document_id))

    async def known(
        self, feed_id: int, identities: Sequence[EntryId], *, but: int | None = None
    ) -> dict[EntryId, float | None]:
        """Return the latest instant of those that stand in attached documents, `but` this one."""
        return await self._readers.run(lambda db: documents.known(db, feed_id, identities, but))

    async def tombstones(self, feed_id: int) -> list[Tombstone]:
        """Return what the publisher has deleted, as far as it counts (R19)."""
        return await self._readers.run(lambda db: tombstones.counting(db, feed_id))

    async def put_documents(
        self,
        feed_id: int,
        new: Sequence[NewDocument],
        *,
        now: float,
        ranks: Mapping[int, int] | None = None,
        detached: Collection[int] = (),
        **changes: Unpack[FeedChanges],
    ) -> list[int]:
        """Insert or replace documents by (URL, role), and choose the live copies of their entries.

        A replaced document keeps its number. In the same transaction other documents are ranked or detached,
        as by `arrange`, and columns of the feed changed. Returns the numbers, in order.
        """
        coded = [(document, await bodies.encode(document.body)) for document in new]
        return await self._change(
            lambda db: chain.put(db, feed_id, coded, ranks, detached, changes, now), lambda _: [feed_id]
        )

    async def touch_document(self, document_id: int, **changes: Unpack[DocumentChanges]) -> None:
        """Change columns of a document that the choice of live entries does not depend on."""
        await self._writer.run(lambda db: documents.touch(db, document_id, changes))

    async def arrange(
        self, feed_id: int, *, ranks: Mapping[int, int], detached: Collection[int] = (), now: float
    ) -> None:
        """Rank documents, attaching those that were detached, and detach others: all at once (R15)."""
        await self._change(lambda db: chain.arrange(db, feed_id, ranks, detached, now), lambda _: [feed_id])

    async def attach(self, feed_id: int, document_id: int, rank: int, *, now: float) -> None:
        """Make a detached document part of the feed again."""
        await self.arrange(feed_id, ranks={document_id: rank}, now=now)

    async def detach(self, feed_id: int, document_ids: Collection[int], *, now: float) -> None:
        """Keep documents, but no longer as part of the feed."""
        await self.arrange(feed_id, ranks={}, detached=document_ids, now=now)

    async def reorder(self, feed_id: int, ranks: Mapping[int, int], *, now: float) -> None:
        """Give documents other ranks."""
        await self.arrange(feed_id, ranks=ranks, now=now)

    # Segments

    async def placed(self, feed_id: int) -> tuple[int, list[Placed]]:
        """Return the feed's revision and its attached documents in output order, of one moment.

        What is read now and published under this revision is consistent: of a change `publish` tells.
        """
        return await self._readers.transaction(lambda db: segments.placed(db, feed_id))

    async def publish(
        self, feed_id: int, publication: Publication, *, revision: int, now: float
    ) -> FeedRow | None:
        """Replace what is sent of a feed, in one transaction: new segments come, those left out retire.

        Args:
            feed_id: The feed.
            publication: When its digest is a new one, `modified_at` moves forward by a second or more.
            revision: That of the `placed` the segments were planned from.
            now: Epoch seconds.

        Returns:
            The feed as published; None when its documents have changed since `revision`: plan again.
        """
        return await self._change(
            lambda db: segments.publish(
                db, feed_id, publication, revision=revision, pins=self._pins, now=now
            ),
            lambda _: [feed_id],
        )

    @asynccontextmanager
    async def snapshot(self, feed_id: int) -> AsyncIterator[Snapshot]:
        """Yield the feed as it was published. Its segments stay readable until exit; nothing is locked."""
        async with AsyncExitStack() as stack:
            with self._pins.reading(feed_id):
                found = await self._readers.transaction(lambda db: segments.snapshot(db, feed_id))
                held = [segment.id for segment in found.segments]
                stack.enter_context(self._pins.held(feed_id, held))
            yield found

    async def block(self, segment_id: int) -> bytes:
        """Return a segment's deflated text; hold a `snapshot` meanwhile."""
        return await self._readers.run(lambda db: segments.block(db, segment_id))
