"""wholefeed.fetch.fetcher: one document from its publisher, and the cost of faults on the wire.

Outcomes of the faults of docs/faults.md are in tests/faults.
"""

from __future__ import annotations

import asyncio
import email.utils
import errno
import gzip
import random
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp.abc import ResolveResult
from structlog.testing import capture_logs

from tests.answers import (
    BODY_DRIP,
    ENDLESS_BODY,
    Answer,
    Document,
    Raw,
    Request,
    Reset,
    Silence,
    Status,
    Wire,
)
from tests.fetchers import Names, SocketSpy, a_fetcher
from tests.origin import Origin
from tests.patching import set_constant
from tests.repository import PACKAGE, matches, python_files, told
from wholefeed import __version__
from wholefeed.descriptors import RETRY_AFTER_SECONDS
from wholefeed.errors import (
    DocumentError,
    LoopDetectedError,
    PublisherStatusError,
    QueueFullError,
)
from wholefeed.fetch import exchange
from wholefeed.fetch.base import Manner, Validators
from wholefeed.fetch.budget import TOTAL_BYTES, MemoryBudget
from wholefeed.fetch.exchange import TRANSPORT_ERRORS, failure_of
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.hosts import FAILURES_TO_REST

FEED = b"<feed xmlns='http://www.w3.org/2005/Atom'><title>one</title></feed>"
OK = b"HTTP/1.1 200 OK\r\n"


class Slept:
    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def error_of(fetcher: Fetcher, url: str, **options: Any) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        await fetcher.fetch(url, **options)
    return caught.value


async def test_a_document_comes_with_what_is_known_of_it(origin: Origin) -> None:
    """Body, URLs, validators, Link fields and times arrive; cookies and other fields do not (row 25)."""
    origin.publish(
        "/feed?page=1",
        FEED,
        etag='"1"',
        last_modified=1_700_000_000.0,
        content_type="application/atom+xml; charset=utf-8",
        headers=[
            ("Cache-Control", "max-age=60"),
            ("Cache-Control", "public"),
            ("Link", '</a>; rel="prev-archive"'),
            ("Link", "</b>; rel=current"),
            ("Set-Cookie", "a=b"),
            ("X-Other", "1"),
        ],
    )
    before = time.time()
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/feed?page=1"))
    assert fetched.body == FEED
    assert (fetched.url, fetched.final_url) == (origin.url("/feed?page=1"),) * 2
    assert (fetched.hops, fetched.permanent_url, fetched.not_modified) == ((), None, False)
    assert (fetched.status, fetched.media_type) == (200, "application/atom+xml; charset=utf-8")
    assert fetched.headers == {
        "cache-control": "max-age=60, public",
        "content-length": str(len(FEED)),
        "content-type": "application/atom+xml; charset=utf-8",
        "etag": '"1"',
        "last-modified": email.utils.formatdate(1_700_000_000, usegmt=True),
    }
    assert fetched.links == ('</a>; rel="prev-archive"', "</b>; rel=current")
    assert fetched.wire_bytes == len(FEED)
    assert before <= fetched.fetched_at <= time.time()


@pytest.mark.fault("25")
async def test_every_request_has_the_same_header_fields_and_no_others(origin: Origin) -> None:
    """docs/faults.md row 25; docs/design.md#fetching: no cookies, no reader's field, no illegal validator;
    Via for loops (row 19)."""
    origin.publish("/feed", FEED, headers=[("Set-Cookie", "a=b; Path=/")])
    url = f"http://feeds.example:{origin.port}/feed"
    async with a_fetcher(resolver=Names({"feeds.example": ("127.0.0.1",)})) as fetcher:
        await fetcher.fetch(url)
        await fetcher.fetch(url, validators=Validators(etag='"a\r\nX-Evil: 1"'))
    first, second = origin.requests
    assert first.headers == second.headers
    assert set(first.headers) == {"host", "user-agent", "accept", "accept-encoding", "via"}
    assert first.headers["user-agent"].startswith(f"wholefeed/{__version__}")
    assert first.headers["accept"].startswith("application/atom+xml, application/rss+xml")
    assert first.headers["accept-encoding"] == "gzip, deflate, br, zstd"
    assert first.headers["via"] == "1.1 wholefeed"


