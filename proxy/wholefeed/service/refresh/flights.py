"""Single flight: many callers, one run, whoever leaves (docs/faults.md rows 63, 64).

flight = flights.join(key, lambda: refresh(feed))
await asyncio.wait({flight}, timeout=8)   # waiting never cancels it
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from wholefeed.futures import clear_tracebacks, retrieve_failure

Key = TypeVar("Key")
T = TypeVar("T")


class Flights(Generic[Key, T]):
    """Runs at most one task a key. Tasks belong to this object and end with `close`."""

    def __init__(self) -> None:
        self._tasks: dict[Key, asyncio.Task[T]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def running(self, key: Key) -> asyncio.Task[T] | None:
        """Return the task of a key, if one is under way: one that has ended takes nothing up any more."""
        task = self._tasks.get(key)
        return None if task is None or task.done() else task

    def join(self, key: Key, start: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """Return the task of a key, starting it when none is under way."""
        assert not self._is_closed, "closed"
        task = self.running(key)
        if task is None:
            task = asyncio.create_task(_flight(start))
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._landed(key, done))
        return task

    async def close(self) -> None:
        """Cancel what is under way and wait until it has ended."""
        self._is_closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _landed(self, key: Key, task: asyncio.Task[T]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        retrieve_failure(task)


async def _flight(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    try:
        return await start()
    except BaseException as exc:
        clear_tracebacks(exc)
        raise
