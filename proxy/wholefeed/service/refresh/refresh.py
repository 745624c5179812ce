"""One refresh of one feed: what `wholefeed.core.refresh` decides is done here, and nothing else.

    await Refresh(context, feed, RefreshRequest()).run()

Each intent is carried out and the decision told what came of it, until there is nothing left to do. Two
things go on beside that line while a walk runs: documents are fetched, several at once, and what has arrived
is published from time to time, for readers that do not wait for the end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Final, assert_never

from wholefeed.core.reading_notes import ReadingNote
from wholefeed.core.refresh import intents
from wholefeed.core.refresh.decision import Decision
from wholefeed.core.refresh.events import ArchivedCopy, CarriedOut, Event
from wholefeed.core.refresh.given import Clock, Given, RefreshRequest
from wholefeed.core.refresh.progress import Progress
from wholefeed.core.terms import State
from wholefeed.counts import NONE
from wholefeed.errors import OverloadedError, StoreError, UnknownFeedError, WorkError
from wholefeed.futures import cancelled, retrieve_failure
from wholefeed.loggers import get_logger
from wholefeed.service.documents.facts import OfferedCopy, archived_copy
from wholefeed.service.documents.subscription import Subscription
from wholefeed.service.refresh.asking import Asking
from wholefeed.service.refresh.context import RefreshContext
from wholefeed.service.refresh.publish import assemble
from wholefeed.service.refresh.storing import FeedStorage
from wholefeed.service.walk.fetching import WalkFetches
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feeds

log = get_logger()


_MEANWHILE_SECONDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses between publications while a walk runs; the last one repeats."""
_LEAVING_SECONDS: Final = 1.0
"""For what was fetched to be stored when a refresh is broken off."""


