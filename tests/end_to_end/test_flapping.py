"""Publishers that change their mind: formats, kinds, `current`; a store that fails (R1, R3, R8, R25)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.answers import Status
from tests.feeds import an_item, atom, ids, own_ids, publish_chain, rss
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Clock, Proxy, a_config, running
from tests.sqlite_faults import PUBLISHING, SqliteFaults


async def test_a_feed_that_changes_its_format_and_back_loses_nothing(proxy: Proxy, origin: Origin) -> None:
    """R8, R23, R25: remembered entries wait for their format to come back."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)))
    await proxy.whole(url)
    origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2)))
    assert ids((await proxy.refreshed(url)).body) == ["c", "b", "a"]

    origin.publish("/feed", rss(an_item("y", 5), an_item("x", 4)))
    reply = await proxy.refreshed(url)
    assert reply.headers["Content-Type"].startswith("application/rss+xml")
    assert ids(reply.body) == ["y", "x"]
    origin.publish("/feed", rss(an_item("z", 6), an_item("y", 5)))
    assert ids((await proxy.refreshed(url)).body) == ["z", "y", "x"]

    origin.publish("/feed", atom(an_item("d", 7)))
    assert ids((await proxy.refreshed(url)).body) == ["d", "c", "b", "a"]
    origin.publish("/feed", rss(an_item("zz", 8)))
    assert ids((await proxy.refreshed(url)).body) == ["zz", "z", "y", "x"]


