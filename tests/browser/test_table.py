"""The table of feeds in a real browser: its height, and what applies at once."""

from __future__ import annotations

from functools import partial

import pytest

from tests.browser.visiting import visiting
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.core.model import Family, Kind, State
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.store.base import Database
from wholefeed.store.tables import failures, feed_table

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The browser's event loop."""

FEEDS = 259
TITLES = (
    "The Keeper's Log",
    "W" * 10_000,
    "\u05de\u05d1\u05d5\u05da " * 40,
    "<b>bold</b> & <script>alert(1)</script>",
    "",
    "An ordinary title of some length, as most feeds have one",
)


def _store_feeds(db: Database, origin: str, now: float) -> None:
    """Add feeds in every state, with long titles and addresses; every twentieth failed, or is gone."""
    for number in range(FEEDS):
        url = f"{origin}{number}/" + "x" * (1900 if number % 7 == 0 else 9)
        feed = feed_table.create(db, url=url, fetch_url=url, family=Family.ATOM, kind=Kind.PLAIN, now=now)
        state, title = list(State)[number % len(State)], TITLES[number % len(TITLES)]
        changes = {
            "state": state,
            "title": f"{title} {number}" if title else title,
            "entries": 12_847 * number,
        }
        feed_table.update(db, feed.id, changes)  # type: ignore[arg-type]
        failure = None
        if number % 20 == 0:
            failure = Attempt(
                url=SUBSCRIPTION_ATTEMPT,
                reason="timeout" if number % 40 else "publisher-status",
                status=None if number % 40 else 410,
                attempts=9,
                first_at=now - 9 * DAY_SECONDS,
                last_at=now,
                next_at=now,
            )
        failures.note_refetch(db, feed.id, failure, {"checked_at": now, "is_stale": failure is not None})


async def fill(proxy: Proxy, origin: Origin) -> None:
    work = partial(_store_feeds, origin=origin.url("/"), now=proxy.clock())
    await proxy.store.write(work)


@pytest.mark.parametrize(("width", "most", "lines"), [(1280, 4500, 1), (390, 9000, 2)])
async def test_the_first_part_of_many_feeds_is_short(
    proxy: Proxy, origin: Origin, width: int, most: int, lines: int
) -> None:
    """One line for each feed, two in a narrow window, whatever publishers call their feeds."""
    await fill(proxy, origin)
    async with visiting(proxy, width=width) as visit:
        await visit.open()
        height = await visit.page.evaluate("document.documentElement.scrollHeight")
        tall = (
            "Math.max(...[...document.querySelectorAll('#feeds tbody tr')].map((each) => each.offsetHeight))"
        )
        assert await visit.page.get_by_role("row").count() == 101
        assert await visit.page.evaluate(tall) <= 30 * lines
        assert height <= most
        assert await visit.faults() == []
        await visit.open(state="attention")
        assert await visit.faults() == []
        assert visit.said == []


async def test_a_choice_applies_at_once_and_stays(proxy: Proxy, origin: Origin) -> None:
    """Typing keeps the focus; boxes stay checked; a refresh is followed to its end in its line."""
    await fill(proxy, origin)
    async with visiting(proxy) as visit:
        page = visit.page
        await visit.open()
        await page.get_by_role("link", name="Need attention 13").click()
        await page.get_by_role("link", name="All 259").click()
        await page.get_by_label("All 259").check()
        await page.evaluate("renew(location.href)")  # as a refresh does that is followed
        assert await page.get_by_label("All 259").is_checked()
        await page.get_by_label("Title or address").press_sequentially("keeper")
        await page.get_by_role("link", name="All 44").wait_for()
        assert await page.evaluate("document.activeElement.id") == "q"
        await page.get_by_label("Sorted by").select_option("most entries")
        await page.wait_for_url(f"{visit.base}?q=keeper&sort=entries")
        await page.get_by_label("Check The Keeper's Log 258").check()
        await page.get_by_text("1 feed", exact=True).wait_for()
        await page.get_by_label("Title or address").fill("keeper's log 2")
        await page.get_by_role("link", name="All 11").wait_for()
        assert await page.get_by_label("Check The Keeper's Log 258").is_checked()
        await page.get_by_label("Check all on this part").check()
        await page.get_by_text("11 feeds", exact=True).wait_for()
        origin.forget_requests()
        with origin.held(f"/258/{'x' * 9}") as gate:
            await page.get_by_role("button", name="Refresh The Keeper's Log 258").click()
            await page.get_by_text("being asked now", exact=True).wait_for()
            gate.release()
        await page.get_by_text("failed: the publisher responded with status 404").first.wait_for()
        await page.wait_for_url(f"{visit.base}?q=keeper%27s+log+2&sort=entries")
        assert visit.said == []
