"""A stored feed, its documents and its failed attempts.

The rows of the store extend these classes, so a decision needs no database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from wholefeed.core.model import Family, Kind, Role, State
from wholefeed.core.notes import Note
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.accounting import NO_SHIFTS
from wholefeed.core.schedule import ValidatorPair, is_ahead, seconds_left
from wholefeed.core.text.dates import DAY_SECONDS, format_rfc3339
from wholefeed.core.walk.chain import Arrival


@dataclass(slots=True, kw_only=True)
class StoredFeed:
    id: int
    url: str
    """The canonical key."""
    fetch_url: str
    moved_to: str | None
    """Target of recent permanent redirects, `moved_times` in a row since `moved_since`."""
    moved_since: float | None
    moved_times: int
    family: Family
    kind: Kind
    state: State
    """The published state; readers see `visible_state`."""
    is_walking: bool
    """Whether a walk has used the network and not ended."""
    revision: int
    """Count of changes to documents and live entries, for plans of a publication."""
    published_revision: int
    """The last published revision; another than `revision` if readers do not see all yet."""
    notes: str
    """Notes as JSON."""
    digest: bytes | None
    """Digest of the published feed; None before the first publication."""
    cache_control: str = ""
    """The publisher's field for the subscription document; see `CacheFields`."""
    expires: str = ""
    collection: str
    """Output of `Collection.written` (R26)."""
    listing: str
    """Output of `ListingState.written` (H7)."""
    list_at: float | None
    """Time of the next look at listings (H8); None: never."""
    first_seen_at: float
    """Epoch seconds."""
    family_since: float | None
    """Start of the present family; None if the feed had no other one before."""
    had_at: float | None = None
    """Instant when the publisher last sent the subscription document, changed or not; None if unknown."""
    renamed: int = 0
    """Posts with several ids so far (R36)."""
    renaming_at: float | None = None
    """Instant when a new id will have been in use for a day, and be served (R36)."""
    doubts: int = 0
    """Doubts about the validators, from `schedule.next_doubts`; 0 to use them."""
    shifts: str = NO_SHIFTS
    """Output of `Shifts.written` (R35)."""

    @property
    def visible_state(self) -> State:
        """The present state of the feed, the same for every reader and request (R16)."""
        # A later refresh resumes an interrupted walk (after a kill or a full disk), which may still add
        # documents. A mere refetch of the subscription document adds none.
        return State.LOADING if self.is_walking else self.state


@dataclass(slots=True, kw_only=True)
class StoredDocument:
    id: int
    url: str
    final_url: str
    role: Role
    rank: int | None
    """Position in output order, ascending, among documents of the same role; None if detached."""
    detached_at: float | None
    family: Family
    site_id: str
    links: Mapping[str, str]
    is_marked: bool
    """Whether the document bears fh:archive."""
    is_settled: bool
    """Whether the last fetch or validation came when a newer document was in the chain."""
    is_uncacheable: bool
    """Whether the publisher serves the document with no-cache or no-store."""
    brought_news: bool
    digest: bytes
    etag: str | None
    last_modified: str | None
    fetched_at: float
    """Instant of the fetch of the stored body, epoch seconds."""
    checked_at: float
    """Instant when the document was last fetched or revalidated, or found gone."""
    parser_version: int
    body_bytes: int
    entries: int
    updated_at: float | None
    """The document's own update time (R10)."""
    marks: str | None
    """Output of `Marks.written`; None if nobody has looked."""
    origin: Origin
    found_by: str
    """Name of the adapter that asked for the document (R26); empty if a link leads to it."""
    found_in: int
    """Number of the adapter's last full walk that fetched the document."""
    live_bytes: int = 1
    """Bytes sent to readers; 0 if other documents have better copies of all entries."""
    memento: str = ""
    """The URL of a memento (R33), the name of an import (I1), or the page with the listing (H7). Empty for
    other origins."""

    @property
    def is_imported(self) -> bool:
        return self.origin is Origin.IMPORT

    @property
    def is_listed(self) -> bool:
        return self.origin is Origin.LISTING

    @property
    def is_added(self) -> bool:
        return self.origin.policy.leaves_complete

    @property
    def is_capture(self) -> bool:
        """Whether the document ranks behind all others, under no URL of the feed itself."""
        return self.origin.policy.stands_behind or self.url == self.memento

    @property
    def is_stand_in(self) -> bool:
        """Whether the publisher's own document always replaces this one (R33)."""
        return self.origin.policy.is_replaced

    @property
    def is_final(self) -> bool:
        """Whether the document is an archive that no walk asks for again; see `is_due`."""
        is_believed = self.is_settled and (self.is_marked or not self.is_uncacheable)
        return is_believed and not self.is_stand_in

    def is_due(self, subscription_changed_at: float, *, is_newest: bool, now: float) -> bool:
        """Return whether to revalidate an archive document on this walk (R13)."""
        # Archive documents do not change (RFC 5005, section 4), but some publishers link archives that still
        # grow. So the newest one of a chain is not settled until another has taken its place. The newest
        # archive is due once a day, if the subscription document has changed. When another has taken its
        # place, it is due at once for the last time, or daily while it is gone. A settled document without a
        # mark, sent with no-cache or no-store, is due as if it were the newest. For a memento, the time of
        # its attempt counts (R33). `is_newest`: the newest archive of its chain, on the path of this walk.
        # `subscription_changed_at`: the last time that the subscription document came with a change.
        if not self.origin.policy.is_asked_again or self.is_final:
            return False
        if is_ahead(self.checked_at, now=now):
            return True
        is_a_day_ago = self.checked_at <= now - DAY_SECONDS
        is_outdated = subscription_changed_at > self.checked_at
        if not self.is_settled and not is_newest:
            return is_a_day_ago or is_outdated
        return is_a_day_ago and is_outdated

    @property
    def validators(self) -> ValidatorPair:
        return ValidatorPair(self.etag or "", self.last_modified or "")

    def as_memento(self) -> Note:
        note, captured = self.origin.policy.note, format_rfc3339(self.fetched_at)
        assert note is not None, "it is a memento"
        return note(self.url, copy_url=self.memento, captured=captured, copies=1)

    def as_arrival(self) -> Arrival:
        return Arrival(
            url=self.url,
            final_url=self.final_url,
            family=self.family,
            site_id=self.site_id,
            links=self.links,
            digest=self.digest,
            body_bytes=self.body_bytes,
            entries=self.entries,
            keys=None,
            news=self.brought_news,
        )


_Document = TypeVar("_Document", bound=StoredDocument)


def subscription_of(documents: Iterable[_Document]) -> _Document | None:
    for each in documents:
        if each.role is Role.SUBSCRIPTION and each.rank is not None:
            return each
    return None


SUBSCRIPTION_ATTEMPT: Final = ""
"""The URL in place of the subscription document's own, in its attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    url: str
    reason: str
    status: int | None
    attempts: int
    first_at: float
    last_at: float
    next_at: float

    @property
    def is_subscription(self) -> bool:
        """Whether the attempt is the subscription document's: the feed is stale, not partial."""
        return self.url == SUBSCRIPTION_ATTEMPT

    def waits(self, now: float) -> bool:
        """Return whether the next attempt is not due; ignore times from a wrong clock."""
        return seconds_left(self.last_at, self.next_at, now=now, longest_seconds=DAY_SECONDS) > 0
