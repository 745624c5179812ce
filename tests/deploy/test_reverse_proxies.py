"""deploy/nginx.conf and deploy/Caddyfile, unchanged, in a real nginx and a real Caddy on loopback."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlencode, urljoin

import pytest

from demo.proxy_process import free_port
from tests.deploy.front import PROGRAMS, Front, in_front
from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.processes import Served, serving

TOKEN = "a-token-for-the-readers"
VARIANTS = {
    "feeds": ("", {"server_public_url": "https://feeds.example.org"}),
    "kept": ("/feeds", {"server_public_url": "https://kept.example.org/feeds"}),
    "stripped": ("/feeds", {"server_allowed_hosts": "stripped.example.org"}),
    "socket": ("", {"server_public_url": "https://socket.example.org", "server_trusted_proxies": "unix:"}),
}
"""Prefix of the proxy's paths, and the configuration in each block's comment."""

each_server = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.skipif(path is None, reason=f"{kind} is not installed"))
        for kind, path in PROGRAMS.items()
    ],
)
each_variant = pytest.mark.parametrize("variant", list(VARIANTS))
each_variant_once = pytest.mark.parametrize(
    ("kind", "variant"),
    [
        pytest.param(
            kind, variant, marks=pytest.mark.skipif(PROGRAMS[kind] is None, reason=f"{kind} is not installed")
        )
        for kind, variant in zip(["nginx", "caddy"] * 2, VARIANTS, strict=True)
    ],
)


@asynccontextmanager
async def behind(kind: str, variant: str, folder: Path) -> AsyncIterator[tuple[Front, Served]]:
    """wholefeed behind the reverse proxy, configured by the block's comment."""
    _, settings = VARIANTS[variant]
    socket = folder / "wholefeed.sock"
    chosen = {"server_trusted_proxies": "127.0.0.1", **settings, "server_socket": socket}
    async with (
        serving(folder, **{"server_access_token": TOKEN, **chosen}) as served,  # type: ignore[arg-type]
        in_front(kind, folder, port=served.port, socket=socket) as front,
    ):
        yield front, served


@each_server
@each_variant
@pytest.mark.sample("feeds-*", "*-nginx")
async def test_a_feed_comes_through_with_links_that_lead_back(
    tmp_path: Path, origin: Origin, kind: str, variant: str
) -> None:
    """Both forms of the URL need the token; clients are told apart by their real address."""
    origin.publish("/a/feed?x=1&y=2", atom(an_item("the-entry", 1)))
    url = origin.url("/a/feed?x=1&y=2")
    prefix, _ = VARIANTS[variant]
    async with behind(kind, variant, tmp_path) as (front, served):
        target = f"{prefix}/feed?url={quote(url, safe='')}"
        status, body = await front.get(variant, f"{target}&token={TOKEN}")
        assert status == 200, body
        scheme = front.scheme if variant == "stripped" else "https"
        assert f'href="{scheme}://{variant}.example.org{target}"'.encode() in body
        assert b"the-entry" in body

        bearer = {"Authorization": f"Bearer {TOKEN}"}
        status, behind_slash = await front.get(variant, f"{prefix}/{url}", **bearer)
        assert (status, behind_slash) == (200, body)
        assert (await front.get(variant, target))[0] == 401
        assert (await front.get(variant, f"{prefix}/healthz"))[0] == 200

        forged = {
            "X-Forwarded-For": "192.0.2.66",
            "X-Forwarded-Prefix": "/forged",
            "X-Forwarded-Host": "evil.example",
        }
        status, answer = await front.get(variant, target, client="127.0.0.2", **bearer, **forged)
        assert (status, answer) == (200, body)
        assert await served.clients(4) == ["127.0.0.1"] * 3 + ["127.0.0.2"]


@pytest.mark.parametrize("variant", ["kept", "stripped"])
@each_server
async def test_the_path_without_a_slash_leads_to_the_one_with(
    tmp_path: Path, kind: str, variant: str
) -> None:
    """Pages link relatively: links on /feeds must lead below /feeds/."""
    async with (
        in_front(kind, tmp_path, port=free_port(0), socket=tmp_path / "s") as front,
        front.asked(variant, "/feeds") as answer,
    ):
        assert answer.status in (301, 308)
        assert answer.headers["Location"].endswith("/feeds/")


