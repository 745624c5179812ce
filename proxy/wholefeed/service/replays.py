"""Replays of a feed from its beginning, at a pace (P1 to P6).

A feed gets lines (`wholefeed.store.tables.lines`) at the first replay request, once its history is there.
"""

from __future__ import annotations

import asyncio
import hashlib
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import inf
from typing import Final, NamedTuple, cast, overload

from wholefeed.core.compose.entries import said_dates
from wholefeed.core.compose.replaying import replay_entries
from wholefeed.core.model import Family, State
from wholefeed.core.replay import ReplayPace, releases
from wholefeed.errors import OverloadedError, StoreError, UnknownFeedError, WorkError
from wholefeed.futures import retrieve_failure, within
from wholefeed.logs import get_logger
from wholefeed.service import showing
from wholefeed.service.context import RefreshContext, WalkTurns
from wholefeed.service.new_documents import make_stored
from wholefeed.service.results import Reconstruction
from wholefeed.service.showing import DIGEST_BYTES, Fill, namespace_of, read_places
from wholefeed.service.sources import work_bytes
from wholefeed.service.streamed_entries import (
    AnswerRoom,
    SegmentCache,
    SegmentPlaces,
    divide_places,
    join_entries,
)
from wholefeed.store.rows import Snapshot
from wholefeed.store.tables import document_table, lines
from wholefeed.store.tables.lines import Lines, Plan

log = get_logger()


class ReplayStyle(NamedTuple):
    family: Family
    shows_original: bool
    """Whether titles show the original date (P3)."""
    fill: Fill | None = None
    """Puts texts of pages into entries, before their dates are set."""
    finish: Fill | None = None
    """Changes entries once their dates are set."""


class ReleasedEntry(NamedTuple):
    at: int
    """Epoch seconds."""
    place: int
    """Output order, from 0."""


@dataclass(frozen=True, slots=True)
class ReplayTimeline:
    """Release instants of a feed's entries, ascending."""

    instants: array[int]
    places: array[int]
    """Like `ReleasedEntry.place`."""

    begun_at: int
    """Epoch seconds of the first arrival; 0: no lines."""

    def find_released(self, now: float, *, since: float = -inf, limit: int | None = None) -> Released:
        """Return releases from `since` until `now`, newest first, at most `limit`."""
        end = bisect_right(self.instants, now)
        start = bisect_left(self.instants, since, 0, end)
        start = start if limit is None else max(start, end - limit)
        return Released(self.instants[start:end], self.places[start:end])

    def next_at(self, now: float) -> int | None:
        end = bisect_right(self.instants, now)
        return self.instants[end] if end < len(self.instants) else None


class Released(Sequence[ReleasedEntry]):
    """Releases, newest first; constructed oldest first."""

    def __init__(self, instants: Iterable[int] = (), places: Iterable[int] = ()) -> None:
        self._instants = array("q", instants)
        self._places = array("I", places)

    @property
    def packed(self) -> bytes:
        """Unique bytes of the instants."""
        return self._instants.tobytes()

    @property
    def places(self) -> Iterable[int]:
        """Oldest release first."""
        return self._places

    def __len__(self) -> int:
        return len(self._instants)

    @overload
    def __getitem__(self, index: int) -> ReleasedEntry: ...

    @overload
    def __getitem__(self, index: slice) -> list[ReleasedEntry]: ...

    def __getitem__(self, index: int | slice) -> ReleasedEntry | list[ReleasedEntry]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        return ReleasedEntry(self._instants[~index], self._places[~index])


