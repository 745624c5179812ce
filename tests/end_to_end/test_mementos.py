"""Documents lost at their publishers, from a web archive (R33)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import wholefeed
from tests.answers import Document, Redirect, Reset, Status
from tests.feeds import an_item, atom, own_ids, publish_chain, rss, texts
from tests.fetchers import Names, opening
from tests.origin import Origin
from tests.processes import printed
from tests.running import Proxy
from tests.web_archive import INDEX, WebArchive, open_searches, searched, searching

HOUR = 3600


@pytest.fixture
async def archive() -> AsyncIterator[WebArchive]:
    async with WebArchive() as archive:
        yield archive


async def chained(proxy: Proxy, url: str) -> dict[str, Any]:
    return {each["url"]: each for each in (await proxy.status(url))["chain"]}


def captured(chain: dict[str, Any]) -> set[str]:
    return {each["memento"]["captured"][:4] for each in chain.values() if each["memento"] is not None}


def hollow_chain(origin: Origin, archive: WebArchive, *, hole: int = 2, archives: int = 4) -> list[str]:
    """Publish a chain without one archive document, which the web archive has; return the ids."""
    expected = publish_chain(origin, archives=archives)
    older = f"/archive/{hole - 1}" if hole > 1 else None
    held = [an_item(f"e{number}", number) for number in (2 * hole, 2 * hole - 1)]
    body = atom(*held, updated=2 * hole, archive=True, prev_archive=older, current="/feed")
    archive.save(origin.url(f"/archive/{hole}"), 2019, body)
    origin.remove(f"/archive/{hole}")
    return expected


# A hole in a chain


async def test_a_hole_is_filled_from_the_archive(origin: Origin, archive: WebArchive, tmp_path: Path) -> None:
    """R33: its links lead on to the publisher's own documents."""
    expected = hollow_chain(origin, archive)
    url, hole = origin.url("/feed"), origin.url("/archive/2")
    copy = archive.origin.url(f"/web/20190501120000id_/{hole}")
    async with searching(archive, tmp_path) as proxy:
        reply = await searched(proxy, url)
        assert own_ids(reply.body) == expected
        assert reply.reconstruction == "partial;documents=5;entries=10;missing=1"
        status = await proxy.status(url)
        (missing,) = status["missing"]
        assert (missing["url"], missing["reason"], missing["status"]) == (hole, "publisher-status", 404)
        (note,) = [each for each in status["notes"] if each["code"] == "MementoServed"]
        assert note["url"] == hole
        assert "2019-05-01T12:00:00Z" in note["text"]
        assert copy in note["text"]
        chain = await chained(proxy, url)
        assert chain[hole]["memento"] == {"url": copy, "captured": "2019-05-01T12:00:00Z"}
        assert chain[origin.url("/archive/1")]["memento"] is None
    assert [archive.searches, len(archive.copies), origin.counts()["/archive/2"]] == [1, 1, 1]


