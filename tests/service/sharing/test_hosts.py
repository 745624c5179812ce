"""Requests of all replicas together to one host, and to a web archive."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.patching import set_constant
from tests.service.sharing.shared_hosts import Asking, replicas
from tests.service.sharing.shared_store import SharedStore, until
from wholefeed.errors import PublisherError, StoreError
from wholefeed.fetch.web_archive import Turns
from wholefeed.service.replica import CUT_OFF_SECONDS
from wholefeed.service.sharing_hosts import ReplicaTurns, next_turn
from wholefeed.store.tables.leases import DEAD_SECONDS

URL = "https://example.org/feed"
NAME = "host:example.org"


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[SharedStore]:
    async with SharedStore.open(postgres_url) as store:
        yield store


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten a turn that others want to a test's time."""
    set_constant(monkeypatch, "SLICE_SECONDS", 0.1)
    set_constant(monkeypatch, "RETRY_SECONDS", 0.05)
    set_constant(monkeypatch, "LATE_SECONDS", 30.0)


class Host:
    """A publisher that notes the replica and time of each request."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.running = 0
        self.most = 0
        self.asked: Counter[str] = Counter()
        self.begun_at: list[float] = []

    async def serve(self, replica: Asking, *, rest_seconds: float | None = None) -> None:
        async with replica.gate.slot("example.org", 443, url=URL) as slot:
            self.begun_at.append(time.monotonic())
            self.asked[replica.name] += 1
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await asyncio.sleep(self.seconds)
            finally:
                self.running -= 1
            slot.note_answer(is_strained=rest_seconds is not None, rest_seconds=rest_seconds)


async def test_a_host_gets_no_more_at_once_than_it_may_whoever_asks(store: SharedStore) -> None:
    """docs/faults.md row 24, over replicas: each has its turn."""
    host = Host(0.01)
    async with replicas(store, per_host=2) as made:
        await asyncio.gather(*(host.serve(replica) for replica in made for _ in range(20)))
        assert host.most == 2
        assert not any(replica.counts.unshared for replica in made)
    assert host.asked == {"a": 20, "b": 20, "c": 20}


async def test_a_replica_with_a_long_queue_delays_no_other(store: SharedStore) -> None:
    """A late request waits for the end of a turn only."""
    host = Host(0.05)
    async with replicas(store, per_host=1) as (one, other, _):
        crowd = [asyncio.create_task(host.serve(one)) for _ in range(200)]
        await until(lambda: host.asked["a"] >= 2)
        await host.serve(other)
        assert host.asked["a"] < 100
        for task in crowd:
            task.cancel()


async def test_who_wants_a_turn_before_its_holder_has_heard_of_it_is_not_forgotten(
    store: SharedStore,
) -> None:
    """The notice may overtake the answer to the transaction of the turn."""
    host = Host(0.05)
    async with replicas(store, per_host=1, names="a") as (one,):
        crowd = [asyncio.create_task(host.serve(one)) for _ in range(200)]
        await asyncio.sleep(0)
        one.hosts.wanted(NAME)
        await until(lambda: host.running > 0)
        before = await store.lease(NAME)
        assert before is not None

        async def is_given_up() -> bool:
            now = await store.lease(NAME)
            return now is None or now.token != before.token or now.ended_seconds is not None

        await until(is_given_up, 5.0)
        for task in crowd:
            task.cancel()


async def test_retry_after_that_one_was_told_refuses_the_others(store: SharedStore) -> None:
    """docs/faults.md row 55: also requests that wait already, and later polls."""
    host = Host(0.1)
    async with replicas(store, per_host=1) as (one, other, third):
        asked = asyncio.create_task(host.serve(one, rest_seconds=60))
        await until(lambda: host.running > 0)
        waiting = [asyncio.create_task(host.serve(other)) for _ in range(3)]
        await asked
        ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 2.0)
        assert {type(each) for each in ended} == {PublisherError}
        with pytest.raises(PublisherError) as caught:
            await host.serve(third)
        assert caught.value.slug == "host-backoff"
        assert 58 < (caught.value.retry_after_seconds or 0) <= 60
        assert 58 < third.gate.blocked_seconds("example.org") <= 60
    assert host.asked == {"a": 1}


async def test_a_turn_that_is_made_use_of_costs_nothing_more(store: SharedStore) -> None:
    """A host with one asking replica costs one turn, released when idle."""
    async with replicas(store) as (one, _, _):
        for _ in range(10):
            await Host().serve(one)
        before = await store.lease(NAME)
        await Host().serve(one)
        now = await store.lease(NAME)
        assert before is not None
        assert now is not None
        assert now.token == before.token
        await until(store.has_none)


# The database is away


async def test_a_database_that_fails_leaves_a_replica_to_its_own_rules(store: SharedStore) -> None:
    """The failure is logged once, counted, and ends by itself."""
    host = Host(0.01)
    async with replicas(store, per_host=2, names="a") as (one,):
        store.error = StoreError("the database is down")
        with capture_logs() as logs:
            await asyncio.gather(*(host.serve(one) for _ in range(10)))
            assert host.most == 2
            store.error = None
            await until(lambda: not one.hosts.is_alone)
            await host.serve(one)
        told = [log["event"] for log in logs if log["event"].startswith("hosts.")]
    assert told == ["hosts.unshared", "hosts.shared"]
    assert one.counts.unshared == 10


async def test_a_database_that_is_slow_is_not_waited_for(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After half a second a request goes on alone; the late turn is released."""
    set_constant(monkeypatch, "LATE_SECONDS", 0.5)
    host = Host()
    async with replicas(store, per_host=1) as (one, other, _):
        store.delay_seconds = 1.0
        begun = time.monotonic()
        await host.serve(one)
        assert 0.4 < time.monotonic() - begun < 0.95
        assert one.counts.unshared == 1
        store.delay_seconds = 0.0
        await until(lambda: not one.hosts.is_alone)
        async with asyncio.timeout(3):
            await host.serve(other)


