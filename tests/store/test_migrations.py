"""The numbered files of both engines, and what single ones make of what was stored before."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Cluster
from wholefeed.errors import StoreUnusableError
from wholefeed.store import migrations
from wholefeed.store.migrations import Engine, Migration, read_migrations
from wholefeed.store.postgres_migrate import migrate_database
from wholefeed.store.sqlite_file import migrate_file


def test_both_engines_have_the_same_newest_schema() -> None:
    """One number says which schema a store has, whichever engine it is on."""
    assert read_migrations("postgres")[-1].version == read_migrations("sqlite")[-1].version


@pytest.mark.parametrize(("engine", "folder", "number"), [("sqlite", "", 1), ("postgres", "postgres", 13)])
def test_migrations_are_found_in_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine, folder: str, number: int
) -> None:
    """An installed package reads the migrations that it was packed with, and no other files beside them."""
    packed = tmp_path / "_migrations" / folder
    packed.mkdir(parents=True)
    (packed / f"{number:04}_packed.sql").write_text("SELECT 1;")
    (packed / "README").write_text("not one")
    (packed / "deeper").mkdir()
    monkeypatch.setattr(migrations, "files", lambda _: tmp_path)

    assert read_migrations(engine) == (Migration(number, f"{number:04}_packed", "SELECT 1;"),)


@pytest.mark.parametrize(
    "names", [[], ["0002_b.sql"], ["0001_a.sql", "0003_c.sql"], ["0001_a.sql", "0001_b.sql"]]
)
def test_migrations_with_a_gap_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    """A package whose migrations are incomplete or numbered twice does not touch a database."""
    packed = tmp_path / "_migrations"
    packed.mkdir()
    for name in names:
        (packed / name).write_text("")
    monkeypatch.setattr(migrations, "files", lambda _: tmp_path)

    with pytest.raises(StoreUnusableError, match="without a gap"):
        read_migrations()


def test_a_package_without_an_engines_migrations_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken installation is told by the folder that is missing."""
    (tmp_path / "_migrations").mkdir()
    monkeypatch.setattr(migrations, "files", lambda _: tmp_path)

    with pytest.raises(StoreUnusableError, match="no such directory"):
        read_migrations("postgres")


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


FEED = """
    INSERT INTO feed (url, fetch_url, family, kind, state, first_seen_at, asked_at)
    VALUES (?, ?, 'atom', 'plain', 'remembered', 0, 0) RETURNING id
"""


async def test_feeds_lose_the_names_that_they_took_by_moving(tmp_path: Path) -> None:
    """R25: in earlier versions where a feed moved to led to it, also when it had come back since."""
    path = tmp_path / "feeds.db"
    every = await asyncio.to_thread(read_migrations)
    number = next(at for at, migration in enumerate(every) if migration.name.endswith("own_keys"))
    await migrate_file(path, every[:number])
    with closing(sqlite3.connect(path)) as db:
        (moved,) = db.execute(FEED, ("http://o.test/old", "http://o.test/new")).fetchone()
        (returned,) = db.execute(FEED, ("http://o.test/a", "http://o.test/a")).fetchone()
        db.executemany(
            "INSERT INTO alias (url, feed) VALUES (?, ?)",
            [("http://o.test/new", moved), ("http://o.test/between", moved), ("http://o.test/b", returned)],
        )
        db.commit()
    await migrate_file(path, every[: number + 1])
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT url, feed FROM alias").fetchall() == []
        assert db.execute("SELECT count(*) FROM feed").fetchone() == (2,)
