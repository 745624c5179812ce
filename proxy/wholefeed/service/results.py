"""A feed to serve, a feed's status, and a refresh's progress."""

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
    """A feed to serve now. Its segments stay readable within `FeedService.answer`."""

    snapshot: Snapshot
    is_stale: bool
    held: CachedFeed | None = None
    """This snapshot's cached feed, if any."""
    in_time: Callable[[], AbstractAsyncContextManager[None]] = field(
        default=nullcontext, repr=False, compare=False
    )
    """Limits reads before the answer leaves; raises `OverloadedError`."""

    @property
    def state(self) -> State:
        return self.snapshot.feed.visible_state

    @property
    def missing(self) -> tuple[Attempt, ...]:
        return self.snapshot.missing

    @property
    def via_url(self) -> str:
        return self.snapshot.feed.via_url

    @property
    def feed(self) -> FeedRow:
        return self.snapshot.feed

    def without_lists(self, documents: int = 0) -> Self:
        """Return the feed without its listing; `documents` counts the listing's documents."""
        snapshot, feed = self.snapshot, self.feed
        if feed.listing == NOTHING_LISTED:
            return self
        state, missing = ListingState.read(feed.listing).without_lists(feed.state, snapshot.missing)
        entries = feed.entries - feed.listed
        feed = replace(feed, state=state, documents=feed.documents - documents, entries=entries, listed=0)
        return replace(self, snapshot=replace(snapshot, feed=feed, missing=missing))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A refresh's progress; another replica's comes from its lease."""

    is_confirmed: bool = False
    """Whether the publisher has replied about the subscription document."""
    is_walking: bool = False
    """If false, the counts mean nothing."""
    documents: int = 0
    entries: int = 0
    fetched: int = 0
    left: int | None = None
    """Documents that probably follow; None: unknown."""
    seconds: float | None = None
    """Since the walk began to use the network; None: it has not."""

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a lease's text; ignore another version's fields."""
        found = json.loads(text) if text else {}
        return cls(**{name: found[name] for name in cls.__dataclass_fields__ if name in found})


@dataclass(frozen=True, slots=True)
class Status:
    overview: Overview
    is_refreshing: bool
    progress: UnderWay
    """The walk's; without a walk, the stored counts."""
    paused_until: float | None
    """Epoch seconds, for the publisher's host; None: not paused."""
    list_at: float | None = None
    """Next look at pages (H8), epoch seconds; None: never."""
    poll_at: float | None = None
    """Earliest next poll, epoch seconds; None: never."""
    elsewhere: UnderWay | None = None
    """Another replica's refresh, if any."""

    @property
    def feed(self) -> FeedRow:
        return self.overview.feed
