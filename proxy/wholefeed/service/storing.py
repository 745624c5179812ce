"""The stored state of one feed, during one refresh.

Functions that take a `Database` run in the thread of a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from wholefeed.core.compose.segments import Placed
from wholefeed.core.jobs import DocumentInMemory
from wholefeed.core.model import Role, Tombstone
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh.arrivals import Placement, ReplyFacts, SubscriptionPlacement
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.logs import get_logger
from wholefeed.service.entry_order import Order, StoredOrder, read_order
from wholefeed.service.memory import Beginning, Memory
from wholefeed.service.new_documents import (
    DepartingEntries,
    FreshDocuments,
    compress_bodies,
    documents_to_remember,
    new_document,
    reparse,
    returning,
)
from wholefeed.service.sharing import Fence
from wholefeed.service.sources import Obtained
from wholefeed.store.base import Database
from wholefeed.store.rows import (
    DocumentChanges,
    DocumentRow,
    Failures,
    FeedChanges,
    FeedRow,
    NewDocument,
    NewSegment,
    Publication,
    SegmentRow,
    Snapshot,
)
from wholefeed.store.store import Store
from wholefeed.store.tables import document_table, failures, feed_table, lines, posts, segment_table
from wholefeed.store.tables import live as live_table
from wholefeed.store.tables.document_table import live_counts, live_ordinals
from wholefeed.workers.pool import Workers

log = get_logger()

_T = TypeVar("_T")
_P = ParamSpec("_P")


class FeedStorage:
    """Reads and writes one feed's stored state. All methods raise `StoreError`."""

    def __init__(
        self,
        store: Store,
        work: Workers,
        feed_id: int,
        *,
        now: Callable[[], float],
        memory: Memory,
        fence: Fence | None = None,
    ) -> None:
        self._store = store
        self._memory = memory
        self._fence = fence  # begins each transaction
        self._now = now
        self._later: list[_Later] = []
        self.rows: list[DocumentRow] | None = None  # all documents; None: not read since the last change
        self._publication_input: PublicationInput | None = None
        self.parsed = memory.parsed
        self.work = work
        self.feed_id = feed_id
        self.feed: FeedRow | None = None  # the stored row; None: not known, or this refresh has written
        self.missing: tuple[Attempt, ...] = ()
        self.fetch_url: str | None = None  # the subscription document's new URL, if it has moved
        self.fresh = FreshDocuments()

    async def start(self, *, is_new: bool) -> Beginning:
        memory, feed_id, since = self._memory, self.feed_id, self._memory.generation
        if is_new:
            found = Beginning([], Failures((), None))
        elif self._store.is_shared:  # other processes change it, so it is not cached
            found = await self.read(partial(_read_beginning, feed=feed_id))
        elif (held := memory.beginning(feed_id)) is not None:
            self.feed, found = held
        else:  # the row, too: the caller's may be older than the last refresh
            look = partial(_read_beginning, feed=feed_id)
            self.feed, found = await self.read(lambda db: (feed_table.find(db, feed_id), look(db)))
            if not memory.has_changed(feed_id, since):
                memory.keep_beginning(feed_id, found)
        self.rows, self.missing = found.rows, found.failures.missing
        return found

    # Reading

    async def read(self, work: Callable[[Database], _T]) -> _T:
        """Read from the store; changes noted and not yet written are absent."""
        return await self._store.read(work, feed=self.feed_id)

    async def documents(self) -> list[DocumentRow]:
        """Return the feed's documents; nobody else changes them during a refresh."""
        if self.rows is None:
            self.rows = await self.read(partial(document_table.list_all, feed=self.feed_id))
        return self.rows

    # Writing, now and with the next change

    def write_later(
        self, change: Callable[Concatenate[Database, int, _P], object], *facts: _P.args, **named: _P.kwargs
    ) -> None:
        """Note a change for the next write or `flush`; the change must not affect answers."""
        self._later.append(_Later(lambda db: change(db, self.feed_id, *facts, **named)))

    def touch(self, document: int, changes: DocumentChanges) -> None:
        def write(db: Database) -> None:
            feed_table.require_known(db, self.feed_id)  # a deleted feed is no loss of data
            document_table.touch(db, document, changes)

        self._later.append(_Later(write, touches_document=True))

    def note_reply(self, reply: ReplyFacts) -> None:
        """Note a reply's effects on the feed; if nothing is new, nobody waits for the write."""
        self.fetch_url = reply.fetch_url or self.fetch_url
        unchanged = None if self.feed is None else _confirm_row(self.feed, reply)
        write = partial(_note_reply, feed=self.feed_id, reply=reply)
        self._later.append(_Later(write, reply.unchanged is not None, unchanged))

    async def flush(self) -> None:
        if not self._later:
            return
        unchanged = self._later[0].unchanged if self.feed is not None and len(self._later) == 1 else None
        if unchanged is not None and self._store.note_unchanged(*unchanged):
            self._later.clear()
            self._memory.renew(unchanged[0], is_unchanged=True)
        else:
            await self._write(partial(feed_table.require, feed=self.feed_id), self._memory.renew)

    async def write(
        self, change: Callable[Concatenate[Database, int, _P], object], *facts: _P.args, **named: _P.kwargs
    ) -> None:
        """Write a change to unpublished state, and all noted changes."""

        def work(db: Database) -> FeedRow:
            change(db, self.feed_id, *facts, **named)
            return feed_table.require(db, self.feed_id)

        await self._write(work, self._memory.renew)

    async def wait_for_writes(self) -> None:
        """Wait for running writes, whoever began them.

        Else the next refresh would publish older state.
        """
        await self._store.write(lambda _: None, feed=self.feed_id)

    async def _write(
        self, work: Callable[[Database], _T], tell: Callable[[_T], None], *, comes_more: bool = False
    ) -> _T:
        later, self._later = self._later, []
        self.rows = self._publication_input = self.feed = None

        def with_earlier(db: Database) -> _T:
            if self._fence is not None:
                self._fence(db)
            for each in later:
                each.write(db)
            return work(db)

        try:
            return await self._store.write(with_earlier, feed=self.feed_id, comes_more=comes_more, tell=tell)
        except Exception:  # the notes are not written either; the next write includes them
            self._later = later + self._later
            raise

    # Putting documents

    async def put(self, new: Sequence[NewDocument]) -> list[int]:
        return await self._put(new, self._now())

    async def put_remembering(self, new: NewDocument, obtained: Obtained, old: StoredDocument) -> int:
        """Replace a page or archive document by a new version (R6, R35).

        Entries that leave it are remembered unless another document holds them.
        """
        now, rows = self._now(), await self.documents()
        leaving = DepartingEntries(rows, _row_of(old, rows), obtained, now)
        return (await self._put([new], now, leaving=leaving))[0]

    async def put_subscription(self, obtained: Obtained, placement: SubscriptionPlacement) -> None:
        now, rows, remembers = self._now(), await self.documents(), placement.remembers
        changes: FeedChanges = {"kind": placement.kind, "family": placement.family}
        if placement.changes_family:
            changes["family_since"] = now
        feed = self.feed
        is_said = feed is not None and all(getattr(feed, name) == value for name, value in changes.items())
        place = Placement(url=obtained.fetched.url, role=Role.SUBSCRIPTION, rank=0)
        leaving = None
        if remembers is not None:
            leaving = DepartingEntries(rows, _row_of(remembers, rows), obtained, now, self.parsed)
        await self._put(
            [new_document(obtained, place)],
            now,
            ranks=returning(rows, placement.family) if placement.changes_family else {},
            detached=placement.detached,
            changes={} if is_said else changes,
            leaving=leaving,
            looks=True,
        )

    async def _put(
        self,
        new: Sequence[NewDocument],
        now: float,
        *,
        ranks: Mapping[int, int] = MappingProxyType({}),
        detached: Sequence[int] = (),
        changes: FeedChanges | None = None,
        leaving: DepartingEntries | None = None,
        looks: bool = False,
    ) -> list[int]:
        """Store documents and changes to the chain and the feed in one transaction.

        `looks` also reads the next decision's and publication's input, to save a trip to the database.
        """
        if leaving is not None:
            new = [*new, *await documents_to_remember(self._store, self.work, leaving)]
        new = await compress_bodies(new)
        feed = self.feed_id

        def work(db: Database) -> _WasPut:
            coming = [*new, *(leaving.documents(db) if leaving is not None else ())]
            if leaving is not None:
                coming[0] = leaving.judge(db, coming[0])
            numbers = document_table.put_arranged(db, feed, coming, ranks, detached, changes or {}, now)
            fresh = {n: each.in_memory for n, each in zip(numbers, coming, strict=True) if each.in_memory}
            rows, stored = _read_publication_input(db, feed, fresh) if looks else (None, None)
            row = feed_table.require(db, feed) if stored is None else stored.feed
            return _WasPut(numbers, coming, row, rows, stored)

        was = await self._write(work, lambda was: self._memory.renew(was.row), comes_more=looks)
        self.rows, self._publication_input = was.rows, was.publication_input
        parsed = self.parsed
        if leaving is not None:
            parsed.drop(leaving.replaced)
        for number, each in zip(was.numbers, was.documents, strict=True):
            if each.in_memory is not None:
                self.fresh.keep(number, each.in_memory)
            parsed.keep(each)
        return was.numbers

    async def reread(self) -> bool:
        """Parse documents of older parsers again, and store them; return whether there were any."""
        rows = await self.documents()
        return await reparse(self._store, self.write, self.work, rows, self._now())

    async def settle_ids(self, *, joins: bool) -> bool:
        """Run `posts.settle_due` if anything is due; return whether it was."""
        now = self._now()
        if not await self.read(partial(posts.is_due, feed=self.feed_id, now=now, joins=joins)):
            return False
        await self.write(posts.settle_due, now, joins=joins)
        return True

    # Publishing

    async def order(self, stored: PublicationInput, sound: Collection[int]) -> Order | None:
        """Find out where entries stand if only the `sound` segments can stay."""
        what = StoredOrder(stored.documents, stored.places, stored.published, stored.members)
        return await self.read(
            partial(read_order, stored=what, is_current=lambda row: row.id in sound, is_certain=True)
        )

    async def publication_input(self) -> PublicationInput | None:
        """Return a publication's input; None: the feed has no subscription document."""
        if self._publication_input is not None:
            return self._publication_input
        look = partial(_read_publication_input, feed_id=self.feed_id, fresh=self.fresh.by_number())
        return (await self.read(look))[1]

    async def publish(self, publication: Publication, *, revision: int) -> FeedRow | None:
        """Publish the feed; return None if its documents have changed since `revision`."""
        store, memory, feed_id, now = self._store, self._memory, self.feed_id, self._now()
        touches = any(each.touches_document for each in self._later)
        rows = None if touches else self.rows  # publishing changes no document
        looks_again = publication.documents <= _MOST_READ and not store.is_shared

        def work(db: Database) -> tuple[Snapshot, Beginning | None] | None:
            row = segment_table.publish(db, feed_id, publication, revision=revision, pins=store.pins, now=now)
            if row is None:
                return None
            return segment_table.read_snapshot(db, row), _read_beginning(
                db, feed_id, rows
            ) if looks_again else None

        def tell(found: tuple[Snapshot, Beginning | None] | None) -> None:
            if found is None:
                memory.drop(feed_id)
                return
            snapshot, beginning = found
            pairs = zip(snapshot.segments, publication.segments, strict=True)
            memory.replace(
                snapshot, {row.id: new.sealed.block for row, new in pairs if isinstance(new, NewSegment)}
            )
            if beginning is not None:
                memory.keep_beginning(feed_id, beginning)

        found = await self._write(work, tell)
        if found is None:
            return None
        await store.tell_others(feed_id)
        return found[0].feed


