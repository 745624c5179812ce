"""A proxy that looks at publishers' pages (H1), and when it has looked.

proxy = await start(history=LISTS)
ArchivePage(origin, posts=30).publish()         # tests.publishers.archive_page
await proxy.get(origin.url("/feed"))
await looked(proxy)                             # the feed is `listed` now
"""

from __future__ import annotations

import asyncio

from tests.running import Proxy
from wholefeed.web.keys import COUNTS

LISTS = {"list": "auto", "list_interval_seconds": 0.1}


async def looked(proxy: Proxy, times: int = 1) -> None:
    """Wait until this many looks have ended since the start."""
    async with asyncio.timeout(300):
        while sum(proxy.app[COUNTS].looks.values()) < times:
            await asyncio.sleep(0.02)
    await proxy.settled()


async def look_again(proxy: Proxy, url: str) -> None:
    """Let the proxy do its due work."""
    before = sum(proxy.app[COUNTS].looks.values())
    proxy.service.lists.wake()
    await proxy.refreshed(url)
    await looked(proxy, before + 1)
