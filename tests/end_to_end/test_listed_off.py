"""Listed entries in `Feed-Reconstruction`, and a feed without them: `listed=off` (H1, H7)."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.answers import Status
from tests.feeds import links
from tests.listing import LISTS, look_again, looked
from tests.origin import Origin
from tests.postgres import on_both
from tests.publishers.archive_page import ArchivePage, Post
from tests.running import Proxy, Reply, StandingClock, StartProxy, a_config, running
from wholefeed.web.keys import COUNTS

LONG = "x" * 20_000
in_all_formats = pytest.mark.parametrize("family", ["rss", "atom", "rdf", "json"])


@pytest.fixture
async def looking(start: StartProxy) -> Proxy:
    return await start(history=LISTS)


@dataclass
class Twins:
    """Two proxies that see the same blog; one looks at its pages."""

    looks: Proxy
    other: Proxy
    url: str

    async def alike(self, **query: Any) -> tuple[Reply, Reply]:
        """Get both answers without listed entries; they agree but for that parameter."""
        replies = (
            await self.looks.get(self.url, listed="off", **query),
            await self.other.get(self.url, **query),
        )
        bodies = [
            reply.body.replace(b"%d/feed" % (proxy.client.port or 0), b"PORT/feed")
            for reply, proxy in zip(replies, (self.looks, self.other), strict=True)
        ]
        for written in (b"&amp;listed=off", b"&listed=off"):
            bodies[0] = bodies[0].replace(written, b"")
        assert bodies[0] == bodies[1], query
        assert replies[0].reconstruction == replies[1].reconstruction
        return replies


@pytest.fixture
async def twins(tmp_path: Path, origin: Origin, store_url: str) -> AsyncIterator[Twins]:
    clock = StandingClock()
    looks, other = [tmp_path / name for name in ("looks", "other")]
    looks.mkdir()
    other.mkdir()
    looking = a_config(looks, history=LISTS, store={"url": store_url})
    async with running(looking, clock) as one, running(a_config(other), clock) as two:
        yield Twins(one, two, origin.url("/feed"))


async def published(blog: ArchivePage, twins: Twins) -> list[Post]:
    """Publish 30 posts, and 30 more, half of which slip by; return those that the feed showed."""
    blog.posts, blog.shown = 30, 15
    blog.publish()
    await twins.looks.get(twins.url)
    await looked(twins.looks)
    await twins.other.get(twins.url)
    blog.posts = 60
    blog.publish()
    twins.looks.clock.advance(86_400)
    await look_again(twins.looks, twins.url)
    await twins.other.refreshed(twins.url)
    whole = await twins.looks.get(twins.url)
    assert (whole.state, ";entries=60;missing=0;listed=30;" in whole.reconstruction) == ("listed", True)
    return [each for each in blog.newest_first if each.number > 45 or 15 < each.number <= 30]


def instant(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def paths(reply: Reply) -> list[str]:
    if reply.body.startswith(b"{"):
        found = [item["url"] for item in json.loads(reply.body)["items"]]
    else:
        found = [part.partition(b"</link>")[0].decode() for part in reply.body.split(b"<link>")[2:]]
    return ["/" + url.split("/", 3)[3] for url in found]


# The header


async def test_the_header_says_how_many_entries_are_listed(looking: Proxy, origin: Origin) -> None:
    """H7: and since when all were seen; a view and a replay give the whole feed's."""
    ArchivePage(origin, posts=30).publish()
    url = origin.url("/feed")
    first = await looking.get(url)
    await looked(looking)
    since = first.reconstruction.partition(";since=")[2]
    said = "listed;documents=2;entries=30;missing=0;listed=25;since="
    assert (await looking.get(url)).reconstruction == said + since
    assert (await looking.get(url, limit="3")).reconstruction == said + since + ";cut"
    begun = instant(looking.clock() - 2)
    query: dict[str, Any] = {"replay": "1/day", "from": begun}
    replay = await looking.get(url, **query)
    assert replay.reconstruction == said + since + ";released=2"


async def test_the_header_says_so_of_a_partial_and_of_a_loading_feed(looking: Proxy, origin: Origin) -> None:
    """H7: for every state."""
    blog = ArchivePage(origin, posts=40, per_page=10)
    blog.publish()
    origin.fault("/archive/page/4/", Status(503))
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    partial = "documents=4;entries=30;missing=1;listed=25"
    assert (await looking.get(url)).reconstruction == f"partial;{partial}"
    blog.extra = (
        f'<a:link xmlns:a="http://www.w3.org/2005/Atom" rel="prev-archive" href="{origin.url("/1")}"/>'
    )
    blog.publish()
    with origin.held("/1"):
        await looking.ask("POST", "/refresh", params={"url": url})
        reply = await looking.get(url, wait="1")
        assert (reply.state, ";listed=25" in reply.reconstruction) == ("loading", True)
        without = await looking.get(url, wait="0", listed="off")
        assert without.state == "loading"
        assert paths(without) == [each.path for each in blog.newest_first[:5]]


