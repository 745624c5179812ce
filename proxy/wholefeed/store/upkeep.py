"""What is done to the store as a whole: deleting what is old, and telling how large it is.

Pages that are freed are used again by what comes next; the file itself does not shrink.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from wholefeed.store.database import Database
from wholefeed.store.engine import Engine
from wholefeed.store.statements import fetch_all, fetch_value
from wholefeed.store.tables import documents, feeds, segments
from wholefeed.store.tables.pins import Pins

_RETIRED_BYTES: Final = "SELECT coalesce(sum(deflated_bytes), 0) FROM segment WHERE retired_at IS NOT NULL"
_LEAST_ASKED: Final = "SELECT id, asked_at FROM feed ORDER BY asked_at, id"
_DATABASE: Final = "SELECT file FROM pragma_database_list WHERE name = 'main'"


SUMMARY_SECONDS: Final = 5.0
"""For so long a summary is good: it counts the feeds one by one."""
_FILES: Final = ("", "-wal")


class Summary(NamedTuple):
    """How large the store is."""

    feeds: Mapping[str, tuple[int, int]]
    """By visible state: how many there are, and how many of them are stale."""
    used_bytes: int
    file_bytes: int
    """With what is not yet in the file."""
    free_bytes: int
    """On the volume."""


class Upkeep:
    """Belongs to one store."""

    def __init__(self, engine: Engine, pins: Pins) -> None:
        self._engine = engine
        self.pins = pins
        """Which segments answers are using."""
        self._summing_up = asyncio.Lock()
        self._summary: tuple[Summary, float] | None = None

    async def purge(self, *, now: float) -> int:
        """Delete documents detached for 90 days and retired segments. Returns how many documents."""
        before = now - documents.KEEP_DETACHED_SECONDS
        deleted = await self._engine.write(lambda db: documents.purge(db, before))
        await self.sweep()
        return deleted

    async def sweep(self) -> None:
        """Delete the segments that earlier transactions retired and no answer uses."""
        await self._engine.write(lambda db: segments.sweep(db, self.pins), is_alone=True)

    async def used_bytes(self) -> int:
        """Return what the database's pages in use come to, without segments that wait to be deleted."""
        return await self._engine.read(_used_bytes)

    async def summary(self) -> Summary:
        """Return how large the store is, or was some seconds ago."""
        async with self._summing_up:
            if self._summary is None or time.monotonic() - self._summary[1] > SUMMARY_SECONDS:
                self._summary = await self._engine.read(_sum_up), time.monotonic()
            return self._summary[0]

    async def least_asked(self) -> list[tuple[int, float]]:
        """Return all feeds, each with the time when it was asked for, those not asked for longest first."""
        rows = await self._engine.read(lambda db: fetch_all(db, _LEAST_ASKED))
        return [(row["id"], row["asked_at"]) for row in rows]

    def is_being_sent(self, feed_id: int) -> bool:
        """Whether an answer with this feed is under way."""
        return feed_id in self.pins.feeds or feed_id in self.pins.sent


def _used_bytes(db: Database) -> int:
    pages = fetch_value(db, "PRAGMA page_count")
    free = fetch_value(db, "PRAGMA freelist_count")
    page_bytes = fetch_value(db, "PRAGMA page_size")
    return int((pages - free) * page_bytes - fetch_value(db, _RETIRED_BYTES))


def _sum_up(db: Database) -> Summary:
    path = Path(fetch_value(db, _DATABASE))
    files = [path.with_name(path.name + end) for end in _FILES]
    return Summary(
        feeds=feeds.count_states(db),
        used_bytes=_used_bytes(db),
        file_bytes=sum(file.stat().st_size for file in files if file.exists()),
        free_bytes=shutil.disk_usage(path.parent).free,
    )
