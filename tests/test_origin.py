"""tests.origin: the publisher of the tests does what it is told."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import AsyncIterator

import pytest

from tests.answers import (
    CloseWithoutAnswer,
    Computed,
    Drip,
    Raw,
    Request,
    Reset,
    Sequence,
    Silence,
    Status,
    Truncated,
)
from tests.origin import Origin


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with Origin() as origin:
        yield origin


class Client:
    """A client that sends what the test says and shows every byte that comes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def ask(self, target: str, *fields: str, method: str = "GET") -> None:
        lines = [f"{method} {target} HTTP/1.1", "Host: x", *fields, "", ""]
        self.writer.write("\r\n".join(lines).encode())

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def rest(self) -> bytes:
        return await self.reader.read()

    async def asked(self, target: str, *fields: str, method: str = "GET") -> bytes:
        """Ask, and return everything until the connection is closed."""
        self.ask(target, "Connection: close", *fields, method=method)
        return await self.rest()


@contextlib.asynccontextmanager
async def connected(origin: Origin) -> AsyncIterator[Client]:
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(origin.host, origin.port)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def asked(origin: Origin, target: str, *fields: str, method: str = "GET") -> bytes:
    async with connected(origin) as client:
        return await client.asked(target, *fields, method=method)


async def test_a_published_document_is_served(origin: Origin) -> None:
    """The tests' publisher sends what was published, byte for byte, with the length and fields that were
    asked for."""
    origin.publish("/feed", "grüße", headers=[("X-A", "b")])
    answer = await asked(origin, "/feed?any=query")
    assert answer == (
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Type: application/atom+xml\r\nX-A: b\r\n\r\n"
        b"gr\xc3\xbc\xc3\x9fe"
    )


async def test_a_path_with_its_query_string_outranks_the_path(origin: Origin) -> None:
    """A page published under a query is served there, and the bare path's document elsewhere."""
    origin.publish("/feed", "all")
    origin.publish("/feed?page=2", "second")
    assert (await asked(origin, "/feed?page=2")).endswith(b"\r\n\r\nsecond")
    assert (await asked(origin, "/feed?page=3")).endswith(b"\r\n\r\nall")


async def test_what_is_not_published_is_not_found(origin: Origin) -> None:
    """What was removed is 404, as a publisher that deletes an archive answers."""
    origin.publish("/feed", "all")
    origin.remove("/feed")
    assert (await asked(origin, "/feed")).startswith(b"HTTP/1.1 404 Not Found\r\n")


async def test_head_has_no_body(origin: Origin) -> None:
    """HEAD gets the length of the document and no byte of it."""
    origin.publish("/feed", "all")
    answer = await asked(origin, "/feed", method="HEAD")
    assert b"Content-Length: 3\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("field", "status"),
    [
        ('If-None-Match: "1"', 304),
        ('If-None-Match: "0", "1"', 304),
        ('If-None-Match: "2"', 200),
        ("If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT", 304),
        ("If-Modified-Since: Tue, 14 Nov 2023 22:13:21 GMT", 200),
        ("X-A: b", 200),
    ],
)
async def test_conditional_requests_are_answered(origin: Origin, field: str, status: int) -> None:
    """The publisher answers 304 exactly when a validator fits; tests of refreshes rest on that."""
    origin.publish("/feed", "all", etag='"1"', last_modified=1_700_000_000)
    answer = await asked(origin, "/feed", field)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b'ETag: "1"\r\n' in answer
    assert answer.endswith(b"\r\n\r\nall") == (status == 200)


async def test_a_body_can_be_chunked_and_coded(origin: Origin) -> None:
    """Chunks of a chosen size and gzip bodies go out as RFC 9112 and the coding want them."""
    origin.publish("/chunked", "abcde", chunked=True, chunk_bytes=2)
    origin.publish("/coded", "abcde", coding="gzip")
    assert (await asked(origin, "/chunked")).endswith(b"\r\n\r\n2\r\nab\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\n")
    head, _, body = (await asked(origin, "/coded")).partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head
    assert gzip.decompress(body) == b"abcde"


async def test_pieces_wait_for_their_gates(origin: Origin) -> None:
    """A body can be held between two pieces, so that tests of early links need no sleeping."""
    gate = asyncio.Event()
    opened = asyncio.Event()
    opened.set()
    origin.publish("/feed", "abcd", chunk_bytes=2, gates=[opened, gate])
    async with connected(origin) as client:
        client.ask("/feed")
        await client.head()
        assert await client.reader.readexactly(2) == b"ab"
        gate.set()
        assert await client.reader.readexactly(2) == b"cd"


