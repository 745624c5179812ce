"""What schema 17 makes of what was stored before, on each engine."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Cluster
from wholefeed.store.migrations import Engine, Migration, read_migrations
from wholefeed.store.postgres_migrate import migrate_database
from wholefeed.store.sqlite_file import migrate_file

Rows = list[tuple[Any, ...]]


class Older:
    """A database of the schema before, in which a test puts what it wants."""

    def __init__(self, engine: Engine, migrate: Callable[..., Any], run: Callable[[str], Rows]) -> None:
        self._every = read_migrations(engine)
        self.blob = "x'00'" if engine == "sqlite" else "'\\x00'"
        self._migrate = migrate
        self.run = run

    @property
    def _place(self) -> int:
        return next(at for at, each in enumerate(self._every) if each.name.endswith("standing"))

    async def make(self) -> None:
        await self._migrate(self._every[: self._place])

    async def bring_up(self) -> None:
        await self._migrate(self._every[: self._place + 1])


@pytest.fixture(params=["SQLite", "PostgreSQL"])
async def older(tmp_path: Path, request: pytest.FixtureRequest) -> Older:
    if request.param == "SQLite":
        path = tmp_path / "store.db"

        def run(sql: str) -> Rows:
            with closing(sqlite3.connect(path, isolation_level=None)) as db:
                return db.execute(sql).fetchall()

        async def migrate(every: tuple[Migration, ...]) -> None:
            await migrate_file(path, every)

        made = await asyncio.to_thread(Older, "sqlite", migrate, run)
    else:
        url: str = request.getfixturevalue("empty_postgres_url")
        cluster: Cluster = request.getfixturevalue("shared_postgres")

        async def migrate_shared(every: tuple[Migration, ...]) -> None:
            await migrate_database(url, every)

        made = await asyncio.to_thread(Older, "postgres", migrate_shared, lambda sql: cluster.run(sql, url))
    await made.make()
    return made


def a_feed(older: Older, number: int, **columns: str) -> None:
    values = {
        "id": f"{number}",
        "url": f"'http://o.test/{number}'",
        "fetch_url": "''",
        "family": "'rss'",
        "kind": "'plain'",
        "state": "'remembered'",
        "first_seen_at": "100",
        "asked_at": "100",
        **columns,
    }
    older.run(f"INSERT INTO feed ({', '.join(values)}) VALUES ({', '.join(values.values())})")


def a_document(older: Older, feed: int, url: str, **columns: str) -> None:
    values = {
        "feed": f"{feed}",
        "url": f"'{url}'",
        "final_url": "''",
        "role": "'memory'",
        "rank": "1",
        "family": "'rss'",
        "site_id": "''",
        "links": "'{}'",
        "is_marked": "0",
        "is_settled": "0",
        "is_uncacheable": "0",
        "brought_news": "1",
        "digest": older.blob,
        "media_type": "''",
        "fetched_at": "100",
        "checked_at": "100",
        "parser_version": "1",
        "body_bytes": "1",
        "entries": "1",
        "is_dirty": "0",
        "live_bytes": "0",
        **columns,
    }
    older.run(f"INSERT INTO document ({', '.join(values)}) VALUES ({', '.join(values.values())})")


async def test_since_when_a_feed_is_of_its_format_is_told_by_what_left_with_the_other(older: Older) -> None:
    """R7, R23: as far as it is stored; documents that were replaced, and a web archive's, tell nothing."""
    for number in (1, 2, 3):
        a_feed(older, number)
    gone = {"rank": "NULL", "detached_at": "200"}
    a_document(older, 1, "a", family="'atom'", **gone)
    a_document(older, 1, "b", family="'atom'", **{**gone, "detached_at": "300"})
    a_document(older, 2, "a", **gone)
    a_document(older, 3, "a", family="'atom'", memento="'http://archive.test/'", **gone)
    await older.bring_up()
    assert older.run("SELECT family_since FROM feed ORDER BY id") == [(300.0,), (None,), (None,)]


async def test_what_is_private_was_said_to_be(older: Older) -> None:
    """docs/faults.md row 26: a 304 that says nothing of it leaves that as it is, also the first one."""
    for number in (1, 2):
        a_feed(older, number, is_private=f"{2 - number}")
    await older.bring_up()
    found = older.run("SELECT cache_control, expires FROM feed ORDER BY id")
    assert found == [("private", ""), ("", "")]


async def test_when_a_feed_failed_is_told_by_its_last_attempt(older: Older) -> None:
    """docs/faults.md row 115: what a wrong clock had noted before does not hold either."""
    for number in (1, 2):
        a_feed(older, number, is_stale=f"{2 - number}")
    for url, last_at in (("", 5000), ("http://o.test/archive", 6000)):
        older.run(
            "INSERT INTO attempt (feed, url, reason, attempts, first_at, last_at, next_at)"
            f" VALUES (1, '{url}', 'timeout', 1, 100, {last_at}, 9000)"
        )
    await older.bring_up()
    assert older.run("SELECT failed_at FROM feed ORDER BY id") == [(5000.0,), (None,)]
