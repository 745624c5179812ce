"""The work of one replica among several on one PostgreSQL. There is no leader: each asks the tables.

    async with open_sharing(store) as sharing:      # one of the replicas; alone where nobody shares the store
        await sharing.refresh(wanted, work)

A flight that begins here takes the lease of its feed or URL first. Where another live replica has it, the
flight waits for the end of that: so whoever waits for a flight waits for the one that runs, wherever it does.

From top to bottom: the flights and claims (`Shared`), what is to be done after a look at a lease (`judge`),
this replica's name, its signs of life and what it holds (`Membership`), waiting for the others (`Waits`), and
how a failure is told to them (`outcome_of`). The tables are `wholefeed.store.tables.leases`.
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
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
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
from wholefeed.service.results import UnderWay
from wholefeed.service.sharing_port import Fence, RefreshWork, Sharing, Wanted
from wholefeed.service.sources import SeveralFeedsError
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import leases
from wholefeed.store.tables.leases import Beat, End, Judge, LeaseRow, Looked, Verdict, feed_lease

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
        yield Sharing()
        return
    shared = Shared(store)
    store.engine.listen("lease", shared.waits.wake)
    store.engine.on_lost(shared.waits.wake_all)
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
_Decide = Callable[[bool, LeaseRow | None, FeedRow | None], Verdict]
"""A judge that is also given whether another replica has been waited for."""


class Shared(Sharing):
    """Shares the work with the other replicas, for one process; `run` goes on as long as it is used."""

    is_shared = True

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self.member = Membership(store, clock)
        self.member.on_loss = self._look_everywhere
        self.waits = Waits(store)
        self._looks_everywhere = True
        self._waited = Counter[str]()
        """Leases of others that are waited for here."""

    @property
    def replicas(self) -> int:
        return self.member.replicas

    async def run(self) -> None:
        """Give signs of life, and follow what others do; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.member.run())
            tasks.create_task(self.waits.run())

    def require(self) -> None:
        self.member.require()

    # Flights

    async def refresh(self, wanted: Wanted, work: RefreshWork) -> bool:
        name, feed_id = feed_lease(wanted.feed.id), wanted.feed.id

        decide = partial(judge_refresh, self.member.name, wanted)

        def heard(progress: str) -> None:
            wanted.heard(UnderWay.of(progress))

        while True:
            claim = self.member.find(name, "claimed")
            if claim is not None:
                self.member.drop(claim)
                token, feed = claim.token, claim.feed or wanted.feed
            else:
                try:
                    token, looked = await self._taken(name, decide, heard, feed_id)
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
        kind = "choose" if is_choosing else "open"
        name = f"{kind}:{sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()}"  # it may be a long one

        def decide(has_waited: bool, lease: LeaseRow | None, _: FeedRow | None) -> Verdict:
            return judge(lease, self.member.name, has_waited=has_waited, is_opening=True)

        while True:
            token, _ = await self._taken(name, decide, _nobody)
            with suppress(LeaseLostError):
                return await self._working(name, token, work(), str)

    async def _taken(
        self, name: str, decide: _Decide, heard: Heard, feed: int | None = None, *, tells: bool = False
    ) -> tuple[str, Looked]:
        """Wait until a lease is this one's, or nothing is left to do; `tells` as for `leases.take`."""
        has_waited = False
        while True:
            with self.waits.waiting(name, heard) as woken:
                token, looked = await self._take(name, partial(decide, has_waited), feed, tells=tells)
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
            return token, looked

    async def _take(
        self,
        name: str,
        judge: Judge,
        feed: int | None = None,
        *,
        skips_locked: bool = False,
        tells: bool = False,
    ) -> tuple[str, Looked]:
        """Take a lease if its judge says so; return the token of that, and what came of it."""
        self.member.require()
        replica, token = self.member.name, self.member.new_token()

        def take(db: Database) -> Looked:
            return leases.take(
                db,
                name,
                replica=replica,
                token=token,
                judge=judge,
                feed=feed,
                skips_locked=skips_locked,
                tells=tells,
            )

        return token, await self._store.write_loosely(take)

    async def _working(
        self, name: str, token: str, work: Coroutine[Any, Any, T], tell: Callable[[], str]
    ) -> T:
        """Work under a lease that was taken, and give it back with what came of it.

        Raises:
            LeaseLostError: It was lost in the middle.
        """
        task = asyncio.create_task(work)
        task.add_done_callback(retrieve_failure)
        holding = self.member.hold(name, token, tell=tell, task=task)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:  # the lease stays: at the end of the program others take it up
            self.member.hold(name, token, "cancelled")
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
        name = feed_lease(feed)
        holding = self.member.find(name, "working") or Holding(name, "", "working", 0.0, is_lost=True)
        return partial(self.member.require_held, holding=holding)

    # Claims

    def claim_new(self, db: Database, feed: int) -> Callable[[], None]:
        name, token = feed_lease(feed), self.member.new_token()
        looked = leases.take(
            db, name, replica=self.member.name, token=token, judge=judge_claim(lambda _: True), feed=feed
        )
        if looked.verdict is not Verdict.TAKE:
            return lambda: None

        def note() -> None:
            # Under its lock: one that was found there may have become another one since it was read.
            self.member.hold(name, token, "claimed", feed=looked.feed)

        return note

    async def claim(self, feed: int, is_wanted: Callable[[FeedRow], bool]) -> FeedRow | None:
        name = feed_lease(feed)
        token, looked = await self._take(name, judge_claim(is_wanted), feed, skips_locked=True)
        if looked.verdict is not Verdict.TAKE:
            return None
        self.member.hold(name, token, "claimed", feed=looked.feed)
        return looked.feed

    def release(self, feed: int) -> None:
        for use in ("claimed", "cancelled"):
            if (holding := self.member.find(feed_lease(feed), use)) is not None:
                self.member.give_back(holding)

    @asynccontextmanager
    async def task(self, name: str) -> AsyncIterator[bool]:
        lease, replica = f"task:{name}", self.member.name
        token, looked = await self._take(lease, lambda found, _: judge(found, replica))
        if looked.verdict is not Verdict.TAKE:
            yield False
            return
        holding = self.member.hold(lease, token)
        try:
            yield True
        finally:
            self.member.give_back(holding)

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
        # What this replica has itself is being given back: taken before that, no other would hear of it.
        nobodys = judge_claim(lambda _: True)
        token, looked = await self._taken(
            name, lambda _, lease, feed: nobodys(lease, feed), lambda _: on_wait(), tells=True
        )
        holding, was = self.member.hold(name, token, tell=tell), looked.lease
        if was is None or was.replica == self.member.name:
            return Kept(holding)
        seconds = was.silent_seconds if was.ended_seconds is None else was.ended_seconds
        return Kept(holding, before=was.outcome or was.progress, age_seconds=seconds or 0.0)

    def let_go(self, kept: Kept, told: str) -> None:
        """Leave what was kept to others, who are told something with it."""
        self.member.give_back(kept.holding, told)

    def is_waiting(self, name: str) -> bool:
        """Whether another replica has what somebody here waits for."""
        return name in self._waited and not self.member.is_cut_off

    async def reach(self) -> None:
        """Make sure that the database answers."""
        await self._store.read(partial(leases.look_all, names=[]))

    def elsewhere(self, db: Database, feed: int) -> UnderWay | None:
        lease = leases.look(db, feed_lease(feed))
        is_another = lease is not None and lease.is_live and lease.replica != self.member.name
        return UnderWay.of(lease.progress) if lease is not None and is_another else None

    # What others leave

    async def adopt(self, is_wanted: Callable[[FeedRow], bool], begin: Callable[[FeedRow], object]) -> None:
        loop = asyncio.get_running_loop()
        forget_at = loop.time() + FORGET_SECONDS
        while True:
            try:
                await self._adopt(is_wanted, begin)
                if loop.time() >= forget_at:
                    forget_at = loop.time() + FORGET_SECONDS
                    await self._store.write_loosely(leases.forget_old)
            except (StoreError, OverloadedError) as exc:
                log.warning("replica.unheard", replica=self.member.name, reason=str(exc))
            await asyncio.sleep(ADOPT_SECONDS)

    async def _adopt(self, is_wanted: Callable[[FeedRow], bool], begin: Callable[[FeedRow], object]) -> None:
        if self._looks_everywhere:
            left = await self._store.read(leases.unfinished)
            self._looks_everywhere = False
        else:
            left = await self._store.read(partial(leases.orphans, limit=MAX_ADOPTED))
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