# Entries of the feed itself


@on_both
@in_all_formats
async def test_without_listed_entries_a_feed_is_as_if_nobody_had_looked(
    twins: Twins, origin: Origin, family: str
) -> None:
    """H1, H7: its bytes, its state and its counts, whole and in every view of it."""
    own = await published(ArchivePage(origin, posts=30, family=family), twins)
    reply, _ = await twins.alike()
    assert reply.reconstruction.startswith("remembered;documents=1;entries=30;missing=0;since=")
    if family != "atom":
        assert paths(reply) == [each.path for each in own]
    queries: list[dict[str, Any]] = [
        {"limit": "20"},
        {"limit": "30"},
        {"limit": "31"},
        {"since": instant(own[17].at)},
        {"since": instant(own[3].at), "limit": "9"},
        {"answer_bytes": "4200"},
        {"answer_bytes": "1000000"},
        {"pages": "10"},
        {"pages": "10", "page": "3"},
        {"pages": "10", "page": "2"},
        {"pages": "10", "page": "1"},
    ]
    for query in queries:
        await twins.alike(**query)


@pytest.mark.parametrize("family", ["rss", "json"])
async def test_long_entries_are_taken_out_of_their_segments(
    twins: Twins, origin: Origin, family: str
) -> None:
    """H7: during sending, if they are too long to be sealed before."""
    own = await published(ArchivePage(origin, posts=30, family=family, filler=LONG), twins)
    reply, _ = await twins.alike()
    assert len(reply.body) > 30 * len(LONG)
    assert paths(reply) == [each.path for each in own]
    cut, _ = await twins.alike(answer_bytes="500000")
    assert paths(cut) == [each.path for each in own[:24]]
    for number in ("1", "2", "3"):
        await twins.alike(pages="10", page=number)


