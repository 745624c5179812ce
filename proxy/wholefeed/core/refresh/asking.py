"""How a refresh asks for what it needs: as a conversation, a generator without I/O and without a clock.

    talk = refresh(basis, rows)
    request = next(talk)                    # AskSubscription("https://example.org/feed.atom", None)
    request = talk.send(SubscriptionFailed(…))
    …                                       # StopIteration holds how it ended

A conversation yields one `Request` after the other, and is sent the answer to each. Its parts are
conversations, too (`yield from`). `wholefeed.service.refresh` has the loop, and the table that says what
carries out each request; the tests have a world in memory that does.

    known = yield from ask(FindKnown(url, arrival))     # a request with an answer
    yield Touch(row.id)                             # one without

What was noted with a request that only notes something is written with the next change, or at the end.
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
    SubscriptionCame,
    SubscriptionFailed,
    SubscriptionPlacement,
)
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.core.walk.chain import Arrival

_T = TypeVar("_T")
_Answer_co = TypeVar("_Answer_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Request(Generic[_Answer_co]):
    """Something that a conversation wants to have done; `Request[int]` is answered with a number."""


Talk = Generator[Request[Any], Any, _T]
"""A conversation that ends with a value of this type."""


def ask(request: Request[_T]) -> Talk[_T]:
    """Yield a request and return the answer to it."""
    answer: _T = yield request
    return answer


# The subscription document


@dataclass(frozen=True, slots=True)
class AskSubscription(Request[SubscriptionCame | Reply | SubscriptionFailed]):
    """Fetch the subscription document; a mere `Reply` says that the stored one is what its publisher has."""

    url: str
    stored: StoredDocument | None
    """The request is made on the condition that this has changed; None: without a condition."""
    is_whole: bool = False
    """Whether the request has no condition although a document is stored."""
    searches: bool = False
    """Whether the document of the URL may be an archive, from which `current` leads on (R3)."""


@dataclass(frozen=True, slots=True)
class StoreSubscription(Request[None]):
    """Store the subscription document that has come."""

    placement: SubscriptionPlacement


@dataclass(frozen=True, slots=True)
class NoteReply(Request[None]):
    """Note what a reply means for the feed: its publisher is there."""

    reply: ReplyFacts


@dataclass(frozen=True, slots=True)
class NoteFailure(Request[None]):
    """Note that the stored feed serves as stale."""

    failure: Attempt | None
    """None: the publisher was not asked, which is no failure."""
    fresh_until: float


# Fetching


@dataclass(frozen=True, slots=True)
class TakeTurn(Request[None]):
    """Wait for a turn to use the network, unless this refresh has one.

    From then on documents may be added, also by the next refresh after a restart, and what has come is
    published from time to time. The seconds of the walk count from here (`Settings.walk_seconds`, R18).
    """


@dataclass(frozen=True, slots=True)
class Fetch(Request[None]):
    """Begin to fetch a document of a walk; its end is told by `NextEvent`."""

    url: str
    stored: StoredDocument | None
    """As in `AskSubscription`."""
    relation: str
    """The link relation that leads to the document behind it, which an `Early` event tells."""
    is_met: Callable[[str], bool]
    """Returns whether the document of a URL is on the path: a redirect to it is not followed (R17)."""
    is_ahead: bool = False
    """Whether the path has yet to come to it: then its fetch gives way to others."""


@dataclass(frozen=True, slots=True)
class FetchPage(Request[None]):
    """Begin to fetch a page that an adapter asks for, two at a time (R32); its end is told by `NextEvent`."""

    url: str
    is_met: Callable[[str], bool]
    """As in `Fetch`."""
    is_head: bool = False
    """Whether to ask only whether it is there."""
    expected: frozenset[int] = frozenset()
    """Statuses that are an answer to the question, and no failure."""


class Came(NamedTuple):
    """A fetch has ended."""

    url: str
    """As in `Fetch`."""
    response: Response


class Early(NamedTuple):
    """The head of a document that still arrives links to the document behind it (R0)."""

    url: str
    older: str


@dataclass(frozen=True, slots=True)
class NextEvent(Request[Came | Early | None]):
    """Wait for the next event of the fetches under way; None: the time of the walk is over (R18)."""

    needed: str = ""
    """The URL that the path has come to: its fetch gives way no longer."""


@dataclass(frozen=True, slots=True)
class Rest(Request[None]):
    """Let other tasks have a turn: much was walked through without waiting for anything."""


@dataclass(frozen=True, slots=True)
class PauseHost(Request[None]):
    """Let no adapter ask the host of a URL for a while (R32)."""

    url: str
    until: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class EndWalk(Request[None]):
    """Let go of the fetches under way, and of documents that were not kept.

    With an `ending`, also store the pending documents, end the publications meanwhile, give the turn back.
    """

    ending: str = ""
    """The first slug of what made the feed partial, else `end`; empty: another walk may follow."""
    documents: int = 0
    """Documents on the path, the subscription document included."""


# What is stored


@dataclass(frozen=True, slots=True)
class Rows(Request[Sequence[StoredDocument]]):
    """Return the documents as they are stored now, in output order, the detached ones last."""


@dataclass(frozen=True, slots=True)
class ReadEntries(Request[Sequence[tuple[EntryId, float | None]]]):
    """Return a document's entries from the top, each with the instant that the output sorts by (R20)."""

    document: int


