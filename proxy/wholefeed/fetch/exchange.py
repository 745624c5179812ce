"""One request and its answer, within the limits for a body; redirects and politeness are the fetcher's.

An answer's body is only ever read in chunks, each counted on the wire and again decoded: never the whole of
what a publisher chooses to send (docs/design.md#fetching).
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.resolver import DefaultResolver
from multidict import CIMultiDictProxy, istr
from yarl import URL

from wholefeed.config.tables import FetchConfig
from wholefeed.fetch.body import WholeBody
from wholefeed.fetch.budget import LARGE_BYTES
from wholefeed.fetch.decode import ACCEPT_ENCODING, DecodeError, Decoder, coding_of
from wholefeed.fetch.failures import TRANSPORT_ERRORS, failure_of
from wholefeed.fetch.fetched import KEPT_HEADERS
from wholefeed.fetch.guard.addresses import AddressPolicy, GuardedResolver, guarded_socket_factory
from wholefeed.fetch.overhead import CountingConnector
from wholefeed.fetch.targets import Target
from wholefeed.fetch.transfer import Traffic

MAX_WIRE_BYTES: Final = 16 << 20
"""A body before decoding (docs/design.md#limits)."""

MIN_BYTES_PER_SECOND: Final = 1024
RATE_GRACE_SECONDS: Final = 10.0
"""A body may be slower than the minimum rate for this long (docs/faults.md row 30)."""

HEADER_FIELD_BYTES: Final = 32768
"""One header field; publishers' Content-Security-Policy and Link fields outgrow aiohttp's own 8 KiB."""

VIA: Final = "1.1 wholefeed"
"""Sent with every request, so that one that comes back is known as our own (docs/faults.md row 19)."""

ACCEPT: Final = (
    "application/atom+xml, application/rss+xml, application/rdf+xml, application/feed+json, "
    "application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, text/html;q=0.5, */*;q=0.1"
)

DOCUMENT_STATUSES: Final = frozenset({200, 203})
_KEPT: Final = tuple((istr(name), name) for name in KEPT_HEADERS)
_LIST_HEADERS: Final = frozenset({"cache-control", "vary"})

_DRAINED_BYTES: Final = 65536
_DRAIN_SECONDS: Final = 1.0
_YIELD_BYTES: Final = 1 << 20  # about a millisecond of inflating
_STATUSES: Final = range(100, 600)
_KEEPALIVE_SECONDS: Final = 15.0
_LOOKUP_SHARE: Final = 0.9
"""A look-up is given up a little before the whole connection is, so that it is told as what it is."""


@contextlib.asynccontextmanager
async def open_session(
    fetch: FetchConfig,
    policy: AddressPolicy,
    *,
    resolver: AbstractResolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
    make_socket: Callable[[int, int, int], socket.socket] = socket.socket,
) -> AsyncIterator[aiohttp.ClientSession]:
    """Open the HTTP client: guarded, with one fixed set of request header fields (docs/design.md#fetching).

    Args:
        fetch: The [fetch] table.
        policy: Judges each address that is connected to.
        resolver: Looks names up; closed with the session. The default is aiodns, where it is installed.
        ssl_context: For https; the default trusts the system's certificates.
        make_socket: Makes a socket for an address that has passed the guard.
    """
    if fetch.proxy:
        policy = policy.behind_proxy()
    connector = CountingConnector(
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
            "Accept": ACCEPT,
            "Accept-Encoding": ACCEPT_ENCODING,
            "Via": VIA,
        },
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        max_line_size=HEADER_FIELD_BYTES,
        max_field_size=HEADER_FIELD_BYTES,
    ) as session:
        yield session


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One HTTP answer. The body is empty where the status is none of `DOCUMENT_STATUSES`."""

    target: Target
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    def field(self, name: str) -> str | None:
        """Return a header field's first value as text that can be stored and shown, or None."""
        value = self.headers.get(name)
        return None if value is None else _as_text(value)

    def fields(self, name: str) -> tuple[str, ...]:
        """Return all values of a header field; octets that are no UTF-8 are replaced."""
        return tuple(map(_as_text, self.headers.getall(name, ())))

    def kept_headers(self) -> dict[str, str]:
        """Return the header fields that the proxy uses; those that are lists as one value."""
        kept = {}
        for field, name in _KEPT:
            if values := self.headers.getall(field, ()):
                kept[name] = _as_text(", ".join(values) if name in _LIST_HEADERS else values[0])
        return kept


