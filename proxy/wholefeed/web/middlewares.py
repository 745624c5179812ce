"""Middlewares, outermost first in `MIDDLEWARES`: request log, error answers, access, Host."""

from __future__ import annotations

import math
import time
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

import structlog
from aiohttp import web, web_response
from aiohttp.typedefs import Handler, Middleware

from wholefeed.core.text.redact import safe_url
from wholefeed.errors import (
    DocumentError,
    MisdirectedError,
    OverloadedError,
    TooManyRequestsError,
    UnauthorizedError,
    WholefeedError,
)
from wholefeed.loggers import get_logger
from wholefeed.web.access import UNMATCHED, limit_clients, refuse_other_sites, require_access, route_of
from wholefeed.web.host_field import require_host
from wholefeed.web.keys import CONNECTIONS, REQUEST_ID
from wholefeed.web.request_target import is_prefix_form, read_prefix, read_query

log = get_logger()

PROBLEM_TYPE: Final = "application/problem+json"
_SECURITY_FIELDS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
}
_HTTP_SLUGS: Final = {404: "not-found", 405: "method-not-allowed", 413: "too-large"}


@web.middleware
async def log_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Write one `request.answered` line a request, whatever becomes of it; give it an id."""
    structlog.contextvars.clear_contextvars()
    request_id = request[REQUEST_ID] = uuid4().hex[:16]
    structlog.contextvars.bind_contextvars(request_id=request_id)
    started = time.monotonic()
    status = 0
    try:
        with request.app[CONNECTIONS].busy(request.protocol):
            response = await handler(request)
        status = response.status
        return response
    finally:
        log.info(
            "request.answered",
            method=request.method,
            path=route_of(request),
            url=_asked_url(request),
            status=status or None,
            duration_s=round(time.monotonic() - started, 6),
        )


def _asked_url(request: web.Request) -> str | None:
    if is_prefix_form(request.raw_path):
        return safe_url(read_prefix(request.raw_path))
    try:
        given = read_query(request.rel_url.raw_query_string).url
    except WholefeedError:
        return None
    return safe_url(given) if given else None


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn what stops an answer into a problem document (RFC 9457)."""
    try:
        _refuse_forwarding(request)
        return await handler(request)
    except WholefeedError as exc:
        structlog.contextvars.bind_contextvars(slug=exc.slug)
        return _problem(exc.answer_status, exc.slug, str(exc), _headers(exc))
    except web.HTTPException as exc:
        slug = _HTTP_SLUGS.get(exc.status, "bad-request")
        allowed = {"Allow": exc.headers["Allow"]} if "Allow" in exc.headers else {}
        return _problem(exc.status, slug, f"{request.method}: {exc.reason}", allowed)
    except ConnectionError:  # the reader has left
        structlog.contextvars.bind_contextvars(aborted=True)
        raise
    except Exception:  # the last resort: logged whole, told to nobody (docs/faults.md row 82)
        log.exception("request.failed")
        return _problem(500, "internal", "an error of the proxy's own; its log has the request id", {})


def _refuse_forwarding(request: web.Request) -> None:
    """Tell those who take this for a forward proxy that it is none (RFC 9112, 3.2.2 and 3.2.3)."""
    if request.method == "CONNECT":
        raise web.HTTPMethodNotAllowed(request.method, ["GET", "HEAD"])
    if not request.raw_path.startswith("/") and route_of(request) == UNMATCHED:
        raise MisdirectedError("expected a path, got an absolute URL: this is no forward proxy")


def _headers(error: WholefeedError) -> dict[str, str]:
    if isinstance(error, OverloadedError | TooManyRequestsError):
        return {"Retry-After": str(error.retry_after_seconds)}
    if isinstance(error, UnauthorizedError):
        return {"WWW-Authenticate": 'Bearer realm="wholefeed", Basic realm="wholefeed"'}
    if isinstance(error, DocumentError) and error.retry_after_seconds is not None:
        return {"Retry-After": str(math.ceil(error.retry_after_seconds))}
    return {}


def _problem(status: int, slug: str, detail: str, headers: dict[str, str]) -> web.Response:
    body: dict[str, Any] = {
        "type": f"urn:wholefeed:{slug}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "request_id": structlog.contextvars.get_contextvars().get("request_id", ""),
    }
    return web.json_response(
        body, status=status, headers={**headers, "Cache-Control": "no-store"}, content_type=PROBLEM_TYPE
    )


def hide_version() -> None:
    """Send `Server: wholefeed`, where aiohttp would tell its version and Python's.

    aiohttp sets the field before any hook, and no hook sees its own answers to what is no HTTP.
    """
    web_response.SERVER_SOFTWARE = "wholefeed"  # type: ignore[attr-defined]


async def protect(request: web.Request, response: web.StreamResponse) -> None:
    """Put on every answer what keeps browsers from doing more with it than to show it, and its id.

    A handler that answers with a page for people sets a Content-Security-Policy of its own.
    """
    for name, value in _SECURITY_FIELDS.items():
        response.headers.setdefault(name, value)
    if REQUEST_ID in request:
        response.headers["X-Request-Id"] = request[REQUEST_ID]


MIDDLEWARES: Final[tuple[Middleware, ...]] = (
    log_request,
    answer_errors,
    limit_clients,
    refuse_other_sites,
    require_access,
    require_host,
)
