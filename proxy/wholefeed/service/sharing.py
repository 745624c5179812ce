"""How a service shares its work with the others on its store. There is no leader: each asks the tables.

    async with open_sharing(store) as sharing:      # as one of the replicas; alone where nobody shares it
        await sharing.refresh(wanted, work)         # at most one a feed, wherever it runs
        opened = await sharing.open(url, work)      # the same for a URL that leads to no known feed

A flight that begins here takes the lease of its feed or URL first (`wholefeed.service.replica`). Where
another live replica has it, the flight waits for the end of that: so whoever waits for a flight waits for
the one that runs, wherever it does. How it failed stands in the lease, for those who waited.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, Final, TypeVar

from wholefeed.core.parse.discovery import Alternate
from wholefeed.errors import (
    REMEMBERED_SECONDS,
    DocumentError,
    ForbiddenTargetError,
    LeaseLostError,
    LoopDetectedError,
    NothingYetError,
    OverloadedError,
    PublisherError,
    PublisherStatusError,
    PublisherTimeoutError,
    StorageFullError,
    StoreError,
    UnknownFeedError,
    UnreadableError,
    WholefeedError,
    WorkError,
    WorkTooLargeError,
    WorkTooLongError,
)
from wholefeed.logs import get_logger
from wholefeed.service.replica import Lease, Replica
from wholefeed.service.results import UnderWay
from wholefeed.service.sources import SeveralFeedsError
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import leases
from wholefeed.store.tables.leases import LeaseRow, feed_lease

log = get_logger()

LEAVE_SECONDS: Final = 1.0
"""For so long the end waits for a database that does not answer."""
ADOPT_SECONDS: Final = 2.0
"""Between two looks for what replicas that died have left."""
FORGET_SECONDS: Final = 60.0
"""Between two clean-ups of the tables."""
MAX_ADOPTED: Final = 64
"""Feeds that are taken up at one look."""

T = TypeVar("T")
RefreshWork = Callable[[FeedRow], Coroutine[Any, Any, None]]
"""Refreshes a feed, as it is stored now."""
Fence = Callable[[Database], None]
"""Makes sure, in a transaction, that a refresh is still this replica's; raises `LeaseLostError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A refresh that is wanted."""

    feed: FeedRow
    """As it was known."""
    insists: Callable[[bool], bool]
    """Whether it is to be done whatever is stored; given whether another replica has been waited for."""
    is_due: Callable[[FeedRow], bool]
    """Whether the feed, as it is stored now, has anything to be done; called in a connection's thread."""
    tell: Callable[[], UnderWay]
    """How far it is, for the others."""


@asynccontextmanager
async def open_sharing(store: Store) -> AsyncIterator[Sharing]:
    """Become one of the replicas that share a store, and leave them at exit; alone where nobody shares it.

    Raises:
        StoreError: The database failed.
        OverloadedError: It could not be reached.
    """
    if not store.is_shared:
        yield Sharing()
        return
    replica = Replica(store)
    store.engine.listen("lease", replica.wake)
    store.engine.on_lost(replica.wake)
    await replica.beat()
    life = asyncio.create_task(replica.run())
    try:
        yield Sharing(replica)
    finally:
        life.cancel()
        await asyncio.wait({life})
        with suppress(StoreError, OverloadedError, TimeoutError):  # the others will find out
            replica.require()
            async with asyncio.timeout(LEAVE_SECONDS):
                await replica.leave()


