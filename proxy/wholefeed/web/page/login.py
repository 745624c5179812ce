"""Logging in: the page that asks for the token, and what keeps a browser logged in.

Whoever is refused for want of the token, and has a browser, gets the page in place of the problem document,
with the same status, and is led on to what was asked for.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import re
import time
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

from aiohttp import web

from wholefeed.errors import TooManyRequestsError, UnauthorizedError, WholefeedError
from wholefeed.web.keys import ASKED, CONFIG, LOGINS
from wholefeed.web.page.templates import page
from wholefeed.web.page.wanted import is_browser
from wholefeed.web.session import begin_session, end_session, session_of

_OWN_PATH: Final = re.compile(r"/([a-z]*(?:\?[!-~]*)?)")
"""What one may be led on to: a path of ours that is a word, never another site's."""
_MAX_FIELDS: Final = 8
FORM_SECONDS: Final = 10.0
"""How long the form may take to come."""


async def get_login(request: web.Request) -> web.StreamResponse:
    """GET /login: the page that asks for the token; home where none is wanted."""
    if not _is_wanted(request) or session_of(request):
        return see_other("./")
    return await _page(request, 200)


async def post_login(request: web.Request) -> web.StreamResponse:
    """POST /login: begin a session and lead on to what was asked for.

    Raises:
        UnauthorizedError: The token is wrong.
        TooManyRequestsError: This client has tried too many.
    """
    token = request.app[CONFIG].server.access_token
    if not token:
        return await _page(request, 403) if _is_wanted(request) else see_other("./")
    given, next_path = await _form(request)
    try:
        _count(request)
        # blanks come along where a token is copied
        if not hmac.compare_digest(given.strip().encode("utf-8", "surrogatepass"), token.encode()):
            raise UnauthorizedError("expected the access token, got another text")
    except WholefeedError as exc:
        if not is_browser(request):
            raise
        request[ASKED].add(slug=exc.slug)
        return await refused(request, exc, next_path=next_path, is_wrong=isinstance(exc, UnauthorizedError))
    response = see_other("./" + own_path(next_path))
    begin_session(request, response)
    return response


async def post_logout(request: web.Request) -> web.StreamResponse:
    """POST /logout: end the session, in this browser."""
    response = see_other("./")
    end_session(response)
    return response


async def refused(
    request: web.Request, error: WholefeedError, *, next_path: str | None = None, is_wrong: bool = False
) -> web.Response:
    """Answer with the page that asks for the token in place of an error.

    Args:
        request: What is refused.
        error: Why.
        next_path: Where to lead on to afterwards; None: to what is asked for, where that is only looked at.
        is_wrong: Whether a token was given, and is not the one.
    """
    if next_path is None:
        next_path = request[ASKED].target if request.method == "GET" else ""
        is_wrong = "token" in request.query
    wait_seconds = error.retry_after_seconds if isinstance(error, TooManyRequestsError) else 0
    response = await _page(
        request, error.answer_status, next_path=next_path, is_wrong=is_wrong, wait_seconds=wait_seconds
    )
    if wait_seconds:
        response.headers["Retry-After"] = str(wait_seconds)
    if error.answer_status == HTTPStatus.UNAUTHORIZED:
        # a challenge for Basic would open the browser's own dialogue in front of the page
        response.headers["WWW-Authenticate"] = 'Bearer realm="wholefeed"'
    return response


def own_path(path: str) -> str:
    """Return a path of ours without its slash, as it is led on to; empty, which is home, for any other."""
    found = _OWN_PATH.fullmatch(path)
    return found[1] if found is not None else ""


def see_other(location: str) -> web.Response:
    """Lead on to a relative URL: right below any prefix."""
    return web.Response(status=303, headers={"Location": location, "Cache-Control": "no-store"})


async def _page(
    request: web.Request,
    status: int,
    *,
    next_path: str = "",
    is_wrong: bool = False,
    wait_seconds: int = 0,
) -> web.Response:
    return await page(
        request,
        "login.html",
        status=status,
        has_token=bool(request.app[CONFIG].server.access_token),
        next_path=next_path if own_path(next_path) else "",
        is_wrong=is_wrong,
        wait_seconds=wait_seconds,
    )


def _is_wanted(request: web.Request) -> bool:
    server = request.app[CONFIG].server
    return bool(server.access_token or server.signing_keys)


def _count(request: web.Request) -> None:
    wait_seconds = math.ceil(request.app[LOGINS].take(request[ASKED].client, time.monotonic()))
    if wait_seconds:
        raise TooManyRequestsError("expected fewer tokens to be tried", retry_after_seconds=wait_seconds)


async def _form(request: web.Request) -> tuple[str, str]:
    """Return the token and where to lead on to; a form that is none has neither, or does not come in time.

    Nobody has shown yet that they may ask here, and who waits for them cannot answer others.
    """
    try:
        async with asyncio.timeout(FORM_SECONDS):
            body = await request.read()
    except TimeoutError:
        return "", ""
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=_MAX_FIELDS)
    except ValueError:
        return "", ""
    return fields.get("token", [""])[0], fields.get("next", [""])[0]
