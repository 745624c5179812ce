"""The parts that all refreshes share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
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
"""Beyond that, the oldest pause is forgotten."""


class HostPauses:
    """Hosts that refused requests for unlinked pages (R32).

    Forgetting one is harmless: each feed stores its own pause.
    """

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, float]] = {}
        """Epoch seconds: noted at, paused until."""

    def pause(self, url: str, until: float, *, now: float) -> None:
        """Pause a URL's host until an instant in epoch seconds."""
        host = urlsplit(url).hostname or ""
        self._until.pop(host, None)
        if len(self._until) >= MAX_HOSTS:
            del self._until[next(iter(self._until))]
        self._until[host] = now, until

    def lasts(self, url: str, *, now: float) -> bool:
        noted_at, until = self._until.get(urlsplit(url).hostname or "", (None, None))
        return seconds_left(noted_at, until, now=now, longest_seconds=DAY_SECONDS) > 0


class WalkTurns:
    """Turns to use the network, limited in all and by site.

    Without the limit by site, one slow publisher of many feeds would block all others. Walks that no reader
    waits for have half of the turns at most.
    """

    def __init__(self, *, in_all: int, per_site: int) -> None:
        self._in_all = asyncio.Semaphore(in_all)
        self._in_background = asyncio.Semaphore(max(1, in_all // 2))
        self._per_site = per_site
        self._sites: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._sites)

    @asynccontextmanager
    async def turn(self, site: str, *, is_polled: bool = False) -> AsyncIterator[None]:
        """Hold a turn, first come first served; `is_polled`: no reader waits for it."""
        own = self._sites.get(site)
        if own is None:
            own = self._sites[site] = asyncio.Semaphore(self._per_site)
        async with AsyncExitStack() as stack:
            if is_polled:
                await stack.enter_async_context(self._in_background)
            await stack.enter_async_context(own)
            await stack.enter_async_context(self._in_all)  # one that waits for its site takes no turn in all
            yield


@dataclass(slots=True, kw_only=True)
class RefreshContext:
    """The parts below the service."""

    store: Store
    source: Source
    config: Config
    site_of: Callable[[str], str]
    now: Callable[[], float]
    """Epoch seconds."""
    walks: WalkTurns
    pauses: HostPauses = field(default_factory=HostPauses)
    counts: Counts = field(default_factory=Counts)
    sharing: Sharing = field(default_factory=Sharing)
    is_polling: bool = False
    """Whether this program polls feeds (R7)."""
    has_planned_look: bool = False
    """Whether a refresh has planned a look at pages (H8); `Lists` resets it."""
    publishers: Publishers = NO_PUBLISHERS
    archive: Archive | None = None
    """None: no web archive is searched (R33)."""
    longest_seconds: float = field(init=False)
    """Bounds pauses when the clock jumps (docs/faults.md row 73)."""
    settings: Settings = field(init=False)
    memory: Memory = field(init=False)

    def __post_init__(self) -> None:
        self.longest_seconds = max(self.config.freshness.maximum_seconds, DAY_SECONDS)
        self.settings = self._settings()
        self.memory = Memory(self.config.store.memory_bytes)

    async def find(self, url: str) -> FeedRow | None:
        """Return a URL's stored feed; None if the URL may not lead there (A3)."""
        feed = await self.store.find(url)  # the stored link stays: the feed may have become private since
        return None if feed is None or self.publishers.are_apart(url, feed.url) else feed

    def fresh_seconds_left(self, feed: FeedRow, now: float) -> float:
        """Return the seconds until a feed is due; 0: due."""
        return seconds_left(feed.noted_at, feed.fresh_until, now, self.longest_seconds)

    def poll_at(self, feed: FeedRow | FeedSummary) -> float | None:
        """Return a feed's next poll in epoch seconds; None: never."""
        if not self.is_polling or feed.checked_at is None:
            return None
        noted_at, fresh_until = feed.noted_at or 0.0, feed.fresh_until or 0.0
        return poll_due_at(feed.checked_at, noted_at, fresh_until, self.poll_times)

    @property
    def poll_times(self) -> Times:
        return Times(self.now(), self.config.history.poll_seconds, self.longest_seconds)

    def paused_until(self, url: str) -> float | None:
        """Return the end of a host's pause in epoch seconds; None: no pause."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        seconds = self.source.fetcher.gate.blocked_seconds(parts.hostname or "", port)
        return self.now() + seconds if seconds else None

    def may_list(self, url: str) -> bool:
        """Return whether lists may be searched at a URL's host (H1)."""
        return self.config.history.list != "off" and self.may_read_pages(url)

    def may_read_pages(self, url: str) -> bool:
        """Return whether pages of a URL's host may be read, for lists or texts (H1, T2)."""
        return not _names(self.config.history.list_deny_hosts, url)

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
    host = urlsplit(url).hostname or ""
    return any(is_matched(host, host_pattern(each)) for each in hosts)
