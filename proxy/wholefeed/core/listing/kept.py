"""Bound the memory for the pages of a look (H9)."""

from __future__ import annotations

from typing import Final

from wholefeed.core.listing.lists import ListedFeedEntries
from wholefeed.core.listing.page_reading import ListPage, PageLink
from wholefeed.core.listing.ways import is_menu, leads_on

MOST_BYTES: Final = 12_000_000
"""The latest page and the results come on top."""
_LINK_BYTES: Final = 380  # per link and its place in a table, without texts; measured
_MOST_OF_MENU: Final = 50  # of a page
_TEXT_BYTES: Final = 100  # per text's place in a table
_PART_BYTES: Final = 64  # of an element of a page: a number, and its place in a table


class Keeping:
    """The pages of one look; shared links, as in menus, are stored once."""

    def __init__(self, feed: ListedFeedEntries) -> None:
        self._feed = feed
        self._room_bytes = MOST_BYTES
        self._links: dict[PageLink, PageLink] = {}
        self._texts: dict[str, str] = {}
        self._contents: dict[str, int] = {}
        """By page URL, a hash of its links and title."""

    @property
    def is_full(self) -> bool:
        return self._room_bytes <= 0

    @property
    def has_twins(self) -> bool:
        return len(self._contents) > len(set(self._contents.values()))

    def keep(self, page: ListPage) -> ListPage:
        """Return the page with links that may lead to entries or lists, cut at the limit."""
        self._contents[page.url] = hash((page.links, page.title))
        self._room_bytes -= _PART_BYTES * len(page.parts)
        links: list[PageLink] = []
        left = _MOST_OF_MENU
        for link in page.links:
            if self.is_full:
                return page._replace(links=tuple(links), is_cut=True)
            is_kept = self._feed.shape.fits(link.key) or link.key in self._feed.order or leads_on(link)
            if not is_kept and left and is_menu(link):
                left -= 1
                is_kept = True
            if is_kept:
                links.append(self._links.get(link) or self._share(link))
        return page._replace(links=tuple(links))

    def _share(self, link: PageLink) -> PageLink:
        own = link.url, link.key, link.text, link.shape, link.tail, link.heading
        url, key, text, shape, tail, heading = map(self._text, own)
        shared = link._replace(url=url, key=key, text=text, shape=shape, tail=tail, heading=heading)
        self._room_bytes -= _LINK_BYTES
        self._links[shared] = shared
        return shared

    def _text(self, text: str) -> str:
        if text not in self._texts:
            self._texts[text] = text
            self._room_bytes -= text.__sizeof__() + _TEXT_BYTES
        return self._texts[text]
