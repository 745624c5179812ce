"""A store in a place of its own, on each engine; and PostgreSQL's engine alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import empty_store
from tests.named_store import NamedStore
from tests.postgres import Cluster
from tests.store.places import Place

if TYPE_CHECKING:  # where there is no driver, tests are skipped by their fixtures
    from wholefeed.store.postgres import PostgresEngine
    from wholefeed.store.postgres_connection import PostgresDatabase


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A SQLite file, for SQLite's own behaviour."""
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


OpenEngine = Callable[..., "AbstractAsyncContextManager[PostgresEngine]"]


def open_engine(url: str, *, connections: int = 4) -> AbstractAsyncContextManager[PostgresEngine]:
    """Open an engine, as a replica does."""
    from wholefeed.store import postgres  # noqa: PLC0415 - an extra

    return postgres.open_engine(url, connections=connections)


def connected(url: str) -> PostgresDatabase:
    """A connection in the form that the tables' functions expect."""
    from wholefeed.store.postgres_connection import (  # noqa: PLC0415 - an extra
        PARAMETERS,
        PostgresConnection,
        PostgresDatabase,
        configure,
    )

    raw = PostgresConnection.connect(url, **PARAMETERS)
    configure(raw)
    return PostgresDatabase(raw)


@pytest.fixture
def another(postgres_url: str) -> OpenEngine:
    """Opens another engine on the test's database, as another replica does."""
    return partial(open_engine, postgres_url)


@pytest.fixture
async def engine(another: OpenEngine) -> AsyncIterator[PostgresEngine]:
    """An engine with four connections."""
    async with another() as engine:
        yield engine
