"""wholefeed.fetch.fetcher: what a fault on the wire costs, and what no reader of the proxy can see of it.

What becomes of each fault of docs/faults.md part C is shown by tests/faults/test_transport.py.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import trustme
from structlog.testing import capture_logs

from tests.answers import (
    BODY_DRIP,
    ENDLESS_BODY,
    ENDLESS_FRAMING,
    Answer,
    Raw,
    Request,
    Reset,
    Silence,
    Status,
    Wire,
)
from tests.fetchers import Names, a_fetcher
from tests.origin import Origin
from tests.patching import set_constant
from wholefeed.errors import DocumentError, PublisherStatusError, PublisherTimeoutError
from wholefeed.fetch import exchange
from wholefeed.fetch.base import Validators
from wholefeed.fetch.exchange import failure_of
from wholefeed.fetch.fetcher import Fetcher

FEED = b"<feed xmlns='http://www.w3.org/2005/Atom'><title>one</title></feed>"
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    """A publisher that does what the test tells it."""
    async with Origin() as origin:
        yield origin


async def error_of(fetcher: Fetcher, url: str) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        await fetcher.fetch(url)
    return caught.value


async def slug_of(origin: Origin, answer: Answer, **fetch: Any) -> str:
    """What an answer makes of a fetch; and the next one must not suffer from it."""
    origin.publish("/sound", FEED)
    origin.answer("/feed", answer)
    async with a_fetcher(**fetch) as fetcher, asyncio.timeout(20):
        error = await error_of(fetcher, origin.url("/feed"))
        assert (await fetcher.fetch(origin.url("/sound"))).body == FEED
    assert error.answer_status == (504 if isinstance(error, PublisherTimeoutError) else 502)
    return error.slug


async def test_a_refused_connection_fails_after_the_tries_that_are_allowed() -> None:
    """docs/faults.md row 28."""
    async with Origin() as origin:
        url = origin.url("/feed")
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async with a_fetcher(retries=2, sleep=sleep) as fetcher:
        error = await error_of(fetcher, url)
    assert (error.slug, error.answer_status) == ("connection-failed", 502)
    assert len(pauses) == 2


async def test_a_publisher_that_is_back_in_a_moment_is_fetched() -> None:
    """docs/faults.md row 28."""
    origin = Origin()
    origin.publish("/feed", FEED)
    await origin.start()
    await origin.stop()

    async def sleep(_: float) -> None:
        await origin.start()

    async with a_fetcher(retries=1, sleep=sleep) as fetcher:
        assert (await fetcher.fetch(origin.url("/feed"))).body == FEED
    await origin.stop()


async def test_silence_in_a_body_is_not_waited_for(origin: Origin) -> None:
    """docs/faults.md row 30: fetch.read_timeout_seconds, long before the time of the document is over."""
    silence = Silence(OK + b"Content-Length: 99\r\n\r\n<feed")
    started = time.monotonic()
    assert await slug_of(origin, silence, read_timeout_seconds=0.5) == "timeout"
    assert time.monotonic() - started < 5


async def test_a_reset_is_no_end_of_a_body_without_a_length(origin: Origin) -> None:
    """docs/faults.md row 32: aiohttp takes it for one."""
    assert await slug_of(origin, Reset(OK + b"\r\n" + FEED)) == "incomplete"


async def test_another_version_of_http_is_an_error(origin: Origin) -> None:
    """docs/faults.md row 33."""
    answer = Raw(b"HTTP/9.9 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    assert await slug_of(origin, answer) == "protocol-error"


@pytest.mark.fault("88")
@pytest.mark.parametrize("name", ENDLESS_FRAMING)
async def test_interim_answers_and_chunks_are_counted(origin: Origin, name: str) -> None:
    """docs/faults.md row 88: what brings no body ends long before the time of the document."""
    assert await slug_of(origin, ENDLESS_FRAMING[name]) == "header-limit"
    async with asyncio.timeout(5):
        while origin.open_connections:
            await asyncio.sleep(0.01)


@pytest.mark.fault("88")
async def test_a_few_interim_answers_and_small_chunks_are_read(origin: Origin) -> None:
    """docs/faults.md row 88: interim answers and chunks of six bytes are no fault, on a connection that has
    brought much before."""
    body = b"<feed>" * 100_000
    chunks = b"6\r\n<feed>\r\n" * 100_000
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" * 5
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    origin.answer("/feed", Raw(hints + head + chunks + b"0\r\n\r\n", keep_alive=True))
    async with a_fetcher() as fetcher:
        for _ in range(2):
            assert (await fetcher.fetch(origin.url("/feed"))).body == body
    assert origin.total_connections == 1


@pytest.mark.fault("30")
async def test_redirects_share_the_time_of_the_document(origin: Origin) -> None:
    """docs/faults.md row 30: 60 s are for all hops together."""
    origin.latency_seconds = 0.2
    for number in range(5):
        origin.redirect(f"/{number}", f"/{number + 1}")
    origin.publish("/5", FEED)
    async with a_fetcher(document_timeout_seconds=0.5) as fetcher:
        error = await error_of(fetcher, origin.url("/0"))
    assert error.slug == "timeout"


@pytest.mark.fault("30")
async def test_a_drip_is_given_up_when_it_is_slower_than_a_kibibyte_a_second(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/faults.md row 30."""
    set_constant(monkeypatch, "RATE_GRACE_SECONDS", 0.2)
    origin.answer("/feed", BODY_DRIP)
    started = time.monotonic()
    async with a_fetcher(document_timeout_seconds=30) as fetcher:
        error = await error_of(fetcher, origin.url("/feed"))
    assert error.slug == "timeout"
    assert time.monotonic() - started < 5


