"""One refresh of one feed.

    await Refresh(context, feed, RefreshRequest()).run()

`wholefeed.core.refresh` decides, a `Refresh` does (`RefreshIO`). Two things go on beside that line while a
walk runs: documents are fetched, several at once, and what has come is published from time to time, for
readers that do not wait for the end. Who runs it stands in `wholefeed.service.running`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from http import HTTPStatus
from typing import Final, NamedTuple

from wholefeed.core.adapters.base import There
from wholefeed.core.facts import DocumentFacts
from wholefeed.core.jobs import Style
from wholefeed.core.links import updated_links
from wholefeed.core.model import IMPORT_URL, LIST_URL, EntryId, Kind, Role, State
from wholefeed.core.notes import KINDS, Ending, HeadCut, IdsChanged, IdsUnstable, Note
from wholefeed.core.refresh.accounting import Departure
from wholefeed.core.refresh.collecting import AT_ONCE
from wholefeed.core.refresh.decision import Decision
from wholefeed.core.refresh.port import (
    Answer,
    ArchivedCopy,
    Attempt,
    Basis,
    FreshDocument,
    KnownEntries,
    LedBack,
    Placement,
    Progress,
    RefreshRequest,
    Reply,
    ReplyFacts,
    StoredDocument,
    SubscriptionCame,
    SubscriptionFailed,
    SubscriptionPlacement,
    Unchanged,
    subscription_of,
)
from wholefeed.core.schedule import is_uncacheable, sound_validators
from wholefeed.core.walk.chain import Arrival
from wholefeed.counts import NONE
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
from wholefeed.futures import cancelled, clear_tracebacks, retrieve_failure
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.documents import new_document
from wholefeed.service.listed import parted
from wholefeed.service.publishing import assemble
from wholefeed.service.results import UnderWay
from wholefeed.service.sources import (
    EarlyReader,
    FoundSubscription,
    Obtained,
    as_failure,
    follow_to_subscription,
)
from wholefeed.service.storing import FeedStorage
from wholefeed.store.rows import DocumentChanges, DocumentRow, FeedChanges, FeedRow, NewDocument, NoteDict
from wholefeed.store.tables import documents, failures, feeds, live
from wholefeed.store.tables.documents import remove

log = get_logger()

_MEANWHILE_SECONDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses between publications while a walk runs; the last one repeats."""
_LEAVING_SECONDS: Final = 1.0
"""For what was fetched to be stored when a refresh is broken off."""


class OfferedCopy(NamedTuple):
    """What a web archive has of a document that its publisher does not give, or what is added (I1, H7)."""

    url: str
    """Of the document; of one that is added its own."""
    obtained: Obtained
    is_subscription: bool
    """Whether it is of the subscription document."""

    @property
    def is_added(self) -> bool:
        """Whether it is no document of the feed itself (I1, H7)."""
        return self.url.startswith((IMPORT_URL, LIST_URL))


