"""The one cache of feeds, for their answers and their refreshes.

`Store.write` reports each commit before its caller continues: `drop` removes the changed feed, `renew`
replaces its row, `replace` its text. So cached feeds match the database as of now or of the request. A read
that a change overtakes fills nothing. A URL leads to the same feed until its deletion.

If other processes write, `wholefeed.service.checking` validates cached feeds. No function here waits or
reads.
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
    """Cached feeds by URL, at most `max_bytes` (0: none). The least recently requested feed goes first."""

    def __init__(self, max_bytes: int) -> None:
        parsed_bytes = max_bytes // _PARSED_SHARE
        self._max_bytes = max_bytes - parsed_bytes
        self._held: OrderedDict[int, CachedFeed] = OrderedDict()  # by feed, the one asked for last at the end
        self._feeds: dict[str, int] = {}  # by URL
        self._waiting: dict[int, int] = {}  # answers that wait for a feed's refresh
        self._bytes = self._hits = self._misses = 0
        self.generation = 0  # number of changes to any feed
        self._changed: dict[int, int] = {}  # `generation` at each feed's last change
        self._all_changed = 0  # the same for all feeds not in `_changed`
        self.parsed = ParsedDocuments(parsed_bytes)  # by content: a change of their feed does not affect them

    @property
    def usage(self) -> Usage:
        return Usage(len(self._held), self._bytes + self.parsed.bytes, self._hits, self._misses)

    def find(self, url: str) -> CachedFeed | None:
        return self._held.get(self._feeds.get(url, 0))

    def note_asked(self, held: CachedFeed | None) -> None:
        """Count a request, once for each answer."""
        if held is None:
            self._misses += 1
            return
        self._hits += 1
        feed_id = held.snapshot.feed.id
        if self._held.get(feed_id) is held:
            self._held.move_to_end(feed_id)

    def of(self, feed_id: int) -> CachedFeed | None:
        return self._held.get(feed_id)

    @property
    def feeds(self) -> list[int]:
        return list(self._held)

    # Filling it

    def put(self, snapshot: Snapshot, url: str, since: int) -> CachedFeed | None:
        """Cache a feed read for a URL; return None if it has changed or does not fit.

        `since` is `generation` before the reads of the URL's feed and of the snapshot.
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
        """Add bytes to a feed, removing other feeds for room; return whether there is room."""
        feed_id = held.snapshot.feed.id
        if self._held.get(feed_id) is not held or held.bytes + size > self._max_bytes // _SHARE:
            return False
        held.bytes += size
        self._bytes += size
        self._held.move_to_end(feed_id)
        while self._bytes > self._max_bytes:
            self._remove(next(iter(self._held)))
        return True

    # Changes to a feed

    def has_changed(self, feed_id: int, since: int) -> bool:
        """Whether a read of a feed at generation `since` may be out of date."""
        return since < self._changed.get(feed_id, self._all_changed)

    def _note_change(self, feed_id: int) -> None:
        if len(self._changed) >= MAX_CHANGES:
            self.doubt_reads()
        self.generation += 1
        self._changed[feed_id] = self.generation

    def doubt_reads(self) -> None:
        """Let no running read fill the cache: any feed may have changed."""
        self.generation += 1
        self._changed.clear()
        self._all_changed = self.generation

    def drop(self, feed_id: int) -> None:
        """Remove a changed feed; running reads of it fill nothing."""
        self._note_change(feed_id)
        self._remove(feed_id)

    def drop_all(self) -> None:
        """Remove all feeds: any may have changed."""
        self.doubt_reads()
        for feed_id in list(self._held):
            self._remove(feed_id)

    def renew(self, feed: FeedRow, *, is_unchanged: bool = False) -> None:
        """Replace the row of a feed with unchanged text; drop answers if a column behind them has changed.

        `is_unchanged`: documents and failures stay the same, too.
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
        """Take a publication; cache the feed if an answer waits for it and all blocks are in memory.

        `new` has the blocks of new segments.
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
        """Have the feed cached at a publication while the context lasts: an answer waits for it."""
        self._waiting[feed_id] = self._waiting.get(feed_id, 0) + 1
        try:
            yield
        finally:
            self._waiting[feed_id] -= 1
            if not self._waiting[feed_id]:
                del self._waiting[feed_id]

    def confirm(self, feed_id: int, version: Version | None) -> None:
        """Remove a feed unless its cached version is current; None: the feed is deleted."""
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

    # The start of the next refresh

    def beginning(self, feed_id: int) -> tuple[FeedRow, Beginning] | None:
        """Return a feed's row and beginning: a refresh without changes then reads nothing."""
        held = self._held.get(feed_id)
        found: Beginning | None = None if held is None else held.made(_BEGINNING)
        return None if held is None or found is None else (held.snapshot.feed, found)

    def keep_beginning(self, feed_id: int, found: Beginning) -> None:
        held = self._held.get(feed_id)
        # Detached documents are deleted later without notice, so a feed with any is read each time.
        if held is not None and all(row.rank is not None for row in found.rows):
            held.keep_made(_BEGINNING, found, _beginning_size(found))


