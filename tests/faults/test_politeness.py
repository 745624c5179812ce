"""Treatment of publishers, through the whole proxy: docs/faults.md rows 21, 24, 30, 54, 55, 64."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from email.utils import formatdate
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.answers import BODY_DRIP, ENDLESS_BODY, HEADER_DRIP, Answer, Reset, Silence, Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.fetchers import Names, SilentNames, opening
from tests.origin import Origin
from tests.running import Proxy, a_config, running

DEAD = "http://nowhere.example/feed"
LONGEST_QUEUE = 256


def failures(logs: list[Any]) -> list[str]:
    return [log["slug"] for log in logs if log["event"] == "document.failed"]


@asynccontextmanager
async def crowded(proxy: Proxy, origin: Origin) -> AsyncIterator[None]:
    """Fill the queue of a silent publisher's host with readers' requests."""
    running = 4  # fetch.concurrency_per_host
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        with origin.held("/crowd"):
            urls = [origin.url(f"/crowd?{number}") for number in range(running + LONGEST_QUEUE)]
            asked = [session.get(proxy.client.make_url("/feed"), params={"url": url}) for url in urls]
            readers = [asyncio.create_task(read(each)) for each in asked]
            await proxy.until("wholefeed_publisher_requests_waiting", LONGEST_QUEUE)
            yield
        assert set(await asyncio.gather(*readers)) <= {404, 504}


async def read(request: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> int:
    async with request as response:
        await response.read()
        return response.status


async def is_nothing_stored(proxy: Proxy) -> bool:
    return json.loads((await proxy.ask("GET", "/feeds")).body) in ([], {"feeds": []})


# A host or a URL that cannot be had


@pytest.mark.fault("21")
async def test_a_name_without_an_address_is_looked_up_once_a_minute(tmp_path: Path) -> None:
    """Row 21: ten readers of a dead host get 502 `dns-error` for one look-up; nothing is stored."""
    names = Names()
    async with running(
        a_config(tmp_path, fetch={"retries": 2}), open_fetcher=opening(resolver=names)
    ) as proxy:
        with capture_logs() as logs:
            replies = [await proxy.get(DEAD) for _ in range(10)]
        other = await proxy.get("http://nowhere.example/another")
        assert {(reply.status, reply.slug) for reply in [*replies, other]} == {(502, "dns-error")}
        assert int(replies[-1].headers["Retry-After"]) in range(55, 61)
        assert failures(logs) == ["dns-error"]
        assert await is_nothing_stored(proxy)
    assert names.asked == ["nowhere.example"]


@pytest.mark.fault("21")
async def test_a_name_server_that_does_not_answer_delays_nobody_else(tmp_path: Path, origin: Origin) -> None:
    """Row 21: twelve names without an answer end as 504 `dns-timeout`, while another feed is served at
    once."""
    origin.publish("/feed", atom(an_item("a")))
    config = a_config(tmp_path, fetch={"connect_timeout_seconds": 2.0})
    async with running(config, open_fetcher=opening(resolver=SilentNames())) as proxy:
        slow = [asyncio.create_task(proxy.get(f"http://slow-{n}.example/")) for n in range(12)]
        await asyncio.sleep(0.05)
        assert (await proxy.get(origin.url("/feed"))).status == 200
        assert not any(task.done() for task in slow)
        replies = await asyncio.gather(*slow)
    assert {(reply.status, reply.slug) for reply in replies} == {(504, "dns-timeout")}


@pytest.mark.parametrize("fault", [Status(404), Status(403), Status(500), Reset(), Silence()])
async def test_a_url_that_gives_no_feed_is_asked_once_a_minute(
    tmp_path: Path, origin: Origin, fault: Answer
) -> None:
    """A hundred requests of readers are one request of ours, or two after a broken connection."""
    origin.fault("/feed", fault)
    async with running(a_config(tmp_path, fetch={"read_timeout_seconds": 0.3})) as proxy:
        replies = [await proxy.get(origin.url("/feed")) for _ in range(100)]
        assert len({(reply.status, reply.slug) for reply in replies}) == 1
        assert len(origin.requests) <= 2
        origin.forget_requests()
        origin.publish("/feed", atom(an_item("a")))
        proxy.clock.advance(60)
        assert ids((await proxy.get(origin.url("/feed"))).body) == ["a"]


async def test_a_host_that_is_down_is_left_alone_and_its_stored_feeds_are_served(
    tmp_path: Path, origin: Origin
) -> None:
    """Rows 28, 75: after some failures the host gets no requests; its stored feeds are answered, stale."""
    expected = publish_chain(origin, archives=1)
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(origin.url("/feed"))
        await origin.stop()
        with capture_logs() as logs:
            replies = [await proxy.get(origin.url(f"/{number}")) for number in range(5 + 3)]
        assert {(reply.status, reply.slug) for reply in replies} == {(502, "connection-failed")}
        assert [log["event"] for log in logs].count("host.rested") == 1
        assert "Retry-After" in replies[-1].headers
        await origin.start()
        proxy.clock.advance(4000)
        stored = await proxy.get(origin.url("/feed"))
        assert (stored.status, ids(stored.body)) == (200, expected)
        assert stored.reconstruction.endswith(";stale")


# Many requests


@pytest.mark.fault("24")
async def test_a_chain_that_leads_to_a_victim_is_polite_and_ends_at_the_limit(
    tmp_path: Path, origin: Origin
) -> None:
    """docs/faults.md row 24: numbered links invite guesses, and every document claims to belong to the
    feed."""
    async with Origin("127.0.0.2") as victim:
        victim.latency_seconds = 0.002

        for number in range(4900, 5001):
            older = f"/archive/{number - 1}"
            body = atom(an_item(f"e{number}", number), archive=True, prev_archive=older, updated=number)
            victim.publish(f"/archive/{number}", body)
        origin.publish(
            "/feed", atom(an_item("z", 9000), prev_archive=victim.url("/archive/5000"), updated=9000)
        )
        async with running(a_config(tmp_path, limits={"documents_per_feed": 60})) as proxy:
            reply = await proxy.whole(origin.url("/feed"))
            (missing,) = (await proxy.status(origin.url("/feed")))["missing"]
        assert reply.reconstruction == "partial;documents=60;entries=60;missing=1"
        assert missing["reason"] == "limit"
        assert victim.peak_requests <= 4
        assert len(victim.requests) <= 60 + 4


@pytest.fixture
def many_open_files() -> Iterator[None]:
    """Allow files for both ends of a thousand connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.fault("64")
