"""Adding a feed to a reader from its page, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.browser.visiting import LAN_NAME, visiting
from tests.feeds import an_item, atom, json_feed
from tests.origin import Origin
from tests.running import Proxy, a_config, running

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The browser's event loop."""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.sample("390")
async def test_a_reader_is_asked_for_once_and_gets_the_feed(proxy: Proxy, origin: Origin, width: int) -> None:
    """The address of one's own reader stays in the browser; nothing but the web is taken for one."""
    origin.publish("/feed", json_feed(an_item("a", 1)), content_type="application/feed+json")
    url = origin.url("/feed")
    async with visiting(proxy, width=width, host=LAN_NAME) as visit:
        page, found = visit.page, list[str]()
        await page.route("http://reader.test/**", lambda route: route.fulfill(body="added"))
        await visit.open(url=url)
        await page.get_by_role("button", name="FreshRSS…").click()
        field = page.get_by_role("textbox", name="The address of your FreshRSS")
        for wrong in ("javascript:alert(1)", "ftp://reader.test", "https://", "data:text/html,x"):
            await field.fill(wrong)
            await page.keyboard.press("Enter")
            await page.get_by_text("This is no address of a site").wait_for()
        await page.get_by_text("On a phone").click()
        found += await visit.faults()
        await page.emulate_media(color_scheme="dark")
        found += await visit.faults("color-contrast")
        await field.fill("http://reader.test/own/i/?get=a&state=3")
        await page.keyboard.press("Enter")
        address = f"{visit.base}feed?url={url}".replace("/", "%2F").replace(":", "%3A")
        added = "http://reader.test/own/i/?c=feed&a=add&url_rss="
        await page.wait_for_url(f"{added}**")
        assert page.url.replace("%253A", "%3A").replace("%252F", "%2F") == (
            added + address.replace("?url=", "%3Furl%3D") + "%26as%3Datom"
        )
        await visit.open(url=url)
        link = page.get_by_role("link", name="FreshRSS", exact=True)
        assert (await link.get_attribute("href") or "").startswith(added)
        await page.get_by_role("button", name="Change the address of your FreshRSS").click()
        assert await field.input_value() == "http://reader.test/own"
        await page.get_by_role("button", name="Cancel").click()
        assert not await field.is_visible()
        assert await page.get_by_role("button", name="Miniflux…").is_visible()
        assert (found, visit.said) == ([], [])


async def test_without_scripts_only_services_have_links(tmp_path: Path, origin: Origin) -> None:
    """Links that need an address from the browser are not shown; those of services work, if they can."""
    origin.publish("/feed", atom(an_item("a", 1)))
    for public_url in ("", "https://feeds.example.org"):
        async with running(a_config(tmp_path, server={"public_url": public_url})) as proxy:
            await proxy.get(origin.url("/feed"))
            async with visiting(proxy, java_script_enabled=False) as visit:
                await visit.open(url=origin.url("/feed"))
                links = await visit.page.locator(".adding a:visible").all_inner_texts()
                assert links == (
                    ["Feedbin", "Feedly", "Inoreader", "NewsBlur", "The Old Reader"] if public_url else []
                )
                assert await visit.page.locator(".adding button:visible").count() == 0


async def test_over_plain_http_a_feed_is_a_page_and_its_file_is_the_feed(
    proxy: Proxy, origin: Origin
) -> None:
    """A name of the network is less trusted than localhost: browsers say nothing of what they open."""
    origin.publish("/feed", json_feed(an_item("a", 1)), content_type="application/feed+json")
    async with visiting(proxy, host=LAN_NAME) as visit:
        await visit.open("feed", url=origin.url("/feed"))
        await visit.page.get_by_role("heading", name="A feed").wait_for()
        assert "/view?url=" in visit.page.url
        await visit.open(url=origin.url("/feed"))
        async with visit.page.expect_download() as download:
            await visit.page.get_by_role("link", name="The feed itself, as a file").click()
        file = await (await download.value).path()
        assert json.loads(file.read_bytes())["title"] == "A feed"
