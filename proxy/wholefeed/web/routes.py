"""The table of routes (docs/design.md#the-interface)."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from wholefeed.web.asked import HOME, LOGIN, METRICS, STATIC, VIEW
from wholefeed.web.events import get_events
from wholefeed.web.feed import delete_feed, get_feed, get_prefixed
from wholefeed.web.health import get_healthz, get_readyz
from wholefeed.web.metrics import get_metrics
from wholefeed.web.openapi.document import get_openapi
from wholefeed.web.opml import get_opml, post_opml
from wholefeed.web.page.actions import post_forget, post_refresh
from wholefeed.web.page.home import get_home
from wholefeed.web.page.login import get_login, post_login, post_logout
from wholefeed.web.page.static import get_static
from wholefeed.web.page.view import get_view
from wholefeed.web.status import get_feeds, get_status

_PREFIXED: Final = (
    r"(?:/|%20|%09|%0[AaDd])*+"
    r"(?:[Hh][Tt][Tt][Pp][Ss]?(?::|%3A)|[Ff][Ee][Ee][Dd](?::|%3A)|[^/][^/.]*+\.[^/]+?(?:/|%2F)).*"
)
"""What may be a URL behind the slash; `wholefeed.web.request_target` has the last word. It is held against
every path that anybody asks for, so it must not look twice at any of it."""


def routes() -> list[web.RouteDef]:
    """Return the routes."""
    return [
        web.get(HOME, get_home),
        web.get(LOGIN, get_login),
        web.post(LOGIN, post_login),
        web.post("/logout", post_logout),
        web.get("/feed", get_feed),
        web.get("/feed/", get_feed),
        web.delete("/feed", delete_feed),
        web.get(VIEW, get_view),
        web.get("/status", get_status),
        web.get("/events", get_events),
        web.post("/refresh", post_refresh),
        web.post("/forget", post_forget),
        web.get("/feeds", get_feeds),
        web.get("/opml", get_opml),
        web.post("/opml", post_opml),
        web.get("/healthz", get_healthz),
        web.get("/readyz", get_readyz),
        web.get(METRICS, get_metrics),
        web.get("/openapi.json", get_openapi),
        web.get(STATIC, get_static),
        web.get(f"/{{url:{_PREFIXED}}}", get_prefixed),
    ]