async def test_connections_are_kept_alive(origin: Origin) -> None:
    """Even after responses with unread bodies: 304, redirects and small error pages."""
    origin.publish("/feed", FEED, etag='"1"')
    origin.redirect("/old", "/feed")
    rest = asyncio.Event()
    opened = asyncio.Event()
    opened.set()
    origin.publish("/gone", b"gone", status=410, chunk_bytes=3, gates=[opened, rest])
    asyncio.get_running_loop().call_later(0.05, rest.set)
    async with a_fetcher() as fetcher:
        await fetcher.fetch(origin.url("/old"))
        await fetcher.fetch(origin.url("/feed"), validators=Validators(etag='"1"'))
        await error_of(fetcher, origin.url("/gone"))
        await fetcher.fetch(origin.url("/feed"))
    assert len(origin.requests) == 5
    assert origin.total_connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        Raw(b"HTTP/1.0 200 OK\r\nContent-Type: text/xml\r\n\r\n" + FEED),
        Document(body=FEED, headers=(("Content-Security-Policy", "x" * 20_000),)),
        Status(203, body=FEED),
    ],
    ids=["ends with its connection", "long field", "transformed"],
)
async def test_an_answer_that_is_unusual_is_whole(origin: Origin, answer: Answer) -> None:
    """RFC 9112, 6.3; row 33: fields as long as security policies are; RFC 9110, 15.3.4."""
    origin.answer("/feed", answer)
    async with a_fetcher() as fetcher:
        assert (await fetcher.fetch(origin.url("/feed"))).body == FEED


async def test_chunks_are_told_while_the_rest_has_yet_to_come(origin: Origin) -> None:
    """docs/design.md#the-walk: the older link is read from the head while the entries still arrive."""
    gates = (asyncio.Event(), asyncio.Event())
    origin.publish("/feed", b"headtail", chunk_bytes=4, gates=gates)
    origin.redirect("/old", "/feed")
    told: list[tuple[str, bytes]] = []
    first = asyncio.Event()

    def tell(url: str, chunk: bytes) -> None:
        told.append((url, chunk))
        first.set()

    async with a_fetcher() as fetcher, asyncio.timeout(300):
        fetching = asyncio.create_task(fetcher.fetch(origin.url("/old"), on_chunk=tell))
        gates[0].set()
        await first.wait()
        assert told == [(origin.url("/feed"), b"head")]
        assert not fetching.done()
        gates[1].set()
        assert (await fetching).body == b"headtail"
    assert [chunk for _, chunk in told] == [b"head", b"tail"]


async def test_chunks_of_other_answers_are_not_told(origin: Origin) -> None:
    """R0: no early link is looked for in error pages, 304 or transformed responses."""
    origin.publish("/feed", FEED, etag='"1"')
    origin.answer("/gone", Status(410, body=b"gone"))
    origin.publish("/transformed", FEED, status=203)
    told: list[bytes] = []

    def tell(_url: str, chunk: bytes) -> None:
        told.append(chunk)

    async with a_fetcher() as fetcher:
        await fetcher.fetch(origin.url("/feed"), validators=Validators(etag='"1"'), on_chunk=tell)
        with pytest.raises(PublisherStatusError):
            await fetcher.fetch(origin.url("/gone"), on_chunk=tell)
        await fetcher.fetch(origin.url("/transformed"), on_chunk=tell)
    assert told == []


@pytest.mark.parametrize(
    ("statuses", "is_permanent"),
    [((301, 308), True), ((308,), True), ((301, 302), False), ((307, 301), False), ((), False)],
)
async def test_a_move_is_permanent_only_if_every_redirect_says_so(
    origin: Origin, statuses: tuple[int, ...], is_permanent: bool
) -> None:
    """RFC 9110, section 15.4."""
    for number, status in enumerate(statuses):
        origin.redirect(f"/{number}", f"/{number + 1}", status=status)
    origin.publish(f"/{len(statuses)}", FEED)
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/0"))
    assert fetched.permanent_url == (fetched.final_url if is_permanent else None)
    assert fetched.hops == tuple(origin.url(f"/{number}") for number in range(1, len(statuses)))


