"""Publishers with an ETag and Last-Modified that miss changes of their feed (rule R14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.feeds import an_item, atom, ids
from tests.origin import Origin
from tests.running import Clock, Proxy, a_config, running

CONDITIONS = ("if-none-match", "if-modified-since")
DAY = 86_400
IMPOSSIBLE = "Sat, 16 Nov 2041 19:11:00 GMT"


def publish(origin: Origin, *names: str, etag: str | None = None, last_modified: str | None = None) -> None:
    items = [an_item(name, len(names) - place) for place, name in enumerate(names)]
    origin.publish("/feed", atom(*items), etag=etag, last_modified=last_modified)


def publish_chain(origin: Origin, newest: str, oldest: str) -> None:
    """Publish documents with one constant tag."""
    origin.publish("/feed", atom(an_item(newest, 9), prev_archive="/2"), etag='"same"')
    for path, item, older in (("/2", "two", "/1"), ("/1", oldest, None)):
        origin.publish(path, atom(an_item(item, 1), archive=True, prev_archive=older), etag='"same"')


def conditional(origin: Origin, path: str = "/feed") -> list[bool]:
    """Return which requests had a condition; then forget all requests."""
    found = [any(name in each.headers for name in CONDITIONS) for each in origin.requests_for(path)]
    origin.forget_requests()
    return found


async def is_noted(proxy: Proxy, url: str) -> bool:
    return "ValidatorsDoubted" in [note["code"] for note in (await proxy.status(url))["notes"]]


@pytest.mark.fault("156")
@pytest.mark.parametrize(
    ("etag", "last_modified"),
    [
        (None, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (None, "Tue, 01 Jan 1980 00:00:00 GMT"),
        (None, "Sat, 26 Oct 1985 08:15:00 GMT"),
        (None, IMPOSSIBLE),
        ('""', None),
        ('"0"', None),
        ('W/""', None),
        ('"0"', "Thu, 01 Jan 1970 00:00:00 GMT"),
    ],
)
async def test_what_stands_for_nothing_is_never_sent(
    proxy: Proxy, origin: Origin, etag: str | None, last_modified: str | None
) -> None:
    """R14; docs/faults.md row 156: the newest entries are there at the next look, without a note."""
    url = origin.url("/feed")
    publish(origin, "a", etag=etag, last_modified=last_modified)
    await proxy.whole(url)
    publish(origin, "b", "a", etag=etag, last_modified=last_modified)
    assert ids((await proxy.later(url)).body) == ["b", "a"]
    assert conditional(origin) == [False, False]
    assert not await is_noted(proxy, url)


@pytest.mark.fault("156")
async def test_the_one_of_two_that_says_something_is_sent(proxy: Proxy, origin: Origin) -> None:
    """R14; docs/faults.md row 156: a tag beside an impossible date."""
    publish(origin, "a", etag='"1"', last_modified="Thu, 01 Jan 1970 00:00:00 GMT")
    await proxy.whole(origin.url("/feed"))
    await proxy.later(origin.url("/feed"))
    sent = origin.requests[-1].headers
    assert [sent.get(name) for name in CONDITIONS] == ['"1"', None]


@pytest.mark.fault("156")
async def test_what_an_earlier_version_has_stored_is_not_sent_either(tmp_path: Path, origin: Origin) -> None:
    """R14; docs/faults.md row 156: for the subscription document and for an archive document."""
    url, clock = origin.url("/feed"), Clock()
    publish_chain(origin, "a", "x")
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(url)
        feed = await proxy.store.feed_by_url(url)
        assert feed is not None
        for document in await proxy.store.documents(feed.id):
            await proxy.store.touch_document(document.id, etag='"0"', last_modified=IMPOSSIBLE)
    publish_chain(origin, "b", "x")
    async with running(a_config(tmp_path), clock) as proxy:
        assert ids((await proxy.later(url)).body) == ["b", "a", "two", "x"]
    assert origin.counts()["/feed"] == origin.counts()["/2"] == 2
    assert not any(name in each.headers for name in CONDITIONS for each in origin.requests)


@pytest.mark.fault("157")
async def test_a_feed_that_is_frozen_thaws_within_a_week(tmp_path: Path, origin: Origin) -> None:
    """R14; docs/faults.md row 157: across restarts; a note says that the feed is fetched whole, until its
    validators moved with the news twice."""
    url, clock = origin.url("/feed"), Clock()
    publish(origin, "a", etag='"same"')
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(url)
        publish(origin, "b", "a", etag='"same"')
        for _ in range(3):
            assert ids((await proxy.later(url, DAY + 1)).body) == ["a"]
    async with running(a_config(tmp_path), clock) as proxy:
        for _ in range(3):
            assert ids((await proxy.later(url, DAY + 1)).body) == ["a"]
        assert conditional(origin) == [False, *[True] * 6]
        assert not await is_noted(proxy, url)
        assert ids((await proxy.later(url, DAY + 1)).body) == ["b", "a"]
        assert conditional(origin) == [True, False]
        assert await is_noted(proxy, url)
    async with running(a_config(tmp_path), clock) as proxy:
        publish(origin, "c", "b", "a", etag='"same"')
        assert ids((await proxy.later(url)).body) == ["c", "b", "a"], "at the next look"
        assert await is_noted(proxy, url)
        publish(origin, "d", "c", etag='"1"')
        await proxy.later(url)
        assert await is_noted(proxy, url)
        publish(origin, "e", "d", etag='"2"')
        await proxy.later(url)
        assert not await is_noted(proxy, url)
        assert conditional(origin) == [False, False, False]
        await proxy.later(url)
        assert conditional(origin) == [True]


@pytest.mark.parametrize("full", [False, True])
async def test_a_person_s_refresh_asks_without_conditions(proxy: Proxy, origin: Origin, full: bool) -> None:
    """R14: for the subscription document, with full=1 for each document. A note reports news under the same
    tag."""
    url = origin.url("/feed")
    publish_chain(origin, "a", "old")
    await proxy.whole(url)
    publish_chain(origin, "b", "new")
    reply = await proxy.refreshed(url, full=full)
    assert {"b", "new" if full else "old"} <= set(ids(reply.body))
    assert conditional(origin) == [False, False]
    assert await is_noted(proxy, url)


async def test_a_refresh_that_finds_nothing_new_takes_the_validators(proxy: Proxy, origin: Origin) -> None:
    """R14; RFC 9111, 4.3.4: later requests for the same bytes bear the new tag."""
    url = origin.url("/feed")
    publish(origin, "a", etag='"1"')
    await proxy.whole(url)
    publish(origin, "a", etag='"2"')
    await proxy.refreshed(url)
    await proxy.later(url)
    assert origin.requests[-1].headers["if-none-match"] == '"2"'
    assert not await is_noted(proxy, url)
