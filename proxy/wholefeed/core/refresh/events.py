"""What a decision is told: what came of an intent, or that a document has come or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wholefeed.core.adapters.marks import Marks
from wholefeed.core.merge.merge import Copy
from wholefeed.core.model import EntryId
from wholefeed.core.notes import Note
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.terms import Family, Kind
from wholefeed.core.walk.chain import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a document could not be had, or could not be used."""

    slug: str
    publisher_status: int | None = None
    """The HTTP status that the publisher sent, where there was one."""
    retry_after_seconds: float | None = None
    is_unasked: bool = False
    """Whether the publisher was not even asked: too much waits already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a publisher said beside the subscription document."""

    url: str
    """As asked for."""
    permanent_url: str | None
    """Where redirects led that were all permanent; None where there were none, or others."""
    headers: Mapping[str, str]
    """Lower-case names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshDocument:
    """A document that has just been fetched, as far as decisions need it. Its body stays with the driver."""

    arrival: Arrival
    kind: Kind
    """What it says that its feed is; meant for the subscription document alone (R0)."""
    older_relation: str
    is_tentative: bool
    """Whether that leads to a chain only if the document it leads to is not newer (R4)."""
    is_marked: bool
    """Whether it bears fh:archive."""
    is_uncacheable: bool
    updated_at: float | None = None
    """Of the document itself (R10)."""
    marks: Marks = field(default_factory=Marks)
    validators: tuple[str, str] = ("", "")
    """ETag and Last-Modified, empty where there is none."""
    order: tuple[float | None, ...] = ()
    """What the output sorts its entries by, from the top; of a page that an adapter asked for."""
    reading_notes: tuple[Note, ...] = ()
    link_notes: tuple[Note, ...] = ()

    @property
    def is_truncated(self) -> bool:
        """Whether it broke off (docs/faults.md row 49)."""
        return any(isinstance(note, DocumentTruncated) for note in self.reading_notes)

    def may_replace(self, row: StoredDocument, family: Family) -> bool:
        """Whether a stored document gives way to this in a feed of a family.

        A whole one in the feed's format does to none that broke off; a web archive's copy to no other format
        than the feed's (R23, R33).
        """
        if row.memento:
            return self.arrival.family is family
        return not (self.is_truncated and row.family is self.arrival.family is family)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedCopy:
    """A web archive's copy of a document that its publisher does not give (R33)."""

    url: str
    """Of the document."""
    copy_url: str
    """Where the copy stands; intents name it by this."""
    captured_at: float
    """When it was made, which is its time of fetch (R10)."""
    fresh: FreshDocument
    """As it was archived; its flags are left out."""
    is_subscription: bool
    """Whether it is of the subscription document, at whatever time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionCame:
    """The subscription document is here, whole or as much as there is of it."""

    url: str
    """What it is looked for by from now on."""
    reply: Reply
    fresh: FreshDocument
    notes: tuple[Note, ...] = ()
    """Why it may not be the subscription document (R3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionUnchanged:
    """The publisher says that the stored subscription document is what it would send."""

    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionFailed:
    """The subscription document could not be had."""

    failure: Failure
    copy: ArchivedCopy | None = None
    """What an archive has of it, where it was asked because nothing is stored."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A document of the walk is here."""

    url: str
    """As the intent named it."""
    fresh: FreshDocument


@dataclass(frozen=True, slots=True)
class Answered:
    """HEAD was answered: the document is there."""

    url: str
    headers: Mapping[str, str]
    """Lower-case names."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The publisher says that a stored document has not changed."""

    url: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A document of the walk could not be had."""

    url: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class LedBack:
    """The URL of a document of the walk redirects to another one that is on the path already (R17)."""

    url: str
    met_url: str


@dataclass(frozen=True, slots=True)
class TimeOver:
    """The walk has used the network for as long as it may (R18)."""


@dataclass(frozen=True, slots=True)
class DocumentsRead:
    """The documents as they are stored now, in output order, the detached ones last."""

    documents: tuple[StoredDocument, ...]


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """The stored bodies that an older parser had read were read again."""

    has_changed: bool
    """Whether there were any."""


@dataclass(frozen=True, slots=True)
class KnownRead:
    """The latest update instant of those identities that stand in attached documents."""

    known: Mapping[EntryId, float | None]
    live: Mapping[EntryId, Copy] = field(default_factory=dict)
    """Where that was asked for: the copies that are live in documents other than memory."""
    subscription_updated_at: float | None = None
    """Where that was asked for: the date of the subscription document."""


@dataclass(frozen=True, slots=True)
class EntriesRead:
    """The entries of a stored document, from the top."""

    entries: tuple[tuple[EntryId, float | None], ...]
    """Identity, and the instant that the output sorts by (R20)."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A document was put, under this number."""

    document: int
    """Below 0: a stand-in, as good as its own number wherever documents are named."""


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """What was wanted is done; there is nothing to be told of it."""


Event = (
    SubscriptionCame
    | SubscriptionUnchanged
    | SubscriptionFailed
    | Arrived
    | Answered
    | Confirmed
    | Failed
    | LedBack
    | TimeOver
    | DocumentsRead
    | ReadAgain
    | KnownRead
    | EntriesRead
    | Stored
    | CarriedOut
)