class Refresh:
    """One refresh of one feed, and all that is done for it.

    The methods from `ask_subscription` on are `RefreshIO`. `run` is called once; the attributes can be read
    meanwhile. `found` is the subscription document, when it has just been fetched, `copies` are a web
    archive's of documents that are missing.
    """

    def __init__(
        self,
        context: RefreshContext,
        feed: FeedRow,
        request: RefreshRequest,
        found: FoundSubscription | None = None,
        copies: Sequence[OfferedCopy] = (),
    ) -> None:
        self._context = context
        self._feed = feed
        self._request = request
        self._is_new = found is not None and feed.is_untouched  # as its opening has made it
        self._copies = copies
        self._decision: Decision | None = None
        # the subscription document: found before, until it is asked for; then until it is stored
        self._subscription = found
        self._asked_about: StoredDocument | None = None  # what is stored of it
        self._find_style: Callable[[], Style | None] = lambda: None  # what segments are rendered for
        # what is stored
        self._storage = FeedStorage(
            context.store,
            context.source.work,
            feed.id,
            now=context.now,
            fence=context.sharing.fence(feed.id),
            memory=context.memory,
        )
        self._lock = asyncio.Lock()  # held while documents change, and while they must not
        self._gathered = Gathered()  # to be put together with what comes soon
        # the walk
        self._walk: AsyncExitStack | None = None  # the turn to use the network, the publications meanwhile
        self._walk_began = 0.0
        self._deadline = 0.0
        self._pending: dict[str, asyncio.Task[Obtained | Answer]] = {}
        self._come: dict[str, Obtained] = {}  # until it is put or dropped
        self._collected: set[str] = set()  # what adapters ask for
        self._ahead: set[str] = set()
        """What was asked for before the path came to it, until it is known whether it does."""
        self._sizes = Sizes()
        self.site = context.site_of(feed.fetch_url)
        self.is_waiting = False
        """Whether the walk of a feed that somebody asked for waits for its turn to use the network."""

    @property
    def decision(self) -> Decision:
        """What decides, while it does."""
        assert self._decision is not None, "it is asked by what it has begun"
        return self._decision

    @property
    def under_way(self) -> UnderWay:
        """How far it is, by what is stored."""
        decision = self._decision
        if decision is None or not self._walk_began:
            return UnderWay(is_confirmed=decision is not None and decision.is_confirmed)
        progress = self._gathered.left_out_of(decision.progress)
        return UnderWay(
            is_confirmed=decision.is_confirmed,
            is_walking=True,
            documents=progress.documents,
            entries=progress.entries,
            fetched=progress.fetched,
            left=progress.left,
            seconds=time.monotonic() - self._walk_began,
        )

    async def run(self) -> None:
        """Bring the feed up to date.

        Raises:
            DocumentError: The subscription document could not be had; what is stored serves as stale.
            StoreError: What was fetched cannot be kept.
            WorkError: It cannot be rendered.
        """
        basis, rows = await self._start()
        self._decision = Decision(basis, rows)
        try:
            failed = await self._decision.run()
            await self._put_gathered()
            await self._storage.flush()
            if failed is not None:
                raise failed.error
        except Exception:  # what the publisher said counts all the same: it is not asked again for nothing
            with suppress(StoreError, OverloadedError):
                await self._storage.flush()
            raise
        except asyncio.CancelledError:
            with suppress(StoreError, OverloadedError, TimeoutError):
                async with asyncio.timeout(_LEAVING_SECONDS):
                    await self._storage.wait_for_writes()
            raise
        finally:
            await self._leave()

    async def _start(self) -> tuple[Basis, Sequence[DocumentRow]]:
        context = self._context
        rows, (missing, failure) = await self._storage.start(is_new=self._is_new)
        offered = [(copy.is_added, await self._offered(copy)) for copy in self._copies]
        basis = Basis(
            io=self,
            feed=self._feed,
            missing={attempt.url: attempt for attempt in missing},
            failure=failure,
            settings=context.settings,
            request=self._request,
            site_of=context.site_of,
            now=context.now,
            copies=tuple(copy for is_added, copy in offered if not is_added),
            added=tuple(copy for is_added, copy in offered if is_added),
        )
        return basis, rows

    async def _offered(self, copy: OfferedCopy) -> ArchivedCopy:
        obtained = await self._identified(copy.obtained)
        archived = _archived_copy(copy.url, obtained, is_subscription=copy.is_subscription)
        self._come[archived.copy_url] = obtained
        return archived

    async def _leave(self) -> None:
        """Keep what has come, if that is a matter of a moment, and end what goes on beside."""
        try:
            if self._gathered:
                with suppress(StoreError, OverloadedError, UnknownFeedError, TimeoutError):
                    async with asyncio.timeout(_LEAVING_SECONDS):
                        await self._put_gathered()
            await self.stop_fetching()
        finally:  # the turn is held as long as anything is fetched
            if self._walk is not None:
                await self._walk.aclose()
            self._decision = None  # which has this: they would keep one another

    # The subscription document

    async def ask_subscription(
        self, url: str, stored: StoredDocument | None, *, is_whole: bool = False, searches: bool = False
    ) -> SubscriptionCame | Reply | SubscriptionFailed:
        found, self._subscription = self._subscription, None
        self._asked_about = stored
        if found is not None and found.failure is not None:  # a web archive's copy stands in (R33)
            error = found.failure
            found = await self._receive(found)
            copy = _archived_copy(found.obtained.fetched.url, found.obtained, is_subscription=True)
            return SubscriptionFailed(as_failure(error), error, copy)
        try:
            conditions = None if is_whole else self._conditions(stored)
            came = found or await self._fetched_subscription(url, stored, conditions, searches=searches)
        except DocumentError as exc:
            return SubscriptionFailed(as_failure(exc), exc)
        if isinstance(came, Fetched):
            self._note_validators(came)
            return _reply_of(came)
        came = await self._receive(came)
        fresh = _fresh_document(came.obtained.fetched.url, came.obtained)
        reply = _reply_of(came.obtained.fetched)
        return SubscriptionCame(url=came.url, reply=reply, fresh=fresh, notes=came.notes)

    async def _fetched_subscription(
        self, url: str, stored: StoredDocument | None, conditions: Validators | None, *, searches: bool
    ) -> FoundSubscription | Fetched:
        source = self._context.source
        manner = Manner(feed_url=self._feed.url)
        came = await source.obtain(url, validators=conditions, manner=manner)
        obtained = await self._with_links_of_304(stored, came, None)
        if isinstance(obtained, Fetched):
            return obtained
        if searches:
            return await follow_to_subscription(source, url, obtained, feed_url=self._feed.url)
        return FoundSubscription(url, obtained)

    async def _with_links_of_304(
        self, stored: StoredDocument | None, came: Obtained | Fetched, style: Style | None
    ) -> Obtained | Fetched:
        """Return what came; of a 304 whose Link fields lead elsewhere, the stored document with these.

        RFC 9111, sections 3.2 and 4.3.4: what they say takes the place of what it came with.
        """
        if isinstance(came, Obtained) or stored is None or not came.not_modified or came.is_met:
            return came
        links = updated_links(came.links, came.final_url, stored.links)
        if links is None:
            return came
        media_type, body = await self._storage.read(
            lambda db: (documents.read_media_type(db, stored.id), documents.read_body(db, stored.id))
        )
        kept = {"etag": stored.etag, "last-modified": stored.last_modified, "content-length": str(len(body))}
        if stored.is_uncacheable and stored.role is not Role.SUBSCRIPTION:
            kept["cache-control"] = "no-cache"
        headers = {name: value for name, value in kept.items() if value is not None} | dict(came.headers)
        whole = replace(
            came, not_modified=False, body=body, media_type=media_type, headers=headers, links=links
        )
        return await self._context.source.read(whole, style)

    async def _receive(self, found: FoundSubscription) -> FoundSubscription:
        """Hold the subscription document until it is stored; return it as it counts here."""
        obtained = await self._identified(found.obtained)
        self._find_style = cache(obtained.style_of())
        self._subscription = found if obtained is found.obtained else replace(found, obtained=obtained)
        return self._subscription

    async def store_subscription(self, placement: SubscriptionPlacement) -> None:
        found, self._subscription = self._subscription, None
        assert found is not None, "it has come"
        async with self._changing():
            await self._storage.put_subscription(found.obtained, placement)

    def note_reply(self, reply: ReplyFacts) -> None:
        found, self._subscription = self._subscription, None
        if found is not None:  # what has not changed is not stored again
            self._note_validators(found.obtained.fetched)
        self._storage.note_reply(reply)

    def _conditions(self, stored: StoredDocument | None) -> Validators | None:
        """Return what a stored document is asked about with; validators may be of an earlier version."""
        if stored is None:
            return None
        date = max(stored.checked_at, self._context.now())
        etag, last_modified = sound_validators(stored.etag, stored.last_modified, date=date)
        return Validators(etag=etag, last_modified=last_modified, url=stored.final_url)

    def _note_validators(self, fetched: Fetched) -> None:
        """Take what the publisher names the document by now, though it is the same (RFC 9111, 4.3.4)."""
        stored = self._asked_about
        if stored is None or fetched.is_met:
            return
        etag, last_modified = fetched.validators
        if fetched.not_modified:  # what it does not say stays
            before = stored.validators
            etag, last_modified = etag or before.etag, last_modified or before.last_modified
        if (etag, last_modified) != stored.validators:
            self._storage.touch(stored.id, {"etag": etag or None, "last_modified": last_modified or None})

    def note_failure(self, failure: Attempt | None, fresh_until: float) -> None:
        changes: FeedChanges = {
            "is_stale": True,
            "failed_at": self._context.now(),
            "fresh_until": fresh_until,
        }
        if failure is None:
            self._storage.write_later(feeds.update, changes)
        else:
            self._storage.write_later(failures.note_refetch, failure, changes)

    # What is stored

    async def reread(self) -> bool:
        return await self._storage.reread()

    async def settle_ids(self) -> bool:
        async with self._changing():
            return await self._storage.settle_ids(joins=self._request.is_full)

    async def documents(self) -> Sequence[StoredDocument]:
        await self._put_gathered()
        return await self._storage.documents()

    async def entries(self, document: int) -> Sequence[tuple[EntryId, float | None]]:
        await self._put_gathered()
        return await self._storage.read(partial(documents.dated_entries, document=document))

    async def known(
        self, url: str, arrival: Arrival, *, with_copies: bool = False, with_pages: bool = False
    ) -> KnownEntries:
        await self._put_gathered()
        come = self._come.get(url)
        waiting = None if come is None else come.read.facts
        asked = tuple(identity for identity, _ in arrival.keys or ())
        return await self._storage.known(asked, waiting, with_copies=with_copies, with_pages=with_pages)

    async def departure(self, document: int, url: str, arrival: Arrival, waiting: Sequence[int]) -> Departure:
        await self._put_gathered()
        asked = tuple(identity for identity, _ in arrival.keys or ())
        return await self._storage.departure(document, asked, self._come[url].read.facts, waiting)

    async def doubtful(self) -> frozenset[EntryId]:
        return await self._storage.read(partial(live.doubtful, feed=self._feed.id))

    async def settle_doubtful(self) -> None:
        async with self._changing():
            await self._storage.write(live.settle_doubtful)

    async def put_together(self, placements: Mapping[str, Placement]) -> Sequence[int]:
        puts = []
        for url, placement in placements.items():
            self._count_ahead(url, is_hit=True)
            puts.append(new_document(self._come.pop(url), placement))
        async with self._changing():
            return await self._storage.put(puts)

    async def put(self, url: str, placement: Placement) -> int:
        self._count_ahead(url, is_hit=True)
        obtained = self._come.pop(url)
        document = new_document(obtained, placement)
        if placement.may_wait:
            return self._gathered.add(document, obtained.read.facts)
        async with self._changing():
            if placement.remembers is not None:
                return await self._storage.put_remembering(document, obtained, placement.remembers)
            return (await self._storage.put([document]))[0]

    def drop(self, url: str) -> None:
        del self._come[url]
        self._count_ahead(url, is_hit=False)

    def touch(
        self,
        document: int,
        *,
        is_settled: bool | None = None,
        is_uncacheable: bool | None = None,
        found_in: int | None = None,
    ) -> None:
        changes: DocumentChanges = {"checked_at": self._context.now()}
        if is_settled is not None:
            changes["is_settled"] = is_settled
        if is_uncacheable is not None:
            changes["is_uncacheable"] = is_uncacheable
        if found_in is not None:
            changes["found_in"] = found_in
        self._storage.touch(document, changes)

    async def attach(self, ranks: Mapping[int, int]) -> None:
        async with self._changing():
            number = self._gathered.number
            await self._arrange({number(document): rank for document, rank in ranks.items()})

    async def detach(self, documents: Sequence[int], *, is_withdrawn: bool) -> None:
        async with self._changing():
            leaving = [self._gathered.number(document) for document in documents]
            await self._arrange({}, leaving, is_withdrawn=is_withdrawn)

    async def _arrange(
        self, ranks: Mapping[int, int], detached: Sequence[int] = (), *, is_withdrawn: bool = False
    ) -> None:
        now = self._context.now()
        await self._storage.write(documents.arrange, ranks, detached, now, is_withdrawn=is_withdrawn)

    async def remove(self, documents: Sequence[int]) -> None:
        async with self._changing():
            await self._storage.write(remove, documents, self._context.now())

    async def forget(self, entries: Sequence[EntryId]) -> None:
        async with self._changing():
            await self._storage.write(live.forget, entries, self._context.now())

    async def set_kind(self, kind: Kind) -> None:
        async with self._changing():
            await self._storage.write(feeds.update, {"kind": kind})

    def note_collection(self, collection: str) -> None:
        self._storage.write_later(feeds.update, {"collection": collection})

    def note_listing(self, listing: str, at: float | None) -> None:
        self._storage.write_later(feeds.update, {"listing": listing, "list_at": at})
        self._context.has_planned_look |= at is not None

    def note_shifts(self, shifts: str) -> None:
        self._storage.write_later(feeds.update, {"shifts": shifts})

    async def unlist(self) -> None:
        async with self._changing():
            rows = await self._storage.documents()
            own = subscription_of(rows)
            lists = [row for row in rows if row.is_listed]
            if own is None or not lists:
                return
            puts = await parted(self._context.source, self._storage, own, lists)
            if puts:
                await self._storage.put(puts)

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[None]:
        """Change documents: nobody else does meanwhile, and what has waited is stored before."""
        async with self._lock:
            await self._gathered.put(self._storage)
            yield

    async def _put_gathered(self) -> None:
        if self._gathered:
            async with self._lock:
                await self._gathered.put(self._storage)

    async def _identified(self, obtained: Obtained, beside: Iterable[Obtained] = ()) -> Obtained:
        """Return a document that has come, identified also by others that have and are not handed over."""
        others = [*(each.read.facts for each in beside), *self._gathered.facts]
        return await self._storage.identified(obtained, others)

    # The walk

    async def begin_walk(self) -> None:
        if self._walk_began:
            return
        self.is_waiting = not self._request.is_polled
        await self._storage.flush()
        self._walk = AsyncExitStack()
        try:
            await self._walk.enter_async_context(self._context.walks.turn(self.site))
        finally:
            self.is_waiting = False
        began = time.monotonic()
        await self._storage.write(feeds.begin_walk, self._context.now())
        self._walk_began = began
        self._context.counts.walks_begun += 1
        log.info("walk.started", feed=self._feed.id)
        task = asyncio.create_task(self._publish_meanwhile())
        task.add_done_callback(retrieve_failure)  # it is raised where the task is ended
        self._walk.push_async_callback(cancelled, task)

    def start_timer(self) -> None:
        self._deadline = time.monotonic() + self._context.settings.walk_seconds

    def fetch(self, url: str, stored: StoredDocument | None, relation: str) -> None:
        if self.decision.is_ahead(url):
            self._ahead.add(url)
        self._begin(url, partial(self._obtain, url, stored, relation))

    def fetch_page(self, url: str, *, is_head: bool, expected: frozenset[int]) -> None:
        self._collected.add(url)
        manner = Manner(is_head=is_head, at_most=AT_ONCE, expected=expected, feed_url=self._feed.url)
        self._begin(url, partial(self._obtain_page, url, manner))

    def _begin(self, url: str, obtain: Callable[[], Awaitable[Obtained | Fetched]]) -> None:
        self._pending[url] = asyncio.create_task(self._tried(obtain))

    async def _tried(self, obtain: Callable[[], Awaitable[Obtained | Fetched]]) -> Obtained | Answer:
        while True:
            self._context.sharing.require()
            try:
                came = await obtain()
                return came if isinstance(came, Obtained) else _answer_of(came)
            except QueueFullError as exc:  # a walk has time
                await asyncio.sleep(exc.retry_after_seconds or 0.0)
            except DocumentError as exc:
                clear_tracebacks(exc)
                return as_failure(exc)

    async def _obtain(self, url: str, stored: StoredDocument | None, relation: str) -> Obtained | Fetched:
        decision = self.decision
        early = EarlyReader(
            on_older=lambda older: decision.predicted(url, older),
            is_foreseen=lambda: decision.is_foreseen(url, list(self._pending)),
            relation=relation,
        )
        came = await self._context.source.obtain(
            url,
            validators=self._conditions(stored),
            early=early,
            is_ahead=lambda: decision.is_ahead(url),
            sizes=self._sizes,
            is_met=decision.is_met,
            style=self._find_style(),
            manner=Manner(feed_url=self._feed.url),
        )
        return await self._with_links_of_304(stored, came, self._find_style())

    async def _obtain_page(self, url: str, manner: Manner) -> Obtained | Fetched:
        """Ask as adapters do: without conditions, for one pair of validators may stand for many pages."""
        style = self._find_style()
        return await self._context.source.obtain(
            url,
            is_met=self.decision.is_met,
            style=None if style is None else style._replace(lists_members=True),
            manner=manner,
        )

    async def wait(self) -> tuple[str, Answer] | None:
        await self._gather()
        await self._storage.flush()  # others see what the publisher said while this one waits
        left_seconds = max(0.0, self._deadline - time.monotonic())
        await asyncio.wait(self._pending.values(), timeout=left_seconds, return_when=asyncio.FIRST_COMPLETED)
        url = next((url for url, task in self._pending.items() if task.done()), None)
        if url is None:
            return None
        came = self._pending.pop(url).result()
        if isinstance(came, Obtained):
            obtained = self._come[url] = await self._identified(came, self._come.values())
            return url, _fresh_document(url, obtained, is_collected=url in self._collected)
        self._count_ahead(url, is_hit=isinstance(came, Unchanged | LedBack))
        return url, came

    async def _gather(self) -> None:
        """Let what is to be put wait a moment for more, if all else waits as well."""
        if not self._gathered.are_waiting:
            return
        left_seconds, pending = self._gathered.left_seconds, self._pending.values()
        if left_seconds and pending and not any(task.done() for task in pending):
            await asyncio.wait(pending, timeout=left_seconds, return_when=asyncio.FIRST_COMPLETED)
        if not (left_seconds and any(task.done() for task in pending)):
            await self._put_gathered()

    def _count_ahead(self, url: str, *, is_hit: bool) -> None:
        """Count what was asked for ahead, once it is known whether the walk needs it."""
        if url in self._ahead:
            self._ahead.remove(url)
            self._context.counts.look_ahead["hit" if is_hit else "miss"] += 1

    async def stop_fetching(self) -> None:
        if not (self._pending or self._ahead):
            return
        tasks = list(self._pending.values())
        self._pending.clear()
        self._context.counts.look_ahead["miss"] += len(self._ahead)
        self._ahead.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    async def rest(self) -> None:
        await asyncio.sleep(0)

    def pause_host(self, url: str, until: float) -> None:
        self._context.pauses.pause(url, until, now=self._context.now())

    async def end_walk(self, ending: str, documents: int) -> None:
        await self._put_gathered()  # nor is a publication that puts some ended before their numbers are known
        if self._walk is not None:
            await self._walk.aclose()
        took_seconds = time.monotonic() - self._walk_began if self._walk_began else 0.0
        self._context.counts.walk_ended(ending, took_seconds)
        log.info(
            "walk.ended",
            feed=self._feed.id,
            ending=ending,
            documents=documents,
            fetched=self.decision.progress.fetched,
            duration_s=round(took_seconds, 3),
        )

    # Readers

    async def _publish_meanwhile(self) -> None:
        """Publish what has come from time to time, for readers that do not wait for the end.

        And when so much is in memory that some would have to be read again for it. What cannot be done now
        may be done at the next time, or at the end.
        """
        pauses = iter(_MEANWHILE_SECONDS)
        while True:
            await self._storage.fresh.grown(next(pauses, _MEANWHILE_SECONDS[-1]))
            try:
                await self.publish(state=State.LOADING, notes=self.decision.notes, is_walking=True)
            except (StoreError, OverloadedError, WorkError) as exc:
                log.warning("feed.unpublished", feed=self._feed.id, slug=exc.slug)

    async def publish(
        self,
        *,
        state: State,
        notes: Sequence[Note] | None,
        ending: Ending | None = None,
        missing: Sequence[Attempt] | None = None,
        is_walking: bool = False,
    ) -> None:
        """As `RefreshIO` has it; `is_walking`: the walk goes on, and may still add documents."""
        stays, notes = notes is None, notes or ()
        said = [note.as_dict() for note in notes if not note.kind.is_of_reading]
        async with self._changing():
            feed = await assemble(
                self._storage,
                state=state,
                is_walking=is_walking,
                ending=ending,
                missing=missing,
                notes=_notes_of(self._feed) if stays else said,
            )
        if feed is not None:
            if state is not State.LOADING:
                reasons = (note.slug for note in notes if note.partial)
                self._context.counts.published(str(feed.state), next(reasons, NONE))
            log.info(
                "feed.published",
                feed=feed.id,
                state=str(feed.state),
                documents=feed.documents,
                entries=feed.entries,
                notes=sorted({note.code for note in notes}),
            )


