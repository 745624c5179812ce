"""Refreshes of paged feeds and legacy chains: repeated fetches and kept pages (R4, R6, R13 to R18)."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom, ids, own_ids, rss
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Clock, Proxy, a_config, running
from tests.sqlite_faults import rows

PAGE_SIZE = 3
HOUR = 3600.0


def publish_pages(origin: Origin, newest: int, *, first: str = "/feed", marker: bool = False) -> list[str]:
    """Publish entries `newest` to 1, three a page, as /feed, /feed?page=2 …; return their ids.

    With `marker`, URLs of pages change with the entries.
    """
    numbers = list(range(newest, 0, -1))
    held = [numbers[at : at + PAGE_SIZE] for at in range(0, newest, PAGE_SIZE)]

    def name(place: int) -> str:
        if place == 0:
            return "/feed"
        return f"/feed?after={held[place - 1][-1]}" if marker else f"/feed?page={place + 1}"

    for place, page in enumerate(held):
        body = atom(
            *(an_item(f"e{number}", number) for number in page),
            first=first,
            last=None if marker else name(len(held) - 1),
            prev=name(place - 1) if place else None,
            next=name(place + 1) if place + 1 < len(held) else None,
        )
        origin.publish(name(place), body, etag=f'"{newest}-{place}"')
        if place == 0 and first != "/feed":
            origin.publish(first, body, etag=f'"{newest}-first"')
    return [f"e{number}" for number in numbers]


async def polled(proxy: Proxy, url: str) -> list[str]:
    proxy.clock.advance(HOUR)
    reply = await proxy.whole(url)
    assert reply.state == "paged"
    return own_ids(reply.body)


async def test_a_normal_poll_costs_one_or_two_requests(proxy: Proxy, origin: Origin) -> None:
    """R6: a refresh stops at the first page without news."""
    url = origin.url("/feed")
    publish_pages(origin, 12)
    await proxy.whole(url)
    assert origin.counts() == {"/feed": 1, "/feed?page=2": 1, "/feed?page=3": 1, "/feed?page=4": 1}

    origin.forget_requests()
    assert len(await polled(proxy, url)) == 12
    assert origin.counts() == {"/feed": 1}

    origin.forget_requests()
    expected = publish_pages(origin, 13)
    assert sorted(await polled(proxy, url)) == sorted(expected)
    assert origin.counts() == {"/feed": 1, "/feed?page=2": 1}


async def test_a_poll_after_a_long_time_goes_on_as_far_as_there_is_news(proxy: Proxy, origin: Origin) -> None:
    """R6: whole pages were missed."""
    url = origin.url("/feed")
    publish_pages(origin, 12)
    await proxy.whole(url)
    origin.forget_requests()
    expected = publish_pages(origin, 20)
    assert sorted(await polled(proxy, url)) == sorted(expected)
    assert origin.counts() == {f"/feed?page={n}" if n > 1 else "/feed": 1 for n in range(1, 5)}


@pytest.mark.parametrize("marker", [False, True], ids=["numbered", "by marker"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sample("0-*", "3-*")
async def test_no_entry_is_ever_lost_or_doubled(
    proxy: Proxy, origin: Origin, seed: int, marker: bool
) -> None:
    """R6: for any number of entries between two polls, and any shift of page borders."""
    chance = random.Random(seed)
    url = origin.url("/feed")
    newest = chance.randint(1, 10)
    publish_pages(origin, newest, marker=marker)
    await proxy.whole(url)
    for _ in range(8):
        newest += chance.randint(0, 8)
        expected = publish_pages(origin, newest, marker=marker)
        assert sorted(await polled(proxy, url)) == sorted(expected)


async def test_pages_whose_urls_change_are_not_collected_again(proxy: Proxy, origin: Origin) -> None:
    """R6: a poll costs two requests, and keeps one page."""
    url = origin.url("/feed")
    publish_pages(origin, 12, marker=True)
    await proxy.whole(url)
    for newest in range(13, 18):
        origin.forget_requests()
        expected = publish_pages(origin, newest, marker=True)
        assert sorted(await polled(proxy, url)) == sorted(expected)
        assert len(origin.requests) == 2
    assert (await proxy.status(url))["documents"] == 4 + 5


async def test_a_page_that_is_gone_is_missing_until_no_page_links_to_it(proxy: Proxy, origin: Origin) -> None:
    """R6: then the feed has shrunk, and the entries of the page stay."""
    url = origin.url("/feed")
    publish_pages(origin, 9)
    await proxy.whole(url)
    publish_pages(origin, 16)
    origin.fault("/feed?page=3", Status(404))
    proxy.clock.advance(HOUR)
    reply = await proxy.whole(url)
    assert (reply.state, len(ids(reply.body))) == ("partial", 1 + 9 + 6)  # the warning

    publish_pages(origin, 6)
    reply = await proxy.refreshed(url)
    assert (reply.state, len(own_ids(reply.body))) == ("paged", 9 + 6)


@pytest.mark.parametrize(("built", "expected"), [(50, "edited"), (30, "as it was")])
async def test_a_page_is_kept_for_a_better_copy(
    proxy: Proxy, origin: Origin, built: int, expected: str
) -> None:
    """R6, R10: for an entry without dates, the copy of the later document; a page without a better copy is
    not stored."""
    url = origin.url("/feed")
    origin.publish("/a", rss(an_item("e1", None, "as it was"), updated=40, archive=True))
    origin.publish("/feed", rss(an_item("e2", None), updated=45, prev_archive="/a"))
    await proxy.whole(url)
    origin.publish("/feed", rss(an_item("e2", None), updated=60, next="/2"))
    origin.publish("/2", rss(an_item("e1", None, "edited"), updated=built))
    proxy.clock.advance(HOUR)
    reply = await proxy.whole(url)
    assert expected.encode() in reply.body
    assert (await proxy.status(url))["documents"] == (3 if expected == "edited" else 2)


async def test_the_first_page_under_another_name_costs_nothing(proxy: Proxy, origin: Origin) -> None:
    """R6: `first` of the first page leads to the same entries."""
    url = origin.url("/feed")
    publish_pages(origin, 9, first="/feed?page=1")
    await proxy.whole(url)
    origin.forget_requests()
    expected = publish_pages(origin, 10, first="/feed?page=1")
    assert sorted(await polled(proxy, url)) == sorted(expected)
    assert origin.counts() == {"/feed": 1, "/feed?page=2": 1}


async def test_pages_beyond_the_last_that_repeat_the_first_do_not_count(proxy: Proxy, origin: Origin) -> None:
    """R6, R17: they are not stored, so the order does not turn, and a poll costs one request."""
    url = origin.url("/feed")

    def publish(newest: int) -> list[str]:
        numbers = range(newest, 0, -1)
        pages = [numbers[at : at + 2] for at in range(0, newest, 2)]
        for place in range(len(pages) + 8):
            held = pages[place] if place < len(pages) else pages[0]
            body = atom(*(an_item(f"e{n}", n) for n in held), next=f"/feed?page={place + 2}")
            origin.publish(f"/feed?page={place + 1}" if place else "/feed", body)
        return [f"e{number}" for number in numbers]

    expected = publish(6)
    assert await polled(proxy, url) == expected
    assert "PagesAscend" not in {note["code"] for note in (await proxy.status(url))["notes"]}
    origin.forget_requests()
    assert len(await polled(proxy, url)) == 6
    assert origin.counts() == {"/feed": 1}
    expected = publish(7)
    assert sorted(await polled(proxy, url)) == sorted(expected)


async def test_a_feed_entered_in_the_middle_sees_what_is_new(proxy: Proxy, origin: Origin) -> None:
    """R6: entered anywhere."""
    url = origin.url("/feed?page=3")
    publish_pages(origin, 15)
    assert len(ids((await proxy.whole(url)).body)) == 15
    for newest in (16, 22, 40):
        expected = publish_pages(origin, newest)
        assert sorted(await polled(proxy, url)) == sorted(expected)


async def test_entries_missing_from_a_page_stay(proxy: Proxy, origin: Origin) -> None:
    """R6, R14, R25: a full refresh fetches every page; entries gone from one are remembered."""
    url = origin.url("/feed")
    publish_pages(origin, 9)
    await proxy.whole(url)
    origin.publish("/feed?page=2", atom(an_item("e6", 6), next="/feed?page=3"))
    origin.forget_requests()
    reply = await proxy.refreshed(url, full=True)
    assert sorted(ids(reply.body)) == [f"e{number}" for number in range(1, 10)]
    assert origin.counts() == {"/feed": 1, "/feed?page=2": 1, "/feed?page=3": 1}


async def test_pages_are_asked_for_ahead_but_never_behind_the_last(proxy: Proxy, origin: Origin) -> None:
    """docs/design.md#look-ahead: look-ahead, while `last` allows."""
    expected = publish_pages(origin, 60)
    origin.latency_seconds = 0.02
    reply = await proxy.whole(origin.url("/feed"))
    assert ids(reply.body) == expected
    assert len(origin.requests) == 20
    assert origin.peak_requests > 1


