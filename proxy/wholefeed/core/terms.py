"""Names that specifications fix: formats, namespaces, link relations, states.

Only constants and enumerations live here; nothing in this module decides anything.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

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


class Family(StrEnum):
    """Formats whose entries can stand in one document (rule R23)."""

    ATOM = "atom"
    RSS = "rss"
    RDF = "rdf"
    JSON = "json"


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


class Kind(StrEnum):
    """What a subscription document says its feed is (rules R1 to R7)."""

    COMPLETE = "complete"
    ARCHIVED = "archived"
    LEGACY = "legacy"
    PAGED = "paged"
    PLAIN = "plain"


class State(StrEnum):
    """What a reconstruction is, as README explains. `loading` and `partial` outrank the kind's own."""

    COMPLETE = "complete"
    LOADING = "loading"
    PARTIAL = "partial"
    PAGED = "paged"
    COLLECTED = "collected"
    REMEMBERED = "remembered"


class Role(StrEnum):
    """What a stored document is to its feed. The order is the order of the output (rule R20)."""

    SUBSCRIPTION = "subscription"
    MEMORY = "memory"
    ARCHIVE = "archive"
    PAGE = "page"