async def test_requests_and_connections_are_counted(origin: Origin) -> None:
    """Tests that say "asked for once" can trust the counts of requests, connections and peaks."""
    origin.publish("/feed", "all")
    async with connected(origin) as one, connected(origin) as two:
        for _ in range(2):
            one.ask("/feed?a")
            await one.head()
            await one.reader.readexactly(3)
        two.ask("/feed", "X-Name: Value")
        await two.head()
        assert (origin.open_connections, origin.total_connections) == (2, 2)
    assert [(r.method, r.target, r.path, r.connection) for r in origin.requests] == [
        ("GET", "/feed?a", "/feed", 1),
        ("GET", "/feed?a", "/feed", 1),
        ("GET", "/feed", "/feed", 2),
    ]
    assert origin.requests[2].headers == {"host": "x", "x-name": "Value"}
    assert origin.counts() == {"/feed?a": 2, "/feed": 1}
    assert len(origin.requests_for("/feed")) == 3
    assert origin.peak_requests == 1
    origin.forget_requests()
    assert origin.requests == []


async def test_requests_sent_ahead_are_not_lost(origin: Origin) -> None:
    """Two requests on one connection, sent at once, are both answered in order."""
    origin.publish("/feed", "all")
    async with connected(origin) as client:
        client.ask("/feed")
        client.ask("/feed")
        for _ in range(2):
            await client.head()
            assert await client.reader.readexactly(3) == b"all"


async def test_a_whole_publisher_answers_below_a_path(origin: Origin) -> None:
    """What has an answer of its own, or a fault, gets that; of two publishers the longer path wins."""
    origin.answer_below("/", Status(201))
    origin.answer_below("/blog/", Status(202))
    origin.publish("/blog/own", "all")
    origin.fault("/blog/feed", Status(503), times=1)
    paths = ("/feed", "/blog/feed?x", "/blog/own", "/blog/feed", "/blog/feed")
    assert [(await asked(origin, path))[9:12] for path in paths] == [b"201", b"503", b"200", b"202", b"202"]


async def test_a_fault_lasts_as_often_as_it_is_told(origin: Origin) -> None:
    """Faults with a number of times come in turn and then give way to the document."""
    origin.publish("/feed", "all")
    origin.fault("/feed", Status(503), times=2)
    origin.fault("/feed", Status(500), times=1)
    statuses = [(await asked(origin, "/feed"))[9:12] for _ in range(4)]
    assert statuses == [b"503", b"503", b"500", b"200"]


async def test_a_fault_lasts_until_it_is_healed(origin: Origin) -> None:
    """A fault without a number stays until `heal`, as tests of recovery need it."""
    origin.publish("/feed", "all")
    origin.fault("/feed", Status(500))
    assert [(await asked(origin, "/feed"))[9:12] for _ in range(3)] == [b"500"] * 3
    origin.heal("/feed")
    assert (await asked(origin, "/feed"))[9:12] == b"200"


async def test_a_sequence_ends_with_its_last_answer(origin: Origin) -> None:
    """A list of answers is given in order, and its last one for ever after."""
    origin.answer("/feed", Sequence([Status(500), Status(410)]))
    assert [(await asked(origin, "/feed"))[9:12] for _ in range(3)] == [b"500", b"410", b"410"]


async def test_an_answer_can_depend_on_the_request(origin: Origin) -> None:
    """A publisher can answer by what it was asked, as redirects to varying targets need."""

    def choose(request: Request) -> Status:
        return Status(410 if request.target.endswith("?gone") else 500)

    origin.answer("/feed", Computed(choose))
    assert (await asked(origin, "/feed?gone"))[9:12] == b"410"
    assert (await asked(origin, "/feed"))[9:12] == b"500"


async def test_held_requests_wait_and_then_get_what_is_published(origin: Origin) -> None:
    """Requests can be held until a test lets them go, and then get fault or document as published."""
    origin.publish("/feed", "before")
    origin.fault("/feed", Status(503), times=1)
    async with connected(origin) as one, connected(origin) as two:
        with origin.held("/feed") as gate:
            one.ask("/feed", "Connection: close")
            two.ask("/feed", "Connection: close")
            await gate.reached(2)
            assert gate.waiting == 2
            assert origin.peak_requests == 2
            gate.release()
            answers = [await one.rest(), await two.rest()]
    assert sorted(answer[9:12] for answer in answers) == [b"200", b"503"]
    assert (await asked(origin, "/feed")).endswith(b"before")


