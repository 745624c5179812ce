"""What the service says of a feed.

`Reconstruction` is a feed as it can be served now, `Status` what is known of it, `UnderWay` how far a refresh
of it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Self

from wholefeed.core.model import State
from wholefeed.core.refresh.listing_state import NOTHING_LISTED, ListingState
from wholefeed.core.refresh.stored import Attempt
from wholefeed.service.memory import CachedFeed
from wholefeed.store.rows import FeedRow, Overview, Snapshot


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """A feed as it can be served now. The segments of `snapshot` stay readable while it is held."""

    snapshot: Snapshot
    is_stale: bool
    held: CachedFeed | None = None
    """What is held in memory of this snapshot, if anything is."""
    in_time: Callable[[], AbstractAsyncContextManager[None]] = field(
        default=nullcontext, repr=False, compare=False
    )
    """Bounds what is read before the answer leaves, as the reading of this was: `OverloadedError` then."""

    @property
    def state(self) -> State:
        return self.snapshot.feed.visible_state

    @property
    def missing(self) -> tuple[Attempt, ...]:
        """What could not be had, when it was published."""
        return self.snapshot.missing

    @property
    def via_url(self) -> str:
        """The publisher's URL of the subscription document."""
        return self.snapshot.feed.via_url

    @property
    def feed(self) -> FeedRow:
        """The feed as it was last published."""
        return self.snapshot.feed

    def without_lists(self, documents: int = 0) -> Self:
        """Return the feed as it is without the lists in its publisher's pages, which these documents hold."""
        snapshot, feed = self.snapshot, self.feed
        if feed.listing == NOTHING_LISTED:
            return self
        state, missing = ListingState.read(feed.listing).without_lists(feed.state, snapshot.missing)
        entries = feed.entries - feed.listed
        feed = replace(feed, state=state, documents=feed.documents - documents, entries=entries, listed=0)
        return replace(self, snapshot=replace(snapshot, feed=feed, missing=missing))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """How far a refresh is; another replica's as that said in its lease at its last sign of life."""

    is_confirmed: bool = False
    """Whether the publisher has been heard of the subscription document."""
    is_walking: bool = False
    """Whether a walk runs; else the counts mean nothing."""
    documents: int = 0
    entries: int = 0
    fetched: int = 0
    left: int | None = None
    """Documents that probably follow; None: nobody knows."""
    seconds: float | None = None
    """Since the walk began to use the network; None: it does not."""

    def as_text(self) -> str:
        """Return what is kept in the lease."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Self:
        """Return what a lease tells: nothing yet, or from a replica of another version what is understood."""
        found = json.loads(text) if text else {}
        return cls(**{name: found[name] for name in cls.__dataclass_fields__ if name in found})


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a feed without fetching anything."""

    overview: Overview
    is_refreshing: bool
    """Whether the publisher is being asked."""
    progress: UnderWay
    """Of the walk; where none runs, what is stored."""
    paused_until: float | None
    """Until then nothing is asked of the publisher's host, epoch seconds; None: it may be asked."""
    list_at: float | None = None
    """When the publisher's pages are looked at next (H8), epoch seconds; None: never."""
    poll_at: float | None = None
    """When its publisher is asked next though nobody asks for it, at the earliest; None: not at all."""
    elsewhere: UnderWay | None = None
    """How far another replica is with a refresh; None: none is at one."""

    @property
    def feed(self) -> FeedRow:
        """The feed as it was last published."""
        return self.overview.feed