# The start of a refresh

_MOST_READ: Final = 64  # documents; a larger feed is not read at publication for its next refresh


def _read_beginning(db: Database, feed: int, rows: list[DocumentRow] | None = None) -> Beginning:
    failed = failures.ask_for(db, feed)
    return Beginning(document_table.list_all(db, feed) if rows is None else rows, failed())


# Changes written with the next one


class _Later(NamedTuple):
    write: Callable[[Database], object]
    touches_document: bool = False
    unchanged: tuple[FeedRow, int] | None = None
    """A row that may be written later instead; see `_confirm_row`."""


def _row_of(document: StoredDocument, rows: Sequence[DocumentRow]) -> DocumentRow:
    return next(row for row in rows if row.id == document.id)


def _note_reply(db: Database, feed: int, reply: ReplyFacts) -> None:
    changes: FeedChanges = {
        "is_stale": False,
        "checked_at": reply.checked_at,
        "failed_at": None,
        "fresh_until": reply.fresh_until,
        "is_private": reply.is_private,
        "cache_control": reply.cache_fields.cache_control,
        "expires": reply.cache_fields.expires,
    }
    if reply.fetch_url is not None:
        changes["fetch_url"] = reply.fetch_url
    if reply.move is not None:
        changes["moved_to"] = reply.move.target
        changes["moved_since"] = reply.move.since
        changes["moved_times"] = reply.move.times
    if reply.first_seen_at is not None:
        changes["first_seen_at"] = reply.first_seen_at
    if reply.family_since is not None:
        changes["family_since"] = reply.family_since
    if reply.had_at is not None:
        changes["had_at"] = reply.had_at
    if reply.doubts is not None:
        changes["doubts"] = reply.doubts
    failures.note_refetch(db, feed, None, changes, is_known=True)
    if reply.unchanged is not None:
        document_table.touch(db, reply.unchanged, {"checked_at": reply.checked_at})


