"""When a thread sends a replica's signs of life, and when it must not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from tests.service.sharing.shared_store import MovableClock
from wholefeed.errors import OverloadedError
from wholefeed.service.replica import BEAT_SECONDS, CUT_OFF_SECONDS, STUCK_SECONDS, Replica
from wholefeed.store.store import Store
from wholefeed.store.tables.leases import Beat

LATE_SECONDS = BEAT_SECONDS + 1.0
LOOKS_SECONDS = 0.6
"""Enough for two looks of the thread."""


class Beats:
    """A store that the loop reaches once, and a thread always."""

    def __init__(self, *, is_known: bool = True, is_away: bool = False) -> None:
        self.engine = self
        self.is_known = is_known
        self.is_away = is_away
        self.is_given = False
        self.has_come = threading.Event()

    async def write_at_once(self, _: object) -> Beat:
        if self.is_given:
            await asyncio.Event().wait()
        self.is_given = True
        return Beat(was_known=True, lease_tokens={}, replicas=1)

    def write_in_thread(self, _: object) -> bool:
        self.has_come.set()
        if self.is_away:
            raise OverloadedError("away")
        return self.is_known


@asynccontextmanager
async def a_replica(beats: Beats, clock: MovableClock, *, ahead_seconds: float) -> AsyncIterator[Replica]:
    """Yield a replica whose loop sent its only sign of life this long ago."""
    replica = Replica(cast("Store", beats), clock)
    await replica.beat()
    life = asyncio.create_task(replica.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clock.ahead_seconds += ahead_seconds
    yield replica
    life.cancel()
    await asyncio.wait({life})


@pytest.mark.fault("104a")
async def test_a_sign_of_life_comes_where_the_loop_is_late() -> None:
    """The instant of sending counts."""
    beats = Beats()
    async with a_replica(beats, MovableClock(), ahead_seconds=LATE_SECONDS) as replica:
        async with asyncio.timeout(300):
            while replica.silent_seconds > LATE_SECONDS / 2:
                await asyncio.sleep(0.01)
    assert beats.has_come.is_set()


@pytest.mark.fault("104a")
@pytest.mark.parametrize("case", ["in time", "cut off", "left"])
async def test_no_sign_of_life_comes(case: str) -> None:
    """The loop sends them, the replica may be thought dead, or it has left."""
    beats, clock = Beats(), MovableClock()
    async with a_replica(beats, clock, ahead_seconds=0.0) as replica:
        if case == "left":
            beats.is_given = False
            await replica.leave()
        clock.ahead_seconds += {"in time": 0.0, "cut off": CUT_OFF_SECONDS + 0.1}.get(case, LATE_SECONDS)
        assert not await asyncio.to_thread(beats.has_come.wait, LOOKS_SECONDS)


@pytest.mark.fault("104a")
async def test_a_loop_that_does_not_come_round_is_dead_in_the_end() -> None:
    """The thread stands in for half a minute."""
    beats, clock = Beats(), MovableClock()
    async with a_replica(beats, clock, ahead_seconds=0.0):
        given = 0
        while await asyncio.to_thread(beats.has_come.wait, LOOKS_SECONDS) or not given:
            given += beats.has_come.is_set()
            beats.has_come.clear()
            await asyncio.sleep(0.05)
            clock.ahead_seconds += LATE_SECONDS
        assert STUCK_SECONDS - 2 * LATE_SECONDS < given * LATE_SECONDS <= STUCK_SECONDS


@pytest.mark.fault("104a")
@pytest.mark.parametrize("beats", [Beats(is_known=False), Beats(is_away=True)], ids=["forgotten", "away"])
async def test_a_sign_of_life_that_nobody_heard_does_not_count(beats: Beats) -> None:
    """The replica is cut off in time."""
    async with a_replica(beats, MovableClock(), ahead_seconds=LATE_SECONDS) as replica:
        assert await asyncio.to_thread(beats.has_come.wait, 5)
        assert replica.silent_seconds >= LATE_SECONDS
