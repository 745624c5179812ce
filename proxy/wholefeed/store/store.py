"""The store: what the service keeps.

    async with open_file(path) as store:        # wholefeed.store.opening
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

import secrets
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, Self, TypeVar

from wholefeed.errors import OverloadedError, StorageFullError, StoreError
from wholefeed.futures import to_the_end
from wholefeed.store import deferred
from wholefeed.store.database import Database
from wholefeed.store.deferred import DeferredChecks
from wholefeed.store.engine import Engine
from wholefeed.store.rows import FeedRow, NewSegment, Publication, SegmentRow, Snapshot
from wholefeed.store.statements import fetch_value
from wholefeed.store.tables import feeds, probe, segments
from wholefeed.store.tables.checks import Check
from wholefeed.store.tables.pins import Pins
from wholefeed.store.tables.versions import Version
from wholefeed.store.traffic import Traffic
from wholefeed.store.upkeep import Upkeep

_T = TypeVar("_T")
_RowOf = Callable[[_T], FeedRow | None] | None

Blocks = Mapping[int, bytes]
"""Deflated texts, by segment."""

_TELL: Final = "SELECT pg_notify('wholefeed', :payload)"


class Store:
    """What is stored, whichever engine keeps it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._deferred = DeferredChecks(engine)
        self._name = secrets.token_hex(8)
        """By which it knows its own notices."""
        engine.listen("drop", self._take_drop)
        self._renewed: Callable[[FeedRow], None] = lambda row: engine.on_change(row.id)
        self._published: Callable[[Snapshot, Blocks], None] = lambda found, _: engine.on_change(found.feed.id)
        self.pins = Pins()
        """Which segments answers are using."""
        self.upkeep = Upkeep(engine, self.pins)

    @classmethod
    @asynccontextmanager
    async def on(cls, engine: Engine) -> AsyncIterator[Self]:
        """Stand on a database that is open."""
        store = cls(engine)
        with suppress(StorageFullError):  # what is stored can still be read
            await store.upkeep.sweep()
        try:
            yield store
        finally:
            await to_the_end(store._deferred.written)

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
        self._engine.on_change = listener
        self._renewed = renewed or (lambda row: listener(row.id))
        self._published = published or (lambda found, _: listener(found.feed.id))

    @property
    def is_shared(self) -> bool:
        """Whether other processes change what is stored."""
        return self._engine.is_shared

    @property
    def traffic(self) -> Traffic:
        """What goes on between it and its database."""
        return self._engine.traffic

    def listen(self, kind: str, callback: Callable[[str], None]) -> None:
        """Have a function told, on the event loop, the words of each notice of a kind."""
        self._engine.listen(kind, callback)

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Have a function called when notices come again after a time in which some may have been missed."""
        self._engine.on_lost(callback)

    def on_replaced(self, callback: Callable[[], None]) -> None:
        """Have a function called before those, where the database may be another one than before."""
        self._engine.on_replaced(callback)

    async def versions(self, feeds: Collection[int]) -> Mapping[int, Version]:
        """Return what feeds are now, those that there are."""
        return await self._engine.versions(feeds)

    async def check(self) -> None:
        """Make sure that the store can be read and written; a full volume is tried again.

        Raises:
            StorageFullError: The volume is full or read-only.
            StoreDamagedError: The file is damaged.
            StoreError: The database failed.
        """
        await self.read(probe.read)
        self._engine.condition.require_sound()
        if self._engine.condition.is_full:
            await self.write(probe.write)

    @property
    def is_writable(self) -> bool:
        """Whether it can be written, as far as is known."""
        return self._engine.condition.is_sound

    async def read(
        self, work: Callable[[Database], _T], *, feed: int | None = None, is_first: bool = False
    ) -> _T:
        """Return what a function finds; all of it is of one moment.

        Args:
            work: It does nothing but SQL.
            feed: The feed that alone is looked at: what is to be written of others is not waited for.
            is_first: Whether whoever asks has only come, and may wait until others are further.
        """
        if feed is None or feed in self._deferred.feeds:
            await self._is_written(within_seconds=deferred.READ_SECONDS)
        return await self._engine.read(work, is_first=is_first)

    async def find(self, url: str, *, is_first: bool = False) -> FeedRow | None:
        """Return the feed that a URL leads to; `is_first` as for `read`."""
        look, unwritten = partial(feeds.find_by_url, url=url), self._deferred.feeds
        found = await self._engine.read(look, is_first=is_first)
        is_older = found is not None and found.id in unwritten
        return await self.read(look) if is_older else found

    async def write(
        self, work: Callable[[Database], _T], *, feed: int | None = None, comes_more: bool = False
    ) -> _T:
        """Let a function change what is stored, all of it or nothing, and return its result.

        Args:
            work: It may run twice, so it does nothing but SQL.
            feed: The feed that is changed; None: one that is not known yet, or none.
            comes_more: Whether nobody is told before something else is written: a power cut that undoes it
                ends this process, too, unless the database is elsewhere.
        """
        await self._is_written()
        return await self._engine.write(work, feed=feed, is_lasting=self.is_shared or not comes_more)

    async def write_loosely(self, work: Callable[[Database], _T]) -> _T:
        """As `write`, of what a crash of the database's machine may undo; nothing waits for its disk."""
        return await self._engine.write(work, is_lasting=False)

    def write_in_thread(self, work: Callable[[Database], _T]) -> _T:
        """As `write_at_once`, in a thread that waits for it; of a shared store."""
        return self._engine.write_in_thread(work)

    async def write_at_once(self, work: Callable[[Database], _T]) -> _T:
        """As `write`, whatever else waits for the database: for what is worth nothing when it comes late."""
        return await self._engine.write_at_once(work)

    async def renew(
        self, work: Callable[[Database], _T], feed: int, *, row: _RowOf[_T] = None, comes_more: bool = False
    ) -> _T:
        """As `write`, of a feed of which no more than its row is sent: `row` gives it, or it is read."""

        def both(db: Database) -> tuple[_T, FeedRow]:
            result = work(db)
            return result, (row and row(result)) or feeds.require(db, feed)

        def tell(found: tuple[_T, FeedRow]) -> None:
            self._renewed(found[1])

        await self._is_written()
        lasts = self.is_shared or not comes_more
        return (await self._engine.write(both, feed=feed, is_lasting=lasts, tell=tell))[0]

    def note_unchanged(self, row: FeedRow, document: int) -> bool:
        """Let a row say from now on when the publisher said that nothing has changed, and for how long.

        Whoever reads or writes has it; it is in the file a moment later, with others. Who reads while
        another transaction takes long may not have it yet.

        Args:
            row: The feed's, which says so already, and nothing else that is not stored.
            document: What has not changed.

        Returns:
            Whether that is done; it has to be written at once where others read the store, and where it
            would have to be seen that it cannot be written.
        """
        if self._engine.is_shared or not self._engine.condition.is_sound:
            return False
        assert row.checked_at is not None, "its publisher was heard of"
        assert row.fresh_until is not None, "the same"
        self._deferred.add(Check(row.id, document, row.checked_at, row.fresh_until))
        self._renewed(row)
        return True

    async def publish(
        self, work: Callable[[Database], FeedRow | None], publication: Publication, feed: int
    ) -> FeedRow | None:
        """Let a function publish a feed; return what it does. Who is told has the texts that are new."""

        def both(db: Database) -> Snapshot | None:
            row = work(db)
            return None if row is None else segments.shown(db, row)

        def tell(found: Snapshot | None) -> None:
            if found is None:
                self._engine.on_change(feed)
                return
            pairs = zip(found.segments, publication.segments, strict=True)
            blocks = {row.id: new.sealed.block for row, new in pairs if isinstance(new, NewSegment)}
            self._published(found, blocks)

        await self._is_written()
        found = await self._engine.write(both, feed=feed, tell=tell)
        if found is not None:
            await self._tell_others(feed)
        return None if found is None else found.feed

    async def forget(self, feed_id: int, *, now: float) -> bool:
        """Delete a feed and all that is its own. Answers that are being sent can finish."""
        is_gone = await self.write(partial(feeds.forget, feed=feed_id, now=now), feed=feed_id)
        await self._tell_others(feed_id)
        await self.upkeep.sweep()
        return is_gone

    @asynccontextmanager
    async def snapshot(self, feed_id: int) -> AsyncIterator[Snapshot]:
        """Yield the feed as it was published. Its segments stay readable until exit; nothing is locked."""
        async with AsyncExitStack() as stack:
            unwritten = self._deferred.of(feed_id)
            with self.pins.reading(feed_id):
                found = await self._engine.read(lambda db: segments.snapshot(db, feed_id))
                if unwritten is not None:
                    found = replace(found, feed=unwritten.noted_in(found.feed))
                held = [segment.id for segment in found.segments]
                stack.enter_context(self.pins.held(feed_id, held))
            yield found

    async def outline(self, segment: SegmentRow) -> bytes | None:
        """Return where a segment's entries stand in its text, where that is kept; hold a `snapshot`."""
        return await self._engine.read(partial(segments.outline, segment=segment.id))

    async def pieces(self, segment: SegmentRow) -> AsyncIterator[bytes]:
        """Give a segment's deflated text, a piece at a time; to be called while a `snapshot` is held."""
        number, left_bytes = 0, segment.deflated_bytes
        while left_bytes > 0:
            piece = await self._engine.read(partial(segments.piece, segment=segment.id, number=number))
            yield piece
            number, left_bytes = number + 1, left_bytes - len(piece)

    async def _is_written(self, *, within_seconds: float | None = None) -> None:
        """Wait until there is nothing that would be written after what is asked for now, or for so long."""
        if self._deferred.are_waiting:
            await self._deferred.written(within_seconds=within_seconds)

    async def _tell_others(self, feed: int) -> None:
        """Let the other processes drop what they hold of a feed that was changed.

        After the change and by itself, and not of each one: a server lets one transaction at a time commit
        that sends any, and one that is to last holds that turn until the disk has it. None has to come:
        whoever makes use of what it holds asks for `versions` first.
        """
        if self._engine.is_shared:
            payload = {"payload": f"drop {feed} {self._name}"}
            with suppress(StoreError, OverloadedError):
                await self.write_loosely(lambda db: fetch_value(db, _TELL, payload))

    def _take_drop(self, words: str) -> None:
        feed, _, name = words.partition(" ")
        if name != self._name:  # its own change was told already
            self._engine.on_change(int(feed))
