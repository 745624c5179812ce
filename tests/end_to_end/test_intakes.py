"""Subscription lists that are brought in (B1 to B5), as a program sees it."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree.ElementTree import fromstring

import aiohttp
import pytest

from tests.answers import Status
from tests.bringing import an_opml, bring_in, brought_in, look, until
from tests.feeds import an_item, atom, publish_chain, rss
from tests.origin import Origin
from tests.postgres import on_both
from tests.processes import Served, serving
from tests.replicas import replicas
from tests.running import Clock, Proxy, a_config, running


def publish_feeds(origin: Origin, count: int) -> list[str]:
    """Publish small feeds; return their URLs."""
    for number in range(count):
        origin.publish(f"/{number}", atom(an_item(f"{number}-a"), feed_id=f"urn:{number}"))
    return [origin.url(f"/{number}") for number in range(count)]


@on_both
async def test_a_list_says_what_each_feed_gained(proxy: Proxy, origin: Origin) -> None:
    """B1, B4: a chain becomes whole; what fails has a reason, its line and advice."""
    publish_chain(origin, archives=3, entries=2)
    origin.publish("/rss", rss(an_item("r1"), an_item("r2")))
    origin.publish("/page", "<html><title>No feed</title></html>", content_type="text/html")
    sent = an_opml(
        *(origin.url(path) for path in ("/feed", "/rss", "/gone", "/page")),
        *("javascript:alert(1)", origin.url("/feed")),
        titles=("The Keeper's Log",),
    )
    begun = await bring_in(proxy, sent)
    assert (begun["feeds"], begun["waiting"], begun["left_out"]) == (4, 4, 1), "one stands twice"
    done = await brought_in(proxy, begun["id"])
    assert done["states"] == {"complete": 1, "remembered": 1}
    assert (done["before"], done["now"]) == (4, 10)
    assert done["summary"] == ("4 feeds: 4 entries before, 10 now; 1 complete, 1 remembered, 2 failed")
    (largest,) = done["largest"]
    assert (largest["url"], largest["before"], largest["now"]) == (origin.url("/feed"), 2, 8)
    gone, page = done["failures"]
    assert (gone["line"], gone["reason"], gone["status"]) == (4, "publisher-status", 404)
    assert "new address" in gone["advice"]
    assert (page["line"], page["reason"]) == (5, "not-a-feed")
    assert "RSS, Atom or Feed" in page["advice"]
    assert done["unchanged"][0] | {"text": ""} == {
        "line": 6,
        "url": "javascript:alert(1)",
        "reason": "not-web",
        "text": "",
    }


@on_both
async def test_the_same_list_again_asks_nothing_again(proxy: Proxy, origin: Origin) -> None:
    """B3: feeds that are stored and fresh are counted; so is what failed a moment ago."""
    sent = an_opml(*publish_feeds(origin, 3), origin.url("/gone"))
    first = await brought_in(proxy, (await bring_in(proxy, sent))["id"])
    assert first["fresh"] == 0
    origin.forget_requests()
    again = await brought_in(proxy, (await bring_in(proxy, sent))["id"])
    assert again["id"] != first["id"]
    assert (again["fresh"], again["failed"], again["now"]) == (3, 1, first["now"])
    assert not origin.requests
    origin.publish("/gone", atom(an_item("b"), feed_id="urn:back"))
    proxy.clock.advance(61)  # of a feed that failed to open nobody asks again for a minute
    with origin.held("/gone"):
        reply = await proxy.ask("POST", "/intake", params={"id": again["id"]})
        assert (reply.status, json.loads(reply.body)["waiting"]) == (202, 1)
    assert (await until(proxy, again["id"], lambda found: found["over"]))["failed"] == 0


async def test_a_list_that_is_sent_twice_is_one_intake(proxy: Proxy, origin: Origin) -> None:
    """B1: two tabs, or an impatient person; another view of it is another one, and so is another list."""
    sent = an_opml(*(urls := publish_feeds(origin, 2)))
    with origin.held("/0"):
        one, other = await asyncio.gather(bring_in(proxy, sent), bring_in(proxy, sent))
        assert one["id"] == other["id"]
        assert (await bring_in(proxy, sent, limit="5"))["id"] != one["id"]
        named = await bring_in(proxy, an_opml(*urls, titles=("Another name",)))
        reply = await proxy.ask("GET", "/opml", params={"intake": named["id"]})
        assert b"Another name" in reply.body
    await brought_in(proxy, one["id"])
    assert set(origin.counts().values()) == {1}


async def test_the_changed_list_comes_with_the_parameters_that_were_sent(
    proxy: Proxy, origin: Origin
) -> None:
    """B5: the list as it was sent, with the proxy's URLs; failed feeds have one, too."""
    sent = an_opml(*publish_feeds(origin, 1), origin.url("/gone"), "urn:x")
    begun = await bring_in(proxy, sent, pages="100")
    reply = await proxy.ask("GET", "/opml", params={"intake": begun["id"]})
    urls = [each.attrib["xmlUrl"] for each in fromstring(reply.body).iter("outline")]
    assert [parse_qs(urlsplit(url).query).get("pages") for url in urls] == [["100"], ["100"], None]
    # a list that goes through the proxy already stands for the feeds behind it
    again = await bring_in(proxy, reply.body)
    assert (again["feeds"], again["left_out"]) == (2, 1)
    await brought_in(proxy, again["id"])


