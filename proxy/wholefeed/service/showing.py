"""A feed's entries for people: some of them, and pages of them, which are kept for who asks next.

    async with service.answer(url, wait_seconds=1.0) as reconstruction:
        newest = await read_entries(reconstruction.snapshot, store, 0, 50)
        total = entries_in(reconstruction.snapshot)
        both = await excerpt(reconstruction.snapshot, store, newest=5, oldest=2)
        page = await showing.page(reconstruction, PageKey(start=0, most=50, loads_all_but=None), rendered)
    with showing.sending(page): ...

What publishers write may cost as much as it can (docs/faults.md rows 119 and 120). So a page is made in a
process that ends after `PAGE_SECONDS`, and kept with what else is held of its feed: within the same memory,
and as long as the feed is what it was. What makes it is no reader's, so that it is the same for all who ask
for those entries.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import accumulate, islice
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import Heading, stored_heading
from wholefeed.core.compose.entries import PageEntry, identity_of, parse_for_page, sent_name
from wholefeed.core.compose.reading import Article, EntryText, show_entries
from wholefeed.core.compose.segments import Inflater, Slice, each_of
from wholefeed.core.compose.views import entries_of
from wholefeed.core.model import SEPARATOR, default_namespace
from wholefeed.core.text.urls import UrlPlaces
from wholefeed.errors import OverloadedError, WorkError, WorkTooLongError
from wholefeed.futures import within
from wholefeed.logs import get_logger
from wholefeed.service.results import Reconstruction
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow, SegmentRow, Snapshot
from wholefeed.store.store import Store
from wholefeed.store.tables import posts
from wholefeed.workers.pool import Workers

log = get_logger()

PAGE_SECONDS: Final = 1.0
"""What a page may compute."""
PAGE_WAIT_SECONDS: Final = 8.0
"""How long who asks for a page waits for a turn, and then at most until it is made."""
_AT_ONCE: Final = 2
_WAITING: Final = 30
"""Who waits for pages that are not made yet, beside those."""
_AGAIN_SECONDS: Final = 5
_PAGE_ROOM_BYTES: Final = 1 << 21
"""Of the text that is read for a page: twice what is shown."""
_SMALL_BYTES: Final = 1 << 15
"""So little text a thread may make a page of: it takes a tenth of a second at most, and no worker's start."""
_SENT_BYTES: Final = 1 << 25
"""Of pages that are being sent: who reads slowly keeps one in memory."""


class PageKey(NamedTuple):
    """Which entries of a feed a page has."""

    start: int
    """The first of them, in output order, from 0."""
    most: int
    loads_all_but: UrlPlaces | None
    """Where the pictures, audio and video are that it does not load; None: it loads none."""


class RenderedPage:
    """The entries of a page as HTML; of one that is too costly there is none."""

    __slots__ = ("body", "readers")

    def __init__(self, body: bytes | None) -> None:
        self.body = body
        self.readers = 0
        """Who is being sent it."""


