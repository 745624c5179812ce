"""By what keys handlers find the parts of the application. No handler is imported here."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from proxy.config import Config
from proxy.connections import Connections
from proxy.listeners import Listeners
from proxy.service.service import FeedService
from proxy.store.store import Store

CONFIG: Final = web.AppKey("config", Config)
STORE: Final = web.AppKey("store", Store)
CONNECTIONS: Final = web.AppKey("connections", Connections)
LISTENERS: Final = web.AppKey("listeners", Listeners)
SERVICE: Final = web.AppKey("service", FeedService)