def judge(
    lease: LeaseRow | None,
    replica: str,
    *,
    has_waited: bool = False,
    insists: bool = False,
    is_opening: bool = False,
    is_done: bool = False,
) -> Verdict:
    """Decide what is to be done about a piece of work. Pure: no clock, no database.

    Args:
        lease: As it is stored, if it is.
        replica: Which one looks.
        has_waited: Whether it has waited for another one that was at this: how that went is its own result.
        insists: Whether it is to be done whatever another one has come to.
        is_opening: Whether nothing is stored yet: what failed just now is not tried again at once.
        is_done: Whether there is nothing to do any more, as far as the feed's row says.
    """
    if lease is not None and lease.is_live:
        return Verdict.TAKE if lease.replica == replica else Verdict.WAIT
    if insists:
        return Verdict.TAKE
    is_others = lease is not None and lease.replica != replica  # its own failures it remembers itself
    if lease is not None and is_others and lease.outcome and lease.ended_seconds is not None:
        counts_seconds = remembered_seconds(lease.outcome, is_opening=is_opening)
        if has_waited or 0 <= lease.ended_seconds < counts_seconds:
            return Verdict.FAILED
    return Verdict.DONE if is_done else Verdict.TAKE


def judge_refresh(
    replica: str, wanted: Wanted, has_waited: bool, lease: LeaseRow | None, feed: FeedRow | None
) -> Verdict:
    """Decide about the refresh of a feed, as its row is now."""
    assert feed is not None, "else it is gone"
    is_new = feed.digest is None
    return judge(
        lease,
        replica,
        has_waited=has_waited,
        insists=wanted.insists(has_waited),
        is_opening=is_new,
        is_done=not is_new and not wanted.is_due(feed),
    )


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

