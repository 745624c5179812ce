"""What publishers do not give any more, looked for in a web archive (R33; RFC 7089).

    mementos = Mementos(context, running)
    found = await mementos.stand_in(url, error)     # of a feed that is gone when it is first asked for
    await mementos.run()                            # what is missing of known feeds; until it is cancelled

Nobody waits for the second: what is known is published as partial, and the archive is asked beside, one
request after the other, at its own slow rate. Each copy that belongs is handed to a refresh of its feed,
which keeps it and walks on. How far a search has come stands in the store: a restart asks nothing again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

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
from wholefeed.core.refresh.port import RefreshRequest, subscription_of
from wholefeed.core.slugs import lasts
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import DocumentError, OverloadedError, PublisherError, StoreError
from wholefeed.fetch.memento import Archive
from wholefeed.logs import get_logger
from wholefeed.service.documents import OfferedCopy
from wholefeed.service.refresh import RefreshContext
from wholefeed.service.running import REST_SECONDS, Running
from wholefeed.service.sources import Obtained, Source, Subscription
from wholefeed.store.rows import DocumentRow
from wholefeed.store.tables import documents, failures, feeds
from wholefeed.store.tables.failures import Search

log = get_logger()


_SEARCH_AGAIN_SECONDS: Final = 7 * DAY_SECONDS
"""Until an archive that had nothing, or nothing more, is asked again."""
_PAUSE_SECONDS: Final = 3600.0
"""Of a search in the middle of which the archive failed; others have their turn."""
_LONGEST_IDLE_SECONDS: Final = 600.0
"""Until it is looked again for searches, where none is due."""
_LONGEST_REST_SECONDS: Final = 6 * 3600.0
"""For which the archive is left alone after failures in a row, unless it asks for longer."""
_MAX_WAITING: Final = 8
"""Requests that wait for the archive; beyond that none is begun for a feed that nothing is stored of."""
_MAX_VAIN: Final = 4096
"""URLs that are remembered because the archive had nothing of them."""


class Mementos:
    """Searches the archive for the feeds of one service; does nothing where no archive is configured."""

    def __init__(self, context: RefreshContext, running: Running) -> None:
        self._context = context
        self._store = context.store
        self._running = running
        self._copies: _ArchivedCopies | None = None
        if context.archive is not None:
            self._copies = _ArchivedCopies(context.source, context.archive, context.now)
        self._hosts = context.config.history.memento_query_hosts
        self._news = asyncio.Event()
        self._failures = 0
        self._vain: dict[str, float] = {}
        """URLs that the archive had nothing of, and until when it is not asked again, the oldest first."""
        running.on_end.append(self._news.set)

    async def stand_in(self, url: str, error: DocumentError) -> Subscription | None:
        """Return what the archive has of a feed that nothing is stored of; None where it has nothing.

        Args:
            url: Canonical.
            error: How its publisher failed.
        """
        copies, now = self._copies, self._context.now()
        is_lost = is_gone(error.slug, error.publisher_status, attempts=UNHEARD_ATTEMPTS)
        if copies is None or not is_lost or not may_be_sent(url, self._hosts):
            return None
        if copies.waiting >= _MAX_WAITING or 0 < self._vain.get(url, 0.0) - now <= DAY_SECONDS:
            return None
        try:
            obtained = await copies.newest(url, None)
        except _ArchiveError as exc:
            log.warning("archive.failed", slug=exc.slug)
            return None
        if obtained is None:
            self._vain.pop(url, None)
            if len(self._vain) >= _MAX_VAIN:
                del self._vain[next(iter(self._vain))]
            self._vain[url] = now + DAY_SECONDS
            return None
        return Subscription(url, obtained, failure=error)

    async def run(self) -> None:
        """Look for what is missing, for as long as nobody cancels it."""
        while self._copies is not None:
            self._news.clear()
            try:
                is_idle = not await self._step(self._copies)
                self._failures = 0
                seconds = await self._idle_seconds() if is_idle else 0.0
            except _ArchiveError as exc:
                await asyncio.sleep(self._rest_seconds(exc))
                continue
            except (StoreError, OverloadedError) as exc:
                log.warning("archive.paused", slug=exc.slug)
                await asyncio.sleep(REST_SECONDS)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()

    async def _idle_seconds(self) -> float:
        now = self._context.now()
        at = await self._store.read(partial(failures.next_search_at, now=now))
        return _LONGEST_IDLE_SECONDS if at is None else min(max(at - now, 1.0), _LONGEST_IDLE_SECONDS)

    def _rest_seconds(self, error: _ArchiveError) -> float:
        """Return for how long nothing is asked of the archive: longer each time in a row."""
        self._failures += 1
        own_seconds = min(REST_SECONDS * 2.0 ** min(self._failures - 1, 16), _LONGEST_REST_SECONDS)
        seconds = max(own_seconds, error.rest_seconds)
        log.warning("archive.failed", slug=error.slug, seconds=seconds)
        return seconds

    async def finish(self, url: str) -> None:
        """Look for all that is missing of one feed, for a command that does nothing else."""
        feed = await self._store.find(url)
        try:
            while feed is not None and self._copies is not None and await self._step(self._copies, feed.id):
                pass
        except _ArchiveError as exc:
            log.warning("archive.failed", slug=exc.slug)

    async def _step(self, copies: _ArchivedCopies, feed: int | None = None) -> bool:
        """Go on with one search, of one feed or of any; return whether there was one.

        One replica searches at a time: the archive's rate is for all of them.
        """
        async with self._context.sharing.task("archive") as is_mine:
            return is_mine and await self._search(copies, feed)

    async def _search(self, copies: _ArchivedCopies, feed: int | None) -> bool:
        """Go on with the first search that is due, if there is one."""
        now = self._context.now()
        horizon = now + _SEARCH_AGAIN_SECONDS
        found = await self._store.read(
            partial(failures.list_open_searches, now=now, horizon=horizon, feed=feed)
        )
        search = next(filter(self._is_sought, found), None)
        if search is None:
            return False
        try:
            await self._go_on(copies, search)
        except _ArchiveError:  # whatever it was about this one, others have their turn first
            next_at = now + _PAUSE_SECONDS
            await self._store.write(partial(failures.postpone_search, search=search, next_at=next_at))
            raise
        return True

    def _is_sought(self, search: Search) -> bool:
        """Whether the archive is to be asked for what a search is for."""
        is_part = not search.is_subscription
        if is_part and search.kind is Kind.PLAIN:
            return False  # a page that no link leads to (R26)
        attempts = UNHEARD_ATTEMPTS if search.is_begun else search.attempts
        is_lost = is_gone(search.reason, search.status, attempts=attempts, is_part=is_part)
        return is_lost and may_be_sent(search.target, self._hosts)

    async def _go_on(self, copies: _ArchivedCopies, search: Search) -> None:
        rows = await self._store.read(partial(documents.list_all, feed=search.feed))
        stored = subscription_of(rows)
        if stored is None:
            await self._begin(copies, search)
        elif search.is_subscription:
            await self._search_gone(copies, search, rows, stored)
        else:
            await self._search_missing(copies, search, stored)

    async def _begin(self, copies: _ArchivedCopies, search: Search) -> None:
        """Begin a feed of which nothing is stored: the program ended before it was."""
        obtained = await copies.newest(search.target, None)
        if obtained is not None:
            error = PublisherError(
                "expected the document, its publisher does not give it",
                url=search.target,
                slug=search.reason,
                publisher_status=search.status,
            )
            await self._hand_over(search.feed, (), Subscription(search.target, obtained, failure=error))
        await self._note(search, _SEARCH_AGAIN_SECONDS if obtained is None else 0.0)

    async def _search_missing(self, copies: _ArchivedCopies, search: Search, stored: DocumentRow) -> None:
        """Look for the newest copy of a document of the chain that its publisher does not give."""
        obtained = await copies.newest(search.target, stored)
        if obtained is not None:
            await self._hand_over(search.feed, [OfferedCopy(search.url, obtained, is_subscription=False)])
        await self._note(search, _SEARCH_AGAIN_SECONDS)

    async def _search_gone(
        self, copies: _ArchivedCopies, search: Search, rows: Sequence[DocumentRow], stored: DocumentRow
    ) -> None:
        """Take one page of the copies of a subscription document; other searches have their turn then."""
        limits, attached = self._context.config.limits, [each for each in rows if each.rank is not None]
        room = limits.documents_per_feed - len(attached)
        room_bytes = limits.feed_bytes - sum(each.body_bytes for each in attached)
        behind, position = search.taken_at, search.position
        taken, following = await copies.oldest(search.target, position, behind=behind, like=stored)
        async for captured_at, obtained in taken:
            if room <= 0 or room_bytes <= 0:  # R18
                following = ""
                break
            if obtained is not None:
                offered = OfferedCopy(search.target, obtained, is_subscription=True)
                if not await self._hand_over(search.feed, [offered]):
                    await self._note(search, DAY_SECONDS)
                    return
                room -= 1
                room_bytes -= len(obtained.fetched.body)
            search = replace(search, taken_at=captured_at)
            await self._note(search, 0.0)
        await self._note(replace(search, position=following), 0.0 if following else _SEARCH_AGAIN_SECONDS)

    async def _hand_over(
        self, feed_id: int, copies: Sequence[OfferedCopy], found: Subscription | None = None
    ) -> bool:
        """Let a refresh of the feed keep what came; return whether it did."""
        while True:
            if (under_way := self._running.running(feed_id)) is not None:
                await asyncio.wait({under_way})
            feed = await self._store.read(partial(feeds.find, feed=feed_id))
            if feed is None:
                return False
            if self._running.running(feed_id) is None:
                break
        flight = self._running.join(feed, RefreshRequest(is_polled=True), found, copies)
        await asyncio.wait({flight})
        error = None if flight.cancelled() else flight.exception()
        if isinstance(error, StoreError | OverloadedError):
            raise error
        return error is None and not flight.cancelled()

    async def _note(self, search: Search, pause_seconds: float) -> None:
        """Keep how far a search has come, and for how long it rests."""
        next_at = self._context.now() + pause_seconds
        await self._store.write(partial(failures.note_search, search=search, next_at=next_at))


class _ArchivedCopies:
    """The copies of a document in the archive that are of use; each method raises `_ArchiveError`.

    A copy must be readable as a feed and say that it belongs to the one that it is for: an archive is another
    site, and the publisher's domain may have changed hands.

    Args:
        source: Reads them.
        archive: Has them.
        now: Epoch seconds.
    """

    def __init__(self, source: Source, archive: Archive, now: Callable[[], float]) -> None:
        self._source = source
        self._archive = archive
        self._now = now

    @property
    def waiting(self) -> int:
        """How many requests to the archive wait for their turn."""
        return self._archive.waiting

    async def newest(self, url: str, like: DocumentRow | None) -> Obtained | None:
        """Return the newest copy that is of use; None where none is.

        Args:
            url: Of the document.
            like: The subscription document of its feed; None: nothing is stored of it.
        """
        try:
            page = await self._archive.newest(url)
        except DocumentError as exc:
            _raise_if_archive(exc)
            return None
        for capture in for_missing(page.captures, url, now=self._now()):
            obtained = await self._obtained(capture, url, like)
            if obtained is not None:
                return obtained
        return None

    async def oldest(
        self, url: str, position: str, *, behind: float | None, like: DocumentRow
    ) -> tuple[AsyncIterator[tuple[float, Obtained | None]], str]:
        """Return the copies that a page of the index lists, the oldest first, and where the next page begins.

        They are asked for one by one as they are taken: when each was made, and None where it is of no use.

        Args:
            url: Of the subscription document.
            position: Where the page begins; empty: the first one.
            behind: Those made up to this instant were taken before.
            like: The subscription document as it is stored.
        """
        try:
            page, following = await self._archive.oldest(url, position)
        except DocumentError as exc:
            _raise_if_archive(exc)
            return self._taken([], url, like), ""
        captures = for_gone(page.captures, url, now=self._now())
        wanted = [each for each in captures if behind is None or each.captured_at > behind]
        return self._taken(wanted, url, like), following

    async def _taken(
        self, captures: list[Capture], url: str, like: DocumentRow
    ) -> AsyncIterator[tuple[float, Obtained | None]]:
        for capture in captures:
            yield capture.captured_at, await self._obtained(capture, url, like)

    async def _obtained(self, capture: Capture, url: str, like: DocumentRow | None) -> Obtained | None:
        try:
            obtained = await self._source.obtain_copy(self._archive, capture, url)
        except DocumentError as exc:
            _raise_if_archive(exc)
            log.info("memento.unusable", slug=exc.slug)
            return None
        if like is not None and not _belongs(obtained, like):
            log.info("memento.unusable", slug="cross-origin-unconfirmed")
            return None
        return obtained


def _belongs(obtained: Obtained, like: DocumentRow) -> bool:
    """R23, R24: whether a copy is of the feed of a subscription document."""
    facts, links, names = obtained.read.facts, obtained.navigation.links, (like.url, like.final_url)
    is_of_family = facts.family is like.family
    return is_of_family and is_confirmed(facts.site_id, links, feed_site_id=like.site_id, feed_urls=names)


class _ArchiveError(Exception):
    """The archive itself fails: nothing else is asked of it for a while."""

    def __init__(self, cause: DocumentError) -> None:
        super().__init__(cause.slug)
        self.slug = cause.slug
        self.rest_seconds = cause.retry_after_seconds or 0.0


_STRAINED: Final = frozenset({408, 425, 429, *range(500, 600)})
"""Statuses with which the archive says that it cannot answer now."""
_BROKEN: Final = frozenset({"incomplete", "protocol-error", "header-limit"})
"""Reasons for which it is more likely the copy, as it was archived, that is broken than the archive."""


def _raise_if_archive(error: DocumentError) -> None:
    """Tell a copy that is not there, or is no feed, from an archive that fails.

    Raises:
        _ArchiveError: It fails.
    """
    status = error.publisher_status
    is_unheard = status is None and not lasts(error.slug) and error.slug not in _BROKEN
    if is_unheard or status in _STRAINED:
        raise _ArchiveError(error) from error
