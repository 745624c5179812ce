"""wholefeed.service.sharing_hosts: what several replicas together ask of one host."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from tests.patching import set_constant
from tests.postgres import Cluster
from tests.service.sharing.shared_hosts import MemoryTable, Replica, replicas
from wholefeed.errors import PublisherError
from wholefeed.fetch.hosts import Rest
from wholefeed.service import sharing_hosts
from wholefeed.store.postgres_migrate import migrate_database
from wholefeed.store.postgres_upkeep import HostAnswer, HostChange, HostRows

URL = "https://example.org/feed"


@pytest.fixture
def own_postgres_url(own_postgres: Cluster) -> Iterator[str]:
    """A database on a server that the test may stop."""
    with own_postgres.database() as url:
        asyncio.run(migrate_database(url))
        yield url


@pytest.fixture(params=["memory", "postgres"])
def table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryTable | str]:
    """A table in memory, and the one of a database."""
    if request.param == "memory":
        yield MemoryTable()
        return
    set_constant(monkeypatch, "LATE_SECONDS", 30.0)
    yield request.getfixturevalue("postgres_url")


class Host:
    """A publisher that notes who asks it, and when."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.running = 0
        self.most = 0
        self.asked: Counter[str] = Counter()
        self.begun_at: list[float] = []

    async def serve(self, replica: Replica, *, rest_seconds: float | None = None) -> None:
        async with replica.gate.slot("example.org", 443, url=URL) as slot:
            self.begun_at.append(time.monotonic())
            self.asked[replica.name] += 1
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await asyncio.sleep(self.seconds)
            finally:
                self.running -= 1
            slot.answered(is_strained=rest_seconds is not None, rest_seconds=rest_seconds)


async def until(condition: object, seconds: float = 5.0) -> None:
    """Wait for something that others bring about."""
    assert callable(condition)
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


async def test_a_host_gets_no_more_at_once_than_it_may_whoever_asks(table: MemoryTable | str) -> None:
    """docs/faults.md row 24, over replicas: their places are one host's, and each replica gets its share."""
    host = Host(0.005)
    async with replicas(table, per_host=2) as made:
        await asyncio.gather(*(host.serve(replica) for replica in made for _ in range(20)))
        assert host.most == 2
        assert not any(replica.counts.unshared for replica in made)
    assert host.asked == {"a": 20, "b": 20, "c": 20}


async def test_a_replica_with_a_long_queue_delays_no_other(table: MemoryTable | str) -> None:
    """Who comes late with one request waits for a few, not for all that another replica has."""
    host = Host(0.02)
    async with replicas(table, per_host=1) as (one, other, _):
        crowd = [asyncio.create_task(host.serve(one)) for _ in range(40)]
        await until(lambda: host.asked["a"] >= 2)
        before = host.asked["a"]
        await host.serve(other)
        assert host.asked["a"] - before <= 12  # those that had their turn while `b` slept between two looks
        for task in crowd:
            task.cancel()


async def test_requests_are_spaced_out_over_replicas(table: MemoryTable | str) -> None:
    """fetch.min_interval_per_host_seconds holds between two requests, whoever makes them."""
    host = Host()
    async with replicas(table, per_host=4, interval=0.15) as made:
        await asyncio.gather(*(host.serve(replica) for replica in made for _ in range(2)))
    begun = sorted(host.begun_at)
    gaps = [later - earlier for earlier, later in pairwise(begun)]
    assert min(gaps) > 0.1  # clocks and ways differ by some milliseconds


