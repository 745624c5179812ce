"""A store in a file of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.named_store import NamedStore
from wholefeed.store.sqlite.migrate import migrate_file


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    await migrate_file(path)
    return path


@pytest.fixture
async def store(database: Path) -> AsyncIterator[NamedStore]:
    async with NamedStore.open(database) as store:
        yield store
