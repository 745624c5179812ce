"""What a decision wants done next. Each is carried out, and the decision told of it, before the next one.

The fetches of a walk are the exception: `Fetch` only begins one, and `Wait` wants to be told of the first
that has ended. What is told of an intent stands behind its arrow; where there is none, it is `CarriedOut`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from wholefeed.core.model import EntryId
from wholefeed.core.notes import Note
from wholefeed.core.refresh.events import CarriedOut, Event
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.core.schedule.moves import Move
from wholefeed.core.terms import Family, Kind, Role, State
from wholefeed.core.walk.endings import Ending

# The subscription document


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSubscription:
    """Fetch the subscription document -> SubscriptionCame, SubscriptionUnchanged, SubscriptionFailed."""

    url: str
    stored: StoredDocument | None
    """Ask whether this has changed; None: have it whole."""
    searches: bool
    """Whether to look for it from the document of this URL on, which may be an archive (R3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSubscription:
    """Put what came, and with it what no longer fits it, all at once (R8, R23)."""

    kind: Kind
    family: Family
    remembers: StoredDocument | None
    """The document that it replaces, when the copies of entries that leave it are to be kept."""
    brings_back_memory: bool
    """Whether the memory documents of its family come back with it."""
    detached: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteReply:
    """The publisher is there: note what its reply means for the feed."""

    checked_at: float
    fresh_until: float
    is_private: bool
    unchanged: int | None
    """The document that it says has not changed."""
    fetch_url: str | None
    """Where the subscription document is asked for from now on, when that is elsewhere."""
    move: Move | None
    """What is known of a permanent move, when that is something else than before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFailure:
    """The publisher could not be reached: what is stored serves as stale until the next attempt."""

    failure: Attempt | None
    """None: it was not asked, which is no failure of its own."""
    fresh_until: float


# What is stored


@dataclass(frozen=True, slots=True)
class ReadBodiesAgain:
    """Parse the stored bodies that an older parser has read -> ReadAgain."""


@dataclass(frozen=True, slots=True)
class ReadDocuments:
    """Look at what is stored -> DocumentsRead."""


@dataclass(frozen=True, slots=True)
class ReadKnown:
    """Look which identities stand in attached documents -> KnownRead."""

    identities: tuple[EntryId, ...]
    """Of all entries of one document, from the top."""
    with_copies: bool = False
    """Whether to tell also which of their copies are live, those in memory documents excepted."""
    url: str = ""
    """Of the document, if it has come and waits: what was stored since may identify its entries anew (R9)."""


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """Look what stands in a stored document -> EntriesRead."""

    document: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Store a document that has arrived -> Stored."""

    url: str
    """It arrived under this one."""
    stored_url: str
    """It is put under this one."""
    role: Role
    rank: int | None
    """None: it is kept, but no part of the feed yet."""
    is_settled: bool = False
    brought_news: bool = True
    remembers: StoredDocument | None = None
    """The page that it replaces, when the entries that leave it are to be kept (R6)."""
    found_by: str = ""
    """The adapter that asked for it (R26); empty where a link leads to it."""
    found_in: int = 0
    """As `StoredDocument.found_in`."""
    may_wait: bool = False
    """Whether it may be put with those that come next: nothing is stored of it."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A document that has arrived is not worth keeping."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """Note that a stored document has not changed."""

    document: int
    is_settled: bool | None
    """Whether it is final now; None leaves that as it is."""
    found_in: int | None = None
    """As `StoredDocument.found_in`; None leaves that as it is."""


@dataclass(frozen=True, slots=True)
class Attach:
    """Make a document part of the feed again."""

    document: int
    rank: int


@dataclass(frozen=True, slots=True)
class Detach:
    """Keep documents, but no longer as part of the feed (R25)."""

    documents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reorder:
    """Give documents these ranks."""

    ranks: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class SetKind:
    """The feed turned out to be of another kind."""

    kind: Kind


# The walk


@dataclass(frozen=True, slots=True)
class BeginWalk:
    """Wait for a turn to use the network; from then on documents may be added, also after a restart."""


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Count the seconds of network that a trail may use from now."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Begin to fetch a document; `Wait` tells of its end."""

    url: str
    stored: StoredDocument | None
    """Ask whether this has changed; None: have it whole."""
    relation: str
    """Leads to the document behind it; told of early, through `Decision.predicted`."""
    is_collected: bool = False
    """Whether an adapter asks (R32): few at once, and nothing is told early."""
    is_head: bool = False
    """Whether to ask only whether it is there -> Answered instead of Arrived."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for the first fetch to end -> Arrived, Answered, Confirmed, Failed; TimeOver: too late."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Let others have a turn: much was walked through without waiting for anything."""


@dataclass(frozen=True, slots=True)
class PauseHost:
    """Let no adapter ask the host of a URL for a while (R32)."""

    url: str
    until: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Let go of the fetches under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndWalk:
    """Give the turn back."""

    ending: str
    """Of what made the feed partial the first slug, else `end`."""
    documents: int


# The end


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Let readers have the feed as it is stored now."""

    state: State
    notes: tuple[Note, ...]
    is_walking: bool = False
    """Whether the walk goes on, and may still add documents."""
    ending: Ending | None = None
    """Why the walk ended; None leaves what is stored."""
    missing: tuple[Attempt, ...] | None = None
    """All that could not be had (R14); None leaves what is stored."""


@dataclass(frozen=True, slots=True)
class Done:
    """There is nothing left to do."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The subscription document could not be had; whoever waits gets to know why."""


@dataclass(frozen=True, slots=True)
class NoteCollection:
    """Note what is known of the history that the publisher does not link (R26)."""

    collection: str
    """As `Collection.written` gives it."""


Change = StoreSubscription | Put | Attach | Detach | Reorder | SetKind
"""What changes which documents the feed is made of, or how."""
Remark = NoteReply | NoteFailure | Touch | NoteCollection
"""What is noted of a feed or document without changing what it is made of."""
Look = ReadBodiesAgain | ReadDocuments | ReadKnown | ReadEntries
Fetching = StartTimer | Fetch | Wait | Drop | StopFetching
End = Done | GiveUp

Deed = BeginWalk | Rest | PauseHost | EndWalk | Publish
Task = AskSubscription | Change | Remark | Look | Fetching | Deed
Intent = Task | End

T = TypeVar("T")
E = TypeVar("E", bound=Event)

Steps = Generator[Intent, Event, T]
"""A part of a decision: yields intents, is sent what came of each, and comes to a result."""


def carry_out(intent: Intent) -> Steps[None]:
    """Name an intent of which nothing is told but that it is done."""
    yield from outcome(intent, CarriedOut)


def outcome(intent: Intent, kind: type[E]) -> Steps[E]:
    """Name an intent and return what came of it."""
    event = yield intent
    assert isinstance(event, kind), f"{intent} was answered with {event}"
    return event
