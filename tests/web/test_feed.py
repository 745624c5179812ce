"""wholefeed.web.feed: a feed's own URL, asked for by readers and browsers."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest
from yarl import URL

from tests.answers import Status
from tests.feeds import an_item, atom, ids, links, publish_chain
from tests.origin import Origin
from tests.running import Proxy, Reply, StartProxy
from wholefeed.core.text.dates import parse_rfc3339


def problem(reply: Reply) -> dict[str, object]:
    assert reply.headers["Content-Type"].startswith("application/problem+json")
    assert reply.headers["Cache-Control"] == "no-store"
    found: dict[str, object] = json.loads(reply.body)
    assert found["status"] == reply.status
    assert found["request_id"] == reply.headers["X-Request-Id"]
    return found


async def test_every_answer_carries_its_fields(proxy: Proxy, origin: Origin) -> None:
    """docs/design.md#the-interface; RFC 9110, 13.1: a 304 has the state, too."""
    url = origin.url("/feed")
    publish_chain(origin, archives=1)
    reply = await proxy.whole(url)
    assert reply.reconstruction == "complete;documents=2;entries=4;missing=0"
    assert reply.headers["ETag"].startswith('"')
    assert reply.headers["Last-Modified"].endswith("GMT")
    assert reply.headers["Vary"] == "Accept-Encoding, Accept, Sec-Fetch-Dest"
    assert reply.headers["Link"] == f'<{url}>; rel="via"'
    assert 0 < int(reply.headers["Cache-Control"].removeprefix("max-age=")) <= 900
    assert int(reply.headers["Content-Length"]) == len(reply.body)
    for condition in (
        {"If-None-Match": reply.headers["ETag"]},
        {"If-Modified-Since": reply.headers["Last-Modified"]},
    ):
        again = await proxy.get(url, headers=condition)
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", reply.headers["ETag"])
        assert again.reconstruction == reply.reconstruction


@pytest.mark.parametrize(
    "form",
    ["/feed?url={encoded}", "/feed?url={plain}", "/{plain}", "/{one_slash}", "/feed?wait=8&url={plain}"],
)
async def test_the_url_can_be_written_in_every_form(proxy: Proxy, origin: Origin, form: str) -> None:
    """docs/design.md#the-interface: the query string of the feed's URL is its own."""
    origin.publish("/feed?tag=a&page=1", atom(an_item("a", 1)))
    plain = origin.url("/feed?tag=a&page=1")
    one_slash = plain.replace("://", ":/")
    target = form.format(encoded=quote(plain, safe=""), plain=plain, one_slash=one_slash)
    asked = URL(f"{proxy.client.make_url('/')}".rstrip("/") + target, encoded=True)
    async with proxy.client.session.get(asked) as response:
        assert response.status == 200
        body = await response.read()
    assert ids(body) == ["a"]
    assert links(body)["self"] == [f"{proxy.client.make_url('/feed')}?url={quote(plain, safe='')}"]


@asynccontextmanager
async def plain_publisher() -> AsyncIterator[str]:
    """Return host and port of a server that hangs up on TLS."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1) == b"\x16":
            writer.transport.abort()
            return
        await reader.readuntil(b"\r\n\r\n")
        body = atom(an_item("a", 1), complete=True)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}/feed"


@pytest.mark.parametrize("form", ["/feed?url={}", "/feed?url=%20feed://{}%20", "/feed://{}", "/feed:{}%20"])
async def test_without_a_scheme_http_is_asked_where_https_is_refused(proxy: Proxy, form: str) -> None:
    """docs/design.md#the-interface: pasted URLs lack a scheme; the choice is remembered."""
    async with plain_publisher() as bare:
        url = f"http://{bare}"
        reply = await proxy.ask("GET", form.format(bare))
        assert (reply.status, reply.headers["Link"]) == (200, f'<{url}>; rel="via"')
        assert ids(gzip.decompress(reply.body)) == ["a"]
        assert (await proxy.ask("GET", f"/status?url={bare}")).status == 200
        assert (await proxy.ask("POST", f"/refresh?url={bare}")).status == 202
        await proxy.settled()
        assert [each["url"] for each in json.loads((await proxy.ask("GET", "/feeds")).body)] == [url]
        assert (await proxy.ask("GET", form.format(bare))).status == 200
        assert (await proxy.ask("DELETE", f"/feed?url={bare}")).status == 204


async def test_with_a_scheme_only_that_is_asked(proxy: Proxy) -> None:
    """A URL with https is never asked for over http."""
    async with plain_publisher() as bare:
        for written in (f"https://{bare}", f"feed:https://{bare}"):
            assert problem(await proxy.get(written))["type"] == "urn:wholefeed:connection-failed"
        assert json.loads((await proxy.ask("GET", "/feeds")).body) == []