class Sharing:
    """What a service asks before it does something; without a replica it is alone, and does it all itself."""

    def __init__(self, replica: Replica | None = None) -> None:
        self._replica = replica

    @property
    def is_shared(self) -> bool:
        """Whether there may be others."""
        return self._replica is not None

    @property
    def replicas(self) -> int:
        """How many share the work, as far as is known."""
        return 1 if self._replica is None else self._replica.replicas

    def require(self) -> None:
        """Make sure that the others take this replica for alive, or raise `LeaseLostError`."""
        if self._replica is not None:
            self._replica.require()

    # Flights

    async def refresh(self, wanted: Wanted, work: RefreshWork) -> bool:
        """Have a feed refreshed; return whether that was done here. Of a shared store.

        Raises:
            DocumentError: As the refresh did, wherever it ran.
            UnknownFeedError: The feed was forgotten.
            LeaseLostError: The others may take this replica for dead.
        """
        replica, name = self.replica, feed_lease(wanted.feed.id)
        while True:
            lease = replica.held.get(name)
            if lease is None or lease.is_begun:  # else it was claimed for this
                lease = await _taken(replica, name, wanted)
            if lease is None:
                return False
            assert lease.feed is not None, "it is not gone"
            with suppress(LeaseLostError):  # whoever has it now is waited for
                async with _working(replica, lease, lambda: wanted.tell().as_text()):
                    await work(lease.feed)
                return True

    async def open(
        self, url: str, work: Callable[[], Coroutine[Any, Any, T]], *, is_choosing: bool = False
    ) -> T:
        """Open a URL, when no other replica does; what another one could not open, fails in the same way."""
        if self._replica is None:
            return await work()
        kind = "choose" if is_choosing else "open"
        name = f"{kind}:{sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()}"  # it may be a long one
        while True:
            lease = await _taken(self._replica, name)
            assert lease is not None, "it is always wanted"
            with suppress(LeaseLostError):
                async with _working(self._replica, lease):
                    return await work()

    def fence(self, feed: int) -> Fence | None:
        """Return what each transaction of the refresh under way begins with; None: nothing."""
        if self._replica is None:
            return None
        return partial(self._replica.require_held, lease=self._replica.held.get(feed_lease(feed)))

    def heard(self, feed: int) -> UnderWay | None:
        """Return how far another replica is with a refresh that is waited for here; None: none is."""
        wait = None if self._replica is None else self._replica.wait_for(feed_lease(feed))
        return None if wait is None else UnderWay.of(wait.progress)

    def elsewhere(self, db: Database, feed: int) -> UnderWay | None:
        """Return how far another replica is with the refresh of a feed; None: none is at it."""
        lease = None if self._replica is None else leases.read_lease(db, feed_lease(feed))
        if lease is None or not lease.is_live or lease.replica == self.replica.name:
            return None
        return UnderWay.of(lease.progress)

    # Claims

    def claim_new(self, db: Database, feed: int) -> None:
        """Take a feed for its first refresh, in the transaction that makes it."""
        if self._replica is not None:
            leases.take(db, feed_lease(feed), replica=self._replica.name, feed=feed, takes_own=False)

    async def claim(self, feed: int, is_wanted: Callable[[FeedRow], bool]) -> FeedRow | None:
        """Take a feed for a refresh that is begun next; None: another has it, or it is not wanted now.

        Of a shared store.
        """

        def wants(_: LeaseRow | None, row: FeedRow | None) -> bool:
            return row is not None and is_wanted(row)

        lease, _ = await self.replica.take(feed_lease(feed), wants, feed=feed, takes_own=False)
        return None if lease is None else lease.feed

    def release(self, feed: int) -> None:
        """Give back what was claimed, or what a refresh that was cancelled leaves."""
        lease = None if self._replica is None else self._replica.held.get(feed_lease(feed))
        if lease is not None:
            self.replica.give_back(lease)

    # What is begun unasked

    @asynccontextmanager
    async def task(self, name: str) -> AsyncIterator[bool]:
        """Do something that one replica does at a time; yields whether this is the one."""
        if self._replica is None:
            yield True
            return
        lease, _ = await self._replica.take(f"task:{name}")
        if lease is None:
            yield False
            return
        async with self._replica.working(lease):
            yield True

    async def adopt(self, is_wanted: Callable[[FeedRow], bool], begin: Callable[[FeedRow], object]) -> None:
        """Take up what replicas that died have left, until cancelled; return where there are none."""
        forget_at = time.monotonic() + FORGET_SECONDS
        while self._replica is not None:
            try:
                for feed_id in await self._left():
                    feed = await self.claim(feed_id, is_wanted)
                    if feed is not None:
                        log.info("feed.adopted", feed=feed_id)
                        begin(feed)
                if time.monotonic() >= forget_at:
                    forget_at = time.monotonic() + FORGET_SECONDS
                    await self._replica.store.write_loosely(leases.forget_old)
            except (StoreError, OverloadedError) as exc:
                log.warning("replica.unheard", replica=self._replica.name, reason=str(exc))
            await asyncio.sleep(ADOPT_SECONDS)

    async def _left(self) -> list[int]:
        """Return the feeds that nobody is at; who waits for one here takes it up itself."""
        replica = self.replica
        if replica.is_forgotten:  # so the feeds themselves are looked at
            left = await replica.store.read(leases.list_unfinished)
            replica.is_forgotten = False
        else:
            left = await replica.store.read(partial(leases.list_orphans, limit=MAX_ADOPTED))
        random.shuffle(left)  # the others look at the same ones
        return [feed for feed in left if replica.wait_for(feed_lease(feed)) is None]

    @property
    def replica(self) -> Replica:
        assert self._replica is not None, "the store is shared"
        return self._replica


