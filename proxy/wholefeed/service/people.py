"""What people look at: how a feed stands and its refresh goes on, its documents, its months, its entries.

    async with watching.follow(feed_id) as news:
        while not news.is_over:
            status = await news.next(15.0)              # None: nothing has changed for so long

    status, chain = await watching.account(feed_id)     # its documents, what is missing among them
    timeline = timeline_of(chain, await store.read(lambda db: months(db, feed_id)))

    async with service.answer(url, wait_seconds=1.0) as reconstruction:
        newest = await read_entries(reconstruction.snapshot, store, 0, 50)
        total = entries_in(reconstruction.snapshot)
        both = await excerpt(reconstruction.snapshot, store, newest=5, oldest=2)

Nothing here changes or fetches anything. The words for it stand in `wholefeed.core.words`, the pages in
`wholefeed.web`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from wholefeed.core.chart import Chart, Hole, Place, Span, chart_of, holes_of
from wholefeed.core.compose.compose import Heading, stored_heading
from wholefeed.core.compose.entries import Shown, shown
from wholefeed.core.compose.reading import Begun
from wholefeed.core.compose.segments import Inflater, Slice, between
from wholefeed.core.compose.views import entries_of
from wholefeed.core.links import recall
from wholefeed.core.model import SEPARATOR, Kind, Relation, Role, default_namespace
from wholefeed.core.notes import DocumentTruncated, JumpedHole
from wholefeed.core.refresh.port import Attempt
from wholefeed.core.text.urls import document_key
from wholefeed.errors import OverloadedError, StoreError, UnknownFeedError
from wholefeed.service.refresh import RefreshContext
from wholefeed.service.results import Elsewhere, Status
from wholefeed.service.running import Running
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, FeedRow, Overview, SegmentRow, Snapshot
from wholefeed.store.store import Store
from wholefeed.store.tables import documents, failures
from wholefeed.store.tables.segments import Months

# What is known of a feed, and how its refresh goes on

MAX_FOLLOWERS: Final = 256
"""Who may follow feeds at once."""
MAX_FOLLOWERS_OF_ONE: Final = 32
"""Who may follow one feed: whoever holds a signed URL, which opens one, takes no more of the places."""
TICK_SECONDS: Final = 0.5
"""Between two looks at the progress of a walk."""
_READ_SECONDS: Final = 2.0
"""Between two reads of a feed whose walk goes on."""
_IDLE_SECONDS: Final = 10.0
"""The same where the walk does not go on."""
_ELSEWHERE_SECONDS: Final = 1.0
"""The same where another replica walks: its progress, too, is read from the database."""


class Watching:
    """Tells what is known of a feed, and to everybody who wants to follow it at once how far its refresh is.

    What changes all the time, the progress of a walk, is in memory and looked at twice a second. The rest is
    read from the database, once for all who follow a feed, from time to time and when the refresh has ended.

    Args:
        context: What the service works with.
        running: The refreshes under way.
        stopping: Done when the program is to stop: then nobody follows anything any more.
    """

    def __init__(self, context: RefreshContext, running: Running, stopping: asyncio.Future[None]) -> None:
        self._context = context
        self._running = running
        self._stopping = stopping
        self._watched: dict[int, _Watched] = {}
        self.followers = 0
        """How many follow a feed now."""

    async def status(self, feed_id: int) -> Status:
        """Tell what is known of a feed; `UnknownFeedError` where it was forgotten."""
        sharing = self._context.sharing

        def look(db: Database) -> tuple[Overview, Elsewhere | None]:
            return failures.overview(db, feed_id), sharing.elsewhere(db, feed_id)

        overview, elsewhere = await self._context.store.read(look)
        feed = overview.feed
        told = Status(
            overview=overview,
            is_refreshing=False,
            progress_documents=feed.documents,
            progress_entries=feed.entries,
            progress_fetched=0,
            progress_left=None,
            progress_seconds=None,
            paused_until=self._context.paused_until(feed.fetch_url),
            elsewhere=elsewhere,
        )
        return self._now(told, feed_id)

    def _now(self, told: Status, feed_id: int) -> Status:
        """Return a status with the progress of this moment."""
        is_refreshing = self._running.running(feed_id) is not None
        under_way = self._running.under_way(feed_id) if is_refreshing else told.elsewhere
        is_refreshing = is_refreshing or under_way is not None
        progress = None if under_way is None else under_way.progress
        if under_way is None or progress is None:
            return replace(told, is_refreshing=is_refreshing)
        return replace(
            told,
            is_refreshing=is_refreshing,
            progress_documents=progress.documents,
            progress_entries=progress.entries,
            progress_fetched=progress.fetched,
            progress_left=progress.left,
            progress_seconds=under_way.walked_seconds,
        )

    async def account(self, feed_id: int) -> tuple[Status, list[ChainDocument]]:
        """Tell what is known of a feed, document by document; `UnknownFeedError` where it was forgotten."""

        def look(db: Database) -> tuple[list[DocumentRow], dict[int, int]]:
            return documents.list_all(db, feed_id), documents.superseded(db, feed_id)

        rows, superseded = await self._context.store.read(look)
        status = await self.status(feed_id)
        return status, _account_of(status.overview, rows, superseded)

    @asynccontextmanager
    async def follow(self, feed_id: int) -> AsyncIterator[News]:
        """Follow what becomes of a feed until nothing is under way any more.

        Raises:
            OverloadedError: Too many do.
        """
        if self.followers >= MAX_FOLLOWERS:
            raise OverloadedError(f"expected at most {MAX_FOLLOWERS} who follow feeds at once")
        watched = self._watched.get(feed_id)
        if watched is not None and watched.followers >= MAX_FOLLOWERS_OF_ONE:
            raise OverloadedError(f"expected at most {MAX_FOLLOWERS_OF_ONE} who follow one feed at once")
        if watched is None or watched.is_over:
            watched = self._watched[feed_id] = _Watched()
            watched.task = asyncio.create_task(self._watch(feed_id, watched))
        self.followers += 1
        watched.followers += 1
        try:
            yield News(watched)
        finally:
            self.followers -= 1
            watched.followers -= 1
            if not watched.followers:
                await self._leave(feed_id, watched)

    async def _leave(self, feed_id: int, watched: _Watched) -> None:
        """End the watching of a feed that nobody follows any more."""
        if self._watched.get(feed_id) is watched:
            del self._watched[feed_id]
        assert watched.task is not None, "it has begun"
        watched.task.cancel()
        await asyncio.wait({watched.task})

    async def _watch(self, feed_id: int, watched: _Watched) -> None:
        """Tell the followers of a feed what changes, until nothing does any more."""
        try:
            while not self._stopping.done():
                told = await self.status(feed_id)
                watched.tell(told, is_last=not told.is_refreshing)
                if not told.is_refreshing:
                    return
                await self._tell_progress(feed_id, watched, told)
        except (UnknownFeedError, StoreError, OverloadedError):  # forgotten, or it can be asked for later
            return
        finally:
            watched.end()

    async def _tell_progress(self, feed_id: int, watched: _Watched, told: Status) -> None:
        """Tell what is in memory until it is time to look at what is stored."""
        if told.elsewhere is not None and self._running.running(feed_id) is None:
            await asyncio.wait({self._stopping}, timeout=_ELSEWHERE_SECONDS)
            return
        began, first = time.monotonic(), _counts(told)
        while self._running.running(feed_id) is not None and not self._stopping.done():
            await asyncio.wait({self._stopping}, timeout=TICK_SECONDS)
            now = self._now(told, feed_id)
            if _counts(now) != _counts(told):
                watched.tell(now)
                told = now
            passed_seconds = time.monotonic() - began
            if passed_seconds >= (_IDLE_SECONDS if _counts(told) == first else _READ_SECONDS):
                return


def _counts(status: Status) -> tuple[int, int, int]:
    return status.progress_documents, status.progress_entries, status.progress_fetched


class News:
    """What one follower of a feed is told."""

    def __init__(self, watched: _Watched) -> None:
        self._watched = watched
        self._seen = 0

    @property
    def is_over(self) -> bool:
        """Whether all has been told: nothing is under way, the feed was forgotten, or the program stops."""
        return self._watched.is_over and self._seen == self._watched.number

    @property
    def is_settled(self) -> bool:
        """Whether what was told last is how the refresh ended."""
        return self._watched.is_last and self._seen == self._watched.number

    async def next(self, seconds: float) -> Status | None:
        """Return what is known now, once it is more than before; None: nothing was in that time.

        Of several changes since the last call only the latest is told.
        """
        await self._watched.wait(self._seen, seconds)
        if self._watched.number == self._seen:
            return None
        self._seen = self._watched.number
        return self._watched.latest


class _Watched:
    """One feed that is followed: what its followers are told, and the task that finds it out."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.followers = 0
        self.latest: Status | None = None
        self.number = 0
        """How often `latest` has changed."""
        self.is_over = False
        self.is_last = False
        """Whether `latest` tells how the refresh ended."""
        self._changed = asyncio.Event()

    def tell(self, status: Status, *, is_last: bool = False) -> None:
        """Let everybody know, unless it is what they know already."""
        if is_last or _without_times(status) != _without_times(self.latest):
            self.latest, self.is_last = status, is_last
            self.number += 1
            self._wake()

    def end(self) -> None:
        """Let everybody know that nothing follows."""
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seen: int, seconds: float) -> None:
        """Wait until more is known than what was seen, or nothing follows, for at most so long."""
        if self.number == seen and not self.is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()