class Usage(NamedTuple):
    feeds: int
    bytes: int
    hits: int
    misses: int


class CachedFeed:
    """One feed in memory. After its removal only running answers use it."""

    def __init__(self, memory: Memory, snapshot: Snapshot) -> None:
        self._memory = memory
        self._made: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self.snapshot = snapshot  # its segments may be gone from the store: see `blocks`
        self.blocks: Final[dict[int, bytes]] = {}  # by segment
        self.urls: Final[set[str]] = set()
        self.is_collecting = False  # whether an answer is being collected for the cache; one at a time
        self.asked_at = snapshot.feed.asked_at
        self.bytes = 0

    @property
    def is_whole(self) -> bool:
        """Whether all text is in memory, so nothing has to stay readable in the store."""
        return all(each.id in self.blocks for each in self.snapshot.segments if each.length)

    def keep_block(self, segment_id: int, block: bytes) -> None:
        """Cache a block, if it is small and there is room."""
        is_wanted = len(block) <= LARGEST_BLOCK_BYTES and segment_id not in self.blocks
        if is_wanted and self._memory.grow(self, sys.getsizeof(block) + _ENTRY_BYTES):
            self.blocks[segment_id] = block

    def made(self, key: Hashable) -> Any:
        found = self._made.get(key)
        return None if found is None else found[0]

    def keep_made(self, key: Hashable, value: object, size: int) -> None:
        """Cache a product of the snapshot alone, if there is room for `size` bytes."""
        while len(self._made) >= _MOST_MADE:
            self.let_go(next(iter(self._made)))
        size += _ENTRY_BYTES
        if key not in self._made and self._memory.grow(self, size):
            self._made[key] = value, size

    def let_go(self, key: Hashable) -> None:
        found = self._made.pop(key, None)
        if found is not None:
            self._memory.grow(self, -found[1])


class Beginning(NamedTuple):
    """Stored state at the start of a refresh, without the feed's row."""

    rows: list[DocumentRow]
    """The subscription document's time of the last 304 may be too old; no decision uses it."""
    failures: Failures


_BEGINNING: Final = "beginning"


MAX_CHANGES: Final = 4096  # feeds in `Memory._changed`


# Sizes

_SHARE: Final = 4  # one feed takes at most 1/4 of the memory
_PARSED_SHARE: Final = 8  # parsed documents take 1/8
LARGEST_BLOCK_BYTES: Final = 1 << 18
"""Larger blocks are not cached: reading costs little beside sending."""
_MOST_MADE: Final = 16
"""Answers and views of one feed. Each Host, signature and parameter makes another."""
_ENTRY_BYTES: Final = 200  # of one table entry, with its key
_OVERHEAD_BYTES: Final = 2048  # of a feed's objects and tables, beside those counted
_NOTE_BYTES: Final = 600
_PAIR_BYTES: Final = 200  # beside the texts, which publishers may make long


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
# No answer depends on these columns: a stored document is not published yet.
_APART: Final = ("asked_at", *AGES, "revision")
_of_answers: Final = attrgetter(*(each.name for each in fields(FeedRow) if each.name not in _APART))
