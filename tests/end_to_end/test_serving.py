"""Time and source of an answer: single flight, patience, staleness, restart
(docs/design.md#the-interface)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.answers import Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.origin import Origin
from tests.running import Clock, Proxy, a_config, running
from tests.sqlite_faults import rows


async def test_a_long_walk_is_answered_in_time_with_what_is_there(tmp_path: Path, origin: Origin) -> None:
    """docs/design.md#the-interface: always 200, `loading`, with an early retry; the walk goes on."""
    expected = publish_chain(origin, archives=4)
    url = origin.url("/feed")
    async with running(a_config(tmp_path)) as proxy:
        with origin.held("/archive/2") as gate:
            reply = await proxy.begun(url)
            assert reply.status == 200
            assert reply.state == "loading"
            assert reply.headers["Cache-Control"] == "max-age=5"
            assert b"complete/>" not in reply.body
            assert ids(reply.body)[:2] == expected[:2]
            await gate.reached()
            assert (await proxy.status(url))["walking"] is True
            gate.release()
        reply = await proxy.whole(url)
        assert (reply.state, ids(reply.body)) == ("complete", expected)


async def test_what_has_arrived_is_served_while_the_walk_goes_on(tmp_path: Path, origin: Origin) -> None:
    """With state `loading`, newest first."""
    publish_chain(origin, archives=4)
    url = origin.url("/feed")
    async with running(a_config(tmp_path, history={"look_ahead": False})) as proxy:
        with origin.held("/archive/1"):
            async with asyncio.timeout(300):
                while len(ids((await proxy.begun(url)).body)) < 8:
                    await asyncio.sleep(0.05)
            reply = await proxy.get(url, wait="0")
            assert reply.state == "loading"
            assert ids(reply.body) == ["e10", "e9", "e8", "e7", "e6", "e5", "e4", "e3"]
            assert (await proxy.status(url))["progress"]["documents"] == 4


async def test_nothing_in_time_is_a_504(proxy: Proxy, origin: Origin) -> None:
    """Row 30: nothing stored, and no document in time; the next answer has the feed."""
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    with origin.held("/feed"):
        reply = await proxy.get(url, wait="0.1")
        assert reply.status == 504
        assert reply.headers["Content-Type"].startswith("application/problem+json")
    assert ids((await proxy.whole(url)).body) == ["a"]


