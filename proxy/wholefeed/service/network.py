"""Concurrent fetches of one refresh, with results one after the other.

A refresh that adds documents holds a turn (`WalkTurns`), and publishes meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Final

from wholefeed.core.adapters.base import There
from wholefeed.core.model import State
from wholefeed.core.refresh.arrivals import LedBack, Response, Unchanged
from wholefeed.core.refresh.asking import (
    EarlyLink,
    EndWalk,
    Fetch,
    FetchEnded,
    FetchPage,
    NextEvent,
    PauseHost,
    Publish,
    Rest,
    TakeTurn,
)
from wholefeed.core.refresh.basis import RefreshProgress
from wholefeed.core.refresh.collecting_requests import AT_ONCE
from wholefeed.core.schedule import is_uncacheable
from wholefeed.core.walk.ahead import is_foreseen
from wholefeed.errors import DocumentError, OverloadedError, QueueFullError, StoreError, WorkError
from wholefeed.fetch.base import Fetched, Manner
from wholefeed.fetch.budget import BudgetSizes
from wholefeed.futures import cancel, clear_tracebacks, retrieve_failure
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.feed_file import FeedFile
from wholefeed.service.incoming import IncomingDocuments, LookAheadCounts
from wholefeed.service.offers import describe_fresh
from wholefeed.service.sources import EarlyReader, Obtained, as_failure
from wholefeed.service.subscribing import SubscriptionDesk
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feed_table

log = get_logger()

# between publications during a walk; the last pause repeats
_MEANWHILE_SECONDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)


class WalkTurn:
    """One refresh's turn to use the network, with publications meanwhile."""

    def __init__(
        self,
        context: RefreshContext,
        feed: FeedRow,
        file: FeedFile,
        progress: RefreshProgress,
        *,
        is_polled: bool,
    ) -> None:
        self._context = context
        self._feed = feed
        self._file = file
        self._progress = progress
        self.is_polled = is_polled
        self._stack: AsyncExitStack | None = None  # the turn and the publishing task
        self.site = context.site_of(feed.fetch_url)
        self.is_waiting = False  # whether a walk that a reader asked for waits for its turn
        self.began = 0.0  # monotonic seconds; 0: no turn was taken

    async def take(self) -> None:
        self.is_waiting = not self.is_polled
        await self._file.storage.flush()
        self._stack = AsyncExitStack()
        try:
            await self._stack.enter_async_context(
                self._context.walks.turn(self.site, is_polled=self.is_polled)
            )
        finally:
            self.is_waiting = False
        began = time.monotonic()
        await self._file.storage.write(feed_table.begin_walk, self._context.now())
        self.began = began
        self._context.counts.walks_begun += 1
        log.info("walk.started", feed=self._feed.id)
        task = asyncio.create_task(self._publish_meanwhile())
        task.add_done_callback(retrieve_failure)  # `cancel` raises it
        self._stack.push_async_callback(cancel, task)

    async def end(self, request: EndWalk) -> None:
        """Give the turn back, and log the walk's end."""
        # A publication that stores pending documents must not be ended before it knows their numbers.
        await self._file.put_pending()
        await self.give_back()
        took_seconds = time.monotonic() - self.began if self.began else 0.0
        self._context.counts.walk_ended(request.ending, took_seconds)
        log.info(
            "walk.ended",
            feed=self._feed.id,
            ending=request.ending,
            documents=request.documents,
            fetched=self._progress.fetched,
            duration_s=round(took_seconds, 3),
        )

    async def give_back(self) -> None:
        if self._stack is not None:
            await self._stack.aclose()

    async def _publish_meanwhile(self) -> None:
        """Publish from time to time, and before `storage.fresh` must drop unrendered documents.

        A failed publication may succeed next time, or at the end.
        """
        pauses = iter(_MEANWHILE_SECONDS)
        while True:
            await self._file.storage.fresh.wait_for_more(next(pauses, _MEANWHILE_SECONDS[-1]))
            try:
                await self._file.publish(Publish(State.LOADING, self._progress.notes), is_walking=True)
            except (StoreError, OverloadedError, WorkError) as exc:
                log.warning("feed.unpublished", feed=self._feed.id, slug=exc.slug)


