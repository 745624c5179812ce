"""The store: what the service keeps, whichever engine keeps it.

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
from wholefeed.store.base import Condition, Database, Sizes, Traffic, fetch_all, fetch_value
from wholefeed.store.rows import FeedRow, SegmentRow, Snapshot
from wholefeed.store.tables import documents, feeds, segments
from wholefeed.store.tables.feeds import Check, Version, read_versions
from wholefeed.store.tables.segments import Pins

_T = TypeVar("_T")
READ_SECONDS: Final = 1.0
"""For so long a read waits for what is being written."""
_TELL: Final = """
    SELECT set_config('synchronous_commit', 'off', true), pg_notify('wholefeed', :payload)
"""


class Store:
    """What is stored, whichever engine keeps it; `on` makes it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        """What it stands on, asked directly for what no deferred check has to be written for: its notices,
        versions and traffic, and what is to be written at once."""
        self._deferred = _DeferredChecks(engine)
        self._name = secrets.token_hex(8)
        """By which it knows its own notices."""
        engine.listen("drop", self._take_drop)
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

    @property
    def is_shared(self) -> bool:
        """Whether other processes change what is stored."""
        return self.engine.is_shared

    async def check(self) -> None:
        """Make sure that the store can be read and written; a full volume is tried again."""
        await self.read(feeds.read_probe)
        self.engine.condition.require_sound()
        if self.engine.condition.is_full:
            await self.write(feeds.write_probe)

    @property
    def is_writable(self) -> bool:
        """Whether it can be written, as far as is known."""
        return self.engine.condition.is_sound

    async def read(
        self,
        work: Callable[[Database], _T],
        *,
        feed: int | None = None,
        is_single: bool = False,
    ) -> _T:
        """Return what a function finds; all of it is of one moment.

        Args:
            work: It does nothing but SQL.
            feed: The feed that alone is looked at: what is to be written of others is not waited for.
            is_single: Whether it is one SELECT: then a database elsewhere is asked once, and not three times.
        """
        if feed is None or feed in self._deferred.checks:
            await self._deferred.written(within_seconds=READ_SECONDS)
        return await self.engine.read(work, is_single=is_single)

    async def find(self, url: str) -> FeedRow | None:
        """Return the feed that a URL leads to. Where many wait, answers that have begun go first."""
        look, unwritten = partial(feeds.find_by_url, url=url), frozenset(self._deferred.checks)
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
        """Let a function change what is stored, all of it or nothing, and return its result.

        Args:
            work: It may run twice, so it does nothing but SQL.
            feed: The feed that is changed; None: one that is not known yet, or none.
            comes_more: Whether nobody is told of it before something else is written. Then nothing waits for
                the disk, where the database is on this machine: a power cut that undoes it ends this
                process, too.
            tell: Told the result, instead of `engine.on_change`: by whoever knows what of the feed
                stays as it was.
        """
        await self._deferred.written()
        is_lasting = self.is_shared or not comes_more
        return await self.engine.write(work, feed=feed, is_lasting=is_lasting, tell=tell)

    async def write_loosely(self, work: Callable[[Database], _T]) -> _T:
        """As `write`, of what a crash of the database's machine may undo; nothing waits for its disk."""
        return await self.engine.write(work, is_lasting=False)

    async def write_single(self, work: Callable[[Database], _T]) -> _T:
        """As `write_loosely`, by one statement that is a transaction by itself, and may be done twice."""
        return await self.engine.write_single(work)

    def note_unchanged(self, row: FeedRow, document: int) -> bool:
        """Let a row say from now on when the publisher said that nothing has changed, and for how long.

        Whoever reads or writes has it; it is in the file a moment later, with others. Who reads while
        another transaction takes long may not have it yet. No listener is told.

        Args:
            row: The feed's, which says so already, and nothing else that is not stored.
            document: What has not changed.

        Returns:
            Whether that is done; it has to be written at once where others read the store, and where it
            would have to be seen that it cannot be written.
        """
        if self.engine.is_shared or not self.engine.condition.is_sound:
            return False
        assert row.checked_at is not None, "its publisher was heard of"
        assert row.fresh_until is not None, "the same"
        check = Check(row.id, document, row.checked_at, row.fresh_until, row.cache_control, row.expires)
        self._deferred.add(check)
        return True

    async def forget(self, feed_id: int, *, now: float) -> bool:
        """Delete a feed and all that is its own. Answers that are being sent can finish."""
        is_gone = await self.write(partial(feeds.forget, feed=feed_id, now=now), feed=feed_id)
        await self.tell_others(feed_id)
        await self.upkeep.sweep()
        return is_gone

    @asynccontextmanager
    async def snapshot(self, feed_id: int) -> AsyncIterator[Snapshot]:
        """Yield the feed as it was published. Its segments stay readable until exit; nothing is locked."""
        async with AsyncExitStack() as stack:
            unwritten = self._deferred.checks.get(feed_id)
            with self.pins.reading(feed_id):
                found = await self.engine.read(lambda db: segments.snapshot(db, feed_id))
                if unwritten is not None:
                    found = replace(found, feed=unwritten.noted_in(found.feed))
                held = [segment.id for segment in found.segments]
                stack.enter_context(self.pins.held(feed_id, held))
            yield found

    async def outline(self, segment: SegmentRow) -> bytes | None:
        """Return where a segment's entries stand in its text, where that is kept; hold a `snapshot`."""
        return await self.engine.read(partial(segments.outline, segment=segment.id), is_single=True)

    async def pieces(self, segment: SegmentRow) -> AsyncIterator[bytes]:
        """Give a segment's deflated text, a piece at a time; to be called while a `snapshot` is held."""
        number, left_bytes = 0, segment.deflated_bytes
        while left_bytes > 0:
            look = partial(segments.piece, segment=segment.id, number=number)
            piece = await self.engine.read(look, is_single=True)
            yield piece
            number, left_bytes = number + 1, left_bytes - len(piece)

    async def tell_others(self, feed: int) -> None:
        """Let the other processes drop what they hold of a feed that was changed.

        After the change and by itself, and not of each one: a server lets one transaction at a time commit
        that sends any, and one that is to last holds that turn until the disk has it. None has to come:
        whoever makes use of what it holds asks for `versions` first.
        """
        if self.engine.is_shared:
            payload = {"payload": f"drop {feed} {self._name}"}
            with suppress(StoreError, OverloadedError):
                await self.write_single(lambda db: fetch_value(db, _TELL, payload))

    def _take_drop(self, words: str) -> None:
        feed, _, name = words.partition(" ")
        is_number = feed.isascii() and feed.isdigit() and len(feed) <= _MOST_DIGITS
        if is_number and name != self._name:  # its own change was told already
            self.engine.on_change(int(feed))


