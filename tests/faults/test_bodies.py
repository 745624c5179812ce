"""docs/faults.md rows 143 and 144: bodies read only by routes that need them, and bytes outside HTTP."""

from __future__ import annotations

import asyncio
import gc
import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import brotli  # type: ignore[import-untyped]
import pytest

from tests.running import Proxy, StartProxy

TOKEN = "a token of twenty or more"
LIST = (
    b'<opml version="2.0"><body><outline type="rss" xmlUrl="http://example.org/feed"/>'
    + b"<outline text='filler'/>" * 50
    + b"</body></opml>"
)
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "gzip, br": lambda body: brotli.compress(gzip.compress(body)),
}
ROUTES = [
    ("POST", "/opml"),
    ("POST", "/import?url=http://example.org/"),
    ("POST", "/refresh?url=http://example.org/"),
    ("GET", "/feed?url=http://example.org/"),
    ("HEAD", "/feed?url=http://example.org/"),
    ("DELETE", "/feed?url=http://example.org/"),
    ("POST", "/login"),
    ("PUT", "/nowhere"),
    ("GET", "/healthz"),
    ("GET", "/"),
    ("PATCH", "/opml"),
    ("OPTIONS", "/feeds"),
]


@pytest.fixture
async def served(start: StartProxy) -> Proxy:
    return await start(server={"access_token": TOKEN})


