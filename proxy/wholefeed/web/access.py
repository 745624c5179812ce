"""Access checks: rates, other sites, token, signed URLs (docs/faults.md row 80).

`/healthz`, `/readyz`, `/static/…`, `/login` and, for programs, `/` are open. If a token or keys are set,
other routes need the token or a session. A signature opens one feed, its status and its progress.

    set             signed URL of a feed    another feed        anything else
    nothing         yes                     yes                 yes
    keys            yes                     403                 403: no token exists
    token           401                     401 or the token    401 or the token
    token and keys  yes                     401 or the token    401 or the token
"""

from __future__ import annotations

import base64
import binascii
import hmac
import math
import time
from typing import Final
from urllib.parse import unquote, urlsplit

from aiohttp import web

from wholefeed.errors import (
    AccessDeniedError,
    OverloadedError,
    TooManyRequestsError,
    UnauthorizedError,
    WholefeedError,
)
from wholefeed.server.clients import AccessVerdict, Buckets, is_form_proof, verify
from wholefeed.web.keys import BUCKETS, CONFIG, CONNECTIONS, METRICS_NETWORKS, SERVICE, TRUSTED
from wholefeed.web.pages_base import is_browser, session_of
from wholefeed.web.request import DESTINATION, FEED_ROUTES, HOME, LOGIN, METRICS, VIEW, Asked, Query, feed_url

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_SIGNED_ROUTES: Final = FEED_ROUTES | {"/status", "/events", VIEW}
"""Routes for signatures, by GET and HEAD; the prefix form has no place for one."""


def limit_clients(request: web.Request, asked: Asked) -> None:
    """Refuse clients above their rate, and all clients when crowded."""
    app = asked.app
    if app[CONNECTIONS].is_crowded():
        raise OverloadedError("too many readers ask at once")
    if (buckets := app.get(BUCKETS)) is not None:
        most = asked.config.server.client_requests_per_minute
        take_turn(buckets, asked.client, f"expected at most {most} requests a minute")


def take_turn(buckets: Buckets, client: str, expected: str) -> None:
    """Count a client's action, or refuse it; `expected` names the limit."""
    wait_seconds = math.ceil(buckets.take(client, time.monotonic()))
    if wait_seconds:
        raise TooManyRequestsError(expected, retry_after_seconds=wait_seconds)


_EMBEDDED: Final = frozenset({"image", "audio", "video", "script", "style", "font"})
"""Loaded by pages without a click (Fetch, 3.2.7)."""


def refuse_embedding(request: web.Request, asked: Asked) -> None:
    """Refuse requests for parts of a page, such as pictures; static files are exempt.

    Otherwise a publisher's picture could add feeds with a user's session (docs/faults.md row 97). `/view` is
    costly and opens only as a document.
    """
    destination = request.headers.get(DESTINATION)
    if destination in _EMBEDDED or (asked.route == VIEW and destination not in (None, "document")):
        raise AccessDeniedError(
            "expected a request for a whole page, got one for a part of a page", slug="cross-origin"
        )


def refuse_other_sites(request: web.Request, _asked: Asked) -> None:
    """Refuse changes by pages of another origin: the browser may know its user's token.

    Sec-Fetch-Site or Origin names it (RFC 6454, section 7); without both, `_require_proof` decides.
    """
    if request.method not in _SAFE_METHODS:
        site, origin = request.headers.get("Sec-Fetch-Site", ""), request.headers.get("Origin", "")
        is_own = site in ("same-origin", "none") if site else not origin or _is_own_origin(request, origin)
        if not is_own:
            raise AccessDeniedError(
                "expected a request from the proxy's own pages, got one from a page of another origin",
                slug="cross-origin",
            )


def _is_own_origin(request: web.Request, origin: str) -> bool:
    """Compare host and port only: TLS may end at an untrusted reverse proxy."""
    own = (request.headers.get("Host", ""), urlsplit(request.app[CONFIG].server.public_url).netloc)
    authority = origin.partition("://")[2].lower()
    return authority != "" and authority in (each.lower() for each in own)


