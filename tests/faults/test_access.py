"""Rows 19, 25, 27, 76, 77, 80, 81 and 82 for readers and attackers."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from structlog.testing import capture_logs
from yarl import URL

from tests.feeds import atom, ids, links, publish_chain
from tests.origin import Origin
from tests.processes import printed
from tests.running import Proxy, Reply, a_config, running
from tests.sqlite_faults import rows
from tests.web.test_feed import problem
from wholefeed.app import make_app

TOKEN = "a token for readers"
KEYS = ("the-key-that-signs", "the-key-before-it")


def slug(reply: Reply) -> str:
    return str(problem(reply)["type"]).removeprefix("urn:wholefeed:")


def spelled_out(proxy: Proxy, url: str, **options: str) -> URL:
    """Return the URL; the client would normalise the feed's."""
    query = "".join(f"&{name}={quote(value, safe='')}" for name, value in options.items())
    return URL(f"{proxy.client.make_url('/feed')}?url={quote(url, safe='')}{query}", encoded=True)


@cache
def signed(url: str, *keys: str, days: int = 0) -> str:
    lasting = ["--days", str(days)] if days else []
    own = printed(Path(__file__).parent, "sign", *lasting, url, server_signing_keys=",".join(keys))
    return parse_qs(urlsplit(own.strip()).query)["signed"][0]


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"any:{password}".encode()).decode()


