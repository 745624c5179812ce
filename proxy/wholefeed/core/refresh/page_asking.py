"""The pages that an adapter asks for: stored or fetched, and what becomes of them (R6, R27, R32)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wholefeed.core.adapters.asking import Answer, Ask, Page, Refused, There
from wholefeed.core.model import EntryId
from wholefeed.core.notes import DocumentUnavailable, HistoryUnfinished, LimitReached, Note
from wholefeed.core.refresh.adding import adds_to
from wholefeed.core.refresh.events import (
    Answered,
    Arrived,
    DocumentsRead,
    EntriesRead,
    Failed,
    FreshDocument,
    KnownRead,
    LedBack,
    Stored,
    TimeOver,
)
from wholefeed.core.refresh.given import Given
from wholefeed.core.refresh.intents import (
    BeginWalk,
    Drop,
    Fetch,
    Put,
    ReadDocuments,
    ReadEntries,
    ReadKnown,
    Steps,
    Touch,
    Wait,
    carry_out,
    outcome,
)
from wholefeed.core.refresh.page_judging import objection_to, page_come, page_stored
from wholefeed.core.refresh.page_trouble import Trouble
from wholefeed.core.refresh.progress import Progress
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.core.terms import Role
from wholefeed.core.text.urls import document_key

AT_ONCE: Final = 2
"""Requests under way (R32)."""


class PageAsking:
    """Carries out the questions of an adapter."""

    def __init__(
        self,
        given: Given,
        documents: Sequence[StoredDocument],
        subscription: StoredDocument,
        adapter: str,
        progress: Progress,
    ) -> None:
        self._given = given
        self._subscription = subscription
        self.first: tuple[EntryId, ...] = ()
        """What stands in the subscription document, from the top; to be set before anything is asked."""
        self._adapter = adapter
        self._progress = progress
        pages = [row for row in documents if row.role is Role.PAGE]
        self._stored = {document_key(row.url): row for row in pages}
        attached = [row for row in documents if row.rank is not None]
        self._documents = len(attached)
        self._bytes = sum(row.body_bytes for row in attached)
        self._entries = sum(row.entries for row in attached)
        self.has_pages = any(row.found_by and row.rank is not None for row in pages)
        self.is_all = False
        """Whether every page is asked for."""
        self._walk = 0
        self._has_begun = False
        self._renewed: set[str] = set()
        """Keys of pages that were put and are stored otherwise than `_stored` has them."""
        self.trouble = Trouble(given)
        """What could not be had, and what follows from that."""
        self.has_kept = self.has_pages
        """Whether a page of this pattern is part of the feed."""
        self.has_put = False
        """Whether one came that was worth keeping."""

    def begin_all(self, walk: int) -> None:
        """Ask for every page; what a walk of this number had comes from the store."""
        self.is_all, self._walk = True, walk

    def still(self, attempt: Attempt) -> Note | None:
        """Return the note on what was missing before and was not asked for."""
        if attempt.reason == HistoryUnfinished.slug:
            return HistoryUnfinished(attempt.url, self._adapter, "not tried again yet")
        return None if attempt.is_subscription else DocumentUnavailable(attempt.url, attempt.reason)

    def answers(self, asks: Sequence[Ask]) -> Steps[list[Answer]]:
        """Have the answers to some questions, in their order; fewer once `stop` is set."""
        found: dict[int, Answer] = {}
        running: dict[str, int] = {}
        place = 0
        while len(found) < len(asks):
            while place < len(asks) and len(running) < AT_ONCE and self.trouble.stop is None:
                answer = yield from self._without_network(asks[place])
                if answer is not None:
                    found[place] = answer
                elif self.trouble.stop is None:
                    yield from self._begin(asks[place])
                    running[asks[place].url] = place
                place += 1
            if not running:
                break
            event = yield Wait()
            if isinstance(event, TimeOver):
                limit = self._given.settings.walk_seconds
                self.trouble.limit(LimitReached(next(iter(running)), "limits.walk_seconds", limit))
                break
            assert isinstance(event, Arrived | Answered | Failed | LedBack), f"waited, was told {event}"
            self._progress.fetched += 1
            at = running.pop(event.url)
            found[at] = yield from self._taken(asks[at], event)
        return [found[at] for at in sorted(found)]

    # From the store, or not at all

    def _without_network(self, ask: Ask) -> Steps[Answer | None]:
        row = self._stored.get(document_key(ask.url))
        is_had = row is not None and row.rank is not None and self.is_all and row.found_in == self._walk
        if row is not None and is_had and not ask.is_head and not ask.is_again:
            return (yield from self._stored_page(row))
        if self._given.waits(ask.url):
            attempt = self._given.missing[ask.url]
            self.trouble.notes.append(DocumentUnavailable(ask.url, attempt.reason))
            return Refused(attempt.reason, attempt.status)
        limits = self._given.settings.limits
        for reached, limit, key in (
            (self._documents, limits.documents, "limits.documents_per_feed"),
            (self._bytes, limits.bytes, "limits.feed_bytes"),
            (self._entries, limits.entries, "limits.entries_per_feed"),
        ):
            if reached >= limit and row is None and not ask.is_head:
                self.trouble.limit(LimitReached(ask.url, key, limit))
        return None

    def _stored_page(self, row: StoredDocument) -> Steps[Page]:
        read = yield from outcome(ReadEntries(row.id), EntriesRead)
        return page_stored(row, read)

    def _begin(self, ask: Ask) -> Steps[None]:
        if self.is_all and not self._has_begun:
            self._has_begun = True
            yield from carry_out(BeginWalk())
        yield from carry_out(
            Fetch(url=ask.url, stored=None, relation="", is_collected=True, is_head=ask.is_head)
        )

    # What came

    def _taken(self, ask: Ask, event: Arrived | Answered | Failed | LedBack) -> Steps[Answer]:
        if isinstance(event, Answered):
            self.trouble.answered()
            return There(event.headers)
        if isinstance(event, LedBack):
            return self.trouble.objected(ask, Refused("redirected"))
        if isinstance(event, Failed):
            return self.trouble.failed(ask, event.failure)
        self.trouble.answered()
        return (yield from self._arrived(ask, event.fresh))

    def _arrived(self, ask: Ask, fresh: FreshDocument) -> Steps[Answer]:
        arrival, url = fresh.arrival, ask.url
        objection = objection_to(ask.url, fresh, self._subscription, self._given.site_of)
        if objection is not None:
            yield from carry_out(Drop(url))
            return self.trouble.objected(ask, objection)
        now, identities = self._given.clock.now, tuple(identity for identity, _ in arrival.keys or ())
        read = yield from outcome(ReadKnown(identities, with_copies=True, url=url), KnownRead)
        news = sum(identity not in read.known for identity in identities)
        row = yield from self._row(url)
        if ask.is_needed and not identities:
            self.trouble.notes.append(DocumentUnavailable(url, "empty"))
        else:
            self.trouble.forget(url)
        if ask.is_probe:
            yield from carry_out(Drop(url))
        elif row is not None and row.rank is not None and row.digest == arrival.digest:
            yield from carry_out(Drop(url))
            yield from carry_out(Touch(document=row.id, is_settled=None, found_in=self._walk or None))
        elif self._says_more(identities) and (
            news or self.is_all or adds_to(read, fresh, now, is_collected=True)
        ):
            yield from self._put(ask, fresh, row)
        else:
            yield from carry_out(Drop(url))
        return page_come(fresh, identities, news=news, now=now)

    def _row(self, url: str) -> Steps[StoredDocument | None]:
        """Return a page as it is stored now: it may have been put a moment ago."""
        if document_key(url) in self._renewed:
            read = yield from outcome(ReadDocuments(), DocumentsRead)
            self._stored = {document_key(row.url): row for row in read.documents if row.role is Role.PAGE}
            self._renewed.clear()
        return self._stored.get(document_key(url))

    def _put(self, ask: Ask, fresh: FreshDocument, row: StoredDocument | None) -> Steps[None]:
        remembers = row if row is not None and row.rank is not None else None
        put = Put(
            url=ask.url,
            stored_url=row.url if row is not None else ask.url,
            role=Role.PAGE,
            rank=ask.place,
            remembers=remembers,
            found_by=self._adapter,
            found_in=self._walk,
        )
        yield from outcome(put, Stored)
        self.has_put = True
        self.has_kept = True
        self._renewed.add(document_key(ask.url))
        self._documents += row is None
        self._bytes += fresh.arrival.body_bytes
        self._entries += fresh.arrival.entries
        self._progress.add(ask.url, fresh.arrival.entries)

    def _says_more(self, identities: tuple[EntryId, ...]) -> bool:
        """R27: whether it is no repetition of the subscription document; else each page counts of a walk."""
        return bool(identities) and identities != self.first
