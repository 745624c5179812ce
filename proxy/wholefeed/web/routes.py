"""The table of routes (docs/design.md#the-interface)."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from wholefeed.web.api import get_events, get_feeds, get_healthz, get_openapi, get_readyz, get_status
from wholefeed.web.feed import delete_feed, get_feed, get_prefixed
from wholefeed.web.home import post_feeds
from wholefeed.web.import_routes import delete_import, post_import
from wholefeed.web.intake_routes import delete_intake, get_intake, get_intake_events, post_intake
from wholefeed.web.metrics import get_metrics
from wholefeed.web.opml_routes import get_opml, post_opml
from wholefeed.web.pages import (
    get_continue,
    get_forget,
    get_home,
    get_login,
    post_continue,
    post_forget,
    post_login,
    post_logout,
    post_refresh,
)
from wholefeed.web.pages_base import get_static
from wholefeed.web.request import (
    CONTINUE,
    FORGET,
    HOME,
    IMPORT,
    INTAKE,
    LOGIN,
    METRICS,
    OPML,
    STATIC,
    VIEW,
    await_reader,
)
from wholefeed.web.view import get_view

_PREFIXED: Final = (
    r"(?:/|%20|%09|%0[AaDd])*+"
    r"(?:[Hh][Tt][Tt][Pp][Ss]?(?::|%3A)|[Ff][Ee][Ee][Dd](?::|%3A)|[^/][^/.]*+\.[^/]+?(?:/|%2F)).*"
)
"""A rough match for URLs; `wholefeed.web.request` decides. It scans every path, so it must not backtrack."""


def add_routes(app: web.Application, prefix: str) -> dict[web.AbstractResource | None, str]:
    """Add all routes, also below the prefix; return each resource's plain path.

    The prefixed root works with and without a final slash.
    """
    paths: dict[web.AbstractResource | None, str] = {}
    below: list[tuple[web.RouteDef, str]] = []
    for named in routes():
        each = web.RouteDef(named.method, named.path, named.handler, {**named.kwargs, **_UNREAD})
        resource = app.add_routes([each])[0].resource
        assert resource is not None, "only what a router makes for an error has none"
        paths[resource] = resource.canonical
        below.append((each, resource.canonical))
    # Last, so that the proxy's own paths keep their meaning, even if the prefix is one of them.
    for each, path in below if prefix else ():
        for place in (prefix + each.path, prefix) if path == HOME else (prefix + each.path,):
            [route] = app.add_routes([web.RouteDef(each.method, place, each.handler, each.kwargs)])
            paths[route.resource] = path
    return paths


_UNREAD: Final[dict[str, Any]] = {"expect_handler": await_reader}
"""aiohttp would request a body before any check."""


def routes() -> list[web.RouteDef]:
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
        web.get(FORGET, get_forget),
        web.post(FORGET, post_forget),
        web.get(CONTINUE, get_continue),
        web.post(CONTINUE, post_continue),
        web.post(IMPORT, post_import),
        web.delete(IMPORT, delete_import),
        web.get("/feeds", get_feeds),
        web.post("/feeds", post_feeds),
        web.get(OPML, get_opml),
        web.post(OPML, post_opml),
        web.get(INTAKE, get_intake),
        web.post(INTAKE, post_intake),
        web.delete(INTAKE, delete_intake),
        web.get(f"{INTAKE}/events", get_intake_events),
        web.get("/healthz", get_healthz),
        web.get("/readyz", get_readyz),
        web.get(METRICS, get_metrics),
        web.get("/openapi.json", get_openapi),
        web.get(STATIC, get_static),
        web.get(f"/{{url:{_PREFIXED}}}", get_prefixed),
    ]
