"""The page of one feed in a real browser."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest

from tests.browser.visiting import Visit, visiting
from tests.feeds import Item, an_item, atom, publish_chain, rss
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.web import pages

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The event loop that the browser is driven in."""

MONTH = 24 * 30


def publish_all(origin: Origin) -> dict[str, str]:
    """Feeds whose pages differ; the URL of each."""
    publish_chain(origin, archives=3)
    new = [an_item(f"new{n}", (40 - n) * MONTH) for n in range(8)]
    origin.publish("/holes", atom(*new, an_item("old", 0), prev_archive="/gone", feed_id="urn:holes"))
    origin.publish("/remembered", rss(an_item("a", 1), an_item("b", 1500)))
    origin.publish("/undated", rss(an_item("c", None)))
    long = f"/{'a' * 900}?q={'b' * 1000}"
    title = f"<title>&lt;img src=x onerror=alert(1)&gt;{'W' * 2000}</title>".encode()
    body = rss(Item("&lt;script&gt;" + "X" * 2000, 1, "x")).replace(b"<title>A channel</title>", title)
    origin.publish(long, body)
    paths = ("/feed", "/holes", "/remembered", "/undated", long)
    return dict(
        zip(("complete", "holes", "remembered", "undated", "hostile"), map(origin.url, paths), strict=True)
    )


async def open_all(visit: Visit) -> None:
    """Open whatever can be opened on a page."""
    await visit.page.evaluate(
        "() => document.querySelectorAll('details').forEach((each) => each.open = true)"
    )


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.sample("390")
async def test_the_page_of_any_feed_is_accessible_and_fits_its_window(
    proxy: Proxy, origin: Origin, width: int
) -> None:
    """axe-core finds nothing in light and in dark, with everything opened, and nothing scrolls sideways."""
    found: dict[str, list[str]] = {}
    async with visiting(proxy, width=width) as visit:
        for name, url in publish_all(origin).items():
            await proxy.whole(url)
            await visit.open(url=url)
            await open_all(visit)
            await visit.page.emulate_media(color_scheme="dark")
            found[f"{name}, dark"] = await visit.faults("color-contrast")
            await visit.page.emulate_media(color_scheme="light")
            found[name] = await visit.faults()
        assert {name: what for name, what in found.items() if what} == {}
        assert visit.hosts == {visit.base.split("/")[2]}
        assert visit.said == []


async def test_progress_comes_by_itself_and_then_the_end(proxy: Proxy, origin: Origin) -> None:
    """While the walk goes on the numbers change on the page, which is loaded anew when it has ended."""
    publish_chain(origin, archives=6)
    url = origin.url("/feed")
    with origin.held("/archive/3") as third, origin.held("/archive/1") as first:
        async with visiting(proxy) as visit:
            await proxy.begun(url)
            await visit.open(url=url)
            sums = visit.page.locator("[data-progress=sums]")
            assert await visit.faults() == []
            third.release()
            await visit.page.get_by_text("12 entries out of 6 documents").last.wait_for()
            assert await sums.inner_text() == "12 entries out of 6 documents"
            assert await visit.page.get_by_text("out of").count() == 1  # and no older sum beside it
            assert await visit.page.locator("progress").get_attribute("max") == "7"
            first.release()
            await visit.page.get_by_text("14 entries out of 7 documents").wait_for()
            await visit.page.get_by_text("Every entry that the publisher has").wait_for()
            assert await sums.count() == 0
            assert visit.said == []


async def test_what_has_not_come_yet_comes_by_itself(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page that waits for a publisher gives way to that of the feed, with script and without."""
    monkeypatch.setattr(pages, "AGAIN_SECONDS", 1)
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    for has_script in (True, False):
        with origin.held("/feed") as gate:
            async with visiting(proxy, java_script_enabled=has_script) as visit:
                await visit.open(url=url)
                await visit.page.get_by_role("heading", name="Asking the publisher").wait_for()
                gate.release()
                await visit.page.get_by_role("heading", name="How far back it reaches").wait_for()
        await proxy.settled()
        await proxy.ask("DELETE", f"/feed?url={quote(url, safe='')}")


async def test_a_page_that_nobody_looks_at_follows_nothing(proxy: Proxy, origin: Origin) -> None:
    """A browser has six connections to a host: leaving the page frees the one that it took."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    with origin.held("/archive/1"):
        async with visiting(proxy) as visit:
            await proxy.begun(url)
            await visit.open(url=url)
            async with asyncio.timeout(15):
                while proxy.service.watching.followers != 1:
                    await asyncio.sleep(0.02)
                await visit.open()
                while proxy.service.watching.followers:
                    await asyncio.sleep(0.02)


async def test_the_address_is_copied(proxy: Proxy, origin: Origin) -> None:
    """One click, and the clipboard holds what a reader is given; without script it can be selected."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    permissions = ["clipboard-read", "clipboard-write"]
    async with visiting(proxy, permissions=permissions) as visit:
        await visit.open(url=url)
        await visit.page.get_by_role("button", name="Copy", exact=True).click()
        await visit.page.get_by_role("button", name="Copied").wait_for()
        copied = await visit.page.evaluate("navigator.clipboard.readText()")
        assert copied == await visit.page.get_by_label("The address for your feed reader").input_value()
        assert copied == f"{visit.base}feed?url={quote(url, safe='')}"
    async with visiting(proxy, java_script_enabled=False) as visit:
        await visit.open(url=url)
        assert await visit.page.get_by_role("button", name="Copy", exact=True).count() == 0
        assert await visit.page.get_by_label("The address for your feed reader").input_value() == copied
