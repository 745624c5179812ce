"""What the service answers with: value types, no behaviour beyond reading them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.terms import State
from wholefeed.service.published import Held
from wholefeed.service.sharing.progress import Elsewhere
from wholefeed.store.rows import FeedRow, Overview, Snapshot


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """A feed as it can be served now. The segments of `snapshot` stay readable while it is held."""

    snapshot: Snapshot
    is_stale: bool
    held: Held | None = None
    """What is held in memory of this snapshot, if anything is."""
    in_time: Callable[[], AbstractAsyncContextManager[None]] = field(
        default=nullcontext, repr=False, compare=False
    )
    """Bounds what is read before the answer leaves, as the reading of this was: `OverloadedError` then."""

    @property
    def state(self) -> State:
        """What the feed is at this moment."""
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


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a feed without fetching anything."""

    overview: Overview
    is_refreshing: bool
    """Whether the publisher is being asked."""
    progress_documents: int
    progress_entries: int
    progress_fetched: int
    progress_left: int | None
    """Documents that probably follow; None: nobody knows."""
    progress_seconds: float | None
    """Since the walk began to use the network; None: it does not."""
    paused_until: float | None
    """Until then nothing is asked of the publisher's host, epoch seconds; None: it may be asked."""
    elsewhere: Elsewhere | None = None
    """How far another replica is with a refresh; None: none is at one."""

    @property
    def feed(self) -> FeedRow:
        """The feed as it was last published."""
        return self.overview.feed
