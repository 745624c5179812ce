"""wholefeed.service.background: an answer does not wait for what is noted beside it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

from wholefeed.core.compose.views import Warned
from wholefeed.service.background import AskedTimes
from wholefeed.store.opening import open_file
from wholefeed.store.rows import FeedRow
from wholefeed.store.sqlite_file import migrate_file


async def test_a_store_that_is_slow_does_not_keep_an_answer_waiting(tmp_path: Path) -> None:
    """That a reader was warned is noted later then; the answer leaves all the same."""
    path = tmp_path / "store.db"
    await migrate_file(path)
    values: dict[str, Any] = {each.name: 0 for each in fields(FeedRow)}
    feed = FeedRow(**{**values, "id": 1, "warning": Warned.UNSENT, "warned_at": 7.0})
    async with open_file(path) as store:
        busy = asyncio.create_task(store.write(lambda _: time.sleep(2)))
        await asyncio.sleep(0)
        began = time.monotonic()
        await AskedTimes(store, time.time).note_warned(feed)
        assert time.monotonic() - began < 1.5
        await busy
