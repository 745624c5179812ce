"""What went wrong on the way, as the errors of `wholefeed.errors` (docs/faults.md part C).

Each way a request can fail has one slug, whatever class aiohttp uses for it. Nothing of the publisher's
text gets into a message.
"""

from __future__ import annotations

import re
import ssl
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from wholefeed.core.slugs import SLUGS
from wholefeed.errors import (
    DocumentError,
    ForbiddenTargetError,
    LoopDetectedError,
    PublisherError,
    PublisherStatusError,
    PublisherTimeoutError,
)
from wholefeed.fetch.decode import DecodeError
from wholefeed.fetch.guard.addresses import NameTimeoutError, OwnAddressError, TargetRefusedError
from wholefeed.fetch.overhead import HeaderLimitError

TRANSPORT_ERRORS: Final = (aiohttp.ClientError, HttpProcessingError, DecodeError, OSError)
"""What `failure_of` knows; TimeoutError is an OSError."""

_NOT_HTTP: Final = (aiohttp.ClientResponseError, HttpProcessingError)
_IN_CHUNK: Final = re.compile(r"\bchunk\b", re.IGNORECASE)
"""In the parser's own words, where a broken chunk came together with the head, so that neither is given."""
_BUSY_STATUSES: Final = frozenset({502, 503, 504})
_FORBIDDEN_STATUSES: Final = frozenset({401, 403})


_Row = tuple[type[Exception] | tuple[type[Exception], ...], str, str]
_ANYWHERE: Final[tuple[_Row, ...]] = (
    (HeaderLimitError, "header-limit", "the header fields or chunks of the answer have no end"),
    (aiohttp.ConnectionTimeoutError, "timeout", "no connection in the time allowed"),
    (TimeoutError, "timeout", "the publisher fell silent"),
    (aiohttp.ClientHttpProxyError, "connection-failed", "fetch.proxy refused the connection"),
    (_NOT_HTTP, "protocol-error", "the answer is not valid HTTP"),
    (aiohttp.ClientPayloadError, "incomplete", "the answer stopped before its end"),
)
IN_BODY: Final[tuple[_Row, ...]] = (
    *_ANYWHERE,
    (TRANSPORT_ERRORS, "incomplete", "the connection broke before the answer's end"),
)
BEFORE_BODY: Final[tuple[_Row, ...]] = (
    (
        aiohttp.ClientConnectorCertificateError,
        "tls-certificate",
        "the certificate is not valid for this host",
    ),
    (aiohttp.ClientConnectorSSLError, "connection-failed", "no TLS connection could be agreed on"),
    (aiohttp.ClientConnectorDNSError, "dns-error", "the name of the host has no address"),
    (aiohttp.ClientConnectorError, "connection-failed", "no connection to the host"),
    *_ANYWHERE,
    (aiohttp.ServerDisconnectedError, "connection-failed", "the connection was closed without an answer"),
    (TRANSPORT_ERRORS, "connection-failed", "the connection failed"),
)


def failure_of(exc: BaseException, url: str, *, in_body: bool = False) -> DocumentError:
    """Return the error that a failed request becomes.

    Args:
        exc: One of `TRANSPORT_ERRORS`.
        url: What was asked for.
        in_body: Whether the answer's head had arrived.
    """
    cause = exc.os_error if isinstance(exc, aiohttp.ClientConnectorError) else exc
    if isinstance(cause, DecodeError):
        return PublisherError(str(cause), url=url, slug=cause.slug)
    if isinstance(cause, TargetRefusedError):
        # The same whichever rule refused it: the answer must not map a network (docs/faults.md part A).
        return ForbiddenTargetError(
            "this proxy does not go to that address, unless fetch.allow_networks lists its network", url=url
        )
    if isinstance(cause, OwnAddressError):
        return LoopDetectedError("the target is this proxy itself", url=url)
    if isinstance(cause, NameTimeoutError):
        return PublisherTimeoutError("the name server did not answer in time", url=url, slug="dns-timeout")
    if isinstance(exc, _NOT_HTTP) and _IN_CHUNK.search(exc.message):
        return PublisherError("a chunk of the answer is broken", url=url, slug="incomplete")
    for kinds, slug, message in IN_BODY if in_body else BEFORE_BODY:
        if isinstance(exc, kinds):
            is_late = SLUGS[slug].status == PublisherTimeoutError.status
            return (PublisherTimeoutError if is_late else PublisherError)(message, url=url, slug=slug)
    raise AssertionError("every transport error is in the tables") from exc


def is_transient(error: DocumentError) -> bool:
    """Return whether the same request may well work a moment later.

    A connection that broke is not among these: aiohttp has already tried a fresh one (docs/faults.md row 29).
    """
    if isinstance(error, PublisherStatusError):
        return error.publisher_status in _BUSY_STATUSES and error.retry_after_seconds is None
    cause = error.__cause__
    if error.slug == "timeout":
        return isinstance(cause, aiohttp.ConnectionTimeoutError)
    return (
        error.slug == "connection-failed"
        and isinstance(cause, aiohttp.ClientConnectorError)
        and not isinstance(cause, ssl.SSLError)
    )


def status_failure(status: int, url: str, retry_after_seconds: float | None = None) -> PublisherStatusError:
    """Return the error for a status that brings no document (docs/faults.md rows 39, 54 to 56).

    Args:
        status: What the publisher sent.
        url: What was asked for.
        retry_after_seconds: What it asked for besides, clamped.
    """
    slug = ""
    if status in _FORBIDDEN_STATUSES:
        slug = "origin-forbidden"
    elif status < HTTPStatus.MULTIPLE_CHOICES or status == HTTPStatus.NOT_MODIFIED:
        slug = "unexpected-status"
    return PublisherStatusError(
        f"the publisher answered {status}",
        url=url,
        slug=slug,
        publisher_status=status,
        retry_after_seconds=retry_after_seconds,
    )