async def test_what_is_remembered_of_one_format_takes_no_place_of_the_others(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8, R23, R25: even behind a full memory document of the other format."""
    set_constant(monkeypatch, "SEALED_ENTRIES", 3)
    url = origin.url("/feed")
    for body in (atom(an_item("a", 1)), atom(an_item("b", 2)), rss(an_item("x", 3)), rss(an_item("y", 4))):
        origin.publish("/feed", body)
        await proxy.whole(url)
        await proxy.refreshed(url)
    origin.publish("/feed", atom(*(an_item(name, 5) for name in "cdef")))
    await proxy.refreshed(url)
    origin.publish("/feed", atom(an_item("g", 6)))
    assert sorted(ids((await proxy.refreshed(url)).body)) == list("abcdefg")
    origin.publish("/feed", rss(an_item("z", 7)))
    assert sorted(ids((await proxy.refreshed(url)).body)) == list("xyz")


async def test_a_chain_in_another_format_is_left_behind(proxy: Proxy, origin: Origin) -> None:
    """R23."""
    url = origin.url("/feed")
    publish_chain(origin, archives=2)
    await proxy.whole(url)
    expected = publish_chain(origin, archives=1, make=rss)
    origin.publish("/archive/1", rss(an_item("e2", 2), an_item("e1", 1), archive=True))
    reply = await proxy.refreshed(url, full=True)
    assert (reply.state, ids(reply.body)) == ("complete", expected)


async def test_a_chain_that_keeps_its_urls_in_another_format_is_fetched_anew(
    proxy: Proxy, origin: Origin
) -> None:
    """R13, R14, R23: a document settled in one format is missing in the other."""
    url = origin.url("/feed")
    for make in (atom, rss, atom):
        expected = publish_chain(origin, archives=3, make=make)
        proxy.clock.advance(90_000)
        reply = await proxy.whole(url)
        assert (reply.state, ids(reply.body)) == ("complete", expected)


async def test_a_chain_half_in_another_format_is_tried_in_its_time(proxy: Proxy, origin: Origin) -> None:
    """R14, R23."""
    url = origin.url("/feed")
    publish_chain(origin, archives=2)
    await proxy.whole(url)
    origin.publish("/feed", rss(an_item("x", 9), prev_archive="/archive/2"))
    assert (await proxy.refreshed(url)).state == "partial"
    origin.forget_requests()
    proxy.clock.advance(1000)
    assert (await proxy.whole(url)).state == "partial"
    assert origin.counts() == {"/feed": 1}
    expected = publish_chain(origin, archives=2, make=rss)
    reply = await proxy.refreshed(url)
    assert (reply.state, sorted(own_ids(reply.body))) == ("complete", sorted([*expected, "x"]))


@pytest.mark.parametrize(("status", "rests_seconds"), [(500, 60), (404, 3600), (410, 86_400)])
async def test_what_fails_in_the_new_format_rests_as_long_as_its_failure_says(
    proxy: Proxy, origin: Origin, status: int, rests_seconds: float
) -> None:
    """R14, R23: the document stored in the other format counts as missing, despite an error."""
    url = origin.url("/feed")
    publish_chain(origin, archives=1)
    await proxy.whole(url)
    expected = publish_chain(origin, archives=1, make=rss)
    origin.fault("/archive/1", Status(status), times=1)
    proxy.clock.advance(90_000)
    assert (await proxy.whole(url)).state == "partial"
    (missing,) = (await proxy.status(url))["missing"]
    assert (missing["reason"], missing["status"]) == ("format", status)

    origin.forget_requests()
    proxy.clock.advance(rests_seconds - 30)
    await proxy.whole(url)
    assert origin.counts()["/archive/1"] == 0
    proxy.clock.advance(1000)
    reply = await proxy.whole(url)
    assert (reply.state, own_ids(reply.body)) == ("complete", expected)


async def test_what_broke_off_in_the_right_format_leaves_the_stored_copy_in_its_place(
    proxy: Proxy, origin: Origin
) -> None:
    """R23; docs/faults.md row 49: the last response is in the right format again, and nothing whole is
    lost."""
    url, whole = origin.url("/feed"), atom(an_item("b", 2), an_item("a", 1), archive=True)
    origin.publish("/feed", atom(an_item("c", 3), prev_archive="/1"))
    origin.publish("/1", whole)
    await proxy.whole(url)
    other = rss(an_item("b", 2), archive=True)
    for body in (other, other[: other.index(b"</item>")]):
        origin.publish("/1", body)
        reply = await proxy.refreshed(url, full=True)
        assert (reply.state, own_ids(reply.body)) == ("partial", ["c", "b", "a"])
    origin.publish("/1", whole[: whole.index(b"urn:a")])
    reply = await proxy.refreshed(url, full=True)
    assert (reply.state, own_ids(reply.body)) == ("complete", ["c", "b", "a"])


async def test_what_a_complete_feed_took_away_does_not_come_back(proxy: Proxy, origin: Origin) -> None:
    """R1, R25."""
    url = origin.url("/feed")
    for body, expected in (
        (atom(an_item("x", 1)), ["x"]),
        (atom(an_item("a", 2)), ["a", "x"]),
        (atom(an_item("a", 2), complete=True), ["a"]),
        (atom(an_item("b", 3), an_item("a", 2)), ["b", "a"]),
        (atom(an_item("b", 3)), ["b", "a"]),
    ):
        origin.publish("/feed", body)
        await proxy.whole(url)
        assert ids((await proxy.refreshed(url)).body) == expected


@pytest.mark.parametrize("page", ["same", "changed", "gone", "another"])
async def test_what_a_complete_feed_took_away_does_not_come_back_from_its_pages(
    proxy: Proxy, origin: Origin, page: str
) -> None:
    """R1, R6, R25: not even in a feed paged again, unless a present page holds it."""
    url = origin.url("/feed")
    old = atom(an_item("b", 2), an_item("a", 1), first="/feed")
    origin.publish("/feed", atom(an_item("d", 4), an_item("c", 3), next="/page/2"))
    origin.publish("/page/2", old)
    assert ids((await proxy.whole(url)).body) == ["d", "c", "b", "a"]
    origin.publish("/feed", atom(an_item("d", 4), complete=True))
    assert ids((await proxy.refreshed(url)).body) == ["d"]
    origin.publish("/feed", atom(an_item("e", 5), an_item("d", 4), next="/page/2"))
    if page == "changed":
        origin.publish("/page/2", atom(an_item("b", 2), first="/feed"))
    elif page == "gone":
        origin.remove("/page/2")
    elif page == "another":
        origin.publish("/feed", atom(an_item("e", 5), an_item("d", 4), next="/page/two"))
        origin.publish("/page/two", atom(an_item("b", 2), first="/feed"))
    expected = {"same": ["e", "d", "b", "a"], "gone": ["e", "d"]}.get(page, ["e", "d", "b"])
    for _ in range(2):
        assert own_ids((await proxy.refreshed(url)).body) == expected
        proxy.clock.advance(90_000)


async def test_current_is_followed_once(proxy: Proxy, origin: Origin) -> None:
    """R3: the document it names serves, regardless of its own `current`."""
    origin.publish("/a", atom(an_item("a", 1), current="/b"))
    origin.publish("/b", atom(an_item("b", 2), current="/c"))
    origin.publish("/c", atom(an_item("c", 3), current="/a"))
    url = origin.url("/a")
    for _ in range(3):
        assert ids((await proxy.whole(url)).body) == ["b"]
        proxy.clock.advance(4000)
    assert set(origin.counts()) == {"/a", "/b"}


async def test_a_document_whose_archive_names_it_is_walked_all_the_same(proxy: Proxy, origin: Origin) -> None:
    """R17: a template that writes one `self` into every document ends no chain."""
    origin.publish("/feed", atom(an_item("c", 3), self="/1", prev_archive="/1"))
    origin.publish("/1", atom(an_item("b", 2), archive=True, self="/0", prev_archive="/0"))
    origin.publish("/0", atom(an_item("a", 1), archive=True, self="/1"))
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", ["c", "b", "a"])


async def test_a_fragment_in_a_link_is_dropped(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 20."""
    origin.publish("/feed", atom(an_item("b", 2), prev_archive="/1#a\\b"))
    origin.publish("/1", atom(an_item("a", 1), archive=True))
    assert ids((await proxy.whole(origin.url("/feed"))).body) == ["b", "a"]


@pytest.mark.fault("68")
async def test_what_could_not_be_published_is_published_later(
    faults: SqliteFaults, tmp_path: Path, origin: Origin
) -> None:
    """R14; docs/faults.md row 68: even if the publisher has nothing new since."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)), etag='"1"')
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
        origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)), etag='"2"')
        with capture_logs() as lines:
            faults.arm(1, "SQLITE_FULL", for_good=True, only=PUBLISHING)
            reply = await proxy.refreshed(url)
            assert faults.failed
            assert (reply.status, ids(reply.body)) == (200, ["a"])
        assert "feed.unkept" in [line["event"] for line in lines]
        assert "refresh.failed" not in [line["event"] for line in lines]

        faults.heal()
        assert ids((await proxy.refreshed(url)).body) == ["b", "a"]


@pytest.mark.fault("67")
async def test_what_was_not_published_is_taken_up_at_the_next_start(
    faults: SqliteFaults, tmp_path: Path, origin: Origin
) -> None:
    """R14; docs/faults.md row 67."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)), etag='"1"')
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
        origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)), etag='"2"')
        faults.arm(1, "SQLITE_FULL", for_good=True, only=PUBLISHING)
        assert ids((await proxy.refreshed(url)).body) == ["a"]
    faults.heal()
    async with running(a_config(tmp_path)) as proxy:
        await proxy.settled()
        assert (await proxy.status(url))["entries"] == 2  # before any reader asks
        assert ids((await proxy.get(url)).body) == ["b", "a"]


