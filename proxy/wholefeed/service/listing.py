"""Search for histories in publishers' pages (H1 to H8).

Nobody waits. A refresh stores the result. A restart repeats an unfinished look.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

from wholefeed.core.adapters.base import Marks
from wholefeed.core.listing.file_search import (
    FileRequest,
    SitemapNames,
    SitemapNamesRequest,
    SitemapRequest,
)
from wholefeed.core.listing.finding import (
    Answer,
    FoundLists,
    ListJob,
    LookMemory,
    NotHad,
    PageRequest,
    look,
)
from wholefeed.core.listing.joined_sources import ListedEntry, ListedPage
from wholefeed.core.listing.lists import FeedEntry
from wholefeed.core.listing.page_links import link_key
from wholefeed.core.listing.page_reading import read_page
from wholefeed.core.listing.search_indexes import read_index
from wholefeed.core.listing.site_xml import MOST_FILE_BYTES
from wholefeed.core.listing.sitemaps import read_sitemap
from wholefeed.core.model import LIST_URL, Kind
from wholefeed.core.parse.discovery import is_html
from wholefeed.core.refresh.arrivals import Offer
from wholefeed.core.refresh.basis import RefreshRequest
from wholefeed.core.refresh.listing_state import ListingState
from wholefeed.core.refresh.stored import subscription_of
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import (
    DocumentError,
    OverloadedError,
    StoreError,
    UnknownFeedError,
    WorkError,
)
from wholefeed.fetch.base import Fetched
from wholefeed.fetch.robots import Robots
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.listed_documents import make_listed, name_entries
from wholefeed.service.new_documents import make_stored
from wholefeed.service.offers import offer_document
from wholefeed.service.page_fetches import PAGE_BYTES, PAUSE_SECONDS, READ_SECONDS, PageFetches, SitePace
from wholefeed.service.running import REST_SECONDS, Running
from wholefeed.service.site_rounds import SiteRounds
from wholefeed.service.sources import Obtained
from wholefeed.store.rows import DocumentRow, FeedRow
from wholefeed.store.tables import document_table, feed_table

log = get_logger()


class Lists:
    """Looks at publishers' pages."""

    def __init__(self, context: RefreshContext, running: Running, robots: Robots, pace: SitePace) -> None:
        self._context = context
        self._store = context.store
        self._running = running
        self._robots = robots
        self._pace = pace
        self._rounds = SiteRounds(
            context,
            "lists",
            list_due=feed_table.list_due,
            next_due_at=feed_table.next_list_at,
            url_of=lambda feed: feed.fetch_url,
            work=self._look,
        )
        running.on_end.append(self._hear)

    @property
    def are_on(self) -> bool:
        return self._context.config.history.list != "off"

    async def run(self) -> None:
        while self.are_on:
            try:
                await self._rounds.run()
            except (StoreError, OverloadedError) as exc:
                log.warning("lists.paused", slug=exc.slug)
                await self._rounds.pause(REST_SECONDS)

    def _hear(self) -> None:
        if self._context.has_planned_look:  # most refreshes plan none
            self._context.has_planned_look = False
            self.wake()

    def wake(self) -> None:
        """Look for due feeds now: the clock may have been set."""
        self._rounds.wake()

    async def finish(self, url: str) -> None:
        """Look at one due feed's pages; the look outlives a cancelled caller."""
        while (feed := await self._context.find(url)) is not None and self._is_due(feed):
            if await self._rounds.finish(feed):
                return

    def _is_due(self, feed: FeedRow) -> bool:
        return self.are_on and feed.list_at is not None and feed.list_at <= self._context.now()

    async def close(self) -> None:
        await self._rounds.close()

    # One feed

    async def _look(self, feed: FeedRow) -> None:
        pause_seconds: float | None = PAUSE_SECONDS
        try:
            is_kept = self._context.may_list(feed.fetch_url) and await self._search_site(feed)
            pause_seconds = None if is_kept else DAY_SECONDS
        except (StoreError, OverloadedError, WorkError, DocumentError, UnknownFeedError) as exc:
            log.warning("lists.unkept", feed=feed.id, slug=exc.slug)
        except Exception:  # the last resort: looks at other feeds go on
            pause_seconds = DAY_SECONDS
            self._context.counts.troubles["lists"] += 1
            log.exception("lists.failed", feed=feed.id)
        if pause_seconds is not None:  # even after a failure, or the publisher would be asked without end
            at = self._context.now() + pause_seconds
            try:
                await self._store.write(partial(feed_table.update, feed=feed.id, changes={"list_at": at}))
            except (StoreError, OverloadedError):  # for example, no room
                self._rounds.rest_feed(feed.id, at)
            except UnknownFeedError:
                pass

    async def _search_site(self, feed: FeedRow) -> bool:
        rows = await self._store.read(partial(document_table.list_all, feed=feed.id))
        own = subscription_of(rows)
        if own is None:
            return False
        names = {
            row.id: await self._name_entries(row) for row in rows if row.rank is not None and row.entries
        }
        known = await asyncio.to_thread(_keys, names.values())
        before = ListingState.read(feed.listing)
        fetches = PageFetches(self._context, self._robots, self._pace, own.final_url, feed.url)
        asking, began = _Asking(fetches), time.monotonic()
        found = await asking.run(look(self._job(feed, own, names.get(own.id, []), before, known)))
        found = _within(await asyncio.to_thread(_new, found, known), self._room(rows))
        listing = self._listing(found, before, asking, own)
        copies = [await self._offer(page, own, rows) for page in found.pages if page.entries]
        is_kept = await self._hand_over(feed.id, listing, copies)
        self._context.counts.looks["listed" if listing.known.first_url else "nothing"] += 1
        log.info(
            "lists.looked",
            feed=feed.id,
            pages=len(found.pages),
            entries=sum(len(page.entries) for page in found.pages),
            missing=len(found.missing),
            requests=fetches.requests,
            duration_s=round(time.monotonic() - began, 3),
        )
        return is_kept

    async def _name_entries(self, row: DocumentRow) -> list[FeedEntry]:
        return await name_entries(self._context.source.work, self._store.read, row)

    def _job(
        self,
        feed: FeedRow,
        own: DocumentRow,
        entries: Sequence[FeedEntry],
        listing: ListingState,
        known: frozenset[str],
    ) -> ListJob:
        is_same = listing.family == own.family
        home = (feed.site, own.site_id)
        return ListJob(
            feed_url=own.final_url,
            home_urls=tuple(dict.fromkeys(url for url in home if urlsplit(url).scheme in ("http", "https"))),
            entries=tuple(entries),
            site_of=self._context.site_of,
            most_pages=self._context.config.history.list_pages,
            now=self._context.now(),
            known=listing.known if is_same else LookMemory(),
            known_keys=known,
            generator=Marks.read(own.marks).generator if own.marks else "",
        )

    def _room(self, rows: Sequence[DocumentRow]) -> int:
        return self._context.config.limits.entries_per_feed - sum(row.entries for row in rows)

    def _listing(
        self, found: FoundLists, before: ListingState, asking: _Asking, own: DocumentRow
    ) -> ListingState:
        now = self._context.now()
        limit = self._context.config.history.list_pages
        listing = ListingState.of(found, before=before, family=own.family, now=now, limit=limit)
        return (
            listing.postpone(before, asking.fetches.paused_until, now=now) if asking.has_failed else listing
        )

    async def _offer(
        self, page: ListedPage, own: DocumentRow, rows: Sequence[DocumentRow]
    ) -> Offer[Obtained]:
        url = LIST_URL + page.url
        row = next((row for row in rows if row.url == url and row.family is own.family), None)
        older = None
        if row is not None:
            older = make_stored(
                row, await self._store.read(partial(document_table.read_body, document=row.id))
            )
        obtained = await make_listed(self._context.source, page, own, older=older, now=self._context.now())
        return offer_document(url, obtained, is_subscription=True)

    async def _hand_over(
        self, feed_id: int, listing: ListingState, copies: Sequence[Offer[Obtained]]
    ) -> bool:
        """Have a refresh store the result; return whether it did."""
        feed = await self._running.wait_until_settled(feed_id)
        if feed is None or feed.kind is not Kind.PLAIN or feed.list_at is None:
            return False  # the feed has a history by now, or was forgotten
        flight = self._running.join(feed, RefreshRequest(is_polled=True, listing=listing), None, copies)
        await asyncio.wait({flight})
        if flight.cancelled():
            return False
        if (error := flight.exception()) is not None:
            raise error
        return True


