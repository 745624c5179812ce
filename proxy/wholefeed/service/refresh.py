"""One refresh of one feed.

    await Refresh(context, feed, RefreshRequest()).run()

A `Refresh` does what `wholefeed.core.refresh` decides, and nothing else: it carries out each intent and tells
the decision what came of it, until there is nothing left to do. Two things go on beside that line while a
walk runs: documents are fetched, several at once (`WalkFetches`), and what has arrived is published from time
to time, for readers that do not wait for the end. Who runs it stands in `wholefeed.service.running`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, assert_never
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from wholefeed.config.tables import Config
from wholefeed.core.jobs import Style
from wholefeed.core.model import State
from wholefeed.core.refresh import port
from wholefeed.core.refresh.collecting import AT_ONCE
from wholefeed.core.refresh.decision import Decision
from wholefeed.core.refresh.port import (
    Answered,
    ArchivedCopy,
    Arrived,
    CarriedOut,
    Clock,
    Event,
    Failed,
    Given,
    LedBack,
    Progress,
    RefreshRequest,
    Settings,
    SubscriptionCame,
    SubscriptionFailed,
    SubscriptionUnchanged,
    TimeOver,
)
from wholefeed.core.schedule import seconds_left
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.walk.ahead import next_urls
from wholefeed.core.walk.chain import WalkLimits
from wholefeed.counts import NONE, Counts
from wholefeed.errors import (
    DocumentError,
    OverloadedError,
    QueueFullError,
    StoreError,
    UnknownFeedError,
    WorkError,
)
from wholefeed.fetch.base import Fetched, Manner, Validators
from wholefeed.fetch.budget import Sizes
from wholefeed.fetch.guard import host_pattern, is_matched
from wholefeed.fetch.memento import Archive
from wholefeed.futures import cancelled, clear_tracebacks, retrieve_failure
from wholefeed.logs import get_logger
from wholefeed.service.documents import OfferedCopy, archived_copy, confirmed, fresh_document, reply_of
from wholefeed.service.memory import Beginnings, Published
from wholefeed.service.publishing import assemble
from wholefeed.service.sharing_port import Sharing
from wholefeed.service.sources import Obtained, Source, Subscription, failure_of, settle_subscription
from wholefeed.service.storing import FeedStorage
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import feeds

log = get_logger()

_MEANWHILE_SECONDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses between publications while a walk runs; the last one repeats."""
_LEAVING_SECONDS: Final = 1.0
"""For what was fetched to be stored when a refresh is broken off."""


