"""Follow the links of a subscription document, by what kind of feed it is (rules R2, R4, R6)."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from wholefeed.config.tables import Config
from wholefeed.core.notes import NewerNotOlder, Note
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt
from wholefeed.core.schedule.revalidation import is_due
from wholefeed.core.terms import Kind, Role, State
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival
from wholefeed.core.walk.limits import WalkLimits
from wholefeed.core.walk.trails import Trail
from wholefeed.core.walk.walk import Walk
from wholefeed.service.refresh.refetch import Current
from wholefeed.service.walk.driver import WalkDriver
from wholefeed.service.walk.grounds import Grounds, Progress, Walked
from wholefeed.service.walk.page_driver import PageDriver
from wholefeed.service.walk.pages import known_ascent, walk_pages
from wholefeed.service.walk.workshop import Wish, Workshop
from wholefeed.store.rows import DocumentRow, FeedRow

_RANKS_PER_WALK: Final = 1 << 20
"""New archives stand in front of the stored ones: each walk gets ranks of its own below theirs."""


def is_followed(kind: Kind, config: Config) -> bool:
    """Return whether the links of such a feed are followed; the others are R1's, R5's and R7's."""
    is_paged = kind is Kind.PAGED and config.history.paged
    return is_paged or kind in (Kind.ARCHIVED, Kind.LEGACY)


class Following:
    """One refresh's way through the other documents of a feed; `run` is called once.

    Args:
        workshop: What to work with.
        feed: As it was before the refresh.
        wish: What the refresh is asked to do.
        rows: The feed's stored documents.
        attempts: What failed before, by URL.
        writing: Held while documents change.
        on_network: Awaited before the first document that is not stored is fetched.
        progress: Kept up to date.
    """

    def __init__(
        self,
        workshop: Workshop,
        feed: FeedRow,
        wish: Wish,
        rows: Sequence[DocumentRow],
        attempts: Mapping[str, Attempt],
        *,
        writing: asyncio.Lock,
        on_network: Callable[[], Awaitable[None]],
        progress: Progress,
    ) -> None:
        self._shop = workshop
        self._store = workshop.store
        self._feed = feed
        self._wish = wish
        self._rows = rows
        self._attempts = attempts
        self._writing = writing
        self._on_network = on_network
        self._progress = progress

    async def run(self, current: Current) -> tuple[Walked, State]:
        """Walk along the chain, or through the pages; what looked like a chain can turn out as pages (R4)."""
        doubts: list[Note] = []
        if current.kind is not Kind.PAGED:
            walked = await self._walk_chain(current)
            doubts = [note for note in walked.notes if isinstance(note, NewerNotOlder)]
            if not doubts:
                return walked, State.COMPLETE
            await self._store.update_feed(self._feed.id, kind=Kind.PAGED)
            if not is_followed(Kind.PAGED, self._shop.config):
                return walked, State.REMEMBERED
        walked = await self._walk_pages(current)
        return dataclasses.replace(walked, notes=[*doubts, *walked.notes]), State.PAGED

    async def _walk_chain(self, current: Current) -> Walked:
        stored = self._stored(Role.ARCHIVE)
        trail = Trail(relation=current.relation, is_tentative=current.is_tentative)
        driver = WalkDriver(
            self._new_walk(current, stored, trail),
            self._shop.source,
            self._store,
            self._grounds(current, stored, trail),
            on_network=self._on_network,
            progress=self._progress,
        )
        return await driver.run()

    async def _walk_pages(self, current: Current) -> Walked:
        stored = self._stored(Role.PAGE)
        ascent = known_ascent(self._feed)

        def new_driver(trail: Trail, passed: Iterable[Arrival]) -> tuple[Walk, PageDriver]:
            walk = self._new_walk(current, stored, trail, passed)
            driver = PageDriver(
                walk,
                self._shop.source,
                self._store,
                self._grounds(current, stored, trail, ascends=ascent is not None),
                trail=trail,
                has_news=current.has_news,
                on_network=self._on_network,
                progress=self._progress,
            )
            return walk, driver

        is_whole = self._is_collected(current) and self._attempts.keys() <= {SUBSCRIPTION_ATTEMPT}
        return await walk_pages(
            current,
            new_driver,
            is_whole=is_whole and ascent is None,
            ascent=ascent,
            is_known=lambda url: document_key(url) in stored,
        )

    def _is_collected(self, current: Current) -> bool:
        """Return whether all pages were collected before, in the family of today (R23)."""
        feed = self._feed
        is_ended = feed.state is State.PAGED and not feed.is_walking and not self._is_interrupted
        return is_ended and feed.family is current.arrival.family and not self._wish.is_full

    @property
    def _is_interrupted(self) -> bool:
        """Whether an earlier refresh of what was collected did not come to its end.

        What it brought is stored, and says no longer that there may be more of it on the pages behind.
        """
        feed = self._feed
        was_collected = feed.state in (State.PAGED, State.PARTIAL) and not feed.is_walking
        return was_collected and feed.revision != feed.published_revision

    def _stored(self, role: Role) -> dict[str, DocumentRow]:
        return {document_key(row.url): row for row in self._rows if row.role is role}

    def _new_walk(
        self,
        current: Current,
        stored: dict[str, DocumentRow],
        trail: Trail,
        passed: Iterable[Arrival] = (),
    ) -> Walk:
        config = self._shop.config
        return Walk(
            current.arrival,
            trail=trail,
            limits=WalkLimits(
                documents=config.limits.documents_per_feed,
                bytes=config.limits.feed_bytes,
                entries=config.limits.entries_per_feed,
            ),
            site_of=self._shop.site_of,
            look_ahead=config.history.look_ahead,
            known=lambda url: document_key(url) in stored,
            max_window=0 if trail.is_closing else config.fetch.concurrency_per_host,
            passed=passed,
        )

    def _grounds(
        self, current: Current, stored: dict[str, DocumentRow], trail: Trail, *, ascends: bool = False
    ) -> Grounds:
        ranks = [row.rank for row in stored.values() if row.rank is not None]

        def due(row: DocumentRow, place: int) -> bool:
            if self._wish.is_full:
                return True
            if trail.is_paged:
                is_last = ascends and document_key(trail.target(row.links) or "") not in stored
                return is_last or self._is_interrupted
            return is_due(
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
            relation=trail.relation,
            walk_seconds=self._shop.config.limits.walk_seconds,
            first_rank=min(ranks, default=0) - _RANKS_PER_WALK,
            now=self._shop.now,
            writing=self._writing,
        )
