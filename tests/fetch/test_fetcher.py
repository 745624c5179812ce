"""wholefeed.fetch.fetcher: one document from its publisher.

Refused targets and faults have files of their own.
"""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.answers import Raw, Redirect, Status
from tests.fetchers import Names, a_fetcher
from tests.origin import Origin
from tests.repository import PACKAGE, matches, python_files, told
from wholefeed import __version__
from wholefeed.errors import DocumentError, PublisherError, PublisherStatusError
from wholefeed.fetch.base import Validators
from wholefeed.fetch.exchange import TRANSPORT_ERRORS, failure_of
from wholefeed.fetch.fetcher import Fetcher

FEED = b"<feed xmlns='http://www.w3.org/2005/Atom'><title>one</title></feed>"


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    """A publisher that does what the test tells it."""
    async with Origin() as origin:
        yield origin


async def error_of(fetcher: Fetcher, url: str, validators: Validators | None = None) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        await fetcher.fetch(url, validators=validators)
    return caught.value


async def test_a_document_comes_with_what_is_known_of_it(origin: Origin) -> None:
    """Body, URLs, validators, Link fields and times arrive; cookies and other fields of the publisher do not
    (row 25)."""
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
    """docs/faults.md row 25; docs/design.md#fetching: no cookies, nothing of a reader's, Via for loops (row
    19)."""
    origin.publish("/feed", FEED, headers=[("Set-Cookie", "a=b; Path=/")])
    url = f"http://feeds.example:{origin.port}/feed"
    async with a_fetcher(resolver=Names({"feeds.example": ("127.0.0.1",)})) as fetcher:
        await fetcher.fetch(url)
        await fetcher.fetch(url)
    first, second = origin.requests
    assert first.headers == second.headers
    assert set(first.headers) == {"host", "user-agent", "accept", "accept-encoding", "via"}
    assert first.headers["user-agent"].startswith(f"wholefeed/{__version__}")
    assert first.headers["accept"].startswith("application/atom+xml, application/rss+xml")
    assert first.headers["accept-encoding"] == "gzip, deflate, br, zstd"
    assert first.headers["via"] == "1.1 wholefeed"


async def test_connections_are_kept_alive(origin: Origin) -> None:
    """Also after answers that nobody reads: 304, redirects and small error pages."""
    origin.publish("/feed", FEED, etag='"1"')
    origin.redirect("/old", "/feed")
    rest = asyncio.Event()
    origin.publish("/gone", b"gone", status=410, chunk_bytes=3, gates=[_opened(), rest])
    asyncio.get_running_loop().call_later(0.05, rest.set)
    async with a_fetcher() as fetcher:
        await fetcher.fetch(origin.url("/old"))
        await fetcher.fetch(origin.url("/feed"), validators=Validators(etag='"1"'))
        await error_of(fetcher, origin.url("/gone"))
        await fetcher.fetch(origin.url("/feed"))
    assert len(origin.requests) == 5
    assert origin.total_connections == 1


def _opened() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


async def test_a_document_that_has_not_changed_is_not_sent_again(origin: Origin) -> None:
    """RFC 9110, section 13.1."""
    origin.publish("/etag", FEED, etag='W/"1"')
    origin.publish("/date", FEED, last_modified="Tue, 14 Nov 2023 22:13:20 GMT")
    async with a_fetcher() as fetcher:
        by_etag = await fetcher.fetch(origin.url("/etag"), validators=Validators(etag='W/"1"'))
        by_date = await fetcher.fetch(
            origin.url("/date"), validators=Validators(last_modified="Tue, 14 Nov 2023 22:13:20 GMT")
        )
        changed = await fetcher.fetch(origin.url("/etag"), validators=Validators(etag='"2"'))
    assert [(f.not_modified, f.status, f.body) for f in (by_etag, by_date)] == [(True, 304, b"")] * 2
    assert by_etag.headers["etag"] == 'W/"1"'
    assert (changed.not_modified, changed.body) == (False, FEED)


