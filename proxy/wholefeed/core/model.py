"""Value types of the domain, in the words of RFC 5005, section 1.2.

Instants are seconds since the epoch, UTC, exact to the microsecond (`_at`). Spans are byte
offsets into `FeedDocument.text`. Everything here is immutable and knows no I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, NewType

from wholefeed.core.notes import Note
from wholefeed.core.terms import Family

EntryId = NewType("EntryId", bytes)
"""Identity of an entry (rule R9), digested to 16 bytes; scoped to its feed."""


ENTRY_ID_BYTES: Final = 16


def entry_id(text: str) -> EntryId:
    """Digest the text that identifies an entry: compared by character, trimmed (RFC 4287, 4.2.6.1)."""
    return EntryId(hashlib.blake2b(text.strip(" \t\r\n").encode(), digest_size=ENTRY_ID_BYTES).digest())


class Entry(NamedTuple):
    """One entry as it stands in one feed document."""

    identity: EntryId
    updated_at: float | None
    """The update instant of rule R10; None where the entry gives none."""
    order_at: float | None
    """What the output sorts by (rule R20): updated, else published, else pubDate."""
    start: int
    end: int
    has_author: bool = True
    """Whether an author stands in it or in its atom:source. True where entries inherit none."""
    has_rights: bool = True
    """The same for atom:rights."""
    scope: int = 0
    """Which of `FeedDocument.scopes` it stands in: 0 is the head's."""


class Link(NamedTuple):
    """An atom:link of the head, resolved (rules R11 and R12)."""

    relation: str
    """Lower case, without the IANA prefix."""
    target: str
    """Absolute URL; empty when the href was empty or could not be resolved."""
    media_type: str
    """The type attribute, lower case, without parameters; empty when absent."""
    href: str
    """As written."""


class HistoryElement(NamedTuple):
    """A child of the head in the fh namespace: archive, complete, and those of the drafts."""

    name: str
    text: str
    """Its character content, trimmed."""


class Tombstone(NamedTuple):
    """An at:deleted-entry of the head: the publisher has deleted an entry (RFC 6721, 3; rule R19)."""

    identity: EntryId
    when_at: float
    """The instant of the deletion: copies that were updated later live."""
    ref: str
    """The id of the entry as written; empty where it is too long to be repeated."""


class Span(NamedTuple):
    """A piece of the text."""

    start: int
    end: int


class Channel(NamedTuple):
    """The channel element of an RDF document, beside which its entries stand."""

    tag: Span
    """Its start tag."""
    end: int
    """Behind its end tag."""


class HeadChild(NamedTuple):
    """An element beside the entries, where it stands in the text."""

    namespace: str
    name: str
    start: int
    end: int
    relation: str
    """Of an atom:link, or of a JSON Feed's member that is a link, as in `Link`; empty otherwise."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is in force where the entries stand: on the element that contains them."""

    prefixes: Mapping[str, str]
    """Namespace URI per declared prefix; the default namespace under ''."""
    lang: str
    """xml:lang in scope; empty when none."""
    base: str
    """Absolute base URL (RFC 3986, 5.1): xml:base in scope, else the URL after redirects."""


class HeadContext(NamedTuple):
    """What entries inherit, self-contained: from RFC 4287, 4.2.1 and 4.2.10; in JSON Feed 1.1, "Items"."""

    authors: tuple[bytes, ...] = ()
    rights: tuple[bytes, ...] = ()
    language: bytes = b""
    """Of JSON Feed alone: in XML each entry says its own."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head section: the feed-wide metadata of one document."""

    site_id: str
    """What names the feed in it (rule R24): atom:id, channel link, rdf:about, home_page_url; may be empty."""
    title: str
    updated_at: float | None
    """atom:updated, lastBuildDate, else the channel's pubDate."""
    links: tuple[Link, ...]
    history: tuple[HistoryElement, ...]
    children: tuple[HeadChild, ...]
    scope: Scope
    tombstones: tuple[Tombstone, ...] = ()
    channel: Channel | None = None
    """Of RDF; its children stand among `children`, with those of the root."""


@dataclass(frozen=True, slots=True)
class FeedDocument:
    """One feed document, parsed. `text` is the whole of it in UTF-8."""

    url: str
    """After redirects."""
    family: Family
    version: str
    """As in the format's own words: "1.0", "2.0", "0.91"; of JSON Feed "1", "1.1"."""
    text: bytes
    head: Head
    entries: tuple[Entry, ...]
    notes: tuple[Note, ...] = ()
    further_scopes: tuple[Scope, ...] = ()
    """What is in force for entries that do not stand beside the head's children (RSS)."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """What is in force where entries stand; `Entry.scope` counts into it."""
        return (self.head.scope, *self.further_scopes)
