"""wholefeed.web.middlewares and routes: common properties of all answers, and log lines."""

from __future__ import annotations

import io
import json
from urllib.parse import quote

import pytest
from structlog.testing import capture_logs

from tests.cpu_time import cpu_limit
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy, StartProxy
from wholefeed.config.tables import LogConfig
from wholefeed.logs import configure_logging


@pytest.mark.parametrize(
    ("request_line", "fields", "status"),
    [
        ("GET /feed?url={url} HTTP/1.1", "", 200),
        ("HEAD /feed?url={url} HTTP/1.1", "", 200),
        ("GET /feed?url={url} HTTP/1.1", "If-None-Match: *\r\n", 304),
        ("GET /feeds HTTP/1.1", "", 200),
        ("GET /feed HTTP/1.1", "", 400),
        ("GET /nothing HTTP/1.1", "", 404),
        ("PUT /feed HTTP/1.1", "", 405),
        ("GET http://other.example/ HTTP/1.1", "", 421),
        ("POST /refresh?url={url} HTTP/1.1", "Transfer-Encoding: gzip\r\n", 400),
        ("GET /feed?url={url} HTTP/1.1", "Expect: nothing\r\n", 417),
        ("nonsense", "", 400),
        ("GET /" + "a" * 9000 + " HTTP/1.1", "", 400),
        ("GET / HTTP/7.7x", "", 400),
    ],
)
async def test_no_answer_tells_what_the_proxy_is_made_of(
    proxy: Proxy, origin: Origin, request_line: str, fields: str, status: int
) -> None:
    """RFC 9110, 10.2.4: also where aiohttp answers by itself, before any route matches."""
    origin.publish("/feed", atom(an_item("a")))
    await proxy.whole(origin.url("/feed"))
    line = request_line.format(url=quote(origin.url("/feed"), safe=""))
    answer = await proxy.raw(f"{line}\r\nHost: localhost\r\n{fields}Connection: close\r\n\r\n".encode())
    head, _, _ = answer.partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == str(status).encode()
    assert [line for line in head.split(b"\r\n") if line.lower().startswith(b"server:")] == [
        b"Server: wholefeed"
    ]
    assert (b"\r\nAllow: " in head) is (status == 405)
    assert b"aiohttp" not in answer
    assert b"Python" not in answer


async def test_only_what_people_ask_for_is_logged_at_info_level(proxy: Proxy) -> None:
    """Supervisors ask for /healthz all day, and the page brings its own files; a failure is told."""
    asked = {"/healthz": "debug", "/static/page.css": "debug", "/static/gone": "info", "/": "info"}
    with capture_logs() as logs:
        for path in asked:
            await proxy.ask("GET", path)
    assert [line["log_level"] for line in logs if line["event"] == "request.answered"] == [*asked.values()]


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("miniflux/2.3", "miniflux/2.3"),
        ("", ""),
        ("Reader/1 \u00fc", "Reader/1 \u00fc"),
        ("a\tb\u009b31m\u202e", "a?b?31m?"),
        ("x" * 5000, "x" * 200),
    ],
)
async def test_the_log_says_who_asked_and_with_what(start: StartProxy, sent: str, shown: str) -> None:
    """Operators see which reader asks too often; its User-Agent is cut and without control characters."""
    proxy = await start(server={"trusted_proxies": ("127.0.0.0/8",)})
    with capture_logs() as logs:
        await proxy.raw(
            f"GET /readyz HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {sent}\r\n"
            "X-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n".encode()
        )
        await proxy.ask("GET", "/readyz", headers={"User-Agent": "other"})
    first, second = [log for log in logs if log["event"] == "request.answered"]
    assert (first["client"], first["user_agent"]) == ("203.0.113.9", shown)
    assert (second["client"], second["user_agent"]) == ("127.0.0.1", "other")


OF_EACH = ["method", "path", "url", "client", "user_agent", "status", "duration_s"]
OF_A_FEED = ["feed", "state", "documents", "entries"]


async def ask_for_everything(proxy: Proxy, url: str) -> None:
    """Ask for a feed, a missing one, a page without a feed, and a URL with a password."""
    for target in (
        f"/feed?url={quote(url, safe='')}",
        "/feed?url=http://u:hidden@a.example/",
        "/readyz",
        "/no",
    ):
        await proxy.ask("GET", target, headers={"User-Agent": 'a "reader"'})


@pytest.mark.parametrize("is_captured", [False, True])
async def test_a_line_says_the_same_in_json_and_to_whoever_else_takes_it(
    proxy: Proxy, origin: Origin, is_captured: bool
) -> None:
    """The fields and their order; no line contains a password (row 17)."""
    origin.publish("/feed", atom(an_item("a")))
    await proxy.whole(origin.url("/feed"))
    stream = io.StringIO()
    configure_logging(LogConfig(), stream)
    if is_captured:
        with capture_logs() as captured:
            await ask_for_everything(proxy, origin.url("/feed"))
        assert stream.getvalue() == ""
        lines = [
            {name: line[name] for name in line if name not in ("event", "log_level")} for line in captured
        ]
    else:
        await ask_for_everything(proxy, origin.url("/feed"))
        written = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert {(line.pop("event"), line.pop("level")) for line in written} == {("request.answered", "info")}
        lines = [{name: line[name] for name in line if name != "timestamp"} for line in written]
        assert "hidden" not in stream.getvalue()
    assert [list(line) for line in lines] == [
        [*OF_EACH, *OF_A_FEED, "request_id"],
        [*OF_EACH, "slug", "request_id"],
        [*OF_EACH, "request_id"],
        [*OF_EACH, "slug", "request_id"],
    ]
    assert [(line["path"], line["status"]) for line in lines] == [
        ("/feed", 200),
        ("/feed", 400),
        ("/readyz", 200),
        ("unmatched", 404),
    ]
    feed, refused, alive, nothing = lines
    assert feed["url"] == origin.url("/feed")
    assert (feed["state"], feed["documents"], feed["entries"]) == ("remembered", 1, 1)
    assert (refused["slug"], nothing["slug"]) == ("userinfo-not-allowed", "not-found")
    assert (alive["url"], alive["user_agent"], alive["client"]) == (None, 'a "reader"', "127.0.0.1")


async def test_no_line_is_written_below_the_level(proxy: Proxy) -> None:
    """log.level `warning` leaves the lines of requests out."""
    stream = io.StringIO()
    configure_logging(LogConfig(level="warning"), stream)
    assert (await proxy.ask("GET", "/healthz")).status == 200
    assert stream.getvalue() == ""


@pytest.mark.parametrize("path", ["a." * 4000, "." * 8000, "%20" * 2600 + "x", "a" * 8000])
async def test_what_is_no_route_is_refused_at_once(proxy: Proxy, path: str) -> None:
    """Matching runs on the loop that answers all; one request took 2 s."""
    with cpu_limit(0.1):
        reply = await proxy.ask("GET", f"/{path}")
    assert reply.status == 404
