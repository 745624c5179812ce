"""Imports of documents that people had kept (I1), and feeds that continue others (I3).

`wholefeed.core.importing` refuses documents of other feeds; a refresh stores the rest.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from wholefeed.core.importing import Named, refusal, time_of
from wholefeed.core.model import IMPORT_URL, EntryId, State
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.basis import RefreshRequest
from wholefeed.core.refresh.stored import subscription_of
from wholefeed.core.text.urls import UrlError, canonical_url, is_http
from wholefeed.errors import (
    DocumentError,
    ForbiddenTargetError,
    ImportRefusedError,
    OverloadedError,
    RequestError,
    UnknownFeedError,
    WorkTooLargeError,
)
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.offers import offer_document
from wholefeed.service.running import AGAIN_SECONDS, Running
from wholefeed.service.saved_files import ConvertedFile, SavedFiles
from wholefeed.service.showing import read_document
from wholefeed.service.sources import Obtained, drop_links
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, FeedRow
from wholefeed.store.tables import document_table, identity_table, posts

log = get_logger()

_LONGEST_NAME: Final = 200
"""Characters."""


class SuppliedDocument(NamedTuple):
    body: bytes
    name: str = ""
    """For display and removal; empty: none yet."""
    at: float | None = None
    """The owner's date for the document, in epoch seconds."""
    file_at: float | None = None
    """Last change of the file, in epoch seconds."""
    is_forced: bool = False
    """Whether to import without evidence that it belongs."""


class ImportedDocument(NamedTuple):
    feed: FeedRow
    name: str
    url: str
    as_of: float
    entries: int
    new_entries: int
    is_new: bool = False
    """False: the document, or all its entries, were in the feed."""
    is_served: bool = False
    """Always false for a complete feed."""


class Continued(NamedTuple):
    feed: FeedRow
    """The continuing feed."""
    entries: int
    """Served entries of the other feed."""
    new_entries: int
    is_served: bool
    """Always false for a complete feed."""