async def test_head_of_an_unknown_feed_fetches_its_subscription_document_only(
    proxy: Proxy, origin: Origin
) -> None:
    """docs/design.md#the-interface: HEAD starts no walk of its own."""
    expected = publish_chain(origin, archives=3)
    url = origin.url("/feed")
    head = await proxy.ask("HEAD", "/feed", params={"url": url})
    assert (head.status, head.body, head.state) == (200, b"", "loading")
    assert int(head.headers["Content-Length"]) > 0
    assert set(origin.counts()) == {"/feed"}
    assert ids((await proxy.whole(url)).body) == expected


async def test_a_remembered_feed_says_since_when(proxy: Proxy, origin: Origin) -> None:
    """R7, R16; RFC 8941, 3.3: a string, on 304 and HEAD too."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)))
    before = int(proxy.clock())
    reply = await proxy.whole(url)
    since = (await proxy.status(url))["since"]
    assert before <= (parse_rfc3339(since) or 0) <= proxy.clock()
    said = f'remembered;documents=1;entries=2;missing=0;since="{since}"'
    assert reply.reconstruction == said

    head = await proxy.ask("HEAD", "/feed", params={"url": url})
    unchanged = await proxy.get(url, headers={"If-None-Match": reply.headers["ETag"]})
    assert (head.status, head.reconstruction) == (200, said)
    assert (unchanged.status, unchanged.reconstruction) == (304, said)

    proxy.clock.advance(4000)
    origin.fault("/feed", Status(500))
    assert (await proxy.get(url)).reconstruction == f"{said};stale"
    assert (await proxy.get(url, limit="1")).reconstruction == f"{said};stale;cut"
    assert (await proxy.status(url))["since"] == since  # of first sight, despite later changes


@pytest.mark.fault("19")
async def test_a_request_that_came_through_this_proxy_is_refused(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 19."""
    reply = await proxy.get(origin.url("/feed"), headers={"Via": "1.1 wholefeed"})
    assert problem(reply)["type"] == "urn:wholefeed:loop-detected"
    assert reply.status == 508
    assert origin.requests == []


@pytest.mark.parametrize("via", ["1.1 wholefeed.example.org (Apache)", "1.1 cache, 2 not-wholefeed"])
async def test_a_reverse_proxy_may_be_named_after_this_one(proxy: Proxy, origin: Origin, via: str) -> None:
    """RFC 9110, 7.6.3: Via holds pseudonyms and host names."""
    origin.publish("/feed", atom())
    assert (await proxy.get(origin.url("/feed"), headers={"Via": via})).status == 200
    assert (await proxy.get(origin.url("/feed"), headers={"Via": f"{via}, 1.1 wholefeed"})).status == 508


@pytest.mark.fault("19")
async def test_its_own_url_is_refused(proxy: Proxy) -> None:
    """docs/faults.md row 19."""
    reply = await proxy.get(f"{proxy.client.make_url('/feed')}?url=x")
    assert reply.status == 508


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("feeds.example", 200),
        ("[::1]:80", 200),
        ("a" * 253, 200),
        ("a" * 254, 421),
        (f"[{':' * 46}]", 421),
    ],
)
async def test_a_public_url_opens_no_list_to_other_names(start: StartProxy, host: str, status: int) -> None:
    """docs/faults.md row 77: beside it, only names that are always its own."""
    proxy = await start(server={"public_url": "https://feeds.example/w/"})
    assert (await proxy.ask("GET", "/feeds", headers={"Host": host})).status == status


@pytest.mark.parametrize("coding", ["gzip", "identity"])
async def test_an_answer_that_is_small_is_one_write(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    """Header and body leave in one system call."""
    url = origin.url("/feed")
    publish_chain(origin, archives=1)
    etag = (await proxy.get(url, headers={"Accept-Encoding": coding})).headers["ETag"]
    writes = 0
    ways = {name: getattr(socket.socket, name) for name in ("send", "sendmsg")}

    def counting(name: str) -> Callable[..., int]:
        def send(sock: socket.socket, *what: Any) -> int:
            nonlocal writes
            writes += sock.family == socket.AF_INET and sock.getsockname()[1] == proxy.client.port
            sent: int = ways[name](sock, *what)
            return sent

        return send

    for name in ways:
        monkeypatch.setattr(socket.socket, name, counting(name))
    target = f"/feed?url={quote(url, safe='')}"
    for method, condition, status in (("GET", "", 200), ("GET", etag, 304), ("HEAD", "", 200)):
        writes = 0
        reply = await proxy.ask(
            method, target, headers={"Accept-Encoding": coding, "If-None-Match": condition}
        )
        assert (reply.status, writes) == (status, 1)
