"""The page of one feed in a real browser."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.browser.visiting import Visit, visiting
from tests.feeds import Item, an_item, atom, publish_chain, rss
from tests.listing import LISTS, looked
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, a_config, running
from wholefeed.web import pages

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The browser's event loop."""

MONTH = 24 * 30


def publish_all(origin: Origin) -> dict[str, str]:
    """Publish feeds with different pages; return their URLs."""
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
    """Open all foldable parts of a page."""
    await visit.page.evaluate(
        "() => document.querySelectorAll('details').forEach((each) => each.open = true)"
    )


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.sample("390")
async def test_the_page_of_any_feed_is_accessible_and_fits_its_window(
    proxy: Proxy, origin: Origin, width: int
) -> None:
    """axe-core finds nothing in light and dark, and nothing scrolls sideways."""
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


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_pages_of_a_list_are_links_on_the_page_of_its_feed(
    tmp_path: Path, origin: Origin, width: int
) -> None:
    """H7: pages looked at in vain are links, too."""
    blog = ArchivePage(origin, posts=40, per_page=15)
    blog.publish()
    url, found = origin.url("/feed"), list[str]()
    async with running(a_config(tmp_path, history=LISTS)) as proxy, visiting(proxy, width=width) as visit:
        await proxy.get(url)
        await looked(proxy)
        await visit.open(url=url)
        await visit.page.get_by_text("The pages that list them").click()
        shown = visit.page.get_by_role("link", name=origin.url("/archive/page/3/"))
        assert await shown.is_visible()
        await open_all(visit)
        found += await visit.faults()
        await visit.page.emulate_media(color_scheme="dark")
        found += await visit.faults("color-contrast")
        await visit.open("view", url=url)
        await visit.page.get_by_role("link", name=blog.newest_first[-1].title, exact=True).wait_for()
        found += await visit.faults()

        await proxy.ask("DELETE", "/feed", params={"url": url})
        origin.publish("/archive/", "<p>Moved", content_type="text/html")
        await proxy.get(url)
        await looked(proxy, 2)
        await visit.open(url=url)
        await visit.page.get_by_text("Where a list was looked for").click()
        assert await visit.page.get_by_role("link", name=origin.url("/archive/"), exact=True).is_visible()
        found += await visit.faults()
        assert (found, visit.said) == ([], [])


LINES = """() => {
    const text = document.querySelector(".content p").firstChild;
    const [range, lines] = [document.createRange(), {}];
    for (let at = 0; at < text.length; at++) {
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        const top = Math.round(range.getBoundingClientRect().top);
        lines[top] = (lines[top] ?? 0) + 1;
    }
    return Object.values(lines).slice(0, -1);
}"""
"""Number of characters in each line of a paragraph, except the last."""


async def test_a_feed_is_read_in_lines_of_a_good_length(proxy: Proxy, origin: Origin) -> None:
    """About 66 characters; right-to-left text begins on the right, and a wider table scrolls by itself."""
    table = f"&lt;table>&lt;tr>{'&lt;td>a_wide_column_of_numbers' * 9}&lt;/table>"
    words = "The sea is never finished, and so the log is never finished either. " * 20
    entry = "<entry><id>urn:r</id><title>לילה של ערפל!</title><updated>2020-01-01T00:00:00Z</updated></entry>"
    feed = atom(an_item("a", 1, f"&lt;p>{words}&lt;/p>{table}")).replace(
        b"<content>", b'<content type="html">'
    )
    origin.publish("/feed", feed.replace(b"</feed>", f"{entry}</feed>".encode()))
    url = origin.url("/feed")
    await proxy.whole(url)
    async with visiting(proxy) as visit:
        await visit.open("view", url=url)
        lines = await visit.page.evaluate(LINES)
        assert 60 <= sum(lines) / len(lines) <= 72
        title = visit.page.get_by_role("heading", name="לילה של ערפל!")
        assert await title.evaluate("(each) => getComputedStyle(each).direction") == "rtl"
        content = visit.page.locator(".content").first
        assert await content.evaluate("(each) => each.scrollWidth > each.clientWidth")
        assert "gradient" in await content.evaluate("(each) => getComputedStyle(each).backgroundImage")
        assert await visit.faults() == []


async def test_progress_comes_by_itself_and_then_the_end(proxy: Proxy, origin: Origin) -> None:
    """During the walk the numbers change on the page, which reloads at the end."""
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
            assert await visit.page.get_by_text("out of").count() == 1  # without an older sum beside it
            assert await visit.page.locator("progress").get_attribute("max") == "7"
            first.release()
            await visit.page.get_by_text("14 entries out of 7 documents").wait_for()
            await visit.page.get_by_text("Every entry that the publisher has").wait_for()
            assert await sums.count() == 0
            assert visit.said == []


