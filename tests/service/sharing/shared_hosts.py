"""Several replicas that share what they know of hosts: by a table in memory, or by a database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from wholefeed.counts import Counts
from wholefeed.errors import OverloadedError
from wholefeed.fetch.hosts import Limits
from wholefeed.fetch.politeness import HostGate
from wholefeed.service.sharing_hosts import ReplicaHosts, SharedRecords, Swap
from wholefeed.store.postgres_upkeep import HostAnswer, HostChange, HostRow, HostRows


class MemoryTable:
    """What `HostRows.swap` does, without a database, and what may go wrong with it."""

    def __init__(self) -> None:
        self.rows: dict[str, HostRow] = {}
        self.replicas: dict[str, ReplicaHosts] = {}
        self.lost: set[str] = set()
        self.delay_seconds = 0.0
        self.fails = False
        self.fails_afterwards = False
        self.is_broken = False
        self.notices: list[str] = []
        self.has_notices = True

    async def swap(self, changes: Sequence[HostChange]) -> HostAnswer:
        await asyncio.sleep(self.delay_seconds)
        if self.fails:
            raise OverloadedError("the database cannot be asked now")
        if self.is_broken:
            raise RuntimeError("a mistake")
        notices = list[str]()
        for each in changes:
            there = self.rows.get(each.name)
            if there is None or there.stamp == each.before:
                self.rows[each.name] = HostRow(each.stamp, each.state)
                notices += each.notices
        answer = HostAnswer(
            time.time(), frozenset(self.lost), {each.name: self.rows[each.name] for each in changes}
        )
        self.notices += notices
        for notice in notices if self.has_notices else ():
            sender, kind, words = notice.split(" ", 2)
            assert kind == "host"
            for name, replica in self.replicas.items():
                if name != sender:
                    replica.wake(words)
        await asyncio.sleep(0)
        if self.fails_afterwards:
            raise OverloadedError("the connection was lost")
        return answer


class Replica:
    """One process: its gate, and what it shares."""

    def __init__(self, name: str, swap: Swap, limits: Limits) -> None:
        self.name = name
        self.counts = Counts()
        self.records = SharedRecords(lambda: name, swap)
        self.hosts = ReplicaHosts(self.records, limits, counts=self.counts)
        self.gate = HostGate(
            concurrency=32,
            per_host=limits.per_host,
            min_interval_seconds=limits.interval_seconds,
            shared=self.hosts,
        )


@asynccontextmanager
async def replicas(
    table: MemoryTable | str, *, per_host: int = 2, interval: float = 0.0, names: str = "abc"
) -> AsyncIterator[list[Replica]]:
    """Replicas that run, on a table in memory or on the database of a URL."""
    limits = Limits(per_host=per_host, interval_seconds=interval, place_seconds=70.0)
    async with AsyncExitStack() as stack:
        made = []
        for name in names:
            if isinstance(table, MemoryTable):
                swap: Swap = table.swap
            else:
                rows = HostRows(table)
                stack.push_async_callback(rows.close)
                swap = rows.swap
            replica = Replica(name, swap, limits)
            if isinstance(table, MemoryTable):
                table.replicas[name] = replica.hosts
            await stack.enter_async_context(replica.hosts.running())
            made.append(replica)
        yield made