class Showing:
    """Makes pages; belongs to one event loop."""

    def __init__(self, store: Store, work: Workers) -> None:
        self._store = store
        self._work = work
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._asking = 0
        """Who makes one, or waits for it."""
        self._sent_bytes = 0

    async def page(
        self,
        reconstruction: Reconstruction,
        wanted: PageKey,
        rendered: Callable[[Sequence[Article], int], bytes],
    ) -> RenderedPage:
        """Return a page of a feed.

        `rendered` makes HTML of its entries and of the place of the first, from 1; it is called on a thread.

        Raises:
            OverloadedError: Too many are being made; or what made it has ended.
            WorkTooLongError: It takes more computing than a page may.
        """
        held = reconstruction.held
        page: RenderedPage | None = held.made(wanted) if held is not None else None
        if page is None:
            async with self._turn():
                page = held.made(wanted) if held is not None else None  # who was before may have made it
                if page is None:
                    page = RenderedPage(await self._made(reconstruction, wanted, rendered))
                    if held is not None:
                        held.keep_made(wanted, page, sys.getsizeof(page) + sys.getsizeof(page.body))
        if page.body is None:
            raise WorkTooLongError(f"expected a page that takes at most {PAGE_SECONDS:g} s to make, got more")
        return page

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and then take no longer than that for what is done in it.

        Who waits gives up first: what is begun would have been for nothing, and a worker ends with it.
        """
        if self._asking >= _AT_ONCE + _WAITING:
            raise _too_many()
        self._asking += 1
        try:
            async with within(PAGE_WAIT_SECONDS, _too_many()):
                await self._turns.acquire()
            try:
                async with within(PAGE_WAIT_SECONDS, _too_many()):
                    yield
            finally:
                self._turns.release()
        finally:
            self._asking -= 1

    async def _made(
        self,
        reconstruction: Reconstruction,
        wanted: PageKey,
        rendered: Callable[[Sequence[Article], int], bytes],
    ) -> bytes | None:
        """Return the HTML of a page; None where it is too costly."""
        snapshot = reconstruction.snapshot
        feed = snapshot.feed
        async with reconstruction.in_time():
            texts = await read_texts(
                snapshot, self._store, wanted.start, wanted.most, room_bytes=_PAGE_ROOM_BYTES
            )
        work = partial(
            show_entries,
            texts,
            feed.published_family,
            namespace=namespace_of(feed),
            base=feed.via_url,
            loads_all_but=wanted.loads_all_but,
        )
        if sum(len(each.text) for each in texts) <= _SMALL_BYTES:
            return await asyncio.to_thread(lambda: rendered(work(), wanted.start + 1))
        try:
            articles = await self._work.run_briefly(PAGE_SECONDS, work.func, *work.args, **work.keywords)
        except WorkTooLongError:
            return None
        except WorkError as exc:  # it was killed, or is at fault: what it says is for the log alone
            log.exception("request.failed", feed=feed.id)
            raise OverloadedError(
                "the process that made this page has ended", retry_after_seconds=_AGAIN_SECONDS
            ) from exc
        return await asyncio.to_thread(rendered, articles, wanted.start + 1)

    @contextmanager
    def sending(self, page: RenderedPage) -> Iterator[None]:
        """Hold a page while it is sent.

        Raises:
            OverloadedError: Too many other pages are being sent.
        """
        size = len(page.body or b"")
        if not page.readers and self._sent_bytes + size > _SENT_BYTES:
            raise _too_many()
        self._sent_bytes += size * (not page.readers)
        page.readers += 1
        try:
            yield
        finally:
            page.readers -= 1
            self._sent_bytes -= size * (not page.readers)


def _too_many() -> OverloadedError:
    return OverloadedError("too many pages are asked for", retry_after_seconds=_AGAIN_SECONDS)


# Entries as they stand in segments

LONGEST_BYTES: Final = 1 << 18
"""Of an entry's text, what is read of it: a thick book has as much."""
_ROOM_BYTES: Final = 1 << 22
"""Of the text of all entries that are read at once; the entries behind it are cut to `_LEAST_BYTES` each."""
_LEAST_BYTES: Final = 1 << 14
_INFLATED_BYTES: Final = 1 << 16
"""Of a segment's text, what is inflated at a time."""


async def describe(feed: FeedRow) -> Heading:
    """Return what a feed calls itself, as it is published."""
    if feed.title is not None:
        return Heading(feed.title, feed.site)
    return await asyncio.to_thread(
        stored_heading, feed.published_family, feed.version, feed.head or b"", feed.via_url
    )


def entries_in(snapshot: Snapshot) -> int:
    """Return how many entries there are to be read."""
    return sum(segment.entries for segment in snapshot.segments)


class Excerpt(NamedTuple):
    """The two ends of a feed. No entry stands in both."""

    newest: tuple[PageEntry, ...]
    """The first in output order, in that order."""
    oldest: tuple[PageEntry, ...]
    """The last in output order, in that order."""


