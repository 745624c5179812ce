"""The page at /, and what programs are told there."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import Proxy, StartProxy
from tests.web.page.browsing import BROWSER, browse, read, text
from wholefeed.core.model import Family, Kind, State
from wholefeed.core.words import STATES

TOKEN = "a token for readers"


async def known(proxy: Proxy, *urls: str) -> None:
    """Let the store know feeds, each asked for a second after the one before."""
    for number, url in enumerate(urls):
        now = 1_700_000_000.0 + number
        await proxy.store.create_feed(url, fetch_url=url, family=Family.ATOM, kind=Kind.PLAIN, now=now)


def listed(page: bytes, *urls: str) -> list[str]:
    """Those of the URLs that a page links, in its order."""
    links = {url: page.find(f'href="./?url={quote(url, safe="/")}"'.encode()) for url in urls}
    return sorted((url for url in urls if links[url] >= 0), key=lambda url: links[url])


async def test_a_program_is_told_how_to_subscribe(proxy: Proxy) -> None:
    """`curl localhost:8080`: a few lines of plain text with the proxy's own address."""
    reply = await proxy.ask("GET", "/", headers={"Host": "localhost:8080"})
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert reply.headers["Vary"] == "Accept"
    lines = reply.body.decode().splitlines()
    assert len(lines) == 5
    assert "http://localhost:8080/feed?url=FEED-URL" in reply.body.decode()


async def test_a_program_without_the_token_is_told_that_one_is_needed(start: StartProxy) -> None:
    """The five lines are no secret; the token is, and is not among them."""
    proxy = await start(server={"access_token": TOKEN})
    reply = await proxy.ask("GET", "/")
    assert reply.status == 200
    assert b"/feed?token=TOKEN&url=" in reply.body
    assert TOKEN.encode() not in reply.body
    assert (await proxy.ask("GET", "/?url=https://example.org/")).status == 401


async def test_a_program_is_told_where_only_signed_urls_are_good(start: StartProxy) -> None:
    """Where there are keys and no token, how one gets a signature."""
    proxy = await start(server={"signing_keys": ("a key that signs",)})
    reply = await proxy.ask("GET", "/")
    assert b"wholefeed sign URL" in reply.body


async def test_a_browser_gets_a_page_that_says_how_to_begin(proxy: Proxy) -> None:
    """A form that asks for a URL, relative links, a policy of its own, and nothing known yet."""
    reply = await browse(proxy)
    assert reply.status == 200
    assert "script-src 'self'" in reply.headers["Content-Security-Policy"]
    assert reply.headers["Cache-Control"] == "no-store"
    assert "Accept" in reply.headers["Vary"]
    page = read(reply)
    assert page.actions == ["./", "./opml"]
    assert "None yet." in text(reply)
    assert "./opml" in page.links


async def test_a_page_s_forms_say_where_they_come_from(proxy: Proxy) -> None:
    """With `no-referrer` a browser sends `Origin: null` with the page's own forms, and they are refused."""
    assert (await browse(proxy)).headers["Referrer-Policy"] == "same-origin"
    assert (await proxy.ask("GET", "/feeds")).headers["Referrer-Policy"] == "no-referrer"


async def test_known_feeds_are_listed_with_what_each_is(proxy: Proxy, origin: Origin) -> None:
    """State and its meaning, entries, documents, last and next refresh; a link to its page, and two forms."""
    publish_chain(origin, archives=1, entries=2)
    url = origin.url("/feed?a=1&b=2")
    titled = atom(an_item("a")).replace(b"A feed", b"On &lt;script&gt;\n and on")
    origin.publish("/feed?a=1&b=2", titled)
    await proxy.whole(url)
    reply = await browse(proxy)
    quoted = quote(url, safe="")
    assert read(reply).actions[2:4] == [f"./refresh?url={quoted}", f"./forget?url={quoted}"]
    shown = text(reply)
    assert "1 feed, sorted by when they were last asked for" in shown
    assert "Remembered" in shown
    assert "remembered" not in shown
    assert STATES[State.REMEMBERED].meaning in shown
    assert STATES[State.PARTIAL].meaning not in shown
    assert "Forget for good" in shown
    assert "On <script> and on" in shown
    assert "<script>" not in reply.body.decode()


