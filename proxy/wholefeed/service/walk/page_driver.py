"""Drive one walk through pages (rule R6).

Pages are not immutable, so what differs from a walk along archive documents is what is asked for again, and
what is kept:

    all was collected before (a closing trail)    every page is revalidated, up to the first that brought
                                                  nothing new: a normal poll costs one page
    it was not, or something is missing           a page behind one that brought something new, or behind
                                                  a gap; the others come from the store

A page that brought nothing new is not stored, and entries that leave a page are remembered, unless another
document holds them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from wholefeed.core.notes import DocumentUnavailable, Note, PageGone
from wholefeed.core.terms import Role
from wholefeed.core.walk.chain import Arrival
from wholefeed.core.walk.seen import has_news
from wholefeed.core.walk.trails import Trail
from wholefeed.core.walk.walk import Walk
from wholefeed.errors import DocumentError
from wholefeed.fetch.fetched import Fetched
from wholefeed.service.documents.memory import documents_to_remember
from wholefeed.service.documents.shapes import arrival_from, arrival_of, new_document
from wholefeed.service.documents.source import Obtained, Source
from wholefeed.service.walk.driver import Outcome, WalkDriver
from wholefeed.service.walk.grounds import Grounds, Progress
from wholefeed.store.rows import DocumentRow, NewDocument
from wholefeed.store.store import Store

_GONE: Final = frozenset({404, 410})


class PageDriver(WalkDriver):
    """One walk along one trail of a paged feed."""

    def __init__(
        self,
        walk: Walk,
        source: Source,
        store: Store,
        grounds: Grounds,
        *,
        trail: Trail,
        has_news: bool,
        on_network: Callable[[], Awaitable[None]],
        progress: Progress,
    ) -> None:
        super().__init__(walk, source, store, grounds, on_network=on_network, progress=progress)
        self._trail = trail
        self._news = {walk.tip.url: has_news}
        """Of the subscription document and each page fetched: whether it brought anything not stored."""
        self._is_past_gap = False

    def _is_due(self, url: str, row: DocumentRow) -> bool:
        brought_news = self._news.get(self._walk.tip.url, False)
        return self._trail.is_closing or self._is_past_gap or brought_news or super()._is_due(url, row)

    def _is_gap(self, url: str) -> bool:
        """Return whether the page could not be had the last time: its stored copy may be outdated."""
        return url in self._grounds.attempts and not self._grounds.is_truncated(url)

    def _may_replace(self, url: str, outcome: Obtained) -> bool:
        """Always: what leaves a page is remembered, so one that broke off takes nothing away."""
        return True

    def _serves(self, outcome: Outcome) -> bool:
        return isinstance(outcome, Fetched)

    async def _arrival(self, url: str, obtained: Obtained) -> Arrival:
        keys = [(entry.identity, entry.updated_at) for entry in obtained.document.entries]
        known = await self._store.known(self._grounds.feed_id, [identity for identity, _ in keys])
        self._news[url] = has_news(keys, known)
        self._is_past_gap |= self._grounds.stored_as(url) is None or self._is_gap(url)
        return arrival_of(url, obtained, news=self._news[url])

    def _confirmed(self, row: DocumentRow) -> Arrival:
        self._is_past_gap |= self._is_gap(row.url)
        return replace(arrival_from(row), news=not self._trail.is_closing)

    async def _confirm(self, row: DocumentRow) -> None:
        await self._store.touch_document(row.id, checked_at=self._grounds.now())

    def _failure(self, url: str, error: DocumentError) -> Note:
        if error.publisher_status in _GONE:
            return PageGone(url, error.slug)
        return DocumentUnavailable(url, error.slug)

    async def _keep(self, arrival: Arrival, place: int) -> int | None:
        row = self._grounds.stored_as(arrival.url)
        obtained = self._obtained.pop(arrival.url, None)
        self._tell(arrival.url, obtained)
        if row is None and not self._news[arrival.url]:
            return None
        rank = row.rank if row is not None and row.rank is not None else self._grounds.first_rank + place
        if row is not None and (obtained is None or _is_same(row, obtained)):
            if obtained is not None:
                await self._confirm(row)
            if row.rank is None:
                await self._store.attach(self._grounds.feed_id, row.id, rank, now=self._grounds.now())
            return row.id
        assert obtained is not None, "what joins without a fetch is stored"
        documents = [new_document(arrival.url, obtained, role=Role.PAGE, rank=rank)]
        if row is not None:
            documents += await self._remembered(row, obtained)
        identifier, *_ = await self._store.put_documents(
            self._grounds.feed_id, documents, now=self._grounds.now()
        )
        return identifier

    async def _remembered(self, row: DocumentRow, obtained: Obtained) -> list[NewDocument]:
        """What leaves a page stays (R6): mostly it has moved to one that will not be asked for."""
        rows = await self._store.documents(self._grounds.feed_id)
        now = self._grounds.now()
        return await documents_to_remember(self._store, rows, row, obtained.document, now, is_page=True)


def _is_same(row: DocumentRow, obtained: Obtained) -> bool:
    return row.digest == obtained.digest and row.links == obtained.navigation.links
