"""What readers make of a feed that is not all there yet, or not any more (docs/readers.md)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.readers.conftest import installed
from tests.readers.harness import Reader, Server
from tests.readers.programs import Gpodder, Newsboat
from tests.running import StandingClock, a_config, running
from wholefeed.core.compose.views import HEALED

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The event loop that the proxy's process is read in."""

MISSING = "Older entries of this feed are missing"
WARNING_AFTER_HEALING = {
    "newsboat": [HEALED.title],
    "sfeed": [MISSING, HEALED.title],
    "rss2email": [MISSING],
    "gpodder": [HEALED.title],
    "lemon24/reader": [HEALED.title],
    "feedparser": [HEALED.title],
    "podcastparser": [HEALED.title],
}
"""The entry that says what is missing has the id of the one that says that nothing is missing any more."""


async def test_a_healed_feed_gives_what_was_missing_once(
    proxy_of_readers: Server, origin: Origin, reader: Reader
) -> None:
    """R16: missing archives show as one warning; when they are there their entries come, each once."""
    expected = publish_chain(origin, archives=4, entries=3)
    origin.fault("/archive/2", Status(404))
    origin.fault("/archive/1", Status(404))
    url = origin.url("/feed")
    assert (await proxy_of_readers.served.whole(url)).state == "partial"
    await reader.subscribe(proxy_of_readers.feed(url))
    assert sorted(await reader.titles()) == sorted([MISSING, *expected[:9]])
    origin.heal("/archive/2")
    origin.heal("/archive/1")
    await proxy_of_readers.refreshed(url)
    assert (await proxy_of_readers.served.whole(url)).state == "complete"
    await reader.poll()
    assert sorted(await reader.titles()) == sorted([*WARNING_AFTER_HEALING[reader.name], *expected])


@pytest.mark.sample("newsboat", "sfeed", "rss2email", "*parser")
async def test_a_feed_that_loads_is_completed_by_an_ordinary_poll(
    impatient_proxy: Server, origin: Origin, reader: Reader
) -> None:
    """`loading` is a feed with fewer entries; the next poll has the rest, and nothing twice."""
    expected = publish_chain(origin, archives=4, entries=3)
    url = origin.url("/feed")
    with origin.held("/archive/2") as gate:
        async with asyncio.timeout(300):
            while (early := await impatient_proxy.served.get(url)).status != 200:
                pass
        assert early.state == "loading"
        await reader.subscribe(impatient_proxy.feed(url))
        titles = await reader.titles()
        assert set(titles) < set(expected)
        assert len(titles) == len(set(titles)) > 0
        await gate.reached()
        gate.release()
        assert (await impatient_proxy.served.whole(url)).state == "complete"
    async with impatient_proxy.asked(url) as statuses:
        await reader.poll()
    assert statuses == [200]
    assert sorted(await reader.titles()) == sorted(expected)


async def test_newsboat_takes_every_one_of_several_publications_of_a_second(
    origin: Origin, tmp_path: Path
) -> None:
    """It throws away a body whose Last-Modified has not moved, and keeps its ETag: what is new in it would
    not come before the feed changes again. A body without Last-Modified is taken."""
    newsboat, url, expected = installed(Newsboat, tmp_path), origin.url("/feed"), list[str]()
    async with running(a_config(tmp_path), StandingClock()) as proxy:
        for number in range(5):
            expected.append(f"e{number}")
            items = [an_item(name, place) for place, name in enumerate(expected)]
            origin.publish("/feed", atom(*items, complete=True))
            if number == 0:
                host = f"http://{proxy.client.host}:{proxy.client.port}"
                await newsboat.subscribe(f"{host}/feed?url={quote(url, safe='')}")
                await newsboat.poll()  # asks without conditions
                continue
            if number == 4:
                proxy.clock.advance(10)
            assert (await proxy.refreshed(url)).status == 200
            await newsboat.poll()
            assert sorted(await newsboat.titles()) == expected


@pytest.mark.parametrize("kind", [Newsboat, Gpodder], ids=["newsboat", "gpodder"])
async def test_a_publisher_that_is_down_takes_nothing_from_a_reader(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path, kind: type[Reader]
) -> None:
    """What is stored is served, and kept: also by gPodder, which removes what a feed no longer lists."""
    expected = publish_chain(origin, archives=3, entries=3)
    url = origin.url("/feed")
    reader = installed(kind, tmp_path)
    await reader.subscribe(proxy_of_readers.feed(url))
    origin.fault("/feed", Status(503))
    await proxy_of_readers.refreshed(url)
    assert (await proxy_of_readers.served.get(url)).reconstruction.endswith(";stale")
    await reader.poll()
    assert sorted(await reader.titles()) == sorted(expected)


async def test_a_publisher_that_was_never_reached_is_an_error_and_no_feed(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path
) -> None:
    """Where nothing is stored the answer is 502, and no reader may take its body for a feed."""
    origin.answer("/feed", Status(503))
    url = origin.url("/feed")
    newsboat = installed(Newsboat, tmp_path)
    async with proxy_of_readers.asked(url) as statuses:
        await newsboat.subscribe(proxy_of_readers.feed(url))
    assert statuses == [502]
    assert await newsboat.titles() == []
