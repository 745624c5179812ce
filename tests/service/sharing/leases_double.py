"""The tables that replicas share, in memory: as `Leases` has them, with a clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wholefeed.errors import StorageFullError, StoreError
from wholefeed.service.sharing import Leases
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables.leases import DEAD_SECONDS, Beat, End, LeaseRow, Looked, Taking, Verdict


@dataclass
class _Lease:
    replica: str
    token: str
    feed: int | None = None
    progress: str = ""
    outcome: str = ""
    ended_at: float | None = None


class MemoryLeases(Leases):
    """All replicas of a test have the same one.

    Args:
        clock: The database's.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.leases: dict[str, _Lease] = {}
        self.beats: dict[str, float] = {}
        self.feeds: dict[int, FeedRow] = {}
        self.is_down = False
        self.is_full = False
        self.told: list[Callable[[str], None]] = []
        """Who listens for notices."""
        self.wanted: list[Callable[[str], None]] = []
        """The same of what is wanted."""
        self.delay_seconds = 0.0

    def leave_behind(self, name: str, *, replica: str, feed: int) -> None:
        """Have a lease that a replica took and did not give back."""
        self.leases[name] = _Lease(replica, f"{replica}.left", feed)

    async def take(self, taking: Taking) -> Looked:
        await asyncio.sleep(self.delay_seconds)
        self._require()
        looked = self.take_new(None, taking)
        for tell in self.wanted if looked.verdict is Verdict.WAIT and taking.tells else ():
            tell(taking.name)
        return looked

    def take_new(self, db: Any, taking: Taking) -> Looked:
        row = None
        if taking.feed is not None and (row := self.feeds.get(taking.feed)) is None:
            return Looked(Verdict.GONE, None, None)
        lease = self.find(db, taking.name)
        verdict = taking.judge(lease, row)
        if verdict is Verdict.TAKE:
            self.leases[taking.name] = _Lease(taking.replica, taking.token, taking.feed)
        elif verdict is Verdict.DONE:
            self.leases.pop(taking.name, None)
        return Looked(verdict, lease, row)

    async def end(self, ends: Sequence[End]) -> None:
        self._require()
        for each in ends:
            lease = self.leases.get(each.name)
            if lease is None or lease.token != each.token:
                continue
            if each.outcome:
                lease.outcome, lease.ended_at = each.outcome, self.clock()
            else:
                del self.leases[each.name]
            for tell in self.told:
                tell(each.name)

    def told_of(self, name: str) -> str:
        """What the next holder of a lease is told."""
        lease = self.leases.get(name)
        return "" if lease is None else lease.outcome or lease.progress

    async def look(self, names: Sequence[str]) -> Mapping[str, LeaseRow]:
        await asyncio.sleep(self.delay_seconds)
        self._require()
        found = {name: self.find(None, name) for name in names}
        return {name: lease for name, lease in found.items() if lease is not None}

    async def beat(self, replica: str, progress: Sequence[tuple[str, str, str]]) -> Beat:
        self._require()
        was_known = replica in self.beats
        self.beats[replica] = self.clock()
        for text, name, token in progress:
            if (lease := self.leases.get(name)) is not None and lease.token == token:
                lease.progress = text
        held = {
            name: lease.token
            for name, lease in self.leases.items()
            if lease.replica == replica and lease.ended_at is None
        }
        return Beat(was_known, held, sum(self.clock() - at < DEAD_SECONDS for at in self.beats.values()))

    def beat_in_thread(self, replica: str) -> bool:
        self._require()
        if replica in self.beats:
            self.beats[replica] = self.clock()
        return replica in self.beats

    async def leave(self, replica: str) -> None:
        self._require()
        self.beats.pop(replica, None)

    async def orphans(self, limit: int) -> Sequence[int]:
        self._require()
        found = [(lease, self.find(None, name)) for name, lease in self.leases.items()]
        return [
            lease.feed
            for lease, row in found
            if lease.feed is not None and row is not None and row.ended_seconds is None and not row.is_live
        ][:limit]

    async def unfinished(self) -> Sequence[int]:
        self._require()
        return []

    async def forget_old(self) -> None:
        self._require()

    def is_held(self, db: Any, name: str, token: str) -> bool:
        lease = self.leases.get(name)
        return lease is not None and lease.token == token and lease.ended_at is None

    def find(self, db: Database | None, name: str) -> LeaseRow | None:
        lease = self.leases.get(name)
        if lease is None:
            return None
        beat_at = self.beats.get(lease.replica)
        return LeaseRow(
            name=name,
            replica=lease.replica,
            token=lease.token,
            progress=lease.progress,
            outcome=lease.outcome,
            ended_seconds=None if lease.ended_at is None else self.clock() - lease.ended_at,
            silent_seconds=None if beat_at is None else self.clock() - beat_at,
        )

    def _require(self) -> None:
        if self.is_down:
            raise StoreError("the database is down")
        if self.is_full:
            raise StorageFullError("the database cannot be written")