async def excerpt(snapshot: Snapshot, store: Store, *, newest: int, oldest: int) -> Excerpt:
    """Return so many entries of each end of a feed that is held; of a short one the newest come first."""
    total = entries_in(snapshot)
    first = await read_entries(snapshot, store, 0, newest)
    start = max(total - oldest, len(first))
    return Excerpt(first, await read_entries(snapshot, store, start, total - start))


async def removable_names(feed: FeedRow, entries: Sequence[PageEntry], store: Store) -> list[str]:
    """Return by what each entry can be removed (I2), as it goes into a URL; empty: by nothing that it shows.

    That is its id, else its link, unless those identify nothing in this feed (R9).
    """

    def look(db: Database) -> list[str]:
        def is_name(text: str) -> bool:
            return bool(text) and posts.find_served(db, feed.id, identity_of(text)) is not None

        found = (next(filter(is_name, (each.identity, each.link)), "") for each in entries)
        return [sent_name(name) for name in found]

    return await store.read(look)


async def read_entries(snapshot: Snapshot, store: Store, start: int, count: int) -> tuple[PageEntry, ...]:
    """Return entries in output order, fewer where there are no more.

    Of the feed's segments those alone are read that hold them, a piece at a time, on threads: whatever the
    feed's size, what is in memory is a few MB. Entries that are very long are cut short (`Shown.is_cut`).
    `Shown.content` is HTML of a stranger: who shows it sanitises it.

    Args:
        snapshot: That is held (`Reconstruction.snapshot`, `Store.snapshot`).
        store: Where it is.
        start: The first of them, in output order (R20), from 0.
        count: How many.
    """
    texts = await read_texts(snapshot, store, start, count, room_bytes=_ROOM_BYTES)
    return await asyncio.to_thread(_parse_page_entries, snapshot.feed, texts)


def _parse_page_entries(feed: FeedRow, texts: Sequence[EntryText]) -> tuple[PageEntry, ...]:
    family, namespace = feed.published_family, namespace_of(feed)
    return tuple(parse_for_page(family, text, namespace=namespace, is_cut=is_cut) for text, is_cut in texts)


def namespace_of(feed: FeedRow) -> str:
    """Return the default namespace around the entries of a feed as it is sent."""
    return default_namespace(feed.published_family, feed.version)


async def read_texts(
    snapshot: Snapshot, store: Store, start: int, count: int, *, room_bytes: int
) -> tuple[EntryText, ...]:
    """Return the texts of entries, or their beginnings; arguments as for `read_entries`.

    They may come to `room_bytes` before they are cut to `_LEAST_BYTES` each.
    """
    end, room = start + count, room_bytes
    found: list[EntryText] = []
    before = 0
    for segment in snapshot.segments:
        first, last = max(start - before, 0), min(end - before, segment.entries)
        before += segment.entries
        if first < last:
            ranges = []
            for each in await _slices(segment, snapshot.feed, store, first, last):
                size = min(each.end - each.start, LONGEST_BYTES, max(room, _LEAST_BYTES))
                room -= size
                ranges.append((each.start, each.start + size, each.start + size < each.end))
            found += await _taken(segment, ranges, snapshot.feed, store)
    return tuple(found)


async def read_places(snapshot: Snapshot, store: Store, places: Iterable[int]) -> dict[int, bytes]:
    """Return the whole texts of entries by their places in output order, from 0."""
    found: dict[int, bytes] = {}
    async for segment, slices in _locate(snapshot, store, places):
        ranges = [(each.start, each.end, False) for each in slices.values()]
        texts = await _taken(segment, ranges, snapshot.feed, store)
        found |= zip(slices, (text for text, _ in texts), strict=True)
    return found


DIGEST_BYTES: Final = 16
"""Of what `entry_digests` returns, for each entry."""


