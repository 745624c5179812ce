"""The one task that writes (docs/design.md#the-store).

Work is an async function over the connection. It runs in a transaction of its own, and whoever asked
for it may leave: that ends the waiting, never the transaction.

    row = await writer.run(lambda db: feeds.create_feed(db, ...))

Work may run twice (after SQLITE_BUSY), so it must do nothing but SQL.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

import aiosqlite

from wholefeed.errors import OverloadedError
from wholefeed.futures import retrieve_failure
from wholefeed.store.sqlite.condition import Condition
from wholefeed.store.sqlite.connection import close
from wholefeed.store.sqlite.faults import is_busy, translated

_T = TypeVar("_T")
_TRIES: Final = 3


class _Job(NamedTuple):
    work: Callable[[aiosqlite.Connection], Awaitable[Any]]
    done: asyncio.Future[Any]
    on_commit: Callable[[Any], None]


class Writer:
    """Owns the connection that writes; `close` it."""

    def __init__(self, db: aiosqlite.Connection, condition: Condition) -> None:
        self._db = db
        self.condition = condition
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue()
        self._is_closing = False
        self._task = asyncio.create_task(self._run(), name="store-writer")

    async def run(
        self,
        work: Callable[[aiosqlite.Connection], Awaitable[_T]],
        *,
        on_commit: Callable[[_T], None] = lambda _: None,
    ) -> _T:
        """Run `work` in BEGIN IMMEDIATE ... COMMIT and return its result.

        `on_commit` is called with it right after the commit, also when whoever asked has left.

        Raises:
            StorageFullError: The volume is full or read-only.
            StoreDamagedError: The file is damaged.
            OverloadedError: The database stayed busy, or the store is being closed.
            StoreError: SQLite failed otherwise.
        """
        if self._is_closing or self._task.done():
            raise _closed()
        done: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        done.add_done_callback(retrieve_failure)
        self._jobs.put_nowait(_Job(work, done, on_commit))
        return await asyncio.shield(done)

    async def close(self) -> None:
        """Finish what was asked for, then close the connection, which checkpoints."""
        self._is_closing = True
        self._jobs.put_nowait(None)
        try:
            await asyncio.wait({self._task})
        finally:
            await close(self._db)

    async def _run(self) -> None:
        try:
            while job := await self._jobs.get():
                await self._finish(job)
        finally:
            self._is_closing = True
            while not self._jobs.empty():
                if job := self._jobs.get_nowait():
                    job.done.set_exception(_closed())

    async def _finish(self, job: _Job) -> None:
        try:
            result = await self._transact(job)
            job.on_commit(result)
        except Exception as exc:  # noqa: BLE001 - it belongs to whoever asked
            self.condition.judge(exc)
            job.done.set_exception(exc)
        except BaseException:
            job.done.set_exception(_closed())
            raise
        else:
            job.done.set_result(result)

    async def _transact(self, job: _Job) -> Any:
        self.condition.require_sound()
        for tries_left in reversed(range(_TRIES)):
            try:
                return await self._once(job)
            except sqlite3.Error as exc:
                if not (tries_left and is_busy(exc)):
                    raise translated(exc) from exc
        raise AssertionError

    async def _once(self, job: _Job) -> Any:
        try:
            if self._db.in_transaction:  # an earlier one could not be rolled back when it failed
                await self._db.rollback()
            changes = self._db.total_changes
            await self._db.execute("BEGIN IMMEDIATE")
            result = await job.work(self._db)
            await self._db.execute("COMMIT")
            if (
                self._db.total_changes > changes
            ):  # a full or read-only volume bears it when nothing is written
                self.condition.has_written()
        except BaseException:
            # Cancelling does not take back what was queued in the thread: this waits behind it.
            await self._db.rollback()
            raise
        return result


def _closed() -> OverloadedError:
    return OverloadedError("the store is being closed", slug="shutting-down")
