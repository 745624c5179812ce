"""Keep in the store what a decision wants kept, and look there for what it wants to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from wholefeed.core.refresh import intents
from wholefeed.core.refresh.events import CarriedOut, DocumentsRead, Event, KnownRead, ReadAgain, Stored
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.terms import Role
from wholefeed.service.documents.memory import documents_to_remember, returning
from wholefeed.service.documents.reparse import reparse
from wholefeed.service.documents.shapes import new_document
from wholefeed.service.documents.source import Obtained
from wholefeed.service.documents.subscription import Subscription
from wholefeed.store.rows import DocumentChanges, DocumentRow, FeedChanges
from wholefeed.store.store import Store


class FeedStorage:
    """What is stored of one feed, for one refresh. All of it raises `StoreError`.

    Args:
        store: The store.
        feed_id: The feed.
        now: Epoch seconds.
        take: Hands over the document that has come under a URL.
    """

    def __init__(
        self, store: Store, feed_id: int, *, now: Callable[[], float], take: Callable[[str], Obtained]
    ) -> None:
        self._store = store
        self._feed_id = feed_id
        self._now = now
        self._take = take
        self.found: Subscription | None = None
        """The subscription document that has come, until it is stored or known to be."""

    async def change(self, intent: intents.Change) -> Event:
        """Change what the feed is made of, in one transaction."""
        match intent:
            case intents.StoreSubscription():
                await self._put_subscription(intent)
            case intents.Put():
                return Stored(await self._put(intent))
            case intents.Attach(document, rank):
                await self._store.attach(self._feed_id, document, rank, now=self._now())
            case intents.Detach(documents):
                await self._store.detach(self._feed_id, documents, now=self._now())
            case intents.Reorder(ranks):
                await self._store.reorder(self._feed_id, ranks, now=self._now())
            case intents.SetKind(kind):
                await self._store.update_feed(self._feed_id, kind=kind)
            case _:
                assert_never(intent)
        return CarriedOut()

    async def remark(self, intent: intents.Remark) -> Event:
        """Note something that changes nothing of what the feed is made of."""
        match intent:
            case intents.NoteReply():
                await self._note_reply(intent)
            case intents.NoteFailure(failure=None, fresh_until=fresh_until):
                await self._store.update_feed(self._feed_id, is_stale=True, fresh_until=fresh_until)
            case intents.NoteFailure(failure=failure, fresh_until=fresh_until):
                await self._store.note_refetch(self._feed_id, failure, is_stale=True, fresh_until=fresh_until)
            case intents.Touch(document=document):
                changes: DocumentChanges = {"checked_at": self._now()}
                if intent.is_settled is not None:
                    changes["is_settled"] = intent.is_settled
                await self._store.touch_document(document, **changes)
            case _:
                assert_never(intent)
        return CarriedOut()

    async def look(self, intent: intents.Look) -> Event:
        """Look for what a decision wants to know."""
        match intent:
            case intents.ReadBodiesAgain():
                rows = await self._store.documents(self._feed_id)
                return ReadAgain(await reparse(self._store, self._feed_id, rows, now=self._now()))
            case intents.ReadDocuments():
                return DocumentsRead(tuple(await self._store.documents(self._feed_id)))
            case intents.ReadKnown(identities):
                return KnownRead(await self._store.known(self._feed_id, identities))
            case _:
                assert_never(intent)

    async def _put_subscription(self, intent: intents.StoreSubscription) -> None:
        found, now = self.found, self._now()
        assert found is not None, "it has come"
        self.found = None
        rows = await self._store.documents(self._feed_id)
        document, old = found.obtained.document, _row_of(intent.remembers, rows)
        new = [new_document(found.document_url, found.obtained, role=Role.SUBSCRIPTION, rank=0)]
        if old is not None:
            new += await documents_to_remember(self._store, rows, old, document, now)
        await self._store.put_documents(
            self._feed_id,
            new,
            now=now,
            ranks=returning(rows, intent.family) if intent.brings_back_memory else None,
            detached=intent.detached,
            kind=intent.kind,
            family=intent.family,
        )

    async def _put(self, intent: intents.Put) -> int:
        obtained, now = self._take(intent.url), self._now()
        new = [
            new_document(
                intent.stored_url,
                obtained,
                role=intent.role,
                rank=intent.rank,
                is_settled=intent.is_settled,
                brought_news=intent.brought_news,
            )
        ]
        if intent.remembers is not None:
            rows = await self._store.documents(self._feed_id)
            old = _row_of(intent.remembers, rows)
            assert old is not None, "nothing else changes the documents of a feed meanwhile"
            new += await documents_to_remember(self._store, rows, old, obtained.document, now, is_page=True)
        identifier, *_ = await self._store.put_documents(self._feed_id, new, now=now)
        return identifier

    async def _note_reply(self, intent: intents.NoteReply) -> None:
        self.found = None  # what has not changed is not stored again
        changes: FeedChanges = {
            "is_stale": False,
            "checked_at": intent.checked_at,
            "fresh_until": intent.fresh_until,
            "is_private": intent.is_private,
        }
        if intent.fetch_url is not None:
            changes["fetch_url"] = intent.fetch_url
        if intent.move is not None:
            changes["moved_to"] = intent.move.target
            changes["moved_since"] = intent.move.since
            changes["moved_times"] = intent.move.times
        await self._store.note_refetch(self._feed_id, None, **changes)
        if intent.unchanged is not None:
            await self._store.touch_document(intent.unchanged, checked_at=intent.checked_at)
        if intent.alias is not None and await self._store.feed_by_url(intent.alias) is None:
            await self._store.add_alias(intent.alias, self._feed_id)


def _row_of(document: StoredDocument | None, rows: list[DocumentRow]) -> DocumentRow | None:
    """Return the row of a document that a decision has named, with what the store alone knows of it."""
    return next((row for row in rows if document is not None and row.id == document.id), None)
