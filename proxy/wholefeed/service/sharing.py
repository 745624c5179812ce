"""The work of one replica among several on one PostgreSQL. There is no leader: each asks the tables.

    async with open_sharing(store) as sharing:      # one of the replicas; alone where nobody shares the store
        await sharing.refresh(wanted, work)

A flight that begins here takes the lease of its feed or URL first. Where another live replica has it, the
flight waits for the end of that: so whoever waits for a flight waits for the one that runs, wherever it does.

From top to bottom: the flights and claims (`Shared`), what is to be done after a look at a lease (`judge`),
this replica's name and what it holds (`Membership`), its signs of life (`Pulse`), waiting for the others
(`Waits`), how a failure is told to them (`outcome_of`), and the tables (`Leases`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple, TypeVar

from wholefeed.core.parse.discovery import Alternate
from wholefeed.errors import (
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
from wholefeed.futures import retrieve_failure
from wholefeed.logs import get_logger
from wholefeed.service import opening
from wholefeed.service.results import Elsewhere
from wholefeed.service.sharing_port import Alone, Fence, RefreshWork, Sharing, Wanted
from wholefeed.service.sources import SeveralFeedsError
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import leases
from wholefeed.store.tables.leases import Beat, End, Judge, LeaseRow, Looked, Taking, Verdict, feed_lease

log = get_logger()


AGAIN_SECONDS: Final = 1.0
"""After an error of our own."""
LEAVE_SECONDS: Final = 1.0
"""For so long the end waits for a database that does not answer."""


@asynccontextmanager
async def open_sharing(store: Store) -> AsyncIterator[Sharing]:
    """Become one of the replicas that share a store, and leave them at exit; alone where nobody shares it.

    Raises:
        StoreError: The database failed.
        OverloadedError: It could not be reached.
    """
    if not store.is_shared:
        yield Alone()
        return
    shared = Shared(Leases(store))
    store.listen("lease", shared.waits.wake)
    store.on_lost(shared.waits.wake_all)
    await shared.member.beat()
    life = asyncio.create_task(_living(shared))
    try:
        yield shared
    finally:
        life.cancel()
        await asyncio.wait({life})
        with suppress(StoreError, OverloadedError, TimeoutError):  # the others will find out
            shared.require()
            async with asyncio.timeout(LEAVE_SECONDS):
                await shared.member.leave()


async def _living(shared: Shared) -> None:
    """Go on whatever happens: without signs of life the others take this replica for dead."""
    while True:
        try:
            await shared.run()
        except Exception:  # an error of our own
            log.exception("background.failed", name="sharing")
            await asyncio.sleep(AGAIN_SECONDS)


ADOPT_SECONDS: Final = 2.0
"""Between two looks for what replicas that died have left."""
FORGET_SECONDS: Final = 60.0
"""Between two clean-ups of the tables."""
MAX_ADOPTED: Final = 64
"""Feeds that are taken up at one look."""


T = TypeVar("T")


_Judging = Callable[[bool], Judge]
"""Makes a judge; given whether another replica has been waited for."""


class Shared:
    """Shares the work with the other replicas, for one process; `run` goes on as long as it is used.

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
        self._waited = Counter[str]()
        """Leases of others that are waited for here."""

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
        self, name: str, judging: _Judging, heard: Heard, feed: int | None = None, *, tells: bool = False
    ) -> tuple[str, Looked]:
        """Wait until a lease is this one's, or nothing is left to do; `tells` as in `Taking`."""
        has_waited = False
        while True:
            self.member.require()
            with self.waits.waiting(name, heard) as woken:
                taking = self._taking(name, judging(has_waited), feed, tells=tells)
                looked = await self._leases.take(taking)
                if looked.verdict is Verdict.WAIT:
                    has_waited = True
                    assert looked.lease is not None, "somebody has it"
                    heard(looked.lease.progress)
                    self._waited[name] += 1
                    try:
                        await woken.wait()
                    finally:
                        self._waited -= Counter([name])
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
        self,
        name: str,
        judge: Judge,
        feed: int | None = None,
        *,
        skips_locked: bool = False,
        tells: bool = False,
    ) -> Taking:
        """Return a taking of a lease by this replica, with a token of its own."""
        return Taking(
            name=name,
            replica=self.member.name,
            token=self.member.new_token(),
            judge=judge,
            feed=feed,
            skips_locked=skips_locked,
            tells=tells,
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
            holding = Holding(feed_lease(feed), "", "working", 0.0, is_lost=True)
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

    async def keep(self, name: str, tell: Callable[[], str], on_wait: Callable[[], None]) -> Kept:
        """Wait until something that one replica has at a time is this one's; `let_go` of it.

        Args:
            name: Of its lease.
            tell: What the next one is to know, should this one die.
            on_wait: Called where another one has it, which is told that it is wanted.

        Raises:
            StoreError: The database failed.
            OverloadedError: It could not be reached.
            LeaseLostError: The others may take this replica for dead.
        """

        def judging(_: bool) -> Judge:
            return lambda lease, _: judge(lease, self.member.name, Wants(insists=True))

        token, looked = await self._taken(name, judging, lambda _: on_wait(), tells=True)
        holding, was = self.member.hold(name, token, tell), looked.lease
        if was is None or was.replica == self.member.name:
            return Kept(holding)
        seconds = was.silent_seconds if was.ended_seconds is None else was.ended_seconds
        return Kept(holding, before=was.outcome or was.progress, age_seconds=seconds or 0.0)

    def let_go(self, kept: Kept, told: str) -> None:
        """Leave what was kept to others, who are told something with it."""
        self.member.drop(kept.holding)
        self.member.end(kept.holding.name, kept.holding.token, told)

    def is_waiting(self, name: str) -> bool:
        """Whether another replica has what somebody here waits for."""
        return name in self._waited and not self.member.is_cut_off

    async def reach(self) -> None:
        """Make sure that the database answers."""
        await self._leases.look([])

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


class Kept(NamedTuple):
    """What one replica has at a time, and this one has now."""

    holding: Holding
    before: str = ""
    """What the replica told that had it before; empty: nothing, or it was this one."""
    age_seconds: float = 0.0
    """How long ago."""


def _rest_seconds(lease: LeaseRow, has_waited: bool) -> float:
    """Return for how long a publisher is still left alone; who has waited is told what the first one was."""
    if has_waited or lease.ended_seconds is None:
        return 0.0
    return remembered_seconds(lease.outcome, is_opening=True) - lease.ended_seconds


def _nobody(_: str) -> None:
    return


# What is to be done about a piece of work, after a look at its lease


def judge(lease: LeaseRow | None, replica: str, wants: Wants) -> Verdict:
    """Decide what is to be done about a piece of work. Pure: no clock, no database.

    Args:
        lease: As it is stored, if it is.
        replica: Which one looks.
        wants: What it looks for.
    """
    if lease is not None and lease.is_live:
        return Verdict.TAKE if lease.replica == replica else Verdict.WAIT
    if wants.insists:
        return Verdict.TAKE
    is_others = lease is not None and lease.replica != replica  # its own failures it remembers itself
    if lease is not None and is_others and lease.outcome and lease.ended_seconds is not None:
        counts_seconds = remembered_seconds(lease.outcome, is_opening=wants.is_opening)
        if wants.has_waited or 0 <= lease.ended_seconds < counts_seconds:
            return Verdict.FAILED
    return Verdict.DONE if wants.is_done else Verdict.TAKE


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What a replica that looks at a lease wants."""

    has_waited: bool = False
    """Whether it has waited for another replica that was at this: how that went is its own result, too."""
    insists: bool = False
    """Whether it is to be done whatever another one has come to."""
    is_opening: bool = False
    """Whether nothing is stored yet: what failed just now is not tried again at once."""
    is_done: bool = False
    """Whether there is nothing to do any more, as far as the feed's row says."""


def judge_refresh(
    replica: str, wanted: Wanted, has_waited: bool, lease: LeaseRow | None, feed: FeedRow | None
) -> Verdict:
    """Decide about the refresh of a feed, as its row is now."""
    assert feed is not None, "else it is gone"
    is_new = feed.digest is None
    wants = Wants(
        has_waited=has_waited,
        insists=wanted.insists(has_waited),
        is_opening=is_new,
        is_done=not is_new and not wanted.is_due(feed),
    )
    return judge(lease, replica, wants)


def judge_claim(is_wanted: Callable[[FeedRow], bool]) -> Judge:
    """Take what nobody has and is wanted; what this one has is at work already."""

    def decide(lease: LeaseRow | None, feed: FeedRow | None) -> Verdict:
        if lease is not None and lease.is_live:
            return Verdict.WAIT
        if feed is not None and not is_wanted(feed):
            return Verdict.DONE
        return Verdict.TAKE

    return decide


# This replica among the others

RETRY_SECONDS: Final = 0.5
"""After the database could not be reached."""
CLAIM_SECONDS: Final = 10.0
"""For so long a claim waits for its refresh to begin."""


class Membership:
    """This process among the replicas: its name, its signs of life, and the leases that it holds.

        member = Membership(leases)
        await member.beat()
        await member.run()          # until it is cancelled; `leave` at the end

    A replica that could give no sign of life for `CUT_OFF_SECONDS` by its own clock takes itself for dead, a
    second before the others do: it stops what it does, writes nothing of it any more, and begins again under
    a new name. A process may be stopped in the middle of a transaction, too, where it looks at no clock: so
    each one makes sure that the lease is still its own (`require_held`).

    Args:
        leases: Where the replicas keep who does what.
        clock: Monotonic seconds.
    """

    def __init__(self, leases: Leases, clock: Callable[[], float] = time.monotonic) -> None:
        self._leases = leases
        self._clock = clock
        self.name = _new_name()
        self.replicas = 1
        """How many are alive, as far as is known."""
        self.on_loss: Callable[[], None] = lambda: None
        """Called when the database has lost what the replicas have told each other."""
        self._pulse = Pulse(leases.beat_in_thread, clock)
        self._is_known = False
        """Whether the others know this one by its name."""
        self._numbers = itertools.count(1)
        self._held: dict[str, Holding] = {}
        self._ends: dict[str, End] = {}
        """What is to be given back, by token."""
        self._has_ended = asyncio.Event()
        self._strays: Mapping[str, str] = {}
        """What it has by the last sign of life, and does not know of."""
        self._failure: StoreError | OverloadedError | None = None
        """Why the last sign of life could not be given."""

    # Its life

    async def run(self) -> None:
        """Give signs of life, and give back what has ended, until cancelled."""
        with self._pulse.beating():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_beating())
                tasks.create_task(self._keep_ending())

    async def beat(self) -> None:
        """Give a sign of life; what turns out to be somebody else's is stopped.

        Raises:
            StoreError: The database failed.
            OverloadedError: It could not be reached.
        """
        sent_at, name, holdings = self._clock(), self.name, list(self._held.values())
        news = [(each, text) for each in holdings if (text := each.tell()) != each.told]
        beat = await self._leases.beat(name, [(text, each.name, each.token) for each, text in news])
        if name != self.name:
            return
        for each, text in news:
            each.told = text
        if self._is_known and not beat.was_known:
            log.warning("replica.forgotten", replica=name)
            self.on_loss()
        self._pulse.given(name, at=sent_at)
        self._is_known, self.replicas = True, beat.replicas
        for each in holdings:
            if self._held.get(each.name) is each and beat.held.get(each.name) != each.token:
                self._lose(each)
        self._end_strays(beat)

    def _end_strays(self, beat: Beat) -> None:
        """Give back what nothing here works under: whoever was to begin it was cancelled."""
        expired_at = self._clock() - CLAIM_SECONDS
        for each in list(self._held.values()):
            if each.use == "claimed" and each.since <= expired_at:
                self.drop(each)
        known = {each.token for each in self._held.values()}
        strays = {name: token for name, token in beat.held.items() if token not in known}
        for name, token in strays.items():
            if self._strays.get(name) == token:
                self.end(name, token)
        self._strays = strays

    async def leave(self) -> None:
        """Tell the others at once that this one has ended."""
        self._is_known = False
        self._pulse.stop()
        if self._ends:
            await self._leases.end(list(self._ends.values()))
        await self._leases.leave(self.name)

    async def _keep_beating(self) -> None:
        while True:
            pause_seconds = BEAT_SECONDS
            self._pulse.seen()
            left_seconds = CUT_OFF_SECONDS - (self._pulse.silent_seconds if self._is_known else 0.0)
            try:
                async with asyncio.timeout(left_seconds):
                    await self.beat()
                self._failure = None
            except (StoreError, OverloadedError, TimeoutError) as exc:
                self._failure = None if isinstance(exc, TimeoutError) else exc
                log.warning("replica.unheard", replica=self.name, reason=str(exc))
                pause_seconds = RETRY_SECONDS
            if self._is_known and self.is_cut_off:
                self._begin_again()
                continue
            await asyncio.sleep(pause_seconds)
            if self._is_known and self.is_cut_off:  # the process was stopped
                self._begin_again()

    def _begin_again(self) -> None:
        """Stop everything, and be another one from now on."""
        name, self.name = self.name, _new_name()
        self._is_known = False
        self._pulse.stop()
        holdings = list(self._held.values())
        log.warning("replica.isolated", replica=name, stopped=sum(each.use == "working" for each in holdings))
        for each in holdings:
            self._lose(each)
        self._strays = {}

    def _lose(self, holding: Holding) -> None:
        """Stop the work: it is not this replica's any more."""
        self.drop(holding)
        holding.is_lost = True
        if holding.task is not None:
            holding.task.cancel()

    async def _keep_ending(self) -> None:
        while True:
            await self._has_ended.wait()
            self._has_ended.clear()
            ends = dict(self._ends)
            try:
                await self._leases.end(list(ends.values()))
            except (StoreError, OverloadedError):
                await asyncio.sleep(RETRY_SECONDS)
                self._has_ended.set()
                continue
            for token in ends:
                self._ends.pop(token, None)

    @property
    def is_cut_off(self) -> bool:
        """Whether the others may take this one for dead."""
        return not self._is_known or self._pulse.silent_seconds > CUT_OFF_SECONDS

    def require(self) -> None:
        """Make sure that the others take this one for alive.

        Raises:
            LeaseLostError: They may not.
        """
        if self.is_cut_off:
            why = f": {self._failure}" if self._failure is not None else ""
            slug = self._failure.slug if isinstance(self._failure, StorageFullError) else ""
            raise LeaseLostError(f"cut off from the database that the replicas share{why}", slug=slug)

    def require_held(self, db: Database, holding: Holding) -> None:
        """Make sure, within a transaction, that a lease is still this one's.

        Raises:
            LeaseLostError: It is not.
        """
        self.require()
        if holding.is_lost or not self._leases.is_held(db, holding.name, holding.token):
            raise LeaseLostError(f"another replica has taken over: {holding.name}")

    # What it holds

    def new_token(self) -> str:
        """Return a token for the taking of a lease."""
        return f"{self.name}.{next(self._numbers)}"

    def held(self, name: str) -> Holding | None:
        """Return the lease of that name, if something works under it."""
        holding = self._held.get(name)
        return holding if holding is not None and holding.use == "working" else None

    def hold(
        self, name: str, token: str, tell: Callable[[], str], task: asyncio.Task[Any] | None = None
    ) -> Holding:
        """Note that a lease was taken, and what works under it."""
        holding = self._held[name] = Holding(name, token, "working", self._clock(), tell=tell, task=task)
        return holding

    def claim(self, name: str, token: str, feed: FeedRow | None) -> None:
        """Note that a lease was taken for a refresh that is about to begin."""
        self._held[name] = Holding(name, token, "claimed", self._clock(), feed=feed)

    def claimed(self, name: str) -> Holding | None:
        """Return what was claimed, once."""
        holding = self._held.get(name)
        if holding is None or holding.use != "claimed":
            return None
        return self._held.pop(name)

    def keep(self, name: str, token: str) -> None:
        """Note that what worked under a lease was cancelled: it is given back, or left at the end."""
        self._held[name] = Holding(name, token, "cancelled", self._clock())

    def drop(self, holding: Holding) -> None:
        """Note that nothing works under a lease any more; it is not given back by that."""
        if self._held.get(holding.name) is holding:
            del self._held[holding.name]

    def end(self, name: str, token: str, outcome: str = "") -> None:
        """Have a lease given back, as soon as the database can be reached."""
        self._ends[token] = End(name, token, outcome)
        self._has_ended.set()

    def give_back(self, name: str) -> None:
        """Give back what was claimed, or what worked under it and was cancelled."""
        holding = self._held.get(name)
        if holding is not None and holding.use != "working":
            self.drop(holding)
            self.end(name, holding.token)


