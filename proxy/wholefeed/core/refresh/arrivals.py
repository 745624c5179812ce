"""The results of a refresh's fetches, and the way to store them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeVar

from wholefeed.core.adapters.base import Marks, There
from wholefeed.core.merge import Copy, is_preferred
from wholefeed.core.model import EntryId, Family, Kind, Role
from wholefeed.core.notes import DocumentTruncated, Note
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.schedule import NO_VALIDATORS, CacheFields, Move, ValidatorPair
from wholefeed.core.walk.chain import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshDocument:
    arrival: Arrival
    kind: Kind
    """The kind of feed that the document claims; only the subscription document's counts (R0)."""
    older_relation: str
    is_tentative: bool
    """Whether `older_relation` leads to a chain only if its target is not newer (R4)."""
    updated_at: float | None = None
    """The document's own update time (R10)."""
    marks: Marks = field(default_factory=Marks)
    validators: ValidatorPair = NO_VALIDATORS
    order: tuple[float | None, ...] = ()
    """Instants of the entries for sorting the output, from the top; for an adapter's page."""
    fullness: bytes = b""
    """The `Fullness` of each entry, from the top (R10)."""
    reading_notes: tuple[Note, ...] = ()
    link_notes: tuple[Note, ...] = ()

    @property
    def is_truncated(self) -> bool:
        """Whether the document broke off (docs/faults.md row 49)."""
        return any(note.kind is DocumentTruncated for note in self.reading_notes)

    def may_replace(self, row: StoredDocument, family: Family) -> bool:
        """Return whether this document may replace a stored one in a feed of a family."""
        # A truncated document does not replace a whole one if both are in the feed's format. Only a document
        # in the feed's format replaces a memento (R23, R33).
        if row.is_stand_in:
            return self.arrival.family is family
        return not (self.is_truncated and row.family is self.arrival.family is family)


_Document = TypeVar("_Document")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer(Generic[_Document]):
    """A document from a web archive, an import or a listing."""

    origin: Origin
    url: str
    """The URL of the original document; an import or a listing has one of its own."""
    copy_url: str
    """The URL of the copy, for storing or dropping it."""
    captured_at: float
    """Instant when the copy was created: its time of fetch (R10)."""
    is_subscription: bool
    """Whether the copy is of the subscription document at some time."""
    # For its source the whole document; for decisions a `FreshDocument`, and the flags of that do not count.
    document: _Document

    @property
    def is_added(self) -> bool:
        return self.origin.policy.leaves_complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    slug: str
    publisher_status: int | None = None
    retry_after_seconds: float | None = None
    is_unasked: bool = False
    """Whether the publisher was not asked, because too many requests wait."""


# The outcome of the request for the subscription document


@dataclass(frozen=True, slots=True)
class FoundSubscription(Generic[_Document]):
    """The end of the search for a subscription document (R3)."""

    url: str
    """The new URL for fetching the document."""
    document: _Document
    notes: tuple[Note, ...] = ()
    """Reasons why the document may not be the subscription document (R3)."""


class SubscriptionFailed(NamedTuple):
    failure: Failure
    error: Exception
    """The error for the caller of the refresh, if nothing stands in."""
    copy: Offer[FreshDocument] | None = None
    """A memento, if the web archive was asked because nothing is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    url: str
    """The requested URL, before redirects."""
    permanent_url: str | None
    """Target of redirects if all were permanent; else None."""
    headers: Mapping[str, str]
    """Header fields with lower-case names."""
    is_update: bool = False
    """Whether the response was a 304: header fields not in it stay as stored (RFC 9111, section 3.2)."""
    found: FoundSubscription[FreshDocument] | None = None
    """The document; None if the stored one has not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFacts:
    checked_at: float
    fresh_until: float
    is_private: bool
    cache_fields: CacheFields
    unchanged: int | None
    fetch_url: str | None
    """The new fetch URL; None: no change."""
    move: Move | None
    """The state of a permanent move; None: no change."""
    first_seen_at: float | None = None
    """A corrected first sight of the feed, if a fast clock had noted a later time."""
    family_since: float | None = None
    """A corrected start of the family, after a fast clock."""
    had_at: float | None = None
    """None: no change."""
    doubts: int | None = None
    """None: no change."""


# The outcome of a fetch of the walk


class Unchanged(NamedTuple):
    is_uncacheable: bool | None = None
    """None if the response says nothing of it."""


class LedBack(NamedTuple):
    """A redirect from a document of the walk to another one on the path already (R17)."""

    met_url: str


# The response to a fetch; `There` is for HEAD.
Response = FreshDocument | Unchanged | LedBack | Failure | There


# The way to store a document, and the known facts of its entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Fields without a docstring are as in `StoredDocument`."""

    url: str
    role: Role
    rank: int | None
    """None: detached."""
    remembers: StoredDocument | None = None
    """The replaced document, if its departing entries are to be remembered (R6, R35)."""
    is_doubtful: bool = False
    """Whether entries that leave the replaced archive document may have moved (R35)."""
    is_settled: bool = False
    brought_news: bool = True
    found_by: str = ""
    found_in: int = 0
    may_wait: bool = False
    """Whether to store the document together with the next ones; only if no version of it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionPlacement:
    """The way to store the subscription document, and to detach unfitting documents at once (R8, R23)."""

    kind: Kind
    family: Family
    remembers: StoredDocument | None = None
    changes_family: bool = False
    """Whether the feed had another family: then the new family's memory documents return."""
    detached: tuple[int, ...] = ()
    """Documents that leave with their format (R23), or with the feed's old URL: they settle nothing."""


class KnownEntries(NamedTuple):
    updated_at: Mapping[EntryId, float | None]
    """The latest update instants, in attached documents."""
    live: Mapping[EntryId, Copy] = MappingProxyType({})
    """On request: the live copies in documents other than memory documents."""
    subscription_updated_at: float | None = None
    """On request: the date of the subscription document."""
    on_pages: frozenset[EntryId] = frozenset()
    """On request: entries on attached pages."""


def adds_to(
    read: KnownEntries, fresh: FreshDocument, fetched_at: float, *, is_collected: bool = False
) -> bool:
    """Return whether a document adds an entry or a better copy, memory excepted (R6, R10).

    `is_collected` says that an adapter asked for it (R26).
    """
    return any(
        identity not in read.live
        or is_preferred(
            Copy(
                key=ordinal,
                updated_at=updated_at,
                role=Role.PAGE,
                position=_NOWHERE,
                ordinal=ordinal,
                document_updated_at=fresh.updated_at,
                fetched_at=fetched_at,
                generated_at=fetched_at if is_collected else None,
                is_collected=is_collected,
                fullness=fullness,
            ),
            read.live[identity],
            subscription_updated_at=read.subscription_updated_at,
        )
        for ordinal, ((identity, updated_at), fullness) in enumerate(
            zip(fresh.arrival.keys or (), fresh.fullness, strict=True)
        )
    )


# The position of a document in a comparison: of two equal copies, the stored one is preferred.
_NOWHERE: Final = 1 << 62
