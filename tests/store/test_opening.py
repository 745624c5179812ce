"""Which store is opened, and the errors of opening."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wholefeed.config.tables import StoreConfig
from wholefeed.errors import StoreUnusableError
from wholefeed.extras import to_add
from wholefeed.store.base import fetch_value
from wholefeed.store.engine_choice import migrate_store, open_store

VERSION = "SELECT sqlite_version()"
SERVER_VERSION = "SHOW server_version_num"

OPEN_A_FILE = """
import asyncio, sys
from wholefeed.config.tables import StoreConfig
from wholefeed.store.engine_choice import migrate_store, open_store

async def main(settings):
    await migrate_store(settings)
    async with open_store(settings):
        print([name for name in sys.modules if name.startswith(("psycopg", "wholefeed.store.postgres"))])

asyncio.run(main(StoreConfig(path=sys.argv[1])))
"""

NO_DRIVER = """
import asyncio, sys
sys.modules["psycopg"] = None
from wholefeed.config.tables import StoreConfig
from wholefeed.errors import StoreUnusableError
from wholefeed.store.engine_choice import migrate_store, open_store

async def main(settings):
    for attempt in (migrate_store(settings), open_store(settings).__aenter__()):
        try:
            await attempt
        except StoreUnusableError as exc:
            print(exc)

asyncio.run(main(StoreConfig(url="postgresql://me:hidden@127.0.0.1:1/feeds")))
"""


async def test_a_file_is_opened_where_no_database_is_named(tmp_path: Path) -> None:
    """`store.path` alone is a SQLite store."""
    settings = StoreConfig(path=str(tmp_path / "store.db"))
    assert await migrate_store(settings)
    assert await migrate_store(settings) == []
    async with open_store(settings) as store:
        assert await store.read(lambda db: fetch_value(db, VERSION))


async def test_a_database_is_opened_where_one_is_named(tmp_path: Path, empty_postgres_url: str) -> None:
    """`store.url` takes precedence over `store.path`, whose file is not made."""
    settings = StoreConfig(path=str(tmp_path / "store.db"), url=empty_postgres_url)
    with pytest.raises(StoreUnusableError):
        async with open_store(settings):
            pass
    assert await migrate_store(settings)
    async with open_store(settings) as store:
        assert int(await store.read(lambda db: fetch_value(db, SERVER_VERSION))) >= 150000
        await store.check()
    assert list(tmp_path.iterdir()) == []


async def test_a_database_that_cannot_be_reached_is_told_without_its_password(tmp_path: Path) -> None:
    """The process ends at the start with one line that names the server."""
    pytest.importorskip("psycopg")
    url = "postgresql://me:hidden@127.0.0.1:1/feeds?connect_timeout=2"
    for attempt in (migrate_store(StoreConfig(url=url)), open_store(StoreConfig(url=url)).__aenter__()):
        with pytest.raises(StoreUnusableError) as caught:
            await attempt
        assert "hidden" not in str(caught.value)
        assert "127.0.0.1" in str(caught.value)


def test_a_driver_that_is_not_installed_is_named() -> None:
    """PostgreSQL's driver is an extra: the error says how to install it."""
    done = subprocess.run(
        [sys.executable, "-c", NO_DRIVER], capture_output=True, text=True, check=True, timeout=60
    )
    expected = f"store.url needs psycopg: {to_add('postgres')}\n"
    assert done.stdout == expected * 2


def test_who_keeps_a_file_needs_no_driver(tmp_path: Path) -> None:
    """A SQLite store imports nothing of PostgreSQL."""
    command = [sys.executable, "-c", OPEN_A_FILE, str(tmp_path / "store.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"
