"""Where a test's store is: a SQLite file, or a PostgreSQL database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import empty_store
from tests.named_store import NamedStore
from tests.sqlite_faults import rows
from wholefeed.store.engine_choice import open_file, open_shared


@dataclass(frozen=True)
class Place:
    """A database with wholefeed's tables, which no store has open yet."""

    path: Path
    """Of the file, where it is SQLite's."""
    url: str = ""
    """Of the database, where it is PostgreSQL's."""
    ask: Callable[[str, str], list[tuple[Any, ...]]] | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[NamedStore]:
        """Open the store there."""
        if self.url:
            async with open_shared(self.url, connections=4) as store:
                yield NamedStore(store)
            return
        empty_store.put_at(self.path)
        async with open_file(self.path) as store:
            yield NamedStore(store)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement, beside the store, and return what it gives."""
        if self.url:
            assert self.ask is not None
            return self.ask(sql, self.url)
        return rows(self.path, sql)
