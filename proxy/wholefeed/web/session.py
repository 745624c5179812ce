"""The cookie of people who have logged in: what `wholefeed.server.sessions` issues.

SameSite=Lax: a page of another site cannot have it sent along with a form, a picture or a script; a link
that leads here from a reader's own page has it.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from wholefeed.server.sessions import SESSION_SECONDS, is_good, issue
from wholefeed.web.host_field import base_url
from wholefeed.web.keys import ASKED, CONFIG, SERVICE

COOKIE: Final = "wholefeed-session"
_FOLDER: Final = ""
"""No path: then it is the folder of the URL that the browser asked for (RFC 6265, 5.1.4), and all that sets
it lies at the proxy's root: right below any prefix, also one that a reverse proxy keeps to itself."""


def session_of(request: web.Request) -> str:
    """Return the session that a request bears, if it is good for anything; else nothing."""
    if "Cookie" not in request.headers:
        return ""
    session, token = request.cookies.get(COOKIE, ""), request.app[CONFIG].server.access_token
    return session if is_good(session, token, request.app[SERVICE].now()) else ""


def begin_session(request: web.Request, response: web.Response) -> None:
    """Let the browser keep a new session; scripts do not see it."""
    expires_at = int(request.app[SERVICE].now()) + SESSION_SECONDS
    response.set_cookie(
        COOKIE,
        issue(request.app[CONFIG].server.access_token, expires_at=expires_at),
        max_age=SESSION_SECONDS,
        path=_FOLDER,
        secure=_is_secure(request),
        httponly=True,
        samesite="Lax",
    )


def end_session(response: web.Response) -> None:
    """Let the browser forget its session."""
    response.del_cookie(COOKIE, path=_FOLDER, httponly=True, samesite="Lax")


def _is_secure(request: web.Request) -> bool:
    """Whether the browser speaks https; it says so itself, whatever address the proxy has beside that."""
    origin = request.headers.get("Origin", "")
    if "://" not in origin:
        origin = base_url(request, request[ASKED], request.app[CONFIG].server)
    return origin.startswith("https://")
