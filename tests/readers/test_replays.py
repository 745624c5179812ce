"""Readers get a replay as it is released: an entry a slot, each as new (docs/readers.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio

from tests.feeds import an_item, atom, publish_chain, rss, stamp
from tests.origin import Origin
from tests.readers.conftest import installed
from tests.readers.programs import Gpodder, Lemon24, Newsboat
from tests.running import Proxy, StandingClock, a_config, running

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The event loop that the publisher is in."""

DAY = 86_400
SLOTS = 10


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(tmp_path: Path) -> AsyncIterator[Proxy]:
    """A proxy whose clock is some days late, so that no reader sees an entry of tomorrow."""
    clock = StandingClock()
    clock.advance(-(SLOTS + 2) * DAY)
    async with running(a_config(tmp_path), clock) as proxy:
        yield proxy


def replay(proxy: Proxy, url: str, rate: str = "1/day") -> str:
    """The URL of a replay that began an hour ago."""
    begins = datetime.fromtimestamp(int(proxy.clock()) - 3600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    options = f"&replay={quote(rate, safe='')}&from={quote(begins, safe='')}"
    return f"http://127.0.0.1:{proxy.client.port}/feed?url={quote(url, safe='')}{options}"


def marked(name: str, hours: int) -> str:
    """The title of an entry in a replay: what it was published on stands in front."""
    return f"[{stamp(hours)[:10]}] {name}"


@pytest.mark.parametrize("kind", [Newsboat, Lemon24], ids=["newsboat", "lemon24/reader"])
async def test_a_reader_gets_one_entry_a_slot(
    proxy: Proxy, origin: Origin, tmp_path: Path, kind: type[Newsboat | Lemon24]
) -> None:
    """P2, P3: two at first and then one a day, new and in front of all others; it keeps what it has."""
    names = publish_chain(origin, archives=(SLOTS + 1) // 2, entries=2)[::-1]
    titles = [marked(name, hours) for hours, name in enumerate(names, 1)]
    url = origin.url("/feed")
    await proxy.whole(url)
    reader = installed(kind, tmp_path)
    await reader.subscribe(replay(proxy, url))
    assert await reader.unread() == [titles[1], titles[0]]
    for day in range(1, SLOTS + 1):
        await reader.read_all()
        proxy.clock.advance(DAY)
        await reader.poll()
        assert await reader.unread() == [titles[day + 1]]
        assert sorted(await reader.titles()) == sorted(titles[: day + 2])


async def test_what_a_publisher_drops_shifts_nothing(proxy: Proxy, origin: Origin, tmp_path: Path) -> None:
    """P9: the publisher's feed holds three entries and moves on; the reader gets all of them in their order,
    and what is written meanwhile once those before it are out."""
    items = [an_item(f"e{n}", n) for n in range(1, 7)]
    url = origin.url("/feed")
    origin.publish("/feed", rss(*items[2::-1]))
    await proxy.whole(url)
    reader = installed(Newsboat, tmp_path)
    await reader.subscribe(replay(proxy, url))
    found = [await reader.unread()]
    for day in range(1, 7):
        if day < 4:
            origin.publish("/feed", rss(*items[day : day + 3][::-1]))
        await reader.read_all()
        proxy.clock.advance(DAY)
        await proxy.whole(url)
        await reader.poll()
        found.append(await reader.unread())
    bare = [[title.partition("] ")[2] for title in titles] for titles in found]
    assert bare == [["e2", "e1"], ["e3"], ["e4"], ["e5"], ["e6"], [], []]


async def test_another_pace_brings_nothing_again(proxy: Proxy, origin: Origin, tmp_path: Path) -> None:
    """P4, P9: entries keep their ids, whatever is chosen: what was read stays read under another URL."""
    names = publish_chain(origin, archives=3, entries=2)[::-1]
    url = origin.url("/feed")
    await proxy.whole(url)
    reader = installed(Lemon24, tmp_path)
    first = replay(proxy, url)
    await reader.subscribe(first)
    await reader.read_all()
    await reader.change(first, replay(proxy, url, "3/day"))
    assert await reader.unread() == []
    proxy.clock.advance(DAY * 2 // 3)
    await reader.poll()
    assert await reader.unread() == [marked(names[2], 3)]
    assert len(await reader.titles()) == 3


async def test_gpodder_keeps_the_episodes_of_a_replay(proxy: Proxy, origin: Origin, tmp_path: Path) -> None:
    """P5: it takes away what leaves a feed; while the history is read again nothing does."""
    names = publish_chain(origin, archives=3, entries=2)[::-1]
    url = origin.url("/feed")
    await proxy.whole(url)
    reader = installed(Gpodder, tmp_path)
    await reader.subscribe(replay(proxy, url))
    origin.publish(
        "/feed",
        atom(an_item("new", 1000), an_item(names[-1], 5), updated=1000, prev_archive="/archive/4"),
    )
    origin.publish("/archive/4", atom(an_item("more", 999), archive=True, prev_archive="/archive/3"))
    proxy.clock.advance(DAY)
    with origin.held("/archive/4"):
        await proxy.ask("POST", "/refresh", params={"url": url})
        assert (await proxy.begun(url)).state == "loading"
        await reader.poll()
    assert len(await reader.titles()) == 3
