"""The requests of a refresh: a generator without I/O and clock.

    talk = refresh(basis, rows)
    request = next(talk)                    # AskSubscription("https://example.org/feed.atom", None)
    request = talk.send(SubscriptionFailed(…))      # StopIteration holds the result

Notes (such as `Touch`) are written with the next change, or at the end of the refresh.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from wholefeed.core.model import EntryId, Kind, State
from wholefeed.core.notes import Ending, Note
from wholefeed.core.refresh.accounting import Departure
from wholefeed.core.refresh.arrivals import (
    KnownEntries,
    Placement,
    Reply,
    ReplyFacts,
    Response,
    SubscriptionFailed,
    SubscriptionPlacement,
)
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.core.walk.chain import Arrival

_T = TypeVar("_T")
_Answer_co = TypeVar("_Answer_co", covariant=True)


@dataclass(frozen=True, slots=True)
class CoreRequest(Generic[_Answer_co]):
    """A request of a conversation; `CoreRequest[int]` has a number as its result."""


Talk = Generator[CoreRequest[Any], Any, _T]
"""A conversation with a result of this type."""


def ask(request: CoreRequest[_T]) -> Talk[_T]:
    answer: _T = yield request
    return answer


# The subscription document


@dataclass(frozen=True, slots=True)
class AskSubscription(CoreRequest[Reply | SubscriptionFailed]):
    """Fetch the subscription document. A mere `Reply` as the result: the stored one is current."""

    url: str
    stored: StoredDocument | None
    """For a conditional request; None for an unconditional one."""
    is_whole: bool = False
    """Whether to ask unconditionally although a document is stored."""
    searches: bool = False
    """Whether the URL may lead to an archive document; then follow its `current` link (R3)."""


@dataclass(frozen=True, slots=True)
class StoreSubscription(CoreRequest[None]):
    placement: SubscriptionPlacement


@dataclass(frozen=True, slots=True)
class NoteReply(CoreRequest[None]):
    reply: ReplyFacts


@dataclass(frozen=True, slots=True)
class NoteFailure(CoreRequest[None]):
    """Note that the stored feed is served as stale."""

    failure: Attempt | None
    """None if the publisher was not asked, so nothing failed."""
    fresh_until: float


# Fetching


@dataclass(frozen=True, slots=True)
class TakeTurn(CoreRequest[None]):
    """Wait for a turn to use the network, unless this refresh has one.

    The seconds of the walk count from here (`Settings.walk_seconds`, R18).
    """

    # After that documents may be added, even by the next refresh after a restart. The fetched documents are
    # published from time to time.


@dataclass(frozen=True, slots=True)
class Fetch(CoreRequest[None]):
    """Begin to fetch a document of a walk; `NextEvent` reports the end."""

    url: str
    stored: StoredDocument | None
    relation: str
    """The link relation to the next older document, for `EarlyLink` events."""
    is_met: Callable[[str], bool]
    """Returns whether a URL's document is on the path: then do not follow a redirect there (R17)."""
    is_ahead: bool = False
    """Whether the path has not reached the document yet: then other fetches go first."""


@dataclass(frozen=True, slots=True)
class FetchPage(CoreRequest[None]):
    """Begin to fetch a page for an adapter, two pages at a time (R32)."""

    url: str
    is_met: Callable[[str], bool]
    is_head: bool = False
    expected: frozenset[int] = frozenset()
    """Statuses that count as a response, not as a failure."""


class FetchEnded(NamedTuple):
    url: str
    response: Response


class EarlyLink(NamedTuple):
    """A link to the next older document, found in the head of a document still arriving (R0)."""

    url: str
    older: str


@dataclass(frozen=True, slots=True)
class NextEvent(CoreRequest[FetchEnded | EarlyLink | None]):
    """Wait for the next event of the running fetches. The result None: the walk's time is over (R18)."""

    needed: str = ""
    """The URL that the path has reached: its fetch now goes before others."""


@dataclass(frozen=True, slots=True)
class Rest(CoreRequest[None]):
    """Let other tasks run: the walk has passed many documents without waiting."""


@dataclass(frozen=True, slots=True)
class PauseHost(CoreRequest[None]):
    """Forbid adapters to ask a URL's host until an instant (R32)."""

    url: str
    until: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class EndWalk(CoreRequest[None]):
    """Stop the running fetches, and drop fetched documents that were not stored.

    With an `ending`, also store the pending documents, end the publications during the walk, and give back
    the turn.
    """

    ending: str = ""
    """The first slug of the reason for a partial feed, else `end`; empty if another walk may follow."""
    documents: int = 0
    """Documents on the path, including the subscription document."""