@asynccontextmanager
async def guarded(folder: Path, **server: Any) -> AsyncIterator[Proxy]:
    async with running(a_config(folder, server=server)) as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("fields", "is_refused"),
    [
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:1"}, True),
        ({"Origin": "http://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({"Origin": "http://["}, True),
        ({"Sec-Fetch-Site": "same-origin"}, False),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Origin": "https://LOCALHOST:8080"}, False),
        ({"Origin": "https://feeds.example"}, False),
        ({}, False),
    ],
)
async def test_a_page_of_another_origin_changes_nothing(
    tmp_path: Path, origin: Origin, fields: dict[str, str], is_refused: bool
) -> None:
    """A browser sends any form without permission, and adds the password it knows."""
    publish_chain(origin, archives=1)
    headers = {"Host": "localhost:8080", "Authorization": basic(TOKEN), **fields}
    query = {"url": origin.url("/feed")}
    async with guarded(tmp_path, access_token=TOKEN, public_url="https://feeds.example") as proxy:
        assert (await proxy.get(origin.url("/feed"), headers=headers)).status == 200
        await proxy.settled()
        origin.forget_requests()
        refreshed = await proxy.ask("POST", "/refresh", params=query, headers=headers)
        await proxy.settled()
        forgotten = await proxy.ask("DELETE", "/feed", params=query, headers=headers)
        listed = await proxy.ask("GET", "/feeds", headers=headers)
        assert len(json.loads(listed.body)) == is_refused
    if is_refused:
        assert (slug(refreshed), slug(forgotten)) == ("cross-origin", "cross-origin")
        assert origin.requests == []
    else:
        assert (refreshed.status, forgotten.status) == (202, 204)


@pytest.mark.fault("97")
async def test_a_page_has_nothing_loaded_as_a_part_of_itself(tmp_path: Path, origin: Origin) -> None:
    """Row 97: `<img src="…/feed?url=…">` on a foreign page adds no feed, even in a logged-in browser; our own
    pages may load their style and script."""
    publish_chain(origin, archives=1)
    url, token = origin.url("/feed"), {"Authorization": f"Bearer {TOKEN}"}
    async with guarded(tmp_path, access_token=TOKEN) as proxy:
        for part in ("image", "audio", "video", "script", "style", "font"):
            fields = {"Sec-Fetch-Dest": part, "Sec-Fetch-Mode": "no-cors", **token}
            for target in ("/feed", "/view", "/status", "/", "/opml", "/feeds", f"/{url}"):
                reply = await proxy.ask("GET", target, params={"url": url}, headers=fields)
                assert (reply.status, slug(reply)) == (403, "cross-origin"), (part, target)
            assert (await proxy.ask("GET", "/static/page.css", headers=fields)).status == 200
        await proxy.settled()
        assert (await proxy.ask("GET", "/feeds", headers=token)).body == b"[]"
    assert origin.requests == []


@pytest.mark.fault("94")
@pytest.mark.parametrize("target", ["/opml", "/login"])
async def test_a_body_in_another_coding_than_it_says_is_refused(tmp_path: Path, target: str) -> None:
    """Row 94: a client's bad body is no error of the proxy."""
    fields = {"Content-Encoding": "gzip", "Authorization": f"Bearer {TOKEN}"}
    async with guarded(tmp_path, access_token=TOKEN) as proxy:
        reply = await proxy.ask("POST", target, data=b"\x1f\x8b\x08\x00" * 100, headers=fields)
    assert (reply.status, slug(reply)) == (400, "bad-request")


@pytest.mark.fault("97")
async def test_the_feed_for_people_is_a_part_of_nothing(proxy: Proxy, origin: Origin) -> None:
    """Row 97: a page of entries is costly, and readable only when opened."""
    publish_chain(origin, archives=1)
    query = {"url": origin.url("/feed")}
    for part in ("iframe", "frame", "object", "embed", "empty", "track", "worker"):
        reply = await proxy.ask("GET", "/view", params=query, headers={"Sec-Fetch-Dest": part})
        assert (reply.status, slug(reply)) == (403, "cross-origin"), part
    assert origin.requests == []
    for fields in ({}, {"Sec-Fetch-Dest": "document"}):
        assert (await proxy.ask("GET", "/view", params=query, headers=fields)).status == 200


@pytest.mark.fault("25")
async def test_nothing_of_a_reader_reaches_a_publisher_and_no_cookie_comes_back(
    proxy: Proxy, origin: Origin
) -> None:
    """Vary and Set-Cookie make no difference; another reader's request is the same to the octet."""
    origin.publish(
        "/feed", atom(), headers=[("Vary", "*, Cookie, Authorization"), ("Set-Cookie", "a=b; Path=/")]
    )
    url = origin.url("/feed")
    private = {
        "Authorization": "Bearer mine",
        "Cookie": "mine=1",
        "X-Mine": "1",
        "Referer": "http://mine.test/",
    }
    reply = await proxy.get(url, headers=private)
    await proxy.refreshed(url)
    await proxy.refreshed(url)
    first, second, third = (request.head for request in origin.requests)
    assert reply.status == 200
    assert "Set-Cookie" not in reply.headers
    assert b"mine" not in first.lower()
    assert b"cookie" not in (first + second).lower()
    assert second == third


@pytest.mark.fault("27")
async def test_spellings_of_one_url_are_one_feed(proxy: Proxy, origin: Origin) -> None:
    """Row 27: case, dots, ports and escapes, with one fetch."""
    publish_chain(origin, archives=1)
    port = origin.url("").rpartition(":")[2].strip("/")
    for spelled in (
        f"HTTP://127.0.0.1:{port}/feed",
        f"http://127.0.0.1:0{port}/./a/../feed",
        f"http://127.0.0.1:{port}/%66ee%64#top",
    ):
        async with proxy.client.session.get(spelled_out(proxy, spelled, wait="8")) as response:
            assert response.headers["Feed-Reconstruction"].startswith("complete;")
    (feed,) = json.loads((await proxy.ask("GET", "/feeds")).body)
    assert feed["url"] == origin.url("/feed")
    assert set(origin.counts().values()) == {1}


@pytest.mark.fault("27")
async def test_a_request_names_exactly_one_url(proxy: Proxy) -> None:
    """Row 27: no URL, an empty one or two are 400 `bad-request` on every path that takes one."""
    for method, path in (("GET", "/feed"), ("GET", "/status"), ("POST", "/refresh")):
        for query in ("", "?url=", "?url=http%3A%2F%2Fa.test%2F&url=http%3A%2F%2Fb.test%2F"):
            assert slug(await proxy.ask(method, path + query)) == "bad-request"


POST = b"POST /refresh?url=x HTTP/1.1\r\nHost: a\r\n"
GET = b"GET /feed?url=http://a.test/"
AMBIGUOUS: list[tuple[bytes, set[int]]] = [
    (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked", {400}),
    (POST + b"Content-Length: 5\r\nContent-Length: 6", {400}),
    (POST + b"Transfer-Encoding: xchunked", {400}),
    (POST + b"Content-Length: +5", {400}),
    (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b", {400}),
    (b"GET /healthz HTTP/1.1\r\nHost : a", {400}),
    (b"GET /healthz HTTP/1.1\r\nHost: a\r\n folded: b", {400}),
    (b"CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 10.0.0.1:443", {400, 405}),
    (b"TRACE /feed HTTP/1.1\r\nHost: a\r\nCookie: mine", {405}),
    (GET + b"x" * 9000 + b" HTTP/1.1\r\nHost: a", {400}),
    (GET + b"x" * 3000 + b" HTTP/1.1\r\nHost: a", {400}),
]


@pytest.mark.fault("76")
async def test_what_two_servers_could_read_in_two_ways_is_refused(proxy: Proxy) -> None:
    """Row 76: lengths, hosts and methods; no second request is smuggled."""
    for head, statuses in AMBIGUOUS:
        body = b"0\r\n\r\n" if head.startswith(b"POST") else b""
        answer = await proxy.raw(head + b"\r\nConnection: close\r\n\r\n" + body)
        assert answer.count(b"HTTP/1.") == 1, head
        assert int(answer.split(b" ")[1]) in statuses, head
        assert b"mine" not in answer


@pytest.mark.fault("77")
async def test_links_are_never_made_from_a_foreign_name(proxy: Proxy, origin: Origin) -> None:
    """Row 77: a foreign Host gets 400 or 421, and causes no fetch."""
    publish_chain(origin, archives=1)
    plain = origin.url("/feed")
    url = quote(plain, safe="")
    for head in (
        f"GET /feed?url={url} HTTP/1.1\r\nHost: evil.example",
        f"GET http://evil.example/feed?url={url} HTTP/1.1\r\nHost: evil.example",
        f"GET http://evil.example/{plain} HTTP/1.1\r\nHost: 127.0.0.1",
        "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example",
        f'GET /feed?url={url} HTTP/1.1\r\nHost: a"><script>',
        f"GET /feed?url={url} HTTP/1.1",
    ):
        answer = await proxy.raw(f"{head}\r\nConnection: close\r\n\r\n".encode())
        assert int(answer.split(b" ")[1]) in (400, 421), head
    assert origin.requests == []


@pytest.mark.fault("77")
async def test_an_absolute_target_does_not_count_beside_an_allowed_host(proxy: Proxy, origin: Origin) -> None:
    """Row 77: the answer never repeats a foreign name from the request line."""
    publish_chain(origin, archives=1)
    target = f"http://evil.example/feed?url={quote(origin.url('/feed'), safe='')}"
    answer = await proxy.raw(
        f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"evil" not in answer


@pytest.mark.fault("77")
@pytest.mark.parametrize(
    ("trusted", "headers", "expected"),
    [
        ((), {"X-Forwarded-Host": "feeds.example", "X-Forwarded-Proto": "https"}, "http://127.0.0.1:"),
        (
            ("127.0.0.0/8",),
            {"X-Forwarded-Host": "evil.example, feeds.example", "X-Forwarded-Proto": "http, HTTPS"},
            "https://feeds.example/",
        ),
        (("127.0.0.0/8",), {"X-Forwarded-Proto": "javascript"}, "http://127.0.0.1:"),
        (("127.0.0.0/8",), {"X-Forwarded-Host": "evil.example"}, ""),
        (("127.0.0.0/8",), {"X-Forwarded-Host": "feeds.example/x?"}, ""),
    ],
)
async def test_a_reverse_proxy_that_is_believed_says_what_name_the_reader_used(
    tmp_path: Path, origin: Origin, trusted: tuple[str, ...], headers: dict[str, str], expected: str
) -> None:
    """And even then only one of `server.allowed_hosts`."""
    publish_chain(origin, archives=1)
    async with guarded(tmp_path, trusted_proxies=trusted, allowed_hosts=("feeds.example",)) as proxy:
        reply = await proxy.get(origin.url("/feed"), headers=headers)
    if expected:
        assert links(reply.body)["self"][0].startswith(expected)
    else:
        assert slug(reply) == "misdirected"


@pytest.mark.fault("77")
@pytest.mark.parametrize("path", ["/new", "/new/{name}"])
async def test_a_route_that_says_nothing_of_it_is_closed_to_foreign_names(tmp_path: Path, path: str) -> None:
    """A foreign name that resolves to this server is never ours, for any path."""

    async def get_new(_request: web.Request) -> web.StreamResponse:
        return web.Response()

    app = make_app(a_config(tmp_path))
    app.router.add_get(path, get_new)
    async with TestClient(TestServer(app, host="127.0.0.1")) as client:
        new = path.format(name="one")
        assert (await client.get(new)).status == 200
        for target in (new, "/feeds", "/nothing"):
            assert (await client.get(target, headers={"Host": "evil.example"})).status == 421
        for target in ("/healthz", "/readyz", "/openapi.json"):
            assert (await client.get(target, headers={"Host": "evil.example"})).status == 200


@pytest.mark.fault("80")
@pytest.mark.parametrize("keys", [(), KEYS])
async def test_everything_but_feeds_is_for_those_who_know_the_token(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    """A signature is for one feed; all changes and further facts need the token."""
    url = "http://a.test/feed"
    query = {"url": url, "signed": signed(url, *KEYS)}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with guarded(tmp_path, access_token=TOKEN, signing_keys=keys) as proxy:
        for method, path in (
            *(("GET", "/feeds"), ("POST", "/refresh"), ("DELETE", "/feed")),
            *(("GET", "/openapi.json"), ("GET", "/nothing")),
        ):
            assert slug(await proxy.ask(method, path, params=query)) == "unauthorized", path
            reply = await proxy.ask(method, path, params={"url": url}, headers=headers)
            assert reply.status in (200, 404), path
        assert (await proxy.ask("GET", "/healthz")).status == 200
        assert (await proxy.ask("GET", "/%68ealthz/")).status == 401


WRONG = [
    *("Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Digest {TOKEN}", "Bearer \udcff\udcfe"),
    *("Basic /////w==", f"Basic {TOKEN}", "Basic " + base64.b64encode(f"{TOKEN}:".encode()).decode()),
]


@pytest.mark.fault("80")
async def test_a_wrong_token_is_told_nothing(tmp_path: Path, origin: Origin) -> None:
    """Row 80: a missing, wrong or misspelt token is 401, without a fetch or a log of it."""
    publish_chain(origin, archives=1)
    head = f"GET /feed?url={quote(origin.url('/feed'))} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    async with guarded(tmp_path, access_token=TOKEN) as proxy:
        for authorization in WRONG:
            sent = f"{head}Authorization: {authorization}\r\n\r\n"
            with capture_logs() as lines:
                answer = await proxy.raw(sent.encode("utf-8", "surrogateescape"))
            assert answer.startswith(b"HTTP/1.1 401 "), authorization
            assert b"urn:wholefeed:unauthorized" in answer
            (line,) = [line for line in lines if line["event"] == "request.answered"]
            assert (line["status"], TOKEN in str(lines)) == (401, False)
    assert origin.requests == []


@pytest.mark.fault("80")
async def test_octets_that_are_no_text_are_no_token(tmp_path: Path) -> None:
    """Row 80: bytes that are no UTF-8 in place of a token are refused, not an error 500."""
    async with guarded(tmp_path, access_token=TOKEN) as proxy:
        answer = await proxy.raw(
            b"GET /feed?token=\xff%ff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
    assert int(answer.split(b" ")[1]) in (400, 401)


@pytest.mark.fault("80")
@pytest.mark.parametrize("token", ["", TOKEN])
async def test_a_signed_url_opens_its_feed_and_no_other(tmp_path: Path, origin: Origin, token: str) -> None:
    """In any spelling and view; and the feed's own link works."""
    expected = publish_chain(origin, archives=1)
    url, other = origin.url("/feed"), origin.url("/other")
    mark = signed(url, *KEYS)
    async with guarded(tmp_path, access_token=token, signing_keys=KEYS) as proxy:
        reply = await proxy.get(url, signed=mark)
        assert (reply.status, ids(reply.body)) == (200, expected)
        spelled = url.replace("http:", "HTTP:") + "#top"
        async with proxy.client.session.get(spelled_out(proxy, spelled, signed=mark)) as response:
            assert response.status == 200
        assert reply.headers["Cache-Control"].startswith("private")
        (own,) = links(reply.body)["self"]
        path = own.removeprefix(str(proxy.client.make_url("")).rstrip("/"))
        again = await proxy.ask("GET", path, headers={"Accept-Encoding": "identity"})
        assert (again.status, again.headers["ETag"]) == (200, reply.headers["ETag"])
        assert (await proxy.ask("HEAD", "/feed", params={"url": url, "signed": mark})).status == 200
        assert (await proxy.ask("GET", "/status", params={"url": url, "signed": mark})).status == 200
        cut = await proxy.get(url, signed=mark, limit="1")
        assert ids(cut.body) == expected[:1]
        for link in (*links(cut.body)["self"], *links(cut.body)["urn:wholefeed:whole"]):
            assert f"&signed={mark}" in link
        assert slug(await proxy.get(other, signed=mark)) == "bad-signature"
        assert slug(await proxy.get(other)) == ("unauthorized" if token else "signature-required")
        prefixed = await proxy.ask("GET", f"/{url}?signed={mark}")
        assert slug(prefixed) == ("unauthorized" if token else "signature-required")
        for method, path in (("DELETE", "/feed"), ("POST", "/refresh"), ("GET", "/feeds")):
            refused = await proxy.ask(method, path, params={"url": url, "signed": mark})
            assert slug(refused) == ("unauthorized" if token else "token-required")


@pytest.mark.fault("80")
async def test_a_bad_or_expired_signature_is_a_403(tmp_path: Path, origin: Origin) -> None:
    """Row 80: a signature opens its feed until it expires; the token goes first; no secret leaks."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    async with guarded(tmp_path, access_token=TOKEN, signing_keys=KEYS) as proxy:
        mark = signed(url, *KEYS[1:], days=1)
        with capture_logs() as lines:
            assert (await proxy.get(url, signed=mark)).status == 200
            assert slug(await proxy.get(url, signed=f"{mark}0")) == "bad-signature"
            proxy.clock.advance(86_400)
            assert slug(await proxy.get(url, signed=mark)) == "expired-signature"
        token = {"Authorization": f"Bearer {TOKEN}"}
        reply = await proxy.get(url, signed=mark, headers=token)
    assert reply.status == 200
    assert "signed=" not in links(reply.body)["self"][0]
    assert not any(secret in str(lines) for secret in (mark, *KEYS, TOKEN))
    answered = [line for line in lines if line["event"] == "request.answered"]
    assert [line["status"] for line in answered] == [200, 403, 403]


@pytest.mark.fault("80")
async def test_a_client_over_its_rate_is_asked_to_wait(tmp_path: Path, origin: Origin) -> None:
    """Wrong tokens count; supervisors are never refused; other clients are not held up."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    server = {
        "access_token": TOKEN,
        "client_requests_per_minute": 2,
        "trusted_proxies": ("127.0.0.0/8",),
    }
    async with guarded(tmp_path, **server) as proxy:
        one = {"X-Forwarded-For": "192.0.2.66, 2001:db8::1"}
        assert [(await proxy.get(url, headers=one)).status for _ in range(2)] == [401, 401]
        neighbour = {"Authorization": f"Bearer {TOKEN}", "X-Forwarded-For": "198.51.100.9, 2001:db8::2"}
        reply = await proxy.get(url, headers=neighbour)
        assert slug(reply) == "too-many-requests"
        assert 0 < int(reply.headers["Retry-After"]) <= 30
        elsewhere = {**neighbour, "X-Forwarded-For": "2001:db8:0:1::1"}
        assert (await proxy.get(url, headers=elsewhere)).status == 200
        assert {(await proxy.ask("GET", "/healthz", headers=one)).status for _ in range(5)} == {200}
        assert {(await proxy.ask("GET", "/readyz", headers=one)).status for _ in range(5)} == {200}


@pytest.mark.fault("82")
async def test_an_error_of_our_own_is_told_with_nothing_but_its_id(tmp_path: Path, origin: Origin) -> None:
    """No trace, no URL; the log has both, under the same id, and the next request is answered."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
    ((kind,),) = rows(tmp_path / "wholefeed.db", "SELECT kind FROM feed")
    # No program writes such a kind, and so none is built for it.
    rows(tmp_path / "wholefeed.db", f"UPDATE feed SET kind = 'secret of {url}'")
    async with running(a_config(tmp_path)) as proxy:
        with capture_logs(processors=[]) as lines:
            reply = await proxy.ask("GET", "/status", params={"url": url})
        rows(proxy.database, f"UPDATE feed SET kind = '{kind}'")
        assert (await proxy.whole(url)).state == "complete"
    assert (reply.status, slug(reply)) == (500, "internal")
    assert not any(word in reply.body for word in (b"secret", b"ValueError", b"Traceback", b"/feed", b".py"))
    failed, answered = (line for line in lines if line["event"].startswith("request."))
    assert (failed["event"], answered["event"]) == ("request.failed", "request.answered")
    assert (answered["status"], answered["path"]) == (500, "/status")


async def test_every_answer_tells_browsers_to_do_nothing_with_it(proxy: Proxy, origin: Origin) -> None:
    """Feeds, errors and status carry the fields that keep a browser from running a publisher's markup."""
    publish_chain(origin, archives=1)
    await proxy.whole(origin.url("/feed"))
    for method, path in (
        *(("GET", "/feed"), ("GET", "/status"), ("GET", "/nothing"), ("PUT", "/feed"), ("GET", "/feeds")),
    ):
        headers = (await proxy.ask(method, path, params={"url": origin.url("/feed")})).headers
        assert headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox", path
        assert headers["Referrer-Policy"] == "no-referrer", path
        assert len(headers["X-Request-Id"]) == 16


async def test_what_a_problem_repeats_of_a_request_is_escaped(proxy: Proxy) -> None:
    """Row 79: as ASCII alone."""
    hostile = "<script>alert(1)</script>\u202e\u2028\"'\\"
    for target in (f"/feed?url={quote(hostile)}", f"/feed?url=http://a.test/&limit={quote(hostile)}"):
        reply = await proxy.ask("GET", target)
        assert problem(reply)["status"] == 400
        assert reply.body.isascii()
        assert "\u202e".encode() not in reply.body


@pytest.mark.fault("80")
async def test_a_password_that_comes_percent_encoded_is_taken(tmp_path: Path, origin: Origin) -> None:
    """Some readers send the password of a URL undecoded, others decode it."""
    publish_chain(origin, archives=1)
    token = "a b/c@d:e%25f-and-more"
    async with guarded(tmp_path, access_token=token) as proxy:
        for password, status in ((token, 200), (quote(token, safe=""), 200), (quote(token[1:]), 401)):
            headers = {"Authorization": basic(password)}
            assert (await proxy.get(origin.url("/feed"), headers=headers)).status == status


@pytest.mark.fault("80")
async def test_behind_the_slash_one_is_told_how_the_token_is_given_there(
    tmp_path: Path, origin: Origin
) -> None:
    """All parameters belong to the feed's URL in that form: the proxy would send ?token= to the publisher."""
    async with guarded(tmp_path, access_token=TOKEN) as proxy:
        reply = await proxy.ask("GET", f"/{origin.url('/feed')}?token={TOKEN}")
    assert reply.status == 401
    assert b"Basic password" in reply.body
    assert b"/feed?url=" in reply.body
    assert origin.requests == []


@pytest.mark.fault("98")
@pytest.mark.parametrize("is_open", [False, True])
async def test_what_is_put_behind_a_url_by_mistake_is_not_logged(
    tmp_path: Path, origin: Origin, is_open: bool
) -> None:
    """Row 98: behind the slash `&token=` is part of the feed's path, but still a secret, even if refused."""
    server = {} if is_open else {"access_token": TOKEN, "signing_keys": KEYS}
    async with guarded(tmp_path, **server) as proxy:
        for said in ("&signed={}", "&token={}", "&amp;token={}", "%26token%3D{}", "%3Ftoken={}"):
            path = "/feed" + said.format("a-secret-of-ours")
            origin.publish(path, atom())
            head = f"GET /{origin.url(path)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            with capture_logs() as lines:
                reply = await proxy.raw(head.encode())
                await proxy.settled()
            assert reply.startswith(b"HTTP/1.1 200" if is_open else b"HTTP/1.1 401"), said
            (answered,) = [line for line in lines if line["event"] == "request.answered"]
            assert answered["url"] == origin.url("/feed?…")
            assert "a-secret-of-ours" not in str(lines)


@pytest.mark.fault("90")
async def test_numbers_without_end_are_no_error_of_the_proxy_s(proxy: Proxy, origin: Origin) -> None:
    """Row 90: an overlong number is refused, and a year outside any calendar is ignored."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    reply = await proxy.get(url, limit="0" * 5000 + "1")
    assert (reply.status, slug(reply)) == (400, "bad-request")
    for year in ("99999999999999", "10000", "0000", "1"):
        condition = {"If-Modified-Since": f"Sat, 01 Jan {year} 00:00:00 GMT"}
        assert (await proxy.get(url, headers=condition)).status == 200
