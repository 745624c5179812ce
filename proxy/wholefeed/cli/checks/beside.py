"""What blocks, done in a thread that nobody waits for when the command ends.

The event loop's own threads are waited for at its end, and a dead disk may keep one for ever.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


async def beside(work: Callable[[], _T]) -> _T:
    """Do what blocks in a thread that nobody waits for at the end: a dead disk may keep it for ever."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def do() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as exc:  # noqa: BLE001 - it is raised where it is awaited
            error = exc
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:  # the loop has ended; nobody waits any more
            return

    threading.Thread(target=do, daemon=True, name="doctor").start()
    return await done
