"""Politeness over all replicas, for as long as a database is shared.

async with open_politeness(config, name=lambda: member.name, counts=counts) as politeness:
    store.listen("host", politeness.wake)
    fetcher = Fetcher.open(config.fetch, config.limits, gate=politeness.gate)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from wholefeed.config.tables import Config
from wholefeed.counts import Counts
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.fetch.hosts.gate import HostGate
from wholefeed.fetch.hosts.places import Limits
from wholefeed.fetch.memento import REQUESTS_PER_MINUTE, Turns
from wholefeed.service.sharing.archive_turns import ReplicaTurns
from wholefeed.service.sharing.hosts import ReplicaHosts
from wholefeed.service.sharing.records import SharedRecords
from wholefeed.store.postgres.hosts import HostRows

SWEEP_SECONDS: Final = 60.0
"""Between two removals of what there is nothing to remember of."""
_MARGIN_SECONDS: Final = 30.0
"""Beyond its time, what ends a request may wait for: its turn on the event loop, the database."""


@dataclass(frozen=True, slots=True)
class Politeness:
    """What asks publishers with regard to what other replicas ask."""

    gate: HostGate
    archive_turns: Turns
    wake: Callable[[str], None]
    """Told what notices of the kind `host` say."""


@asynccontextmanager
async def open_politeness(
    config: Config, *, name: Callable[[], str], counts: Counts
) -> AsyncIterator[Politeness]:
    """Share what is known of hosts with whoever uses the database at `store.url`.

    Args:
        config: The same for every replica, as far as hosts are concerned.
        name: Gives the name under which this replica gives signs of life.
        counts: Where requests are counted that the other replicas do not know of.
    """
    rows = HostRows(config.store.url)
    records = SharedRecords(name, rows.swap)
    limits = Limits(
        per_host=config.fetch.concurrency_per_host,
        interval_seconds=config.fetch.min_interval_per_host_seconds,
        place_seconds=config.fetch.document_timeout_seconds + _MARGIN_SECONDS,
    )
    hosts = ReplicaHosts(records, limits, counts=counts)
    turns = ReplicaTurns(records, config.history.memento_url, per_minute=REQUESTS_PER_MINUTE)
    sweeping = asyncio.create_task(_sweep(rows), name="hosts-sweep")
    try:
        async with hosts.running():
            gate = HostGate.from_config(config.fetch, shared=hosts)
            yield Politeness(gate, Turns(shared=turns), hosts.wake)
    finally:
        sweeping.cancel()
        await asyncio.wait({sweeping})
        await rows.close()


async def _sweep(rows: HostRows) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        with suppress(StoreError, OverloadedError):
            await rows.sweep()
