"""What is held in memory of feeds: the one cache, for their answers and for their refreshes.

    memory = Memory(max_bytes)
    held = memory.find(url)                             # None: ask the store
    since = memory.generation                           # before the read of the store begins
    snapshot = ...
    held = memory.put(snapshot, url, since)             # None: it has changed meanwhile, or is too large

All that is held of a feed, and all that is made of that, stands in one `CachedFeed`. A commit of
`Store.write` that names the feed makes it old, before whoever asked for the change goes on: `drop` lets go
of it. Who knows what has become of the feed says so instead: its row (`renew`), or its text as well
(`replace`). So what is held is what the database says, or said when the request came. A read that a change
has overtaken fills nothing: it may have seen the feed as it was. A URL leads to the same feed until that is
forgotten.

Where other processes change the database, too, `wholefeed.service.checking` compares what is held with it.
Nothing here waits or reads.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

from wholefeed.core.refresh.stored import Attempt
from wholefeed.service.new_documents import ParsedDocuments
from wholefeed.store.rows import DocumentRow, Failures, FeedRow, SegmentRow, Snapshot
from wholefeed.store.tables.feed_table import AGES, Version, version_of


class Memory:
    """Feeds as they are sent, found by the URLs that lead to them; those not asked for longest go first.

    All of it comes to `max_bytes` at most; 0: nothing is held.
    """

    def __init__(self, max_bytes: int) -> None:
        parsed_bytes = max_bytes // _PARSED_SHARE
        self._max_bytes = max_bytes - parsed_bytes
        self._held: OrderedDict[int, CachedFeed] = OrderedDict()
        """By feed, those asked for last at the end."""
        self._feeds: dict[str, int] = {}
        """By the URLs that were asked for."""
        self._waiting: dict[int, int] = {}
        """How many answers wait for the refresh of a feed."""
        self._bytes = self._hits = self._misses = 0
        self.generation = 0
        """How often any feed has changed."""
        self._changed: dict[int, int] = {}
        """What `generation` was when a feed changed last."""
        self._all_changed = 0
        """What it was when any may have that is not among these."""
        self.parsed = ParsedDocuments(parsed_bytes)
        """Documents are what they are, whoever changes their feed."""

    @property
    def usage(self) -> Usage:
        return Usage(len(self._held), self._bytes + self.parsed.bytes, self._hits, self._misses)

    def find(self, url: str) -> CachedFeed | None:
        """Return what is held of the feed that a URL leads to."""
        return self._held.get(self._feeds.get(url, 0))

    def note_asked(self, held: CachedFeed | None) -> None:
        """Count that a feed is asked for, once for each answer; `held` is what was found of it."""
        if held is None:
            self._misses += 1
            return
        self._hits += 1
        feed_id = held.snapshot.feed.id
        if self._held.get(feed_id) is held:
            self._held.move_to_end(feed_id)

    def of(self, feed_id: int) -> CachedFeed | None:
        """Return what is held of a feed, whatever leads to it."""
        return self._held.get(feed_id)

    @property
    def feeds(self) -> list[int]:
        """The numbers of those that are held."""
        return list(self._held)

    # Filling it

    def put(self, snapshot: Snapshot, url: str, since: int) -> CachedFeed | None:
        """Hold a feed that was read for a URL; return what is held of this very snapshot.

        Nothing is if it has changed since the read began, of where the URL leads and of the snapshot:
        `since` is what `generation` was then.
        """
        feed_id = snapshot.feed.id
        if not self._max_bytes or self.has_changed(feed_id, since):
            return None
        held = self._held.get(feed_id)
        if held is None or held.snapshot != snapshot:
            held = self._hold(snapshot)
        if held is not None:
            self._lead(url, held)
        return held

    def _hold(
        self, snapshot: Snapshot, blocks: Mapping[int, bytes] | None = None, urls: Iterable[str] = ()
    ) -> CachedFeed | None:
        feed_id = snapshot.feed.id
        self._remove(feed_id)
        held = self._held[feed_id] = CachedFeed(self, snapshot)
        if not self.grow(held, _snapshot_size(snapshot)):
            self._remove(feed_id)
            return None
        for segment_id, block in (blocks or {}).items():
            held.keep_block(segment_id, block)
        for url in urls:
            self._lead(url, held)
        return held

    def _lead(self, url: str, held: CachedFeed) -> None:
        if url not in held.urls and self.grow(held, 2 * _ENTRY_BYTES + sys.getsizeof(url)):
            held.urls.add(url)
            self._feeds[url] = held.snapshot.feed.id

    def grow(self, held: CachedFeed, size: int) -> bool:
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

    # What becomes of a feed

    def has_changed(self, feed_id: int, since: int) -> bool:
        """Whether what was read of a feed, while `generation` was that or later, may be out of date."""
        return since < self._changed.get(feed_id, self._all_changed)

    def _note_change(self, feed_id: int) -> None:
        if len(self._changed) >= MAX_CHANGES:
            self.doubt_reads()
        self.generation += 1
        self._changed[feed_id] = self.generation

    def doubt_reads(self) -> None:
        """Let no read that is under way fill anything: any feed may have changed."""
        self.generation += 1
        self._changed.clear()
        self._all_changed = self.generation

    def drop(self, feed_id: int) -> None:
        """Let go of a feed that has changed, and of what is being read of it."""
        self._note_change(feed_id)
        self._remove(feed_id)

    def drop_all(self) -> None:
        """Let go of everything: any feed may have changed."""
        self.doubt_reads()
        for feed_id in list(self._held):
            self._remove(feed_id)

    def renew(self, feed: FeedRow, *, is_unchanged: bool = False) -> None:
        """Take the row of a feed whose text stays; what was made of one that said something else goes.

        `is_unchanged`: its documents and failures are what they were, too.
        """
        self._note_change(feed.id)
        held = self._held.get(feed.id)
        if held is None:
            return
        before = held.snapshot
        snapshot = Snapshot(feed, before.segments, before.missing)
        if _of_answers(feed) != _of_answers(before.feed):
            self._hold(snapshot, held.blocks, held.urls)
            return
        held.snapshot = snapshot
        if not is_unchanged:
            held.let_go(_BEGINNING)

    def replace(self, snapshot: Snapshot, new: Mapping[int, bytes]) -> None:
        """Take what has been published of a feed; hold it if an answer waits for it, with all of its text.

        `new` has the texts of new segments; what stays may have been held before.
        """
        feed_id = snapshot.feed.id
        self._note_change(feed_id)
        before = self._remove(feed_id)
        known = new if before is None else {**before.blocks, **new}
        blocks = {each.id: known[each.id] for each in snapshot.segments if each.id in known}
        if self._max_bytes and feed_id in self._waiting and len(blocks) == len(snapshot.segments):
            self._hold(snapshot, blocks, (snapshot.feed.url,))

    @contextmanager
    def await_feed(self, feed_id: int) -> Iterator[None]:
        """Have what is published of a feed meanwhile held at once: an answer waits for it."""
        self._waiting[feed_id] = self._waiting.get(feed_id, 0) + 1
        try:
            yield
        finally:
            self._waiting[feed_id] -= 1
            if not self._waiting[feed_id]:
                del self._waiting[feed_id]

    def confirm(self, feed_id: int, version: Version | None) -> None:
        """Let go of a feed that is another one now; None: there is none any more."""
        held = self._held.get(feed_id)
        if held is None:
            return
        feed = held.snapshot.feed
        known = version_of(feed)
        if version is None or version.published != known.published:
            self.drop(feed_id)
        elif version.ages != known.ages:
            feed = replace(feed, **version.ages._asdict())
            held.snapshot = replace(held.snapshot, feed=feed)

    def _remove(self, feed_id: int) -> CachedFeed | None:
        held = self._held.pop(feed_id, None)
        if held is None:
            return None
        self._bytes -= held.bytes
        for url in held.urls:
            if self._feeds.get(url) == feed_id:
                del self._feeds[url]
        return held

    # What the next refresh starts from

    def beginning(self, feed_id: int) -> tuple[FeedRow, Beginning] | None:
        """Return a feed's row and what a refresh starts from: one that changes nothing reads nothing."""
        held = self._held.get(feed_id)
        found: Beginning | None = None if held is None else held.made(_BEGINNING)
        return None if held is None or found is None else (held.snapshot.feed, found)

    def keep_beginning(self, feed_id: int, found: Beginning) -> None:
        """Hold what was read of a feed as it is now.

        Detached documents are deleted some day without a word, so what has any is read each time.
        """
        held = self._held.get(feed_id)
        if held is not None and all(row.rank is not None for row in found.rows):
            held.keep_made(_BEGINNING, found, _beginning_size(found))