async def test_a_validator_that_is_no_header_value_is_not_sent(origin: Origin) -> None:
    """docs/design.md#fetching."""
    origin.publish("/feed", FEED)
    async with a_fetcher() as fetcher:
        await fetcher.fetch(origin.url("/feed"), validators=Validators(etag='"a\r\nX-Evil: 1"'))
    assert set(origin.requests[0].headers) == {"host", "user-agent", "accept", "accept-encoding", "via"}


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_coded_body_is_decoded(origin: Origin, coding: str) -> None:
    """A gzip or deflate body comes out decoded, and the bytes on the wire are counted apart."""
    origin.publish("/feed", FEED * 100, coding="gzip" if coding == "gzip" else "deflate", chunked=True)
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/feed"))
    assert fetched.body == FEED * 100
    assert 0 < fetched.wire_bytes < len(FEED) * 100


async def test_a_body_that_ends_with_its_connection_is_whole(origin: Origin) -> None:
    """RFC 9112, section 6.3."""
    origin.answer("/feed", Raw(b"HTTP/1.0 200 OK\r\nContent-Type: text/xml\r\n\r\n" + FEED))
    async with a_fetcher() as fetcher:
        assert (await fetcher.fetch(origin.url("/feed"))).body == FEED


async def test_chunks_are_told_while_the_rest_has_yet_to_come(origin: Origin) -> None:
    """docs/design.md#the-walk: the older link is taken from the head while the entries still arrive."""
    gates = (asyncio.Event(), asyncio.Event())
    origin.publish("/feed", b"headtail", chunk_bytes=4, gates=gates)
    origin.redirect("/old", "/feed")
    told: list[tuple[str, bytes]] = []
    first = asyncio.Event()

    def tell(url: str, chunk: bytes) -> None:
        told.append((url, chunk))
        first.set()

    async with a_fetcher() as fetcher, asyncio.timeout(5):
        fetching = asyncio.create_task(fetcher.fetch(origin.url("/old"), on_chunk=tell))
        gates[0].set()
        await first.wait()
        assert told == [(origin.url("/feed"), b"head")]
        assert not fetching.done()
        gates[1].set()
        assert (await fetching).body == b"headtail"
    assert [chunk for _, chunk in told] == [b"head", b"tail"]


async def test_chunks_of_other_answers_are_not_told(origin: Origin) -> None:
    """R0: no early link is looked for in error pages, 304 or transformed answers."""
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


async def test_redirects_are_followed_and_told(origin: Origin) -> None:
    """R11, R24: temporary redirects lead to the document, and each hop and the last URL are known."""
    origin.redirect("/a", "b?x=1", status=302)
    origin.redirect("/b?x=1", origin.url("/c"), status=303)
    origin.redirect("/c", "/feed#top", status=307)
    origin.publish("/feed", FEED)
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/a"))
    assert fetched.body == FEED
    assert (fetched.url, fetched.final_url) == (origin.url("/a"), origin.url("/feed"))
    assert fetched.hops == (origin.url("/b?x=1"), origin.url("/c"))
    assert {request.method for request in origin.requests} == {"GET"}


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


async def test_names_are_looked_up_by_the_resolver_that_was_given(origin: Origin) -> None:
    """Names are looked up by the resolver that was given, in lower case, and Host is what was asked for."""
    origin.publish("/feed", FEED)
    names = Names({"feeds.example": ("127.0.0.1",)})
    async with a_fetcher(resolver=names) as fetcher:
        await fetcher.fetch(f"http://FEEDS.example:{origin.port}/feed")
    assert names.asked == ["feeds.example"]
    assert origin.requests[0].headers["host"] == f"feeds.example:{origin.port}"


