"""docs/faults.md part C: what goes wrong on the wire, as a reader of the proxy sees it.

`tests.fetch.test_fetcher` shows the same of the fetcher alone, and what a request costs.
"""

from __future__ import annotations

import datetime
import gzip
import ssl
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest
import trustme

from tests.answers import (
    ENDLESS_FRAMING,
    Answer,
    CloseWithoutAnswer,
    Computed,
    Document,
    Raw,
    Redirect,
    Reset,
    Status,
    Truncated,
)
from tests.faults.checks import Answered, Case, Down, problem, strikes
from tests.feeds import an_item, atom, ids
from tests.fetchers import opening
from tests.origin import ATOM, Origin
from tests.running import Proxy, a_config, running

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FEED = atom(an_item("x", 9, "not to be kept"))
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/atom+xml\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
UNSIZED = OK + b"Connection: close\r\n\r\n"
ZEROS = bytes(64 << 20)


def coded(coding: str, body: bytes) -> Answer:
    return Document(body=body, headers=(("Content-Type", ATOM), ("Content-Encoding", coding)))


def sized(length: bytes, body: bytes = FEED, more: bytes = b"") -> Answer:
    return Raw(OK + b"Content-Length: " + length + b"\r\n" + more + b"\r\n" + body)


def titled(line: bytes) -> Answer:
    return Raw(line + b"Content-Length: 5\r\n\r\nhello")


@pytest.mark.fault("88")
@pytest.mark.parametrize("name", ["early hints", "extensions of chunks"])
async def test_row_88_heads_and_chunks_without_end(
    proxy: Proxy, origin: Origin, struck: Origin, name: str
) -> None:
    """Row 88: interim answers and chunk extensions count as header bytes, and end at their limit."""
    case = Case(name, ENDLESS_FRAMING[name], "header-limit")
    await strikes(proxy, origin, Answered(struck, case.answer), case)


@pytest.mark.fault("28")
async def test_row_28_a_refused_connection(proxy: Proxy, origin: Origin, struck: Origin) -> None:
    """Row 28: a publisher that refuses connections is 502 `connection-failed`, or a missing archive; it
    heals."""
    await strikes(proxy, origin, Down(struck), Case("refused", Status(500), "connection-failed"))


@pytest.mark.fault("28")
async def test_row_28_a_reset(proxy: Proxy, origin: Origin, struck: Origin) -> None:
    """Row 28: a connection that is reset is told the same way as one that is refused."""
    case = Case("reset", Reset(), "connection-failed")
    await strikes(proxy, origin, Answered(struck, case.answer), case)


@pytest.mark.fault("29")
async def test_row_29_a_connection_closed_without_an_answer(
    proxy: Proxy, origin: Origin, struck: Origin
) -> None:
    """Row 29: a closed connection is tried once more, on a fresh one, and no oftener."""
    case = Case("closed", CloseWithoutAnswer(), "connection-failed")
    await strikes(proxy, origin, Answered(struck, case.answer), case)
    first, second = struck.requests_for("/unknown")[:2]
    assert first.connection != second.connection
    assert len(struck.requests_for("/stored")) == 1 + 2 + 1


@pytest.mark.fault("29")
async def test_row_29_the_one_retry_may_succeed(proxy: Proxy, struck: Origin) -> None:
    """Row 29: when the second try is answered, the reader sees no error at all."""
    struck.publish("/feed", atom(an_item("a"), complete=True))
    struck.fault("/feed", CloseWithoutAnswer(), times=1)
    assert ids((await proxy.get(struck.url("/feed"))).body) == ["a"]


@pytest.mark.fault("31")
@pytest.mark.parametrize(
    "case",
    [
        Case("larger", sized(b"99999"), "incomplete"),
        Case("smaller", sized(b"10"), "protocol-error"),
        Case("negative", sized(b"-1"), "protocol-error"),
        Case("no number", sized(b"x"), "protocol-error"),
        Case("two", sized(b"5\r\nContent-Length: 6"), "protocol-error"),
        Case("two alike", sized(b"5\r\nContent-Length: 5", b"hello"), "protocol-error"),
        Case(
            "with Transfer-Encoding",
            sized(b"5", b"5\r\nhello\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"),
            "protocol-error",
        ),
    ],
    ids=str,
)
async def test_row_31_a_length_that_is_not_true(
    proxy: Proxy, origin: Origin, struck: Origin, case: Case
) -> None:
    """Nothing that may stand behind such an answer is read as the next one: its connection is given up."""
    assert isinstance(case.answer, Raw)
    answer = Raw(case.answer.data, keep_alive=case.slug != "incomplete")
    await strikes(proxy, origin, Answered(struck, answer), case)
    bad, after = struck.requests_for("/unknown")[:2]
    assert bad.connection != after.connection


