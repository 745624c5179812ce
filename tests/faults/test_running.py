"""Slow and leaving readers, clocks that jump, signals: docs/faults.md, rows 63 to 66a, 73 to 75, 79."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from tests.answers import Reset, Status
from tests.feeds import an_item, atom, ids, own_ids, publish_chain, rss
from tests.fetchers import opening
from tests.origin import Origin
from tests.patching import set_constant
from tests.processes import serving
from tests.running import Clock, Proxy, a_config, running
from tests.sqlite_faults import READING, SqliteFaults, check_database, rows

TEN_YEARS = 10 * 365 * 86_400.0
DAY = 86_400.0
LARGE = 7
"""More megabytes than any socket's buffers."""


def incompressible(seed: str, length: int) -> str:
    pieces = (hashlib.sha256(f"{seed}{n}".encode()).hexdigest() for n in range(length // 64))
    return "".join(pieces)


def publish_large(origin: Origin, seed: str, megabytes: int) -> None:
    """Publish a feed of entries of 1 MB, one segment each."""
    items = [an_item(f"{seed}{n}", n + 1, incompressible(f"{seed}{n}", 1 << 20)) for n in range(megabytes)]
    for place, item in enumerate(items):
        older = f"/large/{place - 1}" if place else None
        is_last = place == len(items) - 1
        path = "/large" if is_last else f"/large/{place}"
        origin.publish(path, atom(item, archive=not is_last, prev_archive=older, updated=99))


async def until_logged(lines: Sequence[Mapping[str, Any]], event: str) -> Mapping[str, Any]:
    async with asyncio.timeout(300):
        while not (found := [line for line in lines if line["event"] == event]):
            await asyncio.sleep(0.01)
    return found[-1]


async def stalled(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, (proxy.client.host, proxy.client.port))
    return await asyncio.open_connection(sock=raw, limit=4096)


def request_for(url: str) -> bytes:
    return f"GET /feed?url={quote(url)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.fault("65")
async def test_a_reader_that_takes_nothing_is_let_go_and_holds_no_transaction(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 65: the log shows `aborted`, and the database's log still shrinks."""
    publish_large(origin, "a", LARGE)
    url = origin.url("/large")
    await proxy.whole(url)
    set_constant(monkeypatch, "_STALLED_SECONDS", 1.0)
    _, writer = await stalled(proxy)
    with capture_logs(processors=[merge_contextvars]) as lines:
        writer.write(request_for(url))
        await asyncio.sleep(0.3)
        assert not [line for line in lines if line["event"] == "request.answered"], "it did not stall"
        # Refused (1, …) for as long as anyone reads from the log.
        assert rows(proxy.database, "PRAGMA wal_checkpoint(TRUNCATE)") == [(0, 0, 0)]
        assert (await until_logged(lines, "request.answered"))["aborted"] is True
    writer.transport.abort()


@pytest.mark.fault("66")
@pytest.mark.parametrize("coding", ["gzip", "identity"])
@pytest.mark.parametrize("error", ["SQLITE_IOERR", KeyError("a defect")], ids=str)
async def test_an_error_in_the_middle_of_an_answer_breaks_it_off(
    faults: SqliteFaults, proxy: Proxy, origin: Origin, coding: str, error: str | Exception
) -> None:
    """Row 66: after the header, the connection aborts: no reader takes a part for the whole feed."""
    publish_large(origin, "a", 3)
    url = origin.url("/large")
    await proxy.whole(url)
    faults.arm(5, error, only=READING)
    with capture_logs(processors=[merge_contextvars]) as lines, pytest.raises(aiohttp.ClientPayloadError):
        await proxy.get(url, headers={"Accept-Encoding": coding})
    assert faults.failed == 1
    assert (await until_logged(lines, "request.answered"))["aborted"] is True
    assert [line["event"] for line in lines].count("request.answered") == 1
    faults.heal()
    assert ids((await proxy.get(url)).body) == ["a2", "a1", "a0"]


@pytest.mark.fault("66a")
async def test_an_answer_stays_what_it_began_as_while_its_segments_are_replaced(
    proxy: Proxy, origin: Origin
) -> None:
    """Row 66a: a slow reader gets the body of its ETag and Content-Length though the feed changes
    meanwhile."""
    publish_large(origin, "a", LARGE)
    url = origin.url("/large")
    await proxy.whole(url)
    reader, writer = await stalled(proxy)
    writer.write(request_for(url))
    expected = await reader.readuntil(b"\r\n\r\n")
    before = await proxy.get(url, headers={"Host": "localhost"})

    publish_large(origin, "b", LARGE)
    after = await proxy.refreshed(url, full=True)
    await proxy.swept()
    body = await reader.read()
    writer.close()

    etag, length = before.headers["ETag"], before.headers["Content-Length"]
    assert after.headers["ETag"] != etag
    assert f"ETag: {etag}\r\n".encode() in expected
    assert f"Content-Length: {length}\r\n".encode() in expected
    assert body == before.body


@pytest.mark.fault("73")
@pytest.mark.parametrize("jump_seconds", [TEN_YEARS, -TEN_YEARS])
async def test_a_clock_that_jumps_loses_nothing_and_delays_nothing(
    tmp_path: Path, origin: Origin, jump_seconds: float
) -> None:
    """Missing documents are tried again even after a jump backwards, though their time seems ten years
    away."""
    expected = publish_chain(origin, archives=3)
    origin.fault("/archive/1", Status(404))
    url = origin.url("/feed")
    async with running(a_config(tmp_path, history={"look_ahead": False})) as proxy:
        assert (await proxy.whole(url)).state == "partial"
        for seconds in (jump_seconds, -jump_seconds):
            proxy.clock.advance(seconds)
            origin.forget_requests()
            reply = await proxy.whole(url)
            assert (reply.status, reply.state, ids(reply.body)[1:]) == (200, "partial", expected[:-2])
            # The newest may be fetched, since it looks older by the clock, and so may the document expected
            # behind the missing one (R34).
            others = {"/archive/3", "/archive/0"}
            assert origin.counts().keys() - others == {"/feed", "/archive/1"}
            assert max(origin.counts().values()) == 1
            assert int(reply.headers.get("Age", "0")) >= 0
        origin.heal("/archive/1")
        proxy.clock.advance(jump_seconds)
        reply = await proxy.whole(url)
        assert (reply.state, own_ids(reply.body)) == ("complete", expected)


@pytest.mark.fault("73")
@pytest.mark.parametrize("hours", [1, 23])
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_clock_that_was_put_right_delays_nothing(
    tmp_path: Path, origin: Origin, hours: int, restarts: bool
) -> None:
    """Row 73: periods counted from an instant of the future do not hold, nor in the next process."""
    expected = publish_chain(origin, archives=3)
    origin.fault("/archive/1", Status(404))
    url, clock, config = origin.url("/feed"), Clock(), a_config(tmp_path)
    clock.advance(hours * 3600)
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(running(config, clock))
        assert (await proxy.whole(url)).state == "partial"
        clock.advance(-hours * 3600)
        origin.heal("/archive/1")
        origin.forget_requests()
        if restarts:
            await stack.aclose()
            proxy = await stack.enter_async_context(running(config, clock))
        reply = await proxy.whole(url)
        assert (reply.state, own_ids(reply.body)) == ("complete", expected)
        assert origin.counts()["/feed"] == 1
        assert re.fullmatch("max-age=(900|899)", reply.headers["Cache-Control"])
        await proxy.whole(url)
        assert origin.counts()["/feed"] == 1, "what was noted since is of the right time"


@pytest.mark.fault("73")
@pytest.mark.parametrize("is_seen_before", [False, True], ids=["first seen", "in another format"])
async def test_no_feed_is_of_the_future(tmp_path: Path, origin: Origin, is_seen_before: bool) -> None:
    """Row 73; R7: `since` is then the first response seen by a right clock."""
    url, clock = origin.url("/feed"), Clock()
    async with running(a_config(tmp_path), clock) as proxy:
        if is_seen_before:
            origin.publish("/feed", rss(an_item("a")))
            await proxy.whole(url)
        origin.publish("/feed", atom(an_item("a")))
        clock.advance(20 * 86_400)
        await proxy.whole(url)
        clock.advance(-20 * 86_400)
        right_at = clock()
        await proxy.refreshed(url)
        clock.advance(3600)
        for _ in range(2):
            since = datetime.fromisoformat((await proxy.status(url))["since"])
            assert 0 <= since.timestamp() - int(right_at) < 60
            assert (await proxy.refreshed(url)).reconstruction.endswith(f'since="{since:%Y-%m-%dT%H:%M:%SZ}"')


@pytest.mark.fault("73")
async def test_no_reader_is_told_to_wait_until_a_wrong_clock_would_have_been_right(
    tmp_path: Path, origin: Origin
) -> None:
    """Row 73; RFC 9111, 4.2: an instant of the future makes nothing fresh, even for a slow publisher."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url, clock = origin.url("/feed"), Clock()
    clock.advance(23 * 3600)
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(url)
        clock.advance(-23 * 3600)
        with origin.held("/feed"):
            reply = await proxy.get(url, wait="0.1")
            assert (reply.status, reply.headers["Cache-Control"]) == (200, "max-age=0")


@pytest.mark.fault("73")
async def test_a_replica_whose_clock_is_ahead_delays_no_other(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """Row 73: its notes hold for no replica with a right clock."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url, ahead = origin.url("/feed"), Clock()
    ahead.advance(5 * 3600)
    config = a_config(tmp_path, store={"url": postgres_url, "connections": 4})
    async with running(config, ahead) as fast, running(config) as right:
        await fast.whole(url)
        assert (await right.whole(url)).headers["Cache-Control"] in ("max-age=900", "max-age=899")
    assert origin.counts() == {"/feed": 2}


@pytest.mark.fault("115")
@pytest.mark.parametrize("hours", [1, 23])
@pytest.mark.parametrize("restarts", [False, True], ids=["in one process", "after a restart"])
async def test_what_failed_by_a_wrong_clock_is_tried_again_once_it_is_right(
    tmp_path: Path, origin: Origin, hours: int, restarts: bool
) -> None:
    """Row 115: the next attempt was counted from an instant in the future."""
    url, clock, config = origin.url("/feed"), Clock(), a_config(tmp_path)
    origin.publish("/feed", atom(an_item("a"), complete=True))
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(running(config, clock))
        await proxy.whole(url)
        clock.advance(hours * 3600)
        origin.fault("/feed", Status(503))
        assert "stale" in (await proxy.refreshed(url)).reconstruction
        clock.advance(-hours * 3600)
        origin.forget_requests()
        if restarts:
            await stack.aclose()
            proxy = await stack.enter_async_context(running(config, clock))
        assert "stale" in (await proxy.get(url)).reconstruction
        await proxy.settled()
        await proxy.get(url)
        assert origin.counts() == {"/feed": 1}, "what was noted since is of the right time"
        origin.heal("/feed")
        clock.advance(7 * 3600)
        reply = await proxy.whole(url)
        assert (reply.state, "stale" in reply.reconstruction) == ("complete", False)


@pytest.mark.fault("115")
async def test_a_failure_is_waited_out_though_the_last_answer_is_of_a_wrong_clock(
    tmp_path: Path, origin: Origin
) -> None:
    """Row 115: the wrong clock saw the last response, the right one the failure."""
    url, clock = origin.url("/feed"), Clock()
    origin.publish("/feed", atom(an_item("a"), complete=True))
    clock.advance(5 * 3600)
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(url)
        clock.advance(-5 * 3600)
        origin.fault("/feed", Status(404))
        await proxy.refreshed(url)
        origin.forget_requests()
        for _ in range(3):
            await proxy.get(url)
            await proxy.settled()
            clock.advance(600)
        assert origin.counts() == {}
        clock.advance(3600)
        await proxy.get(url)
        assert origin.counts() == {"/feed": 1}


@pytest.mark.fault("115")
async def test_a_failure_that_a_replica_with_a_fast_clock_has_seen_delays_no_other(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """Row 115: its notes hold for no replica with a right clock."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url, ahead = origin.url("/feed"), Clock()
    ahead.advance(5 * 3600)
    config = a_config(tmp_path, store={"url": postgres_url, "connections": 4})
    async with running(config, ahead) as fast, running(config) as right:
        await right.whole(url)
        origin.fault("/feed", Status(503), times=1)
        assert "stale" in (await fast.refreshed(url)).reconstruction
        assert "stale" not in (await right.whole(url)).reconstruction
    assert origin.counts() == {"/feed": 3}


@pytest.mark.fault("74")
async def test_sigterm_in_a_walk_ends_it_in_time_and_the_next_start_goes_on(
    tmp_path: Path, origin: Origin
) -> None:
    """Row 74: SIGTERM answers waiting readers, exits 0 within ten seconds; stored archives are not fetched
    again."""
    expected = publish_chain(origin, archives=6)
    url = origin.url("/feed")
    async with serving(tmp_path, history_look_ahead=False) as served:
        with origin.held("/archive/3") as gate:
            waiting = asyncio.create_task(served.get(url))
            await gate.reached()
            served.process.send_signal(signal.SIGTERM)
            reply = await waiting
            assert (reply.status, reply.state) == (200, "loading")
            async with asyncio.timeout(10):  # Docker kills after that
                assert await served.ended() == 0
        assert served.events()[-1] == "server.stopped"
    check_database(tmp_path / "wholefeed.db")
    assert origin.counts()["/archive/4"] == 1
    origin.forget_requests()

    async with running(a_config(tmp_path)) as proxy:
        await proxy.settled()
        reply = await proxy.get(url)
    assert (reply.state, ids(reply.body)) == ("complete", expected)
    assert not {"/archive/4", "/archive/5"} & origin.counts().keys()


@pytest.mark.fault("75")
async def test_feeds_of_a_publisher_that_is_down_for_a_day_are_answered(
    tmp_path: Path, origin: Origin
) -> None:
    """Whole, unchanged, stale; the publisher gets ever fewer requests."""
    clock = Clock()
    expected = publish_chain(origin, archives=2)
    origin.publish("/partial", atom(an_item("p", 2), prev_archive="/gone"))
    origin.publish("/plain", atom(an_item("q", 1)))
    urls = [origin.url(path) for path in ("/feed", "/partial", "/plain")]
    async with running(a_config(tmp_path), clock, open_fetcher=opening(clock=clock)) as proxy:
        before = {url: await proxy.whole(url) for url in urls}
        await origin.stop()
        for _ in range(24):
            proxy.clock.advance(DAY / 24)
            for url in urls:
                reply = await proxy.get(url)
                assert (reply.status, reply.body) == (200, before[url].body)
                assert reply.reconstruction == f"{before[url].reconstruction};stale"
        assert ids((await proxy.get(urls[0])).body) == expected
        await origin.start()
        proxy.clock.advance(DAY)
        for url in urls:
            assert (await proxy.whole(url)).reconstruction == before[url].reconstruction


@pytest.mark.fault("79")
@pytest.mark.parametrize("chosen", ["json", "console"])
async def test_nothing_that_a_reader_or_a_publisher_writes_breaks_a_line_of_the_log(
    tmp_path: Path, origin: Origin, chosen: str
) -> None:
    """Row 79: no URL, feed id or link forges a log line or steers the operator's terminal."""
    evil = '\n{"event":"forged"}\r\x1b[2J\u2028\u0085\u202e'
    origin.publish(
        f"/feed?x={quote(evil)}",
        atom(an_item("a", 1, "text"), feed_id="urn:&#10;&#x2028;", prev_archive="/&#10;&#x2028;x"),
    )
    origin.fault("/broken", Reset())
    async with serving(tmp_path, log_format=chosen) as served:
        for url in (
            origin.url(f"/feed?x={quote(evil)}"),
            origin.url("/broken") + evil,
            f"http://a{evil}/",
            evil,
        ):
            await served.ask("/feed", url=url)
            await served.ask(f"/{quote(evil)}")
    text = served.text
    assert served.port
    assert not set("\r\x1b\u2028\u0085\u202e") & set(text)
    if chosen == "json":
        lines = [json.loads(line) for line in text.splitlines()]
        assert {line["event"] for line in lines} >= {"request.answered", "document.fetched"}
        assert "forged" not in {line["event"] for line in lines}
    else:
        lines = [line for line in text.splitlines() if not line.startswith("wholefeed: open http")]
        assert [line for line in lines if not re.match(r"\d\d:\d\d:\d\d \[", line)] == []
