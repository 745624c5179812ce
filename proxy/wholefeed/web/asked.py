"""What one request asks for, read once: its route and its query; and what its log line tells of it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from aiohttp import hdrs, web

from wholefeed.config.tables import Config
from wholefeed.core.text.redact import safe_url
from wholefeed.errors import WholefeedError
from wholefeed.server.clients import TrustedProxies
from wholefeed.web.prefix import UNMATCHED, Prefix
from wholefeed.web.request_target import OPTIONS, PAGE_OPTIONS, Query, is_prefix_form, read_prefix, read_query

STATIC: Final = "/static/{name}"
METRICS: Final = "/metrics"
OPEN_ROUTES: Final = frozenset({"/healthz", "/readyz", STATIC})
HOME: Final = "/"
LOGIN: Final = "/login"
VIEW: Final = "/view"
PREFIXED: Final = "/{url}"
"""The URL behind the slash."""
_LONGEST_KEPT: Final = 500
"""Characters of a URL whose shown form is kept."""
_WITHOUT_PATH: Final = frozenset({PREFIXED, UNMATCHED})
"""What stands for any path: the target tells which it is. That of another route is no URL."""
_NO_FACTS: Final[Mapping[str, object]] = {}
_ID_BYTES: Final = 8
_IDS_AT_ONCE: Final = 256
FEED_ROUTES: Final = frozenset({"/feed", "/feed/", PREFIXED})


class Asked:
    """Belongs to one request; the checks before its handler and the handler itself share it."""

    __slots__ = (
        "_query", "_url", "app", "client", "config", "facts", "host", "is_prefixed", "is_vouched_for",
        "knows_token", "mark", "peer", "request_id", "route", "session", "target",
    )  # fmt: skip

    def __init__(
        self,
        request: web.Request,
        app: web.Application,
        config: Config,
        prefix: Prefix,
        trusted: TrustedProxies,
        peer: str | None,
    ) -> None:
        self.app: Final = app
        """That of the request, which looks for it each time."""
        self.config: Final = config
        """That of the application."""
        self._url = request.rel_url  # the request itself has this object: each would keep the other
        self._query: Query | None = None
        raw = request.raw_path
        self.request_id: Final = next(_IDS)
        self.target: Final = prefix.stripped(raw) if prefix.path else raw
        """The request target, without the prefix that a reverse proxy may have kept."""
        route = prefix.route_of(request.match_info.route)
        self.is_prefixed: Final = route in _WITHOUT_PATH and is_prefix_form(self.target)
        """Whether the feed's URL is written behind the slash, and its whole query is its own."""
        if route in _WITHOUT_PATH:
            route = PREFIXED if self.is_prefixed else UNMATCHED
        self.route: Final = route
        """The path of the route, never what a client wrote: a query may hide in it."""
        self.facts: Mapping[str, object] = _NO_FACTS
        """What the log line of the request tells beside what it tells of each; others may share it."""
        self.mark = ""
        """The signature that lets this request in; empty when none does."""
        self.knows_token = False
        """Whether it is let in because it bears the access token."""
        self.session = ""
        """Of the person who asks, where one has logged in."""
        self.host: tuple[str, str] | None = None
        """Host and scheme, once they are found to be our own."""
        self.peer: Final = peer
        """The address that the connection comes from, or `UNIX`."""
        headers = request.headers
        alone = trusted.alone(peer)
        self.client: Final = (
            trusted.client(peer, headers.getall(hdrs.X_FORWARDED_FOR))
            if hdrs.X_FORWARDED_FOR in headers
            else alone.name
        )
        """Who asks, as a name to count and to log requests by."""
        self.is_vouched_for: Final = alone.is_believed
        """Whether it comes from a reverse proxy that is believed."""

    def add(self, **facts: object) -> None:
        """Let the log line tell that, too."""
        self.facts = {**self.facts, **facts}

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
                self._query = read_query(self._url.raw_query_string, options)
        return self._query

    @property
    def shown_url(self) -> str | None:
        """The URL that it names, as it may be logged."""
        if "?" not in self.target and not self.is_prefixed:
            return None
        try:
            given = self.query.url
        except WholefeedError:
            return None
        if len(given) > _LONGEST_KEPT:
            return safe_url(given)
        return _shown(given) if given else None


_shown: Final = lru_cache(maxsize=2048)(safe_url)


def _ids() -> Iterator[str]:
    """Give request ids, 64 random bits each; the system is asked for many at once."""
    while True:
        many = secrets.token_hex(_ID_BYTES * _IDS_AT_ONCE)
        for start in range(0, len(many), 2 * _ID_BYTES):
            yield many[start : start + 2 * _ID_BYTES]


_IDS: Final = _ids()
