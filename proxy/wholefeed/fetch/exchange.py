"""One request and its response: the HTTP client, the body, and the failures (docs/design.md#fetching).

Beyond aiohttp, this module verifies a body's true end (`_whole_body`), decodes under limits (`Decoder`),
mends and bounds heads and chunk framing (`_PublisherHandler`), and maps failures to slugs (`failure_of`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.resolver import DefaultResolver
from aiohttp.streams import EMPTY_PAYLOAD
from multidict import CIMultiDictProxy, istr
from yarl import URL

from wholefeed.config.tables import FetchConfig
from wholefeed.core.slugs import SLUGS
from wholefeed.descriptors import RETRY_AFTER_SECONDS, are_short, is_shortage
from wholefeed.errors import (
    DocumentError,
    ForbiddenTargetError,
    LoopDetectedError,
    PublisherError,
    PublisherStatusError,
    PublisherTimeoutError,
    QueueFullError,
)
from wholefeed.fetch.base import KEPT_HEADERS, Target, Transfer
from wholefeed.fetch.codings import ACCEPT_ENCODING, SLICE_BYTES, DecodeError, Decoder, codings_of
from wholefeed.fetch.guard import (
    AddressPolicy,
    GuardedResolver,
    NameTimeoutError,
    OwnAddressError,
    TargetRefusedError,
    guarded_socket_factory,
)
from wholefeed.fetch.heads import mend_head
from wholefeed.fetch.publishers import NO_PUBLISHERS, Publishers
from wholefeed.futures import retrieve_failure

# The HTTP client

# Content-Security-Policy and Link fields outgrow aiohttp's 8 KiB.
_HEADER_FIELD_BYTES: Final = 32768
_HEADER_FIELDS: Final = 256

_VIA: Final = "1.1 wholefeed"
"""Lets the proxy recognise its own requests (docs/faults.md row 19)."""

_ACCEPT: Final = (
    "application/atom+xml, application/rss+xml, application/rdf+xml, application/feed+json, "
    "application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, text/html;q=0.5, */*;q=0.1"
)

_KEEPALIVE_SECONDS: Final = 15.0
# Look-ups time out before connections do, so that their failure gets its own slug.
_LOOKUP_SHARE: Final = 0.9


@contextlib.asynccontextmanager
async def open_session(
    fetch: FetchConfig,
    policy: AddressPolicy,
    *,
    resolver: AbstractResolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
    make_socket: Callable[[int, int, int], socket.socket] = socket.socket,
) -> AsyncIterator[aiohttp.ClientSession]:
    """Open the guarded HTTP client with fixed request header fields (docs/design.md#fetching).

    The client closes `resolver`. Default of `ssl_context`: the system's certificates.
    """
    connector = _PublisherConnector(
        resolver=GuardedResolver(
            resolver or DefaultResolver(),
            policy,
            timeout_seconds=fetch.connect_timeout_seconds * _LOOKUP_SHARE,
        ),
        socket_factory=guarded_socket_factory(policy, make_socket),
        ssl=ssl_context or True,
        limit=0,  # the gate in front of it limits
        keepalive_timeout=_KEEPALIVE_SECONDS,
    )
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(
            total=None, connect=fetch.connect_timeout_seconds, sock_read=fetch.read_timeout_seconds
        ),
        headers={
            "User-Agent": fetch.user_agent,
            "Accept": _ACCEPT,
            "Accept-Encoding": ACCEPT_ENCODING,
            "Via": _VIA,
        },
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        request_class=_Request,
        response_class=_Response,
        trust_env=False,
        max_line_size=_HEADER_FIELD_BYTES,
        max_field_size=_HEADER_FIELD_BYTES,
        max_headers=_HEADER_FIELDS,
    ) as session:
        yield session


# One request and its answer

DOCUMENT_STATUSES: Final = frozenset({200, 203})
_STATUSES: Final = range(100, 600)

MAX_WIRE_BYTES: Final = 16 << 20
"""Limit of a body before decoding (docs/design.md#limits)."""

_YIELD_BYTES: Final = 1 << 20  # about a millisecond of inflating


class Exchange:
    """A sender of requests.

    Args:
        body_limit_bytes: Limit of a decoded body.
        proxied: The client for requests through a proxy: the publisher's own, or `proxy`.
        is_exempt: Whether secrets may go to an address without TLS.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        body_limit_bytes: int,
        proxied: aiohttp.ClientSession | None = None,
        proxy: str = "",
        publishers: Publishers = NO_PUBLISHERS,
        is_exempt: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._session = session
        self._proxied = proxied
        self._body_limit_bytes = body_limit_bytes
        self._proxy = proxy
        self._is_exempt = is_exempt
        self.publishers = publishers

    async def ask(self, transfer: Transfer, target: Target) -> Response:
        response: aiohttp.ClientResponse | None = None
        is_head, headers = transfer.manner.is_head, transfer.validators.header_fields(target.url)
        if cookies := transfer.cookies.find_field(target.url):
            headers["Cookie"] = cookies
        method, url = "HEAD" if is_head else "GET", _encoded_url(target.url)
        session, options = self._way(target, transfer.manner.feed_url, headers)
        try:
            response = await session.request(method, url, headers=headers, allow_redirects=False, **options)
            transfer.heads += 1
            transfer.status = response.status
            if response.status not in _STATUSES:
                raise aiohttp.ClientResponseError(response.request_info, (), message="no HTTP status")
            assert isinstance(response, _Response), "the session makes no others"
            if response.status in DOCUMENT_STATUSES and not is_head:
                body = await self._read_body(transfer, target, response)
            else:
                body = b""
                await _drain(response)
            transfer.repairs = frozenset(response.repairs)
            return Response(
                target=target,
                status=response.status,
                headers=response.headers,
                body=body,
                repairs=transfer.repairs,
            )
        except TRANSPORT_ERRORS as exc:
            raise failure_of(exc, target.url, in_body=response is not None) from exc
        finally:
            if response is not None and not response.closed:  # its end has closed it
                response.release()
                await response.wait_for_close()

    def _way(
        self, target: Target, feed_url: str, headers: dict[str, str]
    ) -> tuple[aiohttp.ClientSession, dict[str, Any]]:
        own, options, proxy = self.publishers.of_host(target.host), dict[str, Any](), self._proxy
        if own is not None:
            proxy = own.proxy or proxy
            if own.user_agent:
                headers["User-Agent"] = own.user_agent
            if own.is_private:
                if not target.is_secure:  # a cookie that secrets have brought may be one
                    headers.pop("Cookie", None)
                secrets = partial(self.publishers.secrets_for, target.url, feed_url=feed_url)
                options["middlewares"] = (partial(_bear, secrets=secrets, is_exempt=self._is_exempt),)
        if not proxy:
            return self._session, options
        assert self._proxied is not None, "it is opened where there is a proxy"
        return self._proxied, {**options, "proxy": proxy}

    async def _read_body(self, transfer: Transfer, target: Target, response: _Response) -> bytes:
        if (response.content_length or 0) > MAX_WIRE_BYTES:
            raise _too_large()
        decoder = Decoder(
            codings_of(response.headers.getall("Content-Encoding", ())), limit_bytes=self._body_limit_bytes
        )
        share, started = transfer.share, time.monotonic()
        begin = partial(share.begin, response.content_length, limit_bytes=self._body_limit_bytes)
        is_coded = "Content-Encoding" in response.headers
        await begin(is_coded=is_coded)
        body = io.BytesIO()  # what it gives in the end is no copy, as of a bytearray
        unyielded = 0
        with _whole_body(response):
            is_over = False
            while not is_over:
                chunk = await response.content.readany()
                is_over = not chunk
                transfer.wire_bytes += len(chunk)
                received_bytes = decoder.wire_bytes + len(chunk)
                if is_too_slow(received_bytes, time.monotonic() - started):
                    raise TimeoutError("the body comes too slowly")
                if received_bytes > MAX_WIRE_BYTES:
                    raise _too_large()
                for piece in decoder.finish() if is_over else decoder.feed(chunk):
                    if decoder.is_coded and not is_coded:  # nobody has said so
                        is_coded = True
                        await begin(is_coded=True)
                    part = received_bytes / response.content_length if response.content_length else 0.0
                    await share.cover(decoder.decoded_bytes, part)
                    body.write(piece)
                    transfer.body_bytes += len(piece)
                    if piece and transfer.on_chunk is not None and response.status == HTTPStatus.OK:
                        transfer.on_chunk(target.url, piece)
                    unyielded += len(piece) or SLICE_BYTES
                    if unyielded >= _YIELD_BYTES:
                        unyielded = 0
                        await asyncio.sleep(0)
        share.came(decoder.decoded_bytes)
        response.repairs |= decoder.repairs
        return body.getvalue()


class _Request(aiohttp.ClientRequest):
    """A request that carries its publisher's secrets only while it is being written (A2).

    Before that, its connection is unknown. Afterwards, aiohttp's errors hold the header fields.
    """

    secrets: Callable[..., Mapping[str, str]] | None = None
    is_exempt: Callable[[str], bool]

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        if self.secrets is None:
            return await super().send(conn)
        secrets = self.secrets(is_safe=self.is_ssl() or self._is_near(conn))
        self.headers.update(secrets)
        try:
            return await super().send(conn)
        finally:
            for name in secrets:
                self.headers.pop(name, None)

    def _is_near(self, conn: Connection) -> bool:
        peer = None if conn.transport is None else conn.transport.get_extra_info("peername")
        return not self.proxy and peer is not None and self.is_exempt(peer[0])


async def _bear(
    request: aiohttp.ClientRequest,
    handler: aiohttp.ClientHandlerType,
    *,
    secrets: Callable[..., Mapping[str, str]],
    is_exempt: Callable[[str], bool],
) -> aiohttp.ClientResponse:
    assert isinstance(request, _Request), "the session makes no others"
    request.secrets, request.is_exempt = secrets, is_exempt
    return await handler(request)


class _Response(aiohttp.ClientResponse):
    repairs: set[str]

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        assert isinstance(connection.protocol, _PublisherHandler), "the connector makes no others"
        self.repairs = connection.protocol.repairs
        return await super().start(connection)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One HTTP response; bodies come with `DOCUMENT_STATUSES` only."""

    target: Target
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes
    repairs: frozenset[str]

    def fields(self, name: str) -> tuple[str, ...]:
        """Return all values of a header field, octets outside UTF-8 replaced."""
        return tuple(map(_as_text, self.headers.getall(name, ())))

    def kept_headers(self) -> dict[str, str]:
        kept = {}
        for field, name in _KEPT:
            if name == "transfer-encoding" and CHUNK_REPAIR in self.repairs:
                continue  # nothing but the end of the connection delimits the body
            if values := self.headers.getall(field, ()):
                kept[name] = _as_text(", ".join(values) if name in _LIST_HEADERS else values[0])
        return kept


_KEPT: Final = tuple((istr(name), name) for name in KEPT_HEADERS)
_LIST_HEADERS: Final = frozenset({"cache-control", "vary"})


def _as_text(value: str) -> str:
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@lru_cache(maxsize=1024)  # each refresh asks for the same
def _encoded_url(text: str) -> URL:
    return URL(text, encoded=True)


_DRAINED_BYTES: Final = 65536
_DRAIN_SECONDS: Final = 1.0


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read a small unneeded body to keep the connection; else close it."""
    if response.content.at_eof():
        return
    received = 0
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for chunk in response.content.iter_any():
                received += len(chunk)
                if received > _DRAINED_BYTES:
                    break
            else:
                return
    except TRANSPORT_ERRORS:
        pass
    response.close()


def _too_large() -> DecodeError:
    return DecodeError(f"expected at most {MAX_WIRE_BYTES} bytes on the wire", slug="too-large")


MIN_BYTES_PER_SECOND: Final = 1024
RATE_GRACE_SECONDS: Final = 10.0
"""Time without a minimum rate (docs/faults.md row 30)."""


def is_too_slow(received_bytes: int, elapsed_seconds: float) -> bool:
    return elapsed_seconds > RATE_GRACE_SECONDS and received_bytes < MIN_BYTES_PER_SECOND * elapsed_seconds


@contextlib.contextmanager
def _whole_body(response: aiohttp.ClientResponse) -> Iterator[None]:
    """Ensure that the body read in this block comes to its true end (docs/faults.md row 32).

    After a broken chunk, aiohttp leaves the reader waiting; without a length, it takes a reset for the end.

    Raises:
        aiohttp.ClientError: The body broke off. Reads raise it too, or HttpProcessingError for bad framing.
    """
    content, connection = response.content, response.connection
    protocol = connection.protocol if connection is not None else None
    closed = protocol.closed if protocol is not None else None

    def end(_: object) -> None:
        if not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError("closed"))

    if closed is None:  # the connection is gone already, or has been given back
        end(None)
        yield
    else:
        # A future whose exception nobody asks for is logged; it is the connection's, not this answer's.
        closed.remove_done_callback(retrieve_failure)
        closed.add_done_callback(retrieve_failure)
        closed.add_done_callback(end)
        try:
            yield
        finally:
            closed.remove_done_callback(end)
    if protocol is not None and isinstance(protocol.exception(), aiohttp.ClientOSError):
        raise aiohttp.ClientPayloadError("reset")


# What comes beside the body

_HEADER_BYTES: Final = 256 << 10
"""All heads of an exchange, or chunk framing beyond the body's size."""

_READ_BYTES: Final = 256 << 10

_HEAD_SLICE_BYTES: Final = 16 << 10


CHUNK_REPAIR: Final = "last-chunk"
"""The connection closed in place of the last chunk."""
_CHUNK_ENDS: Final = (
    (b"\r\n0\r\n", b"\r\n"),
    (b"\r\n0\r", b"\n\r\n"),
    (b"\r\n0", b"\r\n\r\n"),
    (b"\r\n", b"0\r\n\r\n"),
)
"""Received ends of framing (RFC 9112, section 7.1), with the missing rest."""
_CHUNK_END_BYTES: Final = len(b"\r\n0\r\n")

_HTTP: Final = b"HTTP/"
_LINE_BREAKS: Final = re.compile(rb"[\r\n]*+")
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_INTERIM: Final = re.compile(rb"HTTP/[0-9.]++[ ]++1(?!01)[0-9][0-9]\b")


class _PublisherConnector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        make: Callable[..., ResponseHandler] = _PublisherHandler
        self._factory = functools.partial(make, loop=self._loop)


class _PublisherHandler(ResponseHandler):
    """The client's end of a connection: mends heads, and bounds all bytes beside the body.

    aiohttp does not count interim responses (`103 Early Hints`) and chunk extensions, which could go on
    without end (docs/faults.md row 88). aiohttp's parser cannot accept invalid heads, so it gets mended ones
    (docs/faults.md row 152). Then the connection closes, lest another response be smuggled in.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._received_bytes = 0
        self._former: aiohttp.StreamReader | None = None
        self._head: bytearray | None = None  # as far as it has come; None: there is none to come
        self._ending = b""  # the last bytes that came
        self._is_chunked = False
        self.repairs: set[str] = set()

    def set_response_params(self, **parameters: Any) -> None:
        self._received_bytes = 0
        self._former = self._payload
        self._head, self._ending, self._is_chunked = bytearray(), b"", False
        self.repairs = set()
        super().set_response_params(**parameters)

    def data_received(self, data: bytes) -> None:
        self._ending = (self._ending + data[-_CHUNK_END_BYTES:])[-_CHUNK_END_BYTES:]
        if self._head is not None and data:
            data = self._mend_heads(self._head, data)
            if not data:
                self.start_timeout()  # as it would where something is parsed
                return
        if len(data) <= _HEAD_SLICE_BYTES:
            self._take(data)
            return
        rest = data
        while rest and self._body() is None:
            part, rest = rest[:_HEAD_SLICE_BYTES], rest[_HEAD_SLICE_BYTES:]
            self._take(part)
            if self.exception() is not None:
                return
        if rest:
            self._take(rest)

    def _mend_heads(self, held: bytearray, data: bytes) -> bytes:
        """Return the bytes ready for the parser; hold back an unfinished head."""
        searched_bytes = max(0, len(held) - 2)
        held += data
        parsable: list[bytes | bytearray] = []
        start = 0
        while True:
            start = _LINE_BREAKS.match(held, start).end()  # type: ignore[union-attr]  # it matches anything
            end = _HEAD_END.search(held, max(start, searched_bytes))
            is_http = _HTTP.startswith(held[start : start + len(_HTTP)].upper())
            if not is_http or (end is None and len(held) - start > _HEADER_BYTES):
                break  # the parser says what is wrong with it
            if end is None:
                del held[:start]
                return b"".join(parsable)
            head, repairs = mend_head(bytes(held[start : end.end()]))
            parsable.append(head)
            start = end.end()
            if repairs:
                self.repairs |= repairs
                self.force_close()
            if not _INTERIM.match(head):
                break
        self._head = None
        return b"".join((*parsable, held[start:]))

    def feed_data(self, data: tuple[RawResponseMessage, aiohttp.StreamReader], size: int = 0) -> None:
        self._is_chunked = data[0].chunked
        super().feed_data(data, size)

    def eof_received(self) -> None:
        """Supply a missing last chunk; anywhere but between chunks, that breaks the body off."""
        super().eof_received()
        body = self._body()
        if not self._is_chunked or body is None or body.is_eof() or not body.total_bytes:
            return
        self.force_close()
        for ending, rest in _CHUNK_ENDS:
            if self._ending.endswith(ending):
                super().data_received(rest)
                break
        if body.is_eof():
            self.repairs.add(CHUNK_REPAIR)

    def _take(self, data: bytes) -> None:
        self._received_bytes += len(data)
        super().data_received(data)
        body = self._body()
        # Framing takes at least five bytes a chunk, so chunks may be of five bytes each, or few.
        # What was read at once may wait in the parser while nobody takes the body.
        most_bytes = _HEADER_BYTES if body is None else _HEADER_BYTES + _READ_BYTES + 2 * body.total_bytes
        if self._received_bytes > most_bytes:
            self._end(body)

    def _body(self) -> aiohttp.StreamReader | None:
        return None if self._payload in (self._former, EMPTY_PAYLOAD) else self._payload

    def _end(self, body: aiohttp.StreamReader | None) -> None:
        error = _HeaderLimitError("header fields or chunks without end")
        if self.transport is not None:
            self.transport.abort()
        self.set_exception(error)
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(error)


class _HeaderLimitError(aiohttp.ClientError):
    """A response with too many bytes beside its body."""


# What went wrong, as the errors of `wholefeed.errors`

TRANSPORT_ERRORS: Final = (aiohttp.ClientError, HttpProcessingError, DecodeError, OSError)
"""The errors that `failure_of` accepts; TimeoutError is an OSError."""

_NOT_HTTP: Final = (aiohttp.ClientResponseError, HttpProcessingError)
_IN_CHUNK: Final = re.compile(r"\bchunk\b", re.IGNORECASE)
"""In the parser's message, if the chunk arrived with the head."""


def failure_of(exc: BaseException, url: str, *, in_body: bool = False) -> DocumentError:
    """Return the error for one of `TRANSPORT_ERRORS` (docs/faults.md part C), without the publisher's text.

    `in_body` says whether the response's head had arrived.
    """
    cause = exc.os_error if isinstance(exc, aiohttp.ClientConnectorError) else exc
    if isinstance(cause, DecodeError):
        return PublisherError(str(cause), url=url, slug=cause.slug)
    if (refusal := _own_refusal(exc, cause, url)) is not None:
        return refusal
    if isinstance(exc, _NOT_HTTP) and _IN_CHUNK.search(exc.message):
        return PublisherError("a chunk of the response is broken", url=url, slug="incomplete")
    for kinds, slug, message in IN_BODY if in_body else BEFORE_BODY:
        if isinstance(exc, kinds):
            is_late = SLUGS[slug].status == PublisherTimeoutError.status
            return (PublisherTimeoutError if is_late else PublisherError)(message, url=url, slug=slug)
    raise AssertionError("every transport error is in the tables") from exc


def _own_refusal(exc: BaseException, cause: BaseException, url: str) -> DocumentError | None:
    """Return this side's own error; None: the publisher's failure."""
    if isinstance(cause, TargetRefusedError):
        # The same whichever rule refused a host: the answer must not map a network (docs/faults.md part A).
        text = "this proxy does not go to that address, unless fetch.allow_networks lists its network"
        if cause.port:
            text = f"this proxy does not ask port {cause.port}, unless fetch.ports lists it"
        return ForbiddenTargetError(text, url=url)
    if isinstance(cause, OwnAddressError):
        return LoopDetectedError("the target is this proxy itself", url=url)
    # A name server is asked through sockets, too, and its client hides why it has none.
    if is_shortage(cause) or (isinstance(exc, aiohttp.ClientConnectorError) and are_short()):
        message = "this proxy has no free file descriptor for a request"
        return QueueFullError(message, url=url, retry_after_seconds=RETRY_AFTER_SECONDS)
    if isinstance(cause, NameTimeoutError):
        return PublisherTimeoutError("the name server did not answer in time", url=url, slug="dns-timeout")
    return None


_FailureRow = tuple[type[Exception] | tuple[type[Exception], ...], str, str]

_ANYWHERE: Final[tuple[_FailureRow, ...]] = (
    (_HeaderLimitError, "header-limit", "the header fields or chunks of the response have no end"),
    (aiohttp.ConnectionTimeoutError, "timeout", "no connection in the time allowed"),
    (TimeoutError, "timeout", "the publisher sent nothing for too long"),
    (
        aiohttp.ClientHttpProxyError,
        "connection-failed",
        "the proxy between here and the publisher refused the connection",
    ),
    (_NOT_HTTP, "protocol-error", "the response is not valid HTTP"),
    (aiohttp.ClientPayloadError, "incomplete", "the response stopped before its end"),
)
IN_BODY: Final[tuple[_FailureRow, ...]] = (
    *_ANYWHERE,
    (TRANSPORT_ERRORS, "incomplete", "the connection broke before the response's end"),
)
BEFORE_BODY: Final[tuple[_FailureRow, ...]] = (
    (
        aiohttp.ClientConnectorCertificateError,
        "tls-certificate",
        "the certificate is not valid for this host",
    ),
    (aiohttp.ClientConnectorSSLError, "connection-failed", "no TLS connection could be agreed on"),
    (aiohttp.ClientConnectorDNSError, "dns-error", "the name of the host has no address"),
    (
        aiohttp.ClientProxyConnectionError,
        "connection-failed",
        "no connection to the proxy between here and the publisher",
    ),
    (aiohttp.ClientConnectorError, "connection-failed", "no connection to the host"),
    *_ANYWHERE,
    (aiohttp.ServerDisconnectedError, "connection-failed", "the connection was closed without a response"),
    (TRANSPORT_ERRORS, "connection-failed", "the connection failed"),
)

_BUSY_STATUSES: Final = frozenset({502, 503, 504})


def is_transient(error: DocumentError) -> bool:
    """Return whether the same request may succeed a moment later."""
    if isinstance(error, PublisherStatusError):
        return error.publisher_status in _BUSY_STATUSES and error.retry_after_seconds is None
    cause = error.__cause__
    if error.slug == "timeout":
        return isinstance(cause, aiohttp.ConnectionTimeoutError)
    return (
        # A connection that broke is none of these: aiohttp has tried a fresh one (docs/faults.md row 29).
        error.slug == "connection-failed"
        and isinstance(cause, aiohttp.ClientConnectorError)
        and not isinstance(cause, ssl.SSLError)
    )


_FORBIDDEN_STATUSES: Final = frozenset({401, 403})


def status_failure(status: int, url: str, retry_after_seconds: float | None = None) -> PublisherStatusError:
    """Return the error for a status without a document (docs/faults.md rows 39, 54 to 56)."""
    slug = ""
    if status in _FORBIDDEN_STATUSES:
        slug = "origin-forbidden"
    elif status < HTTPStatus.MULTIPLE_CHOICES or status == HTTPStatus.NOT_MODIFIED:
        slug = "unexpected-status"
    return PublisherStatusError(
        f"the publisher responded with status {status}",
        url=url,
        slug=slug,
        publisher_status=status,
        retry_after_seconds=retry_after_seconds,
    )
