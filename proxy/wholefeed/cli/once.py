"""One feed for one command, without a proxy: of the configured store, or in one that is then removed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, BinaryIO

from wholefeed.app import open_service
from wholefeed.config.tables import Config
from wholefeed.core.terms import State
from wholefeed.library import database, search_archive
from wholefeed.service.service import FeedService
from wholefeed.web.answer.answer import Representation, prepare, slices
from wholefeed.web.request_target import feed_url
from wholefeed.web.status import account_object, status_object

ShowProgress = Callable[[Mapping[str, Any]], None]
"""Is told the status object about twice a second."""


async def fetch_once(
    config: Config,
    url: str,
    output: BinaryIO,
    *,
    wait_seconds: float | None,
    progress: ShowProgress | None = None,
) -> State:
    """Reconstruct one feed with a store of its own, write it, and return its state.

    Args:
        config: The configuration; its store is left alone.
        url: The feed's URL, as a reader would give it.
        output: Where the document goes, uncompressed.
        wait_seconds: When to take what is there; None waits for the end of the walk.
        progress: Told the status object about twice a second.

    Raises:
        WholefeedError: There is no feed to be had.
    """
    async with database() as path:
        own = replace(config, store=replace(config.store, path=path, url=""))
        return await _written(own, feed_url(url), output, wait_seconds=wait_seconds, progress=progress)


async def fetch_stored(
    config: Config, url: str, output: BinaryIO, *, wait_seconds: float | None, progress: ShowProgress | None
) -> State:
    """Write one feed from the configured store, refreshed when its time has come, and return its state.

    Args as in `fetch_once`.

    Raises:
        UnknownFeedError: Nothing is stored for the URL.
        StoreError: The store cannot be used.
    """
    work = _written(
        config, feed_url(url), output, wait_seconds=wait_seconds, progress=progress, must_be_known=True
    )
    return await work


async def explain_once(
    config: Config,
    url: str,
    *,
    wait_seconds: float | None,
    progress: ShowProgress | None,
) -> dict[str, Any]:
    """Reconstruct one feed with a store of its own, and return the status object with its chain.

    Args and errors as in `fetch_once`.
    """
    canonical = feed_url(url)
    async with database() as path:
        own = replace(config, store=replace(config.store, path=path, url=""))
        async with open_service(own) as (_, service):
            wait = own.limits.walk_seconds if wait_seconds is None else wait_seconds
            async with _watched(service, canonical, progress):
                await search_archive(own, service, canonical, wait_seconds=wait)
                async with service.answer(canonical, wait_seconds=wait):
                    return account_object(*await service.account(canonical))


async def _written(
    config: Config,
    url: str,
    output: BinaryIO,
    *,
    wait_seconds: float | None,
    progress: ShowProgress | None,
    must_be_known: bool = False,
) -> State:
    wait = config.limits.walk_seconds if wait_seconds is None else wait_seconds
    async with open_service(config) as (store, service), _watched(service, url, progress):
        if must_be_known:
            await service.status(url)
        await search_archive(config, service, url, wait_seconds=wait)
        async with service.answer(url, wait_seconds=wait) as reconstruction:
            asked = Representation(self_url=url, is_gzip=False, warns=config.history.warn_entry)
            async for piece in slices(prepare(reconstruction, asked), store):
                await asyncio.to_thread(output.write, piece)
            if progress is not None:
                progress(status_object(await service.status(url)))
            return reconstruction.state


@asynccontextmanager
async def _watched(service: FeedService, url: str, progress: ShowProgress | None) -> AsyncIterator[None]:
    """Show progress meanwhile."""
    watching = None if progress is None else asyncio.create_task(_watch(service, url, progress))
    try:
        yield
    finally:
        if watching is not None:
            watching.cancel()


async def _watch(service: FeedService, url: str, progress: ShowProgress) -> None:
    while True:
        await asyncio.sleep(0.5)
        if await service.is_known(url):
            progress(status_object(await service.status(url)))