class Network:
    def __init__(
        self,
        context: RefreshContext,
        feed: FeedRow,
        incoming: IncomingDocuments,
        look_ahead: LookAheadCounts,
        desk: SubscriptionDesk,
        turn: WalkTurn,
    ) -> None:
        self._context = context
        self._feed = feed
        self._file = incoming.file
        self._incoming = incoming
        self._look_ahead = look_ahead
        self._desk = desk
        self.turn = turn
        self._deadline: float | None = None
        self._tasks: dict[str, asyncio.Task[Obtained | Response]] = {}
        self._pages: set[str] = set()  # requested by adapters
        self._early: deque[EarlyLink] = deque()
        self._has_event = asyncio.Event()
        self._needed = ""  # the URL that the walk's path has reached
        self._sizes = BudgetSizes()

    async def take_turn(self, _request: TakeTurn) -> None:
        if not self.turn.began:
            await self.turn.take()
            self._deadline = None
            self._begin_timer()

    async def end_walk(self, request: EndWalk) -> None:
        await self.stop()
        self._incoming.drop_all()
        if request.ending:
            await self.turn.end(request)

    async def stop(self) -> None:
        self._look_ahead.give_up()
        self._deadline, self._needed = None, ""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        self._early.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    # Fetches

    async def fetch(self, request: Fetch) -> None:
        if request.is_ahead:
            self._look_ahead.add(request.url)
        else:
            self._needed = request.url
        self._begin(request.url, partial(self._obtain, request))

    async def fetch_page(self, request: FetchPage) -> None:
        self._pages.add(request.url)
        self._begin(request.url, partial(self._obtain_page, request))

    async def next(self, request: NextEvent) -> FetchEnded | EarlyLink | None:
        assert self._tasks or self._early, "something is being fetched"
        self._needed = request.needed
        if not self._early:
            await self._gather()
            await self._file.storage.flush()  # others see the publisher's reply while this refresh waits
        while not self._early:
            url = next((url for url, task in self._tasks.items() if task.done()), None)
            if url is not None:
                return FetchEnded(url, await self._receive(url))
            if not await self._wait(self._begin_timer() - time.monotonic()):
                return None  # the walk's network time is over (R18)
        return self._early.popleft()

    async def _wait(self, seconds: float) -> bool:
        """Return whether an event came within `seconds`."""
        self._has_event.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._has_event.wait()
        return self._has_event.is_set()

    async def _receive(self, url: str) -> Response:
        """Take a fetch's result; documents are identified in order of arrival."""
        came = self._tasks.pop(url).result()
        if isinstance(came, Obtained):
            obtained = await self._incoming.receive(url, came)
            return describe_fresh(url, obtained, is_collected=url in self._pages)
        self._look_ahead.settle(url, is_hit=isinstance(came, Unchanged | LedBack))
        return came

    async def _gather(self) -> None:
        """Let pending documents wait for more if everything else waits, too."""
        pending = self._file.pending
        if not pending.are_waiting:
            return
        left_seconds = pending.left_seconds
        if left_seconds and self._tasks and not self._has_ended:
            await self._wait(left_seconds)
        if not (left_seconds and (self._early or self._has_ended)):
            await self._file.put_pending()

    @property
    def _has_ended(self) -> bool:
        return any(task.done() for task in self._tasks.values())

    def _begin(self, url: str, obtain: Callable[[], Awaitable[Obtained | Fetched]]) -> None:
        self._begin_timer()
        task = self._tasks[url] = asyncio.create_task(self._try(obtain))
        task.add_done_callback(lambda _: self._has_event.set())

    def _begin_timer(self) -> float:
        """Start the walk's network time (R18) unless it runs; return its end."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self._context.settings.walk_seconds
        return self._deadline

    async def _try(self, obtain: Callable[[], Awaitable[Obtained | Fetched]]) -> Obtained | Response:
        while True:
            self._context.sharing.require()
            try:
                came = await obtain()
                return came if isinstance(came, Obtained) else _response_of(came)
            except QueueFullError as exc:  # a walk has time
                await asyncio.sleep(exc.retry_after_seconds or 0.0)
            except DocumentError as exc:
                clear_tracebacks(exc)
                return as_failure(exc)

    async def _obtain(self, request: Fetch) -> Obtained | Fetched:
        url, stored, style = request.url, request.stored, self._desk.find_style()
        window = self._context.settings.window
        early = EarlyReader(
            on_older=lambda older: self._hear_early(url, older),
            is_foreseen=lambda: is_foreseen(url, self._needed, list(self._tasks), window),
            relation=request.relation,
        )
        came = await self._context.source.obtain(
            url,
            validators=self._desk.conditions(stored),
            early=early,
            is_ahead=lambda: bool(self._needed) and url != self._needed,
            sizes=self._sizes,
            is_met=request.is_met,
            style=style,
            manner=Manner(feed_url=self._feed.url, is_polled=self.turn.is_polled),
        )
        return await self._desk.with_new_links(stored, came, self._desk.find_style())

    async def _obtain_page(self, request: FetchPage) -> Obtained | Fetched:
        """Fetch without validators: a publisher may give many pages the same ones."""
        style = self._desk.find_style()
        return await self._context.source.obtain(
            request.url,
            is_met=request.is_met,
            style=None if style is None else style._replace(lists_members=True),
            manner=Manner(
                is_head=request.is_head,
                at_most=AT_ONCE,
                expected=request.expected,
                feed_url=self._feed.url,
                is_polled=self.turn.is_polled,
            ),
        )

    def _hear_early(self, url: str, older: str) -> None:
        self._early.append(EarlyLink(url, older))
        self._has_event.set()

    async def rest(self, _request: Rest) -> None:
        await asyncio.sleep(0)

    async def pause_host(self, request: PauseHost) -> None:
        self._context.pauses.pause(request.url, request.until, now=self._context.now())


def _response_of(fetched: Fetched) -> Response:
    if fetched.is_met:
        return LedBack(fetched.final_url)
    if not fetched.not_modified:
        return There(fetched.headers)
    says = "cache-control" in fetched.headers  # a 304 changes no field that it does not name (RFC 9111, 3.2)
    return Unchanged(is_uncacheable(fetched.headers) if says else None)
