"""wholefeed.fetch.politeness: queues and refusals. Time is a number here, and nobody sleeps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from wholefeed.errors import DocumentError, PublisherError, PublisherTimeoutError, QueueFullError
from wholefeed.fetch.hosts import FAILURES_TO_REST, PAUSE_SECONDS, Host, Pace, Start
from wholefeed.fetch.politeness import MAX_HOSTS, MAX_WAITING, MAX_WAITING_PER_HOST, HostGate, Slot


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self._calls: dict[object, tuple[float, Callable[[], None]]] = {}

    def __call__(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        timer = Timer(self._calls)
        self._calls[timer] = (self.now + seconds, call)
        return timer

    async def passes(self, seconds: float) -> None:
        self.now += seconds
        for timer, (at, call) in list(self._calls.items()):
            if at <= self.now:
                del self._calls[timer]
                call()
        await settled()


class Timer:
    def __init__(self, calls: dict[object, tuple[float, Callable[[], None]]]) -> None:
        self._calls = calls

    def cancel(self) -> None:
        self._calls.pop(self, None)


def a_gate(
    clock: Clock | None = None,
    *,
    concurrency: int = 32,
    per_host: int = 4,
    interval: float = 0,
    turns: Turns | None = None,
) -> HostGate:
    clock = clock or Clock()
    return HostGate(
        concurrency=concurrency,
        per_host=per_host,
        min_interval_seconds=interval,
        turns=turns,
        clock=clock,
        call_later=clock.call_later,
    )


class Crowd:
    def __init__(self, gate: HostGate) -> None:
        self._gate = gate
        self.tasks: list[asyncio.Task[None]] = []
        self.running: list[str] = []
        self._places = asyncio.Semaphore(0)
        self._is_over = False

    async def _request(self, host: str) -> None:
        async with self._gate.slot(host, 443, url=f"https://{host}/"):
            self.running.append(host)
            if not self._is_over:
                await self._places.acquire()

    async def arrives(self, *hosts: str) -> None:
        self.tasks += [asyncio.create_task(self._request(host)) for host in hosts]
        await settled()

    async def leaves(self, requests: int = 1) -> None:
        for _ in range(requests):
            self._places.release()
        await settled()

    async def goes(self) -> list[BaseException | None]:
        self._is_over = True
        await self.leaves(len(self.tasks))
        return await asyncio.gather(*self.tasks, return_exceptions=True)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def a_crowd(gate: HostGate) -> AsyncIterator[Crowd]:
    crowd = Crowd(gate)
    yield crowd
    await crowd.goes()


async def in_slot(
    gate: HostGate, tell: Callable[[Slot], Any] = lambda _slot: None, *, host: str = "a", port: int = 443
) -> None:
    async with gate.slot(host, port, url=f"https://{host}/feed") as slot:
        tell(slot)


async def refusal(gate: HostGate, *, host: str = "a", port: int = 443) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        await in_slot(gate, host=host, port=port)
    return caught.value


def good(slot: Slot) -> None:
    slot.note_answer(is_strained=False)


def told_to_wait(seconds: float) -> Callable[[Slot], None]:
    return lambda slot: slot.note_answer(is_strained=True, rest_seconds=seconds)


def busy(slot: Slot) -> None:
    slot.note_answer(is_strained=True)


def unreachable(slot: Slot) -> None:
    slot.note_failure("connection-failed", is_heard=False)


async def a_dead_host(gate: HostGate, port: int = 443) -> None:
    for _ in range(FAILURES_TO_REST):
        await in_slot(gate, unreachable, port=port)


@pytest.mark.fault("24")
async def test_a_long_queue_of_one_host_does_not_starve_another() -> None:
    """docs/faults.md row 24: links at one host leave places for the others."""
    async with a_crowd(a_gate(concurrency=3, per_host=2)) as crowd:
        await crowd.arrives(*["victim"] * 200, "other")
        assert crowd.running == ["victim", "victim", "other"]


async def test_readers_come_before_requests_that_nobody_waits_for() -> None:
    """B2: a quarter of the places is theirs, and at one host they go first."""
    gate = a_gate(concurrency=4, per_host=4)
    began: list[str] = []
    end = asyncio.Event()

    async def ask(name: str, host: str, *, is_polled: bool) -> None:
        async with gate.slot(host, 443, url=f"https://{host}/", is_polled=is_polled):
            began.append(name)
            await end.wait()

    hosts = ("a", "b", "c", "d", "e")
    tasks = [asyncio.create_task(ask(f"list {host}", host, is_polled=True)) for host in hosts]
    await settled()
    assert began == ["list a", "list b", "list c"]
    tasks.append(asyncio.create_task(ask("reader e", "e", is_polled=False)))
    await settled()
    assert began[3:] == ["reader e"]
    end.set()
    await asyncio.gather(*tasks)
    assert len(began) == 6
    assert gate.running == gate.waiting == 0


async def test_a_place_that_becomes_free_goes_to_the_host_that_holds_the_fewest() -> None:
    """A slow host in every place does not keep other hosts waiting when one is free."""
    async with a_crowd(a_gate(concurrency=4)) as crowd:
        await crowd.arrives(*["slow"] * 20)
        assert crowd.running == ["slow"] * 4
        await crowd.arrives("late", "later", "late")
        await crowd.leaves(2)
        assert crowd.running == ["slow"] * 4 + ["late", "later"]


async def test_a_queue_is_served_in_order() -> None:
    """No request of a host waits for ever."""
    gate = a_gate(per_host=1)
    order: list[int] = []

    async def request(number: int) -> None:
        async with gate.slot("a", 443, url="https://a/"):
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(request(number) for number in range(20)))
    assert order == list(range(20))


async def test_who_finds_room_while_nobody_waits_begins_at_once() -> None:
    """Without a step of the event loop; behind others, or without room, it waits."""
    gate = a_gate(per_host=1, concurrency=2)
    held = gate.slot("a", 443, url="https://a/")
    with pytest.raises(StopIteration):
        held.__aenter__().__await__().send(None)
    assert (gate.running, gate.waiting) == (1, 0)
    async with a_crowd(gate) as crowd:
        await crowd.arrives("a", "b")
        assert (crowd.running, gate.running, gate.waiting) == (["b"], 2, 1)
        await held.__aexit__(None, None, None)
        await settled()
        assert (crowd.running, gate.running, gate.waiting) == (["b", "a"], 2, 0)
    assert (gate.running, len(gate)) == (0, 0)


async def test_a_place_comes_back_when_a_request_fails_or_is_cancelled() -> None:
    """Otherwise the proxy would stop fetching in time."""
    gate = a_gate(per_host=1, concurrency=1)
    with pytest.raises(ZeroDivisionError):
        await in_slot(gate, lambda _: 1 // 0)
    async with a_crowd(gate) as crowd:
        await crowd.arrives("a", "a", "b")
        for task in crowd.tasks:
            task.cancel()
        await settled()
    assert len(gate) == 0
    async with gate.slot("a", 443, url="https://a/"):
        assert len(gate) == 1


async def test_requests_of_one_host_are_spaced_out() -> None:
    """config.example.toml: fetch.min_interval_per_host_seconds."""
    clock = Clock()
    async with a_crowd(a_gate(clock, interval=2.0)) as crowd:
        await crowd.arrives("a", "a", "b", "a")
        assert crowd.running == ["a", "b"]
        await clock.passes(1.0)
        assert crowd.running == ["a", "b"]
        await clock.passes(1.0)
        assert crowd.running == ["a", "b", "a"]
        await clock.passes(2.0)
        assert crowd.running == ["a", "b", "a", "a"]


async def test_a_request_is_told_when_too_many_wait_for_its_host() -> None:
    """Beyond MAX_WAITING_PER_HOST a request is 503 `overloaded` with Retry-After; other hosts are served."""
    gate = a_gate(per_host=1)
    async with a_crowd(gate) as crowd:
        await crowd.arrives(*["a"] * (1 + MAX_WAITING_PER_HOST))
        error = await refusal(gate)
        assert isinstance(error, QueueFullError)
        assert (error.answer_status, error.slug, error.retry_after_seconds) == (503, "overloaded", 10)
        await in_slot(gate, host="b")


@pytest.mark.parametrize("is_heard", [True, False])
async def test_a_time_out_is_a_sign_of_strain(is_heard: bool) -> None:
    """After a time-out a host gets half as many requests at once, even after a response."""
    gate = a_gate(per_host=4)
    await in_slot(gate, lambda slot: slot.note_failure("timeout", is_heard=is_heard))
    async with a_crowd(gate) as crowd:
        await crowd.arrives(*["a"] * 5)
        assert crowd.running == ["a"] * 2


async def test_a_host_that_cannot_be_reached_is_asked_no_more() -> None:
    """Row 28: its requests are refused at once with its reason and Retry-After, logged once."""
    clock = Clock()
    gate = a_gate(clock)
    with capture_logs() as logs:
        await a_dead_host(gate)
        error = await refusal(gate)
    assert (error.slug, error.answer_status, error.retry_after_seconds) == (
        "connection-failed",
        502,
        PAUSE_SECONDS,
    )
    assert [(log["event"], log["host"], log["port"], log["slug"]) for log in logs] == [
        ("host.rested", "a", 443, "connection-failed")
    ]


async def test_one_request_finds_out_whether_the_host_is_back() -> None:
    """After the pause; then all go through, and the log says so."""
    clock = Clock()
    gate = a_gate(clock)
    await a_dead_host(gate)
    clock.now += PAUSE_SECONDS
    with capture_logs() as logs:
        async with gate.slot("a", 443, url="https://a/feed") as probe:
            assert (await refusal(gate)).slug == "connection-failed"
            probe.note_answer(is_strained=False)
            await in_slot(gate)
    assert [log["event"] for log in logs] == ["host.recovered"]
    assert len(gate) == 0


async def test_a_probe_that_waits_for_its_place_is_the_only_one() -> None:
    """Others run after it."""
    clock = Clock()
    gate = a_gate(clock, concurrency=1)
    await a_dead_host(gate)
    clock.now += PAUSE_SECONDS
    async with a_crowd(gate) as crowd:
        await crowd.arrives("other", "a", "a")
        await crowd.leaves()
        assert crowd.running == ["other", "a"]
        await crowd.leaves()
        assert crowd.running == ["other", "a", "a"]


async def test_a_port_that_fails_says_nothing_about_the_others() -> None:
    """No link to a closed port stops a feed at the same host."""
    gate = a_gate()
    await a_dead_host(gate, port=81)
    await in_slot(gate, port=443)
    assert (await refusal(gate, port=81)).slug == "connection-failed"


async def test_the_memory_for_hosts_is_bounded() -> None:
    """Among thousands of hosts with a Retry-After, the oldest is forgotten, the newest kept."""
    gate = a_gate()
    async with gate.slot("busy", 443, url="https://busy/"):
        for number in range(MAX_HOSTS + 100):
            await in_slot(gate, told_to_wait(3600), host=f"host-{number}")
        assert len(gate) == MAX_HOSTS
        assert gate.blocked_seconds("host-0") == 0
        assert gate.blocked_seconds(f"host-{MAX_HOSTS + 99}") == 3600


async def test_the_memory_for_ports_is_bounded() -> None:
    """At most 64 records of one host."""
    gate = a_gate()
    for port in range(1024, 2048):
        await in_slot(gate, unreachable, port=port)
    async with gate.slot("a", 443, url="https://a/") as slot:
        assert len(slot.host.breakers) == 64


async def test_a_request_is_told_when_too_many_wait_in_all() -> None:
    """The queue of all hosts is bounded too, and accepts requests when it is shorter."""
    gate = a_gate(concurrency=1)
    async with a_crowd(gate) as crowd:
        await crowd.arrives("first", *(f"host-{number}" for number in range(MAX_WAITING)))
        assert isinstance(await refusal(gate), QueueFullError)
        await crowd.leaves()
        await crowd.arrives("a")
    assert crowd.running[-1] == "a"


async def test_a_later_wish_does_not_shorten_an_earlier_one() -> None:
    """Row 55: of two Retry-After the later end counts, and for that host alone."""
    gate = a_gate()
    async with gate.slot("a", 443, url="https://a/feed") as begun_before:
        await in_slot(gate, told_to_wait(60))
        begun_before.note_answer(is_strained=True, rest_seconds=1)
    assert gate.blocked_seconds("a") == 60
    assert gate.blocked_seconds("b") == 0


@pytest.mark.parametrize("slug", ["incomplete", "too-large", "content-coding", "tls-certificate"])
async def test_an_answer_that_is_of_no_use_is_one(slug: str) -> None:
    """Bad bodies and certificates do not count as an unreachable host: its other feeds are fetched."""
    gate = a_gate()
    for _ in range(3 * FAILURES_TO_REST):
        await in_slot(gate, lambda slot: slot.note_failure(slug, is_heard=slug != "tls-certificate"))
    assert len(gate) == 0


async def test_a_place_comes_back_when_a_request_is_cancelled_just_as_it_gets_it() -> None:
    """Between its turn and its run."""
    gate = a_gate(per_host=1)
    async with gate.slot("a", 443, url="https://a/"):
        second = asyncio.create_task(in_slot(gate))
        await settled()
    second.cancel()  # its turn has come, but it has not run since
    await asyncio.wait({second})
    assert second.cancelled()
    await in_slot(gate)
    assert len(gate) == 0


async def test_requests_that_wait_are_told_at_once() -> None:
    """docs/faults.md row 55: a long queue ends at once."""
    gate = a_gate(per_host=1)
    async with gate.slot("a", 443, url="https://a/feed") as slot, a_crowd(gate) as crowd:
        await crowd.arrives("a", "a", "b")
        slot.note_answer(is_strained=True, rest_seconds=60)
        await settled()
        assert [task.done() for task in crowd.tasks] == [True, True, False]
        ended = await crowd.goes()
    assert [type(outcome) for outcome in ended] == [PublisherError, PublisherError, type(None)]


async def test_requests_that_wait_for_a_host_that_fails_are_told_how() -> None:
    """Row 30: they get the host's reason, 504, and wait no longer."""
    gate = a_gate(per_host=1)
    for _ in range(FAILURES_TO_REST - 1):
        await in_slot(gate, lambda slot: slot.note_failure("timeout", is_heard=False))
    async with gate.slot("a", 443, url="https://a/feed") as slot:
        waiting = asyncio.create_task(refusal(gate))
        await settled()
        slot.note_failure("timeout", is_heard=False)
        error = await waiting
    assert isinstance(error, PublisherTimeoutError)
    assert error.answer_status == 504


