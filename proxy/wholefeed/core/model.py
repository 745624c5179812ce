"""Value types of the domain, in the words of RFC 5005, section 1.2.

Instants are seconds since the epoch, UTC, exact to the microsecond (`_at`). Spans are byte
offsets into `FeedDocument.text`. Everything here is immutable and knows no I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, NewType

from wholefeed.core.notes import Note
from wholefeed.core.terms import Family

EntryId = NewType("EntryId", bytes)
"""Identity of an entry (rule R9), digested to 16 bytes; scoped to its feed."""


ENTRY_ID_BYTES: Final = 16
_UNUSED: Final = hashlib.blake2b(digest_size=ENTRY_ID_BYTES)
"""To copy it takes less than to make another one."""


def entry_id(text: str) -> EntryId:
    """Digest the text that identifies an entry: compared by character, trimmed (RFC 4287, 4.2.6.1)."""
    return written_id(text.encode())


def written_id(text: bytes) -> EntryId:
    """Do the same with what is written in UTF-8."""
    digest = _UNUSED.copy()
    digest.update(text.strip(b" \t\r\n"))
    return EntryId(digest.digest())


class EntryKeys(NamedTuple):
    """What can identify an entry that has no id of its own (rule R9), digested as identities are."""

    link: EntryId | None
    """Of its link, absolute where it can be made so."""
    enclosure: EntryId | None
    """Of its first enclosure's URL."""
    content: EntryId
    """Of link, title, content, enclosures and date: no two unlike entries share it."""
    enclosures: EntryId | None
    """Of all its enclosures' URLs, to tell items of one link apart."""

    def identity(self, ambiguous: Container[EntryId]) -> EntryId:
        """Return the first key that is not ambiguous."""
        for key in (self.link, self.enclosure):
            if key is not None and key not in ambiguous:
                return key
        return self.content


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
    keys: EntryKeys | None = None
    """None where it has an id of its own."""
    is_absolute: bool = False
    """Whether it was seen, as it was read, that no URL in it has to be written absolute; in Atom."""

    def identified(self, ambiguous: Container[EntryId]) -> Entry:
        """Return the same entry, identified by the first of its keys that is not ambiguous, if it has any."""
        return self if self.keys is None else self._replace(identity=self.keys.identity(ambiguous))


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
    ambiguous: frozenset[EntryId] = frozenset()
    """Keys that identify no entry, by what stands in this document (rule R9)."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """What is in force where entries stand; `Entry.scope` counts into it."""
        return (self.head.scope, *self.further_scopes)

    def identified(self, ambiguous: Collection[EntryId]) -> FeedDocument:
        """Return the same document, its entries identified by what is ambiguous in their feed (rule R9)."""
        if not any(entry.keys for entry in self.entries):
            return self
        return replace(self, entries=tuple(entry.identified(ambiguous) for entry in self.entries))
