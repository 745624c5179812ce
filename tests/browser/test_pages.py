"""Common properties of every page of a visit, in a real browser."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.bringing import an_opml
from tests.browser.visiting import TOKEN, Visit, choose_list, visiting
from tests.origin import Origin
from tests.running import Proxy

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The browser's event loop."""


LEFT = b"""<opml version="2.0"><body><outline text="A" xmlUrl="https://example.org/feed"/>
<outline text="B" xmlUrl="ftp://example.org/feed"/></body></opml>"""


async def pages(visit: Visit, origin: Origin) -> AsyncIterator[str]:
    """Go from page to page, and name each."""
    page = visit.page
    await visit.open()
    yield "login"
    await visit.login("not the token")
    yield "wrong token"
    await visit.login()
    await page.get_by_role("heading", name="Known feeds").wait_for()
    yield "home"
    await visit.open(q="no feed has this")
    yield "home, nothing found"
    await visit.open("forget", url=origin.url("/partial"))
    await page.get_by_role("button", name="Forget it for good").wait_for()
    yield "about to forget"
    await visit.open(forgotten=origin.url("/never"))
    await page.get_by_text("Forgotten, and").wait_for()
    yield "forgotten"
    await choose_list(visit, LEFT)
    await page.get_by_text("Only change the addresses").click()
    await page.get_by_role("button", name="Change to this proxy").click()
    await page.get_by_role("button", name="Download the list").wait_for()
    yield "subscriptions"
    await visit.open()
    await choose_list(visit, an_opml(origin.url("/feed"), origin.url("/never"), "urn:x"))
    await page.get_by_role("button", name="Bring them in").click()
    await page.get_by_role("link", name="Download the list").wait_for()
    yield "brought in"
    await visit.open()
    await page.get_by_role("link", name="Your list of").wait_for()
    await visit.open(url=origin.url("/site"))
    await page.get_by_role("heading", name="Which feed?").wait_for()
    yield "choose"
    await visit.open(url=origin.url("/nothing"))
    await page.get_by_role("alert").wait_for()
    yield "no feed"
    await visit.open(url=origin.url("/partial"))
    yield "feed"
    await page.get_by_role("button", name="Refresh").click()
    await page.get_by_text("The publisher was asked: no new entries.").wait_for()
    yield "refreshed"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.sample("390")
async def test_every_page_is_accessible_and_fits_its_window(
    filled: Proxy, origin: Origin, width: int
) -> None:
    """axe-core finds nothing; no other host is asked, no script fails, no policy is broken."""
    found: dict[str, list[str]] = {}
    async with visiting(filled, width=width) as visit:
        async for name in pages(visit, origin):
            await visit.page.emulate_media(color_scheme="dark")
            found[f"{name}, dark"] = await visit.faults("color-contrast")  # all else is the same
            await visit.page.emulate_media(color_scheme="light")
            found[name] = await visit.faults()
        assert {name: what for name, what in found.items() if what} == {}
        assert len(found) == 24
        assert visit.hosts == {visit.base.split("/")[2]}
        assert visit.said == []


async def test_the_check_of_pages_sees_what_is_wrong(filled: Proxy) -> None:
    """A blind check would find no faults on any page."""
    async with visiting(filled, width=390) as visit:
        await visit.open()
        await visit.page.evaluate(
            """() => {
                document.querySelector("label").remove();
                document.querySelector("main").style.width = "500px";
                const script = document.createElement("script");
                script.src = "https://elsewhere.test/";
                document.body.append(script);
            }"""
        )
        assert [each.partition(":")[0] for each in await visit.faults()] == ["label", "sideways scrolling"]
        await visit.page.emulate_media(color_scheme="dark")
        await visit.page.evaluate("document.querySelector('h1').style.color = '#333'")
        assert (await visit.faults("color-contrast"))[0].startswith("color-contrast: <h1")
        assert any("Content Security Policy" in each for each in visit.said)


async def test_without_javascript_everything_can_be_done(filled: Proxy, origin: Origin) -> None:
    """Forms and links do it, and say so."""
    async with visiting(filled, java_script_enabled=False) as visit:
        page = visit.page
        await visit.open(url=origin.url("/site"))
        await page.get_by_label("Access token").fill(TOKEN)
        await page.get_by_role("button", name="Log in").click()
        await page.get_by_role("link", name="All articles, Atom").click()
        assert await page.title() != ""
        await page.get_by_role("link", name="wholefeed").click()
        await page.get_by_label("Title or address").fill("CHOSEN")
        await page.get_by_label("Sorted by").select_option("title")
        await page.get_by_role("button", name="Show", exact=True).click()
        await page.get_by_role("link", name="Remembered 1").click()
        assert await page.get_by_role("row").count() == 2
        origin.forget_requests()
        await page.get_by_role("button", name="Refresh A feed").click()
        await filled.settled()
        await page.reload()
        await page.get_by_text("no new entries", exact=True).wait_for()
        assert origin.counts() == {"/chosen": 1}
        assert "q=CHOSEN&state=remembered&sort=title" in page.url
        await page.get_by_label("Check A feed").check()
        await page.get_by_role("button", name="Forget", exact=True).click()
        await page.get_by_role("button", name="for good").click()
        await page.get_by_text("1 feed is forgotten, and").wait_for()
        assert "q=CHOSEN&state=remembered&sort=title" in page.url
        assert origin.url("/chosen") not in [each.url for each in await filled.service.feeds()]
        assert await page.get_by_role("button", name="Copy").count() == 0
        await page.get_by_role("button", name="Log out").click()
        await page.get_by_label("Access token").wait_for()


async def test_the_keyboard_reaches_everything(filled: Proxy) -> None:
    """Tab goes through all controls in order; also where a feed is forgotten."""
    async with visiting(filled) as visit:
        await visit.login()
        page = visit.page
        await page.get_by_role("heading", name="Known feeds").wait_for()
        usable = await page.evaluate(
            """() => {
                const usable = "a, button, input:not([type=hidden]), select, summary";
                const all = [...document.querySelectorAll(usable)];
                window.wanted = all.filter((each) => each.checkVisibility());
                return window.wanted.length;
            }"""
        )
        reached = []
        for _ in range(usable):
            await page.keyboard.press("Tab")
            reached.append(await page.evaluate("window.wanted.indexOf(document.activeElement)"))
        assert reached == list(range(usable))
        assert usable > 15

        await page.get_by_role("checkbox", name="Check A feed").first.focus()
        await page.keyboard.press("Space")
        await page.get_by_role("button", name="Forget", exact=True).focus()
        await page.keyboard.press("Enter")
        button = page.get_by_role("button", name="for good")
        await button.wait_for()
        await button.focus()
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="Known feeds").wait_for()
        await page.go_back()
        await button.focus()
        await page.keyboard.press("Enter")
        await page.get_by_text("1 feed is forgotten, and").wait_for()
        await page.wait_for_url(visit.base)  # said once: not after the page is loaded again
        await page.get_by_role("link", name="All 2").wait_for()