async def test_retry_after_that_one_was_told_refuses_the_others_at_once(table: MemoryTable | str) -> None:
    """docs/faults.md row 55: also those that wait already; and polling knows it after that."""
    host = Host(0.1)
    async with replicas(table, per_host=1) as (one, other, third):
        asked = asyncio.create_task(host.serve(one, rest_seconds=60))
        await until(lambda: host.running)
        waiting = [asyncio.create_task(host.serve(other)) for _ in range(3)]
        await asked
        ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 1.0)
        assert {type(each) for each in ended} == {PublisherError}
        with pytest.raises(PublisherError) as caught:
            await host.serve(third)
        assert caught.value.slug == "host-backoff"
        assert 58 < (caught.value.retry_after_seconds or 0) <= 60
        assert 58 < third.gate.blocked_seconds("example.org") <= 60
    assert host.asked == {"a": 1}


async def test_a_breaker_that_one_replica_opened_rests_the_host_for_all(table: MemoryTable | str) -> None:
    """docs/faults.md row 21: nobody looks the name up for a minute; each replica logs what it learns once."""
    async with replicas(table) as (one, other, _):
        async with one.gate.slot("example.org", 443, url=URL) as slot:
            slot.failed("dns-error", is_heard=False)
        with capture_logs() as logs:
            for _ in range(2):
                with pytest.raises(PublisherError) as caught:
                    await Host().serve(other)
                assert caught.value.slug == "dns-error"
        assert [log["event"] for log in logs] == ["host.rested"]
        assert 58 < other.gate.blocked_seconds("example.org", 443) <= 60


async def test_strain_at_one_replica_halves_what_another_asks(table: MemoryTable | str) -> None:
    """A 429 without Retry-After halves the pace for all."""
    host = Host(0.05)
    async with replicas(table, per_host=4) as (one, other, _):
        async with one.gate.slot("example.org", 443, url=URL) as slot:
            slot.answered(is_strained=True)
        await until(lambda: one.hosts.is_idle)
        await asyncio.gather(*(host.serve(other) for _ in range(2)))
        host.most = 0
        crowd = [asyncio.create_task(host.serve(other)) for _ in range(4)]
        await asyncio.gather(*crowd)
        assert host.most <= 3


async def test_a_request_costs_an_exchange_to_enter_and_one_to_leave(table: MemoryTable | str) -> None:
    """A host that one replica asks at a time: two round trips a request, and none of them in vain."""
    async with replicas(table) as (one, _, _):
        await Host().serve(one)
        await until(lambda: one.hosts.is_idle)
        before = one.records.exchanges
        for _ in range(10):
            await Host().serve(one)
            await until(lambda: one.hosts.is_idle)
        assert one.records.exchanges - before == 20
        assert one.records.conflicts == 0


async def test_what_enters_together_goes_together(table: MemoryTable | str) -> None:
    """A hundred hosts that are asked at once cost a few exchanges, not a hundred."""
    async with replicas(table) as (one, _, _):
        await Host().serve(one)
        await until(lambda: one.hosts.is_idle)
        before = one.records.exchanges

        async def ask(name: str) -> None:
            async with one.gate.slot(name, 443, url=URL):
                await asyncio.sleep(0.05)

        await asyncio.gather(*(ask(f"host-{number}") for number in range(32)))
        await until(lambda: one.hosts.is_idle)
        assert one.records.exchanges - before <= 8


async def test_who_waits_is_woken_by_a_notice_when_it_is_its_turn() -> None:
    """Nobody sleeps through a turn: the notice names the replica whose turn it is and the host."""
    table = MemoryTable()
    host = Host(0.3)
    async with replicas(table, per_host=1) as (one, other, _):
        asked = asyncio.create_task(host.serve(one))
        await until(lambda: host.running)
        waiting = asyncio.create_task(host.serve(other))
        await asked
        begun = time.monotonic()
        await until(lambda: host.asked["b"])
        assert time.monotonic() - begun < sharing_hosts.LONGEST_POLL_SECONDS / 2
        await waiting
    assert "a host b example.org" in table.notices