def _without_times(status: Status | None) -> Status | None:
    """Return a status without what changes by time alone: that is no news."""
    if status is None:
        return None
    is_paused = status.paused_until is not None
    return replace(status, progress_seconds=None, elsewhere=None, paused_until=0.0 if is_paused else None)


# The account: the chain document by document

_GUESSED: Final = "guessed"
"""What led to a document behind a missing one (R34) instead of a link: its number or date."""
_PAGING: Final = (Relation.NEXT, Relation.PREVIOUS, Relation.PREV, Relation.FIRST, Relation.LAST)
"""Relations that tie the documents of a paged feed together."""
_NO_LEAD: Final = ("", "")
"""Neither a relation nor a document that bears it."""


class Standing(StrEnum):
    """How a document of the chain stands."""

    KEPT = "kept"
    """Stored; asked for again when it is due."""
    SETTLED = "settled"
    """Stored for good; never fetched again (R13)."""
    TRUNCATED = "truncated"
    """Stored, but it broke off (docs/faults.md row 49)."""
    MISSING = "missing"
    """Linked to, and could not be had."""
    DETACHED = "detached"
    """Stored, but no longer part of the feed (R15, R25)."""


@dataclass(frozen=True, slots=True)
class ChainDocument:
    """One document of the account."""

    url: str
    standing: Standing
    relation: str
    """Of the link that leads to it; `guessed` behind a missing document (R34); empty for the subscription
    document and where no link is known."""
    source: str
    """The document that bears that link, or the missing one."""
    document: DocumentRow | None = None
    """None when it is missing."""
    duplicates: int = 0
    """Entries of it that another copy stands for, or that were deleted."""
    attempt: Attempt | None = None
    """Why it, or the rest of it, could not be had."""