async def test_nobody_waits_for_long_for_a_database_that_hears_signs_of_life_alone(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait is half a second at most, each time, before any turn."""
    set_constant(monkeypatch, "LATE_SECONDS", 0.5)
    set_constant(monkeypatch, "BEAT_SECONDS", 0.1)
    host = Host()
    async with replicas(store, per_host=1, names="a") as (one,):
        store.delay_seconds = 3.0
        for _ in range(4):
            begun = time.monotonic()
            await host.serve(one)
            assert time.monotonic() - begun < 0.95
            await until(lambda: not one.hosts.is_alone)
        store.delay_seconds = 0.0


async def test_who_waits_for_a_turn_goes_on_alone_when_it_is_cut_off(store: SharedStore) -> None:
    """The database can no longer tell of the released turn."""
    host = Host(0.2)
    async with replicas(store, per_host=1, names="ab") as (one, other):
        asked = [asyncio.create_task(host.serve(one))]
        await until(lambda: host.running > 0)
        host.seconds = 0.0
        asked.append(asyncio.create_task(host.serve(other)))
        await asyncio.sleep(0.1)
        assert host.asked["b"] == 0
        store.error = StoreError("the database is down")
        other.clock.ahead_seconds += CUT_OFF_SECONDS
        await until(lambda: host.asked["b"] == 1)
        assert other.counts.unshared == 1
        await asyncio.gather(*asked)
        store.error = None


async def test_the_turn_of_a_replica_that_died_goes_on_with_what_it_has_told(store: SharedStore) -> None:
    """The others go on when its signs of life are too old."""
    host = Host(60.0)
    async with replicas(store, per_host=2) as (one, other, _):
        async with one.gate.slot("example.org", 443, url=URL) as slot:
            slot.note_answer(is_strained=True)
        asked = asyncio.create_task(host.serve(one))
        await until(lambda: host.running > 0)
        await one.replica.beat()
        lease = await store.lease(NAME)
        assert lease is not None
        assert "pace" in lease.progress
        host.seconds = 0.0
        waiting = asyncio.create_task(host.serve(other))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await store.age(DEAD_SECONDS, one.replica.name)
        async with asyncio.timeout(3):
            await waiting
        asked.cancel()


ARCHIVE = "https://web.archive.org"


@given(st.lists(st.floats(0, 40), min_size=1, max_size=60), st.integers(1, 6))
def test_no_minute_has_more_turns_than_it_may(pauses: list[float], per_minute: int) -> None:
    """R33: replicas reserve turns one after the other, none in the past."""
    now, taken = 1000.0, list[float]()
    for pause in pauses:
        now += pause
        turn = next_turn(taken[-per_minute:], per_minute, now=now)
        assert turn >= now
        taken.append(turn)
    assert taken == sorted(taken)
    for earlier, later in zip(taken, taken[per_minute:], strict=False):
        assert later - earlier >= 60 - 1e-6


async def test_replicas_share_the_turns_at_an_archive(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R33: five requests a minute in all; the sixth waits."""
    set_constant(monkeypatch, "LATE_SECONDS", 30.0)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async with SharedStore.open(postgres_url) as store, replicas(store, names="ab") as made:
        one, other = (
            Turns(reserve=ReplicaTurns(each.replica, ARCHIVE, per_minute=5).reserve, sleep=sleep)
            for each in made
        )
        for _ in range(2):
            await one.take()
            await other.take()
        await one.take()
        assert waited == []
        await other.take()
        assert waited == [pytest.approx(60, abs=1)]
        await other.take()
        assert len(waited) == 2
