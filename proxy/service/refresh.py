"""One refresh of one feed: the algorithm of the design, section 6.

REFETCH   the subscription document, conditionally     failed  -> stale, what is stored serves
WALK      the chain behind it                          R1 -> detach everything else; no chain -> R7
SETTLE    drift, attempts, state                       publish
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog

from proxy.core.drift import settle_path
from proxy.core.notes import Note
from proxy.core.revalidation import is_due
from proxy.core.terms import Kind, Role, State
from proxy.core.urls import document_key
from proxy.core.walk import Walk, WalkLimits
from proxy.service.assemble import assemble
from proxy.service.refetch import Current, Refetch, next_attempt
from proxy.service.reparse import reparse
from proxy.service.walking import Grounds, Progress, WalkDriver, Walked
from proxy.service.workshop import Wish, Workshop
from proxy.store.rows import Attempt, DocumentRow, FeedRow

log = structlog.get_logger()

_RANKS_PER_WALK: Final = 1 << 20
"""New archives stand in front of the stored ones: each walk gets ranks of its own below theirs."""
_MEANWHILE_SECONDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses between publications while a walk runs; the last one repeats."""


class Refresh:
    """One refresh. `run` is called once; the attributes can be read meanwhile."""

    def __init__(self, workshop: Workshop, feed: FeedRow, wish: Wish) -> None:
        self._shop = workshop
        self._store = workshop.store
        self._feed = feed
        self._wish = wish
        self._rows: list[DocumentRow] = []
        self._attempts: dict[str, Attempt] = {}
        self._writing = asyncio.Lock()
        self.progress = Progress()
        self.is_confirmed = False
        """Whether the publisher has been heard of the subscription document."""
        self.is_waiting = False
        """Whether the walk waits for its turn to use the network."""
        self.is_walking = False
        """Whether the walk may still add documents: the state is `loading`."""

    async def run(self) -> None:
        """Bring the feed up to date.

        Raises:
            DocumentError: The subscription document could not be had; what is stored serves as stale.
            StoreError: What was fetched cannot be kept.
        """
        self._rows = await self._store.documents(self._feed.id)
        self._attempts = {attempt.url: attempt for attempt in await self._store.attempts(self._feed.id)}
        current = await Refetch(self._shop, self._feed, self._rows, self._attempts).run(self._wish)
        self.is_confirmed = True
        is_reparsed = await reparse(self._store, self._feed.id, self._rows, now=self._shop.now())
        if current.has_changed or is_reparsed:
            self._rows = await self._store.documents(self._feed.id)
        if current.has_changed or is_reparsed or self._is_unfinished():
            await self._reconstruct(current)

    def _is_unfinished(self) -> bool:
        feed = self._feed
        if self._wish.is_forced or self._wish.is_full or feed.is_walking or not feed.digest:
            return True
        if feed.revision != feed.published_revision:  # an earlier refresh did not come to its end
            return True
        now = self._shop.now()
        return self._feed.state is State.LOADING or any(
            attempt.next_at <= now for attempt in self._attempts.values()
        )

    async def _reconstruct(self, current: Current) -> None:
        if current.kind is Kind.COMPLETE:
            keep = [row.id for row in self._rows if row.role is Role.SUBSCRIPTION and row.rank is not None]
            await self._store.detach_all_but(self._feed.id, keep, now=self._shop.now())
            await self._settle(current, Walked(is_true_end=True), State.COMPLETE)
        elif current.kind is not Kind.ARCHIVED:
            await self._settle(current, Walked(is_true_end=True), State.REMEMBERED)
        elif not self._wish.may_walk:
            await self._publish(State.LOADING, current.notes)
        else:
            if not self._feed.digest:
                await self._publish(State.LOADING, current.notes)
            await self._settle(current, await self._walk(current), State.COMPLETE)

    # WALK

    async def _walk(self, current: Current) -> Walked:
        started = self._shop.now()
        stored = {document_key(row.url): row for row in self._rows if row.role is Role.ARCHIVE}
        driver = WalkDriver(
            self._new_walk(current, stored),
            self._shop.source,
            self._store,
            self._grounds(current, stored),
            on_network=self._begin,
        )
        self.progress = driver.progress
        try:
            async with self._meanwhile(current.notes):
                walked = await driver.run()
        finally:
            if self.is_walking:
                self._shop.walks.release()
        log.info(
            "walk.ended",
            feed=self._feed.id,
            ending="end" if walked.is_true_end else walked.notes[-1].slug,
            documents=1 + len(walked.path),
            fetched=driver.progress.fetched,
            duration_s=round(self._shop.now() - started, 3),
        )
        return walked

    def _new_walk(self, current: Current, stored: dict[str, DocumentRow]) -> Walk:
        config = self._shop.config
        return Walk(
            current.arrival,
            relation=current.relation,
            limits=WalkLimits(
                documents=config.limits.documents_per_feed,
                bytes=config.limits.feed_bytes,
                entries=config.limits.entries_per_feed,
            ),
            site_of=self._shop.site_of,
            look_ahead=config.history.look_ahead,
            known=lambda url: document_key(url) in stored,
            max_window=config.fetch.concurrency_per_host,
        )

    def _grounds(self, current: Current, stored: dict[str, DocumentRow]) -> Grounds:
        ranks = [row.rank for row in stored.values() if row.rank is not None]

        def due(row: DocumentRow, place: int) -> bool:
            return self._wish.is_full or is_due(
                is_settled=row.is_settled,
                is_newest=place == 1,
                is_marked=row.is_marked,
                is_uncacheable=row.is_uncacheable,
                subscription_changed=current.has_changed,
                checked_at=row.checked_at,
                now=self._shop.now(),
            )

        return Grounds(
            feed_id=self._feed.id,
            stored=stored,
            attempts=self._attempts,
            is_due=due,
            is_forced=self._wish.is_forced or self._wish.is_full,
            relation=current.relation,
            walk_seconds=self._shop.config.limits.walk_seconds,
            first_rank=min(ranks, default=0) - _RANKS_PER_WALK,
            now=self._shop.now,
            writing=self._writing,
        )

    async def _begin(self) -> None:
        """The walk needs the network: from here on documents may be added, also after a restart."""
        self.is_waiting = True
        try:
            await self._shop.walks.acquire()
        finally:
            self.is_waiting = False
        self.is_walking = True
        await self._store.update_feed(self._feed.id, is_walking=True)
        log.info("walk.started", feed=self._feed.id)

    @asynccontextmanager
    async def _meanwhile(self, notes: Sequence[Note]) -> AsyncIterator[None]:
        """Publish what has arrived from time to time, for readers that do not wait for the end."""

        async def publish() -> None:
            pauses = iter(_MEANWHILE_SECONDS)
            while True:
                await asyncio.sleep(next(pauses, _MEANWHILE_SECONDS[-1]))
                if self.is_walking:
                    await self._publish(State.LOADING, notes)

        task = asyncio.create_task(publish())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    # SETTLE

    async def _settle(self, current: Current, walked: Walked, state: State) -> None:
        notes = (*current.notes, *walked.notes)
        await self._take_drift(walked)
        await self._record_attempts(notes, walked)
        if not walked.is_true_end or any(note.partial for note in notes):
            state = State.PARTIAL
        await self._publish(state, notes)
        await self._store.update_feed(self._feed.id, is_walking=False)
        self.is_walking = False

    async def _take_drift(self, walked: Walked) -> None:
        """R15: what the publisher replaced in the chain leaves; the order is the path's."""
        if not walked.path:
            return
        chain = [row.id for row in self._rows if row.role is Role.ARCHIVE and row.rank is not None]
        drift = settle_path(chain, walked.path, is_true_end=walked.is_true_end, is_full=self._wish.is_full)
        if drift.detached:
            await self._store.detach(self._feed.id, drift.detached, now=self._shop.now())
        if drift.is_reordered:
            ranks = {each: rank for rank, each in enumerate(drift.order)}
            await self._store.reorder(self._feed.id, ranks, now=self._shop.now())

    async def _record_attempts(self, notes: Sequence[Note], walked: Walked) -> None:
        """Keep what makes the feed partial, each with the time of its next attempt (R14)."""
        now = self._shop.now()
        missing = {note.url: note for note in notes if note.partial}
        for url in self._attempts.keys() - missing.keys():
            await self._store.clear_attempt(self._feed.id, url)
        for url, note in missing.items():
            earlier = self._attempts.get(url)
            failure = walked.failures.get(url)
            if earlier is not None and failure is None and earlier.next_at > now:
                continue  # not tried this time
            retry = self._shop.config.freshness.retry_missing_seconds
            attempts = 1 + (earlier.attempts if earlier else 0)
            await self._store.put_attempt(
                self._feed.id,
                url,
                reason=failure.slug if failure else note.slug,
                status=failure.publisher_status if failure else None,
                next_at=next_attempt(self._shop, failure, attempts) if failure else now + retry,
                now=now,
            )

    async def _publish(self, state: State, notes: Sequence[Note]) -> None:
        said = [{"code": note.code, "url": note.url, "text": str(note)} for note in notes]
        async with self._writing:
            feed = await assemble(
                self._store, self._feed.id, state=state, notes=json.dumps(said), now=self._shop.now()
            )
        if feed is not None:
            log.info(
                "feed.published",
                feed=feed.id,
                state=str(feed.state),
                documents=feed.documents,
                entries=feed.entries,
                notes=sorted({note.code for note in notes}),
            )
