"""What people have kept of a feed: put into it, and taken back (I1).

    imports = Imports(context, running, ready)
    taken = await imports.take(url, Kept(body, name="2012.xml"))    # raises ImportRefusedError
    removed = await imports.remove(url, "2012.xml")

`wholefeed.core.importing` says whether a document belongs, a refresh of the feed stores it. Nothing is stored
of one that is refused.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from wholefeed.core.importing import Named, refusal, time_of
from wholefeed.core.model import IMPORT_URL, EntryId
from wholefeed.core.refresh.port import RefreshRequest, subscription_of
from wholefeed.errors import (
    DocumentError,
    ImportRefusedError,
    OverloadedError,
    UnknownFeedError,
    WorkTooLargeError,
)
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.refresh import OfferedCopy
from wholefeed.service.running import AGAIN_SECONDS, Running
from wholefeed.service.sources import Obtained, silenced
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, FeedRow
from wholefeed.store.tables import documents, identities

log = get_logger()

_LONGEST_NAME: Final = 200
"""Characters."""


class Kept(NamedTuple):
    """A document that somebody has kept."""

    body: bytes
    name: str = ""
    """What it is shown by, and removed; empty: it has none yet."""
    at: float | None = None
    """When it was kept, epoch seconds, where its owner says so."""
    file_at: float | None = None
    """When the file was changed last."""
    is_forced: bool = False
    """Whether it is taken though nothing says that it belongs."""


class Taken(NamedTuple):
    """What came of a document."""

    feed: FeedRow
    """As it is then."""
    name: str
    url: str
    """Of the document."""
    as_of: float
    entries: int
    new_entries: int
    """Of these, how many the feed did not have."""
    is_new: bool = False
    """Whether it was taken; else all that it has was there."""
    is_served: bool = False
    """Whether it is part of the feed; a complete one has no such part."""


class Imports:
    """Puts documents into feeds; each waits for the refresh of its feed under way.

    `ready` has the feed of a URL once it can be served, in time by the monotonic clock.
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

    async def take(self, url: str, kept: Kept) -> Taken:
        """Put a document into the feed of a URL, which is fetched first where it is not known.

        Raises:
            ImportRefusedError: It is not readable, or not this feed's; or the feed is as large as it may be.
            DocumentError: The feed is not known, and cannot be had.
            OverloadedError: The feed is being refreshed.
        """
        deadline = time.monotonic() + self._seconds
        feed = await self._context.find(url)
        if feed is None or not feed.digest:
            feed, _ = await self._ready(url, deadline)
        try:
            taken = await self._take(feed, kept, deadline)
        except ImportRefusedError as exc:
            self._context.counts.imports["refused"] += 1
            log.info("import.refused", feed=feed.id, slug=exc.slug)
            raise
        outcome = "taken" if taken.is_new else "known"
        self._context.counts.imports[outcome] += 1
        log.info("import.taken", feed=feed.id, outcome=outcome, entries=taken.entries, new=taken.new_entries)
        return taken

    async def remove(self, url: str, name: str) -> int:
        """Take back what was imported by a name; return how many documents went.

        That of an archive stands for all in it. The URL of one document is a name, too.
        """
        feed = await self._context.find(url)
        if feed is None:
            raise UnknownFeedError(f"nothing is stored for {url}")
        rows = await self._store.read(partial(documents.list_all, feed=feed.id))
        found = tuple(
            row.url
            for row in rows
            if row.is_imported and (name in (row.memento, row.url) or row.memento.startswith(f"{name}/"))
        )
        if not found:
            raise ImportRefusedError(f"nothing was imported as {name[:_LONGEST_NAME]!r}", slug="not-found")
        request = RefreshRequest(is_polled=True, removes=found)
        await self._running.refresh_alone(feed.id, request, (), time.monotonic() + self._seconds)
        log.info("import.removed", feed=feed.id, documents=len(found))
        return len(found)

    async def _take(self, feed: FeedRow, kept: Kept, deadline: float) -> Taken:
        rows = await self._store.read(partial(documents.list_all, feed=feed.id))
        own = subscription_of(rows)
        if own is None:
            raise _later("the feed is not there yet")
        obtained = await self._read(kept, own)
        url = IMPORT_URL + obtained.read.digest[:16].hex()
        known = next((row for row in rows if row.url == url), None)
        asked = partial(_identified, feed=feed.id, obtained=obtained)
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
        taken = Taken(
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
        self._require_room(rows, obtained)
        offered = OfferedCopy(url, silenced(obtained), is_subscription=True)
        feed = await self._running.refresh_alone(
            feed.id, RefreshRequest(is_polled=True), (offered,), deadline
        )
        rows = await self._store.read(partial(documents.list_all, feed=feed.id))
        row = next((row for row in rows if row.url == url), None)
        if row is None:
            raise _later("the feed is being refreshed elsewhere")
        return taken._replace(feed=feed, is_new=True, is_served=row.rank is not None)

    async def _read(self, kept: Kept, own: DocumentRow) -> Obtained:
        """Parse a document as if it stood where the subscription document does, and find out its time."""
        now = self._context.now()
        name = kept.name or f"kept {hashlib.sha256(kept.body).hexdigest()[:12]}"
        try:
            obtained = await self._context.source.read_kept(
                kept.body, name[:_LONGEST_NAME], url=own.final_url, at=now
            )
        except DocumentError as exc:
            if exc.slug == WorkTooLargeError.default_slug:
                raise OverloadedError(str(exc.args[0])) from exc
            raise ImportRefusedError(str(exc.args[0]), slug=exc.slug) from exc
        span, updated_at = obtained.read.span, obtained.read.facts.updated_at
        dates = (None if span is None else span.newest_at, updated_at)
        as_of = time_of(kept.at, dates, kept.file_at, now=now)
        return replace(obtained, fetched=replace(obtained.fetched, fetched_at=as_of))

    def _require_room(self, rows: Sequence[DocumentRow], obtained: Obtained) -> None:
        """R18: what is put into a feed counts as what is fetched of it does."""
        limits = self._context.config.limits
        sizes = {
            "documents_per_feed": len(rows) + 1,
            "feed_bytes": sum(row.body_bytes for row in rows) + len(obtained.fetched.body),
            "entries_per_feed": sum(row.entries for row in rows) + len(obtained.read.facts.entries),
        }
        for key, size in sizes.items():
            if size > (most := getattr(limits, key)):
                text = f"the feed would be larger than limits.{key} = {most:g} lets it"
                raise ImportRefusedError(text, slug="limit")


def _later(why: str) -> OverloadedError:
    return OverloadedError(why, retry_after_seconds=AGAIN_SECONDS)


def _identified(db: Database, feed: int, obtained: Obtained) -> tuple[list[EntryId], dict[EntryId, bool]]:
    """Return what identifies a document's entries in the feed (R9), and what `documents.standing` does."""
    facts = obtained.read.facts
    if facts.keys:
        facts = facts.identified(identities.ambiguous_with(db, feed, facts.keys, facts.ambiguous))
    named = list(facts.entries.identities())
    return named, documents.standing(db, feed, named)
