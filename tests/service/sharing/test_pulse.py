"""When a thread gives the signs of life of a replica, and when it must not."""

from __future__ import annotations

import threading
import time

import pytest

from wholefeed.errors import OverloadedError
from wholefeed.service.sharing import BEAT_SECONDS, CUT_OFF_SECONDS, STUCK_SECONDS, Pulse

LATE_SECONDS = BEAT_SECONDS + 1.0
LOOKS_SECONDS = 0.6
"""Enough for two looks of the thread."""


class Clock:
    """Seconds that pass, and those that a test adds."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_seconds


class Beats:
    """The signs of life that a thread gives."""

    def __init__(self, *, is_known: bool = True, is_away: bool = False) -> None:
        self.is_known = is_known
        self.is_away = is_away
        self.names = list[str]()
        self.has_come = threading.Event()

    def __call__(self, name: str) -> bool:
        self.names.append(name)
        self.has_come.set()
        if self.is_away:
            raise OverloadedError("away")
        return self.is_known


@pytest.mark.fault("104a")
def test_a_sign_of_life_comes_where_the_loop_is_late() -> None:
    """One that was sent counts from its sending."""
    clock, beats = Clock(), Beats()
    pulse = Pulse(beats, clock)
    with pulse.beating():
        pulse.given("a", at=clock())
        clock.ahead_seconds += LATE_SECONDS
        assert beats.has_come.wait(5)
        until = time.monotonic() + 5
        while pulse.silent_seconds > LATE_SECONDS / 2 and time.monotonic() < until:
            time.sleep(0.01)
    assert pulse.silent_seconds < LATE_SECONDS / 2
    assert beats.names == ["a"]


@pytest.mark.fault("104a")
@pytest.mark.parametrize("case", ["in time", "cut off", "stuck", "stopped"])
def test_no_sign_of_life_comes(case: str) -> None:
    """Where the loop gives them itself; of one that the others may take for dead; where no loop is alive."""
    clock, beats = Clock(), Beats()
    pulse = Pulse(beats, clock)
    if case == "stuck":
        clock.ahead_seconds += STUCK_SECONDS
    pulse.given("a", at=clock())
    clock.ahead_seconds += {"in time": 0.0, "cut off": CUT_OFF_SECONDS}.get(case, LATE_SECONDS)
    if case == "stopped":
        pulse.stop()
    with pulse.beating():
        assert not beats.has_come.wait(LOOKS_SECONDS)


@pytest.mark.fault("104a")
@pytest.mark.parametrize("beats", [Beats(is_known=False), Beats(is_away=True)], ids=["forgotten", "away"])
def test_a_sign_of_life_that_nobody_heard_does_not_count(beats: Beats) -> None:
    """The replica is cut off in time."""
    clock = Clock()
    pulse = Pulse(beats, clock)
    with pulse.beating():
        pulse.given("a", at=clock())
        clock.ahead_seconds += LATE_SECONDS
        assert beats.has_come.wait(5)
    assert pulse.silent_seconds >= LATE_SECONDS
