"""Rows 117 and 118 of docs/faults.md: feeds with the longest heads that few bytes on the wire can make."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import fromstring

import aiohttp
import feedparser
import pytest

from benchmarks.support.hostile import long_head
from benchmarks.support.usage import cpu_seconds
from tests.aged import UNDOING
from tests.feeds import an_item, atom, atom_03, json_feed, rdf, rss
from tests.origin import ATOM, Origin
from tests.postgres import Cluster, on_both
from tests.processes import Served, serving
from tests.running import Clock, Proxy, Reply, a_config, running
from tests.sqlite_faults import rows

FEEDS = 4
MOST_CPU_SECONDS = 1.0
"""For all lists together; each took a second and a half when it read heads."""
MOST_BYTES = (256 << 10) + 4096
"""A head, and an entry."""
PAGE = {"Accept": "text/html"}
FILL = '<u:a xmlns:u="urn:u">' + "x" * 60 + "</u:a>"


def costly(origin: Origin, number: int) -> str:
    """Publish a feed with a head of 8 MB, in which each element declares its namespaces; return its URL."""
    body, fields = gzip.compress(long_head(number), 1), [("Content-Encoding", "gzip")]
    origin.publish(f"/{number}", body, headers=[("Content-Type", ATOM), *fields])
    return origin.url(f"/{number}")


def known(reply: Reply) -> dict[str, tuple[str, str]]:
    found = [each.attrib for each in fromstring(reply.body).iter("outline")]
    return {each["xmlUrl"]: (each["text"], each.get("htmlUrl", "")) for each in found}


async def titles(proxy: Proxy) -> list[str]:
    page = (await proxy.ask("GET", "/", headers={**PAGE, "Accept-Encoding": "identity"})).body.decode()
    return re.findall(r'<span class="title" dir="auto">([^<]*)</span>', page)


async def in_a_browser(served: Served, path: str) -> str:
    target = f"http://127.0.0.1:{served.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(target, headers=PAGE) as response:
        return await response.text()


@pytest.fixture
def change(tmp_path: Path, store_url: str, request: pytest.FixtureRequest) -> Callable[[str], None]:
    cluster: Cluster | None = request.getfixturevalue("shared_postgres") if store_url else None

    def changed(statement: str) -> None:
        if cluster is None:
            rows(Path(a_config(tmp_path).store.path), statement)
        else:
            cluster.run(statement, store_url)

    return changed


@pytest.mark.fault("117")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_row_117_lists_cost_little_whatever_publishers_write(tmp_path: Path, origin: Origin) -> None:
    """Row 117: home, OPML and JSON, of feeds that each send 20 KB."""
    async with serving(tmp_path) as served:
        urls = [costly(origin, number) for number in range(FEEDS)]
        for url in urls:
            assert (await served.whole(url)).status == 200
        before = cpu_seconds(served.process.pid)
        exported, listed = await served.ask("/opml"), await served.ask("/feeds")
        home = await in_a_browser(served, "/")
        assert cpu_seconds(served.process.pid) - before < MOST_CPU_SECONDS
    expected = {f"Costly {number}": f"http://site.example/{number}" for number in range(FEEDS)}
    assert dict(known(exported).values()) == expected
    assert [each["url"] for each in json.loads(listed.body)] == urls
    assert all(title in home for title in expected)


@on_both
@pytest.mark.fault("117")
async def test_row_117_lists_read_no_heads(
    proxy: Proxy, origin: Origin, change: Callable[[str], None]
) -> None:
    """Row 117: their facts were stored at publication, despite later damage to the head."""
    origin.publish("/feed", rss(an_item("a")))
    await proxy.whole(origin.url("/feed"))
    exported = known(await proxy.ask("GET", "/opml"))
    assert list(exported.values()) == [("A channel", "http://site.test/")]
    change("UPDATE feed SET head = NULL")
    assert await titles(proxy) == ["A channel"]
    assert known(await proxy.ask("GET", "/opml")) == exported


@on_both
@pytest.mark.fault("117")
async def test_row_117_what_was_published_before_titles_were_kept_is_read_once(
    proxy: Proxy, origin: Origin, change: Callable[[str], None]
) -> None:
    """Row 117: the first list stores those of the heads; a page of the feed agrees."""
    origin.publish("/feed", rss(an_item("a")))
    url = origin.url("/feed")
    await proxy.whole(url)
    change("UPDATE feed SET title = NULL, site = ''")
    view = await proxy.ask("GET", "/view", params={"url": url}, headers=PAGE)
    assert "A channel" in view.body.decode()
    assert await titles(proxy) == ["A channel"]
    change("UPDATE feed SET head = NULL")
    assert await titles(proxy) == ["A channel"]
    assert list(known(await proxy.ask("GET", "/opml")).values()) == [("A channel", "http://site.test/")]


def filled(make: Callable[..., bytes], count: int) -> bytes:
    if make is json_feed:
        fill = {f"_{number}": "x" * 60 for number in range(count)}
        plain = json.loads(json_feed(an_item("a"), home_page_url="http://site.test/"))
        return json.dumps(fill | plain).encode()
    return make(an_item("a")).replace(b"<title>", FILL.encode() * count + b"<title>", 1)


@pytest.mark.fault("118")
@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf, json_feed])
async def test_row_118_a_head_has_a_bound(proxy: Proxy, origin: Origin, make: Callable[..., bytes]) -> None:
    """Row 118, R21: its last parts are left out and noted; title, id, links and entries stay. The answer is
    well-formed."""
    origin.publish("/plain", filled(make, 0))
    origin.publish("/long", filled(make, 15_000))
    plain, long = [await proxy.whole(origin.url(path)) for path in ("/plain", "/long")]
    assert len(long.body) < MOST_BYTES
    assert len(long.body) > len(plain.body) + 200_000, "what there is room for stays"
    assert long.reconstruction.partition(";since")[0] == plain.reconstruction.partition(";since")[0]
    if make is json_feed:
        kept, whole = json.loads(long.body), json.loads(plain.body)
        names = ("version", "title", "home_page_url", "items")
        assert [kept[name] for name in names] == [whole[name] for name in names]
    else:
        fromstring(long.body)
        kept, whole = feedparser.parse(long.body), feedparser.parse(plain.body)
        assert kept.feed.title == whole.feed.title
        assert [each.rel for each in kept.feed.links] == [each.rel for each in whole.feed.links]
        assert kept.feed.get("id") == whole.feed.get("id")
        assert [each.title for each in kept.entries] == [each.title for each in whole.entries]
    notes = {path: (await proxy.status(origin.url(path)))["notes"] for path in ("/plain", "/long")}
    assert notes["/plain"] == []
    (note,) = notes["/long"]
    assert (note["code"], note["url"]) == ("HeadCut", origin.url("/long"))
    (left_out,) = map(int, re.findall(r", (\d+) parts", note["text"]))
    assert left_out + long.body.count(b"x" * 60) == 15_000


@pytest.mark.fault("118")
async def test_row_118_one_part_without_room_takes_none_of_the_others(proxy: Proxy, origin: Origin) -> None:
    """Row 118: a required element longer than the maximum head leaves the rest."""
    extra = f"<rights>{'r' * 300_000}</rights>"
    origin.publish("/feed", atom(an_item("a"), extra=extra))
    reply = await proxy.whole(origin.url("/feed"))
    assert len(reply.body) < MOST_BYTES
    found = feedparser.parse(reply.body)
    assert found.feed.id
    assert found.feed.title
    assert len(found.entries) == 1


@on_both
@pytest.mark.fault("118")
async def test_row_118_a_head_that_was_longer_is_made_anew(
    tmp_path: Path, origin: Origin, store_url: str, change: Callable[[str], None]
) -> None:
    """Row 118: a head stored by the version before has the bound after a refresh, even unchanged."""
    config, clock = a_config(tmp_path, store={"url": store_url}), Clock()
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    async with running(config, clock) as proxy:
        await proxy.whole(url)
    filled = "convert_to(repeat('x', 300000), 'UTF8')" if store_url else "zeroblob(300000)"
    longer = f"head || {filled}" if store_url else f"CAST(head || {filled} AS BLOB)"
    version = "UPDATE wholefeed_schema SET version = 18" if store_url else "PRAGMA user_version = 18"
    for statement in (
        f"UPDATE feed SET head = {longer}",
        *UNDOING[28],
        *UNDOING[27],
        *UNDOING[26],
        *UNDOING[25],
        *UNDOING[24],
        *UNDOING[23],
        *UNDOING[22],
        *UNDOING[21],
        *UNDOING[19],
        version,
    ):
        change(statement)
    async with running(config, clock) as proxy:
        assert len((await proxy.get(url)).body) > 300_000
        clock.advance(90_000)
        await proxy.get(url)
        await proxy.settled()
        reply = await proxy.get(url)
    assert b"</entry>" in reply.body
    assert len(reply.body) < 1000
