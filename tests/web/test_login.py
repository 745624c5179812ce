"""Logging in: the token, the session cookie, and the redirect afterwards."""

from __future__ import annotations

import asyncio
import io
import re
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import quote, unquote, urlencode

import pytest
from aiohttp import web

from tests.feeds import publish_chain
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Proxy, Reply, StartProxy
from tests.web.browsing import BROWSER, browse, read, submit, text
from wholefeed.server.clients import SESSION_SECONDS, issue_session
from wholefeed.web.pages import own_path
from wholefeed.web.pages_base import COOKIE

TOKEN = "a token for readers"


@pytest.fixture
async def closed(start: StartProxy) -> Proxy:
    """A proxy with a token and no session yet."""
    return await start(server={"access_token": TOKEN})


def led_on_to(path: str) -> str:
    """Return the redirect after a login."""
    return f"/login?{urlencode({'next': path})}"


def cookie(reply: Reply) -> Any:
    """Return the session that an answer sets."""
    return SimpleCookie(reply.headers["Set-Cookie"])[COOKIE]


async def test_a_browser_without_the_token_is_asked_for_it(closed: Proxy) -> None:
    """401 without a challenge, which would open the browser's own dialogue."""
    reply = await browse(closed, "/?url=https://example.org/")
    assert reply.status == 401
    assert "Access token" in text(reply)
    assert reply.headers["WWW-Authenticate"] == 'Bearer realm="wholefeed"'
    assert b'action="./login?next=%2F%3Furl%3Dhttps%3A%2F%2Fexample.org%2F"' in reply.body


async def test_programs_and_readers_get_what_they_always_got(closed: Proxy) -> None:
    """JSON with a challenge for Basic, also to programs that accept HTML."""
    for target, headers in (
        ("/feeds", {}),
        ("/feed?url=https://example.org/", {"Accept": "application/rss+xml, text/html;q=0.5"}),
        ("/feed?url=https://example.org/", {"Accept": BROWSER["Accept"]}),
    ):
        reply = await closed.ask("GET", target, headers=headers)
        assert reply.status == 401
        assert reply.headers["Content-Type"].startswith("application/problem+json")
        assert "Basic" in reply.headers["WWW-Authenticate"]
    assert "Access token" in text(await browse(closed, "/feed?url=https://example.org/"))


async def test_the_token_begins_a_session_that_is_good_for_everything(closed: Proxy, origin: Origin) -> None:
    """The login redirects to the requested page; scripts and other sites cannot read the cookie."""
    publish_chain(origin, archives=1)
    wanted = f"/?url={quote(origin.url('/feed'), safe='')}"
    reply = await submit(closed, led_on_to(wanted), token=f" {TOKEN}\n")
    assert (reply.status, reply.headers["Location"]) == (303, f".{wanted}")
    session = cookie(reply)
    assert (session["httponly"], session["samesite"]) == (True, "Lax")
    assert int(session["max-age"]) == SESSION_SECONDS
    assert not session["secure"]
    assert TOKEN not in session.value
    assert (await browse(closed, wanted)).status == 200
    await closed.settled()
    assert (await closed.get(origin.url("/feed"))).status == 200
    assert (await closed.ask("GET", "/feeds")).status == 200
    assert (await browse(closed, "/login")).headers["Location"] == "./"


async def test_a_wrong_token_begins_none(closed: Proxy) -> None:
    """The page says so, and keeps the redirect."""
    for given in ("", "another token", TOKEN[:-1], TOKEN.upper(), "\u00fc"):
        reply = await submit(closed, led_on_to("/?q=a"), token=given)
        assert reply.status == 401
        assert "Set-Cookie" not in reply.headers
        assert "That is not the token." in text(reply)
        assert read(reply).actions == ["./login?next=%2F%3Fq%3Da"]
    assert b"not the token" in (await browse(closed, "/?token=wrong")).body
    assert (await browse(closed)).status == 401


