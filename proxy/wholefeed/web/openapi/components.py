"""What the answers of the HTTP interface have in common, described as OpenAPI 3.1 components.

Only data, made from the enumerations that the answers are made from; which path uses what stands in
`wholefeed.web.openapi.document`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from wholefeed.core.formats import MEDIA_TYPE
from wholefeed.core.terms import Family
from wholefeed.web.middlewares import PROBLEM_TYPE
from wholefeed.web.openapi.schemas import Schema, ref, schemas

PROBLEMS: Final[dict[int, dict[str, str]]] = {
    400: {
        "bad-request": "a parameter is missing, given twice, or not what it should be",
        "invalid-url": "the feed's URL is none that can be fetched",
        "ambiguous-host": "its host is an address in a spelling that programs read in different ways",
        "userinfo-not-allowed": "it holds a user name or a password",
    },
    401: {"unauthorized": "the access token is missing or wrong"},
    403: {
        "destination-forbidden": "the feed's host or port is one that this proxy does not ask",
        "signature-required": "expected a signed URL",
        "bad-signature": "the signature is not this feed's",
        "expired-signature": "the signature was good, and is no more",
        "cross-origin": "asked by a page of another origin",
        "token-required": "only whoever knows an access token may, and none is set",
    },
    404: {
        "unknown-feed": "nothing is stored for the URL",
        "not-found": "the path is nothing",
        "publisher-status": "the publisher says 404",
    },
    405: {"method-not-allowed": "the path knows other methods: see Allow"},
    410: {"publisher-status": "the publisher says 410: the feed is gone for good"},
    413: {"too-large": "the body of the request is too large"},
    421: {"misdirected": "the Host is not one that links may be made from"},
    422: {
        "not-a-feed": "what the publisher sends is no feed, and announces none",
        "malformed-xml": "it is not well-formed beyond repair",
        "malformed-json": "it is no JSON",
        "dtd-forbidden": "it declares entities or other parts of a DTD",
        "xml-limit": "it is nested too deep, or has too much of something",
        "unsupported-format": "it is in a format that is not read",
        "unsupported-encoding": "it is in a text encoding that is not read",
    },
    429: {"too-many-requests": "the client asks too often"},
    500: {
        "internal": "an error of the proxy's own; its log has the request id",
        "store": "the database cannot do what was asked",
    },
    502: {
        "publisher-failed": "the publisher's answer could not be had",
        "publisher-status": "it answered with a status that is no document",
        "origin-forbidden": "it wants credentials, or refuses this proxy",
        "unexpected-status": "it answered with a status that makes no sense here",
        "connection-failed": "no connection, or one that broke before an answer came",
        "dns-error": "the name of its host has no address",
        "tls-certificate": "its certificate is not valid for its host",
        "protocol-error": "its answer is not valid HTTP",
        "incomplete": "its answer stopped before its end",
        "empty": "its answer is empty",
        "too-large": "its answer is larger than is taken",
        "content-coding": "its content coding is unknown or broken",
        "bad-link": "the link that leads on is none that can be fetched",
        "bad-redirect": "its redirect leads to nothing that can be fetched",
        "downgrade": "its redirect leads from https to http",
        "redirect-loop": "its redirects lead in a circle, nowhere or too far",
        "host-backoff": "it asked to be left alone for a while",
    },
    503: {
        "overloaded": "no capacity now",
        "shutting-down": "the proxy is being stopped",
        "storage-full": "the volume of the database is full or cannot be written",
        "store-damaged": "the database was found damaged",
    },
    504: {
        "timeout": "the publisher did not answer in time",
        "dns-timeout": "its name server did not answer in time",
    },
    508: {"loop-detected": "the URL or the request leads to this proxy itself"},
}
"""Every slug by status, and what it means."""

_RETRYABLE: Final = frozenset({429, 502, 503, 504})

URL_SCHEMA: Final[Schema] = {
    "type": "string",
    "format": "uri",
    "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s\\@]+",
    "maxLength": 2048,
}


def problem_name(status: int) -> str:
    """Return the name of the response component for an error status."""
    return HTTPStatus(status).phrase.title().replace(" ", "").replace("-", "")


def components() -> Schema:
    """Return the components object."""
    return {
        "schemas": schemas(),
        "parameters": _PARAMETERS,
        "headers": _HEADERS,
        "responses": {problem_name(status): _problem_response(status) for status in PROBLEMS},
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "description": "the access token"},
            "basic": {
                "type": "http",
                "scheme": "basic",
                "description": "the token as password; any user name",
            },
            "token": {"type": "apiKey", "in": "query", "name": "token", "description": "the access token"},
            "signed": {
                "type": "apiKey",
                "in": "query",
                "name": "signed",
                "description": "the signature of the feed's URL, as `wholefeed sign` prints it",
            },
        },
    }


def feed_content() -> Schema:
    """Return the content of a feed: the source's own format."""
    return {MEDIA_TYPE[family]: {"schema": {}} for family in Family}