# The store


@dataclass(frozen=True, slots=True)
class Rows(CoreRequest[Sequence[StoredDocument]]):
    """Return all stored documents in output order, with detached documents last."""


@dataclass(frozen=True, slots=True)
class ReadEntries(CoreRequest[Sequence[tuple[EntryId, float | None]]]):
    """Return a document's entries from the top, each with the instant for sorting the output (R20)."""

    document: int


@dataclass(frozen=True, slots=True)
class FindKnown(CoreRequest[KnownEntries]):
    """Look in attached documents for the entries of a fetched document.

    Documents stored since the fetch may change the identities of its entries (R9).
    """

    url: str
    arrival: Arrival
    with_copies: bool = False
    with_pages: bool = False


@dataclass(frozen=True, slots=True)
class Depart(CoreRequest[Departure]):
    """Return the entries that leave the feed with a new version of an archive document (R35)."""

    document: int
    url: str
    arrival: Arrival
    waiting: Sequence[int]
    """Stored documents about to be replaced too: their entries do not count."""


@dataclass(frozen=True, slots=True)
class Doubtful(CoreRequest[frozenset[EntryId]]):
    """Return the entries stored as doubtful (R35)."""


@dataclass(frozen=True, slots=True)
class KeepDocument(CoreRequest[int]):
    """Store a fetched document; return its number.

    With `Placement.may_wait`, the document is stored with the next ones, at the latest with the next change.
    Until then its number is negative, and valid in `Attach`, `Detach` and `WalkResult.path`.
    """

    url: str
    placement: Placement


@dataclass(frozen=True, slots=True)
class KeepTogether(CoreRequest[Sequence[int]]):
    """Store fetched documents, by URL, in one transaction; return their numbers."""

    placements: Mapping[str, Placement]


@dataclass(frozen=True, slots=True)
class Drop(CoreRequest[None]):
    url: str


@dataclass(frozen=True, slots=True)
class Touch(CoreRequest[None]):
    """Note that a document was checked and is unchanged or gone. A None leaves its column alone."""

    document: int
    is_settled: bool | None = None
    is_uncacheable: bool | None = None
    found_in: int | None = None


@dataclass(frozen=True, slots=True)
class Attach(CoreRequest[None]):
    """Set the ranks of documents; detached ones become part of the feed again."""

    ranks: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Detach(CoreRequest[None]):
    """Leave documents in the store, but no longer as part of the feed (R25)."""

    documents: Sequence[int]
    is_withdrawn: bool = False
    """Whether the publisher took them out of its chain (R14, R15), which settles their entries (R8)."""


@dataclass(frozen=True, slots=True)
class Remove(CoreRequest[None]):
    """Remove imported documents (I1), and entries until their publisher updates them (I2)."""

    documents: Sequence[int]
    entries: Sequence[EntryId]


@dataclass(frozen=True, slots=True)
class SettleDoubtful(CoreRequest[None]):
    """Remove the doubtful entries from the feed: they were deleted (R35)."""


@dataclass(frozen=True, slots=True)
class NoteFeed(CoreRequest[None]):
    """Note new facts about the feed. A None leaves its column alone."""

    kind: Kind | None = None
    collection: str | None = None
    """Output of `Collection.written` (R26)."""
    shifts: str | None = None
    """Output of `Shifts.written` (R35)."""


@dataclass(frozen=True, slots=True)
class NoteListing(CoreRequest[None]):
    """Note the state of the publisher's listings, and the next look at its pages (H8)."""

    listing: str
    """Output of `ListingState.written`."""
    next_at: float | None
    """Epoch seconds; None: never."""


@dataclass(frozen=True, slots=True)
class Reread(CoreRequest[bool]):
    """Parse stored bodies last read by an older parser; return whether there were any."""


@dataclass(frozen=True, slots=True)
class SettleIds(CoreRequest[bool]):
    """Serve posts under the ids that their publisher has used for a day (R36); return whether any changed.

    With `joins`, also join posts that an earlier version took for two.
    """

    joins: bool


@dataclass(frozen=True, slots=True)
class Unlist(CoreRequest[None]):
    """Remove listed entries that the subscription document has under the same link (H6)."""


@dataclass(frozen=True, slots=True)
class Publish(CoreRequest[None]):
    """Publish the feed from its stored documents. A None leaves the stored value alone."""

    state: State
    notes: Sequence[Note] | None
    ending: Ending | None = None
    missing: Sequence[Attempt] | None = None
    """All documents that could not be fetched (R14)."""
