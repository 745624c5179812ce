"""All known feeds, some at a time: their heads together may be more than fits in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import feeds

_AT_ONCE: Final = 100


async def every_feed(store: Store) -> AsyncIterator[list[FeedRow]]:
    """Give the known feeds by URL, those that are published.

    One that comes or goes meanwhile may move another to or fro: that one is given twice or not at all.
    """
    offset = 0
    while rows := await store.read(lambda db: feeds.list_feeds(db, _AT_ONCE, offset)):  # noqa: B023 - awaited
        yield [row for row in rows if row.digest]
        offset += len(rows)
