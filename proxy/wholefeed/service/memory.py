"""What is held in memory of the feeds that were asked for lately, and whether it is still so.

    memory = Published(max_bytes)
    held = memory.find(url)                          # None: ask the store
    with memory.filling() as fill:                   # before the read of the store begins
        snapshot = ...
        held = memory.put(fill, url, snapshot)       # None: it has changed meanwhile, or is too large

`Published` holds what answers are made of, and what is made of that. What a refresh publishes while an answer
waits for it is held from then on (`replace`).

Whatever changes what is sent of a feed drops it, after the commit and before whoever asked for the change is
told (`drop`), or gives its row where the text stays as it is (`renew`). So what is held is what the database
says, or said when the request came. A read that either has overtaken fills nothing: it may have seen the feed
as it was. A URL leads to the same feed until that is forgotten.

Where other processes change the database, too, `Checks` compares what is held with it each time. But for that
nothing here waits or reads.

With what is held of a feed goes what its next refresh starts from (`Beginnings`).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    nullcontext,
    suppress,
)
from dataclasses import fields
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from wholefeed.config.tables import LimitsConfig
from wholefeed.core.refresh.port import Attempt
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.futures import within
from wholefeed.service.documents import ParsedDocuments
from wholefeed.store.base import changed
from wholefeed.store.rows import DocumentRow, Failures, FeedRow, SegmentRow, Snapshot
from wholefeed.store.store import Store
from wholefeed.store.tables import feeds
from wholefeed.store.tables.feeds import AGES, Version, version_of


class Published:
    """Feeds as they are sent, found by the URLs that lead to them; those not asked for longest go first.

    Args:
        max_bytes: What they may come to; 0: nothing is held.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[int, Held] = OrderedDict()
        """By feed, those asked for last at the end."""
        self._feeds: dict[str, int] = {}
        """By the URLs that were asked for."""
        self._awaited = Awaited()
        self._changes = _Changes()
        self._bytes = self._hits = self._misses = 0

    @property
    def usage(self) -> Usage:
        return Usage(len(self._held), self._bytes, self._hits, self._misses)

    def find(self, url: str) -> Held | None:
        """Return what is held of the feed that a URL leads to."""
        held = self._held.get(self._feeds.get(url, 0))
        if held is None:
            self._misses += 1
            return None
        self._hits += 1
        self._held.move_to_end(held.snapshot.feed.id)
        return held

    def look(self, url: str) -> Held | None:
        """Return what `find` does, for whoever makes no use of it: it is not counted."""
        return self._held.get(self._feeds.get(url, 0))

    def of(self, feed_id: int) -> Held | None:
        """Return what is held of a feed, whatever leads to it."""
        return self._held.get(feed_id)

    @property
    def feeds(self) -> list[int]:
        """The numbers of those that are held."""
        return list(self._held)

    def filling(self) -> AbstractContextManager[Fill]:
        """Watch for changes while the store is read."""
        return self._changes.watched()

    def put(self, fill: Fill, url: str, snapshot: Snapshot) -> Held | None:
        """Hold a feed that was read, unless it has changed since the read began.

        Args:
            fill: Begun before it was read what the URL leads to, and the snapshot.
            url: What was asked for, and leads to the feed.
            snapshot: The feed.

        Returns:
            What is held of this very snapshot; None when nothing is.
        """
        feed_id = snapshot.feed.id
        if not self._max_bytes or fill.has_changed(feed_id):
            return None
        held = self._held.get(feed_id)
        if held is None or held.snapshot != snapshot:
            held = self._hold(snapshot)
        if held is not None:
            self._lead(url, held)
        return held

    def _hold(
        self, snapshot: Snapshot, blocks: Mapping[int, bytes] | None = None, urls: Iterable[str] = ()
    ) -> Held | None:
        feed_id = snapshot.feed.id
        self._remove(feed_id)
        held = self._held[feed_id] = Held(self, snapshot)
        if not self.grow(held, _snapshot_size(snapshot)):
            self._remove(feed_id)
            return None
        for segment_id, block in (blocks or {}).items():
            held.keep_block(segment_id, block)
        for url in urls:
            self._lead(url, held)
        return held

    def _lead(self, url: str, held: Held) -> None:
        if url not in held.urls and self.grow(held, 2 * _ENTRY_BYTES + sys.getsizeof(url)):
            held.urls.add(url)
            self._feeds[url] = held.snapshot.feed.id

    def awaited(self, feed_id: int) -> AbstractContextManager[None]:
        """Say that an answer waits for the refresh of a feed: what that publishes is held at once."""
        return self._awaited.by_answer(feed_id)

    def replace(self, snapshot: Snapshot, new: Mapping[int, bytes]) -> None:
        """Hold what has been published just now, if it is waited for and all of its text is there.

        Its key leads to it, whatever else does. What stays of it may have been held before it changed.
        """
        feed_id = snapshot.feed.id
        self.drop(feed_id)
        known = {**self._awaited.taken(feed_id), **new}
        blocks = {each.id: known[each.id] for each in snapshot.segments if each.id in known}
        if feed_id not in self._awaited or len(blocks) < len(snapshot.segments):
            return
        if self._max_bytes:
            self._hold(snapshot, blocks, (snapshot.feed.url,))

    def drop(self, feed_id: int) -> None:
        """Let go of a feed that has changed, and of what is being read of it."""
        self._changes.note(feed_id)
        held = self._remove(feed_id)
        if held is not None:
            self._awaited.leave(feed_id, held.blocks)

    def drop_all(self) -> None:
        """Let go of everything: any feed may have changed."""
        self._changes.note_all()
        self._awaited.leave_nothing()
        for feed_id in list(self._held):
            self._remove(feed_id)

    def doubt_all(self) -> None:
        """Fill nothing from what is being read now: any feed may have changed. What is held stays."""
        self._changes.note_all()

    def confirm(self, feed_id: int, version: Version | None) -> None:
        """Let go of a feed that is another one now; None: there is none any more."""
        held = self._held.get(feed_id)
        if held is None:
            return
        feed = held.snapshot.feed
        if version is None or version.published != version_of(feed).published:
            self.drop(feed_id)
        elif any(getattr(feed, name) != value for name, value in version.ages.items()):
            feed = changed(feed, **version.ages)
            held.snapshot = changed(held.snapshot, feed=feed)

    def renew(self, feed: FeedRow) -> None:
        """Take the row of a feed, whose text stays; what was made of a row that said something else goes."""
        held = self._held.get(feed.id)
        self._changes.note(feed.id)
        if held is None:
            return
        before = held.snapshot
        snapshot = Snapshot(feed, before.segments, before.missing)
        if _of_answers(feed) == _of_answers(before.feed):
            held.snapshot = snapshot
        else:
            self._hold(snapshot, held.blocks, held.urls)

    def grow(self, held: Held, size: int) -> bool:
        """Count bytes of a feed, letting go of those not asked for longest; return whether there is room."""
        feed_id = held.snapshot.feed.id
        if self._held.get(feed_id) is not held or held.bytes + size > self._max_bytes // _SHARE:
            return False
        held.bytes += size
        self._bytes += size
        self._held.move_to_end(feed_id)
        while self._bytes > self._max_bytes:
            self._remove(next(iter(self._held)))
        return True

    def _remove(self, feed_id: int) -> Held | None:
        held = self._held.pop(feed_id, None)
        if held is None:
            return None
        self._bytes -= held.bytes
        for url in held.urls:
            if self._feeds.get(url) == feed_id:
                del self._feeds[url]
        return held


