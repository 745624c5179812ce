"""Some of a feed's entries as people read them: the newest, the oldest, or those of a page.

    async with service.answer(url, wait_seconds=1.0) as reconstruction:
        newest = await read_entries(reconstruction.snapshot, store, 0, 50)
        total = entries_in(reconstruction.snapshot)
        both = await excerpt(reconstruction.snapshot, store, newest=5, oldest=2)

    Shown(identity, title, link, published, updated, author, content, base, enclosures, is_cut)

They are counted in output order (R20) from 0, the first. Of the feed's segments those alone are read that
hold them, a piece at a time, on threads: whatever the feed's size, what is in memory is a few MB. Entries
that are very long are cut short (`Shown.is_cut`). `content` is HTML of a stranger: who shows it sanitises it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import EPILOGUE, Address, compose_prologue
from wholefeed.core.compose.content import unmarked
from wholefeed.core.compose.deflate import Inflater
from wholefeed.core.compose.outline import Slice, between
from wholefeed.core.compose.shown import Shown, shown
from wholefeed.core.compose.views import entries_of
from wholefeed.core.formats import SEPARATOR, default_namespace
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.errors import ParseError
from wholefeed.core.parse.identities import absolute
from wholefeed.core.parse.limits import UNLIMITED
from wholefeed.core.terms import Family
from wholefeed.core.text.urls import is_http
from wholefeed.core.verbatim.well_known import ALL_PREFIXES
from wholefeed.store.rows import FeedRow, SegmentRow, Snapshot
from wholefeed.store.store import Store

MOST_ENTRIES: Final = 200
"""That are read at once."""
LONGEST_BYTES: Final = 1 << 18
"""Of an entry's text, what is read of it: a thick book has as much."""
ROOM_BYTES: Final = 1 << 22
"""Of the text of all entries that are read at once; what comes behind it is cut to `LEAST_BYTES`."""
LEAST_BYTES: Final = 1 << 14
_INFLATED_BYTES: Final = 1 << 16


class Excerpt(NamedTuple):
    """The two ends of a feed. No entry stands in both."""

    newest: tuple[Shown, ...]
    """The first in output order, in that order."""
    oldest: tuple[Shown, ...]
    """The last in output order, in that order."""


class Described(NamedTuple):
    """What a feed says of itself."""

    title: str
    """As text in one line; empty when there is none."""
    site: str
    """The publisher's page, by http or https; empty when none is named."""


async def described(snapshot: Snapshot) -> Described:
    """Return what the head of a feed says, as it is published."""
    return await asyncio.to_thread(_described, snapshot.feed)


def _described(feed: FeedRow) -> Described:
    family = feed.published_family
    address = Address(feed.url, feed.via_url)
    prologue = compose_prologue(
        family,
        feed.head or b"",
        prefixes=ALL_PREFIXES,
        address=address,
        is_complete=False,
        version=feed.version,
    )
    try:
        head = parse(prologue + EPILOGUE[family], feed.via_url, "", max_depth=UNLIMITED).head
    except ParseError:
        return Described("", "")
    sites = [link.target for link in head.links if link.relation == "alternate"]
    if family is not Family.ATOM:  # where the channel's link is no atom:link
        sites.insert(0, absolute(head.scope.base, head.site_id))
    return Described(unmarked(head.title), next((site for site in sites if site and is_http(site)), ""))


def entries_in(snapshot: Snapshot) -> int:
    """Return how many entries there are to be read."""
    return sum(segment.entries for segment in snapshot.segments)


async def excerpt(snapshot: Snapshot, store: Store, *, newest: int, oldest: int) -> Excerpt:
    """Return the ends of a feed; of a short feed the newest entries come first.

    Args:
        snapshot: That is held (`Reconstruction.snapshot`, `Store.snapshot`).
        store: Where it is.
        newest: How many of the first in output order.
        oldest: How many of the last in output order.
    """
    total = entries_in(snapshot)
    first = await read_entries(snapshot, store, 0, newest)
    start = max(total - oldest, len(first))
    return Excerpt(first, await read_entries(snapshot, store, start, total - start))


async def read_entries(snapshot: Snapshot, store: Store, start: int, count: int) -> tuple[Shown, ...]:
    """Return entries in output order, fewer where there are no more; at most `MOST_ENTRIES`.

    Args:
        snapshot: That is held.
        store: Where it is.
        start: The first of them.
        count: How many.
    """
    end = start + min(count, MOST_ENTRIES)
    room = ROOM_BYTES
    found: list[Shown] = []
    before = 0
    for segment in snapshot.segments:
        first, last = max(start - before, 0), min(end - before, segment.entries)
        before += segment.entries
        if first < last:
            taken = _Taken(segment, await _slices(segment, snapshot.feed, store, first, last), room)
            async for piece in store.pieces(segment):
                if await asyncio.to_thread(taken.add, piece):
                    break
            room = taken.room
            found += await asyncio.to_thread(taken.entries, snapshot.feed)
    return tuple(found)


async def _slices(segment: SegmentRow, feed: FeedRow, store: Store, first: int, last: int) -> list[Slice]:
    """Return where some entries of a segment stand in its text."""
    outline = await store.outline(segment)
    if outline is not None:
        return await asyncio.to_thread(between, outline, first, last)
    pieces = [piece async for piece in store.pieces(segment)]

    def looked() -> list[Slice]:
        inflater = Inflater(segment.length, segment.crc32)
        texts = [text for piece in pieces for text in inflater.add(piece, _INFLATED_BYTES)]
        return entries_of(feed.published_family, b"".join(texts), feed.version)[first:last]

    return await asyncio.to_thread(looked)


class _Taken:
    """Takes entries out of the text of a segment while that is inflated.

    Args:
        segment: The segment.
        slices: Where the entries stand in its text, ascending.
        room: Bytes that they may come to before they are cut short.
    """

    def __init__(self, segment: SegmentRow, slices: Sequence[Slice], room: int) -> None:
        self._inflater = Inflater(segment.length, segment.crc32)
        self._at = 0
        self._ranges: list[tuple[int, int, bool]] = []
        for each in slices:
            size = min(each.end - each.start, LONGEST_BYTES, max(room, LEAST_BYTES))
            room -= size
            self._ranges.append((each.start, each.start + size, each.start + size < each.end))
        self._texts: list[bytes] = []
        self._begun = bytearray()
        self.room = room

    def add(self, piece: bytes) -> bool:
        """Take what the next piece of the deflated text holds; return whether all is there."""
        for text in self._inflater.add(piece, _INFLATED_BYTES):
            while len(self._texts) < len(self._ranges):
                start, end, _ = self._ranges[len(self._texts)]
                self._begun += text[max(start - self._at, 0) : max(end - self._at, 0)]
                if end > self._at + len(text):
                    break
                self._texts.append(bytes(self._begun))
                self._begun.clear()
            self._at += len(text)
        return len(self._texts) == len(self._ranges)

    def entries(self, feed: FeedRow) -> list[Shown]:
        """Return the entries."""
        family = feed.published_family
        namespace = default_namespace(family, feed.version)
        joint = SEPARATOR[family].strip()
        return [
            shown(
                family,
                text if is_cut else text.strip().removesuffix(joint),
                namespace=namespace,
                is_cut=is_cut,
            )
            for text, (_, _, is_cut) in zip(self._texts, self._ranges, strict=True)
        ]