async def test_a_page_that_failed_is_tried_again_in_its_time(proxy: Proxy, origin: Origin) -> None:
    """R14, R16: entries behind it are found; stored pages cost nothing."""
    url = origin.url("/feed")
    publish_pages(origin, 15)
    origin.publish("/feed?page=4", b"", status=404)
    reply = await proxy.whole(url)
    assert (reply.state, len(ids(reply.body))) == ("partial", 1 + 9)
    origin.forget_requests()
    proxy.clock.advance(1000)
    assert (await proxy.whole(url)).state == "partial"
    assert origin.counts() == {"/feed": 1}

    expected = publish_pages(origin, 20)
    proxy.clock.advance(HOUR)
    reply = await proxy.whole(url)
    assert (reply.state, sorted(own_ids(reply.body))) == ("paged", sorted(expected))
    assert (await proxy.status(url))["missing"] == []


async def test_a_page_that_fails_in_a_refresh_is_missing_until_it_is_there(
    proxy: Proxy, origin: Origin
) -> None:
    """R16: new entries may stand behind it, so the stored copy is not enough."""
    url = origin.url("/feed")
    publish_pages(origin, 9)
    await proxy.whole(url)
    publish_pages(origin, 15)
    origin.publish("/feed?page=2", b"down", status=503)
    proxy.clock.advance(HOUR)
    assert (await proxy.whole(url)).state == "partial"
    expected = publish_pages(origin, 18)  # entries of page 2 moved to page 3; its stored copy is old
    assert sorted(await polled(proxy, url)) == sorted(expected)