async def test_the_archive_is_asked_for_nothing_unless_it_is_switched_on(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: the operator decides who learns the reading of the proxy's users."""
    hollow_chain(origin, archive)
    async with searching(archive, tmp_path, history={"memento": False}) as proxy:
        reply = await proxy.whole(origin.url("/feed"))
        assert reply.state == "partial"
        await proxy.settled()
        gone = await proxy.get(origin.url("/gone"))
        assert gone.status == 404
    assert archive.origin.requests == []


async def test_the_publisher_s_own_document_replaces_the_copy(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: it is tried again at its time; nothing of the memento remains."""
    expected = hollow_chain(origin, archive)
    url, hole = origin.url("/feed"), origin.url("/archive/2")
    async with searching(archive, tmp_path) as proxy:
        await searched(proxy, url)
        proxy.clock.advance(HOUR // 2)
        origin.forget_requests()
        await proxy.whole(url)
        assert "/archive/2" not in origin.counts()  # its time has not come

        proxy.clock.advance(HOUR)
        assert (await proxy.whole(url)).state == "partial"
        assert origin.counts()["/archive/2"] == 1
        (missing,) = (await proxy.status(url))["missing"]
        assert missing["attempts"] == 2

        own = atom(
            an_item("e4", 4, "own"), an_item("e3", 3), updated=4, archive=True, prev_archive="/archive/1"
        )
        origin.publish("/archive/2", own)
        proxy.clock.advance(2 * HOUR)
        reply = await proxy.whole(url)
        assert (reply.state, own_ids(reply.body)) == ("complete", expected)
        assert texts(reply.body)["e4"] == "own"
        assert (await chained(proxy, url))[hole]["memento"] is None
    assert archive.searches == 1


async def test_the_same_body_from_its_publisher_is_the_publisher_s(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: even byte for byte the same as the memento."""
    expected = publish_chain(origin, archives=2)
    body = atom(an_item("e2", 2), an_item("e1", 1), archive=True, current="/feed")
    archive.save(origin.url("/archive/1"), 2019, body)
    origin.remove("/archive/1")
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        await searched(proxy, url)
        origin.publish("/archive/1", body)
        reply = await proxy.refreshed(url)
        assert (reply.state, own_ids(reply.body)) == ("complete", expected)
        assert captured(await chained(proxy, url)) == set()


async def test_what_a_copy_leads_to_is_asked_of_its_publisher_first(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: and the archive only if the publisher has lost it."""
    expected = hollow_chain(origin, archive, hole=3)
    for number in (2, 1):
        held = [an_item(f"e{2 * number}", 2 * number), an_item(f"e{2 * number - 1}", 2 * number - 1)]
        older = f"/archive/{number - 1}" if number > 1 else None
        archive.save(origin.url(f"/archive/{number}"), 2018, atom(*held, archive=True, prev_archive=older))
    origin.remove("/archive/2")
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        reply = await searched(proxy, url)
        assert own_ids(reply.body) == expected
        assert reply.reconstruction == "partial;documents=5;entries=10;missing=2"
        chain = await chained(proxy, url)
        assert [chain[origin.url(f"/archive/{n}")]["memento"] is None for n in (4, 3, 2, 1)] == [
            True, False, False, True,
        ]  # fmt: skip
    assert len(archive.copies) == 2


@pytest.mark.parametrize(
    "newest",
    [
        b"<html><body>Sorry</body></html>",
        b"<feed xmlns='http://www.w3.org/2005/Atom'><entry>",
        atom(an_item("x"), feed_id="urn:somebody-else", archive=True),
        rss(an_item("x"), archive=True),
        None,
    ],
    ids=["html", "broken", "another feed", "another format", "not there"],
)
async def test_an_earlier_copy_serves_where_the_newest_is_of_no_use(
    origin: Origin, archive: WebArchive, tmp_path: Path, newest: bytes | None
) -> None:
    """R33, R23, R24: the domain may have changed hands, and an archive is another site."""
    expected = hollow_chain(origin, archive)
    archive.save(origin.url("/archive/2"), 2021, newest)
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        assert own_ids((await searched(proxy, url)).body) == expected
        assert captured(await chained(proxy, url)) == {"2019"}
    assert len(archive.copies) == 2


async def test_a_copy_that_leads_to_another_is_of_that_time(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: archives redirect to the nearest memento."""
    expected = hollow_chain(origin, archive)
    hole = origin.url("/archive/2")
    archive.save(hole, 2020, b"", answer=Redirect(f"/web/20190501120000id_/{hole}"))
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        assert own_ids((await searched(proxy, url)).body) == expected
        assert captured(await chained(proxy, url)) == {"2019"}


async def test_a_copy_that_leads_elsewhere_is_none(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: neither to the publisher's front page, nor to a page with the archive's own links."""
    expected = hollow_chain(origin, archive)
    hole = origin.url("/archive/2")
    archive.save(hole, 2020, b"", answer=Redirect(origin.url("/feed")))
    archive.save(hole, 2021, b"", answer=Redirect(f"/web/20190501120000/{hole}"))
    archive.save(hole, 2022, b"", answer=Redirect(f"/web/20190501120000id_/{origin.url('/other')}"))
    archive.origin.publish(f"/web/20190501120000/{hole}", atom(an_item("x"), archive=True))
    archive.origin.publish(f"/web/20190501120000id_/{origin.url('/other')}", atom(an_item("x"), archive=True))
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        assert own_ids((await searched(proxy, url)).body) == expected
        assert captured(await chained(proxy, url)) == {"2019"}


async def test_what_the_archive_does_not_have_stays_missing_and_is_not_looked_for_again(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: for a week."""
    hollow_chain(origin, archive)
    archive.rows.clear()
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        reply = await searched(proxy, url)
        assert reply.reconstruction.startswith("partial;")
        assert reply.reconstruction.endswith("missing=1")
        for _ in range(3):
            proxy.clock.advance(2 * HOUR)
            await searched(proxy, url)
    assert (archive.searches, archive.copies) == (1, [])


async def test_a_copy_settles_nothing(origin: Origin, archive: WebArchive, tmp_path: Path) -> None:
    """R33, R8: a remembered copy outlives the memento with the same entry."""
    archive.save(origin.url("/1"), 2019, atom(an_item("x", 1), an_item("a", 0), archive=True))
    origin.publish("/feed", atom(an_item("b", 2), an_item("x", 1, "late"), updated=2, prev_archive="/1"))
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        await searched(proxy, url)
        origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2), updated=3, prev_archive="/1"))
        assert set(own_ids((await proxy.refreshed(url)).body)) == {"c", "b", "x", "a"}
        origin.publish("/1", atom(an_item("a", 0), archive=True))
        reply = await proxy.refreshed(url)
        assert (reply.state, set(own_ids(reply.body))) == ("complete", {"c", "b", "x", "a"})


async def test_a_copy_buries_nothing(origin: Origin, archive: WebArchive, tmp_path: Path) -> None:
    """R33, R19: a tombstone in it counts only for its time."""
    at = 'xmlns:at="http://purl.org/atompub/tombstones/1.0"'
    grave = f'<at:deleted-entry {at} ref="urn:a" when="2030-01-01T00:00:00Z"/>'
    archive.save(origin.url("/2"), 2025, atom(an_item("b", 1), archive=True, prev_archive="/1", extra=grave))
    origin.publish("/feed", atom(an_item("c", 2), prev_archive="/2"))
    origin.publish("/1", atom(an_item("a", 0), archive=True))
    async with searching(archive, tmp_path) as proxy:
        assert own_ids((await searched(proxy, origin.url("/feed"))).body) == ["c", "b", "a"]


async def test_a_copy_detaches_nothing(origin: Origin, archive: WebArchive, tmp_path: Path) -> None:
    """R33, R15: documents passed over by its links were not replaced by anybody."""
    publish_chain(origin, archives=4)
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        await proxy.whole(url)
        jump = atom(an_item("new", 99), archive=True, prev_archive="/archive/1")
        archive.save(origin.url("/new"), 2019, jump)
        origin.publish("/feed", atom(an_item("e10", 10), an_item("e9", 9), updated=99, prev_archive="/new"))
        await proxy.refreshed(url)
        reply = await searched(proxy, url)
        assert set(own_ids(reply.body)) == {f"e{n}" for n in range(1, 11)} | {"new"}


async def test_the_capture_is_the_time_of_fetch(origin: Origin, archive: WebArchive, tmp_path: Path) -> None:
    """R33, R10: an instant after it counts as none, as at that time."""
    origin.publish("/feed", atom(an_item("b", 9), prev_archive="/2"))
    held = [an_item("a", 5, "archived")]
    archive.save(origin.url("/2"), 2019, atom(*held, archive=True, prev_archive="/1"))
    origin.publish("/1", atom(an_item("a", 1, "own"), archive=True))
    async with searching(archive, tmp_path) as proxy:
        assert texts((await searched(proxy, origin.url("/feed"))).body)["a"] == "own"


async def test_a_missing_page_is_filled_too(origin: Origin, archive: WebArchive, tmp_path: Path) -> None:
    """R33, R6."""
    origin.publish("/feed", atom(an_item("c", 3), next="/2"))
    origin.fault("/2", Redirect("/"))
    origin.publish("/", "<html><body>Hello</body></html>", content_type="text/html")
    archive.save(origin.url("/2"), 2019, atom(an_item("b", 2), next="/3"))
    origin.publish("/3", atom(an_item("a", 1)))
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        reply = await searched(proxy, url)
        assert (reply.state, own_ids(reply.body)) == ("partial", ["c", "b", "a"])
        origin.publish("/2", atom(an_item("b", 2, "own"), next="/3"))
        reply = await proxy.refreshed(url)
        assert (reply.state, texts(reply.body)["b"]) == ("paged", "own")


# A feed that is gone


def rolling(origin: Origin, archive: WebArchive, *, years: range, path: str = "/feed") -> list[str]:
    """Archive a rolling feed of three entries, one entry a year; return all ids, newest first."""
    for year in years:
        number = year - years.start
        items = [an_item(f"y{n}", n) for n in range(number, max(number - 3, -1), -1)]
        archive.save(origin.url(path), year, atom(*items, updated=number))
    return [f"y{n}" for n in range(len(years) - 1, -1, -1)]


async def test_a_feed_that_is_gone_is_had_from_the_archive(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: all its mementos; a feed that exists only there is partial, and gives their date."""
    expected = rolling(origin, archive, years=range(2010, 2020))
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        first = await proxy.get(url)
        assert (first.status, first.state) == (200, "partial")
        assert own_ids(first.body)[:3] == expected[:3]
        reply = await searched(proxy, url)
        assert own_ids(reply.body) == expected
        assert reply.reconstruction.startswith("partial;")
        assert "missing=1" in reply.reconstruction
        assert "stale" in reply.reconstruction
        status = await proxy.status(url)
        assert status["failure"]["status"] == 404
        assert [(each["url"], each["reason"]) for each in status["missing"]] == [(url, "memento")]
        texts_of = [each["text"] for each in status["notes"] if each["code"] == "MementoServed"]
        assert any("a copy of 2019-05-01T12:00:00Z in" in text for text in texts_of)
        chain = await chained(proxy, url)
        assert all(each["memento"] is not None for each in chain.values())
        assert captured(chain) >= {"2010", "2019"}
        assert chain[url]["memento"]["captured"] == "2019-05-01T12:00:00Z"


async def test_a_dead_host_s_feed_is_had_from_the_archive(archive: WebArchive, tmp_path: Path) -> None:
    """R33: even at the first request."""
    async with Origin() as origin, searching(archive, tmp_path) as proxy:
        expected = rolling(origin, archive, years=range(2015, 2018))
        await origin.stop()  # when the proxy has a port: else it may get this one
        assert own_ids((await searched(proxy, origin.url("/feed"))).body) == expected


async def test_a_known_feed_that_goes_is_completed_from_the_archive(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: entries seen by the proxy stay the publisher's."""
    expected = rolling(origin, archive, years=range(2010, 2014))
    url = origin.url("/feed")
    own = an_item("own", 50)
    origin.publish("/feed", atom(own, an_item("y3", 3, "as seen"), updated=50))
    async with searching(archive, tmp_path) as proxy:
        assert (await searched(proxy, url)).state == "remembered"
        assert archive.origin.requests == []
        origin.answer("/feed", Status(410))
        await proxy.refreshed(url)
        reply = await searched(proxy, url)
        assert own_ids(reply.body) == ["own", *expected]
        assert texts(reply.body)["y3"] == "as seen"
        assert reply.state == "partial"
        assert (await chained(proxy, url))[url]["memento"] is None


async def test_a_feed_that_comes_back_keeps_its_history(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: earlier mementos stay, so it stays partial."""
    expected = rolling(origin, archive, years=range(2010, 2016))
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        await searched(proxy, url)
        origin.publish("/feed", atom(an_item("new", 50), updated=50))
        reply = await proxy.refreshed(url)
        assert own_ids(reply.body) == ["new", *expected]
        assert reply.state == "partial"
        assert "stale" not in reply.reconstruction
        chain = await chained(proxy, url)
        assert chain[url]["memento"] is None
        assert captured(chain) == {str(year) for year in range(2010, 2016)}
        assert not [each for each in chain.values() if each["role"] == "memory"]
        asked = len(archive.origin.requests)
        proxy.clock.advance(30 * 24 * HOUR)
        await searched(proxy, url)
        assert len(archive.origin.requests) == asked


async def test_the_same_document_back_at_its_publisher_is_its_own(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: byte for byte."""
    url, body = origin.url("/feed"), atom(an_item("a", 1))
    archive.save(url, 2019, body)
    async with searching(archive, tmp_path) as proxy:
        assert (await searched(proxy, url)).state == "partial"
        origin.publish("/feed", body)
        reply = await proxy.refreshed(url)
        assert (reply.state, own_ids(reply.body)) == ("remembered", ["a"])


async def test_no_flag_of_a_copy_counts(origin: Origin, archive: WebArchive, tmp_path: Path) -> None:
    """R33, R1, R5: a flag described the feed at that time."""
    url = origin.url("/feed")
    archive.save(url, 2018, atom(an_item("a", 1)))
    flags = "<fh:incremental>false</fh:incremental>"
    archive.save(url, 2019, atom(an_item("b", 2), complete=True, extra=flags))
    async with searching(archive, tmp_path) as proxy:
        reply = await searched(proxy, url)
        assert (reply.state, own_ids(reply.body)) == ("partial", ["b", "a"])
        assert b"complete" not in reply.body


async def test_the_chain_of_a_feed_that_is_gone_is_walked_in_the_archive(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: its archive documents are missing like any."""
    archive.save(origin.url("/feed"), 2019, atom(an_item("c", 3), prev_archive="/2"))
    archive.save(origin.url("/2"), 2018, atom(an_item("b", 2), archive=True, prev_archive="/1"))
    archive.save(origin.url("/1"), 2018, atom(an_item("a", 1), archive=True))
    async with searching(archive, tmp_path) as proxy:
        reply = await searched(proxy, origin.url("/feed"))
        assert (reply.state, own_ids(reply.body)) == ("partial", ["c", "b", "a"])
        assert "missing=3" in reply.reconstruction


async def test_relative_urls_mean_what_they_meant(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33, R22: a memento has its publisher's URL, not its address in the archive."""
    body = atom(an_item("a", 1)).replace(b'href="http://site.test/a"', b'href="a.html"')
    archive.save(origin.url("/blog/feed"), 2019, body)
    async with searching(archive, tmp_path) as proxy:
        reply = await searched(proxy, origin.url("/blog/feed"))
        assert origin.url("/blog/a.html").encode() in reply.body


@pytest.mark.parametrize("is_keyless", [False, True])
@pytest.mark.sample("True")
async def test_an_index_of_many_pages_is_read_to_its_end(
    origin: Origin, archive: WebArchive, tmp_path: Path, is_keyless: bool
) -> None:
    """R33: by its resume keys, fifty mementos a page; after an end without a key the search asks for later
    ones."""
    archive.is_keyless = is_keyless
    count = 2 * 50 + 10
    for number in range(count):
        stamp = f"2010{1 + number // 28:02}{1 + number % 28:02}120000"
        archive.save(origin.url("/feed"), stamp, atom(an_item(f"n{number}", number), updated=number))
    async with searching(archive, tmp_path) as proxy:
        reply = await searched(proxy, origin.url("/feed"))
        assert own_ids(reply.body) == [f"n{number}" for number in range(count - 1, -1, -1)]
    assert archive.searches == 1 + 3
    assert len(archive.copies) == count + 1  # the newest one twice: as the feed, and in its turn


async def test_a_restart_asks_for_no_copy_twice(origin: Origin, archive: WebArchive, tmp_path: Path) -> None:
    """R33: the progress of a search is stored."""
    expected = rolling(origin, archive, years=range(2000, 2020))
    url = origin.url("/feed")
    async with searching(archive, tmp_path) as proxy:
        await proxy.whole(url)
        async with asyncio.timeout(300):
            while len(archive.copies) < 8:
                await asyncio.sleep(0.01)
    async with searching(archive, tmp_path) as proxy:
        assert own_ids((await searched(proxy, url)).body) == expected
    asked = archive.copies
    assert len([each for each in asked if each.startswith("2019")]) == 2
    assert len(asked) <= 20 + 1 + 1  # the newest one twice, and the one that was under way


@pytest.mark.parametrize("limits", [{"documents_per_feed": 6}, {"feed_bytes": 4000}])
async def test_no_more_copies_are_taken_than_a_feed_may_have(
    origin: Origin, archive: WebArchive, tmp_path: Path, limits: dict[str, int]
) -> None:
    """R33, R18."""
    rolling(origin, archive, years=range(2000, 2020))
    async with searching(archive, tmp_path, limits=limits) as proxy:
        reply = await searched(proxy, origin.url("/feed"))
        assert 4 <= (await proxy.status(origin.url("/feed")))["documents"] <= 7
        assert reply.state == "partial"
    assert len(archive.copies) < 10


async def test_a_feed_that_nobody_has_is_answered_as_its_publisher_does(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: and further readers cause no further requests to the archive."""
    async with searching(archive, tmp_path) as proxy:
        for _ in range(3):
            assert (await proxy.get(origin.url("/gone"))).status == 404
            proxy.clock.advance(HOUR)
    assert archive.searches == 1


# Facts that the archive may learn


async def test_nothing_of_a_private_network_is_told_to_the_archive(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: unless its host is listed."""
    hollow_chain(origin, archive)
    rolling(origin, archive, years=range(2010, 2012), path="/gone")
    async with searching(archive, tmp_path, history={"memento_query_hosts": ()}) as proxy:
        assert (await proxy.whole(origin.url("/feed"))).state == "partial"
        assert (await proxy.get(origin.url("/gone"))).status == 404
        await proxy.settled()
    assert archive.origin.requests == []


@pytest.mark.parametrize("is_listed", [False, True])
async def test_no_query_is_told_to_the_archive_unless_the_host_is_listed(
    origin: Origin, archive: WebArchive, tmp_path: Path, is_listed: bool
) -> None:
    """R33: history.memento_query_hosts; a query may hold a secret that admits a reader."""
    names = opening(resolver=Names({"blog.example.org": ("127.0.0.1",)}))
    url = f"http://blog.example.org:{origin.port}/?feed=rss2"
    plain = f"http://blog.example.org:{origin.port}/feed"
    archive.save(url, 2019, atom(an_item("a", 1)))
    archive.save(plain, 2019, atom(an_item("b", 1)))
    hosts = ("*.example.org",) if is_listed else ()
    history = {"memento_query_hosts": hosts}
    async with searching(archive, tmp_path, history=history, open_fetcher=names) as proxy:
        assert (await searched(proxy, plain)).status == 200
        assert (await proxy.get(url)).status == (200 if is_listed else 404)
    asked = {each.target for each in archive.origin.requests if "rss2" in each.target}
    assert bool(asked) is is_listed


# Harm that the archive may try


@pytest.mark.parametrize("failing", [INDEX, "copy"])
@pytest.mark.parametrize(
    "answer",
    [Status(429, (("Retry-After", "3600"),)), Status(503), Status(500), Reset()],
    ids=["429", "503", "500", "reset"],
)
async def test_an_archive_that_fails_is_left_alone_and_nobody_waits_for_it(
    origin: Origin, archive: WebArchive, tmp_path: Path, answer: Any, failing: str
) -> None:
    """R33: the search goes on when it is back."""
    hollow_chain(origin, archive)
    url, hole = origin.url("/feed"), origin.url("/archive/2")
    archive.origin.fault(INDEX if failing == INDEX else f"/web/20190501120000id_/{hole}", answer)
    async with searching(archive, tmp_path) as proxy:
        assert (await proxy.whole(url)).state == "partial"
        async with asyncio.timeout(300):
            while len(archive.origin.requests) < (1 if failing == INDEX else 2):
                await asyncio.sleep(0.01)
            while await open_searches(proxy):  # until it is put off
                await asyncio.sleep(0.01)
        await proxy.settled()
        asked = len(archive.origin.requests)
        proxy.clock.advance(2 * HOUR)
        assert (await proxy.refreshed(url)).state == "partial"
        assert len(archive.origin.requests) == asked
        assert await open_searches(proxy) == 1


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[[1,2],3]", b"[" * 10_000, b'[["timestamp"],["20190501120000"]]', b" " * 2_000_000],
    ids=["html", "shape", "nested", "columns", "large"],
)
async def test_a_hostile_index_harms_nothing(
    origin: Origin, archive: WebArchive, tmp_path: Path, body: bytes
) -> None:
    """R33: it counts as empty, and other feeds have their turn."""
    hollow_chain(origin, archive)
    rolling(origin, archive, years=range(2010, 2012), path="/gone")
    archive.origin.fault(INDEX, Document(body=body), times=1)
    async with searching(archive, tmp_path) as proxy:
        assert (await searched(proxy, origin.url("/feed"))).state == "partial"
        assert (await searched(proxy, origin.url("/gone"))).state == "partial"
    assert len(archive.copies) > 0


async def test_a_walk_is_published_before_the_archive_is_asked_and_none_waits_for_its_turn(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: five requests a minute; the sixth waits, and readers do not."""
    hollow_chain(origin, archive)
    rolling(origin, archive, years=range(2000, 2020), path="/gone")
    async with searching(archive, tmp_path, is_hasty=False) as proxy:
        assert (await proxy.get(origin.url("/gone"))).state == "partial"
        async with asyncio.timeout(300):
            while len(archive.origin.requests) < 5:
                await asyncio.sleep(0.01)
        await proxy.settled()
        reply = await proxy.whole(origin.url("/feed"))
        assert (reply.state, proxy.is_busy) == ("partial", False)
        assert (await proxy.get(origin.url("/gone"))).status == 200
    assert len(archive.origin.requests) == 5


async def test_without_a_server_the_archive_is_asked_before_the_end(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: nothing runs beside `wholefeed.reconstruct`, `wholefeed fetch` and `explain`."""
    expected = hollow_chain(origin, archive)
    history = {
        "memento": True,
        "memento_url": archive.origin.url("").rstrip("/"),
        "memento_query_hosts": ["127.0.0.1"],
    }
    config = {"fetch": {"allow_networks": ["127.0.0.0/8"], "retries": 0}, "history": history}
    async with wholefeed.open(config=config) as library:
        feed, _ = await asyncio.gather(*(library.reconstruct(origin.url("/feed")) for _ in range(2)))
    assert [archive.searches, len(archive.copies)] == [1, 1], "once for both"
    assert [entry.identity for entry in feed.entries] == [f"urn:{name}" for name in expected]
    assert (feed.state, [each.url for each in feed.missing]) == ("partial", [origin.url("/archive/2")])
    told = await asyncio.to_thread(
        printed,
        tmp_path,
        "explain",
        origin.url("/feed"),
        fetch_allow_networks="127.0.0.0/8",
        history_memento=True,
        history_memento_url=history["memento_url"],
        history_memento_query_hosts="127.0.0.1",
    )
    assert "from a web archive, as of 2019-05-01T12:00:00Z: " in told


async def test_a_feed_that_is_forgotten_while_it_is_looked_for_stays_forgotten(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33, R25."""
    hollow_chain(origin, archive)
    url, hole = origin.url("/feed"), origin.url("/archive/2")
    async with searching(archive, tmp_path) as proxy:
        with archive.origin.held(f"/web/20190501120000id_/{hole}") as gate:
            await proxy.whole(url)
            await gate.reached()
            assert (await proxy.ask("DELETE", "/feed", params={"url": url})).status == 204
            gate.release()
        async with asyncio.timeout(300):
            while archive.origin.running_requests:
                await asyncio.sleep(0.01)
        await proxy.settled()
        assert await proxy.feeds() == []


async def test_the_guard_stands_before_the_archive_too(
    origin: Origin, archive: WebArchive, tmp_path: Path
) -> None:
    """R33: it judges the archive's address and its links like any other."""
    hollow_chain(origin, archive)
    async with searching(archive, tmp_path, fetch={"allow_networks": ("127.0.0.1/32",)}) as proxy:
        assert (await proxy.whole(origin.url("/feed"))).state == "partial"
        await proxy.settled()
    assert archive.origin.requests == []