async def test_who_tries_many_tokens_has_to_wait(closed: Proxy) -> None:
    """Ten tries a minute; the right token waits as well, or trying would reveal it."""
    for _ in range(10):
        assert (await submit(closed, "/login", token="wrong")).status == 401
    reply = await submit(closed, led_on_to("/?q=a"), token=TOKEN)
    assert reply.status == 429
    assert 1 <= int(reply.headers["Retry-After"]) <= 6
    assert "Set-Cookie" not in reply.headers
    assert read(reply).actions == ["./login?next=%2F%3Fq%3Da"]
    program = await closed.ask("POST", "/login", data={"token": TOKEN})
    assert program.headers["Content-Type"].startswith("application/problem+json")
    assert (await closed.ask("GET", "/feeds", headers={"Authorization": f"Bearer {TOKEN}"})).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example", "https://evil.example/", "/\\evil.example", "/.evil", "/../x", "/%2f/evil",
        "/a\r\nX: y", "evil.example", "", "/https://evil.example/", "javascript:alert(1)", "/?\u00fc", "/a/b",
    ],
)  # fmt: skip
async def test_a_login_leads_to_no_other_site(closed: Proxy, path: str) -> None:
    """There is no open redirect: anything but a plain path of ours leads home."""
    reply = await submit(closed, led_on_to(path), token=TOKEN)
    assert (reply.status, reply.headers["Location"]) == (303, "./")
    assert own_path(path) == ""


async def test_a_login_ends_with_the_session_with_the_token_and_by_hand(closed: Proxy) -> None:
    """After thirty days, after a change of token, and at a logout."""
    await submit(closed, "/login", token=TOKEN)
    assert (await browse(closed)).status == 200
    closed.clock.advance(SESSION_SECONDS - 10)
    assert (await browse(closed)).status == 200
    closed.clock.advance(20)
    assert (await browse(closed)).status == 401
    await submit(closed, "/login", token=TOKEN)
    (action,) = [each for each in read(await browse(closed)).actions if "logout" in each]
    out = await submit(closed, action[1:])
    assert (out.status, out.headers["Location"]) == (303, "./")
    assert (await browse(closed)).status == 401
    soon = int(closed.clock()) + 60
    for token, status in (("another token for all", 401), (TOKEN, 200)):
        session = issue_session(token, expires_at=soon)
        assert (await browse(closed, headers={"Cookie": f"{COOKIE}={session}"})).status == status


@pytest.mark.parametrize(
    ("server", "fields", "is_secure"),
    [
        ({"public_url": "https://feeds.example/w/"}, {}, True),
        ({"public_url": "https://feeds.example"}, {"Origin": "http://localhost:8080"}, False),
        ({"trusted_proxies": ("127.0.0.0/8",)}, {"X-Forwarded-Proto": "https"}, True),
        ({}, {"X-Forwarded-Proto": "https"}, False),
        ({}, {"Origin": "https://localhost:8080", "Sec-Fetch-Site": "same-origin"}, True),
    ],
)
async def test_the_cookie_is_for_https_where_the_browser_speaks_that(
    start: StartProxy, server: dict[str, Any], fields: dict[str, str], is_secure: bool
) -> None:
    """Over http a Secure cookie would never return."""
    headers = {"Host": "localhost:8080", **fields}
    proxy = await start(server={"access_token": TOKEN, **server})
    session = cookie(await submit(proxy, "/login", token=TOKEN, headers=headers))
    assert bool(session["secure"]) == is_secure


async def test_the_cookie_names_no_path(closed: Proxy) -> None:
    """RFC 6265, 5.1.4: the default is the URL's folder, below any prefix."""
    for reply in (
        await browse(closed, f"/?token={quote(TOKEN)}"),
        await submit(closed, "/login", token=TOKEN),
        await submit(closed, "/logout"),
    ):
        assert "Path" not in reply.headers["Set-Cookie"]
    assert (await browse(closed)).status == 401


