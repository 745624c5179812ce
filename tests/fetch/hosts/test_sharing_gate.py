"""wholefeed.fetch.politeness where other processes ask the same hosts: what it does with what it is told."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from tests.fetch.hosts.test_gate import Clock, Crowd, a_crowd, good, in_slot, refusal, settled
from wholefeed.errors import PublisherError
from wholefeed.fetch.hosts import Outcome, Rest
from wholefeed.fetch.politeness import Entry, HostGate


@dataclass
class Entered:
    """A place among all processes."""

    allowed: int | None = None


@dataclass
class Others:
    """What is shared, as a test has it."""

    given: Entered | Rest = field(default_factory=Entered)
    is_held: bool = False
    asked: list[tuple[str, int, bool, int | None]] = field(default_factory=list)
    left: list[Outcome | None] = field(default_factory=list)

    async def enter(self, host: str, port: int, *, is_new: bool, at_most: int | None) -> Entry | Rest:
        self.asked.append((host, port, is_new, at_most))
        while self.is_held:
            await asyncio.sleep(0)
        return self.given

    def leave(self, entry: Entry, outcome: Outcome | None) -> None:
        assert entry is self.given
        self.left.append(outcome)


def a_gate(others: Others, clock: Clock, *, per_host: int = 4, interval: float = 0) -> HostGate:
    return HostGate(
        concurrency=32,
        per_host=per_host,
        min_interval_seconds=interval,
        shared=others,
        clock=clock,
        call_later=clock.call_later,
    )


async def test_who_has_a_place_here_takes_one_among_all_and_tells_what_it_found_out() -> None:
    """Each request enters once, with all that the rules ask for, and leaves with what it was told."""
    others = Others()
    gate = a_gate(others, Clock())
    async with gate.slot("a", 443, url="https://a/", is_new=True, at_most=2) as slot:
        slot.answered(is_strained=True, rest_seconds=60)
    assert others.asked == [("a", 443, True, 2)]
    assert others.left == [Outcome(is_strained=True, rest_seconds=60)]


async def test_a_request_that_found_nothing_out_leaves_too() -> None:
    """One that fails in between, or is cancelled, gives its place among all back."""
    others = Others()
    with pytest.raises(ZeroDivisionError):
        await in_slot(a_gate(others, Clock()), lambda _: 1 // 0)
    assert others.left == [None]


async def test_what_others_were_told_is_told_here_and_kept() -> None:
    """The request is refused as if this process had been told, and polling knows it from then on."""
    others, clock = Others(Rest("host-backoff", 60.0)), Clock()
    gate = a_gate(others, clock)
    error = await refusal(gate)
    assert (error.slug, error.retry_after_seconds, error.url) == ("host-backoff", 60, "https://a/feed")
    assert gate.blocked_seconds("a") == 60
    assert others.left == []
    await refusal(gate)
    assert len(others.asked) == 1


async def test_a_document_that_was_never_seen_is_refused_where_others_were_for_it() -> None:
    """`is_new`: the host turned such a request away elsewhere, so none is made here either."""
    others, clock = Others(Rest("host-backoff", 60.0)), Clock()
    gate = a_gate(others, clock)
    for _ in range(2):
        with pytest.raises(PublisherError):
            async with gate.slot("a", 443, url="https://a/", is_new=True):
                pass
    assert len(others.asked) == 1


async def test_a_port_that_others_could_not_reach_rests_here_and_is_tried_again() -> None:
    """Logged once; when the pause is over, whoever asks next asks the others whether it may try."""
    others, clock = Others(Rest("timeout", 60.0)), Clock()
    gate = a_gate(others, clock)
    with capture_logs() as logs:
        for _ in range(3):
            assert (await refusal(gate)).slug == "timeout"
    assert [(log["event"], log["seconds"]) for log in logs] == [("host.rested", 60.0)]
    assert len(others.asked) == 1
    clock.now += 60
    others.given = Rest("timeout", 1.0)  # another process tries
    await refusal(gate)
    clock.now += 1
    others.given = Entered()
    await in_slot(gate, good)
    assert gate.blocked_seconds("a", 443) == 0


async def test_those_that_wait_here_are_told_at_once_what_others_know() -> None:
    """Also where they wait for their time, and would not be looked at before."""
    others, clock = Others(is_held=True), Clock()
    gate = a_gate(others, clock, interval=30.0)
    crowd = Crowd(gate)
    await crowd.arrives("a", "a", "a")
    others.given, others.is_held = Rest("host-backoff", 60.0), False
    await settled()
    assert [task.done() for task in crowd.tasks] == [True] * 3
    assert {type(each) for each in await crowd.goes()} == {PublisherError}


async def test_a_host_that_bears_less_elsewhere_takes_no_more_places_here() -> None:
    """Requests that could not begin wait in their host's queue, where they hold up nobody else's."""
    others, clock = Others(Entered(allowed=1)), Clock()
    gate = a_gate(others, clock)
    await in_slot(gate, good)
    async with a_crowd(gate) as crowd:
        await crowd.arrives("a", "a", "a")
        assert crowd.running == ["a"]
        assert (gate.running, gate.waiting) == (1, 2)


async def test_a_request_that_is_cancelled_while_it_waits_for_others_gives_its_place_here_back() -> None:
    """A reader that leaves meanwhile leaves nothing behind."""
    others, clock = Others(is_held=True), Clock()
    gate = a_gate(others, clock, per_host=1)
    crowd = Crowd(gate)
    await crowd.arrives("a")
    crowd.tasks[0].cancel()
    await settled()
    others.is_held = False
    await in_slot(gate, good)
    assert (gate.running, len(gate)) == (0, 0)