@pytest.mark.fault("32")
@pytest.mark.parametrize(
    "case",
    [
        Case("short of its length", Truncated(FEED, 300), "incomplete"),
        Case("in a chunk", Truncated(FEED, 300, chunked=True), "incomplete"),
        Case("no last chunk", Raw(CHUNKED + b"%x\r\n" % len(FEED) + FEED + b"\r\n"), "incomplete"),
        Case("bad chunk size", Raw(CHUNKED + b"zz\r\nhello\r\n"), "incomplete"),
        Case("negative chunk size", Raw(CHUNKED + b"-5\r\nhello\r\n"), "incomplete"),
        Case("chunk without its end", Raw(CHUNKED + b"5\r\nhelloXX0\r\n\r\n"), "incomplete"),
        Case("reset", Reset(OK + b"Content-Length: 999\r\n\r\n" + FEED[:300]), "incomplete"),
        Case("reset in chunks", Reset(CHUNKED + b"5\r\nhello\r\n"), "incomplete"),
        Case("reset without a length", Reset(UNSIZED + FEED[:300]), "incomplete"),
        Case("closed early without a length", Raw(UNSIZED + FEED[:-20]), "incomplete"),
        Case("closed early in an entry", Raw(UNSIZED + FEED[: FEED.index(b"urn:x")]), "incomplete"),
    ],
    ids=str,
)
async def test_row_32_a_body_that_breaks_off(
    proxy: Proxy, origin: Origin, struck: Origin, case: Case
) -> None:
    """Row 32: a body cut anywhere, in chunks or without a length, is `incomplete`, never served as the
    whole."""
    await strikes(proxy, origin, Answered(struck, case.answer), case)


@pytest.mark.fault("33")
@pytest.mark.parametrize(
    "case",
    [
        Case("5,000 fields", titled(OK + b"X-A: b\r\n" * 5000), "protocol-error"),
        Case("a field of 1 MB", titled(OK + b"X-A: " + b"b" * (1 << 20) + b"\r\n"), "protocol-error"),
        Case("NUL", titled(OK + b"X-A: b\0c\r\n"), "protocol-error"),
        Case("bare CR", titled(OK + b"X-A: b\rX-B: c\r\n"), "protocol-error"),
        Case("status 000", titled(b"HTTP/1.1 000 Zero\r\n"), "protocol-error"),
        Case("status 999", titled(b"HTTP/1.1 999 Nine\r\n"), "protocol-error"),
        Case("status 20", titled(b"HTTP/1.1 20 Two\r\n"), "protocol-error"),
        Case("another protocol", Raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "protocol-error"),
        Case("a body alone", Raw(FEED), "protocol-error"),
    ],
    ids=str,
)
async def test_row_33_what_is_not_http(proxy: Proxy, origin: Origin, struck: Origin, case: Case) -> None:
    """Row 33: too many or malformed fields, false statuses and other protocols are `protocol-error`."""
    await strikes(proxy, origin, Answered(struck, case.answer), case)


@dataclass
class Certified:
    """The publisher shows another certificate."""

    origin: Origin
    good: ssl.SSLContext
    bad: ssl.SSLContext

    async def begin(self, path: str) -> None:
        await self._show(self.bad)

    async def end(self, path: str) -> None:
        await self._show(self.good)

    async def _show(self, certificate: ssl.SSLContext) -> None:
        await self.origin.stop()
        self.origin.tls = certificate
        await self.origin.start()