async def test_no_more_is_remembered_than_a_feed_may_hold(tmp_path: Path, origin: Origin) -> None:
    """R18."""
    url = origin.url("/feed")
    async with running(a_config(tmp_path, limits={"entries_per_feed": 5})) as proxy:
        for turn in range(4):
            origin.publish("/feed", atom(*(an_item(f"{turn}-{n}", turn) for n in range(3))))
            await proxy.whole(url)
            await proxy.refreshed(url)
        reply = await proxy.get(url)
        assert reply.state == "partial"
        assert len(ids(reply.body)) <= 1 + 5 + 3
        (missing,) = (await proxy.status(url))["missing"]
        assert missing["reason"] == "limit"


async def test_a_forward_chain_is_not_walked_anew_each_time(proxy: Proxy, origin: Origin) -> None:
    """R3, R14: the walk goes on from the newest known archive."""
    for number in range(1, 6):
        origin.publish(
            f"/{number}",
            atom(
                an_item(str(number), number),
                archive=True,
                next_archive=f"/{number + 1}" if number < 5 else None,
                prev_archive=f"/{number - 1}" if number > 1 else None,
            ),
        )
    url = origin.url("/1")
    first = await proxy.whole(url)
    origin.forget_requests()
    proxy.clock.advance(4000)
    assert ids((await proxy.whole(url)).body) == ids(first.body)
    assert set(origin.counts()) == {"/5"}


