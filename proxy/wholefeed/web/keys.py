"""By what keys handlers find the parts of the application and of a request. No handler is imported here."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from wholefeed.config.tables import Config
from wholefeed.counts import Counts
from wholefeed.server.buckets import Buckets
from wholefeed.server.clients import Networks, TrustedProxies
from wholefeed.server.connections import Connections
from wholefeed.server.listeners import Listeners
from wholefeed.service.service import FeedService
from wholefeed.store.store import Store
from wholefeed.web.asked import Asked
from wholefeed.web.prefix import Prefix
from wholefeed.web.wants import Wants

CONFIG: Final = web.AppKey("config", Config)
STORE: Final = web.AppKey("store", Store)
COUNTS: Final = web.AppKey("counts", Counts)
METRICS_NETWORKS: Final = web.AppKey("metrics_networks", Networks)
CONNECTIONS: Final = web.AppKey("connections", Connections)
LISTENERS: Final = web.AppKey("listeners", Listeners)
SERVICE: Final = web.AppKey("service", FeedService)
WANTS: Final = web.AppKey("wants", Wants)
TRUSTED: Final = web.AppKey("trusted", TrustedProxies)
PREFIX: Final = web.AppKey("prefix", Prefix)
BUCKETS: Final = web.AppKey("buckets", Buckets)
"""Not there when clients may ask as often as they like."""
LOGINS: Final = web.AppKey("logins", Buckets)
"""How often each client may try a token."""

ASKED: Final = web.RequestKey("asked", Asked)
