"""The store: what the service keeps.

    async with Store.open(path) as store:
        feed = await store.write(lambda db: feeds.create(db, url=url, ...))
        await store.write(lambda db: documents.put(db, feed.id, [...], now), feed=feed.id)
        async with store.snapshot(feed.id) as snapshot:
            for segment in snapshot.segments:
                [piece async for piece in store.pieces(segment)]

The words for what is read and written are the functions of `wholefeed.store.tables`: each takes the
connection, and as many as belong together are called by one function, which is one transaction and one trip
to the connection's thread. Whoever leaves does not stop a transaction.

All raise `StoreError`, `StorageFullError` when the volume cannot be written, `OverloadedError` when the
database stays busy or is being closed, and `UnknownFeedError` when the feed was forgotten meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

from wholefeed.errors import StorageFullError
from wholefeed.loggers import get_logger
from wholefeed.store.database import Database
from wholefeed.store.rows import FeedRow, NewSegment, Publication, SegmentRow, Snapshot
from wholefeed.store.sqlite.condition import Condition
from wholefeed.store.sqlite.connection import open_reader, open_writer, to_the_end
from wholefeed.store.sqlite.files import tighten
from wholefeed.store.sqlite.migrate import check_current, locked
from wholefeed.store.sqlite.read_pool import Readers
from wholefeed.store.sqlite.writer import Writer
from wholefeed.store.statements import fetch_value, run
from wholefeed.store.tables import feeds, segments
from wholefeed.store.tables.live import TEMPORARY_TABLES
from wholefeed.store.tables.pins import Pins
from wholefeed.store.upkeep import Upkeep

_T = TypeVar("_T")

Blocks = Mapping[int, bytes]
"""Deflated texts, by segment."""

log = get_logger()

READERS: Final = 4
_PROBE: Final = "REPLACE INTO probe (id, filler) VALUES (1, randomblob(16384))"


class Store:
    """The database of one process."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers
        self._renewed: Callable[[FeedRow], None] = lambda row: writer.on_change(row.id)
        self._published: Callable[[Snapshot, Blocks], None] = lambda found, _: writer.on_change(found.feed.id)
        self.pins = Pins()
        """Which segments answers are using."""
        self.upkeep = Upkeep(writer, readers, self.pins)

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
            await asyncio.to_thread(_keep_others_out, path)
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

    def on_change(
        self,
        listener: Callable[[int], None],
        renewed: Callable[[FeedRow], None] | None = None,
        published: Callable[[Snapshot, Blocks], None] | None = None,
    ) -> None:
        """Have it told what a commit has changed, on the event loop, before whoever asked for it goes on.

        Args:
            listener: Told the number of each feed that is another one than before.
            renewed: Told the rows of feeds of which `renew` has changed no more; None: `listener` is.
            published: Told what `publish` has published; None: `listener` is.
        """
        self._writer.on_change = listener
        self._renewed = renewed or (lambda row: listener(row.id))
        self._published = published or (lambda found, _: listener(found.feed.id))

    async def check(self) -> None:
        """Make sure that the store can be read and written; a full volume is tried again.

        Raises:
            StorageFullError: The volume is full or read-only.
            StoreDamagedError: The file is damaged.
            StoreError: The database failed.
        """
        await self.read(lambda db: fetch_value(db, "SELECT count(*) FROM probe"))
        self._writer.condition.require_sound()
        if self._writer.condition.is_full:
            await self.write(lambda db: run(db, _PROBE))

    @property
    def is_writable(self) -> bool:
        """Whether it can be written, as far as is known."""
        return self._writer.condition.is_sound

    async def read(self, work: Callable[[Database], _T]) -> _T:
        """Return what a function finds; all of it is of one moment."""
        return await self._readers.run(work)

    async def write(self, work: Callable[[Database], _T], *, feed: int | None = None) -> _T:
        """Let a function change what is stored, all of it or nothing, and return its result.

        Args:
            work: It may run twice, so it does nothing but SQL.
            feed: The feed that is changed; None: one that is not known yet, or none.
        """
        return await self._writer.run(work, feed=feed)

    async def renew(self, work: Callable[[Database], object], feed: int) -> None:
        """Let a function change what the row of a feed says, and nothing else that is sent of it."""

        def both(db: Database) -> FeedRow:
            work(db)
            return feeds.require(db, feed)

        _ = await self._writer.run(both, feed=feed, tell=self._renewed)

    async def publish(
        self, work: Callable[[Database], FeedRow | None], publication: Publication, feed: int
    ) -> FeedRow | None:
        """Let a function publish a feed; return what it does. Who is told has the texts that are new."""

        def both(db: Database) -> Snapshot | None:
            row = work(db)
            return None if row is None else segments.shown(db, row)

        def tell(found: Snapshot | None) -> None:
            if found is None:
                self._writer.on_change(feed)
                return
            pairs = zip(found.segments, publication.segments, strict=True)
            blocks = {row.id: new.sealed.block for row, new in pairs if isinstance(new, NewSegment)}
            self._published(found, blocks)

        found = await self._writer.run(both, feed=feed, tell=tell)
        return None if found is None else found.feed

    async def forget(self, feed_id: int, *, now: float) -> bool:
        """Delete a feed and all that is its own. Answers that are being sent can finish."""
        is_gone = await self.write(lambda db: feeds.forget(db, feed_id, now), feed=feed_id)
        await self.upkeep.sweep()
        return is_gone

    @asynccontextmanager
    async def snapshot(self, feed_id: int) -> AsyncIterator[Snapshot]:
        """Yield the feed as it was published. Its segments stay readable until exit; nothing is locked."""
        async with AsyncExitStack() as stack:
            with self.pins.reading(feed_id):
                found = await self.read(lambda db: segments.snapshot(db, feed_id))
                held = [segment.id for segment in found.segments]
                stack.enter_context(self.pins.held(feed_id, held))
            yield found

    async def outline(self, segment: SegmentRow) -> bytes | None:
        """Return where a segment's entries stand in its text, where that is kept; hold a `snapshot`."""
        return await self.read(partial(segments.outline, segment=segment.id))

    async def pieces(self, segment: SegmentRow) -> AsyncIterator[bytes]:
        """Give a segment's deflated text, a piece at a time; to be called while a `snapshot` is held."""
        number, left_bytes = 0, segment.deflated_bytes
        while left_bytes > 0:
            piece = await self.read(partial(segments.piece, segment=segment.id, number=number))
            yield piece
            number, left_bytes = number + 1, left_bytes - len(piece)


def _keep_others_out(path: Path) -> None:
    """Before any connection is opened: what SQLite makes beside the file gets the file's rights."""
    for found in tighten(path):
        if found.problem:
            log.warning("store.exposed", path=str(found.path), reason=found.problem)
        else:
            log.warning("store.tightened", path=str(found.path))
