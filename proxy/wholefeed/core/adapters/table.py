"""All adapters. A new one is a class with tests, and a line here (docs/adapters.md)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from wholefeed.core.adapters.ascending import DiscourseTopics, Lemmy
from wholefeed.core.adapters.base import Adapter, Marks, Sight
from wholefeed.core.adapters.feedburner import COPIES
from wholefeed.core.adapters.numbered import Blogger, GitLab, Joomla, Redmine, Squarespace
from wholefeed.core.adapters.others import Discourse, GitHub, Mastodon, Reddit
from wholefeed.core.adapters.wordpress import WordPress
from wholefeed.core.model import Family

ADAPTERS: Final[tuple[Adapter, ...]] = (
    Blogger(),
    *COPIES,  # their generator is the source's, and they have no pages
    WordPress(),
    GitHub(),
    Discourse(),
    DiscourseTopics(),
    Reddit(),
    Mastodon(),
    Lemmy(),
    GitLab(),
    Joomla(),
    Squarespace(),
    Redmine(),
)


def find_adapter(feed_url: str, url: str, family: Family, site_id: str, marks: str) -> Adapter | None:
    """Return the adapter for a feed; None without evidence of any (R26)."""
    return _find_adapter(ADAPTERS, feed_url, url, family, site_id, marks)


@lru_cache(maxsize=1024)  # most refreshes of a feed see the same evidence
def _find_adapter(
    adapters: tuple[Adapter, ...], feed_url: str, url: str, family: Family, site_id: str, marks: str
) -> Adapter | None:
    sight = Sight(feed_url, url, family, site_id, Marks.read(marks))
    return next((adapter for adapter in adapters if adapter.fits(sight)), None)