BEAT_SECONDS: Final = 2.0
"""Between two signs of life."""
CUT_OFF_SECONDS: Final = 5.0
"""Less than `DEAD_SECONDS`, after which the others take it for dead."""
RETRY_SECONDS: Final = 0.5
"""After the database could not be reached."""
CLAIM_SECONDS: Final = 10.0
"""For so long a claim waits for its refresh to begin."""
STUCK_SECONDS: Final = 30.0
"""A loop that has not come round for so long is not alive."""
_PULSE_SECONDS: Final = 0.25
"""Between two looks of the thread."""
_LATE_SECONDS: Final = BEAT_SECONDS + 0.5
"""After so long without a sign of life the thread gives one."""


class Membership:
    """This process among the replicas: its name, its signs of life, and the leases that it holds.

        member = Membership(store)
        await member.beat()
        await member.run()          # until it is cancelled; `leave` at the end

    A replica that could give no sign of life for `CUT_OFF_SECONDS` by its own clock takes itself for dead, a
    second before the others do: it stops what it does, writes nothing of it any more, and begins again under
    a new name. A process may be stopped in the middle of a transaction, too, where it looks at no clock: so
    each one makes sure that the lease is still its own (`require_held`).

    While the event loop is late a thread gives the signs of life. A loop with thousands of requests before it
    comes round after seconds only, and its replica is alive all the same: taken for dead, what it has just
    fetched would be fetched again by another (94 of 381 documents, three replicas that were asked three times
    as much as two cores could answer).
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self.name = _new_name()
        self.replicas = 1
        """How many are alive, as far as is known."""
        self.on_loss: Callable[[], None] = lambda: None
        """Called when the database has lost what the replicas have told each other."""
        self._sign = ("", 0.0)
        """The last sign of life: under which name, and when it was sent."""
        self._seen_at = clock()
        """When the loop was seen to come round."""
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

    @property
    def silent_seconds(self) -> float:
        """Since the last sign of life; endless where the others know of none under this name."""
        name, sent_at = self._sign
        return self._clock() - sent_at if name == self.name else math.inf

    @property
    def is_cut_off(self) -> bool:
        """Whether the others may take this one for dead."""
        return self.silent_seconds > CUT_OFF_SECONDS

    def require(self) -> None:
        """Make sure that the others take this one for alive, or raise `LeaseLostError`."""
        if self.is_cut_off:
            why = f": {self._failure}" if self._failure is not None else ""
            slug = self._failure.slug if isinstance(self._failure, StorageFullError) else ""
            raise LeaseLostError(f"cut off from the database that the replicas share{why}", slug=slug)

    def require_held(self, db: Database, holding: Holding) -> None:
        """Make sure, within a transaction, that a lease is still this one's, or raise `LeaseLostError`."""
        self.require()
        if holding.is_lost or not leases.is_held(db, holding.name, holding.token):
            raise LeaseLostError(f"another replica has taken over: {holding.name}")

    async def run(self) -> None:
        """Give signs of life, and give back what has ended, until cancelled."""
        is_over = threading.Event()
        threading.Thread(target=self._stand_in, args=(is_over,), name="pulse", daemon=True).start()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_beating())
                tasks.create_task(self._keep_ending())
        finally:
            is_over.set()

    async def beat(self) -> None:
        """Give a sign of life; what turns out to be somebody else's is stopped.

        Raises:
            StoreError: The database failed.
            OverloadedError: It could not be reached.
        """
        sent_at, name, holdings = self._clock(), self.name, list(self._held.values())
        news = [(each, text) for each in holdings if (text := each.tell()) != each.told]
        progress = [(text, each.name, each.token) for each, text in news]
        beat = await self._store.engine.write_at_once(partial(leases.beat, replica=name, progress=progress))
        if name != self.name:
            return
        for each, text in news:
            each.told = text
        if self._sign[0] == name and not beat.was_known:
            log.warning("replica.forgotten", replica=name)
            self.on_loss()
        self._sign, self.replicas = (name, sent_at), beat.replicas
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
        name, self.name = self.name, _new_name()
        if self._ends:
            await self._store.write_loosely(partial(leases.end, ends=list(self._ends.values())))
        # As `beat` does: a sign of life that is under way still would bring it back.
        await self._store.engine.write_at_once(partial(leases.leave_replicas, name=name))

    async def _keep_beating(self) -> None:
        while True:
            pause_seconds = BEAT_SECONDS
            self._seen_at = self._clock()
            is_known = self._sign[0] == self.name
            try:
                async with asyncio.timeout(CUT_OFF_SECONDS - (self.silent_seconds if is_known else 0.0)):
                    await self.beat()
                self._failure = None
            except (StoreError, OverloadedError, TimeoutError) as exc:
                self._failure = None if isinstance(exc, TimeoutError) else exc
                log.warning("replica.unheard", replica=self.name, reason=str(exc))
                pause_seconds = RETRY_SECONDS
            if self._has_begun_again():
                continue
            await asyncio.sleep(pause_seconds)
            self._has_begun_again()  # the process was stopped

    def _has_begun_again(self) -> bool:
        """Where the others may take it for dead, stop everything and be another one from now on."""
        if self._sign[0] != self.name or not self.is_cut_off:
            return False
        name, self.name = self.name, _new_name()
        holdings = list(self._held.values())
        log.warning("replica.isolated", replica=name, stopped=sum(each.use == "working" for each in holdings))
        for each in holdings:
            self._lose(each)
        self._strays = {}
        return True

    def _stand_in(self, is_over: threading.Event) -> None:
        """Give signs of life while the loop is late; in a thread."""
        while not is_over.wait(_PULSE_SECONDS):
            at, (name, sent_at) = self._clock(), self._sign
            is_stuck = at - self._seen_at > STUCK_SECONDS
            if name != self.name or is_stuck or not _LATE_SECONDS <= at - sent_at < CUT_OFF_SECONDS:
                continue
            with suppress(StoreError, OverloadedError):
                is_known = self._store.engine.write_in_thread(partial(leases.beat_replica_again, name=name))
                if is_known and self._sign == (name, sent_at):  # a name that was given up is none any more
                    self._sign = name, at

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
                await self._store.write_loosely(partial(leases.end, ends=list(ends.values())))
            except (StoreError, OverloadedError):
                await asyncio.sleep(RETRY_SECONDS)
                self._has_ended.set()
                continue
            for token in ends:
                self._ends.pop(token, None)

    # What it holds

    def new_token(self) -> str:
        """Return a token for the taking of a lease."""
        return f"{self.name}.{next(self._numbers)}"

    def hold(self, name: str, token: str, use: Use = "working", **facts: Any) -> Holding:
        """Note that a lease was taken, and what for; the facts are fields of `Holding`."""
        holding = self._held[name] = Holding(name, token, use, self._clock(), **facts)
        return holding

    def find(self, name: str, use: Use) -> Holding | None:
        """Return the lease of that name, if it is held for that."""
        holding = self._held.get(name)
        return holding if holding is not None and holding.use == use else None

    def drop(self, holding: Holding) -> None:
        """Note that nothing works under a lease any more; it is not given back by that."""
        if self._held.get(holding.name) is holding:
            del self._held[holding.name]

    def end(self, name: str, token: str, outcome: str = "") -> None:
        """Have a lease given back, as soon as the database can be reached."""
        self._ends[token] = End(name, token, outcome)
        self._has_ended.set()

    def give_back(self, holding: Holding, outcome: str = "") -> None:
        """Have a lease given back that nothing works under any more."""
        self.drop(holding)
        self.end(holding.name, holding.token, outcome)


