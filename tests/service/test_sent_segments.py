"""Segments in the middle of sending, retired by another replica (row 66a)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.test_running import LARGE, publish_large, request_for, stalled
from tests.origin import Origin
from tests.postgres import Cluster
from tests.replicas import replicas

RETIRED = "SELECT count(*) FROM segment WHERE retired_at IS NOT NULL"


@pytest.fixture
def run(postgres_url: str, shared_postgres: Cluster) -> Callable[[str], list[tuple[int, ...]]]:
    """Return a runner of statements on the test's database."""
    return lambda sql: shared_postgres.run(sql, postgres_url)


def later(minutes: int) -> str:
    """Return a statement that ages retired segments."""
    return f"UPDATE segment SET retired_at = retired_at - {60 * minutes} RETURNING 1"


@pytest.mark.fault("66a")
async def test_a_slow_reader_gets_every_byte_whatever_the_other_replicas_do(
    postgres_url: str, tmp_path: Path, origin: Origin, run: Callable[[str], list[tuple[int, ...]]]
) -> None:
    """Row 66a over replicas: the answer matches its ETag and Content-Length. Its segments go afterwards."""
    publish_large(origin, "a", LARGE)
    url = origin.url("/large")
    async with replicas(postgres_url, tmp_path) as (one, other):
        await one.whole(url)
        reader, writer = await stalled(one)
        writer.write(request_for(url))
        header = await reader.readuntil(b"\r\n\r\n")
        before = await one.get(url, headers={"Host": "localhost"})

        publish_large(origin, "b", LARGE)
        after = await other.refreshed(url, full=True)
        await other.store.upkeep.purge(now=other.clock())
        async with replicas(postgres_url, tmp_path, number=1):
            pass
        assert run(RETIRED) != [(0,)]
        for _ in range(3):
            run(later(50))
            await one.store.upkeep.keep(one.clock())
            await other.store.upkeep.sweep()
        body = await reader.read()
        writer.close()

        assert after.headers["ETag"] != before.headers["ETag"]
        assert f"ETag: {before.headers['ETag']}\r\n".encode() in header
        assert body == before.body
        await one.settled()
        run(later(61))
        await other.store.upkeep.sweep()
        assert run(RETIRED) == [(0,)]


@pytest.mark.fault("66a")
async def test_what_was_retired_stays_for_an_hour(
    postgres_url: str, tmp_path: Path, origin: Origin, run: Callable[[str], list[tuple[int, ...]]]
) -> None:
    """Row 66a over replicas: by the database's clock, also after its feed was forgotten."""
    publish_large(origin, "a", 2)
    url = origin.url("/large")
    async with replicas(postgres_url, tmp_path) as (one, other):
        await one.whole(url)
        assert (await other.ask("DELETE", "/feed", params={"url": url})).status == 204
        other.clock.advance(10_000)
        await other.store.upkeep.sweep()
        kept = run(RETIRED)
        assert kept != [(0,)]
        run(later(59))
        await other.store.upkeep.sweep()
        assert run(RETIRED) == kept
        run(later(2))
        await one.store.upkeep.sweep()
        assert run(RETIRED) == [(0,)]
