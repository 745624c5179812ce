"""docs/faults.md part C: faults on the wire, as a reader of the proxy sees them.

`tests.fetch.test_fetcher` shows the same of the fetcher alone, and the cost of a request.
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
    Request,
    Reset,
    Status,
    Truncated,
)
from tests.faults.checks import Answered, Down, each_strikes, problem, strikes, strikes_what_is_unknown
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
    return Raw(OK + b"Content-Length: " + length + b"\r\n" + more + b"\r\n" + body, keep_alive=True)


def titled(line: bytes) -> Answer:
    return Raw(line + b"Content-Length: 5\r\n\r\nhello")


def page(body: bytes, media_type: str = "text/html; charset=utf-8") -> Answer:
    return Document(body=body, headers=(("Content-Type", media_type),))


FAULTS: list[tuple[str, str, int, dict[str, Answer]]] = [
    ("28", "connection-failed", 502, {"reset": Reset()}),
    ("31", "incomplete", 502, {"larger": Raw(OK + b"Content-Length: 99999\r\n\r\n" + FEED)}),
    (
        "32",
        "incomplete",
        502,
        {
            "short of its length": Truncated(FEED, 300),
            "in a chunk": Truncated(FEED, 300, chunked=True),
            "no last chunk, and no end": Raw(CHUNKED + b"%x\r\n" % len(FEED[:-20]) + FEED[:-20] + b"\r\n"),
            "no chunk at all": Raw(CHUNKED),
            "no end of a chunk": Raw(CHUNKED + b"%x\r\n" % len(FEED) + FEED),
            "a line break in a chunk": Raw(CHUNKED + b"%x\r\n" % (len(FEED) + 7) + FEED + b"\r\n"),
            "bad chunk size": Raw(CHUNKED + b"zz\r\nhello\r\n"),
            "negative chunk size": Raw(CHUNKED + b"-5\r\nhello\r\n"),
            "chunk without its end": Raw(CHUNKED + b"5\r\nhelloXX0\r\n\r\n"),
            "reset": Reset(OK + b"Content-Length: 999\r\n\r\n" + FEED[:300]),
            "reset in chunks": Reset(CHUNKED + b"5\r\nhello\r\n"),
            "reset without a length": Reset(UNSIZED + FEED[:300]),
            "closed early without a length": Raw(UNSIZED + FEED[:-20]),
            "closed early in an entry": Raw(UNSIZED + FEED[: FEED.index(b"urn:x")]),
        },
    ),
    (
        "33",
        "protocol-error",
        502,
        {
            "257 fields": titled(OK + b"X-A: b\r\n" * 255),
            "5,000 fields": titled(OK + b"X-A: b\r\n" * 5000),
            "a field of 1 MB": titled(OK + b"X-A: " + b"b" * (1 << 20) + b"\r\n"),
            "NUL": titled(OK + b"X-A: b\0c\r\n"),
            "bare CR": titled(OK + b"X-A: b\rX-B: c\r\n"),
            "status 000": titled(b"HTTP/1.1 000 Zero\r\n"),
            "status 999": titled(b"HTTP/1.1 999 Nine\r\n"),
            "status 20": titled(b"HTTP/1.1 20 Two\r\n"),
            "another protocol": Raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
            "a body alone": Raw(FEED),
        },
    ),
    (
        "35",
        "redirect-loop",
        502,
        {
            "to itself": Computed(lambda request: Redirect(request.path)),
            "in a circle": Computed(
                lambda request: Redirect(request.path + "?b" * ("?b" not in request.target))
            ),
            "ever on": Computed(
                lambda request: Redirect(f"{request.path}?{len(request.target)}{request.target[-9:]}")
            ),
            "no Location": Redirect(None, 301),
            "empty Location": Redirect(""),
            "bad Location": Redirect("http://[::1"),
            "Location without a host": Redirect("http://"),
        },
    ),
    (
        "36",
        "too-large",
        502,
        {
            "gzip": coded("gzip", gzip.compress(ZEROS, 1)),
            "deflate": coded("deflate", zlib.compress(ZEROS, 1)),
            "br": coded("br", brotli.compress(ZEROS, quality=1)),
            "zstd": coded("zstd", zstd.compress(ZEROS)),
        },
    ),
    (
        "37",
        "content-coding",
        502,
        {
            "truncated": coded("gzip", gzip.compress(FEED)[:-9]),
            "without its check sum": coded("gzip", gzip.compress(FEED)[:-8]),
            "bad CRC": coded("gzip", gzip.compress(FEED)[:-8] + bytes(8)),
            "trailing junk": coded("br", brotli.compress(FEED) + b"junk"),
            "100,000 empty members": coded("gzip", gzip.compress(b"") * 100_000),
            "broken br": coded("br", b"\0not brotli"),
            "truncated br": coded("br", brotli.compress(FEED)[:-4]),
            "truncated zstd": coded("zstd", zstd.compress(FEED)[:-4]),
            "truncated deflate": coded("deflate", zlib.compress(FEED)[:-4]),
            "unknown": coded("sdch", b"\x02\x01" + FEED),
            "unasked": coded("compress", b"\x1f\x9d\x90" + FEED),
            "truncated, of another name": coded("utf-8", gzip.compress(FEED)[:-9]),
            "more than three": coded("gzip, gzip, gzip, gzip", gzip.compress(FEED)),
        },
    ),
    (
        "38",
        "not-a-feed",
        422,
        {
            "with DOCTYPE": page(b"<!DOCTYPE html><html><body><p>Sorry&nbsp;<br>"),
            "without DOCTYPE": page(b"<html><body><h1>Error</h1></body></html>"),
            "a login as XHTML": page(b'<?xml version="1.0"?>\n<html/>', ATOM),
            "as a feed's type": page(b"<!doctype HTML>\n<title>Down</title>", ATOM),
        },
    ),
    ("39", "empty", 502, {"empty 200": Status(200)}),
    (
        "39",
        "unexpected-status",
        502,
        {
            "204": Status(204),
            "206": Status(206, (("Content-Range", "bytes 0-9/99"),), FEED),
            "304 unasked": Status(304, (("ETag", '"1"'),)),
        },
    ),
    ("56", "publisher-status", 410, {"410": Status(410)}),
    (
        "88",
        "header-limit",
        502,
        {name: ENDLESS_FRAMING[name] for name in ("early hints", "extensions of chunks")},
    ),
]


@pytest.mark.fault("28", "31", "32", "33", "35", "36", "37", "38", "39", "56", "88")
@pytest.mark.parametrize(
    ("slug", "status", "answers"),
    [pytest.param(*rest, id=f"row {row}, {rest[0]}") for row, *rest in FAULTS],
)
async def test_what_goes_wrong_on_the_wire_has_its_outcome(
    proxy: Proxy, origin: Origin, struck: Origin, slug: str, status: int, answers: dict[str, Answer]
) -> None:
    """Part C: status and slug; stored feeds are served, and publishers do not get repeated requests."""
    await each_strikes(proxy, origin, struck, slug, status, answers)
    assert len(struck.requests_for("/unknown")) <= 1 + 5 + 1


@pytest.mark.fault("28")
async def test_row_28_a_refused_connection(proxy: Proxy, origin: Origin, struck: Origin) -> None:
    """Row 28: a refused connection reads like a reset one."""
    await strikes(proxy, origin, Down(struck), "connection-failed")


@pytest.mark.fault("29")
async def test_row_29_a_connection_closed_without_an_answer(
    proxy: Proxy, origin: Origin, struck: Origin
) -> None:
    """Row 29: one more try, on a fresh connection; the reader may see no error at all."""
    await strikes(proxy, origin, Answered(struck, CloseWithoutAnswer()), "connection-failed")
    first, second = struck.requests_for("/unknown")[:2]
    assert first.connection != second.connection
    assert len(struck.requests_for("/stored")) == 1 + 2 + 1

    struck.publish("/feed", atom(an_item("a"), complete=True))
    struck.fault("/feed", CloseWithoutAnswer(), times=1)
    assert ids((await proxy.get(struck.url("/feed"))).body) == ["a"]


@pytest.mark.fault("31")
async def test_row_31_a_length_that_is_not_true(proxy: Proxy, origin: Origin, struck: Origin) -> None:
    """Bytes behind such a response are not read as the next one: its connection is given up."""
    chunked = sized(b"5", b"5\r\nhello\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n")
    answers = {
        "smaller": sized(b"10"),
        "negative": sized(b"-1"),
        "no number": sized(b"x"),
        "two": sized(b"5\r\nContent-Length: 6"),
        "two in one": sized(b"5, 6"),
        "two beside another mend": sized(b"5\r\nContent-Length : 6"),
        "with Transfer-Encoding": chunked,
    }
    await each_strikes(proxy, origin, struck, "protocol-error", 502, answers)
    for path in ("/unknown", *(f"/unknown/{number}" for number in range(len(answers) - 1))):
        bad, after = struck.requests_for(path)[:2]
        assert bad.connection != after.connection, path


def headed(lines: bytes) -> Answer:
    return Raw(OK + lines + b"Content-Length: %d\r\n\r\n" % len(FEED) + FEED, keep_alive=True)


def chunked(end: bytes) -> Answer:
    return Raw(CHUNKED + b"%x\r\n" % len(FEED) + FEED + b"\r\n" + end)


SIZE = b"%d" % len(FEED)
GZIP = gzip.compress(FEED)
REPAIRED: dict[str, dict[str, Answer]] = {
    "content-coding": {
        "a charset": coded("utf-8", FEED),
        "none": coded("none", FEED),
        "a media type": coded("text/xml", FEED),
        "a framing": coded("chunked", FEED),
        "another coding": coded("sdch", FEED),
        "gzip that is plain": coded("gzip", FEED),
        "br that is plain": coded("br", FEED),
        "deflate that is plain": coded("deflate", FEED),
        "gzip that is not named": Document(body=GZIP, headers=(("Content-Type", ATOM),)),
        "gzip as a media type": Document(body=GZIP, headers=(("Content-Type", "application/x-gzip"),)),
        "zstd that is not named": Document(body=zstd.compress(FEED), headers=(("Content-Type", ATOM),)),
        "gzip by another name": coded("br", GZIP),
        "zlib by another name": coded("gzip", zlib.compress(FEED)),
        "gzip named twice": coded("gzip, gzip", GZIP),
        "gzip in gzip": coded("gzip", gzip.compress(GZIP)),
    },
    "coding-padding": {
        "zeros behind gzip": coded("gzip", GZIP + bytes(512)),
        "a line break behind gzip": coded("gzip", GZIP + b"\n"),
        "junk behind deflate": coded("deflate", zlib.compress(FEED) + b"junk"),
    },
    "header-fields": {
        "no colon": headed(b"This is no header\r\n"),
        "a blank before the colon": headed(b"X-A : b\r\n"),
        "a blank in a name": headed(b"X Powered By: php\r\n"),
        "no name": headed(b": oops\r\n"),
        "LF alone": Raw(
            b"HTTP/1.1 200 OK\nno header\nContent-Length : %b\n\n%b" % (SIZE, FEED), keep_alive=True
        ),
        "behind an interim response": Raw(
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n%bno header\r\nContent-Length: %b\r\n\r\n%b"
            % (OK, SIZE, FEED)
        ),
    },
    "content-length": {
        "two alike": sized(SIZE + b"\r\nContent-Length: " + SIZE),
        "two alike in one": sized(SIZE + b", " + SIZE),
        "an empty one": Raw(OK + b"Content-Length:\r\n\r\n" + FEED),
        "an empty one beside chunks": Raw(
            OK
            + b"Content-Length:\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
            % (len(FEED), FEED)
        ),
    },
    "last-chunk": {
        "none": chunked(b""),
        "half of it": chunked(b"0"),
        "no end behind it": chunked(b"0\r\n"),
    },
}
"""Responses that break HTTP, by their notes."""


@pytest.mark.fault("152")
@pytest.mark.parametrize("repair", REPAIRED)
async def test_row_152_what_other_clients_take_is_read_and_noted(
    proxy: Proxy, struck: Origin, repair: str
) -> None:
    """Row 152: the feed is the same as in other clients, for both kinds of documents."""
    for number, (name, answer) in enumerate(REPAIRED[repair].items()):
        path = f"/{number}"
        struck.answer(path, answer)
        struck.publish(f"{path}/feed", atom(an_item("y"), prev_archive=f"{path}/old"))
        struck.answer(f"{path}/old", answer)
        for feed, entries in ((path, ["x"]), (f"{path}/feed", ["y", "x"])):
            reply = await proxy.whole(struck.url(feed))
            assert (reply.status, ids(reply.body)) == (200, entries), name
            assert reply.state != "partial", name
            shown = (await proxy.status(struck.url(feed)))["notes"]
            (said,) = [note["text"] for note in shown if note["code"] == "ResponseRepaired"]
            assert f"({repair})" in said, name


@pytest.mark.fault("152")
async def test_row_152_many_header_fields_are_no_fault(proxy: Proxy, struck: Origin) -> None:
    """Row 152: up to 256, as in curl and browsers, without a note."""
    struck.answer("/feed", headed(b"X-A: b\r\n" * 254))
    assert ids((await proxy.whole(struck.url("/feed"))).body) == ["x"]
    assert (await proxy.status(struck.url("/feed")))["notes"] == []


@pytest.mark.fault("152")
@pytest.mark.parametrize("lines", [b"no header\r\n", b"Content-Length : %b\r\n" % SIZE])
async def test_row_152_a_mended_response_smuggles_in_no_other(
    proxy: Proxy, struck: Origin, lines: bytes
) -> None:
    """Row 152: bytes behind it are not read, and the next request has its own connection."""
    evil = atom(an_item("evil"))
    smuggled = OK + b"Content-Length: %d\r\n\r\n" % len(evil) + evil
    struck.answer(
        "/feed", Raw(OK + lines + b"Content-Length: " + SIZE + b"\r\n\r\n" + FEED + smuggled, keep_alive=True)
    )
    struck.publish("/other", atom(an_item("y")))
    reply = await proxy.get(struck.url("/feed"))
    assert b"evil" not in reply.body
    assert ids((await proxy.get(struck.url("/other"))).body) == ["y"]
    first, *_, last = struck.requests
    assert first.connection != last.connection


@pytest.mark.fault("56")
async def test_row_56_a_feed_that_is_closed(proxy: Proxy, origin: Origin, struck: Origin) -> None:
    """Row 56: 401 and 403 become 502 `origin-forbidden`, and ask no reader for a password."""
    closed = {"401": Status(401, (("WWW-Authenticate", "Basic"),)), "403": Status(403)}
    await each_strikes(proxy, origin, struck, "origin-forbidden", 502, closed)
    struck.fault("/closed", closed["401"])
    assert "WWW-Authenticate" not in (await proxy.get(struck.url("/closed"))).headers


@dataclass
class Certified:
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
async def test_row_34_a_certificate_that_is_not_valid(tmp_path: Path, origin: Origin) -> None:
    """Row 34: an expired, misnamed or unknown certificate is `tls-certificate`, and nothing is read from
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
        good = shown.pop("good")
        await strikes(proxy, origin, Certified(struck, good, shown.pop("expired")), "tls-certificate")
        for number, bad in enumerate(shown.values()):
            fault = Certified(struck, good, bad)
            await strikes_what_is_unknown(proxy, fault, "tls-certificate", 502, path=f"/unknown/{number}")


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


