"""What is done about futures that fail when nobody waits for them any more, and about their errors."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from typing import Any


def retrieve_failure(done: asyncio.Future[Any]) -> None:
    """Retrieve a future's failure, as its done callback: nobody waiting is no reason for a warning."""
    if not done.cancelled():
        done.exception()


def clear_tracebacks(error: BaseException) -> None:
    """Empty the frames of an error's traceback, and of those it came from, where they have ended.

    Who waits for a task that failed forms a cycle with the error. Until the collector comes by, that would
    keep what the frames hold: the body of the document, above all.
    """
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__


async def to_the_end(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close, also when cancelled meanwhile: what stays open hangs the process."""
    task = asyncio.create_task(close())
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as exc:
            cancelled = exc
    task.result()
    if cancelled is not None:
        raise cancelled


async def cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end; raise what it failed with, if it did before."""
    task.cancel()
    await asyncio.wait({task})  # to await the task itself would hide that its owner is cancelled
    if not task.cancelled():
        task.result()
