"""Turns of those who have only come, so that what was begun does not wait behind all of them.

turns = Turns(8, traffic, lambda: 10.0)
async with turns:
    ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wholefeed.store.postgres.faults import overloaded
from wholefeed.store.traffic import Traffic


class Turns:
    """Belongs to one event loop.

    Args:
        most: How many have a turn at once.
        traffic: Where those that wait are counted.
        patience_seconds: Says how long one waits at most.
    """

    def __init__(self, most: int, traffic: Traffic, patience_seconds: Callable[[], float]) -> None:
        self._free = asyncio.Semaphore(most)
        self._traffic = traffic
        self._patience_seconds = patience_seconds

    async def __aenter__(self) -> None:
        """Wait for a turn.

        Raises:
            OverloadedError: None came in time.
        """
        if not self._free.locked():  # a deadline would cost more than the turn
            await self._free.acquire()
            return
        self._traffic.asked()
        try:
            async with asyncio.timeout(self._patience_seconds()):
                await self._free.acquire()
        except TimeoutError as exc:
            raise overloaded("too many wait for the database") from exc
        finally:
            self._traffic.left()

    async def __aexit__(self, *_: object) -> None:
        """Give it to the next."""
        self._free.release()