@dataclass(frozen=True, slots=True)
class FindKnown(Request[KnownEntries]):
    """Look in attached documents for the entries of one that has come under this URL and is not kept yet.

    What was stored since it came may identify its entries anew (R9).
    """

    url: str
    arrival: Arrival
    with_copies: bool = False
    """Whether to tell which of their copies are live, those in memory documents excepted."""
    with_pages: bool = False
    """Whether to tell which stand on pages."""


@dataclass(frozen=True, slots=True)
class Depart(Request[Departure]):
    """Return which entries leave the feed when what has come replaces a stored archive document (R35)."""

    document: int
    url: str
    arrival: Arrival
    waiting: Sequence[int]
    """Stored documents that are to be replaced, too, and whose entries do not count."""


@dataclass(frozen=True, slots=True)
class Doubtful(Request[frozenset[EntryId]]):
    """Return the entries that are stored as doubtful (R35)."""


@dataclass(frozen=True, slots=True)
class KeepDocument(Request[int]):
    """Store a document that has come under a URL; return its number.

    One that may wait is stored with those that come next, at the latest with the next change. Until then its
    number is below 0, and serves in `Attach`, `Detach` and `Walked.path`.
    """

    url: str
    placement: Placement


@dataclass(frozen=True, slots=True)
class KeepTogether(Request[Sequence[int]]):
    """Store documents that have come, by their URLs, in one transaction; return their numbers."""

    placements: Mapping[str, Placement]


@dataclass(frozen=True, slots=True)
class Drop(Request[None]):
    """Let go of a document that has come and is not worth keeping."""

    url: str


@dataclass(frozen=True, slots=True)
class Touch(Request[None]):
    """Note that a document was looked at and is as it was, or is gone; None: that column stays."""

    document: int
    is_settled: bool | None = None
    is_uncacheable: bool | None = None
    found_in: int | None = None


@dataclass(frozen=True, slots=True)
class Attach(Request[None]):
    """Give documents these ranks; those that were detached are part of the feed again."""

    ranks: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Detach(Request[None]):
    """Keep documents, but no longer as part of the feed (R25)."""

    documents: Sequence[int]
    is_withdrawn: bool = False
    """Whether their publisher took them out of its chain (R14, R15): then their entries are settled (R8)."""


@dataclass(frozen=True, slots=True)
class Remove(Request[None]):
    """Remove imported documents from the store (I1), and entries until their publisher updates them (I2)."""

    documents: Sequence[int]
    entries: Sequence[EntryId]


@dataclass(frozen=True, slots=True)
class SettleDoubtful(Request[None]):
    """Let the doubtful entries leave the feed: they were deleted (R35)."""


@dataclass(frozen=True, slots=True)
class NoteFeed(Request[None]):
    """Note what was learnt of the feed; None: that column stays."""

    kind: Kind | None = None
    collection: str | None = None
    """`Collection.written()` (R26)."""
    shifts: str | None = None
    """`Shifts.written()` (R35)."""


@dataclass(frozen=True, slots=True)
class NoteListing(Request[None]):
    """Note what is known of the publisher's lists, and when to look at its pages next (H8)."""

    listing: str
    """`Listing.written()`."""
    next_at: float | None
    """Epoch seconds; None: never."""


@dataclass(frozen=True, slots=True)
class Reread(Request[bool]):
    """Parse the stored bodies that an older parser has read; return whether there were any."""


@dataclass(frozen=True, slots=True)
class SettleIds(Request[bool]):
    """Serve posts under the ids that their publisher has used for a day (R36); return whether any changed.

    `joins`: also join posts that an earlier version took for two.
    """

    joins: bool


@dataclass(frozen=True, slots=True)
class Unlist(Request[None]):
    """Take out of the lists what the subscription document has by itself, under the same link (H6)."""


@dataclass(frozen=True, slots=True)
class Publish(Request[None]):
    """Let readers have the feed as it is stored now; where a field is None, the stored value stays."""

    state: State
    notes: Sequence[Note] | None
    ending: Ending | None = None
    missing: Sequence[Attempt] | None = None
    """All that could not be had (R14)."""