def _confirm_row(feed: FeedRow, reply: ReplyFacts) -> tuple[FeedRow, int] | None:
    """Return the confirmed feed row and the number of its unchanged document.

    None: the reply changes more than the feed's freshness.
    """
    if reply.unchanged is None or feed.is_stale or reply.is_private != feed.is_private:
        return None
    if reply.fetch_url is not None or reply.move is not None or reply.had_at is not None:
        return None
    cache_control, expires = reply.cache_fields
    row = replace(
        feed,
        checked_at=reply.checked_at,
        fresh_until=reply.fresh_until,
        cache_control=cache_control,
        expires=expires,
    )
    return row, reply.unchanged


# The result of a transaction that stores documents


class _WasPut(NamedTuple):
    numbers: list[int]
    documents: Sequence[NewDocument]
    """With memory documents at the end."""
    row: FeedRow
    rows: list[DocumentRow] | None
    """None unless `_put` looks; so is `publication_input`."""
    publication_input: PublicationInput | None


# The input of a publication


class PublicationInput(NamedTuple):
    """A publication's input, as stored at one moment."""

    feed: FeedRow
    documents: list[DocumentRow]
    """Attached documents in output order."""
    places: list[Placed]
    """In the same order."""
    deleted: list[Tombstone]
    missing: tuple[Attempt, ...]
    published: tuple[SegmentRow, ...]
    live: dict[int, LiveEntries]
    """By document, for those that probably need rendering."""
    is_collected: bool
    """Whether segments hold entries because of adapter pages or lists (R20)."""
    members: dict[int, bytes]
    """By segment, for segments that hold entries."""
    order: Order | None
    """None: entries follow their documents, or the feed is collected."""
    unlined: Collection[int]
    """Documents with live entries without a line, if the feed has lines (P1)."""

    @property
    def is_woven(self) -> bool:
        """Whether segments hold entries, not only whole documents."""
        return self.is_collected or self.order is not None


