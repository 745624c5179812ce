"""The work of one replica among several on one PostgreSQL. There is no leader: each asks the tables.

    shared = Shared(StoredLeases(store))
    await shared.member.beat()
    await shared.run()                  # until it is cancelled; `open_sharing` does all of it

A flight that begins here takes the lease of its feed or URL first. Where another live replica has it, the
flight waits for the end of that: so whoever waits for a flight waits for the one that runs, wherever it does.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import sha256
from typing import Any, Final, TypeVar

from wholefeed.errors import LeaseLostError, OverloadedError, StoreError, UnknownFeedError
from wholefeed.futures import retrieve_failure
from wholefeed.loggers import get_logger
from wholefeed.service.sharing.holdings import Holding
from wholefeed.service.sharing.leases import Leases
from wholefeed.service.sharing.membership import Membership
from wholefeed.service.sharing.outcomes import error_of, outcome_of, remembered_seconds
from wholefeed.service.sharing.progress import Elsewhere
from wholefeed.service.sharing.sharing import Fence, RefreshWork, Wanted
from wholefeed.service.sharing.verdicts import Wants, judge, judge_claim, judge_refresh
from wholefeed.service.sharing.waits import Heard, Waits
from wholefeed.store.database import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables.leases import Judge, LeaseRow, Looked, Taking, Verdict, feed_lease

log = get_logger()

ADOPT_SECONDS: Final = 2.0
"""Between two looks for what replicas that died have left."""
FORGET_SECONDS: Final = 60.0
"""Between two clean-ups of the tables."""
MAX_ADOPTED: Final = 64
"""At a look."""

T = TypeVar("T")
_Judging = Callable[[bool], Judge]
"""Makes a judge; given whether another replica has been waited for."""


class Shared:
    """Belongs to one process; `run` goes on as long as it is used.

    Args:
        leases: Where the replicas keep who does what.
        clock: Monotonic seconds.
    """

    is_shared = True

    def __init__(self, leases: Leases, clock: Callable[[], float] = time.monotonic) -> None:
        self._leases = leases
        self.member = Membership(leases, clock)
        self.member.on_loss = self._look_everywhere
        self.require = self.member.require
        self.waits = Waits(leases)
        self._looks_everywhere = True

    @property
    def replicas(self) -> int:
        """How many share the work, as far as is known."""
        return self.member.replicas

    async def run(self) -> None:
        """Give signs of life, and follow what others do; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.member.run())
            tasks.create_task(self.waits.run())

    # Flights

    async def refresh(self, wanted: Wanted, work: RefreshWork) -> bool:
        """Have a feed refreshed; return whether that was done here, and not by another replica."""
        name, feed_id = feed_lease(wanted.feed.id), wanted.feed.id

        def judging(has_waited: bool) -> Judge:
            return partial(judge_refresh, self.member.name, wanted, has_waited)

        def heard(progress: str) -> None:
            wanted.heard(Elsewhere.of(progress))

        while True:
            claim = self.member.claimed(name)
            if claim is not None:
                token, feed = claim.token, claim.feed or wanted.feed
            else:
                try:
                    token, looked = await self._taken(name, judging, heard, feed_id)
                finally:
                    wanted.heard(None)
                if looked.verdict is Verdict.DONE:
                    return False
                assert looked.feed is not None, "it is not gone"
                feed = looked.feed
            with suppress(LeaseLostError):  # whoever has it now is waited for
                await self._working(name, token, work(feed), lambda: wanted.tell().as_text())
                return True

    async def open(
        self, url: str, work: Callable[[], Coroutine[Any, Any, T]], *, is_choosing: bool = False
    ) -> T:
        """Open a URL, when no other replica does."""
        kind = "choose" if is_choosing else "open"
        name = f"{kind}:{sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()}"  # it may be a long one

        def judging(has_waited: bool) -> Judge:
            wants = Wants(has_waited=has_waited, is_opening=True)
            return lambda lease, _: judge(lease, self.member.name, wants)

        while True:
            token, _ = await self._taken(name, judging, _nobody)
            with suppress(LeaseLostError):
                return await self._working(name, token, work(), str)

    async def _taken(
        self, name: str, judging: _Judging, heard: Heard, feed: int | None = None
    ) -> tuple[str, Looked]:
        """Wait until a lease is this one's, or nothing is left to do."""
        has_waited = False
        while True:
            self.member.require()
            with self.waits.waiting(name, heard) as wait:
                taking = self._taking(name, judging(has_waited), feed)
                looked = await self._leases.take(taking)
                if looked.verdict is Verdict.WAIT:
                    has_waited = True
                    assert looked.lease is not None, "somebody has it"
                    heard(looked.lease.progress)
                    self.waits.follow()
                    await wait.woken()
                    continue
            if looked.verdict is Verdict.GONE:
                raise UnknownFeedError(f"forgotten meanwhile: {name}")
            if looked.verdict is Verdict.FAILED:
                assert looked.lease is not None, "it tells how"
                raise error_of(
                    looked.lease.outcome, retry_after_seconds=_rest_seconds(looked.lease, has_waited)
                )
            return taking.token, looked

    def _taking(
        self, name: str, judge: Judge, feed: int | None = None, *, skips_locked: bool = False
    ) -> Taking:
        """Return a taking of a lease by this replica, with a token of its own."""
        return Taking(
            name=name,
            replica=self.member.name,
            token=self.member.new_token(),
            judge=judge,
            feed=feed,
            skips_locked=skips_locked,
        )

    async def _working(
        self, name: str, token: str, work: Coroutine[Any, Any, T], tell: Callable[[], str]
    ) -> T:
        """Work under a lease that was taken, and give it back with what came of it.

        Raises:
            LeaseLostError: It was lost in the middle.
        """
        task = asyncio.create_task(work)
        task.add_done_callback(retrieve_failure)
        holding = self.member.hold(name, token, tell, task)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:  # the lease stays: at the end of the program others take it up
            self.member.keep(name, token)
            task.cancel()
            await asyncio.wait({task})
            raise
        finally:
            self.member.drop(holding)
        if holding.is_lost and task.cancelled():
            raise LeaseLostError(f"another replica may have taken over: {name}")
        error = None if task.cancelled() else task.exception()
        if not isinstance(error, LeaseLostError):
            self.member.end(name, token, "" if error is None else outcome_of(error))
        return task.result()

    def fence(self, feed: int) -> Fence | None:
        """Return what makes sure, in each transaction of a refresh, that it is still this replica's."""
        holding = self.member.held(feed_lease(feed))
        if holding is None:
            holding = Holding(feed_lease(feed), "", str)  # lost before it began
        return partial(self.member.require_held, holding=holding)

    # Claims

    def claim_new(self, db: Database, feed: int) -> Callable[[], None]:
        """Take a feed for its first refresh in the transaction that makes it; call the result after that."""
        taking = self._taking(feed_lease(feed), judge_claim(lambda _: True), feed)
        looked = self._leases.take_new(db, taking)
        if looked.verdict is not Verdict.TAKE:
            return lambda: None
        # Under its lock: one that was found there may have become another one since it was read.
        return lambda: self.member.claim(taking.name, taking.token, looked.feed)

    async def claim(self, feed: int, is_wanted: Callable[[FeedRow], bool]) -> FeedRow | None:
        """Take a feed for a refresh that is begun next; None: another has it, or it is not wanted now."""
        self.member.require()
        taking = self._taking(feed_lease(feed), judge_claim(is_wanted), feed, skips_locked=True)
        looked = await self._leases.take(taking)
        if looked.verdict is not Verdict.TAKE:
            return None
        self.member.claim(taking.name, taking.token, looked.feed)
        return looked.feed

    def release(self, feed: int) -> None:
        """Give back what was claimed, or what a refresh that was cancelled leaves."""
        self.member.give_back(feed_lease(feed))

    @asynccontextmanager
    async def task(self, name: str) -> AsyncIterator[bool]:
        """Do something that one replica does at a time; yields whether this is the one."""
        self.member.require()
        replica = self.member.name
        taking = self._taking(f"task:{name}", lambda lease, _: judge(lease, replica, Wants()))
        looked = await self._leases.take(taking)
        if looked.verdict is not Verdict.TAKE:
            yield False
            return
        holding = self.member.hold(taking.name, taking.token, str)
        try:
            yield True
        finally:
            self.member.drop(holding)
            self.member.end(taking.name, taking.token)

    def elsewhere(self, db: Database, feed: int) -> Elsewhere | None:
        """Return how far another replica is with the refresh of a feed; None: none is at it."""
        lease = self._leases.find(db, feed_lease(feed))
        is_another = lease is not None and lease.is_live and lease.replica != self.member.name
        return Elsewhere.of(lease.progress) if lease is not None and is_another else None

    # What others leave

    async def adopt(self, is_wanted: Callable[[FeedRow], bool], begin: Callable[[FeedRow], object]) -> None:
        """Take up what replicas that died have left, until cancelled."""
        loop = asyncio.get_running_loop()
        forget_at = loop.time() + FORGET_SECONDS
        while True:
            try:
                await self._adopt(is_wanted, begin)
                if loop.time() >= forget_at:
                    forget_at = loop.time() + FORGET_SECONDS
                    await self._leases.forget_old()
            except (StoreError, OverloadedError) as exc:
                log.warning("replica.unheard", replica=self.member.name, reason=str(exc))
            await asyncio.sleep(ADOPT_SECONDS)

    async def _adopt(self, is_wanted: Callable[[FeedRow], bool], begin: Callable[[FeedRow], object]) -> None:
        if self._looks_everywhere:
            left = list(await self._leases.unfinished())
            self._looks_everywhere = False
        else:
            left = list(await self._leases.orphans(MAX_ADOPTED))
        random.shuffle(left)  # the others look at the same ones
        for feed_id in left:
            if self.waits.is_awaited(feed_lease(feed_id)):
                continue  # who waits here takes it up
            feed = await self.claim(feed_id, is_wanted)
            if feed is not None:
                log.info("feed.adopted", feed=feed_id)
                begin(feed)

    def _look_everywhere(self) -> None:
        """Look at the feeds themselves: the database has lost who was at what."""
        self._looks_everywhere = True


def _rest_seconds(lease: LeaseRow, has_waited: bool) -> float:
    """Return for how long a publisher is still left alone; who has waited is told what the first one was."""
    if has_waited or lease.ended_seconds is None:
        return 0.0
    return remembered_seconds(lease.outcome, is_opening=True) - lease.ended_seconds


def _nobody(_: str) -> None:
    return