async def test_waiting_for_a_place_does_not_count_as_time_of_the_document(origin: Origin) -> None:
    """A document that queued behind a slow one of its host still has its whole time."""
    origin.publish("/feed", FEED)
    origin.publish("/slow", FEED)
    async with (
        a_fetcher(concurrency_per_host=1, document_timeout_seconds=0.5) as fetcher,
        asyncio.timeout(300),
    ):
        with origin.held("/slow") as gate:
            slow = asyncio.create_task(error_of(fetcher, origin.url("/slow")))
            await gate.reached()
            with capture_logs() as logs:
                await fetcher.fetch(origin.url("/feed"))
            assert (await slow).slug == "timeout"
    (quick,) = [each for each in logs if each["outcome"] == "fetched"]
    assert quick["duration_s"] < 0.5


@pytest.mark.parametrize("failures", [2, 3])
async def test_a_busy_publisher_is_asked_again(origin: Origin, failures: int) -> None:
    """fetch.retries: a 503 is tried again after growing pauses, and after the last try it is the outcome."""
    origin.publish("/feed", FEED)
    origin.fault("/feed", Status(503), times=failures)
    slept = Slept()
    async with a_fetcher(retries=2, sleep=slept) as fetcher:
        if failures > 2:
            assert (await error_of(fetcher, origin.url("/feed"))).publisher_status == 503
        else:
            assert (await fetcher.fetch(origin.url("/feed"))).body == FEED
    assert len(slept.seconds) == 2
    assert 0.25 <= slept.seconds[0] <= 0.5 <= slept.seconds[1] <= 1


@pytest.mark.parametrize("status", [404, 410, 403, 500, 501])
async def test_what_will_not_change_is_asked_once(origin: Origin, status: int) -> None:
    """Row 54: 403, 404, 410, 500 and 501 are final within a fetch, to spare the publisher."""
    origin.answer("/feed", Status(status))
    async with a_fetcher(retries=5) as fetcher:
        await error_of(fetcher, origin.url("/feed"))
    assert len(origin.requests) == 1


async def test_no_try_begins_that_the_time_of_the_document_has_no_room_for(origin: Origin) -> None:
    """Row 30: retries keep within fetch.document_timeout_seconds."""
    origin.answer("/feed", Status(503))
    slept = Slept()
    async with a_fetcher(retries=5, document_timeout_seconds=1.0, sleep=slept, jitter=float) as fetcher:
        await error_of(fetcher, origin.url("/feed"))
    assert slept.seconds == [0.5]


async def test_each_fetch_is_one_event_without_credentials_and_query(origin: Origin) -> None:
    """docs/design.md#fetching."""
    origin.publish("/feed", FEED * 10, coding="gzip")
    origin.redirect("/old", "/feed?token=secret")
    async with a_fetcher() as fetcher:
        with capture_logs() as logs:
            fetched = await fetcher.fetch(origin.url("/old?token=secret"))
            await error_of(fetcher, origin.url("/none?token=secret"))
            await error_of(fetcher, origin.url("/").replace("//", "//user:secret@"))
    duration_seconds = logs[0].pop("duration_s")
    assert duration_seconds > 0
    assert logs[0] == {
        "event": "document.fetched",
        "log_level": "info",
        "outcome": "fetched",
        "url": origin.url("/old?…"),
        "host": "127.0.0.1",
        "hops": 1,
        "status": 200,
        "wire_bytes": fetched.wire_bytes,
        "body_bytes": len(FEED) * 10,
    }
    assert [(line["event"], line["outcome"], line["slug"]) for line in logs[1:]] == [
        ("document.failed", "failed", "publisher-status"),
        ("document.failed", "failed", "bad-link"),
    ]
    assert "secret" not in str(logs)


