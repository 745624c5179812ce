"""A feed's entries for people: excerpts, and HTML pages.

A publisher's text may be costly to render (docs/faults.md rows 119 and 120). So a worker process gets
`PAGE_SECONDS` for a page, and the page is cached with its feed. A page depends on no reader's settings, so
all readers share it.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final, Generic, NamedTuple, TypeVar
from uuid import NAMESPACE_URL, uuid5

from wholefeed.core.compose.compose import Heading, stored_heading, synthesize
from wholefeed.core.compose.entries import PageEntry, identity_of, parse_for_page, sent_name
from wholefeed.core.compose.reading import Article, EntryText, show_entries
from wholefeed.core.compose.segments import Inflater, Slice, each_of
from wholefeed.core.compose.views import entries_of
from wholefeed.core.model import SEPARATOR, Family, default_namespace
from wholefeed.core.origins import Origin
from wholefeed.core.text.urls import UrlPlaces
from wholefeed.errors import OverloadedError, WorkError, WorkTooLongError
from wholefeed.futures import within
from wholefeed.logs import get_logger
from wholefeed.service.results import Reconstruction
from wholefeed.service.streamed_entries import SegmentPlaces
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow, SegmentRow, Snapshot
from wholefeed.store.store import Store
from wholefeed.store.tables import posts, segment_table
from wholefeed.workers.pool import Workers

log = get_logger()
_Made = TypeVar("_Made")

PAGE_SECONDS: Final = 1.0  # of computing
PAGE_WAIT_SECONDS: Final = 8.0  # the longest wait for a turn, and again for the page
_AT_ONCE: Final = 2
_WAITING: Final = 30  # requests that wait for a turn
_AGAIN_SECONDS: Final = 5
_PAGE_ROOM_BYTES: Final = 1 << 21  # of text read for a page: twice the text shown
_SMALL_BYTES: Final = 1 << 15  # So little text takes a thread 0.1 s at most, and no worker has to start.
_SENT_BYTES: Final = 1 << 25  # of pages being sent: a slow reader keeps one in memory


class PageKey(NamedTuple):
    start: int
    most: int
    loads_all_but: UrlPlaces | None
    """Places of media not to load; None: load no media."""
    has_texts: bool = False
    """Whether entries have the texts of their pages (T1)."""


class RenderedPage:
    __slots__ = ("body", "readers")

    def __init__(self, body: bytes | None) -> None:
        self.body = body  # None: too costly
        self.readers = 0  # how many are being sent the page


class Showing:
    """Makes pages; belongs to one event loop."""

    def __init__(self, store: Store, work: Workers, fill: Fill | None = None) -> None:
        self._store = store
        self._work = work
        self._fill = fill
        """Puts the texts of pages into entries."""
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._asking = 0  # requests that make a page or wait for one
        self._sent_bytes = 0

    async def page(
        self,
        reconstruction: Reconstruction,
        wanted: PageKey,
        rendered: Callable[[Sequence[Article], int], bytes],
    ) -> RenderedPage:
        """Return a page; on a thread, `rendered` makes HTML of entries and the first place (from 1).

        Raises:
            OverloadedError: Too many pages are being made, or the process that made this one has ended.
            WorkTooLongError: The page is too costly.
        """
        held = reconstruction.held
        page: RenderedPage | None = held.made(wanted) if held is not None else None
        if page is None:
            async with self.turn():
                page = held.made(wanted) if held is not None else None  # perhaps made meanwhile
                if page is None:
                    page = RenderedPage(await self._made(reconstruction, wanted, rendered))
                    if held is not None:
                        held.keep_made(wanted, page, sys.getsizeof(page) + sys.getsizeof(page.body))
        if page.body is None:
            raise WorkTooLongError(f"expected a page that takes at most {PAGE_SECONDS:g} s to make, got more")
        return page

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and limit the time of the block."""
        if self._asking >= _AT_ONCE + _WAITING:
            raise _too_many()
        self._asking += 1
        try:
            # Requests that wait give up first: else the work of a turn would be lost, and its worker end.
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
        snapshot = reconstruction.snapshot
        feed = snapshot.feed
        async with reconstruction.in_time():
            texts = await read_texts(
                snapshot, self._store, wanted.start, wanted.most, room_bytes=_PAGE_ROOM_BYTES
            )
            origins = await read_origins(snapshot, self._store, wanted.start, len(texts))
        if wanted.has_texts and self._fill is not None and feed.texts:
            texts = await self._fill_entries(snapshot, wanted.start, texts, self._fill)

        def tell(article: Article, origin: Origin | None) -> Article:
            return replace(article, origin=origin)

        work = partial(
            show_entries,
            texts,
            feed.published_family,
            namespace=namespace_of(feed),
            base=feed.via_url,
            loads_all_but=wanted.loads_all_but,
        )
        if sum(len(each.text) for each in texts) <= _SMALL_BYTES:
            return await asyncio.to_thread(lambda: rendered([*map(tell, work(), origins)], wanted.start + 1))
        try:
            articles = await self._work.run_briefly(PAGE_SECONDS, work.func, *work.args, **work.keywords)
        except WorkTooLongError:
            return None
        except WorkError as exc:  # killed or at fault: only the log has the details
            log.exception("request.failed", feed=feed.id)
            raise OverloadedError(
                "the process that made this page has ended", retry_after_seconds=_AGAIN_SECONDS
            ) from exc
        return await asyncio.to_thread(rendered, [*map(tell, articles, origins)], wanted.start + 1)

    async def _fill_entries(
        self, snapshot: Snapshot, start: int, texts: Sequence[EntryText], fill: Fill
    ) -> tuple[EntryText, ...]:
        """Return entries with the texts of their pages, except where those are very long."""
        whole = [number for number, each in enumerate(texts) if not each.is_cut]
        places = [start + number for number in whole]
        made = await fill(snapshot, places, [texts[number].text for number in whole])
        found = list(texts)
        for number, text in zip(whole, made, strict=True):
            if len(text) <= LONGEST_BYTES:
                found[number] = EntryText(text, is_cut=False)
        return tuple(found)

    @contextmanager
    def sending(self, page: RenderedPage) -> Iterator[None]:
        """Keep a page in memory while it is sent.

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


Fill = Callable[[Snapshot, Sequence[int], Sequence[bytes]], Awaitable[list[bytes]]]
"""Puts the texts of pages into entries, given their places and texts."""


def _too_many() -> OverloadedError:
    return OverloadedError("too many pages are asked for", retry_after_seconds=_AGAIN_SECONDS)


# Entries in segments

LONGEST_BYTES: Final = 1 << 18  # read of one entry's text: a thick book has as much
_ROOM_BYTES: Final = 1 << 22  # of text read at once; later entries are cut to `_LEAST_BYTES` each
_LEAST_BYTES: Final = 1 << 14
_INFLATED_BYTES: Final = 1 << 16  # of a segment, inflated at a time


async def describe(feed: FeedRow) -> Heading:
    if feed.title is not None:
        return Heading(feed.title, feed.site)
    return await asyncio.to_thread(
        stored_heading, feed.published_family, feed.version, feed.head or b"", feed.via_url
    )


def entries_in(snapshot: Snapshot) -> int:
    return sum(segment.entries for segment in snapshot.segments)


async def removable_names(feed: FeedRow, entries: Sequence[PageEntry], store: Store) -> list[str]:
    """Return for each entry a name that removes it (I2), as in URLs; empty: it shows none.

    The name is the id, else the link, if that identifies an entry in this feed (R9).
    """

    def look(db: Database) -> list[str]:
        def is_name(text: str) -> bool:
            return bool(text) and posts.find_served(db, feed.id, identity_of(text)) is not None

        found = (next(filter(is_name, (each.identity, each.link)), "") for each in entries)
        return [sent_name(name) for name in found]

    return await store.read(look)


async def read_entries(snapshot: Snapshot, store: Store, start: int, count: int) -> tuple[PageEntry, ...]:
    """Return up to `count` entries in output order, the first at `start` (from 0; R20).

    The caller holds `snapshot`. Memory stays at a few MB. Long entries are cut. `PageEntry.content` is a
    stranger's HTML: sanitise it.
    """
    texts = await read_texts(snapshot, store, start, count, room_bytes=_ROOM_BYTES)
    return await asyncio.to_thread(_parse_page_entries, snapshot.feed, texts)


def _parse_page_entries(feed: FeedRow, texts: Sequence[EntryText]) -> tuple[PageEntry, ...]:
    family, namespace = feed.published_family, namespace_of(feed)
    return tuple(parse_for_page(family, text, namespace=namespace, is_cut=is_cut) for text, is_cut in texts)


def namespace_of(feed: FeedRow) -> str:
    """Return the default namespace around a feed's entries in answers."""
    return default_namespace(feed.published_family, feed.version)


