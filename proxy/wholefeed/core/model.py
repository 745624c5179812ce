"""Value types of the domain, in the words of RFC 5005, section 1.2, and names fixed by specifications.

Instants (`_at`) are epoch seconds, exact to the microsecond. Spans are byte offsets into `FeedDocument.text`.

Documents of one family can be mixed (R23): entries of another version declare their own default namespace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Container, Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple, NewType

from wholefeed.core.notes import Note

# Kinds of feeds and documents


class Family(StrEnum):
    ATOM = "atom"
    RSS = "rss"
    RDF = "rdf"
    JSON = "json"


class Kind(StrEnum):
    """The kind of a feed, by its subscription document (R1 to R7)."""

    COMPLETE = "complete"
    ARCHIVED = "archived"
    LEGACY = "legacy"
    PAGED = "paged"
    PLAIN = "plain"


class Role(StrEnum):
    """Roles of stored documents, in output order (R20)."""

    SUBSCRIPTION = "subscription"
    MEMORY = "memory"
    ARCHIVE = "archive"
    PAGE = "page"


class State(StrEnum):
    """The state of a reconstruction (README); `loading` and `partial` outrank the others."""

    COMPLETE = "complete"
    LOADING = "loading"
    PARTIAL = "partial"
    PAGED = "paged"
    COLLECTED = "collected"
    LISTED = "listed"
    REMEMBERED = "remembered"


class Relation(StrEnum):
    """Link relations of RFC 5005, 3 and 4, and its drafts."""

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
    """A parsed document; `text` is UTF-8."""

    url: str
    """After redirects."""
    family: Family
    version: str
    """In the format's words, such as "0.91"; for JSON Feed "1" or "1.1"."""
    text: bytes
    head: Head
    entries: tuple[Entry, ...]
    notes: tuple[Note, ...] = ()
    further_scopes: tuple[Scope, ...] = ()
    """Scopes of entries with another parent than the head's children (RSS)."""
    ambiguous: frozenset[EntryId] = frozenset()
    """Keys that identify no entry here (R9)."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return (self.head.scope, *self.further_scopes)

    def identify(self, ambiguous: Collection[EntryId]) -> FeedDocument:
        """Identify entries by unambiguous keys (R9)."""
        if not any(entry.keys for entry in self.entries):
            return self
        return replace(self, entries=tuple(entry.identify(ambiguous) for entry in self.entries))


@dataclass(frozen=True, slots=True)
class Head:
    site_id: str
    """atom:id, channel link, rdf:about or home_page_url (R24); may be empty."""
    title: str
    updated_at: float | None
    """atom:updated, lastBuildDate, else the channel's pubDate."""
    links: tuple[Link, ...]
    history: tuple[HistoryElement, ...]
    children: tuple[HeadChild, ...]
    scope: Scope
    tombstones: tuple[Tombstone, ...] = ()
    channel: Channel | None = None
    """RDF only; its children are among `children`."""


@dataclass(frozen=True, slots=True)
class Scope:
    prefixes: Mapping[str, str]
    """Namespace URI by prefix; '' is the default."""
    lang: str
    """xml:lang; empty: none."""
    base: str
    """Absolute: xml:base, else the URL after redirects (RFC 3986, 5.1)."""


class Link(NamedTuple):
    """A resolved link of the head (R11, R12)."""

    relation: str
    """Lower case, without the IANA prefix."""
    target: str
    """Absolute URL; empty: the href is empty or unresolvable."""
    media_type: str
    """Lower case, without parameters; empty: absent."""
    href: str
    """The written `href`."""


class HistoryElement(NamedTuple):
    """A child of the head in the fh namespace."""

    name: str
    text: str
    """Trimmed."""


class HeadChild(NamedTuple):
    namespace: str
    name: str
    start: int
    end: int
    relation: str
    """See `Link`; empty: not a link."""

    @property
    def plain_name(self) -> str:
        """Name without case, hyphens and underscores: publishers differ."""
        return self.name.replace("-", "").replace("_", "").lower()


class Channel(NamedTuple):
    """RDF's channel element; entries stand beside it."""

    tag: Span
    end: int
    """Offset behind its end tag."""


class Span(NamedTuple):
    start: int
    end: int


class Tombstone(NamedTuple):
    """An at:deleted-entry (RFC 6721, 3; R19)."""

    identity: EntryId
    when_at: float
    """Instant of the deletion; copies with later updates live."""
    ref: str
    """The id as written; empty: too long to repeat."""


class HeadContext(NamedTuple):
    """Inherited elements (RFC 4287, 4.2.1 and 4.2.10; JSON Feed 1.1, "Items"), self-contained."""

    authors: tuple[bytes, ...] = ()
    rights: tuple[bytes, ...] = ()
    language: bytes = b""
    """JSON Feed only."""


class Entry(NamedTuple):
    identity: EntryId
    updated_at: float | None
    """Update instant for R10; None: absent."""
    order_at: float | None
    """Sort key of the output (R20): updated, else published, else pubDate."""
    start: int
    end: int
    has_author: bool = True
    """Whether it or its atom:source has one; True where entries inherit none."""
    has_rights: bool = True
    scope: int = 0
    """Index in `FeedDocument.scopes`."""
    keys: EntryKeys | None = None
    """None: its own id identifies it."""
    is_absolute: bool = False
    """Whether the parser found no URL to make absolute; Atom only."""
    has_content: bool = False
    """Whether it has full content (R10)."""

    def identify(self, ambiguous: Container[EntryId]) -> Entry:
        return self if self.keys is None else self._replace(identity=self.keys.identity(ambiguous))


