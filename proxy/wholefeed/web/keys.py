"""The keys by which handlers find the parts of the proxy, and the feed that is asked for.

No handler is imported here.
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
"""The path of `server.public_url`; empty: it has none."""
BUCKETS: Final = web.AppKey("buckets", Buckets)
"""Not there when clients may ask as often as they like."""
UPLOADS: Final = web.AppKey("uploads", MemoryBudget)
"""What subscription lists and kept documents that are sent may take together."""
LISTS: Final = web.AppKey("lists", LargeWork)
"""Lets one large list be moved at a time."""
LOGINS: Final = web.AppKey("logins", Buckets)
"""How often each client may try a token."""

ASKED: Final = web.RequestKey("asked", Asked)


async def named_url(request: web.Request) -> str:
    """Return the canonical URL of the feed that a request names; what is stored has a say in it.

    Without a scheme it is the one that was chosen before. Raises what `feed_urls` does.
    """
    service = request.app[SERVICE]
    url, instead = request[ASKED].feed_urls
    if instead and not await service.is_known(url) and await service.is_known(instead):
        return instead
    return url


_Found = TypeVar("_Found")


async def with_instead(request: web.Request, answer: Callable[[str], Awaitable[_Found]]) -> _Found:
    """Answer with the feed that is named; one without a scheme by http where https refuses the connection."""
    url = await named_url(request)
    try:
        return await answer(url)
    except PublisherError as exc:
        instead = request[ASKED].feed_urls.instead
        if exc.slug != "connection-failed" or instead in ("", url):
            raise
    return await answer(instead)
