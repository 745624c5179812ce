"""All adapters. A new one is a module of its own, its tests, and a line here (docs/adapters.md)."""

from __future__ import annotations

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
    return next((adapter for adapter in ADAPTERS if adapter.fits(sight)), None)
