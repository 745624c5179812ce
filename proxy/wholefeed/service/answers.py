"""What the service answers with: value types, no behaviour beyond reading them."""

from __future__ import annotations

from dataclasses import dataclass

from wholefeed.core.terms import State
from wholefeed.store.rows import Attempt, FeedRow, Snapshot


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """A feed as it can be served now. The segments of `snapshot` stay readable while it is held."""

    snapshot: Snapshot
    state: State
    is_stale: bool
    missing: tuple[Attempt, ...]
    via_url: str
    """The publisher's URL of the subscription document."""

    @property
    def feed(self) -> FeedRow:
        """The feed as it was last published."""
        return self.snapshot.feed


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a feed without fetching anything."""

    feed: FeedRow
    state: State
    is_refreshing: bool
    """Whether the publisher is being asked."""
    is_walking: bool
    """Whether a walk may still add documents."""
    missing: tuple[Attempt, ...]
    failure: Attempt | None
    """Why the subscription document could not be had the last time."""
    progress_documents: int
    progress_entries: int
    progress_fetched: int
    stored_bytes: int
