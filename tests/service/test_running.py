"""wholefeed.service.running: requests for a refresh during another one of the same feed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Proxy
from wholefeed.core.refresh.basis import RefreshRequest
from wholefeed.errors import StorageFullError
from wholefeed.service.running import Flights
from wholefeed.service.storing import FeedStorage
from wholefeed.web.keys import STORE


async def test_a_wish_that_comes_while_a_refresh_ends_is_fulfilled(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R14: at each look of the refresh at its feed."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    await proxy.whole(url)
    looks = wished_at = 0
    store = proxy.app[STORE]
    names = ("read", "write")
    real: dict[str, Callable[..., Any]] = {name: getattr(store, name) for name in names}

    def looking(work: Callable[..., Any]) -> Callable[..., Any]:
        async def look(*arguments: Any, **options: Any) -> Any:
            nonlocal looks
            found = await work(*arguments, **options)
            with monkeypatch.context() as unheard:  # a request here is no look of the refresh
                for name, method in real.items():
                    unheard.setattr(store, name, method)
                if (await proxy.service.status(url)).is_refreshing:
                    looks += 1
                    if looks == wished_at:
                        await proxy.service.refresh(url)
            return found

        return look

    for name, method in real.items():
        monkeypatch.setattr(store, name, looking(method))
    wishes = 0
    for attempt in range(20):  # its number of looks depends on its findings in memory
        looks, wished_at = 0, attempt % 4 + 1
        origin.publish("/feed", atom(an_item("a", 1), an_item(f"b{attempt}", 2)))
        origin.forget_requests()
        await proxy.service.refresh(url)
        await proxy.settled()
        if looks >= wished_at:
            wishes += 1
            assert len(origin.requests_for("/feed")) == 2, wished_at
    assert wishes


async def test_a_flight_that_has_ended_is_not_joined() -> None:
    """The request would wait for ever."""
    flights: Flights[str, int] = Flights()
    at_the_end: list[asyncio.Task[int] | None] = []

    async def fly(number: int) -> int:
        asyncio.get_running_loop().call_soon(lambda: at_the_end.append(flights.running("key")))
        return number

    assert await flights.join("key", lambda: fly(1)) == 1
    assert await flights.join("key", lambda: fly(2)) == 2
    await asyncio.sleep(0)
    assert at_the_end == [None, None]
    assert len(flights) == 0


async def test_a_full_refresh_that_waits_is_not_replaced_by_a_lesser_one(
    proxy: Proxy, origin: Origin
) -> None:
    """R14: a refresh accepted with 202 happens, despite later requests."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    await proxy.whole(url)
    await proxy.settled()
    origin.forget_requests()

    with origin.held("/feed") as subscription:
        await proxy.ask("POST", "/refresh", params={"url": url})
        await subscription.reached()
        for query in ({"full": "1"}, {}):
            reply = await proxy.ask("POST", "/refresh", params={"url": url, **query})
            assert reply.status == 202
        subscription.release()
        await proxy.settled()

    assert set(origin.counts()) == {"/feed", "/archive/1", "/archive/2", "/archive/3"}
    assert origin.counts()["/feed"] == 2


@pytest.mark.parametrize("error", [StorageFullError("the volume is full"), ValueError("an error of our own")])
async def test_what_waits_for_a_refresh_that_fails_is_not_left_to_a_later_one(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """R14: an ordinary refresh hours later does not ask for every document."""
    set_constant(monkeypatch, "PROBE_SECONDS", 0.0)
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    await proxy.whole(url)
    await proxy.settled()

    async def publish(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as broken, origin.held("/feed") as subscription:
        await proxy.ask("POST", "/refresh", params={"url": url})
        await subscription.reached()
        broken.setattr(FeedStorage, "publish", publish)
        await proxy.ask("POST", "/refresh", params={"url": url, "full": "1"})
        subscription.release()
        await proxy.settled()
    origin.forget_requests()

    proxy.clock.advance(12_000)
    async with asyncio.timeout(300):
        while not origin.counts():
            await proxy.get(url)
    await proxy.settled()
    assert origin.counts() == {"/feed": 1}


def test_requests_that_are_merged_are_both_met() -> None:
    """The merged one is forced, full or allowed to walk if either is; readerless if both are."""
    names = ("is_forced", "is_full", "may_walk", "is_polled")
    each: list[dict[str, Any]] = [
        dict(zip(names, values, strict=True)) for values in itertools.product((False, True), repeat=4)
    ]
    for one, other in itertools.product(each, repeat=2):
        expected = {name: one[name] or other[name] for name in names[:3]}
        expected["is_polled"] = one["is_polled"] and other["is_polled"]
        assert RefreshRequest(**one).merge(RefreshRequest(**other)) == RefreshRequest(**expected)


@pytest.mark.parametrize("is_made", [False, True])
async def test_a_reader_that_looked_before_the_first_refresh_ended_begins_no_second_one(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, is_made: bool
) -> None:
    """docs/faults.md row 64: the reader then learns of the refresh."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a"), complete=True))
    store, has_looked, may_go_on = proxy.app[STORE], asyncio.Event(), asyncio.Event()
    real, looks = store.find, itertools.count()

    async def late(asked: str, **options: Any) -> Any:
        found: Any = await real(asked, **options)
        match next(looks):
            case 0:
                has_looked.set()
                await may_go_on.wait()
            case 1 if is_made:
                return replace(found, digest="")  # as it was before it was published
        return found

    with monkeypatch.context() as patched:
        patched.setattr(store, "find", late)
        reader = asyncio.create_task(proxy.get(url))
        await has_looked.wait()
        patched.setattr(store, "find", real)
        first = await proxy.whole(url)
        patched.setattr(store, "find", late)
        may_go_on.set()
        assert (await reader).body == first.body
    assert next(looks) > 1 + is_made
    assert origin.counts() == {"/feed": 1}
