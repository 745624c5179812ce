"""Sharing of work between replicas of a store, without a leader.

Work on a feed or URL takes a lease first (`wholefeed.service.replica`), or waits while another live replica
has it. A failure stays in the lease, for those that waited.
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
"""Longest wait for the database at exit."""
ADOPT_SECONDS: Final = 2.0
"""Between looks for dead replicas' work."""
FORGET_SECONDS: Final = 60.0
"""Between clean-ups."""
MAX_ADOPTED: Final = 64
"""Feeds at one look."""

T = TypeVar("T")
RefreshWork = Callable[[FeedRow], Coroutine[Any, Any, None]]
Fence = Callable[[Database], None]
"""Checks in a transaction that the refresh still belongs here; raises `LeaseLostError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    feed: FeedRow
    insists: Callable[[bool], bool]
    """Whether to refresh regardless of stored state, given whether another replica was awaited."""
    is_due: Callable[[FeedRow], bool]
    """Called in a connection's thread."""
    tell: Callable[[], UnderWay]


@asynccontextmanager
async def open_sharing(store: Store) -> AsyncIterator[Sharing]:
    """Join the replicas of a shared store, and leave them at exit.

    Raises:
        StoreError: The database failed.
        OverloadedError: The database is unreachable.
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
        with suppress(StoreError, OverloadedError, TimeoutError):  # other replicas will notice
            replica.require()
            async with asyncio.timeout(LEAVE_SECONDS):
                await replica.leave()


class Sharing:
    """Coordination with other replicas; without a replica, the service is alone."""

    def __init__(self, replica: Replica | None = None) -> None:
        self._replica = replica

    @property
    def is_shared(self) -> bool:
        return self._replica is not None

    @property
    def replicas(self) -> int:
        """Known replicas, including this one."""
        return 1 if self._replica is None else self._replica.replicas

    def require(self) -> None:
        """Raise `LeaseLostError` unless other replicas consider this one alive."""
        if self._replica is not None:
            self._replica.require()

    # Flights

    async def refresh(self, wanted: Wanted, work: RefreshWork) -> bool:
        """Refresh a feed of a shared store; return whether it ran here.

        Raises:
            DocumentError: The refresh failed, here or elsewhere.
            UnknownFeedError: The feed was forgotten.
            LeaseLostError: Other replicas may consider this one dead.
        """
        replica, name = self.replica, feed_lease(wanted.feed.id)
        while True:
            lease = replica.held.get(name)
            if lease is None or lease.is_begun:  # else claimed for this refresh
                lease = await _taken(replica, name, wanted)
            if lease is None:
                return False
            assert lease.feed is not None, "it is not gone"
            with suppress(LeaseLostError):  # then wait for the replica that has the lease now
                async with _working(replica, lease, lambda: wanted.tell().as_text()):
                    await work(lease.feed)
                return True

    async def open(
        self, url: str, work: Callable[[], Coroutine[Any, Any, T]], *, is_choosing: bool = False
    ) -> T:
        """Open a URL, or fail as another replica failed to open it."""
        if self._replica is None:
            return await work()
        kind = "choose" if is_choosing else "open"
        # hashed, since a URL may be long
        name = f"{kind}:{sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()}"
        while True:
            lease = await _taken(self._replica, name)
            assert lease is not None, "it is always wanted"
            with suppress(LeaseLostError):
                async with _working(self._replica, lease):
                    return await work()

    def fence(self, feed: int) -> Fence | None:
        if self._replica is None:
            return None
        return partial(self._replica.require_held, lease=self._replica.held.get(feed_lease(feed)))

    def heard(self, feed: int) -> UnderWay | None:
        wait = None if self._replica is None else self._replica.wait_for(feed_lease(feed))
        return None if wait is None else UnderWay.of(wait.progress)

    def elsewhere(self, db: Database, feed: int) -> UnderWay | None:
        lease = None if self._replica is None else leases.read_lease(db, feed_lease(feed))
        if lease is None or not lease.is_live or lease.replica == self.replica.name:
            return None
        return UnderWay.of(lease.progress)

    # Claims

    def claim_new(self, db: Database, feed: int) -> None:
        """Take a feed's first refresh, in the transaction that creates it."""
        if self._replica is not None:
            leases.take(db, feed_lease(feed), replica=self._replica.name, feed=feed, takes_own=False)

    async def claim(self, feed: int, is_wanted: Callable[[FeedRow], bool]) -> FeedRow | None:
        """Take a feed's next refresh in a shared store; None: taken elsewhere, or not wanted."""

        def wants(_: LeaseRow | None, row: FeedRow | None) -> bool:
            return row is not None and is_wanted(row)

        lease, _ = await self.replica.take(feed_lease(feed), wants, feed=feed, takes_own=False)
        return None if lease is None else lease.feed

    def release(self, feed: int) -> None:
        """Give back a claim, or a cancelled refresh's lease."""
        lease = None if self._replica is None else self._replica.held.get(feed_lease(feed))
        if lease is not None:
            self.replica.give_back(lease)

    # Work without a request

    @asynccontextmanager
    async def task(self, name: str) -> AsyncIterator[bool]:
        """Yield whether this replica does a task; one does at a time."""
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
        """Take up dead replicas' work until cancelled; return at once if the store is not shared."""
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
        replica = self.replica
        if replica.is_forgotten:  # the database may have lost leases, so feeds are searched instead
            left = await replica.store.read(leases.list_unfinished)
            replica.is_forgotten = False
        else:
            left = await replica.store.read(partial(leases.list_orphans, limit=MAX_ADOPTED))
        random.shuffle(left)  # other replicas find the same feeds
        # a flight that waits here takes up its feed itself
        return [feed for feed in left if replica.wait_for(feed_lease(feed)) is None]

    @property
    def replica(self) -> Replica:
        assert self._replica is not None, "the store is shared"
        return self._replica


