"""One part of the table of feeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from wholefeed.core.attention import FeedNeed, FeedTroubles, NeedWords, choose_needs, describe_need, find_need
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedLine
from wholefeed.store.tables import failures, feed_table
from wholefeed.store.tables.feed_table import ATTENTION, FeedSearch

FEEDS_PER_PART: Final = 100
_MOST_NEEDS: Final = 5
"""A search for `ATTENTION` describes all."""


class DescribedNeed(NamedTuple):
    feed: FeedLine
    words: NeedWords


class FeedListPage(NamedTuple):
    feeds: tuple[FeedLine, ...]
    total: int
    number: int
    """From 1."""
    known: int
    counts: Mapping[str, int]
    """Feeds with the words of the search by state; empty: any."""
    needs: tuple[DescribedNeed, ...]
    """The most urgent ones; in a search for `ATTENTION` those of `feeds`."""
    needing: int

    @property
    def parts(self) -> int:
        """Number of parts; at least 1."""
        return max(1, -(-self.total // FEEDS_PER_PART))


def read_list(db: Database, search: FeedSearch, number: int, now: float) -> FeedListPage:
    """Return a part, counted from 1; the last if `number` is too large."""
    counted = feed_table.count_found(db, search.words)
    troubles, needs = _find_needs(db, counted.readdressed, now)
    counts = {"": counted.found, **counted.by_state, ATTENTION: len(needs)}
    if search.words and needs:
        counts[ATTENTION] = feed_table.count_among(db, search.words, needs)
    page = FeedListPage((), counts.get(search.state, 0), number, counted.feeds, counts, (), len(needs))
    page = page._replace(number=min(number, page.parts))
    ids = feed_table.search(
        db,
        search,
        limit=FEEDS_PER_PART,
        offset=(page.number - 1) * FEEDS_PER_PART,
        among=needs if search.state == ATTENTION else None,
    )
    told = ids if search.state == ATTENTION else choose_needs(needs, _MOST_NEEDS)
    lines = {line.id: line for line in feed_table.read_lines(db, list(dict.fromkeys([*ids, *told])))}
    known = feed_table.find_known_urls(db, [troubles[feed].new_address for feed in told])
    described = [
        DescribedNeed(
            lines[feed],
            describe_need(
                troubles[feed],
                needs[feed],
                url=lines[feed].url,
                site=lines[feed].site,
                is_address_known=troubles[feed].new_address in known,
            ),
        )
        for feed in told
        if feed in lines
    ]
    return page._replace(feeds=tuple(lines[each] for each in ids if each in lines), needs=tuple(described))


def read_found(db: Database, search: FeedSearch, now: float) -> list[int]:
    among = None
    if search.state == ATTENTION:
        _, among = _find_needs(db, feed_table.count_found(db, "").readdressed, now)
    return feed_table.search(db, search, limit=_ALL, offset=0, among=among)


_ALL: Final = 1 << 40


def _find_needs(
    db: Database, readdressed: Iterable[int], now: float
) -> tuple[dict[int, FeedTroubles], dict[int, FeedNeed]]:
    troubles = failures.list_troubles(db, readdressed)
    found = ((feed, find_need(each, now)) for feed, each in troubles.items())
    return troubles, {feed: need for feed, need in found if need is not None}
