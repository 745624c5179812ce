"""What people look at: how a feed stands and its refresh goes on, its documents, its months.

    async with watching.follow(feed_id) as news:
        while not news.is_over:
            status = await news.next(15.0)              # None: nothing has changed for so long

    status, chain = await watching.account(feed_id)     # its documents, what is missing among them
    timeline = timeline_of(chain, await store.read(lambda db: months(db, feed_id)))

Nothing here changes or fetches anything. The words for it stand in `wholefeed.core.words`, the pages in
`wholefeed.web`; a feed's entries in `wholefeed.service.showing`.
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
from typing import Final

from wholefeed.core.chart import Chart, Hole, Place, Span, chart_of, holes_of
from wholefeed.core.links import recall
from wholefeed.core.model import Kind, Relation, Role
from wholefeed.core.notes import DocumentTruncated, JumpedHole
from wholefeed.core.refresh.port import Attempt
from wholefeed.core.text.urls import document_key
from wholefeed.errors import OverloadedError, StoreError, UnknownFeedError
from wholefeed.service.context import RefreshContext
from wholefeed.service.results import Status, UnderWay
from wholefeed.service.running import Running
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, Overview
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
    Once `stopping` is done nobody follows anything any more.
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

        def look(db: Database) -> tuple[Overview, UnderWay | None]:
            return failures.overview(db, feed_id), sharing.elsewhere(db, feed_id)

        overview, elsewhere = await self._context.store.read(look)
        feed = overview.feed
        stored = UnderWay(documents=feed.documents, entries=feed.entries)
        paused_until = self._context.paused_until(feed.fetch_url)
        return self._now(Status(overview, False, stored, paused_until, elsewhere), feed_id)

    def _now(self, told: Status, feed_id: int) -> Status:
        """Return a status with the progress of this moment."""
        is_here = self._running.running(feed_id) is not None
        under_way = self._running.under_way(feed_id) if is_here else told.elsewhere
        is_refreshing = is_here or under_way is not None
        if under_way is None or not under_way.is_walking:
            return replace(told, is_refreshing=is_refreshing)
        return replace(told, is_refreshing=is_refreshing, progress=under_way)

    async def account(self, feed_id: int) -> tuple[Status, list[ChainDocument]]:
        """Tell what is known of a feed, document by document; raises as `status`."""

        def look(db: Database) -> tuple[list[DocumentRow], dict[int, int]]:
            return documents.list_all(db, feed_id), documents.superseded(db, feed_id)

        rows, superseded = await self._context.store.read(look)
        status = await self.status(feed_id)
        return status, _account_of(status.overview, rows, superseded)

    @asynccontextmanager
    async def follow(self, feed_id: int) -> AsyncIterator[News]:
        """Follow what becomes of a feed until nothing is under way; `OverloadedError`: too many do."""
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
                watched.tell(told)
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
    return status.progress.documents, status.progress.entries, status.progress.fetched


class News:
    """What one follower of a feed is told."""

    def __init__(self, watched: _Watched) -> None:
        self._watched = watched
        self._told: Status | None = None

    @property
    def is_over(self) -> bool:
        """Whether all has been told: nothing is under way, the feed was forgotten, or the program stops."""
        return self._watched.is_over and self._told is self._watched.latest

    async def next(self, seconds: float) -> Status | None:
        """Return what is known now, once it is more than before; None: nothing was in that time.

        Of several changes since the last call only the latest is told; the end is a status that says that
        nothing is under way.
        """
        watched = self._watched
        if self._told is watched.latest and not watched.is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await watched.changed.wait()
        if self._told is watched.latest:
            return None
        self._told = watched.latest
        return self._told


class _Watched:
    """One feed that is followed: what its followers are told, and the task that finds it out."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.followers = 0
        self.latest: Status | None = None
        """A new one each time, with which followers compare what they were told."""
        self.is_over = False
        """Whether nothing follows."""
        self.changed = asyncio.Event()

    def tell(self, status: Status) -> None:
        """Let everybody know, unless it is what they know already; how the refresh ended in any case."""
        is_over = not status.is_refreshing
        if is_over or self.latest is None or _shown(status) != _shown(self.latest):
            self.latest = status
            self._wake()

    def end(self) -> None:
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


def _shown(status: Status) -> tuple[object, ...]:
    """Return what of a status is news once it is another one: not what changes by time alone."""
    left, is_paused = status.progress.left, status.paused_until is not None
    return status.overview, status.is_refreshing, *_counts(status), left, is_paused


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

    It stands in output order (R20), as `rows` does; what is missing of a chain behind the document that links
    to it, what is detached at the end. `superseded` has how many entries of each document are not live.
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
    """Return what led to the documents behind missing ones, as `_leads` does, by the feed's notes."""
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
    """Return the timeline of a feed by its account and the entries that each document has of each month."""
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