# Where other processes ask the same hosts


class Turns:
    def __init__(self) -> None:
        self.are_ours = False
        self.waiting: dict[str, tuple[Host, Callable[[Host], None]]] = {}
        self.running: list[int] = []

    def is_ours(self, host: Host, on_turn: Callable[[Host], None]) -> bool:
        if not self.are_ours:
            self.waiting[host.name] = host, on_turn
        return self.are_ours

    def began(self, host: Host) -> None:
        self.running.append(host.running)

    def ended(self, host: Host) -> None:
        self.running.append(host.running)

    def come(self, text: str = "") -> None:
        """Give this process its turn, with the facts of the one before."""
        self.are_ours = True
        for host, on_turn in self.waiting.values():
            host.take_over(text, age_seconds=0.0, now=Clock().now)
            on_turn(host)


def a_host() -> Host:
    return Host("a", Pace(4))


async def test_nothing_begins_before_its_turn_and_all_that_may_then() -> None:
    """Requests wait in the queue of their host, and hold up no other host."""
    turns = Turns()
    gate = a_gate(per_host=2, turns=turns)
    crowd = Crowd(gate)
    await crowd.arrives("a", "a", "a")
    assert (gate.running, gate.waiting) == (0, 3)
    turns.come()
    await settled()
    assert (gate.running, gate.waiting) == (2, 1)
    await crowd.goes()
    assert turns.running == [1, 2, 1, 2, 1, 0]