async def test_a_thousand_readers_of_a_cold_feed_cause_one_fetch_a_document(
    many_open_files: None, proxy: Proxy, origin: Origin
) -> None:
    """Row 64: a thousand readers at once of an unknown feed, one request a document."""
    expected = publish_chain(origin, archives=3)
    url = origin.url("/feed")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        with origin.held("/feed") as gate:
            asked = [session.get(proxy.client.make_url("/feed"), params={"url": url}) for _ in range(1000)]
            readers = [asyncio.create_task(read(each)) for each in asked]
            await gate.reached()
            await proxy.until("wholefeed_connections_busy", 1000 + 1)
            gate.release()
        assert await asyncio.gather(*readers) == [200] * 1000
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)) == ("complete", expected)
    assert {path: n for path, n in origin.counts().items() if path != "/archive/0"} == dict.fromkeys(
        ["/feed", "/archive/1", "/archive/2", "/archive/3"], 1
    )


@asynccontextmanager
async def walking(folder: Path, *sites: Origin, walks: int, waits: int) -> AsyncIterator[Proxy]:
    """Let `walks` feeds of each site wait for one slow document, and `waits` feeds for a walk."""
    config = a_config(folder, limits={"respond_within_seconds": 60})
    async with running(config) as proxy, Origin("127.0.0.9") as slow, aiohttp.ClientSession() as session:
        slow.publish("/slow", atom(an_item("b"), archive=True))
        with slow.held("/slow"):
            readers = []
            for site in sites:
                for number in range(walks + waits):
                    site.publish(f"/{number}", atom(an_item("a", 1), prev_archive=slow.url("/slow")))
                    query = {"url": site.url(f"/{number}")}
                    asked = session.get(proxy.client.make_url("/feed"), params=query)
                    readers.append(asyncio.create_task(read(asked)))
            await proxy.until("wholefeed_walks", walks * len(sites))
            await proxy.until("wholefeed_walks_waiting", waits * len(sites))
            yield proxy
        assert set(await asyncio.gather(*readers)) == {200}


async def test_requests_beyond_the_walks_that_may_wait_are_refused_and_stored_feeds_served(
    tmp_path: Path, origin: Origin
) -> None:
    """docs/design.md#limits: 16 walks at once, 64 waiting, then 503."""
    origin.publish("/stored", atom(an_item("a")))
    async with running(a_config(tmp_path)) as proxy:
        assert (await proxy.get(origin.url("/stored"))).status == 200
    async with Origin("127.0.0.2") as second, Origin("127.0.0.3") as third:
        third.publish("/feed", atom(an_item("a")))
        async with walking(tmp_path, origin, second, walks=8, waits=32) as proxy:
            refused = await proxy.get(third.url("/feed"))
            assert (refused.status, refused.slug) == (503, "overloaded")
            assert int(refused.headers["Retry-After"]) > 0
            stored = await proxy.get(origin.url("/stored"))
            assert (stored.status, ids(stored.body)) == (200, ["a"])
        assert third.requests == []


