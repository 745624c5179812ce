"""The newest N of a feed are the newest N, including remembered and late entries (R10, R20)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.postgres import on_both
from tests.running import Proxy

pytestmark = on_both

DAY = 90_000
HELD = 10
"""Entries in a document."""


def numbers(body: bytes) -> list[int]:
    return [int(each) for each in re.findall(rb"<id>urn:(\d+)</id>", body)]


def publish(origin: Origin, kind: str, posts: int) -> None:
    newest = range(posts, 0, -1)
    if kind == "archived":
        archives = posts // HELD
        for number in range(1, archives + 1):
            older = f"/archive/{number - 1}" if number > 1 else None
            held = range(HELD * number, HELD * (number - 1), -1)
            put(origin, f"/archive/{number}", held, archive=True, prev_archive=older, current="/feed")
        put(origin, "/feed", newest[:HELD], prev_archive=f"/archive/{archives}")
    elif kind == "paged":
        for start in range(0, posts, HELD):
            behind = f"/page/{start + HELD}" if start + HELD < posts else None
            put(origin, f"/page/{start}" if start else "/feed", newest[start : start + HELD], next=behind)
    else:
        put(origin, "/feed", newest[:HELD])


def put(origin: Origin, path: str, posts: Sequence[int], **said: Any) -> None:
    held = [an_item(str(post), post) for post in posts]
    origin.publish(path, atom(*held, updated=max(posts), **said))


@pytest.mark.parametrize("kind", ["archived", "paged", "plain"])
async def test_the_newest_entries_come_first_after_any_pause(proxy: Proxy, origin: Origin, kind: str) -> None:
    """R10, R20: a remembered entry stands where its archive or page has it, else by its date.

    `limit` and `answer_bytes` give the newest, and an inner page of `pages` does not change.
    """
    url, before, pages = origin.url("/feed"), set[int](), dict[int, bytes]()
    publish(origin, kind, 30)
    await proxy.whole(url)
    before |= set(range(30, 30 - HELD, -1))
    for posts in (40, 65, 66, 77, 90, 118):
        publish(origin, kind, posts)
        body = (await proxy.refreshed(url)).body
        proxy.clock.advance(DAY)
        before |= set(range(posts, posts - HELD, -1))
        have = sorted(before if kind == "plain" else range(1, posts + 1), reverse=True)
        assert numbers(body) == have
        assert numbers((await proxy.get(url, limit="30")).body) == have[:30]
        cut = numbers((await proxy.get(url, answer_bytes="4000")).body)
        assert 5 < len(cut) < len(have)
        assert cut == have[: len(cut)]
        if kind != "plain":
            page = (await proxy.get(url, pages="10", page="2")).body
            assert pages.setdefault(2, page) == page


async def test_an_entry_that_only_the_publisher_left_out_stands_by_its_date(
    proxy: Proxy, origin: Origin
) -> None:
    """R20: an entry that left the middle of the subscription document is not behind older ones."""
    url = origin.url("/feed")
    put(origin, "/feed", [9, 8, 7, 6])
    await proxy.whole(url)
    put(origin, "/feed", [10, 9, 7, 6])
    assert numbers((await proxy.refreshed(url)).body) == [10, 9, 8, 7, 6]
    put(origin, "/feed", [12, 11, 10, 9])
    assert numbers((await proxy.refreshed(url)).body) == [12, 11, 10, 9, 8, 7, 6]


async def test_a_pinned_entry_moves_nothing_far(proxy: Proxy, origin: Origin) -> None:
    """R20: an entry held by no document stands behind newer pages, although page 1 has an older one."""
    url = origin.url("/feed")
    put(origin, "/feed", [20, 19, 1], next="/2")
    put(origin, "/2", [18, 17], next="/3")
    put(origin, "/3", [16, 15], next="/4")
    put(origin, "/4", [14, 13])
    await proxy.whole(url)
    put(origin, "/feed", [23, 22, 1], next="/2")
    put(origin, "/2", [21, 20], next="/3")
    put(origin, "/3", [19, 18], next="/4")
    body = (await proxy.refreshed(url)).body
    assert numbers(body) == [23, 22, 1, 21, 20, 19, 18, 17, 16, 15, 14, 13]
