"""The memory that large bodies may take at once.

A document takes its whole share at once, so it can be finished. Documents ahead of a walk's path get half of
the budget at most. They wait before their request, lest they occupy a place at the publisher.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Final, NamedTuple

from wholefeed.errors import QueueFullError

LARGE_BYTES: Final = 1 << 20
"""Bodies up to this size need no share."""

TOTAL_BYTES: Final = 96 << 20
_USUAL_RATIO: Final = 4
"""Decoded bytes for each wire byte in most feeds."""
# Processing a body takes nearly five times its size more.
_SHARE: Final = 6
WAIT_SECONDS: Final = 20.0
RETRY_AFTER_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 1.0


def budget_bytes(free_bytes: int) -> int:
    return min(TOTAL_BYTES, free_bytes // _SHARE)


class MemoryBudget:
    """Memory for large bodies in one event loop; larger shares than the total get all of it."""

    def __init__(
        self,
        *,
        total_bytes: int = TOTAL_BYTES,
        wait_seconds: float = WAIT_SECONDS,
        retry_after_seconds: float = RETRY_AFTER_SECONDS,
    ) -> None:
        self.total_bytes = total_bytes
        self.free_bytes = total_bytes
        self.wait_seconds = wait_seconds
        self.retry_after_seconds = retry_after_seconds
        self._waiting: list[_BudgetTurn] = []

    async def take(
        self, wanted_bytes: int, *, is_ahead: Callable[[], bool] = lambda: False, waits: bool = True
    ) -> bool:
        """Take memory, first come first served, documents ahead last; return whether there was room."""
        loop = asyncio.get_running_loop()
        granted, until = loop.create_future(), loop.time() + self.wait_seconds
        # A body that cannot wait has begun, and would be fetched again, so it comes first.
        turn = _BudgetTurn(wanted_bytes, is_ahead, waits, granted)
        self._waiting.append(turn)
        self._hand_out()
        try:
            while waits and not granted.done():
                left_seconds = until - loop.time()
                if left_seconds <= 0:
                    break
                # The turn of what waits ahead of its walk may come meanwhile.
                await asyncio.wait({granted}, timeout=min(left_seconds, _LOOK_SECONDS))
                self._hand_out()
        except BaseException:
            if granted.done():
                self.free_bytes += wanted_bytes
            raise
        finally:
            if not granted.done():
                self._waiting.remove(turn)
            self._hand_out()
        return granted.done()

    def give_back(self, held_bytes: int) -> None:
        self.free_bytes += held_bytes
        self._hand_out()

    def _hand_out(self) -> None:
        for turn in sorted(self._waiting, key=lambda turn: (turn.is_ahead(), turn.waits)):
            left_bytes = self.free_bytes - turn.wanted_bytes
            if left_bytes < (self.total_bytes // 2 if turn.is_ahead() else 0):
                break
            self.free_bytes = left_bytes
            self._waiting.remove(turn)
            turn.granted.set_result(None)


class _BudgetTurn(NamedTuple):
    wanted_bytes: int
    is_ahead: Callable[[], bool]
    waits: bool
    granted: asyncio.Future[None]


class BudgetSizes:
    """The recent body sizes of one walk, which predict the next."""

    def __init__(self) -> None:
        self._usual_bytes = 0

    @property
    def expected_bytes(self) -> int:
        """The predicted size plus a quarter; 0 below `LARGE_BYTES`."""
        return self._usual_bytes * 5 // 4 if self._usual_bytes > LARGE_BYTES else 0

    def add(self, body_bytes: int) -> None:
        # Where sizes differ, a large one counts for a while.
        self._usual_bytes = max(body_bytes, self._usual_bytes // 2)

    def reach(self, body_bytes: int) -> None:
        """Note the likely size of an unfinished body, which only raises the prediction."""
        self._usual_bytes = max(body_bytes, self._usual_bytes)


class Share:
    """The memory that one document holds; QueueFullError: no room in time."""

    def __init__(
        self,
        budget: MemoryBudget,
        url: str,
        *,
        is_ahead: Callable[[], bool],
        sizes: BudgetSizes | None = None,
    ) -> None:
        self._budget = budget
        self._url = url
        self._is_ahead = is_ahead
        self._sizes = sizes or BudgetSizes()
        self._held_bytes = 0
        self._most_bytes = 0  # as large as the body may become, once it has begun

    async def foresee(self) -> None:
        """Wait for the predicted memory before a request ahead of its walk."""
        # In its turn a document takes nothing yet: mostly it is unchanged and has no body.
        if self._sizes.expected_bytes and self._is_ahead():
            await self._take(self._sizes.expected_bytes, waits=True)

    async def begin(self, wire_bytes: int | None, *, is_coded: bool, limit_bytes: int) -> None:
        """Take memory for a body whose header fields tell its length."""
        self._most_bytes = limit_bytes
        if wire_bytes is None:
            return
        if not is_coded:
            self._most_bytes = min(wire_bytes, limit_bytes)
            self.came(self._most_bytes)
            if self._most_bytes > LARGE_BYTES:
                await self.take(self._most_bytes)
            return
        likely_bytes = min(_USUAL_RATIO * wire_bytes, limit_bytes)
        if likely_bytes > LARGE_BYTES and not self._held_bytes:
            self._sizes.add(likely_bytes)
            if self._is_ahead():
                await self.take(likely_bytes)

    async def cover(self, body_bytes: int, part: float = 0.0) -> None:
        """Take memory for a growing body; none up to `LARGE_BYTES`.

        Args:
            body_bytes: Decoded bytes so far.
            part: The received part of the body, 0 to 1; 0 if its length is unknown.
        """
        if body_bytes > max(LARGE_BYTES, self._held_bytes):
            whole_bytes = min(int(body_bytes / part), self._most_bytes) if part else self._most_bytes
            self._sizes.reach(whole_bytes)
            # All that it may need, so that none holds a part while it waits for the rest.
            wanted_bytes = self._most_bytes
            if self._is_ahead():
                # There is room for the likely size more often; more follows if needed.
                likely_bytes = (whole_bytes if part else body_bytes) + LARGE_BYTES // 2
                wanted_bytes = max(body_bytes, min(likely_bytes, wanted_bytes))
            await self.take(wanted_bytes)

    async def take(self, body_bytes: int) -> None:
        await self._take(body_bytes, waits=not (self._held_bytes or self._is_ahead()))

    async def _take(self, body_bytes: int, *, waits: bool) -> None:
        wanted_bytes = min(body_bytes, self._budget.total_bytes) - self._held_bytes
        if wanted_bytes <= 0:
            return
        if not await self._budget.take(wanted_bytes, is_ahead=self._is_ahead, waits=waits):
            message = "too many large documents are in memory already"
            raise QueueFullError(message, url=self._url, retry_after_seconds=self._budget.retry_after_seconds)
        self._held_bytes += wanted_bytes

    def came(self, body_bytes: int) -> None:
        self._sizes.add(body_bytes)
        self.shrink(body_bytes)

    def shrink(self, body_bytes: int) -> None:
        surplus_bytes = self._held_bytes - body_bytes
        if surplus_bytes > 0:
            self._held_bytes = body_bytes
            self._budget.give_back(surplus_bytes)

    def give_back(self) -> None:
        self.shrink(0)

    def keep_for(self, holder: object) -> None:
        """Give the memory back when the object that holds the body is garbage."""
        if self._held_bytes:
            loop = asyncio.get_running_loop()
            weakref.finalize(holder, self._give_back_in, loop).atexit = False

    def _give_back_in(self, loop: asyncio.AbstractEventLoop) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self.give_back)
