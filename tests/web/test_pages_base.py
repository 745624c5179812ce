"""wholefeed.web.pages_base: who gets a page, which answers stop early, and the pages' own files."""

from __future__ import annotations

import io
import json
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy, StartProxy
from tests.web.browsing import BROWSER, browse, read, text
from wholefeed.core.text.urls import resolve
from wholefeed.server.clients import sign
from wholefeed.web.pages_base import opens_page, version_path, wants_page

CHROME = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
FIREFOX = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
LYNX = "text/html, text/plain, text/sgml, text/css, application/xhtml+xml, */*;q=0.01"
W3M = "text/html, text/*;q=0.5, image/*, application/*"


@pytest.mark.parametrize(
    ("accept", "destination"),
    [
        (CHROME, "document"),
        (FIREFOX, None),
        (LYNX, None),
        (W3M, None),
        ("application/json;q=0.5, text/html;q=0.6", None),
    ],
)
def test_browsers_get_a_page(accept: str, destination: str | None) -> None:
    """Graphical and textual browsers, with fetch metadata and without."""
    assert wants_page(accept, destination)


@pytest.mark.parametrize(
    ("accept", "destination"),
    [
        ("*/*", None),
        ("", None),
        ("application/json, text/plain, */*", None),
        ("application/json, text/html", None),
        ("text/plain;q=0.9, text/html;q=0.8", None),
        ("text/html;q=0", None),
        ("text/html;q=nothing", None),
        ("application/rss+xml, application/atom+xml, */*;q=0.1", None),
        (CHROME, "empty"),
        (CHROME, "image"),
        (CHROME, "iframe"),
    ],
)
def test_programs_scripts_and_pictures_get_none(accept: str, destination: str | None) -> None:
    """curl, readers, clients that prefer JSON, and resources included by a page."""
    assert not wants_page(accept, destination)


WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
BLINK = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0"
PLATFORMS = {
    "Firefox": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Chrome": f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {BLINK} Safari/537.36",
    "Edge": f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {BLINK} Safari/537.36 Edg/142.0.0.0",
    "Safari": f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {WEBKIT} Version/26.1 Safari/605.1.15",
    "iPhone": f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) {WEBKIT} Version/26.1 Mobile/15E148"
    " Safari/604.1",
    "Firefox on an iPhone": f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) {WEBKIT} FxiOS/145.0"
    " Mobile/15E148 Safari/605.1.15",
    "Android": f"Mozilla/5.0 (Linux; Android 10; K) {BLINK} Mobile Safari/537.36",
    "Samsung": "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0"
    " Chrome/136.0.0.0 Mobile Safari/537.36",
    "Firefox on Android": "Mozilla/5.0 (Android 16; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0",
}
REQUESTS = tomllib.loads((Path(__file__).parents[1] / "data" / "reader_requests.toml").read_text("utf-8"))[
    "reader"
]


@pytest.mark.parametrize("agent", PLATFORMS.values(), ids=PLATFORMS.keys())
@pytest.mark.parametrize("accept", [CHROME, FIREFOX])
def test_a_browser_is_known_without_fetch_metadata(agent: str, accept: str) -> None:
    """Over plain http from another machine a browser sends nothing but Accept and User-Agent."""
    assert opens_page(accept, agent)


@pytest.mark.parametrize("reader", REQUESTS, ids=lambda reader: reader["name"])
def test_a_reader_gets_the_feed(reader: dict[str, Any]) -> None:
    """By its own Accept and User-Agent; if it names itself, even with a browser's Accept."""
    agent = reader["user_agent"]
    assert not opens_page(reader["accept"], agent)
    assert not any(opens_page(reader["accept"], each) for each in PLATFORMS.values())
    if reader.get("is_named", True):
        assert not opens_page(CHROME, agent)


