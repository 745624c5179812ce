"""Value types of the domain, in the words of RFC 5005, section 1.2, and the names that specifications fix.

Instants are seconds since the epoch, UTC, exact to the microsecond (`_at`). Spans are byte
offsets into `FeedDocument.text`. Everything here is immutable and knows no I/O.

Documents of one family stand in one another whatever their versions are (rule R23): an entry of Atom 0.3 in
an Atom 1.0 document declares its own namespace as the default one, and the other way round. The output has
the version of the subscription document, in RSS where all documents have it, else 2.0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Container, Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple, NewType

from wholefeed.core.notes import Note

# What a feed and its documents can be


class Family(StrEnum):
    """Formats whose entries can stand in one document (rule R23)."""

    ATOM = "atom"
    RSS = "rss"
    RDF = "rdf"
    JSON = "json"


class Kind(StrEnum):
    """What a subscription document says its feed is (rules R1 to R7)."""

    COMPLETE = "complete"
    ARCHIVED = "archived"
    LEGACY = "legacy"
    PAGED = "paged"
    PLAIN = "plain"


class Role(StrEnum):
    """What a stored document is to its feed. The order is the order of the output (rule R20)."""

    SUBSCRIPTION = "subscription"
    MEMORY = "memory"
    ARCHIVE = "archive"
    PAGE = "page"


class State(StrEnum):
    """What a reconstruction is, as README explains. `loading` and `partial` outrank the kind's own."""

    COMPLETE = "complete"
    LOADING = "loading"
    PARTIAL = "partial"
    PAGED = "paged"
    COLLECTED = "collected"
    LISTED = "listed"
    REMEMBERED = "remembered"


class Relation(StrEnum):
    """Link relations that tie feed documents together (RFC 5005, 3 and 4; the drafts)."""

    SELF = "self"
    CURRENT = "current"
    PREV_ARCHIVE = "prev-archive"
    NEXT_ARCHIVE = "next-archive"
    FIRST = "first"
    LAST = "last"
    NEXT = "next"
    PREVIOUS = "previous"
    PREV = "prev"
    THIS = "this"


# A document, parsed


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

    def identify(self, ambiguous: Collection[EntryId]) -> FeedDocument:
        """Return the same document, its entries identified by what is ambiguous in their feed (rule R9)."""
        if not any(entry.keys for entry in self.entries):
            return self
        return replace(self, entries=tuple(entry.identify(ambiguous) for entry in self.entries))


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
class Scope:
    """What is in force where the entries stand: on the element that contains them."""

    prefixes: Mapping[str, str]
    """Namespace URI per declared prefix; the default namespace under ''."""
    lang: str
    """xml:lang in scope; empty when none."""
    base: str
    """Absolute base URL (RFC 3986, 5.1): xml:base in scope, else the URL after redirects."""


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


class HeadChild(NamedTuple):
    """An element beside the entries, where it stands in the text."""

    namespace: str
    name: str
    start: int
    end: int
    relation: str
    """Of an atom:link, or of a JSON Feed's member that is a link, as in `Link`; empty otherwise."""

    @property
    def plain_name(self) -> str:
        """The name without regard to case and hyphens, in which publishers differ."""
        return self.name.replace("-", "").replace("_", "").lower()


class Channel(NamedTuple):
    """The channel element of an RDF document, beside which its entries stand."""

    tag: Span
    """Its start tag."""
    end: int
    """Behind its end tag."""


class Span(NamedTuple):
    """A piece of the text."""

    start: int
    end: int


class Tombstone(NamedTuple):
    """An at:deleted-entry of the head: the publisher has deleted an entry (RFC 6721, 3; rule R19)."""

    identity: EntryId
    when_at: float
    """The instant of the deletion: copies that were updated later live."""
    ref: str
    """The id of the entry as written; empty where it is too long to be repeated."""