async def test_a_client_that_hangs_up_frees_its_request(origin: Origin) -> None:
    """A client that leaves while it is held leaves nothing waiting that a later test would count."""
    with origin.held("/feed") as gate:
        async with connected(origin) as client:
            client.ask("/feed")
            await gate.reached()
        async with asyncio.timeout(5):
            while origin.open_connections:
                await asyncio.sleep(0)
        assert gate.waiting == 0


async def test_a_redirect_is_sent_as_it_is(origin: Origin) -> None:
    """Location goes out as written, or not at all, so that bad redirects can be tried (row 35)."""
    origin.redirect("/a", "//elsewhere/x#y", status=308)
    origin.redirect("/b", None)
    assert (await asked(origin, "/a")).startswith(
        b"HTTP/1.1 308 Permanent Redirect\r\nLocation: //elsewhere/x#y\r\n"
    )
    assert b"Location" not in await asked(origin, "/b")


async def test_a_reset_breaks_the_connection(origin: Origin) -> None:
    """Row 28 can be tried: the client sees a real connection reset."""
    origin.answer("/feed", Reset())
    with pytest.raises(ConnectionResetError):
        await asked(origin, "/feed")


async def test_data_before_a_reset_arrives(origin: Origin) -> None:
    """Row 32 can be tried: what is sent before a reset reaches the client first."""
    origin.answer("/feed", Reset(b"HTTP/1.1 200 OK\r\n\r\nabc"))
    async with connected(origin) as client:
        client.ask("/feed")
        await client.head()
        assert await client.reader.readexactly(3) == b"abc"
        with pytest.raises(ConnectionResetError):
            await client.rest()


async def test_broken_answers_are_sent_byte_for_byte(origin: Origin) -> None:
    """Rows 29, 32, 33 can be tried: nothing mends answers that are no HTTP, empty or cut short."""
    origin.answer("/raw", Raw(b"\0not HTTP"))
    origin.answer("/nothing", CloseWithoutAnswer())
    origin.answer("/short", Truncated(b"abcdef", 2))
    origin.answer("/short-chunk", Truncated(b"abcdef", 2, chunked=True))
    assert await asked(origin, "/raw") == b"\0not HTTP"
    assert await asked(origin, "/nothing") == b""
    assert await asked(origin, "/short") == b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab"
    assert (await asked(origin, "/short-chunk")).endswith(b"chunked\r\n\r\n6\r\nab")


async def test_a_drip_goes_on(origin: Origin) -> None:
    """Row 30 can be tried: an answer that drips never ends by itself."""
    origin.answer("/feed", Drip(b"head ", b"x"))
    async with connected(origin) as client:
        client.ask("/feed")
        assert await client.reader.readexactly(1000) == b"head " + b"x" * 995


async def test_silence_lasts_until_the_publisher_stops() -> None:
    """Row 30 can be tried: a silent connection stays open until the publisher is stopped."""
    origin = Origin()
    await origin.start()
    origin.answer("/feed", Silence(b"a"))
    async with connected(origin) as client:
        client.ask("/feed")
        assert await client.reader.readexactly(1) == b"a"
        await origin.stop()
        with contextlib.suppress(ConnectionResetError):
            assert await client.rest() == b""


async def test_a_publisher_that_stops_comes_back_at_the_same_url() -> None:
    """Row 75 can be tried: a publisher that is down refuses, and comes back with its documents."""
    async with Origin() as origin:
        origin.publish("/feed", "all")
        url = origin.url("/feed")
        await origin.stop()
        with pytest.raises(ConnectionRefusedError):
            await asked(origin, "/feed")
        await origin.start()
        assert origin.url("/feed") == url
        assert (await asked(origin, "/feed")).endswith(b"all")


async def test_publishers_can_be_several_hosts() -> None:
    """Two publishers are two hosts, so that limits per host and other sites (R24) can be tried."""
    async with Origin("127.0.0.2") as two, Origin("127.0.0.3") as three:
        assert two.url("/feed") == f"http://127.0.0.2:{two.port}/feed"
        three.publish("/feed", "three")
        assert (await asked(two, "/feed"))[9:12] == b"404"
        assert (await asked(three, "/feed"))[9:12] == b"200"


def test_a_publisher_stays_on_loopback() -> None:
    """No test can open a port to the network."""
    with pytest.raises(AssertionError):
        Origin("0.0.0.0")
