"""The process is killed at random moments of its walks, over and over, with one database.

The suite does so some times; `python -m pytest tests/faults/test_killing.py --exhaustive` 200 times.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import aiohttp
import pytest

from tests.feeds import an_item, atom, ids
from tests.origin import Origin
from tests.processes import serving
from tests.sqlite_faults import check_database

KILLS, ALL_KILLS = 2, 200
ARCHIVES = 30
LATENCY_SECONDS = 0.01
LONGEST_SECONDS = 0.6
"""From the first request of a publisher to the kill; a walk alone takes less."""


def publish(origin: Origin, name: str) -> list[str]:
    names = []
    for place in range(ARCHIVES + 1, 0, -1):
        held = [an_item(f"{name}-{place}-{n}", 3 * place + n, "x" * 500) for n in (2, 1)]
        names += [item.name for item in held]
        is_archive = place <= ARCHIVES
        older = f"/{name}/{place - 1}" if place > 1 else None
        path = f"/{name}/{place}" if is_archive else f"/{name}"
        origin.publish(path, atom(*held, archive=is_archive, prev_archive=older, feed_id=f"urn:{name}"))
    return names


def archives(database: Path) -> set[str]:
    if not database.exists():
        return set()
    with closing(sqlite3.connect(database)) as db:
        rows = db.execute("SELECT url FROM document WHERE role = 'archive' AND is_settled").fetchall()
    return {"/" + url.split("/", 3)[3] for (url,) in rows}


@pytest.mark.timeout(900)
@pytest.mark.fault("67")
async def test_a_process_that_is_killed_over_and_over_loses_nothing_and_fetches_nothing_twice(
    tmp_path: Path, origin: Origin, request: pytest.FixtureRequest
) -> None:
    """Row 67: after every kill -9 the file is sound, and all feeds come out whole."""
    kills = ALL_KILLS if request.config.getoption("--exhaustive") else KILLS
    chance = random.Random(67)
    database = tmp_path / "wholefeed.db"
    origin.latency_seconds = LATENCY_SECONDS
    expected: dict[str, list[str]] = {}
    stored: set[str] = set()
    in_walks = 0
    for number in range(kills):
        name = f"f{number // 3}"
        expected.setdefault(name, publish(origin, name))
        origin.forget_requests()
        async with serving(tmp_path) as served:
            asking = asyncio.create_task(served.get(origin.url(f"/{name}")))
            async with asyncio.timeout(300):
                while not origin.requests and not asking.done():
                    await asyncio.sleep(0.001)
            await asyncio.sleep(chance.uniform(0, LONGEST_SECONDS))
            served.process.kill()
            assert await served.ended() == -signal.SIGKILL
            with suppress(aiohttp.ClientError):
                await asking
        check_database(database)
        now_stored = archives(database)
        assert stored <= now_stored, "an archive that was stored is gone"
        assert not origin.counts().keys() & stored, "an archive that was stored is fetched again"
        in_walks += len(now_stored) % ARCHIVES > 0
        stored = now_stored
    assert in_walks > kills // 4, "most kills hit no walk"

    origin.forget_requests()
    async with serving(tmp_path) as served:
        for name, entries in expected.items():
            reply = await served.whole(origin.url(f"/{name}"))
            assert (reply.state, ids(reply.body)) == ("complete", entries)
    assert not origin.counts().keys() & stored
    request.config.get_terminal_writer().line(
        f" {kills} kills, {in_walks} in the middle of a walk, {len(stored)} archives stored by then"
    )
