"""What every refresh works with, and what one can be asked to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wholefeed.config.tables import Config
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.service.documents.source import Source
from wholefeed.service.documents.subscription import Subscription
from wholefeed.service.walk.turns import WalkTurns
from wholefeed.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """The parts below the service, put together once."""

    store: Store
    source: Source
    config: Config
    site_of: Callable[[str], str]
    now: Callable[[], float]
    """Epoch seconds."""
    walks: WalkTurns
    """Of walks that use the network."""

    @property
    def longest_seconds(self) -> float:
        """How long a publisher is left alone at most, whatever the clock says (docs/faults.md row 73)."""
        return max(self.config.freshness.maximum_seconds, DAY_SECONDS)


@dataclass(slots=True, kw_only=True)
class Wish:
    """What a refresh is asked to do beside the usual."""

    found: Subscription | None = None
    """The subscription document, when it has just been fetched; whoever stores it takes it out."""
    is_forced: bool = False
    """Try at once what failed before (R14)."""
    is_full: bool = False
    """Revalidate every document and take the publisher's chain for the truth (R14)."""
    may_walk: bool = True
    """Whether to walk; without, only the subscription document is fetched."""
    is_polled: bool = False
    """Whether no reader waits for it."""