class Usage(NamedTuple):
    """How much is held, and how often that was of use."""

    feeds: int
    bytes: int
    hits: int
    misses: int


_SHARE: Final = 4
"""One feed takes at most this part of the memory."""


class Held:
    """What is held of one feed; of no use to anybody but the answers under way once it has been dropped."""

    def __init__(self, memory: Published, snapshot: Snapshot) -> None:
        self._memory = memory
        self._made: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self.snapshot = snapshot
        """As read, or renewed since. Nothing keeps its segments readable: see `blocks`."""
        self.blocks: Final[dict[int, bytes]] = {}
        """Those held, by segment."""
        self.urls: Final[set[str]] = set()
        """What leads to it."""
        self.asked_at = snapshot.feed.asked_at
        self.bytes = 0

    @property
    def is_whole(self) -> bool:
        """Whether all of its text is here, so that nothing has to be kept readable for it."""
        return all(each.id in self.blocks for each in self.snapshot.segments if each.length)

    def keep_block(self, segment_id: int, block: bytes) -> None:
        """Hold a block, if it is small enough and there is room."""
        is_wanted = len(block) <= LARGEST_BLOCK_BYTES and segment_id not in self.blocks
        if is_wanted and self._memory.grow(self, sys.getsizeof(block) + _ENTRY_BYTES):
            self.blocks[segment_id] = block

    def made(self, key: Hashable) -> Any:
        """Return what has been made of the feed under that key, or None."""
        found = self._made.get(key)
        return None if found is None else found[0]

    def keep_made(self, key: Hashable, value: object, size: int) -> None:
        """Hold something made of the snapshot alone, if there is room; `size` in bytes."""
        while len(self._made) >= _MOST_MADE:
            self._memory.grow(self, -self._made.popitem(last=False)[1][1])
        size += _ENTRY_BYTES
        if key not in self._made and self._memory.grow(self, size):
            self._made[key] = value, size

    def let_go(self, key: Hashable) -> None:
        """Let go of what was made under that key."""
        found = self._made.pop(key, None)
        if found is not None:
            self._memory.grow(self, -found[1])