def json_content(schema: Schema) -> Schema:
    """Return content that is JSON."""
    return {"application/json": {"schema": schema}}


def _problem_response(status: int) -> Schema:
    slugs = PROBLEMS[status]
    types = [f"urn:wholefeed:{slug}" for slug in slugs]
    headers: Schema = {"X-Request-Id": ref("headers", "RequestId")}
    if status in _RETRYABLE:
        headers["Retry-After"] = ref("headers", "RetryAfter")
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = ref("headers", "Challenge")
    content: Schema = {
        PROBLEM_TYPE: {
            "schema": {
                **ref("schemas", "Problem"),
                "properties": {"type": {"enum": types}, "status": {"const": status}},
            }
        }
    }
    if status == HTTPStatus.BAD_REQUEST:  # of a request that is no HTTP, or whose line is too long
        content["text/plain"] = {"schema": {"type": "string"}}
    return {
        "description": "; ".join(f"`{slug}`: {meaning}" for slug, meaning in slugs.items()),
        "headers": headers,
        "content": content,
    }


def _option(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": description}


_PARAMETERS: Final[Schema] = {
    "url": {
        "name": "url",
        "in": "query",
        "required": True,
        "schema": URL_SCHEMA,
        "description": "The feed's URL, percent-encoded. Written as it is, it takes all parameters behind it "
        "that are none of the interface's own.",
        "example": "https://example.org/feed.atom",
    },
    "wait": _option("wait", {"type": "number", "minimum": 0}, "Seconds to wait for a feed that is loading."),
    "limit": _option("limit", {"type": "integer", "minimum": 1}, "The first N entries alone."),
    "since": _option(
        "since", {"type": "string", "format": "date-time"}, "Entries from this instant on alone."
    ),
    "full": _option("full", {"type": "string"}, "Check every document again; 0, false and nothing do not."),
    "if-none-match": {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}},
    "if-modified-since": {"name": "If-Modified-Since", "in": "header", "schema": {"type": "string"}},
}


def _header(description: str) -> Schema:
    return {"description": description, "schema": {"type": "string"}}


_HEADERS: Final[Schema] = {
    "RequestId": _header("Names the request in the log."),
    "RetryAfter": _header("Seconds to wait before asking again."),
    "Challenge": _header("Bearer and Basic."),
    "FeedReconstruction": _header(
        "What the answer is: a state, and documents, entries and missing ones as parameters (RFC 8941); "
        "`;stale` when the publisher could not be reached, `;cut` when entries were left out for the reader."
    ),
    "ETag": _header("Of this representation, strong."),
    "LastModified": _header("When the feed changed."),
    "CacheControl": _header("How long the answer may be reused."),
    "Vary": _header("Accept-Encoding."),
    "Link": _header("The publisher's document, as rel=via."),
}