@pytest.mark.parametrize(
    "agent",
    [
        "",
        "Mozilla/5.0",
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        f"{PLATFORMS['Chrome']} MyReader/1.0",
        PLATFORMS["Firefox"].replace("x86_64", "x86_64; feeds@example.org"),
        PLATFORMS["Firefox"] + " " * 1000,
        "Mozilla/5.0 (" + "x" * 100_000,
        "Mozilla/5.0 (X11)" + " Gecko/1" * 10_000 + " x",
    ],
)
def test_whoever_is_no_browser_gets_the_feed(agent: str) -> None:
    """Whatever else a User-Agent says, quickly; the feed is the safe answer."""
    assert not opens_page(CHROME, agent)


async def test_over_plain_http_a_browser_is_led_to_the_page(proxy: Proxy, origin: Origin) -> None:
    """A feed's URL shows its entries, and the file that a page links is the feed."""
    origin.publish("/feed", atom(an_item("a", 1)))
    url = origin.url("/feed")
    agent = {"User-Agent": PLATFORMS["iPhone"], "Accept": FIREFOX}
    for target in (f"/feed?url={quote(url, safe='')}&limit=3", f"/{url}"):
        opened = await proxy.ask("GET", target, headers=agent, allow_redirects=False)
        assert (opened.status, opened.headers["Cache-Control"]) == (303, "no-store")
        assert "view?url=" in opened.headers["Location"]
    page = f"{proxy.client.make_url('/')}?url={quote(url, safe='')}"
    saved = await proxy.get(url, headers={**agent, "Referer": page})
    assert (saved.status, saved.headers["Content-Type"]) == (200, "application/atom+xml; charset=utf-8")
    elsewhere = await proxy.ask(
        "GET", f"/feed?url={quote(url, safe='')}", headers={**agent, "Referer": "http://blog.test/"},
        allow_redirects=False,
    )  # fmt: skip
    assert elsewhere.status == 303


async def test_a_file_named_with_its_version_may_be_kept_for_good(proxy: Proxy) -> None:
    """A browser asks for a style once a version."""
    named = await proxy.ask("GET", "/" + version_path("page.css"))
    assert (named.status, named.headers["Content-Type"]) == (200, "text/css; charset=utf-8")
    assert "immutable" in named.headers["Cache-Control"]
    unnamed = await proxy.ask("GET", "/static/page.css?v=other")
    assert unnamed.body == named.body
    assert "immutable" not in unnamed.headers["Cache-Control"]


@pytest.mark.parametrize("name", ["nothing.css", "..%2Ftemplates.py", "page.py", ""])
async def test_nothing_else_is_given_out(proxy: Proxy, name: str) -> None:
    """Anything but a file of the folder is 404, under any spelling."""
    assert (await proxy.ask("GET", f"/static/{name}")).status == 404


async def test_style_is_there_for_who_has_no_token_yet(start: StartProxy) -> None:
    """The page that asks for the token has its style, too."""
    proxy = await start(server={"access_token": "a token for readers"})
    assert (await proxy.ask("GET", "/static/page.css")).status == 200
    assert (await proxy.ask("GET", "/feeds")).status == 401


VARY = "Accept-Encoding, Accept, Sec-Fetch-Dest"
READERS = [
    {},
    {"Accept": "*/*"},
    {"Accept": "application/rss+xml, text/html;q=0.5, */*"},
    {"Accept": BROWSER["Accept"]},
    {"Accept": "*/*", "Sec-Fetch-Dest": "document"},
    {"Accept": "application/atom+xml, */*", "Sec-Fetch-Dest": "document"},
    {"Accept": BROWSER["Accept"], "Sec-Fetch-Dest": "empty"},
    {"Accept": BROWSER["Accept"], "Sec-Fetch-Dest": "iframe"},
]


