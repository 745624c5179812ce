"""GET /events: the progress of a walk as it goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import ClientResponse

from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import Proxy, StartProxy
from wholefeed.server.clients import sign
from wholefeed.service import people
from wholefeed.web import api

KEY = "a key for signing feeds"


@dataclass(frozen=True)
class Event:
    """What a browser makes of one."""

    name: str
    id: str
    data: dict[str, Any]


class Stream:
    """An answer that goes on."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response
        self.comments = 0
        self.retry = 0

    async def next(self) -> Event | None:
        """The next event; None when the answer has ended."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(20):
            async for raw in self.response.content:
                line = raw.decode().removesuffix("\n")
                if line.startswith(":"):
                    self.comments += 1
                elif line.startswith("retry: "):
                    self.retry = int(line.removeprefix("retry: "))
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    return Event(fields["event"], fields.get("id", ""), json.loads(fields["data"]))
        return None

    async def until(self, **progress: int) -> Event:
        """The first event whose progress is this."""
        while (event := await self.next()) is not None:
            if progress.items() <= event.data["progress"].items():
                return event
        raise AssertionError("it ended before")


@asynccontextmanager
async def followed(proxy: Proxy, url: str, **options: Any) -> AsyncIterator[Stream]:
    async with proxy.client.get("/events", params={"url": url}, **options) as response:
        yield Stream(response)


async def test_progress_is_told_while_a_walk_goes_on_and_then_that_it_has_ended(
    proxy: Proxy, origin: Origin
) -> None:
    """Documents and entries come one after the other; the last event has the state and an id."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    with origin.held("/archive/1") as gate:
        await proxy.begun(url)
        async with followed(proxy, url) as stream:
            assert stream.response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            assert stream.response.headers["Cache-Control"] == "no-store"
            assert stream.response.headers["X-Accel-Buffering"] == "no"
            assert "Content-Encoding" not in stream.response.headers
            event = await stream.until(documents=3)
            assert (event.name, event.id, stream.retry) == ("status", "", 5000)
            assert event.data["walking"]
            assert event.data["state"] == "loading"
            assert event.data["progress"]["left"] == 1
            assert event.data["progress"]["entries"] == 6
            assert "chain" not in event.data
            gate.release()
            event = await stream.until(documents=4)
            while event.name != "end":
                found = await stream.next()
                assert found is not None
                event = found
            assert (event.id, event.data["state"], event.data["refreshing"]) == ("end", "complete", False)
            assert event.data["progress"]["left"] is None
            assert await stream.next() is None


async def test_where_nothing_is_under_way_it_ends_at_once_and_is_not_asked_again(
    proxy: Proxy, origin: Origin
) -> None:
    """A browser that comes back by itself is told to stop (204), one that was cut off is not."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a"), complete=True))
    await proxy.whole(url)
    async with followed(proxy, url) as stream:
        event = await stream.next()
        assert event is not None
        assert (event.name, event.data["state"]) == ("end", "complete")
        assert await stream.next() is None
    async with followed(proxy, url, headers={"Last-Event-ID": "end"}) as stream:
        assert stream.response.status == 204
    async with followed(proxy, url, headers={"Last-Event-ID": "other"}) as stream:
        assert stream.response.status == 200


async def test_who_saw_the_end_of_one_walk_is_told_of_the_next(proxy: Proxy, origin: Origin) -> None:
    """The id of an end stops a browser only while nothing is under way."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    with origin.held("/archive/1"):
        await proxy.begun(url)
        async with followed(proxy, url, headers={"Last-Event-ID": "end"}) as stream:
            assert stream.response.status == 200
            event = await stream.next()
            assert event is not None
            assert event.name == "status"


async def test_what_is_not_known_is_404_and_what_is_no_url_400(proxy: Proxy, origin: Origin) -> None:
    """Errors are those of /status, before any event."""
    async with followed(proxy, origin.url("/feed")) as stream:
        assert stream.response.status == 404
    async with followed(proxy, "notaurl") as stream:
        assert stream.response.status == 400
    assert origin.requests == []


async def test_head_has_the_fields_and_does_not_wait(proxy: Proxy, origin: Origin) -> None:
    """HEAD of a feed whose walk goes on is answered at once."""
    publish_chain(origin, archives=1)
    with origin.held("/archive/1"):
        await proxy.begun(origin.url("/feed"))
        reply = await proxy.ask("HEAD", "/events", params={"url": origin.url("/feed")})
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"


