"""The path below which a reverse proxy passes requests on, where it keeps it (docs/operations.md).

That is the path of `server.public_url`. Requests are taken with it and without it: reverse proxies that strip
it, and those on the machine itself, ask without. A path of the proxy's own means what it means without one.

    prefix = Prefix("https://example.org/feeds", own={"/feed", ...})
    prefix.stripped("/feeds/https://example.org/feed.atom")      # /https://example.org/feed.atom
    prefix.route("/feeds/status")                                # /status
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

UNMATCHED: Final = "unmatched"
"""What stands for a route where there is none."""
_LONGEST: Final = 200
_FORWARDED: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+)+", re.ASCII)


class Prefix:
    """Belongs to the application.

    Args:
        public_url: Of the configuration; where it has no path there is no prefix.
        own: The routes as they are without a prefix.
    """

    def __init__(self, public_url: str, own: Collection[str]) -> None:
        self.path: Final = urlsplit(public_url).path.rstrip("/")
        """Without a final slash; empty: there is none."""
        self._own = frozenset(own)
        self._routes: dict[web.AbstractRoute, str] = {}

    def stripped(self, raw_path: str) -> str:
        """Return a request target without the prefix; as it is, where it does not bear it."""
        if not self.path or not raw_path.startswith(self.path):
            return raw_path
        rest = raw_path[len(self.path) :]
        if rest.startswith("/"):
            return rest
        return f"/{rest}" if not rest or rest.startswith("?") else raw_path

    def route(self, canonical: str) -> str:
        """Return the route, as it is without a prefix, that a resource stands for."""
        if not self.path or canonical in self._own:
            return canonical
        return self.stripped(canonical)

    def route_of(self, found: web.AbstractRoute) -> str:
        """Return the route of a request, as it is without a prefix, by what aiohttp has found for it."""
        route = self._routes.get(found)
        if route is None:
            if found.resource is None:  # there is none, and this one was made for the request
                return UNMATCHED
            route = self._routes[found] = self.route(found.resource.canonical)
        return route

    def routes(self, own: Iterable[web.RouteDef]) -> Iterator[web.RouteDef]:
        """Give the routes below the prefix; its root is found with a final slash and without."""
        if not self.path:
            return
        for each in own:
            yield web.RouteDef(each.method, self.path + each.path, each.handler, each.kwargs)
            if each.path == "/":
                yield web.RouteDef(each.method, self.path, each.handler, each.kwargs)

    def root(self, raw_path: str) -> str:
        """Return the relative URL that leads from a request's own to the proxy's, with a final slash."""
        path = raw_path.partition("?")[0]
        if path == self.path:
            return path.rpartition("/")[2] + "/"
        return "../" * (self.stripped(path).count("/") - 1) or "./"


def forwarded_prefix(value: str) -> str:
    """Return the path that a reverse proxy says it has stripped, without a final slash.

    Empty: it says none, or one that could be written in several ways.
    """
    path = value.rstrip("/")
    return path if len(path) <= _LONGEST and _FORWARDED.fullmatch(path) else ""
