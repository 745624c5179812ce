"""One replica among several: its own work, its waits, and its stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from tests.patching import set_constant
from tests.service.sharing.shared_store import MovableClock, SharedStore, until
from wholefeed.errors import (
    LeaseLostError,
    PublisherError,
    StorageFullError,
    StoreError,
    UnknownFeedError,
)
from wholefeed.service.replica import BEAT_SECONDS, CUT_OFF_SECONDS, Replica
from wholefeed.service.results import UnderWay
from wholefeed.service.sharing import Sharing, Wanted
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables.leases import DEAD_SECONDS, Beat, feed_lease

URL = "https://o.test/feed"
NAME = feed_lease(1)
DOWN = StoreError("the database is down")
LEFT_BEHIND = (
    "INSERT INTO lease (name, feed, replica, token, began_at) VALUES (:name, 1, :replica, 'left', 1)"
)
TAKEN_OVER = "UPDATE lease SET token = 'another''s', replica = 'another' WHERE name = :name"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let periodic tasks run at once."""
    for name in ("LOOK_SECONDS", "ADOPT_SECONDS", "RETRY_SECONDS"):
        set_constant(monkeypatch, name, 0.01)
    # Leases here that two signs of life find unused are released: on a busy machine a lease
    # may be in the database for a moment before its replica hears of it.
    set_constant(monkeypatch, "BEAT_SECONDS", 0.2)


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[SharedStore]:
    async with SharedStore.open(postgres_url) as store:
        yield store


@pytest.fixture
async def feed(store: SharedStore) -> FeedRow:
    """The only feed."""
    return await store.a_feed()


def wanted(
    feed: FeedRow,
    *,
    is_due: bool = True,
    insists: bool = False,
    tell: Callable[[], UnderWay] = UnderWay,
) -> Wanted:
    return Wanted(feed=feed, insists=lambda _: insists, is_due=lambda _: is_due, tell=tell)


@asynccontextmanager
async def a_replica(store: SharedStore, clock: MovableClock | None = None) -> AsyncIterator[Sharing]:
    replica = Replica(store.as_store(), clock or MovableClock())
    store.engine.listen("lease", replica.wake)
    await replica.beat()
    life = asyncio.create_task(replica.run())
    yield Sharing(replica)
    life.cancel()
    await asyncio.wait({life})


class Work:
    """Work that goes on until a test ends it."""

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

    async def has_begun(self, times: int = 1) -> None:
        await until(lambda: self.begun >= times)

    async def refresh(self, feed: FeedRow) -> None:
        await self()


@pytest.mark.parametrize(
    ("is_due", "insists", "begun"), [(False, False, 0), (True, False, 1), (False, True, 1)]
)
async def test_a_refresh_that_another_replica_has_done_is_not_done_again(
    store: SharedStore, feed: FeedRow, is_due: bool, insists: bool, begun: int
) -> None:
    """Unless something is due still, or somebody insists."""
    first, second = Work(), Work()
    second.may_end.set()
    async with a_replica(store) as one, a_replica(store) as other:
        refreshing = asyncio.create_task(one.refresh(wanted(feed), first.refresh))
        await first.has_begun()
        want = wanted(feed, is_due=is_due, insists=insists)
        waiting = asyncio.create_task(other.refresh(want, second.refresh))
        await asyncio.sleep(0.05)
        first.may_end.set()
        assert await refreshing is True
        assert await waiting is (begun == 1)
        assert second.begun == begun


async def test_who_waits_for_a_refresh_elsewhere_hears_how_far_it_is(
    store: SharedStore, feed: FeedRow
) -> None:
    """The waiter sees its progress, and its end."""
    work = Work()
    near = UnderWay(is_confirmed=True)
    far = UnderWay(is_walking=True, documents=3, entries=30, fetched=2, left=4, seconds=1.5)
    at = [near]
    async with a_replica(store) as one, a_replica(store) as other:
        want = wanted(feed, tell=lambda: at[0])
        refreshing = asyncio.create_task(one.refresh(want, work.refresh))
        await work.has_begun()
        waiting = asyncio.create_task(other.refresh(wanted(feed, is_due=False), work.refresh))
        await until(lambda: other.heard(1) == near)
        at[0] = far
        await until(lambda: other.heard(1) == far)
        assert await store.read(lambda db: other.elsewhere(db, 1)) == far
        assert await store.read(lambda db: one.elsewhere(db, 1)) is None
        work.may_end.set()
        await asyncio.gather(refreshing, waiting)
        assert other.heard(1) is None


