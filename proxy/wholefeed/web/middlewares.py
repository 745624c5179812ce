"""Checks before every handler, error answers, the log line and counts."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import hdrs, web, web_response
from aiohttp.typedefs import Handler, Middleware
from multidict import istr

from wholefeed.core.words import printable
from wholefeed.counts import NONE, Counts
from wholefeed.descriptors import RETRY_AFTER_SECONDS, is_shortage
from wholefeed.errors import (
    MisdirectedError,
    OverloadedError,
    StorageFullError,
    UnauthorizedError,
    WholefeedError,
)
from wholefeed.logs import REQUEST_ID, get_logger, members
from wholefeed.web.access import limit_clients, refuse_embedding, refuse_other_sites, require_access
from wholefeed.web.keys import ASKED, CONFIG, CONNECTIONS, COUNTS, PREFIX, TRUSTED
from wholefeed.web.pages import ask_for_token, error_page, wants_error_page
from wholefeed.web.request import HOME, OPEN_ROUTES, QUIET_ROUTES, UNMATCHED, Asked, require_host

log = get_logger()
_Check = Callable[[web.Request, Asked], None]
"""Raises to refuse a request."""
_CHECKS: Final[tuple[_Check, ...]] = (
    limit_clients,
    refuse_embedding,
    refuse_other_sites,
    require_access,
    require_host,
)
"""In order, before all handlers except those of `OPEN_ROUTES`."""

_NOT_MODIFIED: Final = 304


def attending(app: web.Application, paths: Mapping[web.AbstractResource | None, str]) -> Middleware:
    """Return the application's middleware; `paths` as from `add_routes`.

    One middleware per check would cost every request more coroutines.
    """
    config, prefix, trusted = app[CONFIG], app[PREFIX], app[TRUSTED]
    connections, counts = app[CONNECTIONS], app[COUNTS]

    @web.middleware
    async def attend(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request and write one `request.answered` line in any case."""
        started = time.monotonic()
        use = connections.use_of(request.protocol)
        route = paths.get(request.match_info.route.resource, UNMATCHED)
        asked = request[ASKED] = Asked(request, app, config, prefix, route, trusted, use.peer)
        REQUEST_ID.set(asked.request_id)  # tasks of the request log it too
        status = body_bytes = 0
        connections.begin(use, request.content)
        try:
            try:
                if request.method == "CONNECT" or not asked.target.startswith("/"):
                    _refuse_forwarding(request, asked)
                if asked.route not in OPEN_ROUTES:
                    for check in _CHECKS:
                        check(request, asked)
                response = await handler(request)
            except WholefeedError as exc:
                response = await _answer_to(exc, request, asked)
            except web.HTTPException as exc:
                response = await _answer_to_http(exc, request, asked)
            except ConnectionError:  # the reader has left
                asked.add(aborted=True)
                raise
            except Exception as exc:  # noqa: BLE001 - logged there
                response = await _answer_to_own_fault(exc, request, asked)
            status, body_bytes = response.status, _bytes_of_body(request, response)
        finally:
            ended = time.monotonic()
            connections.end(use, ended)
            _count(counts, asked, status, ended - started, body_bytes)
            _tell(request, asked, status, ended - started)
        if not request.content.is_eof():
            await _answer_unread(request, response)
        return response

    return attend


def _bytes_of_body(request: web.Request, response: web.StreamResponse) -> int:
    has_body = response.status != _NOT_MODIFIED and request.method != "HEAD"
    return response.content_length or 0 if has_body else 0


# Unread request bodies (docs/faults.md row 143)

HANDLER_ARGUMENTS: Final[Mapping[str, Any]] = {
    "auto_decompress": False,
    "lingering_time": 0.0,
    "read_bufsize": 1 << 16,
}
"""By default aiohttp decodes unwanted bodies (796 bytes of brotli: 3 s of CPU) and reads on after a refusal,
up to ten seconds. It buffers at most twice `read_bufsize`.
"""
_PARTING_SECONDS: Final = 1.0
"""Time to read an early answer: closing over unread bytes resets the connection (RFC 9112, 9.6)."""


async def _answer_unread(request: web.Request, response: web.StreamResponse) -> None:
    """Send an answer and close, without reading the body."""
    transport = request.transport
    if transport is None or transport.is_closing():
        return
    transport.pause_reading()
    response.force_close()
    await response.prepare(request)
    await response.write_eof()
    if transport.can_write_eof() and not transport.is_closing():
        transport.write_eof()
    await asyncio.sleep(_PARTING_SECONDS)


def _refuse_forwarding(request: web.Request, asked: Asked) -> None:
    """Refuse requests meant for a forward proxy (RFC 9112, 3.2.2 and 3.2.3)."""
    if request.method == "CONNECT":
        raise web.HTTPMethodNotAllowed(request.method, ["GET", "HEAD"])
    is_home = asked.route == HOME and urlsplit(request.raw_path).netloc == request.headers.get("Host")
    if not is_home and asked.route in (HOME, UNMATCHED):
        raise MisdirectedError("expected a path, got an absolute URL: this is no forward proxy")


# Error answers

PROBLEM_TYPE: Final = "application/problem+json"
_HTTP_SLUGS: Final = {404: "not-found", 405: "method-not-allowed", 413: "too-large"}
_OWN_FAULT: Final = "an error inside the proxy; its log has the request id"
_LONGEST_PATH: Final = 200
"""Characters of a path in a message."""
_FULL_SECONDS: Final = 60
"""Retry-After of a full volume: somebody must make room first."""