async def test_the_chart_grows_while_a_feed_loads(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new month gets its bar, on the open page; unfolded parts stay so."""
    for number in range(4):
        older = f"/archive/{number - 1}" if number else None
        names = [an_item(f"{number}-{each}", number * MONTH) for each in range(2)]
        origin.publish(f"/archive/{number}", atom(*names, archive=True, prev_archive=older))
    origin.publish("/feed", atom(an_item("new", 4 * MONTH), prev_archive="/archive/3"))
    url = origin.url("/feed")
    with origin.held("/archive/2") as third, origin.held("/archive/0") as first:
        async with visiting(proxy) as visit:
            page = visit.page
            await proxy.begun(url)
            await visit.open(url=url)
            bars = page.locator(".feed-bars rect")
            await page.get_by_text("The same as a table").click()
            begun = await bars.count()
            await page.evaluate("window.isTheSamePage = true")
            third.release()
            await page.locator(f".feed-bars rect:nth-of-type({begun + 1})").wait_for()
            assert await page.evaluate("window.isTheSamePage")
            assert await page.locator("#history ~ details table").is_visible()
            first.release()
            await page.get_by_text("Every entry that the publisher has").wait_for()
            assert await bars.count() == 5
            assert visit.said == []


async def test_what_has_not_come_yet_comes_by_itself(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With script and without."""
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
    """A browser has six connections to a host: leaving the page frees its own."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    with origin.held("/archive/1"):
        async with visiting(proxy) as visit:
            await proxy.begun(url)
            await visit.open(url=url)
            async with asyncio.timeout(300):
                while proxy.service.watching.followers != 1:
                    await asyncio.sleep(0.02)
                await visit.open()
                while proxy.service.watching.followers:
                    await asyncio.sleep(0.02)


async def test_the_address_is_copied(proxy: Proxy, origin: Origin) -> None:
    """One click copies the readers' URL; without script it can be selected."""
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


async def chosen(visit: Visit) -> tuple[str, str]:
    """Return the address of a replay, and its description."""
    address = await visit.page.locator("#replayed").input_value()
    return address, await visit.page.locator("#replay-words").inner_text()


@pytest.mark.parametrize(
    ("rate", "days", "start", "offset", "entries"),
    [
        ("1/day", "", "2026-11-24T06:00", "+01:00", 302),
        ("1/day", "", "2026-11-24T06:00", "+01:00", 2),
        ("50/day", "mon,thu,sun", "2026-03-01T23:30", "-11:00", 400),
        ("3/week", "", "2026-06-30T06:00", "+05:45", 61),
        ("2/day", "wed", "2026-12-31T00:00", "+14:00", 12),
        ("5/day", "", "2026-11-24T06:00", "+01:00", 1),
    ],
)
async def test_script_and_server_make_the_same_of_a_replay(
    proxy: Proxy, origin: Origin, rate: str, days: str, start: str, offset: str, entries: int
) -> None:
    """P8: without a script, the sent form gives the same."""
    items = [an_item(f"e{n}", n) for n in range(entries, 0, -1)]
    origin.publish("/feed", atom(*items, complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    found = []
    for has_script in (True, False):
        async with visiting(proxy, width=390, java_script_enabled=has_script) as visit:
            await visit.open(url=url)
            await visit.page.get_by_text("From the beginning, at a pace").click()
            await visit.page.get_by_label("Pace").select_option(rate)
            await visit.page.get_by_label("Begins").fill(start)
            await visit.page.get_by_label("Offset from UTC").fill(offset)
            for day in filter(None, days.split(",")):
                await visit.page.get_by_label(day.capitalize(), exact=True).check()
            await visit.page.get_by_label("Titles without the date of publication").check()
            button = visit.page.get_by_role("button", name="Make the address")
            assert await button.is_visible() is not has_script
            if not has_script:
                await button.click()
                assert await visit.page.locator("#replay[open]").count() == 1
            found.append(await chosen(visit))
            assert visit.said == []
    assert found[0] == found[1]
    assert f"&from={quote(f'{start}:00{offset}', safe='')}" in found[0][0]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Asia/Kolkata", "2026-07-03T06:00:00+05:30"),
        ("America/New_York", "2026-07-02T06:00:00-04:00"),
    ],
)
async def test_a_replay_begins_by_the_clock_of_who_looks(
    proxy: Proxy, origin: Origin, zone: str, expected: str
) -> None:
    """P8: at their last 6:00, on a listed day; values in the address stay."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    async with visiting(proxy, timezone_id=zone) as visit:
        await visit.page.clock.set_fixed_time("2026-07-03T09:00:00Z")
        await visit.open(url=url)
        assert f"&from={quote(expected, safe='')}" in (await chosen(visit))[0]
        await visit.page.get_by_text("From the beginning, at a pace").click()
        await visit.page.get_by_label("Wed", exact=True).check()
        day = expected.replace("07-03", "07-01").replace("07-02", "07-01")
        assert f"&from={quote(day, safe='')}&on=wed" in (await chosen(visit))[0]
        await visit.page.get_by_label("Pace").select_option("3/week")
        assert "on=" not in (await chosen(visit))[0]
        await visit.open(**{"url": url, "replay": "1/day", "from": "2026-01-31T06:00:00+01:00"})
        assert (await chosen(visit))[0].endswith(
            f"&replay=1%2Fday&from={quote('2026-01-31T06:00:00+01:00', safe='')}"
        )
        assert await visit.faults() == []
