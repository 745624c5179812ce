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
from structlog.testing import capture_logs
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
    """docs/design.md#the-interface."""
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


async def test_a_reader_that_has_it_gets_a_304_with_the_state(proxy: Proxy, origin: Origin) -> None:
    """RFC 9110, 13.1: over the final bytes; Feed-Reconstruction goes out on 304 too."""
    url = origin.url("/feed")
    publish_chain(origin, archives=1)
    reply = await proxy.whole(url)
    for condition in (
        {"If-None-Match": reply.headers["ETag"]},
        {"If-Modified-Since": reply.headers["Last-Modified"]},
    ):
        again = await proxy.get(url, headers=condition)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["ETag"] == reply.headers["ETag"]
        assert again.reconstruction == reply.reconstruction
    changed = await proxy.get(url, headers={"If-None-Match": '"other"', "Accept-Encoding": "gzip"})
    assert changed.status == 200


async def test_validators_move_when_the_feed_changes(proxy: Proxy, origin: Origin) -> None:
    """An unchanged feed keeps its ETag; a changed one has a new one, and gets no 304 for the old date."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    first = await proxy.whole(url)
    same = await proxy.refreshed(url)
    assert same.headers["ETag"] == first.headers["ETag"]
    origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)))
    second = await proxy.refreshed(url)
    assert second.headers["ETag"] != first.headers["ETag"]
    assert (await proxy.get(url, headers={"If-Modified-Since": first.headers["Last-Modified"]})).status == 200


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
    """Give host and port of one that hangs up on whoever begins with TLS."""

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
    """docs/design.md#the-interface: what people paste lacks its scheme; the choice is kept."""
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
    """Nobody is led from https to http who has asked for https."""
    async with plain_publisher() as bare:
        for written in (f"https://{bare}", f"feed:https://{bare}"):
            assert problem(await proxy.get(written))["type"] == "urn:wholefeed:connection-failed"
        assert json.loads((await proxy.ask("GET", "/feeds")).body) == []


async def test_a_problem_begins_with_what_people_need_to_know(proxy: Proxy, origin: Origin) -> None:
    """Error bodies are cut short where they are shown."""
    origin.fault("/feed", Status(503))
    reply = await proxy.get(origin.url("/feed"))
    assert reply.body.startswith(f'{{"detail": "the publisher answered 503: {origin.url("/feed")}"'.encode())


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
    """R7, R16; RFC 8941, 3.3: a string; on 304 and HEAD too, in a fixed order."""
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
    assert (await proxy.status(url))["since"] == since  # of first sight, whatever came later


async def test_only_a_remembered_feed_says_since_when(proxy: Proxy, origin: Origin) -> None:
    """R7: `since` stands in Feed-Reconstruction of remembered feeds alone, and in every /status."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    assert "since" not in (await proxy.whole(url)).reconstruction
    assert parse_rfc3339((await proxy.status(url))["since"]) is not None


async def test_head_says_what_get_would(proxy: Proxy, origin: Origin) -> None:
    """HEAD has the same ETag, length, dates, type and state as GET, so that a reader can check cheaply."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    whole = await proxy.whole(url)
    head = await proxy.ask("HEAD", "/feed", params={"url": url}, headers={"Accept-Encoding": "identity"})
    for name in ("ETag", "Content-Length", "Last-Modified", "Feed-Reconstruction", "Content-Type"):
        assert head.headers[name] == whole.headers[name]


@pytest.mark.parametrize(
    ("query", "status", "slug"),
    [
        ("", 400, "bad-request"),
        ("url=", 400, "bad-request"),
        ("url=relative", 400, "invalid-url"),
        ("url=ftp%3A%2F%2Fo.test%2F", 400, "invalid-url"),
        ("url=http%3A%2F%2Fu%3Ap%40127.0.0.1%2F", 400, "userinfo-not-allowed"),
        ("url=http%3A%2F%2F2130706433%2F", 400, "ambiguous-host"),
        ("url=http%3A%2F%2Fa.test%2F&url=http%3A%2F%2Fb.test%2F", 400, "bad-request"),
        ("url=http%3A%2F%2F127.0.0.1%3A9%2F&wait=never", 400, "bad-request"),
        ("url=http%3A%2F%2F10.0.0.1%2F", 403, "destination-forbidden"),
    ],
)
async def test_bad_requests_are_told_apart(proxy: Proxy, query: str, status: int, slug: str) -> None:
    """Rows 2, 8, 16, 17, 27: each kind of bad URL has its status and slug."""
    reply = await proxy.ask("GET", f"/feed?{query}")
    assert reply.status == status
    assert problem(reply)["type"] == f"urn:wholefeed:{slug}"