async def test_a_slow_publisher_of_many_feeds_keeps_no_other_waiting(tmp_path: Path, origin: Origin) -> None:
    """The feeds of one slow site use up their own share of walks; another publisher's feed is walked."""
    origin.publish("/feed", atom(an_item("a")))
    async with Origin("127.0.0.2") as other, walking(tmp_path, origin, walks=8, waits=32) as proxy:
        expected = publish_chain(other, archives=1)
        refused = await proxy.get(origin.url("/feed"))
        assert (refused.status, refused.slug) == (503, "overloaded")
        async with asyncio.timeout(300):
            reply = await proxy.whole(other.url("/feed"))
        assert (reply.state, ids(reply.body)) == ("complete", expected)


async def test_a_request_that_the_queue_has_no_room_for_is_refused_and_not_remembered(
    proxy: Proxy, origin: Origin
) -> None:
    """Beyond a host's queue a reader gets 503 with Retry-After, and the feed later."""
    origin.publish("/c", atom(an_item("c")))
    async with Origin("127.0.0.2") as other:
        other.publish("/d", atom(an_item("d")))
        async with crowded(proxy, origin):
            refused = await proxy.get(origin.url("/c"))
            assert (await proxy.get(other.url("/d"))).status == 200
    assert (refused.status, refused.slug, refused.headers["Retry-After"]) == (503, "overloaded", "10")
    assert (await proxy.get(origin.url("/c"))).status == 200


async def test_a_stored_feed_that_the_queue_had_no_room_for_is_asked_for_when_there_is(
    proxy: Proxy, origin: Origin
) -> None:
    """The publisher has not failed: it got no request."""
    origin.publish("/a", atom(an_item("a")))
    await proxy.whole(origin.url("/a"))
    origin.publish("/a", atom(an_item("a"), an_item("b")))
    origin.forget_requests()
    async with crowded(proxy, origin):
        for _ in range(3):
            proxy.clock.advance(86_400)
            reply = await proxy.get(origin.url("/a"))
            assert (reply.status, ids(reply.body)) == (200, ["a"])
            assert reply.reconstruction.endswith(";stale")
        assert (await proxy.status(origin.url("/a")))["failure"] is None
    assert origin.requests_for("/a") == []
    proxy.clock.advance(10)
    reply = await proxy.get(origin.url("/a"))
    assert set(ids(reply.body)) == {"a", "b"}
    assert not reply.reconstruction.endswith(";stale")


# Documents that do not end


@pytest.mark.fault("30")
@pytest.mark.parametrize(
    ("fault", "status", "expected"),
    [
        pytest.param(Silence(), 504, "timeout", id="silence"),
        pytest.param(HEADER_DRIP, 504, "timeout", id="header drip"),
        pytest.param(BODY_DRIP, 504, "timeout", id="body drip"),
        pytest.param(ENDLESS_BODY, 502, "too-large", id="endless body"),
    ],
)
async def test_a_document_that_does_not_end_is_given_up(
    tmp_path: Path, origin: Origin, fault: Answer, status: int, expected: str
) -> None:
    """docs/faults.md row 30: with nothing stored; then of a stored feed; then of an archive document."""
    config = a_config(tmp_path, fetch={"document_timeout_seconds": 0.4}, limits={"document_bytes": 1 << 20})
    async with running(config) as proxy:
        origin.fault("/feed", fault)
        with capture_logs() as logs:
            reply = await proxy.get(origin.url("/feed"))
        assert (reply.status, reply.slug, failures(logs)) == (status, expected, [expected])
        assert await is_nothing_stored(proxy)

        entries = publish_chain(origin, archives=1)
        proxy.clock.advance(60)
        origin.fault("/archive/1", fault)
        partial = await proxy.whole(origin.url("/feed"))
        assert (partial.status, partial.state, ids(partial.body)[1:]) == (200, "partial", entries[:2])
        (missing,) = (await proxy.status(origin.url("/feed")))["missing"]
        assert missing["reason"] == expected

        origin.fault("/feed", fault)
        proxy.clock.advance(4000)
        stale = await proxy.get(origin.url("/feed"))
        assert (stale.status, stale.body) == (200, partial.body)
        assert stale.reconstruction.endswith(";stale")
        async with asyncio.timeout(300):
            while origin.open_connections:
                await asyncio.sleep(0.01)


# Archive documents that cannot be had, and hosts that want to be left alone


