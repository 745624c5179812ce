"""What all refreshes of a service share: the parts below it, turns to walk, hosts that are left in peace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from wholefeed.config.tables import Config
from wholefeed.core.refresh.basis import Settings
from wholefeed.core.schedule import Times, poll_due_at, seconds_left
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.walk.chain import WalkLimits
from wholefeed.counts import Counts
from wholefeed.fetch.guard import host_pattern, is_matched
from wholefeed.fetch.publishers import NO_PUBLISHERS, Publishers
from wholefeed.fetch.web_archive import Archive
from wholefeed.service.memory import Memory
from wholefeed.service.sharing import Sharing
from wholefeed.service.sources import Source
from wholefeed.store.rows import FeedRow, FeedSummary
from wholefeed.store.store import Store

MAX_HOSTS: Final = 4096
"""So many are remembered, those that were paused last."""


class HostPauses:
    """Hosts that have asked not to be asked for pages that they do not link (rule R32).

    What is forgotten with it is known of each feed all the same.
    """

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, float]] = {}
        """When that was noted, and until when they are left in peace."""

    def pause(self, url: str, until: float, *, now: float) -> None:
        """Leave the host of a URL in peace until then, epoch seconds."""
        host = urlsplit(url).hostname or ""
        self._until.pop(host, None)
        if len(self._until) >= MAX_HOSTS:
            del self._until[next(iter(self._until))]
        self._until[host] = now, until

    def lasts(self, url: str, *, now: float) -> bool:
        """Whether the host of a URL is left in peace still."""
        noted_at, until = self._until.get(urlsplit(url).hostname or "", (None, None))
        return seconds_left(noted_at, until, now=now, longest_seconds=DAY_SECONDS) > 0


class WalkTurns:
    """Whose walk may use the network: so many at once in all, and at one site (`wholefeed.fetch.base`).

    A walk can last as long as `limits.walk_seconds`, and its publisher decides how long it does. Without a
    bound for each site, one slow publisher of many feeds would keep all others waiting.

        turns = WalkTurns(in_all=16, per_site=8)
        async with turns.turn("example.org"):
            ...
    """

    def __init__(self, *, in_all: int, per_site: int) -> None:
        self._in_all = asyncio.Semaphore(in_all)
        self._per_site = per_site
        self._sites: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """Of the sites that walk or wait."""

    def __len__(self) -> int:
        """Return how many sites walk or wait."""
        return len(self._sites)

    @asynccontextmanager
    async def turn(self, site: str) -> AsyncIterator[None]:
        """Hold a turn, first come first served; who waits for a turn at a site holds none in all."""
        own = self._sites.get(site)
        if own is None:
            own = self._sites[site] = asyncio.Semaphore(self._per_site)
        async with own, self._in_all:
            yield


@dataclass(slots=True, kw_only=True)
class RefreshContext:
    """What every refresh of a service works with: the parts below the service, put together once."""

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
    sharing: Sharing = field(default_factory=Sharing)
    """Who else works on the store, and at what."""
    is_polling: bool = False
    """Whether feeds are polled (R7): while that goes on, and not by who only reads what is stored."""
    has_planned_look: bool = False
    """Whether a refresh has planned a look at its publisher's pages, since somebody has asked (H8)."""
    publishers: Publishers = NO_PUBLISHERS
    """What some of them want."""
    archive: Archive | None = None
    """The web archive that is asked for what publishers do not give (R33); None: none is."""
    longest_seconds: float = field(init=False)
    """How long a publisher is left alone at most, whatever the clock says (docs/faults.md row 73)."""
    settings: Settings = field(init=False)
    """What the configuration says about refreshes."""
    memory: Memory = field(init=False)
    """What is held of feeds."""

    def __post_init__(self) -> None:
        self.longest_seconds = max(self.config.freshness.maximum_seconds, DAY_SECONDS)
        self.settings = self._settings()
        self.memory = Memory(self.config.store.memory_bytes)

    async def find(self, url: str) -> FeedRow | None:
        """Return the feed that a URL leads to, as the store has it; None where it may not lead there (A3).

        That it once did is kept: what it leads to may have become private since.
        """
        feed = await self.store.find(url)
        return None if feed is None or self.publishers.are_apart(url, feed.url) else feed

    def fresh_seconds_left(self, feed: FeedRow, now: float) -> float:
        """Return for how long a feed needs no look at its publisher; 0: it is due."""
        return seconds_left(feed.noted_at, feed.fresh_until, now, self.longest_seconds)

    def poll_at(self, feed: FeedRow | FeedSummary) -> float | None:
        """Return from when on a feed is polled, epoch seconds; None: nobody polls it."""
        if not self.is_polling or feed.checked_at is None:
            return None
        noted_at, fresh_until = feed.noted_at or 0.0, feed.fresh_until or 0.0
        return poll_due_at(feed.checked_at, noted_at, fresh_until, self.poll_times)

    @property
    def poll_times(self) -> Times:
        """What decides whether a feed is polled now, beside the feed itself."""
        return Times(self.now(), self.config.history.poll_seconds, self.longest_seconds)

    def paused_until(self, url: str) -> float | None:
        """Return until when nothing is asked of a URL's host, epoch seconds; None where it may be asked."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        seconds = self.source.fetcher.gate.blocked_seconds(parts.hostname or "", port)
        return self.now() + seconds if seconds else None

    def may_list(self, url: str) -> bool:
        """Whether the pages of a URL's host may be looked at for lists (H1)."""
        history = self.config.history
        return history.list != "off" and not _names(history.list_deny_hosts, url)

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
            is_collect_paused=lambda url: self.pauses.lasts(url, now=self.now()),
            limits=WalkLimits(
                documents=config.limits.documents_per_feed,
                bytes=config.limits.feed_bytes,
                entries=config.limits.entries_per_feed,
            ),
        )

    def _may_collect(self, url: str) -> bool:
        history = self.config.history
        return history.collect != "off" and not _names(history.collect_deny_hosts, url)


def _names(hosts: Sequence[str], url: str) -> bool:
    """Whether a list of hosts names that of a URL."""
    host = urlsplit(url).hostname or ""
    return any(is_matched(host, host_pattern(each)) for each in hosts)
