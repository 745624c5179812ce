"""PostgreSQL fails in the middle of a refresh, at every statement in turn; then the fault goes away.

The suite takes some of the statements; `python -m pytest tests/faults --exhaustive` takes every one. Each has
its own feed, all at one proxy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.faults.test_statements import NEW, OLD, a_patient_config, asked, check_answer, publish_new
from tests.feeds import ids, publish_chain
from tests.origin import Origin
from tests.patching import set_constant
from tests.postgres import Cluster
from tests.postgres_faults import CUT, ENDED, LATE, PostgresFaults, a_faulty
from tests.running import Proxy, Reply, running
from tests.sqlite_faults import check_rows

RECOVER_SECONDS = 10.0
ALL, COMMITS = 160, 10
"""About as many as there are in a refresh."""
EVERY = 97
"""One in this many repeatable statements fails: more than there are in a transaction."""
SETTLED = """
    SELECT d.url FROM document AS d JOIN feed AS f ON f.id = d.feed
    WHERE f.url = '{}' AND d.role = 'archive' AND d.is_settled <> 0
"""

LEFT_OPEN = """
    SELECT query FROM pg_stat_activity WHERE datname = current_database()
        AND state LIKE 'idle in transaction%' AND xact_start < clock_timestamp() - interval '1s'
"""


class Bench:
    def __init__(
        self, proxy: Proxy, origin: Origin, faults: PostgresFaults, cluster: Cluster, url: str
    ) -> None:
        self.proxy = proxy
        self.faults = faults
        self._origin = origin
        self._cluster = cluster
        self._url = url
        self._feeds = 0
        self.hits = 0
        """Number of refreshes with a fault: a busy machine answers a known feed without one."""

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return await asyncio.to_thread(self._cluster.run, sql, self._url)

    async def play(self, at: int, how: str, *, is_known: bool, every: int = 0) -> Reply | None:
        """Let a refresh of a new feed meet a fault; return the answer meanwhile."""
        self._feeds += 1
        url = self._origin.url(f"/feed?n={self._feeds}")
        if is_known:
            publish_chain(self._origin, archives=2)
            assert ids((await self.proxy.whole(url)).body) == OLD
            await self.proxy.settled()
            self.proxy.clock.advance(4000)
        publish_new(self._origin)
        with capture_logs() as lines:
            self.faults.arm(at, how, every=every, only_commits=how == LATE)
            reply = await asked(self.proxy, url)
            self.hits += bool(self.faults.failed)
            self.faults.heal()
        assert not [line for line in lines if line["event"] in ("refresh.failed", "request.failed")]
        check_answer(reply, how, OLD if is_known else [])
        if reply is not None and reply.status == 503:
            assert int(reply.headers["Retry-After"]) > 0
        settled = {"/archive/" + row.rpartition("/")[2] for (row,) in await self.rows(SETTLED.format(url))}
        await self._recover(url, settled)
        return reply

    async def _recover(self, url: str, settled: set[str]) -> None:
        """Check that nothing is lost or fetched again, and the feed heals; a beat returns a lease."""
        self._origin.forget_requests()
        async with asyncio.timeout(RECOVER_SECONDS):
            while not await self._is_right(url):
                await asyncio.sleep(0.05)
        assert not self._origin.counts().keys() & settled, "a settled archive is never fetched again"
        assert max(self._origin.counts().values(), default=0) <= 3

    async def _is_right(self, url: str) -> bool:
        if (await self.proxy.ask("GET", "/readyz")).status != 200:
            return False
        if (await self.proxy.get(url)).status == 200:
            await self.proxy.settled()
            await self.proxy.ask("POST", "/refresh", params={"url": url})
            await self.proxy.settled()
        reply = await self.proxy.get(url)
        return reply.status == 200 and (reply.state, ids(reply.body)) == ("complete", NEW)

    async def check(self) -> None:
        """Check that nothing is half-written, and no transaction is open."""
        await asyncio.to_thread(check_rows, lambda sql: self._cluster.run(sql, self._url))
        assert await self.rows(LEFT_OPEN) == []


@pytest.fixture
async def bench(
    tmp_path: Path, origin: Origin, shared_postgres: Cluster, postgres_url: str
) -> AsyncIterator[Bench]:
    async with a_faulty(postgres_url) as faults:
        config = a_patient_config(tmp_path, store={"url": faults.url, "connections": 4})
        async with running(config) as proxy:
            bench = Bench(proxy, origin, faults, shared_postgres, postgres_url)
            yield bench
            await bench.check()


def some(request: pytest.FixtureRequest, of: int, stride: int) -> range:
    return range(1, of + 1, 1 if request.config.getoption("--exhaustive") else stride)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("how", ["serialization", CUT, ENDED, LATE])
@pytest.mark.fault("71a")
@pytest.mark.sample("cut", "late")
async def test_a_statement_that_can_be_done_again_is(
    bench: Bench, request: pytest.FixtureRequest, how: str
) -> None:
    """Row 71a: after a conflict or a lost connection, at any statement."""
    for at in some(request, COMMITS if how == LATE else EVERY, 5 if how == LATE else 27):
        reply = await bench.play(at, how, is_known=at % 2 == 0, every=4 if how == LATE else EVERY)
        assert reply is not None
        assert reply.status == 200
        assert ids(reply.body) == NEW or (at % 2 == 0 and reply.reconstruction.endswith(";stale"))
    assert bench.hits > 1


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("how", "is_for_good"),
    [
        ("disk-full", False),
        ("input-output", False),
        ("disk-full", True),
        ("serialization", True),
        (CUT, True),
    ],
)
@pytest.mark.fault("71a")
@pytest.mark.sample("cut-True", "disk-full-*", "serialization-True")
async def test_a_shared_store_that_fails_anywhere_in_a_refresh_loses_nothing(
    bench: Bench, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, how: str, is_for_good: bool
) -> None:
    """Row 71a: at any statement; all is right once the server is."""
    set_constant(monkeypatch, "PATIENCE_SECONDS", 0.5)
    for at in some(request, ALL, 97 if is_for_good else 67):
        await bench.play(at, how, is_known=at % 2 == 0, every=int(is_for_good))
    assert bench.hits
