"""The subscription document in one refresh: fetched, stored, and its reply noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from http import HTTPStatus

from wholefeed.core.jobs import Style
from wholefeed.core.links import updated_links
from wholefeed.core.model import Role
from wholefeed.core.refresh.arrivals import FoundSubscription, FreshDocument, Reply, SubscriptionFailed
from wholefeed.core.refresh.asking import AskSubscription, NoteFailure, NoteReply, StoreSubscription
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.schedule import sound_validators
from wholefeed.errors import DocumentError
from wholefeed.fetch.base import Fetched, Manner, Validators
from wholefeed.service.context import RefreshContext
from wholefeed.service.feed_file import FeedFile
from wholefeed.service.offers import describe_fresh, describe_offer, offer_document
from wholefeed.service.sources import Obtained, as_failure, follow_to_subscription
from wholefeed.store.rows import DocumentChanges, FeedChanges, FeedRow
from wholefeed.store.tables import document_table, failures, feed_table


class SubscriptionDesk:
    """Fetches and stores the subscription document."""

    def __init__(
        self,
        context: RefreshContext,
        feed: FeedRow,
        file: FeedFile,
        found: FoundSubscription[Obtained] | None,
        *,
        is_polled: bool,
    ) -> None:
        self._context = context
        self._feed = feed
        self._file = file
        self._is_polled = is_polled
        self._found = found
        """The document fetched at the opening, until requested."""
        self._received: Obtained | None = None
        """The document, until stored."""
        self._stored: StoredDocument | None = None
        self.find_style: Callable[[], Style | None] = lambda: None
        """Returns the style of the feed's segments."""

    async def ask(self, request: AskSubscription) -> Reply | SubscriptionFailed:
        found, self._found = self._found, None
        self._stored = request.stored
        if found is not None and found.document.failure is not None:  # a memento stands in (R33)
            return await self._offer_copy(found, found.document.failure)
        try:
            came = found or await self._fetch(request)
        except DocumentError as exc:
            return SubscriptionFailed(as_failure(exc), exc)
        if isinstance(came, Fetched):
            self._note_validators(came)
            return _reply_of(came)
        obtained = await self._receive(came)
        fresh = describe_fresh(obtained.url, obtained)
        return _reply_of(obtained.fetched, FoundSubscription(came.url, fresh, came.notes))

    async def _offer_copy(
        self, found: FoundSubscription[Obtained], error: DocumentError
    ) -> SubscriptionFailed:
        obtained = await self._receive(found)
        offer = offer_document(obtained.url, obtained, is_subscription=True)
        copy = describe_offer(offer, obtained)
        return SubscriptionFailed(as_failure(error), error, copy)

    async def _fetch(self, request: AskSubscription) -> FoundSubscription[Obtained] | Fetched:
        source, url, stored = self._context.source, request.url, request.stored
        conditions = None if request.is_whole else self.conditions(stored)
        manner = Manner(feed_url=self._feed.url, is_polled=self._is_polled)
        came = await source.obtain(url, validators=conditions, manner=manner)
        obtained = await self.with_new_links(stored, came, None)
        if isinstance(obtained, Fetched):
            return obtained
        if request.searches:
            return await follow_to_subscription(source, url, obtained, feed_url=self._feed.url)
        return FoundSubscription(url, obtained)

    async def _receive(self, found: FoundSubscription[Obtained]) -> Obtained:
        obtained = await self._file.identify(found.document)
        self.find_style = cache(obtained.style_of())
        self._received = obtained
        return obtained

    async def store(self, request: StoreSubscription) -> None:
        received, self._received = self._received, None
        assert received is not None, "it has come"
        async with self._file.changing():
            await self._file.storage.put_subscription(received, request.placement)

    async def note_reply(self, request: NoteReply) -> None:
        received, self._received = self._received, None
        if received is not None:  # an unchanged document is not stored again
            self._note_validators(received.fetched)
        self._file.storage.note_reply(request.reply)

    async def note_failure(self, request: NoteFailure) -> None:
        changes: FeedChanges = {
            "is_stale": True,
            "failed_at": self._context.now(),
            "fresh_until": request.fresh_until,
        }
        if request.failure is None:
            self._file.storage.write_later(feed_table.update, changes)
        else:
            self._file.storage.write_later(failures.note_refetch, request.failure, changes)

    def _note_validators(self, fetched: Fetched) -> None:
        """Note new validators of an unchanged document (RFC 9111, 4.3.4)."""
        stored = self._stored
        if stored is None or fetched.is_met:
            return
        etag, last_modified = fetched.validators
        if fetched.not_modified:  # an absent validator stays
            before = stored.validators
            etag, last_modified = etag or before.etag, last_modified or before.last_modified
        if (etag, last_modified) != stored.validators:
            changes: DocumentChanges = {"etag": etag or None, "last_modified": last_modified or None}
            self._file.storage.touch(stored.id, changes)

    # Conditional requests, for any document of the feed

    def conditions(self, stored: StoredDocument | None) -> Validators | None:
        """Return sendable validators: earlier program versions stored others, too."""
        if stored is None:
            return None
        date = max(stored.checked_at, self._context.now())
        etag, last_modified = sound_validators(stored.etag, stored.last_modified, date=date)
        return Validators(etag=etag, last_modified=last_modified, url=stored.final_url)

    async def with_new_links(
        self, stored: StoredDocument | None, came: Obtained | Fetched, style: Style | None
    ) -> Obtained | Fetched:
        """Return `came`; for a 304 with new Link fields, the stored document with these.

        New links replace the stored ones (RFC 9111, sections 3.2 and 4.3.4).
        """
        if isinstance(came, Obtained) or stored is None or not came.not_modified or came.is_met:
            return came
        links = updated_links(came.links, came.final_url, stored.links)
        if links is None:
            return came
        media_type, body = await self._file.storage.read(
            lambda db: (
                document_table.read_media_type(db, stored.id),
                document_table.read_body(db, stored.id),
            )
        )
        kept = {"etag": stored.etag, "last-modified": stored.last_modified, "content-length": str(len(body))}
        if stored.is_uncacheable and stored.role is not Role.SUBSCRIPTION:
            kept["cache-control"] = "no-cache"
        headers = {name: value for name, value in kept.items() if value is not None} | dict(came.headers)
        whole = replace(
            came, not_modified=False, body=body, media_type=media_type, headers=headers, links=links
        )
        return await self._context.source.read(whole, style)


def _reply_of(fetched: Fetched, found: FoundSubscription[FreshDocument] | None = None) -> Reply:
    return Reply(
        url=fetched.url,
        permanent_url=fetched.permanent_url,
        headers=fetched.headers,
        is_update=fetched.status == HTTPStatus.NOT_MODIFIED,
        found=found,
    )
