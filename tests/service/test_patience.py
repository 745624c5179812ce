"""wholefeed.service.checking, by itself: for what answer it waits, and how much it asks at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import cast

import pytest

from tests.service.snapshots import a_snapshot, hold, url_of
from wholefeed.config.tables import LimitsConfig
from wholefeed.service.checking import PATIENCE_SECONDS, Checks
from wholefeed.service.memory import Memory
from wholefeed.store.store import Store
from wholefeed.store.tables.feeds import Version, version_of

DOUBTED = 2500


class AStore:
    """A database that others change, and that answers in no time."""

    is_shared = True

    def __init__(self) -> None:
        self.asked = list[Collection[int]]()
        self.found = dict[int, Version]()
        self.lost: Callable[[], None] = lambda: None

    def on_replaced(self, callback: Callable[[], None]) -> None:
        """Nothing takes its place."""

    def on_lost(self, callback: Callable[[], None]) -> None:
        self.lost = callback

    async def versions(self, feeds: Collection[int]) -> Mapping[int, Version]:
        self.asked.append(feeds)
        await asyncio.sleep(0.001)
        return self.found


def checks_on(store: AStore, memory: Memory) -> Checks:
    return Checks(cast(Store, store), memory, LimitsConfig())


@pytest.mark.fault("104a")
async def test_a_loop_that_is_late_is_not_taken_for_a_silent_database() -> None:
    """What another replica has changed is let go of, however late the answer is seen."""
    memory = Memory(1 << 20)
    hold(memory, a_snapshot(1))
    checks = checks_on(AStore(), memory)
    checking = asyncio.create_task(checks.check(url_of(1)))
    await asyncio.sleep(0)
    time.sleep(PATIENCE_SECONDS + 0.1)
    await checking
    assert memory.look(url_of(1)) is None
    assert not checks.are_blind


@pytest.mark.fault("108")
async def test_what_may_have_changed_is_looked_at_in_parts() -> None:
    """However much is held, no query is so long that the server ends it; what has not changed stays."""
    memory, store = Memory(1 << 30), AStore()
    for feed in range(1, DOUBTED + 1):
        hold(memory, a_snapshot(feed))
        store.found[feed] = version_of(a_snapshot(feed).feed)
    del store.found[DOUBTED]
    checks = checks_on(store, memory)
    store.lost()
    async with asyncio.timeout(10):
        while memory.usage.feeds == DOUBTED:
            await asyncio.sleep(0.01)
    await checks.close()
    assert [len(feeds) for feeds in store.asked] == [1000, 1000, 500]
    assert memory.usage.feeds == DOUBTED - 1
