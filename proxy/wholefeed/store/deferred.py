"""What publishers say of feeds that have not changed, written for many at once a moment later.

    deferred.add(Check(...))
    await deferred.written()        # before anything else is read or written

A transaction of its own, with its commit on disk, is a third of what a refresh costs that brings nothing. A
crash loses what was not written yet: those publishers are asked once more, and say it again.
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


class DeferredChecks:
    """Belongs to one store that nobody else writes to.

    Args:
        engine: Where they are written. Of those that cannot be, the feeds are told to have changed: whatever
            holds them has it that their publishers were heard of.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: dict[int, Check] = {}
        """By feed."""
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def are_waiting(self) -> bool:
        """Whether anything is not written yet."""
        return bool(self._waiting) or self._task is not None

    def add(self, check: Check) -> None:
        """Have a check written in time."""
        self._waiting[check.feed] = check
        self._begin_later()

    async def written(self) -> None:
        """Wait until all that was added before is written, or could not be."""
        if self._task is not None:
            await asyncio.wait({self._task})
        if self._waiting or self._task is not None:  # those that came since that one began
            await asyncio.wait({self._task or self._begin()})

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
        taken, self._waiting = list(self._waiting.values()), {}
        try:
            await self._engine.write(lambda db: checks.note(db, taken))
        except (StoreError, OverloadedError):
            for each in taken:
                self._engine.on_change(each.feed)
        finally:
            self._task = None
            if self._waiting:
                self._begin_later()
