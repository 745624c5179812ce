"""The places of a feed's entries from one publication to the next (R20)."""

from __future__ import annotations

import pytest

from tests.feeds import an_item, atom, ids, own_ids
from tests.origin import Origin
from tests.postgres import on_both
from tests.running import Proxy
from wholefeed.service import storing

DAY = 90_000
HELD = 3
"""Entries in a document."""


def publish(origin: Origin, posts: int) -> None:
    """Publish an archived feed of this many posts."""
    archives = posts // HELD
    for number in range(1, archives + 1):
        older = f"/archive/{number - 1}" if number > 1 else None
        held = [an_item(str(post), post) for post in range(HELD * number, HELD * (number - 1), -1)]
        origin.publish(f"/archive/{number}", atom(*held, archive=True, prev_archive=older, current="/feed"))
    newest = [an_item(str(post), post) for post in range(posts, posts - HELD, -1)]
    origin.publish("/feed", atom(*newest, updated=posts, prev_archive=f"/archive/{archives}"))


@on_both
@pytest.mark.parametrize("is_full", [True, False])
async def test_a_feed_that_an_earlier_version_published_gets_its_order(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, *, is_full: bool
) -> None:
    """R20: by the next publication, and by a full refresh without news."""
    url, body = origin.url("/feed"), b""
    with monkeypatch.context() as earlier:
        earlier.setattr(storing, "read_order", lambda *_given, **_more: None)
        for posts in (7, 17):
            publish(origin, posts)
            await proxy.whole(url)
            proxy.clock.advance(DAY)
            body = (await proxy.refreshed(url)).body
        assert ids(body) != [str(post) for post in range(17, 0, -1)]
    newest = 17 if is_full else 18
    publish(origin, newest)
    body = (await proxy.refreshed(url, full=is_full)).body
    assert ids(body) == [str(post) for post in range(newest, 0, -1)]


@on_both
async def test_a_remembered_entry_stays_where_a_segment_behind_it_is_made_anew(
    proxy: Proxy, origin: Origin
) -> None:
    """R20, I2: the text of 7 is remembered, archive 4 gives it its place, and archive 1 has it, too.

    Archive 2 loses an entry, so its segment, shared with archive 1, cannot stay.
    """
    url = origin.url("/feed")

    def put(path: str, *posts: int, older: str | None = None) -> None:
        held = [an_item(str(post), post) for post in posts]
        is_archive = path != "/feed"
        origin.publish(path, atom(*held, updated=max(posts), archive=is_archive, prev_archive=older))

    put("/archive/1", 7, 2, 1)
    put("/archive/2", 4, 3, older="/archive/1")
    put("/archive/3", 6, 5, older="/archive/2")
    put("/feed", 8, 7, older="/archive/3")
    await proxy.whole(url)
    proxy.clock.advance(DAY)
    put("/archive/4", 8, 7, older="/archive/3")
    put("/feed", 10, 9, older="/archive/4")
    before = (await proxy.refreshed(url)).body
    reply = await proxy.ask("DELETE", "/feed", params={"url": url, "entry": "urn:4"})
    after = (await proxy.get(url)).body
    assert own_ids(before) == ["10", "9", "8", "7", "6", "5", "4", "3", "2", "1"]
    assert (reply.status, own_ids(after)) == (204, ["10", "9", "8", "7", "6", "5", "3", "2", "1"])
