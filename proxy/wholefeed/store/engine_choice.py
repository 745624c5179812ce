"""Opening and closing of the configured store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from wholefeed.config.tables import StoreConfig
from wholefeed.errors import StoreUnusableError
from wholefeed.extras import to_add
from wholefeed.store import sqlite
from wholefeed.store.sqlite_file import migrate_file
from wholefeed.store.store import Store


def open_store(settings: StoreConfig) -> AbstractAsyncContextManager[Store]:
    """Open the store at `store.url`, or else at `store.path`; its schema must be current.

    Raises:
        StoreUnusableError: The store cannot be used.
    """
    if settings.url:
        return open_shared(settings.url, connections=settings.connections)
    return open_file(settings.path)


@asynccontextmanager
async def open_file(path: Path | str, *, readers: int = sqlite.READERS) -> AsyncIterator[Store]:
    async with sqlite.open_engine(Path(path), readers=readers) as engine, Store.on(engine) as store:
        yield store


@asynccontextmanager
async def open_shared(url: str, *, connections: int) -> AsyncIterator[Store]:
    try:
        from wholefeed.store import postgres  # noqa: PLC0415 - needs an extra
    except ImportError as exc:
        raise needs_psycopg() from exc
    async with postgres.open_engine(url, connections=connections) as engine, Store.on(engine) as store:
        yield store


def needs_psycopg() -> StoreUnusableError:
    return StoreUnusableError(f"store.url needs psycopg: {to_add('postgres')}")


async def migrate_store(settings: StoreConfig) -> list[str]:
    """Create or migrate the configured store; return the applied migrations."""
    if not settings.url:
        return await migrate_file(settings.path)
    try:
        from wholefeed.store.postgres_migrate import migrate_database  # noqa: PLC0415 - needs an extra
    except ImportError as exc:
        raise needs_psycopg() from exc
    return await migrate_database(settings.url)
