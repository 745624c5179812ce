"""One replica among several: what it does itself, what it waits for, and when it stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from typing import Any

import pytest

from tests.patching import set_constant
from tests.service.sharing.leases_double import MemoryLeases
from wholefeed.errors import LeaseLostError, PublisherError, PublisherStatusError, UnknownFeedError
from wholefeed.service.results import Elsewhere
from wholefeed.service.sharing import BEAT_SECONDS, CUT_OFF_SECONDS, Shared
from wholefeed.service.sharing_port import Wanted
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables.leases import DEAD_SECONDS, Beat, feed_lease

URL = "https://o.test/feed"
NAME = feed_lease(1)


class MovableClock:
    """Seconds that pass for everybody, and those that a test adds."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_seconds


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what happens each second happen at once."""
    for name in ("LOOK_SECONDS", "BEAT_SECONDS", "ADOPT_SECONDS", "RETRY_SECONDS"):
        set_constant(monkeypatch, name, 0.01)


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def leases(clock: MovableClock) -> MemoryLeases:
    found = MemoryLeases(clock)
    found.feeds[1] = a_feed()
    return found


def a_feed(**values: Any) -> FeedRow:
    """A feed that was published."""
    empty = dict.fromkeys((each.name for each in fields(FeedRow)), None)
    return FeedRow(**{**empty, "id": 1, "url": URL, "digest": b"1", **values})


def wanted(
    *, is_due: bool = True, insists: bool = False, told: Elsewhere | None = None, heard: Any = None
) -> Wanted:
    return Wanted(
        feed=a_feed(),
        insists=lambda _: insists,
        is_due=lambda _: is_due,
        tell=lambda: told or Elsewhere(),
        heard=heard or (lambda _: None),
    )


@asynccontextmanager
async def a_replica(leases: MemoryLeases, clock: Callable[[], float] | None = None) -> AsyncIterator[Shared]:
    shared = Shared(leases, clock=clock or time.monotonic)
    leases.told.append(shared.waits.wake)
    await shared.member.beat()
    life = asyncio.create_task(shared.run())
    yield shared
    life.cancel()
    await asyncio.wait({life})


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.002)


class Work:
    """Something to be done, which goes on for as long as a test wants."""

    def __init__(self) -> None:
        self.begun = 0
        self.stopped = 0
        self.may_end = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, *_: object) -> str:
        self.begun += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        if self.error is not None:
            raise self.error
        return "opened"

    async def has_begun(self) -> None:
        await until(lambda: self.begun > 0)

    async def refresh(self, feed: FeedRow) -> None:
        await self()


async def test_what_one_replica_is_at_the_other_waits_for(leases: MemoryLeases) -> None:
    """It does the same when it is its turn: for a URL, that is to look at what the first one has made."""
    first, second = Work(), Work()
    async with a_replica(leases) as one, a_replica(leases) as other:
        opening = asyncio.create_task(one.open(URL, first))
        await until(lambda: first.begun == 1)
        waiting = asyncio.create_task(other.open(URL, second))
        await asyncio.sleep(0.05)
        assert second.begun == 0
        first.may_end.set()
        assert await opening == "opened"
        await until(lambda: second.begun == 1)
        second.may_end.set()
        assert await waiting == "opened"
        await until(lambda: not leases.leases)


async def test_a_refresh_that_another_replica_has_done_is_not_done_again(leases: MemoryLeases) -> None:
    """Unless something is due still, or somebody insists."""
    for is_due, insists, begun in ((False, False, 0), (True, False, 1), (False, True, 1)):
        first, second = Work(), Work()
        second.may_end.set()
        async with a_replica(leases) as one, a_replica(leases) as other:
            refreshing = asyncio.create_task(one.refresh(wanted(), first.refresh))
            await first.has_begun()
            want = wanted(is_due=is_due, insists=insists)
            waiting = asyncio.create_task(other.refresh(want, second.refresh))
            await asyncio.sleep(0.02)
            first.may_end.set()
            assert await refreshing is True
            assert await waiting is (begun == 1)
            assert second.begun == begun


async def test_who_waits_for_a_refresh_elsewhere_hears_how_far_it_is(leases: MemoryLeases) -> None:
    """As it goes on, and that it has ended."""
    work, heard = Work(), list[Elsewhere | None]()
    near = Elsewhere(is_confirmed=True)
    far = Elsewhere(is_walking=True, documents=3, entries=30, fetched=2, left=4, seconds=1.5)
    at = [near]
    async with a_replica(leases) as one, a_replica(leases) as other:
        want = Wanted(
            feed=a_feed(), insists=lambda _: False, is_due=lambda _: True, tell=lambda: at[0], heard=_ignore
        )
        refreshing = asyncio.create_task(one.refresh(want, work.refresh))
        await work.has_begun()
        want = wanted(is_due=False, heard=heard.append)
        waiting = asyncio.create_task(other.refresh(want, work.refresh))
        await until(lambda: near in heard)
        at[0] = far
        await until(lambda: far in heard)
        assert other.elsewhere(None, 1) == far  # type: ignore[arg-type]
        assert one.elsewhere(None, 1) is None  # type: ignore[arg-type]
        work.may_end.set()
        await asyncio.gather(refreshing, waiting)
        assert heard[-1] is None


def _ignore(_: object) -> None:
    """It is not waited for."""


async def test_a_feed_is_taken_for_its_first_refresh_as_it_is_made(leases: MemoryLeases) -> None:
    """Another replica that sees it in the next moment waits, and does not ask the publisher once more."""
    work = Work()
    work.may_end.set()
    async with a_replica(leases) as one, a_replica(leases) as other:
        note_claim = one.claim_new(None, 1)  # type: ignore[arg-type]
        note_claim()
        assert await other.claim(1, lambda _: True) is None
        taken = leases.leases[NAME].token
        assert await one.refresh(wanted(is_due=False), work.refresh) is True
        await until(lambda: not leases.leases)
        assert taken.startswith(one.member.name)
        assert work.begun == 1
        other.claim_new(None, 1)()  # type: ignore[arg-type]
        one.claim_new(None, 1)()  # type: ignore[arg-type]
        assert leases.leases[NAME].replica == other.member.name


async def test_a_feed_that_was_there_is_refreshed_as_it_was_when_it_was_taken(leases: MemoryLeases) -> None:
    """Two URLs lead to it: another replica may have refreshed it since the second opening has read it."""
    begun: list[FeedRow] = []

    async def refresh(feed: FeedRow) -> None:
        begun.append(feed)

    async with a_replica(leases) as one:
        leases.feeds[1] = a_feed(revision=7)
        one.claim_new(None, 1)()  # type: ignore[arg-type]
        assert await one.refresh(wanted(), refresh) is True
    assert [feed.revision for feed in begun] == [7]


async def test_a_failure_is_that_of_all_who_wait_and_of_those_who_ask_soon(leases: MemoryLeases) -> None:
    """docs/faults.md row 21: the later ones are told when to ask again."""
    first, second = Work(), Work()
    first.error = PublisherStatusError("expected a feed, got 410", url=URL, publisher_status=410)
    async with a_replica(leases) as one, a_replica(leases) as other:
        opening = asyncio.create_task(one.open(URL, first))
        await until(lambda: first.begun == 1)
        waiting = asyncio.create_task(other.open(URL, second))
        await asyncio.sleep(0.02)
        first.may_end.set()
        failed = await asyncio.gather(opening, waiting, return_exceptions=True)
        with pytest.raises(PublisherStatusError) as later:
            await other.open(URL, second)
    assert [str(each) for each in failed] == [str(first.error)] * 2
    assert [getattr(each, "answer_status", 0) for each in failed] == [410, 410]
    assert 50 < (later.value.retry_after_seconds or 0) <= 60
    assert second.begun == 0


async def test_a_feed_that_was_forgotten_is_refreshed_by_nobody(leases: MemoryLeases) -> None:
    """Who waits for it begins anew."""
    leases.feeds.clear()
    work = Work()
    async with a_replica(leases) as one:
        with pytest.raises(UnknownFeedError):
            await one.refresh(wanted(), work.refresh)
    assert work.begun == 0


async def test_what_a_dead_replica_was_at_is_done_by_who_waits_for_it(
    leases: MemoryLeases, clock: MovableClock
) -> None:
    """And by one that nobody asks, if none waits."""
    dead, work, adopted = Work(), Work(), list[FeedRow]()
    work.may_end.set()
    async with a_replica(leases) as one:
        lost = asyncio.create_task(one.refresh(wanted(), dead.refresh))
        await until(lambda: dead.begun == 1)
    async with a_replica(leases) as other:
        waiting = asyncio.create_task(other.refresh(wanted(), work.refresh))
        adopting = asyncio.create_task(other.adopt(lambda _: True, adopted.append))
        await asyncio.sleep(0.05)
        assert (work.begun, adopted) == (0, [])
        clock.ahead_seconds += DEAD_SECONDS
        assert await waiting is True
        await until(lambda: not leases.leases)
        leases.leave_behind(NAME, replica=one.member.name, feed=1)
        await until(lambda: bool(adopted))
        adopting.cancel()
        await asyncio.wait({adopting})
        assert await other.refresh(wanted(is_due=False), work.refresh) is True  # it was claimed for this
    assert work.begun == 2
    lost.cancel()
    with suppress(asyncio.CancelledError):
        await lost


@pytest.mark.fault("104")
async def test_a_replica_that_cannot_give_a_sign_of_life_stops_and_begins_again(
    leases: MemoryLeases, clock: MovableClock
) -> None:
    """It writes nothing of what it was at; then it is another one, and does it if it is still to be done."""
    work = Work()
    async with a_replica(leases, clock) as one:
        name = one.member.name
        refreshing = asyncio.create_task(one.refresh(wanted(), work.refresh))
        await until(lambda: work.begun == 1)
        fence = one.fence(1)
        assert fence is not None
        fence(None)  # type: ignore[arg-type]
        leases.is_down = True
        clock.ahead_seconds += CUT_OFF_SECONDS
        with pytest.raises(LeaseLostError):
            fence(None)  # type: ignore[arg-type]
        with pytest.raises(LeaseLostError):
            one.require()
        await until(lambda: work.stopped == 1)
        with pytest.raises(LeaseLostError):
            await refreshing
        leases.is_down = False
        await until(lambda: not one.member.is_cut_off)
        assert one.member.name != name
        with pytest.raises(LeaseLostError):
            fence(None)  # type: ignore[arg-type]
        again = asyncio.create_task(one.refresh(wanted(), work.refresh))
        await asyncio.sleep(0.02)
        assert work.begun == 1  # the others take the old one for alive still
        clock.ahead_seconds += DEAD_SECONDS - CUT_OFF_SECONDS
        await until(lambda: work.begun == 2)
        work.may_end.set()
        assert await again is True


@pytest.mark.fault("104a")
async def test_a_replica_whose_loop_is_late_is_alive(
    leases: MemoryLeases, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread gives its signs of life: what it was at goes on, and nothing is fetched again."""
    work = Work()

    async def late(*_: object) -> Beat:
        return await asyncio.Future[Beat]()

    async with a_replica(leases, clock) as one:
        name = one.member.name
        refreshing = asyncio.create_task(one.refresh(wanted(), work.refresh))
        await until(lambda: work.begun == 1)
        monkeypatch.setattr(leases, "beat", late)
        for _ in range(2):
            clock.ahead_seconds += CUT_OFF_SECONDS - BEAT_SECONDS
            at = clock() - 1
            await until(lambda at=at: leases.beats[name] > at)  # type: ignore[misc]
        one.require()
        assert (one.member.name, work.stopped) == (name, 0)
        work.may_end.set()
        assert await refreshing is True