@pytest.mark.parametrize(("expected", "level"), [((), "warning"), ((404,), "info")])
async def test_a_status_that_answers_the_question_is_no_failure(
    origin: Origin, expected: tuple[int, ...], level: str
) -> None:
    """Nor does it warn: a 404 is the useful result of a probe for a page."""
    async with a_fetcher() as fetcher:
        with capture_logs() as logs:
            error = await error_of(fetcher, origin.url("/none"), manner=Manner(expected=frozenset(expected)))
        counts = fetcher.counts
    assert error.publisher_status == 404
    assert [line["log_level"] for line in logs] == [level]
    assert (counts.failures.total(), counts.failed_guesses) == (int(not expected), int(bool(expected)))


async def test_header_text_that_is_no_utf8_can_be_stored(origin: Origin) -> None:
    """R12: bytes outside UTF-8 are replaced."""
    origin.publish("/feed", FEED, headers=[("Link", "</caf\udce9>; rel=current")])
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/feed"))
    assert fetched.links == ("</caf\ufffd>; rel=current",)


def test_no_answer_is_read_as_a_whole() -> None:
    """docs/design.md#fetching: .read(), .text() and .json() have no limit."""
    whole = r"\.(read|text|json)\(\)"
    modules = python_files(PACKAGE / "fetch")
    told(
        f"{where}: {found[0]}, expected a limit" for path in modules for where, found in matches(whole, path)
    )