@pytest.mark.parametrize("form", ["/feed?url={quoted}", "/feed/?url={quoted}", "/{url}", "/{url}?a=b%26c&d"])
async def test_who_opens_a_feed_in_a_browser_is_led_to_what_can_be_read(
    proxy: Proxy, origin: Origin, form: str
) -> None:
    """The redirect is a relative URL, below any prefix of a reverse proxy."""
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    target = form.format(url=url, quoted=quote(url, safe=""))
    asked = url + target.partition(url)[2]
    reply = await browse(proxy, target)
    assert (reply.status, reply.headers["Vary"]) == (303, VARY)
    assert not reply.headers["Location"].startswith("/")
    expected = f"/view?url={quote(asked, safe='')}"
    assert resolve(f"http://p.test{target}", reply.headers["Location"]) == f"http://p.test{expected}"
    assert (
        resolve(f"http://p.test/feeds{target}", reply.headers["Location"]) == f"http://p.test/feeds{expected}"
    )


@pytest.mark.parametrize("headers", READERS)
async def test_readers_get_the_feed_whatever_they_name_in_accept(
    proxy: Proxy, origin: Origin, headers: dict[str, str]
) -> None:
    """Vary tells caches so, with 304 too."""
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    plain = await proxy.whole(url)
    reply = await proxy.get(url, headers=headers)
    assert (reply.status, reply.body, reply.headers["Vary"]) == (200, plain.body, VARY)
    again = await proxy.get(url, headers={**headers, "If-None-Match": reply.headers["ETag"]})
    assert (again.status, again.headers["Vary"]) == (304, VARY)


async def test_the_view_of_a_reader_with_a_cap_is_kept(proxy: Proxy, origin: Origin) -> None:
    """Parameters of the feed go along; `wait`, which is about one request, does not."""
    url = origin.url("/feed")
    query = "&limit=5&since=2023-11-14T00:00:00Z&wait=1"
    location = (await browse(proxy, f"/feed?url={quote(url, safe='')}{query}")).headers["Location"]
    assert location == f"./view?url={quote(url, safe='')}&limit=5&since=2023-11-14T00%3A00%3A00Z"


async def test_what_lets_a_visitor_in_goes_along(start: StartProxy, origin: Origin) -> None:
    """A token goes as a session, not in a shared URL."""
    origin.publish("/feed", atom(an_item("a")))
    url, key, token = origin.url("/feed"), "k" * 32, "a token for readers"
    server = {"access_token": token, "signing_keys": (key,)}
    proxy = await start(server=server)
    target = f"/feed?url={quote(url, safe='')}"
    assert (await browse(proxy, target)).status == 401
    for proof in (f"&token={quote(token)}", f"&signed={sign(url, [key])}"):
        led = await browse(proxy, target + proof)
        assert led.status == 303
        assert "token" not in led.headers["Location"]
        reply = await browse(proxy, urljoin("/feed", led.headers["Location"]) + "&wait=8")
        assert reply.status == 200
        assert "1 entry" in text(reply)


@pytest.mark.parametrize("path", ["/feed", "/feed/", "/view"])
async def test_a_signature_begins_no_session_whatever_stands_beside_it(start: StartProxy, path: str) -> None:
    """A signature opens one feed: an unchecked token beside it opens no other."""
    url, key = "https://example.org/feed", "k" * 32
    server = {"access_token": "a token for readers", "signing_keys": (key,)}
    proxy = await start(server=server)
    target = f"{path}?url={quote(url, safe='')}&signed={sign(url, [key])}&token=another"
    led = await browse(proxy, target)
    assert led.status == 303
    assert "Set-Cookie" not in led.headers
    assert (await browse(proxy, "/feeds")).status == 401


async def test_a_token_at_the_folder_of_feeds_begins_a_session_too(start: StartProxy) -> None:
    """A cookie set at `/feed/` would be good below it alone."""
    token = "a token for readers"
    proxy = await start(server={"access_token": token})
    target = f"/feed/?url=example.org&token={quote(token)}"
    while (led := await browse(proxy, target)).status == 303:
        target = urljoin(target, led.headers["Location"])
    assert target == "/view?url=example.org"
    assert (await browse(proxy, "/feeds")).status == 200


