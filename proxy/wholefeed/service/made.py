"""Which URLs have come to lead to a feed lately: whoever found nothing before may find it now.

    before = made.count
    feed = ...                          # nothing, as of some moment in between
    if made.has_come(url, before):      # look again

With many readers of many new feeds each look takes long, and some feed is made in that time: to look again
because of any of them was most of what the database was asked.
"""

from __future__ import annotations

from typing import Final

MAX_MADE: Final = 4096
"""URLs that are remembered."""


class Made:
    """Belongs to one service."""

    def __init__(self) -> None:
        self.count = 0
        """How many feeds have been made, or were there already."""
        self._lately: dict[str, int] = {}
        """By URL, what `count` became; in that order."""
        self._forgotten = 0
        """What it was for the last one of those that are not remembered any more."""

    def note(self, *urls: str) -> None:
        """Take in that URLs may lead to a feed now."""
        self.count += 1
        for url in urls:
            self._lately.pop(url, None)
            self._lately[url] = self.count
        while len(self._lately) > MAX_MADE:
            self._forgotten = self._lately.pop(next(iter(self._lately)))

    def has_come(self, url: str, before: int) -> bool:
        """Whether a URL may lead to a feed that was made since `count` was that; -1: at any time."""
        return before < max(0, self._forgotten, self._lately.get(url, 0))