@pytest.mark.parametrize(
    ("error", "before", "in_body"),
    [
        (aiohttp.ClientOSError(104, "reset"), "connection-failed", "incomplete"),
        (ConnectionResetError(), "connection-failed", "incomplete"),
        (aiohttp.ServerDisconnectedError(), "connection-failed", "incomplete"),
        (aiohttp.ClientPayloadError(), "incomplete", "incomplete"),
        (TimeoutError(), "timeout", "timeout"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_errors_that_aiohttp_documents_are_known(error: Exception, before: str, in_body: str) -> None:
    """docs/faults.md row 32: each becomes an error of the fetcher; another one would escape it."""
    assert isinstance(error, TRANSPORT_ERRORS)
    assert failure_of(error, "http://example.org/").slug == before
    assert failure_of(error, "http://example.org/", in_body=True).slug == in_body


@pytest.mark.fault("88")
async def test_a_few_interim_answers_and_small_chunks_are_read(origin: Origin) -> None:
    """docs/faults.md row 88: interim responses and chunks of six bytes, even late on a busy connection."""
    body = b"<feed>" * 100_000
    chunks = b"6\r\n<feed>\r\n" * 100_000
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" * 5
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    origin.answer("/feed", Raw(hints + head + chunks + b"0\r\n\r\n", keep_alive=True))
    async with a_fetcher() as fetcher:
        for _ in range(2):
            assert (await fetcher.fetch(origin.url("/feed"))).body == body
    assert origin.total_connections == 1


@pytest.mark.fault("154")
async def test_a_page_that_refreshes_is_one_of_the_redirects(origin: Origin) -> None:
    """docs/faults.md row 154: it counts among them, and is no permanent move."""
    origin.redirect("/0", "/1", status=301)
    origin.redirect_by_page("/1", "/2?a=1&amp;b=2")
    origin.publish("/2?a=1&b=2", FEED)
    async with a_fetcher(max_redirects=2) as fetcher:
        fetched = await fetcher.fetch(origin.url("/0"))
    assert (fetched.body, fetched.final_url) == (FEED, origin.url("/2?a=1&b=2"))
    assert (fetched.hops, fetched.permanent_url) == ((origin.url("/1"),), None)
    async with a_fetcher(max_redirects=1) as fetcher:
        assert (await error_of(fetcher, origin.url("/0"))).slug == "redirect-loop"
    origin.redirect_by_page("/2?a=1&b=2", "/1")
    async with a_fetcher() as fetcher:
        assert (await error_of(fetcher, origin.url("/0"))).slug == "redirect-loop"


@pytest.mark.fault("154")
async def test_a_page_leads_to_what_is_there_already(origin: Origin) -> None:
    """docs/faults.md row 154: a document already at the caller is not fetched again."""
    origin.redirect_by_page("/old", "/feed")
    origin.publish("/feed", FEED)
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/old"), is_met=lambda url: url == origin.url("/feed"))
    assert (fetched.is_met, fetched.body, origin.counts()) == (True, b"", {"/old": 1})


@pytest.mark.fault("154")
async def test_the_body_of_a_page_that_leads_on_takes_no_memory_from_the_next(origin: Origin) -> None:
    """docs/faults.md row 154: a large page gives back its part before the next document needs one."""
    page = b'<meta http-equiv="refresh" content="0; url=/feed">' + b" " * (3 << 20)
    origin.publish("/old", page, content_type="text/html")
    origin.publish("/feed", FEED + b" " * (3 << 20))
    budget = MemoryBudget(total_bytes=4 << 20, wait_seconds=0.0)
    async with a_fetcher(budget=budget, document_bytes=4 << 20) as fetcher:
        fetched = await fetcher.fetch(origin.url("/old"))
    assert (fetched.body[: len(FEED)], fetched.final_url) == (FEED, origin.url("/feed"))


async def test_who_wants_the_page_gets_it(origin: Origin) -> None:
    """A page searched for entries, and robots.txt, are read themselves."""
    origin.redirect_by_page("/page", "/feed")
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/page"), manner=Manner(follows_refresh=False))
    assert (fetched.final_url, origin.counts()) == (origin.url("/page"), {"/page": 1})


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


@pytest.mark.fault("30")
def test_the_minimum_rate_counts_after_ten_seconds() -> None:
    """docs/faults.md row 30."""
    assert not exchange.is_too_slow(0, 10.0)
    assert not exchange.is_too_slow(11 * 1024, 11.0)
    assert exchange.is_too_slow(11 * 1024 - 1, 11.0)


@pytest.mark.parametrize("answer", ["announced", "endless"])
async def test_a_body_over_the_wire_limit_is_refused(
    origin: Origin, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """docs/design.md#limits: 16 MiB on the wire, for any decoded size."""
    assert exchange.MAX_WIRE_BYTES == 16 << 20
    set_constant(monkeypatch, "MAX_WIRE_BYTES", 1 << 20)
    announced = Raw(OK + b"Content-Length: 1048577\r\n\r\n")
    origin.answer("/feed", announced if answer == "announced" else ENDLESS_BODY)
    async with a_fetcher(document_bytes=1 << 30) as fetcher, asyncio.timeout(300):
        with capture_logs() as logs:
            assert (await error_of(fetcher, origin.url("/feed"))).slug == "too-large"
    assert logs[0]["wire_bytes"] < 2 << 20


@pytest.mark.fault("32")
@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_bad_chunk_that_comes_late_is_an_error_at_once(origin: Origin, is_whole: bool) -> None:
    """docs/faults.md row 32: aiohttp reports none that comes by itself; the reader waited for its time to
    end."""
    first, second = asyncio.Event(), asyncio.Event()

    class Late:
        async def send(self, request: Request, wire: Wire) -> None:
            await wire.send(OK + b"Transfer-Encoding: chunked\r\n\r\n6\r\n<feed>\r\n")
            await first.wait()
            await wire.send(b"zz\r\nhello\r\n" if is_whole else b"5\r\nhelloXX\r\n")
            await second.wait()

    origin.answer("/feed", Late())
    async with a_fetcher() as fetcher, asyncio.timeout(300):
        with pytest.raises(DocumentError) as caught:
            await fetcher.fetch(origin.url("/feed"), on_chunk=lambda _url, _chunk: first.set())
        assert caught.value.slug == "incomplete"
        while origin.open_connections:
            await asyncio.sleep(0.01)


@pytest.mark.fault("152")
@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_a_head_is_mended_however_it_comes(origin: Origin, size: int) -> None:
    """docs/faults.md row 152: in pieces, behind interim responses and line breaks; the log names the repair
    of that response alone."""
    response = (
        b"\r\n\nHTTP/1.1 103 Early Hints\r\nno field\r\n\r\n"
        b"HTTP/1.1 200 OK\nX-A : b\nContent-Length: %d\nContent-Length: %d\n\n%b"
        % (len(FEED), len(FEED), FEED)
    )

    class Pieces:
        async def send(self, request: Request, wire: Wire) -> None:
            for start in range(0, len(response), size):
                await wire.send(response[start : start + size])
                await asyncio.sleep(0)

    origin.answer("/odd", Pieces())
    origin.publish("/feed", FEED)
    async with a_fetcher() as fetcher:
        with capture_logs() as logs:
            odd, usual = [await fetcher.fetch(origin.url(path)) for path in ("/odd", "/feed")]
            again = await fetcher.fetch(origin.url("/feed"))
    assert (odd.body, odd.repairs) == (FEED, ("content-length", "header-fields"))
    assert odd.headers == {"content-length": str(len(FEED))}
    assert (usual.repairs, again.repairs) == ((), ())
    assert [line.get("repairs") for line in logs] == [["content-length", "header-fields"], None, None]
    assert [request.connection for request in origin.requests] == [1, 2, 2]


@pytest.mark.fault("152")
async def test_a_coding_that_nobody_named_has_its_share_of_memory(origin: Origin) -> None:
    """docs/faults.md rows 122 and 152: the memory of such a body is known once it has begun."""
    body = b"<feed>" + random.Random(1).randbytes(3 << 20).hex().encode()
    origin.publish("/feed", gzip.compress(body))
    budget = MemoryBudget()
    async with a_fetcher(document_bytes=8 << 20, budget=budget) as fetcher:
        fetched = await fetcher.fetch(origin.url("/feed"))
        assert fetched.body == body
        assert budget.free_bytes == TOTAL_BYTES - len(body)
    assert fetched.repairs == ("content-coding",)


@pytest.mark.fault("152")
async def test_without_the_last_chunk_nothing_says_how_long_the_body_was(origin: Origin) -> None:
    """docs/faults.md row 152: the document's own end decides, as without a length."""
    origin.answer("/feed", Raw(OK + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(FEED), FEED)))
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/feed"))
    assert (fetched.body, fetched.repairs, dict(fetched.headers)) == (FEED, ("last-chunk",), {})


async def test_a_reset_is_no_end_of_a_body_without_a_length(origin: Origin) -> None:
    """docs/faults.md row 32: aiohttp takes it for one."""
    origin.answer("/feed", Reset(OK + b"\r\n" + FEED))
    async with a_fetcher() as fetcher:
        assert (await error_of(fetcher, origin.url("/feed"))).slug == "incomplete"


async def test_no_tls_where_tls_is_asked_for_is_a_failed_connection() -> None:
    """It is not tried again: that port speaks another protocol."""
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


async def test_a_long_error_page_is_not_read(origin: Origin) -> None:
    """Row 54: the connection of a 404 with 8 MB is closed early."""
    origin.publish("/feed", b"x" * (8 << 20), status=404)
    async with a_fetcher() as fetcher, asyncio.timeout(300):
        await error_of(fetcher, origin.url("/feed"))
        while origin.open_connections:
            await asyncio.sleep(0.01)


async def test_an_error_page_that_does_not_end_is_not_waited_for(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 30: the 404 counts at once, and its connection is closed."""
    set_constant(monkeypatch, "_DRAIN_SECONDS", 0.1)
    origin.answer("/feed", Silence(b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nno"))
    async with a_fetcher() as fetcher, asyncio.timeout(300):
        assert (await error_of(fetcher, origin.url("/feed"))).publisher_status == 404
        while origin.open_connections:
            await asyncio.sleep(0.01)


async def test_a_connection_that_does_not_come_about_is_tried_again(origin: Origin) -> None:
    """docs/faults.md row 30; a TLS handshake belongs to the connection, and nobody answers one here."""
    url = origin.url("/feed").replace("http:", "https:")
    async with (
        a_fetcher(retries=1, connect_timeout_seconds=0.2, sleep=Slept()) as fetcher,
        asyncio.timeout(300),
    ):
        error = await error_of(fetcher, url)
    assert (error.slug, error.answer_status) == ("timeout", 504)
    assert origin.total_connections == 2


class SilentNames(Names):
    async def resolve(self, *_: object, **__: object) -> list[ResolveResult]:
        raise OSError("Could not contact DNS servers")


def no_socket(*_: int) -> socket.socket:
    raise OSError(errno.EMFILE, "Too many open files")


@pytest.mark.fault("96a")
@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://127.0.0.1:9999/feed", {"make_socket": no_socket}),
        ("http://two.example:9999/feed", {"resolver": Names({"two.example": ("127.0.0.1", "127.0.0.2")})}),
        ("http://some.example:9999/feed", {"resolver": SilentNames()}),
    ],
    ids=["one address", "two addresses", "no answer to a look-up"],
)
async def test_a_publisher_is_not_blamed_for_a_missing_descriptor(
    monkeypatch: pytest.MonkeyPatch, url: str, parts: dict[str, Any]
) -> None:
    """docs/faults.md row 96a: it was not asked, so its host does not rest."""
    if parts.get("resolver"):
        monkeypatch.setattr(exchange, "are_short", lambda: True)
    async with a_fetcher(**{"make_socket": no_socket, **parts}) as fetcher:
        for _ in range(FAILURES_TO_REST + 1):
            error = await error_of(fetcher, url)
            assert isinstance(error, QueueFullError)
            assert (error.answer_status, error.retry_after_seconds) == (503, RETRY_AFTER_SECONDS)
        assert fetcher.gate.blocked_seconds(urlsplit(url).hostname or "", 9999) == 0


async def test_a_validator_is_sent_to_no_document_but_its_own(origin: Origin) -> None:
    """RFC 9110, 13.1: another document's equal tag does not mean the stored body."""
    origin.redirect("/feed", "/new")
    origin.publish("/new", FEED, etag='"1"')
    async with a_fetcher() as fetcher:
        validators = Validators(etag='"1"', url=origin.url("/feed"))
        assert (await fetcher.fetch(origin.url("/feed"), validators=validators)).body


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "me.example", "[::ffff:127.0.0.1]"])
@pytest.mark.fault("19")
async def test_the_proxy_does_not_ask_itself(host: str) -> None:
    """docs/faults.md row 19: 508."""
    spy = SocketSpy()
    async with a_fetcher(
        own_addresses=lambda address, port: (address, port) == ("127.0.0.1", 8080),
        make_socket=spy,
        resolver=Names({"me.example": ("127.0.0.1",)}),
    ) as fetcher:
        error = await error_of(fetcher, f"http://{host}:8080/feed?url=http://example.org/")
    assert isinstance(error, LoopDetectedError)
    assert (error.slug, error.answer_status) == ("loop-detected", 508)
    assert spy.opened == 0


@pytest.mark.parametrize(
    "validators", [Validators(etag='W/"1"'), Validators(last_modified="Tue, 14 Nov 2023 22:13:20 GMT")]
)
async def test_a_document_that_has_not_changed_is_not_sent_again(
    origin: Origin, validators: Validators
) -> None:
    """RFC 9110, section 13.1; docs/faults.md row 39: at the end of redirects too."""
    origin.redirect("/old", "/feed")
    origin.publish("/feed", FEED, etag='W/"1"', last_modified="Tue, 14 Nov 2023 22:13:20 GMT")
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/old"), validators=validators)
        assert (fetched.not_modified, fetched.status, fetched.body) == (True, 304, b"")
        assert fetched.headers["etag"] == 'W/"1"'
        assert (await fetcher.fetch(origin.url("/feed"), validators=Validators(etag='"2"'))).body == FEED


@pytest.mark.parametrize("circle", [["/feed"], ["/a", "/feed"], ["/a", "/b", "/a"]])
async def test_redirects_in_a_circle_are_an_error(origin: Origin, circle: list[str]) -> None:
    """docs/faults.md row 35."""
    for source, target in zip(["/feed", *circle], circle, strict=False):
        origin.redirect(source, f"{target}#again")
    async with a_fetcher() as fetcher:
        assert (await error_of(fetcher, origin.url("/feed"))).slug == "redirect-loop"
    assert len(origin.requests) == len(set(circle) | {"/feed"})