_READ_AHEAD_BYTES: Final = 256 * 1024  # of bodies read before it is certain which need rendering


def _read_publication_input(
    db: Database, feed_id: int, fresh: Mapping[int, DocumentInMemory]
) -> tuple[list[DocumentRow], PublicationInput | None]:
    """Return all documents and the input with small changed bodies; None: no subscription document."""
    asked_feed, asked_documents = feed_table.ask_for(db, feed_id), document_table.ask_all(db, feed_id)
    asked_places, asked_shown = segment_table.ask_places(db, feed_id), segment_table.ask_snapshot(db, feed_id)
    asked_deleted = live_table.ask_tombstones(db, feed_id)
    feed, stored, places = asked_feed(), asked_documents(), asked_places()
    rows = {row.id: row for row in stored if row.rank is not None}
    attached = [rows[place.document] for place in places]
    if feed is None or not attached or attached[0].role is not Role.SUBSCRIPTION:
        return stored, None
    has_pages = is_collected(attached)
    is_apart = any(place.is_clean and place.segment is None and place.live_bytes for place in places)
    published = asked_shown(feed)
    members = segment_table.members(db, feed_id) if has_pages or is_apart else {}
    order = None
    if not has_pages:
        order = read_order(db, StoredOrder(attached, places, published.segments, members), _is_of_this_parser)
    changed_since = [
        place.document
        for place in places
        if not place.is_clean or (place.segment is None and place.live_bytes and order is None)
    ]
    wanted, room = [attached[0].id], _READ_AHEAD_BYTES
    for place, row in () if has_pages else zip(places, attached, strict=True):
        if place.document in changed_since and place.live_bytes and row is not attached[0]:
            room -= 0 if row.id in fresh and fresh[row.id].has_text else row.body_bytes
            if room < 0:
                break
            wanted.append(row.id)
    return stored, PublicationInput(
        feed=feed,
        documents=attached,
        places=places,
        deleted=asked_deleted(),
        missing=published.missing,
        published=published.segments,
        live=read_live_entries(db, wanted, fresh),
        is_collected=has_pages,
        members=members,
        order=order,
        unlined=() if feed.lines_begun is None else lines.find_unnumbered(db, feed_id, changed_since),
    )