async def test_a_request_that_is_cancelled_while_it_waits_gives_its_turn_up(table: MemoryTable | str) -> None:
    """A reader that leaves keeps no place and no turn, at no replica."""
    host = Host(0.1)
    async with replicas(table, per_host=1) as (one, other, third):
        asked = asyncio.create_task(host.serve(one))
        await until(lambda: host.running)
        waiting = asyncio.create_task(host.serve(other))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.wait({waiting, asked})
        async with asyncio.timeout(0.9):  # sooner than a claim lapses
            await host.serve(third)
    assert host.asked == {"a": 1, "c": 1}


@pytest.mark.parametrize("has_notices", [True, False])
async def test_replicas_that_all_want_one_place_do_not_stop_each_other(has_notices: bool) -> None:
    """Changes that come in each other's way, wake each other, and are given up: all requests end."""
    table = MemoryTable()
    table.has_notices = has_notices
    for number in range(10):
        host = Host(0.002 * (number % 2))
        async with replicas(table, per_host=1) as made, asyncio.timeout(10):
            requests = [asyncio.create_task(host.serve(replica)) for replica in made for _ in range(4)]
            await asyncio.sleep(0.003 * number)
            requests[number].cancel()
            await asyncio.wait(requests)
        assert host.most == 1


# The database is away


async def test_a_database_that_fails_leaves_a_replica_to_its_own_rules() -> None:
    """Requests go on at once by the process's own rules; that is logged once, counted, and ends by itself."""
    table = MemoryTable()
    host = Host(0.01)
    async with replicas(table, per_host=2) as (one, _, _):
        await host.serve(one)
        table.fails = True
        with capture_logs() as logs:
            await asyncio.gather(*(host.serve(one) for _ in range(10)))
            assert host.most == 2
            table.fails = False
            await until(lambda: not one.records.is_alone)
            await host.serve(one)
        await until(lambda: one.hosts.is_idle)
    assert [log["event"] for log in logs] == ["hosts.unshared", "hosts.shared"]
    assert one.counts.unshared == 10
    assert '"running"' not in table.rows["example.org"].state


async def test_a_database_that_is_slow_is_not_waited_for() -> None:
    """Half a second, then a request goes on alone; the place that comes too late is given back at its end."""
    table = MemoryTable()
    host = Host(1.0)
    async with replicas(table, per_host=1) as (one, other, _):
        await host.serve(one)
        table.delay_seconds = 2 * sharing_hosts.LATE_SECONDS
        begun = time.monotonic()
        asked = asyncio.create_task(host.serve(one))
        await until(lambda: host.running)
        assert 0.4 < time.monotonic() - begun < 0.9
        await until(lambda: '"running"' in table.rows["example.org"].state)
        table.delay_seconds = 0.0
        await asked
        await until(lambda: not one.records.is_alone)
        host.seconds = 0.0
        async with asyncio.timeout(3):
            await host.serve(other)
    assert one.counts.unshared == 1


async def test_a_place_of_which_nobody_knows_whether_it_was_given_is_given_back() -> None:
    """The connection was lost in the middle of an exchange that had its effect."""
    table = MemoryTable()
    host = Host()
    async with replicas(table, per_host=1) as (one, other, _):
        await host.serve(one)
        await until(lambda: one.hosts.is_idle)
        table.fails_afterwards = True
        await host.serve(one)
        assert '"running"' in table.rows["example.org"].state
        table.fails_afterwards = False
        async with asyncio.timeout(3):
            await host.serve(other)
    assert host.asked == {"a": 2, "b": 1}


async def test_rest_that_was_asked_for_while_the_database_was_away_is_told_to_all_later() -> None:
    """A Retry-After of an hour outlasts a restart of the database."""
    table = MemoryTable()
    async with replicas(table) as (one, other, _):
        await Host().serve(one)
        table.fails = True
        await Host().serve(one)
        await Host().serve(one, rest_seconds=60)
        table.fails = False
        await until(lambda: not one.records.is_alone and one.hosts.is_idle)
        given = await other.hosts.enter("example.org", 443, is_new=False, at_most=None)
        assert isinstance(given, Rest)


