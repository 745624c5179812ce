"""One feed, reconstructed for one command, in a store that is removed afterwards."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from wholefeed.app import open_service
from wholefeed.config.tables import Config
from wholefeed.core.terms import State
from wholefeed.service.answers import Reconstruction
from wholefeed.service.service import FeedService
from wholefeed.store.store import Store
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
    canonical = feed_url(url)
    async with _reconstructed(config, canonical, wait_seconds, progress) as (store, service, reconstruction):
        answer = prepare(
            reconstruction,
            Representation(self_url=canonical, is_gzip=False, warns=config.history.warn_entry),
        )
        async for piece in slices(answer, store):
            await asyncio.to_thread(output.write, piece)
        if progress is not None:
            progress(status_object(await service.status(canonical)))
        return reconstruction.state


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
    async with _reconstructed(config, canonical, wait_seconds, progress) as (_, service, _):
        return account_object(*await service.account(canonical))


@asynccontextmanager
async def _reconstructed(
    config: Config,
    url: str,
    wait_seconds: float | None,
    progress: ShowProgress | None,
) -> AsyncIterator[tuple[Store, FeedService, Reconstruction]]:
    """One feed, reconstructed in a store that is removed afterwards."""
    folder = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="wholefeed-")
    own = replace(config, store=replace(config.store, path=str(Path(folder.name) / "once.db")))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, folder.cleanup)
        store, service = await stack.enter_async_context(open_service(own))
        if progress is not None:
            watching = asyncio.create_task(_watch(service, url, progress))
            stack.callback(watching.cancel)
        wait = wait_seconds if wait_seconds is not None else config.limits.walk_seconds
        yield store, service, await stack.enter_async_context(service.answer(url, wait_seconds=wait))


async def _watch(service: FeedService, url: str, progress: ShowProgress) -> None:
    while True:
        await asyncio.sleep(0.5)
        if await service.is_known(url):
            progress(status_object(await service.status(url)))