class Replays:
    """Lines and replayed entries of feeds, for one event loop."""

    def __init__(self, context: RefreshContext) -> None:
        self._store = context.store
        self._work = context.source.work
        self._now = context.now
        self._beginning: dict[int, asyncio.Task[None]] = {}
        """By feed."""
        self._digests = SegmentCache[bytes](_MOST_DIGEST_BYTES, len)
        self._changes: OrderedDict[tuple[int, str], _ReplayChange] = OrderedDict()
        """By feed and URL, least recently used first."""
        self._turns = WalkTurns(in_all=2, per_site=1)
        """One timeline of a feed at a time, since all its lines are in memory meanwhile."""

    async def timeline(
        self, reconstruction: Reconstruction, pace: ReplayPace, *, wait_seconds: float
    ) -> ReplayTimeline | None:
        """Return a feed's timeline; None: no lines yet.

        Missing lines are begun and awaited, but not while the history loads.

        Raises:
            PaceError: A release would fall after the year 9999.
            OverloadedError: The feed has just changed, or too many timelines are under way.
        """
        snapshot, held = reconstruction.snapshot, reconstruction.held
        found: ReplayTimeline | None = held.made(pace) if held is not None else None
        if found is not None:
            return found
        if snapshot.feed.lines_begun is None and snapshot.feed.visible_state is not State.LOADING:
            await self._begun(snapshot.feed.id, wait_seconds)
        async with within(_TURN_SECONDS, _too_many()), self._turns.turn(str(snapshot.feed.id)):
            if held is not None and (made := held.made(pace)) is not None:  # by an earlier request
                return cast("ReplayTimeline", made)
            read = await self._lines(reconstruction)
            if read is None:
                return None
            found = await asyncio.to_thread(_timeline, snapshot, read, pace)
            if held is not None:
                held.keep_made(pace, found, _BYTES_EACH * len(found.instants))
        return found

    async def _lines(self, reconstruction: Reconstruction) -> Lines | None:
        snapshot = reconstruction.snapshot
        async with reconstruction.in_time():
            found = await self._store.read(partial(lines.read, feed=snapshot.feed.id), feed=snapshot.feed.id)
        if all(segment.id in found.numbers for segment in snapshot.segments if segment.entries):
            return None if found.begun is None else found
        if found.begun is None:
            return None
        # another version of this program has published the feed
        await self._begun(snapshot.feed.id, _SOON_SECONDS)
        raise OverloadedError("the feed has just changed", retry_after_seconds=1)

    async def _begun(self, feed: int, wait_seconds: float) -> None:
        task = self._beginning.get(feed)
        if task is None:
            task = self._beginning[feed] = asyncio.create_task(self._begin(feed))
            task.add_done_callback(retrieve_failure)
            task.add_done_callback(lambda _: self._beginning.pop(feed))
        await asyncio.wait({task}, timeout=wait_seconds)

    async def _begin(self, feed: int) -> None:
        try:
            rows = await self._store.read(partial(document_table.list_all, feed=feed), feed=feed)
            attached = {row.id: row for row in rows if row.rank is not None}
            wanted = await self._store.read(
                partial(lines.find_unnumbered, feed=feed, documents=list(attached))
            )
            dates = {}
            for number in wanted:
                row = attached[number]
                async with self._work.large.turn(row.body_bytes):
                    body = await self._store.read(partial(document_table.read_body, document=number))
                    dates[number] = await self._work.run(work_bytes(body), said_dates, make_stored(row, body))
            made = await self._store.read(partial(lines.plan, feed=feed, dates=dates, now=self._now()))
            if made is not None and await self._put(feed, made):
                log.info("replay.begun", feed=feed)
        except (StoreError, OverloadedError, UnknownFeedError, WorkError) as exc:  # the next request retries
            log.warning("replay.failed", feed=feed, reason=str(exc))

    async def _put(self, feed: int, made: Plan) -> bool:
        """Store lines; return whether all are stored."""
        for start in range(0, len(made.rows), _LINES_AT_ONCE):  # other writes go in between
            rows = made.rows[start : start + _LINES_AT_ONCE]
            put = partial(lines.put, feed=feed, revision=made.revision, rows=rows)
            if not await self._store.write(put, feed=feed, comes_more=True):
                return False
        return await self._store.write(partial(lines.finish, feed=feed, made=made), feed=feed)

    async def close(self) -> None:
        for task in self._beginning.values():
            task.cancel()
        if self._beginning:
            await asyncio.wait(set(self._beginning.values()))

    async def fitting(
        self,
        reconstruction: Reconstruction,
        released: Sequence[ReleasedEntry],
        room_bytes: int,
        style: ReplayStyle,
    ) -> Released:
        """Return the first releases that fit, skipping entries larger than the whole room."""
        taken, snapshot = list[ReleasedEntry](), reconstruction.snapshot
        room = AnswerRoom(room_bytes, style.family)
        for batch in _batches(snapshot, released):
            async with reconstruction.in_time():
                # only the text as sent shows its size
                made = await self._made(snapshot, batch, style)
            taken += [each for each, text in zip(batch, made, strict=True) if room.take(text)]
            if room.is_full:
                break
        taken.reverse()
        return Released([each.at for each in taken], [each.place for each in taken])

    async def digest(self, reconstruction: Reconstruction, released: Released) -> bytes:
        """Return a digest of released texts and instants, unaffected by other entries.

        Raises:
            OverloadedError: Segments cannot be read in time.
        """
        snapshot = reconstruction.snapshot
        segments = SegmentPlaces(snapshot)
        found = hashlib.blake2b(released.packed, digest_size=DIGEST_BYTES)
        read = dict[int, bytes]()
        for place in released.places:
            number, at = segments.locate(place)
            if number not in read:
                await asyncio.sleep(0)
                async with reconstruction.in_time():
                    read[number] = await self.entry_digests(snapshot, number)
            found.update(read[number][at * DIGEST_BYTES : (at + 1) * DIGEST_BYTES])
        return found.digest()

    async def entry_digests(self, snapshot: Snapshot, number: int) -> bytes:
        segment = snapshot.segments[number]
        read = partial(showing.entry_digests, segment, snapshot.feed, self._store)
        return await self._digests.get(segment, read)

    def change_instant(self, feed: int, url: str, digest: bytes, instants: Sequence[float]) -> float | None:
        """Return a replay's last change seen by this process, in epoch seconds.

        None: two changes within one second. `digest` is of the present text; `instants` are possible changes.
        """
        known = self._changes.pop((feed, url), None)
        if known is None or known.digest != digest:
            before, at = sorted(map(int, instants))[-2:]
            last = before if known is None or known.at is None else max(before, known.at)
            known = _ReplayChange(digest, at if at > last else None)
        self._changes[feed, url] = known
        if len(self._changes) > _MOST_CHANGES:
            self._changes.popitem(last=False)
        return None if known.at is None else float(known.at)

    def texts(
        self, snapshot: Snapshot, released: Sequence[ReleasedEntry], style: ReplayStyle
    ) -> AsyncIterator[bytes]:
        """Return the texts in batches; the caller holds a snapshot."""
        made = (self._made(snapshot, batch, style) for batch in _batches(snapshot, released))
        return join_entries(made, style.family)

    async def _made(
        self, snapshot: Snapshot, batch: Sequence[ReleasedEntry], style: ReplayStyle
    ) -> list[bytes]:
        places = [each.place for each in batch]
        found = await read_places(snapshot, self._store, places)
        texts = [found[each.place] for each in batch]
        if style.fill is not None:
            texts = await style.fill(snapshot, places, texts)
        dated = await self._work.run(
            sum(map(work_bytes, texts)),
            replay_entries,
            texts,
            [each.at for each in batch],
            snapshot.feed.published_family,
            namespace=namespace_of(snapshot.feed),
            shows_original=style.shows_original,
        )
        return dated if style.finish is None else await style.finish(snapshot, places, dated)


