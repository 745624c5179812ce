"""The documents fetched in a refresh, until each is stored or dropped."""

from __future__ import annotations

from collections.abc import Sequence

from wholefeed.core.refresh.accounting import Departure
from wholefeed.core.refresh.arrivals import FreshDocument, KnownEntries, Offer
from wholefeed.core.refresh.asking import Depart, Drop, FindKnown, KeepDocument, KeepTogether
from wholefeed.counts import Counts
from wholefeed.service.feed_file import FeedFile
from wholefeed.service.known_entries import find_departure, find_known
from wholefeed.service.new_documents import new_document
from wholefeed.service.offers import describe_offer
from wholefeed.service.sources import Obtained


class LookAheadCounts:
    """Counts of documents fetched ahead: needed by the walk or not."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._urls: set[str] = set()

    def add(self, url: str) -> None:
        self._urls.add(url)

    def settle(self, url: str, *, is_hit: bool) -> None:
        """Count a document if it was fetched ahead; `is_hit`: the walk needs it."""
        if url in self._urls:
            self._urls.remove(url)
            self._counts.look_ahead["hit" if is_hit else "miss"] += 1

    def give_up(self) -> None:
        """Count all others as misses."""
        self._counts.look_ahead["miss"] += len(self._urls)
        self._urls.clear()


class IncomingDocuments:
    """Fetched documents by requested URL."""

    def __init__(self, file: FeedFile, look_ahead: LookAheadCounts) -> None:
        self.file = file
        self._look_ahead = look_ahead
        self._come: dict[str, Obtained] = {}

    async def receive(self, url: str, obtained: Obtained) -> Obtained:
        """Return a document with its entries identified, also against earlier unstored ones."""
        obtained = await self.file.identify(obtained, self._come.values())
        self._come[url] = obtained
        return obtained

    async def receive_offer(self, offer: Offer[Obtained]) -> Offer[FreshDocument]:
        """Identify and describe another source's document."""
        obtained = self._come[offer.copy_url] = await self.file.identify(offer.document)
        return describe_offer(offer, obtained)

    def drop_all(self) -> None:
        self._come.clear()

    # The requests of a refresh

    async def known(self, request: FindKnown) -> KnownEntries:
        await self.file.put_pending()
        come = self._come.get(request.url)
        waiting = None if come is None else come.read.facts
        return await find_known(
            self.file.storage,
            request.arrival.identities,
            waiting,
            with_copies=request.with_copies,
            with_pages=request.with_pages,
        )

    async def depart(self, request: Depart) -> Departure:
        await self.file.put_pending()
        facts = self._come[request.url].read.facts
        asked = request.arrival.identities
        return await find_departure(self.file.storage, request.document, asked, facts, request.waiting)

    async def keep(self, request: KeepDocument) -> int:
        self._look_ahead.settle(request.url, is_hit=True)
        return await self.file.keep(self._come.pop(request.url), request.placement)

    async def keep_together(self, request: KeepTogether) -> Sequence[int]:
        puts = []
        for url, placement in request.placements.items():
            self._look_ahead.settle(url, is_hit=True)
            puts.append(new_document(self._come.pop(url), placement))
        return await self.file.put(puts)

    async def drop(self, request: Drop) -> None:
        del self._come[request.url]
        self._look_ahead.settle(request.url, is_hit=False)