class Usage(NamedTuple):
    """How much is held, and how often that was of use."""

    feeds: int
    bytes: int
    hits: int
    misses: int


class CachedFeed:
    """What is held of one feed; of no use to anybody but the answers under way once it has been dropped."""

    def __init__(self, memory: Memory, snapshot: Snapshot) -> None:
        self._memory = memory
        self._made: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self.snapshot = snapshot
        """As read, or renewed since. Nothing keeps its segments readable: see `blocks`."""
        self.blocks: Final[dict[int, bytes]] = {}
        """Those held, by segment."""
        self.urls: Final[set[str]] = set()
        """What leads to it."""
        self.is_collecting = False
        """Whether an answer of it is collected to be held while it is sent: one at a time."""
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
            self.let_go(next(iter(self._made)))
        size += _ENTRY_BYTES
        if key not in self._made and self._memory.grow(self, size):
            self._made[key] = value, size

    def let_go(self, key: Hashable) -> None:
        """Let go of what was made under that key."""
        found = self._made.pop(key, None)
        if found is not None:
            self._memory.grow(self, -found[1])


class Beginning(NamedTuple):
    """What is stored of a feed beside its row: what a refresh starts from."""

    rows: list[DocumentRow]
    """That of the subscription document does not tell when it was found to be unchanged since: no decision
    goes by that."""
    failures: Failures


