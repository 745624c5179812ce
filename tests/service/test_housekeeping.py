"""`store.max_bytes`: the feeds that were not asked for longest go; nothing that is in use does."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.feeds import an_item, atom, ids
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Proxy, a_config, running
from wholefeed.store.store import Upkeep

MAX_BYTES = 17 << 16
HOUR = 3600.0


def publish(origin: Origin, *names: str) -> list[str]:
    """Feeds of some 300 KB in the store each; return their URLs."""
    for name in names:
        items = [an_item(f"{name}{n}", n, _noise(f"{name}{n}")) for n in range(20)]
        origin.publish(f"/{name}", atom(*items, feed_id=f"urn:{name}", complete=True))
    return [origin.url(f"/{name}") for name in names]


def _noise(seed: str) -> str:
    """Text that does not compress: all that a feed takes is its length."""
    return "".join(hashlib.sha256(f"{seed}.{n}".encode()).hexdigest() for n in range(196))


async def known(proxy: Proxy) -> set[str]:
    return {feed.url.rpartition("/")[2] for feed in await proxy.service.feeds()}


async def asked_in_turn(proxy: Proxy, urls: list[str]) -> None:
    """Each feed, an hour apart."""
    for url in urls:
        proxy.clock.advance(HOUR)
        assert (await proxy.whole(url)).status == 200
    await proxy.settled()


async def evicted(proxy: Proxy, names: set[str]) -> None:
    """Wait until these feeds have gone, and no others."""
    before = await known(proxy)
    async with asyncio.timeout(10):
        while await known(proxy) & names:
            await asyncio.sleep(0.01)
    assert await known(proxy) == before - names


async def test_the_feeds_not_asked_for_longest_are_evicted(tmp_path: Path, origin: Origin) -> None:
    """store.max_bytes: the feed that was not asked for longest goes, is logged, and can be fetched again."""
    urls = publish(origin, "a", "b", "c", "d")
    async with running(a_config(tmp_path, store={"max_bytes": MAX_BYTES})) as proxy:
        with capture_logs() as lines:
            await asked_in_turn(proxy, urls[:3])
            await asked_in_turn(proxy, urls[:1])
            assert await known(proxy) == {"a", "b", "c"}
            await asked_in_turn(proxy, urls[3:])
            await evicted(proxy, {"b"})
            async with asyncio.timeout(10):
                while not (told := [line for line in lines if line["event"] == "feed.evicted"]):
                    await asyncio.sleep(0.01)
        assert len(told) == 1
        assert told[0]["used_bytes"] > MAX_BYTES
        assert await proxy.store.upkeep.used_bytes() <= MAX_BYTES
        assert len(ids((await proxy.whole(urls[1])).body)) == 20  # fetched again: it is not known any more


async def test_feeds_that_could_not_be_evicted_are_looked_at_again(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All were asked for just now; nothing grows afterwards."""
    set_constant(monkeypatch, "_AGAIN_SECONDS", 0.05)
    urls = publish(origin, "a", "b", "c", "d")
    async with running(a_config(tmp_path, store={"max_bytes": MAX_BYTES})) as proxy:
        for url in urls:
            assert (await proxy.whole(url)).status == 200
        await proxy.settled()
        await asyncio.sleep(0.2)
        assert await known(proxy) == {"a", "b", "c", "d"}
        proxy.clock.advance(HOUR)
        await evicted(proxy, {"a"})


async def test_pages_of_evicted_feeds_are_used_again(tmp_path: Path, origin: Origin) -> None:
    """store.max_bytes: with feeds coming and going the database file stays under twice the size set."""
    names = [f"f{n}" for n in range(12)]
    urls = publish(origin, *names)
    async with running(a_config(tmp_path, store={"max_bytes": MAX_BYTES})) as proxy:
        for url in urls:
            await asked_in_turn(proxy, [url])
            await proxy.service.house.make_room()
        assert names[-1] in await known(proxy)
        assert len(await known(proxy)) < 6
    assert (tmp_path / "wholefeed.db").stat().st_size < 2 * MAX_BYTES


async def test_the_feed_asked_for_last_stays_however_large(tmp_path: Path, origin: Origin) -> None:
    """A feed larger than store.max_bytes is not evicted, or it would be fetched anew for each reader."""
    (url,) = publish(origin, "a")
    async with running(a_config(tmp_path, store={"max_bytes": 1 << 18})) as proxy:
        await asked_in_turn(proxy, [url])
        proxy.clock.advance(24 * HOUR)
        await proxy.service.house.make_room()
        assert await proxy.store.upkeep.used_bytes() > 1 << 18
        assert await known(proxy) == {"a"}


async def test_a_feed_that_is_being_refreshed_or_sent_stays(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feed that a reader is just being sent, or that is being fetched, is not evicted under it."""
    urls = publish(origin, "a", "b", "c", "d")
    config = a_config(tmp_path)
    async with running(config) as proxy:
        for url in urls:
            assert (await proxy.whole(url)).status == 200
    looks = 0
    real = Upkeep.used_bytes

    async def used_bytes(upkeep: Upkeep) -> int:
        nonlocal looks
        found = await real(upkeep)
        looks += 1
        return found

    monkeypatch.setattr(Upkeep, "used_bytes", used_bytes)
    async with running(a_config(tmp_path, store={"max_bytes": 1 << 18}), proxy.clock) as proxy:
        while looks < 2:  # the round at the start, which evicts nothing that was asked for just now
            await asyncio.sleep(0.005)
        proxy.clock.advance(48 * HOUR)
        feeds = {feed.url: feed.id for feed in await proxy.service.feeds()}
        with origin.held("/a") as gate:
            refreshing = asyncio.create_task(proxy.get(urls[0]))
            await gate.reached()
            async with proxy.store.snapshot(feeds[urls[1]]) as snapshot:
                proxy.clock.advance(HOUR)
                await proxy.service.house.make_room()
                assert await known(proxy) == {"a", "b", "d"}
                assert [await proxy.store.block(segment.id) for segment in snapshot.segments]
            gate.release()
            assert (await refreshing).status == 200


async def test_a_feed_evicted_while_it_is_asked_for_is_fetched_again(tmp_path: Path, origin: Origin) -> None:
    """Whoever asks gets the feed, however often it is evicted meanwhile."""
    urls = publish(origin, "a", "b", "c")
    async with running(a_config(tmp_path, store={"max_bytes": 1 << 18})) as proxy:

        async def read(url: str) -> int:
            try:
                reply = await proxy.get(url)
            except aiohttp.ClientError:
                return 0
            return len(ids(reply.body)) if reply.status == 200 else 0

        for _ in range(5):
            readers = [asyncio.create_task(read(url)) for url in urls]
            for _ in range(5):
                proxy.clock.advance(HOUR)
                await proxy.service.house.make_room()
                await asyncio.sleep(0.005)
            assert await asyncio.gather(*readers) == [20] * 3


async def test_nothing_is_evicted_where_no_size_is_set(tmp_path: Path, origin: Origin) -> None:
    """With store.max_bytes 0 no feed ever leaves on its own (R25)."""
    urls = publish(origin, "a", "b", "c", "d")
    async with running(a_config(tmp_path)) as proxy:
        await asked_in_turn(proxy, urls)
        await proxy.service.house.make_room()
        assert await known(proxy) == {"a", "b", "c", "d"}
        assert await proxy.store.upkeep.used_bytes() > MAX_BYTES