async def read_texts(
    snapshot: Snapshot, store: Store, start: int, count: int, *, room_bytes: int
) -> tuple[EntryText, ...]:
    """Return the texts of entries; after `room_bytes`, only `_LEAST_BYTES` of each."""
    room, found = room_bytes, list[EntryText]()
    for segment, first, last in _parts_at(snapshot, start, count):
        ranges = []
        for each in await _slices(segment, snapshot.feed, store, first, last):
            size = min(each.end - each.start, LONGEST_BYTES, max(room, _LEAST_BYTES))
            room -= size
            ranges.append((each.start, each.start + size, each.start + size < each.end))
        found += await _taken(segment, ranges, snapshot.feed, store)
    return tuple(found)


def _parts_at(snapshot: Snapshot, start: int, count: int) -> Iterator[tuple[SegmentRow, int, int]]:
    """Yield segments, with the range in each."""
    before, end = 0, start + count
    for segment in snapshot.segments:
        first, last = max(start - before, 0), min(end - before, segment.entries)
        before += segment.entries
        if first < last:
            yield segment, first, last


async def read_places(snapshot: Snapshot, store: Store, places: Iterable[int]) -> dict[int, bytes]:
    """Return whole texts by place in output order, from 0."""
    found: dict[int, bytes] = {}
    async for segment, slices in _locate(snapshot, store, places):
        ranges = [(each.start, each.end, False) for each in slices.values()]
        texts = await _taken(segment, ranges, snapshot.feed, store)
        found |= zip(slices, (text for text, _ in texts), strict=True)
    return found