async def test_a_feed_that_was_forgotten_is_refreshed_by_nobody(store: SharedStore, feed: FeedRow) -> None:
    """The waiter begins anew."""
    work = Work()
    async with a_replica(store) as one:
        await store.execute("DELETE FROM feed")
        with pytest.raises(UnknownFeedError):
            await one.refresh(wanted(feed), work.refresh)
    assert work.begun == 0


async def test_a_refresh_that_is_cancelled_leaves_its_lease_until_it_is_released(
    store: SharedStore, feed: FeedRow
) -> None:
    """Others continue it; a forgotten feed has no lease."""
    work = Work()
    async with a_replica(store) as one:
        refreshing = asyncio.create_task(one.refresh(wanted(feed), work.refresh))
        await work.has_begun()
        refreshing.cancel()
        await asyncio.wait({refreshing})
        assert work.stopped == 1
        async with one.task("purge"):  # the table shows the release, too
            pass

        async def is_over() -> bool:
            return await store.lease("task:purge") is None

        await until(is_over)
        assert await store.lease(NAME) is not None
        one.release(1)
        await until(store.has_none)


async def test_a_feed_is_taken_for_its_first_refresh_as_it_is_made(store: SharedStore, feed: FeedRow) -> None:
    """Another replica does not ask the publisher again."""
    work = Work()
    work.may_end.set()
    async with a_replica(store) as one, a_replica(store) as other:
        await store.own.write(lambda db: one.claim_new(db, 1))
        assert await other.claim(1, lambda _: True) is None
        taken = await store.lease(NAME)
        assert taken is not None
        assert taken.replica == one.replica.name
        assert await one.refresh(wanted(feed, is_due=False), work.refresh) is True
        await until(store.has_none)
        assert work.begun == 1
        await store.own.write(lambda db: other.claim_new(db, 1))
        await store.own.write(lambda db: one.claim_new(db, 1))
        taken = await store.lease(NAME)
        assert taken is not None
        assert taken.replica == other.replica.name


async def test_a_feed_that_was_there_is_refreshed_as_it_was_when_it_was_taken(
    store: SharedStore, feed: FeedRow
) -> None:
    """Another replica may have refreshed it since the second URL's opening."""
    begun: list[FeedRow] = []

    async def refresh(feed: FeedRow) -> None:
        begun.append(feed)

    async with a_replica(store) as one:
        await store.execute("UPDATE feed SET revision = 7")
        await store.own.write(lambda db: one.claim_new(db, 1))
        assert await one.refresh(wanted(feed), refresh) is True
    assert [feed.revision for feed in begun] == [7]


async def test_what_a_dead_replica_was_at_is_done_by_who_waits_for_it(
    store: SharedStore, feed: FeedRow
) -> None:
    """An idle replica does it, if none waits."""
    dead, work, adopted = Work(), Work(), list[FeedRow]()
    work.may_end.set()
    async with a_replica(store) as one:
        lost = asyncio.create_task(one.refresh(wanted(feed), dead.refresh))
        await dead.has_begun()
    async with a_replica(store) as other:
        waiting = asyncio.create_task(other.refresh(wanted(feed), work.refresh))
        adopting = asyncio.create_task(other.adopt(lambda _: True, adopted.append))
        await asyncio.sleep(0.05)
        assert (work.begun, adopted) == (0, [])
        adopting.cancel()  # or, on a busy machine, it is before the one that waits
        await asyncio.wait({adopting})
        await store.age(DEAD_SECONDS, one.replica.name)
        assert await waiting is True
        await until(store.has_none)
        adopting = asyncio.create_task(other.adopt(lambda _: True, adopted.append))
        await store.execute(LEFT_BEHIND, name=NAME, replica=one.replica.name)
        await until(lambda: bool(adopted))
        adopting.cancel()
        await asyncio.wait({adopting})
        assert await other.refresh(wanted(feed, is_due=False), work.refresh) is True  # it was claimed for it
    assert work.begun == 2
    lost.cancel()
    with suppress(asyncio.CancelledError):
        await lost