@pytest.mark.parametrize(
    ("published", "status"), [(404, 404), (410, 410), (403, 502), (401, 502), (500, 502), (503, 502)]
)
async def test_what_the_publisher_says_is_passed_on_where_nothing_is_stored(
    proxy: Proxy, origin: Origin, published: int, status: int
) -> None:
    """docs/faults.md row 56: 404 and 410 as they are; never 401, which would make readers prompt."""
    origin.fault("/feed", Status(published))
    reply = await proxy.get(origin.url("/feed"))
    assert reply.status == status
    assert problem(reply)["detail"]


async def test_a_page_leads_to_the_feed_it_announces(proxy: Proxy, origin: Origin) -> None:
    """A reader who enters a site's page gets its Atom feed; the page is not asked for again."""
    expected = publish_chain(origin, archives=1)
    origin.publish(
        "/blog/",
        b"<html><link rel=alternate type=application/rss+xml href=/rss>"
        b"<link rel=alternate type=application/atom+xml href=/feed></html>",
        content_type="text/html",
    )
    reply = await proxy.whole(origin.url("/blog/"))
    assert ids(reply.body) == expected
    assert reply.headers["Link"] == f'<{origin.url("/feed")}>; rel="via"'
    origin.forget_requests()
    assert ids((await proxy.whole(origin.url("/blog/"))).body) == expected
    assert origin.requests == []


async def test_a_page_without_a_feed_is_a_422_that_says_what_was_found(proxy: Proxy, origin: Origin) -> None:
    """Row 38: for a page without a feed the detail says so, rather than tell of XML."""
    page = b"<html><link rel=alternate type=application/json href=/j></html>"
    origin.publish("/blog/", page, content_type="text/html")
    reply = await proxy.get(origin.url("/blog/"))
    assert reply.status == 422
    found = problem(reply)
    assert found["type"] == "urn:wholefeed:not-a-feed"
    assert "an HTML page that announces no feed" in str(found["detail"])


async def test_a_forgotten_feed_is_unknown(proxy: Proxy, origin: Origin) -> None:
    """R25: after DELETE a feed is 404 `unknown-feed` for /status and for a second DELETE."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    await proxy.whole(url)
    assert (await proxy.ask("DELETE", "/feed", params={"url": url})).status == 204
    reply = await proxy.ask("DELETE", "/feed", params={"url": url})
    assert problem(reply)["type"] == "urn:wholefeed:unknown-feed"
    assert (await proxy.ask("GET", "/status", params={"url": url})).status == 404


async def test_the_known_feeds_are_listed(proxy: Proxy, origin: Origin) -> None:
    """/feeds gives URL, state and number of entries of what is stored."""
    publish_chain(origin, archives=1)
    await proxy.whole(origin.url("/feed"))
    (feed,) = json.loads((await proxy.ask("GET", "/feeds")).body)
    assert (feed["url"], feed["state"], feed["entries"]) == (origin.url("/feed"), "complete", 4)


async def test_a_path_that_is_nothing_is_a_404(proxy: Proxy) -> None:
    """An unknown path is a problem 404; a wrong method is 405 and names the right ones."""
    assert problem(await proxy.ask("GET", "/nothing"))["status"] == 404
    reply = await proxy.ask("PUT", "/feed")
    assert problem(reply)["status"] == 405
    assert "GET" in reply.headers["Allow"]


@pytest.mark.fault("19")
async def test_a_request_that_came_through_this_proxy_is_refused(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 19."""
    reply = await proxy.get(origin.url("/feed"), headers={"Via": "1.1 wholefeed"})
    assert problem(reply)["type"] == "urn:wholefeed:loop-detected"
    assert reply.status == 508
    assert origin.requests == []


@pytest.mark.parametrize("via", ["1.1 wholefeed.example.org (Apache)", "1.1 cache, 2 not-wholefeed"])
async def test_a_reverse_proxy_may_be_named_after_this_one(proxy: Proxy, origin: Origin, via: str) -> None:
    """RFC 9110, 7.6.3: Via holds pseudonyms and hosts' names."""
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
        ("localhost:1", 200),
        ("[::1]:80", 200),
        ("a" * 253, 200),
        ("a" * 254, 421),
        (f"[{':' * 46}]", 421),
    ],
)
@pytest.mark.fault("77")
async def test_links_are_made_from_a_host_that_may_be_trusted(
    proxy: Proxy, origin: Origin, host: str, status: int
) -> None:
    """docs/faults.md row 77."""
    publish_chain(origin, archives=1)
    reply = await proxy.get(origin.url("/feed"), headers={"Host": host})
    assert reply.status == status


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/feeds"), ("GET", "/status"), ("POST", "/refresh"), ("DELETE", "/feed")]
)
async def test_a_name_that_points_here_without_leave_gets_nothing(
    proxy: Proxy, origin: Origin, method: str, path: str
) -> None:
    """docs/faults.md row 77: a web page would be the same origin under such a name."""
    publish_chain(origin, archives=1)
    await proxy.whole(origin.url("/feed"))
    query = {"url": origin.url("/feed")}
    reply = await proxy.ask(method, path, params=query, headers={"Host": "evil.example"})
    assert (reply.status, problem(reply)["type"]) == (421, "urn:wholefeed:misdirected")
    assert (await proxy.status(origin.url("/feed")))["documents"] == 2
    assert (await proxy.ask(method, path, params=query)).status < 300