async def test_many_who_follow_a_feed_cost_what_one_costs(
    start: StartProxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is asked once for all of them, and not at each look at what is in memory."""
    monkeypatch.setattr(people, "TICK_SECONDS", 0.01)
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    proxy = await start()
    with origin.held("/archive/1") as gate:
        await proxy.begun(url)
        await gate.reached()
        streams = [await proxy.client.get("/events", params={"url": url}) for _ in range(8)]
        for each in streams:
            assert await Stream(each).next() is not None
        assert proxy.service.watching.followers == 8
        await proxy.status(url)  # the statements that come with a request are over
        reads = 0
        read = proxy.store.read

        async def counted(work: Any) -> Any:
            nonlocal reads
            reads += 1
            return await read(work)

        monkeypatch.setattr(proxy.store.store, "read", counted)
        await asyncio.sleep(0.5)
        assert reads <= 1
        for each in streams:
            each.close()


@pytest.mark.fault("65a")
async def test_who_has_left_is_forgotten(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that closes its connection ends what is done for it."""
    monkeypatch.setattr(api, "_LOOK_SECONDS", 0.02)
    publish_chain(origin, archives=1)
    with origin.held("/archive/1"):
        await proxy.begun(origin.url("/feed"))
        async with followed(proxy, origin.url("/feed")) as stream:
            assert await stream.next() is not None
            assert proxy.service.watching.followers == 1
            assert len(watchers()) == 1
            stream.response.close()
        async with asyncio.timeout(10):
            while proxy.service.watching.followers or watchers():
                await asyncio.sleep(0.01)


def watchers() -> list[str]:
    """What looks at feeds for those who follow them."""
    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith(people.Watching.__name__)]


async def test_silence_is_broken_from_time_to_time(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment is sent where nothing changes: what stands between closes idle connections."""
    monkeypatch.setattr(api, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(api, "KEEP_ALIVE_SECONDS", 0.05)
    publish_chain(origin, archives=1)
    with origin.held("/archive/1") as gate:
        await proxy.begun(origin.url("/feed"))
        async with followed(proxy, origin.url("/feed")) as stream:
            assert await stream.next() is not None
            await asyncio.sleep(0.3)
            gate.release()
            while await stream.next() is not None:
                pass
            assert stream.comments > 0


@pytest.mark.fault("65a")
async def test_too_many_are_refused(proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds a connection: beyond a limit it is 503, and the others go on."""
    monkeypatch.setattr(people, "MAX_FOLLOWERS", 1)
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    with origin.held("/archive/1"):
        await proxy.begun(url)
        async with followed(proxy, url) as stream:
            assert await stream.next() is not None
            async with followed(proxy, url) as refused:
                assert refused.response.status == 503
                assert int(refused.response.headers["Retry-After"]) > 0


@pytest.mark.fault("99")
async def test_one_signed_url_does_not_take_all_places(start: StartProxy, origin: Origin) -> None:
    """docs/faults.md row 99: a feed has its share of the places, which others find free, and who leaves
    makes room."""
    publish_chain(origin, archives=1)
    origin.publish("/other", atom(an_item("a"), prev_archive="/other/1"))
    url, other = origin.url("/feed"), origin.url("/other")
    proxy = await start(server={"signing_keys": (KEY,)})
    marks = {each: sign(each, (KEY,)) for each in (url, other)}

    async def follow(feed: str) -> ClientResponse:
        return await proxy.client.get("/events", params={"url": feed, "signed": marks[feed]})

    with origin.held("/archive/1"), origin.held("/other/1"):
        for each, mark in marks.items():
            while (await proxy.get(each, signed=mark, wait="0.1")).status == 504:
                pass
        first = [await follow(url) for _ in range(40)]
        assert [each.status for each in first] == [200] * 32 + [503] * 8
        assert int(first[-1].headers["Retry-After"]) > 0
        elsewhere = await follow(other)
        assert elsewhere.status == 200
        assert await Stream(elsewhere).next() is not None
        first[0].close()
        async with asyncio.timeout(10):
            while (again := await follow(url)).status == 503:
                await asyncio.sleep(0.05)
        for stream in (*first, elsewhere, again):
            stream.close()


@pytest.mark.fault("65a")
async def test_a_feed_that_is_forgotten_meanwhile_ends_it(proxy: Proxy, origin: Origin) -> None:
    """Nobody is left waiting for a feed that is not there any more."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    with origin.held("/archive/1"):
        await proxy.begun(url)
        async with followed(proxy, url) as stream:
            assert await stream.next() is not None
            await proxy.ask("DELETE", "/feed", params={"url": url})
            while (event := await stream.next()) is not None:
                assert event.name == "status"


async def test_stopping_ends_all_of_them(proxy: Proxy, origin: Origin) -> None:
    """Who follows a walk does not keep the program from stopping, and is not told that the walk has ended."""
    publish_chain(origin, archives=1)
    with origin.held("/archive/1"):
        await proxy.begun(origin.url("/feed"))
        async with followed(proxy, origin.url("/feed")) as stream:
            assert await stream.next() is not None
            proxy.service.stop_waiting()
            async with asyncio.timeout(5):
                while (event := await stream.next()) is not None:
                    assert event.name == "status"


async def test_a_signature_is_good_for_it(start: StartProxy, origin: Origin) -> None:
    """Whoever may read a feed may see its progress, and nobody else's."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url = origin.url("/feed")
    proxy = await start(server={"signing_keys": (KEY,)})
    signed: dict[str, Any] = {"signed": sign(url, (KEY,))}
    assert (await proxy.get(url, **signed)).status == 200
    for query, status in ((signed, 200), ({}, 403), ({"signed": sign(url + "x", (KEY,))}, 403)):
        reply = await proxy.ask("GET", "/events", params={"url": url, **query})
        assert reply.status == status