LARGEST_BLOCK_BYTES: Final = 1 << 18
"""Blocks above it are read from the store each time: reading them costs little beside sending them."""
_MOST_MADE: Final = 16
"""Of one feed; how many there could be is up to whoever asks: by what host name, with what signature."""
_ENTRY_BYTES: Final = 200
"""Of what is put into a table: its place there and the key."""
_OVERHEAD_BYTES: Final = 2048
"""Of a feed: the objects and tables around what is counted."""


def _snapshot_size(snapshot: Snapshot) -> int:
    size = _OVERHEAD_BYTES + _row_size(snapshot.feed, _of_feed) + sys.getsizeof(snapshot.segments)
    size += sum(_row_size(each, _of_segment) for each in snapshot.segments)
    return size + sum(_row_size(each, _of_attempt) for each in snapshot.missing)


def _row_size(row: object, values: Callable[[object], tuple[object, ...]]) -> int:
    return sys.getsizeof(row) + sum(map(sys.getsizeof, values(row)))


_FEED: Final = tuple(each.name for each in fields(FeedRow))
_of_feed: Final = attrgetter(*_FEED)
_of_segment: Final = attrgetter(*(each.name for each in fields(SegmentRow)))
_of_attempt: Final = attrgetter(*(each.name for each in fields(Attempt)))
_APART: Final = ("asked_at", *AGES, "revision")
"""Columns that nothing which is made of a feed depends on: a document that is stored is not published yet."""
_of_answers: Final = attrgetter(*(name for name in _FEED if name not in _APART))


# What has happened meanwhile


class Fill:
    """Tells which feeds have changed while the store was read; once that has ended nobody knows.

        with published.filling() as fill:           # before the read of the store begins
            ...
            if not fill.has_changed(feed_id):       # what was read is the feed as it is

    Every answer with a stale feed enters one.
    """

    __slots__ = ("_changes", "_since", "has_ended")

    def __init__(self, changes: _Changes) -> None:
        self._changes = changes
        self._since = changes.count
        self.has_ended = False

    def __enter__(self) -> Fill:
        self._changes.readers += 1
        self._since = self._changes.count
        return self

    def __exit__(self, *_: object) -> None:
        self.has_ended = True
        self._changes.readers -= 1
        if not self._changes.readers:
            self._changes.at.clear()

    def has_changed(self, feed_id: int) -> bool:
        """Whether a feed has changed, or may have."""
        changes = self._changes
        return self.has_ended or max(changes.at.get(feed_id, 0), changes.all_at) > self._since


class _Changes:
    """When feeds have changed, counted; kept as long as anybody is reading, and many may for seconds."""

    def __init__(self) -> None:
        self.count = 0
        self.at: dict[int, int] = {}
        self.all_at = 0
        self.readers = 0

    def note(self, feed_id: int) -> None:
        self.count += 1
        if self.readers:
            self.at[feed_id] = self.count

    def note_all(self) -> None:
        self.count += 1
        self.all_at = self.count

    def watched(self) -> Fill:
        return Fill(self)


class Awaited:
    """Feeds whose refresh answers wait for.

    What it publishes is held at once, with what was held before.

        with awaited.by_answer(feed_id):
            awaited.leave(feed_id, blocks)          # it was dropped
            ...
            known = awaited.taken(feed_id)          # it is published again
    """

    def __init__(self) -> None:
        self._answers: dict[int, int] = {}
        """How many wait, by feed."""
        self._left: dict[int, Mapping[int, bytes]] = {}
        """The blocks of feeds that were dropped, until they are published again."""

    def __contains__(self, feed_id: object) -> bool:
        return feed_id in self._answers

    def by_answer(self, feed_id: int) -> AbstractContextManager[None]:
        return _Waiting(self, feed_id)

    def begin(self, feed_id: int) -> None:
        self._answers[feed_id] = self._answers.get(feed_id, 0) + 1

    def end(self, feed_id: int) -> None:
        self._answers[feed_id] -= 1
        if not self._answers[feed_id]:
            del self._answers[feed_id]
            self._left.pop(feed_id, None)

    def leave(self, feed_id: int, blocks: Mapping[int, bytes]) -> None:
        """Keep the blocks of a feed that is dropped, if it is waited for."""
        if feed_id in self._answers:
            self._left[feed_id] = blocks

    def taken(self, feed_id: int) -> Mapping[int, bytes]:
        """Return what was left of a feed, once."""
        return self._left.pop(feed_id, {})

    def leave_nothing(self) -> None:
        self._left.clear()


