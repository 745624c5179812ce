"""Helpers for asyncio: failures that nobody awaits, and waits with more than one end."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

_T = TypeVar("_T")


def retrieve_failure(done: asyncio.Future[Any]) -> None:
    """Retrieve a future's failure as its done callback, so that asyncio does not warn."""
    if not done.cancelled():
        done.exception()


def clear_tracebacks(error: BaseException) -> None:
    """Clear the frames of an error and its causes."""
    # The error and its awaiting frame form a cycle, which would keep a document's body until collection.
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__


async def either_done(one: asyncio.Future[Any], other: asyncio.Future[Any], seconds: float) -> None:
    """Wait until one of two futures is done, for at most so long; never cancel them."""
    # `asyncio.wait` takes more than twice as long, and every reader of a stale feed waits here.
    if one.done() or other.done():
        return
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiting.done():
            waiting.set_result(None)

    timer = loop.call_later(seconds, wake)
    one.add_done_callback(wake)
    other.add_done_callback(wake)
    try:
        await waiting
    finally:
        timer.cancel()
        one.remove_done_callback(wake)
        other.remove_done_callback(wake)


@asynccontextmanager
async def within(seconds: float, error: Exception) -> AsyncIterator[None]:
    """Limit the block to so many seconds; then raise `error`."""
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            yield
    except TimeoutError as exc:
        if not timeout.expired():
            raise
        raise error from exc


async def in_daemon(work: Callable[[], _T], *, name: str | None = None) -> _T:
    """Run an uninterruptible function in a thread that does not delay the program's end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()
    done.add_done_callback(retrieve_failure)

    def settle(result: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if done.done() else result())

    def run() -> None:
        try:
            found = work()
        except BaseException as exc:  # noqa: BLE001 - it belongs to whoever asked
            error = exc
            settle(lambda: done.set_exception(error))
        else:
            settle(lambda: done.set_result(found))

    threading.Thread(target=run, daemon=True, name=name).start()
    return await done


@asynccontextmanager
async def unless(stopping: asyncio.Event) -> AsyncIterator[None]:
    """End the block without an error when the program is to stop."""
    beginning = asyncio.timeout(None)

    async def watch() -> None:
        await stopping.wait()
        with suppress(RuntimeError):  # it has ended
            beginning.reschedule(asyncio.get_running_loop().time())

    watching = asyncio.create_task(watch())
    try:
        async with beginning:
            yield
    except TimeoutError:
        if not beginning.expired():
            raise
    finally:
        watching.cancel()


async def to_the_end(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close completely even if cancelled: an open resource hangs the process."""
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


async def cancel(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end; raise its earlier failure."""
    task.cancel()
    await asyncio.wait({task})  # to await the task itself would hide that its owner is cancelled
    if not task.cancelled():
        task.result()