class Refresh:
    """One refresh of one feed. `run` is called once; the attributes can be read meanwhile.

    Args:
        context: What all refreshes share.
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
        self._asking = _Asking(context.source, self._storage, found)
        self._fetches = WalkFetches(
            context.source,
            style=self._asking.style,
            identified=self._storage.identified,
            updated=self._storage.updated,
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
                if isinstance(intent, port.End):
                    await self._put_gathered()
                    await self._storage.flush()
                if isinstance(intent, port.Done):
                    return
                if isinstance(intent, port.GiveUp):
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

    async def _carry_out(self, intent: port.Task) -> Event:
        if isinstance(intent, port.Change):
            async with self._writing:
                return await self._storage.change(intent, self._fetches.take)
        if isinstance(intent, port.Remark):
            return self._storage.remark(intent)
        if isinstance(intent, port.Look):
            await self._put_gathered()
            return await self._storage.look(intent, self._fetches.obtained)
        if isinstance(intent, port.Fetching):
            if isinstance(intent, port.Wait):
                await self._gather()
            await self._storage.flush()  # others see what the publisher said while this one waits
            return await self._fetches.carry_out(intent)
        if isinstance(intent, port.AskSubscription):
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

    async def _do(self, intent: port.Deed) -> None:
        """Do something of which nothing is told but that it is done."""
        match intent:
            case port.PauseHost(url, until):
                self._context.pauses.pause(url, until, now=self._context.now())
            case port.BeginWalk():
                await self._begin_walk()
            case port.EndWalk():
                await self._end_walk(intent)
            case port.Rest():
                await asyncio.sleep(0)
            case port.Publish():
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
        self._context.counts.walks_begun += 1
        log.info("walk.started", feed=self._feed.id)
        task = asyncio.create_task(self._publish_meanwhile())
        task.add_done_callback(retrieve_failure)  # it is raised where the task is ended
        self._walk.push_async_callback(cancelled, task)

    async def _end_walk(self, intent: port.EndWalk) -> None:
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

    async def _publish(self, intent: port.Publish) -> None:
        said = [note.as_dict() for note in intent.notes if not note.kind.is_of_reading]
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


class _Asking:
    """The subscription document of one refresh: asked for, found just before, or stood in for.

    Args:
        source: Where documents come from.
        storage: Holds what came until it is stored.
        found: The subscription document, when it has just been fetched.
    """

    def __init__(self, source: Source, storage: FeedStorage, found: Subscription | None) -> None:
        self._source = source
        self._storage = storage
        self._found = found
        self._find_style: Callable[[], Style | None] = lambda: None
        self._style: Style | None = None
        self.error: DocumentError | None = None
        """Why there is none from the publisher."""

    def style(self) -> Style | None:
        """Return what the feed's segments are rendered for, where a subscription document has come."""
        if self._style is None:
            self._style = self._find_style()
        return self._style

    async def ask(self, intent: port.AskSubscription) -> Event:
        """Return what the decision is told of it."""
        found, self._found = self._found, None
        if found is not None and found.failure is not None:
            return await self._stand_in(found, found.failure)
        try:
            came = found or await self._fetched(intent)
        except DocumentError as exc:
            self.error = exc
            return SubscriptionFailed(failure=failure_of(exc))
        if isinstance(came, Fetched):
            return SubscriptionUnchanged(reply=reply_of(came))
        came = await self._storage.receive(came)
        self._find_style = came.obtained.style_of()
        fresh = fresh_document(came.document_url, came.obtained)
        return SubscriptionCame(
            url=came.url, reply=reply_of(came.obtained.fetched), fresh=fresh, notes=came.notes
        )

    async def _stand_in(self, found: Subscription, failure: DocumentError) -> SubscriptionFailed:
        """Take a web archive's copy, for the publisher has failed just now (R33)."""
        self.error = failure
        obtained = (await self._storage.receive(found)).obtained
        self._find_style = obtained.style_of()
        copy = archived_copy(found.document_url, obtained, is_subscription=True)
        return SubscriptionFailed(failure=failure_of(failure), copy=copy)

    async def _fetched(self, intent: port.AskSubscription) -> Subscription | Fetched:
        obtained = await self._source.obtain(intent.url, validators=_conditions(intent.stored))
        if isinstance(obtained, Fetched):
            obtained = await self._storage.updated(intent.stored, obtained)
            if obtained.not_modified:
                return obtained
            obtained = await self._source.read(obtained, None)
        if intent.searches:
            return await settle_subscription(self._source, intent.url, obtained)
        return Subscription(intent.url, obtained)


# The documents of its walk

Outcome = Obtained | Fetched | DocumentError


class WalkPath(Protocol):
    """What the decision of the refresh knows of the path of the walk (`wholefeed.core.refresh.decision`)."""

    def is_ahead(self, url: str) -> bool:
        """Whether the path has to come to a document yet; asked before each try."""

    def is_met(self, url: str) -> bool:
        """Whether the walk has the document of a URL, so that no redirect to it is followed."""

    def predicted(self, url: str, older: str) -> Iterable[port.Fetch]:
        """Take the older link in the head of a document that still arrives; return what can be begun."""