def _new_name() -> str:
    return secrets.token_hex(8)


Use = Literal["claimed", "working", "cancelled"]
"""Whether a refresh is about to begin under a lease, something works, or did and was cancelled: then it is
given back by `Shared.release`, or left to the others at the end."""


@dataclass(slots=True, eq=False)
class Holding:
    """A lease that this replica has."""

    name: str
    token: str
    """Of its taking."""
    use: Use
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

    def __init__(self, store: Store) -> None:
        self._store = store
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
                found = await self._store.read(partial(leases.look_all, names=list(self._waits)))
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

_TOLD: Final = {
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
_CHOICE: Final = SeveralFeedsError.__name__


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
    facts: dict[str, Any] = {"class": name, "message": str(told.args[0]), "slug": told.slug}
    if isinstance(told, DocumentError):
        if told.slug == WorkTooLargeError.default_slug:
            return ""
        facts["url"] = told.url
        facts["publisher_status"] = told.publisher_status
        facts["retry_after_seconds"] = told.retry_after_seconds
    return json.dumps(facts)


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
    error = _TOLD.get(name, DocumentError)(found.pop("message"), **found)
    if isinstance(error, DocumentError):
        return error.fresh_copy(retry_after_seconds=retry_after_seconds)
    return error


def remembered_seconds(outcome: str, *, is_opening: bool) -> float:
    """Return for how long a failure counts for those who did not wait for it.

    Args:
        outcome: As `outcome_of` has made it.
        is_opening: Whether nothing is stored that would say when the publisher may be asked again.
    """
    found = json.loads(outcome)
    if not issubclass(_TOLD.get(found["class"], DocumentError), DocumentError):
        return opening.REMEMBERED_SECONDS
    if not is_opening:
        return 0.0
    return float(opening.remembered_seconds(found.get("retry_after_seconds")))