class Refresh:
    """One refresh. `run` is called once; the attributes can be read meanwhile.

    Args:
        context: What to work with.
        feed: As it is stored.
        request: What is asked for beside the usual.
        found: The subscription document, when it has just been fetched.
        copies: Of documents that are missing, in a web archive.
    """

    def __init__(
        self,
        context: RefreshContext,
        feed: FeedRow,
        request: RefreshRequest,
        found: Subscription | None = None,
        copies: Sequence[OfferedCopy] = (),
    ) -> None:
        self._context = context
        self._feed = feed
        self._request = request
        self._is_found = found is not None
        self._copies = copies
        self._storage = FeedStorage(
            context.store,
            context.source.work,
            feed.id,
            now=context.now,
            fence=context.sharing.fence(feed.id),
            beginnings=context.beginnings,
        )
        self._asking = Asking(context.source, self._storage, found)
        self._fetches = WalkFetches(
            context.source,
            style=self._asking.style,
            identified=self._storage.identified,
            enough=context.config.fetch.concurrency_per_host,
            counts=context.counts,
            may_ask=context.sharing.require,
        )
        self._decision: Decision | None = None
        self._writing = asyncio.Lock()
        """Held while documents change, and by whoever must not see them change."""
        self._walk: AsyncExitStack | None = None  # the turn to use the network, the publications meanwhile
        self._walk_began = 0.0
        self.site = context.site_of(feed.fetch_url)
        self.is_waiting = False
        """Whether the walk of a feed that somebody asked for waits for its turn to use the network."""

    @property
    def is_confirmed(self) -> bool:
        """Whether the publisher has been heard of the subscription document."""
        return self._decision is not None and self._decision.is_confirmed

    @property
    def progress(self) -> Progress | None:
        """How far the walk is, by what is stored; None where none runs."""
        is_walking = self._decision is not None and self._decision.is_walking
        found = self._decision.progress if self._decision is not None and is_walking else None
        return None if found is None else self._storage.gathered.left_out_of(found)

    @property
    def walked_seconds(self) -> float | None:
        """Since the walk began to use the network; None: it does not."""
        return time.monotonic() - self._walk_began if self._walk_began and self.progress else None

    async def run(self) -> None:
        """Bring the feed up to date.

        Raises:
            DocumentError: The subscription document could not be had; what is stored serves as stale.
            StoreError: What was fetched cannot be kept.
            WorkError: It cannot be rendered.
        """
        decision = self._decision = self._fetches.path = await self._begin()
        try:
            while True:
                intent = decision.intent
                if isinstance(intent, intents.End):
                    await self._put_gathered()
                    await self._storage.flush()
                if isinstance(intent, intents.Done):
                    return
                if isinstance(intent, intents.GiveUp):
                    assert self._asking.error is not None, "something failed"
                    raise self._asking.error
                decision.advance(await self._carry_out(intent), now=self._context.now())
        except Exception:  # what the publisher said counts all the same: it is not asked again for nothing
            with suppress(StoreError, OverloadedError):
                await self._storage.flush()
            raise
        finally:
            try:
                if self._storage.gathered:
                    with suppress(StoreError, OverloadedError, UnknownFeedError, TimeoutError):
                        async with asyncio.timeout(_LEAVING_SECONDS):
                            await self._put_gathered()
                await self._fetches.stop()
            finally:  # the turn is held as long as anything is fetched
                if self._walk is not None:
                    await self._walk.aclose()
                decision.close()

    async def _begin(self) -> Decision:
        context = self._context
        is_new = self._is_found and self._feed.is_untouched  # as its opening has made it
        rows, (missing, failure) = await self._storage.begin(is_new=is_new)
        given = Given(
            feed=self._feed,
            missing={attempt.url: attempt for attempt in missing},
            failure=failure,
            settings=context.settings,
            request=self._request,
            site_of=context.site_of,
            clock=Clock(context.now()),
            copies=tuple([await self._offered(copy) for copy in self._copies]),
        )
        return Decision(given, rows)

    async def _offered(self, copy: OfferedCopy) -> ArchivedCopy:
        obtained = await self._storage.identified(copy.obtained)
        self._fetches.offer(obtained.memento, obtained)
        return archived_copy(copy.url, obtained, is_subscription=copy.is_subscription)

    async def _carry_out(self, intent: intents.Task) -> Event:
        if isinstance(intent, intents.Change):
            async with self._writing:
                return await self._storage.change(intent, self._fetches.take)
        if isinstance(intent, intents.Remark):
            return self._storage.remark(intent)
        if isinstance(intent, intents.Look):
            await self._put_gathered()
            return await self._storage.look(intent, self._fetches.obtained)
        if isinstance(intent, intents.Fetching):
            if isinstance(intent, intents.Wait):
                await self._gather()
            await self._storage.flush()  # others see what the publisher said while this one waits
            return await self._fetches.carry_out(intent)
        if isinstance(intent, intents.AskSubscription):
            return await self._asking.ask(intent)
        await self._do(intent)
        return CarriedOut()

    async def _gather(self) -> None:
        """Let what is to be put wait a moment for more, if all else waits as well."""
        waiting = self._storage.gathered
        if waiting.are_waiting and not (
            waiting.left_seconds and await self._fetches.has_come(waiting.left_seconds)
        ):
            await self._put_gathered()

    async def _put_gathered(self) -> None:
        if self._storage.gathered:
            async with self._writing:
                await self._storage.put_gathered()

    async def _do(self, intent: intents.Deed) -> None:
        """Do something of which nothing is told but that it is done."""
        match intent:
            case intents.PauseHost(url, until):
                self._context.pauses.pause(url, until)
            case intents.BeginWalk():
                await self._begin_walk()
            case intents.EndWalk():
                await self._end_walk(intent)
            case intents.Rest():
                await asyncio.sleep(0)
            case intents.Publish():
                await self._publish(intent)
            case _:
                assert_never(intent)

    # The walk

    async def _begin_walk(self) -> None:
        """Wait for a turn to use the network, once."""
        if self._walk_began:
            return
        self.is_waiting = not self._request.is_polled
        await self._storage.flush()
        self._walk = AsyncExitStack()
        try:
            await self._walk.enter_async_context(self._context.walks.turn(self.site))
        finally:
            self.is_waiting = False
        self._walk_began = time.monotonic()
        await self._storage.write(partial(feeds.begin_walk, feed=self._feed.id, now=self._context.now()))
        self._context.counts.walk_began()
        log.info("walk.started", feed=self._feed.id)
        task = asyncio.create_task(self._publish_meanwhile())
        task.add_done_callback(retrieve_failure)  # it is raised where the task is ended
        self._walk.push_async_callback(cancelled, task)

    async def _end_walk(self, intent: intents.EndWalk) -> None:
        await self._put_gathered()  # nor is a publication that puts some ended before their numbers are known
        if self._walk is not None:
            await self._walk.aclose()
        assert self._decision is not None, "it wants this"
        took_seconds = time.monotonic() - self._walk_began if self._walk_began else 0.0
        self._context.counts.walk_ended(intent.ending, took_seconds)
        log.info(
            "walk.ended",
            feed=self._feed.id,
            ending=intent.ending,
            documents=intent.documents,
            fetched=self._decision.progress.fetched,
            duration_s=round(took_seconds, 3),
        )

    async def _publish_meanwhile(self) -> None:
        """Publish what has arrived from time to time, for readers that do not wait for the end.

        And when so much is in memory that some would have to be read again for it. What cannot be done now
        may be done at the next time, or at the end.
        """
        pauses = iter(_MEANWHILE_SECONDS)
        while True:
            await self._storage.fresh.grown(next(pauses, _MEANWHILE_SECONDS[-1]))
            assert self._decision is not None, "it has begun the walk"
            publication = self._decision.meanwhile()
            if publication is None:
                continue
            try:
                await self._publish(publication)
            except (StoreError, OverloadedError, WorkError) as exc:
                log.warning("feed.unpublished", feed=self._feed.id, slug=exc.slug)

    async def _publish(self, intent: intents.Publish) -> None:
        said = [note.as_dict() for note in intent.notes if not isinstance(note, ReadingNote)]
        async with self._writing:
            await self._storage.put_gathered()
            feed = await assemble(
                self._storage,
                state=intent.state,
                is_walking=intent.is_walking,
                ending=intent.ending,
                missing=intent.missing,
                notes=said,
            )
        if feed is not None:
            if intent.state is not State.LOADING:
                reasons = (note.slug for note in intent.notes if note.partial)
                self._context.counts.published(str(feed.state), next(reasons, NONE))
            log.info(
                "feed.published",
                feed=feed.id,
                state=str(feed.state),
                documents=feed.documents,
                entries=feed.entries,
                notes=sorted({note.code for note in intent.notes}),
            )