def _keys(documents: Iterable[Iterable[FeedEntry]]) -> frozenset[str]:
    return frozenset(link_key(each.link) for entries in documents for each in entries)


def _new(found: FoundLists, known: frozenset[str]) -> FoundLists:
    """Drop known entries and duplicates (H6)."""
    met = set(known)

    def kept(entries: Iterable[ListedEntry]) -> Iterable[ListedEntry]:
        for each in entries:
            key = link_key(each.link)
            if key not in met:
                met.add(key)
                yield each

    pages = tuple(replace(page, entries=tuple(kept(page.entries))) for page in found.pages)
    return replace(found, pages=pages)


def _within(found: FoundLists, room: int) -> FoundLists:
    """Cut the result to the limit (R18)."""
    pages = []
    for page in found.pages:
        entries = page.entries[: max(0, room)]
        room -= len(page.entries)
        pages.append(replace(page, entries=entries))
    return replace(found, pages=tuple(pages), is_cut=found.is_cut or room < 0)


# Asking

_Request = PageRequest | FileRequest


@dataclass(slots=True)
class _Asking:
    """The requests of one look for lists."""

    fetches: PageFetches
    has_failed: bool = False
    """Whether a missing page may come later."""

    async def run(self, looking: Generator[_Request, Answer, FoundLists]) -> FoundLists:
        fetches = self.fetches
        deadline = time.monotonic() + fetches.context.config.limits.walk_seconds
        answer: Answer | None = None
        while True:
            step = partial(_step, looking, answer)
            ask = await asyncio.to_thread(step)  # its duration depends on the publisher's pages
            if isinstance(ask, FoundLists):
                return ask
            if time.monotonic() >= deadline:
                fetches.pause()
            answer = await self._answer(ask)
            self.has_failed |= isinstance(answer, NotHad) and not answer.is_lasting

    async def _answer(self, request: _Request) -> Answer:
        if isinstance(request, SitemapNamesRequest):
            urls = await self.fetches.name_sitemaps(request.url)
            return urls if isinstance(urls, NotHad) else SitemapNames(urls)
        if isinstance(request, PageRequest):
            return await self.fetches.fetch(request.url, self._read, is_guess=request.is_guess)
        is_guess = isinstance(request, SitemapRequest) and request.is_guess
        return await self.fetches.fetch(request.url, partial(self._read_file, request), is_guess=is_guess)

    async def _read(self, url: str, fetched: Fetched) -> Answer:
        work, body = self.fetches.context.source.work, fetched.body
        if len(body) > PAGE_BYTES:
            return NotHad(url, "too-large", None, is_lasting=True)
        if not is_html(body, fetched.media_type):
            return NotHad(url, "not-html", None, is_lasting=True)
        async with work.large.turn(len(body)):
            return await work.run_briefly(
                READ_SECONDS, read_page, body, fetched.final_url, fetched.media_type
            )

    async def _read_file(self, request: FileRequest, url: str, fetched: Fetched) -> Answer:
        work, body = self.fetches.context.source.work, fetched.body
        if len(body) > MOST_FILE_BYTES:
            return NotHad(url, "too-large", None, is_lasting=True)
        facts = (body, fetched.final_url, fetched.media_type)
        async with work.large.turn(len(body)):
            if isinstance(request, SitemapRequest):
                sitemap = await work.run_briefly(
                    READ_SECONDS, read_sitemap, *facts, request.shape, request.wanted
                )
                return sitemap or NotHad(url, "not-a-sitemap", None, is_lasting=True)
            index = await work.run_briefly(READ_SECONDS, read_index, *facts)
            return index or NotHad(url, "not-an-index", None, is_lasting=True)


def _step(looking: Generator[_Request, Answer, FoundLists], answer: Answer | None) -> _Request | FoundLists:
    try:
        return next(looking) if answer is None else looking.send(answer)
    except StopIteration as end:
        found: FoundLists = end.value
        return found
