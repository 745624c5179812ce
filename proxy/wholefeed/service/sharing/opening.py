"""How the work on a store is shared, for as long as the store is open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from wholefeed.errors import OverloadedError, StoreError
from wholefeed.loggers import get_logger
from wholefeed.service.sharing.leases import StoredLeases
from wholefeed.service.sharing.shared import Shared
from wholefeed.service.sharing.sharing import Alone, Sharing
from wholefeed.store.store import Store

log = get_logger()

AGAIN_SECONDS: Final = 1.0
LEAVE_SECONDS: Final = 1.0
"""For so long the end waits for a database that does not answer."""


@asynccontextmanager
async def open_sharing(store: Store) -> AsyncIterator[Sharing]:
    """Become one of the replicas that share a store, and leave them at exit; alone where nobody shares it.

    Raises:
        StoreError: The database failed.
        OverloadedError: It could not be reached.
    """
    if not store.is_shared:
        yield Alone()
        return
    shared = Shared(StoredLeases(store))
    store.listen("lease", shared.waits.wake)
    store.on_lost(shared.waits.wake_all)
    await shared.member.beat()
    life = asyncio.create_task(_living(shared))
    try:
        yield shared
    finally:
        life.cancel()
        await asyncio.wait({life})
        with suppress(StoreError, OverloadedError, TimeoutError):  # the others will find out
            shared.require()
            async with asyncio.timeout(LEAVE_SECONDS):
                await shared.member.leave()


async def _living(shared: Shared) -> None:
    """Go on whatever happens: without signs of life the others take this replica for dead."""
    while True:
        try:
            await shared.run()
        except Exception:  # an error of our own
            log.exception("background.failed", name="sharing")
            await asyncio.sleep(AGAIN_SECONDS)
