"""The page of entries in a browser: what unfolds, keys, choices that stay, times of the person's zone."""

from __future__ import annotations

import pytest

from tests.browser.visiting import Visit, visiting
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNFOLDED = "document.querySelectorAll('.fold[open]').length"
PLACE = """() => [...document.querySelectorAll('.entry')].indexOf(document.activeElement.closest('.entry'))"""
MOST_PIXELS = 4000


async def opened(proxy: Proxy, origin: Origin, *, entries: int = 120, words: int = 2000) -> str:
    """Publish a feed of long entries with long titles, and return its URL."""
    items = [
        an_item(f"a title of some eight words with number {n}", -30 * n, "word " * words)
        for n in range(entries)
    ]
    origin.publish("/feed", atom(*items, complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    return url


async def press(visit: Visit, keys: str) -> None:
    for key in keys:
        await visit.page.keyboard.press(key)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_fifty_entries_fit_into_a_few_windows(
    proxy: Proxy, origin: Origin, width: int, theme: str
) -> None:
    """Folded, however long they are; in the middle of the window; axe finds nothing, folded or not."""
    url = await opened(proxy, origin)
    async with visiting(proxy, theme=theme, width=width) as visit:
        await visit.open("view", url=url)
        assert await visit.page.locator(".entry").count() == 50
        assert await visit.page.evaluate("document.documentElement.scrollHeight") <= MOST_PIXELS
        left, right = await visit.page.locator(".view").evaluate(
            "(each) => [each.getBoundingClientRect().left, innerWidth - each.getBoundingClientRect().right]"
        )
        assert abs(left - right) < 20, "a scroll bar is between"
        assert await visit.faults() == []
        await visit.page.locator("summary").first.click()
        await visit.page.keyboard.press("?")
        assert await visit.faults() == []
        assert visit.said == []


async def test_keys_lead_through_the_entries(proxy: Proxy, origin: Origin) -> None:
    """Only where nothing is typed, and not for whom they disturb."""
    url = await opened(proxy, origin, words=20)
    async with visiting(proxy) as visit:
        page = visit.page
        await visit.open("view", url=url)
        await press(visit, "jjjk")
        assert await page.evaluate(PLACE) == 1
        await press(visit, "o")
        assert await page.evaluate(UNFOLDED) == 1
        await press(visit, "jo/")
        assert await page.evaluate("document.activeElement.id") == "find"
        await press(visit, "jok 119")
        assert await page.get_by_role("searchbox").input_value() == "jok 119"
        assert await page.evaluate(UNFOLDED) == 2
        await page.get_by_role("searchbox").fill("TITLE 119")
        await page.keyboard.press("Enter")
        await page.get_by_role("link", name="number 119").click()
        await page.locator(".fold[open]").wait_for()
        assert "number 119" in await page.locator(".fold[open] h2").inner_text()
        await visit.open("view", url=url, find="title")
        await press(visit, "jjk")
        assert "number 0" in await page.evaluate("document.activeElement.textContent")
        await page.locator(".feed-lines a").nth(49).focus()
        await press(visit, "j")
        assert await page.evaluate("document.activeElement.textContent") == "Further titles"
        await visit.open("view", url=url)
        await page.evaluate("document.body.style.paddingBottom = '2000px'; scrollTo(0, 9999)")
        await press(visit, "j")
        assert await page.evaluate("document.activeElement.textContent") == "Older"
        await page.locator("summary").nth(49).focus()
        await press(visit, "j")
        assert await page.evaluate("document.activeElement.textContent") == "Older"
        await press(visit, "?")
        await page.get_by_label("Use these keys").uncheck()
        await page.get_by_role("button", name="Close").click()
        await page.reload()
        await press(visit, "jj")
        assert await page.evaluate(PLACE) == -1
        assert visit.said == []


async def test_choices_stay(proxy: Proxy, origin: Origin) -> None:
    """Whole entries everywhere, pictures for one feed; a link that somebody made sets neither."""
    url = await opened(proxy, origin, entries=3, words=20)
    origin.publish("/other", atom(an_item("a"), complete=True))
    await proxy.whole(origin.url("/other"))
    async with visiting(proxy) as visit:
        page = visit.page
        await visit.open("view", url=url, media="1", whole="1")
        await visit.open("view", url=url)
        assert await page.evaluate(UNFOLDED) == 0
        assert "media" not in page.url
        await page.get_by_role("link", name="Whole entries").click()
        assert await page.evaluate(UNFOLDED) == 3
        await page.get_by_role("link", name="With pictures and sound").click()
        await page.wait_for_url("**&media=1")
        await visit.open("view", url=origin.url("/other"))
        assert await page.evaluate(UNFOLDED) == 1
        assert "media" not in page.url
        await visit.open("view", url=url)
        await page.wait_for_url("**&media=1")
        await page.get_by_role("link", name="Without pictures and sound").click()
        await page.wait_for_url(lambda target: "media" not in target)
        await page.get_by_role("link", name="Titles only").click()
        await visit.open("view", url=url)
        assert await page.evaluate(UNFOLDED) == 0
        assert "media" not in page.url
        assert visit.said == []


@pytest.mark.parametrize(
    ("zone", "expected", "at_change"),
    [
        ("America/New_York", "14 November 2023, 17:13", "10 March 2024, 01:30"),
        ("Asia/Kolkata", "15 November 2023, 03:43", "10 March 2024, 12:00"),
    ],
)
async def test_times_are_those_of_who_looks(
    proxy: Proxy, origin: Origin, zone: str, expected: str, at_change: str
) -> None:
    """The title has UTC, also near a change of clocks; without a script UTC is shown. A mere date stays."""
    day = "<entry><id>urn:d</id><title>d</title><published>2019-03-03</published></entry>"
    change = "<entry><id>urn:s</id><published>2024-03-10T06:30:00Z</published></entry>"
    origin.publish("/feed", atom(an_item("a"), extra=day + change, complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    async with visiting(proxy, timezone_id=zone) as visit:
        await visit.open("view", url=url)
        times = visit.page.locator(".entry time")
        assert sorted(await times.all_inner_texts()) == sorted([expected, at_change, "3 March 2019"])
        utc = await times.evaluate_all("all => all.map((each) => each.title)")
        assert sorted(utc) == ["", "10 March 2024, 06:30 UTC", "14 November 2023, 22:13 UTC"]
        await visit.open(url=url)
        assert (
            expected.partition(",")[0]
            in await visit.page.locator("[data-grows=entries] time").all_inner_texts()
        )
    async with visiting(proxy, java_script_enabled=False) as visit:
        await visit.open("view", url=url)
        assert "14 November 2023, 22:13 UTC" in await visit.page.locator(".entry time").all_inner_texts()
        await visit.page.locator("summary").first.click()
        assert await visit.page.locator(".fold[open] .content").is_visible()
