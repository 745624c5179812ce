"""The subscription document of a feed: fetched conditionally, stored, or its failure noted.

refetch = Refetch(workshop, feed, rows, attempts)
found = await refetch.run(wish)       # DocumentError: what is stored serves as stale
"""

from __future__ import annotations

from dataclasses import dataclass

from wholefeed.core.links.classify import Navigation, recall
from wholefeed.core.notes import CurrentUnavailable, LimitReached, NoSubscriptionDocument, Note
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt, attempted
from wholefeed.core.schedule.backoff import next_attempt_at
from wholefeed.core.schedule.freshness import freshness_seconds, is_private
from wholefeed.core.schedule.moves import Move, is_believed, note_move
from wholefeed.core.terms import Kind, Role
from wholefeed.core.text.urls import canonical_url
from wholefeed.core.walk.chain import Arrival
from wholefeed.core.walk.seen import has_news
from wholefeed.errors import DocumentError, QueueFullError
from wholefeed.fetch.fetched import Fetched
from wholefeed.fetch.validators import Validators
from wholefeed.service.documents.memory import documents_to_remember, returning
from wholefeed.service.documents.shapes import arrival_from, arrival_of, new_document
from wholefeed.service.documents.source import Obtained
from wholefeed.service.documents.subscription import Subscription, settle_subscription
from wholefeed.service.walk.workshop import Wish, Workshop
from wholefeed.store.rows import DocumentRow, FeedRow


@dataclass(frozen=True, slots=True)
class Current:
    """The subscription document as the rest of a refresh needs it, fetched or stored."""

    arrival: Arrival
    kind: Kind
    relation: str
    """Leads to the older documents of a chain."""
    is_tentative: bool
    """Whether that is a chain only if the document it leads to is not newer (R4)."""
    has_changed: bool
    has_news: bool
    """Of a paged feed: whether it brought anything that was not stored."""
    notes: tuple[Note, ...]


