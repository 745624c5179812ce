"""Bounds on computing, the same on a busy machine and behind a thousand other tests.

with cpu_limit(0.1):        # seconds of an idle machine
    read(hostile)

Only the caller's thread counts, except in `longest_turn`. The garbage collector is off, because it looks
through the objects of all earlier tests.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

SLOW_MACHINE: Final = 4.0
"""Seconds allowed for one of an idle machine: busy ones share caches, and some are slower."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Fail if the code inside computes longer than this on an idle machine.

    A quadratic cost is told from a linear one by an input that is long enough, not by a close bound.
    """
    with _without_collector():
        began = time.thread_time()
        yield
        took = time.thread_time() - began
    assert took < seconds * SLOW_MACHINE, f"{took:.2f} s of computing; {seconds:.2f} s on an idle machine"


async def longest_turn(of: asyncio.Task[Any]) -> float:
    """Return the longest computation of any thread, in idle seconds, between two turns of the loop.

    Other threads count because one that has the interpreter's lock holds up the loop.
    """
    with _without_collector():
        longest, before = 0.0, time.process_time()
        while not of.done():
            await asyncio.sleep(0.001)
            now = time.process_time()
            longest, before = max(longest, now - before), now
    return longest / SLOW_MACHINE


@contextmanager
def _without_collector() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