_BEGINNING: Final = "beginning"


MAX_CHANGES: Final = 4096
"""Feeds whose change is remembered."""


# What it comes to

_SHARE: Final = 4
"""One feed takes at most this part of the memory."""
_PARSED_SHARE: Final = 8
"""This part of the memory is for documents that are parsed."""
LARGEST_BLOCK_BYTES: Final = 1 << 18
"""Blocks above it are read from the store each time: reading them costs little beside sending them."""
_MOST_MADE: Final = 16
"""Answers and views that are held of one feed. Each Host, signature and parameter makes another."""
_ENTRY_BYTES: Final = 200
"""Of what is put into a table: its place there and the key."""
_OVERHEAD_BYTES: Final = 2048
"""Of a feed: the objects and tables around what is counted."""
_NOTE_BYTES: Final = 600
_PAIR_BYTES: Final = 200
"""Beside the texts, which publishers have made as long as they like."""


def _snapshot_size(snapshot: Snapshot) -> int:
    rows = (snapshot.feed, *snapshot.segments, *snapshot.missing)
    return _OVERHEAD_BYTES + sys.getsizeof(snapshot.segments) + sum(map(_row_size, rows))


def _beginning_size(found: Beginning) -> int:
    missing, last = found.failures
    rows = (*missing, *found.rows) if last is None else (*missing, last, *found.rows)
    size = sum(map(_row_size, rows))
    for row in found.rows:
        size += _PAIR_BYTES * len(row.links) + _sum(row.links.values())
        size += sum(_NOTE_BYTES + _sum(note.values()) for note in row.notes)
    return size


def _row_size(row: object) -> int:
    return sys.getsizeof(row) + _sum(_COLUMNS[type(row)](row))


def _sum(values: Iterable[object]) -> int:
    return sum(map(sys.getsizeof, values))


_COLUMNS: Final[dict[type, Callable[[Any], tuple[object, ...]]]] = {
    row: attrgetter(*(each.name for each in fields(row)))
    for row in (FeedRow, SegmentRow, Attempt, DocumentRow)
}
_APART: Final = ("asked_at", *AGES, "revision")
"""Columns that nothing which is made of a feed depends on: a document that is stored is not published yet."""
_of_answers: Final = attrgetter(*(each.name for each in fields(FeedRow) if each.name not in _APART))