@pytest.mark.fault("34")
@pytest.mark.parametrize("name", ["expired", "wrong name", "unknown authority"])
async def test_row_34_a_certificate_that_is_not_valid(tmp_path: Path, origin: Origin, name: str) -> None:
    """Row 34: an expired, misnamed or unknown certificate is `tls-certificate`, and nothing is taken from
    it."""
    authority, other = trustme.CA(), trustme.CA()
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    certificates = {
        "good": authority.issue_cert("127.0.0.2"),
        "expired": authority.issue_cert("127.0.0.2", not_after=past),
        "wrong name": authority.issue_cert("other.example"),
        "unknown authority": other.issue_cert("127.0.0.2"),
    }
    shown = {each: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for each in certificates}
    for each, certificate in certificates.items():
        certificate.configure_cert(shown[each])
    async with (
        Origin("127.0.0.2", tls=shown["good"]) as struck,
        running(a_config(tmp_path), open_fetcher=opening(ssl_context=trust)) as proxy,
    ):
        fault = Certified(struck, shown["good"], shown[name])
        await strikes(proxy, origin, fault, Case(name, Status(500), "tls-certificate"))


@pytest.mark.fault("35")
@pytest.mark.parametrize(
    "case",
    [
        Case("to itself", Computed(lambda request: Redirect(request.path)), "redirect-loop"),
        Case(
            "in a circle",
            Computed(lambda request: Redirect(request.path + "?b" * ("?b" not in request.target))),
            "redirect-loop",
        ),
        Case(
            "ever on",
            Computed(lambda request: Redirect(f"{request.path}?{len(request.target)}{request.target[-9:]}")),
            "redirect-loop",
        ),
        Case("no Location", Redirect(None, 301), "redirect-loop"),
        Case("empty Location", Redirect(""), "redirect-loop"),
        Case("bad Location", Redirect("http://[::1"), "redirect-loop"),
        Case("Location without a host", Redirect("http://"), "redirect-loop"),
    ],
    ids=str,
)
async def test_row_35_redirects_that_lead_nowhere(
    proxy: Proxy, origin: Origin, struck: Origin, case: Case
) -> None:
    """Row 35: circles, endless chains and bad Locations are `redirect-loop` after fetch.max_redirects at
    most."""
    await strikes(proxy, origin, Answered(struck, case.answer), case)
    assert len(struck.requests_for("/unknown")) <= 1 + 5 + 1


@pytest.mark.fault("35")
@pytest.mark.parametrize("pauses", [[6, 6, 6], [30]], ids=["three times in a day", "twice in more than one"])
async def test_row_35_a_permanent_move_is_not_believed_at_once(
    proxy: Proxy, struck: Origin, pauses: list[int]
) -> None:
    """Row 35: until a 308 was seen three times over more than a day, the old URL is asked first."""
    struck.publish("/new", atom(an_item("a"), complete=True))
    struck.publish("/feed", atom(an_item("a"), complete=True))
    url = struck.url("/feed")
    await proxy.whole(url)
    struck.redirect("/feed", "/new", status=308)
    for hours in [1, *pauses]:
        proxy.clock.advance(hours * 3600)
        await proxy.whole(url)
    asked = len(struck.requests_for("/feed"))
    proxy.clock.advance(3600)
    assert (await proxy.whole(url)).state == "complete"
    assert len(struck.requests_for("/feed")) == asked + 1


@pytest.mark.fault("36")
@pytest.mark.parametrize(
    ("coding", "bomb"),
    [
        ("gzip", gzip.compress(ZEROS, 1)),
        ("deflate", zlib.compress(ZEROS, 1)),
        ("br", brotli.compress(ZEROS, quality=1)),
        ("zstd", zstd.compress(ZEROS)),
    ],
    ids=["gzip", "deflate", "br", "zstd"],
)
async def test_row_36_a_bomb(proxy: Proxy, origin: Origin, struck: Origin, coding: str, bomb: bytes) -> None:
    """Row 36: a small body that decodes to gigabytes is `too-large`, in every coding, and fills no memory."""
    case = Case(coding, coded(coding, bomb), "too-large")
    await strikes(proxy, origin, Answered(struck, case.answer), case)


