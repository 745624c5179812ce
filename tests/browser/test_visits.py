"""A person's visit in a real browser: login, other sites, less trusted names, a prefix."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from tests.bringing import an_opml
from tests.browser.visiting import LAN_NAME, TOKEN, choose_list, visiting
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The browser's event loop."""


@pytest.mark.parametrize("host", ["127.0.0.1", LAN_NAME])
@pytest.mark.sample("nas*")
async def test_a_visit_from_login_to_logout(filled: Proxy, origin: Origin, host: str) -> None:
    """Over http and a name of the network, browsers state a form's place by Origin alone."""
    async with visiting(filled, host=host) as visit:
        page = visit.page
        await visit.open(url=origin.url("/partial"))
        await page.get_by_label("Access token").fill(TOKEN)
        await page.keyboard.press("Enter")
        await page.get_by_role("link", name=origin.url("/partial"), exact=True).wait_for()
        assert "?url=" in page.url
        assert await page.evaluate("document.cookie") == ""
        origin.forget_requests()
        await visit.open(q="partial")
        await page.get_by_role("button", name="Refresh A feed").click()
        await page.get_by_text("no new entries", exact=True).wait_for()
        assert origin.counts()["/partial"] == 1
        assert page.url == f"{visit.base}?q=partial"
        await page.get_by_label("Check A feed").check()
        await page.get_by_role("button", name="Forget", exact=True).click()
        await page.get_by_role("button", name="for good").click()
        await page.get_by_text("1 feed is forgotten, and").wait_for()
        await visit.open()
        await page.get_by_role("link", name="All 2").wait_for()
        await page.get_by_role("button", name="Log out").click()
        await page.get_by_label("Access token").wait_for()
        await visit.open("feeds")
        assert await page.get_by_label("Access token").count() == 1


@pytest.mark.parametrize("elsewhere", ["evil.test", "127.0.0.1"])
@pytest.mark.sample("127*")
async def test_a_form_of_another_origin_is_refused(filled: Proxy, origin: Origin, elsewhere: str) -> None:
    """For another site's form the browser sends no cookie; for another port's it does."""
    port = origin.url("/").rpartition(":")[2]
    async with visiting(filled) as visit:
        await visit.login()
        await visit.page.get_by_role("heading", name="Known feeds").wait_for()
        action = f"{visit.base}forget?url={origin.url('/feed')}"
        form = f'<form method="post" action="{action}"><button>Win</button></form>'
        origin.publish("/evil", form, content_type="text/html")
        await visit.page.goto(f"http://{elsewhere}:{port}evil")
        async with visit.page.expect_navigation() as navigation:
            await visit.page.get_by_role("button", name="Win").click()
        answer = await navigation.value
        assert answer is not None
        assert answer.status == 403
        sent = await answer.request.all_headers()
        assert ("cookie" in sent) == (elsewhere == "127.0.0.1")
        assert len(await filled.service.feeds()) == 3


@pytest.mark.parametrize("host", ["127.0.0.1", LAN_NAME])
@pytest.mark.sample("nas*")
async def test_what_is_put_in_front_of_a_url_is_copied(filled: Proxy, host: str) -> None:
    """By the clipboard where scripts have one, else by selecting it."""
    async with visiting(filled, host=host) as visit:
        await visit.login()
        page = visit.page
        await page.get_by_role("button", name="Copy").click()
        await page.get_by_role("button", name="Copied").wait_for()
        await page.get_by_label("Feed or site").focus()
        await page.keyboard.press("Control+v")
        assert await page.get_by_label("Feed or site").input_value() == f"{visit.base}feed?url="


