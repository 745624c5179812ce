"""Middlewares, outermost first in `MIDDLEWARES`: request log, error answers, access."""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from proxy.asked import is_prefix_form, read_prefix, read_query
from proxy.errors import DocumentError, OverloadedError, UnauthorizedError, WholefeedError
from proxy.keys import CONFIG, CONNECTIONS
from proxy.redact import safe_url

log = structlog.get_logger()

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Asked by supervisors, never behind the token."""

PROBLEM_TYPE: Final = "application/problem+json"
_HTTP_SLUGS: Final = {404: "not-found", 405: "method-not-allowed", 413: "too-large"}


@web.middleware
async def log_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Write one `request.answered` line a request, whatever becomes of it; give it an id."""
    structlog.contextvars.clear_contextvars()
    request_id = uuid4().hex[:16]
    structlog.contextvars.bind_contextvars(request_id=request_id)
    started = time.monotonic()
    status = 0
    try:
        with request.app[CONNECTIONS].busy(request.protocol):
            response = await handler(request)
        status = response.status
        if not response.prepared:
            response.headers["X-Request-Id"] = request_id
            response.headers["X-Content-Type-Options"] = "nosniff"
        return response
    finally:
        log.info(
            "request.answered",
            method=request.method,
            path=_route(request),
            url=_asked_url(request),
            status=status or None,
            duration_s=round(time.monotonic() - started, 6),
        )


def _route(request: web.Request) -> str:
    """Return the path of the route, never what a client wrote: a query may hide in it."""
    if is_prefix_form(request.raw_path):
        return "/{url}"
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None and "{" not in resource.canonical else "unmatched"


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
    except Exception:  # the last resort: logged whole, told to nobody (FAULTS 82)
        log.exception("request.failed")
        return _problem(500, "internal", "an error of the proxy's own; its log has the request id", {})


def _headers(error: WholefeedError) -> dict[str, str]:
    if isinstance(error, OverloadedError):
        return {"Retry-After": str(error.retry_after_seconds)}
    if isinstance(error, UnauthorizedError):
        return {"WWW-Authenticate": 'Bearer realm="wholefeed", Basic realm="wholefeed"'}
    if isinstance(error, DocumentError) and error.retry_after_seconds is not None:
        return {"Retry-After": str(int(error.retry_after_seconds))}
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


@web.middleware
async def require_token(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let in whoever knows the access token, where one is set (FAULTS 80)."""
    token = request.app[CONFIG].server.access_token
    if token and request.path not in OPEN_PATHS and not _knows(request, token.encode()):
        raise UnauthorizedError("expected the access token, as Bearer, as Basic password or as ?token=")
    return await handler(request)


def _knows(request: web.Request, token: bytes) -> bool:
    given = [_from_authorization(request.headers.get("Authorization", ""))]
    if not is_prefix_form(request.raw_path):
        given.append(read_query(request.rel_url.raw_query_string).options.get("token", "").encode())
    return any([hmac.compare_digest(candidate, token) for candidate in given])  # noqa: C419  # all are compared


def _from_authorization(value: str) -> bytes:
    scheme, _, credentials = value.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip().encode()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(credentials, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""


MIDDLEWARES: Final[tuple[Middleware, ...]] = (log_request, answer_errors, require_token)