class Imports:
    """Imports, each after the current refresh of its feed.

    `ready` returns a feed fit to serve; its deadline is monotonic.
    """

    def __init__(
        self,
        context: RefreshContext,
        running: Running,
        ready: Callable[[str, float], Awaitable[tuple[FeedRow, bool]]],
    ) -> None:
        self._context = context
        self._store = context.store
        self._running = running
        self._ready = ready
        self._seconds = context.config.limits.respond_within_seconds
        self._saved = SavedFiles(context)

    async def take(self, url: str, kept: SuppliedDocument) -> ImportedDocument:
        """Import a document, fetching an unknown feed first.

        Raises:
            ImportRefusedError: Unreadable, not of this feed, or the feed is full.
            DocumentError: The unknown feed cannot be obtained.
            OverloadedError: The feed is being refreshed.
        """
        deadline = time.monotonic() + self._seconds
        feed = await self._context.find(url)
        if feed is None or not feed.digest:
            feed, _ = await self._ready(url, deadline)
        try:
            taken = await self._take_file(feed, kept._replace(name=kept.name[:_LONGEST_NAME]), deadline)
        except ImportRefusedError as exc:
            self._context.counts.imports["refused"] += 1
            log.info("import.refused", feed=feed.id, slug=exc.slug)
            raise
        outcome = "taken" if taken.is_new else "known"
        self._context.counts.imports[outcome] += 1
        log.info("import.taken", feed=feed.id, outcome=outcome, entries=taken.entries, new=taken.new_entries)
        return taken

    async def continue_feed(self, old_url: str, new_url: str) -> Continued:
        """Import the served entries of one feed into another (I3), named by the old URL.

        A repetition adds only entries not imported before.

        Raises:
            UnknownFeedError: One feed is not stored.
            RequestError: Both are one feed, or would form a circle.
            ForbiddenTargetError: One is private, the other not its publisher's.
            ImportRefusedError: The formats differ, or the feed is full.
            OverloadedError: A fetch is under way, or more remains: ask again.
        """
        deadline = time.monotonic() + self._seconds
        old, new = await self._known(old_url), await self._known(new_url)
        if self._context.publishers.are_apart(old.url, new.url):
            raise ForbiddenTargetError(
                "no other feed may continue the feed of a private publisher", url=old.url
            )
        if old.id == new.id:
            raise RequestError(f"expected two feeds, got one: {old.url}")
        if new.url in await self._find_continued(old.url):
            raise RequestError(f"expected a feed that does not continue {new.url}, got a circle: {old.url}")
        old = await self._fetch_whole(old, deadline)
        entries = new_entries = 0
        is_served = new.state is not State.COMPLETE
        async with self._store.snapshot(old.id) as snapshot:
            for number in range(len(snapshot.segments)):
                body = await read_document(snapshot, self._store, number)
                kept = SuppliedDocument(body, name=old.url, is_forced=True)
                try:
                    taken = await self._take(new, kept, deadline)
                except ImportRefusedError as exc:
                    raise ImportRefusedError(f"{old.url}: {exc}", slug=exc.slug) from exc
                new, entries = taken.feed, entries + taken.entries
                new_entries += taken.new_entries if taken.is_new else 0
                is_served = taken.is_served if taken.is_new else is_served
        log.info("feed.continued", feed=new.id, entries=entries, new=new_entries)
        return Continued(new, entries, new_entries, is_served)

    async def _known(self, url: str) -> FeedRow:
        feed = await self._context.find(url)
        if feed is None:
            raise UnknownFeedError(f"nothing is stored for {url}")
        return feed

    async def _fetch_whole(self, feed: FeedRow, deadline: float) -> FeedRow:
        """Return a feed after its first walk; before, only a part is stored."""
        if feed.visible_state is not State.LOADING or (flight := self._running.running(feed.id)) is None:
            return feed
        await asyncio.wait({flight}, timeout=max(0.0, deadline - time.monotonic()))
        if not flight.done():
            raise _later(f"{feed.url} is being fetched; try again when the fetch has ended")
        return await self._known(feed.url)

    async def _find_continued(self, url: str) -> set[str]:
        """Return all feeds continued directly or indirectly."""
        found, left = set[str](), [url]
        while left:
            feed = await self._store.find(left.pop())
            rows = (
                [] if feed is None else await self._store.read(partial(document_table.list_all, feed=feed.id))
            )
            names = {row.memento for row in rows if row.is_imported} - found
            found |= names
            left += [name for name in names if is_http(name)]
        return found

    async def remove(self, url: str, name: str) -> int:
        """Remove imports by name or document URL; return their number.

        The name of a zip file covers all its documents.

        Raises:
            UnknownFeedError: The feed is not stored.
            ImportRefusedError: The name is unknown.
            OverloadedError: The feed is being refreshed.
        """
        names = {name, _canonical(name)}  # a continued feed's URL may be spelt differently
        feed = await self._known(url)
        rows = await self._store.read(partial(document_table.list_all, feed=feed.id))
        found = tuple(
            row.url
            for row in rows
            if row.is_imported and (names & {row.memento, row.url} or row.memento.startswith(f"{name}/"))
        )
        if not found:
            raise ImportRefusedError(f"nothing was imported as {name[:_LONGEST_NAME]!r}", slug="not-found")
        request = RefreshRequest(is_polled=True, removes=found)
        await self._running.refresh_alone(feed.id, request, (), time.monotonic() + self._seconds)
        log.info("import.removed", feed=feed.id, documents=len(found))
        return len(found)

    async def _take_file(self, feed: FeedRow, kept: SuppliedDocument, deadline: float) -> ImportedDocument:
        """Import a document, or the documents in a feed reader's file (I4)."""
        rows = await self._store.read(partial(document_table.list_all, feed=feed.id))
        own, now = _require_own(rows), self._context.now()
        converted = await self._saved.convert(
            kept.body,
            feed,
            own,
            undated_at=time_of(kept.at, (), kept.file_at, now=now),
            is_dated=kept.at is not None,
            is_forced=kept.is_forced,
        )
        if converted is None:
            return await self._take(feed, kept, deadline)
        await self._require_room_for(rows, feed, own, kept, converted)
        # by name alone, if it has none: each document has a digest of its own
        name = kept.name or f"kept {hashlib.sha256(kept.body).hexdigest()[:12]}"
        taken = ImportedDocument(feed, name, "", min(kept.at or now, now), 0, 0)
        for body in converted.documents:
            part = kept._replace(body=body, name=name, is_forced=True)
            each = await self._take(taken.feed, part, time.monotonic() + self._seconds)
            taken = _join(taken, each)
        return taken

    async def _require_room_for(
        self,
        rows: Sequence[DocumentRow],
        feed: FeedRow,
        own: DocumentRow,
        kept: SuppliedDocument,
        converted: ConvertedFile,
    ) -> None:
        """Refuse a file that the feed has no room for, before a part of it is stored.

        Documents without anything new are not stored, so they do not count.
        """
        try:
            self._require_room(rows, converted.documents, converted.entries)
        except ImportRefusedError:
            bodies, entries = list[bytes](), 0
            for body in converted.documents:
                obtained = await self._read(kept._replace(body=body), own)
                look = partial(_identify, feed=feed.id, obtained=obtained)
                named, standing = await self._store.read(look)
                if any(not standing.get(each) for each in named):
                    bodies.append(body)
                    entries += len(named)
            self._require_room(rows, bodies, entries)

    async def _take(self, feed: FeedRow, kept: SuppliedDocument, deadline: float) -> ImportedDocument:
        rows = await self._store.read(partial(document_table.list_all, feed=feed.id))
        own = _require_own(rows)
        obtained = await self._read(kept, own)
        url = IMPORT_URL + obtained.read.digest[:16].hex()
        known = next((row for row in rows if row.url == url), None)
        asked = partial(_identify, feed=feed.id, obtained=obtained)
        named, standing = await self._store.read(asked)
        facts, new_entries = obtained.read.facts, len({each for each in named if not standing.get(each)})
        why = refusal(
            Named(facts.family, facts.site_id, obtained.read.navigation.links),
            Named(own.family, own.site_id, own.links, (own.url, own.final_url, feed.fetch_url)),
            has_common=bool(standing),
            is_forced=kept.is_forced,
        )
        if why is not None:
            raise ImportRefusedError(why.text, slug=why.slug)
        taken = ImportedDocument(
            feed=feed,
            name=obtained.memento,
            url=url,
            as_of=obtained.fetched.fetched_at,
            entries=len(named),
            new_entries=new_entries,
        )
        if known is not None or not new_entries:
            is_served = known is not None and known.rank is not None
            return taken._replace(name=known.memento if known else taken.name, is_served=is_served)
        self._require_room(rows, [obtained.fetched.body], len(obtained.read.facts.entries))
        offered = offer_document(url, drop_links(obtained), is_subscription=True)
        feed = await self._running.refresh_alone(
            feed.id, RefreshRequest(is_polled=True), (offered,), deadline
        )
        rows = await self._store.read(partial(document_table.list_all, feed=feed.id))
        row = next((row for row in rows if row.url == url), None)
        if row is None:
            raise _later("the feed is being refreshed elsewhere")
        return taken._replace(feed=feed, is_new=True, is_served=row.rank is not None)

    async def _read(self, kept: SuppliedDocument, own: DocumentRow) -> Obtained:
        """Parse a document as if from the subscription document's URL, and date it."""
        now = self._context.now()
        name = kept.name or f"kept {hashlib.sha256(kept.body).hexdigest()[:12]}"
        try:
            obtained = await self._context.source.read_kept(
                kept.body, Origin.IMPORT, name, url=own.final_url, at=now
            )
        except DocumentError as exc:
            if exc.slug == WorkTooLargeError.default_slug:
                raise OverloadedError(str(exc.args[0])) from exc
            raise ImportRefusedError(str(exc.args[0]), slug=exc.slug) from exc
        span, updated_at = obtained.read.span, obtained.read.facts.updated_at
        dates = (None if span is None else span.newest_at, updated_at)
        as_of = time_of(kept.at, dates, kept.file_at, now=now)
        return replace(obtained, fetched=replace(obtained.fetched, fetched_at=as_of))

    def _require_room(self, rows: Sequence[DocumentRow], bodies: Sequence[bytes], entries: int) -> None:
        """Count imports like fetched documents (R18)."""
        limits = self._context.config.limits
        sizes = {
            "documents_per_feed": len(rows) + len(bodies),
            "feed_bytes": sum(row.body_bytes for row in rows) + sum(map(len, bodies)),
            "entries_per_feed": sum(row.entries for row in rows) + entries,
        }
        for key, size in sizes.items():
            if size > (most := getattr(limits, key)):
                text = f"the feed would exceed limits.{key} = {most:g}"
                raise ImportRefusedError(text, slug="limit")


