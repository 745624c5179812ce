"""Each reader gets a long history, once, and asks for no more of it than it must (docs/readers.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.feeds import an_item, atom, json_feed, publish_chain
from tests.origin import Origin
from tests.readers.conftest import installed
from tests.readers.harness import Reader, Server
from tests.readers.programs import (
    GpodderAsInstalled,
    Lemon24,
    Newsboat,
    Rss2emailFromNowOn,
    SfeedWithValidators,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The event loop that the proxy's process is read in."""

LATER_POLLS = {
    "newsboat": 304,
    "sfeed": 200,
    "rss2email": 304,
    "gpodder": 304,
    "lemon24/reader": 304,
    "feedparser": 304,
    "podcastparser": 200,
}
"""What the third poll of an unchanged feed is answered with. At its second one newsboat 2.21 sends no
validators, whoever is asked."""


def add_an_entry(origin: Origin, names: list[str], *, archives: int) -> None:
    """Have the publisher write "new", in front of what `publish_chain` has named."""
    held = [an_item("new", 1000), an_item(names[0], len(names)), an_item(names[1], len(names) - 1)]
    origin.publish("/feed", atom(*held, updated=1000, prev_archive=f"/archive/{archives}"))


async def test_a_reader_has_every_entry_once_and_polls_cheaply(
    proxy_of_readers: Server, origin: Origin, reader: Reader
) -> None:
    """The whole history arrives with the first poll; further ones bring nothing, and the same bytes."""
    expected = publish_chain(origin, archives=20, entries=10)
    url = origin.url("/feed")
    await reader.subscribe(proxy_of_readers.feed(url))
    assert sorted(await reader.titles()) == sorted(expected)
    before = await proxy_of_readers.served.get(url)
    async with proxy_of_readers.asked(url) as statuses:
        await reader.poll()
        await reader.poll()
    assert len(statuses) == 2
    assert statuses[-1] == LATER_POLLS[reader.name]
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
    add_an_entry(origin, expected, archives=3)
    await proxy_of_readers.refreshed(url)
    await reader.poll()
    assert sorted(await reader.titles()) == sorted(["new", *expected])


async def test_lemon24_reads_the_history_of_a_json_feed(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path
) -> None:
    """The one reader here that reads JSON Feed at all gets its pages as one document."""
    for page in range(1, 4):
        items = [an_item(f"e{page}{n}", 100 - 10 * page - n) for n in range(3)]
        head = {"next_url": origin.url(f"/{page + 1}.json")} if page < 3 else {}
        origin.publish(f"/{page}.json", json_feed(*items, **head), content_type="application/feed+json")
    lemon24 = installed(Lemon24, tmp_path)
    await lemon24.subscribe(proxy_of_readers.feed(origin.url("/1.json")))
    assert sorted(await lemon24.titles()) == [f"e{page}{n}" for page in range(1, 4) for n in range(3)]


async def test_a_json_feed_comes_to_every_reader_as_atom(
    proxy_of_readers: Server, origin: Origin, reader: Reader
) -> None:
    """F1, F2: readers that know XML only get all entries, with links and files, once."""
    items: list[Any] = [
        {
            "id": f"urn:{n}",
            "title": f"e{n}",
            "url": origin.url(f"/posts/{n}"),
            "content_html": f"<p>Text &amp; {n}</p>",
            "date_published": f"2024-01-{n:02}T00:00:00Z",
            "attachments": [{"url": origin.url(f"/{n}.mp3"), "mime_type": "audio/mpeg", "size_in_bytes": 9}],
        }
        for n in range(12, 0, -1)
    ]
    document = {"version": "https://jsonfeed.org/version/1.1", "title": "A feed", "items": items}
    origin.publish("/feed.json", json.dumps(document).encode(), content_type="application/feed+json")
    await reader.subscribe(proxy_of_readers.feed(origin.url("/feed.json"), **{"as": "atom"}))
    await reader.poll()
    entries = await reader.entries()
    assert sorted(each.title for each in entries) == sorted(f"e{n}" for n in range(1, 13))
    assert {each.link for each in entries} == {each["url"] for each in items}
    files = {each.enclosures for each in entries} - {()}
    assert files in (set(), {(each["attachments"][0]["url"],) for each in items}), "if it keeps files at all"


async def test_a_reader_with_a_cap_gets_the_newest_entries_that_fit(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path
) -> None:
    """`answer_bytes` in the URL: what does not fit is the oldest."""
    expected = publish_chain(origin, archives=9, entries=4)
    url = origin.url("/feed")
    newsboat = installed(Newsboat, tmp_path)
    await newsboat.subscribe(proxy_of_readers.feed(url, answer_bytes="4000"))
    found = await newsboat.titles()
    assert 5 < len(found) < len(expected)
    assert sorted(found) == sorted(expected[: len(found)])


async def test_gpodder_keeps_200_episodes_unless_it_is_told_otherwise(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path
) -> None:
    """`limit.episodes` is 200 where nobody has changed it; lifted later it waits for the feed to change."""
    expected = publish_chain(origin, archives=29, entries=10)
    url = origin.url("/feed")
    gpodder = installed(GpodderAsInstalled, tmp_path)
    await gpodder.subscribe(proxy_of_readers.feed(url))
    assert sorted(await gpodder.titles()) == sorted(expected[:200])
    await gpodder.keep_all()
    await gpodder.poll()
    assert len(await gpodder.titles()) == 200
    add_an_entry(origin, expected, archives=29)
    await proxy_of_readers.refreshed(url)
    await gpodder.poll()
    assert sorted(await gpodder.titles()) == sorted(["new", *expected])


async def test_rss2email_can_be_told_to_mail_only_what_comes(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path
) -> None:
    """`r2e run --no-send`, once after subscribing, takes the history for seen."""
    expected = publish_chain(origin, archives=3, entries=2)
    url = origin.url("/feed")
    rss2email = installed(Rss2emailFromNowOn, tmp_path)
    await rss2email.subscribe(proxy_of_readers.feed(url))
    assert await rss2email.titles() == []
    add_an_entry(origin, expected, archives=3)
    await proxy_of_readers.refreshed(url)
    await rss2email.poll()
    assert await rss2email.titles() == ["new"]


async def test_sfeed_asks_with_validators_when_told_how(
    proxy_of_readers: Server, origin: Origin, tmp_path: Path
) -> None:
    """The `fetch` of docs/readers.md: 304 when nothing is new, the new entry when one is."""
    expected = publish_chain(origin, archives=3, entries=2)
    url = origin.url("/feed")
    sfeed = installed(SfeedWithValidators, tmp_path)
    await sfeed.subscribe(proxy_of_readers.feed(url))
    async with proxy_of_readers.asked(url) as statuses:
        await sfeed.poll()
    assert statuses == [304]
    assert sorted(await sfeed.titles()) == sorted(expected)
    add_an_entry(origin, expected, archives=3)
    await proxy_of_readers.refreshed(url)
    await sfeed.poll()
    assert sorted(await sfeed.titles()) == sorted(["new", *expected])