async def read_document(snapshot: Snapshot, store: Store, number: int) -> bytes:
    """Return the entries of a segment, from 0, as they are sent, in a document of their own."""
    feed, sizes = snapshot.feed, [segment.entries for segment in snapshot.segments]
    start = sum(sizes[:number])
    found = await read_places(snapshot, store, range(start, start + sizes[number]))
    texts, namespace = list(found.values()), namespace_of(feed)
    version = feed.version or ("1.1" if feed.published_family is Family.JSON else "2.0")
    return await asyncio.to_thread(synthesize, feed.published_family, version, texts, namespace=namespace)


async def read_origins(snapshot: Snapshot, store: Store, start: int, count: int) -> list[Origin | None]:
    """Return where the entries at `start` and behind come from; None: their documents have changed since."""
    found, wanted = list[Origin | None](), list(_parts_at(snapshot, start, count))
    segments = [segment.id for segment, _, _ in wanted]
    look = partial(segment_table.list_origins, feed=snapshot.feed.id, segments=segments)
    known = await store.read(look, feed=snapshot.feed.id)
    for segment, first, last in wanted:
        own = known.get(segment.id, ())
        found += own[first:last] if len(own) == segment.entries else [None] * (last - first)
    return found


def warning_id(url: str) -> str:
    """Return the id of the entry that tells readers about missing documents (R16)."""
    return uuid5(NAMESPACE_URL, f"wholefeed:missing:{url}").urn


DIGEST_BYTES: Final = 16  # for each entry