def _require_own(rows: Sequence[DocumentRow]) -> DocumentRow:
    own = subscription_of(rows)
    if own is None:
        raise _later("the feed is not there yet")
    return own


def _join(taken: ImportedDocument, each: ImportedDocument) -> ImportedDocument:
    """Count a further document of the same file."""
    new_entries = each.new_entries if each.is_new else 0
    return ImportedDocument(
        feed=each.feed,
        name=taken.name,
        url=taken.url or each.url,
        as_of=max(taken.as_of, each.as_of) if taken.url else each.as_of,
        entries=taken.entries + each.entries,
        new_entries=taken.new_entries + new_entries,
        is_new=taken.is_new or each.is_new,
        is_served=taken.is_served or each.is_served,
    )


def _canonical(name: str) -> str:
    try:
        return canonical_url(name)
    except UrlError:
        return name


def _later(why: str) -> OverloadedError:
    return OverloadedError(why, retry_after_seconds=AGAIN_SECONDS)


def _identify(db: Database, feed: int, obtained: Obtained) -> tuple[list[EntryId], dict[EntryId, bool]]:
    """Return entries' identities (R9), and those present in the feed."""
    facts = obtained.read.facts
    if facts.keys:
        facts = facts.identify(identity_table.find_ambiguous(db, feed, facts.keys, facts.ambiguous))
    named = list(facts.entries.identities())
    known = posts.find(db, feed, named).posts  # R36
    named = [known.get(each, each) for each in named]
    return named, document_table.find_present(db, feed, named)
