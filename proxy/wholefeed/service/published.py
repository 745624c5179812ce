"""What answers are made of, held in memory for the feeds that were asked for lately.

    memory = Published(max_bytes)
    held = memory.find(url)                          # None: ask the store
    with memory.filling() as fill:                   # before the read of the store begins
        snapshot = ...
        held = memory.put(fill, url, snapshot)       # None: it has changed meanwhile, or is too large

What a refresh publishes while an answer waits for it is held from then on (`replace`).

Whatever changes what is sent of a feed drops it, after the commit and before whoever asked for the change is
told (`drop`), or gives its row where the text stays as it is (`renew`). So what is held is what the database
says, or said when the request came. A read that either has overtaken fills nothing: it may have seen the feed
as it was. A URL leads to the same feed until that is forgotten.
Where other processes change the database, too, what is held is compared with it each time (`confirm`).
Nothing here waits or reads.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, NamedTuple

from wholefeed.core.refresh.stored import Attempt
from wholefeed.service.awaited import Awaited
from wholefeed.service.changes import Changes, Fill
from wholefeed.store.changing import changed
from wholefeed.store.rows import FeedRow, SegmentRow, Snapshot
from wholefeed.store.tables.versions import Version, version_of

LARGEST_BLOCK_BYTES: Final = 1 << 18
"""Blocks above it are read from the store each time: reading them costs little beside sending them."""
_SHARE: Final = 4
"""One feed takes at most this part of the memory."""
_MOST_MADE: Final = 16
"""Of one feed; how many there could be is up to whoever asks: by what host name, with what signature."""
_OVERHEAD_BYTES: Final = 2048
"""Of a feed: the objects and tables around what is counted."""
_ENTRY_BYTES: Final = 200
"""Of what is put into a table: its place there and the key."""


class Usage(NamedTuple):
    """How much is held, and how often it was of use."""

    feeds: int
    bytes: int
    hits: int
    misses: int


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


class Published:
    """The memory of one service.

    Args:
        max_bytes: What it may come to; 0: nothing is held.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[int, Held] = OrderedDict()
        """By feed, those asked for last at the end."""
        self._feeds: dict[str, int] = {}
        """By the URLs that were asked for."""
        self._awaited = Awaited()
        self._changes = Changes()
        self._bytes = self._hits = self._misses = 0

    @property
    def usage(self) -> Usage:
        """How much is held now."""
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
        """Return the same, for whoever asks before it is made use of."""
        return self._held.get(self._feeds.get(url, 0))

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

    def of(self, feed_id: int) -> Held | None:
        """Return what is held of a feed, whatever leads to it."""
        return self._held.get(feed_id)

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

    def _hold(
        self, snapshot: Snapshot, blocks: Mapping[int, bytes] | None = None, urls: Iterable[str] = ()
    ) -> Held | None:
        feed_id = snapshot.feed.id
        self._remove(feed_id)
        held = self._held[feed_id] = Held(self, snapshot)
        if not self.grow(held, _size(snapshot)):
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

    def drop(self, feed_id: int) -> None:
        """Let go of a feed that has changed, and of what is being read of it."""
        self._changes.note(feed_id)
        held = self._remove(feed_id)
        if held is not None:
            self._awaited.leave(feed_id, held.blocks)

    @property
    def feeds(self) -> list[int]:
        """The numbers of the feeds that are held."""
        return list(self._held)

    def doubt_all(self) -> None:
        """Fill nothing from what is being read now: any feed may have changed. What is held stays."""
        self._changes.note_all()

    def drop_all(self) -> None:
        """Let go of everything: any feed may have changed."""
        self._changes.note_all()
        self._awaited.leave_nothing()
        for feed_id in list(self._held):
            self._remove(feed_id)

    def confirm(self, feed_id: int, version: Version | None) -> None:
        """Let go of a feed that is another one now; None: there is none any more."""
        held = self._held.get(feed_id)
        if held is None:
            return
        feed = held.snapshot.feed
        if version is None or version.published != version_of(feed).published:
            self.drop(feed_id)
        elif (feed.checked_at, feed.fresh_until) != (version.checked_at, version.fresh_until):
            feed = changed(feed, checked_at=version.checked_at, fresh_until=version.fresh_until)
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


_APART: Final = ("asked_at", "checked_at", "fresh_until", "revision")
"""Columns that nothing which is made of a feed depends on: a document that is stored is not published yet."""
_FEED: Final = tuple(each.name for each in fields(FeedRow))
_of_answers: Final = attrgetter(*(name for name in _FEED if name not in _APART))
_of_feed: Final = attrgetter(*_FEED)
_of_segment: Final = attrgetter(*(each.name for each in fields(SegmentRow)))
_of_attempt: Final = attrgetter(*(each.name for each in fields(Attempt)))


def _size(snapshot: Snapshot) -> int:
    size = _OVERHEAD_BYTES + _of(snapshot.feed, _of_feed) + sys.getsizeof(snapshot.segments)
    size += sum(_of(each, _of_segment) for each in snapshot.segments)
    return size + sum(_of(each, _of_attempt) for each in snapshot.missing)


def _of(row: object, values: Callable[[object], tuple[object, ...]]) -> int:
    return sys.getsizeof(row) + sum(map(sys.getsizeof, values(row)))
