"""How far back a feed reaches: what its account and its months come to."""

from __future__ import annotations

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.core.chart import month_number
from wholefeed.service.people import ChainDocument, Standing, Timeline, timeline_of
from wholefeed.store.tables.segments import months

MONTH = 24 * 30
FIRST = month_number(2023, 11)
"""Of an item that is updated at hour 0."""


async def timeline(proxy: Proxy, url: str) -> Timeline:
    await proxy.whole(url)
    status, chain = await proxy.service.account(url)
    return timeline_of(chain, await proxy.store.read(lambda db: months(db, status.feed.id)))


async def test_entries_of_all_documents_are_counted_once(proxy: Proxy, origin: Origin) -> None:
    """R10: an entry that stands in two documents counts where its live copy is; the undated apart."""
    origin.publish("/feed", atom(an_item("a", 2 * MONTH), an_item("b", 0), prev_archive="/1"))
    origin.publish("/1", atom(an_item("b", 0), an_item("c", None), an_item("d", 0), archive=True))
    found = await timeline(proxy, origin.url("/feed"))
    assert found.chart is not None
    assert [bar.entries for bar in found.chart.bars] == [2, 0, 1]
    assert (found.undated, found.holes) == (1, {})


async def test_a_missing_archive_is_behind_the_one_that_links_to_it(proxy: Proxy, origin: Origin) -> None:
    """R34: between the document in front of it and the one that was found behind it."""
    origin.publish("/feed", atom(an_item("a", 8 * MONTH), prev_archive="/a/3"))
    origin.publish("/a/3", atom(an_item("b", 6 * MONTH), archive=True, prev_archive="/a/2"))
    origin.publish("/a/1", atom(an_item("c", 0), archive=True, next_archive="/a/2"))
    found = await timeline(proxy, origin.url("/feed"))
    hole = found.holes[origin.url("/a/2")]
    assert hole.after == FIRST
    assert hole.before is not None
    assert hole.before > FIRST + 3
    assert found.chart is not None
    assert len(found.chart.hole_marks) == 1


async def test_of_what_nothing_leads_to_the_time_is_not_known(proxy: Proxy, origin: Origin) -> None:
    """R6: such a page stands at the end of the account, which says nothing of its time."""
    origin.publish("/feed", atom(an_item("a", 2 * MONTH), complete=True))
    await proxy.whole(origin.url("/feed"))
    status, chain = await proxy.service.account(origin.url("/feed"))
    lost = ChainDocument("http://o.test/lost", Standing.MISSING, "", "")
    led_to = ChainDocument("http://o.test/next", Standing.MISSING, "next", origin.url("/feed"))
    known = await proxy.store.read(lambda db: months(db, status.feed.id))
    found = timeline_of([*chain, led_to, lost], known)
    assert found.holes[lost.url].words == "a time that nobody knows"
    assert found.holes[led_to.url].words == "before January 2024"
    assert found.chart is not None
    assert len(found.chart.hole_marks) == 1
