"""wholefeed.service.refresh: a full queue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tests.feeds import ids, publish_chain
from tests.origin import Origin
from tests.running import a_config, running
from wholefeed.errors import QueueFullError
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.politeness import HostGate, Slot


class CrowdedGate(HostGate):
    """A gate with room in its queue for every other request."""

    asked = 0

    @asynccontextmanager
    async def slot(
        self,
        host: str,
        port: int,
        *,
        url: str,
        is_new: bool = False,
        is_polled: bool = False,
        at_most: int | None = None,
    ) -> AsyncIterator[Slot]:
        self.asked += 1
        if self.asked % 2 == 0:
            raise QueueFullError("no room", url=url, retry_after_seconds=0.05)
        async with super().slot(
            host, port, url=url, is_new=is_new, is_polled=is_polled, at_most=at_most
        ) as slot:
            yield slot


async def test_a_walk_waits_until_the_queue_has_room(tmp_path: Path, origin: Origin) -> None:
    """The walk ends complete, and does not report a missing document."""
    queue = CrowdedGate(concurrency=32, per_host=4)
    expected = publish_chain(origin, archives=2)
    async with running(a_config(tmp_path), open_fetcher=partial(Fetcher.open, gate=queue)) as proxy:
        reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", expected)
    assert queue.asked > 3