def _is_of_this_parser(segment: SegmentRow) -> bool:
    return segment.parser_version == PARSER_VERSION


def is_collected(attached: Iterable[DocumentRow]) -> bool:
    """Whether adapter pages (R26) or lists (H7) are among documents: R20 sorts across them."""
    return any(row.origin.policy.is_woven for row in attached)


class LiveEntries(NamedTuple):
    ordinals: Sequence[int]
    body: bytes | None
    """None: the document is in memory."""


def read_live_entries(
    db: Database, wanted: Sequence[int], fresh: Mapping[int, DocumentInMemory]
) -> dict[int, LiveEntries]:
    """Read documents' live entries; `fresh` documents are in memory."""
    known = {number: fresh[number] for number in wanted if number in fresh}
    sizes = {number: each.rendered.entries for number, each in known.items() if each.rendered is not None}
    counts = live_counts(db, sizes) if sizes else {}
    found = {
        number: LiveEntries(range(entries), None)
        for number, entries in sizes.items()
        if counts.get(number, 0) == entries
    }
    others = [number for number in wanted if number not in found]
    # A parsed document serves any live entries, a rendered one only all of its entries.
    for number, ordinals in live_ordinals(db, others).items() if others else ():
        is_parsed = number in known and known[number].document is not None
        found[number] = LiveEntries(ordinals, None if is_parsed else document_table.read_body(db, number))
    return found