@pytest.mark.parametrize(
    ("host", "status"), [("evil.example", 421), ("feeds.example", 200), ("[::1]:80", 200)]
)
async def test_a_public_url_opens_no_list_to_other_names(start: StartProxy, host: str, status: int) -> None:
    """docs/faults.md row 77: its own name counts beside those that nobody else's name can be."""
    proxy = await start(server={"public_url": "https://feeds.example/w/"})
    assert (await proxy.ask("GET", "/feeds", headers={"Host": host})).status == status


@pytest.mark.fault("77")
async def test_the_public_url_is_what_links_are_made_from(start: StartProxy, origin: Origin) -> None:
    """Row 77: with server.public_url a feed links itself there, whatever Host the request had."""
    publish_chain(origin, archives=1)
    proxy = await start(server={"public_url": "https://feeds.example/w/"})
    reply = await proxy.get(origin.url("/feed"), headers={"Host": "evil.example"})
    assert links(reply.body)["self"][0].startswith("https://feeds.example/w/feed?url=")


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({}, {}, 401),
        ({"Authorization": "Bearer wrong"}, {}, 401),
        ({"Authorization": "Bearer s3cret"}, {}, 200),
        ({"Authorization": "Basic " + "eDpzM2NyZXQ="}, {}, 200),
        ({"Authorization": "Basic ???"}, {}, 401),
        ({}, {"token": "s3cret"}, 200),
        ({}, {"token": "s3cre"}, 401),
    ],
)
@pytest.mark.fault("80")
async def test_the_token_is_asked_for_where_one_is_set(
    start: StartProxy, origin: Origin, headers: dict[str, str], query: dict[str, str], status: int
) -> None:
    """docs/faults.md row 80."""
    publish_chain(origin, archives=1)
    proxy = await start(server={"access_token": "s3cret"})
    with capture_logs() as lines:
        reply = await proxy.get(origin.url("/feed"), headers=headers, **query)
    assert reply.status == status
    assert (await proxy.ask("GET", "/healthz")).status == 200
    assert "s3cret" not in str(lines)
    if status == 401:
        assert problem(reply)["type"] == "urn:wholefeed:unauthorized"
        assert "WWW-Authenticate" in reply.headers
    else:
        assert b"s3cret" not in reply.body
        assert reply.headers["Cache-Control"].startswith("private")


async def test_one_line_a_request(proxy: Proxy, origin: Origin) -> None:
    """docs/design.md#the-interface: feed, state, documents, entries, duration; never a query string."""
    publish_chain(origin, archives=1)
    await proxy.whole(origin.url("/feed"))
    with capture_logs() as lines:
        await proxy.get(origin.url("/feed?secret=1"))
        await proxy.get(origin.url("/feed"))
    answered = [line for line in lines if line["event"] == "request.answered"]
    assert len(answered) == 2
    assert "secret" not in str(answered)
    assert answered[1]["status"] == 200
    assert answered[1]["duration_s"] >= 0


async def test_a_publisher_s_scripts_do_not_run_in_the_proxy_s_name(proxy: Proxy, origin: Origin) -> None:
    """A browser that opens the answer runs what an entry holds in the XHTML namespace."""
    script = '<x:script xmlns:x="http://www.w3.org/1999/xhtml">fetch("/feeds")</x:script>'
    origin.publish("/feed", atom(an_item("a", 1, text=script)))
    reply = await proxy.get(origin.url("/feed"))
    assert script.encode() in reply.body
    assert "sandbox" in reply.headers["Content-Security-Policy"].split("; ")
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


async def test_private_feeds_stay_private(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 26."""
    origin.publish("/feed", atom(an_item("a")), headers=[("Cache-Control", "private, max-age=600")])
    reply = await proxy.whole(origin.url("/feed"))
    assert reply.headers["Cache-Control"].startswith("private, max-age=")


async def test_gzip_of_every_state_is_a_whole_document(proxy: Proxy, origin: Origin) -> None:
    """R1: a complete feed without entries decodes from gzip to a whole document."""
    origin.publish("/feed", atom(complete=True))
    reply = await proxy.get(origin.url("/feed"), headers={"Accept-Encoding": "gzip"})
    assert b"</feed>" in gzip.decompress(reply.body)


async def test_health_is_told_without_a_feed(proxy: Proxy) -> None:
    """/healthz and /readyz answer 200 on a fresh start, before any feed was asked for."""
    assert (await proxy.ask("GET", "/healthz")).status == 200
    assert (await proxy.ask("GET", "/readyz")).status == 200


@pytest.mark.parametrize("coding", ["gzip", "identity"])
async def test_an_answer_that_is_small_is_one_write(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    """Header and body leave in one call of the system, also those of a 304 and of a HEAD."""
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
