"""The known feeds, some at a time: their heads together may be more than fits in memory.

listing = await listed(store, words="example.org", by_url=False, number=1)      # what a page shows
async for some in every_feed(store): ...                                        # all of them
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import feeds

FEEDS_PER_PART: Final = 100


async def every_feed(store: Store) -> AsyncIterator[list[FeedRow]]:
    """Give the known feeds by URL, those that are published.

    One that comes or goes meanwhile may move another to or fro: that one is given twice or not at all.
    """
    offset = 0
    while rows := await store.read(lambda db: feeds.list_feeds(db, FEEDS_PER_PART, offset)):  # noqa: B023 - awaited
        yield [row for row in rows if row.digest]
        offset += len(rows)


@dataclass(frozen=True, slots=True)
class Listing:
    """One part of the known feeds."""

    feeds: tuple[FeedRow, ...]
    total: int
    """How many feeds there are with those words."""
    number: int
    """Which part this is, from 1 on."""

    @property
    def parts(self) -> int:
        """How many parts there are; at least 1."""
        return max(1, -(-self.total // FEEDS_PER_PART))


async def listed(store: Store, *, words: str, by_url: bool, number: int) -> Listing:
    """Return the feeds whose URL holds the words, in any case; the last part where that one is not there.

    Args:
        store: What is stored.
        words: Empty: all feeds.
        by_url: Sorted by URL; else those asked for last come first.
        number: Which part, from 1 on.
    """

    async def part(wanted: int) -> Listing:
        first = (wanted - 1) * FEEDS_PER_PART
        found, total = await store.read(
            lambda db: feeds.search(db, words, by_url=by_url, limit=FEEDS_PER_PART, offset=first)
        )
        return Listing(tuple(found), total, wanted)

    asked = await part(number)
    return asked if asked.number <= asked.parts else await part(asked.parts)
