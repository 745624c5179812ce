"""What /metrics tells of the connections to PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.postgres import Cluster
from wholefeed.store.base import Database, fetch_value

if TYPE_CHECKING:
    from wholefeed.store.postgres import PostgresEngine

NAP = "SELECT pg_sleep(1)"
OTHERS = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


def nap(db: Database) -> object:
    return fetch_value(db, NAP)


async def test_who_works_and_who_waits_is_counted(engine: PostgresEngine) -> None:
    """Four connections are busy at the most; what is asked beyond that waits, and nothing does in the end."""
    asked = [asyncio.create_task(engine.read(nap)) for _ in range(6)]
    async with asyncio.timeout(20):
        while engine.traffic.busy < 4:
            await asyncio.sleep(0.01)
        assert (engine.traffic.busy, engine.traffic.waiting) == (4, 2)
        await asyncio.gather(*asked)
    traffic = engine.traffic
    assert (traffic.connections, traffic.busy, traffic.waiting) == (4, 0, 0)
    assert (traffic.repeated, traffic.lost, traffic.notices_lost) == (0, 0, 0)


async def test_what_breaks_off_is_counted(
    engine: PostgresEngine, shared_postgres: Cluster, postgres_url: str
) -> None:
    """A server that ends its connections: each that was open counts once, so does the one that listens."""
    await engine.read(nap)
    before = engine.traffic.connections
    await asyncio.to_thread(shared_postgres.run, f"{OTHERS} AND datname = current_database()", postgres_url)
    assert await engine.read(lambda db: fetch_value(db, "SELECT 1")) == 1
    async with asyncio.timeout(20):
        while not engine.traffic.notices_lost:
            await asyncio.sleep(0.01)
    traffic = engine.traffic
    assert 1 <= traffic.lost <= before
    assert traffic.repeated == traffic.lost
    assert traffic.connections <= 4
    assert (traffic.notices_lost, traffic.busy) == (1, 0)
