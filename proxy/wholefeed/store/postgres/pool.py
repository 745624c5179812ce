"""Threads with a connection each, which run whole functions (docs/design.md#the-store).

    row = await pool.run(lambda db: fetch_one(db, sql), is_read=True)

Work is a function that runs in a thread, within one transaction, and it may run twice: a transaction that a
concurrent one has ended is repeated, and so is one whose connection was lost before its COMMIT was sent. A
connection is made when it is needed; while the server cannot be reached, whoever asks is told so at once.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import psycopg

from wholefeed.errors import OverloadedError
from wholefeed.store.database import Database
from wholefeed.store.postgres import transactions
from wholefeed.store.postgres.connection import PostgresDatabase, connect
from wholefeed.store.postgres.faults import RETRY_AFTER_SECONDS, is_repeated, is_unusable, translated
from wholefeed.store.postgres.transactions import Transaction

_T = TypeVar("_T")

TRIES: Final = 6
"""Of one transaction."""
PATIENCE_SECONDS: Final = 10.0
"""For so long work waits for a connection, and a read for its result."""
_PAUSE_SECONDS: Final = 0.01
"""Before the first repetition, on the average; each pause is twice as long as the one before."""
_UNREACHABLE_SECONDS: Final = 1.0
"""For so long nobody tries to connect again, where that has failed."""


class Pool:
    """Owns the connections; `close` it.

    Args:
        url: Of the database, as libpq takes it.
        size: How many connections, at the most.
        script: SQL that is run on each new connection: its temporary tables.
    """

    def __init__(self, url: str, *, size: int, script: str = "") -> None:
        self.size = size
        self._url = url
        self._script = script
        self._executor = ThreadPoolExecutor(size, "store")
        self._own = threading.local()
        self._connections = set[PostgresDatabase]()
        self._unreachable_until = 0.0
        self._is_closing = False

    async def run(self, work: Callable[[Database], _T], *, is_read: bool, feed: int | None = None) -> _T:
        """Run `work` in a transaction on a connection that nobody else uses meanwhile.

        Whoever waits may be cancelled; what has begun runs to its end.

        Args:
            work: The function.
            is_read: Whether it only reads: then all that it sees is of one moment.
            feed: The feed that it changes, whose row is locked first.

        Raises:
            OverloadedError: The database cannot be asked now, or the store is being closed.
            StorageFullError: The database cannot be written.
            StoreDamagedError: The database is damaged.
            StoreError: It failed otherwise.
        """
        if self._is_closing:
            raise _closed()
        latest_at = time.monotonic() + PATIENCE_SECONDS
        job = asyncio.get_running_loop().run_in_executor(
            self._executor, self._transact, work, None if is_read else Transaction(feed), latest_at
        )
        if not is_read:
            return await job
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await job
        except TimeoutError as exc:
            raise _overloaded("the database does not answer in time") from exc

    async def close(self) -> None:
        """Finish what has begun, then close the connections."""
        self._is_closing = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._executor.shutdown(cancel_futures=True)
        for db in self._connections:
            db.close()

    def _transact(
        self, work: Callable[[Database], _T], transaction: Transaction | None, latest_at: float
    ) -> _T:
        if time.monotonic() > latest_at:
            raise _overloaded("too many wait for the database")
        pause = _PAUSE_SECONDS
        for tries_left in reversed(range(TRIES)):
            try:
                db = self._connected()
            except psycopg.Error as exc:
                raise translated(exc) from exc
            try:
                return transactions.read(db, work) if transaction is None else transaction.run(db, work)
            except psycopg.Error as exc:
                if is_unusable(exc):
                    db.close()
                is_again = is_repeated(exc) or (db.is_lost and not (transaction and transaction.is_ending))
                if not (tries_left and is_again):
                    raise translated(exc) from exc
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - so that two do not meet again
            pause *= 2
        raise AssertionError

    def _connected(self) -> PostgresDatabase:
        """Return this thread's connection, made if it has none or lost it."""
        db: PostgresDatabase | None = getattr(self._own, "db", None)
        if db is not None and not db.is_lost:
            return db
        if db is not None:
            self._connections.discard(db)
            self._own.db = None
        if time.monotonic() < self._unreachable_until:
            raise _overloaded("the database cannot be reached")
        try:
            db = connect(self._url, script=self._script)
        except psycopg.Error:
            self._unreachable_until = time.monotonic() + _UNREACHABLE_SECONDS
            raise
        self._connections.add(db)
        self._own.db = db
        return db


def _overloaded(message: str) -> OverloadedError:
    return OverloadedError(message, retry_after_seconds=RETRY_AFTER_SECONDS)


def _closed() -> OverloadedError:
    return OverloadedError("the store is being closed", slug="shutting-down")