def _notes_of(feed: FeedRow) -> list[NoteDict]:
    """Return the notes that a feed was published with, but those that each publication makes anew."""
    notes: list[NoteDict] = json.loads(feed.notes)
    anew = {HeadCut.code, IdsChanged.code, IdsUnstable.code}
    return [each for each in notes if not (KINDS[each["code"]].is_of_reading or each["code"] in anew)]


# What a decision is told of what came


def _fresh_document(url: str, obtained: Obtained, *, is_collected: bool = False) -> FreshDocument:
    """Describe a document that was asked for by a URL; `is_collected`: by an adapter."""
    navigation = obtained.read.navigation
    return FreshDocument(
        arrival=_arrival_of(url, obtained),
        kind=navigation.kind,
        older_relation=navigation.older_relation,
        is_tentative=navigation.is_tentative,
        updated_at=obtained.read.facts.updated_at,
        marks=obtained.read.marks,
        order=tuple(entry.order_at for entry in obtained.read.facts.entries) if is_collected else (),
        validators=obtained.fetched.validators,
        fullness=obtained.read.facts.entries.fullness,
        reading_notes=obtained.read.facts.notes,
        link_notes=navigation.notes,
    )


def _arrival_of(url: str, obtained: Obtained) -> Arrival:
    fetched, read, facts = obtained.fetched, obtained.read, obtained.read.facts
    return Arrival(
        url=url,
        final_url=fetched.final_url,
        hops=fetched.hops,
        family=facts.family,
        site_id=facts.site_id,
        links=read.navigation.links,
        digest=read.digest,
        body_bytes=len(fetched.body),
        entries=len(facts.entries),
        keys=facts.entries.dated_identities,
        span=read.span,
    )


