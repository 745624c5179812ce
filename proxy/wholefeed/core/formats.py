"""The formats that documents come in and go out as: family and version (rule R23).

Documents of one family stand in one another whatever their versions are: an entry of Atom 0.3 in an
Atom 1.0 document declares its own namespace as the default one, and the other way round. The output has
the version of the subscription document, in RSS where all documents have it, else 2.0.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from wholefeed.core.terms import ATOM_03_NS, ATOM_NS, RSS_090_NS, RSS_10_NS, Family

ATOM_03: Final = "0.3"
RSS_090: Final = "0.90"
RSS_20: Final = "2.0"
_OLD_RSS: Final = frozenset({"0.91", "0.92", "0.93", "0.94"})

MEDIA_TYPE: Final = {
    Family.ATOM: "application/atom+xml",
    Family.RSS: "application/rss+xml",
    Family.RDF: "application/rdf+xml",
    Family.JSON: "application/feed+json",
}

SEPARATOR: Final = {Family.ATOM: b"\n", Family.RSS: b"\n", Family.RDF: b"\n", Family.JSON: b",\n"}
"""What stands between two entries. Behind the last one of a segment it is `segment_end`."""


def content_type(family: Family) -> str:
    """Return the value of Content-Type. JSON has no charset parameter (RFC 8259, section 11)."""
    return MEDIA_TYPE[family] if family is Family.JSON else f"{MEDIA_TYPE[family]}; charset=utf-8"


def segment_end(family: Family) -> bytes:
    """Return what ends a segment: nothing in JSON, whose array must not end in a comma (RFC 8259, 5)."""
    return b"" if family is Family.JSON else SEPARATOR[family]


def segment_separator(family: Family) -> bytes:
    """Return what an answer puts between two segments, and between the pseudo-entry and the first one."""
    return SEPARATOR[family] if family is Family.JSON else b""


def default_namespace(family: Family, version: str = "") -> str:
    """Return the default namespace around the entries of a document that goes out.

    Args:
        family: The format.
        version: Of the subscription document; empty for the usual one.
    """
    if family is Family.ATOM:
        return ATOM_03_NS if version == ATOM_03 else ATOM_NS
    if family is Family.RDF:
        return RSS_090_NS if version == RSS_090 else RSS_10_NS
    return ""


def common_version(family: Family, version: str, versions: Set[str]) -> str:
    """Return the version that a feed goes out as.

    Args:
        family: Of the feed.
        version: Of the subscription document.
        versions: Of all documents. Where those of RSS differ it is the newest, which has all elements.
    """
    return version if family is not Family.RSS or versions == {version} else RSS_20


def rss_version(version: str) -> str:
    """Return what the root of an RSS document says: a version that there is."""
    return version if version in _OLD_RSS else RSS_20