class HeadContext(NamedTuple):
    """What entries inherit, self-contained: from RFC 4287, 4.2.1 and 4.2.10; in JSON Feed 1.1, "Items"."""

    authors: tuple[bytes, ...] = ()
    rights: tuple[bytes, ...] = ()
    language: bytes = b""
    """Of JSON Feed alone: in XML each entry says its own."""


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
    """None where an id of its own identifies it."""
    is_absolute: bool = False
    """Whether it was seen, as it was read, that no URL in it has to be written absolute; in Atom."""
    has_content: bool = False
    """Whether full content stands in it, and is not empty (R10)."""

    def identify(self, ambiguous: Container[EntryId]) -> Entry:
        """Return the same entry, identified by the first of its keys that is not ambiguous, if it has any."""
        return self if self.keys is None else self._replace(identity=self.keys.identity(ambiguous))


# What identifies an entry


EntryId = NewType("EntryId", bytes)
"""Identity of an entry (rule R9), digested to 16 bytes; scoped to its feed."""


class EntryKeys(NamedTuple):
    """What can identify an entry that has no id of its own (rule R9), digested as identities are."""

    link: EntryId | None
    """Of its link, absolute where it can be made so."""
    enclosure: EntryId | None
    """Of its first enclosure's URL."""
    content: EntryId
    """Of link, title, content, enclosures, date and (RSS) author: no two unlike entries share it."""
    enclosures: EntryId | None
    """Of all its enclosures' URLs, to tell items of one link apart."""

    def identity(self, ambiguous: Container[EntryId]) -> EntryId:
        for key in (self.link, self.enclosure):
            if key is not None and key not in ambiguous:
                return key
        return self.content


class Traits(NamedTuple):
    """What two copies of one post have in common, whatever their ids are (rule R36); each is a digest."""

    ids: tuple[int, ...]
    """Of an id that is a URL, but for how it is spelt."""
    links: tuple[int, ...]
    """Of its link and when it was published."""
    titles: tuple[int, ...]
    """Of its title and when it was published."""
    link: EntryId | None
    """Of its link as R9 has it."""
    has_id: bool
    """Whether it has an id of its own; else its link, if it is not ambiguous, stands for one."""

    def without_link(self, ambiguous: Container[EntryId]) -> Traits:
        """Return the same, without those of a link that identifies nothing in the feed (R9)."""
        if self.link is None or self.link not in ambiguous:
            return self
        return self._replace(ids=self.ids if self.has_id else (), links=())


def entry_id(text: str) -> EntryId:
    """Digest the text that identifies an entry: compared by character, trimmed (RFC 4287, 4.2.6.1)."""
    return written_id(text.encode())


def written_id(text: bytes) -> EntryId:
    """Digest the text that identifies an entry, written in UTF-8."""
    digest = _UNUSED.copy()
    digest.update(text.strip(b" \t\r\n"))
    return EntryId(digest.digest())


ENTRY_ID_BYTES: Final = 16
_UNUSED: Final = hashlib.blake2b(digest_size=ENTRY_ID_BYTES)
"""Copying it is faster than making another one."""


# How a document of each family goes out


MEDIA_TYPE: Final = {
    Family.ATOM: "application/atom+xml",
    Family.RSS: "application/rss+xml",
    Family.RDF: "application/rdf+xml",
    Family.JSON: "application/feed+json",
}


def content_type(family: Family) -> str:
    """Return the value of Content-Type. JSON has no charset parameter (RFC 8259, section 11)."""
    return MEDIA_TYPE[family] if family is Family.JSON else f"{MEDIA_TYPE[family]}; charset=utf-8"


SEPARATOR: Final = {Family.ATOM: b"\n", Family.RSS: b"\n", Family.RDF: b"\n", Family.JSON: b",\n"}
"""What stands between two entries. Behind the last one of a segment it is `segment_end`."""


def segment_separator(family: Family) -> bytes:
    """Return what an answer puts between two segments, and between the pseudo-entry and the first one."""
    return SEPARATOR[family] if family is Family.JSON else b""


def segment_end(family: Family) -> bytes:
    """Return what ends a segment: nothing in JSON, whose array must not end in a comma (RFC 8259, 5)."""
    return b"" if family is Family.JSON else SEPARATOR[family]


def default_namespace(family: Family, version: str = "") -> str:
    """Return the default namespace around the entries of a document that goes out.

    `version` is that of the subscription document; empty for the usual one.
    """
    if family is Family.ATOM:
        return ATOM_03_NS if version == ATOM_03 else ATOM_NS
    if family is Family.RDF:
        return RSS_090_NS if version == RSS_090 else RSS_10_NS
    return ""