class Refetch:
    """One refetch; `run` is called once."""

    def __init__(
        self, workshop: Workshop, feed: FeedRow, rows: list[DocumentRow], attempts: dict[str, Attempt]
    ) -> None:
        self._shop = workshop
        self._store = workshop.store
        self._feed = feed
        self._rows = rows
        self._attempts = attempts
        self._row = next(
            (row for row in rows if row.role is Role.SUBSCRIPTION and row.rank is not None), None
        )

    async def run(self, wish: Wish) -> Current:
        """Have the subscription document in the store as the publisher has it now.

        Raises:
            DocumentError: It could not be had; the attempt is noted.
            StoreError: It cannot be kept.
        """
        try:
            found, wish.found = wish.found or await self._fetch(), None
        except DocumentError as exc:
            await self._note_failure(exc)
            raise
        if isinstance(found, Subscription):
            current = await self._put(found, wish)
            await self._confirm(found.obtained.fetched, wish)
            return current
        await self._confirm(found, wish)
        return self._stored()

    async def _fetch(self) -> Subscription | Fetched:
        row, url = self._row, self._feed.fetch_url
        if not self._has_attempt(CurrentUnavailable) and not self._has_attempt(NoSubscriptionDocument):
            validators = None
            is_read = row is not None and row.parser_version == PARSER_VERSION  # else its links may read new
            if row is not None and is_read and row.url == url and not self._is_truncated(row):
                validators = Validators(etag=row.etag, last_modified=row.last_modified, url=row.final_url)
            obtained = await self._shop.source.obtain(url, validators=validators)
            # R3 was applied when the feed was opened: `current` is dereferenced once
            return obtained if isinstance(obtained, Fetched) else Subscription(url, obtained)
        if self._has_attempt(NoSubscriptionDocument) and row is not None:
            url = row.url  # forward from the newest archive that is known
        obtained = await self._shop.source.obtain(url)
        assert isinstance(obtained, Obtained), "no validators were sent"
        return await settle_subscription(self._shop.source, url, obtained)

    def _is_truncated(self, row: DocumentRow) -> bool:
        """Whether the document that is stored broke off: then it is asked for whole."""
        url, slug = row.final_url, DocumentTruncated.slug
        return any(each.reason == slug and each.url == url for each in self._attempts.values())

    def _has_attempt(self, note: type[Note]) -> bool:
        return any(attempt.reason == note.slug for attempt in self._attempts.values())

    async def _note_failure(self, error: DocumentError) -> None:
        """The publisher could not be reached: the stored feed serves until the next attempt."""
        now = self._shop.now()
        if isinstance(error, QueueFullError):  # it was not asked: this is no failure of its own
            next_at = now + (error.retry_after_seconds or 0.0)
            await self._store.update_feed(self._feed.id, is_stale=True, fresh_until=next_at)
            return
        earlier = self._attempts.get(SUBSCRIPTION_ATTEMPT)
        attempts = 1 + (earlier.attempts if earlier else 0)
        next_at = next_attempt(self._shop, error, attempts, is_subscription=True)
        failure = attempted(
            earlier,
            SUBSCRIPTION_ATTEMPT,
            reason=error.slug,
            status=error.publisher_status,
            next_at=next_at,
            now=now,
        )
        await self._store.note_refetch(self._feed.id, failure, is_stale=True, fresh_until=next_at)

    async def _confirm(self, fetched: Fetched, wish: Wish) -> None:
        """The publisher is there: freshness counts from now."""
        freshness = self._shop.config.freshness
        now = self._shop.now()
        fresh_for = freshness_seconds(
            fetched.headers,
            now=now,
            minimum=freshness.minimum_seconds,
            default=freshness.default_seconds,
            maximum=freshness.maximum_seconds,
        )
        await self._store.note_refetch(
            self._feed.id,
            None,
            is_stale=False,
            checked_at=now,
            fresh_until=now + fresh_for if wish.may_walk else now,
            is_private=is_private(fetched.headers),
        )
        await self._note_move(fetched, now)
        self._attempts.pop(SUBSCRIPTION_ATTEMPT, None)
        if self._row is not None and fetched.not_modified:
            await self._store.touch_document(self._row.id, checked_at=now)

    async def _note_move(self, fetched: Fetched, now: float) -> None:
        """Follow the publisher to another address when it is sure; key and history stay (R25).

        Who asks by the new address gets this feed only where it is of the same site: anybody can redirect to
        a victim's feed, and what is remembered of the one before would be served as its own.
        """
        feed = self._feed
        if fetched.url != feed.fetch_url:
            return
        known = Move(feed.moved_to, feed.moved_since, feed.moved_times)
        move = note_move(known, fetched.permanent_url, now=now)
        if move.target is not None and is_believed(move, now=now):
            await self._store.update_feed(
                feed.id, fetch_url=move.target, moved_to=None, moved_since=None, moved_times=0
            )
            key, site_of = canonical_url(move.target), self._shop.site_of
            is_same_site = site_of(key) == site_of(feed.fetch_url)
            if is_same_site and await self._store.feed_by_url(key) is None:
                await self._store.add_alias(key, feed.id)
        elif move != known:
            await self._store.update_feed(
                feed.id, moved_to=move.target, moved_since=move.since, moved_times=move.times
            )

    async def _put(self, found: Subscription, wish: Wish) -> Current:
        obtained, row = found.obtained, self._row
        kind = self._kind_of(obtained.navigation, wish)
        has_changed = (
            row is None
            or row.digest != obtained.digest
            or row.url != found.document_url
            or row.links != obtained.navigation.links
            or kind is not self._feed.kind
        )
        notes = (*found.notes, *obtained.document.notes, *obtained.navigation.notes)
        brings_news = has_changed and (kind is not Kind.PAGED or await self._brings_news(obtained))
        if has_changed:
            notes += await self._store_subscription(found, kind)
        if not found.notes and found.url != self._feed.fetch_url:  # an archive was asked for (R3)
            await self._store.update_feed(self._feed.id, fetch_url=canonical_url(found.url))
        return Current(
            arrival=arrival_of(found.document_url, obtained),
            kind=kind,
            relation=obtained.navigation.older_relation,
            is_tentative=obtained.navigation.is_tentative,
            has_changed=has_changed,
            has_news=brings_news,
            notes=notes,
        )

    def _kind_of(self, navigation: Navigation, wish: Wish) -> Kind:
        """What turned out to be a paged feed stays one, though its link looks like a chain's (R4)."""
        is_settled = navigation.is_tentative and self._feed.kind is Kind.PAGED and not wish.is_full
        return Kind.PAGED if is_settled else navigation.kind

    async def _brings_news(self, obtained: Obtained) -> bool:
        keys = [(entry.identity, entry.updated_at) for entry in obtained.document.entries]
        return has_news(keys, await self._store.known(self._feed.id, [identity for identity, _ in keys]))

    async def _store_subscription(self, found: Subscription, kind: Kind) -> tuple[Note, ...]:
        """Put it together with what left it and with what no longer fits it, all at once (R8, R23)."""
        now = self._shop.now()
        obtained, row = found.obtained, self._row
        family = obtained.document.family
        documents = [new_document(found.document_url, obtained, role=Role.SUBSCRIPTION, rank=0)]
        notes: tuple[Note, ...] = ()
        is_paged = kind is Kind.PAGED  # what leaves a page has mostly moved to one that is not asked for
        is_kept = kind is not Kind.COMPLETE and (self._shop.config.history.remember or is_paged)
        if row is not None and is_kept:
            notes = self._memory_limit(row)
            if not notes:
                documents += await documents_to_remember(self._store, self._rows, row, obtained.document, now)
        leaving = [
            old.id
            for old in self._rows
            if old.rank is not None
            and (old.role is not Role.SUBSCRIPTION or old.url != found.document_url)
            and (old.role is Role.SUBSCRIPTION or old.family is not family)
        ]
        comes_back = row is not None and row.family is not family
        await self._store.put_documents(
            self._feed.id,
            documents,
            now=now,
            ranks=returning(self._rows, family) if comes_back else None,
            detached=leaving,
            kind=kind,
            family=family,
        )
        return notes

    def _memory_limit(self, row: DocumentRow) -> tuple[Note, ...]:
        """Tell when no more copies are remembered, because the feed is as large as it may be (R18)."""
        limits = self._shop.config.limits
        held = [each for each in self._rows if each.role is Role.MEMORY]
        if sum(each.entries for each in held) + row.entries > limits.entries_per_feed:
            return (LimitReached(row.url, "limits.entries_per_feed", limits.entries_per_feed),)
        if sum(each.body_bytes for each in held) + row.body_bytes > limits.feed_bytes:
            return (LimitReached(row.url, "limits.feed_bytes", limits.feed_bytes),)
        return ()

    def _stored(self) -> Current:
        assert self._row is not None, "nothing is confirmed that is not stored"
        finding = recall(self._row.links, is_archive=self._row.is_marked)
        return Current(
            arrival=arrival_from(self._row),
            kind=self._feed.kind,
            relation=finding.relation,
            is_tentative=finding.is_tentative,
            has_changed=False,
            has_news=False,
            notes=(),
        )


def next_attempt(
    workshop: Workshop, error: DocumentError, attempts: int, *, is_subscription: bool = False
) -> float:
    """Return the epoch second from which a document that could not be had is tried again (R14)."""
    return next_attempt_at(
        reason=error.slug,
        status=error.publisher_status,
        attempts=attempts,
        now=workshop.now(),
        retry_after_seconds=error.retry_after_seconds,
        retry_missing_seconds=workshop.config.freshness.retry_missing_seconds,
        is_subscription=is_subscription,
    )
