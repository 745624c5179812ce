"""Bytes -> all that is to be known of a document, read once (docs/design.md#worker-processes).

    read = read_document(body, Sender(url=final_url, media_type=media_type, links=links, fetched_at=now))
    read.navigation, read.entries, read.digest

What comes back holds neither the text nor an object an entry: who has the body needs no second copy of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

from wholefeed.core.adapters.marks import Marks, marks_of
from wholefeed.core.compose.remember import CopyDates
from wholefeed.core.jobs.packed import PackedEntries, PackedKeys
from wholefeed.core.jobs.rendering import (
    Composed,
    Rendered,
    Stored,
    Style,
    compose_parsed,
    render_parsed,
)
from wholefeed.core.links.classify import Navigation, classify
from wholefeed.core.links.http_links import api_url
from wholefeed.core.merge.merge import counted_instant
from wholefeed.core.model import EntryId, FeedDocument, Tombstone
from wholefeed.core.notes import Note
from wholefeed.core.parse.documents import parse
from wholefeed.core.terms import Family
from wholefeed.core.walk.trails import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """What a publisher said beside the body."""

    url: str
    """Of the document, after redirects."""
    media_type: str
    """Content-Type as sent."""
    links: tuple[str, ...] = ()
    """Values of the Link fields (RFC 8288)."""
    route: str = ""
    """Value of the field X-Discourse-Route."""
    fetched_at: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """What is kept of a document beside its body."""

    family: Family
    version: str
    site_id: str
    """As `Head.site_id`."""
    updated_at: float | None
    """As `Head.updated_at`."""
    tombstones: tuple[Tombstone, ...]
    notes: tuple[Note, ...]
    """On how it reads."""
    entries: PackedEntries
    keys: PackedKeys
    """Of entries without an id of their own."""
    ambiguous: frozenset[EntryId]
    """As `FeedDocument.ambiguous`."""

    @classmethod
    def of(cls, document: FeedDocument, dates: Sequence[CopyDates] = ()) -> Self:
        """Say what is kept of a document; `dates` as in `PackedEntries.of`."""
        return cls(
            family=document.family,
            version=document.version,
            site_id=document.head.site_id,
            updated_at=document.head.updated_at,
            tombstones=document.head.tombstones,
            notes=document.notes,
            entries=PackedEntries.of(document, dates),
            keys=PackedKeys.of(document),
            ambiguous=document.ambiguous,
        )

    def identified(self, ambiguous: Collection[EntryId]) -> Self:
        """Return the same, with entries identified by what is ambiguous in their feed (R9)."""
        return replace(self, entries=self.entries.identified(self.keys.identities(ambiguous)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A document that has come from its publisher."""

    facts: DocumentFacts
    navigation: Navigation
    digest: bytes
    """SHA-256 of the body."""
    span: Span | None
    """Of its entries' dates; None where none counts."""
    marks: Marks
    """What tells who publishes it (R26)."""
    composed: Composed | None = None
    """What it gives as a subscription document, where that was asked for."""
    rendered: Rendered | None = None
    """Its segment if all of its entries are live, where that was asked for and the format is the same."""


def read_document(
    body: bytes,
    sender: Sender,
    *,
    max_depth: int,
    style: Style | None = None,
    is_subscription: bool = False,
) -> ReadDocument:
    """Read a document that a publisher has sent.

    Args:
        body: Without content coding.
        sender: What came with it.
        max_depth: As for `parse`.
        style: Render it for that; None: not at all.
        is_subscription: Compose its head, without others' tombstones, and render it for that.

    Raises:
        ParseError: It is no feed, or not readable as one.
    """
    document = parse(body, sender.url, sender.media_type, max_depth=max_depth)
    composed = compose_parsed(document) if is_subscription else None
    if composed is not None:
        style = composed.style
    is_rendered = style is not None and style.family is document.family
    rendered = render_parsed(document, style) if style is not None and is_rendered else None
    return describe(document, body, sender, composed=composed, rendered=rendered)


def describe(
    document: FeedDocument,
    body: bytes,
    sender: Sender,
    *,
    composed: Composed | None = None,
    rendered: Rendered | None = None,
) -> ReadDocument:
    """Say what is to be known of a document that has been parsed, with what was made of it."""
    return ReadDocument(
        facts=DocumentFacts.of(document),
        navigation=classify(document, sender.links),
        digest=hashlib.sha256(body).digest(),
        span=_span(document, sender.fetched_at),
        marks=marks_of(document, api_url=api_url(sender.links, sender.url), route=sender.route),
        composed=composed,
        rendered=rendered,
    )


def read_again(stored: Stored, dates: Sequence[CopyDates] = ()) -> DocumentFacts:
    """Read a stored document once more; its links stay as they were read.

    Args:
        stored: The document.
        dates: Of remembered copies; they count where there is one for each entry.

    Raises:
        ParseError: Only when another parser has stored it.
    """
    document = stored.parse()
    return DocumentFacts.of(document, dates if len(dates) == len(document.entries) else ())


def _span(document: FeedDocument, fetched_at: float) -> Span | None:
    dates = [entry.order_at for entry in document.entries if entry.order_at is not None]
    if dates and counted_instant(max(dates), fetched_at) is None:
        dates = [at for at in dates if counted_instant(at, fetched_at) is not None]
    return Span(min(dates), max(dates)) if dates else None