@pytest.mark.parametrize("name", ["token", "amp;token"])
async def test_a_token_in_the_address_of_a_feed_s_page_becomes_a_session_too(
    closed: Proxy, origin: Origin, name: str
) -> None:
    """The page's own forms and links bear no token and would ask for it."""
    publish_chain(origin, archives=1)
    wanted = f"url={quote(origin.url('/feed'), safe='')}"
    reply = await browse(closed, f"/?{name}={quote(TOKEN)}&{wanted}")
    assert (reply.status, unquote(reply.headers["Location"])) == (303, f"./?{unquote(wanted)}")
    action = read(await browse(closed, f"/?{wanted}")).actions[0]
    assert (await submit(closed, action.removeprefix("."))).status == 303


async def test_where_there_is_no_token_there_is_nothing_to_log_in_with(start: StartProxy) -> None:
    """An open proxy asks nobody; a proxy with signing keys alone says so."""
    proxy = await start()
    assert (await browse(proxy, "/login")).status == 303
    assert "Set-Cookie" not in (await submit(proxy, "/login", token="")).headers
    proxy = await start(server={"signing_keys": ("a key that signs",)})
    for reply in (await browse(proxy), await submit(proxy, "/login", token="")):
        assert reply.status == 403
        assert "Only signed addresses here" in text(reply)


@pytest.mark.parametrize("body", [b"\xff\xfe%", b"token=" + b"&a=b" * 50, b"token", b""])
async def test_a_form_that_is_none_logs_nobody_in(closed: Proxy, body: bytes) -> None:
    """A malformed form is refused, never a server error."""
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=nothing"}
    assert (await browse(closed, "/login", method="POST", headers=headers, data=body)).status == 401


@pytest.mark.fault("95")
async def test_a_form_without_end_is_refused(closed: Proxy) -> None:
    """Row 95: a login reads at most 4 KB."""
    reply = await browse(closed, "/login", method="POST", data=io.BytesIO(b"a" * 5000))
    assert reply.status == web.HTTPRequestEntityTooLarge.status_code
    said = b"POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    async with asyncio.timeout(300):
        for body in (
            b"Content-Length: 5000\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n" + b"a" * 5000,
        ):
            _, writer = opened = await asyncio.open_connection(closed.client.host, closed.client.port)
            writer.write(said + body)
            assert (await opened[0].readline()).startswith(b"HTTP/1.1 413 ")
            writer.close()


@pytest.mark.fault("95")
async def test_of_one_address_few_forms_are_waited_for(closed: Proxy) -> None:
    """Row 95: a form counts as a try when it begins."""
    answered: asyncio.Queue[bytes] = asyncio.Queue()

    async def begin() -> None:
        reader, writer = await asyncio.open_connection(closed.client.host, closed.client.port)
        writer.write(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntoken=")
        try:
            answered.put_nowait(await reader.readline())
        finally:
            writer.close()

    begun = [asyncio.create_task(begin()) for _ in range(15)]
    async with asyncio.timeout(300):
        for _ in range(5):
            assert (await answered.get()).startswith(b"HTTP/1.1 429 ")
    assert answered.empty()
    for each in begun:
        each.cancel()
    await asyncio.wait(begun)


async def test_another_site_logs_nobody_in_or_out(closed: Proxy) -> None:
    """Forms of other sites are refused before they are read."""
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    assert (await submit(closed, "/login", token=TOKEN, headers=elsewhere)).status == 403
    await submit(closed, "/login", token=TOKEN)
    assert (await submit(closed, "/logout", headers=elsewhere)).status == 403
    assert (await browse(closed)).status == 200


async def test_neither_token_nor_session_stands_on_a_page(closed: Proxy) -> None:
    """Page contents may be copied, printed and sent on."""
    await submit(closed, "/login", token=TOKEN)
    page = (await browse(closed)).body.decode()
    assert TOKEN not in page
    assert not re.search(r"\b1\d{9}\.[A-Za-z0-9_-]{43}", page)


async def test_a_form_that_does_not_come_is_given_up(closed: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unfinished forms would otherwise occupy all connections."""
    set_constant(monkeypatch, "FORM_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection(closed.client.host, closed.client.port)
    writer.write(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntoken=")
    async with asyncio.timeout(300):
        status = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert status.startswith(b"HTTP/1.1 401 ")
