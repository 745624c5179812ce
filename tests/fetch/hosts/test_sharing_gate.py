"""wholefeed.fetch.politeness where other processes ask the same hosts: in its turn and without."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fetch.hosts.test_gate import Clock, Crowd, settled
from wholefeed.errors import PublisherError
from wholefeed.fetch.hosts import Host, Pace, Start
from wholefeed.fetch.politeness import HostGate

NOW = Clock().now


class Turns:
    """Whose turn it is, as a test has it."""

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
        """It is this process's turn from now on; the one before has told something."""
        self.are_ours = True
        for host, on_turn in self.waiting.values():
            host.take_over(text, age_seconds=0.0, now=NOW)
            on_turn(host)


def a_gate(turns: Turns, clock: Clock, *, per_host: int = 4) -> HostGate:
    return HostGate(concurrency=32, per_host=per_host, turns=turns, clock=clock, call_later=clock.call_later)


def a_host() -> Host:
    return Host("a", Pace(4))


async def test_nothing_begins_before_its_turn_and_all_that_may_then() -> None:
    """Requests wait in the queue of their host, where they hold up nobody else's."""
    turns = Turns()
    gate = a_gate(turns, Clock(), per_host=2)
    crowd = Crowd(gate)
    await crowd.arrives("a", "a", "a")
    assert (gate.running, gate.waiting) == (0, 3)
    turns.come()
    await settled()
    assert (gate.running, gate.waiting) == (2, 1)
    await crowd.goes()
    assert turns.running == [1, 2, 1, 2, 1, 0]


async def test_those_that_wait_here_are_told_at_once_what_others_know() -> None:
    """Retry-After that another process was told refuses them in the moment in which the turn comes."""
    turns, before = Turns(), a_host()
    before.learn(Start(443, NOW), now=NOW, is_strained=True, rest_seconds=60.0)
    gate = a_gate(turns, Clock())
    crowd = Crowd(gate)
    await crowd.arrives("a", "a", "a")
    turns.come(before.as_text(now=NOW))
    await settled()
    assert [task.done() for task in crowd.tasks] == [True] * 3
    assert {type(each) for each in await crowd.goes()} == {PublisherError}
    assert gate.blocked_seconds("a") == pytest.approx(60)


async def test_a_request_that_is_cancelled_before_its_turn_leaves_nothing_behind() -> None:
    """A reader that leaves meanwhile."""
    turns = Turns()
    gate = a_gate(turns, Clock())
    crowd = Crowd(gate)
    await crowd.arrives("a")
    crowd.tasks[0].cancel()
    await settled()
    turns.come()
    await settled()
    assert (gate.running, gate.waiting, len(gate)) == (0, 0, 0)


def test_what_is_known_of_a_host_is_handed_on() -> None:
    """Its pace, its rest and its breakers, by the next one's clock; of another version nothing is taken."""
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