@pytest.mark.fault("104")
async def test_a_replica_that_cannot_give_a_sign_of_life_stops_and_begins_again(
    store: SharedStore, feed: FeedRow, clock: MovableClock
) -> None:
    """The replica drops its unfinished work, gets a new identity, and does the rest."""
    work = Work()
    async with a_replica(store, clock) as one:
        name = one.replica.name
        refreshing = asyncio.create_task(one.refresh(wanted(feed), work.refresh))
        await work.has_begun()
        fence = one.fence(1)
        assert fence is not None
        await store.own.write(fence)
        store.error = DOWN
        clock.ahead_seconds += CUT_OFF_SECONDS
        with pytest.raises(LeaseLostError):
            await store.own.write(fence)
        with pytest.raises(LeaseLostError):
            one.require()
        await until(lambda: work.stopped == 1)
        with pytest.raises(LeaseLostError):
            await refreshing
        store.error = None
        await until(lambda: not one.replica.is_cut_off)
        assert one.replica.name != name
        with pytest.raises(LeaseLostError):
            await store.own.write(fence)
        again = asyncio.create_task(one.refresh(wanted(feed), work.refresh))
        await asyncio.sleep(0.05)
        assert work.begun == 1  # the others still think the old one alive
        await store.age(DEAD_SECONDS, name)
        await work.has_begun(2)
        work.may_end.set()
        assert await again is True


@pytest.mark.fault("104")
async def test_a_replica_that_is_cut_off_waits_for_no_other(
    store: SharedStore, feed: FeedRow, clock: MovableClock
) -> None:
    """The replica could not learn of the other one's end."""
    work = Work()
    async with a_replica(store) as one, a_replica(store, clock) as other:
        refreshing = asyncio.create_task(one.refresh(wanted(feed), work.refresh))
        await work.has_begun()
        waiting = asyncio.create_task(other.refresh(wanted(feed), work.refresh))
        await until(lambda: other.heard(1) is not None)
        await asyncio.sleep(0.05)
        assert not waiting.done()
        store.error = DOWN
        clock.ahead_seconds += CUT_OFF_SECONDS
        async with asyncio.timeout(300):
            with pytest.raises(LeaseLostError):
                await waiting
        store.error = None
        work.may_end.set()
        assert await refreshing is True


