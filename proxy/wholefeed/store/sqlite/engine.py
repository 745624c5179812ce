"""A SQLite file as the store's engine: the lock, the connection that writes, and those that read.

async with open_engine(path) as engine:
    await engine.read(lambda db: ...)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from wholefeed.futures import to_the_end
from wholefeed.loggers import get_logger
from wholefeed.store.condition import Condition
from wholefeed.store.database import Database
from wholefeed.store.sqlite import sizes
from wholefeed.store.sqlite.connection import open_reader, open_writer
from wholefeed.store.sqlite.files import tighten
from wholefeed.store.sqlite.migrate import check_current, locked
from wholefeed.store.sqlite.read_pool import Readers
from wholefeed.store.sqlite.writer import Writer
from wholefeed.store.tables import versions
from wholefeed.store.tables.temporary import TEMPORARY_TABLES
from wholefeed.store.traffic import Traffic

_T = TypeVar("_T")

_log = get_logger()

READERS: Final = 4


class SqliteEngine:
    """As `wholefeed.store.engine.Engine` says; `open_engine` makes it."""

    def __init__(self, writer: Writer, readers: Readers, condition: Condition) -> None:
        self._writer = writer
        self._readers = readers
        self.condition = condition
        self.is_shared = False
        self.measure = sizes.measure
        self.measure_feed: None = None
        self.traffic = Traffic()

    @property
    def on_change(self) -> Callable[[int], None]:
        """Told the number of each feed that a commit has changed."""
        return self._writer.on_change

    @on_change.setter
    def on_change(self, listener: Callable[[int], None]) -> None:
        self._writer.on_change = listener

    def read(
        self, work: Callable[[Database], _T], *, is_first: bool = False, is_long: bool = False
    ) -> Coroutine[Any, Any, _T]:
        """Return what a function finds, in the order in which it is asked for."""
        return self._readers.run(work)

    def write(
        self,
        work: Callable[[Database], _T],
        *,
        feed: int | None = None,
        is_alone: bool = False,
        is_lasting: bool = True,
        tell: Callable[[_T], None] | None = None,
    ) -> Coroutine[Any, Any, _T]:
        """Let a function change what is stored."""
        return self._writer.run(work, feed=feed, is_alone=is_alone, is_lasting=is_lasting, tell=tell)

    def write_in_thread(self, work: Callable[[Database], _T]) -> _T:
        """Nobody shares it."""
        raise NotImplementedError

    def write_at_once(self, work: Callable[[Database], _T]) -> Coroutine[Any, Any, _T]:
        """Let a function change what is stored; there is one writer, and nothing waits long for it."""
        return self._writer.run(work)

    def listen(self, kind: str, callback: Callable[[str], None]) -> None:
        """Nobody else sends notices."""

    def on_lost(self, callback: Callable[[], None]) -> None:
        """None is missed."""

    def on_replaced(self, callback: Callable[[], None]) -> None:
        """None takes its place."""

    def versions(self, feeds: Collection[int]) -> Coroutine[Any, Any, Mapping[int, versions.Version]]:
        """Return what feeds are now."""
        return self.read(lambda db: versions.read(db, feeds))


@asynccontextmanager
async def open_engine(path: Path, *, readers: int = READERS) -> AsyncIterator[SqliteEngine]:
    """Open a database file, whose schema must be current, and close it at exit.

    Raises:
        StoreUnusableError: The file is not this program's, not current, or in use by another process.
    """
    async with AsyncExitStack() as stack:
        lock = locked(path)
        await asyncio.to_thread(lock.__enter__)
        stack.push(lock.__exit__)
        await asyncio.to_thread(check_current, path)
        await asyncio.to_thread(_keep_others_out, path)
        condition = Condition()
        writer = Writer(await open_writer(path, TEMPORARY_TABLES), condition)
        stack.push_async_callback(to_the_end, writer.close)
        pool = Readers(condition)
        stack.push_async_callback(to_the_end, pool.close)
        for _ in range(readers):
            pool.add(await open_reader(path))
        yield SqliteEngine(writer, pool, condition)


def _keep_others_out(path: Path) -> None:
    """Before any connection is opened: what SQLite makes beside the file gets the file's rights."""
    for found in tighten(path):
        if found.problem:
            _log.warning("store.exposed", path=str(found.path), reason=found.problem)
        else:
            _log.warning("store.tightened", path=str(found.path))