@pytest.mark.fault("63")
async def test_the_walk_goes_on_when_the_reader_has_left(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 63."""
    expected = publish_chain(origin, archives=3)
    url = origin.url("/feed")
    with origin.held("/archive/3") as gate:
        reader = asyncio.create_task(proxy.get(url))
        await gate.reached()
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        gate.release()
    await proxy.settled()
    origin.forget_requests()
    assert ids((await proxy.get(url)).body) == expected
    assert origin.requests == []


async def test_an_unfinished_feed_leaves_a_failing_publisher_alone(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 75: no request for each reader."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    await proxy.ask("HEAD", "/feed", params={"url": url})
    origin.fault("/feed", Status(500))
    origin.forget_requests()
    for _ in range(3):
        reply = await proxy.get(url)
        assert (reply.status, reply.reconstruction) == (200, "loading;documents=1;entries=2;missing=0;stale")
    assert len(origin.requests) == 1


@pytest.mark.fault("74")
async def test_an_interrupted_walk_is_taken_up_at_the_next_start(tmp_path: Path, origin: Origin) -> None:
    """R14; docs/faults.md row 74: no stored document is fetched twice."""
    expected = publish_chain(origin, archives=5)
    url = origin.url("/feed")
    config = a_config(tmp_path, history={"look_ahead": False})
    with origin.held("/archive/2") as gate:
        async with running(config) as proxy:
            assert (await proxy.begun(url)).state == "loading"
            await gate.reached()
    done = {path for path in origin.counts() if path != "/archive/2"}
    origin.forget_requests()

    async with running(config) as proxy:
        await proxy.settled()  # nobody asked: it goes on by itself
        origin_counts = origin.counts()
        reply = await proxy.get(url)
    assert (reply.state, ids(reply.body)) == ("complete", expected)
    assert set(origin_counts) & done <= {"/feed", "/archive/5"}


async def test_a_known_feed_survives_a_restart_without_a_request(tmp_path: Path, origin: Origin) -> None:
    """R2, R13: the whole feed comes from the store, with its publisher gone."""
    expected = publish_chain(origin, archives=3)
    url = origin.url("/feed")
    async with running(a_config(tmp_path)) as proxy:
        first = await proxy.whole(url)
    await origin.stop()
    async with running(a_config(tmp_path)) as proxy:
        reply = await proxy.get(url)
    assert (ids(reply.body), reply.headers["ETag"].partition("-")[0]) != ([], first.headers["ETag"])
    assert ids(reply.body) == expected


async def test_freshness_follows_the_publisher_within_bounds(tmp_path: Path, origin: Origin) -> None:
    """RFC 9111, 4.2; config.example.toml."""
    url = origin.url("/feed")
    for cache_control, seconds in (("max-age=2000", 2000), ("max-age=1", 300), ("no-cache", 300)):
        origin.publish("/feed", atom(an_item("a")), headers=[("Cache-Control", cache_control)])
        async with running(a_config(tmp_path)) as proxy:
            await (proxy.refreshed(url) if await proxy.feeds() else proxy.whole(url))
            origin.forget_requests()
            proxy.clock.advance(seconds - 20)
            await proxy.get(url)
            assert origin.requests == []
            proxy.clock.advance(40)
            await proxy.get(url)
            assert len(origin.requests) == 1


async def test_a_refetch_is_conditional(proxy: Proxy, origin: Origin) -> None:
    """R14: an unchanged feed costs a 304."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a")), etag='"1"')
    await proxy.whole(url)
    proxy.clock.advance(4000)
    await proxy.whole(url)
    assert [request.headers.get("if-none-match") for request in origin.requests] == [None, '"1"']