class _ReplayChange(NamedTuple):
    digest: bytes
    at: int | None


_MOST_DIGEST_BYTES: Final = 1 << 23
"""Cached digests of half a million entries."""
_MOST_CHANGES: Final = 4096
_LINES_AT_ONCE: Final = 2000
"""In a transaction."""
_BYTES_EACH: Final = 12
_SOON_SECONDS: Final = 1.0
_TURN_SECONDS: Final = 8.0


def _too_many() -> OverloadedError:
    return OverloadedError("too many replays are asked for", retry_after_seconds=5)


def _timeline(snapshot: Snapshot, found: Lines, pace: ReplayPace) -> ReplayTimeline:
    assert found.begun is not None, "it was asked for"
    instants = releases(found.lines, found.begun, pace)
    numbers = chain.from_iterable(found.numbers[each.id] for each in snapshot.segments if each.entries)
    order = sorted((instants[number - 1], place) for place, number in enumerate(numbers))
    return ReplayTimeline(
        instants=array("q", [at for at, _ in order]),
        places=array("I", [place for _, place in order]),
        begun_at=found.lines[0].arrived_at if found.lines else 0,
    )


def _batches(snapshot: Snapshot, released: Sequence[ReleasedEntry]) -> Iterator[Sequence[ReleasedEntry]]:
    start = 0
    for places in divide_places(snapshot, [each.place for each in released]):
        yield released[start : start + len(places)]
        start += len(places)