@pytest.mark.fault("54")
@pytest.mark.parametrize(
    ("status", "pauses"),
    [
        (404, [3600, 3600]),
        (403, [3600, 3600]),
        (410, [86_400, 86_400]),
        (500, [60, 120, 240, 480]),
        (503, [60, 120, 240]),
    ],
)
async def test_an_archive_document_that_cannot_be_had_is_tried_again_in_its_time(
    proxy: Proxy, origin: Origin, status: int, pauses: list[int]
) -> None:
    """R14; row 54: each status has its pause before the next attempt; no reader shortens it."""
    entries = publish_chain(origin, archives=2)
    origin.fault("/archive/1", Status(status))
    url = origin.url("/feed")
    reply = await proxy.whole(url)
    assert (reply.status, reply.reconstruction) == (200, "partial;documents=2;entries=4;missing=1")
    for attempts, pause_seconds in enumerate(pauses, 1):
        assert origin.counts()["/archive/1"] == attempts
        (missing,) = (await proxy.status(url))["missing"]
        assert (missing["status"], missing["attempts"]) == (status, attempts)
        proxy.clock.advance(pause_seconds - 1)
        await proxy.whole(url)
        assert origin.counts()["/archive/1"] == attempts
        proxy.clock.advance(901)
        await proxy.whole(url)
    origin.heal("/archive/1")
    proxy.clock.advance(90_000)
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)[1:]) == ("complete", entries)  # the first says that it has healed


@pytest.mark.fault("55", "93")
@pytest.mark.parametrize(
    ("status", "value", "seconds"),
    [
        (429, "120", 120),
        (503, "date", 120),
        (503, "-5", 1),
        (429, "1000000000000", 86_400),
        (503, "Fri, 01 Jan 2100 00:00:00 GMT", 86_400),
    ],
)
async def test_a_host_that_wants_to_be_left_alone_is(
    proxy: Proxy, origin: Origin, status: int, value: str, seconds: int
) -> None:
    """Row 55: Retry-After, clamped to 1 s to 24 h, holds for the whole host and no other."""
    publish_chain(origin, archives=2)
    value = formatdate(time.time() + 120, usegmt=True) if value == "date" else value
    origin.fault("/archive/1", Status(status, (("Retry-After", value),)))
    origin.publish("/other", atom(an_item("a")))
    url = origin.url("/feed")
    asked_at = proxy.clock()

    reply = await proxy.whole(url)
    origin.fault("/first", Status(status, (("Retry-After", value),)))
    await proxy.get(origin.url("/first"))
    other = await proxy.get(origin.url("/other"))

    assert (reply.status, reply.reconstruction) == (200, "partial;documents=2;entries=4;missing=1")
    (missing,) = (await proxy.status(url))["missing"]
    next_at = datetime.fromisoformat(missing["next_attempt"]).timestamp()
    assert next_at - asked_at == pytest.approx(seconds, abs=2)
    assert (other.status, other.slug) == (503, "host-backoff")
    assert origin.counts()["/other"] == 0
    if seconds > 60:
        assert seconds - 5 <= int(other.headers["Retry-After"]) <= seconds
    async with Origin("127.0.0.2") as elsewhere:
        elsewhere.publish("/feed", atom(an_item("b")))
        assert (await proxy.get(elsewhere.url("/feed"))).status == 200


@pytest.mark.fault("93")
async def test_a_new_feed_is_asked_for_where_another_was_told_to_wait(proxy: Proxy, origin: Origin) -> None:
    """The pause of one URL does not apply to another: new subscriptions at that host do not fail."""
    publish_chain(origin, archives=2)
    origin.fault("/archive/1", Status(429, (("Retry-After", "120"),)))
    await proxy.whole(origin.url("/feed"))
    for path in ("/other", "/third"):
        origin.publish(path, atom(an_item("a"), complete=True))
        assert (await proxy.get(origin.url(path))).status == 200
    asked = len(origin.requests)
    await proxy.refreshed(origin.url("/other"))  # it is known now: the host is left alone
    assert len(origin.requests) == asked


async def test_the_status_says_until_when_a_host_is_left_alone(proxy: Proxy, origin: Origin) -> None:
    """A person's refresh meanwhile makes no request, and the answer gives the time of the next one."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a"), complete=True))
    await proxy.whole(url)
    assert (await proxy.status(url))["paused_until"] is None
    origin.answer("/feed", Status(429, headers=(("Retry-After", "300"),)))
    await proxy.refreshed(url)
    origin.forget_requests()
    reply = await proxy.ask("POST", "/refresh", params={"url": url})
    await proxy.settled()
    paused = json.loads(reply.body)["paused_until"]
    assert abs(datetime.fromisoformat(paused).timestamp() - proxy.clock() - 300) < 5
    assert origin.requests == []