async def _taken(replica: Replica, name: str, wanted: Wanted | None = None) -> Lease | None:
    """Take a lease, waiting for it as long as another replica has it; None: nothing is left to do.

    Raises:
        WholefeedError: As another replica has failed at it.
        UnknownFeedError: The feed was forgotten.
    """
    feed, has_waited = None if wanted is None else wanted.feed.id, False
    while True:
        with replica.waiting(name) as wait:
            wants = partial(is_to_be_done, replica.name, wanted, has_waited)
            lease, looked = await replica.take(name, wants, feed=feed)
            if lease is not None:
                return lease
            if looked.before is not None and looked.before.is_live:
                has_waited, wait.progress = True, looked.before.progress
                await wait.woken.wait()
                continue
        if feed is not None and looked.feed is None:
            raise UnknownFeedError(f"forgotten meanwhile: {name}")
        failure = failure_in(looked.before, looked.feed, replica.name, has_waited=has_waited)
        if failure is not None:
            raise failure
        return None


@asynccontextmanager
async def _working(replica: Replica, lease: Lease, tell: Callable[[], str] = str) -> AsyncIterator[None]:
    """Work under a lease, which is given back with what came of it."""
    async with replica.working(lease, tell):
        try:
            yield
        except Exception as exc:
            lease.outcome = outcome_of(exc)
            raise


# What is to be done about a piece of work, after a look at its lease. Pure: no clock, no database


def is_to_be_done(
    replica: str, wanted: Wanted | None, has_waited: bool, before: LeaseRow | None, feed: FeedRow | None
) -> bool:
    """Whether a piece of work is to be done here, whose lease can be had.

    Args:
        replica: Which one looks.
        wanted: Which refresh; None: a URL is to be opened.
        has_waited: Whether it has waited for another one that was at this: how that went is its own result.
        before: The lease, which no other replica has.
        feed: As it is stored now.
    """
    if before is not None and before.is_live:  # claimed for this
        return True
    if wanted is not None and wanted.insists(has_waited):
        return True
    if failure_in(before, feed, replica, has_waited=has_waited) is not None:
        return False
    return wanted is None or feed is None or feed.digest is None or wanted.is_due(feed)


def failure_in(
    lease: LeaseRow | None, feed: FeedRow | None, replica: str, *, has_waited: bool
) -> WholefeedError | None:
    """Return how another replica has failed, if that counts: for who has waited, or for a moment for all.

    Of a document of a feed that was published it does not: its row says when the publisher may be asked.
    """
    if lease is None or not lease.outcome or lease.ended_seconds is None or lease.replica == replica:
        return None  # its own failures a replica remembers itself
    failure = error_of(lease.outcome)
    kept_seconds = REMEMBERED_SECONDS
    if isinstance(failure, DocumentError):
        kept_seconds = failure.remembered_seconds
        if feed is not None and feed.digest is not None:
            kept_seconds = 0.0
    if has_waited:
        return failure
    if not 0 <= lease.ended_seconds < kept_seconds:
        return None
    if isinstance(failure, DocumentError):
        return failure.fresh_copy(retry_after_seconds=kept_seconds - lease.ended_seconds)
    return failure


# How a piece of work failed, as the others are told

_TOLD: Final[Mapping[str, type[WholefeedError]]] = {
    each.__name__: each
    for each in (
        DocumentError,
        ForbiddenTargetError,
        LoopDetectedError,
        NothingYetError,
        PublisherError,
        PublisherStatusError,
        PublisherTimeoutError,
        UnreadableError,
        StoreError,
        StorageFullError,
        WorkError,
        WorkTooLongError,
    )
}
"""What says something of the publisher, of what it sent, or of the database: the same everywhere. That this
replica had too much to do, or too little memory, is not."""


def outcome_of(error: BaseException) -> str:
    """Return an error as it is kept in a lease; empty where the others are to try for themselves."""
    if not isinstance(error, WholefeedError):
        return ""
    told = error.fresh_copy() if isinstance(error, DocumentError) else error
    name = type(told).__name__
    if isinstance(told, SeveralFeedsError):
        return json.dumps({"class": name, "url": told.url, "feeds": [list(each) for each in told.feeds]})
    if name not in _TOLD:
        return ""
    facts = {"class": name, "message": str(told.args[0]), "slug": told.slug}
    if not isinstance(told, DocumentError):
        return json.dumps(facts)
    if told.slug == WorkTooLargeError.default_slug:
        return ""
    asking = {"publisher_status": told.publisher_status, "retry_after_seconds": told.retry_after_seconds}
    return json.dumps({**facts, "url": told.url, **asking})


def error_of(outcome: str) -> WholefeedError:
    """Return the error that an outcome tells of, to be raised; it may be another version's."""
    found = json.loads(outcome)
    if found["class"] == SeveralFeedsError.__name__:
        return SeveralFeedsError(found["url"], tuple(Alternate(*each) for each in found["feeds"]))
    kind = _TOLD.get(found["class"], DocumentError)
    if not issubclass(kind, DocumentError):
        return kind(found["message"], slug=found["slug"])
    return kind(
        found["message"],
        url=found["url"],
        slug=found["slug"],
        publisher_status=found["publisher_status"],
        retry_after_seconds=found["retry_after_seconds"],
    )