async def test_a_host_gets_no_more_requests_at_once_than_configured(origin: Origin) -> None:
    """docs/faults.md row 24."""
    origin.publish("/feed", FEED)
    async with a_fetcher(concurrency_per_host=3) as fetcher, asyncio.timeout(10):
        with origin.held("/feed") as gate:
            fetching = [asyncio.create_task(fetcher.fetch(origin.url("/feed"))) for _ in range(10)]
            await gate.reached(3)
            gate.release()
        await asyncio.gather(*fetching)
    assert (len(origin.requests), origin.peak_requests) == (10, 3)


async def test_waiting_for_a_place_does_not_count_as_time_of_the_document(origin: Origin) -> None:
    """A document that queued behind a slow one of its host still has its whole time."""
    origin.publish("/feed", FEED)
    origin.publish("/slow", FEED)
    async with (
        a_fetcher(concurrency_per_host=1, document_timeout_seconds=0.5) as fetcher,
        asyncio.timeout(10),
    ):
        with origin.held("/slow") as gate:
            slow = asyncio.create_task(error_of(fetcher, origin.url("/slow")))
            await gate.reached()
            with capture_logs() as logs:
                await fetcher.fetch(origin.url("/feed"))
            assert (await slow).slug == "timeout"
    (quick,) = [each for each in logs if each["outcome"] == "fetched"]
    assert quick["duration_s"] < 0.5


async def test_a_busy_publisher_is_asked_again(origin: Origin) -> None:
    """fetch.retries: a 503 is tried again after growing pauses, and the reader gets the feed."""
    origin.publish("/feed", FEED)
    origin.fault("/feed", Status(503), times=2)
    slept = Slept()
    async with a_fetcher(retries=2, sleep=slept) as fetcher:
        assert (await fetcher.fetch(origin.url("/feed"))).body == FEED
    assert len(slept.seconds) == 2
    assert 0.25 <= slept.seconds[0] <= 0.5 <= slept.seconds[1] <= 1


async def test_tries_end(origin: Origin) -> None:
    """fetch.retries: after the last try the publisher's error is told, and it is asked no more."""
    origin.answer("/feed", Status(502))
    slept = Slept()
    async with a_fetcher(retries=2, sleep=slept) as fetcher:
        error = await error_of(fetcher, origin.url("/feed"))
    assert (error.slug, error.publisher_status, len(origin.requests)) == ("publisher-status", 502, 3)
    assert len(slept.seconds) == 2


@pytest.mark.parametrize("status", [404, 410, 403, 500, 501])
async def test_what_will_not_change_is_asked_once(origin: Origin, status: int) -> None:
    """Row 54: 403, 404, 410, 500 and 501 are not retried within a fetch: that would only burden the
    publisher."""
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