@pytest.mark.parametrize("other", ["another format", "whole", "without links"])
async def test_pages_that_nobody_looked_at_for_a_while_are_asked_for_again(
    proxy: Proxy, origin: Origin, other: str
) -> None:
    """R6, R23: the pages may have changed while the feed was of another format."""
    url = origin.url("/feed")
    publish_pages(origin, 15)
    assert (await proxy.whole(url)).state == "paged"
    newest = [an_item(f"e{number}", number) for number in range(27, 22, -1)]
    make = atom if other == "another format" else rss
    origin.publish("/feed", make(*newest, complete=other == "whole"))
    await proxy.refreshed(url)
    expected = publish_pages(origin, 27)
    reply = await proxy.refreshed(url)
    assert (reply.state, sorted(own_ids(reply.body))) == ("paged", sorted(expected))
    origin.forget_requests()
    await proxy.refreshed(url)
    assert origin.counts() == {"/feed": 1}


async def test_pages_that_were_not_followed_for_a_while_are_asked_for_again(
    tmp_path: Path, origin: Origin
) -> None:
    """R6: the same while `history.paged` is off."""
    url = origin.url("/feed")
    for is_on, newest in ((True, 15), (False, 27), (True, 27)):
        expected = publish_pages(origin, newest)
        async with running(a_config(tmp_path, history={"paged": is_on})) as proxy:
            await proxy.whole(url)
            found = own_ids((await proxy.refreshed(url)).body)
        assert not is_on or sorted(found) == sorted(expected)


def publish_pages(origin: Origin, newest: int) -> list[str]:
    """Publish entries `newest` to 1, five a page, as RSS; return their ids."""
    names = [f"e{number}" for number in range(newest, 0, -1)]
    pages = [names[at : at + 5] for at in range(0, newest, 5)]
    for place, page in enumerate(pages):
        following = f"/feed?page={place + 2}" if place + 1 < len(pages) else None
        items = [an_item(name, int(name[1:])) for name in page]
        origin.publish(f"/feed?page={place + 1}" if place else "/feed", rss(*items, next=following))
    return names


async def test_what_another_format_hides_is_told(tmp_path: Path, origin: Origin) -> None:
    """R7, R23: a note says so, even after a restart; `since` is the change of format."""
    url, clock = origin.url("/feed"), Clock()
    async with running(a_config(tmp_path), clock=clock) as proxy:
        origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)))
        await proxy.whole(url)
        first = (await proxy.status(url))["since"]
        origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2)))
        await proxy.refreshed(url)
        status = await proxy.status(url)
        since, note = status["since"], {}
        assert (since, status["notes"]) == (first, [])
        for make, other in ((rss, "atom"), (atom, "rss"), (rss, "atom")):
            proxy.clock.advance(90_000)
            origin.publish("/feed", make(an_item("x", 4)))
            before = int(clock())
            reply = await proxy.refreshed(url)
            status = await proxy.status(url)
            since = status["since"]
            assert before <= datetime.fromisoformat(since).timestamp() <= clock()
            assert reply.reconstruction.startswith("remembered;")
            assert f'since="{since}"' in reply.reconstruction
            (note,) = status["notes"]
            assert (note["code"], note["url"]) == ("FormatChanged", url)
            assert f"in the format {other}, seen until {since}" in note["text"]
            proxy.clock.advance(90_000)
            origin.publish("/feed", make(an_item("y", 5), an_item("x", 4)))
            await proxy.refreshed(url)
            status = await proxy.status(url)
            assert (status["since"], status["notes"]) == (since, [note])
    async with running(a_config(tmp_path), clock=clock) as proxy:
        status = await proxy.status(url)
        assert (status["since"], status["notes"]) == (since, [note])


async def test_a_chain_that_is_whole_in_its_new_format_hides_nothing(proxy: Proxy, origin: Origin) -> None:
    """R2, R23: all of the publisher's entries are there."""
    url = origin.url("/feed")
    for make in (atom, rss):
        publish_chain(origin, archives=2, make=make)
        await proxy.whole(url)
        await proxy.refreshed(url)
        status = await proxy.status(url)
        assert status["state"] == "complete"
        assert "FormatChanged" not in [note["code"] for note in status["notes"]]