@pytest.mark.parametrize("filler", ["", LONG])
@pytest.mark.parametrize("memory_bytes", [1 << 26, 0])
async def test_it_has_every_form_of_an_answer(
    start: StartProxy, origin: Origin, filler: str, memory_bytes: int
) -> None:
    """RFC 9110: HEAD, gzip and conditions, by tag and by date; the whole feed is another representation."""
    proxy = await start(history=LISTS, store={"memory_bytes": memory_bytes})
    blog = ArchivePage(origin, posts=30, shown=15, filler=filler)
    blog.publish()
    url = origin.url("/feed")
    await proxy.get(url)
    await looked(proxy)
    whole, reply = await proxy.get(url), await proxy.get(url, listed="off")
    packed = await proxy.get(url, listed="off", headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(packed.body) == reply.body
    fields = {"Accept-Encoding": "identity"}
    head = await proxy.ask("HEAD", "/feed", params={"url": url, "listed": "off"}, headers=fields)
    assert (head.status, head.headers["ETag"]) == (200, reply.headers["ETag"])
    assert int(head.headers["Content-Length"]) == len(reply.body)
    for field, value in (
        ("If-None-Match", reply.headers["ETag"]),
        ("If-Modified-Since", reply.headers["Last-Modified"]),
    ):
        known = await proxy.get(url, listed="off", headers={field: value})
        assert (known.status, known.body, known.reconstruction) == (304, b"", reply.reconstruction)
    assert (await proxy.get(url, headers={"If-None-Match": reply.headers["ETag"]})).status == 200
    assert (
        await proxy.get(url, listed="off", headers={"If-None-Match": whole.headers["ETag"]})
    ).status == 200
    blog.posts = 31
    blog.publish()
    proxy.clock.advance(2)
    await proxy.refreshed(url)
    changed = await proxy.get(url, listed="off", headers={"If-None-Match": reply.headers["ETag"]})
    assert (changed.status, len(paths(changed))) == (200, 16)


async def test_its_links_lead_to_itself(looking: Proxy, origin: Origin) -> None:
    """R21: nothing of it is cut; a cut view leads to all of it, without listed entries."""
    ArchivePage(origin, posts=30, family="atom").publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    own = f"http://127.0.0.1:{looking.client.port}/feed?url={quote(url, safe='')}&listed=off"
    found = links((await looking.get(url, listed="off")).body)
    assert found["self"] == [own]
    assert "urn:wholefeed:whole" not in found
    found = links((await looking.get(url, limit="2", listed="off")).body)
    assert (found["self"], found["urn:wholefeed:whole"]) == ([own + "&limit=2"], [own])
    found = links((await looking.get(url, pages="10", listed="off")).body)
    assert (found["self"], found["first"]) == ([own + "&pages=10"], [own + "&pages=10"])


async def test_a_feed_without_listed_entries_is_answered_as_ever(looking: Proxy, origin: Origin) -> None:
    """H1: from memory, with the same bytes but for its own address."""
    ArchivePage(origin, posts=2).publish()
    url = origin.url("/feed")
    whole = await looking.get(url)
    before = looking.app[COUNTS].sources["memory"]
    reply = await looking.get(url, listed="off")
    assert looking.app[COUNTS].sources["memory"] == before + 1
    assert reply.body.replace(b"&amp;listed=off", b"") == whole.body
    assert b"listed" in reply.body
    assert reply.reconstruction == whole.reconstruction


async def test_what_does_not_stand_in_pages_alone_is_not_left_out(looking: Proxy, origin: Origin) -> None:
    """H6, H7, I1: if every listed entry has been imported too, only the state differs."""
    blog = ArchivePage(origin, posts=8, guid=lambda link: link)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    kept = blog._feed(blog.newest_first[5:])  # noqa: SLF001 - a feed as blog.publish makes it
    await looking.ask("POST", "/import", params={"url": url, "name": "old.xml"}, data=kept)
    whole = await looking.get(url)
    assert whole.reconstruction.startswith("listed;documents=3;entries=8;missing=0;since=")
    queries: list[dict[str, Any]] = [{}, {"limit": "8"}]
    for query in queries:
        reply = await looking.get(url, listed="off", **query)
        assert reply.reconstruction.startswith("remembered;documents=3;entries=8;missing=0;since=")
        assert paths(reply) == paths(whole)


async def test_lists_that_are_none_of_the_feed_are_not_counted(looking: Proxy, origin: Origin) -> None:
    """H7, R23: those in the format that it had before."""
    blog = ArchivePage(origin, posts=40, per_page=10)
    blog.publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    blog.family, blog.per_page = "atom", 1000
    blog.publish()
    await look_again(looking, url)
    assert (await looking.get(url)).reconstruction.startswith("listed;documents=2;entries=40;")
    reply = await looking.get(url, listed="off")
    assert reply.reconstruction.startswith("remembered;documents=1;entries=5;")


# Missing documents


async def test_a_page_of_the_list_that_is_missing_is_none_of_it(looking: Proxy, origin: Origin) -> None:
    """H7, R16: the feed without the list is whole, and its readers get no warning."""
    blog = ArchivePage(origin, posts=40, per_page=10)
    blog.publish()
    origin.fault("/archive/page/4/", Status(503))
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    reply = await looking.get(url, listed="off")
    assert reply.reconstruction.startswith("remembered;documents=1;entries=5;missing=0;since=")
    assert paths(reply) == [each.path for each in blog.newest_first[:5]]
    origin.heal("/archive/page/4/")
    looking.clock.advance(2 * 3600)
    looking.service.lists.wake()
    await looked(looking, 2)
    healed = await looking.get(url)
    assert (healed.state, len(paths(healed))) == ("listed", 40), "nobody was told that it was partial"


async def test_it_is_partial_for_other_reasons(looking: Proxy, origin: Origin) -> None:
    """H7, row 49: the feed itself breaks off; the answer says so, and nothing of the list."""
    blog = ArchivePage(origin, posts=40, per_page=10)
    blog.publish()
    origin.fault("/archive/page/4/", Status(503))
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    looking.clock.advance(900)
    whole = blog._feed(blog.newest_first[:5])  # noqa: SLF001 - a feed as blog.publish makes it
    origin.publish("/feed", whole[: whole.index(b"Text 37")], content_type="application/xml")
    both = await looking.refreshed(url)
    assert (both.state, ";missing=2;listed=25" in both.reconstruction) == ("partial", True)
    assert b"/archive/page/4/" in both.body
    reply = await looking.get(url, listed="off")
    assert reply.reconstruction == "partial;documents=1;entries=5;missing=1"
    assert b"A document of this feed is cut off" in reply.body
    assert b"/archive/page/4/" not in reply.body


# How it is asked for


async def test_on_is_what_holds_without_it(looking: Proxy, origin: Origin) -> None:
    """`listed=on` is the whole feed, also as a replay, and in pages."""
    ArchivePage(origin, posts=30).publish()
    url = origin.url("/feed")
    await looking.get(url)
    await looked(looking)
    reply = await looking.get(url, listed="on")
    assert reply.body.replace(b"&amp;listed=on", b"") == (await looking.get(url)).body
    begun = instant(looking.clock() - 2)
    query: dict[str, Any] = {"replay": "1/day", "from": begun, "listed": "on"}
    assert ";listed=25;" in (await looking.get(url, **query)).reconstruction


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"listed": ""}, "expected listed as on or off, got ''"),
        ({"listed": "0"}, "expected listed as on or off, got '0'"),
        ({"listed": "Off"}, "expected listed as on or off, got 'Off'"),
        (
            {"listed": "off", "replay": "1/day", "from": "2026-01-31T06:00:00Z"},
            "expected replay, or listed=off, got both",
        ),
    ],
)
async def test_what_cannot_be_is_refused(
    proxy: Proxy, origin: Origin, query: dict[str, Any], expected: str
) -> None:
    """P2, H1: a replay covers all entries, since each is released behind those before it."""
    reply = await proxy.get(origin.url("/feed"), **query)
    assert (reply.status, json.loads(reply.body)["detail"]) == (400, expected)
    assert origin.requests == []