async def entry_digests(segment: SegmentRow, feed: FeedRow, store: Store) -> bytes:
    """Return the joined digests of entries, from the top; equal texts have equal digests in all segments."""
    slices = await _slices(segment, feed, store, 0, segment.entries)
    ranges = [(each.start, each.end) for each in slices]
    joint = SEPARATOR[feed.published_family].strip()
    return b"".join(await read_ranges(segment, ranges, partial(_digest_of, joint=joint), store))


def _digest_of(text: bytes | bytearray, joint: bytes) -> bytes:
    return hashlib.blake2b(text.strip().removesuffix(joint), digest_size=DIGEST_BYTES).digest()


async def _locate(
    snapshot: Snapshot, store: Store, places: Iterable[int]
) -> AsyncIterator[tuple[SegmentRow, dict[int, Slice]]]:
    """Yield segments with slices by place, ascending."""
    segments = SegmentPlaces(snapshot)
    wanted: dict[int, dict[int, int]] = {}  # by segment: places in it, by output place
    for place in sorted(places):
        number, at = segments.locate(place)
        wanted.setdefault(number, {})[place] = at
    for number, held in wanted.items():
        segment, first, last = snapshot.segments[number], min(held.values()), max(held.values())
        found = await _slices(segment, snapshot.feed, store, first, last + 1)
        yield segment, {place: found[at - first] for place, at in held.items()}


async def _taken(
    segment: SegmentRow, ranges: Sequence[tuple[int, int, bool]], feed: FeedRow, store: Store
) -> list[EntryText]:
    """Return texts at ascending ranges; each range says whether it cuts an entry."""
    texts = await read_ranges(segment, [(start, end) for start, end, _ in ranges], bytes, store)
    joint = SEPARATOR[feed.published_family].strip()
    return [
        EntryText(text if is_cut else text.strip().removesuffix(joint), is_cut)
        for text, (_, _, is_cut) in zip(texts, ranges, strict=True)
    ]


async def read_ranges(
    segment: SegmentRow,
    ranges: Sequence[tuple[int, int]],
    make: Callable[[bytearray], _Made],
    store: Store,
) -> list[_Made]:
    """Return what `make` reads at ascending ranges of a segment's text, one of them in memory at a time."""
    taken = _RangeReader(segment, ranges, make)
    async for piece in store.pieces(segment):
        if await asyncio.to_thread(taken.add, piece):
            break
    return taken.made


async def slices_of(segment: SegmentRow, feed: FeedRow, store: Store) -> list[Slice]:
    return await _slices(segment, feed, store, 0, segment.entries)


async def _slices(segment: SegmentRow, feed: FeedRow, store: Store, first: int, last: int) -> list[Slice]:
    outline = await store.outline(segment)
    if outline is not None:
        return await asyncio.to_thread(lambda: list(islice(each_of(outline, first), last - first)))
    pieces = [piece async for piece in store.pieces(segment)]

    def looked() -> list[Slice]:
        inflater = Inflater(segment.length, segment.crc32)
        texts = [text for piece in pieces for text in inflater.add(piece, _INFLATED_BYTES)]
        return entries_of(feed.published_family, b"".join(texts), feed.version)[first:last]

    return await asyncio.to_thread(looked)


class _RangeReader(Generic[_Made]):
    """Extracts ascending ranges from a segment's text during inflation; `make` reads each."""

    def __init__(
        self, segment: SegmentRow, ranges: Sequence[tuple[int, int]], make: Callable[[bytearray], _Made]
    ) -> None:
        self._inflater = Inflater(segment.length, segment.crc32)
        self._at = 0
        self._ranges = ranges
        self._make = make
        self.made: list[_Made] = []
        self._begun = bytearray()

    def add(self, piece: bytes) -> bool:
        """Take the next deflated piece; return whether all ranges are complete."""
        for text in self._inflater.add(piece, _INFLATED_BYTES):
            while len(self.made) < len(self._ranges):
                start, end = self._ranges[len(self.made)]
                self._begun += text[max(start - self._at, 0) : max(end - self._at, 0)]
                if end > self._at + len(text):
                    break
                self.made.append(self._make(self._begun))
                self._begun.clear()
            self._at += len(text)
        return len(self.made) == len(self._ranges)
