"""wholefeed.service.service: an answer is of one publication, whatever becomes of the feed meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.store.rows import Snapshot
from wholefeed.web.keys import STORE


async def test_what_is_missing_is_of_the_publication_that_is_sent(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R16: a feed that heals while it is being read is told as it was: `partial` with what was missing."""
    publish_chain(origin, archives=3)
    origin.remove("/archive/2")
    url = origin.url("/feed")
    assert (await proxy.whole(url)).reconstruction.startswith("partial;documents=3;entries=")
    origin.publish("/archive/2", atom(an_item("healed", 2), archive=True, prev_archive="/archive/1"))
    read = proxy.store.snapshot
    has_healed: list[bool] = []

    @asynccontextmanager
    async def read_and_let_heal(feed_id: int) -> AsyncIterator[Snapshot]:
        async with read(feed_id) as snapshot:
            if not has_healed:
                has_healed.append(True)
                await proxy.service.refresh(url)
                await proxy.settled()
            yield snapshot

    monkeypatch.setattr(proxy.app[STORE], "snapshot", read_and_let_heal)

    async with proxy.service.answer(url, wait_seconds=1.0) as told:
        assert (told.state, len(told.missing)) == ("partial", 1)
    async with proxy.service.answer(url, wait_seconds=1.0) as told:
        assert (told.state, len(told.missing)) == ("complete", 0)
