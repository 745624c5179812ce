"""An engine on a PostgreSQL database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from tests.postgres import what_lacks

if not what_lacks():
    from wholefeed.store.postgres.engine import PostgresEngine, open_engine

OpenEngine = Callable[..., "AbstractAsyncContextManager[PostgresEngine]"]


@pytest.fixture
def another(postgres_url: str) -> OpenEngine:
    """What opens an engine on the test's database, as another replica does."""
    return partial(open_engine, postgres_url, connections=4)


@pytest.fixture
async def engine(another: OpenEngine) -> AsyncIterator[PostgresEngine]:
    """An engine with four connections."""
    async with another() as engine:
        yield engine