async def entry_digests(segment: SegmentRow, feed: FeedRow, store: Store) -> bytes:
    """Return a digest of the text of each entry of a segment, from the top, one behind the other.

    Equal texts have equal digests, whatever segments they stand in. One entry is in memory at a time.
    """
    slices = await _slices(segment, feed, store, 0, segment.entries)
    ranges = [(each.start, each.end, False) for each in slices]
    joint = SEPARATOR[feed.published_family].strip()
    taken = _RangeReader(segment, ranges, partial(_digest_of, joint=joint))
    async for piece in store.pieces(segment):
        if await asyncio.to_thread(taken.add, piece):
            break
    return b"".join(taken.texts)


def _digest_of(text: bytes | bytearray, joint: bytes) -> bytes:
    return hashlib.blake2b(text.strip().removesuffix(joint), digest_size=DIGEST_BYTES).digest()


async def _locate(
    snapshot: Snapshot, store: Store, places: Iterable[int]
) -> AsyncIterator[tuple[SegmentRow, dict[int, Slice]]]:
    """Give the segments that hold entries, and where each of these stands in its text, ascending."""
    ends = list(accumulate(segment.entries for segment in snapshot.segments))
    wanted: dict[int, list[int]] = {}
    for place in sorted(places):
        wanted.setdefault(bisect_right(ends, place), []).append(place)
    for number, held in wanted.items():
        segment = snapshot.segments[number]
        before, first = ends[number] - segment.entries, held[0]
        found = await _slices(segment, snapshot.feed, store, first - before, held[-1] + 1 - before)
        yield segment, {place: found[place - first] for place in held}


async def _taken(
    segment: SegmentRow, ranges: Sequence[tuple[int, int, bool]], feed: FeedRow, store: Store
) -> list[EntryText]:
    """Return what stands at ranges of a segment's text, ascending; each says whether it cuts an entry."""
    taken = _RangeReader(segment, ranges)
    async for piece in store.pieces(segment):
        if await asyncio.to_thread(taken.add, piece):
            break
    return list(taken.entries(SEPARATOR[feed.published_family].strip()))


async def _slices(segment: SegmentRow, feed: FeedRow, store: Store, first: int, last: int) -> list[Slice]:
    """Return where some entries of a segment stand in its text."""
    outline = await store.outline(segment)
    if outline is not None:
        return await asyncio.to_thread(lambda: list(islice(each_of(outline, first), last - first)))
    pieces = [piece async for piece in store.pieces(segment)]

    def looked() -> list[Slice]:
        inflater = Inflater(segment.length, segment.crc32)
        texts = [text for piece in pieces for text in inflater.add(piece, _INFLATED_BYTES)]
        return entries_of(feed.published_family, b"".join(texts), feed.version)[first:last]

    return await asyncio.to_thread(looked)


class _RangeReader:
    """Takes entries out of the text of a segment while that is inflated.

    `ranges` as for `_taken`; `make` returns what is kept of the text of each, by default the text.
    """

    def __init__(
        self,
        segment: SegmentRow,
        ranges: Sequence[tuple[int, int, bool]],
        make: Callable[[bytearray], bytes] = bytes,
    ) -> None:
        self._inflater = Inflater(segment.length, segment.crc32)
        self._at = 0
        self._ranges = ranges
        self._make = make
        self.texts: list[bytes] = []
        self._begun = bytearray()

    def add(self, piece: bytes) -> bool:
        """Take what the next piece of the deflated text holds; return whether all is there."""
        for text in self._inflater.add(piece, _INFLATED_BYTES):
            while len(self.texts) < len(self._ranges):
                start, end, _ = self._ranges[len(self.texts)]
                self._begun += text[max(start - self._at, 0) : max(end - self._at, 0)]
                if end > self._at + len(text):
                    break
                self.texts.append(self._make(self._begun))
                self._begun.clear()
            self._at += len(text)
        return len(self.texts) == len(self._ranges)

    def entries(self, joint: bytes) -> Iterator[EntryText]:
        """Give them; `joint` is what stands behind an entry that is not the last."""
        for text, (_, _, is_cut) in zip(self.texts, self._ranges, strict=True):
            yield EntryText(text if is_cut else text.strip().removesuffix(joint), is_cut)
