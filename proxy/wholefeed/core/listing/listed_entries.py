"""Date and name the entries of a list (H5)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from wholefeed.core.listing.joined_sources import ListedEntry, ListedPage
from wholefeed.core.listing.lists import LEAST, Item, ListedFeedEntries, ReadListPage, plain
from wholefeed.core.listing.page_dates import day_in, read_date, says_only_date
from wholefeed.core.listing.page_links import own_link
from wholefeed.core.listing.page_reading import ListPage, PageLink
from wholefeed.core.text.dates import DAY_SECONDS


class EntryMaker:
    def __init__(
        self, feed: ListedFeedEntries, now: float, had: Sequence[ListPage], *, is_ordered: bool
    ) -> None:
        self._feed = feed
        self._end = now + 2 * DAY_SECONDS
        self._is_ordered = is_ordered
        self._trusts = True
        self._names = _names_on(had, feed)
        self._labels: frozenset[str] = frozenset()
        """Texts of links that are no titles ("12 notes"), without their digits."""
        self._dates_name = False
        """Whether titles of the feed are dates."""

    def list_pages(self, pages: Sequence[ReadListPage]) -> tuple[ListedPage, ...]:
        """Put undated entries between their neighbours."""
        items = [item for page in pages for item in page.items]
        self._trusts = self._feed.agrees(items)
        self._learn_names(items)
        made = [[self._entry(item, page.url) for item in page.items] for page in pages]
        if self._is_ordered:
            dates = iter(_between([entry.at for entries in made for entry in entries]))
            made = [
                [_date_entry(entry, at) for entry, at in zip(entries, dates, strict=False)]
                for entries in made
            ]
        else:
            made = [sorted(entries, key=lambda each: -(each.at or 0.0)) for entries in made]
        return tuple(
            ListedPage(url=page.url, entries=tuple(entries))
            for page, entries in zip(pages, made, strict=True)
        )

    def _learn_names(self, items: Sequence[Item]) -> None:
        """Find out which texts are no titles, from how often they come and from the feed's titles."""
        named = {item.link.text for item in items if self._is_named_by(item)}
        texts = Counter(_DIGITS.sub("", item.link.text) for item in items)
        often = max(LEAST, len(items) // 2)
        self._labels = frozenset(text for text, count in texts.items() if count >= often)
        self._labels -= {_DIGITS.sub("", text) for text in named}
        self._dates_name = any(map(says_only_date, named))

    def _is_named_by(self, item: Item) -> bool:
        return item.key in self._feed.titles and plain(item.link.text) == self._feed.titles[item.key]

    def _entry(self, item: Item, page_url: str) -> ListedEntry:
        link = item.link
        at, dated_by = self._feed.dates.get(item.key), "page"
        if at is None:
            at, dated_by = self._date(item, page_url)
        title = self._title(link, at)
        return ListedEntry(link=own_link(link.url), title=title, at=at, dated_by=dated_by)

    def _title(self, link: PageLink, at: float | None) -> str:
        """Return the text of a link, unless it is only the date, or one that most links have."""
        is_date = not self._dates_name and says_only_date(link.text)
        if is_date and link.at is not None and at is not None:
            is_date = abs(at - link.at) < 2 * DAY_SECONDS and _says_day(link.text, at)
        if is_date or _DIGITS.sub("", link.text) in self._labels:
            return self._names.get(link.key, link.heading)
        return link.text

    def _date(self, item: Item, page_url: str) -> tuple[float | None, str]:
        link = item.link
        said = [(link.at, link.dated_by)] if self._trusts else []
        own, around = day_in(link.url), day_in(f"{page_url.removesuffix('.html').rstrip('/')}/.")
        if own is not None:
            said.append((own.at, "url" if own.day else own.exactness))
        if around is not None:
            said.append((around.at, "month" if around.month else "year"))
        dates = [(at, by) for at, by in said if at is not None and 0.0 < at < self._end]
        return min(dates, key=lambda each: _EXACTNESS.index(each[1]), default=(None, ""))


_DIGITS: Final = re.compile(r"[0-9]+")


def _names_on(pages: Iterable[ListPage], feed: ListedFeedEntries) -> dict[str, str]:
    """Return texts by key, of links that stand where links with titles of the feed's entries do."""
    links = [link for page in pages for link in page.links if not link.is_aside]
    shapes = {link.shape for link in links if feed.titles.get(link.key, "") == plain(link.text) != ""}
    return {link.key: link.text for link in reversed(links) if link.shape in shapes and link.text}


def _says_day(text: str, at: float) -> bool:
    """Return whether a date is the day of an instant, or the one before or behind."""
    day = read_date(text, is_alone=True)
    said = day.at if day is not None else None
    return said is None or abs(said - at) < 2 * DAY_SECONDS


def _date_entry(entry: ListedEntry, at: float | None) -> ListedEntry:
    return entry if at is None else replace(entry, at=at, dated_by=entry.dated_by or "neighbour")


def _between(dates: Sequence[float | None]) -> list[float | None]:
    """Return dates, newest first, with those that lack put evenly between their neighbours.

    Below the last date, each is a second older than the one above.
    """
    made = list(dates)
    newer, start = None, 0
    for place, at in enumerate((*dates, None)):
        is_end = place == len(dates)
        if at is None and not is_end:
            continue
        count = place - start
        if count and newer is not None:
            step = (newer - at) / (count + 1) if at is not None and at <= newer else 1.0
            made[start:place] = [newer - step * number for number in range(1, count + 1)]
        newer, start = at, place + 1
    return made


_EXACTNESS: Final = ("page", "url", "month", "year")
