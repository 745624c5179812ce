"""What one request asks for, read once: its route and its query; and what its log line tells of it."""

from __future__ import annotations

import secrets
from functools import lru_cache
from typing import Final

from aiohttp import web

from wholefeed.core.text.redact import safe_url
from wholefeed.errors import WholefeedError
from wholefeed.server.clients import UNIX, TrustedProxies
from wholefeed.web.prefix import Prefix
from wholefeed.web.request_target import OPTIONS, PAGE_OPTIONS, Query, is_prefix_form, read_prefix, read_query

STATIC: Final = "/static/{name}"
METRICS: Final = "/metrics"
OPEN_ROUTES: Final = frozenset({"/healthz", "/readyz", STATIC})
HOME: Final = "/"
LOGIN: Final = "/login"
VIEW: Final = "/view"
PREFIXED: Final = "/{url}"
"""The URL behind the slash."""
UNMATCHED: Final = "unmatched"
_LONGEST_KEPT: Final = 500
"""Characters of a URL whose shown form is kept."""
FEED_ROUTES: Final = frozenset({"/feed", "/feed/", PREFIXED})


class Asked:
    """Belongs to one request; the checks before its handler and the handler itself share it."""

    __slots__ = (
        "_query", "_request", "client", "facts", "host", "is_prefixed", "is_vouched_for", "knows_token",
        "mark", "peer", "request_id", "route", "session", "target",
    )  # fmt: skip

    def __init__(self, request: web.Request, prefix: Prefix, trusted: TrustedProxies) -> None:
        self._request = request
        self._query: Query | None = None
        self.request_id: Final = secrets.token_hex(8)
        self.target: Final = prefix.stripped(request.raw_path)
        """The request target, without the prefix that a reverse proxy may have kept."""
        self.is_prefixed: Final = is_prefix_form(self.target)
        """Whether the feed's URL is written behind the slash, and its whole query is its own."""
        self.route: Final = PREFIXED if self.is_prefixed else _route_of(request, prefix)
        """The path of the route, never what a client wrote: a query may hide in it."""
        self.facts: Final[dict[str, object]] = {}
        """What the log line of the request tells beside what it tells of each."""
        self.mark = ""
        """The signature that lets this request in; empty when none does."""
        self.knows_token = False
        """Whether it is let in because it bears the access token."""
        self.session = ""
        """Of the person who asks, where one has logged in."""
        self.host: tuple[str, str] | None = None
        """Host and scheme, once they are found to be our own."""
        self.peer: Final = _peer_of(request)
        """The address that the connection comes from, or `UNIX`."""
        self.client: Final = trusted.client(self.peer, request.headers.getall("X-Forwarded-For", ()))
        """Who asks, as a name to count and to log requests by."""
        self.is_vouched_for: Final = trusted.include(self.peer)
        """Whether it comes from a reverse proxy that is believed."""

    @property
    def query(self) -> Query:
        """The options of the request and the URL that it names.

        Raises:
            RequestError: An option is given twice.
        """
        if self._query is None:
            if self.is_prefixed:
                self._query = Query(read_prefix(self.target), {})
            else:
                options = PAGE_OPTIONS if self.route == VIEW else OPTIONS
                self._query = read_query(self._request.rel_url.raw_query_string, options)
        return self._query

    @property
    def shown_url(self) -> str | None:
        """The URL that it names, as it may be logged."""
        try:
            given = self.query.url
        except WholefeedError:
            return None
        if len(given) > _LONGEST_KEPT:
            return safe_url(given)
        return _shown(given) if given else None


_shown: Final = lru_cache(maxsize=2048)(safe_url)


def _route_of(request: web.Request, prefix: Prefix) -> str:
    resource = request.match_info.route.resource
    route = UNMATCHED if resource is None else prefix.route(resource.canonical)
    return UNMATCHED if route == PREFIXED else route


def _peer_of(request: web.Request) -> str | None:
    """Return the address that the connection comes from; `UNIX` where it came in by the Unix socket.

    Only our own end tells which: a client may give its end of a Unix socket any name, an IP address too.
    """
    own = request.get_extra_info("sockname")
    if isinstance(own, tuple):
        return request.remote
    return UNIX if isinstance(own, str) else None
