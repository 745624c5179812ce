"""The refreshes under way, at most one for each feed at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

import structlog

from wholefeed.core.model import State
from wholefeed.core.refresh.arrivals import FoundSubscription, Offer
from wholefeed.core.refresh.basis import RefreshRequest
from wholefeed.errors import (
    DiskError,
    DocumentError,
    LeaseLostError,
    OverloadedError,
    StorageFullError,
    StoreError,
    UnknownFeedError,
    WorkError,
)
from wholefeed.futures import cancel, clear_tracebacks, retrieve_failure
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.refresh import Refresh
from wholefeed.service.results import UnderWay
from wholefeed.service.sharing import Wanted
from wholefeed.service.sources import Obtained
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feed_table

log = get_logger()

AGAIN_SECONDS: Final = 5
"""Retry-After while a feed is refreshed."""
REST_SECONDS: Final = 60.0
"""Pause for a publisher after its documents could not be stored or rendered, but for `_PASSING`."""
PROBE_SECONDS: Final = 2.0
_PASSING: Final = (StorageFullError, DiskError, OverloadedError)
"""Errors of the store that may pass at any moment, for all feeds."""


@dataclass(slots=True, eq=False)
class FeedRun:
    """Consecutive refreshes of one feed, as one task."""

    request: RefreshRequest
    found: FoundSubscription[Obtained] | None
    """A document fetched just now, for the next refresh; no other object holds its large body."""
    copies: Sequence[Offer[Obtained]]
    """From other sources; for the next refresh, too."""
    again: RefreshRequest | None = None  # for right after the refresh under way
    refresh: Refresh | None = None
    """None: at another replica, or not begun."""


class Running:
    """The refreshes under way and their progress."""

    def __init__(self, context: RefreshContext) -> None:
        self._context = context
        self.on_end: list[Callable[[], None]] = []
        """Called at the end of each task."""
        self._flights: Flights[int, None] = Flights()
        self.running: Final = self._flights.running
        """Returns a feed's unfinished task."""
        self._runs: dict[int, FeedRun] = {}
        self._resting_until: dict[int, float] = {}
        self._unkept: set[int] = set()
        self._probing: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._flights)

    def join(
        self,
        feed: FeedRow,
        request: RefreshRequest,
        found: FoundSubscription[Obtained] | None = None,
        copies: Sequence[Offer[Obtained]] = (),
    ) -> asyncio.Task[None]:
        """Return the refresh under way, or begin one.

        A forced or full request, or a walk not permitted to the current refresh, follows it. Only a new
        refresh accepts `copies`.
        """
        flight = self.running(feed.id)
        if flight is None:
            run = self._runs[feed.id] = FeedRun(request, found, copies)
            flight = self._flights.join(feed.id, lambda: self._run(run, feed))
            flight.add_done_callback(self._ended)
            return flight
        assert not copies, "who has copies waits for the end of the one under way"
        run = self._runs[feed.id]
        if request.is_forced or request.is_full or (request.may_walk and not run.request.may_walk):
            run.again = request if run.again is None else run.again.merge(request)
            run.found = found or run.found
        return flight

    async def refresh_alone(
        self, feed_id: int, request: RefreshRequest, copies: Sequence[Offer[Obtained]], deadline: float
    ) -> FeedRow:
        """Run a separate refresh after the one under way; return the feed afterwards.

        Raises:
            OverloadedError: The monotonic deadline passed; a later call finds the result.
        """
        is_begun = False
        while True:
            feed = await self._context.store.read(partial(feed_table.require, feed=feed_id))
            if (flight := self.running(feed_id)) is None and is_begun:
                return feed
            if flight is None:
                flight, is_begun = self.join(feed, request, None, copies), True
            await asyncio.wait({flight}, timeout=max(0.0, deadline - time.monotonic()))
            if not flight.done():
                raise OverloadedError(
                    "the feed is being refreshed; try again when the refresh has ended",
                    retry_after_seconds=AGAIN_SECONDS,
                )
            error = None if flight.cancelled() or not is_begun else flight.exception()
            # a failing publisher does not keep other documents from being stored
            if error is not None and not isinstance(error, DocumentError):
                raise error

    async def wait_until_settled(self, feed_id: int) -> FeedRow | None:
        """Return the feed once no refresh is under way; None: forgotten."""
        while True:
            feed = await self._context.store.read(partial(feed_table.find, feed=feed_id))
            under_way = self.running(feed_id)
            if feed is None or under_way is None:
                return feed
            await asyncio.wait({under_way})

    async def cancel(self, feed_id: int) -> None:
        while (flight := self.running(feed_id)) is not None:
            self._runs[feed_id].again = None
            flight.cancel()
            await asyncio.wait({flight})
        self._context.sharing.release(feed_id)
        self._runs.pop(feed_id, None)
        self._resting_until.pop(feed_id, None)
        self._unkept.discard(feed_id)

    async def close(self) -> None:
        await self._flights.close()
        if self._probing is not None:
            await cancel(self._probing)

    def is_due(self, feed: FeedRow) -> bool:
        """Return whether freshness has run out or stored data is unpublished.

        A failed publisher rests until its next attempt in any case.
        """
        if self.is_resting(feed.id):
            return False
        if self._context.fresh_seconds_left(feed, self._context.now()) <= 0:
            return True
        is_whole = feed.visible_state is not State.LOADING and feed.revision == feed.published_revision
        return not (is_whole or feed.is_stale)

    def is_resting(self, feed_id: int) -> bool:
        if feed_id in self._unkept:
            return True
        return bool(self._resting_until) and time.monotonic() < self._resting_until.get(feed_id, 0.0)

    def under_way(self, feed_id: int) -> UnderWay | None:
        """Return a refresh's progress, here or at another replica."""
        run = self._runs.get(feed_id)
        if run is None:
            return None
        return self._context.sharing.heard(feed_id) if run.refresh is None else run.refresh.under_way

    @property
    def walking(self) -> int:
        return sum(refresh.under_way.is_walking for refresh in self._refreshes())

    @property
    def waiting(self) -> int:
        """Walks waiting for the network, without polls."""
        return sum(refresh.is_waiting for refresh in self._refreshes())

    def waiting_at(self, site: str) -> int:
        return sum(refresh.is_waiting and refresh.site == site for refresh in self._refreshes())

    def _refreshes(self) -> list[Refresh]:
        return [run.refresh for run in self._runs.values() if run.refresh is not None]

    async def _run(self, run: FeedRun, feed: FeedRow) -> None:
        structlog.contextvars.bind_contextvars(feed=feed.id)  # for the log lines of fetches
        try:
            while True:
                try:
                    await self._run_somewhere(run, feed)
                except DocumentError:
                    if run.again is None:
                        raise
                if run.again is None:
                    return
                latest = await self._context.store.read(partial(feed_table.find, feed=feed.id), feed=feed.id)
                if latest is None:
                    return
                # `again` may have grown during the read
                feed, run.request, run.again = latest, run.again, None
        finally:
            del self._runs[feed.id]

    async def _run_somewhere(self, run: FeedRun, feed: FeedRow) -> None:
        sharing = self._context.sharing
        if not sharing.is_shared:
            await self._run_once(run, feed)
            return
        request = run.request
        changes = run.copies or request.removes or request.forgets or request.listing
        is_asked = request.is_forced or request.is_full or bool(changes)
        wanted = Wanted(
            feed=feed,
            insists=lambda has_waited: is_asked or (run.found is not None and not has_waited),
            is_due=self.is_due,
            tell=lambda: UnderWay() if run.refresh is None else run.refresh.under_way,
        )
        if not await sharing.refresh(wanted, partial(self._run_once, run)):
            self._context.memory.drop(feed.id)

    async def _run_once(self, run: FeedRun, feed: FeedRow) -> None:
        refresh = Refresh(self._context, feed, run.request, run.found, run.copies)
        run.refresh, run.found, run.copies = refresh, None, ()
        try:
            await refresh.run()
        except DocumentError as exc:
            self._context.counts.refresh_failed(exc.slug)
            log.info("feed.stale", feed=feed.id, slug=exc.slug)
            raise
        except (UnknownFeedError, LeaseLostError):  # forgotten meanwhile, or refreshed by another replica
            raise
        except (StoreError, OverloadedError, WorkError) as exc:
            # The stored feed is served.
            self._rest(feed.id, exc)
            self._context.counts.refresh_failed(exc.slug)
            log.warning("feed.unkept", feed=feed.id, slug=exc.slug)
            raise
        except Exception:
            self._context.counts.refresh_failed("internal")
            log.exception("refresh.failed", feed=feed.id)
            raise
        finally:
            run.refresh = None

    def _rest(self, feed_id: int, error: Exception) -> None:
        if not isinstance(error, _PASSING):
            self._resting_until[feed_id] = time.monotonic() + REST_SECONDS
            return
        self._unkept.add(feed_id)
        if self._probing is None:
            self._probing = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        is_writable = False
        try:
            while not is_writable:
                await asyncio.sleep(PROBE_SECONDS)
                with suppress(StoreError, OverloadedError):
                    await self._context.store.probe()
                    is_writable = True
        finally:
            self._unkept.clear()
            self._probing = None

    def _ended(self, _: object) -> None:
        for each in self.on_end:
            each()


_Key = TypeVar("_Key")
_T = TypeVar("_T")


class Flights(Generic[_Key, _T]):
    """At most one task for each key, shared by callers and outliving them (docs/faults.md rows 63, 64)."""

    def __init__(self) -> None:
        self._tasks: dict[_Key, asyncio.Task[_T]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def running(self, key: _Key) -> asyncio.Task[_T] | None:
        task = self._tasks.get(key)
        return None if task is None or task.done() else task

    def join(self, key: _Key, start: Callable[[], Coroutine[Any, Any, _T]]) -> asyncio.Task[_T]:
        assert not self._is_closed, "closed"
        task = self.running(key)
        if task is None:
            task = asyncio.create_task(_flight(start))
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return task

    async def close(self) -> None:
        self._is_closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, key: _Key, task: asyncio.Task[_T]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        retrieve_failure(task)


async def _flight(start: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    try:
        return await start()
    except BaseException as exc:
        clear_tracebacks(exc)
        raise
