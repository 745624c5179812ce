"""A few connections that only read (docs/design.md#the-store).

    row = await readers.run(lambda db: fetch_one(db, sql))

Work is a function that runs in the connection's thread, within one read transaction: what it sees is of one
moment. A read that is cancelled is interrupted, so the next one does not wait for it: an interrupt ends a
statement, so work must not compute for long between two of them.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from wholefeed.errors import OverloadedError
from wholefeed.loggers import get_logger
from wholefeed.store.condition import Condition
from wholefeed.store.sqlite.connection import Connection, close, settle
from wholefeed.store.sqlite.faults import translated

_T = TypeVar("_T")

_log = get_logger()


class Readers:
    """Owns the connections that read; `close` it."""

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._connections: list[Connection] = []
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[Connection]] = deque()
        self._reclaiming: set[asyncio.Task[None]] = set()
        self._is_closing = False

    def add(self, connection: Connection) -> None:
        """Take over a connection."""
        self._connections.append(connection)
        self._give(connection)

    async def run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `work` on a connection that nobody else uses meanwhile, and return its result.

        Raises:
            OverloadedError: The database is busy, or the store is being closed.
            StoreError: SQLite failed otherwise.
        """
        if self._is_closing:
            raise _closed()
        connection = self._idle.pop() if self._idle else await self._next()
        if self._is_closing:
            self._give(connection)
            raise _closed()
        try:
            result = await connection.hop(lambda db: _of_one_moment(db, work))
        except BaseException as exc:
            self._reclaim(connection)
            if self._is_closing and isinstance(exc, (sqlite3.Error, ValueError)):
                raise _closed() from exc
            if isinstance(exc, sqlite3.Error):
                error = translated(exc)
                self._condition.judge(error)
                raise error from exc
            raise
        self._give(connection)
        return result

    async def close(self) -> None:
        """Stop the reads that run and close the connections."""
        self._is_closing = True
        if self._reclaiming:
            await asyncio.wait(self._reclaiming)
        results = await asyncio.gather(*map(close, self._connections), return_exceptions=True)
        for error in results:
            if isinstance(error, BaseException):
                raise error

    async def _next(self) -> Connection:
        """Wait for a connection, first come, first served.

        A queue of asyncio's would let whoever asks in the moment when one is put back overtake, and send who
        has waited back to the end: with a thousand readers some waited for a minute.
        """
        turn: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give(turn.result())
            raise

    def _give(self, connection: Connection) -> None:
        """Let whoever has waited longest have a connection; keep it when nobody waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        self._idle.append(connection)

    def _reclaim(self, connection: Connection) -> None:
        """Take the connection back when what was queued on it has ended, and its transaction too."""
        if self._is_closing:
            self._give(connection)
            return
        task = asyncio.create_task(settle(connection), name="store-reclaim")
        self._reclaiming.add(task)

        def give_back(done: asyncio.Task[None]) -> None:
            self._reclaiming.discard(done)
            self._give(connection)
            if not done.cancelled() and (error := done.exception()) is not None:
                _log.error("store.failed", error=str(error))

        task.add_done_callback(give_back)


def _of_one_moment(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], _T]) -> _T:
    db.execute("BEGIN")
    result = work(db)
    db.execute("COMMIT")
    return result


def _closed() -> OverloadedError:
    return OverloadedError("the store is being closed", slug="shutting-down")