_MOST_DIGITS: Final = 18
"""Of a feed's number. Whoever may connect to the database may send what is none (docs/faults.md row 100)."""
WRITE_SECONDS: Final = 0.25
"""For so long a check waits for others at most."""


class _DeferredChecks:
    """What publishers say of feeds that have not changed, written for many at once a moment later.

        deferred.add(Check(...))
        await deferred.written()                    # before anything else is written
        await deferred.written(within_seconds=1)    # before anything is read of these feeds

    A transaction of its own, with its commit on disk, is a third of what a refresh costs that brings nothing.
    A crash loses what was not written yet: those publishers are asked once more, and say it again.

    A read does not wait long for that: before it a transaction may run that takes seconds. What is read then
    is as it was before, which may be asked once more, too.

    Of checks that cannot be written, the feeds are told to have changed: whatever holds them has it that
    their publishers were heard of. So are those that were late: whoever has read them meanwhile has it that
    they were not.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.checks: dict[int, Check] = {}
        """By feed, those that are not written yet."""
        self._task: asyncio.Task[None] | None = None
        """What writes them, as long as there are any."""
        self._is_wanted = asyncio.Event()
        """Whether somebody waits for that."""
        self._is_late = False
        """Whether somebody has read without waiting for the end of the task."""

    def add(self, check: Check) -> None:
        """Have a check written in time."""
        self.checks[check.feed] = check
        self._task = self._task or self._begun()

    async def written(self, *, within_seconds: float | None = None) -> None:
        """Wait until all that was added before is written, or could not be.

        Args:
            within_seconds: For no longer than that; and not at all where somebody has waited for so long.
        """
        for _ in range(2):  # what came since a task began to write is the next one's
            if self._task is None or (within_seconds is not None and self._is_late):
                return
            self._is_wanted.set()
            _, late = await asyncio.wait({self._task}, timeout=within_seconds)
            if late:
                self._is_late = True
                return

    def _begun(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._write(), name="store-checks")

    async def _write(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(WRITE_SECONDS):
                await self._is_wanted.wait()
        taken = dict(self.checks)
        is_told = False
        try:
            await self._engine.write(lambda db: feeds.note_check(db, [*taken.values()]), is_lasting=False)
        except (StoreError, OverloadedError):
            is_told = True
        finally:
            is_told = is_told or self._is_late  # it may be held as it was read meanwhile
            self._is_late = False
            self._is_wanted.clear()
            self.checks = {feed: each for feed, each in self.checks.items() if taken.get(feed) is not each}
            self._task = self._begun() if self.checks else None
        for feed in taken if is_told else ():
            self._engine.on_change(feed)


_KEEP_SENT_SECONDS: Final = 600.0
"""Often enough that one time may fail, and another, before an hour is over."""
_SUMMARY_SECONDS: Final = 5.0
"""For so long a summary is good: it counts the feeds one by one."""
SUM_UP_SECONDS: Final = 3.0
"""For so long a new summary is waited for: what asks for it gives up after ten, and then knows nothing."""
REST: Final = 20.0
"""So many times as long as a measurement took nobody makes another one; once as long, where it failed."""
ANSWER_SECONDS: Final = 2.0
"""A store that has not answered by then cannot be read."""
_LEAST_ASKED: Final = "SELECT id, asked_at FROM feed ORDER BY asked_at, id"


class Upkeep:
    """What is done to the store as a whole: deleting what is old, and telling how large it is.

    What is freed is used again by what comes next; a database's files do not shrink.
    """

    def __init__(self, engine: Engine, pins: Pins) -> None:
        self._engine = engine
        self.pins = pins
        """Which segments answers are using."""
        self._summing_up: asyncio.Task[Summary] | None = None
        self._summary: Summary | None = None
        """The last one."""
        self._good_until = 0.0

    async def purge(self, *, now: float) -> int:
        """Delete documents detached for 90 days and retired segments. Returns how many documents."""
        before = now - documents.KEEP_DETACHED_SECONDS
        deleted = await self._engine.write(lambda db: documents.purge(db, before))
        await self.sweep()
        return deleted

    async def sweep(self) -> None:
        """Delete the segments that earlier transactions retired and no answer uses."""
        await self._engine.write(lambda db: segments.sweep_retired(db, self.pins), is_alone=True)

    async def keep_sent(self, now: Callable[[], float]) -> None:
        """Let no other process delete the segments that answers are using, until cancelled."""
        while self._engine.is_shared:
            await asyncio.sleep(_KEEP_SENT_SECONDS)
            if self.pins.segments:
                with suppress(StoreError, OverloadedError):
                    await self.keep(now())

    async def keep(self, now: float) -> None:
        """Let the segments that answers are using stay for another hour, whoever sweeps."""
        await self._engine.write(lambda db: segments.keep_retired(db, self.pins, now))

    async def used_bytes(self) -> int:
        """Return what all that is stored comes to, without segments that wait to be deleted."""
        return (await self._engine.read(self._engine.measure, is_long=True)).used_bytes

    async def feed_bytes(self, feed_id: int) -> int | None:
        """Return how much less `used_bytes` is without a feed; None where that is to be asked again."""
        measure = self._engine.measure_feed
        return None if measure is None else await self._engine.read(lambda db: measure(db, feed_id))

    async def require_answer(self) -> None:
        """Make sure that the store can be read; raises `OverloadedError` where it does not answer in time."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._engine.read(feeds.read_probe, is_single=True)
        except TimeoutError as exc:
            raise OverloadedError("the database does not answer in time") from exc

    async def summary(self) -> Summary | None:
        """Return how large the store is, or was some time ago; it is summed up though nobody waits for that.

        Returns:
            None where it was not summed up in time, and never before.

        Raises:
            OverloadedError, StoreError: It could not be.
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
        """Return all feeds, each with the time when it was asked for, those not asked for longest first."""
        rows = await self._engine.read(lambda db: fetch_all(db, _LEAST_ASKED))
        return [(row["id"], row["asked_at"]) for row in rows]

    def is_being_sent(self, feed_id: int) -> bool:
        """Whether an answer with this feed is under way."""
        return feed_id in self.pins.feeds or feed_id in self.pins.sent

    async def _sum_up(self) -> Summary:
        began_at = time.monotonic()
        try:
            summary = await self._engine.read(self._summed_up, is_long=True)
        except BaseException:  # of a store that cannot say it nothing is told
            self._summary, self._good_until = None, 2 * time.monotonic() - began_at
            raise
        finally:
            self._summing_up = None
        now = time.monotonic()
        self._summary, self._good_until = summary, now + max(_SUMMARY_SECONDS, REST * (now - began_at))
        return summary

    def _summed_up(self, db: Database) -> Summary:
        return Summary(feeds.count_states(db), *self._engine.measure(db))


class Summary(NamedTuple):
    feeds: Mapping[str, tuple[int, int]]
    """By visible state: how many there are, and how many of them are stale."""
    used_bytes: int
    file_bytes: int
    free_bytes: int | None
    """As `Sizes` has them."""


# What it stands on: SQLite in a file of this process, or PostgreSQL that replicas share


class Engine:
    """A database that is open. Work is a function over a connection; it runs in that connection's thread.

    What reads and writes raises `StoreError`, `StorageFullError` when nothing can be written,
    `StoreDamagedError`, and `OverloadedError` when the database cannot be asked now or the store is being
    closed. What only a shared database can tell is never told here.
    """

    is_shared = False
    """Whether other processes change what is stored."""
    measure: Callable[[Database], Sizes]
    """What finds out how large the store is: a function to be read with."""
    measure_feed: Callable[[Database, int], int] | None = None
    """What finds out how much less is stored without a feed; None where all is measured in no time."""

    def __init__(self) -> None:
        self.condition = Condition()
        """What is known of how the database fares."""
        self.on_change: Callable[[int], None] = lambda _: None
        """Told the number of each feed that a commit has changed, on the event loop, before whoever asked for
        it is answered; also where a COMMIT is said to have failed, which may be done. Nothing is told of what
        failed before: the feed is what it was."""

    @property
    def traffic(self) -> Traffic:
        """What goes on between it and the database."""
        return Traffic()

    async def read(
        self,
        work: Callable[[Database], _T],
        *,
        is_first: bool = False,
        is_long: bool = False,
        is_single: bool = False,
    ) -> _T:
        """Return what a function finds; all of it is of one moment.

        Args:
            work: It changes nothing.
            is_first: Whether whoever asks has only come, and may wait until others are further.
            is_long: Whether it looks at all that is stored, which may take minutes; no reader waits for it.
            is_single: Whether it is one SELECT, which needs no transaction.
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
        """Let a function change what is stored, all of it or nothing, and return its result.

        Args:
            work: It may run twice, so it does nothing but SQL.
            feed: The feed that it changes; None where it changes none that is known yet.
            is_alone: Whether its transaction is not to be shared.
            is_lasting: Whether a crash of the machine that the database is on may not undo it; else nothing
                waits for its disk. What lasts takes with it all that was written before.
            tell: Told the result, instead of `on_change` that the feed has changed.
        """
        raise NotImplementedError

    async def write_single(self, work: Callable[[Database], _T]) -> _T:
        """As `write`, by one statement that may be done twice; of a shared database."""
        raise NotImplementedError

    def write_in_thread(self, work: Callable[[Database], _T]) -> _T:
        """As `write_at_once`, in a thread that waits for it; of a shared database."""
        raise NotImplementedError

    async def write_at_once(self, work: Callable[[Database], _T]) -> _T:
        """As `write`, whatever else waits, for what is worth nothing when it comes late; of a shared one."""
        raise NotImplementedError

    def listen(self, kind: str, callback: Callable[[str], None]) -> None:
        """Have a function told, on the event loop, the words of each notice of a kind (pg_notify)."""

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Have a function called when notices come again after a time in which some may have been missed."""

    def on_replaced(self, callback: Callable[[], None]) -> None:
        """Have a function called before those, where the database may be another one than before."""

    async def versions(self, feeds: Collection[int]) -> Mapping[int, Version]:
        """Return what feeds are now, those that there are: a read as cheap as there is one."""
        return await self.read(lambda db: read_versions(db, feeds), is_single=True)
