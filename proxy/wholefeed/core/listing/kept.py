"""What a look keeps of the pages that it has had (H9).

keeping = Keeping(feed)
page = keeping.keep(page)           # with the links alone that may count
keeping.is_full                     # no more pages are of use
"""

from __future__ import annotations

from typing import Final

from wholefeed.core.listing.lists import ListedFeedEntries
from wholefeed.core.listing.page_reading import ListPage, PageLink
from wholefeed.core.listing.ways import leads_on

MOST_BYTES: Final = 12_000_000
"""Of memory, for all pages of a look: beside them stand the page that has just come, and what is found."""
_LINK_BYTES: Final = 350
"""Of a link and its place in a table, without its texts; measured."""
_TEXT_BYTES: Final = 100
"""Of the place of a text."""


class Keeping:
    """The pages of one look; what stands on several of them, as menus do, is kept once."""

    def __init__(self, feed: ListedFeedEntries) -> None:
        self._feed = feed
        self._room_bytes = MOST_BYTES
        self._links: dict[PageLink, PageLink] = {}
        self._texts: dict[str, str] = {}
        self._contents: dict[str, int] = {}
        """By the URLs of the pages, what tells their links from those of others."""

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more."""
        return self._room_bytes <= 0

    @property
    def has_twins(self) -> bool:
        """Whether two pages have the same links."""
        return len(self._contents) > len(set(self._contents.values()))

    def keep(self, page: ListPage) -> ListPage:
        """Return a page with its links that may count: to entries, or to where there may be more of them.

        It is cut where there is no room.
        """
        self._contents[page.url] = hash(page.links)
        links: list[PageLink] = []
        for link in page.links:
            if self.is_full:
                return page._replace(links=tuple(links), is_cut=True)
            if self._feed.shape.fits(link.key) or link.key in self._feed.order or leads_on(link):
                links.append(self._links.get(link) or self._share(link))
        return page._replace(links=tuple(links))

    def _share(self, link: PageLink) -> PageLink:
        url, key, text, shape = map(self._text, (link.url, link.key, link.text, link.shape))
        shared = link._replace(url=url, key=key, text=text, shape=shape)
        self._room_bytes -= _LINK_BYTES
        self._links[shared] = shared
        return shared

    def _text(self, text: str) -> str:
        if text not in self._texts:
            self._texts[text] = text
            self._room_bytes -= text.__sizeof__() + _TEXT_BYTES
        return self._texts[text]
