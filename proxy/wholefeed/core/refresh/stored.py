"""A feed, its documents and its failed attempts, as they are stored.

The store's rows extend these classes, so a decision needs no database.
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
    """A feed: where it comes from, and what it was when it was published last."""

    id: int
    url: str
    """The canonical key."""
    fetch_url: str
    moved_to: str | None
    """Where permanent redirects have led of late, `moved_times` in a row since `moved_since`."""
    moved_since: float | None
    moved_times: int
    family: Family
    kind: Kind
    state: State
    """As published; `visible_state` tells what whoever asks gets to see."""
    is_walking: bool
    """Whether a walk has begun to use the network and has not ended: it may still add documents."""
    revision: int
    """Counts the changes of documents and live entries; a plan names the one it was made from."""
    published_revision: int
    """The one that was published last; another than `revision`: something is not to be seen yet."""
    notes: str
    """JSON, as the service wrote it."""
    digest: bytes | None
    """Of what was published; None until something is."""
    cache_control: str = ""
    """What the publisher has said of its subscription document, as `CacheFields` has it."""
    expires: str = ""
    collection: str
    """What is known of a history that the publisher does not link, as `Collection.written` gives it (R26)."""
    listing: str
    """What is known of the lists in its pages, as `Listing.written` gives it (H7)."""
    list_at: float | None
    """When they are to be looked at next (H8); None: never."""
    first_seen_at: float
    """Epoch seconds."""
    family_since: float | None
    """When it came in its family after it had been of another; None: it has been of this one ever since."""
    had_at: float | None = None
    """When its publisher sent the subscription document last, be it the same; None: nobody knows."""
    renamed: int = 0
    """How many of its posts have had several ids (R36)."""
    renaming_at: float | None = None
    """When one of these ids will have been used for a day that its post is not served under yet."""
    doubts: int = 0
    """About its validators, as `schedule.next_doubts` counts them; 0: they are used."""
    shifts: str = NO_SHIFTS
    """What is known of archives that shift, as `Shifts.written` gives it (R35)."""

    @property
    def visible_state(self) -> State:
        """What the feed is at this moment, for whoever asks and by whatever way (R16).

        A walk that was cut off, by a kill or a full disk, is taken up again and may still add documents. A
        mere refetch of the subscription document adds none: it keeps the state.
        """
        return State.LOADING if self.is_walking else self.state


@dataclass(slots=True, kw_only=True)
class StoredDocument:
    """A stored document, without its body and entries."""

    id: int
    url: str
    final_url: str
    role: Role
    rank: int | None
    """Ascending in output order among the documents of its role; None: detached."""
    detached_at: float | None
    family: Family
    site_id: str
    links: Mapping[str, str]
    is_marked: bool
    """Whether it bears fh:archive."""
    is_settled: bool
    """Whether it was fetched or revalidated when it was no longer the newest of its chain."""
    is_uncacheable: bool
    """Whether the publisher serves it with no-cache or no-store."""
    brought_news: bool
    digest: bytes
    etag: str | None
    last_modified: str | None
    fetched_at: float
    """When it was had with the body that is stored, epoch seconds."""
    checked_at: float
    """When it was last fetched or revalidated, or was gone."""
    parser_version: int
    body_bytes: int
    entries: int
    updated_at: float | None
    """Of the document itself (R10)."""
    marks: str | None
    """What it says about its publisher, as `Marks.written` gives it; None where nobody has looked."""
    origin: Origin
    """The source that it comes from."""
    found_by: str
    """The adapter that asked for it (R26); empty where a link leads to it."""
    found_in: int
    """Of its walks through all pages: the number of the last one that had it."""
    live_bytes: int = 1
    """What readers are sent of it; 0 where other documents have better copies of all its entries."""
    memento: str = ""
    """Where its source has it: the URL of a memento (R33), the name of an import (I1), or the page that lists
    what it holds (H7); empty for documents of other origins."""

    @property
    def is_imported(self) -> bool:
        """Whether somebody had kept it and put it into the feed (I1)."""
        return self.origin is Origin.IMPORT

    @property
    def is_listed(self) -> bool:
        """Whether it holds what a page of the publisher's lists (H7)."""
        return self.origin is Origin.LISTING

    @property
    def is_added(self) -> bool:
        """Whether it joins a feed from beside, and no feed that is complete."""
        return self.origin.policy.leaves_complete

    @property
    def is_capture(self) -> bool:
        """Whether it stands behind all else: no document of the feed itself has its URL."""
        return self.origin.policy.stands_behind or self.url == self.memento

    @property
    def is_stand_in(self) -> bool:
        """Whether its publisher's own document takes its place, whatever that holds (R33)."""
        return self.origin.policy.is_replaced

    @property
    def is_final(self) -> bool:
        """Whether it is an archive document that is never asked for again: see `is_due`."""
        is_believed = self.is_settled and (self.is_marked or not self.is_uncacheable)
        return is_believed and not self.is_stand_in

    def is_due(self, subscription_changed_at: float, *, is_newest: bool, now: float) -> bool:
        """Return whether an archive document is to be revalidated on this walk (R13).

        Archive documents do not change (RFC 5005, section 4), but publishers link archives that still grow:
        the newest one of a chain is not believed until another has taken its place.

        FETCHED as the newest         -> OPEN     due when the subscription document has changed, once a day
        FETCHED behind the newest     -> SETTLED
        OPEN, no longer the newest    -> due at once, for the last time -> SETTLED; daily while it is gone
        SETTLED, but unmarked and sent with no-cache or no-store -> due as if it were the newest

        For a memento there is an attempt, whose time counts (R33).

        Args:
            subscription_changed_at: When the subscription document was last had with a change, epoch seconds.
            is_newest: Whether it is the newest archive document of its chain, on the path of this walk.
            now: Epoch seconds.
        """
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
        """Return the note that a web archive's copy stands in for the document, and from when it is."""
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
"""The URL under which the failure of the subscription document itself is noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A document that could not be had, and when to try again."""

    url: str
    reason: str
    status: int | None
    attempts: int
    first_at: float
    last_at: float
    next_at: float

    @property
    def is_subscription(self) -> bool:
        """Whether it is the subscription document's: the feed is stale, and nothing of it is missing."""
        return self.url == SUBSCRIPTION_ATTEMPT

    def waits(self, now: float) -> bool:
        """Whether its time has not come; what a wrong clock has noted is waited for by nobody."""
        return seconds_left(self.last_at, self.next_at, now=now, longest_seconds=DAY_SECONDS) > 0


# A document that has come
