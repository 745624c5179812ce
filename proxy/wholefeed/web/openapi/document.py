"""GET /openapi.json: the HTTP interface, described for programs (OpenAPI 3.1).

Every route of `wholefeed.web.routes` stands here, and nothing else; a test holds both against each other.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any, Final

from aiohttp import web

from wholefeed import __version__
from wholefeed.web.keys import CONFIG
from wholefeed.web.middlewares import PROBLEM_TYPE
from wholefeed.web.openapi.components import URL_SCHEMA, components, feed_content, json_content, problem_name
from wholefeed.web.openapi.schemas import Schema, ref

_ADMITTED: Final = (400, 401, 403, 429, 500, 503)
"""What any request can end with that is not open to all."""
_KNOWN: Final = (404, 421)
_FETCHED: Final = (404, 410, 421, 422, 502, 504, 508)

_TOKEN: Final[list[Schema]] = [{}, {"bearer": []}, {"basic": []}, {"token": []}]
"""The empty one: a proxy may have been set up without."""


async def get_openapi(request: web.Request) -> web.StreamResponse:
    """GET /openapi.json: the description."""
    found = description(request.app[CONFIG].server.public_url)
    return web.json_response(found, headers={"Cache-Control": "no-cache"})


@cache
def description(public_url: str = "") -> Schema:
    """Return the OpenAPI document.

    Args:
        public_url: The URL that readers reach the proxy by; empty: the one that the document came from.
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "wholefeed",
            "version": __version__,
            "summary": "An HTTP proxy that gives any feed reader a feed's whole history (RFC 5005)",
            "description": f"Errors are {PROBLEM_TYPE} (RFC 9457). HEAD answers as GET does, without a body. "
            "Methods that are not described are answered with 405, paths that are not with 404. "
            "What is no HTTP, or has a line of more than 8,190 octets, gets 400 as plain text.",
        },
        "servers": [{"url": public_url or "/"}],
        "paths": {path: _with_head(item) for path, item in _paths().items()},
        "components": components(),
    }


def _paths() -> dict[str, Schema]:
    return {
        "/feed": {"get": _feed("getFeed"), "delete": _FORGET},
        "/feed/": {"get": _feed("getFeedWithSlash")},
        "/status": {"get": _STATUS},
        "/refresh": {"post": _REFRESH},
        "/feeds": {"get": _FEEDS},
        "/healthz": {"get": _health("getHealth", "Whether the server can answer at all.", 500)},
        "/readyz": {
            "get": _health(
                "getReadiness", "Whether the database is open, current and can be written.", 500, 503
            )
        },
        "/openapi.json": {"get": _DESCRIPTION},
        "/{url}": {"get": _PREFIXED},
    }


def _with_head(item: Schema) -> Schema:
    """Describe HEAD beside GET: the same, without content."""
    if "get" not in item:
        return item
    head = deepcopy(item["get"])
    head["operationId"] = head["operationId"].replace("get", "head", 1)
    head["responses"] = {
        status: response if "$ref" in response else {k: v for k, v in response.items() if k != "content"}
        for status, response in head["responses"].items()
    }
    return {**item, "head": head}


def _operation(
    name: str,
    summary: str,
    responses: dict[int, Schema],
    *errors: int,
    parameters: tuple[str, ...] = (),
    security: list[Schema] = _TOKEN,
) -> Schema:
    described = {str(status): response for status, response in responses.items()}
    described |= {str(status): ref("responses", problem_name(status)) for status in sorted(errors)}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [ref("parameters", parameter) for parameter in parameters],
        "responses": described,
        "security": security,
    }


def _answer(text: str, content: Schema | None = None, **headers: str) -> Schema:
    named = {"X-Request-Id": "RequestId"} | {name.replace("_", "-"): part for name, part in headers.items()}
    answer: Schema = {
        "description": text,
        "headers": {name: ref("headers", part) for name, part in named.items()},
    }
    return answer if content is None else answer | {"content": content}


def _feed_responses() -> dict[int, Schema]:
    fields: dict[str, Any] = {
        "Feed_Reconstruction": "FeedReconstruction",
        "ETag": "ETag",
        "Last_Modified": "LastModified",
        "Cache_Control": "CacheControl",
        "Vary": "Vary",
        "Link": "Link",
    }
    return {
        200: _answer("The feed, in the format of its publisher.", feed_content(), **fields),
        304: _answer("The reader has this representation already.", **fields),
    }


def _feed(name: str) -> Schema:
    return _operation(
        name,
        "The whole feed; what there is of it when it is not all there yet.",
        _feed_responses(),
        *_ADMITTED,
        *_FETCHED,
        parameters=("url", "wait", "limit", "since", "if-none-match", "if-modified-since"),
        security=[*_TOKEN, {"signed": []}],
    )


def _health(name: str, summary: str, *errors: int) -> Schema:
    healthy = {200: _answer("It is.", json_content(ref("schemas", "Health")))}
    return _operation(name, summary, healthy, *errors, security=[])


_FORGET: Final = _operation(
    "forgetFeed",
    "Forget the feed and everything stored of it.",
    {204: _answer("It is forgotten.")},
    *_ADMITTED,
    *_KNOWN,
    parameters=("url",),
)
_STATUS: Final = _operation(
    "getStatus",
    "What is known of a feed, and what is missing and why.",
    {200: _answer("What is known.", json_content(ref("schemas", "Account")))},
    *_ADMITTED,
    *_KNOWN,
    parameters=("url",),
    security=[*_TOKEN, {"signed": []}],
)
_REFRESH: Final = _operation(
    "refreshFeed",
    "Ask the publisher now, and for what is missing.",
    {202: _answer("What is known so far.", json_content(ref("schemas", "Status")))},
    *_ADMITTED,
    *_KNOWN,
    parameters=("url", "full"),
)
_FEEDS: Final = _operation(
    "getFeeds",
    "The known feeds.",
    {200: _answer("All of them.", json_content({"type": "array", "items": ref("schemas", "Feed")}))},
    *_ADMITTED,
    421,
)
_DESCRIPTION: Final = _operation(
    "getDescription",
    "This document.",
    {200: _answer("OpenAPI 3.1.", json_content({"type": "object"}))},
    *_ADMITTED,
)
_PREFIXED: Final = _operation(
    "getPrefixed",
    "The whole feed; its URL, query included, stands behind the slash.",
    _feed_responses(),
    *_ADMITTED,
    *_FETCHED,
    parameters=("if-none-match", "if-modified-since"),
    security=[{}, {"bearer": []}, {"basic": []}],
)
_PREFIXED["parameters"].append(
    {
        "name": "url",
        "in": "path",
        "required": True,
        "schema": URL_SCHEMA,
        "description": "The feed's URL as it is, or percent-encoded.",
        "example": "https://example.org/feed.atom",
    }
)