# Identity of entries


EntryId = NewType("EntryId", bytes)
"""Digest that identifies an entry in its feed (R9)."""


class EntryKeys(NamedTuple):
    """Digests to identify an entry without an id (R9)."""

    link: EntryId | None
    """Its link, absolute if possible."""
    enclosure: EntryId | None
    """URL of its first enclosure."""
    content: EntryId
    """Link, title, content, enclosures, date and (RSS) author: unlike entries differ."""
    enclosures: EntryId | None
    """All enclosure URLs, to tell items of one link apart."""

    def identity(self, ambiguous: Container[EntryId]) -> EntryId:
        for key in (self.link, self.enclosure):
            if key is not None and key not in ambiguous:
                return key
        return self.content


class Traits(NamedTuple):
    """Digests that copies of one post share under different ids (R36)."""

    ids: tuple[int, ...]
    """Ids in the form of URLs, in any spelling."""
    links: tuple[int, ...]
    """Link with time of publication."""
    titles: tuple[int, ...]
    """Title with time of publication."""
    link: EntryId | None
    has_id: bool
    """Whether it has an id; else an unambiguous link replaces it."""

    def without_link(self, ambiguous: Container[EntryId]) -> Traits:
        """Return the traits without an ambiguous link (R9)."""
        if self.link is None or self.link not in ambiguous:
            return self
        return self._replace(ids=self.ids if self.has_id else (), links=())


def entry_id(text: str) -> EntryId:
    """Digest an identifying text, trimmed (RFC 4287, 4.2.6.1)."""
    return written_id(text.encode())


def written_id(text: bytes) -> EntryId:
    digest = _UNUSED.copy()
    digest.update(text.strip(b" \t\r\n"))
    return EntryId(digest.digest())


ENTRY_ID_BYTES: Final = 16
# Copying it is faster than creating another.
_UNUSED: Final = hashlib.blake2b(digest_size=ENTRY_ID_BYTES)


# Output of each family


MEDIA_TYPE: Final = {
    Family.ATOM: "application/atom+xml",
    Family.RSS: "application/rss+xml",
    Family.RDF: "application/rdf+xml",
    Family.JSON: "application/feed+json",
}


def content_type(family: Family) -> str:
    """Return the Content-Type; JSON has no charset parameter (RFC 8259, section 11)."""
    return MEDIA_TYPE[family] if family is Family.JSON else f"{MEDIA_TYPE[family]}; charset=utf-8"


SEPARATOR: Final = {Family.ATOM: b"\n", Family.RSS: b"\n", Family.RDF: b"\n", Family.JSON: b",\n"}
"""Bytes between two entries."""


def segment_separator(family: Family) -> bytes:
    """Return the bytes between segments, and behind the pseudo-entry."""
    return SEPARATOR[family] if family is Family.JSON else b""


def segment_end(family: Family) -> bytes:
    """Return the end of a segment; in JSON no comma may end an array (RFC 8259, 5)."""
    return b"" if family is Family.JSON else SEPARATOR[family]


def default_namespace(family: Family, version: str = "") -> str:
    if family is Family.ATOM:
        return ATOM_03_NS if version == ATOM_03 else ATOM_NS
    if family is Family.RDF:
        return RSS_090_NS if version == RSS_090 else RSS_10_NS
    return ""


def common_version(family: Family, version: str, versions: Set[str]) -> str:
    """Return the output version; mixed RSS becomes the newest, which has all elements."""
    return version if family is not Family.RSS or versions == {version} else RSS_20


def rss_version(version: str) -> str:
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
"""RSS's own namespaces; items in them are recognised, with or without prefix."""
DC_NS: Final = "http://purl.org/dc/elements/1.1/"
FH_NS: Final = "http://purl.org/syndication/history/1.0"
TOMBSTONE_NS: Final = "http://purl.org/atompub/tombstones/1.0"
DCTERMS_NS: Final = "http://purl.org/dc/terms/"
DSIG_NS: Final = "http://www.w3.org/2000/09/xmldsig#"
XML_NS: Final = "http://www.w3.org/XML/1998/namespace"
IANA_RELATION_PREFIX: Final = "http://www.iana.org/assignments/relation/"
"""Bare relation names are short for IRIs below this one (RFC 4287, 4.2.7.2)."""

NEW_FEED_URL: Final = "newfeedurl"
"""`HeadChild.plain_name` of itunes:new-feed-url, in any namespace."""

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
"""Prefixes that the root declares if a fragment uses them (docs/design.md#verbatim-entries).

A prefix's position is its bit in stored masks: append only.
"""
EXTENSION: Final = "_wholefeed"
"""Our own member of JSON Feeds: in the head the feed's source (`via`), in items a text's page (T4)."""
MEMORY_URL: Final = "urn:wholefeed:memory:"
"""Prefix of URLs of remembered copies; a number follows."""
IMPORT_URL: Final = "urn:wholefeed:import:"
"""Prefix of URLs of imports (I1); a digest follows."""
LIST_URL: Final = "urn:wholefeed:list:"
"""Prefix of URLs of listings (H7); the page's URL follows."""