class _Waiting:
    """An answer that waits: each with a stale feed does, and a generator would cost three times as much."""

    __slots__ = ("_awaited", "_feed_id")

    def __init__(self, awaited: Awaited, feed_id: int) -> None:
        self._awaited = awaited
        self._feed_id = feed_id

    def __enter__(self) -> None:
        self._awaited.begin(self._feed_id)

    def __exit__(self, *_: object) -> None:
        self._awaited.end(self._feed_id)


# What refreshes start from


class Beginnings:
    """What refreshes start from, of feeds that are held: one that changes nothing reads nothing.

    It goes with what is held of the feed: whatever changes the feed drops both, and the memory of both is
    bounded together. Where other processes change the store none is held. The documents as they were parsed
    are held for themselves: they are what they are, whoever changes the feed.

    Args:
        published: What is held of feeds.
        parsed_bytes: What documents may come to that are held as they were parsed.
    """

    def __init__(self, published: Published, parsed_bytes: int = 0) -> None:
        self._published = published
        self.parsed = ParsedDocuments(parsed_bytes)
        self.watched = published.filling
        """Watches for changes while one is read."""

    def find(self, feed: int) -> tuple[FeedRow, Beginning] | None:
        """Return the feed's row and what a refresh of it starts from, if that is held."""
        held = self._published.of(feed)
        found: Beginning | None = None if held is None else held.made(_KEY)
        return None if held is None or found is None else (held.snapshot.feed, found)

    def keep(self, feed: int, found: Beginning) -> None:
        """Hold what was read of a feed as it is held now.

        Detached documents are deleted some day without a word, so what has any is read each time.
        """
        held = self._published.of(feed)
        if held is not None and all(row.rank is not None for row in found.rows):
            held.keep_made(_KEY, found, _beginning_size(found))

    def let_go(self, feed: int) -> None:
        """Forget it: something is written that it would not tell."""
        held = self._published.of(feed)
        if held is not None:
            held.let_go(_KEY)


_KEY: Final = "beginning"


class Beginning(NamedTuple):
    """What is stored of a feed beside its row."""

    rows: list[DocumentRow]
    """That of the subscription document does not tell when it was found to be unchanged since: no decision
    goes by that."""
    failures: Failures


_NOTE_BYTES: Final = 600
_PAIR_BYTES: Final = 200
"""Beside the texts, which publishers have made as long as they like."""
_of_document: Final = attrgetter(*(each.name for each in fields(DocumentRow)))


def _beginning_size(found: Beginning) -> int:
    missing, last = found.failures
    attempts = missing if last is None else (*missing, last)
    size = sum(_row_size(each, _of_attempt) for each in attempts)
    return size + sum(map(_document_size, found.rows))


def _document_size(row: DocumentRow) -> int:
    inside = _PAIR_BYTES * len(row.links) + _sum(row.links.values())
    inside += sum(_NOTE_BYTES + _sum(note.values()) for note in row.notes)
    return inside + _row_size(row, _of_document)


def _sum(values: Iterable[object]) -> int:
    return sum(map(sys.getsizeof, values))


# Where other processes change the database

PATIENCE_SECONDS: Final = 0.5
"""So long whoever asks waits for the database."""
_LOOKS: Final = 5
"""That time passes in so many: each needs the event loop, so that a database is not taken for silent where it
is the loop that is late, with the answer there."""
_MOST_DOUBTED: Final = 1000
"""Feeds that are asked for at once because notices were lost."""
UNASKED_SECONDS: Final = 1.0
"""For so long nobody asks a database again that could not say."""
LEFT_SECONDS: Final = 1.0
"""For what is stored, where a publisher has taken all of an answer's time."""


