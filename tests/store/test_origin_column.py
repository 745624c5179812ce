"""The migration that adds each document's origin, on databases of the schema before."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.aged import UNDOING
from tests.postgres import Cluster
from wholefeed.core.model import IMPORT_URL, LIST_URL, MEMORY_URL
from wholefeed.store.migrations import read_migrations
from wholefeed.store.postgres_migrate import migrate_database
from wholefeed.store.sqlite_file import migrate_file

COPY = "https://archive.example/2020/http://o.test/"
STORED = [
    # url, role, memento, found_by, where it comes from
    ("http://o.test/feed", "subscription", "", "", "publisher"),
    ("http://o.test/gone", "subscription", COPY, "", "memento"),
    ("http://o.test/1", "archive", "", "", "publisher"),
    ("http://o.test/2", "archive", COPY, "", "memento"),
    ("http://o.test/3", "page", "", "wordpress", "adapter"),
    (COPY, "page", COPY, "", "memento"),
    (f"{IMPORT_URL}1", "page", "kept.xml", "", "import"),
    (f"{LIST_URL}http://o.test/", "page", "http://o.test/", "", "listing"),
    (f"{MEMORY_URL}1", "memory", "", "", "memory"),
]
_FEED = """
    INSERT INTO feed (id, url, fetch_url, family, kind, state, first_seen_at, asked_at, fresh_until)
    VALUES (1, 'u', 'u', 'atom', 'plain', 'complete', 1, 1, 1)
"""
_PUT = """
    INSERT INTO document (
        feed, detached_at, family, final_url, site_id, links, is_marked, is_settled, is_uncacheable,
        brought_news, media_type, fetched_at, checked_at, parser_version, body_bytes, entries, is_dirty,
        live_bytes, digest, url, role, memento, found_by
    ) VALUES (
        1, 1, 'atom', 'u', '', '{{}}', 0, 0, 0, 0, '', 1, 1, 1, 1, 1, 0, 0, {digest}, '{}', '{}', '{}', '{}'
    )
    ON CONFLICT (feed, url, role) DO UPDATE SET memento = excluded.memento, found_by = excluded.found_by
"""
"""The statement of a version without the column."""
_ORIGINS = "SELECT url, role, origin FROM document"


def expected(stored: Sequence[tuple[str, ...]] = STORED) -> list[tuple[str, ...]]:
    return sorted((url, role, origin) for url, role, _, _, origin in stored)


async def test_a_file_of_the_schema_before_is_told_its_origins(tmp_path: Path) -> None:
    """Schema 26: one column replaces URLs, roles and two columns."""
    path = tmp_path / "wholefeed.db"
    await migrate_file(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        puts = [_PUT.format(*each, digest="x'64'") for each in STORED]
        for sql in (*UNDOING[28], *UNDOING[27], *UNDOING[26], _FEED, *puts, "PRAGMA user_version = 25"):
            db.execute(sql)
        await migrate_file(path)
        assert sorted(db.execute(_ORIGINS)) == expected()


def test_so_is_a_postgresql(url: str, shared_postgres: Cluster) -> None:
    """The same with replicas."""
    migrate_before(url, shared_postgres)
    for each in STORED:
        shared_postgres.run(_PUT.format(*each, digest="'d'"), url)
    asyncio.run(migrate_database(url))
    assert sorted(shared_postgres.run(_ORIGINS, url)) == expected()


def test_a_replica_of_the_version_before_may_run_on(url: str, shared_postgres: Cluster) -> None:
    """docs/operations.md, "A new version": documents it stores or replaces meanwhile get their origin."""
    migrate_before(url, shared_postgres)
    asyncio.run(migrate_database(url))
    for each in STORED:
        shared_postgres.run(_PUT.format(*each, digest="'d'"), url)
    assert sorted(shared_postgres.run(_ORIGINS, url)) == expected()

    others = [
        ("http://o.test/gone", "subscription", "", "", "publisher"),
        ("http://o.test/1", "archive", COPY, "", "memento"),
        ("http://o.test/3", "page", COPY, "", "memento"),
        (COPY, "page", "", "wordpress", "adapter"),
        (f"{IMPORT_URL}1", "page", "other.xml", "", "import"),
    ]
    for each in others:
        shared_postgres.run(_PUT.format(*each, digest="'d'"), url)
    changed = {each[:2] for each in others}
    stays = [each for each in STORED if each[:2] not in changed]
    assert sorted(shared_postgres.run(_ORIGINS, url)) == expected([*stays, *others])


def test_what_a_writer_says_of_an_origin_counts(url: str, shared_postgres: Cluster) -> None:
    """A later source's origin does not follow from its other columns."""
    migrate_before(url, shared_postgres)
    asyncio.run(migrate_database(url))
    told = "memento, found_by, origin"
    put = _PUT.replace("memento, found_by\n", f"{told}\n").replace("'{}', '{}'\n", "'{}', '{}', '{origin}'\n")
    put += ", origin = excluded.origin"
    for origin, memento in (("later", "a"), ("later", "b"), ("adapter", ""), ("publisher", "")):
        named = ("http://o.test/1", "archive", memento, "")
        shared_postgres.run(put.format(*named, digest="'d'", origin=origin), url)
        assert shared_postgres.run("SELECT origin, memento FROM document", url) == [(origin, memento)]


@pytest.fixture
def url(empty_postgres_url: str) -> str:
    return empty_postgres_url


def migrate_before(url: str, cluster: Cluster) -> None:
    """Make the schema before, with a feed."""
    before = [each for each in read_migrations("postgres") if each.version < 26]
    asyncio.run(migrate_database(url, before))
    cluster.run(_FEED, url)
