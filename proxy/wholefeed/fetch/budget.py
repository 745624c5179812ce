"""How much of large bodies may be in memory at once, whoever sends them, and be worked on.

    budget = MemoryBudget(total_bytes=96 << 20)
    share = budget.share(url, is_ahead=False)
    await share.take(32 << 20)          # waits until there is as much
    share.keep_for(fetched)             # given back when that is garbage; or share.give_back()

A document that may become large takes its share at once and whole: none holds a part while it waits for the
rest, so those that have theirs always come to their end. What is fetched ahead of a walk's path waits for
documents that are not there yet, so it may have half of the budget at most and never waits for it.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from wholefeed.errors import QueueFullError

LARGE_BYTES: Final = 1 << 20
"""Up to here a body needs no share: as many of them as may be fetched at once are no burden."""

TOTAL_BYTES: Final = 96 << 20
WAIT_SECONDS: Final = 20.0
RETRY_AFTER_SECONDS: Final = 2.0


class MemoryBudget:
    """The memory for large bodies in one process; belongs to one event loop.

    Args:
        total_bytes: At most; a share that is larger gets all of it.
        wait_seconds: How long a share waits at most.
        retry_after_seconds: What is said to whom there is no room for.
    """

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
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def share(self, url: str, *, is_ahead: bool) -> Share:
        """Return a share that holds nothing yet, for what is fetched from there; whether that is ahead."""
        return Share(self, url, is_ahead=is_ahead)

    async def take(self, wanted_bytes: int, *, is_ahead: bool) -> bool:
        """Take a part, first come first served.

        Returns:
            Whether there was any in time, and at once for what is fetched ahead.
        """
        is_free = not self._waiting and wanted_bytes <= self.free_bytes
        if is_ahead and (not is_free or self.free_bytes - wanted_bytes < self.total_bytes // 2):
            return False
        if is_free:
            self.free_bytes -= wanted_bytes
            return True
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted_bytes, turn))
        try:
            async with asyncio.timeout(self.wait_seconds):
                await turn
        except BaseException as exc:
            if turn.done() and not turn.cancelled():
                self.free_bytes += wanted_bytes
            turn.cancel()
            self._hand_out()
            if isinstance(exc, TimeoutError):
                return False
            raise
        return True

    def give_back(self, held_bytes: int) -> None:
        self.free_bytes += held_bytes
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self.free_bytes):
            wanted_bytes, turn = self._waiting.popleft()
            if not turn.done():
                self.free_bytes -= wanted_bytes
                turn.set_result(None)


class Share:
    """What one document has of the budget."""

    def __init__(self, budget: MemoryBudget, url: str, *, is_ahead: bool) -> None:
        self._budget = budget
        self._url = url
        self._is_ahead = is_ahead
        self._held_bytes = 0

    async def take(self, body_bytes: int) -> None:
        """Take what a body of at most so many bytes needs, unless it is there already.

        Raises:
            QueueFullError: There was none in time.
        """
        if self._held_bytes:
            return
        wanted_bytes = min(body_bytes, self._budget.total_bytes)
        if not await self._budget.take(wanted_bytes, is_ahead=self._is_ahead):
            message = "too many large documents are in memory already"
            raise QueueFullError(message, url=self._url, retry_after_seconds=self._budget.retry_after_seconds)
        self._held_bytes = wanted_bytes

    def shrink(self, body_bytes: int) -> None:
        """Give back what the body does not need."""
        surplus_bytes = self._held_bytes - body_bytes
        if surplus_bytes > 0:
            self._held_bytes = body_bytes
            self._budget.give_back(surplus_bytes)

    def give_back(self) -> None:
        self.shrink(0)

    def keep_for(self, holder: object) -> None:
        """Give it back when the object that holds the body is garbage, in whichever thread."""
        if self._held_bytes:
            loop = asyncio.get_running_loop()
            weakref.finalize(holder, self._give_back_in, loop).atexit = False

    def _give_back_in(self, loop: asyncio.AbstractEventLoop) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self.give_back)


class LargeWork:
    """Lets one large document be worked on at a time; belongs to one event loop.

    Each may take several times its size meanwhile, and two at once are no faster than one after the other but
    keep everything else waiting.
    """

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(1)

    def turn(self, body_bytes: int) -> AbstractAsyncContextManager[None]:
        """Return what is held while documents of so many bytes are parsed or rendered."""
        return self._turns if body_bytes > LARGE_BYTES else nullcontext()
