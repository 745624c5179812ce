"""Podcasts: enclosures that the publisher wrote as relative URLs lead to the publisher (R22)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.feeds import FH_NS, an_item, rss
from tests.origin import Origin
from tests.readers.conftest import READERS, installed
from tests.readers.harness import Reader, Server
from tests.readers.programs import Gpodder, Rss2email
from wholefeed.core.model import ATOM_NS

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The event loop that the proxy's process is read in."""

HEARING = [each for each in READERS if each is not Rss2email]
"""rss2email's mails name no enclosures unless it is told to."""


def rss_podcast(*numbers: int, base: str, links: str = "") -> bytes:
    """An RSS document whose enclosures are relative to its `xml:base`."""
    items = "".join(
        f"<item><title>n{n}</title><guid isPermaLink='false'>urn:n{n}</guid><link>/shows/{n}</link>"
        f"<pubDate>Sat, 0{n} Nov 2025 10:00:00 GMT</pubDate><description>show {n}</description>"
        f"<enclosure url='{n}.mp3' length='6' type='audio/mpeg'/></item>"
        for n in numbers
    )
    return (
        f"<rss version='2.0' xmlns:atom='{ATOM_NS}' xmlns:fh='{FH_NS}' xml:base='{base}'><channel>"
        f"<title>A show</title><link>/</link><description>Shows</description>{links}{items}</channel></rss>"
    ).encode()


def atom_podcast(*numbers: int, base: str, links: str = "") -> bytes:
    """The same in Atom."""
    entries = "".join(
        f"<entry><id>urn:n{n}</id><title>n{n}</title><updated>2025-11-0{n}T10:00:00Z</updated>"
        f"<link href='/shows/{n}'/><link rel='enclosure' type='audio/mpeg' length='6' href='{n}.mp3'/>"
        f"<summary>show {n}</summary></entry>"
        for n in numbers
    )
    return (
        f"<feed xmlns='{ATOM_NS}' xmlns:atom='{ATOM_NS}' xmlns:fh='{FH_NS}' xml:base='{base}'>"
        f"<id>urn:shows</id><title>A show</title><updated>2025-11-09T10:00:00Z</updated>"
        f"<author><name>Ann</name></author>{links}{entries}</feed>"
    ).encode()


def publish_podcast(origin: Origin, make: Callable[..., bytes]) -> dict[str, str]:
    """Publish four shows in two documents of different bases; return the enclosure of each title."""
    newer = '<atom:link rel="prev-archive" href="/2024/shows.xml"/>'
    older = '<fh:archive/><atom:link rel="current" href="/feed"/>'
    kind = "application/rss+xml" if make is rss_podcast else "application/atom+xml"
    origin.publish("/feed", make(4, 3, base="/audio/2025/", links=newer), content_type=kind)
    origin.publish("/2024/shows.xml", make(2, 1, base="old/", links=older), content_type=kind)
    places = {4: "/audio/2025/", 3: "/audio/2025/", 2: "/2024/old/", 1: "/2024/old/"}
    for number, place in places.items():
        origin.publish(f"{place}{number}.mp3", f"sound{number}", content_type="audio/mpeg")
    return {f"n{number}": origin.url(f"{place}{number}.mp3") for number, place in places.items()}


@pytest.mark.parametrize("make", [rss_podcast, atom_podcast])
@pytest.mark.parametrize("kind", HEARING, ids=[each.name for each in HEARING])
async def test_enclosures_and_links_lead_to_the_publisher(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path, kind: type[Reader], make: Callable[..., bytes]
) -> None:
    """Relative ones too, each by the base of its own document: most of these readers know no xml:base."""
    expected = publish_podcast(origin, make)
    reader = installed(kind, tmp_path)
    await reader.subscribe(proxy_of_readers.feed(origin.url("/feed")))
    found = await reader.entries()
    assert {each.title: each.enclosures for each in found} == {n: (url,) for n, url in expected.items()}
    assert {each.title: each.link for each in found} == {
        f"n{n}": origin.url(f"/shows/{n}") for n in range(1, 5)
    }


async def test_gpodder_downloads_the_whole_history(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path
) -> None:
    """Episodes are had from the publisher itself, the old ones too; the proxy is not asked for them."""
    expected = publish_podcast(origin, rss_podcast)
    gpodder = installed(Gpodder, tmp_path)
    await gpodder.subscribe(proxy_of_readers.feed(origin.url("/feed")))
    assert sorted(await gpodder.download()) == [b"sound1", b"sound2", b"sound3", b"sound4"]
    assert all(origin.requests_for(url.removeprefix(origin.url(""))) for url in expected.values())


def publish_episodes(origin: Origin, count: int) -> list[str]:
    """Publish a podcast in one document; return the titles."""
    held = [an_item(f"e{number}", number) for number in range(count, 0, -1)]
    document = re.sub(
        r"<guid isPermaLink='false'>urn:(\w+)</guid>",
        r"\g<0><enclosure url='/\1.mp3' length='6' type='audio/mpeg'/>",
        rss(*held, updated=count).decode(),
    )
    origin.publish("/feed", document, content_type="application/rss+xml")
    return sorted(item.name for item in held)


async def test_gpodder_has_all_episodes_through_pages(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path
) -> None:
    """G1: it goes from page to page to the oldest of 300 episodes, and has each once; of an unchanged feed it
    asks for the first page alone. What docs/readers.md warns of: once that has changed, its command line
    looks no further, and deletes what it has not seen."""
    expected = publish_episodes(origin, 300)
    url = origin.url("/feed")
    gpodder = installed(Gpodder, tmp_path)
    async with proxy_of_readers.asked(url) as statuses:
        await gpodder.subscribe(proxy_of_readers.feed(url, pages="40"))
    assert statuses == [200] * 7
    assert sorted(await gpodder.titles()) == expected
    async with proxy_of_readers.asked(url) as statuses:
        await gpodder.poll()
    assert statuses == [304]
    publish_episodes(origin, 301)
    await proxy_of_readers.refreshed(url)
    await gpodder.poll()
    assert len(await gpodder.titles()) == 61
