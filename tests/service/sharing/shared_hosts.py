"""Several replicas that take turns at hosts, on one database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from tests.service.sharing.shared_store import SharedStore
from wholefeed.counts import Counts
from wholefeed.fetch.politeness import HostGate
from wholefeed.service.sharing import Shared
from wholefeed.service.sharing_hosts import ReplicaHosts


class Replica:
    """One process: its place among the others, its turns, its gate."""

    def __init__(self, name: str, store: SharedStore, *, per_host: int, interval: float) -> None:
        self.name = name
        self.counts = Counts()
        self.shared = Shared(store.as_store())
        self.hosts = ReplicaHosts(self.shared, self.counts)
        self.gate = HostGate(
            concurrency=32, per_host=per_host, min_interval_seconds=interval, turns=self.hosts
        )


@asynccontextmanager
async def replicas(
    store: SharedStore, *, per_host: int = 2, interval: float = 0.0, names: str = "abc"
) -> AsyncIterator[list[Replica]]:
    """Give replicas that run."""
    async with AsyncExitStack() as stack:
        made = [Replica(name, store, per_host=per_host, interval=interval) for name in names]
        for each in made:
            store.engine.listen("lease", each.shared.waits.wake)
            store.engine.listen("wanted", each.hosts.wanted)
            await each.shared.member.beat()
            life = asyncio.create_task(each.shared.run())
            stack.callback(life.cancel)
            stack.push_async_callback(each.hosts.close)
        yield made
