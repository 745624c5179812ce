"""Which elements and attributes of a feed are URLs, by namespace and name (rule R22)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from wholefeed.core.terms import (
    ATOM_NAMESPACES,
    RSS_090_NS,
    RSS_10_NS,
    RSS_NAMESPACES,
    WELL_KNOWN_PREFIXES,
    Family,
)


class Rule(NamedTuple):
    """What of an element is a URL."""

    attributes: frozenset[str] = frozenset()
    is_text: bool = False
    is_content: bool = False
    """Whether what stands in it is left alone: xml:base counts there."""


_LINK: Final = Rule(frozenset({"href"}))
_URL_TEXT: Final = Rule(is_text=True)
_CONTENT: Final = Rule(is_content=True)
NO_RULE: Final = Rule()
EVERYWHERE: Final = "*"
"""Stands for all the other names in a namespace."""

ATOM: Final = {
    "link": _LINK,
    "content": Rule(frozenset({"src"}), is_content=True),
    "generator": Rule(frozenset({"uri", "url"})),
    **dict.fromkeys(("icon", "logo", "uri", "url"), _URL_TEXT),
    **dict.fromkeys(("summary", "title", "subtitle", "rights", "tagline", "copyright", "info"), _CONTENT),
}
RSS: Final = {
    "link": Rule(frozenset({"href"}), is_text=True),
    "enclosure": Rule(frozenset({"url"})),
    "source": Rule(frozenset({"url"})),
    **dict.fromkeys(("comments", "docs", "url", "image"), _URL_TEXT),
    **dict.fromkeys(("description", "title"), _CONTENT),
}
_ALL_URLS: Final = Rule(frozenset({"url", "href", "uri", "img", "feedUrl", "accountUrl", "srcset"}))
_FOREIGN: Final[Mapping[str, Mapping[str, Rule]]] = {
    namespace.lower().rstrip("/"): rules
    for namespace, rules in {
        **dict.fromkeys(ATOM_NAMESPACES, ATOM),
        WELL_KNOWN_PREFIXES["media"]: {"backLink": _URL_TEXT, "response": _URL_TEXT, EVERYWHERE: _ALL_URLS},
        WELL_KNOWN_PREFIXES["podcast"]: {EVERYWHERE: _ALL_URLS},
        "https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md": {
            EVERYWHERE: _ALL_URLS
        },
        WELL_KNOWN_PREFIXES["itunes"]: {"image": _LINK, "new-feed-url": _URL_TEXT},
        WELL_KNOWN_PREFIXES["googleplay"]: {"image": _LINK},
        WELL_KNOWN_PREFIXES["wfw"]: {EVERYWHERE: _URL_TEXT},
        WELL_KNOWN_PREFIXES["thr"]: {"in-reply-to": Rule(frozenset({"href", "source"}))},
        WELL_KNOWN_PREFIXES["psc"]: {"chapter": Rule(frozenset({"href", "image"}))},
        WELL_KNOWN_PREFIXES["feedburner"]: {"origLink": _URL_TEXT, "origEnclosureLink": _URL_TEXT},
        WELL_KNOWN_PREFIXES["creativeCommons"]: {"license": _URL_TEXT},
        "http://purl.oclc.org/net/rss_2.0/enc#": {
            "enclosure": Rule(frozenset({"rdf:resource", "enc:url", "url"}))
        },
        WELL_KNOWN_PREFIXES["content"]: {EVERYWHERE: _CONTENT},
        WELL_KNOWN_PREFIXES["xhtml"]: {EVERYWHERE: _CONTENT},
    }.items()
}
_NONE: Final[Mapping[str, Rule]] = {}
RSS_OWN: Final = RSS_NAMESPACES | {RSS_10_NS, RSS_090_NS}


def rules_of(namespace: str, family: Family, default: str) -> Mapping[str, Rule]:
    """Return the rules for the elements of a namespace, by their local names.

    Args:
        namespace: Of an element.
        family: Of its document.
        default: The default namespace of its document: around RSS it is RSS's own, however it is called.
    """
    rules = _FOREIGN.get(namespace.lower().rstrip("/"))
    if rules is None and family is not Family.ATOM and (namespace == default or namespace in RSS_OWN):
        return RSS
    return _NONE if rules is None else rules
