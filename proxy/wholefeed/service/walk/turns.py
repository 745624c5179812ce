"""Whose walk may use the network: so many at once in all, and at one site.

A walk can last as long as `limits.walk_seconds`, and its publisher decides how long it does. Without a bound
for each site, one slow publisher of many feeds would keep all others waiting.

    turns = WalkTurns(in_all=16, per_site=8)
    async with turns.turn("example.org"):
        ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class WalkTurns:
    """Belongs to one event loop.

    Args:
        in_all: Walks at once.
        per_site: Of them at one site (`wholefeed.fetch.sites`).
    """

    def __init__(self, *, in_all: int, per_site: int) -> None:
        self._in_all = asyncio.Semaphore(in_all)
        self._per_site = per_site
        self._sites: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """Of the sites that walk or wait."""

    def __len__(self) -> int:
        """Return how many sites walk or wait."""
        return len(self._sites)

    @asynccontextmanager
    async def turn(self, site: str) -> AsyncIterator[None]:
        """Hold a turn, first come first served; who waits for a turn at a site holds none in all."""
        own = self._sites.get(site)
        if own is None:
            own = self._sites[site] = asyncio.Semaphore(self._per_site)
        async with own, self._in_all:
            yield
