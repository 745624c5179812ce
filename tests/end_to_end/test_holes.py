"""Chains in which documents are missing: the entries behind them still reach readers (R34)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom, json_feed, own_ids, publish_chain, rdf, rss
from tests.origin import Origin
from tests.running import Proxy, a_config, running

HOUR = 3700.0


def paths(origin: Origin) -> list[str]:
    return [each.target for each in origin.requests if each.target != "/feed"]


def entries_of(archives: int, *missing: int) -> list[str]:
    gone = {f"e{number * 2 - n}" for number in missing for n in (0, 1)}
    names = [f"e{number}" for number in range((archives + 1) * 2, 0, -1)]
    return [name for name in names if name not in gone]


def missing(status: dict[str, Any]) -> list[str]:
    return [each["url"] for each in status["missing"]]


@pytest.mark.fault("54a")
@pytest.mark.parametrize("make", [atom, rss, rdf])
@pytest.mark.parametrize("status", [404, 410, 403, 500, 503])
@pytest.mark.sample("404-*", "*-rss")
async def test_everything_behind_a_hole_is_served_and_the_hole_told(
    tmp_path: Path, origin: Origin, make: Any, status: int
) -> None:
    """R34, R16: an archive names `current`, its channel or its id."""
    publish_chain(origin, archives=6, make=make)
    origin.fault("/archive/4", Status(status))
    url = origin.url("/feed")
    async with running(a_config(tmp_path, history={"look_ahead": False}, fetch={"retries": 0})) as proxy:
        reply = await proxy.whole(url)
        told = await proxy.status(url)
    assert reply.reconstruction == "partial;documents=6;entries=12;missing=1"
    assert own_ids(reply.body) == entries_of(6, 4)
    assert missing(told) == [origin.url("/archive/4")]
    assert origin.counts()["/archive/4"] == 1


async def test_status_tells_where_the_chain_goes_on(proxy: Proxy, origin: Origin) -> None:
    """R16, R34: the hole at its place, and the guess behind it."""
    publish_chain(origin, archives=5)
    for path in ("/archive/4", "/archive/3"):
        origin.remove(path)
    url = origin.url("/feed")
    await proxy.whole(url)
    status = await proxy.status(url)
    places = [(each["url"], each["standing"], each["relation"], each["from"]) for each in status["chain"]]
    archive = {number: origin.url(f"/archive/{number}") for number in range(6)}
    assert places == [
        (url, "kept", None, None),
        (archive[5], "kept", "prev-archive", url),
        (archive[4], "missing", "prev-archive", archive[5]),
        (archive[2], "settled", "guessed", archive[4]),
        (archive[1], "settled", "prev-archive", archive[2]),
    ]
    (jump,) = [note for note in status["notes"] if note["code"] == "JumpedHole"]
    assert (jump["url"], jump["goes_on_at"]) == (archive[4], archive[2])
    assert status["ending"]["code"] == "oldest"
    assert missing(status) == [archive[4]]


async def test_a_hole_is_retried_in_its_time_and_heals(proxy: Proxy, origin: Origin) -> None:
    """R14, R20, R34: no request before; then the document takes its place in the chain."""
    publish_chain(origin, archives=8)
    for path in ("/archive/6", "/archive/3"):
        origin.fault(path, Status(404))
    url = origin.url("/feed")
    assert (await proxy.whole(url)).reconstruction == "partial;documents=7;entries=14;missing=2"
    origin.forget_requests()
    proxy.clock.advance(1000)
    await proxy.whole(url)
    assert paths(origin) == []

    origin.heal("/archive/6")
    proxy.clock.advance(HOUR)
    await proxy.whole(url)
    await proxy.settled()
    reply = await proxy.get(url)
    assert {"/archive/6", "/archive/3"} <= {*paths(origin)} <= {"/archive/6", "/archive/3", "/archive/0"}
    assert own_ids(reply.body) == entries_of(8, 3)
    (hole,) = (await proxy.status(url))["missing"]
    assert (hole["url"], hole["attempts"]) == (origin.url("/archive/3"), 2)

    origin.heal("/archive/3")
    reply = await proxy.refreshed(url)
    assert (reply.state, own_ids(reply.body)) == ("complete", entries_of(8))
    assert (await proxy.status(url))["missing"] == []


async def test_dated_archives_are_counted_across_the_year(proxy: Proxy, origin: Origin) -> None:
    """R34: two months without a document, and the chain goes on in the year before."""
    months = ["2004-03", "2004-02", "2004-01", "2003-12", "2003-11", "2003-10"]
    origin.publish("/feed", atom(an_item("new", 99), updated=99, prev_archive="/2004-03.atom"))
    for age, (month, older) in enumerate(zip(months, [*months[1:], None], strict=True)):
        link = f"/{older}.atom" if older else None
        origin.publish(f"/{month}.atom", atom(an_item(month, 50 - age), archive=True, prev_archive=link))
    for month in ("2004-01", "2003-12"):
        origin.remove(f"/{month}.atom")
    reply = await proxy.whole(origin.url("/feed"))
    assert own_ids(reply.body) == ["new", "2004-03", "2004-02", "2003-11", "2003-10"]
    assert reply.reconstruction == "partial;documents=5;entries=5;missing=1"


@pytest.mark.fault("54a")
async def test_an_oldest_archive_that_links_to_nothing_costs_little(tmp_path: Path, origin: Origin) -> None:
    """R34: at most three requests, not at every refresh."""
    publish_chain(origin, archives=12)
    for number in range(1, 8):
        origin.remove(f"/archive/{number}")
    url = origin.url("/feed")
    async with running(a_config(tmp_path, history={"look_ahead": False})) as proxy:
        await proxy.whole(url)
        asked = [f"/archive/{number}" for number in (7, 6, 5, 4)]
        assert paths(origin)[-4:] == asked
        for _ in range(2):
            origin.forget_requests()
            proxy.clock.advance(1000)
            await proxy.whole(url)
            await proxy.settled()
            assert paths(origin) == []
        proxy.clock.advance(HOUR)
        reply = await proxy.whole(url)
        await proxy.settled()
        assert paths(origin) == asked
        assert reply.reconstruction.endswith(";missing=1")


STRANGERS = {
    "another feed's": atom(an_item("x"), archive=True, feed_id="urn:other"),
    "without a word": json_feed(an_item("x")),
    "the newest entries": atom(an_item("e20"), an_item("e19"), archive=True, extra="<!-- front -->"),
    "nothing at all": atom(archive=True),
    "no feed": b"<html><body>Page not found</body></html>",
}


@pytest.mark.fault("51a")
@pytest.mark.parametrize("body", STRANGERS.values(), ids=STRANGERS)
async def test_a_publisher_that_answers_everything_is_not_believed(
    tmp_path: Path, origin: Origin, body: bytes
) -> None:
    """R34, R23, R17: three guesses at most; none joins or is missing, even at a retry from the store."""
    publish_chain(origin, archives=9)
    origin.remove("/archive/7")
    for number in range(7):
        origin.publish(f"/archive/{number}", body)
    url = origin.url("/feed")
    async with running(a_config(tmp_path, history={"look_ahead": False})) as proxy:
        for first in (9, 7):
            origin.forget_requests()
            await proxy.whole(url)
            await proxy.settled()
            reply = await proxy.get(url)
            assert reply.reconstruction == "partial;documents=3;entries=6;missing=1"
            assert own_ids(reply.body) == [f"e{number}" for number in range(20, 14, -1)]
            assert paths(origin) == [f"/archive/{number}" for number in range(first, 3, -1)]
            assert missing(await proxy.status(url)) == [origin.url("/archive/7")]
            proxy.clock.advance(HOUR)


async def test_next_archive_names_the_missing_one(proxy: Proxy, origin: Origin) -> None:
    """R34: a document without an id is believed."""
    extra = '<link rel="alternate" href="http://site.test/"/>'
    nameless = atom(an_item("old", 1), archive=True, next_archive="/2", extra=extra, feed_id="")
    origin.publish("/feed", atom(an_item("new", 9), prev_archive="/3"))
    origin.publish("/3", atom(an_item("later", 5), archive=True, prev_archive="/2"))
    origin.publish("/1", nameless)
    reply = await proxy.whole(origin.url("/feed"))
    assert (own_ids(reply.body), reply.state) == (["new", "later", "old"], "partial")


@pytest.mark.fault("51a")
async def test_a_calendar_without_end_meets_the_limits(tmp_path: Path, origin: Origin) -> None:
    """R18, R34: every second document is missing, each other one is new."""
    for number in range(0, 400, 2):
        held = an_item(f"a{number}", number)
        origin.publish(f"/{1000 - number}", atom(held, archive=True, prev_archive=f"/{999 - number}"))
    origin.publish("/feed", atom(an_item("new"), prev_archive="/1000"))
    limits = {"documents_per_feed": 20}
    async with running(a_config(tmp_path, limits=limits, history={"look_ahead": False})) as proxy:
        reply = await proxy.whole(origin.url("/feed"))
        reasons = {each["reason"] for each in (await proxy.status(origin.url("/feed")))["missing"]}
    assert reply.state == "partial"
    assert len(paths(origin)) <= 2 * 20
    assert reasons == {"limit", "publisher-status"}


async def test_a_walk_that_is_cut_off_behind_a_hole_is_taken_up(tmp_path: Path, origin: Origin) -> None:
    """R14, R34: documents behind the hole are fetched once, despite a restart."""
    publish_chain(origin, archives=6)
    origin.remove("/archive/5")
    url = origin.url("/feed")
    config = a_config(tmp_path, history={"look_ahead": False})
    with origin.held("/archive/2") as gate:
        async with running(config) as proxy:
            assert (await proxy.begun(url)).state == "loading"
            await gate.reached()
    async with running(config) as proxy:
        await proxy.settled()
        reply = await proxy.get(url)
        status = await proxy.status(url)
    assert reply.reconstruction == "partial;documents=6;entries=12;missing=1"
    assert own_ids(reply.body) == entries_of(6, 5)
    assert missing(status) == [origin.url("/archive/5")]
    assert max(origin.counts()[f"/archive/{number}"] for number in (4, 3, 1)) == 1


async def test_the_feed_is_not_stale_for_a_guess_that_fails(proxy: Proxy, origin: Origin) -> None:
    """R34, R16: the publisher answered, and a guess proves nothing."""
    publish_chain(origin, archives=9)
    for number, status in ((7, 404), (6, 500), (5, 404), (4, 410)):
        origin.fault(f"/archive/{number}", Status(status))
    url = origin.url("/feed")
    reply = await proxy.whole(url)
    assert reply.reconstruction == "partial;documents=3;entries=6;missing=1"
    assert (await proxy.status(url))["failure"] is None


async def test_holes_take_nothing_away(proxy: Proxy, origin: Origin) -> None:
    """R15, R14, R34: neither a hole in front of stored documents nor, under full=1, one in their middle."""
    stored = publish_chain(origin, archives=6)
    url = origin.url("/feed")
    await proxy.whole(url)
    origin.fault("/archive/5", Status(404))
    publish_chain(origin, archives=8)
    origin.fault("/archive/7", Status(404))
    proxy.clock.advance(90_000)
    for full in (False, True):
        reply = await proxy.refreshed(url, full=full)
        assert reply.state == "partial"
        assert own_ids(reply.body) == ["e18", "e17", "e16", "e15", "e14", "e13", *stored[2:]]
        assert missing(await proxy.status(url)) == [origin.url("/archive/7")]

    origin.heal("/archive/7")
    reply = await proxy.refreshed(url)
    assert (reply.state, {*own_ids(reply.body)}) == ("complete", {*entries_of(8)})


def broken(body: bytes) -> bytes:
    return body[: body.rindex(b"<content>")]


@pytest.mark.parametrize("way", ["truncated", "format"])
async def test_what_came_whole_is_not_missing_while_another_is(
    tmp_path: Path, origin: Origin, way: str
) -> None:
    """R14, R16, R23: an archive cut off before, or of another format."""
    publish_chain(origin, archives=4)
    whole = atom(an_item("e6", 6), an_item("e5", 5), archive=True, prev_archive="/archive/2", current="/feed")
    other = rss(an_item("e6", 6), an_item("e5", 5), archive=True, prev_archive="/archive/2", current="/feed")
    origin.publish("/archive/3", broken(whole) if way == "truncated" else other)
    origin.remove("/archive/1")
    url = origin.url("/feed")
    async with running(a_config(tmp_path)) as proxy:
        assert set(missing(await _asked(proxy, url))) == {origin.url("/archive/3"), origin.url("/archive/1")}
        origin.publish("/archive/3", whole)
        proxy.clock.advance(HOUR)
        told = await _asked(proxy, url)
        assert missing(told) == [origin.url("/archive/1")]
        origin.forget_requests()
        proxy.clock.advance(4 * HOUR)
        await _asked(proxy, url)
        assert "/archive/3" not in paths(origin), "what is settled is asked for no more"


async def test_what_nothing_links_any_more_is_not_missing(proxy: Proxy, origin: Origin) -> None:
    """R14, R16: an archive was cut off and replaced, while an older one is missing."""
    publish_chain(origin, archives=4)
    cut = atom(an_item("e6", 6), an_item("e5", 5), archive=True, prev_archive="/archive/2", current="/feed")
    origin.publish("/archive/3", broken(cut))
    origin.remove("/archive/1")
    url = origin.url("/feed")
    await _asked(proxy, url)
    newest = an_item("e8", 8), an_item("e7", 7)
    origin.publish("/archive/4", atom(*newest, archive=True, prev_archive="/archive/3b", current="/feed"))
    origin.publish("/archive/3b", cut)
    origin.publish("/feed", atom(an_item("e10", 10), an_item("e9", 9), updated=11, prev_archive="/archive/4"))
    proxy.clock.advance(30 * HOUR)
    assert missing(await _asked(proxy, url)) == [origin.url("/archive/1")]


async def _asked(proxy: Proxy, url: str) -> dict[str, Any]:
    await proxy.whole(url)
    await proxy.settled()
    await proxy.whole(url)
    return await proxy.status(url)