class WalkFetches:
    """The documents of a walk that are being fetched, and those that have come and wait to be kept.

    Tells of them in the order in which they come; which to fetch, and what becomes of them, is decided
    elsewhere (`wholefeed.core.refresh`). Ends with `stop`.

    Args:
        source: Where documents come from.
        style: Gives what the feed's segments are rendered for, where that is known.
        identified: Identifies the entries of a document that has come by what is known of the feed, and by
            the documents that have come before and wait to be kept.
        updated: Returns a stored document as a 304 makes it, where that is another one.
        enough: How many documents a publisher is asked for at once; behind as many no more is sought.
        counts: Told what came of looking ahead.
        may_ask: Raises `LeaseLostError` where another replica may be at the refresh; asked before each try.
    """

    def __init__(
        self,
        source: Source,
        *,
        style: Callable[[], Style | None],
        identified: Callable[[Obtained, Iterable[Obtained]], Awaitable[Obtained]],
        updated: Callable[[port.StoredDocument | None, Fetched], Awaitable[Fetched]],
        enough: int,
        counts: Counts,
        may_ask: Callable[[], None],
    ) -> None:
        self._source = source
        self.path: WalkPath | None = None
        """Where the walk goes, once that is being decided."""
        self._style = style
        self._identified = identified
        self._updated = updated
        self._enough = enough
        self._counts = counts
        self._may_ask = may_ask
        self._pending: dict[str, asyncio.Task[Outcome]] = {}
        self._obtained: dict[str, Obtained] = {}
        self._collected: set[str] = set()
        """What adapters ask for."""
        self._ahead: set[str] = set()
        """What was asked for before the path came to it, until it is known whether it does."""
        self._sizes = Sizes()
        self._deadline = 0.0

    async def carry_out(self, intent: port.Fetching) -> Event:
        match intent:
            case port.StartTimer(seconds):
                self._deadline = time.monotonic() + seconds
            case port.Fetch():
                self._begin(intent)
            case port.Wait():
                return await self._wait()
            case port.Drop(url):
                del self._obtained[url]
                self._settle(url, is_hit=False)
            case port.StopFetching():
                await self.stop()
            case _:
                assert_never(intent)
        return CarriedOut()

    def obtained(self, url: str) -> Obtained | None:
        """Return a document that has come and waits to be kept."""
        return self._obtained.get(url)

    async def has_come(self, within_seconds: float) -> bool:
        """Whether there is something to be told at once, or will be within so many seconds."""
        if within_seconds > 0 and self._pending and not any(task.done() for task in self._pending.values()):
            await asyncio.wait(
                self._pending.values(), timeout=within_seconds, return_when=asyncio.FIRST_COMPLETED
            )
        return any(task.done() for task in self._pending.values())

    def take(self, url: str) -> Obtained:
        """Hand over a document that has come: it is to be stored."""
        self._settle(url, is_hit=True)
        return self._obtained.pop(url)

    def offer(self, url: str, obtained: Obtained) -> None:
        """Take in what was fetched elsewhere: it waits to be kept."""
        self._obtained[url] = obtained

    async def stop(self) -> None:
        """Cancel what was fetched ahead and is not needed."""
        if not (self._pending or self._ahead):
            return
        tasks = list(self._pending.values())
        self._pending.clear()
        self._counts.look_ahead["miss"] += len(self._ahead)
        self._ahead.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, intent: port.Fetch) -> None:
        if intent.is_collected:
            self._collected.add(intent.url)
        elif self._is_ahead(intent.url):
            self._ahead.add(intent.url)
        self._pending[intent.url] = asyncio.create_task(self._fetch(intent))

    async def _fetch(self, intent: port.Fetch) -> Outcome:
        validators = _conditions(intent.stored)
        while True:
            self._may_ask()
            try:
                if intent.is_collected:
                    return await self._asked_plainly(intent)
                obtained = await self._source.obtain(
                    intent.url,
                    validators=validators,
                    on_older=lambda older: self._predict(intent.url, older),
                    is_foreseen=lambda: self._is_foreseen(intent.url),
                    relation=intent.relation,
                    is_ahead=lambda: self._is_ahead(intent.url),
                    sizes=self._sizes,
                    is_met=self._is_met,
                    style=self._style(),
                )
                if isinstance(obtained, Fetched):
                    obtained = await self._updated(intent.stored, obtained)
                    if not obtained.not_modified:
                        return await self._source.read(obtained, self._style())
                return obtained
            except QueueFullError as exc:  # a walk has time
                await asyncio.sleep(exc.retry_after_seconds or 0.0)
            except DocumentError as exc:
                clear_tracebacks(exc)
                return exc.with_traceback(None)

    async def _asked_plainly(self, intent: port.Fetch) -> Obtained | Fetched:
        """Ask as adapters do: without conditions, for one pair of validators may stand for many pages."""
        style = self._style()
        return await self._source.obtain(
            intent.url,
            is_met=self._is_met,
            style=None if style is None else style._replace(lists_members=True),
            manner=Manner(is_head=intent.is_head, at_most=AT_ONCE),
        )

    def _is_foreseen(self, url: str) -> bool:
        """Whether a document links to what is fetched without that: enough are, and their URLs count on.

        Where that is wrong, the document that the walk has come to tells it: its head is read in any case.
        """
        if len(self._pending) < self._enough or not self._is_ahead(url):
            return False
        return bool(next_urls(list(self._pending)[-3:], 1))

    def _predict(self, url: str, older: str) -> None:
        """Begin to fetch what the head of a document that still arrives links to."""
        assert self.path is not None, "nothing is fetched before"
        for intent in self.path.predicted(url, older):
            self._begin(intent)

    def _is_ahead(self, url: str) -> bool:
        return self.path is None or self.path.is_ahead(url)

    def _is_met(self, url: str) -> bool:
        return self.path is not None and self.path.is_met(url)

    async def _wait(self) -> Event:
        left_seconds = max(0.0, self._deadline - time.monotonic())
        await asyncio.wait(self._pending.values(), timeout=left_seconds, return_when=asyncio.FIRST_COMPLETED)
        url = next((url for url, task in self._pending.items() if task.done()), None)
        if url is None:
            return TimeOver()
        outcome = self._pending.pop(url).result()
        if isinstance(outcome, Obtained):
            obtained = await self._identified(outcome, self._obtained.values())
            self._obtained[url] = obtained
            return Arrived(url, fresh_document(url, obtained, is_collected=url in self._collected))
        self._settle(url, is_hit=isinstance(outcome, Fetched) and outcome.not_modified)
        if isinstance(outcome, Fetched):
            if outcome.is_met:
                return LedBack(url, outcome.final_url)
            return confirmed(url, outcome) if outcome.not_modified else Answered(url, outcome.headers)
        return Failed(url, failure_of(outcome))

    def _settle(self, url: str, *, is_hit: bool) -> None:
        """Count what was asked for ahead, once it is known whether the walk needs it."""
        if url in self._ahead:
            self._ahead.remove(url)
            self._counts.look_ahead["hit" if is_hit else "miss"] += 1