async def test_those_that_wait_here_are_told_at_once_what_others_know() -> None:
    """A Retry-After seen by another process refuses them when the turn comes."""
    turns, before = Turns(), a_host()
    before.learn(Start(443, Clock().now), now=Clock().now, is_strained=True, rest_seconds=60.0)
    gate = a_gate(turns=turns)
    crowd = Crowd(gate)
    await crowd.arrives("a", "a", "a")
    turns.come(before.as_text(now=Clock().now))
    await settled()
    assert [task.done() for task in crowd.tasks] == [True] * 3
    assert {type(each) for each in await crowd.goes()} == {PublisherError}
    assert gate.blocked_seconds("a") == pytest.approx(60)


async def test_a_request_that_is_cancelled_before_its_turn_leaves_nothing_behind() -> None:
    """A reader leaves meanwhile."""
    turns = Turns()
    gate = a_gate(turns=turns)
    crowd = Crowd(gate)
    await crowd.arrives("a")
    crowd.tasks[0].cancel()
    await settled()
    turns.come()
    await settled()
    assert (gate.running, gate.waiting, len(gate)) == (0, 0, 0)


def test_what_is_known_of_a_host_is_handed_on() -> None:
    """Its pace, its rest and its breakers, by the next process's clock; facts of another version are
    ignored."""
    host = a_host()
    host.learn(Start(443, 10.0), now=12.0, is_strained=True, rest_seconds=60.0)
    host.learn(Start(80, 10.0), now=12.0, slug="dns-error", is_heard=False)
    text = host.as_text(now=20.0)
    other = a_host()
    other.take_over(text, age_seconds=5.0, now=1000.0)
    assert other.rest_seconds(443, 1000.0) == pytest.approx(60 - 8 - 5)
    assert other.breakers[80].refused_seconds(1000.0) == pytest.approx(60 - 8 - 5)
    assert other.pace.allowed == 2
    other.take_over('{"version":0}', age_seconds=0.0, now=1000.0)
    assert other.pace.allowed == 2
    assert a_host().as_text(now=20.0) == ""