def _new_name() -> str:
    return secrets.token_hex(8)


@dataclass(slots=True, eq=False)
class Holding:
    """A lease that this replica has."""

    name: str
    token: str
    """Of its taking."""
    use: Literal["claimed", "working", "cancelled"]
    """Whether a refresh is about to begin under it, something works, or did and was cancelled."""
    since: float
    feed: FeedRow | None = None
    """Of a claim: the feed as it was then."""
    tell: Callable[[], str] = str
    """Says how far the work is."""
    told: str = ""
    """What the others know of that."""
    task: asyncio.Task[Any] | None = None
    """What is stopped when it is lost."""
    is_lost: bool = False
    """Whether another replica may have it: then nothing is written any more."""


# Its signs of life

BEAT_SECONDS: Final = 2.0
"""Between two signs of life."""
CUT_OFF_SECONDS: Final = 5.0
"""Less than `DEAD_SECONDS`, after which the others take it for dead."""
STUCK_SECONDS: Final = 30.0
"""A loop that has not come round for so long is not alive."""
_PULSE_SECONDS: Final = 0.25
"""Between two looks of the thread."""
_LATE_SECONDS: Final = BEAT_SECONDS + 0.5
"""After so long without a sign of life the thread gives one."""


class Pulse:
    """The signs of life of a replica, and a thread that gives them while the event loop is late.

        pulse = Pulse(leases.beat_in_thread)
        with pulse.beating():
            pulse.given("a replica's name", at=time.monotonic())    # the loop has given one itself
            pulse.silent_seconds

    An event loop with thousands of requests before it comes round after seconds only. Its replica is alive
    all the same: taken for dead, what it has just fetched would be fetched again by another (94 of 381
    documents, three replicas that were asked three times as much as two cores could answer).

    Args:
        beat: Gives a sign of life under a name that the others know, and says whether they still know it.
            Called in the thread; it raises `StoreError` or `OverloadedError`.
        clock: Monotonic seconds.
    """

    def __init__(self, beat: Callable[[str], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._beat = beat
        self._clock = clock
        self._changing = threading.Lock()
        self._name = ""
        """Empty: the others know none."""
        self._given_at = -math.inf
        self._seen_at = clock()
        """When the loop was seen to come round."""

    @property
    def silent_seconds(self) -> float:
        """Since the last sign of life; endless where the others know of none."""
        return self._clock() - self._given_at

    def seen(self) -> None:
        """Note that the loop has come round."""
        self._seen_at = self._clock()

    def given(self, name: str, *, at: float, by_loop: bool = True) -> None:
        """Note that a sign of life was given.

        Args:
            name: Under which.
            at: When it was sent.
            by_loop: Whether the loop has given it, under another name perhaps; of the thread's one counts
                only if the name is the same still.
        """
        with self._changing:
            if name == self._name:
                self._given_at = max(self._given_at, at)
            elif by_loop:
                self._name, self._given_at = name, at

    def stop(self) -> None:
        """Give none any more until the loop has given another one."""
        with self._changing:
            self._name, self._given_at = "", -math.inf

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Stand in for the loop until exit."""
        is_over = threading.Event()
        threading.Thread(target=self._run, args=(is_over,), name="pulse", daemon=True).start()
        try:
            yield
        finally:
            is_over.set()  # one that is being given revives nobody: see `given`

    def _run(self, is_over: threading.Event) -> None:
        while not is_over.wait(_PULSE_SECONDS):
            sent_at, name, silent_seconds = self._clock(), self._name, self.silent_seconds
            is_stuck = sent_at - self._seen_at > STUCK_SECONDS
            if not name or is_stuck or not _LATE_SECONDS <= silent_seconds < CUT_OFF_SECONDS:
                continue
            try:
                is_known = self._beat(name)
            except (StoreError, OverloadedError):
                continue
            if is_known:
                self.given(name, at=sent_at, by_loop=False)


# Waiting for what another replica does

LOOK_SECONDS: Final = 1.0
"""Between two looks at what is waited for."""


Heard = Callable[[str], None]
"""Told the progress in a lease."""


class Waits:
    """All in one process that wait for what another replica does, and follow how far it is.

        with waits.waiting(name, heard) as woken:
            await woken.wait()

    A notice of the database wakes whoever waits. One may be lost, and who dies sends none: so what is waited
    for is looked at each second, all of it in one query.
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._waits: dict[str, list[tuple[asyncio.Event, Heard]]] = {}

    @contextmanager
    def waiting(self, name: str, heard: Heard) -> Iterator[asyncio.Event]:
        """Be woken for a lease; from before it is looked at, so that no notice is missed."""
        wait = asyncio.Event(), heard
        self._waits.setdefault(name, []).append(wait)
        try:
            yield wait[0]
        finally:
            self._waits[name].remove(wait)
            if not self._waits[name]:
                del self._waits[name]

    def is_awaited(self, name: str) -> bool:
        """Whether anybody here waits for a lease."""
        return name in self._waits

    def wake(self, name: str) -> None:
        """Wake whoever waits for a lease."""
        for woken, _ in self._waits.get(name, ()):
            woken.set()

    def wake_all(self) -> None:
        """Wake everybody: notices may have been lost."""
        for name in list(self._waits):
            self.wake(name)

    async def run(self) -> None:
        """Look from time to time at what is waited for, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not self._waits:
                continue
            try:
                found = await self._leases.look(list(self._waits))
            except (StoreError, OverloadedError):
                continue
            for name, waits in list(self._waits.items()):
                lease = found.get(name)
                for woken, heard in waits:
                    if lease is None or not lease.is_live:
                        woken.set()
                    else:
                        heard(lease.progress)


# How a piece of work failed, as the others are told

_OF_DOCUMENTS: Final = {
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
    )
}


_OF_ITS_OWN: Final = {
    each.__name__: each for each in (StoreError, StorageFullError, WorkError, WorkTooLongError)
}


_CHOICE: Final = SeveralFeedsError.__name__


def outcome_of(error: BaseException) -> str:
    """Return an error as it is kept in a lease; empty where the others are to try for themselves.

    What says something of the publisher, or of what it sent, is the same everywhere; that this replica had
    too much to do, or too little memory, is not.
    """
    if not isinstance(error, WholefeedError):
        return ""
    if not isinstance(error, DocumentError):
        return json.dumps(_own(error)) if type(error).__name__ in _OF_ITS_OWN else ""
    plain = error.fresh_copy()
    name = type(plain).__name__
    if isinstance(plain, SeveralFeedsError):
        return json.dumps({"class": name, "url": plain.url, "feeds": [list(each) for each in plain.feeds]})
    if name not in _OF_DOCUMENTS or plain.slug == WorkTooLargeError.default_slug:
        return ""
    facts = {
        "url": plain.url,
        "publisher_status": plain.publisher_status,
        "retry_after_seconds": plain.retry_after_seconds,
    }
    return json.dumps({**_own(plain), **facts})


def _own(error: WholefeedError) -> dict[str, Any]:
    return {"class": type(error).__name__, "message": str(error.args[0]), "slug": error.slug}


def error_of(outcome: str, *, retry_after_seconds: float = 0.0) -> WholefeedError:
    """Return the error that an outcome tells of, to be raised.

    Args:
        outcome: As `outcome_of` has made it; it may be another version's.
        retry_after_seconds: When a document may be asked for again at the earliest.
    """
    found = json.loads(outcome)
    name = found.pop("class")
    if name == _CHOICE:
        feeds = tuple(Alternate(*each) for each in found["feeds"])
        choice = SeveralFeedsError(found["url"], feeds)
        return choice.fresh_copy(retry_after_seconds=retry_after_seconds) if retry_after_seconds else choice
    message = found.pop("message")
    if name in _OF_ITS_OWN:
        return _OF_ITS_OWN[name](message, slug=found["slug"])
    error = _OF_DOCUMENTS.get(name, DocumentError)(message, **found)
    return error.fresh_copy(retry_after_seconds=retry_after_seconds)


def remembered_seconds(outcome: str, *, is_opening: bool) -> float:
    """Return for how long a failure counts for those who did not wait for it.

    Args:
        outcome: As `outcome_of` has made it.
        is_opening: Whether nothing is stored that would say when the publisher may be asked again.
    """
    found = json.loads(outcome)
    if found["class"] in _OF_ITS_OWN:
        return opening.REMEMBERED_SECONDS
    if not is_opening:
        return 0.0
    return float(opening.remembered_seconds(found.get("retry_after_seconds")))


# Where the replicas keep who does what


class Leases:
    """The tables `lease` and `replica` of the database that the replicas share.

    Each coroutine is one transaction, and raises `StoreError` or `OverloadedError`, as `beat_in_thread` does.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    # Within a transaction of the store, in its thread

    def is_held(self, db: Database, name: str, token: str) -> bool:
        """Whether that taking of a lease is the one that counts."""
        return leases.is_held(db, name, token)

    def find(self, db: Database, name: str) -> LeaseRow | None:
        return leases.look(db, name)

    def take_new(self, db: Database, taking: Taking) -> Looked:
        """Take a lease on a feed in the transaction that makes it."""
        return leases.take(db, taking)

    # By themselves

    async def take(self, taking: Taking) -> Looked:
        """Take a lease if its judge says so."""
        return await self._store.write_loosely(partial(leases.take, taking=taking))

    async def end(self, ends: Sequence[End]) -> None:
        """Give leases back, and wake who waits for them."""
        await self._store.write_loosely(partial(leases.end, ends=ends))

    async def look(self, names: Sequence[str]) -> Mapping[str, LeaseRow]:
        """Return leases by name, those that there are."""
        return await self._store.read(partial(leases.look_all, names=names))

    async def beat(self, replica: str, progress: Sequence[tuple[str, str, str]]) -> Beat:
        """Give a sign of life, and tell how far things are: text, lease and token."""
        return await self._store.write_at_once(partial(leases.beat, replica=replica, progress=progress))

    def beat_in_thread(self, replica: str) -> bool:
        """Give a sign of life, in a thread which waits; return whether the replica is known."""
        return self._store.write_in_thread(partial(leases.beat_replica_again, name=replica))

    async def leave(self, replica: str) -> None:
        """Take a replica off at once."""
        # As `beat` does: a sign of life that is under way still would bring it back.
        await self._store.write_at_once(partial(leases.leave_replicas, name=replica))

    async def orphans(self, limit: int) -> Sequence[int]:
        """Return feeds whose refresh has ended with its replica."""
        return await self._store.read(partial(leases.orphans, limit=limit))

    async def unfinished(self) -> Sequence[int]:
        """Return the feeds whose walk has not ended and that nobody is at."""
        return await self._store.read(leases.unfinished)

    async def forget_old(self) -> None:
        """Delete what nobody asks for any more."""
        await self._store.write_loosely(leases.forget_old)
