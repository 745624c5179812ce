"""What every refresh works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from wholefeed.config.tables import Config
from wholefeed.core.refresh.given import Settings
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.walk.limits import WalkLimits
from wholefeed.counts import Counts
from wholefeed.fetch.guard.addresses import host_pattern, is_matched
from wholefeed.fetch.memento import Archive
from wholefeed.service.documents.source import Source
from wholefeed.service.published import Published
from wholefeed.service.refresh.beginnings import Beginnings
from wholefeed.service.sharing.sharing import Alone, Sharing
from wholefeed.service.walk.pauses import HostPauses
from wholefeed.service.walk.turns import WalkTurns
from wholefeed.store.store import Store

_PARSED_SHARE: Final = 8
"""This part of the memory is for documents that are parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshContext:
    """The parts below the service, put together once."""

    store: Store
    source: Source
    config: Config
    site_of: Callable[[str], str]
    now: Callable[[], float]
    """Epoch seconds."""
    walks: WalkTurns
    """Of walks that use the network."""
    pauses: HostPauses = field(default_factory=HostPauses)
    """Of hosts that adapters leave in peace."""
    counts: Counts = field(default_factory=Counts)
    sharing: Sharing = field(default_factory=Alone)
    """Who else works on the store, and at what."""
    archive: Archive | None = None
    """The web archive that is asked for what publishers do not give (R33); None: none is."""
    longest_seconds: float = field(init=False)
    """How long a publisher is left alone at most, whatever the clock says (docs/faults.md row 73)."""
    settings: Settings = field(init=False)
    """What the configuration says about refreshes."""
    published: Published = field(init=False)
    """What is held of feeds, for their answers."""
    beginnings: Beginnings = field(init=False)
    """What is held of them for their refreshes."""

    def __post_init__(self) -> None:
        longest_seconds = max(self.config.freshness.maximum_seconds, DAY_SECONDS)
        object.__setattr__(self, "longest_seconds", longest_seconds)
        object.__setattr__(self, "settings", self._settings())
        max_bytes = self.config.store.memory_bytes
        parsed_bytes = max_bytes // _PARSED_SHARE
        object.__setattr__(self, "published", Published(max_bytes - parsed_bytes))
        object.__setattr__(self, "beginnings", Beginnings(self.published, parsed_bytes))

    def paused_until(self, url: str) -> float | None:
        """Return until when nothing is asked of a URL's host, epoch seconds; None where it may be asked."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        seconds = self.source.blocked_seconds(parts.hostname or "", port)
        return self.now() + seconds if seconds else None

    def _settings(self) -> Settings:
        config = self.config
        return Settings(
            minimum_fresh_seconds=config.freshness.minimum_seconds,
            default_fresh_seconds=config.freshness.default_seconds,
            maximum_fresh_seconds=config.freshness.maximum_seconds,
            retry_missing_seconds=config.freshness.retry_missing_seconds,
            follows_pages=config.history.paged,
            remembers=config.history.remember,
            looks_ahead=config.history.look_ahead,
            window=config.fetch.concurrency_per_host,
            walk_seconds=config.limits.walk_seconds,
            may_collect=self._may_collect,
            collect_paused_until=self.pauses.until,
            limits=WalkLimits(
                documents=config.limits.documents_per_feed,
                bytes=config.limits.feed_bytes,
                entries=config.limits.entries_per_feed,
            ),
        )

    def _may_collect(self, url: str) -> bool:
        history = self.config.history
        if history.collect == "off" or not history.collect_deny_hosts:
            return history.collect != "off"
        host = urlsplit(url).hostname or ""
        return not any(is_matched(host, host_pattern(each)) for each in history.collect_deny_hosts)