def _account_of(
    overview: Overview, rows: Sequence[DocumentRow], superseded: Mapping[int, int]
) -> list[ChainDocument]:
    """Return the account of a feed: its documents, stored and missing, and what led to each.

    It stands in output order (R20), what is missing of a chain behind the document that links to it, what is
    detached at the end.

    Args:
        overview: The feed as it was published last, and what could not be had of it.
        rows: The stored documents in output order, the detached ones last.
        superseded: How many entries of each document are not live.
    """
    kind = overview.feed.kind
    leads = _jumps(overview.feed.notes) | _leads(kind, rows)
    failed = {document_key(attempt.url): attempt for attempt in overview.failures.missing}
    told: list[ChainDocument] = []
    for row in rows:
        keys = (document_key(row.url), document_key(row.final_url))
        lead = _NO_LEAD
        if row.role in (Role.ARCHIVE, Role.PAGE):
            lead = next((leads[key] for key in keys if key in leads), _NO_LEAD)
        attempt = next((failed.pop(key) for key in keys if key in failed), None)
        told.append(
            ChainDocument(row.url, _standing(row, attempt), *lead, row, superseded.get(row.id, 0), attempt)
        )
    attached = sum(row.rank is not None for row in rows)
    missing = [
        ChainDocument(attempt.url, Standing.MISSING, *leads.get(key, _NO_LEAD), attempt=attempt)
        for key, attempt in failed.items()
    ]
    chain = told[:attached]
    for each in missing:
        chain.insert(_place_in_chain(kind, each, chain), each)
    return [*chain, *told[attached:]]


