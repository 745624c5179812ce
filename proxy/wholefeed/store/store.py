"""The interface of the store, the same for both engines.

The functions of `wholefeed.store.tables` take the connection; one piece of work is one transaction.
Cancelling a caller does not stop the work. All methods raise `StoreError`, `StorageFullError`,
`OverloadedError` when the database stays busy or closes, and `UnknownFeedError` for a forgotten feed.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, Self, TypeVar

from wholefeed.errors import OverloadedError, StorageFullError, StoreError
from wholefeed.futures import retrieve_failure, to_the_end
from wholefeed.store.base import Condition, Database, StoreSizes, Traffic, fetch_all, fetch_value
from wholefeed.store.rows import FeedRow, SegmentRow, Snapshot
from wholefeed.store.tables import document_table, feed_table, segment_table
from wholefeed.store.tables.feed_table import Validation, Version, read_versions
from wholefeed.store.tables.segment_table import Pins

_T = TypeVar("_T")
# Longest wait of a read for pending writes.
READ_SECONDS: Final = 1.0
_TELL: Final = """
    SELECT set_config('synchronous_commit', 'off', true), pg_notify('wholefeed', :payload)
"""


class Store:
    def __init__(self, engine: Engine) -> None:
        # For notices, versions, traffic, and writes that no deferred check must precede.
        self.engine = engine
        self._deferred = _DeferredValidations(engine)
        self._name = secrets.token_hex(8)
        engine.listen("drop", self._take_drop)
        self.pins = Pins()
        self.upkeep = Upkeep(engine, self.pins)

    @classmethod
    @asynccontextmanager
    async def on(cls, engine: Engine) -> AsyncIterator[Self]:
        store = cls(engine)
        with suppress(StorageFullError):  # reading still works on a full volume
            await store.upkeep.sweep()
        try:
            yield store
        finally:
            await to_the_end(store._deferred.wait_until_written)

    @property
    def is_shared(self) -> bool:
        return self.engine.is_shared

    async def check(self) -> None:
        """Make sure that the store can be read and written. After a full volume, try a write again."""
        await self.read(feed_table.read_probe)
        self.engine.condition.require_sound()
        if self.engine.condition.is_full:
            await self.probe()

    async def probe(self) -> None:
        """Write as much as a small document takes; raise as `write` does."""
        await self.write(feed_table.write_probe)

    @property
    def is_writable(self) -> bool:
        return self.engine.condition.is_sound

    async def read(
        self,
        work: Callable[[Database], _T],
        *,
        feed: int | None = None,
        is_single: bool = False,
    ) -> _T:
        """Return the result of `work`, which does nothing but SQL.

        Pending writes of feeds other than `feed` are not waited for. With `is_single`, `work` is one SELECT:
        one round trip to a remote database instead of three.
        """
        if feed is None or feed in self._deferred.checks:
            await self._deferred.wait_until_written(within_seconds=READ_SECONDS)
        return await self.engine.read(work, is_single=is_single)

    async def find(self, url: str) -> FeedRow | None:
        """Return the feed of a URL. Under load, reads for answers in progress go first."""
        look, unwritten = partial(feed_table.find_by_url, url=url), frozenset(self._deferred.checks)
        found = await self.engine.read(look, is_first=True, is_single=True)
        is_older = found is not None and found.id in unwritten
        return await self.read(look, is_single=True) if is_older else found

    async def write(
        self,
        work: Callable[[Database], _T],
        *,
        feed: int | None = None,
        comes_more: bool = False,
        tell: Callable[[_T], None] | None = None,
    ) -> _T:
        """Run a function that writes, as `Engine.write` does.

        With `comes_more`, another write follows before anybody learns of this one. A local database then does
        not wait for the disk: a power cut that undoes the write also ends this process.
        """
        await self._deferred.wait_until_written()
        is_lasting = self.is_shared or not comes_more
        return await self.engine.write(work, feed=feed, is_lasting=is_lasting, tell=tell)

    async def write_loosely(self, work: Callable[[Database], _T]) -> _T:
        """Run a function as `write` does. A crash of the database's machine may undo the change."""
        return await self.engine.write(work, is_lasting=False)

    async def write_single(self, work: Callable[[Database], _T]) -> _T:
        """Run one statement as `write_loosely` does; it may run twice."""
        return await self.engine.write_single(work)

    def note_unchanged(self, row: FeedRow, document: int) -> bool:
        """Record that a publisher reported no change; a shared transaction writes it a moment later.

        `row` has the new times already. Later reads and writes include the record, except for reads during a
        long transaction. No listener is called. Return False if the caller must write at once: other
        processes read the store, or it may be unwritable.
        """
        if self.engine.is_shared or not self.engine.condition.is_sound:
            return False
        assert row.checked_at is not None, "its publisher was heard of"
        assert row.fresh_until is not None, "the same"
        check = Validation(row.id, document, row.checked_at, row.fresh_until, row.cache_control, row.expires)
        self._deferred.add(check)
        return True

    async def forget(self, feed_id: int, *, now: float) -> bool:
        is_gone = await self.write(partial(feed_table.forget, feed=feed_id, now=now), feed=feed_id)
        await self.tell_others(feed_id)
        await self.upkeep.sweep()
        return is_gone

    @asynccontextmanager
    async def snapshot(self, feed_id: int) -> AsyncIterator[Snapshot]:
        """Yield the feed as published. Its segments stay readable until exit, without a lock."""
        async with AsyncExitStack() as stack:
            unwritten = self._deferred.checks.get(feed_id)
            with self.pins.reading(feed_id):
                found = await self.engine.read(lambda db: segment_table.snapshot(db, feed_id))
                if unwritten is not None:
                    found = replace(found, feed=unwritten.apply_to(found.feed))
                held = [segment.id for segment in found.segments]
                stack.enter_context(self.pins.hold(feed_id, held))
            yield found

    async def outline(self, segment: SegmentRow) -> bytes | None:
        """Return the packed positions of a segment's entries, if stored. Call it within a `snapshot`."""
        return await self.engine.read(partial(segment_table.outline, segment=segment.id), is_single=True)

    async def pieces(self, segment: SegmentRow) -> AsyncIterator[bytes]:
        """Yield a segment's deflated text in pieces. Call it within a `snapshot`."""
        number, left_bytes = 0, segment.deflated_bytes
        while left_bytes > 0:
            look = partial(segment_table.piece, segment=segment.id, number=number)
            piece = await self.engine.read(look, is_single=True)
            yield piece
            number, left_bytes = number + 1, left_bytes - len(piece)

    async def tell_others(self, feed: int) -> None:
        """Tell other processes to drop their copy of a changed feed."""
        # PostgreSQL lets one notifying transaction commit at a time, and a durable one holds that turn until
        # its disk write ends. So the notice has its own transaction. A lost notice does no harm, since
        # `versions` precedes each use of a copy.
        if self.engine.is_shared:
            payload = {"payload": f"drop {feed} {self._name}"}
            with suppress(StoreError, OverloadedError):
                await self.write_single(lambda db: fetch_value(db, _TELL, payload))

    def _take_drop(self, words: str) -> None:
        feed, _, name = words.partition(" ")
        is_number = feed.isascii() and feed.isdigit() and len(feed) <= _MOST_DIGITS
        if is_number and name != self._name:  # `on_change` was called for its own change
            self.engine.on_change(int(feed))


