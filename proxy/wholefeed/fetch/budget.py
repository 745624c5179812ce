"""The memory that large bodies may take at once.

    budget = MemoryBudget(total_bytes=96 << 20)
    share = Share(budget, url, is_ahead=lambda: False)
    await share.take(32 << 20)          # waits until there is room
    share.keep_for(fetched)             # given back when the object is garbage; or share.give_back()

A document that may become large takes its whole share at once: none holds a part while it waits for the
rest, so every document that has a share can be finished. Documents fetched ahead of a walk's path wait for
others that are not there yet, so they may have half of the budget at most. Such a document waits for its
share before the request, by the size of the documents before it (`BudgetSizes`): to wait during the answer
would keep others from asking the publisher. If that was too little, it takes more as its body comes, without
waiting; one that finds no room in the middle of its body is fetched again.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Final, NamedTuple

from wholefeed.errors import QueueFullError

LARGE_BYTES: Final = 1 << 20
"""Up to here a body needs no share: as many of them as may be fetched at once are no burden."""

TOTAL_BYTES: Final = 96 << 20
_USUAL_RATIO: Final = 4
"""Decoded bytes for one on the wire, of most feeds: an estimate of what a body will come to."""
_SHARE: Final = 6
"""Of the memory that there is one part is for bodies: the one that is worked on takes nearly five more."""
WAIT_SECONDS: Final = 20.0
RETRY_AFTER_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 1.0
"""So often is looked whether what waits ahead of its walk is still ahead."""


def budget_bytes(free_bytes: int) -> int:
    """Return the budget for bodies where so much memory is free at the start."""
    return min(TOTAL_BYTES, free_bytes // _SHARE)


class MemoryBudget:
    """The memory for large bodies in one process; belongs to one event loop.

    A share that is larger than `total_bytes` gets all of it.
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
        self._waiting: list[_BudgetTurn] = []

    async def take(
        self, wanted_bytes: int, *, is_ahead: Callable[[], bool] = lambda: False, waits: bool = True
    ) -> bool:
        """Take a part, first come first served, and what is fetched ahead after all else.

        What does not wait comes before what does: its body has begun, and is fetched again without room.
        Return whether there was any: in time, or at once where it does not wait.
        """
        loop = asyncio.get_running_loop()
        granted, until = loop.create_future(), loop.time() + self.wait_seconds
        turn = _BudgetTurn(wanted_bytes, is_ahead, waits, granted)
        self._waiting.append(turn)
        self._hand_out()
        try:
            while waits and not granted.done():
                left_seconds = until - loop.time()
                if left_seconds <= 0:
                    break
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
    """A share that waits for its part."""

    wanted_bytes: int
    is_ahead: Callable[[], bool]
    waits: bool
    granted: asyncio.Future[None]


class BudgetSizes:
    """How large the documents of one walk are, as far as they have come: the next is like them."""

    def __init__(self) -> None:
        self._usual_bytes = 0

    @property
    def expected_bytes(self) -> int:
        """What the next body takes, a quarter more than usual; 0 where it will not be large."""
        return self._usual_bytes * 5 // 4 if self._usual_bytes > LARGE_BYTES else 0

    def add(self, body_bytes: int) -> None:
        """Take the size of one more; where they are of different sizes, a large one counts for a while."""
        self._usual_bytes = max(body_bytes, self._usual_bytes // 2)

    def reach(self, body_bytes: int) -> None:
        """Take what one more will probably have, while it comes: it may be as large as usual yet."""
        self._usual_bytes = max(body_bytes, self._usual_bytes)


class Share:
    """The part of the budget that one document has: nothing at first.

    `is_ahead` says whether it is still fetched ahead of its walk, `sizes` are those of the walk, if it is of
    one. Whoever takes something waits; QueueFullError: there was no room in time.
    """

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
        """Before a document is asked for ahead, wait for what it will probably need.

        One that is asked for in its turn takes nothing yet: mostly it has not changed, and has no body.
        """
        if self._sizes.expected_bytes and self._is_ahead():
            await self._take(self._sizes.expected_bytes, waits=True)

    async def begin(self, wire_bytes: int | None, *, is_coded: bool, limit_bytes: int) -> None:
        """Before a body is read, have what it needs as far as its head tells how long it is."""
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
        """Have what a body needs of which so much has come; up to `LARGE_BYTES` that is nothing.

        In its turn it takes as much as it may need, since none is to hold a part and wait for the rest. Ahead
        it takes what it will probably come to, for which there is room more often, and more if it needs more.

        Args:
            body_bytes: Decoded.
            part: How much of the body that is on the wire; 0 if its length is not known.
        """
        if body_bytes > max(LARGE_BYTES, self._held_bytes):
            whole_bytes = min(int(body_bytes / part), self._most_bytes) if part else self._most_bytes
            self._sizes.reach(whole_bytes)
            wanted_bytes = self._most_bytes
            if self._is_ahead():
                likely_bytes = (whole_bytes if part else body_bytes) + LARGE_BYTES // 2
                wanted_bytes = max(body_bytes, min(likely_bytes, wanted_bytes))
            await self.take(wanted_bytes)

    async def take(self, body_bytes: int) -> None:
        """Take what a body of at most so many bytes needs, beside what is there already."""
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
        """Say how large the whole body is: what it does not need is given back."""
        self._sizes.add(body_bytes)
        self.shrink(body_bytes)

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