async def test_feeds_are_listed_last_asked_for_first_or_by_url(proxy: Proxy) -> None:
    """Both orders, as the links of the page ask for them."""
    first, second, third = "https://c.test/", "https://a.test/", "https://b.test/"
    await known(proxy, first, second, third)
    assert listed((await browse(proxy)).body, first, second, third) == [third, second, first]
    by_url = await browse(proxy, "/?sort=url")
    assert listed(by_url.body, first, second, third) == [second, third, first]


async def test_the_list_is_filtered_by_what_a_url_holds(proxy: Proxy) -> None:
    """In any case, taken literally; the words stay in the box, and all feeds are a link away."""
    one, other = "https://Example.org/100%25_feed".lower(), "https://other.test/100xfeed"
    await known(proxy, one, other)
    found = await browse(proxy, "/?q=EXAMPLE")
    assert listed(found.body, one, other) == [one]
    assert b'value="EXAMPLE"' in found.body
    assert "1 feed has" in text(found)
    assert listed((await browse(proxy, "/?q=100%2525_")).body, one, other) == [one]
    none = await browse(proxy, '/?q="><b>')
    assert listed(none.body, one, other) == []
    assert b"<b>" not in none.body


async def test_more_than_a_hundred_feeds_are_listed_in_parts(proxy: Proxy) -> None:
    """Each feed once, the parts linked; a part that is not there is the last one, nonsense the first."""
    urls = [f"https://example.org/{number:03}" for number in range(205)]
    await known(proxy, *urls)
    first = await browse(proxy, "/?sort=url&q=example")
    assert listed(first.body, *urls) == urls[:100]
    assert "./?q=example&sort=url&page=2" in read(first).links
    second = await browse(proxy, "/?sort=url&page=2")
    assert listed(second.body, *urls) == urls[100:200]
    assert {"./?sort=url", "./?sort=url&page=3"} <= set(read(second).links)
    for number in ("3", "4", "9999999"):
        assert listed((await browse(proxy, f"/?sort=url&page={number}")).body, *urls) == urls[200:]
    for nonsense in ("0", "-1", "x", "9" * 400, "\u0663"):
        page = await browse(proxy, f"/?sort=url&page={quote(nonsense)}")
        assert listed(page.body, *urls) == urls[:100]


async def test_what_stands_in_a_url_is_never_markup(proxy: Proxy) -> None:
    """A feed's URL is a stranger's text."""
    url = "https://example.org/?a='%3Cscript%3E&b=%22onload=1"
    await known(proxy, url)
    page = (await browse(proxy)).body.decode()
    assert "<script>" not in page.replace("<script src", "")
    assert "'%3Cscript" not in page


@pytest.mark.parametrize("public_url", ["", "https://feeds.example/w"])
async def test_the_address_shown_is_the_one_that_readers_use(start: StartProxy, public_url: str) -> None:
    """What is put in front of a feed's URL works where the page was opened."""
    proxy = await start(server={"public_url": public_url})
    reply = await browse(proxy, headers={**BROWSER, "Host": "localhost:8080"})
    assert f"{public_url or 'http://localhost:8080'}/feed?url=" in text(reply)


async def test_a_target_of_another_proxy_is_still_refused(proxy: Proxy) -> None:
    """`/` is a page now, but this is no forward proxy (RFC 9112, 3.2.2); its own address is understood."""
    rest = b"HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert b" 421 " in (await proxy.raw(b"GET http://other.example/ " + rest)).split(b"\r\n")[0]
    assert b" 200 " in (await proxy.raw(b"GET http://localhost/ " + rest)).split(b"\r\n")[0]
