"""wholefeed.service.refresh: hosts that adapters leave in peace (R32), and a queue that is full."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.feeds import ids, publish_chain
from tests.origin import Origin
from tests.running import a_config, running
from wholefeed.errors import QueueFullError
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.politeness import HostGate, Slot
from wholefeed.service.refresh import MAX_HOSTS, HostPauses


def test_a_pause_holds_for_every_url_of_its_host() -> None:
    """R32: what one feed was told counts for all feeds of the host, and for no other host."""
    pauses = HostPauses()
    pauses.pause("https://blog.example.org/feed/", 5_000.0, now=1_000.0)
    assert pauses.lasts("http://blog.example.org:8080/category/a/feed/", now=4_999.0)
    assert not pauses.lasts("http://blog.example.org:8080/category/a/feed/", now=5_000.0)
    assert not pauses.lasts("https://example.org/feed/", now=1_000.0)


@pytest.mark.fault("115")
def test_a_pause_that_a_wrong_clock_has_noted_does_not_hold() -> None:
    """docs/faults.md row 115."""
    pauses = HostPauses()
    pauses.pause("https://blog.example.org/feed/", 5_000.0, now=1_000.0)
    assert not pauses.lasts("https://blog.example.org/feed/", now=900.0)


def test_no_more_hosts_are_remembered_than_there_is_room_for() -> None:
    """R32: a publisher of a million names takes no memory; the hosts that were paused last are known."""
    pauses = HostPauses()
    for number in range(MAX_HOSTS + 10):
        pauses.pause(f"https://n{number}.example.org/", 60.0, now=0.0)
    assert not pauses.lasts("https://n9.example.org/", now=0.0)
    assert pauses.lasts(f"https://n{MAX_HOSTS + 9}.example.org/", now=0.0)


class CrowdedGate(HostGate):
    """Has room in its queue for every other request."""

    asked = 0

    @asynccontextmanager
    async def slot(
        self, host: str, port: int, *, url: str, is_new: bool = False, at_most: int | None = None
    ) -> AsyncIterator[Slot]:
        self.asked += 1
        if self.asked % 2 == 0:
            raise QueueFullError("no room", url=url, retry_after_seconds=0.05)
        async with super().slot(host, port, url=url, is_new=is_new, at_most=at_most) as slot:
            yield slot


async def test_a_walk_waits_until_the_queue_has_room(tmp_path: Path, origin: Origin) -> None:
    """A walk that meets a full queue waits and ends complete, instead of taking it for a missing document."""
    queue = CrowdedGate(concurrency=32, per_host=4)
    expected = publish_chain(origin, archives=2)
    async with running(a_config(tmp_path), open_fetcher=partial(Fetcher.open, gate=queue)) as proxy:
        reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", expected)
    assert queue.asked > 3