class Checks:
    """Whether what is held is still what the database says, where other processes change it too.

        checks = Checks(store, published, limits)
        await checks.check(url)         # right before what is held of the URL is made use of
        async with checks.answering():
            ...                         # an answer is put together, but waits for the database in bounds

    A reader who asks two processes in turn never sees a feed go back: what one of them has sent was
    committed, and the other one asks what the feed is now after the request has come. All that wait share a
    query. A notice of a change would not do: it may come after others have read the change.

    While the database does not answer, what is held is taken as it is. Where notices were lost meanwhile, all
    is compared with what it answers first; of a database that may be another one now, nothing is kept.

    Args:
        store: Where feeds are.
        published: What is held of them.
        limits: How long an answer may take.
    """

    def __init__(self, store: Store, published: Published, limits: LimitsConfig) -> None:
        self.are_needed = store.is_shared
        """Whether others change the database; else nothing is asked."""
        self._store = store
        self._published = published
        self._respond_within_seconds = limits.respond_within_seconds
        self._feeds = set[int]()
        """Those to be asked for next."""
        self._doubted = set[int]()
        """Those to be asked for with the next ones, since notices about them may have been lost."""
        self._has_answered = asyncio.Event()
        """Set when they have been."""
        self._task: asyncio.Task[None] | None = None
        self._asked_at = 0.0
        """When the query under way was begun."""
        self._is_late = False
        """Whether somebody has waited in vain for it."""
        self._unasked_until = 0.0
        store.on_replaced(published.drop_all)
        store.on_lost(self._doubt)

    @property
    def are_blind(self) -> bool:
        """Whether the database did not answer a moment ago."""
        return self._is_late or time.monotonic() < self._unasked_until

    async def check(self, url: str) -> None:
        """Let go of what is held of a URL if that is no longer so; without a database, leave it."""
        held = self._published.look(url) if self.are_needed else None
        if held is None or self.are_blind:
            return
        self._feeds.add(held.snapshot.feed.id)
        self._begin()
        answered = self._has_answered
        for _ in range(_LOOKS):
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS / _LOOKS):
                    await answered.wait()
                    return
        asked_seconds = time.monotonic() - self._asked_at
        self._is_late = self._is_late or (self._task is not None and asked_seconds > PATIENCE_SECONDS / 2)

    async def find(self, url: str) -> Held | None:
        """Return what is held of the feed that a URL leads to, once it has been checked."""
        await self.check(url)
        return self._published.find(url)

    def answering(self) -> AbstractAsyncContextManager[None]:
        """Let an answer be put together, as `in_time` does, that waits for no publisher."""
        return self.bounds(0.0)()

    def bounds(self, wait_seconds: float) -> Callable[[], AbstractAsyncContextManager[None]]:
        """Return what does as `in_time`, as often as it is called, until an answer begun now has to leave.

        Args:
            wait_seconds: How long whoever asks waits for a publisher, where that is more than is configured.
        """
        if not self.are_needed:
            return nullcontext
        latest_at = time.monotonic() + max(wait_seconds, self._respond_within_seconds) + LEFT_SECONDS
        return lambda: within(latest_at - time.monotonic(), _silent())

    async def require_answer(self) -> None:
        """Make sure that feeds can be read.

        Raises:
            OverloadedError: The database does not answer.
        """
        if self.are_needed:
            async with self.in_time(LEFT_SECONDS / 2):
                await self._store.read(lambda db: feeds.find(db, 0), is_single=True)

    def in_time(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """Let something be read for an answer, but not for longer; only where the database is shared.

        A file does not fall silent, and who waits for it is not told to come again.

        Raises:
            OverloadedError: The database did not answer in time.
        """
        return within(seconds, _silent()) if self.are_needed else nullcontext()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def _doubt(self) -> None:
        """Look at all that is held, as soon as the database answers."""
        self._published.doubt_all()
        self._doubted.update(self._published.feeds)
        self._unasked_until = 0.0
        if self._doubted:
            self._begin()

    def _begin(self) -> None:
        if self._task is None:
            self._asked_at = time.monotonic()
            self._task = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        """Ask for feeds until nobody waits for any, and none is in doubt that can be asked for."""
        try:
            await self._ask_once()
            while self._feeds or (self._doubted and time.monotonic() >= self._unasked_until):
                await self._ask_once()
        finally:
            self._task = None

    async def _ask_once(self) -> None:
        feeds, self._feeds = self._feeds.union(islice(self._doubted, _MOST_DOUBTED)), set()
        answered, self._has_answered = self._has_answered, asyncio.Event()
        self._asked_at = time.monotonic()
        try:
            found = await self._store.versions(feeds)
            for feed_id in feeds:
                self._published.confirm(feed_id, found.get(feed_id))
            self._doubted -= feeds
        except (StoreError, OverloadedError):
            self._unasked_until = time.monotonic() + UNASKED_SECONDS
        except Exception:
            self._published.drop_all()  # what cannot be compared is not trusted
            raise
        finally:
            self._is_late = False
            answered.set()


def _silent() -> OverloadedError:
    return OverloadedError("the database does not answer in time")
