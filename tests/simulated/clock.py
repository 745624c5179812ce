"""A clock that stands still while anything is ready to run, and an event loop that goes by it.

    clock = Clock()
    with clock.told():                  # `time.time` and `time.monotonic` are the clock's
        loop = VirtualLoop(clock)
        loop.run_until_complete(asyncio.sleep(3600))        # takes no time at all

All that can happen at an instant has happened before the next one comes. So how many turns of the loop
something takes makes no difference, as long as no two things happen at the same instant.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from unittest.mock import patch

_T = TypeVar("_T")
BEGIN_AT: Final = 1_730_001_600.0
"""Epoch seconds at every story's beginning."""


class DeadlockError(Exception):
    """Nothing is ready, and nothing ever will be."""


class Clock:
    """The virtual time; `seconds` are monotonic."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def time(self) -> float:
        return BEGIN_AT - 1000.0 + self.seconds

    @contextmanager
    def told(self) -> Iterator[None]:
        """Replace everybody's clock by this one."""
        with patch.object(time, "monotonic", self.monotonic), patch.object(time, "time", self.time):
            yield


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that waits for the clock alone. Work for threads runs at once."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(_Selector(clock))
        self._virtual = clock
        self.troubles: list[str] = []
        """Failures that nobody awaited."""
        self.set_exception_handler(self._note)
        self._clock_resolution = 1e-7  # after months a float knows no nanoseconds any more

    def time(self) -> float:
        return self._virtual.seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., _T], *args: Any
    ) -> asyncio.Future[_T]:
        future: asyncio.Future[_T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as exc:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(exc)
        return future

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.troubles.append(f"{context['message']}: {context.get('exception')!r}")


class _Selector(selectors.SelectSelector):
    """Waits by moving the clock; looks at no file."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise DeadlockError("everything waits, and nothing will come")
        self._clock.seconds += max(0.0, timeout)
        return []
