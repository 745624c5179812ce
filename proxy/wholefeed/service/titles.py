"""Titles and dates of all entries of a feed.

A segment never changes, so its headings stay in memory. The first look at a feed reads its text for some
seconds at most; the rest is read on request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from heapq import nsmallest
from operator import attrgetter
from typing import Final, NamedTuple

from wholefeed.core.compose.entries import EntryHeading, PageEntry, read_item_heading
from wholefeed.core.compose.segments import Inflater
from wholefeed.core.compose.skimming import SkimmedSegment, Skimmer, YearRun, fold
from wholefeed.core.model import SEPARATOR, Family
from wholefeed.errors import StoreError
from wholefeed.service.showing import (
    LONGEST_BYTES,
    entries_in,
    namespace_of,
    read_entries,
    read_ranges,
    slices_of,
)
from wholefeed.service.streamed_entries import SegmentCache, SegmentPlaces
from wholefeed.store.rows import FeedRow, SegmentRow, Snapshot
from wholefeed.store.store import Store

TITLES_BYTES: Final = 1 << 24
"""In memory: about 200,000 headings."""
_INFLATED_BYTES: Final = 1 << 16  # of a segment, inflated at a time
_MOST_WORDS: Final = 8
_YEARS_BYTES: Final = 1 << 22
_RUN_BYTES: Final = 160


class TitleMatches(NamedTuple):
    found: Sequence[tuple[int, EntryHeading]]
    """The first ones with places from 0, in output order."""
    entries: int
    searched: int
    is_all: bool


class YearsReached(NamedTuple):
    years: Sequence[YearRun]
    """The longest run of each year, newest year first, with the count of all its entries."""
    is_all: bool


NO_YEARS: Final = YearsReached((), is_all=False)


class Excerpt(NamedTuple):
    """Both ends of a feed, without common entries."""

    newest: tuple[PageEntry, ...]
    """In output order."""
    oldest: tuple[PageEntry, ...]
    """By date, the oldest last."""


class Titles:
    """Belongs to one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._skimmed = SegmentCache[SkimmedSegment](TITLES_BYTES, attrgetter("size_bytes"))
        # A feed whose headings have no room would be read anew for each page.
        self._years = SegmentCache[Sequence[YearRun]](_YEARS_BYTES, lambda runs: _RUN_BYTES * (1 + len(runs)))

    async def find(
        self, snapshot: Snapshot, words: str, *, start: int, most: int, seconds: float
    ) -> TitleMatches:
        """Search for titles with all words, in any order; the caller holds `snapshot`."""
        wanted = fold(words).split()[:_MOST_WORDS]
        found, count, end = list[tuple[int, EntryHeading]](), 0, start
        for first, segment in _scan(snapshot, start=start, seconds=seconds):
            skimmed = await self._read(segment, snapshot.feed)
            here = await asyncio.to_thread(skimmed.find, wanted)
            here = [(first + place, heading) for place, heading in here if first + place >= start]
            found += here[: most - len(found)]
            count += len(here)
            end = first + len(skimmed)
        return TitleMatches(found, count, end, end >= entries_in(snapshot))

    async def heading(self, snapshot: Snapshot, place: int) -> EntryHeading:
        """Return the heading of one entry; its segment was read a moment ago."""
        for first, segment in _scan(snapshot, start=place, seconds=0):
            return (await self._read(segment, snapshot.feed))[place - first]
        raise StoreError(f"expected an entry at {place}, got the end of the feed")

    async def years(self, snapshot: Snapshot, *, seconds: float) -> YearsReached:
        runs, end = list[YearRun](), 0
        for first, segment in _scan(snapshot, start=0, seconds=seconds):
            read = partial(self._read_years, segment, snapshot.feed)
            for year, place, entries in await self._years.get(segment, read):
                last = runs[-1] if runs else None
                if last is not None and last.year == year and last.place + last.entries == first + place:
                    runs[-1] = last._replace(entries=last.entries + entries)
                else:
                    runs.append(YearRun(year, first + place, entries))
            end = first + segment.entries
        return YearsReached(_longest(runs), end >= entries_in(snapshot))

    async def excerpt(self, snapshot: Snapshot, *, newest: int, oldest: int) -> Excerpt:
        """Return both ends of a feed; in a short feed, the newest entries have priority."""
        first = await read_entries(snapshot, self._store, 0, newest)
        last = list[PageEntry]()
        for place in await self._find_oldest(snapshot, start=len(first), most=oldest):
            last += await read_entries(snapshot, self._store, place, 1)
        return Excerpt(first, tuple(last))

    async def _find_oldest(self, snapshot: Snapshot, *, start: int, most: int) -> list[int]:
        """Return the places of the oldest entries by their shown dates, the oldest last.

        Only the last segments count, from `start` on; undated entries if too few have a date.
        """
        total, found, room_bytes = entries_in(snapshot), list[tuple[float, int]](), _TAIL_BYTES
        end = total
        for segment in reversed(snapshot.segments):
            if end <= start or total - end >= _TAIL_ENTRIES or room_bytes <= 0:
                break
            room_bytes -= segment.length
            skimmed = await self._read(segment, snapshot.feed)
            end -= len(skimmed)
            places = range(max(start - end, 0), len(skimmed))
            dates = [(skimmed[place].date.at, end + place) for place in places]
            found += [(at, -place) for at, place in dates if at is not None]
        oldest = [-place for _, place in nsmallest(most, found)]
        rest = (place for place in range(total - 1, start - 1, -1) if place not in oldest)
        undated = [place for place, _ in zip(rest, range(most - len(oldest)), strict=False)]
        return [*sorted(undated), *reversed(oldest)]

    async def _read_years(self, segment: SegmentRow, feed: FeedRow) -> Sequence[YearRun]:
        return (await self._read(segment, feed)).years

    async def _read(self, segment: SegmentRow, feed: FeedRow) -> SkimmedSegment:
        return await self._skimmed.get(segment, partial(self._skim, segment, feed))

    async def _skim(self, segment: SegmentRow, feed: FeedRow) -> SkimmedSegment:
        is_json = feed.published_family is Family.JSON
        found = await (self._skim_items if is_json else self._skim_elements)(segment, feed)
        if len(found) != segment.entries:
            raise StoreError(f"expected {segment.entries} entries in segment {segment.id}, got {len(found)}")
        return found

    async def _skim_elements(self, segment: SegmentRow, feed: FeedRow) -> SkimmedSegment:
        inflater = Inflater(segment.length, segment.crc32)
        skimmer = Skimmer(feed.published_family, namespace_of(feed))

        def add(piece: bytes) -> None:
            for text in inflater.add(piece, _INFLATED_BYTES):
                skimmer.add(text)

        async for piece in self._store.pieces(segment):
            await asyncio.to_thread(add, piece)
        return await asyncio.to_thread(skimmer.end)

    async def _skim_items(self, segment: SegmentRow, feed: FeedRow) -> SkimmedSegment:
        slices = await slices_of(segment, feed, self._store)
        ranges = [(start, min(end, start + LONGEST_BYTES)) for start, end, _ in slices]
        headings = await read_ranges(segment, ranges, _read_item, self._store)
        return await asyncio.to_thread(SkimmedSegment.of, headings)


_TAIL_ENTRIES: Final = 50
_TAIL_BYTES: Final = 1 << 23  # of the segments in which the oldest entries are looked for


def _scan(snapshot: Snapshot, *, start: int, seconds: float) -> Iterator[tuple[int, SegmentRow]]:
    """Yield segments with the place of their first entry, until the time is up: at least one."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    places, total = SegmentPlaces(snapshot), entries_in(snapshot)
    while start < total:
        number, place = places.locate(start)
        segment = snapshot.segments[number]
        yield start - place, segment
        start += segment.entries - place
        if loop.time() > until:
            return


def _read_item(text: bytearray) -> EntryHeading:
    item = bytes(text).strip().removesuffix(SEPARATOR[Family.JSON].strip())
    return read_item_heading(item, is_cut=len(text) >= LONGEST_BYTES)


def _longest(runs: Sequence[YearRun]) -> list[YearRun]:
    longest, counts = dict[int, YearRun](), dict[int, int]()
    for run in runs:
        counts[run.year] = counts.get(run.year, 0) + run.entries
        if run.year not in longest or longest[run.year].entries < run.entries:
            longest[run.year] = run
    return [longest[year]._replace(entries=counts[year]) for year in sorted(longest, reverse=True)]
