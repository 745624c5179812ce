"""wholefeed.service.account: the account of a feed (R16), and its reach into the past."""

from __future__ import annotations

from typing import Any

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.core.chart import month_number
from wholefeed.service.account import ChainDocument, DocumentStanding, Timeline, timeline_of
from wholefeed.store.tables.segment_table import months

# The account: each document of the chain, and why the walk ended


def lines(status: dict[str, Any], *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(each.get(key) for key in keys) for each in status["chain"]]


async def test_status_tells_the_chain_document_by_document(proxy: Proxy, origin: Origin) -> None:
    """R2, R10, R16, R25: each has its link and failure; the end of the walk has a reason. Detached
    documents stand last."""
    origin.publish("/feed", atom(an_item("a"), an_item("b"), prev_archive="/3"))
    origin.publish("/3", atom(an_item("b"), an_item("c"), archive=True, prev_archive="/2"))
    origin.publish("/2", atom(an_item("d"), archive=True, prev_archive="/1"))
    origin.fault("/1", Status(503))
    url, third, second, first = map(origin.url, ("/feed", "/3", "/2", "/1"))
    await proxy.whole(url)
    status = await proxy.status(url)
    assert lines(status, "url", "role", "standing", "relation", "from", "duplicates") == [
        (url, "subscription", "kept", None, None, 0),
        (third, "archive", "kept", "prev-archive", url, 1),
        (second, "archive", "settled", "prev-archive", third, 0),
        (first, None, "missing", "prev-archive", second, None),
    ]
    failure = status["chain"][-1]["failure"]
    assert (failure["reason"], failure["status"], failure["attempts"]) == ("publisher-status", 503, 1)
    assert (status["ending"]["code"], first in status["ending"]["text"]) == ("unavailable", True)
    assert (status["entries"], status["failure"], status["refreshing"]) == (4, None, False)

    origin.publish("/feed", atom(an_item("only"), complete=True))
    await proxy.refreshed(url)
    assert lines(await proxy.status(url), "standing") == [("kept",), ("detached",), ("detached",)]


async def test_what_was_repaired_is_told_as_long_as_the_document_is_kept(
    proxy: Proxy, origin: Origin
) -> None:
    """The note of an archive outlives refreshes that do not fetch it."""
    broken = atom(an_item("b"), archive=True).replace(b"</entry>", b"<title>x & y</title></entry>")
    origin.publish("/1", broken)
    origin.publish("/feed", atom(an_item("a"), prev_archive="/1"))
    url = origin.url("/feed")
    await proxy.whole(url)
    origin.publish("/feed", atom(an_item("z"), an_item("a"), prev_archive="/1"))
    await proxy.refreshed(url)
    status = await proxy.status(url)
    assert [note["code"] for note in status["notes"]] == ["DocumentRepaired"]
    assert lines(status, "notes")[1] == ([*status["notes"]],)
    assert status["notes"][0]["url"] == origin.url("/1")


async def test_pages_are_tied_by_the_links_that_lead_to_them(proxy: Proxy, origin: Origin) -> None:
    """R6, R16: `next` led from page to page."""
    origin.publish("/feed", atom(an_item("a"), next="/2"))
    origin.publish("/2", atom(an_item("b"), next="/3", previous="/feed"))
    origin.publish("/3", atom(an_item("c"), previous="/2"))
    url = origin.url("/feed")
    await proxy.whole(url)
    status = await proxy.status(url)
    assert lines(status, "role", "relation") == [
        ("subscription", None),
        ("page", "next"),
        ("page", "next"),
    ]
    assert status["ending"]["code"] == "oldest"


@pytest.mark.parametrize(
    ("document", "code"),
    [(atom(an_item("a"), complete=True), "whole"), (atom(an_item("a")), "not-offered")],
)
async def test_a_feed_of_one_document_says_why(
    proxy: Proxy, origin: Origin, document: bytes, code: str
) -> None:
    """R1, R7."""
    origin.publish("/feed", document)
    await proxy.whole(origin.url("/feed"))
    status = await proxy.status(origin.url("/feed"))
    assert (status["ending"]["code"], len(status["chain"])) == (code, 1)


async def test_a_publisher_that_fails_is_told_with_the_reason(proxy: Proxy, origin: Origin) -> None:
    """Row 75: while a stored feed is served stale, /status tells the publisher's response."""
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    await proxy.whole(url)
    origin.fault("/feed", Status(500))
    proxy.clock.advance(90_000)
    await proxy.get(url)
    status = await proxy.status(url)
    assert status["stale"] is True
    assert (status["failure"]["reason"], status["failure"]["status"]) == ("publisher-status", 500)


# The timeline


MONTH = 24 * 30
FIRST = month_number(2023, 11)
"""Month of an item updated at hour 0."""


async def timeline(proxy: Proxy, url: str) -> Timeline:
    await proxy.whole(url)
    status, chain = await proxy.service.account(url)
    return timeline_of(chain, await proxy.store.read(lambda db: months(db, status.feed.id)))


async def test_entries_of_all_documents_are_counted_once(proxy: Proxy, origin: Origin) -> None:
    """R10: an entry in two documents counts where its live copy is."""
    origin.publish("/feed", atom(an_item("a", 2 * MONTH), an_item("b", 0), prev_archive="/1"))
    origin.publish("/1", atom(an_item("b", 0), an_item("c", None), an_item("d", 0), archive=True))
    found = await timeline(proxy, origin.url("/feed"))
    assert found.chart is not None
    assert [bar.entries for bar in found.chart.bars] == [2, 0, 1]
    assert (found.undated, found.holes) == (1, {})


async def test_a_missing_archive_is_behind_the_one_that_links_to_it(proxy: Proxy, origin: Origin) -> None:
    """R34: the next one found stands behind it."""
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
    """R6: a page without a link to it stands last, and tells no time."""
    origin.publish("/feed", atom(an_item("a", 2 * MONTH), complete=True))
    await proxy.whole(origin.url("/feed"))
    status, chain = await proxy.service.account(origin.url("/feed"))
    lost = ChainDocument("http://o.test/lost", DocumentStanding.MISSING, "", "")
    led_to = ChainDocument("http://o.test/next", DocumentStanding.MISSING, "next", origin.url("/feed"))
    known = await proxy.store.read(lambda db: months(db, status.feed.id))
    found = timeline_of([*chain, led_to, lost], known)
    assert found.holes[lost.url].words == "a time that nobody knows"
    assert found.holes[led_to.url].words == "before January 2024"
    assert found.chart is not None
    assert len(found.chart.hole_marks) == 1