@pytest.mark.fault("35")
async def test_a_permanent_move_keeps_the_history_and_the_old_key(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 35: believed after three sightings over more than a day."""
    expected = publish_chain(origin, archives=2)
    url = origin.url("/feed")
    await proxy.whole(url)
    new = atom(an_item("new", 50), updated=50, prev_archive="/archive/2")
    origin.publish("/moved", new)
    origin.redirect("/feed", "/moved", status=301)
    for _ in range(4):
        proxy.clock.advance(40_000)
        reply = await proxy.whole(url)
        assert ids(reply.body) == ["new", *expected]
    origin.forget_requests()
    proxy.clock.advance(40_000)
    assert (await proxy.whole(url)).status == 200
    assert "/feed" not in origin.counts()
    assert "/moved" in origin.counts()
    ((key, asked_for),) = rows(proxy.database, "SELECT url, fetch_url FROM feed")
    assert (key, asked_for) == (url, origin.url("/moved"))


async def test_a_publisher_that_is_not_heard_of_in_time_makes_it_stale(proxy: Proxy, origin: Origin) -> None:
    """docs/design.md#the-interface: the stored feed with `;stale`."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    await proxy.whole(url)
    proxy.clock.advance(4000)
    with origin.held("/feed"):
        assert (await proxy.get(url, wait="0.1")).reconstruction.endswith(";stale")
    assert not (await proxy.whole(url)).reconstruction.endswith(";stale")


async def test_a_get_that_joins_a_head_is_walked_for(proxy: Proxy, origin: Origin) -> None:
    """docs/design.md#the-interface: `loading` means that the walk goes on."""
    expected = publish_chain(origin, archives=2)
    url = origin.url("/feed")
    with origin.held("/feed") as gate:
        head = asyncio.create_task(proxy.ask("HEAD", "/feed", params={"url": url}))
        await gate.reached()
        get = asyncio.create_task(proxy.get(url))
        await asyncio.sleep(0.05)
        gate.release()
        assert (await head).status == 200
        assert ids((await get).body) == expected


async def test_readers_and_deletions_do_not_get_in_each_others_way(proxy: Proxy, origin: Origin) -> None:
    """A reader gets the feed despite repeated forgetting."""
    expected = publish_chain(origin, archives=2)
    url = origin.url("/feed")

    async def read() -> tuple[int, list[str]]:
        reply = await proxy.get(url)
        return reply.status, ids(reply.body) if reply.state != "loading" else expected

    with capture_logs() as lines:
        for _ in range(6):
            readers = [asyncio.create_task(read()) for _ in range(5)]
            await asyncio.sleep(0.01)
            assert (await proxy.ask("DELETE", "/feed", params={"url": url})).status in (204, 404)
            assert await asyncio.gather(*readers) == [(200, expected)] * 5
    assert not [line for line in lines if line["event"] in ("refresh.failed", "request.failed")]


async def test_a_reader_that_has_left_is_no_error(proxy: Proxy, origin: Origin) -> None:
    """Row 63: the log shows it as answered."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    with capture_logs() as lines, origin.held("/feed") as gate:
        _, writer = await asyncio.open_connection(proxy.client.host, proxy.client.port)
        writer.write(f"GET /feed?url={url} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await gate.reached()
        writer.transport.abort()
        gate.release()
        async with asyncio.timeout(300):
            while not [line for line in lines if line["event"] == "request.answered"]:
                await asyncio.sleep(0.01)
    assert not [line for line in lines if line["event"] == "request.failed"]


async def test_last_modified_moves_with_what_is_said_to_be_missing(proxy: Proxy, origin: Origin) -> None:
    """docs/design.md#segments: with each change of the digest; a reader that sends only that date sees the
    change."""
    publish_chain(origin, archives=2)
    origin.fault("/archive/1", Status(404))
    url = origin.url("/feed")
    first = await proxy.whole(url)
    proxy.clock.advance(10)
    origin.heal("/archive/1")
    origin.fault("/archive/1", Status(200, body=b""))
    second = await proxy.refreshed(url)
    assert second.headers["ETag"] != first.headers["ETag"]
    condition = {"If-Modified-Since": first.headers["Last-Modified"]}
    assert (await proxy.get(url, headers=condition)).status == 200


async def test_a_client_of_http_1_0_without_host_is_served(proxy: Proxy, origin: Origin) -> None:
    """An HTTP/1.0 client sends no Host; the feed links to the address it used."""
    publish_chain(origin, archives=1)
    await proxy.whole(origin.url("/feed"))
    reader, writer = await asyncio.open_connection(proxy.client.host, proxy.client.port)
    writer.write(f"GET /feed?url={origin.url('/feed')} HTTP/1.0\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.0 200")
    assert f"http://{proxy.client.host}:{proxy.client.port}/feed?url=".encode() in answer


async def test_what_goes_on_in_the_background_does_not_end_in_silence(tmp_path: Path, origin: Origin) -> None:
    """The log names it, and readers still get answers."""
    publish_chain(origin, archives=1)
    origin.publish("/odd", atom(an_item("a")))
    clock, config = Clock(), a_config(tmp_path, history={"poll_seconds": 600})
    async with running(config, clock) as proxy:
        await proxy.whole(origin.url("/odd"))
    # No program writes such a kind, and so none is built for it.
    rows(tmp_path / "wholefeed.db", "UPDATE feed SET kind = 'odd'")
    clock.advance(90_000)
    with capture_logs() as events:
        async with running(config, clock) as proxy:
            async with asyncio.timeout(300):
                while not [event for event in events if event["event"] == "background.failed"]:
                    await asyncio.sleep(0.01)
            assert (await proxy.whole(origin.url("/feed"))).state == "complete"
    assert [event["name"] for event in events if event["event"] == "background.failed"] == ["polling"]
