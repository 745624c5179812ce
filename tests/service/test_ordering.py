"""Feeds that an earlier version has published, with what was remembered in front of all archives (R20)."""

from __future__ import annotations

import pytest

from tests.feeds import an_item, atom, ids
from tests.origin import Origin
from tests.postgres import on_both
from tests.running import Proxy
from wholefeed.service import storing

DAY = 90_000
HELD = 3
"""Entries in a document."""


def publish(origin: Origin, posts: int) -> None:
    """Publish an archived feed of so many posts."""
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
    """R20: by the next publication, and by a full refresh that brings nothing new."""
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