@pytest.mark.fault("104")
async def test_a_replica_that_is_cut_off_by_a_full_database_says_so(
    leases: MemoryLeases, clock: MovableClock
) -> None:
    """Its signs of life cannot be written either; who asks for a new feed is told what is the matter."""
    async with a_replica(leases, clock) as one:
        leases.is_full = True
        clock.ahead_seconds += CUT_OFF_SECONDS
        slugs = set[str]()

        def is_told() -> bool:
            with pytest.raises(LeaseLostError) as caught:
                one.require()
            slugs.add(caught.value.slug)
            return "storage-full" in slugs

        await until(is_told)
        leases.is_full = False
        await until(lambda: not one.member.is_cut_off)


@pytest.mark.fault("103")
async def test_who_finds_that_another_has_taken_over_stops(leases: MemoryLeases) -> None:
    """The database is right, whatever a replica believes of itself."""
    work = Work()
    async with a_replica(leases) as one:
        refreshing = asyncio.create_task(one.refresh(wanted(is_due=False, insists=True), work.refresh))
        await until(lambda: work.begun == 1)
        fence = one.fence(1)
        leases.leases[NAME].token = "another's"
        leases.leases[NAME].replica = "another"
        assert fence is not None
        with pytest.raises(LeaseLostError):
            fence(None)  # type: ignore[arg-type]
        await until(lambda: work.stopped == 1)
        refreshing.cancel()
        await asyncio.wait({refreshing})


