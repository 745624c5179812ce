"""What a list of a feed's entries is, on one page and over several (H3, H5).

feed = Feed.of(entries, is_own)
[found] = lists_on(page, feed)[:1]
feed.verdict([item.key for item in found.items])       # newest, oldest, or why it is no list
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final, NamedTuple, Self

from wholefeed.core.listing.page_dates import day_in
from wholefeed.core.listing.page_links import PathShape, link_key
from wholefeed.core.listing.page_reading import ListPage, PageLink
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import split


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    """An entry of the subscription document; they are given from its top to its bottom."""

    link: str
    """Absolute; empty where it has none."""
    title: str
    at: float | None
    """Epoch seconds of its publication."""


LEAST: Final = 3
"""Entries of a feed, or of those that a list has: of fewer nothing tells which list is theirs (H1)."""
NEWEST, OLDEST, SHUFFLED = "newest", "oldest", "shuffled"
_MOST_PINNED: Final = 3
_DAYS: Final = 2 * DAY_SECONDS
"""The dates of a list and of the feed may be so far apart."""


@dataclass(frozen=True, slots=True)
class ListedFeedEntries:
    """What a list is held against."""

    order: Mapping[str, int]
    """The places of its entries by the keys of their links, the newest first."""
    dates: Mapping[str, float]
    titles: Mapping[str, str]
    shape: PathShape
    links: tuple[str, ...]
    """Of its entries."""
    entries: int
    """How many it has, with those that have no link of their own."""

    @classmethod
    def of(cls, entries: Sequence[FeedEntry], is_own: Callable[[str], bool]) -> Self:
        """Return it; `is_own` says whether a link is of the feed's site."""
        parts = Counter(split(each.link).fragment for each in entries)
        own = {
            link_key(each.link): each
            for each in entries
            if each.link and is_own(each.link) and not _is_part(each.link, parts)
        }
        is_dated = all(each.at is not None for each in own.values())
        ordered = (
            sorted(own.items(), key=lambda each: -(each[1].at or 0.0)) if is_dated else list(own.items())
        )
        return cls(
            {key: place for place, (key, _) in enumerate(ordered)},
            {key: each.at for key, each in ordered if each.at is not None},
            {key: plain(each.title) for key, each in ordered if each.title},
            PathShape.of(own),
            tuple(each.link for each in own.values()),
            len(entries),
        )

    @property
    def is_fit(self) -> bool:
        """Whether a list of it can be known: its entries have links of their own in its site."""
        return len(self.order) >= max(LEAST, self.least)

    @property
    def least(self) -> int:
        """How many of its entries have to be met: nine in ten."""
        return -(-9 * self.entries // 10)

    def shapes_on(self, page: ListPage) -> frozenset[str]:
        """Return how its entries stand on a page."""
        return frozenset(link.shape for link in page.links if link.key in self.order)

    def has_met(self, keys: Iterable[str]) -> int:
        """Return how many of its entries are there."""
        return len(self.order.keys() & set(keys))

    def is_met(self, keys: Iterable[str]) -> bool:
        """Whether enough of them are."""
        return self.has_met(keys) >= max(LEAST, self.least)

    def begins(self, keys: Sequence[str], among: Container[str] | None = None) -> bool:
        """Whether a list that goes on may begin so: with the feed's entries, in order, and then older ones.

        In the place of one that is not met another may stand: links of feeds and of lists are not always one.

        Args:
            keys: Of the list.
            among: Of all that was met, where the list is a part of it.
        """
        met = [(place, key) for place, key in enumerate(keys) if key in self.order]
        if not met or not self._is_ordered([key for _, key in met]):
            return False
        among = {key for _, key in met} if among is None else among
        last = max(self.order[key] for _, key in met)
        lacking = sum(1 for key in islice(self.order, last) if key not in among)
        return met[-1][0] + 1 - len(met) <= lacking

    def count_pinned(self, items: Sequence[Item]) -> int:
        """Return how many entries on top of a list stand further down by their dates."""
        for count in range(min(_MOST_PINNED, len(items) // 3) + 1):
            if self.begins([item.key for item in items[count:]]):
                newest = self.dates.get(items[count].key)
                dates = [self.date_of(item) for item in items[:count]]
                is_older = all(at is not None and newest is not None and at < newest for at in dates)
                return count if is_older else 0
        return 0

    def date_of(self, item: Item) -> float | None:
        """Return the day of an entry: the feed's, the one beside it, or its URL's."""
        if item.key in self.dates:
            return self.dates[item.key]
        if item.link.dated_by == "page":
            return item.link.at
        day = day_in(item.link.url)
        return day.at if day is not None and day.day else None

    def _is_ordered(self, keys: Sequence[str]) -> bool:
        """Whether its entries follow each other in time; those of one day in any order."""
        for newer, older in pairwise(keys):
            if self.order[newer] > self.order[older]:
                dates = self.dates.get(newer), self.dates.get(older)
                if dates[0] is None or dates[1] is None or dates[1] - dates[0] >= DAY_SECONDS:
                    return False
        return True

    def verdict(self, keys: Sequence[str], pinned: Iterable[str] = ()) -> str:
        """Return in which order a whole list is, or why it is none, as a slug."""
        if not self.is_met({*keys, *pinned}):
            return "feeds-entries-not-met"
        if self.begins(keys):
            return NEWEST
        return OLDEST if self.begins(keys[::-1]) else SHUFFLED

    def is_grouped(self, items: Sequence[Item]) -> bool:
        """Whether a shuffled list is one for all that: by subject, each with the feed's entries in order."""
        groups: dict[int, list[str]] = {}
        for item in items:
            groups.setdefault(item.link.group, []).append(item.key)
        if any(item.link.is_tabular for item in items):
            return False
        among = {item.key for item in items}
        if not all(
            self.begins(keys, among) or self.begins(keys[::-1], among)
            for keys in groups.values()
            if self.has_met(keys)
        ):
            return False
        return self.agrees(items)

    def agrees(self, items: Sequence[Item]) -> bool:
        """Whether the dates that a list gives to the feed's entries are theirs, two thirds of them."""
        both = [
            (item.link.at, item.link.dated_by, self.dates[item.key])
            for item in items
            if item.link.at is not None and item.key in self.dates
        ]
        good = sum(1 for at, by, own in both if -_DAYS <= own - at <= _SPANS[by] + _DAYS)
        return 3 * good >= 2 * len(both)


def _is_part(link: str, parts: Mapping[str | None, int]) -> bool:
    """Whether a link leads to a part of a page, as those of comments do; some feeds have one in all links."""
    fragment = split(link).fragment
    return bool(fragment) and parts[fragment] == 1


_SPANS: Final = {"page": 0, "month": 31 * DAY_SECONDS, "year": 366 * DAY_SECONDS}


class Item(NamedTuple):
    """An entry in a list."""

    key: str
    link: PageLink


@dataclass(frozen=True, slots=True)
class EntryList:
    """Links of a page that stand alike, and whose paths are those of entries."""

    shape: str
    """As `PageLink.shape`; behind a colon their place in their rows, where the feed's entries have one."""
    all_items: tuple[Item, ...]
    met: int
    """Entries of the feed."""
    titled: int
    """Those whose texts are their titles."""
    texts: int
    """How many different ones there are."""

    @property
    def is_named(self) -> bool:
        """Whether its texts are titles at all, and not "Continue reading"."""
        return self.texts > 1 or len(self.all_items) < LEAST

    @property
    def items(self) -> list[Item]:
        """Each once, where it stands last: what is pinned on top stands further down by its date, too."""
        first = {item.key: item.link for item in reversed(self.all_items)}
        last = dict.fromkeys(item.key for item in reversed(self.all_items))
        return [Item(key, first[key]) for key in reversed(last)]

    @property
    def keys(self) -> list[str]:
        """Of `items`."""
        return [item.key for item in self.items]


def lists_on(page: ListPage, feed: ListedFeedEntries) -> list[EntryList]:
    """Return what may be a list of a feed's entries on a page, the likeliest first."""
    shapes: dict[str, list[Item]] = {}
    for item in _items_on(page, feed):
        shapes.setdefault(item.link.shape, []).append(item)
    found = []
    for shape, items in shapes.items():
        places = {item.link.place for item in items if item.key in feed.order}
        if len(places) == 1 and feed.has_met(item.key for item in items) > 1:
            found.append(_make_list(f"{shape}:{places.pop()}", items, feed))
        else:
            found.append(_make_list(shape, items, feed))
    return sorted(found, key=lambda each: (-each.met, -each.titled, -each.texts))


def list_like(page: ListPage, feed: ListedFeedEntries, shape: str) -> EntryList | None:
    """Return what may be the list on a page whose links stand as those of another page's list do."""
    wanted = shape.partition(":")[0]
    items = [item for item in _items_on(page, feed) if item.link.shape == wanted]
    listed = _make_list(shape, items, feed)
    return listed if listed.all_items else None


def _items_on(page: ListPage, feed: ListedFeedEntries) -> Iterator[Item]:
    own = link_key(page.url)
    for link in page.links:
        if not link.is_aside and link.key != own and feed.shape.fits(link.key):
            yield Item(link.key, link)


def _make_list(shape: str, items: Sequence[Item], feed: ListedFeedEntries) -> EntryList:
    """Return the list; what stands beside its entries, a category or an author, is none of it."""
    place = shape.partition(":")[2]
    kept = _keep_continued([item for item in items if not place or item.link.place == int(place)], feed)
    return EntryList(
        shape,
        tuple(kept),
        feed.has_met(item.key for item in kept),
        len({item.key for item in kept if plain(item.link.text) == feed.titles.get(item.key)}),
        len({item.link.text for item in kept}),
    )


def _keep_continued(items: list[Item], feed: ListedFeedEntries) -> list[Item]:
    """Leave out what stands under other headings than the feed's entries and is not older than these.

    "Writing" and "Projects" stand alike on a person's page; lists under years or months go on.
    """
    met = {item.link.group for item in items if item.key in feed.order}
    if len(met) != 1 or feed.has_met(item.key for item in items) < LEAST:
        return items
    dates: dict[int, list[float]] = {}
    for item in items:
        at = feed.date_of(item) if item.link.at is None else item.link.at
        if at is not None:
            dates.setdefault(item.link.group, []).append(at)
    oldest = min(dates.get(next(iter(met)), ()), default=None)
    older = {group for group, ats in dates.items() if oldest is not None and max(ats) <= oldest + _DAYS}
    return [item for item in items if item.link.group in met | older]


def plain(text: str) -> str:
    """Return letters and digits of a text, to compare it by."""
    return _OTHERS.sub("", text.casefold())[:200]


_OTHERS: Final = re.compile(r"[\W_]+")


# A list over several pages


class ReadListPage(NamedTuple):
    """A page of a list that was read."""

    url: str
    items: list[Item]


class ListRow:
    """What was read of a list that goes on."""

    def __init__(self, listed: EntryList, feed: ListedFeedEntries) -> None:
        items = listed.items
        count = feed.count_pinned(items)
        self.items = items[count:]
        """Of its first page, without what is pinned on top."""
        self.pinned = items[:count]
        self.keys = [item.key for item in self.items]
        self.asked: set[str] = set()
        self._shape = listed.shape
        self._places = {key: place for place, key in enumerate(self.keys)}
        self._top = {item.key for item in (*listed.all_items[:TOPS], *self.pinned)}

    def join(self, page: ListPage, feed: ListedFeedEntries) -> list[Item] | None:
        """Return what a page adds; None: it is not the next one of the list.

        What is known of it must be the end of what was read, but for what is pinned on top of both.
        """
        listed = list_like(page, feed, self._shape)
        if listed is None:
            return None
        items = listed.items
        new = self._behind(items)
        while items and items[0].key in self._top and (new is None or new[0].key in self._top):
            items = items[1:]
            new = self._behind(items)
        for item in new or ():
            self._places[item.key] = len(self.keys)
            self.keys.append(item.key)
        return new

    def _behind(self, items: list[Item]) -> list[Item] | None:
        """Return what stands behind what is known."""
        known = 0
        if items and items[0].key in self._places:
            start = self._places[items[0].key]
            known = len(self.keys) - start
            if [item.key for item in items[:known]] != self.keys[start:]:
                return None
        new = items[known:]
        return None if not new or any(item.key in self._places for item in new) else new

    def all_pages(self, pages: list[ReadListPage]) -> list[ReadListPage]:
        """Return the pages with what is pinned, where it stands nowhere else."""
        left = [item for item in self.pinned if item.key not in self._places]
        return [ReadListPage(pages[0].url, [*pages[0].items, *left]), *pages[1:]]


TOPS: Final = 5
"""Entries on top of a page that may be pinned there."""
