"""Search of a web archive for documents that publishers no longer serve (R33; RFC 7089).

The archive gets one request at a time, at its own slow rate. The store has the progress, so a restart repeats
no request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from wholefeed.core.memento import (
    UNHEARD_ATTEMPTS,
    Capture,
    for_gone,
    for_missing,
    is_confirmed,
    is_gone,
    may_be_sent,
)
from wholefeed.core.model import Kind
from wholefeed.core.refresh.arrivals import FoundSubscription, Offer
from wholefeed.core.refresh.basis import RefreshRequest
from wholefeed.core.refresh.stored import subscription_of
from wholefeed.core.slugs import lasts
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import DocumentError, OverloadedError, PublisherError, StoreError
from wholefeed.fetch.web_archive import Archive
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.offers import offer_document
from wholefeed.service.running import REST_SECONDS, Running
from wholefeed.service.sources import Obtained
from wholefeed.store.rows import DocumentRow
from wholefeed.store.tables import document_table, failures
from wholefeed.store.tables.failures import MementoSearch

log = get_logger()

_T = TypeVar("_T")


_SEARCH_AGAIN_SECONDS: Final = 7 * DAY_SECONDS
"""Until the next search after the archive had nothing more."""
_PAUSE_SECONDS: Final = 3600.0
"""Pause of a search after an archive failure; others go first."""
_LONGEST_IDLE_SECONDS: Final = 600.0
_LONGEST_REST_SECONDS: Final = 6 * 3600.0
"""Longest pause after repeated failures, unless the archive asks for more."""
_MAX_WAITING: Final = 8
"""With so many queued requests, no search for an unknown feed begins."""
_MAX_VAIN: Final = 4096  # URLs remembered as missing in the archive


class Mementos:
    """Searches of the archive for one service's feeds.

    A memento must confirm its feed: the archive is another site, and the domain may have changed hands.
    """

    def __init__(self, context: RefreshContext, running: Running) -> None:
        self._context = context
        self._store = context.store
        self._running = running
        self._hosts = context.config.history.memento_query_hosts
        self._news = asyncio.Event()
        self._finishing = asyncio.Lock()
        self._vain: dict[str, float] = {}
        """By URL missing in the archive: end of the pause, oldest first."""
        running.on_end.append(self._news.set)

    async def stand_in(self, url: str, error: DocumentError) -> FoundSubscription[Obtained] | None:
        """Return the newest memento of an unknown feed after its publisher's failure, if any."""
        archive, now = self._context.archive, self._context.now()
        is_lost = is_gone(error.slug, error.publisher_status, attempts=UNHEARD_ATTEMPTS)
        if archive is None or not is_lost or not self._may_be_sent(url):
            return None
        if archive.waiting >= _MAX_WAITING or 0 < self._vain.get(url, 0.0) - now <= DAY_SECONDS:
            return None
        try:
            obtained = await self._newest(archive, url, None)
        except DocumentError as exc:
            log.warning("archive.failed", slug=exc.slug)
            return None
        if obtained is None:
            self._vain.pop(url, None)
            if len(self._vain) >= _MAX_VAIN:
                del self._vain[next(iter(self._vain))]
            self._vain[url] = now + DAY_SECONDS
            return None
        return FoundSubscription(url, replace(obtained, failure=error))

    async def run(self) -> None:
        failures_in_a_row = 0
        while (archive := self._context.archive) is not None:
            self._news.clear()
            try:
                is_idle = not await self._step(archive)
                failures_in_a_row = 0
                seconds = await self._idle_seconds() if is_idle else 0.0
            except DocumentError as exc:
                own_seconds = min(REST_SECONDS * 2.0 ** min(failures_in_a_row, 16), _LONGEST_REST_SECONDS)
                failures_in_a_row += 1
                seconds = max(own_seconds, exc.retry_after_seconds or 0.0)
                log.warning("archive.failed", slug=exc.slug, seconds=seconds)
                await asyncio.sleep(seconds)
                continue
            except (StoreError, OverloadedError) as exc:
                log.warning("archive.paused", slug=exc.slug)
                await asyncio.sleep(REST_SECONDS)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()

    async def finish(self, url: str) -> None:
        archive = self._context.archive
        if archive is None:
            return
        async with self._finishing:
            feed = await self._context.find(url)
            try:
                while feed is not None and await self._step(archive, feed.id):
                    pass
            except DocumentError as exc:
                log.warning("archive.failed", slug=exc.slug)

    async def _idle_seconds(self) -> float:
        now = self._context.now()
        at = await self._store.read(partial(failures.next_search_at, now=now))
        return _LONGEST_IDLE_SECONDS if at is None else min(max(at - now, 1.0), _LONGEST_IDLE_SECONDS)

    # Searches

    async def _step(self, archive: Archive, feed: int | None = None) -> bool:
        """Continue the first due search; return whether there was one.

        Raises:
            DocumentError: The archive failed.
        """
        # one replica searches at a time: the archive's rate is for all of them
        async with self._context.sharing.task("archive") as is_mine:
            now = self._context.now()
            search = await self._first_due(feed, now) if is_mine else None
            if search is None:
                return False
            try:
                await self._go_on(archive, search)
            except DocumentError:  # other searches go first
                next_at = now + _PAUSE_SECONDS
                await self._store.write(partial(failures.postpone_search, search=search, next_at=next_at))
                raise
        return True

    async def _first_due(self, feed: int | None, now: float) -> MementoSearch | None:
        horizon = now + _SEARCH_AGAIN_SECONDS
        look = partial(failures.list_open_searches, now=now, horizon=horizon, feed=feed)
        return next(filter(self._is_sought, await self._store.read(look)), None)

    def _is_sought(self, search: MementoSearch) -> bool:
        is_part = not search.is_subscription
        if is_part and search.kind is Kind.PLAIN:
            return False  # a page without a link to it (R26)
        attempts = UNHEARD_ATTEMPTS if search.is_begun else search.attempts
        is_lost = is_gone(search.reason, search.status, attempts=attempts, is_part=is_part)
        return is_lost and self._may_be_sent(search.target)

    def _may_be_sent(self, url: str) -> bool:
        """Return whether the archive may learn a URL; never a private one (A5)."""
        return may_be_sent(url, self._hosts) and self._context.publishers.private_of(url) is None

    async def _go_on(self, archive: Archive, search: MementoSearch) -> None:
        rows = await self._store.read(partial(document_table.list_all, feed=search.feed))
        stored = subscription_of(rows)
        if stored is not None and search.is_subscription:
            await self._take_page(archive, search, rows, stored)  # then other searches go on
            return
        obtained, pause_seconds = await self._newest(archive, search.target, stored), _SEARCH_AGAIN_SECONDS
        if obtained is not None and stored is not None:
            await self._hand_over(search.feed, [offer_document(search.url, obtained, is_subscription=False)])
        elif obtained is not None:  # the program ended before it stored the feed
            error = PublisherError(
                "expected a document from the publisher, got none",
                url=search.target,
                slug=search.reason,
                publisher_status=search.status,
            )
            found = FoundSubscription(search.target, replace(obtained, failure=error))
            await self._hand_over(search.feed, (), found)
            pause_seconds = 0
        await self._note(search, pause_seconds)

    async def _take_page(
        self, archive: Archive, search: MementoSearch, rows: Sequence[DocumentRow], stored: DocumentRow
    ) -> None:
        """Take one page of a subscription document's mementos."""
        limits, attached = self._context.config.limits, [each for each in rows if each.rank is not None]
        room = limits.documents_per_feed - len(attached)
        room_bytes = limits.feed_bytes - sum(each.body_bytes for each in attached)
        url, taken_at = search.target, search.taken_at
        page, following = await _given(archive.oldest(url, search.position)) or (None, "")
        captures = [] if page is None else for_gone(page.captures, url, now=self._context.now())
        for capture in captures:
            if taken_at is not None and capture.captured_at <= taken_at:  # stored before
                continue
            obtained = await self._obtain(archive, capture, url, stored)
            if room <= 0 or room_bytes <= 0:  # R18
                following = ""
                break
            if obtained is not None:
                if not await self._hand_over(
                    search.feed, [offer_document(url, obtained, is_subscription=True)]
                ):
                    await self._note(search, DAY_SECONDS)
                    return
                room -= 1
                room_bytes -= len(obtained.fetched.body)
            search = replace(search, taken_at=capture.captured_at)
            await self._note(search, 0.0)
        await self._note(replace(search, position=following), 0.0 if following else _SEARCH_AGAIN_SECONDS)

    async def _hand_over(
        self,
        feed_id: int,
        copies: Sequence[Offer[Obtained]],
        found: FoundSubscription[Obtained] | None = None,
    ) -> bool:
        """Have a refresh store the mementos; return whether it did."""
        feed = await self._running.wait_until_settled(feed_id)
        if feed is None:
            return False
        flight = self._running.join(feed, RefreshRequest(is_polled=True), found, copies)
        await asyncio.wait({flight})
        error = None if flight.cancelled() else flight.exception()
        if isinstance(error, StoreError | OverloadedError):
            raise error
        return error is None and not flight.cancelled()

    async def _note(self, search: MementoSearch, pause_seconds: float) -> None:
        next_at = self._context.now() + pause_seconds
        await self._store.write(partial(failures.note_search, search=search, next_at=next_at))

    # Mementos

    async def _newest(self, archive: Archive, url: str, like: DocumentRow | None) -> Obtained | None:
        """Return the newest useful memento.

        `like`: the feed's subscription document; None: nothing is stored.
        """
        page = await _given(archive.newest(url))
        captures = [] if page is None else for_missing(page.captures, url, now=self._context.now())
        for capture in captures:
            obtained = await self._obtain(archive, capture, url, like)
            if obtained is not None:
                return obtained
        return None

    async def _obtain(
        self, archive: Archive, capture: Capture, url: str, like: DocumentRow | None
    ) -> Obtained | None:
        try:
            obtained = await self._context.source.obtain_copy(archive, capture, url)
        except DocumentError as exc:
            if _is_of_archive(exc):
                raise
            log.info("memento.unusable", slug=exc.slug)
            return None
        if like is not None and not _belongs(obtained, like):
            log.info("memento.unusable", slug="cross-origin-unconfirmed")
            return None
        return obtained


async def _given(asking: Awaitable[_T]) -> _T | None:
    try:
        return await asking
    except DocumentError as exc:
        if _is_of_archive(exc):
            raise
        return None


def _belongs(obtained: Obtained, like: DocumentRow) -> bool:
    """Return whether a memento belongs to the feed (R23, R24)."""
    facts, links, names = obtained.read.facts, obtained.read.navigation.links, (like.url, like.final_url)
    is_of_family = facts.family is like.family
    return is_of_family and is_confirmed(facts.site_id, links, feed_site_id=like.site_id, feed_urls=names)


_STRAINED: Final = frozenset({408, 425, 429, *range(500, 600)})
"""Statuses of an archive that cannot answer now."""
_BROKEN: Final = frozenset({"incomplete", "protocol-error", "header-limit"})
"""Reasons that point to a broken memento, not to the archive."""


def _is_of_archive(error: DocumentError) -> bool:
    status = error.publisher_status
    is_unheard = status is None and not lasts(error.slug) and error.slug not in _BROKEN
    return is_unheard or status in _STRAINED