def _conditions(stored: port.StoredDocument | None) -> Validators | None:
    if stored is None:
        return None
    return Validators(etag=stored.etag, last_modified=stored.last_modified, url=stored.final_url)


# What all refreshes of a service share

MAX_HOSTS: Final = 4096
"""So many are remembered, those that were paused last."""


class HostPauses:
    """Hosts that have asked not to be asked for pages that they do not link (rule R32).

    What is forgotten with it is known of each feed all the same.
    """

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, float]] = {}
        """When that was noted, and until when they are left in peace."""

    def pause(self, url: str, until: float, *, now: float) -> None:
        """Leave the host of a URL in peace until then, epoch seconds."""
        host = urlsplit(url).hostname or ""
        self._until.pop(host, None)
        if len(self._until) >= MAX_HOSTS:
            del self._until[next(iter(self._until))]
        self._until[host] = now, until

    def lasts(self, url: str, *, now: float) -> bool:
        """Whether the host of a URL is left in peace still."""
        noted_at, until = self._until.get(urlsplit(url).hostname or "", (None, None))
        return seconds_left(noted_at, until, now=now, longest_seconds=DAY_SECONDS) > 0


class WalkTurns:
    """Whose walk may use the network: so many at once in all, and at one site (`wholefeed.fetch.base`).

    A walk can last as long as `limits.walk_seconds`, and its publisher decides how long it does. Without a
    bound for each site, one slow publisher of many feeds would keep all others waiting.

        turns = WalkTurns(in_all=16, per_site=8)
        async with turns.turn("example.org"):
            ...
    """

    def __init__(self, *, in_all: int, per_site: int) -> None:
        self._in_all = asyncio.Semaphore(in_all)
        self._per_site = per_site
        self._sites: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """Of the sites that walk or wait."""

    def __len__(self) -> int:
        """Return how many sites walk or wait."""
        return len(self._sites)

    @asynccontextmanager
    async def turn(self, site: str) -> AsyncIterator[None]:
        """Hold a turn, first come first served; who waits for a turn at a site holds none in all."""
        own = self._sites.get(site)
        if own is None:
            own = self._sites[site] = asyncio.Semaphore(self._per_site)
        async with own, self._in_all:
            yield


