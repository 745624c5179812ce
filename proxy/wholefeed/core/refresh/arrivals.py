"""What comes of the fetches of a refresh, and how it is stored."""

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
    """A document that has just been fetched, as far as decisions need it; its body is kept elsewhere."""

    arrival: Arrival
    kind: Kind
    """What it says that its feed is; meant for the subscription document alone (R0)."""
    older_relation: str
    is_tentative: bool
    """Whether that leads to a chain only if the document it leads to is not newer (R4)."""
    updated_at: float | None = None
    """Of the document itself (R10)."""
    marks: Marks = field(default_factory=Marks)
    validators: ValidatorPair = NO_VALIDATORS
    order: tuple[float | None, ...] = ()
    """What the output sorts its entries by, from the top; of a page that an adapter asked for."""
    fullness: bytes = b""
    """Of each of its entries, from the top, as a `Fullness` (R10)."""
    reading_notes: tuple[Note, ...] = ()
    link_notes: tuple[Note, ...] = ()

    @property
    def is_truncated(self) -> bool:
        """Whether it broke off (docs/faults.md row 49)."""
        return any(note.kind is DocumentTruncated for note in self.reading_notes)

    def may_replace(self, row: StoredDocument, family: Family) -> bool:
        """Whether a stored document gives way to this in a feed of a family.

        A whole one in the feed's format does to none that broke off; a web archive's copy to no other format
        than the feed's (R23, R33).
        """
        if row.is_stand_in:
            return self.arrival.family is family
        return not (self.is_truncated and row.family is self.arrival.family is family)


_Document = TypeVar("_Document")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer(Generic[_Document]):
    """A document from another source than the publisher's links: a web archive, an import, a list."""

    origin: Origin
    url: str
    """The URL of the document that it stands for; an import and a list have one of their own."""
    copy_url: str
    """Where the copy stands, by which it is kept or dropped."""
    captured_at: float
    """When it was made, which is its time of fetch (R10)."""
    is_subscription: bool
    """Whether it is a copy of the subscription document, as that was at some time."""
    document: _Document
    """The whole document for its source; for decisions a `FreshDocument`, in which no flag counts."""

    @property
    def is_added(self) -> bool:
        """Whether it joins the feed from beside: somebody had kept it, or a page lists it."""
        return self.origin.policy.leaves_complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a document could not be had, or could not be used."""

    slug: str
    publisher_status: int | None = None
    """The HTTP status that the publisher sent, where there was one."""
    retry_after_seconds: float | None = None
    is_unasked: bool = False
    """Whether the publisher was not even asked: too much waits already."""


# What came of the question for the subscription document


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionCame:
    """The subscription document is here, whole or as much as there is of it."""

    url: str
    """What it is looked for by from now on."""
    reply: Reply
    fresh: FreshDocument
    notes: tuple[Note, ...] = ()
    """Why it may not be the subscription document (R3)."""


class SubscriptionFailed(NamedTuple):
    """The subscription document could not be had."""

    failure: Failure
    error: Exception
    """Which whoever asked for the refresh is told, where nothing stands in."""
    copy: Offer[FreshDocument] | None = None
    """What an archive has of it, where it was asked because nothing is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a publisher said beside the subscription document."""

    url: str
    """As asked for."""
    permanent_url: str | None
    """Where redirects led that were all permanent; None where there were none, or others."""
    headers: Mapping[str, str]
    """Lower-case names."""
    is_update: bool = False
    """Whether it was a 304: what it does not say is as it was (RFC 9111, section 3.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFacts:
    """What a reply means for the feed: its publisher is there, and freshness counts from now."""

    checked_at: float
    fresh_until: float
    is_private: bool
    cache_fields: CacheFields
    unchanged: int | None
    """The document that it says has not changed."""
    fetch_url: str | None
    """Where the subscription document is asked for from now on, when that is elsewhere."""
    move: Move | None
    """What is known of a permanent move, when that is something else than before."""
    first_seen_at: float | None = None
    """When the feed was first seen, where a clock that ran ahead had noted a later time."""
    family_since: float | None = None
    """The same of when it came in its family."""
    had_at: float | None = None
    """As in `StoredFeed`; None: it is as it was."""
    doubts: int | None = None
    """The same."""


# What came of a fetch of the walk


class Unchanged(NamedTuple):
    """The publisher says that a stored document has not changed."""

    is_uncacheable: bool | None = None
    """As `StoredDocument.is_uncacheable`; None where it says nothing of that: it is as it was."""


class LedBack(NamedTuple):
    """The URL of a document of the walk redirects to another one that is on the path already (R17)."""

    met_url: str


Response = FreshDocument | Unchanged | LedBack | Failure | There
"""`There`: HEAD was answered."""


# How a document is stored, and what is known of its entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How a document that has come is stored; a field without a word here is as in `StoredDocument`."""

    url: str
    """It is put under this one."""
    role: Role
    rank: int | None
    """None: it is kept, but no part of the feed yet."""
    remembers: StoredDocument | None = None
    """What it replaces, when the entries that leave that are to be kept: a page (R6), an archive (R35)."""
    is_doubtful: bool = False
    """Whether entries that leave the archive document that it replaces may have moved (R35)."""
    is_settled: bool = False
    brought_news: bool = True
    found_by: str = ""
    found_in: int = 0
    may_wait: bool = False
    """Whether it may be put with those that come next: nothing is stored of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionPlacement:
    """How the subscription document is stored, and what no longer fits it with it, all at once (R8, R23)."""

    kind: Kind
    """Of the feed from now on."""
    family: Family
    """The same."""
    remembers: StoredDocument | None = None
    """The document that it replaces, when the copies of entries that leave it are to be kept."""
    changes_family: bool = False
    """Whether the feed was of another family: then its memory documents come back."""
    detached: tuple[int, ...] = ()
    """Documents that leave with their format (R23), or the URL that the feed had: they settle nothing."""


class KnownEntries(NamedTuple):
    """What is stored of entries."""

    updated_at: Mapping[EntryId, float | None]
    """The latest update instant of those that stand in attached documents."""
    live: Mapping[EntryId, Copy] = MappingProxyType({})
    """Where that was asked for: the copies that are live in documents other than memory."""
    subscription_updated_at: float | None = None
    """Where that was asked for: the date of the subscription document."""
    on_pages: frozenset[EntryId] = frozenset()
    """Where that was asked for: those that stand on attached pages."""


def adds_to(
    read: KnownEntries, fresh: FreshDocument, fetched_at: float, *, is_collected: bool = False
) -> bool:
    """Return whether a document holds an entry, or a better copy, that no other does but memory (R6, R10).

    `read` is what is stored of its entries, `is_collected` whether an adapter asked for it (R26).
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


_NOWHERE: Final = 1 << 62
"""The place of a document that is compared with what is stored: of two equal copies it is not preferred."""
