"""Several running proxies that share one PostgreSQL database.

async with replicas(postgres_url, tmp_path) as (one, other):
    await one.whole(url)
    await other.get(url)
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.running import Clock, Proxy, a_config, running


@asynccontextmanager
async def replicas(
    url: str, folder: Path, *, number: int = 2, clock: Clock | None = None, **sections: Any
) -> AsyncIterator[list[Proxy]]:
    """Start some on a database; the sections are of the configuration."""
    store = {"url": url, "connections": 4, **sections.pop("store", {})}
    config = a_config(folder, store=store, **sections)
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running(config, clock)) for _ in range(number)]