class RateFloor:
    """The slowest that a body may come (docs/faults.md row 30)."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._started = clock()

    def check(self, received_bytes: int) -> None:
        """Raise TimeoutError when fewer bytes came than the minimum rate asks for."""
        elapsed_seconds = self._clock() - self._started
        if elapsed_seconds > RATE_GRACE_SECONDS and received_bytes < MIN_BYTES_PER_SECOND * elapsed_seconds:
            raise TimeoutError("the body comes too slowly")


class Exchange:
    """Asks with one HTTP client.

    Args:
        session: Without cookies, automatic decoding and redirects.
        body_limit_bytes: For a body, decoded.
        proxy: URL of an HTTP proxy; "" for none.
        clock: Monotonic, in seconds.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        body_limit_bytes: int,
        proxy: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._body_limit_bytes = body_limit_bytes
        self._proxy = proxy or None
        self._clock = clock

    async def ask(
        self,
        target: Target,
        headers: Mapping[str, str],
        traffic: Traffic,
        on_chunk: Callable[[bytes], None] | None,
        *,
        is_head: bool = False,
    ) -> Response:
        """Return the answer to one GET, or HEAD.

        Args:
            target: What to ask for.
            headers: Beside those of the session.
            traffic: Counts what arrives.
            on_chunk: Given the decoded body of a 200 as it arrives.
            is_head: Whether to ask for the head alone (RFC 9110, section 9.3.2).

        Raises:
            DocumentError: No answer, or a broken one.
        """
        response: aiohttp.ClientResponse | None = None
        method, url = "HEAD" if is_head else "GET", _url(target.url)
        try:
            response = await self._session.request(
                method, url, headers=headers, allow_redirects=False, proxy=self._proxy
            )
            traffic.heads += 1
            traffic.status = response.status
            if response.status not in _STATUSES:
                raise aiohttp.ClientResponseError(response.request_info, (), message="no HTTP status")
            if response.status in DOCUMENT_STATUSES and not is_head:
                body = await self._read_body(response, traffic, on_chunk)
            else:
                body = b""
                await _drain(response)
            return Response(target=target, status=response.status, headers=response.headers, body=body)
        except TRANSPORT_ERRORS as exc:
            raise failure_of(exc, target.url, in_body=response is not None) from exc
        finally:
            if response is not None and not response.closed:  # its end has closed it
                response.release()
                await response.wait_for_close()

    async def _read_body(
        self,
        response: aiohttp.ClientResponse,
        traffic: Traffic,
        on_chunk: Callable[[bytes], None] | None,
    ) -> bytes:
        if (response.content_length or 0) > MAX_WIRE_BYTES:
            raise _too_large()
        decoder = Decoder(
            coding_of(response.headers.getall("Content-Encoding", ())), limit_bytes=self._body_limit_bytes
        )
        body = io.BytesIO()  # what it gives in the end is no copy, as of a bytearray
        body_bytes = 0
        floor = RateFloor(self._clock)
        unyielded = 0
        with WholeBody(response):
            while chunk := await response.content.readany():
                traffic.wire_bytes += len(chunk)
                floor.check(decoder.wire_bytes + len(chunk))
                if decoder.wire_bytes + len(chunk) > MAX_WIRE_BYTES:
                    raise _too_large()
                for piece in decoder.feed(chunk):
                    body_bytes += len(piece)
                    if body_bytes > LARGE_BYTES:
                        await traffic.share.take(self._most_bytes(response))
                    body.write(piece)
                    traffic.body_bytes += len(piece)
                    if on_chunk is not None and response.status == HTTPStatus.OK:
                        on_chunk(piece)
                    unyielded += len(piece)
                    if unyielded >= _YIELD_BYTES:
                        unyielded = 0
                        await asyncio.sleep(0)
        decoder.finish()
        traffic.share.shrink(body_bytes)
        return body.getvalue()

    def _most_bytes(self, response: aiohttp.ClientResponse) -> int:
        """Return how large the body may become."""
        if "Content-Encoding" in response.headers or response.content_length is None:
            return self._body_limit_bytes
        return min(response.content_length, self._body_limit_bytes)


@lru_cache(maxsize=1024)  # each refresh asks for the same
def _url(text: str) -> URL:
    return URL(text, encoded=True)


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read a small body that nobody wants, so that the connection can be used again; else give it up."""
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


def _as_text(value: str) -> str:
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