def gated(request: Request, *, status: int, target: str, cookie: str) -> Answer:
    if "seen=1" in request.headers.get("cookie", ""):
        return Document(body=FEED, headers=(("Content-Type", ATOM),))
    if request.target != request.path:
        return page(b"<html><body>Please enable cookies</body></html>")
    return Status(status, (("Location", target), ("Set-Cookie", cookie)))


@pytest.mark.fault("153")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(("path", "target"), [("/same", "/same"), ("/check", "/check?check=1")])
async def test_row_153_a_redirect_that_wants_its_cookie_back_gets_it(
    proxy: Proxy, struck: Origin, status: int, path: str, target: str
) -> None:
    """Row 153: including a redirect to the same URL; each look begins without cookies at the first URL,
    though a redirect calls itself permanent."""
    struck.answer(
        path, Computed(lambda request: gated(request, status=status, target=target, cookie="seen=1; Path=/"))
    )
    for _ in range(5):
        assert ids((await proxy.whole(struck.url(path))).body) == ["x"]
        proxy.clock.advance(90_000)
    sent = [(request.target, request.headers.get("cookie")) for request in struck.requests_for(path)]
    assert len(sent) > 4
    assert sent == [(path, None), (target, "seen=1")] * (len(sent) // 2)


@pytest.mark.fault("153")
async def test_row_153_a_cookie_stays_with_its_host_and_its_chain(
    proxy: Proxy, origin: Origin, struck: Origin
) -> None:
    """Row 153: neither another host nor the next fetch gets it; a return to its host does."""
    cookie = (("Set-Cookie", "seen=1; Path=/"), ("Location", origin.url("/over")))
    struck.answer("/feed", Status(302, cookie))
    origin.redirect("/over", struck.url("/back"))
    struck.publish("/back", FEED)
    struck.publish("/other", atom(an_item("y")))
    assert ids((await proxy.whole(struck.url("/feed"))).body) == ["x"]
    assert ids((await proxy.whole(struck.url("/other"))).body) == ["y"]
    sent = [(request.path, request.headers.get("cookie")) for request in struck.requests]
    assert sent == [("/feed", None), ("/back", "seen=1"), ("/other", None)]
    assert ["cookie" in request.headers for request in origin.requests] == [False]


@pytest.mark.fault("153")
@pytest.mark.parametrize(
    ("cookies", "requests"),
    [(["n=1"], 2), (["n=1", "n=2", "n=3", "n=4", "n=5", "n=6", "n=7"], 6), (["n=1; Secure"], 1), (["n"], 1)],
    ids=["the same each time", "another each time", "for https", "none"],
)
async def test_row_153_cookies_lead_no_chain_on_for_ever(
    proxy: Proxy, struck: Origin, cookies: list[str], requests: int
) -> None:
    """Row 153: without news it is a circle; with news each time the limit of redirects counts."""

    def answer(request: Request) -> Answer:
        number = len(struck.requests_for("/feed")) - 1
        return Status(302, (("Location", "/feed"), ("Set-Cookie", cookies[min(number, len(cookies) - 1)])))

    struck.answer("/feed", Computed(answer))
    problem(await proxy.get(struck.url("/feed")), "redirect-loop", 502)
    assert len(struck.requests_for("/feed")) == requests


@pytest.mark.fault("39")
async def test_row_39_what_is_not_stored_is_asked_for_without_a_condition(
    proxy: Proxy, struck: Origin
) -> None:
    """A 304 needs a stored body: a forgotten feed is fetched whole."""
    url = struck.url("/feed")
    struck.publish("/feed", atom(an_item("a"), complete=True), etag='"1"')
    await proxy.whole(url)
    await proxy.looked(url)
    assert struck.requests[-1].headers["if-none-match"] == '"1"'
    assert (await proxy.ask("DELETE", "/feed", params={"url": url})).status == 204
    assert ids((await proxy.whole(url)).body) == ["a"]
    assert "if-none-match" not in struck.requests[-1].headers

    struck.fault("/other", Status(304))
    problem(await proxy.get(struck.url("/other")), "unexpected-status", 502)