async def test_what_moves_from_page_to_page_is_remembered_once(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R6, R8: despite any number of moves."""
    set_constant(monkeypatch, "SEALED_ENTRIES", 2)
    url = origin.url("/feed")
    for newest in range(9, 24, 2):
        publish_pages(origin, newest)
        assert len(await polled(proxy, url)) == newest
    ((remembered,),) = rows(proxy.database, "SELECT sum(entries) FROM document WHERE role = 'memory'")
    assert 0 < remembered <= 23


async def test_a_walk_through_pages_resumes_after_a_restart(tmp_path: Path, origin: Origin) -> None:
    """R14: by itself, and without a second fetch of stored pages."""
    expected = publish_pages(origin, 15)
    url = origin.url("/feed")
    config = a_config(tmp_path, history={"look_ahead": False})
    async with running(config) as proxy:
        with origin.held("/feed?page=4") as gate:
            await proxy.get(url, wait="0")
            await gate.reached()
            while (await proxy.status(url))["progress"]["documents"] < 3:
                pass
            await proxy.interrupted()
    origin.forget_requests()
    async with running(config) as proxy:
        await proxy.settled()
        reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)) == ("paged", expected)
    assert origin.counts() == {"/feed": 1, "/feed?page=4": 1, "/feed?page=5": 1}


async def test_pages_are_not_followed_when_that_is_off(tmp_path: Path, origin: Origin) -> None:
    """history.paged: the feed is remembered then (R7)."""
    publish_pages(origin, 9)
    async with running(a_config(tmp_path, history={"paged": False})) as proxy:
        reply = await proxy.whole(origin.url("/feed"))
        assert (reply.state, ids(reply.body)) == ("remembered", ["e9", "e8", "e7"])
        assert origin.counts() == {"/feed": 1}


async def test_pages_are_followed_once_that_is_switched_on(tmp_path: Path, origin: Origin) -> None:
    """history.paged: even if the document is unchanged."""
    expected = publish_pages(origin, 9)
    clock = Clock()
    async with running(a_config(tmp_path, history={"paged": False}), clock) as proxy:
        await proxy.whole(origin.url("/feed"))
    async with running(a_config(tmp_path), clock) as proxy:
        assert await polled(proxy, origin.url("/feed")) == expected


@pytest.mark.parametrize("marker", [False, True], ids=["numbered", "by marker"])
async def test_what_slides_off_a_page_is_kept_though_nothing_else_is_remembered(
    tmp_path: Path, origin: Origin, marker: bool
) -> None:
    """history.remember concerns entries that are gone; these have moved."""
    publish_pages(origin, 9, marker=marker)
    url = origin.url("/feed")
    async with running(a_config(tmp_path, history={"remember": False})) as proxy:
        await proxy.whole(url)
        expected = publish_pages(origin, 10, marker=marker)
        origin.forget_requests()
        assert sorted(await polled(proxy, url)) == sorted(expected)
        assert len(origin.requests) == 2


async def test_a_limit_ends_a_walk_through_pages_partial(tmp_path: Path, origin: Origin) -> None:
    """R18."""
    publish_pages(origin, 30)
    async with running(a_config(tmp_path, limits={"documents_per_feed": 4})) as proxy:
        reply = await proxy.whole(origin.url("/feed"))
        assert reply.reconstruction == "partial;documents=4;entries=12;missing=1"


async def test_another_sites_page_joins_only_with_a_confirmation(proxy: Proxy) -> None:
    """R24."""
    async with Origin("127.0.0.1") as here, Origin("127.0.0.2") as there:
        here.publish("/feed", atom(an_item("b", 2), next=there.url("/2")))
        there.publish("/2", atom(an_item("a", 1)))
        assert (await proxy.whole(here.url("/feed"))).state == "paged"
        here.publish("/other", atom(an_item("b", 2), next=there.url("/3")))
        there.publish("/3", atom(an_item("a", 1), feed_id="urn:other"))
        assert (await proxy.whole(here.url("/other"))).state == "partial"


async def test_what_turned_out_to_be_a_page_stays_one(proxy: Proxy, origin: Origin) -> None:
    """R4, R6: a poll does not take the newer document for an archive again."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1), prev="/new"))
    origin.publish("/new", atom(an_item("b", 2), next="/feed"))
    await proxy.whole(url)
    origin.forget_requests()
    assert await polled(proxy, url) == ["a", "b"]
    assert origin.counts() == {"/feed": 1}


async def test_what_a_page_of_the_other_format_takes_the_place_of_comes_back_with_all_the_rest(
    proxy: Proxy, origin: Origin
) -> None:
    """R8, R23, R25: including entries of pages fetched since."""
    url = origin.url("/feed")
    for names in ("a", "b"):  # an entry to remember
        origin.publish("/feed", atom(an_item(names), next="/2"))
        origin.publish("/2", atom(an_item("0")))
        await polled(proxy, url)
    origin.publish("/feed", rss(an_item("x"), next="/2"))
    origin.publish("/2", rss(an_item("y")))
    assert await polled(proxy, url) == ["x", "y"]

    origin.publish("/feed", atom(an_item("c")))
    reply = await proxy.refreshed(url)
    assert (reply.state, sorted(ids(reply.body))) == ("remembered", ["0", "a", "b", "c"])


async def test_what_a_complete_feed_took_away_does_not_come_back_with_its_format(
    proxy: Proxy, origin: Origin
) -> None:
    """R1, R23, R25: a page was no longer part of the feed when the format changed."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b"), next="/2"))
    origin.publish("/2", atom(an_item("a")))
    await polled(proxy, url)
    origin.publish("/feed", atom(an_item("b"), complete=True))
    assert (await proxy.refreshed(url)).state == "complete"
    origin.publish("/feed", rss(an_item("x"), next="/2"))
    origin.publish("/2", rss(an_item("y")))
    assert await polled(proxy, url) == ["x", "y"]

    origin.publish("/feed", atom(an_item("c")))
    assert "a" not in ids((await proxy.refreshed(url)).body)


async def test_pages_that_become_a_chain_are_walked_as_one(proxy: Proxy, origin: Origin) -> None:
    """R4, R6: the target of a bare `prev` decides; an earlier `next` proves nothing."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("c", 3), next="/2"))
    origin.publish("/2", atom(an_item("b", 2)))
    assert await polled(proxy, url) == ["c", "b"]

    origin.publish("/feed", atom(an_item("d", 4), prev="/1"))
    origin.publish("/1", atom(an_item("c", 3), an_item("b", 2), an_item("a", 1), archive=True))
    reply = await proxy.refreshed(url)
    assert (reply.state, sorted(own_ids(reply.body))) == ("complete", ["a", "b", "c", "d"])


async def test_a_feed_with_another_id_each_time_is_polled_like_any_other(
    proxy: Proxy, origin: Origin
) -> None:
    """R6, R24: Atom Hopper invents one each time, and links an empty page before the first."""
    url = origin.url("/feed")

    numbers = itertools.count()

    def publish(newest: int) -> list[str]:
        names = [f"e{number}" for number in range(newest, 0, -1)]
        pages = [names[at : at + 2] for at in range(0, newest, 2)]
        for place, page in enumerate(pages):
            older = (
                f"/feed?marker={pages[place + 1][0]}&amp;direction=backward" if page != pages[-1] else None
            )
            body = atom(
                *(an_item(name, int(name[1:])) for name in page), feed_id=f"urn:{next(numbers)}",
                current="/feed", previous=f"/feed?marker={page[0]}&amp;direction=forward", next=older,
            )  # fmt: skip
            origin.publish(f"/feed?marker={page[0]}&direction=backward" if place else "/feed", body)
        origin.publish(f"/feed?marker={names[0]}&direction=forward", atom(current="/feed", feed_id="urn:0"))
        return names

    expected = publish(6)
    assert ids((await proxy.whole(url)).body) == expected
    for newest, requests in ((6, 2), (7, 3), (8, 3), (11, 4)):
        origin.forget_requests()
        expected = publish(newest)
        assert sorted(await polled(proxy, url)) == sorted(expected)
        assert len(origin.requests) == requests


async def test_a_legacy_chain_is_immutable(proxy: Proxy, origin: Origin) -> None:
    """R4, R13: its documents bear no mark, but settle behind the newest."""
    url = origin.url("/feed")

    def publish(newest: int) -> list[str]:
        flag = "<fh:stateful>1</fh:stateful>"
        for number in range(1, newest + 1):
            older = f"/{number - 1}" if number > 1 else None
            item = an_item(f"e{number}", number)
            origin.publish(f"/{number}", atom(item, extra=flag, prev=older, this=f"/{number}"))
            origin.publish("/feed", atom(item, extra=flag, prev=older, this=f"/{number}"))
        return [f"e{number}" for number in range(newest, 0, -1)]

    assert ids((await proxy.whole(url)).body if publish(5) else b"") == [f"e{n}" for n in range(5, 0, -1)]
    origin.forget_requests()
    expected = publish(6)
    proxy.clock.advance(90_000)
    assert ids((await proxy.whole(url)).body) == expected
    assert origin.counts() == {"/feed": 1, "/5": 1, "/4": 1}
    origin.forget_requests()
    await proxy.refreshed(url)
    assert origin.counts() == {"/feed": 1}


@pytest.mark.parametrize("flag", ["", "<fh:stateful>1</fh:stateful>"])
async def test_under_stateful_nothing_that_was_replaced_leaves(
    proxy: Proxy, origin: Origin, flag: str
) -> None:
    """R15; -00, 3: previous entries MUST be considered part of the feed."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("c", 3), extra=flag + "<fh:prev>/2</fh:prev>"))
    origin.publish("/2", atom(an_item("b", 2), extra="<fh:prev>/1</fh:prev>"))
    origin.publish("/1", atom(an_item("a", 1)))
    await proxy.whole(url)
    origin.publish("/feed", atom(an_item("c", 3), extra=flag + "<fh:prev>/2b</fh:prev>"))
    origin.publish("/2b", atom(an_item("x", 2), extra="<fh:prev>/1</fh:prev>"))
    reply = await proxy.refreshed(url)
    assert (reply.state, sorted(ids(reply.body))) == ("complete", sorted("acxb" if flag else "acx"))


async def test_a_feed_that_an_older_version_has_read_is_read_again(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R0: the parser may now understand more of its links, so the document is fetched without a condition."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a")), etag='"1"')
    await proxy.whole(url)
    await proxy.looked(url)
    assert "if-none-match" in origin.requests[-1].headers
    set_constant(monkeypatch, "PARSER_VERSION", 10_000)  # one that will not come for long
    await proxy.looked(url)
    assert "if-none-match" not in origin.requests[-1].headers


async def test_a_refresh_through_pages_that_was_interrupted_loses_nothing(
    tmp_path: Path, origin: Origin
) -> None:
    """R6, R14: entries that slid to a page behind the fetched ones are found after a restart."""
    publish_pages(origin, 9)
    url = origin.url("/feed")
    clock = Clock()
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(url)
        expected = publish_pages(origin, 18)
        clock.advance(HOUR)
        with origin.held("/feed?page=3") as gate:
            await proxy.get(url, wait="0")
            await gate.reached()
            await proxy.interrupted()
    async with running(a_config(tmp_path), clock) as proxy:
        reply = await proxy.whole(url)
    assert (reply.state, sorted(ids(reply.body))) == ("paged", sorted(expected))


async def test_pages_that_change_their_format_are_collected_anew(proxy: Proxy, origin: Origin) -> None:
    """R6, R23: entries known from the other format prove nothing about this one."""
    url = origin.url("/feed")
    for make in (atom, rss, atom, rss):
        for name, place, older in (("c", "", "?page=2"), ("b", "?page=2", "?page=3"), ("a", "?page=3", None)):
            origin.publish(f"/feed{place}", make(an_item(name), next=older and f"/feed{older}"))
        assert sorted(await polled(proxy, url)) == ["a", "b", "c"]


async def test_pages_that_come_back_with_their_format_are_looked_at_again(
    proxy: Proxy, origin: Origin
) -> None:
    """R6, R23: including those behind an unchanged one; nobody saw the changes meanwhile."""
    url, feed = origin.url("/feed"), atom(an_item("c"), next="/2")
    origin.publish("/feed", feed)
    origin.publish("/2", atom(an_item("b"), next="/3"), etag='"2"')
    origin.publish("/3", atom(an_item("a")))
    assert await polled(proxy, url) == ["c", "b", "a"]
    origin.publish("/feed", rss(an_item("x")))
    assert (await proxy.refreshed(url)).state == "remembered"

    origin.publish("/feed", feed)
    origin.publish("/3", atom(an_item("a"), an_item("0")))
    assert await polled(proxy, url) == ["c", "b", "a", "0"]


async def test_what_is_new_is_found_where_pages_are_counted_from_the_oldest(
    proxy: Proxy, origin: Origin
) -> None:
    """R6, R20: such a feed, requested at its oldest page, has its news on the last one."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1), next="/2"), etag='"1"')
    origin.publish("/2", atom(an_item("b", 2), next="/3"), etag='"1"')
    origin.publish("/3", atom(an_item("c", 3)), etag='"1"')
    assert await polled(proxy, url) == ["a", "c", "b"]
    origin.forget_requests()
    assert await polled(proxy, url) == ["a", "c", "b"]
    assert origin.counts() == {"/feed": 1, "/3": 1}

    for newest in (4, 5, 6):
        old, new = an_item(f"{newest - 1}", newest - 1), an_item(f"{newest}", newest)
        before = an_item("c", 3) if newest == 4 else old
        origin.publish(f"/{newest - 1}", atom(before, next=f"/{newest}"), etag='"2"')
        origin.publish(f"/{newest}", atom(new), etag='"1"')
        origin.forget_requests()
        found = await polled(proxy, url)
        assert found == ["a", *(str(number) for number in range(newest, 3, -1)), "c", "b"]
        assert len(origin.requests) == 3
