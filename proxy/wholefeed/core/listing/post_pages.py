"""Tell posts from other pages of a site (H10).

    kind = PostKind.learn(own_pages, other_pages, feed)     # None: they do not differ
    kind.is_post(page)

A theme writes each post into the same elements. They are on all pages of the feed's entries, and neither on
the front page nor on lists and pages of the menu.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from wholefeed.core.listing.lists import ListedFeedEntries, plain
from wholefeed.core.listing.page_reading import ListPage
from wholefeed.core.text.dates import DAY_SECONDS


class PostFacts(NamedTuple):
    title: str
    """Empty where pages have other titles than the feed."""
    at: float
    """Publication, epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostKind:
    parts: frozenset[int]
    is_titled: bool
    most_links: int
    """Links with paths like entries' in one page; a list has more."""

    @classmethod
    def learn(
        cls, own: Mapping[str, ListPage], others: Iterable[ListPage], feed: ListedFeedEntries
    ) -> Self | None:
        """Learn from two or three pages of the feed's entries, by key; None: they differ in nothing.

        They have to say their days, unlike pages of a manual.
        """
        pages = list(own.values())
        parts = pages[0].parts.intersection(*(page.parts for page in pages[1:]))
        for page in others:
            parts -= page.parts
        if not parts or not all(says_day(page, feed.dates.get(key)) for key, page in own.items()):
            return None
        return cls(
            parts=parts,
            is_titled=all(plain(page.title) == feed.titles.get(key, "") for key, page in own.items()),
            most_links=max(count_entries(page, feed) for page in pages),
        )

    def read_post(self, page: ListPage, feed: ListedFeedEntries, *, is_told: bool) -> PostFacts | None:
        """Return a post's facts; None: the page is no post's. `is_told`: its path is a post's."""
        share = _TOLD_SHARE if is_told else _LEAST_SHARE
        if page.at is None or share * len(self.parts) > len(self.parts & page.parts):
            return None
        if count_entries(page, feed) > 2 * self.most_links + _FREE_LINKS:
            return None
        return self.facts_of(page)

    def facts_of(self, page: ListPage) -> PostFacts:
        assert page.at is not None, "pages of posts say their days"
        return PostFacts(page.title if self.is_titled else "", page.at)


_LEAST_SHARE: Final = 0.75
"""Share of the common elements; old posts may lack a picture or tags."""
_TOLD_SHARE: Final = 0.4
_FREE_LINKS: Final = 5


def says_day(page: ListPage, at: float | None) -> bool:
    """Return whether a page says an instant's day, or the one before or behind."""
    return at is not None and page.at is not None and abs(page.at - at) <= 1.5 * DAY_SECONDS


def count_entries(page: ListPage, feed: ListedFeedEntries) -> int:
    """Count links like entries', except in menus."""
    return len({link.key for link in page.links if not link.is_aside and feed.shape.fits(link.key)})