@asynccontextmanager
async def behind_prefix(proxy: Proxy, prefix: str) -> AsyncIterator[str]:
    """Run a reverse proxy that strips a prefix silently; yield the outer URL."""

    async def forward(request: web.Request) -> web.StreamResponse:
        target = proxy.client.make_url(str(request.rel_url).removeprefix(prefix))
        async with ClientSession(auto_decompress=False) as session:
            answer = await session.request(
                request.method,
                target,
                headers=request.headers,
                data=await request.read(),
                allow_redirects=False,
            )
            return web.Response(status=answer.status, headers=answer.headers, body=await answer.read())

    app = web.Application()
    app.router.add_route("*", prefix + "/{rest:.*}", forward)
    async with TestServer(app, host="127.0.0.1") as server:
        yield str(server.make_url(prefix + "/"))


async def test_below_a_prefix_links_forms_and_redirects_stay_there(filled: Proxy, origin: Origin) -> None:
    """Links are relative: the reverse proxy need not name the prefix."""
    async with behind_prefix(filled, "/our/feeds") as base, visiting(filled) as visit:
        visit.base = base
        page = visit.page
        await visit.open(q="partial")
        await page.get_by_label("Access token").fill(TOKEN)
        await page.get_by_role("button", name="Log in").click()
        await page.wait_for_url(base + "?q=partial")
        (session,) = await page.context.cookies()
        assert session["path"] == "/our/feeds"
        assert await page.evaluate("getComputedStyle(document.querySelector('h1')).margin") != ""
        await page.get_by_role("button", name="Refresh A feed").click()
        await page.get_by_text("no new entries", exact=True).wait_for()
        assert page.url == base + "?q=partial"
        await page.get_by_role("link", name="wholefeed").click()
        await page.wait_for_url(base)
        assert visit.said == []


DROP = """(text) => {
    const dropped = new DataTransfer();
    dropped.items.add(new File([text], "mine.opml", { type: "text/x-opml" }));
    const options = { dataTransfer: dropped, bubbles: true, cancelable: true };
    for (const name of ["dragover", "drop"]) document.dispatchEvent(new DragEvent(name, options));
}"""


async def test_a_list_that_is_dropped_is_brought_in_before_one_s_eyes(filled: Proxy, origin: Origin) -> None:
    """B4: the page tells how far it is, and then the totals, without a click."""
    origin.publish("/late", atom(an_item("late"), feed_id="urn:late"))
    async with visiting(filled) as visit:
        await visit.login()
        page = visit.page
        await page.get_by_role("heading", name="Bring in your subscriptions").wait_for()
        with origin.held("/late") as gate:
            document = an_opml(origin.url("/feed"), origin.url("/late")).decode()
            await page.evaluate(DROP, document)
            await page.get_by_text("1 of 2 feeds asked, 1 to go").wait_for()
            await gate.reached()
        await page.get_by_role("heading", name="The largest gains").wait_for()
        assert "2 feeds: 3 entries before, 7 now" in await page.inner_text("main")
        assert visit.said == []


async def test_a_list_of_subscriptions_is_changed_to_the_proxy_and_back(filled: Proxy) -> None:
    """With script and without; the way back restores the first."""
    given = (
        b'<opml version="2.0"><body><outline text="A" xmlUrl="https://example.org/feed"/>\n'
        b'<outline text="B" xmlUrl="ftp://example.org/feed"/></body></opml>\r\n'
    )
    for has_script in (True, False):
        async with visiting(filled, java_script_enabled=has_script) as visit:
            await visit.login()
            changed = given
            for button, is_proxied in (("Change to this proxy", True), ("Change back", False)):
                await visit.open()
                await choose_list(visit, changed)
                await visit.page.get_by_text("Only change the addresses").click()
                await visit.page.get_by_role("button", name=button).click()
                await visit.page.get_by_role("heading", name="1 subscription changed").wait_for()
                await visit.page.get_by_text("ftp://example.org/feed").wait_for()
                async with visit.page.expect_download() as download:
                    await visit.page.get_by_role("button", name="Download the list").click()
                file = await download.value
                assert file.suggested_filename == "subscriptions.opml"
                changed = (await file.path()).read_bytes()
                assert (f'xmlUrl="{visit.base}feed?url='.encode() in changed) == is_proxied
            assert changed == given
            assert visit.said == []
