"""proxy.hosts: politeness. Time is a number here, and nobody sleeps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from proxy.errors import PublisherError
from proxy.hosts import HostGate, backoff_seconds

NOW = 1_700_000_000.0


class Clock:
    """A clock that stands still until a sleep moves it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def a_gate(
    clock: Clock | None = None, *, concurrency: int = 32, per_host: int = 4, interval: float = 0
) -> HostGate:
    clock = clock or Clock()
    return HostGate(
        concurrency=concurrency,
        per_host=per_host,
        min_interval_seconds=interval,
        clock=clock,
        sleep=clock.sleep,
    )


class Crowd:
    """Requests that hold their place until they are told to go."""

    def __init__(self, gate: HostGate) -> None:
        self._gate = gate
        self._tasks: list[asyncio.Task[None]] = []
        self.running: list[str] = []
        self.leave = asyncio.Event()

    async def _request(self, host: str) -> None:
        async with self._gate.slot(host, url=f"http://{host}/"):
            self.running.append(host)
            await self.leave.wait()

    async def arrives(self, *hosts: str) -> None:
        self._tasks += [asyncio.create_task(self._request(host)) for host in hosts]
        await settled()

    async def goes(self) -> list[BaseException | None]:
        self.leave.set()
        return await asyncio.gather(*self._tasks, return_exceptions=True)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def a_crowd(gate: HostGate) -> AsyncIterator[Crowd]:
    crowd = Crowd(gate)
    yield crowd
    await crowd.goes()


async def test_a_host_gets_no_more_requests_at_once_than_it_may() -> None:
    """FAULTS 24."""
    async with a_crowd(a_gate(per_host=2)) as crowd:
        await crowd.arrives("a", "a", "a", "b")
        assert crowd.running == ["a", "a", "b"]


async def test_no_more_requests_run_at_once_than_may_in_all() -> None:
    async with a_crowd(a_gate(concurrency=3)) as crowd:
        await crowd.arrives("a", "b", "c", "d")
        assert crowd.running == ["a", "b", "c"]


async def test_a_long_queue_of_one_host_does_not_starve_another() -> None:
    """FAULTS 24: 5,000 links at one host leave places for the others."""
    async with a_crowd(a_gate(concurrency=3, per_host=2)) as crowd:
        await crowd.arrives(*["victim"] * 500, "other")
        assert crowd.running == ["victim", "victim", "other"]


async def test_a_queue_is_served_in_order() -> None:
    gate = a_gate(per_host=1)
    order: list[int] = []

    async def request(number: int) -> None:
        async with gate.slot("a", url="http://a/"):
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(request(number) for number in range(20)))
    assert order == list(range(20))


async def test_a_place_comes_back_when_a_request_fails_or_is_cancelled() -> None:
    gate = a_gate(per_host=1, concurrency=1)
    with pytest.raises(ZeroDivisionError):
        async with gate.slot("a", url="http://a/"):
            raise ZeroDivisionError
    async with a_crowd(gate) as crowd:
        await crowd.arrives("a", "a")
        for task in crowd._tasks:
            task.cancel()
        await settled()
    async with gate.slot("a", url="http://a/"):
        assert len(gate) == 1
    assert len(gate) == 0


async def test_requests_of_one_host_are_spaced_out() -> None:
    """Design, section 2: fetch.min_interval_per_host_seconds."""
    clock = Clock()
    gate = a_gate(clock, interval=2.0)
    starts = []
    for host in ("a", "a", "b", "a"):
        async with gate.slot(host, url="http://a/"):
            starts.append((host, clock.now))
    assert starts == [("a", 100.0), ("a", 102.0), ("b", 102.0), ("a", 104.0)]
    assert clock.slept == [2.0, 2.0]


async def test_a_host_that_asked_to_be_left_alone_is() -> None:
    """FAULTS 55."""
    clock = Clock()
    gate = a_gate(clock)
    gate.penalize("a", gate.now() + 60)
    clock.now += 20
    with pytest.raises(PublisherError) as caught:
        async with gate.slot("a", url="http://a/feed"):
            pass
    assert (caught.value.slug, caught.value.retry_after_seconds) == ("host-backoff", 40)
    assert caught.value.url == "http://a/feed"
    async with gate.slot("b", url="http://b/"):
        pass
    clock.now += 40
    async with gate.slot("a", url="http://a/feed"):
        pass


async def test_a_later_wish_does_not_shorten_an_earlier_one() -> None:
    gate = a_gate()
    gate.penalize("a", gate.now() + 60)
    gate.penalize("a", gate.now() + 1)
    assert gate.blocked_seconds("a") == 60
    assert gate.blocked_seconds("b") == 0


async def test_requests_that_wait_are_told_too() -> None:
    """FAULTS 55."""
    gate = a_gate(per_host=1)
    async with a_crowd(gate) as crowd:
        await crowd.arrives("a", "a", "a")
        gate.penalize("a", gate.now() + 60)
        ended = await crowd.goes()
    assert [type(outcome) for outcome in ended] == [type(None), PublisherError, PublisherError]


async def test_requests_that_wait_are_told_without_waiting_for_their_turn() -> None:
    """FAULTS 55: a long queue ends at once, not one interval after the other."""
    clock = Clock()
    gate = a_gate(clock, per_host=1, interval=2.0)
    async with a_crowd(gate) as crowd:
        await crowd.arrives("a", "a", "a")
        gate.penalize("a", gate.now() + 60)
        await crowd.goes()
    assert clock.slept == []


async def test_hosts_are_forgotten() -> None:
    """Memory does not grow with the hosts that were ever asked."""
    clock = Clock()
    gate = a_gate(clock, interval=1.0)
    for number in range(5000):
        gate.penalize(f"penalized-{number}", gate.now() + 5)
        clock.now += 1
        async with gate.slot(f"asked-{number}", url="http://a/"):
            pass
    assert len(gate) <= 1024 + 1


def test_tries_are_spaced_out_more_and_more() -> None:
    assert [backoff_seconds(attempt, 0.0) for attempt in range(6)] == [0.5, 1, 2, 4, 8, 8]
    assert backoff_seconds(0, 1.0) == 0.25
    assert backoff_seconds(10_000, 0.0) == 8
