"""Keys of the proxy's parts for handlers, and the requested feed.

This module imports no handler.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from aiohttp import web

from wholefeed.config.tables import Config
from wholefeed.counts import Counts
from wholefeed.errors import PublisherError
from wholefeed.fetch.budget import MemoryBudget
from wholefeed.server.clients import Buckets, Networks, TrustedProxies
from wholefeed.server.listening import Connections, Listeners
from wholefeed.service.service import FeedService
from wholefeed.store.store import Store
from wholefeed.web.answer import Wants
from wholefeed.web.request import Asked
from wholefeed.workers.pool import LargeWork

CONFIG: Final = web.AppKey("config", Config)
STORE: Final = web.AppKey("store", Store)
COUNTS: Final = web.AppKey("counts", Counts)
METRICS_NETWORKS: Final = web.AppKey("metrics_networks", Networks)
CONNECTIONS: Final = web.AppKey("connections", Connections)
LISTENERS: Final = web.AppKey("listeners", Listeners)
SERVICE: Final = web.AppKey("service", FeedService)
WANTS: Final = web.AppKey("wants", Wants)
TRUSTED: Final = web.AppKey("trusted", TrustedProxies)
PREFIX: Final = web.AppKey("prefix", str)
"""The path of `server.public_url`; empty: none."""
BUCKETS: Final = web.AppKey("buckets", Buckets)  # absent without a limit
UPLOADS: Final = web.AppKey("uploads", MemoryBudget)
"""Memory of all uploads."""
LISTS: Final = web.AppKey("lists", LargeWork)
"""Lets handlers rewrite one large list at a time."""
LOGINS: Final = web.AppKey("logins", Buckets)
"""Limits tries of a token."""

ASKED: Final = web.RequestKey("asked", Asked)


async def named_url(request: web.Request) -> str:
    """Return the canonical URL of the requested feed; without a scheme, prefer a known one.

    Raises:
        RequestError: No URL is given.
        InvalidUrlError: The URL cannot be fetched.
    """
    service = request.app[SERVICE]
    url, instead = request[ASKED].feed_urls
    if instead and not await service.is_known(url) and await service.is_known(instead):
        return instead
    return url


_Found = TypeVar("_Found")


async def with_instead(request: web.Request, answer: Callable[[str], Awaitable[_Found]]) -> _Found:
    """Answer for a feed; without a scheme, try http if https refuses the connection."""
    url = await named_url(request)
    try:
        return await answer(url)
    except PublisherError as exc:
        instead = request[ASKED].feed_urls.instead
        if exc.slug != "connection-failed" or instead in ("", url):
            raise
    return await answer(instead)