# Longest number of a feed. Anybody in the database may send another text (docs/faults.md row 100).
_MOST_DIGITS: Final = 18
WRITE_SECONDS: Final = 0.25  # longest wait for other checks to share the transaction


class _DeferredValidations:
    """Checks of unchanged feeds, written together a moment later."""

    # A transaction of its own would be a third of a refresh without news. A crash loses the pending checks:
    # those publishers are asked once more. After a failed or late write `on_change` is called, since memory
    # may differ from the store.

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.checks: dict[int, Validation] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_wanted = asyncio.Event()
        # Whether a read went ahead without waiting for the task.
        self._is_late = False

    def add(self, check: Validation) -> None:
        self.checks[check.feed] = check
        self._task = self._task or self._start_writing()

    async def wait_until_written(self, *, within_seconds: float | None = None) -> None:
        """Wait until all earlier checks are written, or failed to be.

        If an earlier caller waited `within_seconds` in vain, return at once.
        """
        for _ in range(2):  # checks added while a task writes belong to the next task
            if self._task is None or (within_seconds is not None and self._is_late):
                return
            self._is_wanted.set()
            _, late = await asyncio.wait({self._task}, timeout=within_seconds)
            if late:
                self._is_late = True
                return

    def _start_writing(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._write(), name="store-checks")

    async def _write(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(WRITE_SECONDS):
                await self._is_wanted.wait()
        taken = dict(self.checks)
        is_told = False
        try:
            await self._engine.write(
                lambda db: feed_table.note_validations(db, [*taken.values()]), is_lasting=False
            )
        except (StoreError, OverloadedError):
            is_told = True
        finally:
            is_told = is_told or self._is_late  # memory may hold the older state that a read saw
            self._is_late = False
            self._is_wanted.clear()
            self.checks = {feed: each for feed, each in self.checks.items() if taken.get(feed) is not each}
            self._task = self._start_writing() if self.checks else None
        for feed in taken if is_told else ():
            self._engine.on_change(feed)


# Interval that allows two failures before a retired segment's hour is over.
_KEEP_SENT_SECONDS: Final = 600.0
# Lifetime of a summary; making one counts all feeds.
_SUMMARY_SECONDS: Final = 5.0
# Longest wait for a new summary; clients give up after ten seconds.
SUM_UP_SECONDS: Final = 3.0
# Pause after a measurement, in multiples of its duration; after a failure, one.
REST: Final = 20.0
# Time after which a silent store counts as unreadable.
ANSWER_SECONDS: Final = 2.0
_LEAST_ASKED: Final = "SELECT id, asked_at FROM feed ORDER BY asked_at, id"


class Upkeep:
    """Maintenance of the whole store. Deleting old data shrinks no file."""

    def __init__(self, engine: Engine, pins: Pins) -> None:
        self._engine = engine
        self.pins = pins
        self._summing_up: asyncio.Task[Summary] | None = None
        self._summary: Summary | None = None
        self._good_until = 0.0

    async def purge(self, *, now: float) -> int:
        """Delete documents detached for 90 days, and retired segments; return the number of documents."""
        before = now - document_table.KEEP_DETACHED_SECONDS
        deleted = await self._engine.write(lambda db: document_table.purge(db, before))
        await self.sweep()
        return deleted

    async def sweep(self) -> None:
        await self._engine.write(lambda db: segment_table.sweep_retired(db, self.pins), is_alone=True)

    async def keep_sent(self, now: Callable[[], float]) -> None:
        """Protect segments in use from other processes, until cancelled."""
        while self._engine.is_shared:
            await asyncio.sleep(_KEEP_SENT_SECONDS)
            if self.pins.segments:
                with suppress(StoreError, OverloadedError):
                    await self.keep(now())

    async def keep(self, now: float) -> None:
        await self._engine.write(lambda db: segment_table.keep_retired(db, self.pins, now))

    async def used_bytes(self) -> int:
        return (await self._engine.read(self._engine.measure, is_long=True)).used_bytes

    async def feed_bytes(self, feed_id: int) -> int | None:
        """Return the share of a feed in `used_bytes`. None: measure `used_bytes` again."""
        measure = self._engine.measure_feed
        return None if measure is None else await self._engine.read(lambda db: measure(db, feed_id))

    async def require_answer(self) -> None:
        """Raise `OverloadedError` if the store does not answer a read in time."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._engine.read(feed_table.read_probe, is_single=True)
        except TimeoutError as exc:
            raise OverloadedError("the database does not answer in time") from exc

    async def summary(self) -> Summary | None:
        """Return the size of the store, perhaps of some time ago.

        None: no measurement ended in time, and there is no earlier one.

        Raises:
            OverloadedError, StoreError: The measurement failed.
        """
        if self._summing_up is None and time.monotonic() > self._good_until:
            self._summing_up = asyncio.create_task(self._sum_up(), name="store-summary")
            self._summing_up.add_done_callback(retrieve_failure)
        if (task := self._summing_up) is not None:
            await asyncio.wait({task}, timeout=SUM_UP_SECONDS)
            if task.done():
                return task.result()
        return self._summary

    async def least_asked(self) -> list[tuple[int, float]]:
        rows = await self._engine.read(lambda db: fetch_all(db, _LEAST_ASKED))
        return [(row["id"], row["asked_at"]) for row in rows]

    def is_being_sent(self, feed_id: int) -> bool:
        return feed_id in self.pins.feeds or feed_id in self.pins.sent

    async def _sum_up(self) -> Summary:
        began_at = time.monotonic()
        try:
            summary = await self._engine.read(self._read_summary, is_long=True)
        except BaseException:  # an old summary would hide the failure
            self._summary, self._good_until = None, 2 * time.monotonic() - began_at
            raise
        finally:
            self._summing_up = None
        now = time.monotonic()
        self._summary, self._good_until = summary, now + max(_SUMMARY_SECONDS, REST * (now - began_at))
        return summary

    def _read_summary(self, db: Database) -> Summary:
        return Summary(feed_table.count_states(db), *self._engine.measure(db))


class Summary(NamedTuple):
    feeds: Mapping[str, tuple[int, int]]
    """By visible state: the number of feeds, and the number of stale ones."""
    used_bytes: int
    file_bytes: int
    free_bytes: int | None


# Engines: SQLite in a file of this process, or PostgreSQL for several replicas


class Engine:
    """An open database, which runs functions over a connection in that connection's thread.

    Reads and writes raise `StoreError`, `StorageFullError`, `StoreDamagedError`, and `OverloadedError` when
    the database cannot be asked now or the store closes.
    """

    is_shared = False
    measure: Callable[[Database], StoreSizes]
    measure_feed: Callable[[Database, int], int] | None = None
    """Measures a feed's share of the store. None where measuring everything is instant."""

    def __init__(self) -> None:
        self.condition = Condition()
        self.on_change: Callable[[int], None] = lambda _: None
        """Called on the event loop with the number of each changed feed, before the writer gets its result.
        Also called after a failed COMMIT, which may have succeeded; not after earlier failures."""

    @property
    def traffic(self) -> Traffic:
        return Traffic()

    async def read(
        self,
        work: Callable[[Database], _T],
        *,
        is_first: bool = False,
        is_long: bool = False,
        is_single: bool = False,
    ) -> _T:
        """Return the result of a function that changes nothing and sees one moment of the database.

        A new request (`is_first`) waits behind those in progress. A read of minutes (`is_long`) delays no
        reader. One SELECT (`is_single`) needs no transaction.
        """
        raise NotImplementedError

    async def write(
        self,
        work: Callable[[Database], _T],
        *,
        feed: int | None = None,
        is_alone: bool = False,
        is_lasting: bool = True,
        tell: Callable[[_T], None] | None = None,
    ) -> _T:
        """Run a function that writes, all of it or nothing; it does only SQL, since it may run twice.

        `feed` is the feed that changes; None: none, or one not known yet. With `is_alone`, the work needs its
        own transaction. With `is_lasting`, it survives a crash of the database's machine, and earlier writes
        with it. `tell` gets the result, instead of `on_change`.
        """
        raise NotImplementedError

    async def write_single(self, work: Callable[[Database], _T]) -> _T:
        """Run one statement, perhaps twice. Shared databases only."""
        raise NotImplementedError

    def write_in_thread(self, work: Callable[[Database], _T]) -> _T:
        """Run a function as `write_at_once` does, in the calling thread. Shared databases only."""
        raise NotImplementedError

    async def write_at_once(self, work: Callable[[Database], _T]) -> _T:
        """Run a function ahead of other work, since it is worthless when late. Shared databases only."""
        raise NotImplementedError

    def listen(self, kind: str, callback: Callable[[str], None]) -> None:
        """Call a function on the event loop with the words of each notice of a kind (pg_notify)."""

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call a function when notices resume after a gap."""

    def on_replaced(self, callback: Callable[[], None]) -> None:
        """Call a function, before those of `on_lost`, when the database may be another one."""

    async def versions(self, feeds: Collection[int]) -> Mapping[int, Version]:
        """Return the current versions of those feeds that exist, by the cheapest read."""
        return await self.read(lambda db: read_versions(db, feeds), is_single=True)