def _archived_copy(url: str, obtained: Obtained, *, is_subscription: bool) -> ArchivedCopy:
    return ArchivedCopy(
        url=url,
        copy_url=url if url.startswith((IMPORT_URL, LIST_URL)) else obtained.memento,
        captured_at=obtained.fetched.fetched_at,
        fresh=_fresh_document(url, obtained),
        is_subscription=is_subscription,
    )


def _reply_of(fetched: Fetched) -> Reply:
    return Reply(
        url=fetched.url,
        permanent_url=fetched.permanent_url,
        headers=fetched.headers,
        is_update=fetched.status == HTTPStatus.NOT_MODIFIED,
    )


def _answer_of(fetched: Fetched) -> Answer:
    """Return what a fetch of a walk comes to that brought no document."""
    if fetched.is_met:
        return LedBack(fetched.final_url)
    if not fetched.not_modified:
        return There(fetched.headers)
    says = "cache-control" in fetched.headers  # of what a 304 does not say, all stays (RFC 9111, section 3.2)
    return Unchanged(is_uncacheable(fetched.headers) if says else None)


# Documents that wait to be stored together

MOST_TOGETHER: Final = 16
_MOST_BYTES: Final = 3 << 19
LONGEST_SECONDS: Final = 0.1
"""So long the first of them waits. A crash loses as much, and a publisher is asked for it again."""