class Client:
    """A connection for requests in raw bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def ask(cls, served: Proxy, method: str, target: str, *fields: str) -> Client:
        client = cls(*await asyncio.open_connection(served.client.host, served.client.port))
        lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{served.client.port}", *fields, "", ""]
        client._writer.write("\r\n".join(lines).encode())
        return client

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def sends_until_reset(self, piece: bytes) -> int:
        """Send a piece until the other side is gone; return the bytes accepted."""
        sent = 0
        with suppress(ConnectionError):
            while sent < 1 << 30:
                await self.send(piece)
                sent += len(piece)
        return sent

    async def head(self) -> str:
        async with asyncio.timeout(300):
            return (await self._reader.readuntil(b"\r\n\r\n")).decode()

    async def rest(self) -> bytes:
        async with asyncio.timeout(300):
            return await self._reader.read()

    async def close(self) -> None:
        self._writer.transport.abort()


@pytest.mark.parametrize(("method", "target"), ROUTES)
@pytest.mark.fault("143")
async def test_nothing_is_read_behind_an_answer_that_needs_no_body(
    served: Proxy, method: str, target: str
) -> None:
    """The answer comes whole; further bytes find nobody, and the connection ends."""
    client = await Client.ask(served, method, target, f"Content-Length: {1 << 30}")
    answer = await client.head()
    assert "\r\nConnection: close\r\n" in answer
    await client.rest()
    async with asyncio.timeout(300):
        assert await client.sends_until_reset(bytes(1 << 16)) < 64 << 20, "more than sockets hold"
    await client.close()


@pytest.mark.parametrize("coding", [*CODINGS, "unheard-of"])
@pytest.mark.parametrize(("method", "target"), ROUTES[:4])
@pytest.mark.fault("143")
async def test_who_has_no_access_gets_nothing_decoded(
    served: Proxy, method: str, target: str, coding: str
) -> None:
    """A body in no coding at all is refused once, for want of the token."""
    body = b"no coding at all"
    client = await Client.ask(
        served, method, target, f"Content-Encoding: {coding}", f"Content-Length: {len(body)}"
    )
    await client.send(body)
    assert (await client.head()).startswith("HTTP/1.1 401 ")
    await client.close()


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.fault("143")
async def test_a_list_is_taken_in_every_coding(served: Proxy, coding: str, is_chunked: bool) -> None:
    """RFC 9110, section 8.4: the route that accepts it decodes it."""
    body = CODINGS[coding](LIST)
    length = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(body)}"
    named = [f"Content-Encoding: {coding}"] if coding else []
    access = f"Authorization: Bearer {TOKEN}"
    client = await Client.ask(served, "POST", "/opml", access, length, "Connection: close", *named)
    pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
    for piece in pieces if is_chunked else [body]:
        await client.send(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
    if is_chunked:
        await client.send(b"0\r\n\r\n")
    assert (await client.head()).startswith("HTTP/1.1 200 ")
    assert b"http%3A%2F%2Fexample.org%2Ffeed" in await client.rest()
    await client.close()


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate"])
@pytest.mark.fault("143")
async def test_a_list_that_unpacks_to_too_much_is_refused(served: Proxy, coding: str) -> None:
    """413: decoding ends at the maximum length of a list."""
    body = CODINGS[coding](bytes(64 << 20))
    access = f"Authorization: Bearer {TOKEN}"
    client = await Client.ask(
        served, "POST", "/opml", access, f"Content-Encoding: {coding}", f"Content-Length: {len(body)}"
    )
    await client.send(body)
    assert (await client.head()).startswith("HTTP/1.1 413 ")
    await client.close()


@pytest.mark.fault("143")
async def test_a_body_that_is_in_no_coding_is_refused(served: Proxy) -> None:
    """400: with the reason."""
    access = f"Authorization: Bearer {TOKEN}"
    broken = gzip.compress(LIST)[:-20]
    client = await Client.ask(
        served, "POST", "/opml", access, "Content-Encoding: gzip", f"Content-Length: {len(broken)}"
    )
    await client.send(broken)
    assert (await client.head()).startswith("HTTP/1.1 400 ")
    await client.close()


@pytest.mark.parametrize(("access", "first"), [(TOKEN, "HTTP/1.1 100 "), ("wrong", "HTTP/1.1 401 ")])
@pytest.mark.fault("143")
async def test_a_body_is_asked_for_by_who_takes_it(served: Proxy, access: str, first: str) -> None:
    """RFC 9110, section 10.1.1: after the check of access; a client without access learns it before sending
    anything."""
    client = await Client.ask(
        served,
        *("POST", "/opml", f"Authorization: Bearer {access}"),
        *("Expect: 100-continue", f"Content-Length: {len(LIST)}"),
    )
    assert (await client.head()).startswith(first)
    if access == TOKEN:
        await client.send(LIST)
        assert (await client.head()).startswith("HTTP/1.1 200 ")
    await client.close()


@pytest.mark.fault("143")
async def test_what_is_expected_else_is_refused(served: Proxy) -> None:
    """RFC 9110, section 10.1.1: 417."""
    client = await Client.ask(served, "GET", "/healthz", "Expect: a miracle")
    assert (await client.head()).startswith("HTTP/1.1 417 ")
    await client.close()


@pytest.mark.fault("143")
async def test_a_request_behind_one_with_a_body_is_answered(served: Proxy) -> None:
    """A body received whole leaves the connection usable."""
    client = await Client.ask(served, "GET", "/healthz", "Content-Length: 5")
    await client.send(b"hello")
    await client.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    answers = await client.rest()
    assert answers.count(b"HTTP/1.1 200 ") == 2
    await client.close()


GARBAGE_BYTES = 1 << 18
HEAD = "POST /feed HTTP/1.1\r\nHost: a\r\n"
GARBAGE = {
    "a first line": "",
    "a field": HEAD + "X: ",
    "the size of a chunk": HEAD + "Transfer-Encoding: chunked\r\n\r\n",
    "a field behind the last chunk": HEAD + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: ",
    "another protocol": HEAD + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "the request behind one": HEAD + "Content-Length: 1\r\n\r\nx",
}


@pytest.mark.parametrize("head", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.fault("144")
async def test_what_is_no_http_is_not_sent_back(served: Proxy, head: str) -> None:
    """The answer quotes its beginning alone, and the connection ends."""
    answers = await _answers_to(served, head.encode() + bytes(GARBAGE_BYTES))
    assert b"HTTP/1.0 400 Bad Request\r\n" in answers
    assert len(answers) < 4096


@pytest.mark.parametrize("head", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.fault("144")
async def test_nothing_is_held_of_what_is_no_http(served: Proxy, head: str) -> None:
    """Neither the error nor its traceback holds it until the collector comes."""
    garbage = head.encode() + bytes(GARBAGE_BYTES)
    await _answers_to(served, garbage)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(10):
            await _answers_to(served, garbage)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert held_bytes < 4 * GARBAGE_BYTES, "one for each request would be ten"


async def _answers_to(served: Proxy, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(served.client.host, served.client.port)
    writer.write(sent)
    answers = bytearray()
    async with asyncio.timeout(300):
        with suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                answers += piece
    writer.transport.abort()
    return bytes(answers)


@pytest.mark.fault("144")
async def test_requests_that_come_at_once_are_all_answered(served: Proxy) -> None:
    """More than are parsed at once, and more than wait at once: in their order."""
    request = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: %b\r\n\r\n" % (b"x" * 900)
    last = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    answers = await _answers_to(served, 99 * request + last)
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 100