@pytest.mark.fault("104a")
async def test_a_replica_whose_loop_is_late_is_alive(
    store: SharedStore, feed: FeedRow, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread sends its signs of life; nothing is fetched again."""
    work = Work()

    async def late(*_: object) -> Beat:
        return await asyncio.Future[Beat]()

    async with a_replica(store, clock) as one:
        name = one.replica.name
        refreshing = asyncio.create_task(one.refresh(wanted(feed), work.refresh))
        await work.has_begun()
        monkeypatch.setattr(store, "write_at_once", late)
        for times in (1, 2):
            clock.ahead_seconds += CUT_OFF_SECONDS - BEAT_SECONDS
            await until(lambda times=times: store.in_thread >= times)  # type: ignore[misc]
            await until(lambda: one.replica.silent_seconds < BEAT_SECONDS)
        one.require()
        assert (one.replica.name, work.stopped) == (name, 0)
        work.may_end.set()
        assert await refreshing is True


@pytest.mark.fault("104")
async def test_a_replica_that_is_cut_off_by_a_full_database_says_so(
    store: SharedStore, clock: MovableClock
) -> None:
    """A request for a new feed gets the reason."""
    async with a_replica(store, clock) as one:
        store.error = StorageFullError("the database cannot be written")
        clock.ahead_seconds += CUT_OFF_SECONDS
        slugs = set[str]()

        def is_told() -> bool:
            with pytest.raises(LeaseLostError) as caught:
                one.require()
            slugs.add(caught.value.slug)
            return "storage-full" in slugs

        await until(is_told)
        store.error = None
        await until(lambda: not one.replica.is_cut_off)


@pytest.mark.fault("103")
async def test_who_finds_that_another_has_taken_over_stops(store: SharedStore, feed: FeedRow) -> None:
    """The database outranks a replica's belief about itself; the rest is done afterwards."""
    work = Work()
    async with a_replica(store) as one:
        want = wanted(feed, is_due=False, insists=True)
        refreshing = asyncio.create_task(one.refresh(want, work.refresh))
        await work.has_begun()
        fence = one.fence(1)
        assert fence is not None
        await store.execute(TAKEN_OVER, name=NAME)
        with pytest.raises(LeaseLostError):
            await store.own.write(fence)
        await until(lambda: work.stopped == 1)
        await work.has_begun(2)  # the other one is dead
        work.may_end.set()
        assert await refreshing is True


async def test_what_somebody_here_waits_for_is_adopted_by_nobody_else_here(
    store: SharedStore, feed: FeedRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiter continues it; an unused claim would only delay that."""
    set_constant(monkeypatch, "LOOK_SECONDS", 0.5)
    dead, work, adopted = Work(), Work(), list[FeedRow]()
    work.may_end.set()
    async with a_replica(store) as one:
        lost = asyncio.create_task(one.refresh(wanted(feed), dead.refresh))
        await dead.has_begun()
    async with a_replica(store) as other:
        waiting = asyncio.create_task(other.refresh(wanted(feed), work.refresh))
        await until(lambda: other.heard(1) is not None)
        adopting = asyncio.create_task(other.adopt(lambda _: True, adopted.append))
        await store.age(DEAD_SECONDS, one.replica.name)
        assert await waiting is True
        assert adopted == []
        adopting.cancel()
        await asyncio.wait({adopting})
    lost.cancel()
    await asyncio.wait({lost})


async def test_walks_are_taken_up_when_the_database_has_lost_who_was_at_them(
    store: SharedStore, feed: FeedRow
) -> None:
    """After a crash of the server no leases of dead replicas are found."""
    adopted = list[FeedRow]()
    async with a_replica(store) as one:
        adopting = asyncio.create_task(one.adopt(lambda _: True, adopted.append))
        await until(lambda: not one.replica.is_forgotten)
        await store.execute("UPDATE feed SET is_walking = 1")
        await asyncio.sleep(0.1)
        assert adopted == []
        await store.execute("DELETE FROM replica")
        await until(lambda: bool(adopted))
        adopting.cancel()
        await asyncio.wait({adopting})


async def test_what_is_claimed_and_not_begun_is_given_back(store: SharedStore, feed: FeedRow) -> None:
    """The starter of the work was cancelled."""
    async with a_replica(store) as one, a_replica(store) as other:
        assert await one.claim(1, lambda _: True) == feed
        assert await other.claim(1, lambda _: True) is None
        await until(store.has_none)
        assert await other.claim(1, lambda _: False) is None
        assert await other.claim(1, lambda _: True) is not None
        other.release(1)
        await until(store.has_none)


async def test_a_task_is_done_by_one_replica_at_a_time(store: SharedStore) -> None:
    """The next one does it afterwards, also after a failure."""
    async with a_replica(store) as one, a_replica(store) as other:
        with suppress(ZeroDivisionError):
            async with one.task("purge") as is_mine:
                assert is_mine
                async with other.task("purge") as is_others:
                    assert not is_others
                raise ZeroDivisionError
        await until(store.has_none)
        async with other.task("purge") as is_mine:
            assert is_mine


@pytest.mark.fault("104")
async def test_what_could_not_be_given_back_is_when_the_database_is_there(
    store: SharedStore, feed: FeedRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for the sign of life that would find it unused."""
    set_constant(monkeypatch, "BEAT_SECONDS", 60.0)
    work = Work()
    work.error = PublisherError("broken", url=URL)

    async def outcome() -> str:
        lease = await store.lease(NAME)
        assert lease is not None
        return lease.outcome

    async def is_told() -> bool:
        return bool(await outcome())

    async with a_replica(store) as one:
        refreshing = asyncio.create_task(one.refresh(wanted(feed), work.refresh))
        await work.has_begun()
        store.error = DOWN
        work.may_end.set()
        with pytest.raises(PublisherError):
            await refreshing
        await asyncio.sleep(0.05)
        assert not await outcome()
        store.error = None
        await until(is_told)