PERSON = {"Accept": "text/html", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "same-origin"}


@each_variant_once
@pytest.mark.sample("nginx-feeds", "caddy-socket")
async def test_a_person_logs_in_and_watches_a_walk(
    tmp_path: Path, origin: Origin, kind: str, variant: str
) -> None:
    """Links, redirects and cookie stay below the same path; events come during the walk."""
    publish_chain(origin, archives=2)
    feed = quote(origin.url("/feed"), safe="")
    prefix, _ = VARIANTS[variant]
    async with (
        behind(kind, variant, tmp_path) as (front, _),
        asyncio.timeout(300),
        AsyncExitStack() as stack,
    ):
        async with front.asked(variant, f"{prefix}/?url={feed}", **PERSON) as asked:
            page = await asked.text()
            assert asked.status == 401
        (login,) = re.findall(r'<form method="post" action="\./(login[^"]*)"', page)
        (style,) = re.findall(r'href="\./(static/page\.css[^"]*)"', page)
        assert (await front.get(variant, f"{prefix}/{style}"))[0] == 200
        form = urlencode({"token": TOKEN})
        async with front.asked(variant, f"{prefix}/{unescape(login)}", form=form, **PERSON) as entered:
            assert entered.status == 303
            assert urljoin(f"{prefix}/login", entered.headers["Location"]) == f"{prefix}/?url={feed}"
            cookie = entered.headers["Set-Cookie"].split("; ")
        assert not [each for each in cookie if each.lower().startswith("path=")]
        # the example of Caddy runs over http here, that of nginx over https
        assert "Secure" in cookie or (variant == "stripped" and front.scheme == "http")
        person = {**PERSON, "Cookie": cookie[0]}
        with origin.held("/archive/1"):
            assert (await front.get(variant, f"{prefix}/?url={feed}", **person))[0] == 200
            events = await stack.enter_async_context(
                front.asked(variant, f"{prefix}/events?url={feed}", Cookie=cookie[0])
            )
            assert await events.content.readuntil(b"\n\n") == b"retry: 5000\n\n"
            assert (await events.content.readuntil(b"\n\n")).startswith(b"event: status\n")
        assert b"event: end\n" in await events.content.read()
        async with front.asked(variant, f"{prefix}/feed?url={feed}", **person) as opened:
            target = urljoin(f"{prefix}/feed", opened.headers["Location"])
        status, view = await front.get(variant, target, **person)
        assert (status, b"<article" in view) == (200, True)


@asynccontextmanager
async def slow_upstream(
    variant: str, port: int, socket: Path, go_on: asyncio.Event
) -> AsyncIterator[list[str]]:
    """Replaces wholefeed: sends one event, and the next on command. Yields the requested paths."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b" ")[1].decode())
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: 1\n\n"
        )
        await writer.drain()
        await go_on.wait()
        writer.write(b"data: 2\n\n")
        writer.close()

    started: AbstractAsyncContextManager[asyncio.Server]
    if variant == "socket":
        started = await asyncio.start_unix_server(answer, socket)
    else:
        started = await asyncio.start_server(answer, "127.0.0.1", port)
    async with started:
        yield asked


@each_server
@each_variant
async def test_events_are_passed_on_as_they_come(tmp_path: Path, kind: str, variant: str) -> None:
    """/events: the first event arrives before the second is sent, without a buffer."""
    prefix, _ = VARIANTS[variant]
    port, socket, go_on = free_port(0), tmp_path / "s", asyncio.Event()
    async with (
        slow_upstream(variant, port, socket, go_on) as asked,
        in_front(kind, tmp_path, port=port, socket=socket) as front,
        asyncio.timeout(300),
        front.asked(variant, f"{prefix}/events?url=x") as answer,
    ):
        assert await answer.content.readuntil(b"\n\n") == b"data: 1\n\n"
        go_on.set()
        assert await answer.content.read() == b"data: 2\n\n"
    assert asked == [f"{prefix if variant == 'kept' else ''}/events?url=x"]
