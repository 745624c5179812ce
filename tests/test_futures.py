"""Waiting for futures that go on when a waiter leaves."""

from __future__ import annotations

import asyncio

import pytest

from wholefeed.futures import either_done


@pytest.mark.parametrize("which", [0, 1])
async def test_waiting_for_either_of_two_ends_with_the_first(which: int) -> None:
    """The other future goes on, without a trace of the waiting."""
    loop = asyncio.get_running_loop()
    one, other = both = loop.create_future(), loop.create_future()
    waiting = asyncio.create_task(either_done(one, other, 60.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    both[which].set_result(None)
    await asyncio.wait_for(waiting, 10)
    assert not both[1 - which].done()
    await asyncio.wait_for(either_done(one, other, 60.0), 10)  # it is known already


async def test_waiting_for_either_of_two_ends_with_its_time() -> None:
    """Also with no time left; neither future is cancelled."""
    loop = asyncio.get_running_loop()
    one, other = loop.create_future(), loop.create_future()
    for seconds in (0.01, 0.0, -1.0):
        await asyncio.wait_for(either_done(one, other, seconds), 10)
    assert not one.done()
    assert not other.done()


async def test_whoever_waits_may_be_cancelled() -> None:
    """The future goes on, and can still fail or end."""
    loop = asyncio.get_running_loop()
    one, other = loop.create_future(), loop.create_future()
    waiting = asyncio.create_task(either_done(one, other, 60.0))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert not one.cancelled()
    one.set_result(None)
    other.set_result(None)
    await asyncio.sleep(0)
