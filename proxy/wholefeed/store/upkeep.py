"""What is done to the store as a whole: deleting what is old, and telling how large it is.

What is freed is used again by what comes next; a database's files do not shrink.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from wholefeed.errors import OverloadedError, StoreError
from wholefeed.futures import retrieve_failure
from wholefeed.store.database import Database
from wholefeed.store.engine import Engine
from wholefeed.store.statements import fetch_all, fetch_value
from wholefeed.store.tables import documents, feeds, retired
from wholefeed.store.tables.pins import Pins

_ANY: Final = "SELECT count(*) FROM probe"
_LEAST_ASKED: Final = "SELECT id, asked_at FROM feed ORDER BY asked_at, id"

KEEP_SENT_SECONDS: Final = 600.0
"""Often enough that one time may fail, and another, before an hour is over."""
SUMMARY_SECONDS: Final = 5.0
"""For so long a summary is good: it counts the feeds one by one."""
ANSWER_SECONDS: Final = 2.0
"""A store that has not answered by then cannot be read."""
SUM_UP_SECONDS: Final = 3.0
"""For so long one waits for a new one: who asks for it gives up after ten, and then knows nothing at all."""
REST: Final = 20.0
"""So many times as long as a measurement took nobody makes another one; once as long, where it failed."""


class Summary(NamedTuple):
    """How large the store is."""

    feeds: Mapping[str, tuple[int, int]]
    """By visible state: how many there are, and how many of them are stale."""
    used_bytes: int
    file_bytes: int
    free_bytes: int | None
    """As `Sizes` has them."""


class Upkeep:
    """Belongs to one store."""

    def __init__(self, engine: Engine, pins: Pins) -> None:
        self._engine = engine
        self.pins = pins
        """Which segments answers are using."""
        self._summing_up: asyncio.Task[Summary] | None = None
        self._summary: Summary | None = None
        """The last one."""
        self._good_until = 0.0

    async def purge(self, *, now: float) -> int:
        """Delete documents detached for 90 days and retired segments. Returns how many documents."""
        before = now - documents.KEEP_DETACHED_SECONDS
        deleted = await self._engine.write(lambda db: documents.purge(db, before))
        await self.sweep()
        return deleted

    async def sweep(self) -> None:
        """Delete the segments that earlier transactions retired and no answer uses."""
        await self._engine.write(lambda db: retired.sweep(db, self.pins), is_alone=True)

    async def keep_sent(self, now: Callable[[], float]) -> None:
        """Let no other process delete the segments that answers are using, until cancelled."""
        while self._engine.is_shared:
            await asyncio.sleep(KEEP_SENT_SECONDS)
            if self.pins.segments:
                with suppress(StoreError, OverloadedError):
                    await self.keep(now())

    async def keep(self, now: float) -> None:
        """Let the segments that answers are using stay for another hour, whoever sweeps."""
        await self._engine.write(lambda db: retired.keep(db, self.pins, now))

    async def used_bytes(self) -> int:
        """Return what all that is stored comes to, without segments that wait to be deleted."""
        return (await self._engine.read(self._engine.measure, is_long=True)).used_bytes

    async def feed_bytes(self, feed_id: int) -> int | None:
        """Return how much less `used_bytes` is without a feed; None where that is to be asked again."""
        measure = self._engine.measure_feed
        return None if measure is None else await self._engine.read(lambda db: measure(db, feed_id))

    async def require_answer(self) -> None:
        """Make sure that the store can be read.

        Raises:
            OverloadedError: It does not answer in time.
            StoreError: It cannot be.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._engine.read(lambda db: fetch_value(db, _ANY))
        except TimeoutError as exc:
            raise OverloadedError("the database does not answer in time") from exc

    async def summary(self) -> Summary | None:
        """Return how large the store is, or was some time ago; it is summed up though nobody waits for that.

        Returns:
            None where it was not summed up in time, and never before.

        Raises:
            OverloadedError, StoreError: It could not be.
        """
        if self._summing_up is None and time.monotonic() > self._good_until:
            self._summing_up = asyncio.create_task(self._sum_up(), name="store-summary")
            self._summing_up.add_done_callback(retrieve_failure)
        if (task := self._summing_up) is not None:
            await asyncio.wait({task}, timeout=SUM_UP_SECONDS)
            if task.done():
                return task.result()
        return self._summary

    async def least_asked(self) -> list[tuple[int, float]]:
        """Return all feeds, each with the time when it was asked for, those not asked for longest first."""
        rows = await self._engine.read(lambda db: fetch_all(db, _LEAST_ASKED))
        return [(row["id"], row["asked_at"]) for row in rows]

    def is_being_sent(self, feed_id: int) -> bool:
        """Whether an answer with this feed is under way."""
        return feed_id in self.pins.feeds or feed_id in self.pins.sent

    async def _sum_up(self) -> Summary:
        began_at = time.monotonic()
        try:
            summary = await self._engine.read(self._summed_up, is_long=True)
        except BaseException:  # of a store that cannot say it nothing is told
            self._summary, self._good_until = None, 2 * time.monotonic() - began_at
            raise
        finally:
            self._summing_up = None
        now = time.monotonic()
        self._summary, self._good_until = summary, now + max(SUMMARY_SECONDS, REST * (now - began_at))
        return summary

    def _summed_up(self, db: Database) -> Summary:
        return Summary(feeds.count_states(db), *self._engine.measure(db))