def test_a_connection_that_breaks_in_a_body_leaves_it_incomplete() -> None:
    """docs/faults.md row 32: whatever aiohttp calls it."""
    for broken in (aiohttp.ClientOSError(104, "reset"), aiohttp.ServerDisconnectedError()):
        assert failure_of(broken, "http://example.org/", in_body=True).slug == "incomplete"
        assert failure_of(broken, "http://example.org/").slug == "connection-failed"


@pytest.mark.fault("30")
def test_the_minimum_rate_counts_after_ten_seconds() -> None:
    """docs/faults.md row 30."""
    assert not exchange.is_too_slow(0, 10.0)
    assert not exchange.is_too_slow(11 * 1024, 11.0)
    assert exchange.is_too_slow(11 * 1024 - 1, 11.0)


@pytest.mark.fault("30")
async def test_an_endless_body_is_broken_off_at_the_limit(origin: Origin) -> None:
    """docs/faults.md row 30."""
    origin.answer("/feed", ENDLESS_BODY)
    async with a_fetcher(document_bytes=1 << 20) as fetcher, asyncio.timeout(10):
        error = await error_of(fetcher, origin.url("/feed"))
        assert error.slug == "too-large"
        while origin.open_connections:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("answer", ["announced", "endless"])
async def test_a_body_over_the_wire_limit_is_refused(
    origin: Origin, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """docs/design.md#limits: 16 MiB on the wire, whatever it decodes to."""
    assert exchange.MAX_WIRE_BYTES == 16 << 20
    set_constant(monkeypatch, "MAX_WIRE_BYTES", 1 << 20)
    announced = Raw(OK + b"Content-Length: 1048577\r\n\r\n")
    origin.answer("/feed", announced if answer == "announced" else ENDLESS_BODY)
    async with a_fetcher(document_bytes=1 << 30) as fetcher, asyncio.timeout(10):
        with capture_logs() as logs:
            assert (await error_of(fetcher, origin.url("/feed"))).slug == "too-large"
    assert logs[0]["wire_bytes"] < 2 << 20


@pytest.mark.fault("32")
@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_bad_chunk_that_comes_late_is_an_error_at_once(origin: Origin, is_whole: bool) -> None:
    """docs/faults.md row 32: aiohttp tells nobody of one that comes by itself; the reader waited for its
    time to end."""
    first, second = asyncio.Event(), asyncio.Event()

    class Late:
        async def send(self, request: Request, wire: Wire) -> None:
            await wire.send(OK + b"Transfer-Encoding: chunked\r\n\r\n6\r\n<feed>\r\n")
            await first.wait()
            await wire.send(b"zz\r\nhello\r\n" if is_whole else b"5\r\nhelloXX\r\n")
            await second.wait()

    origin.answer("/feed", Late())
    async with a_fetcher() as fetcher, asyncio.timeout(10):
        with pytest.raises(DocumentError) as caught:
            await fetcher.fetch(origin.url("/feed"), on_chunk=lambda _url, _chunk: first.set())
        assert caught.value.slug == "incomplete"
        while origin.open_connections:
            await asyncio.sleep(0.01)


def contexts(*, issued_for: str = "127.0.0.1", trusted: bool = True) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the context of a publisher and that of a client."""
    authority, other = trustme.CA(), trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(issued_for).configure_cert(server)
    client = ssl.create_default_context()
    (authority if trusted else other).configure_trust(client)
    return server, client


@pytest.mark.fault("34")
@pytest.mark.parametrize(("issued_for", "trusted"), [("other.example", True), ("127.0.0.1", False)])
async def test_a_certificate_that_is_not_valid_is_refused(issued_for: str, trusted: bool) -> None:
    """docs/faults.md row 34."""
    server, client = contexts(issued_for=issued_for, trusted=trusted)
    async with Origin(tls=server) as origin, a_fetcher(ssl_context=client, retries=2) as fetcher:
        origin.publish("/feed", FEED)
        error = await error_of(fetcher, origin.url("/feed"))
    assert (error.slug, error.answer_status) == ("tls-certificate", 502)
    assert origin.total_connections <= 1


async def test_no_tls_where_tls_is_asked_for_is_a_failed_connection() -> None:
    """It is not tried again: what answers there speaks something else."""
    connections = []

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, a_fetcher(retries=2) as fetcher:
        error = await error_of(fetcher, f"https://127.0.0.1:{port}/feed")
    assert error.slug == "connection-failed"
    assert "TLS" in str(error)
    assert len(connections) == 1


@pytest.mark.parametrize("circle", [["/feed"], ["/a", "/feed"], ["/a", "/b", "/a"]])
async def test_redirects_in_a_circle_are_an_error(origin: Origin, circle: list[str]) -> None:
    """docs/faults.md row 35."""
    for source, target in zip(["/feed", *circle], circle, strict=False):
        origin.redirect(source, f"{target}#again")
    async with a_fetcher() as fetcher:
        assert (await error_of(fetcher, origin.url("/feed"))).slug == "redirect-loop"
    assert len(origin.requests) == len(set(circle) | {"/feed"})


async def test_redirects_are_followed_up_to_the_limit(origin: Origin) -> None:
    """docs/faults.md row 35."""
    for number in range(4):
        origin.redirect(f"/{number}", f"/{number + 1}")
    origin.publish("/4", FEED)
    async with a_fetcher(max_redirects=4) as fetcher:
        assert (await fetcher.fetch(origin.url("/0"))).body == FEED
    async with a_fetcher(max_redirects=3) as fetcher:
        error = await error_of(fetcher, origin.url("/0"))
    assert (error.slug, error.answer_status) == ("redirect-loop", 502)


async def test_a_transformed_document_is_one(origin: Origin) -> None:
    """RFC 9110, section 15.3.4."""
    origin.publish("/feed", FEED, status=203)
    async with a_fetcher() as fetcher:
        assert (await fetcher.fetch(origin.url("/feed"))).status == 203


@pytest.mark.parametrize(
    ("status", "slug", "answered"),
    [
        (401, "origin-forbidden", 502),
        (403, "origin-forbidden", 502),
        (404, "publisher-status", 404),
        (410, "publisher-status", 410),
        (300, "publisher-status", 502),
        (305, "publisher-status", 502),
        (400, "publisher-status", 502),
        (429, "publisher-status", 502),
        (500, "publisher-status", 502),
        (599, "publisher-status", 502),
    ],
)
async def test_a_status_that_brings_no_document_is_told(
    origin: Origin, status: int, slug: str, answered: int
) -> None:
    """docs/faults.md rows 54, 56."""
    origin.answer("/feed", Status(status, body=b"<html>no</html>"))
    async with a_fetcher() as fetcher:
        error = await error_of(fetcher, origin.url("/feed"))
    assert isinstance(error, PublisherStatusError)
    assert (error.slug, error.publisher_status, error.answer_status) == (slug, status, answered)
    assert error.retry_after_seconds is None


async def test_a_long_error_page_is_not_read(origin: Origin) -> None:
    """Row 54: of an 8 MB page under a 404 nothing more is read, and the connection is closed."""
    origin.publish("/feed", b"x" * (8 << 20), status=404)
    async with a_fetcher() as fetcher, asyncio.timeout(10):
        await error_of(fetcher, origin.url("/feed"))
        while origin.open_connections:
            await asyncio.sleep(0.01)


async def test_an_error_page_that_does_not_end_is_not_waited_for(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 30: a 404 whose page stalls is told as 404 at once, and its connection is closed."""
    set_constant(monkeypatch, "_DRAIN_SECONDS", 0.1)
    origin.answer("/feed", Silence(b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nno"))
    async with a_fetcher() as fetcher, asyncio.timeout(10):
        assert (await error_of(fetcher, origin.url("/feed"))).publisher_status == 404
        while origin.open_connections:
            await asyncio.sleep(0.01)


async def test_a_connection_that_does_not_come_about_is_tried_again(origin: Origin) -> None:
    """docs/faults.md row 30; a TLS handshake belongs to the connection, and nobody answers one here."""

    async def sleep(_: float) -> None:
        """Goes on at once."""

    url = origin.url("/feed").replace("http:", "https:")
    async with a_fetcher(retries=1, connect_timeout_seconds=0.2, sleep=sleep) as fetcher, asyncio.timeout(10):
        error = await error_of(fetcher, url)
    assert (error.slug, error.answer_status) == ("timeout", 504)
    assert origin.total_connections == 2


async def test_a_name_without_a_listener_is_a_failed_connection() -> None:
    """docs/faults.md row 28."""
    async with Origin() as origin:
        port = origin.port
    async with a_fetcher(resolver=Names({"down.example": ("127.0.0.1", "127.0.0.2")})) as fetcher:
        assert (await error_of(fetcher, f"http://down.example:{port}/")).slug == "connection-failed"


async def test_validators_survive_redirects(origin: Origin) -> None:
    """docs/faults.md row 39: 304 at the end of redirects."""
    origin.redirect("/old", "/feed")
    origin.publish("/feed", FEED, etag='"1"')
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/old"), validators=Validators(etag='"1"'))
    assert (fetched.not_modified, fetched.final_url) == (True, origin.url("/feed"))


async def test_a_validator_is_sent_to_no_document_but_its_own(origin: Origin) -> None:
    """RFC 9110, 13.1: what another document calls by the same tag is not the one that is stored."""
    origin.redirect("/feed", "/new")
    origin.publish("/new", FEED, etag='"1"')
    async with a_fetcher() as fetcher:
        validators = Validators(etag='"1"', url=origin.url("/feed"))
        assert (await fetcher.fetch(origin.url("/feed"), validators=validators)).body
