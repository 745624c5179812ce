"""An engine on a PostgreSQL database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # where there is no driver, tests are skipped by their fixtures
    from wholefeed.store.postgres import PostgresEngine

OpenEngine = Callable[..., "AbstractAsyncContextManager[PostgresEngine]"]


def open_engine(url: str, *, connections: int = 4) -> AbstractAsyncContextManager[PostgresEngine]:
    """Open an engine, as a replica does."""
    from wholefeed.store import postgres  # noqa: PLC0415 - an extra

    return postgres.open_engine(url, connections=connections)


@pytest.fixture
def another(postgres_url: str) -> OpenEngine:
    """What opens an engine on the test's database, as another replica does."""
    return partial(open_engine, postgres_url)


@pytest.fixture
async def engine(another: OpenEngine) -> AsyncIterator[PostgresEngine]:
    """An engine with four connections."""
    async with another() as engine:
        yield engine