def _jumps(notes: str) -> dict[str, tuple[str, str]]:
    """Return what led to the documents behind missing ones, as `_leads` does.

    Args:
        notes: Of the feed, as JSON.
    """
    found = (note for note in json.loads(notes) if note["code"] == JumpedHole.code)
    return {document_key(note["goes_on_at"]): (_GUESSED, note["url"]) for note in found}


def _leads(kind: Kind, rows: Sequence[DocumentRow]) -> dict[str, tuple[str, str]]:
    """Return which link leads to a document, and where it stands, by the `document_key` of its target."""
    leads: dict[str, tuple[str, str]] = {}
    for relation in _relations(kind, rows):
        for row in rows:
            target = row.links.get(relation)
            if target is not None and document_key(target) != document_key(row.url):
                leads.setdefault(document_key(target), (relation, row.url))
    return leads


def _relations(kind: Kind, rows: Sequence[DocumentRow]) -> Iterator[str]:
    """Give the relations that the feed's documents are tied together by."""
    if kind is Kind.PAGED:
        yield from _PAGING
    elif rows and kind in (Kind.ARCHIVED, Kind.LEGACY):
        yield recall(rows[0].links, is_archive=rows[0].is_marked).relation


def _standing(row: DocumentRow, attempt: Attempt | None) -> Standing:
    if row.rank is None:
        return Standing.DETACHED
    if attempt is not None and attempt.reason == DocumentTruncated.slug:
        return Standing.TRUNCATED
    return Standing.SETTLED if row.is_final else Standing.KEPT


def _place_in_chain(kind: Kind, missing: ChainDocument, chain: Sequence[ChainDocument]) -> int:
    """Return where a missing document stands: behind the one that links to it, and what that remembers."""
    urls = [each.url for each in chain]
    if kind is Kind.PAGED or missing.source not in urls:
        return len(chain)
    place = urls.index(missing.source) + 1
    while place < len(chain) and (row := chain[place].document) is not None and row.role is Role.MEMORY:
        place += 1
    return place


# The timeline


@dataclass(frozen=True, slots=True)
class Timeline:
    """How far back a feed's history reaches, and where something is missing of it."""

    chart: Chart | None
    """None where no entry is dated."""
    undated: int
    """Entries that bear no date, or none that can be read."""
    holes: Mapping[str, Hole]
    """Where the missing documents are, by their URLs."""


def timeline_of(chain: Sequence[ChainDocument], months: Mapping[int, Months]) -> Timeline:
    """Return the timeline of a feed.

    Args:
        chain: Its account, as `Watching.account` tells it.
        months: How many entries each document has of each month, by its number.
    """
    total: Counter[int | None] = Counter()
    for each in months.values():
        total.update(each)
    undated = total.pop(None, 0)
    dated = {month: entries for month, entries in total.items() if month is not None}
    attached = [_place_in_time(each, months) for each in chain if each.standing is not Standing.DETACHED]
    holes = {hole.url: hole for hole in holes_of(attached)}
    # what nothing led to stands at the end of the account, which is not where it belongs
    holes |= {each.url: Hole(each.url, None, None) for each in chain if _is_lost(each)}
    return Timeline(chart_of(dated, holes.values()), undated, holes)