async def test_a_mistake_in_what_shares_stops_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong there is logged and counted, and requests go on; then it tries again."""
    set_constant(monkeypatch, "_AFTER_ERROR_SECONDS", 0.05)
    table = MemoryTable()
    host = Host()
    async with replicas(table) as (one, _, _):
        await host.serve(one)
        table.is_broken = True
        with capture_logs() as logs:
            async with asyncio.timeout(1):
                await host.serve(one)
        assert [log["event"] for log in logs][:2] == ["background.failed", "hosts.unshared"]
        assert one.counts.troubles["hosts"] == 1
        table.is_broken = False
        await until(lambda: not one.records.is_alone)
        await host.serve(one)
    assert one.counts.unshared == 1


async def test_what_is_left_to_be_told_at_the_end_is_told() -> None:
    """A replica that stops leaves no place behind that others would wait for."""
    table = MemoryTable()
    async with replicas(table) as (one, _, _):
        await Host().serve(one)
    assert '"running"' not in table.rows["example.org"].state


async def test_places_of_a_replica_that_died_are_free_when_it_is_missed() -> None:
    """It is killed in the middle of a request; the others go on when its signs of life are too old."""
    table = MemoryTable()
    host = Host(60.0)
    async with replicas(table, per_host=1) as (one, other, _):
        asked = asyncio.create_task(host.serve(one))
        await until(lambda: host.running)
        host.seconds = 0.0
        waiting = asyncio.create_task(host.serve(other))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        table.lost.add("a")
        async with asyncio.timeout(2):
            await waiting
        asked.cancel()


async def test_a_database_that_was_restarted_is_asked_again(
    own_postgres_url: str, own_postgres: Cluster
) -> None:
    """Requests go on while it is away; then replicas share what they know as before."""
    host = Host()
    async with replicas(own_postgres_url, names="ab") as (one, other):
        await host.serve(one)
        await asyncio.to_thread(own_postgres.stop, "immediate")
        await host.serve(one)
        assert one.records.is_alone
        await host.serve(one, rest_seconds=60)
        await asyncio.to_thread(own_postgres.start)
        await until(lambda: not one.records.is_alone and one.hosts.is_idle, seconds=20)
        with pytest.raises(PublisherError):
            await host.serve(other)
    assert host.asked == {"a": 3}


async def test_the_database_says_which_replicas_are_dead(postgres_url: str, shared_postgres: Cluster) -> None:
    """Six seconds without a sign of life, by its own clock; one that has not given its first is not dead."""
    now = "extract(epoch FROM clock_timestamp())"
    for name, seconds in (("dead", 6.5), ("late", 5)):
        shared_postgres.run(f"INSERT INTO replica VALUES ('{name}', 0, {now} - {seconds})", postgres_url)
    rows = HostRows(postgres_url)
    try:
        assert (await rows.swap([])).lost == {"dead"}
    finally:
        await rows.close()


async def test_a_statement_changes_what_it_was_made_from_and_nothing_else(postgres_url: str) -> None:
    """One statement for many hosts: each is changed, or the answer says what stands there."""
    rows = HostRows(postgres_url)
    try:
        first = HostChange("a", "", "x/1", "1", 0.0)
        answer = await rows.swap([first, HostChange("b", "", "x/2", "2", 9e9)])
        assert {name: row.state for name, row in answer.rows.items()} == {"a": "1", "b": "2"}
        assert abs(answer.now - time.time()) < 5
        answer = await rows.swap(
            [HostChange("b", "x/0", "y/1", "no", 0.0), HostChange("a", "x/1", "y/2", "yes", 0.0)]
        )
        assert {name: (row.stamp, row.state) for name, row in answer.rows.items()} == {
            "a": ("y/2", "yes"),
            "b": ("x/2", "2"),
        }
        assert await rows.sweep() == 1
        assert isinstance(await rows.swap([]), HostAnswer)
    finally:
        await rows.close()
