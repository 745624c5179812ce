"""All adapters. A new one is a module of its own, its tests, and a line here (docs/adapters.md)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from wholefeed.core.adapters.asking import Adapter, Sight
from wholefeed.core.adapters.blogger import Blogger
from wholefeed.core.adapters.discourse import Discourse
from wholefeed.core.adapters.github import GitHub
from wholefeed.core.adapters.mastodon import Mastodon
from wholefeed.core.adapters.wordpress import WordPress

ADAPTERS: Final[tuple[Adapter, ...]] = (
    WordPress(),
    GitHub(),
    Discourse(),
    Mastodon(),
    Blogger(),
)


def fitting(sight: Sight) -> Adapter | None:
    """Return the adapter for a feed; None: there is no evidence of any (R26)."""
    return _fitting(sight, ADAPTERS)


@lru_cache(maxsize=1024)  # what is seen of a feed is the same at most of its refreshes
def _fitting(sight: Sight, adapters: tuple[Adapter, ...]) -> Adapter | None:
    return next((adapter for adapter in adapters if adapter.fits(sight)), None)