async def _taken(replica: Replica, name: str, wanted: Wanted | None = None) -> Lease | None:
    """Take a lease, waiting for other replicas; None: nothing to do.

    Raises:
        WholefeedError: Another replica failed.
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
    async with replica.working(lease, tell):
        try:
            yield
        except Exception as exc:
            lease.outcome = outcome_of(exc)
            raise


# Decisions after a look at a lease. Pure: no clock, no database


def is_to_be_done(
    replica: str, wanted: Wanted | None, has_waited: bool, before: LeaseRow | None, feed: FeedRow | None
) -> bool:
    """Return whether to work here under an available lease.

    After `has_waited`, the other replica's outcome counts as this one's.
    """
    if before is not None and before.is_live:  # claimed for this work
        return True
    if wanted is not None and wanted.insists(has_waited):
        return True
    if failure_in(before, feed, replica, has_waited=has_waited) is not None:
        return False
    return wanted is None or feed is None or feed.digest is None or wanted.is_due(feed)


def failure_in(
    lease: LeaseRow | None, feed: FeedRow | None, replica: str, *, has_waited: bool
) -> WholefeedError | None:
    """Return another replica's failure if it counts: after waiting, or while recent.

    Recent document failures do not count for a published feed, since its row has the next attempt.
    """
    if lease is None or not lease.outcome or lease.ended_seconds is None or lease.replica == replica:
        return None  # a replica remembers its own failures itself
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


# Failures for other replicas

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
"""Errors that hold for all replicas: about publishers, documents, the database."""


def outcome_of(error: BaseException) -> str:
    """Return an error for a lease; empty: other replicas try for themselves."""
    if not isinstance(error, WholefeedError):
        return ""
    told = error.fresh_copy() if isinstance(error, DocumentError) else error
    name = type(told).__name__
    if isinstance(told, SeveralFeedsError):
        return json.dumps({"class": name, "url": told.url, "feeds": [list(each) for each in told.feeds]})
    if name not in _TOLD:  # for example, overload of this replica
        return ""
    facts = {"class": name, "message": str(told.args[0]), "slug": told.slug}
    if not isinstance(told, DocumentError):
        return json.dumps(facts)
    if told.slug == WorkTooLargeError.default_slug:  # a lack of memory is this replica's alone
        return ""
    asking = {"publisher_status": told.publisher_status, "retry_after_seconds": told.retry_after_seconds}
    return json.dumps({**facts, "url": told.url, **asking})


def error_of(outcome: str) -> WholefeedError:
    """Return the error of an outcome, perhaps written by another program version."""
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
