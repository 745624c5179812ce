"""Place of a test's store: a SQLite file, or a PostgreSQL database."""

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
    """A database with wholefeed's tables, not yet opened by a store."""

    path: Path
    """Path of SQLite's file."""
    url: str = ""
    """URL of PostgreSQL's database."""
    ask: Callable[[str, str], list[tuple[Any, ...]]] | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[NamedStore]:
        if self.url:
            async with open_shared(self.url, connections=4) as store:
                yield NamedStore(store)
            return
        empty_store.put_at(self.path)
        async with open_file(self.path) as store:
            yield NamedStore(store)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement beside the store, and return its rows."""
        if self.url:
            assert self.ask is not None
            return self.ask(sql, self.url)
        return rows(self.path, sql)