@pytest.mark.fault("37")
@pytest.mark.parametrize(
    "case",
    [
        Case("truncated", coded("gzip", gzip.compress(FEED)[:-9]), "content-coding"),
        Case("without its check sum", coded("gzip", gzip.compress(FEED)[:-8]), "content-coding"),
        Case("bad CRC", coded("gzip", gzip.compress(FEED)[:-8] + bytes(8)), "content-coding"),
        Case("trailing junk", coded("gzip", gzip.compress(FEED) + b"junk"), "content-coding"),
        Case("100,000 empty members", coded("gzip", gzip.compress(b"") * 100_000), "content-coding"),
        Case("not coded", coded("gzip", FEED), "content-coding"),
        Case("broken br", coded("br", b"\0not brotli"), "content-coding"),
        Case("truncated br", coded("br", brotli.compress(FEED)[:-4]), "content-coding"),
        Case("truncated zstd", coded("zstd", zstd.compress(FEED)[:-4]), "content-coding"),
        Case("truncated deflate", coded("deflate", zlib.compress(FEED)[:-4]), "content-coding"),
        Case("unknown", coded("sdch", FEED), "content-coding"),
        Case("unasked", coded("compress", FEED), "content-coding"),
        Case("double", coded("gzip, gzip", gzip.compress(gzip.compress(FEED))), "content-coding"),
    ],
    ids=str,
)
async def test_row_37_a_coding_that_is_not_as_it_says(
    proxy: Proxy, origin: Origin, struck: Origin, case: Case
) -> None:
    """Row 37: coded bodies that are cut, false, unknown or coded twice are `content-coding`, never half a
    feed."""
    await strikes(proxy, origin, Answered(struck, case.answer), case)


def page(body: bytes, media_type: str = "text/html; charset=utf-8") -> Answer:
    return Document(body=body, headers=(("Content-Type", media_type),))


@pytest.mark.fault("38")
@pytest.mark.parametrize(
    "case",
    [
        Case("with DOCTYPE", page(b"<!DOCTYPE html><html><body><p>Sorry&nbsp;<br>"), "not-a-feed", 422),
        Case("without DOCTYPE", page(b"<html><body><h1>Error</h1></body></html>"), "not-a-feed", 422),
        Case("a login as XHTML", page(b'<?xml version="1.0"?>\n<html/>', ATOM), "not-a-feed", 422),
        Case("as a feed's type", page(b"<!doctype HTML>\n<title>Down</title>", ATOM), "not-a-feed", 422),
    ],
    ids=str,
)
async def test_row_38_an_error_page_that_says_200(
    proxy: Proxy, origin: Origin, struck: Origin, case: Case
) -> None:
    """Row 38: an HTML page with status 200 is `not-a-feed`; it neither replaces nor empties a stored feed."""
    await strikes(proxy, origin, Answered(struck, case.answer), case)


@pytest.mark.fault("39")
@pytest.mark.parametrize(
    "case",
    [
        Case("empty 200", Status(200), "empty"),
        Case("204", Status(204), "unexpected-status"),
        Case("206", Status(206, (("Content-Range", "bytes 0-9/99"),), FEED), "unexpected-status"),
        Case("304 unasked", Status(304, (("ETag", '"1"'),)), "unexpected-status"),
    ],
    ids=str,
)
async def test_row_39_a_success_without_a_document(
    proxy: Proxy, origin: Origin, struck: Origin, case: Case
) -> None:
    """Row 39: 200 without a body, 204, 206 and an unasked 304 are errors, and leave what is stored."""
    await strikes(proxy, origin, Answered(struck, case.answer), case)


@pytest.mark.fault("39")
async def test_row_39_what_is_not_stored_is_asked_for_without_a_condition(
    proxy: Proxy, struck: Origin
) -> None:
    """304 can only answer for a body that is there: a feed that was forgotten is fetched whole."""
    url = struck.url("/feed")
    struck.publish("/feed", atom(an_item("a"), complete=True), etag='"1"')
    await proxy.whole(url)
    await proxy.refreshed(url)
    assert struck.requests[-1].headers["if-none-match"] == '"1"'
    assert (await proxy.ask("DELETE", "/feed", params={"url": url})).status == 204
    assert ids((await proxy.whole(url)).body) == ["a"]
    assert "if-none-match" not in struck.requests[-1].headers

    struck.fault("/other", Status(304))
    problem(await proxy.get(struck.url("/other")), "unexpected-status", 502)
