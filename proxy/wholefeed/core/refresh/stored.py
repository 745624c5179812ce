"""What the store tells of a feed, as far as the decisions about it need it.

The store's rows extend these, so that what is decided here needs no database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from wholefeed.core.memento.notes import MementoServed
from wholefeed.core.schedule.revalidation import is_due, is_final
from wholefeed.core.terms import Family, Kind, Role, State
from wholefeed.core.text.dates import DAY_SECONDS, format_rfc3339
from wholefeed.core.walk.chain import Arrival

SUBSCRIPTION_ATTEMPT: Final = ""
"""The URL under which the failure of the subscription document itself is noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    collection: str
    """What is known of a history that the publisher does not link, as `Collection.written` gives it (R26)."""

    @property
    def visible_state(self) -> State:
        """What the feed is at this moment, for whoever asks and by whatever way (R16).

        A walk that was cut off, by a kill or a full disk, is taken up again and may still add documents. A
        mere refetch of the subscription document adds none: it keeps the state.
        """
        return State.LOADING if self.is_walking else self.state


@dataclass(frozen=True, slots=True, kw_only=True)
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
    is_settled: bool
    is_uncacheable: bool
    brought_news: bool
    digest: bytes
    etag: str | None
    last_modified: str | None
    fetched_at: float
    """When it was had with the body that is stored, epoch seconds."""
    checked_at: float
    parser_version: int
    body_bytes: int
    entries: int
    updated_at: float | None
    """Of the document itself (R10)."""
    marks: str | None
    """What it says about its publisher, as `Marks.written` gives it; None where nobody has looked."""
    found_by: str
    """The adapter that asked for it (R26); empty where a link leads to it."""
    found_in: int
    """Of its walks through all pages: the number of the last one that had it."""
    live_bytes: int = 1
    """What readers are sent of it; 0 where other documents have better copies of all its entries."""
    memento: str = ""
    """Where a web archive's copy stands, which this is (R33); empty: the publisher's own document."""

    @property
    def is_capture(self) -> bool:
        """Whether it is a copy of an earlier subscription document: it goes by the copy's own URL."""
        return bool(self.memento) and self.url == self.memento

    @property
    def is_final(self) -> bool:
        """Whether it is an archive document that is never asked for again (R13)."""
        return not self.memento and is_final(
            is_settled=self.is_settled, is_marked=self.is_marked, is_uncacheable=self.is_uncacheable
        )

    def is_due(self, subscription_changed_at: float, *, is_newest: bool, now: float) -> bool:
        """Return whether an archive document is to be revalidated (R13).

        For an archive's copy there is an attempt, whose time counts (R33).
        """
        return not self.memento and is_due(
            is_settled=self.is_settled,
            is_newest=is_newest,
            is_marked=self.is_marked,
            is_uncacheable=self.is_uncacheable,
            subscription_changed_at=subscription_changed_at,
            checked_at=self.checked_at,
            now=now,
        )

    def as_memento(self) -> MementoServed:
        """Tell that a web archive's copy stands in for the document, and of when it is."""
        return MementoServed(self.url, self.memento, format_rfc3339(self.fetched_at))

    def as_arrival(self) -> Arrival:
        """Describe it to a walk."""
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
    """Return the subscription document among those of a feed; None: it has none."""
    for each in documents:
        if each.role is Role.SUBSCRIPTION and each.rank is not None:
            return each
    return None


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
        """Whether its time has not come; more than a day ahead it comes from a clock that was wrong."""
        return 0 < self.next_at - now <= DAY_SECONDS


def attempted(
    earlier: Attempt | None, url: str, *, reason: str, status: int | None, next_at: float, now: float
) -> Attempt:
    """Return what is known of a document that could not be had this time either.

    Failures count up, and the time of the first one stays (R16: the pseudo-entry is dated by it).
    """
    return Attempt(
        url=url,
        reason=reason,
        status=status,
        attempts=1 + (earlier.attempts if earlier else 0),
        first_at=earlier.first_at if earlier else now,
        last_at=now,
        next_at=next_at,
    )