def _place_in_time(document: ChainDocument, months: Mapping[int, Months]) -> Place:
    if document.standing is Standing.MISSING:
        return Place(document.url, is_missing=True, span=None)
    row = document.document
    # what is remembered is of any time
    known = [] if row is None or row.role is Role.MEMORY else months.get(row.id, {})
    dated = [month for month in known if month is not None]
    return Place(document.url, is_missing=False, span=Span(min(dated), max(dated)) if dated else None)


def _is_lost(document: ChainDocument) -> bool:
    return document.standing is Standing.MISSING and not document.source


# Entries as people read them

_MOST_ENTRIES: Final = 200
"""Entries that are read at once."""
LONGEST_BYTES: Final = 1 << 18
"""Of an entry's text, what is read of it: a thick book has as much."""
_ROOM_BYTES: Final = 1 << 22
"""Of the text of all entries that are read at once; the entries behind it are cut to `_LEAST_BYTES` each."""
_LEAST_BYTES: Final = 1 << 14
_INFLATED_BYTES: Final = 1 << 16
"""Of a segment's text, what is inflated at a time."""


async def described(feed: FeedRow) -> Heading:
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

    newest: tuple[Shown, ...]
    """The first in output order, in that order."""
    oldest: tuple[Shown, ...]
    """The last in output order, in that order."""


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
    """Return entries in output order, fewer where there are no more; at most `_MOST_ENTRIES`.

    Of the feed's segments those alone are read that hold them, a piece at a time, on threads: whatever the
    feed's size, what is in memory is a few MB. Entries that are very long are cut short (`Shown.is_cut`).
    `Shown.content` is HTML of a stranger: who shows it sanitises it.

    Args:
        snapshot: That is held (`Reconstruction.snapshot`, `Store.snapshot`).
        store: Where it is.
        start: The first of them, counted in output order (R20) from 0.
        count: How many.
    """
    texts = await read_texts(snapshot, store, start, min(count, _MOST_ENTRIES), room_bytes=_ROOM_BYTES)
    return await asyncio.to_thread(_shown, snapshot.feed, texts)


def _shown(feed: FeedRow, texts: Sequence[Begun]) -> tuple[Shown, ...]:
    family, namespace = feed.published_family, namespace_of(feed)
    return tuple(shown(family, text, namespace=namespace, is_cut=is_cut) for text, is_cut in texts)


def namespace_of(feed: FeedRow) -> str:
    """Return the default namespace around the entries of a feed as it is sent."""
    return default_namespace(feed.published_family, feed.version)


async def read_texts(
    snapshot: Snapshot, store: Store, start: int, count: int, *, room_bytes: int
) -> tuple[Begun, ...]:
    """Return the texts of entries, or their beginnings.

    Args:
        snapshot: As for `read_entries`, and so the others.
        store: Where it is.
        start: The first of them.
        count: How many.
        room_bytes: What they may come to before they are cut to `_LEAST_BYTES` each.
    """
    end, room = start + count, room_bytes
    found: list[Begun] = []
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
            found += taken.entries(SEPARATOR[snapshot.feed.published_family].strip())
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
        segment: Whose pieces are added.
        slices: Where the entries stand in its text, ascending.
        room: Bytes that they may come to before they are cut short; the attribute is what is left of it.
    """

    def __init__(self, segment: SegmentRow, slices: Sequence[Slice], room: int) -> None:
        self._inflater = Inflater(segment.length, segment.crc32)
        self._at = 0
        self._ranges: list[tuple[int, int, bool]] = []
        for each in slices:
            size = min(each.end - each.start, LONGEST_BYTES, max(room, _LEAST_BYTES))
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

    def entries(self, joint: bytes) -> Iterator[Begun]:
        """Give them; `joint` is what stands behind an entry that is not the last."""
        for text, (_, _, is_cut) in zip(self._texts, self._ranges, strict=True):
            yield Begun(text if is_cut else text.strip().removesuffix(joint), is_cut)