async def _answer_to(exc: WholefeedError, request: web.Request, asked: Asked) -> web.StreamResponse:
    if exc.slug in ("unauthorized", "token-required") and wants_error_page(request, asked):
        asked.add(slug=exc.slug)
        return await ask_for_token(request, exc)
    return await _refuse(request, asked, exc.answer_status, exc.slug, str(exc), _headers(exc), exc)


async def _answer_to_own_fault(exc: Exception, request: web.Request, asked: Asked) -> web.StreamResponse:
    if is_shortage(exc):
        error = OverloadedError(
            "the proxy has no free file descriptor", retry_after_seconds=RETRY_AFTER_SECONDS
        )
        return await _answer_to(error, request, asked)
    # Logged whole, hidden from readers (docs/faults.md row 82).
    log.exception("request.failed", **asked.facts)  # noqa: LOG004 - in the handler of the exception
    return await _refuse(request, asked, 500, "internal", _OWN_FAULT, {})


def _headers(error: WholefeedError) -> dict[str, str]:
    if isinstance(error, UnauthorizedError):
        return {"WWW-Authenticate": 'Bearer realm="wholefeed", Basic realm="wholefeed"'}
    seconds: float | None = getattr(error, "retry_after_seconds", None)
    if isinstance(error, StorageFullError):
        seconds = _FULL_SECONDS
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}


async def _answer_to_http(exc: web.HTTPException, request: web.Request, asked: Asked) -> web.StreamResponse:
    slug = _HTTP_SLUGS.get(exc.status, "bad-request")
    allowed = {"Allow": exc.headers["Allow"]} if "Allow" in exc.headers else {}
    path = request.path[:_LONGEST_PATH]
    if exc.status == HTTPStatus.NOT_FOUND:
        detail = f"expected a path of this proxy, got {path!r}"
    elif exc.status == HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"expected {exc.headers['Allow']} for {path!r}, got {request.method}"
    else:
        detail = f"{request.method}: {exc.reason}"
    return await _refuse(request, asked, exc.status, slug, detail, allowed)


async def _refuse(
    request: web.Request,
    asked: Asked,
    status: int,
    slug: str,
    detail: str,
    headers: dict[str, str],
    error: WholefeedError | None = None,
) -> web.Response:
    """Answer with an error page for people, else with a problem document (RFC 9457)."""
    asked.add(slug=slug)
    if wants_error_page(request, asked):
        try:
            response = await error_page(request, status, slug=slug, detail=detail, error=error)
            response.headers.update(headers)
        except Exception:  # the problem document needs no template
            log.exception("request.failed", **asked.facts)
        else:
            return response
    body: dict[str, Any] = {
        "detail": detail,  # first: some readers show only the beginning
        "type": f"urn:wholefeed:{slug}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "request_id": asked.request_id,
    }
    return web.json_response(
        body, status=status, headers={**headers, "Cache-Control": "no-store"}, content_type=PROBLEM_TYPE
    )


# Fields of every answer

_SECURITY_FIELDS: Final = (
    (istr("X-Content-Type-Options"), "nosniff"),
    (istr("Content-Security-Policy"), "default-src 'none'; sandbox"),
    (istr("Referrer-Policy"), "no-referrer"),
)
_REQUEST_ID: Final = istr("X-Request-Id")


async def protect(request: web.Request, response: web.StreamResponse) -> None:
    """Add the request's id and the fields that restrict browsers.

    A handler of pages sets its own Content-Security-Policy first.
    """
    headers = response.headers
    for name, value in _SECURITY_FIELDS:
        headers.setdefault(name, value)
    try:  # noqa: SIM105 - faster, on every answer's path
        headers[_REQUEST_ID] = request[ASKED].request_id
    except KeyError:  # the request never reached the middleware
        pass


def hide_version() -> None:
    """Send `Server: wholefeed` instead of versions, also in aiohttp's own errors, which no hook sees."""
    web_response.SERVER_SOFTWARE = "wholefeed"  # type: ignore[attr-defined]


# Log line and counts

_LONGEST_AGENT: Final = 200


def _tell(request: web.Request, asked: Asked, status: int, duration_seconds: float) -> None:
    """Write a request's log line; status 0: none.

    Built by hand, as a dict takes three times as long. Our own values need no escapes.
    """
    url = asked.shown_url
    agent = request.headers.get(hdrs.USER_AGENT, "")[:_LONGEST_AGENT]
    if not agent.isprintable():  # rare
        agent = printable(agent)
    facts = f"{members(asked.facts)}, " if asked.facts else ""
    log.laid_out(
        "request.answered",
        f'"method": {quoted(request.method)}, "path": "{asked.route}"'
        f', "url": {"null" if url is None else quoted(url)}'
        f', "client": "{asked.client}", "user_agent": {quoted(agent)}'
        f', "status": {status or "null"}, "duration_s": {duration_seconds:.6f}'
        f', {facts}"request_id": "{asked.request_id}"',
        is_debug=asked.route in QUIET_ROUTES and status < HTTPStatus.BAD_REQUEST,
    )


def _count(counts: Counts, asked: Asked, status: int, duration_seconds: float, body_bytes: int) -> None:
    """Count the log line's facts; an aborted answer counts no bytes."""
    facts = asked.facts
    is_aborted = "aborted" in facts
    state = str(facts.get("state", NONE))
    counts.count_answer(asked.route, state, status, duration_seconds, 0 if is_aborted else body_bytes)
    if is_aborted:
        counts.aborted += 1
    if "slug" in facts:
        counts.count_refusal(str(facts["slug"]))
