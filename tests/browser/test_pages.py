"""Every page of a visit in a real browser: what all of them have to hold."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.browser.visiting import TOKEN, Visit, visiting
from tests.origin import Origin
from tests.running import Proxy

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The event loop that the browser is driven in."""


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
    await page.locator("summary").first.click()
    await page.get_by_role("button", name="for good").wait_for()
    yield "home, about to forget"
    await visit.open(q="no feed has this")
    yield "home, nothing found"
    await visit.open(url=origin.url("/site"))
    await page.get_by_role("heading", name="Which feed?").wait_for()
    yield "choose"
    await visit.open(url=origin.url("/nothing"))
    await page.get_by_role("alert").wait_for()
    yield "no feed"
    await visit.open(url=origin.url("/partial"))
    yield "feed"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.sample("390")
async def test_every_page_is_accessible_and_fits_its_window(
    filled: Proxy, origin: Origin, width: int
) -> None:
    """axe-core finds nothing, in light and in dark, and nothing scrolls sideways; nothing is asked of anybody
    else, no script fails, no policy is broken.
    """
    found: dict[str, list[str]] = {}
    async with visiting(filled, width=width) as visit:
        async for name in pages(visit, origin):
            await visit.page.emulate_media(color_scheme="dark")
            found[f"{name}, dark"] = await visit.faults("color-contrast")  # all else is the same
            await visit.page.emulate_media(color_scheme="light")
            found[name] = await visit.faults()
        assert {name: what for name, what in found.items() if what} == {}
        assert len(found) == 16
        assert visit.hosts == {visit.base.split("/")[2]}
        assert visit.said == []


async def test_the_check_of_pages_sees_what_is_wrong(filled: Proxy) -> None:
    """Were it blind to faults of a page, it would find none on any."""
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
    """Log in, choose, filter, refresh, forget, log out: forms and links do it all."""
    async with visiting(filled, java_script_enabled=False) as visit:
        page = visit.page
        await visit.open(url=origin.url("/site"))
        await page.get_by_label("Access token").fill(TOKEN)
        await page.get_by_role("button", name="Log in").click()
        await page.get_by_role("link", name="All articles, Atom").click()
        assert await page.title() != ""
        await page.get_by_role("link", name="wholefeed").click()
        await page.get_by_label("Filter by address").fill("CHOSEN")
        await page.get_by_role("button", name="Filter").click()
        assert await page.get_by_role("row").count() == 2
        origin.forget_requests()
        await page.get_by_role("button", name="Refresh").click()
        await filled.settled()
        assert origin.counts() == {"/chosen": 1}
        await visit.open(q="chosen")
        await page.locator("td summary").click()
        await page.get_by_role("button", name="for good").click()
        assert origin.url("/chosen") not in [each.url for each in await filled.service.feeds()]
        assert await page.get_by_role("button", name="Copy").count() == 0
        await page.get_by_role("button", name="Log out").click()
        await page.get_by_label("Access token").wait_for()


async def test_the_keyboard_reaches_everything(filled: Proxy) -> None:
    """Tab goes through all that can be used, in its order; Enter opens and Escape closes a confirmation."""
    async with visiting(filled) as visit:
        await visit.login()
        page = visit.page
        await page.get_by_role("heading", name="Known feeds").wait_for()
        usable = await page.evaluate(
            """() => {
                const all = [...document.querySelectorAll("a, button, input:not([type=hidden]), summary")];
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

        await page.locator("summary").first.focus()
        await page.keyboard.press("Enter")
        button = page.get_by_role("button", name="for good")
        await button.wait_for()
        await page.keyboard.press("Tab")
        assert await button.evaluate("(each) => each === document.activeElement")
        await page.keyboard.press("Escape")
        await button.wait_for(state="hidden")
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await page.wait_for_url(visit.base)
        await page.get_by_text("2 feeds, sorted").wait_for()
