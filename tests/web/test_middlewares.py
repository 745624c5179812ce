"""wholefeed.web.middlewares: what every answer has in common."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from structlog.testing import capture_logs

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy, StartProxy


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
    """RFC 9110, 10.2.4: also where aiohttp answers by itself, before any route is looked for."""
    origin.publish("/feed", atom(an_item("a")))
    await proxy.whole(origin.url("/feed"))
    line = request_line.format(url=quote(origin.url("/feed"), safe=""))
    answer = await proxy.raw(f"{line}\r\nHost: localhost\r\n{fields}Connection: close\r\n\r\n".encode())
    head, _, _ = answer.partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == str(status).encode()
    assert [line for line in head.split(b"\r\n") if line.lower().startswith(b"server:")] == [
        b"Server: wholefeed"
    ]
    assert b"aiohttp" not in answer
    assert b"Python" not in answer


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
    """An operator sees which reader asks too often: by its address, behind a reverse proxy too, and its
    User-Agent, which is cut and steers no terminal."""
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
