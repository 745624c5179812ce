"""Which Host a request may name, and what our links are made from (docs/faults.md row 77; RFC 9110, 7.4)."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from aiohttp import HttpVersion11, hdrs, web

from wholefeed.config.tables import ServerConfig
from wholefeed.errors import MisdirectedError
from wholefeed.server.clients import last_value
from wholefeed.web.asked import FEED_ROUTES, OPEN_ROUTES, Asked
from wholefeed.web.prefix import forwarded_prefix

_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::\d{1,5})?", re.IGNORECASE)
"""No name is longer (RFC 1035, 2.3.4); links are made from it, and kept."""
_LONGEST_HOST: Final = 253 + len(":65535")
_ROUTES_OF_ANY_HOST: Final = OPEN_ROUTES | {"/openapi.json"}
"""Nothing of them is about anybody's feeds."""


def base_url(request: web.Request, asked: Asked, server: ServerConfig) -> str:
    """Return the proxy's URL as the reader should see it, without a final slash.

    `server.public_url` where it is set; else the Host of the request when it may be trusted: it is listed in
    `server.allowed_hosts`, or nobody else's name can point here (an IP address, localhost, a single label).
    A reverse proxy in `server.trusted_proxies` says what Host and scheme the reader used, and what path it
    has taken away in front of the proxy's own.

    Raises:
        MisdirectedError: The Host is missing, malformed or not allowed.
    """
    if server.public_url:
        return server.public_url.rstrip("/")
    host, scheme = asked.host or _required_host(request, asked, server)
    prefix = forwarded_prefix(_last(request, "X-Forwarded-Prefix")) if asked.is_vouched_for else ""
    return f"{scheme}://{host.lower()}{prefix}"


def _required_host(request: web.Request, asked: Asked, server: ServerConfig) -> tuple[str, str]:
    """Return the Host that was asked for, and the scheme; raise where it may not be ours."""
    host, scheme = _asked_for(request, asked)
    name = _name(host) if len(host) <= _LONGEST_HOST else ""  # whatever is read is kept
    if not name or not (_is_nobody_else_s(name) or _is_listed(name, server)):
        raise MisdirectedError(
            f"expected a Host from server.allowed_hosts, or server.public_url to be set, got {host[:100]!r}"
        )
    asked.host = host, scheme
    return asked.host


def _asked_for(request: web.Request, asked: Asked) -> tuple[str, str]:
    host, scheme = request.headers.get(hdrs.HOST, "") or _own_address(request), request.scheme
    if asked.is_vouched_for:
        host = _last(request, "X-Forwarded-Host") or host
        forwarded = _last(request, "X-Forwarded-Proto").lower()
        scheme = forwarded if forwarded in ("http", "https") else scheme
    return host, scheme


def _last(request: web.Request, field: str) -> str:
    return last_value(request.headers.getall(field, ()))


def require_host(request: web.Request, asked: Asked) -> None:
    """Refuse what is asked under a name that is not ours; a route that is named nowhere here is checked.

    A web page can let a name of its own point to a proxy on its visitor's machine, and would be let in as the
    same origin. It knows no token and signs nothing, so behind a reverse proxy the Host need not be one
    of ours where such is wanted.
    """
    if asked.route in _ROUTES_OF_ANY_HOST:
        return
    server = asked.config.server
    if not (server.public_url and _may_bear_any_host(request, asked.route, server)):
        _required_host(request, asked, server)


def _may_bear_any_host(request: web.Request, route: str, server: ServerConfig) -> bool:
    """Whether links are made from the public URL alone, or nobody is let in who does not know a secret."""
    is_feed = route in FEED_ROUTES and request.method in ("GET", "HEAD")
    return is_feed or bool(server.access_token or server.signing_keys)


def _own_address(request: web.Request) -> str:
    """Return where the request came in, for clients of HTTP/1.0 that send no Host."""
    name = request.get_extra_info("sockname")
    if request.version >= HttpVersion11 or not isinstance(name, tuple):
        return ""
    address, port = name[0], name[1]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@lru_cache(maxsize=256)
def _name(host: str) -> str:
    """Return the name of a Host field, without its port; empty where it is none."""
    match = _HOST.fullmatch(host)
    return "" if match is None else match["name"].lower().strip("[]")


def _is_listed(name: str, server: ServerConfig) -> bool:
    own = (*server.allowed_hosts, urlsplit(server.public_url).hostname or "")
    return name in (allowed.lower() for allowed in own)


@lru_cache(maxsize=256)
def _is_nobody_else_s(name: str) -> bool:
    """Whether nobody can let the name point here but who runs this host or its network."""
    if "." not in name or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
