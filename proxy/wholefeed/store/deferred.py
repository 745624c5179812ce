"""What publishers say of feeds that have not changed, written for many at once a moment later.

    deferred.add(Check(...))
    await deferred.written()                    # before anything else is written
    await deferred.written(within_seconds=1)    # before anything is read of these feeds

A transaction of its own, with its commit on disk, is a third of what a refresh costs that brings nothing. A
crash loses what was not written yet: those publishers are asked once more, and say it again.

Who reads does not wait long for that: before it a transaction may run that takes seconds. What is read then
is as it was before, which may be asked once more, too.
"""

from __future__ import annotations

import asyncio
from typing import Final

from wholefeed.errors import OverloadedError, StoreError
from wholefeed.store.engine import Engine
from wholefeed.store.tables import checks
from wholefeed.store.tables.checks import Check

WRITE_SECONDS: Final = 0.25
"""For so long one waits for others at most."""
READ_SECONDS: Final = 1.0
"""For so long who reads waits for what is being written."""


class DeferredChecks:
    """Belongs to one store that nobody else writes to.

    Args:
        engine: Where they are written. Of those that cannot be, the feeds are told to have changed: whatever
            holds them has it that their publishers were heard of. So are those that were late: whoever has
            read them meanwhile has it that they were not.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: dict[int, Check] = {}
        """By feed."""
        self._writing: dict[int, Check] = {}
        """The same, those of the task."""
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_late = False
        """Whether somebody has read without waiting for the end of the task."""

    @property
    def are_waiting(self) -> bool:
        """Whether anything is not written yet."""
        return bool(self._waiting) or self._task is not None

    @property
    def feeds(self) -> frozenset[int]:
        """The feeds of which something is not written yet."""
        return frozenset((*self._waiting, *self._writing))

    def of(self, feed: int) -> Check | None:
        """Return what is not written yet of a feed."""
        return self._waiting.get(feed) or self._writing.get(feed)

    def add(self, check: Check) -> None:
        """Have a check written in time."""
        self._waiting[check.feed] = check
        self._begin_later()

    async def written(self, *, within_seconds: float | None = None) -> None:
        """Wait until all that was added before is written, or could not be.

        Args:
            within_seconds: For no longer than that; and not at all where somebody has waited for so long.
        """
        if self._task is not None and not await self._is_over(within_seconds):
            return
        if self._waiting or self._task is not None:  # those that came since that one began
            await self._is_over(within_seconds)

    async def _is_over(self, within_seconds: float | None) -> bool:
        """Wait for the task under way, or else a new one; return whether it has ended in time."""
        if within_seconds is not None and self._is_late:
            return False
        _, late = await asyncio.wait({self._task or self._begin()}, timeout=within_seconds)
        self._is_late = self._is_late or bool(late)
        return not late

    def _begin_later(self) -> None:
        if self._timer is None and self._task is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_SECONDS, self._begin)

    def _begin(self) -> asyncio.Task[None]:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._task = asyncio.create_task(self._write(), name="store-checks")
        return self._task

    async def _write(self) -> None:
        self._writing, self._waiting = self._waiting, {}
        taken = list(self._writing.values())
        is_told = False
        try:
            await self._engine.write(lambda db: checks.note(db, taken), is_lasting=False)
        except (StoreError, OverloadedError):
            is_told = True
        finally:
            is_told = is_told or self._is_late  # it may be held as it was read meanwhile
            self._task, self._is_late, self._writing = None, False, {}
            if self._waiting:
                self._begin_later()
        for each in taken if is_told else ():
            self._engine.on_change(each.feed)