_PARSED_SHARE: Final = 8
"""This part of the memory is for documents that are parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshContext:
    """What every refresh of a service works with: the parts below the service, put together once."""

    store: Store
    source: Source
    config: Config
    site_of: Callable[[str], str]
    now: Callable[[], float]
    """Epoch seconds."""
    walks: WalkTurns
    """Of walks that use the network."""
    pauses: HostPauses = field(default_factory=HostPauses)
    """Of hosts that adapters leave in peace."""
    counts: Counts = field(default_factory=Counts)
    sharing: Sharing = field(default_factory=Sharing)
    """Who else works on the store, and at what."""
    archive: Archive | None = None
    """The web archive that is asked for what publishers do not give (R33); None: none is."""
    longest_seconds: float = field(init=False)
    """How long a publisher is left alone at most, whatever the clock says (docs/faults.md row 73)."""
    settings: Settings = field(init=False)
    """What the configuration says about refreshes."""
    published: Published = field(init=False)
    """What is held of feeds, for their answers."""
    beginnings: Beginnings = field(init=False)
    """What is held of them for their refreshes."""

    def __post_init__(self) -> None:
        longest_seconds = max(self.config.freshness.maximum_seconds, DAY_SECONDS)
        object.__setattr__(self, "longest_seconds", longest_seconds)
        object.__setattr__(self, "settings", self._settings())
        max_bytes = self.config.store.memory_bytes
        parsed_bytes = max_bytes // _PARSED_SHARE
        object.__setattr__(self, "published", Published(max_bytes - parsed_bytes))
        object.__setattr__(self, "beginnings", Beginnings(self.published, parsed_bytes))

    def fresh_seconds_left(self, feed: FeedRow, now: float) -> float:
        """Return for how long a feed needs no look at its publisher; 0: it is due."""
        return seconds_left(feed.noted_at, feed.fresh_until, now, self.longest_seconds)

    def paused_until(self, url: str) -> float | None:
        """Return until when nothing is asked of a URL's host, epoch seconds; None where it may be asked."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        seconds = self.source.blocked_seconds(parts.hostname or "", port)
        return self.now() + seconds if seconds else None

    def _settings(self) -> Settings:
        config = self.config
        return Settings(
            minimum_fresh_seconds=config.freshness.minimum_seconds,
            default_fresh_seconds=config.freshness.default_seconds,
            maximum_fresh_seconds=config.freshness.maximum_seconds,
            retry_missing_seconds=config.freshness.retry_missing_seconds,
            follows_pages=config.history.paged,
            remembers=config.history.remember,
            looks_ahead=config.history.look_ahead,
            window=config.fetch.concurrency_per_host,
            walk_seconds=config.limits.walk_seconds,
            may_collect=self._may_collect,
            is_collect_paused=lambda url: self.pauses.lasts(url, now=self.now()),
            limits=WalkLimits(
                documents=config.limits.documents_per_feed,
                bytes=config.limits.feed_bytes,
                entries=config.limits.entries_per_feed,
            ),
        )

    def _may_collect(self, url: str) -> bool:
        history = self.config.history
        if history.collect == "off" or not history.collect_deny_hosts:
            return history.collect != "off"
        host = urlsplit(url).hostname or ""
        return not any(is_matched(host, host_pattern(each)) for each in history.collect_deny_hosts)