async def test_what_is_claimed_and_not_begun_is_given_back(
    leases: MemoryLeases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was to begin it was cancelled."""
    set_constant(monkeypatch, "CLAIM_SECONDS", 0.05)
    async with a_replica(leases) as one, a_replica(leases) as other:
        assert await one.claim(1, lambda _: True) == leases.feeds[1]
        assert await other.claim(1, lambda _: True) is None
        await until(lambda: not leases.leases)
        assert await other.claim(1, lambda _: False) is None
        assert await other.claim(1, lambda _: True) is not None
        other.release(1)
        await until(lambda: not leases.leases)


async def test_a_refresh_that_is_cancelled_leaves_its_lease_until_it_is_released(
    leases: MemoryLeases,
) -> None:
    """At the end of the program others take it up; a feed that is forgotten is nobody's."""
    work = Work()
    async with a_replica(leases) as one:
        refreshing = asyncio.create_task(one.refresh(wanted(), work.refresh))
        await until(lambda: work.begun == 1)
        refreshing.cancel()
        await asyncio.wait({refreshing})
        assert work.stopped == 1
        await asyncio.sleep(0.1)
        assert NAME in leases.leases
        one.release(1)
        await until(lambda: not leases.leases)


async def test_a_task_is_done_by_one_replica_at_a_time(leases: MemoryLeases) -> None:
    """And by the next one after it, also when it failed."""
    async with a_replica(leases) as one, a_replica(leases) as other:
        with suppress(ZeroDivisionError):
            async with one.task("purge") as is_mine:
                assert is_mine
                async with other.task("purge") as is_others:
                    assert not is_others
                raise ZeroDivisionError
        await until(lambda: not leases.leases)
        async with other.task("purge") as is_mine:
            assert is_mine


@pytest.mark.fault("104")
async def test_what_could_not_be_given_back_is_when_the_database_is_there(leases: MemoryLeases) -> None:
    """Nobody waits longer for it than for the database."""
    work = Work()
    work.error = PublisherError("broken", url=URL)
    async with a_replica(leases) as one:
        refreshing = asyncio.create_task(one.refresh(wanted(), work.refresh))
        await until(lambda: work.begun == 1)
        leases.is_down = True
        work.may_end.set()
        with pytest.raises(PublisherError):
            await refreshing
        await asyncio.sleep(0.05)
        assert not leases.leases[NAME].outcome
        leases.is_down = False
        await until(lambda: bool(leases.leases[NAME].outcome))
