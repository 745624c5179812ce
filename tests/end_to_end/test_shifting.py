"""Archives that shift: each new entry pushes others across every boundary, under URLs that stay (R35)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.answers import Status
from tests.feeds import rss, texts
from tests.origin import Origin
from tests.postgres import on_both
from tests.running import Proxy
from tests.shifting import URL, Shifting, numbered, numbers_in, numbers_to, paged

pytestmark = on_both

DAY = 90_000.0
SHAPES = [
    pytest.param({}, id="numbered"),
    pytest.param({"path_of": paged}, id="paged=2"),
    pytest.param({"overlaps": True}, id="from the newest"),
    pytest.param({"make": rss}, id="rss"),
]


async def looked(proxy: Proxy, origin: Origin, seconds: float = DAY) -> tuple[str, list[int], int]:
    origin.forget_requests()
    reply = await proxy.later(origin.url(URL), seconds)
    return reply.state, numbers_in(reply.body), len(origin.requests)


async def noted(proxy: Proxy, origin: Origin) -> set[str]:
    status = await proxy.status(origin.url(URL))
    return {note["code"] for note in status["notes"]}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.fault("158")
async def test_nothing_vanishes_from_archives_that_shift(
    proxy: Proxy, origin: Origin, shape: Mapping[str, Any]
) -> None:
    """R35: one entry more each day. After two days a note says so; then all are fetched once a week."""
    publisher = Shifting(origin, **shape)
    publisher.publish(45)
    assert (await looked(proxy, origin))[:2] == ("complete", numbers_to(45))
    asked, documents = [], 5 + publisher.overlaps
    for count in range(46, 55):
        publisher.publish(count)
        state, found, requests = await looked(proxy, origin)
        assert (state, found) == ("complete", numbers_to(count))
        asked.append(requests)
        assert ("ArchivesShift" in await noted(proxy, origin)) == (count > 46)
    assert asked[:8] == [documents, documents, 2, 2, 2, 2, 2, 2]
    assert asked[8] >= documents
    assert (await looked(proxy, origin))[2] == 1, "nothing is new"


@pytest.mark.parametrize("shape", SHAPES[1:3])
@pytest.mark.fault("158")
async def test_nothing_vanishes_if_an_archive_has_none_of_its_entries_any_more(
    proxy: Proxy, origin: Origin, shape: Mapping[str, Any]
) -> None:
    """R35: twelve or twenty-five entries between two looks: new archives behind the first end the weekly
    pause."""
    publisher = Shifting(origin, **shape)
    publisher.publish(45)
    await looked(proxy, origin)
    for count in (57, 69, 94, 119):
        publisher.publish(count)
        state, found, _ = await looked(proxy, origin)
        assert (state, found) == ("complete", numbers_to(count))


@pytest.mark.fault("159")
async def test_an_archive_that_cannot_be_had_takes_nothing_away(proxy: Proxy, origin: Origin) -> None:
    """R14, R35: state and entries stay, and the archive is tried again at its time."""
    publisher = Shifting(origin)
    publisher.publish(45)
    await looked(proxy, origin)
    origin.fault(numbered(3), Status(503))
    publisher.publish(46)
    origin.fault(numbered(3), Status(503))
    assert await looked(proxy, origin) == ("complete", numbers_to(46), 4)
    assert (await looked(proxy, origin, 1000))[:2] == ("complete", numbers_to(46))
    assert origin.counts()[numbered(3)] == 1
    origin.heal(numbered(3))
    assert (await looked(proxy, origin, 1000))[:2] == ("complete", numbers_to(46))
    assert (await looked(proxy, origin, 1000))[2] == 1, "all is accounted for"


@pytest.mark.fault("52")
async def test_an_entry_that_was_deleted_leaves(proxy: Proxy, origin: Origin) -> None:
    """R8, R35: in a sound chain and in a shifting one."""
    publisher = Shifting(origin)
    publisher.publish(45)
    await looked(proxy, origin)
    publisher.publish(46, gone={30})
    left = [number for number in numbers_to(46) if number != 30]
    assert (await looked(proxy, origin))[:2] == ("complete", left)


async def test_a_person_learns_at_once_what_was_deleted(proxy: Proxy, origin: Origin) -> None:
    """R14, R35: `full=1` fetches all documents on any day."""
    publisher = Shifting(origin)
    publisher.publish(45)
    for count in (45, 46, 47, 48):
        publisher.publish(count)
        await looked(proxy, origin)
    publisher.publish(49, gone={25, 33})
    left = [number for number in numbers_to(49) if number not in {25, 33}]
    assert (await looked(proxy, origin))[:2] == ("complete", numbers_to(49))
    reply = await proxy.refreshed(origin.url(URL), full=True)
    assert (reply.state, numbers_in(reply.body)) == ("complete", left)


async def test_what_moved_is_as_its_archive_has_it(proxy: Proxy, origin: Origin) -> None:
    """R10, R35: a remembered copy gives way to its text there."""
    publisher = Shifting(origin, rss, is_undated=True)
    for count in range(45, 49):
        publisher.publish(count)
        await looked(proxy, origin)
    publisher.texts[28] = "corrected"
    publisher.publish(49)
    await looked(proxy, origin)
    assert texts((await proxy.get(origin.url(URL))).body)["28"] == "text of 28", "it is remembered"
    publisher.publish(50)
    assert (await looked(proxy, origin, 8 * DAY))[:2] == ("complete", numbers_to(50))
    assert texts((await proxy.get(origin.url(URL))).body)["28"] == "corrected"