def common_version(family: Family, version: str, versions: Set[str]) -> str:
    """Return the version that a feed goes out as, by the subscription document's and those of all documents.

    Where those of RSS differ it is the newest, which has all elements.
    """
    return version if family is not Family.RSS or versions == {version} else RSS_20


def rss_version(version: str) -> str:
    """Return what the root of an RSS document says: a version that there is."""
    return version if version in _OLD_RSS else RSS_20


ATOM_03: Final = "0.3"
RSS_090: Final = "0.90"
RSS_20: Final = "2.0"
_OLD_RSS: Final = frozenset({"0.91", "0.92", "0.93", "0.94"})


# Names that specifications fix, and our own


ATOM_NS: Final = "http://www.w3.org/2005/Atom"
ATOM_03_NS: Final = "http://purl.org/atom/ns#"
ATOM_NAMESPACES: Final = frozenset({ATOM_NS, ATOM_03_NS})
RDF_NS: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RSS_10_NS: Final = "http://purl.org/rss/1.0/"
RSS_090_NS: Final = "http://my.netscape.com/rdf/simple/0.9/"

RSS_NAMESPACES: Final = frozenset(
    {"", "http://backend.userland.com/rss2", "http://backend.userland.com/rss"}
    | {"http://blogs.law.harvard.edu/tech/rss", "http://my.netscape.com/publish/formats/rss-0.91.dtd"}
)
"""Of RSS's own people: items in these are known in every document, with a prefix too."""
DC_NS: Final = "http://purl.org/dc/elements/1.1/"
FH_NS: Final = "http://purl.org/syndication/history/1.0"
TOMBSTONE_NS: Final = "http://purl.org/atompub/tombstones/1.0"
DCTERMS_NS: Final = "http://purl.org/dc/terms/"
DSIG_NS: Final = "http://www.w3.org/2000/09/xmldsig#"
XML_NS: Final = "http://www.w3.org/XML/1998/namespace"
IANA_RELATION_PREFIX: Final = "http://www.iana.org/assignments/relation/"
"""RFC 4287, 4.2.7.2: a bare relation name is short for an IRI below this one."""

NEW_FEED_URL: Final = "newfeedurl"
"""`HeadChild.plain_name` of itunes:new-feed-url, in whichever spelling of its namespace."""

WELL_KNOWN_PREFIXES: Final = {
    "atom": ATOM_NS,
    "content": "http://purl.org/rss/1.0/modules/content/",
    "dc": DC_NS,
    "dcterms": DCTERMS_NS,
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "georss": "http://www.georss.org/georss",
    "gml": "http://www.opengis.net/gml",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "thr": "http://purl.org/syndication/thread/1.0",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "psc": "http://podlove.org/simple-chapters",
    "at": TOMBSTONE_NS,
    "fh": FH_NS,
    "googleplay": "http://www.google.com/schemas/play-podcasts/1.0",
    "feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
    "app": "http://www.w3.org/2007/app",
    "opensearch": "http://a9.com/-/spec/opensearch/1.1/",
    "creativeCommons": "http://backend.userland.com/creativeCommonsRssModule",
    "cc": "http://web.resource.org/cc/",
    "activity": "http://activitystrea.ms/spec/1.0/",
    "xhtml": "http://www.w3.org/1999/xhtml",
    "rdf": RDF_NS,
}
"""Prefixes that the output root declares when a fragment uses them (docs/design.md#verbatim-entries).

The position of a prefix in this table is its bit in stored masks: append only.
"""
EXTENSION: Final = "_wholefeed"
"""The proxy's own member of a JSON Feed's head: where the feed comes from (`via`)."""
MEMORY_URL: Final = "urn:wholefeed:memory:"
"""How the URL of a document of remembered copies begins, its number behind it; no publisher's does."""
IMPORT_URL: Final = "urn:wholefeed:import:"
"""How the URL of a document begins that somebody had kept and imported (I1), its digest behind it."""
LIST_URL: Final = "urn:wholefeed:list:"
"""How the URL of a document begins that holds what a page of the publisher's lists (H7), its URL behind."""