FAILURES = {
    "/feed": (400, "bad-request"),
    "/feed?url=ftp%3A%2F%2Fo.test%2F": (400, "invalid-url"),
    "/feed?url=http%3A%2F%2F10.0.0.1%2F": (403, "destination-forbidden"),
    "/http://10.0.0.1/": (403, "destination-forbidden"),
    "/nothing/here": (404, "not-found"),
    "/view": (400, "bad-request"),
    "/status?url=http%3A%2F%2Fo.test%2F": (404, "unknown-feed"),
}


@pytest.mark.parametrize("target", FAILURES)
async def test_errors_are_told_to_people_in_words_and_to_programs_in_json(proxy: Proxy, target: str) -> None:
    """The page has advice, the request's id, and a form to try again."""
    status, slug = FAILURES[target]
    problem = await proxy.ask("GET", target, headers={"Accept": "*/*"})
    assert (problem.status, problem.headers["Content-Type"]) == (
        status,
        "application/problem+json; charset=utf-8",
    )
    told = json.loads(problem.body)
    assert list(told) == ["detail", "type", "title", "status", "request_id"]
    assert told["type"] == f"urn:wholefeed:{slug}"
    reply = await browse(proxy, target)
    while reply.status == 303:
        reply = await browse(proxy, urljoin(target, reply.headers["Location"]) + "&wait=8")
    assert reply.status == status
    said = text(reply)
    assert (told["detail"] in said) != (slug == "not-found")  # of that there is no more to tell
    assert "see whether a browser can open" not in said
    assert reply.headers["X-Request-Id"] in said
    assert slug in said
    assert len(read(reply).actions) == 1
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" not in policy
    assert reply.headers["Cache-Control"] == "no-store"


async def test_a_file_that_is_no_list_is_told_from_an_address_that_fails(proxy: Proxy) -> None:
    """The page names the wanted file, and says nothing about addresses."""
    reply = await browse(proxy, "/opml", method="POST", data={"file": io.BytesIO(b"<html>no list")})
    assert reply.status == 422
    assert "That file is no list of subscriptions. Go back, and choose the file" in text(reply)
    assert "a browser can open" not in text(reply)


async def test_what_was_typed_is_shown_again_as_text(proxy: Proxy) -> None:
    """People can mend it; it is no markup of the page."""
    reply = await browse(proxy, "/view?url=" + quote('x"><script>alert(1)</script>'))
    assert reply.status == 400
    assert b"<script>alert" not in reply.body
    assert b'value="x&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"' in reply.body


async def test_the_warning_of_a_partial_feed_leads_to_its_page(proxy: Proxy, origin: Origin) -> None:
    """That page tells the missing parts and the reason in words (R16)."""
    origin.publish("/feed", atom(an_item("a"), prev_archive="/gone"))
    url = origin.url("/feed")
    reply = await proxy.whole(url)
    assert reply.state == "partial"
    assert f"/?url={quote(url, safe='')}".encode() in reply.body


@pytest.mark.parametrize("target", ["/feed?url={0}", "/{0}"])
async def test_a_reader_that_names_html_is_refused_in_no_page(
    proxy: Proxy, origin: Origin, target: str
) -> None:
    """miniflux sends `Accept: text/html` at q=1: without Sec-Fetch-Dest an error is a problem document."""
    asked = target.format(origin.url("/nothing"))
    reply = await proxy.ask("GET", asked, headers={"Accept": "text/html,application/rss+xml,*/*;q=0.9"})
    assert reply.status == 404
    assert reply.headers["Content-Type"] == "application/problem+json; charset=utf-8"


async def test_a_failure_says_when_to_come_again(proxy: Proxy, origin: Origin) -> None:
    """The page has the header fields of the problem document."""
    origin.fault("/feed", Status(503, headers=(("Retry-After", "120"),)))
    target = f"/view?url={quote(origin.url('/feed'), safe='')}"
    problem = await proxy.ask("GET", target)
    reply = await browse(proxy, target)
    assert (problem.status, reply.status) == (502, 502)
    assert reply.headers.get("Retry-After") == problem.headers.get("Retry-After")
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
