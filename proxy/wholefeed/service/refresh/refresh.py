"""One refresh of one feed: docs/rules.md R14 and docs/design.md#the-walk.

REFETCH   the subscription document, conditionally     failed  -> stale, what is stored serves
WALK      the chain behind it, or the other pages      R1 -> detach everything else; neither -> R7
SETTLE    drift, attempts, state                       publish
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from wholefeed.core.links.classify import says_incremental
from wholefeed.core.notes import Note
from wholefeed.core.reading_notes import DocumentTruncated, ReadingNote
from wholefeed.core.refresh.stored import Attempt, attempted
from wholefeed.core.terms import Kind, Role, State
from wholefeed.core.walk.drift import settle_path
from wholefeed.core.walk.endings import End, Ending
from wholefeed.loggers import get_logger
from wholefeed.service.documents.reparse import reparse
from wholefeed.service.refresh.publish import assemble
from wholefeed.service.refresh.refetch import Current, Refetch, next_attempt
from wholefeed.service.walk.following import Following, is_followed
from wholefeed.service.walk.grounds import Progress, Walked
from wholefeed.service.walk.pages import known_ascent
from wholefeed.service.walk.workshop import Wish, Workshop
from wholefeed.store.rows import DocumentRow, FeedRow

log = get_logger()

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
        self._has_turn = False
        self._turn = AsyncExitStack()
        self.site = workshop.site_of(feed.fetch_url)
        self.progress = Progress()
        self.is_confirmed = False
        """Whether the publisher has been heard of the subscription document."""
        self.is_waiting = False
        """Whether the walk of a feed that somebody asked for waits for its turn to use the network."""
        self.is_walking = False
        """Whether the walk may still add documents: the state is `loading`."""

    async def run(self) -> None:
        """Bring the feed up to date.

        Raises:
            DocumentError: The subscription document could not be had; what is stored serves as stale.
            StoreError: What was fetched cannot be kept.
        """
        self._rows = await self._store.documents(self._feed.id)
        missing, failure = await self._store.failures(self._feed.id)
        self._attempts = {attempt.url: attempt for attempt in (*missing, *filter(None, (failure,)))}
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
        if known_ascent(feed) is not None:  # what is new is not in the subscription document
            return True
        if feed.state is State.REMEMBERED and is_followed(feed.kind, self._shop.config):  # it was switched on
            return True
        now = self._shop.now()
        return self._feed.state is State.LOADING or any(
            not attempt.waits(now) for attempt in self._attempts.values()
        )

    async def _reconstruct(self, current: Current) -> None:
        if current.kind is Kind.COMPLETE:
            keep = [row.id for row in self._rows if row.role is Role.SUBSCRIPTION and row.rank is not None]
            await self._store.detach_all_but(self._feed.id, keep, now=self._shop.now())
            await self._settle(current, Walked(ending=Ending(End.WHOLE)), State.COMPLETE)
        elif not is_followed(current.kind, self._shop.config):
            end = End.NOT_OFFERED if current.kind is Kind.PLAIN else End.NOT_FOLLOWED
            await self._settle(current, Walked(ending=Ending(end)), State.REMEMBERED)
        elif not self._wish.may_walk:
            await self._publish(State.LOADING, current.notes)
        else:
            if not self._feed.digest:
                await self._publish(State.LOADING, current.notes)
            await self._settle(current, *await self._walk(current))

    # WALK

    async def _walk(self, current: Current) -> tuple[Walked, State]:
        started = time.monotonic()
        try:
            async with self._meanwhile(current.notes):
                walked, state = await Following(
                    self._shop,
                    self._feed,
                    self._wish,
                    self._rows,
                    self._attempts,
                    writing=self._writing,
                    on_network=self._begin,
                    progress=self.progress,
                ).run(current)
        finally:
            await self._turn.aclose()
            self._has_turn = False
        log.info(
            "walk.ended",
            feed=self._feed.id,
            ending=next((note.slug for note in walked.notes if note.partial), "end"),
            documents=1 + len(walked.path),
            fetched=self.progress.fetched,
            duration_s=round(time.monotonic() - started, 3),
        )
        return walked, state

    async def _begin(self) -> None:
        """The walk needs the network: from here on documents may be added, also after a restart."""
        if self._has_turn:
            return
        self.is_waiting = not self._wish.is_polled
        try:
            await self._turn.enter_async_context(self._shop.walks.turn(self.site))
        finally:
            self.is_waiting = False
        self._has_turn = True
        self.is_walking = True
        await self._store.begin_walk(self._feed.id, now=self._shop.now())
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
        await self._take_drift(current, walked, state)
        missing = self._missing(notes, walked)
        if not walked.is_true_end or any(note.partial for note in notes):
            state = State.PARTIAL
        await self._publish(state, notes, ending=walked.ending, missing=missing)
        self.is_walking = False

    async def _take_drift(self, current: Current, walked: Walked, state: State) -> None:
        """R15: what the publisher replaced in the chain leaves; the order is the path's.

        Nothing leaves a feed of pages (R6), or one that says that earlier entries are part of it (-00, 3).
        """
        if not walked.path:
            return
        role = Role.PAGE if state is State.PAGED else Role.ARCHIVE
        chain = [row.id for row in self._rows if row.role is role and row.rank is not None]
        stays = role is Role.PAGE or says_incremental(current.arrival.links)
        is_true_end = walked.is_true_end and not stays
        drift = settle_path(chain, walked.path, is_true_end=is_true_end, is_full=self._wish.is_full)
        if drift.detached:
            await self._store.detach(self._feed.id, drift.detached, now=self._shop.now())
        if drift.is_reordered or (role is Role.PAGE and await self._is_disordered(drift.order)):
            ranks = {each: rank for rank, each in enumerate(drift.order)}
            await self._store.reorder(self._feed.id, ranks, now=self._shop.now())

    async def _is_disordered(self, pages: Sequence[int]) -> bool:
        """Pages are not always met in the order that they are to stand in."""
        rows = await self._store.documents(self._feed.id)
        listed = set(pages)
        return [row.id for row in rows if row.id in listed] != list(pages)

    def _missing(self, notes: Sequence[Note], walked: Walked) -> list[Attempt]:
        """Return what makes the feed partial, each with the time of its next attempt (R14)."""
        now = self._shop.now()
        missing = {note.url: note for note in notes if note.partial}
        found: list[Attempt] = []
        for url, attempt in self._attempts.items():
            is_unseen = attempt.reason == DocumentTruncated.slug and not walked.is_true_end
            if url not in missing and is_unseen:  # the walk may not have come by: it is as it was
                found.append(attempt)
        for url, note in missing.items():
            earlier = self._attempts.get(url)
            failure = walked.failures.get(url)
            if earlier is not None and failure is None and earlier.waits(now):
                found.append(earlier)  # not tried this time
                continue
            retry = self._shop.config.freshness.retry_missing_seconds
            attempts = 1 + (earlier.attempts if earlier else 0)
            found.append(
                attempted(
                    earlier,
                    url,
                    reason=failure.slug if failure else note.slug,
                    status=failure.publisher_status if failure else None,
                    next_at=next_attempt(self._shop, failure, attempts) if failure else now + retry,
                    now=now,
                )
            )
        return found

    async def _publish(
        self,
        state: State,
        notes: Sequence[Note],
        *,
        ending: Ending | None = None,
        missing: Sequence[Attempt] | None = None,
    ) -> None:
        """Publish what is stored; with an ending and what is missing, no walk goes on behind it."""
        said = [note.as_dict() for note in notes if not isinstance(note, ReadingNote)]
        async with self._writing:
            feed = await assemble(
                self._store,
                self._feed.id,
                state=state,
                is_walking=self.is_walking and ending is None,
                ending=ending,
                missing=missing,
                notes=said,
                now=self._shop.now(),
                large=self._shop.source.large,
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
