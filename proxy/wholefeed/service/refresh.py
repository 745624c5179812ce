"""One refresh of one feed: `Refresh` carries out the requests of `wholefeed.core.refresh.refreshing`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from wholefeed.core.refresh import asking
from wholefeed.core.refresh.arrivals import FoundSubscription, Offer, SubscriptionFailed
from wholefeed.core.refresh.asking import CoreRequest, Talk
from wholefeed.core.refresh.basis import Basis, RefreshProgress, RefreshRequest
from wholefeed.core.refresh.refreshing import refresh
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.errors import OverloadedError, StoreError, UnknownFeedError
from wholefeed.service.context import RefreshContext
from wholefeed.service.feed_file import FeedFile
from wholefeed.service.incoming import IncomingDocuments, LookAheadCounts
from wholefeed.service.network import Network, WalkTurn
from wholefeed.service.results import UnderWay
from wholefeed.service.sources import Obtained
from wholefeed.service.subscribing import SubscriptionDesk
from wholefeed.store.rows import FeedRow

_LEAVING_SECONDS: Final = 1.0
"""Time to store fetched documents after a cancellation."""


class Refresh:
    """One refresh of one feed; `run` is called once, properties may be read meanwhile.

    `found` is the subscription document, if fetched just now. `offered` documents come from other sources
    than the publisher's links.
    """

    def __init__(
        self,
        context: RefreshContext,
        feed: FeedRow,
        request: RefreshRequest,
        found: FoundSubscription[Obtained] | None = None,
        offered: Sequence[Offer[Obtained]] = (),
    ) -> None:
        self._context = context
        self._feed = feed
        self._request = request
        self._is_new = found is not None and feed.is_untouched  # just created by its opening
        self._offered = offered
        self._progress = RefreshProgress()
        look_ahead = LookAheadCounts(context.counts)
        self._file = FeedFile(context, feed)
        self._incoming = IncomingDocuments(self._file, look_ahead)
        self._desk = SubscriptionDesk(context, feed, self._file, found, is_polled=request.is_polled)
        self._turn = WalkTurn(context, feed, self._file, self._progress, is_polled=request.is_polled)
        self._network = Network(context, feed, self._incoming, look_ahead, self._desk, self._turn)

    @property
    def site(self) -> str:
        return self._turn.site

    @property
    def is_waiting(self) -> bool:
        return self._turn.is_waiting

    @property
    def under_way(self) -> UnderWay:
        """Progress, counting stored documents only."""
        is_confirmed, began = self._progress.is_confirmed, self._turn.began
        if not began:
            return UnderWay(is_confirmed=is_confirmed)
        progress = self._file.pending.left_out_of(self._progress)
        return UnderWay(
            is_confirmed=is_confirmed,
            is_walking=True,
            documents=progress.documents,
            entries=progress.entries,
            fetched=progress.fetched,
            left=progress.left,
            seconds=time.monotonic() - began,
        )

    async def run(self) -> None:
        """Bring the feed up to date.

        Raises:
            DocumentError: No subscription document; the stored feed becomes stale.
            StoreError: Documents cannot be stored.
            WorkError: Documents cannot be rendered.
        """
        storage = self._file.storage
        basis, rows = await self._start()
        try:
            failed = await self._converse(refresh(basis, rows))
            await self._file.put_pending()
            await storage.flush()
            if failed is not None:
                raise failed.error
        except Exception:  # the publisher's response counts, so that it is not asked again for nothing
            with suppress(StoreError, OverloadedError):
                await storage.flush()
            raise
        except asyncio.CancelledError:
            with suppress(StoreError, OverloadedError, TimeoutError):
                async with asyncio.timeout(_LEAVING_SECONDS):
                    await storage.wait_for_writes()
            raise
        finally:
            await self._leave()

    async def _start(self) -> tuple[Basis, Sequence[StoredDocument]]:
        context = self._context
        rows, (missing, failure) = await self._file.storage.start(is_new=self._is_new)
        basis = Basis(
            feed=self._feed,
            missing={attempt.url: attempt for attempt in missing},
            failure=failure,
            settings=context.settings,
            request=self._request,
            site_of=context.site_of,
            now=context.now,
            offers=tuple([await self._incoming.receive_offer(each) for each in self._offered]),
            progress=self._progress,
        )
        return basis, rows

    async def _converse(self, talk: Talk[SubscriptionFailed | None]) -> SubscriptionFailed | None:
        """Carry out all requests; return the final failure, if any."""
        carry_out, answer = self._handlers(), None
        try:
            while True:
                request = talk.send(answer)
                answer = await carry_out[type(request)](request)
        except StopIteration as end:
            failed: SubscriptionFailed | None = end.value
            return failed
        finally:
            talk.close()

    def _handlers(self) -> Mapping[type[CoreRequest[Any]], Callable[[Any], Awaitable[Any]]]:
        desk, network, incoming, file = self._desk, self._network, self._incoming, self._file
        return {
            asking.AskSubscription: desk.ask,
            asking.StoreSubscription: desk.store,
            asking.NoteReply: desk.note_reply,
            asking.NoteFailure: desk.note_failure,
            asking.TakeTurn: network.take_turn,
            asking.Fetch: network.fetch,
            asking.FetchPage: network.fetch_page,
            asking.NextEvent: network.next,
            asking.Rest: network.rest,
            asking.PauseHost: network.pause_host,
            asking.EndWalk: network.end_walk,
            asking.FindKnown: incoming.known,
            asking.Depart: incoming.depart,
            asking.KeepDocument: incoming.keep,
            asking.KeepTogether: incoming.keep_together,
            asking.Drop: incoming.drop,
            asking.Rows: file.rows,
            asking.ReadEntries: file.entries,
            asking.Doubtful: file.doubtful,
            asking.Touch: file.touch,
            asking.Attach: file.attach,
            asking.Detach: file.detach,
            asking.Remove: file.remove,
            asking.SettleDoubtful: file.settle_doubtful,
            asking.NoteFeed: file.note_feed,
            asking.NoteListing: file.note_listing,
            asking.Reread: file.reread,
            asking.SettleIds: file.settle_ids,
            asking.Unlist: file.unlist,
            asking.Publish: file.publish,
        }

    async def _leave(self) -> None:
        """Store pending documents within `_LEAVING_SECONDS`, and stop fetches."""
        try:
            if self._file.pending:
                with suppress(StoreError, OverloadedError, UnknownFeedError, TimeoutError):
                    async with asyncio.timeout(_LEAVING_SECONDS):
                        await self._file.put_pending()
            await self._network.stop()
        finally:  # the turn lasts as long as any fetch
            await self._turn.give_back()