def require_access(request: web.Request, asked: Asked) -> None:
    """Require the access token or a signed URL, if set."""
    if asked.route == LOGIN:
        return
    server = asked.config.server
    if not (server.access_token or server.signing_keys) or _may_watch(request, asked):
        return
    asked.session = session_of(request)
    query = asked.query
    is_signable = asked.route in _SIGNED_ROUTES and request.method in ("GET", "HEAD")
    mark = query.options.get("signed", "") if is_signable and server.signing_keys else ""
    verdict = AccessVerdict.BAD
    if mark:
        verdict = verify(feed_url(query.url), mark, server.signing_keys, asked.app[SERVICE].now())
    if verdict is AccessVerdict.VALID:
        asked.mark = mark
    elif server.access_token and _knows(request, query, server.access_token):
        asked.knows_token = True
    else:
        if asked.session:
            _require_proof(request, asked, server.access_token)
            return
        if _asks_how(request, asked):
            return
        if server.access_token and asked.is_prefixed and not mark:
            raise UnauthorizedError(
                "expected the access token, as Bearer or as Basic password"
                " (https://any:TOKEN@…): the part behind the slash is the feed's URL alone;"
                " /feed?url=…&token=… works, too"
            )
        raise _refusal(mark, verdict, has_token=bool(server.access_token), is_signable=is_signable)


def _may_watch(request: web.Request, asked: Asked) -> bool:
    """Whether a client of `server.metrics_networks` asks for metrics.

    A request from an untrusted proxy may come from anywhere.
    """
    networks = asked.app[METRICS_NETWORKS]
    if asked.route != METRICS or not networks:
        return False
    forwarded_for = request.headers.getall("X-Forwarded-For", ())
    trusted = asked.app[TRUSTED]
    is_known = asked.is_vouched_for or not (forwarded_for or "Forwarded" in request.headers)
    return is_known and networks.include(trusted.address(asked.peer, forwarded_for))


def _refusal(mark: str, verdict: AccessVerdict, *, has_token: bool, is_signable: bool) -> WholefeedError:
    if verdict is AccessVerdict.EXPIRED:
        return AccessDeniedError("expected a signature that has not expired", slug="expired-signature")
    if mark:
        return AccessDeniedError("expected the signature of this feed's URL", slug="bad-signature")
    if has_token:
        return UnauthorizedError("expected the access token, as Bearer, as Basic password or as ?token=")
    if is_signable:
        return AccessDeniedError("expected a signed URL: /feed?url=…&signed=…")
    return AccessDeniedError(
        "expected server.access_token to be set, and the request to have it", slug="token-required"
    )


def _require_proof(request: web.Request, asked: Asked, token: str) -> None:
    """Require our form's proof from a browser without Sec-Fetch-Site and Origin."""
    is_told = "Sec-Fetch-Site" in request.headers or "Origin" in request.headers
    if request.method in _SAFE_METHODS or is_told:
        return
    if not is_form_proof(request.query.get("proof", ""), asked.session, token):
        raise AccessDeniedError("expected a form of the proxy's own page", slug="cross-origin")


def _asks_how(request: web.Request, asked: Asked) -> bool:
    """Whether a program asks how to subscribe; the answer reveals no more than docs/http.md."""
    return asked.route == HOME and "url" not in request.query and not is_browser(request)


def _knows(request: web.Request, query: Query, token: str) -> bool:
    header = _from_authorization(request.headers.get("Authorization", ""))
    # some readers send a URL's password still percent-encoded
    given = (header, unquote(header, errors="surrogateescape"), query.options.get("token", ""))
    # a list, so that all are compared; bytes outside UTF-8 arrive as surrogates
    return any(
        [hmac.compare_digest(each.encode("utf-8", "surrogateescape"), token.encode()) for each in given]  # noqa: C419
    )


def _from_authorization(value: str) -> str:
    scheme, _, credentials = value.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(credentials, validate=True)
        except (binascii.Error, ValueError):
            return ""
        return decoded.partition(b":")[2].decode("utf-8", "surrogateescape")
    return ""
