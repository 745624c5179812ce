"""Recognise a list of a feed's entries, on one page and over several (H3, H5)."""

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
    """An entry of the subscription document; sequences run from its top."""

    link: str
    """Absolute; may be empty."""
    title: str
    at: float | None
    """Publication, epoch seconds."""


LEAST: Final = 3
"""Entries; fewer do not identify a list (H1)."""
NEWEST, OLDEST, SHUFFLED = "newest", "oldest", "shuffled"
_MOST_PINNED: Final = 20
_FEW_PINNED: Final = 3
"""More have to stand on top of every page, or below, too."""
_MIXED: Final = "*"
"""The shape of a list with entries in several positions."""
_DAYS: Final = 2 * DAY_SECONDS  # tolerance between dates of list and feed


@dataclass(frozen=True, slots=True)
class ListedFeedEntries:
    """The feed's entries, to compare lists with."""

    order: Mapping[str, int]
    """Places by `link_key`, newest first."""
    dates: Mapping[str, float]
    titles: Mapping[str, str]
    shape: PathShape
    links: tuple[str, ...]
    entries: int

    @classmethod
    def of(cls, entries: Sequence[FeedEntry], is_own: Callable[[str], bool]) -> Self:
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
        """Whether enough entries have their own links in the site."""
        return len(self.order) >= max(LEAST, self.least)

    @property
    def least(self) -> int:
        return -(-9 * self.entries // 10)

    def shapes_on(self, page: ListPage) -> frozenset[str]:
        return frozenset(link.shape for link in page.links if link.key in self.order)

    def has_met(self, keys: Iterable[str]) -> int:
        return len(self.order.keys() & set(keys))

    def is_met(self, keys: Iterable[str]) -> bool:
        return self.has_met(keys) >= max(LEAST, self.least)

    def begins(self, keys: Sequence[str], among: Container[str] | None = None) -> bool:
        """Return whether a list may begin so: the feed's entries in order, then older ones.

        `among`: all keys met, if `keys` are a part of the list.
        """
        met = [(place, key) for place, key in enumerate(keys) if key in self.order]
        if not met or not self._is_ordered([key for _, key in met]):
            return False
        among = {key for _, key in met} if among is None else among
        last = max(self.order[key] for _, key in met)
        # another key may stand in the place of a missing one: links of feeds and lists may differ
        lacking = sum(1 for key in islice(self.order, last) if key not in among)
        return met[-1][0] + 1 - len(met) <= lacking

    def count_pinned(self, items: Sequence[Item]) -> tuple[int, bool]:
        """Count entries above the feed's first; the flag tells whether they are few, and older by date."""
        among = {item.key for item in items}
        for count in range(min(_MOST_PINNED, len(items) // 2) + 1):
            if self.begins([item.key for item in items[count:]], among):
                newest = self.dates.get(items[count].key)
                dates = [self.date_of(item) for item in items[:count]]
                are_older = all(at is not None and newest is not None and at < newest for at in dates)
                return count, are_older and count <= _FEW_PINNED
        return 0, True

    def date_of(self, item: Item) -> float | None:
        """Return the feed's date, the one beside the link, or its URL's."""
        if item.key in self.dates:
            return self.dates[item.key]
        if item.link.dated_by == "page":
            return item.link.at
        day = day_in(item.link.url)
        return day.at if day is not None and day.day else None

    def is_dated(self, item: Item) -> bool:
        """Return whether a date, a month or a year stands by a link, or a day in its URL."""
        return item.link.at is not None or self.date_of(item) is not None

    def are_older(self, items: Iterable[Item]) -> bool:
        oldest = min(self.dates.values(), default=0.0) + _DAYS
        dates = (self.date_of(item) if item.link.at is None else item.link.at for item in items)
        return all(at is not None and at <= oldest for at in dates)

    def _is_ordered(self, keys: Sequence[str]) -> bool:
        """Return whether entries are newest first, in any order within a day."""
        for newer, older in pairwise(keys):
            if self.order[newer] > self.order[older]:
                dates = self.dates.get(newer), self.dates.get(older)
                if dates[0] is None or dates[1] is None or dates[1] - dates[0] >= DAY_SECONDS:
                    return False
        return True

    def verdict(self, keys: Sequence[str], pinned: Iterable[str] = ()) -> str:
        """Return a list's order, or a slug: why it is none."""
        if not self.is_met({*keys, *pinned}):
            return "feeds-entries-not-met"
        if self.begins(keys):
            return NEWEST
        return OLDEST if self.begins(keys[::-1]) else SHUFFLED

    def is_grouped(self, items: Sequence[Item]) -> bool:
        """Return whether a shuffled list is sorted by subject, with the feed's entries in order in each."""
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
        both = [
            (item.link.at, item.link.dated_by, self.dates[item.key])
            for item in items
            if item.link.at is not None and item.key in self.dates
        ]
        good = sum(1 for at, by, own in both if -_DAYS <= own - at <= _SPANS[by] + _DAYS)
        return 3 * good >= 2 * len(both)


def _is_part(link: str, parts: Mapping[str | None, int]) -> bool:
    """Return whether a link leads to a part of a page; some feeds have one fragment everywhere."""
    fragment = split(link).fragment
    return bool(fragment) and parts[fragment] == 1


_SPANS: Final = {"page": 0, "month": 31 * DAY_SECONDS, "year": 366 * DAY_SECONDS}


class Item(NamedTuple):
    key: str
    link: PageLink


@dataclass(frozen=True, slots=True)
class EntryList:
    """Links of one shape, with paths like entries'."""

    shape: str
    """`PageLink.shape`, and behind a colon the place in rows, if constant."""
    all_items: tuple[Item, ...]
    met: int
    titled: int
    texts: int
    dropped: frozenset[str]
    """Keys of links that are no entries."""
    tail: str

    @property
    def is_named(self) -> bool:
        return self.texts > 1 or len(self.all_items) < LEAST

    @property
    def items(self) -> list[Item]:
        """Each entry once, at its last place: a pinned entry also stands further down, by its date."""
        first = {item.key: item.link for item in reversed(self.all_items)}
        last = dict.fromkeys(item.key for item in reversed(self.all_items))
        return [Item(key, first[key]) for key in reversed(last)]

    @property
    def keys(self) -> list[str]:
        return [item.key for item in self.items]


def lists_on(page: ListPage, feed: ListedFeedEntries) -> list[EntryList]:
    shapes: dict[str, list[Item]] = {}
    for item in _items_on(page, feed):
        shapes.setdefault(item.link.shape, []).append(item)
    found = list[EntryList]()
    for shape, items in shapes.items():
        places = {item.link.place for item in items if item.key in feed.order}
        if len(places) == 1 and feed.has_met(item.key for item in items) > 1:
            found.append(_make_list(f"{shape}:{places.pop()}", items, feed))
        else:
            found.append(_make_list(shape, items, feed))
    met = feed.has_met(item.key for items in shapes.values() for item in items)
    if 10 * max((each.met for each in found), default=0) < 9 * met:  # posts of several types, some untitled
        found.append(_make_list(_MIXED, list(_items_on(page, feed)), feed))
    return sorted(found, key=lambda each: (-each.met, -each.titled, -each.texts))


def list_like(
    page: ListPage,
    feed: ListedFeedEntries,
    shape: str,
    tail: str = "",
    dropped: Container[str] = frozenset(),
) -> EntryList | None:
    """Return the list of this shape on a further page; in a part of a page, the one of this tail."""
    wanted = shape.partition(":")[0]
    items = [
        item
        for item in _items_on(page, feed)
        if item.key not in dropped
        and (wanted in (item.link.shape, _MIXED) or (page.is_part and _ends_like(tail, item.link.tail)))
    ]
    listed = _make_list(shape, items, feed)
    return listed if listed.all_items else None


def _ends_like(tail: str, part: str) -> bool:
    return bool(part) and tail.endswith(part)


def _items_on(page: ListPage, feed: ListedFeedEntries) -> Iterator[Item]:
    own = link_key(page.url)
    for link in page.links:
        if not link.is_aside and link.key != own and feed.shape.fits(link.key):
            yield Item(link.key, link)


def _make_list(shape: str, items: Sequence[Item], feed: ListedFeedEntries) -> EntryList:
    """Return a list without links beside its entries, such as categories, or behind them."""
    place = shape.partition(":")[2]
    found = _keep_continued([item for item in items if not place or item.link.place == int(place)], feed)
    kept = _drop_others(found, feed)
    return EntryList(
        shape,
        tuple(kept),
        feed.has_met(item.key for item in kept),
        len({item.key for item in kept if plain(item.link.text) == feed.titles.get(item.key)}),
        len({item.link.text for item in kept}),
        frozenset(item.key for item in found[len(kept) :]),
        kept[0].link.tail if kept else "",
    )


def _drop_others(items: list[Item], feed: ListedFeedEntries) -> list[Item]:
    """Drop links behind the feed's entries that are no entries ("more jobs", "upgrade notes").

    They have no dates where nine in ten of the feed's entries have some, or are fewer than those, in a row of
    their own, and not older.
    """
    own = [place for place, item in enumerate(items) if item.key in feed.order]
    if feed.has_met(items[place].key for place in own) < LEAST:
        return items
    end, last = len(items), own[-1]
    if 10 * sum(items[place].link.at is not None for place in own) >= 9 * len(own):
        while end > last + 1 and not feed.is_dated(items[end - 1]):
            end -= 1
        if end == len(items) - 1:  # a single one is a post without a date
            end = len(items)
    behind = items[last + 1 : end]
    blocks = {item.link.block for item in items[: last + 1]}
    is_apart = len(behind) < feed.entries and all(item.link.block not in blocks for item in behind)
    return items[:end] if not is_apart or feed.are_older(behind) else items[: last + 1]


def _keep_continued(items: list[Item], feed: ListedFeedEntries) -> list[Item]:
    """Drop items under other headings, unless older than the feed's entries."""
    # "Writing" and "Projects" look alike on a personal page; lists under years or months go on
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
    return _OTHERS.sub("", text.casefold())[:200]


_OTHERS: Final = re.compile(r"[\W_]+")


# A list over several pages


class ReadListPage(NamedTuple):
    url: str
    items: list[Item]


class ListRow:
    def __init__(self, listed: EntryList, feed: ListedFeedEntries) -> None:
        items = listed.items
        count, self._is_sure = feed.count_pinned(items)
        self.items = items[count:]
        """Without pinned ones."""
        self.pinned = items[:count]
        self.keys = [item.key for item in self.items]
        self.asked: set[str] = set()
        self.ends: dict[tuple[str, str], int] = {}
        """Highest page numbers, by surroundings."""
        self.has_named_next = False
        self._shape, self._tail, self._dropped = listed.shape, listed.tail, listed.dropped
        self._on_top: set[str] | None = None
        self._places = {key: place for place, key in enumerate(self.keys)}
        self._top = {item.key for item in (*listed.all_items[:TOPS], *self.pinned)}

    def join(self, page: ListPage, feed: ListedFeedEntries) -> list[Item] | None:
        """Return the page's new entries; None: not the next page.

        Known entries must be the last ones read, except pinned ones.
        """
        listed = list_like(page, feed, self._shape, self._tail, self._dropped)
        if listed is None:
            return None
        items, top = listed.items, set[str]()
        new = self._behind(items)
        while items and items[0].key in self._top and (new is None or new[0].key in self._top):
            top.add(items[0].key)
            items = items[1:]
            new = self._behind(items)
        if new is not None:
            self._on_top = top if self._on_top is None else self._on_top & top
        for item in new or ():
            self._places[item.key] = len(self.keys)
            self.keys.append(item.key)
        return new

    def _behind(self, items: list[Item]) -> list[Item] | None:
        known = 0
        if items and items[0].key in self._places:
            start = self._places[items[0].key]
            known = len(self.keys) - start
            if [item.key for item in items[:known]] != self.keys[start:]:
                return None
        new = items[known:]
        return None if not new or any(item.key in self._places for item in new) else new

    def has_page_behind(self, url: str) -> bool:
        """Return whether a page linked one of a higher number than this URL's."""
        return any(
            url.startswith(head) and number.isdecimal() and int(number) < last
            for (head, tail), last in self.ends.items()
            if (number := url[len(head) : len(url) - len(tail)]) and url.endswith(tail)
        )

    @property
    def are_pinned(self) -> bool:
        """Whether entries above the feed's are few and older, stand below, too, or on top of each page."""
        on_top = self._on_top or ()
        return self._is_sure or all(item.key in self._places or item.key in on_top for item in self.pinned)

    def all_pages(self, pages: list[ReadListPage]) -> list[ReadListPage]:
        """Return the pages, with pinned entries found nowhere else."""
        left = [item for item in self.pinned if item.key not in self._places]
        return [ReadListPage(pages[0].url, [*pages[0].items, *left]), *pages[1:]]


TOPS: Final = 5
"""Top entries that may be pinned."""
