"""By what keys handlers find the parts of the application and of a request. No handler is imported here."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from proxy.clients import TrustedProxies
from proxy.config import Config
from proxy.connections import Connections
from proxy.core.buckets import Buckets
from proxy.listeners import Listeners
from proxy.service.service import FeedService
from proxy.store.store import Store

CONFIG: Final = web.AppKey("config", Config)
STORE: Final = web.AppKey("store", Store)
CONNECTIONS: Final = web.AppKey("connections", Connections)
LISTENERS: Final = web.AppKey("listeners", Listeners)
SERVICE: Final = web.AppKey("service", FeedService)
TRUSTED: Final = web.AppKey("trusted", TrustedProxies)
BUCKETS: Final = web.AppKey("buckets", Buckets)
"""Not there when clients may ask as often as they like."""

REQUEST_ID: Final = web.RequestKey("request_id", str)
MARK: Final = web.RequestKey("mark", str)
"""The signature that lets this request in; not there when none does."""