class Slept:
    """Keeps what would have been slept."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.mark.parametrize(
    ("value", "expected"), [("120", (120, 120)), ("-1", (1, 1)), ("1000000000000", (86400, 86400))]
)
@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_holds_for_the_whole_host(
    origin: Origin, status: int, value: str, expected: tuple[float, float]
) -> None:
    """docs/faults.md row 55."""
    origin.publish("/feed", FEED)
    origin.answer("/busy", Status(status, (("Retry-After", value),)))
    async with a_fetcher(retries=2) as fetcher:
        busy = await error_of(fetcher, origin.url("/busy"))
        other = await error_of(fetcher, origin.url("/feed"))
    assert (busy.slug, busy.publisher_status, busy.retry_after_seconds) == (
        "publisher-status",
        status,
        expected[0],
    )
    assert other.slug == "host-backoff"
    assert other.retry_after_seconds == pytest.approx(expected[1], abs=1)
    assert len(origin.requests) == 1


async def test_a_wish_of_one_host_does_not_bind_another(origin: Origin) -> None:
    """docs/faults.md row 55."""
    origin.answer("/busy", Status(429, (("Retry-After", "60"),)))
    async with Origin("127.0.0.2") as other, a_fetcher() as fetcher:
        other.publish("/feed", FEED)
        await error_of(fetcher, origin.url("/busy"))
        assert (await fetcher.fetch(other.url("/feed"))).body == FEED


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


async def test_a_body_over_a_mebibyte_comes_whole(origin: Origin) -> None:
    """A large coded body, up to limits.document_bytes exactly, comes out whole and in order."""
    body = b"".join(b"%d\n" % number for number in range(500_000))
    origin.publish("/feed", body, coding="gzip")
    async with a_fetcher(document_bytes=len(body)) as fetcher:
        assert (await fetcher.fetch(origin.url("/feed"))).body == body


async def test_header_fields_longer_than_usual_are_taken(origin: Origin) -> None:
    """Row 33: a field of 20 KB, as security policies are, does not make a feed fail."""
    origin.publish("/feed", FEED, headers=[("Content-Security-Policy", "x" * 20_000)])
    async with a_fetcher() as fetcher:
        assert (await fetcher.fetch(origin.url("/feed"))).body == FEED


async def test_header_text_that_is_no_utf8_can_be_stored(origin: Origin) -> None:
    """R12: a Link field in Latin-1 can be stored: what is no UTF-8 is replaced."""
    origin.publish("/feed", FEED, headers=[("Link", "</caf\udce9>; rel=current")])
    async with a_fetcher() as fetcher:
        fetched = await fetcher.fetch(origin.url("/feed"))
    assert fetched.links == ("</caf\ufffd>; rel=current",)


async def test_requests_go_through_the_proxy_that_is_configured(origin: Origin) -> None:
    """config.example.toml: fetch.proxy. It may have any address; a literal in the URL is still judged."""
    origin.publish("http://feeds.example/feed", FEED)
    async with a_fetcher(proxy=origin.url(""), allow_networks=()) as fetcher:
        assert (await fetcher.fetch("http://feeds.example/feed")).body == FEED
        error = await error_of(fetcher, "http://10.0.0.1/")
    assert error.slug == "destination-forbidden"
    assert len(origin.requests) == 1


def test_no_answer_is_read_as_a_whole() -> None:
    """docs/design.md#fetching: .read(), .text() and .json() have no limit."""
    whole = r"\.(read|text|json)\(\)"
    modules = python_files(PACKAGE / "fetch")
    told(
        f"{where}: {found[0]}, expected a limit" for path in modules for where, found in matches(whole, path)
    )


async def test_a_cancelled_fetch_frees_its_place(origin: Origin) -> None:
    """When a fetch is cancelled, the next one of that host does not wait for it."""
    origin.publish("/feed", FEED)
    async with a_fetcher(concurrency_per_host=1) as fetcher, asyncio.timeout(5):
        with origin.held("/feed") as gate:
            fetching = asyncio.create_task(fetcher.fetch(origin.url("/feed")))
            await gate.reached()
            fetching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await fetching
        assert (await fetcher.fetch(origin.url("/feed"))).body == FEED


def test_the_errors_that_aiohttp_documents_are_known() -> None:
    """Another one would leave the fetcher as it is."""
    for kind in (
        aiohttp.ServerDisconnectedError,
        aiohttp.ClientPayloadError,
        TimeoutError,
        ConnectionResetError,
    ):
        assert isinstance(kind(), TRANSPORT_ERRORS)
        assert isinstance(failure_of(kind(), "http://example.org/"), PublisherError)


async def test_redirect_answers_of_one_url_may_differ_between_fetches(origin: Origin) -> None:
    """Nothing of a redirect is remembered here: R13's bookkeeping is the service's."""
    origin.publish("/feed", FEED)
    origin.publish("/new", FEED * 2)
    origin.fault("/feed", Redirect("/new", 301), times=1)
    async with a_fetcher() as fetcher:
        bodies = [(await fetcher.fetch(origin.url("/feed"))).body for _ in range(2)]
    assert bodies == [FEED * 2, FEED]