async def test_a_feed_that_is_forgotten_meanwhile_stops_nothing(proxy: Proxy, origin: Origin) -> None:
    """B5: one that came, and one whose history is on its way."""
    publish_chain(origin, archives=2)
    sent = an_opml(origin.url("/feed"), *publish_feeds(origin, 2))
    with origin.held("/archive/1") as gate:
        begun = await bring_in(proxy, sent)
        await gate.reached()
        await until(proxy, begun["id"], lambda found: found["waiting"] == 1)
        for path in ("/feed", "/0"):
            reply = await proxy.ask("DELETE", "/feed", params={"url": origin.url(path)})
            assert reply.status == 204
    done = await brought_in(proxy, begun["id"])
    assert (done["forgotten"], done["states"], done["failed"]) == (2, {"remembered": 1}, 0)


async def test_a_list_that_is_forgotten_is_not_asked_for_any_more(proxy: Proxy, origin: Origin) -> None:
    """B5: feeds that came stay."""
    urls = publish_feeds(origin, 60)
    with origin.held("/0") as gate:
        begun = await bring_in(proxy, an_opml(*urls))
        await gate.reached()
        reply = await proxy.ask("DELETE", "/intake", params={"id": begun["id"]})
        assert reply.status == 204
        assert (await proxy.ask("GET", "/intake", params={"id": begun["id"]})).slug == "no-such-intake"
    assert (await proxy.ask("DELETE", "/intake", params={"id": begun["id"]})).status == 404
    await proxy.settled()
    asked = len(origin.requests)
    assert asked < 60
    assert len(await proxy.feeds()) == asked


async def test_a_pause_that_a_publisher_asks_for_is_waited_for(tmp_path: Path, origin: Origin) -> None:
    """B2: a 503 with Retry-After is no failure, unless it comes three times."""
    clock = Clock()
    (url,) = publish_feeds(origin, 1)
    origin.fault("/0", Status(503, headers=(("Retry-After", "120"),)), times=1)
    async with running(a_config(tmp_path), clock) as proxy:
        begun = await bring_in(proxy, an_opml(url))
        await until(proxy, begun["id"], lambda _: bool(origin.requests))
        await proxy.settled()
        assert (await look(proxy, begun["id"]))["waiting"] == 1
    clock.advance(130)
    async with running(a_config(tmp_path), clock) as proxy:
        assert (await brought_in(proxy, begun["id"]))["failed"] == 0


async def ask_for(served: Served, path: str, *, method: str = "GET", data: bytes | None = None) -> object:
    target = f"http://127.0.0.1:{served.port}{path}"
    async with aiohttp.ClientSession() as session, session.request(method, target, data=data) as response:
        return await response.json()


@pytest.mark.timeout(120)
@pytest.mark.fault("67")
async def test_a_server_that_is_killed_twice_asks_for_each_feed_of_a_list_once(
    tmp_path: Path, origin: Origin
) -> None:
    """B3; docs/faults.md row 67: all feeds end, and none is asked for again after its result was stored."""
    urls = publish_feeds(origin, 90)
    origin.latency_seconds = 0.05
    intake, done = "", dict[str, int]()
    for kill in range(3):
        async with serving(tmp_path) as served:
            if not kill:
                begun = await ask_for(served, "/opml?ask=1", method="POST", data=an_opml(*urls))
                intake = begun["id"]  # type: ignore[index]
            wanted = 90 if kill == 2 else 25 * (kill + 1)
            async with asyncio.timeout(60):
                while True:
                    found = await ask_for(served, f"/intake?id={intake}")
                    assert isinstance(found, dict)
                    if found["asked"] >= wanted:
                        break
                    await asyncio.sleep(0.02)
            if kill == 2:
                assert found["summary"] == "90 feeds: 90 entries before, 90 now; 90 remembered"
                break
            stored = (urlsplit(each["url"]).path for each in found["latest"])
            done |= {target: origin.counts()[target] for target in stored if target not in done}
            served.process.kill()
            assert await served.ended() == -signal.SIGKILL
    assert len(done) > 30
    assert {target: origin.counts()[target] for target in done} == done


async def test_one_replica_asks_and_another_goes_on(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """B2: a list that one got is driven by one of them, and survives it."""
    urls = publish_feeds(origin, 40)
    async with replicas(postgres_url, tmp_path) as (one, other):
        with origin.held("/7") as gate:
            begun = await bring_in(one, an_opml(*urls))
            await gate.reached()
            assert (await look(other, begun["id"]))["feeds"] == 40
        again = await bring_in(other, an_opml(*urls))
        await brought_in(other, again["id"])
        done = await brought_in(one, begun["id"])
        assert done["states"] == {"remembered": 40}
    assert set(origin.counts().values()) == {1}
