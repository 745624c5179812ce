"""Which namespace prefixes are declared where, and what those mean that are not (docs/faults.md row 45)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from wholefeed.core.terms import WELL_KNOWN_PREFIXES
from wholefeed.core.text.markup import quoteattr

UNKNOWN_NAMESPACE: Final = "urn:wholefeed:undeclared-prefix:"
"""Before a prefix that nobody declared and nobody knows: what its names are in, in every document."""

_ATTRIBUTE: Final = re.compile(rb"\s([^\s=:\"']++)(?::([^\s=\"']++))?+\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+')")
_KNOWN: Final = {
    **WELL_KNOWN_PREFIXES,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "rss": "http://purl.org/rss/1.0/",
    "admin": "http://webns.net/mvcb/",
    "annotate": "http://purl.org/rss/1.0/modules/annotate/",
    "audio": "http://media.tangent.org/rss/1.0/",
    "blogger": "http://schemas.google.com/blogger/2008",
    "cf": "http://www.microsoft.com/schemas/rss/core/2005",
    "ev": "http://purl.org/rss/1.0/modules/event/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "g": "http://base.google.com/ns/1.0",
    "gd": "http://schemas.google.com/g/2005",
    "icbm": "http://postneo.com/icbm",
    "openSearch": "http://a9.com/-/spec/opensearch/1.1/",
    "pingback": "http://madskills.com/public/xml/rss/module/pingback/",
    "prism": "http://prismstandard.org/namespaces/basic/2.0/",
    "rawvoice": "http://www.rawvoice.com/rawvoiceRssModule/",
    "spotify": "http://www.spotify.com/ns/rss",
    "svg": "http://www.w3.org/2000/svg",
    "taxo": "http://purl.org/rss/1.0/modules/taxonomy/",
    "trackback": "http://madskills.com/public/xml/rss/module/trackback/",
    "xlink": "http://www.w3.org/1999/xlink",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "yt": "http://www.youtube.com/xml/schemas/2015",
}
_XML: Final = (b"xml", b"xmlns")


class Prefixes:
    """The prefixes in scope, as elements begin and end, and those that were used out of scope."""

    def __init__(self) -> None:
        self.undeclared: dict[bytes, None] = {}
        self._declared: Counter[bytes] = Counter()

    def begin(self, name: bytes, attributes: bytes) -> tuple[bytes, ...]:
        """Take a start tag; return the prefixes that it declares, for `end`."""
        used, declared = [], []
        if b":" in name:
            used.append(name.partition(b":")[0])
        if b":" in attributes:
            for prefix, local in _ATTRIBUTE.findall(attributes):
                if local and prefix == b"xmlns":
                    declared.append(local)
                elif local:
                    used.append(prefix)
        self._declared.update(declared)
        for prefix in used:
            if not self._declared[prefix] and prefix not in _XML:
                self.undeclared[prefix] = None
        return tuple(declared)

    def end(self, declared: tuple[bytes, ...]) -> None:
        """The element that declared these ends."""
        self._declared.subtract(declared)

    def forget(self, since: int) -> None:
        """Take back all but so many of those that were found to be undeclared."""
        while len(self.undeclared) > since:
            self.undeclared.popitem()

    def declarations(self) -> bytes:
        """Return the declarations that the root gains."""
        return b"".join(
            f" xmlns:{prefix}={quoteattr(_namespace(prefix))}".encode()
            for prefix in (each.decode() for each in self.undeclared)
        )


def _namespace(prefix: str) -> str:
    return _KNOWN.get(prefix, UNKNOWN_NAMESPACE + prefix)
