"""Each reader gets a long history, once, and asks for no more of it than it must (docs/readers.md)."""

from __future__ import annotations

from pathlib import Path

from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.readers.conftest import installed
from tests.readers.harness import Reader, Server
from tests.readers.programs import GpodderAsInstalled

POLLS_AGAIN = {
    "newsboat": [200, 304],
    "sfeed": [200, 200],
    "rss2email": [304, 304],
    "gpodder": [304, 304],
    "lemon24/reader": [304, 304],
    "feedparser": [304, 304],
    "podcastparser": [200, 200],
}
"""What the second and the third poll of an unchanged feed are answered with."""


async def test_a_reader_has_every_entry_once_and_polls_cheaply(
    proxy_of_readers: Server, origin: Origin, reader: Reader
) -> None:
    """The whole history arrives with the first poll; further ones bring nothing, and the same bytes."""
    expected = publish_chain(origin, archives=29, entries=10)
    url = origin.url("/feed")
    await reader.subscribe(proxy_of_readers.feed(url))
    assert sorted(await reader.titles()) == sorted(expected)
    before = await proxy_of_readers.served.get(url)
    async with proxy_of_readers.asked(url) as statuses:
        await reader.poll()
        await reader.poll()
    assert statuses == POLLS_AGAIN[reader.name]
    assert sorted(await reader.titles()) == sorted(expected)
    after = await proxy_of_readers.served.get(url)
    assert (before.headers["ETag"], before.body) == (after.headers["ETag"], after.body)


async def test_a_new_entry_arrives_beside_the_history(
    proxy_of_readers: Server, origin: Origin, reader: Reader
) -> None:
    """A poll after the publisher has written brings the new entry, and takes and doubles none."""
    expected = publish_chain(origin, archives=3, entries=2)
    url = origin.url("/feed")
    await reader.subscribe(proxy_of_readers.feed(url))
    held = [an_item("new", 100), *(an_item(name, 8 - n) for n, name in enumerate(expected[:2]))]
    origin.publish("/feed", atom(*held, updated=100, prev_archive="/archive/3"))
    await proxy_of_readers.refreshed(url)
    await reader.poll()
    assert sorted(await reader.titles()) == sorted(["new", *expected])


async def test_gpodder_keeps_200_episodes_unless_it_is_told_otherwise(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path
) -> None:
    """`limit.episodes` is 200 where nobody has changed it: the newest stay."""
    expected = publish_chain(origin, archives=29, entries=10)
    gpodder = installed(GpodderAsInstalled, tmp_path)
    await gpodder.subscribe(proxy_of_readers.feed(origin.url("/feed")))
    assert sorted(await gpodder.titles()) == sorted(expected[:200])
