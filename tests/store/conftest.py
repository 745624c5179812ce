"""A store in a place of its own, on each engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import empty_store
from tests.named_store import NamedStore
from tests.postgres import Cluster
from tests.store.places import Place


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A SQLite file, for what is SQLite's own."""
    path = tmp_path / "store.db"
    empty_store.put_at(path)
    return path


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """A database, on each engine in turn."""
    path = tmp_path / "store.db"
    if request.param == "SQLite":
        return Place(path)
    url: str = request.getfixturevalue("postgres_url")
    cluster: Cluster = request.getfixturevalue("shared_postgres")
    return Place(path, url, cluster.run)


@pytest.fixture
async def store(place: Place) -> AsyncIterator[NamedStore]:
    async with place.opened() as store:
        yield store
