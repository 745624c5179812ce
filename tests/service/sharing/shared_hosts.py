"""Several replicas that take turns at hosts, on one database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from tests.service.sharing.shared_store import MovableClock, SharedStore
from wholefeed.counts import Counts
from wholefeed.fetch.politeness import HostGate
from wholefeed.service.replica import Replica
from wholefeed.service.sharing_hosts import ReplicaHosts


class Asking:
    """One process: its place among the others, its turns, its gate."""

    def __init__(self, name: str, store: SharedStore, *, per_host: int, interval: float) -> None:
        self.name = name
        self.counts = Counts()
        self.clock = MovableClock()
        self.replica = Replica(store.as_store(), self.clock)
        self.hosts = ReplicaHosts(self.replica, self.counts)
        self.gate = HostGate(
            concurrency=32, per_host=per_host, min_interval_seconds=interval, turns=self.hosts
        )


@asynccontextmanager
async def replicas(
    store: SharedStore, *, per_host: int = 2, interval: float = 0.0, names: str = "abc"
) -> AsyncIterator[list[Asking]]:
    """Yield running replicas."""
    async with AsyncExitStack() as stack:
        made = [Asking(name, store, per_host=per_host, interval=interval) for name in names]
        for each in made:
            store.engine.listen("lease", each.replica.wake)
            store.engine.listen("wanted", each.hosts.wanted)
            await each.replica.beat()
            life = asyncio.create_task(each.replica.run())
            stack.callback(life.cancel)
            stack.push_async_callback(each.hosts.close)
        yield made
