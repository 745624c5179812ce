"""A fetched document on its way into the store, and the entries that leave a replaced document (R7, R8).

Its parsed or rendered form stays in memory until it is published or replaced.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from wholefeed.core.compose.remembering import (
    RememberedCopies,
    ReplacedDocument,
    StoredMemory,
    WrittenMemory,
    remember_copies,
)
from wholefeed.core.facts import CopyDates, Stored
from wholefeed.core.jobs import DocumentInMemory, read_again
from wholefeed.core.merge import OTHER, Fullness, Replacement, believable_instant, replacement
from wholefeed.core.model import MEMORY_URL, EntryId, Family, FeedDocument, Role
from wholefeed.core.notes import KINDS, TextsShortened
from wholefeed.core.origins import Origin
from wholefeed.core.parse.limits import PARSER_VERSION, ParseError
from wholefeed.core.refresh.arrivals import Placement
from wholefeed.core.schedule import age_seconds, is_uncacheable
from wholefeed.errors import WorkError
from wholefeed.fetch.base import Fetched
from wholefeed.logs import get_logger
from wholefeed.service.sources import HELD_BYTES, Obtained, work_bytes
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, NewDocument
from wholefeed.store.store import Store
from wholefeed.store.tables import document_table, identity_table, live, posts
from wholefeed.store.tables.document_table import copy_dates, put_again
from wholefeed.workers.pool import Workers

log = get_logger()


# In and out of the store


def new_document(obtained: Obtained, placement: Placement) -> NewDocument:
    fetched, read, facts = obtained.fetched, obtained.read, obtained.read.facts
    etag, last_modified = fetched.validators
    return NewDocument(
        url=placement.url,
        final_url=fetched.final_url,
        role=placement.role,
        rank=placement.rank,
        family=facts.family,
        version=facts.version,
        site_id=facts.site_id,
        links=read.navigation.links,
        is_marked=read.navigation.is_archive,
        is_settled=placement.is_settled,
        is_uncacheable=is_uncacheable(fetched.headers),
        brought_news=placement.brought_news,
        body=fetched.body,
        media_type=fetched.media_type,
        digest=read.digest,
        etag=etag or None,
        last_modified=last_modified or None,
        fetched_at=fetched.fetched_at,
        updated_at=facts.updated_at,
        origin=Origin.ADAPTER if placement.found_by else obtained.origin,
        memento=obtained.memento,
        parser_version=PARSER_VERSION,
        entries=facts.entries,
        tombstones=facts.tombstones,
        keys=facts.keys,
        ambiguous=facts.ambiguous,
        own=facts.own,
        traits=facts.traits,
        pairs=facts.pairs,
        notes=[replace(note, url=placement.url).as_dict() for note in (*facts.notes, *read.navigation.notes)],
        marks=read.marks.written(),
        found_by=placement.found_by,
        found_in=placement.found_in,
        generated_at=fetched.fetched_at - age_seconds(fetched.headers) if placement.found_by else None,
        is_doubtful=placement.is_doubtful,
        in_memory=DocumentInMemory(
            read.digest, obtained.document, read.composed, read.rendered, obtained.style
        ),
    )


_CODED_BYTES: Final = 1 << 20  # smaller bodies are encoded in the transaction, which takes milliseconds


async def compress_bodies(new: Sequence[NewDocument]) -> list[NewDocument]:
    """Encode large bodies before a transaction, to keep the transaction short."""
    return [
        each
        if len(each.body) <= _CODED_BYTES or each.coded is not None
        else replace(each, coded=await asyncio.to_thread(document_table.encode_body, each.body))
        for each in new
    ]


def make_stored(row: DocumentRow, body: bytes) -> Stored:
    """Return a stored body for parsing; it met the limits when it was fetched."""
    return Stored(body, row.final_url, row.media_type)


# In memory

MAX_FRESH_BYTES: Final = 12 << 20  # of one refresh's documents; the rest is read from the store again


class FreshDocuments:
    """Documents of one refresh, kept until rendered to avoid reading them back.

    Nobody else stores documents of the feed meanwhile.
    """

    def __init__(self) -> None:
        self._documents: dict[int, DocumentInMemory] = {}
        self._held_bytes = 0
        self._new_bytes = 0
        self._is_much = asyncio.Event()

    def keep(self, number: int, document: DocumentInMemory) -> None:
        """Add a document; drop the oldest if there are too many bytes."""
        self.drop((number,))
        self._documents[number] = document
        self._held_bytes += document.size_bytes
        self._new_bytes += document.size_bytes
        if self._new_bytes > MAX_FRESH_BYTES * 3 // 4:
            self._is_much.set()
        while self._held_bytes > MAX_FRESH_BYTES:
            self.drop((next(iter(self._documents)),))

    async def wait_for_more(self, within_seconds: float) -> None:
        """Wait until new documents nearly fill the space, at most for `within_seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await self._is_much.wait()
        self._is_much.clear()
        self._new_bytes = 0

    def drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._documents:
                self._held_bytes -= self._documents.pop(number).size_bytes

    def get(self, row: DocumentRow) -> DocumentInMemory | None:
        found = self._documents.get(row.id)
        return found if found is not None and found.digest == row.digest else None

    def by_number(self) -> Mapping[int, DocumentInMemory]:
        return dict(self._documents)


class ParsedDocuments:
    """Cache of small parsed documents, for the refreshes that replace them.

    The key is content, URL and media type, so nothing becomes out of date.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        # by `_parsed_key`, the one asked for last at the end
        self._held: OrderedDict[Hashable, tuple[FeedDocument, int]] = OrderedDict()
        self.bytes = 0

    def keep(self, new: NewDocument) -> None:
        """Cache a stored document if the feed's growth will replace it."""
        document = None if new.in_memory is None else new.in_memory.document
        is_replaced = new.role is Role.SUBSCRIPTION or (new.role is Role.MEMORY and not new.is_settled)
        if document is None or not is_replaced:
            return
        key, size = _parsed_key(new), _parsed_size(document)
        self._remove(key)
        self._held[key] = document, size
        self.bytes += size
        while self.bytes > self._max_bytes:
            self._remove(next(iter(self._held)))

    def find(self, row: DocumentRow) -> FeedDocument | None:
        key = _parsed_key(row)
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key][0]

    def drop(self, rows: Iterable[DocumentRow]) -> None:
        for row in rows:
            self._remove(_parsed_key(row))

    def _remove(self, key: Hashable) -> None:
        if key in self._held:
            self.bytes -= self._held.pop(key)[1]


def _parsed_key(document: DocumentRow | NewDocument) -> Hashable:
    return document.digest, document.final_url, document.media_type


_ENTRY_BYTES: Final = 512  # its numbers, its identity and their places in tuples
_KEYS_BYTES: Final = 320
_CHILD_BYTES: Final = 400
_OVERHEAD_BYTES: Final = 4096


def _parsed_size(document: FeedDocument) -> int:
    each = _ENTRY_BYTES + (_KEYS_BYTES if any(entry.keys for entry in document.entries) else 0)
    children = len(document.head.children) + len(document.head.links)
    return (
        sys.getsizeof(document.text)
        + each * len(document.entries)
        + _CHILD_BYTES * children
        + _OVERHEAD_BYTES
    )


# Entries that leave


async def documents_to_remember(store: Store, work: Workers, leaving: DepartingEntries) -> list[NewDocument]:
    """Return memory documents to store with a replacement.

    If `DepartingEntries.is_at_hand`, the transaction makes them (`DepartingEntries.documents`).
    """
    if leaving.is_at_hand:
        return []
    replaced = await store.read(leaving.look, feed=leaving.replaced[0].feed)
    if replaced is None:
        return []
    size_bytes = sum(map(_work_bytes, replaced.documents))
    found = await work.run(size_bytes, remember_copies, replaced, keeps_parsed=size_bytes <= HELD_BYTES)
    return leaving.puts(found)


class DepartingEntries:
    """Entries that leave a replaced document for memory documents (R7, R8, R10, R35).

    A copy fuller than its replacement is remembered too, except from an archive. A page's entries mostly move
    to other pages, so an equally good copy elsewhere suffices. For an archive's entries any other copy
    suffices.

    If the family changes, all entries leave, detached until the family returns (R23).
    """

    def __init__(
        self,
        rows: Sequence[DocumentRow],
        old: DocumentRow,
        new: Obtained,
        now: float,
        parsed: ParsedDocuments | None = None,
    ) -> None:
        self._old, self._new, self._now = old, new, now
        self._is_page = old.role is not Role.SUBSCRIPTION
        self._is_archive = old.role is Role.ARCHIVE
        self._is_attached = new.read.facts.family is old.family
        self._is_set_back = self._is_attached and not self._is_page and _is_set_back(old, new)
        generated_at = old.fetched_at if old.generated_at is None else old.generated_at
        # when the old document was made, if that date counts for its copies (R10)
        self._made_at = generated_at if any(row.origin is Origin.ADAPTER for row in rows) else None
        memories = [row for row in rows if row.role is Role.MEMORY]
        usable = [row for row in memories if row.family is old.family and row.rank is not None]
        self._open = max((row for row in usable if not row.is_settled), key=_memory_number, default=None)
        self._next_number = 1 + max((_memory_number(row) for row in memories), default=0)
        self.replaced = [old] if self._open is None else [old, self._open]  # if anything leaves
        is_small = sum(row.body_bytes for row in self.replaced) <= HELD_BYTES and new.document is not None
        found = {row.id: parsed.find(row) for row in self.replaced} if parsed is not None and is_small else {}
        self._held = {number: document for number, document in found.items() if document is not None}
        self._is_shortened = any(note["code"] == TextsShortened.code for note in old.notes)
        self._cut: frozenset[EntryId] = frozenset()

    @property
    def is_at_hand(self) -> bool:
        """Whether `replaced` is in memory, parsed."""
        return len(self._held) == len(self.replaced)

    def documents(self, db: Database) -> list[NewDocument]:
        """Return memory documents if `is_at_hand`, else none."""
        replaced = self.look(db) if self.is_at_hand else None
        return [] if replaced is None else self.puts(remember_copies(replaced, keeps_parsed=True))

    def look(self, db: Database) -> ReplacedDocument | None:
        """Read the arguments of `remember_copies`; None: nothing leaves."""
        old, new, latest = self._old, self._new, None
        facts = new.read.facts
        was, standing = (
            document_table.list_for_comparison(db, old.id),
            list(facts.entries.said()) if self._is_attached else [],
        )
        found = replacement(was, standing)
        if self._is_archive:  # the publisher decides (R10)
            found = Replacement(present=dict.fromkeys(found.present, OTHER), gone=found.gone)
        names = self._note_renamed(db, found) if facts.has_renamed else {}
        is_moved = self._is_page and self._is_attached
        left = [*found.gone, *found.fuller] if is_moved else found.fuller
        elsewhere = live.find_better_elsewhere(db, old.feed, left, old.id, is_page=is_moved)
        if self._is_archive:
            elsewhere |= set(left) - live.find_departing(db, old.feed, old.id, ())
        if is_moved:
            latest = None if old.origin is Origin.ADAPTER else live.subscription_updated_at(db, old.feed)
        stood = {each.identity for each in was}
        come = [each for each in standing if each.identity not in stood and each.fullness != Fullness.FULL]
        self._is_shortened |= bool(found.fuller) or live.count_fuller(db, old.feed, come) > 0
        needs_texts = found.needs_texts or self._is_set_back
        if not (needs_texts or any(each not in elsewhere for each in (*found.gone, *found.fuller))):
            return None
        memory = None
        if self._open is not None:
            dates = document_table.copy_dates(db, self._open.id)
            memory = StoredMemory(_memory_number(self._open), self._document(db, self._open), dates)
        return ReplacedDocument(
            document=self._document(db, old),
            present=found.present | dict.fromkeys(elsewhere, OTHER),
            memory=memory,
            successor=new.document or make_stored_of(new.fetched) if needs_texts else None,
            fullness=[each.fullness for each in was],
            ambiguous=identity_table.find_ambiguous(db, old.feed, facts.keys, facts.ambiguous),
            names=names,
            fetched_at=old.fetched_at,
            next_number=self._next_number,
            latest=latest,
            made_at=self._made_at,
            is_set_back=self._is_set_back,
        )

    def _note_renamed(self, db: Database, found: Replacement) -> dict[EntryId, EntryId]:
        """Mark renamed posts as gone if served under their old ids (R36); return identities by own id."""
        old, facts = self._old, self._new.read.facts
        was = posts.own_ids(db, old.id)
        now = {
            identity: facts.own.get(ordinal, identity)
            for ordinal, identity in enumerate(facts.entries.identities())
        }
        usual = posts.find_usual(db, old.feed, was.keys())
        for identity, own in was.items():
            if own.id != usual.get(identity, identity):
                # Answers use another id and another copy, so this copy need not be remembered.
                if not own.is_live:
                    found.present[identity] = OTHER
            elif identity in found.present and now[identity] != own.id:
                found.present.pop(identity)
                found.gone.append(identity)
        names = {own.id: identity for identity, own in was.items() if own.id != identity}
        return names | {own: identity for identity, own in now.items() if own != identity}

    def _document(self, db: Database, row: DocumentRow) -> Stored | FeedDocument:
        return self._held.get(row.id) or make_stored(row, document_table.read_body(db, row.id))

    def puts(self, found: RememberedCopies) -> list[NewDocument]:
        """Return memory documents; note which texts in the new document are cut."""
        self._cut = found.cut
        return [
            _memory_document(each, self._old, self._now, is_attached=self._is_attached)
            for each in found.written
        ]

    def judge(self, db: Database, new: NewDocument) -> NewDocument:
        """Return the new document with notes on how full its texts are (R10)."""
        entries = self._new.read.facts.entries
        if self._cut:
            places = enumerate(entries.identities())
            entries = entries.cut([ordinal for ordinal, each in places if each in self._cut])
            new = replace(new, entries=entries)
        fuller = live.count_fuller(db, self._old.feed, entries.said()) if self._is_shortened else 0
        note = TextsShortened(new.url, entries=fuller).as_dict()
        return replace(new, notes=[*new.notes, note]) if fuller else new


def _is_set_back(old: DocumentRow, new: Obtained) -> bool:
    """Whether a document's own date is before its predecessor's: caches send such copies."""
    # Another version is no old copy: the publisher has changed its software.
    if old.version != new.read.facts.version:
        return False
    was = believable_instant(old.updated_at, old.fetched_at)
    now = new.read.facts.updated_at
    return was is not None and now is not None and now < was


def make_stored_of(fetched: Fetched) -> Stored:
    return Stored(fetched.body, fetched.final_url, fetched.media_type)


def _work_bytes(document: Stored | FeedDocument) -> int:
    return work_bytes(document.body if isinstance(document, Stored) else document.text)


def _memory_document(
    written: WrittenMemory, like: DocumentRow, now: float, *, is_attached: bool
) -> NewDocument:
    body, url, media_type = written.document
    return NewDocument(
        url=url,
        final_url=url,
        role=Role.MEMORY,
        origin=Origin.MEMORY,
        rank=-written.number if is_attached else None,
        detached_at=like.detached_at,  # a page of the other family has left with its family
        family=like.family,
        version=written.facts.version,
        site_id=like.site_id,
        is_settled=written.is_sealed,
        body=body,
        media_type=media_type,
        digest=written.digest,
        fetched_at=now,
        parser_version=PARSER_VERSION,
        entries=written.facts.entries,
        keys=written.facts.keys,
        own=written.facts.own,
        in_memory=DocumentInMemory(written.digest, written.parsed),
    )


def returning(rows: list[DocumentRow], family: Family) -> dict[int, int]:
    """Return ranks, by number, for memory documents that return with their family.

    Those detached earlier left for another reason (R1).
    """
    gone = [row for row in rows if row.role is Role.MEMORY and row.family is family and row.rank is None]
    last = max((row.detached_at or 0.0 for row in gone), default=0.0)
    return {row.id: -_memory_number(row) for row in gone if row.detached_at == last}


def _memory_number(row: DocumentRow) -> int:
    return int(row.url.removeprefix(MEMORY_URL))


# Parsed again

_BATCH: Final = 16  # documents in one transaction


async def reparse(
    store: Store,
    write: Callable[..., Awaitable[object]],
    work: Workers,
    rows: list[DocumentRow],
    now: float,
) -> bool:
    """Parse documents of older parsers again, and store them; return whether there were any.

    The stored body is the source of truth (docs/design.md#the-store). An unreadable document stays unchanged.
    Old segments serve until the next publication.
    """
    outdated = [row for row in rows if row.parser_version != PARSER_VERSION]
    for start in range(0, len(outdated), _BATCH):
        documents = [await _read_again(store, work, row) for row in outdated[start : start + _BATCH]]
        new = await compress_bodies([each for each in documents if each is not None])
        await write(put_again, new, now)
    return bool(outdated)


async def _read_again(store: Store, work: Workers, row: DocumentRow) -> NewDocument | None:
    def look(db: Database) -> tuple[bytes, tuple[CopyDates, ...]]:
        return document_table.read_body(db, row.id), copy_dates(db, row.id) if row.role is Role.MEMORY else ()

    body, dates = await store.read(look)
    try:
        facts = await work.run(work_bytes(body), read_again, make_stored(row, body), dates)
    except (ParseError, WorkError) as exc:
        log.warning("document.unreadable", feed=row.feed, document=row.id, slug=exc.slug)
        return None
    return replace(
        NewDocument.of(row, body, facts.entries),
        family=facts.family,
        version=facts.version,
        site_id=facts.site_id,
        updated_at=facts.updated_at,
        parser_version=PARSER_VERSION,
        tombstones=facts.tombstones if row.origin.policy.buries else (),
        keys=facts.keys,
        ambiguous=facts.ambiguous,
        traits=facts.traits,
        notes=[
            *(replace(note, url=row.url).as_dict() for note in facts.notes),
            *(note for note in row.notes if KINDS[note["code"]].outlasts_reading),
        ],
    )