class Gathered:
    """Documents of a walk that have come one soon after the other, until they are stored in one transaction.

        number = gathered.add(put, facts)           # below 0: a stand-in
        await gathered.put(storage)                 # they are stored now
        gathered.number(number)                     # what it has become

    Identities are hashes: the entries of a document change as many pages of their index as there are entries,
    and those of sixteen documents little more. Who walks alone waits for the disk once for all of them.
    """

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._leaving: list[_Waiting] = []
        """Those that are being stored."""
        self._since = 0.0
        self._stand_in = 0
        self._numbers: dict[int, int] = {}
        """What stand-ins have become."""

    def __len__(self) -> int:
        """How many documents are not known to be stored yet."""
        return len(self._leaving) + len(self._waiting)

    @property
    def are_waiting(self) -> bool:
        """Whether there are any that nobody is storing."""
        return bool(self._waiting)

    @property
    def facts(self) -> list[DocumentFacts]:
        return [each.facts for each in (*self._leaving, *self._waiting)]

    def left_out_of(self, progress: Progress) -> Progress:
        """Return the progress of a walk without what is not known to be stored yet."""
        if not (entries := [len(each.entries) for each in self.facts]):
            return progress
        documents = progress.documents - len(entries)
        return replace(progress, documents=documents, entries=progress.entries - sum(entries))

    @property
    def left_seconds(self) -> float:
        """For how long they may wait for others."""
        size_bytes = sum(len(each.new.body) for each in self._waiting)
        if len(self._waiting) >= MOST_TOGETHER or size_bytes >= _MOST_BYTES:
            return 0.0
        return max(0.0, self._since + LONGEST_SECONDS - time.monotonic())

    def add(self, new: NewDocument, facts: DocumentFacts) -> int:
        """Take in a document that nothing is stored of; return a stand-in for its number."""
        if not self._waiting:
            self._since = time.monotonic()
        self._stand_in -= 1
        self._waiting.append(_Waiting(self._stand_in, new, facts))
        return self._stand_in

    async def put(self, storage: FeedStorage) -> None:
        """Put what waits, in the order in which it came; what cannot be put waits on."""
        if not self._waiting:
            return
        self._leaving, self._waiting = self._waiting, []
        try:
            numbers = await storage.put([each.new for each in self._leaving])
        except (StoreError, OverloadedError):  # who publishes meanwhile goes on all the same
            self._leaving, self._waiting = [], [*self._leaving, *self._waiting]
            raise
        stand_ins = [each.number for each in self._leaving]
        self._numbers.update(zip(stand_ins, numbers, strict=True))
        self._leaving = []

    def number(self, document: int) -> int:
        """Return what a document is stored under, whose number or stand-in that is."""
        return self._numbers.get(document, document)


class _Waiting(NamedTuple):
    number: int
    new: NewDocument
    facts: DocumentFacts
